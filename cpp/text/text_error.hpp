#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

namespace approxsvm::text {

/// What is wrong with a text and where. The message is lower case and does not name the file: whoever opened
/// it knows the path and writes "path, line N: " in front.
struct TextError : std::runtime_error {
    TextError(std::size_t line_number, const std::string& message) : std::runtime_error(message), line(line_number) {}

    /// Counted from 1; 0 when no single line is to blame.
    std::size_t line;
};

}  // namespace approxsvm::text

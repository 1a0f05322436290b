#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

namespace approxsvm::text {

/// A fault of a text and its line. The message is lower case and does not name the file: the caller, who opened it,
/// prepends "path, line N: ".
struct TextError : std::runtime_error {
    TextError(std::size_t line_number, const std::string& message) : std::runtime_error(message), line(line_number) {}

    /// Counted from 1; 0 if the fault is not in a single line.
    std::size_t line;
};

}  // namespace approxsvm::text

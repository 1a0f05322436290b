#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

namespace approxsvm::text {

/// A fault in a text, with the line number. The message is in lower case and does not contain the file's path; the
/// caller, which opened the file, prepends "path, line N: ".
struct TextError : std::runtime_error {
    TextError(std::size_t line_number, const std::string& message) : std::runtime_error(message), line(line_number) {}

    /// Line number from 1; 0 if the fault is not confined to one line.
    std::size_t line;
};

}  // namespace approxsvm::text

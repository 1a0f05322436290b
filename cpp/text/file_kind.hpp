#pragma once

#include <string>
#include <string_view>

#include "text_error.hpp"

// Recognises a file of the wrong kind by its first bytes, for a better error message: models of other programs, rows
// instead of models, archives.

namespace approxsvm::text {

/// A kind of files; empty if it is unknown.
struct FileKind {
    /// "a JSON file".
    std::string_view name;
    /// Advice for the user; may be empty.
    std::string_view advice;
};

inline constexpr std::string_view libsvm_model = "a LIBSVM model";
inline constexpr std::string_view libsvm_data = "a LIBSVM data file";
inline constexpr FileKind marked_artifact = {"an approxsvm artifact after a byte order mark",
                                             "remove its first three bytes (tail -c +4 FILE)"};

FileKind kind_of(std::string_view bytes);

/// "this is NAME; ADVICE"; `expected`, if it is not empty, is said to be another kind.
std::string described(const FileKind& kind, std::string_view expected = {});

/// Returns the error of a text that could not be read as `libsvm_model` or `libsvm_data`. If its first line is bad and
/// the file is of another known kind, the new error says so.
TextError explained(const TextError& error, std::string_view bytes, std::string_view expected);

}  // namespace approxsvm::text

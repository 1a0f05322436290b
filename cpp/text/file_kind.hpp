#pragma once

#include <string>
#include <string_view>

#include "text_error.hpp"

// Recognises a file of the wrong kind by its first bytes, for a better error message: another program's model, rows
// instead of a model, or an archive.

namespace approxsvm::text {

/// A file's kind; `name` is empty if it is unknown.
struct FileKind {
    /// Name with an article, such as "a JSON file".
    std::string_view name;
    /// Advice for the user; may be empty.
    std::string_view advice;
};

inline constexpr std::string_view libsvm_model = "a LIBSVM model";
inline constexpr std::string_view libsvm_data = "a LIBSVM data file";
inline constexpr FileKind marked_artifact = {"an approxsvm artifact after a byte order mark",
                                             "remove its first three bytes (tail -c +4 FILE)"};

FileKind kind_of(std::string_view bytes);

/// Returns "this is NAME; ADVICE". If `expected` is not empty, the message adds that this kind was expected instead.
std::string described(const FileKind& kind, std::string_view expected = {});

/// Returns the error for a text that could not be read as `libsvm_model` or `libsvm_data`. If the first line is faulty
/// and the file is of another known kind, the new error mentions that kind.
TextError explained(const TextError& error, std::string_view bytes, std::string_view expected);

}  // namespace approxsvm::text

#pragma once

#include <string>
#include <string_view>

#include "text_error.hpp"

// What a file is that is not what was asked for: people hand over models of other programs, rows in place of models,
// and archives. Told by the first bytes, as far as these tell.

namespace approxsvm::text {

/// What is known of a kind of files; empty where nothing is.
struct FileKind {
    /// "a JSON file".
    std::string_view name;
    /// What to do with it; may be empty.
    std::string_view advice;
};

inline constexpr std::string_view libsvm_model = "a LIBSVM model";
inline constexpr std::string_view libsvm_data = "a LIBSVM data file";

FileKind kind_of(std::string_view bytes);

/// The error with which a text could not be read as what was expected, `libsvm_model` or `libsvm_data`. If its first
/// line is the bad one, and it is known to be something else, that is a better one.
TextError explained(const TextError& error, std::string_view bytes, std::string_view expected);

}  // namespace approxsvm::text

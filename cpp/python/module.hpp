// Declarations shared by all files of the extension module: registration functions, and the translation of errors to
// Python.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "target_table.hpp"

namespace approxsvm::python {

void register_artifact(pybind11::module_& module);
void register_constants(pybind11::module_& module);
void register_predictor(pybind11::module_& module);
void register_gram(pybind11::module_& module);
void register_input_map(pybind11::module_& module);
void register_outputs(pybind11::module_& module);
void register_rows(pybind11::module_& module);
void register_text(pybind11::module_& module);
void register_ngrams(pybind11::module_& module);

// Returns the target with this name; without a name, the target named by APPROXSVM_TARGET, or else the fastest one.
// Raises TargetError if there is no such target.
const dispatch::TargetTable& target_for(const std::optional<std::string>& name);

// Copies a section's bytes to an address that is a multiple of 8, as required by its readers.
inline std::vector<std::uint64_t> aligned(std::string_view bytes) {
    std::vector<std::uint64_t> copy(bytes.size() / 8 + 1);
    if (!bytes.empty()) std::memcpy(copy.data(), bytes.data(), bytes.size());
    return copy;
}

// Raises approxsvm.errors.<name>(text).
[[noreturn]] void raise(const char* name, const std::string& text);

}  // namespace approxsvm::python

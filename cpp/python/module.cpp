#include "module.hpp"

#include <stdexcept>

namespace approxsvm::python {

void raise(const char* name, const std::string& text) {
    const pybind11::object type = pybind11::module_::import("approxsvm.errors").attr(name);
    PyErr_SetString(type.ptr(), text.c_str());
    throw pybind11::error_already_set();
}

const dispatch::TargetTable& target_for(const std::optional<std::string>& name) {
    try {
        return name ? dispatch::target_named(*name, "the caller") : dispatch::selected_target();
    } catch (const std::runtime_error& error) {
        raise("TargetError", error.what());
    }
}

}  // namespace approxsvm::python

PYBIND11_MODULE(_native, module) {
    module.doc() =
        "The native core: predictor, outputs and LIBSVM text. Private; use the public functions of approxsvm.";
    approxsvm::python::register_artifact(module);
    approxsvm::python::register_constants(module);
    approxsvm::python::register_rows(module);
    approxsvm::python::register_predictor(module);
    approxsvm::python::register_gram(module);
    approxsvm::python::register_input_map(module);
    approxsvm::python::register_outputs(module);
    approxsvm::python::register_text(module);
    approxsvm::python::register_ngrams(module);
}

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <memory>
#include <system_error>
#include <utility>

#include "file_kind.hpp"
#include "libsvm_data.hpp"
#include "libsvm_model.hpp"
#include "mapped_file.hpp"
#include "module.hpp"

namespace py = pybind11;

namespace approxsvm::python {
namespace {

// Hands a vector's memory to NumPy without copying it.
template <class Vector>
py::array to_numpy(Vector&& vector, std::vector<py::ssize_t> shape = {}) {
    using Value = typename std::decay_t<Vector>::value_type;
    auto owner = std::make_unique<std::decay_t<Vector>>(std::forward<Vector>(vector));
    if (shape.empty()) shape = {static_cast<py::ssize_t>(owner->size())};
    const Value* data = owner->data();
    const py::capsule capsule(owner.release(), [](void* p) { delete static_cast<std::decay_t<Vector>*>(p); });
    return py::array_t<Value>(shape, data, capsule);
}

// Reads and parses a file without holding the GIL; error messages name the file and the line.
template <class Parse>
auto parse_file(const std::string& path, const char* error_class, std::string_view expected, const Parse& parse) {
    std::string problem;
    try {
        py::gil_scoped_release release;
        const text::MappedFile file(path);
        try {
            return parse(file.bytes());
        } catch (const text::TextError& found) {
            const text::TextError error = text::explained(found, file.bytes(), expected);
            problem = path + (error.line > 0 ? ", line " + std::to_string(error.line) : "") + ": " + error.what();
        }
    } catch (const std::system_error& error) {
        errno = error.code().value();
        PyErr_SetFromErrnoWithFilename(PyExc_OSError, path.c_str());
        throw py::error_already_set();
    }
    raise(error_class, problem);
}

py::dict read_libsvm_model(const std::string& path) {
    text::LibsvmModel model = parse_file(path, "ModelFormatError", text::libsvm_model, text::parse_libsvm_model);
    const py::ssize_t n_sv = model.n_sv, n_coef = model.n_coef;
    py::dict result;
    result["svm_type"] = std::string(text::name_of(model.svm_type));
    result["kernel_type"] = std::string(text::name_of(model.kernel_type));
    result["degree"] = model.degree;
    result["gamma"] = model.gamma;
    result["coef0"] = model.coef0;
    result["n_classes"] = model.n_classes;
    model.for_lists([&](const char* name, auto& list) { result[name] = to_numpy(std::move(list)); });
    for (auto& [key, list] : model.probabilities) result[key.c_str()] = to_numpy(std::move(list));
    result["coef"] = to_numpy(std::move(model.coef), {n_sv, n_coef});
    result["min_index"] = model.min_index;
    result["max_index"] = model.max_index;
    result["ends_in_line_break"] = model.ends_in_line_break;
    return result;
}

py::tuple to_python(text::LibsvmData&& data) {
    return py::make_tuple(to_numpy(std::move(data.labels)), to_numpy(std::move(data.indptr)),
                          to_numpy(std::move(data.indices)), to_numpy(std::move(data.values)), data.min_index,
                          data.max_index);
}

py::tuple read_libsvm_data(const std::string& path, int n_threads) {
    text::LibsvmData data = parse_file(path, "DataFormatError", text::libsvm_data, [n_threads](std::string_view bytes) {
        return text::parse_libsvm_data(bytes, n_threads);
    });
    return to_python(std::move(data));
}

// Parses lines in memory; line numbers in error messages start at 1.
py::tuple parse_libsvm_data(const py::bytes& bytes) {
    const std::string_view all(bytes);
    text::LibsvmData data;
    std::string problem;
    {
        py::gil_scoped_release release;
        try {
            data = text::parse_libsvm_data(all);
        } catch (const text::TextError& error) {
            problem = "line " + std::to_string(error.line) + ": " + error.what();
        }
    }
    if (!problem.empty()) raise("DataFormatError", problem);
    return to_python(std::move(data));
}

// Describes the file, for example as "a JSON file"; empty if its first bytes do not identify the format.
std::string file_kind(const py::bytes& bytes) {
    return std::string(text::kind_of(std::string_view(bytes)).name);
}

// Describes the file and gives advice, as in "this is a pickle; ..."; empty if its format is unknown.
std::string described_file(const py::bytes& bytes) {
    const text::FileKind kind = text::kind_of(std::string_view(bytes));
    return kind.name.empty() ? "" : text::described(kind);
}

}  // namespace

void register_text(py::module_& module) {
    module.def("read_libsvm_model", read_libsvm_model, py::arg("path"));
    module.def("read_libsvm_data", read_libsvm_data, py::arg("path"), py::arg("n_threads"));
    module.def("file_kind", file_kind, py::arg("data"));
    module.def("described_file", described_file, py::arg("data"));
    module.def("parse_libsvm_data", parse_libsvm_data, py::arg("text"));
}

}  // namespace approxsvm::python

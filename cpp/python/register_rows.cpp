#include <pybind11/stl.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "module.hpp"
#include "row_reader.hpp"

namespace py = pybind11;

namespace approxsvm::python {
namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
constexpr long long largest_exact = 1LL << 53;  // float64 represents all integers up to this limit

// Reads a row into an array of shape (1, n_columns), or returns None.
template <class Read>
py::object row_or_none(const RowReader& reader, const Read& read) {
    py::array_t<double> row({py::ssize_t{1}, static_cast<py::ssize_t>(reader.n_columns())});
    return read(row.mutable_data()) ? py::object(std::move(row)) : py::none();
}

}  // namespace

RowReader::RowReader(std::shared_ptr<PyArtifact> artifact, const py::list& columns, bool by_column, bool has_names,
                     bool needs_real)
    : artifact_(std::move(artifact)),
      numpy_float64_(py::module_::import("numpy").attr("float64")),
      by_column_(by_column),
      has_names_(has_names),
      needs_real_(needs_real) {
    const ModelView& model = artifact_->opened().model;
    if (columns.size() != model.n_raw_features)
        raise("InputError", "there are " + std::to_string(columns.size()) + " columns, but the model has " +
                                std::to_string(model.n_raw_features));
    columns_.reserve(columns.size());
    for (const py::handle each : columns) {
        const auto fields = py::cast<py::tuple>(each);
        Column column{fields[0],
                      static_cast<Role>(py::cast<int>(fields[1])),
                      !fields[2].is_none(),
                      false,
                      false,
                      false,
                      fields[2].is_none() ? nan_value : py::cast<double>(fields[2]),
                      CategoryIndex(texts_of(model, columns_.size()))};
        for (const double code : py::cast<std::vector<double>>(fields[3])) {
            column.refuses_unknown |= code == unknown_category;
            column.refuses_none |= code == none_category;
            column.refuses_nan |= std::isnan(code);
        }
        columns_.push_back(std::move(column));
    }
}

bool RowReader::read(PyObject* row, double* out) const {
    if (PyDict_CheckExact(row)) return read_mapping(row, out);
    if (!PyList_CheckExact(row) && !PyTuple_CheckExact(row)) return false;
    return read_sequence(PySequence_Fast_ITEMS(row), static_cast<std::size_t>(PySequence_Fast_GET_SIZE(row)), out);
}

bool RowReader::read_sequence(PyObject* const* items, std::size_t n, double* out) const {
    if (n != columns_.size()) return false;
    bool is_real = !needs_real_;
    for (std::size_t k = 0; k < n; ++k) {
        is_real |= PyFloat_CheckExact(items[k]) || PyUnicode_CheckExact(items[k]);
        if (!read_value(columns_[k], items[k], out[k])) return false;
    }
    return is_real;
}

bool RowReader::read_mapping(PyObject* row, double* out) const {
    std::size_t n_found = 0;
    for (std::size_t k = 0; k < columns_.size(); ++k) {
        const Column& column = columns_[k];
        PyObject* const value = PyDict_GetItemWithError(row, column.name.ptr());
        if (value == nullptr && PyErr_Occurred()) throw py::error_already_set();
        n_found += value != nullptr;
        out[k] = 0.0;
        if (value == nullptr && !has_names_) return false;
        if (column.role == Role::unused) continue;
        if (column.takes_missing && (value == nullptr || value == Py_None)) {
            out[k] = column.missing;
            if (column.refuses_none && column.missing == none_category) return false;
        } else if (value == nullptr || !read_value(column, value, out[k])) {
            return false;
        }
    }
    return n_found == static_cast<std::size_t>(PyDict_GET_SIZE(row)) || further_keys_are_fine(row);
}

bool RowReader::further_keys_are_fine(PyObject* row) const {
    if (!by_column_) return false;
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(row, &at, &key, &value);) {
        if (!PyUnicode_Check(key)) return false;
    }
    return true;
}

bool RowReader::read_row_of_table(const py::list& values, bool none_is_null, double* out) const {
    if (values.size() != columns_.size()) return false;
    for (std::size_t k = 0; k < columns_.size(); ++k) {
        if (!read_cell(columns_[k], PyList_GET_ITEM(values.ptr(), static_cast<Py_ssize_t>(k)), none_is_null, out[k]))
            return false;
    }
    return true;
}

bool RowReader::read_cell(const Column& column, PyObject* value, bool none_is_null, double& out) const {
    if (!(none_is_null && value == Py_None)) return read_value(column, value, out);
    if (column.role != Role::text) {
        out = column.role == Role::unused ? 0.0 : nan_value;
        return true;
    }
    out = column.texts.texts().null;
    return !(column.refuses_none && out == none_category);
}

bool RowReader::read_value(const Column& column, PyObject* value, double& out) const {
    const bool is_float = PyFloat_CheckExact(value) || Py_TYPE(value) == numpy_float64_type();
    out = 0.0;
    if (column.role == Role::unused) return true;
    if (column.role == Role::text) {
        if (PyUnicode_CheckExact(value)) {
            Py_ssize_t n = 0;
            const char* const text = PyUnicode_AsUTF8AndSize(value, &n);
            if (text == nullptr) PyErr_Clear();  // unpaired surrogate
            if (text != nullptr) out = column.texts.code({text, static_cast<std::size_t>(n)});
            return text != nullptr && !(column.refuses_unknown && out == unknown_category);
        }
        out = value == Py_None ? none_category : nan_value;
        return value == Py_None ? !column.refuses_none : is_float && std::isnan(PyFloat_AS_DOUBLE(value));
    }
    if (is_float) {
        out = PyFloat_AS_DOUBLE(value);
        return !(column.refuses_nan && std::isnan(out));
    }
    if (PyLong_Check(value)) {  // a bool is also an int
        if (!PyLong_CheckExact(value) && !PyBool_Check(value)) return false;
        int beyond = 0;
        const long long whole = PyLong_AsLongLongAndOverflow(value, &beyond);
        out = static_cast<double>(whole);
        return beyond == 0 && (column.role == Role::number || (whole <= largest_exact && whole >= -largest_exact));
    }
    out = nan_value;
    return value == Py_None && !column.refuses_none;
}

bool RowReader::fill(std::size_t column, const py::object& values, py::array_t<double> out, bool none_is_null) const {
    const auto read_all = [&](const auto& item_of) {
        double* const numbers = out.mutable_data();
        for (py::ssize_t i = 0; i < out.size(); ++i) {
            if (!read_cell(columns_[column], item_of(i), none_is_null, numbers[i])) return false;
        }
        return true;
    };
    if (column >= columns_.size() || out.ndim() != 1 || (out.size() > 1 && out.strides(0) != sizeof(double)))
        return false;
    if (PyList_CheckExact(values.ptr())) {
        return PyList_GET_SIZE(values.ptr()) == out.size() &&
               read_all([&](py::ssize_t i) { return PyList_GET_ITEM(values.ptr(), i); });
    }
    if (!py::isinstance<py::array>(values)) return false;
    const auto objects = py::reinterpret_borrow<py::array>(values);
    if (objects.dtype().kind() != 'O' || objects.ndim() != 1 || objects.size() != out.size()) return false;
    const auto* const first = static_cast<const unsigned char*>(objects.data());
    return read_all([&](py::ssize_t i) {
        PyObject* item;
        std::memcpy(&item, first + i * objects.strides(0), sizeof item);
        return item == nullptr ? Py_None : item;
    });
}

void register_rows(py::module_& module) {
    py::class_<RowReader, std::shared_ptr<RowReader>>(module, "RowReader")
        .def(py::init<std::shared_ptr<PyArtifact>, const py::list&, bool, bool, bool>(), py::arg("artifact"),
             py::arg("columns"), py::kw_only(), py::arg("by_column"), py::arg("has_names"), py::arg("needs_real"))
        .def(
            "row",
            [](const RowReader& reader, const py::object& row) {
                return row_or_none(reader, [&](double* out) { return reader.read(row.ptr(), out); });
            },
            py::arg("row"))
        .def(
            "row_of_table",
            [](const RowReader& reader, const py::list& values, bool none_is_null) {
                return row_or_none(reader,
                                   [&](double* out) { return reader.read_row_of_table(values, none_is_null, out); });
            },
            py::arg("values"), py::arg("none_is_null"))
        .def("fill", &RowReader::fill, py::arg("column"), py::arg("values"), py::arg("out").noconvert(),
             py::arg("none_is_null"));
}

}  // namespace approxsvm::python

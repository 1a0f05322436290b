// Converts raw rows of Python values to numbers. Strings are looked up in the artifact without intermediate object
// arrays. The functions return false for values other than plain numbers, strings and None; the row is then converted
// by approxsvm/frames/columns.py, which has the rules for all values.
#pragma once

#include <pybind11/numpy.h>

#include <approxsvm/approxsvm.hpp>
#include <memory>
#include <string_view>
#include <vector>

#include "artifact.hpp"
#include "category_index.hpp"

namespace approxsvm::python {

class RowReader {
  public:
    enum class Role { unused, number, looked_up, text };

    // Each column is a tuple: name; role; code for a missing value, or None if missing values are rejected; codes
    // rejected by the source. In a numeric column, a code for None or NaN means that the source distinguishes that
    // value from its missing value. With `by_column`, other names are ignored. With `has_names`, the names come from
    // the source instead of being f0, f1, ... With `needs_real`, rows that contain only integers or bools are left to
    // Python code, because their dtype matters.
    RowReader(std::shared_ptr<PyArtifact> artifact, const pybind11::list& columns, bool by_column, bool has_names,
              bool needs_real);

    std::size_t n_columns() const { return columns_.size(); }
    // Reads a dict, list or tuple (but no subclass) into n_columns() values.
    bool read(PyObject* row, double* out) const;
    // Reads a table row: a list with one value per column. With `none_is_null`, None is the source's missing value, as
    // in tables with a single kind of missing value.
    bool read_row_of_table(const pybind11::list& values, bool none_is_null, double* out) const;
    // Reads a table column: a list or a one-dimensional object array; `out` is contiguous and has the same length.
    bool fill(std::size_t column, const pybind11::object& values, pybind11::array_t<double> out,
              bool none_is_null) const;

  private:
    struct Column {
        pybind11::object name;
        Role role;
        bool takes_missing, refuses_unknown, refuses_none, refuses_nan;
        double missing;
        CategoryIndex texts;
    };

    bool read_sequence(PyObject* const* items, std::size_t n, double* out) const;
    bool read_mapping(PyObject* row, double* out) const;
    // Returns true if a dict's other keys may be ignored: they must be strings, like column names.
    bool further_keys_are_fine(PyObject* row) const;
    bool read_cell(const Column& column, PyObject* value, bool none_is_null, double& out) const;
    bool read_value(const Column& column, PyObject* value, double& out) const;

    PyTypeObject* numpy_float64_type() const { return reinterpret_cast<PyTypeObject*>(numpy_float64_.ptr()); }

    std::shared_ptr<PyArtifact> artifact_;
    std::vector<Column> columns_;
    pybind11::object numpy_float64_;
    const bool by_column_, has_names_, needs_real_;
};

}  // namespace approxsvm::python

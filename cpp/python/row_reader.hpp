// Raw rows of Python's own values as numbers. Texts are looked up in the artifact, without arrays of objects in
// between. Whatever is not plainly a number, a text or None is left to approxsvm/frames/columns.py, which has the rules
// for all values: the functions then return false.
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

    // Each column as (name, role, code of a missing value or None where none is taken, codes that the source refuses).
    // `by_column`: further names are ignored. `has_names`: names are the source's own, and not f0, f1, ...
    // `needs_real`: rows of integers or truth values alone are left to others, for the sake of their dtype.
    RowReader(std::shared_ptr<PyArtifact> artifact, const pybind11::list& columns, bool by_column, bool has_names,
              bool needs_real);

    std::size_t n_columns() const { return columns_.size(); }
    // A dict, a list or a tuple, of these types exactly, as n_columns() numbers.
    bool read(PyObject* row, double* out) const;
    // A row of a table, a list with a value for each column. `none_is_null`: None is whatever the source takes for a
    // missing value, as in tables that have one kind of these.
    bool read_row_of_table(const pybind11::list& values, bool none_is_null, double* out) const;
    // A column of a table, a list or a one-dimensional array of objects; `out` is contiguous and as long.
    bool fill(std::size_t column, const pybind11::object& values, pybind11::array_t<double> out,
              bool none_is_null) const;
    // The same of texts as Arrow stores them; a null becomes `null`. False where a text or a null is refused.
    bool fill_arrow(std::size_t column, const pybind11::object& validity, const pybind11::buffer& offsets,
                    const pybind11::buffer& data, std::size_t first, bool is_large, double null,
                    pybind11::array_t<double> out) const;

  private:
    struct Column {
        pybind11::object name;
        Role role;
        bool takes_missing, refuses_unknown, refuses_none;
        double missing;
        CategoryIndex texts;
    };

    bool read_sequence(PyObject* const* items, std::size_t n, double* out) const;
    bool read_mapping(PyObject* row, double* out) const;
    // Whether they may be ignored: they are strings, as names of columns are.
    bool further_keys_are_fine(PyObject* row) const;
    bool read_cell(const Column& column, PyObject* value, bool none_is_null, double& out) const;
    bool read_value(const Column& column, PyObject* value, double& out) const;
    bool takes(std::size_t column, const pybind11::array_t<double>& out) const;
    bool code_of(const Column& column, std::string_view text, double& out) const;

    PyTypeObject* numpy_float64_type() const { return reinterpret_cast<PyTypeObject*>(numpy_float64_.ptr()); }

    std::shared_ptr<PyArtifact> artifact_;
    std::vector<Column> columns_;
    pybind11::object numpy_float64_;
    const bool by_column_, has_names_, needs_real_;
};

}  // namespace approxsvm::python

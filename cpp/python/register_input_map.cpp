#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <approxsvm/predict/rows/input_map.hpp>
#include <optional>
#include <vector>

#include "fault_text.hpp"
#include "module.hpp"

namespace py = pybind11;

namespace approxsvm::python {
namespace {

using Matrix = py::array_t<double, py::array::c_style | py::array::forcecast>;

// Maps rows as specified by the section "input_map", without holding the GIL.
class PyInputMap {
  public:
    PyInputMap(const py::bytes& section, std::size_t n_raw_features, std::size_t n_features) : n_features_(n_features) {
        const std::string_view bytes(section);
        bytes_ = aligned(bytes);
        ArtifactFault fault;
        const Status status = read_input_map(reinterpret_cast<const unsigned char*>(bytes_.data()), bytes.size(),
                                             n_raw_features, n_features, map_, &fault);
        if (status != Status::ok) raise("ArtifactError", dispatch::text_of(status, fault));
        gains_.resize(map_gain_doubles(map_));
        fill_map_gains(map_, gains_.data());
    }
    PyInputMap(const PyInputMap&) = delete;  // the view points into bytes_
    PyInputMap& operator=(const PyInputMap&) = delete;

    // Returns mapped rows; error bounds for each element and, as Euclidean distances, for each row; a flag for each row
    // that overflowed float64; and, for the first row that a step rejects, its index, the step's kind, the rejected
    // value and the limit.
    py::tuple map(const Matrix& rows, const std::optional<Matrix>& errors, bool is_source, bool exactly,
                  bool counts_source, bool is_sparse, bool in_float32) const {
        const py::ssize_t n_columns = static_cast<py::ssize_t>(map_.n_columns);
        if (rows.ndim() != 2 || rows.shape(1) != n_columns)
            raise("InputError", "expected rows of shape (n_rows, " + std::to_string(n_columns) + ")");
        if (errors && (errors->ndim() != 2 || errors->shape(0) != rows.shape(0) || errors->shape(1) != n_columns))
            raise("InputError", "there is not one error for each number");
        const py::ssize_t n_rows = rows.shape(0), width = static_cast<py::ssize_t>(n_features_);
        py::array_t<double> mapped({n_rows, width}), off({n_rows, width}), distances(n_rows);
        py::array_t<bool> has_left(n_rows), is_outside(n_rows);
        const SourceRows source{in_float32, is_sparse, counts_source};
        Fault fault{};
        bool has_fault = false;
        {
            const double *x = rows.data(), *came = errors ? errors->data() : nullptr;
            double *y = mapped.mutable_data(), *y_off = off.mutable_data(), *distance = distances.mutable_data();
            bool *left = has_left.mutable_data(), *outside = is_outside.mutable_data();
            const std::size_t n = static_cast<std::size_t>(n_rows);
            const py::gil_scoped_release release;
            std::vector<double> memory(map_doubles(map_) + 1);
            const RowMapper<> mapper(map_, gains_.data(), memory.data(), source);
            for (std::size_t first = 0; first < n; first += map_rows_together) {
                const std::size_t some = std::min(map_rows_together, n - first);
                MappedRow found[map_rows_together] = {};
                for (std::size_t r = 0; r < some; ++r) {
                    const std::size_t at = (first + r) * map_.n_columns;
                    std::copy_n(x + at, map_.n_columns, mapper.row(r));
                    if (came)
                        std::copy_n(came + at, map_.n_columns, mapper.errors_of_row(r));
                    else
                        std::fill_n(mapper.errors_of_row(r), map_.n_columns, 0.0);
                }
                mapper.map(some, exactly, found, came != nullptr, is_source);
                for (std::size_t r = 0; r < some; ++r) {
                    const MappedRow& row = found[r];
                    std::copy_n(row.values, n_features_, y + (first + r) * n_features_);
                    std::copy_n(row.errors, n_features_, y_off + (first + r) * n_features_);
                    distance[first + r] = row.error;
                    left[first + r] = !row.is_finite;
                    outside[first + r] = !row.is_inside;
                    if (row.is_inside || has_fault) continue;
                    has_fault = true;
                    fault = row.outside;
                    fault.row = first + r;
                }
            }
        }
        py::object refused = py::none();
        if (has_fault)
            refused = py::make_tuple(fault.row, static_cast<std::uint32_t>(fault.step), fault.found, fault.expected);
        return py::make_tuple(mapped, off, distances, has_left, is_outside, refused);
    }

  private:
    const std::size_t n_features_;
    std::vector<std::uint64_t> bytes_;  // the section, at an address that is a multiple of 8
    InputMapView map_{};
    std::vector<double> gains_;
};

}  // namespace

void register_input_map(py::module_& module) {
    py::class_<PyInputMap>(module, "InputMap")
        .def(py::init<const py::bytes&, std::size_t, std::size_t>(), py::arg("section"), py::arg("n_raw_features"),
             py::arg("n_features"))
        .def("map", &PyInputMap::map, py::arg("rows"), py::arg("errors") = py::none(), py::arg("is_source") = true,
             py::arg("exactly") = false, py::arg("counts_source") = false, py::arg("is_sparse") = false,
             py::arg("in_float32") = false);
}

}  // namespace approxsvm::python

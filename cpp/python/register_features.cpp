#include <pybind11/numpy.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include "module.hpp"
#include "taylor_features.hpp"

namespace py = pybind11;

namespace approxsvm::python {
namespace {

template <class T>
using Array = py::array_t<T, py::array::c_style>;

// Computes a row at a time in float64; narrower outputs go through a buffer.
template <class T>
class RowWriter {
  public:
    RowWriter(TaylorRow& row, std::int64_t most_outputs)
        : row_(row), buffer_(std::is_same_v<T, double> ? 0 : static_cast<std::size_t>(most_outputs)) {}

    void write(const T* values, std::int64_t n, std::int64_t n_outputs, T* out) {
        if constexpr (std::is_same_v<T, double>) {
            row_.compute(values, n, out);
        } else {
            row_.compute(values, n, buffer_.data());
            std::transform(buffer_.begin(), buffer_.begin() + n_outputs, out,
                           [](double x) { return static_cast<T>(x); });
        }
    }

  private:
    TaylorRow& row_;
    std::vector<double> buffer_;
};

void check(bool fits, const char* what) {
    if (!fits) raise("InputError", std::string(what) + " of another size than the features take");
}

template <class T>
void taylor_features_dense(const Array<T>& rows, double gamma, int degree, Array<T>& out) {
    check(rows.ndim() == 2 && out.ndim() == 2 && rows.shape(0) == out.shape(0), "an array");
    const std::int64_t d = rows.shape(1), n_outputs = TaylorRow::n_outputs(d, degree);
    check(out.shape(1) == n_outputs, "an array");
    const T* from = rows.data();
    T* to = out.mutable_data();
    const std::int64_t n_rows = rows.shape(0);
    const py::gil_scoped_release release;
    TaylorRow row(d, gamma, degree);
    RowWriter<T> writer(row, n_outputs);
    for (std::int64_t i = 0; i < n_rows; ++i) writer.write(from + i * d, d, n_outputs, to + i * n_outputs);
}

template <class T, class Column>
void taylor_features_csr(const Array<std::int64_t>& indptr, const Array<std::int64_t>& indices, const Array<T>& data,
                         std::int64_t n_features, double gamma, int degree, const Array<std::int64_t>& out_indptr,
                         Array<Column>& out_indices, Array<T>& out_data) {
    const std::int64_t n_rows = indptr.size() - 1;
    check(n_rows >= 0 && out_indptr.size() == n_rows + 1, "indptr");
    const std::int64_t *starts = indptr.data(), *out_starts = out_indptr.data();
    check(starts[0] == 0 && starts[n_rows] <= std::min(indices.size(), data.size()), "the entries");
    check(out_starts[0] == 0 && out_starts[n_rows] <= std::min(out_indices.size(), out_data.size()), "the output");
    std::int64_t most_outputs = 0;
    for (std::int64_t i = 0; i < n_rows; ++i) {
        const std::int64_t n = starts[i + 1] - starts[i], n_outputs = out_starts[i + 1] - out_starts[i];
        check(n >= 0 && n <= n_features && n_outputs == TaylorRow::n_outputs(n, degree), "a row");
        most_outputs = std::max(most_outputs, n_outputs);
    }
    const std::int64_t* columns = indices.data();
    const T* values = data.data();
    Column* to_columns = out_indices.mutable_data();
    T* to = out_data.mutable_data();
    const py::gil_scoped_release release;
    TaylorRow row(n_features, gamma, degree);
    RowWriter<T> writer(row, most_outputs);
    for (std::int64_t i = 0; i < n_rows; ++i) {
        const std::int64_t n = starts[i + 1] - starts[i];
        row.place(columns + starts[i], n, to_columns + out_starts[i]);
        writer.write(values + starts[i], n, out_starts[i + 1] - out_starts[i], to + out_starts[i]);
    }
}

template <class T>
void register_of(py::module_& module) {
    const auto exactly = [](const char* name) { return py::arg(name).noconvert(); };
    module.def("taylor_features_dense", taylor_features_dense<T>, exactly("rows"), py::arg("gamma"), py::arg("degree"),
               exactly("out"));
    const auto of_csr = [&](auto function) {
        module.def("taylor_features_csr", function, exactly("indptr"), exactly("indices"), exactly("data"),
                   py::arg("n_features"), py::arg("gamma"), py::arg("degree"), exactly("out_indptr"),
                   exactly("out_indices"), exactly("out_data"));
    };
    of_csr(taylor_features_csr<T, std::int32_t>);
    of_csr(taylor_features_csr<T, std::int64_t>);
}

}  // namespace

void register_features(py::module_& module) {
    register_of<double>(module);
    register_of<float>(module);
}

}  // namespace approxsvm::python

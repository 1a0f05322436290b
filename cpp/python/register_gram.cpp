#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "module.hpp"
#include "target_table.hpp"

namespace py = pybind11;

namespace approxsvm::python {
namespace {

using Numbers = py::array_t<double, py::array::c_style>;

std::size_t size(const Numbers& array) {
    return static_cast<std::size_t>(array.size());
}

Numbers gram_powers(const Numbers& gram, const Numbers& left, const Numbers& right,
                    const std::map<std::size_t, Numbers>& powers, const Numbers& series,
                    const std::optional<Numbers>& sum_of_series, const std::optional<std::string>& target) {
    const auto check_shape = [&](const Numbers& matrix) {
        if (matrix.ndim() != 2 || matrix.shape(0) != left.size() || matrix.shape(1) != right.size())
            raise("InputError", "a matrix that does not have a row and a column for each weight");
    };
    check_shape(gram);
    const std::size_t n_degrees = size(series);
    std::vector<double*> kept(n_degrees, nullptr);
    for (const auto& [degree, matrix] : powers) {
        if (degree >= n_degrees) raise("InputError", "degree " + std::to_string(degree) + " is not looked at");
        check_shape(matrix);
        kept[degree] = Numbers(matrix).mutable_data();
    }
    if (sum_of_series) check_shape(*sum_of_series);

    const dispatch::TargetTable& kernels = target_for(target);
    Numbers sums(series.size());
    std::vector<double> row(size(right));
    GramPowers task;
    task.gram = gram.data();
    task.n_rows = size(left);
    task.n_columns = size(right);
    task.n_degrees = n_degrees;
    task.left = left.data();
    task.right = right.data();
    task.series = series.data();
    task.sums = sums.mutable_data();
    task.powers = kept.data();
    task.sum_of_series = sum_of_series ? Numbers(*sum_of_series).mutable_data() : nullptr;
    task.row = row.data();
    {
        const py::gil_scoped_release release;
        kernels.gram_powers(task);
    }
    return sums;
}

}  // namespace

void register_gram(py::module_& module) {
    module.def("gram_powers", gram_powers, py::arg("gram").noconvert(), py::arg("left").noconvert(),
               py::arg("right").noconvert(), py::arg("powers").noconvert(), py::arg("series").noconvert(),
               py::arg("sum_of_series").noconvert(), py::arg("target") = py::none());
}

}  // namespace approxsvm::python

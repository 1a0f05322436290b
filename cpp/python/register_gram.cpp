#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <cmath>
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
using Floats = py::array_t<float, py::array::c_style>;

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

double kernel_block(const Numbers& gram, const Numbers& left, const Numbers& right, const Numbers& left_coef,
                    const Numbers& right_coef, const std::vector<std::optional<Floats>>& remainders, Numbers& row_sums,
                    Numbers& column_sums, const std::optional<std::string>& target) {
    const auto check = [](const char* name, const Numbers& array, py::ssize_t n) {
        if (array.ndim() != 1 || array.size() != n)
            raise("InputError",
                  std::string(name) + " has " + std::to_string(array.size()) + " numbers, not " + std::to_string(n));
    };
    const auto check_shape = [&](const py::array& matrix) {
        if (matrix.ndim() != 2 || matrix.shape(0) != left.size() || matrix.shape(1) != right.size())
            raise("InputError", "a matrix that does not have a row and a column for each norm");
    };
    check_shape(gram);
    check("left_coef", left_coef, left.size());
    check("row_sums", row_sums, left.size());
    check("right_coef", right_coef, right.size());
    check("column_sums", column_sums, right.size());
    if (size(right) % kernel_block_columns != 0)
        raise("InputError",
              std::to_string(right.size()) + " columns are no multiple of " + std::to_string(kernel_block_columns));
    std::vector<float*> kept;
    std::vector<std::vector<double>> fades;
    for (const std::optional<Floats>& matrix : remainders) {
        if (matrix) check_shape(*matrix);
        kept.push_back(matrix ? Floats(*matrix).mutable_data() : nullptr);
        const double theta = std::ldexp(1.0, -static_cast<int>(kept.size()));
        for (const Numbers* norms : {&left, &right}) {
            fades.emplace_back(norms->data(), norms->data() + norms->size());
            for (double& x : fades.back()) x = std::exp(-theta * x);
        }
    }
    std::vector<const double*> left_fades, right_fades;
    for (std::size_t k = 0; k < fades.size(); k += 2) {
        left_fades.push_back(fades[k].data());
        right_fades.push_back(fades[k + 1].data());
    }
    const dispatch::TargetTable& kernels = target_for(target);
    KernelBlock task;
    task.gram = gram.data();
    task.n_rows = size(left);
    task.n_columns = size(right);
    task.left = left.data();
    task.right = right.data();
    task.left_coef = left_coef.data();
    task.right_coef = right_coef.data();
    task.n_roots = kept.size();
    task.remainders = kept.data();
    task.left_fades = left_fades.data();
    task.right_fades = right_fades.data();
    task.row_sums = row_sums.mutable_data();
    task.column_sums = column_sums.mutable_data();
    {
        const py::gil_scoped_release release;
        kernels.kernel_block(task);
    }
    return task.moduli;
}

}  // namespace

void register_gram(py::module_& module) {
    module.def("gram_powers", gram_powers, py::arg("gram").noconvert(), py::arg("left").noconvert(),
               py::arg("right").noconvert(), py::arg("powers").noconvert(), py::arg("series").noconvert(),
               py::arg("sum_of_series").noconvert(), py::arg("target") = py::none());
    module.def("kernel_block", kernel_block, py::arg("gram").noconvert(), py::arg("left").noconvert(),
               py::arg("right").noconvert(), py::arg("left_coef").noconvert(), py::arg("right_coef").noconvert(),
               py::arg("remainders").noconvert(), py::arg("row_sums").noconvert(), py::arg("column_sums").noconvert(),
               py::arg("target") = py::none());
}

}  // namespace approxsvm::python

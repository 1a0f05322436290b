#include <pybind11/numpy.h>

#include <algorithm>
#include <approxsvm/outputs/outputs.hpp>
#include <approxsvm/predict/prepare/layout.hpp>

#include "kernel_block.hpp"
#include "module.hpp"

namespace py = pybind11;

namespace approxsvm::python {
namespace {

// Constants shared with Python code for bounds, costs and exports, under the same names.
py::dict constants() {
    py::dict all;
    py::list thetas;
    for (const double theta : contractions) thetas.append(theta);
    all["unit32"] = unit32;
    all["unit64"] = unit64;
    all["contractions"] = thetas;
    all["first_octave"] = first_octave;
    all["end_octave"] = end_octave;
    all["cells_per_octave"] = cells_per_octave;
    all["kernel_block_columns"] = kernel_block_columns;
    all["max_frequent"] = max_frequent;
    all["frequent_share"] = frequent_share;
    all["least_probability"] = APPROXSVM_LEAST_PAIR;
    all["coupling_tolerance"] = APPROXSVM_COUPLING_TOLERANCE;
    all["coupling_sweeps"] = APPROXSVM_COUPLING_SWEEPS;
    all["inverse_normal"] = py::array_t<double>({2, 2, 8}, approxsvm_inverse_normal_coefs());
    all["least_inverse_normal"] = APPROXSVM_LEAST_PROBABILITY;
    return all;
}

using Matrix = py::array_t<double, py::array::c_style | py::array::forcecast>;

// Returns both endpoints of every cell of s except the last, of shape (2, n_cells - 1).
Matrix bound_cells(std::size_t n_features) {
    Matrix ends({std::size_t{2}, n_cells - 1});
    for (std::size_t k = 0; k + 1 < n_cells; ++k)
        cell_ends(k, n_features, *ends.mutable_data(0, k), *ends.mutable_data(1, k));
    return ends;
}

// Returns the factors of N_0, N_1, ..., of the remainders, and of W, of shape (n_factors, n_cells).
Matrix bound_factors(const Matrix& ends, int degree, int first_remainder_degree,
                     const ExpansionArithmetic& arithmetic) {
    constexpr int n_norms = last_norm_degree + 1;
    const py::ssize_t n = ends.shape(1);
    Matrix factors({py::ssize_t{n_norms + n_contractions + 1}, n});
    auto to = factors.mutable_unchecked<2>();
    for (py::ssize_t i = 0; i < n; ++i) {
        const BasisCell cell(true, first_remainder_degree, *ends.data(0, i), *ends.data(1, i));
        const RoundingFactors rounding(arithmetic, cell.high);
        for (int k = 0; k < n_norms; ++k) to(k, i) = cell.of_norm(k, degree, rounding);
        for (int t = 0; t < n_contractions; ++t) to(n_norms + t, i) = cell.remainders[t];
        to(n_norms + n_contractions, i) = cell.of_total();
    }
    return factors;
}

// Returns the reach, and the moments as an array of shape (n_functions, q + 1), of n terms. `norms` has the shape (n,);
// `moduli`, the absolute values of the coefficients, has the shape (n_functions, n).
py::tuple term_moments(int power, const Matrix& norms, const Matrix& moduli) {
    const py::ssize_t n = norms.size(), n_functions = moduli.shape(0), size = approxsvm_moduli_degree(power) + 1;
    const double reach = n > 0 ? *std::max_element(norms.data(), norms.data() + n) : 0.0;
    Matrix moments({n_functions, size});
    std::fill_n(moments.mutable_data(), moments.size(), 0.0);
    for (py::ssize_t k = 0; k < n_functions; ++k) {
        double* const of_function = moments.mutable_data(k, 0);
        double a1 = 0.0;
        for (py::ssize_t i = 0; i < n; ++i) {
            const double modulus = *moduli.data(k, i), norm = *norms.data(i);
            approxsvm_add_to_moments(of_function, power, modulus, norm > 0.0 ? norm / reach : 0.0);
            a1 += modulus;
        }
        approxsvm_end_moments(of_function, power, static_cast<double>(n), a1);
    }
    return py::make_tuple(reach, moments);
}

py::tuple grid_of(const Matrix& values) {
    const auto for_values = [&](const auto& visit) {
        std::for_each(values.data(), values.data() + values.size(), visit);
    };
    const auto [origin, step] = common_grid(for_values);
    return py::make_tuple(origin, step);
}

}  // namespace

void register_constants(py::module_& module) {
    module.def("constants", constants, "Numbers of the core, by name.");
    module.def("are_few", are_few, py::arg("n_values"), py::arg("n_sv"), py::arg("n_features"),
               "Whether an engine stores support vectors by columns.");
    module.def("max_phi", py::vectorize(max_phi), py::arg("k"), py::arg("low"), py::arg("high"),
               "The largest phi_k(s) from low to high.");
    py::class_<ExpansionArithmetic>(module, "ExpansionArithmetic")
        .def(py::init<double, double, double>(), py::arg("unit"), py::arg("form"), py::arg("half_norm"))
        .def_readonly("unit", &ExpansionArithmetic::unit)
        .def_readonly("form", &ExpansionArithmetic::form)
        .def_readonly("half_norm", &ExpansionArithmetic::half_norm);
    module.def("float32_arithmetic", float32_arithmetic, py::arg("n_features"), py::arg("degree"));
    module.def("bound_cells", bound_cells, py::arg("n_features"));
    module.def("bound_factors", bound_factors, py::arg("ends"), py::arg("degree"), py::arg("first_remainder_degree"),
               py::arg("arithmetic"));
    module.def("common_grid", grid_of, py::arg("values"),
               "Origin and step of a grid of few values; a step of 0 if none.");
    module.def("term_moments", term_moments, py::arg("power"), py::arg("norms"), py::arg("moduli"));
    module.def("term_limit", py::vectorize(approxsvm_term_limit), py::arg("power"), py::arg("order"), py::arg("reach"),
               "The largest absolute value of a term's derivative of that order.");
    module.def("sum_error", py::vectorize(approxsvm_sum_error), py::arg("power"), py::arg("of_arguments"),
               py::arg("of_terms"), py::arg("moduli"), py::arg("a1"),
               "A bound on the rounding error of a sum of terms.");
    module.def("remainder_factor", py::vectorize(remainder_factor), py::arg("first"), py::arg("theta"), py::arg("s"),
               "exp((1 / theta - 1) s / 2) sqrt(P(first, s / theta)).");
}

}  // namespace approxsvm::python

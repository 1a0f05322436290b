#include <pybind11/numpy.h>

#include <approxsvm/outputs/outputs.hpp>
#include <approxsvm/predict/prepared.hpp>

#include "kernel_block.hpp"
#include "module.hpp"

namespace py = pybind11;

namespace approxsvm::python {
namespace {

// Constants that bounds, costs and exports in Python share with the core, under the core's names.
py::dict constants() {
    py::dict all;
    py::list thetas;
    for (const double theta : contractions) thetas.append(theta);
    all["unit32"] = unit32;
    all["unit64"] = unit64;
    all["contractions"] = thetas;
    all["bare_from_s"] = bare_from_s;
    all["most_remainder_factor"] = most_remainder_factor;
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

double float32_rounding(int k, int degree, std::size_t n_features, double more, double low, double high) {
    return RoundingFactors(n_features, degree, high, more).of(k, MaxPhis(low, high));
}

}  // namespace

void register_constants(py::module_& module) {
    module.def("constants", constants, "Numbers of the core, by name.");
    module.def("are_few", are_few, py::arg("n_values"), py::arg("n_sv"), py::arg("n_features"),
               "Whether an engine stores support vectors by columns.");
    module.def("max_phi", py::vectorize(max_phi), py::arg("k"), py::arg("low"), py::arg("high"),
               "The largest phi_k(s) from low to high.");
    module.def("float32_rounding", py::vectorize(float32_rounding), py::arg("k"), py::arg("degree"),
               py::arg("n_features"), py::arg("more"), py::arg("low"), py::arg("high"),
               "What float32 arithmetic adds to a bound per unit of N_k, for s from low to high.");
    module.def("remainder_factor", py::vectorize(remainder_factor), py::arg("first"), py::arg("theta"), py::arg("s"),
               "exp((1 / theta - 1) s / 2) sqrt(P(first, s / theta)).");
}

}  // namespace approxsvm::python

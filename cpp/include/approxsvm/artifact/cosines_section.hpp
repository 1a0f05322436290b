// Section cosines: the coefficients, phases and frequencies of sum_j coef_j cos(frequency_j.z + phase_j).
#pragma once

#include <cmath>

#include "../model_view.hpp"
#include "../simd/block.hpp"
#include "../status.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

constexpr double max_phase = 8.0;  // above 2 pi; beyond it angles would lose digits before a row has any part in them

inline bool is_cosine(const ModelView& model) {
    return model.kernel == KernelKind::cosine;
}

// The section of n_bytes, of a model whose n_features is known. Its size says how many cosines there are.
inline Status read_cosines(const unsigned char* section, std::size_t n_bytes, ModelView& model) {
    const std::size_t numbers_of_each = model.n_features + 2;  // at most 2^20 + 2
    const std::size_t n = n_bytes / sizeof(double) / numbers_of_each;
    if (section == nullptr || n < 1 || n * numbers_of_each * sizeof(double) != n_bytes) return Status::bad_section;
    const double* const numbers = reinterpret_cast<const double*>(section);
    if (!all_finite(numbers, 1, n * numbers_of_each)) return Status::bad_coefficient;
    model.n_cosines = n;
    model.cosine_coef = numbers;
    model.phases = numbers + n;
    model.frequencies = numbers + 2 * n;
    for (std::size_t j = 0; j < n; ++j) {
        if (!(std::fabs(model.phases[j]) <= max_phase)) return Status::bad_coefficient;
    }
    return Status::ok;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

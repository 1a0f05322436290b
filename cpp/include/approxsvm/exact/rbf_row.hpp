// The sums of rbf_winner.hpp and rbf_subspace.hpp for a single row, with one SIMD lane per support vector: a block of
// one row would leave most lanes empty.
//
// Kernel values of whole panels come first, then the lists pick theirs. Inner products and kernel values go through the
// same roundings as in a block. Coefficients are float32, as in a block, but their products are added up in float64, so
// the bound of a block's sums (listed_errors) covers these.
#pragma once

#include "rbf_winner.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// products[l] = the inner product of u, (n_features,), with the vector in lane l of n_panels panels.
inline void products_row(const float* panels, std::size_t n_features, std::size_t n_panels, const float* u,
                         float* products) {
    KernelSum<float> vectors{};
    vectors.n_features = n_features;
    vectors.panels = panels;
    for_panels(0, n_panels, [&](auto n, std::size_t panel) {
        f32v total[n.value * panel_registers];
        panel_products<n.value>(vectors, panel, u, n_features, [](std::size_t k) { return k; }, total);
        float* const first = products + panel * panel_width<float>;
        APPROXSVM_UNROLL for (int i = 0; i < n.value * panel_registers; ++i) store(first + i * lanes, total[i]);
    });
}

// values[l] = K(u, the support vector in lane l) for the lanes of the panels [first_panel, end_panel).
inline void kernels_row(const KernelSum<float>& kernels, std::size_t first_panel, std::size_t end_panel, const float* u,
                        float half_sq_norm, float* values) {
    for_panels(first_panel, end_panel, [&](auto n, std::size_t panel) {
        f32v total[n.value * panel_registers];
        panel_products<n.value>(kernels, panel, u, kernels.n_features, [](std::size_t k) { return k; }, total);
        panel_kernels<n.value>(kernels, panel, half_sq_norm, total);
        float* const first = values + panel * panel_width<float>;
        APPROXSVM_UNROLL for (int i = 0; i < n.value * panel_registers; ++i) store(first + i * lanes, total[i]);
    });
}
// Kernel values for all panels.
inline void kernels_row(const KernelSum<float>& kernels, const float* u, float half_sq_norm, float* values) {
    kernels_row(kernels, 0, kernels.n_panels, u, half_sq_norm, values);
}

// sums[f] = the sum of the tiles [first, end) of a list, for n_sums functions; value_of(k) is the kernel value of its
// entry k. `room` has space for n_sums * tile_rows numbers.
template <class ValueOf>
inline void listed_sums_row(const ListOfVectors& list, std::size_t n_sums, std::size_t first, std::size_t end,
                            const ValueOf& value_of, double* room, double* sums) {
    constexpr std::size_t width = tile_rows;
    APPROXSVM_COUNT_WORK(static_cast<double>((end - first) * n_sums * width));
    for (std::size_t k = 0; k < n_sums * width; ++k) room[k] = 0.0;
    for (std::size_t t = first; t < end; ++t) {
        double kernel[width];
        for (std::size_t i = 0; i < width; ++i) kernel[i] = static_cast<double>(value_of(t * width + i));
        const float* const coef = list.coef + t * n_sums * width;
        for (std::size_t f = 0; f < n_sums; ++f) {
            for (std::size_t i = 0; i < width; ++i) {
                room[f * width + i] += static_cast<double>(coef[f * width + i]) * kernel[i];
            }
        }
    }
    for (std::size_t f = 0; f < n_sums; ++f) {
        sums[f] = 0.0;
        for (std::size_t i = 0; i < width; ++i) sums[f] += room[f * width + i];
    }
}

// Sums a list, given the kernel values of all lanes.
inline void listed_sums_row(const ListOfVectors& list, std::size_t n_sums, std::size_t first, std::size_t end,
                            const float* values, double* room, double* sums) {
    listed_sums_row(list, n_sums, first, end, [&](std::size_t k) { return values[list.lanes[k]]; }, room, sums);
}

// --- a single pair of classes

// Sums over the support vectors of one class in a pair: of a K, and of a (t + h_i) K, h_i = half_theta ||xh_i||^2. All
// coefficients a have one sign there (rbf_winner.hpp), so the modulus of the second sum is the Q of EngineBound.
struct PartOfPair {
    double sum = 0.0, weighted = 0.0;
};

// Adds n_panels panels of a class, with row `number` of its coefficients; `values` are the kernel values of their
// lanes. Products and sums are float64, and the summation depth is less than the class's number of support vectors.
template <class Real>
inline void add_to_part(const ClassKernelSum<Real>& engine, std::size_t first_panel, std::size_t n_panels,
                        std::size_t number, double t, const Real* values, PartOfPair& part) {
    constexpr std::size_t width = panel_width<Real>, step = static_cast<std::size_t>(lanes_of<Real>);
    constexpr int halves = lanes_of<Real> / lanes64;
    const double* coef = engine.coef + (first_panel * engine.n_numbers + number) * width;
    const Real* half_sq_norms = engine.kernels.half_sq_norms + first_panel * width;
    APPROXSVM_COUNT_WORK(2.0 * static_cast<double>(n_panels * cache_line_bytes) / 4.0);
    const f64v typical = set1(t);
    f64v sum[2] = {zero64(), zero64()}, weighted[2] = {zero64(), zero64()};
    const auto add_lanes = [&](int h, f64v kernel, f64v half_sq_norm, const double* a) {
        const f64v product = mul(load(a), kernel);
        sum[h] = add(sum[h], product);
        weighted[h] = fmadd(product, add(typical, half_sq_norm), weighted[h]);
    };
    for (std::size_t p = 0; p < n_panels; ++p, coef += engine.n_numbers * width) {
        for (std::size_t i = 0; i < width; i += step, values += step, half_sq_norms += step) {
            const auto kernel = load(values), half_sq_norm = load(half_sq_norms);
            add_lanes(0, widened<0>(kernel), widened<0>(half_sq_norm), coef + i);
            if constexpr (halves == 2) {
                add_lanes(1, widened<1>(kernel), widened<1>(half_sq_norm), coef + i + lanes64);
            }
        }
    }
    part.sum += sum_of_lanes(add(sum[0], sum[1]));
    part.weighted += sum_of_lanes(add(weighted[0], weighted[1]));
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

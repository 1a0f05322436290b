// The sums of rbf_winner.hpp and rbf_subspace.hpp at a single row: one SIMD lane per support vector, as a block of one
// row would leave most lanes empty.
//
// Kernel values of whole panels come first, then the lists pick theirs. Inner products and kernel values go through the
// same roundings as in a block. Coefficients are float32 as there, but their products are added up in float64, so that
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

// values[l] = K(u, the support vector in lane l) for the lanes of all panels.
inline void kernels_row(const KernelSum<float>& kernels, const float* u, float half_sq_norm, float* values) {
    for_panels(0, kernels.n_panels, [&](auto n, std::size_t panel) {
        f32v total[n.value * panel_registers];
        panel_products<n.value>(kernels, panel, u, kernels.n_features, [](std::size_t k) { return k; }, total);
        panel_kernels<n.value>(kernels, panel, half_sq_norm, total);
        float* const first = values + panel * panel_width<float>;
        APPROXSVM_UNROLL for (int i = 0; i < n.value * panel_registers; ++i) store(first + i * lanes, total[i]);
    });
}

// sums[f] = what the tiles [first, end) of a list add up to for n_sums functions; value_of(k) is the kernel value of
// its entry k. `room` is for n_sums * tile_rows numbers.
template <class ValueOf>
inline void listed_sums_row(const ListOfVectors& list, std::size_t n_sums, std::size_t first, std::size_t end,
                            const ValueOf& value_of, double* room, double* sums) {
    constexpr std::size_t width = tile_rows;
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

// The same by the kernel values of all lanes.
inline void listed_sums_row(const ListOfVectors& list, std::size_t n_sums, std::size_t first, std::size_t end,
                            const float* values, double* room, double* sums) {
    listed_sums_row(list, n_sums, first, end, [&](std::size_t k) { return values[list.lanes[k]]; }, room, sums);
}

// As winner_sums_block, by the kernel values of all lanes.
inline void winner_sums_row(const WinnerKernelSum& engine, std::size_t w, const float* values, double* room,
                            double* own, double* others) {
    const std::size_t n = engine.n_classes;
    listed_sums_row(engine.own, n - 1, engine.own_of[w], engine.own_of[w + 1], values, room, own);
    for (std::size_t c = 0; c < n; ++c) {
        if (c == w) continue;
        const std::size_t list = w * n + c;
        listed_sums_row(engine.others, 1, engine.others_of[list], engine.others_of[list + 1], values, room, others + c);
    }
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

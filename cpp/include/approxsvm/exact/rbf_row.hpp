// The sums of rbf_winner.hpp and rbf_subspace.hpp for a single row, with one SIMD lane per support vector, because a
// block of one row would leave most lanes empty.
//
// The kernel values of whole panels are computed first; then each list selects those it needs. Inner products and
// kernel values are rounded as in a block. Coefficients are float32, as in a block, but their products are summed in
// float64, so the bound on a block's sums (listed_errors) also covers a single row's sums.
#ifndef APPROXSVM_EXACT_RBF_ROW_HPP
#define APPROXSVM_EXACT_RBF_ROW_HPP

#include "rbf_winner.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Sets products[l] to the inner product of u, of shape (n_features,), with the vector in lane l of n_panels panels.
inline void products_row(const float* panels, std::size_t n_features, std::size_t n_panels, const float* u,
                         float* products) {
    KernelVectors<float> vectors{};
    vectors.n_features = n_features;
    vectors.panels = panels;
    for_panels(0, n_panels, [&](auto n, std::size_t panel) {
        f32v total[n.value * panel_registers];
        panel_products<n.value>(vectors, panel, u, n_features, [](std::size_t k) { return k; }, total);
        float* const first = products + panel * panel_width<float>;
        APPROXSVM_UNROLL for (int i = 0; i < n.value * panel_registers; ++i) store(first + i * lanes, total[i]);
    });
}

// Sets values[l] to K(u, the support vector in lane l) for all lanes of the panels [first_panel, end_panel).
inline void kernels_row(const KernelVectors<float>& kernels, std::size_t first_panel, std::size_t end_panel,
                        const float* u, float half_sq_norm, float* values) {
    for_panels(first_panel, end_panel, [&](auto n, std::size_t panel) {
        f32v total[n.value * panel_registers];
        panel_products<n.value>(kernels, panel, u, kernels.n_features, [](std::size_t k) { return k; }, total);
        panel_kernels<n.value>(kernels, panel, half_sq_norm, total);
        float* const first = values + panel * panel_width<float>;
        APPROXSVM_UNROLL for (int i = 0; i < n.value * panel_registers; ++i) store(first + i * lanes, total[i]);
    });
}
// Computes kernel values for all panels.
inline void kernels_row(const KernelVectors<float>& kernels, const float* u, float half_sq_norm, float* values) {
    kernels_row(kernels, 0, kernels.n_panels, u, half_sq_norm, values);
}

// Sets sums[f] to the sum over the tiles [first, end) of a list, for n_sums functions f; value_of(k) returns the kernel
// value of the list's entry k. The array `room` must hold n_sums * tile_rows doubles.
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

// Computes the sums over a list, given the kernel values of all lanes.
inline void listed_sums_row(const ListOfVectors& list, std::size_t n_sums, std::size_t first, std::size_t end,
                            const float* values, double* room, double* sums) {
    listed_sums_row(list, n_sums, first, end, [&](std::size_t k) { return values[list.lanes[k]]; }, room, sums);
}

// Sets values[k] to K(u, x) for each entry k of the tiles [first, end) of a list, where x is the entry's support vector
// and k counts from tile `first`. The vectors are contiguous in `rows`; u is padded with zeros to
// row_stride(n_features). Whole registers of entries are computed, so some values may belong to the next list.
//
// With n = row_stride / lanes registers, an inner product passes through min(n, 16) roundings in each lane, ceil(n /
// 16) more if n > 16, and log2(lanes) more when lanes are added. Adding a zero is exact. Therefore, the summation depth
// is at most inner_product_depth.
APPROXSVM_NOINLINE inline void kernels_of_list(const KernelVectors<float>& kernels, const float* rows,
                                               const ListOfVectors& list, std::size_t first, std::size_t end,
                                               const float* u, float half_sq_norm, float* values) {
    constexpr std::size_t width = lanes, chunk = 16 * width;
    const std::size_t stride = row_stride(kernels.n_features);
    const f32v theta = set1(kernels.theta), nought = set1(0.0f), minus_half_sq_norm = set1(-half_sq_norm);
    APPROXSVM_COUNT_WORK(static_cast<double>((end - first) * tile_rows) *
                         (static_cast<double>(kernels.n_features) + work_of_exp));
    for (std::size_t k = first * tile_rows; k < end * tile_rows; k += width, values += width) {
        f32v inner[1] = {nought};
        for (std::size_t j = 0; j < stride; j += chunk) {
            const std::size_t after = stride - j < chunk ? stride : j + chunk;
            f32v sum[lanes];
            APPROXSVM_UNROLL for (int i = 0; i < lanes; ++i) {
                const float* const x = rows + list.lanes[k + static_cast<std::size_t>(i)] * stride;
                sum[i] = mul(load(x + j), load(u + j));
            }
            for (std::size_t next = j + width; next < after; next += width) {
                const f32v of_row = load(u + next);
                APPROXSVM_UNROLL for (int i = 0; i < lanes; ++i) {
                    const float* const x = rows + list.lanes[k + static_cast<std::size_t>(i)] * stride;
                    sum[i] = fmadd(load(x + next), of_row, sum[i]);
                }
            }
            inner[0] = add(inner[0], sums_of_registers(sum));
        }
        const f32v minus_half_sq_norms[1] = {sub(minus_half_sq_norm, load(list.half_sq_norms + k))};
        to_kernel_values(theta, inner, minus_half_sq_norms, nought);
        store(values, inner[0]);
    }
}

// --- a single pair of classes

// The sums of a K and of a (t + h_i) K, where h_i = half_theta ||xh_i||^2, over one class's support vectors in a pair.
// All coefficients a in such a sum have the same sign (rbf_winner.hpp), so the absolute value of the second sum is
// EngineBound's Q.
struct PartOfPair {
    double sum = 0.0, weighted = 0.0;
};

// Adds the terms of n_panels panels of a class, with row `number` of the coefficients; `values` are the kernel values
// of the panels' lanes. The summation depth is less than the class's number of support vectors.
inline void add_to_part(const KernelSums<double>& engine, std::size_t first_panel, std::size_t n_panels,
                        std::size_t number, double t, const double* values, PartOfPair& part) {
    constexpr std::size_t width = panel_width<double>;
    const double* coef = engine.coef + (first_panel * engine.n_numbers + number) * width;
    const double* half_sq_norms = engine.vectors.half_sq_norms + first_panel * width;
    APPROXSVM_COUNT_WORK(4.0 * static_cast<double>(n_panels * width));  // float64 counts twice
    const f64v typical = set1(t);
    f64v sum = zero64(), weighted = zero64();
    for (std::size_t p = 0; p < n_panels; ++p, coef += engine.n_numbers * width) {
        for (std::size_t i = 0; i < width; i += lanes64, values += lanes64, half_sq_norms += lanes64) {
            const f64v product = mul(load(coef + i), load(values));
            sum = add(sum, product);
            weighted = fmadd(product, add(typical, load(half_sq_norms)), weighted);
        }
    }
    part.sum += sum_of_lanes(sum);
    part.weighted += sum_of_lanes(weighted);
}

// Number of list entries processed together: a register, or half a register if tiles are that short.
constexpr std::size_t list_step = tile_rows < lanes ? tile_rows : lanes;

// Returns the sums over the tiles [first, end) of a list with one coefficient per entry. values_at(k, room) returns the
// address of the kernel values of list_step entries from k on, in `room` or elsewhere; a whole register must be
// readable there. Without weights, the second sum is 0. Products of two floats are exact in float64.
template <bool HasWeights, class ValuesAt>
inline PartOfPair part_of_list(const ListOfVectors& list, std::size_t first, std::size_t end, double t,
                               const ValuesAt& values_at) {
    constexpr std::size_t width = list_step;
    APPROXSVM_COUNT_WORK((HasWeights ? 2.0 : 1.0) * static_cast<double>((end - first) * tile_rows));
    const f64v typical = set1(t);
    f64v sum[2] = {zero64(), zero64()}, weighted[2] = {zero64(), zero64()};
    const auto add_lanes = [&](int h, f64v kernel, f64v a, f64v half_sq_norm) APPROXSVM_INLINE_LAMBDA {
        const f64v product = mul(a, kernel);
        sum[h] = add(sum[h], product);
        if constexpr (HasWeights) weighted[h] = fmadd(product, add(typical, half_sq_norm), weighted[h]);
    };
    for (std::size_t k = first * tile_rows; k < end * tile_rows; k += width) {
        float room[lanes] = {};
        const f32v kernel = load(values_at(k, room)), a = load(list.coef + k),
                   half_sq_norm = load(list.half_sq_norms + k);
        add_lanes(0, widen_low(kernel), widen_low(a), widen_low(half_sq_norm));
        if constexpr (width == lanes) add_lanes(1, widen_high(kernel), widen_high(a), widen_high(half_sq_norm));
    }
    return {sum_of_lanes(add(sum[0], sum[1])), sum_of_lanes(add(weighted[0], weighted[1]))};
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

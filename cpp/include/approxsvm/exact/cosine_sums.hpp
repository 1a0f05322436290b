// Sums of cosines,
//
//     f(z) = intercept + sum_j c_j cos(omega_j.z + beta_j),
//
// such as a linear model on random Fourier features. An engine adds them up in Real = float or double, for a block of
// rows, one row or sparse rows, by inner products and the panels of rbf.hpp; the sums of c_j cos are float64. Angles
// are in turns: the engine stores w_j = omega_j / (2 pi) and p_j = beta_j / (2 pi), rounded.
//
// What rounding does, u the unit roundoff of Real, N >= ||z|| and W_j = ||w_j||. The angle t_j = w_j.z + p_j is off by
//
//     u W_j N              w_j, rounded to Real (division by 2 pi: 2 roundings of float64)
//     u W_j N              z, rounded to Real
//     path u W_j N         the sum of products, by inner_product_path; moduli add up to W_j N at most (Cauchy)
//     3 u                  p_j: within half a turn after its whole turns are gone
//     u (W_j N + 1)        the last addition
//
// and by underflow: 2^-100 (1 + N) (1 + W_j) in float32, 2^-960 (1 + N) (1 + W_j) in float64. A cosine errs by 2 pi
// times that, and by its own cosine_error_units. With the slope S = sum |c_j| ||omega_j|| and A1 = sum |c_j| the sum
// errs by
//
//     (path + 5) u N S + (8 pi + 8) u A1,    8 pi + 8 < 34,
//
// and adding up the terms by (n + 8) u64 A1. Moving a row by e changes f by at most e S, and by at most 2 A1.
#pragma once

#include <cmath>

#include "../artifact/cosines_section.hpp"
#include "../bounds/certificate.hpp"
#include "../carver.hpp"
#include "../simd/compensated.hpp"
#include "../simd/cosine.hpp"
#include "rbf.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// --- the cosines, prepared

template <class Real>
struct CosineSum {
    KernelSum<Real> kernels;  // panels of w_j, and c_j
    const Real* phases;       // (n_panels * panel_width,): p_j
    double largest_norm;      // max W_j, rounded up
};

struct CosineSums {
    CosineSum<float> in32;
    CosineSum<double> in64;
};

struct CosinePieces {
    unsigned char *in32 = nullptr, *in64 = nullptr;
    float* phases32 = nullptr;
    double *phases64 = nullptr, *vector = nullptr;

    CosinePieces() = default;
    CosinePieces(const ModelView& view, Carver& carver) {
        in32 = carver.take<unsigned char>(kernel_expansion_bytes<float>(view.n_cosines, view.n_features));
        in64 = carver.take<unsigned char>(kernel_expansion_bytes<double>(view.n_cosines, view.n_features));
        phases32 = carver.take<float>(KernelSumMemory<float>::n_lanes(view.n_cosines));
        phases64 = carver.take<double>(KernelSumMemory<double>::n_lanes(view.n_cosines));
        vector = carver.take<double>(view.n_features);
    }
};

template <class Real>
inline CosineSum<Real> lay_out_cosines(const ModelView& view, unsigned char* memory, Real* phases, double* vector) {
    constexpr double one = 1.0;  // half_theta: the engine's half_sq_norm of a row is ||z||^2
    constexpr double inverse_two_pi = 0x1.45f306dc9c883p-3;
    const std::size_t d = view.n_features;
    KernelExpansionWriter<Real> writer(memory, view.n_cosines, d, one);
    double largest = 0.0;
    for (std::size_t j = 0; j < view.n_cosines; ++j) {
        const double* const omega = view.frequencies + j * d;
        for (std::size_t k = 0; k < d; ++k) vector[k] = omega[k] * inverse_two_pi;
        const double norm = norm_above(vector, d) * (1.0 + 0x1p-50);
        if (!(norm <= largest)) largest = norm;
        writer.add_support_vector({vector, nullptr, d}, view.cosine_coef[j], 0.0);
        const double turns = view.phases[j] * inverse_two_pi;  // of max_phase, less than two
        phases[j] = static_cast<Real>(turns - std::nearbyint(turns));
    }
    for (std::size_t j = view.n_cosines; j < KernelSumMemory<Real>::n_lanes(view.n_cosines); ++j) phases[j] = Real{0};
    return {writer.expansion(), phases, largest};
}

inline CosineSums lay_out_cosines(const ModelView& view, const CosinePieces& pieces) {
    return {lay_out_cosines<float>(view, pieces.in32, pieces.phases32, pieces.vector),
            lay_out_cosines<double>(view, pieces.in64, pieces.phases64, pieces.vector)};
}

// --- bounds

// The largest change of f if the exact row is row_error away.
inline double cosines_moved(const DecisionNumbers& decision, double row_error) {
    if (row_error == 0.0) return 0.0;  // and not where it is NaN
    const double moved = row_error * decision.total, most = 2.0 * decision.sum_moduli;
    return 1.0001 * (moved < most ? moved : most);
}

// Of an engine's sum at a row with ||z||^2 = sq_norm, as the engine has it, and n_terms coordinates that are not zero.
// Infinite where angles are beyond what the range reduction can do.
template <class Real>
inline double cosine_bound(const ModelView& model, const CosineSum<Real>& sum, Real sq_norm, std::size_t n_terms) {
    constexpr bool narrow = sizeof(Real) == sizeof(float);
    constexpr double u = narrow ? unit32 : unit64, most_turns = narrow ? max_turns32 : max_turns64;
    // Squares of numbers that are too small for them are left out of a norm: up to 2^20 of 2^-149, or of 2^-1074.
    constexpr double tiny_norm = narrow ? 0x1p-64 : 0x1p-500, underflow = narrow ? 0x1p-100 : 0x1p-960;
    const DecisionNumbers& decision = model.decisions[0];
    const double path = static_cast<double>(inner_product_path(n_terms)), a1 = decision.sum_moduli;
    const double norm = std::sqrt(static_cast<double>(sq_norm)) * (1.0 + (path + 8.0) * u) + tiny_norm;
    if (!(1.0001 * sum.largest_norm * norm + 2.0 <= most_turns)) return infinity;
    const double underflown = underflow * (1.0 + norm) * (1.0 + sum.largest_norm);
    const double in_sum = (static_cast<double>(model.n_cosines) + 8.0) * unit64;
    return 1.001 * u * ((path + 5.0) * norm * decision.total + 34.0 * a1) + 1.01 * (in_sum + underflown) * a1 +
           0x1p-51 * std::fabs(decision.intercept) + 0x1p-1040;
}

// --- a block of rows, one SIMD lane per row

// sum_j c_j cos(2 pi t_j) for each row of a block, (n_features, Registers * lanes_of<Real>).
template <int Registers, class Real>
inline void cosine_sums_block(const CosineSum<Real>& cosines, const Real* block, double* sum) {
    using Register = typename RegisterOf<Real>::type;
    constexpr int width = lanes_of<Real>, halves = width / lanes64;
    constexpr std::size_t tiles = panel_width<Real> / tile_rows;
    const KernelSum<Real>& kernels = cosines.kernels;
    for (int r = 0; r < Registers * width; ++r) sum[r] = 0.0;
    for (std::size_t panel = 0; panel < kernels.n_panels; panel += block_panels) {
        const std::size_t left = kernels.n_panels - panel,
                          n_tiles = (left < block_panels ? left : block_panels) * tiles;
        Register turns[block_panels * tiles][tile_rows][Registers];
        inner_products<Registers>(kernels, panel, n_tiles, block, turns);
        for (std::size_t t = 0; t < n_tiles; ++t) {
            const std::size_t first = panel * panel_width<Real> + t * tile_rows;
            for (int v = 0; v < Registers; ++v) {
                Register cosine[tile_rows];
                APPROXSVM_UNROLL for (int i = 0; i < tile_rows; ++i) {
                    cosine[i] = add(turns[t][i][v], set1(cosines.phases[first + static_cast<std::size_t>(i)]));
                }
                cosine_of_turns(cosine);
                f64v s[halves];
                APPROXSVM_UNROLL for (int h = 0; h < halves; ++h) s[h] = load(sum + v * width + h * lanes64);
                APPROXSVM_UNROLL for (int i = 0; i < tile_rows; ++i) {
                    const f64v k[2] = {widened<0>(cosine[i]), widened<1>(cosine[i])};
                    const f64v c = set1(kernels.coef[first + static_cast<std::size_t>(i)]);
                    APPROXSVM_UNROLL for (int h = 0; h < halves; ++h) s[h] = fmadd(c, k[h], s[h]);
                }
                APPROXSVM_UNROLL for (int h = 0; h < halves; ++h) store(sum + v * width + h * lanes64, s[h]);
            }
        }
    }
}

// --- rows, dense or sparse: one SIMD lane per cosine

// The part of Panels panels in the sums of a row, by lanes, from their inner products, which are used up.
template <int Panels, class Real>
APPROXSVM_INLINE f64v panel_cosines(const CosineSum<Real>& cosines, std::size_t first_panel,
                                    typename RegisterOf<Real>::type (&turns)[Panels * panel_registers]) {
    constexpr int halves = lanes_of<Real> / lanes64, n_registers = Panels * panel_registers;
    const std::size_t first = first_panel * panel_width<Real>;
    const Real* const phases = cosines.phases + first;
    const double* coef = cosines.kernels.coef + first;
    APPROXSVM_UNROLL for (int i = 0; i < n_registers; ++i) {
        turns[i] = add(turns[i], load(phases + i * lanes_of<Real>));
    }
    cosine_of_turns(turns);
    f64v s[2] = {zero64(), zero64()};
    APPROXSVM_UNROLL for (int i = 0; i < n_registers; ++i) {
        const f64v k[2] = {widened<0>(turns[i]), widened<1>(turns[i])};
        APPROXSVM_UNROLL for (int h = 0; h < halves; ++h, coef += lanes64) s[h] = fmadd(load(coef), k[h], s[h]);
    }
    return add(s[0], s[1]);
}

// The sums of n_rows rows, n_rows <= sparse_block_rows: row r has the entries values[k], start_of(r) <= k <
// start_of(r + 1), at the features feature_of(k). All rows pass over a group of panels while it is in the cache.
template <class Real, class StartOf, class FeatureOf>
inline void cosine_sums_rows(const CosineSum<Real>& cosines, const Real* values, StartOf start_of, FeatureOf feature_of,
                             std::size_t n_rows, double* sums) {
    alignas(cache_line_bytes) double partial[sparse_block_rows][lanes64];
    for (std::size_t r = 0; r < n_rows; ++r) store(partial[r], zero64());
    for_panels(0, cosines.kernels.n_panels, [&](auto n, std::size_t panel) {
        for (std::size_t r = 0; r < n_rows; ++r) {
            const std::size_t start = start_of(r), n_terms = start_of(r + 1) - start;
            typename RegisterOf<Real>::type turns[n.value * panel_registers];
            panel_products<n.value>(
                cosines.kernels, panel, values + start, n_terms, [=](std::size_t k) { return feature_of(start + k); },
                turns);
            store(partial[r], add(load(partial[r]), panel_cosines<n.value>(cosines, panel, turns)));
        }
    });
    for (std::size_t r = 0; r < n_rows; ++r) sums[r] = sum_of_lanes(load(partial[r]));
}

// What engine_stage.hpp asks of an engine.
template <class Real>
struct CosineEngine {
    static constexpr bool by_row = false, counts_unseen = false;

    const CosineSum<Real>& cosines;
    const KernelSum<Real>& kernels = cosines.kernels;
    static std::size_t n_sums() { return 1; }

    template <int Registers>
    void block(const Real* u, const Real*, double* sums) const {
        cosine_sums_block<Registers>(cosines, u, sums);
    }
    void row(const Real* u, Real, double* sums) const {
        const std::size_t d = kernels.n_features;
        cosine_sums_rows(cosines, u, [=](std::size_t r) { return r * d; }, [](std::size_t k) { return k; }, 1, sums);
    }
    void sparse(const Real* values, const std::int32_t* columns, const std::size_t* starts, std::size_t n, const Real*,
                double* sums) const {
        cosine_sums_rows(
            cosines, values, [=](std::size_t r) { return starts[r]; },
            [=](std::size_t k) { return static_cast<std::size_t>(columns[k]); }, n, sums);
    }
};

// --- the definition

struct CosineValue {
    double value, bound;  // of rounding alone
};

// f at the row z, (n_features,), with angles as if in twice the precision (Ogita, Rump and Oishi 2005, Dot2): high +
// low is off by 2 (d + 4)^2 u^2 ||omega_j|| N, and cos(high + low) is computed from the cosines and sines of both
// parts. These come from the C library, which is trusted to be within 4 units; with the products and their sum, 20. The
// terms are also added as if in twice the precision. The bound is infinite if an angle overflows float64.
inline CosineValue cosines_by_definition(const ModelView& model, const CosineSums& sums, const double* z) {
    const std::size_t d = model.n_features;
    const DecisionNumbers& decision = model.decisions[0];
    double total = decision.intercept, all_lost = 0.0;
    const auto add_exactly = [](double& sum, double term, double& lost) {
        double rest;
        sum = two_sum(sum, term, rest);
        lost += rest;
    };
    for (std::size_t j = 0; j < model.n_cosines; ++j) {
        const double* const omega = model.frequencies + j * d;
        double high = model.phases[j], low = 0.0;
        for (std::size_t k = 0; k < d; ++k) {
            const double product = rounded_product(omega[k], z[k]);
            low += std::fma(omega[k], z[k], -product);
            add_exactly(high, product, low);
        }
        const double cosine = std::cos(high) * std::cos(low) - std::sin(high) * std::sin(low);
        add_exactly(total, model.cosine_coef[j] * cosine, all_lost);
    }
    const double n = static_cast<double>(model.n_cosines), path = static_cast<double>(d) + 4.0;
    const double norm = norm_above(z, d), a1 = decision.sum_moduli, value = total + all_lost;
    // In turns. Products of numbers beyond that may overflow.
    if (!(sums.in64.largest_norm * norm <= 0x1p900)) return {value, infinity};
    const double angles = 2.02 * path * path * unit64 * unit64 * norm * decision.total;
    const double added = 2.0 * (n + 4.0) * (n + 4.0) * unit64 * unit64 * (a1 + std::fabs(decision.intercept));
    const double most = 2.0 * a1;
    return {value, 1.001 * ((angles < most ? angles : most) + 20.0 * unit64 * a1 + unit64 * std::fabs(value) + added) +
                       0x1p-960 * a1 + 0x1p-1040};
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

// Sums of cosines,
//
//     f(z) = intercept + sum_j c_j cos(omega_j.z + beta_j),
//
// as a linear model on random Fourier features computes them. Several such functions share their cosines. An engine
// adds them up in Real = float or double, for a block of rows, a single row or sparse rows. It computes inner products
// first, with the panels of rbf.hpp; the sums of c_j cos are float64. Angles are in turns: the engine stores w_j =
// omega_j / (2 pi) and p_j = beta_j / (2 pi), rounded.
//
// Rounding errors, with u the unit roundoff of Real, N >= ||z|| and W_j = ||w_j||. The error of the angle t_j = w_j.z +
// p_j is at most
//
//     u W_j N              w_j, rounded to Real (division by 2 pi: 2 roundings of float64)
//     u W_j N              z, rounded to Real
//     depth u W_j N         the sum of products, by inner_product_depth; moduli add up to W_j N at most (Cauchy)
//     3 u                  p_j: within half a turn after its whole turns are gone
//     u (W_j N + 1)        the last addition
//
// plus underflow: 2^-100 (1 + N) (1 + W_j) in float32, 2^-960 (1 + N) (1 + W_j) in float64. The error of a cosine is 2
// pi times that, plus cosine_error_units. With the slope S = sum |c_j| ||omega_j|| and A1 = sum |c_j|, the error of the
// sum is at most
//
//     (depth + 5) u N S + (8 pi + 8) u A1,    8 pi + 8 < 34,
//
// plus (n + 8) u64 A1 for adding up the terms. Moving a row by e changes f by at most e S, and by at most 2 A1.
#ifndef APPROXSVM_EXACT_COSINE_SUMS_HPP
#define APPROXSVM_EXACT_COSINE_SUMS_HPP

#include <cmath>
#include <new>

#include "../arena.hpp"
#include "../artifact/cosines_section.hpp"
#include "../artifact/ops/op.hpp"
#include "../bounds/certificate.hpp"
#include "../simd/compensated.hpp"
#include "../simd/cosine.hpp"
#include "rbf_classes.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

#include "../program/terms.h"

// --- preparing the cosines

template <class Real>
struct CosineSum {
    KernelSum<Real> kernels;  // panels of w_j, and c_j
    const Real* phases;       // (n_panels * panel_width,): p_j
    std::size_t n_functions;
    const double* coef;   // (n_panels, n_functions, panel_width)
    double largest_norm;  // max W_j, rounded up
};

struct CosineSums {
    CosinesView view;
    CosineSum<float> in32;
    CosineSum<double> in64;
};

struct CosinePieces {
    CosineSums* prepared;
    unsigned char *in32, *in64;
    float* phases32;
    double *phases64, *coef32, *coef64, *vector;

    APPROXSVM_COLD CosinePieces(const ModelView& view, Arena& arena) {
        prepared = arena.take<CosineSums>(1);
        in32 = arena.take<unsigned char>(kernel_expansion_bytes<float>(view.n_terms, view.n_features));
        in64 = arena.take<unsigned char>(kernel_expansion_bytes<double>(view.n_terms, view.n_features));
        phases32 = arena.take<float>(KernelSumMemory<float>::n_lanes(view.n_terms));
        phases64 = arena.take<double>(KernelSumMemory<double>::n_lanes(view.n_terms));
        const std::size_t n_functions = view.n_decisions > 1 ? view.n_decisions : 0;
        coef32 = arena.take<double>(KernelSumMemory<float>::n_lanes(view.n_terms), n_functions);
        coef64 = arena.take<double>(KernelSumMemory<double>::n_lanes(view.n_terms), n_functions);
        vector = arena.take<double>(view.n_features);
    }
};

// Lays out the coefficients of several functions, panel by panel, with zeros in the unused lanes.
template <class Real>
APPROXSVM_COLD inline void lay_out_coefficients(const CosinesView& view, std::size_t n_functions, double* coef) {
    constexpr std::size_t width = panel_width<Real>;
    for (std::size_t j = 0; j < KernelSumMemory<Real>::n_lanes(view.n); ++j) {
        for (std::size_t k = 0; k < n_functions; ++k)
            coef[(j / width * n_functions + k) * width + j % width] = j < view.n ? view.coef[k * view.n + j] : 0.0;
    }
}

template <class Real>
APPROXSVM_COLD inline CosineSum<Real> lay_out_cosines(const ModelView& model, const CosinesView& view,
                                                      unsigned char* memory, Real* phases, double* coef,
                                                      double* vector) {
    constexpr double one = 1.0;  // half_theta: the engine's half_sq_norm of a row is ||z||^2
    constexpr double inverse_two_pi = 0x1.45f306dc9c883p-3;
    const std::size_t d = model.n_features;
    KernelExpansionWriter<Real> writer(memory, view.n, d, one);
    double largest = 0.0;
    for (std::size_t j = 0; j < view.n; ++j) {
        const double* const omega = view.frequencies + j * d;
        for (std::size_t k = 0; k < d; ++k) vector[k] = omega[k] * inverse_two_pi;
        const double norm = norm_above(vector, d) * (1.0 + 0x1p-50);
        if (!(norm <= largest)) largest = norm;
        writer.add_support_vector({vector, nullptr, d}, view.coef[j], 0.0);
        const double turns = view.phases[j] * inverse_two_pi;  // bounded by max_phase: less than two
        phases[j] = static_cast<Real>(turns - std::nearbyint(turns));
    }
    for (std::size_t j = view.n; j < KernelSumMemory<Real>::n_lanes(view.n); ++j) phases[j] = Real{0};
    const KernelSum<Real> kernels = writer.expansion();
    if (model.n_decisions > 1) lay_out_coefficients<Real>(view, model.n_decisions, coef);
    return {kernels, phases, model.n_decisions, model.n_decisions > 1 ? coef : kernels.coef, largest};
}

APPROXSVM_COLD inline void lay_out(const ModelView& model, const CosinePieces& pieces) {
    const CosinesView view = cosines_of(model);
    const auto [prepared, in32, in64, phases32, phases64, coef32, coef64, vector] = pieces;
    new (prepared) CosineSums{view, lay_out_cosines(model, view, in32, phases32, coef32, vector),
                              lay_out_cosines(model, view, in64, phases64, coef64, vector)};
}

// --- bounds

// Bounds the change of f if the exact row is at most row_error away.
inline double cosines_moved(const DecisionNumbers& decision, double row_error) {
    if (row_error == 0.0) return 0.0;  // NaN goes on
    const double moved = row_error * decision.total, most = 2.0 * decision.sum_moduli;
    return 1.0001 * (moved < most ? moved : most);
}

// Bounds the rounding error of an engine's sums at a row with ||z||^2 = sq_norm, as the engine computed it, and n_terms
// non-zero coordinates. Infinite if the range reduction cannot handle the angles.
template <class Real>
class CosineRounding {
  public:
    APPROXSVM_NOINLINE CosineRounding(const ModelView& model, const CosineSum<Real>& sum, Real sq_norm,
                                      std::size_t n_terms) {
        // A norm misses numbers whose squares underflow: up to 2^20 of 2^-149, or of 2^-1074.
        constexpr double tiny_norm = narrow ? 0x1p-64 : 0x1p-500, underflow = narrow ? 0x1p-100 : 0x1p-960;
        const double depth = static_cast<double>(inner_product_depth(n_terms));
        const double norm = std::sqrt(static_cast<double>(sq_norm)) * (1.0 + (depth + 8.0) * u) + tiny_norm;
        is_known_ = 1.0001 * sum.largest_norm * norm + 2.0 <= (narrow ? max_turns32 : max_turns64);
        of_slope_ = (depth + 5.0) * norm;
        const double underflown = underflow * (1.0 + norm) * (1.0 + sum.largest_norm);
        of_moduli_ = 1.01 * ((static_cast<double>(model.n_terms) + 8.0) * unit64 + underflown);
    }
    double of(const DecisionNumbers& decision) const {
        const double a1 = decision.sum_moduli;
        if (!is_known_) return infinity;
        return approxsvm_sum_error(0, 1.001 * u, 1.001 * u * 34.0 + of_moduli_, of_slope_ * decision.total, a1) +
               0x1p-51 * std::fabs(decision.intercept) + 0x1p-1040;
    }

  private:
    static constexpr bool narrow = sizeof(Real) == sizeof(float);
    static constexpr double u = narrow ? unit32 : unit64;
    double of_slope_, of_moduli_;
    bool is_known_;
};

// --- rows, dense or sparse: one SIMD lane per cosine

// Adds Panels panels to the sums of a row, by lanes, and overwrites their inner products.
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

// Entries of rows: row r has values[k], starts[r] <= k < starts[r + 1], at the features columns[k], or at all features
// in order if columns is null.
template <class Real>
struct RowsOfTerms {
    const Real* values;
    const std::size_t* starts;
    const std::int32_t* columns;

    RowTerms<Real> operator[](std::size_t r) const {
        const std::size_t start = starts[r];
        return {values + start, starts[r + 1] - start, columns ? columns + start : nullptr};
    }
};

// Computes the sums of n_rows rows, n_rows <= sparse_block_rows. All rows pass over a group of panels while the cache
// holds it.
template <class Real>
APPROXSVM_NOINLINE inline void cosine_sums_rows(const CosineSum<Real>& cosines, const RowsOfTerms<Real>& rows,
                                                std::size_t n_rows, double* sums) {
    alignas(cache_line_bytes) double partial[sparse_block_rows][lanes64];
    for (std::size_t r = 0; r < n_rows; ++r) store(partial[r], zero64());
    for_panels(0, cosines.kernels.n_panels, [&](auto n, std::size_t panel) APPROXSVM_INLINE_LAMBDA {
        for (std::size_t r = 0; r < n_rows; ++r) {
            typename RegisterOf<Real>::type turns[n.value * panel_registers];
            row_products<n.value>(cosines.kernels, panel, rows[r], turns);
            store(partial[r], add(load(partial[r]), panel_cosines<n.value>(cosines, panel, turns)));
        }
    });
    for (std::size_t r = 0; r < n_rows; ++r) sums[r] = sum_of_lanes(load(partial[r]));
}

// --- several functions: every cosine is computed once

// Computes the cosines of a row for n_panels panels, in float64.
template <class Real>
APPROXSVM_NOINLINE inline void keep_cosines(const CosineSum<Real>& cosines, std::size_t first_panel,
                                            std::size_t n_panels, const RowTerms<Real>& row, double* kept) {
    for_panels(first_panel, first_panel + n_panels, [&](auto n, std::size_t panel) APPROXSVM_INLINE_LAMBDA {
        constexpr int n_registers = n.value * panel_registers;
        typename RegisterOf<Real>::type turns[n_registers];
        row_products<n.value>(cosines.kernels, panel, row, turns);
        const Real* const phases = cosines.phases + panel * panel_width<Real>;
        APPROXSVM_UNROLL for (int i = 0; i < n_registers; ++i) {
            turns[i] = add(turns[i], load(phases + i * lanes_of<Real>));
        }
        cosine_of_turns(turns);
        store_widened<Real>(turns, kept + (panel - first_panel) * panel_width<Real>);
    });
}

// Computes the sums of n_rows rows, (n_rows, n_functions).
template <class Real>
APPROXSVM_NOINLINE inline void several_cosine_sums_rows(const CosineSum<Real>& cosines, const RowsOfTerms<Real>& rows,
                                                        std::size_t n_rows, double* sums) {
    const std::size_t n = cosines.n_functions, chunk = chunk_panels(cosines.kernels.n_features);
    for (std::size_t i = 0; i < n_rows * n; ++i) sums[i] = 0.0;
    alignas(cache_line_bytes) double kept[chunk_lanes<Real>];
    for (std::size_t panel = 0; panel < cosines.kernels.n_panels; panel += chunk) {
        const std::size_t left = cosines.kernels.n_panels - panel, n_panels = left < chunk ? left : chunk;
        const double* const coef = cosines.coef + panel * n * panel_width<Real>;
        for (std::size_t r = 0; r < n_rows; ++r) {
            keep_cosines(cosines, panel, n_panels, rows[r], kept);
            add_sums_of_panels<1, Real>(kept, n_panels, coef, n, nullptr, sums + r * n, n);
        }
    }
}

// --- a block of rows, one SIMD lane per row

// Computes sums[k * n_lanes + lane] = sum_j c_kj cos(2 pi t_j) for each row of a block, n_lanes = Registers *
// lanes_of<Real>.
template <int Registers, class Real>
inline void cosine_sums_block(const CosineSum<Real>& cosines, const Real* block, double* sums) {
    using Register = typename RegisterOf<Real>::type;
    constexpr int halves = lanes_of<Real> / lanes64;
    constexpr std::size_t width = panel_width<Real>, tiles = width / tile_rows,
                          n_lanes = static_cast<std::size_t>(Registers * lanes_of<Real>);
    const KernelSum<Real>& kernels = cosines.kernels;
    const std::size_t n = cosines.n_functions;
    for (std::size_t i = 0; i < n * n_lanes; ++i) sums[i] = 0.0;
    for (std::size_t panel = 0; panel < kernels.n_panels; panel += block_panels) {
        const std::size_t left = kernels.n_panels - panel,
                          n_tiles = (left < block_panels ? left : block_panels) * tiles;
        Register turns[block_panels * tiles][tile_rows][Registers];
        inner_products<Registers>(kernels, panel, n_tiles, block, turns);
        for (std::size_t t = 0; t < n_tiles; ++t) {
            const std::size_t here = panel + t / tiles, lane = t % tiles * tile_rows;
            const double* const coef = cosines.coef + here * n * width + lane;
            for (int v = 0; v < Registers; ++v) {
                Register cosine[tile_rows];
                APPROXSVM_UNROLL for (int i = 0; i < tile_rows; ++i) {
                    cosine[i] =
                        add(turns[t][i][v], set1(cosines.phases[here * width + lane + static_cast<std::size_t>(i)]));
                }
                cosine_of_turns(cosine);
                f64v wide[tile_rows][halves];
                APPROXSVM_UNROLL for (int i = 0; i < tile_rows; ++i) {
                    wide[i][0] = widened<0>(cosine[i]);
                    if constexpr (halves == 2) wide[i][1] = widened<1>(cosine[i]);
                }
                double* const of_lanes = sums + v * lanes_of<Real>;
                for_sums<sums_together<Real>>(0, n, [&](auto some, std::size_t first) {
                    add_tile_sums<some.value>(wide, coef + first * width, width, of_lanes + first * n_lanes, n_lanes);
                });
            }
        }
    }
}

// The engine interface of engine_stage.hpp. With one function, the rows' sums pass over the panels together.
template <class Real, bool is_single>
struct CosineEngine {
    static constexpr bool by_row = !is_single, counts_unseen = false;

    const CosineSum<Real>& cosines;
    const KernelSum<Real>& kernels = cosines.kernels;
    std::size_t n_sums() const { return cosines.n_functions; }

    template <int Registers>
    void block(const Real* u, const Real*, double* sums) const {
        cosine_sums_block<Registers>(cosines, u, sums);
    }
    void row(const Real* u, Real, double* sums) const {
        const std::size_t starts[2] = {0, kernels.n_features};
        of_rows({u, starts, nullptr}, 1, sums);
    }
    void sparse(const Real* values, const std::int32_t* columns, const std::size_t* starts, std::size_t n, const Real*,
                double* sums) const {
        of_rows({values, starts, columns}, n, sums);
    }

  private:
    void of_rows(const RowsOfTerms<Real>& rows, std::size_t n, double* sums) const {
        if constexpr (is_single) {
            cosine_sums_rows(cosines, rows, n, sums);
        } else {
            several_cosine_sums_rows(cosines, rows, n, sums);
        }
    }
};

// --- the definition

// Evaluates all functions at the row z, (n_features,), with angles as if in twice the precision (Ogita, Rump and Oishi
// 2005, Dot2). The error of high + low is at most 2 (d + 4)^2 u^2 ||omega_j|| N, and cos(high + low) comes from the
// cosines and sines of both parts. The C library's functions are trusted to be within 4 units; with the products and
// their sum that makes 20. The sum is also computed as if in twice the precision. The bounds cover rounding only, and
// are infinite if an angle is beyond float64. `values`, `bounds` and `lost` are (n_decisions,) each.
inline void cosines_by_definition(const ModelView& model, const CosineSums& sums, const double* z, double* values,
                                  double* bounds, double* lost) {
    const std::size_t d = model.n_features, n_functions = model.n_decisions;
    const CosinesView& cosines = sums.view;
    const auto add_exactly = [](double& sum, double term, double& all_lost) {
        double rest;
        sum = two_sum(sum, term, rest);
        all_lost += rest;
    };
    for (std::size_t k = 0; k < n_functions; ++k) {
        values[k] = model.decisions[k].intercept;
        lost[k] = 0.0;
    }
    for (std::size_t j = 0; j < cosines.n; ++j) {
        const double* const omega = cosines.frequencies + j * d;
        double high = cosines.phases[j], low = 0.0;
        for (std::size_t k = 0; k < d; ++k) {
            const double product = rounded_product(omega[k], z[k]);
            low += std::fma(omega[k], z[k], -product);
            add_exactly(high, product, low);
        }
        const double cosine = std::cos(high) * std::cos(low) - std::sin(high) * std::sin(low);
        for (std::size_t k = 0; k < n_functions; ++k)
            add_exactly(values[k], cosines.coef[k * cosines.n + j] * cosine, lost[k]);
    }
    const double n = static_cast<double>(cosines.n), depth = static_cast<double>(d) + 4.0, norm = norm_above(z, d);
    for (std::size_t k = 0; k < n_functions; ++k) {
        const DecisionNumbers& decision = model.decisions[k];
        const double a1 = decision.sum_moduli, value = values[k] += lost[k];
        const double angles = 2.02 * depth * depth * unit64 * unit64 * norm * decision.total;
        const double added = 2.0 * (n + 4.0) * (n + 4.0) * unit64 * unit64 * (a1 + std::fabs(decision.intercept));
        const double most = 2.0 * a1;
        bounds[k] = 1.001 * ((angles < most ? angles : most) + 20.0 * unit64 * a1 + unit64 * std::fabs(value) + added) +
                    0x1p-960 * a1 + 0x1p-1040;
        // The limit is in turns. Products with larger numbers may overflow.
        if (!(sums.in64.largest_norm * norm <= 0x1p900)) bounds[k] = infinity;
    }
}

// The interface of predict/terms_function.hpp for a kind whose terms are not kernels at support vectors.
struct CosineTerms {
    using Pieces = CosinePieces;
    using Sums = CosineSums;
    template <class Real, bool is_single>
    using Engine = CosineEngine<Real, is_single>;
    template <class Real>
    using Rounding = CosineRounding<Real>;

    static double moved(const DecisionNumbers& decision, double row_error) {
        return cosines_moved(decision, row_error);
    }
    static void define(const ModelView& model, const CosineSums& sums, const double* z, double* values, double* bounds,
                       double* lost) {
        cosines_by_definition(model, sums, z, values, bounds, lost);
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

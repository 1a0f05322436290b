// Sums of cosines,
//
//     f(z) = intercept + sum_j c_j cos(omega_j.z + beta_j),
//
// as computed by a linear model on random Fourier features. Several functions share their cosines. An engine computes
// the sums in Real = float or double, for a block of rows, a single row or sparse rows. It first computes inner
// products, with the panels of vectors.hpp; the cosines times c_j are summed in float64. Angles are in turns: the
// engine stores w_j = omega_j / (2 pi) and p_j = beta_j / (2 pi), rounded.
//
// Rounding errors, where u is the unit roundoff of Real, N >= ||z|| and W_j = ||w_j||. The error of the angle t_j =
// w_j.z + p_j is at most
//
//     u W_j N              w_j, rounded to Real (division by 2 pi: 2 roundings of float64)
//     u W_j N              z, rounded to Real
//     depth u W_j N         the sum of products, by inner_product_depth; the sum of absolute values is at most W_j N
//                           (Cauchy)
//     3 u                  p_j: at most half a turn after subtracting whole turns
//     u (W_j N + 1)        the last addition
//
// plus the effect of underflow: 2^-100 (1 + N) (1 + W_j) in float32, 2^-960 (1 + N) (1 + W_j) in float64. The error of
// a cosine is 2 pi times the error of its angle, plus cosine_error_units. With slope S = sum |c_j| ||omega_j|| and A1 =
// sum |c_j|, the error of the sum is at most
//
//     (depth + 5) u N S + (8 pi + 8) u A1,    8 pi + 8 < 34,
//
// plus (n + 8) u64 A1 for summing the terms. Moving a row by e changes f by at most e S, and by at most 2 A1.
#ifndef APPROXSVM_EXACT_COSINE_SUMS_HPP
#define APPROXSVM_EXACT_COSINE_SUMS_HPP

#include <cmath>
#include <new>

#include "../arena.hpp"
#include "../artifact/ops/op.hpp"
#include "../bounds/certificate.hpp"
#include "../model_view.hpp"
#include "../simd/compensated.hpp"
#include "../simd/cosine.hpp"
#include "kernel_sums.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

#include "../program/terms.h"

// --- preparing the cosines

template <class Real>
struct CosineSum {
    KernelSums<Real> sums;  // sums of w_j and c_j; the last function's coefficients replace the weights
    const Real* phases;     // p_j, (n_panels * panel_width,)
    double largest_norm;    // max W_j, rounded up
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
    double *phases64, *vector;

    APPROXSVM_COLD CosinePieces(const ModelView& view, Arena& arena) {
        prepared = arena.take<CosineSums>(1);
        const ClassSizes sizes{nullptr, view.n_terms, 1, view.n_decisions};
        in32 = arena.take<unsigned char>(kernel_sums_bytes<float>(sizes, view.n_features));
        in64 = arena.take<unsigned char>(kernel_sums_bytes<double>(sizes, view.n_features));
        phases32 = arena.take<float>(lanes_for<float>(view.n_terms));
        phases64 = arena.take<double>(lanes_for<double>(view.n_terms));
        vector = arena.take<double>(view.n_features);
    }
};

template <class Real>
APPROXSVM_COLD inline CosineSum<Real> lay_out_cosines(const ModelView& model, const CosinesView& view,
                                                      unsigned char* memory, Real* phases, double* vector) {
    constexpr double one = 1.0;  // half_theta; the engine's half_sq_norm is then ||z||^2
    constexpr double inverse_two_pi = 0x1.45f306dc9c883p-3;
    const std::size_t d = model.n_features;
    KernelSumsWriter<Real> writer(memory, {nullptr, view.n_terms, 1, model.n_decisions}, d, one);
    const std::ptrdiff_t stride = static_cast<std::ptrdiff_t>(view.n_terms);
    const double* const last = view.coef + (model.n_decisions - 1) * view.n_terms;
    double largest = 0.0;
    for (std::size_t j = 0; j < view.n_terms; ++j) {
        const double* const omega = view.frequencies + j * d;
        for (std::size_t k = 0; k < d; ++k) vector[k] = omega[k] * inverse_two_pi;
        const double norm = norm_above(vector, d) * (1.0 + 0x1p-50);
        if (!(norm <= largest)) largest = norm;
        writer.add_support_vector({vector, nullptr, d}, view.coef + j, stride, last[j]);
        const double turns = view.phases[j] * inverse_two_pi;  // below two, because of max_phase
        phases[j] = static_cast<Real>(turns - std::nearbyint(turns));
    }
    for (std::size_t j = view.n_terms; j < lanes_for<Real>(view.n_terms); ++j) phases[j] = Real{0};
    return {writer.expansion(), phases, largest};
}

APPROXSVM_COLD inline void lay_out(const ModelView& model, const CosinePieces& pieces) {
    const CosinesView& view = model.cosines;
    const auto [prepared, in32, in64, phases32, phases64, vector] = pieces;
    new (prepared) CosineSums{view, lay_out_cosines(model, view, in32, phases32, vector),
                              lay_out_cosines(model, view, in64, phases64, vector)};
}

// --- bounds

// Bounds the change of f if the row is at most row_error away from the exact row.
inline double cosines_moved(const DecisionNumbers& decision, double row_error) {
    if (row_error == 0.0) return 0.0;  // NaN must propagate
    const double moved = row_error * decision.total, most = 2.0 * decision.sum_moduli;
    return 1.0001 * (moved < most ? moved : most);
}

// Bounds the rounding error of an engine's sums for a row with ||z||^2 = sq_norm, as computed by the engine, and
// n_terms nonzero coordinates. The bound is infinite if the range reduction cannot handle the angles.
template <class Real>
class CosineRounding {
  public:
    APPROXSVM_NOINLINE CosineRounding(const ModelView& model, const CosineSum<Real>& sum, Real sq_norm,
                                      std::size_t n_terms) {
        // A norm may lack the contributions of squares that underflow: up to 2^20 squares, each below 2^-149 or
        // 2^-1074.
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

// The term for kernel_sums.hpp.
template <class R>
struct CosineTerm {
    using Real = R;
    using Register = typename RegisterOf<Real>::type;
    static constexpr bool counts_unseen = false;

    const Real* phases;

    template <int Registers>
    APPROXSVM_INLINE void tile(std::size_t first, const Register (&inner)[tile_rows][Registers], int v, const Real*,
                               Register (&cosine)[tile_rows]) const {
        APPROXSVM_UNROLL for (int i = 0; i < tile_rows; ++i) {
            cosine[i] = add(inner[i][v], set1(phases[first + static_cast<std::size_t>(i)]));
        }
        cosine_of_turns(cosine);
    }
    template <int Panels>
    APPROXSVM_INLINE void panels(std::size_t first_panel, Real, Register (&turns)[Panels * panel_registers]) const {
        const Real* const first = phases + first_panel * panel_width<Real>;
        APPROXSVM_UNROLL for (int i = 0; i < Panels * panel_registers; ++i) {
            turns[i] = add(turns[i], load(first + i * lanes_of<Real>));
        }
        cosine_of_turns(turns);
    }
    void finish(const Real*, std::size_t, std::size_t, double*) const {}
};

// --- the definition

// Evaluates all functions at the row z, of shape (n_features,), with angles as if computed in twice the precision
// (Ogita, Rump and Oishi 2005, Dot2). The error of high + low is at most 2 (d + 4)^2 u^2 ||omega_j|| N, and cos(high +
// low) is computed from the cosines and sines of both. The errors of the C library's functions are assumed to be at
// most 4 units; with the products and their sum, the error is at most 20 units. The sum over j is also computed as if
// in twice the precision. The bounds cover only rounding, and are infinite if an angle overflows float64. `values`,
// `bounds` and `lost` have the shape (n_decisions,).
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
    for (std::size_t j = 0; j < cosines.n_terms; ++j) {
        const double* const omega = cosines.frequencies + j * d;
        double high = cosines.phases[j], low = 0.0;
        for (std::size_t k = 0; k < d; ++k) {
            const double product = rounded_product(omega[k], z[k]);
            low += std::fma(omega[k], z[k], -product);
            add_exactly(high, product, low);
        }
        const double cosine = std::cos(high) * std::cos(low) - std::sin(high) * std::sin(low);
        for (std::size_t k = 0; k < n_functions; ++k)
            add_exactly(values[k], cosines.coef[k * cosines.n_terms + j] * cosine, lost[k]);
    }
    const double n = static_cast<double>(cosines.n_terms), depth = static_cast<double>(d) + 4.0,
                 norm = norm_above(z, d);
    for (std::size_t k = 0; k < n_functions; ++k) {
        const DecisionNumbers& decision = model.decisions[k];
        const double a1 = decision.sum_moduli, value = values[k] += lost[k];
        const double angles = 2.02 * depth * depth * unit64 * unit64 * norm * decision.total;
        const double added = 2.0 * (n + 4.0) * (n + 4.0) * unit64 * unit64 * (a1 + std::fabs(decision.intercept));
        const double most = 2.0 * a1;
        bounds[k] = 1.001 * ((angles < most ? angles : most) + 20.0 * unit64 * a1 + unit64 * std::fabs(value) + added) +
                    0x1p-960 * a1 + 0x1p-1040;
        // The limit is in turns; products of larger values may overflow.
        if (!(sums.in64.largest_norm * norm <= 0x1p900)) bounds[k] = infinity;
    }
}

// The interface of predict/kernels/sums_of_terms.hpp for terms that are not kernel values at support vectors.
struct CosineTerms {
    using Pieces = CosinePieces;
    using Sums = CosineSums;
    template <class Real>
    using Term = CosineTerm<Real>;
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

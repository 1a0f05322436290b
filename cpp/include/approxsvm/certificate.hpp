// Upper bounds on |computed - exact| for a row, from numbers that the compiler proved
// (approxsvm/expansion/certificate.py) and from the rounding of our own arithmetic. Everything here is rounded up.
//
// phi_k(s) = exp(-s/2) sqrt(s^k / k!) is the square root of a Poisson probability: at most 1, rising up to s = k.
#pragma once

#include <cmath>

#include "model_view.hpp"
#include "simd.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

constexpr double unit32 = 0x1p-24, unit64 = 0x1p-53;  // unit roundoffs
constexpr int kept_degree = 2;                        // of the expansion

// --- cells of s

// The bound depends on a row through s alone and is tabulated over s / 2 = half_s: 32 cells per octave from 2^-21 to
// 2^7, one cell below, one open cell above. The cell number is read off the bits of half_s.
constexpr std::uint32_t first_cell_bits = 0x35000000u >> 18;  // of 2^-21, with five bits of mantissa
constexpr std::size_t n_cells = 28 * 32 + 2;

// NaN and infinity land in the last cell.
APPROXSVM_INLINE std::size_t cell_of(float half_s) {
    if (!(half_s < 128.0f)) return n_cells - 1;
    std::uint32_t bits;
    std::memcpy(&bits, &half_s, sizeof bits);
    const std::uint32_t cell = bits >> 18;
    return cell < first_cell_bits ? 0 : cell - first_cell_bits + 1;
}

// The ends of a cell in s = 2 half_s, before widening; the last is open.
inline double cell_begin(std::size_t cell) {
    if (cell == 0) return 0.0;
    const std::uint32_t bits = (static_cast<std::uint32_t>(cell - 1) + first_cell_bits) << 18;
    float half_s;
    std::memcpy(&half_s, &bits, sizeof half_s);
    return 2.0 * static_cast<double>(half_s);
}

// --- functions of s

inline double phi(int k, double s) {
    double square = std::exp(-s);
    for (int i = 1; i <= k; ++i) square *= s / i;
    return std::sqrt(square);
}

// The largest value of phi_k on [low, high]: at s = k if that lies inside, else at the nearer end.
inline double max_phi(int k, double low, double high) {
    const double at = k < low ? low : k > high ? high : k;
    return phi(k, at);
}

// The largest value of s phi_k(s) = sqrt((k+1)(k+2)) phi_{k+2}(s) on [low, high].
inline double max_s_phi(int k, double low, double high) {
    return std::sqrt((k + 1.0) * (k + 2.0)) * max_phi(k + 2, low, high);
}

// P(n, s) = sum_{k >= n} e^-s s^k / k!, the regularised incomplete gamma function: a sum of positive terms, each a
// positive multiple of the one before. Beyond s = 40 it is 1 to within what the rounding up allows for.
inline double poisson_tail(int n, double s) {
    if (s > 40.0) return 1.0;
    const double first = phi(n, s);
    double term = first * first, sum = term;
    for (int k = n + 1; k < n + 200; ++k) {
        term *= s / k;
        sum += term;
    }
    return sum < 1.0 ? sum : 1.0;
}

// --- the table

// Longest paths of additions in quadratic.hpp: a product of the form goes through at most n_features additions along
// its matrix row and n_features along the sum over rows; ||u||^2 through n_features.
constexpr double form_path(std::size_t n_features) {
    return 2.0 * static_cast<double>(n_features) + 2.0;
}
constexpr double norm_path(std::size_t n_features) {
    return static_cast<double>(n_features) + 1.0;
}

// Relative error of the computed s, doubled to be generous: cells are widened by it. Sparse rows are let in with an
// error of 2^-12 (cascade.hpp) before s is narrowed to float32.
inline double s_error(std::size_t n_features) {
    const double e = 2.0 * (norm_path(n_features) + 8.0) * unit32;
    return e > 0x1.01p-12 ? e : 0x1.01p-12;
}

// What float32 arithmetic adds for rows of a cell: certificate.md, 3 (i). In order: the products of the form and the
// constant (their paths, the narrowing of the coefficients, exp and the products behind it); the error of s in the
// exponent; the rounding of u, which moves the row by at most 2^-24 of its distance to the center. All relative errors
// of a part together are at most e^x - 1 <= x e^x, x their sum to first order.
inline double rounding_bound(const ModelView& model, double low, double high) {
    const double p_q = form_path(model.n_features) + 11.0, p_s = 0.5 * (norm_path(model.n_features) + 4.0);
    double sum = 0.0;
    for (int k = 0; k <= kept_degree; ++k) {
        sum += model.norms[k] * (p_q * max_phi(k, low, high) + p_s * max_s_phi(k, low, high));
    }
    const double x = unit32 * (p_q + p_s * high);
    const double moved =
        std::sqrt(high) < 0x1p24 ? std::sqrt(high) * unit32 : 2.0;  // two unit vectors differ by at most 2
    const double fixed = model.coefficient_error + 0x1p-100 * model.total_norm +
                         0x1p-48 * (std::fabs(model.intercept) + model.total_norm);
    return 1.01 * (std::exp(x) * unit32 * sum + model.total_norm * moved) + fixed;
}

// |f_r - f| over [low, high], all dropped degrees but `left_out` (0 for none).
inline double truncation_bound(const ModelView& model, double low, double high, int left_out) {
    double sum = model.remainder_norm * std::sqrt(poisson_tail(last_norm_degree + 1, high));
    for (int k = kept_degree + 1; k <= last_norm_degree; ++k) {
        if (k != left_out) sum += model.norms[k] * max_phi(k, low, high);
    }
    return sum;
}

// |f - intercept| for rows at least sqrt(low / 2 gamma) from the center: every support vector lies within max_sv_norm
// of it.
inline double far_bound(const ModelView& model, double low) {
    const double reach = std::sqrt(0.5 * low) - std::sqrt(model.gamma) * model.max_sv_norm * (1.0 + 1e-12);
    const double far = reach > 0.0 ? model.sum_moduli * std::exp(-reach * reach) : model.sum_moduli;
    return far < model.total_norm ? far : model.total_norm;
}

inline float rounded_up(double x) {
    const float narrowed = static_cast<float>(x * (1.0 + 1e-6));  // far more than all rounding in this file
    return narrowed + 0x1p-126f;
}

// Fills table[0 .. n_cells). With left_out = 3 the degree-3 part is missing and the caller adds a sharper bound for it.
inline void fill_bound_table(const ModelView& model, int left_out, float* table) {
    const double widen = s_error(model.n_features);
    for (std::size_t cell = 0; cell + 1 < n_cells; ++cell) {
        const double low = cell_begin(cell) * (1.0 - widen), high = cell_begin(cell + 1) * (1.0 + widen);
        double kept = 0.0;
        for (int k = 0; k <= kept_degree; ++k) kept += model.norms[k] * max_phi(k, low, high);
        const double near = truncation_bound(model, low, high, left_out);
        const double far = far_bound(model, low) + kept;
        // From s = 174 on, rows may already get the bare intercept: the kept terms are then missing.
        const double error = (left_out == 0 && far < near ? far : near) + (high > 174.0 ? kept : 0.0);
        table[cell] = rounded_up(error + rounding_bound(model, low, high));
    }
    // Beyond all cells the value is the intercept.
    const double low = cell_begin(n_cells - 1) * (1.0 - widen);
    table[n_cells - 1] = rounded_up(far_bound(model, low) + 0x1p-48 * (std::fabs(model.intercept) + model.total_norm));
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

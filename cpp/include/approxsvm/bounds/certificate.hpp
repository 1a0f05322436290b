// Upper bounds on |computed - exact| for a row. They follow from norms computed by the compiler
// (approxsvm/expansion/certificate.py) and from the rounding errors of prediction. All bounds are rounded up.
//
// phi_k(s) = exp(-s/2) sqrt(s^k / k!) is the square root of a Poisson probability; it is at most 1 and increases up to
// s = k.
#ifndef APPROXSVM_BOUNDS_CERTIFICATE_HPP
#define APPROXSVM_BOUNDS_CERTIFICATE_HPP

#include <cmath>

#include "../model_view.hpp"
#include "../simd/norms.hpp"
#include "../simd/simd.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

constexpr double infinity = HUGE_VAL;

// --- cells of s

// The bound depends on a row only through s and is tabulated over s / 2 = half_s: 32 cells per octave from 2^-21 to
// 2^7, one cell below this range and one unbounded cell above. A cell's index is formed from the leading bits of
// half_s.
constexpr int first_octave = -21, end_octave = 7, cells_per_octave = 32;
constexpr std::uint32_t first_cell_bits = std::uint32_t{127 + first_octave} << 5;  // with five bits of mantissa
constexpr std::size_t n_cells = std::size_t{end_octave - first_octave} * cells_per_octave + 2;

// Returns the index of the cell that contains half_s; NaN and infinity are in the last cell.
APPROXSVM_INLINE std::size_t cell_of(float half_s) {
    if (!(half_s < 128.0f)) return n_cells - 1;
    std::uint32_t bits;
    std::memcpy(&bits, &half_s, sizeof bits);
    const std::uint32_t cell = bits >> 18;
    return cell < first_cell_bits ? 0 : cell - first_cell_bits + 1;
}

// Returns the lower endpoint of a cell in s = 2 half_s, before widening; the last cell is unbounded.
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

// Returns the maximum of phi_k on [low, high], which is at s = k if k lies inside, else at the endpoint nearer to k.
inline double max_phi(int k, double low, double high) {
    return phi(k, k < low ? low : k > high ? high : k);
}

// The maxima of phi_0, phi_1, ..., each computed from the previous one.
constexpr int n_phis = last_norm_degree + 3;
struct MaxPhis {
    double values[n_phis];

    APPROXSVM_COLD MaxPhis(double low, double high) {
        double at_low = std::exp(-low), at_high = std::exp(-high);  // squares of phi_k at both endpoints
        for (int k = 0; k < n_phis; ++k) {
            if (k > 0) at_low *= low / k, at_high *= high / k;
            values[k] = k < low ? std::sqrt(at_low) : k > high ? std::sqrt(at_high) : phi(k, k);
        }
    }
    double operator[](int k) const { return values[k]; }
    // Returns the maximum of s phi_k(s) = sqrt((k+1)(k+2)) phi_{k+2}(s).
    double times_s(int k) const { return std::sqrt((k + 1.0) * (k + 2.0)) * values[k + 2]; }
};

// P(n, s) = sum_{k >= n} e^-s s^k / k!, the regularized incomplete gamma function: a sum of positive terms, each a
// positive multiple of the previous one. The omitted terms are less than the amount that rounded_up() adds to every
// result. For s > 40, the result is the upper bound 1.
inline double poisson_tail(int n, double s) {
    if (s > 40.0) return 1.0;
    const double first = phi(n, s);
    double term = first * first, sum = term;
    for (int k = n + 1; k < n + 200 && term > 1e-20 * sum; ++k) {
        term *= s / k;
        sum += term;
    }
    return sum < 1.0 ? sum : 1.0;
}

// --- the bound for an expansion

// Summation depths in quadratic.hpp and polynomial.hpp: a product in a quadratic form passes through at most n_features
// additions along its matrix row, n_features over the rows, and n_features more for every further degree; a square in
// ||u||^2 passes through n_features additions.
constexpr double form_depth(std::size_t n_features, int degree) {
    return (degree > 2 ? degree : 2) * (static_cast<double>(n_features) + 1.0);
}
constexpr double norm_depth(std::size_t n_features) {
    return static_cast<double>(n_features) + 1.0;
}

// Twice the relative error bound of the computed s; cells are widened by this relative amount. For sparse rows, the
// error may be up to 2^-12 (expansions.hpp) before s is narrowed to float32.
inline double s_error(std::size_t n_features) {
    const double e = 2.0 * (norm_depth(n_features) + 8.0) * unit32;
    return e > 0x1.01p-12 ? e : 0x1.01p-12;
}

// A bound is a sum of norms times functions of s. The functions are tabulated once per model, with a table row for each
// cell of s; the norms are weights stored per expansion. The terms are, in this order, N_0 ... N_8, the remainder for
// each theta, W, and a term that does not depend on s.
constexpr int n_contractions = 4;
namespace term {
constexpr int norms = 0, remainders = last_norm_degree + 1, total = remainders + n_contractions, fixed = total + 1;
}
constexpr std::size_t n_bound_terms = 16;  // one term is unused
constexpr double contractions[n_contractions] = {1.0, 0.5, 0.25, 0.125};

// For s above this threshold, the value may be only the intercept, without the retained terms (exp_min_argument).
constexpr double bare_from_s = 174.0;
// The sum of all parts is at most W, which replaces a remainder before its factor overflows.
constexpr double most_remainder_factor = 0x1p60;

inline float rounded_up(double x) {
    if (x == 0.0) return 0.0f;                                // avoid slow denormal products of tiny values
    return static_cast<float>(x * (1.0 + 1e-6)) + 0x1p-126f;  // exceeds all rounding errors in this file
}

// The parts of degree at least `first` have a sum of at most T exp((1 / theta - 1) s / 2) sqrt(P(first, s / theta)),
// which increases with s.
inline double remainder_factor(int first, double theta, double s) {
    return std::exp(0.5 * (1.0 / theta - 1.0) * s) * std::sqrt(poisson_tail(first, s / theta));
}

// Rounding counts of an expansion; each rounding has size `unit`. `form` counts the roundings of every product in a
// quadratic form, of the constant and of their common factor; `half_norm` is half the number of roundings of s, which
// affect the exponent.
struct ExpansionArithmetic {
    double unit, form, half_norm;
};
// Roundings in float32: a product is rounded in the quadratic form, when its coefficient is narrowed, by exp and in the
// subsequent products (docs/derivation.md, Prediction).
inline ExpansionArithmetic float32_arithmetic(std::size_t n_features, int degree) {
    return {unit32, form_depth(n_features, degree) + 11.0, 0.5 * (norm_depth(n_features) + 4.0)};
}

// The rounding error relative to N_k, for all k <= degree and s <= `high`. The combined relative error of a part is at
// most e^x - 1 <= x e^x, where x is the sum of the errors to first order.
struct RoundingFactors {
    ExpansionArithmetic roundings;
    double growth;

    RoundingFactors(const ExpansionArithmetic& roundings_, double high)
        : roundings(roundings_), growth(std::exp(roundings_.unit * (roundings_.form + roundings_.half_norm * high))) {}
    double of(int k, const MaxPhis& phis) const {
        return 1.01 * growth * roundings.unit * (roundings.form * phis[k] + roundings.half_norm * phis.times_s(k));
    }
};

// Returns whether any expansion has a remainder. A model trained as a polynomial has none, and its bounds do not use W.
inline bool has_remainders(const ModelView& model) {
    const std::size_t n_expansions = model.n_centers * model.n_forms;
    for (std::size_t e = 0; e < n_expansions; ++e) {
        if (model.expansions[e].remainder > 0.0) return true;
    }
    return false;
}

// The factors in a bound for s in [low, high] that do not depend on the truncation degree. A remainder whose factor is
// infinite is replaced by W.
struct BasisCell {
    double low, high;
    MaxPhis phis;
    double remainders[n_contractions];

    // If `cut` is true, there are remainders, beginning at first_remainder_degree.
    BasisCell(bool cut, int first_remainder_degree, double low_, double high_)
        : low(low_), high(high_), phis(low_, high_) {
        for (int t = 0; t < n_contractions; ++t) {
            const double factor = cut ? remainder_factor(first_remainder_degree, contractions[t], high) : 0.0;
            remainders[t] = factor < most_remainder_factor ? factor : infinity;
        }
    }
    // Returns the factor of N_k in an expansion truncated after `degree`.
    double of_norm(int k, int degree, const RoundingFactors& rounding) const {
        if (k > degree) return phis[k];
        return (high > bare_from_s ? phis[k] : 0.0) + rounding.of(k, phis);
    }
    // Returns the factor of W: rounding u moves the row by at most unit32 times its distance from the center, and two
    // unit vectors are at most 2 apart.
    double of_total() const {
        return 1.01 * (std::sqrt(high) < 0x1p24 ? std::sqrt(high) * unit32 : 2.0) + 0x1p-100 + 0x1p-48;
    }
};

// Fills a table row for an expansion truncated after `degree`. If one remainder is infinite, all are replaced by W,
// because expansions with any theta use this table row.
APPROXSVM_COLD inline void fill_basis_row(const ModelView& model, int degree, const BasisCell& cell, float* row) {
    const RoundingFactors rounding(float32_arithmetic(model.n_features, degree), cell.high);
    for (int k = 0; k <= last_norm_degree; ++k) {
        row[term::norms + k] = rounded_up(cell.of_norm(k, degree, rounding));
    }
    bool overflows = false;
    for (const double factor : cell.remainders) overflows |= factor == infinity;
    for (int t = 0; t < n_contractions; ++t) {
        row[term::remainders + t] = overflows ? 0.0f : rounded_up(cell.remainders[t]);
    }
    row[term::total] = rounded_up(cell.of_total() + (overflows ? 1.0 : 0.0));
    row[term::fixed] = 1.0f;
    for (std::size_t t = term::fixed + 1; t < n_bound_terms; ++t) row[t] = 0.0f;
}

// Computes both endpoints, in s, of cell k < n_cells - 1, widened by the error of the computed s.
inline void cell_ends(std::size_t k, std::size_t n_features, double& low, double& high) {
    const double widen = s_error(n_features);
    low = cell_begin(k) * (1.0 - widen);
    high = cell_begin(k + 1) * (1.0 + widen);
}

// Fills consecutive tables of n_cells rows, one for each degree from `first` to `last`.
APPROXSVM_COLD inline void fill_bases(const ModelView& model, int first, int last, float* tables) {
    const bool cut = has_remainders(model);
    constexpr std::size_t table_size = n_cells * n_bound_terms;
    for (std::size_t k = 0; k + 1 < n_cells; ++k) {
        double low, high;
        cell_ends(k, model.n_features, low, high);
        const BasisCell cell(cut, model.first_remainder_degree, low, high);
        for (int degree = first; degree <= last; ++degree) {
            fill_basis_row(model, degree, cell,
                           tables + static_cast<std::size_t>(degree - first) * table_size + k * n_bound_terms);
        }
    }
    for (int degree = first; degree <= last; ++degree) {
        float* end = tables + static_cast<std::size_t>(degree - first) * table_size + (n_cells - 1) * n_bound_terms;
        for (std::size_t t = 0; t < n_bound_terms; ++t) {  // bounds the error if the value is only the intercept
            end[t] = t == term::total || t == term::fixed ? 1.0f : 0.0f;
        }
        if (model.gamma == 0.0) end[term::fixed] = static_cast<float>(infinity);  // the source's value may be NaN
    }
}

// Computes the weights of one expansion of one decision function.
inline void fill_weights(const ExpansionNumbers& expansion, const DecisionNumbers& decision, float* weights) {
    for (std::size_t t = 0; t < n_bound_terms; ++t) weights[t] = 0.0f;
    for (int k = 0; k <= last_norm_degree; ++k) weights[term::norms + k] = rounded_up(expansion.norms[k]);
    for (int t = 0; t < n_contractions; ++t) {
        if (expansion.contraction == contractions[t]) weights[term::remainders + t] = rounded_up(expansion.remainder);
    }
    weights[term::total] = rounded_up(decision.total);
    weights[term::fixed] =
        rounded_up(expansion.coefficient_error + 0x1p-48 * (std::fabs(decision.intercept) + decision.total));
}

// Returns the bound computed from the sum of 16 nonnegative products, rounded up once. If a norm overflows float32, the
// sum is infinite, or NaN if the norm's factor is zero; the bound is then infinite.
APPROXSVM_INLINE double finished_bound(float sum) {
    const double bound = 1.00001 * static_cast<double>(sum) + 0x1p-120;
    return bound == bound ? bound : infinity;
}
APPROXSVM_INLINE double bound_of(const float* basis_row, const float* weights) {
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (std::size_t t = 0; t < n_bound_terms; t += 4) {
        for (std::size_t i = 0; i < 4; ++i) sum[i] += basis_row[t + i] * weights[t + i];
    }
    return finished_bound((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

// The bound's term for a row's squared distance from the slice, in scaled coordinates: f changes by at most W times the
// distance between two points in the kernel's feature space, sqrt(2 - 2 exp(-gamma r^2)) <= sqrt(2 gamma) r. The sum of
// squares has a depth of at most norm_depth() additions; underflow changes the distance by less than 2^-50.
inline double slice_slack(const ModelView& model, const DecisionNumbers& decision, float off_sq) {
    if (!model.varying) return 0.0;
    const double theta = 2.0 * static_cast<double>(model.half_theta);
    const double widen = 1.0 + (norm_depth(model.n_features) + 8.0) * unit32;
    const double distance = widen * std::sqrt(theta * static_cast<double>(off_sq)) + 0x1p-50;
    return 1.0001 * decision.total * (distance < 1.415 ? distance : 1.415);
}

// The part of a row's bound not caused by rounding: the distance between the source's function and the model's, and the
// effect of the row's error, which is at most A1 because kernel values are between 0 and 1. `slope` is
// PreparedModel::slope.
APPROXSVM_INLINE double row_slack(const DecisionNumbers& decision, double slope, double row_error) {
    if (row_error == 0.0) return decision.value_error;  // NaN must propagate
    const double moved = slope * row_error;
    return 1.0001 * (decision.value_error + decision.sum_moduli * (moved < 1.0 ? moved : 1.0));
}
// Returns whether neither a value nor its bound overflows float64. A bound that is infinite only because of the row's
// error does not count as overflow.
inline bool is_within_float64(double value, double bound, double row_error) {
    return bound < HUGE_VAL || (is_finite(value) && !(row_error < HUGE_VAL));
}

// Returns a bound for rows farther from the center than any support vector: there, |f - intercept| and the expansion
// are small.
inline double far_bound(const ModelView& model, const ExpansionNumbers& expansion, const DecisionNumbers& decision,
                        float half_s) {
    const double widen = s_error(model.n_features), h = static_cast<double>(half_s);
    const double reach = std::sqrt(h * (1.0 - widen)) - std::sqrt(model.gamma) * expansion.max_sv_norm * (1.0 + 1e-12);
    if (!(reach > 0.0)) return infinity;
    const double low = 2.0 * h * (1.0 - widen), high = 2.0 * h * (1.0 + widen);
    double kept = 0.0;
    const MaxPhis phis(low, high);
    const RoundingFactors rounding(float32_arithmetic(model.n_features, model.degree), high);
    for (int k = 0; k <= model.degree; ++k) {
        kept += expansion.norms[k] * (phis[k] + (half_s < 128.0f ? rounding.of(k, phis) : 0.0));
    }
    const double kernels = decision.sum_moduli * std::exp(-reach * reach), w = decision.total;
    const double moved = 2.0 * unit32 * std::sqrt(high) * w;
    return 1.0001 * ((kernels < w ? kernels : w) + kept + (half_s < 128.0f ? moved : 0.0)) +
           expansion.coefficient_error + 0x1p-48 * (std::fabs(decision.intercept) + w) + 0x1p-1000;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

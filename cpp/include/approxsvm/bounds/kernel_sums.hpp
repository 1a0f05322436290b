// Bounds on the rounding errors of kernel sums, in the exact engines and over lists of support vectors.
#ifndef APPROXSVM_BOUNDS_KERNEL_SUMS_HPP
#define APPROXSVM_BOUNDS_KERNEL_SUMS_HPP

#include "../exact/rbf_winner.hpp"
#include "certificate.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// An exact engine in one precision, with bounds on the effect of rounding its support vectors. In addition to a_i K_i,
// the engine sums the weighted absolute values |a_i| (typical_half_sq_norm + h_i) K_i; with several functions, |a_i| is
// the maximum over all of them.
template <class Real>
struct Engine {
    KernelSums<Real> sums;
    double typical_half_sq_norm;  // a typical value of h_i = gamma ||x_i - center||^2 for the support vectors
    // bounds on the effect of rounding the support vectors to Real: of shape (n_decisions,), or (n_classes,) if a pair
    // adds two of them
    const double* narrowing_errors;
};

// --- sums in an engine

template <class Real>
constexpr double unit_of = sizeof(Real) == 4 ? unit32 : unit64;

// An upper bound on the summation depth of an inner product with a row of n_terms nonzeros, and of the squared norm of
// a support vector, which may have many more nonzeros. Norms are computed in float64, so their error is negligible in a
// float32 engine.
template <class Real>
inline std::size_t products_depth(const KernelVectors<Real>& e, std::size_t n_terms) {
    const bool by_columns = e.columns.n_lanes > 0;
    const std::size_t in_common = n_terms < e.columns.max_values ? n_terms : e.columns.max_values;
    const std::size_t of_norm = sizeof(Real) == sizeof(float) ? 0
                                : by_columns                  ? depth_in_lanes(e.columns.max_values)
                                                              : inner_product_depth(e.n_features);
    std::size_t depth = inner_product_depth(n_terms);
    if (by_columns && in_common > depth) depth = in_common;
    return of_norm > depth ? of_norm : depth;
}

// Bounds the rounding error of an exact engine's sum for a row with n_terms nonzero coordinates and h = gamma ||z -
// center||^2 = half_sq_norm. The bound is infinite if cancellation in a distance may be harmful.
//
// The argument of exp for support vector i has an error of at most d_i = u (depth + 8) (sqrt(h_i) + sqrt(h))^2 <= 2 u
// (depth + 8) (h_i + h). While d_i <= 2^-5, the kernel value has a relative error of at most 1.05 (2.125 d_i + 6.1 u).
// These errors, each times |a_i| K_i, sum to at most 1.05 (2.125 * 2 u (depth + 8) (H + h S) + 6.1 u S), where S = sum
// |a_i| K_i and H = sum |a_i| h_i K_i. The engine computes Q = t S + H, where t is a typical h_i, so S <= Q / t and H +
// h S <= max(1, h / t) Q.
struct RowRounding {
    double of_reached, most_reached, row_share, of_all_moduli;
    double underflow;  // all members are infinite if there is no bound
};
template <class Real>
class EngineBound {
  public:
    explicit EngineBound(const Engine<Real>& engine) : EngineBound(engine.sums.vectors, engine.typical_half_sq_norm) {}
    APPROXSVM_NOINLINE EngineBound(const KernelVectors<Real>& e, double typical_half_sq_norm)
        : engine_(e),
          t_(typical_half_sq_norm),
          furthest_(static_cast<double>(e.max_half_sq_norm)),
          inverse_t_((1.0 + 0x1p-50) / t_),
          root_of_furthest_(std::sqrt(furthest_)),
          of_moduli_(1.05 * 6.1 * unit_of<Real> + 1.01 * (static_cast<double>(e.n_sv) + 8.0) * unit64) {}

    // Returns the part of the bounds that depends only on the row, for all decision functions.
    APPROXSVM_NOINLINE RowRounding of_row(double half_sq_norm, std::size_t n_terms) const {
        constexpr double u = unit_of<Real>;
        const double per_reach = 1.01 * u * (static_cast<double>(products_depth(engine_, n_terms)) + 8.0);
        const double reach = root_of_furthest_ + std::sqrt(half_sq_norm);
        // Rounding moves the row by at most u times its distance from the center, which changes f by at most sqrt(2
        // gamma / e) A1 times the distance moved.
        const double moved = 1.01 * 0.61 * 2.0 * u * std::sqrt(2.0 * half_sq_norm);
        return {1.05 * 4.25 * per_reach, furthest_ + half_sq_norm, half_sq_norm > t_ ? half_sq_norm * inverse_t_ : 1.0,
                moved + 0x1p-120, per_reach * reach * reach <= 0x1p-5 ? 0x1p-1040 : infinity};
    }

    // Returns the bound on the error of one function's sum; weighted_moduli is Q.
    APPROXSVM_INLINE double of(const RowRounding& row, double weighted_moduli, double narrowing_error,
                               const DecisionNumbers& decision) const {
        const double a1 = decision.sum_moduli;
        // exp does not return less than 2^-126.
        const double weighted = 1.001 * weighted_moduli + 0x1p-120 * a1 * (t_ + furthest_);
        const double share = weighted * inverse_t_, moduli = share < a1 ? share : a1;
        const double most = a1 * row.most_reached, reached = weighted * row.row_share;
        const double rounding = row.of_reached * (reached < most ? reached : most) + of_moduli_ * moduli;
        return rounding + narrowing_error + row.of_all_moduli * a1 + 0x1p-51 * std::fabs(decision.intercept) +
               row.underflow;
    }

  private:
    const KernelVectors<Real>& engine_;
    const double t_, furthest_, inverse_t_, root_of_furthest_, of_moduli_;
};

// --- sums over lists

// The error of a row's sums over lists is at most of_moduli times the sum of absolute values plus of_all_moduli times
// A1.
struct ListedErrors {
    double of_moduli, of_all_moduli;
};

// A support vector's distance from the center may exceed the row's by at most this amount, in units of 1 / sqrt(gamma);
// support vectors farther away are treated separately.
constexpr double far_beyond = 4.0;

// Rounding errors of float32 kernel values and sums (rbf_winner.hpp). Let r = sqrt(h) and r_i = sqrt(h_i) be the
// distances of the row and of support vector i from the center in units of 1 / sqrt(gamma). By the derivation at
// EngineBound, the argument of exp has an error of at most d_i = p (r_i + r)^2, where p = u (depth + 8), and K_i has a
// relative error of at most 1.05 (2.125 d_i + 6.1 u).
//
// For r_i <= r + g, where g = far_beyond, the relative error is at most its value at r_i = r + g, or at the farthest
// support vector if that is nearer. This value multiplies the sum of absolute values. For larger r_i = r + g + t, K_i
// <= exp(-(g + t)^2) is tiny, and so is the rest of the error,
//     p ((r_i + r)^2 - (2 r + g)^2) K_i = p t (4 r + 2 g + t) K_i
//         <= p exp(-g^2) (t (4 r + 2 g) + t^2) exp(-2 g t) <= p exp(-g^2) ((2 r / g + 1) / e + 1 / (g e)^2),
// as t exp(-2 g t) <= 1 / (2 g e) and t^2 exp(-2 g t) <= 1 / (g e)^2. Because d_i <= 2^-5, rounding the norms changes g
// by less than 2^-12, and the rest of the error by less than 1%.
//
// The sums add listed_depth roundings in float32; the effect of underflow is less than 2^-60 times each coefficient.
// The errors are infinite if cancellation in a distance may be harmful.
APPROXSVM_NOINLINE inline ListedErrors listed_errors(const KernelVectors<float>& e, double half_sq_norm) {
    const double per_reach = 1.01 * unit32 * (static_cast<double>(inner_product_depth(e.n_features)) + 8.0);
    const double furthest = std::sqrt(static_cast<double>(e.max_half_sq_norm)), own = std::sqrt(half_sq_norm);
    if (!(per_reach * (furthest + own) * (furthest + own) <= 0x1p-5)) return {infinity, infinity};
    const double listed = own + far_beyond, reach = (listed < furthest ? listed : furthest) + own;
    const double kernels = 1.05 * (2.125 * per_reach * reach * reach + 6.1 * unit32);
    const double sums = 1.01 * listed_depth * unit32 + 1.01 * (static_cast<double>(e.n_sv) + 8.0) * unit64;
    constexpr double of_gap = 1.1254e-7;  // exp(-far_beyond^2)
    const double of_far = listed < furthest ? 2.3 * per_reach * of_gap * (0.19 * own + 0.38) : 0.0;
    return {1.002 * (kernels + 1.1 * sums), 1.1 * of_far + 0x1p-58};
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

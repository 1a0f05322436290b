// Gaussian processes: the variance of the latent function at a row, and what scikit-learn makes of it: the deviation of
// a regression, and the probability of a class by Laplace's approximation. Each with a bound on the error.
#pragma once

#include <cmath>

#include "outputs.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// A number, and how far the exact one may be from it.
struct Approximate {
    double value, error;
};
inline Approximate told(double value, double error) {
    return is_finite(value) && error < HUGE_VAL ? Approximate{value, error} : Approximate{value, HUGE_VAL};
}

// The variance prior - ||v||^2 of n exact v_k, each within bounds[k] of values[k]; 0 where that is less, as the source
// has it. With v the values and b the bounds, by Cauchy and Schwarz,
//     | ||exact||^2 - ||v||^2 | <= 2 ||v|| ||b|| + ||b||^2.
// The computed ||v||^2 errs by at most (n + 2) u of itself, the prior, which is rounded once, and the difference by u
// of each, u = 2^-53. Squares below 2^-1074 are lost: of n <= 2^10 that is at most 2^-532 in a norm. Clipping at 0
// brings numbers no further apart.
inline Approximate process_variance(std::size_t n, const double* values, const double* bounds, double prior) {
    double of_values = 0.0, of_bounds = 0.0;
    for (std::size_t k = 0; k < n; ++k) {
        of_values += values[k] * values[k];
        of_bounds += bounds[k] >= 0.0 ? bounds[k] * bounds[k] : HUGE_VAL;
    }
    const double v = std::sqrt(of_values) + 0x1p-525, b = std::sqrt(of_bounds) + 0x1p-525, variance = prior - of_values,
                 rounding = (static_cast<double>(n) + 6.0) * 0x1p-53 * (of_values + prior);
    return told(variance > 0.0 ? variance : 0.0, 1.001 * (2.0 * v * b + b * b + rounding));
}

// scale * sqrt(variance), which rises with the variance: the ends of its interval are those of the deviation's. Roots
// and differences of them err by a few units of the largest.
inline Approximate process_deviation(const Approximate& variance, double scale) {
    const double least = variance.value - variance.error, middle = std::sqrt(variance.value),
                 low = least > 0.0 ? std::sqrt(least) : 0.0, high = std::sqrt(variance.value + variance.error);
    const double error = farther_end(middle, low, high) + 0x1p-49 * high;
    return told(scale * middle, 1.001 * scale * error + 0x1p-1000);
}

// The probability that the mean f and the variance q of the latent function leave for the class that f is for: the
// integral of the logistic function over that normal distribution, with the five error functions in its place that
// scikit-learn takes (Williams and Barber 1998),
//     g(f, q) = 1/2 sum_i c_i (1 + erf(t_i)),   t_i = l_i f / s_i,   s_i^2 = 1 + 2 l_i^2 q >= 1.
// With f off by at most F and q, at least 0 here and there, by at most Q, Taylor's formula along the line between says
//     |g - g_exact| <= |dg/df| F + |dg/dq| Q + 1/2 max |second derivative along it|,
//     dg/df = sum_i c_i l_i / (s_i sqrt(pi)) exp(-t_i^2),   dg/dq = -sum_i c_i l_i^2 t_i / (s_i^2 sqrt(pi))
//     exp(-t_i^2),
// and with t' <= l F + l^2 Q |t|, |t''| <= 2 l^3 F Q + 3 l^4 Q^2 |t|, and |t|, t^2 and |t|^3 times exp(-t^2) at most
// 0.429, 0.368 and 0.41, the second derivative, sum_i c_i / sqrt(pi) (t'' - 2 t t'^2) exp(-t^2), is at most
//     sum_i |c_i| / sqrt(pi) (0.858 l^2 F^2 + 3.472 l^3 F Q + 2.107 l^4 Q^2) <= 725 F^2 + 1291 F Q + 345 Q^2
// as sum |c_i| < 7732 and l <= 0.44. As the integral of g(., 0) over a normal distribution, with a slope there that is
// above 0 (a test evaluates it), g lies between 0 and sum c_i < 1: so may what is computed, off by 1 at most. Rounding:
// each term errs by less than 16 u of |c_i|, erf by less than 2^-50, in all less than 2^-35; derivatives by less than
// 2^-35 as well.
inline Approximate process_share(const Approximate& f, const Approximate& q) {
    constexpr double c[] = {-1854.8214151, 3516.89893646, 221.29346712, 128.12323805, -2010.49422654},
                     l[] = {0.41, 0.4, 0.37, 0.44, 0.39}, inverse_sqrt_pi = 0.56418958354775628;
    double share = 0.0, by_f = 0.0, by_q = 0.0, total = 0.0;
    for (std::size_t i = 0; i < 5; ++i) {
        const double sq = 1.0 + 2.0 * l[i] * l[i] * q.value, s = std::sqrt(sq), t = l[i] * f.value / s,
                     density = c[i] * inverse_sqrt_pi * std::exp(-t * t);
        share += c[i] * std::erf(t);
        total += c[i];
        by_f += density * l[i] / s;
        by_q += density * l[i] * l[i] * t / sq;
    }
    const double F = f.error, Q = q.error, slopes = (std::fabs(by_f) + 0x1p-35) * F + (std::fabs(by_q) + 0x1p-35) * Q,
                 curvature = 0.5 * (725.0 * F * F + 1291.0 * F * Q + 345.0 * Q * Q);
    const Approximate found = told(0.5 * share + 0.5 * total, 1.001 * (slopes + curvature) + 0x1p-35);
    if (!is_finite(found.value)) return found;
    return {std::fmin(std::fmax(found.value, 0.0), 1.0), std::fmin(found.error, 1.0)};
}

// Shares g_c / G of their sum G, in place: with errors b_c of g_c and B in all,
//     |g_c / G - exact| <= (b_c + |g_c / G| B) / (G - B).
// The sum errs by n u of its terms' moduli, which B takes, and the quotient by u. Of a sum of 0 they stay as they are,
// as OneVsRestClassifier leaves them. Shares of numbers of at least 0 are at most 1, and so are their errors.
inline void shares_of_sum(std::size_t n, double* shares, double* errors) {
    double sum = 0.0, moduli = 0.0, of_errors = 0.0;
    for (std::size_t c = 0; c < n; ++c) {
        sum += shares[c];
        moduli += std::fabs(shares[c]);
        of_errors += errors[c];
    }
    of_errors += 0x1p-51 * static_cast<double>(n) * moduli;
    for (std::size_t c = 0; c < n; ++c) {
        if (sum != 0.0) shares[c] /= sum;
        const double reach = errors[c] + std::fabs(shares[c]) * of_errors;
        const double error = 1.001 * reach / (sum - of_errors) + 0x1p-51 * std::fabs(shares[c]);
        errors[c] = sum > of_errors && error < 1.0 ? error : 1.0;
    }
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

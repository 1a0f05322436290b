/* Terms of a sum f(z) = b + sum_i a_i g(t_i), where t_i = v_i . z + s_i and g is a power, the hyperbolic tangent or the
   cosine.

   A term's power p is at least 1, or 0 for tanh and cos. For |t| <= B, the absolute values are at most:

                 |g|    |g'|         |g''|
       t^p       B^p    p B^(p-1)    p (p-1) B^(p-2)
       tanh t    1      1            1
       cos t     1      1            1

   For rows of norm r, |t_i| <= B_i = alpha_i r + beta, where alpha_i >= ||v_i|| and beta >= |s_i|. Let q = max(p, 1).
   Two sums suffice for all bounds: A1 = sum_i |a_i|, and the polynomial

       M(r) = sum_i |a_i| B_i^q = sum_k moments_k (reach r)^k beta^(q-k),
       moments_k = C(q, k) sum_i |a_i| (alpha_i / reach)^k,    reach >= alpha_i.

   If a row moves by a distance h, f changes by at most h M'(r + h), and by at most 2 A1 if p = 0. */
#ifndef APPROXSVM_PROGRAM_TERMS_H
#define APPROXSVM_PROGRAM_TERMS_H
#include "bits.h"

/* The maximum absolute value of g, g' or g'' (order 0, 1 or 2) for |t| <= reach. */
APPROXSVM_PROGRAM double approxsvm_term_limit(int power, int order, double reach) {
    double limit = 1.0;
    int k;
    for (k = 0; k < power; ++k) limit *= k < order ? (double)(power - k) : reach;
    return power > 0 && order > power ? 0.0 : limit;
}

/* The degree q of M. */
APPROXSVM_PROGRAM int approxsvm_moduli_degree(int power) {
    return power > 0 ? power : 1;
}

/* Adds a term to the moments, where share = alpha / reach. approxsvm_end_moments() multiplies by the binomial
   coefficients. */
APPROXSVM_PROGRAM void approxsvm_add_to_moments(double* moments, int power, double modulus, double share) {
    int k;
    for (k = 0; k <= approxsvm_moduli_degree(power); ++k, modulus *= share) moments[k] += modulus;
}

/* Completes the moments of n terms and rounds them up; `a1` is A1. */
APPROXSVM_PROGRAM void approxsvm_end_moments(double* moments, int power, double n, double a1) {
    const int last = approxsvm_moduli_degree(power);
    double binomial = 1.0;
    int k;
    for (k = 0; k <= last; ++k) {
        moments[k] = binomial * (moments[k] * (1.0 + (n + 32.0) * 0x1p-52) + 0x1p-1060 * (a1 + n));
        binomial = binomial * (double)(last - k) / (double)(k + 1);
    }
}

/* M(r) or, if `order` is 1, M'(r). */
APPROXSVM_PROGRAM double approxsvm_moduli_at(const double* moments, int power, int order, double reach, double r,
                                             double beta) {
    const double q = reach * r;
    int k = approxsvm_moduli_degree(power);
    double raised = 1.0, sum = (order > 0 ? (double)k : 1.0) * moments[k];
    while (--k >= order) {
        raised *= beta;
        sum = sum * q + (order > 0 ? (double)k : 1.0) * moments[k] * raised;
    }
    return order > 0 ? sum * reach : sum;
}

/* The error of a sum with M = `moduli` if every t_i is off by at most of_arguments B_i, and every term, with its
   coefficient and all sums that it passes through, by at most of_terms times the largest |g|. If p = 0, the error is at
   most (2 + of_terms) A1. */
APPROXSVM_PROGRAM double approxsvm_sum_error(int power, double of_arguments, double of_terms, double moduli,
                                             double a1) {
    return (power > 0 ? power * of_arguments + of_terms : of_arguments) * moduli + (power > 0 ? 0.0 : of_terms * a1);
}

#endif

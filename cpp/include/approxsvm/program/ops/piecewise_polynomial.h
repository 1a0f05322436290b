/* Piecewise polynomials of one number, as in splines and quantile interpolation. */
#ifndef APPROXSVM_PROGRAM_OPS_PIECEWISE_POLYNOMIAL_H
#define APPROXSVM_PROGRAM_OPS_PIECEWISE_POLYNOMIAL_H
#include "../ball.h"

typedef struct {
    const double *edges, *origins, *coefs; /* the origin of each piece, and its coefficients in ascending order */
    int n_edges, degree;
} approxsvm_piecewise_polynomial;

/* The value of a polynomial in t, by Horner's rule, and the sum of its terms' absolute values. */
typedef struct {
    double value, absolute_sum;
} approxsvm_polynomial_value;

APPROXSVM_PROGRAM approxsvm_polynomial_value approxsvm_polynomial_at(const approxsvm_piecewise_polynomial* pieces,
                                                                     int i, double x) {
    const double *const coef = pieces->coefs + i * (pieces->degree + 1), t = x - pieces->origins[i];
    approxsvm_polynomial_value y;
    int k;
    y.value = coef[pieces->degree];
    y.absolute_sum = approxsvm_abs(y.value);
    for (k = pieces->degree - 1; k >= 0; --k) {
        y.value = y.value * t + coef[k];
        y.absolute_sum = y.absolute_sum * approxsvm_abs(t) + approxsvm_abs(coef[k]);
    }
    return y;
}

/* A bound on the rounding error: each coefficient, t and each operation is rounded once. */
APPROXSVM_PROGRAM double approxsvm_polynomial_error(const approxsvm_piecewise_polynomial* pieces,
                                                    approxsvm_polynomial_value y) {
    return (3.0 * (double)pieces->degree + 2.0) * 0x1p-53 * (1.0 + 0x1p-30) * y.absolute_sum;
}

/* The maximum distance from y of the values of pieces `first` through `last` within the radius of x. In each piece, the
   point z nearest to x is within two radii of all other points, so the polynomial changes by at most this distance
   times its maximum slope. */
APPROXSVM_PROGRAM double approxsvm_polynomials_moved(const approxsvm_piecewise_polynomial* pieces, int first, int last,
                                                     approxsvm_ball x, double y) {
    const double up = 1.0 + 0x1p-30, reach = 2.0 * x.radius * up, *const edges = pieces->edges;
    double most = 0.0;
    int i, k;
    if (!(x.radius <= APPROXSVM_LARGEST) || last - first >= 64) return approxsvm_infinity();
    for (i = first; i <= last; ++i) {
        const double z = i > 0 && x.value < edges[i - 1]             ? edges[i - 1]
                         : i < pieces->n_edges && x.value > edges[i] ? edges[i]
                                                                     : x.value;
        const approxsvm_polynomial_value at = approxsvm_polynomial_at(pieces, i, z);
        const double* const coef = pieces->coefs + i * (pieces->degree + 1);
        const double t = approxsvm_abs(z - pieces->origins[i]) * up + reach;
        double slope = 0.0, off;
        for (k = pieces->degree; k > 0; --k) slope = slope * t + (double)k * approxsvm_abs(coef[k]);
        off = approxsvm_abs(at.value - y) + approxsvm_polynomial_error(pieces, at) + reach * slope * up;
        most = off <= most ? most : off == off ? off : approxsvm_infinity();
    }
    return most * up;
}

/* The maximum distance from y of values within the radius of x. If `is_source`, x is the source's own number, so only
   its piece matters. */
APPROXSVM_PROGRAM double approxsvm_polynomial_moved(const approxsvm_piecewise_polynomial* pieces, approxsvm_ball x,
                                                    double y, int is_source) {
    const double reach = is_source ? 0.0 : approxsvm_reach(x);
    const int first = approxsvm_piece(x.value - reach, pieces->edges, pieces->n_edges);
    const int last = approxsvm_piece(x.value + reach, pieces->edges, pieces->n_edges);
    return approxsvm_polynomials_moved(pieces, first, last, x, y);
}

APPROXSVM_PROGRAM approxsvm_ball approxsvm_piecewise(const approxsvm_piecewise_polynomial* pieces, approxsvm_ball x,
                                                     int is_source) {
    const int i = approxsvm_piece(x.value, pieces->edges, pieces->n_edges);
    const approxsvm_polynomial_value at = approxsvm_polynomial_at(pieces, i, x.value);
    approxsvm_ball y;
    y.value = at.value;
    y.radius = approxsvm_polynomial_error(pieces, at) + 0x1p-1000;
    if (!(x.radius == 0.0)) y.radius += approxsvm_polynomial_moved(pieces, x, y.value, is_source);
    return y;
}

#endif

/* Step functions of one number: thresholds, bins, categories, replacement of missing values. */
#ifndef APPROXSVM_PROGRAM_OPS_LOOKUP_H
#define APPROXSVM_PROGRAM_OPS_LOOKUP_H
#include "../ball.h"

typedef struct {
    const double *edges, *values; /* values below the first edge, between edges, and from the last edge on */
    int n_edges;
    double missing; /* the replacement of NaN */
} approxsvm_lookup;

/* Values up to 1e301 are numbers. Two other values have special meanings: that x is unchanged, and that the row is
   rejected. They are infinity and NaN in artifacts, but 3e301 and 2e301 in headers, because C99 constants cannot
   express infinity and NaN. */
APPROXSVM_PROGRAM int approxsvm_lookup_keeps(double found) {
    return found > 2.5e301;
}
APPROXSVM_PROGRAM int approxsvm_lookup_refuses(double found) {
    return !(found <= 1e301 || approxsvm_lookup_keeps(found));
}

APPROXSVM_PROGRAM double approxsvm_lookup_find(const approxsvm_lookup* lookup, double x) {
    return x == x ? lookup->values[approxsvm_piece(x, lookup->edges, lookup->n_edges)] : lookup->missing;
}

/* The maximum distance from y to the function's values at points within `reach` of x; where the function returns x
   itself, the distance includes the radius of x. */
APPROXSVM_PROGRAM double approxsvm_lookup_moved(const approxsvm_lookup* lookup, approxsvm_ball x, double reach,
                                                double y) {
    const int last = approxsvm_piece(x.value + reach, lookup->edges, lookup->n_edges);
    double most = 0.0;
    int i;
    if (x.value != x.value) return approxsvm_lookup_keeps(lookup->missing) ? approxsvm_infinity() : 0.0;
    if (reach != reach) return approxsvm_infinity();
    for (i = approxsvm_piece(x.value - reach, lookup->edges, lookup->n_edges); i <= last; ++i) {
        const double value = lookup->values[i];
        const double off = approxsvm_lookup_keeps(value)     ? approxsvm_abs(y - x.value) + x.radius
                           : approxsvm_lookup_refuses(value) ? approxsvm_infinity()
                                                             : approxsvm_abs(value - y);
        most = off > most ? off : most;
    }
    return most * (1.0 + 0x1p-30);
}

/* The ball of the value found for x. If `is_source`, x is the source's own number and is mapped to the source's
   value. */
APPROXSVM_PROGRAM approxsvm_ball approxsvm_lookup_ball(const approxsvm_lookup* lookup, approxsvm_ball x, double found,
                                                       int is_source) {
    approxsvm_ball y;
    y.value = approxsvm_lookup_keeps(found) ? x.value : found;
    y.radius = 0.0;
    if (x.radius == 0.0) return y;
    if (is_source) {
        y.radius = approxsvm_lookup_keeps(found) ? x.radius : 0.0;
    } else {
        y.radius = approxsvm_lookup_moved(lookup, x, approxsvm_reach(x), y.value);
    }
    return y;
}

#endif

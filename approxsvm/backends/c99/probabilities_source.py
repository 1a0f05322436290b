"""The text of probabilities in an exported C99 header (probabilities.py), with marks as in source.py."""

from __future__ import annotations

from typing import Final

ENDS: Final = """\
/* 1 / (1 + exp(x)). */
static inline double @sigmoid@@(double x) {
    const double e = approxsvm_exp(x < 0.0 ? x : -x);
    return x >= 0.0 ? e / (1.0 + e) : 1.0 / (1.0 + e);
}
/* Between what the exact value lies. */
static inline void @around@@(double value, double bound, double *low, double *high) {
    const double reach = bound * (1.0 + 0x1p-40) + 0x1p-50 * approxsvm_abs(value);
    *low = value - reach;
    *high = value + reach;
}
/* Between what 1 / (1 + exp(slope f + intercept)) lies for all f from low to high; large terms may cancel. */
static inline void @sigmoid_ends@@(double low, double high, double slope, double intercept, double *least,
                                   double *most) {
    const double below = slope * (slope < 0.0 ? high : low), above = slope * (slope < 0.0 ? low : high);
    const double from = below + intercept - 0x1p-50 * (approxsvm_abs(below) + approxsvm_abs(intercept));
    const double to = above + intercept + 0x1p-50 * (approxsvm_abs(above) + approxsvm_abs(intercept));
    const int is_known = from <= to; /* not infinity times zero */
    *least = is_known ? @sigmoid@@(to) : 0.0;
    *most = is_known ? @sigmoid@@(from) : 1.0;
}
/* Wider by the rounding of probabilities, and by `slack`. */
static inline void @widen@@(int n, double slack, double lowest[], double highest[]) {
    int c;
    slack += (256.0 + 16.0 * (double)n) * 0x1p-53;
    for (c = 0; c < n; ++c) {
        lowest[c] = lowest[c] > slack ? lowest[c] - slack : 0.0;
        highest[c] = highest[c] < 1.0 - slack ? highest[c] + slack : 1.0;
    }
}
"""

# Of two classes the share of one, #A#, is known, with its ends.
TWO_SHARES: Final = """\
/* Probabilities, and between what those of the exact values lie. */
static inline void @shares@@(const double values[], const float bounds[], double p[], double lowest[],
                             double highest[]) {
    @one_share@@(values[0], (double)bounds[0], &p[#A#], &lowest[#A#], &highest[#A#]);
    if (p[#A#] > 1.0) p[#A#] = 1.0;
    p[#B#] = 1.0 - p[#A#];
    lowest[#B#] = 1.0 - highest[#A#];
    highest[#B#] = 1.0 - lowest[#A#];
    @widen@@(2, 0.0, lowest, highest);
}
"""

_CLIPPED: Final = """\
static inline double @clipped@@(double p) {
    const double raised = p > 1e-7 ? p : 1e-7;
    return raised < 1.0 - 1e-7 ? raised : 1.0 - 1e-7;
}
"""

ONE_SIGMOID: Final = (
    _CLIPPED
    + """\
static inline void @one_share@@(double value, double bound, double *p, double *least, double *most) {
    double low, high;
    @around@@(value, bound, &low, &high);
    @sigmoid_ends@@(low, high, @prob_a@@[0], @prob_b@@[0], least, most);
    *p = @clipped@@(@sigmoid@@(value * @prob_a@@[0] + @prob_b@@[0]));
    *least = @clipped@@(*least);
    *most = @clipped@@(*most);
}
"""
)

# The second method of Wu, Lin and Weng (2004), in LIBSVM's order of operations.
COUPLED: Final = (
    _CLIPPED
    + """\
/* Q p, and whether p is close enough to a fixed point. */
static inline int @is_coupled@@(double q[][@n_labels], const double p[], double qp[], double *pqp) {
    double largest = 0.0;
    int t, j;
    *pqp = 0.0;
    for (t = 0; t < @n_labels; ++t) {
        qp[t] = 0.0;
        for (j = 0; j < @n_labels; ++j) qp[t] += q[t][j] * p[j];
        *pqp += p[t] * qp[t];
    }
    for (t = 0; t < @n_labels; ++t) {
        const double error = approxsvm_abs(qp[t] - *pqp);
        if (error > largest) largest = error;
    }
    return largest < 0.005 / (double)@n_labels;
}
/* Probabilities, coupled from those of pairs; of more than two classes nothing is known between 0 and 1. */
static inline void @shares@@(const double values[], const float bounds[], double p[], double lowest[],
                             double highest[]) {
    double q[@n_labels][@n_labels], qp[@n_labels], pqp;
    int pair = 0, sweep, t, j;
    for (t = 0; t < @n_labels; ++t) {
        for (j = t + 1; j < @n_labels; ++j, ++pair) {
            q[t][j] = @clipped@@(@sigmoid@@(values[pair] * @prob_a@@[pair] + @prob_b@@[pair]));
            q[j][t] = 1.0 - q[t][j];
        }
        q[t][t] = 0.0;
        p[t] = 1.0 / (double)@n_labels;
        lowest[t] = 0.0;
        highest[t] = 1.0;
    }
    if (@n_labels == 2) {
        double low, high;
        @around@@(values[0], (double)bounds[0], &low, &high);
        @sigmoid_ends@@(low, high, @prob_a@@[0], @prob_b@@[0], lowest, highest);
        lowest[0] = @clipped@@(lowest[0]);
        highest[0] = @clipped@@(highest[0]);
        lowest[1] = 1.0 - highest[0];
        highest[1] = 1.0 - lowest[0];
    }
    @widen@@(@n_labels, 0.005, lowest, highest);
    for (t = 0; t < @n_labels; ++t) {
        for (j = 0; j < @n_labels; ++j) q[t][t] += j == t ? 0.0 : q[j][t] * q[j][t];
    }
    for (t = 0; t < @n_labels; ++t) {
        for (j = t + 1; j < @n_labels; ++j) q[t][j] = q[j][t] = -q[j][t] * q[t][j];
    }
    for (sweep = 0; sweep < #SWEEPS# && !@is_coupled@@(q, p, qp, &pqp); ++sweep) {
        for (t = 0; t < @n_labels; ++t) {
            const double step = (-qp[t] + pqp) / q[t][t], scale = 1.0 + step;
            p[t] += step;
            pqp = (pqp + step * (step * q[t][t] + 2.0 * qp[t])) / scale / scale;
            for (j = 0; j < @n_labels; ++j) {
                qp[j] = (qp[j] + step * q[t][j]) / scale;
                p[j] /= scale;
            }
        }
    }
}
"""
)

CALIBRATED: Final = """\
/* A calibrator's share of a score; a sigmoid has its slope and intercept in place of knots and heights. */
static inline double @calibrated@@(int c, double score) {
    const double *const knots = @knots@@ + @knot_ends@@[c], *const heights = @heights@@ + @knot_ends@@[c];
    int left = 0, right = (int)@knot_ends@@[c + 1] - (int)@knot_ends@@[c];
    const int n = right;
    if (@is_sigmoid@@[c]) return @sigmoid@@(knots[0] * score + heights[0]);
    if (!(score >= knots[0])) return heights[0];
    while (right - left > 1) {
        const int middle = left + (right - left) / 2;
        if (score >= knots[middle]) {
            left = middle;
        } else {
            right = middle;
        }
    }
    if (left + 1 == n || !(heights[left + 1] > heights[left])) return heights[left];
    return heights[left] +
           (heights[left + 1] - heights[left]) / (knots[left + 1] - knots[left]) * (score - knots[left]);
}
static inline void @calibrated_ends@@(int c, double low, double high, double *least, double *most) {
    if (@is_sigmoid@@[c]) {
        @sigmoid_ends@@(low, high, @knots@@[@knot_ends@@[c]], @heights@@[@knot_ends@@[c]], least, most);
    } else {
        *least = @calibrated@@(c, low);
        *most = @calibrated@@(c, high);
    }
}
"""

ONE_CALIBRATED: Final = """\
static inline void @one_share@@(double value, double bound, double *p, double *least, double *most) {
    double low, high;
    @around@@(#SIGN#value, bound, &low, &high);
    *p = @calibrated@@(0, #SIGN#value);
    @calibrated_ends@@(0, low, high, least, most);
}
"""

SHARE_ENDS: Final = """\
/* Of all x between lo and hi, at least 0, x_c / sum(x): share_interval() of the core, with wider ends. */
static inline void @share_ends@@(double lo[], double hi[], double lowest[], double highest[]) {
    double sum_lo = 0.0, sum_hi = 0.0;
    int c;
    for (c = @n_labels - 1; c >= 0; --c) {
        lo[c] = lo[c] > 2e-300 ? lo[c] * (1.0 - 0x1p-44) : 0.0;
        hi[c] = hi[c] * (1.0 + 0x1p-44) + 1e-300;
        lowest[c] = sum_hi; /* of the classes behind */
        highest[c] = sum_lo;
        sum_lo += lo[c];
        sum_hi += hi[c];
    }
    sum_lo = sum_hi = 0.0;
    for (c = 0; c < @n_labels; ++c) {
        lowest[c] = lo[c] / (lo[c] + (sum_hi + lowest[c]));
        highest[c] = hi[c] / (hi[c] + (sum_lo + highest[c]));
        sum_lo += lo[c];
        sum_hi += hi[c];
    }
    @widen@@(@n_labels, 0.0, lowest, highest);
}
"""

OF_SCORES: Final = """\
    @scores@@(values, p);
    @score_ends@@(values, bounds, lo, hi);"""
OF_VALUES: Final = """\
    for (c = 0; c < @n_labels; ++c) {
        p[c] = values[c];
        @around@@(values[c], (double)bounds[c], &lo[c], &hi[c]);
    }"""

ALL_CALIBRATED: Final = """\
/* Probabilities, and between what those of the exact values lie. */
static inline void @shares@@(const double values[], const float bounds[], double p[], double lowest[],
                             double highest[]) {
    double lo[@n_labels], hi[@n_labels], total = 0.0;
    int c;
#INPUTS#
    for (c = 0; c < @n_labels; ++c) {
        const double low = lo[c], high = hi[c];
        @calibrated_ends@@(c, low, high, &lo[c], &hi[c]);
        p[c] = @calibrated@@(c, p[c]);
        total += p[c];
    }
    for (c = 0; c < @n_labels; ++c) p[c] = total > 0.0 ? p[c] / total : #POSITIVE#.0 / (double)@n_labels;
    @share_ends@@(lo, hi, lowest, highest);
}
"""

ONE_SOFTMAX: Final = """\
static inline void @one_share@@(double value, double bound, double *p, double *least, double *most) {
    double low, high;
    @around@@(value, bound, &low, &high);
    *p = @sigmoid@@(-2.0 * @inverse_temperature@@[0] * value);
    @sigmoid_ends@@(low, high, -2.0 * @inverse_temperature@@[0], 0.0, least, most);
}
"""

SOFTMAX: Final = """\
/* Probabilities, and between what those of the exact values lie. */
static inline void @shares@@(const double values[], const float bounds[], double p[], double lowest[],
                             double highest[]) {
    const double beta = @inverse_temperature@@[0];
    double lo[@n_labels], hi[@n_labels], top, most, scale = 0.0, total = 0.0;
    int c;
    @scores@@(values, p);
    @score_ends@@(values, bounds, lo, hi);
    top = beta * p[0];
    most = beta * hi[0];
    for (c = 0; c < @n_labels; ++c) {
        p[c] *= beta;
        lo[c] *= beta;
        hi[c] *= beta;
        top = p[c] > top ? p[c] : top;
        most = hi[c] > most ? hi[c] : most;
        scale = approxsvm_abs(lo[c]) > scale ? approxsvm_abs(lo[c]) : scale;
        scale = approxsvm_abs(hi[c]) > scale ? approxsvm_abs(hi[c]) : scale;
    }
    for (c = 0; c < @n_labels; ++c) {
        p[c] = approxsvm_exp(p[c] - top);
        total += p[c];
    }
    for (c = 0; c < @n_labels; ++c) p[c] /= total;
    if (scale < 1e300) {
        for (c = 0; c < @n_labels; ++c) {
            lo[c] = approxsvm_exp(lo[c] - most - 0x1p-48 * scale);
            hi[c] = approxsvm_exp(hi[c] - most + 0x1p-48 * scale);
        }
        @share_ends@@(lo, hi, lowest, highest);
    } else {
        for (c = 0; c < @n_labels; ++c) {
            lowest[c] = 0.0;
            highest[c] = 1.0;
        }
    }
}
"""

# A rising step function of the value, except for a 0 at exactly the last of ten marks.
DENSITY: Final = """\
static inline double @density@@(double value) {
    int i;
    if (value < @marks@@[0]) return 0.001;
    if (value > @marks@@[9]) return 0.999;
    for (i = 1; i < 10; ++i) {
        if (value < @marks@@[i]) return (double)i / 10.0;
    }
    return 0.0;
}
static inline void @one_share@@(double value, double bound, double *p, double *least, double *most) {
    double low, high;
    @around@@(value, bound, &low, &high);
    *p = @density@@(value);
    *least = @density@@(low);
    *most = @density@@(high);
    if (low <= @marks@@[9] && @marks@@[9] <= high) {
        *least = 0.0;
        *most = *most > 0.9 ? *most : 0.9;
    }
}
"""

# --- what programs call

PROBABILITIES: Final = """\
/* The probability of each label@NAN@. */
static inline void @probabilities(const @ROW@ row[], float probabilities[]) {
    double p[@n_labels], lowest[@n_labels], highest[@n_labels];
    int c;
    const int is_known = @row_shares@@(row, p, lowest, highest);
    for (c = 0; c < @n_labels; ++c) probabilities[c] = is_known ? (float)p[c] : approxsvm_nan32();
}
/* What |probability - that of the exact values| never exceeds, for each of @probabilities; 1 for @STRANGE@. */
static inline void @probability_bounds(const @ROW@ row[], float bounds[]) {
    double p[@n_labels], lowest[@n_labels], highest[@n_labels];
    int c;
    const int is_known = @row_shares@@(row, p, lowest, highest);
    for (c = 0; c < @n_labels; ++c) {
        const double above = highest[c] - p[c], below = p[c] - lowest[c];
        const double bound = is_known ? (above > below ? above : below) + 0x1p-23 : 1.0;
        bounds[c] = bound < 1.0 ? (float)(bound * (1.0 + 0x1p-22)) : 1.0f;
    }
}
"""

ROW_SHARES: Final = """\
/* Probabilities of a row, and between what they lie; 0 for @STRANGE@. */
static inline int @row_shares@@(const @ROW@ row[], double p[], double lowest[], double highest[]) {
    double values[@n_values];
    float bounds[@n_values];
    int c;
    for (c = 0; c < @n_labels; ++c) p[c] = lowest[c] = highest[c] = 0.0;
    if (!@evaluate@@(row, values, bounds)) return 0;
    @shares@@(values, bounds, p, lowest, highest);
    return 1;
}
"""

MOST_PROBABLE: Final = """\
static inline int @elected@@(const double p[]) {
    int best = 0, c;
    for (c = 1; c < @n_labels; ++c) best = p[c] > p[best] ? c : best;
    return best;
}
static inline int @is_elected@@(const double lowest[], const double highest[], int winner) {
    int c;
    for (c = 0; c < @n_labels; ++c) {
        if (c != winner && !(lowest[winner] > highest[c])) return 0;
    }
    return 1;
}
"""

THRESHOLD: Final = """\
static inline int @elected@@(const double p[]) { return p[#LABEL#] >= #THRESHOLD# ? #LABEL# : #OTHER#; }
static inline int @is_elected@@(const double lowest[], const double highest[], int winner) {
    return winner == #LABEL# ? lowest[#LABEL#] >= #THRESHOLD# : highest[#LABEL#] < #THRESHOLD#;
}
"""

LABEL: Final = """\
/* The position of a row's label, by its probability@ZERO@; whether it is proven to be the exact model's, -1 for
   @STRANGE@. */
static inline int @label@@(const @ROW@ row[], int *is_proven) {
    double p[@n_labels], lowest[@n_labels], highest[@n_labels];
    const int is_known = @row_shares@@(row, p, lowest, highest), winner = is_known ? @elected@@(p) : 0;
    if (is_proven) *is_proven = is_known ? @is_elected@@(lowest, highest, winner) : -1;
    return winner;
}
"""

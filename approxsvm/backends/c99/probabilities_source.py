"""C text of probabilities in an exported C99 header (probabilities.py); placeholders as in source.py."""

from __future__ import annotations

from typing import Final

from approxsvm.backends.c99.program import model_text

ENDS: Final = model_text("probabilities.h", "ENDS")

# Two classes: the probability of class #A# is known, with its interval.
TWO_SHARES: Final = """\
/* Probabilities, and bounds of the exact ones. */
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

_CLIPPED: Final = model_text("probabilities.h", "CLIPPED")

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

# The second method of Wu, Lin and Weng (2004), with LIBSVM's order of operations.
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
/* Probabilities, coupled from pairs of classes; with more than two classes, no bound is known but [0, 1]. */
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

CALIBRATED: Final = model_text("probabilities.h", "CALIBRATED")

ONE_CALIBRATED: Final = """\
static inline void @one_share@@(double value, double bound, double *p, double *least, double *most) {
    double low, high;
    @around@@(#SIGN#value, bound, &low, &high);
    *p = @calibrated@@(0, #SIGN#value);
    @calibrated_ends@@(0, low, high, least, most);
}
"""

SHARE_ENDS: Final = model_text("probabilities.h", "SHARE_ENDS")

OF_SCORES: Final = """\
    @scores@@(values, p);
    @score_ends@@(values, bounds, lo, hi);"""
OF_VALUES: Final = """\
    for (c = 0; c < @n_labels; ++c) {
        p[c] = values[c];
        @around@@(values[c], (double)bounds[c], &lo[c], &hi[c]);
    }"""

ALL_CALIBRATED: Final = """\
/* Probabilities, and bounds of the exact ones. */
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

ONE_SOFTMAX: Final = model_text("probabilities.h", "ONE_SOFTMAX")

SOFTMAX: Final = model_text("probabilities.h", "SOFTMAX")

# An increasing step function of the value, except for a 0 exactly at the last of ten marks.
DENSITY: Final = model_text("probabilities.h", "DENSITY")

# --- public functions

PROBABILITIES: Final = model_text("probabilities.h", "PROBABILITIES")

ROW_SHARES: Final = model_text("probabilities.h", "ROW_SHARES")

MOST_PROBABLE: Final = model_text("probabilities.h", "MOST_PROBABLE")

THRESHOLD: Final = """\
static inline int @elected@@(const double p[]) { return p[#LABEL#] >= #THRESHOLD# ? #LABEL# : #OTHER#; }
static inline int @is_elected@@(const double lowest[], const double highest[], int winner) {
    return winner == #LABEL# ? lowest[#LABEL#] >= #THRESHOLD# : highest[#LABEL#] < #THRESHOLD#;
}
"""

LABEL: Final = model_text("probabilities.h", "LABEL_BY_SHARES")

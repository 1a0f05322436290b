/* Class probabilities: for each kind KIND in artifact/schema.inc,

       approxsvm_KIND(outputs, values, probabilities, room)
       approxsvm_KIND_ends(outputs, values, bounds, lowest, highest, room)

   compute the probabilities, and intervals that contain the probabilities for the exact values (in the sense of
   scores.h). The array `room` is scratch space for APPROXSVM_SCRATCH_KIND doubles.

   All functions but one are monotone in each value or score, so the endpoints of the intervals of values or scores map
   to the endpoints of the probability intervals. The functions widen these intervals by more than their own rounding
   errors. The core uses the C library's exp, and LIBSVM's and scikit-learn's order of operations, so that probabilities
   are bit-identical to theirs. */
#ifndef APPROXSVM_PROGRAM_PROBABILITIES_H
#define APPROXSVM_PROGRAM_PROBABILITIES_H
#include "functions.h"
#include "scores.h"
#ifndef APPROXSVM_EXP /* exp(x) within 4 u, or within 2^-1020 */
#define APPROXSVM_EXP approxsvm_exp
#endif
#ifndef APPROXSVM_COUNT /* number of knots, from a calibrator's data */
#define APPROXSVM_COUNT (int)
#endif

/* 1 / (1 + exp(x)), by a formula that neither overflows nor loses small probabilities. */
APPROXSVM_ANSWER double approxsvm_sigmoid(double x) {
    const double e = APPROXSVM_EXP(x < 0.0 ? x : -x);
    return x >= 0.0 ? e / (1.0 + e) : 1.0 / (1.0 + e);
}

/* The interval of 1 / (1 + exp(slope f + intercept)). The terms slope f and intercept may be large and cancel. In that
   case, the rounding of slope f matters, and it depends on whether the compiler fuses the product with the sum. */
APPROXSVM_ANSWER approxsvm_interval approxsvm_sigmoid_ends(approxsvm_interval f, double slope, double intercept) {
    const double below = slope * (slope < 0.0 ? f.highest : f.lowest);
    const double above = slope * (slope < 0.0 ? f.lowest : f.highest);
    const double size = approxsvm_abs(intercept), low = below + intercept, high = above + intercept;
    const double least =
        !APPROXSVM_CHECKS || approxsvm_is_finite(low) ? low - 0x1p-51 * (approxsvm_abs(below) + size) : low;
    const double most =
        !APPROXSVM_CHECKS || approxsvm_is_finite(high) ? high + 0x1p-51 * (approxsvm_abs(above) + size) : high;
    const int is_known = least <= most; /* false for infinity times 0 */
    approxsvm_interval p;
    p.lowest = is_known ? approxsvm_sigmoid(most) : 0.0;
    p.highest = is_known ? approxsvm_sigmoid(least) : 1.0;
    return p;
}

/* Widens intervals by the rounding errors of their endpoints and of the probabilities. These come from sums over all
   classes (share_ends), or are a few units in the last place of values of at most 1. */
APPROXSVM_ANSWER void approxsvm_widen(int n, double extra, double* lowest, double* highest) {
    const double slack = (16.0 + 4.0 * (double)n) * 0x1p-53 + extra;
    int c;
    for (c = 0; c < n; ++c) {
        lowest[c] = lowest[c] > slack ? lowest[c] - slack : 0.0;
        highest[c] = highest[c] < 1.0 - slack ? highest[c] + slack : 1.0;
    }
}

/* Fills the intervals of both classes from the interval of one of them. */
APPROXSVM_ANSWER void approxsvm_two_ends(approxsvm_interval p, int of_class, double extra, double* lowest,
                                         double* highest) {
    lowest[of_class] = p.lowest;
    highest[of_class] = p.highest;
    lowest[1 - of_class] = 1.0 - p.highest;
    highest[1 - of_class] = 1.0 - p.lowest;
    approxsvm_widen(2, extra, lowest, highest);
}

/* Stores intervals without information, which approxsvm_widen limits to 0 and 1. */
APPROXSVM_ANSWER void approxsvm_unknown_ends(int n, double* lowest, double* highest) {
    int c;
    for (c = 0; c < n; ++c) {
        lowest[c] = -1.0;
        highest[c] = 2.0;
    }
    approxsvm_widen(n, 0.0, lowest, highest);
}

/* Intervals of x_c / sum(x) over all x between lo and hi, which are at least 0; [0, 1] if the sum may be 0. The
   function first widens `lo` and `hi` by their relative rounding and for the underflow of exp, so no `hi` is 0
   afterwards.

   Let `others` be the sum of the other values. Then x_c / (x_c + others) is increasing in x_c and decreasing in
   `others`, which is the sum before x_c plus the sum after it, because subtracting x_c from the total could cancel
   digits. Each value passes through n - 1 additions of nonnegative values, and one division: the relative errors of an
   endpoint and of a probability are at most n u, in whatever order the values are added. Because no probability exceeds
   1, both errors together are below 4 n u, by which widen enlarges intervals. */
APPROXSVM_ANSWER void approxsvm_share_ends(int n, double* lo, double* hi, double* lowest, double* highest) {
    const double wider = 0x1p-50, tiny = 0x1p-1020;
    double sum_lo = 0.0, sum_hi = 0.0;
    int c;
    for (c = n - 1; c >= 0; --c) {
        const double low = lo[c] * (1.0 - wider) - tiny;
        lo[c] = low > 0.0 ? low : 0.0;
        hi[c] = hi[c] * (1.0 + wider) + tiny;
        lowest[c] = sum_hi; /* sum over the classes after c */
        highest[c] = sum_lo;
        sum_lo += lo[c];
        sum_hi += hi[c];
    }
    sum_lo = sum_hi = 0.0;
    for (c = 0; c < n; ++c) {
        lowest[c] = lo[c] / (lo[c] + (sum_hi + lowest[c]));
        highest[c] = hi[c] / (hi[c] + (sum_lo + highest[c]));
        sum_lo += lo[c];
        sum_hi += hi[c];
    }
    approxsvm_widen(n, 0.0, lowest, highest);
}

/* --- pairwise_sigmoid: LIBSVM's probabilities. Probabilities of two classes are coupled only if `positive` is set:
   scikit-learn's copy of LIBSVM does so, and the result may differ from the sigmoid by up to
   APPROXSVM_COUPLING_TOLERANCE. */
#define APPROXSVM_SCRATCH_pairwise_sigmoid(n) ((n) * ((n) + 1))

/* LIBSVM's constants. Pairwise probabilities keep a distance of APPROXSVM_LEAST_PAIR from 0 and 1. Coupling ends when
   the classes differ by less than the tolerance divided by n, or after the larger of APPROXSVM_COUPLING_SWEEPS and n
   sweeps. */
#define APPROXSVM_LEAST_PAIR 1e-7
#define APPROXSVM_COUPLING_TOLERANCE 0.005
#define APPROXSVM_COUPLING_SWEEPS 100

/* Clips a probability away from 0 and 1. NaN is replaced by the smallest probability. */
APPROXSVM_PROGRAM double approxsvm_clipped(double p) {
    const double raised = p > APPROXSVM_LEAST_PAIR ? p : APPROXSVM_LEAST_PAIR;
    return raised < 1.0 - APPROXSVM_LEAST_PAIR ? raised : 1.0 - APPROXSVM_LEAST_PAIR;
}

/* Turns q[i][j] = P(i given i or j) into the matrix Q of Wu, Lin and Weng, in place: Q_tt = sum over j != t of q_jt^2,
   Q_tj = -q_jt q_tj. */
APPROXSVM_ANSWER void approxsvm_make_coupling_matrix(int n, double* q) {
    int t, j;
    for (t = 0; t < n; ++t) {
        double sum = 0.0;
        for (j = 0; j < n; ++j) {
            if (j != t) sum += q[j * n + t] * q[j * n + t];
        }
        q[t * n + t] = sum;
    }
    for (t = 0; t < n; ++t) {
        for (j = t + 1; j < n; ++j) q[t * n + j] = q[j * n + t] = -q[j * n + t] * q[t * n + j];
    }
}

/* Computes qp = Q p and p Q p; returns whether p is close enough to a fixed point. */
APPROXSVM_ANSWER int approxsvm_is_coupled(int n, const double* q, const double* p, double* qp, double* pqp) {
    double product = 0.0, largest = 0.0;
    int t, j;
    for (t = 0; t < n; ++t, q += n) {
        double sum = 0.0;
        for (j = 0; j < n; ++j) sum += q[j] * p[j];
        qp[t] = sum;
        product += p[t] * sum;
    }
    for (t = 0; t < n; ++t) {
        const double error = approxsvm_abs(qp[t] - product);
        largest = error > largest ? error : largest;
    }
    *pqp = product;
    return largest < APPROXSVM_COUPLING_TOLERANCE / (double)n;
}

/* Probabilities of n classes from pairwise probabilities: the second method of Wu, Lin and Weng, "Probability estimates
   for multi-class classification by pairwise coupling" (JMLR 2004), which minimizes sum_ij (q_ji p_i - q_ij p_j)^2.
   `q`, (n, n) with an arbitrary diagonal, is overwritten; `qp` is scratch space for n doubles. */
APPROXSVM_ANSWER void approxsvm_couple(int n, double* q, double* qp, double* p) {
    const int n_sweeps = n > APPROXSVM_COUPLING_SWEEPS ? n : APPROXSVM_COUPLING_SWEEPS;
    double pqp;
    int sweep, t, j;
    approxsvm_make_coupling_matrix(n, q);
    for (t = 0; t < n; ++t) p[t] = 1.0 / (double)n;
    for (sweep = 0; sweep < n_sweeps && !approxsvm_is_coupled(n, q, p, qp, &pqp); ++sweep) {
        const double* row = q;
        for (t = 0; t < n; ++t, row += n) {
            const double diagonal = row[t], step = (-qp[t] + pqp) / diagonal, scale = 1.0 + step;
            p[t] += step;
            pqp = (pqp + step * (step * diagonal + 2.0 * qp[t])) / scale / scale;
            for (j = 0; j < n; ++j) {
                qp[j] = (qp[j] + step * row[j]) / scale;
                p[j] /= scale;
            }
        }
    }
}

APPROXSVM_ANSWER void approxsvm_pairwise_sigmoid(const approxsvm_outputs* o, const double* values, double* p,
                                                 double* room) {
    const int n = APPROXSVM_N_CLASSES(o), n_pairs = n * (n - 1) / 2;
    int pair = 0, i, j;
    for (i = 0; i < n; ++i) {
        for (j = i + 1; j < n; ++j, ++pair) {
            const double share =
                approxsvm_clipped(approxsvm_sigmoid(values[pair] * o->numbers[pair] + o->numbers[n_pairs + pair]));
            room[i * n + j] = share;
            room[j * n + i] = 1.0 - share;
        }
    }
    if (n != 2) {
        approxsvm_couple(n, room, room + n * n, p);
    } else if (APPROXSVM_IS_POSITIVE(o)) {
        approxsvm_couple(2, room, room + 4, p); /* compilers unroll loops over two classes */
    } else {
        p[0] = room[1];
        p[1] = room[2];
    }
}

/* With three or more classes, the smallest change of a value can change the number of coupling sweeps, so the intervals
   are [0, 1]. */
APPROXSVM_ANSWER void approxsvm_pairwise_sigmoid_ends(const approxsvm_outputs* o, const double* values,
                                                      const APPROXSVM_BOUND* bounds, double* lowest, double* highest,
                                                      double* room) {
    approxsvm_interval p;
    (void)room;
    if (APPROXSVM_N_CLASSES(o) > 2) {
        approxsvm_unknown_ends(APPROXSVM_N_CLASSES(o), lowest, highest);
        return;
    }
    p = approxsvm_sigmoid_ends(approxsvm_around(values[0], (double)bounds[0]), o->numbers[0], o->numbers[1]);
    p.lowest = approxsvm_clipped(p.lowest);
    p.highest = approxsvm_clipped(p.highest);
    approxsvm_two_ends(p, 0, APPROXSVM_IS_POSITIVE(o) ? APPROXSVM_COUPLING_TOLERANCE : 0.0, lowest, highest);
}

/* --- one_vs_rest_calibration: one calibrator per class, with normalized results, or, with two classes, one calibrator
   for the class `positive`. A calibrator is stored as the number of knots, all knots and all heights or, without knots,
   the slope and intercept of a sigmoid. */
#define APPROXSVM_SCRATCH_one_vs_rest_calibration(n) (5 * (n))

/* Interpolates by numpy.interp's formula: constant outside the knots, exact at knots, and interpolated from the left
   knot between knots. */
APPROXSVM_ANSWER double approxsvm_interpolate(int n, const double* knots, const double* heights, double x) {
    int left = 0, right = n; /* knots[left] <= x < knots[right] */
    double slope;
    if (!(x >= knots[0])) return x == x ? heights[0] : x;
    while (right - left > 1) {
        const int middle = left + (right - left) / 2, is_beyond = x >= knots[middle];
        left = is_beyond ? middle : left;
        right = is_beyond ? right : middle;
    }
    /* Knots with equal heights may be so far apart that their distance overflows. */
    if (left + 1 == n || knots[left] == x || heights[left + 1] == heights[left]) return heights[left];
    slope = (heights[left + 1] - heights[left]) / (knots[left + 1] - knots[left]);
    return slope * (x - knots[left]) + heights[left];
}

APPROXSVM_ANSWER double approxsvm_calibrated(const double* calibrator, double value) {
    const int n = APPROXSVM_COUNT(calibrator[0]);
    if (n == 0) return approxsvm_sigmoid(value * calibrator[1] + calibrator[2]);
    return approxsvm_interpolate(n, calibrator + 1, calibrator + 1 + n, value);
}

APPROXSVM_ANSWER approxsvm_interval approxsvm_calibrated_ends(const double* calibrator, approxsvm_interval f) {
    approxsvm_interval p;
    if (APPROXSVM_COUNT(calibrator[0]) == 0) return approxsvm_sigmoid_ends(f, calibrator[1], calibrator[2]);
    p.lowest = approxsvm_calibrated(calibrator, f.lowest);
    p.highest = approxsvm_calibrated(calibrator, f.highest);
    return p;
}

APPROXSVM_PROGRAM const double* approxsvm_next_calibrator(const double* calibrator) {
    const int n = APPROXSVM_COUNT(calibrator[0]);
    return calibrator + 1 + (n == 0 ? 2 : 2 * n);
}

/* scikit-learn's limit on the amount by which isotonic probabilities exceed 1 because of rounding. */
#define APPROXSVM_MAX_EXCESS 1e-5

APPROXSVM_PROGRAM double approxsvm_without_excess(double p) {
    return p > 1.0 && p <= 1.0 + APPROXSVM_MAX_EXCESS ? 1.0 : p;
}

/* If the probabilities of several classes are all 0, they become equal if `positive` is set, and remain 0 otherwise. */
APPROXSVM_ANSWER void approxsvm_one_vs_rest_calibration(const approxsvm_outputs* o, const double* values, double* p,
                                                        double* room) {
    const int n = APPROXSVM_N_CLASSES(o), positive = APPROXSVM_IS_POSITIVE(o);
    const double *next = o->numbers, *inputs = values;
    double total = 0.0;
    int c;
    if (n == 2) {
        const double share = approxsvm_calibrated(next, positive ? -values[0] : values[0]);
        p[positive] = approxsvm_without_excess(share);
        p[1 - positive] = 1.0 - p[positive];
        return;
    }
    if (!APPROXSVM_IS_OF_VALUES(o)) {
        approxsvm_scores(o, values, room, room + n);
        inputs = room;
    }
    for (c = 0; c < n; ++c, next = approxsvm_next_calibrator(next)) {
        p[c] = approxsvm_calibrated(next, inputs[c]);
        total += p[c];
    }
    for (c = 0; c < n; ++c) {
        p[c] = total == 0.0 ? (positive ? 1.0 / (double)n : 0.0) : approxsvm_without_excess(p[c] / total);
    }
}

APPROXSVM_ANSWER void approxsvm_one_vs_rest_calibration_ends(const approxsvm_outputs* o, const double* values,
                                                             const APPROXSVM_BOUND* bounds, double* lowest,
                                                             double* highest, double* room) {
    const int n = APPROXSVM_N_CLASSES(o);
    const double* next = o->numbers;
    double *const lo = room, *const hi = room + n;
    int c;
    if (n == 2) {
        const approxsvm_interval f =
            approxsvm_around(APPROXSVM_IS_POSITIVE(o) ? -values[0] : values[0], (double)bounds[0]);
        approxsvm_two_ends(approxsvm_calibrated_ends(next, f), APPROXSVM_IS_POSITIVE(o), 0.0, lowest, highest);
        return;
    }
    if (!APPROXSVM_IS_OF_VALUES(o)) approxsvm_score_ends(o, values, bounds, lo, hi, hi + n);
    for (c = 0; c < n; ++c, next = approxsvm_next_calibrator(next)) {
        approxsvm_interval f;
        if (APPROXSVM_IS_OF_VALUES(o)) {
            f = approxsvm_around(values[c], (double)bounds[c]);
        } else {
            f.lowest = lo[c];
            f.highest = hi[c];
        }
        f = approxsvm_calibrated_ends(next, f);
        lo[c] = f.lowest;
        hi[c] = f.highest;
    }
    approxsvm_share_ends(n, lo, hi, lowest, highest);
}

/* --- temperature_calibration: softmax(inverse_temperature * scores); with two classes, the scores are f and -f */
#define APPROXSVM_SCRATCH_temperature_calibration(n) (5 * (n))

APPROXSVM_ANSWER void approxsvm_temperature_calibration(const approxsvm_outputs* o, const double* values, double* p,
                                                        double* room) {
    const int n = APPROXSVM_N_CLASSES(o);
    const double beta = o->numbers[0];
    double best, largest, total = 0.0;
    int overflows, c;
    if (n == 2) { /* the same result for either class order */
        p[0] = values[0];
        p[1] = -values[0];
    } else {
        approxsvm_scores(o, values, p, room);
    }
    best = p[approxsvm_first_largest(n, p)];
    largest = beta * best;
    overflows = !approxsvm_is_finite(largest); /* in this case, the largest score is subtracted first */
    for (c = 0; c < n; ++c) {
        p[c] = APPROXSVM_EXP(overflows ? beta * (p[c] - best) : beta * p[c] - largest);
        total += p[c];
    }
    for (c = 0; c < n; ++c) p[c] /= total;
}

APPROXSVM_ANSWER void approxsvm_temperature_calibration_ends(const approxsvm_outputs* o, const double* values,
                                                             const APPROXSVM_BOUND* bounds, double* lowest,
                                                             double* highest, double* room) {
    const int n = APPROXSVM_N_CLASSES(o);
    const double beta = o->numbers[0];
    double *const lo = room, *const hi = room + n;
    double top = -approxsvm_infinity(), scale = 0.0;
    int c;
    if (n == 2) {
        const approxsvm_interval f = approxsvm_around(values[0], (double)bounds[0]);
        approxsvm_two_ends(approxsvm_sigmoid_ends(f, -2.0 * beta, 0.0), 0, 0.0, lowest, highest);
        return;
    }
    approxsvm_score_ends(o, values, bounds, lo, hi, hi + n);
    for (c = 0; c < n; ++c) {
        lo[c] *= beta;
        hi[c] *= beta;
        top = hi[c] > top ? hi[c] : top;
        scale = approxsvm_abs(lo[c]) > scale ? approxsvm_abs(lo[c]) : scale;
        scale = approxsvm_abs(hi[c]) > scale ? approxsvm_abs(hi[c]) : scale;
    }
    if (!approxsvm_is_finite(scale)) {
        approxsvm_unknown_ends(n, lowest, highest);
        return;
    }
    /* Here, and in the computation of the probabilities, the errors of products and differences are at most a few
       roundings of the largest product. */
    for (c = 0; c < n; ++c) {
        lo[c] = APPROXSVM_EXP(lo[c] - top - 0x1p-50 * scale);
        hi[c] = APPROXSVM_EXP(hi[c] - top + 0x1p-50 * scale);
    }
    approxsvm_share_ends(n, lo, hi, lowest, highest);
}

/* --- members_mean: weighted sums of the members' probabilities, divided by the total weight. */
#define APPROXSVM_SCRATCH_members_mean(n) 1

APPROXSVM_ANSWER void approxsvm_members_mean(const approxsvm_outputs* o, const double* values, double* p,
                                             double* room) {
    int c;
    (void)room;
    for (c = 0; c < APPROXSVM_N_CLASSES(o); ++c) p[c] = values[c] / o->numbers[0];
}

/* The bound on a sum covers the rounding of the total weight and of the quotient (ensembles.h). */
APPROXSVM_ANSWER void approxsvm_members_mean_ends(const approxsvm_outputs* o, const double* values,
                                                  const APPROXSVM_BOUND* bounds, double* lowest, double* highest,
                                                  double* room) {
    int c;
    (void)room;
    for (c = 0; c < APPROXSVM_N_CLASSES(o); ++c) {
        const approxsvm_interval sum = approxsvm_around(values[c], (double)bounds[c]);
        lowest[c] = sum.lowest / o->numbers[0];
        highest[c] = sum.highest / o->numbers[0];
    }
    approxsvm_widen(APPROXSVM_N_CLASSES(o), 0.0, lowest, highest);
}

/* --- density_marks: LIBSVM's probability that a row is an inlier of a one-class model. It depends on the bin, between
   ten ascending marks, that contains the row's value. LIBSVM returns 0 at exactly the last mark and for NaN. */
#define APPROXSVM_SCRATCH_density_marks(n) 1
#define APPROXSVM_N_MARKS 10

APPROXSVM_ANSWER double approxsvm_inlier(double value, const double* marks) {
    int i;
    if (value < marks[0]) return 0.001;
    if (value > marks[APPROXSVM_N_MARKS - 1]) return 0.999;
    for (i = 1; i < APPROXSVM_N_MARKS; ++i) {
        if (value < marks[i]) return (double)i / (double)APPROXSVM_N_MARKS;
    }
    return 0.0;
}

APPROXSVM_ANSWER void approxsvm_density_marks(const approxsvm_outputs* o, const double* values, double* p,
                                              double* room) {
    (void)room;
    p[0] = approxsvm_inlier(values[0], o->numbers);
    p[1] = 1.0 - p[0];
}

APPROXSVM_ANSWER void approxsvm_density_marks_ends(const approxsvm_outputs* o, const double* values,
                                                   const APPROXSVM_BOUND* bounds, double* lowest, double* highest,
                                                   double* room) {
    const double last = o->numbers[APPROXSVM_N_MARKS - 1];
    const approxsvm_interval f = approxsvm_around(values[0], (double)bounds[0]);
    approxsvm_interval p;
    (void)room;
    p.lowest = approxsvm_inlier(f.lowest, o->numbers);
    p.highest = approxsvm_inlier(f.highest, o->numbers);
    if (f.lowest <= last && last <= f.highest) { /* elsewhere, the function is a non-decreasing step function */
        p.lowest = 0.0;
        p.highest = p.highest > 0.9 ? p.highest : 0.9;
    }
    approxsvm_two_ends(p, 0, 0.0, lowest, highest);
}

#endif

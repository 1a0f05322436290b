/* Probabilities in exported headers, and bounds of their errors. `model` is a placeholder for the header's name, and
   a header contains only the parts that its model needs (backends/c99/program.py). */

#ifdef MODEL_ENDS
/* 1 / (1 + exp(x)). */
static inline double model_sigmoid_(double x) {
    const double e = approxsvm_exp(x < 0.0 ? x : -x);
    return x >= 0.0 ? e / (1.0 + e) : 1.0 / (1.0 + e);
}
/* The interval of the exact value. */
static inline void model_around_(double value, double bound, double* low, double* high) {
    const double reach = bound * (1.0 + 0x1p-40) + 0x1p-50 * approxsvm_abs(value);
    *low = value - reach;
    *high = value + reach;
}
/* The interval of 1 / (1 + exp(slope f + intercept)) for all f from low to high; large terms may cancel. */
static inline void model_sigmoid_ends_(double low, double high, double slope, double intercept, double* least,
                                       double* most) {
    const double below = slope * (slope < 0.0 ? high : low), above = slope * (slope < 0.0 ? low : high);
    const double from = below + intercept - 0x1p-50 * (approxsvm_abs(below) + approxsvm_abs(intercept));
    const double to = above + intercept + 0x1p-50 * (approxsvm_abs(above) + approxsvm_abs(intercept));
    const int is_known = from <= to; /* false after infinity times zero */
    *least = is_known ? model_sigmoid_(to) : 0.0;
    *most = is_known ? model_sigmoid_(from) : 1.0;
}
/* Widens intervals by the rounding of probabilities and by `slack`. */
static inline void model_widen_(int n, double slack, double lowest[], double highest[]) {
    int c;
    slack += (256.0 + 16.0 * (double)n) * 0x1p-53;
    for (c = 0; c < n; ++c) {
        lowest[c] = lowest[c] > slack ? lowest[c] - slack : 0.0;
        highest[c] = highest[c] < 1.0 - slack ? highest[c] + slack : 1.0;
    }
}
#endif

#ifdef MODEL_CLIPPED
static inline double model_clipped_(double p) {
    const double raised = p > 1e-7 ? p : 1e-7;
    return raised < 1.0 - 1e-7 ? raised : 1.0 - 1e-7;
}
#endif

#ifdef MODEL_CALIBRATED
/* The calibrated probability of a score; a sigmoid has slope and intercept in place of knots and heights. */
static inline double model_calibrated_(int c, double score) {
    const double *const knots = model_knots_ + model_knot_ends_[c], *const heights =
                                                                        model_heights_ + model_knot_ends_[c];
    int left = 0, right = (int)model_knot_ends_[c + 1] - (int)model_knot_ends_[c];
    const int n = right;
    if (model_is_sigmoid_[c]) return model_sigmoid_(knots[0] * score + heights[0]);
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
static inline void model_calibrated_ends_(int c, double low, double high, double* least, double* most) {
    if (model_is_sigmoid_[c]) {
        model_sigmoid_ends_(low, high, model_knots_[model_knot_ends_[c]], model_heights_[model_knot_ends_[c]], least,
                            most);
    } else {
        *least = model_calibrated_(c, low);
        *most = model_calibrated_(c, high);
    }
}
#endif

#ifdef MODEL_SHARE_ENDS
/* Intervals of x_c / sum(x) over all x between lo >= 0 and hi: share_interval() of the core, with wider ends. */
static inline void model_share_ends_(double lo[], double hi[], double lowest[], double highest[]) {
    double sum_lo = 0.0, sum_hi = 0.0;
    int c;
    for (c = model_n_labels - 1; c >= 0; --c) {
        lo[c] = lo[c] > 2e-300 ? lo[c] * (1.0 - 0x1p-44) : 0.0;
        hi[c] = hi[c] * (1.0 + 0x1p-44) + 1e-300;
        lowest[c] = sum_hi; /* sum over the classes after c */
        highest[c] = sum_lo;
        sum_lo += lo[c];
        sum_hi += hi[c];
    }
    sum_lo = sum_hi = 0.0;
    for (c = 0; c < model_n_labels; ++c) {
        lowest[c] = lo[c] / (lo[c] + (sum_hi + lowest[c]));
        highest[c] = hi[c] / (hi[c] + (sum_lo + highest[c]));
        sum_lo += lo[c];
        sum_hi += hi[c];
    }
    model_widen_(model_n_labels, 0.0, lowest, highest);
}
#endif

#ifdef MODEL_ONE_SOFTMAX
static inline void model_one_share_(double value, double bound, double* p, double* least, double* most) {
    double low, high;
    model_around_(value, bound, &low, &high);
    *p = model_sigmoid_(-2.0 * model_inverse_temperature_[0] * value);
    model_sigmoid_ends_(low, high, -2.0 * model_inverse_temperature_[0], 0.0, least, most);
}
#endif

#ifdef MODEL_SOFTMAX
/* Probabilities, and intervals of the exact ones. */
static inline void model_shares_(const double values[], const float bounds[], double p[], double lowest[],
                                 double highest[]) {
    const double beta = model_inverse_temperature_[0];
    double lo[model_n_labels], hi[model_n_labels], top, most, scale = 0.0, total = 0.0;
    int c;
    model_scores_(values, p);
    model_score_ends_(values, bounds, lo, hi);
    top = beta * p[0];
    most = beta * hi[0];
    for (c = 0; c < model_n_labels; ++c) {
        p[c] *= beta;
        lo[c] *= beta;
        hi[c] *= beta;
        top = p[c] > top ? p[c] : top;
        most = hi[c] > most ? hi[c] : most;
        scale = approxsvm_abs(lo[c]) > scale ? approxsvm_abs(lo[c]) : scale;
        scale = approxsvm_abs(hi[c]) > scale ? approxsvm_abs(hi[c]) : scale;
    }
    for (c = 0; c < model_n_labels; ++c) {
        p[c] = approxsvm_exp(p[c] - top);
        total += p[c];
    }
    for (c = 0; c < model_n_labels; ++c) p[c] /= total;
    if (scale < 1e300) {
        for (c = 0; c < model_n_labels; ++c) {
            lo[c] = approxsvm_exp(lo[c] - most - 0x1p-48 * scale);
            hi[c] = approxsvm_exp(hi[c] - most + 0x1p-48 * scale);
        }
        model_share_ends_(lo, hi, lowest, highest);
    } else {
        for (c = 0; c < model_n_labels; ++c) {
            lowest[c] = 0.0;
            highest[c] = 1.0;
        }
    }
}
#endif

#ifdef MODEL_DENSITY
static inline double model_density_(double value) {
    int i;
    if (value < model_marks_[0]) return 0.001;
    if (value > model_marks_[9]) return 0.999;
    for (i = 1; i < 10; ++i) {
        if (value < model_marks_[i]) return (double)i / 10.0;
    }
    return 0.0;
}
static inline void model_one_share_(double value, double bound, double* p, double* least, double* most) {
    double low, high;
    model_around_(value, bound, &low, &high);
    *p = model_density_(value);
    *least = model_density_(low);
    *most = model_density_(high);
    if (low <= model_marks_[9] && model_marks_[9] <= high) {
        *least = 0.0;
        *most = *most > 0.9 ? *most : 0.9;
    }
}
#endif

#ifdef MODEL_PROBABILITIES
/* The probability of each label@NAN@. */
static inline void model_probabilities(const model_ROW row[], float probabilities[]) {
    double p[model_n_labels], lowest[model_n_labels], highest[model_n_labels];
    int c;
    const int is_known = model_row_shares_(row, p, lowest, highest);
    for (c = 0; c < model_n_labels; ++c) probabilities[c] = is_known ? (float)p[c] : approxsvm_nan32();
}
/* Upper bounds of |probability - exact probability|, for each of model_probabilities; 1 for @STRANGE@. */
static inline void model_probability_bounds(const model_ROW row[], float bounds[]) {
    double p[model_n_labels], lowest[model_n_labels], highest[model_n_labels];
    int c;
    const int is_known = model_row_shares_(row, p, lowest, highest);
    for (c = 0; c < model_n_labels; ++c) {
        const double above = highest[c] - p[c], below = p[c] - lowest[c];
        const double bound = is_known ? (above > below ? above : below) + 0x1p-23 : 1.0;
        bounds[c] = bound < 1.0 ? (float)(bound * (1.0 + 0x1p-22)) : 1.0f;
    }
}
#endif

#ifdef MODEL_ROW_SHARES
/* Probabilities of a row and their intervals; returns 0 for @STRANGE@. */
static inline int model_row_shares_(const model_ROW row[], double p[], double lowest[], double highest[]) {
    double values[model_n_values];
    float bounds[model_n_values];
    int c;
    for (c = 0; c < model_n_labels; ++c) p[c] = lowest[c] = highest[c] = 0.0;
    if (!model_evaluate_(row, values, bounds)) return 0;
    model_shares_(values, bounds, p, lowest, highest);
    return 1;
}
#endif

#ifdef MODEL_MOST_PROBABLE
static inline int model_elected_(const double p[]) {
    int best = 0, c;
    for (c = 1; c < model_n_labels; ++c) best = p[c] > p[best] ? c : best;
    return best;
}
static inline int model_is_elected_(const double lowest[], const double highest[], int winner) {
    int c;
    for (c = 0; c < model_n_labels; ++c) {
        if (c != winner && !(lowest[winner] > highest[c])) return 0;
    }
    return 1;
}
#endif

#ifdef MODEL_LABEL_BY_SHARES
/* The position of a row's label, by its probability@ZERO@; is_proven tells whether it is proven to be the exact
   model's, -1 for @STRANGE@. */
static inline int model_label_(const model_ROW row[], int* is_proven) {
    double p[model_n_labels], lowest[model_n_labels], highest[model_n_labels];
    const int is_known = model_row_shares_(row, p, lowest, highest), winner = is_known ? model_elected_(p) : 0;
    if (is_proven) *is_proven = is_known ? model_is_elected_(lowest, highest, winner) : -1;
    return winner;
}
#endif

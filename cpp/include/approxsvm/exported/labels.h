/* Labels of one model in exported headers, and their certificates. `model` is a placeholder for the header's name,
   and a header contains only the parts that its model needs (backends/c99/program.py). */

#ifdef MODEL_VOTES
/* The first class with the most votes; a value above 0 is a vote for the first class of its pair. */
static inline int model_winner_(const double values[]) {
    int votes[model_n_labels];
    int pair = 0, best = 0, i, j;
    for (i = 0; i < model_n_labels; ++i) {
        int own = i > 0 ? votes[i] : 0;
        for (j = i + 1; j < model_n_labels; ++j, ++pair) {
            const int first = values[pair] > 0.0;
            own += first;
            votes[j] = (i > 0 ? votes[j] : 0) + !first;
        }
        votes[i] = own;
    }
    for (i = 1; i < model_n_labels; ++i) best = votes[i] > votes[best] ? i : best;
    return best;
}
/* Whether the winner is the same for every outcome of the pairs whose sign the bounds leave undecided. */
static inline int model_is_settled_(const double values[], const float bounds[], int winner) {
    int sure[model_n_labels], possible[model_n_labels];
    int pair = 0, i, j;
    for (i = 0; i < model_n_labels; ++i) {
        int own_sure = i > 0 ? sure[i] : 0, own_possible = i > 0 ? possible[i] : 0;
        for (j = i + 1; j < model_n_labels; ++j, ++pair) {
            const double bound = (double)bounds[pair];
            const int first = values[pair] > bound, second = values[pair] <= -bound;
            own_sure += first;
            own_possible += !second;
            sure[j] = (i > 0 ? sure[j] : 0) + second;
            possible[j] = (i > 0 ? possible[j] : 0) + !first;
        }
        sure[i] = own_sure;
        possible[i] = own_possible;
    }
    for (i = 0; i < model_n_labels; ++i) {
        if (i != winner && possible[i] + (i < winner) > sure[winner]) return 0;
    }
    return 1;
}
#endif

#ifdef MODEL_TWO_CLASSES
static inline int model_winner_(const double values[]) {
    return values[0] > 0.0 ? 0 : 1;
}
static inline int model_is_settled_(const double values[], const float bounds[], int winner) {
    const double bound = (double)bounds[0];
    return winner == 0 ? values[0] > bound : values[0] <= -bound;
}
#endif

#ifdef MODEL_SCORES
static inline double model_confidence_(double sum) {
    return sum / (3.0 * (approxsvm_abs(sum) + 1.0));
}
/* scikit-learn's scores, votes + s / (3 (|s| + 1)), s the sum of a class's values. */
static inline void model_scores_(const double values[], double scores[]) {
    double sums[model_n_labels];
    int pair = 0, i, j;
    for (i = 0; i < model_n_labels; ++i) {
        double own = i > 0 ? sums[i] : 0.0, own_votes = i > 0 ? scores[i] : 0.0;
        for (j = i + 1; j < model_n_labels; ++j, ++pair) {
            const int second = values[pair] < 0.0;
            own += values[pair];
            own_votes += !second;
            sums[j] = (i > 0 ? sums[j] : 0.0) - values[pair];
            scores[j] = (i > 0 ? scores[j] : 0.0) + second;
        }
        sums[i] = own;
        scores[i] = own_votes;
    }
    for (i = 0; i < model_n_labels; ++i) scores[i] += model_confidence_(sums[i]);
}
/* Intervals of the scores for all values within the bounds. */
static inline void model_score_ends_(const double values[], const float bounds[], double lowest[], double highest[]) {
    const double n = (double)model_n_labels, u = DBL_EPSILON;
    int c, i, j;
    for (c = 0; c < model_n_labels; ++c) {
        double sum = 0.0, spread = 0.0, least = 0.0, most = 0.0;
        int pair = 0;
        for (i = 0; i < model_n_labels; ++i) {
            for (j = i + 1; j < model_n_labels; ++j, ++pair) {
                const double value = c == i ? values[pair] : -values[pair], bound = (double)bounds[pair];
                if (c != i && c != j) continue;
                sum += value;
                spread += bound + 4.0 * n * u * (bound + approxsvm_abs(value));
                least += value > bound;
                most += !(value < -bound);
            }
        }
        if (spread <= 1e300) {
            lowest[c] = least + model_confidence_(sum - spread) - 8.0 * n * u;
            highest[c] = most + model_confidence_(sum + spread) + 8.0 * n * u;
        } else {
            lowest[c] = -DBL_MAX;
            highest[c] = DBL_MAX;
        }
    }
}
#endif

#ifdef MODEL_SCORES_OF_EACH
static inline void model_scores_(const double values[], double scores[]) {
    int c;
    for (c = 0; c < model_n_labels; ++c) scores[c] = values[c];
}
/* Intervals of the scores for all values within the bounds. */
static inline void model_score_ends_(const double values[], const float bounds[], double lowest[], double highest[]) {
    int c;
    for (c = 0; c < model_n_labels; ++c) {
        const double reach = (double)bounds[c] * (1.0 + 0x1p-40) + 0x1p-50 * approxsvm_abs(values[c]);
        lowest[c] = values[c] - reach;
        highest[c] = values[c] + reach;
    }
}
#endif

#ifdef MODEL_BEST_SCORE
/* The first class with the best score. */
static inline int model_winner_(const double values[]) {
    double scores[model_n_labels];
    int best = 0, c;
    model_scores_(values, scores);
    for (c = 1; c < model_n_labels; ++c) best = scores[c] > scores[best] ? c : best;
    return best;
}
/* Whether the score of the winner is the best for all values within the bounds. */
static inline int model_is_settled_(const double values[], const float bounds[], int winner) {
    double lowest[model_n_labels], highest[model_n_labels];
    int c;
    model_score_ends_(values, bounds, lowest, highest);
    for (c = 0; c < model_n_labels; ++c) {
        if (c != winner && !(lowest[winner] > highest[c] || (lowest[winner] == highest[c] && winner < c))) return 0;
    }
    return 1;
}
#endif

#ifdef MODEL_NARROWING
static inline float model_with_narrowing_(double value, float bound) {
    const double modulus = value < 0.0 ? -value : value;
    return (float)(((double)bound + modulus * 0x1p-23) * (1.0 + 0x1p-22) + 1e-37);
}
#endif

#ifdef MODEL_LABEL
/* The position of a row's label@ZERO@. Unless is_proven is null, it tells whether the label is proven to be the exact
   model's; -1 for @STRANGE@. */
static inline int model_label_(const model_ROW row[], int* is_proven) {
    double values[model_n_values];
    float bounds[model_n_values];
    const int is_known = model_evaluate_(row, values, bounds), winner = is_known ? model_winner_(values) : 0;
    if (is_proven) *is_proven = is_known ? model_is_settled_(values, bounds, winner) : -1;
    return winner;
}
#endif

#ifdef MODEL_CLASSIFY
/* The position of the row's label in @labels@ZERO@. */
static inline int model_predict(const model_ROW row[]) {
    return model_label_(row, (int*)0);
}
/* The position of the row's label, or -1 if the label is not proven to be the exact model's. */
static inline int model_predict_if_certain(const model_ROW row[]) {
    int is_proven;
    const int label = model_label_(row, &is_proven);
    return is_proven > 0 ? label : -1;
}
/* 1 if the label is proven to be the exact model's, else 0. */
static inline int model_is_certain(const model_ROW row[]) {
    return model_predict_if_certain(row) >= 0;
}
#endif

#ifdef MODEL_CLASSIFY_TARGETS
/* The positions of the row's model_n_targets labels in model_labels; unspecified for @STRANGE@. */
static inline void model_predict(const model_ROW row[], int labels[]) {
    int is_proven[model_n_targets];
    model_targets_(row, labels, is_proven);
}
/* The positions of the row's labels; -1 for a label that is not proven to be the exact model's. */
static inline void model_predict_if_certain(const model_ROW row[], int labels[]) {
    int is_proven[model_n_targets], k;
    model_targets_(row, labels, is_proven);
    for (k = 0; k < model_n_targets; ++k) labels[k] = is_proven[k] > 0 ? labels[k] : -1;
}
/* 1 if all labels are proven to be the exact model's, else 0. */
static inline int model_is_certain(const model_ROW row[]) {
    int labels[model_n_targets], k;
    model_predict_if_certain(row, labels);
    for (k = 0; k < model_n_targets; ++k) {
        if (labels[k] < 0) return 0;
    }
    return 1;
}
#endif

#ifdef MODEL_REGRESS
/* The value@NAN@. */
static inline float model_predict(const model_ROW row[]) {
    float value[1];
    model_decision_values(row, value);
    return value[0];
}
#endif

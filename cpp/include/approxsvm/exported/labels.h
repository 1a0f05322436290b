/* Labels of one model in exported headers, and their certificates. `model` is a placeholder for the header's name,
   and a header contains only the parts that its model needs (backends/c99/program.py). */

#ifdef MODEL_VOTES
/* The first class with the most votes; a value above 0 is a vote for the first class of its pair. */
static inline int model_winner_(const double values[]) {
    uint32_t votes[model_n_labels];
    return approxsvm_vote_winner(model_n_labels, values, votes);
}
/* Whether the winner is the same for every outcome of the pairs whose sign the bounds leave undecided. */
static inline int model_is_settled_(const double values[], const float bounds[], int winner) {
    uint32_t counts[2 * model_n_labels];
    return approxsvm_certain_vote(model_n_labels, values, bounds, counts) == winner;
}
#endif

#ifdef MODEL_TWO_CLASSES
static inline int model_winner_(const double values[]) {
    return values[0] > 0.0 ? 0 : 1;
}
static inline int model_is_settled_(const double values[], const float bounds[], int winner) {
    return approxsvm_outcome(values[0], (double)bounds[0]) == (winner == 0 ? approxsvm_first : approxsvm_second);
}
#endif

#ifdef MODEL_BY_VALUE
static inline int model_winner_(const double values[]) {
    return approxsvm_class_by_value(values[0], model_threshold_);
}
static inline int model_is_settled_(const double values[], const float bounds[], int winner) {
    (void)winner;
    return approxsvm_is_certain_by_value(values[0], (double)bounds[0], model_threshold_);
}
#endif

#ifdef MODEL_OUTPUTS
static const approxsvm_outputs model_parameters_ = {model_NUMBERS, model_numbers_};
#endif

#ifdef MODEL_SCORES
static inline void model_own_scores_(const double values[], double scores[]) {
    double room[model_n_labels];
    approxsvm_scores(&model_parameters_, values, scores, room);
}
/* Lower and upper limits of the scores over all values within the bounds. */
static inline void model_own_score_ends_(const double values[], const float bounds[], double lowest[],
                                         double highest[]) {
    double room[3 * model_n_labels];
    approxsvm_score_ends(&model_parameters_, values, bounds, lowest, highest, room);
}
#endif

#ifdef MODEL_BEST_SCORE
/* The first class with the best score. */
static inline int model_winner_(const double values[]) {
    double scores[model_n_labels];
    model_own_scores_(values, scores);
    return approxsvm_first_largest(model_n_labels, scores);
}
static inline int model_is_settled_(const double values[], const float bounds[], int winner) {
    double lowest[model_n_labels], highest[model_n_labels];
    model_own_score_ends_(values, bounds, lowest, highest);
    return approxsvm_is_largest(model_n_labels, winner, lowest, highest, 1);
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

#ifdef MODEL_DECISION_VALUES
/* Decision values@VALUES_ARE@@NAN@. */
static inline void model_decision_values(const model_ROW row[], float values[]) {
    double exact[model_n_values];
    float bounds[model_n_values];
    int k;
    (void)model_evaluate_(row, exact, bounds);
    for (k = 0; k < model_n_values; ++k) values[k] = (float)exact[k];
}
/* Upper bounds of |value - exact value| for each of @decision_values; infinite for @STRANGE@. */
static inline void model_error_bounds(const model_ROW row[], float bounds[]) {
    double values[model_n_values];
    int k;
    if (!model_evaluate_(row, values, bounds)) return;
    for (k = 0; k < model_n_values; ++k) bounds[k] = model_with_narrowing_(values[k], bounds[k]);
}
#endif

#ifdef MODEL_IS_WITHIN
/* 1 if @WHAT@ is proven to be @MEANS@, else 0. */
static inline int model_is_certain(const model_ROW row[]) {
    float bounds[model_n_values];
    int k;
    model_error_bounds(row, bounds);
    for (k = 0; k < model_n_values; ++k) {
        if (!(bounds[k] <= model_TOLERANCE)) return 0;
    }
    return 1;
}
#endif

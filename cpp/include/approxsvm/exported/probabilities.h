/* Probabilities in exported headers, and bounds of their errors. `model` is a placeholder for the header's name, and
   a header contains only the parts that its model needs (backends/c99/program.py). */

#ifdef MODEL_SHARES
/* Probabilities, and bounds of the exact ones. */
static inline void model_shares_(const double values[], const float bounds[], double p[], double lowest[],
                                 double highest[]) {
    double room[APPROXSVM_SCRATCH_KIND(model_n_labels)];
    approxsvm_KIND(&model_parameters_, values, p, room);
    approxsvm_KIND_ends(&model_parameters_, values, bounds, lowest, highest, room);
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
        const double bound = is_known ? approxsvm_farther_end(p[c], lowest[c], highest[c]) + 0x1p-23 : 1.0;
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
static inline int model_most_probable_(const double p[]) {
    return approxsvm_first_largest(model_n_labels, p);
}
static inline int model_is_most_probable_(const double lowest[], const double highest[], int winner) {
    return approxsvm_is_largest(model_n_labels, winner, lowest, highest, 0);
}
#endif

#ifdef MODEL_BY_SHARE
static inline int model_most_probable_(const double p[]) {
    return approxsvm_class_by_share(p, model_threshold_);
}
static inline int model_is_most_probable_(const double lowest[], const double highest[], int winner) {
    (void)winner;
    return approxsvm_is_certain_by_share(lowest, highest, model_threshold_);
}
#endif

#ifdef MODEL_LABEL_BY_SHARES
/* The position of a row's label, by its probability@ZERO@; is_proven tells whether it is proven to be the exact
   model's, -1 for @STRANGE@. */
static inline int model_label_(const model_ROW row[], int* is_proven) {
    double p[model_n_labels], lowest[model_n_labels], highest[model_n_labels];
    const int is_known = model_row_shares_(row, p, lowest, highest), winner = is_known ? model_most_probable_(p) : 0;
    if (is_proven) *is_proven = is_known ? model_is_most_probable_(lowest, highest, winner) : -1;
    return winner;
}
#endif

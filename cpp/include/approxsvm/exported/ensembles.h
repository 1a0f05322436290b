/* Several models in one exported header: what combines the answers of members. `model` stands for the name of the
   header; at MEMBERS it has one statement for each member (backends/c99/ensembles.py), and each part is taken where an
   ensemble needs it (backends/c99/program.py). */

#ifdef MODEL_MEAN
/* Means of the members' probabilities, and their bounds; 0 for @STRANGE@. */
static inline int model_row_shares_(const model_ROW row[], double p[], double lowest[], double highest[]) {
    double one[model_n_labels], low[model_n_labels], high[model_n_labels];
    int is_known = 1, c;
    for (c = 0; c < model_n_labels; ++c) p[c] = lowest[c] = highest[c] = -0.0;
    model_MEMBERS;
    approxsvm_divide_shares(model_n_labels, model_n_members_, model_total_[0], p, lowest, highest);
    return is_known;
}
#endif

#ifdef MODEL_MEMBER_VOTES
/* The position of a row's label, by the votes of members@ZERO@, and whether it is proven to be the exact models', -1
   for such a row, which no vote of other members makes up for. */
static inline int model_label_(const model_ROW row[], int* is_proven) {
    double sums[model_n_labels], sure[model_n_labels], open = 0.0;
    int is_known = 1, one, label;
    for (label = 0; label < model_n_labels; ++label) sums[label] = sure[label] = -0.0;
    model_MEMBERS;
    if (is_proven) *is_proven = -1;
    if (!is_known) return 0;
    if (is_proven) *is_proven = approxsvm_is_elected(model_n_labels, model_n_members_, sure, open);
    return approxsvm_first_largest(model_n_labels, sums);
}
#endif

#ifdef MODEL_SUM
/* Adds n numbers of a member by their weights, from a column on, and what they are off by. */
static inline void model_add_(int column, int n, const double number[], const double off[], double sums[],
                              double reach[]) {
    int k;
    for (k = 0; k < model_n_values; ++k) {
        approxsvm_add_products(n, model_weights_ + k * model_n_columns_ + column, number, off,
                               approxsvm_unit_of_sum(model_n_columns_), sums + k, reach + k);
    }
}
/* What numbers between low and high are off by at most. */
static inline void model_farther_(int n, const double number[], double low[], const double high[]) {
    int k;
    for (k = 0; k < n; ++k) low[k] = approxsvm_farther_end(number[k], low[k], high[k]);
}
/* Sums of the members' numbers by weight, and their bounds; 0 for @STRANGE@: NaN, with infinite bounds. */
static inline int model_evaluate_(const model_ROW row[], double values[], float bounds[]) {
    double reach[model_n_values], number[model_n_room_], off[model_n_room_], high[model_n_room_], value[model_n_room_];
    float bound[model_n_room_];
    int is_known = 1, k;
    (void)high, (void)value, (void)bound;
    for (k = 0; k < model_n_values; ++k) {
        values[k] = model_addends_[k];
        reach[k] = approxsvm_bound_of_addend(approxsvm_unit_of_sum(model_n_columns_), values[k]);
    }
    model_MEMBERS;
    for (k = 0; k < model_n_values; ++k) is_known &= approxsvm_abs(values[k]) < 1e37;
    for (k = 0; k < model_n_values; ++k) {
        values[k] = is_known ? values[k] : (double)approxsvm_nan32();
        bounds[k] = is_known ? model_above_(reach[k]) : approxsvm_infinity32();
    }
    return is_known;
}
#endif

#ifdef MODEL_TARGETS
/* Labels by the signs of n values, and whether these are proven. */
static inline void model_signs_(int n, const double values[], const float bounds[], int labels[], int is_proven[]) {
    int k;
    for (k = 0; k < n; ++k) {
        labels[k] = values[k] > 0.0 ? 1 : 0;
        is_proven[k] = approxsvm_outcome(values[k], (double)bounds[k]) != approxsvm_unknown;
    }
}
/* The positions of a row's labels, one for each target; whether each is proven to be the exact model's. */
static inline void model_targets_(const model_ROW row[], int labels[], int is_proven[]) {
    double values[model_n_room_];
    float bounds[model_n_room_];
    int is_known = 1, k;
    (void)values, (void)bounds;
    model_MEMBERS;
    for (k = 0; k < model_n_targets; ++k) is_proven[k] = is_known && is_proven[k] > 0;
}
#endif

#ifdef MODEL_SIDE_BY_SIDE
/* All decision values and their bounds; 0 for @STRANGE@: NaN, with infinite bounds. */
static inline int model_evaluate_(const model_ROW row[], double values[], float bounds[]) {
    int is_known = 1, k;
    model_MEMBERS;
    /* What other members know has no room for its narrowing. */
    for (k = 0; k < model_n_values && !is_known; ++k) {
        values[k] = (double)approxsvm_nan32();
        bounds[k] = approxsvm_infinity32();
    }
    return is_known;
}
#endif

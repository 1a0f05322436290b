/* The public functions. The exported header states at its start which rows have no values. Numbers:

   model_n_values            number of decision values, if the model has any
   model_n_targets           number of labels per row, if rows have lists of labels
   model_is_regression_      if the model is a regressor; its values are certain if their errors are within
                             model_tolerance_ */

#if model_n_values
static inline float model_with_narrowing_(double value, float bound) {
    const double modulus = value < 0.0 ? -value : value;
    return (float)(((double)bound + modulus * 0x1p-23) * (1.0 + 0x1p-22) + 1e-37);
}
/* Computes the decision values, which are NaN for a row without values. */
static inline void model_decision_values(const model_row_ row[], float values[]) {
    double exact[model_n_values];
    float bounds[model_n_values];
    int k;
    (void)model_evaluate_(row, exact, bounds);
    for (k = 0; k < model_n_values; ++k) values[k] = (float)exact[k];
}
/* Computes upper bounds on |value - exact value| for the results of model_decision_values. The bounds are infinite for
   a row without values. */
static inline void model_error_bounds(const model_row_ row[], float bounds[]) {
    double values[model_n_values];
    int k;
    if (!model_evaluate_(row, values, bounds)) return;
    for (k = 0; k < model_n_values; ++k) bounds[k] = model_with_narrowing_(values[k], bounds[k]);
}
#endif

#if model_has_shares_
/* Computes the probability of each label, which is NaN for a row without values. */
static inline void model_probabilities(const model_row_ row[], float probabilities[]) {
    double p[model_n_labels], lowest[model_n_labels], highest[model_n_labels];
    int c;
    const int is_known = model_row_shares_(row, p, lowest, highest);
    for (c = 0; c < model_n_labels; ++c) probabilities[c] = is_known ? (float)p[c] : approxsvm_nan32();
}
/* Computes upper bounds on |probability - exact probability| for the results of model_probabilities. The bounds are 1
   for a row without values. */
static inline void model_probability_bounds(const model_row_ row[], float bounds[]) {
    double p[model_n_labels], lowest[model_n_labels], highest[model_n_labels];
    int c;
    const int is_known = model_row_shares_(row, p, lowest, highest);
    for (c = 0; c < model_n_labels; ++c) {
        const double bound = is_known ? approxsvm_farther_end(p[c], lowest[c], highest[c]) + 0x1p-23 : 1.0;
        bounds[c] = bound < 1.0 ? (float)(bound * (1.0 + 0x1p-22)) : 1.0f;
    }
}
#endif

#if model_is_regression_
#if model_n_values == 1
/* Returns the predicted value, or NaN for a row without a value. */
static inline float model_predict(const model_row_ row[]) {
    float value[1];
    model_decision_values(row, value);
    return value[0];
}
#endif
/* Returns 1 if each value is proven to be within model_tolerance_ of the exact value, else 0. */
static inline int model_is_certain(const model_row_ row[]) {
    float bounds[model_n_values];
    int k;
    model_error_bounds(row, bounds);
    for (k = 0; k < model_n_values; ++k) {
        if (!(bounds[k] <= model_tolerance_)) return 0;
    }
    return 1;
}
#elif model_n_targets
/* Stores the indices (in model_labels) of the row's model_n_targets labels. They are unspecified for a row without
   values. */
static inline void model_predict(const model_row_ row[], int labels[]) {
    int is_proven[model_n_targets];
    model_targets_(row, labels, is_proven);
}
/* Stores the indices of the row's labels, or -1 for a label not proven to be the exact model's. */
static inline void model_predict_if_certain(const model_row_ row[], int labels[]) {
    int is_proven[model_n_targets], k;
    model_targets_(row, labels, is_proven);
    for (k = 0; k < model_n_targets; ++k) labels[k] = is_proven[k] > 0 ? labels[k] : -1;
}
/* Returns 1 if all labels are proven to be the exact model's, else 0. */
static inline int model_is_certain(const model_row_ row[]) {
    int labels[model_n_targets], k;
    model_predict_if_certain(row, labels);
    for (k = 0; k < model_n_targets; ++k) {
        if (labels[k] < 0) return 0;
    }
    return 1;
}
#else
/* Returns the index of the row's label in model_labels, or 0 for a row without values. */
static inline int model_predict(const model_row_ row[]) {
    return model_label_(row, (int*)0);
}
/* Returns the index of the row's label, or -1 if the label is not proven to be the exact model's. */
static inline int model_predict_if_certain(const model_row_ row[]) {
    int is_proven;
    const int label = model_label_(row, &is_proven);
    return is_proven > 0 ? label : -1;
}
/* Returns 1 if the label is proven to be the exact model's, else 0. */
static inline int model_is_certain(const model_row_ row[]) {
    return model_predict_if_certain(row) >= 0;
}
#endif

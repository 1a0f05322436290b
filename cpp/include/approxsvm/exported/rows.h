/* Rows in exported headers: their numbers, codes and coordinates, and which rows are refused. `model` is a placeholder
   for the header's name, and a header contains only the parts that its model needs (backends/c99/device_rows.py). */

#ifdef MODEL_SIZES
typedef char model_int_has_32_bits_[sizeof(int) >= 4 ? 1 : -1];
typedef char model_literals_are_double_[sizeof(1.0) == sizeof(double) ? 1 : -1];
#endif

#ifdef MODEL_RAW
static inline float model_raw_(const float row[], int j) {
    return row[j];
}
#endif

#ifdef MODEL_DECODED
/* Feature j of a row of codes. */
static inline float model_raw_(const model_ROW row[], int j) {
    return model_steps[j] * (float)row[j] + model_offsets[j];
}
#endif

#ifdef MODEL_ROW_CODES
static inline int model_is_last_(model_ROW code) {
    return code >= model_largest_code || code <= -model_largest_code;
}
/* Whether a feature that is used, or that the source checks, is beyond the codes. */
static inline int model_is_saturated_(const model_ROW row[]) {
    int saturated = 0, j;
    for (j = 0; j < model_n_used_; ++j) saturated |= model_is_last_(row[model_COLUMN]);
    model_CHECKED;
    return saturated;
}
/* The codes of a row of numbers; numbers beyond them, and NaN, get the last one. */
static inline void model_quantize(const float numbers[], model_ROW row[]) {
    int j;
    for (j = 0; j < model_n_features; ++j) {
        const float q = (numbers[j] - model_offsets[j]) / model_steps[j];
        const float limit = (float)model_largest_code;
        if (q > -limit && q < limit) {
            row[j] = (model_ROW)(int)(q < 0.0f ? q - 0.5f : q + 0.5f);
        } else {
            row[j] = (model_ROW)(q <= -limit ? -model_largest_code : model_largest_code);
        }
    }
}
#endif

#ifdef MODEL_NOT_FINITE
/* 0 if all numbers of the row that are used are finite, else NaN. */
static inline float model_not_finite_(const model_ROW row[]) {
    float sum = 0.0f;
    int j;
    for (j = 0; j < model_n_used_; ++j) {
        const float x = row[model_COLUMN];
        sum += model_REPLACED ? 0.0f : x - x;
    }
    return model_CHECKED ? approxsvm_nan32() : sum;
}
#endif

#ifdef MODEL_CHECKED_COLUMNS
/* Whether a column that the source checks, but does not use, holds a number that it refuses. */
static inline int model_has_refused_(const float row[]) {
    int refused = 0, j;
    for (j = 0; j < model_n_checked_; ++j) {
        const float x = row[model_checked_columns_[j]];
        refused |= !(x - x >= 0.0f) && !(model_checked_nan_[j] && x != x);
    }
    return refused;
}
#endif

#ifdef MODEL_LOOKED_UP
/* The value of a lookup for feature j of a row; NaN if the row is refused. */
static inline double model_looked_up_(const float row[], int j) {
    const double x = (double)row[model_lookup_source_[j]];
    const int begin = j > 0 ? (int)model_lookup_ends_[j - 1] : 0;
    approxsvm_lookup lookup;
    double found;
    lookup.edges = model_lookup_edges_ + begin;
    lookup.values = model_lookup_found_ + begin + j;
    lookup.n_edges = (int)model_lookup_ends_[j] - begin;
    lookup.missing = model_lookup_missing_[j];
    found = approxsvm_lookup_find(&lookup, x);
    if (approxsvm_abs(x) > APPROXSVM_LARGEST || approxsvm_lookup_refuses(found)) return approxsvm_nan();
    return approxsvm_lookup_keeps(found) ? x : found;
}
/* 0 if the lookup takes the row and all numbers that are used are finite, or replaced later, else NaN. */
static inline float model_not_finite_(const float row[]) {
    float wrong = 0.0f;
    int j;
    for (j = 0; j < model_n_looked_up_; ++j) {
        const double x = model_looked_up_(row, j);
        if (!(x - x >= 0.0) && !(model_REPLACED)) wrong = approxsvm_nan32();
    }
    return model_CHECKED ? approxsvm_nan32() : wrong;
}
#endif

#ifdef MODEL_COORDINATE
static inline float model_coordinate_(const model_ROW row[], int j, const float center[]) {
    return (model_raw_(row, j) - center[j]) * model_input_scale_;
}
#endif

#ifdef MODEL_COORDINATE_OF_CODES
/* The map of the source and the decoding are one step. */
static inline float model_coordinate_(const model_ROW row[], int j, const float center[]) {
    const float x = model_slopes_[j] * (float)row[model_COLUMN] + model_bases_[j];
    return (x - center[j]) * model_input_scale_;
}
#endif

#ifdef MODEL_COORDINATE_OF_MAP
static inline float model_coordinate_(const double x[], int j, const float center[]) {
    return model_narrowed_((x[j] - (double)center[j]) * (double)model_input_scale_);
}
#endif

#ifdef MODEL_COORDINATE_OF_SCALERS
/* Feature j of a row as the source maps it, in its order of operations. */
static inline double model_feature_(const model_ROW row[], int j) {
    double x = model_GIVEN;
    model_STEPS;
    return x;
}
static inline float model_coordinate_(const model_ROW row[], int j, const float center[]) {
    return (float)((model_feature_(row, j) - (double)center[j]) * (double)model_input_scale_);
}
#endif

#ifdef MODEL_MAP
/* The row as the source maps it, and a bound on its distance to the row over the real numbers. */
static inline double model_map_(const model_ROW row[], double x[]) {
    model_DECLARED;
    model_STATEMENTS;
}
#endif

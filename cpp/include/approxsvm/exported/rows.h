/* Rows: their numbers or codes, their coordinates, and the conditions under which they are rejected. Numbers:

   model_row_bits_           8 or 16 if rows hold codes, up to model_largest_code; else rows hold floats
   model_steps, _offsets     a number is step * code + offset
   model_n_features          number of features of a raw row
   model_n_used_             number of features used by the model; with model_has_columns_, they are in the columns
                             model_columns_
   model_n_checked_          number of further features, in the columns model_checked_columns_, that the source rejects
                             unless they are finite, or unless they are finite or NaN (model_checked_nan_)
   model_n_looked_up_        numbers checked or replaced by a lookup (below), if any
   model_n_replaceable_      features that may be NaN because a later lookup replaces NaN (model_takes_nan_)
   model_has_map_            if the source maps rows; if only codes are mapped, model_is_folded_
   model_maps_rows_          if a whole row is mapped at once (ops.h), not one feature after another */

#include "../program/bits.h"
#include "float32.h"

#if model_row_bits_ == 8
typedef int8_t model_row_;
#elif model_row_bits_ == 16
typedef int16_t model_row_;
#else
typedef float model_row_;
#endif

/* The column of the j-th number that the model uses. */
static inline int model_column_(int j) {
#if model_has_columns_
    return (int)model_columns_[j];
#else
    return j;
#endif
}

/* Feature j of a row. */
static inline float model_raw_(const model_row_ row[], int j) {
#if model_row_bits_
    return model_steps[j] * (float)row[j] + model_offsets[j];
#else
    return row[j];
#endif
}

#if model_row_bits_
static inline int model_is_last_(model_row_ code) {
    return code >= model_largest_code || code <= -model_largest_code;
}
/* Converts a row of numbers to codes; a number beyond the code range is clamped to the nearest code, and NaN becomes
   the last code. */
static inline void model_quantize(const float numbers[], model_row_ row[]) {
    int j;
    for (j = 0; j < model_n_features; ++j) {
        const float q = (numbers[j] - model_offsets[j]) / model_steps[j];
        const float limit = (float)model_largest_code;
        if (q > -limit && q < limit) {
            row[j] = (model_row_)(int)(q < 0.0f ? q - 0.5f : q + 0.5f);
        } else {
            row[j] = (model_row_)(q <= -limit ? -model_largest_code : model_largest_code);
        }
    }
}
#endif

/* Whether a feature that is used, or checked by the source, is beyond the code range. */
static inline int model_is_saturated_(const model_row_ row[]) {
    int saturated = 0;
#if model_row_bits_
    int j;
    for (j = 0; j < model_n_used_; ++j) saturated |= model_is_last_(row[model_column_(j)]);
#if model_n_checked_
    for (j = 0; j < model_n_checked_; ++j) saturated |= model_is_last_(row[(int)model_checked_columns_[j]]);
#endif
#else
    (void)row;
#endif
    return saturated;
}

#if !model_row_bits_
/* Whether a column that the source checks but does not use holds a number that the source rejects. */
static inline int model_has_refused_(const float row[]) {
    int refused = 0;
#if model_n_checked_
    int j;
    for (j = 0; j < model_n_checked_; ++j) {
        const float x = row[model_checked_columns_[j]];
        refused |= !(x - x >= 0.0f) && !(model_checked_nan_[j] && x != x);
    }
#else
    (void)row;
#endif
    return refused;
}
/* Whether x, the j-th number that the model uses, is NaN where NaN is allowed. */
static inline int model_is_replaced_(float x, int j) {
#if model_n_replaceable_
    return model_takes_nan_[j] && x != x;
#else
    (void)x, (void)j;
    return 0;
#endif
}
#endif

#if model_n_looked_up_
#include "../program/ops/lookup.h"
/* The value that the lookup finds for feature j of a row; NaN if it rejects the row. */
static inline double model_given_(const float row[], int j) {
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
/* Returns 0 if the lookup accepts the row, and all used numbers are finite or will be replaced, else NaN. */
static inline float model_not_finite_(const float row[]) {
    float wrong = 0.0f;
    int j;
    for (j = 0; j < model_n_looked_up_; ++j) {
        const double x = model_given_(row, j);
        if (!(x - x >= 0.0) && !model_is_replaced_(row[model_lookup_source_[j]], j)) wrong = approxsvm_nan32();
    }
    return model_has_refused_(row) ? approxsvm_nan32() : wrong;
}
#else
/* The j-th number of a row that the model uses. */
static inline double model_given_(const model_row_ row[], int j) {
    return (double)model_raw_(row, model_column_(j));
}
#if !model_row_bits_
/* Returns 0 if all used numbers in the row are finite, else NaN. */
static inline float model_not_finite_(const float row[]) {
    float sum = 0.0f;
    int j;
    for (j = 0; j < model_n_used_; ++j) {
        const float x = row[model_column_(j)];
        sum += model_is_replaced_(x, j) ? 0.0f : x - x;
    }
    return model_has_refused_(row) ? approxsvm_nan32() : sum;
}
#endif
#endif

#if model_has_map_ && !model_is_folded_
#include "ops.h"
#endif

#if model_has_coordinates_
/* Coordinate j of a row, or of a mapped row x, relative to a center, in scaled units. */
#if model_maps_rows_
static inline float model_coordinate_(const double x[], int j, const float center[]) {
    return approxsvm_narrowed((x[j] - (double)center[j]) * (double)model_input_scale_);
}
#elif model_is_folded_
/* Decoding and the source's map are combined in one step. */
static inline float model_coordinate_(const model_row_ row[], int j, const float center[]) {
    const float x = model_slopes_[j] * (float)row[model_column_(j)] + model_bases_[j];
    return (x - center[j]) * model_input_scale_;
}
#elif model_has_map_
static inline float model_coordinate_(const model_row_ row[], int j, const float center[]) {
    return (float)((model_feature_(row, j) - (double)center[j]) * (double)model_input_scale_);
}
#else
static inline float model_coordinate_(const model_row_ row[], int j, const float center[]) {
    return (model_raw_(row, j) - center[j]) * model_input_scale_;
}
#endif
#endif

/* Ensembles: combinations of the columns computed by the members. The matrix and the derivations of the bounds are the
   same as in the core (program/ensembles.h). Sums of the members' numbers, or the members' values themselves, are
   treated like the values of a single model. If the labels are the members' own, the members' bounds prove them.
   Numbers:

   model_n_members_          number of members; model_members_(CASE) is CASE(m, function) for each member, whose
                             function is model_label_ if model_votes_, model_own_targets_ if there are model_n_targets,
                             model_summands_ if there are model_n_columns_ of a matrix, else model_evaluate_
   model_member_firsts_      the first column or label of each member; model_member_sizes_ holds the number
                             of columns or labels
   model_addends_            initial values of the sums; the weights of column c, from model_starts_[c] on, are
                             model_weights_, and contribute to the sums model_places_
   model_positions_          indices of the members' labels among the ensemble's labels, if labels are predicted */
#include "../program/ensembles.h"
#include "float32.h"

typedef float model_row_;

#if model_n_columns_
static inline void model_start_sums_(double sums[], double reach[]) {
    int k;
    for (k = 0; k < model_n_values_; ++k) {
        sums[k] = model_addends_[k];
        reach[k] = approxsvm_bound_of_addend(approxsvm_unit_of_sum(model_n_columns_), sums[k]);
    }
}
/* Adds column c, whose value x has the given error. */
static inline void model_add_column_(int c, double x, double error, double sums[], double reach[]) {
    int k;
    for (k = (int)model_starts_[c]; k < (int)model_starts_[c + 1]; ++k) {
        const int to = (int)model_places_[k];
        approxsvm_add_product(model_weights_[k], x, error, approxsvm_unit_of_sum(model_n_columns_), sums + to,
                              reach + to);
    }
}
#endif

#if model_votes_
#define model_case_(m, function) \
    case m:                      \
        return function(row, is_proven);
static inline int model_member_(int m, const model_row_ row[], int* is_proven) {
    switch (m) { model_members_(model_case_) }
    return 0;
}
/* The index of the label elected by the members for a row, and whether it is proven to be the exact models' label. If a
   member has no values for the row, is_proven is -1 and the index is 0, however the other members vote. */
static inline int model_label_(const model_row_ row[], int* is_proven) {
    double sums[model_n_values_], certain[model_n_values_], reach[model_n_values_];
    int is_known = 1, n_open = 0, one, c, m;
    model_start_sums_(sums, reach);
    model_start_sums_(certain, reach);
    for (m = 0; m < model_n_members_; ++m) {
        const int first = (int)model_member_firsts_[m], label = first + model_member_(m, row, &one);
        is_known &= one >= 0;
        n_open += one <= 0;
        model_add_column_(label, 1.0, 0.0, sums, reach);
        for (c = first; c < first + (int)model_member_sizes_[m]; ++c) {
            if (one <= 0 || c == label) model_add_column_(c, one > 0 ? 1.0 : 0.5, one > 0 ? 0.0 : 0.5, certain, reach);
        }
    }
    if (is_proven) *is_proven = -1;
    if (!is_known) return 0;
    if (is_proven) *is_proven = approxsvm_is_elected(model_n_values_, n_open, certain, reach);
    return approxsvm_first_largest(model_n_values_, sums);
}
#elif model_n_columns_
#define model_case_(m, function) \
    case m:                      \
        return function(row, number, off);
static inline int model_member_(int m, const model_row_ row[], double number[], double off[]) {
    switch (m) { model_members_(model_case_) }
    return 0;
}
/* Computes weighted sums of the members' numbers, and bounds on the errors of these sums. For a row without values,
   stores NaN with infinite bounds and returns 0. */
static inline int model_evaluate_(const model_row_ row[], double values[], float bounds[]) {
    double reach[model_n_values_], number[model_n_room_], off[model_n_room_];
    int is_known = 1, c, k, m;
    model_start_sums_(values, reach);
    for (m = 0; m < model_n_members_; ++m) {
        is_known &= model_member_(m, row, number, off);
        for (c = 0; c < (int)model_member_sizes_[m]; ++c) {
            model_add_column_((int)model_member_firsts_[m] + c, number[c], off[c], values, reach);
        }
    }
    for (k = 0; k < model_n_values_; ++k) is_known &= approxsvm_abs(values[k]) < 1e37;
    for (k = 0; k < model_n_values_; ++k) {
        values[k] = is_known ? values[k] : (double)approxsvm_nan32();
        bounds[k] = is_known ? approxsvm_above(reach[k]) : approxsvm_infinity32();
    }
    return is_known;
}
#elif model_n_targets
#define model_case_(m, function) \
    case m:                      \
        return function(row, labels, is_proven);
static inline int model_member_(int m, const model_row_ row[], int labels[], int is_proven[]) {
    switch (m) { model_members_(model_case_) }
    return 0;
}
/* The indices of a row's labels, one per target, and whether each is proven to be the exact model's. */
static inline void model_targets_(const model_row_ row[], int labels[], int is_proven[]) {
    int is_known = 1, target = 0, k, m;
    for (m = 0; m < model_n_members_; ++m) {
        const int end = target + (int)model_member_sizes_[m];
        is_known &= model_member_(m, row, labels + target, is_proven + target);
        for (; target < end; ++target) {
            labels[target] = (int)model_positions_[(int)model_member_firsts_[m] + labels[target]];
        }
    }
    for (k = 0; k < model_n_targets; ++k) is_proven[k] = is_known && is_proven[k] > 0;
}
#else
#define model_case_(m, function) \
    case m:                      \
        return function(row, values, bounds);
static inline int model_member_(int m, const model_row_ row[], double values[], float bounds[]) {
    switch (m) { model_members_(model_case_) }
    return 0;
}
/* Computes all decision values and their bounds. For a row without values, stores NaN with infinite bounds and returns
   0. */
static inline int model_evaluate_(const model_row_ row[], double values[], float bounds[]) {
    int is_known = 1, first = 0, k, m;
    for (m = 0; m < model_n_members_; ++m) {
        is_known &= model_member_(m, row, values + first, bounds + first);
        first += (int)model_member_sizes_[m];
    }
    /* If one member has no values, the others' values are not used either. */
    for (k = 0; k < model_n_values && !is_known; ++k) {
        values[k] = (double)approxsvm_nan32();
        bounds[k] = approxsvm_infinity32();
    }
    return is_known;
}
#endif

#if !model_votes_ && !model_n_targets
#include "outputs.h"
#endif

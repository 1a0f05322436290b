/* Several models: what combines the answers of members. The rules, and the derivations of their bounds, are the core's
   (program/ensembles.h). If labels depend on sums, these are treated like the values of a single model; if the labels
   or values of all members are returned, the members' own bounds prove them. Numbers:

   model_n_members_          members; model_members_(CASE) is CASE(m, function) for each, with its function
                             model_row_shares_ if model_averages_, model_label_ if model_votes_, model_summands_ if
                             model_adds_, model_own_targets_ if there are model_n_targets, else model_evaluate_
   model_weights_            of members, or of numbers that are added: model_n_columns_ for each value
   model_member_sizes_       numbers that are taken from each member, from model_member_firsts_ on
   model_positions_          of the members' labels among those of the ensemble */
#include "../program/ensembles.h"
#include "float32.h"

typedef float model_row_;

#if model_averages_
#define model_case_(m, function) \
    case m:                      \
        return function(row, p, lowest, highest);
static inline int model_member_(int m, const model_row_ row[], double p[], double lowest[], double highest[]) {
    switch (m) { model_members_(model_case_) }
    return 0;
}
/* Means of the members' probabilities, and their bounds; 0 for a row without values. */
static inline int model_row_shares_(const model_row_ row[], double p[], double lowest[], double highest[]) {
    double one[model_n_labels], low[model_n_labels], high[model_n_labels];
    int is_known = 1, c, m;
    for (c = 0; c < model_n_labels; ++c) p[c] = lowest[c] = highest[c] = -0.0;
    for (m = 0; m < model_n_members_; ++m) {
        is_known &= model_member_(m, row, one, low, high);
        approxsvm_add_shares(model_n_labels, model_weights_[m], one, low, high, p, lowest, highest);
    }
    approxsvm_divide_shares(model_n_labels, model_n_members_, model_total_[0], p, lowest, highest);
    return is_known;
}
#elif model_votes_
#define model_case_(m, function) \
    case m:                      \
        return function(row, is_proven);
static inline int model_member_(int m, const model_row_ row[], int* is_proven) {
    switch (m) { model_members_(model_case_) }
    return 0;
}
/* The position of a row's label, by the votes of members, and whether it is proven to be the exact models': -1 for a
   row without values in some member, which no vote of other members makes up for; its position is 0. */
static inline int model_label_(const model_row_ row[], int* is_proven) {
    double sums[model_n_labels], sure[model_n_labels], open = 0.0;
    int is_known = 1, one, label, m;
    for (label = 0; label < model_n_labels; ++label) sums[label] = sure[label] = -0.0;
    for (m = 0; m < model_n_members_; ++m) {
        label = model_member_(m, row, &one);
        is_known &= one >= 0;
        label = (int)model_positions_[(int)model_member_firsts_[m] + label];
        approxsvm_count_vote(label, one, model_weights_[m], sums, sure, &open);
    }
    if (is_proven) *is_proven = -1;
    if (!is_known) return 0;
    if (is_proven) *is_proven = approxsvm_is_elected(model_n_labels, model_n_members_, sure, open);
    return approxsvm_first_largest(model_n_labels, sums);
}
#elif model_adds_
#define model_case_(m, function) \
    case m:                      \
        return function(row, number, off);
static inline int model_member_(int m, const model_row_ row[], double number[], double off[]) {
    switch (m) { model_members_(model_case_) }
    return 0;
}
/* Sums of the members' numbers by weight, and their bounds; 0 for a row without values: NaN, with infinite bounds. */
static inline int model_evaluate_(const model_row_ row[], double values[], float bounds[]) {
    double reach[model_n_values], number[model_n_room_], off[model_n_room_];
    const double *weight = model_weights_, unit = approxsvm_unit_of_sum(model_n_columns_);
    int is_known = 1, k, m;
    for (k = 0; k < model_n_values; ++k) {
        values[k] = model_addends_[k];
        reach[k] = approxsvm_bound_of_addend(unit, values[k]);
    }
    for (m = 0; m < model_n_members_; ++m) {
        const int first = (int)model_member_firsts_[m], n = (int)model_member_sizes_[m];
        is_known &= model_member_(m, row, number, off);
        for (k = 0; k < model_n_values; ++k) {
            approxsvm_add_products(n, weight + k * model_n_columns_, number + first, off + first, unit, values + k,
                                   reach + k);
        }
        weight += n;
    }
    for (k = 0; k < model_n_values; ++k) is_known &= approxsvm_abs(values[k]) < 1e37;
    for (k = 0; k < model_n_values; ++k) {
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
/* The positions of a row's labels, one for each target; whether each is proven to be the exact model's. */
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
/* All decision values and their bounds; 0 for a row without values: NaN, with infinite bounds. */
static inline int model_evaluate_(const model_row_ row[], double values[], float bounds[]) {
    int is_known = 1, first = 0, k, m;
    for (m = 0; m < model_n_members_; ++m) {
        is_known &= model_member_(m, row, values + first, bounds + first);
        first += (int)model_member_sizes_[m];
    }
    /* What other members know has no room for its narrowing. */
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

/* Scores, probabilities and labels of one model, or of an ensemble's sums, computed from decision values. The
   functions, and the derivations of their bounds, are the same as in the core (program/). Numbers:

   model_n_labels            labels, if any
   model_has_threshold_      if model_threshold_ separates two labels
   model_has_scores_         if labels, or sums of an ensemble, depend on class scores
   model_has_shares_         if there are probabilities: model_probabilities_of_ and model_intervals_of_ compute
                             them, with scratch space for model_n_room_of_ doubles
   model_by_shares_          if labels depend on probabilities
   model_numbers_            and model_is_each_, model_is_positive_, model_is_of_values_: the fields of
                             approxsvm_outputs
   model_has_labels_         if labels are needed
   model_is_summand_         if an ensemble sums the model's numbers; model_is_target_: if it uses the labels */
#if model_has_shares_
#include "../program/probabilities.h"
#else
#include "../program/scores.h"
#endif

#if model_has_scores_ || model_has_shares_
static const approxsvm_outputs model_parameters_ = {model_n_classes_, model_is_each_, model_is_positive_,
                                                    model_is_of_values_, model_numbers_};
#endif

#if model_has_scores_
static inline void model_own_scores_(const double values[], double scores[]) {
    double room[model_n_labels];
    approxsvm_scores(&model_parameters_, values, scores, room);
}
/* Lower and upper limits on the scores for all values within the bounds. */
static inline void model_own_score_ends_(const double values[], const float bounds[], double lowest[],
                                         double highest[]) {
    double room[3 * model_n_labels];
    approxsvm_score_ends(&model_parameters_, values, bounds, lowest, highest, room);
}
#endif

#if model_has_shares_
/* Probabilities, and intervals that contain the exact probabilities. */
static inline void model_shares_(const double values[], const float bounds[], double p[], double lowest[],
                                 double highest[]) {
    double room[model_n_room_of_];
    model_probabilities_of_(&model_parameters_, values, p, room);
    model_intervals_of_(&model_parameters_, values, bounds, lowest, highest, room);
}
/* Computes a row's probabilities and their intervals. For a row without values, stores zeros and returns 0. */
static inline int model_row_shares_(const model_row_ row[], double p[], double lowest[], double highest[]) {
    double values[model_n_values_];
    float bounds[model_n_values_];
    int c;
    for (c = 0; c < model_n_labels; ++c) p[c] = lowest[c] = highest[c] = 0.0;
    if (!model_evaluate_(row, values, bounds)) return 0;
    model_shares_(values, bounds, p, lowest, highest);
    return 1;
}
#endif

#if model_has_labels_ && !model_by_shares_
static inline int model_winner_(const double values[]) {
#if model_has_threshold_
    return approxsvm_class_by_value(values[0], model_threshold_);
#elif model_n_labels <= 2
    return values[0] > 0.0 ? 0 : 1;
#elif model_has_scores_
    double scores[model_n_labels];
    model_own_scores_(values, scores);
    return approxsvm_first_largest(model_n_labels, scores);
#else
    uint32_t votes[model_n_labels];
    return approxsvm_vote_winner(model_n_labels, values, votes);
#endif
}
/* Whether the winner is the same for all values within the bounds. */
static inline int model_is_settled_(const double values[], const float bounds[], int winner) {
#if model_has_threshold_
    (void)winner;
    return approxsvm_is_certain_by_value(values[0], (double)bounds[0], model_threshold_);
#elif model_n_labels <= 2
    return approxsvm_outcome(values[0], (double)bounds[0]) == (winner == 0 ? approxsvm_first : approxsvm_second);
#elif model_has_scores_
    double lowest[model_n_labels], highest[model_n_labels];
    model_own_score_ends_(values, bounds, lowest, highest);
    return approxsvm_is_largest(model_n_labels, winner, lowest, highest, 1);
#else
    uint32_t counts[2 * model_n_labels];
    return approxsvm_certain_vote(model_n_labels, values, bounds, counts) == winner;
#endif
}
/* The index of a row's label. Unless is_proven is null, *is_proven states whether the label is proven to be the exact
   model's; it is -1 for a row without values, whose index is 0. */
static inline int model_label_(const model_row_ row[], int* is_proven) {
    double values[model_n_values_];
    float bounds[model_n_values_];
    const int is_known = model_evaluate_(row, values, bounds), winner = is_known ? model_winner_(values) : 0;
    if (is_proven) *is_proven = is_known ? model_is_settled_(values, bounds, winner) : -1;
    return winner;
}
#endif

#if model_has_labels_ && model_by_shares_
/* The index of a row's label, chosen by probabilities. Unless is_proven is null, *is_proven states whether the label is
   proven to be the exact model's; it is -1 for a row without values, whose index is 0. */
static inline int model_label_(const model_row_ row[], int* is_proven) {
    double p[model_n_labels], lowest[model_n_labels], highest[model_n_labels];
    const int is_known = model_row_shares_(row, p, lowest, highest);
    int winner = 0;
#if model_has_threshold_
    if (is_known) winner = approxsvm_class_by_share(p, model_threshold_);
    if (is_proven) *is_proven = is_known ? approxsvm_is_certain_by_share(lowest, highest, model_threshold_) : -1;
#else
    if (is_known) winner = approxsvm_first_largest(model_n_labels, p);
    if (is_proven) *is_proven = is_known ? approxsvm_is_largest(model_n_labels, winner, lowest, highest, 0) : -1;
#endif
    return winner;
}
#endif

#if model_is_summand_
/* The numbers that a member contributes to an ensemble's sums, and a bound on the error of each. Returns 0 for a row
   without values. */
static inline int model_summands_(const model_row_ row[], double number[], double off[]) {
    int is_known, k;
#if model_has_shares_
    double highest[model_n_labels];
    is_known = model_row_shares_(row, number, off, highest);
    for (k = 0; k < model_n_labels; ++k) off[k] = approxsvm_farther_end(number[k], off[k], highest[k]);
#else
    double values[model_n_values_];
    float bounds[model_n_values_];
#if model_has_scores_
    double highest[model_n_labels];
    is_known = model_evaluate_(row, values, bounds);
    model_own_scores_(values, number);
    model_own_score_ends_(values, bounds, off, highest);
    for (k = 0; k < model_n_labels; ++k) off[k] = approxsvm_farther_end(number[k], off[k], highest[k]);
#else
    is_known = model_evaluate_(row, values, bounds);
    for (k = 0; k < model_n_values_; ++k) {
        number[k] = values[k];
        off[k] = (double)bounds[k];
    }
#endif
#endif
    return is_known;
}
#endif

#if model_is_target_
/* The labels of a member for its targets, and whether they are proven. If the member is a regressor, the sign of each
   value selects a label. Returns 0 for a row without values. */
static inline int model_own_targets_(const model_row_ row[], int labels[], int is_proven[]) {
#if model_has_labels_
    labels[0] = model_label_(row, is_proven);
    return is_proven[0] >= 0;
#else
    double values[model_n_values_];
    float bounds[model_n_values_];
    const int is_known = model_evaluate_(row, values, bounds);
    int k;
    for (k = 0; k < model_n_values_; ++k) {
        labels[k] = values[k] > 0.0 ? 1 : 0;
        is_proven[k] = approxsvm_outcome(values[k], (double)bounds[k]) != approxsvm_unknown;
    }
    return is_known;
#endif
}
#endif

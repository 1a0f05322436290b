// The cascade for multiclass models with one decision function per class pair (votes.hpp).
//
// If only labels are wanted, a row is finished as soon as its winner is certain: if a class certainly wins all its n -
// 1 pairs, no other pair is needed. Every stage therefore evaluates the pairs of one guessed winner first. In
// expansions, the guess is the center's majority class. In the exact engine (winner.hpp), it is the same class, a class
// that beats it, or the guess of a small network. If no class wins all its pairs, further classes are evaluated until
// the votes are certain (winner_row.hpp). Rows that remain undecided, or that are cheaper to evaluate together, go to
// the exact engines for all pairs. If decision values are wanted, a row is finished when the sign of every pair is
// certain and every bound is within the model's tolerance. Exact values come from the float64 engine.
#ifndef APPROXSVM_PREDICT_STAGES_PAIRS_OF_CLASSES_HPP
#define APPROXSVM_PREDICT_STAGES_PAIRS_OF_CLASSES_HPP

#include "common_expansions.hpp"
#include "gaussian_sums.hpp"
#include "winner.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// The exact stages for all pairs of classes.
template <Parts parts>
class ExactPairs final : public ExactCascade<GaussianTerms<parts, Shape::pairs>> {
    using Exact = ExactCascade<GaussianTerms<parts, Shape::pairs>>;

  public:
    using Exact::Exact;

  private:
    using Exact::job_, Exact::take_block;

    // Finds, many rows at a time, the rows in a block for which one class certainly wins all its pairs. Nearly all rows
    // have such a class.
    APPROXSVM_NOINLINE void take_block(std::size_t stride, const std::size_t* rows, std::size_t n, const double* sums,
                                       const float* half_sq_norm, bool* is_settled) override {
        if (!has(parts, batches) || wants_values(job_.out)) return;
        const ModelView& view = job_.view;
        const std::size_t n_classes = view.n_labels;
        std::uint32_t* const wins = job_.memory.block_wins;
        const Engine<float>& engine = job_.prepared.exact32;
        const EngineBound<float> rounding(engine);
        RowRounding of_row[block_rows];
        double row_error[block_rows];
        for (std::size_t r = 0; r < stride; ++r) {
            of_row[r] = rounding.of_row(static_cast<double>(half_sq_norm[r]), view.n_features);
            row_error[r] = r < n ? job_.row_error(rows[r]) : 0.0;
        }
        for (std::size_t k = 0; k < n_classes * stride; ++k) wins[k] = 0;
        for_each_pair(n_classes, [&](std::size_t pair, std::size_t i, std::size_t j) {
            const DecisionNumbers& decision = view.decisions[pair];
            const double narrowing = engine.narrowing_errors[i] + engine.narrowing_errors[j];
            std::uint32_t *first = wins + i * stride, *second = wins + j * stride;
            for (std::size_t r = 0; r < stride; ++r) {
                const double value = pair_sum(sums + r, n_classes, stride, i, j) + decision.intercept;
                const double bound =
                    rounding.of(of_row[r], pair_moduli(sums + r, n_classes, stride, i, j), narrowing, decision) +
                    this->terms_.slack(pair, row_error[r]);
                const double modulus = std::fabs(value);
                const bool is_certain = modulus > bound && modulus <= largest_double;  // false for NaN
                first[r] += is_certain && value > 0.0;
                second[r] += is_certain && value < 0.0;
            }
        });
        for (std::size_t c = 0; c < n_classes; ++c) {
            for (std::size_t r = 0; r < n; ++r) {
                if (wins[c * stride + r] != n_classes - 1) continue;
                this->decisions.settle_label(rows[r], c, by_float32);
                is_settled[r] = true;
            }
        }
    }
};

template <Parts parts>
class ClassCascade : public CommonExpansions {
    friend class WinnerStage<parts, ClassCascade>;

  public:
    static constexpr Parts list = parts;

    explicit ClassCascade(const Job& job)
        : CommonExpansions(job),
          n_classes_(view_.n_labels),
          labels_only_(!wants_values(job.out) && view_.mode != Mode::approximate),
          exact_(job),
          winner_(job, *this),
          speculates_(labels_only_ && winner_.is_there()),
          few_is_first_(prepared_.subspaces.n_stages == 0) {}

    // Returns whether expansions are used: if only labels are wanted, or if there are expansions for all pairs.
    bool expands() const { return labels_only_ || !view_.majority_only; }

    // Evaluates n rows near the center.
    template <int Registers>
    Status take(const std::size_t* rows, std::size_t n, const float* u, const OutsideNorms& outside) {
        RowsAround<Registers> around(rows, n, u, outside);
        std::uint32_t wins[rows_in<Registers>] = {};
        if (labels_only_) {
            for_majority_pairs([&](std::size_t, std::size_t form, Outcome won, std::size_t pair) {
                evaluate_function(pair, form, around, view_.degree);
                const double *values = values_of<Registers>(pair), *bounds = bounds_of<Registers>(pair);
                for (std::size_t r = 0; r < around.stride; ++r) wins[r] += outcome_of(values[r], bounds[r]) == won;
            });
        } else {
            for (std::size_t k = 0; k < n_decisions_; ++k) evaluate_function(k, k, around, view_.degree);
        }
        const Status status = around.finite ? Status::ok : job_.check(rows, n);
        if (status != Status::ok) return status;
        for (std::size_t r = 0; r < n; ++r) {
            if (labels_only_) {
                refine_label(rows[r], wins[r], values_of<Registers>(0) + r, bounds_of<Registers>(0) + r,
                             stride_of<Registers>);
            } else {
                choose_row<Registers>(r);
                judge(rows[r]);
            }
        }
        return Status::ok;
    }

    void send_to_float32(std::size_t i) {
        if (few_is_first_ && exact_.answer_by_few_values(i)) return;
        if (!speculates_ || !(winner_.speculates() || elects())) return exact_.send_to_engine32(i);
        if (!begins_sparse(i)) winner_.send(i);
    }
    void send_to_float64(std::size_t i) { exact_.send_to_float64(i); }

    Status finish() {
        if (speculates_) winner_.finish();
        return exact_.finish();
    }

  private:
    std::size_t majority_class() const { return view_.majority_classes[center_]; }
    // Calls visit(other class, the center's form, outcome if the majority class wins, pair) for the majority class's
    // pairs.
    template <class Visit>
    void for_majority_pairs(const Visit& visit) const {
        for_pairs_of_class(n_classes_, majority_class(),
                           [&](std::size_t c, std::size_t f, double sign, std::size_t pair) {
                               const Outcome won = sign < 0.0 ? Outcome::second : Outcome::first;
                               visit(c, view_.majority_only ? f : pair, won, pair);
                           });
    }

    // --- expansions

    // Determines row i's label if possible. `wins` is the number of pairs that the majority class certainly wins;
    // values and bounds are `stride` apart.
    void refine_label(std::size_t i, std::size_t wins, const double* values, const double* bounds, std::size_t stride) {
        if (wins == n_classes_ - 1) return settle_winner(i, majority_class(), by_expansion);
        if (few_is_first_ && exact_.answer_by_few_values(i)) return;
        if (!speculates_) return exact_.send_to_engine32(i);
        // Read the values now: the engine for sparse rows may next evaluate an earlier row in the same memory.
        std::size_t speculated = majority_class();
        winner_.begin(i, speculated, [&](const auto& know) {
            for_majority_pairs([&](std::size_t c, std::size_t, Outcome won, std::size_t pair) {
                const Outcome outcome = outcome_of(values[pair * stride], bounds[pair * stride]);
                if (outcome == Outcome::unknown) return;
                know(c, pair, outcome == won);
                if (outcome != won) speculated = c;
            });
        });
        if (!begins_sparse(i)) winner_.send(i, speculated);
    }
    // Determines row i's label from the values of all pairs, if possible.
    void judge(std::size_t i) {
        if (view_.mode == Mode::approximate || exact_.decisions.suffice(value_, bound_))
            exact_.decisions.settle(i, value_, bound_, by_expansion);
        else
            exact_.send_to_float32(i);
    }

    // --- the winner

    // If a row has few nonzeros, evaluating all pairs using only these is cheaper than evaluating the winner's pairs
    // using all features, unless there are many classes; but it is not cheaper than sums over a few coordinates. The
    // limit is a fifth of the features if rows share a block, and a third for single rows.
    bool settled_as_sparse(std::size_t i, std::size_t share) { return exact_.send_sparse(i, view_.n_features / share); }
    bool begins_sparse(std::size_t i) {
        return prepared_.subspaces.n_stages == 0 && !elects() && settled_as_sparse(i, 5);
    }
    bool elects() const { return winner_.is_cheaper_elected(view_.n_features / 5, false); }

    // The interface of WinnerStage. On a grid of few values, all pairs share the kernel values, so no winner is
    // guessed.
    void settle_winner(std::size_t i, std::size_t winner, Stage stage) {
        exact_.decisions.settle_label(i, winner, stage);
    }
    void leave_winner(std::size_t i, bool float32_may_do) {
        if (!few_is_first_ && exact_.answer_by_few_values(i)) return;
        if (float32_may_do) return exact_.send_to_engine32(i);
        exact_.send_to_engine64(i);
    }
    bool takes(std::size_t i, std::size_t share) {
        return exact_.answer_by_few_values(i) || settled_as_sparse(i, share);
    }

    const std::size_t n_classes_;
    const bool labels_only_;
    ExactPairs<parts> exact_;
    WinnerStage<parts, ClassCascade> winner_;
    const bool speculates_;
    const bool few_is_first_;  // true if the engine for few values is used first; subspaces are cheaper
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

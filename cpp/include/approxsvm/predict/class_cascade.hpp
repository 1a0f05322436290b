// The cascade of models with several classes and one decision function per pair of classes (votes.hpp).
//
// If only labels are wanted, a row is settled as soon as its winner is certain: a class that certainly wins all its n -
// 1 pairs needs no other pair. So every stage first evaluates the pairs of one guessed winner. For expansions this is
// the majority class of the center. In the exact engine (winner_stage.hpp) it is the same class, a class that beats it,
// or the guess of a small network. The remaining rows go to the exact engines of all pairs. If decision values are
// wanted, a row is settled once the sign of every pair is certain and every bound is within the model's tolerance.
// Exact values come from the float64 engine.
#pragma once

#include "../outputs/votes.hpp"
#include "common_expansions.hpp"
#include "winner_stage.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

template <Parts parts>
class ClassCascade : public CommonExpansions {
    // Deduced types must be declared before their use.
    auto settle_winner() {
        return [this](std::size_t i, std::size_t winner, Stage stage) { settle_label(i, winner, stage); };
    }
    auto offer64() {
        return offer_by_row<double>([this](std::size_t i, const RowSums<double>& sums) {
            note_sums(i, prepared_.class64, sums);
            if (exact_ && !accurate_) return settle_by_definition(i);
            judge(i, by_float64, [this](std::size_t row) { settle_by_definition(row); });
        });
    }

  public:
    static constexpr Parts list = parts;

    ClassCascade(const PreparedModel& prepared, const RowSource& source, const Evaluation& out, std::uint64_t* counts,
                 const Request& request, const Batch& batch, const EvaluationMemory& memory)
        : CommonExpansions(prepared, source, request, memory),
          out_(out),
          counts_(counts),
          n_classes_(view_.n_labels),
          labels_only_(!wants_values(out) && view_.mode != Mode::approximate),
          exact_(wants_exact_values(view_, request, out)),
          moved_(memory.pair_moved),
          tally_(memory.tally),
          block_wins_(memory.block_wins),
          block_(memory.later_block),
          winner_(prepared, source, request, batch, slope_, block_, memory.winner, memory.subspaces),
          speculates_(labels_only_ && winner_.is_there()),
          engine32_(prepared, source, batch, {prepared.class32.expansion, memory.products32}, block_, memory.nonzeros32,
                    memory.sums32),
          engine64_(prepared, source, batch, {prepared.class64.expansion, memory.products64}, block_, memory.nonzeros64,
                    memory.sums64),
          few_(&prepared.few, source, memory.few),
          few_is_first_(prepared.subspaces.n_stages == 0) {}

    // Whether expansions decide all pairs, or the pairs of one class if only labels are wanted.
    bool expands() const { return labels_only_ || !view_.majority_only; }

    // Evaluates n rows near the center, in the lanes of `block`.
    template <int Registers>
    Status take_block(const std::size_t* rows, std::size_t n, const float* block, const OutsideNorms& outside,
                      float* scratch) {
        constexpr std::size_t stride = Registers * static_cast<std::size_t>(lanes);
        BlockOfRows<stride> common;
        std::uint32_t wins[stride] = {};
        const auto evaluate_pair = [&](std::size_t pair, std::size_t form) {
            evaluate_in_block<Registers>(pair, form, rows, n, block, outside, scratch, common, view_.degree);
        };
        if (labels_only_) {
            for_pairs_of(majority_class(), [&](std::size_t pair, Outcome won, std::size_t c) {
                evaluate_pair(pair, form_of(pair, c));
                const double *values = values_of(pair), *bounds = bounds_of(pair);
                for (std::size_t r = 0; r < stride; ++r) wins[r] += outcome_of(values[r], bounds[r]) == won;
            });
        } else {
            for (std::size_t pair = 0; pair < n_decisions_; ++pair) evaluate_pair(pair, pair);
        }
        if (!common.finite) {
            const Status status = check(rows, n);
            if (status != Status::ok) return status;
        }
        for (std::size_t r = 0; r < n; ++r) {
            if (labels_only_) {
                refine_label(rows[r], wins[r], block_values_ + r, block_bounds_ + r, block_rows);
                continue;
            }
            for (std::size_t pair = 0; pair < n_decisions_; ++pair) {
                value_[pair] = values_of(pair)[r];
                bound_[pair] = bounds_of(pair)[r];
            }
            judge(rows[r], by_expansion, [this](std::size_t row) { send_to_engine(row); });
        }
        return Status::ok;
    }

    // Evaluates one row near the center.
    Status take_row(std::size_t i, const float* u, const OutsideNorms& outside) {
        RowAlone row;
        std::uint32_t wins = 0;
        const auto evaluate_pair = [&](std::size_t pair, std::size_t form) {
            evaluate_at_row(i, pair, form, u, outside, row, view_.degree);
        };
        if (labels_only_) {
            for_pairs_of(majority_class(), [&](std::size_t pair, Outcome won, std::size_t c) {
                evaluate_pair(pair, form_of(pair, c));
                wins += outcome_of(value_[pair], bound_[pair]) == won;
            });
        } else {
            for (std::size_t pair = 0; pair < n_decisions_; ++pair) evaluate_pair(pair, pair);
        }
        if (!row.finite) {
            const Status status = check(&i, 1);
            if (status != Status::ok) return status;
        }
        if (labels_only_)
            refine_label(i, wins, value_, bound_, 1);
        else
            judge(i, by_expansion, [this](std::size_t row) { send_to_engine(row); });
        return Status::ok;
    }

    void send_to_float32(std::size_t i) {
        if (few_is_first_ && answer_by_few_values(i)) return;
        if (!speculates_ || !winner_.speculates()) return engine32_.send(i, offer32());
        if (begins_sparse(i)) return;
        winner_.send(i, settle_winner(), pass_on());
    }
    void send_to_float64(std::size_t i) {
        if (!answer_by_few_values(i)) engine64_.send(i, offer64());
    }

    Status finish() {
        if (speculates_) winner_.finish(settle_winner(), pass_on());
        engine32_.finish(offer32());
        engine64_.finish(offer64());
        return Status::ok;
    }

  private:
    std::size_t majority_class() const { return view_.majority_classes[center_]; }
    // Returns the number of the center's form for the pair of its majority class and class c.
    std::size_t form_of(std::size_t pair, std::size_t c) const {
        return view_.majority_only ? c - (c > majority_class()) : pair;
    }
    // Calls visit(pair, outcome if w wins, other class) for the pairs of class w.
    template <class Visit>
    void for_pairs_of(std::size_t w, const Visit& visit) const {
        for (std::size_t c = 0; c < n_classes_; ++c) {
            if (c < w) visit(pair_position(n_classes_, c, w), Outcome::second, c);
            if (c > w) visit(pair_position(n_classes_, w, c), Outcome::first, c);
        }
    }

    // --- expansions

    // The number of pairs that the majority class certainly wins; values and bounds are `stride` apart.
    void refine_label(std::size_t i, std::size_t wins, const double* values, const double* bounds, std::size_t stride) {
        if (wins == n_classes_ - 1) return settle_label(i, majority_class(), by_expansion);
        if (few_is_first_ && answer_by_few_values(i)) return;
        if (!speculates_) return engine32_.send(i, offer32());
        // Values are read here, because the engine of sparse rows may now answer an earlier row in the same memory.
        std::size_t speculated = majority_class();
        winner_.begin(i, [&](const auto& know) {
            for_pairs_of(majority_class(), [&](std::size_t pair, Outcome won, std::size_t c) {
                const Outcome outcome = outcome_of(values[pair * stride], bounds[pair * stride]);
                if (outcome != won && outcome != Outcome::unknown) speculated = c;
                know(pair, outcome);
            });
        });
        if (begins_sparse(i)) return;
        winner_.send(i, speculated, settle_winner(), pass_on());
    }

    // --- the exact engines

    void send_to_engine(std::size_t i) {
        if (!answer_by_few_values(i)) engine32_.send(i, offer32());
    }

    // Evaluates a row on the grid of few values: in float32, in float64, by the definition. False for any other row.
    // All pairs share the kernel values, so no winner is guessed.
    bool answer_by_few_values([[maybe_unused]] std::size_t i) {
        if constexpr (has(parts, few_values)) return answer_on_grid(i);
        return false;
    }
    bool answer_on_grid(std::size_t i) {
        if ((exact_ && !few_.settles_all()) || !few_.takes(i)) return false;
        if (!exact_) {
            few_.kernels32();
            const auto sum = [this](std::size_t c, std::size_t f) { return few_.class_sum32(c, f); };
            const auto bound = [this](double moduli, const DecisionNumbers& d) { return few_.bound32(moduli, d); };
            note_pairs(i, sum, bound);
            bool is_open = false;
            judge(i, by_float32, [&](std::size_t) { is_open = true; });
            if (!is_open) return true;
        }
        if (!few_.settles_all()) return false;
        few_.sums64();
        const auto sum = [this](std::size_t c, std::size_t f) { return few_.class_sum64(c, f); };
        const auto bound = [this](double moduli, const DecisionNumbers& d) { return few_.bound64(moduli, d); };
        note_pairs(i, sum, bound);
        if (exact_ && !accurate_) {
            settle_by_definition(i);
        } else {
            judge(i, by_float64, [this](std::size_t row) { settle_by_definition(row); });
        }
        return true;
    }

    // sum(c, f) is the sum of class c in its pair f; bound(moduli, decision) bounds its error.
    template <class Sum, class Bound>
    void note_pairs(std::size_t row, const Sum& sum, const Bound& bound) {
        accurate_ = true;
        for_each_pair(n_classes_, [&](std::size_t pair, std::size_t i, std::size_t j) {
            const DecisionNumbers& decision = view_.decisions[pair];
            const double first = sum(i, j - 1), second = sum(j, i);
            const double rounding = bound(std::fabs(first) + std::fabs(second), decision);
            value_[pair] = first + second + decision.intercept;
            bound_[pair] = rounding + slack_of(row, pair);
            accurate_ &= rounding <= exact_share * decision.sum_moduli;
        });
    }

    // If a row has few non-zeros, evaluating all pairs by the non-zeros is cheaper than the winner's pairs by all
    // features, but not cheaper than few coordinates. The limit is a fifth of the features if rows share a block, and a
    // third for single rows.
    bool settled_as_sparse(std::size_t i, std::size_t share) {
        return engine32_.send_sparse(i, view_.n_features / share, offer32());
    }
    bool begins_sparse(std::size_t i) { return prepared_.subspaces.n_stages == 0 && settled_as_sparse(i, 5); }

    struct PassOn {
        ClassCascade& cascade;

        void operator()(std::size_t i, bool float32_may_do) const {
            if (!cascade.few_is_first_ && cascade.answer_by_few_values(i)) return;
            if (float32_may_do) return cascade.engine32_.send(i, cascade.offer32());
            cascade.engine64_.send(i, cascade.offer64());
        }
        bool takes(std::size_t i, std::size_t share) const {
            return cascade.answer_by_few_values(i) || cascade.settled_as_sparse(i, share);
        }
    };
    PassOn pass_on() { return {*this}; }

    class Offer32 final : public Offer<float> {
      public:
        explicit Offer32(ClassCascade& cascade) : cascade_(cascade) {}

        APPROXSVM_NOINLINE void take(std::size_t i, const RowSums<float>& sums) const override {
            cascade_.note_sums(i, cascade_.prepared_.class32, sums);
            cascade_.judge(i, by_float32,
                           [this](std::size_t row) { cascade_.engine64_.send(row, cascade_.offer64()); });
        }
        APPROXSVM_NOINLINE void take_block(std::size_t stride, const std::size_t* rows, std::size_t n,
                                           const double* sums, const float* half_sq_norm,
                                           bool* is_settled) const override {
            if (has(parts, batches) && cascade_.labels_only_)
                cascade_.settle_winners(stride, rows, n, sums, half_sq_norm, is_settled);
        }

      private:
        ClassCascade& cascade_;
    };
    Offer32 offer32() { return Offer32(*this); }
    // Finds the rows of a block that have a class that certainly wins all its pairs, many rows at a time. Nearly all
    // rows have one.
    void settle_winners(std::size_t stride, const std::size_t* rows, std::size_t n, const double* sums,
                        const float* half_sq_norm, bool* is_settled) {
        const ClassEngine<float>& engine = prepared_.class32;
        const EngineBound<float> rounding(engine.expansion.kernels, engine.typical_half_sq_norm);
        RowRounding of_row[block_rows];
        double row_error[block_rows];
        for (std::size_t r = 0; r < stride; ++r) {
            of_row[r] = rounding.of_row(static_cast<double>(half_sq_norm[r]), view_.n_features);
            row_error[r] = r < n ? row_error_of(request_, rows[r]) : 0.0;
        }
        for (std::size_t k = 0; k < n_classes_ * stride; ++k) block_wins_[k] = 0;
        for_each_pair(n_classes_, [&](std::size_t pair, std::size_t i, std::size_t j) {
            const DecisionNumbers& decision = view_.decisions[pair];
            const double narrowing = engine.narrowing_errors[i] + engine.narrowing_errors[j];
            std::uint32_t *first = block_wins_ + i * stride, *second = block_wins_ + j * stride;
            for (std::size_t r = 0; r < stride; ++r) {
                const double value = pair_sum(sums + r, n_classes_, stride, i, j) + decision.intercept;
                const double bound =
                    rounding.of(of_row[r], pair_moduli(sums + r, n_classes_, stride, i, j), narrowing, decision) +
                    row_slack(decision, slope_, row_error[r]);
                const double modulus = std::fabs(value);
                const bool is_certain = modulus > bound && modulus <= largest_double;  // false if either is NaN
                first[r] += is_certain && value > 0.0;
                second[r] += is_certain && value < 0.0;
            }
        });
        for (std::size_t c = 0; c < n_classes_; ++c) {
            for (std::size_t r = 0; r < n; ++r) {
                if (block_wins_[c * stride + r] != n_classes_ - 1) continue;
                settle_label(rows[r], c, by_float32);
                is_settled[r] = true;
            }
        }
    }

    template <class Real>
    void note_sums(std::size_t row_number, const ClassEngine<Real>& engine, const RowSums<Real>& row) {
        accurate_ = true;
        const EngineBound<Real> rounding(engine.expansion.kernels, engine.typical_half_sq_norm);
        const RowRounding of_row = rounding.of_row(static_cast<double>(row.half_sq_norm), row.n_terms);
        const double row_error = row_error_of(request_, row_number);
        for_each_pair(n_classes_, [&](std::size_t pair, std::size_t i, std::size_t j) {
            const DecisionNumbers& decision = view_.decisions[pair];
            value_[pair] = pair_sum(row.sums, n_classes_, row.stride, i, j) + decision.intercept;
            const double bound = rounding.of(of_row, pair_moduli(row.sums, n_classes_, row.stride, i, j),
                                             engine.narrowing_errors[i] + engine.narrowing_errors[j], decision);
            accurate_ &= bound <= exact_share * decision.sum_moduli;
            bound_[pair] = bound + row_slack(decision, slope_, row_error);
        });
    }

    void settle_by_definition(std::size_t i) {
        for (std::size_t pair = 0; pair < n_decisions_; ++pair) value_[pair] = bound_[pair] = moved_[pair] = 0.0;
        std::size_t c = 0, end = view_.class_counts[0];  // class of support vector k
        for_kernels_by_definition(prepared_, source_, i, row_error_of(request_, i), block_,
                                  [&](std::size_t k, double kernel, double moved) {
                                      while (k == end) end += view_.class_counts[++c];
                                      add_kernel(c, k, kernel, moved);
                                  });
        for (std::size_t pair = 0; pair < n_decisions_; ++pair) {
            const DecisionNumbers& decision = view_.decisions[pair];
            bound_[pair] =
                1.0001 * (definition_bound(view_, decision, bound_[pair]) + decision.value_error + moved_[pair]);
            value_[pair] += view_.decisions[pair].intercept;
        }
        settle(i, by_definition);
    }

    // Adds support vector k, of class c, to the values of its pairs, and its moduli to their bounds.
    void add_kernel(std::size_t c, std::size_t k, double kernel, double moved) {
        for (std::size_t other = 0; other < n_classes_; ++other) {
            if (other == c) continue;
            const std::size_t pair =
                c < other ? pair_position(n_classes_, c, other) : pair_position(n_classes_, other, c);
            const double a = view_.dual_coef[(other < c ? other : other - 1) * view_.n_sv + k];
            value_[pair] += a * kernel;
            bound_[pair] += std::fabs(a) * kernel;
            moved_[pair] += std::fabs(a) * moved;
        }
    }

    // --- answers

    // Settles row i by the values of all pairs if they suffice, else passes it on.
    template <class PassOn>
    void judge(std::size_t i, Stage stage, const PassOn& pass_on) {
        if (view_.mode == Mode::approximate || (labels_only_ ? label_is_certain() : values_suffice()))
            return settle(i, stage);
        pass_on(i);
    }

    bool label_is_certain() {
        std::size_t winner;
        return certain_vote(n_classes_, value_, bound_, tally_, winner);
    }

    bool values_suffice() {
        for (std::size_t pair = 0; pair < n_decisions_; ++pair) {
            if (!(bound_[pair] <= view_.tolerance) || outcome_of(value_[pair], bound_[pair]) == Outcome::unknown)
                return false;
        }
        return true;
    }

    void settle(std::size_t i, Stage stage) {
        for (std::size_t pair = 0; pair < n_decisions_; ++pair) {
            if (out_.values) out_.values[i * n_decisions_ + pair] = value_[pair];
            if (out_.bounds) out_.bounds[i * n_decisions_ + pair] = bound_[pair];
        }
        settle_label(i, vote_winner(n_classes_, value_, tally_), stage);
    }

    void settle_label(std::size_t i, std::size_t winner, Stage stage) {
        if (out_.labels) out_.labels[i] = static_cast<std::uint32_t>(winner);
        if (out_.stages) out_.stages[i] = stage;
        ++counts_[stage];
    }

    const Evaluation out_;
    std::uint64_t* const counts_;
    const std::size_t n_classes_;
    const bool labels_only_, exact_;
    bool accurate_ = true;  // the engine's sums of a row are accurate enough for exact values
    double* const moved_;   // for one row, (n_decisions,)
    std::uint32_t* const tally_;
    std::uint32_t* const block_wins_;  // (n_labels, block_rows)
    float* const block_;
    WinnerStage<parts> winner_;
    const bool speculates_;
    EngineOf<parts, float, ClassSums<float>> engine32_;
    EngineOf<parts, double, ClassSums<double>> engine64_;
    IfPart<parts, few_values, FewValuesStage> few_;
    const bool few_is_first_;  // false if subspaces, which take less, are used
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

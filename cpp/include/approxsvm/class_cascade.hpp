// The cascade of models with several classes, one decision function for each pair of them (heads.hpp).
//
// When labels alone are wanted, a row is settled as soon as its winner is certain. Most rows around a center belong to
// one class, its favourite, and a class that wins all its n - 1 pairs for certain needs no other pair; rows for which
// that fails get the pairs of the classes still in play, and then the exact engines. When decision values are wanted, a
// row is settled once the sign of every pair is certain and every bound within the model's tolerance.
#pragma once

#include "cascade.hpp"
#include "heads.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

template <class Source>
class ClassCascade {
  public:
    ClassCascade(const PreparedModel& prepared, const Source& source, const Evaluation& out, std::uint64_t* counts,
                 const Request& request, const Batch& batch, const EvaluationMemory& memory)
        : prepared_(prepared),
          view_(*prepared.view),
          source_(source),
          out_(out),
          counts_(counts),
          row_error_(request.row_error),
          n_classes_(view_.n_labels),
          n_decisions_(view_.n_decisions),
          labels_only_(!out.values && !out.bounds && view_.mode != Mode::approximate),
          values_(memory.pair_values),
          bounds_(memory.pair_bounds),
          evaluated_(memory.pair_marks),
          open_pairs_(memory.pair_marks + view_.n_decisions),
          tally_(memory.tally),
          block_(memory.later_block),
          engine32_(prepared, source, batch, {prepared.class32.expansion}, block_, memory.nonzeros32, memory.sums32),
          engine64_(prepared, source, batch, {prepared.class64.expansion}, block_, memory.nonzeros64, memory.sums64) {}

    void begin_center(std::size_t center) { center_ = center; }
    const float* center() const { return view_.centers + center_ * view_.n_features; }

    // n rows near the center, in the lanes of `block`.
    template <int Registers>
    Status take_block(const std::size_t* rows, std::size_t n, const float* block, const double* unseen,
                      float* scratch) {
        std::uint32_t wins[block_rows] = {};
        bool finite = true;
        const auto evaluate_pair = [&](std::size_t pair) {
            Value values[block_rows];
            const Expansion expansion = expansion_of(view_, center_, pair);
            finite &= evaluate_block<Registers>(view_, expansion, block, scratch, n, values);
            for (std::size_t r = 0; r < n; ++r) note_value(expansion, pair, unseen[r], values[r], r);
        };
        if (labels_only_) {
            for_pairs_of(favourite(), [&](std::size_t pair, Outcome won) {
                evaluate_pair(pair);
                for (std::size_t r = 0; r < n; ++r) wins[r] += outcome_at(r, pair) == won;
            });
        } else {
            for (std::size_t pair = 0; pair < n_decisions_; ++pair) evaluate_pair(pair);
        }
        if (!finite) {
            const Status status = check(rows, n);
            if (status != Status::ok) return status;
        }
        for (std::size_t r = 0; r < n; ++r) {
            if (!labels_only_) {
                judge(rows[r], r, by_expansion, [this](std::size_t i) { send_to_engine(i); });
            } else if (wins[r] == n_classes_ - 1) {
                settle_label(rows[r], favourite(), by_expansion);
            } else {
                refine_label(rows[r], r);
            }
        }
        return Status::ok;
    }

    // One row near the center.
    Status take_row(std::size_t i, const float* u, double unseen) {
        bool finite = true;
        const auto evaluate_pair = [&](std::size_t pair) { finite &= evaluate_pair_of_row(pair, u, unseen, 0); };
        if (labels_only_) {
            for_pairs_of(favourite(), [&](std::size_t pair, Outcome) { evaluate_pair(pair); });
        } else {
            for (std::size_t pair = 0; pair < n_decisions_; ++pair) evaluate_pair(pair);
        }
        if (!finite) {
            const Status status = check(&i, 1);
            if (status != Status::ok) return status;
        }
        if (labels_only_) {
            refine_label(i, 0);
        } else {
            judge(i, 0, by_expansion, [this](std::size_t row) { send_to_engine(row); });
        }
        return Status::ok;
    }

    void send_to_float32(std::size_t i) { send_to_engine(i); }

    void finish() {
        engine32_.finish(offer32());
        engine64_.finish(offer64());
    }

  private:
    std::size_t favourite() const { return view_.favourites[center_]; }
    double* values_of(std::size_t r) { return values_ + r * n_decisions_; }
    double* bounds_of(std::size_t r) { return bounds_ + r * n_decisions_; }
    Outcome outcome_at(std::size_t r, std::size_t pair) { return outcome_of(values_of(r)[pair], bounds_of(r)[pair]); }

    // Calls visit(pair, outcome that is a win of w) for the pairs of class w.
    template <class Visit>
    void for_pairs_of(std::size_t w, const Visit& visit) const {
        for (std::size_t c = 0; c < n_classes_; ++c) {
            if (c < w) visit(pair_position(n_classes_, c, w), Outcome::second);
            if (c > w) visit(pair_position(n_classes_, w, c), Outcome::first);
        }
    }

    Status check(const std::size_t* rows, std::size_t n) const {
        for (std::size_t r = 0; r < n; ++r) {
            const Status status = source_.check(rows[r]);
            if (status != Status::ok) return status;
        }
        return Status::ok;
    }

    // --- expansions

    void note_value(const Expansion& expansion, std::size_t pair, double unseen, Value value, std::size_t r) {
        add_unseen(view_, expansion, unseen, value);
        const std::size_t e = center_ * n_decisions_ + pair, basis = n_bases(view_) - 1;
        const float* row = prepared_.basis + (basis * n_cells + cell_of(value.half_s)) * n_bound_terms;
        values_of(r)[pair] = decision_value(expansion, value);
        bounds_of(r)[pair] =
            bound_of(row, prepared_.weights + e * n_bound_terms) + row_slack(view_, view_.decisions[pair], row_error_);
    }

    // False when the row's norm is not finite.
    bool evaluate_pair_of_row(std::size_t pair, const float* u, double unseen, std::size_t r) {
        const Expansion expansion = expansion_of(view_, center_, pair);
        const Value value = evaluate_row(view_, expansion, u);
        note_value(expansion, pair, unseen, value, r);
        return value.half_s <= largest_float;
    }

    // The favourite's pairs of row r are known; evaluates those of the classes in play until the winner is certain.
    void refine_label(std::size_t i, std::size_t r) {
        for (std::size_t pair = 0; pair < n_decisions_; ++pair) evaluated_[pair] = 0;
        for_pairs_of(favourite(), [&](std::size_t pair, Outcome) { evaluated_[pair] = 1; });
        const PairKnowledge known{values_of(r), bounds_of(r), evaluated_};
        std::uint32_t *certain = tally_, *possible = tally_ + n_classes_;
        bool is_loaded = false;
        double unseen = 0.0;
        for (;;) {
            tally_votes(n_classes_, known, certain, possible);
            std::size_t winner;
            if (certain_winner(n_classes_, certain, possible, winner)) return settle_label(i, winner, by_expansion);
            mark_open_pairs(n_classes_, known, certain, possible, open_pairs_);
            bool is_new = false;
            for (std::size_t pair = 0; pair < n_decisions_; ++pair) {
                if (!open_pairs_[pair] || evaluated_[pair]) continue;
                if (!is_loaded) unseen = source_.load_one(i, center(), view_.input_scale, block_);
                is_loaded = is_new = true;
                evaluate_pair_of_row(pair, block_, unseen, r);
                evaluated_[pair] = 1;
            }
            if (!is_new) return send_to_engine(i);
        }
    }

    // --- the exact engines

    void send_to_engine(std::size_t i) { engine32_.send(i, offer32()); }

    auto offer32() {
        return [this](std::size_t i, const RowSums<float>& sums) {
            note_sums(prepared_.class32, sums);
            judge(i, 0, by_float32, [this](std::size_t row) { engine64_.send(row, offer64()); });
        };
    }
    auto offer64() {
        return [this](std::size_t i, const RowSums<double>& sums) {
            note_sums(prepared_.class64, sums);
            judge(i, 0, by_float64, [this](std::size_t row) { settle_by_definition(row); });
        };
    }

    template <class Real>
    void note_sums(const ClassEngine<Real>& engine, const RowSums<Real>& row) {
        for_each_pair(n_classes_, [&](std::size_t pair, std::size_t i, std::size_t j) {
            const DecisionNumbers& decision = view_.decisions[pair];
            const EngineSums sums{pair_moduli(row.sums, n_classes_, row.stride, i, j), engine.typical_half_sq_norm,
                                  engine.narrowing_errors[i] + engine.narrowing_errors[j]};
            values_[pair] = pair_sum(row.sums, n_classes_, row.stride, i, j) + decision.intercept;
            bounds_[pair] = engine_bound(engine.expansion.kernels, sums, decision,
                                         static_cast<double>(row.half_sq_norm), row.n_terms) +
                            row_slack(view_, decision, row_error_);
        });
    }

    // Differences first, class after class.
    void settle_by_definition(std::size_t i) {
        const std::size_t d = view_.n_features;
        double* z = reinterpret_cast<double*>(block_);
        double* x = z + d;
        const double unseen = source_.load(i, prepared_.zeros, 1.0, z, 1);
        for (std::size_t pair = 0; pair < n_decisions_; ++pair) values_[pair] = bounds_[pair] = 0.0;
        SupportVectorReader reader(view_);
        std::size_t k = 0;
        for (std::size_t c = 0; c < n_classes_; ++c) {
            for (std::uint32_t m = 0; m < view_.class_counts[c]; ++m, ++k) {
                reader.next(x);
                double sq_distance = 0.0;
                for (std::size_t j = 0; j < d; ++j) sq_distance += (x[j] - z[j]) * (x[j] - z[j]);
                add_kernel(c, k, std::exp(-view_.gamma * (sq_distance + unseen)));
            }
        }
        for (std::size_t pair = 0; pair < n_decisions_; ++pair) {
            bounds_[pair] = definition_bound(view_, view_.decisions[pair], bounds_[pair]) +
                            row_slack(view_, view_.decisions[pair], row_error_);
            values_[pair] += view_.decisions[pair].intercept;
        }
        settle(i, 0, by_definition);
    }

    // Adds support vector k, of class c, to the values of its pairs and the moduli to their bounds.
    void add_kernel(std::size_t c, std::size_t k, double kernel) {
        for (std::size_t other = 0; other < n_classes_; ++other) {
            if (other == c) continue;
            const std::size_t pair =
                c < other ? pair_position(n_classes_, c, other) : pair_position(n_classes_, other, c);
            const double a = view_.dual_coef[(other < c ? other : other - 1) * view_.n_sv + k];
            values_[pair] += a * kernel;
            bounds_[pair] += std::fabs(a) * kernel;
        }
    }

    // --- answers

    // Settles row i by the values of all pairs at r, if they suffice, else passes it on.
    template <class PassOn>
    void judge(std::size_t i, std::size_t r, Stage stage, const PassOn& pass_on) {
        if (view_.mode == Mode::approximate || (labels_only_ ? label_is_certain(r) : values_suffice(r)))
            return settle(i, r, stage);
        pass_on(i);
    }

    bool label_is_certain(std::size_t r) {
        std::size_t winner;
        tally_votes(n_classes_, {values_of(r), bounds_of(r), nullptr}, tally_, tally_ + n_classes_);
        return certain_winner(n_classes_, tally_, tally_ + n_classes_, winner);
    }

    bool values_suffice(std::size_t r) {
        for (std::size_t pair = 0; pair < n_decisions_; ++pair) {
            if (!(bounds_of(r)[pair] <= view_.tolerance) || outcome_at(r, pair) == Outcome::unknown) return false;
        }
        return true;
    }

    void settle(std::size_t i, std::size_t r, Stage stage) {
        const double *values = values_of(r), *bounds = bounds_of(r);
        for (std::size_t pair = 0; pair < n_decisions_; ++pair) {
            if (out_.values) out_.values[i * n_decisions_ + pair] = values[pair];
            if (out_.bounds) out_.bounds[i * n_decisions_ + pair] = bounds[pair];
        }
        settle_label(i, vote_winner(n_classes_, values, tally_), stage);
    }

    void settle_label(std::size_t i, std::size_t winner, Stage stage) {
        if (out_.winners) out_.winners[i] = static_cast<std::uint32_t>(winner);
        if (out_.stages) out_.stages[i] = stage;
        ++counts_[stage];
    }

    const PreparedModel& prepared_;
    const ModelView& view_;
    const Source& source_;
    const Evaluation out_;
    std::uint64_t* const counts_;
    const double row_error_;
    const std::size_t n_classes_, n_decisions_;
    const bool labels_only_;
    double *const values_, *const bounds_;  // (block_rows, n_decisions)
    std::uint8_t *const evaluated_, *const open_pairs_;
    std::uint32_t* const tally_;
    float* const block_;
    std::size_t center_ = 0;
    EngineStage<float, ClassSums<float>, Source> engine32_;
    EngineStage<double, ClassSums<double>, Source> engine64_;
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

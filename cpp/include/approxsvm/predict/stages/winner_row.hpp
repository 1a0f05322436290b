// Evaluates a single row using the pairs of its guessed winners. Outcomes determined by a stage are kept. Each stage
// sums only over the support vectors of undecided pairs: over a few coordinates, then over all features in float32,
// then in float64.
//
// A class need not win all its pairs. The outcomes give each class a number of certain votes and of possible votes; the
// row is finished as soon as no other class can overtake the one with the most certain votes. The best classes are
// evaluated first: the next class is the one with the most possible votes. In models with many classes, a few strong
// classes beat nearly all others, more often than the winner loses a pair.
#ifndef APPROXSVM_PREDICT_STAGES_WINNER_ROW_HPP
#define APPROXSVM_PREDICT_STAGES_WINNER_ROW_HPP

#include "../../outputs/votes.hpp"
#include "definition.hpp"
#include "subspace.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Maximum number of classes guessed, one after another, for a row.
constexpr int n_attempts = 4;

// Calls visit(other class, index among w's pairs, sign of values with which w wins, pair).
template <class Visit>
inline void for_pairs_of_class(std::size_t n_classes, std::size_t w, const Visit& visit) {
    for (std::size_t c = 0; c < n_classes; ++c) {
        if (c < w) visit(c, c, -1.0, pair_position(n_classes, c, w));
        if (c > w) visit(c, c - 1, 1.0, pair_position(n_classes, w, c));
    }
}

// Evaluates the pairs f of class w with is_wanted(f), from a subspace's sums in `room`, for rows in lanes; calls
// note(row of the block, other class, pair, margin by which w wins, bound).
template <std::size_t Stride, class IsWanted, class Note>
inline void for_margins_in_subspace(const Job& job, const SubspaceRoom& room, std::size_t w, std::size_t stage,
                                    const IsWanted& is_wanted, const std::size_t* rows, std::size_t n,
                                    const ResidualOfRow* residuals, const ListedErrors* listed, const Note& note) {
    const PreparedModel& prepared = job.prepared;
    const ResidualNumbers* const known = prepared.subspaces.sums[w * prepared.subspaces.n_stages + stage].known;
    for_pairs_of_class(job.view.n_labels, w, [&](std::size_t c, std::size_t f, double sign, std::size_t pair) {
        if (!is_wanted(f)) return;
        const DecisionNumbers& decision = job.view.decisions[pair];
        const double *own = room.own + f * Stride, *other = room.others + f * Stride;
        const double fixed = 0x1p-51 * std::fabs(decision.intercept);
        for (std::size_t r = 0; r < n; ++r) {
            const double moduli = std::fabs(own[r]) + std::fabs(other[r]);
            const double error = listed[r].of_moduli * moduli + listed[r].of_all_moduli * decision.sum_moduli;
            const double bound = residual_bound(residuals[r], known[f], moduli, error) +
                                 row_slack(decision, prepared.slope, job.row_error(rows[r])) + fixed;
            note(r, c, pair, sign * (residuals[r].gaussian * (own[r] + other[r]) + decision.intercept), bound);
        }
    });
}

template <Parts parts>
class WinnerRow {
  public:
    // `block` must hold a row of doubles; it may be shared.
    WinnerRow(const Job& job, float* block, const WinnerRoom& memory, const SubspaceRoom& subspaces)
        : job_(job),
          prepared_(job.prepared),
          view_(job.view),
          n_(view_.n_labels),
          block_(block),
          memory_(memory),
          subspaces_(subspaces) {}

    // Begins row i, with no known outcomes.
    void begin(std::size_t i) {
        row_ = i;
        n_in_float64_ = n_listed_ = 0;
        is_loaded_ = is_loaded_about_center_ = false;
        for (std::size_t pair = 0; pair < view_.n_decisions; ++pair) memory_.known[pair] = Outcome::unknown;
        for (std::size_t c = 0; c < n_; ++c) {
            memory_.has_values[c] = false;
            memory_.progress[c] = Progress::none;
            certain()[c] = 0;
            possible()[c] = static_cast<std::uint32_t>(n_ - 1);
        }
    }
    // Records that class w certainly wins or loses its pair with c, which was undecided.
    void know(std::size_t w, std::size_t c, std::size_t pair, bool wins) {
        memory_.known[pair] = wins == (w < c) ? Outcome::first : Outcome::second;
        ++certain()[wins ? w : c];
        --possible()[wins ? c : w];
    }

    // Records the guess that w wins; returns false if it has been guessed before.
    bool guess(std::size_t w) {
        const bool is_new = memory_.progress[w] == Progress::none;
        if (is_new) memory_.progress[w] = Progress::guessed;
        return is_new;
    }
    // Returns whether the votes certainly elect a class.
    bool is_settled(std::size_t& winner) const {
        return is_class(approxsvm_certain_winner(static_cast<int>(n_), certain(), possible()), winner);
    }
    bool is_beaten(std::size_t w) const { return possible()[w] < n_ - 1; }
    // Returns the class that most clearly beats the last evaluated class, among the pairs whose outcome that evaluation
    // determined; n_labels if none does.
    std::size_t beaten_by() const { return beaten_by_; }

    // Returns the network's guess of row i's class; the row need not have been begun.
    std::size_t speculated(std::size_t i) {
        load(i);
        return prepared_.winner.speculated_class(memory_.row, half_sq_norm_, memory_.scores, memory_.values,
                                                 memory_.lists, memory_.own);
    }

    // Evaluates w's undecided pairs over the coordinates of a level, the first n_known of which are known from the
    // previous level.
    void judge_in_subspace(std::size_t w, std::size_t level, std::size_t n_known) {
        begin_class();
        if constexpr (has(parts, subspaces)) {
            float* const u = memory_.row_about_center;
            if (!is_loaded_about_center_) half_s_ = load_about_center(job_, row_, u);
            is_loaded_about_center_ = true;
            ResidualOfRow residual;
            const auto is_wanted = [&](std::size_t f) { return is_needed(f < w ? f : f + 1, w); };
            const ListedErrors listed =
                subspace_sums_of_row(prepared_, w, level, u, half_s_, n_known, is_wanted, subspaces_, residual);
            for_margins_in_subspace<1>(job_, subspaces_, w, level, is_wanted, &row_, 1, &residual, &listed,
                                       [&](std::size_t, std::size_t c, std::size_t pair, double margin, double bound) {
                                           note(w, c, pair, margin, bound);
                                       });
        }
    }
    // Evaluates w's undecided pairs over all features in float32.
    void judge_in_float32(std::size_t w) {
        begin_class();
        if (!is_open(w)) return;
        if (!is_loaded_) load(row_);
        choose_lists(w);
        // The bound that does not use the support vectors' distances is wider, but suffices for nearly all pairs if
        // there are many. The remaining pairs can wait if a class beats w.
        if (memory_.progress[w] < Progress::by_lists && 3 * n_undecided(w) > n_) {
            memory_.progress[w] = Progress::by_lists;
            judge_lists(w);
            if (!is_open(w) || is_beaten(w)) return;
        }
        memory_.progress[w] = Progress::by_pairs;
        judge_pairs(w, prepared_.exact32, half_sq_norm_,
                    [&](std::size_t a, std::size_t c, PartOfPair& part) { part = part_of_list<true>(a, c); });
    }
    // Evaluates w's undecided pairs in float64, a few panels at a time.
    void judge_in_float64(std::size_t w) {
        begin_class();
        memory_.progress[w] = Progress::in_float64;
        n_in_float64_ += n_needed(w);
        const Engine<double>& engine = prepared_.exact64;
        const KernelVectors<double>& kernels = engine.sums.vectors;
        double* const u = reinterpret_cast<double*>(block_);
        const double unseen = job_.source.load(row_, prepared_.engine_center, view_.input_scale, u, 1);
        const double half_sq_norm = half_sq_norm_row(kernels, u, view_.n_features) + view_.gamma * unseen;
        // Calls add(first panel, number of panels, kernel values) for class c's support vectors.
        const auto add_class = [&](std::size_t c, const auto& add) {
            alignas(cache_line_bytes) double values[chunk_lanes<double>];
            std::size_t panel = 0;
            for (std::size_t k = 0; k < c; ++k) panel += lanes64_of(k) / panel_width<double>;
            const std::size_t end = panel + lanes64_of(c) / panel_width<double>;
            for (; panel < end; panel += max_chunk_panels) {
                const std::size_t n_panels = end - panel < max_chunk_panels ? end - panel : max_chunk_panels;
                chunk_kernels(kernels, GaussianTerm<double>{kernels}, panel, n_panels,
                              RowTerms<double>{u, view_.n_features}, half_sq_norm, values);
                add(panel, n_panels, values);
            }
        };
        const auto add_part = [&](std::size_t a, std::size_t c, std::size_t first, std::size_t n, const double* values,
                                  PartOfPair& part) {
            add_to_part(engine.sums, first, n, a < c ? a : a - 1, engine.typical_half_sq_norm, values, part);
        };
        for (std::size_t c = 0; c < n_; ++c) memory_.parts[c] = {};
        add_class(w, [&](std::size_t first, std::size_t n, const double* values) {
            for (std::size_t c = 0; c < n_; ++c) {
                if (c != w && is_needed(c, w)) add_part(c, w, first, n, values, memory_.parts[c]);
            }
        });
        judge_pairs(w, engine, half_sq_norm, [&](std::size_t a, std::size_t c, PartOfPair& part) {
            if (c == w) {
                part = memory_.parts[a];
                return;
            }
            add_class(c, [&](std::size_t first, std::size_t n, const double* values) {
                add_part(a, c, first, n, values, part);
            });
        });
    }

    // Returns whether w's undecided pairs should be summed in float64: in total, such sums may use at most as many
    // support vectors as the engine for all pairs.
    bool affords_float64(std::size_t w) const {
        return n_in_float64_ + n_needed(w) <= prepared_.exact64.sums.vectors.n_panels * panel_width<double>;
    }
    Stage stage() const { return n_in_float64_ > 0 ? by_float64 : by_float32; }

    // Evaluates one class after another, beginning with `next`, and returns whether the votes certainly elect a class.
    // A class that no other beats is probably the winner or close to it; its undecided pairs are therefore summed in
    // float64 immediately. Undecided pairs of other classes wait until no class is left for float32.
    bool elects(std::size_t next, std::size_t& winner) {
        for (; next < n_; next = next_in(Progress::by_pairs)) {
            judge_in_float32(next);
            if (is_settled(winner)) return true;
            if (is_open(next) && !is_beaten(next) && affords_float64(next)) {
                judge_in_float64(next);
                if (is_settled(winner)) return true;
            }
        }
        while ((next = next_in(Progress::in_float64)) < n_) {
            judge_in_float64(next);
            if (is_settled(winner)) return true;
        }
        return false;
    }

    // For the classes that may win, determines by the definition the pairs that float64 leaves undecided, as at a tie,
    // and returns the winner. Returns n_labels if some of these pairs were not summed in float64.
    std::size_t elected_by_definition() {
        const std::size_t leader = this->leader();
        for (std::size_t c = 0; c < n_; ++c) {
            if (!may_win(c, leader)) continue;
            for (std::size_t other = 0; other < n_; ++other) {
                if (other != c && is_needed(other, c) && memory_.progress[c] < Progress::in_float64 &&
                    memory_.progress[other] < Progress::in_float64)
                    return n_;
            }
        }
        for (std::size_t c = 0; c < n_; ++c) {
            if (may_win(c, leader)) memory_.progress[c] = Progress::by_definition;
        }
        const auto for_opponents = [&](std::size_t c, const auto& visit) {
            for (std::size_t other = 0; other < n_; ++other) {
                const bool is_wanted = memory_.progress[c] == Progress::by_definition ||
                                       memory_.progress[other] == Progress::by_definition;
                if (is_wanted && other != c && is_needed(other, c)) visit(other, pair_of(n_, c, other));
            }
        };
        const EvaluationMemory& memory = job_.memory;
        const DefinedSums sums{memory.row_values, memory.row_bounds, memory.row_room};
        pairs_by_definition(view_, DefinedKernels(prepared_, job_.source, row_, job_.row_error(row_), block_), sums,
                            for_opponents, memory.tally);
        for (std::size_t c = 0; c < n_; ++c) {
            for_opponents(c, [&](std::size_t other, std::size_t pair) {
                know(c, other, pair, (sums.values[pair] > 0.0) == (c < other));
            });
        }
        return this->leader();
    }

  private:
    std::uint32_t* certain() const { return memory_.tally; }
    std::uint32_t* possible() const { return memory_.tally + n_; }
    void begin_class() {
        worst_ = 0.0;
        beaten_by_ = n_;
    }
    std::size_t n_undecided(std::size_t w) const { return possible()[w] - certain()[w]; }
    bool is_open(std::size_t w) const { return n_undecided(w) > 0; }

    // The class with the most certain votes, and whether another class may still overtake it.
    std::size_t leader() const {
        return static_cast<std::size_t>(approxsvm_most_votes(static_cast<int>(n_), certain()));
    }
    bool may_win(std::size_t c, std::size_t leader) const {
        return c == leader || possible()[c] + (c < leader) > certain()[leader];
    }

    // Returns the next class to evaluate: the leading class or one that may overtake it, with undecided pairs, less
    // progress than `progress`, and the most possible votes; n_labels if no class remains.
    std::size_t next_in(Progress progress) const {
        const std::size_t leader = this->leader();
        std::size_t best = n_;
        for (std::size_t c = 0; c < n_; ++c) {
            if (memory_.progress[c] >= progress || !is_open(c)) continue;
            if (!may_win(c, leader)) continue;
            if (progress == Progress::in_float64 && !affords_float64(c)) continue;
            if (best == n_ || possible()[c] > possible()[best] ||
                (possible()[c] == possible()[best] && c == beaten_by_))
                best = c;
        }
        return best;
    }
    // Number of float64 lanes with support vectors of w's undecided pairs.
    std::size_t n_needed(std::size_t w) const {
        std::size_t n_lanes = 0;
        for (std::size_t c = 0; c < n_; ++c) n_lanes += c != w && is_needed(c, w) ? lanes64_of(c) : 0;
        return n_lanes > 0 ? n_lanes + lanes64_of(w) : 0;
    }
    std::size_t lanes64_of(std::size_t c) const { return lanes_for<double>(view_.class_counts[c]); }
    bool is_needed(std::size_t c, std::size_t w) const {
        return c == w || memory_.known[pair_of(n_, w, c)] == Outcome::unknown;
    }
    // Records the outcome of w's undecided pair with c if the margin by which w wins or loses it exceeds the bound.
    void note(std::size_t w, std::size_t c, std::size_t pair, double margin, double bound) {
        if (!(std::fabs(margin) > bound && std::fabs(margin) <= largest_double)) return;
        know(w, c, pair, margin > 0.0);
        if (!(-margin > worst_)) return;
        worst_ = -margin;
        beaten_by_ = c;
    }

    void load(std::size_t i) {
        const std::size_t d = view_.n_features;
        const double unseen = job_.source.load(i, prepared_.engine_center, view_.input_scale, memory_.row, 1);
        half_sq_norm_ =
            half_sq_norm_row(*prepared_.winner.sums.kernels, memory_.row, d) + static_cast<float>(view_.gamma * unseen);
        for (std::size_t j = d; j < row_stride(d); ++j) memory_.row[j] = 0.0f;
        is_loaded_ = true;
    }

    // Computes the kernel values of all support vectors of the classes with is_wanted(class).
    template <class IsWanted>
    void fill_values(const IsWanted& is_wanted) {
        const WinnerKernelSum& sums = prepared_.winner.sums;
        for (std::size_t c = 0; c < n_;) {  // adjacent classes together, because their panels are adjacent
            std::size_t end = c;
            for (; end < n_ && !memory_.has_values[end] && is_wanted(end); ++end) memory_.has_values[end] = true;
            if (end > c) {
                kernels_row(*sums.kernels, sums.panel_of[c], sums.panel_of[end], memory_.row, half_sq_norm_,
                            memory_.values);
            }
            c = end + 1;
        }
    }

    // Returns the number of support vectors of class c for the class pair (c, w), rounded up to whole tiles.
    std::size_t n_listed(std::size_t w, std::size_t c) const {
        const std::size_t* const list = prepared_.winner.sums.others_of + w * n_ + c;
        return (list[1] - list[0]) * tile_rows;
    }
    // Returns whether it is cheaper to evaluate n listed support vectors than all support vectors of class c. Listed
    // ones are scattered in memory, and each costs twice as much. Once a row's lists have used half of all support
    // vectors, no more lists are used.
    bool is_cheaper_listed(std::size_t c, std::size_t n) const {
        const WinnerKernelSum& sums = prepared_.winner.sums;
        return 2 * n < panel_width<float> * (sums.panel_of[c + 1] - sums.panel_of[c]) &&
               2 * n_listed_ < panel_width<float> * sums.kernels->n_panels;
    }
    // Computes the kernel values needed for w's undecided pairs, except those that part_of_list() will compute.
    void choose_lists(std::size_t w) {
        std::size_t n_own = 0;
        for (std::size_t c = 0; c < n_ && !memory_.has_values[w]; ++c) {
            n_own += c != w && is_needed(c, w) ? n_listed(c, w) : 0;
        }
        fill_values(
            [&](std::size_t c) { return is_needed(c, w) && !is_cheaper_listed(c, c == w ? n_own : n_listed(w, c)); });
    }
    // Returns class c's part of its pair with class a.
    template <bool HasWeights>
    PartOfPair part_of_list(std::size_t a, std::size_t c) {
        const WinnerKernelSum& sums = prepared_.winner.sums;
        const std::size_t first = sums.others_of[a * n_ + c], end = sums.others_of[a * n_ + c + 1];
        const double t = prepared_.exact32.typical_half_sq_norm;
        if (memory_.has_values[c]) {
            return approxsvm::part_of_list<HasWeights>(sums.others, first, end, t, [&](std::size_t k, float* room) {
                for (std::size_t i = 0; i < list_step; ++i) room[i] = memory_.values[sums.others.lanes[k + i]];
                return room;
            });
        }
        n_listed_ += n_listed(a, c);
        kernels_of_list(*sums.kernels, sums.rows, sums.others, first, end, memory_.row, half_sq_norm_, memory_.listed);
        return approxsvm::part_of_list<HasWeights>(sums.others, first, end, t, [&](std::size_t k, float*) {
            return memory_.listed + (k - first * tile_rows);
        });
    }

    // Evaluates w's undecided pairs with the bound on lists. The pairs' data are gathered first, because they are far
    // apart in memory, and a short loop waits for many of them at a time.
    void judge_lists(std::size_t w) {
        const ListedErrors errors = winner_errors(prepared_, static_cast<double>(half_sq_norm_), job_.row_error(row_));
        const WinnerKernelSum& sums = prepared_.winner.sums;
        const float* const values = memory_.values;
        // Computes the sums of all w's pairs at once, unless most coefficients are 0.
        const bool has_own = memory_.has_values[w] && 2 * sums.others_of[n_ * n_] > sums.own_of[n_] * (n_ - 1);
        if (has_own)
            listed_sums_row(sums.own, n_ - 1, sums.own_of[w], sums.own_of[w + 1], values, memory_.lists, memory_.own);
        double *const bounds = memory_.others, *const intercepts = memory_.lists;
        for_pairs_of_class(n_, w, [&](std::size_t c, std::size_t, double, std::size_t pair) {
            const DecisionNumbers& decision = view_.decisions[pair];
            intercepts[c] = decision.intercept;
            bounds[c] = memory_.known[pair] != Outcome::unknown ? infinity
                                                                : errors.of_all_moduli * decision.sum_moduli +
                                                                      winner_bound_of_pair(prepared_, w, c, decision);
        });
        for_pairs_of_class(n_, w, [&](std::size_t c, std::size_t f, double sign, std::size_t pair) {
            if (!(bounds[c] < infinity)) return;
            const double own = has_own ? memory_.own[f] : part_of_list<false>(c, w).sum;
            const double other = part_of_list<false>(w, c).sum;
            note(w, c, pair, sign * (own + other + intercepts[c]),
                 errors.of_moduli * (std::fabs(own) + std::fabs(other)) + bounds[c]);
        });
    }
    // Evaluates w's undecided pairs with EngineBound: add(a, c, part) adds class c's part of its pair with a.
    // Coefficients are rounded to Real.
    template <class Real, class Add>
    void judge_pairs(std::size_t w, const Engine<Real>& engine, Real half_sq_norm, const Add& add) {
        const EngineBound<Real> rounding(engine);
        const RowRounding of_row = rounding.of_row(static_cast<double>(half_sq_norm), view_.n_features);
        const double row_error = job_.row_error(row_);
        for_pairs_of_class(n_, w, [&](std::size_t c, std::size_t, double sign, std::size_t pair) {
            if (memory_.known[pair] != Outcome::unknown) return;
            PartOfPair own, other;
            add(c, w, own);
            add(w, c, other);
            const DecisionNumbers& decision = view_.decisions[pair];
            const double weighted = std::fabs(own.weighted) + std::fabs(other.weighted);
            const double bound =
                rounding.of(of_row, weighted, engine.narrowing_errors[w] + engine.narrowing_errors[c], decision) +
                1.01 * unit_of<Real> * (std::fabs(own.sum) + std::fabs(other.sum)) +
                row_slack(decision, prepared_.slope, row_error);
            note(w, c, pair, sign * (own.sum + other.sum + decision.intercept), bound);
        });
    }

    const Job& job_;
    const PreparedModel& prepared_;
    const ModelView& view_;
    const std::size_t n_;  // number of classes
    float* const block_;
    const WinnerRoom& memory_;
    const SubspaceRoom& subspaces_;
    std::size_t row_ = 0;
    bool is_loaded_ = false, is_loaded_about_center_ = false;
    float half_sq_norm_ = 0.0f;
    double half_s_ = 0.0;
    std::size_t n_in_float64_ = 0, n_listed_ = 0;  // number of lanes
    double worst_ = 0.0;                           // the largest margin by which a class beats the guessed one
    std::size_t beaten_by_ = 0;
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

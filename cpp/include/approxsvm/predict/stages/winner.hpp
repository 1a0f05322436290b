// Evaluates rows using the pairs of a guessed class, to which they probably belong. Rows of the same class are
// evaluated together as soon as they fill a block. For most rows, the guessed class certainly wins all its pairs, and
// is therefore the label. If it certainly loses a pair, the class that beats it most clearly is guessed next; this is
// repeated a few times. Then the votes of further classes determine the label, one row at a time, unless it is cheaper
// to evaluate the rows together by the engine for all pairs. If there are subspaces, a class's pairs are evaluated over
// a few coordinates first, then over more, and finally over all features.
#ifndef APPROXSVM_PREDICT_STAGES_WINNER_HPP
#define APPROXSVM_PREDICT_STAGES_WINNER_HPP

#include "winner_row.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// The outcome of a class's pairs for a row: whether the class certainly wins all of them, and which other class
// certainly beats it.
struct WinnerOutcome {
    bool wins_all;
    std::size_t beaten_by;  // class that certainly beats this one; n_labels if none does
};

// Calls next.settle_winner(row, class, stage) for rows with a certain winner and next.leave_winner(row, whether float32
// sums may suffice) for the others. If subspaces leave a row undecided, next.takes(row, share) may take it before the
// class's pairs are computed over all features.
template <Parts parts, class Next>
class WinnerStage {
    // Margins by which a class wins or loses its pairs. All members have the same width, so that compilers vectorize
    // the comparison.
    template <std::size_t Stride>
    class Margins {
      public:
        explicit Margins(std::size_t n_classes) {
            for (std::size_t r = 0; r < Stride; ++r) beaten_by_[r] = n_classes;
        }
        APPROXSVM_INLINE void add(std::size_t r, std::size_t c, double margin, double bound) {
            open_[r] = margin > bound ? open_[r] : 1;  // also 1 for NaN
            const bool beaten = -margin > bound && -margin > worst_[r];
            worst_[r] = beaten ? -margin : worst_[r];
            beaten_by_[r] = beaten ? c : beaten_by_[r];
        }
        WinnerOutcome outcome(std::size_t r) const { return {open_[r] == 0, static_cast<std::size_t>(beaten_by_[r])}; }

      private:
        double worst_[Stride] = {};        // the largest margin by which a class beats the guessed one
        std::uint64_t open_[Stride] = {};  // 1 if a pair is not certainly won
        std::uint64_t beaten_by_[Stride];
    };

  public:
    WinnerStage(const Job& job, Next& next)
        : job_(job),
          prepared_(job.prepared),
          view_(job.view),
          next_(next),
          block_(job.memory.later_block),
          n_levels_(prepared_.subspaces.n_stages + 1),
          memory_(job.memory.winner),
          subspaces_(job.memory.subspaces),
          row_(job, block_, memory_, subspaces_) {
        for (std::size_t q = 0; is_there() && q < n_levels_ * view_.n_labels; ++q) memory_.n_rows[q] = 0;
    }

    bool is_there() const { return prepared_.winner.is_usable; }
    bool speculates() const { return is_there() && prepared_.winner.speculates(); }

    // Returns whether it is cheaper to determine a single row's winner by votes, which requires all kernel values, than
    // to evaluate the row in a block of the engine for all pairs, with n_features features. In that engine, each
    // support vector is added to one float64 sum per class, and the bound of a pair costs as much as about 64
    // multiply-adds. A float64 operation counts twice.
    bool is_cheaper_elected(std::size_t n_features, bool in_float64) const {
        const auto n = static_cast<double>(view_.n_labels);
        const double alone = static_cast<double>(view_.n_features) + work_of_exp;
        const double of_all =
            static_cast<double>(n_features) + work_of_exp + 2.0 * n + 32.0 * n * n / static_cast<double>(view_.n_sv);
        return 8.0 / static_cast<double>(alone_eighths_of(view_)) * alone <= (in_float64 ? 2.0 : 1.0) * of_all;
    }

    // Adds row i; the network guesses the winner. Without a network, evaluation begins with an arbitrary class.
    void send(std::size_t i) {
        if (speculates() && !job_.batch.engines_alone) {
            if (unknown_.add(i)) speculate();
            return;
        }
        row_.begin(i);
        if (speculates()) return answer_alone(0, {i, 1}, row_.speculated(i));
        elect(i, 0);
    }
    // Begins row i with the decided pairs of class w: known_of(know) calls know(c, pair, whether w wins) for each of
    // them. In a batch, decided pairs are ignored, because rows are evaluated together.
    template <class KnownOf>
    void begin(std::size_t i, std::size_t w, const KnownOf& known_of) {
        if (job_.batch.engines_alone) row_.begin(i);
        known_of([&](std::size_t c, std::size_t pair, bool wins) {
            if (job_.batch.engines_alone) row_.know(w, c, pair, wins);
        });
    }
    // Continues row_ with the guess that class w wins.
    void send(std::size_t i, std::size_t w) {
        if (job_.batch.engines_alone) return answer_alone(0, {i, 1}, w);
        queue(0, {i, 1}, w);
    }

    void finish() {
        if (!is_there()) return;
        speculate();
        // Rows move to later levels, or to the first level of another class.
        for (std::size_t level = 0; level < n_levels_; level = first_level_with_rows()) {
            for (std::size_t w = 0; w < view_.n_labels; ++w) {
                if (!fills_up(level, w)) take(level, w);
            }
        }
    }

  private:
    // Evaluates row_, which has been begun, as a single row, starting at a given level.
    void answer_alone(std::size_t level, const QueuedRow& queued, std::size_t w) {
        const std::size_t last = n_levels_ - 1, i = queued.row;
        std::size_t winner, n_known = 0;  // number of known coordinates
        row_.guess(w);
        for (auto attempt = queued.attempt;;) {
            if (level < last)
                row_.judge_in_subspace(w, level, n_known);
            else
                row_.judge_in_float32(w);
            if (row_.is_settled(winner)) return next_.settle_winner(i, winner, level < last ? by_subspace : by_float32);
            if (row_.is_beaten(w)) {
                const std::size_t beaten_by = row_.beaten_by();
                if (beaten_by == view_.n_labels || attempt++ >= n_attempts || !row_.guess(beaten_by)) break;
                w = beaten_by;
                level = n_known = 0;
            } else if (level == last) {
                break;
            } else {
                n_known = view_.subspaces.coordinates[level];
                if (++level < last) continue;
                if (next_.takes(i, 3)) return;
                if (!job_.batch.engines_alone) return queue(level, {i, attempt}, w);
            }
        }
        elect(i, w);
    }
    // Determines the label of row_, which has been begun, by votes, or calls leave_winner().
    void elect(std::size_t i, std::size_t w) {
        std::size_t winner;
        if (row_.elects(w, winner)) return next_.settle_winner(i, winner, row_.stage());
        winner = row_.elected_by_definition();
        if (winner < view_.n_labels) return next_.settle_winner(i, winner, by_definition);
        next_.leave_winner(i, false);
    }

    // Returns whether n rows of a class are evaluated one by one. Over all features, evaluating a single row reads all
    // support vectors, a full register at a time; this is four times slower if they exceed the L2 cache. Evaluating a
    // block of any size reads only the support vectors of the class's pairs, one at a time.
    bool is_cheaper_alone(std::size_t level, std::size_t w, std::size_t n) const {
        if (level + 1 < n_levels_ || job_.batch.engines_alone || !job_.batch.alone_in_engine(n))
            return job_.batch.alone_in_engine(n);
        const WinnerKernelSum& sums = prepared_.winner.sums;
        const std::size_t n_classes = view_.n_labels;
        const std::size_t n_tiles =
            sums.own_of[w + 1] - sums.own_of[w] + sums.others_of[(w + 1) * n_classes] - sums.others_of[w * n_classes];
        const std::size_t n_all = sums.kernels->n_panels * panel_width<float>;
        const std::size_t slower = n_all * view_.n_features * sizeof(float) > second_level_bytes ? 4 : 1;
        return n * n_all * slower <= n_tiles * tile_rows * static_cast<std::size_t>(lanes);
    }
    static constexpr std::size_t second_level_bytes = std::size_t{1} << 20;

    void speculate() {
        const std::size_t n = unknown_.take();
        if (n == 0) return;
        const std::size_t* const rows = unknown_.rows;
        std::uint32_t speculated[block_rows];
        if (job_.batch.alone_in_engine(n)) {
            for (std::size_t r = 0; r < n; ++r) speculated[r] = static_cast<std::uint32_t>(row_.speculated(rows[r]));
        } else {
            with_registers_for<has(parts, batches)>(n, lanes, [&](auto registers) {
                float half_sq_norm[block_rows];
                this->template load<registers.value>(rows, n, half_sq_norm);
                prepared_.winner.template speculate_block<registers.value>(block_, half_sq_norm, memory_.scores,
                                                                           speculated);
            });
        }
        for (std::size_t r = 0; r < n; ++r) queue(0, {rows[r], 1}, speculated[r]);
    }

    std::size_t queue_of(std::size_t level, std::size_t w) const { return level * view_.n_labels + w; }

    std::size_t first_level_with_rows() const {
        for (std::size_t q = 0; q < n_levels_ * view_.n_labels; ++q) {
            if (memory_.n_rows[q] > 0) return q / view_.n_labels;
        }
        return n_levels_;
    }

    void queue(std::size_t level, const QueuedRow& queued, std::size_t w) {
        const std::size_t q = queue_of(level, w);
        memory_.queues[q * block_rows + memory_.n_rows[q]++] = queued;
        if (memory_.n_rows[q] == block_rows) take(level, w);
    }
    // Empties a queue before its rows are processed, because it may be refilled meanwhile; returns its former size.
    std::size_t unqueue(std::size_t q, QueuedRow (&queued)[block_rows]) {
        const std::size_t n = memory_.n_rows[q];
        memory_.n_rows[q] = 0;
        for (std::size_t r = 0; r < n; ++r) queued[r] = memory_.queues[q * block_rows + r];
        return n;
    }
    // Queues a row left undecided by a level.
    void promote(std::size_t level, const QueuedRow& queued, std::size_t w) {
        if (level + 2 == n_levels_ && next_.takes(queued.row, 5)) return;
        queue(level + 1, queued, w);
    }

    // Moves a short remainder of a queue into free lanes of the next level's remainder, if possible; returns whether it
    // moved.
    bool fills_up(std::size_t level, std::size_t w) {
        constexpr std::size_t width = lanes;
        if (level + 1 == n_levels_) return false;
        const std::size_t q = queue_of(level, w), n = memory_.n_rows[q];
        const std::size_t n_next = memory_.n_rows[queue_of(level + 1, w)];
        if (n == 0 || n_next == 0 || n + n_next > (n_next + width - 1) / width * width) return false;
        QueuedRow queued[block_rows];
        unqueue(q, queued);
        for (std::size_t r = 0; r < n; ++r) promote(level, queued[r], w);
        return true;
    }

    void take(std::size_t level, std::size_t w) {
        QueuedRow queued[block_rows];
        const std::size_t n = unqueue(queue_of(level, w), queued);
        if (n == 0) return;
        if (is_cheaper_alone(level, w, n)) {
            for (std::size_t r = 0; r < n; ++r) {
                row_.begin(queued[r].row);
                answer_alone(level, queued[r], w);
            }
            return;
        }
        const bool is_last = level + 1 == n_levels_;
        std::size_t rows[block_rows];
        for (std::size_t r = 0; r < n; ++r) rows[r] = queued[r].row;
        WinnerOutcome outcomes[block_rows];
        with_registers_for<has(parts, batches)>(n, lanes, [&](auto registers) {
            if constexpr (has(parts, subspaces)) {
                if (!is_last) return this->template judge_in_subspace<registers.value>(w, level, rows, n, outcomes);
            }
            this->template judge<registers.value>(w, rows, n, outcomes);
        });
        for (std::size_t r = 0; r < n; ++r) {
            const bool is_open = outcomes[r].beaten_by == view_.n_labels;
            if (outcomes[r].wins_all) {
                next_.settle_winner(rows[r], w, is_last ? by_float32 : by_subspace);
            } else if (is_open && !is_last) {
                promote(level, queued[r], w);
            } else if (!is_open && queued[r].attempt < n_attempts) {
                queue(0, {rows[r], queued[r].attempt + 1}, outcomes[r].beaten_by);
            } else if (is_cheaper_elected(view_.n_features, is_open)) {
                row_.begin(rows[r]);
                elect(rows[r], is_open ? w : outcomes[r].beaten_by);
            } else {
                next_.leave_winner(rows[r], !is_open);
            }
        }
    }

    // Loads n rows into the lanes of the block.
    template <int Registers>
    void load(const std::size_t* rows, std::size_t n, float* half_sq_norm) {
        double unseen[block_rows] = {};
        load_engine_block(job_, rows, n, Registers, block_, unseen);
        half_sq_norms_block<Registers>(*prepared_.winner.sums.kernels, block_, half_sq_norm);
        for (std::size_t r = 0; r < n; ++r) half_sq_norm[r] += static_cast<float>(view_.gamma * unseen[r]);
    }

    template <int Registers>
    void judge(std::size_t w, const std::size_t* rows, std::size_t n, WinnerOutcome* outcomes) {
        constexpr std::size_t stride = Registers * static_cast<std::size_t>(lanes);
        float half_sq_norm[stride];
        load<Registers>(rows, n, half_sq_norm);
        winner_sums_block<Registers>(prepared_.winner.sums, w, block_, half_sq_norm, memory_.partial, memory_.own,
                                     memory_.others);
        ListedErrors errors[stride];
        for (std::size_t r = 0; r < stride; ++r) {
            errors[r] =
                winner_errors(prepared_, static_cast<double>(half_sq_norm[r]), r < n ? job_.row_error(rows[r]) : 0.0);
        }
        Margins<stride> margins(view_.n_labels);
        add_margins(w, errors, margins);
        for (std::size_t r = 0; r < n; ++r) outcomes[r] = margins.outcome(r);
    }
    template <std::size_t Stride>
    void add_margins(std::size_t w, const ListedErrors (&errors)[Stride], Margins<Stride>& margins) const {
        for_pairs_of_class(view_.n_labels, w, [&](std::size_t c, std::size_t f, double sign, std::size_t pair) {
            const DecisionNumbers& decision = view_.decisions[pair];
            const double fixed = winner_bound_of_pair(prepared_, w, c, decision);
            const double *own = memory_.own + f * Stride, *other = memory_.others + c * Stride;
            for (std::size_t r = 0; r < Stride; ++r) {
                const double bound = errors[r].of_moduli * (std::fabs(own[r]) + std::fabs(other[r])) +
                                     errors[r].of_all_moduli * decision.sum_moduli + fixed;
                margins.add(r, c, sign * (own[r] + other[r] + decision.intercept), bound);
            }
        });
    }

    template <int Registers>
    void judge_in_subspace(std::size_t w, std::size_t stage, const std::size_t* rows, std::size_t n,
                           WinnerOutcome* outcomes) {
        constexpr std::size_t stride = Registers * static_cast<std::size_t>(lanes);
        ResidualOfRow residuals[stride];
        ListedErrors listed[stride];
        subspace_sums<Registers>(job_, w, stage, rows, n, block_, subspaces_, residuals, listed);
        Margins<stride> margins(view_.n_labels);
        for_margins_in_subspace<stride>(
            job_, subspaces_, w, stage, [](std::size_t) { return true; }, rows, n, residuals, listed,
            [&](std::size_t r, std::size_t c, std::size_t, double margin, double bound) {
                margins.add(r, c, margin, bound);
            });
        for (std::size_t r = 0; r < n; ++r) outcomes[r] = margins.outcome(r);
    }

    const Job& job_;
    const PreparedModel& prepared_;
    const ModelView& view_;
    Next& next_;
    float* const block_;
    const std::size_t n_levels_;  // number of levels; the last uses all features
    const WinnerRoom& memory_;
    const SubspaceRoom& subspaces_;
    WinnerRow<parts> row_;
    RowQueue<block_rows> unknown_;
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

// Evaluates rows by the pairs of the class that they probably belong to, a guess. The rows of a class are evaluated
// together as soon as they fill a block. For most rows the class wins all these pairs, which answers them. If it
// certainly loses some, the class that beats it most clearly is guessed next, a few times; the remaining rows go to the
// engine of all pairs. If there are subspaces, the pairs of a class are evaluated in few coordinates first, then in
// more, and finally in all features.
#pragma once

#include "winner_row.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// A waiting row, and the number of classes guessed for it so far.
struct QueuedRow {
    std::size_t row;
    int attempt;
};

inline WinnerRoom::WinnerRoom(const ModelView& model, const CallRows& call, Arena& arena) {
    if (!has_class_engines(model)) return;
    const std::size_t n = model.n_labels, room = n * call.side_by_side;
    const std::size_t n_levels = model.subspaces.n_stages + 1;
    scores = arena.take<float>(call.side_by_side > 1 ? tiles_for(n) * tile_rows * block_rows
                                                     : kernel_expansion_panels<float>(n) * panel_width<float>);
    partial = arena.take<float>(room);
    own = arena.take<double>(room);
    others = arena.take<double>(room);
    queues = arena.take<QueuedRow>(call.side_by_side > 1 ? n_levels * room : 0);
    n_rows = arena.take<std::size_t>(n_levels * n);
    row = arena.take<float>(row_stride(model.n_features));
    row_about_center = arena.take<float>(model.subspaces.n_stages > 0 ? model.n_features : 0);
    values = arena.take<float>(class_kernel_panels<float>(sizes_of_classes(model)), panel_width<float>);
    std::size_t largest = 0;
    for (std::size_t c = 0; c < n; ++c) largest = model.class_counts[c] > largest ? model.class_counts[c] : largest;
    listed = arena.take<float>(tiles_for(largest) * tile_rows + 2 * lanes);
    lists = arena.take<double>(n * tile_rows);
    parts = arena.take<PartOfPair>(n);
    known = arena.take<Outcome>(model.n_decisions);
    has_values = arena.take<bool>(n);
    was_speculated = arena.take<bool>(n);
    tally = arena.take<std::uint32_t>(2 * n);
}

template <Parts parts>
class WinnerStage {
    // Margins by which a class wins or loses its pairs. All numbers have one width, so that compilers vectorize the
    // comparison.
    template <std::size_t Stride>
    class Margins {
      public:
        explicit Margins(std::size_t n_classes) {
            for (std::size_t r = 0; r < Stride; ++r) beaten_by_[r] = n_classes;
        }
        APPROXSVM_INLINE void add(std::size_t r, std::size_t c, double margin, double bound) {
            open_[r] = margin > bound ? open_[r] : 1;  // also if either is NaN
            const bool beaten = -margin > bound && -margin > worst_[r];
            worst_[r] = beaten ? -margin : worst_[r];
            beaten_by_[r] = beaten ? c : beaten_by_[r];
        }
        WinnerOutcome outcome(std::size_t r) const { return {open_[r] == 0, static_cast<std::size_t>(beaten_by_[r])}; }

      private:
        double worst_[Stride] = {};        // the largest margin by which a class beats the guessed one
        std::uint64_t open_[Stride] = {};  // 1 if some pair is not certainly won
        std::uint64_t beaten_by_[Stride];
    };

  public:
    // `block` has space for a block of rows and may be shared.
    WinnerStage(const PreparedModel& prepared, const RowSource& source, const Request& request, const Batch& batch,
                double slope, float* block, const WinnerRoom& memory, const SubspaceRoom& subspaces)
        : prepared_(prepared),
          view_(*prepared.view),
          source_(source),
          request_(request),
          batch_(batch),
          slope_(slope),
          block_(block),
          n_levels_(prepared.subspaces.n_stages + 1),
          memory_(memory),
          subspaces_(subspaces),
          row_(prepared, source, request, slope, block, memory, subspaces) {
        for (std::size_t q = 0; is_there() && q < n_levels_ * view_.n_labels; ++q) memory_.n_rows[q] = 0;
    }

    bool is_there() const { return prepared_.winner.is_usable; }
    bool speculates() const { return is_there() && prepared_.winner.speculates(); }

    // Adds row i; the network guesses its winner.
    template <class Settle, class PassOn>
    void send(std::size_t i, const Settle& settle, const PassOn& pass_on) {
        if (batch_.engines_alone) {
            row_.begin(i);
            return answer_alone(0, {i, 1}, row_.speculated(i), settle, pass_on);
        }
        unknown_[n_unknown_++] = i;
        if (n_unknown_ == block_rows) speculate(settle, pass_on);
    }
    // Begins row i with the pairs that are decided: known_of(know) calls know(pair, outcome) for each. A batch ignores
    // them, because its rows are evaluated together.
    template <class KnownOf>
    void begin(std::size_t i, const KnownOf& known_of) {
        if (batch_.engines_alone) row_.begin(i);
        known_of([this](std::size_t pair, Outcome outcome) {
            if (batch_.engines_alone) row_.know(pair, outcome);
        });
    }
    // Continues the row that was begun, with the guess that class w wins. Calls settle(row, class, stage) for decided
    // rows and pass_on(row, whether float32 sums may suffice) for others. If subspaces leave a row undecided,
    // pass_on.takes(row, share) may take it before the pairs of w are computed in all features.
    template <class Settle, class PassOn>
    void send(std::size_t i, std::size_t w, const Settle& settle, const PassOn& pass_on) {
        if (batch_.engines_alone) return answer_alone(0, {i, 1}, w, settle, pass_on);
        queue(0, {i, 1}, w, settle, pass_on);
    }

    template <class Settle, class PassOn>
    void finish(const Settle& settle, const PassOn& pass_on) {
        if (!is_there()) return;
        speculate(settle, pass_on);
        // Rows go to later levels, or back to the first level of another class.
        for (std::size_t level = 0; level < n_levels_; level = first_level_with_rows()) {
            for (std::size_t w = 0; w < view_.n_labels; ++w) {
                if (!fills_up(level, w, settle, pass_on)) take(level, w, settle, pass_on);
            }
        }
    }

  private:
    // Evaluates the begun row_, starting at a level.
    template <class Settle, class PassOn>
    void answer_alone(std::size_t level, const QueuedRow& queued, std::size_t w, const Settle& settle,
                      const PassOn& pass_on) {
        const std::size_t last = n_levels_ - 1, n = view_.n_labels, i = queued.row;
        row_.speculate(w);
        std::size_t n_known = 0;  // coordinates
        for (auto attempt = queued.attempt;;) {
            WinnerOutcome outcome = level < last ? row_.judge_in_subspace(w, level, n_known) : row_.judge_in_float32(w);
            bool is_open = !outcome.wins_all && outcome.beaten_by == n;
            n_known = is_open && level < last ? view_.subspaces.coordinates[level] : 0;
            if (is_open && level < last) {
                if (++level < last) continue;
                if (pass_on.takes(i, 3)) return;
                if (!batch_.engines_alone) return queue(level, {i, attempt}, w, settle, pass_on);
                continue;
            }
            if (is_open && row_.affords_float64(w)) {
                outcome = row_.judge_in_float64(w);
                is_open = !outcome.wins_all && outcome.beaten_by == n;
            }
            if (outcome.wins_all) return settle(i, w, level < last ? by_subspace : row_.stage());
            if (is_open) return pass_on(i, false);
            if (attempt++ >= n_attempts || !row_.speculate(outcome.beaten_by)) {
                // Other rows of a batch share the engine of all pairs.
                if (batch_.engines_alone && row_.is_elected(w)) return settle(i, w, row_.stage());
                return pass_on(i, !batch_.engines_alone);
            }
            w = outcome.beaten_by;
            level = 0;
        }
    }

    // Whether n rows of a class are evaluated one by one. In all features, a single row reads all support vectors, a
    // register full of them at a time; beyond the second-level cache this is four times slower. A block of any size
    // reads only those of the class's pairs, one at a time.
    bool is_cheaper_alone(std::size_t level, std::size_t w, std::size_t n) const {
        if (level + 1 < n_levels_ || batch_.engines_alone || !batch_.alone_in_engine(n))
            return batch_.alone_in_engine(n);
        const WinnerKernelSum& sums = prepared_.winner.sums;
        const std::size_t n_classes = view_.n_labels;
        const std::size_t n_tiles =
            sums.own_of[w + 1] - sums.own_of[w] + sums.others_of[(w + 1) * n_classes] - sums.others_of[w * n_classes];
        const std::size_t n_all = sums.kernels->n_panels * panel_width<float>;
        const std::size_t slower = n_all * view_.n_features * sizeof(float) > second_level_bytes ? 4 : 1;
        return n * n_all * slower <= n_tiles * tile_rows * static_cast<std::size_t>(lanes);
    }
    static constexpr std::size_t second_level_bytes = std::size_t{1} << 20;

    template <class Settle, class PassOn>
    void speculate(const Settle& settle, const PassOn& pass_on) {
        const std::size_t n = n_unknown_;
        n_unknown_ = 0;
        if (n == 0) return;
        std::size_t rows[block_rows];
        for (std::size_t r = 0; r < n; ++r) rows[r] = unknown_[r];
        std::uint32_t speculated[block_rows];
        if (batch_.alone_in_engine(n)) {
            for (std::size_t r = 0; r < n; ++r) speculated[r] = static_cast<std::uint32_t>(row_.speculated(rows[r]));
        } else {
            with_registers_for<has(parts, batches)>(n, lanes, [&](auto registers) {
                float half_sq_norm[block_rows];
                this->template load<registers.value>(rows, n, half_sq_norm);
                prepared_.winner.template speculate_block<registers.value>(block_, half_sq_norm, memory_.scores,
                                                                           speculated);
            });
        }
        for (std::size_t r = 0; r < n; ++r) queue(0, {rows[r], 1}, speculated[r], settle, pass_on);
    }

    std::size_t queue_of(std::size_t level, std::size_t w) const { return level * view_.n_labels + w; }

    std::size_t first_level_with_rows() const {
        for (std::size_t q = 0; q < n_levels_ * view_.n_labels; ++q) {
            if (memory_.n_rows[q] > 0) return q / view_.n_labels;
        }
        return n_levels_;
    }

    template <class Settle, class PassOn>
    void queue(std::size_t level, const QueuedRow& queued, std::size_t w, const Settle& settle, const PassOn& pass_on) {
        const std::size_t q = queue_of(level, w);
        memory_.queues[q * block_rows + memory_.n_rows[q]++] = queued;
        if (memory_.n_rows[q] == block_rows) take(level, w, settle, pass_on);
    }
    // Empties a queue, because it may be refilled while its rows are processed; returns its former size.
    std::size_t unqueue(std::size_t q, QueuedRow (&queued)[block_rows]) {
        const std::size_t n = memory_.n_rows[q];
        memory_.n_rows[q] = 0;
        for (std::size_t r = 0; r < n; ++r) queued[r] = memory_.queues[q * block_rows + r];
        return n;
    }
    // Queues a row that a level leaves undecided.
    template <class Settle, class PassOn>
    void promote(std::size_t level, const QueuedRow& queued, std::size_t w, const Settle& settle,
                 const PassOn& pass_on) {
        if (level + 2 == n_levels_ && pass_on.takes(queued.row, 5)) return;
        queue(level + 1, queued, w, settle, pass_on);
    }

    // Moves a short remainder of a queue into free lanes of the next level's remainder; returns whether it did.
    template <class Settle, class PassOn>
    bool fills_up(std::size_t level, std::size_t w, const Settle& settle, const PassOn& pass_on) {
        constexpr std::size_t width = lanes;
        if (level + 1 == n_levels_) return false;
        const std::size_t q = queue_of(level, w), n = memory_.n_rows[q];
        const std::size_t n_next = memory_.n_rows[queue_of(level + 1, w)];
        if (n == 0 || n_next == 0 || n + n_next > (n_next + width - 1) / width * width) return false;
        QueuedRow queued[block_rows];
        unqueue(q, queued);
        for (std::size_t r = 0; r < n; ++r) promote(level, queued[r], w, settle, pass_on);
        return true;
    }

    template <class Settle, class PassOn>
    void take(std::size_t level, std::size_t w, const Settle& settle, const PassOn& pass_on) {
        QueuedRow queued[block_rows];
        const std::size_t n = unqueue(queue_of(level, w), queued);
        if (n == 0) return;
        if (is_cheaper_alone(level, w, n)) {
            for (std::size_t r = 0; r < n; ++r) {
                row_.begin(queued[r].row);
                answer_alone(level, queued[r], w, settle, pass_on);
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
            if (outcomes[r].wins_all) {
                settle(rows[r], w, is_last ? by_float32 : by_subspace);
            } else if (outcomes[r].beaten_by == view_.n_labels) {
                if (is_last)
                    pass_on(rows[r], false);
                else
                    promote(level, queued[r], w, settle, pass_on);
            } else if (queued[r].attempt < n_attempts) {
                queue(0, {rows[r], queued[r].attempt + 1}, outcomes[r].beaten_by, settle, pass_on);
            } else {
                pass_on(rows[r], true);
            }
        }
    }

    // Loads n rows into the lanes of the block.
    template <int Registers>
    void load(const std::size_t* rows, std::size_t n, float* half_sq_norm) {
        double unseen[block_rows] = {};
        load_engine_block(prepared_, source_, rows, n, Registers, block_, unseen);
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
            errors[r] = winner_errors(prepared_, static_cast<double>(half_sq_norm[r]), slope_,
                                      r < n ? row_error_of(request_, rows[r]) : 0.0);
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
        subspace_sums<Registers>(prepared_, source_, w, stage, rows, n, block_, subspaces_, residuals, listed);
        Margins<stride> margins(view_.n_labels);
        for_margins_in_subspace<stride>(
            prepared_, request_, slope_, subspaces_, w, stage, [](std::size_t) { return true; }, rows, n, residuals,
            listed,
            [&](std::size_t r, std::size_t c, std::size_t, double margin, double bound) {
                margins.add(r, c, margin, bound);
            });
        for (std::size_t r = 0; r < n; ++r) outcomes[r] = margins.outcome(r);
    }

    const PreparedModel& prepared_;
    const ModelView& view_;
    const RowSource& source_;
    const Request request_;
    const Batch batch_;
    const double slope_;
    float* const block_;
    const std::size_t n_levels_;  // the last level uses all features
    const WinnerRoom memory_;
    const SubspaceRoom subspaces_;
    WinnerRow<parts> row_;
    std::size_t n_unknown_ = 0;
    std::size_t unknown_[block_rows];
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

// Rows on their way through the pairs of the class that they are presumed to belong to: those of a class are taken
// together as soon as they fill a block. Most rows win all these pairs, and are answered; a row that is certain to lose
// some is presumed to belong to the class that beats it most clearly, a few times; the rest is for the engine of all
// pairs.
#pragma once

#include "engine_stage.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// How many classes a row may be presumed to belong to, one after the other.
constexpr int n_attempts = 4;

// Memory of one thread for it.
struct WinnerRoom {
    float *scores, *partial;                             // (n_labels, block_rows), as many rows as whole tiles take
    double *own, *others;                                // (n_labels, block_rows)
    std::size_t *rows[n_attempts], *n_rows[n_attempts];  // queues of rows: (n_labels, block_rows) and (n_labels,)

    WinnerRoom(const ModelView& model, Carver& carver) {
        const std::size_t n = has_class_engines(model) ? std::size_t{model.n_labels} : 0, room = n * block_rows;
        scores = carver.take<float>(tiles_for(n) * tile_rows * block_rows);
        partial = carver.take<float>(room);
        own = carver.take<double>(room);
        others = carver.take<double>(room);
        for (int attempt = 0; attempt < n_attempts; ++attempt) {
            rows[attempt] = carver.take<std::size_t>(room);
            n_rows[attempt] = carver.take<std::size_t>(n);
        }
    }
};

// What the pairs of a class say of a row: whether it wins them all for certain, and who beats it for certain.
struct WinnerOutcome {
    bool wins_all;
    std::size_t beaten_by;  // n_labels where nobody does
};

template <class Source>
class WinnerStage {
  public:
    // `block` is room for a block of rows and may be shared.
    WinnerStage(const PreparedModel& prepared, const Source& source, const Request& request, double slope, float* block,
                const WinnerRoom& memory)
        : prepared_(prepared),
          view_(*prepared.view),
          source_(source),
          request_(request),
          slope_(slope),
          block_(block),
          memory_(memory) {
        for (int attempt = 0; is_there() && attempt < n_attempts; ++attempt) {
            for (std::size_t w = 0; w < view_.n_labels; ++w) memory_.n_rows[attempt][w] = 0;
        }
    }

    bool is_there() const { return prepared_.winner.is_usable; }
    bool presumes() const { return is_there() && prepared_.winner.presumption.n_classes > 0; }

    // Takes row i, whose winner the network is to presume.
    template <class Settle, class PassOn>
    void send(std::size_t i, const Settle& settle, const PassOn& pass_on) {
        unknown_[n_unknown_++] = i;
        if (n_unknown_ == block_rows) presume(settle, pass_on);
    }
    // Takes row i, presumed to belong to class w: settle(row, class) for rows that are certain, pass_on(row, whether
    // sums in float32 may do) for others.
    template <class Settle, class PassOn>
    void send(std::size_t i, std::size_t w, const Settle& settle, const PassOn& pass_on) {
        queue(0, i, w, settle, pass_on);
    }

    template <class Settle, class PassOn>
    void finish(const Settle& settle, const PassOn& pass_on) {
        if (!is_there()) return;
        presume(settle, pass_on);
        for (int attempt = 0; attempt < n_attempts; ++attempt) {
            for (std::size_t w = 0; w < view_.n_labels; ++w) take(attempt, w, settle, pass_on);
        }
    }

  private:
    template <class Settle, class PassOn>
    void presume(const Settle& settle, const PassOn& pass_on) {
        const std::size_t n = n_unknown_;
        n_unknown_ = 0;
        if (n == 0) return;
        std::uint32_t presumed[block_rows];
        with_registers_for(n, lanes, [&](auto registers) {
            float half_sq_norm[block_rows];
            load<registers.value>(unknown_, n, half_sq_norm);
            presumed_classes_block<registers.value>(*prepared_.winner.sums.kernels, prepared_.winner.presumption,
                                                    block_, half_sq_norm, memory_.scores, presumed);
        });
        std::size_t rows[block_rows];
        for (std::size_t r = 0; r < n; ++r) rows[r] = unknown_[r];
        for (std::size_t r = 0; r < n; ++r) queue(0, rows[r], presumed[r], settle, pass_on);
    }

    template <class Settle, class PassOn>
    void queue(int attempt, std::size_t i, std::size_t w, const Settle& settle, const PassOn& pass_on) {
        std::size_t& n = memory_.n_rows[attempt][w];
        memory_.rows[attempt][w * block_rows + n++] = i;
        if (n == block_rows) take(attempt, w, settle, pass_on);
    }

    template <class Settle, class PassOn>
    void take(int attempt, std::size_t w, const Settle& settle, const PassOn& pass_on) {
        std::size_t* const queued = memory_.rows[attempt] + w * block_rows;
        const std::size_t n = memory_.n_rows[attempt][w];
        memory_.n_rows[attempt][w] = 0;
        if (n == 0) return;
        std::size_t rows[block_rows];  // as the queue may be filled anew
        for (std::size_t r = 0; r < n; ++r) rows[r] = queued[r];
        WinnerOutcome outcomes[block_rows];
        with_registers_for(n, lanes, [&](auto registers) { judge<registers.value>(w, rows, n, outcomes); });
        for (std::size_t r = 0; r < n; ++r) {
            if (outcomes[r].wins_all) {
                settle(rows[r], w);
            } else if (outcomes[r].beaten_by == view_.n_labels) {
                pass_on(rows[r], false);
            } else if (attempt + 1 < n_attempts) {
                queue(attempt + 1, rows[r], outcomes[r].beaten_by, settle, pass_on);
            } else {
                pass_on(rows[r], true);
            }
        }
    }

    // n rows into the lanes of the block.
    template <int Registers>
    void load(const std::size_t* rows, std::size_t n, float* half_sq_norm) {
        double unseen[block_rows] = {};
        load_engine_block<Registers>(prepared_, source_, rows, n, block_, unseen);
        half_sq_norms_block<Registers>(*prepared_.winner.sums.kernels, block_, half_sq_norm);
        for (std::size_t r = 0; r < n; ++r) half_sq_norm[r] += static_cast<float>(view_.gamma * unseen[r]);
    }

    template <int Registers>
    void judge(std::size_t w, const std::size_t* rows, std::size_t n, WinnerOutcome* outcomes) {
        constexpr std::size_t stride = Registers * static_cast<std::size_t>(lanes);
        const std::size_t n_classes = view_.n_labels;
        float half_sq_norm[stride];
        load<Registers>(rows, n, half_sq_norm);
        winner_sums_block<Registers>(prepared_.winner.sums, w, block_, half_sq_norm, memory_.partial, memory_.own,
                                     memory_.others);
        WinnerErrors errors[stride];
        double worst[stride] = {};  // the largest margin of those that beat w
        bool wins_all[stride];
        std::uint32_t beaten_by[stride];
        for (std::size_t r = 0; r < stride; ++r) {
            errors[r] = winner_errors(prepared_, static_cast<double>(half_sq_norm[r]), slope_,
                                      r < n ? row_error_of(request_, rows[r]) : 0.0);
            wins_all[r] = true;
            beaten_by[r] = view_.n_labels;
        }
        for (std::size_t c = 0; c < n_classes; ++c) {
            if (c == w) continue;
            const DecisionNumbers& decision =
                view_.decisions[c < w ? pair_position(n_classes, c, w) : pair_position(n_classes, w, c)];
            const double sign = c < w ? -1.0 : 1.0, fixed = winner_bound_of_pair(prepared_, w, c, decision);
            const double *own = memory_.own + (c < w ? c : c - 1) * stride, *other = memory_.others + c * stride;
            for (std::size_t r = 0; r < stride; ++r) {
                const double margin = sign * (own[r] + other[r] + decision.intercept);
                const double bound = errors[r].of_moduli * (std::fabs(own[r]) + std::fabs(other[r])) +
                                     errors[r].of_all_moduli * decision.sum_moduli + fixed;
                wins_all[r] &= margin > bound;  // not where either is NaN
                const bool beaten = -margin > bound && -margin > worst[r];
                worst[r] = beaten ? -margin : worst[r];
                beaten_by[r] = beaten ? static_cast<std::uint32_t>(c) : beaten_by[r];
            }
        }
        for (std::size_t r = 0; r < n; ++r) outcomes[r] = {wins_all[r], beaten_by[r]};
    }

    const PreparedModel& prepared_;
    const ModelView& view_;
    const Source& source_;
    const Request request_;
    const double slope_;
    float* const block_;
    const WinnerRoom memory_;
    std::size_t n_unknown_ = 0;
    std::size_t unknown_[block_rows];
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

// The stages for models with a Gaussian kernel and one function, in the order of predict.hpp: expansions in this file,
// then subspaces and the exact stages. Degrees above 2 are evaluated as soon as a block of rows needs them.
#ifndef APPROXSVM_PREDICT_STAGES_ONE_FUNCTION_HPP
#define APPROXSVM_PREDICT_STAGES_ONE_FUNCTION_HPP

#include "../../bounds/expansions.hpp"
#include "centers.hpp"
#include "gaussian_sums.hpp"
#include "subspace.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Adds features unknown to the model to a value's half_s and Gaussian factor.
inline void add_unseen(const ModelView& model, const Expansion& expansion, double unseen_sq_norm, Value& value) {
    if (unseen_sq_norm == 0.0) return;
    value.half_s += static_cast<float>(model.gamma * unseen_sq_norm);
    value.gaussian = value.half_s <= -exp_min_argument
                         ? expansion.numbers->output_scale * std::exp(-static_cast<double>(value.half_s))
                         : 0.0;
}

// --- the cascade

template <Parts parts>
class Cascade {
    friend class SubspaceStage<parts, Cascade>;

  public:
    static constexpr Parts list = parts;

    explicit Cascade(const Job& job)
        : job_(job),
          prepared_(job.prepared),
          view_(job.view),
          wants_bounds_(static_cast<bool>(job.out.bounds)),
          block_(job.memory.later_block),
          exact_(job),
          subspaces_(job, *this),
          by_nonzeros_(has(parts, sparse) && view_.degree > 2 && has_folded_center(view_) &&
                       prepared_.folded.center_sq_norm == 0.0) {}

    static constexpr bool expands() { return true; }

    // Begins a center: the following rows use its expansion.
    void begin_center(std::size_t center) {
        settle_open();
        expansion_ = expansion_of(view_, center);
        weights_ = prepared_.weights + center * n_bound_terms;
    }
    const float* center() const { return expansion_.center; }

    // Evaluates n rows at the current center.
    template <int Registers>
    Status take(const std::size_t* rows, std::size_t n, const float* u, const OutsideNorms& outside) {
        Value values[rows_in<Registers>];
        if (!evaluate_expansion<Registers>(view_, expansion_, prepared_.zeros, 2, u, n, values)) {
            const Status status = job_.check(rows, n);  // overflow is possible, but NaN and infinity are rejected
            if (status != Status::ok) return status;
        }
        for (std::size_t r = 0; r < n; ++r) {
            add_unseen(view_, expansion_, outside.unseen[r], values[r]);
            offer_expansion(rows[r], values[r], slice_slack(view_, view_.decisions[0], outside.off_sq[r]));
        }
        return Status::ok;
    }

    // Processes the value of the expansion up to degree 2; `extra` is the part of its error not covered by the table.
    void offer_expansion(std::size_t i, const Value& value, double extra) {
        extra += exact_.slack_of(i, 0);
        const bool refinable = (has_direction(view_) || view_.degree > 2) && value.half_s < 87.0f;
        if (view_.mode == Mode::approximate && view_.degree <= 2 && !wants_bounds_)
            return settle(i, decision_value(expansion_, value), 0.0, by_expansion);
        if (view_.mode != Mode::approximate || !(view_.degree > 2 && refinable)) {
            const double decision = decision_value(expansion_, value), bound = table_bound(0, value.half_s) + extra;
            if (settles(i, decision, bound, by_expansion)) return;
            if (!refinable || !is_promising(decision, value.half_s, extra))
                return give_up(i, decision, value.half_s, bound, extra, by_expansion);
        }
        open_[n_open_++] = {i, value, extra};
        if (n_open_ == block_rows) settle_open();
    }

    // Accepts a row that needs the exact model.
    void send_to_float32(std::size_t i) {
        if constexpr (has(parts, subspaces)) {
            if (subspaces_.is_there()) return subspaces_.send(i);
        }
        exact_.send_to_float32(i);
    }
    void send_to_float64(std::size_t i) { exact_.send_to_float64(i); }

    // Completes all remaining rows.
    Status finish() {
        settle_open();
        if constexpr (has(parts, subspaces)) subspaces_.finish();
        return exact_.finish();
    }

  private:
    void settle(std::size_t i, double value, double bound, Stage stage) {
        exact_.decisions.settle(i, &value, &bound, stage);
    }
    bool settles(std::size_t i, double value, double bound, Stage stage) {
        const bool does = exact_.decisions.suffice(&value, &bound);
        if (does) settle(i, value, bound, stage);
        return does;
    }

    // The interface of SubspaceStage.
    bool settles_in_subspace(std::size_t i, double sum, double bound) {
        const double intercept = view_.decisions[0].intercept;
        bound += exact_.slack_of(i, 0) + 0x1p-51 * std::fabs(intercept);
        // The bound is infinite for a row outside the stage's range.
        return bound < infinity && settles(i, sum + intercept, bound, by_subspace);
    }
    void leave_subspaces(std::size_t i) { exact_.send_to_float32(i); }

    struct Open {
        std::size_t row;
        Value value;
        double extra;
    };

    // --- refining rows left undecided by the first bound

    double table_bound(std::size_t basis, float half_s) const {
        const std::size_t cell = basis * n_cells + cell_of(half_s);
        return prepared_.bounds ? prepared_.bounds[cell] : bound_of(prepared_.basis + cell * n_bound_terms, weights_);
    }

    // Guesses whether the bound of all degrees would certify a row: higher degrees barely change values, but greatly
    // tighten bounds. A wrong guess only costs time.
    bool is_promising(double decision, float half_s, double extra) const {
        if (view_.mode == Mode::approximate || view_.degree <= 2) return true;
        const double bound = table_bound(n_bases(view_) - 1, half_s) + extra;
        return bound <= exact_.decisions.tolerance() &&
               (view_.task == Task::regression || bound <= 2.0 * std::fabs(decision));
    }

    // Leaves the expansions, which cannot determine this row's label. If the row is far from all support vectors,
    // far_bound() may still suffice.
    void give_up(std::size_t i, double decision, float half_s, double bound, double extra, Stage stage) {
        const double beyond = far_bound(view_, *expansion_.numbers, view_.decisions[0], half_s) + extra;
        if (beyond < bound) bound = beyond;
        if (view_.mode == Mode::approximate) return settle(i, decision, bound, stage);
        if (!settles(i, decision, bound, stage)) send_to_engine(i, bound);
    }

    void settle_open() {
        const std::size_t n = n_open_;
        n_open_ = 0;
        if (n == 0) return;
        if (!(job_.batch.alone_in_expansion(n) || by_nonzeros_)) {
            with_registers_for<has(parts, batches)>(n, lanes,
                                                    [&](auto registers) { load_open<registers.value>(open_, n); });
            return refine(open_, n);
        }
        for (std::size_t r = 0; r < n; ++r) {
            if (!(by_nonzeros_ && load_nonzeros(open_[r].row))) load_open<0>(open_ + r, 1);
            refine(open_ + r, 1);
        }
    }

    template <int Registers>
    void load_open(const Open* open, std::size_t n) {
        std::size_t rows[rows_in<Registers>];
        double unseen[rows_in<Registers>];
        float off_sq[rows_in<Registers>];
        for (std::size_t r = 0; r < n; ++r) rows[r] = open[r].row;
        load_around<Registers>(job_, rows, n, expansion_.center, block_, unseen, off_sq);
        loaded_ = Registers;
    }

    // Loads a row's nonzeros; returns false if it is cheaper to evaluate as a dense row.
    bool load_nonzeros(std::size_t i) {
        const std::size_t limit = view_.n_features / 3;
        double unseen;
        nonzeros_.values = block_;
        nonzeros_.columns = reinterpret_cast<std::int32_t*>(block_ + limit);
        nonzeros_.n = job_.source.load_nonzeros(i, nullptr, view_.input_scale, limit, nonzeros_.values,
                                                nonzeros_.columns, unseen);
        loaded_ = -1;
        return nonzeros_.n <= limit;
    }

    // Refines rows whose coordinates are loaded.
    void refine(Open* rows, std::size_t n) {
        bool open[block_rows];
        for (std::size_t r = 0; r < n; ++r) open[r] = true;
        if (has_direction(view_)) {
            try_direction(rows, n, open);
        } else {
            for (int k = 3; k <= view_.degree; ++k) {
                if (try_degree(k, rows, n, open)) return;
            }
        }
        const std::size_t basis = n_bases(view_) - 1;
        const Stage stage = view_.degree > 2 ? by_higher_degree : by_direction;
        for (std::size_t r = 0; r < n; ++r) {
            if (!open[r]) continue;
            const float half_s = rows[r].value.half_s;
            give_up(rows[r].row, decision_value(expansion_, rows[r].value), half_s,
                    table_bound(basis, half_s) + rows[r].extra, rows[r].extra, stage);
        }
    }

    void forms(const float* coefficients, int k, float* form) {
        const float* const zeros = prepared_.zeros;
        const std::size_t n = view_.n_varying;
        if (loaded_ > 0) {
            return with_registers_for<has(parts, batches)>(static_cast<std::size_t>(loaded_), 1, [&](auto registers) {
                form_of_degree<registers.value>(coefficients, k, zeros, n, block_, form);
            });
        }
        if constexpr (has(parts, sparse)) {
            if (loaded_ < 0) {
                *form = static_cast<float>(part_sparse(coefficients, k, 0, view_.n_features, nonzeros_.values,
                                                       nonzeros_.columns, nonzeros_.n));
                return;
            }
        }
        form_of_degree<0>(coefficients, k, zeros, n, block_, form);
    }

    // Keeps the values, but bounds the next degrees using the row's direction.
    void try_direction(const Open* rows, std::size_t n, bool* open) {
        float form[block_rows], rest[n_bound_terms];
        for (int t = 0; t < static_cast<int>(n_bound_terms); ++t) {
            rest[t] = t >= term::norms + 3 && t < term::norms + view_.first_remainder_degree ? 0.0f : weights_[t];
        }
        forms(expansion_.direction, 2, form);
        for (std::size_t r = 0; r < n; ++r) {
            const float half_s = rows[r].value.half_s;
            const double decision = decision_value(expansion_, rows[r].value);
            const double bound = bound_of(prepared_.basis + cell_of(half_s) * n_bound_terms, rest) +
                                 direction_bound(view_, *expansion_.numbers, form[r], half_s) + rows[r].extra;
            open[r] = !settles(rows[r].row, decision, bound, by_direction);
        }
    }

    // Adds degree k; returns true if no row remains undecided.
    bool try_degree(int k, Open* rows, std::size_t n, bool* open) {
        float part[block_rows];
        forms(part_of_degree(expansion_, view_.n_varying, k), k, part);
        bool all = true;
        for (std::size_t r = 0; r < n; ++r) {
            if (!open[r]) continue;
            rows[r].value.inner += static_cast<double>(part[r]);
            all = false;
            if (view_.mode == Mode::approximate) continue;  // always use the complete expansion and its bound
            const double decision = decision_value(expansion_, rows[r].value);
            const double bound = table_bound(static_cast<std::size_t>(k) - 2, rows[r].value.half_s) + rows[r].extra;
            open[r] = !settles(rows[r].row, decision, bound, by_higher_degree);
        }
        return all;
    }

    // --- the exact engine

    // The float32 engine takes half the time of the float64 engine, and suffices for rows whose values lie between the
    // float32 bound and the previous bound. It is worthwhile if these are more than half of the rows that need an
    // engine.
    void send_to_engine(std::size_t i, double bound) {
        if (bound > 2.0 * prepared_.typical_float32_bound) return exact_.send_to_float32(i);
        exact_.send_to_float64(i);
    }

    const Job& job_;
    const PreparedModel& prepared_;
    const ModelView& view_;
    const bool wants_bounds_;
    float* const block_;  // space for (n_features, block_rows) floats, or half as many doubles
    ExactCascade<GaussianTerms<parts, Shape::one>> exact_;
    IfPart<parts, subspaces, SubspaceStage<parts, Cascade>> subspaces_;
    const bool by_nonzeros_;  // higher degrees around the origin, evaluated using only nonzeros if a row has few
    struct {
        float* values;
        std::int32_t* columns;
        std::size_t n;
    } nonzeros_{};
    // contents of block_: the number of registers for rows in lanes; 0 for one row; -1 for one row's nonzeros
    int loaded_ = 0;
    Expansion expansion_{};
    const float* weights_ = nullptr;
    std::size_t n_open_ = 0;
    Open open_[block_rows];
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

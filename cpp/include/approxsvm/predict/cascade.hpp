// Values with a proof: the cheapest stage whose error bound suffices answers each row. This file has the cascade of
// Gaussian kernels with one function; several_cascade.hpp and class_cascade.hpp serve models with several.
//
//     expansion to degree 2
//     -> the same value with a bound that knows the row's direction, or higher degrees, one by one
//     -> kernel sums in few coordinates (subspace_stage.hpp), or the pairs of a guessed winner (winner_stage.hpp)
//     -> sums on a grid (few_values_stage.hpp), or the exact engine (engine_stage.hpp) in float32, then in float64
//     -> the definition, term after term in LIBSVM's order (definition.hpp)
//
// The last two lines are exact_cascade.hpp; decisions.hpp says what suffices.
//
// A model of mode exact starts with the exact engine. An approximate model has only the expansion, and reports its
// bound. Exact values come from the float64 engine. Rows that a stage leaves undecided are collected and sent to the
// next one a full block at a time. Each lane computes what it would compute alone, so results do not depend on the
// other rows of a block.
#ifndef APPROXSVM_PREDICT_CASCADE_HPP
#define APPROXSVM_PREDICT_CASCADE_HPP

#include "gaussian_terms.hpp"
#include "subspace_stage.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// --- bounds of expansions

// Bounds the sum of the degrees from 3 up to the remainder: exp(-s/2) sqrt(v'G v) times the square root of sum_k
// 2^(k-3) s^(k-1) / k!, v = sqrt(2 gamma) (z - center), ||v||^2 = s.
inline double direction_bound(const ModelView& model, const ExpansionNumbers& numbers, float form, float half_s) {
    const double widen = s_error(model.n_features);
    const double s = 2.0 * static_cast<double>(half_s) * (1.0 + widen);
    const double theta = 2.0 * static_cast<double>(model.half_theta) * (1.0 + 0x1p-20);
    const double computed = form > 0.0f ? theta * numbers.direction_scale * static_cast<double>(form) : 0.0;
    const double rounding =
        1.01 * unit32 * (form_depth(model.n_features, 2) + 4.0) * numbers.direction_trace + numbers.direction_error;
    const double gaussian = std::exp(-static_cast<double>(half_s) * (1.0 - widen));
    double sum = 1.0;
    for (int k = model.first_remainder_degree - 1; k > 3; --k) sum = 1.0 + sum * 2.0 * s / k;
    return 1.000001 * gaussian * s * std::sqrt((computed + rounding * s) * sum / 6.0);
}

// The float64 rounding error of a sparse row (docs/derivation.md, Prediction); infinite if s itself is too uncertain.
inline double sparse_rounding_bound(const ModelView& model, const FoldedModel& folded, const SparseValue& row,
                                    std::size_t n_nonzero) {
    const double n = static_cast<double>(n_nonzero), scaled_norm = model.input_scale * row.row_norm;
    const double center_norm = std::sqrt(folded.center_sq_norm) / model.input_scale, reach = row.row_norm + center_norm;
    const double s_uncertainty = 4.0 * model.gamma * (n + 5.0) * unit64 * reach * reach;
    const double s = 2.0 * row.half_s;
    if (!(s_uncertainty <= 0x1p-12 * (s > 0x1p-20 ? s : 0x1p-20))) return infinity;
    if (row.half_s > -static_cast<double>(exp_min_argument)) return 0.0;  // the intercept alone: the table covers it
    const double moduli = std::fabs(folded.constant) + folded.linear_norm * row.row_norm +
                          folded.quadratic_norm * scaled_norm * scaled_norm;
    double kept = 0.0;
    for (int k = 0; k <= model.degree; ++k) kept += model.expansions[0].norms[k];
    return 1.01 * (unit64 * (2.0 * n + 8.0) * row.value.gaussian * moduli + std::expm1(s_uncertainty) * kept);
}

// --- the cascade

// Squared norms not contained in the coordinates u: of the features unknown to the model, and of the scaled distances
// to the slice.
struct OutsideNorms {
    const double* unseen;
    const float* off_sq;
};

// The factor of the Gaussian that comes from features unknown to the model.
inline void add_unseen(const ModelView& model, const Expansion& expansion, double unseen_sq_norm, Value& value) {
    if (unseen_sq_norm == 0.0) return;
    value.half_s += static_cast<float>(model.gamma * unseen_sq_norm);
    value.gaussian = value.half_s <= -exp_min_argument
                         ? expansion.numbers->output_scale * std::exp(-static_cast<double>(value.half_s))
                         : 0.0;
}

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

    // The following rows use the expansion around this center.
    void begin_center(std::size_t center) {
        settle_open();
        expansion_ = expansion_of(view_, center);
        weights_ = prepared_.weights + center * n_bound_terms;
    }
    const float* center() const { return expansion_.center; }

    // Evaluates n rows of this center, in the lanes of `block`.
    template <int Registers>
    Status take_block(const std::size_t* rows, std::size_t n, const float* block, const OutsideNorms& outside,
                      float* scratch) {
        Value values[block_rows];
        if (!evaluate_block<Registers>(view_, expansion_, block, scratch, n, values)) {
            const Status status = job_.check(rows, n);  // overflow is possible, but NaN and infinity are rejected
            if (status != Status::ok) return status;
        }
        for (std::size_t r = 0; r < n; ++r) offer_expansion(rows[r], values[r], outside, r);
        return Status::ok;
    }

    // Evaluates one row of this center.
    Status take_row(std::size_t i, const float* u, const OutsideNorms& outside) {
        const Value value = evaluate_row(view_, expansion_, u);
        if (!(value.half_s <= largest_float)) {
            const Status status = job_.source.check(i);
            if (status != Status::ok) return status;
        }
        offer_expansion(i, value, outside, 0);
        return Status::ok;
    }

    // Takes a value of degree up to 2; `extra` is the part of its error that is not in the table.
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

    // Takes a row that needs the exact model.
    void send_to_float32(std::size_t i) {
        if constexpr (has(parts, subspaces)) {
            if (subspaces_.is_there()) return subspaces_.send(i);
        }
        exact_.send_to_float32(i);
    }
    void send_to_float64(std::size_t i) { exact_.send_to_float64(i); }

    // Answers all remaining rows.
    Status finish() {
        settle_open();
        if constexpr (has(parts, subspaces)) subspaces_.finish();
        return exact_.finish();
    }

  private:
    void offer_expansion(std::size_t i, Value value, const OutsideNorms& outside, std::size_t r) {
        add_unseen(view_, expansion_, outside.unseen[r], value);
        offer_expansion(i, value, slice_slack(view_, view_.decisions[0], outside.off_sq[r]));
    }

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
        // A row may be beyond the range of the stage.
        return bound < infinity && settles(i, sum + intercept, bound, by_subspace);
    }
    void leave_subspaces(std::size_t i) { exact_.send_to_float32(i); }

    struct Open {
        std::size_t row;
        Value value;
        double extra;
    };

    // --- refining rows that the first bound leaves undecided

    double table_bound(std::size_t basis, float half_s) const {
        const std::size_t cell = basis * n_cells + cell_of(half_s);
        return prepared_.bounds ? prepared_.bounds[cell] : bound_of(prepared_.basis + cell * n_bound_terms, weights_);
    }

    // Whether the bound of all degrees together might certify a row: higher degrees change values little, and bounds a
    // lot. A wrong answer only costs time.
    bool is_promising(double decision, float half_s, double extra) const {
        if (view_.mode == Mode::approximate || view_.degree <= 2) return true;
        const double bound = table_bound(n_bases(view_) - 1, half_s) + extra;
        return bound <= exact_.decisions.tolerance() &&
               (view_.task == Task::regression || bound <= 2.0 * std::fabs(decision));
    }

    // Expansions cannot help any more. A row far from all support vectors may still have a bound of its own.
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
            with_registers_for<has(parts, batches)>(n, lanes, [&](auto registers) { load_open<registers.value>(n); });
            return refine(open_, n);
        }
        for (std::size_t r = 0; r < n; ++r) {
            load_open(open_[r]);
            refine(open_ + r, 1);
        }
    }

    template <int Registers>
    void load_open(std::size_t n) {
        std::size_t rows[block_rows];
        double unseen[block_rows];
        for (std::size_t r = 0; r < n; ++r) rows[r] = open_[r].row;
        float off_sq[block_rows];
        job_.source.load_block(Registers, rows, n, expansion_.center, view_.input_scale, block_, unseen);
        keep_varying_block<Registers>(view_, block_, off_sq);
        loaded_ = Registers;
    }

    void load_open(const Open& row) {
        const std::size_t limit = by_nonzeros_ ? view_.n_features / 3 : 0;
        nonzeros_.values = block_;
        nonzeros_.columns = reinterpret_cast<std::int32_t*>(block_ + limit);
        double unseen;
        if (by_nonzeros_) {
            nonzeros_.n = job_.source.load_nonzeros(row.row, nullptr, view_.input_scale, limit, nonzeros_.values,
                                                    nonzeros_.columns, unseen);
            loaded_ = -1;
            if (nonzeros_.n <= limit) return;
        }
        job_.source.load_one(row.row, expansion_.center, view_.input_scale, block_);
        keep_varying_row(view_, block_);
        loaded_ = 0;
    }

    // The rows whose coordinates are loaded.
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
                part_block<registers.value>(coefficients, k, zeros, n, block_, form);
            });
        }
        if constexpr (has(parts, sparse)) {
            if (loaded_ < 0) {
                *form = static_cast<float>(part_sparse(coefficients, k, 0, view_.n_features, nonzeros_.values,
                                                       nonzeros_.columns, nonzeros_.n));
                return;
            }
        }
        *form = part_row(coefficients, k, zeros, n, block_);
    }

    // Computes the same values, with the next degrees bounded by the direction of the row.
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

    // Adds degree k; returns true if no row is undecided any more.
    bool try_degree(int k, Open* rows, std::size_t n, bool* open) {
        float part[block_rows];
        forms(part_of_degree(expansion_, view_.n_varying, k), k, part);
        bool all = true;
        for (std::size_t r = 0; r < n; ++r) {
            if (!open[r]) continue;
            rows[r].value.inner += static_cast<double>(part[r]);
            all = false;
            if (view_.mode == Mode::approximate) continue;  // the whole expansion, and its bound
            const double decision = decision_value(expansion_, rows[r].value);
            const double bound = table_bound(static_cast<std::size_t>(k) - 2, rows[r].value.half_s) + rows[r].extra;
            open[r] = !settles(rows[r].row, decision, bound, by_higher_degree);
        }
        return all;
    }

    // --- the exact engine

    // float32 takes half the time of float64, and settles the rows whose value lies between its bound and the previous
    // one. It pays if these are more than half of the rows.
    void send_to_engine(std::size_t i, double bound) {
        if (bound > 2.0 * prepared_.typical_float32_bound) return exact_.send_to_float32(i);
        exact_.send_to_float64(i);
    }

    const Job& job_;
    const PreparedModel& prepared_;
    const ModelView& view_;
    const bool wants_bounds_;
    float* const block_;  // (n_features, block_rows) floats, or half as many doubles
    ExactCascade<GaussianTerms<parts, Shape::one>> exact_;
    IfPart<parts, subspaces, SubspaceStage<parts, Cascade>> subspaces_;
    const bool by_nonzeros_;  // higher degrees around the origin, evaluated by non-zeros alone if a row has few
    struct {
        float* values;
        std::int32_t* columns;
        std::size_t n;
    } nonzeros_{};
    // contents of block_: the number of registers of rows in lanes; 0, one row; -1, the non-zeros of one row
    int loaded_ = 0;
    Expansion expansion_{};
    const float* weights_ = nullptr;
    std::size_t n_open_ = 0;
    Open open_[block_rows];
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

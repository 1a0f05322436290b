// The exact stages of any model: float32; float64, if float32 bounds do not suffice (decisions.hpp); and the
// definition, if float64 bounds do not suffice either. A separate engine evaluates rows whose features have few values.
//
// Terms define the sums:
//     shape                          shape of the decision functions (decisions.hpp)
//     parts                          the parts relevant to these stages: sparse, few_values
//     Sums<Real>                     type of the sums computed by an engine (engine.hpp)
//     sums(products)                 the Sums<Real> for the type of the memory `products`
//     fill(RowSums<Real>, values, bounds)  computes the sums of all functions, and bounds on their rounding errors
//     slack(k, row_error)            the part of function k's bound that is not caused by rounding
//     few()                          the engine for few values, or null
//     define(job, i, values, bounds, room) replaces the float64 sums of row i with values by the definition and their
//                                    bounds; if only labels are wanted, sums that determine a label may remain. Returns
//                                    false if the source subtracts infinities
//     refuses                        true if a row is rejected when the definition has no finite bound or misses a
//                                    requested tolerance
#ifndef APPROXSVM_PREDICT_STAGES_EXACT_HPP
#define APPROXSVM_PREDICT_STAGES_EXACT_HPP

#include "../few_values/stage.hpp"
#include "decisions.hpp"
#include "engine.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// The error of an exact value is at most this fraction of the sum of the coefficients' absolute values. If the float64
// bound is larger, as for rows hundreds of kernel widths away from all support vectors, the definition is evaluated
// instead.
constexpr double exact_share = 1e-10;

// The fault of the first rejected row. A row that overflows float64 takes precedence over those that miss a tolerance.
class RefusedRow {
  public:
    explicit RefusedRow(Fault* fault) : fault_(fault) {}
    Status status() const { return status_; }

    void beyond_float64(std::size_t i) {
        if (status_ != Status::beyond_float64) note(Status::beyond_float64, {i, infinity, largest_double});
    }
    void beyond_tolerance(std::size_t i, double bound, double tolerance) {
        if (status_ == Status::ok) note(Status::beyond_tolerance, {i, bound, tolerance});
    }

  private:
    void note(Status status, const Fault& fault) {
        status_ = status;
        if (fault_) *fault_ = fault;
    }

    Fault* const fault_;
    Status status_ = Status::ok;
};

template <class Terms>
class ExactCascade : Offer<float>, Offer<double> {
    static constexpr Parts parts = Terms::parts;

  public:
    const Decisions<Terms::shape> decisions;

    explicit ExactCascade(const Job& job)
        : decisions(job),
          job_(job),
          terms_(job.prepared, job.memory.later_block),
          exact_(job.is_exact()),
          refused_(job.request.fault),
          engine32_(job, terms_.sums(job.memory.engine32.products), job.memory.engine32, *this),
          engine64_(job, terms_.sums(job.memory.engine64.products), job.memory.engine64, *this),
          few_(terms_.few(), job.source, job.memory.few) {}

    void send_to_float32(std::size_t i) {
        if (!answer_by_few_values(i)) engine32_.send(i);
    }
    void send_to_float64(std::size_t i) {
        if (!answer_by_few_values(i)) engine64_.send(i);
    }
    // Evaluates a row on the grid of few values, in float32, then in float64, then by the definition. Returns false if
    // it is not on this grid.
    bool answer_by_few_values([[maybe_unused]] std::size_t i) {
        if constexpr (has(parts, few_values)) return answer_on_grid(i);
        return false;
    }

    // Completes all rows sent so far; returns the status of the rejected row, if any.
    Status finish() {
        engine32_.finish();
        engine64_.finish();
        return refused_.status();
    }

    double slack_of(std::size_t i, std::size_t k) const { return terms_.slack(k, job_.row_error(i)); }

    // These functions send a row not on the grid of few values to an engine.
    void send_to_engine32(std::size_t i) { engine32_.send(i); }
    void send_to_engine64(std::size_t i) { engine64_.send(i); }
    bool send_sparse(std::size_t i, std::size_t limit) { return engine32_.send_sparse(i, limit); }

  private:
    APPROXSVM_NOINLINE void take(std::size_t i, const RowSums<float>& sums) final {
        auto row = decisions.row();
        terms_.fill(sums, row.values, row.bounds);
        if (!settles(i, row, by_float32)) engine64_.send(i);
    }
    APPROXSVM_NOINLINE void take(std::size_t i, const RowSums<double>& sums) final {
        auto row = decisions.row();
        terms_.fill(sums, row.values, row.bounds);
        if (!settles(i, row, by_float64)) settle_by_definition(i);
    }

    bool answer_on_grid(std::size_t i) {
        if (!few_.takes(i)) return false;
        auto row = decisions.row();
        if (!exact_) {
            few_.fill32(job_.view, row.values, row.bounds);
            if (settles(i, row, by_float32)) return true;
        }
        few_.fill64(job_.view, row.values, row.bounds);
        if (!settles(i, row, by_float64)) settle_by_definition(i);
        return true;
    }

    // Completes a row's sums; stores its results if the sums suffice.
    template <class Row>
    APPROXSVM_INLINE bool settles(std::size_t i, Row& row, Stage stage) {
        const double row_error = job_.row_error(i);
        bool is_accurate = true;  // true if bounds are finite (no row beyond the engine's range) and, if exact_, small
        for (std::size_t k = 0; k < decisions.n(); ++k) {
            const DecisionNumbers& decision = job_.view.decisions[k];
            is_accurate &= row.bounds[k] < infinity && (!exact_ || row.bounds[k] <= exact_share * decision.sum_moduli);
            row.values[k] += decision.intercept;
            row.bounds[k] += terms_.slack(k, row_error);
        }
        if (!is_accurate || !decisions.suffice(row)) return false;
        decisions.settle(i, row, stage);
        return true;
    }

    APPROXSVM_NOINLINE void settle_by_definition(std::size_t i) {
        auto row = decisions.row();
        if (!terms_.define(job_, i, row.values, row.bounds, job_.memory.row_room)) return refused_.beyond_float64(i);
        for (std::size_t k = 0; Terms::refuses && k < decisions.n(); ++k) {
            if (!is_within_float64(row.values[k], row.bounds[k], job_.row_error(i))) return refused_.beyond_float64(i);
        }
        const double tolerance = decisions.tolerance();
        for (std::size_t k = 0; Terms::refuses && job_.has_promise() && k < decisions.n(); ++k) {
            if (!(row.bounds[k] <= tolerance)) refused_.beyond_tolerance(i, row.bounds[k], tolerance);
        }
        decisions.settle(i, row, by_definition);
    }

  protected:
    using Offer<float>::take_block, Offer<double>::take_block;

    const Job& job_;
    const Terms terms_;

  private:
    const bool exact_;
    RefusedRow refused_;
    EngineOf<parts, float, typename Terms::template Sums<float>> engine32_;
    EngineOf<parts, double, typename Terms::template Sums<double>> engine64_;
    IfPart<parts, few_values, FewValuesStage> few_;
};

// Sends every row directly to the exact engine.
template <class AnyCascade>
inline Status engine_rows(AnyCascade& cascade, const Job& job) {
    const bool in_float64 = job.is_exact();
    for (std::size_t i = 0; i < job.source.n_rows(); ++i) {
        const Status status = job.source.check(i);
        if (status != Status::ok) return status;
        if (in_float64)
            cascade.send_to_float64(i);
        else
            cascade.send_to_float32(i);
    }
    return cascade.finish();
}

// Returns whether a mapped row's error may affect a label or a value's tolerance. The error changes a value by at most
// `moved` A1; labels are guaranteed for values down to exact_share A1.
inline bool is_felt(const PreparedModel& prepared, double moved) {
    const double tolerance = prepared.view->tolerance;
    return !(moved <= 0.2 * exact_share && moved * prepared.largest_moduli <= 0.2 * tolerance);
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

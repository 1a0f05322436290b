// The exact stages of one decision function: float32; float64, if the float32 bound leaves the label undecided or
// exceeds the tolerance; and the definition, if the float64 bound also does. A value suffices if its label cannot
// differ from the exact one, |value - label change| > bound (labels usually change at 0). If values are requested, its
// bound must also be within the model's tolerance.
//
// A Kernel defines the terms of the sum:
//     Sums32, Sums64                 sums that the engines compute (engine_stage.hpp)
//     sums(products)                 one of them, by the type of the memory for products
//     rounding(RowSums<Real>)        bound of an engine's rounding errors
//     slack(row_error)               part of every bound that is not rounding
//     parts                          the parts that matter here: sparse, few_values
//     few()                          engine for few values, or null
//     define(source, i, row_error)   value and bound of row i by the definition
//     refuses                        whether a row is an error if the definition has no finite bound, or misses a
//                                    requested tolerance
#pragma once

#include "definition.hpp"
#include "engine_stage.hpp"
#include "evaluation_memory.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

inline bool wants_values(const Evaluation& out) {
    return out.values || out.bounds;
}

// Whether rows skip the float32 engine.
inline bool wants_exact_values(const ModelView& model, const Request& request, const Evaluation& out) {
    if (is_of_products(model)) return false;  // all of its values are exact
    if (request.values != Values::promised) return request.values == Values::exact;
    return has_engines(model) && wants_values(out) && !(model.tolerance < infinity);
}

// An exact value has an error below this share of the sum of the coefficients' moduli. If the float64 bound is larger,
// which happens hundreds of kernel widths from all support vectors, the definition takes over.
constexpr double exact_share = 1e-10;

// A value with a bound on its error.
struct BoundedValue {
    double value, bound;
};

// The fault of the first rejected row. A row beyond float64 takes precedence over any that misses a tolerance.
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

template <class Kernel>
class ExactCascade {
  public:
    ExactCascade(const PreparedModel& prepared, const RowSource& source, const Evaluation& out, std::uint64_t* counts,
                 const Request& request, const Batch& batch, const EvaluationMemory& memory)
        : view_(*prepared.view),
          kernel_(prepared, memory.later_block),
          source_(source),
          out_(out),
          counts_(counts),
          request_(request),
          tolerance_(wants_values(out) || view_.task == Task::regression ? view_.tolerance : infinity),
          label_change_(label_change(view_)),
          engine_tolerance_(wants_exact_values(view_, request, out) ? exact_share * view_.decisions[0].sum_moduli
                                                                    : infinity),
          refused_(request.fault),
          engine32_(prepared, source, batch, kernel_.sums(memory.products32), memory.later_block, memory.nonzeros32,
                    memory.sums32),
          engine64_(prepared, source, batch, kernel_.sums(memory.products64), memory.later_block, memory.nonzeros64,
                    memory.sums64),
          few_(kernel_.few(), source, memory.few) {}

    void send_to_float32(std::size_t i) {
        if (!answer_by_few_values(i)) engine32_.send(i, offer32());
    }
    void send_to_float64(std::size_t i) {
        if (!answer_by_few_values(i)) engine64_.send(i, offer64());
    }

    // Answers every row that was sent; returns the fault of the first rejected one.
    Status finish() {
        engine32_.finish(offer32());
        engine64_.finish(offer64());
        return refused_.status();
    }

    double tolerance() const { return tolerance_; }
    bool suffices(double value, double bound) const {
        const bool may_be_open = view_.task == Task::regression && !request_.by_sign;
        return (may_be_open || std::fabs(value - label_change_) > bound) && bound <= tolerance_;
    }
    double slack_of(std::size_t i) const { return kernel_.slack(row_error_of(request_, i)); }

    void settle(std::size_t i, double value, double bound, Stage stage) {
        if (out_.values) out_.values[i] = value;
        if (out_.bounds) out_.bounds[i] = bound;
        if (out_.stages) out_.stages[i] = stage;
        if (out_.labels) out_.labels[i] = static_cast<std::uint32_t>(label_position(value));
        ++counts_[stage];
    }

  private:
    auto offer32() {
        return offer_by_row<float>([this](std::size_t i, const RowSums<float>& sums) {
            if (!settle_by_sums(i, sums, by_float32)) engine64_.send(i, offer64());
        });
    }
    auto offer64() {
        return offer_by_row<double>([this](std::size_t i, const RowSums<double>& sums) {
            if (!settle_by_sums(i, sums, by_float64)) settle_by_definition(i);
        });
    }

    template <class Real>
    bool settle_by_sums(std::size_t i, const RowSums<Real>& row, Stage stage) {
        return settle_by_sum(i, row.sums[0], kernel_.rounding(row), stage);
    }
    // Evaluates a row on the grid: in float32 if that may suffice, in float64, by the definition. False for any other
    // row.
    bool answer_by_few_values([[maybe_unused]] std::size_t i) {
        if constexpr (has(Kernel::parts, few_values)) return answer_on_grid(i);
        return false;
    }
    bool answer_on_grid(std::size_t i) {
        const bool float32_may_do = !(engine_tolerance_ < infinity);
        if (!(few_.settles_all() || float32_may_do) || !few_.takes(i)) return false;
        const DecisionNumbers& decision = view_.decisions[0];
        double sum, moduli;
        if (float32_may_do) {
            few_.sum32(sum, moduli);
            if (settle_by_sum(i, sum, few_.bound32(moduli, decision), by_float32)) return true;
        }
        if (!few_.settles_all()) return false;
        few_.sum64(sum, moduli);
        if (!settle_by_sum(i, sum, few_.bound64(moduli, decision), by_float64)) settle_by_definition(i);
        return true;
    }

    bool settle_by_sum(std::size_t i, double sum, double rounding, Stage stage) {
        const double value = sum + view_.decisions[0].intercept, bound = rounding + slack_of(i);
        // False if a bound is NaN or infinite, as for a row beyond the engine's range.
        if (!(rounding < infinity && rounding <= engine_tolerance_ && suffices(value, bound))) return false;
        settle(i, value, bound, stage);
        return true;
    }

    void settle_by_definition(std::size_t i) {
        const BoundedValue found = kernel_.define(source_, i, row_error_of(request_, i));
        if constexpr (Kernel::refuses) {
            if (!is_within_float64(found.value, found.bound, row_error_of(request_, i)))
                return refused_.beyond_float64(i);
            const bool has_promise = view_.tolerance_asked && wants_values(out_) && request_.keeps_promise;
            if (has_promise && !(found.bound <= tolerance_)) refused_.beyond_tolerance(i, found.bound, tolerance_);
        }
        settle(i, found.value, found.bound, by_definition);
    }

    const ModelView& view_;
    const Kernel kernel_;
    const RowSource& source_;
    const Evaluation out_;
    std::uint64_t* const counts_;
    const Request request_;
    const double tolerance_;         // of values, if values are wanted
    const double label_change_;      // the value at which labels change
    const double engine_tolerance_;  // for the error of the engines themselves
    RefusedRow refused_;
    EngineOf<Kernel::parts, float, typename Kernel::Sums32> engine32_;
    EngineOf<Kernel::parts, double, typename Kernel::Sums64> engine64_;
    IfPart<Kernel::parts, few_values, FewValuesStage> few_;
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

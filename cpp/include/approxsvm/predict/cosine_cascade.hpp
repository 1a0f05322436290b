// Rows through sums of cosines: the engine in float32, in float64 where its bound leaves a label open or a tolerance
// unmet, and the definition in twice the precision where that does, too. What is said of values, bounds and labels in
// cascade.hpp goes for these.
//
// The reference is the function over the real numbers. A row whose angles are beyond float64 is refused, and so is one
// whose value misses the tolerance that was asked for.
#pragma once

#include "cascade.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

template <class Source>
class CosineCascade {
  public:
    CosineCascade(const PreparedModel& prepared, const Source& source, const Evaluation& out, std::uint64_t* counts,
                  const Request& request, const Batch& batch, const EvaluationMemory& memory)
        : view_(*prepared.view),
          cosines_(prepared.cosines),
          source_(source),
          out_(out),
          counts_(counts),
          request_(request),
          tolerance_(wants_values(out) || view_.task == Task::regression ? view_.tolerance : infinity),
          engine_tolerance_(wants_exact_values(view_, request, out) ? exact_share * view_.decisions[0].sum_moduli
                                                                    : infinity),
          refuses_(view_.tolerance_asked && wants_values(out) && request.keeps_promise),
          room_(reinterpret_cast<double*>(memory.later_block)),
          engine32_(prepared, source, batch, {cosines_.in32}, memory.later_block, memory.nonzeros32, memory.sums32),
          engine64_(prepared, source, batch, {cosines_.in64}, memory.later_block, memory.nonzeros64, memory.sums64) {}

    Status evaluate(bool in_float64) {
        for (std::size_t i = 0; i < source_.n_rows(); ++i) {
            const Status status = source_.check(i);
            if (status != Status::ok) return status;
            if (in_float64) {
                engine64_.send(i, offer64());
            } else {
                engine32_.send(i, offer32());
            }
        }
        engine32_.finish(offer32());
        engine64_.finish(offer64());
        return status_;
    }

  private:
    // What every bound of row i holds beside rounding.
    double slack_of(std::size_t i) const {
        const double moved = cosines_moved(view_.decisions[0], row_error_of(request_, i));
        return 1.0001 * (view_.decisions[0].value_error + moved);
    }

    auto offer32() {
        return offer_by_row([this](std::size_t i, const RowSums<float>& sums) {
            if (!settle_by_sums(i, cosines_.in32, sums, by_float32)) engine64_.send(i, offer64());
        });
    }
    auto offer64() {
        return offer_by_row([this](std::size_t i, const RowSums<double>& sums) {
            if (!settle_by_sums(i, cosines_.in64, sums, by_float64)) define(i);
        });
    }

    template <class Real>
    bool settle_by_sums(std::size_t i, const CosineSum<Real>& cosines, const RowSums<Real>& row, Stage stage) {
        const double value = row.sums[0] + view_.decisions[0].intercept;
        const double rounding = cosine_bound(view_, cosines, row.half_sq_norm, row.n_terms);
        const double bound = rounding + slack_of(i);
        const bool is_open = view_.task != Task::regression && !(std::fabs(value) > bound);
        // NaN, which only rows beyond the engine can bring, is within no tolerance, and its bound is infinite.
        if (is_open || !(rounding < infinity && rounding <= engine_tolerance_ && bound <= tolerance_)) return false;
        settle(i, value, bound, stage);
        return true;
    }

    void define(std::size_t i) {
        source_.load(i, nullptr, 1.0, room_, 1);
        const CosineValue found = cosines_by_definition(view_, cosines_, room_);
        if (!(found.bound < infinity)) {
            note(Status::beyond_float64, {i, infinity, largest_double});
            return;
        }
        const double bound = found.bound + slack_of(i);
        if (refuses_ && !(bound <= tolerance_)) note(Status::beyond_tolerance, {i, bound, tolerance_});
        settle(i, found.value, bound, by_definition);
    }

    // The first row that is refused; one that has no value comes before all others.
    void note(Status status, const Fault& fault) {
        if (status_ != Status::ok && (status_ == status || status_ == Status::beyond_float64)) return;
        status_ = status;
        if (request_.fault) *request_.fault = fault;
    }

    void settle(std::size_t i, double value, double bound, Stage stage) {
        if (out_.values) out_.values[i] = value;
        if (out_.bounds) out_.bounds[i] = bound;
        if (out_.stages) out_.stages[i] = stage;
        if (out_.labels) out_.labels[i] = static_cast<std::uint32_t>(label_position(value));
        ++counts_[stage];
    }

    const ModelView& view_;
    const CosineSums& cosines_;
    const Source& source_;
    const Evaluation out_;
    std::uint64_t* const counts_;
    const Request request_;
    const double tolerance_;         // of values, where they are wanted
    const double engine_tolerance_;  // of what the engines themselves may err by
    const bool refuses_;             // what misses the tolerance
    double* const room_;             // (n_features,)
    Status status_ = Status::ok;
    EngineStage<float, CosineEngine<float>, Source> engine32_;
    EngineStage<double, CosineEngine<double>, Source> engine64_;
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

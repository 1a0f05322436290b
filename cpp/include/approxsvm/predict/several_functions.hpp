// The exact stages of several decision functions of the same terms, one per class or per target: float32; float64, if
// the float32 bounds leave the label undecided or a tolerance unmet; and the definition, if the float64 bounds also do.
// The label is the first class with the largest value. It is decided when that value exceeds every other one by more
// than both bounds.
//
// A Kernel is as in exact_cascade.hpp, except for
//     rounding(RowSums<Real>)        returns a function of k: the bound of function k's rounding errors
//     slack(k, row_error)            part of every bound of function k that is not rounding
//     define(source, i, values, bounds, room)  all values by the definition, with bounds of their rounding errors
#pragma once

#include "../outputs/outputs.hpp"
#include "engine_rows.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

template <class Kernel>
class SeveralFunctions {
    // Deduced types must be declared before their use.
    auto offer32() {
        return offer_by_row<float>([this](std::size_t i, const RowSums<float>& row) {
            if (!settle_by_sums(i, row, by_float32)) send_to_float64(i);
        });
    }
    auto offer64() {
        return offer_by_row<double>([this](std::size_t i, const RowSums<double>& row) {
            if (!settle_by_sums(i, row, by_float64)) settle_by_definition(i);
        });
    }

  public:
    SeveralFunctions(const PreparedModel& prepared, const RowSource& source, const Evaluation& out,
                     std::uint64_t* counts, const Request& request, const Batch& batch, const EvaluationMemory& memory)
        : view_(*prepared.view),
          kernel_(prepared, memory.later_block),
          source_(source),
          out_(out),
          counts_(counts),
          request_(request),
          tolerance_(wants_values(out) || view_.task == Task::regression ? view_.tolerance : infinity),
          wants_exact_(wants_exact_values(view_, request, out)),
          n_(view_.n_decisions),
          values_(memory.row_values),
          bounds_(memory.row_bounds),
          room_(memory.pair_moved),
          refused_(request.fault),
          engine32_(prepared, source, batch, kernel_.sums(memory.products32), memory.later_block, memory.nonzeros32,
                    memory.sums32),
          engine64_(prepared, source, batch, kernel_.sums(memory.products64), memory.later_block, memory.nonzeros64,
                    memory.sums64) {}

    void send_to_float32(std::size_t i) { engine32_.send(i, offer32()); }
    void send_to_float64(std::size_t i) { engine64_.send(i, offer64()); }

    // Answers every row that was sent; returns the fault of the first rejected one.
    Status finish() {
        engine32_.finish(offer32());
        engine64_.finish(offer64());
        return refused_.status();
    }

  protected:
    double tolerance() const { return tolerance_; }

    // Whether the values of a row and their bounds decide what is wanted.
    bool suffices() const {
        for (std::size_t k = 0; k < n_; ++k) {
            if (!(bounds_[k] <= tolerance_)) return false;
        }
        if (view_.task != Task::regression) return beats_all_others(n_, values_, bounds_);
        for (std::size_t k = 0; request_.by_sign && k < n_; ++k) {
            if (!(std::fabs(values_[k]) > bounds_[k])) return false;
        }
        return true;
    }

    void settle(std::size_t i, Stage stage) {
        for (std::size_t k = 0; k < n_; ++k) {
            if (out_.values) out_.values[i * n_ + k] = values_[k];
            if (out_.bounds) out_.bounds[i * n_ + k] = bounds_[k];
        }
        if (out_.stages) out_.stages[i] = stage;
        if (out_.labels) out_.labels[i] = static_cast<std::uint32_t>(first_largest(n_, values_));
        ++counts_[stage];
    }

  private:
    template <class Real>
    bool settle_by_sums(std::size_t i, const RowSums<Real>& row, Stage stage) {
        const auto rounding_of = kernel_.rounding(row);
        const double row_error = row_error_of(request_, i);
        for (std::size_t k = 0; k < n_; ++k) {
            const DecisionNumbers& decision = view_.decisions[k];
            const double rounding = rounding_of(k);
            // False if a bound is NaN or infinite, as for a row beyond the engine's range.
            if (!(rounding < infinity) || (wants_exact_ && !(rounding <= exact_share * decision.sum_moduli)))
                return false;
            values_[k] = row.sums[k * row.stride] + decision.intercept;
            bounds_[k] = rounding + kernel_.slack(k, row_error);
        }
        if (!suffices()) return false;
        settle(i, stage);
        return true;
    }

    void settle_by_definition(std::size_t i) {
        kernel_.define(source_, i, values_, bounds_, room_);
        const bool has_promise = view_.tolerance_asked && wants_values(out_) && request_.keeps_promise;
        const double row_error = row_error_of(request_, i);
        for (std::size_t k = 0; k < n_; ++k) {
            bounds_[k] += kernel_.slack(k, row_error);
            if (!is_within_float64(values_[k], bounds_[k], row_error)) return refused_.beyond_float64(i);
        }
        for (std::size_t k = 0; has_promise && k < n_; ++k) {
            if (!(bounds_[k] <= tolerance_)) refused_.beyond_tolerance(i, bounds_[k], tolerance_);
        }
        settle(i, by_definition);
    }

    const ModelView& view_;
    const Kernel kernel_;
    const RowSource& source_;
    const Evaluation out_;
    std::uint64_t* const counts_;
    const Request request_;
    const double tolerance_;  // of values, if values are wanted
    const bool wants_exact_;
    const std::size_t n_;
    double *const values_, *const bounds_, *const room_;  // for one row, (n_decisions,) each
    RefusedRow refused_;
    EngineOf<Kernel::parts, float, typename Kernel::Sums32> engine32_;
    EngineOf<Kernel::parts, double, typename Kernel::Sums64> engine64_;
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

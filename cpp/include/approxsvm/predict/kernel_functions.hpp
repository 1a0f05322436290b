// Several sums of RBF kernels of the same support vectors, for SeveralFunctions: each kernel value is computed once;
// and the expansions in front of them.
#pragma once

#include "common_expansions.hpp"
#include "several_functions.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

class SeveralKernels {
    // A type that is deduced comes before what uses it.
    //
    // Behind the sums are their moduli, weighted by the largest coefficient of each support vector: not below those of
    // any function.
    template <class Real>
    auto rounding_of(const ClassEngine<Real>& engine, const RowSums<Real>& row) const {
        const EngineBound<Real> bound(engine.expansion.kernels, engine.typical_half_sq_norm);
        const RowRounding of_row = bound.of_row(static_cast<double>(row.half_sq_norm), row.n_terms);
        const double moduli = row.sums[view_.n_decisions * row.stride];
        return [this, &engine, bound, of_row, moduli](std::size_t k) {
            return bound.of(of_row, moduli, engine.narrowing_errors[k], view_.decisions[k]);
        };
    }

  public:
    using Sums32 = ClassSums<float>;
    using Sums64 = ClassSums<double>;

    // `memory` is of definition_bytes.
    SeveralKernels(const PreparedModel& prepared, float* memory)
        : prepared_(prepared), view_(*prepared.view), slope_(kernel_slope(view_.gamma)), memory_(memory) {}

    Sums32 sums(float* products) const { return {prepared_.class32.expansion, products}; }
    Sums64 sums(double* products) const { return {prepared_.class64.expansion, products}; }
    auto rounding(const RowSums<float>& row) const { return rounding_of(prepared_.class32, row); }
    auto rounding(const RowSums<double>& row) const { return rounding_of(prepared_.class64, row); }
    double slack(std::size_t k, double row_error) const { return row_slack(view_.decisions[k], slope_, row_error); }

    // What a row that is off does to the values is in the slack. `moduli` is room for (n_decisions,).
    void define(const RowSource& source, std::size_t i, double* values, double* bounds, double* moduli) const {
        const std::size_t n = view_.n_decisions;
        for (std::size_t k = 0; k < n; ++k) values[k] = moduli[k] = 0.0;
        for_kernels_by_definition(prepared_, source, i, 0.0, memory_, [&](std::size_t s, double kernel, double) {
            for (std::size_t k = 0; k < n; ++k) {
                const double a = view_.dual_coef[k * view_.n_sv + s];
                values[k] += a * kernel;
                moduli[k] += std::fabs(a) * kernel;
            }
        });
        for (std::size_t k = 0; k < n; ++k) {
            values[k] += view_.decisions[k].intercept;
            bounds[k] = 1.0001 * definition_bound(view_, view_.decisions[k], moduli[k]);
        }
    }

  private:
    const PreparedModel& prepared_;
    const ModelView& view_;
    const double slope_;  // of the kernel, at most
    float* const memory_;
};

// All functions are expanded about the same centers. What their bounds leave open goes to the exact engines.
class ExpandedFunctions : public CommonExpansions, public SeveralFunctions<SeveralKernels> {
  public:
    ExpandedFunctions(const PreparedModel& prepared, const RowSource& source, const Evaluation& out,
                      std::uint64_t* counts, const Request& request, const Batch& batch, const EvaluationMemory& memory)
        : CommonExpansions(prepared, source, request, memory),
          SeveralFunctions(prepared, source, out, counts, request, batch, memory) {}

    static constexpr bool expands() { return true; }

    // n rows near the center, in the lanes of `block`.
    template <int Registers>
    Status take_block(const std::size_t* rows, std::size_t n, const float* block, const OutsideNorms& outside,
                      float* scratch) {
        BlockOfRows<Registers* static_cast<std::size_t>(lanes)> common;
        for (std::size_t k = 0; k < n_decisions_; ++k)
            evaluate_in_block<Registers>(k, k, rows, n, block, outside, scratch, common);
        const Status status = common.finite ? Status::ok : check(rows, n);
        for (std::size_t r = 0; r < n && status == Status::ok; ++r) {
            for (std::size_t k = 0; k < n_decisions_; ++k) {
                value_[k] = values_of(k)[r];
                bound_[k] = bounds_of(k)[r];
            }
            judge(rows[r]);
        }
        return status;
    }

    // One row near the center.
    Status take_row(std::size_t i, const float* u, const OutsideNorms& outside) {
        RowAlone row;
        for (std::size_t k = 0; k < n_decisions_; ++k) evaluate_at_row(i, k, k, u, outside, row);
        const Status status = row.finite ? Status::ok : check(&i, 1);
        if (status == Status::ok) judge(i);
        return status;
    }

  private:
    using CommonExpansions::view_;

    void judge(std::size_t i) {
        if (view_.mode == Mode::approximate || (suffices() && has_signs())) return settle(i, by_expansion);
        send_to_float32(i);
    }

    // Where no value is promised, of a regression, each is a label by its sign.
    bool has_signs() const {
        if (view_.task != Task::regression || view_.tolerance < infinity) return true;
        for (std::size_t k = 0; k < n_decisions_; ++k) {
            if (outcome_of(value_[k], bound_[k]) == Outcome::unknown) return false;
        }
        return true;
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

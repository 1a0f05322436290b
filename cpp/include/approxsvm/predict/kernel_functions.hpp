// Several sums of RBF kernels of the same support vectors, for SeveralFunctions. Each kernel value is computed once.
// Also the expansions that come before these sums.
#pragma once

#include "common_expansions.hpp"
#include "several_functions.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

template <Parts list>
class SeveralKernels {
    // Deduced types must be declared before their use.
    //
    // After the sums come their moduli, weighted by each support vector's largest coefficient: an upper bound for every
    // function.
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
    static constexpr Parts parts = list;
    using Sums32 = ClassSums<float>;
    using Sums64 = ClassSums<double>;

    // `memory` has definition_bytes.
    SeveralKernels(const PreparedModel& prepared, float* memory)
        : prepared_(prepared), view_(*prepared.view), slope_(kernel_slope(view_.gamma)), memory_(memory) {}

    Sums32 sums(float* products) const { return {prepared_.class32.expansion, products}; }
    Sums64 sums(double* products) const { return {prepared_.class64.expansion, products}; }
    auto rounding(const RowSums<float>& row) const { return rounding_of(prepared_.class32, row); }
    auto rounding(const RowSums<double>& row) const { return rounding_of(prepared_.class64, row); }
    double slack(std::size_t k, double row_error) const { return row_slack(view_.decisions[k], slope_, row_error); }

    // The slack covers the effect of the row's error on the values. `moduli` has space for (n_decisions,).
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
    const double slope_;  // upper bound of the kernel's slope
    float* const memory_;
};

// All functions are expanded around the same centers. The exact engines take rows that their bounds leave undecided.
template <Parts parts>
class ExpandedFunctions : public CommonExpansions, public SeveralFunctions<SeveralKernels<parts>> {
    using Functions = SeveralFunctions<SeveralKernels<parts>>;

  public:
    static constexpr Parts list = parts;

    ExpandedFunctions(const PreparedModel& prepared, const RowSource& source, const Evaluation& out,
                      std::uint64_t* counts, const Request& request, const Batch& batch, const EvaluationMemory& memory)
        : CommonExpansions(prepared, source, request, memory),
          Functions(prepared, source, out, counts, request, batch, memory) {}

    using Functions::send_to_float32;
    static constexpr bool expands() { return true; }

    // n rows near the center, in the lanes of `block`. A row's values do not depend on the others of the block.
    template <int Registers>
    Status take_block(const std::size_t* rows, std::size_t n, const float* block, const OutsideNorms& outside,
                      float* scratch) {
        constexpr std::size_t stride = Registers * static_cast<std::size_t>(lanes);
        BlockOfRows<stride> common;
        const auto evaluate = [&](std::size_t k, int degree) {
            evaluate_in_block<Registers>(k, k, rows, n, block, outside, scratch, common, degree);
        };
        for (std::size_t k = 0; k < n_decisions_; ++k) evaluate(k, first_degree_);
        const Status status = common.finite ? Status::ok : check(rows, n);
        if (status != Status::ok) return status;
        double least[stride];
        bool is_open[stride] = {};
        const auto load = [&](std::size_t r) {
            for (std::size_t k = 0; k < n_decisions_; ++k) {
                value_[k] = values_of(k)[r];
                bound_[k] = bounds_of(k)[r];
            }
        };
        std::size_t n_open = 0;
        for (std::size_t r = 0; r < n; ++r) {
            load(r);
            if (settles(rows[r], first_degree_)) continue;
            is_open[r] = true;
            least[r] = least_of_winner();
            ++n_open;
        }
        if (n_open == 0) return Status::ok;
        for (std::size_t k = 0; k < n_decisions_ && first_degree_ < view_.degree; ++k) {
            double *values = values_of(k), *bounds = bounds_of(k), before[2][stride];
            bool wanted[stride] = {}, any = false;
            for (std::size_t r = 0; r < n; ++r) {
                wanted[r] = is_open[r] && counts(values[r], bounds[r], least[r]);
                any |= wanted[r];
                before[0][r] = values[r];
                before[1][r] = bounds[r];
            }
            if (!any) continue;
            evaluate(k, view_.degree);
            for (std::size_t r = 0; r < n; ++r) {
                if (wanted[r]) continue;
                values[r] = before[0][r];
                bounds[r] = before[1][r];
            }
        }
        for (std::size_t r = 0; r < n; ++r) {
            if (!is_open[r]) continue;
            if (first_degree_ < view_.degree) load(r);
            if (first_degree_ == view_.degree || !settles(rows[r], view_.degree)) send_to_float32(rows[r]);
        }
        return Status::ok;
    }

    // Evaluates one row near the center.
    Status take_row(std::size_t i, const float* u, const OutsideNorms& outside) {
        RowAlone row;
        for (std::size_t k = 0; k < n_decisions_; ++k) evaluate_at_row(i, k, k, u, outside, row, first_degree_);
        const Status status = row.finite ? Status::ok : check(&i, 1);
        if (status != Status::ok || settles(i, first_degree_)) return status;
        if (first_degree_ < view_.degree) {
            const double least = least_of_winner();
            for (std::size_t k = 0; k < n_decisions_; ++k) {
                if (counts(value_[k], bound_[k], least)) evaluate_at_row(i, k, k, u, outside, row, view_.degree);
            }
            if (settles(i, view_.degree)) return status;
        }
        send_to_float32(i);
        return status;
    }

  private:
    using CommonExpansions::view_;
    using Functions::settle, Functions::suffices, Functions::tolerance;

    bool settles(std::size_t i, int degree) {
        if (view_.mode != Mode::approximate && !suffices()) return false;
        settle(i, degree > 2 ? by_higher_degree : by_expansion);
        return true;
    }

    // A lower bound of the largest value: a class whose value is certainly below it is not the row's label.
    double least_of_winner() const {
        if (view_.task == Task::regression) return infinity;
        const std::size_t winner = first_largest(n_decisions_, value_);
        return value_[winner] - bound_[winner];
    }
    // Whether more degrees of a function's expansion may matter to a row; true if a number is NaN.
    bool counts(double value, double bound, double least) const {
        return !(value + bound < least) || !(bound <= tolerance());
    }

    // Evaluates all degrees at once if every value is wanted. Labels by probabilities want every value, because no
    // bound of one value decides them. Otherwise, only the functions that may have the largest value get more degrees.
    const int first_degree_ =
        view_.degree > 2 && view_.mode != Mode::approximate&& view_.outputs.label_rule != LabelRule::probability
            ? 2
            : view_.degree;
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

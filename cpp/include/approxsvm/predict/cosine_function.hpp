// A sum of cosines, for ExactCascade and, several of them, for SeveralFunctions. The reference is the function over the
// real numbers. A row whose angles are beyond float64 is refused, and so is one whose value misses the tolerance that
// was asked for.
#pragma once

#include "several_functions.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

class SeveralCosines {
    // A type that is deduced comes before what uses it.
    template <class Real>
    auto rounding_of(const CosineSum<Real>& sum, const RowSums<Real>& row) const {
        const CosineRounding<Real> found(view_, sum, row.half_sq_norm, row.n_terms);
        return [this, found](std::size_t k) { return found.of(view_.decisions[k]); };
    }

  public:
    using Sums32 = SeveralCosinesEngine<float>;
    using Sums64 = SeveralCosinesEngine<double>;

    // `memory` is room for (n_features,) float64.
    SeveralCosines(const PreparedModel& prepared, float* memory)
        : view_(*prepared.view),
          cosines_(*static_cast<const CosineSums*>(prepared.of_kind)),
          room_(reinterpret_cast<double*>(memory)) {}

    Sums32 sums(float*) const { return {cosines_.in32}; }
    Sums64 sums(double*) const { return {cosines_.in64}; }
    auto rounding(const RowSums<float>& row) const { return rounding_of(cosines_.in32, row); }
    auto rounding(const RowSums<double>& row) const { return rounding_of(cosines_.in64, row); }
    double slack(std::size_t k, double row_error) const {
        return 1.0001 * (view_.decisions[k].value_error + cosines_moved(view_.decisions[k], row_error));
    }
    void define(const RowSource& source, std::size_t i, double* values, double* bounds, double* lost) const {
        source.load(i, nullptr, 1.0, room_, 1);
        cosines_by_definition(view_, cosines_, room_, values, bounds, lost);
    }

  protected:
    const ModelView& view_;
    const CosineSums& cosines_;
    double* const room_;
};

class CosineFunction : SeveralCosines {
  public:
    using Sums32 = CosineEngine<float>;
    using Sums64 = CosineEngine<double>;
    static constexpr bool refuses = true;

    CosineFunction(const PreparedModel& prepared, float* memory) : SeveralCosines(prepared, memory) {}

    Sums32 sums(float*) const { return {cosines_.in32}; }
    Sums64 sums(double*) const { return {cosines_.in64}; }
    template <class Real>
    double rounding(const RowSums<Real>& row) const {
        return SeveralCosines::rounding(row)(0);
    }
    static const FewValues* few() { return nullptr; }
    double slack(double row_error) const { return SeveralCosines::slack(0, row_error); }
    BoundedValue define(const RowSource& source, std::size_t i, double row_error) const {
        double value, bound, lost;
        SeveralCosines::define(source, i, &value, &bound, &lost);
        return {value, bound + slack(row_error)};
    }
};

// What evaluate.hpp asks of a kind of kernel.
struct CosineKind {
    static Status evaluate(const PreparedModel& prepared, const RowSource& source, const Request& request,
                           const Evaluation& out, std::uint64_t* counts, const Batch& batch,
                           const EvaluationMemory& memory) {
        const bool in_float64 = wants_exact_values(*prepared.view, request, out);
        if (prepared.view->n_decisions == 1)
            return all_rows(ExactCascade<CosineFunction>(prepared, source, out, counts, request, batch, memory), source,
                            in_float64);
        return all_rows(SeveralFunctions<SeveralCosines>(prepared, source, out, counts, request, batch, memory), source,
                        in_float64);
    }

    // By the slope of all cosines together.
    static bool feels_error(const PreparedModel& prepared, double error, const double*) {
        double slope = 0.0;
        for (std::size_t k = 0; k < prepared.view->n_decisions; ++k) {
            const DecisionNumbers& decision = prepared.view->decisions[k];
            if (decision.sum_moduli > 0.0) slope = std::fmax(slope, decision.total / decision.sum_moduli);
        }
        return is_felt(prepared, slope > 0.0 ? error * slope : 0.0);
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

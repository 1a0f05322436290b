// Sums of terms that are not kernels at support vectors (`Terms`: a record of exact/), for ExactCascade and, if there
// are several, for SeveralFunctions. The reference is the function over the real numbers. A row whose terms are beyond
// float64 is rejected, and so is a row whose value misses the requested tolerance.
#pragma once

#include "several_functions.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

template <class Terms, Parts list>
class SeveralSums {
    // Deduced types must be declared before their use.
    template <class Sum, class Real>
    auto rounding_of(const Sum& sum, const RowSums<Real>& row) const {
        const typename Terms::template Rounding<Real> found(view_, sum, row.half_sq_norm, row.n_terms);
        return [this, found](std::size_t k) { return found.of(view_.decisions[k]); };
    }

  public:
    static constexpr Parts parts = list;
    using Sums32 = typename Terms::template SeveralEngine<float>;
    using Sums64 = typename Terms::template SeveralEngine<double>;

    // `memory` has space for (n_features,) float64.
    SeveralSums(const PreparedModel& prepared, float* memory)
        : view_(*prepared.view),
          terms_(*static_cast<const typename Terms::Sums*>(prepared.of_kind)),
          room_(reinterpret_cast<double*>(memory)) {}

    Sums32 sums(float*) const { return {terms_.in32}; }
    Sums64 sums(double*) const { return {terms_.in64}; }
    auto rounding(const RowSums<float>& row) const { return rounding_of(terms_.in32, row); }
    auto rounding(const RowSums<double>& row) const { return rounding_of(terms_.in64, row); }
    double slack(std::size_t k, double row_error) const {
        return 1.0001 * (view_.decisions[k].value_error + Terms::moved(view_.decisions[k], row_error));
    }
    void define(const RowSource& source, std::size_t i, double* values, double* bounds, double* lost) const {
        source.load(i, nullptr, 1.0, room_, 1);
        Terms::define(view_, terms_, room_, values, bounds, lost);
    }

  protected:
    const ModelView& view_;
    const typename Terms::Sums& terms_;
    double* const room_;
};

template <class Terms, Parts list>
class OneSum : SeveralSums<Terms, list> {
    using Several = SeveralSums<Terms, list>;

  public:
    static constexpr Parts parts = list;
    using Sums32 = typename Terms::template Engine<float>;
    using Sums64 = typename Terms::template Engine<double>;
    static constexpr bool refuses = true;

    OneSum(const PreparedModel& prepared, float* memory) : Several(prepared, memory) {}

    Sums32 sums(float*) const { return {this->terms_.in32}; }
    Sums64 sums(double*) const { return {this->terms_.in64}; }
    template <class Real>
    double rounding(const RowSums<Real>& row) const {
        return Several::rounding(row)(0);
    }
    static const FewValues* few() { return nullptr; }
    double slack(double row_error) const { return Several::slack(0, row_error); }
    BoundedValue define(const RowSource& source, std::size_t i, double row_error) const {
        double value, bound, lost;
        Several::define(source, i, &value, &bound, &lost);
        return {value, bound + slack(row_error)};
    }
};

// The interface of evaluate.hpp for a kind that is a sum of terms.
template <class Terms>
struct EvaluatorOf {
    // Evaluates all rows of a source.
    template <Parts parts>
    static Status evaluate(const PreparedModel& prepared, const RowSource& source, const Request& request,
                           const Evaluation& out, std::uint64_t* counts, const Batch& batch,
                           const EvaluationMemory& memory) {
        const bool in_float64 = wants_exact_values(*prepared.view, request, out);
        if (prepared.view->n_decisions == 1)
            return all_rows(
                ExactCascade<OneSum<Terms, parts & ~few_values>>(prepared, source, out, counts, request, batch, memory),
                source, in_float64);
        return all_rows(
            SeveralFunctions<SeveralSums<Terms, parts>>(prepared, source, out, counts, request, batch, memory), source,
            in_float64);
    }

    // Whether a mapped row's error may matter: by the slope of all terms together.
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

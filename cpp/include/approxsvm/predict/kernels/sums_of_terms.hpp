// Sums of terms other than kernel values at support vectors, for ExactCascade (`Kind` is a record from exact/). The
// reference is the function in exact arithmetic. A row is rejected if its terms overflow float64 or its value misses
// the requested tolerance.
#ifndef APPROXSVM_PREDICT_KERNELS_SUMS_OF_TERMS_HPP
#define APPROXSVM_PREDICT_KERNELS_SUMS_OF_TERMS_HPP

#include "../stages/exact.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

template <class Kind, Parts list, Shape form>
class SumsOfTerms {
  public:
    static constexpr Parts parts = list & ~few_values;
    static constexpr Shape shape = form;
    static constexpr bool refuses = true;
    template <class Real>
    using Sums = TermSums<typename Kind::template Term<Real>, form == Shape::one ? 1 : 0>;

    // The array `memory` must hold n_features doubles.
    SumsOfTerms(const PreparedModel& prepared, float* memory)
        : view_(*prepared.view),
          terms_(*static_cast<const typename Kind::Sums*>(prepared.of_kind)),
          room_(reinterpret_cast<double*>(memory)) {}

    template <class Real>
    Sums<Real> sums(Real* products) const {
        const auto& terms = in<Real>(terms_.in32, terms_.in64);
        return {terms.sums, {terms.phases}, products};
    }
    template <class Real>
    void fill(const RowSums<Real>& row, double* values, double* bounds) const {
        const typename Kind::template Rounding<Real> rounding(view_, in<Real>(terms_.in32, terms_.in64),
                                                              row.half_sq_norm, row.n_terms);
        for (std::size_t k = 0; k < (form == Shape::one ? 1 : view_.n_decisions); ++k) {
            values[k] = row.sums[k * row.stride];
            bounds[k] = rounding.of(view_.decisions[k]);
        }
    }
    double slack(std::size_t k, double row_error) const {
        return 1.0001 * (view_.decisions[k].value_error + Kind::moved(view_.decisions[k], row_error));
    }
    static const FewValues* few() { return nullptr; }
    bool define(const Job& job, std::size_t i, double* values, double* bounds, double* lost) const {
        job.source.load(i, nullptr, 1.0, room_, 1);
        Kind::define(view_, terms_, room_, values, bounds, lost);
        for (std::size_t k = 0; k < view_.n_decisions; ++k) bounds[k] += slack(k, job.row_error(i));
        return true;
    }

  private:
    const ModelView& view_;
    const typename Kind::Sums& terms_;
    double* const room_;
};

// The interface of evaluate.hpp for a sum of terms.
template <class Kind>
struct EvaluatorOf {
    // Evaluates all rows from a source.
    template <Parts parts>
    static Status evaluate(const Job& job) {
        if (job.view.n_decisions == 1) {
            ExactCascade<SumsOfTerms<Kind, parts, Shape::one>> cascade(job);
            return engine_rows(cascade, job);
        }
        ExactCascade<SumsOfTerms<Kind, parts, Shape::several>> cascade(job);
        return engine_rows(cascade, job);
    }

    // Returns whether the error of a mapped row may matter, judged by the slope of the sum of all terms.
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

#endif

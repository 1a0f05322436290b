// Sums of Gaussian kernels at support vectors, for ExactCascade: one function, several functions with the same support
// vectors, or all class pairs. Each kernel value is computed once.
#ifndef APPROXSVM_PREDICT_STAGES_GAUSSIAN_SUMS_HPP
#define APPROXSVM_PREDICT_STAGES_GAUSSIAN_SUMS_HPP

#include "definition.hpp"
#include "exact.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

template <Parts list, Shape form>
class GaussianTerms {
    static constexpr bool is_single = form == Shape::one;

  public:
    static constexpr Parts parts = form == Shape::several ? list & ~few_values : list;
    static constexpr Shape shape = form;
    static constexpr bool refuses = form == Shape::several;
    template <class Real>
    using Sums = TermSums<GaussianTerm<Real>, is_single ? 2 : 0>;

    // `memory` must hold definition_bytes() bytes.
    GaussianTerms(const PreparedModel& prepared, float* memory)
        : prepared_(prepared), view_(*prepared.view), decisions_(view_.decisions), memory_(memory) {}

    template <class Real>
    Sums<Real> sums(Real* products) const {
        const KernelSums<Real>& sums = engine<Real>().sums;
        return {sums, {sums.vectors}, products};
    }

    // The functions' sums are followed by the sum of absolute values computed with each support vector's largest
    // coefficient, which is an upper bound for every function.
    template <class Real>
    void fill(const RowSums<Real>& row, double* values, double* bounds) const {
        const auto& engine = this->engine<Real>();
        const EngineBound<Real> bound(engine);
        const RowRounding of_row = bound.of_row(static_cast<double>(row.half_sq_norm), row.n_terms);
        const double* const narrowing = engine.narrowing_errors;
        if constexpr (form == Shape::pairs) {
            const std::size_t n = view_.n_labels;
            for_each_pair(n, [&](std::size_t pair, std::size_t i, std::size_t j) {
                const double moduli = pair_moduli(row.sums, n, row.stride, i, j);
                values[pair] = pair_sum(row.sums, n, row.stride, i, j);
                bounds[pair] = bound.of(of_row, moduli, narrowing[i] + narrowing[j], decisions_[pair]);
            });
        } else {
            const std::size_t n = is_single ? 1 : view_.n_decisions;
            const double moduli = row.sums[n * row.stride];
            for (std::size_t k = 0; k < n; ++k) {
                values[k] = row.sums[k * row.stride];
                bounds[k] = bound.of(of_row, moduli, narrowing[k], decisions_[k]);
            }
        }
    }

    double slack(std::size_t k, double row_error) const { return row_slack(decisions_[k], prepared_.slope, row_error); }
    const FewValues* few() const { return &prepared_.few; }

    bool define(const Job& job, std::size_t i, double* values, double* bounds, double* moved) const {
        const DefinedKernels kernels(job.prepared, job.source, i, job.row_error(i), memory_);
        const DefinedSums sums{values, bounds, moved};
        if (!has_finite_terms(reinterpret_cast<const double*>(memory_))) return false;
        if (form == Shape::pairs && !wants_values(job.out)) {
            unknown_pairs_by_definition(view_, kernels, sums, job.memory.tally);
        } else {
            gaussian_by_definition(view_, kernels, sums);
        }
        return true;
    }

  private:
    // Returns whether all kernel values of the source are free of NaN. scikit-learn computes squared distances as
    // ||z||^2 - 2 x.z + ||x||^2, which is NaN if infinities are subtracted. Models with class pairs come from LIBSVM,
    // which sums squared differences. However, if gamma is 0, infinite distances give NaN in both scikit-learn and
    // LIBSVM.
    bool has_finite_terms(const double* z) const {
        const double norm = norm_above(z, view_.n_features), most = view_.max_sv_norm_origin;
        if (view_.gamma == 0.0 && !(norm + most <= 0x1p510)) return false;
        return form == Shape::pairs || norm * most <= 0x1p1020;
    }
    template <class Real>
    const Engine<Real>& engine() const {
        return in<Real>(prepared_.exact32, prepared_.exact64);
    }

    const PreparedModel& prepared_;
    const ModelView& view_;
    const DecisionNumbers* const decisions_;
    float* const memory_;
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

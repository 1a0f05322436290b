// A sum of cosines, for ExactCascade. The reference is the function over the real numbers. A row whose angles are
// beyond float64 is refused, and so is one whose value misses the tolerance that was asked for.
#pragma once

#include "engine_rows.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

class CosineFunction {
  public:
    using Sums32 = CosineEngine<float>;
    using Sums64 = CosineEngine<double>;
    static constexpr bool refuses = true;

    // `memory` is room for (n_features,) float64.
    CosineFunction(const PreparedModel& prepared, float* memory)
        : view_(*prepared.view),
          cosines_(*static_cast<const CosineSums*>(prepared.of_kind)),
          room_(reinterpret_cast<double*>(memory)) {}

    Sums32 sums(float*) const { return {cosines_.in32}; }
    Sums64 sums(double*) const { return {cosines_.in64}; }

    double rounding(const RowSums<float>& row) const {
        return cosine_bound(view_, cosines_.in32, row.half_sq_norm, row.n_terms);
    }
    double rounding(const RowSums<double>& row) const {
        return cosine_bound(view_, cosines_.in64, row.half_sq_norm, row.n_terms);
    }
    double slack(double row_error) const {
        return 1.0001 * (view_.decisions[0].value_error + cosines_moved(view_.decisions[0], row_error));
    }

    BoundedValue define(const RowSource& source, std::size_t i, double row_error) const {
        source.load(i, nullptr, 1.0, room_, 1);
        const CosineValue found = cosines_by_definition(view_, cosines_, room_);
        return {found.value, found.bound + slack(row_error)};
    }

  private:
    const ModelView& view_;
    const CosineSums& cosines_;
    double* const room_;
};

// What evaluate.hpp asks of a kind of kernel.
struct CosineKind {
    static Status evaluate(const PreparedModel& prepared, const RowSource& source, const Request& request,
                           const Evaluation& out, std::uint64_t* counts, const Batch& batch,
                           const EvaluationMemory& memory) {
        ExactCascade<CosineFunction> cascade(prepared, source, out, counts, request, batch, memory);
        const Status status = engine_rows(cascade, source, wants_exact_values(*prepared.view, request, out));
        return status == Status::ok ? cascade.finish() : status;
    }

    // By the slope of all cosines together.
    static bool feels_error(const PreparedModel& prepared, double error, const double*) {
        const double a1 = prepared.largest_moduli;
        return is_felt(prepared, a1 > 0.0 ? error * (prepared.view->decisions[0].total / a1) : 0.0);
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

// Evaluates rows in the coordinates of the kernel, of any kind.
#ifndef APPROXSVM_PREDICT_KERNELS_EVALUATE_HPP
#define APPROXSVM_PREDICT_KERNELS_EVALUATE_HPP

#include "gaussian.hpp"
#include "polynomials.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Evaluates all rows of a mapped source: values, bounds, stages, labels by votes. `counts[stage]` grows by the number
// of rows that each stage answered. The memory must suffice for as many rows as the request says the call has.
template <Parts parts = all_parts>
inline Status evaluate_source(const PreparedModel& prepared, const RowSource& source, const Request& request,
                              const Evaluation& out, std::uint64_t* counts, const EvaluationMemory& memory) {
    const ModelView& model = *prepared.view;
    const bool labels_only =
        !wants_values(out) && !out.stages && model.task != Task::regression && model.mode != Mode::approximate;
    const Batch batch = batch_of<parts>(model, request.n_rows_in_call, labels_only);
    const Job job{prepared, model, source, request, out, counts, batch, memory};
    return with_kind<parts>(model,
                            [&](auto kind) { return EvaluatorOf<decltype(kind)>::template evaluate<parts>(job); });
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

// Answers of any model for the rows of a source.
#ifndef APPROXSVM_PREDICT_ANSWERS_ANSWERS_HPP
#define APPROXSVM_PREDICT_ANSWERS_ANSWERS_HPP

#include "ensembles.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Bytes of scratch memory for answer() per thread, in calls of up to n_rows rows.
template <Parts parts = all_parts>
inline std::size_t workspace_bytes(const PreparedModel& prepared, std::size_t n_rows = any_number_of_rows) {
    Arena counter(nullptr);
    if constexpr (has(parts, ensembles)) {
        if (prepared.view->n_members > 0) {
            [[maybe_unused]] const EnsembleMemory memory(prepared, CallOf<parts>(n_rows), counter);
            return counter.bytes_anywhere();
        }
    }
    [[maybe_unused]] const AnswerMemory memory(prepared, CallOf<parts>(n_rows), counter);
    return counter.bytes_anywhere();
}

// Whether certificates need a pass of their own. They tell what the first stage proves if only labels are wanted, and
// must not depend on other outputs: values may come from later stages, or need closer bounds. Without engines, every
// request takes the same way.
inline bool certifies_apart(const ModelView& model, const Evaluation& out) {
    const bool more = wants_values(out) || out.probabilities || out.probability_bounds;
    return out.certified && more && (model.n_members > 0 || has_engines(model));
}

// Answers all rows of a source. `counts[stage]` grows by the number of rows that each stage answered, once per member
// of an ensemble and once per evaluation of a row. The workspace has workspace_bytes() for the number of rows in the
// call.
template <Parts parts = all_parts>
inline Status answer(const PreparedModel& prepared, const RowSource& rows, const Request& request,
                     const Evaluation& out, std::uint64_t* counts, void* workspace,
                     std::size_t n_bytes = ~std::size_t{0}) {
    const Status status = check_request(*prepared.view, rows.n_rows(), request, out);
    if (status != Status::ok) return status;
    if (certifies_apart(*prepared.view, out)) {
        Evaluation others = out, proof;
        others.certified = nullptr;
        proof.certified = out.certified;
        const Status found = answer<parts>(prepared, rows, request, others, counts, workspace, n_bytes);
        if (found != Status::ok) return found;
        return answer<parts>(prepared, rows, request, proof, counts, workspace, n_bytes);
    }
    Request own = request;
    if (out.certified) own.values = Values::settled;
    const CallOf<parts> call = rows_of_call<parts>(rows, own);
    Arena arena(workspace);
    if constexpr (has(parts, ensembles)) {
        if (prepared.view->n_members > 0) {
            const EnsembleMemory memory(prepared, call, arena);
            if (arena.bytes_anywhere() > n_bytes) return Status::buffer_too_small;
            return EnsembleAnswers<parts>(prepared, counts, memory).answer(rows, own, out);
        }
    }
    const AnswerMemory memory(prepared, call, arena);
    if (arena.bytes_anywhere() > n_bytes) return Status::buffer_too_small;
    return answer_single<parts>(prepared, rows, own, out, counts, memory);
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

// The way of a row, from raw numbers to answers, begins with evaluate() at the end of this file. The folders, in the
// order in which a row meets them:
//
//     rows/        reads a row in the caller's form (raw_rows.hpp, row_source.hpp) and maps it (row_mapping.hpp)
//     answers/     finds out which values an answer needs, and makes labels and probabilities of them: one_model.hpp,
//                  ensembles.hpp; evaluate.hpp has chunks of rows mapped, and chooses the kind of kernel
//     kernels/     evaluates rows with a kind of kernel: gaussian.hpp, polynomials.hpp, sums_of_terms.hpp
//     stages/      prove or compute a row's values, in the order below
//     few_values/  one of these stages, with its layout and memory
//     prepare/     what all of them need: the model in its layout, the call, the memory of a thread
//
// kernels/gaussian.hpp sends rows down the stages. The first stage whose error bound suffices (stages/decisions.hpp)
// answers a row:
//
//     1. the expansion around a near center, to degree 2: centers.hpp, and one_function.hpp, several_functions.hpp or
//        pairs_of_classes.hpp
//     2. the same value with a bound that knows the row's direction, or higher degrees
//     3. kernel sums in few coordinates (subspace.hpp), or the pairs of a guessed winner (winner.hpp, winner_row.hpp)
//     4. the exact engine in float32 (exact.hpp, engine.hpp), or sums on a grid of few values (few_values/stage.hpp)
//     5. the same in float64
//     6. the definition, term after term in LIBSVM's order (definition.hpp)
//
// A model of mode exact begins with 4. An approximate model has only 1 and 2, and reports its bounds. Exact values
// begin with 5. Rows that a stage leaves undecided are collected and sent to the next one a full block at a time. Each
// lane computes what it would compute alone, so results do not depend on the other rows of a block.
//
// Eight files tell how a model of two classes labels a row: this one, rows/raw_rows.hpp, answers/one_model.hpp,
// answers/evaluate.hpp, kernels/gaussian.hpp, stages/centers.hpp, stages/one_function.hpp and stages/decisions.hpp.
#ifndef APPROXSVM_PREDICT_PREDICT_HPP
#define APPROXSVM_PREDICT_PREDICT_HPP

#include "answers/ensembles.hpp"
#include "rows/raw_rows.hpp"

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

// Raw rows of any kind that with_source() accepts; a fault names the row.
template <Parts parts = all_parts, class Rows>
inline Status evaluate(const PreparedModel& prepared, const Rows& rows, const Evaluation& out,
                       Span<unsigned char> workspace, Values values = Values::promised, Fault* fault = nullptr) {
    return with_source<parts>(rows, *prepared.view, [&](const RowSource& source) {
        if (fault) *fault = Fault{};
        Request request{source.n_rows(), values};
        request.fault = fault;
        std::uint64_t counts[n_stages] = {};
        const Status status = answer<parts>(prepared, source, request, out, counts, workspace.data, workspace.size);
        if (fault && status == Status::not_finite) fault->row = first_bad_number<parts>(*prepared.view, source).row;
        if (fault && status == Status::unsorted_indices) fault->row = first_unsorted_row(source);
        return status;
    });
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

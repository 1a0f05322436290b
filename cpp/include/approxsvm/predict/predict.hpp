// Predictions for raw rows. They begin with answer() in this file, which is called by dispatch/target.cpp and, in
// programs that use only the headers, by evaluate() at the end of this file. A row passes through these folders, in
// this order:
//
//     rows/        reads a row of the caller's type (raw_rows.hpp, row_source.hpp) and maps it (row_mapping.hpp)
//     answers/     determines which values a request needs, and computes labels and probabilities from them:
//                  one_model.hpp, ensembles.hpp; evaluate.hpp maps chunks of rows and selects the code for the kernel
//     kernels/     evaluates rows with a kernel: gaussian.hpp, polynomials.hpp, sums_of_terms.hpp
//     stages/      prove labels or compute values, in the order below
//     few_values/  one stage, with its layout and memory
//     prepare/     data for all folders: the prepared model, the call, a thread's memory
//
// kernels/gaussian.hpp sends rows through the stages. The first stage whose error bound suffices (stages/decisions.hpp)
// determines a row's result:
//
//     1. the expansion around a nearby center, to degree 2: centers.hpp, and one_function.hpp, several_functions.hpp or
//        pairs_of_classes.hpp
//     2. the same value with a bound that depends on the row's direction, or higher degrees
//     3. in "exact" mode, kernel sums over a few coordinates (subspace.hpp); in multiclass models, the pairs of a
//        guessed winner (winner.hpp, winner_row.hpp)
//     4. the exact engine in float32 (exact.hpp, engine.hpp), or sums on a grid of few values (few_values/stage.hpp)
//     5. the engine or the sums of stage 4 in float64
//     6. the definition, term by term in LIBSVM's order (definition.hpp)
//
// For a model in "exact" mode, evaluation begins with stage 3. An approximate model has only stages 1 and 2, and
// reports its bounds. For exact values, evaluation begins with stage 5. Rows left undecided by a stage are collected
// and sent to the next one, a full block at a time. The values in a lane do not depend on the other lanes, so results
// do not depend on the other rows in a block.
//
// To follow a two-class row to a label in stage 1, read eight files: this one, rows/raw_rows.hpp,
// answers/one_model.hpp, answers/evaluate.hpp, kernels/gaussian.hpp, stages/centers.hpp, stages/one_function.hpp and
// stages/decisions.hpp. They call the arithmetic in expansion/ and bounds/, and rows/input_map.hpp if rows are mapped.
#ifndef APPROXSVM_PREDICT_PREDICT_HPP
#define APPROXSVM_PREDICT_PREDICT_HPP

#include "answers/ensembles.hpp"
#include "rows/raw_rows.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Size, in bytes, of the workspace that each thread needs for answer() calls with up to n_rows rows.
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

// Returns whether certificates are computed in a separate pass. Certificates state which labels the first stage proves
// if only labels are wanted. They must not depend on other outputs, because values may come from later stages or need
// tighter bounds. Without engines, all requests are evaluated in the same way.
inline bool certifies_apart(const ModelView& model, const Evaluation& out) {
    const bool more = wants_values(out) || out.probabilities || out.probability_bounds;
    return out.certified && more && (model.n_members > 0 || has_engines(model));
}

// Computes all outputs for all rows from a source. Adds to each counts[stage] the number of rows whose results came
// from that stage; a row counts once per evaluation and, in an ensemble, once per member. The workspace must have at
// least workspace_bytes(prepared, n) bytes, where n is the number of rows in the call.
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

// Evaluates raw rows of any type accepted by with_source(); a fault contains the row's index.
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

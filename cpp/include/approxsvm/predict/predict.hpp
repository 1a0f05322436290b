// The way of a row, from raw numbers to answers, begins in this file. The folders, in the order in which a row meets
// them:
//
//     rows/        reads a row in the caller's form (raw_rows.hpp, row_source.hpp) and maps it (row_mapping.hpp)
//     answers/     finds out what must be computed (answers.hpp), for one model (one_model.hpp) or an ensemble
//                  (ensembles.hpp); has chunks of rows mapped and evaluated (mapped.hpp); makes labels of values
//     kernels/     evaluates a chunk by the kind of kernel (evaluate.hpp)
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
#ifndef APPROXSVM_PREDICT_PREDICT_HPP
#define APPROXSVM_PREDICT_PREDICT_HPP

#include "answers/answers.hpp"
#include "rows/raw_rows.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

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

// What the stages of all kinds of models need of a thread's memory.
#pragma once

#include "definition.hpp"
#include "subspace_stage.hpp"
#include "winner_stage.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Rows are routed to their centers this many at a time.
constexpr std::size_t route_rows = 16384;

// Scratch memory of one thread: a block of rows for the first stage, one for the later ones, the non-zeros of sparse
// rows for either engine and its sums, the centers of routed rows, and the values of all pairs of classes for a block
// of rows.
struct EvaluationMemory {
    float *first_block, *later_block;
    NonzeroRoom nonzeros32, nonzeros64;
    float* products32;
    double* products64;
    double *sums32, *sums64, *pair_values, *pair_bounds, *pair_moved;
    std::uint32_t *routing, *tally, *block_wins;
    WinnerRoom winner;
    SubspaceRoom subspaces;

    EvaluationMemory(const ModelView& model, Carver& carver) : winner(model, carver), subspaces(model, carver) {
        const bool blocks = model.n_centers > 0 || !by_columns(model);
        const std::size_t block = blocks ? workspace_bytes(model.n_features) / sizeof(float) : 0;
        const std::size_t defined = definition_bytes(model) / sizeof(float);
        const bool classes = has_classes(model);
        const std::size_t n_labels = classes ? std::size_t{model.n_labels} : 0;
        const std::size_t n_sums = classes ? n_labels * n_labels : model.n_decisions > 2 ? model.n_decisions : 2;
        first_block = carver.take<float>(block);
        later_block = carver.take<float>(block > defined ? block : defined);
        nonzeros32 = NonzeroRoom::of<float>(model, carver);
        nonzeros64 = NonzeroRoom::of<double>(model, carver);
        products32 = carver.take<float>(room_for_products<float>(model));
        products64 = carver.take<double>(room_for_products<double>(model));
        sums32 = carver.take<double>(has_engines(model) ? sums_room(n_sums) : 0);
        sums64 = carver.take<double>(has_engines(model) ? sums_room(n_sums) : 0);
        routing = carver.take<std::uint32_t>(model.n_centers > 1 ? 2 * route_rows + model.n_centers + 1 : 0);
        const std::size_t n_pairs_here = model.n_decisions > 1 || is_of_products(model) ? model.n_decisions : 0;
        pair_values = carver.take<double>((block_rows + 1) * n_pairs_here);
        pair_bounds = carver.take<double>((block_rows + 1) * n_pairs_here);
        pair_moved = carver.take<double>(n_pairs_here);
        tally = carver.take<std::uint32_t>(2 * n_labels);
        block_wins = carver.take<std::uint32_t>(n_labels * block_rows);
    }
};

inline std::size_t evaluation_workspace_bytes(const ModelView& model) {
    Carver counter(nullptr);
    EvaluationMemory memory(model, counter);
    return counter.bytes_anywhere();
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

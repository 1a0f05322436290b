// The thread memory that the stages of all kinds of models need.
#pragma once

#include "definition.hpp"
#include "few_values_stage.hpp"
#include "subspace_stage.hpp"
#include "winner_stage.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Number of rows that are routed to their centers at a time.
constexpr std::size_t route_rows = 16384;

// Scratch memory of a part, or empty if the list of parts leaves it out.
template <bool is_there, class Room, class... Arguments>
inline Room room_of(Arguments&&... arguments) {
    if constexpr (is_there)
        return Room(arguments...);
    else
        return Room();
}

// Scratch memory of one thread: a block of rows for the first stage and one for the later ones, the sparse rows'
// non-zeros for each engine and its sums, the centers of routed rows, and the values of all pairs of classes for a
// block of rows.
struct EvaluationMemory {
    float *first_block, *later_block;
    NonzeroRoom nonzeros32, nonzeros64;
    float* products32;
    double* products64;
    double *sums32, *sums64, *pair_values, *pair_bounds, *pair_moved;
    double *row_values, *row_bounds;  // for one row
    std::uint32_t *routing, *tally, *block_wins;
    WinnerRoom winner;
    SubspaceRoom subspaces;
    FewRoom few;

    template <Parts parts>
    EvaluationMemory(const PreparedModel& prepared, const CallOf<parts>& call, Arena& arena)
        : winner(room_of<has(parts, one_vs_one), WinnerRoom>(*prepared.view, call, arena)),
          subspaces(room_of<has(parts, approxsvm::subspaces), SubspaceRoom>(*prepared.view, call, arena)),
          few(room_of<has(parts, few_values), FewRoom>(prepared.few, *prepared.view, arena)) {
        const ModelView& model = *prepared.view;
        const bool is_by_columns = by_columns(model), blocks = model.n_centers > 0 || !is_by_columns;
        const std::size_t block = blocks ? call.block_bytes(model) / sizeof(float) : 0;
        const std::size_t defined = definition_bytes(model) / sizeof(float);
        first_block = arena.take<float>(model.n_centers > 0 || is_of_products(model) ? block : 0);
        later_block = arena.take<float>(block > defined ? block : defined);
        const bool classes = has_classes(model);
        const std::size_t n_labels = classes ? std::size_t{model.n_labels} : 0;
        const std::size_t n_sums = classes ? n_labels * n_labels : model.n_decisions + 1;  // or moduli
        const std::size_t room = has_engines(model) ? sums_room(n_sums, call) : 0;
        nonzeros32 = NonzeroRoom::of<float>(model, call, arena);
        nonzeros64 = NonzeroRoom::of<double>(model, call, arena);
        products32 = arena.take<float>(is_by_columns ? room_for_products<float>(model) : 0);
        products64 = arena.take<double>(is_by_columns ? room_for_products<double>(model) : 0);
        sums32 = arena.take<double>(room);
        sums64 = arena.take<double>(room);
        const std::size_t n_routed = call.n < route_rows ? call.n : route_rows;
        routing = arena.take<std::uint32_t>(model.n_centers > 1 ? 2 * n_routed + model.n_centers + 1 : 0);
        const std::size_t n_pairs_here = model.n_decisions > 1 || is_of_products(model) ? model.n_decisions : 0;
        pair_values = arena.take<double>(call.side_by_side * n_pairs_here);
        pair_bounds = arena.take<double>(call.side_by_side * n_pairs_here);
        pair_moved = arena.take<double>(n_pairs_here);
        row_values = arena.take<double>(n_pairs_here);
        row_bounds = arena.take<double>(n_pairs_here);
        tally = arena.take<std::uint32_t>(2 * n_labels);
        block_wins = arena.take<std::uint32_t>(n_labels * call.side_by_side);
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

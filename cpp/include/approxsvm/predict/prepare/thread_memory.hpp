// One thread's scratch memory for all stages of any model.
#ifndef APPROXSVM_PREDICT_PREPARE_THREAD_MEMORY_HPP
#define APPROXSVM_PREDICT_PREPARE_THREAD_MEMORY_HPP

#include "../few_values/segments.hpp"
#include "call.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// --- engines

// Number of sparse rows evaluated together; fewer if there are many sums.
constexpr std::size_t sparse_rows_together(std::size_t n_sums) {
    return n_sums <= 128 ? sparse_block_rows : static_cast<std::size_t>(rows_together) * 4;
}

// An engine's memory for the nonzeros of waiting rows, and for the sums of rows evaluated together. Many rows wait, so
// that a panel is multiplied by all of them while it is in cache. If support vectors are stored by column, only one row
// waits, with up to n_features nonzeros.
template <class Real>
struct EngineRoom {
    std::size_t capacity = 0;  // maximum number of nonzeros
    Real* values = nullptr;
    std::int32_t* columns = nullptr;
    Real* products = nullptr;  // a row's inner products, if vectors are stored by column
    double* sums = nullptr;
    float* block = nullptr;  // a block of rows shared by the stages

    EngineRoom() = default;
    EngineRoom(const PreparedModel& prepared, const CallRows& call, std::size_t sums_room, float* shared, Arena& arena)
        : block(shared) {
        const ModelView& model = *prepared.view;
        const std::size_t d = model.n_features;
        if (prepared.by_columns || call.side_by_side == 1)
            capacity = prepared.by_columns ? d : d / 3;  // maximum number of nonzeros in a row
        else
            capacity = block_bytes(d) / (sizeof(Real) + sizeof(std::int32_t));
        values = arena.take<Real>(capacity);
        columns = arena.take<std::int32_t>(capacity);
        if (prepared.by_columns)
            products = arena.take<Real>(panels_for<Real>(polynomial_sizes(model)), panel_width<Real>);
        sums = arena.take<double>(sums_room);
    }
};

// --- other stages

// Scratch memory for sums over a few coordinates.
struct SubspaceRoom {
    float *coordinates = nullptr, *partial = nullptr;  // (coordinates, rounded up to tiles; rows side by side) and
    double *own = nullptr, *others = nullptr;          // (n_forms, rows side by side)
    float* values = nullptr;                           // one row's kernel values in a stage
    double* lists = nullptr;                           // partial sums of one row's lists, (n_forms, tile_rows)

    SubspaceRoom() = default;
    SubspaceRoom(const ModelView& model, const CallRows& call, Arena& arena) {
        if (model.subspaces.n_stages == 0) return;
        const std::size_t room = n_subspace_forms(model) * call.side_by_side;
        const std::size_t n_coordinates = model.subspaces.n_coordinates;
        coordinates = arena.take<float>(call.side_by_side > 1 ? tiles_for(n_coordinates) * tile_rows * block_rows
                                                              : panels_for<float>(n_coordinates) * panel_width<float>);
        partial = arena.take<float>(room);
        own = arena.take<double>(room);
        others = arena.take<double>(room);
        std::size_t n_lanes = 0;
        for_subspace_groups(model, [&](std::size_t, const SubspaceGroup& group) {
            const std::size_t n = lanes_for<float>(group.n_own + group.n_others);
            if (n > n_lanes) n_lanes = n;
        });
        values = arena.take<float>(n_lanes);
        lists = arena.take<double>(n_subspace_forms(model) * tile_rows);
    }
};

// A waiting row, and the number of classes already guessed for it.
struct QueuedRow {
    std::size_t row;
    int attempt;
};

// The progress of evaluating the pairs of a class: guessed, perhaps over a few coordinates; with the bound on lists;
// with the tighter bound on pairs; in float64; by the definition.
enum class Progress : std::uint8_t { none, guessed, by_lists, by_pairs, in_float64, by_definition };

// Scratch memory for the pairs of guessed winners.
struct WinnerRoom {
    float *scores = nullptr, *partial = nullptr;  // (n_labels, rows side by side), with rows rounded up to tiles
    double *own = nullptr, *others = nullptr;     // (n_labels, rows side by side)
    QueuedRow* queues = nullptr;                  // waiting rows, (n_levels, n_labels, block_rows)
    std::size_t* n_rows = nullptr;                // number of waiting rows, (n_levels, n_labels)
    // For one row: its coordinates relative to the engine's center, padded with zeros, and relative to the model's
    // center; the kernel values of the landmarks and then of all lanes; the kernel values of a list; (n_labels,
    // tile_rows) for lists; the state of each pair; and for each class, whether its kernel values are available, and
    // its pairs' progress.
    float *row = nullptr, *row_about_center = nullptr;
    float *values = nullptr, *listed = nullptr;
    double* lists = nullptr;
    PartOfPair* parts = nullptr;  // parts of pairs, by class, (n_labels,)
    Outcome* known = nullptr;     // pair outcomes, (n_pairs,)
    bool* has_values = nullptr;
    Progress* progress = nullptr;
    std::uint32_t* tally = nullptr;  // certain and possible votes, (2, n_labels)

    WinnerRoom() = default;
    WinnerRoom(const ModelView& model, const CallRows& call, Arena& arena) {
        if (!has_class_engines(model)) return;
        const std::size_t n = model.n_labels, room = n * call.side_by_side;
        const std::size_t n_levels = model.subspaces.n_stages + 1;
        scores = arena.take<float>(call.side_by_side > 1 ? tiles_for(n) * tile_rows * block_rows
                                                         : panels_for<float>(n) * panel_width<float>);
        partial = arena.take<float>(room);
        own = arena.take<double>(room);
        others = arena.take<double>(room);
        queues = arena.take<QueuedRow>(call.side_by_side > 1 ? n_levels * room : 0);
        n_rows = arena.take<std::size_t>(n_levels * n);
        row = arena.take<float>(row_stride(model.n_features));
        row_about_center = arena.take<float>(model.subspaces.n_stages > 0 ? model.n_features : 0);
        values = arena.take<float>(panels_for<float>(sizes_of_classes(model)), panel_width<float>);
        std::size_t largest = 0;
        for (std::size_t c = 0; c < n; ++c) largest = model.class_counts[c] > largest ? model.class_counts[c] : largest;
        listed = arena.take<float>(tiles_for(largest) * tile_rows + 2 * lanes);
        lists = arena.take<double>(n * tile_rows);
        parts = arena.take<PartOfPair>(n);
        known = arena.take<Outcome>(model.n_decisions);
        has_values = arena.take<bool>(n);
        progress = arena.take<Progress>(n);
        tally = arena.take<std::uint32_t>(2 * n);
    }
};

// --- all stages

// Number of bytes of memory needed by stages/definition.hpp.
inline std::size_t definition_bytes(const ModelView& model) {
    return 2 * model.n_features * sizeof(double);
}

// Number of rows routed to their centers at a time.
constexpr std::size_t route_rows = 16384;

// Scratch memory for a part, or an empty object if the list of parts omits it.
template <bool is_there, class Room, class... Arguments>
inline Room room_of(Arguments&&... arguments) {
    if constexpr (is_there)
        return Room(arguments...);
    else
        return Room();
}

// One thread's scratch memory: a block of rows for the first stage, a block shared by the later stages, the memory of
// each stage, the centers of routed rows, and the values of all functions for a block of rows and for one row.
struct EvaluationMemory {
    float *first_block, *later_block;
    EngineRoom<float> engine32;
    EngineRoom<double> engine64;
    double *block_values, *block_bounds, *row_values, *row_bounds, *row_room;
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
        const std::size_t block =
            model.n_centers > 0 || !prepared.by_columns ? call.block_bytes(model) / sizeof(float) : 0;
        const std::size_t defined = definition_bytes(model) / sizeof(float), n = model.n_decisions;
        first_block = arena.take<float>(model.n_centers > 0 || is_of_products(model) ? block : 0);
        later_block = arena.take<float>(block > defined ? block : defined);
        const std::size_t n_classes = has_classes(model) ? std::size_t{model.n_labels} : 0;
        if (has_engines(model)) {
            const std::size_t n_sums = n_classes > 0 ? n_classes * n_classes : n + 1;  // plus a sum of absolute values
            const std::size_t n_sparse = call.at_most(sparse_rows_together(n_sums));
            const std::size_t sums_room = n_sums * (n_sparse > call.side_by_side ? n_sparse : call.side_by_side);
            engine32 = EngineRoom<float>(prepared, call, sums_room, later_block, arena);
            engine64 = EngineRoom<double>(prepared, call, sums_room, later_block, arena);
        }
        const std::size_t n_routed = call.n < route_rows ? call.n : route_rows;
        routing = arena.take<std::uint32_t>(model.n_centers > 1 ? 2 * n_routed + model.n_centers + 1 : 0);
        const std::size_t n_in_block = n > 1 || is_of_products(model) ? call.side_by_side * n : 0;
        block_values = arena.take<double>(n_in_block);
        block_bounds = arena.take<double>(n_in_block);
        row_values = arena.take<double>(n);
        row_bounds = arena.take<double>(n);
        row_room = arena.take<double>(n);
        tally = arena.take<std::uint32_t>(2 * n_classes);
        block_wins = arena.take<std::uint32_t>(n_classes * call.side_by_side);
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

// Lays out a model for evaluation, in caller-provided memory.
#ifndef APPROXSVM_PREDICT_PREPARE_LAYOUT_HPP
#define APPROXSVM_PREDICT_PREPARE_LAYOUT_HPP

#include <new>

#include "../rows/input_map.hpp"
#include "engines.hpp"
#include "parts_needed.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

template <Parts parts>
inline std::size_t single_prepared_bytes(const ModelView& view);

// Returns the view of a subspace expansion, which has been validated.
inline ModelView subspace_expansion_of(const ModelView& view) {
    ModelView expansion;
    const unsigned char* const bytes = view.subspaces.expansion;
    view.describe(bytes, static_cast<std::size_t>(header_of(bytes).file_bytes), expansion, nullptr);
    return expansion;
}

template <Parts parts>
struct PreparedPieces : EnginePieces {
    IfPart<parts, one_vs_one, WinnerEngineMemory> winner;
    IfPart<parts, subspaces, SubspacesMemory> in_subspaces;
    IfPart<parts, few_values, FewValuesMemory> few;
    ModelView* expansion = nullptr;  // subspace expansion, and the memory for its layout
    unsigned char* of_expansion = nullptr;

    APPROXSVM_COLD PreparedPieces(const ModelView& view, Arena& arena, bool only_counts)
        : winner(view, pair_coefficients(view), arena),
          in_subspaces(view, arena),
          few(view, may_have_few_values(view), arena) {
        const std::size_t d = view.n_features;
        model = arena.take<PreparedModel>(1);
        if (view.subspaces.expansion) {
            expansion = arena.take<ModelView>(1);
            of_expansion = arena.take<unsigned char>(single_prepared_bytes<parts>(subspace_expansion_of(view)));
        }
        zeros = arena.take<float>(n_zeros(view));
        map_gains = arena.take<double>(view.has_input_map ? map_gain_doubles<parts>(view.input_map) : 0);
        of_kind = lay_out_kind<parts>(view, arena, only_counts);
        if (!is_gaussian(view)) return;
        basis = arena.take<float>(n_bases(view) * n_cells * n_bound_terms);
        weights = arena.take<float>(view.n_centers * view.n_forms, n_bound_terms);
        bounds = arena.take<double>(has_folded_center(view) ? n_bases(view) * n_cells : 0);
        folded = arena.take<double>(has_folded_center(view) ? folded_doubles(d) : 0);
        vector = arena.take<double>(d);
        features = arena.take<std::uint32_t>(engine_at_reference(view) ? d : 0);
        engine_center = arena.take<double>(has_engines(view) ? d : 0);
        narrowing = arena.take<double>(2 * (has_classes(view) ? std::size_t{view.n_labels} : view.n_decisions));
        exact32 = arena.take<unsigned char>(has_engines(view) ? engine_bytes<float>(view) : 0);
        exact64 = arena.take<unsigned char>(has_engines(view) ? engine_bytes<double>(view) : 0);
    }
};

// Returns the size in bytes of the layout of a non-ensemble model.
template <Parts parts>
APPROXSVM_COLD inline std::size_t single_prepared_bytes(const ModelView& view) {
    Arena counter(nullptr);
    const PreparedPieces<parts> pieces(view, counter, true);
    return counter.bytes_anywhere();
}

// An ensemble's data: the views and layouts of its members.
struct PreparedMembers {
    PreparedModel* model;
    ModelView* views;
    const PreparedModel** members;
    std::uint32_t* label_positions;

    APPROXSVM_COLD PreparedMembers(const ModelView& view, Arena& arena) {
        std::size_t n_labels = 0;
        for_members(view, [&](const ModelView& member) {
            n_labels += is_of_targets(view) ? member.n_labels : 0;
            return Status::ok;
        });
        model = arena.take<PreparedModel>(1);
        views = arena.take<ModelView>(view.n_members);
        members = arena.take<const PreparedModel*>(view.n_members);
        label_positions = arena.take<std::uint32_t>(n_labels);
    }
};

// Returns the number of bytes needed by prepare(). This memory must not move while the prepared model is in use.
template <Parts parts = all_parts>
APPROXSVM_COLD inline std::size_t prepared_bytes(const ModelView& view) {
    if (!has(parts, ensembles) || view.n_members == 0) return single_prepared_bytes<parts>(view);
    Arena counter(nullptr);
    PreparedMembers pieces(view, counter);
    for_members(view, [&](const ModelView& member) {
        counter.take<unsigned char>(single_prepared_bytes<parts>(member));
        return Status::ok;
    });
    return counter.bytes_anywhere();
}

template <Parts parts>
APPROXSVM_COLD inline const PreparedModel& lay_out_single(const ModelView& view, void* memory);

// Lays out all data needed for a Gaussian kernel.
template <Parts parts>
APPROXSVM_COLD inline void lay_out_gaussian(const ModelView& view, const PreparedPieces<parts>& pieces,
                                            PreparedModel& model) {
    model.engine_center = fill_engine_center(view, pieces.engine_center);
    model.slope = kernel_slope(view.gamma);
    // There is one table for each degree after which evaluation may stop (n_bases).
    if (view.degree > 0) fill_bases(view, view.degree < 2 ? view.degree : 2, view.degree, pieces.basis);
    for (std::size_t e = 0; e < view.n_centers * view.n_forms; ++e) {
        const std::size_t decision = decision_of(view, e / view.n_forms, e % view.n_forms);
        fill_weights(view.expansions[e], view.decisions[decision], pieces.weights + e * n_bound_terms);
    }
    for (std::size_t cell = 0; has_folded_center(view) && cell < n_bases(view) * n_cells; ++cell) {
        pieces.bounds[cell] = bound_of(pieces.basis + cell * n_bound_terms, pieces.weights);
    }
    model.bounds = has_folded_center(view) ? pieces.bounds : nullptr;
    model.basis = pieces.basis;
    model.weights = pieces.weights;
    if (has_folded_center(view)) model.folded = fold_center(view, pieces.folded);
    if (has_engines(view)) fill_engines(view, pieces, model);
    if constexpr (has(parts, one_vs_one)) {
        if (has_class_engines(view)) {
            model.winner = fill_winner_engine(view, pair_coefficients(view), model.exact32.sums.vectors, pieces.winner,
                                              model.engine_center);
        }
    }
    if constexpr (has(parts, few_values)) {
        if (may_have_few_values(view)) model.few = FewValuesWriter(view, pieces.few).write(model.slope);
    }
    if constexpr (has(parts, subspaces)) {
        model.subspaces = fill_subspaces(view, pieces.in_subspaces);
        if (!pieces.expansion) return;
        new (pieces.expansion) ModelView(subspace_expansion_of(view));
        model.subspace_expansion = &lay_out_single<parts>(*pieces.expansion, pieces.of_expansion);
    }
}

// Prepares a non-ensemble model in single_prepared_bytes() of memory.
template <Parts parts>
APPROXSVM_COLD inline const PreparedModel& lay_out_single(const ModelView& view, void* memory) {
    Arena arena(memory);
    const PreparedPieces<parts> pieces(view, arena, false);
    PreparedModel& model = *new (pieces.model) PreparedModel{};
    model.view = &view;
    model.at_reference = engine_at_reference(view);
    model.by_columns = by_columns(view);
    for (std::size_t j = 0; j < n_zeros(view); ++j) pieces.zeros[j] = 0.0f;
    if (has(parts, scalers) && view.has_input_map) fill_map_gains<parts>(view.input_map, pieces.map_gains);
    model.map_gains = pieces.map_gains;
    for (std::size_t k = 0; k < view.n_decisions; ++k) {
        model.largest_moduli = std::fmax(model.largest_moduli, view.decisions[k].sum_moduli);
    }
    model.zeros = pieces.zeros;
    model.of_kind = pieces.of_kind;
    if constexpr (has(parts, rbf)) {
        if (is_gaussian(view)) lay_out_gaussian<parts>(view, pieces, model);
    }
    return model;
}

// Prepares a model in prepared_bytes() of memory.
template <Parts parts = all_parts>
APPROXSVM_COLD inline const PreparedModel& lay_out(const ModelView& view, void* memory) {
    if (!has(parts, ensembles) || view.n_members == 0) return lay_out_single<parts>(view, memory);
    Arena arena(memory);
    PreparedMembers pieces(view, arena);
    PreparedModel& model = *new (pieces.model) PreparedModel{};
    model.view = &view;
    model.members = pieces.members;
    model.label_positions = pieces.label_positions;
    std::uint32_t* next = pieces.label_positions;
    std::size_t k = 0;
    for_members(view, [&](const ModelView& member) {
        const ModelView& kept = *new (pieces.views + k) ModelView(member);
        for (std::size_t c = 0; is_of_targets(view) && c < kept.n_labels; ++c) {
            *next++ = static_cast<std::uint32_t>(position_in(view, kept, c));
        }
        pieces.members[k++] =
            &lay_out_single<parts>(kept, arena.take<unsigned char>(single_prepared_bytes<parts>(kept)));
        return Status::ok;
    });
    return model;
}

// Prepares a model in prepared_bytes(view) of memory. The view must outlive `prepared`, so it must not be a temporary
// object.
Status prepare(const ModelView&& view, Span<unsigned char> memory, const PreparedModel*& prepared) = delete;
inline Status prepare(const ModelView& view, Span<unsigned char> memory, const PreparedModel*& prepared) {
    if (memory.size < prepared_bytes(view)) return Status::buffer_too_small;
    prepared = &lay_out(view, memory.data);
    return Status::ok;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

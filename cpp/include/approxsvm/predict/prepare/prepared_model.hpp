// A model prepared for evaluation: bound tables, the folded center and, if rows may need the exact model, the support
// vectors in the layouts of the exact engines. layout.hpp fills it.
#ifndef APPROXSVM_PREDICT_PREPARE_PREPARED_MODEL_HPP
#define APPROXSVM_PREDICT_PREPARE_PREPARED_MODEL_HPP

#include "../../artifact/reader.hpp"
#include "../../bounds/kernel_sums.hpp"
#include "../../exact/kinds.hpp"
#include "../../exact/rbf_subspace.hpp"
#include "../../exact/winner_engine.hpp"
#include "../../expansion/sparse.hpp"
#include "../../outputs/votes.hpp"
#include "../few_values/layout.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Returns in32 if Real is float, else in64.
template <class Real, class In32, class In64>
constexpr const auto& in(const In32& in32, const In64& in64) {
    if constexpr (sizeof(Real) == sizeof(float))
        return in32;
    else
        return in64;
}

struct PreparedModel {
    const ModelView* view;
    const float* basis;           // tables for degrees 2, 3, ... model.degree: (n_bases, n_cells, n_bound_terms)
    const float* weights;         // bound weights, (n_centers, n_forms, n_bound_terms)
    const double* bounds;         // all bounds for a single center, (n_bases, n_cells); else null
    const float* zeros;           // zeros for (n_features,) or (n_raw_features,)
    const double* map_gains;      // gains of the input map, from fill_map_gains
    const double* engine_center;  // the center or reference, (n_features,); null for zeros
    FoldedModel folded;
    Engine<float> exact32;
    Engine<double> exact64;
    WinnerEngine winner;  // the engine for the winner's pairs, with the support vectors of exact32
    FewValues few;        // the engine for few values, which replaces the others for rows on its grid
    Subspaces subspaces;
    const PreparedModel* subspace_expansion;  // expansion in the coordinates of the first subspace stage, or null
    double slope;                             // kernel_slope(gamma)
    double typical_float32_bound;             // typical bound of the float32 engine (engines.hpp)
    double largest_moduli;                    // maximum A1 of all decision functions
    bool at_reference, by_columns;            // results of engine_at_reference() and by_columns() for the view
    // data for a non-Gaussian kernel, instead of all of the above except zeros and map_gains
    const void* of_kind;
    const PreparedModel* const* members;   // members of an ensemble, which leaves its other fields unused
    const std::uint32_t* label_positions;  // indices of member labels in an ensemble of targets
};

// Returns whether rows remain sparse in the exact engine: the engine's center must be the row relative to which support
// vectors are stored, usually the origin. No accuracy is lost if the data are about as far from that row as from their
// mean; artifact writers ensure this, unless the row is the origin.
inline bool engine_at_reference(const ModelView& model) {
    return model.packed.compressed && (model.packed.reference || model.max_sv_norm_origin <= 2.0 * model.max_sv_norm);
}

// Returns whether the engine stores support vectors by column.
inline bool by_columns(const ModelView& model) {
    if (!is_gaussian(model)) return products_by_columns(model);
    return engine_at_reference(model) && are_few(model.packed.n_values, model.n_sv, model.n_features);
}

// Returns whether the engine for few values may be worthwhile (few_values/layout.hpp).
inline bool may_have_few_values(const ModelView& view) {
    return is_gaussian(view) && has_engines(view) && !by_columns(view) && has_small_dictionary(view) &&
           !has_several(view);
}

inline bool has_direction(const ModelView& model) {
    return model.direction != nullptr;
}
// Number of degrees after which evaluation may stop: 2, and every higher degree.
inline std::size_t n_bases(const ModelView& model) {
    return model.degree > 2 ? static_cast<std::size_t>(model.degree) - 1 : model.degree > 0 ? 1 : 0;
}

// Returns whether expansions at sparse rows are evaluated using only nonzeros: this requires a single center and a
// single decision function.
inline bool has_folded_center(const ModelView& model) {
    return model.n_centers == 1 && model.n_decisions == 1;
}
inline std::size_t values_by_columns(const ModelView& view) {
    return by_columns(view) ? view.packed.n_values : in_panels;
}
// Returns the sizes for one coefficient per function, plus a weight.
inline ClassSizes sizes_of_functions(const ModelView& view) {
    return {nullptr, view.n_sv, 1, view.n_decisions + 1};
}
inline ClassSizes sizes_of_sums(const ModelView& view) {
    return has_classes(view) ? sizes_of_classes(view) : sizes_of_functions(view);
}
template <class Real>
inline std::size_t engine_bytes(const ModelView& view) {
    return kernel_sums_bytes<Real>(sizes_of_sums(view), view.n_features, values_by_columns(view));
}

inline std::size_t n_zeros(const ModelView& view) {
    return (view.n_features > view.n_raw_features ? view.n_features : view.n_raw_features) + panel_rows;
}

inline bool has_class_engines(const ModelView& view) {
    return is_gaussian(view) && has_engines(view) && has_classes(view);
}
// Returns the data for the winner's engine; empty for models that have none.
inline PairCoefficients pair_coefficients(const ModelView& view) {
    if (!has_class_engines(view) || by_columns(view)) return {};
    return {view.dual_coef, view.class_counts, view.n_labels, view.n_sv};
}

// Returns the part of the bounds that depends only on the row, for all pairs.
inline ListedErrors winner_errors(const PreparedModel& model, double half_sq_norm, double row_error) {
    const ListedErrors listed = listed_errors(*model.winner.sums.kernels, half_sq_norm);
    if (!(listed.of_moduli < infinity)) return listed;
    const double rounded = 1.01 * 0.61 * 2.0 * unit32 * std::sqrt(2.0 * half_sq_norm), moved = model.slope * row_error;
    const double of_row = row_error == 0.0 ? 0.0 : moved < 1.0 ? moved : 1.0;
    return {listed.of_moduli, 1.0001 * (rounded + of_row + listed.of_all_moduli)};
}

// Returns the part of the bound that depends only on the pair of classes.
inline double winner_bound_of_pair(const PreparedModel& model, std::size_t w, std::size_t c,
                                   const DecisionNumbers& decision) {
    return 1.0001 * (model.exact32.narrowing_errors[w] + model.exact32.narrowing_errors[c] + decision.value_error) +
           0x1p-51 * std::fabs(decision.intercept) + 0x1p-1040;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

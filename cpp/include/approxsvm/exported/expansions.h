/* Expansions of Gaussian kernels around centers: all decision values with their bounds (backends/c99/expansions.py,
   device/bounds.py). Numbers, in addition to those of forms.h:

   model_n_group_panels_     panels of the router, if there are several centers; the router's rows are relative to
                             model_reference_
   model_has_slices_         if only the features model_varying_ differ between a center's vectors
   model_centers_            centers; each center and function has model_constants_, model_output_scales_, coefficients
                             (model_degree_1_, model_degree_2_, model_higher_), model_scales_ of integers by degree,
                             and a row of model_bounds_
   model_n_cells_            cells of s / 2 that have bounds, up to model_end_of_cells_; the index of a cell is
                             the bits of a float from model_cell_shift_ on, less model_first_cell_
   model_has_domain_         if the map may reject a row of finite numbers */
#include "float32.h"
#include "forms.h"

/* The column of model_bounds_ for half_s = s / 2. */
static inline int model_cell_(float half_s) {
    const uint32_t first = model_first_cell_;
    uint32_t cell;
    if (!(half_s < model_end_of_cells_)) return model_n_cells_ - 1;
    cell = approxsvm_bits_of_float(half_s) >> model_cell_shift_;
    return cell < first ? 0 : (int)(cell - first) + 1;
}

#if model_n_group_panels_
/* The target of the slot, in the panels first ... end - 1, whose point x is nearest to y: it has the smallest score
   ||x||^2 / 2 - x.y. The lowest eight bits of a score hold the panel's index. */
static inline int model_nearest_(int first, int end, const float y[]) {
    float best = FLT_MAX;
    int found = (int)model_panel_slots_[first], panel, slot, j;
    for (panel = first; panel < end; ++panel) {
        for (slot = (int)model_panel_slots_[panel]; slot < (int)model_panel_slots_[panel + 1]; ++slot) {
            const float* point = model_points_ + (int)model_slot_points_[slot] * (model_n_mapped_ + 1);
            float score = point[0];
            uint32_t bits;
            for (j = 0; j < model_n_mapped_; ++j) score += point[1 + j] * y[j];
            bits = (approxsvm_bits_of_float(score) & ~(uint32_t)0xFF) | (uint32_t)(panel - first);
            score = approxsvm_float_of_bits(bits);
            if (score < best) {
                best = score;
                found = slot;
            }
        }
    }
    return (int)model_slot_targets_[found];
}
static inline int model_center_(const float y[]) {
    const int group = model_nearest_(0, model_n_group_panels_, y);
    return model_nearest_((int)model_group_panels_[group], (int)model_group_panels_[group + 1], y);
}
#endif

#if model_has_slices_
/* Moves the varying features to the front; returns the squared distance from the center's slice, in scaled
   coordinates. */
static inline float model_keep_varying_(float u[]) {
    float off_sq = 0.0f;
    int j, kept = 0;
    for (j = 0; j < model_n_mapped_; ++j) {
        if (kept < model_n_varying_ && (int)model_varying_[kept] == j) {
            u[kept++] = u[j];
        } else {
            off_sq += u[j] * u[j];
        }
    }
    return off_sq;
}
/* An upper bound on sqrt(2 gamma) times the distance from the slice; infinite if it would be 1.415 or more. */
static inline float model_slice_distance_(float off_sq) {
    const float x = model_theta_above_ * off_sq;
    if (!(x < 2.0f)) return approxsvm_infinity32();
    return approxsvm_root_above(x, 1e-15f);
}
#endif

static inline double model_scaled_(float part, int e, int degree) {
#if model_is_quantized_
    return (double)(model_scales_[e * model_degree_ + degree - 1] * part);
#else
    (void)e, (void)degree;
    return (double)part;
#endif
}

/* The sum of the constant and of the homogeneous parts of all degrees in expansion e. */
static inline double model_inner_(int e, const float u[]) {
    const model_coefficient_* next = model_degree_1_ + e * model_n_varying_;
    double inner = model_constants_[e];
#if model_degree_ == 1
    inner += model_scaled_(model_linear_form_(next, u), e, 1);
#elif model_is_quantized_
    inner += model_scaled_(model_linear_form_(next, u), e, 1);
    next = (const model_coefficient_*)0;
#endif
#if model_degree_ >= 2
    inner += model_scaled_(model_quadratic_form_(model_degree_2_ + e * model_size_2_, next, model_n_varying_, u), e, 2);
#endif
#if model_degree_ >= 3
    next = model_higher_ + e * model_n_higher_;
    inner += model_scaled_(model_part_3_(&next, model_n_varying_, u), e, 3);
#endif
#if model_degree_ >= 4
    inner += model_scaled_(model_part_4_(&next, model_n_varying_, u), e, 4);
#endif
#if model_degree_ >= 5
    inner += model_scaled_(model_part_5_(&next, model_n_varying_, u), e, 5);
#endif
#if model_degree_ >= 6
    inner += model_scaled_(model_part_6_(&next, model_n_varying_, u), e, 6);
#endif
    return inner;
}

/* Computes all decision values and their bounds. For a row without values, stores NaN with infinite bounds and returns
   0. */
static inline int model_evaluate_(const model_row_ row[], double values[], float bounds[]) {
    float u[model_n_mapped_], half_s, gaussian, wrong = 0.0f;
    int center = 0, cell, j, k;
#if model_maps_rows_
    double x[model_n_widest_];
    const float moved = approxsvm_above(model_map_(row, x));
#else
    const model_row_* const x = row;
#endif
#if model_has_slices_
    float off_sq, distance;
#endif
#if model_has_map_ && !model_row_bits_ /* the map's comparisons with limits could hide NaN and infinity */
    wrong = model_not_finite_(row);
#endif
#if model_has_domain_
    for (j = 0; j < model_n_mapped_; ++j) wrong = x[j] == x[j] ? wrong : approxsvm_nan32();
#endif
#if model_n_group_panels_
    for (j = 0; j < model_n_mapped_; ++j) u[j] = model_coordinate_(x, j, model_reference_);
    center = model_center_(u);
#endif
    for (j = 0; j < model_n_mapped_; ++j) u[j] = model_coordinate_(x, j, model_centers_ + center * model_n_mapped_);
#if model_has_slices_
    off_sq = model_keep_varying_(u);
    distance = model_slice_distance_(off_sq);
#endif
    half_s = model_half_theta_ * model_sq_norm_(u);
#if !model_has_map_ && !model_row_bits_
    if (!(half_s <= FLT_MAX)) wrong = model_not_finite_(row);
#if model_has_slices_
    if (!(off_sq <= FLT_MAX)) wrong = model_not_finite_(row);
#endif
#endif
    if (!(wrong <= 0.0f)) {
        for (k = 0; k < model_n_values; ++k) {
            values[k] = (double)wrong;
            bounds[k] = approxsvm_infinity32();
        }
        return 0;
    }
    cell = model_cell_(half_s);
    gaussian = approxsvm_exp32(-half_s);
    for (k = 0; k < model_n_values; ++k) {
        const int e = center * model_n_values + k;
        const double scale = model_output_scales_[e] * (double)gaussian, inner = model_inner_(e, u);
        values[k] = model_intercepts_[k] + (scale > 0.0 ? scale * inner : 0.0);
        bounds[k] = approxsvm_float_of_bits((uint32_t)model_bounds_[e * model_n_cells_ + cell] << 16);
#if model_has_slices_
        bounds[k] = 1.00001f * (bounds[k] + model_totals_[k] * distance);
#endif
#if model_maps_rows_
        bounds[k] = 1.00001f * (bounds[k] + model_steepest_[k] * moved);
#endif
        if (model_is_saturated_(row)) bounds[k] = approxsvm_infinity32();
    }
    return 1;
}

/* Sums over terms, or polynomials of degree 2: all decision values with their bounds (backends/c99/sums.py). Numbers:

   model_n_terms_            number of terms; their vectors are in model_vectors_
   model_n_weights_          number of functions that contain a term, with weights model_weights_; terms up to
                             model_ends_[g] are in the functions model_places_
   model_exponent_           a term is t^exponent, where t is an inner product plus model_coef0_; or as defined by
                             model_is_tanh_, model_is_cos_ with model_phases_, or model_is_gaussian_; else t itself
   model_is_form_            polynomials instead of terms, in model_degree_1_ and model_degree_2_
   model_is_centered_        if rows are relative to model_centers_
   model_limit_sq_           rows with a larger sum of squares have no values
   model_majorants_          polynomials that bound a row's error; model_slopes_ bound the effect of moving the row;
                             the sum of bounds is at most model_most_, if model_has_most_ */
#include "../program/polynomial.h"
#include "float32.h"
#include "forms.h"

#if !model_is_form_
#if model_is_gaussian_
static inline double model_term_(const float x[], const float u[], int i) {
    float s[4];
    int j, k;
    (void)i;
    s[0] = s[1] = s[2] = s[3] = 0.0f;
    for (j = 0; j + 4 <= model_n_varying_; j += 4) {
        for (k = 0; k < 4; ++k) s[k] += (x[j + k] - u[j + k]) * (x[j + k] - u[j + k]);
    }
    for (; j < model_n_varying_; ++j) s[0] += (x[j] - u[j]) * (x[j] - u[j]);
    return (double)approxsvm_exp32(-model_half_theta_ * ((s[0] + s[1]) + (s[2] + s[3])));
}
#else
#include "../program/functions.h"
static inline double model_inner_product_(const float x[], const float u[]) {
    float s[4];
    int j, k;
    s[0] = s[1] = s[2] = s[3] = 0.0f;
    for (j = 0; j + 4 <= model_n_varying_; j += 4) {
        for (k = 0; k < 4; ++k) s[k] += x[j + k] * u[j + k];
    }
    for (; j < model_n_varying_; ++j) s[0] += x[j] * u[j];
    return (double)((s[0] + s[1]) + (s[2] + s[3]));
}
/* Term i of the sum; its vector is x. */
static inline double model_term_(const float x[], const float u[], int i) {
    const double t = model_inner_product_(x, u);
    (void)i;
#if model_exponent_
    return approxsvm_powered(t + model_coef0_, model_exponent_);
#elif model_is_tanh_
    return approxsvm_tanh(t + model_coef0_);
#elif model_is_cos_
    return approxsvm_cos(t + model_phases_[i]);
#else
    return t;
#endif
}
#endif
#endif

/* Multiplies every term by its coefficients, and adds the products to the functions that contain it. */
static inline void model_sums_(const float u[], double values[]) {
#if model_is_form_
    int k;
    for (k = 0; k < model_n_values; ++k) {
        const float* const l = model_degree_1_ + k * model_n_varying_;
        values[k] += (double)model_quadratic_form_(model_degree_2_ + k * model_size_2_, l, model_n_varying_, u);
    }
#else
    const float *x = model_vectors_, *weight = model_weights_;
    int group = 0, i, k;
    for (i = 0; i < model_n_terms_; ++i, x += model_n_varying_, weight += model_n_weights_) {
        const double term = model_term_(x, u, i);
        while (i == (int)model_ends_[group]) ++group;
        for (k = 0; k < model_n_weights_; ++k) {
            values[(int)model_places_[group * model_n_weights_ + k]] += (double)weight[k] * term;
        }
    }
#endif
}

static inline float model_limited_(float bound, int k) {
#if model_has_most_
    return bound < model_most_[k] ? bound : model_most_[k];
#else
    (void)k;
    return bound >= 0.0f ? bound : approxsvm_infinity32();
#endif
}

/* Loads a row in float32; rounding moves the row by at most *moved. Returns the row's sum of squares. */
static inline float model_load_(const model_row_ row[], float u[], float* moved) {
    int j;
#if model_maps_rows_
    double x[model_n_widest_];
    *moved = approxsvm_above(model_map_(row, x)) + model_moved_;
#else
    const model_row_* const x = row;
    *moved = model_moved_;
#endif
    for (j = 0; j < model_n_mapped_; ++j) {
#if model_is_centered_
        u[j] = model_coordinate_(x, j, model_centers_);
#elif model_maps_rows_
        u[j] = approxsvm_narrowed(x[j]);
#else
        u[j] = model_raw_(x, j);
#endif
    }
#if model_has_map_ && !model_row_bits_
    return model_sq_norm_(u) + model_not_finite_(row);
#else
    return model_sq_norm_(u);
#endif
}

/* Computes all decision values and their bounds. For a row without values, stores NaN with infinite bounds and returns
   0. */
static inline int model_evaluate_(const model_row_ row[], double values[], float bounds[]) {
    float u[model_n_mapped_], moved, reach = model_load_(row, u, &moved);
    const int is_saturated = model_is_saturated_(row);
    int k;
    for (k = 0; k < model_n_values; ++k) {
        values[k] = (double)approxsvm_nan32();
        bounds[k] = approxsvm_infinity32();
    }
    if (!(reach <= model_limit_sq_)) return 0;
    reach = approxsvm_root_above(reach, 2e-15f);
    for (k = 0; k < model_n_values; ++k) values[k] = 0.0;
    model_sums_(u, values);
    for (k = 0; k < model_n_values; ++k) {
        const float* const slopes = model_slopes_ + k * model_n_slope_;
        const float slope = approxsvm_polynomial_above(slopes, model_n_slope_, reach + moved);
        const float own =
            approxsvm_polynomial_above(model_majorants_ + k * model_n_majorant_, model_n_majorant_, reach);
        values[k] += model_intercepts_[k];
        bounds[k] = model_limited_(1.00001f * (own + slope * moved), k);
        if (is_saturated) bounds[k] = approxsvm_infinity32();
    }
    return 1;
}

/* Sums over terms in exported headers. `model` stands for the name of the header, and each part is taken where a model
   needs it (backends/c99/program.py). A model has one model_term_(), for term i with the vector x. */

#ifdef MODEL_PRODUCT
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
#endif

#ifdef MODEL_LINEAR_TERM
static inline double model_term_(const float x[], const float u[], int i) {
    (void)i;
    return model_inner_product_(x, u);
}
#endif

#ifdef MODEL_POWER_TERM
static inline double model_term_(const float x[], const float u[], int i) {
    (void)i;
    return approxsvm_powered(model_inner_product_(x, u) + model_coef0_, model_power_);
}
#endif

#ifdef MODEL_SIGMOID_TERM
static inline double model_term_(const float x[], const float u[], int i) {
    (void)i;
    return approxsvm_tanh(model_inner_product_(x, u) + model_coef0_);
}
#endif

#ifdef MODEL_COS_TERM
static inline double model_term_(const float x[], const float u[], int i) {
    return approxsvm_cos(model_inner_product_(x, u) + model_phases_[i]);
}
#endif

#ifdef MODEL_GAUSSIAN_TERM
static inline double model_term_(const float x[], const float u[], int i) {
    float s[4];
    int j, k;
    (void)i;
    s[0] = s[1] = s[2] = s[3] = 0.0f;
    for (j = 0; j + 4 <= model_n_varying_; j += 4) {
        for (k = 0; k < 4; ++k) s[k] += (x[j + k] - u[j + k]) * (x[j + k] - u[j + k]);
    }
    for (; j < model_n_varying_; ++j) s[0] += (x[j] - u[j]) * (x[j] - u[j]);
    return (double)model_exp32_(-model_half_theta_ * ((s[0] + s[1]) + (s[2] + s[3])));
}
#endif

#ifdef MODEL_SUMS
/* Adds every term times its coefficients to the functions that it takes part in. */
static inline void model_sums_(const float u[], double values[]) {
    const float *x = model_vectors_, *weight = model_weights_;
    int group = 0, i, k;
    for (i = 0; i < model_n_terms_; ++i, x += model_n_varying_, weight += model_n_weights_) {
        const double term = model_term_(x, u, i);
        while (i == (int)model_ends_[group]) ++group;
        for (k = 0; k < model_n_weights_; ++k) {
            values[(int)model_places_[group * model_n_weights_ + k]] += (double)weight[k] * term;
        }
    }
}
#endif

#ifdef MODEL_LIMITED
static inline float model_limited_(float bound, int k) {
    return bound < model_most_[k] ? bound : model_most_[k];
}
#endif

#ifdef MODEL_UNLIMITED
static inline float model_limited_(float bound, int k) {
    (void)k;
    return bound >= 0.0f ? bound : approxsvm_infinity32();
}
#endif

#ifdef MODEL_LOAD
/* Loads a row in float32, and returns the sum of its squares. */
static inline float model_load_(const model_ROW row[], float u[], float* moved) {
    model_DECLARED;
    int j;
    *moved = model_MOVED;
    for (j = 0; j < model_n_mapped_; ++j) u[j] = model_LOADED;
    model_RETURNED;
}
#endif

#ifdef MODEL_NEVER_SATURATED
static inline int model_is_saturated_(const model_ROW row[]) {
    (void)row;
    return 0;
}
#endif

#ifdef MODEL_EVALUATE
/* All decision values and their bounds; 0 for model_STRANGE: NaN, with infinite bounds. */
static inline int model_evaluate_(const model_ROW row[], double values[], float bounds[]) {
    float u[model_n_mapped_], moved, reach = model_load_(row, u, &moved);
    const int is_saturated = model_is_saturated_(row);
    int k;
    for (k = 0; k < model_n_values; ++k) {
        values[k] = (double)approxsvm_nan32();
        bounds[k] = approxsvm_infinity32();
    }
    if (!(reach <= model_limit_sq_)) return 0;
    reach = model_root_above_(reach);
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
#endif

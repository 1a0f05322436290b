/* Sums over support vectors on a grid of few values per feature: all decision values with their bounds
   (backends/c99/few_values.py). Numbers:

   model_n_terms_            support vectors; the codes of a vector, of model_step_bits_ bits and at most
                             model_largest_step_, are packed into model_n_words_ words, model_per_word_ per word
   model_origin_             origin of the grid; model_per_step_ converts to steps; code 0 of feature j is
                             model_lowest_[j] steps from the origin
   model_kernels_            kernel values by squared distance, up to model_n_kernels_
   model_weights_            weights, with model_ends_ and model_places_ as in sums.h
   model_majorants_          bounds for rows on the grid; model_slopes_ multiply the distance of rows from the grid,
                             and model_besides_ are for rows off the grid; no bound is above model_most_ */
#include "float32.h"

/* The squared distance between two rows, in steps. With one bit per code, it is the number of differing bits. With two
   bits, 16 features are processed at a time: |a - b| = 2 high + low, whose square is low + 4 high + 4 high low; a
   borrow clears high, as in 2 - 1 = 1. Otherwise, the distance is summed feature by feature. */
static inline int model_sq_steps_(const uint32_t a[], const uint32_t b[]) {
#if model_step_bits_ == 1
    uint32_t sum = 0;
    int w;
    for (w = 0; w < model_n_words_; ++w) {
        uint32_t x = a[w] ^ b[w];
        x -= x >> 1 & 0x55555555u;
        x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
        sum += ((x + (x >> 4)) & 0x0F0F0F0Fu) * 0x01010101u >> 24;
    }
    return (int)sum;
#elif model_step_bits_ == 2
    uint32_t sum = 0;
    int w;
    for (w = 0; w < model_n_words_; ++w) {
        const uint32_t x = a[w] ^ b[w], low = x & 0x55555555u;
        const uint32_t high = x >> 1 & ~(low & (a[w] ^ a[w] >> 1)) & 0x55555555u;
        uint32_t ones = (low & 0x33333333u) + (low >> 2 & 0x33333333u), fours = high + (high & low);
        fours = (fours & 0x33333333u) + (fours >> 2 & 0x33333333u);
        ones = (ones + (ones >> 4)) & 0x0F0F0F0Fu;
        fours = (fours + (fours >> 4)) & 0x0F0F0F0Fu;
        sum += (ones + 4u * fours) * 0x01010101u >> 24;
    }
    return (int)sum;
#else
    int sum = 0, w;
    for (w = 0; w < model_n_words_; ++w) {
        uint32_t x = a[w], y = b[w];
        for (; x != y; x >>= model_step_bits_, y >>= model_step_bits_) {
            const int steps = (int)(x & (uint32_t)model_largest_step_) - (int)(y & (uint32_t)model_largest_step_);
            sum += steps * steps;
        }
    }
    return sum;
#endif
}

/* The squared distance, in steps, between a row off the grid and a support vector. */
static inline float model_sq_distance_(const float z[], const uint32_t b[]) {
    float s[4];
    int j;
    s[0] = s[1] = s[2] = s[3] = 0.0f;
    for (j = 0; j < model_n_mapped_; ++j) {
        const float t = z[j] - (float)(b[j / model_per_word_] >> j % model_per_word_ * model_step_bits_ &
                                       (uint32_t)model_largest_step_);
        s[j % 4] += t * t;
    }
    return (s[0] + s[1]) + (s[2] + s[3]);
}

/* Computes all decision values and their bounds. For a row without values, stores NaN with infinite bounds and returns
   0. */
static inline int model_evaluate_(const model_row_ row[], double values[], float bounds[]) {
#if model_maps_rows_
    double x[model_n_widest_];
    const float moved = approxsvm_above(model_map_(row, x) * model_per_step_);
#else
    const float *const x = row, moved = 0.0f;
#endif
    uint32_t codes[model_n_words_];
    const uint32_t* words = model_words_;
    const float* weight = model_weights_;
    double beside = 0.0, sq_length = 0.0;
    float z[model_n_mapped_], length, reach;
    int group = 0, is_beside, i, j, k;
    for (k = 0; k < model_n_values; ++k) {
        values[k] = (double)approxsvm_nan32();
        bounds[k] = approxsvm_infinity32();
    }
#if model_has_map_
    if (model_not_finite_(row) != 0.0f) return 0;
#endif
    for (j = 0; j < model_n_words_; ++j) codes[j] = 0;
    for (j = 0; j < model_n_mapped_; ++j) {
        const double steps = ((double)x[j] - model_origin_) * model_per_step_ - (double)model_lowest_[j];
        double code = 0.0;
        if (!(steps > -1125899906842624.0 && steps < 1125899906842624.0)) return 0;
        if (steps >= 0.5)
            code = steps < (double)model_largest_step_ ? (double)(int)(steps + 0.5) : (double)model_largest_step_;
        z[j] = (float)steps;
        sq_length += steps * steps;
        beside += (steps - code) * (steps - code);
        codes[j / model_per_word_] |= (uint32_t)code << j % model_per_word_ * model_step_bits_;
    }
    length = approxsvm_root_above(approxsvm_above(sq_length), 2e-15f);
    reach = beside > 0.0 ? approxsvm_root_above(approxsvm_above(beside), 2e-15f) : 0.0f;
    is_beside = model_slopes_[0] * reach > model_besides_[0] + model_besides_[1] * length;
    reach = (is_beside ? 0.0f : reach) + moved;
    for (k = 0; k < model_n_values; ++k) values[k] = 0.0;
    for (i = 0; i < model_n_terms_; ++i, words += model_n_words_, weight += model_n_weights_) {
        const int h = is_beside ? 0 : model_sq_steps_(codes, words);
        float kernel;
        while (i == (int)model_ends_[group]) ++group;
        if (is_beside) {
            kernel = approxsvm_exp32(model_minus_g_ * model_sq_distance_(z, words));
        } else if (h < model_n_kernels_) {
            kernel = model_kernels_[h];
        } else {
            continue;
        }
        for (k = 0; k < model_n_weights_; ++k) {
            values[(int)model_places_[group * model_n_weights_ + k]] += (double)weight[k] * (double)kernel;
        }
    }
    for (k = 0; k < model_n_values; ++k) {
        const float own = is_beside ? model_besides_[2 * k] + model_besides_[2 * k + 1] * length : model_majorants_[k];
        const float bound = 1.00001f * (own + model_slopes_[k] * reach);
        values[k] += model_intercepts_[k];
        bounds[k] = bound < model_most_[k] ? bound : model_most_[k];
    }
    return 1;
}

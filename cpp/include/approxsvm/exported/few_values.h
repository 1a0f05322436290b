/* Sums over support vectors on a grid with few values, in exported headers. `model` is a placeholder for the header's
   name, and a header contains only the parts that its model needs (backends/c99/program.py). */

#ifdef MODEL_BITS
/* The squared distance of two rows in steps: the number of different bits. */
static inline int model_sq_steps_(const uint32_t a[], const uint32_t b[]) {
    uint32_t sum = 0;
    int w;
    for (w = 0; w < model_n_words_; ++w) {
        uint32_t x = a[w] ^ b[w];
        x -= x >> 1 & 0x55555555u;
        x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
        sum += ((x + (x >> 4)) & 0x0F0F0F0Fu) * 0x01010101u >> 24;
    }
    return (int)sum;
}
#endif

#ifdef MODEL_PAIRS_OF_BITS
/* The squared distance of two rows in steps, 16 features at a time. */
static inline int model_sq_steps_(const uint32_t a[], const uint32_t b[]) {
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
}
#endif

#ifdef MODEL_CODES
/* The squared distance of two rows in steps. */
static inline int model_sq_steps_(const uint32_t a[], const uint32_t b[]) {
    int sum = 0, w;
    for (w = 0; w < model_n_words_; ++w) {
        uint32_t x = a[w], y = b[w];
        for (; x != y; x >>= model_code_bits_, y >>= model_code_bits_) {
            const int steps = (int)(x & (uint32_t)model_largest_code_) - (int)(y & (uint32_t)model_largest_code_);
            sum += steps * steps;
        }
    }
    return sum;
}
#endif

#ifdef MODEL_SQ_DISTANCE
/* The squared distance of a row that is not on the grid. */
static inline float model_sq_distance_(const float z[], const uint32_t b[]) {
    float s[4];
    int j;
    s[0] = s[1] = s[2] = s[3] = 0.0f;
    for (j = 0; j < model_n_mapped_; ++j) {
        const float t = z[j] - (float)(b[j / model_per_word_] >> j % model_per_word_ * model_code_bits_ &
                                       (uint32_t)model_largest_code_);
        s[j % 4] += t * t;
    }
    return (s[0] + s[1]) + (s[2] + s[3]);
}
#endif

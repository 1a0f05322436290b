/* String codes. model_categories holds the strings for each of the columns model_text_columns_, in byte order, from
   model_text_starts_ on; model_nulls_ states in which columns a missing value is a separate category. */

/* Returns the number that represents a string (UTF-8, terminated by 0) in a string column of a row, or -1 for a string
   that the model does not know. A null pointer is a missing value. */
static inline float model_category_code(int column, const char* text) {
    int i, k;
    for (i = 0; i < model_n_text_columns_; ++i) {
        int low = model_text_starts_[i], n = model_text_starts_[i + 1] - low;
        if (model_text_columns_[i] != column) continue;
        if (!text) return model_nulls_[i] ? -2.0f : approxsvm_nan32();
        while (n > 0) {
            const int half = n / 2;
            const char* const known = model_categories[low + half];
            for (k = 0; known[k] != 0 && known[k] == text[k]; ++k) {
            }
            if (known[k] == text[k]) return (float)(low + half - model_text_starts_[i]);
            if ((unsigned char)known[k] < (unsigned char)text[k]) {
                low += half + 1;
                n -= half + 1;
            } else {
                n = half;
            }
        }
    }
    return -1.0f;
}

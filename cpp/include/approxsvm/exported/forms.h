/* Quadratic forms and norms of up to model_n_varying_ coordinates. The order of additions suits processors without SIMD
   and differs from the core's. The core (expansion/polynomial.hpp) keeps eight lanes separate until the end, which
   without SIMD could take eight products instead of one. Chains of additions are no longer than the core's form_depth()
   and norm_depth() (bounds/certificate.hpp), as assumed by the bounds; tests/backends/test_c_paths.py counts them.
   Numbers:

   model_degree_             degree of the expansions; their coefficients are integers if model_is_quantized_ */

static inline float model_sq_norm_(const float u[]) {
#if model_degree_ == 1
    float sum = 0.0f;
    int j;
    for (j = 0; j < model_n_varying_; ++j) sum += u[j] * u[j];
    return sum;
#else
    const int n = model_n_varying_, whole = n - n % 8;
    float norm = 0.0f;
    int lane, j;
    for (lane = 0; lane < 8; ++lane) {
        float sum = 0.0f;
        for (j = lane; j < whole; j += 8) sum += u[j] * u[j];
        norm += sum;
    }
    for (j = whole; j < n; ++j) norm += u[j] * u[j];
    return norm;
#endif
}

#if model_degree_ == 1 || model_is_quantized_
static inline float model_linear_form_(const model_coefficient_* l, const float u[]) {
    float form = 0.0f;
    int j;
    for (j = 0; j < model_n_varying_; ++j) form += (float)l[j] * u[j];
    return form;
}
#endif

#if model_degree_ >= 2 || model_is_form_
/* Returns sum_j l_j u_j + sum over i <= j of q_ij u_i u_j. The array q is stored in panels of eight rows; l may be
   null. */
static inline float model_quadratic_form_(const model_coefficient_* q, const model_coefficient_* l, int n,
                                          const float u[]) {
    const int whole = n - n % 8, rest = n - whole;
    float form = 0.0f;
    int lane, first, i, j, k;
    for (lane = 0; lane < 8 && n >= 8; ++lane) {
        const model_coefficient_* panel = q + lane;
        float total = 0.0f;
        for (first = 0; first + 8 <= n; first += 8) {
            float s0 = l ? (float)l[first + lane] : 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f;
            for (k = 0; k < 8; k += 4) {
                const float* x = u + first + k;
                if (k >= lane) s0 += (float)panel[k * (k + 1) / 2] * x[0];
                if (k + 1 >= lane) s1 += (float)panel[(k + 1) * (k + 2) / 2] * x[1];
                if (k + 2 >= lane) s2 += (float)panel[(k + 2) * (k + 3) / 2] * x[2];
                if (k + 3 >= lane) s3 += (float)panel[(k + 3) * (k + 4) / 2] * x[3];
            }
            panel += 36;
            for (j = first + 8; j + 4 <= n; j += 4, panel += 32) {
                s0 += (float)panel[0] * u[j];
                s1 += (float)panel[8] * u[j + 1];
                s2 += (float)panel[16] * u[j + 2];
                s3 += (float)panel[24] * u[j + 3];
            }
            for (; j < n; ++j, panel += 8) s0 += (float)panel[0] * u[j];
            total += u[first + lane] * ((s0 + s1) + (s2 + s3));
        }
        form += total;
    }
    q += n * (n + 1) / 2 - rest * (rest + 1) / 2;
    for (i = 0; i < rest; ++i) {
        float sum = l ? (float)l[whole + i] : 0.0f;
        for (k = i; k < rest; ++k) sum += (float)q[k * (k + 1) / 2 + i] * u[whole + k];
        form += u[whole + i] * sum;
    }
    return form;
}
#endif

#if model_degree_ >= 3
/* Homogeneous polynomials, sum_i u_i part(u_i ...). The pointer *next is moved past the coefficients read. */
static inline float model_part_2_(const model_coefficient_** next, int n, const float u[]) {
    const model_coefficient_* const q = *next;
    *next += n * (n + 1) / 2;
    return model_quadratic_form_(q, (const model_coefficient_*)0, n, u);
}

static inline float model_part_3_(const model_coefficient_** next, int n, const float u[]) {
    float total = 0.0f;
    int i;
    for (i = 0; i < n; ++i) total += u[i] * model_part_2_(next, n - i, u + i);
    return total;
}
#endif

#if model_degree_ >= 4
static inline float model_part_4_(const model_coefficient_** next, int n, const float u[]) {
    float total = 0.0f;
    int i;
    for (i = 0; i < n; ++i) total += u[i] * model_part_3_(next, n - i, u + i);
    return total;
}
#endif

#if model_degree_ >= 5
static inline float model_part_5_(const model_coefficient_** next, int n, const float u[]) {
    float total = 0.0f;
    int i;
    for (i = 0; i < n; ++i) total += u[i] * model_part_4_(next, n - i, u + i);
    return total;
}
#endif

#if model_degree_ >= 6
static inline float model_part_6_(const model_coefficient_** next, int n, const float u[]) {
    float total = 0.0f;
    int i;
    for (i = 0; i < n; ++i) total += u[i] * model_part_5_(next, n - i, u + i);
    return total;
}
#endif

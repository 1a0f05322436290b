/* model: a kernel machine for classification, compiled by approxsvm.
 *
 * Source: sums of 6: sklearn SVC; 148 support vectors. Artifact: mode approximate, checksum ed6f5f26. Here: degree 2, 1
 * center; linear. Coefficients: float32.
 * Plan: one center of degree 2, as asked for or by default | the kernel is linear and summed up without error, so there
 * is nothing to approximate
 * Made by export_c('model.h', name='model', coefficients='float32').
 *
 * Promised: |value - exact value| never exceeds the bound, the exact value being that of the source's decision function
 * over the real numbers at the float32 row as given; where is_certain says 1, that is proven to give the same label. No
 * memory but the stack, nothing of libc.
 * With -ffp-contract=off every processor gives the same values, bit for bit. approxsvm's own are sums in another order:
 * both lie within their bounds. Bounds hold in any case.
 * Constants: 4042 bytes; stack: about 564 bytes; multiply-adds per row: 162.
 */

#ifndef model_APPROXSVM_H
#define model_APPROXSVM_H

#include <float.h>
#include <stdint.h>

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__) || \
    defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__)
#error "this model needs IEEE arithmetic with NaN and infinities: compile without -ffast-math and each of its parts"
#endif
#if !defined(FLT_EVAL_METHOD) || (FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16) /* 16: of _Float16 alone */
#error "this model needs float arithmetic that is float's own: FLT_EVAL_METHOD 0 (on x86 -msse2 -mfpmath=sse)"
#endif
#if FLT_MANT_DIG != 24 || FLT_MAX_EXP != 128 || DBL_MANT_DIG != 53
#error "this model needs float and double of 32 and 64 bits, IEEE 754"
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

typedef char model_int_has_32_bits_[sizeof(int) >= 4 ? 1 : -1];
typedef char model_literals_are_double_[sizeof(1.0) == sizeof(double) ? 1 : -1];
static inline float model_float_of_(uint32_t bits) {
#if defined(__cplusplus) && defined(__GNUC__)
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
#else
    union {
        uint32_t bits;
        float x;
    } same;
    same.bits = bits;
    return same.x;
#endif
}
static inline uint32_t model_bits_of_(float x) {
#if defined(__cplusplus) && defined(__GNUC__)
    uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
#else
    union {
        uint32_t bits;
        float x;
    } same;
    same.x = x;
    return same.bits;
#endif
}

static inline double model_modulus_(double x) { return x < 0.0 ? -x : x; }

/* exp(x) within 1.5 ULP for -87.33 <= x <= 0: x = n ln 2 + r, n ln 2 in two parts, a polynomial in r. */
static inline float model_exp_(float x) {
    const float shift = 12582912.0f;
    float shifted, n, p;
    x = x > -87.33f ? x : -87.33f;
    shifted = x * 1.44269504f + shift;
    n = shifted - shift;
    x = n * -0.693359375f + x;
    x = n * 2.12194440e-4f + x;
    p = 0x1.6a23d0p-10f * x + 0x1.123a20p-7f;
    p = p * x + 0x1.5558f2p-5f;
    p = p * x + 0x1.555492p-3f;
    p = p * x + 0x1.fffffcp-2f;
    p = (x * x) * p + x;
    return (p + 1.0f) * model_float_of_((model_bits_of_(shifted) << 23) + 0x3F800000u);
}

static inline float model_narrowed_(double x) { return x > -1e19 && x < 1e19 ? (float)x : 1e19f; }
static inline float model_above_(double error) {
    return error < 1e37 ? (float)(error * 1.000001) + 1e-37f : model_float_of_(0x7F800000u);
}

static inline double model_double_of_(uint64_t bits) {
#if defined(__cplusplus) && defined(__GNUC__)
    double x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
#else
    union {
        uint64_t bits;
        double x;
    } same;
    same.bits = bits;
    return same.x;
#endif
}
/* exp(x), relatively within 2^-48; that of -708 or 708 beyond these. x = n ln 2 + r, exp(r) by its series. */
static inline double model_exp64_(double x) {
    const double shift = 6755399441055744.0;
    double n, r, sum;
    int k;
    x = x > -708.0 ? x : -708.0;
    x = x < 708.0 ? x : 708.0;
    n = (x * 1.4426950408889634 + shift) - shift;
    r = x - n * 0x1.62e42fee00000p-1;
    r = r - n * 0x1.a39ef35793c76p-33;
    sum = 1.0;
    for (k = 14; k > 0; --k) sum = 1.0 + sum * r / (double)k;
    return sum * model_double_of_((uint64_t)((int)n + 1023) << 52);
}

enum {
    model_n_features = 3,
    model_n_values = 3,
    model_n_labels = 3
};

static const char *const model_labels[3] = {
    "a",
    "b",
    "c"};

enum {
    model_member_0_n_features = 3,
    model_member_0_n_values = 3,
    model_member_0_n_labels = 3,
    model_member_0_n_mapped_ = 3,
    model_member_0_n_used_ = 3,
    model_member_0_n_varying_ = 3,
    model_member_0_first_cell_ = 936,
    model_member_0_cell_shift_ = 20,
    model_member_0_n_cells_ = 138,
    model_member_0_size_1_ = 3,
    model_member_0_size_2_ = 6
};

static const float model_member_0_centers_[3] = {
    -0.16998668f, -0.033038698f, 0.06416223f};

static const double model_member_0_intercepts_[3] = {
    -0.06869889689561351, -0.38451096802005685, -0.2546460841783059};

static const double model_member_0_constants_[3] = {
    -0.0018411011709057257, -0.40473999077164136, -0.3528366868591476};

static const double model_member_0_output_scales_[3] = {
    2.0, 2.0, 2.0};

static const float model_member_0_degree_1_[9] = {
    0.66255516f, 0.62327975f, -0.14624035f, 0.5614793f, 0.76157415f, 0.0856114f, -0.7222581f, -0.77613026f, 0.105361365f};

static const float model_member_0_degree_2_[18] = {
    0.09659861f, 0.018244686f, 0.06875121f, 0.013065824f, -0.056349672f, -0.18669873f, 0.02790991f, 0.7221289f,
    0.23931263f, -0.16997682f, 0.25556847f, -0.1976469f, -0.13800952f, 0.96787995f, 0.19571888f, 0.085740946f,
    -0.2087422f, -0.04683601f};

static const uint16_t model_member_0_bounds_[414] = {
    14377, 14409, 14444, 14472, 14491, 14511, 14531, 14553, 14575, 14607, 14631, 14657, 14684, 14712, 14731, 14746,
    14762, 14794, 14829, 14857, 14876, 14896, 14917, 14938, 14961, 14992, 15017, 15043, 15070, 15098, 15116, 15131,
    15147, 15181, 15216, 15243, 15262, 15282, 15303, 15325, 15348, 15378, 15403, 15429, 15456, 15485, 15502, 15517,
    15533, 15566, 15602, 15628, 15647, 15667, 15688, 15709, 15732, 15761, 15786, 15811, 15838, 15865, 15883, 15897,
    15912, 15943, 15975, 16005, 16022, 16039, 16057, 16075, 16094, 16130, 16149, 16168, 16187, 16206, 16225, 16244,
    16259, 16277, 16295, 16311, 16326, 16340, 16353, 16365, 16376, 16389, 16396, 16401, 16404, 16405, 16405, 16405,
    16403, 16402, 16395, 16386, 16371, 16354, 16338, 16325, 16314, 16305, 16293, 16285, 16281, 16279, 16278, 16278,
    16277, 16277, 16277, 16277, 16277, 16277, 16277, 16277, 16277, 16277, 16277, 16277, 16277, 16277, 16277, 16277,
    16277, 16277, 16277, 16277, 16277, 16277, 16277, 16277, 16277, 16476, 14370, 14400, 14432, 14465, 14483, 14502,
    14521, 14541, 14562, 14599, 14622, 14646, 14671, 14698, 14723, 14737, 14752, 14783, 14816, 14850, 14868, 14887,
    14907, 14927, 14948, 14985, 15008, 15033, 15059, 15087, 15110, 15124, 15140, 15172, 15206, 15237, 15256, 15276,
    15296, 15317, 15339, 15373, 15397, 15423, 15450, 15479, 15498, 15514, 15529, 15563, 15598, 15626, 15645, 15665,
    15686, 15708, 15730, 15761, 15786, 15812, 15839, 15867, 15884, 15899, 15914, 15946, 15979, 16007, 16025, 16043,
    16062, 16080, 16100, 16133, 16153, 16173, 16193, 16213, 16232, 16252, 16264, 16282, 16300, 16316, 16331, 16346,
    16359, 16370, 16381, 16392, 16398, 16402, 16404, 16405, 16405, 16404, 16402, 16400, 16392, 16380, 16361, 16343,
    16327, 16313, 16301, 16292, 16279, 16272, 16268, 16265, 16264, 16264, 16264, 16263, 16263, 16263, 16263, 16263,
    16263, 16263, 16263, 16263, 16263, 16263, 16263, 16263, 16263, 16263, 16263, 16263, 16263, 16263, 16263, 16263,
    16263, 16263, 16263, 16501, 14387, 14421, 14457, 14480, 14500, 14520, 14542, 14564, 14588, 14614, 14640, 14667,
    14696, 14723, 14738, 14754, 14771, 14806, 14842, 14865, 14885, 14906, 14929, 14952, 14975, 15001, 15027, 15055,
    15085, 15110, 15126, 15142, 15159, 15195, 15233, 15253, 15274, 15296, 15320, 15343, 15364, 15390, 15418, 15447,
    15478, 15499, 15516, 15533, 15551, 15588, 15622, 15643, 15665, 15688, 15712, 15736, 15753, 15780, 15808, 15837,
    15867, 15886, 15902, 15919, 15936, 15972, 16005, 16025, 16044, 16065, 16086, 16107, 16128, 16150, 16172, 16194,
    16216, 16238, 16258, 16269, 16279, 16299, 16318, 16336, 16353, 16368, 16382, 16389, 16395, 16404, 16411, 16416,
    16418, 16419, 16419, 16418, 16416, 16414, 16407, 16397, 16388, 16374, 16358, 16344, 16332, 16323, 16310, 16303,
    16298, 16296, 16295, 16295, 16294, 16294, 16294, 16294, 16294, 16294, 16294, 16294, 16294, 16294, 16294, 16294,
    16294, 16294, 16294, 16294, 16294, 16294, 16294, 16294, 16294, 16294, 16294, 16294, 16294, 16524};

static inline float model_member_0_raw_(const float row[], int j) { return row[j]; }
/* 0 for a row whose numbers are finite where they are used, else NaN. */
static inline float model_member_0_not_finite_(const float row[]) {
    float sum = 0.0f;
    int j;
    for (j = 0; j < model_member_0_n_used_; ++j) sum += row[j] - row[j];
    return sum;
}

/* The cell of half_s = s / 2 that model_member_0_bounds_ has a number for. */
static inline int model_member_0_cell_(float half_s) {
    const uint32_t first = model_member_0_first_cell_;
    uint32_t cell;
    if (!(half_s < 128.0f)) return model_member_0_n_cells_ - 1;
    cell = model_bits_of_(half_s) >> model_member_0_cell_shift_;
    return cell < first ? 0 : (int)(cell - first) + 1;
}

static inline float model_member_0_sq_norm_(const float u[]) {
    const int n = model_member_0_n_varying_, whole = n - n % 8;
    float norm = 0.0f;
    int lane, j;
    for (lane = 0; lane < 8; ++lane) {
        float sum = 0.0f;
        for (j = lane; j < whole; j += 8) sum += u[j] * u[j];
        norm += sum;
    }
    for (j = whole; j < n; ++j) norm += u[j] * u[j];
    return norm;
}

/* sum_j l_j u_j + sum over i <= j of q_ij u_i u_j; q is in panels of eight rows, l may be null. */
static inline float model_member_0_quadratic_form_(const float *q, const float *l, int n, const float u[]) {
    const int whole = n - n % 8, rest = n - whole;
    float form = 0.0f;
    int lane, first, i, j, k;
    for (lane = 0; lane < 8 && n >= 8; ++lane) {
        const float *panel = q + lane;
        float total = 0.0f;
        for (first = 0; first + 8 <= n; first += 8) {
            float s0 = l ? (float)l[first + lane] : 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f;
            for (k = 0; k < 8; k += 4) {
                const float *x = u + first + k;
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

static inline float model_member_0_coordinate_(const float row[], int j, const float center[]) {
    return (model_member_0_raw_(row, j) - center[j]) * 1.0f;
}

/* All decision values and their bounds; 0 for a row that is not finite: NaN, with infinite bounds. */
static inline int model_member_0_evaluate_(const float row[], double values[], float bounds[]) {
    float u[model_member_0_n_mapped_], half_s, gaussian;
    int center = 0, cell, j, k;
    float wrong = 0.0f;
    for (j = 0; j < model_member_0_n_mapped_; ++j) u[j] = model_member_0_coordinate_(row, j, model_member_0_centers_ + center * model_member_0_n_mapped_);
    half_s = 0.5f * model_member_0_sq_norm_(u);
    if (!(half_s <= FLT_MAX)) wrong = model_member_0_not_finite_(row);
    if (!(wrong <= 0.0f)) {
        for (k = 0; k < model_member_0_n_values; ++k) {
            values[k] = (double)wrong;
            bounds[k] = model_float_of_(0x7F800000u);
        }
        return 0;
    }
    cell = model_member_0_cell_(half_s);
    gaussian = half_s <= 87.33f ? model_exp_(-half_s) : 0.0f;
    for (k = 0; k < model_member_0_n_values; ++k) {
        const int e = center * model_member_0_n_values + k;
        const double scale = model_member_0_output_scales_[e] * (double)gaussian;
        double inner = model_member_0_constants_[e];
        inner += (double)model_member_0_quadratic_form_(model_member_0_degree_2_ + e * model_member_0_size_2_, model_member_0_degree_1_ + e * model_member_0_size_1_, model_member_0_n_varying_, u);
        values[k] = model_member_0_intercepts_[k] + (scale > 0.0 ? scale * inner : 0.0);
        bounds[k] = model_float_of_((uint32_t)model_member_0_bounds_[e * model_member_0_n_cells_ + cell] << 16);
    }
    return 1;
}

static inline double model_member_0_confidence_(double sum) { return sum / (3.0 * (model_modulus_(sum) + 1.0)); }
/* scikit-learn's scores, votes + s / (3 (|s| + 1)), s the sum of a class's values. */
static inline void model_member_0_scores_(const double values[], double scores[]) {
    double sums[model_member_0_n_labels];
    int pair = 0, i, j;
    for (i = 0; i < model_member_0_n_labels; ++i) {
        double own = i > 0 ? sums[i] : 0.0, own_votes = i > 0 ? scores[i] : 0.0;
        for (j = i + 1; j < model_member_0_n_labels; ++j, ++pair) {
            const int second = values[pair] < 0.0;
            own += values[pair];
            own_votes += !second;
            sums[j] = (i > 0 ? sums[j] : 0.0) - values[pair];
            scores[j] = (i > 0 ? scores[j] : 0.0) + second;
        }
        sums[i] = own;
        scores[i] = own_votes;
    }
    for (i = 0; i < model_member_0_n_labels; ++i) scores[i] += model_member_0_confidence_(sums[i]);
}
/* Between what they lie for all values within the bounds. */
static inline void model_member_0_score_ends_(const double values[], const float bounds[], double lowest[], double highest[]) {
    const double n = (double)model_member_0_n_labels, u = DBL_EPSILON;
    int c, i, j;
    for (c = 0; c < model_member_0_n_labels; ++c) {
        double sum = 0.0, spread = 0.0, least = 0.0, most = 0.0;
        int pair = 0;
        for (i = 0; i < model_member_0_n_labels; ++i) {
            for (j = i + 1; j < model_member_0_n_labels; ++j, ++pair) {
                const double value = c == i ? values[pair] : -values[pair], bound = (double)bounds[pair];
                if (c != i && c != j) continue;
                sum += value;
                spread += bound + 4.0 * n * u * (bound + model_modulus_(value));
                least += value > bound;
                most += !(value < -bound);
            }
        }
        if (spread <= 1e300) {
            lowest[c] = least + model_member_0_confidence_(sum - spread) - 8.0 * n * u;
            highest[c] = most + model_member_0_confidence_(sum + spread) + 8.0 * n * u;
        } else {
            lowest[c] = -DBL_MAX;
            highest[c] = DBL_MAX;
        }
    }
}

enum {
    model_member_1_n_features = 3,
    model_member_1_n_values = 3,
    model_member_1_n_labels = 3,
    model_member_1_n_mapped_ = 3,
    model_member_1_n_used_ = 3,
    model_member_1_n_varying_ = 3,
    model_member_1_n_majorant_ = 2,
    model_member_1_n_slope_ = 1,
    model_member_1_n_terms_ = 3,
    model_member_1_n_weights_ = 1
};

static const double model_member_1_subtract_0_[3] = {
    -0.11421928359232279, 0.016602969252864804, 0.06037161679045305};

static const double model_member_1_divide_0_[3] = {
    1.071002461213093, 1.0196410457412879, 0.919364321560091};

static const float model_member_1_vectors_[9] = {
    0.6015884f, 1.3612347f, 0.1717384f, -1.1606559f, -1.8536761f, 0.23873997f, 0.0917253f, -0.13107175f, -0.09319359f};

static const float model_member_1_weights_[3] = {
    1.0f, 1.0f, 1.0f};

static const uint8_t model_member_1_ends_[3] = {
    1, 2, 3};

static const uint8_t model_member_1_places_[3] = {
    0, 1, 2};

static const double model_member_1_intercepts_[3] = {
    -0.7369922503586844, -1.2847064500058465, -0.19889502862510489};

static const float model_member_1_majorants_[6] = {
    5.173649e-15f, 9.000946e-07f, 9.018575e-15f, 1.3218278e-06f, 1.3962331e-15f, 1.11237654e-07f};

static const float model_member_1_slopes_[3] = {
    1.4981227f, 2.2000577f, 0.18514459f};

static inline float model_member_1_raw_(const float row[], int j) { return row[j]; }
/* 0 for a row whose numbers are finite where they are used, else NaN. */
static inline float model_member_1_not_finite_(const float row[]) {
    float sum = 0.0f;
    int j;
    for (j = 0; j < model_member_1_n_used_; ++j) sum += row[j] - row[j];
    return sum;
}

static inline float model_member_1_sq_norm_(const float u[]) {
    const int n = model_member_1_n_varying_, whole = n - n % 8;
    float norm = 0.0f;
    int lane, j;
    for (lane = 0; lane < 8; ++lane) {
        float sum = 0.0f;
        for (j = lane; j < whole; j += 8) sum += u[j] * u[j];
        norm += sum;
    }
    for (j = whole; j < n; ++j) norm += u[j] * u[j];
    return norm;
}

/* Not below the root of x >= 0, nor of what x may have lost by underflow. */
static inline float model_member_1_root_above_(float x) {
    float root;
    if (!(x > 1e-30f)) return 2e-15f;
    root = model_float_of_((model_bits_of_(x) >> 1) + 0x1FC00000u);
    root = 0.5f * (root + x / root);
    root = 0.5f * (root + x / root);
    return 1.001f * root + 2e-15f;
}

/* Of term i times its coefficients, for each function that it takes part in. */
static inline void model_member_1_sums_(const float u[], double values[]) {
    const float *x = model_member_1_vectors_, *weight = model_member_1_weights_;
    int group = 0, i, j, k;
    for (i = 0; i < model_member_1_n_terms_; ++i, x += model_member_1_n_varying_, weight += model_member_1_n_weights_) {
        float s[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        double term;
        while (i == (int)model_member_1_ends_[group]) ++group;
        for (j = 0; j + 4 <= model_member_1_n_varying_; j += 4) {
            for (k = 0; k < 4; ++k) s[k] += x[j + k] * u[j + k];
        }
        for (; j < model_member_1_n_varying_; ++j) s[0] += x[j] * u[j];
        term = (double)((s[0] + s[1]) + (s[2] + s[3]));
        for (k = 0; k < model_member_1_n_weights_; ++k) values[(int)model_member_1_places_[group * model_member_1_n_weights_ + k]] += (double)weight[k] * term;
    }
}

/* What a step makes of an error, from the sums of moduli before and after its last addition. */
static inline double model_member_1_next_error_(double error, double before, double after, double gain, double of_before,
                                   double of_after, double fixed) {
    return 1.000000001 * (gain * error + of_before * before + of_after * after + fixed);
}
static inline double model_member_1_product_(double x, double factor) {
    const volatile double product = x * factor; /* fused with no sum */
    return product;
}
/* The modulus of a number that is not missing. */
static inline double model_member_1_size_(double x) { return x == x ? model_modulus_(x) : 0.0; }
/* The row as the source maps it; what its distance to the source's row over the real numbers never exceeds. */
static inline double model_member_1_map_(const float row[], double x[]) {
    double error = 0.0, before = 0.0, after = 0.0;
    int j;
    for (j = 0; j < 3; ++j) x[j] = (double)model_member_1_raw_(row, j);
    before = after = 0.0;
    for (j = 0; j < 3; ++j) {
        x[j] -= model_member_1_subtract_0_[j];
        x[j] /= model_member_1_divide_0_[j];
        before += model_member_1_size_(x[j]);
        after += model_member_1_size_(x[j]);
    }
    error = model_member_1_next_error_(error, before, after, 1.0877080798985097, 4.440892102636529e-16, 1.1102230256591323e-16, 6.377815332499027e-151);
    (void)before;
    (void)after;
    return error;
}

/* A polynomial in r with coefficients of at least 0, rounded upwards. */
static inline float model_member_1_polynomial_(const float c[], int n, float r) {
    float sum = c[n - 1];
    int k;
    for (k = n - 2; k >= 0; --k) sum = sum * r + c[k];
    return sum * 1.00001f;
}
/* All decision values and their bounds; 0 for a row that is not finite, or too long for float32: NaN, with infinite bounds. */
static inline int model_member_1_evaluate_(const float row[], double values[], float bounds[]) {
    float u[model_member_1_n_mapped_], reach, moved;
    double x[3];
    int j, k;
    moved = model_above_(model_member_1_map_(row, x)) + 0.0f;
    for (j = 0; j < model_member_1_n_mapped_; ++j) u[j] = model_narrowed_(x[j]);
    reach = model_member_1_sq_norm_(u) + model_member_1_not_finite_(row);
    for (k = 0; k < model_member_1_n_values; ++k) {
        values[k] = (double)model_float_of_(0x7FC00000u);
        bounds[k] = model_float_of_(0x7F800000u);
    }
    if (!(reach <= 9e+36f)) return 0;
    reach = model_member_1_root_above_(reach);
    for (k = 0; k < model_member_1_n_values; ++k) values[k] = 0.0;
    model_member_1_sums_(u, values);
    for (k = 0; k < model_member_1_n_values; ++k) {
        const float slope = model_member_1_polynomial_(model_member_1_slopes_ + k * model_member_1_n_slope_, model_member_1_n_slope_, reach + moved);
        const float own = model_member_1_polynomial_(model_member_1_majorants_ + k * model_member_1_n_majorant_, model_member_1_n_majorant_, reach);
        const float bound = 1.00001f * (own + slope * moved);
        values[k] += model_member_1_intercepts_[k];
        bounds[k] = bound >= 0.0f ? bound : model_float_of_(0x7F800000u);
    }
    return 1;
}

static inline void model_member_1_scores_(const double values[], double scores[]) {
    int c;
    for (c = 0; c < model_member_1_n_labels; ++c) scores[c] = values[c];
}
/* Between what they lie for all values within the bounds. */
static inline void model_member_1_score_ends_(const double values[], const float bounds[], double lowest[], double highest[]) {
    int c;
    for (c = 0; c < model_member_1_n_labels; ++c) {
        const double reach = (double)bounds[c] * (1.0 + 0x1p-40) + 0x1p-50 * model_modulus_(values[c]);
        lowest[c] = values[c] - reach;
        highest[c] = values[c] + reach;
    }
}

enum {
    model_member_2_n_features = 3,
    model_member_2_n_values = 3,
    model_member_2_n_labels = 3,
    model_member_2_n_mapped_ = 3,
    model_member_2_n_used_ = 3,
    model_member_2_n_varying_ = 3,
    model_member_2_first_cell_ = 936,
    model_member_2_cell_shift_ = 20,
    model_member_2_n_cells_ = 138,
    model_member_2_size_1_ = 3,
    model_member_2_size_2_ = 6
};

static const float model_member_2_centers_[3] = {
    -0.08334055f, 0.002007021f, -0.12665457f};

static const double model_member_2_intercepts_[3] = {
    -0.06328804462576683, -0.37246641897336763, -0.22553902110059562};

static const double model_member_2_constants_[3] = {
    0.15960477803749915, -0.16753093508413724, -0.7726843941130918};

static const double model_member_2_output_scales_[3] = {
    2.0, 2.0, 1.0};

static const float model_member_2_degree_1_[9] = {
    0.55645627f, 0.60980135f, -0.05057617f, 0.37440345f, 0.6552343f, 0.26757467f, -0.6705634f, -0.9833046f, 0.38521963f};

static const float model_member_2_degree_2_[18] = {
    0.060471315f, -0.08602225f, 0.03334573f, 0.054205015f, 0.035370626f, -0.13731314f, -0.028398067f, 0.49851978f,
    0.19264391f, -0.06489524f, 0.33373874f, -0.13953927f, -0.34595177f, 1.1144221f, 0.602745f, -0.1382737f,
    -0.19982374f, -0.0034463126f};

static const uint16_t model_member_2_bounds_[414] = {
    14377, 14410, 14444, 14472, 14491, 14511, 14531, 14552, 14574, 14606, 14631, 14656, 14683, 14711, 14730, 14745,
    14761, 14794, 14828, 14856, 14876, 14895, 14916, 14938, 14960, 14991, 15016, 15042, 15069, 15097, 15116, 15131,
    15147, 15180, 15215, 15242, 15261, 15282, 15302, 15324, 15347, 15377, 15402, 15428, 15456, 15484, 15501, 15517,
    15532, 15566, 15601, 15627, 15646, 15666, 15687, 15709, 15731, 15761, 15785, 15810, 15836, 15864, 15882, 15896,
    15911, 15942, 15973, 16003, 16020, 16037, 16055, 16072, 16090, 16127, 16146, 16165, 16183, 16201, 16219, 16237,
    16255, 16272, 16288, 16303, 16317, 16330, 16342, 16353, 16362, 16378, 16387, 16391, 16393, 16394, 16394, 16393,
    16391, 16390, 16381, 16365, 16348, 16332, 16318, 16306, 16296, 16288, 16277, 16270, 16267, 16265, 16264, 16263,
    16263, 16263, 16263, 16263, 16263, 16263, 16263, 16263, 16263, 16263, 16263, 16263, 16263, 16263, 16263, 16263,
    16263, 16263, 16263, 16263, 16263, 16263, 16263, 16263, 16263, 16458, 14349, 14376, 14405, 14435, 14465, 14482,
    14499, 14517, 14535, 14573, 14603, 14625, 14647, 14671, 14695, 14720, 14733, 14761, 14790, 14821, 14851, 14867,
    14885, 14903, 14922, 14961, 14990, 15012, 15035, 15059, 15084, 15107, 15121, 15149, 15179, 15211, 15238, 15256,
    15274, 15293, 15312, 15353, 15378, 15401, 15425, 15450, 15476, 15496, 15510, 15539, 15570, 15603, 15627, 15645,
    15663, 15683, 15703, 15744, 15766, 15789, 15813, 15838, 15864, 15882, 15895, 15924, 15953, 15984, 16008, 16024,
    16041, 16058, 16075, 16110, 16137, 16155, 16173, 16191, 16209, 16227, 16244, 16267, 16283, 16299, 16313, 16326,
    16338, 16349, 16359, 16376, 16387, 16391, 16393, 16394, 16394, 16394, 16392, 16390, 16382, 16365, 16348, 16331,
    16316, 16303, 16293, 16284, 16272, 16265, 16261, 16259, 16258, 16258, 16258, 16257, 16257, 16257, 16257, 16257,
    16257, 16257, 16257, 16257, 16257, 16257, 16257, 16257, 16257, 16257, 16257, 16257, 16257, 16257, 16257, 16257,
    16257, 16257, 16257, 16464, 14385, 14419, 14454, 14478, 14498, 14518, 14539, 14562, 14584, 14612, 14638, 14664,
    14692, 14721, 14736, 14752, 14768, 14802, 14839, 14863, 14883, 14904, 14925, 14948, 14971, 14998, 15024, 15052,
    15081, 15108, 15123, 15139, 15156, 15191, 15229, 15250, 15271, 15293, 15315, 15338, 15362, 15387, 15414, 15442,
    15472, 15496, 15512, 15529, 15546, 15582, 15619, 15639, 15660, 15682, 15705, 15729, 15749, 15775, 15802, 15830,
    15860, 15881, 15897, 15913, 15930, 15965, 16001, 16019, 16039, 16058, 16078, 16099, 16119, 16145, 16166, 16188,
    16209, 16230, 16251, 16264, 16275, 16295, 16313, 16331, 16348, 16363, 16377, 16387, 16393, 16403, 16410, 16415,
    16418, 16419, 16419, 16418, 16417, 16415, 16407, 16398, 16389, 16374, 16358, 16344, 16332, 16322, 16309, 16301,
    16296, 16294, 16293, 16292, 16292, 16292, 16292, 16292, 16292, 16292, 16292, 16292, 16292, 16292, 16292, 16292,
    16292, 16292, 16292, 16292, 16292, 16292, 16292, 16292, 16292, 16292, 16292, 16292, 16292, 16491};

static const double model_member_2_knots_[3] = {
    -2.714485272200571, -2.7599186178825375, -3.4995858123020414};

static const double model_member_2_heights_[3] = {
    3.5863699550441144, 3.395523267842704, 6.8435159300842106};

static const uint8_t model_member_2_is_sigmoid_[3] = {
    1, 1, 1};

static const uint8_t model_member_2_knot_ends_[4] = {
    0, 1, 2, 3};

static inline float model_member_2_raw_(const float row[], int j) { return row[j]; }
/* 0 for a row whose numbers are finite where they are used, else NaN. */
static inline float model_member_2_not_finite_(const float row[]) {
    float sum = 0.0f;
    int j;
    for (j = 0; j < model_member_2_n_used_; ++j) sum += row[j] - row[j];
    return sum;
}

/* The cell of half_s = s / 2 that model_member_2_bounds_ has a number for. */
static inline int model_member_2_cell_(float half_s) {
    const uint32_t first = model_member_2_first_cell_;
    uint32_t cell;
    if (!(half_s < 128.0f)) return model_member_2_n_cells_ - 1;
    cell = model_bits_of_(half_s) >> model_member_2_cell_shift_;
    return cell < first ? 0 : (int)(cell - first) + 1;
}

static inline float model_member_2_sq_norm_(const float u[]) {
    const int n = model_member_2_n_varying_, whole = n - n % 8;
    float norm = 0.0f;
    int lane, j;
    for (lane = 0; lane < 8; ++lane) {
        float sum = 0.0f;
        for (j = lane; j < whole; j += 8) sum += u[j] * u[j];
        norm += sum;
    }
    for (j = whole; j < n; ++j) norm += u[j] * u[j];
    return norm;
}

/* sum_j l_j u_j + sum over i <= j of q_ij u_i u_j; q is in panels of eight rows, l may be null. */
static inline float model_member_2_quadratic_form_(const float *q, const float *l, int n, const float u[]) {
    const int whole = n - n % 8, rest = n - whole;
    float form = 0.0f;
    int lane, first, i, j, k;
    for (lane = 0; lane < 8 && n >= 8; ++lane) {
        const float *panel = q + lane;
        float total = 0.0f;
        for (first = 0; first + 8 <= n; first += 8) {
            float s0 = l ? (float)l[first + lane] : 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f;
            for (k = 0; k < 8; k += 4) {
                const float *x = u + first + k;
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

static inline float model_member_2_coordinate_(const float row[], int j, const float center[]) {
    return (model_member_2_raw_(row, j) - center[j]) * 1.0f;
}

/* All decision values and their bounds; 0 for a row that is not finite: NaN, with infinite bounds. */
static inline int model_member_2_evaluate_(const float row[], double values[], float bounds[]) {
    float u[model_member_2_n_mapped_], half_s, gaussian;
    int center = 0, cell, j, k;
    float wrong = 0.0f;
    for (j = 0; j < model_member_2_n_mapped_; ++j) u[j] = model_member_2_coordinate_(row, j, model_member_2_centers_ + center * model_member_2_n_mapped_);
    half_s = 0.5f * model_member_2_sq_norm_(u);
    if (!(half_s <= FLT_MAX)) wrong = model_member_2_not_finite_(row);
    if (!(wrong <= 0.0f)) {
        for (k = 0; k < model_member_2_n_values; ++k) {
            values[k] = (double)wrong;
            bounds[k] = model_float_of_(0x7F800000u);
        }
        return 0;
    }
    cell = model_member_2_cell_(half_s);
    gaussian = half_s <= 87.33f ? model_exp_(-half_s) : 0.0f;
    for (k = 0; k < model_member_2_n_values; ++k) {
        const int e = center * model_member_2_n_values + k;
        const double scale = model_member_2_output_scales_[e] * (double)gaussian;
        double inner = model_member_2_constants_[e];
        inner += (double)model_member_2_quadratic_form_(model_member_2_degree_2_ + e * model_member_2_size_2_, model_member_2_degree_1_ + e * model_member_2_size_1_, model_member_2_n_varying_, u);
        values[k] = model_member_2_intercepts_[k] + (scale > 0.0 ? scale * inner : 0.0);
        bounds[k] = model_float_of_((uint32_t)model_member_2_bounds_[e * model_member_2_n_cells_ + cell] << 16);
    }
    return 1;
}

static inline double model_member_2_confidence_(double sum) { return sum / (3.0 * (model_modulus_(sum) + 1.0)); }
/* scikit-learn's scores, votes + s / (3 (|s| + 1)), s the sum of a class's values. */
static inline void model_member_2_scores_(const double values[], double scores[]) {
    double sums[model_member_2_n_labels];
    int pair = 0, i, j;
    for (i = 0; i < model_member_2_n_labels; ++i) {
        double own = i > 0 ? sums[i] : 0.0, own_votes = i > 0 ? scores[i] : 0.0;
        for (j = i + 1; j < model_member_2_n_labels; ++j, ++pair) {
            const int second = values[pair] < 0.0;
            own += values[pair];
            own_votes += !second;
            sums[j] = (i > 0 ? sums[j] : 0.0) - values[pair];
            scores[j] = (i > 0 ? scores[j] : 0.0) + second;
        }
        sums[i] = own;
        scores[i] = own_votes;
    }
    for (i = 0; i < model_member_2_n_labels; ++i) scores[i] += model_member_2_confidence_(sums[i]);
}
/* Between what they lie for all values within the bounds. */
static inline void model_member_2_score_ends_(const double values[], const float bounds[], double lowest[], double highest[]) {
    const double n = (double)model_member_2_n_labels, u = DBL_EPSILON;
    int c, i, j;
    for (c = 0; c < model_member_2_n_labels; ++c) {
        double sum = 0.0, spread = 0.0, least = 0.0, most = 0.0;
        int pair = 0;
        for (i = 0; i < model_member_2_n_labels; ++i) {
            for (j = i + 1; j < model_member_2_n_labels; ++j, ++pair) {
                const double value = c == i ? values[pair] : -values[pair], bound = (double)bounds[pair];
                if (c != i && c != j) continue;
                sum += value;
                spread += bound + 4.0 * n * u * (bound + model_modulus_(value));
                least += value > bound;
                most += !(value < -bound);
            }
        }
        if (spread <= 1e300) {
            lowest[c] = least + model_member_2_confidence_(sum - spread) - 8.0 * n * u;
            highest[c] = most + model_member_2_confidence_(sum + spread) + 8.0 * n * u;
        } else {
            lowest[c] = -DBL_MAX;
            highest[c] = DBL_MAX;
        }
    }
}

/* 1 / (1 + exp(x)). */
static inline double model_member_2_sigmoid_(double x) {
    const double e = model_exp64_(x < 0.0 ? x : -x);
    return x >= 0.0 ? e / (1.0 + e) : 1.0 / (1.0 + e);
}
/* Between what the exact value lies. */
static inline void model_member_2_around_(double value, double bound, double *low, double *high) {
    const double reach = bound * (1.0 + 0x1p-40) + 0x1p-50 * model_modulus_(value);
    *low = value - reach;
    *high = value + reach;
}
/* Between what 1 / (1 + exp(slope f + intercept)) lies for all f from low to high; large terms may cancel. */
static inline void model_member_2_sigmoid_ends_(double low, double high, double slope, double intercept, double *least,
                                   double *most) {
    const double below = slope * (slope < 0.0 ? high : low), above = slope * (slope < 0.0 ? low : high);
    const double from = below + intercept - 0x1p-50 * (model_modulus_(below) + model_modulus_(intercept));
    const double to = above + intercept + 0x1p-50 * (model_modulus_(above) + model_modulus_(intercept));
    const int is_known = from <= to; /* not infinity times zero */
    *least = is_known ? model_member_2_sigmoid_(to) : 0.0;
    *most = is_known ? model_member_2_sigmoid_(from) : 1.0;
}
/* Wider by the rounding of probabilities, and by `slack`. */
static inline void model_member_2_widen_(int n, double slack, double lowest[], double highest[]) {
    int c;
    slack += (256.0 + 16.0 * (double)n) * 0x1p-53;
    for (c = 0; c < n; ++c) {
        lowest[c] = lowest[c] > slack ? lowest[c] - slack : 0.0;
        highest[c] = highest[c] < 1.0 - slack ? highest[c] + slack : 1.0;
    }
}

/* A calibrator's share of a score; a sigmoid has its slope and intercept in place of knots and heights. */
static inline double model_member_2_calibrated_(int c, double score) {
    const double *const knots = model_member_2_knots_ + model_member_2_knot_ends_[c], *const heights = model_member_2_heights_ + model_member_2_knot_ends_[c];
    int left = 0, right = (int)model_member_2_knot_ends_[c + 1] - (int)model_member_2_knot_ends_[c];
    const int n = right;
    if (model_member_2_is_sigmoid_[c]) return model_member_2_sigmoid_(knots[0] * score + heights[0]);
    if (!(score >= knots[0])) return heights[0];
    while (right - left > 1) {
        const int middle = left + (right - left) / 2;
        if (score >= knots[middle]) {
            left = middle;
        } else {
            right = middle;
        }
    }
    if (left + 1 == n || !(heights[left + 1] > heights[left])) return heights[left];
    return heights[left] +
           (heights[left + 1] - heights[left]) / (knots[left + 1] - knots[left]) * (score - knots[left]);
}
static inline void model_member_2_calibrated_ends_(int c, double low, double high, double *least, double *most) {
    if (model_member_2_is_sigmoid_[c]) {
        model_member_2_sigmoid_ends_(low, high, model_member_2_knots_[model_member_2_knot_ends_[c]], model_member_2_heights_[model_member_2_knot_ends_[c]], least, most);
    } else {
        *least = model_member_2_calibrated_(c, low);
        *most = model_member_2_calibrated_(c, high);
    }
}
/* Of all x between lo and hi, at least 0, x_c / sum(x); each end is widened by its rounding. */
static inline void model_member_2_share_ends_(const double lo[], const double hi[], double lowest[], double highest[]) {
    int c, k;
    for (c = 0; c < model_member_2_n_labels; ++c) {
        const double own_lo = lo[c] * (1.0 - 0x1p-44), own_hi = hi[c] * (1.0 + 0x1p-44) + 1e-300;
        double others_lo = 0.0, others_hi = 0.0;
        for (k = 0; k < model_member_2_n_labels; ++k) {
            others_lo += k == c || !(lo[k] > 1e-300) ? 0.0 : lo[k] * (1.0 - 0x1p-44);
            others_hi += k == c ? 0.0 : hi[k] * (1.0 + 0x1p-44) + 1e-300;
        }
        lowest[c] = own_lo > 1e-300 ? own_lo / (own_lo + others_hi) : 0.0;
        highest[c] = own_hi / (own_hi + others_lo);
    }
    model_member_2_widen_(model_member_2_n_labels, 0.0, lowest, highest);
}
/* Probabilities, and between what those of the exact values lie. */
static inline void model_member_2_shares_(const double values[], const float bounds[], double p[], double lowest[],
                             double highest[]) {
    double lo[model_member_2_n_labels], hi[model_member_2_n_labels], total = 0.0;
    int c;
    model_member_2_scores_(values, p);
    model_member_2_score_ends_(values, bounds, lo, hi);
    for (c = 0; c < model_member_2_n_labels; ++c) {
        const double low = lo[c], high = hi[c];
        model_member_2_calibrated_ends_(c, low, high, &lo[c], &hi[c]);
        p[c] = model_member_2_calibrated_(c, p[c]);
        total += p[c];
    }
    for (c = 0; c < model_member_2_n_labels; ++c) p[c] = total > 0.0 ? p[c] / total : 1.0 / (double)model_member_2_n_labels;
    model_member_2_share_ends_(lo, hi, lowest, highest);
}

/* Probabilities of a row, and between what they lie; 0 for a row that is not finite. */
static inline int model_member_2_row_shares_(const float row[], double p[], double lowest[], double highest[]) {
    double values[model_member_2_n_values];
    float bounds[model_member_2_n_values];
    int c;
    for (c = 0; c < model_member_2_n_labels; ++c) p[c] = lowest[c] = highest[c] = 0.0;
    if (!model_member_2_evaluate_(row, values, bounds)) return 0;
    model_member_2_shares_(values, bounds, p, lowest, highest);
    return 1;
}

enum {
    model_member_3_n_features = 3,
    model_member_3_n_values = 3,
    model_member_3_n_labels = 3,
    model_member_3_n_mapped_ = 3,
    model_member_3_n_used_ = 3,
    model_member_3_n_varying_ = 3,
    model_member_3_first_cell_ = 936,
    model_member_3_cell_shift_ = 20,
    model_member_3_n_cells_ = 138,
    model_member_3_size_1_ = 3,
    model_member_3_size_2_ = 6
};

static const float model_member_3_centers_[3] = {
    -0.22164057f, 0.086053796f, 0.21697189f};

static const double model_member_3_intercepts_[3] = {
    -0.002060066861214078, -0.30378265395218446, -0.5295672378216104};

static const double model_member_3_constants_[3] = {
    -0.054056246812988956, -0.40005964095095276, -0.15267743463337577};

static const double model_member_3_output_scales_[3] = {
    2.0, 2.0, 2.0};

static const float model_member_3_degree_1_[9] = {
    0.7532079f, 0.5906189f, -0.12571402f, 0.4898962f, 0.59405357f, 0.000105122024f, -0.55008906f, -0.8093619f,
    -0.08401492f};

static const float model_member_3_degree_2_[18] = {
    0.062087767f, -0.015676176f, 0.07642252f, -0.07444741f, 0.06266444f, -0.13824485f, 0.028141405f, 0.48698238f,
    0.19430871f, -0.053061638f, 0.0665208f, -0.003852267f, -0.08729989f, 0.88783f, 0.12685946f, 0.005006142f,
    -0.09221554f, -0.06471755f};

static const uint16_t model_member_3_bounds_[414] = {
    14353, 14380, 14410, 14441, 14469, 14486, 14503, 14521, 14540, 14580, 14607, 14629, 14652, 14676, 14701, 14723,
    14737, 14765, 14794, 14826, 14853, 14870, 14888, 14906, 14925, 14965, 14992, 15014, 15037, 15062, 15087, 15109,
    15122, 15151, 15181, 15212, 15239, 15256, 15274, 15292, 15312, 15352, 15377, 15400, 15423, 15448, 15473, 15494,
    15507, 15536, 15565, 15597, 15623, 15640, 15658, 15676, 15694, 15733, 15759, 15781, 15803, 15826, 15849, 15873,
    15885, 15911, 15937, 15965, 15993, 16011, 16025, 16040, 16055, 16084, 16114, 16136, 16151, 16166, 16180, 16194,
    16208, 16234, 16258, 16269, 16279, 16288, 16296, 16303, 16309, 16319, 16324, 16327, 16327, 16326, 16324, 16319,
    16313, 16307, 16292, 16276, 16260, 16236, 16212, 16191, 16175, 16162, 16144, 16134, 16129, 16123, 16120, 16119,
    16118, 16118, 16118, 16117, 16117, 16117, 16117, 16117, 16117, 16117, 16117, 16117, 16117, 16117, 16117, 16117,
    16117, 16117, 16117, 16117, 16117, 16117, 16117, 16117, 16117, 16439, 14360, 14389, 14420, 14452, 14475, 14492,
    14511, 14529, 14549, 14590, 14613, 14636, 14660, 14685, 14711, 14729, 14743, 14772, 14803, 14836, 14859, 14877,
    14896, 14915, 14935, 14977, 14999, 15023, 15047, 15073, 15100, 15116, 15130, 15160, 15192, 15226, 15247, 15266,
    15285, 15305, 15326, 15365, 15388, 15412, 15438, 15464, 15490, 15505, 15519, 15551, 15584, 15618, 15636, 15655,
    15674, 15695, 15716, 15752, 15776, 15800, 15825, 15852, 15876, 15890, 15904, 15934, 15965, 15997, 16015, 16032,
    16049, 16067, 16084, 16120, 16143, 16161, 16179, 16197, 16214, 16231, 16248, 16268, 16283, 16297, 16309, 16321,
    16330, 16339, 16346, 16357, 16363, 16365, 16365, 16363, 16359, 16352, 16344, 16335, 16315, 16294, 16274, 16257,
    16227, 16202, 16182, 16166, 16144, 16132, 16122, 16116, 16112, 16111, 16110, 16109, 16109, 16109, 16109, 16109,
    16109, 16109, 16109, 16109, 16109, 16109, 16109, 16109, 16109, 16109, 16109, 16109, 16109, 16109, 16109, 16109,
    16109, 16109, 16109, 16455, 14339, 14364, 14391, 14419, 14448, 14472, 14488, 14504, 14521, 14557, 14594, 14614,
    14635, 14656, 14679, 14703, 14724, 14750, 14777, 14805, 14835, 14858, 14874, 14891, 14909, 14945, 14981, 15001,
    15023, 15045, 15069, 15093, 15112, 15138, 15166, 15196, 15228, 15246, 15263, 15281, 15299, 15338, 15370, 15391,
    15414, 15437, 15462, 15487, 15501, 15529, 15558, 15589, 15619, 15636, 15653, 15672, 15690, 15730, 15758, 15779,
    15802, 15825, 15849, 15873, 15886, 15912, 15940, 15968, 15997, 16014, 16029, 16044, 16060, 16091, 16123, 16141,
    16157, 16172, 16187, 16202, 16216, 16244, 16263, 16274, 16284, 16294, 16302, 16309, 16315, 16324, 16329, 16330,
    16330, 16329, 16325, 16319, 16313, 16306, 16289, 16273, 16257, 16228, 16204, 16184, 16168, 16155, 16137, 16126,
    16115, 16109, 16107, 16105, 16105, 16104, 16104, 16104, 16104, 16104, 16104, 16104, 16104, 16104, 16104, 16104,
    16104, 16104, 16104, 16104, 16104, 16104, 16104, 16104, 16104, 16104, 16104, 16104, 16104, 16471};

static const double model_member_3_knots_[3] = {
    -2.272848857414148, -2.5331631438137086, -3.938966074528367};

static const double model_member_3_heights_[3] = {
    3.1505110244676238, 2.9752917885955115, 7.840882714974211};

static const uint8_t model_member_3_is_sigmoid_[3] = {
    1, 1, 1};

static const uint8_t model_member_3_knot_ends_[4] = {
    0, 1, 2, 3};

static inline float model_member_3_raw_(const float row[], int j) { return row[j]; }
/* 0 for a row whose numbers are finite where they are used, else NaN. */
static inline float model_member_3_not_finite_(const float row[]) {
    float sum = 0.0f;
    int j;
    for (j = 0; j < model_member_3_n_used_; ++j) sum += row[j] - row[j];
    return sum;
}

/* The cell of half_s = s / 2 that model_member_3_bounds_ has a number for. */
static inline int model_member_3_cell_(float half_s) {
    const uint32_t first = model_member_3_first_cell_;
    uint32_t cell;
    if (!(half_s < 128.0f)) return model_member_3_n_cells_ - 1;
    cell = model_bits_of_(half_s) >> model_member_3_cell_shift_;
    return cell < first ? 0 : (int)(cell - first) + 1;
}

static inline float model_member_3_sq_norm_(const float u[]) {
    const int n = model_member_3_n_varying_, whole = n - n % 8;
    float norm = 0.0f;
    int lane, j;
    for (lane = 0; lane < 8; ++lane) {
        float sum = 0.0f;
        for (j = lane; j < whole; j += 8) sum += u[j] * u[j];
        norm += sum;
    }
    for (j = whole; j < n; ++j) norm += u[j] * u[j];
    return norm;
}

/* sum_j l_j u_j + sum over i <= j of q_ij u_i u_j; q is in panels of eight rows, l may be null. */
static inline float model_member_3_quadratic_form_(const float *q, const float *l, int n, const float u[]) {
    const int whole = n - n % 8, rest = n - whole;
    float form = 0.0f;
    int lane, first, i, j, k;
    for (lane = 0; lane < 8 && n >= 8; ++lane) {
        const float *panel = q + lane;
        float total = 0.0f;
        for (first = 0; first + 8 <= n; first += 8) {
            float s0 = l ? (float)l[first + lane] : 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f;
            for (k = 0; k < 8; k += 4) {
                const float *x = u + first + k;
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

static inline float model_member_3_coordinate_(const float row[], int j, const float center[]) {
    return (model_member_3_raw_(row, j) - center[j]) * 1.0f;
}

/* All decision values and their bounds; 0 for a row that is not finite: NaN, with infinite bounds. */
static inline int model_member_3_evaluate_(const float row[], double values[], float bounds[]) {
    float u[model_member_3_n_mapped_], half_s, gaussian;
    int center = 0, cell, j, k;
    float wrong = 0.0f;
    for (j = 0; j < model_member_3_n_mapped_; ++j) u[j] = model_member_3_coordinate_(row, j, model_member_3_centers_ + center * model_member_3_n_mapped_);
    half_s = 0.5f * model_member_3_sq_norm_(u);
    if (!(half_s <= FLT_MAX)) wrong = model_member_3_not_finite_(row);
    if (!(wrong <= 0.0f)) {
        for (k = 0; k < model_member_3_n_values; ++k) {
            values[k] = (double)wrong;
            bounds[k] = model_float_of_(0x7F800000u);
        }
        return 0;
    }
    cell = model_member_3_cell_(half_s);
    gaussian = half_s <= 87.33f ? model_exp_(-half_s) : 0.0f;
    for (k = 0; k < model_member_3_n_values; ++k) {
        const int e = center * model_member_3_n_values + k;
        const double scale = model_member_3_output_scales_[e] * (double)gaussian;
        double inner = model_member_3_constants_[e];
        inner += (double)model_member_3_quadratic_form_(model_member_3_degree_2_ + e * model_member_3_size_2_, model_member_3_degree_1_ + e * model_member_3_size_1_, model_member_3_n_varying_, u);
        values[k] = model_member_3_intercepts_[k] + (scale > 0.0 ? scale * inner : 0.0);
        bounds[k] = model_float_of_((uint32_t)model_member_3_bounds_[e * model_member_3_n_cells_ + cell] << 16);
    }
    return 1;
}

static inline double model_member_3_confidence_(double sum) { return sum / (3.0 * (model_modulus_(sum) + 1.0)); }
/* scikit-learn's scores, votes + s / (3 (|s| + 1)), s the sum of a class's values. */
static inline void model_member_3_scores_(const double values[], double scores[]) {
    double sums[model_member_3_n_labels];
    int pair = 0, i, j;
    for (i = 0; i < model_member_3_n_labels; ++i) {
        double own = i > 0 ? sums[i] : 0.0, own_votes = i > 0 ? scores[i] : 0.0;
        for (j = i + 1; j < model_member_3_n_labels; ++j, ++pair) {
            const int second = values[pair] < 0.0;
            own += values[pair];
            own_votes += !second;
            sums[j] = (i > 0 ? sums[j] : 0.0) - values[pair];
            scores[j] = (i > 0 ? scores[j] : 0.0) + second;
        }
        sums[i] = own;
        scores[i] = own_votes;
    }
    for (i = 0; i < model_member_3_n_labels; ++i) scores[i] += model_member_3_confidence_(sums[i]);
}
/* Between what they lie for all values within the bounds. */
static inline void model_member_3_score_ends_(const double values[], const float bounds[], double lowest[], double highest[]) {
    const double n = (double)model_member_3_n_labels, u = DBL_EPSILON;
    int c, i, j;
    for (c = 0; c < model_member_3_n_labels; ++c) {
        double sum = 0.0, spread = 0.0, least = 0.0, most = 0.0;
        int pair = 0;
        for (i = 0; i < model_member_3_n_labels; ++i) {
            for (j = i + 1; j < model_member_3_n_labels; ++j, ++pair) {
                const double value = c == i ? values[pair] : -values[pair], bound = (double)bounds[pair];
                if (c != i && c != j) continue;
                sum += value;
                spread += bound + 4.0 * n * u * (bound + model_modulus_(value));
                least += value > bound;
                most += !(value < -bound);
            }
        }
        if (spread <= 1e300) {
            lowest[c] = least + model_member_3_confidence_(sum - spread) - 8.0 * n * u;
            highest[c] = most + model_member_3_confidence_(sum + spread) + 8.0 * n * u;
        } else {
            lowest[c] = -DBL_MAX;
            highest[c] = DBL_MAX;
        }
    }
}

/* 1 / (1 + exp(x)). */
static inline double model_member_3_sigmoid_(double x) {
    const double e = model_exp64_(x < 0.0 ? x : -x);
    return x >= 0.0 ? e / (1.0 + e) : 1.0 / (1.0 + e);
}
/* Between what the exact value lies. */
static inline void model_member_3_around_(double value, double bound, double *low, double *high) {
    const double reach = bound * (1.0 + 0x1p-40) + 0x1p-50 * model_modulus_(value);
    *low = value - reach;
    *high = value + reach;
}
/* Between what 1 / (1 + exp(slope f + intercept)) lies for all f from low to high; large terms may cancel. */
static inline void model_member_3_sigmoid_ends_(double low, double high, double slope, double intercept, double *least,
                                   double *most) {
    const double below = slope * (slope < 0.0 ? high : low), above = slope * (slope < 0.0 ? low : high);
    const double from = below + intercept - 0x1p-50 * (model_modulus_(below) + model_modulus_(intercept));
    const double to = above + intercept + 0x1p-50 * (model_modulus_(above) + model_modulus_(intercept));
    const int is_known = from <= to; /* not infinity times zero */
    *least = is_known ? model_member_3_sigmoid_(to) : 0.0;
    *most = is_known ? model_member_3_sigmoid_(from) : 1.0;
}
/* Wider by the rounding of probabilities, and by `slack`. */
static inline void model_member_3_widen_(int n, double slack, double lowest[], double highest[]) {
    int c;
    slack += (256.0 + 16.0 * (double)n) * 0x1p-53;
    for (c = 0; c < n; ++c) {
        lowest[c] = lowest[c] > slack ? lowest[c] - slack : 0.0;
        highest[c] = highest[c] < 1.0 - slack ? highest[c] + slack : 1.0;
    }
}

/* A calibrator's share of a score; a sigmoid has its slope and intercept in place of knots and heights. */
static inline double model_member_3_calibrated_(int c, double score) {
    const double *const knots = model_member_3_knots_ + model_member_3_knot_ends_[c], *const heights = model_member_3_heights_ + model_member_3_knot_ends_[c];
    int left = 0, right = (int)model_member_3_knot_ends_[c + 1] - (int)model_member_3_knot_ends_[c];
    const int n = right;
    if (model_member_3_is_sigmoid_[c]) return model_member_3_sigmoid_(knots[0] * score + heights[0]);
    if (!(score >= knots[0])) return heights[0];
    while (right - left > 1) {
        const int middle = left + (right - left) / 2;
        if (score >= knots[middle]) {
            left = middle;
        } else {
            right = middle;
        }
    }
    if (left + 1 == n || !(heights[left + 1] > heights[left])) return heights[left];
    return heights[left] +
           (heights[left + 1] - heights[left]) / (knots[left + 1] - knots[left]) * (score - knots[left]);
}
static inline void model_member_3_calibrated_ends_(int c, double low, double high, double *least, double *most) {
    if (model_member_3_is_sigmoid_[c]) {
        model_member_3_sigmoid_ends_(low, high, model_member_3_knots_[model_member_3_knot_ends_[c]], model_member_3_heights_[model_member_3_knot_ends_[c]], least, most);
    } else {
        *least = model_member_3_calibrated_(c, low);
        *most = model_member_3_calibrated_(c, high);
    }
}
/* Of all x between lo and hi, at least 0, x_c / sum(x); each end is widened by its rounding. */
static inline void model_member_3_share_ends_(const double lo[], const double hi[], double lowest[], double highest[]) {
    int c, k;
    for (c = 0; c < model_member_3_n_labels; ++c) {
        const double own_lo = lo[c] * (1.0 - 0x1p-44), own_hi = hi[c] * (1.0 + 0x1p-44) + 1e-300;
        double others_lo = 0.0, others_hi = 0.0;
        for (k = 0; k < model_member_3_n_labels; ++k) {
            others_lo += k == c || !(lo[k] > 1e-300) ? 0.0 : lo[k] * (1.0 - 0x1p-44);
            others_hi += k == c ? 0.0 : hi[k] * (1.0 + 0x1p-44) + 1e-300;
        }
        lowest[c] = own_lo > 1e-300 ? own_lo / (own_lo + others_hi) : 0.0;
        highest[c] = own_hi / (own_hi + others_lo);
    }
    model_member_3_widen_(model_member_3_n_labels, 0.0, lowest, highest);
}
/* Probabilities, and between what those of the exact values lie. */
static inline void model_member_3_shares_(const double values[], const float bounds[], double p[], double lowest[],
                             double highest[]) {
    double lo[model_member_3_n_labels], hi[model_member_3_n_labels], total = 0.0;
    int c;
    model_member_3_scores_(values, p);
    model_member_3_score_ends_(values, bounds, lo, hi);
    for (c = 0; c < model_member_3_n_labels; ++c) {
        const double low = lo[c], high = hi[c];
        model_member_3_calibrated_ends_(c, low, high, &lo[c], &hi[c]);
        p[c] = model_member_3_calibrated_(c, p[c]);
        total += p[c];
    }
    for (c = 0; c < model_member_3_n_labels; ++c) p[c] = total > 0.0 ? p[c] / total : 1.0 / (double)model_member_3_n_labels;
    model_member_3_share_ends_(lo, hi, lowest, highest);
}

/* Probabilities of a row, and between what they lie; 0 for a row that is not finite. */
static inline int model_member_3_row_shares_(const float row[], double p[], double lowest[], double highest[]) {
    double values[model_member_3_n_values];
    float bounds[model_member_3_n_values];
    int c;
    for (c = 0; c < model_member_3_n_labels; ++c) p[c] = lowest[c] = highest[c] = 0.0;
    if (!model_member_3_evaluate_(row, values, bounds)) return 0;
    model_member_3_shares_(values, bounds, p, lowest, highest);
    return 1;
}

enum {
    model_member_4_n_features = 3,
    model_member_4_n_values = 3,
    model_member_4_n_labels = 3,
    model_member_4_n_mapped_ = 3,
    model_member_4_n_used_ = 3,
    model_member_4_n_varying_ = 3,
    model_member_4_n_majorant_ = 2,
    model_member_4_n_slope_ = 1,
    model_member_4_n_terms_ = 3,
    model_member_4_n_weights_ = 1
};

static const float model_member_4_vectors_[9] = {
    1.2765743f, 2.6130679f, 0.12906264f, -1.542663f, -2.684607f, 0.17000441f, 0.26608875f, 0.071539104f, -0.29906705f};

static const float model_member_4_weights_[3] = {
    1.0f, 1.0f, 1.0f};

static const uint8_t model_member_4_ends_[3] = {
    1, 2, 3};

static const uint8_t model_member_4_places_[3] = {
    0, 1, 2};

static const double model_member_4_intercepts_[3] = {
    -0.19651901945783903, -1.036568033185465, 1.233087052643303};

static const float model_member_4_majorants_[6] = {
    1.3795537e-15f, 1.7490279e-06f, 7.276656e-15f, 1.8630948e-06f, 8.65621e-15f, 2.4432043e-07f};

static const float model_member_4_slopes_[3] = {
    2.911092f, 3.1009457f, 0.4066483f};

static const double model_member_4_inverse_temperature_[1] = {
    1.0};

static inline float model_member_4_raw_(const float row[], int j) { return row[j]; }
/* 0 for a row whose numbers are finite where they are used, else NaN. */
static inline float model_member_4_not_finite_(const float row[]) {
    float sum = 0.0f;
    int j;
    for (j = 0; j < model_member_4_n_used_; ++j) sum += row[j] - row[j];
    return sum;
}

static inline float model_member_4_sq_norm_(const float u[]) {
    const int n = model_member_4_n_varying_, whole = n - n % 8;
    float norm = 0.0f;
    int lane, j;
    for (lane = 0; lane < 8; ++lane) {
        float sum = 0.0f;
        for (j = lane; j < whole; j += 8) sum += u[j] * u[j];
        norm += sum;
    }
    for (j = whole; j < n; ++j) norm += u[j] * u[j];
    return norm;
}

/* Not below the root of x >= 0, nor of what x may have lost by underflow. */
static inline float model_member_4_root_above_(float x) {
    float root;
    if (!(x > 1e-30f)) return 2e-15f;
    root = model_float_of_((model_bits_of_(x) >> 1) + 0x1FC00000u);
    root = 0.5f * (root + x / root);
    root = 0.5f * (root + x / root);
    return 1.001f * root + 2e-15f;
}

/* Of term i times its coefficients, for each function that it takes part in. */
static inline void model_member_4_sums_(const float u[], double values[]) {
    const float *x = model_member_4_vectors_, *weight = model_member_4_weights_;
    int group = 0, i, j, k;
    for (i = 0; i < model_member_4_n_terms_; ++i, x += model_member_4_n_varying_, weight += model_member_4_n_weights_) {
        float s[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        double term;
        while (i == (int)model_member_4_ends_[group]) ++group;
        for (j = 0; j + 4 <= model_member_4_n_varying_; j += 4) {
            for (k = 0; k < 4; ++k) s[k] += x[j + k] * u[j + k];
        }
        for (; j < model_member_4_n_varying_; ++j) s[0] += x[j] * u[j];
        term = (double)((s[0] + s[1]) + (s[2] + s[3]));
        for (k = 0; k < model_member_4_n_weights_; ++k) values[(int)model_member_4_places_[group * model_member_4_n_weights_ + k]] += (double)weight[k] * term;
    }
}

/* A polynomial in r with coefficients of at least 0, rounded upwards. */
static inline float model_member_4_polynomial_(const float c[], int n, float r) {
    float sum = c[n - 1];
    int k;
    for (k = n - 2; k >= 0; --k) sum = sum * r + c[k];
    return sum * 1.00001f;
}
/* All decision values and their bounds; 0 for a row that is not finite, or too long for float32: NaN, with infinite bounds. */
static inline int model_member_4_evaluate_(const float row[], double values[], float bounds[]) {
    float u[model_member_4_n_mapped_], reach, moved;
    int j, k;
    moved = 0.0f;
    for (j = 0; j < model_member_4_n_mapped_; ++j) u[j] = model_member_4_raw_(row, j);
    reach = model_member_4_sq_norm_(u);
    for (k = 0; k < model_member_4_n_values; ++k) {
        values[k] = (double)model_float_of_(0x7FC00000u);
        bounds[k] = model_float_of_(0x7F800000u);
    }
    if (!(reach <= 9e+36f)) return 0;
    reach = model_member_4_root_above_(reach);
    for (k = 0; k < model_member_4_n_values; ++k) values[k] = 0.0;
    model_member_4_sums_(u, values);
    for (k = 0; k < model_member_4_n_values; ++k) {
        const float slope = model_member_4_polynomial_(model_member_4_slopes_ + k * model_member_4_n_slope_, model_member_4_n_slope_, reach + moved);
        const float own = model_member_4_polynomial_(model_member_4_majorants_ + k * model_member_4_n_majorant_, model_member_4_n_majorant_, reach);
        const float bound = 1.00001f * (own + slope * moved);
        values[k] += model_member_4_intercepts_[k];
        bounds[k] = bound >= 0.0f ? bound : model_float_of_(0x7F800000u);
    }
    return 1;
}

static inline void model_member_4_scores_(const double values[], double scores[]) {
    int c;
    for (c = 0; c < model_member_4_n_labels; ++c) scores[c] = values[c];
}
/* Between what they lie for all values within the bounds. */
static inline void model_member_4_score_ends_(const double values[], const float bounds[], double lowest[], double highest[]) {
    int c;
    for (c = 0; c < model_member_4_n_labels; ++c) {
        const double reach = (double)bounds[c] * (1.0 + 0x1p-40) + 0x1p-50 * model_modulus_(values[c]);
        lowest[c] = values[c] - reach;
        highest[c] = values[c] + reach;
    }
}

/* 1 / (1 + exp(x)). */
static inline double model_member_4_sigmoid_(double x) {
    const double e = model_exp64_(x < 0.0 ? x : -x);
    return x >= 0.0 ? e / (1.0 + e) : 1.0 / (1.0 + e);
}
/* Between what the exact value lies. */
static inline void model_member_4_around_(double value, double bound, double *low, double *high) {
    const double reach = bound * (1.0 + 0x1p-40) + 0x1p-50 * model_modulus_(value);
    *low = value - reach;
    *high = value + reach;
}
/* Between what 1 / (1 + exp(slope f + intercept)) lies for all f from low to high; large terms may cancel. */
static inline void model_member_4_sigmoid_ends_(double low, double high, double slope, double intercept, double *least,
                                   double *most) {
    const double below = slope * (slope < 0.0 ? high : low), above = slope * (slope < 0.0 ? low : high);
    const double from = below + intercept - 0x1p-50 * (model_modulus_(below) + model_modulus_(intercept));
    const double to = above + intercept + 0x1p-50 * (model_modulus_(above) + model_modulus_(intercept));
    const int is_known = from <= to; /* not infinity times zero */
    *least = is_known ? model_member_4_sigmoid_(to) : 0.0;
    *most = is_known ? model_member_4_sigmoid_(from) : 1.0;
}
/* Wider by the rounding of probabilities, and by `slack`. */
static inline void model_member_4_widen_(int n, double slack, double lowest[], double highest[]) {
    int c;
    slack += (256.0 + 16.0 * (double)n) * 0x1p-53;
    for (c = 0; c < n; ++c) {
        lowest[c] = lowest[c] > slack ? lowest[c] - slack : 0.0;
        highest[c] = highest[c] < 1.0 - slack ? highest[c] + slack : 1.0;
    }
}

/* Of all x between lo and hi, at least 0, x_c / sum(x); each end is widened by its rounding. */
static inline void model_member_4_share_ends_(const double lo[], const double hi[], double lowest[], double highest[]) {
    int c, k;
    for (c = 0; c < model_member_4_n_labels; ++c) {
        const double own_lo = lo[c] * (1.0 - 0x1p-44), own_hi = hi[c] * (1.0 + 0x1p-44) + 1e-300;
        double others_lo = 0.0, others_hi = 0.0;
        for (k = 0; k < model_member_4_n_labels; ++k) {
            others_lo += k == c || !(lo[k] > 1e-300) ? 0.0 : lo[k] * (1.0 - 0x1p-44);
            others_hi += k == c ? 0.0 : hi[k] * (1.0 + 0x1p-44) + 1e-300;
        }
        lowest[c] = own_lo > 1e-300 ? own_lo / (own_lo + others_hi) : 0.0;
        highest[c] = own_hi / (own_hi + others_lo);
    }
    model_member_4_widen_(model_member_4_n_labels, 0.0, lowest, highest);
}
/* Probabilities, and between what those of the exact values lie. */
static inline void model_member_4_shares_(const double values[], const float bounds[], double p[], double lowest[],
                             double highest[]) {
    const double beta = model_member_4_inverse_temperature_[0];
    double lo[model_member_4_n_labels], hi[model_member_4_n_labels], top, most, scale = 0.0, total = 0.0;
    int c;
    model_member_4_scores_(values, p);
    model_member_4_score_ends_(values, bounds, lo, hi);
    top = beta * p[0];
    most = beta * hi[0];
    for (c = 0; c < model_member_4_n_labels; ++c) {
        p[c] *= beta;
        lo[c] *= beta;
        hi[c] *= beta;
        top = p[c] > top ? p[c] : top;
        most = hi[c] > most ? hi[c] : most;
        scale = model_modulus_(lo[c]) > scale ? model_modulus_(lo[c]) : scale;
        scale = model_modulus_(hi[c]) > scale ? model_modulus_(hi[c]) : scale;
    }
    for (c = 0; c < model_member_4_n_labels; ++c) {
        p[c] = model_exp64_(p[c] - top);
        total += p[c];
    }
    for (c = 0; c < model_member_4_n_labels; ++c) p[c] /= total;
    if (scale < 1e300) {
        for (c = 0; c < model_member_4_n_labels; ++c) {
            lo[c] = model_exp64_(lo[c] - most - 0x1p-48 * scale);
            hi[c] = model_exp64_(hi[c] - most + 0x1p-48 * scale);
        }
        model_member_4_share_ends_(lo, hi, lowest, highest);
    } else {
        for (c = 0; c < model_member_4_n_labels; ++c) {
            lowest[c] = 0.0;
            highest[c] = 1.0;
        }
    }
}

/* Probabilities of a row, and between what they lie; 0 for a row that is not finite, or too long for float32. */
static inline int model_member_4_row_shares_(const float row[], double p[], double lowest[], double highest[]) {
    double values[model_member_4_n_values];
    float bounds[model_member_4_n_values];
    int c;
    for (c = 0; c < model_member_4_n_labels; ++c) p[c] = lowest[c] = highest[c] = 0.0;
    if (!model_member_4_evaluate_(row, values, bounds)) return 0;
    model_member_4_shares_(values, bounds, p, lowest, highest);
    return 1;
}

enum {
    model_member_5_n_features = 3,
    model_member_5_n_values = 3,
    model_member_5_n_mapped_ = 3,
    model_member_5_n_used_ = 3,
    model_member_5_n_varying_ = 3,
    model_member_5_n_majorant_ = 2,
    model_member_5_n_slope_ = 1,
    model_member_5_n_terms_ = 3,
    model_member_5_n_weights_ = 1
};

static const float model_member_5_vectors_[9] = {
    0.12459096f, 0.83424985f, 0.29354748f, -0.6360942f, -0.9456558f, 0.26837316f, 0.42201924f, 0.26636913f, -0.29190797f};

static const float model_member_5_weights_[3] = {
    1.0f, 1.0f, 1.0f};

static const uint8_t model_member_5_ends_[3] = {
    1, 2, 3};

static const uint8_t model_member_5_places_[3] = {
    0, 1, 2};

static const double model_member_5_intercepts_[3] = {
    0.0, 0.0, 0.0};

static const float model_member_5_majorants_[6] = {
    3.9837616e-31f, 5.366019e-07f, 3.9837616e-31f, 7.034696e-07f, 3.9837616e-31f, 3.4736482e-07f};

static const float model_member_5_slopes_[3] = {
    0.8931232f, 1.1708589f, 0.578156f};

static inline float model_member_5_raw_(const float row[], int j) { return row[j]; }
/* 0 for a row whose numbers are finite where they are used, else NaN. */
static inline float model_member_5_not_finite_(const float row[]) {
    float sum = 0.0f;
    int j;
    for (j = 0; j < model_member_5_n_used_; ++j) sum += row[j] - row[j];
    return sum;
}

static inline float model_member_5_sq_norm_(const float u[]) {
    const int n = model_member_5_n_varying_, whole = n - n % 8;
    float norm = 0.0f;
    int lane, j;
    for (lane = 0; lane < 8; ++lane) {
        float sum = 0.0f;
        for (j = lane; j < whole; j += 8) sum += u[j] * u[j];
        norm += sum;
    }
    for (j = whole; j < n; ++j) norm += u[j] * u[j];
    return norm;
}

/* Not below the root of x >= 0, nor of what x may have lost by underflow. */
static inline float model_member_5_root_above_(float x) {
    float root;
    if (!(x > 1e-30f)) return 2e-15f;
    root = model_float_of_((model_bits_of_(x) >> 1) + 0x1FC00000u);
    root = 0.5f * (root + x / root);
    root = 0.5f * (root + x / root);
    return 1.001f * root + 2e-15f;
}

/* Of term i times its coefficients, for each function that it takes part in. */
static inline void model_member_5_sums_(const float u[], double values[]) {
    const float *x = model_member_5_vectors_, *weight = model_member_5_weights_;
    int group = 0, i, j, k;
    for (i = 0; i < model_member_5_n_terms_; ++i, x += model_member_5_n_varying_, weight += model_member_5_n_weights_) {
        float s[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        double term;
        while (i == (int)model_member_5_ends_[group]) ++group;
        for (j = 0; j + 4 <= model_member_5_n_varying_; j += 4) {
            for (k = 0; k < 4; ++k) s[k] += x[j + k] * u[j + k];
        }
        for (; j < model_member_5_n_varying_; ++j) s[0] += x[j] * u[j];
        term = (double)((s[0] + s[1]) + (s[2] + s[3]));
        for (k = 0; k < model_member_5_n_weights_; ++k) values[(int)model_member_5_places_[group * model_member_5_n_weights_ + k]] += (double)weight[k] * term;
    }
}

/* A polynomial in r with coefficients of at least 0, rounded upwards. */
static inline float model_member_5_polynomial_(const float c[], int n, float r) {
    float sum = c[n - 1];
    int k;
    for (k = n - 2; k >= 0; --k) sum = sum * r + c[k];
    return sum * 1.00001f;
}
/* All decision values and their bounds; 0 for a row that is not finite, or too long for float32: NaN, with infinite bounds. */
static inline int model_member_5_evaluate_(const float row[], double values[], float bounds[]) {
    float u[model_member_5_n_mapped_], reach, moved;
    int j, k;
    moved = 0.0f;
    for (j = 0; j < model_member_5_n_mapped_; ++j) u[j] = model_member_5_raw_(row, j);
    reach = model_member_5_sq_norm_(u);
    for (k = 0; k < model_member_5_n_values; ++k) {
        values[k] = (double)model_float_of_(0x7FC00000u);
        bounds[k] = model_float_of_(0x7F800000u);
    }
    if (!(reach <= 9e+36f)) return 0;
    reach = model_member_5_root_above_(reach);
    for (k = 0; k < model_member_5_n_values; ++k) values[k] = 0.0;
    model_member_5_sums_(u, values);
    for (k = 0; k < model_member_5_n_values; ++k) {
        const float slope = model_member_5_polynomial_(model_member_5_slopes_ + k * model_member_5_n_slope_, model_member_5_n_slope_, reach + moved);
        const float own = model_member_5_polynomial_(model_member_5_majorants_ + k * model_member_5_n_majorant_, model_member_5_n_majorant_, reach);
        const float bound = 1.00001f * (own + slope * moved);
        values[k] += model_member_5_intercepts_[k];
        bounds[k] = bound >= 0.0f ? bound : model_float_of_(0x7F800000u);
    }
    return 1;
}

static const double model_weights_[54] = {
    0.06196569990904073, 0.14015928859005078, -0.7304428500224545, -0.4516259462253046, -0.6858224853861039,
    0.2682800495512229, 0.30752357047371004, -0.3523506218644567, -0.07269935549275512, 0.30752357047371004,
    -0.3523506218644567, -0.07269935549275512, -0.27977156280920207, -0.09098165440505102, 0.13570040344725193, 1.0,
    0.0, 0.0, -0.0018719252861937588, 0.6800671925095709, -0.5396508455206473, 0.10508547918094689, 0.7063993529532359,
    0.55572573498553, -0.09584966036267994, 0.16976697866161577, -0.15661380830051624, -0.09584966036267994,
    0.16976697866161577, -0.15661380830051624, -0.24636891966994706, -0.10766190881148853, 0.18863784847827414, 0.0,
    1.0, 0.0, -0.6681948846065945, -0.8418857698675755, 0.5845102671119091, 0.4103655141064281, 0.6255780387078002,
    -0.9562924669404786, -0.2449894494587549, 0.16838039902631405, 0.10696133337920093, -0.2449894494587549,
    0.16838039902631405, 0.10696133337920093, -0.30170451353707944, -0.9066947192603022, 1.2691037986908973, 0.0, 0.0,
    1.0};

static const double model_addends_[3] = {
    -0.23505281376700338, -0.16539298000316044, 0.06070456589352161};

/* What numbers between low and high are off by at most. */
static inline void model_farther_(int n, const double number[], double low[], const double high[]) {
    int k;
    for (k = 0; k < n; ++k) {
        const double above = high[k] - number[k], below = number[k] - low[k];
        low[k] = (above > below ? above : below) + 0x1p-52 * (1.0 + model_modulus_(number[k]));
    }
}
/* Adds n numbers of a member by their weights, from a column on, and what they are off by. */
static inline void model_add_(int column, int n, const double number[], const double off[], double sums[],
                          double reach[]) {
    int i, k;
    for (k = 0; k < model_n_values; ++k) {
        for (i = 0; i < n; ++i) {
            const double weight = model_weights_[k * 18 + column + i];
            sums[k] += weight * number[i];
            reach[k] += model_modulus_(weight) * (1.000001 * off[i] + 2.4669155607170977e-15 * model_modulus_(number[i]));
        }
    }
}
/* Sums of the members' numbers by weight, and their bounds; 0 for a row that is not finite: NaN, with infinite bounds. */
static inline int model_evaluate_(const float row[], double values[], float bounds[]) {
    double reach[model_n_values], number[3], off[3];
    double high[3];
    float bound[3];
    double value[3];
    int is_known = 1, k;
    for (k = 0; k < model_n_values; ++k) {
        values[k] = model_addends_[k];
        reach[k] = 2.4669155607170977e-15 * model_modulus_(values[k]);
    }
    is_known &= model_member_0_evaluate_(row, value, bound);
    model_member_0_scores_(value, number);
    model_member_0_score_ends_(value, bound, off, high);
    model_farther_(3, number, off, high);
    model_add_(0, 3, number, off, values, reach);
    is_known &= model_member_1_evaluate_(row, value, bound);
    model_member_1_scores_(value, number);
    model_member_1_score_ends_(value, bound, off, high);
    model_farther_(3, number, off, high);
    model_add_(3, 3, number, off, values, reach);
    is_known &= model_member_2_row_shares_(row, number, off, high);
    model_farther_(3 + 0, number, off, high);
    model_add_(6, 3, number + 0, off + 0, values, reach);
    is_known &= model_member_3_row_shares_(row, number, off, high);
    model_farther_(3 + 0, number, off, high);
    model_add_(9, 3, number + 0, off + 0, values, reach);
    is_known &= model_member_4_row_shares_(row, number, off, high);
    model_farther_(3 + 0, number, off, high);
    model_add_(12, 3, number + 0, off + 0, values, reach);
    is_known &= model_member_5_evaluate_(row, number, bound);
    for (k = 0; k < 3; ++k) off[k] = (double)bound[k];
    model_add_(15, 3, number, off, values, reach);
    for (k = 0; k < model_n_values; ++k) is_known &= model_modulus_(values[k]) < 1e37;
    for (k = 0; k < model_n_values; ++k) {
        values[k] = is_known ? values[k] : (double)model_float_of_(0x7FC00000u);
        bounds[k] = is_known ? model_above_(reach[k]) : model_float_of_(0x7F800000u);
    }
    return is_known;
}

static inline void model_scores_(const double values[], double scores[]) {
    int c;
    for (c = 0; c < model_n_labels; ++c) scores[c] = values[c];
}
/* Between what they lie for all values within the bounds. */
static inline void model_score_ends_(const double values[], const float bounds[], double lowest[], double highest[]) {
    int c;
    for (c = 0; c < model_n_labels; ++c) {
        const double reach = (double)bounds[c] * (1.0 + 0x1p-40) + 0x1p-50 * model_modulus_(values[c]);
        lowest[c] = values[c] - reach;
        highest[c] = values[c] + reach;
    }
}

/* The first of the best scores. */
static inline int model_winner_(const double values[]) {
    double scores[model_n_labels];
    int best = 0, c;
    model_scores_(values, scores);
    for (c = 1; c < model_n_labels; ++c) best = scores[c] > scores[best] ? c : best;
    return best;
}
/* Whether the score of the winner is the best for all values within the bounds. */
static inline int model_is_settled_(const double values[], const float bounds[], int winner) {
    double lowest[model_n_labels], highest[model_n_labels];
    int c;
    model_score_ends_(values, bounds, lowest, highest);
    for (c = 0; c < model_n_labels; ++c) {
        if (c != winner && !(lowest[winner] > highest[c] || (lowest[winner] == highest[c] && winner < c))) return 0;
    }
    return 1;
}

/* The position of a row's label; 0 for a row that is not finite; whether it is proven to be the exact model's, unless nobody asks. */
static inline int model_label_(const float row[], int *is_proven) {
    double values[model_n_values];
    float bounds[model_n_values];
    const int is_known = model_evaluate_(row, values, bounds), winner = is_known ? model_winner_(values) : 0;
    if (is_proven) *is_proven = is_known && model_is_settled_(values, bounds, winner);
    return winner;
}

static inline float model_with_narrowing_(double value, float bound) {
    const double modulus = value < 0.0 ? -value : value;
    return (float)(((double)bound + modulus * 0x1p-23) * (1.0 + 0x1p-22) + 1e-37);
}

/* Decision values of each label, by position: the largest wins; NaN for a row that is not finite. */
static inline void model_decision_values(const float row[], float values[]) {
    double exact[model_n_values];
    float bounds[model_n_values];
    int k;
    (void)model_evaluate_(row, exact, bounds);
    for (k = 0; k < model_n_values; ++k) values[k] = (float)exact[k];
}
/* What |value - exact value| never exceeds, for each of model_decision_values; infinite for a row that is not finite. */
static inline void model_error_bounds(const float row[], float bounds[]) {
    double values[model_n_values];
    int k;
    if (!model_evaluate_(row, values, bounds)) return;
    for (k = 0; k < model_n_values; ++k) bounds[k] = model_with_narrowing_(values[k], bounds[k]);
}

/* The position of the row's label in model_labels; 0 for a row that is not finite. */
static inline int model_predict(const float row[]) { return model_label_(row, (int *)0); }
/* The same, but -1 where the label is not proven to be the exact model's. */
static inline int model_predict_if_certain(const float row[]) {
    int is_proven;
    const int label = model_label_(row, &is_proven);
    return is_proven ? label : -1;
}
/* 1 where the label is proven to be the exact model's, else 0. */
static inline int model_is_certain(const float row[]) { return model_predict_if_certain(row) >= 0; }

#endif

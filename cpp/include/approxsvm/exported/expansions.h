/* Expansions around centers in exported headers: forms, norms, the nearest center. Sums are added in a different
   order than in the core (backends/c99/source.py). `model` is a placeholder for the header's name, and a header
   contains only the parts that its model needs (backends/c99/program.py). */

#ifdef MODEL_CELL
/* The index in model_bounds_ for half_s = s / 2. */
static inline int model_cell_(float half_s) {
    const uint32_t first = model_first_cell_;
    uint32_t cell;
    if (!(half_s < model_end_of_cells_)) return model_n_cells_ - 1;
    cell = approxsvm_bits_of_float(half_s) >> model_cell_shift_;
    return cell < first ? 0 : (int)(cell - first) + 1;
}
#endif

#ifdef MODEL_LINEAR
static inline float model_linear_form_(const model_T* l, const float u[]) {
    float form = 0.0f;
    int j;
    for (j = 0; j < model_n_varying_; ++j) form += (float)l[j] * u[j];
    return form;
}
#endif

#ifdef MODEL_QUADRATIC
/* sum_j l_j u_j + sum over i <= j of q_ij u_i u_j; q is in panels of eight rows, l may be null. */
static inline float model_quadratic_form_(const model_T* q, const model_T* l, int n, const float u[]) {
    const int whole = n - n % 8, rest = n - whole;
    float form = 0.0f;
    int lane, first, i, j, k;
    for (lane = 0; lane < 8 && n >= 8; ++lane) {
        const model_T* panel = q + lane;
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

#ifdef MODEL_NORM_PLAIN
static inline float model_sq_norm_(const float u[]) {
    float sum = 0.0f;
    int j;
    for (j = 0; j < model_n_varying_; ++j) sum += u[j] * u[j];
    return sum;
}
#endif

#ifdef MODEL_NORM_IN_LANES
static inline float model_sq_norm_(const float u[]) {
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
}
#endif

#ifdef MODEL_PART_2
/* Homogeneous polynomials, sum_i u_i part(u_i ...); *next points to their coefficients and moves past them. */
static inline float model_part_2_(const model_T** next, int n, const float u[]) {
    const model_T* const q = *next;
    *next += n * (n + 1) / 2;
    return model_quadratic_form_(q, (const model_T*)0, n, u);
}
#endif

#ifdef MODEL_ROUTER
/* Among the slots of panels first ... end - 1, the one nearest to y: it has the least ||x||^2 / 2 - x.y. The lowest
   eight bits of a score hold the panel's number. */
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

#ifdef MODEL_SLICE
/* Moves the varying features to the front; returns the squared distance to the center's slice, in scaled coordinates.
 */
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
/* An upper bound of sqrt(2 gamma) times the distance to the slice; infinite if that is 1.415 or more. */
static inline float model_slice_distance_(float off_sq) {
    const float x = model_theta_above_ * off_sq;
    float root;
    if (!(x < 2.0f)) return approxsvm_infinity32();
    if (!(x > 1e-30f)) return 2e-15f;
    root = approxsvm_float_of_bits((approxsvm_bits_of_float(x) >> 1) + 0x1FC00000u);
    root = 0.5f * (root + x / root);
    root = 0.5f * (root + x / root);
    return 1.001f * root + 1e-15f;
}
#endif

#ifdef MODEL_FORM
static inline void model_sums_(const float u[], double values[]) {
    int k;
    for (k = 0; k < model_n_values; ++k) {
        const float* const l = model_degree_1_ + k * model_size_1_;
        values[k] += (double)model_quadratic_form_(model_degree_2_ + k * model_size_2_, l, model_n_varying_, u);
    }
}
#endif

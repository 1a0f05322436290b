// Evaluates expansions at the coordinates of rows. Nothing here allocates, throws, prints or keeps state: the caller
// provides a workspace, and several threads may use one model with a workspace each.
#ifndef APPROXSVM_EXPANSION_DECISION_FUNCTION_HPP
#define APPROXSVM_EXPANSION_DECISION_FUNCTION_HPP

#include <cmath>

#include "../model_view.hpp"
#include "../simd/block.hpp"
#include "../simd/exp.hpp"
#include "../status.hpp"
#include "polynomial.hpp"
#include "router.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

constexpr std::size_t max_registers = 3;
constexpr std::size_t block_rows = max_registers * static_cast<std::size_t>(lanes);
// Maximum number of rows to evaluate one at a time, which is faster than a block of mostly empty lanes.
constexpr std::size_t max_single_rows = 4;

// Bytes of scratch memory that every prediction needs per thread.
constexpr std::size_t workspace_bytes(std::size_t n_features) {
    return (n_features * block_rows + 4 * block_rows) * sizeof(float) + 64;
}

APPROXSVM_INLINE float* align_workspace(void* workspace) {
    const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(workspace);
    return reinterpret_cast<float*>((address + 63) / 64 * 64);
}

// --- one expansion

// One decision function around one center.
struct Expansion {
    const float* center;
    const float* linear;
    const float* quadratic;  // null for degree 1
    const float* higher;
    const float* direction;  // or null
    const ExpansionNumbers* numbers;
    double intercept;
};

// Returns the decision function of form number `form` of a center. A majority class has one form for each of its
// pairs with the other classes, in order.
inline std::size_t decision_of(const ModelView& model, std::size_t center, std::size_t form) {
    if (!model.majority_only) return form;
    const std::size_t w = model.majority_classes[center], n = model.n_labels;
    return form < w ? pair_position(n, form, w) : pair_position(n, w, form + 1);
}

// Returns form number `form` of a center, for the decision function decision_of().
inline Expansion expansion_of(const ModelView& model, std::size_t center, std::size_t form = 0) {
    const std::size_t n = model.n_varying, e = center * model.n_forms + form, triangle = e * triangle_size(n);
    return {model.centers + center * model.n_features,
            model.linear + e * n,
            model.quadratic ? model.quadratic + triangle : nullptr,
            model.higher ? model.higher + e * n_higher(n, model.degree) : nullptr,
            model.direction ? model.direction + triangle : nullptr,
            model.expansions + e,
            model.decisions[decision_of(model, center, form)].intercept};
}

// An expansion up to degree 2, before the intercept and the Gaussian factor.
struct Value {
    double inner;  // constant + forms
    float half_s;
    double gaussian;  // output_scale exp(-half_s); 0 if float32 cannot hold the factor
};

// The factor is also 0 for rows so far out that their forms overflow.
APPROXSVM_INLINE double decision_value(const Expansion& expansion, const Value& value) {
    return expansion.intercept + (value.gaussian > 0.0 ? value.gaussian * value.inner : 0.0);
}

APPROXSVM_INLINE Value make_value(const Expansion& expansion, float form, float half_s, float gaussian) {
    return {expansion.numbers->constant + static_cast<double>(form), half_s,
            half_s <= -exp_min_argument ? expansion.numbers->output_scale * static_cast<double>(gaussian) : 0.0};
}

// Computes linear.u and ||u||^2 of a block, with one lane per row, and of one row.
template <int Registers, class Real>
inline void linear_block(const Real* linear, std::size_t n_features, const Real* block, Real* form, Real* sq_norm) {
    using Register = typename RegisterOf<Real>::type;
    constexpr int width = lanes_of<Real>, stride = Registers * width;
    Register total[Registers], sq[Registers];
    APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) total[v] = sq[v] = set1(Real{0});
    for (std::size_t j = 0; j < n_features; ++j, block += stride) {
        const Register l = set1(linear[j]);
        APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) {
            const Register u = load(block + v * width);
            total[v] = fmadd(l, u, total[v]);
            sq[v] = fmadd(u, u, sq[v]);
        }
    }
    APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) {
        store(form + v * width, total[v]);
        store(sq_norm + v * width, sq[v]);
    }
}
inline void linear_row(const float* linear, std::size_t n_features, const float* u, float& form, float& sq_norm) {
    form = sq_norm = 0.0f;
    for (std::size_t j = 0; j < n_features; ++j) {
        form += linear[j] * u[j];
        sq_norm += u[j] * u[j];
    }
}

// Evaluates the rows in `block`; true if all their squared norms are finite.
template <int Registers>
inline bool evaluate_block(const ModelView& model, const Expansion& expansion, const float* block, float* scratch,
                           std::size_t n_rows, Value* values) {
    constexpr std::size_t width = Registers * static_cast<std::size_t>(lanes);
    float* form = scratch;
    float* half_s = scratch + block_rows;
    float* gaussian = scratch + 2 * block_rows;
    if (expansion.quadratic) {
        quadratic_block<Registers>(expansion.quadratic, expansion.linear, model.n_varying, block, form, half_s);
    } else {
        linear_block<Registers>(expansion.linear, model.n_varying, block, form, half_s);
    }
    const f32v half_theta = set1(model.half_theta), minus_one = set1(-1.0f);
    for (std::size_t i = 0; i < width; i += lanes) {
        const f32v h = mul(load(half_s + i), half_theta);
        store(half_s + i, h);
        store(gaussian + i, exp_nonpositive(mul(h, minus_one)));
    }
    bool finite = true;
    for (std::size_t i = 0; i < n_rows; ++i) {
        values[i] = make_value(expansion, form[i], half_s[i], gaussian[i]);
        finite &= half_s[i] <= largest_float;
    }
    return finite;
}

// Evaluates one row u of n_varying floats.
inline void forms_row(const ModelView& model, const Expansion& expansion, const float* u, float& form, float& sq_norm) {
    APPROXSVM_COUNT_WORK(static_cast<double>(model.n_varying));
    if (expansion.quadratic) {
        APPROXSVM_COUNT_WORK(static_cast<double>(n_monomials(model.n_varying, 2)));
        quadratic_row(expansion.quadratic, expansion.linear, model.n_varying, u, form, sq_norm);
    } else {
        linear_row(expansion.linear, model.n_varying, u, form, sq_norm);
    }
}
inline Value evaluate_row(const ModelView& model, const Expansion& expansion, const float* u) {
    float form, sq_norm, gaussian[lanes];
    forms_row(model, expansion, u, form, sq_norm);
    const float half_s = model.half_theta * sq_norm;
    store(gaussian, exp_nonpositive(set1(-half_s)));
    return make_value(expansion, form, half_s, gaussian[0]);
}

// Returns the coefficients of the part of degree k > 2.
inline const float* part_of_degree(const Expansion& expansion, std::size_t n_varying, int k) {
    return expansion.higher + n_higher(n_varying, k - 1);
}

// --- varying features

// Moves the varying features to the front of a block; `off_sq` becomes the squared distance of each lane to the slice,
// in scaled coordinates.
template <int Registers>
inline void keep_varying_block(const ModelView& model, float* block, float* off_sq) {
    constexpr std::size_t stride = Registers * static_cast<std::size_t>(lanes);
    f32v off[Registers];
    APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) off[v] = zero();
    std::size_t kept = 0;
    for (std::size_t j = 0; model.varying && j < model.n_features; ++j) {
        const bool varies = kept < model.n_varying && model.varying[kept] == j;
        float* to = block + kept * stride;
        APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) {
            const f32v u = load(block + j * stride + v * lanes);
            if (varies) {
                store(to + v * lanes, u);
            } else {
                off[v] = fmadd(u, u, off[v]);
            }
        }
        kept += varies;
    }
    APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) store(off_sq + v * lanes, off[v]);
}

// Does the same for one row; returns its squared distance.
inline float keep_varying_row(const ModelView& model, float* u) {
    float off_sq = 0.0f;
    std::size_t kept = 0;
    for (std::size_t j = 0; model.varying && j < model.n_features; ++j) {
        if (kept < model.n_varying && model.varying[kept] == j) {
            u[kept++] = u[j];
        } else {
            off_sq += u[j] * u[j];
        }
    }
    return off_sq;
}

// --- without bounds

// These functions are for programs that use the expansion alone; evaluate() in evaluate.hpp also handles bounds, exact
// values and sparse rows. Scratch memory of decision_function(): the workspace, then n_features zeros.
constexpr std::size_t decision_function_bytes(std::size_t n_features) {
    return workspace_bytes(n_features) + (n_features + panel_rows) * sizeof(float) + 64;
}

template <class Real>
inline Status decide_row(const ModelView& model, const Expansion& expansion, const Real* row,
                         std::ptrdiff_t column_stride, const float* zeros, float* u, double& decision) {
    load_row(model.n_features, expansion.center, model.input_scale, row, column_stride, u);
    const float off_sq = keep_varying_row(model, u);
    Value value = evaluate_row(model, expansion, u);
    for (int k = 3; k <= model.degree; ++k) {
        const float* part = part_of_degree(expansion, model.n_varying, k);
        value.inner += static_cast<double>(part_row(part, k, zeros, model.n_varying, u));
    }
    decision = decision_value(expansion, value);
    if (value.half_s <= largest_float && off_sq <= largest_float) return Status::ok;
    return all_finite(row, column_stride, model.n_features) ? Status::ok : Status::not_finite;
}

// Evaluates up to Registers * lanes rows.
template <int Registers, class Real>
inline Status decide_block(const ModelView& model, const Expansion& expansion, const DenseRows<Real>& rows,
                           const float* zeros, float* scratch, double* decision_values) {
    constexpr std::size_t stride = Registers * static_cast<std::size_t>(lanes), width = lanes;
    float* block = scratch + 4 * block_rows;
    const Real* row[stride] = {};
    for (std::size_t i = 0; i < rows.n_rows; ++i) {
        row[i] = rows.values + static_cast<std::ptrdiff_t>(i) * rows.row_stride;
    }
    for (std::size_t first = 0; first < stride; first += width) {
        const std::size_t left = rows.n_rows > first ? rows.n_rows - first : 0;
        load_lanes(model.n_features, expansion.center, model.input_scale, row + first, rows.column_stride,
                   left < width ? left : width, block + first, stride);
    }
    float off_sq[stride];
    keep_varying_block<Registers>(model, block, off_sq);
    Value values[stride];
    const bool finite = evaluate_block<Registers>(model, expansion, block, scratch, rows.n_rows, values);
    for (int k = 3; k <= model.degree; ++k) {
        float part[stride];
        part_block<Registers>(part_of_degree(expansion, model.n_varying, k), k, zeros, model.n_varying, block, part);
        for (std::size_t i = 0; i < rows.n_rows; ++i) values[i].inner += static_cast<double>(part[i]);
    }
    for (std::size_t i = 0; i < rows.n_rows; ++i) {
        decision_values[i] = decision_value(expansion, values[i]);
        // A row may overflow, but must not hold NaN or infinity.
        if (!(finite && off_sq[i] <= largest_float) && !all_finite(row[i], rows.column_stride, model.n_features))
            return Status::not_finite;
    }
    return Status::ok;
}

// Fills the zeros after the workspace.
inline float* fill_zeros(std::size_t n_features, float* scratch) {
    float* zeros = scratch + workspace_bytes(n_features) / sizeof(float);
    for (std::size_t j = 0; j < n_features + panel_rows; ++j) zeros[j] = 0.0f;
    return zeros;
}

// Computes values of one expansion, with any center.
template <class Real>
inline Status decision_function_about(const ModelView& model, std::size_t center, std::size_t form,
                                      const DenseRows<Real>& rows, double* decision_values, void* memory) {
    float* scratch = align_workspace(memory);
    const float* zeros = fill_zeros(model.n_features, scratch);
    const Expansion expansion = expansion_of(model, center, form);
    const bool one_by_one = rows.n_rows <= max_single_rows;
    DenseRows<Real> part = rows;
    for (std::size_t first = 0; first < rows.n_rows; first += part.n_rows) {
        const std::size_t left = rows.n_rows - first;
        part.n_rows = one_by_one ? 1 : left < block_rows ? left : block_rows;
        part.values = rows.values + static_cast<std::ptrdiff_t>(first) * rows.row_stride;
        const std::size_t registers = (part.n_rows + lanes - 1) / lanes;
        double* values = decision_values + first;
        Status status;
        if (one_by_one) {
            float* u = scratch + 4 * block_rows;
            status = decide_row(model, expansion, part.values, rows.column_stride, zeros, u, *values);
        } else {
            status = registers == 3   ? decide_block<3>(model, expansion, part, zeros, scratch, values)
                     : registers == 2 ? decide_block<2>(model, expansion, part, zeros, scratch, values)
                                      : decide_block<1>(model, expansion, part, zeros, scratch, values);
        }
        if (status != Status::ok) return status;
    }
    return Status::ok;
}

// Computes values of all decision functions; each row uses a center near it. `memory` has decision_function_bytes.
template <class Real>
inline Status expand_rows(const ModelView& model, const DenseRows<Real>& rows, double* decision_values, void* memory) {
    if (model.n_centers == 1 && model.n_decisions == 1)
        return decision_function_about(model, 0, 0, rows, decision_values, memory);
    float* scratch = align_workspace(memory);
    const float* zeros = fill_zeros(model.n_features, scratch);
    float* u = scratch + 4 * block_rows;
    for (std::size_t i = 0; i < rows.n_rows; ++i) {
        const Real* row = rows.values + static_cast<std::ptrdiff_t>(i) * rows.row_stride;
        load_row(model.n_features, model.center, model.input_scale, row, rows.column_stride, u);
        const std::size_t center = model.n_centers > 1 ? route(model, u) : 0;
        for (std::size_t k = 0; k < model.n_decisions; ++k) {
            const Status status = decide_row(model, expansion_of(model, center, k), row, rows.column_stride, zeros, u,
                                             decision_values[i * model.n_decisions + k]);
            if (status != Status::ok) return status;
        }
    }
    return Status::ok;
}

// Interprets numbers as contiguous raw rows.
template <class Real>
inline Status whole_rows(const ModelView& model, Span<const Real> numbers, DenseRows<Real>& rows) {
    const std::size_t d = model.n_raw_features;
    if (numbers.size % d != 0) return Status::wrong_row_size;
    rows = {numbers.data, numbers.size / d, static_cast<std::ptrdiff_t>(d), 1};
    return Status::ok;
}

// Computes decision values of the expansion, (n_rows, n_decisions), with the orientation of Evaluation and without
// bounds. Memory: decision_function_bytes(model.n_features).
template <class Real>
inline Status decision_function(const ModelView& model, const DenseRows<Real>& rows, Span<double> decision_values,
                                Span<unsigned char> memory) {
    if (model.n_centers == 0 || model.majority_only) return Status::no_expansion;
    if (model.has_input_map) return Status::needs_input_map;
    if (decision_values.size / model.n_decisions < rows.n_rows ||
        memory.size < decision_function_bytes(model.n_features))
        return Status::buffer_too_small;
    return expand_rows(model, rows, decision_values.data, memory.data);
}
inline Status decision_function(const ModelView& model, Span<const float> rows, Span<double> decision_values,
                                Span<unsigned char> memory) {
    DenseRows<float> view;
    const Status status = whole_rows(model, rows, view);
    return status == Status::ok ? decision_function(model, view, decision_values, memory) : status;
}
inline Status decision_function(const ModelView& model, Span<const double> rows, Span<double> decision_values,
                                Span<unsigned char> memory) {
    DenseRows<double> view;
    const Status status = whole_rows(model, rows, view);
    return status == Status::ok ? decision_function(model, view, decision_values, memory) : status;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

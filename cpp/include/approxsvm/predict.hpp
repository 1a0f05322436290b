// From rows to decision values. Nothing here allocates, throws, prints or keeps state: the caller lends a
// workspace, and several threads may use one model with a workspace each.
#pragma once

#include <cmath>

#include "block.hpp"
#include "exp.hpp"
#include "model_view.hpp"
#include "quadratic.hpp"
#include "status.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

constexpr std::size_t max_registers = 3;
constexpr float largest_float = 0x1.fffffep127f;  // not a function of std, which -O0 emits as a weak symbol
constexpr std::size_t block_rows = max_registers * static_cast<std::size_t>(lanes);
// Up to this many rows are evaluated one at a time, which is faster than a block of mostly empty lanes.
constexpr std::size_t max_single_rows = 4;

// Bytes of scratch memory that every prediction needs per thread.
constexpr std::size_t workspace_bytes(std::size_t n_features) {
    return (n_features * block_rows + 4 * block_rows) * sizeof(float) + 64;
}

APPROXSVM_INLINE float* align_workspace(void* workspace) {
    const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(workspace);
    return reinterpret_cast<float*>((address + 63) / 64 * 64);
}

// intercept + output_scale exp(-half_sq_distance) (constant + form); the Gaussian factor vanishes where
// float32 cannot hold it, also for rows so far out that `form` has overflowed.
APPROXSVM_INLINE double decision_value(const ModelView& model, float form, float half_s, float gaussian) {
    const double inner =
        model.output_scale * static_cast<double>(gaussian) * (model.constant + static_cast<double>(form));
    return model.intercept + (half_s <= -exp_min_argument ? inner : 0.0);
}

// Decision values of the rows that lie in `block`; true when all their squared norms are finite.
template <int Registers>
inline bool evaluate_block(const ModelView& model, const float* block, float* scratch, std::size_t n_rows,
                           double* decision_values) {
    constexpr std::size_t width = Registers * static_cast<std::size_t>(lanes);
    float* form = scratch;
    float* half_s = scratch + block_rows;
    float* gaussian = scratch + 2 * block_rows;
    quadratic_block<Registers>(model.quadratic, model.linear, model.n_features, block, form, half_s);
    const f32v half_theta = set1(model.half_theta), minus_one = set1(-1.0f);
    for (std::size_t i = 0; i < width; i += lanes) {
        const f32v h = mul(load(half_s + i), half_theta);
        store(half_s + i, h);
        store(gaussian + i, exp_nonpositive(mul(h, minus_one)));
    }
    bool finite = true;
    for (std::size_t i = 0; i < n_rows; ++i) {
        decision_values[i] = decision_value(model, form[i], half_s[i], gaussian[i]);
        finite &= half_s[i] <= largest_float;
    }
    return finite;
}

// Decision values of up to Registers * lanes rows; half_s of each is left at scratch + block_rows.
template <int Registers, class Real>
inline Status predict_block(const ModelView& model, const DenseRows<Real>& rows, float* scratch,
                            double* decision_values) {
    constexpr std::size_t stride = Registers * static_cast<std::size_t>(lanes);
    float* block = scratch + 4 * block_rows;
    for (std::size_t first = 0; first < stride; first += lanes) {
        const std::size_t left = rows.n_rows > first ? rows.n_rows - first : 0;
        load_lanes(model, model.center, rows.values + static_cast<std::ptrdiff_t>(left ? first : 0) * rows.row_stride,
                   rows.row_stride, rows.column_stride, left, block + first, stride);
    }
    if (evaluate_block<Registers>(model, block, scratch, rows.n_rows, decision_values)) return Status::ok;
    for (std::size_t i = 0; i < rows.n_rows; ++i) {  // an overflow is legitimate, NaN and infinity are not
        const Real* row = rows.values + static_cast<std::ptrdiff_t>(i) * rows.row_stride;
        if (!all_finite(row, rows.column_stride, model.n_features)) return Status::not_finite;
    }
    return Status::ok;
}

// One row, and its half_s.
template <class Real>
inline Status predict_row(const ModelView& model, const Real* row, std::ptrdiff_t column_stride, float* workspace,
                          double& value, float& half_s) {
    const std::size_t n_features = model.n_features;
    float* u = workspace + 4 * block_rows;
    std::size_t j = 0;
    if (column_stride == 1) {
        constexpr std::size_t width = lanes;
        for (; j + width <= n_features; j += width) {
            store(u + j, load_shifted(row + j, model.center + j, model.input_scale));
        }
    }
    for (; j < n_features; ++j) {
        u[j] = shifted(row[static_cast<std::ptrdiff_t>(j) * column_stride], model.center[j], model.input_scale);
    }
    float form, sq_norm, gaussian[lanes];
    quadratic_row(model.quadratic, model.linear, n_features, u, form, sq_norm);
    half_s = model.half_theta * sq_norm;
    store(gaussian, exp_nonpositive(set1(-half_s)));
    value = decision_value(model, form, half_s, gaussian[0]);
    if (half_s <= largest_float) return Status::ok;
    return all_finite(row, column_stride, n_features) ? Status::ok : Status::not_finite;
}

// Decision values of any number of rows, by blocks. A row's value does not depend on the rows beside it, nor
// on where a batch is cut at multiples of block_rows.
template <class Real>
inline Status decide_in_blocks(const ModelView& model, DenseRows<Real> rows, double* decision_values, void* workspace) {
    float* scratch = align_workspace(workspace);
    DenseRows<Real> part = rows;
    for (std::size_t first = 0; first < rows.n_rows; first += part.n_rows) {
        const std::size_t left = rows.n_rows - first;
        part.n_rows = left < block_rows ? left : block_rows;
        part.values = rows.values + static_cast<std::ptrdiff_t>(first) * rows.row_stride;
        const std::size_t registers = (part.n_rows + lanes - 1) / lanes;
        const Status status = registers == 3   ? predict_block<3>(model, part, scratch, decision_values + first)
                              : registers == 2 ? predict_block<2>(model, part, scratch, decision_values + first)
                                               : predict_block<1>(model, part, scratch, decision_values + first);
        if (status != Status::ok) return status;
    }
    return Status::ok;
}

// Decision values f(z) of `rows.n_rows` rows of model.n_features columns, in the orientation of the source
// model: for two classes f > 0 means the first label. Up to max_single_rows rows are summed in another order
// than larger batches.
template <class Real>
inline Status decision_function(const ModelView& model, DenseRows<Real> rows, double* decision_values,
                                void* workspace) {
    if (rows.n_rows > max_single_rows) return decide_in_blocks(model, rows, decision_values, workspace);
    for (std::size_t i = 0; i < rows.n_rows; ++i) {
        const Real* row = rows.values + static_cast<std::ptrdiff_t>(i) * rows.row_stride;
        float half_s;
        const Status status =
            predict_row(model, row, rows.column_stride, align_workspace(workspace), decision_values[i], half_s);
        if (status != Status::ok) return status;
    }
    return Status::ok;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

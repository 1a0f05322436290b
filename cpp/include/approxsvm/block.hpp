// Brings rows into the form that the block microkernel wants: shifted by the center, scaled, one row per SIMD
// lane.
#pragma once

#include <cmath>

#include "model_view.hpp"
#include "simd.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// One coordinate: u = input_scale (z - center). float64 rows round once, float32 rows in the difference.
APPROXSVM_INLINE float shifted(double z, float center, double scale) {
    return static_cast<float>((z - static_cast<double>(center)) * scale);
}
APPROXSVM_INLINE float shifted(float z, float center, double scale) {
    return (z - center) * static_cast<float>(scale);
}

// lanes rows with unit column stride -> columns [first, first + lanes) of the block.
template <class Real>
APPROXSVM_INLINE void load_square(const float* center, double scale, const Real* row, std::ptrdiff_t row_stride,
                                  std::size_t n_rows, std::size_t first, float* block, std::size_t block_stride) {
    f32v r[lanes];
    if (n_rows >= static_cast<std::size_t>(lanes)) {
        APPROXSVM_UNROLL for (int i = 0; i < lanes; ++i) {
            r[i] = load_shifted(row + i * row_stride + first, center + first, scale);
        }
    } else {
        for (int i = 0; i < lanes; ++i) {
            r[i] = static_cast<std::size_t>(i) < n_rows
                       ? load_shifted(row + i * row_stride + first, center + first, scale)
                       : zero();
        }
    }
    transpose(r);
    APPROXSVM_UNROLL for (int i = 0; i < lanes; ++i)
        store(block + (first + static_cast<std::size_t>(i)) * block_stride, r[i]);
}

// The first min(n_rows, lanes) rows at `row` into one register column of the block; missing rows become
// zeros.
template <class Real>
inline void load_lanes(const ModelView& model, const float* center, const Real* row, std::ptrdiff_t row_stride,
                       std::ptrdiff_t column_stride, std::size_t n_rows, float* block, std::size_t block_stride) {
    constexpr std::size_t width = lanes;
    const std::size_t n_features = model.n_features;
    if (column_stride == 1 && n_features >= width) {
        std::size_t first = 0;
        for (; first + width <= n_features; first += width) {
            load_square(center, model.input_scale, row, row_stride, n_rows, first, block, block_stride);
        }
        // The remainder overlaps columns that are there already, and writes the same numbers again.
        if (first < n_features)
            load_square(center, model.input_scale, row, row_stride, n_rows, n_features - width, block, block_stride);
        return;
    }
    const std::size_t used = n_rows < width ? n_rows : width;
    for (std::size_t j = 0; j < n_features; ++j) {
        const Real* z = row + static_cast<std::ptrdiff_t>(j) * column_stride;
        float* u = block + j * block_stride;
        if (row_stride == 1 && used == width) {
            for (std::size_t i = 0; i < width; ++i) u[i] = shifted(z[i], center[j], model.input_scale);
            continue;
        }
        std::size_t i = 0;
        for (; i < used; ++i)
            u[i] = shifted(z[static_cast<std::ptrdiff_t>(i) * row_stride], center[j], model.input_scale);
        for (; i < width; ++i) u[i] = 0.0f;
    }
}

template <class Real>
inline bool all_finite(const Real* row, std::ptrdiff_t column_stride, std::size_t n_features) {
    for (std::size_t j = 0; j < n_features; ++j) {
        if (!is_finite(row[static_cast<std::ptrdiff_t>(j) * column_stride])) return false;
    }
    return true;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

// Converts rows to the block microkernel's layout: shifted by the center and scaled, with one row per SIMD lane.
#ifndef APPROXSVM_SIMD_BLOCK_HPP
#define APPROXSVM_SIMD_BLOCK_HPP

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "../model_view.hpp"
#include "simd.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Returns one coordinate: u = input_scale (z - center). The result is rounded once; for float32 rows, only the
// difference is rounded.
APPROXSVM_INLINE float shifted(double z, float center, double scale) {
    return static_cast<float>((z - static_cast<double>(center)) * scale);
}
APPROXSVM_INLINE float shifted(float z, float center, double scale) {
    return (z - center) * static_cast<float>(scale);
}

// Copies the first n_rows of `lanes` rows with unit column stride to columns [first, first + lanes) of the block.
template <class Real>
APPROXSVM_INLINE void load_square(const float* center, double scale, const Real* const* rows, std::size_t n_rows,
                                  std::size_t first, float* block, std::size_t block_stride) {
    f32v r[lanes];
    if (n_rows >= static_cast<std::size_t>(lanes)) {
        APPROXSVM_UNROLL for (int i = 0; i < lanes; ++i) {
            r[i] = load_shifted(rows[i] + first, center + first, scale);
        }
    } else {
        for (int i = 0; i < lanes; ++i) {
            r[i] = static_cast<std::size_t>(i) < n_rows ? load_shifted(rows[i] + first, center + first, scale) : zero();
        }
    }
    transpose(r);
    APPROXSVM_UNROLL for (int i = 0; i < lanes; ++i)
        store(block + (first + static_cast<std::size_t>(i)) * block_stride, r[i]);
}

// Loads n_rows <= lanes rows from arbitrary addresses into one register column of the block; missing rows become zeros.
template <class Real>
APPROXSVM_INLINE void load_lanes(std::size_t n_features, const float* center, double scale, const Real* const* rows,
                                 std::ptrdiff_t column_stride, std::size_t n_rows, float* block,
                                 std::size_t block_stride) {
    constexpr std::size_t width = lanes;
    if (column_stride == 1 && n_features >= width) {
        std::size_t first = 0;
        for (; first + width <= n_features; first += width) {
            load_square(center, scale, rows, n_rows, first, block, block_stride);
        }
        // The last square overlaps columns that are already loaded, and writes the same values to them again.
        if (first < n_features) load_square(center, scale, rows, n_rows, n_features - width, block, block_stride);
        return;
    }
    bool adjacent = n_rows == width;
    for (std::size_t i = 1; i < n_rows; ++i) adjacent &= rows[i] - rows[0] == static_cast<std::ptrdiff_t>(i);
    for (std::size_t j = 0; j < n_features; ++j) {
        const std::ptrdiff_t offset = static_cast<std::ptrdiff_t>(j) * column_stride;
        float* u = block + j * block_stride;
        if (adjacent) {
            const Real* z = rows[0] + offset;
            for (std::size_t i = 0; i < width; ++i) u[i] = shifted(z[i], center[j], scale);
            continue;
        }
        std::size_t i = 0;
        for (; i < n_rows; ++i) u[i] = shifted(rows[i][offset], center[j], scale);
        for (; i < width; ++i) u[i] = 0.0f;
    }
}

// Loads one row, coordinate by coordinate. `u` must have space for whole registers.
template <class Real>
inline void load_row(std::size_t n_features, const float* center, double scale, const Real* row,
                     std::ptrdiff_t column_stride, float* u) {
    constexpr std::size_t width = lanes;
    std::size_t j = 0;
    if (column_stride == 1) {
        for (; j + width <= n_features; j += width) store(u + j, load_shifted(row + j, center + j, scale));
    }
    for (; j < n_features; ++j) {
        u[j] = shifted(row[static_cast<std::ptrdiff_t>(j) * column_stride], center[j], scale);
    }
}

// Checks that numbers are finite. Flags are as wide as the numbers, so that compilers can vectorize the comparison.
template <class Real>
inline bool all_finite(const Real* row, std::ptrdiff_t column_stride, std::size_t n_features) {
    using Note = std::conditional_t<sizeof(Real) == sizeof(float), std::uint32_t, std::uint64_t>;
    constexpr Real largest = sizeof(Real) == sizeof(float) ? static_cast<Real>(largest_float) : Real(largest_double);
    Note found = 0;
    if (column_stride == 1) {  // a loop vectorized by compilers
        for (std::size_t j = 0; j < n_features; ++j) found |= std::fabs(row[j]) <= largest ? Note{0} : Note{1};
        return found == 0;
    }
    for (std::size_t j = 0; j < n_features; ++j) {
        const Real value = row[static_cast<std::ptrdiff_t>(j) * column_stride];
        found |= std::fabs(value) <= largest ? Note{0} : Note{1};
    }
    return found == 0;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

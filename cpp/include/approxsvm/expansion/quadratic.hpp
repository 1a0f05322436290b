// The quadratic part of an expansion, linear.u + sum_{i <= j} quadratic_ij u_i u_j, for a block of rows, a single row
// or a sparse row.
//
// Storage order of the packed triangle: it is divided into "panels" of eight matrix rows. A panel of t <= 8 rows
// starting at row p contains the t x t triangle on the diagonal, column by column (column p + k: rows p .. p + k),
// then, for every later column in ascending order, the eight entries of that column. Only the last panel, which has no
// later columns, may have t < 8. To the right of the diagonal triangle, neighbors in a matrix row are therefore always
// eight elements apart, and the packed triangle has d (d + 1) / 2 elements.
#ifndef APPROXSVM_EXPANSION_QUADRATIC_HPP
#define APPROXSVM_EXPANSION_QUADRATIC_HPP

#include "../simd/simd.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

constexpr std::size_t panel_rows = 8;
constexpr std::size_t panel_triangle = panel_rows * (panel_rows + 1) / 2;

template <class Integer>
constexpr Integer triangle_size(Integer n_features) {
    return n_features * (n_features + 1) / 2;
}

// Returns the offset, in elements, of panel `panel`.
constexpr std::size_t panel_offset(std::size_t panel, std::size_t n_features) {
    return panel * panel_triangle + panel_rows * (panel * n_features - panel_rows * panel * (panel + 1) / 2);
}

// --- a block of rows, one SIMD lane per row

// Computes the products of the matrix rows [FirstRow, FirstRow + tile_rows) of one full panel with all columns from the
// diagonal on. `block` has the shape (n_features, Registers * lanes_of<Real>): rows are transposed into lanes.
template <int FirstRow, bool WithNorm, int Registers, class Real>
APPROXSVM_INLINE void add_tile(const Real* panel, const Real* linear, std::size_t first_column, std::size_t n_features,
                               const Real* block, typename RegisterOf<Real>::type (&total)[Registers],
                               typename RegisterOf<Real>::type (&sq_norm)[Registers]) {
    using Register = typename RegisterOf<Real>::type;
    constexpr int width = lanes_of<Real>, stride = Registers * width;
    Register sum[tile_rows][Registers];
    APPROXSVM_UNROLL for (int i = 0; i < tile_rows; ++i) {
        const Register start = set1(linear[FirstRow + i]);
        APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) sum[i][v] = start;
    }
    const Real* u = block + first_column * stride;
    APPROXSVM_UNROLL for (int k = FirstRow; k < FirstRow + tile_rows; ++k) {
        APPROXSVM_UNROLL for (int i = 0; i < tile_rows; ++i) {
            if (FirstRow + i > k) continue;
            const Register q = set1(panel[k * (k + 1) / 2 + FirstRow + i]);
            APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) {
                sum[i][v] = fmadd(q, load(u + k * stride + v * width), sum[i][v]);
            }
        }
    }
    for (int k = FirstRow + tile_rows; k < static_cast<int>(panel_rows); ++k) {
        APPROXSVM_UNROLL for (int i = 0; i < tile_rows; ++i) {
            const Register q = set1(panel[k * (k + 1) / 2 + FirstRow + i]);
            APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) {
                sum[i][v] = fmadd(q, load(u + k * stride + v * width), sum[i][v]);
            }
        }
    }
    const Real* q = panel + panel_triangle + FirstRow;
    const Real* end = block + n_features * stride;
    for (const Real* column = u + panel_rows * stride; column != end; column += stride, q += panel_rows) {
        Register x[Registers];
        APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) x[v] = load(column + v * width);
        APPROXSVM_UNROLL for (int i = 0; i < tile_rows; ++i) {
            const Register q_i = set1(q[i]);
            APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) sum[i][v] = fmadd(q_i, x[v], sum[i][v]);
        }
    }
    APPROXSVM_UNROLL for (int i = 0; i < tile_rows; ++i) {
        APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) {
            const Register x = load(u + (FirstRow + i) * stride + v * width);
            total[v] = fmadd(x, sum[i][v], total[v]);
            if (WithNorm) sq_norm[v] = fmadd(x, x, sq_norm[v]);
        }
    }
}

// Computes the products of the matrix rows [first_row, first_row + Rows) of the last, short panel with all columns from
// the diagonal on; `u` is the part of the block that begins at the panel's first column, with n_columns columns.
template <int Rows, int Registers, class Real>
APPROXSVM_INLINE void add_short_tile(const Real* panel, const Real* linear, const Real* u, int first_row, int n_columns,
                                     typename RegisterOf<Real>::type (&total)[Registers],
                                     typename RegisterOf<Real>::type (&sq_norm)[Registers]) {
    using Register = typename RegisterOf<Real>::type;
    constexpr int width = lanes_of<Real>, stride = Registers * width;
    Register sum[Rows][Registers];
    APPROXSVM_UNROLL for (int i = 0; i < Rows; ++i) {
        const Register start = set1(linear[first_row + i]);
        APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) sum[i][v] = start;
    }
    const auto add_column = [&](int column, int n_rows) APPROXSVM_INLINE_LAMBDA {
        const Real* const q = panel + column * (column + 1) / 2 + first_row;
        Register x[Registers];
        APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) x[v] = load(u + column * stride + v * width);
        APPROXSVM_UNROLL for (int i = 0; i < Rows; ++i) {
            if (i >= n_rows) continue;
            const Register q_i = set1(q[i]);
            APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) sum[i][v] = fmadd(q_i, x[v], sum[i][v]);
        }
    };
    APPROXSVM_UNROLL for (int k = 0; k < Rows; ++k) add_column(first_row + k, k + 1);
    for (int column = first_row + Rows; column < n_columns; ++column) add_column(column, Rows);
    APPROXSVM_UNROLL for (int i = 0; i < Rows; ++i) {
        APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) {
            const Register x = load(u + (first_row + i) * stride + v * width);
            total[v] = fmadd(x, sum[i][v], total[v]);
            sq_norm[v] = fmadd(x, x, sq_norm[v]);
        }
    }
}

// Adds a whole short panel of Rows matrix rows at once, because parts of high degree contain many forms with such
// panels.
template <int Rows, int Registers, class Real>
APPROXSVM_INLINE void add_short_panel(const Real* panel, const Real* linear, const Real* u,
                                      typename RegisterOf<Real>::type (&total)[Registers]) {
    using Register = typename RegisterOf<Real>::type;
    constexpr int width = lanes_of<Real>, stride = Registers * width;
    APPROXSVM_UNROLL for (int i = 0; i < Rows; ++i) {
        Register sum[Registers];
        APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) sum[v] = set1(linear[i]);
        APPROXSVM_UNROLL for (int j = i; j < Rows; ++j) {
            const Register q = set1(panel[j * (j + 1) / 2 + i]);
            APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) {
                sum[v] = fmadd(q, load(u + j * stride + v * width), sum[v]);
            }
        }
        APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) {
            const Register x = load(u + i * stride + v * width);
            total[v] = fmadd(x, sum[v], total[v]);
        }
    }
}

// For each of Registers * lanes_of<Real> rows u, computes form = linear.u + sum_{i <= j} quadratic_ij u_i u_j and, if
// WithNorm, sq_norm = ||u||^2.
template <int Registers, bool WithNorm = true, class Real>
inline void quadratic_block(const Real* quadratic, const Real* linear, std::size_t n_features, const Real* block,
                            Real* form, Real* sq_norm) {
    using Register = typename RegisterOf<Real>::type;
    constexpr int width = lanes_of<Real>, stride = Registers * width;
    Register total[Registers], sq[Registers];
    APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) total[v] = sq[v] = set1(Real{0});
    const Real* panel = quadratic;
    std::size_t first = 0;
    for (; first + panel_rows <= n_features; first += panel_rows) {
        add_tile<0, WithNorm, Registers>(panel, linear + first, first, n_features, block, total, sq);
        if constexpr (tile_rows < static_cast<int>(panel_rows)) {
            add_tile<tile_rows, WithNorm, Registers>(panel, linear + first, first, n_features, block, total, sq);
        }
        panel += panel_triangle + panel_rows * (n_features - first - panel_rows);
    }
    linear += first;
    block += first * stride;
    const int n_columns = static_cast<int>(n_features - first);
    if constexpr (WithNorm) {
        int row = n_columns / 4 * 4;
        if (row > 0) add_short_tile<4>(panel, linear, block, 0, n_columns, total, sq);
        if constexpr (!is_portable) {  // the remaining matrix rows in one pass
            const int left = n_columns - row;
            if (left == 3) add_short_tile<3>(panel, linear, block, row, n_columns, total, sq);
            if (left == 2) add_short_tile<2>(panel, linear, block, row, n_columns, total, sq);
            if (left >= 2) row = n_columns;
        }
        for (; row < n_columns; ++row) add_short_tile<1>(panel, linear, block, row, n_columns, total, sq);
    } else {
        switch (n_columns) {
            case 1:
                add_short_panel<1>(panel, linear, block, total);
                break;
            case 2:
                add_short_panel<2>(panel, linear, block, total);
                break;
            case 3:
                add_short_panel<3>(panel, linear, block, total);
                break;
            case 4:
                add_short_panel<4>(panel, linear, block, total);
                break;
            case 5:
                add_short_panel<5>(panel, linear, block, total);
                break;
            case 6:
                add_short_panel<6>(panel, linear, block, total);
                break;
            case 7:
                add_short_panel<7>(panel, linear, block, total);
                break;
            default:
                break;
        }
    }
    APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) {
        store(form + v * width, total[v]);
        if (WithNorm) store(sq_norm + v * width, sq[v]);
    }
}

// --- one row, one SIMD lane per matrix row

// Returns, for a single row u of n_features floats, lanes whose sum is linear.u + sum_{i <= j} quadratic_ij u_i u_j,
// and, if WithNorm, lanes whose sum is ||u||^2.
template <bool WithNorm>
APPROXSVM_INLINE f32x8 quadratic_lanes(const float* quadratic, const float* linear, std::size_t n_features,
                                       const float* u, f32x8& sq) {
    // Eight ones, then zeros: a window of this array masks entries of the triangle's next column.
    alignas(32) static constexpr float mask[15] = {1, 1, 1, 1, 1, 1, 1, 1};
    f32x8 total = set1x8(0.0f);
    const float* panel = quadratic;
    std::size_t first = 0;
    for (; first + panel_rows <= n_features; first += panel_rows) {
        f32x8 sum[4] = {load8(linear + first), set1x8(0.0f), set1x8(0.0f), set1x8(0.0f)};
        APPROXSVM_UNROLL for (int k = 0; k < static_cast<int>(panel_rows); ++k) {
            const f32x8 x = mul8(set1x8(u[first + static_cast<std::size_t>(k)]), load8(mask + 7 - k));
            sum[k % 4] = fmadd8(load8(panel + k * (k + 1) / 2), x, sum[k % 4]);
        }
        panel += panel_triangle;
        std::size_t j = first + panel_rows;
        for (; j + 4 <= n_features; j += 4, panel += 4 * panel_rows) {
            APPROXSVM_UNROLL for (std::size_t k = 0; k < 4; ++k) {
                sum[k] = fmadd8(load8(panel + k * panel_rows), set1x8(u[j + k]), sum[k]);
            }
        }
        for (; j < n_features; ++j, panel += panel_rows) sum[0] = fmadd8(load8(panel), set1x8(u[j]), sum[0]);
        const f32x8 x = load8(u + first);
        total = fmadd8(x, add8(add8(sum[0], sum[1]), add8(sum[2], sum[3])), total);
        if (WithNorm) sq = fmadd8(x, x, sq);
    }
    const std::size_t n_left = n_features - first;
    if (n_left == 0) return total;
    f32x8 sum[2] = {load8(linear + first, n_left), set1x8(0.0f)};
    for (std::size_t k = 0; k < n_left; ++k) {
        sum[k % 2] = fmadd8(load8(panel + k * (k + 1) / 2, k + 1), set1x8(u[first + k]), sum[k % 2]);
    }
    const f32x8 x = load8(u + first, n_left);
    if (WithNorm) sq = fmadd8(x, x, sq);
    return fmadd8(x, add8(sum[0], sum[1]), total);
}

// Computes linear.u + sum_{i <= j} quadratic_ij u_i u_j and ||u||^2 for a single row.
inline void quadratic_row(const float* quadratic, const float* linear, std::size_t n_features, const float* u,
                          float& form, float& sq_norm) {
    f32x8 sq = set1x8(0.0f);
    form = sum8(quadratic_lanes<true>(quadratic, linear, n_features, u, sq));
    sq_norm = sum8(sq);
}

// --- a sparse row

// Returns sum_{a <= b} quadratic(columns[a], columns[b]) values[a] values[b], computed in float64 with about
// n_nonzero^2 / 2 multiply-adds. Columns are strictly increasing and lie in [first_column, first_column + n_features).
template <class Coefficient, class Real, class Index>
inline double quadratic_sparse(const Coefficient* quadratic, std::size_t n_features, const Real* values,
                               const Index* columns, std::size_t n_nonzero, std::size_t first_column = 0) {
    double total = 0.0;
    for (std::size_t a = 0; a < n_nonzero; ++a) {
        const std::size_t i = static_cast<std::size_t>(columns[a]) - first_column;
        const std::size_t within = i % panel_rows, panel_column = first_column + i - within;
        const Coefficient* triangle = quadratic + panel_offset(i / panel_rows, n_features) + within;
        double sum[2] = {0.0, 0.0};
        std::size_t b = a;
        for (; b < n_nonzero; ++b) {  // columns in the diagonal triangle of the panel
            const std::size_t k = static_cast<std::size_t>(columns[b]) - panel_column;
            if (k >= panel_rows) break;
            sum[0] += static_cast<double>(triangle[k * (k + 1) / 2]) * static_cast<double>(values[b]);
        }
        const Coefficient* rectangle = triangle + panel_triangle;
        const std::size_t rectangle_first = panel_column + panel_rows;
        const auto term = [&](std::size_t c) {
            const std::size_t k = static_cast<std::size_t>(columns[c]) - rectangle_first;
            return static_cast<double>(rectangle[k * panel_rows]) * static_cast<double>(values[c]);
        };
        for (; b + 2 <= n_nonzero; b += 2) {
            sum[0] += term(b);
            sum[1] += term(b + 1);
        }
        if (b < n_nonzero) sum[0] += term(b);
        total += static_cast<double>(values[a]) * (sum[0] + sum[1]);
    }
    return total;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

// Kernel values of vectors on a grid. Coordinates are 16-bit integers times a power of two, `step`; rows are rounded to
// the grid. Compared with floats, a register multiplies twice as many, and half as many bytes are read.
//
// In steps, squared norms are at most most_steps_sq = 2^29. By Cauchy and Schwarz, the modulus of every partial sum of
// an inner product is at most as large. A squared distance is at most twice the sum of both squared norms, below 2^31.
// Sums of int32 are therefore exact in any order. Kernel values are
//
//     K = exp(-c D),    D = |q_z|^2 + |q_i|^2 - 2 q_z.q_i,    c = half_theta step^2
//
// with four roundings before exp: D to float32, c (two) and their product. The relative error of x = c D is at
// most 4.01 u. As x e^-x falls from x = 1 on, the error of K is at most
//
//     x <= 16:  16.1 * 4.01 u K;    x > 16:  4.1 u x e^-x <= 4.1 u * 16 exp(-16), where K is not below 2^-126 anyway.
//
// This file does not bound the effect of rounding to the grid. For vectors, it is the grid error of
// approxsvm/expansion/subspace.py. A row that is `off` steps off the grid moves by sqrt(2 half_theta) step `off`, in
// units of 1 / sqrt(2 gamma), and the sums change by W times that.
#ifndef APPROXSVM_EXACT_RBF_GRID_HPP
#define APPROXSVM_EXACT_RBF_GRID_HPP

#include "../simd/pairs.hpp"
#include "rbf_row.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

constexpr double most_steps_sq = 0x1p29;
// The step leaves room for rows that are a twentieth farther away than the vectors.
constexpr double room_for_rows = 1.05;

constexpr std::size_t pairs_for(std::size_t n_coordinates) {
    return (n_coordinates + 1) / 2;
}

// --- the vectors

// The grid step for vectors, (n_vectors, n_coordinates): the finest for which the norms are small enough. 0 if there is
// no such grid, or the target cannot use it.
inline float grid_step(const float* vectors, std::size_t n_vectors, std::size_t n_coordinates) {
    if (!multiplies_pairs) return 0.0f;
    double most = 0.0;
    for (std::size_t i = 0; i < n_vectors; ++i) {
        const double norm = sq_norm(vectors + i * n_coordinates, n_coordinates);
        most = norm > most ? norm : most;
    }
    if (!(most >= 0x1p-100 && most <= 0x1p100)) return 0.0f;
    const double finest = room_for_rows * std::sqrt(most / most_steps_sq);
    const float step = static_cast<float>(std::ldexp(1.0, static_cast<int>(std::ceil(std::log2(finest)))));
    const float per_unit = 1.0f / step;
    std::uint32_t off = 0;
    for (std::size_t k = 0; k < n_vectors * n_coordinates; ++k) {
        const float x = vectors[k] * per_unit;
        off |= static_cast<float>(static_cast<std::int32_t>(x)) != x ? 1u : 0u;
        if (k % 256 == 0 && off != 0) return 0.0f;
    }
    return off == 0 ? step : 0.0f;
}

struct GridKernels {
    std::size_t n_coordinates = 0, n_panels = 0;
    float step = 0.0f, per_unit = 0.0f, minus_scale = 0.0f;  // 1 / step, -half_theta step^2
    float most_half_sq_norm = 0.0f;                          // largest half_theta ||u||^2 of a row that fits
    bool in_one = false;                                     // fuses_pairs()
    const std::int32_t* panels = nullptr;                    // (n_panels, pairs_for(n_coordinates), panel_width)
    const std::int32_t* sq_norms = nullptr;                  // (n_panels * panel_width,)

    bool is_there() const { return step > 0.0f; }
};

struct GridMemory {
    std::int32_t *panels, *sq_norms;

    GridMemory(std::size_t n_lanes, std::size_t n_coordinates, Arena& arena)
        : panels(arena.take<std::int32_t>(n_lanes, pairs_for(n_coordinates))),
          sq_norms(arena.take<std::int32_t>(n_lanes)) {}
};

// Reads the first n_coordinates of vectors that have `stride` each.
APPROXSVM_COLD inline GridKernels fill_grid(const float* vectors, std::size_t n_vectors, std::size_t n_coordinates,
                                            std::size_t stride, float step, double half_theta,
                                            const GridMemory& memory) {
    constexpr std::size_t width = panel_width<float>;
    const std::size_t n_pairs = pairs_for(n_coordinates), n_panels = panels_for<float>(n_vectors);
    GridKernels grid;
    grid.n_coordinates = n_coordinates;
    grid.n_panels = n_panels;
    grid.step = step;
    grid.per_unit = 1.0f / step;
    const double in_steps = half_theta * static_cast<double>(step) * static_cast<double>(step);
    grid.minus_scale = -static_cast<float>(in_steps);
    // rounding adds no more than this to a norm
    const double least_room = 0.5 * std::sqrt(static_cast<double>(n_coordinates));
    const double furthest = std::sqrt(most_steps_sq) - least_room;
    grid.most_half_sq_norm = furthest > 0.0 ? static_cast<float>(0.999 * in_steps * furthest * furthest) : -1.0f;
    grid.in_one = fuses_pairs();
    for (std::size_t i = 0; i < n_panels * width; ++i) {
        std::int32_t* const at = memory.panels + i / width * width * n_pairs + i % width;
        std::int32_t norm = 0;
        const auto code = [&](std::size_t j) {
            if (i >= n_vectors || j >= n_coordinates) return std::int32_t{0};
            const std::int32_t q = static_cast<std::int32_t>(vectors[i * stride + j] * grid.per_unit);
            norm += q * q;
            return q;
        };
        for (std::size_t p = 0; p < n_pairs; ++p) {
            const std::int32_t even = code(2 * p), odd = code(2 * p + 1);
            at[p * width] = (even & 0xFFFF) | (odd * 65536);
        }
        memory.sq_norms[i] = norm;
    }
    grid.panels = memory.panels;
    grid.sq_norms = memory.sq_norms;
    return grid;
}

// Bounds the rounding error of sums of their kernel values (see listed_errors).
constexpr double grid_errors_of_moduli = 16.1 * 4.01, grid_errors_of_far = 4.1 * 16.0 * 1.1254e-7;

// --- rows

// Computes for the rows of a block, (n_coordinates, rows): codes, (pairs, rows); squared norms in steps; squared
// distances to the grid, in steps. Results are meaningful only for rows that fit.
template <int Registers>
inline void round_block(const GridKernels& grid, const float* coordinates, std::int32_t* codes, std::int32_t* sq_norms,
                        float* off_sq) {
    constexpr std::size_t stride = Registers * static_cast<std::size_t>(lanes);
    const f32v per_unit = set1(grid.per_unit);
    const std::size_t k = grid.n_coordinates;
    for (std::size_t v = 0; v < stride; v += lanes) {
        i32v norm = set1_pair(0);
        f32v off = set1(0.0f);
        for (std::size_t p = 0; p < pairs_for(k); ++p) {
            f32v rounded[2] = {set1(0.0f), set1(0.0f)};
            for (std::size_t j = 2 * p; j < k && j < 2 * p + 2; ++j) {
                const f32v x = mul(load(coordinates + j * stride + v), per_unit);
                rounded[j % 2] = to_nearest(x);
                const f32v e = sub(x, rounded[j % 2]);
                off = fmadd(e, e, off);
            }
            const i32v pair = pairs_of(rounded[0], rounded[1]);
            norm = add(norm, products_of_pairs(pair, pair));
            store_pairs(codes + p * stride + v, pair);
        }
        store_pairs(sq_norms + v, norm);
        store(off_sq + v, off);
    }
}

// Computes the same numbers for one row.
struct RoundedRow {
    std::int32_t sq_norm;
    float off_sq;
};
inline RoundedRow round_row(const GridKernels& grid, const float* coordinates, std::int16_t* codes) {
    const std::size_t k = grid.n_coordinates;
    const f32v per_unit = set1(grid.per_unit);
    f32v off = set1(0.0f);
    std::size_t j = 0;
    for (; j + lanes <= k; j += lanes) {
        const f32v x = mul(load(coordinates + j), per_unit), rounded = to_nearest(x), e = sub(x, rounded);
        off = fmadd(e, e, off);
        store_shorts(codes + j, rounded);
    }
    float parts[lanes], rest[lanes] = {};
    std::int16_t last[lanes];
    for (std::size_t i = 0; j + i < k; ++i) rest[i] = coordinates[j + i];
    const f32v x = mul(load(rest), per_unit), rounded = to_nearest(x), e = sub(x, rounded);
    store(parts, fmadd(e, e, off));
    store_shorts(last, rounded);
    for (std::size_t i = 0; j + i < 2 * pairs_for(k); ++i) codes[j + i] = last[i];
    RoundedRow row{0, 0.0f};
    for (float part : parts) row.off_sq += part;
    std::uint32_t norm = 0;  // arbitrary for rows that do not fit
    for (std::size_t i = 0; i < k; ++i) norm += static_cast<std::uint32_t>(std::int32_t{codes[i]} * codes[i]);
    row.sq_norm = static_cast<std::int32_t>(norm);
    return row;
}

// --- sums

// Computes K from inner products and the squared norms.
template <int N>
APPROXSVM_INLINE void to_grid_kernels(const GridKernels& grid, const i32v (&products)[N], const i32v (&sq_norms)[N],
                                      f32v (&kernel)[N]) {
    const f32v scale = set1(grid.minus_scale);
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) {
        kernel[i] = mul(to_float(sub(sq_norms[i], add(products[i], products[i]))), scale);
    }
    exp_nonpositive(kernel);
}

template <class Multiply, int Registers>
APPROXSVM_NOINLINE inline void add_listed_on_grid(const GridKernels& grid, const ListOfVectors& list,
                                                  std::size_t n_sums, std::size_t first, std::size_t n_tiles,
                                                  const std::int32_t* codes, const std::int32_t* sq_norms,
                                                  float* partial) {
    constexpr std::size_t stride = Registers * static_cast<std::size_t>(lanes), width = panel_width<float>;
    const std::size_t n_pairs = pairs_for(grid.n_coordinates);
    for (std::size_t t = first; t < first + n_tiles; ++t) {
        const std::int32_t* vectors[tile_rows];
        std::int32_t norms[tile_rows];
        for (std::size_t i = 0; i < tile_rows; ++i) {
            vectors[i] = grid.panels + list.offsets[t * tile_rows + i];
            norms[i] = grid.sq_norms[list.lanes[t * tile_rows + i]];
        }
        i32v sum[tile_rows][Registers];
        APPROXSVM_UNROLL for (int i = 0; i < tile_rows; ++i) {
            APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) sum[i][v] = set1_pair(0);
        }
        const std::int32_t* row = codes;
        for (std::size_t at = 0; at < n_pairs * width; at += width, row += stride) {
            i32v u[Registers];
            APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) u[v] = load_pairs(row + v * lanes);
            APPROXSVM_UNROLL for (int i = 0; i < tile_rows; ++i) {
                const i32v x = set1_pair(vectors[i][at]);
                APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) {
                    sum[i][v] = Multiply::add_products(sum[i][v], u[v], x);
                }
            }
        }
        add_tile_of_list<Registers>(n_sums, list.coef + t * n_sums * tile_rows, partial,
                                    [&](int v, f32v(&kernel)[tile_rows]) {
                                        const i32v of_row = load_pairs(sq_norms + v * lanes);
                                        i32v products[tile_rows], both[tile_rows];
                                        APPROXSVM_UNROLL for (int i = 0; i < tile_rows; ++i) {
                                            products[i] = sum[i][v];
                                            both[i] = add(of_row, set1_pair(norms[i]));
                                        }
                                        to_grid_kernels(grid, products, both, kernel);
                                    });
    }
}

// Computes listed_sums for rows prepared by round_block.
template <int Registers>
inline void listed_sums_on_grid(const GridKernels& grid, const ListOfVectors& list, std::size_t n_sums,
                                std::size_t first, std::size_t end, const std::int32_t* codes,
                                const std::int32_t* sq_norms, float* partial, double* sums) {
    const auto add = [&](std::size_t tile, std::size_t n_tiles) {
        if (grid.in_one)
            add_listed_on_grid<InOne, Registers>(grid, list, n_sums, tile, n_tiles, codes, sq_norms, partial);
        else
            add_listed_on_grid<InTwo, Registers>(grid, list, n_sums, tile, n_tiles, codes, sq_norms, partial);
    };
    sums_of_tiles<Registers>(n_sums, first, end, add, partial, sums);
}

// See kernels_row.
template <class Multiply>
inline void kernels_row_by(const GridKernels& grid, std::size_t first_panel, std::size_t end_panel,
                           const std::int16_t* codes, std::int32_t sq_norm, float* values) {
    constexpr std::size_t width = panel_width<float>;
    const std::size_t n_pairs = pairs_for(grid.n_coordinates), panel_size = n_pairs * width;
    for_panels(first_panel, end_panel, [&](auto n, std::size_t panel) {
        constexpr int n_registers = n.value * panel_registers;
        APPROXSVM_COUNT_WORK(static_cast<double>(n.value * width) * (static_cast<double>(2 * n_pairs) + work_of_exp));
        i32v sum[n_registers], both[n_registers];
        APPROXSVM_UNROLL for (int i = 0; i < n_registers; ++i) sum[i] = set1_pair(0);
        const std::int32_t* x = grid.panels + panel * panel_size;
        for (std::size_t p = 0; p < n_pairs; ++p, x += width) {
            std::int32_t pair;
            std::memcpy(&pair, codes + 2 * p, sizeof pair);
            const i32v u = set1_pair(pair);
            APPROXSVM_UNROLL for (int i = 0; i < n_registers; ++i) {
                const std::size_t at = static_cast<std::size_t>(i / panel_registers) * panel_size +
                                       static_cast<std::size_t>(i % panel_registers * lanes);
                sum[i] = Multiply::add_products(sum[i], load_pairs(x + at), u);
            }
        }
        APPROXSVM_UNROLL for (int i = 0; i < n_registers; ++i) {
            both[i] = add(set1_pair(sq_norm), load_pairs(grid.sq_norms + panel * width + i * lanes));
        }
        f32v kernel[n_registers];
        to_grid_kernels(grid, sum, both, kernel);
        APPROXSVM_UNROLL for (int i = 0; i < n_registers; ++i) store(values + panel * width + i * lanes, kernel[i]);
    });
}
inline void kernels_row(const GridKernels& grid, std::size_t first_panel, std::size_t end_panel,
                        const std::int16_t* codes, std::int32_t sq_norm, float* values) {
    if (grid.in_one)
        kernels_row_by<InOne>(grid, first_panel, end_panel, codes, sq_norm, values);
    else
        kernels_row_by<InTwo>(grid, first_panel, end_panel, codes, sq_norm, values);
}
inline void kernels_row(const GridKernels& grid, const std::int16_t* codes, std::int32_t sq_norm, float* values) {
    kernels_row(grid, 0, grid.n_panels, codes, sq_norm, values);
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

// Inner products of rows and support vectors in panels (vectors.hpp), for blocks of rows, a single row or sparse rows,
// and the norms of rows. Rows are u = input_scale (z - center).
#ifndef APPROXSVM_EXACT_PRODUCTS_HPP
#define APPROXSVM_EXACT_PRODUCTS_HPP

#include "vectors.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// --- a block of rows, one SIMD lane per row

// Number of panels whose inner products are computed together, so that each chunk of the block is read from the L2
// cache once for all of them.
constexpr std::size_t block_panels = 4;

// Addresses of the tile_rows support vectors in a tile: feature j of vector i is at(i)[j * panel_width].
template <class Real>
struct AdjacentVectors {  // vectors in adjacent lanes of a panel
    const Real* panel;
    APPROXSVM_INLINE const Real* at(int i) const { return panel + i; }
};
template <class Real>
struct ListedVectors {  // vectors at arbitrary positions
    const Real* vectors[tile_rows];
    APPROXSVM_INLINE const Real* at(int i) const { return vectors[i]; }
};

// Computes the products, over n features, of all rows with the tile_rows support vectors of a tile. If is_first is
// true, sets `total` to them; otherwise, adds them to `total`.
template <int Registers, class Real, class Vectors>
APPROXSVM_INLINE void add_inner_products(const Vectors& tile, const Real* block, std::size_t n, bool is_first,
                                         typename RegisterOf<Real>::type (&total)[tile_rows][Registers]) {
    using Register = typename RegisterOf<Real>::type;
    constexpr int width = lanes_of<Real>;
    constexpr std::size_t stride = static_cast<std::size_t>(Registers * width);
    Register sum[tile_rows][Registers];
    APPROXSVM_UNROLL for (int i = 0; i < tile_rows; ++i) {
        APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) sum[i][v] = set1(Real{0});
    }
    std::size_t at = 0;
    for (const Real* const end = block + n * stride; block != end; block += stride, at += panel_width<Real>) {
        Register u[Registers];
        APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) u[v] = load(block + v * width);
        APPROXSVM_UNROLL for (int i = 0; i < tile_rows; ++i) {
            const Register x = set1(tile.at(i)[at]);
            APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) sum[i][v] = fmadd(x, u[v], sum[i][v]);
        }
    }
    if (is_first) {
        APPROXSVM_UNROLL for (int i = 0; i < tile_rows; ++i) {
            APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) total[i][v] = sum[i][v];
        }
    } else {
        APPROXSVM_UNROLL for (int i = 0; i < tile_rows; ++i) {
            APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) total[i][v] = add(total[i][v], sum[i][v]);
        }
    }
}

// Computes inner products of one block with the support vectors in n_tiles tiles. tile(t, offset) returns the addresses
// of tile t's features, which begin `offset` elements into a panel.
template <int Registers, class Real, class TileAt>
APPROXSVM_INLINE void inner_products_of(std::size_t n_features, std::size_t n_tiles, const TileAt& tile,
                                        const Real* block,
                                        typename RegisterOf<Real>::type (*total)[tile_rows][Registers]) {
    const std::size_t chunk = chunk_features(n_features);
    std::size_t feature = 0;
    do {
        const std::size_t rest = n_features - feature, n = rest < chunk ? rest : chunk;
        for (std::size_t t = 0; t < n_tiles; ++t) {
            add_inner_products(tile(t, feature * panel_width<Real>), block, n, feature == 0, total[t]);
        }
        feature += n;
        block += n * static_cast<std::size_t>(Registers * lanes_of<Real>);
    } while (feature < n_features);
}

// Computes inner products of one block with n_tiles * tile_rows support vectors, starting at panel `first_panel`.
template <int Registers, class Real>
APPROXSVM_INLINE void inner_products(const KernelVectors<Real>& expansion, std::size_t first_panel, std::size_t n_tiles,
                                     const Real* block,
                                     typename RegisterOf<Real>::type (*total)[tile_rows][Registers]) {
    constexpr std::size_t width = panel_width<Real>, tiles = width / tile_rows;
    const std::size_t n_features = expansion.n_features;
    const Real* const panels = expansion.panels + first_panel * n_features * width;
    const auto tile = [=](std::size_t t, std::size_t offset) {
        return AdjacentVectors<Real>{panels + t / tiles * n_features * width + offset + t % tiles * tile_rows};
    };
    inner_products_of<Registers>(n_features, n_tiles, tile, block, total);
}

// Computes half_theta ||u||^2 for the rows of a block.
template <int Registers, class Real>
APPROXSVM_NOINLINE inline void half_sq_norms_block(Real half_theta, std::size_t n_features, const Real* block,
                                                   Real* half_sq_norm) {
    using Register = typename RegisterOf<Real>::type;
    constexpr int width = lanes_of<Real>;
    constexpr std::size_t stride = static_cast<std::size_t>(Registers * width);
    Register total[Registers];
    APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) total[v] = set1(Real{0});
    const std::size_t chunk = chunk_features(n_features);
    for (std::size_t first = 0; first < n_features; first += chunk) {
        const std::size_t left = n_features - first, n = left < chunk ? left : chunk;
        Register sum[Registers];
        APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) sum[v] = set1(Real{0});
        for (const Real* end = block + n * stride; block != end; block += stride) {
            APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) {
                const Register u = load(block + v * width);
                sum[v] = fmadd(u, u, sum[v]);
            }
        }
        APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) total[v] = add(total[v], sum[v]);
    }
    APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) {
        store(half_sq_norm + v * width, mul(total[v], set1(half_theta)));
    }
}
template <int Registers, class Real>
inline void half_sq_norms_block(const KernelVectors<Real>& kernels, const Real* block, Real* half_sq_norm) {
    half_sq_norms_block<Registers>(kernels.half_theta, kernels.n_features, block, half_sq_norm);
}

// --- one row, dense or sparse: one SIMD lane per support vector

// Number of panels evaluated together, in eight registers: enough independent sums to keep the multiply-add units busy,
// but few enough to stay in registers.
constexpr int group_panels = 8 / panel_registers;

// Calls add(Number<Panels>, panel) for the panels [first, end): for groups of group_panels panels, then for each
// remaining one.
template <class Add>
APPROXSVM_INLINE void for_panels(std::size_t first, std::size_t end, const Add& add) {
    std::size_t panel = first;
    for (; panel + group_panels <= end; panel += group_panels) add(Number<group_panels>{}, panel);
    for (; panel < end; ++panel) add(Number<1>{}, panel);
}

// Computes inner products of a row with the support vectors in Panels panels, starting at `first_panel`. Feature
// feature_of(k) of the row u has the value values[k] for k < n_terms; all other features are zero.
template <int Panels, class Real, class FeatureOf>
APPROXSVM_INLINE void panel_products(const KernelVectors<Real>& expansion, std::size_t first_panel, const Real* values,
                                     std::size_t n_terms, FeatureOf feature_of,
                                     typename RegisterOf<Real>::type (&total)[Panels * panel_registers]) {
    using Register = typename RegisterOf<Real>::type;
    constexpr int n_registers = Panels * panel_registers;
    APPROXSVM_COUNT_WORK(static_cast<double>(n_terms * Panels * cache_line_bytes) / 4.0);  // float64 counts twice
    const std::size_t panel_size = expansion.n_features * panel_width<Real>;
    const Real* const panels = expansion.panels + first_panel * panel_size;
    const std::size_t chunk = chunk_features(n_terms);
    std::size_t k = 0;
    do {
        const bool is_first = k == 0;
        const std::size_t end = n_terms - k < chunk ? n_terms : k + chunk;
        Register sum[n_registers];
        APPROXSVM_UNROLL for (int i = 0; i < n_registers; ++i) sum[i] = set1(Real{0});
        for (; k < end; ++k) {
            const Register u = set1(values[k]);
            const Real* const x = panels + feature_of(k) * panel_width<Real>;
            APPROXSVM_UNROLL for (int i = 0; i < n_registers; ++i) {
                const Real* const panel = x + static_cast<std::size_t>(i / panel_registers) * panel_size;
                sum[i] = fmadd(load(panel + i % panel_registers * lanes_of<Real>), u, sum[i]);
            }
        }
        APPROXSVM_UNROLL for (int i = 0; i < n_registers; ++i) total[i] = is_first ? sum[i] : add(total[i], sum[i]);
    } while (k < n_terms);
}

// A row as the engines use it: for k < n, feature columns[k] (or feature k if `columns` is null) has the value
// values[k]; all other features are zero. A non-null `products` holds the row's inner products with all lanes.
template <class Real>
struct RowTerms {
    const Real* values;
    std::size_t n;
    const std::int32_t* columns = nullptr;
    const Real* products = nullptr;
};

// Computes inner products of a dense or sparse row (only sparse unless may_be_dense) with the support vectors in Panels
// panels. One function handles both dense and sparse rows, because most of the code follows the products.
template <int Panels, bool may_be_dense = true, class Real>
APPROXSVM_INLINE void row_products(const KernelVectors<Real>& expansion, std::size_t panel, const RowTerms<Real>& row,
                                   typename RegisterOf<Real>::type (&total)[Panels * panel_registers]) {
    const auto add_up = [&](const auto& feature_of) APPROXSVM_INLINE_LAMBDA {
        panel_products<Panels>(expansion, panel, row.values, row.n, feature_of, total);
    };
    const auto listed = [&row](std::size_t k) { return static_cast<std::size_t>(row.columns[k]); };
    if (row.products) {
        const Real* const first = row.products + panel * panel_width<Real>;
        APPROXSVM_UNROLL for (int i = 0; i < Panels * panel_registers; ++i) total[i] = load(first + i * lanes_of<Real>);
    } else if constexpr (!may_be_dense) {
        add_up(listed);
    } else if constexpr (Panels == 1) {  // the latency of the last panels' sums takes most of the time
        add_up([&](std::size_t k) { return row.columns ? listed(k) : k; });
    } else if (row.columns) {
        add_up(listed);
    } else {
        add_up([](std::size_t k) { return k; });
    }
}

// Returns half_theta ||u||^2 for one row, computed from its n_terms nonzero entries (or from all entries).
template <class Real>
inline Real half_sq_norm_row(const KernelVectors<Real>& expansion, const Real* values, std::size_t n_terms) {
    return static_cast<Real>(static_cast<double>(expansion.half_theta) * sq_norm(values, n_terms));
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

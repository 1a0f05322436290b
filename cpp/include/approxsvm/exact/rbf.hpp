// The exact engine: f(z) = sum_i a_i exp(-gamma ||x_i - z||^2) over all support vectors, for a block of rows, a single
// row or sparse rows. Kernel values stay in registers; no matrix of rows by support vectors is stored.
//
// With u = input_scale (z - center), xh_i = input_scale (x_i - center) and theta = 2 gamma / input_scale^2
//
//     K(x_i, z) = exp(theta xh_i.u - half_theta ||xh_i||^2 - half_theta ||u||^2),
//
// computed in Real = float or double; the sums of a_i K and |a_i| K are float64. Rows must be finite.
//
// Storage order ("panels"): a panel holds panel_width<Real> support vectors as (n_features, panel_width<Real>), so that
// one feature of a panel fills one cache line. Zeros with zero coefficients fill the last panel. Support vectors with
// few non-zeros among many features are stored by columns instead (sparse_columns.hpp); then all rows are treated as
// sparse.
#ifndef APPROXSVM_EXACT_RBF_HPP
#define APPROXSVM_EXACT_RBF_HPP

#include "../arena.hpp"
#include "../simd/exp.hpp"
#include "../simd/norms.hpp"
#include "../simd/simd.hpp"
#include "sparse_columns.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

constexpr std::size_t cache_line_bytes = 64;

// Support vectors per panel.
template <class Real>
constexpr std::size_t panel_width = cache_line_bytes / sizeof(Real);

// Registers per feature of a panel, for float and double alike.
constexpr int panel_registers = static_cast<int>(cache_line_bytes / sizeof(float)) / lanes;

// --- the support vectors, prepared

template <class Real>
struct KernelSum {
    std::size_t n_sv, n_features, n_panels;
    Real theta;                   // 2 gamma / input_scale^2
    Real half_theta;              // half of it
    Real max_half_sq_norm;        // the largest of half_sq_norms
    const Real* panels;           // (n_panels, n_features, panel_width)
    SparseColumns<Real> columns;  // replaces panels if it has lanes
    const Real* half_sq_norms;    // (n_panels * panel_width,): half_theta ||xh_i||^2
    const double* coef;           // (n_panels * panel_width,): a_i
    const double* coef_moduli;    // (n_panels * panel_width,): |a_i|, or any other weight to sum along with a_i
};

template <class Real>
constexpr std::size_t kernel_expansion_panels(std::size_t n_sv) {
    return (n_sv + panel_width<Real> - 1) / panel_width<Real>;
}

// Replaces the number of values if support vectors are stored in panels, not in columns.
constexpr std::size_t in_panels = ~std::size_t{0};

// Memory for the support vectors of n_lanes lanes, stored by columns with n_values values, or in panels.
template <class Real>
struct VectorMemory {
    Real *panels = nullptr, *half_sq_norms;
    bool by_columns;
    SparseColumnsMemory<Real> columns;

    VectorMemory(std::size_t n_lanes, std::size_t n_features, std::size_t n_values, Arena& arena)
        : panels(arena.take<Real>(n_values == in_panels ? n_lanes : 0, n_features)),
          half_sq_norms(arena.take<Real>(n_lanes)),
          by_columns(n_values != in_panels),
          columns(by_columns ? n_lanes : 0, by_columns ? n_features : 0, by_columns ? n_values : 0, arena) {}
};

// Lays out support vectors, lane by lane, and computes their norms.
template <class Real>
class VectorWriter {
  public:
    APPROXSVM_NOINLINE VectorWriter(const VectorMemory<Real>& memory, std::size_t n_lanes, std::size_t n_features,
                                    double half_theta)
        : memory_(memory),
          columns_(memory.columns, memory.by_columns ? n_lanes : 0, memory.by_columns ? n_features : 0),
          n_features_(n_features),
          half_theta_(half_theta) {
        for (std::size_t i = 0; i < n_lanes; ++i) memory_.half_sq_norms[i] = Real{0};
    }

    // To store by columns, the caller first counts all values of all support vectors, then sets them.
    void count(std::size_t feature) { columns_.count(feature); }
    void finish_counting() { columns_.finish_counting(); }

    APPROXSVM_NOINLINE void set(std::size_t lane, const Coordinates& x) {
        const Real half_sq_norm =
            static_cast<Real>(half_theta_ * (memory_.by_columns ? add_to_columns(lane, x) : fill_panel_lane(lane, x)));
        memory_.half_sq_norms[lane] = half_sq_norm;
        if (half_sq_norm > max_half_sq_norm_) max_half_sq_norm_ = half_sq_norm;
    }
    APPROXSVM_NOINLINE void set_zeros(std::size_t lane) {
        if (!memory_.by_columns) fill_panel_lane(lane, {nullptr, nullptr, 0});
    }

    void describe(KernelSum<Real>& kernels) const {
        kernels.panels = memory_.by_columns ? nullptr : memory_.panels;
        if (memory_.by_columns) kernels.columns = columns_.columns();
        kernels.half_sq_norms = memory_.half_sq_norms;
        kernels.max_half_sq_norm = max_half_sq_norm_;
    }

  private:
    // Both return the squared norm.
    double fill_panel_lane(std::size_t lane, const Coordinates& x) {
        constexpr std::size_t width = panel_width<Real>;
        Real* const in_panel = memory_.panels + lane / width * width * n_features_ + lane % width;
        if (x.features || x.n == 0) {
            for (std::size_t j = 0; j < n_features_; ++j) in_panel[j * width] = Real{0};
        }
        for (std::size_t k = 0; k < x.n; ++k) in_panel[x.feature(k) * width] = static_cast<Real>(x.values[k]);
        return sq_norm(in_panel, n_features_, width);
    }
    double add_to_columns(std::size_t lane, const Coordinates& x) {
        columns_.add(lane, x);
        return sum_in_lanes(x.n, [&](std::size_t k) {
            const double value = static_cast<double>(static_cast<Real>(x.values[k]));
            return value * value;
        });
    }

    const VectorMemory<Real> memory_;
    SparseColumnsWriter<Real> columns_;
    const std::size_t n_features_;
    const double half_theta_;
    Real max_half_sq_norm_ = Real{0};
};

template <class Real>
struct KernelSumMemory {
    double *coef, *coef_moduli;
    VectorMemory<Real> vectors;

    KernelSumMemory(std::size_t n_sv, std::size_t n_features, std::size_t n_values, Arena& arena)
        : coef(arena.take<double>(n_lanes(n_sv))),
          coef_moduli(arena.take<double>(n_lanes(n_sv))),
          vectors(n_lanes(n_sv), n_features, n_values, arena) {}

    static constexpr std::size_t n_lanes(std::size_t n_sv) {
        return kernel_expansion_panels<Real>(n_sv) * panel_width<Real>;
    }
};

// Bytes of memory that a KernelSum points into.
template <class Real>
inline std::size_t kernel_expansion_bytes(std::size_t n_sv, std::size_t n_features, std::size_t n_values = in_panels) {
    Arena counter(nullptr);
    const KernelSumMemory<Real> memory(n_sv, n_features, n_values, counter);
    return counter.bytes_anywhere();
}

// Fills a KernelSum, one support vector at a time, in memory of kernel_expansion_bytes that the caller lends.
template <class Real>
class KernelExpansionWriter {
  public:
    // Fills a KernelSum, one support vector at a time, in kernel_expansion_bytes of memory that the caller provides.
    KernelExpansionWriter(void* memory, std::size_t n_sv, std::size_t n_features, double half_theta,
                          std::size_t n_values = in_panels)
        : KernelExpansionWriter(Arena(memory), n_sv, n_features, half_theta, n_values) {}

    // See VectorWriter.
    void count(std::size_t feature) { vectors_.count(feature); }
    void finish_counting() { vectors_.finish_counting(); }

    // Adds the next support vector: xh_i, a_i and a weight such as |a_i|. Called n_sv times, in the order of the
    // support vectors.
    void add_support_vector(const Coordinates& scaled, double coefficient, double weight) {
        vectors_.set(n_added_, scaled);
        memory_.coef[n_added_] = coefficient;
        memory_.coef_moduli[n_added_++] = weight;
    }
    void add_support_vector(const Coordinates& scaled, const double* coefficient, std::ptrdiff_t, double weight) {
        add_support_vector(scaled, *coefficient, weight);
    }

    // The result is complete after n_sv calls of add_support_vector.
    KernelSum<Real> expansion() const {
        KernelSum<Real> result{n_sv_,
                               n_features_,
                               kernel_expansion_panels<Real>(n_sv_),
                               static_cast<Real>(2.0 * half_theta_),
                               static_cast<Real>(half_theta_),
                               Real{0},
                               nullptr,
                               {},
                               nullptr,
                               memory_.coef,
                               memory_.coef_moduli};
        vectors_.describe(result);
        return result;
    }

  private:
    APPROXSVM_COLD KernelExpansionWriter(Arena arena, std::size_t n_sv, std::size_t n_features, double half_theta,
                                         std::size_t n_values)
        : memory_(n_sv, n_features, n_values, arena),
          vectors_(memory_.vectors, KernelSumMemory<Real>::n_lanes(n_sv), n_features, half_theta),
          n_sv_(n_sv),
          n_features_(n_features),
          half_theta_(half_theta) {
        for (std::size_t i = n_sv; i < KernelSumMemory<Real>::n_lanes(n_sv); ++i) {
            vectors_.set_zeros(i);
            memory_.coef[i] = memory_.coef_moduli[i] = 0.0;
        }
    }

    const KernelSumMemory<Real> memory_;
    VectorWriter<Real> vectors_;
    const std::size_t n_sv_, n_features_;
    const double half_theta_;
    std::size_t n_added_ = 0;
};

// --- shared by all three forms

// inner[i] = exp(theta inner[i] + minus_half_sq_norms[i]). A positive argument, which only rounding can cause, becomes
// 0. NaN, which only rows of infinite norm cause, becomes a finite number.
template <int N, class Register>
APPROXSVM_INLINE void to_kernel_values(Register theta, Register (&inner)[N], const Register (&minus_half_sq_norms)[N],
                                       Register nought) {
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) {
        inner[i] = min_or_nan(fmadd(theta, inner[i], minus_half_sq_norms[i]), nought);
    }
    exp_nonpositive(inner);
}

// Lanes [half lanes64, (half + 1) lanes64) of a register of kernel values, in float64.
template <int Half>
APPROXSVM_INLINE f64v widened(f32v kernel) {
    if constexpr (Half == 0) {
        return widen_low(kernel);
    } else {
        return widen_high(kernel);
    }
}
template <int Half>
APPROXSVM_INLINE f64v widened(f64v kernel) {
    return kernel;
}

// Computes N registers of kernel values, in float64.
template <class Real, int N>
APPROXSVM_INLINE void store_widened(const typename RegisterOf<Real>::type (&kernel)[N], double* out) {
    constexpr int width = lanes_of<Real>;
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) {
        store(out + i * width, widened<0>(kernel[i]));
        if constexpr (width == lanes) store(out + i * width + lanes64, widened<1>(kernel[i]));
    }
}

// If a row's norm is infinite or overflows Real, its kernel sums are exactly 0.
template <class Real>
APPROXSVM_INLINE void clear_unreachable(const Real* half_sq_norm, std::size_t n_rows, double* sum, double* moduli) {
    for (std::size_t i = 0; i < n_rows; ++i) {
        if (!is_finite(half_sq_norm[i])) sum[i] = moduli[i] = 0.0;
    }
}

// --- a block of rows, one SIMD lane per row

// Number of panels whose inner products are computed together, so that a chunk of the block is read once from the
// second-level cache for all of them.
constexpr std::size_t block_panels = 4;

// Where the tile_rows support vectors of a tile are: feature j of vector i is at at(i)[j * panel_width].
template <class Real>
struct AdjacentVectors {  // adjacent lanes of a panel
    const Real* panel;
    APPROXSVM_INLINE const Real* at(int i) const { return panel + i; }
};
template <class Real>
struct ListedVectors {  // arbitrary positions
    const Real* vectors[tile_rows];
    APPROXSVM_INLINE const Real* at(int i) const { return vectors[i]; }
};

// Sets total to, or adds to it, the products of n features with the tile_rows support vectors of a tile, for all rows.
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

// K for a tile and register v of a block's rows, from inner products; half_sq holds the tile's half_sq_norms.
template <int Registers, class Real>
APPROXSVM_INLINE void tile_kernels(Real theta_, const Real* half_sq,
                                   const typename RegisterOf<Real>::type (&inner)[tile_rows][Registers], int v,
                                   const Real* half_sq_norm, typename RegisterOf<Real>::type (&kernel)[tile_rows]) {
    using Register = typename RegisterOf<Real>::type;
    const Register theta = set1(theta_), nought = set1(Real{0});
    const Register minus_half_sq_norm = sub(nought, load(half_sq_norm + v * lanes_of<Real>));
    Register minus_half_sq_norms[tile_rows];
    APPROXSVM_UNROLL for (int i = 0; i < tile_rows; ++i) {
        kernel[i] = inner[i][v];
        minus_half_sq_norms[i] = sub(minus_half_sq_norm, set1(half_sq[i]));
    }
    to_kernel_values(theta, kernel, minus_half_sq_norms, nought);
}

// Adds the support vectors first .. first + tile_rows to the sums of a block, from their inner products.
template <int Registers, class Real>
APPROXSVM_INLINE void add_kernels(const KernelSum<Real>& expansion, std::size_t first,
                                  const typename RegisterOf<Real>::type (&inner)[tile_rows][Registers],
                                  const Real* half_sq_norm, double* sum, double* moduli) {
    using Register = typename RegisterOf<Real>::type;
    constexpr int width = lanes_of<Real>, halves = width / lanes64;
    const double* const coef = expansion.coef + first;
    const double* const coef_moduli = expansion.coef_moduli + first;
    for (int v = 0; v < Registers; ++v) {
        Register kernel[tile_rows];
        tile_kernels(expansion.theta, expansion.half_sq_norms + first, inner, v, half_sq_norm, kernel);
        f64v s[halves], m[halves];
        APPROXSVM_UNROLL for (int h = 0; h < halves; ++h) {
            s[h] = load(sum + v * width + h * lanes64);
            m[h] = load(moduli + v * width + h * lanes64);
        }
        APPROXSVM_UNROLL for (int i = 0; i < tile_rows; ++i) {
            const f64v k[2] = {widened<0>(kernel[i]), widened<1>(kernel[i])};
            APPROXSVM_UNROLL for (int h = 0; h < halves; ++h) {
                s[h] = fmadd(set1(coef[i]), k[h], s[h]);
                m[h] = fmadd(set1(coef_moduli[i]), k[h], m[h]);
            }
        }
        APPROXSVM_UNROLL for (int h = 0; h < halves; ++h) {
            store(sum + v * width + h * lanes64, s[h]);
            store(moduli + v * width + h * lanes64, m[h]);
        }
    }
}

// Computes inner products of one block with the support vectors of n_tiles tiles. tile(t) gives the addresses of tile
// t's features that start `offset` numbers into a panel.
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
APPROXSVM_INLINE void inner_products(const KernelSum<Real>& expansion, std::size_t first_panel, std::size_t n_tiles,
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

// Computes, for each row of n_blocks blocks of Registers * lanes_of<Real> rows, sum = sum_i a_i K(x_i, z) and moduli =
// sum_i |a_i| K(x_i, z). A block is (n_features, Registers * lanes_of<Real>), the rows u transposed into lanes;
// half_sq_norm[r] = half_theta ||u_r||^2. Blocks are contiguous, and so are their rows in the other arrays.
//
// The support vectors are read once for all blocks. Several blocks at a time pay if the panels do not fit in the caches
// but the blocks do.
template <int Registers, class Real>
inline void kernel_sums_block(const KernelSum<Real>& expansion, const Real* blocks, const Real* half_sq_norm,
                              double* sum, double* moduli, std::size_t n_blocks = 1) {
    constexpr std::size_t n_lanes = static_cast<std::size_t>(Registers * lanes_of<Real>);
    constexpr std::size_t tiles = panel_width<Real> / tile_rows;
    for (std::size_t r = 0; r < n_blocks * n_lanes; ++r) sum[r] = moduli[r] = 0.0;
    for (std::size_t panel = 0; panel < expansion.n_panels; panel += block_panels) {
        const std::size_t left = expansion.n_panels - panel;
        const std::size_t n_tiles = (left < block_panels ? left : block_panels) * tiles;
        for (std::size_t b = 0; b < n_blocks; ++b) {
            typename RegisterOf<Real>::type inner[block_panels * tiles][tile_rows][Registers];
            inner_products<Registers>(expansion, panel, n_tiles, blocks + b * expansion.n_features * n_lanes, inner);
            const std::size_t row = b * n_lanes;
            for (std::size_t t = 0; t < n_tiles; ++t) {
                add_kernels(expansion, panel * panel_width<Real> + t * tile_rows, inner[t], half_sq_norm + row,
                            sum + row, moduli + row);
            }
        }
    }
    clear_unreachable(half_sq_norm, n_blocks * n_lanes, sum, moduli);
}

// half_theta ||u||^2 of the same rows, as kernel_sums_block expects them.
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
inline void half_sq_norms_block(const KernelSum<Real>& kernels, const Real* block, Real* half_sq_norm) {
    half_sq_norms_block<Registers>(kernels.half_theta, kernels.n_features, block, half_sq_norm);
}

// --- one row, dense or sparse: one SIMD lane per support vector

// Number of panels that are evaluated together, eight registers: enough independent sums to keep the multiply-add units
// busy, few enough to stay in registers.
constexpr int group_panels = 8 / panel_registers;

// Calls add(Number<Panels>, panel) for the panels [first, end): group_panels at a time, then the rest one by one.
template <class Add>
APPROXSVM_INLINE void for_panels(std::size_t first, std::size_t end, const Add& add) {
    std::size_t panel = first;
    for (; panel + group_panels <= end; panel += group_panels) add(Number<group_panels>{}, panel);
    for (; panel < end; ++panel) add(Number<1>{}, panel);
}

// Computes inner products of a row with the support vectors of Panels panels, starting at `first_panel`. The row u has
// n_terms entries values[k] at the features feature_of(k), and zeros elsewhere.
template <int Panels, class Real, class FeatureOf>
APPROXSVM_INLINE void panel_products(const KernelSum<Real>& expansion, std::size_t first_panel, const Real* values,
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

// A row in the engines' form: n entries values[k] at the features columns[k], or at k if columns is null, and zeros
// elsewhere. `products`, if not null, holds its inner products with all lanes.
template <class Real>
struct RowTerms {
    const Real* values;
    std::size_t n;
    const std::int32_t* columns = nullptr;
    const Real* products = nullptr;
};

// Computes inner products of a row in any form (dense only if may_be_dense) with the support vectors of Panels panels.
// One function serves all forms, because the code after the products is the larger part.
template <int Panels, bool may_be_dense = true, class Real>
APPROXSVM_INLINE void row_products(const KernelSum<Real>& expansion, std::size_t panel, const RowTerms<Real>& row,
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
    } else if constexpr (Panels == 1) {  // for the last panels, latency of their sums dominates
        add_up([&](std::size_t k) { return row.columns ? listed(k) : k; });
    } else if (row.columns) {
        add_up(listed);
    } else {
        add_up([](std::size_t k) { return k; });
    }
}

// Turns inner products into kernel values, in place.
template <int Panels, class Real>
APPROXSVM_INLINE void panel_kernels(const KernelSum<Real>& expansion, std::size_t first_panel, Real half_sq_norm,
                                    typename RegisterOf<Real>::type (&total)[Panels * panel_registers]) {
    using Register = typename RegisterOf<Real>::type;
    constexpr int n_registers = Panels * panel_registers;
    APPROXSVM_COUNT_WORK(work_of_exp * static_cast<double>(Panels * cache_line_bytes) / 4.0);
    const Real* const half_sq = expansion.half_sq_norms + first_panel * panel_width<Real>;
    const Register theta = set1(expansion.theta), nought = set1(Real{0}), minus_half_sq_norm = set1(-half_sq_norm);
    Register minus_half_sq_norms[n_registers];
    APPROXSVM_UNROLL for (int i = 0; i < n_registers; ++i) {
        minus_half_sq_norms[i] = sub(minus_half_sq_norm, load(half_sq + i * lanes_of<Real>));
    }
    to_kernel_values(theta, total, minus_half_sq_norms, nought);
}

// sum[l] += a_i K_i and moduli[l] += |a_i| K_i, after adding up the support vectors with equal i modulo lanes64 in
// these panels. Overwrites `total`.
template <int Panels, class Real>
APPROXSVM_INLINE void add_panel_kernels(const KernelSum<Real>& expansion, std::size_t first_panel,
                                        typename RegisterOf<Real>::type (&total)[Panels * panel_registers],
                                        Real half_sq_norm, f64v& sum, f64v& moduli) {
    constexpr int halves = lanes_of<Real> / lanes64, n_registers = Panels * panel_registers;
    const std::size_t first = first_panel * panel_width<Real>;
    const double* coef = expansion.coef + first;
    const double* coef_moduli = expansion.coef_moduli + first;
    APPROXSVM_COUNT_WORK(2.0 * static_cast<double>(Panels * cache_line_bytes) / 4.0);
    panel_kernels<Panels>(expansion, first_panel, half_sq_norm, total);
    f64v s[2] = {zero64(), zero64()}, m[2] = {zero64(), zero64()};
    APPROXSVM_UNROLL for (int i = 0; i < n_registers; ++i) {
        const f64v k[2] = {widened<0>(total[i]), widened<1>(total[i])};
        APPROXSVM_UNROLL for (int h = 0; h < halves; ++h, coef += lanes64, coef_moduli += lanes64) {
            s[h] = fmadd(load(coef), k[h], s[h]);
            m[h] = fmadd(load(coef_moduli), k[h], m[h]);
        }
    }
    sum = add(sum, halves == 2 ? add(s[0], s[1]) : s[0]);
    moduli = add(moduli, halves == 2 ? add(m[0], m[1]) : m[0]);
}

APPROXSVM_INLINE double sum_of_lanes(f64v x) {
    double lane[lanes64];
    store(lane, x);
    double sum = lane[0];
    for (int i = 1; i < lanes64; ++i) sum += lane[i];
    return sum;
}

// half_theta ||u||^2 of one row, from its n_terms non-zero entries (or from all entries).
template <class Real>
inline Real half_sq_norm_row(const KernelSum<Real>& expansion, const Real* values, std::size_t n_terms) {
    return static_cast<Real>(static_cast<double>(expansion.half_theta) * sq_norm(values, n_terms));
}

// Computes the two sums of one dense row u, (n_features,), with half_sq_norm = half_theta ||u||^2.
template <class Real>
inline void kernel_sums_row(const KernelSum<Real>& expansion, const Real* u, Real half_sq_norm, double& sum,
                            double& moduli) {
    f64v s = zero64(), m = zero64();
    for_panels(0, expansion.n_panels, [&](auto n, std::size_t panel) APPROXSVM_INLINE_LAMBDA {
        typename RegisterOf<Real>::type total[n.value * panel_registers];
        panel_products<n.value>(expansion, panel, u, expansion.n_features, [](std::size_t k) { return k; }, total);
        add_panel_kernels<n.value>(expansion, panel, total, half_sq_norm, s, m);
    });
    sum = sum_of_lanes(s);
    moduli = sum_of_lanes(m);
    clear_unreachable(&half_sq_norm, 1, &sum, &moduli);
}

// --- sparse rows

// Number of sparse rows that are multiplied with a group of panels while the cache holds it.
constexpr std::size_t sparse_block_rows = 256;

// Computes the rows [first, first + n_rows) of kernel_sums_sparse, n_rows <= sparse_block_rows; or a single row, given
// its products.
template <class Real>
APPROXSVM_NOINLINE inline void kernel_sums_sparse_block(const KernelSum<Real>& expansion, const Real* values,
                                                        const std::int32_t* columns, const std::size_t* row_starts,
                                                        std::size_t n_rows, const Real* products,
                                                        const Real* half_sq_norm, double* sum, double* moduli) {
    alignas(cache_line_bytes) double partial[sparse_block_rows][2][lanes64];  // sums and moduli of each row, by lanes
    for (std::size_t r = 0; r < n_rows; ++r) {
        store(partial[r][0], zero64());
        store(partial[r][1], zero64());
    }
    for_panels(0, expansion.n_panels, [&](auto n, std::size_t panel) APPROXSVM_INLINE_LAMBDA {
        for (std::size_t r = 0; r < n_rows; ++r) {
            const std::size_t start = row_starts[r], n_nonzero = row_starts[r + 1] - start;
            typename RegisterOf<Real>::type total[n.value * panel_registers];
            row_products<n.value, false>(expansion, panel, {values + start, n_nonzero, columns + start, products},
                                         total);
            f64v s = load(partial[r][0]), m = load(partial[r][1]);
            add_panel_kernels<n.value>(expansion, panel, total, half_sq_norm[r], s, m);
            store(partial[r][0], s);
            store(partial[r][1], m);
        }
    });
    for (std::size_t r = 0; r < n_rows; ++r) {
        sum[r] = sum_of_lanes(load(partial[r][0]));
        moduli[r] = sum_of_lanes(load(partial[r][1]));
    }
    clear_unreachable(half_sq_norm, n_rows, sum, moduli);
}

// Computes the two sums of n_rows sparse rows. Row r has the entries values[k] (scaled: u = input_scale z, so the
// center is 0) in the columns columns[k] in [0, n_features), row_starts[r] <= k < row_starts[r + 1]; half_sq_norm[r] =
// half_theta ||u_r||^2. The work is proportional to the non-zeros. If support vectors are stored by columns, `products`
// has space for all lanes.
template <class Real>
inline void kernel_sums_sparse(const KernelSum<Real>& expansion, const Real* values, const std::int32_t* columns,
                               const std::size_t* row_starts, std::size_t n_rows, const Real* half_sq_norm, double* sum,
                               double* moduli, Real* products) {
    const bool by_columns = expansion.columns.n_lanes > 0;
    const std::size_t together = by_columns ? 1 : sparse_block_rows;
    for (std::size_t first = 0; first < n_rows; first += together) {
        const std::size_t left = n_rows - first, n = left < together ? left : together, start = row_starts[first];
        if (by_columns) {
            column_products(expansion.columns, values + start, columns + start, row_starts[first + 1] - start,
                            products);
        }
        kernel_sums_sparse_block(expansion, values, columns, row_starts + first, n, by_columns ? products : nullptr,
                                 half_sq_norm + first, sum + first, moduli + first);
    }
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

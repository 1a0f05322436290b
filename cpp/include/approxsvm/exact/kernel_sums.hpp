// Sums of terms at support vectors, for a block of rows, a single row or sparse rows. Functions that share support
// vectors also share the terms, so each term is computed once, in the type Real (float or double). Terms stay in
// registers or in the L2 cache; the matrix of all terms for all rows is never stored. Terms are summed in float64.
//
// LIBSVM stores n_classes - 1 coefficients per support vector; in the function for the pair (i, j), i < j, the support
// vectors of class i use coefficient j - 1, and the support vectors of class j use coefficient i. With
//
//     P[c][r] = sum over the support vectors s of class c of coef[r][s] K(x_s, z),
//
// the pair's value is P[i][j - 1] + P[j][i] + intercept. Error bounds use M[c] = sum of weight[s] K(x_s, z). A support
// vector's weight is its largest |coef[r][s]| or another value given by the caller; it is the same in every pair.
//
// The sums of class c are P[c][0], ..., P[c][n_classes - 2], followed by M[c]: n_classes sums per class, n_classes^2
// per row. Without class pairs, all support vectors are treated as one class, with one sum per function and M[0]. Each
// support vector's product is rounded at most once, and the summation depth of a class is at most its number of support
// vectors.
//
// Storage order: panels as in vectors.hpp. Every class starts a new panel, so that a panel belongs to one class.
// Leading coefficients that are zero for all support vectors in a panel are skipped. Panels are padded with zero
// vectors whose coefficients and weights are zero; kernel values are finite for every row.
//
// A term, such as GaussianTerm, computes K from inner products:
//     tile(first, inner, v, half_sq_norm, kernel)  for tile_rows support vectors and the block rows in register v
//     panels<N>(first_panel, half_sq_norm, total)  for one row and N panels, in place
//     finish(half_sq_norm, n_lanes, n_sums, sums)  corrects the sums of rows that are out of range
//     counts_unseen                                true if features unknown to the model contribute to half_sq_norm
#ifndef APPROXSVM_EXACT_KERNEL_SUMS_HPP
#define APPROXSVM_EXACT_KERNEL_SUMS_HPP

#include "products.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// --- the support vectors, prepared

template <class Real>
struct KernelSums {
    KernelVectors<Real> vectors;  // the support vectors of all classes, one class after another
    std::size_t n_classes;
    std::size_t n_numbers;                // coefficient rows per class, the last of which holds the weights
    const std::uint32_t* class_of_panel;  // class of each panel, (n_panels,), ascending
    // Index of each panel's first coefficient that is not zero for the whole panel, or of its weights, (n_panels,).
    const std::uint32_t* first_of_panel;
    const double* coef;  // coefficients and weights, (n_panels, n_numbers, panel_width)

    std::size_t n_sums() const { return n_classes * n_numbers; }
};

// The number of support vectors in each class, or in the only class, and the number of coefficients per support vector,
// including the weight.
struct ClassSizes {
    const std::uint32_t* n_sv_of_class;  // number of support vectors in each class; null if there is one class
    std::size_t n_sv_of_one, n_classes, n_numbers;

    std::size_t n_sv(std::size_t c) const { return n_sv_of_class ? n_sv_of_class[c] : n_sv_of_one; }
};

// Number of panels for this number of support vectors.
template <class Real>
inline std::size_t panels_for(const ClassSizes& sizes) {
    std::size_t n_panels = 0;
    for (std::size_t c = 0; c < sizes.n_classes; ++c) n_panels += panels_for<Real>(sizes.n_sv(c));
    return n_panels;
}

template <class Real>
struct KernelSumsMemory {
    double* coef;
    std::uint32_t *class_of_panel, *first_of_panel;
    VectorMemory<Real> vectors;

    KernelSumsMemory(std::size_t n_panels, std::size_t n_numbers, std::size_t n_features, std::size_t n_values,
                     Arena& arena)
        : coef(arena.take<double>(n_panels * panel_width<Real>, n_numbers)),
          class_of_panel(arena.take<std::uint32_t>(n_panels)),
          first_of_panel(arena.take<std::uint32_t>(n_panels)),
          vectors(n_panels * panel_width<Real>, n_features, n_values, arena) {}
};

// Number of bytes of memory into which a KernelSums points.
template <class Real>
inline std::size_t kernel_sums_bytes(const ClassSizes& sizes, std::size_t n_features,
                                     std::size_t n_values = in_panels) {
    Arena counter(nullptr);
    const std::size_t n_panels = panels_for<Real>(sizes);
    const KernelSumsMemory<Real> memory(n_panels, sizes.n_numbers, n_features, n_values, counter);
    return counter.bytes_anywhere();
}

// Fills a KernelSums, one support vector at a time, in kernel_sums_bytes of caller-provided memory.
template <class Real>
class KernelSumsWriter {
  public:
    // The argument half_theta is gamma / input_scale^2. The counts must outlive the writer.
    KernelSumsWriter(void* memory, const ClassSizes& sizes, std::size_t n_features, double half_theta,
                     std::size_t n_values = in_panels)
        : KernelSumsWriter(Arena(memory), sizes, n_features, half_theta, n_values) {}

    // Counts a feature value if support vectors are stored by column (VectorWriter).
    void count(std::size_t feature) { vectors_.count(feature); }
    void finish_counting() { vectors_.finish_counting(); }

    // Adds the next support vector: xh_i, n_numbers - 1 coefficients that are `stride` elements apart, and the weight.
    // Must be called once per support vector, one class after another.
    void add_support_vector(const Coordinates& scaled, const double* coefficients, std::ptrdiff_t stride,
                            double weight) {
        while (n_added_ == sizes_.n_sv(class_)) {
            next_lane_ = (next_lane_ + width - 1) / width * width;
            n_added_ = 0;
            ++class_;
        }
        ++n_added_;
        vectors_.set(next_lane_, scaled);
        set_coefficients(next_lane_++, coefficients, stride, weight);
    }

    // Returns the sums, which are complete once every support vector has been added.
    KernelSums<Real> expansion() const {
        KernelSums<Real> result{{n_sv_,
                                 n_features_,
                                 n_panels_,
                                 static_cast<Real>(2.0 * half_theta_),
                                 static_cast<Real>(half_theta_),
                                 Real{0},
                                 nullptr,
                                 {},
                                 nullptr},
                                sizes_.n_classes,
                                sizes_.n_numbers,
                                memory_.class_of_panel,
                                memory_.first_of_panel,
                                memory_.coef};
        vectors_.describe(result.vectors);
        return result;
    }

  private:
    static constexpr std::size_t width = panel_width<Real>;

    APPROXSVM_COLD KernelSumsWriter(Arena arena, const ClassSizes& sizes, std::size_t n_features, double half_theta,
                                    std::size_t n_values)
        : sizes_(sizes),
          n_features_(n_features),
          n_panels_(panels_for<Real>(sizes)),
          half_theta_(half_theta),
          memory_(n_panels_, sizes.n_numbers, n_features, n_values, arena),
          vectors_(memory_.vectors, n_panels_ * width, n_features, half_theta) {
        std::size_t panel = 0;
        for (std::size_t c = 0; c < sizes.n_classes; ++c) {
            const std::size_t n = sizes.n_sv(c), first = panel * width;
            n_sv_ += n;
            for (const std::size_t end = panel + panels_for<Real>(n); panel < end; ++panel) {
                memory_.class_of_panel[panel] = static_cast<std::uint32_t>(c);
                memory_.first_of_panel[panel] = static_cast<std::uint32_t>(sizes.n_numbers - 1);
            }
            for (std::size_t i = first + n; i < panel * width; ++i) {
                vectors_.set_zeros(i);
                set_coefficients(i, nullptr, 0, 0.0);
            }
        }
    }

    // If `coefficients` is null, all coefficients are zero.
    APPROXSVM_COLD void set_coefficients(std::size_t i, const double* coefficients, std::ptrdiff_t stride,
                                         double weight) {
        double* const coef = memory_.coef + i / width * sizes_.n_numbers * width + i % width;
        const std::size_t n_coefficients = sizes_.n_numbers - 1;
        std::uint32_t& first = memory_.first_of_panel[i / width];
        for (std::size_t r = 0; r < n_coefficients; ++r) {
            coef[r * width] = coefficients ? coefficients[static_cast<std::ptrdiff_t>(r) * stride] : 0.0;
            if (r < first && coef[r * width] != 0.0) first = static_cast<std::uint32_t>(r);
        }
        coef[n_coefficients * width] = weight;
    }

    const ClassSizes sizes_;
    const std::size_t n_features_, n_panels_;
    const double half_theta_;
    const KernelSumsMemory<Real> memory_;
    VectorWriter<Real> vectors_;
    std::size_t n_sv_ = 0, class_ = 0, n_added_ = 0, next_lane_ = 0;
};

// Returns max_r |coef[r]|. With these weights, the sums M bound each pair's sum of absolute values.
inline double largest_modulus(const double* coefficients, std::size_t n, std::ptrdiff_t stride) {
    double largest = 0.0;
    for (std::size_t r = 0; r < n; ++r) {
        const double a = coefficients[static_cast<std::ptrdiff_t>(r) * stride], modulus = a < 0.0 ? -a : a;
        if (modulus > largest) largest = modulus;
    }
    return largest;
}

// --- the sums for a pair

// Return f - intercept for the pair (i, j), i < j, and its weighted sum, from a row's sums; `stride` is 1, or the
// number of lanes in a block.
APPROXSVM_INLINE double pair_sum(const double* sums, std::size_t n_classes, std::size_t stride, std::size_t i,
                                 std::size_t j) {
    return sums[(i * n_classes + j - 1) * stride] + sums[(j * n_classes + i) * stride];
}
APPROXSVM_INLINE double pair_moduli(const double* sums, std::size_t n_classes, std::size_t stride, std::size_t i,
                                    std::size_t j) {
    return sums[(i * n_classes + n_classes - 1) * stride] + sums[(j * n_classes + n_classes - 1) * stride];
}

// --- kernel values

// Returns the lanes [half * lanes64, (half + 1) * lanes64) of a register of kernel values, in float64.
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

// Stores N registers of kernel values as float64.
template <class Real, int N>
APPROXSVM_INLINE void store_widened(const typename RegisterOf<Real>::type (&kernel)[N], double* out) {
    constexpr int width = lanes_of<Real>;
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) {
        store(out + i * width, widened<0>(kernel[i]));
        if constexpr (width == lanes) store(out + i * width + lanes64, widened<1>(kernel[i]));
    }
}

APPROXSVM_INLINE double sum_of_lanes(f64v x) {
    double lane[lanes64];
    store(lane, x);
    double sum = lane[0];
    for (int i = 1; i < lanes64; ++i) sum += lane[i];
    return sum;
}

// --- a block of rows, one SIMD lane per row

// Number of sums computed together: their accumulators and the kernel values of a tile must fit in registers.
template <class Real>
constexpr int sums_together = sizeof(Real) == 4 ? (tile_rows == 8 ? 5 : 3) : 5;

// Adds the products of `kernel` and the coefficients of Sums functions f to sums[f * stride ..].
template <int Sums, int Halves>
APPROXSVM_INLINE void add_tile_sums(const f64v (&kernel)[tile_rows][Halves], const double* coef,
                                    std::size_t coef_stride, double* sums, std::size_t stride) {
    f64v sum[Sums][Halves];
    APPROXSVM_UNROLL for (int f = 0; f < Sums; ++f) {
        APPROXSVM_UNROLL for (int h = 0; h < Halves; ++h) {
            sum[f][h] = load(sums + static_cast<std::size_t>(f) * stride + h * lanes64);
        }
    }
    APPROXSVM_UNROLL for (int i = 0; i < tile_rows; ++i) {
        APPROXSVM_UNROLL for (int f = 0; f < Sums; ++f) {
            const f64v a = set1(coef[static_cast<std::size_t>(f) * coef_stride + static_cast<std::size_t>(i)]);
            APPROXSVM_UNROLL for (int h = 0; h < Halves; ++h) sum[f][h] = fmadd(a, kernel[i][h], sum[f][h]);
        }
    }
    APPROXSVM_UNROLL for (int f = 0; f < Sums; ++f) {
        APPROXSVM_UNROLL for (int h = 0; h < Halves; ++h) {
            store(sums + static_cast<std::size_t>(f) * stride + h * lanes64, sum[f][h]);
        }
    }
}

// Calls add(Number<Sums>, first) for n sums: for groups of Sums sums, then for all remaining ones at once.
template <int Sums, class Add>
APPROXSVM_INLINE void for_sums(std::size_t first, std::size_t n, const Add& add) {
    constexpr std::size_t step = static_cast<std::size_t>(Sums);
    for (; first + step <= n; first += step) add(Number<Sums>{}, first);
    if constexpr (Sums > 1) for_sums<Sums - 1>(first, n, add);
}

// Given the inner products, adds the terms of tile_rows support vectors, from `lane` of a panel on, to the sums of
// their class. Numbers is the number of sums per class, or 0 if it is not known at compile time.
template <int Numbers, int Registers, class Term, class Real>
APPROXSVM_INLINE void add_tile(const KernelSums<Real>& sums_of, const Term& term, std::size_t panel, std::size_t lane,
                               const typename RegisterOf<Real>::type (&inner)[tile_rows][Registers],
                               const Real* half_sq_norm, double* sums) {
    constexpr int halves = lanes_of<Real> / lanes64;
    constexpr std::size_t width = panel_width<Real>, n_lanes = static_cast<std::size_t>(Registers * lanes_of<Real>);
    const std::size_t n_numbers = Numbers > 0 ? std::size_t{Numbers} : sums_of.n_numbers;
    const double* const coef = sums_of.coef + panel * n_numbers * width + lane;
    if constexpr (Numbers == 0) sums += sums_of.class_of_panel[panel] * n_numbers * n_lanes;
    for (int v = 0; v < Registers; ++v, sums += lanes_of<Real>) {
        typename RegisterOf<Real>::type narrow[tile_rows];
        term.tile(panel * width + lane, inner, v, half_sq_norm, narrow);
        f64v kernel[tile_rows][halves];
        APPROXSVM_UNROLL for (int i = 0; i < tile_rows; ++i) {
            kernel[i][0] = widened<0>(narrow[i]);
            if constexpr (halves == 2) kernel[i][1] = widened<1>(narrow[i]);
        }
        if constexpr (Numbers > 0) {
            add_tile_sums<Numbers>(kernel, coef, width, sums, n_lanes);
        } else {
            for_sums<sums_together<Real>>(sums_of.first_of_panel[panel], n_numbers, [&](auto n, std::size_t first) {
                add_tile_sums<n.value>(kernel, coef + first * width, width, sums + first * n_lanes, n_lanes);
            });
        }
    }
}

// Computes the sums for a block of Registers * lanes_of<Real> rows. The block has the shape (n_features, rows), with
// rows u transposed into lanes; half_sq_norm[r] = half_theta ||u_r||^2. Sum r of class c is sums[(c n_numbers + r)
// n_lanes + lane].
template <int Numbers, int Registers, class Term, class Real>
inline void sums_of_block(const KernelSums<Real>& sums_of, const Term& term, const Real* block,
                          const Real* half_sq_norm, double* sums) {
    constexpr std::size_t n_lanes = static_cast<std::size_t>(Registers * lanes_of<Real>);
    constexpr std::size_t tiles = panel_width<Real> / tile_rows;
    const KernelVectors<Real>& vectors = sums_of.vectors;
    const std::size_t n_sums = Numbers > 0 ? std::size_t{Numbers} : sums_of.n_sums();
    for (std::size_t i = 0; i < n_sums * n_lanes; ++i) sums[i] = 0.0;
    for (std::size_t panel = 0; panel < vectors.n_panels; panel += block_panels) {
        const std::size_t left = vectors.n_panels - panel,
                          n_tiles = (left < block_panels ? left : block_panels) * tiles;
        typename RegisterOf<Real>::type inner[block_panels * tiles][tile_rows][Registers];
        inner_products<Registers>(vectors, panel, n_tiles, block, inner);
        for (std::size_t t = 0; t < n_tiles; ++t) {
            add_tile<Numbers>(sums_of, term, panel + t / tiles, t % tiles * tile_rows, inner[t], half_sq_norm, sums);
        }
    }
    term.finish(half_sq_norm, n_lanes, n_sums, sums);
}

// --- rows, dense or sparse: one SIMD lane per support vector

// Rows: for starts[r] <= k < starts[r + 1], feature columns[k] of row r has the value values[k]; if `columns` is null,
// each row has the values of all features in order. A non-null `products` holds the only row's inner products.
template <class Real>
struct RowsOfTerms {
    const Real* values;
    const std::size_t* starts;
    const std::int32_t* columns;
    const Real* products;

    RowTerms<Real> operator[](std::size_t r) const {
        const std::size_t start = starts[r];
        return {values + start, starts[r + 1] - start, columns ? columns + start : nullptr, products};
    }
};

// Maximum number of sparse rows multiplied by a group of panels while it is in cache.
constexpr std::size_t sparse_block_rows = 256;

// Computes the sums of one class, of shape (n_rows, Numbers). All rows (n_rows <= sparse_block_rows) are multiplied by
// a group of panels while it is in cache.
template <int Numbers, class Term, class Real>
APPROXSVM_NOINLINE inline void fixed_sums_of_rows(const KernelSums<Real>& sums_of, const Term& term,
                                                  const RowsOfTerms<Real>& rows, std::size_t n_rows,
                                                  const Real* half_sq_norm, double* sums) {
    constexpr int halves = lanes_of<Real> / lanes64;
    constexpr std::size_t width = panel_width<Real>;
    alignas(cache_line_bytes) double partial[sparse_block_rows][Numbers][lanes64];  // sums by lane
    for (std::size_t r = 0; r < n_rows; ++r) {
        APPROXSVM_UNROLL for (int f = 0; f < Numbers; ++f) store(partial[r][f], zero64());
    }
    for_panels(0, sums_of.vectors.n_panels, [&](auto n, std::size_t panel) APPROXSVM_INLINE_LAMBDA {
        APPROXSVM_COUNT_WORK(static_cast<double>(n_rows * n.value * Numbers * cache_line_bytes) / 4.0);
        const double* const coef = sums_of.coef + panel * Numbers * width;
        for (std::size_t r = 0; r < n_rows; ++r) {
            typename RegisterOf<Real>::type kernel[n.value * panel_registers];
            row_products<n.value>(sums_of.vectors, panel, rows[r], kernel);
            term.template panels<n.value>(panel, half_sq_norm[r], kernel);
            f64v sum[Numbers][2];
            APPROXSVM_UNROLL for (int f = 0; f < Numbers; ++f) sum[f][0] = sum[f][1] = zero64();
            APPROXSVM_UNROLL for (int i = 0; i < n.value * panel_registers; ++i) {
                const f64v k[2] = {widened<0>(kernel[i]), widened<1>(kernel[i])};
                const double* const a = coef + static_cast<std::size_t>(i / panel_registers) * Numbers * width +
                                        i % panel_registers * lanes_of<Real>;
                APPROXSVM_UNROLL for (int f = 0; f < Numbers; ++f) {
                    APPROXSVM_UNROLL for (int h = 0; h < halves; ++h) {
                        sum[f][h] = fmadd(load(a + static_cast<std::size_t>(f) * width + h * lanes64), k[h], sum[f][h]);
                    }
                }
            }
            APPROXSVM_UNROLL for (int f = 0; f < Numbers; ++f) {
                store(partial[r][f], add(load(partial[r][f]), halves == 2 ? add(sum[f][0], sum[f][1]) : sum[f][0]));
            }
        }
    });
    for (std::size_t r = 0; r < n_rows; ++r) {
        for (std::size_t f = 0; f < Numbers; ++f) sums[r * Numbers + f] = sum_of_lanes(load(partial[r][f]));
        term.finish(half_sq_norm + r, 1, Numbers, sums + r * Numbers);
    }
}

// --- any number of sums of any number of classes

constexpr std::size_t max_chunk_panels = 32;

// Number of panels whose float64 kernel values are stored until they are summed. The larger this number is, the fewer
// classes are split. However, the kernel values of all sparse rows must stay in the L2 cache.
constexpr std::size_t chunk_panels(std::size_t n_features) {
    constexpr std::size_t group = static_cast<std::size_t>(group_panels), cached_bytes = 512 * 1024;
    const std::size_t n = cached_bytes / (cache_line_bytes * (n_features + 1)) / group * group;
    return n < group ? group : n > max_chunk_panels ? max_chunk_panels : n;
}

// Maximum number of kernel values in a chunk of panels.
template <class Real>
constexpr std::size_t chunk_lanes = max_chunk_panels * panel_width<Real>;

// Number of sparse rows that use the coefficients while these are in registers, and number of sums computed together
// for each row.
constexpr int rows_together = tile_rows == 8 ? 4 : 2;
constexpr int row_sums_together = 5;

// Computes a row's terms with the support vectors of n_panels panels, in float64. Not inlined: inside the surrounding
// loops, compilers run out of registers for the innermost loop's addresses (inlining is 12% slower at 784 features).
template <class Term, class Real>
APPROXSVM_NOINLINE inline void chunk_kernels(const KernelVectors<Real>& vectors, const Term& term,
                                             std::size_t first_panel, std::size_t n_panels, const RowTerms<Real>& row,
                                             Real half_sq_norm, double* kernel) {
    for_panels(first_panel, first_panel + n_panels, [&](auto n, std::size_t panel) APPROXSVM_INLINE_LAMBDA {
        typename RegisterOf<Real>::type total[n.value * panel_registers];
        row_products<n.value>(vectors, panel, row, total);
        term.template panels<n.value>(panel, half_sq_norm, total);
        store_widened<Real>(total, kernel + (panel - first_panel) * panel_width<Real>);
    });
}

// Multiplies n_panels panels of kernel values by the coefficients of Sums functions, and adds the products to the sums
// for Rows rows. The kernel values of row r start at kernel + r * chunk_lanes, and its sums at sums + r * n_sums.
template <int Sums, int Rows, class Real>
APPROXSVM_INLINE void add_panel_sums(const double* kernel, std::size_t n_panels, const double* coef,
                                     std::size_t coef_stride, double* sums, std::size_t n_sums) {
    constexpr std::size_t width = panel_width<Real>;
    APPROXSVM_COUNT_WORK(static_cast<double>(n_panels * cache_line_bytes * Sums * Rows) / 4.0);
    f64v sum[Rows][Sums];
    APPROXSVM_UNROLL for (int r = 0; r < Rows; ++r) {
        APPROXSVM_UNROLL for (int f = 0; f < Sums; ++f) sum[r][f] = zero64();
    }
    for (const double* const end = kernel + n_panels * width; kernel != end; kernel += width, coef += coef_stride) {
        for (std::size_t i = 0; i < width; i += lanes64) {
            f64v k[Rows];
            APPROXSVM_UNROLL for (int r = 0; r < Rows; ++r) {
                k[r] = load(kernel + static_cast<std::size_t>(r) * chunk_lanes<Real> + i);
            }
            APPROXSVM_UNROLL for (int f = 0; f < Sums; ++f) {
                const f64v a = load(coef + static_cast<std::size_t>(f) * width + i);
                APPROXSVM_UNROLL for (int r = 0; r < Rows; ++r) sum[r][f] = fmadd(a, k[r], sum[r][f]);
            }
        }
    }
    APPROXSVM_UNROLL for (int r = 0; r < Rows; ++r) {
        double* const of_row = sums + static_cast<std::size_t>(r) * n_sums;
        APPROXSVM_UNROLL for (int f = 0; f < Sums; ++f) of_row[f] += sum_of_lanes(sum[r][f]);
    }
}

// Adds the products for n_numbers functions to the sums. If first_of_panel is given, each group of functions skips the
// trailing panels whose first nonzero coefficient lies beyond the group.
template <int Rows, class Real>
APPROXSVM_NOINLINE inline void add_sums_of_panels(const double* kernel, std::size_t n_panels, const double* coef,
                                                  std::size_t n_numbers, const std::uint32_t* first_of_panel,
                                                  double* sums, std::size_t n_sums) {
    constexpr std::size_t width = panel_width<Real>;
    for_sums<row_sums_together>(0, n_numbers, [&](auto n, std::size_t first) {
        std::size_t last = n_panels;  // one-vs-rest coefficients form a triangle
        while (first_of_panel && last > 0 && first_of_panel[last - 1] >= first + n.value) --last;
        add_panel_sums<n.value, Rows, Real>(kernel, last, coef + first * width, n_numbers * width, sums + first,
                                            n_sums);
    });
}

// Adds the terms of a chunk's support vectors to the sums for Rows rows, (Rows, n_classes, n_numbers), given the kernel
// values, (Rows, chunk_lanes).
template <int Rows, class Real>
APPROXSVM_INLINE void add_chunk_sums(const KernelSums<Real>& expansion, std::size_t first_panel, std::size_t n_panels,
                                     const double* kernel, double* sums) {
    constexpr std::size_t width = panel_width<Real>;
    const std::size_t n_numbers = expansion.n_numbers, end = first_panel + n_panels;
    for (std::size_t panel = first_panel; panel < end;) {
        const std::uint32_t c = expansion.class_of_panel[panel];
        std::size_t after = panel + 1;
        while (after < end && expansion.class_of_panel[after] == c) ++after;
        add_sums_of_panels<Rows, Real>(kernel + (panel - first_panel) * width, after - panel,
                                       expansion.coef + panel * n_numbers * width, n_numbers,
                                       expansion.first_of_panel + panel, sums + c * n_numbers, expansion.n_sums());
        panel = after;
    }
}

// Computes the sums, of shape (n_rows, n_classes, n_numbers), for n_rows rows, where n_rows is a multiple of Rows.
template <int Rows, class Term, class Real>
APPROXSVM_NOINLINE inline void sums_of_rows(const KernelSums<Real>& sums_of, const Term& term,
                                            const RowsOfTerms<Real>& rows, std::size_t n_rows, const Real* half_sq_norm,
                                            double* sums) {
    constexpr std::size_t together = Rows;
    const KernelVectors<Real>& vectors = sums_of.vectors;
    const std::size_t n_sums = sums_of.n_sums(), n_all = vectors.n_panels;
    const std::size_t chunk = rows.products ? max_chunk_panels : chunk_panels(vectors.n_features);
    for (std::size_t i = 0; i < n_rows * n_sums; ++i) sums[i] = 0.0;
    alignas(cache_line_bytes) double kernel[together * chunk_lanes<Real>];
    for (std::size_t panel = 0; panel < n_all; panel += chunk) {
        const std::size_t left = n_all - panel, n_panels = left < chunk ? left : chunk;
        for (std::size_t first = 0; first < n_rows; first += together) {
            for (std::size_t r = 0; r < together; ++r) {
                chunk_kernels(vectors, term, panel, n_panels, rows[first + r], half_sq_norm[first + r],
                              kernel + r * chunk_lanes<Real>);
            }
            add_chunk_sums<Rows>(sums_of, panel, n_panels, kernel, sums + first * n_sums);
        }
    }
    for (std::size_t r = 0; r < n_rows; ++r) term.finish(half_sq_norm + r, 1, n_sums, sums + r * n_sums);
}

// --- the interface of predict/stages/engine.hpp

// Evaluates the sums for all functions or classes. Numbers is the number of sums for the only class, or 0 for any
// number of classes and sums.
template <class Term, int Numbers>
struct TermSums {
    using Real = typename Term::Real;
    static constexpr bool counts_unseen = Term::counts_unseen;

    const KernelSums<Real>& sums_of;
    const Term term;
    Real* const products;  // space for one row's inner products with all lanes, if vectors are stored by column
    const KernelVectors<Real>& vectors = sums_of.vectors;
    std::size_t n_sums() const { return Numbers > 0 ? std::size_t{Numbers} : sums_of.n_sums(); }

    template <int Registers>
    void block(const Real* u, const Real* half_sq_norm, double* sums) const {
        sums_of_block<Numbers, Registers>(sums_of, term, u, half_sq_norm, sums);
    }
    void row(const Real* u, Real half_sq_norm, double* sums) const {
        const std::size_t starts[2] = {0, vectors.n_features};
        of_rows({u, starts, nullptr, nullptr}, 1, &half_sq_norm, sums);
    }
    // For starts[r] <= k < starts[r + 1], column columns[k] < n_features of row r has the value values[k] (u =
    // input_scale z, so the center is 0). The work is proportional to the number of nonzeros.
    void sparse(const Real* values, const std::int32_t* columns, const std::size_t* starts, std::size_t n,
                const Real* half_sq_norm, double* sums) const {
        const bool by_columns = vectors.columns.n_lanes > 0;
        const std::size_t together = by_columns ? 1 : sparse_block_rows;
        for (std::size_t first = 0; first < n; first += together) {
            const std::size_t left = n - first, n_rows = left < together ? left : together, start = starts[first];
            if (by_columns) {
                column_products(vectors.columns, values + start, columns + start, starts[first + 1] - start, products);
            }
            of_rows({values, starts + first, columns, by_columns ? products : nullptr}, n_rows, half_sq_norm + first,
                    sums + first * n_sums());
        }
    }

  private:
    void of_rows(const RowsOfTerms<Real>& rows, std::size_t n, const Real* half_sq_norm, double* sums) const {
        if constexpr (Numbers > 0) {
            fixed_sums_of_rows<Numbers>(sums_of, term, rows, n, half_sq_norm, sums);
        } else {
            const std::size_t n_together = n / rows_together * rows_together;
            if (n_together > 0) sums_of_rows<rows_together>(sums_of, term, rows, n_together, half_sq_norm, sums);
            for (std::size_t r = n_together; r < n; ++r) {
                const RowsOfTerms<Real> row{rows.values, rows.starts + r, rows.columns, rows.products};
                sums_of_rows<1>(sums_of, term, row, 1, half_sq_norm + r, sums + r * n_sums());
            }
        }
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

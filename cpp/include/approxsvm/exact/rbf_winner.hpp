// The exact engine for the pairs of one class. A class that wins all its n_classes - 1 pairs is the winner, however the
// other pairs vote. These pairs need this class's support vectors, and the support vectors of other classes that have a
// nonzero coefficient in a pair with it. In models with many classes, the latter are a fifth to a half of all support
// vectors, and each needs a single coefficient. Rows that probably belong to the same class are evaluated together, one
// SIMD lane per row. A small network on some of the support vectors (the landmarks) guesses a row's class.
//
// Kernel values are computed in float32 by gaussian.hpp. Coefficients, and sums over at most listed_tiles tiles, are
// also float32: a product passes through at most listed_depth roundings before it is added to a float64 sum. Within a
// pair, the coefficients of a class all have the same sign, as LIBSVM's duals do, so a pair's two sums also give its
// sum of absolute values.
#ifndef APPROXSVM_EXACT_RBF_WINNER_HPP
#define APPROXSVM_EXACT_RBF_WINNER_HPP

#include "../arena.hpp"
#include "gaussian.hpp"
#include "kernel_sums.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Number of tiles whose inner products are computed together; they hold as many support vectors as block_panels panels.
constexpr std::size_t listed_tiles = block_panels * panel_width<float> / tile_rows;
// Maximum number of rounding errors in a product and its sum: one for rounding the coefficient, one for the product,
// tile_rows for the additions within a tile, and listed_tiles for adding tiles.
constexpr double listed_depth = static_cast<double>(tile_rows) + static_cast<double>(listed_tiles) + 2.0;

// Range of absolute values of coefficients that can be summed in float32 without overflow or relevant underflow.
// Products below 2^-126 have an absolute error below 2^-126, i.e. at most 2^-66 times a coefficient.
constexpr double least_listed = 0x1p-60, most_listed = 0x1p60;

// --- the lists

// Tiles of tile_rows support vectors at arbitrary positions in the panels (vectors.hpp). A list is padded with copies
// of its last support vector, with coefficient 0.
struct ListOfVectors {
    const std::size_t* offsets;  // offset of each vector in the panels, (n_tiles, tile_rows)
    const std::uint32_t* lanes;  // lane of each vector, from the first panel on, (n_tiles, tile_rows)
    const float* half_sq_norms;  // half squared norm of each vector, (n_tiles, tile_rows)
    const float* coef;           // coefficients, (n_tiles, n_sums, tile_rows)
};

struct WinnerKernelSum {
    const KernelVectors<float>* kernels;
    std::size_t n_classes;
    // The lists of class w: its own support vectors have n_classes - 1 coefficients each. The support vectors of
    // another class c have one coefficient each, in the tiles others_of[w n + c] to others_of[w n + c + 1] - 1, where n
    // = n_classes.
    const std::size_t *own_of, *others_of;  // first tiles: (n_classes + 1,) and (n_classes^2 + 1,)
    ListOfVectors own, others;
    const std::size_t* panel_of;  // first panel of each class, (n_classes + 1,)
    const float* rows;            // contiguous support vectors, (n_lanes, row_stride(n_features))
};

// Stride of contiguous vectors, which are padded with zeros to whole registers.
constexpr std::size_t row_stride(std::size_t n_features) {
    constexpr std::size_t width = lanes;
    return (n_features + width - 1) / width * width;
}

constexpr std::size_t tiles_for(std::size_t n_vectors) {
    return (n_vectors + tile_rows - 1) / tile_rows;
}

// --- filling the lists

// LIBSVM's block of coefficients, and the number of support vectors per class. The pointers are null in models without
// this engine.
struct PairCoefficients {
    const double* dual_coef = nullptr;      // coefficients, (n_classes - 1, n_sv)
    const std::uint32_t* counts = nullptr;  // number of support vectors in each class, (n_classes,)
    std::size_t n_classes = 0, n_sv = 0;

    // Number of lanes in the panels of all classes; each class begins a new panel.
    std::size_t n_lanes() const {
        std::size_t n = 0;
        for (std::size_t c = 0; c < n_classes; ++c) n += panels_for<float>(counts[c]) * panel_width<float>;
        return n;
    }
    // Calls visit(w, c, k, a) for every class w and every support vector k of another class c; a is the coefficient of
    // k in the pair with w.
    template <class Visit>
    void for_each(const Visit& visit) const {
        for (std::size_t w = 0; w < n_classes; ++w) {
            std::size_t k = 0;
            for (std::size_t c = 0; c < n_classes; k += counts[c], ++c) {
                if (c == w) continue;
                const double* const coef = dual_coef + (w < c ? w : w - 1) * n_sv;
                for (std::size_t i = k; i < k + counts[c]; ++i) visit(w, c, i, coef[i]);
            }
        }
    }
};

// The number of tiles in the lists, and whether the lists can be used: within a pair, the coefficients of a class must
// have the same sign, and summing them in float32 must cause neither overflow nor relevant underflow.
constexpr std::size_t most_padded_tiles = std::size_t{1} << 16;
struct WinnerTiles {
    bool is_usable;
    std::size_t own = 0, others = 0;

    explicit WinnerTiles(const PairCoefficients& pairs) : is_usable(pairs.n_classes > 0) {
        std::size_t list = ~std::size_t{0}, n = 0, n_listed = 0;
        bool positive = false, negative = false;
        pairs.for_each([&](std::size_t w, std::size_t c, std::size_t, double a) {
            if (list != w * pairs.n_classes + c) {
                others += tiles_for(n);
                list = w * pairs.n_classes + c;
                n = 0;
                positive = negative = false;
            }
            if (a == 0.0) return;
            ++n, ++n_listed;
            (a > 0.0 ? positive : negative) = true;
            const double modulus = a < 0.0 ? -a : a;
            is_usable = is_usable && !(positive && negative) && modulus >= least_listed && modulus <= most_listed;
        });
        others += tiles_for(n);
        // The engine is not used if most of the tiles would be padding, as in a model with many classes that have few
        // support vectors each.
        if (others > most_padded_tiles && others * tile_rows > 4 * n_listed) is_usable = false;
        for (std::size_t c = 0; c < pairs.n_classes; ++c) own += tiles_for(pairs.counts[c]);
        if (!is_usable) own = others = 0;
    }
};

struct ListMemory {
    std::size_t* offsets;
    std::uint32_t* lanes;
    float *half_sq_norms, *coef;

    ListMemory(std::size_t n_tiles, std::size_t n_sums, Arena& arena)
        : offsets(arena.take<std::size_t>(n_tiles * tile_rows)),
          lanes(arena.take<std::uint32_t>(n_tiles * tile_rows)),
          half_sq_norms(arena.take<float>(n_tiles * tile_rows)),
          coef(arena.take<float>(n_tiles * tile_rows, n_sums)) {}
};

struct WinnerMemory {
  private:
    const WinnerTiles n_tiles_;
    const std::size_t n_;  // number of classes if the engine is usable, else 0

  public:
    const bool is_usable;
    std::size_t *const own_of, *const others_of, *const panel_of;
    std::uint32_t* const lane_of;  // lanes of the support vectors in the panels, (n_sv,)
    float* const rows;
    const ListMemory own, others;

    WinnerMemory(const PairCoefficients& pairs, std::size_t n_features, Arena& arena)
        : n_tiles_(pairs),
          n_(n_tiles_.is_usable ? pairs.n_classes : 0),
          is_usable(n_tiles_.is_usable),
          own_of(arena.take<std::size_t>(n_ + 1)),
          others_of(arena.take<std::size_t>(n_ * n_ + 1)),
          panel_of(arena.take<std::size_t>(n_ + 1)),
          lane_of(arena.take<std::uint32_t>(is_usable ? pairs.n_sv : 0)),
          rows(arena.take<float>(is_usable ? pairs.n_lanes() : 0, row_stride(n_features))),
          own(n_tiles_.own, n_ > 0 ? n_ - 1 : 0, arena),
          others(n_tiles_.others + (is_usable ? 1 : 0), 1, arena) {}
};

// Fills a list tile by tile.
class ListWriter {
  public:
    ListWriter(const KernelVectors<float>& kernels, const ListMemory& memory, std::size_t n_sums)
        : kernels_(kernels), memory_(memory), n_sums_(n_sums) {}

    std::size_t n_tiles() const { return tiles_for(n_); }
    ListOfVectors list() const { return {memory_.offsets, memory_.lanes, memory_.half_sq_norms, memory_.coef}; }

    // Adds the support vector in this lane of the panels; its coefficient in function f is coefficient(f).
    template <class Coefficient>
    void add(std::size_t lane, const Coefficient& coefficient) {
        constexpr std::size_t width = panel_width<float>;
        memory_.offsets[n_] = lane / width * width * kernels_.n_features + lane % width;
        memory_.lanes[n_] = static_cast<std::uint32_t>(lane);
        memory_.half_sq_norms[n_] = kernels_.half_sq_norms[lane];
        float* const coef = memory_.coef + n_ / tile_rows * tile_rows * n_sums_ + n_ % tile_rows;
        for (std::size_t f = 0; f < n_sums_; ++f) coef[f * tile_rows] = static_cast<float>(coefficient(f));
        last_ = lane;
        ++n_;
    }
    // Pads the last tile.
    void end_list() {
        while (n_ % tile_rows != 0) {
            add(last_, [](std::size_t) { return 0.0; });
        }
    }
    // Appends one tile, because readers load whole registers from the last list.
    void end_lists() {
        do add(last_, [](std::size_t) { return 0.0; });
        while (n_ % tile_rows != 0);
    }

  private:
    const KernelVectors<float>& kernels_;
    const ListMemory memory_;
    const std::size_t n_sums_;
    std::size_t n_ = 0, last_ = 0;
};

// Stores the vectors in the panels' first n_lanes lanes contiguously.
APPROXSVM_COLD inline void fill_rows(const KernelVectors<float>& kernels, std::size_t n_lanes, float* rows) {
    constexpr std::size_t width = panel_width<float>;
    const std::size_t n = kernels.n_features, stride = row_stride(n);
    for (std::size_t lane = 0; lane < n_lanes; ++lane, rows += stride) {
        const float* const in_panel = kernels.panels + lane / width * width * n + lane % width;
        for (std::size_t j = 0; j < stride; ++j) rows[j] = j < n ? in_panel[j * width] : 0.0f;
    }
}

// Fills the lists of all classes. The support vectors are in panels, class by class (kernel_sums.hpp).
APPROXSVM_COLD inline WinnerKernelSum fill_winner(const PairCoefficients& pairs, const KernelVectors<float>& kernels,
                                                  const WinnerMemory& memory) {
    const std::size_t n = pairs.n_classes;
    ListWriter own(kernels, memory.own, n - 1), others(kernels, memory.others, 1);
    std::size_t k = 0, lane = 0;
    for (std::size_t c = 0; c < n; ++c) {
        memory.own_of[c] = own.n_tiles();
        memory.panel_of[c] = lane / panel_width<float>;
        for (const std::size_t end = k + pairs.counts[c]; k < end; ++k, ++lane) {
            memory.lane_of[k] = static_cast<std::uint32_t>(lane);
            own.add(lane, [&](std::size_t r) { return pairs.dual_coef[r * pairs.n_sv + k]; });
        }
        own.end_list();
        lane = panels_for<float>(lane) * panel_width<float>;
    }
    memory.own_of[n] = own.n_tiles();
    memory.panel_of[n] = lane / panel_width<float>;
    std::size_t list = 0;  // the first list whose start is still unknown
    pairs.for_each([&](std::size_t w, std::size_t c, std::size_t sv, double a) {
        if (list <= w * n + c) others.end_list();
        while (list <= w * n + c) memory.others_of[list++] = others.n_tiles();
        if (a != 0.0) others.add(memory.lane_of[sv], [a](std::size_t) { return a; });
    });
    others.end_list();
    while (list <= n * n) memory.others_of[list++] = others.n_tiles();
    others.end_lists();
    fill_rows(kernels, lane, memory.rows);
    return {&kernels, n, memory.own_of, memory.others_of, own.list(), others.list(), memory.panel_of, memory.rows};
}

// --- sums

// For each of n_sums functions f, adds the sum over n_tiles <= listed_tiles tiles, from `first` on, to partial[f *
// stride ..]. `partial` holds n_sums * stride floats. Not inlined: otherwise, compilers run out of registers in the
// loop over the features, which makes the AVX2 engine 10% slower.
template <int Registers>
APPROXSVM_NOINLINE inline void add_listed(const KernelVectors<float>& kernels, const ListOfVectors& list,
                                          std::size_t n_sums, std::size_t first, std::size_t n_tiles,
                                          const float* block, const float* half_sq_norm, float* partial) {
    constexpr std::size_t stride = Registers * static_cast<std::size_t>(lanes);
    const std::size_t* const offsets = list.offsets + first * tile_rows;
    const auto tile = [&](std::size_t t, std::size_t offset) {
        ListedVectors<float> found;
        APPROXSVM_UNROLL for (int i = 0; i < tile_rows; ++i) {
            found.vectors[i] = kernels.panels + offset + offsets[t * tile_rows + static_cast<std::size_t>(i)];
        }
        return found;
    };
    f32v inner[listed_tiles][tile_rows][Registers];
    inner_products_of<Registers>(kernels.n_features, n_tiles, tile, block, inner);
    for (std::size_t t = 0; t < n_tiles; ++t) {
        const float* const half_sq = list.half_sq_norms + (first + t) * tile_rows;
        const float* const coef_of_tile = list.coef + (first + t) * n_sums * tile_rows;
        for (int v = 0; v < Registers; ++v) {
            f32v kernel[tile_rows];
            tile_kernels(kernels.theta, half_sq, inner[t], v, half_sq_norm, kernel);
            const float* coef = coef_of_tile;
            float* sum = partial + v * lanes;
            for (std::size_t f = 0; f < n_sums; ++f, coef += tile_rows, sum += stride) {
                f32v s = mul(set1(coef[0]), kernel[0]);
                APPROXSVM_UNROLL for (int i = 1; i < tile_rows; ++i) s = fmadd(set1(coef[i]), kernel[i], s);
                store(sum, add(load(sum), s));
            }
        }
    }
}

// For each of n_sums functions f, sets sums[f * stride ..] to the sum over the tiles [first, end). `partial` must have
// space for n_sums * stride floats.
template <int Registers>
inline void listed_sums(const KernelVectors<float>& kernels, const ListOfVectors& list, std::size_t n_sums,
                        std::size_t first, std::size_t end, const float* block, const float* half_sq_norm,
                        float* partial, double* sums) {
    constexpr std::size_t stride = Registers * static_cast<std::size_t>(lanes);
    for (std::size_t k = 0; k < n_sums * stride; ++k) sums[k] = 0.0;
    for (; first < end; first += listed_tiles) {
        const std::size_t left = end - first;
        for (std::size_t k = 0; k < n_sums * stride; ++k) partial[k] = 0.0f;
        add_listed<Registers>(kernels, list, n_sums, first, left < listed_tiles ? left : listed_tiles, block,
                              half_sq_norm, partial);
        for (std::size_t k = 0; k < n_sums * stride; ++k) sums[k] += static_cast<double>(partial[k]);
    }
}

// Computes sums for a block of rows: for every class c other than w, own[r * stride ..] and others[c * stride ..] are
// the sums of the pair (w, c) over the support vectors of w and of c, where r = c if c < w, else c - 1. A pair's value
// is the sum of both plus its intercept.
template <int Registers>
inline void winner_sums_block(const WinnerKernelSum& engine, std::size_t w, const float* block,
                              const float* half_sq_norm, float* partial, double* own, double* others) {
    constexpr std::size_t stride = Registers * static_cast<std::size_t>(lanes);
    const std::size_t n = engine.n_classes;
    listed_sums<Registers>(*engine.kernels, engine.own, n - 1, engine.own_of[w], engine.own_of[w + 1], block,
                           half_sq_norm, partial, own);
    for (std::size_t c = 0; c < n; ++c) {
        if (c == w) continue;
        const std::size_t list = w * n + c;
        listed_sums<Registers>(*engine.kernels, engine.others, 1, engine.others_of[list], engine.others_of[list + 1],
                               block, half_sq_norm, partial, others + c * stride);
    }
}

// Sets products[c * stride ..] to the inner products of the block's rows with vector c, for the first n vectors in
// panels; `products` must have space for whole tiles.
template <int Registers>
inline void products_block(const float* panels, std::size_t n_features, std::size_t n, const float* block,
                           float* products) {
    constexpr std::size_t stride = Registers * static_cast<std::size_t>(lanes);
    constexpr std::size_t width = panel_width<float>;
    const std::size_t n_tiles = tiles_for(n);
    for (std::size_t first = 0; first < n_tiles; first += listed_tiles) {
        const std::size_t left = n_tiles - first, n_together = left < listed_tiles ? left : listed_tiles;
        const auto tile = [=](std::size_t t, std::size_t offset) {
            const std::size_t c = (first + t) * tile_rows;
            return AdjacentVectors<float>{panels + c / width * width * n_features + c % width + offset};
        };
        f32v inner[listed_tiles][tile_rows][Registers];
        inner_products_of<Registers>(n_features, n_together, tile, block, inner);
        for (std::size_t t = 0; t < n_together; ++t) {
            float* const of_tile = products + (first + t) * tile_rows * stride;
            for (int i = 0; i < tile_rows; ++i) {
                for (int v = 0; v < Registers; ++v) {
                    store(of_tile + static_cast<std::size_t>(i) * stride + v * lanes, inner[t][i][v]);
                }
            }
        }
    }
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

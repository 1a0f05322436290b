// Kernel sums for support vectors whose features have few values, all on one grid: f(z) = sum_i a_i exp(-g h_i). Here
// h_i, a small integer, is the squared distance between z and x_i in grid steps, and g = gamma step^2. Integer
// arithmetic is exact, and kernel values come from lookups instead of exp. layout.hpp determines which models qualify,
// and stage.hpp determines which rows do.
//
// Support vectors are divided into segments. Within a segment, all coefficients of a function have the same sign, so
// the absolute value of a segment's sum is the sum of absolute values. The segments are the positive and the negative
// coefficients of a single function, or, with several functions, the classes. They are padded to whole panels with
// vectors whose coefficients are zero.
//
// A panel of few_panel vectors is stored in one of two ways:
// * planes, (n_parts, few_panel) uint32, if each feature has two values one step apart: one bit per feature, 32 bits
//   per plane; h is the number of bits in which row and vector differ;
// * codes, (n_parts, few_panel) bytes, if features share bytes: in the support vectors, the features of a group have at
//   most 16 combinations of values. For each row, a table stores every combination's contribution to h, which is then
//   a sum of lookups.
#ifndef APPROXSVM_PREDICT_FEW_VALUES_SUMS_HPP
#define APPROXSVM_PREDICT_FEW_VALUES_SUMS_HPP

#include <cmath>

#include "../../arena.hpp"
#include "../../simd/bits.hpp"
#include "../../simd/exp.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

constexpr std::size_t few_panel = 64;  // support vectors per panel
constexpr std::size_t few_chunk = 16 * few_panel;
constexpr std::size_t joint_values = 16;     // maximum number of value combinations in a group of features
constexpr std::size_t most_steps = 15;       // maximum number of steps between a feature's lowest and highest value
constexpr std::size_t most_sq_steps = 4095;  // maximum of h

struct FewValues {
    bool is_usable;
    bool in_planes;
    double work;  // work per support vector, in float32-engine multiply-adds
    std::size_t n_features, n_segments, n_functions;
    std::size_t n_parts;  // number of planes or groups
    std::size_t max_sq_steps;

    // The grid: values are origin + k step, where lowest[j] <= k <= lowest[j] + range[j] for feature j.
    double origin, step, inverse_step;
    const double *lowest, *range;        // smallest k and number of steps for each feature, (n_features,)
    const std::uint8_t* codes_of_zeros;  // code of zero for each feature, (n_features,); null if a feature lacks one

    const std::size_t* starts;     // first lane of each segment, (n_segments + 1,)
    const unsigned char* vectors;  // panels, (n_lanes / few_panel, n_parts, few_panel)
    const float* coef;             // a_i / coef_scale, (n_functions, lanes) for each segment
    const double* coef64;          // a_i, in the same layout as coef
    double coef_scale;             // a power of two

    const std::uint32_t* first_features;  // first feature of each group, (n_parts + 1,)
    const std::uint32_t* run_ends;        // ends of runs of parts, up to n_parts; the sum over each run fits in a byte
    const std::uint32_t* first_squares;   // first row of `squares` for each feature, (n_features,)
    const std::uint8_t (*squares)[16];    // squares[first_squares[j] + k][code] is feature j's contribution to h
    const float* digits;                  // digit tables, (n_digits, digit_values)
    std::size_t n_digits;
    const double* kernels64;  // exp(-g h), (max_sq_steps + 1,)
    double grid_error;        // bound on the error of f due to values not exactly on the grid, divided by A1
    double exponent_reach;    // the largest finite g h in float64
};

// --- a row

// A row in the form used by the sums: bits, or one table per group.
struct FewRow {
    std::uint32_t* planes;       // bits, (n_parts,)
    std::uint8_t (*tables)[16];  // group tables, (n_parts,)
};

// Fills a row from its feature codes. The array `codes` must have space for seven more bytes.
inline void fill_few_row(const FewValues& few, std::uint8_t* codes, const FewRow& row) {
    if (few.in_planes) {
        for (std::size_t j = few.n_features; j < few.n_features + 7; ++j) codes[j] = 0;
        for (std::size_t p = 0; p < few.n_parts; ++p) row.planes[p] = 0;
        for (std::size_t j = 0; j < few.n_features; j += 8) {
            row.planes[j / 32] |= lowest_bits(codes + j) << j % 32;
        }
        return;
    }
    for (std::size_t p = 0; p < few.n_parts; ++p) {
        std::uint8_t table[16] = {};
        for (std::size_t j = few.first_features[p]; j < few.first_features[p + 1]; ++j) {
            const std::uint8_t* const more = few.squares[few.first_squares[j] + codes[j]];
            for (std::size_t c = 0; c < 16; ++c) table[c] = static_cast<std::uint8_t>(table[c] + more[c]);
        }
        std::memcpy(row.tables[p], table, 16);
    }
}

// --- distances and kernels

// Computes h between a row and each vector in n_panels panels.
inline void sq_steps(const FewValues& few, const FewRow& row, std::size_t first_panel, std::size_t n_panels,
                     std::uint32_t* h) {
    const std::size_t width = few.in_planes ? sizeof(std::uint32_t) : 1;
    const unsigned char* const panels = few.vectors + first_panel * few.n_parts * few_panel * width;
    if (few.in_planes) return differing_bits(panels, few.n_parts, n_panels, row.planes, h);
    looked_up_sums(panels, few.n_parts, n_panels, row.tables, few.run_ends, h);
}

// Depth of sums of coef[i] exp(-g h[i]) over at most few_chunk lanes: each of four float32 accumulators sums at most
// few_depth values in each lane; these sums are added in float64.
constexpr std::size_t few_depth = few_chunk / static_cast<std::size_t>(lanes) / 4;
static_assert(few_panel % (4 * static_cast<std::size_t>(lanes)) == 0);

// Returns the sum over n lanes of kernel values times coefficients; kernel(i) returns a register of kernel values, from
// lane i on.
template <class KernelAt>
APPROXSVM_INLINE double weighted_sum(const KernelAt& kernel, const float* coef, std::size_t n) {
    constexpr std::size_t width = static_cast<std::size_t>(lanes);
    f32v sum[4] = {zero(), zero(), zero(), zero()};
    for (std::size_t i = 0; i < n; i += 4 * width) {
        APPROXSVM_UNROLL for (std::size_t k = 0; k < 4; ++k) {
            sum[k] = fmadd(load(coef + i + k * width), kernel(i + k * width), sum[k]);
        }
    }
    f64v total = zero64();
    APPROXSVM_UNROLL for (int k = 0; k < 4; ++k) total = add(total, add(widen_low(sum[k]), widen_high(sum[k])));
    double lane[lanes64], result = 0.0;
    store(lane, total);
    for (int i = 0; i < lanes64; ++i) result += lane[i];
    return result;
}

// Calls take(first lane, number of lanes) for each chunk in a segment.
template <class Take>
APPROXSVM_INLINE void for_chunks(const FewValues& few, std::size_t segment, const Take& take) {
    for (std::size_t first = few.starts[segment]; first < few.starts[segment + 1]; first += few_chunk) {
        const std::size_t left = few.starts[segment + 1] - first;
        take(first, left < few_chunk ? left : few_chunk);
    }
}

// Returns the coefficients of function f in a segment, from a given lane on.
template <class Real>
APPROXSVM_INLINE const Real* coef_of(const FewValues& few, const Real* coef, std::size_t segment, std::size_t f,
                                     std::size_t lane) {
    const std::size_t start = few.starts[segment], n = few.starts[segment + 1] - start;
    return coef + start * few.n_functions + f * n + (lane - start);
}

template <int Digits>
inline double few_sum_of(const FewValues& few, const FewRow& row, std::size_t segment) {
    const DigitTables<Digits> tables(few.digits);
    double sum = 0.0;
    std::uint32_t h[few_chunk];
    for_chunks(few, segment, [&](std::size_t first, std::size_t n) {
        sq_steps(few, row, first / few_panel, n / few_panel, h);
        sum +=
            weighted_sum([&](std::size_t i) { return tables.at(h + i); }, coef_of(few, few.coef, segment, 0, first), n);
    });
    return few.coef_scale * sum;
}

// Returns the only function's sum over a segment.
inline double few_sum(const FewValues& few, const FewRow& row, std::size_t segment) {
    return with_digits(few.n_digits, [&](auto n) { return few_sum_of<n.value>(few, row, segment); });
}

// Sets kernels[i] to exp(-g h) for every lane i in all segments.
inline void few_kernels(const FewValues& few, const FewRow& row, float* kernels) {
    const std::size_t n_lanes = few.starts[few.n_segments];
    std::uint32_t h[few_chunk];
    for (std::size_t first = 0; first < n_lanes; first += few_chunk) {
        const std::size_t left = n_lanes - first, n = left < few_chunk ? left : few_chunk;
        sq_steps(few, row, first / few_panel, n / few_panel, h);
        with_digits(few.n_digits, [&](auto n_digits) {
            const DigitTables<n_digits.value> tables(few.digits);
            for (std::size_t i = 0; i < n; i += static_cast<std::size_t>(lanes)) {
                store(kernels + first + i, tables.at(h + i));
            }
            return 0;
        });
    }
}
// Returns function f's sum over a segment, computed from the kernel values.
inline double few_sum(const FewValues& few, const float* kernels, std::size_t segment, std::size_t f) {
    double sum = 0.0;
    for_chunks(few, segment, [&](std::size_t first, std::size_t n) {
        const float* const of_chunk = kernels + first;
        sum += weighted_sum([=](std::size_t i) { return load(of_chunk + i); },
                            coef_of(few, few.coef, segment, f, first), n);
    });
    return few.coef_scale * sum;
}

// Computes the sums of all functions over a segment in float64.
inline void few_sums64(const FewValues& few, const FewRow& row, std::size_t segment, double* sums) {
    std::uint32_t h[few_chunk];
    for (std::size_t f = 0; f < few.n_functions; ++f) sums[f] = 0.0;
    for_chunks(few, segment, [&](std::size_t first, std::size_t n) {
        sq_steps(few, row, first / few_panel, n / few_panel, h);
        for (std::size_t f = 0; f < few.n_functions; ++f) {
            const double* const coef = coef_of(few, few.coef64, segment, f, first);
            double sum[4] = {};
            for (std::size_t i = 0; i < n; i += 4) {
                for (std::size_t k = 0; k < 4; ++k) sum[k] += coef[i + k] * few.kernels64[h[i + k]];
            }
            sums[f] += (sum[0] + sum[1]) + (sum[2] + sum[3]);
        }
    });
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

// The inner loops of LibsvmSums, compiled once per target. Each lane of a vector holds one row and adds LIBSVM's terms
// in LIBSVM's order. No multiplication is fused with an addition, so every target gives bit-identical results.
#pragma once

#include <cstddef>
#include <cstdint>

namespace approxsvm::tools {

/// Some rows, and the columns that occur in at least one of them, in ascending order. Column k of row r is values[k *
/// n_lanes + r], which is 0 if the row does not have this feature.
struct LaneBlock {
    const std::int32_t* columns;
    std::size_t n_columns;
    const double* values;
    std::size_t n_vectors;  // each has LaneSums::width lanes: n_lanes = n_vectors * width
};

/// Rows of a compressed sparse matrix.
struct LaneVectors {
    const double* values;
    const std::int32_t* columns;
    const std::int64_t* starts;
};

/// Kernel values of n support vectors, of shape (n, n_lanes), with their weights and the indices of the accumulators to
/// which they are added.
struct LaneTerms {
    const double* kernels;
    const double* weights;        // weights of the kernel values, of shape (n, n_sums_each)
    const std::uint32_t* places;  // indices, of shape (n_sums_each,): sum m is sums[places[m] * n_lanes ...]
    std::size_t n_sums_each;
};

struct LaneSums {
    std::size_t width;
    /// Compute ||x_i - z||^2 or x_i . z for the vectors first ... last - 1; `out` has shape (last - first, n_lanes).
    void (*sq_distances)(const LaneBlock&, const LaneVectors&, std::size_t first, std::size_t last, double* out);
    void (*dot_products)(const LaneBlock&, const LaneVectors&, std::size_t first, std::size_t last, double* out);
    /// Adds n kernel values per lane to n_sums_each sums, each value multiplied by its weight for the sum.
    void (*add_terms)(const LaneTerms&, std::size_t n, std::size_t n_vectors, double* sums);
};

/// Maximum number of accumulators per block: as many as fit in registers together with the terms.
inline constexpr std::size_t max_lane_vectors = 8;

extern const LaneSums lane_sums_baseline, lane_sums_avx2, lane_sums_avx512, lane_sums_neon;

}  // namespace approxsvm::tools

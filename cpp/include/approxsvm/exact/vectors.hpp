// Support vectors as the exact engines store them: in the kernel's coordinates, xh_i = input_scale (x_i - center), with
// element type Real (float or double).
//
// Storage order: a "panel" holds panel_width<Real> support vectors as an array of shape (n_features,
// panel_width<Real>), so that one feature of a panel fills one cache line. The last panel is padded with zero vectors
// whose coefficients are zero. Support vectors with few nonzeros among many features are stored by column instead
// (sparse_columns.hpp); all rows are then treated as sparse.
#ifndef APPROXSVM_EXACT_VECTORS_HPP
#define APPROXSVM_EXACT_VECTORS_HPP

#include "../arena.hpp"
#include "../simd/norms.hpp"
#include "../simd/simd.hpp"
#include "sparse_columns.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

constexpr std::size_t cache_line_bytes = 64;

// Number of support vectors per panel.
template <class Real>
constexpr std::size_t panel_width = cache_line_bytes / sizeof(Real);

// Number of registers per feature of a panel, for both float and double.
constexpr int panel_registers = static_cast<int>(cache_line_bytes / sizeof(float)) / lanes;

template <class Real>
struct KernelVectors {
    std::size_t n_sv, n_features, n_panels;
    Real theta;                   // 2 gamma / input_scale^2
    Real half_theta;              // half of theta
    Real max_half_sq_norm;        // maximum of half_sq_norms
    const Real* panels;           // support vectors, (n_panels, n_features, panel_width)
    SparseColumns<Real> columns;  // support vectors by column, which replace the panels if n_lanes is not 0
    const Real* half_sq_norms;    // half_theta ||xh_i||^2, (n_panels * panel_width,)
};

// Number of panels needed for n_vectors vectors, and their total number of lanes.
template <class Real>
constexpr std::size_t panels_for(std::size_t n_vectors) {
    return (n_vectors + panel_width<Real> - 1) / panel_width<Real>;
}
template <class Real>
constexpr std::size_t lanes_for(std::size_t n_vectors) {
    return panels_for<Real>(n_vectors) * panel_width<Real>;
}

// Used as the number of values if support vectors are stored in panels instead of columns.
constexpr std::size_t in_panels = ~std::size_t{0};

// Memory for support vectors in n_lanes lanes, stored by column with n_values values, or in panels.
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

    // To store by column, the caller first counts the values of all support vectors, then sets them.
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

    void describe(KernelVectors<Real>& kernels) const {
        kernels.panels = memory_.by_columns ? nullptr : memory_.panels;
        if (memory_.by_columns) kernels.columns = columns_.columns();
        kernels.half_sq_norms = memory_.half_sq_norms;
        kernels.max_half_sq_norm = max_half_sq_norm_;
    }

  private:
    // Each of these functions stores a support vector and returns its squared norm.
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

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

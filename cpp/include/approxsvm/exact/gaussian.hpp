// Gaussian kernels at support vectors, from inner products. With u = input_scale (z - center), xh_i = input_scale (x_i
// - center) and theta = 2 gamma / input_scale^2,
//
//     K(x_i, z) = exp(theta xh_i.u - half_theta ||xh_i||^2 - half_theta ||u||^2),
//
// computed in Real = float or double. Rows must be finite.
#ifndef APPROXSVM_EXACT_GAUSSIAN_HPP
#define APPROXSVM_EXACT_GAUSSIAN_HPP

#include "../simd/exp.hpp"
#include "products.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Sets inner[i] to exp(theta inner[i] + minus_half_sq_norms[i]). A positive argument of exp, which only rounding can
// cause, is replaced by 0. NaN, which only rows of infinite norm can cause, is replaced by a finite value.
template <int N, class Register>
APPROXSVM_INLINE void to_kernel_values(Register theta, Register (&inner)[N], const Register (&minus_half_sq_norms)[N],
                                       Register nought) {
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) {
        inner[i] = min_or_nan(fmadd(theta, inner[i], minus_half_sq_norms[i]), nought);
    }
    exp_nonpositive(inner);
}

// Computes the kernel values K between a tile and the block rows in register v, from their inner products; half_sq
// points to the tile's half_sq_norms.
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

// Turns inner products into kernel values in place.
template <int Panels, class Real>
APPROXSVM_INLINE void panel_kernels(const KernelVectors<Real>& expansion, std::size_t first_panel, Real half_sq_norm,
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

// The term for kernel_sums.hpp.
template <class R>
struct GaussianTerm {
    using Real = R;
    using Register = typename RegisterOf<Real>::type;
    static constexpr bool counts_unseen = true;

    const KernelVectors<Real>& vectors;

    template <int Registers>
    APPROXSVM_INLINE void tile(std::size_t first, const Register (&inner)[tile_rows][Registers], int v,
                               const Real* half_sq_norm, Register (&kernel)[tile_rows]) const {
        tile_kernels(vectors.theta, vectors.half_sq_norms + first, inner, v, half_sq_norm, kernel);
    }
    template <int Panels>
    APPROXSVM_INLINE void panels(std::size_t first_panel, Real half_sq_norm,
                                 Register (&total)[Panels * panel_registers]) const {
        panel_kernels<Panels>(vectors, first_panel, half_sq_norm, total);
    }
    // If a row's norm is infinite or overflows Real, its kernel sums are exactly 0.
    APPROXSVM_INLINE void finish(const Real* half_sq_norm, std::size_t n_lanes, std::size_t n_sums,
                                 double* sums) const {
        for (std::size_t r = 0; r < n_lanes; ++r) {
            if (is_finite(half_sq_norm[r])) continue;
            for (std::size_t f = 0; f < n_sums; ++f) sums[f * n_lanes + r] = 0.0;
        }
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

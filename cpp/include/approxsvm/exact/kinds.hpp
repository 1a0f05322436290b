// What kinds of kernels other than the Gaussian are laid out as: their pieces, the first of which is what evaluates
// them.
#pragma once

#include "cosine_sums.hpp"
#include "polynomial_kernel.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

template <class Pieces>
const void* lay_out_as(const ModelView& view, Carver& carver, bool only_counts) {
    const Pieces pieces(view, carver);
    if (only_counts) return nullptr;
    lay_out(view, pieces);
    return pieces.prepared;
}

// Takes memory and, unless it is only counted, fills it; of a Gaussian kernel nothing.
inline const void* lay_out_kind(const ModelView& view, Carver& carver, bool only_counts) {
    switch (view.kernel) {
        case KernelKind::gaussian:
            return nullptr;
        case KernelKind::polynomial:
        case KernelKind::sigmoid:
            return lay_out_as<PolynomialPieces>(view, carver, only_counts);
        case KernelKind::cosine:
            return lay_out_as<CosinePieces>(view, carver, only_counts);
    }
    return nullptr;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

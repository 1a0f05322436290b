// Kernel kinds as types; `Pieces` holds the memory that a kind's layout fills. Gaussian kernels need no layout here, so
// lay_out_as() returns null for them.
#ifndef APPROXSVM_EXACT_KINDS_HPP
#define APPROXSVM_EXACT_KINDS_HPP

#include "cosine_sums.hpp"
#include "polynomial_kernel.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

struct GaussianKernels {};
struct ProductKernels {
    using Pieces = PolynomialPieces;
};

// Calls call(kind) for the model's kind, which must be one that `parts` includes.
template <Parts parts, class Call>
inline auto with_kind(const ModelView& model, const Call& call) {
    constexpr Parts listed = parts & (rbf | polynomials | cosines);
    static_assert(listed != 0, "the list names no kind of kernels: approxsvm::rbf, polynomials or cosines");
    if constexpr (has(listed, polynomials)) {
        if (listed == polynomials || is_of_products(model)) return call(ProductKernels{});
    }
    if constexpr (has(listed, cosines)) {
        if (!has(listed, rbf) || model.kernel == KernelKind::cosine) return call(CosineTerms{});
    }
    if constexpr (has(listed, rbf)) return call(GaussianKernels{});
}

template <class Kind>
const void* lay_out_as(Kind, const ModelView& view, Arena& arena, bool only_counts) {
    const typename Kind::Pieces pieces(view, arena);
    if (only_counts) return nullptr;
    lay_out(view, pieces);
    return pieces.prepared;
}
inline const void* lay_out_as(GaussianKernels, const ModelView&, Arena&, bool) {
    return nullptr;
}

// Takes memory from the arena and, unless the arena only counts, fills it. Does nothing for a Gaussian kernel.
template <Parts parts>
inline const void* lay_out_kind(const ModelView& view, Arena& arena, bool only_counts) {
    return with_kind<parts>(view, [&](auto kind) { return lay_out_as(kind, view, arena, only_counts); });
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

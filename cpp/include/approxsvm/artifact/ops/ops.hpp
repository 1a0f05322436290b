// All kinds of ops.
#ifndef APPROXSVM_ARTIFACT_OPS_OPS_HPP
#define APPROXSVM_ARTIFACT_OPS_OPS_HPP

#include "affine.hpp"
#include "interval.hpp"
#include "inverse_normal.hpp"
#include "logarithm.hpp"
#include "lookup.hpp"
#include "monomials.hpp"
#include "normalizer.hpp"
#include "piecewise_polynomial.hpp"
#include "power.hpp"
#include "projection.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

template <class... Kinds>
struct OpList {
    // Returns use(Kind{}) for the struct of a kind, or `otherwise` if the kind has no struct.
    template <class Result, class Use>
    static Result with(OpKind kind, Result otherwise, const Use& use) {
        (void)((kind == Kinds::kind && (otherwise = use(Kinds{}), true)) || ...);
        return otherwise;
    }
    static constexpr std::uint32_t last = sizeof...(Kinds) - 1;  // kinds are numbered from 0
    static bool holds(OpKind kind) { return ((kind == Kinds::kind) || ...); }
};
using AllOps = OpList<AffineOp, ProjectionOp, LogarithmOp, LookupOp, NormalizerOp, PowerOp, PiecewisePolynomialOp,
                      MonomialsOp, InverseNormalOp, IntervalOp>;

// The ops included in a selection of parts.
template <Parts parts>
using OpsOf = std::conditional_t<has(parts, pipelines), AllOps, OpList<AffineOp>>;

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

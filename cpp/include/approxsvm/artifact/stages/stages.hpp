// All kinds of stages.
#pragma once

#include "affine.hpp"
#include "interval.hpp"
#include "inverse_normal.hpp"
#include "logarithm.hpp"
#include "monomials.hpp"
#include "normalizer.hpp"
#include "pieces.hpp"
#include "power.hpp"
#include "projection.hpp"
#include "table.hpp"
#include "waves.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

template <class... Kinds>
struct StageList {
    // Returns use(Kind{}) for the struct of a kind, or `otherwise` if no struct has this kind.
    template <class Result, class Use>
    static Result with(StageKind kind, Result otherwise, const Use& use) {
        (void)((kind == Kinds::kind && (otherwise = use(Kinds{}), true)) || ...);
        return otherwise;
    }
    static constexpr std::uint32_t last = sizeof...(Kinds) - 1;  // they are numbered from 0
    static bool holds(StageKind kind) { return ((kind == Kinds::kind) || ...); }
};
using AllStages = StageList<AffineStage, ProjectionStage, LogarithmStage, TableStage, NormalizerStage, PowerStage,
                            PiecesStage, MonomialsStage, InverseNormalStage, WavesStage, IntervalStage>;

// The stages included in a selection of parts.
template <Parts parts>
using StagesOf = std::conditional_t<has(parts, pipelines), AllStages, StageList<AffineStage>>;

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

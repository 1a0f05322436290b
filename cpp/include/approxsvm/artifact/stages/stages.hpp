// Every kind of stage that there is.
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
    // use(Kind{}) for the struct of a kind, or `otherwise` where none is of it.
    template <class Result, class Use>
    static Result with(StageKind kind, Result otherwise, const Use& use) {
        (void)((kind == Kinds::kind && (otherwise = use(Kinds{}), true)) || ...);
        return otherwise;
    }
    static constexpr std::uint32_t last = sizeof...(Kinds) - 1;  // their numbers go from 0 up
    static bool holds(StageKind kind) { return ((kind == Kinds::kind) || ...); }
};
using AllStages = StageList<AffineStage, ProjectionStage, LogarithmStage, TableStage, NormalizerStage, PowerStage,
                            PiecesStage, MonomialsStage, InverseNormalStage, WavesStage, IntervalStage>;

// Those that a list of parts has.
template <Parts parts>
using StagesOf = std::conditional_t<has(parts, pipelines), AllStages, StageList<AffineStage>>;

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

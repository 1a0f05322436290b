// x -> log(x + offset), feature by feature; features with an infinite offset are unchanged.
#pragma once

#include "stage.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

#include "../../program/logarithm.h"

struct LogarithmStage : AnyStage {
    static constexpr StageKind kind = StageKind::logarithm;
    static constexpr bool by_feature = true;

    APPROXSVM_COLD static bool header_is_valid(Check& check, const StageHeader& header, std::size_t n_inputs,
                                               std::uint64_t index) {
        return has_plain_header(check, header, n_inputs, index);
    }
    static ClaimedSize n_words(const StageHeader&, ClaimedSize n_inputs) { return n_inputs; }
    static void find_parts(MapStage& stage, StageArrays& arrays) { stage.parts[0] = arrays.numbers(stage.n_inputs); }
    APPROXSVM_COLD static bool is_valid(Check& check, const MapStage& stage) {
        return are_taken_or_stay(check, field::stage_offset, stage.parts[0], stage.n_inputs);
    }

    static void run(const MapStage& stage, const double*, const RowsOnTheWay& on) {
        const double* const offset = stage.parts[0];
        const int n = static_cast<int>(stage.n_inputs);
        map_balls(stage, on, [&](std::size_t r, double* x, double* error, auto source) {
            for (int j = 0; j < n; ++j) {
                if (offset[j] < APPROXSVM_STAYS && x[j] <= -offset[j]) on.refuse(r, kind, x[j], 0.0 - offset[j]);
            }
            map_features(
                n, x, error, [=](int j) { return offset[j] < APPROXSVM_STAYS; },
                [=](int j, approxsvm_ball at) { return approxsvm_logarithm(at, offset[j], source); });
        });
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

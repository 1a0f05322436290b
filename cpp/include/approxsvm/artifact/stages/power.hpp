// Box-Cox and Yeo-Johnson transforms, feature by feature; features with an infinite power are unchanged.
#pragma once

#include "stage.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

#include "../../program/power.h"

struct PowerStage : AnyStage {
    static constexpr StageKind kind = StageKind::power;
    static constexpr bool by_feature = true;
    static bool hides_infinity(const MapStage&) { return true; }
    enum Method : std::uint32_t { box_cox, yeo_johnson, n_methods };

    static bool header_is_valid(Check& check, const StageHeader& header, std::size_t n_inputs, std::uint64_t index) {
        return check(field::stage_parts, header.parts, from_to(0, n_methods - 1), index) &&
               check(field::stage_n_outputs, header.n_outputs, equal_to(n_inputs), index);
    }
    static ClaimedSize n_words(const StageHeader&, ClaimedSize n_inputs) { return n_inputs; }
    static void find_parts(MapStage& stage, StageArrays& arrays) { stage.parts[0] = arrays.numbers(stage.n_inputs); }
    static bool is_valid(Check& check, const MapStage& stage) {
        return are_taken_or_stay(check, field::stage_power, stage.parts[0], stage.n_inputs);
    }

    static void run(const MapStage& stage, const double*, const RowsOnTheWay& on) {
        stage.parts_number == yeo_johnson ? run_method<1>(stage, on) : run_method<0>(stage, on);
    }

  private:
    template <int is_shifted>
    static void run_method(const MapStage& stage, const RowsOnTheWay& on) {
        const double* const power = stage.parts[0];
        const int n = static_cast<int>(stage.n_inputs);
        map_balls(stage, on, [&](std::size_t r, double* x, double* error, auto source) {
            for (int j = 0; !is_shifted && j < n; ++j) {
                if (power[j] < APPROXSVM_STAYS && x[j] <= 0.0) on.refuse(r, kind, x[j], 0.0);
            }
            bool are_points = source == approxsvm_real;
            for (int j = 0; j < n; ++j) are_points &= error[j] == 0.0;
            const auto taken = [=](int j) { return power[j] < APPROXSVM_STAYS; };
            if (are_points) {
                return map_features(n, x, error, taken, [=](int j, approxsvm_ball at) {
                    const approxsvm_power_value y = approxsvm_power_at(at.value, power[j], is_shifted, approxsvm_real);
                    return approxsvm_ball{y.value, y.own};
                });
            }
            map_features(n, x, error, taken,
                         [=](int j, approxsvm_ball at) { return approxsvm_power(at, power[j], is_shifted, source); });
        });
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

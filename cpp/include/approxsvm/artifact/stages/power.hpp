// Box-Cox and Yeo-Johnson transforms, feature by feature; features of an infinite power stay as they are.
#pragma once

#include "stage.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

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
        return check.each(field::stage_power, stage.parts[0], stage.n_inputs, at_least(-largest_double));
    }

    static void run(const MapStage& stage, const double*, const RowsOnTheWay& on) {
        on.source.in_float32 ? run_rows<true>(stage, on) : run_rows<false>(stage, on);
    }

  private:
    template <bool in_float32>
    static void run_rows(const MapStage& stage, const RowsOnTheWay& on) {
        const bool is_shifted = stage.parts_number == yeo_johnson;
        const int source = in_float32                 ? approxsvm_float32
                           : on.source.counts_float64 ? approxsvm_float64
                                                      : approxsvm_real;
        for (std::size_t r = 0; r < on.n_rows; ++r) {
            double *x = on.x + r * on.stride, *error = on.error + r * on.stride;
            for (std::size_t j = 0; j < stage.n_inputs; ++j) {
                const double power = stage.parts[0][j];
                if (!on.has_errors) error[j] = 0.0;
                if (!(power <= largest_double)) continue;
                if (!approxsvm_power_takes({x[j], 0.0}, is_shifted) && x[j] == x[j]) {
                    if (on.rows[r].is_inside) on.refuse(r, kind, x[j], 0.0);
                    continue;
                }
                const approxsvm_ball y = approxsvm_power({x[j], error[j]}, power, is_shifted, source);
                x[j] = y.value;
                error[j] = y.radius;
            }
        }
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

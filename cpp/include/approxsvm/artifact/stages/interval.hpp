// Numbers beyond an interval are moved into it by whole turns, or refused, feature by feature.
#pragma once

#include "stage.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

struct IntervalStage : AnyStage {
    static constexpr StageKind kind = StageKind::interval;
    static constexpr bool by_feature = true, as_source = true;
    enum Rule : std::uint32_t { turns, refuses, n_rules };

    APPROXSVM_COLD static bool header_is_valid(Check& check, const StageHeader& header, std::size_t n_inputs,
                                               std::uint64_t index) {
        return check(field::stage_parts, header.parts, from_to(0, n_rules - 1), index) &&
               check(field::stage_n_outputs, header.n_outputs, equal_to(n_inputs), index);
    }
    static ClaimedSize n_words(const StageHeader&, ClaimedSize n_inputs) { return 2 * n_inputs; }
    static void find_parts(MapStage& stage, StageArrays& arrays) {
        stage.parts[0] = arrays.numbers(stage.n_inputs);  // low
        stage.parts[1] = arrays.numbers(stage.n_inputs);  // length, infinite where x stays as it is; or high
    }
    APPROXSVM_COLD static bool is_valid(Check& check, const MapStage& stage) {
        const double least = stage.parts_number == turns ? 0x1p-1022 : -largest_double;
        return check.finite(field::stage_low, stage.parts[0], stage.n_inputs) &&
               check.each(field::stage_high, stage.parts[1], stage.n_inputs, at_least(least));
    }

    static void run(const MapStage& stage, const double*, const RowsOnTheWay& on) {
        for (std::size_t r = 0; r < on.n_rows; ++r) {
            double *x = on.x + r * on.stride, *error = on.error + r * on.stride;
            for (std::size_t j = 0; j < stage.n_inputs; ++j) {
                const double low = stage.parts[0][j], second = stage.parts[1][j];
                if (!on.has_errors) error[j] = 0.0;
                if (!(second <= largest_double)) continue;
                if (stage.parts_number == turns) {
                    turn(low, second, on, x[j], error[j]);
                    continue;
                }
                // Which side of an end rounding in float32 puts a number on is chance.
                const double reach =
                                 !on.source.in_float32 || error[j] == 0.0 ? 0.0 : error[j] + unit32 * std::fabs(x[j]),
                             from_end = std::fmax(low - x[j], x[j] - second);
                if (from_end > reach && on.rows[r].is_inside) on.refuse(r, kind, x[j], x[j] < low ? low : second);
                if (reach > 0.0 && !(from_end < -reach)) error[j] = HUGE_VAL;
            }
        }
    }

  private:
    // As NumPy's x % length does it, low + (x - low) % length. Two roundings; and where x is not the source's own, it
    // may be on either side of a full turn.
    static void turn(double low, double length, const RowsOnTheWay& on, double& x, double& error) {
        constexpr double up = 1.0 + 0x1p-30;
        const double u = on.source.unit(), from_low = x - low;
        bool is_source = on.is_source;
        if (on.source.in_float32) {
            // A difference that float32 holds, of numbers that it holds, is the source's.
            is_source = error == 0.0 && is_float32(low) && is_float32(length) && is_float32(from_low);
            error += unit32 * (std::fabs(x) + std::fabs(low) + std::fabs(from_low)) + tiny32;
        }
        double rest = std::fmod(from_low, length);
        if (rest < 0.0) rest += length;
        x = low + rest;
        const double off = (error + 2.0 * u * std::fabs(from_low) + u * length) * up;
        const bool is_known = is_source || (rest > off && length - rest > off);
        error = is_known ? (off + u * std::fabs(x)) * up : HUGE_VAL;
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

// x -> log(x + offset), feature by feature; features of an infinite offset stay as they are.
#pragma once

#include "stage.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

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
        return check.each(field::stage_offset, stage.parts[0], stage.n_inputs, at_least(-largest_double));
    }

    static void run(const MapStage& stage, const double*, const RowsOnTheWay& on) {
        for (std::size_t r = 0; r < on.n_rows; ++r) {
            if (on.rows[r].is_inside) run_row(stage, on, r);
        }
    }

  private:
    // With s + lost = x + offset it is log(s) + lost / s, off by the square of the second, by 4 units of the C library
    // and by two roundings; around t an error e becomes e / (t - e) at most.
    static void run_row(const MapStage& stage, const RowsOnTheWay& on, std::size_t r) {
        const double u = on.source.unit();
        double *x = on.x + r * on.stride, *error = on.error + r * on.stride;
        for (std::size_t j = 0; j < stage.n_inputs; ++j) {
            const double offset = stage.parts[0][j], came = on.has_errors ? error[j] : 0.0;
            error[j] = came;
            if (!(offset <= largest_double)) continue;
            if (x[j] <= -offset) return on.refuse(r, kind, x[j], 0.0 - offset);
            double lost;
            const double sum = two_sum(x[j], offset, lost), logarithm = std::log(sum),
                         correction = sum <= largest_double ? lost / sum : 0.0, nearest = sum * (1.0 - 0x1p-50) - came;
            x[j] = logarithm + correction;
            const double carried = nearest > 0.0 ? came / nearest : HUGE_VAL;
            error[j] =
                (carried + (12.0 * u * (std::fabs(logarithm) + std::fabs(correction)) + 0x1p-104)) * (1.0 + 0x1p-30);
        }
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

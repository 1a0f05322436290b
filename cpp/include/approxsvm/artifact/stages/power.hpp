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
        const bool shifts = stage.parts_number == yeo_johnson;
        for (std::size_t r = 0; r < on.n_rows; ++r) {
            for (std::size_t j = 0; j < stage.n_inputs; ++j) {
                double &x = on.x[r * on.stride + j], &error = on.error[r * on.stride + j];
                const double power = stage.parts[0][j];
                if (!on.has_errors) error = 0.0;
                if (!(power <= largest_double)) continue;
                if (!shifts && x <= 0.0) {
                    if (on.rows[r].is_inside) on.refuse(r, kind, x, 0.0);
                    continue;
                }
                on.source.in_float32 ? transform<true>(power, shifts, x, error)
                                     : transform<false>(power, shifts, x, error);
            }
        }
    }

  private:
    // With a = |x| it is expm1(p L) / p, L = log1p(a) or log(a). L errs by 4 units of the library, p L by a rounding
    // more (two of 2 - p), and expm1 by exp(p L) times that and by 4 units of its own. The derivative is monotone on
    // the whole line, so that an error of x grows by at most the greater one at the two ends of its reach.
    // A source in float32 may have (1 + a)^p - 1, whose parts are rounded in proportion to 1 and to the power, and p
    // off by `off_power`: by rounding `power`, by that of 2 - p, or as SciPy takes a p below 2^-23 for 0. The
    // derivative by p is L y at most, with the largest y on the way.
    template <bool in_float32>
    static void transform(double power, bool shifts, double& x, double& error) {
        constexpr SourceRows source{in_float32, false};
        constexpr double up = 1.0 + 0x1p-30, u = source.unit(), library = 12.0 * u, tiny = source.tiny();
        const bool is_mirrored = shifts && x < 0.0;
        const double p = is_mirrored ? 2.0 - power : power, a = is_mirrored ? -x : x,
                     logarithm = shifts ? std::log1p(a) : std::log(a), divisor = p == 0.0 ? 1.0 : p,
                     grown = std::expm1(p * logarithm), y = p == 0.0 ? logarithm : grown / divisor;
        const double size_of_power = std::fabs(p * logarithm),
                     rounded_power = in_float32 ? unit32 * (16.0 + 2.0 * std::fabs(p)) : 0.0,
                     off_power = in_float32 ? unit32 * (4.0 + 2.0 * std::fabs(power)) * std::fabs(logarithm) : 0.0,
                     of_power = (std::fabs(grown) + 1.0) * (size_of_power * 1.01 * (library + 2.0 * u) + rounded_power),
                     own = p == 0.0 ? library * std::fabs(logarithm)
                                    : (of_power + library * std::fabs(grown) + tiny) / std::fabs(divisor) +
                                          2.0 * u * std::fabs(y),
                     of_parameter = in_float32 ? off_power * std::exp(off_power) * std::fabs(y) : 0.0;
        const bool overflows =
            in_float32 && !(std::fabs(grown) + 1.0 + a <= largest32 && std::fabs(power) <= largest32);
        // What rounding the two ends changes in it; of powers beyond all sense nothing is known.
        const double size = std::fabs(power),
                     in_proportion = in_float32 ? 1.0 + unit32 * 16.0 * (size_of_power + size + 2.0) : 1.0,
                     rounded = size < 0x1p40 ? up * (1.0 + 0x1p-50 * (size + 1.0)) * in_proportion : HUGE_VAL;
        const double carried =
            error > 0.0 ? error * std::fmax(slope(power, shifts, x - error), slope(power, shifts, x + error)) * rounded
                        : error;
        x = is_mirrored ? -y : y;
        error = (carried + own + of_parameter + tiny) * up;
        if (overflows || error != error) error = HUGE_VAL;
    }

    // The derivative, infinite where there is none.
    static double slope(double power, bool shifts, double x) {
        if (shifts) return std::pow(1.0 + std::fabs(x), x < 0.0 ? 1.0 - power : power - 1.0);
        return x > 0.0 ? std::pow(x, power - 1.0) : HUGE_VAL;
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

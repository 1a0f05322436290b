// Each output is a sqrt(x) cos(w log x), or sin, of one input, and 0 of 0: what AdditiveChi2Sampler makes.
#pragma once

#include "stage.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

struct WavesStage : AnyStage {
    static constexpr StageKind kind = StageKind::waves;
    static constexpr bool in_place = false;

    APPROXSVM_COLD static bool header_is_valid(Check& check, const StageHeader& header, std::size_t,
                                               std::uint64_t index) {
        return check(field::stage_parts, header.parts, equal_to(0), index) &&
               check(field::stage_n_outputs, header.n_outputs, from_to(0, max_n_features), index);
    }
    static ClaimedSize n_words(const StageHeader& header, ClaimedSize) {
        const ClaimedSize m = header.n_outputs;
        return 2 * words_of_integers(m) + 2 * m;
    }
    static void find_parts(MapStage& stage, StageArrays& arrays) {
        const std::size_t m = stage.n_outputs;
        for (std::size_t k = 0; k < 2; ++k) stage.integers[k] = arrays.integers(m);  // input of each output; 1 for sin
        for (std::size_t k = 0; k < 2; ++k) stage.parts[k] = arrays.numbers(m);      // a, w
    }
    APPROXSVM_COLD static bool is_valid(Check& check, const MapStage& stage) {
        const std::size_t m = stage.n_outputs;
        for (std::size_t k = 0; k < m; ++k)
            check(field::stage_source, std::size_t{stage.integers[0][k]} + 1, from_to(1, stage.n_inputs), k);
        check.each(field::stage_sine, stage.integers[1], m, from_to(0, 1));
        if (m % 2 != 0) {
            check(field::stage_source, stage.integers[0][m], equal_to(0), m);
            check(field::stage_sine, stage.integers[1][m], equal_to(0), m);
        }
        check.each(field::stage_amplitude, stage.parts[0], m, at_least(0.0));  // infinite: x itself
        return check.finite(field::stage_frequency, stage.parts[1], m);
    }
    static std::size_t origin(const MapStage& stage, std::size_t k) { return stage.integers[0][k]; }

    static void run(const MapStage& stage, const double*, const RowsOnTheWay& on) {
        for (std::size_t r = 0; r < on.n_rows; ++r) {
            const std::size_t at = r * on.stride;
            for (std::size_t k = 0; k < stage.n_outputs; ++k) {
                const double x = on.x[at + stage.integers[0][k]],
                             came = on.has_errors ? on.error[at + stage.integers[0][k]] : 0.0;
                on.y[at + k] = x;
                on.y_error[at + k] = came;
                if (!(stage.parts[0][k] <= largest_double)) continue;
                if (x < 0.0 && on.rows[r].is_inside) on.refuse(r, kind, x, 0.0);
                wave(stage, k, on.source, x, came, on.y[at + k], on.y_error[at + k]);
            }
        }
    }

  private:
    // The bound is derived in approxsvm/model/steps/waves.py. With float32 it has the operations of run_as_source
    // there; half of 2 a^2 x or 2 w x at most is what the source takes the root of.
    static void wave(const MapStage& stage, std::size_t k, const SourceRows& source, double x, double came, double& y,
                     double& error) {
        constexpr double up = 1.0 + 0x1p-30, pi = 3.1415926535897932;
        const double u = source.unit(), library = 12.0 * u, more = source.in_float32 ? 4.0 * unit32 : 0.0;
        const double a = stage.parts[0][k], w = stage.parts[1][k], size = a * std::sqrt(x),
                     turn = x == 0.0 ? 0.0 : w * std::log(x), nearest = x - came;
        y = size * (stage.integers[1][k] != 0 ? std::sin(turn) : std::cos(turn));
        const double path = std::fabs(turn) * 1.01 * (library + 2.0 * u + more) + more * (2.0 + pi * std::fabs(w)),
                     slope = nearest > 0.0 ? a * std::sqrt(0.25 + w * w) / std::sqrt(nearest) : HUGE_VAL,
                     moved = came > 0.0 ? std::fmin(came * slope, size + a * std::sqrt(x + came)) : came,
                     own = (source.in_float32 ? size + moved : size) * (path + library + 4.0 * u);
        error = (moved + own) * up + (source.in_float32 ? (1.0 + a) * 0x1p-73 : 0x1p-500);
        if (source.in_float32 && !(2.0 * (x + came) * std::fmax(1.0, std::fmax(a * a, std::fabs(w))) <= largest32))
            error = HUGE_VAL;
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

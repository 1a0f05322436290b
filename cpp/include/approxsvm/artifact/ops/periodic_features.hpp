// Each output is a sqrt(x) cos(w log x), or with sin, of one input, and 0 at 0: the features of AdditiveChi2Sampler.
#pragma once

#include "op.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

#include "../../program/periodic_features.h"

struct PeriodicFeaturesOp : AnyOp {
    static constexpr OpKind kind = OpKind::periodic_features;
    static constexpr bool in_place = false;

    APPROXSVM_COLD static bool header_is_valid(Check& check, const OpHeader& header, std::size_t, std::uint64_t index) {
        return check(field::op_parts, header.parts, equal_to(0), index) &&
               check(field::op_n_outputs, header.n_outputs, from_to(0, max_n_features), index);
    }
    static ClaimedSize n_words(const OpHeader& header, ClaimedSize) {
        const ClaimedSize m = header.n_outputs;
        return 2 * words_of_integers(m) + 2 * m;
    }
    static void find_parts(MapOp& op, OpArrays& arrays) {
        const std::size_t m = op.n_outputs;
        for (std::size_t k = 0; k < 2; ++k) op.integers[k] = arrays.integers(m);  // input of each output; 1 for sin
        for (std::size_t k = 0; k < 2; ++k) op.parts[k] = arrays.numbers(m);      // a, w
    }
    APPROXSVM_COLD static bool is_valid(Check& check, const MapOp& op) {
        const std::size_t m = op.n_outputs;
        for (std::size_t k = 0; k < m; ++k)
            check(field::op_source, std::size_t{op.integers[0][k]} + 1, from_to(1, op.n_inputs), k);
        check.each(field::op_sine, op.integers[1], m, from_to(0, 1));
        if (m % 2 != 0) {
            check(field::op_source, op.integers[0][m], equal_to(0), m);
            check(field::op_sine, op.integers[1][m], equal_to(0), m);
        }
        check.each(field::op_amplitude, op.parts[0], m, at_least(0.0));  // infinite: x itself
        return check.finite(field::op_frequency, op.parts[1], m);
    }
    static std::size_t origin(const MapOp& op, std::size_t k) { return op.integers[0][k]; }

    static void run(const MapOp& op, const double*, const RowsOnTheWay& on) {
        const int source = on.source.in_float32       ? approxsvm_float32
                           : on.source.counts_float64 ? approxsvm_float64
                                                      : approxsvm_real;
        for (std::size_t r = 0; r < on.n_rows; ++r) {
            const std::size_t at = r * on.stride;
            for (std::size_t k = 0; k < op.n_outputs; ++k) {
                const std::size_t j = op.integers[0][k];
                const double a = op.parts[0][k], w = op.parts[1][k];
                const approxsvm_ball x{on.x[at + j], on.has_errors ? on.error[at + j] : 0.0};
                approxsvm_ball y = x;
                if (a <= largest_double) {
                    if (x.value < 0.0) on.refuse(r, kind, x.value, 0.0);
                    y = approxsvm_periodic(x, a, w, op.integers[1][k] != 0, source);
                    const double most = std::fmax(1.0, std::fmax(a * a, std::fabs(w)));
                    if (on.source.in_float32 && !(2.0 * (x.value + x.radius) * most <= largest32)) y.radius = HUGE_VAL;
                }
                on.y[at + k] = y.value;
                on.y_error[at + k] = y.radius;
            }
        }
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

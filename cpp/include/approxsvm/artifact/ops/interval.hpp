// Feature by feature, numbers outside an interval are wrapped into it by multiples of its length, or rejected.
#ifndef APPROXSVM_ARTIFACT_OPS_INTERVAL_HPP
#define APPROXSVM_ARTIFACT_OPS_INTERVAL_HPP

#include "op.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

#include "../../program/ops/interval.h"

struct IntervalOp : AnyOp {
    static constexpr OpKind kind = OpKind::interval;
    static constexpr bool by_feature = true, as_source = true;
    enum Rule : std::uint32_t { turns, refuses };
    static constexpr std::uint32_t most_parts = refuses;

    static void find_parts(MapOp& op, OpArrays& arrays) {
        op.parts[0] = arrays.numbers(op.n_inputs);  // the lower endpoints
        op.parts[1] = arrays.numbers(op.n_inputs);  // the lengths or the upper endpoints
    }
    APPROXSVM_COLD static bool is_valid(Check& check, const MapOp& op) {
        const double least = op.parts_number == turns ? 0x1p-1022 : -most_parameter;
        return check.finite(field::op_low, op.parts[0], op.n_inputs) &&
               check.each(field::op_high, op.parts[1], op.n_inputs, from_to(least, most_parameter));
    }

    static void run(const MapOp& op, const double*, const RowsOnTheWay& on) {
        for (std::size_t r = 0; r < on.n_rows; ++r) {
            double *x = on.x + r * on.stride, *error = on.error + r * on.stride;
            for (std::size_t j = 0; j < op.n_inputs; ++j) {
                const double low = op.parts[0][j], second = op.parts[1][j];
                if (!on.has_errors) error[j] = 0.0;
                const approxsvm_ball at{x[j], error[j]};
                if (op.parts_number == refuses && approxsvm_beyond(x[j], low, second) > doubt(on, at))
                    on.refuse(r, kind, x[j], x[j] < low ? low : second);
                const approxsvm_ball y = op.parts_number == refuses ? between(on, at, low, second)
                                         : on.source.in_float32     ? turned_in_float32(at, low, second)
                                                                    : approxsvm_turned(at, low, second, on.is_source);
                x[j] = y.value;
                error[j] = y.radius;
            }
        }
    }

  private:
    // Returns the distance from an interval endpoint within which float32 rounding may move a number across the
    // endpoint.
    static double doubt(const RowsOnTheWay& on, approxsvm_ball x) {
        return on.source.in_float32 && x.radius > 0.0 ? x.radius + unit32 * std::fabs(x.value) : 0.0;
    }
    static approxsvm_ball between(const RowsOnTheWay& on, approxsvm_ball x, double low, double high) {
        if (!on.source.in_float32) return approxsvm_between(x, low, high, on.is_source);
        const double reach = doubt(on, x);
        if (reach > 0.0 && !(approxsvm_beyond(x.value, low, high) < -reach)) x.radius = HUGE_VAL;
        return x;
    }

    // Wraps x. If x has no error, and float32 represents low, length and the difference x - low exactly, the source
    // computes the same difference as the core.
    static approxsvm_ball turned_in_float32(approxsvm_ball x, double low, double length) {
        const double from_low = std::fabs(x.value - low);
        const bool is_source = x.radius == 0.0 && is_float32(low) && is_float32(length) && is_float32(from_low);
        x.radius += unit32 * (std::fabs(x.value) + std::fabs(low) + 3.0 * from_low + length) + tiny32;
        approxsvm_ball y = approxsvm_turned(x, low, length, is_source);
        y.radius += unit32 * std::fabs(y.value) * (1.0 + 0x1p-30);
        return y;
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

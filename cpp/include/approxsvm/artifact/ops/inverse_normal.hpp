// The inverse of the normal distribution function, feature by feature; other features are unchanged.
#ifndef APPROXSVM_ARTIFACT_OPS_INVERSE_NORMAL_HPP
#define APPROXSVM_ARTIFACT_OPS_INVERSE_NORMAL_HPP

#include "op.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

#include "../../program/inverse_normal.h"

struct InverseNormalOp : AnyOp {
    static constexpr OpKind kind = OpKind::inverse_normal;
    static constexpr bool by_feature = true;

    static void find_parts(MapOp& op, OpArrays& arrays) {
        op.integers[0] = arrays.integers(op.n_inputs);  // 1 for a transformed feature, else 0
    }
    APPROXSVM_COLD static bool is_valid(Check& check, const MapOp& op) {
        return integers_are_valid(check, field::op_taken, op.integers[0], op.n_inputs, from_to(0, 1));
    }

    static void run(const MapOp& op, const double*, const RowsOnTheWay& on) {
        const std::uint32_t* const taken = op.integers[0];
        const int n = static_cast<int>(op.n_inputs);
        map_balls(op, on, [=](std::size_t, double* x, double* error, auto source) {
            map_features(
                n, x, error, [=](int j) { return taken[j] != 0; },
                [=](int, approxsvm_ball at) { return approxsvm_inverse_normal(at, source); });
        });
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

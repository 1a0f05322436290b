// The inverse of the normal distribution function, feature by feature.
#ifndef APPROXSVM_ARTIFACT_OPS_INVERSE_NORMAL_HPP
#define APPROXSVM_ARTIFACT_OPS_INVERSE_NORMAL_HPP

#include "op.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

#include "../../program/ops/inverse_normal.h"

struct InverseNormalOp : AnyOp {
    static constexpr OpKind kind = OpKind::inverse_normal;
    static constexpr bool by_feature = true;

    static void find_parts(MapOp&, OpArrays&) {}
    static bool is_valid(Check& check, const MapOp&) { return check.status() == Status::ok; }

    static void run(const MapOp& op, const double*, const RowsOnTheWay& on) {
        const int n = static_cast<int>(op.n_inputs);
        map_balls(op, on, [=](std::size_t, double* x, double* error, auto source) {
            map_features(n, x, error, [=](int, approxsvm_ball at) { return approxsvm_inverse_normal(at, source); });
        });
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

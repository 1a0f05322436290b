// The op x -> log(x + offset), feature by feature.
#ifndef APPROXSVM_ARTIFACT_OPS_LOGARITHM_HPP
#define APPROXSVM_ARTIFACT_OPS_LOGARITHM_HPP

#include "op.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

#include "../../program/ops/logarithm.h"

struct LogarithmOp : AnyOp {
    static constexpr OpKind kind = OpKind::logarithm;
    static constexpr bool by_feature = true;

    static void find_parts(MapOp& op, OpArrays& arrays) { op.parts[0] = arrays.numbers(op.n_inputs); }
    APPROXSVM_COLD static bool is_valid(Check& check, const MapOp& op) {
        return check.each(field::op_offset, op.parts[0], op.n_inputs, from_to(-most_parameter, most_parameter));
    }

    static void run(const MapOp& op, const double*, const RowsOnTheWay& on) {
        const double* const offset = op.parts[0];
        const int n = static_cast<int>(op.n_inputs);
        map_balls(op, on, [&](std::size_t r, double* x, double* error, auto source) {
            for (int j = 0; j < n; ++j) {
                if (x[j] <= -offset[j]) on.refuse(r, kind, x[j], 0.0 - offset[j]);
            }
            map_features(n, x, error,
                         [=](int j, approxsvm_ball at) { return approxsvm_logarithm(at, offset[j], source); });
        });
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

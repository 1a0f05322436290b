// Box-Cox and Yeo-Johnson transforms, feature by feature.
#ifndef APPROXSVM_ARTIFACT_OPS_POWER_HPP
#define APPROXSVM_ARTIFACT_OPS_POWER_HPP

#include "op.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

#include "../../program/ops/power.h"

struct PowerOp : AnyOp {
    static constexpr OpKind kind = OpKind::power;
    static constexpr bool by_feature = true;
    static bool hides_infinity(const MapOp&) { return true; }
    enum Method : std::uint32_t { box_cox, yeo_johnson };
    static constexpr std::uint32_t most_parts = yeo_johnson;

    static void find_parts(MapOp& op, OpArrays& arrays) { op.parts[0] = arrays.numbers(op.n_inputs); }
    static bool is_valid(Check& check, const MapOp& op) {
        return check.each(field::op_power, op.parts[0], op.n_inputs, from_to(-most_parameter, most_parameter));
    }

    static void run(const MapOp& op, const double*, const RowsOnTheWay& on) {
        op.parts_number == yeo_johnson ? run_method<1>(op, on) : run_method<0>(op, on);
    }

  private:
    template <int is_shifted>
    static void run_method(const MapOp& op, const RowsOnTheWay& on) {
        const double* const power = op.parts[0];
        const int n = static_cast<int>(op.n_inputs);
        map_balls(op, on, [&](std::size_t r, double* x, double* error, auto source) {
            for (int j = 0; !is_shifted && j < n; ++j) {
                if (x[j] <= 0.0) on.refuse(r, kind, x[j], 0.0);
            }
            bool are_points = source == approxsvm_real;
            for (int j = 0; j < n; ++j) are_points &= error[j] == 0.0;
            if (are_points) {
                return map_features(n, x, error, [=](int j, approxsvm_ball at) {
                    const approxsvm_power_value y = approxsvm_power_at(at.value, power[j], is_shifted, approxsvm_real);
                    return approxsvm_ball{y.value, y.own};
                });
            }
            map_features(n, x, error,
                         [=](int j, approxsvm_ball at) { return approxsvm_power(at, power[j], is_shifted, source); });
        });
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

// Products of inputs, each computed from the last factor to the first.
#ifndef APPROXSVM_ARTIFACT_OPS_MONOMIALS_HPP
#define APPROXSVM_ARTIFACT_OPS_MONOMIALS_HPP

#include "op.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

#include "../../program/ops/products.h"

struct MonomialsOp : AnyOp {
    static constexpr OpKind kind = OpKind::monomials;
    static constexpr bool in_place = false, as_source = true;

    // The number `parts` is the maximum number of factors in a product.
    static constexpr std::uint32_t least_parts = 1, most_parts = max_factors;

    static void find_parts(MapOp& op, OpArrays& arrays) {
        op.integers[0] = arrays.integers(ClaimedSize{op.n_outputs} * op.parts_number);
    }
    APPROXSVM_COLD static bool is_valid(Check& check, const MapOp& op) {
        return integers_are_valid(check, field::op_factor, op.integers[0], op.n_outputs * op.parts_number,
                                  from_to(0, op.n_inputs));
    }

    // For sparse rows, the source multiplies from the first factor on, so the result is the same only for up to two
    // factors.
    static bool as_source_of_sparse(const MapOp& op) { return op.parts_number <= 2; }

    static void run(const MapOp& op, const double*, const RowsOnTheWay& on) {
        on.source.in_float32 ? run_rows<true>(op, on) : run_rows<false>(op, on);
    }

  private:
    template <bool in_float32>
    static void run_rows(const MapOp& op, const RowsOnTheWay& on) {
        const std::size_t degree = op.parts_number;
        for (std::size_t r = 0; r < on.n_rows; ++r) {
            const double *x = on.x + r * on.stride, *errors = on.error + r * on.stride;
            for (std::size_t k = 0; k < op.n_outputs; ++k) {
                const std::uint32_t* const factors = op.integers[0] + k * degree;
                approxsvm_ball y{1.0, 0.0};
                bool begun = false;
                for (std::size_t i = degree; i-- > 0;) {
                    const std::size_t j = factors[i];
                    if (j == op.n_inputs) continue;  // this index stands for the factor 1
                    const approxsvm_ball factor{x[j], on.has_errors ? errors[j] : 0.0};
                    y = begun ? approxsvm_times(y, factor, in_float32 ? approxsvm_float32 : approxsvm_real) : factor;
                    begun = true;
                }
                if constexpr (in_float32) y.radius += lost_in_float32(op, factors, x, on.has_errors ? errors : nullptr);
                on.y[r * on.stride + k] = y.value;
                on.y_error[r * on.stride + k] = y.radius;
            }
        }
    }

    // Returns a bound on the effect of underflow on a product, for any order of factors: no partial product exceeds
    // `most`. The bound is infinite if a partial product may overflow float32.
    static double lost_in_float32(const MapOp& op, const std::uint32_t* factors, const double* x,
                                  const double* errors) {
        double most = 1.0;
        int n_factors = 0;
        for (std::size_t i = 0; i < op.parts_number; ++i) {
            const std::size_t j = factors[i];
            if (j == op.n_inputs) continue;
            most *= std::fmax(1.0, std::fabs(x[j]) + (errors ? errors[j] : 0.0));
            ++n_factors;
        }
        return n_factors < 2 ? 0.0 : most <= largest32 ? n_factors * tiny32 * most : HUGE_VAL;
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

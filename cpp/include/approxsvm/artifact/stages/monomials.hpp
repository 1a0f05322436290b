// Products of inputs, each multiplied from its last factor to its first.
#pragma once

#include "stage.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

#include "../../program/products.h"

struct MonomialsStage : AnyStage {
    static constexpr StageKind kind = StageKind::monomials;
    static constexpr bool in_place = false, as_source = true;

    // `parts` is the maximum number of factors in a product.
    APPROXSVM_COLD static bool header_is_valid(Check& check, const StageHeader& header, std::size_t,
                                               std::uint64_t index) {
        return check(field::stage_parts, header.parts, from_to(1, max_factors), index) &&
               check(field::stage_n_outputs, header.n_outputs, from_to(0, max_n_features), index);
    }
    static ClaimedSize n_words(const StageHeader& header, ClaimedSize) {
        return words_of_integers(header.n_outputs * header.parts);
    }
    static void find_parts(MapStage& stage, StageArrays& arrays) {
        stage.integers[0] = arrays.integers(stage.n_outputs * stage.parts_number);
    }
    APPROXSVM_COLD static bool is_valid(Check& check, const MapStage& stage) {
        const std::size_t n = stage.n_outputs * stage.parts_number;
        check.each(field::stage_factor, stage.integers[0], n, from_to(0, stage.n_inputs));
        if (n % 2 != 0) check(field::stage_factor, stage.integers[0][n], equal_to(0), n);
        return check.status() == Status::ok;
    }

    // For sparse rows, the source's products begin with the first factor.
    static bool as_source_of_sparse(const MapStage& stage) { return stage.parts_number <= 2; }

    static void run(const MapStage& stage, const double*, const RowsOnTheWay& on) {
        on.source.in_float32 ? run_rows<true>(stage, on) : run_rows<false>(stage, on);
    }

  private:
    template <bool in_float32>
    static void run_rows(const MapStage& stage, const RowsOnTheWay& on) {
        const std::size_t degree = stage.parts_number;
        for (std::size_t r = 0; r < on.n_rows; ++r) {
            const double *x = on.x + r * on.stride, *errors = on.error + r * on.stride;
            for (std::size_t k = 0; k < stage.n_outputs; ++k) {
                const std::uint32_t* const factors = stage.integers[0] + k * degree;
                approxsvm_ball y{1.0, 0.0};
                bool begun = false;
                for (std::size_t i = degree; i-- > 0;) {
                    const std::size_t j = factors[i];
                    if (j == stage.n_inputs) continue;  // the number 1
                    const approxsvm_ball factor{x[j], on.has_errors ? errors[j] : 0.0};
                    y = begun ? approxsvm_times(y, factor, in_float32 ? approxsvm_float32 : approxsvm_real) : factor;
                    begun = true;
                }
                if constexpr (in_float32)
                    y.radius += lost_in_float32(stage, factors, x, on.has_errors ? errors : nullptr);
                on.y[r * on.stride + k] = y.value;
                on.y_error[r * on.stride + k] = y.radius;
            }
        }
    }

    // The effect of underflow on a product whose factors come in any order: no partial product exceeds `most`. Infinite
    // if one may exceed float32.
    static double lost_in_float32(const MapStage& stage, const std::uint32_t* factors, const double* x,
                                  const double* errors) {
        double most = 1.0;
        int n_factors = 0;
        for (std::size_t i = 0; i < stage.parts_number; ++i) {
            const std::size_t j = factors[i];
            if (j == stage.n_inputs) continue;
            most *= std::fmax(1.0, std::fabs(x[j]) + (errors ? errors[j] : 0.0));
            ++n_factors;
        }
        return n_factors < 2 ? 0.0 : most <= largest32 ? n_factors * tiny32 * most : HUGE_VAL;
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

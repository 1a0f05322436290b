// The inverse of the normal distribution function, feature by feature; features that are not taken stay as they are.
#pragma once

#include "stage.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Rational functions of Wichura (1988), Algorithm AS 241, coefficients of ascending powers: about 1/2, y / (p - 1/2) in
// 0.425^2 - (p - 1/2)^2; in the tail, -y in sqrt(-log p) - 1.6. None is negative, and neither are their arguments.
constexpr double inverse_normal_coefs[2][2][8] = {
    {{3.387132872796366608, 133.14166789178437745, 1971.5909503065514427, 13731.693765509461125, 45921.953931549871457,
      67265.770927008700853, 33430.575583588128105, 2509.0809287301226727},
     {1.0, 42.313330701600911252, 687.1870074920579083, 5394.1960214247511077, 21213.794301586595867,
      39307.89580009271061, 28729.085735721942674, 5226.495278852854561}},
    {{1.42343711074968357734, 4.6303378461565452959, 5.7694972214606914055, 3.64784832476320460504,
      1.27045825245236838258, 0.24178072517745061177, 0.0227238449892691845833, 7.7454501427834140764e-4},
     {1.0, 2.05319162663775882187, 1.6763848301838038494, 0.68976733498510000455, 0.14810397642748007459,
      0.0151986665636164571966, 5.475938084995344946e-4, 1.05075007164441684324e-9}}};
// Probabilities below this or above 1 less it are taken for it.
constexpr double least_inverse_normal = 0x1p-24;

struct InverseNormalStage : AnyStage {
    static constexpr StageKind kind = StageKind::inverse_normal;
    static constexpr bool by_feature = true;

    APPROXSVM_COLD static bool header_is_valid(Check& check, const StageHeader& header, std::size_t n_inputs,
                                               std::uint64_t index) {
        return has_plain_header(check, header, n_inputs, index);
    }
    static ClaimedSize n_words(const StageHeader&, ClaimedSize n_inputs) { return words_of_integers(n_inputs); }
    static void find_parts(MapStage& stage, StageArrays& arrays) {
        stage.integers[0] = arrays.integers(stage.n_inputs);  // 1 for a feature that is taken, or 0
    }
    APPROXSVM_COLD static bool is_valid(Check& check, const MapStage& stage) {
        const std::size_t n = stage.n_inputs;
        check.each(field::stage_taken, stage.integers[0], n, from_to(0, 1));
        if (n % 2 != 0) check(field::stage_taken, stage.integers[0][n], equal_to(0), n);
        return check.status() == Status::ok;
    }

    static void run(const MapStage& stage, const double*, const RowsOnTheWay& on) {
        for (std::size_t r = 0; r < on.n_rows; ++r) {
            double *x = on.x + r * on.stride, *error = on.error + r * on.stride;
            for (std::size_t j = 0; j < stage.n_inputs; ++j) {
                if (!on.has_errors) error[j] = 0.0;
                if (stage.integers[0][j] != 0) invert(on.source, x[j], error[j]);
            }
        }
    }

  private:
    // The bound is derived in approxsvm/model/steps/inverse_normal.py.
    // A source has functions of 4 units in float32, which it takes in float64 as a rule.
    static void invert(const SourceRows& source, double& x, double& error) {
        constexpr double u = unit64, steepest = 0.797, up = 1.0 + 0x1p-30;
        const double p = x, other = 1.0 - p;
        double t = other < p ? other : p;
        const double nearest = t - error;
        t = t < least_inverse_normal ? least_inverse_normal : t;
        const double q = 0.5 - t;
        double y;
        if (q <= 0.425) {
            y = q * ratio(inverse_normal_coefs[0], 0.180625 - q * q);
        } else {
            y = ratio(inverse_normal_coefs[1], std::sqrt(-std::log(t)) - 1.6);
        }
        const double gap = nearest > least_inverse_normal ? nearest : least_inverse_normal,
                     carried = error > 0.0 ? error / (gap * (y > steepest ? y : steepest)) : error;
        x = p < 0.5 ? -y : p >= 0.5 ? y : p;
        error = (carried + (64.0 * u + (source.in_float32 ? 12.0 * unit32 : 0.0)) * y) * up + 0x1p-1070;
    }

    static double ratio(const double (&coefs)[2][8], double r) {
        double above = coefs[0][7], below = coefs[1][7];
        for (std::size_t k = 7; k-- > 0;) {
            above = above * r + coefs[0][k];
            below = below * r + coefs[1][k];
        }
        return above / below;
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

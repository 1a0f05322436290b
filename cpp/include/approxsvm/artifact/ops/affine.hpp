// The op x -> min(max((x - subtract) * multiply / divide + add, low), high), feature by feature, as in scalers.
#ifndef APPROXSVM_ARTIFACT_OPS_AFFINE_HPP
#define APPROXSVM_ARTIFACT_OPS_AFFINE_HPP

#include "op.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

#include "../../program/ops/affine.h"

namespace part {
enum : std::size_t { subtract, multiply, divide, add, low, high, relative_error, n_affine };
}  // namespace part

// --- limits reached by overflow

// The number mantissa * 2^exponent, with a range so large that a short chain of operations cannot overflow or
// underflow.
struct Scaled {
    double mantissa;
    int exponent;

    static Scaled of(double x, int exponent = 0) {
        int own = 0;
        const double mantissa = std::frexp(x, &own);
        return {mantissa, own + exponent};
    }
    double over(int power) const { return std::ldexp(mantissa, exponent - power); }
    Scaled modulus() const { return {std::fabs(mantissa), exponent}; }
    Scaled operator-() const { return {-mantissa, exponent}; }
};
inline Scaled operator*(const Scaled& a, const Scaled& b) {
    return Scaled::of(a.mantissa * b.mantissa, a.exponent + b.exponent);
}
inline Scaled operator/(const Scaled& a, const Scaled& b) {
    return Scaled::of(a.mantissa / b.mantissa, a.exponent - b.exponent);
}
inline Scaled operator+(const Scaled& a, const Scaled& b) {
    if (a.mantissa == 0.0) return b;
    if (b.mantissa == 0.0) return a;
    const int power = a.exponent > b.exponent ? a.exponent : b.exponent;
    return Scaled::of(a.over(power) + b.over(power), power);
}
inline bool exceeds(const Scaled& a, const Scaled& b) {
    return (a + -b).mantissa > 0.0;
}
inline Scaled larger(const Scaled& a, const Scaled& b) {
    return exceeds(a, b) ? a : b;
}

// Returns whether overflow before a limit was harmless for a feature: the exact results for x - error and x + error,
// where x is the op's input, must both be beyond the limit by a margin of a thousand roundings.
APPROXSVM_COLD inline bool is_beyond_limit(const MapOp& op, std::size_t j, double x, double error, bool above) {
    const double* const* parts = op.parts;
    const double limit = parts[above ? part::high : part::low][j];
    if (!(std::fabs(x) <= largest_double && error <= largest_double && std::fabs(limit) <= largest_double))
        return false;
    const auto number = [&](std::size_t which) { return Scaled::of(parts[which][j]); };
    for (const double sign : {-1.0, 1.0}) {
        // `most` is the largest intermediate value; roundings are proportional to it.
        Scaled end = Scaled::of(x) + Scaled::of(sign * error),
               most = larger(Scaled::of(std::fabs(x)), Scaled::of(error));
        if (parts[part::subtract]) {
            most = larger(most, number(part::subtract).modulus());
            end = end + -number(part::subtract);
        }
        if (parts[part::multiply]) {
            most = most * number(part::multiply).modulus();
            end = end * number(part::multiply);
        }
        if (parts[part::divide]) {
            most = most / number(part::divide).modulus();
            end = end / number(part::divide);
        }
        if (parts[part::add]) {
            most = larger(most, number(part::add).modulus());
            end = end + number(part::add);
        }
        const double share = 0x1p-43 + (parts[part::relative_error] ? 2.0 * parts[part::relative_error][j] : 0.0);
        const Scaled slack = larger(most, end.modulus()) * Scaled::of(share);
        const bool beyond = above ? exceeds(end + -slack, Scaled::of(limit)) : exceeds(Scaled::of(limit), end + slack);
        if (!beyond) return false;
    }
    return true;
}

// --- the ops

// Runs the op. Operations that a compiler might contract are in separate loops, so that x is bit-identical to the
// source's value. `has_errors` states whether inputs have errors. The source multiplies sparse rows by 1 / divide,
// which adds two roundings. limit() is called afterwards.
inline void run_affine(const MapOp& op, const double* gains, bool has_errors, bool is_sparse, double* x,
                       double* error) {
    constexpr double u = unit64, up = 1.0 + 0x1p-30;
    const std::size_t n = op.n_inputs;
    const double* const* parts = op.parts;
    const double *subtract = parts[part::subtract], *multiply = parts[part::multiply], *divide = parts[part::divide],
                 *add = parts[part::add], *relative = parts[part::relative_error], *underflow = gains + n;
    for (std::size_t j = 0; subtract && j < n; ++j) x[j] -= subtract[j];
    for (std::size_t j = 0; multiply && j < n; ++j) x[j] *= multiply[j];
    for (std::size_t j = 0; divide && j < n; ++j) x[j] /= divide[j];
    const double depth = u * ((subtract ? 1.0 : 0.0) + (multiply ? 1.0 : 0.0) + (divide ? is_sparse ? 3.0 : 1.0 : 0.0));
    if (has_errors) {
        for (std::size_t j = 0; j < n; ++j)
            error[j] = approxsvm_scaled_radius(error[j], gains[j], depth, x[j], underflow[j]);
    } else {
        for (std::size_t j = 0; j < n; ++j) error[j] = approxsvm_own_radius(depth, x[j], underflow[j]);
    }
    for (std::size_t j = 0; relative && j < n; ++j) error[j] = approxsvm_with_relative(error[j], x[j], relative[j]);
    for (std::size_t j = 0; add && j < n; ++j) x[j] += add[j];
    for (std::size_t j = 0; add && j < n; ++j) error[j] = approxsvm_added_radius(error[j], x[j]);
    for (std::size_t j = 0; j < n; ++j) error[j] *= up;
}

inline void limit(const MapOp& op, double* x, double* error) {
    const std::size_t n = op.n_inputs;
    const double *low = op.parts[part::low], *high = op.parts[part::high];
    const auto change = [=](std::size_t j, approxsvm_ball y) {
        x[j] = y.value;
        error[j] = y.radius;
    };
    for (std::size_t j = 0; low && j < n; ++j) change(j, approxsvm_at_least({x[j], error[j]}, low[j]));
    for (std::size_t j = 0; high && j < n; ++j) change(j, approxsvm_at_most({x[j], error[j]}, high[j]));
}

// The error that a float32 source adds to a feature is of_size |x - subtract| + constant; of_size and constant are 0 if
// the feature is unchanged. Intermediate values are below `stretch` |x - subtract|.
struct AffineInFloat32 {
    double of_size = unit32, constant, stretch = 1.0, gain = 1.0;

    AffineInFloat32(const MapOp& op, std::size_t j) {
        const double* const* parts = op.parts;
        const auto number = [&](std::size_t which, double neutral) { return parts[which] ? parts[which][j] : neutral; };
        const double subtract = std::fabs(number(part::subtract, 0.0)), add = std::fabs(number(part::add, 0.0)),
                     factors[] = {std::fabs(number(part::multiply, 1.0)), 1.0 / std::fabs(number(part::divide, 1.0))};
        double largest_number = std::fmax(subtract, add);
        constant = unit32 * subtract + tiny32;
        for (const double f : factors) {
            const double farther = std::fmax(f, f > 0.0 ? 1.0 / f : 0.0),
                         relative = 3.0 * unit32 + tiny32 * farther;  // sparse rows are multiplied by 1 / divide
            of_size = (of_size + gain * relative) * f * (1.0 + relative);
            constant = constant * f * (1.0 + relative) + tiny32;
            gain *= f;
            stretch = std::fmax(stretch, gain);
            largest_number = std::fmax(largest_number, farther);
        }
        of_size += unit32 * gain;
        constant += unit32 * add + tiny32;
        if (!(largest_number <= 0x1p127)) stretch = HUGE_VAL;
        const bool is_neutral = subtract == 0.0 && add == 0.0 && factors[0] == 1.0 && factors[1] == 1.0;
        if (is_neutral && number(part::multiply, 1.0) == number(part::divide, 1.0) &&
            number(part::relative_error, 0.0) == 0.0)
            of_size = constant = 0.0;
    }
};

struct AffineOp : AnyOp {
    static constexpr OpKind kind = OpKind::affine;
    static constexpr bool by_feature = true, as_source = true;
    static constexpr std::uint32_t least_parts = 1, most_parts = (1 << part::n_affine) - 1;
    static bool hides_infinity(const MapOp& op) { return op.parts[part::low] || op.parts[part::high]; }

    static void find_parts(MapOp& op, OpArrays& arrays) {
        for (std::size_t k = 0; k < part::n_affine; ++k) {
            if (op.parts_number >> k & 1) op.parts[k] = arrays.numbers(op.n_inputs);
        }
    }
    APPROXSVM_COLD static bool is_valid(Check& check, const MapOp& op) {
        const double* const* parts = op.parts;
        const std::size_t n = op.n_inputs;
        for (std::uint32_t k = 0; k < part::n_affine; ++k) {
            const field::Id name = static_cast<field::Id>(field::op_subtract + k);
            const bool is_limit = k == part::low || k == part::high;
            if (parts[k]) check.each(name, parts[k], n, is_limit ? Expected{Rule::not_nan, {}, {}} : finite_number);
        }
        if (parts[part::divide])
            check.each(field::op_divide, parts[part::divide], n, Expected{Rule::not_equal, stored(0.0), {}});
        if (parts[part::relative_error])
            check.each(field::op_relative_error, parts[part::relative_error], n, at_least(0.0));
        for (std::size_t j = 0; parts[part::low] && parts[part::high] && j < n; ++j) {
            check(field::op_high, parts[part::high][j], at_least(parts[part::low][j]), j);
        }
        return check.status() == Status::ok;
    }

    static bool as_source_of_sparse(const MapOp& op) { return !op.parts[part::divide]; }

    // Returns the size of fill_gains()' output, whose values are all rounded up. It begins with n growth factors of
    // errors, |multiply / divide|, then n contributions of underflow and their sum. The parameters of AffineInFloat32
    // follow, n each. To bound norms, the largest of_size, the largest stretch and the norm of the constants come last.
    static std::size_t n_gains(const MapOp& op) { return 5 * op.n_outputs + 4; }
    APPROXSVM_COLD static void fill_gains(const MapOp& op, double* gains) {
        constexpr double up = 1.0 + 0x1p-30;
        const std::size_t n = op.n_outputs;
        const double *multiply = op.parts[part::multiply], *divide = op.parts[part::divide];
        double *of_size = gains + 2 * n + 1, *constant = of_size + n, *stretch = constant + n, *of_norms = stretch + n;
        of_norms[0] = of_norms[1] = 0.0;
        for (std::size_t j = 0; j < n; ++j) {
            const double divisor = divide ? divide[j] : 1.0;
            gains[j] = approxsvm_affine_gain(multiply ? multiply[j] : 1.0, divisor);
            gains[n + j] = approxsvm_affine_underflow(divisor);
            const AffineInFloat32 narrow(op, j);
            of_size[j] = narrow.of_size * up;
            constant[j] = narrow.constant * up;
            stretch[j] = narrow.stretch * up;
            of_norms[0] = std::fmax(of_norms[0], narrow.gain > 0.0 ? of_size[j] / narrow.gain * up : HUGE_VAL);
            of_norms[1] = std::fmax(of_norms[1], narrow.gain > 0.0 ? stretch[j] / narrow.gain * up : HUGE_VAL);
        }
        gains[2 * n] = sum_in_lanes(n, [=](std::size_t j) { return gains[n + j]; });
        of_norms[2] = norm_above(constant, n);
    }

    // Adds the errors of a float32 source; the error of a value not changed by the source is 0.
    static void find_errors_in_float32(const MapOp& op, const double* gains, const double* x, const double* error,
                                       double* more) {
        const std::size_t n = op.n_inputs;
        const double *subtract = op.parts[part::subtract], *low = op.parts[part::low], *high = op.parts[part::high],
                     *of_size = gains + 2 * n + 1, *constant = of_size + n, *stretch = constant + n;
        for (std::size_t j = 0; j < n; ++j) {
            const double came = error ? error[j] : 0.0, size = std::fabs(subtract ? x[j] - subtract[j] : x[j]) + came,
                         off = of_size[j] * size + constant[j];
            const bool is_limited = (low && !(x[j] >= low[j])) || (high && !(x[j] <= high[j])),
                       stays = off == 0.0 && came == 0.0 && !is_limited;
            more[j] = stays ? 0.0 : size * stretch[j] + off <= largest32 ? off + tiny32 : HUGE_VAL;
        }
    }

    // Maps rows, using the gains of this op.
    static void run(const MapOp& op, const double* gains, const RowsOnTheWay& on) {
        on.source.in_float32 ? run_rows<true>(op, gains, on) : run_rows<false>(op, gains, on);
    }

  private:
    template <bool in_float32>
    static void run_rows(const MapOp& op, const double* gains, const RowsOnTheWay& on) {
        const std::size_t n = op.n_inputs;
        const double *low = op.parts[part::low], *high = op.parts[part::high];
        double *before = on.y, *errors_before = on.y_error;
        for (std::size_t r = 0; r < on.n_rows; ++r) {
            double *x = on.x + r * on.stride, *error = on.error + r * on.stride;
            if (!in_float32 && !low && !high) {
                run_affine(op, gains, on.has_errors, on.source.is_sparse, x, error);
                continue;
            }
            for (std::size_t j = 0; j < n; ++j) before[j] = x[j];
            for (std::size_t j = 0; j < n; ++j) errors_before[j] = on.has_errors ? error[j] : 0.0;
            if constexpr (in_float32) {
                double* const more = before + on.stride;
                find_errors_in_float32(op, gains, x, on.has_errors ? error : nullptr, more);
                run_affine(op, gains, on.has_errors, on.source.is_sparse, x, error);
                for (std::size_t j = 0; j < n; ++j) error[j] = more[j] == 0.0 ? 0.0 : error[j] + more[j];
                if (!low && !high) continue;
            } else {
                run_affine(op, gains, on.has_errors, on.source.is_sparse, x, error);
            }
            limit(op, x, error);
            for (std::size_t j = 0; j < n; ++j) {
                if (error[j] <= largest_double) continue;
                const bool lossless =
                    !in_float32 &&
                    ((high && x[j] == high[j] && is_beyond_limit(op, j, before[j], errors_before[j], true)) ||
                     (low && x[j] == low[j] && is_beyond_limit(op, j, before[j], errors_before[j], false)));
                error[j] = lossless ? 0.0 : HUGE_VAL;
            }
        }
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

// Evaluates single rows with the sums of sums.hpp, with bounds. A row qualifies if each value is exactly on the support
// vectors' grid and within its feature's range. The cost of a row does not depend on other rows.
#ifndef APPROXSVM_PREDICT_FEW_VALUES_STAGE_HPP
#define APPROXSVM_PREDICT_FEW_VALUES_STAGE_HPP

#include "../rows/row_source.hpp"
#include "layout.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Bounds on the rounding errors of the sums in sums.hpp: `of_moduli` multiplies the sum of absolute values, `of_all`
// multiplies A1, and `of_scale` is the effect of underflow in coefficients and products.
//
// In float32: each of the n_digits table entries and each of their n_digits - 1 products has a relative error of at
// most u: 2 n_digits - 1 roundings. Coefficients are rounded once, and their products once more unless fused; a sum has
// a depth of few_depth. The factor of_moduli also covers the rounding of the sum of absolute values. Chunks are summed
// in float64. In the exponents, g = gamma step^2 is rounded twice and g h once, so K has a relative error of at most 3
// u64 g h; exp adds two units in the last place. A table entry below 2^-126 is replaced by zero; for each digit whose
// entry is not replaced, its share of g h is below 88, and 2^-40 covers the resulting error. Kernel values below 2^-126
// may therefore be zero, which is covered by the factor of A1. Coefficients are divided by the largest coefficient of
// all functions, so another function may have only tiny coefficients. Each coefficient and product may therefore lose
// up to 2^-150 coef_scale, regardless of A1.
//
// In float64, the same holds with a single table, whose entries below 2^-1022 may be zero. The error few.grid_error is
// added in both precisions.
struct FewErrors {
    double of_moduli, of_all, of_scale;

    static FewErrors of_float32(const FewValues& few) {
        const double n = static_cast<double>(few.starts[few.n_segments]) + 16.0;
        return {
            1.02 * unit32 * (2.0 * static_cast<double>(few.n_digits) + few_depth + 1.0) + 1.01 * n * unit64 + 0x1p-40,
            few.grid_error + 0x1p-120 * n, 0x1p-145 * n * few.coef_scale};
    }
    static FewErrors of_float64(const FewValues& few) {
        const double n = static_cast<double>(few.starts[few.n_segments]) + 16.0;
        return {1.01 * unit64 * (n + 3.0 * few.exponent_reach), few.grid_error + 0x1p-1000, 0.0};
    }
    double bound(double moduli, const DecisionNumbers& decision) const {
        return of_moduli * moduli + of_all * decision.sum_moduli + of_scale + 0x1p-51 * std::fabs(decision.intercept) +
               0x1p-1040;
    }
};

class FewValuesStage {
  public:
    FewValuesStage(const FewValues* few, const RowSource& source, const FewRoom& room)
        : few_(few && few->is_usable ? few : nullptr),
          source_(source),
          room_(room),
          errors32_(few_ ? FewErrors::of_float32(*few_) : FewErrors{}),
          errors64_(few_ ? FewErrors::of_float64(*few_) : FewErrors{}) {}

    // Loads row i; returns false if it is not on the grid.
    bool takes(std::size_t i) {
        if (!few_ || !has_codes(i)) return false;
        fill_few_row(*few_, room_.codes, room_.row);
        return true;
    }

    // Compute the sums of all functions or class pairs for the loaded row, and bounds on their errors.
    void fill32(const ModelView& view, double* values, double* bounds) const {
        const bool classes = has_classes(view);
        if (classes) few_kernels(*few_, room_.row, room_.kernels);
        const auto part = [&](std::size_t c, std::size_t f) {
            return classes ? few_sum(*few_, room_.kernels, c, f) : few_sum(*few_, room_.row, c);
        };
        add_parts(view, errors32_, part, values, bounds);
    }
    void fill64(const ModelView& view, double* values, double* bounds) const {
        for (std::size_t s = 0; s < few_->n_segments; ++s) {
            few_sums64(*few_, room_.row, s, room_.sums + s * few_->n_functions);
        }
        const auto part = [&](std::size_t c, std::size_t f) { return room_.sums[c * few_->n_functions + f]; };
        add_parts(view, errors64_, part, values, bounds);
    }

  private:
    // Adds the two sums part(c, f) of each class pair, where f is the pair's index among the pairs of class c, or the
    // sums of a single function's two segments.
    template <class Part>
    static void add_parts(const ModelView& view, const FewErrors& errors, const Part& part, double* values,
                          double* bounds) {
        const auto add = [&](std::size_t k, double first, double second) {
            values[k] = first + second;
            bounds[k] = errors.bound(std::fabs(first) + std::fabs(second), view.decisions[k]);
        };
        if (!has_classes(view)) return add(0, part(0, 0), part(1, 0));
        for_each_pair(view.n_labels,
                      [&](std::size_t pair, std::size_t i, std::size_t j) { add(pair, part(i, j - 1), part(j, i)); });
    }
    bool has_codes(std::size_t i) {
        const std::size_t d = few_->n_features;
        if (!source_.is_sparse() || !few_->codes_of_zeros) {
            if (source_.load(i, nullptr, 1.0, room_.values, 1) != 0.0) return false;
            return dense_codes();
        }
        double unseen;
        const std::size_t n = source_.load_nonzeros(i, nullptr, 1.0, d, room_.values, room_.columns, unseen);
        if (unseen != 0.0) return false;
        std::memcpy(room_.codes, few_->codes_of_zeros, d);
        bool all = true;
        for (std::size_t k = 0; k < n; ++k) {
            all &= has_code(room_.values[k], static_cast<std::size_t>(room_.columns[k]));
        }
        return all;
    }
    bool has_code(double value, std::size_t j) {
        const double k = steps_to(value, few_->origin, few_->inverse_step), code = k - few_->lowest[j];
        if (!(on_grid(few_->origin, few_->step, k) == value && code >= 0.0 && code <= few_->range[j])) return false;
        room_.codes[j] = static_cast<std::uint8_t>(code);
        return true;
    }
    // Checks the distances of all values from the grid and from their features' ranges, many values at a time.
    bool dense_codes() const {
        constexpr std::size_t width = static_cast<std::size_t>(lanes64);
        const std::size_t d = few_->n_features;
        const f64v origin = set1(few_->origin), step = set1(few_->step), inverse_step = set1(few_->inverse_step);
        const f64v shift = set1(0x1.8p52), nought = zero64();
        for (std::size_t j = d; j % width != 0; ++j) room_.values[j] = few_->origin;
        f64v beside = zero64();
        for (std::size_t j = 0; j < d; j += width) {
            const f64v value = load(room_.values + j);
            const f64v k = sub(add(mul(sub(value, origin), inverse_step), shift), shift);
            const f64v code = sub(k, load(few_->lowest + j)), gap = sub(value, add(mul(k, step), origin));
            beside = add(beside, max_or(gap, sub(nought, gap)));
            beside =
                add(beside, add(max_or(sub(nought, code), nought), max_or(sub(code, load(few_->range + j)), nought)));
            store(room_.values + j, code);
        }
        double lane[lanes64];
        store(lane, beside);
        for (const double x : lane) {
            if (!(x == 0.0)) return false;
        }
        for (std::size_t j = 0; j < d; ++j) room_.columns[j] = static_cast<std::int32_t>(room_.values[j]);
        for (std::size_t j = 0; j < d; ++j) room_.codes[j] = static_cast<std::uint8_t>(room_.columns[j]);
        return true;
    }

    const FewValues* const few_;
    const RowSource& source_;
    const FewRoom& room_;
    const FewErrors errors32_, errors64_;
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

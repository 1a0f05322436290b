// A row at a time through the sums of exact/few_values.hpp, with their bounds: where all of its values are on the
// support vectors' grid, compared exactly, and within the range of each feature. The cost of such a row does not depend
// on other rows.
#pragma once

#include "prepared.hpp"
#include "row_source.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Memory of one thread for it.
struct FewRoom {
    double *values, *sums;  // of a row, (n_features,); of segments, (n_segments, n_functions)
    std::int32_t* columns;
    std::uint8_t* codes;
    FewRow row;
    float* kernels;  // of all lanes, where there are several functions

    FewRoom() : values(nullptr), sums(nullptr), columns(nullptr), codes(nullptr), row(), kernels(nullptr) {}
    FewRoom(const FewValues& few, const ModelView& model, Arena& arena) {
        const FewSegments segments(model);
        const std::size_t d = few.is_usable ? model.n_features : 0;
        values = arena.take<double>(few.is_usable ? d + lanes64 : 0);
        sums = arena.take<double>(few.is_usable ? segments.n() : 0, segments.n_functions());
        columns = arena.take<std::int32_t>(d);
        codes = arena.take<std::uint8_t>(few.is_usable ? d + 7 : 0);
        row.planes = arena.take<std::uint32_t>(few.is_usable ? (d + 31) / 32 : 0);
        row.tables = arena.take<std::uint8_t[16]>(d);
        row.factors = arena.take<float[16]>(few.has_factors ? word_codes * few.n_parts : 0);
        kernels = arena.take<float>(few.is_usable && has_classes(model) ? segments.n_lanes() : 0);
    }
};

// What rounding does to sums of few_values.hpp: `of_moduli` of the moduli that they add up, `of_all` of A1, and
// `of_scale`, which underflow of coefficients and products loses.
//
// In float32: an entry of a table of digits is off by u of itself, and so are their products, 2 n_digits - 1 roundings
// in all; the coefficient's is one, its product's another where that is not fused, and a sum takes few_depth of them.
// Moduli are computed, too, which the factor covers. Sums of chunks take float64. Exponents: g = gamma step^2 takes two
// roundings and g h one, so that K errs by 3 u64 g h of itself, and exp by two units in the last place. An entry below
// 2^-126 is zero: elsewhere g h is below 88 for each digit, which 2^-40 covers. So kernel values below 2^-126 may be
// zero, which is of A1. Coefficients are shares of the largest one of all functions, beside which all of another
// function's may be next to nothing: they and their products lose up to 2^-150 of coef_scale each, whatever A1 is.
//
// In float64 the same, with one table, whose entries below 2^-1022 may be zero. The grid adds few.grid_error to both.
struct FewErrors {
    double of_moduli, of_all, of_scale;

    static FewErrors of_float32(const FewValues& few) {
        const double n = static_cast<double>(few.starts[few.n_segments]) + 16.0;
        return {
            1.02 * unit32 * (2.0 * static_cast<double>(few.n_digits) + few_depth + 1.0) + 1.01 * n * unit64 + 0x1p-40,
            few.grid_error + 0x1p-120 * n, 0x1p-145 * n * few.coef_scale};
    }
    // By factors exp(-y_g), y_g = gamma times the squared distance in the features of group g: y_g is off by u of
    // itself in float32, and by less in float64 before that, exp by 2 u, and each product by u. So K errs by u (3
    // n_groups + x), x the sum of all y_g: by 20 u more of itself where x <= 20, and elsewhere by u x exp(-x), below
    // 1e-14, of A1. Exp stops at -87.3, and products below 2^-126 may be zero, which is of A1, too.
    static FewErrors of_factors(const FewValues& few) {
        const double n = static_cast<double>(few.starts[few.n_segments]) + 16.0;
        const double n_groups = static_cast<double>(few.n_groups);
        const double depth = 3.0 * n_groups + 20.0 + few_depth + 2.0;
        const double in_float64 = 20.0 * (static_cast<double>(few.n_features) + 8.0) * unit64;
        return {1.02 * (unit32 * depth + in_float64) + 1.01 * n * unit64, 1e-13, 0x1p-145 * n * few.coef_scale};
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
          errors32_(!few_               ? FewErrors{}
                    : few_->has_factors ? FewErrors::of_factors(*few_)
                                        : FewErrors::of_float32(*few_)),
          errors64_(few_ && settles_all() ? FewErrors::of_float64(*few_) : FewErrors{}) {}

    // Whether there are sums in float64, too: no row that those in float32 leave open needs the engines.
    bool settles_all() const { return !few_ || !few_->has_factors; }

    // Takes row i, if it is on the grid, or there is none.
    bool takes(std::size_t i) {
        if (!few_) return false;
        if (few_->has_factors) {
            return source_.load(i, nullptr, 1.0, room_.values, 1) == 0.0 &&
                   fill_factors(*few_, room_.values, room_.row);
        }
        if (!has_codes(i)) return false;
        fill_few_row(*few_, room_.codes, room_.row);
        return true;
    }

    double bound32(double moduli, const DecisionNumbers& decision) const { return errors32_.bound(moduli, decision); }
    double bound64(double moduli, const DecisionNumbers& decision) const { return errors64_.bound(moduli, decision); }

    // --- of the row that was loaded

    // The sum of the only function and its moduli.
    void sum32(double& sum, double& moduli) const {
        const double positive = few_sum(*few_, room_.row, 0), negative = few_sum(*few_, room_.row, 1);
        sum = positive + negative;
        moduli = positive - negative;
    }
    void sum64(double& sum, double& moduli) const {
        sums64();
        sum = room_.sums[0] + room_.sums[1];
        moduli = room_.sums[0] - room_.sums[1];
    }

    // Of several classes: kernel values, and the sums of class c in its pairs.
    void kernels32() const { few_kernels(*few_, room_.row, room_.kernels); }
    double class_sum32(std::size_t c, std::size_t f) const { return few_sum(*few_, room_.kernels, c, f); }
    void sums64() const {
        for (std::size_t s = 0; s < few_->n_segments; ++s) {
            few_sums64(*few_, room_.row, s, room_.sums + s * few_->n_functions);
        }
    }
    double class_sum64(std::size_t c, std::size_t f) const { return room_.sums[c * few_->n_functions + f]; }

  private:
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
    // The same of all values, side by side, by how far they are from the grid and from their ranges.
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

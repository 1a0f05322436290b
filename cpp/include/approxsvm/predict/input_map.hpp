// Maps raw rows to rows of a model: columns are selected, then stages follow, with the source's operations in float64,
// so that up to the first projection or logarithm a row is the source's own, bit for bit (models/FORMAT.md,
// "input_map"). Each row comes with a bound of its distance to the same function over the real numbers.
#pragma once

#include <cmath>
#include <cstring>
#include <type_traits>

#include "../artifact/input_map_section.hpp"
#include "../model_view.hpp"
#include "../simd/block.hpp"
#include "../simd/compensated.hpp"
#include "../simd/norms.hpp"
#include "../simd/simd.hpp"
#include "../status.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// --- what errors grow by

// Numbers that fill_map_gains fills for a stage, and for all of them.
inline std::size_t n_gains(const MapStage& stage) {
    switch (stage.kind) {
        case StageKind::affine:
            return 2 * stage.n_outputs + 1;
        case StageKind::projection:
            return stage.n_outputs;
        case StageKind::logarithm:
            break;
    }
    return 0;
}
inline std::size_t map_gain_doubles(const InputMapView& map) {
    std::size_t total = 0;
    for_stages(map, [&](const MapStage& stage) { total += n_gains(stage); });
    return total;
}

// Not below the norm of column c of a projection's matrix: by its largest number, so that no square is beyond float64.
inline double column_norm(const MapStage& stage, std::size_t c) {
    const double* matrix = stage.parts[part::matrix] + c;
    const std::size_t n = stage.n_inputs, m = stage.n_outputs;
    double largest = 0.0, sum = 0.0;
    for (std::size_t j = 0; j < n; ++j) largest = std::fmax(largest, std::fabs(matrix[j * m]));
    for (std::size_t j = 0; j < n && largest > 0.0; ++j) {
        const double share = matrix[j * m] / largest;
        sum += share * share;
    }
    return largest * std::sqrt(sum) * (1.0 + 0x1p-30) + 0x1p-1070;
}

// Of an affine stage |multiply / divide|, by which errors grow, and what underflow adds, n numbers each, and the sum of
// the latter; of a projection the norms of its columns; of logarithms nothing. All are rounded upwards.
inline void fill_map_gains(const InputMapView& map, double* gains) {
    constexpr double tiny = 0x1p-1070;
    for_stages(map, [&](const MapStage& stage) {
        const std::size_t n = stage.n_outputs;
        if (stage.kind == StageKind::projection) {
            for (std::size_t c = 0; c < n; ++c) gains[c] = column_norm(stage, c);
        } else if (stage.kind == StageKind::affine) {
            const double *multiply = stage.parts[part::multiply], *divide = stage.parts[part::divide];
            for (std::size_t j = 0; j < n; ++j) {
                const double factor = multiply ? std::fabs(multiply[j]) : 1.0,
                             divisor = divide ? std::fabs(divide[j]) : 1.0;
                gains[j] = factor / divisor * (1.0 + 0x1p-50) + tiny;
                gains[n + j] = 2.0 * tiny / divisor + 2.0 * tiny;
            }
            gains[2 * n] = sum_in_lanes(n, [=](std::size_t j) { return gains[n + j]; });
        }
        gains += n_gains(stage);
    });
}

// --- limits that are reached by overflow

// mantissa * 2^exponent: a range that no chain of a few operations leaves.
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

// A feature that has overflown on its way to a limit: whether both x - error and x + error, of before this stage, come
// out beyond that limit, with a thousand roundings to spare. Then nothing was lost.
inline bool is_beyond_limit(const MapStage& stage, std::size_t j, double x, double error, bool above) {
    const double* const* parts = stage.parts;
    const double limit = parts[above ? part::high : part::low][j];
    if (!(std::fabs(x) <= largest_double && error <= largest_double && std::fabs(limit) <= largest_double))
        return false;
    const auto number = [&](std::size_t which) { return Scaled::of(parts[which][j]); };
    for (const double sign : {-1.0, 1.0}) {
        // `most` is the largest number on the way, which roundings are in proportion to.
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

// --- the stages

// Operations that a compiler might contract into one have loops of their own, so that x is the source's own, bit for
// bit. With y the value before `add`, each step up to it errs by u |y|, underflow aside; an error that comes in grows
// by the stage's gain. `has_errors` says whether any does.
inline void run_affine(const MapStage& stage, const double* gains, bool has_errors, double* x, double* error) {
    constexpr double u = unit64, up = 1.0 + 0x1p-30;
    const std::size_t n = stage.n_inputs;
    const double* const* parts = stage.parts;
    const double *subtract = parts[part::subtract], *multiply = parts[part::multiply], *divide = parts[part::divide],
                 *add = parts[part::add], *low = parts[part::low], *high = parts[part::high],
                 *relative = parts[part::relative_error], *underflow = gains + n;
    for (std::size_t j = 0; subtract && j < n; ++j) x[j] -= subtract[j];
    for (std::size_t j = 0; multiply && j < n; ++j) x[j] *= multiply[j];
    for (std::size_t j = 0; divide && j < n; ++j) x[j] /= divide[j];
    const double path = u * ((subtract ? 1.0 : 0.0) + (multiply ? 1.0 : 0.0) + (divide ? 1.0 : 0.0));
    if (has_errors) {
        for (std::size_t j = 0; j < n; ++j) error[j] = error[j] * gains[j] + (path * std::fabs(x[j]) + underflow[j]);
    } else {
        for (std::size_t j = 0; j < n; ++j) error[j] = path * std::fabs(x[j]) + underflow[j];
    }
    for (std::size_t j = 0; relative && j < n; ++j) error[j] += relative[j] * (std::fabs(x[j]) + error[j]);
    for (std::size_t j = 0; add && j < n; ++j) x[j] += add[j];
    for (std::size_t j = 0; add && j < n; ++j) error[j] += u * std::fabs(x[j]);
    for (std::size_t j = 0; j < n; ++j) error[j] *= up;
    for (std::size_t j = 0; low && j < n; ++j) {
        error[j] = x[j] + error[j] < low[j] ? 0.0 : error[j];  // below the limit, exactly or not
        x[j] = x[j] < low[j] ? low[j] : x[j];
    }
    for (std::size_t j = 0; high && j < n; ++j) {
        error[j] = x[j] - error[j] > high[j] ? 0.0 : error[j];
        x[j] = x[j] > high[j] ? high[j] : x[j];
    }
}

// --- one affine stage alone, which is what scalers are

// x = raw, less `subtract`, times `multiply`, over `divide`, each rounded by itself; returns the sum of squares.
template <bool Subtracts, bool Multiplies, bool Divides>
inline double scale_row(const MapStage& stage, const double* raw, double* x) {
    const double *subtract = stage.parts[part::subtract], *multiply = stage.parts[part::multiply],
                 *divide = stage.parts[part::divide];
    return sum_in_lanes(stage.n_inputs, [=](std::size_t j) {
        double z = raw[j];
        if constexpr (Subtracts) z -= subtract[j];
        if constexpr (Multiplies) z *= multiply[j];
        if constexpr (Divides) z /= divide[j];
        x[j] = z;
        return z * z;
    });
}

// The only stage of a map that has neither limits nor errors of its own: rows in one or two passes, their errors from
// norms instead of from each number, which run_affine() explains.
class ScalerAlone {
  public:
    ScalerAlone(const InputMapView& map, const double* gains) {
        if (map.n_stages != 1) return;
        read_stage(map.stages, map.n_columns, stage_);
        const double* const* parts = stage_.parts;
        if (stage_.kind != StageKind::affine || parts[part::low] || parts[part::high] || parts[part::relative_error])
            return;
        const bool subtracts = parts[part::subtract], multiplies = parts[part::multiply], divides = parts[part::divide];
        using Scale = decltype(scale_);
        const Scale scales[] = {scale_row<false, false, false>, scale_row<true, false, false>,
                                scale_row<false, true, false>,  scale_row<true, true, false>,
                                scale_row<false, false, true>,  scale_row<true, false, true>,
                                scale_row<false, true, true>,   scale_row<true, true, true>};
        scale_ = scales[(subtracts ? 1 : 0) + (multiplies ? 2 : 0) + (divides ? 4 : 0)];
        path_ = unit64 * ((subtracts ? 1.0 : 0.0) + (multiplies ? 1.0 : 0.0) + (divides ? 1.0 : 0.0));
        underflow_ = gains[2 * stage_.n_inputs];
    }

    // Whether the map is one.
    explicit operator bool() const { return scale_ != nullptr; }

    // Maps the selected columns of a row; false where squares leave float64 or come near its end, as they do for rows
    // that are not finite: RowMapper knows what to do.
    bool map(const double* raw, double* x, double& error) const {
        double sq = scale_(stage_, raw, x);
        if (!is_safe(sq)) return false;
        const std::size_t n = stage_.n_inputs;
        error = path_ * norm_above(sq, x, n) + underflow_;
        if (const double* add = stage_.parts[part::add]) {
            for (std::size_t j = 0; j < n; ++j) x[j] += add[j];
            sq = sq_norm(x, n);
            if (!is_safe(sq)) return false;
            error += unit64 * norm_above(sq, x, n);
        }
        error *= 1.0 + 0x1p-30;
        return true;
    }

  private:
    static bool is_safe(double sq) { return sq > 0x1p-900 && sq < 0x1p1000; }

    MapStage stage_{};
    double (*scale_)(const MapStage&, const double*, double*) = nullptr;
    double path_ = 0.0, underflow_ = 0.0;
};

// What the bias of output k, its own error and the last two roundings add.
inline double bias_error(const MapStage& stage, std::size_t k, double y) {
    return stage.parts[part::bias_error][k] + 0x1p-52 * (std::fabs(stage.parts[part::bias][k]) + std::fabs(y)) +
           (static_cast<double>(stage.n_inputs) + 2.0) * 0x1p-1070;
}

// Rows that go through the stages together, so that a projection's matrix is read once for all of them.
constexpr std::size_t map_rows_together = 8;

// sums[r][i] = x_r . column k + i of the matrix, of `width` columns and n_rows rows; constants let compilers unroll.
template <class Rows, class Width, std::size_t Tile>
APPROXSVM_INLINE void project_tile(const MapStage& stage, std::size_t k, Rows n_rows, Width width, const double* x,
                                   std::size_t stride, double (&sums)[map_rows_together][Tile]) {
    const double* row = stage.parts[part::matrix] + k;
    for (std::size_t j = 0; j < stage.n_inputs; ++j, row += stage.n_outputs) {
        for (std::size_t r = 0; r < n_rows; ++r) {
            const double factor = x[r * stride + j];
            for (std::size_t i = 0; i < width; ++i) sums[r][i] += factor * row[i];
        }
    }
}

// y = (x - center) matrix + bias of rows `stride` numbers apart; x and its errors are overwritten. A sum of n products
// errs by gamma_(n + 2) of the sum of their moduli, in any order, with or without FMA, and by Cauchy and Schwarz errors
// grow by the norm of a column at most.
inline void run_projection(const MapStage& stage, const double* column_norms, bool has_errors, std::size_t n_rows,
                           std::size_t stride, double* x, double* error, double* y, double* y_error) {
    constexpr std::size_t tile = 16;
    const std::size_t n = stage.n_inputs, m = stage.n_outputs;
    const double *center = stage.parts[part::center], *bias = stage.parts[part::bias];
    const double path = 1.01 * (static_cast<double>(n) + 3.0) * unit64;
    double reach[map_rows_together];
    for (std::size_t r = 0; r < n_rows; ++r) {
        double *z = x + r * stride, *e = error + r * stride;
        for (std::size_t j = 0; j < n; ++j) z[j] -= center[j];
        for (std::size_t j = 0; j < n; ++j) e[j] = path * std::fabs(z[j]) + (has_errors ? e[j] : 0.0);
        reach[r] = norm_above(e, n);
    }
    for (std::size_t k = 0; k < m; k += tile) {
        const std::size_t width = m - k < tile ? m - k : tile;
        double sums[map_rows_together][tile] = {};
        if (width == tile && n_rows == map_rows_together) {
            project_tile(stage, k, std::integral_constant<std::size_t, map_rows_together>{},
                         std::integral_constant<std::size_t, tile>{}, x, stride, sums);
        } else {
            project_tile(stage, k, n_rows, width, x, stride, sums);
        }
        for (std::size_t r = 0; r < n_rows; ++r) {
            for (std::size_t i = 0; i < width; ++i) y[r * stride + k + i] = sums[r][i];
        }
    }
    for (std::size_t r = 0; r < n_rows; ++r) {
        double *z = y + r * stride, *e = y_error + r * stride;
        for (std::size_t k = 0; k < m; ++k) {
            z[k] += bias[k];
            e[k] = (reach[r] * column_norms[k] + bias_error(stage, k, z[k])) * (1.0 + 0x1p-30);
        }
    }
}

// The same of one row as if in twice the precision (Ogita, Rump and Oishi 2005, algorithm Dot2), for the few rows that
// need it; what overflows on this way is summed plainly.
inline void run_projection_exactly(const MapStage& stage, bool has_errors, const double* x, const double* error,
                                   double* y, double* y_error) {
    constexpr double u = unit64, up = 1.0 + 0x1p-30;
    const std::size_t n = stage.n_inputs, m = stage.n_outputs;
    const double* center = stage.parts[part::center];
    const double path = 1.01 * (static_cast<double>(n) + 4.0) * u,
                 underflow = (static_cast<double>(n) + 1.0) * 0x1p-1070;
    for (std::size_t k = 0; k < m; ++k) {
        const double *column = stage.parts[part::matrix] + k, bias = stage.parts[part::bias][k];
        double plain = 0.0, total = 0.0, lost = 0.0, moduli = 0.0, carried = 0.0;
        for (std::size_t j = 0; j < n; ++j) {
            const double factor = column[j * m];
            double rest_of_x, rest_of_sum;
            const double from_center = two_sum(x[j], -center[j], rest_of_x);
            const double product = rounded_product(from_center, factor);
            const double rest_of_product = std::fma(from_center, factor, -product);
            total = two_sum(total, product, rest_of_sum);
            lost += (rest_of_product + rest_of_sum) + rest_of_x * factor;
            plain += product;
            moduli += std::fabs(product);
            if (has_errors) carried += error[j] * std::fabs(factor);
        }
        const double sum = total + lost;
        y[k] = sum + bias;
        y_error[k] = (carried + 1.01 * (u * std::fabs(sum) + 2.0 * path * path * moduli) + underflow +
                      bias_error(stage, k, y[k])) *
                     (1.0 + path) * up;
        if (std::fabs(y[k]) <= largest_double && y_error[k] <= largest_double) continue;
        y[k] = plain + bias;
        y_error[k] = (carried + path * moduli + bias_error(stage, k, y[k])) * (1.0 + path) * up;
    }
}

// x = log(x + offset) where the offset is finite; false where a number has no logarithm, the first of which goes into
// `outside` with what it must be above. With s + lost = x + offset it is log(s) + lost / s, off by the square of the
// second, by 4 units of the C library and by two roundings; around t an error e becomes e / (t - e) at most.
inline bool run_logarithm(const MapStage& stage, bool has_errors, double* x, double* error, Fault& outside) {
    constexpr double u = unit64;
    for (std::size_t j = 0; j < stage.n_inputs; ++j) {
        const double offset = stage.parts[part::offset][j], came = has_errors ? error[j] : 0.0;
        error[j] = came;
        if (!(offset <= largest_double)) continue;
        if (x[j] <= -offset) {
            outside.found = x[j];
            outside.expected = 0.0 - offset;
            return false;
        }
        double lost;
        const double sum = two_sum(x[j], offset, lost), logarithm = std::log(sum),
                     correction = sum <= largest_double ? lost / sum : 0.0, nearest = sum * (1.0 - 0x1p-50) - came;
        x[j] = logarithm + correction;
        const double carried = nearest > 0.0 ? came / nearest : HUGE_VAL;
        error[j] = (carried + (12.0 * u * (std::fabs(logarithm) + std::fabs(correction)) + 0x1p-104)) * (1.0 + 0x1p-30);
    }
    return true;
}

// --- rows

// Numbers of memory for a RowMapper.
inline std::size_t map_doubles(const InputMapView& map) {
    return 4 * map_rows_together * map.widest;
}

// One mapped row, and how far it is from what is meant.
struct MappedRow {
    const double* values;  // (n_features,), in the memory lent
    double error;          // Euclidean distance; infinite where it is unknown
    bool is_finite;        // or else scaling has gone beyond float64
    bool is_inside;        // or else a number has no logarithm: `outside` says which, and what it must be above
    Fault outside;
};

// Maps up to map_rows_together rows at a time.
class RowMapper {
  public:
    // `gains` is what fill_map_gains filled, `memory` has room for map_doubles(map) numbers.
    RowMapper(const InputMapView& map, const double* gains, double* memory)
        : map_(map), gains_(gains), stride_(map.widest), memory_(memory) {}

    // Where the selected columns of row r go, (n_columns,), before map() is called.
    double* row(std::size_t r) const { return memory_ + r * stride_; }

    // Maps the first n rows; `exactly` rounds projections once, which is slow.
    void map(std::size_t n, bool exactly, MappedRow (&rows)[map_rows_together]) const {
        const std::size_t room = map_rows_together * stride_;
        double *x = memory_, *error = x + room, *y = error + room, *y_error = y + room;
        const double* gains = gains_;
        const unsigned char* next = map_.stages;
        std::size_t n_features = map_.n_columns;
        for (std::size_t r = 0; r < n; ++r) rows[r].is_inside = true;
        for (std::size_t k = 0; k < map_.n_stages; ++k) {
            MapStage stage;
            next = read_stage(next, n_features, stage);
            n_features = stage.n_outputs;
            const bool has_errors = k > 0;
            if (stage.kind == StageKind::affine) {
                for (std::size_t r = 0; r < n; ++r) affine(stage, gains, has_errors, row(x, r), row(error, r), y);
                gains += n_gains(stage);
                continue;
            }
            if (stage.kind == StageKind::logarithm) {
                for (std::size_t r = 0; r < n; ++r) {
                    MappedRow& mapped = rows[r];
                    if (mapped.is_inside)
                        mapped.is_inside = run_logarithm(stage, has_errors, row(x, r), row(error, r), mapped.outside);
                }
                continue;
            }
            if (exactly) {
                for (std::size_t r = 0; r < n; ++r)
                    run_projection_exactly(stage, has_errors, row(x, r), row(error, r), row(y, r), row(y_error, r));
            } else {
                run_projection(stage, gains, has_errors, n, stride_, x, error, y, y_error);
            }
            gains += n_gains(stage);
            double *const was_x = x, *const was_error = error;
            x = y, error = y_error, y = was_x, y_error = was_error;
        }
        for (std::size_t r = 0; r < n; ++r) {
            const double* values = row(x, r);
            const double distance = map_.n_stages > 0 ? norm_above(row(error, r), n_features) : 0.0;
            rows[r].values = values;
            rows[r].error = distance == distance ? distance : HUGE_VAL;
            rows[r].is_finite = all_finite(values, 1, n_features);
        }
    }

  private:
    double* row(double* first, std::size_t r) const { return first + r * stride_; }

    // `before` is room for a copy of the row and of its errors.
    void affine(const MapStage& stage, const double* gains, bool has_errors, double* x, double* error,
                double* before) const {
        const std::size_t n = stage.n_inputs;
        const double *low = stage.parts[part::low], *high = stage.parts[part::high];
        if (!low && !high) return run_affine(stage, gains, has_errors, x, error);
        double* errors_before = before + stride_;
        for (std::size_t j = 0; j < n; ++j) before[j] = x[j];
        for (std::size_t j = 0; j < n; ++j) errors_before[j] = has_errors ? error[j] : 0.0;
        run_affine(stage, gains, has_errors, x, error);
        for (std::size_t j = 0; j < n; ++j) {
            if (error[j] <= largest_double) continue;
            const bool lossless =
                (high && x[j] == high[j] && is_beyond_limit(stage, j, before[j], errors_before[j], true)) ||
                (low && x[j] == low[j] && is_beyond_limit(stage, j, before[j], errors_before[j], false));
            error[j] = lossless ? 0.0 : HUGE_VAL;
        }
    }

    const InputMapView& map_;
    const double* const gains_;
    const std::size_t stride_;
    double* const memory_;
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

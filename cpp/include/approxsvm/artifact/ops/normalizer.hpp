// The op x / ||x||. A norm close to 0 is replaced by 1; in a sparse row, only a norm of 0 is replaced
// (program/ops/normalizer.h).
#ifndef APPROXSVM_ARTIFACT_OPS_NORMALIZER_HPP
#define APPROXSVM_ARTIFACT_OPS_NORMALIZER_HPP

#include "op.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

#include "../../program/ops/normalizer.h"

constexpr double least_norm32 = 10.0 * 0x1p-23;
constexpr double largest_sum = 0x1.ffffep1023;  // the largest sum that cannot overflow, including rounding

struct NormalizerOp : AnyOp {
    static constexpr OpKind kind = OpKind::normalizer;
    enum Norm : std::uint32_t { l1, l2, max, n_norms };
    // When the source normalizes sparse rows: only if its raw rows are sparse, never, or always.
    enum Rows : std::uint32_t { as_raw, dense, sparse };
    static constexpr std::uint32_t most_parts = std::uint32_t{n_norms} * sparse + max;

    static void find_parts(MapOp&, OpArrays&) {}
    static bool is_valid(Check& check, const MapOp&) { return check.status() == Status::ok; }

    static void run(const MapOp& op, const double*, const RowsOnTheWay& on) {
        const Norm which = static_cast<Norm>(op.parts_number % n_norms);
        const Rows rows = static_cast<Rows>(op.parts_number / n_norms);
        for (std::size_t r = 0; r < on.n_rows; ++r) {
            double *x = on.x + r * on.stride, *error = on.error + r * on.stride;
            for (std::size_t j = 0; !on.has_errors && j < op.n_inputs; ++j) error[j] = 0.0;
            bool overflows = false;
            const double length = normalize(which, rows, on.source, op.n_inputs, x, error, overflows);
            on.rows[r].is_finite = on.rows[r].is_finite && !overflows;
            // The source divides by such a small norm if its own rows are sparse, but not if only the caller stores
            // them as sparse.
            if (rows == as_raw && on.source.is_sparse && length > 0.0 && length < APPROXSVM_LEAST_NORM)
                on.refuse(r, kind, length, APPROXSVM_LEAST_NORM);
        }
    }

  private:
    static double norm(Norm which, const double* x, std::size_t n) {
        if (which == l1) return sum_in_lanes(n, [=](std::size_t j) { return std::fabs(x[j]); });
        if (which == l2) return std::sqrt(sum_in_lanes(n, [=](std::size_t j) { return x[j] * x[j]; }));
        double most = 0.0;
        for (std::size_t j = 0; j < n; ++j) most = std::fabs(x[j]) > most ? std::fabs(x[j]) : most;
        return most;
    }

    // Returns the norm. There is no error bound if the norm may lie on either side of the smallest norm by which values
    // are divided; rows that are known to be all zeros are an exception, because they stay zero. With float32, the
    // source uses least_norm32 for dense rows. Underflow of squares matters only for tiny norms. Sets `overflows` if
    // the source's sum of absolute values or squares may be infinite, because the source then divides by infinity.
    static double normalize(Norm which, Rows rows, const SourceRows& source, std::size_t n, double* x, double* error,
                            bool& overflows) {
        const double u = source.unit(), tiny = source.tiny();
        const double n_numbers = static_cast<double>(n);
        const bool divides_any = rows == sparse || (rows == as_raw && source.is_sparse);
        // `scale` is a power of two, below 1 for rows so large that sums might overflow float64.
        const double largest = norm(max, x, n), scale = largest > 0x1p490 ? 0x1p-600 : 1.0,
                     least = rows == sparse ? APPROXSVM_LEAST_NORM_OF_SPARSE_ROWS : APPROXSVM_LEAST_NORM * scale;
        for (std::size_t j = 0; scale != 1.0 && j < n; ++j) {
            x[j] *= scale;
            error[j] *= scale;
        }
        const double length = norm(which, x, n), came = norm(which, error, n),
                     lost = rows == sparse && which == l2 ? n_numbers * (source.in_float32 ? 0x1p-74 : 0x1p-536) : 0.0;
        const approxsvm_ball ball = approxsvm_norm(length, came, which == max ? 0 : static_cast<int>(n), u, lost);
        const double nearest = length - ball.radius, farthest = length + ball.radius,
                     above_any = source.in_float32 && !divides_any ? least_norm32 * scale : least;
        const bool is_above = nearest >= above_any,
                   is_below = divides_any ? largest == 0.0 && norm(max, error, n) == 0.0 : farthest < least;
        const double sum = which == l2 ? farthest * farthest : farthest,  // a sum scaled by `scale` or its square
            most = source.in_float32 ? largest32
                   : which == l2     ? largest_sum * scale * scale
                                     : largest_sum * scale;
        overflows = came < HUGE_VAL && which != max && !(sum <= most);
        if (length >= least) {
            for (std::size_t j = 0; j < n; ++j) {
                x[j] /= length;
                error[j] = approxsvm_normalized_radius(error[j], x[j], ball, u, tiny);
            }
        }
        for (std::size_t j = 0; !(is_above || is_below) && j < n; ++j) error[j] = HUGE_VAL;
        return length / scale;
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

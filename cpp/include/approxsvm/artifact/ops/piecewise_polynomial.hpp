// Each output is a piecewise polynomial of one input, as in splines and quantile interpolation.
#ifndef APPROXSVM_ARTIFACT_OPS_PIECEWISE_POLYNOMIAL_HPP
#define APPROXSVM_ARTIFACT_OPS_PIECEWISE_POLYNOMIAL_HPP

#include "op.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

#include "../../program/ops/piecewise_polynomial.h"

struct PiecewisePolynomialOp : AnyOp {
    static constexpr OpKind kind = OpKind::piecewise_polynomial;
    static constexpr bool in_place = false;
    static bool hides_infinity(const MapOp&) { return true; }

    // The number `parts` is 8 times the total number of edges, plus the common degree of all pieces.
    static constexpr std::uint32_t most_parts = ~std::uint32_t{0};

    static void find_parts(MapOp& op, OpArrays& arrays) {
        const ClaimedSize m = op.n_outputs, n_edges = op.parts_number / 8, degree = op.parts_number % 8;
        op.integers[0] = arrays.integers(m);                         // index of each output's input
        op.integers[1] = arrays.integers(m);                         // end of each output's edges
        op.parts[0] = arrays.numbers(n_edges);                       // the edges, in ascending order for each output
        op.parts[1] = arrays.numbers(n_edges + m);                   // origin of each piece
        op.parts[2] = arrays.numbers((n_edges + m) * (degree + 1));  // coefficients of each piece, by degree
    }
    APPROXSVM_COLD static bool is_valid(Check& check, const MapOp& op) {
        const std::size_t m = op.n_outputs, n_edges = op.parts_number / 8, degree = op.parts_number % 8;
        return edges_are_valid(check, op, n_edges) && check.finite(field::op_piece_origin, op.parts[1], n_edges + m) &&
               check.finite(field::op_piece, op.parts[2], (n_edges + m) * (degree + 1));
    }

    static std::size_t follow_nan(const MapOp& op, std::size_t j) {
        std::size_t found = nan_refused;
        for (std::size_t k = 0; k < op.n_outputs; ++k) {
            if (op.integers[0][k] != j) continue;
            if (found != nan_refused) return nan_refused;
            found = k;
        }
        return found;
    }
    static std::size_t origin(const MapOp& op, std::size_t k) { return op.integers[0][k]; }

    static void run(const MapOp& op, const double*, const RowsOnTheWay& on) {
        const std::size_t degree = op.parts_number % 8;
        for (std::size_t r = 0; r < on.n_rows; ++r) {
            const std::size_t at = r * on.stride;
            std::size_t begin = 0;
            for (std::size_t k = 0; k < op.n_outputs; begin = op.integers[1][k], ++k) {
                const std::size_t j = op.integers[0][k], first = begin + k;
                const approxsvm_piecewise_polynomial pieces{
                    op.parts[0] + begin, op.parts[1] + first, op.parts[2] + first * (degree + 1),
                    static_cast<int>(op.integers[1][k] - begin), static_cast<int>(degree)};
                const approxsvm_ball x{on.x[at + j], on.has_errors ? on.error[at + j] : 0.0};
                approxsvm_ball y =
                    approxsvm_piecewise(&pieces, on.source.in_float32 ? approxsvm_ball{x.value, 0.0} : x, on.is_source);
                if (on.source.in_float32) y.radius += moved_in_float32(pieces, x, y.value, on.has_normal);
                if (on.source.counts_float64) y.radius += of_source(pieces, x.value);
                on.y[at + k] = y.value;
                on.y_error[at + k] = y.radius * up;
            }
        }
    }

  private:
    static constexpr double up = 1.0 + 0x1p-30;

    // Returns a bound on the source's rounding error: the source sums values between 0 and 1 by a different algorithm.
    static double of_source(const approxsvm_piecewise_polynomial& pieces, double x) {
        const double each = 8.0 * (pieces.degree + 1.0) * unit64;
        const int i = approxsvm_piece(x, pieces.edges, pieces.n_edges);
        return approxsvm_polynomial_at(&pieces, i, x).absolute_sum * each + each;
    }

    // Returns the maximum distance between y and the result of a float32 source. The source evaluates pieces in
    // float64, but compares values with the pieces' endpoints, extrapolates, and adds 1e-7 (`has_normal`) in float32. A
    // value without a radius equals the source's.
    static double moved_in_float32(const approxsvm_piecewise_polynomial& pieces, approxsvm_ball x, double y,
                                   bool has_normal) {
        const int i = approxsvm_piece(x.value, pieces.edges, pieces.n_edges), n_edges = pieces.n_edges;
        const double slack = x.radius + 3.0 * unit32 * (std::fabs(x.value) + std::fabs(pieces.origins[i]) + 2e-7);
        if (x.radius != 0.0) return approxsvm_polynomial_moved(&pieces, {x.value, slack}, y, 0);
        int first = i, last = i;
        const int of_ends[] = {0, 1, n_edges - 2, n_edges - 1};
        for (const int k : of_ends) {
            if (k < 0 || k >= n_edges || !(std::fabs(x.value - pieces.edges[k]) <= slack)) continue;
            const bool is_threshold = has_normal && (k == 0 || k == n_edges - 1);
            if (!is_threshold &&
                (is_float32(pieces.edges[k]) || is_float32(std::nextafter(pieces.edges[k], -HUGE_VAL))))
                continue;
            first = k < first ? k : first;
            last = k + 1 > last ? k + 1 : last;
        }
        if (first == last && i > 0 && i < n_edges) return 0.0;
        return approxsvm_polynomials_moved(&pieces, first, last, {x.value, slack}, y) + unit32 * std::fabs(y);
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

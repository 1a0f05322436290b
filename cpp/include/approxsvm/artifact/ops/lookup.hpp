// Each output is a step function of one input, as in thresholds, bins, categories and the replacement of missing
// values.
#ifndef APPROXSVM_ARTIFACT_OPS_LOOKUP_HPP
#define APPROXSVM_ARTIFACT_OPS_LOOKUP_HPP

#include "op.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

#include "../../program/ops/lookup.h"

struct LookupOp : AnyOp {
    static constexpr OpKind kind = OpKind::lookup;
    static constexpr bool in_place = false, names_column = true, as_source = true;
    static bool hides_infinity(const MapOp&) { return true; }

    // The number `parts` is the total number of edges for all outputs.
    static constexpr std::uint32_t most_parts = ~std::uint32_t{0};

    static void find_parts(MapOp& op, OpArrays& arrays) {
        const ClaimedSize m = op.n_outputs, n_edges = op.parts_number;
        op.integers[0] = arrays.integers(m);        // index of each output's input
        op.integers[1] = arrays.integers(m);        // end of each output's edges
        op.parts[0] = arrays.numbers(n_edges);      // the edges, in ascending order for each output
        op.parts[1] = arrays.numbers(n_edges + m);  // values below the first edge, between edges, from the last on
        op.parts[2] = arrays.numbers(m);            // the replacements of NaN
    }
    APPROXSVM_COLD static bool is_valid(Check& check, const MapOp& op) {
        return edges_are_valid(check, op, op.parts_number) &&
               numbers_are_valid(check, field::op_value, op.parts[1], op.parts_number + op.n_outputs) &&
               numbers_are_valid(check, field::op_nan, op.parts[2], op.n_outputs);
    }

    static std::size_t follow_nan(const MapOp& op, std::size_t j) {
        std::size_t found = nan_refused;
        for (std::size_t k = 0; k < op.n_outputs; ++k) {
            if (op.integers[0][k] != j) continue;
            const double number = op.parts[2][k];
            const bool passes = number > largest_double, passed = found < nan_replaced;
            if (number != number || (passes && passed)) return nan_refused;
            found = passes ? k : passed ? found : nan_replaced;
        }
        return found;
    }
    static std::size_t origin(const MapOp& op, std::size_t k) { return op.integers[0][k]; }

    static void run(const MapOp& op, const double*, const RowsOnTheWay& on) {
        for (std::size_t r = 0; r < on.n_rows; ++r) {
            const std::size_t at = r * on.stride;
            std::size_t begin = 0;
            for (std::size_t k = 0; k < op.n_outputs; begin = op.integers[1][k], ++k) {
                const std::size_t j = op.integers[0][k];
                const approxsvm_lookup lookup{op.parts[0] + begin, op.parts[1] + begin + k,
                                              static_cast<int>(op.integers[1][k] - begin), op.parts[2][k]};
                const approxsvm_ball x{on.x[at + j], on.has_errors ? on.error[at + j] : 0.0};
                const double found = approxsvm_lookup_find(&lookup, x.value);
                if (approxsvm_lookup_refuses(found)) on.refuse(r, kind, x.value, static_cast<double>(j));
                const approxsvm_ball y = approxsvm_lookup_ball(&lookup, x, found, on.is_source || on.source.in_float32);
                on.y[at + k] = y.value;
                on.y_error[at + k] = on.source.in_float32 ? moved_in_float32(lookup, x, y.value) : y.radius;
            }
        }
    }

  private:
    // Two values are special: infinity means that the output is the input itself, and NaN that the row is rejected.
    static bool numbers_are_valid(Check& check, field::Id name, const double* numbers, std::size_t n) {
        for (std::size_t k = 0; k < n; ++k) {
            const bool is_number = numbers[k] == numbers[k] && numbers[k] != HUGE_VAL;
            if (is_number && !check(name, numbers[k], from_to(-most_parameter, most_parameter), k)) return false;
        }
        return check.status() == Status::ok;
    }

    // The maximum distance between y and the result of a float32 source. The source may round an edge, or its own
    // threshold, which is the next double below the edge. If the radius is 0, x equals the source's number, so only an
    // edge that rounding moves to x can matter.
    static double moved_in_float32(const approxsvm_lookup& lookup, approxsvm_ball x, double y) {
        const double slack = unit32 * std::fabs(x.value) * 1.01 + tiny32;
        if (!(x.radius <= largest_double)) return HUGE_VAL;  // the source may reject the row
        double reach = slack;
        if (x.radius > 0.0) {
            reach = (x.radius + slack) * 1.01;
        } else {
            const int i = approxsvm_piece(x.value, lookup.edges, lookup.n_edges);
            const bool is_open = (i > 0 && is_open_to(x.value, lookup.edges[i - 1])) ||
                                 (i < lookup.n_edges && is_open_to(x.value, lookup.edges[i]));
            if (!is_open) return 0.0;
        }
        return approxsvm_lookup_moved(&lookup, {x.value, reach}, reach, y);
    }
    static bool is_open_to(double x, double edge) {
        const double below = std::nextafter(edge, -HUGE_VAL);
        if (is_float32(edge) || is_float32(below)) return false;
        return std::fabs(x - edge) <= unit32 * std::fabs(x) * 1.01 + tiny32;
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

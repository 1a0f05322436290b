// Each output is a piecewise polynomial of one input: splines, interpolated quantiles.
#pragma once

#include "stage.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

struct PiecesStage : AnyStage {
    static constexpr StageKind kind = StageKind::pieces;
    static constexpr bool in_place = false;
    static bool hides_infinity(const MapStage&) { return true; }

    // `parts` is 8 times the number of edges of all outputs, and the degree of all pieces.
    APPROXSVM_COLD static bool header_is_valid(Check& check, const StageHeader& header, std::size_t,
                                               std::uint64_t index) {
        return check(field::stage_n_outputs, header.n_outputs, from_to(0, max_n_features), index);
    }
    static ClaimedSize n_words(const StageHeader& header, ClaimedSize) {
        const ClaimedSize m = header.n_outputs, n_edges = header.parts / 8, degree = header.parts % 8;
        return 2 * words_of_integers(m) + n_edges + (n_edges + m) * (degree + 2);
    }
    static void find_parts(MapStage& stage, StageArrays& arrays) {
        const std::size_t m = stage.n_outputs, n_edges = stage.parts_number / 8, degree = stage.parts_number % 8;
        stage.integers[0] = arrays.integers(m);                         // the input of each output
        stage.integers[1] = arrays.integers(m);                         // where its edges end
        stage.parts[0] = arrays.numbers(n_edges);                       // ascending, output after output
        stage.parts[1] = arrays.numbers(n_edges + m);                   // what each piece subtracts
        stage.parts[2] = arrays.numbers((n_edges + m) * (degree + 1));  // its coefficients, of ascending powers
    }
    APPROXSVM_COLD static bool is_valid(Check& check, const MapStage& stage) {
        const std::size_t m = stage.n_outputs, n_edges = stage.parts_number / 8, degree = stage.parts_number % 8;
        const std::uint32_t *source = stage.integers[0], *ends = stage.integers[1];
        std::uint32_t begin = 0;
        for (std::size_t k = 0; k < m; begin = ends[k], ++k) {
            if (!check(field::stage_source, std::size_t{source[k]} + 1, from_to(1, stage.n_inputs), k) ||
                !check(field::stage_end, std::size_t{ends[k]}, from_to(std::size_t{begin}, n_edges), k))
                return false;
            for (std::size_t i = begin + std::size_t{1}; i < ends[k]; ++i) {
                const Expected above{Rule::above, stored(stage.parts[0][i - 1]), {}};
                if (!check(field::stage_edge, stage.parts[0][i], above, i)) return false;
            }
        }
        check(field::stage_parts, n_edges, equal_to(std::size_t{begin}));
        for (std::size_t k = m; m % 2 != 0 && k == m; ++k) {
            check(field::stage_source, source[k], equal_to(0), k);
            check(field::stage_end, ends[k], equal_to(0), k);
        }
        check.finite(field::stage_edge, stage.parts[0], n_edges);
        check.finite(field::stage_piece_origin, stage.parts[1], n_edges + m);
        return check.finite(field::stage_piece, stage.parts[2], (n_edges + m) * (degree + 1));
    }

    static std::size_t follow_nan(const MapStage& stage, std::size_t j) {
        std::size_t found = nan_refused;
        for (std::size_t k = 0; k < stage.n_outputs; ++k) {
            if (stage.integers[0][k] != j) continue;
            if (found != nan_refused) return nan_refused;
            found = k;
        }
        return found;
    }
    static std::size_t origin(const MapStage& stage, std::size_t k) { return stage.integers[0][k]; }

    static void run(const MapStage& stage, const double*, const RowsOnTheWay& on) {
        const std::size_t degree = stage.parts_number % 8;
        for (std::size_t r = 0; r < on.n_rows; ++r) {
            const std::size_t at = r * on.stride;
            std::size_t begin = 0;
            for (std::size_t k = 0; k < stage.n_outputs; begin = stage.integers[1][k], ++k) {
                const std::size_t j = stage.integers[0][k], first = begin + k;
                const Pieces pieces{stage.parts[0] + begin, stage.parts[1] + first,
                                    stage.parts[2] + first * (degree + 1), stage.integers[1][k] - begin, degree};
                const double x = on.x[at + j], came = on.has_errors ? on.error[at + j] : 0.0;
                const Value found = pieces.at(pieces.piece(x), x);
                const double carried = on.source.in_float32 ? pieces.moved_in_float32(x, came, found.y, on.has_normal)
                                       : came > 0.0         ? pieces.moved(x, came, found.y, on.is_source)
                                                            : came;
                on.y[at + k] = found.y;
                on.y_error[at + k] = (found.error + carried) * up + 0x1p-1070;
            }
        }
    }

  private:
    static constexpr double up = 1.0 + 0x1p-30;

    struct Value {
        double y, error;
    };

    struct Pieces {
        const double *edges, *origins, *coefs;
        std::size_t n_edges, degree;

        std::size_t piece(double x) const { return n_up_to(x, edges, n_edges); }

        // By Horner's rule in t = x - origin: coefficients, t and operations are each rounded once.
        Value at(std::size_t i, double x) const {
            const double *coef = coefs + i * (degree + 1), t = x - origins[i];
            double y = coef[degree], moduli = std::fabs(y);
            for (std::size_t k = degree; k-- > 0;) {
                y = y * t + coef[k];
                moduli = moduli * std::fabs(t) + std::fabs(coef[k]);
            }
            return {y, (3.0 * static_cast<double>(degree) + 2.0) * unit64 * moduli * up};
        }

        // How far the function may be from y within an error of x, or the polynomial of x's own piece where the
        // source's own number says which that is: in each piece that is reached, the point z next to x is within 2
        // errors of all others, and the function moves by 2 errors times its steepest slope at most.
        double moved(double x, double error, double y, bool within) const {
            return moved_among(piece(within ? x : std::nextafter(x - error, -HUGE_VAL)),
                               piece(within ? x : std::nextafter(x + error, HUGE_VAL)), x, error, y);
        }

        // The same of a source that has float32. It evaluates pieces in float64, but may compare with their ends, go on
        // beyond them, and add 1e-7 (`has_normal`), in float32. A number without an error is the source's own.
        double moved_in_float32(double x, double came, double y, bool has_normal) const {
            const std::size_t i = piece(x);
            const double slack = came + 3.0 * unit32 * (std::fabs(x) + std::fabs(origins[i]) + 2e-7);
            if (came != 0.0) return moved(x, slack, y, false);
            std::size_t first = i, last = i;
            const std::size_t of_ends[] = {0, 1, n_edges - 2, n_edges - 1};
            for (const std::size_t k : of_ends) {
                if (k >= n_edges || !(std::fabs(x - edges[k]) <= slack)) continue;
                const bool is_threshold = has_normal && (k == 0 || k == n_edges - 1);
                if (!is_threshold && (is_float32(edges[k]) || is_float32(std::nextafter(edges[k], -HUGE_VAL))))
                    continue;
                first = k < first ? k : first;
                last = k + 1 > last ? k + 1 : last;
            }
            if (first == last && i > 0 && i < n_edges) return 0.0;
            return moved_among(first, last, x, slack, y) + unit32 * std::fabs(y);
        }

        double moved_among(std::size_t first, std::size_t last, double x, double error, double y) const {
            constexpr std::size_t most_reached = 64;
            if (!(error <= largest_double) || last - first >= most_reached) return HUGE_VAL;
            const double reach = 2.0 * error * up;
            double most = 0.0;
            for (std::size_t i = first; i <= last; ++i) {
                double z = i > 0 && x < edges[i - 1] ? edges[i - 1] : x;
                z = i < n_edges && z > edges[i] ? edges[i] : z;
                const Value value = at(i, z);
                const double* const coef = coefs + i * (degree + 1);
                const double t = std::fabs(z - origins[i]) * up + reach;
                double slope = 0.0;
                for (std::size_t k = degree; k > 0; --k)
                    slope = slope * t + static_cast<double>(k) * std::fabs(coef[k]);
                const double off = std::fabs(value.y - y) + value.error + reach * slope * up;
                if (!(off <= most)) most = off == off ? off : HUGE_VAL;
            }
            return most * up;
        }
    };
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

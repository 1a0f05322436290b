// Groups of support vectors with few values, and memory for these and for a row.
#ifndef APPROXSVM_PREDICT_FEW_VALUES_SEGMENTS_HPP
#define APPROXSVM_PREDICT_FEW_VALUES_SEGMENTS_HPP

#include "../../artifact/support_vectors.hpp"
#include "../../expansion/form.hpp"
#include "../../outputs/votes.hpp"
#include "sums.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

constexpr std::size_t most_few_features = 4096, most_few_labels = 16;  // with more, a winner's pairs are cheaper

// Returns whether the support vectors' dictionary is so small that features may have few values.
inline bool has_small_dictionary(const ModelView& view) {
    return view.packed.n_dictionary > 0 && view.packed.n_dictionary <= 256 && view.n_features <= most_few_features &&
           view.n_labels <= most_few_labels;
}

// The segments into which support vectors are divided (sums.hpp).
class FewSegments {
  public:
    explicit FewSegments(const ModelView& view)
        : view_(view), has_classes_(view.n_decisions > 1), n_(has_classes_ ? view.n_labels : 2) {}

    std::size_t n() const { return n_; }
    std::size_t n_functions() const { return has_classes_ ? n_ - 1 : 1; }
    double coef(std::size_t i, std::size_t f) const { return view_.dual_coef[f * view_.n_sv + i]; }

    // Number of support vectors in a segment.
    std::size_t count(std::size_t segment) const {
        if (has_classes_) return view_.class_counts[segment];
        std::size_t n_negative = 0;
        for (std::size_t i = 0; i < view_.n_sv; ++i) n_negative += view_.dual_coef[i] < 0.0;
        return segment == 1 ? n_negative : view_.n_sv - n_negative;
    }
    std::size_t n_lanes() const {
        std::size_t total = 0;
        for (std::size_t s = 0; s < n_; ++s) total += padded(count(s));
        return total;
    }
    void fill_starts(std::size_t* starts) const {
        starts[0] = 0;
        for (std::size_t s = 0; s < n_; ++s) starts[s + 1] = starts[s] + padded(count(s));
    }

    // Calls visit(i, segment, lane) for each support vector in order.
    template <class Visit>
    void for_each(const std::size_t* starts, const Visit& visit) const {
        std::size_t next[2] = {starts[0], starts[1]}, segment = 0, lane = 0, end = has_classes_ ? count(0) : 0;
        for (std::size_t i = 0; i < view_.n_sv; ++i) {
            if (!has_classes_) {
                segment = view_.dual_coef[i] < 0.0;
                visit(i, segment, next[segment]++);
                continue;
            }
            while (i == end) {
                end += count(++segment);
                lane = starts[segment];
            }
            visit(i, segment, lane++);
        }
    }

    // Returns whether, in every segment, all coefficients of each function have the same sign.
    bool have_signs() const {
        if (!has_classes_) return true;
        std::size_t i = 0;
        for (std::size_t s = 0; s < n_; ++s) {
            const std::size_t end = i + count(s);
            for (std::size_t f = 0; f < n_functions(); ++f) {
                bool positive = false, negative = false;
                for (std::size_t k = i; k < end; ++k) {
                    positive |= coef(k, f) > 0.0;
                    negative |= coef(k, f) < 0.0;
                }
                if (positive && negative) return false;
            }
            i = end;
        }
        return true;
    }
    double largest_modulus() const {
        double largest = 0.0;
        for (std::size_t k = 0; k < view_.n_sv * n_functions(); ++k) {
            largest = std::fmax(largest, std::fabs(view_.dual_coef[k]));
        }
        return largest;
    }

  private:
    static std::size_t padded(std::size_t n) { return (n + few_panel - 1) / few_panel * few_panel; }

    const ModelView& view_;
    const bool has_classes_;
    const std::size_t n_;
};

// Returns an upper bound on a panel's size in bytes: one byte per feature and vector before grouping.
inline std::size_t panel_bytes_before(std::size_t n_features) {
    const std::size_t of_planes = sizeof(std::uint32_t) * ((n_features + 31) / 32);
    return few_panel * (n_features > of_planes ? n_features : of_planes);
}

struct FewValuesMemory {
    double *lowest, *range, *coef64, *kernels64;
    std::uint8_t *codes_of_zeros, (*squares)[16], (*joint)[16];
    std::size_t* starts;
    unsigned char* vectors;
    float *coef, *digits;
    std::uint32_t *first_features, *run_ends, *first_squares;

    FewValuesMemory(const ModelView& view, bool is_candidate, Arena& arena) {
        const FewSegments segments(view);
        const std::size_t d = is_candidate ? view.n_features : 0, n_lanes = is_candidate ? segments.n_lanes() : 0;
        lowest = arena.take<double>(is_candidate ? d + lanes64 : 0);  // space for whole registers
        range = arena.take<double>(is_candidate ? d + lanes64 : 0);
        codes_of_zeros = arena.take<std::uint8_t>(d);
        squares = arena.take<std::uint8_t[16]>(d, most_steps + 1);
        joint = arena.take<std::uint8_t[16]>(d);
        first_features = arena.take<std::uint32_t>(is_candidate ? d + 1 : 0);
        run_ends = arena.take<std::uint32_t>(d);
        first_squares = arena.take<std::uint32_t>(d);
        starts = arena.take<std::size_t>(is_candidate ? segments.n() + 1 : 0);
        vectors = arena.take<unsigned char>(n_lanes / few_panel, is_candidate ? panel_bytes_before(d) : 0);
        coef = arena.take<float>(n_lanes, is_candidate ? segments.n_functions() : 0);
        coef64 = arena.take<double>(n_lanes, is_candidate ? segments.n_functions() : 0);
        digits = arena.take<float>(is_candidate ? most_digits * digit_values : 0);
        kernels64 = arena.take<double>(is_candidate ? most_sq_steps + 1 : 0);
    }
};

// Memory for one row with features on the grid.
struct FewRoom {
    double *values = nullptr, *sums = nullptr;  // values, (n_features,); segment sums, (n_segments, n_functions)
    std::int32_t* columns = nullptr;
    std::uint8_t* codes = nullptr;
    FewRow row{};
    float* kernels = nullptr;  // kernel values of all lanes, for several functions

    FewRoom() = default;
    FewRoom(const FewValues& few, const ModelView& model, Arena& arena) {
        const FewSegments segments(model);
        const std::size_t d = few.is_usable ? model.n_features : 0;
        values = arena.take<double>(few.is_usable ? d + lanes64 : 0);
        sums = arena.take<double>(few.is_usable ? segments.n() : 0, segments.n_functions());
        columns = arena.take<std::int32_t>(d);
        codes = arena.take<std::uint8_t>(few.is_usable ? d + 7 : 0);
        row.planes = arena.take<std::uint32_t>(few.is_usable ? (d + 31) / 32 : 0);
        row.tables = arena.take<std::uint8_t[16]>(d);
        kernels = arena.take<float>(few.is_usable && has_classes(model) ? segments.n_lanes() : 0);
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

// Decides which models exact/few_values.hpp can handle, and lays out their support vectors. In such a model, all values
// are origin + k step, computed like this in float64 and compared exactly; each feature has few values of k, and
// squared distances are small. This is found from the dictionary of the packed support vectors, without arithmetic on
// all of them. Without a grid, each feature may take at most 16 values of any size.
#ifndef APPROXSVM_PREDICT_FEW_VALUES_LAYOUT_HPP
#define APPROXSVM_PREDICT_FEW_VALUES_LAYOUT_HPP

#include "../artifact/support_vectors.hpp"
#include "../bounds/certificate.hpp"
#include "../exact/few_values.hpp"
#include "../outputs/votes.hpp"
#include "../simd/compensated.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

constexpr std::size_t most_few_features = 4096, most_few_labels = 16;  // with more classes, a winner's pairs take less

// Whether the support vectors have a dictionary that is small enough for features to have few values.
inline bool has_dictionary(const ModelView& view, bool has_factors = registers_hold_factors) {
    const std::size_t of_features = has_factors ? 16 * view.n_features : 0;
    const std::size_t most = of_features > 256 ? of_features : 256;
    return view.packed.n_dictionary > 0 && view.packed.n_dictionary <= most && view.n_features <= most_few_features &&
           view.n_labels <= most_few_labels;
}

// How support vectors are grouped, see few_values.hpp.
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

    // Calls visit(i, segment, lane) for each support vector in turn.
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

    // Whether each function's coefficients have one sign within every segment.
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

// Returns an upper bound of the bytes of a panel's vectors: one per feature and vector before grouping.
inline std::size_t panel_bytes_before(std::size_t n_features) {
    const std::size_t of_planes = sizeof(std::uint32_t) * ((n_features + 31) / 32);
    return few_panel * (n_features > of_planes ? n_features : of_planes);
}

struct FewValuesMemory {
    double *lowest, *range, *coef64, *kernels64, (*joint_values)[16];
    std::uint8_t *codes_of_zeros, (*squares)[16], (*joint)[16];
    std::size_t* starts;
    unsigned char* vectors;
    float *coef, *digits;
    std::uint32_t *first_features, *run_ends, *first_squares;

    FewValuesMemory(const ModelView& view, bool is_candidate, Arena& arena) {
        const FewSegments segments(view);
        const std::size_t d = is_candidate ? view.n_features : 0, n_lanes = is_candidate ? segments.n_lanes() : 0;
        lowest = arena.take<double>(is_candidate ? d + lanes64 : 0);  // whole registers
        range = arena.take<double>(is_candidate ? d + lanes64 : 0);
        codes_of_zeros = arena.take<std::uint8_t>(d);
        squares = arena.take<std::uint8_t[16]>(d, most_steps + 1);
        joint = arena.take<std::uint8_t[16]>(d);
        joint_values = arena.take<double[16]>(d);
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

// --- the grid

// Returns the value k steps from the origin. A compiler may fuse this. The fused result is the number closest to the
// exact one, so grid_gap holds for both.
APPROXSVM_INLINE double on_grid(double origin, double step, double k) {
    return origin + k * step;
}
inline double grid_gap(double origin, double step, double k) {
    double lost;
    const double product = rounded_product(k, step);
    two_sum(origin, product, lost);
    return std::fabs(std::fma(k, step, -product)) + std::fabs(lost);
}
// Returns the k closest to a value, below 2^31; NaN for NaN.
APPROXSVM_INLINE double steps_to(double value, double origin, double inverse_step) {
    constexpr double shift = 0x1.8p52;
    return ((value - origin) * inverse_step + shift) - shift;
}

// Returns the largest step that divides both distances to within `tiny`.
inline double common_step(double a, double b, double tiny) {
    while (b > tiny) {
        double rest = std::fmod(a, b);
        if (b - rest <= tiny) rest = 0.0;
        a = b;
        b = rest;
    }
    return a;
}

struct Grid {
    double origin, step;
};
// Returns the grid of the values that for_values(visit) visits, up to 1e-9 of their span. The step is 0 if there is no
// grid of at most 255 steps.
template <class ForValues>
APPROXSVM_COLD inline Grid common_grid(const ForValues& for_values) {
    double low = largest_double, high = -largest_double;
    for_values([&](double value) {
        low = std::fmin(low, value);
        high = std::fmax(high, value);
    });
    // Zero is the origin where it can be: then no place on the grid is a rounded sum.
    double origin = low <= 0.0 && high >= 0.0 ? 0.0 : low, step = 0.0;
    const double span = high - low, tiny = 1e-9 * span;
    if (!(span > 0.0 && span <= 0x1p500)) return {origin, 0.0};
    for (int attempt = 0; attempt < 2; ++attempt) {
        step = 0.0;
        for_values([&](double value) { step = common_step(step, std::fabs(value - origin), tiny); });
        if (span <= 255.0 * step) break;
        origin = low;
    }
    return {origin, step > 0x1p-500 && span <= 255.0 * step ? step : 0.0};
}

class FewValuesWriter {
  public:
    FewValuesWriter(const ModelView& view, const FewValuesMemory& memory)
        : view_(view), memory_(memory), segments_(view), d_(view.n_features) {}

    // Returns an unusable layout if the support vectors do not qualify; `slope` is kernel_slope(gamma).
    APPROXSVM_COLD FewValues write(double slope) {
        FewValues few{};
        few.n_features = d_;
        few.n_segments = segments_.n();
        few.n_functions = segments_.n_functions();
        const double largest = segments_.largest_modulus();
        if (!(largest <= largest_double) || !segments_.have_signs()) return few;
        segments_.fill_starts(memory_.starts);
        few.starts = memory_.starts;
        if (!has_small_dictionary() || !find_grid(few) || !find_ranges(few)) return write_factors(few, largest);
        fill_codes([&](std::size_t j, double value) { return steps(few, value) - few.lowest[j]; });
        few.in_planes = counts_bits() && most_range_ <= 1.0;
        few.vectors = memory_.vectors;
        if (few.in_planes) {
            fill_planes(few);
        } else {
            fill_groups(few);
            close_gaps(few.n_parts);
            fill_squares(few);
        }
        fill_coefficients(few, largest);
        fill_kernels(few);
        few.work = work_of(few);
        few.grid_error = slope * 2.02 * gap_ * std::sqrt(static_cast<double>(d_));
        few.is_usable = few.grid_error <= 0x1p-20 && few.work < work_of_engine();
        return few;
    }

  private:
    APPROXSVM_COLD bool has_small_dictionary() const { return view_.packed.n_dictionary <= 256; }

    // Completes the layout of a model without a grid.
    APPROXSVM_COLD FewValues write_factors(FewValues& few, double largest) const {
        const std::size_t n_first = view_.n_sv < few_panel ? view_.n_sv : few_panel;
        if (!registers_hold_factors || view_.n_sv == 0 || !find_values(n_first)) return few;
        few.has_factors = true;
        // Fewer support vectors never make more groups: if the groups of the first few vectors already take too long,
        // those of all do.
        few.n_groups = groups_of_first(n_first);
        if (work_of(few) >= work_of_engine() || !find_values(view_.n_sv)) return few;
        fill_codes([&](std::size_t j, double value) { return static_cast<double>(code_of(j, value)); });
        few.vectors = memory_.vectors;
        fill_groups(few);
        fill_words(few);
        for (std::size_t j = 0; j < d_; ++j) {
            double values[16];
            for (std::size_t c = 0; c < 16; ++c) values[c] = memory_.joint_values[j][memory_.joint[j][c]];
            std::memcpy(memory_.joint_values[j], values, sizeof values);
        }
        few.gamma = view_.gamma;
        few.joint_values = memory_.joint_values;
        fill_coefficients(few, largest);
        few.work = work_of(few);
        few.is_usable = few.work < work_of_engine();
        return few;
    }
    std::size_t code_of(std::size_t j, double value) const {
        std::size_t code = 0;
        while (memory_.joint_values[j][code] != value) ++code;
        return code;
    }
    // Groups only the first n support vectors, at most a panel.
    std::size_t groups_of_first(std::size_t n) const {
        for (std::size_t j = 0; j < d_; ++j) {
            const std::size_t code = view_.packed.compressed ? code_of(j, reference_value(view_.packed, j)) : 0;
            std::memset(codes_at(0, j), static_cast<int>(code), few_panel);
            for (std::size_t c = 0; c < 16; ++c) memory_.joint[j][c] = static_cast<std::uint8_t>(c);
        }
        SupportVectorReader reader(view_);
        for (std::size_t i = 0; i < few_panel; ++i) {
            if (i >= n) {  // copies of the first vector
                for (std::size_t j = 0; j < d_; ++j) codes_at(0, j)[i] = codes_at(0, j)[0];
                continue;
            }
            for_stored(reader, i, [&](std::size_t j, double value) {
                codes_at(0, j)[i] = static_cast<unsigned char>(code_of(j, value));
            });
        }
        std::size_t n_groups = 0, first = 0;
        for (std::size_t j = 0; j < d_; ++j) {
            if (n_groups > 0 && joins(first, j, 1)) continue;
            first = j;
            ++n_groups;
        }
        return n_groups;
    }
    APPROXSVM_COLD void fill_words(FewValues& few) const {
        few.n_groups = few.n_parts;
        few.n_parts = (few.n_groups + word_codes - 1) / word_codes;
        for (std::size_t panel = 0; panel < n_panels(); ++panel) {
            for (std::size_t w = 0; w < few.n_parts; ++w) {
                std::uint32_t words[few_panel] = {};
                for (std::size_t g = word_codes * w; g < few.n_groups && g < word_codes * (w + 1); ++g) {
                    const unsigned char* const codes = codes_at(panel, g);
                    for (std::size_t i = 0; i < few_panel; ++i) {
                        words[i] |= std::uint32_t{codes[i]} << 4 * (g - word_codes * w);
                    }
                }
                std::memcpy(codes_at(panel, 4 * w), words, sizeof words);
            }
        }
        close_gaps(4 * few.n_parts);
    }
    // Finds the values of each feature in the first n support vectors; repeats the last one if there are fewer than 16.
    // False if there are more.
    APPROXSVM_COLD bool find_values(std::size_t n) const {
        std::uint8_t* const counts = memory_.codes_of_zeros;
        for (std::size_t j = 0; j < d_; ++j) {
            counts[j] = view_.packed.compressed;
            for (double& value : memory_.joint_values[j]) value = reference_value(view_.packed, j);
        }
        bool are_few = true;
        SupportVectorReader reader(view_);
        for (std::size_t i = 0; are_few && i < n; ++i) {
            for_stored(reader, i, [&](std::size_t j, double value) {
                double* const values = memory_.joint_values[j];
                for (std::size_t c = 0; c < counts[j]; ++c) {
                    if (values[c] == value) return;
                }
                if (counts[j] == joint_values) {
                    are_few = false;
                    return;
                }
                for (std::size_t c = counts[j]++ == 0 ? 0 : counts[j] - 1u; c < joint_values; ++c) values[c] = value;
            });
        }
        return are_few;
    }

    // The work per support vector.
    double work_of(const FewValues& few) const {
        const double n = static_cast<double>(few.n_parts), functions = static_cast<double>(few.n_functions);
        const double rest = bits_work.rest + 1.5 * functions;
        if (!few.has_factors) return rest + n * (few.in_planes ? bits_work.plane : bits_work.part);
        const double n_groups = static_cast<double>(few.n_groups),
                     of_row = 16.0 * (2.0 * static_cast<double>(d_) + n_groups);
        return rest + bits_work.factor * n_groups + of_row / static_cast<double>(view_.n_sv);
    }
    // Work of the float32 engine: exp, and as many products as there are features (or values, if these are few). With
    // many classes it counts the vectors of one class.
    double work_of_engine() const {
        const std::size_t stored = view_.packed.n_values / (view_.n_sv > 0 ? view_.n_sv : 1);
        const double n_terms = static_cast<double>(view_.packed.compressed && 3 * stored <= d_ ? stored : d_);
        return (n_terms + 36.0) * (segments_.n_functions() > 3 ? 0.5 : 1.0);
    }

    // Calls visit(value) for all dictionary values, including unused ones.
    template <class Visit>
    void for_values(const Visit& visit) const {
        const PackedVectors& packed = view_.packed;
        for (std::uint32_t e = 0; e < packed.n_dictionary; ++e) visit(read_at<double>(packed.dictionary, 8 * e));
        if (packed.compressed && !packed.reference) visit(0.0);
        for (std::size_t j = 0; packed.reference && j < d_; ++j) visit(reference_value(packed, j));
    }

    APPROXSVM_COLD bool find_grid(FewValues& few) {
        const Grid grid = common_grid([&](const auto& visit) { for_values(visit); });
        const double origin = grid.origin, step = grid.step;
        if (!(step > 0.0)) return false;
        few.origin = origin;
        few.step = step;
        few.inverse_step = 1.0 / step;
        bool all = true;
        for_values([&](double value) { all &= on_grid(origin, step, steps(few, value)) == value; });
        return all;
    }
    static double steps(const FewValues& few, double value) { return steps_to(value, few.origin, few.inverse_step); }

    APPROXSVM_COLD bool find_ranges(FewValues& few) {
        double *const low = memory_.lowest, *const high = memory_.range;
        for (std::size_t j = d_; j < d_ + lanes64; ++j) low[j] = high[j] = 0.0;
        SupportVectorReader reader(view_);
        const PackedVectors& packed = view_.packed;
        for (std::size_t j = 0; j < d_; ++j) {
            low[j] = packed.compressed ? steps(few, reference_value(packed, j)) : 1e9;
            high[j] = packed.compressed ? low[j] : -1e9;
        }
        for (std::size_t i = 0; i < view_.n_sv; ++i) {
            for_stored(reader, i, [&](std::size_t j, double value) {
                const double k = steps(few, value);
                low[j] = k < low[j] ? k : low[j];
                high[j] = k > high[j] ? k : high[j];
            });
        }
        const double zero = steps(few, 0.0);
        const bool has_zero = on_grid(few.origin, few.step, zero) == 0.0;
        double total = 0.0;
        few.codes_of_zeros = has_zero ? memory_.codes_of_zeros : nullptr;
        for (std::size_t j = 0; j < d_; ++j) {
            // If all support vectors agree in a feature, a row may be one step off: towards zero, or away from it.
            if (low[j] == high[j]) {
                const bool lower = has_zero && low[j] > zero;
                low[j] -= lower;
                high[j] += !lower;
            }
            gap_ = std::fmax(gap_, largest_gap(few, low[j], high[j]));
            high[j] -= low[j];
            most_range_ = std::fmax(most_range_, high[j]);
            total += high[j] * high[j];
            const double of_zero = zero - low[j];
            if (!(of_zero >= 0.0 && of_zero <= high[j])) {
                few.codes_of_zeros = nullptr;
            } else {
                memory_.codes_of_zeros[j] = static_cast<std::uint8_t>(of_zero);
            }
        }
        few.lowest = low;
        few.range = high;
        few.max_sq_steps = total <= static_cast<double>(most_sq_steps) ? static_cast<std::size_t>(total) : 0;
        return few.max_sq_steps > 0 && most_range_ <= static_cast<double>(most_steps);
    }
    static double largest_gap(const FewValues& few, double low, double high) {
        double largest = 0.0;
        for (double k = low; k <= high && high - low <= static_cast<double>(most_steps); k += 1.0) {
            largest = std::fmax(largest, grid_gap(few.origin, few.step, k));
        }
        return largest;
    }

    // Calls visit(feature, value) for the stored values of the next support vector.
    template <class Visit>
    void for_stored(SupportVectorReader& reader, std::size_t i, const Visit& visit) const {
        if (view_.packed.compressed) return reader.next_stored(visit);
        for (std::size_t j = 0; j < d_; ++j) visit(j, packed_value(view_.packed, i * d_ + j));
    }

    // --- vectors, first with one byte per value: (n_panels, n_features, few_panel) with gaps

    unsigned char* codes_at(std::size_t panel, std::size_t j) const {
        return memory_.vectors + panel * panel_bytes_before(d_) + j * few_panel;
    }
    std::size_t n_panels() const { return memory_.starts[segments_.n()] / few_panel; }

    // code_of(feature, value)
    template <class CodeOf>
    APPROXSVM_COLD void fill_codes(const CodeOf& code_of) const {
        for (std::size_t j = 0; view_.packed.compressed && j < d_; ++j) {
            const int code = static_cast<int>(code_of(j, reference_value(view_.packed, j)));
            for (std::size_t panel = 0; panel < n_panels(); ++panel) std::memset(codes_at(panel, j), code, few_panel);
        }
        SupportVectorReader reader(view_);
        std::size_t first_lane = 0;
        segments_.for_each(memory_.starts, [&](std::size_t i, std::size_t, std::size_t lane) {
            if (i == 0) first_lane = lane;
            for_stored(reader, i, [&](std::size_t j, double value) {
                codes_at(lane / few_panel, j)[lane % few_panel] = static_cast<std::uint8_t>(code_of(j, value));
            });
        });
        // Unused lanes repeat the first support vector: only support vectors may contribute joint values.
        for (std::size_t s = 0; s < segments_.n(); ++s) {
            for (std::size_t lane = memory_.starts[s] + segments_.count(s); lane < memory_.starts[s + 1]; ++lane) {
                for (std::size_t j = 0; j < d_; ++j) {
                    codes_at(lane / few_panel, j)[lane % few_panel] =
                        codes_at(first_lane / few_panel, j)[first_lane % few_panel];
                }
            }
        }
    }

    APPROXSVM_COLD void fill_planes(FewValues& few) const {
        few.n_parts = (d_ + 31) / 32;
        for (std::size_t panel = 0; panel < n_panels(); ++panel) {
            for (std::size_t p = 0; p < few.n_parts; ++p) {
                std::uint32_t bits[few_panel] = {};
                for (std::size_t j = 32 * p; j < d_ && j < 32 * (p + 1); ++j) {
                    const unsigned char* const codes = codes_at(panel, j);
                    for (std::size_t i = 0; i < few_panel; ++i) bits[i] |= std::uint32_t{codes[i]} << j % 32;
                }
                std::memcpy(codes_at(panel, 4 * p), bits, sizeof bits);
            }
        }
        close_gaps(4 * few.n_parts);
    }

    APPROXSVM_COLD void fill_groups(FewValues& few) const {
        std::size_t n_groups = 0, n_runs = 0;
        double of_group = 0.0, of_run = 0.0;
        for (std::size_t j = 0; j < d_; ++j) {
            const double square = few.has_factors ? 0.0 : few.range[j] * few.range[j];
            if (n_groups > 0 && of_group + square <= 255.0 &&
                joins(memory_.first_features[n_groups - 1], j, n_panels())) {
                of_group += square;
                continue;
            }
            if (n_groups > 0) end_group(n_groups, of_group, of_run, n_runs);
            memory_.first_features[n_groups++] = static_cast<std::uint32_t>(j);
            for (std::size_t c = 0; c < 16; ++c) memory_.joint[j][c] = static_cast<std::uint8_t>(c);
            of_group = square;
        }
        end_group(n_groups, of_group, of_run, n_runs);
        memory_.run_ends[n_runs++] = static_cast<std::uint32_t>(n_groups);
        memory_.first_features[n_groups] = static_cast<std::uint32_t>(d_);
        for (std::size_t panel = 0; panel < n_panels(); ++panel) {
            for (std::size_t g = 0; g < n_groups; ++g) {
                std::memmove(codes_at(panel, g), codes_at(panel, memory_.first_features[g]), few_panel);
            }
        }
        few.n_parts = n_groups;
        few.first_features = memory_.first_features;
        few.run_ends = memory_.run_ends;
    }
    // If bytes cannot hold the sum including the last group, the run ends before it.
    void end_group(std::size_t n_groups, double of_group, double& of_run, std::size_t& n_runs) const {
        if (of_run + of_group > 255.0) {
            memory_.run_ends[n_runs++] = static_cast<std::uint32_t>(n_groups - 1);
            of_run = 0.0;
        }
        of_run += of_group;
    }
    // Whether feature j can join the group that begins with `first`, whose bytes then hold joint values; for this many
    // panels.
    bool joins(std::size_t first, std::size_t j, std::size_t n_used) const {
        std::uint8_t code_of[256];
        std::uint16_t found[joint_values];
        std::size_t n = 0;
        std::memset(code_of, 255, sizeof code_of);
        for (std::size_t panel = 0; panel < n_used; ++panel) {
            const unsigned char *const before = codes_at(panel, first), *const more = codes_at(panel, j);
            for (std::size_t i = 0; i < few_panel; ++i) {
                const std::size_t both = before[i] * std::size_t{16} + more[i];
                if (code_of[both] != 255) continue;
                if (n == joint_values) return false;
                found[n] = static_cast<std::uint16_t>(both);
                code_of[both] = static_cast<std::uint8_t>(n++);
            }
        }
        for (std::size_t panel = 0; panel < n_used; ++panel) {
            unsigned char *const before = codes_at(panel, first), *const more = codes_at(panel, j);
            for (std::size_t i = 0; i < few_panel; ++i) before[i] = code_of[before[i] * std::size_t{16} + more[i]];
        }
        for (std::size_t k = first; k < j; ++k) {
            std::uint8_t values[16] = {};
            for (std::size_t c = 0; c < 16; ++c) values[c] = memory_.joint[k][found[c < n ? c : 0] / 16];
            std::memcpy(memory_.joint[k], values, 16);
        }
        for (std::size_t c = 0; c < 16; ++c) memory_.joint[j][c] = static_cast<std::uint8_t>(found[c < n ? c : 0] % 16);
        return true;
    }

    // Panels are contiguous, each this many times few_panel bytes.
    APPROXSVM_COLD void close_gaps(std::size_t n) const {
        for (std::size_t panel = 1; panel < n_panels(); ++panel) {
            std::memmove(memory_.vectors + panel * n * few_panel, codes_at(panel, 0), n * few_panel);
        }
    }

    APPROXSVM_COLD void fill_squares(FewValues& few) const {
        std::uint32_t next = 0;
        for (std::size_t j = 0; j < d_; ++j) {
            memory_.first_squares[j] = next;
            for (int k = 0; k <= static_cast<int>(few.range[j]); ++k, ++next) {
                for (std::size_t c = 0; c < 16; ++c) {
                    const int steps = k - static_cast<int>(memory_.joint[j][c]);
                    memory_.squares[next][c] = static_cast<std::uint8_t>(steps * steps);
                }
            }
        }
        few.first_squares = memory_.first_squares;
        few.squares = memory_.squares;
    }

    APPROXSVM_COLD void fill_coefficients(FewValues& few, double largest) const {
        int exponent = 0;
        std::frexp(largest, &exponent);
        few.coef_scale = std::ldexp(1.0, exponent < -1000 ? -1000 : exponent > 1000 ? 1000 : exponent);
        const std::size_t n_functions = few.n_functions, n_lanes = few.starts[few.n_segments];
        for (std::size_t k = 0; k < n_lanes * n_functions; ++k) {
            memory_.coef[k] = 0.0f;
            memory_.coef64[k] = 0.0;
        }
        segments_.for_each(memory_.starts, [&](std::size_t i, std::size_t segment, std::size_t lane) {
            for (std::size_t f = 0; f < n_functions; ++f) {
                const double a = segments_.coef(i, f);
                const std::size_t at =
                    static_cast<std::size_t>(coef_of(few, memory_.coef64, segment, f, lane) - memory_.coef64);
                memory_.coef[at] = static_cast<float>(a / few.coef_scale);
                memory_.coef64[at] = a;
            }
        });
        few.coef = memory_.coef;
        few.coef64 = memory_.coef64;
    }

    APPROXSVM_COLD void fill_kernels(FewValues& few) const {
        const double g = view_.gamma * (few.step * few.step);  // may be infinite, and zero times infinity is NaN
        const auto kernel = [g](double h) { return h == 0.0 ? 1.0 : std::exp(-(g * h)); };
        few.n_digits = digits_of(few.max_sq_steps);
        double unit = 1.0;
        for (std::size_t k = 0; k < few.n_digits; ++k, unit *= static_cast<double>(digit_values)) {
            for (std::size_t i = 0; i < digit_values; ++i) {
                const double value = kernel(unit * static_cast<double>(i));
                memory_.digits[k * digit_values + i] = value >= 0x1p-126 ? static_cast<float>(value) : 0.0f;
            }
        }
        for (std::size_t h = 0; h <= most_sq_steps; ++h) {
            memory_.kernels64[h] = kernel(static_cast<double>(h));
        }
        few.digits = memory_.digits;
        few.kernels64 = memory_.kernels64;
        const double reach = g * static_cast<double>(few.max_sq_steps);
        few.exponent_reach = reach < 746.0 ? reach : 746.0;
    }

    const ModelView& view_;
    const FewValuesMemory& memory_;
    const FewSegments segments_;
    const std::size_t d_;
    double gap_ = 0.0, most_range_ = 0.0;
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

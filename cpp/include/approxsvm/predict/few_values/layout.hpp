// Determines which models sums.hpp can evaluate, and lays out their support vectors. In these models, each feature
// value is exactly the float64 result of origin + k step; each feature has few values of k, and squared distances are
// small. These properties are determined from the dictionary of the packed support vectors, without arithmetic on all
// support vectors.
#ifndef APPROXSVM_PREDICT_FEW_VALUES_LAYOUT_HPP
#define APPROXSVM_PREDICT_FEW_VALUES_LAYOUT_HPP

#include "../../bounds/certificate.hpp"
#include "../../simd/compensated.hpp"
#include "segments.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// --- the grid

// Returns the value k steps from the origin. A compiler may fuse the operations. Fused operations return the float64
// value closest to the exact result, so grid_gap is valid for fused and separate operations.
APPROXSVM_INLINE double on_grid(double origin, double step, double k) {
    return origin + k * step;
}
inline double grid_gap(double origin, double step, double k) {
    double lost;
    const double product = rounded_product(k, step);
    two_sum(origin, product, lost);
    return std::fabs(std::fma(k, step, -product)) + std::fabs(lost);
}
// Returns the integer k, below 2^31, of the grid point closest to a value; NaN for NaN.
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
// Returns a grid, accurate to 1e-9 of the values' span, that contains all values visited by for_values(visit). The step
// is 0 if there is no such grid with at most 255 steps.
template <class ForValues>
APPROXSVM_COLD inline Grid common_grid(const ForValues& for_values) {
    double low = largest_double, high = -largest_double;
    for_values([&](double value) {
        low = std::fmin(low, value);
        high = std::fmax(high, value);
    });
    // Zero is the origin if possible: then no grid point is a rounded sum.
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

    // Lays out the support vectors; is_usable is false in the result if they do not qualify. The argument `slope` is
    // kernel_slope(gamma).
    APPROXSVM_COLD FewValues write(double slope) {
        FewValues few{};
        few.n_features = d_;
        few.n_segments = segments_.n();
        few.n_functions = segments_.n_functions();
        const double largest = segments_.largest_modulus();
        if (!(largest <= largest_double) || !segments_.have_signs()) return few;
        segments_.fill_starts(memory_.starts);
        few.starts = memory_.starts;
        if (!find_grid(few) || !find_ranges(few)) return few;
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
    // Returns the work per support vector.
    double work_of(const FewValues& few) const {
        const double n = static_cast<double>(few.n_parts), functions = static_cast<double>(few.n_functions);
        return bits_work.rest + 1.5 * functions + n * (few.in_planes ? bits_work.plane : bits_work.part);
    }
    // Returns the work per support vector in the float32 engine: exp, and one product per feature (or per stored value,
    // if there are few). With many classes, only the vectors of one class are counted.
    double work_of_engine() const {
        const std::size_t stored = view_.packed.n_values / (view_.n_sv > 0 ? view_.n_sv : 1);
        const double n_terms = static_cast<double>(view_.packed.compressed && 3 * stored <= d_ ? stored : d_);
        return (n_terms + 36.0) * (segments_.n_functions() > 3 ? 0.5 : 1.0);
    }

    // Calls visit(value) for all values in the dictionary, including unused ones.
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
            // If a feature has the same value in all support vectors, the range for rows is extended by one step:
            // towards zero or, if this is impossible, upwards.
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

    // --- vectors, initially with one byte per value: (n_panels, n_features, few_panel) with gaps

    unsigned char* codes_at(std::size_t panel, std::size_t j) const {
        return memory_.vectors + panel * panel_bytes_before(d_) + j * few_panel;
    }
    std::size_t n_panels() const { return memory_.starts[segments_.n()] / few_panel; }

    // Fills the codes with code_of(feature, value).
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
        // Unused lanes repeat the first support vector, because only combinations of values that occur in support
        // vectors are encoded.
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
            const double square = few.range[j] * few.range[j];
            if (n_groups > 0 && of_group + square <= 255.0 && joins(memory_.first_features[n_groups - 1], j)) {
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
    // Ends a group. If the run's sum including this group does not fit in a byte, the run ends before this group.
    void end_group(std::size_t n_groups, double of_group, double& of_run, std::size_t& n_runs) const {
        if (of_run + of_group > 255.0) {
            memory_.run_ends[n_runs++] = static_cast<std::uint32_t>(n_groups - 1);
            of_run = 0.0;
        }
        of_run += of_group;
    }
    // Adds feature j to the group that begins with feature `first` if possible, and returns whether it was added. Each
    // byte of the group then encodes a combination of its features' values.
    bool joins(std::size_t first, std::size_t j) const {
        std::uint8_t code_of[256];
        std::uint16_t found[joint_values];
        std::size_t n = 0;
        std::memset(code_of, 255, sizeof code_of);
        for (std::size_t panel = 0; panel < n_panels(); ++panel) {
            const unsigned char *const before = codes_at(panel, first), *const more = codes_at(panel, j);
            for (std::size_t i = 0; i < few_panel; ++i) {
                const std::size_t both = before[i] * std::size_t{16} + more[i];
                if (code_of[both] != 255) continue;
                if (n == joint_values) return false;
                found[n] = static_cast<std::uint16_t>(both);
                code_of[both] = static_cast<std::uint8_t>(n++);
            }
        }
        for (std::size_t panel = 0; panel < n_panels(); ++panel) {
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

    // Makes panels contiguous; each panel has n * few_panel bytes.
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

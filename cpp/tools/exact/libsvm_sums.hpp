// Decision values of a LIBSVM model, bit-identical to svm-predict's: each row goes through the operations of LIBSVM's
// Kernel::k_function and svm_predict_values in their order, with one row per lane of a vector.
//
//     f_ij(z) = ((a_1 K_1 + a_2 K_2) + ...) - rho_ij,   K_i = exp(-gamma ((d_1^2 + d_2^2) + ...)),
//
// over the support vectors of class i and then of class j; d_1, d_2, ... are differences in the features present in z
// or x_i, in ascending order. A feature missing from both may also be included, because d = 0 changes nothing; so rows
// with different features can share a block. Support vectors are grouped by class. In one pass, each support vector's
// terms are added to the sums of all its pairs, so every pair is summed in LIBSVM's order.
#pragma once

#include <algorithm>
#include <approxsvm/model_view.hpp>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "exact_model.hpp"
#include "lane_sums.hpp"

namespace approxsvm::tools {

inline const LaneSums& lane_sums_of(std::string_view target) {
#if defined(APPROXSVM_WITH_AVX512)
    if (target == "avx512") return lane_sums_avx512;
#endif
#if defined(APPROXSVM_WITH_AVX2)
    if (target == "avx2") return lane_sums_avx2;
#endif
#if defined(APPROXSVM_WITH_NEON)
    if (target == "neon") return lane_sums_neon;
#endif
    (void)target;
    return lane_sums_baseline;
}

/// Computes a power by repeated squaring, as LIBSVM's powi does.
inline double integer_power(double base, std::int32_t times) {
    double square = base, power = 1.0;
    for (; times > 0; times /= 2, square *= square) {
        if (times % 2 == 1) power *= square;
    }
    return power;
}

class LibsvmSums {
  public:
    LibsvmSums(const ExactModel& model, const LaneSums& lane_sums)
        : model_(model.libsvm()),
          lane_sums_(lane_sums),
          n_coef_(static_cast<std::size_t>(model_.n_coef)),
          n_sums_(model_.rho.size()),
          row_(n_sums_) {
        find_panels(model);
    }

    /// Calls visit(i, values), with `values` of shape (n_decisions,), for each row i in `which`. A row's columns must
    /// be in ascending order.
    template <class Visit>
    void decide(const CsrRows<double, std::int32_t>& rows, const std::vector<std::size_t>& which, const Visit& visit) {
        const std::size_t n_vectors = (which.size() + lane_sums_.width - 1) / lane_sums_.width;
        const std::size_t n_blocks = (n_vectors + vectors_per_block(rows) - 1) / vectors_per_block(rows);
        const std::size_t rows_per_block =
            n_blocks == 0 ? 0 : (n_vectors + n_blocks - 1) / n_blocks * lane_sums_.width;  // nearly equal blocks
        for (std::size_t first = 0; first < which.size(); first += rows_per_block) {
            const std::size_t n = std::min(rows_per_block, which.size() - first);
            load_block(rows, &which[first], n);
            add_up(n);
            for (std::size_t r = 0; r < n; ++r) {
                for (std::size_t p = 0; p < n_sums_; ++p) row_[p] = sums_[p * n_lanes() + r] - model_.rho[p];
                visit(which[first + r], static_cast<const double*>(row_.data()));
            }
        }
    }

  private:
    /// Some support vectors of one class, few enough that their kernel values stay in cache.
    struct Panel {
        std::size_t first, last, place;
    };
    static constexpr std::size_t panel_vectors = 64;
    static constexpr std::size_t max_block_bytes = std::size_t{1} << 20;

    void find_panels(const ExactModel& model) {
        const std::vector<std::uint32_t> classes = model.classes_of_vectors();
        for (std::size_t i = 0; i < classes.size(); ++i) {
            const bool is_new_class = i == 0 || classes[i] != classes[i - 1];
            if (is_new_class) {
                for (std::size_t m = 0; m < n_coef_; ++m) {
                    places_.push_back(static_cast<std::uint32_t>(model.pair_of(classes[i], m)));
                }
            }
            if (is_new_class || i - panels_.back().first == panel_vectors) {
                panels_.push_back({i, i, places_.size() - n_coef_});
            }
            ++panels_.back().last;
        }
    }

    std::size_t n_lanes() const { return n_vectors_ * lane_sums_.width; }

    /// Returns the number of SIMD vectors per block: as many as fit in registers, or fewer if the features or sums of
    /// so many rows exceed the cache.
    std::size_t vectors_per_block(const CsrRows<double, std::int32_t>& rows) const {
        const std::size_t n_features = static_cast<std::size_t>(rows.row_starts[rows.n_rows]);
        const std::size_t per_row = n_features / std::max<std::size_t>(rows.n_rows, 1) + 1;
        std::size_t n = max_lane_vectors;
        const std::size_t widest = static_cast<std::size_t>(model_.max_index + 1) + per_row;
        const auto bytes = [&] {
            const std::size_t n_rows = n * lane_sums_.width;
            return (std::min(per_row * n_rows, widest) + n_sums_) * n_rows * sizeof(double);
        };
        while (n > 1 && bytes() > max_block_bytes) --n;
        return n;
    }

    void load_block(const CsrRows<double, std::int32_t>& rows, const std::size_t* which, std::size_t n) {
        const auto begin = [&](std::size_t r) { return static_cast<std::size_t>(rows.row_starts[which[r]]); };
        const auto end = [&](std::size_t r) { return static_cast<std::size_t>(rows.row_starts[which[r] + 1]); };
        n_vectors_ = (n + lane_sums_.width - 1) / lane_sums_.width;
        columns_.clear();
        for (std::size_t r = 0; r < n; ++r) join_columns(rows.columns + begin(r), rows.columns + end(r));
        values_.assign(columns_.size() * n_lanes(), 0.0);
        for (std::size_t r = 0; r < n; ++r) {
            std::size_t place = 0;
            for (std::size_t k = begin(r); k < end(r); ++k, ++place) {
                while (columns_[place] != rows.columns[k]) ++place;
                values_[place * n_lanes() + r] = rows.values[k];
            }
        }
    }

    /// Adds a row's columns to the block's; most rows add none.
    void join_columns(const std::int32_t* first, const std::int32_t* last) {
        if (std::includes(columns_.begin(), columns_.end(), first, last)) return;
        joined_.clear();
        std::set_union(columns_.begin(), columns_.end(), first, last, std::back_inserter(joined_));
        columns_.swap(joined_);
    }

    void add_up(std::size_t n_rows) {
        const LaneBlock block{columns_.data(), columns_.size(), values_.data(), n_vectors_};
        const LaneVectors vectors{model_.values.data(), model_.indices.data(), model_.indptr.data()};
        const bool is_rbf = model_.kernel_type == text::KernelType::rbf;
        kernels_.resize(panel_vectors * n_lanes());
        sums_.assign(n_sums_ * n_lanes(), 0.0);
        for (const Panel& panel : panels_) {
            const std::size_t n = panel.last - panel.first;
            (is_rbf ? lane_sums_.sq_distances : lane_sums_.dot_products)(block, vectors, panel.first, panel.last,
                                                                         kernels_.data());
            for (std::size_t i = 0; i < n; ++i) apply_kernel(&kernels_[i * n_lanes()], n_rows);
            lane_sums_.add_terms({kernels_.data(), &model_.coef[panel.first * n_coef_], &places_[panel.place], n_coef_},
                                 n, n_vectors_, sums_.data());
        }
    }

    /// Converts squared distances or inner products to kernel values.
    void apply_kernel(double* x, std::size_t n) const {
        switch (model_.kernel_type) {
            case text::KernelType::rbf:
                for (std::size_t r = 0; r < n; ++r) x[r] = std::exp(-*model_.gamma * x[r]);
                break;
            case text::KernelType::polynomial:
                for (std::size_t r = 0; r < n; ++r) {
                    x[r] = integer_power(*model_.gamma * x[r] + *model_.coef0, *model_.degree);
                }
                break;
            case text::KernelType::sigmoid:
                for (std::size_t r = 0; r < n; ++r) x[r] = std::tanh(*model_.gamma * x[r] + *model_.coef0);
                break;
            case text::KernelType::linear:
            case text::KernelType::precomputed:
                break;
        }
    }

    const text::LibsvmModel& model_;
    const LaneSums& lane_sums_;
    const std::size_t n_coef_, n_sums_;
    std::vector<double> row_;  // the values for one row
    std::vector<Panel> panels_;
    std::vector<std::uint32_t> places_;  // sums to which each class contributes, concatenated
    // The columns that occur in at least one row of the block, in ascending order, and the rows' values in these
    // columns, one row per lane.
    std::vector<std::int32_t> columns_, joined_;
    std::vector<double> values_;
    std::size_t n_vectors_ = 0;
    // Kernel values of a panel's vectors, of shape (panel_vectors, n_lanes), and pair sums, of shape (n_sums, n_lanes).
    std::vector<double> kernels_, sums_;
};

}  // namespace approxsvm::tools

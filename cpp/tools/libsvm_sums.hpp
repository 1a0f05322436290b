// Decision values of a LIBSVM model, equal to svm-predict's in every bit: each row goes through the operations of
// LIBSVM's Kernel::k_function and svm_predict_values in their order, with rows side by side in the lanes of vectors.
//
//     f(z) = ((a_1 K_1 + a_2 K_2) + ...) - rho,   K_i = exp(-gamma ((d_1^2 + d_2^2) + ...)),
//
// d_1, d_2, ... over the features that z or x_i has, ascending. A feature that neither has may be added as well, since
// d = 0 changes nothing; that is what lets rows with different features share a block.
#pragma once

#include <algorithm>
#include <approxsvm/model_view.hpp>
#include <cmath>
#include <cstdint>
#include <vector>

#include "exact_model.hpp"

namespace approxsvm::tools {

class LibsvmSums {
  public:
    explicit LibsvmSums(const ExactModel& model) : model_(model.libsvm()), gamma_(model.view().gamma) {}

    /// values[i] of the rows i in `which`. Rows are finite, and their columns ascend.
    void decide(const CsrRows<double, std::int32_t>& rows, const std::vector<std::size_t>& which, double* values) {
        for (std::size_t first = 0; first < which.size(); first += block_rows) {
            const std::size_t n = std::min(block_rows, which.size() - first);
            load_block(rows, &which[first], n);
            double sums[block_rows] = {};
            for (std::size_t i = 0; i < static_cast<std::size_t>(model_.n_sv); ++i) add_support_vector(i, n, sums);
            for (std::size_t r = 0; r < n; ++r) values[which[first + r]] = sums[r] - model_.rho[0];
        }
    }

  private:
    // Two doubles are what every machine of 64 bits has.
    typedef double Pair __attribute__((vector_size(16)));
    static constexpr std::size_t n_pairs = 6;  // accumulators, and registers left for the terms
    static constexpr std::size_t block_rows = 2 * n_pairs;
    struct Lanes {
        Pair pair[n_pairs];
    };

    void load_block(const CsrRows<double, std::int32_t>& rows, const std::size_t* which, std::size_t n) {
        const auto begin = [&](std::size_t r) { return static_cast<std::size_t>(rows.row_starts[which[r]]); };
        const auto end = [&](std::size_t r) { return static_cast<std::size_t>(rows.row_starts[which[r] + 1]); };
        columns_.clear();
        for (std::size_t r = 0; r < n; ++r) {
            columns_.insert(columns_.end(), rows.columns + begin(r), rows.columns + end(r));
        }
        std::sort(columns_.begin(), columns_.end());
        columns_.erase(std::unique(columns_.begin(), columns_.end()), columns_.end());
        values_.assign(columns_.size(), Lanes{});
        for (std::size_t r = 0; r < n; ++r) {
            std::size_t place = 0;
            for (std::size_t k = begin(r); k < end(r); ++k, ++place) {
                while (columns_[place] != rows.columns[k]) ++place;
                values_[place].pair[r / 2][r % 2] = rows.values[k];
            }
        }
        squares_ = values_;
        for (Lanes& lanes : squares_) {
            for (Pair& pair : lanes.pair) pair *= pair;
        }
    }

    void add_support_vector(std::size_t i, std::size_t n_rows, double* sums) const {
        const std::size_t begin = static_cast<std::size_t>(model_.indptr[i]);
        const std::size_t end = static_cast<std::size_t>(model_.indptr[i + 1]);
        const std::int32_t* column = columns_.data();
        const std::int32_t* const last_column = column + columns_.size();
        const Lanes* square = squares_.data();
        Lanes sq_distance{};
        for (std::size_t k = begin; k < end; ++k) {
            const std::int32_t next = model_.indices[k];
            for (; column != last_column && *column < next; ++column) add(sq_distance, *square++);
            const double x = model_.values[k];
            if (column != last_column && *column == next) {
                add_difference(sq_distance, values_[static_cast<std::size_t>(column - columns_.data())], x);
                ++column, ++square;
            } else {
                for (Pair& pair : sq_distance.pair) pair += x * x;
            }
        }
        for (; column != last_column; ++column) add(sq_distance, *square++);
        const double a = model_.coef[i];
        for (std::size_t r = 0; r < n_rows; ++r) sums[r] += a * std::exp(-gamma_ * sq_distance.pair[r / 2][r % 2]);
    }

    static void add(Lanes& sum, const Lanes& term) {
        for (std::size_t p = 0; p < n_pairs; ++p) sum.pair[p] += term.pair[p];
    }
    static void add_difference(Lanes& sum, const Lanes& z, double x) {
        for (std::size_t p = 0; p < n_pairs; ++p) {
            const Pair difference = z.pair[p] - x;
            sum.pair[p] += difference * difference;
        }
    }

    const text::LibsvmModel& model_;
    const double gamma_;
    // The columns that the rows of the block have, ascending; their values and the squares of these.
    std::vector<std::int32_t> columns_;
    std::vector<Lanes> values_, squares_;
};

}  // namespace approxsvm::tools

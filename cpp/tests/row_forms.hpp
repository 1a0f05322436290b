#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

// Numbers at random, and rows in the forms that engines take.

namespace row_forms {

using Random = std::mt19937_64;

inline double uniform(Random& random, double low, double high) {
    return low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53;
}

template <class Real>
using Rows = std::vector<std::vector<Real>>;

/// Coordinates of about the wished norm; a share of them is exactly zero.
template <class Real>
std::vector<Real> random_vector(Random& random, std::size_t n_features, double norm, double share_of_zeros) {
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform_share;
    std::vector<Real> vector(n_features);
    const double scale = norm / std::sqrt(static_cast<double>(std::max<std::size_t>(n_features, 1)));
    for (Real& x : vector) {
        const double value = normal(random) * scale;
        x = uniform_share(random) < share_of_zeros ? Real{0} : static_cast<Real>(value);
    }
    return vector;
}

/// So many vectors, of which every seventh is one before once more.
template <class Real>
std::vector<double> random_vectors(Random& random, std::size_t n, std::size_t n_features, double norm,
                                   double share_of_zeros) {
    std::vector<double> vectors;
    for (std::size_t i = 0; i < n; ++i) {
        if (i % 7 == 6) {
            const std::size_t twin = random() % i * n_features;
            for (std::size_t j = 0; j < n_features; ++j) vectors.push_back(vectors[twin + j]);
        } else {
            for (const Real x : random_vector<Real>(random, n_features, norm, share_of_zeros)) {
                vectors.push_back(static_cast<double>(x));
            }
        }
    }
    return vectors;
}

/// Random rows of several norms and zeros, some of them support vectors of the model.
template <template <class> class Model, class Real>
Rows<Real> random_rows(Random& random, const Model<Real>& model, std::size_t n_rows, double norm) {
    Rows<Real> rows;
    for (std::size_t r = 0; r < n_rows; ++r) {
        rows.push_back(random_vector<Real>(random, model.n_features, r % 4 == 2 ? norm * 3 : norm, r % 3 ? 0.7 : 0));
        if (r % 5 != 4 || model.n_sv == 0) continue;
        const std::size_t twin = random() % model.n_sv * model.n_features;
        for (std::size_t j = 0; j < model.n_features; ++j) rows[r][j] = static_cast<Real>(model.vectors[twin + j]);
    }
    return rows;
}

/// The non-zeros of rows in compressed form, and half the squared norm of each row in the engine's own arithmetic.
template <class Real>
struct SparseRows {
    std::vector<Real> values, half_sq_norm;
    std::vector<std::int32_t> columns;
    std::vector<std::size_t> starts = {0};

    template <class HalfSqNorm>
    SparseRows(const Rows<Real>& rows, HalfSqNorm half_sq_norm_of) {
        for (const std::vector<Real>& row : rows) {
            for (std::size_t j = 0; j < row.size(); ++j) {
                if (row[j] == Real{0}) continue;
                values.push_back(row[j]);
                columns.push_back(static_cast<std::int32_t>(j));
            }
            const std::size_t start = starts.back();
            half_sq_norm.push_back(half_sq_norm_of(values.data() + start, values.size() - start));
            starts.push_back(values.size());
        }
    }
};

/// Rows in blocks of so many, feature by feature, the missing ones of the last block zero.
template <class Real>
std::vector<Real> blocks_of(const Rows<Real>& rows, std::size_t n_features, std::size_t width) {
    std::vector<Real> blocks((rows.size() + width - 1) / width * n_features * width);
    for (std::size_t r = 0; r < rows.size(); ++r) {
        for (std::size_t j = 0; j < n_features; ++j) {
            blocks[(r / width * n_features + j) * width + r % width] = rows[r][j];
        }
    }
    return blocks;
}

}  // namespace row_forms

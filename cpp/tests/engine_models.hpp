#pragma once

#include <algorithm>
#include <approxsvm/exact/gaussian.hpp>
#include <approxsvm/exact/kernel_sums.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "check.hpp"

// Models for the exact engines (one function, and all one-vs-one functions), rows in every form, and reference sums in
// long double with the certificate's rounding bound.

namespace engine_models {

using namespace approxsvm;
using check::expect;
using Counts = std::vector<std::uint32_t>;
using Sums = std::vector<double>;  // of one row
template <class Real>
using Rows = std::vector<std::vector<Real>>;

inline std::size_t total(const Counts& counts) {
    return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}
inline bool same(const Sums& a, const Sums& b) {
    return std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

// --- sums of one function and of all pairs

/// A sum with coefficients, and the same sum with weights.
template <class R>
struct OneFunction : TermSums<GaussianTerm<R>, 2> {
    static std::size_t n_functions(std::size_t) { return 1; }
    static ClassSizes sizes(const Counts& counts) { return {nullptr, total(counts), 1, 2}; }
};

/// For each class, the sums with each of LIBSVM's coefficient rows, and the sum with weights.
template <class R>
struct AllPairs : TermSums<GaussianTerm<R>, 0> {
    static std::size_t n_functions(std::size_t n_classes) { return n_classes - 1; }
    static ClassSizes sizes(const Counts& counts) { return {counts.data(), 0, counts.size(), counts.size()}; }
};

template <class Engine, class Real = typename Engine::Real>
Engine sums_of(const KernelSums<Real>& sums, Real* products = nullptr) {
    return {{sums, {sums.vectors}, products}};
}

// --- models

/// Support vectors in unaligned memory of exactly the required size, which is first filled with NaN.
template <class Engine>
struct EngineModel {
    using Real = typename Engine::Real;
    Counts counts;
    std::size_t n_sv, n_features, n_functions, n_sums;  // n_sums: number of sums per row
    double half_theta;
    std::vector<double> vectors;  // of shape (n_sv, n_features), every entry a Real
    std::vector<double> coef;     // of shape (n_functions, n_sv)
    std::vector<double> weights;  // of shape (n_sv,)
    std::vector<char> memory, column_memory;
    KernelSums<Real> by_panels, by_columns;  // the same support vectors in both layouts

    EngineModel(Counts all_counts, std::vector<double> all_vectors, std::vector<double> all_coef, std::size_t features,
                double theta, std::size_t misalignment = 1)
        : counts(std::move(all_counts)),
          n_sv(total(counts)),
          n_features(features),
          n_functions(Engine::n_functions(counts.size())),
          n_sums(counts.size() * (n_functions + 1)),
          half_theta(theta),
          vectors(std::move(all_vectors)),
          coef(std::move(all_coef)) {
        for (std::size_t s = 0; s < n_sv; ++s) {
            weights.push_back(largest_modulus(coef.data() + s, n_functions, static_cast<std::ptrdiff_t>(n_sv)) *
                              (1.0 + static_cast<double>(s % 3)));
        }
        by_panels = laid_out(memory, misalignment, in_panels);
        std::size_t n_values = 0;
        for (std::size_t k = 0; k < vectors.size(); ++k) n_values += is_stored(k);
        by_columns = laid_out(column_memory, misalignment, n_values);
    }
    const KernelVectors<Real>& kernels() const { return by_panels.vectors; }

  private:
    /// True if value k is stored in the layout by column, which also stores some zeros explicitly.
    bool is_stored(std::size_t k) const { return vectors[k] != 0.0 || k % 5 == 0; }
    KernelSums<Real> laid_out(std::vector<char>& room, std::size_t misalignment, std::size_t n_values) const {
        const ClassSizes sizes = Engine::sizes(counts);
        room.assign(misalignment + kernel_sums_bytes<Real>(sizes, n_features, n_values), '\xff');
        KernelSumsWriter<Real> writer(room.data() + misalignment, sizes, n_features, half_theta, n_values);
        const bool dense = n_values == in_panels;
        for (std::size_t k = 0; !dense && k < vectors.size(); ++k) {
            if (is_stored(k)) writer.count(k % n_features);
        }
        if (!dense) writer.finish_counting();
        for (std::size_t s = 0; s < n_sv; ++s) {
            std::vector<std::uint32_t> features;
            std::vector<double> values;
            for (std::size_t j = 0; j < n_features; ++j) {
                if (!dense && !is_stored(s * n_features + j)) continue;
                features.push_back(static_cast<std::uint32_t>(j));
                values.push_back(vectors[s * n_features + j]);
            }
            const Coordinates x{values.data(), dense ? nullptr : features.data(), values.size()};
            writer.add_support_vector(x, coef.data() + s, static_cast<std::ptrdiff_t>(n_sv), weights[s]);
        }
        return writer.expansion();
    }
};

/// Coordinates with approximately the given norm; a fraction of them is exactly zero.
template <class Real>
std::vector<Real> random_vector(Random& random, std::size_t n_features, double norm, double share_of_zeros) {
    std::normal_distribution<double> normal;
    std::vector<Real> vector(n_features);
    const double scale = norm / std::sqrt(static_cast<double>(std::max<std::size_t>(n_features, 1)));
    for (Real& x : vector) {
        const double value = normal(random) * scale;
        x = uniform(random, 0, 1) < share_of_zeros ? Real{0} : static_cast<Real>(value);
    }
    return vector;
}

/// Every seventh support vector repeats an earlier one, of the same class or another; some coefficients are zero.
template <class Engine>
EngineModel<Engine> random_model(Random& random, const Counts& counts, std::size_t n_features,
                                 double coef_exponent = 0) {
    const std::size_t n_sv = total(counts), n_functions = Engine::n_functions(counts.size());
    const double share_of_zeros = random() % 3 == 0 ? 0.93 : 0.2;  // either nearly all coordinates are zero, or few are
    std::vector<double> vectors, coef;
    for (std::size_t i = 0; i < n_sv; ++i) {
        const auto own = random_vector<typename Engine::Real>(random, n_features, 1.0, share_of_zeros);
        const std::size_t twin = i % 7 == 6 ? random() % i * n_features : vectors.size();
        for (std::size_t j = 0; j < n_features; ++j) {
            vectors.push_back(i % 7 == 6 ? vectors[twin + j] : static_cast<double>(own[j]));
        }
    }
    std::normal_distribution<double> normal;
    for (std::size_t i = 0; i < n_sv * n_functions; ++i) {
        const double a = normal(random) * std::pow(10.0, coef_exponent * uniform(random, -1, 1));
        coef.push_back(n_functions > 1 && random() % 4 == 0 ? 0.0 : a);
    }
    return {counts, vectors, coef, n_features, uniform(random, 0.5, 2.0), random() % 64};
}

/// Rows of several norms, some of them with zeros, and some equal to support vectors of the model.
template <class Model>
Rows<typename Model::Real> random_rows(Random& random, const Model& model, std::size_t n_rows) {
    using Real = typename Model::Real;
    Rows<Real> rows;
    for (std::size_t r = 0; r < n_rows; ++r) {
        rows.push_back(random_vector<Real>(random, model.n_features, r % 4 == 2 ? 3.0 : 1.0, r % 3 ? 0.7 : 0));
        if (r % 5 != 4 || model.n_sv == 0) continue;
        const std::size_t twin = random() % model.n_sv * model.n_features;
        for (std::size_t j = 0; j < model.n_features; ++j) rows[r][j] = static_cast<Real>(model.vectors[twin + j]);
    }
    return rows;
}

/// Rows in blocks of `width`, feature by feature; the last block is padded with zeros.
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

/// Class sizes close to the widths of panels and tiles: all equal; all but one equal, where each class in turn is empty
/// or has one vector; or mixed.
inline std::vector<Counts> class_sizes(Random& random, std::size_t n_classes) {
    constexpr std::uint32_t sizes[] = {0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33};
    std::vector<Counts> all;
    for (const std::uint32_t n : sizes) all.push_back(Counts(n_classes, n));
    for (std::size_t c = 0; c < n_classes; ++c) {
        for (const std::uint32_t n : {0u, 1u}) {
            all.push_back(Counts(n_classes, 16));
            all.back()[c] = n;
        }
    }
    for (int repetition = 0; repetition < 4; ++repetition) {
        Counts mixed(n_classes);
        for (std::uint32_t& n : mixed) n = sizes[random() % 14];
        all.push_back(mixed);
    }
    return all;
}

// --- the reference

/// The sums for a row, and the values that bound their errors: sums of the absolute values, the largest absolute
/// coefficients, and norms.
struct Reference {
    std::vector<long double> sums, moduli, largest, kernel;
    long double max_norm = 0, row_norm = 0;
};

template <class Model, class Real>
Reference reference(const Model& model, const std::vector<Real>& row) {
    const std::vector<long double> none(model.n_sums);
    Reference result{none, none, none, {}};
    for (const Real x : row) result.row_norm += static_cast<long double>(x) * x;
    result.row_norm = std::sqrt(result.row_norm);
    std::size_t s = 0;
    for (std::size_t c = 0; c < model.counts.size(); ++c) {
        for (const std::size_t end = s + model.counts[c]; s < end; ++s) {
            long double sq_distance = 0, sq_norm = 0;
            for (std::size_t j = 0; j < row.size(); ++j) {
                const long double x = model.vectors[s * model.n_features + j], difference = x - row[j];
                sq_distance += difference * difference;
                sq_norm += x * x;
            }
            const long double kernel = std::exp(-model.half_theta * sq_distance);
            result.kernel.push_back(kernel);
            result.max_norm = std::max(result.max_norm, std::sqrt(sq_norm));
            for (std::size_t k = 0; k <= model.n_functions; ++k) {
                const std::size_t f = c * (model.n_functions + 1) + k;
                const long double a = k < model.n_functions ? model.coef[k * model.n_sv + s] : model.weights[s];
                result.sums[f] += a * kernel;
                result.moduli[f] += std::fabs(a) * kernel;
                result.largest[f] = std::max(result.largest[f], std::fabs(a));
            }
        }
    }
    return result;
}

/// The error bound in terms of norms, for one sum over a class's support vectors. `depth` is the summation depth of an
/// inner product.
template <class Model>
long double error_bound(const Model& model, const Reference& truth, std::size_t f, std::size_t depth) {
    using Real = typename Model::Real;
    const long double u = std::numeric_limits<Real>::epsilon() / 2, reach = truth.max_norm + truth.row_norm;
    const long double d = 1.01L * u * static_cast<long double>(depth + 5) * model.half_theta * reach * reach;
    const long double n = model.counts[f / (model.n_functions + 1)], summation = (n + 2) * 0x1p-53L;
    return 1.05L * truth.moduli[f] * (std::expm1(2 * d) + 6.1L * u + summation) +
           n * truth.largest[f] * (sizeof(Real) == 4 ? 0x1p-120L : 0x1p-1020L);
}

}  // namespace engine_models

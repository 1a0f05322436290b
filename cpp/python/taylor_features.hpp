// Taylor features of the Gaussian kernel (approxsvm/features/taylor.py), row by row, in time proportional to the
// output.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace approxsvm::python {

// Number of monomials of exactly this degree in n variables, which must be below 2^63: no product here exceeds it.
inline std::int64_t n_monomials(std::int64_t n, int degree) {
    if (n == 0) return degree == 0 ? 1 : 0;
    std::int64_t count = 1;
    for (int i = 0; i < degree; ++i) {
        const std::int64_t factor = n + i, divisor = i + 1;
        count = count / divisor * factor + count % divisor * factor / divisor;
    }
    return count;
}

// Computes the features exp(-gamma ||x||^2) sqrt((2 gamma)^k / alpha!) x^alpha row by row, degree by degree, each
// degree in lexicographic order. Features that begin with x_i are x_i times a suffix of the features of one degree
// less. Everything is computed in float64.
class TaylorRow {
  public:
    TaylorRow(std::int64_t n_features, double gamma, int degree)
        : d_(n_features), degree_(degree), gamma_(gamma), scale_(std::sqrt(2.0 * gamma)) {
        for (int j = 1; j <= degree; ++j) inverse_roots_.push_back(1.0 / std::sqrt(static_cast<double>(j)));
    }

    static std::int64_t n_outputs(std::int64_t n_non_zeros, int degree) {
        return n_monomials(n_non_zeros + 1, degree);  // an extra variable, equal to 1, supplies lower degrees
    }

    // Turns the `values` of n entries into n_outputs(n, degree) features.
    template <class T>
    void compute(const T* values, std::int64_t n, double* features) {
        double sq_norm = 0.0;
        scaled_.resize(static_cast<std::size_t>(n));
        for (std::int64_t p = 0; p < n; ++p) {
            const double x = static_cast<double>(values[p]);
            sq_norm += x * x;
            scaled_[static_cast<std::size_t>(p)] = scale_ * x;
        }
        features[0] = std::exp(-gamma_ * sq_norm);
        if (features[0] == 0.0) {  // powers may be infinite
            for (std::int64_t t = n_outputs(n, degree_); t-- > 0;) features[t] = 0.0;
            return;
        }
        const double* lower = features;
        double* out = features + 1;
        for (int k = 1; k <= degree_; ++k) {
            const double* const first = out;
            for (std::int64_t p = 0; p < n; ++p) out = times_variable(lower, n, p, k, out);
            lower = first;
        }
    }

    // Computes the columns of these features from the columns of the entries.
    template <class Column>
    void place(const std::int64_t* entries, std::int64_t n, Column* columns) const {
        columns[0] = 0;
        const Column* lower = columns;
        Column* out = columns + 1;
        std::int64_t degree_start = 1;
        for (int k = 1; k <= degree_; ++k) {
            const Column* const first = out;
            const std::int64_t here = n_monomials(d_, k);
            for (std::int64_t p = 0; p < n; ++p) {
                // Column of x_i m: the start of x_i's section, plus the offset of m from the start of the suffix.
                const std::int64_t left = d_ - entries[p];
                const std::int64_t section = degree_start + here - n_monomials(left, k);
                const std::int64_t suffix = degree_start - n_monomials(left, k - 1);
                const std::int64_t of_suffix = n_monomials(n - p, k - 1);
                const Column* const tails = lower + (n_monomials(n, k - 1) - of_suffix);
                for (std::int64_t t = 0; t < of_suffix; ++t) {
                    *out++ = static_cast<Column>(section + (static_cast<std::int64_t>(tails[t]) - suffix));
                }
            }
            lower = first;
            degree_start += here;
        }
    }

  private:
    // The first n_monomials(m, k - 1 - j) of the tails begin with x_i at least j times, which multiplies 1 / alpha! by
    // a factor.
    double* times_variable(const double* lower, std::int64_t n, std::int64_t p, int k, double* out) const {
        const std::int64_t m = n - p;
        const double* tails = lower + (n_monomials(n, k - 1) - n_monomials(m, k - 1));
        std::int64_t t = 0;
        for (int run = k; run >= 1; --run) {
            const double factor =
                scaled_[static_cast<std::size_t>(p)] * inverse_roots_[static_cast<std::size_t>(run - 1)];
            for (const std::int64_t end = n_monomials(m, k - run); t < end; ++t) out[t] = tails[t] * factor;
        }
        return out + t;
    }

    std::int64_t d_;
    int degree_;
    double gamma_, scale_;
    std::vector<double> inverse_roots_, scaled_;
};

}  // namespace approxsvm::python

// Rows, wherever they are: one at a time in any form that a later stage wants.
#pragma once

#include "block.hpp"
#include "sparse.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// One dense row at a time, for the later stages.
template <class Real>
class DenseSource {
  public:
    DenseSource(const DenseRows<Real>& rows, std::size_t n_features) : rows_(rows), n_features_(n_features) {}

    std::size_t n_rows() const { return rows_.n_rows; }
    const DenseRows<Real>& rows() const { return rows_; }
    Status check(std::size_t i) const {
        return all_finite(row(i), rows_.column_stride, n_features_) ? Status::ok : Status::not_finite;
    }

    // Whether the row can be read at all; NaN and infinity are found later, by what they evaluate to.
    Status check_order(std::size_t) const { return Status::ok; }

    // u[j * stride] = scale (z_j - center_j); returns the squared norm of features that the model has never seen.
    template <class Out>
    double load(std::size_t i, const float* center, double scale, Out* u, std::size_t stride) const {
        const Real* z = row(i);
        for (std::size_t j = 0; j < n_features_; ++j) {
            u[j * stride] = rounded(z[static_cast<std::ptrdiff_t>(j) * rows_.column_stride], center[j], scale, Out{});
        }
        return 0.0;
    }

    // n rows into the lanes of a block, zeros into those left over; unseen[r] as load returns it.
    template <int Registers>
    void load_block(const std::size_t* indices, std::size_t n, const float* center, double scale, float* block,
                    double* unseen) const {
        constexpr std::size_t stride = Registers * static_cast<std::size_t>(lanes), width = lanes;
        const Real* rows[stride] = {};
        for (std::size_t r = 0; r < n; ++r) {
            rows[r] = row(indices[r]);
            unseen[r] = 0.0;
        }
        for (std::size_t first = 0; first < stride; first += width) {
            const std::size_t left = n > first ? n - first : 0;
            load_lanes(n_features_, center, scale, rows + first, rows_.column_stride, left < width ? left : width,
                       block + first, stride);
        }
    }

    // One row; `u` has room for whole registers.
    double load_one(std::size_t i, const float* center, double scale, float* u) const {
        load_row(n_features_, center, scale, row(i), rows_.column_stride, u);
        return 0.0;
    }

    // scale z_j and j of up to `limit` non-zeros; returns their number, or limit + 1 when there are more.
    template <class Out>
    std::size_t load_nonzeros(std::size_t i, double scale, std::size_t limit, Out* values, std::int32_t* columns,
                              double& unseen_sq_norm) const {
        const Real* z = row(i);
        std::size_t n = 0;
        unseen_sq_norm = 0.0;
        for (std::size_t j = 0; j < n_features_; ++j) {
            const Real value = z[static_cast<std::ptrdiff_t>(j) * rows_.column_stride];
            if (value == Real{0}) continue;
            if (n == limit) return limit + 1;
            values[n] = rounded(value, 0.0f, scale, Out{});
            columns[n++] = static_cast<std::int32_t>(j);
        }
        return n;
    }

  private:
    const Real* row(std::size_t i) const { return rows_.values + static_cast<std::ptrdiff_t>(i) * rows_.row_stride; }
    static float rounded(Real z, float center, double scale, float) { return shifted(z, center, scale); }
    static double rounded(Real z, float center, double scale, double) {
        return (static_cast<double>(z) - static_cast<double>(center)) * scale;
    }

    const DenseRows<Real> rows_;
    const std::size_t n_features_;
};

template <class Real, class Index>
class CsrSource {
  public:
    CsrSource(const CsrRows<Real, Index>& rows, std::size_t n_features) : rows_(rows), n_features_(n_features) {}

    std::size_t n_rows() const { return rows_.n_rows; }
    Status check(std::size_t i) const {
        SparseRow<Real, Index> row;
        return get(i, row);
    }
    Status check_order(std::size_t i) const { return check(i); }
    Status get(std::size_t i, SparseRow<Real, Index>& row) const { return checked_row(rows_, i, n_features_, row); }

    template <class Out>
    double load(std::size_t i, const float* center, double scale, Out* u, std::size_t stride) const {
        for (std::size_t j = 0; j < n_features_; ++j)
            u[j * stride] = static_cast<Out>(-static_cast<double>(center[j]) * scale);
        SparseRow<Real, Index> row;
        checked_row(rows_, i, n_features_, row);
        for (std::size_t k = 0; k < row.n_nonzero; ++k) {
            const std::size_t j = static_cast<std::size_t>(row.columns[k]);
            u[j * stride] =
                static_cast<Out>((static_cast<double>(row.values[k]) - static_cast<double>(center[j])) * scale);
        }
        return row.unseen_sq_norm;
    }

    template <int Registers>
    void load_block(const std::size_t* indices, std::size_t n, const float* center, double scale, float* block,
                    double* unseen) const {
        constexpr std::size_t stride = Registers * static_cast<std::size_t>(lanes);
        for (std::size_t r = 0; r < n; ++r) unseen[r] = load(indices[r], center, scale, block + r, stride);
        for (std::size_t j = 0; j < n_features_; ++j) {
            for (std::size_t r = n; r < stride; ++r) block[j * stride + r] = 0.0f;
        }
    }

    double load_one(std::size_t i, const float* center, double scale, float* u) const {
        return load(i, center, scale, u, 1);
    }

    template <class Out>
    std::size_t load_nonzeros(std::size_t i, double scale, std::size_t limit, Out* values, std::int32_t* columns,
                              double& unseen_sq_norm) const {
        SparseRow<Real, Index> row;
        checked_row(rows_, i, n_features_, row);
        if (row.n_nonzero > limit) return limit + 1;
        unseen_sq_norm = row.unseen_sq_norm;
        for (std::size_t k = 0; k < row.n_nonzero; ++k) {
            values[k] = static_cast<Out>(static_cast<double>(row.values[k]) * scale);
            columns[k] = static_cast<std::int32_t>(row.columns[k]);
        }
        return row.n_nonzero;
    }

  private:
    const CsrRows<Real, Index> rows_;
    const std::size_t n_features_;
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

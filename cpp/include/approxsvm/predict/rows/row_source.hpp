// Gives the stages access to rows, regardless of their storage: each row is loaded in the layout that a stage needs.
#ifndef APPROXSVM_PREDICT_ROWS_ROW_SOURCE_HPP
#define APPROXSVM_PREDICT_ROWS_ROW_SOURCE_HPP

#include "../../expansion/sparse.hpp"
#include "../../simd/block.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// The stages' interface to rows. The stages are compiled once for all row types, because a virtual call costs little
// compared with the work on a block, on a row's nonzeros or on a kernel sum.
class RowSource {
  public:
    std::size_t n_rows() const { return n_rows_; }
    bool is_sparse() const { return is_sparse_; }

    // Checks that the row can be read and is finite.
    virtual Status check(std::size_t i) const = 0;
    // Checks that the row can be read. NaN and infinity are detected later, in the values.
    Status check_order(std::size_t i) const { return is_sparse_ ? check(i) : Status::ok; }

    // Returns feature j of a readable row.
    virtual double value(std::size_t i, std::size_t j) const = 0;
    // Sets u[j * stride] to scale (z_j - center_j); returns the squared norm of features unknown to the model.
    virtual double load(std::size_t i, const double* center, double scale, float* u, std::size_t stride) const = 0;
    virtual double load(std::size_t i, const double* center, double scale, double* u, std::size_t stride) const = 0;

    // Loads n rows into the lanes of a block, and zeros into the unused lanes; sets unseen[r] to the value that load()
    // would return.
    virtual void load_block(std::size_t n_registers, const std::size_t* indices, std::size_t n, const float* center,
                            double scale, float* block, double* unseen) const = 0;

    // Loads one row; `u` must have space for whole registers.
    virtual double load_one(std::size_t i, const float* center, double scale, float* u) const = 0;

    // Stores scale (z_j - reference_j) and j for at most `limit` nonzero differences. Returns the number of nonzeros,
    // or limit + 1 if there are more. A null reference means zeros.
    virtual std::size_t load_nonzeros(std::size_t i, const double* reference, double scale, std::size_t limit,
                                      float* values, std::int32_t* columns, double& unseen_sq_norm) const = 0;
    virtual std::size_t load_nonzeros(std::size_t i, const double* reference, double scale, std::size_t limit,
                                      double* values, std::int32_t* columns, double& unseen_sq_norm) const = 0;

    // Checks the row. If using only its nonzeros is cheaper than using all features, evaluates the expansion around the
    // only center from them; otherwise sets n_nonzero to none_evaluated.
    static constexpr std::size_t none_evaluated = ~std::size_t{0};
    virtual Status sparse_value_of(std::size_t i, const ModelView& model, const FoldedModel& folded, SparseValue& value,
                                   std::size_t& n_nonzero) const = 0;

  protected:
    RowSource(std::size_t n_rows, bool is_sparse) : n_rows_(n_rows), is_sparse_(is_sparse) {}
    ~RowSource() = default;

  private:
    const std::size_t n_rows_;
    const bool is_sparse_;
};

// A source whose load_into and load_nonzeros_into handle both coordinate types.
template <class Rows>
class SourceInEitherType : public RowSource {
  public:
    double load(std::size_t i, const double* center, double scale, float* u, std::size_t stride) const final {
        return rows().load_into(i, center, scale, u, stride);
    }
    double load(std::size_t i, const double* center, double scale, double* u, std::size_t stride) const final {
        return rows().load_into(i, center, scale, u, stride);
    }
    std::size_t load_nonzeros(std::size_t i, const double* reference, double scale, std::size_t limit, float* values,
                              std::int32_t* columns, double& unseen_sq_norm) const final {
        return rows().load_nonzeros_into(i, reference, scale, limit, values, columns, unseen_sq_norm);
    }
    std::size_t load_nonzeros(std::size_t i, const double* reference, double scale, std::size_t limit, double* values,
                              std::int32_t* columns, double& unseen_sq_norm) const final {
        return rows().load_nonzeros_into(i, reference, scale, limit, values, columns, unseen_sq_norm);
    }

  protected:
    using RowSource::RowSource;
    ~SourceInEitherType() = default;

  private:
    const Rows& rows() const { return static_cast<const Rows&>(*this); }
};

// Some rows of another source: those with the given indices, or n consecutive ones.
class SelectedRows final : public SourceInEitherType<SelectedRows> {
  public:
    SelectedRows(const RowSource& rows, std::size_t first, std::size_t n)
        : SourceInEitherType(n, rows.is_sparse()), rows_(rows), first_(first), indices_(nullptr) {}
    SelectedRows(const RowSource& rows, const std::size_t* indices, std::size_t n)
        : SourceInEitherType(n, rows.is_sparse()), rows_(rows), first_(0), indices_(indices) {}

    Status check(std::size_t i) const override { return rows_.check(at(i)); }
    double value(std::size_t i, std::size_t j) const override { return rows_.value(at(i), j); }
    double load_one(std::size_t i, const float* center, double scale, float* u) const override {
        return rows_.load_one(at(i), center, scale, u);
    }
    Status sparse_value_of(std::size_t i, const ModelView& model, const FoldedModel& folded, SparseValue& value,
                           std::size_t& n_nonzero) const override {
        return rows_.sparse_value_of(at(i), model, folded, value, n_nonzero);
    }

  private:
    friend class SourceInEitherType<SelectedRows>;

    template <class Out>
    double load_into(std::size_t i, const double* center, double scale, Out* u, std::size_t stride) const {
        return rows_.load(at(i), center, scale, u, stride);
    }
    template <class Out>
    std::size_t load_nonzeros_into(std::size_t i, const double* reference, double scale, std::size_t limit, Out* values,
                                   std::int32_t* columns, double& unseen_sq_norm) const {
        return rows_.load_nonzeros(at(i), reference, scale, limit, values, columns, unseen_sq_norm);
    }
    void load_block(std::size_t n_registers, const std::size_t* indices, std::size_t n, const float* center,
                    double scale, float* block, double* unseen) const override {
        std::size_t theirs[block_rows];
        for (std::size_t r = 0; r < n; ++r) theirs[r] = at(indices[r]);
        rows_.load_block(n_registers, theirs, n, center, scale, block, unseen);
    }
    std::size_t at(std::size_t i) const { return indices_ ? indices_[i] : first_ + i; }

    const RowSource& rows_;
    const std::size_t first_;
    const std::size_t* const indices_;
};

// Returns one coordinate. The difference is rounded to float64, and then to Out; `scale` is a power of two.
template <class Out, class Real>
APPROXSVM_INLINE Out scaled(Real z, double center, double scale) {
    return static_cast<Out>((static_cast<double>(z) - center) * scale);
}

template <class Real, Parts parts = all_parts>
class DenseSource final : public SourceInEitherType<DenseSource<Real, parts>> {
  public:
    DenseSource(const DenseRows<Real>& rows, std::size_t n_features)
        : SourceInEitherType<DenseSource>(rows.n_rows, false), rows_(rows), n_features_(n_features) {}

    Status check(std::size_t i) const override {
        return all_finite(row(i), rows_.column_stride, n_features_) ? Status::ok : Status::not_finite;
    }
    double value(std::size_t i, std::size_t j) const override { return value_at(row(i), j); }
    double load_one(std::size_t i, const float* center, double scale, float* u) const override {
        load_row(n_features_, center, scale, row(i), rows_.column_stride, u);
        return 0.0;
    }
    Status sparse_value_of(std::size_t, const ModelView&, const FoldedModel&, SparseValue&,
                           std::size_t& n_nonzero) const override {
        n_nonzero = RowSource::none_evaluated;
        return Status::ok;
    }

  private:
    friend class SourceInEitherType<DenseSource>;

    void load_block(std::size_t n_registers, const std::size_t* indices, std::size_t n, const float* center,
                    double scale, float* block, double* unseen) const override {
        if constexpr (!has(parts, batches)) return;
        constexpr std::size_t width = lanes;
        const std::size_t stride = n_registers * width;
        const Real* rows[block_rows] = {};
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

    template <class Out>
    double load_into(std::size_t i, const double* center, double scale, Out* u, std::size_t stride) const {
        const Real* z = row(i);
        if (stride == 1 && rows_.column_stride == 1) {  // loops vectorized by compilers
            for (std::size_t j = 0; center && j < n_features_; ++j) u[j] = scaled<Out>(z[j], center[j], scale);
            for (std::size_t j = 0; !center && j < n_features_; ++j) u[j] = scaled<Out>(z[j], 0.0, scale);
            return 0.0;
        }
        for (std::size_t j = 0; j < n_features_; ++j) {
            const Real value = z[static_cast<std::ptrdiff_t>(j) * rows_.column_stride];
            u[j * stride] = scaled<Out>(value, center ? center[j] : 0.0, scale);
        }
        return 0.0;
    }
    template <class Out>
    std::size_t load_nonzeros_into(std::size_t i, const double* reference, double scale, std::size_t limit, Out* values,
                                   std::int32_t* columns, double& unseen_sq_norm) const {
        if constexpr (!has(parts, sparse)) return limit + 1;
        const Real* z = row(i);
        std::size_t n = 0;
        unseen_sq_norm = 0.0;
        for (std::size_t first = 0; first < n_features_; first += run_features) {
            const std::size_t left = n_features_ - first, end = first + (left < run_features ? left : run_features);
            if (left >= run_features && is_run(z, reference, first)) continue;
            if (n + (end - first) <= limit) {  // there is space for all entries, so no branches are needed
                for (std::size_t j = first; j < end; ++j) {
                    const double value = value_at(z, j), left_out = reference ? reference[j] : 0.0;
                    values[n] = scaled<Out>(value, left_out, scale);
                    columns[n] = static_cast<std::int32_t>(j);
                    n += value != left_out;
                }
                continue;
            }
            for (std::size_t j = first; j < end; ++j) {
                const double value = value_at(z, j), left_out = reference ? reference[j] : 0.0;
                if (value == left_out) continue;
                if (n == limit) return limit + 1;
                values[n] = scaled<Out>(value, left_out, scale);
                columns[n++] = static_cast<std::int32_t>(j);
            }
        }
        return n;
    }
    double value_at(const Real* z, std::size_t j) const {
        return static_cast<double>(z[static_cast<std::ptrdiff_t>(j) * rows_.column_stride]);
    }
    // Number of features compared together, bit by bit, because most features equal the reference's.
    static constexpr std::size_t run_features = 8;
    bool is_run(const Real* z, const double* reference, std::size_t first) const {
        if (rows_.column_stride != 1) return false;
        std::uint64_t differing = 0;
        for (std::size_t j = first; j < first + run_features; ++j) {
            differing |= bits_of(static_cast<double>(z[j])) ^ (reference ? bits_of(reference[j]) : 0);
        }
        return differing == 0;
    }
    static std::uint64_t bits_of(double x) {
        std::uint64_t bits;
        std::memcpy(&bits, &x, sizeof bits);
        return bits;
    }
    const Real* row(std::size_t i) const { return rows_.values + static_cast<std::ptrdiff_t>(i) * rows_.row_stride; }

    const DenseRows<Real> rows_;
    const std::size_t n_features_;
};

template <class Real, class Index>
class CsrSource final : public SourceInEitherType<CsrSource<Real, Index>> {
  public:
    CsrSource(const CsrRows<Real, Index>& rows, std::size_t n_features)
        : SourceInEitherType<CsrSource>(rows.n_rows, true), rows_(rows), n_features_(n_features) {}

    Status check(std::size_t i) const override {
        SparseRow<Real, Index> row;
        return get(i, row);
    }
    double value(std::size_t i, std::size_t j) const override {
        Index first = rows_.row_starts[i], last = rows_.row_starts[i + 1];
        while (first < last) {
            const Index middle = first + (last - first) / 2;
            if (rows_.columns[middle] == static_cast<Index>(j)) return static_cast<double>(rows_.values[middle]);
            if (rows_.columns[middle] < static_cast<Index>(j)) {
                first = middle + 1;
            } else {
                last = middle;
            }
        }
        return 0.0;
    }
    double load_one(std::size_t i, const float* center, double scale, float* u) const override {
        return load_into(i, center, scale, u, 1);
    }
    Status sparse_value_of(std::size_t i, const ModelView& model, const FoldedModel& folded, SparseValue& value,
                           std::size_t& n_nonzero) const override {
        n_nonzero = RowSource::none_evaluated;
        SparseRow<Real, Index> row;
        const Status status = get(i, row);
        if (status != Status::ok) return status;
        if (row.unseen_sq_norm == 0.0 && worth_densifying(row.n_nonzero, model.n_features)) return status;
        value = sparse_value(model, folded, row);
        n_nonzero = row.n_nonzero;
        return status;
    }

  private:
    friend class SourceInEitherType<CsrSource>;

    Status get(std::size_t i, SparseRow<Real, Index>& row) const { return checked_row(rows_, i, n_features_, row); }

    void load_block(std::size_t n_registers, const std::size_t* indices, std::size_t n, const float* center,
                    double scale, float* block, double* unseen) const override {
        const std::size_t stride = n_registers * static_cast<std::size_t>(lanes);
        for (std::size_t r = 0; r < n; ++r) unseen[r] = load_into(indices[r], center, scale, block + r, stride);
        for (std::size_t j = 0; j < n_features_; ++j) {
            for (std::size_t r = n; r < stride; ++r) block[j * stride + r] = 0.0f;
        }
    }

    template <class Center, class Out>
    double load_into(std::size_t i, const Center* center, double scale, Out* u, std::size_t stride) const {
        const auto center_of = [=](std::size_t j) { return center ? static_cast<double>(center[j]) : 0.0; };
        for (std::size_t j = 0; j < n_features_; ++j) u[j * stride] = scaled<Out>(0.0, center_of(j), scale);
        SparseRow<Real, Index> row;
        checked_row(rows_, i, n_features_, row);
        for (std::size_t k = 0; k < row.n_nonzero; ++k) {
            const std::size_t j = static_cast<std::size_t>(row.columns[k]);
            u[j * stride] = scaled<Out>(row.values[k], center_of(j), scale);
        }
        return row.unseen_sq_norm;
    }
    template <class Out>
    std::size_t load_nonzeros_into(std::size_t i, const double* reference, double scale, std::size_t limit, Out* values,
                                   std::int32_t* columns, double& unseen_sq_norm) const {
        SparseRow<Real, Index> row;
        checked_row(rows_, i, n_features_, row);
        unseen_sq_norm = row.unseen_sq_norm;
        if (reference) return load_differences(row, reference, scale, limit, values, columns);
        if (row.n_nonzero > limit) return limit + 1;
        for (std::size_t k = 0; k < row.n_nonzero; ++k) {
            values[k] = scaled<Out>(row.values[k], 0.0, scale);
            columns[k] = static_cast<std::int32_t>(row.columns[k]);
        }
        return row.n_nonzero;
    }
    template <class Out>
    std::size_t load_differences(const SparseRow<Real, Index>& row, const double* reference, double scale,
                                 std::size_t limit, Out* values, std::int32_t* columns) const {
        std::size_t n = 0;
        for (std::size_t j = 0, k = 0; j < n_features_; ++j) {
            const bool is_stored = k < row.n_nonzero && static_cast<std::size_t>(row.columns[k]) == j;
            const double value = is_stored ? static_cast<double>(row.values[k]) : 0.0;
            k += is_stored;
            if (value == reference[j]) continue;
            if (n == limit) return limit + 1;
            values[n] = scaled<Out>(value, reference[j], scale);
            columns[n++] = static_cast<std::int32_t>(j);
        }
        return n;
    }

    const CsrRows<Real, Index> rows_;
    const std::size_t n_features_;
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

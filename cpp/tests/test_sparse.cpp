#include <cfloat>
#include <utility>

#include "kernel_models.hpp"

// Every target's kernel for sparse rows, and the folding of the center, against long double.

using namespace kernel_models;

namespace {

constexpr std::int64_t after_all = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t before_all = std::numeric_limits<std::int32_t>::min();

/// Rows in CSR, together with what they mean.
template <class Real, class Index>
struct Sparse {
    std::vector<Real> values;
    std::vector<Index> columns;
    std::vector<Index> row_starts = {0};
    std::vector<std::vector<Real>> seen;  // dense, n_features long
    std::vector<double> unseen_sq_norm;
    std::vector<std::size_t> n_seen;

    std::size_t n_rows() const { return row_starts.size() - 1; }

    void start_row(std::size_t d) {
        seen.emplace_back(d, Real{0});
        unseen_sq_norm.push_back(0);
        n_seen.push_back(0);
        row_starts.push_back(row_starts.back());
    }
    void add(std::int64_t column, Real value) {
        columns.push_back(static_cast<Index>(column));
        values.push_back(value);
        ++row_starts.back();
        if (column >= 0 && column < static_cast<std::int64_t>(seen.back().size())) {
            seen.back()[static_cast<std::size_t>(column)] = value;
            ++n_seen.back();
        } else {
            unseen_sq_norm.back() += static_cast<double>(value) * static_cast<double>(value);
        }
    }
    /// Values of some rows, each array of exactly its size.
    Status decided(const Prepared& prepared, std::size_t first, std::size_t n, Numbers& result) const {
        const Exact<Real> own_values(values);
        const Exact<Index> own_columns(columns);
        const auto begin = row_starts.begin() + static_cast<std::ptrdiff_t>(first);
        const Exact<Index> starts(std::vector<Index>(begin, begin + static_cast<std::ptrdiff_t>(n) + 1));
        const CsrRows<Real, Index> view{own_values.data.get(), own_columns.data.get(), starts.data.get(), n};
        return decide(prepared, view, result, many_rows);
    }
};

/// Empty, full and random rows; some with columns that the model has never seen on either side.
template <class Real, class Index>
Sparse<Real, Index> random_sparse(const artifact_writer::Model& model, Random& random, bool exact) {
    const std::size_t d = model.n_features();
    const std::int64_t d_signed = static_cast<std::int64_t>(d);
    Sparse<Real, Index> rows;
    for (int i = 0; i < 64; ++i) {
        rows.start_row(d);
        const auto number = [&](double center) {
            if (exact) return static_cast<Real>(center + (static_cast<double>(random() % 5) - 2) / 8);
            const double reach = std::sqrt(2.0 / static_cast<double>(d)) / model.input_scale;
            return static_cast<Real>(center + reach * uniform(random, -2, 2));
        };
        const bool before = i % 8 >= 5, after = i % 8 == 4 || i % 8 == 7;
        if (before) rows.add(before_all, number(0)), rows.add(-3, number(0)), rows.add(-1, number(0));
        const double density = i < 2 ? 0 : i < 6 ? 1 : uniform(random, 0, 0.9);
        for (std::size_t j = 0; j < d; ++j) {
            if (i == 6 ? j != d - 1 : i == 7 ? j != 0 : uniform(random, 0, 1) >= density) continue;
            rows.add(static_cast<std::int64_t>(j), number(static_cast<double>(model.center[j])));
        }
        if (after) rows.add(d_signed, number(0)), rows.add(d_signed + 5, Real{0}), rows.add(after_all, number(0));
    }
    return rows;
}

/// Moduli of the sums that a sparse row goes through in float64: the folded form, and half the scaled squared distance.
template <class Real>
void sparse_moduli(const artifact_writer::Model& model, const FoldedModel& folded, const std::vector<Real>& row,
                   double unseen_sq_norm, long double& form, double& half_s) {
    const std::size_t d = row.size();
    const double scale = model.input_scale;
    form = std::fabs(folded.constant);
    double sq_norm = folded.center_sq_norm + unseen_sq_norm * scale * scale;
    for (std::size_t i = 0; i < d; ++i) {
        const double z = std::fabs(static_cast<double>(row[i]));
        if (z == 0) continue;
        form += std::fabs(folded.linear[i]) * z;
        sq_norm += z * scale * (z + 2 * std::fabs(static_cast<double>(model.center[i]))) * scale;
        for (std::size_t j = i; j < d; ++j) {
            const double q = std::fabs(static_cast<double>(model.triangle[i * d + j]));
            form += scale * scale * q * z * std::fabs(static_cast<double>(row[j]));
        }
    }
    half_s = folded.half_theta * sq_norm;
}

template <class Real, class Index>
void check_sparse(const artifact_writer::Model& model, const ModelView& view, Random& random, bool exact) {
    const Exact<double> fold_memory(folded_doubles(view.n_features));
    const FoldedModel folded = fold_center(view, fold_memory.data.get());
    const auto rows = random_sparse<Real, Index>(model, random, exact);
    const std::size_t d = model.n_features(), n = rows.n_rows();
    for (const TargetTable* kernels : dispatch::runnable_targets()) {
        const Prepared prepared(view, *kernels);
        Numbers values, part;
        CHECK_EQ(rows.decided(prepared, 0, n, values), Status::ok);
        for (std::size_t i = 0; i < n; ++i) {
            Terms terms = terms_of(model, rows.seen[i].data());
            terms.half_s += static_cast<long double>(model.gamma) * rows.unseen_sq_norm[i];
            double half_s = static_cast<double>(terms.half_s);
            const bool densified =
                rows.unseen_sq_norm[i] == 0 && rows.n_seen[i] * rows.n_seen[i] * (kernels->block_rows / 3) > d * d;
            const std::string where = "sparse row " + std::to_string(i) + " with " + std::to_string(rows.n_seen[i]);
            if (densified) {
                expect_near(model, terms, values[i], 0x1p-24, 0x1p-23, half_s, *kernels, where + ", densified");
            } else if (exact) {
                const double form = static_cast<double>(terms.inner);
                const double expected = half_s > 87.33 ? 0 : model.output_scale * std::exp(-half_s) * form;
                EXPECT(values[i] == expected, *kernels,
                       "d " + std::to_string(d) + ", " + where + ": " + check::show(values[i]) +
                           " instead of exactly " + check::show(expected));
            } else {
                sparse_moduli(model, folded, rows.seen[i], rows.unseen_sq_norm[i], terms.moduli, half_s);
                expect_near(model, terms, values[i], 0x1p-53, 0x1p-51, half_s, *kernels, where);
            }
        }
        for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{5}, n - 3}) {
            const std::size_t first = size == 0 ? n : n - size - 2;
            CHECK_EQ(rows.decided(prepared, first, size, part), Status::ok);
            EXPECT(same_bits(part.data(), values.data() + first, size), *kernels,
                   "sparse rows depend on the rows beside them, d " + std::to_string(d));
        }
    }
}

template <class Real, class Index>
void check_refusals(const TargetTable& kernels, const ModelView& view) {
    const std::size_t d = view.n_features;
    const std::int64_t d_signed = static_cast<std::int64_t>(d);
    const Prepared prepared(view, kernels);
    Numbers values;
    using Pairs = std::vector<std::pair<std::int64_t, Real>>;
    const auto expect_status = [&](const Pairs& pairs, Status expected, const std::string& what) {
        Sparse<Real, Index> rows;
        for (int i = 0; i < 4; ++i) {
            rows.start_row(d);
            if (i < 3) rows.add(0, Real{1});
        }
        for (const auto& [column, value] : pairs) rows.add(column, value);
        const Status status = rows.decided(prepared, 0, 4, values);
        EXPECT(status == expected, kernels, "sparse " + what + ": " + message(status));
        if (expected == Status::ok)
            EXPECT(values[3] == view.decisions[0].intercept, kernels, what + " gives " + check::show(values[3]));
    };
    const auto everywhere = [&](Real number, Status expected) {
        for (const std::int64_t column :
             {before_all, std::int64_t{-1}, std::int64_t{0}, d_signed - 1, d_signed, after_all}) {
            expect_status({{column, number}}, expected, check::show(number) + " at " + std::to_string(column));
        }
    };
    Pairs full;
    for (std::int64_t j = 0; j < d_signed; ++j) full.emplace_back(j, Real{1});
    constexpr Real nan = std::numeric_limits<Real>::quiet_NaN(), inf = std::numeric_limits<Real>::infinity();
    for (const Real odd : {nan, inf, -inf}) {
        everywhere(odd, Status::not_finite);
        for (std::size_t j = 0; j < d; ++j) {
            full[j].second = odd;
            expect_status(full, Status::not_finite, "densified " + check::show(odd));
            full[j].second = Real{1};
        }
    }
    for (const double huge : {1e20, -1e20, 3e38, -3e38, 1e300, -1e300, DBL_MAX}) {
        if (std::fabs(huge) > static_cast<double>(std::numeric_limits<Real>::max())) continue;
        const Real value = static_cast<Real>(huge);
        everywhere(value, Status::ok);
        for (std::size_t j = 0; j < d; ++j) full[j].second = j % 2 == 0 ? value : -value;
        expect_status(full, Status::ok, "full row of " + check::show(huge));
    }
    const std::pair<std::int64_t, std::int64_t> unsorted[] = {
        {0, 0}, {1, 0}, {d_signed + 1, d_signed}, {d_signed, -1}, {-1, -1}};
    for (const auto& [first, second] : unsorted)
        expect_status({{first, Real{1}}, {second, Real{1}}}, Status::unsorted_indices, std::to_string(first));
}

}  // namespace

TEST(sparse_exact_to_the_last_bit) {
    Random random(7);
    for (const std::size_t d : feature_counts()) {
        const artifact_writer::Model model = exact_model(d, random);
        const Opened opened(model);
        check_sparse<float, std::int32_t>(model, opened.view, random, true);
        check_sparse<double, std::int64_t>(model, opened.view, random, true);
    }
}

TEST(sparse_within_rounding) {
    Random random(8);
    for (const std::size_t d : feature_counts()) {
        artifact_writer::Model model = random_model(d, random);
        if (d % 3 == 0) std::fill(model.center.begin(), model.center.end(), 0.0f);
        const Opened opened(model);
        check_sparse<float, std::int64_t>(model, opened.view, random, false);
        check_sparse<double, std::int32_t>(model, opened.view, random, false);
    }
}

TEST(sparse_nan_infinity_overflow_and_order) {
    Random random(9);
    for (const std::size_t d : {1u, 2u, 9u, 16u, 37u}) {
        const artifact_writer::Model model = random_model(d, random);
        const Opened opened(model);
        for (const TargetTable* kernels : dispatch::runnable_targets()) {
            check_refusals<float, std::int32_t>(*kernels, opened.view);
            check_refusals<float, std::int64_t>(*kernels, opened.view);
            check_refusals<double, std::int32_t>(*kernels, opened.view);
            check_refusals<double, std::int64_t>(*kernels, opened.view);
        }
    }
}

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "check.hpp"
#include "kernel_models.hpp"

// Every target's kernel for sparse rows, and the folding of the center, against long double.

using namespace kernel_models;

namespace {

template <class Real, class Index>
dispatch::EvaluateFunction<CsrRows<Real, Index>> csr_function(const TargetTable& kernels) {
    if constexpr (std::is_same_v<Real, float>) {
        if constexpr (sizeof(Index) == 4)
            return kernels.evaluate_csr_f32_i32;
        else
            return kernels.evaluate_csr_f32_i64;
    } else {
        if constexpr (sizeof(Index) == 4)
            return kernels.evaluate_csr_f64_i32;
        else
            return kernels.evaluate_csr_f64_i64;
    }
}

template <class T>
std::unique_ptr<T[]> exact_copy(const std::vector<T>& values) {
    std::unique_ptr<T[]> copy(new T[values.size()]);
    std::copy(values.begin(), values.end(), copy.get());
    return copy;
}
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

template <class Real, class Index>
Status decide(const TargetTable& kernels, const Prepared& prepared, const Sparse<Real, Index>& rows, std::size_t first,
              std::size_t n, std::vector<double>& result) {
    const auto values = exact_copy(rows.values);
    const auto columns = exact_copy(rows.columns);
    const auto begin = rows.row_starts.begin() + static_cast<std::ptrdiff_t>(first);
    const auto starts = exact_copy(std::vector<Index>(begin, begin + static_cast<std::ptrdiff_t>(n) + 1));
    const std::unique_ptr<double[]> decided(new double[n]);
    const CsrRows<Real, Index> view{values.get(), columns.get(), starts.get(), n};
    const Status status = prepared.evaluate(csr_function<Real, Index>(kernels), view, many_rows,
                                            {{decided.get(), n}, nullptr, nullptr, nullptr});
    result.assign(decided.get(), decided.get() + n);
    return status;
}

struct Folding {
    std::unique_ptr<double[]> memory;
    FoldedModel folded;

    explicit Folding(const ModelView& model) : memory(new double[folded_doubles(model.n_features)]) {
        const FoldedModel terms = fold_center(model, memory.get());
        folded = terms;
    }
};

/// Moduli of the sums that a sparse row goes through in float64: the folded form, and half the scaled squared distance.
template <class Real>
void sparse_moduli(const artifact_writer::Model& model, const FoldedModel& folded, const std::vector<Real>& row,
                   double unseen_sq_norm, double& form, double& half_s) {
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
            const double q = std::fabs(static_cast<double>(model.expansions[0].triangle[i * d + j]));
            form += scale * scale * q * z * std::fabs(static_cast<double>(row[j]));
        }
    }
    half_s = folded.half_theta * sq_norm;
}

template <class Real, class Index>
void check_sparse(const artifact_writer::Model& model, const ModelView& view, Random& random, bool exact) {
    const Folding folding(view);
    const Sparse<Real, Index> rows = random_sparse<Real, Index>(model, random, exact);
    const std::size_t d = model.n_features(), n = rows.n_rows();
    std::vector<Terms> all_terms;
    for (std::size_t i = 0; i < n; ++i) {
        all_terms.push_back(terms_of(model, rows.seen[i].data()));
        all_terms.back().half_s += static_cast<long double>(model.gamma) * rows.unseen_sq_norm[i];
    }
    for (const TargetTable* kernels : dispatch::runnable_targets()) {
        const Prepared prepared(*kernels, view);
        std::vector<double> values, part;
        CHECK_EQ(decide(*kernels, prepared, rows, 0, n, values), Status::ok);
        for (std::size_t i = 0; i < n; ++i) {
            const Terms& terms = all_terms[i];
            const std::size_t lanes_here = kernels->block_rows / 3;
            const bool densified = rows.unseen_sq_norm[i] == 0 && rows.n_seen[i] * rows.n_seen[i] * lanes_here > d * d;
            const std::string where = "sparse row " + std::to_string(i) + " with " + std::to_string(rows.n_seen[i]) +
                                      (densified ? " densified" : "");
            if (exact && !densified) {
                const double expected = model.expansions[0].output_scale *
                                        std::exp(-static_cast<double>(terms.half_s)) * static_cast<double>(terms.inner);
                EXPECT(values[i] == (terms.half_s > 87.33L ? 0 : expected), *kernels,
                       "d " + std::to_string(d) + ", " + where + ": " + check::show(values[i]) +
                           " instead of exactly " + check::show(expected));
                continue;
            }
            Terms widened = terms;
            double form_moduli, half_s_moduli;
            sparse_moduli(model, folding.folded, rows.seen[i], rows.unseen_sq_norm[i], form_moduli, half_s_moduli);
            if (!densified) widened.moduli = form_moduli;
            const double bound = densified ? bound_of(model, terms, 0x1p-24, 0x1p-23, static_cast<double>(terms.half_s))
                                           : bound_of(model, widened, 0x1p-53, 0x1p-51, half_s_moduli);
            expect_near(model, terms, values[i], bound, *kernels, where);
        }
        for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{5}, n - 3}) {
            const std::size_t first = size == 0 ? n : n - size - 2;
            CHECK_EQ(decide(*kernels, prepared, rows, first, size, part), Status::ok);
            EXPECT(same_bits(part, values.data() + first), *kernels,
                   "sparse rows depend on the rows beside them, d " + std::to_string(d));
        }
    }
}

template <class Real, class Index>
void check_sparse_refusals(const TargetTable& kernels, const ModelView& view) {
    const std::size_t d = view.n_features;
    const std::int64_t d_signed = static_cast<std::int64_t>(d);
    std::vector<double> values;
    const auto status_of = [&](const std::vector<std::pair<std::int64_t, Real>>& pairs) {
        Sparse<Real, Index> rows;
        for (int i = 0; i < 3; ++i) {
            rows.start_row(d);
            rows.add(0, Real{1});
        }
        rows.start_row(d);
        for (const auto& [column, value] : pairs) rows.add(column, value);
        return decide(kernels, Prepared(kernels, view), rows, 0, 4, values);
    };
    constexpr Real nan = std::numeric_limits<Real>::quiet_NaN(), inf = std::numeric_limits<Real>::infinity();
    for (const Real odd : {nan, inf, -inf}) {
        for (const std::int64_t column :
             {before_all, std::int64_t{-1}, std::int64_t{0}, d_signed - 1, d_signed, after_all}) {
            EXPECT(status_of({{column, odd}}) == Status::not_finite, kernels,
                   "sparse " + check::show(odd) + " at " + std::to_string(column));
        }
        std::vector<std::pair<std::int64_t, Real>> full;
        for (std::int64_t j = 0; j < d_signed; ++j) full.emplace_back(j, Real{1});
        for (std::size_t j = 0; j < d; ++j) {
            full[j].second = odd;
            EXPECT(status_of(full) == Status::not_finite, kernels, "densified " + check::show(odd));
            full[j].second = Real{1};
        }
    }
    for (const double huge : {1e20, -1e20, 3e38, -3e38, 1e300, -1e300, DBL_MAX}) {
        if (std::fabs(huge) > static_cast<double>(std::numeric_limits<Real>::max())) continue;
        const Real value = static_cast<Real>(huge);
        for (const std::int64_t column :
             {before_all, std::int64_t{-1}, std::int64_t{0}, d_signed - 1, d_signed, after_all}) {
            EXPECT(
                status_of({{column, value}}) == Status::ok && values[3] == view.decisions[0].intercept, kernels,
                "sparse " + check::show(huge) + " at " + std::to_string(column) + " gives " + check::show(values[3]));
        }
        std::vector<std::pair<std::int64_t, Real>> full;
        for (std::int64_t j = 0; j < d_signed; ++j) full.emplace_back(j, j % 2 == 0 ? value : -value);
        EXPECT(status_of(full) == Status::ok && values[3] == view.decisions[0].intercept, kernels,
               "full row of " + check::show(huge) + " gives " + check::show(values[3]));
    }
    const Real one{1};
    EXPECT(status_of({{0, one}, {0, one}}) == Status::unsorted_indices, kernels, "column 0 twice");
    EXPECT(status_of({{1, one}, {0, one}}) == Status::unsorted_indices, kernels, "1 before 0");
    EXPECT(status_of({{d_signed + 1, one}, {d_signed, one}}) == Status::unsorted_indices, kernels, "unseen");
    EXPECT(status_of({{d_signed, one}, {-1, one}}) == Status::unsorted_indices, kernels, "unseen on both sides");
    EXPECT(status_of({{-1, one}, {-1, one}}) == Status::unsorted_indices, kernels, "-1 twice");
}

}  // namespace

TEST(sparse_exact_to_the_last_bit) {
    Random random(7);
    for (const std::size_t d : feature_counts()) {
        artifact_writer::Model model = exact_model(d, random);
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
        check_sparse<float, std::int32_t>(model, opened.view, random, false);
        check_sparse<float, std::int64_t>(model, opened.view, random, false);
        check_sparse<double, std::int32_t>(model, opened.view, random, false);
        check_sparse<double, std::int64_t>(model, opened.view, random, false);
    }
}

TEST(sparse_nan_infinity_overflow_and_order) {
    Random random(9);
    for (const std::size_t d : std::vector<std::size_t>{1, 2, 9, 16, 37}) {
        artifact_writer::Model model = random_model(d, random);
        const Opened opened(model);
        for (const TargetTable* kernels : dispatch::runnable_targets()) {
            check_sparse_refusals<float, std::int32_t>(*kernels, opened.view);
            check_sparse_refusals<float, std::int64_t>(*kernels, opened.view);
            check_sparse_refusals<double, std::int32_t>(*kernels, opened.view);
            check_sparse_refusals<double, std::int64_t>(*kernels, opened.view);
        }
    }
}

#include <cfloat>

#include "kernel_models.hpp"

// Every target's kernels for dense rows, against long double.

using namespace kernel_models;

namespace {

// --- rows in every layout ---

struct Layout {
    const char* name;
    std::ptrdiff_t row_stride, column_stride;
};

std::vector<Layout> layouts_of(std::size_t n_rows, std::size_t d) {
    const std::ptrdiff_t n = static_cast<std::ptrdiff_t>(n_rows), m = static_cast<std::ptrdiff_t>(d);
    return {{"C order", m, 1},
            {"F order", 1, n},
            {"rows backwards", -m, 1},
            {"columns backwards", m, -1},
            {"both backwards", -1, -n},
            {"padded rows", m + 3, 1},
            {"every second column", 2 * m, 2},
            {"F order, padded", 1, n + 5}};
}

/// Rows in a layout, in heap memory that starts at the first used element and ends after the last one. Elements in
/// between are NaN.
template <class Real>
struct Matrix {
    std::unique_ptr<Real[]> memory;
    DenseRows<Real> view;

    Matrix(const Rows& rows, const Layout& layout) {
        const std::ptrdiff_t n = static_cast<std::ptrdiff_t>(rows.size());
        const std::ptrdiff_t d = static_cast<std::ptrdiff_t>(rows.at(0).size());
        const std::ptrdiff_t by_rows = (n - 1) * layout.row_stride, by_columns = (d - 1) * layout.column_stride;
        const std::ptrdiff_t lowest = std::min<std::ptrdiff_t>(by_rows, 0) + std::min<std::ptrdiff_t>(by_columns, 0);
        const std::ptrdiff_t highest = std::max<std::ptrdiff_t>(by_rows, 0) + std::max<std::ptrdiff_t>(by_columns, 0);
        const std::size_t size = static_cast<std::size_t>(highest - lowest + 1);
        memory.reset(new Real[size]);
        std::fill_n(memory.get(), size, std::numeric_limits<Real>::quiet_NaN());
        Real* const origin = memory.get() - lowest;
        for (std::ptrdiff_t i = 0; i < n; ++i) {
            for (std::ptrdiff_t j = 0; j < d; ++j) {
                origin[i * layout.row_stride + j * layout.column_stride] =
                    static_cast<Real>(rows[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)]);
            }
        }
        view = {origin, rows.size(), layout.row_stride, layout.column_stride};
    }
    explicit Matrix(const Rows& rows) : Matrix(rows, layouts_of(rows.size(), rows.at(0).size())[0]) {}
};

/// Values of every row alone and in one batch, in C order.
template <class Real>
struct Both {
    Numbers alone, in_block;

    Both(const Prepared& prepared, const Rows& rows) {
        CHECK_EQ(decide(prepared, Matrix<Real>(rows).view, in_block, many_rows), Status::ok);
        Numbers value;
        for (const std::vector<double>& row : rows) {
            CHECK_EQ(decide(prepared, Matrix<Real>({row}).view, value), Status::ok);
            alone.push_back(value[0]);
        }
    }
};

std::vector<std::size_t> row_counts(const TargetTable& kernels, bool all) {
    const std::size_t block = kernels.block_rows, width = block / 3;
    if (!all) return {1, 5, width + 1, block, 3 * block + 7};
    return {1, 2, 3, 4, 5, width - 1, width, width + 1, 2 * width, block - 1, block, block + 1, 3 * block + 7};
}

/// A row has the same bits alone in any layout, and the same bits anywhere in any batch of any size and layout.
template <class Real>
void check_layouts(const TargetTable& kernels, const Prepared& prepared, const Rows& rows, const Both<Real>& expected) {
    const std::size_t d = rows[0].size();
    Numbers values;
    DenseRows<Real> view = Matrix<Real>({rows[0]}).view;
    view.n_rows = 0;
    EXPECT(decide(prepared, view, values) == Status::ok, kernels, "0 rows");
    for (const std::size_t n : row_counts(kernels, d <= 130)) {
        const std::size_t first = n * 5 % (rows.size() - n + 1);  // not always the same place in the block
        const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(first);
        const Rows part(begin, begin + static_cast<std::ptrdiff_t>(n));
        const double* const in_block = &expected.in_block[first];
        for (const Layout& layout : layouts_of(n, d)) {
            const Matrix<Real> matrix(part, layout);
            const std::string where = "d " + std::to_string(d) + ", " + std::to_string(n) + " rows, " + layout.name;
            const Status blocks = decide(prepared, matrix.view, values, many_rows);
            EXPECT(blocks == Status::ok && same_bits(values.data(), in_block, n), kernels, where + ", by blocks");
            const Status any = decide(prepared, matrix.view, values);
            const double* const own = n <= 4 ? &expected.alone[first] : in_block;
            EXPECT(any == Status::ok && same_bits(values.data(), own, n), kernels, where);
        }
        const Matrix<Real> repeated({rows[first]});
        view = repeated.view;
        view.n_rows = n;
        view.row_stride = 0;
        decide(prepared, view, values, many_rows);
        for (const double value : values) {
            EXPECT(same_bits(&value, in_block, 1), kernels, "d " + std::to_string(d) + ", stride 0");
        }
    }
}

template <class Real>
void check_dense(const artifact_writer::Model& model, const Rows& rows, bool exact) {
    const Opened opened(model);
    for (const TargetTable* kernels : dispatch::runnable_targets()) {
        const Prepared prepared(opened.view, *kernels);
        const Both<Real> both(prepared, rows);
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const Terms terms = terms_of(model, std::vector<Real>(rows[i].begin(), rows[i].end()).data());
            float x[16] = {-static_cast<float>(terms.half_s)}, gaussian[16];
            kernels->exp_nonpositive(x, gaussian, 16);
            const double expected =
                model.output_scale * static_cast<double>(gaussian[0]) * static_cast<double>(terms.inner);
            for (const double value : {both.alone[i], both.in_block[i]}) {
                const std::string where = "row " + std::to_string(i);
                if (!exact) {
                    const double half_s = static_cast<double>(terms.half_s);
                    expect_near(model, terms, value, 0x1p-24, 0x1p-23, half_s, *kernels, where);
                } else {
                    EXPECT(value == expected, *kernels,
                           "d " + std::to_string(rows[i].size()) + ", " + where + ": " + check::show(value) +
                               " instead of exactly " + check::show(expected));
                }
            }
        }
        if (!exact) check_layouts(*kernels, prepared, rows, both);
    }
}

/// Rows around the center: the center itself, the origin, then a sixth of them beyond the reach of the Gaussian factor.
Rows random_rows(const artifact_writer::Model& model, std::size_t n_rows, Random& random) {
    const std::size_t d = model.n_features();
    const double half_theta = model.gamma / model.input_scale / model.input_scale;
    Rows rows;
    for (std::size_t i = 0; i < n_rows; ++i) {
        const double half_s = i % 6 == 5 ? uniform(random, 80, 120) : uniform(random, 0, 4);
        const double radius = std::sqrt(3 * half_s / half_theta / static_cast<double>(d));
        std::vector<double> row(d);
        for (std::size_t j = 0; j < d; ++j) {
            const double u = i == 0 ? 0 : radius * uniform(random, -1, 1);
            row[j] = i == 1 ? 0 : static_cast<double>(model.center[j]) + u / model.input_scale;
        }
        rows.push_back(row);
    }
    return rows;
}

/// Status and values of n rows of which one has one odd number, in every position of that number.
template <class Real>
void check_odd_numbers(const TargetTable& kernels, const artifact_writer::Model& model, const ModelView& view,
                       const std::vector<Real>& odd_numbers, Status expected) {
    const std::size_t d = model.n_features();
    const Prepared prepared(view, kernels);
    Random random(4);
    const Rows good = random_rows(model, kernels.block_rows + 2, random);
    const Both<Real> both(prepared, good);
    Numbers values;
    for (const std::size_t n : {std::size_t{1}, std::size_t{3}, std::size_t{6}, kernels.block_rows + 2}) {
        for (std::size_t k = 0; k < d * odd_numbers.size(); ++k) {
            const std::size_t j = k % d, i = (7 * j + 1) % n;
            const Real odd = odd_numbers[k / d];
            Rows rows(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n));
            rows[i][j] = static_cast<double>(odd);
            for (const Layout& layout : {layouts_of(n, d)[0], layouts_of(n, d)[1]}) {
                const Status status = decide(prepared, Matrix<Real>(rows, layout).view, values);
                const std::string where = check::show(odd) + " at row " + std::to_string(i) + " of " +
                                          std::to_string(n) + ", column " + std::to_string(j) + " of " +
                                          std::to_string(d);
                EXPECT(status == expected, kernels, where + ": " + message(status));
                for (std::size_t r = 0; expected == Status::ok && r < n; ++r) {
                    const double right = r == i ? model.intercept : (n <= 4 ? both.alone : both.in_block)[r];
                    EXPECT(same_bits(&values[r], &right, 1), kernels, where + " gives " + check::show(values[r]));
                }
            }
        }
    }
}

}  // namespace

TEST(dense_exact_to_the_last_bit) {
    Random random(1);
    for (const std::size_t d : feature_counts()) {
        const artifact_writer::Model model = exact_model(d, random);
        Rows rows(53);  // whose scaled coordinates are -1/2, -1/4, 0, 1/4 or 1/2
        for (std::vector<double>& row : rows) {
            for (const float center : model.center)
                row.push_back(static_cast<double>(center) + (static_cast<double>(random() % 5) - 2) / 8);
        }
        check_dense<float>(model, rows, true);
        check_dense<double>(model, rows, true);
    }
}

TEST(dense_within_rounding_in_every_layout) {
    Random random(2);
    std::size_t most_rows = 0;
    for (const TargetTable* kernels : dispatch::runnable_targets())
        most_rows = std::max(most_rows, 3 * kernels->block_rows + 7);
    for (const std::size_t d : feature_counts()) {
        const artifact_writer::Model model = random_model(d, random);
        const Rows rows = random_rows(model, most_rows, random);
        check_dense<float>(model, rows, false);
        check_dense<double>(model, rows, false);
    }
}

TEST(dense_nan_infinity_and_overflow) {
    constexpr float infinite = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    Random random(5);
    for (const TargetTable* kernels : dispatch::runnable_targets()) {
        for (const std::size_t d : {1u, 2u, 3u, 4u, 5u, 8u, 9u, 15u, 16u, 17u, 33u, 40u}) {
            const artifact_writer::Model model = random_model(d, random);
            const Opened opened(model);
            check_odd_numbers<float>(*kernels, model, opened.view, {infinite, -infinite, nan, -nan},
                                     Status::not_finite);
            check_odd_numbers<double>(*kernels, model, opened.view, {infinite, -infinite, nan, -nan},
                                      Status::not_finite);
            check_odd_numbers<float>(*kernels, model, opened.view, {1e20f, -1e20f, 3e38f, -3e38f, 1e5f}, Status::ok);
            check_odd_numbers<double>(*kernels, model, opened.view, {1e300, -1e300, DBL_MAX, -1e150, 3e38, 1e39},
                                      Status::ok);
        }
    }
}

TEST(dense_overflow_does_not_hide_nan) {
    Random random(12);
    const artifact_writer::Model model = random_model(21, random);
    const Opened opened(model);
    Numbers values;
    for (const TargetTable* kernels : dispatch::runnable_targets()) {
        const Prepared prepared(opened.view, *kernels);
        for (const std::size_t n : {std::size_t{2}, kernels->block_rows}) {
            Rows rows = random_rows(model, n, random);
            rows[n - 2].assign(21, 3e38);
            CHECK_EQ(decide(prepared, Matrix<float>(rows).view, values), Status::ok);
            CHECK_EQ(values[n - 2], model.intercept);
            for (const std::size_t i : {n - 2, n - 1}) {
                Rows bad = rows;
                bad[i][20] = std::numeric_limits<double>::quiet_NaN();
                CHECK_EQ(decide(prepared, Matrix<float>(bad).view, values), Status::not_finite);
            }
        }
    }
}

TEST(dense_all_overflow_and_opposite_centers) {
    for (const float huge : {3e38f, FLT_MAX, 1e19f}) {
        Random random(6);
        artifact_writer::Model model = random_model(11, random);
        std::fill(model.center.begin(), model.center.end(), -huge);
        model.gamma = 0x1p199;
        model.input_scale = 0x1p100;
        const Opened opened(model);
        for (const TargetTable* kernels : dispatch::runnable_targets()) {
            for (const std::size_t n : {std::size_t{2}, kernels->block_rows}) {
                const Rows rows(n, std::vector<double>(11, static_cast<double>(huge)));
                Numbers values;
                CHECK_EQ(decide(Prepared(opened.view, *kernels), Matrix<float>(rows).view, values), Status::ok);
                for (const double value : values) CHECK_EQ(value, model.intercept);
            }
        }
    }
}

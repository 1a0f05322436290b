#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "check.hpp"
#include "kernel_models.hpp"

// Every target's exp and its kernels for dense rows, against double and long double.

using namespace kernel_models;

namespace {

float float_of(std::uint32_t bits) {
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

// Of many arguments every n-th is tried: APPROXSVM_EXHAUSTIVE, or 25.
std::uint32_t exhaustive_step() {
    const char* const wish = std::getenv("APPROXSVM_EXHAUSTIVE");
    const int step = wish == nullptr ? 0 : std::atoi(wish);
    return step > 0 ? static_cast<std::uint32_t>(step) : 25;
}

// --- exp ---

constexpr std::uint32_t sign_bit = 0x80000000u;

std::uint32_t modulus_bits(float x) {
    return static_cast<std::uint32_t>(bits_of(std::fabs(x)));
}

struct ExpError {
    double ulp = 0, relative = 0;
    float at = 0;

    void add(const ExpError& other) {
        relative = std::max(relative, other.relative);
        if (other.ulp > ulp) ulp = other.ulp, at = other.at;
    }
};

double double_of(std::uint64_t bits) {
    double x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

/// exp(x) for -0x1p-26 < x <= 0 needs two terms only: 1 + x is right to 2^-53.
double exact_exp(float x) {
    return x > -0x1p-26f ? 1.0 + static_cast<double>(x) : std::exp(static_cast<double>(x));
}

/// The worst errors over x = -0, then every step-th float32 up to `last` in modulus, from `first` on; one for each
/// target. The reference is computed once for all of them.
std::vector<ExpError> exp_errors(std::uint32_t first, std::uint32_t last, std::uint32_t step) {
    constexpr std::size_t n = 4096;
    const auto& targets = dispatch::runnable_targets();
    std::vector<ExpError> worst(targets.size());
    std::vector<float> x(n), y(n);
    std::vector<double> exact(n), per_ulp(n), per_unit(n);
    for (std::uint64_t start = first; start <= last; start += std::uint64_t{n} * step) {
        for (std::size_t i = 0; i < n; ++i) {
            const std::uint64_t modulus = std::min<std::uint64_t>(start + i * std::uint64_t{step}, last);
            x[i] = float_of(sign_bit | static_cast<std::uint32_t>(modulus));
            exact[i] = exact_exp(x[i]);
            // The reciprocal of a float32 unit in the last place, 2^(exponent - 23); all of them are normal.
            const std::uint64_t exponent = bits_of(exact[i]) >> 52;
            per_ulp[i] = double_of((2 * std::uint64_t{1023} + 23 - exponent) << 52);
            per_unit[i] = 1.0 / exact[i];
        }
        for (std::size_t t = 0; t < targets.size(); ++t) {
            targets[t]->exp_nonpositive(x.data(), y.data(), n);
            double ulp = 0, relative = 0;
            for (std::size_t i = 0; i < n; ++i) {
                const double error = std::fabs(static_cast<double>(y[i]) - exact[i]);
                ulp = std::max(ulp, error * per_ulp[i]);
                relative = std::max(relative, error * per_unit[i]);
            }
            if (!(ulp <= worst[t].ulp)) {
                for (std::size_t i = 0; i < n; ++i) {
                    const double error = std::fabs(static_cast<double>(y[i]) - exact[i]);
                    if (error * per_ulp[i] == ulp) worst[t].at = x[i];
                }
                worst[t].ulp = ulp;
            }
            worst[t].relative = std::max(worst[t].relative, relative);
        }
    }
    return worst;
}

void check_exp_errors(const std::vector<ExpError>& worst) {
    const auto& targets = dispatch::runnable_targets();
    for (std::size_t t = 0; t < targets.size(); ++t) {
        std::printf("  exp, %-8s worst error %.4f ULP at %.9g, relative %.4f * 2^-23\n", targets[t]->name, worst[t].ulp,
                    static_cast<double>(worst[t].at), worst[t].relative * 0x1p23);
        EXPECT(worst[t].ulp <= 1.5, *targets[t], "exp is off by " + check::show(worst[t].ulp) + " ULP");
        EXPECT(worst[t].relative < 0x1p-23, *targets[t],
               "exp has a relative error of " + check::show(worst[t].relative));
    }
}

}  // namespace

TEST(exp_over_its_range) {
    const std::uint32_t step = exhaustive_step(), last = modulus_bits(exp_min_argument);
    std::printf("  exp over float32 in [%.9g, -0], every %u.; APPROXSVM_EXHAUSTIVE=1 for all\n",
                static_cast<double>(exp_min_argument), static_cast<unsigned>(step));
    // Tiny arguments are cheap: the cut gives two threads equal work.
    const std::uint32_t cut = modulus_bits(0.5f);
    std::vector<ExpError> worst, rest;
    std::thread other([&] { rest = exp_errors(cut + 1, last, step); });
    worst = exp_errors(0, cut, step);
    other.join();
    for (std::size_t t = 0; t < worst.size(); ++t) worst[t].add(rest[t]);
    check_exp_errors(worst);
}

TEST(exp_where_reduction_turns) {
    // The integer of the range reduction changes at odd multiples of ln 2 / 2; r is 0 at even ones.
    std::vector<ExpError> worst(dispatch::runnable_targets().size());
    const auto add_neighbours = [&](std::uint32_t modulus) {
        const std::uint32_t first = modulus > 3000 ? modulus - 3000 : 0;
        const std::uint32_t last = std::min(modulus + 3000, modulus_bits(exp_min_argument));
        const std::vector<ExpError> near = exp_errors(first, last, 1);
        for (std::size_t t = 0; t < worst.size(); ++t) worst[t].add(near[t]);
    };
    for (int k = 0; k * 0.34657359 < 87.33; ++k) add_neighbours(modulus_bits(static_cast<float>(k * 0.34657359)));
    for (const float x : {0.0f, FLT_MIN, FLT_TRUE_MIN, 0x1p-25f, 1.0f, exp_min_argument})
        add_neighbours(modulus_bits(x));
    check_exp_errors(worst);
}

TEST(exp_beyond_its_range) {
    const std::vector<float> arguments = {-87.34f,  -88.0f,        -103.0f,          -104.0f, -1e3f, -1e10f,
                                          -FLT_MAX, -infinite,     not_a_number,     -0.0f,   0.0f,  -FLT_TRUE_MIN,
                                          -FLT_MIN, -not_a_number, exp_min_argument, -1.0f};
    CHECK_EQ(arguments.size() % 16, std::size_t{0});
    for (const TargetTable* kernels : dispatch::runnable_targets()) {
        std::vector<float> result(arguments.size(), -1.0f);
        kernels->exp_nonpositive(arguments.data(), result.data(), result.size());
        const float smallest = result[14];
        EXPECT(smallest >= FLT_MIN && smallest < 1.2e-38f, *kernels, "exp(-87.33) is " + check::show(smallest));
        for (const std::size_t i : std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 13}) {
            EXPECT(result[i] == smallest, *kernels,
                   "exp(" + check::show(arguments[i]) + ") is " + check::show(result[i]));
        }
        for (const std::size_t i : std::vector<std::size_t>{9, 10, 11, 12}) {
            EXPECT(result[i] == 1.0f, *kernels, "exp(" + check::show(arguments[i]) + ") is not 1");
        }
    }
}

namespace {

/// Values of dense rows, with a result of exact size, in a call of so many rows; 0 for as many as there are.
template <class Real>
Status decide(const TargetTable& kernels, const Prepared& prepared, const DenseRows<Real>& rows,
              std::vector<double>& values, std::size_t n_rows_in_call = 0) {
    const std::unique_ptr<double[]> exact(new double[rows.n_rows]);
    const std::size_t n = n_rows_in_call > 0 ? n_rows_in_call : rows.n_rows;
    Status status;
    if constexpr (std::is_same_v<Real, float>) {
        status = prepared.evaluate(kernels.evaluate_dense_f32, rows, n,
                                   {{exact.get(), rows.n_rows}, nullptr, nullptr, nullptr});
    } else {
        status = prepared.evaluate(kernels.evaluate_dense_f64, rows, n,
                                   {{exact.get(), rows.n_rows}, nullptr, nullptr, nullptr});
    }
    values.assign(exact.get(), exact.get() + rows.n_rows);
    return status;
}

/// Those of a model that is evaluated once.
template <class Real>
Status decide(const TargetTable& kernels, const ModelView& model, const DenseRows<Real>& rows,
              std::vector<double>& values, std::size_t n_rows_in_call = 0) {
    return decide(kernels, Prepared(kernels, model), rows, values, n_rows_in_call);
}

std::vector<std::size_t> row_counts(const TargetTable& kernels, bool all) {
    const std::size_t block = kernels.block_rows, width = block / 3;
    if (!all) return {1, 5, width + 1, block, 3 * block + 7};
    return {0, 1, 2, 3, 4, 5, width - 1, width, width + 1, 2 * width, block - 1, block, block + 1, 3 * block + 7};
}

std::size_t most_rows() {
    std::size_t most = 0;
    for (const TargetTable* kernels : dispatch::runnable_targets()) most = std::max(most, 3 * kernels->block_rows + 7);
    return most;
}
/// A row has the same bits alone in any layout, and the same bits anywhere in any batch of any size and layout.
template <class Real>
void check_layouts(const TargetTable& kernels, const ModelView& model, const Rows& rows,
                   const std::vector<double>& alone, const std::vector<double>& in_block) {
    const std::size_t d = model.n_features;
    const Prepared prepared(kernels, model);
    std::vector<double> values;
    for (const std::size_t n : row_counts(kernels, d <= 130)) {
        if (n == 0) {
            const Matrix<Real> one(rows, 1, layouts_of(1, d)[0]);
            DenseRows<Real> none = one.view();
            none.n_rows = 0;
            EXPECT(decide(kernels, prepared, none, values) == Status::ok, kernels, "0 rows");
            continue;
        }
        const std::size_t first = n * 5 % (rows.size() - n + 1);  // not always the same place in the block
        const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(first);
        const Rows part(begin, begin + static_cast<std::ptrdiff_t>(n));
        for (const Layout& layout : layouts_of(n, d)) {
            const Matrix<Real> matrix(part, n, layout);
            const std::string where = "d " + std::to_string(d) + ", " + std::to_string(n) + " rows, " + layout.name +
                                      (sizeof(Real) == 4 ? ", float32" : ", float64");
            const Status blocks = decide(kernels, prepared, matrix.view(), values, many_rows);
            EXPECT(blocks == Status::ok && same_bits(values, &in_block[first]), kernels, where + ", by blocks");
            const Status any = decide(kernels, prepared, matrix.view(), values);
            EXPECT(any == Status::ok && same_bits(values, n <= 4 ? &alone[first] : &in_block[first]), kernels, where);
        }
        const Matrix<Real> repeated({rows[first]}, 1, layouts_of(1, d)[0]);
        DenseRows<Real> view = repeated.view();
        view.n_rows = n;
        view.row_stride = 0;
        decide(kernels, prepared, view, values, many_rows);
        for (const double value : values) {
            EXPECT(bits_of(value) == bits_of(in_block[first]), kernels, "d " + std::to_string(d) + ", stride 0");
        }
    }
}

/// Values of every row alone and in one batch, in C order.
template <class Real>
void decide_both(const TargetTable& kernels, const ModelView& model, const Rows& rows, std::vector<double>& alone,
                 std::vector<double>& in_block) {
    const Prepared prepared(kernels, model);
    const Matrix<Real> matrix(rows, rows.size(), layouts_of(rows.size(), model.n_features)[0]);
    CHECK_EQ(decide(kernels, prepared, matrix.view(), in_block, many_rows), Status::ok);
    alone.clear();
    std::vector<double> value;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const Matrix<Real> row({rows[i]}, 1, layouts_of(1, model.n_features)[0]);
        CHECK_EQ(decide(kernels, prepared, row.view(), value), Status::ok);
        alone.push_back(value[0]);
    }
}

template <class Real>
void check_random_dense(const artifact_writer::Model& model, const ModelView& view, const Rows& rows) {
    std::vector<Terms> terms;
    for (const auto& row : rows) terms.push_back(terms_of(model, narrowed<Real>(row).data()));
    for (const TargetTable* kernels : dispatch::runnable_targets()) {
        std::vector<double> alone, in_block;
        decide_both<Real>(*kernels, view, rows, alone, in_block);
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const double bound = bound_of(model, terms[i], 0x1p-24, 0x1p-23, static_cast<double>(terms[i].half_s));
            const std::string where = "row " + std::to_string(i) + (sizeof(Real) == 4 ? " float32" : " float64");
            expect_near(model, terms[i], alone[i], bound, *kernels, where + " alone");
            expect_near(model, terms[i], in_block[i], bound, *kernels, where + " in a block");
        }
        check_layouts<Real>(*kernels, view, rows, alone, in_block);
    }
}

template <class Real>
void check_exact_dense(const artifact_writer::Model& model, const ModelView& view, const Rows& rows) {
    for (const TargetTable* kernels : dispatch::runnable_targets()) {
        std::vector<double> alone, in_block;
        decide_both<Real>(*kernels, view, rows, alone, in_block);
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const Terms terms = terms_of(model, narrowed<Real>(rows[i]).data());
            float x[16] = {}, gaussian[16];
            x[0] = -static_cast<float>(terms.half_s);
            kernels->exp_nonpositive(x, gaussian, 16);
            const double expected =
                model.expansions[0].output_scale * static_cast<double>(gaussian[0]) * static_cast<double>(terms.inner);
            for (const double value : {alone[i], in_block[i]}) {
                EXPECT(value == expected, *kernels,
                       "d " + std::to_string(rows[i].size()) + ", row " + std::to_string(i) + ": " +
                           check::show(value) + " instead of exactly " + check::show(expected));
            }
        }
    }
}

}  // namespace

TEST(dense_exact_to_the_last_bit) {
    Random random(1);
    for (const std::size_t d : feature_counts()) {
        artifact_writer::Model model = exact_model(d, random);
        const Opened opened(model);
        const Rows rows = exact_rows(model, 53, random);
        check_exact_dense<float>(model, opened.view, rows);
        check_exact_dense<double>(model, opened.view, rows);
    }
}

TEST(dense_within_rounding_in_every_layout) {
    Random random(2);
    for (const std::size_t d : feature_counts()) {
        artifact_writer::Model model = random_model(d, random);
        const Opened opened(model);
        const Rows rows = random_rows(model, most_rows(), random);
        check_random_dense<float>(model, opened.view, rows);
        check_random_dense<double>(model, opened.view, rows);
    }
}

namespace {

/// Status and values of n rows of which one has one odd number, in every position of that number.
template <class Real>
void check_odd_number(const TargetTable& kernels, const artifact_writer::Model& model, const ModelView& view, Real odd,
                      Status expected) {
    const std::size_t d = model.n_features();
    const Prepared prepared(kernels, view);
    Random random(4);
    const Rows good = random_rows(model, kernels.block_rows + 2, random);
    std::vector<double> alone, in_block, values;
    decide_both<Real>(kernels, view, good, alone, in_block);
    for (const std::size_t n : {std::size_t{1}, std::size_t{3}, std::size_t{6}, kernels.block_rows + 2}) {
        for (std::size_t j = 0; j < d; ++j) {
            const std::size_t i = (7 * j + 1) % n;
            Rows rows(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n));
            rows[i][j] = static_cast<double>(odd);
            for (const Layout& layout : {layouts_of(n, d)[0], layouts_of(n, d)[1]}) {
                const Matrix<Real> matrix(rows, n, layout);
                const Status status = decide(kernels, prepared, matrix.view(), values);
                const std::string where = check::show(odd) + " at row " + std::to_string(i) + " of " +
                                          std::to_string(n) + ", column " + std::to_string(j) + " of " +
                                          std::to_string(d);
                EXPECT(status == expected, kernels, where + ": " + message(status));
                if (expected != Status::ok) continue;
                for (std::size_t k = 0; k < n; ++k) {
                    const double right = k == i ? model.intercept : (n <= 4 ? alone : in_block)[k];
                    EXPECT(bits_of(values[k]) == bits_of(right), kernels, where + " gives " + check::show(values[k]));
                }
            }
        }
    }
}

}  // namespace

TEST(dense_nan_infinity_and_overflow) {
    Random random(5);
    for (const TargetTable* kernels : dispatch::runnable_targets()) {
        for (const std::size_t d : std::vector<std::size_t>{1, 2, 3, 4, 5, 8, 9, 15, 16, 17, 33, 40}) {
            artifact_writer::Model model = random_model(d, random);
            const Opened opened(model);
            for (const float odd : {infinite, -infinite, not_a_number, -not_a_number}) {
                check_odd_number<float>(*kernels, model, opened.view, odd, Status::not_finite);
                check_odd_number<double>(*kernels, model, opened.view, static_cast<double>(odd), Status::not_finite);
            }
            for (const float odd : {1e20f, -1e20f, 3e38f, -3e38f, 1e5f}) {
                check_odd_number<float>(*kernels, model, opened.view, odd, Status::ok);
            }
            for (const double odd : {1e300, -1e300, DBL_MAX, -1e150, 3e38, 1e39}) {
                check_odd_number<double>(*kernels, model, opened.view, odd, Status::ok);
            }
        }
    }
}

TEST(dense_overflow_does_not_hide_nan) {
    Random random(12);
    artifact_writer::Model model = random_model(21, random);
    const Opened opened(model);
    for (const TargetTable* kernels : dispatch::runnable_targets()) {
        for (const std::size_t n : {std::size_t{2}, kernels->block_rows}) {
            Rows rows = random_rows(model, n, random);
            rows[n - 2].assign(21, 3e38);
            std::vector<double> values;
            const Matrix<float> overflowing(rows, n, layouts_of(n, 21)[0]);
            CHECK_EQ(decide(*kernels, opened.view, overflowing.view(), values), Status::ok);
            CHECK_EQ(values[n - 2], model.intercept);
            for (const std::size_t i : {n - 2, n - 1}) {
                Rows bad = rows;
                bad[i][20] = std::numeric_limits<double>::quiet_NaN();
                const Matrix<float> matrix(bad, n, layouts_of(n, 21)[0]);
                CHECK_EQ(decide(*kernels, opened.view, matrix.view(), values), Status::not_finite);
            }
        }
    }
}

TEST(dense_all_overflow_and_opposite_centers) {
    for (const TargetTable* kernels : dispatch::runnable_targets()) {
        for (const float huge : {3e38f, FLT_MAX, 1e19f}) {
            Random random(6);
            artifact_writer::Model model = random_model(11, random);
            std::fill(model.center.begin(), model.center.end(), -huge);
            model.gamma = 0x1p199;
            model.input_scale = 0x1p100;
            artifact_writer::add_check_rows(model, 1);
            const Bytes bytes = artifact_writer::written(model);
            const ExactCopy memory(bytes);
            ModelView view;
            CHECK_EQ(open_artifact(memory.data(), bytes.size(), view), Status::ok);
            std::vector<double> values;
            const Rows rows(kernels->block_rows, std::vector<double>(11, static_cast<double>(huge)));
            for (const std::size_t n : {std::size_t{2}, kernels->block_rows}) {
                const Matrix<float> matrix(rows, n, layouts_of(n, 11)[0]);
                CHECK_EQ(decide(*kernels, view, matrix.view(), values), Status::ok);
                for (const double value : values) CHECK_EQ(value, model.intercept);
            }
        }
    }
}

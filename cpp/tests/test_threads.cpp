#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "artifact_models.hpp"
#include "check.hpp"
#include "kernel_models.hpp"
#include "predictor.hpp"

// Rows spread over threads: the numbers of one thread, bit for bit, and bounds that hold.

using namespace kernel_models;

// The first n rows with every column, every second, ..., every fourth left in.
template <class Real, class Index>
Sparse<Real, Index> every_few_columns(const Rows& rows, std::size_t n, std::size_t d) {
    Sparse<Real, Index> sparse;
    for (std::size_t i = 0; i < n; ++i) {
        sparse.start_row(d);
        for (std::size_t j = i % 3; j < d; j += 1 + i % 4) {
            sparse.add(static_cast<std::int64_t>(j), static_cast<Real>(rows[i][j]));
        }
    }
    return sparse;
}

// Values alone, without bounds.
template <class Rows>
Status decide(const dispatch::Predictor& predictor, const Rows& rows, std::vector<double>& values, int n_threads) {
    dispatch::StageCounts counts{};
    return predictor.evaluate(rows, {values, nullptr, nullptr, nullptr}, counts, n_threads);
}

namespace {

/// What evaluate() says about each row.
template <class Rows>
void expect_same_answers(const dispatch::Predictor& predictor, const Rows& rows, const std::string& where) {
    Answers one_thread(rows.n_rows);
    CHECK_EQ(predictor.evaluate(rows, one_thread.out(), one_thread.counts, 1, settled), Status::ok);
    std::uint64_t n_answered = 0;
    for (const std::uint64_t count : one_thread.counts) n_answered += count;
    EXPECT(n_answered == rows.n_rows, predictor.kernels(), where + ": rows are not answered once each");
    for (const int n_threads : {2, 3, 0, -1, 1000}) {
        if (check::under_sanitizer && n_threads != 3 && n_threads != 1000) continue;
        Answers again(rows.n_rows);
        CHECK_EQ(predictor.evaluate(rows, again.out(), again.counts, n_threads, settled), Status::ok);
        EXPECT(again == one_thread, predictor.kernels(), where + ", " + std::to_string(n_threads) + " threads");
    }
    dispatch::StageCounts counts{};  // nothing is written where nothing is wanted
    CHECK_EQ(predictor.evaluate(rows, {}, counts, 3, settled), Status::ok);
    EXPECT(counts == one_thread.counts, predictor.kernels(), where + ", without output");
}

}  // namespace

TEST(threads_do_not_change_an_answer_of_any_mode) {
    Random random(14);
    for (const std::uint32_t mode : artifact_models::all_modes) {
        for (const std::size_t d : std::vector<std::size_t>{3, 130, 257}) {
            if (check::under_sanitizer && d == 130) continue;
            artifact_writer::Model model = mode == artifact_writer::approximate
                                               ? random_model(d, random)
                                               : artifact_models::true_model(mode, d, 40, d);
            artifact_writer::add_check_rows(model, mode == artifact_writer::exact ? 0 : 2);
            model.storage = 1;
            const Bytes bytes = artifact_writer::written(model);
            const ExactCopy memory(bytes);
            for (const std::size_t n : std::vector<std::size_t>{0, 1, 4, 5, 1001}) {
                const Rows rows = random_rows(model, std::max<std::size_t>(n, 1), random);
                const Matrix<float> narrow(rows, rows.size(), layouts_of(rows.size(), d)[5]);
                const Matrix<double> wide(rows, rows.size(), layouts_of(rows.size(), d)[1]);
                DenseRows<float> narrow_rows = narrow.view();
                DenseRows<double> wide_rows = wide.view();
                narrow_rows.n_rows = wide_rows.n_rows = n;
                const auto sparse = every_few_columns<float, std::int64_t>(rows, n, d);
                const CsrRows<float, std::int64_t> csr{sparse.values.data(), sparse.columns.data(),
                                                       sparse.row_starts.data(), n};
                for (const TargetTable* kernels : dispatch::runnable_targets()) {
                    const dispatch::Predictor predictor(memory.data(), bytes.size(), *kernels);
                    const std::string where = "mode " + std::to_string(mode) + ", " + std::to_string(n) + " rows of " +
                                              std::to_string(d) + " features";
                    expect_same_answers(predictor, narrow_rows, where + ", float32");
                    expect_same_answers(predictor, wide_rows, where + ", float64");
                    expect_same_answers(predictor, csr, where + ", sparse");
                }
            }
        }
    }
}

TEST(bounds_hold_in_every_mode_that_knows_the_exact_value) {
    Random random(15);
    for (const std::uint32_t mode : {artifact_writer::certified, artifact_writer::exact}) {
        for (const std::size_t d : std::vector<std::size_t>{1, 3, 20}) {
            artifact_writer::Model model = artifact_models::true_model(mode, d, 12, d);
            const Bytes bytes = artifact_writer::written(model);
            const ExactCopy memory(bytes);
            const Rows rows = random_rows(model, 301, random);
            const Matrix<double> matrix(rows, rows.size(), layouts_of(rows.size(), d)[0]);
            for (const TargetTable* kernels : dispatch::runnable_targets()) {
                const dispatch::Predictor predictor(memory.data(), bytes.size(), *kernels);
                for (const Values values : {Values::promised, Values::settled}) {
                    Answers answers(rows.size());
                    CHECK_EQ(predictor.evaluate(matrix.view(), answers.out(), answers.counts, 1, {0, values}),
                             Status::ok);
                    for (std::size_t i = 0; i < rows.size(); ++i) {
                        const long double exact = artifact_writer::exact_value(model, rows[i].data());
                        const double error = static_cast<double>(std::fabs(answers.values[i] - exact));
                        EXPECT(error <= answers.bounds[i], *kernels,
                               "mode " + std::to_string(mode) + ", row " + std::to_string(i) + " is off by " +
                                   check::show(error) + ", bound " + check::show(answers.bounds[i]));
                        if (values == Values::settled) continue;
                        EXPECT(answers.stages[i] >= by_float64, *kernels, "a value was not asked of float64");
                        EXPECT(answers.bounds[i] <= 1e-10 * model.sum_moduli, *kernels, "an exact value is loose");
                    }
                }
            }
        }
    }
}

// --- what is asked for decides what is computed

TEST(labels_alone_come_from_the_cheapest_stage_and_equal_those_of_exact_values) {
    Random random(16);
    for (const std::uint32_t mode : {artifact_writer::certified, artifact_writer::exact}) {
        artifact_writer::Model model = artifact_models::true_model(mode, 5, 12, 5);
        const Bytes bytes = artifact_writer::written(model);
        const ExactCopy memory(bytes);
        const Rows rows = random_rows(model, 301, random);
        const Matrix<double> matrix(rows, rows.size(), layouts_of(rows.size(), 5)[0]);
        for (const TargetTable* kernels : dispatch::runnable_targets()) {
            const dispatch::Predictor predictor(memory.data(), bytes.size(), *kernels);
            std::vector<std::uint32_t> alone(rows.size()), beside(rows.size());
            Answers as_settled(rows.size());
            Evaluation out = as_settled.out();
            CHECK_EQ(predictor.evaluate(matrix.view(), out, as_settled.counts, 1, settled), Status::ok);
            dispatch::StageCounts counts{}, exact_counts{};
            Evaluation labels;
            labels.labels = alone;
            CHECK_EQ(predictor.evaluate(matrix.view(), labels, counts, 1), Status::ok);
            CHECK(counts == as_settled.counts);
            std::vector<double> values(rows.size());
            CHECK_EQ(predictor.evaluate(matrix.view(), {values, nullptr, nullptr, beside}, exact_counts, 1),
                     Status::ok);
            CHECK_EQ(exact_counts[by_float64] + exact_counts[by_definition], rows.size());
            CHECK(alone == beside);
            for (std::size_t i = 0; i < rows.size(); ++i) CHECK_EQ(beside[i], values[i] > 0.0 ? 0u : 1u);
        }
    }
}

TEST(threads_report_a_bad_row) {
    Random random(11);
    artifact_writer::Model model = random_model(257, random);
    const Opened opened(model);
    for (const TargetTable* kernels : dispatch::runnable_targets()) {
        const dispatch::Predictor predictor(opened.memory.data(), opened.bytes.size(), *kernels);
        for (const std::size_t bad : std::vector<std::size_t>{0, 500, 1000}) {
            Rows rows = random_rows(model, 1001, random);
            rows[bad][256] = std::numeric_limits<double>::quiet_NaN();
            const Matrix<double> matrix(rows, rows.size(), layouts_of(rows.size(), 257)[0]);
            std::vector<double> values(rows.size());
            CHECK_EQ(decide(predictor, matrix.view(), values, 3), Status::not_finite);
            dispatch::StageCounts counts{};
            CHECK_EQ(predictor.evaluate(matrix.view(), {values, nullptr, nullptr, nullptr}, counts, 3),
                     Status::not_finite);
        }
    }
}

#include <approxsvm/approxsvm.hpp>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "check.hpp"
#include "on_targets.hpp"

// Polynomial kernels of every degree on every target: values against extended precision, their bounds, rows that are
// refused.

using namespace artifact_models;
using artifact_writer::approximate;
using artifact_writer::certified;
using artifact_writer::exact;
using artifact_writer::written;

namespace {

/// sum |a_i| (|gamma| ||x_i|| ||z|| + |coef0|)^degree + |intercept|.
double moduli_of(const artifact_writer::Model& model, const double* row) {
    double sum = std::fabs(model.intercept), sq_norm = 0;
    for (std::size_t j = 0; j < model.n_features(); ++j) sq_norm += row[j] * row[j];
    for (std::size_t i = 0; i < model.dual_coef.size(); ++i) {
        double sq = 0;
        for (const double x : model.support_vectors[i]) sq += x * x;
        const double base = std::fabs(model.gamma) * std::sqrt(sq * sq_norm) + std::fabs(model.coef0);
        sum += std::fabs(model.dual_coef[i]) * std::pow(base, static_cast<int>(model.degree));
    }
    return sum;
}

void expect_answers(const artifact_writer::Model& model, const std::vector<double>& rows, const Answers& answers) {
    const std::size_t d = model.n_features();
    CHECK_EQ(answers.status, Status::ok);
    for (std::size_t i = 0; i < answers.values.size(); ++i) {
        const long double expected = artifact_writer::exact_value(model, rows.data() + i * d);
        const double moduli = moduli_of(model, rows.data() + i * d);
        CHECK(std::fabs(static_cast<double>(answers.values[i] - expected)) <= answers.bounds[i] + 0x1p-58 * moduli);
        CHECK(answers.bounds[i] <= 1e-11 * static_cast<double>(d + model.dual_coef.size()) * moduli);
        CHECK_EQ(int{answers.stages[i]}, model.mode == exact ? int{by_float64} : int{by_expansion});
    }
}

void expect_all_forms(const artifact_writer::Model& model, std::size_t n) {
    const RowsOfAnyForm rows(random_rows(n, model.n_features()), n);
    on_all_targets(written(model), [&](const dispatch::Predictor& predictor) {
        rows.in_every_form(
            [&](const auto& given) { expect_answers(model, rows.numbers, answers_of(predictor, given)); });
    });
}

}  // namespace

TEST(values_are_exact_for_every_degree) {
    for (std::uint32_t degree = 1; degree <= 6; ++degree) {
        for (const std::size_t d : std::vector<std::size_t>{1, 3, 8, 17, 70}) {
            for (const std::size_t n_sv : std::vector<std::size_t>{1, 9, 100}) {
                for (const std::uint32_t mode : {approximate, certified, exact}) {
                    if (mode != exact && degree > 2) continue;
                    expect_all_forms(polynomial_model(mode, degree, d, n_sv, degree), 1);
                    expect_all_forms(polynomial_model(mode, degree, d, n_sv, degree), 61);
                }
            }
        }
    }
}

TEST(labels_are_those_of_the_values) {
    for (const std::uint32_t degree : {1u, 2u, 5u}) {
        const artifact_writer::Model model = polynomial_model(degree > 2 ? exact : certified, degree, 7, 30);
        const std::vector<double> rows = random_rows(300, 7);
        on_all_targets(written(model), [&](const dispatch::Predictor& predictor) {
            const DenseRows<double> given{rows.data(), 300, 7, 1};
            std::vector<std::uint32_t> labels(300);
            Evaluation out;
            out.labels = labels;
            dispatch::StageCounts counts{};
            CHECK_EQ(predictor.evaluate(given, out, counts, 1), Status::ok);
            const Answers answers = answers_of(predictor, given);
            for (std::size_t i = 0; i < 300; ++i) CHECK_EQ(labels[i], label_position(answers.values[i]));
        });
    }
}

TEST(what_rounding_leaves_open_is_summed_by_the_definition) {
    for (const std::uint32_t mode : {certified, exact}) {
        artifact_writer::Model model = polynomial_model(mode, 1, 2, 2);
        model.support_vectors = {{0.1, 0.7}, {0.3, -0.2}};
        model.dual_coef = {0.3, 0.4};
        model.gamma = 1;
        model.coef0 = model.intercept = 0;
        if (mode == certified) model.form = form_of(model);
        artifact_writer::add_exact_check_rows(model, 1);
        const double w0 = 0.3 * 0.1 + 0.4 * 0.3, w1 = 0.3 * 0.7 + 0.4 * -0.2;
        const std::vector<double> rows = {w1, -w0, 1.0, 1.0};
        const double expected = 0.3 * (0.1 * w1 + 0.7 * -w0) + 0.4 * (0.3 * w1 + -0.2 * -w0);
        on_all_targets(written(model), [&](const dispatch::Predictor& predictor) {
            const Answers answers = answers_of(predictor, DenseRows<double>{rows.data(), 2, 2, 1});
            CHECK_EQ(answers.status, Status::ok);
            CHECK_EQ(int{answers.stages[0]}, int{by_definition});
            CHECK(int{answers.stages[1]} != int{by_definition});
            CHECK_EQ(answers.values[0], expected);
            CHECK(answers.bounds[0] < 1e-14);
        });
    }
}

TEST(rows_that_may_be_elsewhere_have_wider_bounds) {
    for (std::uint32_t degree = 1; degree <= 6; ++degree) {
        const artifact_writer::Model model = polynomial_model(degree > 2 ? exact : certified, degree, 4, 20);
        const std::vector<double> rows = random_rows(20, 4), errors(20, 1e-3);
        std::mt19937_64 random(degree);
        on_all_targets(written(model), [&](const dispatch::Predictor& predictor) {
            const Answers answers =
                answers_of(predictor, DenseRows<double>{rows.data(), 20, 4, 1}, Values::promised, errors.data());
            for (std::size_t i = 0; i < 20; ++i) {
                std::vector<double> there(rows.begin() + static_cast<std::ptrdiff_t>(4 * i),
                                          rows.begin() + static_cast<std::ptrdiff_t>(4 * i + 4));
                for (double& x : there) x += random() % 2 == 0 ? 4.99e-4 : -4.99e-4;
                const long double expected = artifact_writer::exact_value(model, there.data());
                CHECK(std::fabs(static_cast<double>(answers.values[i] - expected)) <= answers.bounds[i]);
            }
        });
    }
}

TEST(values_beyond_float64_are_refused) {
    for (const std::uint32_t mode : {approximate, certified, exact}) {
        const artifact_writer::Model model = polynomial_model(mode, mode == exact ? 5 : 2, 3, 5);
        std::vector<double> rows = random_rows(100, 3);
        for (std::size_t j = 0; j < 3; ++j) rows[77 * 3 + j] = 1e300;
        on_all_targets(written(model), [&](const dispatch::Predictor& predictor) {
            const Answers answers = answers_of(predictor, DenseRows<double>{rows.data(), 100, 3, 1});
            CHECK_EQ(answers.status, Status::beyond_float64);
            CHECK_EQ(answers.fault.row, std::size_t{77});
            double value = 0.0;
            Fault fault{9, 9.0, 9.0};
            const dispatch::Workspace workspace = predictor.make_workspace();
            CHECK_EQ(predictor.decide_one(rows.data() + 77 * 3, value, workspace, &fault), Status::beyond_float64);
            CHECK_EQ(fault.row, std::size_t{0});
            rows[50 * 3] = nan64;
            CHECK_EQ(answers_of(predictor, DenseRows<double>{rows.data(), 60, 3, 1}).status, Status::not_finite);
            rows[50 * 3] = infinite;
            CHECK_EQ(answers_of(predictor, DenseRows<double>{rows.data(), 60, 3, 1}).status, Status::not_finite);
            rows[50 * 3] = 0;
        });
    }
}

TEST(rows_far_and_near_stay_within_their_bounds) {
    for (std::uint32_t degree = 1; degree <= 6; ++degree) {
        for (const std::uint32_t mode : {certified, exact}) {
            if (mode == certified && degree > 2) continue;
            const artifact_writer::Model model = polynomial_model(mode, degree, 3, 9);
            for (const double size : {1e-320, 1e-165, 1e-160, 1e-20, 1e20, 1e45, 1e150}) {
                if (degree * std::log10(size) > 300) continue;
                std::vector<double> rows = random_rows(30, 3);
                for (double& x : rows) x *= size;
                on_all_targets(written(model), [&](const dispatch::Predictor& predictor) {
                    const Answers answers = answers_of(predictor, DenseRows<double>{rows.data(), 30, 3, 1});
                    CHECK_EQ(answers.status, Status::ok);
                    for (std::size_t i = 0; i < 30; ++i) {
                        const long double expected = artifact_writer::exact_value(model, rows.data() + 3 * i);
                        const long double own = 0x1p-58L * moduli_of(model, rows.data() + 3 * i);
                        CHECK(std::fabs(answers.values[i] - expected) <= answers.bounds[i] + own);
                    }
                });
            }
        }
    }
}

TEST(tolerances_that_were_asked_for_are_kept_or_rows_refused) {
    artifact_writer::Model model = polynomial_model(exact, 3, 3, 9);
    model.tolerance = 1e-9;
    Bytes bytes = written(model);
    put(bytes, 140, 1u);
    seal(bytes);
    std::vector<double> rows = random_rows(40, 3);
    on_all_targets(bytes, [&](const dispatch::Predictor& predictor) {
        rows[30] = 1.0;
        CHECK_EQ(answers_of(predictor, DenseRows<double>{rows.data(), 40, 3, 1}).status, Status::ok);
        rows[30] = 1e6;
        const Answers answers = answers_of(predictor, DenseRows<double>{rows.data(), 40, 3, 1});
        CHECK_EQ(answers.status, Status::beyond_tolerance);
        CHECK_EQ(answers.fault.row, std::size_t{10});
        CHECK(answers.fault.found > 1e-9);
        CHECK_EQ(answers.fault.found, answers.bounds[10]);
    });
}

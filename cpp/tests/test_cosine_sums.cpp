#include <approxsvm/approxsvm.hpp>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "check.hpp"
#include "on_targets.hpp"

// Sums of cosines on every target: values against extended precision, their bounds, rows that are refused.

using namespace artifact_models;
using artifact_writer::exact;
using artifact_writer::written;

namespace {

/// The reference's own error: long double angles and sums.
double own_error(const artifact_writer::Model& model, const double* row) {
    long double sq_norm = 0;
    for (std::size_t j = 0; j < model.n_features(); ++j) sq_norm += static_cast<long double>(row[j]) * row[j];
    const double unit = sizeof(long double) > 8 ? 0x1p-64 : 0x1p-53,
                 terms = static_cast<double>(model.n_features()) + 8;
    return unit *
           (terms * static_cast<double>(std::sqrt(sq_norm)) * model.total_norm +
            (static_cast<double>(model.dual_coef.size()) + 32) * (model.sum_moduli + std::fabs(model.intercept)));
}

void expect_answers(const artifact_writer::Model& model, const std::vector<double>& rows, const Answers& answers) {
    CHECK_EQ(answers.status, Status::ok);
    for (std::size_t i = 0; i < answers.values.size(); ++i) {
        const double* const row = rows.data() + i * model.n_features();
        const long double expected = artifact_writer::exact_value(model, row);
        const double error = std::fabs(static_cast<double>(answers.values[i] - expected));
        CHECK(error <= answers.bounds[i] + own_error(model, row));
        CHECK_EQ(answers.labels[i], answers.values[i] > 0 ? 0u : 1u);
    }
}

void expect_all_forms(const artifact_writer::Model& model, std::size_t n, double scale = 1.0) {
    std::vector<double> numbers = random_rows(n, model.n_features(), scale);
    for (double& x : numbers) x = static_cast<double>(static_cast<float>(x));
    const RowsOfAnyForm rows(numbers, n);
    for (std::size_t k = 0; k < numbers.size(); ++k) {  // every second row nearly empty
        if (k / model.n_features() % 2 == 1 && k % model.n_features() > 1) numbers[k] = 0;
    }
    const RowsOfAnyForm thin(numbers, n);
    on_all_targets(written(model), [&](const dispatch::Predictor& predictor) {
        for (const Values values : {Values::settled, Values::promised, Values::exact}) {
            for (const RowsOfAnyForm& all : {rows, thin}) {
                all.in_every_form([&](const auto& given) {
                    expect_answers(model, all.numbers, answers_of(predictor, given, values));
                });
            }
        }
    });
}

}  // namespace

TEST(values_are_within_their_bounds) {
    for (const std::size_t d : std::vector<std::size_t>{1, 3, 17, 70}) {
        for (const std::size_t n : std::vector<std::size_t>{1, 9, 64, 101}) {
            expect_all_forms(cosine_model(d, n, n), 1);
            expect_all_forms(cosine_model(d, n, n), 61);
        }
    }
}

TEST(bounds_hold_at_any_scale) {
    for (const double of_frequencies : {1e-40, 1e-6, 1.0, 1e4, 1e9, 1e25}) {
        for (const double of_rows : {1e-42, 1e-12, 1.0, 1e5, 1e12, 1e30}) {
            const artifact_writer::Model model = cosine_model(5, 21, 3, of_frequencies);
            expect_all_forms(model, 40, of_rows);
        }
    }
}

TEST(most_rows_are_settled_in_float32_and_exact_values_by_float64) {
    artifact_writer::Model model = cosine_model(20, 100);
    const std::vector<double> rows = random_rows(200, 20);
    on_all_targets(written(model), [&](const dispatch::Predictor& predictor) {
        const DenseRows<double> given{rows.data(), 200, 20, 1};
        const Answers settled = answers_of(predictor, given, Values::settled);
        CHECK(settled.counts[by_float32] >= 195);
        const Answers promised = answers_of(predictor, given, Values::promised);
        CHECK_EQ(promised.counts[by_float64], std::uint64_t{200});
        for (std::size_t i = 0; i < 200; ++i) {
            CHECK(settled.bounds[i] < 1e-3 * model.sum_moduli);
            CHECK(promised.bounds[i] < 1e-11 * model.sum_moduli);
        }
    });
}

// cos(x) is 0 at pi / 2 alone: float64 next to it on both sides.
TEST(rows_next_to_the_boundary_have_the_right_label) {
    artifact_writer::Model model = cosine_model(1, 1);
    model.intercept = 0.0;
    model.dual_coef = {1.0};
    model.support_vectors = {{1.0}};
    model.phases = {0.0};
    model.sum_moduli = model.total_norm = 1.0;
    artifact_writer::add_exact_check_rows(model, 2);
    // pi / 2 lies between 1.5707963267948966 and the next number; 11 pi / 2 and others likewise.
    std::vector<double> rows;
    for (const int odd : {1, 3, 5, 11, 1001, 100001}) {
        const double root = static_cast<double>(1.57079632679489661923132169164L * odd);
        for (const double x : {std::nextafter(root, 0.0), root, std::nextafter(root, 1e9)}) rows.push_back(x);
    }
    on_all_targets(written(model), [&](const dispatch::Predictor& predictor) {
        const DenseRows<double> given{rows.data(), rows.size(), 1, 1};
        std::vector<std::uint32_t> labels(rows.size());
        Evaluation out;
        out.labels = labels;
        dispatch::StageCounts counts{};
        CHECK_EQ(predictor.evaluate(given, out, counts, 1), Status::ok);
        for (std::size_t i = 0; i < rows.size(); ++i) {
            CHECK_EQ(labels[i], std::cos(static_cast<long double>(rows[i])) > 0 ? 0u : 1u);
        }
        CHECK_EQ(counts[by_definition], std::uint64_t{rows.size()});
        const Answers answers = answers_of(predictor, given, Values::promised);
        expect_answers(model, rows, answers);
        for (const double bound : answers.bounds) CHECK(bound < 1e-14);
    });
}

TEST(errors_of_rows_count_by_the_slope) {
    const artifact_writer::Model model = cosine_model(3, 9);
    const std::vector<double> rows = random_rows(50, 3), errors(50, 1e-3), huge(50, 1e300);
    std::vector<double> meant = rows;
    for (std::size_t k = 0; k < meant.size(); ++k) meant[k] += (k % 2 == 0 ? 1 : -1) * 5.7e-4;
    on_all_targets(written(model), [&](const dispatch::Predictor& predictor) {
        const DenseRows<double> given{rows.data(), 50, 3, 1};
        expect_answers(model, meant, answers_of(predictor, given, Values::promised, errors.data()));
        const Answers anywhere = answers_of(predictor, given, Values::promised, huge.data());
        CHECK_EQ(anywhere.status, Status::ok);
        for (const double bound : anywhere.bounds) CHECK(bound < 2.1 * model.sum_moduli);
    });
}

TEST(rows_whose_angles_are_beyond_float64_are_refused) {
    const artifact_writer::Model model = cosine_model(2, 5, 0, 1e200);
    std::vector<double> rows = random_rows(9, 2);
    rows[6] = 1e300;
    on_all_targets(written(model), [&](const dispatch::Predictor& predictor) {
        const Answers answers = answers_of(predictor, DenseRows<double>{rows.data(), 9, 2, 1}, Values::promised);
        CHECK_EQ(answers.status, Status::beyond_float64);
        CHECK_EQ(answers.fault.row, std::size_t{3});
    });
}

TEST(rows_that_are_not_finite_are_found) {
    for (const double bad : {nan64, infinite, -infinite}) {
        std::vector<double> rows = random_rows(40, 3);
        rows[100] = bad;
        on_all_targets(written(cosine_model()), [&](const dispatch::Predictor& predictor) {
            const Answers answers = answers_of(predictor, DenseRows<double>{rows.data(), 40, 3, 1}, Values::settled);
            CHECK_EQ(answers.status, Status::not_finite);
        });
    }
}

TEST(tolerances_that_were_asked_for_are_kept_or_rows_refused) {
    artifact_writer::Model model = cosine_model(3, 9);
    model.tolerance = 1e-4;
    Bytes bytes = written(model);
    put(bytes, 140, 1u);
    seal(bytes);
    std::vector<double> rows = random_rows(40, 3), errors(40, 0.0);
    on_all_targets(bytes, [&](const dispatch::Predictor& predictor) {
        const DenseRows<double> given{rows.data(), 40, 3, 1};
        errors[10] = 0.0;
        const Answers kept = answers_of(predictor, given, Values::promised, errors.data());
        expect_answers(model, rows, kept);
        for (const double bound : kept.bounds) CHECK(bound <= 1e-4);
        CHECK(kept.counts[by_float32] > 20);
        errors[10] = 1.0;
        const Answers refused = answers_of(predictor, given, Values::promised, errors.data());
        CHECK_EQ(refused.status, Status::beyond_tolerance);
        CHECK_EQ(refused.fault.row, std::size_t{10});
        CHECK_EQ(refused.fault.found, refused.bounds[10]);
    });
}

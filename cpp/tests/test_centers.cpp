#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "artifact_models.hpp"
#include "check.hpp"
#include "kernel_models.hpp"
#include "predictor.hpp"

// Many centers and higher degrees from end to end: whatever the router does, and however rows come, each value is
// within its bound of the definition, and threads do not change a bit of it.

using namespace kernel_models;
using artifact_models::add_router;
using artifact_models::true_model;

namespace {

template <class Rows>
Answers answered(const dispatch::Predictor& predictor, const Rows& rows, int n_threads = 1) {
    Answers answers(rows.n_rows);
    CHECK_EQ(predictor.evaluate(rows, answers.out(), answers.counts, n_threads, settled), Status::ok);
    return answers;
}

/// Rows near the centers, at support vectors, far out, and beyond what float32 can square.
Rows rows_near_and_far(const artifact_writer::Model& model, std::size_t n, Random& random) {
    const std::size_t d = model.n_features();
    Rows rows;
    for (std::size_t i = 0; i < n; ++i) {
        std::vector<double> row(d);
        const std::vector<float>& center = model.center_of(random() % model.expansions.size());
        const double reach = i % 7 == 6 ? 1e25 : i % 7 == 5 ? 12 : std::exp2(uniform(random, -6, 2));
        for (std::size_t j = 0; j < d; ++j) {
            row[j] = static_cast<double>(center[j]) +
                     reach * uniform(random, -1, 1) / model.input_scale / std::sqrt(static_cast<double>(d));
            if (i % 7 == 4) row[j] = model.support_vectors[i % model.support_vectors.size()][j];
            if (i % 5 == 3 && random() % 3 != 0) row[j] = 0;
        }
        if (!model.varying.empty() && i % 4 != 3) {  // on the slice of that center, or nearly so
            std::vector<double> on_slice(center.begin(), center.end());
            for (const std::uint32_t j : model.varying) on_slice[j] = row[j];
            const double off = i % 4 == 2 ? std::exp2(uniform(random, -60, 0)) : 0;
            for (double& x : on_slice) x += off * uniform(random, -1, 1);
            row = on_slice;
        }
        rows.push_back(row);
    }
    return rows;
}

void expect_within_bounds(const dispatch::Predictor& predictor, const std::vector<long double>& exact,
                          const Answers& answers, const std::string& where) {
    for (std::size_t i = 0; i < exact.size(); ++i) {
        const double error = static_cast<double>(std::fabs(answers.values[i] - exact[i]));
        EXPECT(error <= answers.bounds[i] + 0x1p-62 * predictor.model().decisions[0].sum_moduli, predictor.kernels(),
               where + ", row " + std::to_string(i) + ", stage " + std::to_string(answers.stages[i]) + " is off by " +
                   check::show(error) + ", bound " + check::show(answers.bounds[i]));
        if (predictor.model().mode == Mode::approximate || std::fabs(exact[i]) < 1e-9L) continue;
        EXPECT((answers.values[i] > 0) == (exact[i] > 0), predictor.kernels(), where + ": a wrong label");
    }
}

/// The exact value of each row; for sparse rows with what lies in unseen columns.
template <class Real>
std::vector<long double> exact_values(const artifact_writer::Model& model, const std::vector<std::vector<Real>>& rows,
                                      const std::vector<double>& unseen_sq_norm = {}) {
    std::vector<long double> values;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const long double value = artifact_writer::exact_value(model, rows[i].data());
        const long double unseen = unseen_sq_norm.empty() ? 0.0 : unseen_sq_norm[i];
        values.push_back(model.intercept + (value - model.intercept) * std::exp(-model.gamma * unseen));
    }
    return values;
}

template <class Real, class Index>
Sparse<Real, Index> sparse_rows(const Rows& rows, bool unseen) {
    Sparse<Real, Index> sparse;
    const std::size_t d = rows[0].size();
    for (std::size_t i = 0; i < rows.size(); ++i) {
        sparse.start_row(d);
        if (unseen && i % 3 == 1) sparse.add(-2, Real(0.25));
        for (std::size_t j = 0; j < d; ++j) {
            if (rows[i][j] != 0) sparse.add(static_cast<std::int64_t>(j), static_cast<Real>(rows[i][j]));
        }
        if (unseen && i % 2 == 1) sparse.add(static_cast<std::int64_t>(d + i), Real(i % 4 == 1 ? 0.5 : 50));
    }
    return sparse;
}

template <class Real, class Index>
CsrRows<Real, Index> view_of(const Sparse<Real, Index>& sparse) {
    return {sparse.values.data(), sparse.columns.data(), sparse.row_starts.data(), sparse.n_rows()};
}

template <class Real>
std::vector<std::vector<Real>> all_narrowed(const Rows& rows) {
    std::vector<std::vector<Real>> result;
    for (const auto& row : rows) result.push_back(narrowed<Real>(row));
    return result;
}

/// Bounds of every form of the rows, many at once and a few.
void check_bounds(const artifact_writer::Model& model, Random& random, std::size_t n_rows, const std::string& where) {
    const Bytes bytes = artifact_writer::written(model);
    const ExactCopy memory(bytes);
    const Rows rows = rows_near_and_far(model, n_rows, random);
    const Matrix<float> narrow(rows, n_rows, layouts_of(n_rows, model.n_features())[5]);
    const Matrix<double> wide(rows, n_rows, layouts_of(n_rows, model.n_features())[1]);
    const auto sparse = sparse_rows<double, std::int32_t>(rows, false);
    const auto unseen = sparse_rows<float, std::int64_t>(rows, true);
    const std::vector<long double> of_floats = exact_values(model, all_narrowed<float>(rows)),
                                   of_doubles = exact_values(model, rows),
                                   of_unseen = exact_values(model, unseen.seen, unseen.unseen_sq_norm);
    for (const dispatch::TargetTable* kernels : dispatch::runnable_targets()) {
        const dispatch::Predictor predictor(memory.data(), bytes.size(), *kernels);
        expect_within_bounds(predictor, of_floats, answered(predictor, narrow.view()), where + ", float32");
        expect_within_bounds(predictor, of_doubles, answered(predictor, wide.view()), where + ", float64");
        expect_within_bounds(predictor, of_doubles, answered(predictor, view_of(sparse)), where + ", sparse");
        expect_within_bounds(predictor, of_unseen, answered(predictor, view_of(unseen)), where + ", unseen columns");
        const Matrix<double> few(rows, 3, layouts_of(3, model.n_features())[0]);
        const std::vector<long double> of_few(of_doubles.begin(), of_doubles.begin() + 3);
        expect_within_bounds(predictor, of_few, answered(predictor, few.view()), where + ", a few rows");
    }
}

/// The support vectors stay with the test, which knows the exact value by them.
artifact_writer::Model without_vectors(artifact_writer::Model model) {
    model.mode = artifact_writer::approximate;
    return model;
}

template <class Rows>
void expect_same_answers(const dispatch::Predictor& predictor, const Rows& rows, const std::string& where) {
    const Answers one_thread = answered(predictor, rows);
    std::uint64_t n_answered = 0;
    for (const std::uint64_t count : one_thread.counts) n_answered += count;
    EXPECT(n_answered == rows.n_rows, predictor.kernels(), where + ": rows are not answered once each");
    for (const int n_threads : {2, 3, 0, -1, 1000}) {
        EXPECT(answered(predictor, rows, n_threads) == one_thread, predictor.kernels(),
               where + ", " + std::to_string(n_threads) + " threads");
    }
    dispatch::StageCounts counts{};  // nothing is written where nothing is wanted
    CHECK_EQ(predictor.evaluate(rows, {}, counts, 3, settled), Status::ok);
    EXPECT(counts == one_thread.counts, predictor.kernels(), where + ", without output");
}

}  // namespace

TEST(bounds_hold_for_every_degree_and_number_of_centers) {
    Random random(1);
    for (std::uint32_t degree = 1; degree <= 6; ++degree) {
        for (const std::size_t n_centers : {1u, 2u, 17u}) {
            for (const std::size_t d : {1u, 4u}) {
                const artifact_writer::Model model =
                    true_model(artifact_writer::certified, d, 12, 10 * degree + d, degree, n_centers);
                const std::string where = "degree " + std::to_string(degree) + ", " + std::to_string(n_centers) +
                                          " centers, d " + std::to_string(d);
                check_bounds(model, random, 101, where);
                check_bounds(without_vectors(model), random, 101, where + ", approximate");
            }
        }
    }
}

TEST(bounds_hold_on_slices_and_off_them) {
    Random random(8);
    const std::vector<std::vector<std::uint32_t>> columns = {{0}, {2, 3}, {0, 1, 4}, {0, 1, 2, 3}};
    for (std::uint32_t degree = 1; degree <= 6; ++degree) {
        const std::vector<std::uint32_t>& varying = columns[degree % 4];
        check_bounds(true_model(artifact_writer::certified, 5, 12, degree, degree, 17, varying), random, 131,
                     "degree " + std::to_string(degree) + ", varying " + std::to_string(varying.size()));
    }
}

TEST(rows_on_a_slice_need_no_engine) {
    // Were the distance to the slice wrong, the bounds would hold, but nothing would be certified.
    Random random(9);
    const artifact_writer::Model model = true_model(artifact_writer::certified, 5, 12, 3, 6, 9, {1, 3});
    const Bytes bytes = artifact_writer::written(model);
    const ExactCopy memory(bytes);
    Rows rows;
    for (std::size_t i = 0; i < 90; ++i) {
        const std::vector<float>& center = model.center_of(i % 9);
        rows.emplace_back(center.begin(), center.end());
        for (const std::size_t j : {1u, 3u}) rows.back()[j] += 0.05 * uniform(random, -1, 1);
    }
    const Matrix<double> all(rows, 90, layouts_of(90, 5)[0]), few(rows, 3, layouts_of(3, 5)[0]);
    const auto sparse = sparse_rows<double, std::int32_t>(rows, false);
    for (const dispatch::TargetTable* kernels : dispatch::runnable_targets()) {
        const dispatch::Predictor predictor(memory.data(), bytes.size(), *kernels);
        for (const Answers& answers :
             {answered(predictor, all.view()), answered(predictor, few.view()), answered(predictor, view_of(sparse))}) {
            const std::size_t n = answers.values.size();
            const auto n_by_expansion =
                std::count(answers.stages.begin(), answers.stages.end(), std::uint8_t{by_expansion});
            EXPECT(2 * static_cast<std::size_t>(n_by_expansion) > n, *kernels, "rows on a slice");
        }
    }
}

TEST(the_distance_to_a_slice_is_never_too_short) {
    // Squares that are all just below half a unit in the last place of the first: each is lost in the sum.
    ModelView model{};
    const std::uint32_t varying[] = {1};
    const DecisionNumbers decision{0.0, 1.0, 1.0, 0.0};
    model.varying = varying;
    model.n_varying = 1;
    model.half_theta = 0.5f;
    for (const std::size_t d : std::vector<std::size_t>{2, 100, 40000, 400000}) {
        constexpr std::size_t stride = lanes;
        model.n_features = d;
        for (const float first : {0x1p-6f, 0x1p-40f, 1e-23f, 0.0f, 3.0f}) {
            std::vector<float> row(d, first == 0.0f ? 0x1p-75f : 0.99f * std::sqrt(first * first * 0x1p-25f));
            row[0] = first;
            long double sq_distance = 0;
            for (std::size_t j = 0; j < d; ++j)
                sq_distance += j == 1 ? 0.0L : static_cast<long double>(row[j]) * row[j];
            std::vector<float> block(d * stride + 16, 0.0f);
            float* lanes_of = block.data();
            while (reinterpret_cast<std::uintptr_t>(lanes_of) % 64 != 0) ++lanes_of;
            for (std::size_t j = 0; j < d; ++j) lanes_of[j * stride] = row[j];
            float off_sq[stride];
            keep_varying_block<1>(model, lanes_of, off_sq);
            const long double truth = std::sqrt(sq_distance) < 1.4L ? std::sqrt(sq_distance) : 1.4L;
            CHECK(slice_slack(model, decision, off_sq[0]) >= truth);
            CHECK(slice_slack(model, decision, keep_varying_row(model, row.data())) >= truth);
        }
    }
}

TEST(bounds_hold_wherever_the_router_sends_a_row) {
    Random random(2);
    for (const std::uint32_t degree : {1u, 2u, 3u}) {
        for (int turn = 0; turn < 4; ++turn) {
            const std::vector<std::uint32_t> varying =
                turn == 1 ? std::vector<std::uint32_t>{0, 2} : std::vector<std::uint32_t>{};
            artifact_writer::Model model = true_model(artifact_writer::certified, 3, 12, degree, degree, 20, varying);
            std::vector<std::vector<std::uint32_t>> lists(5);
            std::vector<std::uint32_t> heads;
            for (auto& list : lists) {
                for (std::size_t k = 0; k < 1 + random() % 40; ++k)
                    list.push_back(static_cast<std::uint32_t>(random() % 20));
                heads.push_back(static_cast<std::uint32_t>(random() % 20));
            }
            add_router(model, lists, heads);
            for (float& number : model.router.panels) {
                number = turn == 0   ? number
                         : turn == 1 ? static_cast<float>(uniform(random, -10, 10))
                         : turn == 2 ? std::numeric_limits<float>::max() * (random() % 2 == 0 ? 1.0f : -1.0f)
                                     : 0.0f;
            }
            check_bounds(model, random, 101, "routed at random, " + std::to_string(turn));
            if (varying.empty()) check_bounds(without_vectors(model), random, 101, "routed at random, approximate");
        }
    }
}

TEST(threads_and_chunks_do_not_change_an_answer) {
    Random random(3);
    const artifact_writer::Model centers = true_model(artifact_writer::certified, 40, 100, 3, 3, 9);
    artifact_writer::Model wide_rows = random_model(257, random);
    artifact_writer::add_check_rows(wide_rows, 2);
    for (const artifact_writer::Model& model :
         {centers, without_vectors(true_model(artifact_writer::certified, 40, 100, 3, 2, 9)),
          true_model(artifact_writer::exact, 130, 40), wide_rows}) {
        const Bytes bytes = artifact_writer::written(model);
        const ExactCopy memory(bytes);
        const std::size_t d = model.n_features();
        for (const std::size_t n : {1u, 5u, 37u, 1001u}) {
            Rows rows = random_rows(model, n, random);
            const Matrix<float> narrow(rows, n, layouts_of(n, d)[1]);
            const Matrix<double> wide(rows, n, layouts_of(n, d)[6]);
            const auto sparse = sparse_rows<float, std::int32_t>(rows, model.mode != artifact_writer::exact);
            rows[n / 2][d - 1] = std::numeric_limits<double>::quiet_NaN();
            const Matrix<double> bad(rows, n, layouts_of(n, d)[0]);
            for (const dispatch::TargetTable* kernels : dispatch::runnable_targets()) {
                const dispatch::Predictor predictor(memory.data(), bytes.size(), *kernels);
                const std::string where = std::to_string(d) + " features, " + std::to_string(n) + " rows";
                expect_same_answers(predictor, narrow.view(), where + ", float32");
                expect_same_answers(predictor, wide.view(), where + ", float64");
                expect_same_answers(predictor, view_of(sparse), where + ", sparse");
                Answers answers(n);
                CHECK_EQ(predictor.evaluate(bad.view(), answers.out(), answers.counts, 3, settled), Status::not_finite);
            }
        }
    }
}

TEST(more_rows_than_are_routed_together) {
    Random random(5);
    const artifact_writer::Model model = true_model(artifact_writer::certified, 2, 6, 5, 2, 3);
    const Bytes bytes = artifact_writer::written(model);
    const ExactCopy memory(bytes);
    const std::size_t n = 2 * route_rows + 5;
    const Rows rows = rows_near_and_far(model, n, random);
    const Matrix<float> matrix(rows, n, layouts_of(n, 2)[0]);
    const std::vector<long double> exact = exact_values(model, all_narrowed<float>(rows));
    for (const dispatch::TargetTable* kernels : dispatch::runnable_targets()) {
        const dispatch::Predictor predictor(memory.data(), bytes.size(), *kernels);
        expect_within_bounds(predictor, exact, answered(predictor, matrix.view()), "many rows");
    }
}

TEST(the_expansion_alone_goes_to_the_same_centers) {
    // decision_function() of the embeddable headers and evaluate() of an approximate artifact.
    Random random(7);
    for (const std::uint32_t degree : {1u, 2u, 3u}) {
        const artifact_writer::Model model =
            without_vectors(true_model(artifact_writer::certified, 5, 12, 7, degree, 9));
        const Bytes bytes = artifact_writer::written(model);
        const ExactCopy memory(bytes);
        const std::size_t n = 60;
        const Rows rows = rows_near_and_far(model, n, random);
        const Matrix<double> matrix(rows, n, layouts_of(n, 5)[0]);
        const std::vector<long double> exact = exact_values(model, rows);
        for (const dispatch::TargetTable* kernels : dispatch::runnable_targets()) {
            const dispatch::Predictor predictor(memory.data(), bytes.size(), *kernels);
            const Answers answers = answered(predictor, matrix.view());
            std::vector<unsigned char> scratch(decision_function_bytes(5));
            std::vector<double> values(n);
            CHECK_EQ(decision_function(predictor.model(), matrix.view(), values, scratch), Status::ok);
            for (std::size_t i = 0; i < n; ++i) {  // a tie may send it elsewhere, where the bound is about the same
                const double error = static_cast<double>(std::fabs(values[i] - exact[i]));
                EXPECT(error <= 1.5 * answers.bounds[i] + 1e-5, *kernels, "alone, row " + std::to_string(i));
            }
        }
    }
}

// Artifacts opened by every target that this machine can run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "artifact_models.hpp"
#include "predictor.hpp"

namespace artifact_models {

/// Calls test(predictor) on all targets.
template <class Test>
void on_all_targets(const Bytes& bytes, const Test& test) {
    const ExactCopy copy(bytes);
    for (const dispatch::TargetTable* kernels : dispatch::runnable_targets()) {
        const dispatch::Predictor predictor(copy.data(), bytes.size(), *kernels);
        test(predictor);
    }
}

/// What a target answers to some rows.
struct Answers {
    Status status = Status::ok;
    std::vector<double> values, bounds;
    std::vector<std::uint8_t> stages;
    std::vector<std::uint32_t> labels;
    Fault fault{};
    dispatch::StageCounts counts{};
};

template <class Rows>
Answers answers_of(const dispatch::Predictor& predictor, const Rows& rows, Values values = Values::promised,
                   const double* row_errors = nullptr) {
    Answers answers;
    answers.values.resize(rows.n_rows);
    answers.bounds.resize(rows.n_rows);
    answers.stages.resize(rows.n_rows, 255);
    answers.labels.resize(rows.n_rows, 255);
    const Evaluation out{answers.values, answers.bounds, answers.stages, answers.labels};
    answers.status =
        predictor.evaluate(rows, out, answers.counts, 1, Request{rows.n_rows, values, row_errors, &answers.fault});
    return answers;
}

/// Dense rows in either type and any order of numbers, and sparse rows with a feature that the model does not have.
struct RowsOfAnyForm {
    std::vector<double> numbers, by_columns, nonzeros;
    std::vector<float> narrow;
    std::vector<std::int32_t> columns, starts = {0};
    std::size_t n, d;

    RowsOfAnyForm(std::vector<double> rows, std::size_t n_rows)
        : numbers(std::move(rows)),
          by_columns(numbers.size()),
          narrow(numbers.begin(), numbers.end()),
          n(n_rows),
          d(numbers.size() / n_rows) {
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t j = 0; j < d; ++j) {
                by_columns[j * n + i] = numbers[i * d + j];
                if (numbers[i * d + j] == 0) continue;
                nonzeros.push_back(numbers[i * d + j]);
                columns.push_back(static_cast<std::int32_t>(j));
            }
            nonzeros.push_back(1e300);
            columns.push_back(static_cast<std::int32_t>(d + 5));
            starts.push_back(static_cast<std::int32_t>(columns.size()));
        }
    }

    template <class Visit>
    void in_every_form(const Visit& visit) const {
        const std::ptrdiff_t stride = static_cast<std::ptrdiff_t>(d), across = static_cast<std::ptrdiff_t>(n);
        visit(DenseRows<double>{numbers.data(), n, stride, 1});
        visit(DenseRows<float>{narrow.data(), n, stride, 1});
        visit(DenseRows<double>{by_columns.data(), n, 1, across});
        visit(CsrRows<double, std::int32_t>{nonzeros.data(), columns.data(), starts.data(), n});
    }
};

/// (n, d), a quarter of it zeros, within scale * [-2, 2].
inline std::vector<double> random_rows(std::size_t n, std::size_t d, double scale = 1.0) {
    std::mt19937_64 random(n * 1000 + d);
    std::vector<double> rows(n * d);
    for (double& x : rows) x = random() % 4 == 0 ? 0.0 : scale * (static_cast<double>(random() % 4096) / 1024 - 2);
    return rows;
}

}  // namespace artifact_models

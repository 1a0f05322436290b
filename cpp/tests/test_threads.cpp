#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "check.hpp"
#include "kernel_models.hpp"
#include "predictor.hpp"

// Rows spread over threads: the numbers of one thread, bit for bit.

using namespace kernel_models;

TEST(threads_do_not_change_a_bit) {
    Random random(10);
    for (const std::size_t d : std::vector<std::size_t>{3, 130, 257}) {
        artifact_writer::Model model = random_model(d, random);
        const Opened opened(model);
        for (const std::size_t n : std::vector<std::size_t>{0, 1, 4, 5, 1001}) {
            const Rows rows = random_rows(model, std::max<std::size_t>(n, 1), random);
            const Matrix<float> narrow(rows, rows.size(), layouts_of(rows.size(), d)[5]);
            const Matrix<double> wide(rows, rows.size(), layouts_of(rows.size(), d)[1]);
            DenseRows<float> narrow_rows = narrow.view();
            DenseRows<double> wide_rows = wide.view();
            narrow_rows.n_rows = wide_rows.n_rows = n;
            Sparse<double, std::int32_t> sparse;
            for (std::size_t i = 0; i < n; ++i) {
                sparse.start_row(d);
                for (std::size_t j = i % 3; j < d; j += 1 + i % 4) sparse.add(static_cast<std::int64_t>(j), rows[i][j]);
            }
            const CsrRows<double, std::int32_t> csr{sparse.values.data(), sparse.columns.data(),
                                                    sparse.row_starts.data(), n};
            for (const Kernels* kernels : dispatch::runnable_targets()) {
                const dispatch::Predictor predictor(opened.memory.data(), opened.bytes.size(), *kernels);
                std::vector<double> first[3], again(n, -1.0);
                for (const int n_threads : {1, 2, 3, 0, -1, 1000}) {
                    const auto same = [&](std::vector<double>& one_thread, Status status) {
                        CHECK_EQ(status, Status::ok);
                        if (n_threads == 1) one_thread = again;
                        expect(same_bits(one_thread, again.data()), *kernels,
                               std::to_string(n_threads) + " threads, " + std::to_string(n) + " rows");
                        std::fill(again.begin(), again.end(), -1.0);
                    };
                    same(first[0], predictor.decision_function(narrow_rows, again.data(), n_threads));
                    same(first[1], predictor.decision_function(wide_rows, again.data(), n_threads));
                    same(first[2], predictor.decision_function(csr, again.data(), n_threads));
                }
            }
        }
    }
}

TEST(threads_report_a_bad_row) {
    Random random(11);
    artifact_writer::Model model = random_model(257, random);
    const Opened opened(model);
    for (const Kernels* kernels : dispatch::runnable_targets()) {
        const dispatch::Predictor predictor(opened.memory.data(), opened.bytes.size(), *kernels);
        for (const std::size_t bad : std::vector<std::size_t>{0, 500, 1000}) {
            Rows rows = random_rows(model, 1001, random);
            rows[bad][256] = std::numeric_limits<double>::quiet_NaN();
            const Matrix<double> matrix(rows, rows.size(), layouts_of(rows.size(), 257)[0]);
            std::vector<double> values(rows.size());
            CHECK_EQ(predictor.decision_function(matrix.view(), values.data(), 3), Status::not_finite);
        }
    }
}

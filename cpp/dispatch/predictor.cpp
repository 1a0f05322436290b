#include "predictor.hpp"

#include <algorithm>
#include <approxsvm/approxsvm.hpp>
#include <atomic>
#include <functional>
#include <system_error>
#include <thread>

namespace approxsvm::dispatch {
namespace {

// A thread must have at least this many multiply-adds to do, about 50 microseconds, or starting it does not
// pay.
constexpr double min_work_per_thread = 4e6;

// Calls part(first, n_rows, workspace) for chunks of the rows on several threads. Chunks are multiples of the
// block, so every row is computed as in one call. The first failure stops the rest.
template <class Part>
Status for_chunks(const Predictor& predictor, std::size_t n_rows, double work_per_row, int n_threads,
                  const Part& part) {
    const std::size_t block = predictor.kernels().block_rows;
    const double useful = work_per_row * static_cast<double>(n_rows) / min_work_per_thread;
    const std::size_t n_workers =
        static_cast<std::size_t>(std::max(1.0, std::min(static_cast<double>(n_threads), useful)));
    const std::size_t per_worker = n_rows / (n_workers * 8) / block * block;  // eight turns each even out the load
    const std::size_t chunk = n_workers == 1 ? std::max<std::size_t>(n_rows, 1) : std::max(per_worker, block);

    std::atomic<std::size_t> next{0};
    std::atomic<Status> result{Status::ok};
    const auto work = [&](const Workspace& workspace) {
        for (;;) {
            const std::size_t first = next.fetch_add(chunk);
            if (first >= n_rows || result.load(std::memory_order_relaxed) != Status::ok) return;
            const Status status = part(first, std::min(chunk, n_rows - first), workspace.data());
            if (status != Status::ok) result = status;
        }
    };
    // Memory first: an exception on another thread, or while one runs, would end the program.
    std::vector<Workspace> workspaces;
    for (std::size_t t = 0; t < n_workers; ++t) workspaces.push_back(predictor.make_workspace());
    std::vector<std::thread> threads;
    threads.reserve(n_workers - 1);
    for (std::size_t t = 1; t < n_workers; ++t) {
        try {
            threads.emplace_back(work, std::cref(workspaces[t]));
        } catch (const std::system_error&) {
            break;  // no more threads to be had: the others do the work
        }
    }
    work(workspaces[0]);
    for (std::thread& thread : threads) thread.join();
    return result;
}

template <class Real>
Status decide_dense(const Predictor& predictor, const DenseRows<Real>& rows, double* values, int n_threads,
                    DenseFunction<Real> few_rows, DenseFunction<Real> blocks) {
    const double d = static_cast<double>(predictor.model().n_features);
    const DenseFunction<Real> function = rows.n_rows <= max_single_rows ? few_rows : blocks;
    return for_chunks(predictor, rows.n_rows, 0.5 * d * d, n_threads,
                      [&](std::size_t first, std::size_t n, void* workspace) {
                          DenseRows<Real> part = rows;
                          part.values += static_cast<std::ptrdiff_t>(first) * rows.row_stride;
                          part.n_rows = n;
                          return function(predictor.model(), part, values + first, workspace);
                      });
}

template <class Real, class Index>
Status decide_csr(const Predictor& predictor, const CsrRows<Real, Index>& rows, double* values, int n_threads,
                  CsrFunction<Real, Index> function) {
    const double n_nonzero = rows.n_rows == 0 ? 0.0
                                              : static_cast<double>(rows.row_starts[rows.n_rows] - rows.row_starts[0]) /
                                                    static_cast<double>(rows.n_rows);
    return for_chunks(predictor, rows.n_rows, 8.0 * n_nonzero * n_nonzero, n_threads,
                      [&](std::size_t first, std::size_t n, void* workspace) {
                          CsrRows<Real, Index> part = rows;
                          part.row_starts += first;
                          part.n_rows = n;
                          return function(predictor.model(), predictor.folded(), part, values + first, workspace);
                      });
}

}  // namespace

Predictor::Predictor(const void* artifact, std::size_t n_bytes, const Kernels& kernels) : kernels_(&kernels) {
    Status status = open_artifact(artifact, n_bytes, model_);
    if (status != Status::ok) throw ArtifactError(status);
    const Workspace memory(kernels.replay_bytes(model_.n_features));
    status = kernels.replay_check_rows(model_, memory.data());
    if (status != Status::ok) throw ArtifactError(status);
    folded_memory_.reset(new double[folded_doubles(model_.n_features)]);
    const FoldedModel folded = fold_center(model_, folded_memory_.get());
    folded_ = {folded.constant, folded.center_sq_norm, folded.half_theta, folded.linear};
}

Status Predictor::decision_function(const DenseRows<float>& rows, double* values, int n_threads) const {
    return decide_dense(*this, rows, values, n_threads, kernels_->dense_f32, kernels_->blocks_f32);
}
Status Predictor::decision_function(const DenseRows<double>& rows, double* values, int n_threads) const {
    return decide_dense(*this, rows, values, n_threads, kernels_->dense_f64, kernels_->blocks_f64);
}
Status Predictor::decision_function(const CsrRows<float, std::int32_t>& rows, double* values, int n_threads) const {
    return decide_csr(*this, rows, values, n_threads, kernels_->csr_f32_i32);
}
Status Predictor::decision_function(const CsrRows<float, std::int64_t>& rows, double* values, int n_threads) const {
    return decide_csr(*this, rows, values, n_threads, kernels_->csr_f32_i64);
}
Status Predictor::decision_function(const CsrRows<double, std::int32_t>& rows, double* values, int n_threads) const {
    return decide_csr(*this, rows, values, n_threads, kernels_->csr_f64_i32);
}
Status Predictor::decision_function(const CsrRows<double, std::int64_t>& rows, double* values, int n_threads) const {
    return decide_csr(*this, rows, values, n_threads, kernels_->csr_f64_i64);
}

Status Predictor::decide_one(const float* row, double& value, const Workspace& workspace) const {
    return kernels_->dense_f32(model_, {row, 1, 0, 1}, &value, workspace.data());
}
Status Predictor::decide_one(const double* row, double& value, const Workspace& workspace) const {
    return kernels_->dense_f64(model_, {row, 1, 0, 1}, &value, workspace.data());
}

}  // namespace approxsvm::dispatch

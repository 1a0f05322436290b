#include "predictor.hpp"

#include <algorithm>
#include <approxsvm/approxsvm.hpp>
#include <atomic>
#include <cmath>
#include <functional>
#include <mutex>
#include <thread>

#include "fault_text.hpp"

namespace approxsvm::dispatch {
namespace {

// Minimum work per thread in multiply-adds, which takes about 50 microseconds. For less work, starting a thread costs
// more time than it saves.
constexpr double min_work_per_thread = 4e6;

// Borrows the predictor's own workspace unless another call is using it.
class KeptWorkspace {
  public:
    explicit KeptWorkspace(const Predictor& predictor)
        : predictor_(predictor), workspace_(predictor.take_kept_workspace()) {}
    KeptWorkspace(const KeptWorkspace&) = delete;
    KeptWorkspace& operator=(const KeptWorkspace&) = delete;
    ~KeptWorkspace() {
        if (workspace_) predictor_.return_kept_workspace();
    }
    explicit operator bool() const { return workspace_ != nullptr; }
    const Workspace* workspace() const { return workspace_; }

  private:
    const Predictor& predictor_;
    const Workspace* const workspace_;
};

// Calls part(first, n_rows, workspace) for chunks of rows on several threads. Chunk sizes are multiples of the block
// size, so every row is computed as in a single call. After the first failure, all threads stop.
template <class Part>
Status for_chunks(const Predictor& predictor, std::size_t n_rows, double work_per_row, int n_threads,
                  const Part& part) {
    const std::size_t block = predictor.kernels().block_rows;
    const double useful = work_per_row * static_cast<double>(n_rows) / min_work_per_thread;
    const double n_blocks = std::ceil(static_cast<double>(n_rows) / static_cast<double>(block));
    const std::size_t n_workers =
        static_cast<std::size_t>(std::max(1.0, std::min({static_cast<double>(n_threads), useful, n_blocks})));
    // Several chunks per thread balance the load. With many centers, chunks are larger, so that each center gets enough
    // rows.
    const std::size_t turns = predictor.model().n_centers > 1 ? 2 : 8;
    const std::size_t per_worker = n_rows / (n_workers * turns) / block * block;
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
    // Memory is allocated before threads are started: an exception thrown on another thread, or while another thread is
    // running, would end the program.
    const KeptWorkspace kept(predictor);
    std::vector<Workspace> workspaces;
    for (std::size_t t = kept ? 1 : 0; t < n_workers; ++t) workspaces.push_back(predictor.make_workspace());
    std::vector<std::thread> threads;
    threads.reserve(n_workers - 1);
    for (std::size_t t = 1; t < n_workers; ++t) {
        try {
            threads.emplace_back(work, std::cref(workspaces[kept ? t - 1 : t]));
        } catch (const std::exception&) {
            break;  // no thread or memory is left, so the running threads do the work
        }
    }
    work(kept ? *kept.workspace() : workspaces[0]);
    for (std::thread& thread : threads) thread.join();
    return result;
}

template <class Real>
DenseRows<Real> part_of(DenseRows<Real> rows, std::size_t first, std::size_t n) {
    rows.values += static_cast<std::ptrdiff_t>(first) * rows.row_stride;
    rows.n_rows = n;
    return rows;
}

template <class Real, class Index>
CsrRows<Real, Index> part_of(CsrRows<Real, Index> rows, std::size_t first, std::size_t n) {
    rows.row_starts += first;
    rows.n_rows = n;
    return rows;
}

// Returns the work for a dense row up to degree 2: assigning it to a center and evaluating the quadratic form.
double dense_work(const ModelView& model) {
    const double d = static_cast<double>(model.n_features), n_centers = static_cast<double>(model.n_centers),
                 v = static_cast<double>(model.n_varying);
    return 0.5 * v * v + (n_centers > 1.0 ? 4.0 * std::sqrt(n_centers) * d : 0.0);
}

template <class Real>
double expansion_work(const ModelView& model, const DenseRows<Real>&) {
    return dense_work(model);
}

// Returns the work for a sparse row with the average number of nonzeros, as an equivalent number of dense
// multiply-adds.
template <class Real, class Index>
double expansion_work(const ModelView& model, const CsrRows<Real, Index>& rows) {
    if (model.n_centers > 1) return dense_work(model);
    if (rows.n_rows == 0) return 0.0;
    const double n_nonzero = static_cast<double>(rows.row_starts[rows.n_rows] - rows.row_starts[0]);
    const double per_row = n_nonzero / static_cast<double>(rows.n_rows);
    return 8.0 * per_row * per_row;
}

// Returns the estimated work per row in the stage that determines most of the labels.
double work_per_row(const ModelView& model, double of_expansion) {
    const double d = static_cast<double>(model.n_features), n_terms = static_cast<double>(model.n_terms);
    if (model.form) {
        return static_cast<double>(model.n_decisions) * (model.degree == 1 ? d : 0.5 * d * d);
    }
    constexpr double engine_share = 0.05;  // assumed fraction of rows that need the engine in certified mode
    return model.mode == Mode::exact       ? d * n_terms
           : model.mode == Mode::certified ? of_expansion + engine_share * d * n_terms
                                           : of_expansion;
}

template <class Rows>
Status evaluate_on_threads(const Predictor& predictor, const Rows& rows, const Evaluation& out, StageCounts& counts,
                           int n_threads, Request request, EvaluateFunction<Rows> function) {
    const Status allowed = check_request(predictor.model(), rows.n_rows, request, out);
    if (allowed != Status::ok) return allowed;
    request.n_rows_in_call = std::max(request.n_rows_in_call, rows.n_rows);
    const ModelView& model = predictor.model();
    if (n_threads == 1 && rows.n_rows > 0) {  // for a single row, preparing threads would take a quarter of its time
        const KeptWorkspace kept(predictor);
        if (kept)
            return function(predictor.prepared(), rows, request, part_of(model, out, 0, rows.n_rows), counts.data(),
                            kept.workspace()->data());
    }
    const double work =
        predictor.ensemble_work() > 0.0 ? predictor.ensemble_work() : work_per_row(model, expansion_work(model, rows));
    std::array<std::atomic<std::uint64_t>, n_stages> total{};
    std::mutex faults;
    int n_faults = 0;
    const Status status =
        for_chunks(predictor, rows.n_rows, work, n_threads, [&](std::size_t first, std::size_t n, void* workspace) {
            StageCounts mine{};
            Fault fault{};
            Request own = request;
            own.fault = &fault;
            if (own.row_errors) own.row_errors += first;
            const Status result = function(predictor.prepared(), part_of(rows, first, n), own,
                                           part_of(predictor.model(), out, first, n), mine.data(), workspace);
            for (std::size_t k = 0; k < mine.size(); ++k) total[k] += mine[k];
            if (result == Status::ok || !request.fault) return result;
            // If several threads fail, report the first faulty row, as a single thread would.
            const std::lock_guard<std::mutex> lock(faults);
            fault.row += first;
            if (n_faults++ == 0 || fault.row < request.fault->row) *request.fault = fault;
            return result;
        });
    for (std::size_t k = 0; k < counts.size(); ++k) counts[k] += total[k];
    return status;
}

}  // namespace

OpenedArtifact::OpenedArtifact(const void* bytes, std::size_t n) {
    ArtifactFault fault;
    const Status status = open_artifact(bytes, n, model, &fault);
    if (status != Status::ok) throw ArtifactError(status, text_of(status, fault));
    parts = parts_needed(model);
}

Predictor::Predictor(const OpenedArtifact& artifact, const TargetTable& kernels)
    : model_(artifact.model), kernels_(&kernels) {
    prepare();
    const Workspace memory(kernels.replay_bytes(prepared_));
    const Status status = kernels.replay(prepared_, memory.data());
    if (status != Status::ok) throw ArtifactError(status);
}

Predictor::Predictor(const ModelView& model, const TargetTable& kernels) : model_(model), kernels_(&kernels) {
    prepare();
}

void Predictor::prepare() {
    prepared_memory_.reset(new unsigned char[kernels_->prepared_bytes(model_)]);
    prepared_ = kernels_->prepare(model_, prepared_memory_.get());
    kept_.emplace(make_workspace());
    if (model_.n_members == 0) return;
    for_members(model_, [&](const ModelView& member) {
        ensemble_work_ += work_per_row(member, dense_work(member));
        return Status::ok;
    });
}

std::size_t Predictor::n_probabilities() const {
    return approxsvm::n_probabilities(model_);
}

bool Predictor::gives_exact_values(const Request& request, const Evaluation& out) const {
    return wants_exact_values(model_, request, out);
}

Workspace Predictor::make_workspace() const {
    return Workspace(kernels_->workspace_bytes(prepared_));
}

template <class Rows>
Status Predictor::evaluate(const Rows& rows, const Evaluation& out, StageCounts& counts, int n_threads,
                           Request request) const {
    return evaluate_on_threads(*this, rows, out, counts, n_threads, request, kernels_->evaluate_rows<Rows>());
}

template <class Real>
Status Predictor::decide_one(const Real* row, double& value, const Workspace& workspace, Fault* fault,
                             StageCounts* counts, double source_unit) const {
    StageCounts mine{};
    std::uint32_t label = 0;
    Evaluation out;
    if (model_.task == Task::regression) {
        out.values = {&value, 1};
    } else {
        out.labels = {&label, 1};
    }
    Request request{1};
    request.fault = fault;
    request.source_unit = source_unit;
    const auto function = kernels_->evaluate_rows<DenseRows<Real>>();
    const Status status = function(prepared_, {row, 1, 0, 1}, request, out, mine.data(), workspace.data());
    if (out.labels) value = label;
    for (std::size_t k = 0; counts && k < mine.size(); ++k) (*counts)[k] += mine[k];
    return status;
}

#define APPROXSVM_ROWS(...) \
    template Status Predictor::evaluate(const __VA_ARGS__&, const Evaluation&, StageCounts&, int, Request) const;
APPROXSVM_ROWS(DenseRows<float>)
APPROXSVM_ROWS(DenseRows<double>)
APPROXSVM_ROWS(CsrRows<float, std::int32_t>)
APPROXSVM_ROWS(CsrRows<float, std::int64_t>)
APPROXSVM_ROWS(CsrRows<double, std::int32_t>)
APPROXSVM_ROWS(CsrRows<double, std::int64_t>)
template Status Predictor::decide_one(const float*, double&, const Workspace&, Fault*, StageCounts*, double) const;
template Status Predictor::decide_one(const double*, double&, const Workspace&, Fault*, StageCounts*, double) const;

}  // namespace approxsvm::dispatch

// A model that is ready to predict on this machine: it is validated and prepared for the target, and each thread has a
// workspace.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "target_table.hpp"

namespace approxsvm::dispatch {

struct ArtifactError : std::runtime_error {
    explicit ArtifactError(Status status) : ArtifactError(status, message(status)) {}
    ArtifactError(Status status, const std::string& text) : std::runtime_error(text), status(status) {}
    Status status;
};

// An artifact validated against models/FORMAT.md. A Predictor also replays its check rows.
struct OpenedArtifact {
    ModelView model{};
    Parts parts = 0;  // the parts that a program must list in approxsvm::ModelOf

    // Throws ArtifactError, which reports the field, its value and the expected value. The bytes must outlive this
    // object and all objects made from it.
    OpenedArtifact(const void* bytes, std::size_t n);
};

// Scratch memory for one thread.
class Workspace {
  public:
    explicit Workspace(std::size_t n_bytes) : bytes_(new unsigned char[n_bytes]) {}
    void* data() const { return bytes_.get(); }

  private:
    std::unique_ptr<unsigned char[]> bytes_;
};

using StageCounts = std::array<std::uint64_t, n_stages>;

class Predictor {
  public:
    // Replays the check rows. Throws ArtifactError if one fails, or if the unpacked support vectors would need too much
    // memory.
    Predictor(const OpenedArtifact& artifact, const TargetTable& kernels);
    Predictor(const void* artifact, std::size_t n_bytes, const TargetTable& kernels)
        : Predictor(OpenedArtifact(artifact, n_bytes), kernels) {}
    // Uses a model directly, with no artifact. All data to which it points must outlive the predictor.
    Predictor(const ModelView& model, const TargetTable& kernels);
    Predictor(const Predictor&) = delete;
    Predictor& operator=(const Predictor&) = delete;

    const ModelView& model() const { return model_; }
    const TargetTable& kernels() const { return *kernels_; }
    Workspace make_workspace() const;

    // Computes the non-null outputs of `out` for raw rows, using the stages that the model's mode allows and its
    // guarantee requires. If request.n_rows_in_call exceeds the number of rows, the rows are computed as part of a
    // larger call. The results do not depend on n_threads.
    template <class Rows>
    Status evaluate(const Rows& rows, const Evaluation& out, StageCounts& counts, int n_threads,
                    Request request = {0}) const;

    // Returns true if the float64 engine computes the requested values, without expansions.
    bool gives_exact_values(const Request& request, const Evaluation& out) const;

    // Predicts one row without allocating memory or starting threads. Returns the index of the row's label, or a
    // regressor's value. `workspace` comes from make_workspace(); for `source_unit`, see Request.
    template <class Real>
    Status decide_one(const Real* row, double& value, const Workspace& workspace, Fault* fault = nullptr,
                      StageCounts* counts = nullptr, double source_unit = 0.0) const;

    // Returns a workspace that serves one call at a time, so that small calls need not allocate memory. Returns null
    // while another call is using it.
    const Workspace* take_kept_workspace() const { return kept_is_taken_.exchange(true) ? nullptr : &*kept_; }
    void return_kept_workspace() const { kept_is_taken_ = false; }

    // Returns the result of TargetTable::prepare.
    const void* prepared() const { return prepared_; }

    // Number of probability columns; 0 if the model has none.
    std::size_t n_probabilities() const;
    // Estimated number of multiply-adds per row of an ensemble; 0 for other models.
    double ensemble_work() const { return ensemble_work_; }

  private:
    void prepare();

    ModelView model_;
    const TargetTable* kernels_;
    std::unique_ptr<unsigned char[]> prepared_memory_;
    const void* prepared_ = nullptr;
    double ensemble_work_ = 0.0;
    std::optional<Workspace> kept_;
    mutable std::atomic<bool> kept_is_taken_{false};
};

}  // namespace approxsvm::dispatch

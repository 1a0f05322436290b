// A model ready to predict on this machine: a validated artifact, the target's functions, memory for each
// thread.
#pragma once

#include <memory>
#include <stdexcept>

#include "kernels.hpp"

namespace approxsvm::dispatch {

struct ArtifactError : std::runtime_error {
    explicit ArtifactError(Status status) : std::runtime_error(message(status)), status(status) {}
    Status status;
};

// Scratch memory of one thread.
class Workspace {
  public:
    explicit Workspace(std::size_t n_bytes) : bytes_(new unsigned char[n_bytes]) {}
    void* data() const { return bytes_.get(); }

  private:
    std::unique_ptr<unsigned char[]> bytes_;
};

class Predictor {
  public:
    // Validates the artifact and replays its check rows; throws ArtifactError. The bytes must outlive the
    // predictor.
    Predictor(const void* artifact, std::size_t n_bytes, const Kernels& kernels);

    const ModelView& model() const { return model_; }
    const Kernels& kernels() const { return *kernels_; }
    const Folded& folded() const { return folded_; }
    Workspace make_workspace() const { return Workspace(kernels_->workspace_bytes(model_.n_features)); }

    // Decision values on up to n_threads threads; the numbers do not depend on n_threads.
    Status decision_function(const DenseRows<float>& rows, double* values, int n_threads) const;
    Status decision_function(const DenseRows<double>& rows, double* values, int n_threads) const;
    Status decision_function(const CsrRows<float, std::int32_t>& rows, double* values, int n_threads) const;
    Status decision_function(const CsrRows<float, std::int64_t>& rows, double* values, int n_threads) const;
    Status decision_function(const CsrRows<double, std::int32_t>& rows, double* values, int n_threads) const;
    Status decision_function(const CsrRows<double, std::int64_t>& rows, double* values, int n_threads) const;

    // One row without allocation or threads; `workspace` comes from make_workspace().
    Status decide_one(const float* row, double& value, const Workspace& workspace) const;
    Status decide_one(const double* row, double& value, const Workspace& workspace) const;

  private:
    ModelView model_;
    const Kernels* kernels_;
    std::unique_ptr<double[]> folded_memory_;
    Folded folded_;
};

}  // namespace approxsvm::dispatch

// The model in approxsvm.h, with kernels for the fastest target that the machine supports; thread-safe.
#pragma once

#include <approxsvm/approxsvm.hpp>
#include <optional>
#include <stdexcept>
#include <string>

#include "predictor.hpp"

namespace approxsvm {

// Thrown if no target can run on this machine, or APPROXSVM_TARGET names one that cannot.
struct TargetError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class OpenedModel {
  public:
    // The bytes must outlive the model. Throws TargetError and the exceptions thrown by Predictor; returns a status if
    // the bytes are faulty.
    Status open(const unsigned char* bytes, std::size_t n_bytes, bool&) {
        const dispatch::TargetTable* kernels;
        try {
            kernels = &dispatch::selected_target();
        } catch (const std::exception& failure) {
            throw TargetError(failure.what());
        }
        try {
            predictor_.emplace(bytes, n_bytes, *kernels);
        } catch (const dispatch::ArtifactError& failure) {
            failure_ = failure.what();
            return failure.status;
        }
        return Status::ok;
    }

    // Returns the error message from the last open().
    const char* why(Status) const { return failure_.c_str(); }

    const ModelView& view() const { return predictor_->model(); }
    const char* target() const { return predictor_->kernels().name; }

    template <class Rows>
    Status evaluate(const Rows& rows, const Evaluation& out, Values values, int n_threads, Fault& fault) const {
        Request request{0};
        request.values = values;
        request.fault = &fault;
        dispatch::StageCounts counts{};
        return predictor_->evaluate(rows, out, counts, n_threads < 1 ? 1 : n_threads, request);
    }

  private:
    std::optional<dispatch::Predictor> predictor_;
    std::string failure_;
};

}  // namespace approxsvm

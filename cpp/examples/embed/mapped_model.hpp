// An artifact mapped into memory: opening it costs a checksum, and the kernel shares its pages among processes.
#pragma once

#include <approxsvm/approxsvm.hpp>
#include <cstddef>

class MappedModel {
  public:
    explicit MappedModel(const char* path);
    ~MappedModel();
    MappedModel(const MappedModel&) = delete;
    MappedModel& operator=(const MappedModel&) = delete;

    approxsvm::Status status() const { return status_; }
    const approxsvm::ModelView& model() const { return model_; }

  private:
    void* bytes_ = nullptr;
    std::size_t n_bytes_ = 0;
    approxsvm::Status status_ = approxsvm::Status::truncated;
    approxsvm::ModelView model_{};
};

// An artifact mapped into memory: opening it computes a checksum, and processes share its pages.
#pragma once

#include <approxsvm/approxsvm.hpp>
#include <cstddef>
#include <vector>

class MappedModel {
  public:
    explicit MappedModel(const char* path);
    ~MappedModel();
    MappedModel(const MappedModel&) = delete;
    MappedModel& operator=(const MappedModel&) = delete;

    // Status::ok if the model is ready to predict.
    approxsvm::Status status() const { return status_; }
    const approxsvm::Model& model() const { return model_; }

  private:
    approxsvm::Status prepare();

    void* bytes_ = nullptr;
    std::size_t n_bytes_ = 0;
    std::vector<unsigned char> memory_;
    approxsvm::Status status_ = approxsvm::Status::truncated;
    approxsvm::Model model_;
};

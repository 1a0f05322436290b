// An artifact as a Python object, every byte of which the native reader has validated.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <new>
#include <optional>

#include "../dispatch/predictor.hpp"

namespace approxsvm::python {

class PyArtifact {
  public:
    // Accepts any object that provides a buffer. Read-only memory aligned for every target is used directly; other
    // memory is copied. Raises ArtifactError.
    explicit PyArtifact(const pybind11::object& source);
    ~PyArtifact();
    PyArtifact(const PyArtifact&) = delete;
    PyArtifact& operator=(const PyArtifact&) = delete;

    const dispatch::OpenedArtifact& opened() const { return *opened_; }
    const ModelView& model() const { return opened_->model; }
    std::size_t n_terms() const { return opened_->model.n_terms; }
    Parts parts() const { return opened_->parts; }
    const unsigned char* data() const { return data_; }
    std::size_t size() const { return size_; }

  private:
    struct Release {
        void operator()(unsigned char* bytes) const;
    };
    Py_buffer buffer_{};  // keeps the buffer alive while its memory is in use
    std::unique_ptr<unsigned char, Release> copy_;
    const unsigned char* data_ = nullptr;
    std::size_t size_ = 0;
    std::optional<dispatch::OpenedArtifact> opened_;
};

}  // namespace approxsvm::python

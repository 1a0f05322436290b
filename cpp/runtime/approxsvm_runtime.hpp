// approxsvm for C++ programs that link to the library: a thin wrapper around approxsvm.h that compiles quickly.
//
//     approxsvm::runtime::Model model;
//     approxsvm::runtime::Error error;
//     if (model.open("model.asvm", &error) != APPROXSVM_OK) { std::cerr << error.message << '\n'; return 1; }
//     std::vector<float> rows = ...;  // raw, n_rows * model.n_features() elements
//     std::vector<std::uint32_t> labels(n_rows * model.n_targets());
//     if (model.predict(rows, labels, &error) != APPROXSVM_OK) ...
//     std::cout << model.label(labels[0]);
//
// Link approxsvm::runtime (CMake) or approxsvm-runtime (pkg-config). No function throws, unless memory for a
// std::string is exhausted. Any number of threads may use an open model at once. approxsvm.h documents the functions.
#ifndef APPROXSVM_RUNTIME_HPP
#define APPROXSVM_RUNTIME_HPP

#if defined(_MSVC_LANG) ? _MSVC_LANG < 201402L : __cplusplus < 201402L
#error "approxsvm_runtime.hpp needs C++14: compile with -std=c++14 or later"
#endif

#include <approxsvm.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace approxsvm {
namespace runtime {

using Error = approxsvm_error;

// Address and number of elements of caller-provided memory. Vectors, arrays and std::span convert implicitly; an empty
// span skips an output.
template <class T>
struct Span {
    T* data = nullptr;
    std::size_t size = 0;

    constexpr Span() = default;
    constexpr Span(T* first, std::size_t n) : data(first), size(n) {}
    template <std::size_t n>
    constexpr Span(T (&array)[n]) : data(array), size(n) {}
    template <class Container,
              class = std::enable_if_t<std::is_convertible<decltype(std::declval<Container&>().data()), T*>::value>>
    constexpr Span(Container&& container) : data(container.data()), size(container.size()) {}
};

// Sparse rows (CSR): for row_starts[i] <= k < row_starts[i + 1], row i has the value values[k] in column columns[k].
template <class Real>
struct SparseRows {
    Span<const Real> values;
    Span<const std::int32_t> columns, row_starts;
};

// The outputs to compute and their buffers, with as many elements per row as Model reports.
struct Request {
    Span<std::uint32_t> labels;
    Span<double> values, bounds, probabilities, probability_bounds;
    Span<std::uint8_t> certified;
    std::int32_t values_kind = APPROXSVM_PROMISED;
    std::int32_t n_threads = 1;
};

class Model {
  public:
    Model() = default;
    Model(Model&& other) noexcept : model_(std::exchange(other.model_, nullptr)) {}
    Model& operator=(Model&& other) noexcept {
        std::swap(model_, other.model_);
        return *this;
    }
    ~Model() { approxsvm_close(model_); }

    // Opens a model and closes the previous one, if any.
    approxsvm_status open(const char* path, Error* error = nullptr) {
        reset();
        return approxsvm_open_file(path, &model_, error);
    }
    approxsvm_status open(const std::string& path, Error* error = nullptr) { return open(path.c_str(), error); }
    approxsvm_status open(Span<const unsigned char> bytes, Error* error = nullptr) {
        reset();
        return approxsvm_open_bytes(bytes.data, bytes.size, &model_, error);
    }
    void reset() { approxsvm_close(std::exchange(model_, nullptr)); }
    explicit operator bool() const { return model_ != nullptr; }

    std::int32_t task() const { return approxsvm_task(model_); }
    std::int32_t mode() const { return approxsvm_mode(model_); }
    std::size_t n_features() const { return approxsvm_n_features(model_); }
    std::size_t n_labels() const { return approxsvm_n_labels(model_); }
    std::size_t n_targets() const { return approxsvm_n_targets(model_); }
    std::size_t n_decisions() const { return approxsvm_n_decisions(model_); }
    std::size_t n_probabilities() const { return approxsvm_n_probabilities(model_); }

    // Returns the label with this index as a string.
    std::string label(std::size_t position) const {
        std::string text(approxsvm_label_text(model_, position, nullptr, 0), '\0');
        approxsvm_label_text(model_, position, &text[0], text.size() + 1);
        return text;
    }
    // Returns the code that represents a string in a string column of a row.
    double category_code(std::size_t column, const std::string& text) const {
        return approxsvm_category_code(model_, column, text.data(), text.size());
    }
    double missing_code(std::size_t column) const { return approxsvm_category_code(model_, column, nullptr, 0); }

    approxsvm_status predict(Span<const float> rows, Span<std::uint32_t> labels, Error* error = nullptr) const {
        return approxsvm_predict_f32(model_, rows.data, rows.size, labels.data, labels.size, error);
    }
    approxsvm_status predict(Span<const double> rows, Span<std::uint32_t> labels, Error* error = nullptr) const {
        return approxsvm_predict_f64(model_, rows.data, rows.size, labels.data, labels.size, error);
    }

    approxsvm_status evaluate(Span<const float> rows, const Request& request, Error* error = nullptr) const {
        const approxsvm_request wanted = request_of(request);
        return approxsvm_evaluate_f32(model_, rows.data, rows.size, &wanted, error);
    }
    approxsvm_status evaluate(Span<const double> rows, const Request& request, Error* error = nullptr) const {
        const approxsvm_request wanted = request_of(request);
        return approxsvm_evaluate_f64(model_, rows.data, rows.size, &wanted, error);
    }
    approxsvm_status evaluate(const SparseRows<float>& rows, const Request& request, Error* error = nullptr) const {
        const approxsvm_request wanted = request_of(request);
        return approxsvm_evaluate_csr_f32(model_, rows.values.data, rows.columns.data, n_values(rows),
                                          rows.row_starts.data, n_rows(rows), &wanted, error);
    }
    approxsvm_status evaluate(const SparseRows<double>& rows, const Request& request, Error* error = nullptr) const {
        const approxsvm_request wanted = request_of(request);
        return approxsvm_evaluate_csr_f64(model_, rows.values.data, rows.columns.data, n_values(rows),
                                          rows.row_starts.data, n_rows(rows), &wanted, error);
    }

    // Returns the underlying model, for use with functions in approxsvm.h that have no wrapper.
    const approxsvm_model* get() const { return model_; }

  private:
    static approxsvm_request request_of(const Request& request) {
        return {sizeof(approxsvm_request),
                request.values_kind,
                request.n_threads,
                request.labels.data,
                request.labels.size,
                request.values.data,
                request.values.size,
                request.bounds.data,
                request.bounds.size,
                request.probabilities.data,
                request.probabilities.size,
                request.probability_bounds.data,
                request.probability_bounds.size,
                request.certified.data,
                request.certified.size};
    }
    template <class Real>
    static std::size_t n_values(const SparseRows<Real>& rows) {
        return rows.values.size < rows.columns.size ? rows.values.size : rows.columns.size;
    }
    template <class Real>
    static std::size_t n_rows(const SparseRows<Real>& rows) {
        return rows.row_starts.size > 0 ? rows.row_starts.size - 1 : 0;
    }

    approxsvm_model* model_ = nullptr;
};

}  // namespace runtime
}  // namespace approxsvm

#endif

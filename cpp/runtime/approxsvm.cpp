// The C interface, which wraps a model in handles, status codes and buffers. Its functions throw no exceptions.
#define APPROXSVM_BUILDING
#include "approxsvm.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <utility>

#if defined(_WIN32)
#include <filesystem>
#endif
#if defined(__cpp_exceptions)
#include "dispatched_model.hpp"
#else
#include "one_target_model.hpp"
#endif
#include <approxsvm/row_fault.hpp>

#include "memory.hpp"
#include "record.hpp"

using namespace approxsvm;

struct approxsvm_model {
    Memory bytes;  // the artifact
    OpenedModel opened;
};

namespace {

// --- codes

approxsvm_status code_of(Status status) {
    switch (status) {
#define APPROXSVM_STATUS(name, code, message) \
    case Status::name:                        \
        return APPROXSVM_##code;
#include <approxsvm/status.inc>
    }
    return APPROXSVM_INTERNAL;
}

// --- errors

#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
approxsvm_status fail(approxsvm_error* error, approxsvm_status status, std::int64_t row, const char* format, ...) {
    if (error == nullptr) return status;
    *error = {};
    error->status = status;
    error->row = row;
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    return status;
}

approxsvm_status succeed(approxsvm_error* error) {
    if (error != nullptr) {
        error->status = APPROXSVM_OK;
        error->row = -1;
        error->found = error->expected = 0.0;
        error->message[0] = '\0';
    }
    return APPROXSVM_OK;
}

constexpr char no_memory[] = "out of memory";

// Returns the result of act(), or the status code for an exception that it throws.
template <class Act>
approxsvm_status guarded(approxsvm_error* error, const Act& act) {
#if defined(__cpp_exceptions)
    try {
        return act();
    } catch (const std::bad_alloc&) {
        return fail(error, APPROXSVM_OUT_OF_MEMORY, -1, no_memory);
    } catch (const std::length_error&) {  // the size exceeds a vector's maximum size
        return fail(error, APPROXSVM_OUT_OF_MEMORY, -1, no_memory);
    } catch (const TargetError& failure) {
        return fail(error, APPROXSVM_BAD_TARGET, -1, "%s", failure.what());
    } catch (const std::exception& failure) {
        return fail(error, APPROXSVM_INTERNAL, -1, "%s", failure.what());
    }
#else
    (void)error;
    return act();
#endif
}

// --- opening

// Opens a new model after its bytes have been copied or read.
approxsvm_status open_model(const char* name, std::unique_ptr<approxsvm_model> opened, approxsvm_model** model,
                            approxsvm_error* error) {
    bool out_of_memory = false;
    const Memory& bytes = opened->bytes;
    const Status status = opened->opened.open(bytes.data(), bytes.size(), out_of_memory);
    if (out_of_memory) return fail(error, APPROXSVM_OUT_OF_MEMORY, -1, no_memory);
    if (status != Status::ok) {
        const char* const why = opened->opened.why(status);
        const int room = static_cast<int>(sizeof error->message - std::strlen(": ") - 1 - std::strlen(why));
        return fail(error, code_of(status), -1, "%.*s%s%s", room, name, *name ? ": " : "", why);
    }
    *model = opened.release();
    return succeed(error);
}

struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
};

// Opens a file whose path is in UTF-8, also on Windows.
std::FILE* open_to_read(const char* path) {
#if defined(_WIN32)
    return ::_wfopen(std::filesystem::u8path(path).c_str(), L"rb");
#else
    return std::fopen(path, "rb");
#endif
}

// Reads all bytes of a file; on failure, returns false and sets errno.
bool read_file(const char* path, Memory& bytes) {
    const std::unique_ptr<std::FILE, CloseFile> file(open_to_read(path));
    if (!file) return false;
    constexpr std::size_t step = std::size_t{1} << 20;
    for (std::size_t n = 0;;) {
        if (!bytes.resize(n + step)) return false;
        const std::size_t got = std::fread(bytes.data() + n, 1, step, file.get());
        n += got;
        if (got == step) continue;
        return bytes.resize(n) && std::ferror(file.get()) == 0;
    }
}

// Returns the view used by functions that only inspect a model; a null pointer is treated as an empty model.
const ModelView& view_of(const approxsvm_model* model) {
    static constexpr ModelView nothing{};
    return model == nullptr ? nothing : model->opened.view();
}

// Copies at most size - 1 bytes of a string and a terminating 0; returns the length of the whole string.
std::size_t copied(std::string_view whole, char* text, std::size_t size) {
    if (text != nullptr && size > 0) {
        const std::size_t n = whole.size() < size ? whole.size() : size - 1;
        if (n > 0) std::memcpy(text, whole.data(), n);
        text[n] = '\0';
    }
    return whole.size();
}

// --- rows

// Converts an error status to an error code, and records the offending row in the error.
template <class Rows>
approxsvm_status fail_with(approxsvm_error* error, const Rows& rows, const ModelView& model, Status status,
                           const Fault& fault) {
    const approxsvm_status code = code_of(status);
    if (status == Status::not_finite || status == Status::unsorted_indices) {
        BadNumber bad{};
        with_source(rows, model, [&](const RowSource& source) {
            if (status == Status::not_finite) bad = first_bad_number(model, source);
            if (status == Status::unsorted_indices) bad.row = first_unsorted_row(source);
            return Status::ok;
        });
        const auto row = static_cast<std::int64_t>(bad.row);
        if (status == Status::unsorted_indices || bad.column == model.n_raw_features)
            return fail(error, code, row, "row %lld: %s", static_cast<long long>(row), message(status));
        return fail(error, code, row, "row %lld, column %lld is %s", static_cast<long long>(row),
                    static_cast<long long>(bad.column), bad.value == bad.value ? "infinite" : "NaN");
    }
    if (!is_of_row(status)) return fail(error, code, -1, "%s", message(status));
    const auto row = static_cast<long long>(fault.row);
    char room[fault_text_bytes];
    fail(error, code, row, "row %lld: %s", row, text_of_fault(status, fault, room));
    if (error != nullptr) {
        error->found = fault.found;
        error->expected = fault.expected;
    }
    return code;
}

// --- predictions

// Copies the caller's request into an empty request; the caller's struct may be shorter than this version's struct.
bool read_request(const approxsvm_request* given, approxsvm_request& request) {
    // The struct's first version ends with certified_size.
    constexpr std::size_t first_size = offsetof(approxsvm_request, certified_size) + sizeof(std::size_t);
    if (given == nullptr || given->struct_size < first_size || given->struct_size > sizeof request) return false;
    request = APPROXSVM_REQUEST;
    std::memcpy(&request, given, given->struct_size);
    return request.values_kind >= APPROXSVM_PROMISED && request.values_kind <= APPROXSVM_EXACT_VALUES &&
           request.n_threads >= 0;
}

// Reports the first buffer that is too small, with its size and the required size.
approxsvm_status fail_by_size(approxsvm_error* error, const Evaluation& out, const ModelView& model,
                              std::size_t n_rows) {
    approxsvm_status status = APPROXSVM_OK;
    for_outputs(model, [&](auto output, std::size_t per_row, const char* name) {
        const auto& buffer = out.*output;
        if (status != APPROXSVM_OK || per_row == 0 || is_large_enough(buffer, n_rows, per_row)) return;
        status = fail(error, APPROXSVM_BUFFER_TOO_SMALL, -1, "%s has room for %zu numbers, but %zu rows need %zu each",
                      name, buffer.size, n_rows, per_row);
    });
    if (status != APPROXSVM_OK) return status;
    return fail(error, APPROXSVM_BUFFER_TOO_SMALL, -1, "%s", message(Status::buffer_too_small));
}

template <class Rows>
approxsvm_status evaluate_rows(const approxsvm_model& model, const Rows& rows, const approxsvm_request& wanted,
                               approxsvm_error* error) {
    Evaluation out;
    out.labels = {wanted.labels, wanted.labels_size};
    out.values = {wanted.values, wanted.values_size};
    out.bounds = {wanted.bounds, wanted.bounds_size};
    out.probabilities = {wanted.probabilities, wanted.probabilities_size};
    out.probability_bounds = {wanted.probability_bounds, wanted.probability_bounds_size};
    out.certified = {wanted.certified, wanted.certified_size};
    Fault fault{};
    const Status status =
        model.opened.evaluate(rows, out, static_cast<Values>(wanted.values_kind), wanted.n_threads, fault);
    if (status == Status::buffer_too_small) return fail_by_size(error, out, model.opened.view(), rows.n_rows);
    if (status != Status::ok) return fail_with(error, rows, model.opened.view(), status, fault);
    return succeed(error);
}

constexpr char null_pointer[] = "%s must not be null";
constexpr char no_model[] = "the model is null: open a model first";

template <class Real>
approxsvm_status evaluate_dense(const approxsvm_model* model, const Real* rows, std::size_t rows_size,
                                const approxsvm_request* given, approxsvm_error* error) {
    if (model == nullptr) return fail(error, APPROXSVM_INVALID_ARGUMENT, -1, no_model);
    if (rows == nullptr && rows_size > 0) return fail(error, APPROXSVM_INVALID_ARGUMENT, -1, null_pointer, "rows");
    approxsvm_request request;
    if (!read_request(given, request))
        return fail(error, APPROXSVM_INVALID_ARGUMENT, -1,
                    "the request is null, or its struct_size, values_kind or n_threads is invalid");
    const std::size_t d = model->opened.view().n_raw_features;
    if (rows_size % d != 0) {
        return fail(error, APPROXSVM_WRONG_ROW_SIZE, -1, "%zu numbers are not whole rows of %zu", rows_size, d);
    }
    return guarded(error, [&] {
        const DenseRows<Real> view{rows, rows_size / d, static_cast<std::ptrdiff_t>(d), 1};
        return evaluate_rows(*model, view, request, error);
    });
}

template <class Real, class Index>
approxsvm_status evaluate_csr(const approxsvm_model* model, const Real* values, const Index* columns,
                              std::size_t n_values, const Index* row_starts, std::size_t n_rows,
                              const approxsvm_request* given, approxsvm_error* error) {
    if (model == nullptr) return fail(error, APPROXSVM_INVALID_ARGUMENT, -1, no_model);
    if (row_starts == nullptr) return fail(error, APPROXSVM_INVALID_ARGUMENT, -1, null_pointer, "row_starts");
    if ((values == nullptr || columns == nullptr) && n_values > 0)
        return fail(error, APPROXSVM_INVALID_ARGUMENT, -1, null_pointer, "values and columns");
    approxsvm_request request;
    if (!read_request(given, request))
        return fail(error, APPROXSVM_INVALID_ARGUMENT, -1,
                    "the request is null, or its struct_size, values_kind or n_threads is invalid");
    if (n_rows == SIZE_MAX) return fail(error, APPROXSVM_BAD_ROW_STARTS, -1, "%s", message(Status::bad_row_starts));
    return guarded(error, [&] {
        CsrRows<Real, Index> rows;
        const SparseRows<Real, Index> given_rows{{values, n_values}, {columns, n_values}, {row_starts, n_rows + 1}};
        const Status status = check_row_starts(given_rows, rows);
        if (status != Status::ok) return fail(error, code_of(status), -1, "%s", message(status));
        return evaluate_rows(*model, rows, request, error);
    });
}

approxsvm_status wrong_field(approxsvm_error* error, std::size_t k, std::string_view name, const char* why) {
    const int length = static_cast<int>(name.size() < 100 ? name.size() : 100);
    return fail(error, APPROXSVM_WRONG_FIELD, -1, "field %zu, %.*s: %s", k, length, name.data(), why);
}

approxsvm_status read_record(const ModelView& model, const approxsvm_field* fields, std::size_t n_fields, double* row,
                             approxsvm_error* error) {
    const std::size_t n_columns = model.n_raw_features;
    const bool has_names = n_fields > 0 ? fields[0].name != nullptr : model.feature_names != nullptr;
    if (!has_names && n_fields != n_columns)
        return fail(error, APPROXSVM_WRONG_ROW_SIZE, -1, "%zu fields without names, expected %zu", n_fields, n_columns);
    if (has_names && model.feature_names == nullptr)
        return wrong_field(error, 0, {fields[0].name, fields[0].name_size}, "the model has no names for its columns");
    for (std::size_t j = 0; j < n_columns; ++j) row[j] = unread_number();
    ColumnFinder names(model);
    for (std::size_t k = 0; k < n_fields; ++k) {
        if ((fields[k].name != nullptr) != has_names) return wrong_field(error, k, "", "some fields have no name");
        const std::string_view name = has_names ? std::string_view(fields[k].name, fields[k].name_size) : "";
        const std::size_t j = has_names ? names.find(name) : k;
        if (j == n_columns) return wrong_field(error, k, name, "there is no such column");
        if (!is_unread(row[j])) return wrong_field(error, k, name, "another field has this name");
        const ColumnTexts texts = texts_of(model, j);
        const char* why = read_field(fields[k], texts, texts.ends != nullptr, row[j]);
        // Columns that the model ignores may hold strings. They are recognized by accepting infinity, which no other
        // columns do.
        if (why != nullptr && !(fields[k].kind == APPROXSVM_TEXT && takes(model, j, HUGE_VAL)))
            return wrong_field(error, k, name, why);
    }
    for (std::size_t j = 0; j < n_columns; ++j) {
        if (is_unread(row[j])) row[j] = texts_of(model, j).null;
    }
    return succeed(error);
}

template <class Real>
approxsvm_status predict(const approxsvm_model* model, const Real* rows, std::size_t rows_size, std::uint32_t* labels,
                         std::size_t labels_size, approxsvm_error* error) {
    if (labels == nullptr && rows_size > 0) return fail(error, APPROXSVM_INVALID_ARGUMENT, -1, null_pointer, "labels");
    approxsvm_request request = APPROXSVM_REQUEST;
    request.labels = labels;
    request.labels_size = labels_size;
    return evaluate_dense(model, rows, rows_size, &request, error);
}

}  // namespace

extern "C" {

const char* approxsvm_status_text(approxsvm_status status) {
    switch (status) {
        case APPROXSVM_INVALID_ARGUMENT:
            return "invalid argument";
        case APPROXSVM_OUT_OF_MEMORY:
            return "out of memory";
        case APPROXSVM_UNREADABLE_FILE:
            return "the file cannot be read";
        case APPROXSVM_BAD_TARGET:
            return "the environment variable APPROXSVM_TARGET names a target that this machine cannot run";
        case APPROXSVM_INTERNAL:
            return "an internal error of approxsvm";
        case APPROXSVM_WRONG_FIELD:
            return "a record has a field that the model does not take";
        default:
            break;
    }
    for (int k = 0; k <= static_cast<int>(Status::not_prepared); ++k) {
        if (code_of(static_cast<Status>(k)) == status) return message(static_cast<Status>(k));
    }
    return "unknown status";
}

const char* approxsvm_version(void) {
    return APPROXSVM_VERSION;
}

uint32_t approxsvm_abi_version(void) {
    return APPROXSVM_ABI_VERSION;
}

approxsvm_status approxsvm_open_file(const char* path, approxsvm_model** model, approxsvm_error* error) {
    if (model == nullptr) return fail(error, APPROXSVM_INVALID_ARGUMENT, -1, no_model);
    *model = nullptr;
    if (path == nullptr) return fail(error, APPROXSVM_INVALID_ARGUMENT, -1, null_pointer, "path");
    return guarded(error, [&] {
        std::unique_ptr<approxsvm_model> opened(new (std::nothrow) approxsvm_model);
        if (!opened) return fail(error, APPROXSVM_OUT_OF_MEMORY, -1, no_memory);
        errno = 0;
        if (!read_file(path, opened->bytes)) {
            if (errno == ENOMEM) return fail(error, APPROXSVM_OUT_OF_MEMORY, -1, no_memory);
            const char* why = errno != 0 ? std::strerror(errno) : "cannot be read";
            return fail(error, APPROXSVM_UNREADABLE_FILE, -1, "%.150s: %s", path, why);
        }
        return open_model(path, std::move(opened), model, error);
    });
}

approxsvm_status approxsvm_open_bytes(const void* bytes, size_t n_bytes, approxsvm_model** model,
                                      approxsvm_error* error) {
    if (model == nullptr) return fail(error, APPROXSVM_INVALID_ARGUMENT, -1, no_model);
    *model = nullptr;
    if (bytes == nullptr && n_bytes > 0) return fail(error, APPROXSVM_INVALID_ARGUMENT, -1, null_pointer, "byte");
    return guarded(error, [&] {
        std::unique_ptr<approxsvm_model> opened(new (std::nothrow) approxsvm_model);
        if (!opened || !opened->bytes.resize(n_bytes)) return fail(error, APPROXSVM_OUT_OF_MEMORY, -1, no_memory);
        if (n_bytes > 0) std::memcpy(opened->bytes.data(), bytes, n_bytes);
        return open_model("", std::move(opened), model, error);
    });
}

void approxsvm_close(approxsvm_model* model) {
    delete model;
}

int32_t approxsvm_task(const approxsvm_model* model) {
    return model == nullptr ? -1 : static_cast<int32_t>(model->opened.view().task);
}

int32_t approxsvm_mode(const approxsvm_model* model) {
    return model == nullptr ? -1 : static_cast<int32_t>(model->opened.view().mode);
}

size_t approxsvm_n_features(const approxsvm_model* model) {
    return view_of(model).n_raw_features;
}

size_t approxsvm_n_labels(const approxsvm_model* model) {
    return n_labels_of(view_of(model));
}

size_t approxsvm_n_targets(const approxsvm_model* model) {
    return model == nullptr ? 0 : n_targets_of(model->opened.view());
}

size_t approxsvm_n_decisions(const approxsvm_model* model) {
    return view_of(model).n_decisions;
}

size_t approxsvm_n_probabilities(const approxsvm_model* model) {
    return n_probabilities(view_of(model));
}

const char* approxsvm_target(const approxsvm_model* model) {
    return model == nullptr ? "" : model->opened.target();
}

void approxsvm_label_at(const approxsvm_model* model, size_t position, approxsvm_label* label) {
    if (label == nullptr) return;
    const Label found = label_at(view_of(model), position);
    const bool is_text = found.kind == LabelKind::text;
    *label = {static_cast<int32_t>(found.kind), found.integer, found.real, is_text ? found.text.data() : nullptr,
              is_text ? found.text.size() : 0};
}

size_t approxsvm_label_text(const approxsvm_model* model, size_t position, char* text, size_t size) {
    char room[label_digits];
    return copied(text_of(label_at(view_of(model), position), room), text, size);
}

double approxsvm_category_code(const approxsvm_model* model, size_t column, const char* text, size_t text_size) {
    const ColumnTexts texts = texts_of(view_of(model), column);
    return text == nullptr ? texts.null : texts.code({text, text_size});
}

size_t approxsvm_category_text(const approxsvm_model* model, size_t column, size_t code, char* text, size_t size) {
    const ColumnTexts texts = texts_of(view_of(model), column);
    return copied(code < texts.n ? texts.text(code) : std::string_view{}, text, size);
}

size_t approxsvm_feature_name(const approxsvm_model* model, size_t column, char* name, size_t size) {
    const ModelView& view = view_of(model);
    const bool has_name = view.feature_names != nullptr && column < view.n_raw_features;
    const Text found = has_name ? text_at(view.feature_names, view.n_raw_features, column) : Text{"", 0};
    return copied({found.data, found.length}, name, size);
}

approxsvm_status approxsvm_row_of_record(const approxsvm_model* model, const approxsvm_field* fields, size_t n_fields,
                                         double* row, size_t row_size, approxsvm_error* error) {
    if (model == nullptr) return fail(error, APPROXSVM_INVALID_ARGUMENT, -1, no_model);
    if (fields == nullptr && n_fields > 0) return fail(error, APPROXSVM_INVALID_ARGUMENT, -1, null_pointer, "fields");
    if (row == nullptr) return fail(error, APPROXSVM_INVALID_ARGUMENT, -1, null_pointer, "row");
    const ModelView& view = model->opened.view();
    if (row_size < view.n_raw_features)
        return fail(error, APPROXSVM_BUFFER_TOO_SMALL, -1,
                    "row has room for %zu numbers, but the model has %zu columns", row_size, view.n_raw_features);
    return read_record(view, fields, n_fields, row, error);
}

size_t approxsvm_n_categories(const approxsvm_model* model, size_t column) {
    return texts_of(view_of(model), column).n;
}

approxsvm_status approxsvm_evaluate_f32(const approxsvm_model* model, const float* rows, size_t rows_size,
                                        const approxsvm_request* request, approxsvm_error* error) {
    return evaluate_dense(model, rows, rows_size, request, error);
}

approxsvm_status approxsvm_evaluate_f64(const approxsvm_model* model, const double* rows, size_t rows_size,
                                        const approxsvm_request* request, approxsvm_error* error) {
    return evaluate_dense(model, rows, rows_size, request, error);
}

approxsvm_status approxsvm_evaluate_csr_f32(const approxsvm_model* model, const float* values, const int32_t* columns,
                                            size_t n_values, const int32_t* row_starts, size_t n_rows,
                                            const approxsvm_request* request, approxsvm_error* error) {
    return evaluate_csr(model, values, columns, n_values, row_starts, n_rows, request, error);
}

approxsvm_status approxsvm_evaluate_csr_f64(const approxsvm_model* model, const double* values, const int32_t* columns,
                                            size_t n_values, const int32_t* row_starts, size_t n_rows,
                                            const approxsvm_request* request, approxsvm_error* error) {
    return evaluate_csr(model, values, columns, n_values, row_starts, n_rows, request, error);
}

approxsvm_status approxsvm_evaluate_csr_f32_i64(const approxsvm_model* model, const float* values,
                                                const int64_t* columns, size_t n_values, const int64_t* row_starts,
                                                size_t n_rows, const approxsvm_request* request,
                                                approxsvm_error* error) {
    return evaluate_csr(model, values, columns, n_values, row_starts, n_rows, request, error);
}

approxsvm_status approxsvm_evaluate_csr_f64_i64(const approxsvm_model* model, const double* values,
                                                const int64_t* columns, size_t n_values, const int64_t* row_starts,
                                                size_t n_rows, const approxsvm_request* request,
                                                approxsvm_error* error) {
    return evaluate_csr(model, values, columns, n_values, row_starts, n_rows, request, error);
}

approxsvm_status approxsvm_predict_f32(const approxsvm_model* model, const float* rows, size_t rows_size,
                                       uint32_t* labels, size_t labels_size, approxsvm_error* error) {
    return predict(model, rows, rows_size, labels, labels_size, error);
}

approxsvm_status approxsvm_predict_f64(const approxsvm_model* model, const double* rows, size_t rows_size,
                                       uint32_t* labels, size_t labels_size, approxsvm_error* error) {
    return predict(model, rows, rows_size, labels, labels_size, error);
}

}  // extern "C"

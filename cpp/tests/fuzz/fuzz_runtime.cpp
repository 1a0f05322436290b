// Fuzzes the C interface. The input is an artifact, followed by calls for the model that it opens. Sizes and row starts
// are arbitrary, but the arguments describe them correctly, and no memory extends beyond them. Every call must return a
// code from the header and a terminated message, and must not change a buffer that is too small.

#include <memory>

#include "artifact_mutator.hpp"
#include "c_room.hpp"
#include "script.hpp"

namespace {

using fuzz::require;
using fuzz::Script;

/// Checks that a status is a code from the header, other than the one for an internal error.
void check(approxsvm_status status, const approxsvm_error& error) {
    require(status != APPROXSVM_INTERNAL, "a defect");
    require(std::strcmp(approxsvm_status_text(status), "unknown status") != 0, "a code that is none");
    require(error.status == status, "the error has another code");
    require(std::memchr(error.message, 0, sizeof error.message) != nullptr, "a message without an end");
    require((status == APPROXSVM_OK) == (error.message[0] == 0), "a message for nothing, or none for something");
}

using Model = std::unique_ptr<approxsvm_model, decltype(&approxsvm_close)>;

template <class Real, class Evaluate>
approxsvm_status dense(const approxsvm_model* model, std::size_t n_numbers, const CRoom& room, Script& script,
                       const Evaluate& evaluate, approxsvm_error& error) {
    Exact<Real> rows(n_numbers);
    const Real scale = static_cast<Real>(script.take<float>());
    for (std::size_t k = 0; k < n_numbers; ++k) {
        rows.data[k] = script.is_done() ? scale * static_cast<Real>(k % 29) : static_cast<Real>(script.take<float>());
    }
    return evaluate(model, rows.data.get(), rows.size, &room.request, &error);
}

template <class Real, class Index, class Evaluate>
approxsvm_status sparse(const approxsvm_model* model, std::size_t n_rows, const CRoom& room, Script& script,
                        const Evaluate& evaluate, approxsvm_error& error) {
    const std::size_t n_values = script.take<std::uint8_t>();
    Exact<Real> values(n_values);
    Exact<Index> columns(n_values), starts(n_rows + 1);
    const bool is_tame = script.take<std::uint8_t>() % 2 == 0;
    for (std::size_t k = 0; k < n_values; ++k) {
        values.data[k] = static_cast<Real>(script.take<float>());
        columns.data[k] = is_tame ? static_cast<Index>(k) : script.take<Index>();
    }
    for (std::size_t i = 0; i <= n_rows; ++i) {
        starts.data[i] = is_tame ? static_cast<Index>(n_values * i / n_rows) : script.take<Index>();
    }
    return evaluate(model, values.data.get(), columns.data.get(), n_values, starts.data.get(), n_rows, &room.request,
                    &error);
}

void ask(const approxsvm_model* model, Script& script) {
    const unsigned form = script.take<std::uint8_t>(), wanted = script.take<std::uint8_t>();
    const unsigned missing = form < 128 ? 0u : script.take<std::uint8_t>();
    const std::size_t d = approxsvm_n_features(model);
    const std::size_t n_rows = 1 + (d > (1u << 16) ? 0 : script.take<std::uint8_t>() % 40u);
    const std::size_t excess = missing != 0 && script.take<std::uint8_t>() % 16 == 0 ? 1 : 0;
    CRoom room(model, n_rows, wanted, missing);
    room.request.values_kind = static_cast<std::int32_t>(script.take<std::uint8_t>() % 4u);
    room.request.n_threads = static_cast<std::int32_t>(form / 8 % 3);
    approxsvm_error error;
    approxsvm_status status;
    switch (form % 6) {
        case 0:
            status = dense<float>(model, n_rows * d + excess, room, script, approxsvm_evaluate_f32, error);
            break;
        case 1:
            status = dense<double>(model, n_rows * d + excess, room, script, approxsvm_evaluate_f64, error);
            break;
        case 2:
            status = sparse<float, std::int32_t>(model, n_rows, room, script, approxsvm_evaluate_csr_f32, error);
            break;
        case 3:
            status = sparse<double, std::int32_t>(model, n_rows, room, script, approxsvm_evaluate_csr_f64, error);
            break;
        case 4:
            status = sparse<float, std::int64_t>(model, n_rows, room, script, approxsvm_evaluate_csr_f32_i64, error);
            break;
        default:
            status = sparse<double, std::int64_t>(model, n_rows, room, script, approxsvm_evaluate_csr_f64_i64, error);
    }
    check(status, error);
    if (status == APPROXSVM_BUFFER_TOO_SMALL) require(room.is_untouched(), "a small buffer was written to");
    for (std::size_t i = 0; status == APPROXSVM_OK && room.request.labels && i < room.labels.size; ++i) {
        require(room.labels.data[i] < std::max<std::size_t>(approxsvm_n_labels(model), 2), "a label that is none");
    }
}

void read_labels(const approxsvm_model* model) {
    for (std::size_t k = 0; k < std::min<std::size_t>(approxsvm_n_labels(model) + 2, 20); ++k) {
        approxsvm_label label;
        approxsvm_label_at(model, k, &label);
        Exact<char> text(approxsvm_label_text(model, k, nullptr, 0) + 1);
        require(approxsvm_label_text(model, k, text.data.get(), text.size) + 1 == text.size, "a label of two lengths");
        require(text.data[text.size - 1] == 0, "a label without an end");
        if (label.kind == APPROXSVM_LABEL_TEXT && label.text_size > 0)
            require(std::memchr(label.text, 0xFF, label.text_size) == nullptr, "a label that is no UTF-8");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t n_bytes) {
    const artifact_mutator::Input input(bytes, n_bytes);
    approxsvm_error error;
    approxsvm_model* opened = reinterpret_cast<approxsvm_model*>(&error);
    const Exact<unsigned char> copy(input.artifact);
    const approxsvm_status status = approxsvm_open_bytes(copy.data.get(), copy.size, &opened, &error);
    check(status, error);
    require((opened == nullptr) == (status != APPROXSVM_OK), "a handle of nothing");
    if (opened == nullptr) return -1;
    const Model model(opened, approxsvm_close);
    read_labels(opened);
    Script script(input.rest.data(), input.rest.size());
    for (int left = 4; left > 0; --left) ask(opened, script);
    return 0;
}

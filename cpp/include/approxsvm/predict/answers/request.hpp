// The outputs requested by a caller: whether the model has them, their sizes, and the parts of them that belong to a
// chunk of rows.
#ifndef APPROXSVM_PREDICT_ANSWERS_REQUEST_HPP
#define APPROXSVM_PREDICT_ANSWERS_REQUEST_HPP

#include "../prepare/thread_memory.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Number of a model's probability columns; 0 if it has no probabilities.
inline std::size_t n_probabilities(const ModelView& model) {
    if (rules_of(model.outputs.probability).gives != Gives::of_classes) return 0;
    return model.task == Task::one_class ? 2 : model.n_labels;
}

// Calls visit(output, elements per row, name) for each output, where `output` is a pointer to a member of Evaluation.
template <class Visit>
inline void for_outputs(const ModelView& model, const Visit& visit) {
    const std::size_t n_targets = n_targets_of(model), n_shares = n_probabilities(model);
    visit(&Evaluation::labels, n_targets, "labels");
    visit(&Evaluation::values, n_values_of(model), "values");
    visit(&Evaluation::bounds, n_values_of(model), "bounds");
    visit(&Evaluation::stages, std::size_t{1}, "stages");
    visit(&Evaluation::certified, n_targets, "certified");
    visit(&Evaluation::probabilities, n_shares, "probabilities");
    visit(&Evaluation::probability_bounds, n_shares, "probability_bounds");
}

// Returns the requested outputs for the rows [first, first + n).
inline Evaluation part_of(const ModelView& model, const Evaluation& out, std::size_t first, std::size_t n) {
    Evaluation part;
    for_outputs(model, [&](auto output, std::size_t per_row, const char*) {
        const auto& span = out.*output;
        if (span) part.*output = {span.data + first * per_row, n * per_row};
    });
    return part;
}

// Number of rows evaluated at a time if their values are stored: the values stay in a cache, and the rows fill an
// engine's blocks.
inline std::size_t answer_piece_rows(const ModelView& model) {
    const std::size_t n_signs = is_of_targets(model) ? model.combination.n_columns : 0;
    const std::size_t per_row = n_values_of(model) + n_signs + 3 * std::size_t{model.n_labels} + 1;
    const std::size_t rows = (std::size_t{1} << (model.n_centers > 1 ? 18 : 16)) / per_row;
    return rows < 2 * block_rows ? 2 * block_rows : rows < route_rows ? rows : route_rows;
}

// --- checking the request

template <class T>
inline bool is_large_enough(const Span<T>& span, std::size_t n_rows, std::size_t per_row) {
    return !span || (per_row > 0 && span.size / per_row >= n_rows);
}

// Checks that the model has the requested outputs, and that the caller's buffers are large enough.
inline Status check_request(const ModelView& model, std::size_t n_rows, const Request& request, const Evaluation& out) {
    if (out.labels && model.task == Task::regression) return Status::no_labels;
    if (wants_values(out) && model.n_decisions == 0) return Status::no_values;
    if ((out.probabilities || out.probability_bounds) && n_probabilities(model) == 0) return Status::no_probabilities;
    if (request.values == Values::exact && model.mode == Mode::approximate && !is_of_products(model))
        return Status::no_exact_values;
    bool enough = true;
    for_outputs(model, [&](auto output, std::size_t per_row, const char*) {
        enough = enough && is_large_enough(out.*output, n_rows, per_row);
    });
    return enough ? Status::ok : Status::buffer_too_small;
}

// Calls answer(chunk of rows, request, outputs) for one chunk after another until one call fails.
template <class Answer>
inline Status for_pieces(const ModelView& model, const RowSource& rows, const Request& request, const Evaluation& out,
                         const Answer& answer) {
    const std::size_t step = answer_piece_rows(model);
    for (std::size_t first = 0; first < rows.n_rows(); first += step) {
        const std::size_t left = rows.n_rows() - first, n = left < step ? left : step;
        const SelectedRows piece(rows, first, n);
        Request own = request;
        if (own.row_errors) own.row_errors += first;
        const Status status = answer(piece, own, part_of(model, out, first, n));
        if (status == Status::ok) continue;
        if (request.fault) request.fault->row += first;
        return status;
    }
    return Status::ok;
}

// Returns whether this stage counts as the model's first stage.
inline bool is_first_stage(const ModelView& model, std::uint8_t stage) {
    if (model.mode != Mode::exact) return stage <= by_higher_degree;
    return stage <= (is_of_products(model) ? by_float64 : by_float32);
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

// Evaluates raw rows with the code for the kernel. If the model has an input map, rows are mapped first, one chunk at a
// time.
#ifndef APPROXSVM_PREDICT_ANSWERS_EVALUATE_HPP
#define APPROXSVM_PREDICT_ANSWERS_EVALUATE_HPP

#include "../kernels/gaussian.hpp"
#include "../kernels/polynomials.hpp"
#include "../rows/row_mapping.hpp"
#include "request.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Number of rows mapped at a time. Mapped values should stay in a cache. However, if there are many centers, each
// should get several rows, and if there is an engine, a chunk should fill its blocks.
inline std::size_t mapped_piece_rows(const ModelView& model) {
    const std::size_t numbers = std::size_t{1} << (model.n_centers > 1 ? 20 : has_engines(model) ? 16 : 13);
    const std::size_t rows = numbers / model.n_features;
    return rows < 2 * block_rows ? 2 * block_rows : rows < route_rows ? rows : route_rows;
}

// One thread's scratch memory for a chunk of mapped rows and bounds on their values' errors.
struct MappingMemory {
    MappedRowsMemory chunk;
    double* bounds = nullptr;
    EvaluationMemory evaluation;

    template <Parts parts>
    MappingMemory(const PreparedModel& prepared, const CallOf<parts>& call, Arena& arena)
        : evaluation(prepared, call, arena) {
        const ModelView& model = *prepared.view;
        if (!model.has_input_map) return;
        const std::size_t n = call.at_most(mapped_piece_rows(model));
        chunk = MappedRowsMemory(model, n, arena);
        bounds = arena.take<double>(model.tolerance_asked ? n : 0, model.n_decisions);
    }
};

// Evaluates all rows of a mapped source: values, bounds, stages, and labels by votes. Adds to each counts[stage] the
// number of rows whose results came from that stage. The memory must be sufficient for the number of rows in the call,
// as stated in the request.
template <Parts parts = all_parts>
inline Status evaluate_source(const PreparedModel& prepared, const RowSource& source, const Request& request,
                              const Evaluation& out, std::uint64_t* counts, const EvaluationMemory& memory) {
    const ModelView& model = *prepared.view;
    const bool labels_only =
        !wants_values(out) && !out.stages && model.task != Task::regression && model.mode != Mode::approximate;
    const Batch batch = batch_of<parts>(model, request.n_rows_in_call, labels_only);
    const Job job{prepared, model, source, request, out, counts, batch, memory};
    return with_kind<parts>(model,
                            [&](auto kind) { return EvaluatorOf<decltype(kind)>::template evaluate<parts>(job); });
}

// Rejects values if a tolerance is guaranteed and the mapped row's error alone exceeds it.
inline Status check_tolerance(const ModelView& model, const Span<double>& bounds, Fault* fault) {
    for (std::size_t k = 0; k < bounds.size; ++k) {
        if (bounds[k] <= model.tolerance) continue;
        if (fault) *fault = {k / model.n_decisions, bounds[k], model.tolerance};
        return Status::beyond_tolerance;
    }
    return Status::ok;
}

// Makes the bounds of a row with an infinite error infinite, and its labels uncertified: a source that maps rows in
// float32 may reject such a row, or compute infinity or NaN. No finite bound is valid then, even for kernel values of
// at most 1.
inline void distrust(const ModelView& model, const double* row_errors, std::size_t n, const Evaluation& found) {
    const std::size_t n_targets = n_targets_of(model);
    for (std::size_t i = 0; i < n; ++i) {
        if (row_errors[i] < HUGE_VAL) continue;
        for (std::size_t k = 0; found.bounds && k < model.n_decisions; ++k)
            found.bounds[i * model.n_decisions + k] = HUGE_VAL;
        for (std::size_t t = 0; found.certified && t < n_targets; ++t) found.certified[i * n_targets + t] = 0;
    }
}

template <Parts parts>
inline Status evaluate_mapped(const PreparedModel& prepared, const RowSource& rows, const Request& request,
                              const Evaluation& out, std::uint64_t* counts, const MappingMemory& memory) {
    const ModelView& model = *prepared.view;
    const auto feels_error = [&](double error, const double* row) {
        return with_kind<parts>(
            model, [&](auto kind) { return EvaluatorOf<decltype(kind)>::feels_error(prepared, error, row); });
    };
    const MappedRowsMemory& chunk = memory.chunk;
    const RowMapping<parts, decltype(feels_error)> mapping(model, prepared.map_gains, rows, chunk, request,
                                                           feels_error);
    const std::size_t step = mapped_piece_rows(model), d = model.n_features;
    const bool has_promise = model.tolerance_asked && wants_values(out) && request.keeps_promise;
    for (std::size_t first = 0; first < rows.n_rows(); first += step) {
        const std::size_t left = rows.n_rows() - first, n = left < step ? left : step;
        Status status = mapping.map(first, n);
        if (status != Status::ok) return status;
        const DenseSource<double, parts> mapped(DenseRows<double>{chunk.mapped, n, static_cast<std::ptrdiff_t>(d), 1},
                                                d);
        Request part = request;
        part.row_errors = chunk.errors;
        Evaluation wanted = part_of(model, out, first, n);
        if (has_promise && !wanted.bounds) wanted.bounds = {memory.bounds, n * model.n_decisions};
        status = evaluate_source<parts>(prepared, mapped, part, wanted, counts, memory.evaluation);
        if (status == Status::ok && request.source_unit > unit64) distrust(model, chunk.errors, n, wanted);
        if (status == Status::ok && has_promise) status = check_tolerance(model, wanted.bounds, request.fault);
        if (status == Status::ok) continue;
        if (request.fault) request.fault->row += first;
        return status;
    }
    return Status::ok;
}

// Evaluates all raw rows from a source: values, bounds, stages, and labels by votes.
template <Parts parts>
inline Status evaluate_raw(const PreparedModel& prepared, const RowSource& rows, const Request& request,
                           const Evaluation& out, std::uint64_t* counts, const MappingMemory& memory) {
    if constexpr (has(parts, scalers)) {
        if (prepared.view->has_input_map) return evaluate_mapped<parts>(prepared, rows, request, out, counts, memory);
    }
    return evaluate_source<parts>(prepared, rows, request, out, counts, memory.evaluation);
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

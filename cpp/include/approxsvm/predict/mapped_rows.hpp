// Takes raw rows and maps them as the source does, a chunk at a time. The uncertainty of a mapped row enters its
// bounds. Rows of a model without an input map are evaluated directly.
#ifndef APPROXSVM_PREDICT_MAPPED_ROWS_HPP
#define APPROXSVM_PREDICT_MAPPED_ROWS_HPP

#include "evaluate.hpp"
#include "input_map.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Number of rows that are mapped at a time. Their numbers should stay in a cache. With many centers, though, each
// center should get several rows, and with an engine a chunk should fill its blocks.
inline std::size_t mapped_piece_rows(const ModelView& model) {
    const std::size_t numbers = std::size_t{1} << (model.n_centers > 1 ? 20 : has_engines(model) ? 16 : 13);
    const std::size_t rows = numbers / model.n_features;
    return rows < 2 * block_rows ? 2 * block_rows : rows < route_rows ? rows : route_rows;
}

// Scratch memory of one thread: a chunk of mapped rows, their errors, one raw row, and the memory of the ops.
struct MappingMemory {
    double *mapped = nullptr, *errors = nullptr, *raw = nullptr, *ops = nullptr, *bounds = nullptr;
    EvaluationMemory evaluation;

    template <Parts parts>
    MappingMemory(const PreparedModel& prepared, const CallOf<parts>& call, Arena& arena)
        : evaluation(prepared, call, arena) {
        const ModelView& model = *prepared.view;
        if (!model.has_input_map) return;
        const std::size_t n = call.at_most(mapped_piece_rows(model));
        mapped = arena.take<double>(n * model.n_features);
        errors = arena.take<double>(n);
        raw = arena.take<double>(model.n_raw_features);
        ops = arena.take<double>(map_doubles(model.input_map));
        bounds = arena.take<double>(model.tolerance_asked ? n : 0, model.n_decisions);
    }
};

template <Parts parts>
class RowMapping {
  public:
    RowMapping(const PreparedModel& prepared, const RowSource& rows, const MappingMemory& memory,
               const Request& request)
        : prepared_(prepared),
          view_(*prepared.view),
          rows_(rows),
          memory_(memory),
          fault_(request.fault),
          source_{request.source_unit > unit64, rows.is_sparse()},
          scaler_(view_.input_map, prepared.map_gains, source_),
          mapper_(view_.input_map, prepared.map_gains, memory.ops, source_) {}

    // Maps the rows [first, first + n) into the memory's first n rows. Rows whose error matters are mapped in twice the
    // precision.
    Status map(std::size_t first, std::size_t n) const {
        if (scaler_) {
            for (std::size_t k = 0; k < n; ++k) {
                const Status status = scale(first + k, k);
                if (status != Status::ok) return status;
            }
            return Status::ok;
        }
        for (std::size_t k = 0; k < n; k += map_rows_together) {
            const std::size_t left = n - k, m = left < map_rows_together ? left : map_rows_together;
            MappedRow found[map_rows_together] = {};
            const Status status = map_few(first + k, m, false, found);
            if (status != Status::ok) return status;
            for (std::size_t r = 0; r < m; ++r) keep(k + r, found[r]);
            for (std::size_t r = 0; view_.input_map.has_projection && !source_.in_float32 && r < m; ++r) {
                const double* row = memory_.mapped + (k + r) * view_.n_features;
                const double error = memory_.errors[k + r];
                const bool is_felt = with_kind<parts>(
                    view_, [&](auto kind) { return EvaluatorOf<decltype(kind)>::feels_error(prepared_, error, row); });
                if (!is_felt) continue;
                MappedRow again[map_rows_together] = {};
                const Status known = map_few(first + k + r, 1, true, again);
                if (known != Status::ok) return known;
                keep(k + r, again[0]);
            }
        }
        return Status::ok;
    }

  private:
    // Maps row i into the memory's row k.
    Status scale(std::size_t i, std::size_t k) const {
        double* const selected = mapper_.row(0);
        Status status = load(i, selected, false);
        if (status != Status::ok) return status;
        if (scaler_.map(selected, memory_.mapped + k * view_.n_features, memory_.errors[k])) return Status::ok;
        MappedRow found[map_rows_together] = {};
        status = map_few(i, 1, false, found);
        if (status == Status::ok) keep(k, found[0]);
        return status;
    }

    Status map_few(std::size_t first, std::size_t n, bool exactly, MappedRow (&found)[map_rows_together]) const {
        for (std::size_t r = 0; r < n; ++r) {
            const Status status = load(first + r, mapper_.row(r), true);
            if (status != Status::ok) return status;
        }
        mapper_.map(n, exactly, found);
        for (std::size_t r = 0; r < n; ++r) {
            if (!found[r].is_inside) {
                if (fault_) *fault_ = found[r].outside;
                if (fault_) fault_->row = first + r;
                return Status::outside_domain;
            }
            if (!found[r].is_finite) return overflowed(first + r);
        }
        return Status::ok;
    }

    // Loads the columns that are used and ignores the others. A scaler detects non-finite values.
    Status load(std::size_t i, double* x, bool checks) const {
        const InputMapView& map = view_.input_map;
        if (rows_.check_order(i) == Status::unsorted_indices) return Status::unsorted_indices;
        double* raw = map.takes_all_columns ? x : memory_.raw;
        if (rows_.load(i, nullptr, 1.0, raw, 1) != 0.0) {  // also true for NaN
            if (fault_) *fault_ = {i, 0.0, static_cast<double>(view_.n_raw_features)};
            return Status::unknown_feature;
        }
        for (std::size_t k = 0; k < map.n_checked; ++k) {
            if (!takes(map.checked[k], raw[map.checked[k].column])) return Status::not_finite;
        }
        for (std::size_t k = 0; raw != x && k < map.n_columns; ++k) x[k] = raw[map.columns[k]];
        return checks && !takes_row<parts>(map, x) ? Status::not_finite : Status::ok;
    }

    Status overflowed(std::size_t i) const {
        double largest = 0.0;
        load(i, mapper_.row(0), false);
        for (std::size_t k = 0; k < view_.input_map.n_columns; ++k)
            largest = std::fmax(largest, std::fabs(mapper_.row(0)[k]));
        if (fault_) *fault_ = {i, largest, source_.in_float32 ? largest32 : largest_double};
        return Status::map_overflow;
    }

    void keep(std::size_t k, const MappedRow& row) const {
        const std::size_t d = view_.n_features;
        for (std::size_t j = 0; j < d; ++j) memory_.mapped[k * d + j] = row.values[j];
        memory_.errors[k] = row.error;
    }

    const PreparedModel& prepared_;
    const ModelView& view_;
    const RowSource& rows_;
    const MappingMemory& memory_;
    Fault* const fault_;
    const SourceRows source_;
    const ScalerAlone scaler_;
    const RowMapper<parts> mapper_;
};

// Number of probability columns of a model; 0 if it has none.
inline std::size_t n_probabilities(const ModelView& model) {
    if (rules_of(model.outputs.probability).gives != Gives::of_classes) return 0;
    return model.task == Task::one_class ? 2 : model.n_labels;
}

// Calls visit(output, its numbers per row, its name) for each output, a member of Evaluation.
template <class Visit>
inline void for_outputs(const ModelView& model, const Visit& visit) {
    const std::size_t n_targets = n_targets_of(model), n_shares = n_probabilities(model);
    visit(&Evaluation::labels, n_targets, "labels");
    visit(&Evaluation::values, model.n_decisions, "values");
    visit(&Evaluation::bounds, model.n_decisions, "bounds");
    visit(&Evaluation::stages, std::size_t{1}, "stages");
    visit(&Evaluation::certified, n_targets, "certified");
    visit(&Evaluation::probabilities, n_shares, "probabilities");
    visit(&Evaluation::probability_bounds, n_shares, "probability_bounds");
}

// Returns the outputs wanted for the rows [first, first + n).
inline Evaluation part_of(const ModelView& model, const Evaluation& out, std::size_t first, std::size_t n) {
    Evaluation part;
    for_outputs(model, [&](auto output, std::size_t per_row, const char*) {
        const auto& span = out.*output;
        if (span) part.*output = {span.data + first * per_row, n * per_row};
    });
    return part;
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

// Drops the bound of a row with an infinite error: a source that maps rows in float32 may refuse it or compute
// something that is not a number. Then no bound holds, even for kernels that are at most 1.
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
    const RowMapping<parts> mapping(prepared, rows, memory, request);
    const std::size_t step = mapped_piece_rows(model), d = model.n_features;
    const bool has_promise = model.tolerance_asked && wants_values(out) && request.keeps_promise;
    for (std::size_t first = 0; first < rows.n_rows(); first += step) {
        const std::size_t left = rows.n_rows() - first, n = left < step ? left : step;
        Status status = mapping.map(first, n);
        if (status != Status::ok) return status;
        const DenseSource<double, parts> mapped(DenseRows<double>{memory.mapped, n, static_cast<std::ptrdiff_t>(d), 1},
                                                d);
        Request part = request;
        part.row_errors = memory.errors;
        Evaluation wanted = part_of(model, out, first, n);
        if (has_promise && !wanted.bounds) wanted.bounds = {memory.bounds, n * model.n_decisions};
        status = evaluate_source<parts>(prepared, mapped, part, wanted, counts, memory.evaluation);
        if (status == Status::ok && request.source_unit > unit64) distrust(model, memory.errors, n, wanted);
        if (status == Status::ok && has_promise) status = check_tolerance(model, wanted.bounds, request.fault);
        if (status == Status::ok) continue;
        if (request.fault) request.fault->row += first;
        return status;
    }
    return Status::ok;
}

// Evaluates all raw rows of a source: values, bounds, ops, and labels by votes. The workspace holds a MappingMemory.
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

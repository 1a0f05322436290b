// Check rows test whether this machine computes the same values as the one that wrote an artifact (models/FORMAT.md).
// They do not pass through the input map, which only the checksum protects.
#ifndef APPROXSVM_PREDICT_REPLAY_HPP
#define APPROXSVM_PREDICT_REPLAY_HPP

#include "answers/evaluate.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

struct ReplayMemory {
    EvaluationMemory evaluation;
    float* row;
    double *values, *bounds;

    template <Parts parts>
    ReplayMemory(const PreparedModel& prepared, const CallOf<parts>& call, Arena& arena)
        : evaluation(prepared, call, arena) {
        const ModelView& model = *prepared.view;
        row = arena.take<float>(model.n_features);
        values = arena.take<double>(block_rows * model.n_decisions);
        bounds = arena.take<double>(block_rows * model.n_decisions);
    }
};

// Number of bytes of memory for replay().
template <Parts parts = all_parts>
inline std::size_t replay_bytes(const PreparedModel& prepared) {
    std::size_t most = 0;
    const auto need = [&](const PreparedModel& model) {
        Arena counter(nullptr);
        [[maybe_unused]] const ReplayMemory memory(model, CallOf<parts>(any_number_of_rows), counter);
        most = counter.bytes_anywhere() > most ? counter.bytes_anywhere() : most;
    };
    for (std::size_t k = 0; k < prepared.view->n_members; ++k) need(*prepared.members[k]);
    if (prepared.view->n_members == 0) need(prepared);
    return most;
}

// Check row k of a model with n_functions functions: the index of its function, whose value must agree with `value`
// within the tolerance.
struct CheckRow {
    std::size_t function;
    double value, tolerance;

    CheckRow(std::size_t n_functions, const CheckRecord* rows, std::size_t n_rows, std::size_t k)
        : function(check_row_position(n_functions, k, n_rows)), value(rows[k].value), tolerance(rows[k].tolerance) {}
};

// Assigns all rows to a given center, even if another is nearer.
template <class AnyCascade>
inline Status evaluate_about(AnyCascade& cascade, const Job& job, std::size_t center) {
    const Status status = expand_about_one(cascade, job, center);
    if (status == Status::ok) cascade.finish();
    return status;
}

// Returns whether an expansion with all degrees reproduces the value of a check row, for a single row or for the same
// row in all lanes.
template <int Registers>
inline bool has_value(const Job& job, std::size_t center, const CheckRow& check) {
    const std::size_t rows[rows_in<Registers>] = {};
    double unseen[rows_in<Registers>];
    float off_sq[rows_in<Registers>];
    Value values[rows_in<Registers>];
    const Expansion expansion = expansion_of(job.view, center, check.function);
    float* const u = job.memory.first_block;
    load_around<Registers>(job, rows, rows_in<Registers>, expansion.center, u, unseen, off_sq);
    evaluate_expansion<Registers>(job.view, expansion, job.prepared.zeros, job.view.degree, u, rows_in<Registers>,
                                  values);
    for (const Value& value : values) {
        if (!(std::fabs(decision_value(expansion, value) - check.value) <= check.tolerance)) return false;
    }
    return true;
}

// Evaluates the expansions' check rows, as single rows and in a full block, by the expansion and, if predictions use
// only the expansion, by the complete prediction.
template <Parts parts>
inline Status replay_expansions(const PreparedModel& prepared, const ReplayMemory& memory) {
    const ModelView& model = *prepared.view;
    constexpr std::size_t batches[] = {1, block_rows};  // std::initializer_list would emit weak symbols
    for (std::size_t k = 0; k < model.n_check_rows; ++k) {
        const std::size_t center = check_row_position(model.n_centers, k, model.n_check_rows);
        const CheckRow check(model.n_forms, model.check_rows, model.n_check_rows, k);
        make_check_row(model, model.centers + center * model.n_features, model.check_rows, k, memory.row);
        for (const std::size_t n_rows : batches) {  // a row stride of 0 repeats the row
            const DenseRows<float> rows{memory.row, n_rows, 0, 1};
            const DenseSource<float, parts> source(rows, model.n_features);
            Evaluation out;
            out.values = {memory.values, n_rows * model.n_decisions};
            std::uint64_t counts[n_stages] = {};
            const Request request{n_rows == 1 ? 1 : ~std::size_t{0}, Values::settled};
            const Batch batch = batch_of<parts>(model, request.n_rows_in_call, false);
            const Job job{prepared, model, source, request, out, counts, batch, memory.evaluation};
            bool agrees = has_value<0>(job, center, check);
            if constexpr (has(parts, approxsvm::batches)) agrees &= has_value<int{max_registers}>(job, center, check);
            if (!agrees) return Status::check_row_mismatch;
            if (model.mode != Mode::approximate) continue;
            const Status status =
                with_cascade<parts>(job, [&](auto& cascade) { return evaluate_about(cascade, job, center); });
            for (std::size_t i = 0; i < n_rows; ++i) {
                const double value = memory.values[i * model.n_decisions + check.function];
                if (status != Status::ok || !(std::fabs(value - check.value) <= check.tolerance))
                    return Status::check_row_mismatch;
            }
        }
    }
    return Status::ok;
}

// Evaluates the exact check rows, as single rows and in a block, by the first stage whose bound suffices and by the
// engines. Each value may differ from the stored one by at most its bound plus the stored tolerance.
template <Parts parts>
inline Status replay_exact_model(const PreparedModel& prepared, const ReplayMemory& memory) {
    const ModelView& model = *prepared.view;
    const std::size_t n_decisions = model.n_decisions;
    const std::size_t block = by_columns(model) ? 1 : block_rows;  // by columns, rows are not evaluated together
    const std::size_t batches[] = {1, block, 1, block};
    for (std::size_t k = 0; k < model.n_exact_check_rows; ++k) {
        const CheckRow check(n_decisions, model.exact_check_rows, model.n_exact_check_rows, k);
        make_check_row(model, model.center ? model.center : prepared.zeros, model.exact_check_rows, k, memory.row);
        bool is_defined = false;  // true if the single row was evaluated by the definition, like a row at a tie
        for (std::size_t b = 0; b < 4; ++b) {
            if (b == 1 && is_defined) continue;  // a block would sum all class pairs for each row
            const std::size_t n_rows = batches[b];
            std::uint64_t counts[n_stages] = {};
            const DenseSource<float, parts> source(DenseRows<float>{memory.row, n_rows, 0, 1}, model.n_features);
            Evaluation out;
            out.values = {memory.values, n_rows * n_decisions};
            out.bounds = {memory.bounds, n_rows * n_decisions};
            const Request request{b % 2 ? ~std::size_t{0} : 1, b < 2 ? Values::settled : Values::exact};
            const Status status = evaluate_source<parts>(prepared, source, request, out, counts, memory.evaluation);
            if (status != Status::ok && status != Status::beyond_tolerance) return Status::check_row_mismatch;
            is_defined |= counts[by_definition] > 0;
            for (std::size_t i = 0; i < n_rows; ++i) {
                const std::size_t at = i * n_decisions + check.function;
                if (!(std::fabs(memory.values[at] - check.value) <= memory.bounds[at] + check.tolerance))
                    return Status::check_row_mismatch;
            }
        }
    }
    return Status::ok;
}

// Replays all check rows of a model, or of every member of an ensemble, in replay_bytes() of memory.
template <Parts parts = all_parts>
inline Status replay(const PreparedModel& prepared, void* memory) {
    for (std::size_t k = 0; k < prepared.view->n_members; ++k) {
        const Status status = replay<parts>(*prepared.members[k], memory);
        if (status != Status::ok) return status;
    }
    if (prepared.view->n_members > 0) return Status::ok;
    Arena arena(memory);
    const ReplayMemory room(prepared, CallOf<parts>(any_number_of_rows), arena);
    const Status status = replay_expansions<parts>(prepared, room);
    return status == Status::ok ? replay_exact_model<parts>(prepared, room) : status;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

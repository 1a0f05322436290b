// Predictions of an ensemble, whose members compute columns of values, votes or labels. A matrix turns values and votes
// into the ensemble's values. Predictions follow from these as in a single model; with votes, the label with the
// largest sum wins.
#ifndef APPROXSVM_PREDICT_ANSWERS_ENSEMBLES_HPP
#define APPROXSVM_PREDICT_ANSWERS_ENSEMBLES_HPP

#include "one_model.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Memory for an ensemble: sums over the members for a chunk of rows, and memory sufficient for any member.
struct EnsembleMemory {
    ValueMemory of_values;
    double *values, *bounds, *sums, *sum_bounds, *certain_sums, *columns, *errors, *highest, *room;
    std::uint8_t *stages, *certified;
    std::uint32_t* labels;
    std::size_t* open;
    void* member;

    template <Parts parts>
    EnsembleMemory(const PreparedModel& prepared, const CallOf<parts>& call, Arena& arena)
        : of_values(*prepared.view, call, arena) {
        const ModelView& model = *prepared.view;
        const std::size_t n_rows = call.at_most(answer_piece_rows(model)), n_votes = model.combination.n_values,
                          n_values = n_values_of(model) > n_votes ? n_values_of(model) : n_votes;
        std::size_t n_decisions = 1, n_labels = 1, member_bytes = 0;
        for (std::size_t k = 0; k < model.n_members; ++k) {
            const ModelView& view = *prepared.members[k]->view;
            Arena counter(nullptr);
            if (model.combination.columns != Columns::numbers) {
                [[maybe_unused]] const AnswerMemory memory(*prepared.members[k], call, counter);
            } else {
                [[maybe_unused]] const MappingMemory memory(*prepared.members[k], call, counter);
            }
            n_decisions = view.n_decisions > n_decisions ? view.n_decisions : n_decisions;
            n_labels = view.n_labels > n_labels ? view.n_labels : n_labels;
            member_bytes = counter.bytes_anywhere() > member_bytes ? counter.bytes_anywhere() : member_bytes;
        }
        values = arena.take<double>(n_rows * n_decisions);
        bounds = arena.take<double>(n_rows * n_decisions);
        sums = arena.take<double>(n_rows, n_values);
        sum_bounds = arena.take<double>(n_rows, n_values);
        certain_sums = arena.take<double>(n_rows, n_votes);
        columns = arena.take<double>(n_labels);
        errors = arena.take<double>(n_labels);
        highest = arena.take<double>(n_labels);
        room = arena.take<double>(outputs_doubles(n_labels));
        stages = arena.take<std::uint8_t>(n_rows);
        certified = arena.take<std::uint8_t>(n_rows);
        labels = arena.take<std::uint32_t>(n_rows);
        open = arena.take<std::size_t>(n_rows);
        member = arena.take<unsigned char>(member_bytes);
    }
};

// The call to which these rows belong; it may have more rows.
template <Parts parts>
inline CallOf<parts> rows_of_call(const RowSource& rows, const Request& request) {
    return CallOf<parts>(request.n_rows_in_call > rows.n_rows() ? request.n_rows_in_call : rows.n_rows());
}

template <Parts parts>
class EnsembleAnswers {
  public:
    EnsembleAnswers(const PreparedModel& prepared, std::uint64_t* counts, const EnsembleMemory& memory)
        : prepared_(prepared), view_(*prepared.view), matrix_(view_.combination), counts_(counts), memory_(memory) {}

    Status answer(const RowSource& rows, const Request& request, const Evaluation& out) const {
        if (matrix_.columns == Columns::votes) return by_pieces(rows, request, out, &EnsembleAnswers::vote);
        if (matrix_.columns == Columns::labels) return by_pieces(rows, request, out, &EnsembleAnswers::targets);
        if (view_.task == Task::regression) return by_pieces(rows, request, out, &EnsembleAnswers::combine);
        const auto evaluate = [this](const RowSource& some, Request own, const Evaluation& wanted) {
            // Values to be summed, and values of class pairs, are exact even if members have tolerances.
            if (own.values == Values::promised && (weighs_values() || has_classes(view_))) own.values = Values::exact;
            return by_pieces(some, own, wanted, &EnsembleAnswers::combine);
        };
        bool can_be_exact = false;
        for (std::size_t k = 0; k < view_.n_members; ++k)
            can_be_exact = can_be_exact || has_engines(*prepared_.members[k]->view);
        return ValueAnswers<parts, decltype(evaluate)>(view_, evaluate, memory_.of_values, can_be_exact)
            .answer(rows, request, out);
    }

  private:
    using OfPiece = Status (EnsembleAnswers::*)(const RowSource&, Request, const Evaluation&) const;
    Status by_pieces(const RowSource& rows, const Request& request, const Evaluation& out, OfPiece of_piece) const {
        return for_pieces(view_, rows, request, out,
                          [&](const RowSource& piece, const Request& own, const Evaluation& part) {
                              return (this->*of_piece)(piece, own, part);
                          });
    }
    bool is_mean() const { return view_.outputs.probability == ProbabilityKind::members_mean; }
    bool weighs_values() const { return matrix_.n_values > 0 && !is_mean(); }
    double unit() const { return approxsvm_unit_of_sum(static_cast<int>(matrix_.n_columns)); }

    // --- one member

    // Computes one member's values, bounds and stages; `stages` keeps the last stage of all members.
    Status evaluate_member(std::size_t k, const RowSource& rows, Request request,
                           const Span<std::uint8_t>& stages) const {
        const PreparedModel& member = *prepared_.members[k];
        const std::size_t n = rows.n_rows(), n_values = n * member.view->n_decisions;
        if (!has_engines(*member.view) && request.values == Values::exact) request.values = Values::promised;
        Evaluation wanted;
        wanted.values = {memory_.values, n_values};
        wanted.bounds = {memory_.bounds, n_values};
        wanted.stages = {memory_.stages, n};
        Arena arena(memory_.member);
        const MappingMemory memory(member, rows_of_call<parts>(rows, request), arena);
        const Status status = evaluate_raw<parts>(member, rows, request, wanted, counts_, memory);
        if (status == Status::ok) note_stages(k, n, stages);
        return status;
    }
    void note_stages(std::size_t k, std::size_t n, const Span<std::uint8_t>& stages) const {
        for (std::size_t i = 0; stages && i < n; ++i) {
            if (k == 0 || stages[i] < memory_.stages[i]) stages[i] = memory_.stages[i];
        }
    }

    // Computes one member's labels and, if `certify` is true, whether its first stage proves them.
    Status labels_of_member(std::size_t k, const RowSource& rows, Request request, const Span<std::uint8_t>& stages,
                            bool certify) const {
        const PreparedModel& member = *prepared_.members[k];
        const std::size_t n = rows.n_rows();
        if (!has_engines(*member.view) && request.values == Values::exact) request.values = Values::promised;
        Evaluation wanted;
        wanted.labels = {memory_.labels, n};
        if (certify) wanted.certified = {memory_.certified, n};
        wanted.stages = {memory_.stages, n};
        Arena arena(memory_.member);
        const AnswerMemory memory(member, rows_of_call<parts>(rows, request), arena);
        const Status status = answer_single<parts>(member, rows, request, wanted, counts_, memory);
        if (status == Status::ok) note_stages(k, n, stages);
        return status;
    }

    // --- labels of all members

    // Computes the labels of all members. A classifier's labels form one target. Each value of a regressor forms one
    // target, whose second label stands for a value above 0.
    Status targets(const RowSource& rows, Request request, const Evaluation& out) const {
        request.keeps_promise = false;
        if (request.values != Values::exact) request.values = Values::settled;
        const std::uint32_t* positions = prepared_.label_positions;
        for (std::size_t k = 0, first = 0; k < view_.n_members; ++k) {
            const ModelView& member = *prepared_.members[k]->view;
            const bool has_signs = member.task == Task::regression;
            const Status status =
                has_signs ? signs_of_member(k, first, rows, request, out)
                          : labels_of_member(k, rows, request, out.stages, static_cast<bool>(out.certified));
            if (status != Status::ok) return status;
            for (std::size_t i = 0; !has_signs && i < rows.n_rows(); ++i) {
                const std::size_t at = i * matrix_.n_columns + first;
                if (out.labels) out.labels[at] = positions[memory_.labels[i]];
                if (out.certified) out.certified[at] = memory_.certified[i];
            }
            first += has_signs ? member.n_decisions : 1;
            positions += member.n_labels;
        }
        return Status::ok;
    }

    // Computes the signs of a regressor's values, from column `first` on. If bounds do not determine a sign, the row is
    // evaluated exactly.
    Status signs_of_member(std::size_t k, std::size_t first, const RowSource& rows, Request request,
                           const Evaluation& out) const {
        const ModelView& member = *prepared_.members[k]->view;
        const std::size_t n = rows.n_rows(), n_signs = member.n_decisions;
        Status status = evaluate_member(k, rows, request, out.stages);
        if (status != Status::ok) return status;
        const auto write = [&](std::size_t i, const double* values) {
            for (std::size_t c = 0; out.labels && c < n_signs; ++c)
                out.labels[i * matrix_.n_columns + first + c] = values[c] > 0.0 ? 1 : 0;
        };
        std::size_t n_open = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const double *const values = memory_.values + i * n_signs, *const bounds = memory_.bounds + i * n_signs;
            bool all_clear = true;
            for (std::size_t c = 0; c < n_signs; ++c) {
                const bool clear = std::fabs(values[c]) > bounds[c];
                all_clear = all_clear && clear;
                if (out.certified)
                    out.certified[i * matrix_.n_columns + first + c] =
                        clear && (!has_engines(member) || is_first_stage(member, memory_.stages[i]));
            }
            write(i, values);
            if (out.labels && !all_clear && has_engines(member) && request.values != Values::exact)
                memory_.open[n_open++] = i;
        }
        if (n_open == 0) return Status::ok;
        request.values = Values::exact;
        request.by_sign = true;
        status = evaluate_member(k, SelectedRows(rows, memory_.open, n_open), request, nullptr);
        if (status != Status::ok && request.fault) request.fault->row = memory_.open[request.fault->row];
        for (std::size_t j = 0; status == Status::ok && j < n_open; ++j)
            write(memory_.open[j], memory_.values + j * n_signs);
        return status;
    }

    // --- the matrix

    void start_sums(std::size_t n_rows, double* sums, double* bounds) const {
        for (std::size_t k = 0; k < n_rows * matrix_.n_values; ++k) {
            sums[k] = matrix_.addends[k % matrix_.n_values];
            bounds[k] = approxsvm_bound_of_addend(unit(), sums[k]);
        }
    }

    // Adds column c for one row; its value x has the given error.
    void add_column(std::size_t c, double x, double error, double* sums, double* bounds) const {
        for (std::uint32_t k = matrix_.starts[c]; k < matrix_.starts[c + 1]; ++k) {
            const std::uint32_t to = matrix_.values[k];
            approxsvm_add_product(matrix_.weights[k], x, error, unit(), sums + to, bounds + to);
        }
    }

    // --- values

    // Computes values and their bounds: sums of the members' columns, or the columns themselves.
    Status combine(const RowSource& rows, Request request, const Evaluation& out) const {
        const std::size_t n = rows.n_rows(), n_values = n_values_of(view_);
        double *const sums = out.values ? out.values.data : memory_.sums, *const bounds = out.bounds
                                                                                              ? out.bounds.data
                                                                                              : memory_.sum_bounds;
        if (matrix_.n_values > 0) start_sums(n, sums, bounds);
        for (std::size_t k = 0, first = 0; k < view_.n_members; ++k) {
            const ModelView& member = *prepared_.members[k]->view;
            // Scores and coupled probabilities depend on the values of all pairs.
            Request own = request;
            if (weighs_values() && has_classes(member)) own.values = Values::exact;
            const Status status = evaluate_member(k, rows, own, out.stages);
            if (status != Status::ok) return status;
            const std::size_t width = n_columns_of(view_, member);
            for (std::size_t i = 0; i < n; ++i) {
                const double *x = memory_.values + i * member.n_decisions, *e = memory_.bounds + i * member.n_decisions;
                if (member.task == Task::classification) {
                    find_columns(member, x, e);
                    x = memory_.columns;
                    e = memory_.errors;
                }
                add_columns(first, width, x, e, sums + i * n_values, bounds + i * n_values);
                // With several sums, bounds determine the labels, whichever stage computes the bounds.
                if (out.certified)
                    out.certified[i] = (k == 0 || out.certified[i]) && (matrix_.n_values > 1 || is_proven(member, i));
            }
            first += width;
        }
        return matrix_.n_values > 0 ? finish_sums(sums, bounds, n * n_values, request.fault, out.certified)
                                    : Status::ok;
    }

    void add_columns(std::size_t first, std::size_t n, const double* x, const double* e, double* sums,
                     double* bounds) const {
        for (std::size_t c = 0; c < n; ++c) {
            if (matrix_.n_values > 0) {
                add_column(first + c, x[c], e[c], sums, bounds);
            } else {
                sums[first + c] = x[c];
                bounds[first + c] = e[c];
            }
        }
    }

    // Rejects sums that overflow float64.
    Status finish_sums(const double* sums, double* bounds, std::size_t n_sums, Fault* fault,
                       const Span<std::uint8_t>& certified) const {
        for (std::size_t k = 0; k < n_sums; ++k) {
            const std::size_t row = k / matrix_.n_values;
            if (!is_finite(sums[k])) {
                if (fault) *fault = Fault{row, HUGE_VAL, 1.7976931348623157e308};
                return Status::beyond_float64;
            }
            bounds[k] = approxsvm_bound_of_sum(unit(), bounds[k]);
            if (certified) certified[row] = certified[row] && is_finite(bounds[k]);
        }
        return Status::ok;
    }

    // Computes a classifier's probabilities, or its scores if it has no probabilities, with their bounds.
    void find_columns(const ModelView& member, const double* values, const double* bounds) const {
        const std::size_t n = member.n_labels;
        double *const found = memory_.columns, *const low = memory_.errors, *const high = memory_.highest;
        if (has_probabilities(member.outputs)) {
            probabilities_of(member.outputs, n, values, found, memory_.room);
            probability_interval(member.outputs, n, values, bounds, low, high, memory_.room);
        } else {
            const approxsvm_outputs o = parameters_of(member.outputs, n);
            approxsvm_scores(&o, values, found, memory_.room);
            approxsvm_score_ends(&o, values, bounds, low, high, memory_.room);
        }
        for (std::size_t c = 0; c < n; ++c) low[c] = approxsvm_farther_end(found[c], low[c], high[c]);
    }

    bool is_proven(const ModelView& member, std::size_t i) const {
        if (has_engines(member)) return is_first_stage(member, memory_.stages[i]);
        for (std::size_t c = 0; c < member.n_decisions; ++c) {
            if (!is_finite(memory_.bounds[i * member.n_decisions + c])) return false;
        }
        return true;
    }

    // --- votes

    // Determines labels by votes: the label with the largest sum wins, and ties go to the first such label. A member's
    // uncertified label is still exact if the member has an exact model. In the certificate, a member with an
    // uncertified label contributes 1/2 +- 1/2 to each of its labels.
    Status vote(const RowSource& rows, Request request, const Evaluation& out) const {
        const std::size_t n = rows.n_rows(), n_labels = matrix_.n_values;
        request.keeps_promise = false;
        if (request.values != Values::exact) request.values = Values::settled;
        start_sums(n, memory_.sums, memory_.sum_bounds);
        start_sums(n, memory_.certain_sums, memory_.sum_bounds);
        for (std::size_t i = 0; i < n; ++i) memory_.open[i] = 0;
        for (std::size_t k = 0, first = 0; k < view_.n_members; ++k) {
            const Status status = labels_of_member(k, rows, request, out.stages, true);
            if (status != Status::ok) return status;
            const std::size_t width = prepared_.members[k]->view->n_labels;
            for (std::size_t i = 0; i < n; ++i) {
                const std::size_t at = i * n_labels, label = first + memory_.labels[i];
                double *const certain = memory_.certain_sums + at, *const bounds = memory_.sum_bounds + at;
                add_column(label, 1.0, 0.0, memory_.sums + at, bounds);
                if (memory_.certified[i]) {
                    add_column(label, 1.0, 0.0, certain, bounds);
                    continue;
                }
                ++memory_.open[i];
                for (std::size_t c = first; c < first + width; ++c) add_column(c, 0.5, 0.5, certain, bounds);
            }
            first += width;
        }
        const int n_c = static_cast<int>(n_labels);
        for (std::size_t i = 0; i < n; ++i) {
            const std::size_t at = i * n_labels;
            if (out.labels) out.labels[i] = static_cast<std::uint32_t>(approxsvm_first_largest(n_c, memory_.sums + at));
            if (out.certified)
                out.certified[i] = approxsvm_is_elected(n_c, static_cast<int>(memory_.open[i]),
                                                        memory_.certain_sums + at, memory_.sum_bounds + at) != 0;
        }
        return Status::ok;
    }

    const PreparedModel& prepared_;
    const ModelView& view_;
    const CombinationView& matrix_;
    std::uint64_t* const counts_;
    const EnsembleMemory& memory_;
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

// Answers of an ensemble. It averages its members' probabilities, counts their labels as votes, adds up their values,
// or gives the labels or values of all members. If its members are the functions of its classes, their values are
// treated like a single model's.
#ifndef APPROXSVM_PREDICT_ANSWERS_ENSEMBLES_HPP
#define APPROXSVM_PREDICT_ANSWERS_ENSEMBLES_HPP

#include "one_model.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Whether an ensemble asks its members for labels instead of values.
inline bool asks_for_labels(const ModelView& ensemble) {
    return counts_votes(ensemble) || is_of_targets(ensemble);
}

// Memory for an ensemble: sums over the members for a chunk of rows, and the memory that any member needs.
struct EnsembleMemory {
    ValueMemory of_functions;
    double *values, *bounds, *sums, *lowest, *highest, *shares, *low, *high, *room;
    std::uint8_t *stages, *certified;
    std::uint32_t* labels;
    std::size_t* open;
    void* member;

    template <Parts parts>
    EnsembleMemory(const PreparedModel& prepared, const CallOf<parts>& call, Arena& arena)
        : of_functions(*prepared.view, call, arena) {
        const ModelView& model = *prepared.view;
        const std::size_t n_rows = call.at_most(answer_piece_rows(model)), n_labels = model.n_labels;
        std::size_t n_decisions = 1, member_bytes = 0;
        for (std::size_t k = 0; k < model.n_members; ++k) {
            const ModelView& view = *prepared.members[k]->view;
            Arena counter(nullptr);
            if (asks_for_labels(model)) {
                [[maybe_unused]] const AnswerMemory memory(*prepared.members[k], call, counter);
            } else {
                [[maybe_unused]] const MappingMemory memory(*prepared.members[k], call, counter);
            }
            n_decisions = view.n_decisions > n_decisions ? view.n_decisions : n_decisions;
            member_bytes = counter.bytes_anywhere() > member_bytes ? counter.bytes_anywhere() : member_bytes;
        }
        values = arena.take<double>(n_rows * n_decisions);
        bounds = arena.take<double>(n_rows * n_decisions);
        const std::size_t n_sums = n_labels > 0 ? n_labels : 1;
        sums = arena.take<double>(n_rows * n_sums);
        lowest = arena.take<double>(n_rows * n_sums);
        highest = arena.take<double>(n_rows * n_labels);
        shares = arena.take<double>(n_labels);
        low = arena.take<double>(n_labels);
        high = arena.take<double>(n_labels);
        room = arena.take<double>(outputs_doubles(n_labels));
        stages = arena.take<std::uint8_t>(n_rows);
        certified = arena.take<std::uint8_t>(n_rows);
        labels = arena.take<std::uint32_t>(n_rows);
        open = arena.take<std::size_t>(n_rows);
        member = arena.take<unsigned char>(member_bytes);
    }
};

// Number of rows in the call that these rows are part of.
template <Parts parts>
inline CallOf<parts> rows_of_call(const RowSource& rows, const Request& request) {
    return CallOf<parts>(request.n_rows_in_call > rows.n_rows() ? request.n_rows_in_call : rows.n_rows());
}

template <Parts parts>
class EnsembleAnswers {
  public:
    EnsembleAnswers(const PreparedModel& prepared, std::uint64_t* counts, const EnsembleMemory& memory)
        : prepared_(prepared), view_(*prepared.view), counts_(counts), memory_(memory), n_classes_(view_.n_labels) {}

    Status answer(const RowSource& rows, const Request& request, const Evaluation& out) const {
        if (is_of_functions(view_) || is_labeled_sum(view_)) {
            const auto evaluate = [this](const RowSource& some, Request own, const Evaluation& wanted) {
                const bool adds_up = !is_of_functions(view_) || is_of_sums(view_);
                // Values of a sum, and of pairs, are exact, whatever tolerance the members have.
                if (own.values == Values::promised && (adds_up || is_of_pairs(view_))) own.values = Values::exact;
                return by_pieces(some, own, wanted,
                                 adds_up ? &EnsembleAnswers::add_values : &EnsembleAnswers::side_by_side);
            };
            return ValueAnswers<parts, decltype(evaluate)>(view_, evaluate, memory_.of_functions)
                .answer(rows, request, out);
        }
        return by_pieces(rows, request, out,
                         counts_votes(view_)                  ? &EnsembleAnswers::vote
                         : is_of_targets(view_)               ? &EnsembleAnswers::targets
                         : view_.task == Task::classification ? &EnsembleAnswers::average
                         : view_.outputs.weights              ? &EnsembleAnswers::add_values
                                                              : &EnsembleAnswers::side_by_side);
    }

  private:
    using OfPiece = Status (EnsembleAnswers::*)(const RowSource&, Request, const Evaluation&) const;
    Status by_pieces(const RowSource& rows, const Request& request, const Evaluation& out, OfPiece of_piece) const {
        return for_pieces(view_, rows, request, out,
                          [&](const RowSource& piece, const Request& own, const Evaluation& part) {
                              return (this->*of_piece)(piece, own, part);
                          });
    }
    double weight(std::size_t k) const { return view_.outputs.weights ? view_.outputs.weights[k] : 1.0; }
    int n_c() const { return static_cast<int>(n_classes_); }
    int n_members() const { return static_cast<int>(view_.n_members); }

    // --- means of probabilities

    Status average(const RowSource& rows, Request request, const Evaluation& out) const {
        const std::size_t n = rows.n_rows();
        request.keeps_promise = out.probabilities || out.probability_bounds;
        if (!request.keeps_promise) request.values = Values::settled;
        Status status = add_up(rows, request, out.stages);
        if (status != Status::ok) return status;
        std::size_t n_open = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const double *sums = memory_.sums + i * n_classes_, *lowest = memory_.lowest + i * n_classes_,
                         *highest = memory_.highest + i * n_classes_;
            const std::size_t winner = class_of_shares(view_.outputs, n_classes_, sums);
            const bool certain = certain_by_shares(view_.outputs, n_classes_, winner, lowest, highest);
            for (std::size_t c = 0; c < n_classes_; ++c) {
                if (out.probabilities) out.probabilities[i * n_classes_ + c] = sums[c];
                if (out.probability_bounds)
                    out.probability_bounds[i * n_classes_ + c] = approxsvm_farther_end(sums[c], lowest[c], highest[c]);
            }
            if (out.certified) out.certified[i] = certain;
            if (out.labels) out.labels[i] = static_cast<std::uint32_t>(winner);
            if (out.labels && !certain && request.values != Values::exact) memory_.open[n_open++] = i;
        }
        return n_open > 0 ? label_exactly(rows, n_open, request, out.labels) : Status::ok;
    }

    // Rows whose bounds leave their label undecided. Members without an exact model cannot improve their answer.
    Status label_exactly(const RowSource& rows, std::size_t n_open, Request request,
                         const Span<std::uint32_t>& labels) const {
        for (std::size_t k = 0; k < view_.n_members; ++k) {
            if (!has_engines(*prepared_.members[k]->view)) return Status::ok;
        }
        request.keeps_promise = false;
        request.values = Values::exact;
        const SelectedRows open(rows, memory_.open, n_open);
        const Status status = add_up(open, request, nullptr);
        if (status != Status::ok && request.fault) request.fault->row = memory_.open[request.fault->row];
        for (std::size_t i = 0; status == Status::ok && i < n_open; ++i) {
            labels[memory_.open[i]] =
                static_cast<std::uint32_t>(class_of_shares(view_.outputs, n_classes_, memory_.sums + i * n_classes_));
        }
        return status;
    }

    // Weighted means of the members' probabilities, and their intervals.
    Status add_up(const RowSource& rows, const Request& request, const Span<std::uint8_t>& stages) const {
        const std::size_t n = rows.n_rows(), n_sums = n * n_classes_;
        for (std::size_t i = 0; i < n_sums; ++i) memory_.sums[i] = memory_.lowest[i] = memory_.highest[i] = 0.0;
        double total = 0.0;
        for (std::size_t k = 0; k < view_.n_members; ++k) {
            const ModelView& member = *prepared_.members[k]->view;
            const double w = weight(k);
            total += w;
            const Status status = evaluate_member(k, rows, request, stages);
            if (status != Status::ok) return status;
            for (std::size_t i = 0; i < n; ++i) {
                const double* values = memory_.values + i * member.n_decisions;
                probabilities_of(member.outputs, n_classes_, values, memory_.shares, memory_.room);
                probability_interval(member.outputs, n_classes_, values, memory_.bounds + i * member.n_decisions,
                                     memory_.low, memory_.high, memory_.room);
                const std::size_t at = i * n_classes_;
                approxsvm_add_shares(n_c(), w, memory_.shares, memory_.low, memory_.high, memory_.sums + at,
                                     memory_.lowest + at, memory_.highest + at);
            }
        }
        for (std::size_t at = 0; at < n_sums; at += n_classes_) {
            approxsvm_divide_shares(n_c(), n_members(), total, memory_.sums + at, memory_.lowest + at,
                                    memory_.highest + at);
        }
        return Status::ok;
    }

    // Values, bounds and stages of one member; `stages` keeps the last stage of any member.
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

    // --- votes

    // Each member adds its weight to its own label; it may know only some of the labels. The first label with the
    // largest sum wins. The label is certain if uncertain members cannot change it; an uncertain member's label is
    // nonetheless exact if it has an exact model.
    Status vote(const RowSource& rows, Request request, const Evaluation& out) const {
        const std::size_t n = rows.n_rows();
        request.keeps_promise = false;
        if (request.values != Values::exact) request.values = Values::settled;
        for (std::size_t i = 0; i < n * n_classes_; ++i) memory_.sums[i] = memory_.lowest[i] = 0.0;
        for (std::size_t i = 0; i < n; ++i) memory_.bounds[i] = 0.0;  // weights of uncertain members
        const std::uint32_t* positions = prepared_.label_positions;
        for (std::size_t k = 0; k < view_.n_members; ++k) {
            const Status status = labels_of_member(k, rows, request, out.stages, true);
            if (status != Status::ok) return status;
            for (std::size_t i = 0; i < n; ++i) {
                const std::size_t at = i * n_classes_;
                approxsvm_count_vote(static_cast<int>(positions[memory_.labels[i]]), memory_.certified[i], weight(k),
                                     memory_.sums + at, memory_.lowest + at, memory_.bounds + i);
            }
            positions += prepared_.members[k]->view->n_labels;
        }
        for (std::size_t i = 0; i < n; ++i) {
            const std::size_t at = i * n_classes_;
            if (out.labels)
                out.labels[i] = static_cast<std::uint32_t>(approxsvm_first_largest(n_c(), memory_.sums + at));
            if (out.certified)
                out.certified[i] =
                    approxsvm_is_elected(n_c(), n_members(), memory_.lowest + at, memory_.bounds[i]) != 0;
        }
        return Status::ok;
    }

    // Computes the labels of one member and, if wanted, whether its first stage proves them.
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

    // A member's labels belong to one target. For a regression, each value is a target; its second label means above 0.
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
                const std::size_t at = i * view_.n_targets + first;
                if (out.labels) out.labels[at] = positions[memory_.labels[i]];
                if (out.certified) out.certified[at] = memory_.certified[i];
            }
            first += has_signs ? member.n_decisions : 1;
            positions += member.n_labels;
        }
        return Status::ok;
    }

    // Signs of a regression's values, from column `first` on. Rows with an undecided sign are evaluated exactly.
    Status signs_of_member(std::size_t k, std::size_t first, const RowSource& rows, Request request,
                           const Evaluation& out) const {
        const ModelView& member = *prepared_.members[k]->view;
        const std::size_t n = rows.n_rows(), n_signs = member.n_decisions;
        Status status = evaluate_member(k, rows, request, out.stages);
        if (status != Status::ok) return status;
        const auto write = [&](std::size_t i, const double* values) {
            for (std::size_t c = 0; out.labels && c < n_signs; ++c)
                out.labels[i * view_.n_targets + first + c] = values[c] > 0.0 ? 1 : 0;
        };
        std::size_t n_open = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const double *const values = memory_.values + i * n_signs, *const bounds = memory_.bounds + i * n_signs;
            bool all_clear = true;
            for (std::size_t c = 0; c < n_signs; ++c) {
                const bool clear = std::fabs(values[c]) > bounds[c];
                all_clear = all_clear && clear;
                if (out.certified)
                    out.certified[i * view_.n_targets + first + c] =
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

    // --- values added up

    // Computes one sum, or one for each label: its addend plus the weighted columns of the members. The columns of a
    // classifier are probabilities or scores (program/ensembles.h).
    Status add_values(const RowSource& rows, Request request, const Evaluation& out) const {
        const bool of_sums = is_of_sums(view_);
        const std::size_t n = rows.n_rows(), n_sums = of_sums ? n_classes_ : 1,
                          n_columns = of_sums ? view_.outputs.n_columns : view_.n_members, stride = n_columns + 1;
        const double u = approxsvm_unit_of_sum(static_cast<int>(n_columns)), *const weights = view_.outputs.weights;
        double *const sums = memory_.sums, *const bounds = memory_.lowest;
        const std::uint32_t* positions = prepared_.label_positions;
        for (std::size_t k = 0; k < n * n_sums; ++k) {
            sums[k] = weights[(k % n_sums) * stride + n_columns];
            bounds[k] = approxsvm_bound_of_addend(u, sums[k]);
        }
        for (std::size_t k = 0, first = 0; k < view_.n_members; ++k) {
            const ModelView& member = *prepared_.members[k]->view;
            const bool classifies = member.task == Task::classification;
            // Scores and coupled probabilities need the values of all pairs.
            Request own = request;
            if (has_classes(member)) own.values = Values::exact;
            const Status status = evaluate_member(k, rows, own, out.stages);
            if (status != Status::ok) return status;
            const std::size_t label = of_sums || !classifies || positions[0] == 0 ? 0 : 1,
                              width = !of_sums     ? 1
                                      : classifies ? member.n_labels
                                                   : member.n_decisions;
            if (!of_sums) positions += member.n_labels;
            for (std::size_t i = 0; i < n; ++i) {
                const double *x = memory_.values + i * member.n_decisions, *e = memory_.bounds + i * member.n_decisions;
                if (classifies) {
                    find_columns(member, x, e);
                    x = memory_.shares + label;
                    e = memory_.low + label;
                }
                for (std::size_t s = 0; s < n_sums; ++s) {
                    approxsvm_add_products(static_cast<int>(width), weights + s * stride + first, x, e, u,
                                           sums + i * n_sums + s, bounds + i * n_sums + s);
                }
                // Labels of sums are decided by their bounds, whichever stage these come from.
                if (out.certified) out.certified[i] = (k == 0 || out.certified[i]) && (of_sums || is_proven(member, i));
            }
            first += width;
        }
        for (std::size_t k = 0; k < n * n_sums; ++k) {
            if (!is_finite(sums[k])) {
                if (request.fault) *request.fault = Fault{k / n_sums, HUGE_VAL, 1.7976931348623157e308};
                return Status::beyond_float64;
            }
            bounds[k] *= 1.0 + u;
            if (out.values) out.values[k] = sums[k];
            if (out.bounds) out.bounds[k] = bounds[k];
            if (out.certified) out.certified[k / n_sums] = out.certified[k / n_sums] && is_finite(bounds[k]);
        }
        return Status::ok;
    }

    // A classifier's probabilities, or its scores if it has none, with their bounds: `shares` and `low`.
    void find_columns(const ModelView& member, const double* values, const double* bounds) const {
        const std::size_t n = member.n_labels;
        double *const found = memory_.shares, *const low = memory_.low, *const high = memory_.high;
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

    // --- values of all members

    bool is_proven(const ModelView& member, std::size_t i) const {
        if (has_engines(member)) return is_first_stage(member, memory_.stages[i]);
        for (std::size_t c = 0; c < member.n_decisions; ++c) {
            if (!is_finite(memory_.bounds[i * member.n_decisions + c])) return false;
        }
        return true;
    }

    Status side_by_side(const RowSource& rows, Request request, const Evaluation& out) const {
        const std::size_t n = rows.n_rows();
        for (std::size_t k = 0, first = 0; k < view_.n_members; ++k) {
            const ModelView& member = *prepared_.members[k]->view;
            const std::size_t n_own = member.n_decisions;
            const Status status = evaluate_member(k, rows, request, out.stages);
            if (status != Status::ok) return status;
            for (std::size_t i = 0; i < n; ++i) {
                const std::size_t to = i * view_.n_decisions + first, from = i * n_own;
                for (std::size_t c = 0; out.values && c < n_own; ++c) out.values[to + c] = memory_.values[from + c];
                for (std::size_t c = 0; out.bounds && c < n_own; ++c) out.bounds[to + c] = memory_.bounds[from + c];
                if (out.certified) out.certified[i] = (k == 0 || out.certified[i]) && is_proven(member, i);
            }
            first += n_own;
        }
        return Status::ok;
    }

    const PreparedModel& prepared_;
    const ModelView& view_;
    std::uint64_t* const counts_;
    const EnsembleMemory& memory_;
    const std::size_t n_classes_;
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

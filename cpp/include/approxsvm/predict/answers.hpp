// Answers of any model for raw rows: labels by votes, scores or probabilities; values; probabilities; and their bounds.
//
// A label that does not come from votes is proven by the bounds of the values, or computed from exact values. An
// ensemble averages its members' probabilities, counts their labels as votes, adds up their values, or gives the labels
// or values of all members. If its members are the functions of its classes, their values are treated like a single
// model's.
#ifndef APPROXSVM_PREDICT_ANSWERS_HPP
#define APPROXSVM_PREDICT_ANSWERS_HPP

#include "../outputs/outputs.hpp"
#include "mapped_rows.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Number of rows answered at a time if their values are kept: they stay in a cache and fill an engine's blocks.
inline std::size_t answer_piece_rows(const ModelView& model) {
    const std::size_t n_signs = is_of_targets(model) ? model.n_targets : 0;
    const std::size_t per_row = model.n_decisions + n_signs + 3 * std::size_t{model.n_labels} + 1;
    const std::size_t rows = (std::size_t{1} << (model.n_centers > 1 ? 18 : 16)) / per_row;
    return rows < 2 * block_rows ? 2 * block_rows : rows < route_rows ? rows : route_rows;
}

// Whether answers need more than evaluate_raw() computes.
inline bool has_own_label_rule(const ModelView& model) {
    return model.task != Task::regression && model.outputs.label_rule != LabelRule::votes;
}
inline bool keeps_values(const ModelView& model) {
    return has_own_label_rule(model) || n_probabilities(model) > 0 || model.mode == Mode::approximate;
}

// Labels of a model. A one-class model has inlier and outlier.
inline std::size_t n_answers(const ModelView& model) {
    return model.n_labels > 2 ? std::size_t{model.n_labels} : 2;
}

// The values of a chunk of rows; for one row, the probabilities and their intervals.
struct ValueMemory {
    double *values, *bounds, *shares, *lowest, *highest, *room;
    std::uint8_t *stages, *open_stages;
    std::size_t* open;

    ValueMemory(const ModelView& model, const CallRows& call, Arena& arena)
        : ValueMemory(model, call.at_most(answer_piece_rows(model)), arena) {}

  private:
    ValueMemory(const ModelView& model, std::size_t n_rows, Arena& arena)
        : values(arena.take<double>(keeps_values(model) ? n_rows * model.n_decisions : 0)),
          bounds(arena.take<double>(keeps_values(model) ? n_rows * model.n_decisions : 0)),
          shares(arena.take<double>(n_answers(model))),
          lowest(arena.take<double>(n_answers(model))),
          highest(arena.take<double>(n_answers(model))),
          room(arena.take<double>(outputs_doubles(n_answers(model)))),
          stages(arena.take<std::uint8_t>(n_rows)),
          open_stages(arena.take<std::uint8_t>(keeps_values(model) ? n_rows : 0)),
          open(arena.take<std::size_t>(keeps_values(model) ? n_rows : 0)) {}
};

// Memory for one model, including the memory that its rows need.
struct AnswerMemory {
    ValueMemory values;
    MappingMemory mapping;

    template <Parts parts>
    AnswerMemory(const PreparedModel& prepared, const CallOf<parts>& call, Arena& arena)
        : values(*prepared.view, call, arena), mapping(prepared, call, arena) {}
};

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

// Bytes of scratch memory for answer() per thread, in calls of up to n_rows rows.
template <Parts parts = all_parts>
inline std::size_t workspace_bytes(const PreparedModel& prepared, std::size_t n_rows = any_number_of_rows) {
    Arena counter(nullptr);
    if constexpr (has(parts, ensembles)) {
        if (prepared.view->n_members > 0) {
            [[maybe_unused]] const EnsembleMemory memory(prepared, CallOf<parts>(n_rows), counter);
            return counter.bytes_anywhere();
        }
    }
    [[maybe_unused]] const AnswerMemory memory(prepared, CallOf<parts>(n_rows), counter);
    return counter.bytes_anywhere();
}

// --- checking the request

template <class T>
inline bool is_large_enough(const Span<T>& span, std::size_t n_rows, std::size_t per_row) {
    return !span || (per_row > 0 && span.size / per_row >= n_rows);
}

// Whether the model has the requested outputs, and the caller's buffers are large enough.
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

// Calls answer(chunk of rows, its Request, its outputs) until one fails.
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

// Whether this is a first stage.
inline bool is_first_stage(const ModelView& model, std::uint8_t stage) {
    if (model.mode != Mode::exact) return stage <= by_higher_degree;
    return stage <= (is_of_products(model) ? by_float64 : by_float32);
}

// --- one model

// `evaluate(rows, request, out)` computes values, bounds and stages, labels by votes and, if out.certified is wanted,
// which rows the first stage answered.
template <Parts parts, class Evaluate>
class ValueAnswers {
  public:
    ValueAnswers(const ModelView& model, const Evaluate& evaluate, const ValueMemory& memory)
        : view_(model), evaluate_(evaluate), memory_(memory) {}

    Status answer(const RowSource& rows, const Request& request, const Evaluation& out) const {
        const bool by_rule = has(parts, probabilities) && (out.labels || out.certified) && has_own_label_rule(view_);
        const bool shares = has(parts, probabilities) && (out.probabilities || out.probability_bounds);
        if (!by_rule && !shares && !out.certified) return evaluate_(rows, request, out);
        return for_pieces(view_, rows, request, out,
                          [&](const RowSource& piece, const Request& own, const Evaluation& part) {
                              return answer_piece(piece, own, part, by_rule, shares);
                          });
    }

  private:
    Status answer_piece(const RowSource& rows, Request request, const Evaluation& out, bool by_rule,
                        bool shares) const {
        Evaluation wanted = out;
        wanted.probabilities = wanted.probability_bounds = nullptr;
        if (by_rule) wanted.labels = nullptr;
        const bool proves_by_values = out.certified && view_.mode == Mode::approximate;
        request.keeps_promise = wants_values(out) || shares;  // no caller sees the values that labels are computed from
        if (by_rule || shares || proves_by_values) {
            const std::size_t n = rows.n_rows() * view_.n_decisions;
            // Labels only need values that decide them.
            if (!wants_values(out) && !shares) request.values = Values::settled;
            if (!wanted.values) wanted.values = {memory_.values, n};
            if (!wanted.bounds) wanted.bounds = {memory_.bounds, n};
        }
        if (out.certified && !wanted.stages) wanted.stages = {memory_.stages, rows.n_rows()};
        Status status = evaluate_(rows, request, wanted);
        if (status != Status::ok) return status;
        if (out.certified && (!has_engines(view_) || has_own_label_rule(view_))) certify(wanted);
        if constexpr (has(parts, probabilities)) {
            for (std::size_t i = 0; shares && i < rows.n_rows(); ++i) find_probabilities(wanted, i, out);
            if (by_rule && out.labels) return label(rows, request, wanted, out.labels);
        }
        return Status::ok;
    }

    // If engines come after the first stage, it answers only rows that it proves by votes; values prove other labels.
    void certify(const Evaluation& found) const {
        for (std::size_t i = 0; i < found.certified.size; ++i) {
            found.certified[i] = found.certified[i] && proves(found, i);
        }
    }

    bool proves(const Evaluation& found, std::size_t i) const {
        const std::size_t n_decisions = view_.n_decisions;
        const double *values = found.values.data + i * n_decisions, *bounds = found.bounds.data + i * n_decisions;
        if (view_.task == Task::regression) {
            for (std::size_t k = 1; k < n_decisions; ++k) {
                if (!is_finite(bounds[k])) return false;
            }
            return is_finite(bounds[0]);
        }
        std::size_t winner;
        if constexpr (has(parts, probabilities))
            return certified_class(view_.outputs, n_answers(view_), values, bounds, winner, memory_.room);
        return certain_vote(n_answers(view_), values, bounds, reinterpret_cast<std::uint32_t*>(memory_.room), winner);
    }

    void find_probabilities(const Evaluation& found, std::size_t i, const Evaluation& out) const {
        const std::size_t n = n_probabilities(view_), n_decisions = view_.n_decisions;
        const double* values = found.values.data + i * n_decisions;
        probabilities_of(view_.outputs, n, values, memory_.shares, memory_.room);
        for (std::size_t c = 0; out.probabilities && c < n; ++c) out.probabilities[i * n + c] = memory_.shares[c];
        if (!out.probability_bounds) return;
        probability_interval(view_.outputs, n, values, found.bounds.data + i * n_decisions, memory_.lowest,
                             memory_.highest, memory_.room);
        for (std::size_t c = 0; c < n; ++c) {
            // Both are from 0 to 1.
            out.probability_bounds[i * n + c] =
                std::fmin(approxsvm_farther_end(memory_.shares[c], memory_.lowest[c], memory_.highest[c]), 1.0);
        }
    }

    // Labels by scores or probabilities. Rows whose bounds leave the label undecided are evaluated exactly.
    Status label(const RowSource& rows, Request request, const Evaluation& found,
                 const Span<std::uint32_t>& labels) const {
        const std::size_t n_decisions = view_.n_decisions;
        std::size_t n_open = 0;
        for (std::size_t i = 0; i < rows.n_rows(); ++i) {
            const double* values = found.values.data + i * n_decisions;
            std::size_t winner = 0;
            const bool certain = certified_class(view_.outputs, n_answers(view_), values,
                                                 found.bounds.data + i * n_decisions, winner, memory_.room);
            labels[i] = static_cast<std::uint32_t>(winner);
            if (!certain && has_engines(view_) && request.values != Values::exact) memory_.open[n_open++] = i;
        }
        if (n_open == 0) return Status::ok;
        // The caller may have requested other values than these.
        request.values = Values::exact;
        request.by_sign = true;
        const SelectedRows open(rows, memory_.open, n_open);
        Evaluation exact;
        exact.values = {memory_.values, n_open * n_decisions};
        if (found.stages) exact.stages = {memory_.open_stages, n_open};
        request.keeps_promise = false;
        const Status status = evaluate_(open, request, exact);
        if (status != Status::ok && request.fault) request.fault->row = memory_.open[request.fault->row];
        for (std::size_t k = 0; status == Status::ok && k < n_open; ++k) {
            if (found.stages) found.stages[memory_.open[k]] = memory_.open_stages[k];
            labels[memory_.open[k]] = static_cast<std::uint32_t>(
                predicted_class(view_.outputs, n_answers(view_), memory_.values + k * n_decisions, memory_.room));
        }
        return status;
    }

    const ModelView& view_;
    const Evaluate& evaluate_;
    const ValueMemory& memory_;
};

// Answers rows with a model that is not an ensemble.
template <Parts parts>
inline Status answer_single(const PreparedModel& prepared, const RowSource& rows, const Request& request,
                            const Evaluation& out, std::uint64_t* counts, const AnswerMemory& memory) {
    const ModelView& view = *prepared.view;
    const auto evaluate = [&](const RowSource& some, const Request& own, Evaluation wanted) {
        const Span<std::uint8_t> certified = wanted.certified;
        wanted.certified = nullptr;
        const Status status = evaluate_raw<parts>(prepared, some, own, wanted, counts, memory.mapping);
        for (std::size_t i = 0; i < certified.size && status == Status::ok; ++i) {
            certified[i] = !has_engines(view) || is_first_stage(view, wanted.stages[i]);
        }
        return status;
    };
    return ValueAnswers<parts, decltype(evaluate)>(view, evaluate, memory.values).answer(rows, request, out);
}

// --- an ensemble

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

// --- any model

// Whether certificates need a pass of their own. They tell what the first stage proves if only labels are wanted, and
// must not depend on other outputs: values may come from later stages, or need closer bounds. Without engines, every
// request takes the same way.
inline bool certifies_apart(const ModelView& model, const Evaluation& out) {
    const bool more = wants_values(out) || out.probabilities || out.probability_bounds;
    return out.certified && more && (model.n_members > 0 || has_engines(model));
}

// Answers all rows of a source. `counts[stage]` grows by the number of rows that each stage answered, once per member
// of an ensemble and once per evaluation of a row. The workspace has workspace_bytes() for the number of rows in the
// call.
template <Parts parts = all_parts>
inline Status answer(const PreparedModel& prepared, const RowSource& rows, const Request& request,
                     const Evaluation& out, std::uint64_t* counts, void* workspace,
                     std::size_t n_bytes = ~std::size_t{0}) {
    const Status status = check_request(*prepared.view, rows.n_rows(), request, out);
    if (status != Status::ok) return status;
    if (certifies_apart(*prepared.view, out)) {
        Evaluation others = out, proof;
        others.certified = nullptr;
        proof.certified = out.certified;
        const Status found = answer<parts>(prepared, rows, request, others, counts, workspace, n_bytes);
        if (found != Status::ok) return found;
        return answer<parts>(prepared, rows, request, proof, counts, workspace, n_bytes);
    }
    Request own = request;
    if (out.certified) own.values = Values::settled;
    const CallOf<parts> call = rows_of_call<parts>(rows, own);
    Arena arena(workspace);
    if constexpr (has(parts, ensembles)) {
        if (prepared.view->n_members > 0) {
            const EnsembleMemory memory(prepared, call, arena);
            if (arena.bytes_anywhere() > n_bytes) return Status::buffer_too_small;
            return EnsembleAnswers<parts>(prepared, counts, memory).answer(rows, own, out);
        }
    }
    const AnswerMemory memory(prepared, call, arena);
    if (arena.bytes_anywhere() > n_bytes) return Status::buffer_too_small;
    return answer_single<parts>(prepared, rows, own, out, counts, memory);
}

// --- rows as callers have them

// Sparse rows whose indices stay within their arrays.
template <class Real, class Index>
inline Status check_row_starts(const SparseRows<Real, Index>& rows, CsrRows<Real, Index>& checked) {
    const std::size_t n_starts = rows.row_starts.size;
    const std::size_t end = rows.values.size < rows.columns.size ? rows.values.size : rows.columns.size;
    std::int64_t last = 0;
    for (std::size_t k = 0; k < n_starts; ++k) {
        const std::int64_t start = static_cast<std::int64_t>(rows.row_starts[k]);
        if (start < last) return Status::bad_row_starts;
        last = start;
    }
    if (n_starts == 0 || static_cast<std::uint64_t>(last) > end) return Status::bad_row_starts;
    checked = {rows.values.data, rows.columns.data, rows.row_starts.data, n_starts - 1};
    return Status::ok;
}

// with_source(rows, model, call) returns what call(RowSource) returns.
template <Parts parts = all_parts, class Real, class Call>
inline Status with_source(const DenseRows<Real>& rows, const ModelView& model, const Call& call) {
    return call(DenseSource<Real, parts>(rows, model.n_raw_features));
}
template <Parts parts = all_parts, class Real, class Index, class Call>
inline Status with_source(const CsrRows<Real, Index>& rows, const ModelView& model, const Call& call) {
    static_assert(has(parts, sparse), "sparse rows: add approxsvm::sparse to the list of approxsvm::ModelOf");
    return call(CsrSource<Real, Index>(rows, model.n_raw_features));
}
template <Parts parts = all_parts, class Real, class Index, class Call>
inline Status with_source(const SparseRows<Real, Index>& rows, const ModelView& model, const Call& call) {
    CsrRows<Real, Index> checked;
    const Status status = check_row_starts(rows, checked);
    return status == Status::ok ? with_source<parts>(checked, model, call) : status;
}
template <Parts parts = all_parts, class Real, class Call>
inline Status with_whole_rows(Span<const Real> numbers, const ModelView& model, const Call& call) {
    DenseRows<Real> rows;
    const Status status = whole_rows(model, numbers, rows);
    return status == Status::ok ? with_source<parts>(rows, model, call) : status;
}
template <Parts parts = all_parts, class Call>
inline Status with_source(Span<const float> numbers, const ModelView& model, const Call& call) {
    return with_whole_rows<parts>(numbers, model, call);
}
template <Parts parts = all_parts, class Call>
inline Status with_source(Span<const double> numbers, const ModelView& model, const Call& call) {
    return with_whole_rows<parts>(numbers, model, call);
}

// A block only reports that one of its rows is faulty, not which one.
inline std::size_t first_unsorted_row(const RowSource& rows) {
    std::size_t i = 0;
    while (i + 1 < rows.n_rows() && rows.check(i) != Status::unsorted_indices) ++i;
    return i;
}

// A non-finite number. Its column is n_raw_features if the model does not know the feature.
struct BadNumber {
    std::size_t row, column;
    double value;
};
// Whether a raw row may contain this number: a finite one, NaN if the model replaces it, any number in an unused
// column.
template <Parts parts = all_parts>
inline bool takes(const ModelView& model, std::size_t column, double value) {
    bool taken = is_finite(value) || model.has_input_map || model.n_members > 0;
    if constexpr (has(parts, ensembles)) {
        for_members(model, [&](const ModelView& member) {
            taken = taken && takes<parts>(member, column, value);
            return Status::ok;
        });
    }
    const InputMapView& map = model.input_map;
    for (std::size_t k = 0; model.has_input_map && !is_finite(value) && k < map.n_columns; ++k) {
        if (map.columns[k] == column) taken = taken && value != value && takes_nan<parts>(map, k);
    }
    for (std::size_t k = 0; model.has_input_map && k < map.n_checked; ++k)
        taken = taken && (map.checked[k].column != column || takes(map.checked[k], value));
    return taken;
}
// Returns the first row with a rejected number in a column that the model uses.
template <Parts parts = all_parts>
APPROXSVM_COLD inline BadNumber first_bad_number(const ModelView& model, const RowSource& rows) {
    BadNumber first{rows.n_rows(), model.n_raw_features, HUGE_VAL};
    const auto take = [&first](const BadNumber& other) {
        if (other.row < first.row || (other.row == first.row && other.column < first.column)) first = other;
    };
    if constexpr (has(parts, ensembles)) {
        for_members(model, [&](const ModelView& member) {
            take(first_bad_number<parts>(member, rows));
            return Status::ok;
        });
    }
    const InputMapView& map = model.input_map;
    const std::size_t n_columns = model.has_input_map ? map.n_columns : model.n_raw_features;
    for (std::size_t i = 0; model.n_members == 0 && i < rows.n_rows() && first.row > i; ++i) {
        if (rows.check(i) == Status::ok) continue;
        if (!model.has_input_map) take({i, model.n_raw_features, HUGE_VAL});
        const auto look_at = [&](std::size_t j) {
            const double value = rows.value(i, j);
            if (!takes<parts>(model, j, value)) take({i, j, value});
        };
        for (std::size_t k = 0; k < n_columns; ++k) look_at(model.has_input_map ? map.columns[k] : k);
        for (std::size_t k = 0; model.has_input_map && k < map.n_checked; ++k) look_at(map.checked[k].column);
    }
    return first;
}

// Raw rows of any kind that with_source() accepts; a fault names the row.
template <Parts parts = all_parts, class Rows>
inline Status evaluate(const PreparedModel& prepared, const Rows& rows, const Evaluation& out,
                       Span<unsigned char> workspace, Values values = Values::promised, Fault* fault = nullptr) {
    return with_source<parts>(rows, *prepared.view, [&](const RowSource& source) {
        if (fault) *fault = Fault{};
        Request request{source.n_rows(), values};
        request.fault = fault;
        std::uint64_t counts[n_stages] = {};
        const Status status = answer<parts>(prepared, source, request, out, counts, workspace.data, workspace.size);
        if (fault && status == Status::not_finite) fault->row = first_bad_number<parts>(*prepared.view, source).row;
        if (fault && status == Status::unsorted_indices) fault->row = first_unsorted_row(source);
        return status;
    });
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

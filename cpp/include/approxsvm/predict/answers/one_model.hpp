// Predictions of one model: labels by votes, scores or probabilities; values; probabilities; and bounds on values and
// probabilities. A label not determined by votes is proven by the bounds on the values or computed from exact values.
#ifndef APPROXSVM_PREDICT_ANSWERS_ONE_MODEL_HPP
#define APPROXSVM_PREDICT_ANSWERS_ONE_MODEL_HPP

#include "../../outputs/outputs.hpp"
#include "evaluate.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Return whether the labels, and whether any predictions, need computations beyond evaluate_raw().
inline bool has_own_label_rule(const ModelView& model) {
    return model.task != Task::regression && model.outputs.label_rule != LabelRule::votes;
}
inline bool keeps_values(const ModelView& model) {
    return has_own_label_rule(model) || n_probabilities(model) > 0 || model.mode == Mode::approximate;
}

// Number of a model's possible labels. A one-class model has two, inlier and outlier.
inline std::size_t n_answers(const ModelView& model) {
    return model.n_labels > 2 ? std::size_t{model.n_labels} : 2;
}

// Memory for the values of a chunk of rows, and for one row's probabilities and their intervals.
struct ValueMemory {
    double *values, *bounds, *shares, *lowest, *highest, *room;
    std::uint8_t *stages, *open_stages;
    std::size_t* open;

    ValueMemory(const ModelView& model, const CallRows& call, Arena& arena)
        : ValueMemory(model, call.at_most(answer_piece_rows(model)), arena) {}

  private:
    ValueMemory(const ModelView& model, std::size_t n_rows, Arena& arena)
        : values(arena.take<double>(keeps_values(model) ? n_rows * n_values_of(model) : 0)),
          bounds(arena.take<double>(keeps_values(model) ? n_rows * n_values_of(model) : 0)),
          shares(arena.take<double>(n_answers(model))),
          lowest(arena.take<double>(n_answers(model))),
          highest(arena.take<double>(n_answers(model))),
          room(arena.take<double>(outputs_doubles(n_answers(model)))),
          stages(arena.take<std::uint8_t>(n_rows)),
          open_stages(arena.take<std::uint8_t>(keeps_values(model) ? n_rows : 0)),
          open(arena.take<std::size_t>(keeps_values(model) ? n_rows : 0)) {}
};

// Memory for one model, including the memory needed for its rows.
struct AnswerMemory {
    ValueMemory values;
    MappingMemory mapping;

    template <Parts parts>
    AnswerMemory(const PreparedModel& prepared, const CallOf<parts>& call, Arena& arena)
        : values(*prepared.view, call, arena), mapping(prepared, call, arena) {}
};

// `evaluate(rows, request, out)` computes values, bounds, stages and labels by votes. If requested, it sets
// out.certified to whether each row's results come from the first stage.
template <Parts parts, class Evaluate>
class ValueAnswers {
  public:
    ValueAnswers(const ModelView& model, const Evaluate& evaluate, const ValueMemory& memory, bool can_be_exact)
        : view_(model), evaluate_(evaluate), memory_(memory), can_be_exact_(can_be_exact) {}

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
        request.keeps_promise = wants_values(out) || shares;  // callers do not get values used only for labels
        if (by_rule || shares || proves_by_values) {
            const std::size_t n = rows.n_rows() * n_values_of(view_);
            // If only labels are wanted, values need only determine the label.
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

    // If engines follow the first stage, it answers only rows whose label it proves by votes. Labels by other rules are
    // proven by values.
    void certify(const Evaluation& found) const {
        for (std::size_t i = 0; i < found.certified.size; ++i) {
            found.certified[i] = found.certified[i] && proves(found, i);
        }
    }

    bool proves(const Evaluation& found, std::size_t i) const {
        const std::size_t n_values = n_values_of(view_);
        const double *values = found.values.data + i * n_values, *bounds = found.bounds.data + i * n_values;
        if (view_.task == Task::regression) {
            for (std::size_t k = 1; k < n_values; ++k) {
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
        const std::size_t n = n_probabilities(view_), n_values = n_values_of(view_);
        const double* values = found.values.data + i * n_values;
        probabilities_of(view_.outputs, n, values, memory_.shares, memory_.room);
        for (std::size_t c = 0; out.probabilities && c < n; ++c) out.probabilities[i * n + c] = memory_.shares[c];
        if (!out.probability_bounds) return;
        probability_interval(view_.outputs, n, values, found.bounds.data + i * n_values, memory_.lowest,
                             memory_.highest, memory_.room);
        for (std::size_t c = 0; c < n; ++c) {
            // The probability and the endpoints of its interval are between 0 and 1.
            out.probability_bounds[i * n + c] =
                std::fmin(approxsvm_farther_end(memory_.shares[c], memory_.lowest[c], memory_.highest[c]), 1.0);
        }
    }

    // Determines labels by scores or probabilities. A row is evaluated exactly if its bounds do not determine the
    // label.
    Status label(const RowSource& rows, Request request, const Evaluation& found,
                 const Span<std::uint32_t>& labels) const {
        const std::size_t n_values = n_values_of(view_);
        std::size_t n_open = 0;
        for (std::size_t i = 0; i < rows.n_rows(); ++i) {
            const double* values = found.values.data + i * n_values;
            std::size_t winner = 0;
            const bool certain = certified_class(view_.outputs, n_answers(view_), values,
                                                 found.bounds.data + i * n_values, winner, memory_.room);
            labels[i] = static_cast<std::uint32_t>(winner);
            if (!certain && can_be_exact_ && request.values != Values::exact) memory_.open[n_open++] = i;
        }
        if (n_open == 0) return Status::ok;
        // The caller may have requested values that are not exact.
        request.values = Values::exact;
        request.by_sign = true;
        const SelectedRows open(rows, memory_.open, n_open);
        Evaluation exact;
        exact.values = {memory_.values, n_open * n_values};
        if (found.stages) exact.stages = {memory_.open_stages, n_open};
        request.keeps_promise = false;
        const Status status = evaluate_(open, request, exact);
        if (status != Status::ok && request.fault) request.fault->row = memory_.open[request.fault->row];
        for (std::size_t k = 0; status == Status::ok && k < n_open; ++k) {
            if (found.stages) found.stages[memory_.open[k]] = memory_.open_stages[k];
            labels[memory_.open[k]] = static_cast<std::uint32_t>(
                predicted_class(view_.outputs, n_answers(view_), memory_.values + k * n_values, memory_.room));
        }
        return status;
    }

    const ModelView& view_;
    const Evaluate& evaluate_;
    const ValueMemory& memory_;
    const bool can_be_exact_;
};

// Computes the predictions of a model that is not an ensemble.
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
    return ValueAnswers<parts, decltype(evaluate)>(view, evaluate, memory.values, has_engines(view))
        .answer(rows, request, out);
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

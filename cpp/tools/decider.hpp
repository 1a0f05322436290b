// Computes predictions for rows on one thread.
#pragma once

#include <algorithm>
#include <approxsvm/approxsvm.hpp>
#include <approxsvm/row_fault.hpp>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "exact/libsvm_sums.hpp"
#include "loaded_model.hpp"

namespace approxsvm::tools {

/// Predictions for the rows of a chunk. A row's prediction depends only on that row.
struct Decisions {
    /// Label indices, for classification and one-class models (0 is an inlier).
    std::vector<std::uint32_t> labels;
    /// Values of a regressor, of shape (n_rows, n_decisions).
    std::vector<double> values;
    /// Class probabilities for -b 1 (one-class: inlier and outlier), of shape (n_rows, n_probabilities).
    std::vector<double> probabilities;
};

/// A rejected row, counted from the first row of the chunk.
struct RowError : std::runtime_error {
    RowError(std::size_t row_number, const std::string& why) : std::runtime_error(why), row(row_number) {}
    std::size_t row;
};

class Decider {
  public:
    explicit Decider(const LoadedModel& model)
        : predictor_(model.predictor()),
          task_(model.view().task),
          n_classes_(n_labels_of(model.view())),
          exact_(model.exact()),
          with_probabilities_(model.gives_probabilities()) {
        if (predictor_) workspace_.emplace(predictor_->make_workspace());
        if (model.exact()) sums_.emplace(*model.exact(), lane_sums_of(model.kernels().name));
    }

    void decide(const CsrRows<double, std::int32_t>& rows, Decisions& out) {
        if (predictor_) return evaluate(rows, out);
        const double* const last = rows.values + rows.row_starts[rows.n_rows];
        if (!std::all_of(rows.values, last, [](double x) { return std::isfinite(x); })) check(Status::not_finite);
        open_.resize(rows.n_rows);
        std::iota(open_.begin(), open_.end(), std::size_t{0});
        if (task_ == Task::regression) {
            out.values.resize(rows.n_rows);
            sums_->decide(rows, open_, [&](std::size_t i, const double* values) { out.values[i] = *values; });
            return;
        }
        out.labels.resize(rows.n_rows);
        if (!with_probabilities_) return settle_by_votes(rows, out);
        out.probabilities.resize(rows.n_rows * n_classes_);
        sums_->decide(rows, open_, [&](std::size_t i, const double* values) {
            out.labels[i] =
                static_cast<std::uint32_t>(find_probabilities(values, out.probabilities.data() + i * n_classes_));
        });
    }

  private:
    static void check(Status status) {
        if (status != Status::ok) throw std::runtime_error(message(status));
    }

    // --- engines

    void evaluate(const CsrRows<double, std::int32_t>& rows, Decisions& out) {
        stages_.resize(rows.n_rows);
        Evaluation wanted;
        wanted.stages = stages_;
        if (task_ == Task::regression) {
            out.values.resize(rows.n_rows * predictor_->model().n_decisions);
            wanted.values = out.values;
        } else {
            out.labels.resize(rows.n_rows * n_targets_of(predictor_->model()));
            wanted.labels = out.labels;
        }
        if (with_probabilities_) {
            out.probabilities.resize(rows.n_rows * predictor_->n_probabilities());
            wanted.probabilities = out.probabilities;
        }
        evaluate(rows, wanted);
        if (sums_) settle_ties(rows, out);
        if (with_probabilities_ && task_ == Task::classification) label_by_probability(out);
    }

    void evaluate(const CsrRows<double, std::int32_t>& rows, const Evaluation& out) {
        dispatch::StageCounts counts{};
        constexpr std::size_t many = ~std::size_t{0};  // evaluate rows as in a large call, because chunk sizes vary
        Fault fault{};
        Request request{many};
        request.fault = &fault;
        const auto evaluate = predictor_->kernels().evaluate_rows<CsrRows<double, std::int32_t>>();
        const Status status = evaluate(predictor_->prepared(), rows, request, out, counts.data(), workspace_->data());
        switch (status) {
            case Status::map_overflow:
            case Status::outside_domain:
            case Status::beyond_tolerance:
            case Status::beyond_float64: {
                char room[fault_text_bytes];
                throw RowError(fault.row, text_of_fault(status, fault, room));
            }
            case Status::unknown_feature:
                throw RowError(fault.row, unknown_feature(rows, fault.row));
            default:
                check(status);
        }
    }

    /// Returns the message for a feature unknown to a pipeline, with the feature's number in the text.
    std::string unknown_feature(const CsrRows<double, std::int32_t>& rows, std::size_t i) const {
        const ModelView& model = predictor_->model();
        const std::int64_t first = model.first_index, n = static_cast<std::int64_t>(model.n_raw_features);
        for (std::int32_t k = rows.row_starts[i]; k < rows.row_starts[i + 1]; ++k) {
            if ((rows.columns[k] >= 0 && rows.columns[k] < n) || rows.values[k] == 0.0) continue;
            return "feature " + std::to_string(rows.columns[k] + first) + " is none of the model's, " +
                   std::to_string(first) + " to " + std::to_string(n - 1 + first);
        }
        return message(Status::unknown_feature);
    }

    /// Labels each row with the most probable class instead of the winner of the votes, as svm-predict -b 1 does.
    void label_by_probability(Decisions& out) const {
        for (std::size_t i = 0; i < out.labels.size(); ++i) {
            const double* shares = out.probabilities.data() + i * n_classes_;
            out.labels[i] = static_cast<std::uint32_t>(first_largest(n_classes_, shares));
        }
    }

    /// Repeats svm-predict's sums, whose rounding then determines the label, for two sorts of rows: those whose winner
    /// the float64 bounds do not determine, and those with so many entries that the bounds do not cover the rounding of
    /// svm-predict's sums.
    void settle_ties(const CsrRows<double, std::int32_t>& rows, Decisions& out) {
        open_.clear();
        for (std::size_t i = 0; i < rows.n_rows; ++i) {
            const std::int32_t n_entries = rows.row_starts[i + 1] - rows.row_starts[i];
            const bool is_long = static_cast<std::size_t>(n_entries) > exact_->most_entries();
            if (stages_[i] == by_definition || is_long) open_.push_back(i);
        }
        settle_by_votes(rows, out);
    }

    // --- LIBSVM's sums

    /// Assigns labels to the undecided rows.
    void settle_by_votes(const CsrRows<double, std::int32_t>& rows, Decisions& out) {
        votes_.resize(n_classes_);
        sums_->decide(rows, open_, [&](std::size_t i, const double* values) {
            out.labels[i] = static_cast<std::uint32_t>(vote_winner(n_classes_, values, votes_.data()));
        });
    }

    /// Computes one row's probabilities; returns the index of the most probable class, which is the label.
    std::size_t find_probabilities(const double* values, double* probabilities) {
        const auto& lists = exact_->libsvm().probabilities;
        if (numbers_.empty()) {
            for (const char* name : {"probA", "probB", "prob_density_marks"}) {
                const auto found = lists.find(name);
                if (found != lists.end()) numbers_.insert(numbers_.end(), found->second.begin(), found->second.end());
            }
            room_.resize(outputs_doubles(n_classes_));
        }
        const approxsvm_outputs outputs{static_cast<int>(n_classes_), false, false, false, numbers_.data()};
        if (task_ == Task::one_class) {
            approxsvm_density_marks(&outputs, values, probabilities, room_.data());
            return label_position(*values);
        }
        approxsvm_pairwise_sigmoid(&outputs, values, probabilities, room_.data());
        return first_largest(n_classes_, probabilities);
    }

    const dispatch::Predictor* const predictor_;
    const Task task_;
    const std::size_t n_classes_;
    const ExactModel* const exact_;
    const bool with_probabilities_;
    std::optional<dispatch::Workspace> workspace_;
    std::optional<LibsvmSums> sums_;
    std::vector<std::uint8_t> stages_;
    std::vector<std::size_t> open_;
    std::vector<double> numbers_, room_;
    std::vector<std::uint32_t> votes_;
};

}  // namespace approxsvm::tools

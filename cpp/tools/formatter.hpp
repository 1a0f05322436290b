// Formats predictions as lines, with svm-predict's digits.
#pragma once

#include <algorithm>
#include <approxsvm/approxsvm.hpp>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "decider.hpp"
#include "loaded_model.hpp"
#include "shown.hpp"

namespace approxsvm::tools {

/// The predictions for one chunk of the text, and the counts and values needed for the closing lines.
struct ChunkResult {
    std::string lines;
    std::size_t n_rows = 0;
    /// For classification and one-class models: number of rows whose label in the file equals the predicted one.
    std::size_t n_correct = 0;
    /// For regressors only. The closing lines sum predictions in row order, whatever the number of threads.
    std::vector<double> predictions;
    std::vector<double> targets;
};

/// A prediction of a classifier or one-class model: its string, and the number to compare with labels in the data file
/// (NaN for a string label, because NaN equals no number).
struct Answer {
    std::string text;
    double number;
};

inline Answer answer_at(const ModelView& model, std::size_t position) {
    const Label label = label_at(model, position);
    switch (label.kind) {
        case LabelKind::int64:
            return {std::to_string(label.integer), static_cast<double>(label.integer)};
        case LabelKind::float64:
            return {shown(label.real), label.real};
        case LabelKind::text:
            return {std::string(label.text), std::numeric_limits<double>::quiet_NaN()};
        case LabelKind::none:
            break;
    }
    return {};
}

class Formatter {
  public:
    explicit Formatter(const LoadedModel& model)
        : is_regression_(model.view().task == Task::regression),
          is_one_class_(model.view().task == Task::one_class),
          with_probabilities_(model.gives_probabilities()),
          n_values_(model.view().n_decisions),
          n_targets_(n_targets_of(model.view())) {
        if (is_regression_) return;
        for (std::size_t k = 0; k < n_labels_of(model.view()); ++k) {
            answers_.push_back(answer_at(model.view(), k));
            lines_.push_back(answers_.back().text + (with_probabilities_ ? "" : "\n"));
            longest_line_ = std::max(longest_line_, lines_.back().size());
        }
        // svm-predict writes labels with six digits on lines with probabilities, but not in the header.
        if (with_probabilities_) {
            for (std::size_t k = 0; k < lines_.size(); ++k) {
                if (answers_[k].number == answers_[k].number) lines_[k] = short_number(answers_[k].number);
            }
        }
    }

    /// Returns the first line of the output.
    std::string header() const {
        if (!with_probabilities_ || is_regression_) return "";
        if (is_one_class_) return "label normal outlier\n";
        std::string line = "labels";
        for (const Answer& answer : answers_) line += " " + answer.text;
        return line + "\n";
    }

    void format(const Decisions& decisions, const std::vector<double>& targets, ChunkResult& result) const {
        result.n_rows = targets.size();
        if (is_regression_) {
            write_values(decisions, result);
            result.predictions = decisions.values;
            result.targets = targets;
            return;
        }
        if (with_probabilities_) {
            write_probabilities(decisions, result);
        } else {
            write_labels(decisions.labels, result);
        }
        for (std::size_t i = 0; n_targets_ == 1 && i < targets.size(); ++i) {
            result.n_correct += targets[i] == answers_[decisions.labels[i]].number ? 1 : 0;
        }
    }

  private:
    void write_labels(const std::vector<std::uint32_t>& labels, ChunkResult& result) const {
        result.lines.resize(labels.size() * longest_line_);
        char* out = result.lines.data();
        for (std::size_t k = 0; k < labels.size(); ++k) {
            const std::string& line = lines_[labels[k]];
            std::memcpy(out, line.data(), line.size());
            out += line.size();
            if ((k + 1) % n_targets_ != 0) out[-1] = ' ';
        }
        result.lines.resize(static_cast<std::size_t>(out - result.lines.data()));
    }

    void write_probabilities(const Decisions& decisions, ChunkResult& result) const {
        const double* next = decisions.probabilities.data();
        for (const std::uint32_t position : decisions.labels) {
            result.lines += lines_[position];
            for (std::size_t k = 0; k < answers_.size(); ++k) {
                result.lines += ' ';
                append(result.lines, *next++, 6);
            }
            result.lines += '\n';
        }
    }

    void write_values(const Decisions& decisions, ChunkResult& result) const {
        const std::vector<double>& values = decisions.values;
        result.lines.reserve(values.size() * (max_real_bytes + 1));
        for (std::size_t k = 0; k < values.size(); ++k) {
            append(result.lines, values[k], 17);
            result.lines += (k + 1) % n_values_ == 0 ? '\n' : ' ';
        }
    }

    const bool is_regression_, is_one_class_, with_probabilities_;
    const std::size_t n_values_;   // number of values per row for a regressor
    const std::size_t n_targets_;  // number of labels per row
    std::vector<Answer> answers_;
    std::vector<std::string> lines_;  // one line per label, or only its start if probabilities follow
    std::size_t longest_line_ = 0;
};

}  // namespace approxsvm::tools

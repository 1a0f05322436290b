// The closing lines of svm-predict.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "formatter.hpp"
#include "loaded_model.hpp"

namespace approxsvm::tools {

inline std::string classification_summary(const std::vector<ChunkResult>& results) {
    std::size_t n_correct = 0, n_rows = 0;
    for (const ChunkResult& result : results) {
        n_correct += result.n_correct;
        n_rows += result.n_rows;
    }
    const double share = static_cast<double>(n_correct) / static_cast<double>(n_rows);
    return "Accuracy = " + short_number(share * 100.0) + "% (" + std::to_string(n_correct) + "/" +
           std::to_string(n_rows) + ") (classification)\n";
}

// The sums, the order of additions and the two formulas are svm-predict's, so the printed digits are identical.
inline std::string regression_summary(const std::vector<ChunkResult>& results) {
    double n = 0.0, sq_error = 0.0;
    double sum_p = 0.0, sum_t = 0.0, sum_pp = 0.0, sum_tt = 0.0, sum_pt = 0.0;
    for (const ChunkResult& result : results) {
        for (std::size_t i = 0; i < result.n_rows; ++i) {
            const double p = result.predictions[i], t = result.targets[i];
            sq_error += (p - t) * (p - t);
            sum_p += p;
            sum_t += t;
            sum_pp += p * p;
            sum_tt += t * t;
            sum_pt += p * t;
        }
        n += static_cast<double>(result.n_rows);
    }
    const double covariance = n * sum_pt - sum_p * sum_t;
    const double variances = (n * sum_pp - sum_p * sum_p) * (n * sum_tt - sum_t * sum_t);
    const double squared_correlation = covariance * covariance / variances;
    return "Mean squared error = " + short_number(sq_error / n) + " (regression)\n" +
           "Squared correlation coefficient = " + short_number(squared_correlation) + " (regression)\n";
}

/// Returns the closing line; empty for string labels, and for several labels or values per row, because these
/// cannot be compared with the numbers in a data file. Without rows, svm-predict would print 0 / 0 as "-nan%".
inline std::string summary(const ModelView& model, const std::vector<ChunkResult>& results) {
    const bool is_regression = model.task == Task::regression;
    if (is_regression ? model.n_decisions > 1 : model.label_kind == LabelKind::text || is_of_targets(model)) return "";
    const auto is_empty = [](const ChunkResult& result) { return result.n_rows == 0; };
    if (std::all_of(results.begin(), results.end(), is_empty)) return "The test file has no rows to compare with.\n";
    return is_regression ? regression_summary(results) : classification_summary(results);
}

/// Returns the line that svm-predict prints first. It mentions probabilities that were not requested, or describes the
/// distribution of a regressor's errors.
inline std::string probability_remark(const LoadedModel& model, bool wants_probabilities) {
    if (!model.has_probabilities()) return "";
    if (!wants_probabilities) return "Model supports probability estimates, but disabled in prediction.\n";
    if (!model.sigma()) return "";
    return "Prob. model for test data: target value = predicted value + z,\n"
           "z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma=" +
           short_number(*model.sigma()) + "\n";
}

}  // namespace approxsvm::tools

// Reads the section outputs in place (models/FORMAT.md, "outputs"): every MUST is checked before a pointer is handed
// out. outputs.hpp evaluates what it says.
#pragma once

#include "../model_view.hpp"
#include "../simd/block.hpp"
#include "../simd/simd.hpp"
#include "../status.hpp"
#include "support_vectors.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

constexpr std::size_t outputs_header_bytes = 24;
constexpr double max_excess = 1e-5;  // by how much heights may exceed 1: scikit-learn's own guard

// A monotone function of a value, seen in place.
struct Calibrator {
    std::size_t n_knots;    // 0: a sigmoid ...
    const double* numbers;  // ... of slope and intercept; or knots, their heights behind them
};

// The calibrator at p; returns where the next one is. The bytes have been validated.
inline const unsigned char* read_calibrator(const unsigned char* p, Calibrator& calibrator) {
    calibrator.n_knots = static_cast<std::size_t>(read_at<std::uint64_t>(p, 0));
    calibrator.numbers = reinterpret_cast<const double*>(p + 8);
    const std::size_t n_numbers = calibrator.n_knots == 0 ? 2 : 2 * calibrator.n_knots;
    return p + 8 + 8 * n_numbers;
}

// Ascending knots with heights that do not descend, and slopes that are normal numbers: interpolation then rounds
// relatively to its result.
inline bool is_isotonic(std::size_t n, const double* knots, const double* heights) {
    if (!(heights[0] >= 0.0 && heights[n - 1] <= 1.0 + max_excess)) return false;
    for (std::size_t k = 1; k < n; ++k) {
        const double gap = knots[k] - knots[k - 1], step = heights[k] - heights[k - 1];
        if (!(gap > 0.0 && step >= 0.0)) return false;
        if (step > 0.0 && !(step / gap >= 0x1p-1022 && is_finite(step / gap))) return false;
    }
    return true;
}

// Whether n calibrators fill the bytes.
inline bool calibrators_are_valid(const unsigned char* p, std::size_t n_bytes, std::size_t n) {
    for (std::size_t c = 0; c < n; ++c) {
        if (n_bytes < 24) return false;
        const std::size_t left = (n_bytes - 8) / 8;
        if (read_at<std::uint64_t>(p, 0) > left / 2) return false;
        Calibrator calibrator;
        const unsigned char* next = read_calibrator(p, calibrator);
        const std::size_t n_knots = calibrator.n_knots;
        if (!all_finite(calibrator.numbers, 1, n_knots == 0 ? 2 : 2 * n_knots)) return false;
        if (n_knots > 0 && !is_isotonic(n_knots, calibrator.numbers, calibrator.numbers + n_knots)) return false;
        n_bytes -= static_cast<std::size_t>(next - p);
        p = next;
    }
    return n_bytes == 0;
}

// Header fields that stand alone, and what suits the task.
inline bool read_outputs_header(const unsigned char* bytes, Task task, std::uint32_t n_labels, OutputsView& outputs) {
    const std::uint32_t shape = read_at<std::uint32_t>(bytes, 0), rule = read_at<std::uint32_t>(bytes, 4),
                        number_of_kind = read_at<std::uint32_t>(bytes, 8), positive = read_at<std::uint32_t>(bytes, 12),
                        calibrated = read_at<std::uint32_t>(bytes, 16);
    if (shape > 1 || rule > 2 || number_of_kind > 5 || positive > 1 || calibrated > 1) return false;
    outputs.decision_shape = static_cast<DecisionShape>(shape);
    outputs.label_rule = static_cast<LabelRule>(rule);
    outputs.calibration_shape = static_cast<DecisionShape>(calibrated);
    outputs.n_calibrators = read_at<std::uint32_t>(bytes, 20);
    const ProbabilityKind kind = outputs.probability = static_cast<ProbabilityKind>(number_of_kind);
    const bool of_each_class = kind == ProbabilityKind::one_vs_rest_calibration,
               coupled = kind == ProbabilityKind::pairwise_sigmoid,
               of_classes = of_each_class || coupled || kind == ProbabilityKind::temperature_calibration,
               classifies = task == Task::classification && n_labels >= 2;
    outputs.couple_two_classes = coupled && positive == 1;
    outputs.positive = coupled ? 0 : positive;
    if (of_classes ? !classifies : positive != 0) return false;
    if (kind == ProbabilityKind::laplace_noise && task != Task::regression) return false;
    if (kind == ProbabilityKind::density_marks && task != Task::one_class) return false;
    if (outputs.label_rule != LabelRule::votes && !classifies) return false;
    if (outputs.label_rule == LabelRule::probability && !of_classes) return false;
    if (!of_each_class && calibrated != 0) return false;
    return outputs.n_calibrators == (!of_each_class ? 0 : n_labels == 2 ? 1 : n_labels);
}

// Describes what the section says, or says that it is broken. `bytes`, at an address that is a multiple of 8, is null
// where there is none.
inline Status read_outputs(const unsigned char* bytes, std::size_t n_bytes, Task task, std::uint32_t n_labels,
                           OutputsView& outputs) {
    outputs = OutputsView{};
    if (!bytes) return Status::ok;
    if (n_bytes < outputs_header_bytes || !read_outputs_header(bytes, task, n_labels, outputs))
        return Status::bad_section;
    const unsigned char* p = bytes + outputs_header_bytes;
    const std::size_t left = n_bytes - outputs_header_bytes;
    const double* numbers = reinterpret_cast<const double*>(p);
    const auto holds = [=](std::size_t n) { return left == 8 * n && all_finite(numbers, 1, n); };
    bool valid = false;
    switch (outputs.probability) {
        case ProbabilityKind::none:
            valid = left == 0;
            break;
        case ProbabilityKind::pairwise_sigmoid:
            outputs.prob_a = numbers;
            outputs.prob_b = numbers + n_decisions_of(n_labels);
            valid = holds(2 * n_decisions_of(n_labels));
            break;
        case ProbabilityKind::laplace_noise:
            outputs.sigma = numbers;
            valid = holds(1) && *numbers >= 0.0;
            break;
        case ProbabilityKind::density_marks:
            outputs.marks = numbers;
            valid = holds(n_density_marks);
            for (std::size_t k = 1; valid && k < n_density_marks; ++k) valid = numbers[k] >= numbers[k - 1];
            break;
        case ProbabilityKind::one_vs_rest_calibration:
            outputs.calibrators = p;
            valid = calibrators_are_valid(p, left, outputs.n_calibrators);
            break;
        case ProbabilityKind::temperature_calibration:
            outputs.inverse_temperature = numbers;
            valid = holds(1) && *numbers > 0.0;
            break;
    }
    return valid ? Status::ok : Status::bad_section;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

// Reads the section "outputs" in place (models/FORMAT.md). Every MUST is checked before a pointer is returned. Outputs
// are computed by outputs/outputs.hpp.
#ifndef APPROXSVM_ARTIFACT_SECTIONS_OUTPUTS_HPP
#define APPROXSVM_ARTIFACT_SECTIONS_OUTPUTS_HPP

#include "../fault.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// The models that may have a kind of probabilities: any model, models with one value per class pair, models with
// decision values, or ensembles that sum their members' numbers.
enum class Owner : std::uint8_t { anybody, pairs, values, members };
// The probabilities of a row: none, or one per class (inlier and outlier count as classes).
enum class Gives : std::uint8_t { nothing, of_classes };

// The schema.inc entry for a kind of probabilities.
struct ProbabilityRules {
    Task task;
    Owner owner;
    Gives gives;
    std::uint32_t flags;                // maximum value of `positive`
    std::size_t n_numbers, n_per_pair;  // number of parameters in total, and per pair of classes
    field::Id field;                    // a parameter's name in messages
    double low, high;                   // a parameter's range, if limited
    bool ascends;                       // true if the parameters must be non-decreasing
};
constexpr ProbabilityRules probability_rules[] = {
#define APPROXSVM_PROBABILITY(kind, task, owner, gives, flags, n, n_per_pair, field_, low, high, ascends) \
    {Task::task, Owner::owner, Gives::gives, flags, n, n_per_pair, field::field_, low, high, ascends},
#include "../schema.inc"
};
constexpr const ProbabilityRules& rules_of(ProbabilityKind kind) {
    return probability_rules[number_of(kind)];
}

// Checks the parameters for a kind of probabilities.
APPROXSVM_COLD inline bool numbers_are_valid(Check& check, const ProbabilityRules& rules, const double* numbers,
                                             std::size_t n) {
    if (!check.finite(field::any_number, numbers, n)) return false;
    for (std::size_t k = 0; k < n; ++k) {
        const std::uint64_t index = n == 1 ? no_index : k;
        if (rules.low > -HUGE_VAL)
            check(rules.field, numbers[k], rules.high < HUGE_VAL ? from_to(rules.low, rules.high) : at_least(rules.low),
                  index);
        if (rules.ascends && k > 0) check(rules.field, numbers[k], at_least(numbers[k - 1]), k);
    }
    return check.status() == Status::ok;
}

// Checks that knots are increasing, heights are non-decreasing, and slopes are normal numbers, so that an interpolated
// value has a small relative rounding error.
APPROXSVM_COLD inline bool is_isotonic(Check& check, std::size_t n, const double* knots, const double* heights) {
    check(field::outputs_height, heights[0], at_least(0.0), 0);
    check(field::outputs_height, heights[n - 1], from_to(0.0, 1.0 + max_excess), n - 1);
    for (std::size_t k = 1; k < n; ++k) {
        const double gap = knots[k] - knots[k - 1], step = heights[k] - heights[k - 1];
        check(field::outputs_knot, knots[k], Expected{Rule::above, stored(knots[k - 1]), {}}, k);
        check(field::outputs_height, heights[k], at_least(heights[k - 1]), k);
        if (step > 0.0) check(field::outputs_slope, step / gap, from_to(0x1p-1022, largest_double), k);
    }
    return check.status() == Status::ok;
}

// Returns whether the section, from byte `at` to its end, contains exactly n calibrators, each a number of knots
// followed by parameters.
APPROXSVM_COLD inline bool calibrators_are_valid(Check& check, const unsigned char* bytes, std::size_t n_bytes,
                                                 std::size_t at, std::size_t n) {
    for (std::size_t c = 0; c < n; ++c) {
        if (!check(field::any_size, n_bytes, at_least(at + 24))) return false;
        const std::uint64_t n_knots = read_at<std::uint64_t>(bytes, at);
        if (!check(field::outputs_n_knots, n_knots, from_to(0, (n_bytes - at - 8) / 16), c)) return false;
        const double* numbers = reinterpret_cast<const double*>(bytes + at + 8);
        const std::size_t n_numbers = static_cast<std::size_t>(n_knots == 0 ? 2 : 2 * n_knots);
        if (!check.finite(field::any_number, numbers, n_numbers)) return false;
        if (n_knots > 0 && !is_isotonic(check, n_numbers / 2, numbers, numbers + n_numbers / 2)) return false;
        at += 8 + 8 * n_numbers;
    }
    return check(field::any_size, n_bytes, equal_to(at));
}

// The model described by a section "outputs".
struct OutputsOf {
    Task task;
    std::uint32_t n_labels;
    const CombinationView* combination = nullptr;  // its combination, if it is an ensemble
};

// Checks each header field separately, and against the task.
APPROXSVM_COLD inline bool read_outputs_header(Check& check, const unsigned char* bytes, const OutputsOf& of,
                                               OutputsView& outputs) {
    const OutputsHeader header = read_at<OutputsHeader>(bytes, 0);
    const Task task = of.task;
    const bool ensemble = of.combination, has_numbers = !ensemble || of.combination->columns == Columns::numbers,
               classifies = task == Task::classification && has_numbers;
    constexpr std::size_t n_rules = sizeof probability_rules / sizeof *probability_rules;
    if (!check(field::outputs_probability, header.probability, from_to(std::size_t{0}, n_rules - 1))) return false;
    const ProbabilityKind kind = static_cast<ProbabilityKind>(header.probability);
    const ProbabilityRules& rules = rules_of(kind);
    const bool mean = rules.owner == Owner::members, of_classes = classifies && rules.gives == Gives::of_classes,
               each = header.decision_shape == number_of(DecisionShape::each),
               of_each_class = kind == ProbabilityKind::one_vs_rest_calibration;
    check(field::outputs_decision_shape, header.decision_shape,
          up_to(mean                             ? DecisionShape::ovo
                : has_numbers && of.n_labels > 2 ? DecisionShape::each
                                                 : DecisionShape::ovr));
    const bool suits = rules.owner == Owner::anybody || (task == rules.task && (ensemble ? classifies : !mean) &&
                                                         !(each && rules.owner == Owner::pairs));
    if (!suits) check(field::outputs_probability, header.probability, equal_to(0));
    check(field::outputs_label_rule, header.label_rule, up_to(LabelRule::probability_threshold));
    const LabelRule rule = static_cast<LabelRule>(header.label_rule);
    const bool has_two = (classifies && of.n_labels == 2) || (task == Task::one_class && !ensemble);
    const bool by_value = rule == LabelRule::value_threshold && has_two && !mean,
               by_share = rule == LabelRule::probability_threshold && has_two && of_classes;
    if (!by_value && !by_share)
        check(field::outputs_label_rule, header.label_rule,
              up_to(!classifies   ? LabelRule::votes
                    : !of_classes ? LabelRule::scores
                                  : LabelRule::probability));
    // Pairs vote only in a single model. A mean of probabilities has no scores.
    if (each || (ensemble && classifies))
        check(field::outputs_label_rule, header.label_rule,
              at_least(number_of(mean ? LabelRule::probability : LabelRule::scores)));
    check(field::outputs_positive, header.positive, from_to(0u, rules.flags));
    check(field::outputs_calibration_shape, header.calibration_shape, from_to(0, of_each_class ? 1 : 0));
    check(field::outputs_n_calibrators, header.n_calibrators,
          equal_to(!of_each_class     ? 0
                   : of.n_labels == 2 ? 1
                                      : of.n_labels));
    outputs.decision_shape = static_cast<DecisionShape>(header.decision_shape);
    outputs.label_rule = rule;
    outputs.probability = kind;
    outputs.calibration_shape = static_cast<DecisionShape>(header.calibration_shape);
    outputs.positive = header.positive;
    return check.status() == Status::ok;
}

// Describes the section, or reports that it is invalid. The pointer `bytes`, aligned to 8, is null if there is no
// section.
APPROXSVM_COLD inline Status read_outputs(const unsigned char* bytes, std::size_t n_bytes, const OutputsOf& of,
                                          OutputsView& outputs, ArtifactFault* fault = nullptr) {
    const std::uint32_t n_labels = of.n_labels;
    outputs = OutputsView{};
    if (!bytes) return Status::ok;
    Check check(fault, section::outputs, Status::bad_section);
    if (!check(field::any_size, n_bytes, at_least(sizeof(OutputsHeader))) ||
        !read_outputs_header(check, bytes, of, outputs))
        return check.status();
    const double* numbers = reinterpret_cast<const double*>(bytes + sizeof(OutputsHeader));
    if (outputs.label_rule == LabelRule::value_threshold || outputs.label_rule == LabelRule::probability_threshold) {
        const std::size_t before = static_cast<std::size_t>(reinterpret_cast<const unsigned char*>(numbers) - bytes);
        if (!check(field::any_size, n_bytes, at_least(before + 16))) return check.status();
        outputs.threshold = numbers;
        numbers += 2;
        check(field::outputs_threshold, outputs.threshold[0], finite_number);
        const bool is_second = outputs.threshold[1] != 0.0 && of.task != Task::one_class;
        check(field::outputs_threshold_label, outputs.threshold[1], equal_to(is_second ? 1.0 : 0.0));
    }
    const std::size_t start = static_cast<std::size_t>(reinterpret_cast<const unsigned char*>(numbers) - bytes);
    outputs.numbers = numbers;
    if (outputs.probability == ProbabilityKind::one_vs_rest_calibration) {
        calibrators_are_valid(check, bytes, n_bytes, start, n_labels == 2 ? 1 : n_labels);
        return check.status();
    }
    const ProbabilityRules& rules = rules_of(outputs.probability);
    const std::size_t n = rules.n_numbers + rules.n_per_pair * (n_labels < 2 ? 0 : n_decisions_of(n_labels));
    if (check(field::any_size, n_bytes, equal_to(start + 8 * n))) numbers_are_valid(check, rules, numbers, n);
    return check.status();
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

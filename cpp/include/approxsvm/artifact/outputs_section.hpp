// Reads the section outputs in place (models/FORMAT.md, "outputs"). Every MUST is checked before a pointer is returned.
// outputs.hpp evaluates the section.
#ifndef APPROXSVM_ARTIFACT_OUTPUTS_SECTION_HPP
#define APPROXSVM_ARTIFACT_OUTPUTS_SECTION_HPP

#include "fault.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// The models that may have a kind of probabilities: pairwise models, models with decision values (including ensembles
// whose members are the functions of the classes), or ensembles that combine their members' answers.
enum class Owner : std::uint8_t { anybody, pairs, values, members };
// The probabilities of a row: none, or one per class (inlier and outlier also count as classes).
enum class Gives : std::uint8_t { nothing, of_classes };

// The entry of schema.inc for a kind of probabilities.
struct ProbabilityRules {
    Task task;
    Owner owner;
    Gives gives;
    std::uint32_t flags;                // the largest value of `positive`
    std::size_t n_numbers, n_per_pair;  // in total, and per pair of classes
    field::Id field;                    // the name of a number in messages ...
    double low, high;                   // ... and its range, if it is limited
    bool ascends;                       // whether the numbers ascend (not strictly)
};
constexpr ProbabilityRules probability_rules[] = {
#define APPROXSVM_PROBABILITY(kind, task, owner, gives, flags, n, n_per_pair, field_, low, high, ascends) \
    {Task::task, Owner::owner, Gives::gives, flags, n, n_per_pair, field::field_, low, high, ascends},
#include "schema.inc"
};
constexpr const ProbabilityRules& rules_of(ProbabilityKind kind) {
    return probability_rules[number_of(kind)];
}

// Checks the numbers of a kind of probabilities.
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

// Checks that knots ascend, heights do not descend, and slopes are normal numbers, so that the rounding error of
// interpolation is relative to its result.
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

// Whether n calibrators, each a number of knots and its numbers, fill the rest of the section from `at` on.
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

// The model that a section outputs belongs to.
struct OutputsOf {
    Task task;
    std::uint32_t n_labels;
    std::size_t n_members = 0;  // of an ensemble
};

// Checks header fields by themselves, and against the task.
APPROXSVM_COLD inline bool read_outputs_header(Check& check, const unsigned char* bytes, const OutputsOf& of,
                                               OutputsView& outputs) {
    const Task task = of.task;
    const std::uint32_t n_labels = of.n_labels;
    const OutputsHeader header = read_at<OutputsHeader>(bytes, 0);
    const bool each = header.decision_shape >= number_of(DecisionShape::each);
    check(field::outputs_decision_shape, header.decision_shape,
          up_to(n_labels <= 2      ? DecisionShape::ovr
                : of.n_members > 0 ? DecisionShape::sums
                                   : DecisionShape::each));
    check(field::outputs_label_rule, header.label_rule, up_to(LabelRule::targets));
    constexpr std::size_t n_rules = sizeof probability_rules / sizeof *probability_rules;
    if (!check(field::outputs_probability, header.probability, from_to(std::size_t{0}, n_rules - 1))) return false;
    const ProbabilityKind kind = static_cast<ProbabilityKind>(header.probability);
    const ProbabilityRules& rules = rules_of(kind);
    const bool classifies = task == Task::classification && n_labels >= 2, ensemble = of.n_members > 0,
               of_each_class = kind == ProbabilityKind::one_vs_rest_calibration,
               of_classes = classifies && rules.gives == Gives::of_classes;
    // An ensemble averages probabilities, counts votes or gives several labels, unless its members are the functions
    // of each class or the sum of their values gives the label.
    const bool mean = of_classes && rules.owner == Owner::members,
               of_sum = ensemble && classifies && n_labels == 2 && !each &&
                        weighs_values(static_cast<LabelRule>(header.label_rule), kind),
               of_pairs = ensemble && n_labels > 2 && header.decision_shape == number_of(DecisionShape::ovr) &&
                          static_cast<LabelRule>(header.label_rule) == LabelRule::scores,
               from_values = !ensemble || each || of_sum || of_pairs;
    const bool owned = rules.owner == Owner::pairs    ? from_values && !each
                       : rules.owner == Owner::values ? from_values
                                                      : !from_values;
    const bool suits = rules.owner == Owner::anybody ||
                       (task == rules.task && owned && (classifies || !(task == Task::classification)));
    if (!suits) check(field::outputs_probability, header.probability, equal_to(0));
    const LabelRule rule = static_cast<LabelRule>(header.label_rule);
    const bool has_two = (classifies && n_labels == 2) || (task == Task::one_class && !ensemble);
    const bool by_value = rule == LabelRule::value_threshold && has_two && from_values,
               by_share = rule == LabelRule::probability_threshold && has_two && classifies && of_classes;
    const bool by_target = rule == LabelRule::targets && classifies && ensemble && !each && !mean;
    if (!by_value && !by_share && !by_target)
        check(field::outputs_label_rule, header.label_rule,
              up_to(!classifies || (!from_values && !mean) ? LabelRule::votes
                    : !of_classes                          ? LabelRule::scores
                                                           : LabelRule::probability));
    if (each) check(field::outputs_label_rule, header.label_rule, at_least(number_of(LabelRule::scores)));
    if (mean) check(field::outputs_label_rule, header.label_rule, at_least(number_of(LabelRule::probability)));
    if (ensemble && !each && !of_pairs)  // several labels may be one per class, and votes may give probabilities
        check(field::outputs_decision_shape, header.decision_shape,
              from_to(0, by_target || (rule == LabelRule::votes && classifies) ? 1 : 0));
    check(field::outputs_positive, header.positive, from_to(0u, rules.flags));
    check(field::outputs_calibration_shape, header.calibration_shape, from_to(0, of_each_class ? 1 : 0));
    check(field::outputs_n_calibrators, header.n_calibrators,
          equal_to(!of_each_class  ? 0
                   : n_labels == 2 ? 1
                                   : n_labels));
    outputs.decision_shape = each ? DecisionShape::each : static_cast<DecisionShape>(header.decision_shape);
    outputs.label_rule = static_cast<LabelRule>(header.label_rule);
    outputs.probability = kind;
    outputs.calibration_shape = static_cast<DecisionShape>(header.calibration_shape);
    outputs.positive = header.positive;
    return check.status() == Status::ok;
}

// Checks the weights of an ensemble's members and the addend, at `numbers`.
APPROXSVM_COLD inline bool weights_are_valid(Check& check, const OutputsOf& of, const double* numbers,
                                             OutputsView& outputs) {
    const bool is_mean = rules_of(outputs.probability).owner == Owner::members,
               counts = of.task == Task::classification && !weighs_values(outputs.label_rule, outputs.probability);
    double sum = 0.0;
    if (!check.finite(field::outputs_weight, numbers, of.n_members)) return false;
    for (std::size_t k = 0; k < of.n_members; ++k) {
        if (counts) check(field::outputs_weight, numbers[k], at_least(0.0), k);
        sum += numbers[k];
    }
    outputs.weights = numbers;
    outputs.addend = numbers[of.n_members];
    check(field::outputs_addend, outputs.addend, counts ? equal_to(0.0) : finite_number);
    if (counts) {
        check(field::outputs_sum_of_weights, sum, Expected{Rule::above, stored(0.0), {}});
        if (is_mean) check(field::outputs_sum_of_weights, sum, at_least(0x1p-900));  // products must not underflow
        check(field::outputs_sum_of_weights, sum, finite_number);
    }
    return check.status() == Status::ok;
}

// Checks that `numbers` begin with n_columns and, for each label, one weight per column and an addend, all finite.
// n_columns is compared with the members once these are known.
APPROXSVM_COLD inline bool sums_are_valid(Check& check, std::size_t n_labels, const double* numbers,
                                          std::size_t n_bytes, OutputsView& outputs) {
    const std::size_t n_doubles = n_bytes / 8;
    if (!check(field::any_size, n_bytes, at_least(sizeof(OutputsHeader) + 8))) return false;
    const std::uint64_t n_columns = read_at<std::uint64_t>(reinterpret_cast<const unsigned char*>(numbers), 0);
    if (!check(field::outputs_n_columns, n_columns, from_to(1, n_doubles / n_labels))) return false;
    outputs.n_columns = static_cast<std::size_t>(n_columns);
    outputs.weights = numbers + 1;
    const std::size_t n = n_labels * (outputs.n_columns + 1);
    return check(field::any_size, n_bytes, at_least(sizeof(OutputsHeader) + 8 + 8 * n)) &&
           check.finite(field::outputs_weight, outputs.weights, n);
}

// Describes the section, or reports that it is broken. `bytes`, aligned to 8, is null if there is no section.
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
    const bool weighs = of.n_members > 0 && outputs.decision_shape != DecisionShape::each &&
                        outputs.label_rule != LabelRule::targets && outputs.label_rule != LabelRule::scores;
    if (weighs) {
        const std::size_t n_numbers = of.n_members + 1;
        if (!check(field::any_size, n_bytes, at_least(sizeof(OutputsHeader) + 8 * n_numbers)) ||
            !weights_are_valid(check, of, numbers, outputs))
            return check.status();
        numbers += n_numbers;
    } else if (read_at<OutputsHeader>(bytes, 0).decision_shape == number_of(DecisionShape::sums)) {
        if (!sums_are_valid(check, n_labels, numbers, n_bytes, outputs)) return check.status();
        numbers = outputs.weights + n_labels * (outputs.n_columns + 1);
    }
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

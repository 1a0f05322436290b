// The section "combination": the sparse matrix that turns the columns of an ensemble's members into its values.
#ifndef APPROXSVM_ARTIFACT_SECTIONS_COMBINATION_HPP
#define APPROXSVM_ARTIFACT_SECTIONS_COMBINATION_HPP

#include "../envelope.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Returns the number of columns contributed by a member: one for each value of a regressor, and for a classifier, one
// per label, or a single one if the ensemble has targets.
inline std::size_t n_columns_of(const ModelView& ensemble, const ModelView& member) {
    if (member.task == Task::regression) return member.n_decisions;
    return is_of_targets(ensemble) ? 1 : member.n_labels;
}

// Checks that the columns' weights are listed in order, and that a column has at most one weight per value.
APPROXSVM_COLD inline bool columns_are_valid(Check& check, const CombinationView& view, std::uint32_t n_weights) {
    for (std::size_t c = 0; c <= view.n_columns; ++c) {
        const std::uint32_t least = c == 0 ? 0 : view.starts[c - 1], most = c == 0 ? 0 : n_weights;
        if (!check(field::combination_start, view.starts[c], from_to(c < view.n_columns ? least : n_weights, most), c))
            return false;
    }
    for (std::size_t c = 0; c < view.n_columns; ++c) {
        for (std::uint32_t k = view.starts[c]; k < view.starts[c + 1]; ++k) {
            const std::uint32_t least = k == view.starts[c] ? 0 : view.values[k - 1] + 1;
            if (!check(field::combination_value, view.values[k], from_to(least, view.n_values - 1), k)) return false;
        }
    }
    return true;
}

// Reads the section. n_columns is compared with the members' columns later, once the members are known.
APPROXSVM_COLD inline Status read_combination(const SectionTable& sections, ModelView& model, ArtifactFault* fault) {
    const Section& section = sections[section::combination];
    Check check(fault, section::combination, Status::bad_section);
    if (!check(field::any_size, section.bytes, at_least(sizeof(CombinationHeader)))) return check.status();
    const unsigned char* const bytes = sections.at(section::combination);
    const CombinationHeader header = read_at<CombinationHeader>(bytes, 0);
    CombinationView& view = model.combination;
    check(field::combination_columns, header.columns,
          up_to(model.task == Task::classification ? Columns::labels : Columns::numbers));
    const bool is_of_labels = header.columns == number_of(Columns::labels),
               is_of_votes = header.columns == number_of(Columns::votes);
    check(field::combination_n_values, header.n_values,
          is_of_votes ? equal_to(model.n_labels) : from_to(std::size_t{0}, is_of_labels ? 0 : max_n_targets));
    if (header.n_values == 0) check(field::combination_n_weights, header.n_weights, equal_to(0));
    if (check.status() != Status::ok) return check.status();
    view.columns = static_cast<Columns>(header.columns);
    view.n_columns = header.n_columns;
    view.n_values = header.n_values;
    // An array with an odd number of 32-bit integers is followed by 4 bytes of padding.
    const ClaimedSize n_doubles = view.n_values + ClaimedSize{header.n_weights}, n_starts = view.n_columns / 2 * 2 + 2,
                      n_places = (ClaimedSize{header.n_weights} + 1) / 2 * 2;
    const ClaimedSize n_bytes = sizeof header + 8 * n_doubles + (view.n_values > 0 ? 4 * (n_starts + n_places) : 0);
    if (!check(field::any_size, section.bytes, equal_to(n_bytes)) || view.n_values == 0) return check.status();
    view.addends = reinterpret_cast<const double*>(bytes + sizeof header);
    view.weights = view.addends + view.n_values;
    view.starts = reinterpret_cast<const std::uint32_t*>(view.weights + header.n_weights);
    view.values = view.starts + n_starts;
    const std::size_t starts = sizeof header + 8 * static_cast<std::size_t>(n_doubles),
                      places = starts + 4 * static_cast<std::size_t>(n_starts);
    check.zeros(bytes, starts + 4 * (view.n_columns + 1), places);
    check.zeros(bytes, places + 4 * std::size_t{header.n_weights}, section.bytes);
    if (!columns_are_valid(check, view, header.n_weights) ||
        !check.finite(field::combination_addend, view.addends, view.n_values))
        return check.status();
    check.finite(field::combination_weight, view.weights, header.n_weights);
    return check.status();
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

// Section presumption: the network that presumes which of several classes wins a row.
#pragma once

#include "envelope.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

struct PresumptionView {
    std::size_t n_landmarks;
    const std::uint32_t* landmarks;  // (n_landmarks,): support vectors
    const float* weights;            // (1 + n_features + n_landmarks, n_labels): constants, of features, of landmarks
};

// Of a model that has this section. Landmarks are followed by 4 bytes of padding where their number is odd.
inline PresumptionView presumption_of(const ModelView& model) {
    const unsigned char* const start = model.sections[section::presumption];
    const std::size_t n = read_at<PresumptionHeader>(start, 0).n_landmarks;
    const std::uint32_t* const landmarks = reinterpret_cast<const std::uint32_t*>(start + sizeof(PresumptionHeader));
    return {n, landmarks, reinterpret_cast<const float*>(landmarks + (n + 1) / 2 * 2)};
}

APPROXSVM_COLD inline Status read_presumption(const SectionTable& sections, ModelView& model, ArtifactFault* fault) {
    const Section& section = sections[section::presumption];
    if (section.offset == 0) return Status::ok;
    Check check(fault, section::presumption, Status::bad_section),
        weights(fault, section::presumption, Status::bad_coefficient);
    is_where_wanted(check, section, model,
                    model.mode != Mode::approximate && has_classes(model) && model.kernel == KernelKind::gaussian);
    if (!check(field::any_size, section.bytes, at_least(sizeof(PresumptionHeader)))) return check.status();
    const unsigned char* const start = sections.at(section::presumption);
    const PresumptionHeader header = read_at<PresumptionHeader>(start, 0);
    check(field::presumption_reserved, header.reserved, equal_to(0));
    if (!check(field::presumption_n_landmarks, header.n_landmarks, from_to(0, model.n_sv))) return check.status();
    // At most 2^42 numbers of rows, and as many of landmarks.
    const std::size_t n = header.n_landmarks, n_rows = 1 + model.n_features + n, n_indices = (n + 1) / 2 * 2;
    const ClaimedSize n_numbers = ClaimedSize{n_rows} * model.n_labels;
    if (!check(field::any_size, section.bytes, equal_to(sizeof(PresumptionHeader) + 4 * (n_indices + n_numbers))))
        return check.status();
    const PresumptionView presumption = presumption_of(model);
    if (n > 0) check.each(field::presumption_landmark, presumption.landmarks, n, from_to(0, model.n_sv - 1));
    if (!check.zeros(start, sizeof header + 4 * n, sizeof header + 4 * n_indices)) return check.status();
    weights.finite(field::presumption_weight, presumption.weights, static_cast<std::size_t>(n_numbers));
    return weights.status();
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

// Section speculation: the network that speculates which of several classes wins a row.
#ifndef APPROXSVM_ARTIFACT_SECTIONS_SPECULATION_HPP
#define APPROXSVM_ARTIFACT_SECTIONS_SPECULATION_HPP

#include "../envelope.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

struct SpeculationView {
    std::size_t n_landmarks;
    const std::uint32_t* landmarks;  // (n_landmarks,): support vectors
    const float* weights;            // (1 + n_features + n_landmarks, n_labels): constants, of features, of landmarks
};

// Views the section of a model that has one. Landmarks are followed by 4 bytes of padding where their number is odd.
inline SpeculationView speculation_of(const ModelView& model) {
    const unsigned char* const start = model.sections[section::speculation];
    const std::size_t n = read_at<SpeculationHeader>(start, 0).n_landmarks;
    const std::uint32_t* const landmarks = reinterpret_cast<const std::uint32_t*>(start + sizeof(SpeculationHeader));
    return {n, landmarks, reinterpret_cast<const float*>(landmarks + (n + 1) / 2 * 2)};
}

APPROXSVM_COLD inline Status read_speculation(const SectionTable& sections, ModelView& model, ArtifactFault* fault) {
    const Section& section = sections[section::speculation];
    if (section.offset == 0) return Status::ok;
    Check check(fault, section::speculation, Status::bad_section),
        weights(fault, section::speculation, Status::bad_coefficient);
    is_where_wanted(check, section, model,
                    model.mode != Mode::approximate && has_classes(model) && model.kernel == KernelKind::gaussian);
    if (!check(field::any_size, section.bytes, at_least(sizeof(SpeculationHeader)))) return check.status();
    const unsigned char* const start = sections.at(section::speculation);
    const SpeculationHeader header = read_at<SpeculationHeader>(start, 0);
    check(field::speculation_reserved, header.reserved, equal_to(0));
    if (!check(field::speculation_n_landmarks, header.n_landmarks, from_to(0, model.n_sv))) return check.status();
    // The rows have at most 2^42 numbers, and so have the landmarks.
    const std::size_t n = header.n_landmarks, n_rows = 1 + model.n_features + n, n_indices = (n + 1) / 2 * 2;
    const ClaimedSize n_numbers = ClaimedSize{n_rows} * model.n_labels;
    if (!check(field::any_size, section.bytes, equal_to(sizeof(SpeculationHeader) + 4 * (n_indices + n_numbers))))
        return check.status();
    const SpeculationView speculation = speculation_of(model);
    if (n > 0) check.each(field::speculation_landmark, speculation.landmarks, n, from_to(0, model.n_sv - 1));
    if (!check.zeros(start, sizeof header + 4 * n, sizeof header + 4 * n_indices)) return check.status();
    weights.finite(field::speculation_weight, speculation.weights, static_cast<std::size_t>(n_numbers));
    return weights.status();
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

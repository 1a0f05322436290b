// Checks the header of an artifact: each field by itself, against other fields, and against the constraints of its
// kernel.
#ifndef APPROXSVM_ARTIFACT_HEADER_HPP
#define APPROXSVM_ARTIFACT_HEADER_HPP

#include "kinds.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

APPROXSVM_COLD inline Status read_header(const unsigned char* bytes, ModelView& model, ArtifactFault* fault) {
    const Header header = header_of(bytes);
    Check check(fault, section::none, Status::bad_header);
    const bool ensemble = header.mode == number_of(Mode::ensemble), exact = header.mode == number_of(Mode::exact);
    const KindRules& kind = rules_of(header.kernel);
    const bool expanded = !ensemble && !exact && kind.expands;
    check(field::header_first_release, header.first_release, equal_to(format_release));
    check(field::header_task, header.task, up_to(Task::one_class));
    check(field::header_mode, header.mode, up_to(Mode::ensemble));
    check(field::header_label_kind, header.label_kind, up_to(LabelKind::text));
    check(field::header_first_index, header.first_index, from_to(0, 1));
    check(field::header_center_kind, header.center_kind, up_to(CenterKind::mean));
    check(field::header_tolerance_asked, header.tolerance_asked, from_to(0, 1));
    check(field::header_kernel, header.kernel, from_to(0, ensemble ? 0 : n_kinds - 1));
    if (kind.only_exact) check(field::header_mode, header.mode, equal_to(number_of(Mode::exact)));
    const int highest = ensemble ? 0 : exact ? kind.max_exact_degree : kind.max_degree;
    check(field::header_degree, header.degree, highest > 0 ? from_to(1, highest) : equal_to(0));
    check(field::header_n_centers, header.n_centers, expanded ? from_to(1, max_n_centers) : equal_to(0));
    check(field::header_first_remainder_degree, header.first_remainder_degree,
          expanded ? from_to(header.degree + 1, last_norm_degree + 1) : equal_to(0));
    if (!kind.expands) check(field::header_center_kind, header.center_kind, equal_to(0));
    // An ensemble's functions are counted when its members are read.
    check(field::header_n_labels, header.n_labels, from_to(0, max_n_labels));
    check(field::header_n_features, header.n_features, from_to(1, max_n_features));
    check(field::header_n_raw_features, header.n_raw_features, from_to(1, max_n_features));
    const bool may_have_majorities = header.mode == number_of(Mode::certified) && kind.expands && header.n_labels > 2 &&
                                     !(header.tolerance < infinity);
    check(field::header_majority_only, header.majority_only, from_to(0, may_have_majorities ? 1 : 0));
    check(field::header_gamma, header.gamma, kind.gamma);
    check(field::header_input_scale, header.input_scale,
          Expected{Rule::power_of_two, stored(1.0 / max_input_scale), stored(max_input_scale)});
    if (!kind.expands || ensemble) check(field::header_input_scale, header.input_scale, equal_to(1.0));
    const double gamma = header.gamma + 0.0;  // turns -0 into 0, so that distances do not become -0
    const double theta = 2.0 * gamma / header.input_scale / header.input_scale;
    if (kind.expands && header.gamma > 0.0)
        check(field::header_theta, theta, Expected{Rule::from_below, stored(1.0), stored(4.0)});
    check(field::header_max_sv_norm, header.max_sv_norm, at_least(0.0));
    check(field::header_max_sv_norm_origin, header.max_sv_norm_origin, at_least(0.0));
    check(field::header_tolerance, header.tolerance, Expected{Rule::above, stored(0.0), {}});
    if (ensemble) {
        check(field::header_task, header.task, up_to(Task::regression));
        check(field::header_gamma, header.gamma, equal_to(0.0));
        check(field::header_tolerance, header.tolerance, at_least(infinity));
    }
    if (check.status() != Status::ok) return check.status();
    model.first_index = header.first_index;
    model.n_labels = header.n_labels;
    model.gamma = gamma;
    model.input_scale = header.input_scale;
    model.tolerance = header.tolerance;
    model.max_sv_norm = header.max_sv_norm;
    model.max_sv_norm_origin = header.max_sv_norm_origin;
    model.tolerance_asked = header.tolerance_asked != 0;
    model.majority_only = header.majority_only == 1;
    model.kernel = static_cast<KernelKind>(header.kernel);
    model.mode = static_cast<Mode>(header.mode);
    model.task = static_cast<Task>(header.task);
    model.label_kind = static_cast<LabelKind>(header.label_kind);
    model.n_features = static_cast<std::size_t>(header.n_features);
    model.n_raw_features = static_cast<std::size_t>(header.n_raw_features);
    model.half_theta = static_cast<float>(0.5 * theta);
    model.degree = static_cast<int>(header.degree);
    model.n_centers = header.n_centers;
    model.n_decisions = header.n_decisions;
    model.n_forms = model.majority_only ? std::size_t{model.n_labels} - 1 : header.n_decisions;
    model.first_remainder_degree = static_cast<int>(header.first_remainder_degree);
    return Status::ok;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

// The groups in the section "subspaces", and the constraints on the lists of coefficients. Subspaces are evaluated by
// exact/rbf_subspace.hpp.
#ifndef APPROXSVM_ARTIFACT_SECTIONS_SUBSPACES_HPP
#define APPROXSVM_ARTIFACT_SECTIONS_SUBSPACES_HPP

#include "../layouts.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Number of stages that sum kernel values: all except a first stage that is an expansion.
inline std::size_t n_summed_stages(const ModelView& model) {
    return model.subspaces.n_stages - (model.subspaces.expansion ? 1 : 0);
}

// Calls visit(number, group) for each group. The section must have been read.
template <class Visit>
inline void for_subspace_groups(const ModelView& model, const Visit& visit) {
    Layouts layouts(model);
    Walk walk(model.subspaces.groups);
    for (std::size_t g = 0; model.subspaces.n_stages > 0 && g < n_subspace_groups(model); ++g) {
        SubspaceGroup group{};
        layouts.read_subspace_group(walk, group, model.subspaces);
        visit(g, group);
    }
}

// Returns whether n coefficients have the same sign; `index` is the index of the first one.
inline bool is_list_of_one_sign(Check& check, const float* coef, std::size_t n, std::size_t index) {
    float first = 0.0f;
    for (std::size_t k = 0; k < n; ++k) {
        const float a = coef[k];
        if (first == 0.0f) first = a;
        if (a != 0.0f && (a < 0.0f) != (first < 0.0f))
            return check.refuse(field::subspace_group_coef, a, Expected{Rule::one_sign, stored(first), {}}, index + k);
    }
    return check.status() == Status::ok;
}

APPROXSVM_COLD inline Status check_subspaces(const ModelView& model, ArtifactFault* fault) {
    Check check(fault, section::subspaces, Status::bad_coefficient);
    const std::size_t n = n_subspace_forms(model);
    for_subspace_groups(model, [&](std::size_t, const SubspaceGroup& group) {
        std::size_t at = 0;
        for (std::size_t k = 0; k < n_summed_stages(model) * 2 * n; ++k) {
            const std::size_t f = k % (2 * n), n_listed = f < n ? group.n_own : group.counts[1 + f - n];
            if (!is_list_of_one_sign(check, group.coef + at, n_listed, at)) return;
            at += n_listed;
        }
    });
    return check.status();
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

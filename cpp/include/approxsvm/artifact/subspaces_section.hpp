// Reads the section subspaces in place (models/FORMAT.md, "subspaces"). Every MUST is checked before a pointer is
// returned. exact/rbf_subspace.hpp evaluates the section.
#ifndef APPROXSVM_ARTIFACT_SUBSPACES_SECTION_HPP
#define APPROXSVM_ARTIFACT_SUBSPACES_SECTION_HPP

#include "envelope.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// The data of one class, or of the only decision function, read in place. Each function has two lists. The functions of
// a class share the class's own support vectors; for a single function, these are the ones with a positive coefficient.
struct SubspaceGroup {
    double skew;                   // distance of the basis from an orthonormal one
    const std::uint32_t* counts;   // (1 + n_forms,): own support vectors, and those of each function's other list
    std::size_t n_own, n_others;   // n_others: of all other lists together
    const ResidualNumbers* known;  // (n_stages, n_forms)
    const float* basis;            // (n_coordinates, n_features)
    const float* vectors;          // (n_own + n_others, n_coordinates)
    // (n_summed, n_forms n_own + n_others): all own ones function by function, then the others'
    const float* coef;
};

// Number of stages that sum kernels: all except a first stage that is an expansion.
inline std::size_t n_summed_stages(const ModelView& model) {
    return model.subspaces.n_stages - (model.subspaces.expansion ? 1 : 0);
}
inline std::size_t n_subspace_forms(const ModelView& model) {
    return model.n_labels > 2 ? std::size_t{model.n_labels} - 1 : 1;
}
inline std::size_t n_subspace_groups(const ModelView& model) {
    return model.n_labels > 2 ? std::size_t{model.n_labels} : 1;
}

constexpr std::uint64_t aligned_to_8(std::uint64_t n_bytes) {
    return (n_bytes + 7) / 8 * 8;
}

// Reads the group that begins at byte `at` of n_bytes. Returns the start of the next one, or 0 if it is refused. Counts
// are at most n_sv.
inline std::size_t read_subspace_group(Check& check, const ModelView& model, const unsigned char* bytes,
                                       std::size_t n_bytes, std::size_t at, SubspaceGroup& group) {
    // These are products of claimed sizes, so they take 64 bits on every machine.
    const std::uint64_t n_stages = model.subspaces.n_stages, n = n_subspace_forms(model), d = model.n_features;
    const std::uint64_t n_coordinates = model.subspaces.n_coordinates;
    const auto take = [&](std::uint64_t size) {  // at most 2^60 bytes, padded with zeros to a multiple of eight
        const unsigned char* const first = bytes + at;
        const std::uint64_t end = at + size, padded = at + aligned_to_8(size);
        if (check(field::any_size, n_bytes, at_least(padded))) {
            at = static_cast<std::size_t>(padded);
            check.zeros(bytes, static_cast<std::size_t>(end), at);
        }
        return first;
    };
    const unsigned char* const skew = take(sizeof(double));
    group.counts = reinterpret_cast<const std::uint32_t*>(take(4 * (1 + n)));
    if (check.status() != Status::ok) return 0;
    group.skew = read_at<double>(skew, 0);
    group.n_own = group.counts[0];
    std::uint64_t n_others = 0;
    for (std::size_t f = 0; f < n; ++f) n_others += group.counts[1 + f];
    check(field::subspaces_count, group.n_own, from_to(0, model.n_sv), 0);
    check(field::subspaces_count, n_others, from_to(0, model.n_sv), 1);
    if (check.status() != Status::ok) return 0;
    group.n_others = static_cast<std::size_t>(n_others);
    group.known = reinterpret_cast<const ResidualNumbers*>(take(n_stages * n * sizeof(ResidualNumbers)));
    group.basis = reinterpret_cast<const float*>(take(4 * n_coordinates * d));
    group.vectors = reinterpret_cast<const float*>(take(4 * (group.n_own + n_others) * n_coordinates));
    group.coef = reinterpret_cast<const float*>(take(4 * n_summed_stages(model) * (n * group.n_own + n_others)));
    return check.status() == Status::ok ? at : 0;
}

// Whether n coefficients have one sign and are zero or of a modulus that float32 can add up; `index` belongs to the
// first one.
inline bool is_list_of_one_sign(Check& check, const float* coef, std::size_t n, std::size_t index) {
    float first = 0.0f;
    for (std::size_t k = 0; k < n; ++k) {
        const float a = coef[k];
        const double modulus = std::fabs(static_cast<double>(a));
        if (modulus != 0.0 && !(modulus >= least_coefficient && modulus <= most_coefficient)) {
            const Expected expected{Rule::zero_or_modulus, stored(least_coefficient), stored(most_coefficient)};
            return check.refuse(field::subspaces_coefficient, a, expected, index + k);
        }
        if (first == 0.0f) first = a;
        if (a != 0.0f && (a < 0.0f) != (first < 0.0f))
            return check.refuse(field::subspaces_coefficient, a, Expected{Rule::one_sign, stored(first), {}},
                                index + k);
    }
    return check.status() == Status::ok;
}

APPROXSVM_COLD inline bool subspace_group_is_valid(Check& check, const ModelView& model, const SubspaceGroup& group,
                                                   std::size_t g) {
    const std::size_t n_stages = model.subspaces.n_stages, n = n_subspace_forms(model);
    const std::size_t n_coordinates = model.subspaces.n_coordinates, n_vectors = group.n_own + group.n_others;
    check(field::subspaces_skew, group.skew, from_to(0.0, max_skew), g);
    for (std::size_t k = 0; k < n_stages * n && check.status() == Status::ok; ++k) {
        check_record(check, group.known[k], k);
    }
    check.finite(field::subspaces_basis, group.basis, n_coordinates * model.n_features);
    check.finite(field::subspaces_vector, group.vectors, n_vectors * n_coordinates);
    std::size_t at = 0;
    for (std::size_t stage = 0; stage < n_summed_stages(model); ++stage) {
        for (std::size_t f = 0; f < 2 * n && check.status() == Status::ok; ++f) {
            const std::size_t n_listed = f < n ? group.n_own : group.counts[1 + f - n];
            is_list_of_one_sign(check, group.coef + at, n_listed, at);
            at += n_listed;
        }
    }
    return check.status() == Status::ok;
}

// Calls visit(number, group) for each group. The groups have been validated.
template <class Visit>
inline void for_subspace_groups(const ModelView& model, const Visit& visit) {
    Check valid(nullptr, section::subspaces, Status::bad_section);
    std::size_t at = 0;
    for (std::size_t g = 0; model.subspaces.n_stages > 0 && g < n_subspace_groups(model); ++g) {
        SubspaceGroup group{};
        at = read_subspace_group(valid, model, model.subspaces.groups, ~std::size_t{0}, at, group);
        visit(g, group);
    }
}

// Describes the section, or reports that it is broken.
APPROXSVM_COLD inline Status read_subspaces(const SectionTable& sections, ModelView& model, ArtifactFault* fault) {
    SubspacesView& subspaces = model.subspaces;
    const Section& section = sections[section::subspaces];
    const unsigned char *bytes = sections.at(section::subspaces), *expansion = sections.at(section::subspace_expansion);
    const std::size_t n_bytes = section.bytes;
    Check check(fault, section::subspaces, Status::bad_section),
        numbers(fault, section::subspaces, Status::bad_coefficient),
        replaces(fault, section::subspace_expansion, Status::bad_section);
    if (expansion &&
        !is_where_wanted(replaces, sections[section::subspace_expansion], model, bytes && model.n_decisions == 1))
        return replaces.status();
    if (!bytes) return Status::ok;
    const bool may_be =
        model.mode == Mode::exact && model.kernel == KernelKind::gaussian && model.gamma > 0.0 && !has_several(model);
    is_where_wanted(check, section, model, may_be);
    if (!check(field::any_size, n_bytes, at_least(sizeof(SubspacesHeader)))) return check.status();
    subspaces.expansion = expansion;
    const SubspacesHeader header = read_at<SubspacesHeader>(bytes, 0);
    const std::size_t n_stages = header.n_stages;
    check(field::subspaces_n_stages, n_stages, from_to(1, max_subspace_stages));
    if (!check(field::subspaces_reserved, header.reserved, equal_to(0))) return check.status();
    const std::size_t coordinates_end = sizeof(SubspacesHeader) + 4 * n_stages;
    const std::size_t head = static_cast<std::size_t>(aligned_to_8(coordinates_end));
    if (!check(field::any_size, n_bytes, at_least(head)) || !check.zeros(bytes, coordinates_end, head))
        return check.status();
    subspaces.coordinates = reinterpret_cast<const std::uint32_t*>(bytes + sizeof(SubspacesHeader));
    for (std::size_t k = 0; k < n_stages; ++k) {
        const std::uint64_t least = k == 0 ? 1 : std::uint64_t{subspaces.coordinates[k - 1]} + 1;
        check(field::subspaces_coordinates, subspaces.coordinates[k], from_to(least, model.n_features), k);
    }
    if (check.status() != Status::ok) return check.status();
    subspaces.n_stages = n_stages;
    subspaces.n_coordinates = subspaces.coordinates[n_stages - 1];
    subspaces.groups = bytes + head;
    std::size_t at = head;
    for (std::size_t g = 0; g < n_subspace_groups(model); ++g) {
        SubspaceGroup group{};
        at = read_subspace_group(check, model, bytes, n_bytes, at, group);
        if (at == 0) return check.status();
        if (!subspace_group_is_valid(numbers, model, group, g)) return numbers.status();
    }
    check(field::any_size, n_bytes, equal_to(at));
    return check.status();
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

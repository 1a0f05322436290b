// Reads the section subspaces in place (models/FORMAT.md, "subspaces"): every MUST is checked before a pointer is
// handed out. exact/rbf_subspace.hpp evaluates what it says.
#pragma once

#include "../model_view.hpp"
#include "../simd/block.hpp"
#include "../simd/simd.hpp"
#include "../status.hpp"
#include "support_vectors.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

constexpr std::size_t max_subspace_stages = 8;
// Moduli of coefficients that are not zero; float32 adds them up.
constexpr double least_coefficient = 0x1p-60, most_coefficient = 0x1p60;

// What belongs to one class, or to the only decision function, seen in place. Its functions have two lists each: those
// of a class share its own support vectors, the only function's own ones are those with a positive coefficient.
struct SubspaceGroup {
    double skew;                   // of the basis: how far it is from orthonormal
    const std::uint32_t* counts;   // (1 + n_forms,): support vectors of its own, and of each function's other list
    std::size_t n_own, n_others;   // of all other lists together
    const ResidualNumbers* known;  // (n_stages, n_forms)
    const float* basis;            // (n_coordinates, n_features)
    const float* vectors;          // (n_own + n_others, n_coordinates)
    const float* coef;             // (n_summed, n_forms n_own + n_others): functions of all own ones, then the others'
};

// Stages that add up kernels: all but a first one that is an expansion.
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

// The group at p, which has n_bytes; returns how many it takes, 0 where these do not suffice. Counts are at most n_sv.
inline std::size_t read_subspace_group(const ModelView& model, const unsigned char* p, std::size_t n_bytes,
                                       SubspaceGroup& group) {
    // In 64 bits on every machine: these are products of what the file claims.
    const std::uint64_t n_stages = model.subspaces.n_stages, n = n_subspace_forms(model), d = model.n_features;
    const std::uint64_t n_coordinates = model.subspaces.n_coordinates;
    std::uint64_t at = 0;
    bool padded = true;
    const auto take = [&](std::uint64_t size) {  // of at most 2^60 bytes, with zeros up to a multiple of eight
        const unsigned char* const first = p + static_cast<std::size_t>(at);
        at += aligned_to_8(size);
        for (std::uint64_t k = size; at <= n_bytes && k < aligned_to_8(size); ++k) padded &= first[k] == 0;
        return first;
    };
    group.skew = 0.0;
    const unsigned char* const skew = take(sizeof(double));
    group.counts = reinterpret_cast<const std::uint32_t*>(take(4 * (1 + n)));
    if (at > n_bytes) return 0;
    group.skew = read_at<double>(skew, 0);
    group.n_own = group.counts[0];
    std::uint64_t n_others = 0;
    for (std::size_t f = 0; f < n; ++f) n_others += group.counts[1 + f];
    if (group.n_own > model.n_sv || n_others > model.n_sv) return 0;
    group.n_others = static_cast<std::size_t>(n_others);
    group.known = reinterpret_cast<const ResidualNumbers*>(take(n_stages * n * sizeof(ResidualNumbers)));
    group.basis = reinterpret_cast<const float*>(take(4 * n_coordinates * d));
    group.vectors = reinterpret_cast<const float*>(take(4 * (group.n_own + n_others) * n_coordinates));
    group.coef = reinterpret_cast<const float*>(take(4 * n_summed_stages(model) * (n * group.n_own + n_others)));
    return at <= n_bytes && padded ? static_cast<std::size_t>(at) : 0;
}

// Whether n coefficients are zero or of a modulus that float32 adds up, and all of one sign.
inline bool is_list_of_one_sign(const float* coef, std::size_t n) {
    bool positive = false, negative = false, listed = true;
    for (std::size_t k = 0; k < n; ++k) {
        const double a = static_cast<double>(coef[k]), modulus = std::fabs(a);
        listed &= modulus == 0.0 || (modulus >= least_coefficient && modulus <= most_coefficient);
        positive |= a > 0.0;
        negative |= a < 0.0;
    }
    return listed && !(positive && negative);
}

inline bool subspace_group_is_valid(const ModelView& model, const SubspaceGroup& group) {
    const std::size_t n_stages = model.subspaces.n_stages, n = n_subspace_forms(model);
    const std::size_t n_coordinates = model.subspaces.n_coordinates, n_vectors = group.n_own + group.n_others;
    if (!(group.skew >= 0.0 && group.skew <= 0x1p-10)) return false;
    const double* const numbers = &group.known->total;
    for (std::size_t k = 0; k < n_stages * n * (sizeof(ResidualNumbers) / sizeof(double)); ++k) {
        if (!(numbers[k] >= 0.0 && is_finite(numbers[k]))) return false;
    }
    if (!all_finite(group.basis, 1, n_coordinates * model.n_features) ||
        !all_finite(group.vectors, 1, n_vectors * n_coordinates))
        return false;
    const float* coef = group.coef;
    for (std::size_t stage = 0; stage < n_summed_stages(model); ++stage) {
        for (std::size_t f = 0; f < n; ++f, coef += group.n_own) {
            if (!is_list_of_one_sign(coef, group.n_own)) return false;
        }
        for (std::size_t f = 0; f < n; ++f) {
            if (!is_list_of_one_sign(coef, group.counts[1 + f])) return false;
            coef += group.counts[1 + f];
        }
    }
    return true;
}

// Calls visit(number, group) for each; they have been validated.
template <class Visit>
inline void for_subspace_groups(const ModelView& model, const Visit& visit) {
    const unsigned char* p = model.subspaces.groups;
    for (std::size_t g = 0; model.subspaces.n_stages > 0 && g < n_subspace_groups(model); ++g) {
        SubspaceGroup group{};
        p += read_subspace_group(model, p, ~std::size_t{0}, group);
        visit(g, group);
    }
}

// Describes what the section says, or says that it is broken. `bytes`, at an address that is a multiple of 8, is null
// where there is none; so is `expansion`, which takes the place of the first stage's sums.
inline Status read_subspaces(const unsigned char* bytes, std::size_t n_bytes, const unsigned char* expansion,
                             ModelView& model) {
    SubspacesView& subspaces = model.subspaces = SubspacesView{};
    if (!bytes) return expansion ? Status::bad_section : Status::ok;
    if (expansion && model.n_decisions != 1) return Status::bad_section;
    subspaces.expansion = expansion;
    if (model.mode != Mode::exact || model.kernel != KernelKind::gaussian || !(model.gamma > 0.0) || n_bytes < 8)
        return Status::bad_section;
    const std::size_t n_stages = read_at<std::uint32_t>(bytes, 0);
    if (n_stages > max_subspace_stages) return Status::bad_section;
    const std::size_t head = static_cast<std::size_t>(aligned_to_8(8 + 4 * n_stages));
    if (n_stages < 1 || read_at<std::uint32_t>(bytes, 4) != 0 || n_bytes < head) return Status::bad_section;
    if (n_stages % 2 != 0 && read_at<std::uint32_t>(bytes, head - 4) != 0) return Status::bad_section;
    subspaces.coordinates = reinterpret_cast<const std::uint32_t*>(bytes + 8);
    for (std::size_t k = 0; k < n_stages; ++k) {
        const std::uint32_t least = k == 0 ? 1 : subspaces.coordinates[k - 1] + 1;
        if (subspaces.coordinates[k] < least || subspaces.coordinates[k] > model.n_features) return Status::bad_section;
    }
    subspaces.n_stages = n_stages;
    subspaces.n_coordinates = subspaces.coordinates[n_stages - 1];
    subspaces.groups = bytes + head;
    std::size_t at = head;
    for (std::size_t g = 0; g < n_subspace_groups(model); ++g) {
        SubspaceGroup group{};
        const std::size_t taken = read_subspace_group(model, bytes + at, n_bytes - at, group);
        if (taken == 0) return Status::bad_section;
        if (!subspace_group_is_valid(model, group)) return Status::bad_coefficient;
        at += taken;
    }
    return at == n_bytes ? Status::ok : Status::bad_section;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

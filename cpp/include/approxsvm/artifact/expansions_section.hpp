// The sections of expansions: coefficients, their bounds, and the router from rows to centers.
#ifndef APPROXSVM_ARTIFACT_EXPANSIONS_SECTION_HPP
#define APPROXSVM_ARTIFACT_EXPANSIONS_SECTION_HPP

#include "../expansion/decision_function.hpp"
#include "../expansion/sparse.hpp"
#include "kind_rules.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Reads floats of a section within a limit; null if they are not wanted.
APPROXSVM_COLD inline Status read_floats(const SectionTable& sections, section::Id id, const ModelView& model,
                                         bool wanted, ClaimedSize n, float limit, const float*& floats,
                                         ArtifactFault* fault) {
    Check size(fault, id, Status::bad_section), numbers(fault, id, Status::bad_coefficient);
    if (!has_size(size, sections[id], model, wanted, 4 * n)) return size.status();
    if (!wanted) return Status::ok;
    floats = reinterpret_cast<const float*>(sections.at(id));
    const std::size_t n_floats = static_cast<std::size_t>(n);
    limit == largest_float ? numbers.finite(field::any_number, floats, n_floats)
                           : numbers.within(field::any_number, floats, n_floats, limit);
    return numbers.status();
}

// Every list starts after the previous one and has at least one panel; every slot names a center.
APPROXSVM_COLD inline Status read_router(const SectionTable& sections, ModelView& model, ArtifactFault* fault) {
    const bool wanted = model.n_centers > 1;
    const Section& section = sections[section::router];
    Check check(fault, section::router, Status::bad_section), points(fault, section::router, Status::bad_coefficient);
    if (!is_where_wanted(check, section, model, wanted) || !wanted) return check.status();
    if (!check(field::any_size, section.bytes, at_least(sizeof(RouterHeader)))) return check.status();
    const unsigned char* p = sections.at(section::router);
    const RouterHeader header = read_at<RouterHeader>(p, 0);
    const std::size_t n_groups = header.n_groups, n_panels = header.n_panels;
    const std::size_t most = router_width * max_group_panels;
    if (!check(field::router_n_groups, n_groups, from_to(1, model.n_centers < most ? model.n_centers : most)))
        return check.status();
    // No size overflows, because there are less than 2^12 groups, 2^32 panels and 2^21 features.
    const ClaimedSize n_numbers = 2 + ClaimedSize{n_groups} + 1 + ClaimedSize{router_width} * n_panels,
                      head = (4 * n_numbers + section_alignment - 1) / section_alignment * section_alignment,
                      n_all_panels = router_panels(n_groups) + ClaimedSize{n_panels},
                      panel_bytes = 4 * router_panel_floats(model.n_features);
    if (!check(field::any_size, section.bytes, equal_to(head + n_all_panels * panel_bytes))) return check.status();
    const std::uint32_t* starts = reinterpret_cast<const std::uint32_t*>(p + sizeof(RouterHeader));
    const std::uint32_t* members = starts + n_groups + 1;
    check(field::router_start, starts[0], equal_to(0), 0);
    check(field::router_start, starts[n_groups], equal_to(n_panels), n_groups);
    for (std::size_t g = 0; g < n_groups; ++g) {
        const std::uint64_t start = starts[g];
        if (!check(field::router_start, starts[g + 1], from_to(start + 1, start + max_group_panels), g + 1))
            return check.status();
    }
    const bool named =
        check.each(field::router_member, members, router_width * n_panels, from_to(0, model.n_centers - 1));
    if (!named || !check.zeros(p, static_cast<std::size_t>(4 * n_numbers), static_cast<std::size_t>(head)))
        return check.status();
    const float* panels = reinterpret_cast<const float*>(p + head);
    const std::size_t panel_floats = router_panel_floats(model.n_features);
    points.finite(field::any_number, panels, static_cast<std::size_t>(n_all_panels) * panel_floats);
    model.router = {n_groups, starts, members, panels, panels + router_panels(n_groups) * panel_floats};
    return points.status();
}

// Varying columns ascend, and are fewer than the features. With one center, a row may differ from it in the other
// features; only certified models can answer such rows.
APPROXSVM_COLD inline Status read_varying(const SectionTable& sections, ModelView& model, ArtifactFault* fault) {
    model.n_varying = model.n_features;
    const Section& section = sections[section::varying];
    if (section.offset == 0) return Status::ok;
    const bool may_be = model.mode == Mode::certified && model.n_centers > 1;
    const std::size_t n = section.bytes / 4;
    Check check(fault, section::varying, Status::bad_section);
    is_where_wanted(check, section, model, may_be);
    check(field::any_size, section.bytes, Expected{Rule::multiple_of, stored(4), {}});
    if (!check(field::any_size, section.bytes, from_to(4, 4 * (model.n_features - 1)))) return check.status();
    model.n_varying = n;
    model.varying = reinterpret_cast<const std::uint32_t*>(sections.at(section::varying));
    for (std::size_t k = 0; k < n; ++k) {
        const std::uint64_t least = k > 0 ? std::uint64_t{model.varying[k - 1]} + 1 : 0;
        check(field::any_number, model.varying[k], from_to(least, model.n_features - 1), k);
    }
    return check.status();
}

static_assert(contractions[0] == 1.0 && contractions[n_contractions - 1] == min_contraction && n_contractions == 4,
              "powers of two in between");

// Reads the coefficients of the expansions. The writer scales them so that coefficients of degree k do not exceed k! in
// modulus; with s bounded, no sum can then overflow.
APPROXSVM_COLD inline Status read_expansions(const SectionTable& sections, ModelView& model, ArtifactFault* fault) {
    const ClaimedSize d = model.n_features, n = model.n_centers, v = model.n_varying;
    // Sizes are checked one factor at a time, because a product of claimed sizes may overflow.
    const ClaimedSize limit = ClaimedSize{1} << 46, n_all = n * model.n_forms;
    Check sizes(fault, section::expansions, Status::bad_section);
    if (!has_size(sizes, sections[section::expansions], model, n > 0, n_all * sizeof(ExpansionNumbers)))
        return sizes.status();
    const ClaimedSize n_higher_of_each = n_higher_limited(v, model.degree, limit / (n_all + 1));
    Check size(fault, section::higher, Status::bad_section);
    if (n_higher_of_each * (n_all + 1) >= limit) {
        size.refuse(field::any_size, sections[section::higher].bytes, at_least(limit));
        return size.status();
    }
    const bool directed = sections[section::direction].offset != 0;
    const bool may_be_directed = model.mode == Mode::certified && model.degree == 2 && model.n_decisions == 1;
    const ClaimedSize n_triangles = n_all * triangle_size(v);
    const struct {
        section::Id id;
        bool wanted;
        ClaimedSize n;
        float limit;
        const float*& floats;
    } all[] = {
        {section::center, true, d, largest_float, model.center},
        {section::centers, n > 1, n * d, largest_float, model.centers},
        {section::linear, n > 0, n_all * v, max_linear, model.linear},
        {section::quadratic, model.degree >= 2, n_triangles, max_quadratic, model.quadratic},
        {section::higher, model.degree > 2, n_all * n_higher(v, model.degree), max_higher, model.higher},
        {section::direction, directed && may_be_directed, n_triangles, max_quadratic, model.direction},
    };
    for (const auto& part : all) {
        const Status status =
            read_floats(sections, part.id, model, part.wanted, part.n, part.limit, part.floats, fault);
        if (status != Status::ok) return status;
    }
    if (n == 1) model.centers = model.center;
    model.expansions = reinterpret_cast<const ExpansionNumbers*>(sections.bytes + sections[section::expansions].offset);
    Check numbers(fault, section::expansions, Status::bad_coefficient);
    for (std::size_t e = 0; e < n_all && numbers.status() == Status::ok; ++e)
        check_record(numbers, model.expansions[e], e);
    if (numbers.status() != Status::ok) return numbers.status();
    const Section& majorities = sections[section::majority_classes];
    Check check(fault, section::majority_classes, Status::bad_section);
    const bool has_majorities = n > 0 && has_classes(model);
    model.majority_classes = reinterpret_cast<const std::uint32_t*>(sections.bytes + majorities.offset);
    if (has_size(check, majorities, model, has_majorities, 4 * n) && has_majorities)
        check.each(field::any_number, model.majority_classes, static_cast<std::size_t>(n),
                   from_to(0, model.n_labels - 1));
    return check.status() == Status::ok ? read_router(sections, model, fault) : check.status();
}

// True if everything that an expansion needs is missing.
APPROXSVM_COLD inline Status read_no_expansions(const SectionTable& sections, ModelView& model, ArtifactFault* fault) {
    constexpr section::Id of_expansions[] = {section::center,           section::expansions, section::centers,
                                             section::linear,           section::quadratic,  section::higher,
                                             section::direction,        section::router,     section::check_rows,
                                             section::majority_classes, section::varying};
    for (const section::Id id : of_expansions) {
        Check check(fault, id, Status::bad_section);
        if (!is_where_wanted(check, sections[id], model, false)) return check.status();
    }
    model.n_varying = model.n_features;
    return Status::ok;
}

// Reads all expansions of a Gaussian kernel. In mode exact there are none, but still a center.
APPROXSVM_COLD inline Status read_gaussian(const SectionTable& sections, ModelView& model, ArtifactFault* fault) {
    const Status status = read_varying(sections, model, fault);
    return status == Status::ok ? read_expansions(sections, model, fault) : status;
}

constexpr KindRules gaussian_rules = {/* expands */ true,
                                      /* only_exact */ false,
                                      /* has_support_vectors */ true,
                                      /* max_degree */ max_degree,
                                      /* max_exact_degree */ 0,
                                      /* gamma */ finite_from_0,
                                      section::none};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

// The sections that a model must or may have, and their contents, from the tables in artifact/schema.inc.
#ifndef APPROXSVM_ARTIFACT_LAYOUTS_HPP
#define APPROXSVM_ARTIFACT_LAYOUTS_HPP

#include "../expansion/form.hpp"
#include "../expansion/polynomial.hpp"
#include "../expansion/router.hpp"
#include "kinds.hpp"
#include "walk.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// A model with more than two labels has one group of subspaces per label. Each group has one quadratic form for each of
// the other labels.
inline std::size_t n_subspace_forms(const ModelView& model) {
    return model.n_labels > 2 ? std::size_t{model.n_labels} - 1 : 1;
}
inline std::size_t n_subspace_groups(const ModelView& model) {
    return model.n_labels > 2 ? std::size_t{model.n_labels} : 1;
}

// The names that expressions in the tables may use, and the tables themselves as functions.
class Layouts {
  public:
    // Layouts for a model whose header and section "outputs" have been read.
    Layouts(const ModelView& model, bool has_subspaces, bool has_subspace_expansion)
        : single(model.mode != Mode::ensemble),
          approximate(model.mode == Mode::approximate),
          certified(model.mode == Mode::certified),
          exact(model.mode == Mode::exact),
          classifies(model.task == Task::classification),
          varies(model.gamma != 0.0),
          of_gaussian(single && is_gaussian(model)),
          of_products(single && is_of_products(model)),
          of_vectors(single && !approximate && rules_of(model).has_support_vectors),
          of_pairs(single && has_classes(model)),
          expanded(model.n_centers > 0),
          in_few_coordinates(has_subspaces),
          first_is_expansion(has_subspace_expansion),
          kernel(model.kernel),
          degree(model.degree),
          n_features(model.n_features),
          n_labels(model.n_labels),
          n_decisions(model.n_decisions),
          n_centers(model.n_centers),
          n_all_forms(n_centers * model.n_forms),
          n_coef_rows(of_pairs ? n_labels - 1 : n_decisions),
          n_own_forms(n_subspace_forms(model)),
          n_subspace_groups(approxsvm::n_subspace_groups(model)),
          n_varying(model.n_features) {}
    Layouts(const ModelView& model, const SectionTable& sections)
        : Layouts(model, sections.at(section::subspaces), sections.at(section::subspace_expansion)) {}
    // Layouts for a validated model.
    explicit Layouts(const ModelView& model)
        : Layouts(model, model.sections[section::subspaces], model.sections[section::subspace_expansion]) {}

    // Checks that all required sections are present, and that all sections present are allowed.
    APPROXSVM_COLD Status check_presence(const SectionTable& sections, const ModelView& model,
                                         ArtifactFault* fault) const {
        static_assert(max_sections < 64, "one bit for each section");
        std::uint64_t needed = 0, allowed = 0;
#define APPROXSVM_SECTION(name, identifier, needed_if, optional_if) \
    needed |= std::uint64_t{needed_if} << identifier;               \
    allowed |= std::uint64_t{(needed_if) || (optional_if)} << identifier;
#include "schema.inc"
        for (std::uint32_t id = 1; id < section::end; ++id) {
            Check check(fault, static_cast<section::Id>(id), Status::bad_section);
            const bool present = sections.entries[id].offset != 0, wanted = (present ? allowed : needed) >> id & 1;
            if (!is_where_wanted(check, sections.entries[id], model, wanted)) return check.status();
        }
        return Status::ok;
    }

    // Reads all sections that have a layout, in table order.
    template <Parts parts, class AnyWalk>
    APPROXSVM_COLD void read(AnyWalk& walk, ModelView& model) {
#define APPROXSVM_LAYOUT(tag, part, view)                                 \
    if constexpr ((parts & part) == part) {                               \
        if (walk.begin(section::tag)) read_##tag(walk, view), walk.end(); \
    }
#include "schema.inc"
    }

// The contents of each section or group.
#define APPROXSVM_LAYOUT(tag, part, view_of_section) \
    template <class AnyWalk, class View>             \
    void read_##tag(AnyWalk& walk, View& view) {
#define APPROXSVM_GROUP(tag, Group, Section) \
    template <class AnyWalk>                 \
    APPROXSVM_NOINLINE void read_##tag(AnyWalk& walk, Group& view, [[maybe_unused]] const Section& section) {
#define APPROXSVM_NUMBER(tag, type, name, words, rule)                 \
    view.name = walk.template number<type>(field::tag##_##name, rule); \
    [[maybe_unused]] const auto name = counted(view.name);
#define APPROXSVM_NUMBERS(tag, type, name, words, count, rule) \
    walk.template numbers<type>(field::tag##_##name, view.name, count, rule);
#define APPROXSVM_RECORDS(tag, Record, name, count) walk.template records<Record>(view.name, count);
#define APPROXSVM_MEASURE(tag, name, bytes, low, high) \
    view.name = walk.measure(bytes, low, high);        \
    name = view.name;
#define APPROXSVM_SUM(tag, name, words, array, first, n, rule) \
    view.name = walk.sum(field::tag##_##name, view.array, first, n, rule);
#define APPROXSVM_ZEROS(tag, multiple) walk.zeros(multiple);
#define APPROXSVM_GROUPS(tag, group, Group, name, count)                                            \
    for (std::size_t k = 0, n = walk.groups(view.name, count); k < n && walk.begin_group(k); ++k) { \
        Group one{};                                                                                \
        read_##group(walk, one, view);                                                              \
    }
#define APPROXSVM_END_LAYOUT }
#include "schema.inc"

    // Number of terms in the exact sum: support vectors, or terms in the section of another kernel.
    std::size_t n_exact_terms() const { return static_cast<std::size_t>((n_sv + n_terms).n()); }

  private:
    static Count counted(std::uint32_t n) { return n; }
    static double counted(double x) { return x; }
    static Count panels_of(Count n_points) { return (n_points + (router_width - 1)) / router_width; }
    Count n_panel_floats() const { return router_width * (1 + n_features); }
    Count n_triangle() const { return n_varying * (n_varying + 1) / 2; }
    Count n_higher() const {
        const bool is_large = n_higher_limited(n_varying.n(), degree, Count::most) == Count::most;
        return is_large ? Count::most : approxsvm::n_higher(n_varying.n(), degree);
    }
    // Stages that sum kernel values: all except a first stage that is an expansion.
    Count n_summed(Count n_stages) const { return n_stages - (first_is_expansion ? 1 : 0); }

    const bool single, approximate, certified, exact, classifies, varies;
    const bool of_gaussian, of_products, of_vectors, of_pairs, expanded, in_few_coordinates;
    const bool first_is_expansion;
    const KernelKind kernel;
    const int degree;
    const Count n_features, n_labels, n_decisions, n_centers, n_all_forms, n_coef_rows, n_own_forms, n_subspace_groups;
    // Counts derived from section sizes; each is known once its section has been read.
    Count n_varying, n_sv = 0, n_terms = 0, n_check_rows = 0, n_exact_check_rows = 0;
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

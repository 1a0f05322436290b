// An upper bound on the work for any single row's label: the sum of the maximum work of all stages. The unit of work is
// a multiply-add in inner products, quadratic forms and sums. An exp counts as work_of_exp units, and a float64
// operation as two. Loading and mapping a row and looking up its bounds are not counted.
#ifndef APPROXSVM_PREDICT_ROW_WORK_HPP
#define APPROXSVM_PREDICT_ROW_WORK_HPP

#include "prepare/layout.hpp"
#include "stages/winner_row.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

struct RowWork {
    double all_stages = 0.0;       // work of all stages up to the float64 engine
    double with_definition = 0.0;  // work including the definition, for rows undecided in float64, such as ties
};

// Returns the work for the parts of degrees `first` through `last` in n features.
inline double work_of_form(std::size_t n, int first, int last) {
    double work = 0.0;
    for (int k = first; k <= last; ++k) work += static_cast<double>(n_monomials(n, k));
    return work;
}

inline double work_of_routing(const ModelView& view) {
    if (view.n_centers < 2) return 0.0;
    std::size_t longest = 0;
    for (std::size_t g = 0; g < view.router.n_groups; ++g) {
        const std::size_t n = view.router.starts[g + 1] - view.router.starts[g];
        if (n > longest) longest = n;
    }
    return static_cast<double>((router_panels(view.router.n_groups) + longest) * router_width * view.n_features);
}

// Returns the work for all stages over a few coordinates, for the most expensive group.
APPROXSVM_COLD inline double work_of_subspaces(const ModelView& view) {
    const std::size_t n_stages = view.subspaces.n_stages, n_forms = n_subspace_forms(view);
    double work = 0.0;
    for (std::size_t k = 0; k < n_stages; ++k) {
        const std::size_t n_coordinates = view.subspaces.coordinates[k];
        work += static_cast<double>(lanes_for<float>(n_coordinates) * view.n_features);
        if (k < n_stages - n_summed_stages(view)) {
            const ModelView inner = subspace_expansion_of(view);
            work += work_of_form(inner.n_varying, 1, inner.degree);
            continue;
        }
        double most = 0.0;
        for_subspace_groups(view, [&](std::size_t, const SubspaceGroup& group) {
            std::size_t n_listed = listed_at_most(group.n_own) * n_forms;
            for (std::size_t f = 0; f < n_forms; ++f) n_listed += listed_at_most(group.counts[1 + f]);
            const std::size_t n_lanes = lanes_for<float>(group.n_own + group.n_others);
            most = std::fmax(most, work_of_kernels(n_lanes, n_coordinates) + static_cast<double>(n_listed));
        });
        work += most;
    }
    return work;
}

// Returns the work of a multiclass model in the stages up to float32, using the pairs of guessed winners
// (winner_row.hpp).
APPROXSVM_COLD inline double work_of_winner(const ModelView& view, std::size_t n_lanes) {
    const std::size_t n = view.n_labels, d = view.n_features;
    // Kernel values for all classes, and for lists: up to half of all support vectors, then the lists of one more
    // class, at most half.
    double work = n_attempts * work_of_subspaces(view) + 2.0 * work_of_kernels(n_lanes, d) + work_of_network(view);
    // Both parts of each pair for every class: once with one sum, and once with two.
    for (std::size_t w = 0; w < n; ++w) {
        const std::size_t own = listed_at_most(lanes_for<float>(view.class_counts[w]));
        work += static_cast<double>(3 * ((n - 1) * own + n_lanes + 2 * listed_at_most(0) * n));
    }
    return work;
}

APPROXSVM_COLD inline RowWork work_of_gaussian(const ModelView& view) {
    const std::size_t d = view.n_features, n = view.n_labels;
    const bool is_of_pairs = has_classes(view);
    const std::size_t n_forms = is_of_pairs ? n - 1 : std::size_t{view.n_decisions};
    double work = 0.0;
    if (view.n_centers > 0) {
        work = work_of_routing(view) + static_cast<double>(n_forms) * work_of_form(view.n_varying, 1, view.degree);
        if (view.direction) work += work_of_form(view.n_varying, 2, 2);
    }
    if (!has_engines(view)) return {work, work};
    const ClassSizes sizes = is_of_pairs ? sizes_of_classes(view) : sizes_of_functions(view);
    const std::size_t n_lanes = panel_width<float> * panels_for<float>(sizes);
    const std::size_t n_lanes64 = panel_width<double> * panels_for<double>(sizes);
    const std::size_t n_sums = is_of_pairs ? n : n_forms + 1;
    const double engine32 = work_of_kernels(n_lanes, d) + static_cast<double>(n_lanes * n_sums);
    const double engine64 = 2.0 * (work_of_kernels(n_lanes64, d) + static_cast<double>(n_lanes64 * n_sums));
    if (may_have_few_values(view)) work += engine32;  // the engine for few values, if used, is cheaper
    if (is_of_pairs && WinnerTiles(pair_coefficients(view)).is_usable) {
        work += std::fmax(engine32, work_of_winner(view, n_lanes));
        // The undecided pairs in float64 use at most the support vectors of all pairs.
        work += 2.0 * (work_of_kernels(n_lanes64, d) + static_cast<double>(n_lanes64 * 2 * (n - 1)));
    } else {
        work += work_of_subspaces(view) + engine32;
    }
    work += engine64;
    const double definition = 2.0 * (work_of_kernels(view.n_sv, d) + static_cast<double>(view.n_sv * 2 * n_forms));
    return {work, work + definition};
}

// Computes the work; returns false if it is unknown, as for non-Gaussian kernels.
APPROXSVM_COLD inline bool work_of_row(const ModelView& view, RowWork& work) {
    work = {};
    bool is_known = true;
    const auto add = [&](const ModelView& model) {
        is_known = is_known && is_gaussian(model);
        if (!is_known) return Status::ok;
        const RowWork of_model = work_of_gaussian(model);
        work.all_stages += of_model.all_stages;
        work.with_definition += of_model.with_definition;
        return Status::ok;
    };
    view.n_members == 0 ? add(view) : for_members(view, add);
    return is_known;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

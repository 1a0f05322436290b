// Kernel sums over a few coordinates. With an orthonormal basis P of a subspace, x~ = x - center and u = z - center,
// the kernel factors into a kernel in the coordinates P'u and a kernel in the residual u - P P'u:
//
// f(z) - intercept = exp(-gamma ||residual of u||^2) sum_i a'_i exp(-gamma ||P'x~_i - P'u||^2) + remainder
//
// where a'_i = a_i exp(-gamma ||residual of x~_i||^2). The exact engine's code computes the sum, with fewer features.
// The bound on the remainder is derived in approxsvm/expansion/subspace.py and computed by residual_bound
// (bounds/subspaces.hpp).
//
// Support vectors are stored in lists (rbf_winner.hpp). Each function has a list of the vectors in its class and a list
// of the others. In each list, all coefficients have the same sign, so a function's two sums also give its sum of
// absolute values.
#ifndef APPROXSVM_EXACT_RBF_SUBSPACE_HPP
#define APPROXSVM_EXACT_RBF_SUBSPACE_HPP

#include "../arena.hpp"
#include "../artifact/sections/subspaces.hpp"
#include "../bounds/certificate.hpp"
#include "rbf_row.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

static_assert(least_coefficient >= least_listed && most_coefficient <= most_listed, "lists of any artifact");

// --- layout

// The kernel sums of one class, or of the only function, in one stage. A stage that is an expansion uses only the
// fields that do not depend on support vectors.
struct SubspaceSums {
    KernelVectors<float> kernels;  // vectors whose features are the stage's coordinates
    const std::size_t* others_of;  // first tile in each function's list, (n_forms + 1,)
    std::size_t n_own;             // number of tiles in `own`
    ListOfVectors own, others;     // lists with n_forms sums in `own`, and one sum per list in `others`
    const ResidualNumbers* known;  // norms of each function's residual, (n_forms,)
    const float* basis;            // panels of basis vectors, laid out like support vectors
    double skew;
};

struct Subspaces {
    std::size_t n_stages = 0, n_forms = 0;
    const SubspaceSums* sums = nullptr;  // sums for each group and stage, (n_groups, n_stages)
    const float* residuals = nullptr;    // table of the residual's functions, (n_cells, n_residual_terms)
};

// Memory for the sums of one class in one stage.
struct SubspaceSumsMemory {
    std::size_t n_own_tiles, n_other_tiles = 0, n_lanes;
    std::size_t* others_of;
    ListMemory own, others;
    VectorMemory<float> vectors;

    SubspaceSumsMemory(const SubspaceGroup& group, std::size_t n_forms, std::size_t n_coordinates, Arena& arena)
        : n_own_tiles(tiles_for(group.n_own)),
          n_other_tiles(tiles_of_others(group, n_forms)),
          n_lanes(lanes_for<float>(group.n_own + group.n_others)),
          others_of(arena.take<std::size_t>(n_forms + 1)),
          own(n_own_tiles, n_forms, arena),
          others(n_other_tiles, 1, arena),
          vectors(n_lanes, n_coordinates, in_panels, arena) {}

  private:
    static std::size_t tiles_of_others(const SubspaceGroup& group, std::size_t n_forms) {
        std::size_t n = 0;
        for (std::size_t f = 0; f < n_forms; ++f) n += tiles_for(group.counts[1 + f]);
        return n;
    }
};

// The functions of a row's residual that occur in its bound: phi_1, phi_2, phi_3, the square root of the Poisson tail
// from degree 4 on, and the distance of two points in the kernel's feature space.
constexpr std::size_t n_residual_terms = 8;  // three terms are unused
constexpr std::size_t residual_cap = 4;

struct SubspacesMemory {
    SubspaceSums* sums;
    float* residuals;
    double* vector;  // one support vector, (n_coordinates,)
    unsigned char* rest;

    SubspacesMemory(const ModelView& model, Arena& arena) {
        const std::size_t n_stages = model.subspaces.n_stages;
        sums = arena.take<SubspaceSums>(n_stages * n_subspace_groups(model));
        residuals = arena.take<float>(n_stages > 0 ? n_cells * n_residual_terms : 0);
        vector = arena.take<double>(model.subspaces.n_coordinates);
        Arena counter(nullptr);
        for_subspace_groups(model, [&](std::size_t, const SubspaceGroup& group) {
            take_basis(model, counter);
            for (std::size_t k = n_stages - n_summed_stages(model); k < n_stages; ++k) {
                SubspaceSumsMemory(group, n_subspace_forms(model), model.subspaces.coordinates[k], counter);
            }
        });
        rest = arena.take<unsigned char>(counter.bytes_anywhere());
    }

    static float* take_basis(const ModelView& model, Arena& arena) {
        const std::size_t n_panels = panels_for<float>(model.subspaces.n_coordinates);
        return arena.take<float>(n_panels * panel_width<float>, model.n_features);
    }
};

APPROXSVM_COLD inline const float* fill_basis_panels(const ModelView& model, const SubspaceGroup& group,
                                                     float* panels) {
    constexpr std::size_t width = panel_width<float>;
    const std::size_t n = model.subspaces.n_coordinates, d = model.n_features;
    const std::size_t n_lanes = lanes_for<float>(n);
    for (std::size_t lane = 0; lane < n_lanes; ++lane) {
        float* const in_panel = panels + lane / width * width * d + lane % width;
        for (std::size_t j = 0; j < d; ++j) in_panel[j * width] = lane < n ? group.basis[lane * d + j] : 0.0f;
    }
    return panels;
}

// Fills the sums of one class in one stage; `coef` points to the stage's coefficients.
APPROXSVM_COLD inline SubspaceSums fill_subspace_sums(const ModelView& model, const SubspaceGroup& group,
                                                      std::size_t n_coordinates, const float* coef,
                                                      const SubspaceSumsMemory& memory, double* vector) {
    const std::size_t n_forms = n_subspace_forms(model), n_vectors = group.n_own + group.n_others;
    const double half_theta = model.gamma / model.input_scale / model.input_scale;
    VectorWriter<float> writer(memory.vectors, memory.n_lanes, n_coordinates, half_theta);
    for (std::size_t i = 0; i < n_vectors; ++i) {
        const float* const stored = group.vectors + i * model.subspaces.n_coordinates;
        for (std::size_t j = 0; j < n_coordinates; ++j) vector[j] = static_cast<double>(stored[j]);
        writer.set(i, {vector, nullptr, n_coordinates});
    }
    for (std::size_t i = n_vectors; i < memory.n_lanes; ++i) writer.set_zeros(i);
    SubspaceSums sums{};
    sums.kernels.n_sv = n_vectors;
    sums.kernels.n_features = n_coordinates;
    sums.kernels.n_panels = panels_for<float>(n_vectors);
    sums.kernels.theta = static_cast<float>(2.0 * half_theta);
    sums.kernels.half_theta = static_cast<float>(half_theta);
    writer.describe(sums.kernels);
    ListWriter own(sums.kernels, memory.own, n_forms), others(sums.kernels, memory.others, 1);
    for (std::size_t i = 0; i < group.n_own; ++i) {
        own.add(i, [&](std::size_t f) { return static_cast<double>(coef[f * group.n_own + i]); });
    }
    own.end_list();
    const float* next = coef + n_forms * group.n_own;
    std::size_t lane = group.n_own;
    for (std::size_t f = 0; f < n_forms; ++f) {
        memory.others_of[f] = others.n_tiles();
        for (std::uint32_t k = 0; k < group.counts[1 + f]; ++k, ++lane, ++next) {
            others.add(lane, [next](std::size_t) { return static_cast<double>(*next); });
        }
        others.end_list();
    }
    memory.others_of[n_forms] = others.n_tiles();
    sums.others_of = memory.others_of;
    sums.n_own = memory.n_own_tiles;
    sums.own = own.list();
    sums.others = others.list();
    return sums;
}

// Fills a table row, which is valid for all s in a cell; the last cell is unbounded.
APPROXSVM_COLD inline void fill_residual_cell(std::size_t cell, float* row) {
    const bool open = cell + 1 == n_cells;
    const double low = cell_begin(cell), high = open ? infinity : cell_begin(cell + 1);
    for (std::size_t t = 0; t < n_residual_terms; ++t) row[t] = 0.0f;
    if (open) {
        for (std::size_t t = 0; t < residual_cap; ++t) row[t] = 1.0f;
        row[residual_cap] = rounded_up(std::sqrt(2.0));
        return;
    }
    const MaxPhis phis(low, high);
    for (std::size_t t = 0; t < 3; ++t) row[t] = rounded_up(phis[static_cast<int>(t) + 1]);
    row[3] = rounded_up(std::sqrt(poisson_tail(4, high)));
    row[residual_cap] = rounded_up(std::sqrt(-2.0 * std::expm1(-0.5 * high)));
}

APPROXSVM_COLD inline Subspaces fill_subspaces(const ModelView& model, const SubspacesMemory& memory) {
    const std::size_t n_stages = model.subspaces.n_stages, n_forms = n_subspace_forms(model);
    if (n_stages == 0) return {};
    const std::size_t first_summed = n_stages - n_summed_stages(model);
    Arena arena(memory.rest);
    for_subspace_groups(model, [&](std::size_t g, const SubspaceGroup& group) {
        const float* const basis = fill_basis_panels(model, group, SubspacesMemory::take_basis(model, arena));
        for (std::size_t k = 0; k < n_stages; ++k) {
            const std::size_t n_coordinates = model.subspaces.coordinates[k];
            SubspaceSums& sums = memory.sums[g * n_stages + k];
            if (k < first_summed) {
                sums = SubspaceSums{};
                sums.kernels.n_features = n_coordinates;
            } else {
                const std::size_t n_coef = n_forms * group.n_own + group.n_others;
                const SubspaceSumsMemory pieces(group, n_forms, n_coordinates, arena);
                sums = fill_subspace_sums(model, group, n_coordinates, group.coef + (k - first_summed) * n_coef, pieces,
                                          memory.vector);
            }
            sums.known = group.known + k * n_forms;
            sums.basis = basis;
            sums.skew = group.skew;
        }
    });
    for (std::size_t cell = 0; cell < n_cells; ++cell) {
        fill_residual_cell(cell, memory.residuals + cell * n_residual_terms);
    }
    return {n_stages, n_forms, memory.sums, memory.residuals};
}

// --- sums

// Computes the sums for rows over a few coordinates: own[f * stride ..] and others[f * stride ..] are the sums of
// function f. `partial` must hold n_forms * stride floats.
template <int Registers>
inline void subspace_sums_block(const SubspaceSums& sums, std::size_t n_forms, const float* coordinates,
                                const float* half_sq_norm, float* partial, double* own, double* others) {
    constexpr std::size_t stride = Registers * static_cast<std::size_t>(lanes);
    listed_sums<Registers>(sums.kernels, sums.own, n_forms, 0, sums.n_own, coordinates, half_sq_norm, partial, own);
    for (std::size_t f = 0; f < n_forms; ++f) {
        listed_sums<Registers>(sums.kernels, sums.others, 1, sums.others_of[f], sums.others_of[f + 1], coordinates,
                               half_sq_norm, partial, others + f * stride);
    }
}

// Calls visit(first panel, end) for the panels of the class's own support vectors, and for the panels of the other
// support vectors in the functions f with is_wanted(f). Each panel is visited once.
template <class IsWanted, class Visit>
inline void for_wanted_panels(const SubspaceSums& sums, std::size_t n_forms, const IsWanted& is_wanted,
                              const Visit& visit) {
    constexpr std::size_t width = panel_width<float>;
    const auto panel_at = [](const ListOfVectors& list, std::size_t entry) { return list.lanes[entry] / width; };
    std::size_t first = 0, end = sums.n_own > 0 ? panel_at(sums.own, sums.n_own * tile_rows - 1) + 1 : 0;
    for (std::size_t f = 0; f < n_forms; ++f) {
        if (!is_wanted(f) || sums.others_of[f] == sums.others_of[f + 1]) continue;
        const std::size_t next = panel_at(sums.others, sums.others_of[f] * tile_rows);
        if (next > end) {
            visit(first, end);
            first = next;
        }
        end = panel_at(sums.others, sums.others_of[f + 1] * tile_rows - 1) + 1;
    }
    visit(first, end);
}

// Computes a single row's sums, for the functions f with is_wanted(f), from the kernel values in the visited panels.
template <class IsWanted>
inline void subspace_sums_row(const SubspaceSums& sums, std::size_t n_forms, const IsWanted& is_wanted,
                              const float* values, double* room, double* own, double* others) {
    listed_sums_row(sums.own, n_forms, 0, sums.n_own, values, room, own);
    for (std::size_t f = 0; f < n_forms; ++f) {
        if (!is_wanted(f)) continue;
        listed_sums_row(sums.others, 1, sums.others_of[f], sums.others_of[f + 1], values, room, others + f);
    }
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

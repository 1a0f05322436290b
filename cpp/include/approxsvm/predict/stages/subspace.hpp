// Evaluates rows by kernel sums over a few coordinates (rbf_subspace.hpp), and bounds the difference between these sums
// and the model's functions. Stages with fewer coordinates come first; each evaluates a full block at a time.
#ifndef APPROXSVM_PREDICT_STAGES_SUBSPACE_HPP
#define APPROXSVM_PREDICT_STAGES_SUBSPACE_HPP

#include "../../bounds/subspaces.hpp"
#include "engine.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// --- sums

// Projects n rows onto the coordinates of one stage, and stores these in room.coordinates. The rows are in the block's
// lanes, with the center subtracted. Also computes the part of the bounds that depends only on the row, and gamma times
// the squared norm of the coordinates.
template <int Registers>
inline void project_rows(const Job& job, const SubspaceSums& sums, const std::size_t* rows, std::size_t n, float* block,
                         const SubspaceRoom& room, ResidualOfRow* residuals, float* half_s_in) {
    constexpr std::size_t stride = Registers * static_cast<std::size_t>(lanes);
    const ModelView& view = job.view;
    const std::size_t d = view.n_features, k = sums.kernels.n_features;
    double unseen[stride] = {};
    float half_s[stride];
    job.source.load_block(Registers, rows, n, view.center, view.input_scale, block, unseen);
    half_sq_norms_block<Registers>(view.half_theta, d, block, half_s);
    products_block<Registers>(sums.basis, d, k, block, room.coordinates);
    half_sq_norms_block<Registers>(view.half_theta, k, room.coordinates, half_s_in);
    for (std::size_t r = 0; r < stride; ++r) {
        const double whole = static_cast<double>(half_s[r]) + view.gamma * unseen[r];
        residuals[r] =
            residual_of_row(sums, job.prepared.subspaces.residuals, d, whole, static_cast<double>(half_s_in[r]));
    }
}

// Computes the sums for n rows in one stage, for the functions of one class or the only function; the results are side
// by side in room.own and room.others. Also computes the part of the bounds that depends only on the row, and the
// errors of each row's sums.
template <int Registers>
inline void subspace_sums(const Job& job, std::size_t group, std::size_t stage, const std::size_t* rows, std::size_t n,
                          float* block, const SubspaceRoom& room, ResidualOfRow* residuals, ListedErrors* listed) {
    constexpr std::size_t stride = Registers * static_cast<std::size_t>(lanes);
    const Subspaces& subspaces = job.prepared.subspaces;
    const SubspaceSums& sums = subspaces.sums[group * subspaces.n_stages + stage];
    float half_s_in[stride];
    project_rows<Registers>(job, sums, rows, n, block, room, residuals, half_s_in);
    subspace_sums_block<Registers>(sums, subspaces.n_forms, room.coordinates, half_s_in, room.partial, room.own,
                                   room.others);
    for (std::size_t r = 0; r < stride; ++r) {
        listed[r] = listed_errors(sums.kernels, static_cast<double>(half_s_in[r]));
    }
}

// Evaluates the expansion in the first stage's coordinates for n rows: computes values and bounds on their errors.
template <int Registers>
inline void expand_in_subspace(const PreparedModel& prepared, std::size_t n, const SubspaceRoom& room, double* values,
                               double* errors) {
    const PreparedModel& inner = *prepared.subspace_expansion;
    const ModelView& view = *inner.view;
    const Expansion expansion = expansion_of(view, 0);
    Value found[rows_in<Registers>];
    evaluate_expansion<Registers>(view, expansion, inner.zeros, view.degree, room.coordinates, n, found);
    const double* const bounds = inner.bounds + (n_bases(view) - 1) * n_cells;
    for (std::size_t r = 0; r < n; ++r) {
        values[r] = decision_value(expansion, found[r]);
        errors[r] = bounds[cell_of(found[r].half_s)];
    }
}

// --- one row

// Loads a row relative to the center into `u`; returns gamma times the squared norm of u.
inline double load_about_center(const Job& job, std::size_t i, float* u) {
    const ModelView& view = job.view;
    const double unseen = job.source.load_one(i, view.center, view.input_scale, u);
    return static_cast<double>(view.half_theta) * sq_norm(u, view.n_features) + view.gamma * unseen;
}

// Projects the row u, as project_rows() does for several rows, given half_s = gamma ||z - center||^2; returns gamma
// times the squared norm of the coordinates. The first n_known coordinates are already in `room`, from the previous
// stage.
inline float project_row(const PreparedModel& prepared, const SubspaceSums& sums, const float* u, double half_s,
                         std::size_t n_known, const SubspaceRoom& room, ResidualOfRow& residual) {
    const ModelView& view = *prepared.view;
    const std::size_t d = view.n_features, k = sums.kernels.n_features, first = n_known / panel_width<float>;
    products_row(sums.basis + first * panel_width<float> * d, d, panels_for<float>(k) - first, u,
                 room.coordinates + first * panel_width<float>);
    const float half_s_in = static_cast<float>(static_cast<double>(view.half_theta) * sq_norm(room.coordinates, k));
    residual = residual_of_row(sums, prepared.subspaces.residuals, d, half_s, static_cast<double>(half_s_in));
    return half_s_in;
}

// Computes one row's sums, as subspace_sums() does for several rows, for the functions f with is_wanted(f); returns the
// sums' errors.
template <class IsWanted>
inline ListedErrors subspace_sums_of_row(const PreparedModel& prepared, std::size_t group, std::size_t stage,
                                         const float* u, double half_s, std::size_t n_known, const IsWanted& is_wanted,
                                         const SubspaceRoom& room, ResidualOfRow& residual) {
    const Subspaces& subspaces = prepared.subspaces;
    const SubspaceSums& sums = subspaces.sums[group * subspaces.n_stages + stage];
    const float half_s_in = project_row(prepared, sums, u, half_s, n_known, room, residual);
    for_wanted_panels(sums, subspaces.n_forms, is_wanted, [&](std::size_t first, std::size_t end) {
        kernels_row(sums.kernels, first, end, room.coordinates, half_s_in, room.values);
    });
    subspace_sums_row(sums, subspaces.n_forms, is_wanted, room.values, room.lists, room.own, room.others);
    return listed_errors(sums.kernels, static_cast<double>(half_s_in));
}

// --- one decision function

// Evaluates rows in the stages for a single function. For each row and stage, calls next.settles_in_subspace(row, value
// without the intercept, bound), which returns whether the value suffices; calls next.leave_subspaces(row) for rows
// that remain undecided.
template <Parts parts, class Next>
class SubspaceStage {
  public:
    SubspaceStage(const Job& job, Next& next)
        : job_(job),
          prepared_(job.prepared),
          next_(next),
          block_(job.memory.later_block),
          room_(job.memory.subspaces) {}

    bool is_there() const { return prepared_.subspaces.n_stages > 0; }

    // Adds row i. Waiting rows are evaluated as soon as they fill a block.
    void send(std::size_t i) {
        if (job_.batch.engines_alone) return answer_alone(0, i);
        queue(0, i);
    }
    void finish() {
        for (std::size_t stage = 0; stage < prepared_.subspaces.n_stages; ++stage) take(stage);
    }

  private:
    // A value without the intercept, and the terms that bound its difference from the function on the subspace.
    struct Found {
        ResidualOfRow residual;
        double value, modulus, error;
    };
    bool is_expanded(std::size_t stage) const { return stage == 0 && prepared_.subspace_expansion; }
    // Returns the value computed from the sums of row r, stored in `room`.
    Found found_sum(std::size_t r, const ResidualOfRow& residual, const ListedErrors& listed) const {
        const double own = room_.own[r], other = room_.others[r], modulus = std::fabs(own) + std::fabs(other);
        return {residual, own + other, modulus,
                listed.of_moduli * modulus + listed.of_all_moduli * job_.view.decisions[0].sum_moduli};
    }
    bool settles(std::size_t stage, std::size_t i, const Found& found) {
        const double bound =
            residual_bound(found.residual, *prepared_.subspaces.sums[stage].known, found.modulus, found.error);
        return next_.settles_in_subspace(i, found.residual.gaussian * found.value, bound);
    }

    // Evaluates the single row i, starting at a given stage.
    void answer_alone(std::size_t stage, std::size_t i) {
        const double half_s = load_about_center(job_, i, block_);
        std::size_t n_known = 0;
        for (; stage < prepared_.subspaces.n_stages; ++stage) {
            Found found;
            if (is_expanded(stage)) {
                project_row(prepared_, *prepared_.subspaces.sums, block_, half_s, 0, room_, found.residual);
                expand_in_subspace<0>(prepared_, 1, room_, &found.value, &found.error);
                found.modulus = std::fabs(found.value);
            } else {
                ResidualOfRow residual;
                const ListedErrors listed = subspace_sums_of_row(
                    prepared_, 0, stage, block_, half_s, n_known, [](std::size_t) { return true; }, room_, residual);
                found = found_sum(0, residual, listed);
            }
            if (settles(stage, i, found)) return;
            n_known = prepared_.subspaces.sums[stage].kernels.n_features;
        }
        next_.leave_subspaces(i);
    }

    void queue(std::size_t stage, std::size_t i) {
        waiting_[stage][n_waiting_[stage]++] = i;
        if (n_waiting_[stage] == block_rows) take(stage);
    }

    void take(std::size_t stage) {
        const std::size_t n = n_waiting_[stage], *const rows = waiting_[stage];
        n_waiting_[stage] = 0;
        if (n == 0) return;
        if (job_.batch.alone_in_engine(n)) {
            for (std::size_t r = 0; r < n; ++r) answer_alone(stage, rows[r]);
            return;
        }
        Found found[block_rows];
        with_registers_for<has(parts, batches)>(
            n, lanes, [&](auto registers) { evaluate<registers.value>(stage, rows, n, found); });
        const bool is_last = stage + 1 == prepared_.subspaces.n_stages;
        for (std::size_t r = 0; r < n; ++r) {
            if (settles(stage, rows[r], found[r])) continue;
            if (is_last)
                next_.leave_subspaces(rows[r]);
            else
                queue(stage + 1, rows[r]);
        }
    }

    template <int Registers>
    void evaluate(std::size_t stage, const std::size_t* rows, std::size_t n, Found* found) {
        ResidualOfRow residuals[block_rows];
        if (is_expanded(stage)) {
            double values[block_rows], errors[block_rows];
            float half_s_in[block_rows];
            project_rows<Registers>(job_, *prepared_.subspaces.sums, rows, n, block_, room_, residuals, half_s_in);
            expand_in_subspace<Registers>(prepared_, n, room_, values, errors);
            for (std::size_t r = 0; r < n; ++r) found[r] = {residuals[r], values[r], std::fabs(values[r]), errors[r]};
            return;
        }
        ListedErrors listed[block_rows];
        subspace_sums<Registers>(job_, 0, stage, rows, n, block_, room_, residuals, listed);
        for (std::size_t r = 0; r < n; ++r) found[r] = found_sum(r, residuals[r], listed[r]);
    }

    const Job& job_;
    const PreparedModel& prepared_;
    Next& next_;
    float* const block_;
    const SubspaceRoom& room_;
    // The counts are in one cache line, because every call sets all of them to 0.
    std::size_t n_waiting_[max_subspace_stages] = {}, waiting_[max_subspace_stages][block_rows];
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

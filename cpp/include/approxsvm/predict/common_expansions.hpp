// Values of several decision functions that are expanded around the same centers, with the numbers that the bound table
// gives for them: for a block of rows near a center, or for a single row. The cascade decides how to use them.
#ifndef APPROXSVM_PREDICT_COMMON_EXPANSIONS_HPP
#define APPROXSVM_PREDICT_COMMON_EXPANSIONS_HPP

#include "cascade.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

class CommonExpansions {
  public:
    explicit CommonExpansions(const Job& job)
        : job_(job),
          prepared_(job.prepared),
          view_(job.view),
          n_decisions_(view_.n_decisions),
          value_(job.memory.row_values),
          bound_(job.memory.row_bounds) {}

    void begin_center(std::size_t center) { center_ = center; }
    const float* center() const { return view_.centers + center_ * view_.n_features; }

  protected:
    // Values of the rows of a block, (n_decisions, block_rows).
    double* values_of(std::size_t k) const { return job_.memory.block_values + k * block_rows; }
    double* bounds_of(std::size_t k) const { return job_.memory.block_bounds + k * block_rows; }
    // Makes row r of the block the row that is decided.
    void choose_row(std::size_t r) {
        for (std::size_t k = 0; k < n_decisions_; ++k) {
            value_[k] = values_of(k)[r];
            bound_[k] = bounds_of(k)[r];
        }
    }

    double slack_of(std::size_t i, std::size_t k) const {
        return row_slack(view_.decisions[k], prepared_.slope, job_.row_error(i));
    }

    // The numbers that all functions share for the rows of a block: Gaussian factors (0 if float32 cannot hold them)
    // and the rows of the bound table, transposed.
    template <std::size_t Stride>
    struct BlockOfRows {
        double gaussian[Stride];
        float basis[n_bound_terms][Stride];
        float half_s[Stride], off_sq[Stride];
        double row_error[Stride];
        int degree = 0;  // of the rows of the table; 0 before anything is prepared
        bool finite = true;
    };

    // Evaluates function k up to a degree, 2 or the degree of the model, by form number `form` of the center, at n rows
    // in the lanes of `block`.
    template <int Registers, std::size_t Stride>
    void evaluate_in_block(std::size_t k, std::size_t form, const std::size_t* rows, std::size_t n, const float* block,
                           const OutsideNorms& outside, float* scratch, BlockOfRows<Stride>& common, int degree) {
        static_assert(Stride == Registers * static_cast<std::size_t>(lanes));
        float* sq_norm = scratch + block_rows;
        double inner[Stride];
        const Expansion expansion = expansion_of(view_, center_, form);
        evaluate_forms<Registers>(expansion, block, scratch, inner, sq_norm, degree);
        if (common.degree == 0) prepare_rows(sq_norm, outside, rows, n, common);
        if (common.degree != degree) prepare_basis(common, degree);
        note_values(expansion, k, weights_of(form), inner, common);
    }

    // The numbers that all functions share at one row. The Gaussian factor is 0 if float32 cannot hold it.
    struct RowAlone {
        bool finite = true, is_prepared = false;
        double gaussian = 0.0;
        float half_s = 0.0f;
    };

    void evaluate_at_row(std::size_t i, std::size_t k, std::size_t form, const float* u, const OutsideNorms& outside,
                         RowAlone& row, int last) {
        const Expansion expansion = expansion_of(view_, center_, form);
        float part, sq_norm;
        forms_row(view_, expansion, u, part, sq_norm);
        if (!row.is_prepared) row = row_alone(sq_norm, *outside.unseen);
        double inner = expansion.numbers->constant + static_cast<double>(part);
        for (int degree = 3; degree <= last; ++degree) {
            const float* coefficients = part_of_degree(expansion, view_.n_varying, degree);
            inner += static_cast<double>(part_row(coefficients, degree, prepared_.zeros, view_.n_varying, u));
        }
        const double gaussian = expansion.numbers->output_scale * row.gaussian;
        const DecisionNumbers& decision = view_.decisions[k];
        value_[k] = expansion.intercept + (gaussian > 0.0 ? gaussian * inner : 0.0);
        bound_[k] = bound_of(basis_row(row.half_s, last), weights_of(form)) + slack_of(i, k) +
                    slice_slack(view_, decision, *outside.off_sq);
    }

    const Job& job_;
    const PreparedModel& prepared_;
    const ModelView& view_;
    const std::size_t n_decisions_;
    double *const value_, *const bound_;  // for one row, (n_decisions,)
    std::size_t center_ = 0;

  private:
    // Evaluates the constant and the forms up to a degree, the degree of the bound table.
    template <int Registers>
    void evaluate_forms(const Expansion& expansion, const float* block, float* form, double* inner, float* sq_norm,
                        int degree) {
        constexpr std::size_t stride = Registers * static_cast<std::size_t>(lanes);
        if (expansion.quadratic) {
            quadratic_block<Registers>(expansion.quadratic, expansion.linear, view_.n_varying, block, form, sq_norm);
        } else {
            linear_block<Registers>(expansion.linear, view_.n_varying, block, form, sq_norm);
        }
        for (std::size_t r = 0; r < stride; ++r) inner[r] = expansion.numbers->constant + static_cast<double>(form[r]);
        for (int k = 3; k <= degree; ++k) {
            part_block<Registers>(part_of_degree(expansion, view_.n_varying, k), k, prepared_.zeros, view_.n_varying,
                                  block, form);
            for (std::size_t r = 0; r < stride; ++r) inner[r] += static_cast<double>(form[r]);
        }
    }

    const float* weights_of(std::size_t form) const {
        return prepared_.weights + (center_ * view_.n_forms + form) * n_bound_terms;
    }
    const float* basis_row(float half_s, int degree) const {
        const std::size_t basis = degree > 2 ? static_cast<std::size_t>(degree) - 2 : 0;
        return prepared_.basis + (basis * n_cells + cell_of(half_s)) * n_bound_terms;
    }

    template <std::size_t Stride>
    void prepare_rows(const float* sq_norm, const OutsideNorms& outside, const std::size_t* rows, std::size_t n,
                      BlockOfRows<Stride>& common) {
        float *const half_s = common.half_s, factor[Stride];
        for (std::size_t r = 0; r < Stride; ++r) {
            half_s[r] = view_.half_theta * sq_norm[r];
            if (r < n) common.finite &= half_s[r] <= largest_float;
            if (r < n && outside.unseen[r] > 0.0) half_s[r] += static_cast<float>(view_.gamma * outside.unseen[r]);
            common.off_sq[r] = r < n ? outside.off_sq[r] : 0.0f;
            common.row_error[r] = r < n ? job_.row_error(rows[r]) : 0.0;
        }
        for (std::size_t r = 0; r < Stride; r += lanes) {
            store(factor + r, exp_nonpositive(mul(load(half_s + r), set1(-1.0f))));
        }
        for (std::size_t r = 0; r < Stride; ++r) {
            common.gaussian[r] = half_s[r] <= -exp_min_argument ? static_cast<double>(factor[r]) : 0.0;
        }
    }
    template <std::size_t Stride>
    void prepare_basis(BlockOfRows<Stride>& common, int degree) const {
        for (std::size_t r = 0; r < Stride; ++r) {
            const float* row = basis_row(common.half_s[r], degree);
            for (std::size_t t = 0; t < n_bound_terms; ++t) common.basis[t][r] = row[t];
        }
        common.degree = degree;
    }

    // Computes the same as decision_value and bound_of, for many rows at a time.
    template <std::size_t Stride>
    void note_values(const Expansion& expansion, std::size_t k, const float* weights, const double* inner,
                     const BlockOfRows<Stride>& common) {
        float sum[Stride] = {};
        for (std::size_t t = 0; t < n_bound_terms; ++t) {
            for (std::size_t r = 0; r < Stride; ++r) sum[r] += weights[t] * common.basis[t][r];
        }
        double *values = values_of(k), *bounds = bounds_of(k);
        const double scale = expansion.numbers->output_scale;
        const DecisionNumbers& decision = view_.decisions[k];
        for (std::size_t r = 0; r < Stride; ++r) {
            const double gaussian = scale * common.gaussian[r];
            values[r] = expansion.intercept + (gaussian > 0.0 ? gaussian * inner[r] : 0.0);
            bounds[r] = finished_bound(sum[r]) + decision.value_error;
        }
        if (!view_.varying && !job_.request.row_errors) return;
        for (std::size_t r = 0; r < Stride; ++r) {
            bounds[r] = finished_bound(sum[r]) + row_slack(decision, prepared_.slope, common.row_error[r]) +
                        slice_slack(view_, decision, common.off_sq[r]);
        }
    }

    RowAlone row_alone(float sq_norm, double unseen) const {
        const float seen = view_.half_theta * sq_norm, half_s = seen + static_cast<float>(view_.gamma * unseen);
        float factor[lanes];
        store(factor, exp_nonpositive(set1(-half_s)));
        return {seen <= largest_float, true, half_s <= -exp_min_argument ? static_cast<double>(factor[0]) : 0.0,
                half_s};
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

// Values of several decision functions expanded around the same centers, with bounds from the bound table. The cascade
// determines how to use them.
#ifndef APPROXSVM_PREDICT_STAGES_COMMON_EXPANSIONS_HPP
#define APPROXSVM_PREDICT_STAGES_COMMON_EXPANSIONS_HPP

#include "centers.hpp"

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
    // Values for rows side by side, (n_decisions, stride_of); a single row is stored as the current row.
    template <int Registers>
    static constexpr std::size_t stride_of = Registers > 0 ? block_rows : 1;
    template <int Registers>
    double* values_of(std::size_t k) const {
        return Registers > 0 ? job_.memory.block_values + k * block_rows : value_ + k;
    }
    template <int Registers>
    double* bounds_of(std::size_t k) const {
        return Registers > 0 ? job_.memory.block_bounds + k * block_rows : bound_ + k;
    }
    // Makes row r the current row.
    template <int Registers>
    void choose_row(std::size_t r) {
        for (std::size_t k = 0; Registers > 0 && k < n_decisions_; ++k) {
            value_[k] = values_of<Registers>(k)[r];
            bound_[k] = bounds_of<Registers>(k)[r];
        }
    }

    // The coordinates of n rows side by side, and the values shared by all functions. A single row needs no transposed
    // rows of the bound table.
    template <int Registers>
    struct RowsAround {
        static constexpr std::size_t stride = rows_in<Registers>;

        const std::size_t* const rows;
        const std::size_t n;
        const float* const u;
        const OutsideNorms& outside;
        double gaussian[stride];
        float basis[n_bound_terms][stride];
        float half_s[stride];
        double row_error[stride];
        int degree = 0;  // degree of the prepared table rows; 0 if none are prepared
        bool finite = true;

        RowsAround(const std::size_t* r, std::size_t n_rows, const float* coordinates, const OutsideNorms& norms)
            : rows(r), n(n_rows), u(coordinates), outside(norms) {}
    };

    // Evaluates function k up to degree `degree` (2 or the model's degree), using form `form` of the center.
    template <int Registers>
    void evaluate_function(std::size_t k, std::size_t form, RowsAround<Registers>& rows, int degree) {
        float sq_norm[rows_in<Registers>];
        double inner[rows_in<Registers>];
        const Expansion expansion = expansion_of(view_, center_, form);
        sum_of_forms<Registers>(view_, expansion, prepared_.zeros, degree, rows.u, inner, sq_norm);
        if (rows.degree == 0) prepare_rows(sq_norm, rows);
        if (rows.degree != degree) prepare_basis(rows, degree);
        note_values(expansion, k, prepared_.weights + (center_ * view_.n_forms + form) * n_bound_terms, inner, rows);
    }

    const Job& job_;
    const PreparedModel& prepared_;
    const ModelView& view_;
    const std::size_t n_decisions_;
    double *const value_, *const bound_;  // values and bounds for one row, (n_decisions,)
    std::size_t center_ = 0;

  private:
    const float* basis_row(float half_s, int degree) const {
        const std::size_t basis = degree > 2 ? static_cast<std::size_t>(degree) - 2 : 0;
        return prepared_.basis + (basis * n_cells + cell_of(half_s)) * n_bound_terms;
    }

    template <int Registers>
    void prepare_rows(const float* sq_norm, RowsAround<Registers>& rows) {
        for (std::size_t r = 0; r < rows.stride; ++r) {
            const bool is_row = r < rows.n;
            rows.half_s[r] = view_.half_theta * sq_norm[r];
            if (is_row) rows.finite &= rows.half_s[r] <= largest_float;
            if (is_row && rows.outside.unseen[r] > 0.0)
                rows.half_s[r] += static_cast<float>(view_.gamma * rows.outside.unseen[r]);
            rows.row_error[r] = is_row ? job_.row_error(rows.rows[r]) : 0.0;
        }
        gaussian_factors<Registers>(rows.half_s, rows.gaussian);
    }
    template <int Registers>
    void prepare_basis(RowsAround<Registers>& rows, int degree) const {
        rows.degree = degree;
        for (std::size_t r = 0; Registers > 0 && r < rows.stride; ++r) {
            const float* row = basis_row(rows.half_s[r], degree);
            for (std::size_t t = 0; t < n_bound_terms; ++t) rows.basis[t][r] = row[t];
        }
    }

    // Computes the same bounds as bound_of(), for many rows at a time.
    template <int Registers>
    void note_values(const Expansion& expansion, std::size_t k, const float* weights, const double* inner,
                     const RowsAround<Registers>& rows) {
        double *values = values_of<Registers>(k), *bounds = bounds_of<Registers>(k);
        const DecisionNumbers& decision = view_.decisions[k];
        const double scale = expansion.numbers->output_scale;
        for (std::size_t r = 0; r < rows.stride; ++r) {
            values[r] = decision_value(expansion, scale * rows.gaussian[r], inner[r]);
        }
        if constexpr (Registers == 0) {
            *bounds = bound_of(basis_row(*rows.half_s, rows.degree), weights);
        } else {
            float sum[rows_in<Registers>] = {};
            for (std::size_t t = 0; t < n_bound_terms; ++t) {
                for (std::size_t r = 0; r < rows.stride; ++r) sum[r] += weights[t] * rows.basis[t][r];
            }
            for (std::size_t r = 0; r < rows.stride; ++r) bounds[r] = finished_bound(sum[r]);
        }
        const bool has_errors = job_.request.row_errors, has_slice = view_.varying;
        for (std::size_t r = 0; r < rows.stride; ++r) {
            bounds[r] += has_errors ? row_slack(decision, prepared_.slope, rows.row_error[r]) : decision.value_error;
        }
        for (std::size_t r = 0; has_slice && r < rows.n; ++r) {
            bounds[r] += slice_slack(view_, decision, rows.outside.off_sq[r]);
        }
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

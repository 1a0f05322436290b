// Evaluates rows with a kernel of inner products: by the quadratic form or the float64 engine and, if the label remains
// undecided, by the definition, term by term in LIBSVM's order. Such a label depends on rounding, so the source's
// rounding determines it.
//
// Values are exact except for rounding, whichever outputs are requested. The rounding error grows with the row's norm.
// A row is rejected if its value overflows float64 or is not certain to the requested tolerance. A row that misses the
// tolerance is nevertheless evaluated, with its bound, as are all other rows.
#ifndef APPROXSVM_PREDICT_KERNELS_POLYNOMIALS_HPP
#define APPROXSVM_PREDICT_KERNELS_POLYNOMIALS_HPP

#include "sums_of_terms.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Computes powers by repeated squaring, like LIBSVM's powi.
inline double libsvm_power(double base, int times) {
    double square = base, power = 1.0;
    for (; times > 0; times /= 2, square *= square) {
        if (times % 2 == 1) power *= square;
    }
    return power;
}

template <Parts parts>
class PolynomialEvaluator : Offer<double> {
  public:
    explicit PolynomialEvaluator(const Job& job)
        : job_(job),
          view_(job.view),
          kernel_(*static_cast<const PolynomialKernel*>(job.prepared.of_kind)),
          n_decisions_(view_.n_decisions),
          decisions_(job, infinity),
          block_values_(job.memory.block_values),
          value_(job.memory.row_values),
          bound_(job.memory.row_bounds),
          block_(reinterpret_cast<double*>(job.memory.first_block)),
          room_(reinterpret_cast<double*>(job.memory.later_block)),
          engine_(job, {kernel_.engine, {kernel_}, job.memory.engine64.products}, job.memory.engine64, *this) {}

    Status evaluate() {
        const bool by_rows = job_.batch.engines_alone || (view_.degree == 1 && n_decisions_ <= few_decisions);
        for (std::size_t i = 0; i < job_.source.n_rows() && status_ == Status::ok; ++i) {
            if (!view_.form) {
                status_ = job_.source.check(i);
                if (status_ == Status::ok) engine_.send(i);
                continue;
            }
            status_ = job_.source.check_order(i);
            if (status_ != Status::ok || (job_.source.is_sparse() && take_sparse(i))) continue;
            if (by_rows) {
                take_row(i);
            } else if (waiting_.add(i)) {
                settle_waiting();
            }
        }
        if (status_ == Status::ok) settle_waiting();
        if (status_ == Status::ok) engine_.finish();
        return status_ == Status::ok ? imprecise_ : status_;
    }

  private:
    // Maximum number of linear forms that fit in the L1 cache while rows are evaluated one by one. If there are more
    // forms, rows are evaluated one block at a time.
    static constexpr std::size_t few_decisions = 3;
    static constexpr std::size_t width = lanes64, max_waiting = max_registers * width;

    // --- the engine

    APPROXSVM_NOINLINE void take(std::size_t i, const RowSums<double>& row) override {
        if (status_ != Status::ok) return;
        if (has_classes(view_)) {
            for_each_pair(view_.n_labels, [&](std::size_t pair, std::size_t a, std::size_t b) {
                value_[pair] = pair_sum(row.sums, view_.n_labels, row.stride, a, b) + view_.decisions[pair].intercept;
            });
        } else {
            for (std::size_t k = 0; k < n_decisions_; ++k) {
                value_[k] = row.sums[k * row.stride] + view_.decisions[k].intercept;
            }
        }
        find_bounds(i, row.half_sq_norm, {static_cast<double>(kernel_.product_depth(row.n_terms)), 0.0});
        judge(i, by_float64);
    }

    // --- the quadratic form

    void settle_waiting() {
        const std::size_t n = waiting_.take();
        if (n == 0) return;
        if (job_.batch.alone_in_engine(n, width)) {
            for (std::size_t r = 0; r < n && status_ == Status::ok; ++r) take_row(waiting_.rows[r]);
            return;
        }
        with_registers_for<has(parts, batches)>(n, width,
                                                [&](auto registers) { this->template take_block<registers.value>(n); });
    }

    template <int Registers>
    void take_block(std::size_t n) {
        constexpr std::size_t stride = Registers * width;
        const std::size_t d = view_.n_features;
        for (std::size_t r = 0; r < n; ++r) job_.source.load(waiting_.rows[r], nullptr, 1.0, block_ + r, stride);
        for (std::size_t j = 0; j < d; ++j) {
            for (std::size_t r = n; r < stride; ++r) block_[j * stride + r] = 0.0;
        }
        double values[stride], sq_norms[stride];
        for (std::size_t k = 0; k < n_decisions_; ++k) {
            const PolynomialForm form = form_of(view_, k);
            if (form.triangle) {
                quadratic_block<Registers>(form.triangle, form.linear, d, block_, values, sq_norms);
            } else {
                linear_block<Registers>(form.linear, d, block_, values, sq_norms);
            }
            for (std::size_t r = 0; r < n; ++r) {
                block_values_[k * block_rows + r] = form.numbers[form_part::constant] + values[r];
            }
        }
        for (std::size_t r = 0; r < n && status_ == Status::ok; ++r) {
            for (std::size_t k = 0; k < n_decisions_; ++k) value_[k] = block_values_[k * block_rows + r];
            judge_form(waiting_.rows[r], sq_norms[r], block_ + r, d, stride);
        }
    }

    void take_row(std::size_t i) {
        const std::size_t d = view_.n_features;
        job_.source.load(i, nullptr, 1.0, block_, 1);
        for (std::size_t k = 0; k < n_decisions_; ++k) {
            const PolynomialForm form = form_of(view_, k);
            value_[k] = form.numbers[form_part::constant] + form_row(form, d, block_);
        }
        judge_form(i, inner_product(block_, block_, d), block_, d, 1);
    }

    // Evaluates a row by its nonzeros; returns false if it is cheaper to evaluate as a dense row.
    bool take_sparse(std::size_t i) {
        if constexpr (!has(parts, sparse)) return false;
        const std::size_t d = view_.n_features, limit = view_.degree == 1 ? d / 2 : d / 4;
        std::int32_t* columns = reinterpret_cast<std::int32_t*>(block_ + limit);
        double unseen;
        const std::size_t n = job_.source.load_nonzeros(i, nullptr, 1.0, limit, block_, columns, unseen);
        if (n > limit) return false;
        for (std::size_t k = 0; k < n_decisions_; ++k) {
            const PolynomialForm form = form_of(view_, k);
            value_[k] = form.numbers[form_part::constant] + form_sparse(form, d, block_, columns, n);
        }
        judge_form(i, sq_norm(block_, n), block_, n, 1);
        return true;
    }

    // Processes the values of the quadratic forms for row i, whose n feature values are passed in `numbers`.
    void judge_form(std::size_t i, double sq_norm, const double* numbers, std::size_t n, std::size_t stride) {
        if (!is_finite(sq_norm)) {  // overflow is possible, but NaN and infinity are rejected
            status_ = job_.source.check(i);
            if (status_ != Status::ok) return;
        }
        const double moved = job_.row_error(i), norm = norm_above(sq_norm, numbers, n, stride);
        for (std::size_t k = 0; k < n_decisions_; ++k) {
            const double bound =
                form_bound(form_of(view_, k), kernel_.form_norms[k], view_.n_features, norm + moved, moved);
            bound_[k] = 1.0001 * (bound + view_.decisions[k].value_error);
        }
        note_range(norm, moved);
        judge(i, by_expansion);
    }

    // Computes bounds for sums over all support vectors.
    void find_bounds(std::size_t i, double sq_norm, const ProductDepth& depth) {
        double norm = 0.0;
        if (sq_norm > 0x1p-900 && sq_norm < 0x1p1000) {
            norm = norm_above(sq_norm, nullptr, view_.n_features);
        } else {
            job_.source.load(i, nullptr, 1.0, room_, 1);
            norm = norm_above(sq_norm, room_, view_.n_features);
        }
        const double moved = job_.row_error(i);
        for (std::size_t k = 0; k < n_decisions_; ++k) {
            bound_[k] = polynomial_bound(view_, kernel_.moments, k, depth, norm + moved, moved);
        }
        note_range(norm, moved);
    }

    // Records whether the source computes a row without overflow. A row with an infinite error is never certain.
    void note_range(double norm, double moved) {
        is_in_range_ = norm + (moved < infinity ? moved : 0.0) <= kernel_.most_norm;
        for (std::size_t k = 0; !has_engines(view_) && k < n_decisions_; ++k) {
            is_in_range_ &= bound_[k] <= kernel_.most_bound || !(moved < infinity);
        }
    }

    // --- the definition

    // Performs LIBSVM's operations one by one. A linear kernel's gamma and coef0 have no effect.
    void define(std::size_t i) {
        const std::size_t d = view_.n_features;
        double *z = room_, *x = room_ + d;
        job_.source.load(i, nullptr, 1.0, z, 1);
        for (std::size_t k = 0; k < n_decisions_; ++k) value_[k] = 0.0;
        SupportVectorReader reader(view_);
        for_support_vectors(view_, [&](std::size_t c, std::size_t s) {
            double product = 0.0;
            if (has_sparse_products(view_)) {  // skipped zeros do not change the sum
                reader.next_stored([&](std::size_t j, double value) { product += value * z[j]; });
            } else {
                reader.next(x);
                for (std::size_t j = 0; j < d; ++j) product += x[j] * z[j];
            }
            const double base = view_.gamma * product + view_.coef0;
            const double kernel = view_.degree == 0 ? std::tanh(base) : libsvm_power(base, view_.degree);
            for_coefficients(view_, c, s, [&](std::size_t k, double a) { value_[k] += a * kernel; });
        });
        for (std::size_t k = 0; k < n_decisions_; ++k) value_[k] += view_.decisions[k].intercept;
        find_bounds(i, sq_norm(z, d), {static_cast<double>(d), std::fabs(view_.gamma)});
    }

    // --- results

    void judge(std::size_t i, Stage stage) {
        if (is_in_range_ && all_finite() && is_decided(i)) return settle(i, stage);
        if (is_in_range_ && has_engines(view_) && view_.task != Task::regression) {
            define(i);
            stage = by_definition;
        }
        if (is_in_range_ && all_finite() && is_of_finite_terms(i)) return settle(i, stage);
        status_ = Status::beyond_float64;
        if (job_.request.fault) *job_.request.fault = {i, infinity, largest_double};
    }

    bool all_finite() const {
        bool finite = true;
        for (std::size_t k = 0; k < n_decisions_; ++k) finite &= is_finite(value_[k]);
        return finite;
    }

    // Returns whether all terms in the source are finite; tanh of infinity is finite.
    bool is_of_finite_terms(std::size_t i) const {
        for (std::size_t k = 0; view_.degree == 0 && k < n_decisions_; ++k) {
            if (!is_within_float64(value_[k], bound_[k], job_.row_error(i))) return false;
        }
        return true;
    }

    bool is_decided(std::size_t i) {
        return view_.task == Task::regression || !has_engines(view_) ? is_of_finite_terms(i)
                                                                     : decisions_.suffice(value_, bound_);
    }

    void settle(std::size_t i, Stage stage) {
        for (std::size_t k = 0; k < n_decisions_; ++k) {
            if (!(bound_[k] < infinity)) bound_[k] = infinity;  // NaN also becomes infinity
            if (job_.has_promise() && bound_[k] > view_.tolerance && imprecise_ == Status::ok) {
                imprecise_ = Status::beyond_tolerance;
                if (job_.request.fault) *job_.request.fault = {i, bound_[k], view_.tolerance};
            }
        }
        decisions_.settle(i, value_, bound_, stage);
    }

    const Job& job_;
    const ModelView& view_;
    const PolynomialKernel& kernel_;
    const std::size_t n_decisions_;
    const Decisions<Shape::any> decisions_;
    double *const block_values_, *const value_, *const bound_;  // of a block, (n_decisions, block_rows), and of one row
    double *const block_, *const room_;                         // space for (n_features, max_waiting) doubles each
    bool is_in_range_ = true;                                   // true if the source computes this row without overflow
    Status status_ = Status::ok;                                // evaluation stops once this is not ok
    Status imprecise_ = Status::ok;                             // all rows are evaluated, but one must be rejected
    RowQueue<max_waiting> waiting_;
    EngineOf<parts, double, TermSums<PolynomialTerm, 0>> engine_;
};

template <>
struct EvaluatorOf<ProductKernels> {
    template <Parts parts>
    static Status evaluate(const Job& job) {
        return PolynomialEvaluator<parts>(job).evaluate();
    }
    // With these kernels, values grow with the row's norm, so the error is measured relative to this norm.
    static bool feels_error(const PreparedModel& prepared, double error, const double* row) {
        return !(error <= 0.1 * exact_share * norm_above(row, prepared.view->n_features));
    }
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

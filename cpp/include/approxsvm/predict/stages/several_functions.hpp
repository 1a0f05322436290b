// The cascade for models with several decision functions of the same support vectors, one per class or target. All
// functions are expanded around the same centers. Rows left undecided by the expansions' bounds are evaluated by the
// exact engines.
#ifndef APPROXSVM_PREDICT_STAGES_SEVERAL_FUNCTIONS_HPP
#define APPROXSVM_PREDICT_STAGES_SEVERAL_FUNCTIONS_HPP

#include "common_expansions.hpp"
#include "gaussian_sums.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

template <Parts parts>
class SeveralCascade : public CommonExpansions {
  public:
    static constexpr Parts list = parts;

    explicit SeveralCascade(const Job& job) : CommonExpansions(job), exact_(job) {}

    static constexpr bool expands() { return true; }

    // Evaluates n rows near the center.
    template <int Registers>
    Status take(const std::size_t* rows, std::size_t n, const float* u, const OutsideNorms& outside) {
        constexpr std::size_t stride = rows_in<Registers>;
        RowsAround<Registers> around(rows, n, u, outside);
        for (std::size_t k = 0; k < n_decisions_; ++k) evaluate_function(k, k, around, first_degree_);
        const Status status = around.finite ? Status::ok : job_.check(rows, n);
        if (status != Status::ok) return status;
        double least[stride];
        bool is_open[stride] = {};
        std::size_t n_open = 0;
        for (std::size_t r = 0; r < n; ++r) {
            choose_row<Registers>(r);
            if (settles(rows[r], first_degree_)) continue;
            is_open[r] = true;
            least[r] = least_of_winner();
            ++n_open;
        }
        if (n_open == 0) return Status::ok;
        for (std::size_t k = 0; k < n_decisions_ && first_degree_ < view_.degree; ++k) {
            double *values = values_of<Registers>(k), *bounds = bounds_of<Registers>(k), before[2][stride];
            bool wanted[stride] = {}, any = false;
            for (std::size_t r = 0; r < n; ++r) {
                wanted[r] = is_open[r] && counts(values[r], bounds[r], least[r]);
                any |= wanted[r];
                before[0][r] = values[r];
                before[1][r] = bounds[r];
            }
            if (!any) continue;
            evaluate_function(k, k, around, view_.degree);
            for (std::size_t r = 0; r < n; ++r) {
                if (wanted[r]) continue;
                values[r] = before[0][r];
                bounds[r] = before[1][r];
            }
        }
        for (std::size_t r = 0; r < n; ++r) {
            if (!is_open[r]) continue;
            if (first_degree_ < view_.degree) choose_row<Registers>(r);
            if (first_degree_ == view_.degree || !settles(rows[r], view_.degree)) send_to_float32(rows[r]);
        }
        return Status::ok;
    }

    void send_to_float32(std::size_t i) { exact_.send_to_float32(i); }
    void send_to_float64(std::size_t i) { exact_.send_to_float64(i); }
    Status finish() { return exact_.finish(); }

  private:
    bool settles(std::size_t i, int degree) {
        if (view_.mode != Mode::approximate && !exact_.decisions.suffice(value_, bound_)) return false;
        exact_.decisions.settle(i, value_, bound_, degree > 2 ? by_higher_degree : by_expansion);
        return true;
    }

    // Returns a lower bound on the largest value: a class whose value is certainly below it is not the row's label.
    double least_of_winner() const {
        if (view_.task == Task::regression) return infinity;
        const std::size_t winner = first_largest(n_decisions_, value_);
        return value_[winner] - bound_[winner];
    }
    // Returns whether higher degrees of a function's expansion may matter for a row; true if an argument is NaN.
    bool counts(double value, double bound, double least) const {
        return !(value + bound < least) || !(bound <= exact_.decisions.tolerance());
    }

    ExactCascade<GaussianTerms<parts, Shape::several>> exact_;
    // All degrees are evaluated at once if every value is needed. Labels by probabilities need every value, because a
    // bound on a single one never determines such a label. Otherwise, higher degrees are evaluated only for functions
    // that may have the largest value.
    const int first_degree_ =
        view_.degree > 2 && view_.mode != Mode::approximate&& view_.outputs.label_rule != LabelRule::probability
            ? 2
            : view_.degree;
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

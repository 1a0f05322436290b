// Determines whether a row's decision values, with bounds on their errors, suffice, and which label they imply. The
// rule depends on the model's shape.
//
// One function: the label is certain if the value differs by more than its bound from the value at which the label
// changes (usually 0). Several functions, one per class or target: the class with the largest value wins, and ties go
// to the first such class. The label is certain if this value exceeds every other by more than the sum of the two
// bounds. Pairs of classes vote (votes.hpp); if values are wanted, the sign of every pair must be certain. Values
// requested by a caller, and values of a regressor, need bounds within the model's tolerance.
#ifndef APPROXSVM_PREDICT_STAGES_DECISIONS_HPP
#define APPROXSVM_PREDICT_STAGES_DECISIONS_HPP

#include "../../outputs/outputs.hpp"
#include "../prepare/thread_memory.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

enum class Shape { one, several, pairs, any };

// Decisions for models of one shape: `fixed` is the shape of all models for which this code is compiled, or `any`.
template <Shape fixed>
class Decisions {
  public:
    explicit Decisions(const Job& job)
        : Decisions(job, (wants_values(job.out) && job.request.keeps_promise) || job.view.task == Task::regression
                             ? job.view.tolerance
                             : infinity) {}
    // Bounds above the tolerance do not suffice.
    Decisions(const Job& job, double tolerance)
        : view_(job.view),
          out_(job.out),
          counts_(job.counts),
          values_(job.memory.row_values),
          bounds_(job.memory.row_bounds),
          tally_(job.memory.tally),
          shape_(fixed != Shape::any     ? fixed
                 : has_classes(job.view) ? Shape::pairs
                 : has_several(job.view) ? Shape::several
                                         : Shape::one),
          wants_values_(wants_values(job.out)),
          is_regression_(view_.task == Task::regression),
          may_be_open_(is_regression_ && !job.request.by_sign),
          n_(view_.n_decisions),
          tolerance_(tolerance),
          label_change_(label_change(view_)) {}

    // The values for the current row, and their bounds. A single value stays in registers.
    struct InRegisters {
        double values[1], bounds[1];
    };
    struct InMemory {
        double *values, *bounds;
    };
    using Row = std::conditional_t<fixed == Shape::one, InRegisters, InMemory>;
    Row row() const {
        if constexpr (fixed == Shape::one)
            return {};
        else
            return {values_, bounds_};
    }
    std::size_t n() const { return fixed == Shape::one ? 1 : n_; }
    double tolerance() const { return tolerance_; }

    bool suffice(const Row& row) const { return suffice(row.values, row.bounds); }
    bool suffice(const double* values, const double* bounds) const {
        if (are(Shape::pairs) && !wants_values_) {
            std::size_t winner;
            return certain_vote(view_.n_labels, values, bounds, tally_, winner);
        }
        for (std::size_t k = 0; k < n(); ++k) {
            if (!(bounds[k] <= tolerance_)) return false;
        }
        if (may_be_open_) return true;
        if (are(Shape::several) && !is_regression_) return beats_all_others(n_, values, bounds);
        for (std::size_t k = 0; k < n(); ++k) {
            const bool is_certain = are(Shape::pairs) ? outcome_of(values[k], bounds[k]) != Outcome::unknown
                                                      : std::fabs(values[k] - label_change_) > bounds[k];
            if (!is_certain) return false;
        }
        return true;
    }

    void settle(std::size_t i, const Row& row, Stage stage) const { settle(i, row.values, row.bounds, stage); }
    void settle(std::size_t i, const double* values, const double* bounds, Stage stage) const {
        for (std::size_t k = 0; k < n(); ++k) {
            if (out_.values) out_.values[i * n() + k] = values[k];
            if (out_.bounds) out_.bounds[i * n() + k] = bounds[k];
        }
        settle_label(i, out_.labels ? label(values) : 0, stage);
    }
    // Records the label of row i, whose values are unknown.
    void settle_label(std::size_t i, std::size_t label, Stage stage) const {
        if (out_.labels) out_.labels[i] = static_cast<std::uint32_t>(label);
        if (out_.stages) out_.stages[i] = stage;
        ++counts_[stage];
    }

  private:
    bool are(Shape shape) const { return (fixed == Shape::any ? shape_ : fixed) == shape; }
    std::size_t label(const double* values) const {
        return are(Shape::one)     ? label_position(values[0])
               : are(Shape::pairs) ? vote_winner(view_.n_labels, values, tally_)
                                   : first_largest(n(), values);
    }

    const ModelView& view_;
    const Evaluation& out_;
    std::uint64_t* const counts_;
    double *const values_, *const bounds_;
    std::uint32_t* const tally_;
    const Shape shape_;
    const bool wants_values_, is_regression_, may_be_open_;  // `may_be_open_`: true if signs may remain undecided
    const std::size_t n_;
    const double tolerance_, label_change_;
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

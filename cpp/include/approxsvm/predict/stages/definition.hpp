// Evaluates a sum of RBF kernels by the definition: term by term in LIBSVM's order in float64, with a bound on the
// rounding error. The class Distances works for any kernel that depends on squared distances.
#ifndef APPROXSVM_PREDICT_STAGES_DEFINITION_HPP
#define APPROXSVM_PREDICT_STAGES_DEFINITION_HPP

#include "../../artifact/support_vectors.hpp"
#include "../../outputs/votes.hpp"
#include "../prepare/prepared_model.hpp"
#include "../rows/row_source.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Bounds the error of float64 sums computed from direct differences (docs/derivation.md, Prediction).
inline double definition_bound(const ModelView& model, const DecisionNumbers& decision, double moduli) {
    const double a1 = decision.sum_moduli, share = a1 > 0.0 ? moduli / a1 : 0.0;
    const double h = share > 0.3678794411714423 || !(share > 0.0) ? 0.3678794411714424 : -share * std::log(share);
    const double d = static_cast<double>(model.n_features), n = static_cast<double>(model.n_sv);
    return 1.01 * unit64 * ((d + 6.0) * a1 * h + (n + 6.0) * moduli) + 0x1p-51 * std::fabs(decision.intercept) +
           0x1p-1000 * a1 + 0x1p-1040;  // the effect of underflow, also in denormal coefficients
}

// Squared distances of a row from one support vector after another, from differences in feature order. If support
// vectors are stored relative to a reference, features in which neither the support vector nor the row differs from the
// reference are skipped, because they add zero.
class Distances {
  public:
    // The row is z, of shape (n_features,). It must be followed by space for n_features doubles or, if `packed` is
    // compressed, for n_features feature indices.
    Distances(const ModelView& model, double* z)
        : d_(model.n_features), packed_(model.packed), reader_(model), z_(z), x_(z + d_) {
        if (!packed_.compressed) return;
        differing_ = reinterpret_cast<std::uint32_t*>(x_);
        for (std::size_t j = 0; j < d_; ++j) {
            if (z_[j] != reference_value(packed_, j)) differing_[n_differing_++] = static_cast<std::uint32_t>(j);
        }
    }

    double next() {
        double sum = 0.0;
        if (!packed_.compressed) {
            reader_.next(x_);
            for (std::size_t j = 0; j < d_; ++j) sum += (x_[j] - z_[j]) * (x_[j] - z_[j]);
            return sum;
        }
        std::size_t k = 0;
        const auto add_reference_until = [&](std::size_t end) {
            for (; k < n_differing_ && differing_[k] < end; ++k) {
                const double difference = reference_value(packed_, differing_[k]) - z_[differing_[k]];
                sum += difference * difference;
            }
        };
        reader_.next_stored([&](std::size_t j, double value) {
            add_reference_until(j);
            k += k < n_differing_ && differing_[k] == j;
            sum += (value - z_[j]) * (value - z_[j]);
        });
        add_reference_until(d_);
        return sum;
    }

  private:
    const std::size_t d_;
    const PackedVectors& packed_;
    SupportVectorReader reader_;
    const double* const z_;
    double* const x_;
    std::uint32_t* differing_ = nullptr;
    std::size_t n_differing_ = 0;
};

// The kernel values of row i in support-vector order. The row may differ from the intended one by row_error, which
// changes each value by at most row_error times the slope 2 gamma r exp(-gamma r^2). This slope is at most sqrt(2 gamma
// / e), and is small for distant support vectors. `memory` must hold definition_bytes() bytes.
class DefinedKernels {
  public:
    DefinedKernels(const PreparedModel& prepared, const RowSource& source, std::size_t i, double row_error,
                   float* memory)
        : gamma_(prepared.view->gamma),
          row_error_(row_error),
          steepest_(prepared.slope),
          d_depth_((static_cast<double>(prepared.view->n_features) + 8.0) * unit64),
          unseen_(source.load(i, nullptr, 1.0, reinterpret_cast<double*>(memory), 1)),
          distances_(*prepared.view, reinterpret_cast<double*>(memory)) {
        APPROXSVM_COUNT_WORK(2.0 * static_cast<double>(prepared.view->n_sv) *
                             (static_cast<double>(prepared.view->n_features) + work_of_exp));
    }

    struct Value {
        double kernel, moved;
    };
    Value next() {
        const double sq_distance = distances_.next() + unseen_, kernel = std::exp(-gamma_ * sq_distance);
        return {kernel, row_error_ != 0.0 ? moved(sq_distance) : 0.0};  // the slope also matters if the error is NaN
    }
    void skip() { distances_.next(); }

  private:
    double moved(double sq_distance) const {
        const double r = std::sqrt(sq_distance) * (1.0 + d_depth_), nearest = r * (1.0 - 2.0 * d_depth_) - row_error_;
        const double least = nearest > 0.0 ? nearest : 0.0, most = r + row_error_;
        // exp rounds to zero only if the result is below 2^-1000, even multiplied by a distance that overflows.
        const double gaussian = std::exp(-gamma_ * least * least);
        const double slope = gaussian > 0.0 ? 2.0 * gamma_ * most * gaussian * (1.0 + 1e-12) : 0.0;
        const double reach = 1.0001 * row_error_ * (slope < steepest_ ? slope : steepest_) + 0x1p-1000;
        return reach < 1.0 ? reach : 1.0;
    }

    const double gamma_, row_error_, steepest_, d_depth_, unseen_;
    Distances distances_;
};

// Sums for one function: the value; the sum of absolute values, which becomes the bound; and a bound on the value's
// movement.
struct DefinedSums {
    double *values, *bounds, *moved;

    void begin(std::size_t k) const { values[k] = bounds[k] = moved[k] = 0.0; }
    APPROXSVM_INLINE void add(std::size_t k, double a, const DefinedKernels::Value& x) const {
        values[k] += a * x.kernel;
        bounds[k] += std::fabs(a) * x.kernel;
        moved[k] += std::fabs(a) * x.moved;
    }
    void end(const ModelView& model, std::size_t k) const {
        const DecisionNumbers& decision = model.decisions[k];
        values[k] += decision.intercept;
        bounds[k] = 1.0001 * (definition_bound(model, decision, bounds[k]) + decision.value_error + moved[k]);
    }
};

// Evaluates all functions or class pairs; results have the shape (n_decisions,).
APPROXSVM_NOINLINE inline void gaussian_by_definition(const ModelView& model, DefinedKernels kernels,
                                                      const DefinedSums& sums) {
    for (std::size_t k = 0; k < model.n_decisions; ++k) sums.begin(k);
    for_support_vectors(model, [&](std::size_t c, std::size_t s) {
        const auto kernel = kernels.next();
        for_coefficients(model, c, s, [&](std::size_t k, double a) { sums.add(k, a, kernel); });
    });
    for (std::size_t k = 0; k < model.n_decisions; ++k) sums.end(model, k);
}

// Evaluates some class pairs; with many classes, all pairs would take most of the time per row. for_opponents(c, visit)
// calls visit(other, pair) for the wanted pairs of class c. `opponents` must have space for one index per class.
template <class ForOpponents>
APPROXSVM_NOINLINE inline void pairs_by_definition(const ModelView& model, DefinedKernels kernels,
                                                   const DefinedSums& sums, const ForOpponents& for_opponents,
                                                   std::uint32_t* opponents) {
    const auto for_pairs = [&](const auto& visit) {
        for (std::size_t c = 0; c < model.n_labels; ++c) {
            for_opponents(c, [&](std::size_t other, std::size_t pair) {
                if (c < other) visit(pair);
            });
        }
    };
    for_pairs([&](std::size_t pair) { sums.begin(pair); });
    std::size_t listed_class = model.n_labels, n_opponents = 0;
    for_support_vectors(model, [&](std::size_t c, std::size_t s) {
        if (c != listed_class) {
            listed_class = c;
            n_opponents = 0;
            for_opponents(c, [&](std::size_t other, std::size_t) {
                opponents[n_opponents++] = static_cast<std::uint32_t>(other);
            });
        }
        if (n_opponents == 0) return kernels.skip();
        const auto kernel = kernels.next();
        for (std::size_t m = 0; m < n_opponents; ++m) {
            const std::size_t other = opponents[m];
            sums.add(pair_of(model.n_labels, c, other),
                     model.dual_coef[(other < c ? other : other - 1) * model.n_sv + s], kernel);
        }
    });
    for_pairs([&](std::size_t pair) { sums.end(model, pair); });
}

// Evaluates the pairs whose outcome is not certain from their values and bounds; the others remain unchanged.
inline void unknown_pairs_by_definition(const ModelView& model, const DefinedKernels& kernels, const DefinedSums& sums,
                                        std::uint32_t* opponents) {
    constexpr double is_known = -1.0;  // a mark in place of the bound on a value's movement
    for (std::size_t k = 0; k < model.n_decisions; ++k) {
        sums.moved[k] = outcome_of(sums.values[k], sums.bounds[k]) == Outcome::unknown ? 0.0 : is_known;
    }
    const auto for_opponents = [&](std::size_t c, const auto& visit) {
        for (std::size_t other = 0; other < model.n_labels; ++other) {
            if (other == c) continue;
            const std::size_t pair = pair_of(model.n_labels, c, other);
            if (sums.moved[pair] != is_known) visit(other, pair);
        }
    };
    pairs_by_definition(model, kernels, sums, for_opponents, opponents);
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

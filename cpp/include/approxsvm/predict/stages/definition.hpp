// The definition of a sum of RBF kernels: term by term in LIBSVM's order in float64, with a bound of its rounding
// error. Also Distances, for any kernel that is a function of squared distances.
#ifndef APPROXSVM_PREDICT_STAGES_DEFINITION_HPP
#define APPROXSVM_PREDICT_STAGES_DEFINITION_HPP

#include "../../artifact/support_vectors.hpp"
#include "../prepare/prepared_model.hpp"
#include "../rows/row_source.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// Bounds the error of sums in float64 of direct differences: docs/derivation.md, Prediction.
inline double definition_bound(const ModelView& model, const DecisionNumbers& decision, double moduli) {
    const double a1 = decision.sum_moduli, share = a1 > 0.0 ? moduli / a1 : 0.0;
    const double h = share > 0.3678794411714423 || !(share > 0.0) ? 0.3678794411714424 : -share * std::log(share);
    const double d = static_cast<double>(model.n_features), n = static_cast<double>(model.n_sv);
    return 1.01 * unit64 * ((d + 6.0) * a1 * h + (n + 6.0) * moduli) + 0x1p-51 * std::fabs(decision.intercept) +
           0x1p-1000 * a1 + 0x1p-1040;  // underflow, also of denormal coefficients
}

// Squared distances of a row to each support vector in turn, from differences in the order of the features. If support
// vectors are stored relative to a reference, features in which neither they nor the row differ from it are skipped, as
// they add zero.
class Distances {
  public:
    // The row is z, (n_features,), followed by space for as many numbers and, if `packed` is compressed, features.
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

// Evaluates all functions, or pairs of classes, at row i, with bounds that include row_error, which may move the row.
// Each kernel moves by at most row_error times its slope 2 gamma r exp(-gamma r^2), which is at most sqrt(2 gamma / e),
// and small far away. `memory` has definition_bytes, the results and `moved` are (n_decisions,).
APPROXSVM_NOINLINE inline void gaussian_by_definition(const PreparedModel& prepared, const RowSource& source,
                                                      std::size_t i, double row_error, float* memory, double* values,
                                                      double* bounds, double* moved) {
    const ModelView& model = *prepared.view;
    const std::size_t n = model.n_decisions;
    double* const z = reinterpret_cast<double*>(memory);
    const double unseen = source.load(i, nullptr, 1.0, z, 1);
    const double steepest = prepared.slope, d_depth = (static_cast<double>(model.n_features) + 8.0) * unit64;
    Distances distances(model, z);
    APPROXSVM_COUNT_WORK(2.0 * static_cast<double>(model.n_sv) * (static_cast<double>(model.n_features) + work_of_exp));
    for (std::size_t k = 0; k < n; ++k) values[k] = bounds[k] = moved[k] = 0.0;
    for_support_vectors(model, [&](std::size_t c, std::size_t s) {
        const double sq_distance = distances.next() + unseen, kernel = std::exp(-model.gamma * sq_distance);
        double kernel_moved = 0.0;
        if (row_error != 0.0) {  // or NaN
            const double r = std::sqrt(sq_distance) * (1.0 + d_depth), nearest = r * (1.0 - 2.0 * d_depth) - row_error;
            const double least = nearest > 0.0 ? nearest : 0.0, most = r + row_error;
            // exp rounds to zero only below 2^-1000, even after multiplication by an overflown distance.
            const double gaussian = std::exp(-model.gamma * least * least);
            const double slope = gaussian > 0.0 ? 2.0 * model.gamma * most * gaussian * (1.0 + 1e-12) : 0.0;
            kernel_moved = 1.0001 * row_error * (slope < steepest ? slope : steepest) + 0x1p-1000;
            if (!(kernel_moved < 1.0)) kernel_moved = 1.0;
        }
        for_coefficients(model, c, s, [&](std::size_t k, double a) {
            values[k] += a * kernel;
            bounds[k] += std::fabs(a) * kernel;
            moved[k] += std::fabs(a) * kernel_moved;
        });
    });
    for (std::size_t k = 0; k < n; ++k) {
        const DecisionNumbers& decision = model.decisions[k];
        values[k] += decision.intercept;
        bounds[k] = 1.0001 * (definition_bound(model, decision, bounds[k]) + decision.value_error + moved[k]);
    }
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

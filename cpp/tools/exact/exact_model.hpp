// Predicts with a LIBSVM model file, without compilation: builds a view for the exact engines in memory.
#pragma once

#include <algorithm>
#include <approxsvm/approxsvm.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "libsvm_model.hpp"

namespace approxsvm::tools {

/// A model that svm-predict supports but this program does not.
struct UnsupportedModel : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Limit on the engine's memory. The engine stores the support vectors in float32 and float64, densely unless nearly
/// all values are zero. Per thread, it also stores some rows of the same width. LibsvmSums evaluates larger and wider
/// models.
inline constexpr std::size_t max_engine_bytes = std::size_t{1} << 30;
inline constexpr std::size_t max_engine_features = std::size_t{1} << 20;
/// In each thread, the engines store values and bounds for all class pairs and a block of rows.
inline constexpr std::int32_t max_engine_classes = 256;

class ExactModel {
  public:
    explicit ExactModel(text::LibsvmModel&& model) : model_(std::move(model)) {
        check_supported();
        describe();
        has_engine_ = model_.kernel_type == text::KernelType::rbf && model_.n_classes > 1 &&
                      view_.task != Task::regression && engine_can_hold() && place_center() && engine_fits();
    }
    ExactModel(const ExactModel&) = delete;
    ExactModel& operator=(const ExactModel&) = delete;

    /// The view has the mode, the task and the labels; if has_engine() is true, it also has everything that the exact
    /// engine needs.
    const ModelView& view() const { return view_; }
    /// True if the exact engine can compute labels. It never computes values: svm-predict prints all their digits,
    /// which depend on the order of its sums.
    bool has_engine() const { return has_engine_; }
    /// Maximum number of entries in a row for which libsvm_rounding() is a bound. Entries may be features that occur in
    /// no support vector.
    std::size_t most_entries() const { return 2 * view_.n_features + 64; }
    /// Returns the LIBSVM model. A support vector's indices are column numbers, counted from view().first_index.
    const text::LibsvmModel& libsvm() const { return model_; }
    /// Returns each support vector's class; 0 if there is only one decision function.
    std::vector<std::uint32_t> classes_of_vectors() const {
        std::vector<std::uint32_t> classes;
        for (std::size_t c = 0; c < model_.n_sv_per_class.size(); ++c) {
            classes.resize(classes.size() + static_cast<std::size_t>(model_.n_sv_per_class[c]),
                           static_cast<std::uint32_t>(c));
        }
        classes.resize(view_.n_sv);
        if (model_.n_classes == 2) std::fill(classes.begin(), classes.end(), 0);
        return classes;
    }
    /// Returns the class pair to which coefficient m of a support vector of class c belongs.
    std::size_t pair_of(std::size_t c, std::size_t m) const {
        const std::size_t n_classes = static_cast<std::size_t>(model_.n_classes);
        return m < c ? pair_position(n_classes, m, c) : pair_position(n_classes, c, m + 1);
    }

  private:
    bool is_classifier() const {
        return model_.svm_type == text::SvmType::c_svc || model_.svm_type == text::SvmType::nu_svc;
    }
    void check_supported() const {
        if (model_.kernel_type == text::KernelType::precomputed) {
            throw UnsupportedModel("the kernel is precomputed, which only svm-predict supports");
        }
        if (!model_.scales.empty()) {
            throw UnsupportedModel("the model scales its rows (PCL's line scaling); approxsvm convert-model reads it");
        }
    }

    void describe() {
        view_.mode = Mode::exact;
        view_.task = is_classifier()                               ? Task::classification
                     : model_.svm_type == text::SvmType::one_class ? Task::one_class
                                                                   : Task::regression;
        labels_.assign(model_.labels.begin(), model_.labels.end());
        view_.label_kind = is_classifier() ? LabelKind::int64 : LabelKind::none;
        view_.n_labels = is_classifier() ? static_cast<std::uint32_t>(model_.n_classes) : 0;
        view_.labels = bytes_of(labels_);
        view_.first_index = model_.min_index == 0 ? 0 : 1;
        for (std::int32_t& index : model_.indices) index -= static_cast<std::int32_t>(view_.first_index);
        const std::int64_t n_features = std::int64_t{model_.max_index} + 1 - view_.first_index;
        view_.n_features = view_.n_raw_features = static_cast<std::size_t>(std::max<std::int64_t>(n_features, 1));
        view_.gamma = model_.gamma.value_or(0.0);
        view_.n_sv = static_cast<std::size_t>(model_.n_sv);
        describe_decisions();
        view_.tolerance = std::numeric_limits<double>::infinity();
        counts_.reserve(view_.n_sv);
        for (std::size_t i = 0; i < view_.n_sv; ++i) {
            counts_.push_back(static_cast<std::uint32_t>(model_.indptr[i + 1] - model_.indptr[i]));
        }
        view_.packed.compressed = true;
        view_.packed.value_kind = 0;
        view_.packed.index_bytes = 4;
        view_.packed.counts = bytes_of(counts_);
        view_.packed.columns = bytes_of(model_.indices);
        view_.packed.values = bytes_of(model_.values);
        view_.packed.n_values = model_.values.size();
    }

    /// Describes one decision function per class pair. The engines read the coefficients column by column.
    void describe_decisions() {
        for (const double rho : model_.rho) decisions_.push_back({-rho, 0.0, 0.0, 0.0});
        view_.decisions = decisions_.data();
        view_.n_decisions = decisions_.size();
        const std::size_t n_coef = static_cast<std::size_t>(model_.n_coef);
        coef_.resize(model_.coef.size());
        for (std::size_t k = 0; k < model_.coef.size(); ++k) {
            coef_[k % n_coef * view_.n_sv + k / n_coef] = model_.coef[k];
        }
        view_.dual_coef = coef_.data();
        const std::vector<std::uint32_t> classes = classes_of_vectors();
        for (std::size_t k = 0; k < model_.coef.size(); ++k) {
            decisions_[pair_of(classes[k / n_coef], k % n_coef)].sum_moduli += std::fabs(model_.coef[k]);
        }
        for (DecisionNumbers& decision : decisions_) {
            decision.sum_moduli *= 1.0 + 0x1p-20;  // now at least the exact sum, for up to 2^31 terms
            decision.value_error = libsvm_rounding() * decision.sum_moduli;
        }
        for (const std::int64_t n : model_.n_sv_per_class) class_counts_.push_back(static_cast<std::uint32_t>(n));
        view_.class_counts = class_counts_.data();
    }

    /// Returns a bound on the rounding of LIBSVM's own sums, relative to the sum of absolute values, for rows with at
    /// most most_entries() entries. A distance has one term for each feature of the row or the vector; a unit of 2^-52
    /// covers the two or three roundings of a term and its addition. If a value is within this bound, LibsvmSums
    /// determines the label.
    double libsvm_rounding() const {
        return 0x1p-52 * (0.37 * static_cast<double>(most_entries()) + static_cast<double>(view_.n_sv));
    }

    /// Returns true if the engine can hold the model. Also sets the scale to the power of two just below sqrt(2 gamma),
    /// as in approxsvm/artifact/writer.py.
    bool engine_can_hold() {
        if (!(view_.gamma >= 0x1p-200 && view_.gamma <= 0x1p200)) return false;
        for (const DecisionNumbers& decision : decisions_) {
            if (!(decision.sum_moduli < max_output_scale)) return false;
        }
        if (view_.n_features > max_engine_features || model_.n_classes > max_engine_classes) return false;
        int exponent;
        std::frexp(view_.gamma, &exponent);
        view_.input_scale = std::ldexp(1.0, (exponent - (exponent & 1)) / 2);
        view_.half_theta = static_cast<float>(view_.gamma / view_.input_scale / view_.input_scale);
        return true;
    }

    /// Sets the center to the mean of the support vectors; returns false if it overflows float32 or a norm overflows
    /// float64.
    bool place_center() {
        std::vector<double> vector(view_.n_features);
        for (std::size_t k = 0; k < model_.values.size(); ++k) {
            vector[static_cast<std::size_t>(model_.indices[k])] += model_.values[k];
        }
        const double n_sv = std::max(1.0, static_cast<double>(view_.n_sv));
        for (const double sum : vector) {
            if (!(std::fabs(sum / n_sv) <= double{std::numeric_limits<float>::max()})) return false;
            center_.push_back(static_cast<float>(sum / n_sv));
        }
        view_.center = center_.data();
        double max_sq_norm = 0.0, max_sq_norm_origin = 0.0, center_sq_norm = 0.0;
        for (const float c : center_) center_sq_norm += static_cast<double>(c) * static_cast<double>(c);
        SupportVectorReader reader(view_);
        for (std::size_t i = 0; i < view_.n_sv; ++i) {
            double sq_norm = center_sq_norm, sq_norm_origin = 0.0;
            reader.next_stored([&](std::size_t j, double value) {
                const double c = static_cast<double>(center_[j]), from_center = value - c;
                sq_norm += from_center * from_center - c * c;
                sq_norm_origin += value * value;
            });
            max_sq_norm = std::max(max_sq_norm, sq_norm);
            max_sq_norm_origin = std::max(max_sq_norm_origin, sq_norm_origin);
        }
        view_.max_sv_norm = std::sqrt(max_sq_norm) * (1.0 + 0x1p-20);
        view_.max_sv_norm_origin = std::sqrt(max_sq_norm_origin) * (1.0 + 0x1p-20);
        return std::isfinite(max_sq_norm) && std::isfinite(max_sq_norm_origin);
    }

    bool engine_fits() const {
        constexpr std::size_t least_entry_bytes = sizeof(float) + sizeof(double);  // avoids overflow in products
        if (!by_columns(view_) && view_.n_sv > max_engine_bytes / least_entry_bytes / view_.n_features) return false;
        return engine_bytes<float>(view_) + engine_bytes<double>(view_) <= 2 * max_engine_bytes;
    }

    template <class Numbers>
    static const unsigned char* bytes_of(const Numbers& numbers) {
        return reinterpret_cast<const unsigned char*>(numbers.data());
    }

    text::LibsvmModel model_;
    ModelView view_{};
    std::vector<DecisionNumbers> decisions_;
    std::vector<double> coef_;
    std::vector<std::uint32_t> class_counts_;
    std::vector<std::int64_t> labels_;
    std::vector<std::uint32_t> counts_;
    std::vector<float> center_;
    bool has_engine_ = false;
};

}  // namespace approxsvm::tools

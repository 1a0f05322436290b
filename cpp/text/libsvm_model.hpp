#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text_error.hpp"
#include "uninitialized_vector.hpp"

namespace approxsvm::text {

enum class SvmType { c_svc, nu_svc, one_class, epsilon_svr, nu_svr };
enum class KernelType { linear, polynomial, rbf, sigmoid, precomputed };

/// Returns the name used in model files.
std::string_view name_of(SvmType type);
std::string_view name_of(KernelType type);

/// The contents of a LIBSVM model file, in the file's order, units and signs.
struct LibsvmModel {
    SvmType svm_type = SvmType::c_svc;
    KernelType kernel_type = KernelType::rbf;
    /// Kernel parameters, present if the kernel uses them.
    std::optional<std::int32_t> degree;
    std::optional<double> gamma;
    std::optional<double> coef0;

    /// Number of classes; 2 for regressors and one-class models.
    std::int32_t n_classes = 0;
    std::int64_t n_sv = 0;
    /// Number of coefficients per support vector: max(1, n_classes - 1).
    std::int32_t n_coef = 1;
    /// One value per pair of classes i < j, in the order (0,1), (0,2), ..., (1,2), ....
    std::vector<double> rho;
    /// For classification: the label and the number of support vectors of each class.
    std::vector<std::int32_t> labels;
    std::vector<std::int64_t> n_sv_per_class;
    /// Parameters for svm-predict -b 1, by header key; for a regressor, the scale of a Laplace distribution.
    std::map<std::string, std::vector<double>> probabilities;
    /// True if the header contains the keys for svm-predict -b 1; for a model with one class, their lists are empty.
    bool has_probabilities = false;

    /// Coefficients, of shape (n_sv, n_coef), row-major.
    std::vector<double> coef;
    /// Support vector i has the features indptr[i] to indptr[i + 1] - 1, with the indices in the file.
    std::vector<std::int64_t> indptr;
    UninitializedVector<std::int32_t> indices;
    UninitializedVector<double> values;
    /// The Point Cloud Library divides the features with these indices by these scales, and leaves other features
    /// unchanged. LIBSVM files have no scales.
    std::vector<std::int32_t> scaled_indices;
    std::vector<double> scales;
    /// Smallest and largest index in support vectors and scales; -1 if there are none.
    std::int32_t min_index = -1;
    std::int32_t max_index = -1;

    /// True if the file ends with a line break. If it does not, the last row may be incomplete, so a warning is
    /// appropriate.
    bool ends_in_line_break = false;

    /// Calls visit(name, list) for each list of numbers.
    template <class Visit>
    void for_lists(const Visit& visit) {
        visit("rho", rho);
        visit("labels", labels);
        visit("n_sv_per_class", n_sv_per_class);
        visit("indptr", indptr);
        visit("indices", indices);
        visit("values", values);
        visit("scaled_indices", scaled_indices);
        visit("scales", scales);
    }

    void include_indices(std::int32_t lowest, std::int32_t highest) {
        min_index = min_index < 0 ? lowest : std::min(min_index, lowest);
        max_index = std::max(max_index, highest);
    }
};

/// Parses the text of a LIBSVM, ThunderSVM or Point Cloud Library model file; header lines that begin with # are
/// comments. Throws TextError if the model is incomplete or contradictory, or contains values that are not finite.
/// Memory use is limited by the size of the text, whatever dimensions it declares.
LibsvmModel parse_libsvm_model(std::string_view text);

}  // namespace approxsvm::text

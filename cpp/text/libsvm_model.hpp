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

/// Returns the name of the type in model files.
std::string_view name_of(SvmType type);
std::string_view name_of(KernelType type);

/// The content of a LIBSVM model file, with the order, units and signs of the file.
struct LibsvmModel {
    SvmType svm_type = SvmType::c_svc;
    KernelType kernel_type = KernelType::rbf;
    /// Kernel parameters, present if the kernel needs them.
    std::optional<std::int32_t> degree;
    std::optional<double> gamma;
    std::optional<double> coef0;

    /// Number of classes; 2 for regression and one-class models.
    std::int32_t n_classes = 0;
    std::int64_t n_sv = 0;
    /// Number of coefficients per support vector: max(1, n_classes - 1).
    std::int32_t n_coef = 1;
    /// One number per pair of classes i < j, in the order (0,1), (0,2), ..., (1,2), ....
    std::vector<double> rho;
    /// For classification: the label of each class and its number of support vectors.
    std::vector<std::int32_t> labels;
    std::vector<std::int64_t> n_sv_per_class;
    /// Parameters for svm-predict -b 1, by header key; for a regression, the scale of a Laplace distribution.
    std::map<std::string, std::vector<double>> probabilities;
    /// Whether the header has the keys for svm-predict -b 1; for a model with one class the lists of these keys are
    /// empty.
    bool has_probabilities = false;

    /// Coefficients, (n_sv, n_coef), row-major.
    std::vector<double> coef;
    /// Support vector i has the features indptr[i] to indptr[i + 1] - 1, with the indices of the file.
    std::vector<std::int64_t> indptr;
    UninitializedVector<std::int32_t> indices;
    UninitializedVector<double> values;
    /// The Point Cloud Library divides the features with these indices by these numbers, and other features by 1.
    /// LIBSVM files have no such numbers.
    std::vector<std::int32_t> scaled_indices;
    std::vector<double> scales;
    /// Smallest and largest index in support vectors and scales; -1 if there are no indices.
    std::int32_t min_index = -1;
    std::int32_t max_index = -1;

    /// Whether the file ends with a line break. If not, the last row may be incomplete, so a warning is appropriate.
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

/// Parses the text of a LIBSVM, ThunderSVM or Point Cloud Library model file; lines of the header that begin with # are
/// comments. Throws TextError if the model is incomplete, contradictory or not finite. The size of the text limits the
/// memory, whatever dimensions the text declares.
LibsvmModel parse_libsvm_model(std::string_view text);

}  // namespace approxsvm::text

// Plain data: what a predictor needs to know about a model, and how callers describe their rows.
// Only types live here. Functions live in the namespace of the target that they were compiled for.
#pragma once

#include <cstddef>
#include <cstdint>

namespace approxsvm {

enum class Task : std::uint32_t { classification = 0, regression = 1, one_class = 2 };
enum class LabelKind : std::uint32_t { none = 0, int64 = 1, float64 = 2, text = 3 };

// A validated artifact, seen in place: every pointer leads into the artifact's own bytes (models/FORMAT.md).
//
//     u = input_scale (z - center),   s = 2 gamma ||z - center||^2 = 2 half_theta ||u||^2
//     f(z) = intercept + output_scale exp(-s / 2) (constant + linear.u + sum_{i <= j} quadratic_ij u_i u_j)
struct ModelView {
    Task task;
    LabelKind label_kind;
    std::uint32_t n_labels;
    std::uint32_t first_index;  // the LIBSVM index of column 0: 0 or 1
    std::uint32_t n_check_rows;
    std::size_t n_features;
    double gamma;
    double intercept;
    double constant;
    double input_scale;      // a power of two
    double output_scale;     // a power of two
    float half_theta;        // gamma / input_scale^2
    const float* center;     // (n_features,)
    const float* linear;     // (n_features,)
    const float* quadratic;  // packed triangle, off-diagonal entries doubled; see quadratic.hpp for the order
    const unsigned char* labels;
    const unsigned char* check_rows;
};

// Rows of a matrix anywhere in memory. Strides count elements, not bytes, and may be negative or zero.
template <class Real>
struct DenseRows {
    const Real* values;
    std::size_t n_rows;
    std::ptrdiff_t row_stride;
    std::ptrdiff_t column_stride;
};

// Compressed sparse rows. Columns ascend strictly within a row. A column outside [0, n_features) is a feature
// that the model has never seen: it counts in the squared norm, as in LIBSVM, and nowhere else.
template <class Real, class Index>
struct CsrRows {
    const Real* values;
    const Index* columns;
    const Index* row_starts;  // (n_rows + 1,)
    std::size_t n_rows;
};

}  // namespace approxsvm

// Plain data: what a predictor needs to know about a model, and how callers describe their rows.
// Only types live here. Functions live in the namespace of the target that they were compiled for.
#pragma once

#include <cstddef>
#include <cstdint>

namespace approxsvm {

enum class Task : std::uint32_t { classification = 0, regression = 1, one_class = 2 };
enum class Mode : std::uint32_t { approximate = 0, certified = 1, exact = 2 };
enum class LabelKind : std::uint32_t { none = 0, int64 = 1, float64 = 2, text = 3 };

// The support vectors, as narrow as they can be without losing anything (models/FORMAT.md, "support_vectors").
struct PackedVectors {
    bool compressed;            // rows of columns and values rather than all values
    std::uint32_t value_kind;   // 0 float64, 1 float32, 2 and 3 codes of one and two bytes
    std::uint32_t index_bytes;  // of counts and columns
    std::uint32_t n_dictionary;
    const unsigned char* dictionary;
    const unsigned char* counts;  // per support vector
    const unsigned char* columns;
    const unsigned char* values;
};

constexpr int last_norm_degree = 8;

// A validated artifact, seen in place: every pointer leads into the artifact's own bytes (models/FORMAT.md).
//
//     u = input_scale (z - center),   s = 2 gamma ||z - center||^2 = 2 half_theta ||u||^2
//     f(z) = intercept + output_scale exp(-s / 2) (constant + linear.u + sum_{i <= j} quadratic_ij u_i u_j)
struct ModelView {
    Mode mode;
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

    // What bounds |computed - exact| (certificate.hpp). Norms are zero where there is no expansion.
    double tolerance;           // of values; infinite when only labels count
    double max_sv_norm;         // max ||x_i - center||
    double max_sv_norm_origin;  // max ||x_i||
    double norms[last_norm_degree + 1];
    double remainder_norm;
    double total_norm;
    double sum_moduli;  // sum |a_i|
    double coefficient_error;
    double direction_scale;  // direction times this is G_3 in the coordinates u
    double direction_trace;  // of G_3
    double direction_error;  // norm of what rounding did to G_3

    // Certified and exact models only.
    std::size_t n_sv;
    const float* direction;   // packed like quadratic, or null
    const double* dual_coef;  // (n_sv,)
    PackedVectors packed;
    const unsigned char* exact_check_rows;
    std::uint32_t n_exact_check_rows;
};

// What a caller wants of each row, and where it goes. Null pointers are not written.
struct Evaluation {
    double* values;        // decision values
    double* bounds;        // |value - exact| never exceeds it
    std::uint8_t* stages;  // which Stage answered
};

// How a row's value was found, cheapest first.
enum Stage : std::uint8_t { by_expansion = 0, by_direction = 1, by_float32 = 2, by_float64 = 3, by_definition = 4 };
constexpr int n_stages = 5;

// A model with its center folded into the constant and linear terms, for sparse rows (sparse.hpp).
struct FoldedModel {
    double constant;
    double center_sq_norm;  // ||input_scale * center||^2
    double half_theta;      // gamma / input_scale^2, not narrowed
    const double* linear;   // (n_features,), multiplies z itself
    double linear_norm;     // ||linear||
    double quadratic_norm;  // at least the Frobenius norm of Q
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

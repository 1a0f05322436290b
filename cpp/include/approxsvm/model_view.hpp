// Plain data types that describe a model and the caller's rows to a predictor. This file contains only types. Each
// function belongs to the namespace of the target for which it was compiled.
#ifndef APPROXSVM_MODEL_VIEW_HPP
#define APPROXSVM_MODEL_VIEW_HPP

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "parts.hpp"
#include "schema.hpp"
#include "status.hpp"

namespace approxsvm {
inline namespace APPROXSVM_VERSION_NAMESPACE {

struct ArtifactFault;

// The support vectors in the narrowest lossless representation (models/FORMAT.md, "support_vectors").
struct PackedVectors {
    bool compressed;            // rows hold only some values, with their columns
    std::uint32_t value_kind;   // type: 0 float64, 1 float32, 2 and 3 one-byte and two-byte codes
    std::uint32_t index_bytes;  // size in bytes of each count and column
    std::uint32_t n_dictionary;
    const unsigned char* dictionary;
    const unsigned char* counts;  // number of values per support vector
    const unsigned char* columns;
    const unsigned char* values;
    std::size_t n_values;
    const unsigned char* reference;  // the values omitted from compressed rows, (n_features,) float64; null for zeros
};

// Returns the number of decision functions. With more than two classes, there is one per pair, in LIBSVM's order, or
// one per class, depending on the shape; with two classes, there is one.
constexpr std::size_t n_decisions_of(std::size_t n_labels, DecisionShape shape = DecisionShape::ovo) {
    return n_labels <= 2 ? 1 : shape == DecisionShape::each ? n_labels : n_labels * (n_labels - 1) / 2;
}
// Returns the index of the pair (i, j), i < j < n_labels.
constexpr std::size_t pair_position(std::size_t n_labels, std::size_t i, std::size_t j) {
    return i * (2 * n_labels - i - 1) / 2 + (j - i - 1);
}

// Views of sections. artifact/schema.inc states the size of each array and its constraints.

// The stages that use a few coordinates (models/FORMAT.md, "subspaces"), for the decision function or for each class's
// pairs.
struct SubspacesView {
    std::uint32_t n_stages, reserved;  // number of stages; 0 if there is no such section
    const std::uint32_t* coordinates;  // number of coordinates in each stage, (n_stages,), ascending
    std::size_t n_coordinates;         // number of coordinates in the last stage, the maximum
    const unsigned char* groups;       // the data of each class in turn (artifact/sections/subspaces.hpp)
    const unsigned char* expansion;    // artifact that replaces the first stage's sums, in its coordinates
};

// The data of one class, or of the only decision function. Each function sums over two lists of support vectors. The
// first, the class's own support vectors, is shared by all functions of the class; for a single function, it holds the
// support vectors with positive coefficients.
struct SubspaceGroup {
    double skew;  // deviation of the basis from an orthonormal one
    // (1 + n_forms,): number of own support vectors, then the length of each function's other list
    const std::uint32_t* counts;
    std::size_t n_own, n_others;   // `n_others` is the total length of all other lists
    const ResidualNumbers* known;  // norms of the residual, (n_stages, n_forms)
    const float* basis;            // basis vectors, (n_coordinates, n_features)
    const float* vectors;          // coordinates of the support vectors, (n_own + n_others, n_coordinates)
    // (n_summed, n_forms * n_own + n_others): coefficients of the own support vectors, function by function, then of
    // the other lists
    const float* coef;
};

// The network that guesses a row's class in multiclass models.
struct SpeculationView {
    std::uint32_t n_landmarks, reserved;
    const std::uint32_t* landmarks;  // indices of support vectors, (n_landmarks,)
    const float* weights;            // weights of 1, features and landmarks: (1 + n_features + n_landmarks, n_labels)
};

// The sums over j of coef_kj cos(frequency_j.z + phase_j).
struct CosinesView {
    std::size_t n_terms;
    const double* coef;         // coefficients, (n_decisions, n_terms)
    const double* phases;       // phases, (n_terms,)
    const double* frequencies;  // frequencies, (n_terms, n_features)
};

// The quadratic form of one decision function with a polynomial kernel (expansion/form.hpp).
struct FormView {
    const FormHeader* header;
    const double* linear;    // linear coefficients, (n_features,)
    const double* triangle;  // quadratic coefficients; empty for degree 1
};

// Data for finding a nearby center: points in panels of router_width, one per lane (router.hpp).
struct RouterView {
    std::uint32_t n_groups, n_panels;
    const std::uint32_t* starts;   // first panel of each group, (n_groups + 1,)
    const std::uint32_t* members;  // the center in each slot, (router_width * starts[n_groups],)
    const float* groups;           // panels of the groups' points
    const float* panels;           // panels of the groups' members
};

// The map from raw rows to model rows (predict/rows/input_map.hpp).
struct InputMapView {
    std::size_t n_columns;         // number of raw columns used
    const std::uint32_t* columns;  // their indices, (n_columns,)
    std::size_t n_ops;
    const unsigned char* ops;
    std::size_t widest;                                     // maximum number of features before or after any op
    bool has_projection, has_inverse_normal, scales_alone;  // the ops present; scales_alone: affine ops only
    bool takes_all_columns;                                 // true if the map uses all columns, in order
    std::size_t n_checked;                                  // number of raw columns with separate checks, used or not
    const CheckedColumn* checked;
};

// The strings of raw columns (artifact/sections/categories.hpp).
struct CategoriesView {
    std::size_t n_columns;
    const CategoryColumn* columns;  // string columns, (n_columns,)
    const std::uint32_t* ends;      // end of each string in `bytes`, in column order
    const char* bytes;
};

// The rules for computing votes or scores, labels and probabilities from decision values (outputs.hpp). If all fields
// are zero and null, labels are determined by votes, values are unchanged, and there are no probabilities.
struct OutputsView {
    DecisionShape decision_shape;  // multiclass: a value per pair, a score per class, or a value per class
    LabelRule label_rule;
    ProbabilityKind probability;
    std::uint32_t positive;           // a flag that depends on the probability kind (program/probabilities.h)
    DecisionShape calibration_shape;  // for multiclass one_vs_rest_calibration: what is calibrated
    const double* numbers;            // parameters of the probability computation
    // For label rules with a threshold: the threshold and the index (0 or 1) of the label to which it applies.
    const double* threshold;
};

// Number of values from which a classifier's outputs are computed; for a mean, one per label.
constexpr std::size_t n_values_of(const OutputsView& outputs, std::size_t n_labels) {
    return outputs.probability == ProbabilityKind::members_mean ? n_labels
                                                                : n_decisions_of(n_labels, outputs.decision_shape);
}

// The sparse matrix, stored by column, that maps the columns computed by an ensemble's members to its values.
struct CombinationView {
    Columns columns;
    std::size_t n_columns;
    std::size_t n_values;         // number of values; 0 if the columns are the values
    const double* addends;        // addend of each value, (n_values,)
    const double* weights;        // column c has weights starts[c] to starts[c + 1] - 1
    const std::uint32_t* starts;  // first weight of each column, (n_columns + 1,)
    const std::uint32_t* values;  // the value to which each weight contributes
};

// A validated artifact, read in place: every pointer points into its bytes (models/FORMAT.md). Around one of its
// centers,
//
//     u = input_scale (z - center),   s = 2 gamma ||z - center||^2 = 2 half_theta ||u||^2
//     f(z) = intercept + output_scale exp(-s / 2) (constant + linear.u + sum_{i <= j} quadratic_ij u_i u_j + ...)
//
// on the slice of all z that equal the center in all but the varying features; u and s depend only on the latter.
//
// A polynomial kernel has f(z) = intercept + sum_i dual_coef_i (gamma x_i.z + coef0)^degree. Functions of other kinds
// are defined in the readers of their sections.
struct ModelView {
    KernelKind kernel;
    Mode mode;
    Task task;
    LabelKind label_kind;
    std::uint32_t n_labels;
    std::uint32_t first_index;  // LIBSVM's index of column 0, which is 0 or 1
    std::size_t n_features;
    std::size_t n_raw_features;  // number of features of raw rows
    bool has_input_map;
    InputMapView input_map;              // the map applied to raw rows, if has_input_map
    const unsigned char* feature_names;  // names of raw columns, a list of strings (artifact/texts.hpp), or null
    CategoriesView categories;
    OutputsView outputs;          // rules for labels and probabilities
    CombinationView combination;  // the combination of members, for ensembles only
    double gamma;
    double input_scale;   // a power of two
    float half_theta;     // gamma / input_scale^2
    const float* center;  // (n_features,): mean or origin; the only center if n_centers is 1; null for other kernels
    std::size_t n_decisions;
    const DecisionNumbers* decisions;  // parameters of each function, (n_decisions,)
    const unsigned char* labels;
    const CheckRecord* check_rows;  // check rows of the expansions, (n_check_rows,)
    std::size_t n_check_rows;
    double tolerance;           // tolerance of values; infinite if only labels matter
    bool tolerance_asked;       // true if it was requested at compilation; rows that miss it in float64 are rejected
    double max_sv_norm;         // max ||x_i - center||
    double max_sv_norm_origin;  // max ||x_i||

    // The expansions. A model in "exact" mode has none; its degree and n_centers are 0. Arrays with first dimension
    // n_centers have n_forms entries per center: one per decision function, or one per class pair that includes the
    // center's majority class.
    int degree;                  // degree of expansions; with a polynomial kernel, the kernel's degree
    int first_remainder_degree;  // the remainder covers this and all higher degrees
    std::size_t n_centers;
    std::size_t n_forms;  // number of forms per center: n_decisions, or n_labels - 1 if majority_only
    bool majority_only;
    std::size_t n_varying;         // number of varying features; n_features if there is no slice
    const std::uint32_t* varying;  // columns in ascending order, (n_varying,); null if all features vary
    const float* centers;          // centers, (n_centers, n_features)
    const float* linear;           // linear coefficients, (n_centers, n_varying)
    const float* quadratic;        // (n_centers, triangle): packed with doubled off-diagonal entries (quadratic.hpp)
    const float* higher;           // coefficients of degrees 3 through `degree` for each center (polynomial.hpp)
    const float* direction;        // G of each expansion, (n_centers, triangle), or null
    const ExpansionNumbers* expansions;  // parameters of each expansion, (n_centers,)
    RouterView router;                   // the router, if n_centers > 1
    // For multiclass models: for each center, a class to which many nearby rows belong, (n_centers,).
    const std::uint32_t* majority_classes;

    // For polynomial kernels only.
    double coef0;
    double coef_error;   // relative error of every coefficient, caused by the source's file reader
    const double* form;  // data of form.hpp, (n_decisions, form_size); null in "exact" mode

    std::size_t n_terms;  // number of terms in the exact sum, such as support vectors, for any kernel

    // The start of each section, or null if it is absent. Readers of optional and kernel-specific sections
    // (artifact/sections/) use these pointers.
    const unsigned char* sections[section::end];

    // For certified and exact models only.
    std::size_t n_sv;
    const double* dual_coef;            // coefficients, (n_sv,), or LIBSVM's block (n_labels - 1, n_sv)
    const std::uint32_t* class_counts;  // support vectors per class, (n_labels,), for multiclass models
    SubspacesView subspaces;
    PackedVectors packed;
    const CheckRecord* exact_check_rows;
    std::size_t n_exact_check_rows;
    CosinesView cosines;
    SpeculationView speculation;  // the network; all zero if the section is absent

    // An ensemble contains other models and combines their results as specified by `combination`.
    std::size_t n_members;
    const unsigned char* members;  // consecutive complete artifacts

    // The parts used by the model, as far as its sections have been read.
    Parts needed;

    // Describes an artifact inside this one; both have been validated together. The reader that opened this artifact
    // sets the pointer, so other targets, which lay out models, need no reader.
    Status (*describe)(const unsigned char* bytes, std::size_t n_bytes, ModelView& model, ArtifactFault* fault);
};

// The caller's memory: its address and number of elements, which is checked before anything is written. std::vector,
// std::array and C arrays convert to a Span. A null span means "not wanted".
template <class T>
struct Span {
    T* data = nullptr;
    std::size_t size = 0;

    constexpr Span() = default;
    constexpr Span(std::nullptr_t) {}
    constexpr Span(T* first, std::size_t n) : data(first), size(n) {}
    template <std::size_t n>
    constexpr Span(T (&array)[n]) : data(array), size(n) {}
    template <class Container,
              class = std::enable_if_t<std::is_convertible<decltype(std::declval<Container&>().data()), T*>::value>>
    constexpr Span(Container&& container) : data(container.data()), size(container.size()) {}

    explicit constexpr operator bool() const { return data != nullptr; }
    constexpr T& operator[](std::size_t i) const { return data[i]; }
};

// The outputs that a caller wants for each row.
//
// A value is positive for the model's first label (for a pair: the pair's first class), and 0 or negative for the
// second label. Python's two-class decision_function follows scikit-learn, where a positive value means the greater
// label. Its sign is therefore the opposite if the model's first label is the smaller one, as in every scikit-learn
// model.
struct Evaluation {
    Span<double> values;        // decision values, (n_rows, n_decisions)
    Span<double> bounds;        // upper bounds on |value - exact value|, (n_rows, n_decisions)
    Span<std::uint8_t> stages;  // Stage of each result, (n_rows,); for an ensemble, the last stage of any member
    Span<std::uint32_t>
        labels;  // indices of the predicted labels, (n_rows, n_targets); a one-class model's inlier has index 0
    Span<std::uint8_t> certified = {};  // (n_rows, n_targets): 1 if the first stage proves the label (for regressors,
                                        // if it has a bound); always computed as if only labels were requested
    Span<double> probabilities =
        {};  // probabilities, (n_rows, n_probabilities), in the order of the model's labels, or inlier, outlier
    Span<double> probability_bounds = {};  // upper bounds on |probability - probability computed from the exact values|
};

// The values and bounds that a caller wants. Labels do not depend on this choice: they are always the exact model's,
// unless the model is approximate. If only labels are wanted, each comes from the cheapest stage that proves it.
enum class Values : std::uint8_t {
    promised = 0,  // within the tolerance, if any, else as `exact`. Approximate models: values of the expansion
    settled = 1,   // values of the cheapest stage that determines the label and keeps the tolerance
    exact = 2      // values of the float64 engine, or of the definition if the engine is not accurate enough
};

// The row that caused Status::not_finite, unsorted_indices, unknown_feature, map_overflow, outside_domain,
// beyond_float64 or beyond_tolerance. For the statuses that also set `found` and `expected`, see status.inc.
struct Fault {
    std::size_t row;
    double found, expected;
    OpKind step = OpKind::affine;  // the kind of step, for outside_domain
};

// How rows are to be evaluated: the options of a call.
struct Request {
    std::size_t n_rows_in_call =
        0;  // number of rows in the whole call, which decides whether rows are evaluated one by one
    Values values = Values::promised;
    // Bounds on the Euclidean distance of each row from the intended row, (n_rows,); null for 0.
    const double* row_errors = nullptr;
    Fault* fault = nullptr;  // filled if the status reports a fault
    bool keeps_promise =
        true;  // true if a caller receives the values; rows that miss a requested tolerance are then rejected
    // true if the sign of a regressor's value is a label, which bounds must determine
    bool by_sign = false;
    // Unit roundoff of the source's mapping of these rows: 2^-24 for float32 rows if the source is a Python model, else
    // 0.
    double source_unit = 0.0;
};

// The stage that computed a row's value; the cheapest comes first.
enum Stage : std::uint8_t {
    by_expansion = 0,      // expansion up to degree 2
    by_direction = 1,      // the value of by_expansion, with a tighter bound
    by_higher_degree = 2,  // expansion of degree 3 or more
    by_subspace = 3,       // kernel sums over a few coordinates
    by_float32 = 4,
    by_float64 = 5,
    by_definition = 6
};
constexpr int n_stages = 7;

// The expansion around a model's only center, for sparse rows: the center is folded into the constant and the linear
// term (sparse.hpp).
struct FoldedModel {
    double constant;
    double center_sq_norm;  // ||input_scale * center||^2
    double half_theta;      // gamma / input_scale^2, not rounded to float32
    const double* linear;   // coefficients of z itself, (n_features,)
    double linear_norm;     // ||linear||
    double quadratic_norm;  // upper bound on Q's Frobenius norm
};

// Rows of a matrix with any memory layout. Strides count elements, not bytes, and may be negative or zero.
template <class Real>
struct DenseRows {
    const Real* values;
    std::size_t n_rows;
    std::ptrdiff_t row_stride;
    std::ptrdiff_t column_stride;
};

// Compressed sparse rows. Columns are strictly increasing within a row. A column outside [0, n_features) is a feature
// that the model does not know; as in LIBSVM, it only adds to the squared norm.
template <class Real, class Index>
struct CsrRows {
    const Real* values;
    const Index* columns;
    const Index* row_starts;  // start of each row, (n_rows + 1,)
    std::size_t n_rows;
};

// CsrRows with the size of each array, which is checked. The number of rows is the size of row_starts minus one.
template <class Real, class Index>
struct SparseRows {
    Span<const Real> values;
    Span<const Index> columns;
    Span<const Index> row_starts;
};

}  // namespace APPROXSVM_VERSION_NAMESPACE
}  // namespace approxsvm

#endif

// Plain data that describe a model to a predictor, and the rows of callers. This file has only types. Functions belong
// to the namespace of the target that they were compiled for.
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

// The support vectors in the narrowest lossless form (models/FORMAT.md, "support_vectors").
struct PackedVectors {
    bool compressed;            // rows hold columns and values instead of all values
    std::uint32_t value_kind;   // 0 float64, 1 float32, 2 and 3 codes of one and two bytes
    std::uint32_t index_bytes;  // of counts and columns
    std::uint32_t n_dictionary;
    const unsigned char* dictionary;
    const unsigned char* counts;  // per support vector
    const unsigned char* columns;
    const unsigned char* values;
    std::size_t n_values;
    const unsigned char* reference;  // (n_features,) float64: the values that compressed rows leave out; null for zeros
};

// A model of n > 2 classes has one decision function per pair, in LIBSVM's order, or one per class if it says so. A
// model of two classes has one.
constexpr std::size_t n_decisions_of(std::size_t n_labels, DecisionShape shape = DecisionShape::ovo) {
    return n_labels <= 2 ? 1 : shape == DecisionShape::each ? n_labels : n_labels * (n_labels - 1) / 2;
}
// Returns the position of the pair (i, j), i < j < n_labels.
constexpr std::size_t pair_position(std::size_t n_labels, std::size_t i, std::size_t j) {
    return i * (2 * n_labels - i - 1) / 2 + (j - i - 1);
}

// Views of sections. artifact/schema.inc has the number of elements and the rules of each array.

// The stages in few coordinates (models/FORMAT.md, "subspaces"): of the decision function, or of each class's pairs.
struct SubspacesView {
    std::uint32_t n_stages, reserved;  // no stages if there is no such section
    const std::uint32_t* coordinates;  // (n_stages,), ascending
    std::size_t n_coordinates;         // of the last stage, which has the most
    const unsigned char* groups;       // the data of each class in turn (artifact/sections/subspaces.hpp)
    const unsigned char* expansion;    // replaces the first stage's sums, in its coordinates: a whole artifact
};

// The data of one class, or of the only decision function. Each function has two lists. The functions of a class share
// the class's own support vectors; for a single function, these are the ones with a positive coefficient.
struct SubspaceGroup {
    double skew;  // distance of the basis from an orthonormal one
    const std::uint32_t*
        counts;  // (1 + n_forms,): number of own support vectors, then the length of each function's other list
    std::size_t n_own, n_others;   // n_others: of all other lists together
    const ResidualNumbers* known;  // (n_stages, n_forms)
    const float* basis;            // (n_coordinates, n_features)
    const float* vectors;          // (n_own + n_others, n_coordinates)
    // (n_summed, n_forms n_own + n_others): all own ones function by function, then the others'
    const float* coef;
};

// The network that speculates which of several classes wins a row.
struct SpeculationView {
    std::uint32_t n_landmarks, reserved;
    const std::uint32_t* landmarks;  // (n_landmarks,): support vectors
    const float* weights;            // (1 + n_features + n_landmarks, n_labels): constants, of features, of landmarks
};

// sum_j coef_kj cos(frequency_j.z + phase_j)
struct CosinesView {
    std::size_t n_terms;
    const double* coef;         // (n_decisions, n_terms)
    const double* phases;       // (n_terms,)
    const double* frequencies;  // (n_terms, n_features)
};

// The form of one decision function with a polynomial kernel (expansion/form.hpp).
struct FormView {
    const FormHeader* header;
    const double* linear;    // (n_features,)
    const double* triangle;  // empty for degree 1
};

// How to find a near center: points in panels of router_width, one per lane (router.hpp).
struct RouterView {
    std::uint32_t n_groups, n_panels;
    const std::uint32_t* starts;   // (n_groups + 1,): first panel of each group
    const std::uint32_t* members;  // (router_width * starts[n_groups],): the center in each slot
    const float* groups;           // panels of the groups' points
    const float* panels;           // panels of the members
};

// How raw rows become the model's rows (predict/rows/input_map.hpp).
struct InputMapView {
    std::size_t n_columns;         // number of raw columns used
    const std::uint32_t* columns;  // (n_columns,)
    std::size_t n_ops;
    const unsigned char* ops;
    std::size_t widest;                                     // most features before, between and after ops
    bool has_projection, has_inverse_normal, scales_alone;  // which ops exist
    bool takes_all_columns;                                 // in order
    std::size_t n_checked;                                  // raw columns with separate checks, used or not
    const CheckedColumn* checked;
};

// The strings of raw columns (artifact/sections/categories.hpp).
struct CategoriesView {
    std::size_t n_columns;
    const CategoryColumn* columns;  // (n_columns,)
    const std::uint32_t* ends;      // end of each text in `bytes`, column by column
    const char* bytes;
};

// How decision values become votes or scores, labels and probabilities (outputs.hpp). If everything is zero and null:
// labels by votes, values unchanged, no probabilities.
struct OutputsView {
    DecisionShape decision_shape;  // several classes: one value per pair, one score per class, or one value per class
    LabelRule label_rule;
    ProbabilityKind probability;
    std::uint32_t positive;           // a flag of the kind of probabilities (program/probabilities.h)
    DecisionShape calibration_shape;  // one_vs_rest_calibration of several classes: the calibrated quantity
    const double* numbers;            // parameters of the probabilities
    // Label rules with a threshold: the threshold and the position (0 or 1) of its label.
    const double* threshold;
};

// Number of values that the outputs of a classifier are computed from. A mean has one for each label.
constexpr std::size_t n_values_of(const OutputsView& outputs, std::size_t n_labels) {
    return outputs.probability == ProbabilityKind::members_mean ? n_labels
                                                                : n_decisions_of(n_labels, outputs.decision_shape);
}

// How the columns of an ensemble's members become its values: a sparse matrix, column by column.
struct CombinationView {
    Columns columns;
    std::size_t n_columns;
    std::size_t n_values;         // 0: there is no matrix, and the columns are the values
    const double* addends;        // (n_values,)
    const double* weights;        // column c has numbers starts[c] to starts[c + 1] - 1 ...
    const std::uint32_t* starts;  // (n_columns + 1,)
    const std::uint32_t* values;  // ... and the values to which they contribute
};

// A validated artifact, read in place: every pointer points into the artifact's bytes (models/FORMAT.md). Around one of
// its centers,
//
//     u = input_scale (z - center),   s = 2 gamma ||z - center||^2 = 2 half_theta ||u||^2
//     f(z) = intercept + output_scale exp(-s / 2) (constant + linear.u + sum_{i <= j} quadratic_ij u_i u_j + ...)
//
// on the slice of all z that equal the center except in the varying features; u and s use only these.
//
// A polynomial kernel has f(z) = intercept + sum_i dual_coef_i (gamma x_i.z + coef0)^degree. The readers of the
// sections of other kinds define theirs.
struct ModelView {
    KernelKind kernel;
    Mode mode;
    Task task;
    LabelKind label_kind;
    std::uint32_t n_labels;
    std::uint32_t first_index;  // the LIBSVM index of column 0: 0 or 1
    std::size_t n_features;
    std::size_t n_raw_features;  // of rows before they are mapped
    bool has_input_map;
    InputMapView input_map;              // how rows are mapped, if has_input_map
    const unsigned char* feature_names;  // of raw columns, a list of texts (artifact/texts.hpp); null if there are none
    CategoriesView categories;
    OutputsView outputs;          // how decision values become answers
    CombinationView combination;  // ensembles only
    double gamma;
    double input_scale;   // a power of two
    float half_theta;     // gamma / input_scale^2
    const float* center;  // (n_features,): mean or origin; the only center if n_centers is 1; null without a
                          // Gaussian kernel
    std::size_t n_decisions;
    const DecisionNumbers* decisions;  // (n_decisions,)
    const unsigned char* labels;
    const CheckRecord* check_rows;  // of the expansions, (n_check_rows,)
    std::size_t n_check_rows;
    double tolerance;           // of values; infinite if only labels count
    bool tolerance_asked;       // at compilation: rows that float64 cannot evaluate within it are refused
    double max_sv_norm;         // max ||x_i - center||
    double max_sv_norm_origin;  // max ||x_i||

    // The expansions. A model of mode exact has none; its degree and n_centers are 0. Arrays with a first dimension
    // n_centers have n_forms entries per center: one per decision function, or only the pairs of its majority class.
    int degree;                  // of a polynomial kernel, the kernel's degree
    int first_remainder_degree;  // the remainder covers this degree and all higher ones
    std::size_t n_centers;
    std::size_t n_forms;  // n_decisions, or n_labels - 1 where majority_only
    bool majority_only;
    std::size_t n_varying;         // n_features if the slice is the whole space
    const std::uint32_t* varying;  // (n_varying,): ascending columns; null if all vary
    const float* centers;          // (n_centers, n_features)
    const float* linear;           // (n_centers, n_varying)
    const float* quadratic;  // (n_centers, triangle): packed, off-diagonal entries doubled; order in quadratic.hpp
    const float* higher;     // (n_centers, degrees 3 ... degree): order in polynomial.hpp
    const float* direction;  // (n_centers, triangle), or null
    const ExpansionNumbers* expansions;  // (n_centers,)
    RouterView router;                   // if n_centers > 1
    // (n_centers,): a class that many nearby rows belong to; several classes only
    const std::uint32_t* majority_classes;

    // Polynomial kernels only.
    double coef0;
    double coef_error;   // relative error of every coefficient: the source reader's rounding
    const double* form;  // (n_decisions, form_size): see form.hpp; null in a model of mode exact

    std::size_t n_terms;  // terms of the exact sum, for any kind: support vectors, ...

    // The start of each section; null if the artifact lacks it. Readers of optional sections and of sections of one
    // kind start here (artifact/sections/).
    const unsigned char* sections[section::end];

    // Certified and exact models only.
    std::size_t n_sv;
    const double* dual_coef;            // (n_sv,), or LIBSVM's block (n_labels - 1, n_sv)
    const std::uint32_t* class_counts;  // (n_labels,): support vectors per class, for several classes
    SubspacesView subspaces;
    PackedVectors packed;
    const CheckRecord* exact_check_rows;
    std::size_t n_exact_check_rows;
    CosinesView cosines;
    SpeculationView speculation;  // if there is such a section

    // An ensemble contains other models; its combination says what becomes of their answers.
    std::size_t n_members;
    const unsigned char* members;  // whole artifacts, back to back

    // The parts that the model uses, as far as the reader has come.
    Parts needed;

    // Describes an artifact inside this one. Both have been validated together. Set by the reader that opened this one;
    // other targets, which lay models out, do not need a reader.
    Status (*describe)(const unsigned char* bytes, std::size_t n_bytes, ModelView& model, ArtifactFault* fault);
};

// Memory of the caller: its start and its number of elements, which is checked before anything is written. std::vector,
// std::array and C arrays convert to it. A null span means "not wanted".
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
// second. Python's two-class decision_function follows scikit-learn, where positive means the greater label. Its sign
// is therefore the opposite one if the model's first label is the smaller one, as in every scikit-learn model.
struct Evaluation {
    Span<double> values;        // decision values, (n_rows, n_decisions)
    Span<double> bounds;        // upper bounds of |value - exact|, (n_rows, n_decisions)
    Span<std::uint8_t> stages;  // the Stage that answered, (n_rows,); for ensembles, the last one of any member
    Span<std::uint32_t>
        labels;  // positions of the predicted labels, (n_rows, n_targets); 0 is a one-class model's inlier
    Span<std::uint8_t> certified = {};  // 1 if the first stage proves the label (regressions: has a bound), (n_rows,
                                        // n_targets); always as if labels alone were wanted
    Span<double> probabilities =
        {};  // (n_rows, n_probabilities), in the order of the model's labels; inlier and outlier
    Span<double> probability_bounds = {};  // upper bounds of |probability - probability of the exact values|
};

// Which values and bounds a caller wants. Labels do not depend on it: they are always the exact model's, unless the
// model is approximate. If only labels are wanted, the cheapest stage that proves a row's label answers it.
enum class Values : std::uint8_t {
    promised =
        0,  // within the model's tolerance, if it has one; otherwise like `exact`. Approximate models: the expansion
    settled = 1,  // by the cheapest stage that settles label and tolerance; as close as the bound says
    exact = 2     // by the float64 engine, or by the definition if that is not enough
};

// The row that caused Status::not_finite, unsorted_indices, unknown_feature, map_overflow, outside_domain,
// beyond_float64 or beyond_tolerance. status.inc says which of them also set `found` and `expected`.
struct Fault {
    std::size_t row;
    double found, expected;
    OpKind step = OpKind::affine;  // for outside_domain
};

// How rows are to be evaluated.
struct Request {
    std::size_t n_rows_in_call =
        0;  // the rows may be a part of this call; its size decides whether rows are evaluated one by one
    Values values = Values::promised;
    // (n_rows,): Euclidean distance of each row from the intended row, at most; null for 0.
    const double* row_errors = nullptr;
    Fault* fault = nullptr;  // filled by the statuses that have one
    bool keeps_promise =
        true;  // whether a caller sees the values: then those that miss a requested tolerance are refused
    // whether labels are the signs of a regression's values, so that bounds must decide the sign
    bool by_sign = false;
    // Unit roundoff with which the source maps these rows: 2^-24 if they are float32, or 0 for float64.
    double source_unit = 0.0;
};

// How a row's value was found, cheapest first.
enum Stage : std::uint8_t {
    by_expansion = 0,      // up to degree 2
    by_direction = 1,      // the same value, a sharper bound
    by_higher_degree = 2,  // degree 3 or more
    by_subspace = 3,       // kernel sums in few coordinates
    by_float32 = 4,
    by_float64 = 5,
    by_definition = 6
};
constexpr int n_stages = 7;

// A model's only center, folded into its constant and linear terms, for sparse rows (sparse.hpp).
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

// Compressed sparse rows. Columns ascend strictly within a row. A column outside [0, n_features) is a feature that the
// model has never seen: as in LIBSVM, it only adds to the squared norm.
template <class Real, class Index>
struct CsrRows {
    const Real* values;
    const Index* columns;
    const Index* row_starts;  // (n_rows + 1,)
    std::size_t n_rows;
};

// CsrRows with the size of each array, which is checked. The number of rows is that of row_starts, less one.
template <class Real, class Index>
struct SparseRows {
    Span<const Real> values;
    Span<const Index> columns;
    Span<const Index> row_starts;
};

}  // namespace APPROXSVM_VERSION_NAMESPACE
}  // namespace approxsvm

#endif

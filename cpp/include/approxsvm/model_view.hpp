// Plain data: what a predictor needs to know about a model, and how callers describe their rows.
// Only types live here. Functions live in the namespace of the target that they were compiled for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "parts.hpp"
#include "schema.hpp"
#include "status.hpp"

namespace approxsvm {

struct ArtifactFault;

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
    std::size_t n_values;
    const unsigned char* reference;  // (n_features,) float64: what compressed rows leave out; null for zeros
};

// A model of n classes, n > 2, has a decision function for each pair of them, in LIBSVM's order, unless it says that it
// has one for each class; a model of two classes has one.
constexpr std::size_t n_decisions_of(std::size_t n_labels, DecisionShape shape = DecisionShape::ovo) {
    return n_labels <= 2 ? 1 : shape == DecisionShape::each ? n_labels : n_labels * (n_labels - 1) / 2;
}
// The position of the pair (i, j), i < j < n_labels.
constexpr std::size_t pair_position(std::size_t n_labels, std::size_t i, std::size_t j) {
    return i * (2 * n_labels - i - 1) / 2 + (j - i - 1);
}

// The stages in few coordinates (models/FORMAT.md, "subspaces"): of the decision function or, of several classes, of
// the pairs of each of them.
struct SubspacesView {
    std::size_t n_stages;              // none: 0
    std::size_t n_coordinates;         // of the last stage, which has the most
    const std::uint32_t* coordinates;  // (n_stages,), ascending
    const unsigned char* groups;       // what belongs to each class, one after the other (subspaces_section.hpp)
    const unsigned char* expansion;    // in the coordinates of the first stage, in place of its sums: a whole artifact
};

// How a near center is found: points in panels of router_width, a lane each (router.hpp).
struct RouterView {
    std::size_t n_groups;
    const std::uint32_t* starts;   // (n_groups + 1,): first panel of each group
    const std::uint32_t* members;  // (router_width * starts[n_groups],): the center in each slot
    const float* groups;           // panels of the groups' own points
    const float* panels;           // of the members
};

// How raw rows become rows of the model (input_map.hpp).
struct InputMapView {
    std::size_t n_columns;         // raw columns that are used
    const std::uint32_t* columns;  // (n_columns,)
    std::size_t n_stages;
    const unsigned char* stages;
    std::size_t widest;                                     // the most features before, between and after stages
    bool has_projection, has_inverse_normal, scales_alone;  // which stages there are
    bool takes_all_columns;                                 // in their order
    std::size_t n_checked;  // raw columns that refuse more than their features do, used or not
    const CheckedColumn* checked;
};

// Which texts raw columns stand for (artifact/categories_section.hpp).
struct CategoriesView {
    std::size_t n_columns;
    const CategoryColumn* columns;  // (n_columns,)
    const std::uint32_t* ends;      // of all texts, column after column, in `bytes`
    const char* bytes;
};

// What decision values become: votes or scores of classes, labels, probabilities (outputs.hpp). All zeros and nulls say
// labels by votes, values as they are, no probabilities.
struct OutputsView {
    DecisionShape
        decision_shape;  // of several classes: a value for each pair, a score for each class, or its own value
    LabelRule label_rule;
    ProbabilityKind probability;
    std::uint32_t positive;           // a flag of the kind of probabilities (program/probabilities.h)
    DecisionShape calibration_shape;  // one_vs_rest_calibration of several classes: what was calibrated
    const double* numbers;            // of the kind of probabilities
    const double* threshold;          // label rules of thresholds: it, and the label that it is for, 0 or 1
    const double* weights;            // (n_members,) of an ensemble, where it has its own; null for equal ones
    double addend;          // of such: what a weight is multiplied by where it counts against a label, or what a
                            // sum begins with
    std::size_t n_columns;  // of the values and probabilities that sums are of; each has as many weights, and an addend
};

// Of two labels and an ensemble with weights: whether these are of a sum of values, which labels by itself or by what
// probabilities are made of it, rather than of votes or of the members' own probabilities.
constexpr bool weighs_values(LabelRule rule, ProbabilityKind kind) {
    return rule == LabelRule::value_threshold ||
           (kind != ProbabilityKind::members_mean &&
            (rule == LabelRule::probability || rule == LabelRule::probability_threshold));
}

// A validated artifact, seen in place: every pointer leads into the artifact's own bytes (models/FORMAT.md). About one
// of its centers,
//
//     u = input_scale (z - center),   s = 2 gamma ||z - center||^2 = 2 half_theta ||u||^2
//     f(z) = intercept + output_scale exp(-s / 2) (constant + linear.u + sum_{i <= j} quadratic_ij u_i u_j + ...)
//
// on the slice of all z whose features, but for those that vary, are the center's: u and s are of these alone.
//
// Of a polynomial kernel it is f(z) = intercept + sum_i dual_coef_i (gamma x_i.z + coef0)^degree; other kinds say it
// where their sections are read.
struct ModelView {
    KernelKind kernel;
    Mode mode;
    Task task;
    LabelKind label_kind;
    std::uint32_t n_labels;
    std::uint32_t first_index;  // the LIBSVM index of column 0: 0 or 1
    std::uint32_t n_check_rows;
    std::size_t n_features;
    std::size_t n_raw_features;  // of rows before they are mapped ...
    bool has_input_map;
    InputMapView input_map;  // how, where has_input_map
    const unsigned char*
        feature_names;  // of raw columns, a list of texts (artifact/texts.hpp); null where there are none
    CategoriesView categories;
    OutputsView outputs;  // what decision values become
    double gamma;
    double input_scale;   // a power of two
    float half_theta;     // gamma / input_scale^2
    const float* center;  // (n_features,): mean or origin; the only center where n_centers is 1; null but with a
                          // Gaussian kernel
    std::size_t n_decisions;
    const DecisionNumbers* decisions;  // (n_decisions,)
    const unsigned char* labels;
    const unsigned char* check_rows;
    double tolerance;           // of values; infinite when only labels count
    bool tolerance_asked;       // by somebody: a row that float64 cannot have within it is refused
    double max_sv_norm;         // max ||x_i - center||
    double max_sv_norm_origin;  // max ||x_i||

    // The expansions; none in a model of mode exact, whose degree and n_centers are 0. What is said to be of a center
    // comes n_forms times for each: for every decision function, or for the pairs of its majority class alone.
    int degree;                  // of a polynomial kernel its own
    int first_remainder_degree;  // the remainder covers this degree and all higher ones
    std::size_t n_centers;
    std::size_t n_forms;  // n_decisions, or n_labels - 1 where majority_only
    bool majority_only;
    std::size_t n_varying;         // n_features where the slice is the whole space
    const std::uint32_t* varying;  // (n_varying,): columns, ascending; null where all of them vary
    const float* centers;          // (n_centers, n_features)
    const float* linear;           // (n_centers, n_varying)
    const float* quadratic;  // (n_centers, triangle): packed, off-diagonal entries doubled; order in quadratic.hpp
    const float* higher;     // (n_centers, degrees 3 ... degree): order in polynomial.hpp
    const float* direction;  // (n_centers, triangle), or null
    const ExpansionNumbers* expansions;     // (n_centers,)
    RouterView router;                      // where n_centers > 1
    const std::uint32_t* majority_classes;  // (n_centers,): a class that many rows there belong to; of several classes

    // Polynomial kernels only.
    double coef0;
    double coef_error;   // of every coefficient, relatively: what the reader of the source rounded
    const double* form;  // (n_decisions, form_size): see form.hpp; null in a model of mode exact

    std::size_t n_terms;  // of the exact sum, of any kind: support vectors, ...

    // Where each section begins; null where the artifact has none. What is optional, or of one kind alone, is read
    // from here by who needs it (artifact/*_section.hpp).
    const unsigned char* sections[section::end];

    // Certified and exact models only.
    std::size_t n_sv;
    const double* dual_coef;            // (n_sv,), or LIBSVM's block (n_labels - 1, n_sv)
    const std::uint32_t* class_counts;  // (n_labels,): support vectors of each of several classes
    SubspacesView subspaces;
    PackedVectors packed;
    const unsigned char* exact_check_rows;
    std::uint32_t n_exact_check_rows;

    // An ensemble holds other models, and its outputs say how their answers become one.
    std::size_t n_members;
    const unsigned char* members;  // whole artifacts, one after the other
    std::size_t n_targets;         // of all members: labels, or of each regression its values

    // The parts that the model is made of, as far as the reader has come.
    Parts needed;

    // Describes an artifact inside this one, which has been validated with it, by the reader that opened this one: the
    // other targets, which lay models out, need none.
    Status (*describe)(const unsigned char* bytes, std::size_t n_bytes, ModelView& model, ArtifactFault* fault);
};

// Memory of a caller's: where it begins and how many elements it holds, which is checked before anything is written.
// A std::vector, a std::array and a C array turn into one by themselves; a null span stands for what is not wanted.
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

// What a caller wants of each row, and where it goes.
//
// A value is positive for the first label of the model (of a pair of classes: for the first of them) and 0 or negative
// for the second. Python's decision_function of two classes follows scikit-learn, where positive means the greater
// label: it has the other sign wherever the model's first label is the smaller one, as in every model of scikit-learn.
struct Evaluation {
    Span<double> values;        // decision values, (n_rows, n_decisions)
    Span<double> bounds;        // |value - exact| never exceeds it, (n_rows, n_decisions)
    Span<std::uint8_t> stages;  // which Stage answered, (n_rows,); the last one of an ensemble's members
    Span<std::uint32_t>
        labels;  // positions of the predicted labels, (n_rows, n_targets); 0 is a one-class model's inlier
    Span<std::uint8_t> certified =
        {};  // 1 where the first stage proves the label (of a regression, has a bound), (n_rows, n_targets)
    Span<double> probabilities =
        {};  // (n_rows, n_probabilities), in the order of the model's labels; inlier and outlier
    Span<double> probability_bounds = {};  // |probability - that of the exact values| never exceeds it
};

// Which values and bounds a caller wants. It has no say in labels, which are always those of the exact model unless
// the model is approximate; where they alone are asked for, the cheapest stage that proves a row's label answers it.
enum class Values : std::uint8_t {
    promised =
        0,  // within the model's tolerance, if it has one; otherwise as `exact`. Approximate models: what they have
    settled = 1,  // of the cheapest stage that settles label and tolerance: as close as the bound says, no closer
    exact = 2     // by the engine in float64, or by the definition where that is not enough
};

// Where and how far a row breaks a promise that float64 cannot keep for it (Status::map_overflow, outside_domain,
// beyond_float64, beyond_tolerance, unknown_feature).
struct Fault {
    std::size_t row;
    double found, expected;
    StageKind step = StageKind::affine;  // of outside_domain
};

// How rows are to be evaluated.
struct Request {
    std::size_t n_rows_in_call =
        0;  // of which the rows at hand may be a part: it decides whether rows are taken one by one
    Values values = Values::promised;
    // (n_rows,): how far, in Euclidean distance, each row may be from the one that is meant; null for none.
    const double* row_errors = nullptr;
    Fault* fault = nullptr;     // filled for a status that says so
    bool keeps_promise = true;  // whether values beyond a tolerance that was asked for are refused
    bool by_sign = false;       // whether values of a regression become labels, which their bounds have to leave clear
    // The unit roundoff in which the source maps these rows, which are float32 then: 2^-24; or 0 for float64.
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

// A model's only center folded into its constant and linear terms, for sparse rows (sparse.hpp).
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

// The same with the extent of each array, so that it can be checked. Rows are as many as row_starts has elements, less
// one.
template <class Real, class Index>
struct SparseRows {
    Span<const Real> values;
    Span<const Index> columns;
    Span<const Index> row_starts;
};

}  // namespace approxsvm

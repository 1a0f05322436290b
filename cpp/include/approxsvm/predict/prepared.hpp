// A model prepared for evaluation: bound tables, the folded center and, if rows may need the exact model, the support
// vectors in the layout of the exact engine. The caller provides all memory.
#ifndef APPROXSVM_PREDICT_PREPARED_HPP
#define APPROXSVM_PREDICT_PREPARED_HPP

#include <new>

#include "../arena.hpp"
#include "../artifact/reader.hpp"
#include "../artifact/support_vectors.hpp"
#include "../bounds/certificate.hpp"
#include "../exact/kernel_sums.hpp"
#include "../exact/kinds.hpp"
#include "../exact/rbf_subspace.hpp"
#include "../exact/winner_engine.hpp"
#include "../expansion/sparse.hpp"
#include "../outputs/votes.hpp"
#include "few_values_layout.hpp"
#include "input_map.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// An exact engine in one precision, and the distance of its support vectors from the model's. Besides a_i K_i it
// sums the weighted moduli |a_i| (typical_half_sq_norm + h_i) K_i, with the largest |a_i| of several functions.
template <class Real>
struct Engine {
    KernelSums<Real> sums;
    double typical_half_sq_norm;  // of the support vectors; h_i = gamma ||x_i - center||^2
    // bound the change by rounding the support vectors to Real: (n_decisions,), or (n_classes,), which a pair adds up
    const double* narrowing_errors;
};

// Returns the one in the precision of Real.
template <class Real, class In32, class In64>
constexpr const auto& in(const In32& in32, const In64& in64) {
    if constexpr (sizeof(Real) == sizeof(float))
        return in32;
    else
        return in64;
}

struct PreparedModel {
    const ModelView* view;
    const float* basis;           // (n_bases, n_cells, n_bound_terms): bounds of degree up to 2, 3, ... model.degree
    const float* weights;         // (n_centers, n_forms, n_bound_terms)
    const double* bounds;         // (n_bases, n_cells): all bounds for a single center; else null
    const float* zeros;           // (n_features,) and (n_raw_features,)
    const double* map_gains;      // of the input map, by fill_map_gains
    const double* engine_center;  // (n_features,): the center, or the reference; null for zeros
    FoldedModel folded;
    Engine<float> exact32;
    Engine<double> exact64;
    WinnerEngine winner;  // shares the support vectors of exact32
    FewValues few;        // replaces the engines for rows on its grid
    Subspaces subspaces;
    const PreparedModel* subspace_expansion;  // in the coordinates of the first subspace stage, or null
    double slope;                             // kernel_slope(gamma)
    double typical_float32_bound;             // of the float32 engine, for a row at the center
    double largest_moduli;                    // the largest A1 of any decision function
    bool at_reference, by_columns;            // results of engine_at_reference() and by_columns() for the view
    // for a kernel that is not Gaussian; replaces all of the above except zeros and map_gains
    const void* of_kind;
    const PreparedModel* const* members;   // for an ensemble, which has only these ...
    const std::uint32_t* label_positions;  // ... and, if knows_positions(), the labels of each member
};

// Rows stay sparse in the exact engine if its center is the row that support vectors are stored relative to, usually
// the origin. This loses no accuracy if the data are about as far from that row as from their mean. Writers ensure
// this, except for the origin.
inline bool engine_at_reference(const ModelView& model) {
    return model.packed.compressed && (model.packed.reference || model.max_sv_norm_origin <= 2.0 * model.max_sv_norm);
}

// Whether the engine stores support vectors by columns.
inline bool by_columns(const ModelView& model) {
    if (!is_gaussian(model)) return products_by_columns(model);
    return engine_at_reference(model) && are_few(model.packed.n_values, model.n_sv, model.n_features);
}

// Whether the engine for few values may pay (few_values_layout.hpp).
inline bool may_have_few_values(const ModelView& view, bool has_factors = registers_hold_factors) {
    return is_gaussian(view) && has_engines(view) && !by_columns(view) && has_dictionary(view, has_factors) &&
           !has_several(view);
}

// The parts that the model needs because of its layout, on any target; the reader has noted the others.
inline Parts parts_laid_out(const ModelView& model) {
    Parts parts = may_have_few_values(model, true) ? few_values : Part{};
    if ((is_gaussian(model) && has_engines(model) && engine_at_reference(model)) || by_columns(model)) parts |= sparse;
    return parts;
}

// Returns all parts of an opened model.
APPROXSVM_COLD inline Parts parts_needed(const ModelView& model) {
    Parts needed = model.needed;
    if (model.n_members == 0) return needed | parts_laid_out(model);
    for_members(model, [&](const ModelView& member) {
        needed |= parts_laid_out(member);
        return Status::ok;
    });
    return needed;
}

// All parts of an artifact whose code is left out, from its header and its section headers; this uses none of that
// code. Empty if the bytes are not an artifact.
APPROXSVM_COLD inline Parts parts_at_sight(const unsigned char* bytes, std::size_t n_bytes, bool is_member = false) {
    ModelView model{};
    SectionTable sections{};
    if (check_envelope(bytes, n_bytes, nullptr) != Status::ok || read_header(bytes, model, nullptr) != Status::ok)
        return 0;
    if (read_sections(bytes, n_bytes, sections, nullptr) != Status::ok) return 0;
    Parts parts = sections.at(section::categories) ? text_columns : Part{};
    if (const unsigned char* const outputs = sections.at(section::outputs)) {
        parts |= probabilities;
        if (sections[section::outputs].bytes < sizeof(OutputsHeader)) return parts;
        const std::uint32_t shape = read_at<OutputsHeader>(outputs, 0).decision_shape;
        if (shape >= number_of(DecisionShape::each)) model.outputs.decision_shape = DecisionShape::each;
    }
    if (model.mode == Mode::ensemble) {
        if (is_member) return 0;  // its reader refuses it
        parts |= ensembles;
        const unsigned char* member = sections.at(section::members);
        for (std::size_t n = member ? count_members(member, sections[section::members].bytes) : 0; n > 0; --n) {
            const std::size_t size = static_cast<std::size_t>(header_of(member).file_bytes);
            parts |= parts_at_sight(member, size, true);
            member += size;
        }
        return parts;
    }
    parts |= parts_of_kinds[number_of(model.kernel)];
    if (is_gaussian(model)) parts |= has_classes(model) ? one_vs_one : has_several(model) ? several_functions : Part{};
    if (const unsigned char* const map = sections.at(section::input_map))
        parts |= only_scales(map, sections[section::input_map].bytes) ? scalers : pipelines;
    if (sections.at(section::subspaces)) parts |= subspaces;
    const bool is_known = model.n_decisions > 0 && read_exact_model(sections, model, nullptr) == Status::ok;
    return is_known ? parts | parts_laid_out(model) : parts;
}

inline bool has_direction(const ModelView& model) {
    return model.direction != nullptr;
}
// The degrees after which evaluation may stop: 2, then every higher one.
inline std::size_t n_bases(const ModelView& model) {
    return model.degree > 2 ? static_cast<std::size_t>(model.degree) - 1 : model.degree > 0 ? 1 : 0;
}

// Whether sparse rows are expanded by their non-zeros: with a single center and a single decision function.
inline bool has_folded_center(const ModelView& model) {
    return model.n_centers == 1 && model.n_decisions == 1;
}
inline std::size_t values_by_columns(const ModelView& view) {
    return by_columns(view) ? view.packed.n_values : in_panels;
}
// Returns sizes for the coefficients of each function, and a weight.
inline ClassSizes sizes_of_functions(const ModelView& view) {
    return {nullptr, view.n_sv, 1, view.n_decisions + 1};
}
inline ClassSizes sizes_of_sums(const ModelView& view) {
    return has_classes(view) ? sizes_of_classes(view) : sizes_of_functions(view);
}
template <class Real>
inline std::size_t engine_bytes(const ModelView& view) {
    return kernel_sums_bytes<Real>(sizes_of_sums(view), view.n_features, values_by_columns(view));
}

inline std::size_t n_zeros(const ModelView& view) {
    return (view.n_features > view.n_raw_features ? view.n_features : view.n_raw_features) + panel_rows;
}

inline bool has_class_engines(const ModelView& view) {
    return is_gaussian(view) && has_engines(view) && has_classes(view);
}
// Everything that the winner's engine needs; empty for other models.
inline PairCoefficients pair_coefficients(const ModelView& view) {
    if (!has_class_engines(view) || by_columns(view)) return {};
    return {view.dual_coef, view.class_counts, view.n_labels, view.n_sv};
}

template <Parts parts>
inline std::size_t single_prepared_bytes(const ModelView& view);

// An expansion in a subspace; it has been validated.
inline ModelView subspace_expansion_of(const ModelView& view) {
    ModelView expansion;
    const unsigned char* const bytes = view.subspaces.expansion;
    view.describe(bytes, static_cast<std::size_t>(header_of(bytes).file_bytes), expansion, nullptr);
    return expansion;
}

// The structures that the engines are laid out in.
struct EnginePieces {
    PreparedModel* model;
    float *basis = nullptr, *weights = nullptr, *zeros;
    double *bounds = nullptr, *folded = nullptr, *vector = nullptr, *narrowing = nullptr, *map_gains;
    double* engine_center = nullptr;
    std::uint32_t* features = nullptr;
    unsigned char *exact32 = nullptr, *exact64 = nullptr;
    const void* of_kind = nullptr;
};

template <Parts parts>
struct PreparedPieces : EnginePieces {
    IfPart<parts, one_vs_one, WinnerEngineMemory> winner;
    IfPart<parts, subspaces, SubspacesMemory> in_subspaces;
    IfPart<parts, few_values, FewValuesMemory> few;
    ModelView* expansion = nullptr;  // expansion of a subspace, and the memory of its layout
    unsigned char* of_expansion = nullptr;

    APPROXSVM_COLD PreparedPieces(const ModelView& view, Arena& arena, bool only_counts)
        : winner(view, pair_coefficients(view), arena),
          in_subspaces(view, arena),
          few(view, may_have_few_values(view), arena) {
        const std::size_t d = view.n_features;
        model = arena.take<PreparedModel>(1);
        if (view.subspaces.expansion) {
            expansion = arena.take<ModelView>(1);
            of_expansion = arena.take<unsigned char>(single_prepared_bytes<parts>(subspace_expansion_of(view)));
        }
        zeros = arena.take<float>(n_zeros(view));
        map_gains = arena.take<double>(view.has_input_map ? map_gain_doubles<parts>(view.input_map) : 0);
        of_kind = lay_out_kind<parts>(view, arena, only_counts);
        if (!is_gaussian(view)) return;
        basis = arena.take<float>(n_bases(view) * n_cells * n_bound_terms);
        weights = arena.take<float>(view.n_centers * view.n_forms, n_bound_terms);
        bounds = arena.take<double>(has_folded_center(view) ? n_bases(view) * n_cells : 0);
        folded = arena.take<double>(has_folded_center(view) ? folded_doubles(d) : 0);
        vector = arena.take<double>(d);
        features = arena.take<std::uint32_t>(engine_at_reference(view) ? d : 0);
        engine_center = arena.take<double>(has_engines(view) ? d : 0);
        narrowing = arena.take<double>(2 * (has_classes(view) ? std::size_t{view.n_labels} : view.n_decisions));
        exact32 = arena.take<unsigned char>(has_engines(view) ? engine_bytes<float>(view) : 0);
        exact64 = arena.take<unsigned char>(has_engines(view) ? engine_bytes<double>(view) : 0);
    }
};

// Returns the bytes that a model needs if it is not an ensemble.
template <Parts parts>
APPROXSVM_COLD inline std::size_t single_prepared_bytes(const ModelView& view) {
    Arena counter(nullptr);
    const PreparedPieces<parts> pieces(view, counter, true);
    return counter.bytes_anywhere();
}

// Whether members of an ensemble may have only some of its labels, or another order.
inline bool knows_positions(const ModelView& ensemble) {
    return is_of_targets(ensemble) || is_labeled_sum(ensemble) || counts_votes(ensemble);
}

// Data of an ensemble: its members' views and their layouts.
struct PreparedMembers {
    PreparedModel* model;
    ModelView* views;
    const PreparedModel** members;
    std::uint32_t* label_positions;

    APPROXSVM_COLD PreparedMembers(const ModelView& view, Arena& arena) {
        std::size_t n_labels = 0;
        for_members(view, [&](const ModelView& member) {
            n_labels += knows_positions(view) ? member.n_labels : 0;
            return Status::ok;
        });
        model = arena.take<PreparedModel>(1);
        views = arena.take<ModelView>(view.n_members);
        members = arena.take<const PreparedModel*>(view.n_members);
        label_positions = arena.take<std::uint32_t>(n_labels);
    }
};

// Returns the bytes of memory for prepare(). The memory must not move while the prepared model is used.
template <Parts parts = all_parts>
APPROXSVM_COLD inline std::size_t prepared_bytes(const ModelView& view) {
    if (!has(parts, ensembles) || view.n_members == 0) return single_prepared_bytes<parts>(view);
    Arena counter(nullptr);
    PreparedMembers pieces(view, counter);
    for_members(view, [&](const ModelView& member) {
        counter.take<unsigned char>(single_prepared_bytes<parts>(member));
        return Status::ok;
    });
    return counter.bytes_anywhere();
}

// --- the bound of an engine

template <class Real>
constexpr double unit_of = sizeof(Real) == 4 ? unit32 : unit64;

// Upper bound of the summation depth of an inner product with a row of n_terms non-zero coordinates, and of the norm of
// a support vector, which may have many more non-zeros. Norms are computed in float64, so in float32 their error is
// negligible.
template <class Real>
inline std::size_t products_depth(const KernelVectors<Real>& e, std::size_t n_terms) {
    const bool by_columns = e.columns.n_lanes > 0;
    const std::size_t in_common = n_terms < e.columns.max_values ? n_terms : e.columns.max_values;
    const std::size_t of_norm = sizeof(Real) == sizeof(float) ? 0
                                : by_columns                  ? depth_in_lanes(e.columns.max_values)
                                                              : inner_product_depth(e.n_features);
    std::size_t depth = inner_product_depth(n_terms);
    if (by_columns && in_common > depth) depth = in_common;
    return of_norm > depth ? of_norm : depth;
}

// Bounds the rounding error of an exact engine's sum at a row with n_terms non-zero coordinates and h = gamma ||z -
// center||^2 = half_sq_norm. Infinite if the cancellation in a distance may be harmful.
//
// The argument of exp for support vector i has the error d_i = u (depth + 8) (sqrt(h_i) + sqrt(h))^2 <= 2 u (depth + 8)
// (h_i + h). While d_i <= 2^-5, the kernel value has the relative error 1.05 (2.125 d_i + 6.1 u) at most. Summed over
// |a_i| K_i this is 1.05 (2.125 * 2 u (depth + 8) (H + h S) + 6.1 u S) with S = sum |a_i| K_i and H = sum |a_i| h_i
// K_i. The engine computes Q = t S + H, t a typical h_i, so that S <= Q / t and H + h S <= max(1, h / t) Q.
struct RowRounding {
    double of_reached, most_reached, row_share, of_all_moduli;
    double underflow;  // infinite if there is no bound
};
template <class Real>
class EngineBound {
  public:
    explicit EngineBound(const Engine<Real>& engine) : EngineBound(engine.sums.vectors, engine.typical_half_sq_norm) {}
    APPROXSVM_NOINLINE EngineBound(const KernelVectors<Real>& e, double typical_half_sq_norm)
        : engine_(e),
          t_(typical_half_sq_norm),
          furthest_(static_cast<double>(e.max_half_sq_norm)),
          inverse_t_((1.0 + 0x1p-50) / t_),
          root_of_furthest_(std::sqrt(furthest_)),
          of_moduli_(1.05 * 6.1 * unit_of<Real> + 1.01 * (static_cast<double>(e.n_sv) + 8.0) * unit64) {}

    // Returns the row's part in the bounds of all decision functions.
    APPROXSVM_NOINLINE RowRounding of_row(double half_sq_norm, std::size_t n_terms) const {
        constexpr double u = unit_of<Real>;
        const double per_reach = 1.01 * u * (static_cast<double>(products_depth(engine_, n_terms)) + 8.0);
        const double reach = root_of_furthest_ + std::sqrt(half_sq_norm);
        // Rounding moves the row by u times its distance to the center, and changes f by at most sqrt(2 gamma / e) A1
        // times that.
        const double moved = 1.01 * 0.61 * 2.0 * u * std::sqrt(2.0 * half_sq_norm);
        return {1.05 * 4.25 * per_reach, furthest_ + half_sq_norm, half_sq_norm > t_ ? half_sq_norm * inverse_t_ : 1.0,
                moved + 0x1p-120, per_reach * reach * reach <= 0x1p-5 ? 0x1p-1040 : infinity};
    }

    // weighted_moduli is Q.
    APPROXSVM_INLINE double of(const RowRounding& row, double weighted_moduli, double narrowing_error,
                               const DecisionNumbers& decision) const {
        const double a1 = decision.sum_moduli;
        // exp does not return less than 2^-126.
        const double weighted = 1.001 * weighted_moduli + 0x1p-120 * a1 * (t_ + furthest_);
        const double share = weighted * inverse_t_, moduli = share < a1 ? share : a1;
        const double most = a1 * row.most_reached, reached = weighted * row.row_share;
        const double rounding = row.of_reached * (reached < most ? reached : most) + of_moduli_ * moduli;
        return rounding + narrowing_error + row.of_all_moduli * a1 + 0x1p-51 * std::fabs(decision.intercept) +
               row.underflow;
    }

  private:
    const KernelVectors<Real>& engine_;
    const double t_, furthest_, inverse_t_, root_of_furthest_, of_moduli_;
};

// --- the bound of sums over lists

// The error of a row's sums over lists is a multiple of the sums' moduli plus a multiple of A1; these are the factors.
struct ListedErrors {
    double of_moduli, of_all_moduli;
};

// Support vectors farther from the center than the row by more than this, in units of 1 / sqrt(gamma), count as this
// far.
constexpr double far_beyond = 4.0;

// Rounding errors of kernel values and sums in float32 (rbf_winner.hpp). Let r = sqrt(h) and r_i = sqrt(h_i) be the
// distances of row and support vector from the center in units of 1 / sqrt(gamma). As EngineBound derives, the argument
// of exp has the error d_i = p (r_i + r)^2, p = u (depth + 8), and K_i the relative error 1.05 (2.125 d_i + 6.1 u).
//
// Up to r_i = r + g, g = far_beyond, that is at most what it is there, or at the furthest support vector: a factor of
// the moduli. Beyond, with r_i = r + g + t, K_i <= exp(-(g + t)^2) is next to nothing, and so is the rest,
//     p ((r_i + r)^2 - (2 r + g)^2) K_i = p t (4 r + 2 g + t) K_i
//         <= p exp(-g^2) (t (4 r + 2 g) + t^2) exp(-2 g t) <= p exp(-g^2) ((2 r / g + 1) / e + 1 / (g e)^2),
// as t exp(-2 g t) <= 1 / (2 g e) and t^2 exp(-2 g t) <= 1 / (g e)^2. Rounding of the norms moves g by less than 2^-12,
// as d_i <= 2^-5, and the rest by less than a hundredth.
//
// The sums add listed_depth roundings in float32; what underflows is below 2^-60 of each coefficient. Infinite if the
// cancellation in a distance may be harmful.
APPROXSVM_NOINLINE inline ListedErrors listed_errors(const KernelVectors<float>& e, double half_sq_norm) {
    const double per_reach = 1.01 * unit32 * (static_cast<double>(inner_product_depth(e.n_features)) + 8.0);
    const double furthest = std::sqrt(static_cast<double>(e.max_half_sq_norm)), own = std::sqrt(half_sq_norm);
    if (!(per_reach * (furthest + own) * (furthest + own) <= 0x1p-5)) return {infinity, infinity};
    const double listed = own + far_beyond, reach = (listed < furthest ? listed : furthest) + own;
    const double kernels = 1.05 * (2.125 * per_reach * reach * reach + 6.1 * unit32);
    const double sums = 1.01 * listed_depth * unit32 + 1.01 * (static_cast<double>(e.n_sv) + 8.0) * unit64;
    constexpr double of_gap = 1.1254e-7;  // exp(-far_beyond^2)
    const double of_far = listed < furthest ? 2.3 * per_reach * of_gap * (0.19 * own + 0.38) : 0.0;
    return {1.002 * (kernels + 1.1 * sums), 1.1 * of_far + 0x1p-58};
}

// Bounds the sums of kernel values on a grid (rbf_grid.hpp).
inline ListedErrors grid_errors(std::size_t n_sv) {
    const double sums = 1.01 * listed_depth * unit32 + 1.01 * (static_cast<double>(n_sv) + 8.0) * unit64;
    return {1.002 * (1.05 * (grid_errors_of_moduli + 6.1) * unit32 + 1.1 * sums),
            1.1 * grid_errors_of_far * unit32 + 0x1p-58};
}

// Returns the row's part in the bounds of all pairs.
inline ListedErrors winner_errors(const PreparedModel& model, double half_sq_norm, double row_error) {
    const ListedErrors listed = listed_errors(*model.winner.sums.kernels, half_sq_norm);
    if (!(listed.of_moduli < infinity)) return listed;
    const double rounded = 1.01 * 0.61 * 2.0 * unit32 * std::sqrt(2.0 * half_sq_norm), moved = model.slope * row_error;
    const double of_row = row_error == 0.0 ? 0.0 : moved < 1.0 ? moved : 1.0;
    return {listed.of_moduli, 1.0001 * (rounded + of_row + listed.of_all_moduli)};
}

// The part that only this pair has.
inline double winner_bound_of_pair(const PreparedModel& model, std::size_t w, std::size_t c,
                                   const DecisionNumbers& decision) {
    return 1.0001 * (model.exact32.narrowing_errors[w] + model.exact32.narrowing_errors[c] + decision.value_error) +
           0x1p-51 * std::fabs(decision.intercept) + 0x1p-1040;
}

// --- filling the engines

// Visits the support vectors one by one in the engines' coordinates, u = input_scale (x - engine center). If the center
// is the reference of the stored support vectors, it visits only their non-zeros.
class EngineVectors {
  public:
    EngineVectors(const ModelView& view, const double* engine_center, const EnginePieces& pieces)
        : view_(view), center_(engine_center), pieces_(pieces), reader_(view) {}

    APPROXSVM_NOINLINE Coordinates next() {
        double* const u = pieces_.vector;
        std::size_t n = 0;
        if (!engine_at_reference(view_)) {
            reader_.next(u);
            for (; n < view_.n_features; ++n) u[n] = (u[n] - center_[n]) * view_.input_scale;
            return {u, nullptr, n};
        }
        reader_.next_stored([&](std::size_t j, double value) {
            const double left_out = center_ ? center_[j] : 0.0;
            if (value == left_out) return;
            u[n] = (value - left_out) * view_.input_scale;
            pieces_.features[n++] = static_cast<std::uint32_t>(j);
        });
        return {u, pieces_.features, n};
    }

  private:
    const ModelView& view_;
    const double* const center_;
    const EnginePieces& pieces_;
    SupportVectorReader reader_;
};

inline double sq_norm_of(const Coordinates& x) {
    return sq_norm(x.values, x.n);
}

// Returns the distance by which rounding to float32 moves a support vector.
APPROXSVM_INLINE double lost_in_float32(const Coordinates& x) {
    double sq_error = 0.0;
    for (std::size_t k = 0; k < x.n; ++k) {
        const double lost = x.values[k] - static_cast<double>(static_cast<float>(x.values[k]));
        sq_error += lost * lost;
    }
    return std::sqrt(sq_error);
}

// Returns the mean of gamma ||x_i - center||^2 over the first support vectors, but at least 2^-20.
APPROXSVM_COLD inline double typical_half_sq_norm(const ModelView& view, double half_theta, EngineVectors vectors) {
    const std::size_t n = view.n_sv < 256 ? view.n_sv : 256;
    double sum = 0.0;
    for (std::size_t i = 0; i < n; ++i) sum += half_theta * sq_norm_of(vectors.next());
    const double mean = n > 0 ? sum / static_cast<double>(n) : 0.0;
    return mean > 0x1p-20 && mean < 0x1p20 ? mean : mean >= 0x1p20 ? 0x1p20 : 0x1p-20;
}

// Slope of the kernel: exp(-gamma r^2) changes by at most sqrt(2 gamma / e) per unit of distance, sqrt(theta / e) in
// scaled coordinates.
inline double kernel_slope(double half_theta) {
    return 1.01 * std::sqrt(2.0 * half_theta / 2.718281828459045);
}

// Counts all values for writers of columns.
APPROXSVM_COLD inline void count_values(const ModelView& view, EngineVectors vectors, KernelSumsWriter<float>& writer32,
                                        KernelSumsWriter<double>& writer64) {
    if (!by_columns(view)) return;
    for (std::size_t i = 0; i < view.n_sv; ++i) {
        const Coordinates x = vectors.next();
        for (std::size_t k = 0; k < x.n; ++k) {
            writer32.count(x.features[k]);
            writer64.count(x.features[k]);
        }
    }
    writer32.finish_counting();
    writer64.finish_counting();
}

// Lays the support vectors out for both engines. Adds up |a_i| ||narrowed - exact|| for their bounds, and computes the
// bound of the float32 engine for a row at the center if there is one function.
APPROXSVM_COLD inline void fill_engines(const ModelView& view, const EnginePieces& pieces, PreparedModel& model) {
    const std::size_t d = view.n_features, n_values = values_by_columns(view);
    const bool classes = has_classes(view);
    const std::size_t n_errors = classes ? view.n_labels : view.n_decisions, n_coef = classes ? n_errors - 1 : n_errors;
    const double half_theta = view.gamma / view.input_scale / view.input_scale, slope = kernel_slope(half_theta);
    KernelSumsWriter<float> writer32(pieces.exact32, sizes_of_sums(view), d, half_theta, n_values);
    KernelSumsWriter<double> writer64(pieces.exact64, sizes_of_sums(view), d, half_theta, n_values);
    EngineVectors vectors(view, model.engine_center, pieces);
    count_values(view, vectors, writer32, writer64);
    double *const errors32 = pieces.narrowing, *const errors64 = errors32 + n_errors;
    double weighted_moduli = 0.0;
    for (std::size_t k = 0; k < 2 * n_errors; ++k) errors32[k] = 0.0;
    const double t = typical_half_sq_norm(view, half_theta, vectors);
    const std::ptrdiff_t stride = static_cast<std::ptrdiff_t>(view.n_sv);
    for_support_vectors(view, [&](std::size_t c, std::size_t i) {
        const Coordinates x = vectors.next();
        const double* const coef = view.dual_coef + i;
        const double half_sq_norm = half_theta * sq_norm_of(x), lost = lost_in_float32(x);
        const double rounded = 2.0 * unit64 * std::sqrt(half_sq_norm / half_theta);
        const double largest = largest_modulus(coef, n_coef, stride), weight = largest * (t + half_sq_norm);
        for (std::size_t k = classes ? c : 0; k < (classes ? c + 1 : n_errors); ++k) {
            const double modulus = classes ? largest : std::fabs(coef[k * view.n_sv]);
            errors32[k] += slope * modulus * (lost + rounded);
            errors64[k] += slope * modulus * rounded;
        }
        if (view.n_decisions == 1) weighted_moduli += weight * std::exp(-half_sq_norm);
        writer32.add_support_vector(x, coef, stride, weight);
        writer64.add_support_vector(x, coef, stride, weight);
    });
    model.exact32 = {writer32.expansion(), t, errors32};
    model.exact64 = {writer64.expansion(), t, errors64};
    if (view.n_decisions != 1) return;
    const EngineBound<float> bound(model.exact32);
    model.typical_float32_bound = bound.of(bound.of_row(t, d), weighted_moduli, *errors32, view.decisions[0]);
}

// The engines' center: the reference that sparse rows have, or the model's center.
APPROXSVM_COLD inline const double* fill_engine_center(const ModelView& view, double* center) {
    if (!has_engines(view) || (engine_at_reference(view) && !view.packed.reference)) return nullptr;
    for (std::size_t j = 0; j < view.n_features; ++j) {
        center[j] = view.packed.reference ? reference_value(view.packed, j) : static_cast<double>(view.center[j]);
    }
    return center;
}

template <Parts parts>
APPROXSVM_COLD inline const PreparedModel& lay_out_single(const ModelView& view, void* memory);

// Everything that a Gaussian kernel needs.
template <Parts parts>
APPROXSVM_COLD inline void lay_out_gaussian(const ModelView& view, const PreparedPieces<parts>& pieces,
                                            PreparedModel& model) {
    model.engine_center = fill_engine_center(view, pieces.engine_center);
    model.slope = kernel_slope(view.gamma);
    // The degrees after which evaluation may stop (n_bases).
    if (view.degree > 0) fill_bases(view, view.degree < 2 ? view.degree : 2, view.degree, pieces.basis);
    for (std::size_t e = 0; e < view.n_centers * view.n_forms; ++e) {
        const std::size_t decision = decision_of(view, e / view.n_forms, e % view.n_forms);
        fill_weights(view.expansions[e], view.decisions[decision], pieces.weights + e * n_bound_terms);
    }
    for (std::size_t cell = 0; has_folded_center(view) && cell < n_bases(view) * n_cells; ++cell) {
        pieces.bounds[cell] = bound_of(pieces.basis + cell * n_bound_terms, pieces.weights);
    }
    model.bounds = has_folded_center(view) ? pieces.bounds : nullptr;
    model.basis = pieces.basis;
    model.weights = pieces.weights;
    if (has_folded_center(view)) model.folded = fold_center(view, pieces.folded);
    if (has_engines(view)) fill_engines(view, pieces, model);
    if constexpr (has(parts, one_vs_one)) {
        if (has_class_engines(view)) {
            model.winner = fill_winner_engine(view, pair_coefficients(view), model.exact32.sums.vectors, pieces.winner,
                                              model.engine_center);
        }
    }
    if constexpr (has(parts, few_values)) {
        if (may_have_few_values(view)) model.few = FewValuesWriter(view, pieces.few).write(model.slope);
    }
    if constexpr (has(parts, subspaces)) {
        model.subspaces = fill_subspaces(view, pieces.in_subspaces);
        if (!pieces.expansion) return;
        new (pieces.expansion) ModelView(subspace_expansion_of(view));
        model.subspace_expansion = &lay_out_single<parts>(*pieces.expansion, pieces.of_expansion);
    }
}

// Fills memory of single_prepared_bytes().
template <Parts parts>
APPROXSVM_COLD inline const PreparedModel& lay_out_single(const ModelView& view, void* memory) {
    Arena arena(memory);
    const PreparedPieces<parts> pieces(view, arena, false);
    PreparedModel& model = *new (pieces.model) PreparedModel{};
    model.view = &view;
    model.at_reference = engine_at_reference(view);
    model.by_columns = by_columns(view);
    for (std::size_t j = 0; j < n_zeros(view); ++j) pieces.zeros[j] = 0.0f;
    if (has(parts, scalers) && view.has_input_map) fill_map_gains<parts>(view.input_map, pieces.map_gains);
    model.map_gains = pieces.map_gains;
    for (std::size_t k = 0; k < view.n_decisions; ++k) {
        model.largest_moduli = std::fmax(model.largest_moduli, view.decisions[k].sum_moduli);
    }
    model.zeros = pieces.zeros;
    model.of_kind = pieces.of_kind;
    if constexpr (has(parts, rbf)) {
        if (is_gaussian(view)) lay_out_gaussian<parts>(view, pieces, model);
    }
    return model;
}

// Fills memory of prepared_bytes().
template <Parts parts = all_parts>
APPROXSVM_COLD inline const PreparedModel& lay_out(const ModelView& view, void* memory) {
    if (!has(parts, ensembles) || view.n_members == 0) return lay_out_single<parts>(view, memory);
    Arena arena(memory);
    PreparedMembers pieces(view, arena);
    PreparedModel& model = *new (pieces.model) PreparedModel{};
    model.view = &view;
    model.members = pieces.members;
    model.label_positions = pieces.label_positions;
    std::uint32_t* next = pieces.label_positions;
    std::size_t k = 0;
    for_members(view, [&](const ModelView& member) {
        const ModelView& kept = *new (pieces.views + k) ModelView(member);
        for (std::size_t c = 0; knows_positions(view) && c < kept.n_labels; ++c) {
            *next++ = static_cast<std::uint32_t>(position_in(view, kept, c));
        }
        pieces.members[k++] =
            &lay_out_single<parts>(kept, arena.take<unsigned char>(single_prepared_bytes<parts>(kept)));
        return Status::ok;
    });
    return model;
}

// Fills the memory, prepared_bytes(view) long. `view` must outlive `prepared`, so it may not be a temporary.
Status prepare(const ModelView&& view, Span<unsigned char> memory, const PreparedModel*& prepared) = delete;
inline Status prepare(const ModelView& view, Span<unsigned char> memory, const PreparedModel*& prepared) {
    if (memory.size < prepared_bytes(view)) return Status::buffer_too_small;
    prepared = &lay_out(view, memory.data);
    return Status::ok;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

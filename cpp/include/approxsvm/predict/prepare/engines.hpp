// Lays out the support vectors for both exact engines.
#ifndef APPROXSVM_PREDICT_PREPARE_ENGINES_HPP
#define APPROXSVM_PREDICT_PREPARE_ENGINES_HPP

#include "prepared_model.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

// The memory used for the layout of the engines.
struct EnginePieces {
    PreparedModel* model;
    float *basis = nullptr, *weights = nullptr, *zeros;
    double *bounds = nullptr, *folded = nullptr, *vector = nullptr, *narrowing = nullptr, *map_gains;
    double* engine_center = nullptr;
    std::uint32_t* features = nullptr;
    unsigned char *exact32 = nullptr, *exact64 = nullptr;
    const void* of_kind = nullptr;
};

// Visits the support vectors in order, in the engines' coordinates, u = input_scale (x - engine center). If the center
// is the reference of the stored support vectors, only nonzeros are visited.
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

// Returns the mean of gamma ||x_i - center||^2 over the first 256 support vectors, or all if there are fewer, clamped
// to [2^-20, 2^20].
APPROXSVM_COLD inline double typical_half_sq_norm(const ModelView& view, double half_theta, EngineVectors vectors) {
    const std::size_t n = view.n_sv < 256 ? view.n_sv : 256;
    double sum = 0.0;
    for (std::size_t i = 0; i < n; ++i) sum += half_theta * sq_norm_of(vectors.next());
    const double mean = n > 0 ? sum / static_cast<double>(n) : 0.0;
    return mean > 0x1p-20 && mean < 0x1p20 ? mean : mean >= 0x1p20 ? 0x1p20 : 0x1p-20;
}

// Slope of the kernel: exp(-gamma r^2) changes by at most sqrt(2 gamma / e) per unit of distance, or sqrt(theta / e) in
// scaled coordinates.
inline double kernel_slope(double half_theta) {
    return 1.01 * std::sqrt(2.0 * half_theta / 2.718281828459045);
}

// Counts all values for writers that store support vectors by column.
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

// Lays out the support vectors for both engines. For the engines' bounds, sums slope |a_i| ||narrowed - exact|| over
// the support vectors. If there is a single function, computes a typical bound of the float32 engine, from the kernel
// values of a row at the center.
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

// Returns the engines' center: the reference of compressed support vectors, else the model's center.
APPROXSVM_COLD inline const double* fill_engine_center(const ModelView& view, double* center) {
    if (!has_engines(view) || (engine_at_reference(view) && !view.packed.reference)) return nullptr;
    for (std::size_t j = 0; j < view.n_features; ++j) {
        center[j] = view.packed.reference ? reference_value(view.packed, j) : static_cast<double>(view.center[j]);
    }
    return center;
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

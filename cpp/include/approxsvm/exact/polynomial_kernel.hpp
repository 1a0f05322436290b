// Polynomial kernels, which include the linear kernel:
//
//     f(z) = intercept + sum_i a_i K_i,   K_i = b_i^p,   b_i = gamma x_i.z + coef0,   p = 1 ... 6,
//
// and the sigmoid kernel, K_i = tanh(b_i), which uses the same engine and has degree 0.
//
// The engine computes this sum in float64 for dense and sparse rows: inner products first (products.hpp), then the sums
// for all class pairs at once (kernel_sums.hpp). If p is 1 or 2, the artifact may contain the whole sum as a quadratic
// form (expansion/form.hpp).
#ifndef APPROXSVM_EXACT_POLYNOMIAL_KERNEL_HPP
#define APPROXSVM_EXACT_POLYNOMIAL_KERNEL_HPP

#include <cmath>
#include <new>

#include "../arena.hpp"
#include "../artifact/ops/op.hpp"
#include "../artifact/support_vectors.hpp"
#include "../bounds/certificate.hpp"
#include "../expansion/decision_function.hpp"
#include "../expansion/form.hpp"
#include "../model_view.hpp"
#include "../outputs/votes.hpp"
#include "../simd/tanh.hpp"
#include "kernel_sums.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

#include "../program/terms.h"

inline bool has_engines(const ModelView& model) {
    return model.mode != Mode::approximate;
}

// --- bounds for sums over support vectors

// The polynomial M of program/terms.h, where t_i = b_i.
struct PolynomialMoments {
    int power;     // power p; 0 for a sigmoid kernel
    double coef0;  // |coef0|
    double reach;
    const double* moments;  // moments of each function, (n_decisions, n_moments)
    double longest;         // max ||x_i||

    static std::size_t n_moments(int power) { return static_cast<std::size_t>(approxsvm_moduli_degree(power)) + 1; }
};

// The number of roundings in b_i, and the maximum effect of underflow, in units of 2^-1000.
struct ProductDepth {
    double roundings;
    double underflow;
};

// Bounds the error of a sum over all support vectors at a row whose norm is `norm`. The row differs from the exact row
// by at most row_error, and the exact row's norm is not larger.
//
// The error of b_i is at most u (depth + 2) B_i: the summation depth of its inner product, plus coef0 and the rounding
// of gamma x_i. Underflow adds less than u 2^-1000 (1 + ||z||), or |gamma| times this if the multiplication by gamma
// comes last; it is treated as one more rounding, and B_i is increased accordingly. A power takes p - 1 roundings, and
// tanh has an error of at most tanh_error_units. Each product with a_i passes through at most n_sv + 16 additions and
// roundings. The coefficients themselves have a relative error of at most coef_error.
inline double polynomial_bound(const ModelView& model, const PolynomialMoments& kernel, std::size_t decision,
                               const ProductDepth& depth, double norm, double row_error) {
    const DecisionNumbers& numbers = model.decisions[decision];
    const double a1 = numbers.sum_moduli, n_sv = static_cast<double>(model.n_sv);
    const double coef0 = kernel.coef0 + 0x1p-1000 * (1.0 + norm + depth.underflow);
    const auto moduli_at = [&](int order) {
        return approxsvm_moduli_at(kernel.moments + decision * PolynomialMoments::n_moments(kernel.power), kernel.power,
                                   order, kernel.reach, norm, coef0);
    };
    const double moduli = moduli_at(0);
    const bool is_bounded = kernel.power == 0;
    if (is_bounded && !(moduli < infinity)) return infinity;
    const double of_arguments = 1.02 * unit64 * (depth.roundings + 5.0);
    const double of_terms = 1.02 * unit64 * (n_sv + 16.0 + (is_bounded ? tanh_error_units : 0.0)) + model.coef_error;
    // Without support vectors, the sum of absolute values is 0; avoid 0 times infinity.
    const double moved = row_error != 0.0 ? row_error * moduli_at(1) : 0.0, most = (2.0 + of_terms) * a1;
    const double error = approxsvm_sum_error(kernel.power, of_arguments, of_terms, moduli, a1) + moved;
    return 1.0001 * ((is_bounded && error > most ? most : error) + numbers.value_error) +
           0x1p-51 * std::fabs(numbers.intercept) + 0x1p-1060 * (a1 + n_sv + 1.0);
}

// --- the model, prepared

struct PolynomialKernel {
    PolynomialMoments moments;
    const FormNorms* form_norms;  // norms of each quadratic form, (n_decisions,), if any
    KernelSums<double> engine;    // engine in "exact" mode; a single class unless there are class pairs
    double coef0;
    int degree;
    // A row is rejected if its norm exceeds most_norm or, if there is only a form, its bound exceeds most_bound. In the
    // source, a term or a sum of terms may then overflow, although the function itself does not.
    double most_norm = infinity, most_bound = infinity;

    // Returns an upper bound on the summation depth of an inner product with a row of n_terms nonzero coordinates. If
    // support vectors are stored by column, common terms are added one after another.
    std::size_t product_depth(std::size_t n_terms) const {
        const std::size_t most = engine.vectors.columns.max_values, in_common = n_terms < most ? n_terms : most;
        const std::size_t depth = inner_product_depth(n_terms);
        return engine.vectors.columns.n_lanes > 0 && in_common > depth ? in_common : depth;
    }
};

inline bool has_polynomial_engine(const ModelView& view) {
    return is_of_products(view) && view.mode == Mode::exact;
}
// Return whether only the nonzeros of support vectors are stored, and whether the engine stores them by column.
inline bool has_sparse_products(const ModelView& view) {
    return view.packed.compressed && !view.packed.reference;
}
inline bool products_by_columns(const ModelView& view) {
    return has_polynomial_engine(view) && has_sparse_products(view) &&
           are_few(view.packed.n_values, view.n_sv, view.n_features);
}
// Weights for class pairs are zero. In other models, all functions belong to one class; the last function's
// coefficients are stored as weights.
inline ClassSizes sizes_of_classes(const ModelView& view) {
    return {view.class_counts, 0, view.n_labels, view.n_labels};
}
inline ClassSizes sizes_of_all(const ModelView& view) {
    return {nullptr, view.n_sv, 1, view.n_decisions};
}
inline ClassSizes polynomial_sizes(const ModelView& view) {
    return has_classes(view) ? sizes_of_classes(view) : sizes_of_all(view);
}
inline std::size_t polynomial_engine_bytes(const ModelView& view) {
    const std::size_t n_values = products_by_columns(view) ? view.packed.n_values : in_panels;
    return kernel_sums_bytes<double>(polynomial_sizes(view), view.n_features, n_values);
}

struct PolynomialPieces {
    PolynomialKernel* prepared;
    double *moments, *vector;
    std::uint32_t* features;  // features of the elements of `vector`
    FormNorms* form_norms;
    unsigned char* engine;

    APPROXSVM_COLD PolynomialPieces(const ModelView& view, Arena& arena) {
        prepared = arena.take<PolynomialKernel>(1);
        const std::size_t n_moments = PolynomialMoments::n_moments(view.degree);
        moments = arena.take<double>(has_engines(view) ? n_moments * view.n_decisions : 0);
        vector = arena.take<double>(view.n_features);
        features = arena.take<std::uint32_t>(has_sparse_products(view) ? view.n_features : 0);
        form_norms = arena.take<FormNorms>(view.form ? view.n_decisions : 0);
        engine = arena.take<unsigned char>(has_polynomial_engine(view) ? polynomial_engine_bytes(view) : 0);
    }
};

// Reads the support vectors in order; only their nonzeros if only these are stored.
class ProductVectors {
  public:
    ProductVectors(const ModelView& view, const PolynomialPieces& pieces)
        : x_(pieces.vector),
          features_(pieces.features),
          n_features_(view.n_features),
          is_sparse_(has_sparse_products(view)),
          reader_(view) {}

    // Returns the next support vector times gamma, in pieces.vector.
    APPROXSVM_NOINLINE Coordinates next(double gamma) {
        std::size_t n = 0;
        if (is_sparse_) {
            reader_.next_stored([&](std::size_t j, double value) {
                x_[n] = value;
                features_[n++] = static_cast<std::uint32_t>(j);
            });
        } else {
            reader_.next(x_);
            n = n_features_;
        }
        for (std::size_t k = 0; k < n; ++k) x_[k] *= gamma;
        return {x_, is_sparse_ ? features_ : nullptr, n};
    }

  private:
    double* const x_;
    std::uint32_t* const features_;
    const std::size_t n_features_;
    const bool is_sparse_;
    SupportVectorReader reader_;
};

// Calls visit(decision, a_i) for support vector i of class c and each decision function that uses it.
template <class Visit>
APPROXSVM_INLINE void for_coefficients(const ModelView& view, std::size_t c, std::size_t i, const Visit& visit) {
    if (!has_classes(view)) {
        for (std::size_t k = 0; k < view.n_decisions; ++k) visit(k, view.dual_coef[k * view.n_sv + i]);
        return;
    }
    const std::size_t n = view.n_labels;
    for (std::size_t other = 0; other < n; ++other) {
        if (other == c) continue;
        const std::size_t pair = c < other ? pair_position(n, c, other) : pair_position(n, other, c);
        visit(pair, view.dual_coef[(other < c ? other : other - 1) * view.n_sv + i]);
    }
}

// Calls visit(class, i) for each support vector in order.
template <class Visit>
APPROXSVM_INLINE void for_support_vectors(const ModelView& view, const Visit& visit) {
    std::size_t c = 0, end = has_classes(view) ? view.class_counts[0] : view.n_sv;
    for (std::size_t i = 0; i < view.n_sv; ++i) {
        while (i == end) end += view.class_counts[++c];
        visit(c, i);
    }
}

APPROXSVM_COLD inline PolynomialMoments find_moments(const ModelView& view, const PolynomialPieces& pieces) {
    const std::size_t n_moments = PolynomialMoments::n_moments(view.degree);
    double longest = 0.0;
    const auto next_norm = [&](ProductVectors& vectors) {  // norm of gamma x_i
        const Coordinates x = vectors.next(1.0);
        const double length = norm_above(x.values, x.n), norm = std::fabs(view.gamma) * length * (1.0 + 0x1p-50);
        if (length > longest) longest = length;
        return norm + (norm > 0.0 ? 0x1p-1070 : 0.0);
    };
    double reach = 0.0;
    ProductVectors first_pass(view, pieces), second_pass(view, pieces);
    for (std::size_t i = 0; i < view.n_sv; ++i) {
        const double norm = next_norm(first_pass);
        if (norm > reach) reach = norm;
    }
    for (std::size_t m = 0; m < n_moments * view.n_decisions; ++m) pieces.moments[m] = 0.0;
    for_support_vectors(view, [&](std::size_t c, std::size_t i) {
        const double norm = next_norm(second_pass), share = norm > 0.0 ? norm / reach : 0.0;
        for_coefficients(view, c, i, [&](std::size_t decision, double a) {
            approxsvm_add_to_moments(pieces.moments + decision * n_moments, view.degree, std::fabs(a), share);
        });
    });
    for (std::size_t k = 0; k < view.n_decisions; ++k) {
        approxsvm_end_moments(pieces.moments + k * n_moments, view.degree, static_cast<double>(view.n_sv),
                              view.decisions[k].sum_moduli);
    }
    return {view.degree, std::fabs(view.coef0), reach, pieces.moments, longest};
}

// Lays out the support vectors, multiplied by gamma.
APPROXSVM_COLD inline KernelSums<double> lay_out_engine(const ModelView& view, const PolynomialPieces& pieces) {
    constexpr double one = 1.0;  // half_theta; the engine's half_sq_norm is then ||z||^2
    const std::ptrdiff_t stride = static_cast<std::ptrdiff_t>(view.n_sv);
    const bool by_columns = products_by_columns(view);
    KernelSumsWriter<double> writer(pieces.engine, polynomial_sizes(view), view.n_features, one,
                                    by_columns ? view.packed.n_values : in_panels);
    ProductVectors counted(view, pieces), vectors(view, pieces);
    for (std::size_t i = 0; by_columns && i < view.n_sv; ++i) {
        const Coordinates x = counted.next(1.0);
        for (std::size_t k = 0; k < x.n; ++k) writer.count(x.features[k]);
    }
    if (by_columns) writer.finish_counting();
    const double* const weights = has_classes(view) ? nullptr : view.dual_coef + (view.n_decisions - 1) * view.n_sv;
    for (std::size_t i = 0; i < view.n_sv; ++i) {
        writer.add_support_vector(vectors.next(view.gamma), view.dual_coef + i, stride, weights ? weights[i] : 0.0);
    }
    return writer.expansion();
}

// Returns the largest row norm for which no operation in the source can overflow: neither an inner product x_i.z nor a
// kernel value K_i, nor a sum of products a_i K_i in any order.
APPROXSVM_COLD inline double norm_without_overflow(const ModelView& view, const PolynomialMoments& kernel) {
    double a1 = 1.0;
    for (std::size_t k = 0; k < view.n_decisions; ++k) {
        const double sum = view.decisions[k].sum_moduli + std::fabs(view.decisions[k].intercept);
        if (sum > a1) a1 = sum;
    }
    const double most = 0x1p1020 / a1, base = view.degree > 0 ? std::pow(most, 1.0 / view.degree) : 0x1p1020,
                 of_kernel = (base - kernel.coef0) / kernel.reach, of_product = 0x1p1020 / kernel.longest;
    return 0.999 * (of_kernel < of_product ? of_kernel : of_product);  // no limit without support vectors
}

APPROXSVM_COLD inline void lay_out(const ModelView& view, const PolynomialPieces& pieces) {
    PolynomialKernel& kernel = *new (pieces.prepared) PolynomialKernel{};
    kernel.coef0 = view.coef0;
    kernel.degree = view.degree;
    if (has_engines(view)) {
        kernel.moments = find_moments(view, pieces);
        kernel.most_norm = norm_without_overflow(view, kernel.moments);
    } else {
        // The bound is at least 20 u sum |a_i K_i|, so this limit is sufficient if |a_i| and |gamma| are at least
        // 2^-100.
        kernel.most_bound = 0x1p770;
    }
    if (has_polynomial_engine(view)) kernel.engine = lay_out_engine(view, pieces);
    for (std::size_t k = 0; view.form && k < view.n_decisions; ++k) {
        pieces.form_norms[k] = norms_of_form(form_of(view, k), view.n_features);
    }
    kernel.form_norms = pieces.form_norms;
}

// --- evaluating the quadratic form at a row

// Returns sum_j a_j z_j, distributing features to the lanes in turn.
APPROXSVM_INLINE double inner_product(const double* a, const double* z, std::size_t n) {
    constexpr std::size_t width = lanes64, step = 4 * width;
    f64v sum[4] = {zero64(), zero64(), zero64(), zero64()};
    std::size_t j = 0;
    for (; j + step <= n; j += step) {
        APPROXSVM_UNROLL for (std::size_t i = 0; i < 4; ++i) {
            sum[i] = fmadd(load(a + j + i * width), load(z + j + i * width), sum[i]);
        }
    }
    double total = sum_of_lanes(add(add(sum[0], sum[1]), add(sum[2], sum[3])));
    for (; j < n; ++j) total += a[j] * z[j];
    return total;
}

// Returns sum_{i <= j} triangle_ij z_i z_j, with one lane per matrix row of a panel, like quadratic_row in
// expansion/quadratic.hpp but in float64.
inline double quadratic_row(const double* triangle, std::size_t n, const double* z) {
    // Eight ones, then zeros: a window of this array masks entries of the triangle's next column.
    alignas(64) static constexpr double mask[15] = {1, 1, 1, 1, 1, 1, 1, 1};
    constexpr std::size_t width = lanes64, n_registers = panel_rows / width;
    f64v total[n_registers];
    APPROXSVM_UNROLL for (std::size_t r = 0; r < n_registers; ++r) total[r] = zero64();
    const double* panel = triangle;
    std::size_t first = 0;
    for (; first + panel_rows <= n; first += panel_rows) {
        f64v sum[4][n_registers];
        APPROXSVM_UNROLL for (std::size_t k = 0; k < 4; ++k) {
            APPROXSVM_UNROLL for (std::size_t r = 0; r < n_registers; ++r) sum[k][r] = zero64();
        }
        const auto add_column = [&](std::size_t k, const double* column, f64v x, const double* kept) {
            APPROXSVM_UNROLL for (std::size_t r = 0; r < n_registers; ++r) {
                const f64v factor = kept ? mul(x, load(kept + r * width)) : x;
                sum[k][r] = fmadd(load(column + r * width), factor, sum[k][r]);
            }
        };
        APPROXSVM_UNROLL for (std::size_t k = 0; k < panel_rows; ++k) {
            add_column(k % 4, panel + k * (k + 1) / 2, set1(z[first + k]), mask + 7 - k);
        }
        panel += panel_triangle;
        std::size_t j = first + panel_rows;
        for (; j + 4 <= n; j += 4, panel += 4 * panel_rows) {
            APPROXSVM_UNROLL for (std::size_t k = 0; k < 4; ++k) {
                add_column(k, panel + k * panel_rows, set1(z[j + k]), nullptr);
            }
        }
        for (; j < n; ++j, panel += panel_rows) add_column(0, panel, set1(z[j]), nullptr);
        APPROXSVM_UNROLL for (std::size_t r = 0; r < n_registers; ++r) {
            const f64v all = add(add(sum[0][r], sum[1][r]), add(sum[2][r], sum[3][r]));
            total[r] = fmadd(load(z + first + r * width), all, total[r]);
        }
    }
    double result = 0.0;
    APPROXSVM_UNROLL for (std::size_t r = 0; r < n_registers; ++r) result += sum_of_lanes(total[r]);
    for (std::size_t i = first; i < n; ++i) {  // rows of the last, short panel
        double sum = 0.0;
        for (std::size_t j = i; j < n; ++j) {
            const std::size_t k = j - first;
            sum += panel[k * (k + 1) / 2 + (i - first)] * z[j];
        }
        result += z[i] * sum;
    }
    return result;
}

// Returns linear.z + sum triangle_ij z_i z_j for a row.
inline double form_row(const PolynomialForm& form, std::size_t n_features, const double* z) {
    const double linear = inner_product(form.linear, z, n_features);
    return form.triangle ? linear + quadratic_row(form.triangle, n_features, z) : linear;
}

// Computes the quadratic form from a row's nonzeros.
inline double form_sparse(const PolynomialForm& form, std::size_t n_features, const double* values,
                          const std::int32_t* columns, std::size_t n_nonzero) {
    double total = 0.0;
    for (std::size_t k = 0; k < n_nonzero; ++k) total += form.linear[static_cast<std::size_t>(columns[k])] * values[k];
    if (form.triangle) total += quadratic_sparse(form.triangle, n_features, values, columns, n_nonzero);
    return total;
}

// --- the engine

// Computes tanh in place for a multiple of `together` registers. Blocks, single rows and sparse rows call the same
// function: its code is long, and tanh is slow anyway.
template <int together>
APPROXSVM_NOINLINE inline void hyperbolic_tangents(f64v* x, int n) {
    for (int first = 0; first < n; first += together) {
        f64v some[together];
        APPROXSVM_UNROLL for (int i = 0; i < together; ++i) some[i] = x[first + i];
        hyperbolic_tangent(some);
        APPROXSVM_UNROLL for (int i = 0; i < together; ++i) x[first + i] = some[i];
    }
}

// Turns inner products into kernel values in place.
template <int N>
APPROXSVM_INLINE void raise(const PolynomialKernel& kernel, f64v (&x)[N]) {
    const f64v coef0 = set1(kernel.coef0);
    APPROXSVM_UNROLL for (int i = 0; i < N; ++i) {
        x[i] = add(x[i], coef0);
    }
    switch (kernel.degree) {
        case 0: {
            f64v in_memory[N];  // a copy, so that x stays in registers
            APPROXSVM_UNROLL for (int i = 0; i < N; ++i) in_memory[i] = x[i];
            hyperbolic_tangents<N % 4 == 0 ? 4 : 1>(in_memory, N);
            APPROXSVM_UNROLL for (int i = 0; i < N; ++i) x[i] = in_memory[i];
            return;
        }
        case 1:
            return;
        case 2:
            APPROXSVM_UNROLL for (int i = 0; i < N; ++i) x[i] = mul(x[i], x[i]);
            return;
        case 3:
            APPROXSVM_UNROLL for (int i = 0; i < N; ++i) x[i] = mul(mul(x[i], x[i]), x[i]);
            return;
        case 4:
            APPROXSVM_UNROLL for (int i = 0; i < N; ++i) {
                const f64v square = mul(x[i], x[i]);
                x[i] = mul(square, square);
            }
            return;
        case 5:
            APPROXSVM_UNROLL for (int i = 0; i < N; ++i) {
                const f64v square = mul(x[i], x[i]);
                x[i] = mul(mul(square, square), x[i]);
            }
            return;
        default:
            APPROXSVM_UNROLL for (int i = 0; i < N; ++i) {
                const f64v square = mul(x[i], x[i]);
                x[i] = mul(mul(square, square), square);
            }
    }
}

// The term for kernel_sums.hpp.
struct PolynomialTerm {
    using Real = double;
    static constexpr bool counts_unseen = false;

    const PolynomialKernel& kernel;

    template <int Registers>
    APPROXSVM_INLINE void tile(std::size_t, const f64v (&inner)[tile_rows][Registers], int v, const double*,
                               f64v (&values)[tile_rows]) const {
        APPROXSVM_UNROLL for (int i = 0; i < tile_rows; ++i) values[i] = inner[i][v];
        raise(kernel, values);
    }
    template <int Panels>
    APPROXSVM_INLINE void panels(std::size_t, double, f64v (&total)[Panels * panel_registers]) const {
        raise(kernel, total);
    }
    void finish(const double*, std::size_t, std::size_t, double*) const {}
};

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

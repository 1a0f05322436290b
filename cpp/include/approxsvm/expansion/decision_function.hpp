// Evaluates expansions at row coordinates. Functions with a template parameter Registers process several rows, one in
// each lane of that many registers. If Registers is 0, they process a single row.
#ifndef APPROXSVM_EXPANSION_DECISION_FUNCTION_HPP
#define APPROXSVM_EXPANSION_DECISION_FUNCTION_HPP

#include <cmath>

#include "../model_view.hpp"
#include "../simd/block.hpp"
#include "../simd/exp.hpp"
#include "polynomial.hpp"
#include "router.hpp"

namespace approxsvm {
inline namespace APPROXSVM_TARGET {

constexpr std::size_t max_registers = 3;
constexpr std::size_t block_rows = max_registers * static_cast<std::size_t>(lanes);
// Maximum number of rows evaluated one at a time, which is faster than a block of mostly empty lanes.
constexpr std::size_t max_single_rows = 4;

template <int Registers>
constexpr std::size_t rows_in = Registers > 0 ? std::size_t{Registers} * static_cast<std::size_t>(lanes) : 1;

// Returns the size in bytes of a block of rows.
constexpr std::size_t block_bytes(std::size_t n_features) {
    return n_features * block_rows * sizeof(float) + 64;
}

// --- one expansion

// Expansion of one decision function around one center.
struct Expansion {
    const float* center;
    const float* linear;
    const float* quadratic;  // coefficients of degree 2; null for degree 1
    const float* higher;
    const float* direction;  // the direction G, or null
    const ExpansionNumbers* numbers;
    double intercept;
};

// Returns the index of the decision function to which form `form` of a center belongs. If majority_only is true, a
// center has one form for each pair of its majority class with another class, ordered by the other class.
inline std::size_t decision_of(const ModelView& model, std::size_t center, std::size_t form) {
    if (!model.majority_only) return form;
    const std::size_t w = model.majority_classes[center], n = model.n_labels;
    return form < w ? pair_position(n, form, w) : pair_position(n, w, form + 1);
}

// Returns form `form` of a center, an expansion of the decision function decision_of().
inline Expansion expansion_of(const ModelView& model, std::size_t center, std::size_t form = 0) {
    const std::size_t n = model.n_varying, e = center * model.n_forms + form, triangle = e * triangle_size(n);
    return {model.centers + center * model.n_features,
            model.linear + e * n,
            model.quadratic ? model.quadratic + triangle : nullptr,
            model.higher ? model.higher + e * n_higher(n, model.degree) : nullptr,
            model.direction ? model.direction + triangle : nullptr,
            model.expansions + e,
            model.decisions[decision_of(model, center, form)].intercept};
}

// The value of an expansion at a row, and its Gaussian factor.
struct Value {
    double inner;  // the constant plus the parts of all degrees
    float half_s;
    double gaussian;  // output_scale exp(-half_s); 0 if the factor underflows float32
};

// Computes the decision value. The factor is also 0 if a row is so far from the center that the parts overflow.
APPROXSVM_INLINE double decision_value(const Expansion& expansion, double gaussian, double inner) {
    return expansion.intercept + (gaussian > 0.0 ? gaussian * inner : 0.0);
}
APPROXSVM_INLINE double decision_value(const Expansion& expansion, const Value& value) {
    return decision_value(expansion, value.gaussian, value.inner);
}

// Returns the coefficients of the part of degree k > 2.
inline const float* part_of_degree(const Expansion& expansion, std::size_t n_varying, int k) {
    return expansion.higher + n_higher(n_varying, k - 1);
}

// Computes linear.u and ||u||^2 for a block with one row per lane, or for one row.
template <int Registers, class Real>
inline void linear_block(const Real* linear, std::size_t n_features, const Real* block, Real* form, Real* sq_norm) {
    using Register = typename RegisterOf<Real>::type;
    constexpr int width = lanes_of<Real>, stride = Registers * width;
    Register total[Registers], sq[Registers];
    APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) total[v] = sq[v] = set1(Real{0});
    for (std::size_t j = 0; j < n_features; ++j, block += stride) {
        const Register l = set1(linear[j]);
        APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) {
            const Register u = load(block + v * width);
            total[v] = fmadd(l, u, total[v]);
            sq[v] = fmadd(u, u, sq[v]);
        }
    }
    APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) {
        store(form + v * width, total[v]);
        store(sq_norm + v * width, sq[v]);
    }
}
inline void linear_row(const float* linear, std::size_t n_features, const float* u, float& form, float& sq_norm) {
    form = sq_norm = 0.0f;
    for (std::size_t j = 0; j < n_features; ++j) {
        form += linear[j] * u[j];
        sq_norm += u[j] * u[j];
    }
}

// Computes the part of degree k > 1.
template <int Registers>
inline void form_of_degree(const float* coefficients, int k, const float* zeros, std::size_t n_varying, const float* u,
                           float* form) {
    if constexpr (Registers > 0)
        part_block<Registers>(coefficients, k, zeros, n_varying, u, form);
    else
        *form = part_row(coefficients, k, zeros, n_varying, u);
}

// Computes the constant plus the parts of degrees 1 through `degree`, and ||u||^2.
template <int Registers>
inline void sum_of_forms(const ModelView& model, const Expansion& expansion, const float* zeros, int degree,
                         const float* u, double* inner, float* sq_norm) {
    float form[rows_in<Registers>];
    const std::size_t n = model.n_varying;
    if constexpr (Registers > 0) {
        if (expansion.quadratic)
            quadratic_block<Registers>(expansion.quadratic, expansion.linear, n, u, form, sq_norm);
        else
            linear_block<Registers>(expansion.linear, n, u, form, sq_norm);
    } else {
        APPROXSVM_COUNT_WORK(static_cast<double>(n + (expansion.quadratic ? n_monomials(n, 2) : 0)));
        if (expansion.quadratic)
            quadratic_row(expansion.quadratic, expansion.linear, n, u, *form, *sq_norm);
        else
            linear_row(expansion.linear, n, u, *form, *sq_norm);
    }
    for (std::size_t r = 0; r < rows_in<Registers>; ++r) {
        inner[r] = expansion.numbers->constant + static_cast<double>(form[r]);
    }
    for (int k = 3; k <= degree; ++k) {
        form_of_degree<Registers>(part_of_degree(expansion, n, k), k, zeros, n, u, form);
        for (std::size_t r = 0; r < rows_in<Registers>; ++r) inner[r] += static_cast<double>(form[r]);
    }
}

// Computes exp(-half_s), or 0 if the factor underflows float32.
template <int Registers>
inline void gaussian_factors(const float* half_s, double* factors) {
    constexpr std::size_t width = lanes;
    float factor[width];
    for (std::size_t first = 0; first < rows_in<Registers>; first += width) {
        if constexpr (Registers > 0)
            store(factor, exp_nonpositive(mul(load(half_s + first), set1(-1.0f))));
        else
            store(factor, exp_nonpositive(set1(-*half_s)));
        for (std::size_t r = first; r < rows_in<Registers> && r < first + width; ++r) {
            factors[r] = half_s[r] <= -exp_min_argument ? static_cast<double>(factor[r - first]) : 0.0;
        }
    }
}

// Evaluates n rows up to degree `degree`; returns whether the squared norms of all rows are finite.
template <int Registers>
inline bool evaluate_expansion(const ModelView& model, const Expansion& expansion, const float* zeros, int degree,
                               const float* u, std::size_t n, Value* values) {
    double inner[rows_in<Registers>], factors[rows_in<Registers>];
    float half_s[rows_in<Registers>];
    sum_of_forms<Registers>(model, expansion, zeros, degree, u, inner, half_s);
    for (std::size_t r = 0; r < rows_in<Registers>; ++r) half_s[r] *= model.half_theta;
    gaussian_factors<Registers>(half_s, factors);
    bool finite = true;
    for (std::size_t r = 0; r < n; ++r) {
        values[r] = {inner[r], half_s[r], expansion.numbers->output_scale * factors[r]};
        finite &= half_s[r] <= largest_float;
    }
    return finite;
}

// --- varying features

// Moves the varying features to the front; sets `off_sq` to each row's squared distance from the slice, in scaled
// coordinates.
template <int Registers>
inline void keep_varying(const ModelView& model, float* u, float* off_sq) {
    std::size_t kept = 0;
    const auto varies = [&](std::size_t j) { return kept < model.n_varying && model.varying[kept] == j; };
    if constexpr (Registers == 0) {
        *off_sq = 0.0f;
        for (std::size_t j = 0; model.varying && j < model.n_features; ++j) {
            if (varies(j))
                u[kept++] = u[j];
            else
                *off_sq += u[j] * u[j];
        }
    } else {
        constexpr std::size_t stride = rows_in<Registers>;
        f32v off[Registers];
        APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) off[v] = zero();
        for (std::size_t j = 0; model.varying && j < model.n_features; ++j) {
            const bool keeps = varies(j);
            float* const to = u + kept * stride;
            APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) {
                const f32v x = load(u + j * stride + v * lanes);
                if (keeps)
                    store(to + v * lanes, x);
                else
                    off[v] = fmadd(x, x, off[v]);
            }
            kept += keeps;
        }
        APPROXSVM_UNROLL for (int v = 0; v < Registers; ++v) store(off_sq + v * lanes, off[v]);
    }
}

}  // namespace APPROXSVM_TARGET
}  // namespace approxsvm

#endif

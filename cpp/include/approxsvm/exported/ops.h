/* Input maps in float64. Each number is a ball (program/ball.h). Its value is the source's own number until the first
   op whose arithmetic differs from the source's. A missing value is NaN until a lookup replaces it. A row rejected by
   an op becomes NaN at the end.

   The map is a table of model_n_ops_ ops. Op k is of the kind model_ops_[k]; only the kinds that occur in the map are
   defined. Op k replaces model_op_n_inputs_[k] numbers of the row, from number model_op_first_[k] on, by model_op_n_[k]
   outputs; the row then has model_op_width_[k] numbers. The op's doubles begin at model_op_doubles_[k] in
   model_doubles_, its integers at model_op_integers_[k] in model_integers_, and the meaning of model_op_details_[k]
   depends on the kind. If model_op_is_source_[k] is true, the inputs are the source's own numbers; if
   model_op_is_exact_[k] is true, they have no radii.

   Consecutive ops that each read one number are applied to one number after another. An op that reads several numbers
   begins a loop over the row, shared by the ops up to model_op_ends_[k]. At the end of the loop, model_op_keeps_[k]
   states which radii are kept: 1 for the sum of squares of the radii used by the next op (without a next op, of all
   radii), 2 for each radius. For an op that begins a loop, model_op_is_exact_[k] is true if no number in the row has a
   radius. If model_op_is_apart_[k] is true, op k writes outputs to y, because it still reads inputs after writing
   outputs. */
#include "../program/ball.h"

/* The index of the first number that op k uses, and whether op k uses number j of the row. Without model_has_parts_, an
   op uses all numbers. */
static inline int model_first_input_(int k) {
    (void)k;
#if model_has_parts_
    return (int)model_op_first_[k];
#else
    return 0;
#endif
}
static inline int model_takes_(int k, int j) {
    (void)k, (void)j;
#if model_has_parts_
    return (unsigned)(j - model_first_input_(k)) < (unsigned)model_op_n_inputs_[k];
#else
    return 1;
#endif
}

#if model_op_affine_
#include "../program/ops/affine.h"
/* A scaler. model_op_details_ states which arrays it has, each with one number per input. The arrays follow three
   doubles: bounds on the rounding of operations and on underflow, and the relative error of the parameters. */
static inline approxsvm_ball model_affine_(int k, approxsvm_ball b, int j) {
    const double *const own = model_doubles_ + (int)model_op_doubles_[k], *part = own + 3 + j;
    const int n = (int)model_op_n_[k], parts = (int)model_op_details_[k];
    double multiply = 1.0, divide = 1.0;
    (void)n, (void)multiply, (void)divide;
#if model_subtracts_
    if (parts & 1) {
        b.value -= *part;
        part += n;
    }
#endif
#if model_multiplies_
    if (parts & 2) {
        multiply = *part;
        b.value = approxsvm_product(b.value, multiply);
        part += n;
    }
#endif
#if model_divides_
    if (parts & 4) {
        divide = *part;
        b.value /= divide;
        part += n;
    }
#endif
#if model_scales_balls_
    if ((parts & 7) && !model_op_is_exact_[k]) {
        const double gain = parts & 6 ? approxsvm_affine_gain(multiply, divide) : 1.0;
        b.radius = approxsvm_scaled_radius(b.radius, gain, own[0], b.value, own[1]);
    } else
#endif
        if (parts & 7)
        b.radius = approxsvm_own_radius(own[0], b.value, own[1]);
#if model_is_relative_
    if (parts & 8) b.radius = approxsvm_with_relative(b.radius, b.value, own[2]);
#endif
#if model_adds_
    if (parts & 16) {
        b.value += *part;
        b.radius = approxsvm_added_radius(b.radius, b.value);
        part += n;
    }
#endif
#if model_is_at_least_
    if (parts & 32) {
        b = approxsvm_at_least(b, *part);
        part += n;
    }
#endif
#if model_is_at_most_
    if (parts & 64) b = approxsvm_at_most(b, *part);
#endif
    return b;
}
#endif

#if !model_maps_rows_
/* Feature j of a row, mapped in the source's order of operations; the bound table includes the error of this number. */
static inline double model_feature_(const model_row_ row[], int j) {
    approxsvm_ball b;
    b.value = model_given_(row, j);
    b.radius = 0.0;
#if model_n_ops_
    {
        int k;
        for (k = 0; k < model_n_ops_; ++k) {
            if (model_takes_(k, j)) b = model_affine_(k, b, j - model_first_input_(k));
        }
    }
#endif
    return b.value;
}
#else

#if model_op_turns_ || model_op_refuses_
#include "../program/ops/interval.h"
#endif
#if model_op_inverse_normal_
#include "../program/ops/inverse_normal.h"
#endif
#if model_op_logarithm_
#include "../program/ops/logarithm.h"
#endif
#if model_op_power_ || model_op_power_of_number_
#include "../program/ops/power.h"
#endif
#if model_op_centering_
#include "../program/ops/projection.h"
#endif
#if model_op_lookup_
#include "../program/ops/lookup.h"
#endif
#if model_op_piecewise_polynomial_
#include "../program/ops/piecewise_polynomial.h"
#endif
#if model_op_monomials_
#include "../program/ops/products.h"
#endif
#if model_op_normalizer_
#include "../program/ops/normalizer.h"
#endif

/* Output j of op k, which reads only number b, and whether the op rejects the row. */
static inline approxsvm_ball model_op_(int k, approxsvm_ball b, int j, int* is_refused) {
    const double* const number = model_doubles_ + (int)model_op_doubles_[k] + j;
    (void)number, (void)is_refused;
    switch (model_ops_[k]) {
#if model_op_affine_
        case model_op_affine_:
            return model_affine_(k, b, j);
#endif
#if model_op_turns_
        case model_op_turns_:
            return approxsvm_turned(b, number[0], number[model_op_n_[k]], (int)model_op_is_source_[k]);
#endif
#if model_op_refuses_
        case model_op_refuses_: {
            const double low = number[0], high = number[model_op_n_[k]];
            *is_refused |= approxsvm_beyond(b.value, low, high) > 0.0;
            return approxsvm_between(b, low, high, (int)model_op_is_source_[k]);
        }
#endif
#if model_op_inverse_normal_
        case model_op_inverse_normal_:
            return approxsvm_inverse_normal(b, approxsvm_real);
#endif
#if model_op_logarithm_
        case model_op_logarithm_:
            *is_refused |= b.value <= -*number;
            return approxsvm_logarithm(b, *number, approxsvm_real);
#endif
#if model_op_power_
        case model_op_power_: /* rows with results above 1e282 are also rejected */
            *is_refused |= !model_op_details_[k] && b.value <= 0.0;
            b = approxsvm_power(b, *number, (int)model_op_details_[k], approxsvm_real);
            *is_refused |= approxsvm_abs(b.value) > 1e282;
            return b;
#endif
#if model_op_power_of_number_
        case model_op_power_of_number_: {
            const approxsvm_power_value y =
                approxsvm_power_at(b.value, *number, (int)model_op_details_[k], approxsvm_real);
            *is_refused |= (!model_op_details_[k] && b.value <= 0.0) || approxsvm_abs(y.value) > 1e282;
            b.value = y.value;
            b.radius = y.own;
            return b;
        }
#endif
#if model_op_centering_
        case model_op_centering_:
            b.value -= *number;
            b.radius = approxsvm_centered_radius(b.radius, b.value, (int)model_op_n_[k]);
            return b;
#endif
        default:
            return b;
    }
}

/* The data of ops that read several numbers. */
typedef struct {
    const double* x;
#if model_n_radii_
    const double* radius;
#endif
#if model_op_projection_
    double reach; /* the norm of the radii of all inputs */
#endif
#if model_op_normalizer_
    approxsvm_ball norm; /* the norm of all inputs */
#endif
} model_inputs_;

/* Number i of the row that op k reads, and input i of op k. */
static inline approxsvm_ball model_number_(const model_inputs_* in, int k, int i) {
    approxsvm_ball b;
    b.value = in->x[i];
    b.radius = 0.0;
    (void)k;
#if model_n_radii_
    if (!model_op_is_exact_[k]) b.radius = in->radius[i];
#endif
    return b;
}
static inline approxsvm_ball model_input_(const model_inputs_* in, int k, int i) {
    return model_number_(in, k, model_first_input_(k) + i);
}

#if model_op_lookup_
static inline approxsvm_ball model_looked_up_(const model_inputs_* in, int k, int j, int* is_refused) {
    const int n = (int)model_op_n_[k];
    const model_integer_ *const source = model_integers_ + model_op_integers_[k], *const ends = source + n;
    const int begin = (int)ends[j];
    const approxsvm_ball b = model_input_(in, k, (int)source[j]);
    approxsvm_lookup lookup;
    double found;
    lookup.edges = model_doubles_ + (int)model_op_doubles_[k] + n; /* edges follow the replacements of NaN */
    lookup.values = lookup.edges + (int)ends[n] + begin + j;
    lookup.missing = lookup.edges[j - n];
    lookup.edges += begin;
    lookup.n_edges = (int)ends[j + 1] - begin;
    found = approxsvm_lookup_find(&lookup, b.value);
    *is_refused |= approxsvm_lookup_refuses(found);
    return approxsvm_lookup_ball(&lookup, b, found, (int)model_op_is_source_[k]);
}
#endif

#if model_op_piecewise_polynomial_
static inline approxsvm_ball model_bent_(const model_inputs_* in, int k, int j) {
    const int n = (int)model_op_n_[k];
    const model_integer_ *const source = model_integers_ + model_op_integers_[k], *const ends = source + n;
    const int begin = (int)ends[j];
    approxsvm_piecewise_polynomial pieces;
    pieces.degree = (int)model_op_details_[k];
    pieces.edges = model_doubles_ + (int)model_op_doubles_[k];
    pieces.origins = pieces.edges + (int)ends[n];
    pieces.coefs = pieces.origins + (int)ends[n] + n + (begin + j) * (pieces.degree + 1);
    pieces.edges += begin;
    pieces.origins += begin + j;
    pieces.n_edges = (int)ends[j + 1] - begin;
    return approxsvm_piecewise(&pieces, model_input_(in, k, (int)source[j]), (int)model_op_is_source_[k]);
}
#endif

#if model_op_monomials_
/* A product of up to model_op_details_ factors; an index equal to model_op_n_inputs_ stands for the factor 1. */
static inline approxsvm_ball model_multiplied_(const model_inputs_* in, int k, int j) {
    const int degree = (int)model_op_details_[k];
    const model_integer_* const factors = model_integers_ + model_op_integers_[k] + j * degree;
    approxsvm_ball b;
    int is_begun = 0, i;
    b.value = 1.0;
    b.radius = 0.0;
    for (i = degree - 1; i >= 0; --i) {
        if (factors[i] == model_op_n_inputs_[k]) continue;
        b = is_begun ? approxsvm_times(b, model_input_(in, k, (int)factors[i]), approxsvm_real)
                     : model_input_(in, k, (int)factors[i]);
        is_begun = 1;
    }
    return b;
}
#endif

#if model_op_normalizer_
/* Computes the norm for a normalizer. The op's double is a bound on the loss by underflow. model_op_details_ is the
   kind of norm, plus 4 for sparse rows. */
static inline void model_measure_(model_inputs_* in, int k) {
    const int which = (int)model_op_details_[k] & 3, n = (int)model_op_n_[k], first = model_first_input_(k);
    double came = 0.0;
#if model_n_radii_
    if (!model_op_is_exact_[k]) came = approxsvm_length(which, n, in->radius + first);
#endif
    in->norm = approxsvm_norm(approxsvm_length(which, n, in->x + first), came, which == approxsvm_max ? 0 : n, 0x1p-53,
                              model_doubles_[model_op_doubles_[k]]);
}
static inline approxsvm_ball model_divided_(const model_inputs_* in, int k, int j) {
    return approxsvm_normalized(model_input_(in, k, j), in->norm,
                                model_op_details_[k] & 4 ? APPROXSVM_LEAST_NORM_OF_SPARSE_ROWS : APPROXSVM_LEAST_NORM);
}
#endif

#if model_op_projection_
/* Output j of a projection. The op's doubles are the biases, the column norms, the bias errors, and the matrix, column
   by column. */
static inline approxsvm_ball model_projected_(const model_inputs_* in, int k, int j) {
    const int n = (int)model_op_n_[k], n_inputs = (int)model_op_n_inputs_[k];
    const double *const number = model_doubles_ + (int)model_op_doubles_[k] + j, *row = number - j + 3 * n;
    const double* const x = in->x + model_first_input_(k);
    approxsvm_ball b;
    int i;
    row += j * n_inputs;
    b.value = number[0];
    for (i = 0; i < n_inputs; ++i) b.value += x[i] * row[i];
    b.radius = approxsvm_projected_radius(in->reach, number[n], number[2 * n], b.value);
    return b;
}
#endif

/* Output j of an op that reads several numbers, or number j of a row. */
static inline approxsvm_ball model_read_(const model_row_ row[], const model_inputs_* in, int k, int j,
                                         int* is_refused) {
    approxsvm_ball b;
    (void)in, (void)is_refused;
    switch (model_ops_[k]) {
#if model_op_lookup_
        case model_op_lookup_:
            return model_looked_up_(in, k, j, is_refused);
#endif
#if model_op_piecewise_polynomial_
        case model_op_piecewise_polynomial_:
            return model_bent_(in, k, j);
#endif
#if model_op_monomials_
        case model_op_monomials_:
            return model_multiplied_(in, k, j);
#endif
#if model_op_normalizer_
        case model_op_normalizer_:
            return model_divided_(in, k, j);
#endif
#if model_op_projection_
        case model_op_projection_:
            return model_projected_(in, k, j);
#endif
        default:
            break;
    }
    b.value = model_given_(row, j);
    b.radius = 0.0;
    return b;
}

/* Number j of the row after op k, which begins a loop. */
static inline approxsvm_ball model_begun_(const model_row_ row[], const model_inputs_* in, int k, int j,
                                          int* is_refused) {
#if model_has_parts_
    const int n = (int)model_op_n_[k], place = j - model_first_input_(k);
    if (place < 0) return model_number_(in, k, j);
    if (place >= n) return model_number_(in, k, j - n + (int)model_op_n_inputs_[k]);
#endif
    return model_read_(row, in, k, j - model_first_input_(k), is_refused);
}

/* The row as mapped by the source, and a bound on its distance from the row mapped in exact arithmetic. */
static inline double model_map_(const model_row_ row[], double x[]) {
    model_inputs_ in;
    double sum = 0.0;
    int is_refused = 0, begin, end, j, k;
#if model_n_radii_
    double radius[model_n_radii_];
#endif
#if model_n_apart_
    double y[model_n_apart_];
#endif
#if model_n_apart_radii_
    double y_radius[model_n_apart_radii_];
#endif
    in.x = x;
#if model_op_normalizer_
    in.norm.value = in.norm.radius = 0.0; /* compilers cannot tell that the norm is set before it is read */
#endif
#if model_op_projection_
    in.reach = 0.0;
#endif
#if model_n_radii_
    in.radius = radius;
#endif
    for (begin = 0; begin < model_n_ops_; begin = end) {
        const int width = (int)model_op_width_[begin], keeps = (int)model_op_keeps_[begin];
        (void)keeps;
        end = (int)model_op_ends_[begin];
#if model_op_projection_
        if (model_ops_[begin] == model_op_projection_) {
            in.reach = approxsvm_norm_above(sum, (int)model_op_n_inputs_[begin]);
            sum = 0.0;
        }
#endif
#if model_op_normalizer_
        if (model_ops_[begin] == model_op_normalizer_) model_measure_(&in, begin);
#endif
        for (j = 0; j < width; ++j) {
            approxsvm_ball b = model_begun_(row, &in, begin, j, &is_refused);
            for (k = begin + 1; k < end; ++k) {
                if (model_takes_(k, j)) b = model_op_(k, b, j - model_first_input_(k), &is_refused);
            }
            if (keeps & 1 && (end == model_n_ops_ || model_takes_(end, j))) sum += b.radius * b.radius;
#if model_n_apart_
            (model_op_is_apart_[begin] ? y : x)[j] = b.value;
#else
            x[j] = b.value;
#endif
#if model_n_apart_radii_
            if (keeps & 2) (model_op_is_apart_[begin] ? y_radius : radius)[j] = b.radius;
#elif model_n_radii_
            if (keeps & 2) radius[j] = b.radius;
#endif
        }
#if model_n_apart_
        for (j = 0; model_op_is_apart_[begin] && j < width; ++j) {
            x[j] = y[j];
#if model_n_apart_radii_
            if (keeps & 2) radius[j] = y_radius[j];
#endif
        }
#endif
    }
    for (j = 0; is_refused && j < model_n_mapped_; ++j) x[j] = approxsvm_nan();
    (void)sum;
#if model_is_exact_
    return 0.0;
#else
    return approxsvm_norm_above(sum, model_n_mapped_);
#endif
}
#endif

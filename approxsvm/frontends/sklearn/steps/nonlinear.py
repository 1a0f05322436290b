"""scikit-learn's nonlinear transformers: PolynomialFeatures, SplineTransformer and QuantileTransformer."""

from collections.abc import Callable
from fractions import Fraction
from itertools import zip_longest
from typing import Any, Final

import numpy as np
from scipy.special import ndtri

from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.frames.dtypes import SPARSE
from approxsvm.frontends.sklearn.steps.dtype_rules import in_place
from approxsvm.frontends.sklearn.steps.record import OVERWRITES, Step, gives_sparse_as_asked, keeps_sparse
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.ops import Interval, InverseNormal, Monomials, PiecewisePolynomial
from approxsvm.ir.ops.piecewise_polynomial import MAX_DEGREE, Pieces

# Maximum numbers of products, and of factors per product.
_MOST_PRODUCTS: Final = 1 << 14
_MOST_FACTORS: Final = 64
Polynomial = list[Fraction]
# scikit-learn's BOUNDS_THRESHOLD, with which QuantileTransformer limits probabilities if its output distribution is
# normal.
_BOUNDS_THRESHOLD: Final = 1e-7
# The smallest and largest positive normal float64 values.
_SMALLEST: Final = Fraction(float(np.finfo(np.float64).tiny))
_LARGEST: Final = Fraction(float(np.finfo(np.float64).max))


def _polynomial_features(map_: InputMap, step: Any) -> InputMap:
    if step.n_output_features_ > _MOST_PRODUCTS or step._max_degree > _MOST_FACTORS:
        raise UnsupportedModelError(
            f"it has {step.n_output_features_:,} products of up to {step._max_degree} features; supported are "
            f"{_MOST_PRODUCTS:,} of up to {_MOST_FACTORS}"
        )
    if map_.is_unsorted:
        raise UnsupportedModelError(
            "it confuses sparse rows whose entries are out of order, as a step before it leaves them; refit with "
            "columns in ascending order in the ColumnTransformer, or with dense rows (sparse_threshold=0, "
            "dense_output=True)"
        )
    powers = step.powers_
    if len(powers) != step.n_output_features_:
        raise ModelFormatError(f"it has {len(powers)} products, but n_output_features_ is {step.n_output_features_}")
    products = Monomials.of_powers(powers)
    if map_.is_sparse:  # for sparse rows, the source multiplies from the first factor to the last
        products = Monomials(products.n_features, products.factors[:, ::-1].copy())
    return map_.then_op(products)


def _spline_transformer(map_: InputMap, step: Any) -> InputMap:
    if step.extrapolation not in ("constant", "linear", "continue", "periodic", "error"):
        raise ModelFormatError(f"its extrapolation is {step.extrapolation!r}")
    if getattr(step, "handle_missing", "error") != "error":
        raise UnsupportedModelError(f"its handle_missing is {step.handle_missing!r}")
    if step.extrapolation == "linear" and step.degree == 1 and len(step.bsplines_) > 1:
        # In this case, scikit-learn computes the range of every column except the first from the wrong knots.
        raise UnsupportedModelError(
            "its degree is 1, its extrapolation 'linear'; refit it with 'continue', the same there"
        )
    columns: list[tuple[int, Pieces]] = []
    low, high = [], []
    for j, spline in enumerate(step.bsplines_):
        degree = int(spline.k)
        if not 1 <= degree <= MAX_DEGREE:
            raise UnsupportedModelError(f"its degree is {degree}; supported are 1 to {MAX_DEGREE}")
        n_splines = len(spline.t) - degree - 1
        # The last splines of a periodic basis continue the first ones.
        n_different = n_splines - (degree if step.extrapolation == "periodic" else 0)
        coefs = np.eye(max(n_different, 0))[np.arange(n_splines) % max(n_different, 1)]
        if degree != step.degree or not np.array_equal(spline.c, coefs):
            raise ModelFormatError(f"the splines of column {j} are not those of its knots")
        if step.extrapolation == "error" and spline.extrapolate:
            raise ModelFormatError(f"its extrapolation is 'error', but the splines of column {j} extrapolate")
        basis = _basis(np.asarray(spline.t, np.float64), degree, step.extrapolation, n_different)
        columns += [(j, pieces) for pieces in (basis if step.include_bias else basis[:-1])]
        low.append(float(spline.t[degree]))
        high.append(float(spline.t[n_splines]))
    map_ = _within(map_, step.extrapolation, np.array(low), np.array(high))
    return map_.then_op(PiecewisePolynomial.of(map_.n_features, columns))


def _within(map_: InputMap, extrapolation: str, low: FloatArray, high: FloatArray) -> InputMap:
    """Append an op that wraps or rejects values beyond the knots, if the extrapolation requires one."""
    if extrapolation == "periodic":
        return map_.then_op(Interval("turns", low, high - low))
    if extrapolation != "error":
        return map_
    if not all(op.as_source for op in map_.ops):
        # The smallest and largest training values are the interval's endpoints, so rounding may move values outside it.
        raise UnsupportedModelError(
            "its extrapolation is 'error', but a step before it sums in another order than the source; refit it with "
            "another extrapolation"
        )
    return map_.then_op(Interval("refuses", low, high))


def _basis(knots: FloatArray, degree: int, extrapolation: str, n_different: int) -> list[Pieces]:
    """Compute basis splines in exact fractions, then round once; spline k + n_different is added to spline k."""
    t = [Fraction(knot) for knot in knots.tolist()]
    n_splines = len(t) - degree - 1
    spans = [k for k in range(degree, n_splines) if t[k] < t[k + 1]]
    if not spans:
        raise UnsupportedModelError("one of its columns has only one value")
    low, high = t[degree], t[n_splines]
    # SciPy extrapolates the first span below the first knot and the last span above the last knot, even if they are
    # empty. Spans are empty if quantile knots coincide because many values are equal.
    ends = [degree, n_splines - 1]
    if extrapolation == "linear" and [spans[0], spans[-1]] != ends:
        raise UnsupportedModelError(
            "its first or last knots coincide, and its extrapolation is 'linear'; refit it with knots='uniform', or "
            "extrapolation='constant'"
        )
    # Each piece consists of its lower edge (unused for the first piece), the origin of its polynomials, and the
    # polynomials.
    pieces = [(float(t[k]), float(t[k]), _on_span(t, degree, k)) for k in spans]
    below, beyond = (_on_span(t, degree, k) for k in ends)
    if extrapolation not in ("constant", "linear"):
        pieces[:0] = [(-np.inf, float(low), below)] if spans[0] != ends[0] else []
        pieces += [(float(high), float(high), beyond)] if spans[-1] != ends[1] else []
    else:
        kept = 1 if extrapolation == "constant" else 2
        at_high = [_value_and_slope(p, high - t[ends[1]])[:kept] for p in beyond]
        # scikit-learn sets only the first splines below the first knot, and only the last ones above the last knot.
        n_set = degree + (kept == 2 and degree == 1)
        first = [p[:kept] if k < n_set else [] for k, p in enumerate(pieces[0][2])]
        last = [p if k >= n_splines - n_set else [] for k, p in enumerate(at_high)]
        above = float(high)
        if spans[-1] != ends[1]:  # at the last knot itself, all splines have SciPy's values
            pieces.append((above, above, at_high))
            above = float(np.nextafter(above, np.inf))
        pieces = [(-np.inf, float(low), first), *pieces, (above, float(high), last)]
    edges, origins = [start for start, _, _ in pieces[1:]], [origin for _, origin, _ in pieces]
    numbers = np.zeros((n_different, len(pieces), degree + 1))
    for i, (_, _, polynomials) in enumerate(pieces):
        for k in range(n_different):
            parts = zip_longest(*polynomials[k::n_different], fillvalue=Fraction(0))
            coefs = [_rounded(sum(part, Fraction(0))) for part in parts]
            numbers[k, i, : len(coefs)] = coefs
    return [Pieces(np.array(edges), np.array(origins), coefs) for coefs in numbers]


def _rounded(number: Fraction) -> float:
    """Return the nearest float64; raise UnsupportedModelError if a nonzero number is outside the normal range."""
    if number and not _SMALLEST <= abs(number) <= _LARGEST:
        raise UnsupportedModelError(
            "the distances of its knots or quantiles are too large or too small for float64; scale before it"
        )
    return float(number)


def _on_span(t: list[Fraction], degree: int, span: int) -> list[Polynomial]:
    """Compute basis splines on a span by Cox-de Boor recursion, as polynomials in the distance from its first knot."""
    n = len(t) - 1
    splines: list[Polynomial] = [[Fraction(int(k == span))] for k in range(n)]
    for p in range(1, degree + 1):
        lower, splines = splines, []
        for k in range(n - p):
            polynomial = [Fraction(0)] * (p + 1)
            for other, low, high, sign in ((k, k, k + p, 1), (k + 1, k + 1, k + p + 1, -1)):
                length = t[high] - t[low]
                if length == 0 or not any(lower[other]):
                    continue
                # The factors are (x - t_k) / length and (t_{k+p+1} - x) / length, with x = t_span + distance.
                constant = (t[span] - t[low]) / length if sign > 0 else (t[high] - t[span]) / length
                for power, coef in enumerate(lower[other]):
                    polynomial[power] += constant * coef
                    polynomial[power + 1] += sign * coef / length
            splines.append(polynomial)
    return splines


def _value_and_slope(polynomial: Polynomial, by: Fraction) -> Polynomial:
    """Return a polynomial's value and derivative at the point `by`."""
    value = sum((coef * by**k for k, coef in enumerate(polynomial)), Fraction(0))
    slope = sum((k * coef * by ** (k - 1) for k, coef in enumerate(polynomial) if k), Fraction(0))
    return [value, slope]


def _keeps_zeros(step: Any) -> bool:
    """Return whether a fitted step maps zeros to zeros."""
    return not np.any(step.transform(np.zeros((1, step.n_features_in_))))


def _quantile_transformer(map_: InputMap, step: Any) -> InputMap:
    if step.output_distribution not in ("uniform", "normal"):
        raise ModelFormatError(f"its output_distribution is {step.output_distribution!r}")
    if map_.is_sparse and not _keeps_zeros(step):
        raise UnsupportedModelError(
            "it leaves zeros of sparse rows unchanged; refit it on dense rows, such as those of sparse_output=False"
        )
    quantiles, references = (np.asarray(numbers, np.float64) for numbers in (step.quantiles_, step.references_))
    if quantiles.shape != (len(references), map_.n_features) or not np.isfinite(quantiles).all():
        raise ModelFormatError(f"quantiles_ has shape {quantiles.shape}, or is not finite")
    if (np.diff(quantiles, axis=0) < 0).any() or (np.diff(references) < 0).any():
        raise ModelFormatError("its quantiles or references descend")
    if references[0] != 0.0 or references[-1] != float(len(references) > 1):
        raise ModelFormatError(f"its references are from {references[0]} to {references[-1]}, expected 0 to 1")
    is_uniform = step.output_distribution == "uniform"
    columns = [_interpolated(quantiles[:, j], references, is_uniform) for j in range(map_.n_features)]
    if is_uniform:
        return map_.then_op(PiecewisePolynomial.of(map_.n_features, list(enumerate(columns))))
    columns = [_between(pieces, *_bounds(quantiles[:, j])) for j, pieces in enumerate(columns)]
    probabilities = map_.then_op(PiecewisePolynomial.of(map_.n_features, list(enumerate(columns))))
    # scikit-learn subtracts the spacing of floats at 1.
    least = _BOUNDS_THRESHOLD - np.spacing(1.0)
    normal = probabilities.then_op(InverseNormal(map_.n_features))
    return normal.then_affine(low=ndtri(least), high=ndtri(1.0 - least))


def _bounds(quantiles: FloatArray) -> tuple[float, float]:
    """Return the smallest values that scikit-learn treats as within the quantiles and as above them, respectively."""
    first, last = float(quantiles[0]), float(quantiles[-1])
    low = _least_float(lambda x: not x - _BOUNDS_THRESHOLD < first)
    return low, max(low, _least_float(lambda x: x + _BOUNDS_THRESHOLD > last))


def _least_float(holds: Callable[[float], bool]) -> float:
    """Return the smallest float64 for which a monotone condition holds."""
    # Signed integers whose magnitudes are the bit patterns of |x| have the same order as the floats x.
    low, high = -(0x7FEF << 48 | (1 << 48) - 1), 0x7FEF << 48 | (1 << 48) - 1
    while low < high:
        middle = (low + high) // 2
        number = float(np.int64(abs(middle)).view(np.float64))
        if holds(-number if middle < 0 else number):
            high = middle
        else:
            low = middle + 1
    number = float(np.int64(abs(low)).view(np.float64))
    return -number if low < 0 else number


def _between(pieces: Pieces, low: float, high: float) -> Pieces:
    """Replace the pieces by 0 below `low`, and by 1 from `high` on."""
    inside = (pieces.edges > low) & (pieces.edges < high)
    edges = [low, *pieces.edges[inside], high] if low < high else [low]
    of = [int(k) for k in np.searchsorted(pieces.edges, edges[:-1], side="right")]
    zero, one = np.zeros((1, pieces.coefs.shape[1])), np.eye(1, pieces.coefs.shape[1])
    return Pieces(
        np.array(edges),
        np.concatenate([[0.0], pieces.origins[of], [0.0]]),
        np.concatenate([zero, pieces.coefs[of], one]),
    )


def _interpolated(quantiles: FloatArray, references: FloatArray, has_ends: bool) -> Pieces:
    """Interpolate the references between the quantiles, with 0 below the first quantile and 1 above the last.

    At a repeated quantile, the value is the mean of that quantile's first and last references. With `has_ends`, the
    value is nevertheless 0 at the first quantile and 1 at the last.
    """
    if len(references) == 1:  # scikit-learn maps everything to 0
        return Pieces(np.zeros(0), np.zeros(1), np.zeros((1, 2)))
    points, low = np.unique(quantiles, return_index=True)
    high = np.append(low[1:], len(quantiles)) - 1
    edges: list[float] = []
    pieces: list[tuple[float, float, float]] = [(0.0, 0.0, 0.0)]  # origin, value at the origin, slope

    def add(edge: float, piece: tuple[float, float, float]) -> None:
        edges.append(edge)
        pieces.append(piece)

    for k, point in enumerate(points.tolist()):
        beyond = float(np.nextafter(point, np.inf))
        is_first, is_last = k == 0, k == len(points) - 1
        mean = float((Fraction(float(references[low[k]])) + Fraction(float(references[high[k]]))) / 2)
        at_point = mean if not has_ends else 0.0 if is_first else 1.0 if is_last else mean
        if is_last:
            if at_point not in (0.0, 1.0):
                add(point, (0.0, at_point, 0.0))
            add(point if at_point == 1.0 else beyond, (0.0, 1.0, 0.0))
            break
        value, rise = float(references[high[k]]), references[low[k + 1]]
        if at_point != value:
            add(point, (0.0, at_point, 0.0))
        slope = (Fraction(float(rise)) - Fraction(value)) / (Fraction(float(points[k + 1])) - Fraction(point))
        # There is nothing to interpolate between adjacent floats.
        if at_point == value or beyond < points[k + 1]:
            add(point if at_point == value else beyond, (point, value, _rounded(slope)))
    numbers = np.array(pieces)
    return Pieces(np.array(edges), numbers[:, 0].copy(), numbers[:, 1:].copy())


STEPS: Final = (
    Step(
        "QuantileTransformer",
        "sklearn.preprocessing",
        "output_distribution quantiles_ references_ copy",
        _quantile_transformer,
        in_place,
        refused=f"{OVERWRITES}; zeros of a sparse step",
        takes_nan=True,
        gives_sparse=keeps_sparse,
        differs_if_sparse=lambda step: () if _keeps_zeros(step) else (SPARSE,),  # implicit zeros remain 0
    ),
    Step(
        "PolynomialFeatures",
        "sklearn.preprocessing",
        "interaction_only include_bias _min_degree _max_degree n_output_features_",
        _polynomial_features,
        in_place,
        refused="more than 16,384 products",
        gives_sparse=keeps_sparse,
    ),
    Step(
        "SplineTransformer",
        "sklearn.preprocessing",
        "bsplines_ degree extrapolation include_bias handle_missing",
        _spline_transformer,
        in_place,
        refused="degree 0; handle_missing='zeros'",
        helpers=(("bsplines_", "BSpline"),),
        gives_sparse=gives_sparse_as_asked,
    ),
)

"""Models without a truncated expansion on a device: sums of kernels or of other terms, and polynomial forms.

Each model is described by a `Sums` record, which holds the arrays and macros used by the generated C code
(cpp/include/approxsvm/exported/sums.h) and the bounds (backends/sum_bounds.py). In addition to the sum, a row's bound
takes only two evaluations by Horner's rule. Here r is ||z||, or ||z - center|| in scaled units. Inner products v_i . z
and squared distances are computed in float32 with u = 2^-24; powers, tanh, cos and sums over terms are computed in
float64.

**Inner products.** v_i is gamma x_i, or a term's vector, rounded to float32; z is also rounded if an input map computes
it. Products are accumulated in four lanes, with at most p = d / 4 + 6 roundings on any path, so eta = 1.01 (p + 2) u.
Underflow, or flushing to zero, contributes less than eta 2^-80 (1 + r); alpha and beta are increased by 2^-80 to cover
this error. Coefficients a_i are rounded to float32, with a relative error of at most u and an underflow error of at
most 2^-120. The relative rounding error of the sum, including the power, is at most (n + 14) 2^-53; tanh and cos are
accurate to 2^-46. For cos, full periods are subtracted in float64; the rounding of 2 pi contributes 2^-52 (B_i + 8),
which is covered by eta B_i and 2^-40. Rows beyond 2^40 periods are rejected.

**Distances.** y_i = scale (x_i - center) and the row's y are rounded to float32, with a relative error of at most u in
each coordinate. The rounding changes a distance by at most u (r + ||y_i||), and a kernel exp(-theta D^2 / 2) by at most
sqrt(theta / e) times as much. Differences, squares, sums and the factor theta / 2 change the argument h by at most (p +
6) u h, and h exp(-h) <= 1 / e; exp itself contributes 4 u:

    majorant = 1.01 u sum_i |a_i| [ (p + 6) / e + 6 + sqrt(theta / e) (r + ||y_i||) ] + (n + 8) 2^-53 A1 + d 2^-110 A1,

where the last term covers underflow; slope = A1 sqrt(2 gamma / e), in units of the mapped row. No error exceeds
1.01 A1.

**Linear models** need only one inner product per function: v_k = sum_i a_ki gamma x_i in float64, or the linear part of
a polynomial form, whose stored errors (models/FORMAT.md, "polynomial") are added. **Quadratic forms** are evaluated
like expansions, with at most d + 40 roundings per term.

r is the square root of a float32 sum of squares, rounded up; the majorant accounts for the rounding of the sum.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.artifact.terms import Terms, terms_of
from approxsvm.artifact.views import Artifact
from approxsvm.backends.c99 import source
from approxsvm.backends.c99.answers import Macros
from approxsvm.backends.c99.device.ops import float32_above
from approxsvm.backends.c99.device.router import smallest
from approxsvm.backends.c99.device.rows import DeviceRows
from approxsvm.backends.sum_bounds import Arithmetic, SumBounds, bounds_of_form, bounds_of_terms, fixed_errors, form_of
from approxsvm.errors import UnsupportedModelError
from approxsvm.ir.compensated import norms_above
from approxsvm.ir.constants import UNIT32, UNIT64, gaussian_slope
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.outputs import class_pairs
from approxsvm.reference.term_sums import term_sums

# Limit on float32 values and on intermediate results.
LARGEST: Final = 1e37
_LONGEST: Final = 3e18
_MOST_TURNS: Final = 2.0**40
_TINY: Final = 2.0**-80
_FUNCTION: Final = 2.0**-40  # error of tanh, cos and exp in float64
# Bounds on the relative error of adding an intercept, and on the effect of underflow.
_OF_INTERCEPTS: Final = 2.0**-48, 1e-36
_UP: Final = 1.0 + 1e-6


@dataclass(frozen=True, eq=False)
class Sums:
    """Arrays, macros and error bounds of a model."""

    what: str  # short description of the model
    arrays: dict[str, npt.NDArray[Any]]
    bounds: SumBounds
    longest: float  # the largest r for which rows are evaluated
    multiply_adds: int
    macros: Macros = field(default_factory=dict)


def sums_of(artifact: Artifact) -> Sums:
    """Return the record of an artifact with support vectors, other terms or forms; its values must fit into float32."""
    if artifact.is_polynomial and int(artifact.header["degree"]) == 1:
        return _linear(artifact)
    if artifact.has_form:
        return _quadratic_form(artifact)
    terms = terms_of(artifact)
    if artifact.kernel not in _BY_KERNEL if terms is None else terms.function not in _BY_FUNCTION:
        raise UnsupportedModelError(f"the C export has no {artifact.kernel} kernel")
    return _BY_KERNEL[artifact.kernel](artifact) if terms is None else _BY_FUNCTION[terms.function](artifact, terms)


@dataclass(frozen=True, eq=False)
class _Terms:
    """Vectors of a sum's terms, and `moduli`: absolute coefficients, rounded up, shape (n_functions, n_terms)."""

    vectors: FloatArray
    moduli: FloatArray
    groups: tuple[FloatArray, npt.NDArray[np.intp], npt.NDArray[np.intp]]

    @property
    def n(self) -> int:
        return len(self.vectors)

    @property
    def path(self) -> int:
        """Maximum number p of roundings on any path in an inner product."""
        return int(self.vectors.shape[1]) // 4 + 6

    @property
    def eta(self) -> float:
        return 1.01 * (self.path + 2) * float(UNIT32)

    @property
    def alphas(self) -> FloatArray:
        return norms_above(self.vectors) * _UP + _TINY

    def arithmetic(self, n_roundings: int = 8) -> Arithmetic:
        """Return the errors of a sum with `n_roundings` float64 roundings in addition to one per term."""
        of_terms = 2.0 * UNIT32 + (self.n + n_roundings) * UNIT64
        return Arithmetic(self.eta, of_terms, _FUNCTION, *_OF_INTERCEPTS)

    def record(self, macros: Macros, bounds: SumBounds, longest: float, what: str, **extra: Any) -> Sums:
        """Build the record; `macros` selects the kind of terms (cpp/include/approxsvm/exported/sums.h)."""
        weights, ends, places = self.groups
        arrays = {
            "vectors_": _float32(self.vectors, "vectors"),
            "weights_": _float32(weights, "coefficients"),
            "ends_": smallest(ends),
            "places_": smallest(places),
            **extra,
        }
        n_features, n_weights = self.vectors.shape[1], weights.shape[1]
        return Sums(
            what,
            arrays,
            _longer(bounds, n_features),
            longest,
            self.n * (n_features + n_weights),
            {"n_terms_": self.n, "n_weights_": n_weights, **macros},
        )


def _of_kernels(artifact: Artifact, vectors: FloatArray) -> _Terms:
    """Return the terms of support vectors; a class's vectors occur only in the pairs that include it."""
    coef, moduli = artifact.dual_coef(), np.abs(artifact.decision_coef()) * _UP + 2.0**-120
    n_classes = len(artifact.labels)
    if n_classes <= 2 or artifact.outputs.of_each_class:
        return _Terms(vectors, moduli, (coef.T, np.array([len(vectors)]), np.arange(len(coef))))
    ends = np.cumsum(artifact.numbers("class_counts").astype(np.int64))
    numbers = {pair: k for k, pair in enumerate(class_pairs(n_classes))}
    places = [numbers[min(c, o), max(c, o)] for c in range(n_classes) for o in range(n_classes) if o != c]
    return _Terms(vectors, moduli, (coef.T, ends, np.array(places)))


def _longer(bounds: SumBounds, n_features: int) -> SumBounds:
    """Replace r in polynomials with a larger value, because r is computed as the root of a rounded float32 sum."""
    factor = 1.0 + 2.0 * n_features * UNIT32
    majorant, slope = (np.asarray(p * factor ** np.arange(p.shape[1]) * _UP) for p in (bounds.majorant, bounds.slope))
    return SumBounds(majorant, slope, bounds.most)


def _gaussian(artifact: Artifact) -> Sums:
    header, gamma = artifact.header, float(artifact.header["gamma"])
    scale = float(header["input_scale"])
    y = (artifact.support_vectors() - artifact.center.astype(np.float64)) * scale
    terms = _of_kernels(artifact, y)
    sums, majorant = terms.moduli.sum(axis=1), _gaussian_rounding(terms, 2.0 * gamma / scale**2)
    fixed = fixed_errors(artifact, terms.arithmetic())
    majorant[:, 0] += fixed
    bounds = SumBounds(majorant, (gaussian_slope(gamma) * sums)[:, np.newaxis], 1.01 * sums + fixed)
    longest = _longest(artifact, terms, lambda r: sums)
    macros: Macros = {"is_gaussian_": 1, "is_centered_": 1, "has_coordinates_": 1}
    macros["half_theta_"] = source.literal(np.float32(gamma / scale**2))
    return terms.record(macros, bounds, longest, f"{terms.n:,} Gaussians")


def _gaussian_rounding(terms: _Terms, theta: float) -> FloatArray:
    """Bound the effect of float32 distances and kernels on sums, as a polynomial in r for each function."""
    sums, steep = terms.moduli.sum(axis=1), math.sqrt(theta / math.e)
    fixed = (terms.path + 6.0) / math.e + 6.0
    constant = 1.01 * UNIT32 * (fixed * sums + steep * (terms.moduli @ terms.alphas))
    constant += ((terms.n + 8) * UNIT64 + terms.vectors.shape[1] * 2.0**-110) * sums
    return np.column_stack([constant, 1.01 * UNIT32 * steep * sums])


def _of_products(artifact: Artifact) -> Sums:
    degree = int(artifact.header["degree"])
    with np.errstate(over="ignore"):
        terms = _of_kernels(artifact, float(artifact.header["gamma"]) * artifact.support_vectors())
    beta = abs(artifact.coef0) * _UP + _TINY
    bounds = bounds_of_terms(artifact, terms.arithmetic(8 + degree), degree, terms.alphas, beta, terms.moduli)
    sums = term_sums(degree, terms.alphas, beta, terms.moduli)
    longest = _longest(artifact, terms, lambda r: sums.errors(0.0, 1.0, sums.moduli_at(np.asarray(r))))
    macros: Macros = {"exponent_": degree, "is_tanh_": int(not degree)}
    macros["coef0_"] = source.literal(artifact.coef0)
    return terms.record(macros, bounds, longest, artifact.kernel_name)


def _cos(artifact: Artifact, stored: Terms) -> Sums:
    by_term = (stored.coef.T, np.array([len(stored.shifts)]), np.arange(len(stored.coef)))
    terms = _Terms(stored.vectors, np.abs(stored.coef) * _UP + 2.0**-120, by_term)
    bounds = bounds_of_terms(artifact, terms.arithmetic(), 0, terms.alphas, stored.max_shift, terms.moduli)
    most = _longest(artifact, terms, lambda r: terms.moduli.sum(axis=1))
    longest = min(most, _MOST_TURNS / float(terms.alphas.max()))
    return terms.record({"is_cos_": 1}, bounds, longest, artifact.kernel_name, phases_=stored.shifts.copy())


def _linear(artifact: Artifact) -> Sums:
    if artifact.has_form:
        form = form_of(artifact)
        constants, vectors = form.constants, form.packed
        constant_errors, linear_errors, _ = form.errors
    else:
        x, coef = artifact.support_vectors(), artifact.decision_coef()
        gamma, coef0 = float(artifact.header["gamma"]), artifact.coef0
        with np.errstate(over="ignore", invalid="ignore"):
            block = gamma * x
            vectors = coef @ block
            constants = artifact.decision_numbers()["intercept"] + coef0 * coef.sum(axis=1)
        path = 1.01 * (len(x) + 20) * UNIT64 + float(artifact.polynomial_numbers()[1])
        moduli = np.abs(coef)
        linear_errors = path * (moduli @ norms_above(block)) * _UP
        constant_errors = path * (abs(coef0) * moduli.sum(axis=1) + np.abs(artifact.decision_numbers()["intercept"]))
    n = len(vectors)
    groups = np.ones((n, 1)), np.arange(1, n + 1), np.arange(n)
    terms = _Terms(np.ascontiguousarray(vectors), np.eye(n), groups)
    norms, arithmetic = terms.alphas, terms.arithmetic()
    fixed = constant_errors * _UP + fixed_errors(artifact, arithmetic) + 8.0 * UNIT64 * np.abs(constants)
    majorant = np.column_stack([fixed + terms.eta * _TINY, (terms.eta + 2.0 * UNIT32) * norms + linear_errors])
    bounds = SumBounds(majorant, (norms + linear_errors)[:, np.newaxis], None)
    longest = _longest(artifact, terms, lambda r: np.abs(constants) + norms * r)
    return terms.record({}, bounds, longest, artifact.kernel_name, intercepts_=constants.copy())


def _quadratic_form(artifact: Artifact) -> Sums:
    form, d = form_of(artifact), artifact.n_features
    constants, packed, norms = form.constants, form.packed, form.norms * _UP + _TINY
    arithmetic = Arithmetic(0.0, 1.01 * (d + 44) * UNIT32, 0.0, *_OF_INTERCEPTS)
    terms = _Terms(packed, np.eye(len(packed)), (packed, np.empty(0, np.intp), np.empty(0, np.intp)))
    return Sums(
        what=artifact.kernel_name,
        arrays={
            "degree_1_": _float32(packed[:, :d], "forms"),
            "degree_2_": _float32(packed[:, d:], "forms"),
            "intercepts_": constants.copy(),
        },
        bounds=_longer(bounds_of_form(artifact, arithmetic, replace(form, norms=norms)), d),
        longest=_longest(artifact, terms, lambda r: np.abs(constants) + norms[0] * r + norms[1] * r * r),
        multiply_adds=packed.size + d * len(packed),
        macros={"is_form_": 1, "size_2_": packed.shape[1] - d},
    )


def _float32(numbers: FloatArray, what: str) -> npt.NDArray[np.float32]:
    largest = float(np.abs(numbers).max(initial=0.0))
    if not largest < LARGEST:
        raise UnsupportedModelError(f"{what} up to {largest:.3g} do not fit float32: scale rows or coefficients")
    return np.ascontiguousarray(numbers, np.float32)


def _longest(artifact: Artifact, terms: _Terms, largest: Callable[[float], FloatArray]) -> float:
    """Return the largest r for which products and values do not overflow float32."""
    intercept = np.abs(artifact.decision_numbers()["intercept"])
    longest_vector = float(terms.alphas.max(initial=0.0))

    def fits(r: float) -> bool:
        with np.errstate(over="ignore", invalid="ignore"):
            return bool((largest(r) + intercept < LARGEST).all()) and longest_vector * max(r, 1.0) < LARGEST

    if not fits(0.0):
        with np.errstate(over="ignore", invalid="ignore"):
            value = float((largest(0.0) + intercept).max())
        raise UnsupportedModelError(
            f"decision values up to {max(value, longest_vector):.3g} do not fit float32: scale the coefficients"
        )
    r = _LONGEST
    while not fits(r):
        r *= 0.9
        if r < 1e-18:
            raise UnsupportedModelError("no row but the origin has a value that fits float32: scale the rows")
    return r


_BY_KERNEL: Final[dict[str, Callable[[Artifact], Sums]]] = {
    "gaussian": _gaussian,
    "polynomial": _of_products,
    "sigmoid": _of_products,
}
_BY_FUNCTION: Final[dict[str, Callable[[Artifact, Terms], Sums]]] = {"cos": _cos}


class SumFunction:
    """Decision values in a header, computed by sums; counterpart of the class `Expansions`."""

    def __init__(self, artifact: Artifact, rows: DeviceRows) -> None:
        self.artifact, self.rows, self.sums = artifact, rows, sums_of(artifact)
        self.bounds = self.sums.bounds
        if not all((numbers < LARGEST).all() for numbers in (self.bounds.majorant, self.bounds.slope)):
            what = f", with coef0 {artifact.coef0:.3g}" if abs(artifact.coef0) > 1e6 else ""
            raise UnsupportedModelError(f"bounds of this model{what} do not fit float32: scale rows or coefficients")
        self.strange = f"a row {rows.refused}, or too long for float32"  # rows for which no value is computed
        self.what = self.sums.what
        self.stack_bytes = 4 * artifact.n_features + rows.stack_bytes
        self.multiply_adds = artifact.n_features + self.sums.multiply_adds

    @property
    def macros(self) -> Macros:
        """Macros for sizes and scalars, by name."""
        if not self.rows.moved < LARGEST:
            raise UnsupportedModelError("after the input map, a step between codes exceeds float32: scale the rows")
        # Subnormal numbers would have larger relative rounding errors, or be flushed to 0.
        moved = np.float32(max(self.rows.moved * 1.00001, 2.0**-120) if self.rows.moved else 0.0)
        return {
            "n_varying_": self.artifact.n_features,
            "n_majorant_": self.bounds.majorant.shape[1],
            "n_slope_": self.bounds.slope.shape[1],
            "has_most_": int(self.bounds.most is not None),
            "limit_sq_": source.literal(np.float32(min(self.sums.longest, _LONGEST) ** 2)),
            "input_scale_": source.literal(np.float32(self.artifact.header["input_scale"])),
            "moved_": source.literal(moved),
            "coefficient_": "float",
            **self.sums.macros,
        }

    def arrays(self) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        """Yield the name and the values of each array."""
        if "is_centered_" in self.sums.macros:
            yield "centers_", self.artifact.center
        if "intercepts_" not in self.sums.arrays:
            yield "intercepts_", self.artifact.decision_numbers()["intercept"].copy()
        yield from self.sums.arrays.items()
        yield "majorants_", float32_above(self.bounds.majorant)
        yield "slopes_", float32_above(self.bounds.slope)
        if self.bounds.most is not None:
            yield "most_", float32_above(self.bounds.most)

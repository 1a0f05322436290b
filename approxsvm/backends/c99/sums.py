"""Models without a truncated expansion on a device: sums of kernels or other terms, and polynomial forms.

Every one of them is a record (`Sums`): what is stored, the C text of its sum, and two polynomials for each decision
function with coefficients of at least 0,

    |value - exact value at the row that arrived|       <=  majorant(r),   r = ||z||, or ||z - center|| in scaled units,
    |change of the exact value when the row moves by e| <=  slope(r + e) e,

so that what a row costs beside its sum is two evaluations by Horner's rule. The terms are inner products v_i . z or
squared distances in float32, u = 2^-24; powers, tanh, cos and the sums over terms in float64.

**Inner products.** v_i is gamma x_i, or the vector of a term, rounded to float32, and so is z behind an input map. A
product is added up in four lanes: p = d / 4 + 6 roundings on any path. So with alpha_i >= ||v_i||, beta the modulus of
coef0 or of the shift, and eta = 1.01 (p + 2) u, the argument t_i of the kernel is off by at most eta B_i,

    B_i = alpha_i r + beta.

Numbers that underflow, or are flushed to zero, change it by less than eta 2^-80 (1 + r), and alpha and beta are larger
by 2^-80 for that. Coefficients a_i are rounded to float32: relatively by u, and by 2^-120 of underflow.

* t^p: |(t + eta B)^p - t^p| <= p eta (1 + eta)^(p - 1) B^p. With the rounding of the sum in float64 and coef_error c,
  majorant = (1.01 p eta (1 + eta)^(p - 1) + 2 u + (n + p + 8) 2^-53 + c) sum_i |a_i| B_i^p, multiplied out in r;
  slope = p sum_i |a_i| alpha_i B_i^(p - 1).
* tanh t, of slope 1 and modulus 1: majorant = sum_i |a_i| (eta B_i + 2 u + c + (n + 8) 2^-53 + 2^-40), where 2^-40 is
  for tanh itself, which is within 2^-46; slope = sum_i |a_i| alpha_i.
* cos t the same, without c. Whole turns are taken off in float64: 2 pi is rounded, which is 2^-52 (B_i + 8), part of
  eta B_i and of 2^-40; rows are refused beyond 2^40 turns.

**Distances.** y_i = scale (x_i - center) is rounded to float32, and so is the row's y, each coordinate by u. That moves
a distance by u (r + ||y_i||), and a kernel exp(-theta D^2 / 2) by sqrt(theta / e) times that. Differences, squares,
sums and the factor theta / 2 err by (p + 6) u of the argument h, and h exp(-h) <= 1 / e; exp by 4 u:

    majorant = 1.01 u sum_i |a_i| [ (p + 6) / e + 6 + sqrt(theta / e) (r + ||y_i||) ] + (n + 8) 2^-53 A1 + d 2^-110 A1,

the last for underflow; slope = A1 sqrt(2 gamma / e), in units of the mapped row.

Kernels that stay in an interval of width w leave no value further off than 1.01 w A1 (1 for Gaussians, 2 for the other
two), which is the bound where the majorant is more.

**Linear models** are one inner product for each function: v_k = sum_i a_ki gamma x_i in float64, or the linear part of
a form, whose own errors (models/FORMAT.md, "polynomial") come on top. **Forms of degree 2** are evaluated as expansions
are, and a term takes at most d + 40 roundings; the norm of their quadratic part is that of the packed numbers, whose
off-diagonal ones are doubled, and no less than that of the symmetric matrix.

r is computed from a float32 sum of squares, its root rounded upwards; the majorant allows for the rounding of the sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.artifact.terms import Terms, terms_of
from approxsvm.artifact.views import Artifact
from approxsvm.backends.c99 import source, sums_source
from approxsvm.backends.c99.device_router import smallest
from approxsvm.backends.c99.device_rows import DeviceRows
from approxsvm.backends.c99.device_steps import float32_above
from approxsvm.errors import UnsupportedModelError
from approxsvm.ir.compensated import norms_above
from approxsvm.ir.constants import UNIT32, UNIT64, gaussian_slope
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.outputs import class_pairs
from approxsvm.ir.schema import FORM_HEADER, POLYNOMIAL_HEADER

# Neither a value nor what it is made of may be beyond this in float32.
LARGEST: Final = 1e37
_LONGEST: Final = 3e18
_MOST_TURNS: Final = 2.0**40
_TINY: Final = 2.0**-80
_FUNCTION: Final = 2.0**-40  # of tanh, cos and exp in float64
_UP: Final = 1.0 + 1e-6


@dataclass(frozen=True, eq=False)
class Sums:
    """What a device stores of a model, and its bounds.

    Attributes
    ----------
    what : str
        The model in words.
    arrays : dict of str to ndarray
    text : str
        The C function `sums` of a row, which adds to values.
    majorant, slope : ndarray of shape (n_functions, degree + 1), float64
    most : ndarray of shape (n_functions,), float64, or None
        What no value is off by.
    longest : float
        The largest r of a row that is evaluated.
    is_centered : bool
        Whether rows are taken about the center, in scaled units.
    multiply_adds : int
    constants : dict of str to int
    """

    what: str
    arrays: dict[str, npt.NDArray[Any]]
    text: str
    majorant: FloatArray
    slope: FloatArray
    most: FloatArray | None
    longest: float
    multiply_adds: int
    is_centered: bool = False
    constants: dict[str, int] = field(default_factory=dict)


def sums_of(artifact: Artifact) -> Sums:
    """The record of an artifact that has support vectors, other terms or forms.

    Raises
    ------
    UnsupportedModelError
        Its numbers do not fit float32.
    """
    if artifact.is_polynomial and int(artifact.header["degree"]) == 1:
        return _linear(artifact)
    if artifact.has_form:
        return _quadratic_form(artifact)
    terms = terms_of(artifact)
    if artifact.kernel not in _BY_KERNEL if terms is None else terms.function not in _BY_FUNCTION:
        raise UnsupportedModelError(f"the C export has no {artifact.kernel} kernel")
    return _BY_KERNEL[artifact.kernel](artifact) if terms is None else _BY_FUNCTION[terms.function](artifact, terms)


# --- terms


@dataclass(frozen=True, eq=False)
class _Terms:
    """Vectors of the terms of a sum, and the moduli of their coefficients, (n_functions, n_terms), rounded up."""

    vectors: FloatArray
    moduli: FloatArray
    groups: tuple[FloatArray, npt.NDArray[np.intp], npt.NDArray[np.intp]]

    @property
    def n(self) -> int:
        return len(self.vectors)

    @property
    def path(self) -> int:
        """p: the roundings of a product of two vectors."""
        return int(self.vectors.shape[1]) // 4 + 6

    @property
    def eta(self) -> float:
        return 1.01 * (self.path + 2) * float(UNIT32)

    @property
    def alphas(self) -> FloatArray:
        return norms_above(self.vectors) * _UP + _TINY

    def record(self, term: str, extra: dict[str, npt.NDArray[Any]], **bounds: Any) -> Sums:
        """With a C statement that makes `term` of the vector x of term i and of u."""
        weights, ends, places = self.groups
        arrays = {
            "vectors_": _float32(self.vectors, "vectors"),
            "weights_": _float32(weights, "coefficients"),
            "ends_": smallest(ends),
            "places_": smallest(places),
            **extra,
        }
        per_term = self.vectors.shape[1] + weights.shape[1]
        constants = {"n_terms_": self.n, "n_weights_": weights.shape[1]}
        text = sums_source.TERMS.replace("#TERM#", term)
        return Sums(
            text=text, arrays=arrays, multiply_adds=self.n * per_term, constants=constants, **self._widened(bounds)
        )

    def _widened(self, bounds: dict[str, Any]) -> dict[str, Any]:
        """A row's length is off by what its float32 sum of squares rounds."""
        longer = 1.0 + 2.0 * self.vectors.shape[1] * UNIT32
        return bounds | {name: _longer(bounds[name], longer) for name in ("majorant", "slope")}


def _of_kernels(artifact: Artifact, vectors: FloatArray) -> _Terms:
    """Of support vectors: those of a class take part in its own pairs alone."""
    coef, moduli = artifact.dual_coef(), np.abs(artifact.decision_coef()) * _UP + 2.0**-120
    n_classes = len(artifact.labels)
    if n_classes <= 2 or artifact.outputs.of_each_class:
        return _Terms(vectors, moduli, (coef.T, np.array([len(vectors)]), np.arange(len(coef))))
    ends = np.cumsum(artifact.numbers("class_counts").astype(np.int64))
    numbers = {pair: k for k, pair in enumerate(class_pairs(n_classes))}
    places = [numbers[min(c, o), max(c, o)] for c in range(n_classes) for o in range(n_classes) if o != c]
    return _Terms(vectors, moduli, (coef.T, ends, np.array(places)))


def _longer(polynomials: FloatArray, factor: float) -> FloatArray:
    """The same in an r that is a little too small."""
    return np.asarray(polynomials * factor ** np.arange(polynomials.shape[1]) * _UP)


def _gaussian(artifact: Artifact) -> Sums:
    header, gamma = artifact.header, float(artifact.header["gamma"])
    scale = float(header["input_scale"])
    y = (artifact.support_vectors() - artifact.center.astype(np.float64)) * scale
    terms = _of_kernels(artifact, y)
    sums, majorant = terms.moduli.sum(axis=1), _gaussian_rounding(terms, 2.0 * gamma / scale**2)
    majorant[:, 0] += _fixed(artifact)
    return terms.record(
        sums_source.GAUSSIAN,
        {},
        what=f"{terms.n:,} Gaussians",
        majorant=majorant,
        slope=(gaussian_slope(gamma) * sums)[:, np.newaxis],
        most=1.01 * sums + _fixed(artifact),
        longest=_longest(artifact, terms, lambda r: sums),
        is_centered=True,
    )


def _gaussian_rounding(terms: _Terms, theta: float) -> FloatArray:
    """What distances and kernels in float32 make sums err by, a polynomial in r for each function."""
    sums, steep = terms.moduli.sum(axis=1), math.sqrt(theta / math.e)
    fixed = (terms.path + 6.0) / math.e + 6.0
    constant = 1.01 * UNIT32 * (fixed * sums + steep * (terms.moduli @ terms.alphas))
    constant += ((terms.n + 8) * UNIT64 + terms.vectors.shape[1] * 2.0**-110) * sums
    return np.column_stack([constant, 1.01 * UNIT32 * steep * sums])


def _polynomial(artifact: Artifact) -> Sums:
    terms, beta = _of_products(artifact)
    degree, coef_error = int(artifact.header["degree"]), float(artifact.polynomial_numbers()[1])
    powers = _powers(terms, degree, beta)
    eta = terms.eta
    relative = 1.01 * degree * eta * (1.0 + eta) ** (degree - 1) + 2.0 * UNIT32 + coef_error
    majorant = (relative + (terms.n + degree + 8) * UNIT64) * powers
    majorant[:, 0] += _fixed(artifact)
    steep = _Terms(terms.vectors, terms.moduli * terms.alphas, terms.groups)
    return terms.record(
        sums_source.power(degree),
        {},
        what=artifact.kernel_name,
        majorant=majorant,
        slope=degree * _powers(steep, degree - 1, beta),
        most=None,
        longest=_longest(artifact, terms, lambda r: powers @ r ** np.arange(degree + 1)),
    )


def _powers(terms: _Terms, degree: int, beta: float) -> FloatArray:
    """sum_i |a_i| (alpha_i r + beta)^degree, multiplied out in r."""
    columns = [
        math.comb(degree, k) * beta ** (degree - k) * (terms.moduli @ terms.alphas**k) for k in range(degree + 1)
    ]
    return np.column_stack(columns)


def _of_products(artifact: Artifact) -> tuple[_Terms, float]:
    """Terms of gamma x_i, and beta."""
    with np.errstate(over="ignore"):
        vectors = float(artifact.header["gamma"]) * artifact.support_vectors()
    return _of_kernels(artifact, vectors), abs(artifact.coef0) * _UP + _TINY


def _sigmoid(artifact: Artifact) -> Sums:
    terms, beta = _of_products(artifact)
    coef_error = float(artifact.polynomial_numbers()[1])
    return _of_bounded(artifact, terms, sums_source.SIGMOID, {}, beta, coef_error, math.inf, artifact.kernel_name)


def _cos(artifact: Artifact, stored: Terms) -> Sums:
    by_term = (stored.coef.T, np.array([len(stored.shifts)]), np.arange(len(stored.coef)))
    terms = _Terms(stored.vectors, np.abs(stored.coef) * _UP + 2.0**-120, by_term)
    turns = _MOST_TURNS / float(terms.alphas.max())
    extra = {"phases_": stored.shifts.copy()}
    return _of_bounded(artifact, terms, sums_source.OF_COS, extra, stored.max_shift, 0.0, turns, artifact.kernel_name)


def _of_bounded(
    artifact: Artifact,
    terms: _Terms,
    text: str,
    extra: dict[str, npt.NDArray[Any]],
    beta: float,
    coef_error: float,
    longest: float,
    what: str,
) -> Sums:
    """Sums of functions of inner products whose slope and modulus are at most 1."""
    sums, slopes = terms.moduli.sum(axis=1), terms.moduli @ terms.alphas
    each = terms.eta * beta + 2.0 * UNIT32 + coef_error + (terms.n + 8) * UNIT64 + _FUNCTION
    return terms.record(
        text,
        extra,
        what=what,
        majorant=np.column_stack([each * sums + _fixed(artifact), terms.eta * slopes]),
        slope=slopes[:, np.newaxis],
        most=2.02 * sums + _fixed(artifact),
        longest=min(longest, _longest(artifact, terms, lambda r: sums)),
    )


# --- polynomials of degree 1 and 2, summed up


def _linear(artifact: Artifact) -> Sums:
    if artifact.has_form:
        heads, packed = _forms(artifact)
        constants, constant_errors, linear_errors = heads.T[:3]
        vectors = packed
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
    fixed = constant_errors * _UP + _fixed(artifact) + 8.0 * UNIT64 * np.abs(constants) + terms.eta * _TINY
    norms = terms.alphas
    return terms.record(
        sums_source.LINEAR,
        {"intercepts_": constants.copy()},
        what=artifact.kernel_name,
        majorant=np.column_stack([fixed, (terms.eta + 2.0 * UNIT32) * norms + linear_errors]),
        slope=(norms + linear_errors)[:, np.newaxis],
        most=None,
        longest=_longest(artifact, terms, lambda r: np.abs(constants) + norms * r),
    )


def _quadratic_form(artifact: Artifact) -> Sums:
    heads, packed = _forms(artifact)
    d = artifact.n_features
    constants, constant_errors, linear_errors, quadratic_errors = heads.T
    linear, quadratic = norms_above(packed[:, :d]) * _UP + _TINY, norms_above(packed[:, d:]) * _UP + _TINY
    path = 1.01 * (d + 44) * UNIT32
    fixed = constant_errors * _UP + _fixed(artifact) + 8.0 * UNIT64 * np.abs(constants) + path * _TINY
    majorant = np.column_stack([fixed, path * linear + linear_errors, path * quadratic + quadratic_errors])
    terms = _Terms(packed, np.eye(len(packed)), (packed, np.empty(0, np.intp), np.empty(0, np.intp)))
    longer = 1.0 + 2.0 * d * UNIT32
    return Sums(
        what=artifact.kernel_name,
        arrays={
            "degree_1_": _float32(packed[:, :d], "forms"),
            "degree_2_": _float32(packed[:, d:], "forms"),
            "intercepts_": constants.copy(),
        },
        text=source.QUADRATIC + sums_source.FORM,
        majorant=_longer(majorant, longer),
        slope=_longer(np.column_stack([linear + linear_errors, 2.0 * (quadratic + quadratic_errors)]), longer),
        most=None,
        longest=_longest(artifact, terms, lambda r: np.abs(constants) + linear * r + quadratic * r * r),
        multiply_adds=packed.size + d * len(packed),
        constants={"size_1_": d, "size_2_": packed.shape[1] - d},
    )


def _forms(artifact: Artifact) -> tuple[FloatArray, FloatArray]:
    """Constants and errors, and packed coefficients, of each function (models/FORMAT.md, "polynomial")."""
    numbers = artifact.polynomial_numbers()[len(POLYNOMIAL_HEADER) :].reshape(artifact.n_decisions, -1)
    return numbers[:, : len(FORM_HEADER)], np.ascontiguousarray(numbers[:, len(FORM_HEADER) :])


# --- what fits float32


def _fixed(artifact: Artifact) -> FloatArray:
    """What is off whatever the row is."""
    decisions = artifact.decision_numbers()
    return np.asarray(decisions["value_error"] + 2.0**-48 * np.abs(decisions["intercept"]) + 1e-36)


def _float32(numbers: FloatArray, what: str) -> npt.NDArray[np.float32]:
    largest = float(np.abs(numbers).max(initial=0.0))
    if not largest < LARGEST:
        raise UnsupportedModelError(f"{what} up to {largest:.3g} do not fit float32: scale rows or coefficients")
    return np.ascontiguousarray(numbers, np.float32)


def _longest(artifact: Artifact, terms: _Terms, largest: Callable[[float], FloatArray]) -> float:
    """The largest r for which neither products nor values leave float32."""
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
    "polynomial": _polynomial,
    "sigmoid": _sigmoid,
}
_BY_FUNCTION: Final[dict[str, Callable[[Artifact, Terms], Sums]]] = {"cos": _cos}


# --- in a header


class SumFunction:
    """Decision values of sums in a header, as `Expansions` are of expansions.

    Parameters
    ----------
    artifact : Artifact
    rows : DeviceRows
    """

    def __init__(self, artifact: Artifact, rows: DeviceRows) -> None:
        self.artifact, self.rows, self.sums = artifact, rows, sums_of(artifact)
        bounds = self.sums.majorant, self.sums.slope
        if not all((numbers < LARGEST).all() for numbers in bounds):
            what = f", with coef0 {artifact.coef0:.3g}" if abs(artifact.coef0) > 1e6 else ""
            raise UnsupportedModelError(f"bounds of this model{what} do not fit float32: scale rows or coefficients")

    @property
    def strange(self) -> str:
        """What has no values, in words."""
        return f"a row {self.rows.refused}, or too long for float32"

    @property
    def what(self) -> str:
        """In words."""
        return self.sums.what

    @property
    def stack_bytes(self) -> int:
        """Of its arrays."""
        return 4 * self.artifact.n_features + self.rows.stack_bytes

    @property
    def multiply_adds(self) -> int:
        """Of one row."""
        return self.artifact.n_features + self.sums.multiply_adds

    def constants(self) -> dict[str, int]:
        """Sizes."""
        majorant, slope = self.sums.majorant.shape[1], self.sums.slope.shape[1]
        return {
            "n_varying_": self.artifact.n_features,
            "n_majorant_": majorant,
            "n_slope_": slope,
            **self.sums.constants,
        }

    def scalars(self) -> dict[str, str]:
        """Numbers in the text."""
        header, limit = self.artifact.header, np.float32(min(self.sums.longest, _LONGEST) ** 2)
        scale = float(header["input_scale"])
        return {
            "@coef0@@": source.literal(self.artifact.coef0),
            "@limit_sq@@": source.literal(limit),
            "@input_scale@@": source.literal(np.float32(scale)),
            "@half_theta@@": source.literal(np.float32(float(header["gamma"]) / scale**2)),
        }

    def arrays(self) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        """By name."""
        if self.sums.is_centered:
            yield "centers_", self.artifact.center
        if "intercepts_" not in self.sums.arrays:
            yield "intercepts_", self.artifact.decision_numbers()["intercept"].copy()
        yield from self.sums.arrays.items()
        yield "majorants_", float32_above(self.sums.majorant)
        yield "slopes_", float32_above(self.sums.slope)
        if self.sums.most is not None:
            yield "most_", float32_above(self.sums.most)

    def functions(self) -> Iterator[str]:
        """Up to `evaluate`."""
        yield source.NORM_IN_LANES
        yield sums_source.ROOT
        yield self.sums.text
        rows = self.rows
        if self.sums.is_centered:
            yield rows.coordinate()
            load = f"@coordinate@@({'x' if rows.is_whole else 'row'}, j, @centers@@)"
        else:
            if rows.is_whole:
                yield rows.whole_map()
            load = "@narrowed@@(x[j])" if rows.is_whole else "@raw@@(row, j)"
        if not rows.moved < LARGEST:
            raise UnsupportedModelError("a step between codes is beyond float32 behind the input map: scale the rows")
        # Not denormal: those are rounded by more, or flushed.
        moved = source.literal(np.float32(max(rows.moved * 1.00001, 2.0**-120) if rows.moved else 0.0))
        yield sums_source.EVALUATE.format(
            declare="    double x[@widest@@];\n".replace("@widest@@", str(rows.widest)) if rows.is_whole else "",
            moved=f"@above@@(@map@@(row, x)) + {moved}" if rows.is_whole else moved,
            refuse=" + @not_finite@@(row)" if rows.has_map and not rows.codes else "",
            load=load,
            is_known="bound >= 0.0f" if self.sums.most is None else "bound < @most@@[k]",
            otherwise="approxsvm_infinity32()" if self.sums.most is None else "@most@@[k]",
            saturated="        if (@is_saturated@@(row)) bounds[k] = approxsvm_infinity32();\n" if rows.codes else "",
        )

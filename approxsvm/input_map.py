"""How raw rows become the rows that a model was trained on: scaling, clipping, selection and projection, folded.

    t_j = clip((z[columns_j] - offset_j) * scale_j, low_j, high_j)
    x   = t                                       without a matrix
    x   = (t - center) @ matrix + bias            with one

The source computes the same function step by step. Folding rounds its parameters; the fields named ``*_error`` bound
by how much, so that `InputMap.rounding` can bound the distance to the source's function over the real numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.errors import ModelFormatError, UnsupportedModelError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

UNIT_ROUNDOFF = 2.0**-53
_TINY = 2.0**-1070
# Error terms are themselves sums of a few rounded products.
_UP = 1.0 + 2.0**-30


def _empty() -> FloatArray:
    return np.empty(0)


@dataclass(frozen=True, eq=False)
class InputMap:
    """Function of one raw row, over the real numbers.

    Build it with `identity` and the ``then_*`` methods, each of which appends one step.

    Parameters
    ----------
    n_raw_features : int
        Columns of raw rows.
    columns : ndarray of shape (n_selected,), intp
        Raw column of each selected feature.
    offset, scale : ndarray of shape (n_selected,), float64
    low, high : ndarray of shape (n_selected,), float64
        Limits, infinite where there is none. A feature that is constant has scale 0 and equal limits.
    center : ndarray of shape (n_selected,), float64
        Empty without a matrix; likewise `bias`.
    matrix : ndarray of shape (n_selected, n_features), float64, optional
    bias : ndarray of shape (n_features,), float64
    scale_error, shift_error, limit_error : ndarray of shape (n_selected,), float64
        By how much folding may have changed t_j: |z - offset_j| scale_error_j + shift_error_j, and each limit.
    matrix_error : ndarray of shape (n_selected, n_features), float64, optional
    bias_error : ndarray of shape (n_features,), float64
    feature_names : tuple of str, optional
        Names of the raw columns.

    Raises
    ------
    ModelFormatError
        Shapes contradict each other, or a number is not finite.
    """

    n_raw_features: int
    columns: IntArray
    offset: FloatArray
    scale: FloatArray
    low: FloatArray
    high: FloatArray
    center: FloatArray = field(default_factory=_empty)
    matrix: FloatArray | None = None
    bias: FloatArray = field(default_factory=_empty)
    scale_error: FloatArray = field(default_factory=_empty)
    shift_error: FloatArray = field(default_factory=_empty)
    limit_error: FloatArray = field(default_factory=_empty)
    matrix_error: FloatArray | None = None
    bias_error: FloatArray = field(default_factory=_empty)
    feature_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Check once; error terms left out are zero."""
        n = len(self.columns)
        for name in ("scale_error", "shift_error", "limit_error"):
            if len(getattr(self, name)) == 0:
                object.__setattr__(self, name, np.zeros(n))
        if self.matrix is not None and self.matrix_error is None:
            object.__setattr__(self, "matrix_error", np.zeros_like(self.matrix))
        if len(self.bias_error) == 0:
            object.__setattr__(self, "bias_error", np.zeros_like(self.bias))
        for name in ("offset", "scale", "low", "high", "scale_error", "shift_error", "limit_error"):
            _check(name, getattr(self, name), (n,), finite=name not in ("low", "high"))
        if np.isnan(self.low).any() or np.isnan(self.high).any() or (self.low > self.high).any():
            raise ModelFormatError("a lower limit of the input map is above its upper limit, or NaN")
        if n and not (int(self.columns.min()) >= 0 and int(self.columns.max()) < self.n_raw_features):
            raise ModelFormatError(f"the input map selects column {int(self.columns.max())} of {self.n_raw_features}")
        if self.matrix is not None:
            _check("matrix", self.matrix, (n, self.matrix.shape[-1]))
            _check("matrix_error", self.matrix_error, self.matrix.shape)
            _check("center", self.center, (n,))
            _check("bias", self.bias, (self.matrix.shape[1],))
            _check("bias_error", self.bias_error, (self.matrix.shape[1],))
        if self.feature_names is not None and len(self.feature_names) != self.n_raw_features:
            raise ModelFormatError(f"{len(self.feature_names)} feature names for {self.n_raw_features} raw features")

    @classmethod
    def identity(cls, n_features: int, feature_names: tuple[str, ...] | None = None) -> InputMap:
        """The map that changes nothing."""
        columns = np.arange(n_features)
        return cls.selection(n_features, columns, feature_names)

    @classmethod
    def selection(
        cls, n_raw_features: int, columns: npt.ArrayLike, feature_names: tuple[str, ...] | None = None
    ) -> InputMap:
        """The map that picks raw columns, in the order given."""
        chosen = np.asarray(columns, dtype=np.intp)
        n = len(chosen)
        return cls(
            n_raw_features=n_raw_features,
            columns=chosen,
            offset=np.zeros(n),
            scale=np.ones(n),
            low=np.full(n, -np.inf),
            high=np.full(n, np.inf),
            feature_names=feature_names,
        )

    @classmethod
    def concatenate(cls, maps: Sequence[InputMap]) -> InputMap:
        """One map whose features are those of all `maps` of the same raw rows, side by side."""
        first = maps[0]
        if any(m.n_raw_features != first.n_raw_features for m in maps):
            raise ModelFormatError(f"the maps take {[m.n_raw_features for m in maps]} raw features")
        per_feature = {
            name: np.concatenate([getattr(m, name) for m in maps])
            for name in ("columns", "offset", "scale", "low", "high", "scale_error", "shift_error", "limit_error")
        }
        joined = cls(n_raw_features=first.n_raw_features, feature_names=first.feature_names, **per_feature)
        if all(m.matrix is None for m in maps):
            return joined
        with_matrix = [m if m.matrix is not None else m._with_identity_matrix() for m in maps]
        return replace(
            joined,
            center=np.concatenate([m.center for m in with_matrix]),
            matrix=_blocks([m.matrix for m in with_matrix]),
            matrix_error=_blocks([m.matrix_error for m in with_matrix]),
            bias=np.concatenate([m.bias for m in with_matrix]),
            bias_error=np.concatenate([m.bias_error for m in with_matrix]),
        )

    @property
    def n_features(self) -> int:
        """Columns of mapped rows."""
        return len(self.columns) if self.matrix is None else int(self.matrix.shape[1])

    @property
    def keeps_zeros(self) -> bool:
        """Whether every raw zero becomes a zero, so that sparse rows stay sparse."""
        zero = np.clip((0.0 - self.offset) * self.scale, self.low, self.high)
        return self.matrix is None and bool((zero == 0).all())

    @property
    def is_identity(self) -> bool:
        """Whether mapped rows equal raw rows."""
        return (
            self.matrix is None
            and np.array_equal(self.columns, np.arange(self.n_raw_features))
            and not self.offset.any()
            and bool((self.scale == 1).all())
            and bool(np.isneginf(self.low).all() and np.isposinf(self.high).all())
        )

    def then_affine(self, offset: Any, scale: Any, shift: Any = 0.0) -> InputMap:
        """Append x -> (x - offset) * scale + shift, per feature; numbers or fractions, one or one per feature."""
        return self._then_affine(offset, scale, shift, divide=False)

    def then_divide(self, offset: Any, divisor: Any) -> InputMap:
        """Append x -> (x - offset) / divisor, per feature; the error of 1 / divisor is accounted for."""
        return self._then_affine(offset, divisor, 0.0, divide=True)

    def then_clip(self, low: npt.ArrayLike, high: npt.ArrayLike) -> InputMap:
        """Append x -> min(max(x, low), high), per feature.

        Raises
        ------
        UnsupportedModelError
            After a matrix; this cannot be folded.
        """
        if self.matrix is not None:
            raise UnsupportedModelError("limits on features after a projection cannot be folded")
        lows, highs = (np.broadcast_to(np.asarray(limit, np.float64), len(self.columns)) for limit in (low, high))
        return replace(self, low=np.clip(self.low, lows, highs), high=np.clip(self.high, lows, highs))

    def then_select(self, features: npt.ArrayLike) -> InputMap:
        """Append a choice of features by position, in the order given."""
        chosen = np.asarray(features, dtype=np.intp)
        if self.matrix is None:
            per_feature = ("columns", "offset", "scale", "low", "high", "scale_error", "shift_error", "limit_error")
            return replace(self, **{name: getattr(self, name)[chosen] for name in per_feature})
        assert self.matrix_error is not None
        return replace(
            self,
            matrix=np.ascontiguousarray(self.matrix[:, chosen]),
            matrix_error=np.ascontiguousarray(self.matrix_error[:, chosen]),
            bias=self.bias[chosen],
            bias_error=self.bias_error[chosen],
        )

    def then_project(self, mean: npt.ArrayLike, matrix: FloatArray, divisor: npt.ArrayLike | None = None) -> InputMap:
        """Append x -> (x - mean) @ matrix / divisor, a principal component analysis with or without whitening."""
        mean = np.broadcast_to(np.asarray(mean, np.float64), self.n_features)
        projection = np.ascontiguousarray(matrix, dtype=np.float64)
        if self.matrix is None:
            k = projection.shape[1]
            projected = replace(
                self,
                center=np.array(mean),
                matrix=projection,
                matrix_error=np.zeros_like(projection),
                bias=np.zeros(k),
                bias_error=np.zeros(k),
            )
        else:
            projected = self._then_second_matrix(mean, projection)
        return projected if divisor is None else projected.then_divide(0.0, divisor)

    def then(self, other: InputMap) -> InputMap:
        """Append another map, whose raw rows are this one's mapped rows."""
        if other.n_raw_features != self.n_features:
            raise ModelFormatError(f"a map of {other.n_raw_features} features cannot follow one of {self.n_features}")
        result = self.then_select(other.columns)
        if other.offset.any() or (other.scale != 1).any():
            result = result.then_affine(other.offset, other.scale)
        limits = [np.where(np.isfinite(limit), np.abs(limit), 0.0) for limit in (result.low, result.high)]
        if not (np.isneginf(other.low).all() and np.isposinf(other.high).all()):
            result = result.then_clip(other.low, other.high)
        if result.matrix is None:
            # (z - offset) * scale of the whole is (x - other.offset) * other.scale: errors relative to it carry over.
            nonzero = np.where(other.scale == 0, 1.0, np.abs(other.scale))
            result = replace(
                result,
                scale_error=(result.scale_error + np.abs(result.scale) * (other.scale_error / nonzero)) * _UP,
                shift_error=(result.shift_error + other.shift_error) * _UP,
                limit_error=(
                    result.limit_error
                    + other.limit_error
                    + np.maximum(*limits) * (other.scale_error / nonzero)
                    + other.shift_error
                )
                * _UP,
            )
        elif other.scale_error.any() or other.shift_error.any():
            raise UnsupportedModelError("a folded scaling after a projection cannot be appended")
        if other.matrix is None:
            return result
        assert other.matrix_error is not None
        if result.matrix is not None:
            raise UnsupportedModelError("a folded projection after another one cannot be appended")
        return replace(
            result,
            center=other.center,
            matrix=other.matrix,
            matrix_error=other.matrix_error,
            bias=other.bias,
            bias_error=other.bias_error,
        )

    def apply(self, rows: Any) -> FloatArray:
        """Mapped rows, in float64: the reference.

        Parameters
        ----------
        rows : array or sparse matrix of shape (n_rows, n_raw_features)

        Returns
        -------
        ndarray of shape (n_rows, n_features), float64
        """
        features = self._features(self._selected(rows))
        if self.matrix is None:
            return features
        result: FloatArray = (features - self.center) @ self.matrix + self.bias
        return result

    def rounding(self, rows: Any) -> FloatArray:
        """What the Euclidean distance between `apply` and the source's real-number function never exceeds, per row.

        Per feature 2.01 u |t_j| and what folding changed; limits move by their own error. A projection adds
        gamma_(n + 3) |t - center| |matrix|, in any order of summation, with or without FMA.

        Parameters
        ----------
        rows : array or sparse matrix of shape (n_rows, n_raw_features)

        Returns
        -------
        ndarray of shape (n_rows,), float64
        """
        selected = self._selected(rows)
        distance = np.abs(selected - self.offset)
        moved = 2.01 * UNIT_ROUNDOFF * distance * np.abs(self.scale) + distance * self.scale_error + self.shift_error
        # Clipping changes no distance by more than the features' own or the limits' error.
        errors = np.maximum((moved + _TINY) * _UP, self.limit_error)
        unchanged = (self.offset == 0) & (self.scale == 1) & (self.scale_error == 0) & (self.shift_error == 0)
        errors = np.where(unchanged, self.limit_error, errors)
        if self.matrix is not None:
            assert self.matrix_error is not None
            centered = np.abs(self._features(selected) - self.center)
            n = len(self.columns)
            path = (n + 3) * UNIT_ROUNDOFF / (1 - (n + 3) * UNIT_ROUNDOFF)
            errors = (
                (errors + path * centered) @ np.abs(self.matrix)
                + (centered + errors) @ self.matrix_error
                + UNIT_ROUNDOFF * np.abs(self.bias) * 2
                + self.bias_error
                + _TINY
            )
        norms: FloatArray = np.linalg.norm(errors, axis=1) * _UP
        return norms

    def _selected(self, rows: Any) -> FloatArray:
        shape = np.shape(rows)
        if len(shape) != 2 or shape[1] != self.n_raw_features:
            raise ModelFormatError(f"rows have shape {shape}, expected (n_rows, {self.n_raw_features})")
        dense = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
        return np.asarray(dense, dtype=np.float64)[:, self.columns]

    def _features(self, selected: FloatArray) -> FloatArray:
        result: FloatArray = np.clip((selected - self.offset) * self.scale, self.low, self.high)
        return result

    def _with_identity_matrix(self) -> InputMap:
        n = len(self.columns)
        return replace(
            self,
            center=np.zeros(n),
            matrix=np.eye(n),
            matrix_error=np.zeros((n, n)),
            bias=np.zeros(n),
            bias_error=np.zeros(n),
        )

    def _then_affine(self, offset: Any, factor: Any, shift: Any, *, divide: bool) -> InputMap:
        n = self.n_features
        names = ("offset", "divisor" if divide else "scale", "shift")
        numbers = [_fractions(v, n, name) for v, name in zip((offset, factor, shift), names, strict=True)]
        if divide and 0 in numbers[1]:
            raise ModelFormatError("the divisor of an input step holds 0")
        if self.matrix is not None:
            rounded = [np.array([_nearest(v) for v in values]) for values in numbers]
            return self._then_affine_after_matrix(*rounded, divide=divide)
        steps = [_compose(self, j, *(values[j] for values in numbers), divide=divide) for j in range(n)]
        fields = ("offset", "scale", "low", "high", "scale_error", "shift_error", "limit_error")
        changes: dict[str, Any] = dict(zip(fields, np.array(steps).reshape(n, 7).T.copy(), strict=True))
        return replace(self, **changes)

    def _then_affine_after_matrix(
        self, offset: FloatArray, factor: FloatArray, shift: FloatArray, *, divide: bool
    ) -> InputMap:
        assert self.matrix is not None
        assert self.matrix_error is not None
        if divide:
            matrix, bias = self.matrix / factor, (self.bias - offset) / factor + shift
            grown = np.abs(1.0 / factor)
        else:
            matrix, bias = self.matrix * factor, (self.bias - offset) * factor + shift
            grown = np.abs(factor)
        moduli = (np.abs(self.bias) + np.abs(offset)) * grown + np.abs(shift)
        return replace(
            self,
            matrix=matrix,
            bias=bias,
            matrix_error=(self.matrix_error * grown + 2 * UNIT_ROUNDOFF * np.abs(matrix) + _TINY) * _UP,
            bias_error=(self.bias_error * grown + 6 * UNIT_ROUNDOFF * moduli + _TINY) * _UP,
        )

    def _then_second_matrix(self, mean: FloatArray, second: FloatArray) -> InputMap:
        assert self.matrix is not None
        assert self.matrix_error is not None
        path = 1.01 * (len(mean) + 1) * UNIT_ROUNDOFF
        moduli = np.abs(second)
        return replace(
            self,
            matrix=self.matrix @ second,
            bias=(self.bias - mean) @ second,
            matrix_error=((self.matrix_error + path * np.abs(self.matrix)) @ moduli + _TINY) * _UP,
            bias_error=((self.bias_error + path * (np.abs(self.bias) + np.abs(mean))) @ moduli + _TINY) * _UP,
        )


def _compose(
    first: InputMap, j: int, b: Fraction, factor: Fraction, t: Fraction, *, divide: bool
) -> tuple[float, float, float, float, float, float, float]:
    """Feature j of `first`, then (x - b) * factor + t (or / factor), with exact rational arithmetic.

    Returns offset, scale, low, high, scale_error, shift_error, limit_error.
    """
    s = 1 / factor if divide else factor
    o1, s1 = Fraction(first.offset[j]), Fraction(first.scale[j])
    low, high = float(first.low[j]), float(first.high[j])
    if s1 * s == 0:
        value = Fraction(min(max(0.0, low), high))  # what a feature of scale 0 is before this step
        constant = _nearest((value - b) * s + t)
        error = _up(abs((value - b) * s + t - Fraction(constant)) + abs(s) * Fraction(first.limit_error[j]))
        return 0.0, 0.0, constant, constant, 0.0, 0.0, error
    # ((z - o1) s1 - b) s + t = (z - (o1 + (b - t / s) / s1)) s1 s
    exact_scale, exact_offset = s1 * s, o1 + (b - t / s) / s1
    new_scale, new_offset = _nearest(exact_scale), _nearest(exact_offset)
    limits, limit_errors = [], []
    for limit in (low, high):
        if math.isinf(limit):
            limits.append(limit if s > 0 else -limit)
            continue
        exact = (Fraction(limit) - b) * s + t
        limits.append(_nearest(exact))
        limit_errors.append(abs(exact - Fraction(limits[-1])) + abs(s) * Fraction(first.limit_error[j]))
    # |z - o1| <= |z - new_offset| + |new_offset - o1| turns the first step's errors into terms of the new offset.
    scale_error = abs(exact_scale - Fraction(new_scale)) + abs(s) * Fraction(first.scale_error[j])
    shift_error = abs(exact_offset - Fraction(new_offset)) * abs(exact_scale) + abs(s) * (
        Fraction(first.shift_error[j]) + abs(Fraction(new_offset) - o1) * Fraction(first.scale_error[j])
    )
    low, high = min(limits), max(limits)
    limit_error = max(limit_errors, default=Fraction(0))
    return new_offset, new_scale, low, high, _up(scale_error), _up(shift_error), _up(limit_error)


def _blocks(matrices: Sequence[FloatArray | None]) -> FloatArray:
    """Block-diagonal matrix."""
    from scipy.linalg import block_diag

    result: FloatArray = block_diag(*[m for m in matrices if m is not None])
    return result


def _fractions(values: Any, n: int, name: str) -> list[Fraction]:
    """Exact values of one number per feature, given as floats, integers or fractions."""
    numbers = np.asarray(values, dtype=object)
    if numbers.shape not in ((), (n,)):
        raise ModelFormatError(f"the {name} of an input step has shape {numbers.shape}, expected ({n},)")
    try:
        return [Fraction(v) for v in np.broadcast_to(numbers, n)]
    except (ValueError, OverflowError):
        raise ModelFormatError(f"the {name} of an input step holds NaN or infinity") from None


def _nearest(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        raise ModelFormatError("a number of the input map exceeds the range of float64") from None


def _up(exact: Fraction) -> float:
    """A float64 that is not below."""
    return math.nextafter(_nearest(exact), math.inf) if exact else 0.0


def _check(name: str, values: FloatArray | None, shape: tuple[int, ...], finite: bool = True) -> None:
    if values is None or values.shape != shape:
        found = None if values is None else values.shape
        raise ModelFormatError(f"{name} of the input map has shape {found}, expected {shape}")
    if finite and not np.isfinite(values).all():
        raise ModelFormatError(f"{name} of the input map holds NaN or infinity")

"""How raw rows become the rows that a model was trained on: selection, then stages as the source has them.

A stage scales feature by feature, x -> clip((x - subtract) * multiply / divide + add, low, high), takes logarithms,
x -> log(x + offset), or projects, x -> (x - center) @ matrix + bias. Nothing is folded: stages that scale do in
float64, in this order, what scikit-learn's transformers do to dense float64 rows, so that up to the first stage of
another kind a mapped row is the source's own, bit for bit. A projection sums in an order of its own, and logarithms
are NumPy's here and the C library's in the core, which are trusted to be within 4 units.

Two functions bound what this leaves. `mapped_with_errors` bounds, row by row, the distance to the function of the same
parameters over the real numbers; `source_rounding` bounds how far the source's own float64 arithmetic may be from it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.errors import InputError, ModelFormatError
from approxsvm.model import compensated
from approxsvm.model.compensated import FloatArray
from approxsvm.model.constants import UNIT64

IntArray = npt.NDArray[np.intp]

_TINY = 2.0**-1070
# Errors are themselves sums of a few rounded products.
_UP = 1.0 + 2.0**-30
# Of a logarithm, relatively: 4 units of the library, and two roundings.
_LOGARITHM = 12.0 * UNIT64
# Pieces of rows that stay in a core's cache while the stages pass over them.
_PIECE_NUMBERS = 1 << 15


@dataclass(frozen=True, eq=False)
class Affine:
    """x -> clip((x - subtract) * multiply / divide + add, low, high), per feature, one operation after the other.

    Parameters
    ----------
    n_features : int
    subtract, multiply, divide, add, low, high : ndarray of shape (n_features,), float64, optional
        Left out where there is nothing to do; limits may be infinite.
    relative_error : ndarray of shape (n_features,), float64, optional
        By how much, relatively, multiply / divide may differ from the source's parameters over the real numbers.

    Raises
    ------
    ModelFormatError
        A shape is another, a number not finite, a divisor 0, or limits contradict each other.
    """

    n_features: int
    subtract: FloatArray | None = None
    multiply: FloatArray | None = None
    divide: FloatArray | None = None
    add: FloatArray | None = None
    low: FloatArray | None = None
    high: FloatArray | None = None
    relative_error: FloatArray | None = None

    def __post_init__(self) -> None:
        """Check once."""
        for name in AFFINE_PARTS:
            values = getattr(self, name)
            if values is not None:
                _check(name, values, (self.n_features,), finite=name not in ("low", "high"))
        if self.divide is not None and not self.divide.all():
            raise ModelFormatError("the divisor of an input step holds 0")
        if self.relative_error is not None and (self.relative_error < 0).any():
            raise ModelFormatError("a relative error of an input step is negative")
        for limit in (self.low, self.high):
            if limit is not None and np.isnan(limit).any():
                raise ModelFormatError("a limit of an input step is NaN")
        if self.low is not None and self.high is not None and (self.low > self.high).any():
            raise ModelFormatError("a lower limit of an input step is above its upper limit")

    @classmethod
    def of(cls, n_features: int, **parts: Any) -> Affine:
        """A stage from numbers or arrays, one or one per feature; parts that change nothing are left out."""
        arrays = {}
        for name, value in parts.items():
            numbers = np.asarray(value, dtype=np.float64)
            if numbers.shape not in ((), (1,), (n_features,)):
                raise ModelFormatError(f"{name} of an input step has shape {numbers.shape}, expected ({n_features},)")
            full = np.broadcast_to(numbers, n_features).copy()
            if not (full == _NEUTRAL[name]).all():
                arrays[name] = full
        return cls(n_features, **arrays)

    @property
    def n_outputs(self) -> int:
        """Number of features that come out."""
        return self.n_features

    @property
    def is_identity(self) -> bool:
        """Whether nothing is left to do."""
        return all(getattr(self, name) is None for name in AFFINE_PARTS)

    def select(self, features: IntArray) -> Affine:
        """The stage of some of the features, by position."""
        chosen = {name: _chosen(getattr(self, name), features) for name in AFFINE_PARTS}
        return Affine(len(features), **chosen)

    def run(self, x: FloatArray, errors: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
        """Change `x` in place, and `errors`, of the same shape, by what they become; the latter may be left out."""
        u = UNIT64
        limited = self.low is not None or self.high is not None
        before = (x.copy(), errors.copy()) if limited and errors is not None else None
        if self.subtract is not None:
            x -= self.subtract
            if errors is not None:
                errors += u * np.abs(x)
        if self.multiply is not None:
            x *= self.multiply
            if errors is not None:
                errors *= np.abs(self.multiply)
                errors += u * np.abs(x) + _TINY
        if self.divide is not None:
            x /= self.divide
            if errors is not None:
                errors /= np.abs(self.divide)
                errors += u * np.abs(x) + _TINY
        if self.relative_error is not None and errors is not None:
            errors += self.relative_error * (np.abs(x) + errors)
        if self.add is not None:
            x += self.add
            if errors is not None:
                errors += u * np.abs(x)
        if errors is not None:
            errors *= _UP
        if limited:
            low = -np.inf if self.low is None else self.low
            high = np.inf if self.high is None else self.high
            if errors is not None:  # beyond a limit on either side of which nothing changes
                errors[(x - errors > high) | (x + errors < low)] = 0.0
            overflown = np.isinf(x)
            np.clip(x, low, high, out=x)
            if before is not None and errors is not None:
                for row, j in np.argwhere(overflown):
                    errors[row, j] = self._limited_error(int(j), before[0][row, j], before[1][row, j], x[row, j])
        return x, errors

    def _limited_error(self, j: int, x: float, error: float, limited: float) -> float:
        """What a feature that has overflown on its way to its limit is off by, in rational arithmetic."""
        if not (np.isfinite(x) and np.isfinite(error) and np.isfinite(limited)):
            return np.inf
        ends = []
        for end in (Fraction(x) - Fraction(error), Fraction(x) + Fraction(error)):
            for name, operation in _OPERATIONS.items():
                values = getattr(self, name)
                if values is not None:
                    end = operation(end, Fraction(float(values[j])))
            ends.append(abs(end - Fraction(limited)))
        return 0.0 if max(ends) == 0 else np.inf

    run_exactly = run
    run_as_source = run

    def preimage(self, y: FloatArray) -> FloatArray:
        """Inputs that give about `y`; those of features that are multiplied by 0 are of no matter."""
        x = y if self.add is None else y - self.add
        if self.divide is not None:
            x = x * self.divide
        if self.multiply is not None:
            x = x / np.where(self.multiply == 0, 1.0, self.multiply)
        return x if self.subtract is None else x + self.subtract


AFFINE_PARTS = tuple(field.name for field in fields(Affine) if field.name != "n_features")
_OPERATIONS: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "add": operator.add,
    "low": max,
    "high": min,
}
_NEUTRAL = {
    "subtract": 0.0,
    "multiply": 1.0,
    "divide": 1.0,
    "add": 0.0,
    "low": -np.inf,
    "high": np.inf,
    "relative_error": 0.0,
}


@dataclass(frozen=True, eq=False)
class Projection:
    """x -> (x - center) @ matrix + bias.

    Parameters
    ----------
    center : ndarray of shape (n_features,), float64
    matrix : ndarray of shape (n_features, n_outputs), float64
    bias, bias_error : ndarray of shape (n_outputs,), float64
        What the source adds, and by how much it may differ from its parameters over the real numbers.

    Raises
    ------
    ModelFormatError
        Shapes contradict each other, or a number is not finite.
    """

    center: FloatArray
    matrix: FloatArray
    bias: FloatArray
    bias_error: FloatArray

    def __post_init__(self) -> None:
        """Check once."""
        if self.matrix.ndim != 2:
            raise ModelFormatError(f"the matrix of an input step has {self.matrix.ndim} dimensions instead of 2")
        _check("center", self.center, (self.matrix.shape[0],))
        _check("matrix", self.matrix, self.matrix.shape)
        _check("bias", self.bias, (self.matrix.shape[1],))
        _check("bias_error", self.bias_error, (self.matrix.shape[1],))
        if (self.bias_error < 0).any():
            raise ModelFormatError("an error of the bias of an input step is negative")

    @classmethod
    def about(cls, center: Any, matrix: Any, source_shift: Any = None) -> Projection:
        """Map x to (x - center) @ matrix, as a source has it that computes x @ matrix - source_shift.

        `source_shift` is the source's own rounding of center @ matrix: the bias brings our values to it, and counts as
        an error against the real numbers.
        """
        numbers = np.ascontiguousarray(matrix, dtype=np.float64)
        if numbers.ndim != 2:
            raise ModelFormatError(f"the matrix of an input step has {numbers.ndim} dimensions instead of 2")
        mean = np.broadcast_to(np.asarray(center, np.float64), len(numbers)).copy()
        bias, error = np.zeros((2, numbers.shape[1]))
        if source_shift is not None and np.isfinite(mean).all() and np.isfinite(numbers).all():
            exact, error = (part[0] for part in compensated.matmul(mean[np.newaxis], numbers))
            bias = exact - np.asarray(source_shift, np.float64)
            error = (error + np.abs(bias) + UNIT64 * np.abs(bias)) * _UP
        return cls(mean, numbers, bias, error)

    @property
    def n_features(self) -> int:
        """Number of features that go in."""
        return int(self.matrix.shape[0])

    @property
    def n_outputs(self) -> int:
        """Number of features that come out."""
        return int(self.matrix.shape[1])

    def select(self, features: IntArray) -> Projection:
        """The stage with some of its outputs, by position."""
        matrix = np.ascontiguousarray(self.matrix[:, features])
        return Projection(self.center, matrix, self.bias[features], self.bias_error[features])

    def run(self, x: FloatArray, errors: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
        """Projected rows, and their errors from those of `x`, which may be left out.

        A sum of n products errs by at most gamma_(n + 2) of the sum of their moduli, in any order, with or without FMA.
        """
        x = x - self.center
        projected: FloatArray = x @ self.matrix + self.bias
        if errors is None:
            return projected, None
        moduli = np.abs(x)
        path = 1.01 * (self.n_features + 3) * UNIT64
        grown = (errors + path * moduli) @ np.abs(self.matrix)
        return projected, (grown + self._bias_errors(projected)) * _UP

    def run_exactly(self, x: FloatArray, errors: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
        """As `run`, rounded once: slow, for the few rows that need it."""
        carried = np.zeros_like(x) if errors is None else errors
        plainly, plain_errors = self.run(x, carried)
        assert plain_errors is not None
        high, low = compensated.two_sum(x, np.broadcast_to(-self.center, x.shape))
        product, error = compensated.matmul(high, self.matrix, low)
        projected = product + self.bias
        exact_errors = (carried @ np.abs(self.matrix) + error + self._bias_errors(projected)) * _UP
        known = np.isfinite(exact_errors) & np.isfinite(projected)  # halves of huge numbers overflow
        projected = np.where(known, projected, plainly)
        return projected, None if errors is None else np.where(known, exact_errors, plain_errors)

    def run_as_source(self, x: FloatArray, errors: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
        """As `run`, with the errors of a source that computes x @ matrix - center @ matrix."""
        projected, _ = self.run(x, None)
        if errors is None:
            return projected, None
        path = 1.01 * (self.n_features + 3) * UNIT64
        grown = (errors + path * (np.abs(x) + np.abs(self.center))) @ np.abs(self.matrix)
        return projected, (grown + self._bias_errors(projected)) * _UP

    def _bias_errors(self, projected: FloatArray) -> FloatArray:
        rounded: FloatArray = 2 * UNIT64 * (np.abs(self.bias) + np.abs(projected))
        return self.bias_error + rounded + (self.n_features + 2) * _TINY

    def preimage(self, y: FloatArray) -> FloatArray:
        """The shortest inputs, seen from the center, that give about `y`."""
        result: FloatArray = (y - self.bias) @ np.linalg.pinv(self.matrix) + self.center
        return result


@dataclass(frozen=True, eq=False)
class Logarithm:
    """x -> log(x + offset), per feature.

    Parameters
    ----------
    offset : ndarray of shape (n_features,), float64
        Infinite for features that stay as they are.

    Raises
    ------
    ModelFormatError
        An offset is NaN or negative infinity.
    """

    offset: FloatArray

    def __post_init__(self) -> None:
        """Check once."""
        _check("offset", self.offset, (self.offset.size,), finite=False)
        if not (self.offset > -np.inf).all():
            raise ModelFormatError("an offset of an input step is NaN or negative infinity")

    @property
    def n_features(self) -> int:
        """Number of features that go in."""
        return len(self.offset)

    @property
    def n_outputs(self) -> int:
        """Number of features that come out."""
        return len(self.offset)

    @property
    def taken(self) -> npt.NDArray[np.bool_]:
        """Of which features it is the logarithm, shape (n_features,)."""
        return self.offset < np.inf

    def select(self, features: IntArray) -> Logarithm:
        """The stage of some of the features, by position."""
        return Logarithm(self.offset[features])

    def run(self, x: FloatArray, errors: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
        """Change `x` in place, and `errors`, of the same shape, by what they become; the latter may be left out.

        What is lost where x + offset = s + lost is rounded comes back as log(s) + lost / s, off by the square of the
        second, so that 1 + x does not cost a small x its digits. Around t an error e becomes e / (t - e) at most.
        """
        return self._run(x, errors, 0.0)

    def _run(
        self, x: FloatArray, errors: FloatArray | None, lost_at_most: float
    ) -> tuple[FloatArray, FloatArray | None]:
        taken = self.taken
        shifted, lost = compensated.two_sum(x[:, taken], self.offset[taken])
        with np.errstate(divide="ignore"):
            logarithms, correction = np.log(shifted), np.where(np.isfinite(shifted), lost / shifted, 0.0)
        x[:, taken] = logarithms + correction
        if errors is not None:
            off = errors[:, taken] + lost_at_most * shifted
            nearest = shifted * (1.0 - 2.0**-50) - off
            carried = np.where(nearest > 0, off / nearest, np.inf)
            own = _LOGARITHM * (np.abs(logarithms) + np.abs(correction)) + 2.0**-104
            errors[:, taken] = (carried + own) * _UP
        return x, errors

    run_exactly = run

    def run_as_source(self, x: FloatArray, errors: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
        """As `run`, with the errors of a source that rounds x + offset."""
        return self._run(x, errors, UNIT64)

    def outside(self, x: FloatArray) -> npt.NDArray[np.bool_]:
        """Which numbers of `x` have no logarithm, of its shape."""
        outside: npt.NDArray[np.bool_] = self.taken & (x <= -self.offset)
        return outside

    def preimage(self, y: FloatArray) -> FloatArray:
        """Inputs that give about `y`."""
        x = np.array(y)
        with np.errstate(over="ignore"):
            x[:, self.taken] = np.exp(y[:, self.taken]) - self.offset[self.taken]
        return x


Stage = Affine | Logarithm | Projection


@dataclass(frozen=True, eq=False)
class InputMap:
    """Function of one raw row. Build it with `identity` or `selection` and the ``then`` methods.

    Parameters
    ----------
    n_raw_features : int
        Columns of raw rows.
    columns : ndarray of shape (n_selected,), intp
        Raw column of each selected feature.
    stages : tuple of Affine, Logarithm and Projection
    feature_names : tuple of str, optional
        Names of the raw columns.
    by_column : bool
        Whether the source takes raw columns one by one (raw_columns.py).

    Raises
    ------
    ModelFormatError
        Shapes contradict each other.
    """

    n_raw_features: int
    columns: IntArray
    stages: tuple[Stage, ...] = ()
    feature_names: tuple[str, ...] | None = None
    by_column: bool = False

    def __post_init__(self) -> None:
        """Check once."""
        n = len(self.columns)
        if n and not (int(self.columns.min()) >= 0 and int(self.columns.max()) < self.n_raw_features):
            worst = int(self.columns.min()) if int(self.columns.min()) < 0 else int(self.columns.max())
            raise ModelFormatError(f"the input map selects column {worst} of {self.n_raw_features}")
        for stage in self.stages:
            if stage.n_features != n:
                raise ModelFormatError(f"a stage of the input map takes {stage.n_features} features, but {n} come")
            n = stage.n_outputs
        if self.feature_names is not None and len(self.feature_names) != self.n_raw_features:
            raise ModelFormatError(f"{len(self.feature_names)} feature names for {self.n_raw_features} raw features")

    @classmethod
    def identity(cls, n_features: int, feature_names: tuple[str, ...] | None = None) -> InputMap:
        """The map that changes nothing."""
        return cls(n_features, np.arange(n_features), (), feature_names)

    @classmethod
    def selection(
        cls, n_raw_features: int, columns: npt.ArrayLike, feature_names: tuple[str, ...] | None = None
    ) -> InputMap:
        """The map that picks raw columns, in the order given."""
        return cls(n_raw_features, np.asarray(columns, dtype=np.intp), (), feature_names)

    @classmethod
    def concatenate(cls, maps: Sequence[InputMap]) -> InputMap:
        """One map whose features are those of all `maps` of the same raw rows, side by side."""
        first = maps[0]
        if any(m.n_raw_features != first.n_raw_features for m in maps):
            raise ModelFormatError(f"the maps take {[m.n_raw_features for m in maps]} raw features")
        joined = replace(first, columns=np.concatenate([m.columns for m in maps]), stages=())
        waiting = [list(m.stages) for m in maps]
        widths = [len(m.columns) for m in maps]
        while any(waiting):
            # A projection waits until every map that has one is at it; the others meanwhile pass through.
            kind = next(k for k in _SIDE_BY_SIDE if any(stages and isinstance(stages[0], k) for stages in waiting))
            now = [stages.pop(0) if stages and isinstance(stages[0], kind) else None for stages in waiting]
            joined = joined.then_stage(_SIDE_BY_SIDE[kind](now, widths))
            widths = [n if stage is None else stage.n_outputs for stage, n in zip(now, widths, strict=True)]
        return joined

    @property
    def n_features(self) -> int:
        """Columns of mapped rows."""
        return self.stages[-1].n_outputs if self.stages else len(self.columns)

    @property
    def is_identity(self) -> bool:
        """Whether there is nothing to say: mapped rows equal raw rows, of which every column is looked at."""
        return not (self.stages or self.by_column) and np.array_equal(self.columns, np.arange(self.n_raw_features))

    def then_stage(self, stage: Stage) -> InputMap:
        """Append a stage; one that changes nothing is left out."""
        if isinstance(stage, Affine) and stage.is_identity and stage.n_features == self.n_features:
            return self
        return replace(self, stages=(*self.stages, stage))

    def then_affine(self, **parts: Any) -> InputMap:
        """Append an `Affine` stage of numbers or arrays, one or one per feature."""
        return self.then_stage(Affine.of(self.n_features, **parts))

    def then_logarithm(self, offset: float) -> InputMap:
        """Append the logarithm of all features, each of them plus `offset`, a finite number."""
        if not np.isfinite(offset):
            raise ModelFormatError(f"the offset of a logarithm is {offset}, but must be finite")
        return self.then_stage(Logarithm(np.full(self.n_features, float(offset))))

    def then_select(self, features: npt.ArrayLike) -> InputMap:
        """Append a choice of features by position, in the order given."""
        chosen = np.asarray(features, dtype=np.intp)
        # Back to the last projection, whose outputs are chosen then, or to the raw columns.
        first = max((k for k, stage in enumerate(self.stages) if isinstance(stage, Projection)), default=-1)
        kept = tuple(stage.select(chosen) for stage in self.stages[max(first, 0) :])
        if first < 0:
            return replace(self, columns=self.columns[chosen], stages=kept)
        return replace(self, stages=self.stages[:first] + kept)

    def then(self, other: InputMap) -> InputMap:
        """Append another map, whose raw rows are this one's mapped rows."""
        if other.n_raw_features != self.n_features:
            raise ModelFormatError(f"a map of {other.n_raw_features} features cannot follow one of {self.n_features}")
        chosen = self if np.array_equal(other.columns, np.arange(self.n_features)) else self.then_select(other.columns)
        return replace(chosen, stages=chosen.stages + other.stages)

    def apply(self, rows: Any) -> FloatArray:
        """Mapped rows.

        Parameters
        ----------
        rows : array or sparse matrix of shape (n_rows, n_raw_features)
            Finite numbers, in the columns that are used.

        Returns
        -------
        ndarray of shape (n_rows, n_features), float64

        Raises
        ------
        InputError
            A mapped number is beyond float64, or has no logarithm; the message names the row.
        """
        return self._run(rows, lambda stage, x, errors: stage.run(x, None), with_errors=False)[0]

    def mapped_with_errors(self, rows: Any, *, exactly: bool = False) -> tuple[FloatArray, FloatArray]:
        """Mapped rows, and what their Euclidean distance to the real-number function never exceeds, row by row.

        Parameters
        ----------
        rows : array or sparse matrix of shape (n_rows, n_raw_features)
        exactly : bool
            Let projections round once: slow, for rows whose error matters.

        Returns
        -------
        mapped : ndarray of shape (n_rows, n_features), float64
        errors : ndarray of shape (n_rows,), float64

        Raises
        ------
        InputError
            As for `apply`.
        """
        if exactly:
            return self._run(rows, lambda stage, x, errors: stage.run_exactly(x, errors))
        return self._run(rows, lambda stage, x, errors: stage.run(x, errors))

    def source_rounding(self, rows: Any) -> FloatArray:
        """How far the source's own float64 arithmetic may be from the real-number function, shape (n_rows,).

        Both begin at the source's own rows before the first stage that does more than scale, which are ours bit for
        bit.
        """
        first = next((stage for stage in self.stages if not isinstance(stage, Affine)), None)
        if first is None:
            return np.zeros(rows.shape[0])
        before = self.stages.index(first)
        front = replace(self, stages=self.stages[:before])
        behind = InputMap(front.n_features, np.arange(front.n_features), self.stages[before:])
        return behind._run(front.apply(rows), lambda stage, x, errors: stage.run_as_source(x, errors))[1]

    def takes(self, rows: FloatArray) -> npt.NDArray[np.bool_]:
        """Which raw rows `apply` would not refuse, shape (n_rows,).

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_raw_features), float64
        """
        x = self._selected(rows)
        fine = np.isfinite(x).all(axis=1, keepdims=True)
        with np.errstate(all="ignore"):
            for stage in self.stages:
                if isinstance(stage, Logarithm):
                    x[stage.outside(x)] = np.nan
                x = stage.run(x, None)[0]
        return np.asarray((fine & np.isfinite(x)).all(axis=1))

    def preimage(self, mapped: FloatArray) -> FloatArray:
        """Raw rows that are mapped to about `mapped`: what raw rows look like where nobody has shown any.

        Parameters
        ----------
        mapped : ndarray of shape (n_rows, n_features), float64

        Returns
        -------
        ndarray of shape (n_rows, n_raw_features), float64
            Zero in columns that the map does not use. Where it uses one twice, or projects, rows may come out that it
            does not take.
        """
        x = mapped
        for stage in reversed(self.stages):
            x = stage.preimage(x)
        raw = np.zeros((len(mapped), self.n_raw_features))
        raw[:, self.columns] = x
        return raw

    def _run(
        self,
        rows: Any,
        run: Callable[[Stage, FloatArray, FloatArray | None], tuple[FloatArray, FloatArray | None]],
        with_errors: bool = True,
    ) -> tuple[FloatArray, FloatArray]:
        rows = rows if hasattr(rows, "toarray") else np.asarray(rows)
        shape = rows.shape
        if len(shape) != 2 or shape[1] != self.n_raw_features:
            raise InputError(f"rows have shape {shape}, expected (n_rows, {self.n_raw_features})")
        mapped, distances = np.empty((shape[0], self.n_features)), np.zeros(shape[0] if with_errors else 0)
        step = max(1, _PIECE_NUMBERS // max(self.n_features, len(self.columns), 1))
        for first in range(0, shape[0], step):
            piece = slice(first, first + step)
            x = self._selected(rows[piece])
            errors = np.zeros_like(x) if with_errors else None
            with np.errstate(over="ignore", invalid="ignore", under="ignore"):
                for stage in self.stages:
                    if isinstance(stage, Logarithm):
                        _check_domain(stage, x, first)
                    x, errors = run(stage, x, errors)
                if errors is not None and self.stages:
                    distances[piece] = compensated.norms_above(errors)
            mapped[piece] = x
        self._check_mapped(rows, mapped)
        distances[~np.isfinite(distances)] = np.inf
        return mapped, distances

    def _selected(self, rows: Any) -> FloatArray:
        """A copy of the selected columns as dense float64."""
        dense = rows.toarray() if hasattr(rows, "toarray") else rows
        return np.array(dense[:, self.columns], dtype=np.float64, order="C")

    def _check_mapped(self, rows: Any, mapped: FloatArray) -> None:
        bad = ~np.isfinite(mapped)
        if not bad.any():
            return
        row, feature = map(int, np.argwhere(bad)[0])
        largest = float(np.abs(self._selected(rows[[row]])).max())
        raise InputError(
            f"row {row}: scaling its values, the largest of which is {largest:.6g}, exceeds the range of "
            f"float64 in feature {feature}"
        )


def _check_domain(stage: Logarithm, x: FloatArray, first_row: int) -> None:
    outside = stage.outside(x)
    if outside.any():
        row, j = map(int, np.argwhere(outside)[0])
        raise InputError(
            f"row {first_row + row}: log needs a value above {0.0 - stage.offset[j]:.6g}, got {x[row, j]:.6g}"
        )


def _scaled_side_by_side(stages: Sequence[Any], widths: Sequence[int]) -> Affine:
    """Affine stages of neighbouring features as one; None passes through."""
    parts: dict[str, FloatArray] = {}
    for name in AFFINE_PARTS:
        found = [None if stage is None else getattr(stage, name) for stage in stages]
        if any(values is not None for values in found):
            parts[name] = np.concatenate(
                [
                    np.full(n, _NEUTRAL[name]) if values is None else values
                    for values, n in zip(found, widths, strict=True)
                ]
            )
    return Affine(sum(widths), **parts)


def _logarithms(stages: Sequence[Any], widths: Sequence[int]) -> Logarithm:
    """Logarithms of neighbouring features as one stage; None passes through."""
    return Logarithm(
        np.concatenate(
            [np.full(n, np.inf) if stage is None else stage.offset for stage, n in zip(stages, widths, strict=True)]
        )
    )


def _block_diagonal(stages: Sequence[Any], widths: Sequence[int]) -> Projection:
    """Projections of neighbouring features as one; None passes through."""
    from scipy.linalg import block_diag

    blocks = [
        Projection(np.zeros(n), np.eye(n), *np.zeros((2, n))) if stage is None else stage
        for stage, n in zip(stages, widths, strict=True)
    ]
    return Projection(
        np.concatenate([block.center for block in blocks]),
        block_diag(*[block.matrix for block in blocks]),
        np.concatenate([block.bias for block in blocks]),
        np.concatenate([block.bias_error for block in blocks]),
    )


# Which of the stages that come next goes first, and how those of one kind become one.
_SIDE_BY_SIDE: dict[type, Callable[[Sequence[Any], Sequence[int]], Stage]] = {
    Affine: _scaled_side_by_side,
    Logarithm: _logarithms,
    Projection: _block_diagonal,
}


def _chosen(values: FloatArray | None, features: IntArray) -> FloatArray | None:
    return None if values is None else values[features]


def _check(name: str, values: FloatArray, shape: tuple[int, ...], finite: bool = True) -> None:
    if values.shape != shape:
        raise ModelFormatError(f"{name} of an input step has shape {values.shape}, expected {shape}")
    if finite and not np.isfinite(values).all():
        raise ModelFormatError(f"{name} of an input step holds NaN or infinity")

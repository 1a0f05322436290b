"""Scalers: x -> clip((x - subtract) * multiply / divide + add, low, high), feature by feature."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from approxsvm.errors import ModelFormatError
from approxsvm.ir.compensated import FloatArray
from approxsvm.ir.ops.op import IntArray, Op, Stored, check


@dataclass(frozen=True, eq=False)
class Affine(Op):
    """Affine map clip((x - subtract) * multiply / divide + add, low, high) of each feature, operation by operation."""

    kind = "affine"
    by_feature = as_source = True

    n_features: int
    # Arrays of shape (n_features,), or None for operations that do nothing; limits may be infinite
    subtract: FloatArray | None = None
    multiply: FloatArray | None = None
    divide: FloatArray | None = None
    add: FloatArray | None = None
    low: FloatArray | None = None
    high: FloatArray | None = None
    # shape (n_features,); bounds on the relative difference between multiply / divide and the exact real value of the
    # source's parameters
    relative_error: FloatArray | None = None

    def __post_init__(self) -> None:
        for name in AFFINE_PARTS:
            values = getattr(self, name)
            if values is not None:
                check(name, values, (self.n_features,), finite=name not in ("low", "high"))
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
    def of(cls, n_features: int, first: int = 0, **parts: Any) -> "Affine":
        """Build an op from scalars (for all features) or arrays (one value per feature); neutral parts are dropped."""
        arrays = {}
        for name, value in parts.items():
            numbers = np.asarray(value, dtype=np.float64)
            if numbers.shape not in ((), (1,), (n_features,)):
                raise ModelFormatError(f"{name} of an input step has shape {numbers.shape}, expected ({n_features},)")
            full = np.broadcast_to(numbers, n_features).copy()
            if not (full == _NEUTRAL[name]).all():
                arrays[name] = full
        return cls(n_features, **arrays, first=first)

    @property
    def n_outputs(self) -> int:
        return self.n_features

    @property
    def hides_infinity(self) -> bool:
        return self.low is not None or self.high is not None

    @property
    def is_identity(self) -> bool:
        return all(getattr(self, name) is None for name in AFFINE_PARTS)

    def leaves(self, feature: int) -> bool:
        """Return whether this op leaves a feature unchanged."""
        parts = ((name, getattr(self, name)) for name in AFFINE_PARTS)
        return all(values is None or values[feature] == _NEUTRAL[name] for name, values in parts)

    def select(self, features: IntArray) -> "tuple[Affine, IntArray]":
        parts = ((name, getattr(self, name)) for name in AFFINE_PARTS)
        chosen = {name: part[features] for name, part in parts if part is not None}
        return Affine(len(features), **chosen, first=self.first), features

    def preimage(self, y: FloatArray) -> FloatArray:
        """Return inputs that are mapped to approximately `y`; for a feature multiplied by 0, any input would do."""
        x = y if self.add is None else y - self.add
        if self.divide is not None:
            x = x * self.divide
        if self.multiply is not None:
            x = x / np.where(self.multiply == 0, 1.0, self.multiply)
        return x if self.subtract is None else x + self.subtract

    @classmethod
    def together(cls, ops: Sequence[Any]) -> "Sequence[Affine]":
        """Combine all ops into one, which is fast on whole rows and leaves the features between the ops unchanged."""
        return [cls.covering(ops, ops[0].first, ops[-1].end)]

    @classmethod
    def covering(cls, ops: "Sequence[Affine]", first: int, end: int) -> "Affine":
        """Return one op on features `first` to `end` - 1 with the effect of `ops`, whose features are disjoint."""
        parts: dict[str, FloatArray] = {}
        for name in AFFINE_PARTS:
            found = [(op, values) for op in ops if (values := getattr(op, name)) is not None]
            if found:
                parts[name] = np.full(end - first, _NEUTRAL[name])
            for op, values in found:
                parts[name][op.first - first : op.end - first] = values
        return cls(end - first, **parts, first=first)

    def stored(self) -> Stored:
        """Return a bit mask of the arrays that are present, and the arrays themselves."""
        arrays = [getattr(self, name) for name in AFFINE_PARTS]
        present = sum(1 << k for k, values in enumerate(arrays) if values is not None)
        return present, [values for values in arrays if values is not None]

    @classmethod
    def read(cls, reader: Any, parts: int, first: int, n_features: int, n_outputs: int) -> "Affine":
        wanted = [name for k, name in enumerate(AFFINE_PARTS) if parts >> k & 1]
        return cls(n_features, **{name: reader.numbers(n_features) for name in wanted}, first=first)

    def in_words(self) -> str:
        verbs = {"subtract": "subtracts", "multiply": "multiplies", "divide": "divides", "add": "adds"}
        does = [verb for part, verb in verbs.items() if getattr(self, part) is not None]
        does += ["clips"] if self.low is not None or self.high is not None else []
        return f"{', '.join(does)}, feature by feature ({self.n_features:,})"


AFFINE_PARTS = tuple(field.name for field in fields(Affine) if field.name not in ("n_features", "first"))
_NEUTRAL = dict.fromkeys(AFFINE_PARTS, 0.0) | {"multiply": 1.0, "divide": 1.0, "low": -np.inf, "high": np.inf}

"""Interface of the ops that are applied before the kernel; each op kind has one class, in a separate file."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from approxsvm import _native
from approxsvm.errors import ModelFormatError
from approxsvm.ir.compensated import FloatArray
from approxsvm.ir.schema import number_of, padded, record

IntArray = npt.NDArray[np.intp]
Stored = tuple[int, Sequence[npt.NDArray[Any]]]
# Function from (values, their errors or None, whether the values are identical to the source's) to (mapped values,
# their errors).
Mapper = Callable[..., tuple[FloatArray, FloatArray]]

# Safety factor, because the errors are sums of a few rounded products.
UP = 1.0 + 2.0**-30
# Result of follow_nan() if no output is NaN.
NO_NAN = -1


@dataclass(frozen=True, eq=False)
class Op(ABC):
    """One op of an input map: its outputs replace adjacent features, and all other features remain unchanged.

    Except in `takes`, `passed` and `before`, feature indices are relative to the first feature that the op takes.
    """

    first: int = field(default=0, kw_only=True)  # index of the first feature that the op takes

    kind: ClassVar[str]  # name of the kind in artifact/schema.inc
    by_feature: ClassVar[bool] = False  # True if output j depends only on feature j, and NaN is mapped to NaN
    # True if the op reproduces the source's results bit for bit, given the same values
    as_source: ClassVar[bool] = False

    if TYPE_CHECKING:  # otherwise the dataclass would use the property as the field's default

        @property
        def n_features(self) -> int:
            """Number of input features."""

    @property
    @abstractmethod
    def n_outputs(self) -> int:
        """Number of outputs."""

    @property
    def end(self) -> int:
        """Index after the last feature that this op takes."""
        return self.first + self.n_features

    def takes(self, feature: int) -> bool:
        """Return whether this op takes the given feature of the row."""
        return self.first <= feature < self.end

    def passed(self, feature: int) -> int:
        """Return the index, after this op, of a feature that it does not take."""
        return feature if feature < self.first else feature + self.n_outputs - self.n_features

    def before(self, place: int) -> int | None:
        """Return the feature that is at index `place` after this op, or None if one of its outputs is there."""
        if place < self.first:
            return place
        return place - self.n_outputs + self.n_features if place >= self.first + self.n_outputs else None

    def replaced(self, row: npt.NDArray[Any], outputs: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return rows with the outputs in place of the features that this op takes, along the last axis."""
        return np.concatenate([row[..., : self.first], outputs, row[..., self.end :]], axis=-1)

    @property
    def is_identity(self) -> bool:
        """True if this op changes nothing."""
        return False

    @abstractmethod
    def select(self, features: IntArray) -> "tuple[Op, IntArray | None] | None":
        """Return the op restricted to some outputs, and the features that it then takes (None: the same as before).

        Returns None instead of a pair if the op cannot be restricted to some outputs.
        """

    def merged(self, before: "Op") -> "Op | None":
        """Return one op equivalent to `before` followed by this op, or None if the two ops cannot be merged."""
        return None

    @property
    def hides_infinity(self) -> bool:
        """True if infinity may be mapped to a finite number."""
        return False

    def may_refuse(self) -> npt.NDArray[np.bool_]:
        """Return a boolean array of shape (n_features,): whether some values of each feature are rejected."""
        return np.zeros(self.n_features, np.bool_)

    def origin(self, output: int) -> int | None:
        """Return the feature on which an output depends, or None if it depends on several."""
        return output if self.by_feature else None

    def follow_nan(self, feature: int) -> int | None:
        """Return the only output that is NaN if a feature is NaN; `NO_NAN` if none is; None if NaN is rejected."""
        return feature if self.by_feature else None

    def mapper(self) -> Mapper:
        """Return the core's map for this op alone, a function of features and their errors; see `Mapper`."""
        if self.is_identity:
            return lambda x, errors=None, is_source=True: (x, np.zeros_like(x) if errors is None else errors)
        n = self.n_features
        core = _native.InputMap(packed_map(n, np.arange(n), [replace(self, first=0)]), n, self.n_outputs)
        return lambda x, errors=None, is_source=True: core.map(x, errors, is_source)[:2]

    @classmethod
    def together(cls, ops: "Sequence[Any]") -> "Sequence[Op]":
        """Combine `ops`, which act on disjoint sets of features, into a few ops of this class, applied in sequence.

        The features of `ops` must be in increasing order.
        """
        grown = np.cumsum([0, *(op.n_outputs - op.n_features for op in ops)]).tolist()
        return [replace(op, first=op.first + more) for op, more in zip(ops, grown, strict=False)]

    def packed(self) -> bytes:
        """Return the op in the format of the "input_map" section (models/FORMAT.md)."""
        parts, arrays = self.stored()
        header = record("op").pack(number_of("op_kind", self.kind), parts, self.first, self.n_features, self.n_outputs)
        pieces = (padded(values.astype(values.dtype.newbyteorder("<")).tobytes()) for values in arrays)
        return b"".join([header, *pieces])

    @abstractmethod
    def stored(self) -> Stored:
        """Return the number `parts` and the op's arrays, in the order of models/FORMAT.md."""

    @classmethod
    @abstractmethod
    def read(cls, reader: Any, parts: int, first: int, n_features: int, n_outputs: int) -> "Op":
        """Read an op written by `stored`."""

    @abstractmethod
    def in_words(self) -> str:
        """Describe the op for reports."""


@dataclass(frozen=True, eq=False)
class PerFeature(Op):
    """Op with per-feature parameters; all its features have the same `choice`."""

    by_feature = True
    arrays: ClassVar[Sequence[str]]  # fields that contain one value per feature
    # Name of the field, if any, whose value all features share, and the permitted values.
    choice: ClassVar[str] = ""
    choices: ClassVar[Sequence[str]] = ()

    @property
    def n_features(self) -> int:
        """Number of input features."""
        return len(getattr(self, self.arrays[0]))

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self.n_features

    def check_numbers(self) -> None:
        """Raise ModelFormatError if a shape or choice is invalid, or a number is not finite."""
        for name in self.arrays:
            check(name, getattr(self, name), (self.n_features,))
        if self.choice and getattr(self, self.choice) not in self.choices:
            raise ModelFormatError(
                f"the {self.choice} of an input step is {getattr(self, self.choice)!r}, expected one of {self.choices}"
            )

    def select(self, features: IntArray) -> tuple[Op, IntArray]:
        """Return the op restricted to some features, given by index."""
        return replace(self, **{name: getattr(self, name)[features] for name in self.arrays}), features

    @classmethod
    def together(cls, ops: Sequence[Any]) -> Sequence[Op]:
        """Combine ops that take adjacent features and have the same choice."""
        return [
            replace(run[0], **{name: np.concatenate([getattr(op, name) for op in run]) for name in cls.arrays})
            for run in adjacent(ops, cls.choice)
        ]

    def stored(self) -> Stored:
        """Return the index of the choice, and the parameters of all features."""
        parts = self.choices.index(getattr(self, self.choice)) if self.choice else 0
        return parts, [getattr(self, name) for name in self.arrays]

    @classmethod
    def read(cls, reader: Any, parts: int, first: int, n_features: int, n_outputs: int) -> Op:
        """Read an op written by `stored`."""
        chosen = {cls.choice: cls.choices[parts]} if cls.choice else {}
        return cls(**chosen, **{name: reader.numbers(n_features) for name in cls.arrays}, first=first)


@dataclass(frozen=True, eq=False)
class PerOutput(Op):
    """Op whose outputs each depend on only one feature."""

    n_features: int
    source: IntArray  # shape (n_outputs,)

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return len(self.source)

    def origin(self, output: int) -> int:
        """Return the feature on which an output depends."""
        return int(self.source[output])


def adjacent(ops: Sequence[Any], choice: str = "") -> list[list[Any]]:
    """Return groups of consecutive ops that take adjacent features and have the same choice."""
    runs = [[ops[0]]]
    for last, op in pairwise(ops):
        is_next = op.first == last.end and (not choice or getattr(op, choice) == getattr(last, choice))
        runs[-1].append(op) if is_next else runs.append([op])
    return runs


def packed_map(
    n_raw_features: int,
    columns: IntArray,
    ops: Sequence[Op],
    by_column: bool = False,
    checked: Mapping[int, bool] | None = None,
) -> bytes:
    """Return the contents of the "input_map" section for a map (models/FORMAT.md)."""
    ops = [op for op in ops if not op.is_identity]
    header = record("input_map").pack(len(columns), len(ops), n_raw_features, by_column)
    checks = (record("checked_column").pack(*item) for item in sorted((checked or {}).items()))
    packed = (op.packed() for op in ops)
    return b"".join([header, padded(columns.astype("<u4").tobytes()), *packed, *checks])


def check(name: str, values: npt.NDArray[Any], shape: tuple[int, ...], finite: bool = True) -> None:
    """Raise ModelFormatError if a parameter has the wrong shape or, with `finite`, contains a non-finite number."""
    if values.shape != shape:
        raise ModelFormatError(f"{name} of an input step has shape {values.shape}, expected {shape}")
    if finite and not np.isfinite(values).all():
        raise ModelFormatError(f"{name} of an input step holds NaN or infinity")


def check_source(what: str, source: IntArray, n_outputs: int, n_features: int) -> None:
    """Raise ModelFormatError unless every output depends on an existing feature."""
    check("source", source, (n_outputs,))
    if n_outputs and not 0 <= int(source.min()) <= int(source.max()) < n_features:
        raise ModelFormatError(f"{what} takes feature {int(source.max())} of {n_features}")

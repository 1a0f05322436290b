"""The interface of the ops applied before a kernel; each kind of op has one class in one file."""

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
# Map of (numbers, their errors or None, whether the numbers are the source's own) to (mapped numbers, their errors).
Mapper = Callable[..., tuple[FloatArray, FloatArray]]

# Safety factor: errors are themselves sums of a few rounded products.
UP = 1.0 + 2.0**-30
# Returned by follow_nan().
NO_NAN = -1


@dataclass(frozen=True, eq=False)
class Op(ABC):
    """One op of an input map: its outputs replace adjacent features, and other features stay as they are.

    Methods count features from the first one that the op takes.
    """

    first: int = field(default=0, kw_only=True)  # of the features that it takes

    kind: ClassVar[str]  # its name in artifact/schema.inc
    by_feature: ClassVar[bool] = False  # whether output j depends on feature j alone, and NaN maps to NaN
    # Whether it reproduces the source's results bit for bit from the same numbers
    as_source: ClassVar[bool] = False

    if TYPE_CHECKING:  # a dataclass would otherwise take it for the default of its field

        @property
        def n_features(self) -> int:
            """Number of input features."""

    @property
    @abstractmethod
    def n_outputs(self) -> int:
        """Number of outputs."""

    @property
    def end(self) -> int:
        """The feature after the last one that this op takes."""
        return self.first + self.n_features

    def takes(self, feature: int) -> bool:
        """Return whether this op takes a feature of the row."""
        return self.first <= feature < self.end

    def passed(self, feature: int) -> int:
        """Return the place of a feature of the row after this op, which does not take it."""
        return feature if feature < self.first else feature + self.n_outputs - self.n_features

    def before(self, place: int) -> int | None:
        """Return the feature of the row that is at a place after this op; None for an output."""
        if place < self.first:
            return place
        return place - self.n_outputs + self.n_features if place >= self.first + self.n_outputs else None

    def replaced(self, row: npt.NDArray[Any], outputs: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return a row, along the last axis, with outputs in place of what this op takes."""
        return np.concatenate([row[..., : self.first], outputs, row[..., self.end :]], axis=-1)

    @property
    def is_identity(self) -> bool:
        """Whether this op changes nothing."""
        return False

    @abstractmethod
    def select(self, features: IntArray) -> "tuple[Op, IntArray | None] | None":
        """Return the op restricted to some outputs, and the features that it then takes (None: the same as before).

        Return a single None if every output needs all the others.
        """

    def merged(self, before: "Op") -> "Op | None":
        """Return one op equivalent to `before` followed by this one, or None if they cannot be merged."""
        return None

    @property
    def hides_infinity(self) -> bool:
        """Whether infinity may map to a finite number."""
        return False

    def may_refuse(self) -> npt.NDArray[np.bool_]:
        """Return a mask of the features for which some numbers are refused, shape (n_features,)."""
        return np.zeros(self.n_features, np.bool_)

    def origin(self, output: int) -> int | None:
        """Return the feature that an output comes from, or None if it depends on several."""
        return output if self.by_feature else None

    def follow_nan(self, feature: int) -> int | None:
        """Return the only output that is NaN when the feature is, `NO_NAN` if none is, None if NaN is refused."""
        return feature if self.by_feature else None

    def mapper(self) -> Mapper:
        """Return the core's map for this op alone, of its features and their errors; see Mapper."""
        if self.is_identity:
            return lambda x, errors=None, is_source=True: (x, np.zeros_like(x) if errors is None else errors)
        n = self.n_features
        core = _native.InputMap(packed_map(n, np.arange(n), [replace(self, first=0)]), n, self.n_outputs)
        return lambda x, errors=None, is_source=True: core.map(x, errors, is_source)[:2]

    @classmethod
    def together(cls, ops: "Sequence[Any]") -> "Sequence[Op]":
        """Return few ops of this kind, for one after another, that equal `ops` on separate features of one row.

        The features ascend.
        """
        grown = np.cumsum([0, *(op.n_outputs - op.n_features for op in ops)]).tolist()
        return [replace(op, first=op.first + more) for op, more in zip(ops, grown, strict=False)]

    def packed(self) -> bytes:
        """Return the op as stored in sections (models/FORMAT.md, "input_map")."""
        parts, arrays = self.stored()
        header = record("op").pack(number_of("op_kind", self.kind), parts, self.first, self.n_features, self.n_outputs)
        pieces = (padded(values.astype(values.dtype.newbyteorder("<")).tobytes()) for values in arrays)
        return b"".join([header, *pieces])

    @abstractmethod
    def stored(self) -> Stored:
        """Return the number `parts` and the arrays of models/FORMAT.md, in order."""

    @classmethod
    @abstractmethod
    def read(cls, reader: Any, parts: int, first: int, n_features: int, n_outputs: int) -> "Op":
        """Read an op written by `stored`."""

    @abstractmethod
    def in_words(self) -> str:
        """Describe the op for reports."""


@dataclass(frozen=True, eq=False)
class PerFeature(Op):
    """An op with parameters per feature; features in one op share the same `choice`."""

    by_feature = True
    arrays: ClassVar[Sequence[str]]  # the fields that hold one number per feature
    # The field, if any, that all features have in common, and its permitted values.
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
        """Raise ModelFormatError on a bad shape or choice, or numbers that are not finite."""
        for name in self.arrays:
            check(name, getattr(self, name), (self.n_features,))
        if self.choice and getattr(self, self.choice) not in self.choices:
            raise ModelFormatError(
                f"the {self.choice} of an input step is {getattr(self, self.choice)!r}, expected one of {self.choices}"
            )

    def select(self, features: IntArray) -> tuple[Op, IntArray]:
        """Return the op of some features, by position."""
        return replace(self, **{name: getattr(self, name)[features] for name in self.arrays}), features

    @classmethod
    def together(cls, ops: Sequence[Any]) -> Sequence[Op]:
        """Combine ops of adjacent features that have the same choice."""
        return [
            replace(run[0], **{name: np.concatenate([getattr(op, name) for op in run]) for name in cls.arrays})
            for run in adjacent(ops, cls.choice)
        ]

    def stored(self) -> Stored:
        """Return the number of the choice, and the numbers of all features."""
        parts = self.choices.index(getattr(self, self.choice)) if self.choice else 0
        return parts, [getattr(self, name) for name in self.arrays]

    @classmethod
    def read(cls, reader: Any, parts: int, first: int, n_features: int, n_outputs: int) -> Op:
        """Read an op written by `stored`."""
        chosen = {cls.choice: cls.choices[parts]} if cls.choice else {}
        return cls(**chosen, **{name: reader.numbers(n_features) for name in cls.arrays}, first=first)


@dataclass(frozen=True, eq=False)
class PerOutput(Op):
    """An op whose outputs each depend on one feature."""

    n_features: int
    source: IntArray  # shape (n_outputs,)

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return len(self.source)

    def origin(self, output: int) -> int:
        """Return the feature that an output comes from."""
        return int(self.source[output])


def adjacent(ops: Sequence[Any], choice: str = "") -> list[list[Any]]:
    """Return runs of ops on adjacent features, with the same choice."""
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
    """Return the section for an input map (models/FORMAT.md, "input_map")."""
    ops = [op for op in ops if not op.is_identity]
    header = record("input_map").pack(len(columns), len(ops), n_raw_features, by_column)
    checks = (record("checked_column").pack(*item) for item in sorted((checked or {}).items()))
    packed = (op.packed() for op in ops)
    return b"".join([header, padded(columns.astype("<u4").tobytes()), *packed, *checks])


def check(name: str, values: npt.NDArray[Any], shape: tuple[int, ...], finite: bool = True) -> None:
    """Raise ModelFormatError if a parameter has the wrong shape or, with `finite`, is not finite."""
    if values.shape != shape:
        raise ModelFormatError(f"{name} of an input step has shape {values.shape}, expected {shape}")
    if finite and not np.isfinite(values).all():
        raise ModelFormatError(f"{name} of an input step holds NaN or infinity")


def check_source(what: str, source: IntArray, n_outputs: int, n_features: int) -> None:
    """Raise ModelFormatError unless every output comes from one of the features."""
    check("source", source, (n_outputs,))
    if n_outputs and not 0 <= int(source.min()) <= int(source.max()) < n_features:
        raise ModelFormatError(f"{what} takes feature {int(source.max())} of {n_features}")

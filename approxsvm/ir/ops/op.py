"""The interface of the ops applied before a kernel; each kind of op has one class in one file."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
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


class Op(ABC):
    """One op of an input map."""

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
        """Return the core's map for this op alone, for callers that map repeatedly."""
        if self.is_identity:
            return lambda x, errors=None, is_source=True: (x, np.zeros_like(x) if errors is None else errors)
        n = self.n_features
        core = _native.InputMap(packed_map(n, np.arange(n), [self]), n, self.n_outputs)
        return lambda x, errors=None, is_source=True: core.map(x, errors, is_source)[:2]

    def run(
        self, x: FloatArray, errors: FloatArray | None = None, *, is_source: bool = True
    ) -> tuple[FloatArray, FloatArray]:
        """Map numbers and bound the error of each result, given the errors of `x`.

        `is_source` states that `x` equals the source's numbers bit for bit.
        """
        return self.mapper()(x, errors, is_source)

    @property
    def group(self) -> Any:
        """Key of this op: ops with equal keys can be combined in parallel."""
        return type(self)

    @classmethod
    @abstractmethod
    def side_by_side(cls, ops: Sequence[Any], widths: Sequence[int]) -> "Op":
        """Combine ops of one group, on adjacent features, into one op; None passes its features through."""

    def packed(self) -> bytes:
        """Return the op as stored in sections (models/FORMAT.md, "input_map")."""
        parts, arrays = self.stored()
        header = record("op").pack(number_of("op_kind", self.kind), parts, self.n_outputs)
        pieces = (padded(values.astype(values.dtype.newbyteorder("<")).tobytes()) for values in arrays)
        return b"".join([header, *pieces])

    @abstractmethod
    def stored(self) -> Stored:
        """Return the number `parts` and the arrays of models/FORMAT.md, in order."""

    @classmethod
    @abstractmethod
    def read(cls, reader: Any, parts: int, n_features: int, n_outputs: int) -> "Op":
        """Read an op written by `stored`."""

    @abstractmethod
    def in_words(self) -> str:
        """Describe the op for reports."""


@dataclass(frozen=True, eq=False)
class PerFeature(Op):
    """An op with parameters per feature; features in one op share the same `choice`."""

    by_feature = True
    # The fields that hold one number per feature, each with the number that leaves a feature unchanged.
    neutral: ClassVar[Mapping[str, Any]]
    # The field, if any, that parallel ops must have in common, and its permitted values.
    choice: ClassVar[str] = ""
    choices: ClassVar[Sequence[str]] = ()

    @property
    def n_features(self) -> int:
        """Number of input features."""
        return len(getattr(self, next(iter(self.neutral))))

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self.n_features

    @property
    def group(self) -> Any:
        """Type and choice; only ops with equal choices are combined."""
        return type(self), self.choice and getattr(self, self.choice)

    def check_numbers(self) -> None:
        """Raise ModelFormatError on a bad shape or choice, or non-finite numbers whose neutral value is finite."""
        for name in self.neutral:
            check(name, getattr(self, name), (self.n_features,), finite=np.isfinite(self.neutral[name]))
        if self.choice and getattr(self, self.choice) not in self.choices:
            raise ModelFormatError(
                f"the {self.choice} of an input step is {getattr(self, self.choice)!r}, expected one of {self.choices}"
            )

    def select(self, features: IntArray) -> tuple[Op, IntArray]:
        """Return the op of some features, by position."""
        return replace(self, **{name: getattr(self, name)[features] for name in self.neutral}), features

    @classmethod
    def side_by_side(cls, ops: Sequence[Any], widths: Sequence[int]) -> Op:
        """Combine ops of adjacent features into one."""
        arrays = {
            name: np.concatenate(
                [np.full(n, number) if op is None else getattr(op, name) for op, n in zip(ops, widths, strict=True)]
            )
            for name, number in cls.neutral.items()
        }
        first: PerFeature = next(op for op in ops if op is not None)
        return replace(first, **arrays)

    def stored(self) -> Stored:
        """Return the number of the choice, and the numbers of all features."""
        parts = self.choices.index(getattr(self, self.choice)) if self.choice else 0
        return parts, [getattr(self, name) for name in self.neutral]

    @classmethod
    def read(cls, reader: Any, parts: int, n_features: int, n_outputs: int) -> Op:
        """Read an op written by `stored`."""
        chosen = {cls.choice: cls.choices[parts]} if cls.choice else {}
        return cls(**chosen, **{name: reader.numbers(n_features) for name in cls.neutral})


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

"""What every kind of step in front of a kernel says of itself: one class, and one file, for each kind."""

from __future__ import annotations

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
# Numbers, their errors or None, and whether the numbers are the source's own -> mapped numbers and their errors.
Mapper = Callable[..., tuple[FloatArray, FloatArray]]

# Errors are themselves sums of a few rounded products.
UP = 1.0 + 2.0**-30
# Of follow_nan().
NO_NAN = -1


class Step(ABC):
    """One stage of an input map."""

    kind: ClassVar[str]  # its name in artifact/schema.inc
    by_feature: ClassVar[bool] = False  # whether feature j comes from feature j alone, NaN from NaN
    # Whether it computes what the source computes, bit for bit, from the same numbers
    as_source: ClassVar[bool] = False

    if TYPE_CHECKING:  # or else a dataclass would take it for the default of its own field

        @property
        def n_features(self) -> int:
            """Number of features that go in."""

    @property
    @abstractmethod
    def n_outputs(self) -> int:
        """Number of features that come out."""

    @property
    def is_identity(self) -> bool:
        """Whether it changes nothing."""
        return False

    @abstractmethod
    def select(self, features: IntArray) -> tuple[Step, IntArray | None] | None:
        """The stage with some of its outputs, and which features it then takes, None for all that it took.

        None by itself where all outputs are needed for each.
        """

    def merged(self, before: Step) -> Step | None:
        """One stage in place of this one and the one before; None where there is none."""
        return None

    @property
    def hides_infinity(self) -> bool:
        """Whether it may make a number of infinity."""
        return False

    def may_refuse(self) -> npt.NDArray[np.bool_]:
        """Of which features it does not take all numbers, shape (n_features,)."""
        return np.zeros(self.n_features, np.bool_)

    def origin(self, output: int) -> int | None:
        """The feature that an output comes from; None where it comes from several."""
        return output if self.by_feature else None

    def follow_nan(self, feature: int) -> int | None:
        """The only output that is NaN where a feature is, `NO_NAN` if none is, None if NaN is refused."""
        return feature if self.by_feature else None

    def mapper(self) -> Mapper:
        """Return the core's map of this stage alone, for callers that map often."""
        if self.is_identity:
            return lambda x, errors=None, is_source=True: (x, np.zeros_like(x) if errors is None else errors)
        n = self.n_features
        core = _native.InputMap(packed_map(n, np.arange(n), [self]), n, self.n_outputs)
        return lambda x, errors=None, is_source=True: core.map(x, errors, is_source)[:2]

    def run(
        self, x: FloatArray, errors: FloatArray | None = None, *, is_source: bool = True
    ) -> tuple[FloatArray, FloatArray]:
        """Map numbers, and bound the error of each, given the errors of `x`.

        `is_source` says that `x` is what the source has, bit for bit.
        """
        return self.mapper()(x, errors, is_source)

    @abstractmethod
    def preimage(self, y: FloatArray) -> FloatArray:
        """Inputs that give about `y`."""

    @property
    def group(self) -> Any:
        """Stages that are equal in this become one side by side."""
        return type(self)

    @classmethod
    @abstractmethod
    def side_by_side(cls, stages: Sequence[Any], widths: Sequence[int]) -> Step:
        """One stage of those of neighbouring features, of one group; None passes features through."""

    def packed(self) -> bytes:
        """Return the stage as sections have it (models/FORMAT.md, "input_map")."""
        parts, arrays = self.stored()
        header = record("stage").pack(number_of("stage_kind", self.kind), parts, self.n_outputs)
        pieces = (padded(values.astype(values.dtype.newbyteorder("<")).tobytes()) for values in arrays)
        return b"".join([header, *pieces])

    @abstractmethod
    def stored(self) -> Stored:
        """The number `parts` and the arrays of models/FORMAT.md, in order."""

    @classmethod
    @abstractmethod
    def read(cls, reader: Any, parts: int, n_features: int, n_outputs: int) -> Step:
        """What `stored` has written."""

    @abstractmethod
    def in_words(self) -> str:
        """What it does, for reports."""


@dataclass(frozen=True, eq=False)
class PerFeature(Step):
    """A step that treats each feature by numbers of its own, and those of one `choice` alike."""

    by_feature = True
    # The fields with a number for each feature, and the number of a feature that stays as it is.
    neutral: ClassVar[Mapping[str, Any]]
    # The field that stages side by side have in common, if any, and the values that it may have.
    choice: ClassVar[str] = ""
    choices: ClassVar[Sequence[str]] = ()

    @property
    def n_features(self) -> int:
        """Number of features that go in."""
        return len(getattr(self, next(iter(self.neutral))))

    @property
    def n_outputs(self) -> int:
        """Number of features that come out."""
        return self.n_features

    @property
    def group(self) -> Any:
        """Only those of one choice stand in one stage."""
        return type(self), self.choice and getattr(self, self.choice)

    def check_numbers(self) -> None:
        """Raise ModelFormatError unless shapes and the choice are valid, and numbers finite whose neutral one is."""
        for name in self.neutral:
            check(name, getattr(self, name), (self.n_features,), finite=np.isfinite(self.neutral[name]))
        if self.choice and getattr(self, self.choice) not in self.choices:
            raise ModelFormatError(
                f"the {self.choice} of an input step is {getattr(self, self.choice)!r}, expected one of {self.choices}"
            )

    def select(self, features: IntArray) -> tuple[Step, IntArray]:
        """The stage of some of the features, by position."""
        return replace(self, **{name: getattr(self, name)[features] for name in self.neutral}), features

    @classmethod
    def side_by_side(cls, stages: Sequence[Any], widths: Sequence[int]) -> Step:
        """One stage of those of neighbouring features."""
        arrays = {
            name: np.concatenate(
                [
                    np.full(n, number) if stage is None else getattr(stage, name)
                    for stage, n in zip(stages, widths, strict=True)
                ]
            )
            for name, number in cls.neutral.items()
        }
        first: PerFeature = next(stage for stage in stages if stage is not None)
        return replace(first, **arrays)

    def stored(self) -> Stored:
        """The number of the choice, and the numbers of all features."""
        parts = self.choices.index(getattr(self, self.choice)) if self.choice else 0
        return parts, [getattr(self, name) for name in self.neutral]

    @classmethod
    def read(cls, reader: Any, parts: int, n_features: int, n_outputs: int) -> Step:
        """What `stored` has written."""
        chosen = {cls.choice: cls.choices[parts]} if cls.choice else {}
        return cls(**chosen, **{name: reader.numbers(n_features) for name in cls.neutral})


@dataclass(frozen=True, eq=False)
class PerOutput(Step):
    """A step whose outputs each come from one feature."""

    n_features: int
    source: IntArray  # shape (n_outputs,)

    @property
    def n_outputs(self) -> int:
        """Number of features that come out."""
        return len(self.source)

    def origin(self, output: int) -> int:
        """The feature that an output comes from."""
        return int(self.source[output])


def packed_map(
    n_raw_features: int,
    columns: IntArray,
    stages: Sequence[Step],
    by_column: bool = False,
    checked: Mapping[int, bool] | None = None,
) -> bytes:
    """Return the section of an input map (models/FORMAT.md, "input_map")."""
    stages = [stage for stage in stages if not stage.is_identity]
    header = record("input_map").pack(len(columns), len(stages), n_raw_features, by_column)
    checks = (record("checked_column").pack(*item) for item in sorted((checked or {}).items()))
    packed = (stage.packed() for stage in stages)
    return b"".join([header, padded(columns.astype("<u4").tobytes()), *packed, *checks])


def check(name: str, values: npt.NDArray[Any], shape: tuple[int, ...], finite: bool = True) -> None:
    """Raise ModelFormatError where a parameter of a step has another shape, or is not finite."""
    if values.shape != shape:
        raise ModelFormatError(f"{name} of an input step has shape {values.shape}, expected {shape}")
    if finite and not np.isfinite(values).all():
        raise ModelFormatError(f"{name} of an input step holds NaN or infinity")


def check_source(what: str, source: IntArray, n_outputs: int, n_features: int) -> None:
    """Raise ModelFormatError where outputs do not each come from one of the features."""
    check("source", source, (n_outputs,))
    if n_outputs and not 0 <= int(source.min()) <= int(source.max()) < n_features:
        raise ModelFormatError(f"{what} takes feature {int(source.max())} of {n_features}")

"""Steps of an input map on a device: the records (backends/ops), and the C function generated from them.

If an input map does more than scale, the whole row is mapped in float64 using balls: a value and a radius for each
number. Values and radii are the core's, whose C code is called (cpp/include/approxsvm/program). Successive ops that
act on one feature at a time share a loop; an op that reads several features starts a new one. Only inputs of such
steps are stored: radii of the last op are summed immediately, and numbers not affected by rounding have no radius.

Until the first op that is not bit-for-bit the source's arithmetic, x is also the source's number.

A missing value remains NaN until the lookup that replaces it. A row refused by an op becomes NaN at the end.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from approxsvm.backends.c99.program import filled
from approxsvm.backends.ops import exported
from approxsvm.errors import UnsupportedModelError
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.ops import Op

Arrays = Iterator[tuple[str, npt.NDArray[Any]]]

# Limit for the intermediate values of every float32 row.
_MOST_ON_THE_WAY: Final = 1e300
# Replaces infinity, for unchanged features (program/ball.h).
NOT_TAKEN: Final = 1e301


class Before(NamedTuple):
    """Known properties of the inputs of an op."""

    is_source: bool  # they equal the source's numbers bit for bit
    is_exact: bool  # they are not affected by rounding and have no radii

    def picked(self, ball: str, feature: str) -> list[str]:
        """Return statements that load a stored feature into a ball."""
        radius = "0.0" if self.is_exact else f"radius[{feature}]"
        return [f"{ball}.value = x[{feature}];", f"{ball}.radius = {radius};"]


class Gathers(NamedTuple):
    """An op whose outputs read several inputs, stored in x, and in radius if `has_radii`."""

    last: Sequence[str] = ()  # statements applied to each input b before it is stored
    between: Sequence[str] = ()  # statements between the loops over inputs and outputs
    in_place: bool = False  # whether output j reads no input before j
    after: Sequence[str] = ()  # statements applied to each output b after all outputs have read the inputs
    has_radii: bool = True
    arrays: Mapping[str, int] = {}  # sizes of additional arrays, by type and name


class OnDevice(NamedTuple):
    """The record of a kind of op."""

    # Maximum absolute values after each operation, for features up to a limit, ignoring clipping; the outputs come last
    on_the_way: Callable[[Any, FloatArray], list[FloatArray]]
    arrays: Callable[[Any], dict[str, npt.NDArray[Any]]]  # the op's number is appended to their names
    # Statements that update the ball b, feature j, or that compute b, output j, if the step gathers
    lines: Callable[[int, Any, Before], list[str]]
    gathers: Callable[[int, Any, Before], Gathers] | None = None
    refuses: Callable[[Any], bool] = lambda _: False  # whether some numbers have no value
    keeps_exact: Callable[[Any], bool] = lambda _: False  # whether outputs of exact inputs have no radius
    # Whether outputs have no radius if inputs are the source's own numbers, whatever their radius
    is_choice: Callable[[Any], bool] = lambda _: False


def one_by_one(k: int, op: Any, before: Before) -> Gathers:
    """Return the `Gathers` of an op whose output j reads only the input op.source[j]."""
    return Gathers(in_place=bool((op.source >= np.arange(op.n_outputs)).all()))


def on_device(op: Op) -> OnDevice:
    """Return the record of an op's kind; raise UnsupportedModelError if it has no record."""
    record: OnDevice = exported(op, "ON_DEVICE", "C")
    return record


def largest_after(op: Op, most: FloatArray) -> FloatArray:
    """Return the maximum absolute values of an op's outputs for features up to `most`.

    Raises UnsupportedModelError if the C export does not support its kind, or if a float32 row may overflow float64.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        on_the_way = on_device(op).on_the_way(op, most)
    largest = max(float(numbers.max(initial=0.0)) for numbers in on_the_way)
    if not largest < _MOST_ON_THE_WAY:
        raise UnsupportedModelError(f"mapping a float32 row may give {largest:.3g}, but the C export allows 1e300")
    return on_the_way[-1]


def op_arrays(ops: Sequence[Op]) -> Arrays:
    """Yield the arrays of all ops."""
    for k, op in enumerate(ops):
        yield from ((f"{part}_{k}_", numbers) for part, numbers in on_device(op).arrays(op).items())


class MapFunction:
    """The function that maps a whole row; `given` is the C expression for input j of the first op, of `n_first`."""

    def __init__(self, ops: Sequence[Op], n_first: int, given: str) -> None:
        self._sizes: dict[str, int] = {}
        self._lines: list[str] = []
        n, target, can_refuse = n_first, "x", False
        before = Before(is_source=True, is_exact=True)
        self._loop = [f"b.value = {given};", "b.radius = 0.0;"]
        for k, op in enumerate(ops):
            record = on_device(op)
            if before.is_source and record.is_choice(op):
                before = before._replace(is_exact=True)
            gathers = record.gathers(k, op, before) if record.gathers else None
            if gathers is not None:
                has_radii = gathers.has_radii and not before.is_exact
                self._end_loop(n, target, gathers.last, has_radii)
                if target == "y":
                    self._copy(n, has_radii)
                self._lines += gathers.between
                self._reserve(gathers.arrays)
                n, target = op.n_outputs, "x" if gathers.in_place else "y"
            self._loop += record.lines(k, op, before)
            if gathers is not None and gathers.after:
                self._end_loop(n, "y", [], has_radii=False)
                self._loop, target = ["b.value = y[j];", *gathers.after], "x"
            before = Before(before.is_source and op.as_source, before.is_exact and record.keeps_exact(op))
            can_refuse |= record.refuses(op)
        self._end_loop(n, target, [] if before.is_exact else ["sum += b.radius * b.radius;"], has_radii=False)
        if target == "y":
            self._copy(n, has_radii=False)
        if can_refuse:
            self._lines.append(f"for (j = 0; is_refused && j < {n}; ++j) x[j] = approxsvm_nan();")
        self._lines.append(f"return {0.0 if before.is_exact else f'approxsvm_norm_above(sum, {n})'};")

    def _end_loop(self, n: int, target: str, last: Sequence[str], has_radii: bool) -> None:
        """Add the loop over n numbers, which are stored in x and radius, or in y and y_radius."""
        radius = "radius" if target == "x" else "y_radius"
        stored = {target: "b.value", **({radius: "b.radius"} if has_radii else {})}
        self._lines += _loop(n, [*self._loop, *last, *(f"{array}[j] = {part};" for array, part in stored.items())])
        self._reserve({f"double {array}": n for array in stored if array != "x"})
        self._loop = []

    def _copy(self, n: int, has_radii: bool) -> None:
        """Copy y to x."""
        self._lines += _loop(n, ["x[j] = y[j];", *["radius[j] = y_radius[j];"] * has_radii])
        if has_radii:
            self._reserve({"double radius": n})

    def _reserve(self, arrays: Mapping[str, int]) -> None:
        """Make the function's arrays large enough; ops share them."""
        for array, n in arrays.items():
            self._sizes[array] = max(self._sizes.get(array, 0), n)

    @property
    def stack_bytes(self) -> int:
        """Size of the function's arrays without x, which the caller provides."""
        return sum(n * (8 if array.startswith("double") else 16) for array, n in self._sizes.items())

    def text(self) -> str:
        """Return the text of the function."""
        body = "\n".join(self._lines)
        arrays = [f"{array}[{n}];" for array, n in self._sizes.items()]
        used = {
            "approxsvm_ball b;": "b.",
            "double sum = 0.0;": "sum",
            "double reach;": "reach",
            "int is_refused = 0;": "is_refused",
            "int i;": "(i = ",
            "int j;": "j",
        }
        declared = [*arrays, *(declaration for declaration, mark in used.items() if mark in body)]
        return filled("MAP", declared=declared, statements=self._lines)


def _loop(n: int, body: Sequence[str]) -> list[str]:
    if len(body) == 1:
        return [f"for (j = 0; j < {n}; ++j) {body[0]}"]
    return [f"for (j = 0; j < {n}; ++j) {{", *(f"    {line}" for line in body), "}"]


def float32_above(numbers: FloatArray) -> npt.NDArray[np.float32]:
    """Return float32 upper bounds; positive numbers are at least 2^-126, so that none is flushed to 0."""
    with np.errstate(over="ignore"):
        narrow = np.where(numbers > 0.0, np.maximum(numbers, 2.0**-126), 0.0).astype(np.float32)
    return np.where(narrow < numbers, np.nextafter(narrow, np.float32(np.inf)), narrow).astype(np.float32)

"""Input maps on a device: the type of the records in backends/ops, and the op table that a header runs.

If an input map does more than scale, the whole row is mapped in float64 using balls: values, each with a radius that
bounds its error. The core's C code computes both (cpp/include/approxsvm/exported/ops.h). Successive ops that act on one
feature at a time share a loop; an op that reads several features starts a new one. Only the inputs of such ops are
stored. The radii after the last op are summed immediately, and values without rounding errors have no radius.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from approxsvm.backends.c99.device.router import smallest
from approxsvm.backends.ops import exported
from approxsvm.errors import UnsupportedModelError
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.ops import Op

# Limit on intermediate values; it must hold for every float32 row.
_MOST_ON_THE_WAY: Final = 1e300

# Bits that select what is kept after a loop (exported/ops.h): the sum of the squared radii, or each individual radius.
KEEPS_SUM: Final = 1
KEEPS_EACH: Final = 2


class Before(NamedTuple):
    """Known properties of an op's inputs."""

    is_source: bool  # True if the inputs are bit-identical to the source's
    is_exact: bool  # True if the inputs have no rounding errors and no radii


class Step(NamedTuple):
    """Op in a header's table; one op of an input map may consist of several steps."""

    kind: str
    doubles: Sequence[Any] = ()
    integers: Sequence[Any] = ()
    detail: int = 0
    # True if the op begins a loop, because an output reads several inputs
    begins_loop: bool = False
    in_place: bool = False  # True if output j reads only inputs from j on
    keeps: int = KEEPS_EACH  # radii of the inputs that the op reads, if there are any
    macros: Mapping[str, int] = {}  # sizes that the op needs; a header contains the maximum of each


class OnDevice(NamedTuple):
    """C header record for one kind of op."""

    # Bounds on the absolute values after each operation, given bounds on the features and ignoring clipping. The last
    # array bounds the outputs
    on_the_way: Callable[[Any, FloatArray], list[FloatArray]]
    steps: Callable[[Any, Before], Sequence[Step]]
    keeps_exact: Callable[[Any], bool] = lambda _: False  # whether exact inputs have exact outputs
    refuses: Callable[[Any], bool] = lambda _: False  # whether the op rejects some values
    # Whether outputs have no radii if the inputs equal the source's, even if the inputs have radii
    is_choice: Callable[[Any], bool] = lambda _: False


def reads_one_by_one(op: Any) -> bool:
    """Return whether op.source[j] >= j for all j, so that no output j of an op reads an input before j."""
    return bool((op.source >= np.arange(op.n_outputs)).all())


def on_device(op: Op) -> OnDevice:
    """Return the record for an op's kind; raise UnsupportedModelError if it has none."""
    record: OnDevice = exported(op, "ON_DEVICE", "C")
    return record


def largest_after(op: Op, most: FloatArray) -> FloatArray:
    """Return the maximum absolute values of an op's outputs for features with absolute values up to `most`.

    Raises UnsupportedModelError if the C export does not support the op's kind, or if intermediate values may overflow.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        on_the_way = on_device(op).on_the_way(op, most[op.first : op.end])
    largest = max(float(numbers.max(initial=0.0)) for numbers in on_the_way)
    if not largest < _MOST_ON_THE_WAY:
        raise UnsupportedModelError(f"mapping a float32 row may give {largest:.3g}, but the C export allows 1e300")
    return op.replaced(most, on_the_way[-1])


class OpTable:
    """Op table of an input map, for mapping whole rows or single values.

    `n_first` is the number of inputs. If `wholly` is False, all ops are scalers, values are mapped one at a time, and
    the caller bounds the errors.
    """

    def __init__(self, ops: Sequence[Op], n_first: int, wholly: bool) -> None:
        self.macros: dict[str, int] = {}
        self._columns: dict[str, list[int]] = {}
        self._doubles: list[FloatArray] = [np.zeros(0)]
        self._integers: list[npt.NDArray[np.intp]] = [np.zeros(0, np.intp)]
        self._kinds = ["given"]
        # Known properties of each value in a row
        self._is_source, self._is_exact = np.ones((2, n_first), np.bool_)
        if wholly:
            self._add(Step("given", begins_loop=True, in_place=True), 0, n_first, n_first, Before(True, True))
        for op in ops:
            record = on_device(op)
            before = Before(*(bool(known[op.first : op.end].all()) for known in (self._is_source, self._is_exact)))
            if before.is_source and record.is_choice(op):
                before = before._replace(is_exact=True)
                self._is_exact[op.first : op.end] = True
            for step in record.steps(op, before):
                self._add(step, op.first, op.n_features, op.n_outputs if step.begins_loop else op.n_features, before)
            after = before.is_source and op.as_source, before.is_exact and record.keeps_exact(op)
            self._is_source, self._is_exact = (
                op.replaced(known, np.full(op.n_outputs, is_known))
                for known, is_known in zip((self._is_source, self._is_exact), after, strict=True)
            )
        is_exact = bool(self._is_exact.all())
        self.macros |= {f"op_{kind}_": code for code, kind in enumerate(self._kinds)}
        self.macros |= {"n_ops_": len(self._columns.get("s", ())), "is_exact_": int(is_exact)}
        if wholly:
            self._end_loop(0 if is_exact else KEEPS_SUM)
        else:
            self.macros.pop("scales_balls_", None)

    def _add(self, step: Step, first: int, n_inputs: int, n: int, before: Before) -> None:
        width = len(self._is_exact)
        self._need({"has_parts_": int(n_inputs < width)})
        if step.begins_loop and self._columns:
            is_exact = bool(self._is_exact.all())
            # A projection needs only the sum of its inputs' squared radii, but values that it does not read need
            # individual radii.
            needs_each = not is_exact and (step.keeps == KEEPS_EACH or n_inputs < width)
            self._end_loop((step.keeps & KEEPS_SUM) + KEEPS_EACH * needs_each)
            before = before._replace(is_exact=is_exact)
        if step.kind not in self._kinds:
            self._kinds.append(step.kind)
        is_in_place = step.in_place and (n <= n_inputs or first + n_inputs == width)
        row = {
            "s": self._kinds.index(step.kind),
            "_first": first,
            "_n": n,
            "_n_inputs": n_inputs,
            "_width": width - n_inputs + n if step.begins_loop else width,
            "_begins": int(step.begins_loop),
            "_ends": 0,
            "_keeps": 0,
            "_is_apart": int(step.begins_loop and not is_in_place),
            "_is_source": int(before.is_source),
            "_is_exact": int(before.is_exact),
            "_details": step.detail,
            "_doubles": sum(map(len, self._doubles)),
            "_integers": sum(map(len, self._integers)),
        }
        for name, number in row.items():
            self._columns.setdefault(name, []).append(number)
        self._doubles += [np.ravel(np.asarray(one, np.float64)) for one in step.doubles]
        self._integers += [np.ravel(np.asarray(one, np.intp)) for one in step.integers]
        self._need(step.macros)

    def _end_loop(self, keeps: int) -> None:
        """Record where the last loop ends, and which radii are kept after it."""
        columns = self._columns
        first = max(k for k, begins in enumerate(columns["_begins"]) if begins)
        columns["_ends"][first], columns["_keeps"][first] = len(columns["s"]), keeps
        n, is_apart = columns["_width"][first], columns["_is_apart"][first]
        self._need({"n_apart_": n * is_apart})
        if keeps & KEEPS_EACH:
            self._need({"n_radii_": n, "n_apart_radii_": n * is_apart})

    def _need(self, macros: Mapping[str, int]) -> None:
        for name, number in macros.items():
            self.macros[name] = max(self.macros.get(name, 0), number)

    @property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Columns of the table, and arrays of the parameters that ops use."""
        integers = smallest(np.concatenate(self._integers))
        found = {f"op{name}_": smallest(np.array(numbers)) for name, numbers in self._columns.items()}
        return found | {"doubles_": np.concatenate(self._doubles), "integers_": integers}

    @property
    def stack_bytes(self) -> int:
        """Size of the input map's local arrays, except the caller-provided array `x`."""
        return 8 * sum(self.macros.get(name, 0) for name in ("n_radii_", "n_apart_", "n_apart_radii_"))


def float32_above(numbers: FloatArray) -> npt.NDArray[np.float32]:
    """Return float32 upper bounds on values; positive ones are at least 2^-126, so none is flushed to 0."""
    with np.errstate(over="ignore"):
        narrow = np.where(numbers > 0.0, np.maximum(numbers, 2.0**-126), 0.0).astype(np.float32)
    return np.where(narrow < numbers, np.nextafter(narrow, np.float32(np.inf)), narrow).astype(np.float32)

"""The steps of an input map on a device: what their records (backends/steps) are, and what these share.

Where anything but scaling is done the whole row is mapped, in float64, and a bound e of the Euclidean distance to the
source's row over the real numbers is carried along, u = 2^-53. No feature is off by more than e, and none that is raw,
or looked up in what is, by anything. What features are off by is added up: a sum of moduli, which needs no root, is no
less than a norm. Each kind derives what it makes of e (backends/steps), or has the core's own C
(cpp/include/approxsvm/program).

Up to the first step that is not the source's own arithmetic, bit for bit, x is the source's number, too: no compiler
may fuse a product there with a sum. It says in which piece of a table, or between which ends, a number lies, as it does
in the core; behind that what lies within 2 e does, as the source's number rounds as x does.

Where nothing is known e is infinite, or NaN, and stays so.

Where a number may have no value within e, x becomes NaN, which later steps keep and every function refuses: such a row
has no label, whatever bound all values have. A missing value is NaN, too, up to the table that replaces it; that looks
in the raw row which of both it is. No step adds to e for a NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from approxsvm.backends.steps import exported
from approxsvm.errors import UnsupportedModelError
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.steps import Affine, Step, Table
from approxsvm.ir.steps.step import IntArray
from approxsvm.ir.steps.table import SAME

Arrays = Iterator[tuple[str, npt.NDArray[Any]]]

# Numbers on the way through an input map must stay below this for every float32 row.
_MOST_ON_THE_WAY: Final = 1e300
ROUNDED_UP: Final = 1.0 + 2.0**-30
UNDERFLOW: Final = 2.0**-500
# In statements.
IS_SOURCE: Final = "#IS_SOURCE#"
# In place of infinity, for features that stay as they are.
NOT_TAKEN: Final = 1e301


class OnDevice(NamedTuple):
    """A kind of step.

    Attributes
    ----------
    on_the_way : function of (stage, most)
        The largest moduli after each of its operations, of features up to `most`, limits aside; the last are what it
        leaves.
    arrays : function of (stage,)
        What it works with; names get its number.
    lines : function of (k, stage)
        Statements that change x and `error`.
    functions : function of (stage,)
        The texts of what these call, each of which a header has once.
    in_place : bool
        Or else they need room for y.
    refuses : function of (stage,)
        Whether some numbers have no value.
    keeps : function of (stage,)
        Which outputs are their features as they are, or looked up: exact of what is exact.
    program : str
        The file of cpp/include/approxsvm/program whose functions the statements call.
    """

    on_the_way: Callable[[Any, FloatArray], list[FloatArray]]
    arrays: Callable[[Any], dict[str, npt.NDArray[Any]]]
    lines: Callable[[int, Any], list[str]]
    functions: Callable[[Any], tuple[str, ...]] = lambda _: ()
    in_place: bool = False
    refuses: Callable[[Any], bool] = lambda _: False
    keeps: Callable[[Any], Any] = lambda _: False
    program: str = ""


def on_device(stage: Step) -> OnDevice:
    """The record of its kind; raises UnsupportedModelError where there is none."""
    record: OnDevice = exported(stage, "ON_DEVICE", "C")
    return record


def largest_after(stage: Step, most: FloatArray) -> FloatArray:
    """The largest moduli that a stage leaves of features up to `most`.

    Raises
    ------
    UnsupportedModelError
        It is of a kind that devices have not, or a float32 row may leave float64 on its way.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        on_the_way = on_device(stage).on_the_way(stage, most)
    largest = max(float(numbers.max(initial=0.0)) for numbers in on_the_way)
    if not largest < _MOST_ON_THE_WAY:
        raise UnsupportedModelError(f"mapping a float32 row may give {largest:.3g}, but the C export allows 1e300")
    return on_the_way[-1]


def step_arrays(stages: Sequence[Step], columns: IntArray) -> Arrays:
    """The numbers of stages; the first features are these raw columns.

    Of features, where statements ask for it: the raw column that a number comes from, -1 for none; whether it is exact;
    and whether limits have kept it from being negative.
    """
    exact, limited = np.ones(len(columns), np.bool_), np.zeros(len(columns), np.bool_)
    for k, stage in enumerate(stages):
        record = on_device(stage)
        known = {"columns": columns.astype(np.int32), "exact": exact, "limited": limited}
        asked = "".join(record.lines(k, stage))
        flags = {part: some.astype(np.int32 if part == "columns" else np.uint8) for part, some in known.items()}
        arrays = record.arrays(stage) | {part: some for part, some in flags.items() if f"@{part}_{k}@@" in asked}
        yield from ((f"{part}_{k}_", numbers) for part, numbers in arrays.items())
        origins = [stage.origin(j) for j in range(stage.n_outputs)]
        columns = np.array([-1 if j is None else columns[j] for j in origins], np.intp)
        exact, limited = (
            np.array([j is not None and some[j] for j in origins]) & record.keeps(stage) for some in (exact, limited)
        )
        if isinstance(stage, Affine) and stage.low is not None:
            limited |= stage.low >= 0.0
        elif isinstance(stage, Table):
            limited &= [bool((steps.values == SAME).all()) for steps in stage.steps]


def step_lines(stages: Sequence[Step]) -> Iterator[str]:
    """The statements of all stages, which know whether x is the source's own number."""
    is_source = True
    for k, stage in enumerate(stages):
        yield from (line.replace(IS_SOURCE, str(int(is_source))) for line in on_device(stage).lines(k, stage))
        is_source &= stage.as_source


def step_functions(stages: Sequence[Step]) -> str:
    """What the statements of all stages call."""
    return "".join(dict.fromkeys(text for stage in stages for text in on_device(stage).functions(stage)))


def step_programs(stages: Sequence[Step]) -> dict[str, None]:
    """Return the files of C that the core and the statements of all stages share."""
    return {name: None for stage in stages if (name := on_device(stage).program)}


def room_for(stages: Sequence[Step]) -> int:
    """How many numbers come out of a step beside those that go in, at most."""
    return max((stage.n_outputs for stage in stages if not on_device(stage).in_place), default=0)


# --- what several kinds share


def carried(gain: float, of_before: float, of_after: float, fixed: float) -> str:
    """What becomes of an error, gain e + of_before |before|_1 + of_after |after|_1 + fixed; numbers rounded up."""
    numbers = [number * ROUNDED_UP + 2.0**-1000 for number in (gain, of_before, of_after, fixed)]
    if not all(number < _MOST_ON_THE_WAY for number in numbers):
        raise UnsupportedModelError("the errors of a step in front of the model are beyond float64 in the C export")
    return f"error = @next_error@@(error, before, after, {', '.join(map(repr, numbers))});"


def one_by_one(k: int, n: int, function: str, *arguments: str) -> list[str]:
    """Statements that change each of n features by a function of it, its error and what it is off by afterwards."""
    call = ", ".join(["x[j]", *arguments, error_of(k, "j"), "&after"])
    return [
        "after = 0.0;",
        f"for (j = 0; j < {n}; ++j) x[j] = @{function}@@({call});",
        f"error = 1.000000001 * after + {UNDERFLOW!r};",
    ]


def balls(k: int, n: int, call: str, taken: str, takes: str = "1") -> list[str]:
    """Return statements that map n features, which have the radii y, by a call of the core's C.

    A feature that is taken and has a number without a value in its ball becomes NaN; beyond 1e282 nothing is known.
    """
    return [
        "after = 0.0;",
        f"for (j = 0; j < {n}; ++j) {{",
        f"    y[j] = {error_of(k, 'j')};",
        f"    if (x[j] == x[j] && {taken} && !({takes})) x[j] = after = approxsvm_infinity();",
        "    if (x[j] == approxsvm_infinity()) x[j] -= x[j];",
        "}",
        f"{call};",
        f"for (j = 0; j < {n}; ++j) {{",
        "    if (x[j] != x[j]) continue;",
        "    after += approxsvm_abs(x[j]) < 1e282 ? y[j] : approxsvm_infinity();",
        "    x[j] = x[j] > 1e282 ? 1e282 : x[j] < -1e282 ? -1e282 : x[j];",
        "}",
        f"error = 1.000000001 * after + {UNDERFLOW!r};",
    ]


def error_of(k: int, feature: str) -> str:
    """What a feature of step k is off by, at most."""
    return f"@exact_{k}@@[{feature}] ? 0.0 : error"


SUMMED: Final = f"error = 1.000000001 * before + {UNDERFLOW!r};"

NEXT_ERROR: Final = """\
/* What a step makes of an error, from the sums of moduli before and after its last addition. */
static inline double @next_error@@(double error, double before, double after, double gain, double of_before,
                                   double of_after, double fixed) {
    return 1.000000001 * (gain * error + of_before * before + of_after * after + fixed);
}
static inline double @product@@(double x, double factor) {
    const volatile double product = x * factor; /* fused with no sum */
    return product;
}
/* The modulus of a number that is not missing. */
static inline double @size@@(double x) { return x == x ? @modulus@@(x) : 0.0; }
"""
PIECE: Final = """\
/* Which of n + 1 pieces x lies in. */
static inline int @piece@@(const double edges[], int n, double x) {
    int low = 0;
    while (n > 0) {
        const int half = n / 2;
        if (edges[low + half] <= x) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return low;
}
"""

"""How a raw row becomes the numbers that a device's function takes, and how far these may be from the source's.

A table comes first or not at all (lookups.py); what it gives is exact.

Where the stages of the input map only scale, a coordinate is mapped when it is needed, in float64, and the table of
bounds has what this may be off by (device_bounds.py). Behind a projection, and in front of sums (sums.py), the whole
row is mapped first, and a bound e of the Euclidean distance to the source's row over the real numbers is carried along:

* a scaler with the factors m_j, y = (x - s) m / d, then y + a, makes of e at most

      max |m_j / d_j| e + (4 u + rho) |y|_1 + rho max |m_j / d_j| e + u |y + a|_1 + underflow,

  rho being the largest relative_error; limits, which come last, bring no two rows further apart;
* a projection of n features, y = (x - c) M + b, makes of it at most

      ||M||_F e + 1.01 (n + 3) u ||M||_F |x - c|_1 + ||bias_error|| + 2 u (||b|| + |y|_1) + underflow,

as in model/steps, where each is derived feature by feature; sums of moduli, which need no root, are no less than norms.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from approxsvm.artifact.views import Artifact
from approxsvm.errors import UnsupportedModelError
from approxsvm.export.c99 import source
from approxsvm.export.c99.device_router import smallest
from approxsvm.export.c99.input_codes import InputCodes
from approxsvm.export.c99.lookups import LOOKED_UP, leading_table, lookup_arrays, most_looked_up
from approxsvm.model.constants import UNIT64
from approxsvm.model.kernel_model import FloatArray
from approxsvm.model.steps import Affine, Projection

DeviceStage = Affine | Projection
Arrays = Iterator[tuple[str, npt.NDArray[Any]]]

# Numbers on the way through an input map must stay below this for every float32 row.
_MOST_ON_THE_WAY: Final = 1e300
_UP: Final = 1.0 + 2.0**-30
_UNDERFLOW: Final = 2.0**-500


class _Carried(NamedTuple):
    """What a stage makes of an error: gain e + of_before |before|_1 + of_after |after|_1 + fixed."""

    gain: float
    of_before: float
    of_after: float
    fixed: float


def device_stages(artifact: Artifact) -> tuple[DeviceStage, ...]:
    """The stages of an artifact's input map behind a table, where it begins with one; all of them scale or project.

    Raises
    ------
    UnsupportedModelError
        One does something else, or a float32 row may leave float64 on its way.
    """
    if artifact.input_map is None:
        return ()
    table = leading_table(artifact)
    all_float32 = np.full(len(artifact.input_map.columns), float(np.finfo(np.float32).max))
    most = all_float32 if table is None else most_looked_up(table)
    stages: list[DeviceStage] = []
    for stage in artifact.input_map.stages[0 if table is None else 1 :]:
        if not isinstance(stage, DeviceStage):
            raise UnsupportedModelError(
                f"the C export has no {stage.on_device}: apply that step on the device, and compile and export what "
                "follows it"
            )
        if stage.is_identity:
            continue
        stages.append(stage)
        with np.errstate(over="ignore"):
            on_the_way = _on_the_way(stage, most)
        largest = max(float(numbers.max(initial=0.0)) for numbers in on_the_way)
        if not largest < _MOST_ON_THE_WAY:
            raise UnsupportedModelError(f"mapping a float32 row may give {largest:.3g}, but the C export allows 1e300")
        most = on_the_way[-1]
    return tuple(stages)


def _on_the_way(stage: DeviceStage, most: FloatArray) -> list[FloatArray]:
    """The largest moduli after each operation of a stage, of features up to `most`; limits aside."""
    if isinstance(stage, Projection):
        centered = most + np.abs(stage.center)
        return [centered, centered @ np.abs(stage.matrix) + np.abs(stage.bias)]
    found = [most]
    for name, combine in (("subtract", np.add), ("multiply", np.multiply), ("divide", np.divide), ("add", np.add)):
        values = getattr(stage, name)
        if values is not None:
            found.append(combine(found[-1], np.abs(values)))
    return found


def affine_arrays(stage: Affine) -> dict[str, npt.NDArray[np.float64]]:
    """The numbers that a stage works with, in the order of its operations; limits that are infinite never act."""
    found = {}
    largest = np.finfo(np.float64).max
    for name in ("subtract", "multiply", "divide", "add", "low", "high"):
        numbers = getattr(stage, name)
        if numbers is not None and not (name in ("low", "high") and np.isinf(numbers).all()):
            found[name] = numbers.clip(-largest, largest)
    return found


class DeviceRows:
    """The rows of one artifact.

    Parameters
    ----------
    artifact : Artifact
    codes : InputCodes or None
        What rows are made of, unless they are float32.
    wholly : bool
        Whether the function wants all of a mapped row with its error, rather than one coordinate after the other.
    """

    def __init__(self, artifact: Artifact, codes: InputCodes | None, wholly: bool) -> None:
        self.artifact, self.codes = artifact, codes
        self.table, self.stages = leading_table(artifact), device_stages(artifact)
        self.has_map = artifact.input_map is not None
        projects = any(isinstance(stage, Projection) for stage in self.stages)
        if projects and codes:
            raise UnsupportedModelError(
                "the C export projects rows of float32 numbers alone: leave inputs='float32', or compile and export "
                "what follows the projection"
            )
        self.scalers = tuple(stage for stage in self.stages if isinstance(stage, Affine))
        self.is_whole = self.has_map and (wholly or projects)
        self.folded = codes.folded(artifact, self.scalers) if codes and not self.is_whole else None
        self.moved = codes.moved(artifact, self.scalers, self.folded) if codes else 0.0

    @property
    def n_first(self) -> int:
        """How many numbers an input map begins with: of columns, or from a table."""
        assert self.artifact.input_map is not None
        return len(self.artifact.input_map.columns) if self.table is None else self.table.n_outputs

    @property
    def refused(self) -> str:
        """Which rows have no mapped row, in words."""
        return "that is not finite" if self.table is None else "that is not finite, or has what tables refuse"

    @property
    def widest(self) -> int:
        """How many numbers a mapped row has on its way, at most."""
        return max(self.n_first, *(stage.n_outputs for stage in self.stages), 1)

    @property
    def stack_bytes(self) -> int:
        """Of arrays in float64."""
        widths = [stage.n_outputs for stage in self.stages if isinstance(stage, Projection)]
        return 8 * (self.widest + max(widths, default=0)) if self.is_whole else 0

    def arrays(self) -> Arrays:
        """Numbers of the input map and of the codes."""
        if self.codes:
            yield "offsets", self.codes.offsets
            yield "steps", self.codes.steps
        if self.artifact.input_map is None:
            return
        columns = self.artifact.input_map.columns
        if self.table is not None:
            yield from lookup_arrays(self.table, columns)
        elif len(columns) != self.artifact.n_raw_features or (columns != np.arange(len(columns))).any():
            yield "columns_", smallest(columns)
        if self.folded:
            yield from zip(("slopes_", "bases_"), self.folded, strict=True)
        for k, stage in enumerate(() if self.folded else self.stages):
            if isinstance(stage, Affine):
                yield from ((f"{part}_{k}_", numbers) for part, numbers in affine_arrays(stage).items())
            else:
                yield from ((f"{part}_{k}_", getattr(stage, part)) for part in ("center", "bias"))
                yield f"matrix_{k}_", np.ascontiguousarray(stage.matrix.T)

    def functions(self) -> Iterator[str]:
        """The numbers of a row, and which rows are refused."""
        if self.codes:
            yield source.CODES if self.folded else source.DECODED + source.CODES
        else:
            yield source.RAW + source.NOT_FINITE if self.table is None else LOOKED_UP

    @property
    def _given(self) -> str:
        """Number j at the beginning of the input map."""
        return "(double)@raw@@(row, @COLUMN@)" if self.table is None else "@looked_up@@(row, j)"

    def coordinate(self) -> str:
        """A coordinate of a row about a center, in scaled units."""
        if not self.has_map:
            return (
                "static inline float @coordinate@@(const @ROW@ row[], int j, const float center[]) {\n"
                "    return (@raw@@(row, j) - center[j]) * @input_scale@@;\n}\n"
            )
        if self.folded:
            return (
                "/* The map of the source and the decoding are one step. */\n"
                "static inline float @coordinate@@(const @ROW@ row[], int j, const float center[]) {\n"
                "    const float x = @slopes@@[j] * (float)row[@COLUMN@] + @bases@@[j];\n"
                "    return (x - center[j]) * @input_scale@@;\n}\n"
            )
        if self.is_whole:
            return (
                f"{self.whole_map()}"
                "static inline float @coordinate@@(const double x[], int j, const float center[]) {\n"
                "    return @narrowed@@((x[j] - (double)center[j]) * (double)@input_scale@@);\n}\n"
            )
        steps = [
            line for k, stage in enumerate(self.scalers) for line in _operations(k, list(affine_arrays(stage)), "x")
        ]
        body = "\n".join([f"    double x = {self._given};", *(f"    {line}" for line in steps)])
        return (
            "/* Feature j of a row as the source maps it, in its order of operations. */\n"
            f"static inline double @feature@@(const @ROW@ row[], int j) {{\n{body}\n    return x;\n}}\n"
            "static inline float @coordinate@@(const @ROW@ row[], int j, const float center[]) {\n"
            "    return (float)((@feature@@(row, j) - (double)center[j]) * (double)@input_scale@@);\n}\n"
        )

    def whole_map(self) -> str:
        """All of a row at once, with its error."""
        lines = [f"for (j = 0; j < {self.n_first}; ++j) x[j] = {self._given};"]
        for k, stage in enumerate(self.stages):
            if isinstance(stage, Projection):
                lines += _PROJECTED.format(k=k, n=stage.n_features, m=stage.n_outputs).splitlines()
            else:
                lines += _scaled_whole(k, stage)
            carried = ", ".join(map(repr, _carried(stage)))
            lines.append(f"error = @next_error@@(error, before, after, {carried});")
        declared = ["double error = 0.0, before = 0.0, after = 0.0;", "int j;"]
        widths = [stage.n_outputs for stage in self.stages if isinstance(stage, Projection)]
        if widths:
            declared += [f"double y[{max(widths)}];", "int i;"]
        body = "\n".join(
            f"    {line}" for line in [*declared, *lines, "(void)before;", "(void)after;", "return error;"]
        )
        return f"{_ERRORS}{_MAP_COMMENT}static inline double @map@@(const @ROW@ row[], double x[]) {{\n{body}\n}}\n"


def _scaled_whole(k: int, stage: Affine) -> list[str]:
    """Statements that scale a whole row, stage k."""
    parts = list(affine_arrays(stage))
    limits = [part for part in parts if part in ("low", "high")]
    first = [part for part in parts if part not in ("add", *limits)]
    steps = [
        *_operations(k, first, "x[j]"),
        "before += @modulus@@(x[j]);",
        *_operations(k, [part for part in parts if part == "add"], "x[j]"),
        "after += @modulus@@(x[j]);",
        *_operations(k, limits, "x[j]"),
    ]
    return [
        "before = after = 0.0;",
        f"for (j = 0; j < {stage.n_features}; ++j) {{",
        *(f"    {step}" for step in steps),
        "}",
    ]


def _operations(k: int, parts: Sequence[str], x: str) -> list[str]:
    """Statements that change the number x, feature j of stage k."""
    lines = []
    for part in parts:
        number = f"@{part}_{k}@@[j]"
        compare = {"low": "<", "high": ">"}.get(part)
        operator = {"subtract": "-=", "multiply": "*=", "divide": "/=", "add": "+="}.get(part)
        change = f"= {x} {compare} {number} ? {number} : {x};" if compare else f"{operator} {number};"
        lines.append(f"{x} {change}")
    return lines


def _carried(stage: DeviceStage) -> _Carried:
    """The numbers of the docstring, rounded up."""
    if isinstance(stage, Projection):
        frobenius = _norm(stage.matrix)
        path = 1.01 * (stage.n_features + 3) * UNIT64
        fixed = _norm(stage.bias_error) + 2.0 * UNIT64 * _norm(stage.bias) + _UNDERFLOW
        return _checked(frobenius, path * frobenius, 2.0 * UNIT64, fixed)
    ones = np.ones(stage.n_features)
    divide = ones if stage.divide is None else np.abs(stage.divide)
    with np.errstate(over="ignore"):
        gain = float(((ones if stage.multiply is None else np.abs(stage.multiply)) / divide).max(initial=0.0))
        lost = _UNDERFLOW * (1.0 + float((1.0 / divide).max(initial=0.0)))
    relative = 0.0 if stage.relative_error is None else float(stage.relative_error.max(initial=0.0))
    return _checked(gain * (1.0 + relative), 4.0 * UNIT64 + relative, UNIT64, lost)


def _checked(gain: float, of_before: float, of_after: float, fixed: float) -> _Carried:
    numbers = [number * _UP + 2.0**-1000 for number in (gain, of_before, of_after, fixed)]
    if not all(number < _MOST_ON_THE_WAY for number in numbers):
        raise UnsupportedModelError("the errors of a step in front of the model are beyond float64 in the C export")
    return _Carried(*numbers)


def _norm(numbers: FloatArray) -> float:
    largest = float(np.abs(numbers).max(initial=0.0))
    if largest == 0.0 or not math.isfinite(largest):
        return largest
    return largest * float(np.linalg.norm(numbers / largest)) * (1.0 + 1e-9)


_MAP_COMMENT: Final = (
    "/* The row as the source maps it; what its distance to the source's row over the real numbers never exceeds. */\n"
)
_PROJECTED: Final = """\
before = after = 0.0;
for (j = 0; j < {n}; ++j) {{
    x[j] -= @center_{k}@@[j];
    before += @modulus@@(x[j]);
}}
for (i = 0; i < {m}; ++i) {{
    double sum = @bias_{k}@@[i];
    for (j = 0; j < {n}; ++j) sum += x[j] * @matrix_{k}@@[i * {n} + j];
    y[i] = sum;
    after += @modulus@@(sum);
}}
for (i = 0; i < {m}; ++i) x[i] = y[i];"""
_ERRORS: Final = """\
/* What a step makes of an error, from the sums of moduli before and after its last addition. */
static inline double @next_error@@(double error, double before, double after, double gain, double of_before,
                                   double of_after, double fixed) {
    return 1.000000001 * (gain * error + of_before * before + of_after * after + fixed);
}
"""

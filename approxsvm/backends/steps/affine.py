"""Scalers in exported programs.

On a device a scaler with the factors m_j, y = (x - s) m / d, then y + a, makes of an error e at most

    max |m_j / d_j| e + (4 u + rho) |y|_1 + rho max |m_j / d_j| e + u |y + a|_1 + underflow,

rho being the largest relative_error; limits, which come last, bring no two rows further apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.backends.c99.device_steps import NEXT_ERROR, UNDERFLOW, OnDevice, carried
from approxsvm.backends.onnx.graph_builder import UP, GraphBuilder
from approxsvm.backends.onnx.rows_graph import ROUNDING, TINY, Mapped
from approxsvm.ir.constants import UNIT64
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.steps import Affine


def nodes(g: GraphBuilder, stage: Affine, x: str, error: str | None, with_errors: bool, is_source: bool) -> Mapped:
    """Operation after operation; limits do not let errors grow."""
    gain = np.ones(stage.n_features)
    n_operations = 0
    for name, operation in (("subtract", "Sub"), ("multiply", "Mul"), ("divide", "Div")):
        numbers = getattr(stage, name)
        if numbers is not None:
            x = g.op(operation, x, numbers)
            if name == "multiply":
                gain = gain * np.abs(numbers)
            elif name == "divide":
                gain = gain / np.abs(numbers)
            n_operations += 1
    if with_errors:
        error = _affine_error(g, stage, x, error, gain, n_operations)
    if stage.add is not None:
        x = g.op("Add", x, stage.add)
        if error is not None:
            error = g.op("Add", error, g.op("Mul", g.op("Abs", x), ROUNDING))
    for limits, operation in ((stage.low, "Max"), (stage.high, "Min")):
        x = x if limits is None else g.op(operation, x, limits)
    return x, error


def _affine_error(
    g: GraphBuilder, stage: Affine, x: str, error: str | None, gain: FloatArray, n_operations: int
) -> str:
    """Of what is scaled, before anything is added."""
    with np.errstate(over="ignore", divide="ignore"):
        tiny = TINY * (1.0 + (0.0 if stage.divide is None else 1.0 / np.abs(stage.divide)))
    own: Any = g.op("Add", g.op("Mul", g.op("Abs", x), n_operations * ROUNDING), np.broadcast_to(tiny, gain.shape))
    error = own if error is None else g.op("Add", g.op("Mul", error, gain * UP + TINY), own)
    if stage.relative_error is None:
        return error
    of_parameters = g.op("Mul", g.op("Add", g.op("Abs", x), error), stage.relative_error)
    return g.op("Mul", g.op("Add", error, of_parameters), UP)


def affine_arrays(stage: Affine) -> dict[str, npt.NDArray[Any]]:
    """The numbers that a stage works with, in the order of its operations; limits that are infinite never act."""
    found = {}
    largest = np.finfo(np.float64).max
    for name in ("subtract", "multiply", "divide", "add", "low", "high"):
        numbers = getattr(stage, name)
        if numbers is not None and not (name in ("low", "high") and np.isinf(numbers).all()):
            found[name] = numbers.clip(-largest, largest)
    return found


def operations(k: int, parts: Sequence[str], x: str) -> list[str]:
    """Statements that change the number x, feature j of stage k."""
    lines = []
    for part in parts:
        number = f"@{part}_{k}@@[j]"
        compare = {"low": "<", "high": ">"}.get(part)
        operator = {"subtract": "-=", "multiply": "*=", "divide": "/=", "add": "+="}.get(part)
        change = f"= {x} {compare} {number} ? {number} : {x};" if compare else f"{operator} {number};"
        lines.append(f"{x} {change}")
    return lines


def _scaled(stage: Affine, most: FloatArray) -> list[FloatArray]:
    found = [most]
    for name, combine in (("subtract", np.add), ("multiply", np.multiply), ("divide", np.divide), ("add", np.add)):
        values = getattr(stage, name)
        if values is not None:
            found.append(combine(found[-1], np.abs(values)))
    return found


def _alone(line: str) -> str:
    """A product that no compiler fuses with a sum, by a step behind or by this one."""
    return re.sub(r"x\[j\] \*= (.*);", r"x[j] = @product@@(x[j], \1);", line)


def _left(stage: Affine) -> list[bool]:
    return [stage.leaves(j) for j in range(stage.n_features)]


def _scaling(k: int, stage: Affine) -> list[str]:
    parts = list(affine_arrays(stage))
    limits = [part for part in parts if part in ("low", "high")]
    first = [part for part in parts if part not in ("add", *limits)]
    steps = [
        *(_alone(line) for line in operations(k, first, "x[j]")),
        "before += @size@@(x[j]);",
        *operations(k, [part for part in parts if part == "add"], "x[j]"),
        "after += @size@@(x[j]);",
        *operations(k, limits, "x[j]"),
    ]
    ones = np.ones(stage.n_features)
    divide = ones if stage.divide is None else np.abs(stage.divide)
    with np.errstate(over="ignore"):
        gain = float(((ones if stage.multiply is None else np.abs(stage.multiply)) / divide).max(initial=0.0))
        lost = UNDERFLOW * (1.0 + float((1.0 / divide).max(initial=0.0)))
    relative = 0.0 if stage.relative_error is None else float(stage.relative_error.max(initial=0.0))
    return [
        "before = after = 0.0;",
        f"for (j = 0; j < {stage.n_features}; ++j) {{",
        *(f"    {step}" for step in steps),
        "}",
        carried(gain * (1.0 + relative), 4.0 * UNIT64 + relative, UNIT64, lost),
    ]


ON_DEVICE: Final = OnDevice(_scaled, affine_arrays, _scaling, lambda _: (NEXT_ERROR,), in_place=True, keeps=_left)

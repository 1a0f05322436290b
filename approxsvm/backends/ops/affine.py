"""Export of scalers (cpp/include/approxsvm/program/affine.h)."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.backends.c99.device_ops import Before, OnDevice
from approxsvm.backends.onnx.graph_builder import UP, GraphBuilder
from approxsvm.backends.onnx.rows_graph import ROUNDING, TINY, Mapped
from approxsvm.ir.constants import UNIT64
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.ops import Affine


def nodes(g: GraphBuilder, op: Affine, x: str, error: str | None, is_source: bool) -> Mapped:
    """Apply the operations one by one; clipping never increases an error."""
    gain = np.ones(op.n_features)
    n_operations = 0
    for name, operation in (("subtract", "Sub"), ("multiply", "Mul"), ("divide", "Div")):
        numbers = getattr(op, name)
        if numbers is not None:
            x = g.op(operation, x, numbers)
            if name == "multiply":
                gain = gain * np.abs(numbers)
            elif name == "divide":
                gain = gain / np.abs(numbers)
            n_operations += 1
    error = _affine_error(g, op, x, error, gain, n_operations)
    if op.add is not None:
        x = g.op("Add", x, op.add)
        error = g.op("Add", error, g.op("Mul", g.op("Abs", x), ROUNDING))
    for limits, operation in ((op.low, "Max"), (op.high, "Min")):
        x = x if limits is None else g.op(operation, x, limits)
    return x, error


def _affine_error(g: GraphBuilder, op: Affine, x: str, error: str | None, gain: FloatArray, n_operations: int) -> str:
    """Return the error after scaling, before the addition."""
    with np.errstate(over="ignore", divide="ignore"):
        tiny = TINY * (1.0 + (0.0 if op.divide is None else 1.0 / np.abs(op.divide)))
    own: Any = g.op("Add", g.op("Mul", g.op("Abs", x), n_operations * ROUNDING), np.broadcast_to(tiny, gain.shape))
    error = own if error is None else g.op("Add", g.op("Mul", error, gain * UP + TINY), own)
    if op.relative_error is None:
        return error
    of_parameters = g.op("Mul", g.op("Add", g.op("Abs", x), error), op.relative_error)
    return g.op("Mul", g.op("Add", error, of_parameters), UP)


def affine_arrays(op: Affine) -> dict[str, npt.NDArray[Any]]:
    """Return the numbers of an op in the order of its operations, without limits that are all infinite."""
    found = {}
    largest = np.finfo(np.float64).max
    for name in ("subtract", "multiply", "divide", "add", "low", "high"):
        numbers = getattr(op, name)
        if numbers is not None and not (name in ("low", "high") and np.isinf(numbers).all()):
            found[name] = numbers.clip(-largest, largest)
    return found


def operations(k: int, parts: Sequence[str], x: str) -> list[str]:
    """Return statements that update x, the value of feature j in op k."""
    lines = []
    for part in parts:
        number = f"@{part}_{k}@@[j]"
        compare = {"low": "<", "high": ">"}.get(part)
        operator = {"subtract": "-=", "divide": "/=", "add": "+="}.get(part)
        change = f"{operator} {number};" if operator else f"= approxsvm_product({x}, {number});"
        change = f"= {x} {compare} {number} ? {number} : {x};" if compare else change
        lines.append(f"{x} {change}")
    return lines


def _scaled(op: Affine, most: FloatArray) -> list[FloatArray]:
    found = [most]
    for name, combine in (("subtract", np.add), ("multiply", np.multiply), ("divide", np.divide), ("add", np.add)):
        values = getattr(op, name)
        if values is not None:
            found.append(combine(found[-1], np.abs(values)))
    return found


def _scaling(k: int, op: Affine, before: Before) -> list[str]:
    parts = list(affine_arrays(op))
    lines = operations(k, [part for part in parts if part in ("subtract", "multiply", "divide")], "b.value")
    if lines:
        path = len(lines) * UNIT64 * (1.0 + 2.0**-30)
        lost = 0.0 if op.divide is None else float((1.0 / np.abs(op.divide)).max(initial=0.0))
        own = f"{path!r}, b.value, {2.0**-1000 * (1.0 + lost)!r}"
        multiply, divide = (f"@{part}_{k}@@[j]" if part in parts else "1.0" for part in ("multiply", "divide"))
        gain = "1.0" if (multiply, divide) == ("1.0", "1.0") else f"approxsvm_affine_gain({multiply}, {divide})"
        if before.is_exact:
            lines.append(f"b.radius = approxsvm_own_radius({own});")
        else:
            lines.append(f"b.radius = approxsvm_scaled_radius(b.radius, {gain}, {own});")
    if op.relative_error is not None:
        largest = float(op.relative_error.max(initial=0.0)) * (1.0 + 2.0**-30)
        lines.append(f"b.radius = approxsvm_with_relative(b.radius, b.value, {largest!r});")
    if op.add is not None:
        lines += [*operations(k, ["add"], "b.value"), "b.radius = approxsvm_added_radius(b.radius, b.value);"]
    limits = {"low": "approxsvm_at_least", "high": "approxsvm_at_most"}
    return lines + [f"b = {name}(b, @{part}_{k}@@[j]);" for part, name in limits.items() if part in parts]


ON_DEVICE: Final = OnDevice(_scaled, affine_arrays, _scaling)

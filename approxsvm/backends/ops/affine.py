"""Export of affine ops (cpp/include/approxsvm/program/ops/affine.h)."""

from typing import Any, Final

import numpy as np

from approxsvm.backends.c99.device.ops import Before, OnDevice, Step
from approxsvm.backends.onnx.graph_builder import UP, GraphBuilder
from approxsvm.backends.onnx.rows_graph import ROUNDING, TINY, Mapped
from approxsvm.ir.constants import UNIT64
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.ops import Affine


def nodes(g: GraphBuilder, op: Affine, x: str, error: str | None, is_source: bool) -> Mapped:
    """Add nodes for the operations, one at a time; clipping never increases an error."""
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
    """Return the error after scaling, before the op's addition."""
    with np.errstate(over="ignore", divide="ignore"):
        tiny = TINY * (1.0 + (0.0 if op.divide is None else 1.0 / np.abs(op.divide)))
    own: Any = g.op("Add", g.op("Mul", g.op("Abs", x), n_operations * ROUNDING), np.broadcast_to(tiny, gain.shape))
    error = own if error is None else g.op("Add", g.op("Mul", error, gain * UP + TINY), own)
    if op.relative_error is None:
        return error
    of_parameters = g.op("Mul", g.op("Add", g.op("Abs", x), error), op.relative_error)
    return g.op("Mul", g.op("Add", error, of_parameters), UP)


def _scaled(op: Affine, most: FloatArray) -> list[FloatArray]:
    found = [most]
    for name, combine in (("subtract", np.add), ("multiply", np.multiply), ("divide", np.divide), ("add", np.add)):
        values = getattr(op, name)
        if values is not None:
            found.append(combine(found[-1], np.abs(values)))
    return found


# Parameters of an affine op in the order of operations, each with its bit in exported/ops.h and its macro.
_PARTS: Final = {
    "subtract": (1, "subtracts_"),
    "multiply": (2, "multiplies_"),
    "divide": (4, "divides_"),
    "add": (16, "adds_"),
    "low": (32, "is_at_least_"),
    "high": (64, "is_at_most_"),
}
_RELATIVE: Final = 8


def _scaler(op: Affine, before: Before) -> list[Step]:
    largest = np.finfo(np.float64).max
    parts = {name: getattr(op, name) for name in _PARTS}
    parts = {
        name: numbers.clip(-largest, largest)
        for name, numbers in parts.items()
        if numbers is not None and not (name in ("low", "high") and np.isinf(numbers).all())
    }
    detail = sum(_PARTS[name][0] for name in parts)
    n_operations = sum(name in ("subtract", "multiply", "divide") for name in parts)
    lost = 0.0 if op.divide is None else float((1.0 / np.abs(op.divide)).max(initial=0.0))
    own = [n_operations * UNIT64 * (1.0 + 2.0**-30), 2.0**-1000 * (1.0 + lost), 0.0]
    macros = {_PARTS[name][1]: 1 for name in parts} | {"scales_balls_": int(n_operations > 0 and not before.is_exact)}
    if op.relative_error is not None:
        own[2] = float(op.relative_error.max(initial=0.0)) * (1.0 + 2.0**-30)
        detail, macros["is_relative_"] = detail + _RELATIVE, 1
    return [Step("affine", [own, *parts.values()], detail=detail, macros=macros)]


ON_DEVICE: Final = OnDevice(_scaled, _scaler)

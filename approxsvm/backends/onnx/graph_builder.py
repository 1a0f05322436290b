"""ONNX graph builder, which adds nodes with generated names.

Nodes are added in the order of computation: ``g.op("Mul", x, 0.5)`` adds a node and returns the name of the result.
Scalar and array inputs become constants of the graph; equal constants are stored once.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.errors import UnsupportedModelError
from approxsvm.system.packages import import_package

# Operator set version, whose Loop, ScatterND and reductions are used; runtimes have supported it since 2022.
OPSET: Final = 17
IR_VERSION: Final = 8
# Factor by which every bound is multiplied to cover rounding in the bound. It is greater than 1 even in float32.
UP: Final = 1.0 + 2.0**-20
# Size limit on a protobuf message.
MOST_BYTES: Final = (1 << 31) - (1 << 20)


class GraphBuilder:
    """Float64 graph to which nodes are added, with at most `max_bytes` of constants."""

    def __init__(self, max_bytes: int = MOST_BYTES) -> None:
        self._onnx = import_package("onnx", "onnx", "the export")
        self._limit = min(max_bytes, MOST_BYTES)
        self._max_bytes = max_bytes
        self._n_bytes = 0
        self._n_names = 0
        self._nodes: list[Any] = []
        self._initializers: list[Any] = []
        self._names: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        # Names of matrix products, and names of products with a scalar that float32 cannot represent.
        self._products: set[str] = set()
        self._scaled: set[str] = set()

    def check_room(self, n_bytes: int) -> None:
        """Check, before computing constants, that `n_bytes` more of them fit into the graph.

        Raises UnsupportedModelError if the graph would exceed the size limit.
        """
        if self._n_bytes + n_bytes > self._limit:
            raise UnsupportedModelError(
                f"the ONNX graph takes at least {self._n_bytes + n_bytes:,} bytes, but at most {self._limit:,} are "
                f"allowed (max_bytes is {self._max_bytes:,})"
            )

    def constant(self, values: npt.NDArray[Any]) -> str:
        """Add a constant with the array's dtype; equal constants are stored once."""
        array = np.ascontiguousarray(values).reshape(np.shape(values))
        key = (array.dtype.str, array.shape, b"" if array.dtype == object else array.tobytes())
        if array.dtype != object and key in self._names:
            return self._names[key]
        self.check_room(array.nbytes)
        self._n_bytes += array.nbytes
        name = self._new_name("constant")
        self._initializers.append(self._onnx.numpy_helper.from_array(array, name))
        self._names[key] = name
        return name

    def doubles(self, values: npt.NDArray[Any]) -> str:
        """Add float64 values; larger arrays are stored in float32 if it represents all values exactly."""
        wide = np.asarray(values, np.float64)
        with np.errstate(over="ignore"):
            narrow = wide.astype(np.float32)
        if wide.size > 16 and (narrow.astype(np.float64) == wide).all():
            return self.cast(self.constant(narrow), np.float64)
        return self.constant(wide)

    def op(self, kind: str, *inputs: Any, **attributes: Any) -> str:
        """Add a node and return its only result; inputs are names, float64 scalars, or arrays."""
        number = _single_number(inputs) if kind in ("Add", "Sub", "Mul", "Div") else None
        with np.errstate(over="ignore", under="ignore"):
            narrow = None if number is None else float(np.float32(number))
        if number is not None and narrow == (0.0 if kind in ("Add", "Sub") else 1.0) != number:
            return self._with_nearly_neutral(kind, inputs[0], number)
        inexact = kind in ("Mul", "Div") and narrow != number
        if kind == "MatMul":
            inputs = tuple(
                self._barrier(value) if isinstance(value, str) and value in self._scaled else value for value in inputs
            )
        elif inexact and isinstance(inputs[0], str) and inputs[0] in self._products:
            inputs = (self._barrier(inputs[0]), *inputs[1:])
        (result,) = self.op_with_outputs(1, kind, *inputs, **attributes)
        if kind == "MatMul":
            self._products.add(result)
        elif inexact:
            self._scaled.add(result)
        return result

    def _with_nearly_neutral(self, kind: str, value: str, number: float) -> str:
        """Add an operation with a scalar that rounds to 0 or 1 in float32.

        onnxruntime 1.32 drops such operations regardless of their type (NoopElimination), except for Sum. A product or
        quotient becomes two nodes, with additional factors of 2 and 1/2 that cancel exactly.
        """
        if kind in ("Add", "Sub"):
            return self.op("Sum", value, number if kind == "Add" else -number)
        return self.op("Mul", self.op(kind, value, 2.0 * number), 0.5 if kind == "Mul" else 2.0)

    def _barrier(self, value: str) -> str:
        """Return `value`, protected from onnxruntime's MatMulScaleFusion, which narrows factors to float32."""
        return self.op("Max", value, -float(np.finfo(np.float64).max))

    def op_with_outputs(self, n_outputs: int, kind: str, *inputs: Any, **attributes: Any) -> list[str]:
        """Add a node and return all of its results."""
        names = [self._name_of(value) for value in inputs]
        results = [self._new_name(kind.lower()) for _ in range(n_outputs)]
        self._nodes.append(self._onnx.helper.make_node(kind, names, results, **attributes))
        return results

    def cast(self, value: str, dtype: Any) -> str:
        """Convert a value to another dtype."""
        return self.op("Cast", value, to=self.type_of(dtype))

    def rows_sum(self, value: str, axis: int = 1, keepdims: bool = False) -> str:
        """Sum along an axis, which must not be -1: with -1, onnxruntime 1.30 keeps the shape of empty inputs."""
        return self.op("ReduceSum", value, np.array([axis], np.int64), keepdims=int(keepdims))

    def columns(self, value: str, positions: npt.NDArray[Any] | Sequence[int]) -> str:
        """Select columns of a matrix."""
        return self.op("Gather", value, np.asarray(positions, np.int64), axis=1)

    def rename(self, value: str, name: str) -> None:
        """Give a result an output's name."""
        self._nodes.append(self._onnx.helper.make_node("Identity", [value], [name]))

    def type_of(self, dtype: Any) -> int:
        """Return ONNX's integer code for a NumPy dtype."""
        return int(self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def loop(
        self,
        body: Callable[[str, list[str]], tuple[str | None, list[str]]],
        state: Sequence[tuple[str, Any, Sequence[int | None]]],
        n_times: str,
    ) -> list[str]:
        """Run `body` at most `n_times` times on `state`, a list of (name, dtype, shape); return the final state.

        `body` takes the iteration number and the names of the state. It returns the name of the condition for
        continuing (or None), and the names of the new state. Constants are added to the enclosing graph.
        """
        outside, self._nodes = self._nodes, []
        iteration, condition = self._new_name("iteration"), self._new_name("condition")
        names = [self._new_name("state") for _ in state]
        goes_on, results = body(iteration, names)
        outputs = [self.op("Identity", result) for result in (goes_on or condition, *results)]
        kinds = [(np.bool_, ()), *((dtype, shape) for _, dtype, shape in state)]
        nodes, self._nodes = self._nodes, outside
        graph = self._onnx.helper.make_graph(
            nodes,
            self._new_name("body"),
            [
                self.value_info(name, dtype, shape)
                for name, (dtype, shape) in zip((iteration, condition, *names), ((np.int64, ()), *kinds), strict=True)
            ],
            [self.value_info(name, dtype, shape) for name, (dtype, shape) in zip(outputs, kinds, strict=True)],
        )
        start = [name for name, _, _ in state]
        return self.op_with_outputs(len(start), "Loop", n_times, np.array(True), *start, body=graph)

    def value_info(self, name: str, dtype: Any, shape: Sequence[int | None]) -> Any:
        """Describe the type and shape of an input or output."""
        return self._onnx.helper.make_tensor_value_info(name, self.type_of(dtype), shape)

    def model(
        self, name: str, inputs: list[Any], outputs: list[Any], producer: str, notes: dict[str, str], words: str
    ) -> Any:
        """Return the graph as a checked ModelProto with the doc_string `words`."""
        helper = self._onnx.helper
        needed, nodes = {output.name for output in outputs}, []
        for node in reversed(self._nodes):
            if needed.intersection(node.output):
                nodes.append(node)
                needed.update(_inputs_of(node))
        constants = [constant for constant in self._initializers if constant.name in needed]
        graph = helper.make_graph(nodes[::-1], name, inputs, outputs, constants)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="approxsvm",
            producer_version=producer,
            doc_string=words,
        )
        helper.set_model_props(model, notes)
        self._onnx.checker.check_model(model, full_check=True)
        return model

    def _new_name(self, kind: str) -> str:
        self._n_names += 1
        return f"{kind}_{self._n_names}"

    def _name_of(self, value: Any) -> str:
        if isinstance(value, str):
            return value
        return self.constant(value if isinstance(value, np.ndarray) else np.array(float(value)))


def _single_number(inputs: tuple[Any, ...]) -> float | None:
    """Return the second input if it is a float64 scalar, or None."""
    number = inputs[1]
    if isinstance(number, (int, float)):
        return float(number)
    single = isinstance(number, np.ndarray) and number.size == 1 and number.dtype == np.float64
    return float(number.flat[0]) if single else None


def _inputs_of(node: Any) -> set[str]:
    """Return the names of a node's inputs, including outer names to which the graphs in its attributes refer."""
    bodies = (attribute.g for attribute in node.attribute if attribute.HasField("g"))
    return set(node.input).union(*(_inputs_of(inner) for body in bodies for inner in body.node))

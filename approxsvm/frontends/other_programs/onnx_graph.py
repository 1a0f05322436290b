"""ONNX graphs of scalers followed by a support vector machine, as written by skl2onnx.

A graph stores its parameters in float32, so it differs from the model from which it was converted. The reference is the
function that the graph defines, in exact arithmetic; an ONNX runtime computes this function in float32. Labels are
those that onnxruntime predicts, by pairwise votes even if the graph returns probabilities.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.frontends.kernels import kernel_fields
from approxsvm.ir.compensated import FloatArray
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.kernel_model import MAX_FEATURES, KernelModel, Task
from approxsvm.ir.ops import Projection
from approxsvm.ir.outputs import Outputs, PairwiseSigmoid, class_pairs
from approxsvm.system.packages import import_package

_ML: Final = "ai.onnx.ml"
_DEEPEST: Final = 100
# Nodes after the SVM node that change only the label's type or container.
_CONTAINERS: Final = ("Cast", "Identity", "ZipMap")


def read_onnx(path: str | os.PathLike[str]) -> KernelModel:
    """Read a graph with one SVMClassifier or SVMRegressor; raise UnsupportedModelError for other operators.

    Before the SVM node, the graph may contain Scaler, Clip, Concat, column selection, and Add, Sub, Mul, Div and MatMul
    with constants. After it, labels and probabilities must be returned unchanged; operations on scores are assumed to
    compute scikit-learn's scores.
    """
    onnx = import_package("onnx", "onnx", "reading ONNX models")
    name, content = os.fspath(path), Path(path).read_bytes()
    try:
        loaded = onnx.load_model_from_string(content)
    except Exception as error:  # raised by protobuf
        raise ModelFormatError(f"{name}: not a readable ONNX model: {type(error).__name__}: {error}") from error
    try:
        return _read(_Graph(onnx, loaded.graph, len(content)))
    except (ModelFormatError, UnsupportedModelError) as error:
        raise type(error)(f"{name}: {error}") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # In a manipulated file, attributes and constants may have any type and shape.
        raise ModelFormatError(f"{name}: not a readable ONNX model: {type(error).__name__}: {error}") from error


class _Graph:
    """A graph's nodes and constants, keyed by the names of their outputs."""

    def __init__(self, onnx: Any, graph: Any, n_bytes: int) -> None:
        self.onnx, self.n_bytes = onnx, n_bytes
        self.nodes = list(graph.node)
        self.maker = {output: node for node in self.nodes for output in node.output if output}
        self.constants: dict[str, Any] = {one.name: one for one in graph.initializer}
        for node in self.nodes:
            if node.op_type == "Constant":
                self.constants[node.output[0]] = self.attributes(node).get("value")
        self.inputs = {i.name: i for i in graph.input if i.name not in self.constants}
        self.outputs = [output.name for output in graph.output]

    def attributes(self, node: Any) -> dict[str, Any]:
        return {one.name: self.onnx.helper.get_attribute_value(one) for one in node.attribute}

    def constant(self, name: str) -> FloatArray | None:
        """Return a constant's elements as float64, or None if the graph has no constant of this name."""
        tensor = self.constants.get(name)
        if tensor is None:
            return None
        if tensor.data_location == self.onnx.TensorProto.EXTERNAL:
            raise UnsupportedModelError(f"constant {name!r} is in another file, which is not read")
        return np.asarray(self.onnx.numpy_helper.to_array(tensor)).astype(np.float64)

    def columns(self) -> dict[str, range]:
        """Return each graph input's range of raw columns, in input order."""
        by_input, first = {}, 0
        for name, value in self.inputs.items():
            sizes = value.type.tensor_type.shape.dim
            n = int(sizes[1].dim_value) if len(sizes) == 2 else 0
            if not 1 <= n <= MAX_FEATURES:
                raise UnsupportedModelError(
                    f"input {name!r} has {n} columns by its shape, but must have 1 to {MAX_FEATURES}"
                )
            by_input[name] = range(first, first + n)
            first += n
        return by_input


def _read(graph: _Graph) -> KernelModel:
    machines = [node for node in graph.nodes if node.op_type in ("SVMClassifier", "SVMRegressor")]
    if len(machines) != 1:
        kinds = sorted({node.op_type for node in graph.nodes})
        raise UnsupportedModelError(
            f"the graph has {len(machines)} nodes SVMClassifier or SVMRegressor instead of 1: {', '.join(kinds)[:200]}"
        )
    node = machines[0]
    attributes = graph.attributes(node)
    transform = _text(attributes.get("post_transform", b"NONE"))
    if transform != "NONE":
        raise UnsupportedModelError(f"{node.op_type} has post_transform {transform!r}, only 'NONE' is read")
    columns = graph.columns()
    names = tuple(columns) if all(len(some) == 1 for some in columns.values()) and len(columns) > 1 else None
    n_raw = sum(len(some) for some in columns.values())
    if n_raw > MAX_FEATURES:
        raise UnsupportedModelError(f"the inputs have {n_raw} columns, but at most {MAX_FEATURES} are supported")
    map_ = _Maps(graph, columns, n_raw, names).of(node.input[0], 0)
    rows = np.array(attributes.get("support_vectors", ()), np.float64)
    if len(rows) == 0 or len(rows) % map_.n_features:
        raise ModelFormatError(
            f"{node.op_type} has {len(rows)} numbers of support vectors, not a multiple of {map_.n_features} features"
        )
    common = {
        "support_vectors": rows.reshape(-1, map_.n_features),
        "input_map": None if map_.is_identity else map_,
        "feature_names": names,
        **_kernel(node, attributes),
    }
    if node.op_type == "SVMRegressor":
        return _regressor(graph, node, attributes, common)
    return _classifier(graph, node, attributes, common)


def _kernel(node: Any, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the kernel as fields of KernelModel."""
    kind = _text(attributes.get("kernel_type", b"LINEAR"))
    parameters = [float(number) for number in attributes.get("kernel_params", ())]
    if kind in ("RBF", "POLY") and len(parameters) != 3:
        raise ModelFormatError(f"{node.op_type} has {len(parameters)} kernel_params instead of 3")
    numbers = dict(zip(("gamma", "coef0", "degree"), parameters, strict=False))
    return kernel_fields(node.op_type, kind, kind.lower(), numbers.__getitem__)


def _regressor(graph: _Graph, node: Any, attributes: Mapping[str, Any], common: dict[str, Any]) -> KernelModel:
    coef = np.array(attributes.get("coefficients", ()), np.float64)
    n_sv = len(common["support_vectors"])
    if len(coef) != n_sv or attributes.get("n_supports", n_sv) != n_sv:
        raise ModelFormatError(
            f"SVMRegressor has {len(coef)} coefficients and n_supports {attributes.get('n_supports')}, "
            f"but {n_sv} support vectors"
        )
    changes = _changes(graph, node, 0)
    is_one_class = bool(attributes.get("one_class", 0)) or "Sign" in changes
    unknown = changes - {"Sign"}
    if unknown:
        raise UnsupportedModelError(f"after SVMRegressor the graph has {', '.join(sorted(unknown))}")
    task: Task = "one_class" if is_one_class else "regression"
    intercept = np.array(attributes.get("rho", ()), np.float64)
    outputs = Outputs() if is_one_class else Outputs(is_column=True)
    return KernelModel(
        task=task, dual_coef=coef, intercept=intercept, outputs=outputs, source=f"onnx SVMRegressor ({task})", **common
    )


def _classifier(graph: _Graph, node: Any, attributes: Mapping[str, Any], common: dict[str, Any]) -> KernelModel:
    labels = attributes.get("classlabels_ints") or [_text(one) for one in attributes.get("classlabels_strings", ())]
    counts = np.array(attributes.get("vectors_per_class", ()), np.int64)
    n_sv, n_classes = len(common["support_vectors"]), len(labels)
    if n_classes < 2 or len(counts) != n_classes or (counts < 0).any() or int(counts.sum()) != n_sv:
        raise ModelFormatError(
            f"SVMClassifier has {n_classes} class labels, vectors_per_class {counts.tolist()[:20]} and {n_sv} support "
            "vectors"
        )
    coef = np.array(attributes.get("coefficients", ()), np.float64)
    if len(coef) != (n_classes - 1) * n_sv:
        raise ModelFormatError(f"SVMClassifier has {len(coef)} coefficients, expected {(n_classes - 1) * n_sv}")
    relabelled = _changes(graph, node, 0)
    if relabelled:
        raise UnsupportedModelError(f"the graph changes labels by {', '.join(sorted(relabelled))}")
    a, b = (np.array(attributes.get(key, ()), np.float64) for key in ("prob_a", "prob_b"))
    scored = _changes(graph, node, 1)
    if len(a) and scored:
        raise UnsupportedModelError(f"the graph changes probabilities by {', '.join(sorted(scored))[:200]}")
    probability = PairwiseSigmoid(a, b, couple_two_classes=True) if len(a) else None
    if len(a) not in (0, len(class_pairs(n_classes))):
        raise ModelFormatError(f"SVMClassifier has {len(a)} prob_a for {len(class_pairs(n_classes))} pairs of classes")
    return KernelModel(
        task="classification",
        dual_coef=coef.reshape(n_classes - 1, n_sv),
        intercept=np.array(attributes.get("rho", ()), np.float64),
        labels=np.array(labels),
        n_support=counts,
        outputs=Outputs(probability=probability, decision_shape="ovr" if scored else "ovo"),
        source="onnx SVMClassifier",
        **common,
    )


def _changes(graph: _Graph, machine: Any, output: int) -> set[str]:
    """Return the operations applied to an output of the SVM node, except conversions of type or container."""
    names, operations = set(machine.output[output : output + 1]), set()
    for node in graph.nodes:  # ONNX requires nodes in topological order
        if names & set(node.input):
            operations.add(str(node.op_type))
            names |= set(node.output)
    return operations - set(_CONTAINERS)


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


@dataclass(frozen=True)
class _Maps:
    """Input maps of the tensors before the SVM node; each map is built once."""

    graph: _Graph
    columns: Mapping[str, range]
    n_raw: int
    names: tuple[str, ...] | None
    known: dict[str, InputMap] = field(default_factory=dict)

    def of(self, name: str, depth: int) -> InputMap:
        """Return the map from raw rows to the tensor with this name."""
        if name not in self.known:
            self.known[name] = self._made(name, depth)
        return self.known[name]

    def _made(self, name: str, depth: int) -> InputMap:
        if name in self.columns:
            chosen = np.array(self.columns[name])
            return InputMap.selection(self.n_raw, chosen, self.names)
        node = self.graph.maker.get(name)
        if node is None or depth > _DEEPEST:
            raise ModelFormatError(f"there is no input {name!r}, or it is more than {_DEEPEST} nodes away")
        attributes = self.graph.attributes(node)
        if node.op_type in ("Cast", "Identity"):
            if attributes.get("to", 1) not in (1, 11):  # float and double
                raise UnsupportedModelError(f"node Cast makes {name!r} of another type than float or double")
            return self.of(node.input[0], depth + 1)
        if node.op_type == "Concat" and attributes.get("axis") in (1, -1):
            parts = [self.of(one, depth + 1) for one in node.input]
            width = sum(part.n_features for part in parts)
            if width > max(self.n_raw, self.graph.n_bytes):  # a tensor may be concatenated with itself repeatedly
                raise ModelFormatError(f"node Concat makes {width} columns, in a file of {self.graph.n_bytes} bytes")
            return InputMap.concatenate(parts)
        if node.op_type == "Scaler" and node.domain == _ML:
            offset, scale = (np.array(attributes.get(key, ()), np.float64) for key in ("offset", "scale"))
            return self.of(node.input[0], depth + 1).then_affine(subtract=offset, multiply=scale)
        if node.op_type not in _STEPS:
            raise UnsupportedModelError(f"node {node.op_type} before the machine cannot be folded into the model")
        constants = [self.graph.constant(one) for one in node.input]
        moving = [one for one, constant in zip(node.input, constants, strict=True) if constant is None and one]
        if len(moving) != 1 or (node.input[0] not in moving and node.op_type not in ("Add", "Mul")):
            raise UnsupportedModelError(
                f"node {node.op_type} computes {name!r} from something else than one input and constants"
            )
        fixed = [constant for constant in constants if constant is not None]
        return _STEPS[node.op_type](self.of(moving[0], depth + 1), fixed, attributes)


def _row(values: FloatArray) -> FloatArray:
    """Return one value per column, or a single value for all columns."""
    if values.ndim > 2 or (values.ndim == 2 and values.shape[0] != 1):
        raise UnsupportedModelError(f"a constant of shape {values.shape} is not a row")
    return values.reshape(-1)


def _clip(map_: InputMap, fixed: list[FloatArray], attributes: Mapping[str, Any]) -> InputMap:
    if len(fixed) != 2:
        raise UnsupportedModelError(f"node Clip has {len(fixed)} constant limits, only 2 are read")
    return map_.then_affine(low=_row(fixed[0]), high=_row(fixed[1]))


def _select(map_: InputMap, fixed: list[FloatArray], attributes: Mapping[str, Any]) -> InputMap:
    if attributes.get("axis", 1) not in (1, -1):
        raise UnsupportedModelError(f"node Gather along axis {attributes['axis']}, only columns can be chosen")
    chosen = fixed[0].reshape(-1)
    if not ((chosen >= 0) & (chosen < map_.n_features)).all():
        raise ModelFormatError(f"a choice of columns has {chosen.min():g} to {chosen.max():g} of {map_.n_features}")
    return map_.then_select(chosen.astype(np.intp))


_STEPS: Final[dict[str, Callable[[InputMap, list[FloatArray], Mapping[str, Any]], InputMap]]] = {
    "Add": lambda map_, fixed, _: map_.then_affine(add=_row(fixed[0])),
    "ArrayFeatureExtractor": _select,
    "Clip": _clip,
    "Div": lambda map_, fixed, _: map_.then_affine(divide=_row(fixed[0])),
    "Gather": _select,
    "MatMul": lambda map_, fixed, _: map_.then_op(Projection.about(0.0, fixed[0])),
    "Mul": lambda map_, fixed, _: map_.then_affine(multiply=_row(fixed[0])),
    "Sub": lambda map_, fixed, _: map_.then_affine(subtract=_row(fixed[0])),
}

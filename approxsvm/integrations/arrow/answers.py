"""Names and types of the output columns of an artifact, and the core's answers as Arrow columns."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.ir.outputs import class_pairs
from approxsvm.runtime.evaluator import available_outputs, check_output
from approxsvm.system.packages import import_package

pa = import_package("pyarrow", "arrow", "scoring tables")


class AnswerColumns:
    """Columns of one model's answers, with names that begin with `prefix`.

    The default output is "label", or "value" for a regression. Raises InputError if the model does not have an output.
    """

    def __init__(self, artifact: Any, outputs: Sequence[str] | None = None, prefix: str = "") -> None:
        self.outputs = available_outputs(artifact)[:1] if outputs is None else tuple(dict.fromkeys(outputs))
        for output in self.outputs:
            check_output(artifact, output)
        self._labels = _label_array(artifact)
        self._names = {output: [prefix + name for name in _column_names(artifact, output)] for output in self.outputs}
        types = {"label": self._labels.type, "certified": pa.bool_()}
        pairs = [(name, output) for output in self.outputs for name in self._names[output]]
        self.fields = [pa.field(name, types.get(output, pa.float64())) for name, output in pairs]

    def arrays(self, answers: dict[str, npt.NDArray[Any]]) -> list[Any]:
        """Convert answers of `Evaluator.answers` to columns, one for each field."""
        converted: list[Any] = []
        for output in self.outputs:
            answer = answers[output]
            columns = [answer] if answer.ndim == 1 else [np.ascontiguousarray(column) for column in answer.T]
            arrays = map(pa.array, columns)
            converted.extend(map(self._labels.take, arrays) if output == "label" else arrays)
        return converted


def _label_array(artifact: Any) -> Any:
    """Return the labels by position, in the dtype of the source."""
    if artifact.task == "regression":
        return pa.array([], pa.float64())
    if artifact.task == "one_class":
        return pa.array([1, -1], pa.int64())
    labels = artifact.labels
    if labels.dtype.kind in "biuf":
        return pa.array(labels.astype(labels.dtype.newbyteorder("=")))
    return pa.array(labels.tolist(), pa.string())


def _column_names(artifact: Any, output: str) -> list[str]:
    """Return a name for each column; with several columns, the class or pair of classes follows the output's name."""
    if output in ("label", "certified"):
        return [output] if artifact.n_targets == 1 else [f"{output}_{k}" for k in range(artifact.n_targets)]
    classes, labels = np.sort(artifact.labels).tolist(), artifact.labels.tolist()
    if output == "probability" or (output == "error_bound" and artifact.averages):
        return _distinct(output, [(label,) for label in classes])
    if artifact.task == "classification" and len(labels) > 2:
        if output == "value" and artifact.outputs.decision_shape == "ovr":
            return _distinct(output, [(label,) for label in classes])
        # The order of the methods: values for pairs of sorted labels, bounds for pairs in the model's order.
        order = classes if output == "value" else labels
        if artifact.outputs.of_each_class:
            return _distinct(output, [(label,) for label in order])
        return _distinct(output, [(order[i], order[j]) for i, j in class_pairs(len(order))])
    n_targets = artifact.n_decisions
    if artifact.task == "regression" and n_targets > 1:
        return [f"{output}_{k}" for k in range(n_targets)]
    return [output]


def _distinct(output: str, kinds: Sequence[tuple[Any, ...]]) -> list[str]:
    """Return names by label, or by position if labels with underscores would produce a duplicate."""
    names = ["_".join([output, *map(str, kind)]) for kind in kinds]
    return names if len(set(names)) == len(names) else [f"{output}_{k}" for k in range(len(names))]

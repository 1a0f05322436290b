"""Names and types of an artifact's output columns, and the conversion of predictions to Arrow columns."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.runtime.answer_names import answer_names
from approxsvm.runtime.evaluator import available_outputs, check_output
from approxsvm.system.packages import import_package

pa = import_package("pyarrow", "arrow", "scoring tables")


class AnswerColumns:
    """Output columns of one model, whose names begin with `prefix`.

    The default output is "label", or "value" for a regressor. Raises InputError if the model lacks a requested output.
    """

    def __init__(self, artifact: Any, outputs: Sequence[str] | None = None, prefix: str = "") -> None:
        self.outputs = available_outputs(artifact)[:1] if outputs is None else tuple(dict.fromkeys(outputs))
        for output in self.outputs:
            check_output(artifact, output)
        self._labels = _label_array(artifact)
        self._names = {output: [prefix + name for name in answer_names(artifact, output)] for output in self.outputs}
        types = {"label": self._labels.type, "certified": pa.bool_()}
        pairs = [(name, output) for output in self.outputs for name in self._names[output]]
        self.fields = [pa.field(name, types.get(output, pa.float64())) for name, output in pairs]

    def arrays(self, answers: dict[str, npt.NDArray[Any]]) -> list[Any]:
        """Convert the predictions from `Evaluator.answers` to columns, one per field."""
        converted: list[Any] = []
        for output in self.outputs:
            answer = answers[output]
            columns = [answer] if answer.ndim == 1 else [np.ascontiguousarray(column) for column in answer.T]
            arrays = map(pa.array, columns)
            converted.extend(map(self._labels.take, arrays) if output == "label" else arrays)
        return converted


def _label_array(artifact: Any) -> Any:
    """Return an array of all labels in the model's order, with the source's dtype."""
    if artifact.task == "regression":
        return pa.array([], pa.float64())
    if artifact.task == "one_class":
        return pa.array([1, -1], pa.int64())
    labels = artifact.labels
    if labels.dtype.kind in "biuf":
        return pa.array(labels.astype(labels.dtype.newbyteorder("=")))
    return pa.array(labels.tolist(), pa.string())

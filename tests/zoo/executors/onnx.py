"""ONNX graphs in onnxruntime, for float32 and float64 rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import onnxruntime

from approxsvm.backends.onnx.graph import _Export
from approxsvm.errors import UnsupportedModelError
from zoo.executors import Executor
from zoo.executors.in_python import from_outputs
from zoo.specimens import Answers, Specimen, as_float64
from zoo.tables import Table


def session(graph: Any) -> Any:
    """Return a silent single-threaded session."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])


class Graph(Executor):
    """A graph made by `to_onnx`, and the same graph with its decision values and bounds as additional outputs."""

    refuses, refuses_itself, names_row, by_entry = False, False, False, True

    def __init__(self, input_type: Any, share: float) -> None:
        self.share = share
        self.name, self.input_type, self.float32 = f"ONNX, {input_type}", input_type, input_type == "float32"

    def _exported(self, specimen: Specimen) -> Any:
        """Return the two sessions, or the reason why there are none."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # warnings about answers that stay undecided without the exact model
                graph = specimen.fast.to_onnx(input_type=self.input_type)
                return session(graph), session(self._with_bounds(specimen)) if not specimen.artifact.members else None
        except UnsupportedModelError as error:
            return str(error)

    def _with_bounds(self, specimen: Specimen) -> Any:
        export = _Export(specimen.artifact, self.input_type, certain=True, fallback=False, max_bytes=1 << 28)
        (known,) = export.known_values()
        for name, numbers in (("values", known.values), ("bounds", known.bounds)):
            export.output(name, numbers, np.float64, [None, specimen.artifact.n_decisions])
        return export.finished()

    def why_not(self, specimen: Specimen) -> str:
        found = specimen.once(self.name, self._exported)
        return found if isinstance(found, str) else ""

    def seen(self, specimen: Specimen, table: Table) -> Table:
        """Return the rows with values in the graph's type, as float64."""
        return super().seen(specimen, table) if self.float32 else as_float64(table)

    def takes(self, specimen: Specimen, table: Table) -> bool:
        return table.container == "array" and set(table.kinds) <= {"float64", "float32"}

    def answers(self, specimen: Specimen, table: Table) -> Answers:
        rows = table.values.astype(self.input_type)
        graph, with_bounds = specimen.once(self.name, self._exported)
        names = [output.name for output in graph.get_outputs()]
        found = dict(zip(names, graph.run(None, {"X": rows}), strict=True))
        outputs: dict[str, Any] = {}
        if "label" in found:
            outputs["label"] = found["label"].astype(specimen.labels.dtype)
        outputs["certified"] = self._certain(specimen, found, len(rows))
        if "probabilities" in found and specimen.artifact.has_class_probabilities:
            outputs["probability"] = found["probabilities"]
        answers = vars(from_outputs(specimen, outputs))
        if with_bounds is not None:
            values, bounds = with_bounds.run(["values", "bounds"], {"X": rows})
            is_open = np.isnan(values) | ~np.isfinite(bounds)  # such rows are never certified
            answers |= {"values": np.where(is_open, 0.0, values), "bounds": np.where(is_open, np.inf, bounds)}
        return Answers(**answers)

    @staticmethod
    def _certain(specimen: Specimen, found: dict[str, Any], n_rows: int) -> Any:
        """Return the certified rows: those marked by the graph, those with finite values (regressors), or none."""
        if "certain" in found:
            return found["certain"]
        if "variable" in found:
            return np.isfinite(found["variable"].reshape(n_rows, -1)).all(axis=1)
        return np.zeros(found["label"].shape, bool).reshape(n_rows, -1)[:, : specimen.artifact.n_targets]


ONNX: tuple[Executor, ...] = Graph("float32", share=0.1), Graph("float64", share=0.3)

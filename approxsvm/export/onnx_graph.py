"""An artifact as an ONNX model of standard operators: rows in, labels and what is certain of them out.

Names, shapes and types are those that skl2onnx gives the source: input "X"; of classifiers "label" and
"probabilities", which are scores where the source has no probabilities; of a one-class model "label" and "scores"; of
a regression "variable". Inside, everything is float64.

A graph answers by the cheapest stage of its artifact alone, and does not fall back on another: the expansions where
there are any, else the exact model. Where labels of expansions are asked whether they are certain, rows that are not
may have another label than the exact model. Expansions of the pairs of a majority class alone give no values of the
others, so that the exact model, which is in such artifacts, takes their place.
"""

from __future__ import annotations

from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from approxsvm.artifact.layout import Artifact
from approxsvm.errors import UnsupportedModelError
from approxsvm.export.exact_graph import forms, kernel_sums
from approxsvm.export.expansion_graph import expanded
from approxsvm.export.graph_builder import GraphBuilder
from approxsvm.export.known_values import KnownValues
from approxsvm.export.outputs_graph import ClassOutputs, beats_all
from approxsvm.export.rows_graph import map_rows
from approxsvm.model.outputs import class_pairs

InputType = Literal["float32", "float64"]
MAX_BYTES: Final = 1 << 28
_LARGEST: Final = 1e300


def onnx_model(
    artifact: Artifact,
    *,
    input_type: InputType = "float32",
    certain: bool | None = None,
    max_bytes: int = MAX_BYTES,
) -> Any:
    """Export an artifact.

    Parameters
    ----------
    artifact : Artifact
    input_type : {"float32", "float64"}
        Of the rows that the graph takes, and of the scores, probabilities or values that it gives.
    certain : bool, optional
        Whether there is an output "certain", of shape (n_rows,): true where a row's label, or its value within the
        tolerance of a regression, is proven to be the exact model's. A label that is not certain need not be wrong. It
        is never certain where a number of the row is NaN or infinite; scores, probabilities and values are NaN then.
        When left out, the output is there but in mode "approximate" and for a regression's exact model, whose
        tolerance is about what float64 itself rounds.
    max_bytes : int
        Limit on the constants of the graph. Exact models hold all their support vectors.

    Returns
    -------
    onnx.ModelProto
        It has passed ``onnx.checker.check_model(model, full_check=True)``.

    Raises
    ------
    UnsupportedModelError
        The graph would be larger than `max_bytes`, labels are neither whole numbers nor text, or `certain` is asked for
        where nothing says how close values are to be.
    MissingPackageError
        The package onnx is not installed.
    ValueError
        An option has an unknown value.
    """
    if input_type not in get_args(InputType):
        raise ValueError(f"input_type is {input_type!r}, but must be 'float32' or 'float64'")
    with_certain = certain
    if with_certain is None:
        with_certain = artifact.mode == "certified" or (artifact.mode == "exact" and artifact.task != "regression")
    if with_certain and artifact.task == "regression" and not np.isfinite(artifact.header["tolerance"]):
        raise UnsupportedModelError("no tolerance says which values of this regression would be certain: certain=False")
    return _Export(artifact, input_type, with_certain, max_bytes).model()


class _Export:
    def __init__(self, artifact: Artifact, input_type: InputType, with_certain: bool, max_bytes: int) -> None:
        self.artifact, self.with_certain = artifact, with_certain
        self.dtype = np.dtype(input_type)
        self.g = g = GraphBuilder(max_bytes)
        self.x = g.cast("X", np.float64)
        # Neither NaN nor infinity is less than infinity.
        wrong = g.op("Not", g.op("Less", g.op("Abs", self.x), float("inf")))
        self.is_finite = g.op("Equal", g.rows_sum(g.cast(wrong, np.int32), keepdims=True), np.array(0, np.int32))
        self.outputs: list[Any] = []

    def model(self) -> Any:
        from importlib.metadata import version

        artifact = self.artifact
        tasks = {"classification": self._classification, "regression": self._regression, "one_class": self._one_class}
        tasks[artifact.task]()
        notes = {"source": artifact.source, "mode": artifact.mode, "plan": artifact.plan}
        rows = self.g.value_info("X", self.dtype, [None, artifact.n_raw_features])
        return self.g.model("approxsvm", [rows], self.outputs, version("approxsvm"), notes)

    # --- decision values

    def _known(self, artifact: Artifact) -> KnownValues:
        """Values of one model; NaN for rows that are not finite."""
        g, with_bounds = self.g, self.with_certain
        rows = map_rows(g, self.x, artifact.input_map, with_errors=with_bounds)
        if artifact.has_form:
            known = forms(g, artifact, rows, with_bounds=with_bounds)
        elif artifact.mode == "exact" or artifact.header["majority_only"]:
            known = kernel_sums(g, artifact, rows, with_bounds=with_bounds)
        else:
            known = expanded(g, artifact, rows, with_bounds=with_bounds)
        return KnownValues(g.op("Where", self.is_finite, known.values, float("nan")), known.bounds)

    def _settled(self, known: KnownValues) -> str:
        """Rows whose values and bounds are numbers, shape (n_rows,)."""
        g = self.g
        assert known.bounds is not None
        fine = g.op("And", g.op("Less", g.op("Abs", known.values), _LARGEST), g.op("GreaterOrEqual", known.bounds, 0.0))
        wrong = g.rows_sum(g.cast(g.op("Not", fine), np.int64))
        is_finite = g.op("Squeeze", self.is_finite, np.array([1]))
        return g.op("And", g.op("Equal", wrong, np.array(0)), is_finite)

    # --- tasks

    def _classification(self) -> None:
        g, artifact = self.g, self.artifact
        if artifact.members:
            return self._ensemble()
        known = self._known(artifact)
        found = ClassOutputs(g, artifact.outputs, len(artifact.labels), known)
        position = found.predicted()
        scores = found.probabilities if artifact.has_class_probabilities else self._scores(found)
        if artifact.has_class_probabilities:
            scores = g.columns(scores, self._order)
        self._give_labels(position)
        self._give("probabilities", scores)
        if self.with_certain:
            self._give_certain(g.op("And", found.certain(position), self._settled(known)))
        return None

    @property
    def _order(self) -> npt.NDArray[np.intp]:
        """Positions of the sorted labels among the model's own."""
        return np.argsort(self.artifact.labels, kind="stable")

    def _scores(self, found: ClassOutputs) -> str:
        """Decision values as the source gives them; of two classes one column each, the greater that of the label."""
        g, order, values = self.g, self._order, found.known.values
        n_classes = len(order)
        if n_classes == 2:
            negated = g.op("Neg", values)
            return g.op("Concat", *((values, negated) if order[0] == 0 else (negated, values)), axis=1)
        if found.outputs.decision_shape == "ovr":
            return g.columns(found.scores, order)
        position = {pair: k for k, pair in enumerate(class_pairs(n_classes))}
        pairs = [(int(order[i]), int(order[j])) for i, j in class_pairs(n_classes)]
        signs = np.array([[1.0 if i < j else -1.0 for i, j in pairs]])
        return g.op("Mul", g.columns(values, [position[min(pair), max(pair)] for pair in pairs]), signs)

    def _ensemble(self) -> None:
        """The mean of the members' probabilities."""
        g, members = self.g, self.artifact.members
        n_classes = len(self.artifact.labels)
        known = [self._known(member) for member in members]
        found = [
            ClassOutputs(g, member.outputs, n_classes, values) for member, values in zip(members, known, strict=True)
        ]
        mean = self._mean([one.probabilities for one in found])
        position = g.op("ArgMax", mean, axis=1, keepdims=0)
        self._give_labels(position)
        self._give("probabilities", g.columns(mean, self._order))
        if self.with_certain:
            low, high = (
                self._mean(list(ends)) for ends in zip(*(one.probability_interval() for one in found), strict=True)
            )
            certain = beats_all(g, position, low, high, n_classes, n_classes * 1e-9)
            for values in known:
                certain = g.op("And", certain, self._settled(values))
            self._give_certain(certain)

    def _mean(self, parts: list[str]) -> str:
        return self.g.op("Div", self.g.op("Sum", *parts), float(len(parts)))

    def _one_class(self) -> None:
        g = self.g
        known = self._known(self.artifact)
        is_inlier = g.op("Greater", known.values, 0.0)
        label = g.op("Where", is_inlier, np.array(1, np.int64), np.array(-1, np.int64))
        self._output("label", label, np.int64, [None, 1])
        self._give("scores", known.values)
        if self.with_certain:
            assert known.bounds is not None
            clear = g.op("Greater", g.op("Abs", known.values), known.bounds)
            self._give_certain(g.op("And", g.op("Squeeze", clear, np.array([1])), self._settled(known)))

    def _regression(self) -> None:
        g = self.g
        parts = self.artifact.members or (self.artifact,)
        known = [self._known(part) for part in parts]
        values = known[0].values if len(known) == 1 else g.op("Concat", *(one.values for one in known), axis=1)
        self._give("variable", values, len(parts))
        if not self.with_certain:
            return
        # What is given is narrowed to the type of the rows.
        narrowing = 2.0**-23 if self.dtype == np.float32 else 0.0
        certain = []
        for one, part in zip(known, parts, strict=True):
            assert one.bounds is not None
            bound = g.op("Add", one.bounds, g.op("Mul", g.op("Abs", one.values), narrowing))
            close = g.op("LessOrEqual", bound, float(part.header["tolerance"]))
            certain += [g.op("Squeeze", close, np.array([1])), self._settled(one)]
        result = certain[0]
        for other in certain[1:]:
            result = g.op("And", result, other)
        self._give_certain(result)

    # --- outputs

    def _give_labels(self, position: str) -> None:
        """Labels as int64 or text, from their positions."""
        labels = self.artifact.labels
        if labels.dtype.kind in "UO" and all(isinstance(label, str) for label in labels.tolist()):
            constant, dtype = np.array(labels.tolist(), object), np.dtype(object)
        else:
            constant, dtype = labels.astype(np.int64), np.dtype(np.int64)
            if not (constant.astype(labels.dtype) == labels).all():
                raise UnsupportedModelError(
                    f"the labels {labels.tolist()} are neither whole numbers nor text, as those of ONNX classifiers are"
                )
        self._output("label", self.g.op("Gather", constant, position), dtype, [None])

    def _give(self, name: str, values: str, width: int | None = None) -> None:
        """Numbers of the type of the rows."""
        n_classes = len(self.artifact.labels)
        if width is None:
            pairs = n_classes > 2 and not self.artifact.has_class_probabilities
            pairs = pairs and self.artifact.outputs.decision_shape == "ovo"
            width = n_classes * (n_classes - 1) // 2 if pairs else max(n_classes, 1)
        self._output(name, self.g.cast(values, self.dtype), self.dtype, [None, width])

    def _give_certain(self, certain: str) -> None:
        self._output("certain", certain, np.bool_, [None])

    def _output(self, name: str, value: str, dtype: Any, shape: list[int | None]) -> None:
        self.g.rename(value, name)
        self.outputs.append(self.g.value_info(name, dtype, shape))

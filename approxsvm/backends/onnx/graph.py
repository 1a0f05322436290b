"""ONNX models, built from standard operators, that compute labels or values and the output "certain" from rows.

Names, shapes and types follow skl2onnx. The input is "X". The outputs are "label" and "probabilities" for classifiers
(containing scores if the source has no probabilities), "label" and "scores" for one-class models and for Gaussian
processes without variance, and "variable" for regressors. All arithmetic is in float64.

The graph of a certified artifact predicts labels as ``predict`` does: with the expansions if the bounds certify the
label, otherwise with the exact model. The exact model is included unless it is too large or `fallback` is False. If it
is omitted, the label of an uncertain row may differ from the exact model's; the graph's doc_string and a warning state
this limitation. An "approximate" artifact has no exact model. The graph contains only the exact model in two cases: if
the expansions cover only the pairs of a majority class, so that other pairs have no values, and for a regressor without
a tolerance, whose values must be exact.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from approxsvm.artifact.views import Artifact
from approxsvm.backends.float32_rows import check_float32_rows
from approxsvm.backends.onnx.exact_graph import forms, kernel_sums
from approxsvm.backends.onnx.expansion_graph import expanded
from approxsvm.backends.onnx.graph_builder import UP, GraphBuilder
from approxsvm.backends.onnx.known_values import KnownValues
from approxsvm.backends.onnx.outputs_graph import SLACK, ClassOutputs, TargetOutputs, VoteOutputs
from approxsvm.backends.onnx.rows_graph import map_rows
from approxsvm.errors import OpenAnswersWarning, UnsupportedModelError
from approxsvm.ir.ensembles.combination import label_positions
from approxsvm.ir.outputs import SignAlone, class_pairs
from approxsvm.system.error_state import in_own_error_state
from approxsvm.system.options import one_of, whole_number

InputType = Literal["float32", "float64"]
_LARGEST: Final = 1e300
_SUM: Final = 2.0**-40  # bounds the relative rounding errors of weights, and of sums of up to 1,024 members


@in_own_error_state
def onnx_model(
    artifact: Artifact,
    *,
    input_type: InputType = "float32",
    certain: bool | None = None,
    fallback: bool | None = None,
    max_bytes: int = 1 << 28,
    certified_fraction: float | None = None,
) -> Any:
    """Export an artifact as documented in `CompiledModel.to_onnx`; the warning quotes `certified_fraction`.

    If a value that the model uses is NaN or infinite, the row is not certain, and its scores, probabilities and values
    are NaN. By default, a graph that contains only the exact model of a regressor has no output "certain", because its
    tolerance is about as small as float64 rounding errors. With `fallback`, all labels that float64 arithmetic can
    determine equal the exact model's.
    """
    input_type = one_of(input_type, "input_type", get_args(InputType))
    max_bytes = whole_number(max_bytes, "max_bytes", 0)
    has_tolerance, parts = bool(np.isfinite(artifact.header["tolerance"])), _parts(artifact)
    if certain is None:
        is_useful = artifact.task != "regression" or (artifact.mode == "certified" and has_tolerance)
        certain = is_useful and artifact.mode != "approximate"
    if certain and artifact.task == "regression" and not has_tolerance:
        raise UnsupportedModelError(
            "this regression has no tolerance that defines which values are certain: compile it with one, or leave "
            "certain out"
        )
    if input_type == "float64" and certain and any(part.is_constant for part in parts):
        raise UnsupportedModelError(
            "with gamma = 0, the source computes NaN for rows above 1e154, which the graph does not notice: export "
            "with input_type='float32' or certain=False"
        )
    if input_type == "float32":
        check_float32_rows(artifact, "export with input_type='float64'")
    if fallback and any(map(_is_expansion_alone, parts)):
        raise UnsupportedModelError("a fallback needs support vectors, which mode 'approximate' does not store")
    make = partial(_Export, artifact, input_type, certain=certain, max_bytes=max_bytes)
    if not any(map(_has_both, parts)):
        words = (
            _undecided_words(artifact, certain) if any(map(_is_expansion_alone, parts)) else _decided_words(artifact)
        )
        return make(fallback=False, words=words).model()
    why = "fallback=False"
    if fallback is not False:
        try:
            return make(fallback=True, words=_decided_words(artifact)).model()
        except UnsupportedModelError as error:
            if fallback:
                raise
            why = f"with the exact model {error}"
    words = _undecided_words(artifact, certain)
    graph = make(fallback=False, words=words).model()
    share = artifact.plan and f"; plan: {artifact.plan}"
    if certified_fraction is not None:
        share = f"; of the rows predicted so far, expansions proved {certified_fraction:.1%}"
    warnings.warn(f"{words[0].lower()}{words[1:-1]} ({why}{share})", OpenAnswersWarning, stacklevel=4)
    return graph


def _decided_words(artifact: Artifact) -> str:
    """Describe a graph that uses the exact model where expansions do not determine the result."""
    tolerance = artifact.header["tolerance"]
    if artifact.task == "regression":
        close = "up to rounding" if artifact.mode == "exact" or np.isinf(tolerance) else f"within {tolerance:.6g}"
        return f"Values are the exact model's {close}."
    words = "Labels are the exact model's if float64 can decide them; the output certain, if present, says so."
    if not any(map(_has_both, _parts(artifact))):
        return words
    if np.isinf(tolerance):
        return f"{words} Rows that expansions decide have the expansions' scores and probabilities."
    return (
        f"{words} Decision values, the basis of scores and probabilities, are the exact model's within {tolerance:.6g}."
    )


def _undecided_words(artifact: Artifact, with_certain: bool) -> str:
    """Describe a graph that contains only expansions."""
    what = "a value" if artifact.task == "regression" else "a label"
    where = "if the output certain is false, " if with_certain else ""
    return f"The graph answers by expansions alone: {where}{what} may differ from the exact model's."


class _Export:
    """Export of one artifact: nodes for decision values, predictions, and the graph's outputs."""

    def __init__(
        self,
        artifact: Artifact,
        input_type: InputType,
        *,
        certain: bool,
        fallback: bool,
        max_bytes: int,
        words: str = "",
    ) -> None:
        self.artifact, self.with_certain, self.fallback, self.words = artifact, certain, fallback, words
        self.parts = _parts(artifact)
        self.n_classes = len(artifact.labels)
        self.dtype = np.dtype(input_type)
        self.g = g = GraphBuilder(max_bytes)
        self.x = g.cast("X", np.float64)
        raw = artifact.raw_columns
        used = self.x if raw.uses_all else g.columns(self.x, raw.used)
        if len(raw.takes_nan):  # the model accepts NaN in these columns
            used = g.op("Where", g.op("And", g.op("IsNaN", used), np.isin(raw.used, raw.takes_nan)), 0.0, used)
        # The comparison "less than infinity" is false for NaN and infinity.
        wrong = g.op("Not", g.op("Less", g.op("Abs", used), float("inf")))
        self.is_finite = g.op("Equal", g.rows_sum(g.cast(wrong, np.int32), keepdims=True), np.array(0, np.int32))
        self.outputs: list[Any] = []

    def model(self) -> Any:
        known = self.known_values()
        give: dict[str, Callable[[list[KnownValues]], None]] = {
            "classification": self._give_classes,
            "regression": lambda known: self._give("variable", self._combined(known).values, self.artifact.n_decisions),
            "one_class": self._give_inliers,
        }
        give[self.artifact.task](known)
        if self.with_certain:
            self.output("certain", self.certain(known), np.bool_, self._shape_of_labels)
        return self.finished()

    def finished(self) -> Any:
        """Return the graph with all outputs added so far."""
        from importlib.metadata import version

        artifact = self.artifact
        notes = {"source": artifact.source, "mode": artifact.mode, "plan": artifact.plan}
        rows = self.g.value_info("X", self.dtype, [None, artifact.n_raw_features])
        return self.g.model("approxsvm", [rows], self.outputs, version("approxsvm"), notes, self.words)

    def known_values(self) -> list[KnownValues]:
        """Compute each member's values, NaN for rows that are not finite; with a fallback, replace undecided values.

        A row is undecided if the expansions do not determine its label, or if an error bound exceeds a given tolerance.
        """
        known = [self._of_first_stage(part) for part in self.parts]
        known = [KnownValues(self.g.op("Where", self.is_finite, one.values, float("nan")), one.bounds) for one in known]
        if not self.fallback or not any(map(_has_both, self.parts)):
            return known
        g = self.g
        undecided = g.op("Not", self.certain(known))
        if self.artifact.of_targets:
            undecided = g.op("Greater", g.rows_sum(g.cast(undecided, np.int64)), np.array(0))
        for part, one in zip(self.parts, known, strict=True):
            if part.task != "regression" and np.isfinite(part.header["tolerance"]):
                assert one.bounds is not None
                wide = g.op("Greater", one.bounds, float(part.header["tolerance"]))
                undecided = g.op("Or", undecided, g.op("Greater", g.rows_sum(g.cast(wide, np.int64)), np.array(0)))
        undecided = g.op("And", undecided, g.op("Squeeze", self.is_finite, np.array([1])))
        places = g.op("Transpose", g.op("NonZero", undecided), perm=[1, 0])
        raw = g.op("GatherND", self.x, places)
        return [
            self._completed(part, one, places, raw) if _has_both(part) else one
            for part, one in zip(self.parts, known, strict=True)
        ]

    def _of_first_stage(self, part: Artifact) -> KnownValues:
        g, with_bounds = self.g, self.with_certain or self.fallback
        rows = map_rows(g, self.x, part.input_map, with_errors=with_bounds)
        if part.has_form:
            return forms(g, part, rows, with_bounds=with_bounds)
        if _is_exact(part):
            return kernel_sums(g, part, rows, with_bounds=with_bounds)
        return expanded(g, part, rows, with_bounds=with_bounds)

    def _completed(self, part: Artifact, known: KnownValues, places: str, raw: str) -> KnownValues:
        """Replace the values and bounds of undecided rows with the exact model's."""
        g = self.g
        rows = map_rows(g, raw, part.input_map, with_errors=True)
        exact = kernel_sums(g, part, rows, with_bounds=True)
        assert known.bounds is not None
        assert exact.bounds is not None
        return KnownValues(
            g.op("ScatterND", known.values, places, exact.values), g.op("ScatterND", known.bounds, places, exact.bounds)
        )

    def certain(self, known: list[KnownValues]) -> str:
        """Return whether bounds certify each row's label, or its value within the tolerance; shape (n_rows,), bool.

        With several targets, the array has shape (n_rows, n_targets).
        """
        g = self.g
        conditions = [self._are_numbers(one) for one in known]
        if self.artifact.of_targets:
            conditions = [g.op("Unsqueeze", condition, np.array([1])) for condition in conditions]
        if self.artifact.task == "classification":
            outputs = self._class_outputs(known)
            conditions.append(outputs.certain(outputs.predicted()))
        else:
            conditions += [self._decided(part, one) for part, one in zip(self.parts, known, strict=True)]
        result = conditions[0]
        for other in conditions[1:]:
            result = g.op("And", result, other)
        return result

    def _are_numbers(self, known: KnownValues) -> str:
        """Return a mask, shape (n_rows,), of finite rows whose values are below 1e300 in modulus, with no NaN bound."""
        g = self.g
        assert known.bounds is not None
        fine = g.op("And", g.op("Less", g.op("Abs", known.values), _LARGEST), g.op("GreaterOrEqual", known.bounds, 0.0))
        wrong = g.rows_sum(g.cast(g.op("Not", fine), np.int64))
        is_finite = g.op("Squeeze", self.is_finite, np.array([1]))
        return g.op("And", g.op("Equal", wrong, np.array(0)), is_finite)

    def _decided(self, part: Artifact, known: KnownValues) -> str:
        """Return a mask, shape (n_rows,), of certified one-class labels or of values proven within the tolerance."""
        g = self.g
        assert known.bounds is not None
        magnitude = g.op("Abs", g.op("Sub", known.values, part.outputs.threshold or 0.0))
        if part.task == "one_class":
            clear = g.op("Greater", magnitude, known.bounds)
        elif self.dtype == np.float64:
            clear = g.op("LessOrEqual", known.bounds, float(part.header["tolerance"]))
        else:  # narrowing may overflow or underflow in float32; subnormal numbers count as 0
            narrowing = g.op("Sum", g.op("Mul", magnitude, 2.0**-23), 2.0**-126)
            bound = g.op("Add", known.bounds, narrowing)
            within = g.op("LessOrEqual", bound, float(part.header["tolerance"]))
            clear = g.op("And", within, g.op("Less", magnitude, 2.0**127))
        if part.n_decisions > 1:  # a row is certain if all its values are
            return g.op("Equal", g.rows_sum(g.cast(g.op("Not", clear), np.int64)), np.array(0))
        return g.op("Squeeze", clear, np.array([1]))

    def _class_outputs(self, known: list[KnownValues]) -> ClassOutputs | VoteOutputs | TargetOutputs:
        """Return the class outputs of a single model or of an ensemble that combines values, votes or targets."""
        if self.artifact.of_targets:
            outputs = [
                one if part.task == "regression" else ClassOutputs(self.g, part.outputs, len(part.labels), one)
                for part, one in zip(self.parts, known, strict=True)
            ]
            return TargetOutputs(
                self.g, list(zip(outputs, label_positions(self.artifact.labels, self.parts), strict=True))
            )
        if not self.artifact.counts_votes:
            return ClassOutputs(self.g, self.artifact.outputs, self.n_classes, self._combined(known))
        voters = [
            ClassOutputs(self.g, part.outputs, len(part.labels), one)
            for part, one in zip(self.parts, known, strict=True)
        ]
        weights = self.artifact.combination.parts(self.parts)
        return VoteOutputs(self.g, self.n_classes, list(zip(voters, weights, strict=True)))

    def _combined(self, known: list[KnownValues]) -> KnownValues:
        """Return the model's values: the members' values, concatenated, or weighted sums of the members' columns."""
        g, combination = self.g, self.artifact.combination
        if combination.weights is None:
            if len(known) == 1:
                return known[0]
            bounds = [one.bounds for one in known if one.bounds is not None]
            values = g.op("Concat", *(one.values for one in known), axis=1)
            return KnownValues(values, g.op("Concat", *bounds, axis=1) if bounds else None)
        columns = [self._columns(part, one) for part, one in zip(self.parts, known, strict=True)]
        parts, addends = combination.parts(self.parts), combination.addends
        assert addends is not None
        products = [g.op("MatMul", one.values, part.T) for one, part in zip(columns, parts, strict=True)]
        values = g.op("Add", g.op("Sum", *products), addends[np.newaxis])
        if any(one.bounds is None for one in columns):
            return KnownValues(values)
        absolute = [
            g.op("MatMul", g.op("Abs", one.values), np.abs(part.T)) for one, part in zip(columns, parts, strict=True)
        ]
        errors = [g.op("MatMul", one.bounds, np.abs(part.T)) for one, part in zip(columns, parts, strict=True)]
        rounding = g.op("Mul", g.op("Add", g.op("Sum", *absolute), np.abs(addends)[np.newaxis]), _SUM)
        return KnownValues(values, g.op("Add", g.op("Mul", g.op("Sum", *errors), UP), rounding))

    def _columns(self, part: Artifact, known: KnownValues) -> KnownValues:
        """Return a member's columns in a weighted sum: its values, or the probabilities or scores of its labels."""
        if part.task == "regression":
            return known
        g = self.g
        outputs = ClassOutputs(g, part.outputs, len(part.labels), known)
        has_probabilities = part.has_class_probabilities
        numbers = outputs.probabilities if has_probabilities else outputs.scores
        if known.bounds is None:
            return KnownValues(numbers)
        low, high = outputs.probability_interval() if has_probabilities else outputs.score_interval()
        ends = g.op("Max", g.op("Sub", high, numbers), g.op("Sub", numbers, low))
        return KnownValues(numbers, g.op("Add", ends, SLACK))

    def _give_classes(self, known: list[KnownValues]) -> None:
        g, outputs = self.g, self._class_outputs(known)
        position = outputs.predicted()
        probabilities = ""
        if isinstance(outputs, ClassOutputs) and self.artifact.has_class_probabilities:
            probabilities = outputs.probabilities
        if not isinstance(outputs, ClassOutputs) and not probabilities:  # votes and targets yield only labels
            self._give_labels(position)
            return
        if probabilities:
            scores = g.columns(probabilities, self._order)
        else:
            assert isinstance(outputs, ClassOutputs)
            scores = self._scores(outputs)
        pairs = not probabilities and self.n_classes > 2 and self.artifact.outputs.decision_shape == "ovo"
        width = self.n_classes * (self.n_classes - 1) // 2 if pairs else self.n_classes
        self._give_labels(position)
        has_none = isinstance(self.artifact.outputs.probability, SignAlone)  # although the source has them
        self._give("scores" if has_none else "probabilities", scores, width)

    @property
    def _order(self) -> npt.NDArray[np.intp]:
        """Index of each sorted label in the model's label order."""
        return np.argsort(self.artifact.labels, kind="stable")

    def _scores(self, outputs: ClassOutputs) -> str:
        """Return the source's decision values; two classes have two columns, and the predicted class's is larger."""
        g, order, values = self.g, self._order, outputs.known.values
        if self.n_classes == 2:
            negated = g.op("Neg", values)
            return g.op("Concat", *((values, negated) if order[0] == 0 else (negated, values)), axis=1)
        if outputs.outputs.decision_shape != "ovo":
            return g.columns(outputs.scores, order)
        position = {pair: k for k, pair in enumerate(class_pairs(self.n_classes))}
        pairs = [(int(order[i]), int(order[j])) for i, j in class_pairs(self.n_classes)]
        signs = np.array([[1.0 if i < j else -1.0 for i, j in pairs]])
        return g.op("Mul", g.columns(values, [position[min(pair), max(pair)] for pair in pairs]), signs)

    def _give_inliers(self, known: list[KnownValues]) -> None:
        threshold = self.artifact.outputs.threshold
        test, limit = ("Greater", 0.0) if threshold is None else ("GreaterOrEqual", threshold)
        is_inlier = self.g.op(test, known[0].values, limit)
        label = self.g.op("Where", is_inlier, np.array(1, np.int64), np.array(-1, np.int64))
        self.output("label", label, np.int64, [None, 1])
        self._give("scores", known[0].values, 1)

    def _give_labels(self, position: str) -> None:
        """Add the label output (int64 or string), looked up from label indices."""
        labels = self.artifact.labels
        if labels.dtype.kind in "UO" and all(isinstance(label, str) for label in labels.tolist()):
            constant, dtype = np.array(labels.tolist(), object), np.dtype(object)
        else:
            if not all(-(2**63) <= label < 2**63 and int(label) == label for label in labels.tolist()):
                raise UnsupportedModelError(
                    f"the labels {labels.tolist()} are neither whole numbers nor text, as ONNX classifiers require "
                    "(int64 or string)"
                )
            constant, dtype = labels.astype(np.int64), np.dtype(np.int64)
        self.output("label", self.g.op("Gather", constant, position), dtype, self._shape_of_labels)

    @property
    def _shape_of_labels(self) -> list[int | None]:
        return [None, self.artifact.n_targets] if self.artifact.of_targets else [None]

    def _give(self, name: str, values: str, width: int) -> None:
        """Add an output in the rows' dtype: NaN for rows with NaN or infinity, because steps may have dropped it."""
        values = self.g.op("Where", self.is_finite, values, float("nan"))
        self.output(name, self.g.cast(values, self.dtype), self.dtype, [None, width])

    def output(self, name: str, value: str, dtype: Any, shape: list[int | None]) -> None:
        """Add an output to the graph."""
        self.g.rename(value, name)
        self.outputs.append(self.g.value_info(name, dtype, shape))


def _parts(artifact: Artifact) -> tuple[Artifact, ...]:
    """Return the members of an ensemble, or the model itself."""
    return artifact.members or (artifact,)


def _is_exact(part: Artifact) -> bool:
    """Return whether the exact model predicts all rows, also because pairs lack expansions or values must be exact."""
    without_tolerance = part.task == "regression" and bool(np.isinf(part.header["tolerance"]))
    expansions_useless = bool(part.header["majority_only"]) or without_tolerance
    return part.mode == "exact" or (part.mode == "certified" and expansions_useless)


def _has_both(part: Artifact) -> bool:
    """Return whether expansions may leave rows undecided, and the artifact includes the exact model."""
    return part.mode == "certified" and not part.is_polynomial and not _is_exact(part)


def _is_expansion_alone(part: Artifact) -> bool:
    """Return whether a model has only expansions."""
    return part.mode == "approximate" and not part.is_polynomial

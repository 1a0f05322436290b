"""An artifact as an ONNX model of standard operators: rows in, labels and what is certain of them out.

Names, shapes and types are those that skl2onnx gives the source: input "X"; of classifiers "label" and
"probabilities", which are scores where the source has no probabilities; of a one-class model, and of a Gaussian process
without its variance, "label" and "scores"; of a regression "variable". Inside, everything is float64.

A graph of a certified artifact labels as ``predict`` does: by the expansions where their bounds settle the label, else
by the exact model, which is included unless it is too large or `fallback` is False. Without it, rows that are not
certain may have another label than the exact model's; the graph's doc_string and a warning say so. Artifacts of mode
"approximate" have no exact model. Expansions of the pairs of a majority class alone give no values of the others, and
values of a regression without a tolerance are exact ones, so that the exact model, which is in such artifacts, takes
their place.
"""

from __future__ import annotations

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
from approxsvm.backends.onnx.outputs_graph import SLACK, ClassOutputs, EnsembleOutputs, TargetOutputs
from approxsvm.backends.onnx.rows_graph import map_rows
from approxsvm.errors import InputError, OpenAnswersWarning, UnsupportedModelError
from approxsvm.ir.outputs import SignAlone, class_pairs

InputType = Literal["float32", "float64"]
_LARGEST: Final = 1e300
_SUM: Final = 2.0**-40  # of moduli, for what weights and a sum of up to 1,024 members round


def onnx_model(
    artifact: Artifact,
    *,
    input_type: InputType = "float32",
    certain: bool | None = None,
    fallback: bool | None = None,
    max_bytes: int = 1 << 28,
    certified_fraction: float | None = None,
) -> Any:
    """Export an artifact, as `CompiledModel.to_onnx` says; `certified_fraction` of the rows so far is for the warning.

    Where a number of the row that is used is NaN or infinite, nothing is certain, and scores, probabilities and values
    are NaN. By default the exact model of a regression has no output "certain", as its tolerance is about what float64
    itself rounds. With `fallback`, all labels that float64 can tell are the exact model's.
    """
    if input_type not in get_args(InputType):
        raise InputError(f"input_type is {input_type!r}, but must be 'float32' or 'float64'")
    has_tolerance, parts = bool(np.isfinite(artifact.header["tolerance"])), _parts(artifact)
    if certain is None:
        is_told = artifact.task != "regression" or (artifact.mode == "certified" and has_tolerance)
        certain = is_told and artifact.mode != "approximate"
    if certain and artifact.task == "regression" and not has_tolerance:
        raise UnsupportedModelError(
            "no tolerance says which values of this regression would be certain: compile it with one, or leave "
            "certain out"
        )
    if input_type == "float32":
        check_float32_rows(artifact, "export with input_type='float64'")
    if fallback and any(map(_is_expansion_alone, parts)):
        raise UnsupportedModelError("there are no support vectors to fall back on in mode 'approximate'")
    make = partial(_Export, artifact, input_type, certain=certain, max_bytes=max_bytes)
    if not any(map(_has_both, parts)):
        words = _open_words(artifact, certain) if any(map(_is_expansion_alone, parts)) else _settled_words(artifact)
        return make(fallback=False, words=words).model()
    why = "fallback=False"
    if fallback is not False:
        try:
            return make(fallback=True, words=_settled_words(artifact)).model()
        except UnsupportedModelError as error:
            if fallback:
                raise
            why = f"with the exact model {error}"
    words = _open_words(artifact, certain)
    graph = make(fallback=False, words=words).model()
    share = artifact.plan and f"; plan: {artifact.plan}"
    if certified_fraction is not None:
        share = f"; of the rows predicted so far, expansions proved {certified_fraction:.1%}"
    warnings.warn(f"{words[0].lower()}{words[1:-1]} ({why}{share})", OpenAnswersWarning, stacklevel=3)
    return graph


def _settled_words(artifact: Artifact) -> str:
    """What a graph that can tell everything says of itself."""
    tolerance = artifact.header["tolerance"]
    if artifact.task == "regression":
        close = "up to rounding" if artifact.mode == "exact" or np.isinf(tolerance) else f"within {tolerance:.6g}"
        return f"Values are the exact model's {close}."
    words = "Labels are the exact model's wherever float64 can tell them; certain, where it is an output, says where."
    if not any(map(_has_both, _parts(artifact))):
        return words
    if np.isinf(tolerance):
        return f"{words} Scores and probabilities of rows that expansions settle are theirs."
    return f"{words} Decision values, behind scores and probabilities, are the exact model's within {tolerance:.6g}."


def _open_words(artifact: Artifact, with_certain: bool) -> str:
    """What a graph of expansions alone says of itself."""
    what = "a value" if artifact.task == "regression" else "a label"
    where = "where the output certain is false, " if with_certain else ""
    return f"The graph answers by expansions alone: {where}{what} may differ from the exact model's."


class _Export:
    """One artifact on its way to a graph: values, what follows from them, outputs."""

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
        if len(raw.takes_nan):  # NaN is a value there
            used = g.op("Where", g.op("And", g.op("IsNaN", used), np.isin(raw.used, raw.takes_nan)), 0.0, used)
        # Neither NaN nor infinity is less than infinity.
        wrong = g.op("Not", g.op("Less", g.op("Abs", used), float("inf")))
        self.is_finite = g.op("Equal", g.rows_sum(g.cast(wrong, np.int32), keepdims=True), np.array(0, np.int32))
        self.outputs: list[Any] = []

    def model(self) -> Any:
        known = self.known_values()
        give: dict[str, Callable[[list[KnownValues]], None]] = {
            "classification": self._give_classes,
            "regression": self._give_values,
            "one_class": self._give_inliers,
        }
        give[self.artifact.task](known)
        if self.with_certain:
            self.output("certain", self.certain(known), np.bool_, self._shape_of_labels)
        return self.finished()

    def finished(self) -> Any:
        """The graph of all outputs so far."""
        from importlib.metadata import version

        artifact = self.artifact
        notes = {"source": artifact.source, "mode": artifact.mode, "plan": artifact.plan}
        rows = self.g.value_info("X", self.dtype, [None, artifact.n_raw_features])
        return self.g.model("approxsvm", [rows], self.outputs, version("approxsvm"), notes, self.words)

    # --- decision values

    def known_values(self) -> list[KnownValues]:
        """Values of each part, NaN for rows that are not finite; with a fallback, exact ones of open rows.

        Open are those whose label the expansions do not settle, or a value within the tolerance, where there is one.
        """
        known = [self._of_first_stage(part) for part in self.parts]
        known = [KnownValues(self.g.op("Where", self.is_finite, one.values, float("nan")), one.bounds) for one in known]
        if not self.fallback or not any(map(_has_both, self.parts)):
            return known
        g = self.g
        is_open = g.op("Not", self.certain(known))
        if self.artifact.of_targets:
            is_open = g.op("Greater", g.rows_sum(g.cast(is_open, np.int64)), np.array(0))
        for part, one in zip(self.parts, known, strict=True):
            if part.task != "regression" and np.isfinite(part.header["tolerance"]):
                assert one.bounds is not None
                wide = g.op("Greater", one.bounds, float(part.header["tolerance"]))
                is_open = g.op("Or", is_open, g.op("Greater", g.rows_sum(g.cast(wide, np.int64)), np.array(0)))
        is_open = g.op("And", is_open, g.op("Squeeze", self.is_finite, np.array([1])))
        places = g.op("Transpose", g.op("NonZero", is_open), perm=[1, 0])
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
        """The exact model's values and bounds at the places of open rows."""
        g = self.g
        rows = map_rows(g, raw, part.input_map, with_errors=True)
        exact = kernel_sums(g, part, rows, with_bounds=True)
        assert known.bounds is not None
        assert exact.bounds is not None
        return KnownValues(
            g.op("ScatterND", known.values, places, exact.values), g.op("ScatterND", known.bounds, places, exact.bounds)
        )

    # --- what is certain

    def certain(self, known: list[KnownValues]) -> str:
        """Whether the bounds settle the label of each row, or its value within the tolerance, shape (n_rows,).

        Of several targets each label, shape (n_rows, n_targets).
        """
        g = self.g
        conditions = [self._are_numbers(one) for one in known]
        if self.artifact.of_targets:
            conditions = [g.op("Unsqueeze", condition, np.array([1])) for condition in conditions]
        if self.artifact.task == "classification":
            found = self._class_outputs(known)
            conditions.append(found.certain(found.predicted()))
        else:
            conditions += [self._settled(part, one) for part, one in zip(self.parts, known, strict=True)]
        result = conditions[0]
        for other in conditions[1:]:
            result = g.op("And", result, other)
        return result

    def _are_numbers(self, known: KnownValues) -> str:
        """Rows that are finite, and whose values and bounds are numbers, shape (n_rows,)."""
        g = self.g
        assert known.bounds is not None
        fine = g.op("And", g.op("Less", g.op("Abs", known.values), _LARGEST), g.op("GreaterOrEqual", known.bounds, 0.0))
        wrong = g.rows_sum(g.cast(g.op("Not", fine), np.int64))
        is_finite = g.op("Squeeze", self.is_finite, np.array([1]))
        return g.op("And", g.op("Equal", wrong, np.array(0)), is_finite)

    def _settled(self, part: Artifact, known: KnownValues) -> str:
        """The side of 0 of a one-class model, or a value that is close enough, shape (n_rows,)."""
        g = self.g
        assert known.bounds is not None
        modulus = g.op("Abs", g.op("Sub", known.values, part.outputs.threshold or 0.0))
        if part.task == "one_class":
            clear = g.op("Greater", modulus, known.bounds)
        elif self.dtype == np.float64:
            clear = g.op("LessOrEqual", known.bounds, float(part.header["tolerance"]))
        else:  # what is given is narrowed, and may go beyond float32 at either end, denormal numbers taken for 0
            narrowing = g.op("Sum", g.op("Mul", modulus, 2.0**-23), 2.0**-126)
            bound = g.op("Add", known.bounds, narrowing)
            within = g.op("LessOrEqual", bound, float(part.header["tolerance"]))
            clear = g.op("And", within, g.op("Less", modulus, 2.0**127))
        if part.n_decisions > 1:  # every target
            return g.op("Equal", g.rows_sum(g.cast(g.op("Not", clear), np.int64)), np.array(0))
        return g.op("Squeeze", clear, np.array([1]))

    # --- tasks

    def _class_outputs(self, known: list[KnownValues]) -> ClassOutputs | EnsembleOutputs | TargetOutputs:
        """Of one model, of functions of each class, or of members that are averaged, vote or are side by side."""
        if self.artifact.of_targets:
            outputs = [
                one if part.task == "regression" else ClassOutputs(self.g, part.outputs, len(part.labels), one)
                for part, one in zip(self.parts, known, strict=True)
            ]
            return TargetOutputs(self.g, list(zip(outputs, self._positions(), strict=True)))
        if self.artifact.n_decisions > 0:
            return ClassOutputs(self.g, self.artifact.outputs, self.n_classes, self._combined(known))
        members = [
            (ClassOutputs(self.g, part.outputs, len(part.labels), one), positions)
            for part, one, positions in zip(self.parts, known, self._positions(), strict=True)
        ]
        return EnsembleOutputs(self.g, self.artifact.outputs, self.n_classes, members)

    def _positions(self) -> list[npt.NDArray[np.int64]]:
        """Where each member's labels are among all."""
        labels = self.artifact.labels.tolist()
        return [np.array([labels.index(own) for own in part.labels.tolist()], np.int64) for part in self.parts]

    def _combined(self, known: list[KnownValues]) -> KnownValues:
        """Values of the model: of members side by side, or their weighted sum."""
        g, weights = self.g, self.artifact.outputs.weights
        if len(known) == 1 and weights is None:
            return known[0]
        if self.artifact.members and weights is not None:
            known = [self._added(part, one) for part, one in zip(self.parts, known, strict=True)]
        bounds = [one.bounds for one in known if one.bounds is not None]
        columns = g.op("Concat", *(one.values for one in known), axis=1)
        errors = g.op("Concat", *bounds, axis=1) if bounds else None
        if weights is None:
            return KnownValues(columns, errors)
        weights, addends = self.artifact.outputs.sums
        values = g.op("Add", g.op("MatMul", columns, weights.T), addends[np.newaxis])
        if errors is None:
            return KnownValues(values)
        sizes = np.abs(weights.T)
        moduli = g.op("Add", g.op("MatMul", g.op("Abs", columns), sizes), np.abs(addends)[np.newaxis])
        errors = g.op("MatMul", errors, sizes)
        return KnownValues(values, g.op("Add", g.op("Mul", errors, UP), g.op("Mul", moduli, _SUM)))

    def _added(self, part: Artifact, known: KnownValues) -> KnownValues:
        """What of a member a sum has: its values, the probability of the first label or all, or scores."""
        if part.task == "regression":
            return known
        g, labels = self.g, part.labels.tolist()
        outputs = ClassOutputs(g, part.outputs, len(labels), known)
        at = list(range(len(labels))) if self.artifact.outputs.of_sums else [labels.index(self.artifact.labels[0])]
        has_shares = part.has_class_probabilities
        share = g.columns(outputs.probabilities if has_shares else outputs.scores, at)
        if known.bounds is None:
            return KnownValues(share)
        found = outputs.probability_interval() if has_shares else outputs.score_interval()
        low, high = (g.columns(end, at) for end in found)
        ends = g.op("Max", g.op("Sub", high, share), g.op("Sub", share, low))
        return KnownValues(share, g.op("Add", ends, SLACK))

    def _give_classes(self, known: list[KnownValues]) -> None:
        g, found = self.g, self._class_outputs(known)
        position = found.predicted()
        probabilities = ""
        if not isinstance(found, TargetOutputs) and self.artifact.has_class_probabilities:
            probabilities = found.probabilities
        if not isinstance(found, ClassOutputs) and not probabilities:  # votes and targets have nothing else
            self._give_labels(position)
            return
        if probabilities:
            scores = g.columns(probabilities, self._order)
        else:
            assert isinstance(found, ClassOutputs)
            scores = self._scores(found)
        pairs = not probabilities and self.n_classes > 2 and self.artifact.outputs.decision_shape == "ovo"
        width = self.n_classes * (self.n_classes - 1) // 2 if pairs else self.n_classes
        self._give_labels(position)
        has_none = isinstance(self.artifact.outputs.probability, SignAlone)  # unlike its source
        self._give("scores" if has_none else "probabilities", scores, width)

    @property
    def _order(self) -> npt.NDArray[np.intp]:
        """Positions of the sorted labels among the model's own."""
        return np.argsort(self.artifact.labels, kind="stable")

    def _scores(self, found: ClassOutputs) -> str:
        """Decision values as the source gives them; of two classes one column each, the greater that of the label."""
        g, order, values = self.g, self._order, found.known.values
        if self.n_classes == 2:
            negated = g.op("Neg", values)
            return g.op("Concat", *((values, negated) if order[0] == 0 else (negated, values)), axis=1)
        if found.outputs.decision_shape != "ovo":
            return g.columns(found.scores, order)
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

    def _give_values(self, known: list[KnownValues]) -> None:
        self._give("variable", self._combined(known).values, self.artifact.n_decisions)

    # --- outputs

    def _give_labels(self, position: str) -> None:
        """Labels as int64 or text, from their positions."""
        labels = self.artifact.labels
        if labels.dtype.kind in "UO" and all(isinstance(label, str) for label in labels.tolist()):
            constant, dtype = np.array(labels.tolist(), object), np.dtype(object)
        else:
            if not all(-(2**63) <= label < 2**63 and int(label) == label for label in labels.tolist()):
                raise UnsupportedModelError(
                    f"the labels {labels.tolist()} are neither whole numbers nor text, as those of ONNX classifiers "
                    "(int64 or string) are"
                )
            constant, dtype = labels.astype(np.int64), np.dtype(np.int64)
        self.output("label", self.g.op("Gather", constant, position), dtype, self._shape_of_labels)

    @property
    def _shape_of_labels(self) -> list[int | None]:
        return [None, self.artifact.n_targets] if self.artifact.of_targets else [None]

    def _give(self, name: str, values: str, width: int) -> None:
        """Numbers of the type of the rows; NaN, which limits and steps may have lost, of rows that are not finite."""
        values = self.g.op("Where", self.is_finite, values, float("nan"))
        self.output(name, self.g.cast(values, self.dtype), self.dtype, [None, width])

    def output(self, name: str, value: str, dtype: Any, shape: list[int | None]) -> None:
        """One more output."""
        self.g.rename(value, name)
        self.outputs.append(self.g.value_info(name, dtype, shape))


def _parts(artifact: Artifact) -> tuple[Artifact, ...]:
    """The members, or the model itself."""
    return artifact.members or (artifact,)


def _is_exact(part: Artifact) -> bool:
    """Whether the exact model answers every row: expansions are of some pairs alone, or not good for any tolerance."""
    without_tolerance = part.task == "regression" and bool(np.isinf(part.header["tolerance"]))
    of_no_use = bool(part.header["majority_only"]) or without_tolerance
    return part.mode == "exact" or (part.mode == "certified" and of_no_use)


def _has_both(part: Artifact) -> bool:
    """Whether expansions answer, which leave rows open, and there is an exact model."""
    return part.mode == "certified" and not part.is_polynomial and not _is_exact(part)


def _is_expansion_alone(part: Artifact) -> bool:
    """Whether a model has no exact model."""
    return part.mode == "approximate" and not part.is_polynomial

"""Comparison of a fitted estimator's labels, values and probabilities with those from its compiled model.

The two models' answers are compared with each other, not with the model that a reader made from the source. Labels may
differ if float64 cannot decide them, because of the source's own rounding (see analysis/source_answers.py), or if they
are uncertified and their values are within the error bound of 0. Values may differ by the error bound plus float64
rounding, whatever the rows' dtype.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.analysis.source_answers import classes_of, combined, exact_decision_values, steps_that_round
from approxsvm.analysis.source_rounding import NEAR_TIE, source_rounding
from approxsvm.errors import ApproxSVMError
from approxsvm.frontends import read_any
from approxsvm.frontends.sklearn.vectorizers import split
from approxsvm.ir.ensembles.ensemble import Ensemble
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.single_model import SingleModel
from approxsvm.reference.definition import GaussianDefinition, definition_of
from approxsvm.runtime.evaluator import native_outputs

FAULTS = ("differs", "wrong exception")
Answers = Mapping[str, Any]
METHODS = ("predict", "decision_function", "predict_proba", "score_samples")
# Upper bounds on rounding: for well-conditioned sums, relative to the largest value, and for probabilities.
_CLOSE = 1e-11
_CLOSE_PROBABILITY = 1e-8
# Multiple of the slack by which values may differ; reports use the same one for regressors.
_SLACKS = 64.0
# Number of changes to decision values that show the range of coupled probabilities.
_MOVES = 16


@dataclass(frozen=True)
class Finding:
    """The result for one source."""

    # "equal" or "differs"; "other methods": common answers are equal, but one estimator has a method that the other
    # lacks; "refused": one of our errors; "wrong exception": any other.
    verdict: str
    reason: str = ""  # the differences, or the error message


def fresh(rows: Any) -> Any:
    """Return rows that nothing else refers to: a new object with the same strides and flags, or a copy."""
    return rows.make() if hasattr(rows, "make") else copy.deepcopy(rows)


def answers(estimator: Any, rows: Any, methods: Iterable[str] = METHODS) -> Answers:
    """Return an estimator's answers for rows, by method: an array, or the exception."""
    found: dict[str, Any] = {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for method in methods:
            try:
                found[method] = np.asarray(getattr(estimator, method)(fresh(rows)))
            except Exception as error:
                found[method] = error
    return found


def compare_answers(source: Any, fast: Any, rows: Any, theirs: Answers, ours: Answers | None = None) -> Finding:
    """Compare a compiled model with its source on rows that the source answers; `theirs` are its `answers`."""
    ours = answers(fast, rows) if ours is None else ours
    n_rows = len(theirs["predict"])
    rounding = _Rounding(source, fast, rows)
    theirs_classes, our_classes = (_classes(x) for x in (source, fast))
    differences, methods = [], []
    for method in METHODS:
        a, b = ours[method], theirs[method]
        if isinstance(a, Exception) and isinstance(b, Exception):
            continue
        if method == "decision_function" and fast.artifact.members:
            continue  # means of probabilities have no decision values, even if their source has
        if isinstance(a, ApproxSVMError):
            return Finding("refused", f"{method}: {a}")
        if isinstance(a, Exception) and not isinstance(a, AttributeError):
            return Finding("wrong exception", f"{method}: {a}")
        if isinstance(a, Exception) or isinstance(b, Exception):
            has = (
                "no answer but the source's" if isinstance(a, Exception) else f"an answer, but the source's {b!r:.120}"
            )
            methods.append(f"{method}: {has}")
        elif a.shape != b.shape:
            differences.append(f"{method}: shape {a.shape} instead of {b.shape}")
        elif _kind(a) != _kind(b):
            differences.append(f"{method}: {a.dtype} instead of {b.dtype}")
        elif _kind(b) != "f" or (method == "predict" and len(theirs_classes)):
            wrong, certified = _wrong_labels(a, b, rounding)
            differences += [f"{method}: {wrong} of {n_rows} labels differ, {certified} of them certified"] * (wrong > 0)
        else:
            differences += _wrong_values(method, a, b, rounding)
    if theirs_classes != our_classes:
        differences.append(f"classes_: {our_classes} instead of {theirs_classes}")
    if differences or methods:
        verdict = "differs" if differences else "other methods"
        return Finding(verdict, "; ".join(differences + methods))
    return Finding("equal")


def _classes(estimator: Any) -> list[Any]:
    """Return the estimator's labels, or a list of labels per target."""
    return [x.tolist() if hasattr(x, "tolist") else x for x in getattr(estimator, "classes_", [])]


def _kind(values: npt.NDArray[Any]) -> str:
    """Return the dtype kind, with comparable kinds mapped to a single one."""
    return {"O": "U", "T": "U", "u": "i"}.get(values.dtype.kind, values.dtype.kind)


def _wrong_labels(ours: Any, theirs: Any, rounding: _Rounding) -> tuple[int, int]:
    """Count the differing labels that float64 can decide, and the certified ones among them."""
    differ = ours != theirs
    if not differ.any():
        return 0, 0
    wrong = differ & rounding.certain
    return int(wrong.sum()), int((wrong & rounding.certified).sum())


def _wrong_values(method: str, ours: FloatArray, theirs: FloatArray, rounding: _Rounding) -> list[str]:
    ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
    scale = np.abs(np.where(np.isfinite(theirs), theirs, 0.0)).max(axis=0, initial=0.0)
    close = _CLOSE_PROBABILITY if method == "predict_proba" else _CLOSE * scale
    off = np.abs(ours - theirs)
    same = (off <= close) | (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    if same.all():
        return []
    near = rounding.near_probabilities if method == "predict_proba" else rounding.near_values
    try:
        same |= near(ours, theirs) <= close
    except Exception as error:
        rounding.problem = f"{type(error).__name__}: {error}"
    if same.all():
        return []
    spread = float(np.ptp(theirs[np.isfinite(theirs)])) if np.isfinite(theirs).any() else 0.0
    n_wrong = int((~same).reshape(len(same), -1).any(axis=1).sum())
    doubt = f" (no judgement: {rounding.problem})" if rounding.problem else ""
    return [
        f"{method}: {n_wrong} of {len(same)} rows differ, by {np.nanmax(off):.3g} of a range of {spread:.3g}{doubt}"
    ]


@dataclass(frozen=True, eq=False)
class _Part:
    """One model read from the source, with its decision values, their float64 rounding, and ties."""

    model: SingleModel
    values: FloatArray
    slack: FloatArray
    near: FloatArray
    exact: npt.NDArray[np.bool_]  # rows whose terms are all 0, so that nothing rounds

    @classmethod
    def of(cls, steps: Any, model: SingleModel, rows: FloatArray) -> _Part:
        mapped = rows if model.input_map is None else model.input_map.apply(rows)
        definition = definition_of(model)
        noise = source_rounding(definition, model, steps, rows, mapped)
        values = exact_decision_values(model, rows, mapped)
        slack = definition.rounding(mapped, values) + noise
        exact = (mapped == 0.0).all(axis=1) & (getattr(model, "kernel", "") == "linear")
        if isinstance(definition, GaussianDefinition):
            with np.errstate(under="ignore"):
                exact = (
                    definition.sums(mapped, np.abs(definition.model.dual_coef).sum(axis=0)[:, np.newaxis])[:, 0] == 0.0
                )
        near = np.where(exact[:, np.newaxis], 0.0, NEAR_TIE * definition.scale + noise + 0.0 * values)
        return cls(model, values, slack, near, exact)

    @property
    def outputs(self) -> Any:
        return native_outputs(self.model.outputs, self.model.task, len(self.model.labels))

    @property
    def order(self) -> npt.NDArray[np.intp]:
        return np.argsort(self.model.labels, kind="stable")

    def probabilities(self) -> list[FloatArray]:
        """Return probabilities by sorted class: an interval's endpoints or, if none is known, results of small changes.

        No interval is known for multiclass coupling, because the number of sweeps after which it stops may change.
        """
        lo, hi = self.outputs.probability_interval(self.values, _SLACKS * self.slack)
        found = [lo, hi]
        if len(self.model.labels) > 2 and (hi - lo).min() == 1.0:
            rng = np.random.default_rng(0)
            moves = rng.choice([-1.0, 0.0, 1.0], size=(_MOVES, *self.values.shape))
            found = [self.outputs.probabilities(self.values + 2.0 * self.slack * move) for move in moves]
        return [part[:, self.order] for part in found]


class _Rounding:
    """The effect of float64 rounding on a source's answers; computed only if answers differ."""

    def __init__(self, source: Any, fast: Any, rows: Any) -> None:
        self._source, self._fast, self._rows = split(source)[1], fast, rows
        self.problem = ""

    @cached_property
    def _model(self) -> SingleModel | Ensemble:
        return read_any(self._source)

    @cached_property
    def _parts(self) -> list[_Part]:
        """One part per member of an ensemble; an empty list, which excuses no difference, if the computation fails."""
        try:
            rows = self._fast._rows(fresh(self._rows))
            rows = np.array(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)
            members = self._model.members if isinstance(self._model, Ensemble) else (self._model,)
            steps = [steps_that_round(self._source, member, k) for k, member in enumerate(members)]
            return [_Part.of(own, member, rows) for own, member in zip(steps, members, strict=True)]
        except Exception as error:
            self.problem = f"{type(error).__name__}: {error}"
            return []

    @cached_property
    def certain(self) -> npt.NDArray[np.bool_]:
        """Rows whose label float64 can decide."""
        parts = self._parts
        if not parts:
            return np.array(True)
        certain, certified = np.asarray(self._certain(parts)), self.certified
        if self._fast.artifact.mode == "approximate":
            return certain & certified  # uncertified labels are not guaranteed
        artifact = self._fast.artifact
        is_open = artifact.mode == "exact" or artifact.row_dtypes.rounded is not None
        if is_open and not artifact.members:
            bound = np.asarray(self._fast.error_bound(fresh(self._rows))).reshape(len(certain), -1)
            certain &= certified | self._certain([replace(parts[0], near=parts[0].near + bound)])
        return certain

    @cached_property
    def certified(self) -> npt.NDArray[np.bool_]:
        """Rows whose label is reported as certified."""
        return np.asarray(self._fast.certified(fresh(self._rows)))

    def _certain(self, parts: list[_Part]) -> npt.NDArray[np.bool_]:
        """Return a mask of the labels that these values decide."""
        exact = np.all([part.exact for part in parts], axis=0)
        certain = np.asarray(self._beyond_ties(parts))
        return certain | (exact if certain.ndim == 1 else exact[:, np.newaxis])

    def _beyond_ties(self, parts: list[_Part]) -> npt.NDArray[np.bool_]:
        first = parts[0]
        if first.model.task == "one_class":
            return np.asarray(np.abs(first.values[:, 0]) > first.near[:, 0])
        if isinstance(self._model, Ensemble):
            return classes_of(self._model, *([getattr(part, name) for part in parts] for name in ("values", "near")))[1]
        return np.asarray(first.outputs.certified_class(first.values, first.near)[1])

    def near_probabilities(self, ours: FloatArray, theirs: FloatArray) -> FloatArray:
        """Return the amount by which the source's probabilities differ from ours, beyond rounding."""
        if not self._parts:
            return np.full(theirs.shape, np.inf)
        off = np.abs(ours - theirs)
        if not hasattr(self._fast, "probability_bound"):  # fractions of votes, each of which may be undecided
            votes = [np.asarray(member.certified(fresh(self._rows))) for member in self._fast.members]
            return np.where(np.all(votes, axis=0)[:, np.newaxis], off, 0.0)
        off -= self._fast.probability_bound(fresh(self._rows))
        if isinstance(self._model, Ensemble) and self._model.n_decisions > 0:  # members are values, not probabilities
            return np.maximum(off, 0.0)
        parts = [part.probabilities() for part in self._parts]
        if len(parts[0]) == 2:
            lo, hi = (np.mean([part[end] for part in parts], axis=0) for end in (0, 1))
            return np.maximum(off - (hi - lo), 0.0)
        return np.asarray(np.min([np.abs(possible - theirs) for possible in parts[0]], axis=0))

    def near_values(self, ours: FloatArray, theirs: FloatArray) -> FloatArray:
        """Return the amount by which the source's values differ from ours, beyond rounding and our bounds."""
        off = np.abs(ours - theirs)
        if not self._parts:
            return off
        slacks = [_SLACKS * part.slack + _CLOSE * np.abs(part.values) for part in self._parts]
        if isinstance(self._model, Ensemble):
            slack = combined(self._model, [part.values for part in self._parts], slacks)[1]
        else:
            slack = slacks[0]
        allowed = slack + np.asarray(self._fast.error_bound(fresh(self._rows))).reshape(slack.shape)
        first = self._parts[0]
        if len(first.model.labels) > 2 and first.model.outputs.decision_shape == "ovr":
            lo, hi = first.outputs.one_vs_rest_interval(first.values, allowed)
            allowed = (hi - lo)[:, first.order]
        elif allowed.size != off.size:
            allowed = allowed.max(axis=1, keepdims=True)
        else:
            allowed = allowed.reshape(off.shape)
        return np.maximum(off - allowed, 0.0)

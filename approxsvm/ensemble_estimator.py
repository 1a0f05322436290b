"""Classifiers that average the probabilities of several compiled ones: calibrated in folds."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.ensemble_artifact import EnsembleArtifact
from approxsvm.estimators import CompiledClassifier, CompiledSVC, Values, estimator_for_one
from approxsvm.kernel_model import FloatArray
from approxsvm.report import STAGES
from approxsvm.rows import as_row


class CompiledEnsemble(CompiledClassifier):
    """Compiled CalibratedClassifierCV with ensemble=True: the mean of the members' probabilities.

    Like its source it has no decision function; its values, which `error_bound` bounds, are the probabilities.

    Parameters
    ----------
    artifact : EnsembleArtifact
    n_jobs : int, optional
        Threads, as in scikit-learn: 1 when left out, -1 for all processors.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted, with the dtype of the source model.
    """

    artifact: EnsembleArtifact

    @property
    def members(self) -> list[CompiledSVC]:
        """The compiled classifiers."""
        return self._predictor  # type: ignore[no-any-return]

    def _make_predictor(self) -> Any:
        return [estimator_for_one(artifact, n_jobs=self.n_jobs) for artifact in self.artifact.members]

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Class labels: those of the greatest mean probability, shape (n_rows,).

        Rows whose label the members' bounds leave open are evaluated exactly, but in mode "approximate".
        """
        rows, ensemble = self._rows(X), self.artifact.ensemble
        values, bounds = self._values(rows, "settled")
        shares = ensemble.probabilities(values)
        classes = shares.argmax(axis=1)
        if self.artifact.mode != "approximate":
            open_rows = np.flatnonzero(~_certain(classes, *ensemble.probability_interval(values, bounds)))
            if len(open_rows):
                exact, _ = self._values(rows[open_rows], "exact")
                classes[open_rows] = ensemble.probabilities(exact).argmax(axis=1)
        return np.asarray(self.artifact.labels.take(classes))

    def predict_one(self, row: npt.NDArray[Any]) -> Any:
        """Class label of a single row of shape (n_features,) or (1, n_features)."""
        return self.predict(as_row(row))[0]

    def predict_proba(self, X: Any) -> FloatArray:
        """Mean class probabilities, shape (n_rows, n_classes), columns as in ``classes_``.

        They come from the exact decision values unless a tolerance was asked for, whose values then serve.
        """
        values, _ = self._values(self._rows(X))
        return np.asarray(self.artifact.ensemble.probabilities(values)[:, self._order])

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithms of `predict_proba`."""
        return np.asarray(np.log(self.predict_proba(X)))

    def probability_bound(self, X: Any) -> FloatArray:
        """What |probability - that of the exact decision values| never exceeds, shape (n_rows, n_classes)."""
        values, bounds = self._values(self._rows(X))
        given = self.artifact.ensemble.probabilities(values)
        lowest, highest = self.artifact.ensemble.probability_interval(values, bounds)
        return np.asarray(np.maximum(highest - given, given - lowest)[:, self._order])

    def error_bound(self, X: Any) -> FloatArray:
        """As `probability_bound`."""
        return self.probability_bound(X)

    def certified(self, X: Any) -> npt.NDArray[np.bool_]:
        """Whether each label is proven by the members' values and bounds, without another evaluation."""
        values, bounds = self._values(self._rows(X), "settled")
        ensemble = self.artifact.ensemble
        classes = ensemble.probabilities(values).argmax(axis=1)
        return _certain(classes, *ensemble.probability_interval(values, bounds))

    @property
    def rows_per_stage(self) -> dict[str, int]:
        """How many rows each stage has answered, of all members together."""
        return {name: sum(member.rows_per_stage[name] for member in self.members) for name in STAGES}

    def within_gamma_bound(self, X: Any) -> npt.NDArray[np.bool_]:
        """Whether each row passes the paper's validity test for every member."""
        return np.asarray(np.all([member.within_gamma_bound(X) for member in self.members], axis=0))

    @property
    def _exact_count(self) -> int:
        return sum(member._exact_count for member in self.members)

    def _values(self, rows: Any, values: Values = "promised") -> tuple[list[FloatArray], list[FloatArray]]:
        """Decision values and bounds of every member, one column per pair."""
        found = []
        for member in self.members:
            member.n_jobs = self.n_jobs
            mode_has_engine = member.artifact.mode != "approximate"
            which: Values = "promised" if values == "exact" and not mode_has_engine else values
            found.append(member._evaluate_checked(rows, bounds=True, values=which))
        every = [v if v.ndim == 2 else v[:, np.newaxis] for v, _, _ in found]
        bounds = [b if b.ndim == 2 else b[:, np.newaxis] for _, b, _ in found]
        return every, bounds


def _certain(classes: npt.NDArray[np.intp], lowest: FloatArray, highest: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether the least of each row's class exceeds the most of every other."""
    rows = np.arange(len(classes))
    others = highest.copy()
    others[rows, classes] = -np.inf
    return np.asarray(lowest[rows, classes] > others.max(axis=1, initial=-np.inf))

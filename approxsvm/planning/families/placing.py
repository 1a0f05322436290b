"""Placement of centers with sample rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.expansion.router import Router, route
from approxsvm.expansion.validity import row_norms
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.planning.costs.cost import Size
from approxsvm.planning.families.centers import choose_centers
from approxsvm.planning.problem import Problem

# Maximum number of sample rows, and the fraction of them held out to evaluate candidates.
MAX_SAMPLE_ROWS: Final = 40_000
HELD_OUT_SHARE: Final = 0.25
# Maximum number of values in a dense sample, unless the sample has only the minimum number of rows.
_MAX_SAMPLE_NUMBERS: Final = 1 << 25
# Maximum number of rows on which a candidate is tried.
PROBE_ROWS: Final = 4_000
# Minimum number of rows averaged to obtain a center in an "approximate" artifact, so that centers disclose no row.
_ROWS_BEHIND_A_CENTER: Final = 5


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows for placing centers, and held-out rows for evaluating candidates."""

    fit: Any
    held_out: Any
    are_support_vectors: bool

    @property
    def name(self) -> str:
        """Description of the rows for messages."""
        if self.are_support_vectors:
            where = "which lie nearer the boundary than ordinary rows"
            return f"support vectors, {where} (sample rows, X or --data, are better)"
        return "sample rows"


@dataclass(frozen=True, eq=False)
class Points:
    """Centers, the router that finds a center near a row, and statistics of the rows near each center.

    Attributes
    ----------
    centers : ndarray of shape (n_centers, n_features), float32
    router : Router, optional
        Router, or None for a single center.
    typical_s : ndarray of shape (n_centers,)
        2 gamma ||z - center||^2 for a typical row near each center.
    majority_classes : ndarray of shape (n_centers,), optional
        Most frequent class of the rows near each center, if there are several classes.
    varying : ndarray of shape (n_varying,), optional
        Columns in which rows may differ from their center.
    n_requested : int
        Requested number of centers; `centers` has fewer if there were too few distinct rows.
    """

    centers: npt.NDArray[np.float32]
    router: Router | None
    typical_s: FloatArray
    majority_classes: npt.NDArray[np.intp] | None = None
    varying: npt.NDArray[np.intp] | None = None
    n_requested: int = 1

    @property
    def size(self) -> Size:
        """Number of centers and number of features, which determine the size of the expansions."""
        n_centers, n_features = self.centers.shape
        return Size(n_centers, n_features if self.varying is None else len(self.varying))


class Placement:
    """Sample rows of a problem, and methods that use them to place centers."""

    def __init__(self, problem: Problem) -> None:
        self._problem, self._model = problem, problem.model
        self.sample = _draw_sample(problem)

    def points(self, n_centers: int, varying: npt.NDArray[np.intp] | None) -> Points:
        """Place centers; `varying` lists the columns in which rows may differ from their center (None: all columns)."""
        gamma = self._model.gamma
        if n_centers > 1:
            min_rows = _ROWS_BEHIND_A_CENTER if self._problem.mode == "approximate" else 1
            centers, router = choose_centers(
                self.sample.fit, n_centers, self._problem.limits.random_state, min_rows=min_rows, varying=varying
            )
            if len(centers) > 1:
                typical_s, majority_classes = self._typical_s(centers, router), self._majority_classes(centers, router)
                return Points(centers, router, typical_s, majority_classes, varying, n_centers)
        center = self._problem.frame.center[np.newaxis]
        return Points(center, None, np.array([2.0 * gamma * self._spread()]), self._majority_classes(center, None))

    def _spread(self) -> float:
        """Return the mean squared distance between held-out rows and the single center."""
        norms = row_norms(self.sample.held_out, self._problem.frame.center)
        return float(np.mean(norms**2)) if len(norms) else 0.0

    def _majority_classes(self, centers: npt.NDArray[np.float32], router: Router | None) -> npt.NDArray[np.intp] | None:
        """Return the most frequent class of each center's rows, or the center's own class if it has no rows."""
        if not self._model.has_pairs:
            return None
        rows = self.sample.fit
        nearest = np.zeros(rows.shape[0], np.intp) if router is None else route(router, centers, rows)
        counts = np.zeros((len(centers), len(self._model.labels)), np.intp)
        np.add.at(counts, (nearest, self._fit_classes), 1)
        alone = self._problem.winners(centers)
        majority_classes: npt.NDArray[np.intp] = np.where(counts.any(axis=1), counts.argmax(axis=1), alone)
        return majority_classes

    @cached_property
    def _fit_classes(self) -> npt.NDArray[np.intp]:
        return self._problem.winners(self.sample.fit)

    def _typical_s(self, centers: npt.NDArray[np.float32], router: Router) -> FloatArray:
        """Return, for each center, 1.5 times the mean of 2 gamma ||z - center||^2 over the rows z near it."""
        rows = self.sample.fit
        nearest = route(router, centers, rows)
        total, count = np.zeros(len(centers)), np.bincount(nearest, minlength=len(centers))
        for first in range(0, rows.shape[0], 4096):
            part, mine = rows[first : first + 4096], nearest[first : first + 4096]
            dense = part if isinstance(part, np.ndarray) else part.toarray()
            with np.errstate(over="ignore"):
                np.add.at(total, mine, ((dense - centers[mine]) ** 2).sum(axis=1))
        mean = total.sum() / max(rows.shape[0], 1)
        return 3.0 * self._model.gamma * np.where(count > 1, total / np.maximum(count, 1), mean)


def held_out(problem: Problem, rows: Any) -> Any:
    """Return the held-out rows; `rows` contains the rows of the problem before the input map."""
    return _taken(rows, _draw(problem)[1])


def _draw_sample(problem: Problem) -> Sample:
    """Draw sample rows from X, or from the support vectors if there is no X."""
    fit, held_out = (_taken(problem.typical_rows, drawn) for drawn in _draw(problem))
    return Sample(fit, held_out, problem.rows is None)


def _draw(problem: Problem) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Sample the indices of at most 40,000 rows (fewer if they are dense and wide), and hold out a quarter of them."""
    rows, most = problem.typical_rows, MAX_SAMPLE_ROWS
    if isinstance(rows, np.ndarray):
        most = min(most, max(_MAX_SAMPLE_NUMBERS // rows.shape[1], PROBE_ROWS))
    chosen = np.random.default_rng(problem.limits.random_state).permutation(rows.shape[0])[:most]
    n_held_out = int(len(chosen) * HELD_OUT_SHARE)
    return chosen[n_held_out:], chosen[:n_held_out]


def _taken(rows: Any, chosen: npt.NDArray[np.intp]) -> Any:
    """Return the chosen rows in ascending order; sparse rows get 32-bit indices, which scikit-learn requires."""
    part = rows[np.sort(chosen)]
    if not isinstance(part, np.ndarray):
        part.indices, part.indptr = part.indices.astype(np.int32), part.indptr.astype(np.int32)
    return part

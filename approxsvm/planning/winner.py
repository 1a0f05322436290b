"""A small network that presumes the winner of several classes, so that the exact engine begins with that one's pairs.

Scores of the classes are a linear function of the row plus kernel values at a few support vectors, the landmarks; they
are fitted by least squares to who wins sample rows. A wrong presumption costs time and nothing else: whoever is
presumed has to win its pairs by more than their error bounds.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.schema import record
from approxsvm.planning.cost import PairCosts
from approxsvm.planning.problem import Problem

# Rows that a network is fitted to and judged on, and numbers in them, at most.
_MAX_ROWS: Final = 6_000
_MAX_NUMBERS: Final = 1 << 24
_HELD_OUT_SHARE: Final = 0.25
# Features beyond which only landmarks are used: fitting takes their cube.
_MAX_FEATURES: Final = 1_024
_NUMBERS_OF_LANDMARKS: Final = (0, 16, 32, 64, 128, 256, 512)
_RIDGE: Final = 1e-6


def presume(
    problem: Problem,  # of several classes
    presumed_cost: float | None = None,  # of a row whose class is presumed, where subspaces are tried first
) -> dict[str, bytes]:
    """Fit networks with more and more landmarks and take the one with which rows cost least, as section presumption.

    Empty where rows go by all pairs, as those of few values do, or that is cheaper, or nothing could be fitted.
    """
    model, rows, center = problem.model, problem.typical_rows, problem.frame.center
    costs = PairCosts.of(model, rows)
    goes_by_all_pairs = costs.stays_sparse or problem.exact.native.few_values_work > 0.0
    if (goes_by_all_pairs and presumed_cost is None) or model.gamma == 0.0:
        return {}
    random = np.random.default_rng(problem.limits.random_state)
    n_rows = min(_MAX_ROWS, _MAX_NUMBERS // model.n_features)
    rows = rows[np.sort(random.permutation(rows.shape[0])[:n_rows])]
    landmarks = random.permutation(model.n_sv)[: min(_NUMBERS_OF_LANDMARKS[-1], model.n_sv // 4)]
    held_out = np.arange(rows.shape[0]) % round(1 / _HELD_OUT_SHARE) == 0
    if not held_out.any() or held_out.all():
        return {}
    classes = problem.winners(rows)
    hits = np.eye(len(model.labels))[classes]
    frequency = hits.mean(axis=0)
    of_winner = costs.of_winner(frequency) if presumed_cost is None else presumed_cost
    best, least = {}, costs.all_pairs if presumed_cost is None else math.inf
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        network = _Network(_dense(rows) - center, _dense(model.support_vectors[landmarks]) - center, model.gamma)
        gram, products = network.normal_equations(~held_out, hits)
        for n in (n for n in _NUMBERS_OF_LANDMARKS if n <= len(landmarks)):
            if costs.presuming(n) + of_winner >= least:
                break
            weights = network.solved(gram, products, n)
            if not np.isfinite(weights).all():
                continue
            missed = float((network.scores(held_out, weights).argmax(axis=1) != classes[held_out]).mean())
            cost = costs.presuming(n) + (1.0 + missed) * of_winner
            if cost < least:
                best, least = {"presumption": _packed(landmarks[:n], weights)}, cost
    return best


def _packed(landmarks: npt.NDArray[np.intp], weights: npt.NDArray[np.float32]) -> bytes:
    indices = landmarks.astype("<u4").tobytes()
    head = record("presumption").pack(len(landmarks), 0) + indices
    return head + bytes(-len(indices) % 8) + weights.astype("<f4").tobytes()


def _dense(rows: Any) -> FloatArray:
    return np.asarray(rows if isinstance(rows, np.ndarray) else rows.toarray(), dtype=np.float64)


class _Network:
    """What scores are sums of: constants, features of the rows z, kernel values at landmarks x.

    Both are relative to the artifact's center. Features are brought to mean 0 and variance 1 while weights are fitted;
    of very many of them, and of those that hardly vary, the weights are 0.
    """

    def __init__(self, z: FloatArray, x: FloatArray, gamma: float) -> None:
        self._z = z
        self._mean, spread = z.mean(axis=0), z.std(axis=0)
        varies = np.isfinite(spread) & (spread > 1e-7 * np.abs(self._mean)) & (spread > 1e-30)
        if z.shape[1] > _MAX_FEATURES:
            varies[:] = False
        self._varying = np.flatnonzero(varies)
        self._factor = 1.0 / spread[self._varying]
        sq_distance = (z * z).sum(axis=1)[:, np.newaxis] + (x * x).sum(axis=1) - 2.0 * (z @ x.T)
        self._kernel = np.nan_to_num(np.exp(-gamma * np.maximum(sq_distance, 0.0)))
        features = (z[:, self._varying] - self._mean[self._varying]) * self._factor
        self._columns = np.hstack([np.ones((len(z), 1)), np.nan_to_num(features), self._kernel])

    def normal_equations(self, chosen: npt.NDArray[np.bool_], targets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Of all columns; those of fewer landmarks are a corner of them."""
        a = self._columns[chosen]
        gram = a.T @ a
        gram[np.diag_indices_from(gram)] += _RIDGE * len(a)
        return gram, a.T @ targets[chosen]

    def solved(self, gram: FloatArray, products: FloatArray, n_landmarks: int) -> npt.NDArray[np.float32]:
        """Weights as the artifact holds them; not finite where nothing could be fitted."""
        n_features = self._z.shape[1]
        n_linear = 1 + len(self._varying)
        n = n_linear + n_landmarks
        weights = np.full((1 + n_features + n_landmarks, products.shape[1]), np.nan)
        try:
            fitted = np.linalg.solve(gram[:n, :n], products[:n])
        except np.linalg.LinAlgError:
            return weights.astype(np.float32)
        of_features = fitted[1:n_linear] * self._factor[:, np.newaxis]
        weights[0] = fitted[0] - self._mean[self._varying] @ of_features
        weights[1 : 1 + n_features] = 0.0
        weights[1 + self._varying] = of_features
        weights[1 + n_features :] = fitted[n_linear:]
        return weights.astype(np.float32)

    def scores(self, chosen: npt.NDArray[np.bool_], weights: npt.NDArray[np.float32]) -> FloatArray:
        """By the weights of the artifact."""
        n_linear = 1 + self._z.shape[1]
        kernel = self._kernel[chosen, : len(weights) - n_linear]
        found: FloatArray = weights[0] + self._z[chosen] @ weights[1:n_linear] + kernel @ weights[n_linear:]
        return found

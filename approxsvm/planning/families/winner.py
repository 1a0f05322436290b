"""Small network that speculates on the winner of several classes, so the exact engine starts with the winner's pairs.

Class scores are a linear function of the row and of its kernel values at a few support vectors, the landmarks. They are
fitted by least squares to the winners of sample rows. A wrong speculation costs only time, because the speculated
winner must win its pairs by more than their error bounds.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.artifact.arrays import pack
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.planning.costs.calls import ratios
from approxsvm.planning.costs.cost import PairCosts
from approxsvm.planning.costs.profiles import Profile
from approxsvm.planning.problem import Problem

# Maximum number of rows for fitting and evaluating a network, and of elements in them.
_MAX_ROWS: Final = 6_000
_MAX_NUMBERS: Final = 1 << 24
_HELD_OUT_SHARE: Final = 0.25
# Maximum number of features; with more, only landmarks are used, because fitting takes cubic time.
_MAX_FEATURES: Final = 1_024
_NUMBERS_OF_LANDMARKS: Final = (0, 16, 32, 64, 128, 256, 512)
_RIDGE: Final = 1e-6


def speculate(
    problem: Problem,  # problem with several classes
    speculated_cost: FloatArray | None = None,  # cost of a row with a speculated class, if subspaces come first
) -> tuple[int | None, dict[str, bytes]]:
    """Fit networks with increasing numbers of landmarks; return the cheapest number and the section "speculation".

    The result is None and an empty dict if rows use all pairs (sparse rows, or rows on a grid of few values), if
    evaluating all pairs is cheaper, or if no fit succeeds.
    """
    model = problem.model
    profiles = Profile.all()
    costs = [PairCosts(problem.products, model.n_features, profile.blocks) for profile in profiles]
    goes_by_all_pairs = costs[0].stays_sparse or problem.exact.native.few_values_work > 0.0
    if goes_by_all_pairs and speculated_cost is None:
        return None, {}
    fit = _Fit.of(problem)
    if fit is None:
        return None, {}
    frequency, least = fit.hits.mean(axis=0), np.full(len(costs), np.inf)
    if speculated_cost is None:
        winner_cost = np.array([cost.of_winner(frequency) for cost in costs])
        least = np.array([cost.all_pairs for cost in costs])
    else:
        winner_cost = np.broadcast_to(speculated_cost, least.shape)
    best: tuple[int | None, dict[str, bytes]] = (None, {})
    for n in (n for n in _NUMBERS_OF_LANDMARKS if n <= len(fit.landmarks)):
        speculating = costs[0].speculating(n)
        if np.all(speculating + winner_cost >= least):
            break
        weights = fit.weights(n)
        if not np.isfinite(weights).all():
            continue
        cost = speculating + (1.0 + fit.missed(weights)) * winner_cost
        if ratios((least, cost)).argmin() == 1:
            best, least = (n, {"speculation": _packed(fit.landmarks[:n], weights)}), cost
    return best


def build_network(problem: Problem, n_landmarks: int) -> dict[str, bytes]:
    """Fit the network with at most `n_landmarks` landmarks; return an empty dict if no fit succeeds."""
    fit = _Fit.of(problem)
    if fit is None:
        return {}
    n = min(n_landmarks, len(fit.landmarks))
    weights = fit.weights(n)
    return {"speculation": _packed(fit.landmarks[:n], weights)} if np.isfinite(weights).all() else {}


class _Fit:
    """Networks fitted to the winners of sample rows; some of these rows are held out."""

    @classmethod
    def of(cls, problem: Problem) -> _Fit | None:
        """Draw rows and landmarks; return None if there are too few rows, or if the kernel is constant on all rows."""
        n_rows = problem.typical_rows.shape[0]
        return None if problem.model.gamma == 0.0 or min(n_rows, _most_rows(problem)) < 2 else cls(problem)

    def __init__(self, problem: Problem) -> None:
        model, center = problem.model, problem.frame.center
        random = np.random.default_rng(problem.limits.random_state)
        rows = problem.typical_rows
        rows = rows[np.sort(random.permutation(rows.shape[0])[: _most_rows(problem)])]
        self.landmarks = random.permutation(model.n_sv)[: min(_NUMBERS_OF_LANDMARKS[-1], model.n_sv // 4)]
        self._held_out = np.arange(rows.shape[0]) % round(1 / _HELD_OUT_SHARE) == 0
        self._classes = problem.winners(rows)
        self.hits = np.eye(len(model.labels))[self._classes]  # (n_rows, n_classes): 1 for the winner
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            landmarks = _dense(model.support_vectors[self.landmarks]) - center
            self._network = _Network(_dense(rows) - center, landmarks, model.gamma)
            # The equations include all landmarks, because the last bits of the sums depend on the size of the matrix
            self._equations = self._network.normal_equations(~self._held_out, self.hits)

    def weights(self, n_landmarks: int) -> npt.NDArray[np.float32]:
        """Return the weights of the network with the first landmarks; they are not finite if the fit fails."""
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            return self._network.solved(*self._equations, n_landmarks)

    def missed(self, weights: npt.NDArray[np.float32]) -> float:
        """Return the fraction of held-out rows whose winner is speculated wrongly."""
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            speculated = self._network.scores(self._held_out, weights).argmax(axis=1)
        return float((speculated != self._classes[self._held_out]).mean())


def _most_rows(problem: Problem) -> int:
    return min(_MAX_ROWS, _MAX_NUMBERS // problem.model.n_features)


def _packed(landmarks: npt.NDArray[np.intp], weights: npt.NDArray[np.float32]) -> bytes:
    return pack("speculation", n_landmarks=len(landmarks), landmarks=landmarks, weights=weights)


def _dense(rows: Any) -> FloatArray:
    return np.asarray(rows if isinstance(rows, np.ndarray) else rows.toarray(), dtype=np.float64)


class _Network:
    """Terms of the scores: constants, features of the rows z, and kernel values at landmarks x.

    Rows and landmarks are relative to the artifact's center. Features are standardized for the fit. Feature weights are
    0 if there are very many features, and for features that hardly vary.
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
        """Return the equations of all columns; the equations for fewer landmarks are a leading block."""
        a = self._columns[chosen]
        gram = a.T @ a
        gram[np.diag_indices_from(gram)] += _RIDGE * len(a)
        return gram, a.T @ targets[chosen]

    def solved(self, gram: FloatArray, products: FloatArray, n_landmarks: int) -> npt.NDArray[np.float32]:
        """Solve for the weights in the form that the artifact stores; they are not finite if the fit fails."""
        n_features = self._z.shape[1]
        n_linear = 1 + len(self._varying)
        n = n_linear + n_landmarks
        weights = np.full((1 + n_features + n_landmarks, products.shape[1]), np.nan)
        try:
            fitted = np.linalg.solve(gram[:n, :n], products[:n])
        except np.linalg.LinAlgError:
            return weights.astype(np.float32)
        feature_weights = fitted[1:n_linear] * self._factor[:, np.newaxis]
        weights[0] = fitted[0] - self._mean[self._varying] @ feature_weights
        weights[1 : 1 + n_features] = 0.0
        weights[1 + self._varying] = feature_weights
        weights[1 + n_features :] = fitted[n_linear:]
        return weights.astype(np.float32)

    def scores(self, chosen: npt.NDArray[np.bool_], weights: npt.NDArray[np.float32]) -> FloatArray:
        """Compute the scores of the chosen rows with the artifact's weights."""
        n_linear = 1 + self._z.shape[1]
        kernel = self._kernel[chosen, : len(weights) - n_linear]
        scores: FloatArray = weights[0] + self._z[chosen] @ weights[1:n_linear] + kernel @ weights[n_linear:]
        return scores

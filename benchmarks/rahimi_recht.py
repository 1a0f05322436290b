"""Random features compared with the exact machine: error and cost, as in Rahimi and Recht 2007.

Three of the paper's five data sets are free and present: CPU (regression), Adult and Forest Cover. Ridge regression is
trained on random Fourier features of a Gaussian kernel, and on random bins, whose kernel is Laplacian; labels are -1
and 1. The exact machine is scikit-learn's SVC or SVR with the Gaussian kernel. Each method's width and penalty are
chosen on a fifth of the training rows. A regressor's error is its root mean square error divided by the standard
deviation of the target.

Multiply-adds are the cost of predicting a row. A Fourier feature is an inner product over the row's nonzeros and a
cosine, which counts as one. For a grid, every column is divided and rounded, and one weight is looked up. For a support
vector, an inner product and an exponential are computed. Times are relative to the exact SVM's time in the same run.

The paper was not available when this was written: the numbers of features and grids are from memory. Rows are drawn at
random; the paper used all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge
from sklearn.metrics import pairwise_distances
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, SVR

from benchmarks import experiment
from benchmarks.experiment import Experiment, Run, number
from benchmarks.problems import ADULT, Problem, Source, scaled
from benchmarks.timing import timed

_PAIRED_ROWS = 500  # all pairs of these rows give the mean distance, the unit for the widths
_WIDTHS = (0.5, 2.0, 8.0, 32.0)  # values of gamma times the mean distance
_ALPHAS = (0.01, 1.0)
_CS = (1.0, 10.0)


class RandomBins(BaseEstimator, TransformerMixin):  # type: ignore[misc]
    """Indicators of a row's cells in random grids: their inner products estimate exp(-gamma ||x - y||_1).

    Two numbers at distance t share a cell of width w with probability max(0, 1 - t / w). If widths have the density
    gamma^2 w exp(-gamma w), a gamma distribution of shape 2, the average probability is exp(-gamma t). Cells that
    contain no training row have no feature.
    """

    def __init__(self, gamma: float = 1.0, n_grids: int = 30, random_state: int = 0) -> None:
        self.gamma, self.n_grids, self.random_state = gamma, n_grids, random_state

    def fit(self, X: npt.NDArray[np.float64], y: Any = None) -> RandomBins:
        """Draw the grids, and list the cells that contain training rows."""
        rng = np.random.default_rng(self.random_state)
        shape = (self.n_grids, X.shape[1])
        self.widths_ = rng.gamma(2.0, 1.0 / self.gamma, shape)
        self.shifts_ = rng.uniform(0.0, self.widths_)
        self.multipliers_ = rng.integers(1, 2**62, X.shape[1]) * 2 + 1  # for hashing a cell's indices
        self.cells_ = [np.unique(self._cells(X, k)) for k in range(self.n_grids)]
        return self

    def _cells(self, X: npt.NDArray[np.float64], k: int) -> npt.NDArray[np.int64]:
        position = np.floor((X - self.shifts_[k]) / self.widths_[k]).astype(np.int64)
        return np.asarray(position @ self.multipliers_)  # integer overflow wraps around

    def transform(self, X: npt.NDArray[np.float64]) -> csr_matrix:
        """Return sparse rows with at most one entry per grid."""
        starts = np.cumsum([0, *map(len, self.cells_)])
        columns, known = np.empty((2, len(X), self.n_grids), np.int64)
        for k, cells in enumerate(self.cells_):
            of_rows = self._cells(X, k)
            place = np.minimum(np.searchsorted(cells, of_rows), len(cells) - 1)
            columns[:, k], known[:, k] = starts[k] + place, cells[place] == of_rows
        ends = np.cumsum([0, *known.sum(axis=1)])
        values = np.full(ends[-1], self.n_grids**-0.5)
        return csr_matrix((values, columns[known == 1], ends), shape=(len(X), starts[-1]))


@dataclass(frozen=True)
class DataSet:
    """A problem from the paper, and its numbers of Fourier features and grids."""

    name: str
    source: Source
    scaler: str
    n_features: int
    n_grids: int


_DATA_SETS = (
    DataSet("CPU", Source("CPU", "cpu_act", is_regression=True), "minmax", 300, 350),
    DataSet("Adult", ADULT, "none", 500, 30),
    DataSet("Forest Cover, 2", Source("Forest Cover, 2", "covtype.data", positive=2), "minmax", 5000, 50),
)


def _error(problem: Problem, values: npt.NDArray[Any], truth: npt.NDArray[Any]) -> float:
    """Return the fraction of wrong signs or, for a regressor, the RMS error over the target's standard deviation."""
    if problem.is_regression:
        return float(np.sqrt(np.mean((values - truth) ** 2)) / np.std(truth))
    return float(np.mean(np.where(values > 0, 1, -1) != truth))


def _methods(problem: Problem, data: DataSet) -> Iterator[tuple[str, Any, str, str, tuple[float, ...]]]:
    """Yield each method's name, estimator, kernel metric, prefix of gamma, and penalties to choose from."""
    machine = SVR if problem.is_regression else SVC
    yield "exact", make_pipeline(machine(cache_size=500)), "sqeuclidean", machine.__name__.lower(), _CS
    sampler = RBFSampler(n_components=data.n_features, random_state=0)
    yield f"Fourier, {data.n_features}", make_pipeline(sampler, Ridge()), "sqeuclidean", "rbfsampler", _ALPHAS
    bins = make_pipeline(RandomBins(n_grids=data.n_grids), Ridge(solver="sparse_cg"))
    yield f"bins, {data.n_grids} grids", bins, "cityblock", "randombins", _ALPHAS


def _chosen(problem: Problem, estimator: Any, metric: str, step: str, penalties: tuple[float, ...]) -> Any:
    """Return the estimator with the width and penalty that give the least error on a fifth of the training rows."""
    n = len(problem.X) * 4 // 5
    mean = float(pairwise_distances(problem.X[:_PAIRED_ROWS], metric=metric).mean())
    penalty = f"{step}__C" if step.startswith("sv") else "ridge__alpha"
    tried: list[tuple[float, int, Any]] = []
    for width in _WIDTHS:
        for number_ in penalties:
            one = clone(estimator).set_params(**{f"{step}__gamma": width / mean, penalty: number_})
            values = one.fit(problem.X[:n], problem.y[:n]).predict(problem.X[n:])
            tried.append((_error(problem, values, problem.y[n:]), len(tried), one))
    return min(tried)[2]


def _multiply_adds(name: str, fitted: Any, n_non_zeros: float, n_columns: int) -> float:
    if name == "exact":
        return len(fitted[-1].support_) * (n_non_zeros + 2.0)
    if name.startswith("bins"):
        return fitted[0].n_grids * (2.0 * n_columns + 1.0)
    return fitted[0].n_components * (n_non_zeros + 2.0)


def measure(run: Run, data: DataSet) -> experiment.Rows:
    """Measure the exact machine and both kinds of features on one data set."""
    options = run.options
    problem = scaled(run.data, data.source, data.scaler, n_train=options.train_rows, n_test=options.test_rows)
    order = np.random.default_rng(0).permutation(len(problem.X))
    problem.X[:], problem.y[:] = problem.X[order], problem.y[order]
    assert problem.y_test is not None
    if problem.is_regression:
        mean, deviation = problem.y.mean(), problem.y.std()
        problem.y[:], problem.y_test[:] = (problem.y - mean) / deviation, (problem.y_test - mean) / deviation
    of_exact: dict[str, float] = {}
    for name, estimator, metric, step, penalties in _methods(problem, data):
        chosen = _chosen(problem, estimator, metric, step, penalties)
        _, fit_seconds = timed(partial(chosen.fit, problem.X, problem.y))
        predict: Callable[[], Any] = partial(chosen.predict, problem.X_test)
        values, seconds = timed(predict)
        of_exact = of_exact or {"fit": fit_seconds, "predict": seconds}
        n_non_zeros = float(np.mean(np.count_nonzero(problem.X, axis=1)))
        yield (
            "methods",
            {
                "data": data.name,
                "training_rows": len(problem.X),
                "test_rows": len(problem.X_test),
                "columns": problem.X.shape[1],
                "method": name,
                "features": len(chosen[-1].support_) if name == "exact" else chosen[-1].n_features_in_,
                "gamma": next(v for k, v in chosen.get_params().items() if k.endswith("__gamma")),
                "multiply_adds": _multiply_adds(name, chosen, n_non_zeros, problem.X.shape[1]),
                "test_error": _error(problem, values, problem.y_test),
                "is_regression": problem.is_regression,
                "training_of_exact": fit_seconds / of_exact["fit"],
                "predicting_of_exact": seconds / of_exact["predict"],
            },
        )


_OPTIONS = [number("--train-rows", 5_000, least=100), number("--test-rows", 5_000, least=100)]
EXPERIMENT = Experiment("rahimi_recht", __doc__, measure, {data.name: data for data in _DATA_SETS}, _OPTIONS)

if __name__ == "__main__":
    EXPERIMENT.main()

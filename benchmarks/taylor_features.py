"""TaylorFeatures against scikit-learn's PolynomialFeatures and weights: time and memory on a9a, as it is, sparse.

Both make the same features of the same rows, which is checked first. Peaks are of what NumPy and SciPy allocate
(tracemalloc), the features included, which are the same for both.
"""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import click
import numpy as np
from scipy.sparse import csr_matrix, diags
from sklearn.preprocessing import PolynomialFeatures

from approxsvm.features import TaylorFeatures
from benchmarks.experiment import Experiment, Rows, Run, WrongAnswerError, number
from benchmarks.problems import ADULT, split_rows
from benchmarks.timing import medians, seconds

_GAMMA = 1.0 / 80.0  # sigma^2 = 40


def by_polynomial_features(X: Any, degree: int) -> Any:
    """The same by scikit-learn's monomials, their weights and the Gaussian of each row."""
    polynomial = PolynomialFeatures(degree).fit(X)
    powers = polynomial.powers_
    factorials = np.array([math.factorial(k) for k in range(degree + 1)], dtype=float)
    weights = np.sqrt((2 * _GAMMA) ** powers.sum(axis=1) / factorials[powers].prod(axis=1))
    gaussians = np.exp(-_GAMMA * np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return (diags(gaussians) @ polynomial.transform(X) @ diags(weights)).tocsr()


def _peak_megabytes(run: Callable[[], object]) -> float:
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def cases(options: SimpleNamespace) -> dict[str, int]:
    """One for each degree."""
    return {f"degree {degree}": degree for degree in options.degrees}


def measure(run: Run, degree: int) -> Rows:
    """Both ways to the features of one degree."""
    X = csr_matrix(split_rows(run.data, ADULT)[0][: run.options.rows])
    runs: dict[str, Callable[[], Any]] = {
        "ours": partial(TaylorFeatures(_GAMMA, degree).fit_transform, X),
        "theirs": partial(by_polynomial_features, X, degree),
    }
    ours, theirs = (run() for run in runs.values())
    difference = abs(ours - theirs).max()
    if not difference <= 1e-14:
        raise WrongAnswerError(f"features differ by {difference:.3g}")
    row = {"degree": degree, "columns": ours.shape[1], "non_zeros": ours.nnz}
    del ours, theirs
    times = medians({name: partial(seconds, call) for name, call in runs.items()}, run.options.rounds)
    peaks = {name: _peak_megabytes(call) for name, call in runs.items()}
    row |= {"seconds": times["ours"], "peak_megabytes": peaks["ours"]}
    row |= {"polynomial_features_seconds": times["theirs"], "times_faster": times["theirs"] / times["ours"]}
    row |= {"polynomial_features_peak_megabytes": peaks["theirs"], "times_smaller": peaks["theirs"] / peaks["ours"]}
    yield "degrees", row


_DEGREES = click.Option(
    ["--degrees"], multiple=True, type=click.IntRange(2, 3), default=(2, 3), show_default=True, help="May be repeated."
)
_OPTIONS = [_DEGREES, number("--rows", 32_561), number("--rounds", 3)]
EXPERIMENT = Experiment("taylor_features", __doc__, measure, cases, _OPTIONS)

if __name__ == "__main__":
    EXPERIMENT.main()

"""TaylorFeatures against scikit-learn's PolynomialFeatures and weights: time and memory on a9a, as it is, sparse.

    python -m benchmarks.taylor_features [--degrees R ...] [--rows N] [--rounds N]

Both make the same features of the same rows, which is checked first. Peaks are of what NumPy and SciPy allocate
(tracemalloc), the features included, which are the same for both.
"""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from scipy.sparse import csr_matrix, diags
from sklearn.preprocessing import PolynomialFeatures

from approxsvm.features import TaylorFeatures
from benchmarks.answers import WrongAnswerError
from benchmarks.problems import Source, data_folder, split_rows
from benchmarks.record import Record, results_option
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


def _peak(run: Callable[[], object]) -> int:
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@click.command()
@click.option("--degrees", multiple=True, type=click.IntRange(2, 3), default=(2, 3), show_default=True)
@click.option("--rows", "n_rows", type=click.IntRange(min=1), default=32_561, show_default="all")
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
@results_option
def main(degrees: tuple[int, ...], n_rows: int, rounds: int, results: Path) -> None:
    """Compare on the training rows of a9a."""
    folder = data_folder()
    if folder is None:
        return
    X = csr_matrix(split_rows(folder, Source("Adult", "a9a", "a9a.t"))[0][:n_rows])
    record = Record.begin("taylor_features")
    for degree in degrees:
        runs: dict[str, Callable[[], Any]] = {
            "ours": partial(TaylorFeatures(_GAMMA, degree).fit_transform, X),
            "theirs": partial(by_polynomial_features, X, degree),
        }
        ours, theirs = (run() for run in runs.values())
        difference = abs(ours - theirs).max()
        if not difference <= 1e-14:
            raise click.ClickException(str(WrongAnswerError(f"features differ by {difference:.3g}")))
        shape, n_non_zeros = ours.shape, ours.nnz
        del ours, theirs
        times = medians({name: partial(seconds, run) for name, run in runs.items()}, rounds)
        peaks = {name: _peak(run) / 1e6 for name, run in runs.items()}
        record.add(
            "degrees",
            {
                "degree": degree,
                "columns": shape[1],
                "non_zeros": n_non_zeros,
                "seconds": times["ours"],
                "peak_megabytes": peaks["ours"],
                "polynomial_features_seconds": times["theirs"],
                "times_faster": times["theirs"] / times["ours"],
                "polynomial_features_peak_megabytes": peaks["theirs"],
                "times_smaller": peaks["theirs"] / peaks["ours"],
            },
        )
    record.show()
    record.save(results)


if __name__ == "__main__":
    main()

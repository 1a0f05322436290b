"""Linear, RBF, Fourier, Nystroem, Taylor, binning and compiled models on generated rows: fit, predict, accuracy.

    python -m benchmarks.overview [--rows N] [--features N] [--components N] [--results FOLDER]

Rows are scikit-learn's `make_classification` (two classes, four clusters in each, half of the features informative, one
label of a hundred wrong), standardized; four fifths to train with. All machines have C = 1; the linear ones behind
feature maps are LinearSVC, and gamma is SVC's "scale", for the Laplacian kernel of binning features too. Prediction is
from raw rows, by one thread, in turns, the median of rounds; what takes long predicts fewer rows. Models
are compiled with the training rows as sample, certified where there is an exact engine; that of a model behind Taylor
features is the expansion itself. Labels of a thousand test rows are compared with the source's: one that differs where
the source's own decision value is not within its rounding of 0 ends the run. "fit" of a compiled model is its source's
training and compiling.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import click
import numpy as np
import numpy.typing as npt
from sklearn.datasets import make_classification
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

import approxsvm
from approxsvm.features import RandomBinningFeatures, TaylorFeatures
from benchmarks.answers import WrongAnswerError
from benchmarks.charts import Lines
from benchmarks.record import Record, results_option
from benchmarks.timing import medians, seconds, spread

_SLOW = 20e-6  # seconds for a row, beyond which a model predicts fewer
_FEW_ROWS = 1_000
_ROUNDS = 5
_FLIPPED = 0.02  # labels that make_classification draws anew, of which half change
_NEAR_TIE = 1e-6  # of the largest decision value


@dataclass(frozen=True)
class Result:
    """One model, or one compiled."""

    model: str
    compiled: bool
    fit_seconds: float
    microseconds_per_row: float
    accuracy_percent: float


def sources(n_features: int, n_components: int) -> dict[str, Any]:
    """Estimators to train."""
    gamma = 1.0 / n_features  # "scale" of standardized rows
    n_grids = n_components // 5

    def behind(feature_map: Any) -> Any:
        return make_pipeline(StandardScaler(), feature_map, LinearSVC(random_state=0, max_iter=3000))

    return {
        "linear": make_pipeline(StandardScaler(), LinearSVC(random_state=0)),
        "RBF": make_pipeline(StandardScaler(), SVC(gamma=gamma, cache_size=2000)),
        f"Fourier {n_components}": behind(RBFSampler(gamma=gamma, n_components=n_components, random_state=0)),
        f"Nyström {n_components}": behind(Nystroem(gamma=gamma, n_components=n_components, random_state=0)),
        "Taylor 2": behind(TaylorFeatures(gamma, 2)),
        "Taylor 3": behind(TaylorFeatures(gamma, 3)),
        f"binning {n_grids}": behind(RandomBinningFeatures(gamma=gamma, n_components=n_grids, random_state=0)),
    }


def compiled(source: Any, X: npt.NDArray[np.float64]) -> Any:
    """The source compiled, by its default mode where it has an exact engine; None where it cannot be."""
    for mode in ("certified", "approximate"):
        try:
            return approxsvm.compile(source, X, mode=mode, n_jobs=1)
        except approxsvm.UnsupportedModelError as error:
            reason = error
    click.echo(f"  not compiled: {reason}", err=True)
    return None


def check(name: str, source: Any, fast: Any, X: npt.NDArray[np.float64]) -> None:
    """Demand the source's labels.

    Raises
    ------
    WrongAnswerError
        A label differs, and not because the value is next to 0.
    """
    values = source.decision_function(X)
    differs = (fast.predict(X) != source.predict(X)) & (abs(values) > _NEAR_TIE * abs(values).max())
    if differs.any():
        raise WrongAnswerError(f"{name}, compiled: row {int(np.argmax(differs))} of {len(X)} has another label")


def _seconds_per_row(model: Any, X: npt.NDArray[np.float64]) -> float:
    return seconds(partial(model.predict, X)) / len(X)


def measured(
    n_rows: int, n_features: int, n_components: int, say: Callable[[str], None] = lambda text: None
) -> list[Result]:
    """Every model, and what compiling makes of it."""
    X, y = make_classification(
        n_rows,
        n_features,
        n_informative=n_features // 2,
        n_redundant=n_features // 10,
        n_clusters_per_class=4,
        flip_y=_FLIPPED,
        random_state=0,
    )
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, random_state=0)
    few = X_test[spread(len(X_test), _FEW_ROWS)]
    models: dict[tuple[str, bool], Any] = {}
    fit: dict[tuple[str, bool], float] = {}
    for name, source in sources(n_features, n_components).items():
        say(name)
        fit[name, False] = seconds(partial(source.fit, X, y))
        models[name, False] = source
        start = perf_counter()
        fast = compiled(source, X)
        if fast is not None:
            fit[name, True] = fit[name, False] + perf_counter() - start
            models[name, True] = fast
            check(name, source, fast, few)
    rows = {key: few if _seconds_per_row(model, few) > _SLOW else X_test for key, model in models.items()}
    with threadpool_limits(1):
        times = medians(
            {key: partial(_seconds_per_row, model, rows[key]) for key, model in models.items()},
            _ROUNDS,
        )
    return [
        Result(key[0], key[1], fit[key], 1e6 * times[key], 100 * float(np.mean(model.predict(X_test) == y_test)))
        for key, model in models.items()
    ]


def chart(results: Sequence[Mapping[str, Any]]) -> Lines:
    """Accuracy against what a row costs, the higher and the further left the better: from compiled to as trained."""
    names = dict.fromkeys(r["model"] for r in results)
    points = {(r["model"], r["compiled"]): (r["microseconds_per_row"], r["accuracy_percent"]) for r in results}
    return Lines(
        "Accuracy against the time of a row, generated classification: compiled (left end) and as trained (right end)",
        "µs per row, one thread",
        "accuracy, %",
        {
            name: [points[name, is_compiled] for is_compiled in (True, False) if (name, is_compiled) in points]
            for name in names
        },
        y_scale="linear",
    )


@click.command()
@click.option("--rows", type=click.IntRange(min=1_000), default=100_000, show_default=True)
@click.option("--features", type=click.IntRange(min=10), default=20, show_default=True)
@click.option("--components", type=click.IntRange(min=10), default=500, show_default=True)
@results_option
def main(rows: int, features: int, components: int, results: Path) -> None:
    """Compare kinds of models, and what compiling makes of them, on generated rows."""
    record = Record.begin("overview")
    for result in measured(rows, features, components, lambda name: click.echo(f"{name} ...", err=True)):
        record.add("models", result)
    record.show()
    record.save(results)


if __name__ == "__main__":
    main()

"""Linear, RBF, Fourier, Nystroem, Taylor and compiled models on generated rows: fit, predict, accuracy.

Rows are generated with scikit-learn's `make_classification` (two classes, four clusters per class, half of the features
informative, one label in a hundred wrong) and standardized; four fifths are for training. All support vector machines
have C = 1. Those on feature maps are LinearSVCs, and gamma is SVC's "scale". Prediction starts from raw rows, on one
thread. Models take turns, times are medians over the rounds, and slow models predict fewer rows. Models are compiled
with the training rows as sample rows, in "certified" mode if there is an exact engine. A model on Taylor features
compiles to the expansion itself. Labels of a thousand test rows are compared with the source's: a wrong label ends the
run, unless the source's decision value is within rounding error of 0. For a compiled model, "fit" is the time to train
its source and compile it.
"""

from __future__ import annotations

from functools import partial
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
from approxsvm.features import TaylorFeatures
from benchmarks.experiment import Experiment, Rows, Run, demand_labels, number
from benchmarks.timing import medians, seconds, spread, timed

_SLOW = 20e-6  # seconds per row; slower models predict fewer rows
_FEW_ROWS = 1_000
_ROUNDS = 5
_FLIPPED = 0.02  # fraction of labels redrawn by make_classification; half of them change
_NEAR_TIE = 1e-6  # relative to the largest absolute decision value


def _sources(n_features: int, n_components: int) -> dict[str, Any]:
    """Return the estimators to train."""
    gamma = 1.0 / n_features  # "scale" of standardized rows

    def behind(feature_map: Any) -> Any:
        return make_pipeline(StandardScaler(), feature_map, LinearSVC(random_state=0, max_iter=3000))

    return {
        "linear": make_pipeline(StandardScaler(), LinearSVC(random_state=0)),
        "RBF": make_pipeline(StandardScaler(), SVC(gamma=gamma, cache_size=2000)),
        f"Fourier {n_components}": behind(RBFSampler(gamma=gamma, n_components=n_components, random_state=0)),
        f"Nyström {n_components}": behind(Nystroem(gamma=gamma, n_components=n_components, random_state=0)),
        "Taylor 2": behind(TaylorFeatures(gamma, 2)),
        "Taylor 3": behind(TaylorFeatures(gamma, 3)),
    }


def _compiled(source: Any, X: npt.NDArray[np.float64]) -> Any:
    """Compile the source in "certified" mode if possible, else in "approximate" mode; None if not supported."""
    for mode in ("certified", "approximate"):
        try:
            return approxsvm.compile(source, X, mode=mode, n_jobs=1)
        except approxsvm.UnsupportedModelError as error:
            reason = error
    click.echo(f"  not compiled: {reason}", err=True)
    return None


def _seconds_per_row(model: Any, X: npt.NDArray[np.float64]) -> float:
    return seconds(partial(model.predict, X)) / len(X)


def measure(run: Run, case: None) -> Rows:
    """Measure every model before and after compiling; all of them take turns."""
    options = run.options
    n_features = options.features
    X, y = make_classification(
        options.rows,
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
    for name, source in _sources(n_features, options.components).items():
        click.echo(f"{name} ...", err=True)
        models[name, False], fit[name, False] = timed(partial(source.fit, X, y))
        fast, compiling = timed(partial(_compiled, source, X))
        if fast is not None:
            models[name, True], fit[name, True] = fast, fit[name, False] + compiling
            values = np.abs(source.decision_function(few))
            demand_labels(name, fast.predict(few), source.predict(few), values > _NEAR_TIE * values.max())
    rows = {key: few if _seconds_per_row(model, few) > _SLOW else X_test for key, model in models.items()}
    turns = {key: partial(_seconds_per_row, model, rows[key]) for key, model in models.items()}
    with threadpool_limits(1):
        times = medians(turns, _ROUNDS)
    for (name, is_compiled), model in models.items():
        key = name, is_compiled
        row = {"model": name, "compiled": is_compiled, "fit_seconds": fit[key]}
        accuracy = 100 * np.mean(model.predict(X_test) == y_test)
        yield "models", row | {"microseconds_per_row": 1e6 * times[key], "accuracy_percent": accuracy}


_OPTIONS = [
    number("--rows", 100_000, least=1_000),
    number("--features", 20, least=10),
    number("--components", 500, "", 10),
]
EXPERIMENT = Experiment("overview", __doc__, measure, {"generated rows": None}, _OPTIONS)

if __name__ == "__main__":
    EXPERIMENT.main()

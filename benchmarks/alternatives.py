"""What people take in an SVC's place: error against time on its own problem, in a table and a picture.

Random Fourier features, Nystroem, Taylor features with a linear model, and gradient boosting (LightGBM, where it is
installed) are trained on the same scaled rows and labels. The table has the time of a row on one thread, the
share of test rows whose label is not the SVC's, and the test error; the picture the first two, as an SVG in
build/benchmarks. A certified model has the SVC's labels, so it is drawn at the bottom: at less than one row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from typing import Any

import click
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

import approxsvm
from approxsvm.features import TaylorFeatures
from benchmarks.charts import Points, svg
from benchmarks.experiment import TRIES, Experiment, Rows, Run
from benchmarks.problems import PROBLEM_OPTIONS, chosen
from benchmarks.record import Record
from benchmarks.timing import medians, seconds, spread

_COMPONENTS = (50, 200, 800)
_ROUNDS = 5
_SLOW_ROWS = 1_000  # that a model predicts in a call, if it takes more than 20 us a row; else ten times as many


def _candidates(gamma: float) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """Series, name, and an estimator to fit."""
    maps = {"Fourier features": RBFSampler, "Nyström": Nystroem}
    for series, kind in maps.items():
        for n in _COMPONENTS:
            feature_map = kind(gamma=gamma, n_components=n, random_state=0)
            yield series, str(n), partial(make_pipeline, feature_map, LinearSVC(max_iter=3000))
    for degree in (2, 3):
        yield "Taylor features", f"degree {degree}", partial(make_pipeline, TaylorFeatures(gamma, degree), LinearSVC())
    yield "histogram boosting", "scikit-learn", partial(HistGradientBoostingClassifier, random_state=0)
    try:
        from lightgbm import LGBMClassifier
    except ImportError as error:
        click.echo(f"LightGBM left out: {error}", err=True)
        return
    for n in (20, 100, 500):
        yield (
            f"LightGBM {version('lightgbm')}",
            f"{n} trees",
            partial(LGBMClassifier, n_estimators=n, n_jobs=1, verbose=-1),
        )


def measure(run: Run, case: Any) -> Rows:
    """One problem: all candidates, the SVC, and what it compiles to."""
    problem = case.problem(run.data, run.options)
    y_test = problem.y_test
    svc = problem.trained()
    models = {("SVC", "scikit-learn"): svc, ("approxsvm", "certified"): approxsvm.compile(svc, problem.X)}
    models["approxsvm", "approximate"] = approxsvm.compile(svc, problem.X, mode="approximate")
    for series, name, make in _candidates(approxsvm.read_model(svc).gamma):
        click.echo(f"  {series}, {name} ...", err=True)
        models[series, name] = make().fit(problem.X, problem.y)
    exact = svc.predict(problem.X_test)
    with threadpool_limits(1):
        few = {key: problem.X_test[spread(len(y_test), _SLOW_ROWS)] for key in models}
        rows = {
            key: problem.X_test[spread(len(y_test), 10 * _SLOW_ROWS)]
            if seconds(partial(model.predict, few[key])) < 20e-6 * len(few[key])
            else few[key]
            for key, model in models.items()
        }
        times = medians({k: partial(seconds, partial(m.predict, rows[k])) for k, m in models.items()}, _ROUNDS)
    for (series, name), model in models.items():
        labels = model.predict(problem.X_test)
        yield (
            "models",
            {
                "problem": f"{problem.name}, {problem.scaler}",
                "series": series,
                "name": name,
                "microseconds": 1e6 * times[series, name] / len(rows[series, name]),
                "differ": float(np.mean(labels != exact)),
                "error": float(np.mean(labels != y_test)),
                "n_rows": len(exact),
            },
        )


def draw(record: Record) -> None:
    """One picture for each problem, beside the record."""
    problems = dict.fromkeys(row["problem"] for row in record.tables["models"])
    for k, problem in enumerate(problems):
        series: dict[str, list[tuple[float, float | None]]] = {}
        for row in (row for row in record.tables["models"] if row["problem"] == problem):
            share = max(row["differ"], 0.5 / row["n_rows"])
            series.setdefault(row["series"], []).append((row["microseconds"], 100.0 * share))
        chart = Points(f"Another label than the SVC's: {problem}", "µs per row", "rows, %", series)
        path = TRIES / f"alternatives_{k}.svg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(svg(chart))
        click.echo(f"wrote {path}", err=True)


EXPERIMENT = Experiment("alternatives", __doc__, measure, chosen, PROBLEM_OPTIONS, draw)

if __name__ == "__main__":
    EXPERIMENT.main()

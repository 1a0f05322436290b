"""Growth of the cost per row with support vectors, features and gamma; and the fraction of rows certified by centers.

Models are SVCs trained on generated rows, which are mixtures of six factors with noise. Two classes have a curved
boundary, and a tenth of the labels are flipped, so that most rows become support vectors. Each model is measured as in
`benchmarks.ordinary`, with KARL, but planned with effort "low", because the largest models would otherwise take many
minutes to compile. Centers are measured in degree-2 plans for two real models, compiled with forced numbers of centers.
The fraction of the FMA peak counts only the necessary multiply-adds: d (d + 1) / 2 for a quadratic form, and d per
support vector in the exact engine, whose exponentials are not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import click
import numpy as np
import numpy.typing as npt
from sklearn.svm import SVC

import approxsvm
from benchmarks.experiment import Experiment, Rows, Run
from benchmarks.ordinary import measured
from benchmarks.peers import KARL
from benchmarks.problems import Problem, Source, libsvm_model, scaled, split_rows
from benchmarks.timing import medians, microseconds, spread, timed, warm_seconds

_N_FACTORS = 6
_FLIPPED = 0.1
_N_FEATURES = 10
_TRAIN_ROWS = 3_000  # in tables with a fixed number
_TEST_ROWS = 2_000
# Numbers of training rows; about 80% of them become support vectors at C = 0.1.
_SIZES = (640, 2_000, 6_300, 20_000)
_DIMENSIONS = (4, 8, 16, 32, 64, 128, 256, 512)
_GAMMAS = tuple(10.0 ** (k / 2 - 3) for k in range(11))  # multiples of scikit-learn's "scale"
_CENTERS = (1, 4, 16, 64, 256, 1024, 4096)
_CENTER_ROWS = 20_000
_ROUNDS = 11


@dataclass(frozen=True)
class Generated:
    """A model trained on generated rows, and its table."""

    table: str
    n_rows: int
    n_features: int = _N_FEATURES
    C: float = 1.0
    factor: float = 1.0


def cases(options: SimpleNamespace) -> dict[str, Callable[[Run], Rows]]:
    """Return the models by name, from small to large in each table, then centers and peak fractions."""
    n_rows = 500 if options.quick else _TRAIN_ROWS
    sizes, dimensions = _SIZES[: 2 if options.quick else None], _DIMENSIONS[: 3 if options.quick else None]
    models = [Generated("support vectors", size, C=0.1) for size in sizes]
    models += [Generated("features", n_rows, n_features) for n_features in dimensions]
    models += [Generated("gamma", n_rows, factor=factor) for factor in _GAMMAS[:: 4 if options.quick else 1]]
    of_models = {f"{m.table}, {m.n_rows} x {m.n_features}, {m.factor:g}": partial(_of_model, m) for m in models}
    real = ("ijcnn1, gamma 2",) if options.quick else ("ijcnn1, gamma 2", "covtype")
    of_centers = {f"centers {k}": partial(_of_centers, name) for k, name in enumerate(real, 1)}
    of_peak = {f"peak, {d} columns": partial(_of_peak, d) for d in dimensions}
    return {**of_models, **of_centers, **of_peak}


def generated(n_rows: int, n_features: int, seed: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Generate rows with labels -1 or 1; every seed draws from the same distribution."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n_rows, _N_FACTORS))
    loadings = np.random.default_rng(0).standard_normal((_N_FACTORS, n_features)) / np.sqrt(_N_FACTORS)
    X = factors @ loadings + 0.3 * rng.standard_normal((n_rows, n_features))
    is_positive = np.sin(1.5 * factors[:, 0]) + factors[:, 1] * factors[:, 2] > 0
    is_positive ^= rng.random(n_rows) < _FLIPPED
    return X, np.where(is_positive, 1, -1)


def _of_model(case: Generated, run: Run) -> Rows:
    X, y = generated(case.n_rows, case.n_features, 1)
    X_test, _ = generated(_TEST_ROWS, case.n_features, 2)
    name = f"generated, {case.n_rows} x {case.n_features}, gamma x {case.factor:g}"
    problem = Problem(name, "none", X, y, X_test, case.factor / (case.n_features * float(X.var())), case.C)
    return measured(problem, case.table, run.scratch, (KARL,), "low")


def _real_model(name: str, run: Run) -> tuple[Any, Any, Any]:
    """Return a model, rows for planning, and test rows."""
    if name == "covtype":
        problem = scaled(run.data, Source("covtype", "covtype.data", positive=2, n_train=10_000), "minmax")
        return problem.trained(), problem.X, problem.X_test
    X, _, X_test, _ = split_rows(run.data, Source("ijcnn1", "ijcnn1", "ijcnn1.t"))
    return libsvm_model(run.data, "ijcnn1_g2", 22), X, X_test


def _of_centers(name: str, run: Run) -> Rows:
    """Measure coverage, cost and compile time of degree-2 plans with increasing numbers of centers."""
    model, X, X_test = _real_model(name, run)
    rows = X_test[spread(len(X_test), 1_000 if run.options.quick else _CENTER_ROWS)]
    for n_centers in _CENTERS[: 3 if run.options.quick else None]:
        compiling = partial(approxsvm.compile, model, X, degree=2, n_centers=n_centers, max_bytes=1 << 30)
        fast, seconds = timed(compiling)
        times = microseconds({"ours": partial(fast.predict, rows)}, len(rows), _ROUNDS)
        row = {
            "model": name,
            "n_centers": n_centers,
            "certified": fast.certified(rows).mean(),
            "microseconds": times["ours"],
            "artifact_bytes": fast.summary.n_bytes,
            "compile_seconds": seconds,
        }
        yield "centers", row


def _of_peak(d: int, run: Run) -> Rows:
    """Measure the fraction of a core's peak multiply-adds reached by our kernels."""
    if run.peak is None:
        return
    X, y = generated(1_000, d, 1)
    rows = generated(_TEST_ROWS, d, 2)[0].astype(np.float32)
    svc = SVC().fit(X, y)
    form = approxsvm.compile(svc, mode="approximate", degree=2, n_centers=1)
    engine = approxsvm.compile(svc, mode="exact")
    turns: dict[str, Callable[[], float]] = {
        "peak": run.peak,
        "form": partial(warm_seconds, partial(form.predict, rows)),
        "engine": partial(warm_seconds, partial(engine.predict, rows)),
    }
    rates = medians(turns, _ROUNDS)
    per_second = {"form": d * (d + 1) / 2 * len(rows), "engine": d * len(svc.support_) * len(rows)}
    shares = {name: n / rates[name] / rates["peak"] for name, n in per_second.items()}
    row = {"n_features": d, "peak": rates["peak"]}
    yield "peak", row | {"quadratic_form": shares["form"], "exact_engine": shares["engine"]}


_QUICK = click.Option(["--quick"], is_flag=True, help="Use few, small models, as a test.")
EXPERIMENT = Experiment("growth", __doc__, lambda run, case: case(run), cases, [_QUICK])

if __name__ == "__main__":
    EXPERIMENT.main()

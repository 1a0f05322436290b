"""Growth of compile time, memory and artifact size with support vectors, features, classes and sample rows.

Models are generated instead of trained, because training the largest ones would take days. For two classes, the support
vectors are the generated rows of `benchmarks.growth`, all with coefficients at the box limit, and gamma is
scikit-learn's "scale". For several classes, twelve vectors of norm 1 surround each class's center, with random
coefficients. Every model is compiled with default options in its own process. Memory is this process's peak while it
compiles, including the model, the sample rows and Python. Compiling pays off after the number of rows at which the time
saved, compared with scikit-learn's predictions, equals the compile time.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import numpy as np
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

import approxsvm
from benchmarks.experiment import Experiment, Rows, Run, demand_labels, positive
from benchmarks.growth import generated
from benchmarks.peers import LIBSVM, Sample, Trained, as_svc, write_libsvm_model
from benchmarks.plans import plan_of
from benchmarks.record import Row
from benchmarks.timing import microseconds, timed

_OF_CLASS = 12  # support vectors per class
_TEST_ROWS = 10_000  # a tenth as many for more than 200 classes
_ROUNDS = 5
_SLOW_WORK = 2e9  # approximate multiply-adds for the rows predicted by scikit-learn and LIBSVM


@dataclass(frozen=True)
class Size:
    """Size of a model, and number of sample rows."""

    table: str
    n_sv: int = 5_000
    n_features: int = 54
    n_classes: int = 2
    n_sample_rows: int = 20_000


SIZES = (
    *(Size("support vectors", n_sv=n, n_sample_rows=50_000) for n in (2_500, 5_000, 10_000, 20_000, 40_000, 100_000)),
    Size("support vectors", n_sv=300_000, n_sample_rows=50_000),
    *(Size("features", n_features=d) for d in (10, 30, 100, 300, 1_000)),
    *(Size("classes", _OF_CLASS * k, 128, k, min(1_000 * k, 20_000)) for k in (2, 10, 50, 200, 1_000)),
    *(Size("sample rows", n_sample_rows=n) for n in (1_000, 3_000, 10_000, 30_000, 100_000)),
)


def cases(options: SimpleNamespace) -> dict[str, Size]:
    """Return the sizes by name, from small to large in each table."""
    sizes = [s for s in SIZES if s.n_sv <= options.most_vectors]
    if options.quick:
        sizes = [Size(t, 240, 8, k, 500) for t, k in (("support vectors", 2), ("features", 2), ("classes", 4))]
        sizes += [Size(t, 480, 16, k, 900) for t, k in (("support vectors", 2), ("features", 2), ("classes", 8))]
        sizes += [Size("sample rows", 240, 8, 2, n) for n in (400, 800)]
    return {f"{s.table}: {s.n_sv} x {s.n_features}, {s.n_classes} classes, {s.n_sample_rows} rows": s for s in sizes}


def measure(run: Run, size: Size) -> Rows:
    """Measure one model in a new process, unless the time limit has passed."""
    run.options.begin = getattr(run.options, "begin", time.monotonic())
    if time.monotonic() - run.options.begin > run.options.seconds:
        click.echo("left out: the time is over", err=True)
        return
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield "models", pool.submit(_measured, size).result()


def _rows(size: Size, n: int, seed: int) -> tuple[Any, Any]:
    """Generate n rows and the class index of each row."""
    if size.n_classes == 2:
        X, y = generated(n, size.n_features, seed)
        return X, (y < 0).astype(int)
    rng, y = np.random.default_rng(seed), np.arange(n) % size.n_classes
    centers = np.random.default_rng(0).normal(size=(size.n_classes, size.n_features))
    X = centers[y] + rng.normal(size=(n, size.n_features))
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def _model(size: Size) -> approxsvm.KernelModel:
    k, (X, y) = size.n_classes, _rows(size, size.n_sv, 1)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    sign = np.where(np.arange(k - 1)[:, np.newaxis] < y, -1.0, 1.0)  # a class is second in pairs with earlier classes
    moduli = np.abs(np.random.default_rng(2).normal(size=sign.shape)) if k > 2 else 1.0
    return approxsvm.KernelModel(
        "classification",
        support_vectors=X,
        dual_coef=sign * moduli,
        intercept=np.zeros(k * (k - 1) // 2),
        gamma=1.0 / (size.n_features * float(X.var())),
        labels=np.arange(k),
        n_support=np.bincount(y, minlength=k),
    )


def _measured(size: Size) -> Row:
    """Compile, check and time a model; must run in its own process."""
    model, sample = _model(size), _rows(size, size.n_sample_rows, 3)[0]
    Path("/proc/self/clear_refs").write_text("5")  # the peak is measured from here
    cpu = time.process_time()
    fast, seconds = timed(partial(approxsvm.compile, model, sample))
    cpu, peak = time.process_time() - cpu, Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]
    X = _rows(size, _TEST_ROWS if size.n_classes <= 200 else _TEST_ROWS // 10, 4)[0]
    labels = fast.predict(X)
    demand_labels(size.table, labels, approxsvm.compile(model, mode="exact").predict(X))
    times = microseconds({"ours": partial(fast.predict, X)}, len(X), _ROUNDS)
    n_slow = int(np.clip(_SLOW_WORK / (size.n_sv * (size.n_features + size.n_classes + 50)), 5, 400))
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        times |= dict(_of_sources(model, Path(folder) / "libsvm.model", X[:n_slow], labels[:n_slow]))
    saved = times["sklearn"] - times["ours"]
    return {
        **dict(zip(("table", "n_sv", "n_features", "n_classes", "n_sample_rows"), astuple(size), strict=True)),
        "plan": plan_of(fast),
        "certified": fast.summary.certified_fraction,
        "compile_seconds": seconds,
        "compile_cpu_seconds": cpu,
        "mebibytes": int(peak) / 1024,
        "artifact_bytes": fast.summary.n_bytes,
        "model_bytes": model.support_vectors.nbytes + model.dual_coef.nbytes,
        "microseconds": times["ours"],
        "sklearn_microseconds": times["sklearn"],
        "libsvm_microseconds": times.get("libsvm"),
        "paid_after_rows": 1e6 * seconds / saved if saved > 0 else None,
    }


def _of_sources(model: Any, path: Path, X: Any, labels: Any) -> Iterator[tuple[str, float]]:
    """Yield the microseconds per row for scikit-learn and, if installed, LIBSVM; their labels must equal ours."""
    svc, trained = as_svc(model), Trained(model, path)
    demand_labels("scikit-learn", svc.predict(X), labels)
    yield "sklearn", microseconds({"": partial(svc.predict, X)}, len(X), 1)[""]
    try:
        write_libsvm_model(trained)
        predict = LIBSVM.prepare(trained, Sample(csr_array(X), np.arange(len(X))))
    except ImportError:
        return
    demand_labels("LIBSVM", predict(), labels)
    yield "libsvm", microseconds({"": predict}, len(X), 1)[""]


_OPTIONS = (
    positive("--seconds", 3600.0, "Begin no further model after this time."),
    click.Option(["--most-vectors"], type=int, default=300_000, show_default=True, help="Leave larger models out."),
    click.Option(["--quick"], is_flag=True, help="Use few, small models, as a test."),
)
EXPERIMENT = Experiment("compile_growth", __doc__, measure, cases, _OPTIONS)

if __name__ == "__main__":
    EXPERIMENT.main()

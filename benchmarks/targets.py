"""Time per row with AVX-512 and AVX2, on one thread and on all, compared with peers on the same number of threads.

`APPROXSVM_TARGET` restricts only our kernels; peers use every instruction that the machine has. scikit-learn's SVC
predicts on one thread, however many there are.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any
from unittest.mock import patch

import click
import numpy as np
from scipy.sparse import csr_array
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import approxsvm
from approxsvm import _native
from benchmarks.experiment import Experiment, Rows, Run, demand_labels, number
from benchmarks.peers import KARL, LIBSVM, OTHERS, Peer, Sample, Trained, as_svc, write_libsvm_model
from benchmarks.plans import plan_of
from benchmarks.problems import SOURCES, Chosen, Problem
from benchmarks.record import Row
from benchmarks.timing import microseconds, spread

_TARGETS = ("avx512", "avx2", "neon")
_MODELS = (("covtype", "standard", 1.0), ("phishing", "standard", 1.0), ("letter, 26 classes", "none", 10.0))
_SLOW_ROWS = 400
_PEER_ROWS = 2_000
_ROUNDS, _SLOW_ROUNDS = 15, 3


def measure(run: Run, case: Chosen) -> Rows:
    """Measure one model with each target, then its peers."""
    problem = case.problem(run.data, run.options)
    source = problem.trained()
    svc = source if isinstance(source, SVC) else as_svc(source)
    for target in (target for target in _TARGETS if target in _native.runnable_targets()):
        with patch.dict(os.environ, APPROXSVM_TARGET=target):
            yield from _ours(problem, source, target, run)
    trained = Trained(approxsvm.read_model(source), run.scratch / "of_libsvm.model")
    write_libsvm_model(trained)
    slow = problem.X_test[spread(len(problem.X_test), _SLOW_ROWS)]
    labels = svc.predict(slow)
    about = {"model": problem.name, "scaler": problem.scaler}
    own = microseconds({"scikit-learn": partial(svc.predict, slow)}, len(slow), _SLOW_ROUNDS)
    yield "peers", {**about, "peer": "scikit-learn", "threads": 1, "microseconds": own["scikit-learn"]}
    others = [peer for peer in OTHERS if peer != KARL and trained.model.n_decisions == 1]  # KARL has one thread
    for n_threads in dict.fromkeys((1, run.record.machine.all_threads)):
        for row in _peers([LIBSVM, *others], trained, problem.X_test, n_threads):
            yield "peers", {**about, **row}
    demand_labels(problem.name, approxsvm.load(run.scratch / "model.asvm").predict(slow), labels)


def _ours(problem: Problem, source: Any, target: str, run: Run) -> Iterator[tuple[str, Row]]:
    """Yield the planned model and the exact engine for each number of threads."""
    path, X = run.scratch / "model.asvm", problem.X_test
    fast = approxsvm.compile(source, problem.X)
    fast.save(path)
    approxsvm.compile(source, mode="exact").save(run.scratch / "exact.asvm")
    for n_threads in dict.fromkeys((1, run.record.machine.all_threads)):
        planned, engine = (approxsvm.load(file, n_jobs=n_threads) for file in (path, run.scratch / "exact.asvm"))
        demand_labels(f"{problem.name}, {target}", planned.predict(X), engine.predict(X))
        runs = {"microseconds": partial(planned.predict, X), "engine_microseconds": partial(engine.predict, X)}
        about = {"model": problem.name, "scaler": problem.scaler, "target": target, "threads": n_threads}
        figures = {"plan": plan_of(fast), "certified": planned.summary.certified_fraction}
        yield "models", {**about, **figures, **microseconds(runs, len(X), _ROUNDS)}


def _peers(kinds: Sequence[Peer], trained: Trained, X: Any, n_threads: int) -> Iterator[Row]:
    for kind in kinds:
        rows = csr_array(X[spread(len(X), _SLOW_ROWS if kind.is_slow else _PEER_ROWS)])
        try:
            predict = kind.prepare(trained, Sample(rows, np.arange(rows.shape[0]), n_threads))
        except ImportError as error:
            click.echo(f"{kind.name} left out: {error}", err=True)
            continue
        with threadpool_limits(n_threads):
            times = microseconds({kind.name: predict}, rows.shape[0], _SLOW_ROUNDS)
        yield {"peer": kind.name, "threads": n_threads, "microseconds": times[kind.name]}


CASES = {f"{name}, {scaler}": Chosen(SOURCES[name], scaler, C) for name, scaler, C in _MODELS}
_OPTIONS = [
    number("--rows", 100_000, "Maximum test rows."),
    number("--train-rows", None, "Maximum training rows.", least=100),
]
EXPERIMENT = Experiment("targets", __doc__, measure, CASES, _OPTIONS)

if __name__ == "__main__":
    EXPERIMENT.main()

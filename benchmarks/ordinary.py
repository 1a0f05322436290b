"""Ordinary models: LIBSVM models, and scikit-learn SVCs with default options after scaling.

Models are compiled with their training rows as sample rows.

For each data set, the table lists the planner's choice, the fraction of rows decided before the exact engine, and the
compile time. The time per row on one thread is compared with scikit-learn, LIBSVM and our exact engine. For two classes
with dense rows, it is also compared with other implementations that give the same labels, and with a single expansion
of degree 2, for which the fraction of differing labels is listed. All our labels are compared with the exact model's,
and a wrong one ends the run. Two-class problems are one class against the rest; `10 classes` and the like keep all
classes. `--published` selects the models in README and docs/benchmarks.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import approxsvm
from approxsvm.analysis.source_answers import exact_decision_values
from approxsvm.analysis.source_rounding import NEAR_TIE
from approxsvm.planning.request import Effort
from benchmarks.experiment import Experiment, Rows, Run, demand_labels
from benchmarks.peers import LIBSVM, OTHERS, Peer, Sample, Trained, as_svc, write_libsvm_model
from benchmarks.plans import plan_of
from benchmarks.problems import PROBLEM_OPTIONS, SOURCES, Chosen, Problem, chosen
from benchmarks.record import Row
from benchmarks.timing import microseconds, spread, timed

_SLOW_ROWS = 400  # predicted by scikit-learn, LIBSVM and onnxruntime
_ENGINE_ROWS = 20_000  # predicted by our exact engine while it is timed
_PEER_ROWS = 2_000  # predicted by peers that are faster than LIBSVM
_CHECKED_ROWS = 20_000  # compared with a direct evaluation
_TIMED_ROWS = 300_000  # over all rounds, of which there are at least five
_SLOW_ROUNDS = 3

# Models in README and docs/benchmarks.md: by table and C; each entry is a source and a scaler.
_PUBLISHED = {
    ("two classes", 1.0): (
        ("covtype", "standard"),
        ("covtype", "minmax"),
        ("ijcnn1", "minmax"),
        ("ijcnn1, gamma 2", "none"),
        ("phishing", "standard"),
        ("phishing", "minmax"),
        ("svmguide1", "minmax"),
    ),
    ("several classes", 10.0): (
        ("letter, 26 classes", "none"),
        ("pendigits, 10 classes", "none"),
        ("segment, 7 classes", "none"),
        ("vehicle, 4 classes", "none"),
        ("svmguide2, 3 classes", "none"),
        ("satimage, 6 classes, generated", "none"),
        ("shuttle, 7 classes, generated", "none"),
    ),
    ("wide, dense", 1.0): (
        ("usps, 1", "standard"),
        ("usps, 1", "minmax"),
        ("usps, 10 classes", "standard"),
        ("usps, 10 classes", "minmax"),
        ("MNIST, 10 classes", "minmax"),
    ),
    ("wide, sparse", 1.0): (("text of 20,000 words, generated", "none"), ("w8a", "standard")),
    ("few values", 1.0): (
        ("phishing", "none"),
        ("w8a", "none"),
        *((f"{name}, generated", "none") for name in ("dna", "splice", "mushrooms", "connect-4")),
    ),
    ("LIBSVM's models", 1.0): tuple((source.name, "none") for source in SOURCES.values() if source.model),
}


def cases(options: SimpleNamespace) -> dict[str, Chosen]:
    """Return the published models, or those selected by options."""
    if not options.published:
        return chosen(options)
    return {
        f"{table}: {source}, {scaler}": Chosen(SOURCES[source], scaler, C, table)
        for (table, C), models in _PUBLISHED.items()
        for source, scaler in models
    }


def measure(run: Run, case: Chosen) -> Rows:
    """Measure one model and all its peers."""
    peers = [peer for peer in OTHERS if (run.options.peer or "").lower() in peer.name.lower()]
    yield from measured(case.problem(run.data, run.options), case.table, run.scratch, peers)


def measured(
    problem: Problem, table: str, scratch: Path, peers: Sequence[Peer] = OTHERS, effort: Effort = "normal"
) -> Rows:
    """Train, compile, check and time."""
    source = problem.trained()
    model = approxsvm.read_model(source)
    svc = source if isinstance(source, SVC) else as_svc(source)
    fast, seconds = timed(partial(approxsvm.compile, source, problem.X, effort=effort))
    engine = approxsvm.compile(source, mode="exact")
    X = problem.X_test
    n_rows = X.shape[0]
    labels = fast.predict(X)
    certified = fast.summary.certified_fraction
    _check(f"{problem.name}, {problem.scaler}", fast, engine, svc, model, X)
    some, slow = X[spread(n_rows, _ENGINE_ROWS)], X[spread(n_rows, _SLOW_ROWS)]
    turns = {"ours": partial(fast.predict, X), "engine": partial(engine.predict, some)}
    alone = None if model.n_decisions > 1 or issparse(X) else approxsvm.compile(source, mode="approximate", degree=2)
    if alone is not None:
        turns["alone"] = partial(alone.predict, X)
    rounds = min(max(_TIMED_ROWS // n_rows, 5), 101)
    times = microseconds(turns, {"engine": some.shape[0]} | dict.fromkeys(("ours", "alone"), n_rows), rounds)
    trained = Trained(model, scratch / "of_libsvm.model")
    write_libsvm_model(trained)
    with threadpool_limits(1):  # the LIBSVM build on PyPI uses OpenMP
        times |= microseconds({"sklearn": partial(svc.predict, slow)}, slow.shape[0], _SLOW_ROUNDS)
        libsvm = list(_of_peers((LIBSVM,), trained, engine, X))
        is_fair = model.n_decisions == 1 and not issparse(X)  # only such rows suit those peers
        peer_rows = list(_of_peers(peers, trained, engine, X)) if is_fair else []
    about = {"model": problem.name, "scaler": problem.scaler}
    row = {
        "table": table,
        **about,
        "C": problem.C,
        "gamma": model.gamma,
        "n_classes": len(model.labels),
        "n_features": X.shape[1],
        "n_sv": model.n_sv,
        "n_test_rows": n_rows,
        "plan": plan_of(fast),
        "certified": certified,
        "artifact_bytes": fast.summary.n_bytes,
        "compile_seconds": seconds,
        "microseconds": times["ours"],
        "engine_microseconds": times["engine"],
        "sklearn_microseconds": times["sklearn"],
        "libsvm_microseconds": libsvm[0]["microseconds"] if libsvm else None,
        "model_bytes": trained.model_path.stat().st_size,
        "expansion_microseconds": times.get("alone"),
        "expansion_bytes": alone and alone.summary.n_bytes,
        "expansion_differs": None if alone is None else np.mean(alone.predict(X) != labels),
    }
    yield "models", row
    for peer in peer_rows:
        yield "peers", {**about, **peer}


def _check(name: str, fast: Any, engine: Any, svc: SVC, model: approxsvm.KernelModel, X: Any) -> None:
    """Require the exact engine's labels for all rows; compare some with a direct evaluation or scikit-learn's."""
    demand_labels(name, fast.predict(X), engine.predict(X))
    rows = X[spread(X.shape[0], _CHECKED_ROWS)]
    if model.n_decisions > 1:
        demand_labels(name, fast.predict(rows), svc.predict(rows))
        return
    exact = exact_decision_values(model, rows).reshape(rows.shape[0], -1)[:, 0]
    clear = np.abs(exact) > NEAR_TIE * float(np.abs(model.coefficients(0)).sum())
    demand_labels(name, fast.predict(rows), np.where(exact > 0.0, *model.labels), clear)


def _of_peers(kinds: Sequence[Peer], trained: Trained, engine: Any, X: Any) -> Iterator[Row]:
    """Yield installed peers, each with a number of rows that suits its speed; `differ` counts wrong labels."""
    for kind in kinds:
        rows = csr_array(X[spread(X.shape[0], _SLOW_ROWS if kind.is_slow else _PEER_ROWS)])
        sample = Sample(rows, np.arange(rows.shape[0]))
        try:
            predict = kind.prepare(trained, sample)
        except ImportError as error:
            click.echo(f"{kind.name} left out: {error}", err=True)
            continue
        expected = engine.predict(sample.float32 if kind.is_rounded else rows)
        differ = int((predict() != expected).sum())
        times = microseconds({kind.name: predict}, len(sample), _SLOW_ROUNDS)
        yield {
            "peer": kind.name,
            "version": kind.version,
            "microseconds": times[kind.name],
            "n_rows": len(sample),
            "differ": differ,
        }


PUBLISHED_OPTION = click.Option(["--published"], is_flag=True, help="Measure the models in README and docs.")
_PEER_OPTION = click.Option(["--peer"], help="Measure only peers whose name contains this.")
EXPERIMENT = Experiment("ordinary", __doc__, measure, cases, [PUBLISHED_OPTION, _PEER_OPTION, *PROBLEM_OPTIONS])

if __name__ == "__main__":
    EXPERIMENT.main()

"""What has to hold for every answer of every interface."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from approxsvm.model.outputs import GaussianDensity
from benchmarks.comparison import answers
from zoo import class_numbers, oracle
from zoo.balls import Ball
from zoo.executors import Executor
from zoo.specimens import Answers, Expected, RefusedError, Specimen
from zoo.tables import Table

_CLOSE_PROBABILITY = 1e-8  # what a source rounds in probabilities


def faults(specimen: Specimen, executor: Executor, table: Table) -> Iterator[str]:
    """Yield what is wrong with the answers of an interface for the rows of a table."""
    expected = specimen.expected(executor.seen(table))
    bad = np.flatnonzero(expected.refused)
    for i in bad[:4]:
        yield from _refusal_faults(specimen, executor, table.take(slice(i, i + 1)))
    good = table.take(~expected.refused)
    if len(good.values) == 0:
        return
    try:
        found = executor.answers(specimen, good)
    except RefusedError as error:
        yield f"refused: {error}"
        return
    for fault in _answer_faults(specimen, executor, found, expected):
        yield f"{specimen.name}, {executor.name}, {table.form}: {fault}"


def source_faults(specimen: Specimen, table: Table) -> Iterator[str]:
    """Yield where the source's own numbers are not those of the model that was read from it."""
    model, theirs = specimen.model, answers(specimen.source, table)
    numbers = specimen.numbers(table)
    values = Ball(*oracle.decision_values(model, numbers))
    ours: dict[str, Any] = {}
    if model.task == "regression" and not isinstance(model.outputs.probability, GaussianDensity):
        ours["predict"] = values
    elif model.task != "regression" and specimen.artifact.has_decision_function:
        ours["decision_function"] = class_numbers.as_decision_function(model, values)
    if specimen.artifact.has_class_probabilities:
        shares = Ball(*oracle.probabilities(model, numbers))
        ours["predict_proba"] = shares[:, np.argsort(model.labels, kind="stable")]
    for method, exact in ours.items():
        found = theirs[method]
        if isinstance(found, Exception):
            continue  # of files whose source has no such method here
        scale = 1.0 if method == "predict_proba" else np.abs(exact.mid).max(axis=0)
        narrow = any(kind in ("float32", "float16") for kind in table.kinds)
        off = np.abs(found.reshape(exact.mid.shape) - exact.mid)
        if not (off <= (1e-3 if narrow else 1e-7) * scale + exact.rad).all():
            yield f"{specimen.name}: {method} is off by {off.max(axis=0)} from the oracle's"


def _refusal_faults(specimen: Specimen, executor: Executor, row: Table) -> Iterator[str]:
    """The source refuses this row: so has the interface, or it certifies nothing."""
    try:
        found = executor.answers(specimen, row)
    except RefusedError:
        return
    if executor.refuses or found.certified is None or found.certified.any():
        yield f"{specimen.name}, {executor.name}: answers a row that the source refuses: {row.code()[:200]}"


def _answer_faults(specimen: Specimen, executor: Executor, found: Answers, expected: Expected) -> Iterator[str]:
    if found.labels is not None and expected.labels is not None:
        if found.labels.shape != expected.labels.shape:
            yield f"labels of shape {found.labels.shape} instead of {expected.labels.shape}"
            return
        differ = found.labels != expected.labels
        certified = np.zeros(differ.shape, bool) if found.certified is None else found.certified
        if (differ & certified).any():
            yield f"certified labels differ from the source's in rows {np.flatnonzero(differ & certified)[:5]}"
        elif not executor.settles or specimen.artifact.mode == "approximate" or not differ.any():
            pass
        elif (differ & expected.certain()).any():
            yield f"labels differ from the source's in rows {np.flatnonzero(differ)[:5]}"
    if found.values is not None and found.bounds is not None and expected.values is not None:
        yield from _bound_faults("values", found.values, found.bounds, expected.values, expected.slack)
    if found.probabilities is not None and expected.probabilities is not None:
        order = np.argsort(np.argsort(specimen.labels, kind="stable"))
        theirs = expected.probabilities[:, order]
        yield from _bound_faults(
            "probabilities", found.probabilities, found.probability_bounds, theirs, _CLOSE_PROBABILITY
        )
    if found.probabilities is not None and expected.exact_probabilities is not None:
        exact, slack = expected.exact_probabilities, expected.probability_slack
        yield from _bound_faults("exact probabilities", found.probabilities, found.probability_bounds, exact, slack)


def _bound_faults(
    name: str, found: np.ndarray, bounds: np.ndarray, exact: np.ndarray, slack: np.ndarray
) -> Iterator[str]:
    if found.shape != exact.shape:
        yield f"{name} of shape {found.shape} instead of {exact.shape}"
        return
    error = np.abs(found - exact)
    # Where the oracle has no value, none may be given with a bound.
    broken = np.where(np.isnan(exact), np.isfinite(found) & (bounds < np.inf), ~(error <= bounds + slack))
    if broken.any():
        i = int(np.flatnonzero(broken.any(axis=1))[0])
        n_others = broken.any(axis=1).sum() - 1
        yield f"{name}: off by {error[i]} where the bound is {bounds[i]}, in row {i} and {n_others} others"

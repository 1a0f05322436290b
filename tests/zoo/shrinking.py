"""Reduction of a composed source to the smallest one that still has a fault, printed as a few lines of Python."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline

from zoo.draw import Draw
from zoo.random_sources import Made
from zoo.tables import Table
from zoo.tampering import parts_of, tampered

_PARTS = ("steps", "transformer_list", "transformers", "estimators")
_ASKED_ROWS = 30  # number of rows that show whether a change to the source changes its answers
_INNER = ("estimator", "regressor", "final_estimator")


@dataclass(frozen=True, eq=False)
class Case:
    """Everything that determines one composed source."""

    made: Made
    table: Table  # training rows
    changes: tuple[tuple[int, ...], ...]  # seeds of the changes made after fitting
    asked: tuple[Table, ...]
    options: dict[str, Any]  # options of compile
    with_sample: bool  # True if compile gets the training rows
    asks: tuple[str, ...]  # the names of the executors, and of other places to test

    def changed(self, source: Any) -> tuple[Any, tuple[str, ...]]:
        """Return the fitted estimator after the changes, and their descriptions."""
        rows, words = self.table.take(slice(_ASKED_ROWS)), []

        def ask(source: Any) -> Any:
            try:
                return source.predict(rows.make()).tolist()
            except Exception:
                return None

        for seed in self.changes:
            source, what = tampered(Draw(*seed), source, ask)
            words.append(what)
        return source, tuple(words)


def shrunk(case: Case, is_faulty: Callable[[Case], bool], seconds: float) -> Case:
    """Return the smallest case for which `is_faulty` is still true, as far as found in the given time."""
    end = time.monotonic() + seconds
    smaller = _smaller(case)
    while time.monotonic() < end and (one := next(smaller, None)) is not None:
        with suppress(Exception):  # raised by sources that cannot be fitted
            if is_faulty(one):
                case, smaller = one, _smaller(one)
    return case


def _smaller(case: Case) -> Iterator[Case]:
    """Yield cases with something left out; larger reductions come first."""
    if len(case.asked) > 1:
        yield from (replace(case, asked=(table,)) for table in case.asked)
    yield from (replace(case, changes=case.changes[:k] + case.changes[k + 1 :]) for k in range(len(case.changes)))
    for table in case.asked[:1]:
        yield from (replace(case, asked=(table.take(kept),)) for kept in _halves(len(table.values)))
    yield from (replace(case, made=replace(case.made, estimator=one)) for one in _simpler(case.made.estimator))
    if case.made.weights:
        yield replace(case, made=replace(case.made, weights={}))
    if case.with_sample:
        yield replace(case, with_sample=False)
    for kept in _halves(len(case.table.values)):
        y = None if case.made.y is None else np.asarray(case.made.y)[kept]
        weights = {name: value[kept] for name, value in case.made.weights.items()}
        yield replace(case, made=replace(case.made, y=y, weights=weights), table=case.table.take(kept))
    width = len(case.table.kinds)
    if all(len(table.kinds) == width for table in case.asked):
        for j in range(width if width > 1 else 0):
            kept = [k for k in range(width) if k != j]
            asked = tuple(table.take(columns=kept) for table in case.asked)
            yield replace(case, table=case.table.take(columns=kept), asked=asked)
    yield from (replace(case, table=table) for table in _plainer(case.table))
    if len(case.asked) == 1:
        yield from (replace(case, asked=(table,)) for table in _plainer(case.asked[0]))


def _halves(n: int) -> Iterator[Any]:
    """Yield indices to keep: first halves, then all but an eighth and, if there are few, all but one."""
    for parts in (2, 8, *([n] if n <= 12 else [])):
        size = -(-n // parts)
        if 0 < size < n:
            yield from (np.delete(np.arange(n), slice(first, first + size)) for first in range(0, n, size))


def _simpler(estimator: Any) -> Iterator[Any]:
    """Yield estimators without a part or a parameter, or with a part replaced by its inner estimator."""
    params = {"": estimator, **estimator.get_params()}
    for name, value in params.items():
        owner, _, last = name.rpartition("__")
        others: list[Any] = []
        if isinstance(value, BaseEstimator):
            others = [part for part in map(vars(value).get, _INNER) if isinstance(part, BaseEstimator)]
            others += [value.steps[0][1]] if isinstance(value, Pipeline) and len(value.steps) == 1 else []
        elif last in _PARTS:
            others = [value[:k] + value[k + 1 :] for k in range(len(value) if len(value) > 1 else 0)]
        elif name:
            default = signature(type(params[owner])).parameters.get(last)
            others = [default.default] if default is not None and repr(default.default) != repr(value) else []
        for other in others:
            yield clone(estimator).set_params(**{name: other}) if name else other


def _plainer(table: Table) -> Iterator[Table]:
    """Yield the same rows as float64, as an array, and with fewer digits."""
    if len(table.numeric) == len(table.kinds):
        floats = ("float64",) * len(table.kinds)
        variants = [replace(table, container="array", names=None, kinds=floats), replace(table, kinds=floats)]
        if len(set(table.kinds)) == 1 and table.container != "frame":
            variants.append(replace(table, container="array"))
        variants += [replace(table, values=np.round(table.values.astype(np.float64), digits)) for digits in (0, 1)]
        yield from (other for other in variants if other.code() != table.code())


# --- Python


def as_code(case: Case, words: tuple[str, ...]) -> str:
    """Return code that fits, compiles and predicts with both models; changes other than statements become comments."""
    made = case.made
    imports = sorted(
        {f"from {_public(type(part))} import {type(part).__name__}" for _, part in parts_of(made.estimator)}
    )
    y = "" if made.y is None else f", {np.asarray(made.y).tolist()!r}"
    weights = "".join(f", {name}={np.asarray(value).tolist()!r}" for name, value in made.weights.items())
    changes = [what.partition(": ")[2] if what.startswith("parameter set: ") else f"# {what}" for what in words]
    options = "".join(f", {name}={value!r}" for name, value in case.options.items())
    lines = [
        *("import datetime", "import approxsvm, numpy as np, pandas as pd", "from numpy import *"),
        *("from scipy.sparse import *", *imports),
        f"X = {' '.join(case.table.code().split())}",
        f"source = {_plain(repr(made.estimator))}.fit(X{y}{weights})",
        *(_plain(line) for line in changes),
        f"fast = approxsvm.compile(source{', X' if case.with_sample else ''}{options})",
    ]
    for table in case.asked:
        lines += [
            f"rows = {' '.join(table.code().split())}",
            "print(source.predict(rows), fast.predict(rows), fast.certified(rows))",
        ]
    return "\n".join(lines)


def _public(cls: type) -> str:
    return re.sub(r"\._.*", "", cls.__module__)


def _plain(text: str) -> str:
    text = re.sub(r"<ufunc '(\w+)'>", r"np.\1", " ".join(text.split()))
    text = re.sub(r"<class 'numpy\.(\w+)'>", r"np.\1", text)
    return re.sub(r"<class '(\w+)'>", r"\1", text)

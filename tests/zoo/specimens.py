"""Definitions of a zoo entry, its source and compiled model, and an interface's answers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from comparison import METHODS, _Rounding, answers

import approxsvm
from approxsvm.artifact.views import Artifact
from approxsvm.errors import InputError
from approxsvm.frames.text_columns import NONE
from approxsvm.frontends import read_any
from approxsvm.frontends.sklearn.vectorizers import split
from zoo import oracle
from zoo.tables import SPARSE, Table

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Entry:
    """One source of the zoo: the estimator, its training rows and target, and the way in which it is compiled."""

    name: str
    fit: Callable[[Any, Any], Any]  # (rows, target) -> fitted source
    rows: str = "numbers"  # name of the rows for training and prediction (sources.ROWS)
    target: str = "two"  # name of the target (sources.TARGETS)
    options: Mapping[str, Any] = field(default_factory=dict)  # options of compile
    # For a source that is another program's file: function that writes the file to a folder and returns compile's
    # argument.
    write: Callable[[Any, Path], Any] | None = None
    compile: Callable[[Any, Any], Any] | None = None  # (source, rows) -> compiled model, if not approxsvm.compile
    is_exact: bool = False  # the source rounds nothing for its own rows; all their labels are certain, including ties


class RefusedError(Exception):
    """Raised by an executor for rows that the interface refuses."""


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers of one interface for n rows; None stands for answers that it does not give.

    Labels are the source's own (a regressor's values are only in `values`). Decision values, their bounds and class
    probabilities have the artifact's order and sign.
    """

    labels: Array | None = None  # (n,) or (n, n_targets)
    certified: Array | None = None  # same shape
    values: Array | None = None  # (n, n_decisions)
    bounds: Array | None = None
    probabilities: Array | None = None  # (n, n_probabilities)
    probability_bounds: Array | None = None
    scores: Array | None = None  # decision values in the form that the source returns


_OF_ROWS = ("labels", "values", "slack", "probabilities", "probability_slack")


@dataclass(frozen=True, eq=False)
class Expected:
    """The source's own answers for a table's rows."""

    refused: npt.NDArray[np.bool_]  # (n,): rows that the source refuses
    chance: npt.NDArray[np.bool_]  # (n,): rows that are in a step's domain only because of float32 rounding
    labels: Array | None  # labels of all other rows; None for regressors
    values: Array | None  # (n, n_decisions) in extended precision, from the oracle
    slack: Array | None  # bound on the rounding of `values` in the oracle
    probabilities: Array | None  # (n, n_probabilities), from the oracle
    probability_slack: Array | None
    rows: Table  # all other rows

    def take(self, kept: npt.NDArray[np.bool_]) -> Expected:
        """Return the answers for some of the rows that are not refused."""
        of_rows = {name: getattr(self, name) for name in _OF_ROWS}
        some = {name: answer if answer is None else answer[kept] for name, answer in of_rows.items()}
        return Expected(*np.zeros((2, int(kept.sum())), bool), rows=self.rows.take(kept), **some)


class Specimen:
    """A fitted source, its compiled model, and its own answers."""

    def __init__(self, name: str, source: Any, table: Table, folder: Path, entry: Entry | None = None) -> None:
        self.name, self.source, self.table, self.folder = name, source, table, folder
        self.options = dict(entry.options) if entry else {}
        self.compile = entry.compile if entry else None
        self._exact_rows = {row.tobytes() for row in table.values} if entry and entry.is_exact else set()
        self.sample: Table | None = table  # sample rows for compile
        self.compiled_from = entry.write(source, folder) if entry and entry.write else source
        self._kept: dict[Any, Any] = {}

    def once(self, key: Any, make: Callable[[Specimen], Any]) -> Any:
        """Return the object for a key, which `make` creates from this specimen on the first request."""
        if key not in self._kept:
            self._kept[key] = make(self)
        return self._kept[key]

    @cached_property
    def fast(self) -> Any:
        """The compiled estimator."""
        if self.compile is not None:
            return self.compile(self.compiled_from, self.table.make())
        sample = self.sample and self.sample.make()
        with np.errstate(all="raise"):  # compile must set an error state itself
            return approxsvm.compile(self.compiled_from, sample, **self.options)

    @property
    def artifact(self) -> Artifact:
        return self.fast.artifact

    @cached_property
    def path(self) -> Path:
        """The artifact's file."""
        path = self.folder / "model.asvm"
        self.fast.save(path)
        return path

    @cached_property
    def model(self) -> Any:
        """The source as read: a model or an ensemble."""
        model = read_any(split(self.compiled_from)[1])
        if self.options.get("labels") == "probability":
            outputs = replace(model.outputs, label_rule="probability", threshold=None)
            model = replace(model, outputs=outputs)
        return model

    @cached_property
    def labels(self) -> Array:
        """Labels by their indices in the artifact."""
        return np.array([1, -1]) if self.artifact.task == "one_class" else np.asarray(self.artifact.labels)

    def rows_of(self, table: Table, kept: npt.NDArray[np.bool_]) -> Table:
        """Return some rows of a table; every call returns the same object."""
        if kept.all():
            return table
        found: Table = self.once((table, kept.tobytes()), lambda _: table.take(kept))
        return found

    def expected(self, table: Table) -> Expected:
        """Return the answers from the source and the oracle."""
        found: Expected = self.once(("expected", table), lambda one: one._expected(table))
        return found

    def _expected(self, table: Table) -> Expected:
        refused, chance = np.zeros((2, len(table.values)), bool)
        method = "predict" if hasattr(self.source, "predict") else "score_samples"  # a density has only the latter
        if not self.once(("source takes", table.container), lambda one: one._source_takes(table.container, method)):
            table = replace(table, container="array")
        theirs = self._asked(table, method)
        if isinstance(theirs, Exception):
            for i in range(len(refused)):
                refused[i] = isinstance(self._asked(table.take(slice(i, i + 1)), method), Exception)
        elif theirs.dtype.kind == "f":  # linear models do not check sparse rows
            # The logarithm of a density of 0 is -infinity.
            lacking = np.isnan(theirs) | (np.isinf(theirs) & (method == "predict"))
            refused = lacking.reshape(len(refused), -1).any(axis=1)
        if refused.any():
            table = table.take(~refused)
            theirs = self._asked(table, method) if not refused.all() else None
        exact: dict[str, Any] = dict.fromkeys(("values", "slack", "probabilities", "probability_slack"))
        if not refused.all():
            rows = self.numbers(table)
            exact["values"], exact["slack"] = oracle.decision_values(self.model, rows)
            exact["probabilities"], exact["probability_slack"] = oracle.probabilities(self.model, rows)
            kept = ~np.isnan(exact["values"]).any(axis=1)
            if "float32" in table.kinds and not kept.all():
                chance[np.flatnonzero(~refused)[~kept]] = True
                table = table.take(kept)
                theirs = theirs if isinstance(theirs, Exception) else theirs[kept]
                exact = {name: None if numbers is None else numbers[kept] for name, numbers in exact.items()}
        is_regression = self.artifact.task == "regression"
        return Expected(
            refused,
            chance,
            labels=None if is_regression or method != "predict" or isinstance(theirs, Exception) else theirs,
            rows=table,
            **exact,
        )

    def _source_takes(self, container: str, method: str) -> bool:
        """Return whether the source answers a training row in a container; otherwise it gets an array."""
        row = replace(self.table.take(slice(1)), container=container) if container in SPARSE else self.table
        return not isinstance(self._asked(row, method), Exception)

    def _asked(self, table: Table, method: str) -> Any:
        """Return the source's own answers to one method, or the exception."""
        return self.once((method, table), lambda one: answers(one.source, table, [method])[method])

    def theirs(self, table: Table) -> dict[str, Any]:
        """Return the source's own answers to all methods."""
        return {method: self._asked(table, method) for method in METHODS}

    def certain(self, table: Table) -> npt.NDArray[np.bool_]:
        """Return a mask of labels that the source's rounding cannot change; False for rows that the package refuses."""
        try:
            self.fast.predict(table.make())
            certain = self._certain(table)
            is_exact = np.array([row.tobytes() in self._exact_rows for row in table.values])
            return certain | is_exact.reshape(-1, *[1] * (certain.ndim - 1))
        except InputError:
            if len(table.values) == 1:
                return np.zeros((1, *self._shape_of_labels), bool)
            return np.concatenate([self.certain(table.take(slice(i, i + 1))) for i in range(len(table.values))])

    @property
    def _shape_of_labels(self) -> tuple[int, ...]:
        return (self.artifact.n_targets,) if self.artifact.of_targets else ()

    def _certain(self, table: Table) -> npt.NDArray[np.bool_]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rounding = _Rounding(self.compiled_from, self.fast, table)
            vars(rounding)["_model"] = self.model  # with the requested label rule
            return np.asarray(rounding.certain)

    def numbers(self, table: Table) -> Array:
        """Return rows as float64, with codes in place of strings."""
        made = table.make()
        if hasattr(made, "toarray"):
            return np.asarray(made.toarray(), np.float64)
        try:
            rows = self.fast._rows(made)
        except InputError:  # raised for a dtype that no interface accepts
            if "cells" in table.kinds:
                raise
            rows = self.fast._rows(as_float64(table).make())
        return np.array(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)


@lru_cache(64)
def as_float64(table: Table) -> Table:
    """Return the table with numbers as float64, in a container of the same family."""
    if table.container == "texts":
        return table
    kinds = tuple("float64" if j in table.numeric else kind for j, kind in enumerate(table.kinds))
    if table.container == "frame":
        return table if kinds == table.kinds else replace(table, kinds=kinds)
    container = "CSR" if table.family == "sparse" else "array"
    if (kinds, container, table.values.dtype) == (table.kinds, table.container, np.float64):
        return table  # its answers are known
    return replace(table, values=table.values.astype(np.float64), kinds=kinds, container=container)


@lru_cache(64)
def as_dense(table: Table) -> Table:
    """Return the table as seen by an interface for dense rows, because sources compute differently for sparse rows."""
    return replace(table, container="array") if table.family == "sparse" else table


@lru_cache(64)
def as_float32(table: Table) -> Table:
    """Return the table as seen by an interface for float32 rows, with numbers as float64."""
    table = as_float64(table)
    values = table.values.copy()
    with np.errstate(over="ignore"):
        values[:, table.numeric] = values[:, table.numeric].astype(np.float32)
    return replace(table, values=values)


def with_nulls(specimen: Specimen, table: Table, *, are_none: bool = False) -> Table:
    """Return the rows with missing strings replaced by the source's own missing value, or by None."""
    values, kinds, has_nulls = table.values.copy(), list(table.kinds), False
    for j, known in specimen.artifact.texts.items():
        missing = pd.isna(values[:, j])
        if j not in table.numeric and missing.any():
            values[missing, j] = None if are_none or known.null == NONE else np.nan
            kinds[j], has_nulls = "text", True  # other kinds have their own missing value
    return replace(table, values=values, kinds=tuple(kinds)) if has_nulls else table

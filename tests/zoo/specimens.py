"""An entry of the zoo, its source, the compiled model, and the answers of an interface."""

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
from comparison import _Rounding, answers

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
    """One source of the zoo: what is fitted, on which rows, and how it is compiled."""

    name: str
    fit: Callable[[Any, Any], Any]  # rows and target -> a fitted source
    rows: str = "numbers"  # which rows it is trained on and asked about (sources.ROWS)
    target: str = "two"  # which target (sources.TARGETS)
    options: Mapping[str, Any] = field(default_factory=dict)  # of compile
    # If the source is a file of another program: writes it into a folder, returns what compile takes.
    write: Callable[[Any, Path], Any] | None = None
    compile: Callable[[Any, Any], Any] | None = None  # source and rows -> compiled, if not by approxsvm.compile
    is_exact: bool = False  # the source rounds nothing in its own rows: their labels are certain, ties included


class RefusedError(Exception):
    """Raise by an executor for rows that the interface refuses."""


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers of one interface for n rows; None where it does not give them.

    Labels are the source's own (values of a regression are in `values` alone). Decision values, their bounds and
    classes have the order and sign of the artifact.
    """

    labels: Array | None = None  # (n,) or (n, n_targets)
    certified: Array | None = None  # of the same shape
    values: Array | None = None  # (n, n_decisions)
    bounds: Array | None = None
    probabilities: Array | None = None  # (n, n_probabilities)
    probability_bounds: Array | None = None
    scores: Array | None = None  # decision values as the source gives them


_OF_ROWS = ("labels", "values", "slack", "probabilities", "probability_slack")


@dataclass(frozen=True, eq=False)
class Expected:
    """The source's own answers for the rows of a table."""

    refused: npt.NDArray[np.bool_]  # (n,): rows that the source refuses
    chance: npt.NDArray[np.bool_]  # (n,): rows that rounding in float32 alone has kept within a step's domain
    labels: Array | None  # of all other rows; None for a regression
    values: Array | None  # (n, n_decisions) in extended precision, by the oracle
    slack: Array | None  # what the oracle itself may round
    probabilities: Array | None  # (n, n_probabilities), by the oracle
    probability_slack: Array | None
    rows: Table  # all other rows

    def take(self, kept: npt.NDArray[np.bool_]) -> Expected:
        """Some of the rows that are not refused."""
        of_rows = {name: getattr(self, name) for name in _OF_ROWS}
        some = {name: answer if answer is None else answer[kept] for name, answer in of_rows.items()}
        return Expected(*np.zeros((2, int(kept.sum())), bool), rows=self.rows.take(kept), **some)


class Specimen:
    """A fitted source, what it compiles to, and its own answers."""

    def __init__(self, name: str, source: Any, table: Table, folder: Path, entry: Entry | None = None) -> None:
        self.name, self.source, self.table, self.folder = name, source, table, folder
        self.options = dict(entry.options) if entry else {}
        self.compile = entry.compile if entry else None
        self._exact_rows = {row.tobytes() for row in table.values} if entry and entry.is_exact else set()
        self.sample: Table | None = table  # which compile sees
        self.compiled_from = entry.write(source, folder) if entry and entry.write else source
        self._kept: dict[Any, Any] = {}

    def once(self, key: Any, make: Callable[[Specimen], Any]) -> Any:
        """Return what was made of this specimen under a key, made when it is first asked for."""
        if key not in self._kept:
            self._kept[key] = make(self)
        return self._kept[key]

    @cached_property
    def fast(self) -> Any:
        """The compiled estimator."""
        if self.compile is not None:
            return self.compile(self.compiled_from, self.table.make())
        sample = self.sample and self.sample.make()
        with np.errstate(all="raise"):  # compiling sets an error state of its own
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
        """The source as it is read: a model or an ensemble."""
        model = read_any(split(self.compiled_from)[1])
        if self.options.get("labels") == "probability":
            outputs = replace(model.outputs, label_rule="probability", threshold=None)
            model = replace(model, outputs=outputs)
        return model

    @cached_property
    def labels(self) -> Array:
        """Labels by their positions in the artifact."""
        return np.array([1, -1]) if self.artifact.task == "one_class" else np.asarray(self.artifact.labels)

    def rows_of(self, table: Table, kept: npt.NDArray[np.bool_]) -> Table:
        """Some rows of a table, as one object for all who ask."""
        if kept.all():
            return table
        found: Table = self.once((table, kept.tobytes()), lambda _: table.take(kept))
        return found

    def expected(self, table: Table) -> Expected:
        """Ask the source, and the oracle."""
        found: Expected = self.once(("expected", table), lambda one: one._expected(table))
        return found

    def _expected(self, table: Table) -> Expected:
        refused, chance = np.zeros((2, len(table.values)), bool)
        method = "predict" if hasattr(self.source, "predict") else "score_samples"  # of a density
        if not self.once(("source takes", table.container), lambda one: one._source_takes(table.container, method)):
            table = replace(table, container="array")
        theirs = self._asked(table, method)
        if isinstance(theirs, Exception):
            for i in range(len(refused)):
                refused[i] = isinstance(self._asked(table.take(slice(i, i + 1)), method), Exception)
        elif theirs.dtype.kind == "f":  # linear models do not look at sparse rows
            # A density of 0 has a logarithm of negative infinity.
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
        """Whether the source answers a training row in a container; if it does not, it is asked about an array."""
        row = replace(self.table.take(slice(1)), container=container) if container in SPARSE else self.table
        return not isinstance(self._asked(row, method), Exception)

    def _asked(self, table: Table, method: str) -> Any:
        """Return the source's own answers to one method, or the exception."""
        return answers(self.source, table, [method])[method]

    def certain(self, table: Table) -> npt.NDArray[np.bool_]:
        """Whether the source's own rounding does not decide the label of a row; no rows that the package refuses."""
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
            vars(rounding)["_model"] = self.model  # with the labels that were asked for
            return np.asarray(rounding.certain)

    def numbers(self, table: Table) -> Array:
        """Rows as float64, codes in place of texts."""
        made = table.make()
        if hasattr(made, "toarray"):
            return np.asarray(made.toarray(), np.float64)
        try:
            rows = self.fast._rows(made)
        except InputError:  # of a dtype that nobody answers
            if "cells" in table.kinds:
                raise
            rows = self.fast._rows(as_float64(table).make())
        return np.array(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)


@lru_cache(64)
def as_float64(table: Table) -> Table:
    """The same numbers as float64, in a container of the same family, beside the same texts."""
    if table.container == "texts":
        return table
    kinds = tuple("float64" if j in table.numeric else kind for j, kind in enumerate(table.kinds))
    if table.container == "frame":
        return replace(table, kinds=kinds)
    container = "CSR" if table.family == "sparse" else "array"
    return replace(table, values=table.values.astype(np.float64), kinds=kinds, container=container)


@lru_cache(64)
def as_dense(table: Table) -> Table:
    """The table whose rows an interface of dense rows sees: sources do not compute the same of sparse ones."""
    return replace(table, container="array") if table.family == "sparse" else table


@lru_cache(64)
def as_float32(table: Table) -> Table:
    """The table whose numbers an interface of float32 rows sees, as float64."""
    table = as_float64(table)
    values = table.values.copy()
    with np.errstate(over="ignore"):
        values[:, table.numeric] = values[:, table.numeric].astype(np.float32)
    return replace(table, values=values)


def with_nulls(specimen: Specimen, table: Table, *, are_none: bool = False) -> Table:
    """Return the rows with the source's own missing value in columns of texts, or with None: others have only one."""
    values, kinds, has_nulls = table.values.copy(), list(table.kinds), False
    for j, known in specimen.artifact.texts.items():
        missing = pd.isna(values[:, j])
        if j not in table.numeric and missing.any():
            values[missing, j] = None if are_none or known.null == NONE else np.nan
            kinds[j], has_nulls = "text", True  # other columns have a missing value of their own
    return replace(table, values=values, kinds=tuple(kinds)) if has_nulls else table

"""Python interfaces: estimators, `Predictor`, calls of any size, single rows, frames, sparse rows, threads, copies."""

from __future__ import annotations

import atexit
import contextlib
import copy
import pickle
import subprocess
import sys
from collections import namedtuple
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from sklearn.base import clone

import approxsvm
from approxsvm import _native
from approxsvm.errors import InputError
from approxsvm.ir.constants import UNIT32
from approxsvm.runtime.evaluator import (
    BOUNDS,
    CERTIFIED,
    LABELS,
    PROBABILITIES,
    PROBABILITY_BOUNDS,
    VALUES,
    Evaluator,
    Values,
    available_outputs,
    pairs_in_order,
)
from zoo.executors import Executor
from zoo.specimens import Answers, RefusedError, Specimen, with_nulls
from zoo.tables import NOT_SPARSE, Table, fitting

T = TypeVar("T")
_SIZES = (1, 2, 3, 4, 5, 8, 15, 16, 17, 33, 64, 70)  # at block boundaries, and beyond them
_LARGE = 16384


def evaluated(evaluator: Evaluator, rows: Any, values: Values = "promised", as_part: bool = False) -> Answers:
    """Return all of a model's outputs for rows in the evaluator's form."""
    artifact = evaluator.artifact
    found: dict[str, Any] = {}
    found["certified"] = evaluator._of_targets(evaluator.evaluate(rows, CERTIFIED, "settled", as_part))
    if artifact.task != "regression":
        found["labels"] = evaluator._labels[evaluator._of_targets(evaluator.evaluate(rows, LABELS, "settled", as_part))]
    numbers = [("values", "bounds", VALUES | BOUNDS)] * (artifact.n_decisions > 0)
    numbers += [("probabilities", "probability_bounds", PROBABILITIES | PROBABILITY_BOUNDS)] * (
        artifact.has_probabilities
    )
    for name, bounds, bits in numbers:
        pair = evaluator.evaluate(rows, bits, values, as_part)
        if name == "values" and artifact.has_decision_function:
            found["scores"] = np.asarray(evaluator._in_source_order(pair[0])).reshape(rows.shape[0], -1)
        found[name], found[bounds] = (np.asarray(one).reshape(rows.shape[0], -1) for one in pair)
    return Answers(**found)


def from_outputs(specimen: Specimen, outputs: Mapping[str, Any]) -> Answers:
    """Convert outputs by public name, in the source's orientation, to answers in the artifact's orientation."""
    artifact, n = specimen.artifact, len(next(iter(outputs.values())))
    columns = {name: np.asarray(one).reshape(n, -1) for name, one in outputs.items()}
    shape = (n, artifact.n_targets) if artifact.of_targets else (n,)
    found = {to: columns[name].reshape(shape) for name, to in _OF_LABELS.items() if name in columns}
    inverse = np.argsort(specimen.fast._evaluator.order, kind="stable")
    if "probability" in columns:
        found["probabilities"] = columns["probability"][:, inverse]
        if artifact.averages and "error_bound" in columns:
            found["probability_bounds"] = columns["error_bound"][:, inverse]
    if "value" in columns:
        found["scores"] = columns["value"]
    if "value" in columns and "error_bound" in columns and not artifact.averages:
        values = _as_the_artifact(artifact, columns["value"], inverse)
        if values is not None:
            found |= {"values": values, "bounds": columns["error_bound"]}
    return Answers(**found)


_OF_LABELS = {"label": "labels", "certified": "certified"}


def _as_the_artifact(artifact: Any, values: Any, inverse: Any) -> Any:
    """Return decision values in the artifact's order and sign, or None if the source gives scores."""
    if artifact.task != "classification":
        return values
    if len(artifact.labels) == 2:
        return values if artifact.labels[0] > artifact.labels[1] else -values
    if artifact.outputs.of_each_class:
        return values[:, inverse]
    return None if artifact.outputs.decision_shape == "ovr" else pairs_in_order(values, inverse)


def asked(call: Callable[[], T]) -> T:
    """Call in NumPy's strictest error state; raise the package's InputError as RefusedError."""
    try:
        with np.errstate(all="raise"):
            return call()
    except InputError as error:
        raise RefusedError(str(error)) from error


class Batch(Executor):
    """A compiled estimator, given all rows at once, with promised, settled or exact values."""

    def __init__(self, values: Values = "promised") -> None:
        self.name, self.values = "batch" if values == "promised" else f"batch, {values} values", values

    def why_not(self, specimen: Specimen) -> str:
        if self.values != "exact" or specimen.artifact.mode != "approximate":
            return ""
        try:
            evaluated(specimen.fast._evaluator, specimen.fast._rows(specimen.table.take(slice(1)).make()), "exact")
        except InputError as error:
            return "" if str(error).startswith("row") else str(error)
        return ""

    def answers(self, specimen: Specimen, table: Table) -> Answers:
        fast = specimen.fast
        return asked(lambda: evaluated(fast._evaluator, fast._rows(table.make()), self.values))


class Calls(Executor):
    """Calls of a few rows each."""

    names_row, share = False, 0.15

    def __init__(self, size: int) -> None:
        self.name, self.size = f"calls of {size} rows", size

    def answers(self, specimen: Specimen, table: Table) -> Answers:
        def ask() -> Answers:
            rows, evaluator = specimen.fast._rows(table.make()), specimen.fast._evaluator
            n = rows.shape[0]
            places = np.resize(np.arange(n), -(-n // self.size) * self.size)  # the last call wraps around
            parts = places.reshape(-1, self.size)
            return joined([evaluated(evaluator, rows[part], "settled") for part in parts], n)

        return asked(ask)


def joined(parts: list[Answers], n: int) -> Answers:
    """Concatenate the answers of successive calls, and return the first n."""
    given = {name: [vars(part)[name] for part in parts] for name in vars(parts[0])}
    return Answers(**{name: None if of[0] is None else np.concatenate(of)[:n] for name, of in given.items()})


class Large(Executor):
    """All rows, repeated many times in one call, so that threads have work."""

    names_row, share = False, 0.02

    def __init__(self, n_jobs: int) -> None:
        self.name, self.n_jobs = f"a large batch on {n_jobs} threads", n_jobs
        self.twin = Large(1) if n_jobs > 1 else None

    def answers(self, specimen: Specimen, table: Table) -> Answers:
        def ask() -> Answers:
            rows = specimen.fast._rows(table.make())
            evaluator = Evaluator(specimen.artifact, self.n_jobs)
            n = rows.shape[0]
            return joined([evaluated(evaluator, rows[np.resize(np.arange(n), _LARGE)])], n)

        return asked(ask)


class Parts(Executor):
    """Calls with few rows, whose results are bit-identical to those from a large batch, as for tables."""

    names_row, share, twin = False, 0.02, Large(1)

    def __init__(self, size: int) -> None:
        self.name, self.size = f"parts of {size} rows", size

    def answers(self, specimen: Specimen, table: Table) -> Answers:
        def ask() -> Answers:
            rows, evaluator = specimen.fast._rows(table.make()), specimen.fast._evaluator
            cuts = [rows[k : k + self.size] for k in range(0, rows.shape[0], self.size)]
            return joined([evaluated(evaluator, part, as_part=True) for part in cuts], rows.shape[0])

        return asked(ask)


# --- other objects with the same answers

BATCH = Batch()


def _copied(kind: str) -> Callable[[Specimen], Any]:
    make: dict[str, Callable[[Specimen], Any]] = {
        "load": lambda one: approxsvm.load(one.path),
        "pickle": lambda one: pickle.loads(pickle.dumps(one.fast)),
        "clone": lambda one: clone(one.fast),
        "deepcopy": lambda one: copy.deepcopy(one.fast),
        "Predictor of a path": lambda one: approxsvm.Predictor(one.path),
        "Predictor of bytes": lambda one: approxsvm.Predictor(one.path.read_bytes()),
        "Predictor, pickled": lambda one: pickle.loads(pickle.dumps(approxsvm.Predictor(one.artifact))),
    }
    return make[kind]


class Copy(Executor):
    """A copy of the compiled estimator, or a `Predictor`, whose public methods return bit-identical results."""

    share, twin = 0.08, BATCH

    def __init__(self, kind: str) -> None:
        self.name, self.kind = kind, kind

    def answers(self, specimen: Specimen, table: Table) -> Answers:
        model = specimen.once(self.kind, _copied(self.kind))

        def ask() -> Answers:
            found = evaluated(model._evaluator, model._rows(table.make()))
            if specimen.artifact.task == "regression":
                return found
            return replace(found, labels=model.predict(table.make()), certified=model.certified(table.make()))

        return asked(ask)


class Later(Executor):
    """A copy of the estimator after calls with other layouts, dtypes, containers, sizes and numbers of threads."""

    name, share, twin = "after other calls", 0.15, BATCH

    def answers(self, specimen: Specimen, table: Table) -> Answers:
        model = specimen.once(self.name, _copied("pickle"))
        for k, container in enumerate(("lists", "array", "Fortran order", "CSR", "frame", table.container)):
            dense = table.container in ("array", "lists", "Fortran order", "not contiguous", "frame")
            if dense and len(table.numeric) == len(table.kinds):
                known = getattr(model, "feature_names_in_", [f"f{j}" for j in range(len(table.kinds))])
                names = table.names or tuple(known)
                kinds = (("float32", "float64", "int8")[k % 3],) * len(table.kinds)
                values = fitting(table.values, kinds)[: len(table.values) // (k % 2 + 1)]
                other = Table(values, kinds, container, names if container == "frame" else None)
            else:
                other = table.take(slice(k % 3 + 1))
            rows = other.make()
            with contextlib.suppress(InputError):
                model.set_params(n_jobs=k % 2 + 1).predict(rows)
        return asked(lambda: evaluated(model._evaluator, model._rows(table.make())))


class Target(Executor):
    """The core's code for one instruction set."""

    share = 0.15

    def __init__(self, target: str) -> None:
        self.name, self.target = f"target {target}", target

    def _evaluator(self, specimen: Specimen) -> Evaluator:
        evaluator = Evaluator(specimen.artifact)
        unit = UNIT32 if specimen.artifact.row_dtypes.rounded else 0.0
        evaluator.native = _native.Predictor(specimen.artifact.native, self.target, float32_unit=unit)
        assert evaluator.native.target == self.target
        return evaluator

    def answers(self, specimen: Specimen, table: Table) -> Answers:
        evaluator = specimen.once(self.name, self._evaluator)
        return asked(lambda: evaluated(evaluator, specimen.fast._rows(table.make()), "settled"))


# --- one row

_FORMS: dict[str, dict[str, Callable[[Any], Any]]] = {
    "array": {
        "array": lambda made: made[0],
        "matrix": lambda made: made,
    },
    "array of float64": {"list": lambda made: made[0].tolist(), "tuple": lambda made: tuple(made[0].tolist())},
    "frame": {"frame": lambda made: made},
    "frame of float64": {
        "Series": lambda made: made.iloc[0],
        "Series in another order": lambda made: made.iloc[0][::-1],
        "dict": lambda made: dict(made.iloc[0]),
        "named tuple": lambda made: namedtuple("Row", made.columns)(*made.iloc[0]),  # type: ignore[misc]
    },
    "texts": {"text": lambda made: made[0]},
}


class OneRow(Executor):
    """`predict_one`, with or without `outputs`; the rows alternate between an array, a list, a Series, a dict, ..."""

    names_row, share = False, 0.15

    def __init__(self, all_outputs: bool) -> None:
        self.name = "predict_one, all outputs" if all_outputs else "predict_one"
        self.all_outputs = all_outputs

    def takes(self, specimen: Specimen, table: Table) -> bool:
        is_native = table.container == "array" and table.kinds[0] in ("float32", "float64")
        return is_native or table.container in ("frame", "texts")

    @staticmethod
    def _forms(specimen: Specimen, table: Table) -> list[Callable[[Any], Any]]:
        forms = dict(_FORMS[table.container])
        if table.container != "texts" and {table.kinds[j] for j in table.numeric} <= {"float64"}:
            forms |= _FORMS[f"{table.container} of float64"]
        lacking = set()
        if specimen.artifact.feature_names is None:  # a Series is read by position
            lacking = {"dict", "named tuple", "Series in another order"}
        elif not all(isinstance(name, str) and name.isidentifier() for name in table.names or ()):
            lacking = {"named tuple"}
        return [form for name, form in forms.items() if name not in lacking]

    def answers(self, specimen: Specimen, table: Table) -> Answers:
        forms = self._forms(specimen, table)
        models = (specimen.fast, specimen.once("Predictor of a path", _copied("Predictor of a path")))
        outputs = available_outputs(specimen.artifact) if self.all_outputs else None
        one_way = "value" if specimen.artifact.task == "regression" else "label"
        found: dict[str, list[Any]] = {}
        made = [table.take(slice(i, i + 1)).make() for i in range(len(table.values))]
        for i, one in enumerate(made):
            form = forms[i // 2 % len(forms)]
            answer = self._ask(models[i % 2], form(one), outputs)
            for name, part in (answer if outputs else {one_way: answer}).items():
                found.setdefault(name, []).append(part)
        if outputs is None:  # take the answer's guarantee from other methods
            beside = "error_bound" if one_way == "value" else "certified"
            found[beside] = list(asked(lambda: getattr(specimen.fast, beside)(table.make())))
        return from_outputs(specimen, {name: np.array(parts) for name, parts in found.items()})

    @staticmethod
    def _ask(model: Any, row: Any, outputs: Any) -> Any:
        try:
            return model.predict_one(row) if outputs is None else model.predict_one(row, outputs=outputs)
        except InputError as error:
            raise RefusedError(str(error)) from error


# --- containers


def _has_infinity(table: Table) -> bool:
    return bool(np.isinf(table.values.astype(np.float64)).any())


@lru_cache(64)
def _contained(table: Table, container: str) -> Table:
    """Return the rows in another container; every call returns the same object."""
    names = tuple(f"f{j}" for j in range(len(table.kinds))) if container == "frame" else None
    return replace(table, container=container, names=names)


class Container(Executor):
    """Rows in another container; the source gets the same container or, if it does not accept it, dense rows."""

    share = 0.03

    def __init__(self, container: str) -> None:
        self.name, self.container = f"rows as {container}", container
        # Few sources accept repeated entries, and a few read unsorted entries as other rows.
        self.share = {"CSR repeated": 0.2, "CSR unsorted": 0.2}.get(container, self.share)
        self.always = ("products of CSR",)  # the source computes wrong products if entries are not sorted

    def takes(self, specimen: Specimen, table: Table) -> bool:
        is_frame = table.container == "frame" and set(table.kinds) <= {"float64"}
        plain = is_frame or table.container in ("array", "CSR")
        is_held = table.kinds[0] not in ("longdouble", *NOT_SPARSE)
        splits = self.container in ("COO", "CSR repeated")  # infinity cannot be split into two addends
        return plain and table.container != self.container and is_held and not (splits and _has_infinity(table))

    def seen(self, specimen: Specimen, table: Table) -> Table:
        return _contained(table, self.container)

    def answers(self, specimen: Specimen, table: Table) -> Answers:
        return BATCH.answers(specimen, self.seen(specimen, table))


class Polars(Executor):
    """A Polars frame."""

    name, share = "a Polars frame", 0.5

    def takes(self, specimen: Specimen, table: Table) -> bool:
        has_names = all(isinstance(name, str) for name in table.names or ())
        is_held = table.container == "frame" and set(table.kinds) <= {"float64", "text", "str"}
        return has_names and is_held and table.has_texts_alone

    def seen(self, specimen: Specimen, table: Table) -> Table:
        return specimen.once(("with None", table), lambda one: with_nulls(one, table, are_none=True))

    def answers(self, specimen: Specimen, table: Table) -> Answers:
        import polars as pl

        columns = {}
        for j, name in enumerate(table.names or ()):
            column = table.values[:, j].tolist()
            columns[name] = (
                [None if isinstance(x, float) and x != x else x for x in column]
                if j not in table.numeric
                else np.asarray(column, float)
            )
        frame = pl.DataFrame(columns)
        fast = specimen.fast
        return asked(lambda: evaluated(fast._evaluator, fast._rows(frame)))


# --- NumPy alone

_ALONE = """
import pickle
import sys
from importlib.abc import MetaPathFinder

class NumPyAlone(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        root = name.partition(".")[0]
        if root not in sys.stdlib_module_names and root not in ("numpy", "approxsvm", "_approxsvm_editable"):
            raise ModuleNotFoundError(f"{name} is not there", name=name)

sys.meta_path.insert(0, NumPyAlone())
import warnings
import numpy as np
import approxsvm
warnings.simplefilter("ignore")
while True:
    try:
        path, rows, methods = pickle.load(sys.stdin.buffer)
    except EOFError:
        break
    try:
        predictor = approxsvm.Predictor(path)
        answer = {method: getattr(predictor, method)(rows) for method in methods}
    except Exception as error:
        answer = type(error).__name__, str(error)
    pickle.dump(answer, sys.stdout.buffer)
    sys.stdout.buffer.flush()
"""


@cache
def _process() -> Any:
    process = subprocess.Popen([sys.executable, "-c", _ALONE], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    atexit.register(process.kill)
    return process


class NumPyAlone(Executor):
    """`Predictor` in a process that has only NumPy; one process serves all sources."""

    name, share = "Predictor with NumPy alone", 0.15

    def why_not(self, specimen: Specimen) -> str:
        return "scipy is not there" if specimen.artifact.takes_texts else ""

    def takes(self, specimen: Specimen, table: Table) -> bool:
        is_frame = table.container == "frame" and set(table.kinds) <= {"float64", "text", "str"}
        return is_frame or table.container in ("array", "lists", "texts")

    def answers(self, specimen: Specimen, table: Table) -> Answers:
        artifact = specimen.artifact
        methods = ["predict"] + ["certified"] * (artifact.task != "regression")
        methods += ["error_bound"] * (not artifact.has_labels_alone)
        methods += ["predict_proba", "probability_bound"] * artifact.has_probabilities
        methods += ["decision_function"] * (artifact.has_decision_function and artifact.task != "regression")
        process = _process()
        made = table.make()
        rows = np.array(made, object) if isinstance(made, pd.DataFrame) else made
        pickle.dump((str(specimen.path), rows, methods), process.stdin)
        process.stdin.flush()
        answer = pickle.load(process.stdout)
        if isinstance(answer, tuple):
            if answer[0] not in ("InputError", "ModuleNotFoundError"):
                raise AssertionError(f"{answer[0]}: {answer[1]}")
            raise RefusedError(answer[1])
        outputs = {_OUTPUTS[method]: found for method, found in answer.items() if method in _OUTPUTS}
        if artifact.task == "regression":
            outputs["value"] = outputs.pop("label")
        return from_outputs(specimen, outputs)


_OUTPUTS = {
    "predict": "label",
    "certified": "certified",
    "error_bound": "error_bound",
    "predict_proba": "probability",
    "decision_function": "value",
}

PYTHON: tuple[Executor, ...] = (
    BATCH,
    Batch("settled"),
    Batch("exact"),
    *map(Calls, _SIZES),
    Large(1),
    Large(2),
    *map(Parts, (1, 7)),
    *map(
        Copy,
        (
            "load",
            "pickle",
            "clone",
            "deepcopy",
            "Predictor of a path",
            "Predictor of bytes",
            "Predictor, pickled",
        ),
    ),
    Later(),
    *map(Target, _native.runnable_targets()),
    *map(OneRow, (False, True)),
    *map(
        Container,
        (
            "frame",
            "lists",
            "Fortran order",
            "not contiguous",
            "CSR",
            "CSC",
            "BSR",
            "COO",
            "CSR unsorted",
            "CSR repeated",
            "CSR with zeros",
            "CSR of int64",
            "CSC unsorted",
        ),
    ),
    Polars(),
    NumPyAlone(),
)

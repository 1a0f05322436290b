"""Cells that are not real numbers, through every interface, for sources that read them and sources that do not.

Each is answered as the source answers it, or rejected with an InputError. Dates, durations and complex numbers are
always rejected: NumPy converts them to floats that depend on a unit or lose a part. In a list, a string of digits is
read as the number, even for sources that accept such strings only in object arrays (docs/sources.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectKBest, SequentialFeatureSelector, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.kernel_ridge import KernelRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC

import approxsvm
from approxsvm.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore:X (has|does not have)( valid)? feature names:UserWarning")

NAMES = ["a", "b", "c"]
X = np.random.default_rng(0).integers(0, 3, (60, 3)).astype(float)
LABELS = (X[:, 0] + X[:, 1] > 2).astype(int)
SOURCES: dict[str, Callable[[], Any]] = {
    "machine": SVC,
    "ridge": KernelRidge,
    "scaled": lambda: make_pipeline(StandardScaler(), SVC()),
    "passed on": lambda: make_pipeline(FunctionTransformer(), SVC()),
    "selected": lambda: make_pipeline(SelectKBest(k=2), SVC()),
    "selected, one by one": lambda: make_pipeline(
        SequentialFeatureSelector(LinearSVC(), n_features_to_select=2), SVC()
    ),
    "selected, with NaN": lambda: make_pipeline(VarianceThreshold(), SVC()),
    "by column": lambda: make_pipeline(ColumnTransformer([("a", "passthrough", [0, 1, 2])]), SVC()),
    "looked up": lambda: make_pipeline(OneHotEncoder(handle_unknown="ignore"), SVC()),
    "imputed": lambda: make_pipeline(SimpleImputer(), SVC()),
}
# These are always rejected. After them come numbers of unusual types, strings and others, some of which sources accept.
UNREAL: tuple[Any, ...] = (
    *(np.datetime64("NaT"), np.timedelta64("NaT"), np.timedelta64(1, "s"), np.datetime64("2020-01-01"), pd.NaT),
    *(pd.Timestamp("2020-01-01"), pd.Timedelta(1), 1j, np.complex64(1)),
)
OTHERS: tuple[Any, ...] = (
    *("x", "", "1", b"x", b"1", None, pd.NA, Decimal("NaN"), Decimal(1), Fraction(1), 10**400, 2**70, [1.0], (1.0,)),
    *({}, object(), np.array([1.0]), np.array(1.0), np.float16(1), np.longdouble(1), np.bool_(True), "1" * 400),
)


def _containers(cell: Any) -> Iterator[tuple[str, Any]]:
    """Yield a row before one with the cell, in each container."""
    array = np.empty((2, 3), object)
    array[...] = X[:2]
    array[1, 0] = cell
    frame = pd.DataFrame(X[:2], columns=NAMES)
    yield from (("array", array), ("lists", array.tolist()))
    yield "frame", frame.assign(a=pd.Series(array[:, 0], dtype=object))


def _row(rows: Any) -> Any:
    return rows.iloc[1] if hasattr(rows, "iloc") else rows[1]


def _doors(fast: Any, rows: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    predictor = approxsvm.Predictor(fast.artifact)
    output = ["value" if fast.artifact.task == "regression" else "label"]
    for name, model in (("", fast), ("Predictor, ", predictor)):
        yield f"{name}predict", lambda model=model: model.predict(rows)[1]
        yield f"{name}predict_one", lambda model=model: model.predict_one(_row(rows))
        yield f"{name}outputs", lambda model=model: model.predict_one(_row(rows), outputs=output)
        if hasattr(rows, "iloc"):
            record = dict(zip(NAMES, rows.to_numpy(object)[1], strict=True))
            yield f"{name}record", lambda model=model, record=record: model.predict_one(record)
            yield f"{name}row of a frame", lambda model=model: model.predict_one(rows.iloc[1:])
    yield "score", lambda: fast.score(rows, [0, 1])


def _outcome(ask: Callable[[], Any]) -> Any:
    try:
        answer = ask()
    except Exception as error:  # the source's error, of any type
        return error
    return next(iter(answer.values())) if isinstance(answer, dict) else answer


@pytest.mark.parametrize("is_frame", [False, True], ids=["arrays", "frames"])
@pytest.mark.parametrize("source", SOURCES)
def test_cells_that_are_no_real_numbers(source: str, is_frame: bool) -> None:
    """Check every cell type, container and interface."""
    fitted = SOURCES[source]().fit(pd.DataFrame(X, columns=NAMES) if is_frame else X, LABELS)
    fast = approxsvm.compile(fitted)
    wrong = []
    for cell in (*UNREAL, *OTHERS):
        for container, rows in _containers(cell):
            if is_frame != (container == "frame"):
                continue
            expected = _outcome(lambda rows=rows: fitted.predict(rows)[1])
            for door, ask in _doors(fast, rows):
                found = _outcome(ask)
                is_rejected = isinstance(found, InputError)
                if isinstance(found, Exception):
                    is_fine = is_rejected
                elif any(cell is each for each in UNREAL) or isinstance(expected, Exception):
                    is_fine = container == "lists" and "dtype='numeric'" in str(expected)
                else:
                    is_fine = door == "score" or found == pytest.approx(expected, abs=1e-6, rel=1e-9)
                if not is_fine:
                    wrong.append((cell, container, door, found, expected))
    assert not wrong


@pytest.mark.parametrize("container", ["array", "lists", "frame"])
@pytest.mark.parametrize("cell", ["x", np.timedelta64("NaT"), 1j, [1.0, 2.0]], ids=repr)
@pytest.mark.parametrize("source", ["machine", "scaled", "looked up", "by column"])
def test_the_message_names_row_and_column(source: str, cell: Any, container: str) -> None:
    """A single such cell among many is found; sample rows are checked in the same way."""
    rows = dict(_containers(cell))[container]
    fitted = SOURCES[source]().fit(pd.DataFrame(X, columns=NAMES) if container == "frame" else X, LABELS)
    fast = approxsvm.compile(fitted)
    for model in (fast, approxsvm.Predictor(fast.artifact)):
        with pytest.raises(InputError, match=r"row 1: .* column ('a'|0)|shape|real numbers"):
            model.predict(rows)
    with pytest.raises(InputError):
        approxsvm.compile(fitted, rows)

"""Values that are neither numbers nor NaN, among numbers: they are read as the source reads them, or rejected."""

import itertools
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingRegressor, StackingRegressor, VotingRegressor
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, TargetEncoder
from sklearn.svm import SVR

import approxsvm
from approxsvm.errors import InputError, UnsupportedModelError

pytestmark = [
    pytest.mark.filterwarnings("ignore:X (has|does not have)( valid)? feature names:UserWarning"),
    pytest.mark.filterwarnings("ignore::approxsvm.errors.ColumnsByPositionWarning"),
    pytest.mark.filterwarnings("ignore:`TargetEncoder:FutureWarning"),
    pytest.mark.filterwarnings("ignore:Found unknown categories:UserWarning"),
]

NUMBERS = np.random.default_rng(0).integers(0, 3, (60, 2)).astype(float)
TARGET = NUMBERS[:, 0] + np.random.default_rng(1).standard_normal(60)


def _with(*missing: Any) -> Any:
    """Return training rows, with these values as missing values in column 0; rows are floats if all are NaN."""
    rows = NUMBERS.astype(object if any(type(value) is not float for value in missing) else float)
    for k, value in enumerate(missing):
        rows[k::7, 0] = value
    return rows


ROWS = {"whole": _with(), "nan": _with(np.nan), "objects": _with(np.nan).astype(object), "none": _with(None)}
_frequent = partial(SimpleImputer, strategy="most_frequent")
_ignoring = partial(OneHotEncoder, handle_unknown="ignore")
STEPS: dict[str, Callable[[], Any]] = {
    "one-hot": _ignoring,
    "one-hot, strict": OneHotEncoder,
    "infrequent": lambda: OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=5),
    "ordinal": lambda: OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2),
    "target": lambda: TargetEncoder(random_state=0),
    "mean": SimpleImputer,
    "most frequent": _frequent,
    "constant": lambda: SimpleImputer(strategy="constant", fill_value=1),
    "marks": lambda: make_union(_frequent(), MissingIndicator(features="all")),
    "mean and marks": lambda: make_union(SimpleImputer(), MissingIndicator(features="all")),
    "imputed, then one-hot": lambda: make_pipeline(_frequent(), _ignoring()),
    "mean, then one-hot": lambda: make_pipeline(SimpleImputer(), _ignoring()),
    "nothing, then imputed": lambda: make_pipeline(FunctionTransformer(), _frequent()),
}
CELLS: tuple[Any, ...] = (
    *(None, np.nan, np.float32("nan"), Decimal("NaN"), Decimal("1"), "nan", "1", pd.NaT, pd.NA, 1, True, np.int64(2)),
    *(np.datetime64("NaT"), np.timedelta64("NaT"), np.timedelta64(1, "s")),
)


def _containers(cell: Any) -> Iterator[tuple[str, Any]]:
    rows = [[1.0, 2.0], [cell, 0.0], [0.0, 1.0]]
    array = np.empty((3, 2), object)
    for k, row in enumerate(rows):
        array[k, :] = row
    frame = pd.DataFrame({"a": pd.Series(array[:, 0], dtype=object), "b": array[:, 1].astype(float)})
    yield from (("list", rows), ("array", array), ("frame", frame), ("frame of objects", frame.astype(object)))
    if cell is None or cell is pd.NA:
        for kind in ("Int64", "Float64", "float64[pyarrow]"):
            yield kind, frame.assign(a=pd.Series([1, None, 0], dtype=kind))
    if cell is None:
        yield "Polars", pl.DataFrame({"a": [1.0, None, 0.0], "b": [2.0, 0.0, 1.0]})


def _answers(predict: Callable[[Any], Any], rows: Any) -> Any:
    try:
        return np.asarray(predict(rows), float)
    except (ValueError, TypeError, ArithmeticError) as error:  # InputError is a ValueError
        return error


def _alone(predict_one: Callable[[Any], Any], rows: Any) -> list[Any]:
    """Predict the row with the cell."""
    if hasattr(rows, "iloc"):
        return [predict_one(rows.iloc[1])]
    return [predict_one(rows[1:2] if hasattr(rows, "columns") else rows[1])]


def _check(source: Any, as_arrays: bool, first: int | None = None) -> int:
    """Compare all cells in all containers; return the number of answers to values that are not numeric.

    If `first` is 0 or 1, the estimator and the Predictor take turns, for None, NaN and every other cell from the first
    or second; otherwise, each container of every cell goes to both.
    """
    fast = approxsvm.compile(source)
    predictor, n_taken = approxsvm.Predictor(fast.artifact), 0
    halves = [
        (fast.predict, fast.predict),  # the second time, a frame is known
        (predictor.predict, partial(_alone, fast.predict_one)),
    ]
    turns = itertools.cycle([sum(halves, ())] if first is None else [halves[first], halves[1 - first]])
    for cell in CELLS if first is None else (*CELLS[:2], *CELLS[2 + first :: 2]):
        for name, rows in _containers(cell):
            if not (as_arrays or hasattr(rows, "columns")):
                continue
            given = [found for call in next(turns) if not isinstance(found := _answers(call, rows), Exception)]
            if not given:
                continue
            n_taken += len(given) * (not isinstance(cell, (int, float)))
            expected = _answers(source.predict, rows)
            # If fitted on objects, scikit-learn fails for typed columns.
            fails = isinstance(expected, TypeError) and ("isnan" in str(expected) or "ambiguous" in str(expected))
            if fails and name != "array":
                continue
            assert not isinstance(expected, Exception), (cell, name, given, expected)
            for found in given:
                of_these = expected if len(found) == len(expected) else expected[1:2]
                np.testing.assert_allclose(found, of_these, atol=1e-5, err_msg=f"{cell!r} in {name}")
    return n_taken


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("step", STEPS)
def test_cells_are_taken_as_the_source_takes_them_or_rejected(step: str, rows: str) -> None:
    """Check every kind of value in every container, for models fitted on arrays and, every other one, on frames."""
    k = list(ROWS).index(rows)
    parity = (list(STEPS).index(step) + k) % 2
    for as_frame in (False, True)[: 1 + parity]:
        turn = k // 2 if as_frame else parity
        given = pd.DataFrame(ROWS[rows], columns=["a", "b"]) if as_frame else ROWS[rows]
        inner = STEPS[step]()
        first = ColumnTransformer([("a", inner, ["a"])], remainder="passthrough") if as_frame else inner
        source = make_pipeline(first, SVR(gamma=0.5, C=10))
        try:
            source.fit(given, TARGET)
        except ValueError:
            assert rows == "none", "only None may be rejected by the source itself"
            return
        if (step, rows) == ("imputed, then one-hot", "none"):
            with pytest.raises(UnsupportedModelError, match="None is a category of its column 0"):
                approxsvm.compile(source)
        else:
            assert _check(source, not as_frame, turn) > 0, "no value that a step could confuse was taken"


CATEGORIES: tuple[tuple[list[Any], str], ...] = (
    ([0.0, 1.0, 2.0, None], ""),
    ([None, 0.0, 1.0, 2.0], ""),
    ([0.0, 1.0, 2.0, np.nan], ""),
    ([2.0, 0.0, 1.0, np.nan], ""),
    ([0.0, 1.0, 2.0, None, np.nan], "None and NaN are two categories"),
    ([0.0, 1.0, Decimal("2")], "neither a number nor a text"),
    ([0.0, 1.0, 2.0, Decimal("NaN")], "neither a number nor a text"),
    ([0.0, 1.0, 2.0, pd.NaT], "neither a number nor a text"),
    ([0.0, 1.0, 2.0, np.datetime64("NaT")], "neither a number nor a text"),
    ([0.0, 1.0, 2.0, pd.NA], "neither a number nor a text"),
    ([0.0, 1.0, 2.0, "nan"], "in addition to texts"),
)


@pytest.mark.parametrize(("categories", "refused"), CATEGORIES, ids=repr)
@pytest.mark.parametrize("encoder", [OneHotEncoder, OrdinalEncoder, TargetEncoder], ids=lambda kind: kind.__name__)
def test_explicit_categories_that_are_not_numbers(encoder: Any, categories: list[Any], refused: str) -> None:
    """Such categories match the same values as in the source, or else the model is rejected."""
    options = {
        OneHotEncoder: {"handle_unknown": "ignore"},
        OrdinalEncoder: {"handle_unknown": "use_encoded_value", "unknown_value": -1, "encoded_missing_value": -2},
    }.get(encoder, {"random_state": 0})
    step = encoder(categories=[categories, [0.0, 1.0, 2.0]], **options)
    source = make_pipeline(step, SVR(gamma=0.5, C=10))
    try:
        source.fit(_with(categories[-1] if len(categories) > 3 else 2.0).astype(object), TARGET)
    except (ValueError, TypeError, ArithmeticError):
        assert refused, "scikit-learn rejects only what is neither a number nor missing"
        return
    if refused:
        with pytest.raises(UnsupportedModelError, match=refused):
            approxsvm.compile(source)
    else:
        assert _check(source, True) > 0


@pytest.mark.parametrize("members", [BaggingRegressor, VotingRegressor, StackingRegressor], ids=lambda k: k.__name__)
def test_members_of_ensembles_tell_none_from_nan(members: Any) -> None:
    """The ensemble takes its members' encoders into account."""
    member = make_pipeline(_ignoring(), SVR(gamma=0.5, C=10))
    given = member if members is BaggingRegressor else [("a", member), ("b", SVR())]
    if members is not BaggingRegressor:
        given[1] = ("b", make_pipeline(_frequent(), SVR()))
    options = {"final_estimator": Ridge()} if members is StackingRegressor else {}
    assert _check(members(given, **options).fit(ROWS["nan"], TARGET), True) > 0


def test_the_message_names_the_value_and_the_missing_one() -> None:
    """An error for None states its position and the accepted values."""
    fast = approxsvm.compile(make_pipeline(_frequent(), SVR()).fit(ROWS["nan"], TARGET))
    for rows in ([[1.0, 2.0], [None, 0.0]], np.array([[1.0, 2.0], [None, 0.0]], object)):
        with pytest.raises(InputError, match="row 1: a number or NaN is needed in column 0, got None, which"):
            fast.predict(rows)
    none = approxsvm.compile(make_pipeline(_ignoring(), SVR()).fit(ROWS["none"], TARGET))
    with pytest.raises(InputError, match=r"row 0: a number or None is needed in column 0, got nan"):
        none.predict(np.array([[np.nan, 1.0]], object))


@pytest.mark.parametrize("rows", ["nan", "none"])
def test_none_of_a_mapping_is_the_source_s_missing_value(rows: str) -> None:
    """Mappings have a single missing value: absent keys and None stand for the source's missing value."""
    source = make_pipeline(_ignoring(), SVR()).fit(pd.DataFrame(ROWS[rows], columns=["a", "b"]), TARGET)
    fast = approxsvm.compile(source)
    missing = None if rows == "none" else np.nan
    frame = pd.DataFrame({"a": pd.Series([missing], dtype=ROWS[rows].dtype), "b": [1.0]})
    expected = source.predict(frame.astype(ROWS[rows].dtype))[0]
    for record in ({"a": None, "b": 1.0}, {"b": 1.0}):
        assert fast.predict_one(record) == pytest.approx(expected, abs=1e-5)
        assert fast.predict_one(record, outputs=["value"])["value"] == pytest.approx(expected, abs=1e-5)

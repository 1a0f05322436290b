"""Frames, mappings and sequences that the core reads itself, compared with the general path and the source.

A frame with known columns and dtypes is read column by column. Random frames with random dtypes, column orders and gaps
take both paths, and the results must agree row by row. The same holds for random mappings and for sequences of odd
values.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler, TargetEncoder
from sklearn.svm import SVC

import approxsvm
from approxsvm.errors import InputError
from approxsvm.frames.known_frames import KnownFrames
from approxsvm.runtime import evaluator

pytestmark = pytest.mark.filterwarnings("ignore")
N_TRAINING, N_SCHEMAS = 200, 8
TEXTS = np.array(["a", "b", "Köln", "x" * 40, "1.5", "nan", ""], dtype=object)
ODD_NUMBERS = [
    *(np.nan, None, pd.NA, True, "1.5", "x", 2**53 + 1, 2**70, Decimal("1.5"), np.float32(0.1), np.int64(3), pd.NaT),
    *(1e300, np.inf, -2, 7, "", b"1"),
]
ODD_TEXTS = [
    *("unseen", "a ", "\ud800", "a\0", "\N{PILE OF POO}", "Köln", "1.5", "nan", "", np.nan, None, pd.NA, 1.5, True, 7),
    *(np.str_("a"), b"a", pd.NaT, Decimal("nan"), ("a",)),
]
NUMBER_TYPES = [
    *("float64", "float64", "float64", "float32", "float16", "longdouble", "int64", "int32", "uint8", "uint64", "bool"),
    *("object", "object", "Float64", "Int64", "boolean", "Float32", "double[pyarrow]", "int64[pyarrow]", "category"),
    *("bool[pyarrow]", "float[pyarrow]", "Sparse[float64]"),
]
TEXT_TYPES = [
    "object",
    "object",
    "str",
    "string",
    "string[pyarrow]",
    "string[python]",
    "category",
    "category of string",
]
_RNG = np.random.default_rng(5)
FULL = pd.DataFrame(
    {
        "n0": _RNG.normal(40, 10, N_TRAINING).round(1),
        "n1": _RNG.normal(size=N_TRAINING),
        "t0": TEXTS[_RNG.integers(5, size=N_TRAINING)],
        "t1": TEXTS[_RNG.integers(7, size=N_TRAINING)],
        "k": _RNG.integers(0, 4, N_TRAINING).astype(float),
        "unused": _RNG.normal(size=N_TRAINING),
    }
).astype({"t0": object, "t1": object})
Y = np.where(np.sin(FULL["n0"] / 3) + (FULL["t0"] == "a") + _RNG.normal(0, 0.3, N_TRAINING) > 0.5, "yes", "no")
WITH_NONE = FULL.copy()
WITH_NONE.loc[::7, "n0"] = np.nan
WITH_NONE.loc[::5, "t0"] = None
WITH_NONE.loc[3::9, "t1"] = np.nan
WITH_NAN = WITH_NONE.assign(t0=WITH_NONE["t0"].where(WITH_NONE["t0"].notna(), np.nan))
IMPUTED = make_pipeline(SimpleImputer(), StandardScaler())
ENCODER = OneHotEncoder(handle_unknown="ignore")
GAPS = make_union(SimpleImputer(strategy="most_frequent"), MissingIndicator(features="all"))
FREQUENT = make_pipeline(SimpleImputer(strategy="most_frequent"), ENCODER)
ORDINAL = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
RARE = OneHotEncoder(min_frequency=0.2, handle_unknown="infrequent_if_exist")
SOURCES = {
    "imputed": (make_column_transformer((IMPUTED, ["n0", "n1"]), (FREQUENT, ["t0", "t1"])), WITH_NAN),
    "refuses": (make_column_transformer((StandardScaler(), ["n0"]), (OneHotEncoder(), ["t0", "t1"])), FULL),
    "None is known": (make_column_transformer((IMPUTED, ["n0"]), (ENCODER, ["t0"])), WITH_NONE),
    "None, refuses": (make_column_transformer((IMPUTED, ["n0"]), (OneHotEncoder(), ["t0", "t1"])), WITH_NONE),
    "looked up": (make_column_transformer((ENCODER, ["k", "t1"]), (IMPUTED, ["n0"])), FULL),
    "ordinal": (make_column_transformer((ORDINAL, ["k", "t0"]), ("passthrough", ["n1"])), FULL),
    "target": (make_column_transformer((TargetEncoder(random_state=0), ["t0"]), (StandardScaler(), ["n1"])), WITH_NAN),
    "infrequent": (make_column_transformer((MinMaxScaler(), ["n0", "n1"]), (RARE, ["t1"])), FULL),
    "numbers": (make_column_transformer((IMPUTED, ["n0", "n1"])), WITH_NONE),
    "compared": (
        make_column_transformer((GAPS, ["n0", "n1"]), (ENCODER, ["k"])),
        WITH_NAN.assign(k=WITH_NAN["n0"] // 9),
    ),
    "in order": (IMPUTED, WITH_NONE[["n0", "n1", "k"]]),
    "in order, texts": (ENCODER, FULL[["t0", "t1"]]),
}


class NothingKnown:
    """A stand-in that sends every frame down the general path."""

    def rows(self, frame: Any) -> None:
        return None

    def learn(self, frame: Any, rows: Any) -> None:
        return None


@pytest.fixture(scope="module", params=SOURCES)
def models(request: pytest.FixtureRequest) -> tuple[Any, Any, list[tuple[Any, Any]]]:
    """Return a source, its training frame, and pairs of a model and the same model on the general path."""
    step, frame = SOURCES[request.param]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source = make_pipeline(step, SVC()).fit(frame, Y)
    artifact = approxsvm.compile(source, frame).artifact
    pairs = []
    for make in (evaluator_of_estimator, approxsvm.Predictor):
        known, general = make(artifact), make(artifact)
        general._evaluator.__dict__["frames"] = NothingKnown()
        pairs.append((known, general))
    return source, frame, pairs


def evaluator_of_estimator(artifact: Any) -> Any:
    from approxsvm.estimators import estimator_for

    return estimator_for(artifact)


# --- random frames


def one(rng: Any, *things: Any) -> Any:
    return things[rng.integers(len(things))]


def numbers(rng: Any, n_rows: int) -> Any:
    kind, missing = one(rng, *NUMBER_TYPES), rng.random(n_rows) < one(rng, 0, 0, 0.2)
    values = rng.choice([*rng.normal(40, 10, 3).round(1), 0.0, 1.0, 2.0, 3.0, -1.0, 5.0], n_rows)
    if kind == "object":
        odd = [one(rng, *ODD_NUMBERS) if rng.random() < 0.1 else value for value in values.tolist()]
        return pd.Series(odd, dtype=object)
    if "int" in kind.lower() or "bool" in kind:
        values = np.rint(np.abs(values)) if "int" in kind.lower() else values > 1
    takes_gaps = kind[0].isupper() or "[" in kind or kind in ("float64", "float32", "boolean", "category")
    series = pd.Series(values).astype(kind)
    if "int64" in kind.lower() and rng.random() < 0.2:
        series[0] = 2**53 + 1
    return series.mask(pd.Series(missing)) if takes_gaps else series


def texts(rng: Any, n_rows: int) -> Any:
    kind, missing = one(rng, *TEXT_TYPES), rng.random(n_rows) < one(rng, 0, 0, 0.2)
    known = [str(one(rng, *TEXTS)) if rng.random() < 0.9 else str(one(rng, *ODD_TEXTS[3:9])) for _ in range(n_rows)]
    if kind == "object":
        odd = [one(rng, *ODD_TEXTS) if rng.random() < 0.05 else value for value in known]
        return pd.Series(odd, dtype=object).mask(pd.Series(missing), one(rng, None, np.nan))
    of_strings = pd.Series(known, dtype="string" if kind.endswith("string") else object)
    series = of_strings.astype(kind.removesuffix(" of string"))
    series[missing] = None
    return series


def frame_of(rng: Any, names: list[str], n_rows: int) -> Any:
    """Return a frame with these columns; sometimes types are exchanged or are neither numbers nor strings."""
    columns = {}
    for name in names:
        made = texts(rng, n_rows) if (name[0] == "t") != (rng.random() < 0.03) else numbers(rng, n_rows)
        columns[name] = pd.Series(pd.date_range("2020", periods=n_rows)) if rng.random() < 0.01 else made
    frame = pd.DataFrame(columns)
    if rng.random() < 0.3:
        frame = frame[list(rng.permutation(frame.columns))]
    if rng.random() < 0.15:
        frame = frame.assign(more=one(rng, 1, "x", pd.Timestamp("2020")))
    if rng.random() < 0.05:
        frame = frame.drop(columns=one(rng, *frame.columns))
    if rng.random() < 0.05:
        frame = pd.concat([frame, frame[[one(rng, *frame.columns)]]], axis=1)
    return frame


def with_odd_cells(rng: Any, frame: Any) -> Any:
    """Return other rows with the same columns and dtypes."""
    other = frame.iloc[rng.integers(len(frame), size=one(rng, 1, 1, 2, 5, 17))].reset_index(drop=True)
    for _ in range(int(rng.integers(0, 4))):
        i, j = int(rng.integers(len(other))), int(rng.integers(other.shape[1]))
        if str(other.dtypes.iloc[j]) == "object":
            other.iat[i, j] = one(rng, *(ODD_TEXTS[:-1] if isinstance(other.iat[i, j], str) else ODD_NUMBERS))
        elif not str(other.dtypes.iloc[j]).startswith(("int", "uint", "bool", "Sparse")):
            other.iat[i, j] = None
    return other


def containers(rng: Any, frame: Any) -> Iterator[Any]:
    """Yield the frame, or other libraries' versions of it."""
    kind = one(rng, "pandas", "pandas", "pandas", "polars", "pyarrow")
    if kind == "pandas":
        yield frame
        return
    library = pytest.importorskip(kind)
    try:
        made = library.from_pandas(frame) if kind == "polars" else library.Table.from_pandas(frame)
    except Exception:  # these libraries do not support some columns
        return
    yield made
    if kind == "pyarrow" and len(frame):
        yield made.to_batches()[0]


def outcome(call: Callable[..., Any], *arguments: Any) -> Any:
    """Return an answer, or an error message."""
    try:
        return np.asarray(call(*arguments))
    except (ValueError, TypeError) as error:
        return str(error)


def is_same(some: Any, others: Any) -> bool:
    if isinstance(some, str) or isinstance(others, str):
        return isinstance(some, str) and isinstance(others, str) and some == others
    return np.array_equal(np.asarray(some, np.float64), np.asarray(others, np.float64), equal_nan=True)


def test_frames_go_as_the_general_way_has_them(models: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    source, training, pairs = models
    rng, n_known, read = np.random.default_rng(len(training.columns)), 0, KnownFrames._read

    def counted(self: Any, layout: Any, plan: Any) -> Any:
        nonlocal n_known
        rows = read(self, layout, plan)
        n_known += rows is not None
        return rows

    monkeypatch.setattr(KnownFrames, "_read", counted)
    for _ in range(N_SCHEMAS):
        first = frame_of(rng, list(training.columns), int(one(rng, 1, 2, 17)))
        for frame in [first, *(with_odd_cells(rng, first) for _ in range(3))]:
            for given in containers(rng, frame):
                for known, general in pairs:
                    found, wanted = outcome(known._rows, given), outcome(general._rows, given)
                    assert is_same(found, wanted), (frame.dtypes, frame)
                if type(given).__module__.startswith("pyarrow"):
                    continue  # its null stands for the source's missing value, None or NaN
                labels, expected = outcome(pairs[0][0].predict, given), outcome(source.predict, given)
                if not (isinstance(labels, str) or isinstance(expected, str)):
                    assert labels.tolist() == expected.tolist(), (frame.dtypes, frame)
    for _ in range(3):
        assert outcome(pairs[1][0].predict, training).tolist() == source.predict(training).tolist()
    assert n_known > N_SCHEMAS


EXTENSION_TYPES = {
    **{
        kind: kind for kind in ("float64", "uint8", "bool", "Float64", "Int8", "boolean", "double[pyarrow]", "category")
    },
    **{"bool[pyarrow]": "bool[pyarrow]", "Sparse of zeros": pd.SparseDtype(float, 0.0)},
    **{f"Sparse[{kind}]": f"Sparse[{kind}]" for kind in ("float64", "int64", "bool")},
}
WHOLE = pd.DataFrame({"a": np.tile([0.0, 1.0, 1.0], 8), "b": np.tile([1.0, 0.0], 12)})
OF_WHOLE = [
    make_pipeline(step, SVC()).fit(WHOLE, np.tile(["no", "yes", "yes", "no"], 6))
    for step in (None, SimpleImputer(strategy="most_frequent"), clone(ENCODER))
]


@pytest.mark.parametrize("kind", EXTENSION_TYPES)
def test_every_column_type_serves_the_calls_after_the_first(kind: str) -> None:
    """Each extension type is tested with others, before and after them in turn: three calls, and a single row."""
    n_answers = 0
    for k, source in enumerate(OF_WHOLE):
        fast = approxsvm.compile(source)
        for i, other in enumerate(("float64", "Int8", "Sparse[float64]", "Sparse of zeros")):
            kinds = dict(zip("ab" if (k + i) % 2 else "ba", (kind, other), strict=True))
            frame = WHOLE.astype({name: EXTENSION_TYPES[chosen] for name, chosen in kinds.items()})
            expected = outcome(source.predict, frame)
            for model in (fast, approxsvm.Predictor(fast.artifact)):
                calls = [outcome(model.predict, frame) for _ in range(3)]
                if not (isinstance(calls[0], str) or isinstance(expected, str)):
                    n_answers += 1
                    assert all(np.array_equal(call, expected) for call in calls), kinds
                    assert model.predict_one(frame.iloc[:1]) == expected[0]
                else:
                    assert len({*map(str, calls)}) == 1, kinds
    assert n_answers > 8


ARROW_TYPES = {
    **{str(kind): kind for kind in (pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.bool_())},
    "decimal": pa.decimal128(21, 2),
    "dictionary": pa.dictionary(pa.int8(), pa.float64()),
}
POLARS_TYPES = {
    **{str(kind): kind for kind in (pl.Int8, pl.UInt64, pl.Float32, pl.Float64, pl.Boolean, pl.Decimal(5, 2))},
}


def _typed_frames(library: str, kind: str, k: int) -> Iterator[Any]:
    """Yield frames with a column of one type and one of another, in an order that depends on k."""
    table = pa.Table.from_pandas(WHOLE, preserve_index=False)
    for a, b, names in (kind, "double", "ab" if k % 2 else "ba"), (kind, "int8", "ba" if k % 2 else "ab"):
        if library == "pyarrow":
            kinds = dict(zip(names, (ARROW_TYPES[a], ARROW_TYPES[b]), strict=True))
            yield pa.table({n: _as_arrow(table[n], kinds[n]) for n in ("a", "b")})
            yield pa.table({n: _as_arrow(table[n], kinds[n]) for n in ("a", "b")}).to_batches()[0]
        else:
            other = {"double": "Float64", "int8": "Int8"}[b]
            yield pl.from_pandas(WHOLE).cast(dict(zip(names, (POLARS_TYPES[a], POLARS_TYPES[other]), strict=True)))


def _as_arrow(column: Any, kind: Any) -> Any:
    if pa.types.is_dictionary(kind):
        return column.combine_chunks().dictionary_encode().cast(kind)
    return column.cast(pa.int64()).cast(kind) if not pa.types.is_floating(kind) else column.cast(kind)


@pytest.mark.parametrize(
    ("library", "kind"), [*(("pyarrow", kind) for kind in ARROW_TYPES), *(("polars", kind) for kind in POLARS_TYPES)]
)
def test_every_type_of_arrow_and_polars_serves_the_calls_after_the_first(library: str, kind: str) -> None:
    """For any two types, in both orders and in every interface, the second and third calls answer like the first."""
    n_answers = 0
    for k, source in enumerate(OF_WHOLE):
        fast = approxsvm.compile(source)
        for frame in _typed_frames(library, kind, k):
            for model in (fast, approxsvm.Predictor(fast.artifact)):
                for door in (model.predict, model.decision_function, model.error_bound, model.certified):
                    calls = [outcome(door, frame) for _ in range(3)]
                    assert all(map(is_same_call, calls[1:], calls[:1] * 2)), (calls, frame)
                labels = outcome(model.predict, frame)
                if not isinstance(labels, str):
                    n_answers += 1
                    assert model.predict_one(frame[:1]) == labels[0]
                    assert labels.tolist() == source.predict(WHOLE).tolist()
    assert n_answers > 0


def is_same_call(some: Any, others: Any) -> bool:
    """Return whether two calls gave the same answer, or the same message."""
    return some == others if isinstance(some, str) else np.array_equal(some, others)


# --- rows of Python values


def test_mappings_and_sequences_go_as_the_general_way_has_them(models: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, training, pairs = models
    known, general = pairs[1]
    rng, n_answers = np.random.default_rng(1), 0
    for k in range(60):
        row = {name: training[name].iloc[k % len(training)] for name in training.columns}
        for _ in range(int(rng.integers(0, 3))):
            name = one(rng, *row)
            row[name] = one(rng, *(ODD_TEXTS if name[0] == "t" else ODD_NUMBERS))
        for name in list(row):
            if rng.random() < 0.05:
                del row[name]
        if rng.random() < 0.2:
            row[one(rng, "more", "n9", 7)] = 1.0
        for given in (row, list(row.values()), tuple(row.values())):
            found = outcome(known.predict_one, given)
            monkeypatch.setattr(evaluator, "_PYTHON_ROWS", ())
            wanted = outcome(general.predict_one, given)
            monkeypatch.undo()
            assert isinstance(found, str) == isinstance(wanted, str), (given, found, wanted)
            if not isinstance(found, str):
                n_answers += 1
                assert found == wanted, given
                assert known.predict_one(given, outputs=["label"])["label"] == wanted
    assert n_answers > 30


def test_keys_that_are_no_names_do_not_disturb(models: Any) -> None:
    """A mapping's keys may be any objects that support comparison, even ones that predict while they are compared."""
    source, training, pairs = models
    known, name = pairs[1][0], training.columns[0]
    full = training[training.notna().all(axis=1)]
    rows = full.to_dict("records")[:2]
    expected = source.predict(full[:2]).tolist()

    class Nosy:
        def __hash__(self) -> int:
            return hash(name)

        def __eq__(self, other: object) -> bool:
            known.predict_one(rows[1])
            return False

    assert known.predict_one(rows[0]) == expected[0]
    with pytest.raises(InputError, match="column names must be strings"):
        known.predict_one({Nosy(): 1, **rows[0]})

"""Arrow columns: the same numbers as from matrices, for any types and layout, and a message for every invalid row."""

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.svm import SVC

import approxsvm
from approxsvm.errors import ColumnsByPositionWarning, InputError

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed; it is the extra arrow")

from approxsvm.integrations.arrow import columns as arrow_columns  # noqa: E402

X, SPECIES = load_iris(return_X_y=True)
TWO = SPECIES > 0
NAMES = np.array(["setosa", "versicolor", "virginica"])[SPECIES]
FEATURES = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
ROWS = np.concatenate([X + 0.1, X[::-1] * 1.01])
FRAME = pd.DataFrame(ROWS, columns=FEATURES)


by_position = pytest.mark.filterwarnings("ignore::approxsvm.errors.ColumnsByPositionWarning")


@pytest.fixture(scope="module")
def named():
    """Return a model fitted with names."""
    frame = pd.DataFrame(X, columns=FEATURES)
    return approxsvm.Predictor(approxsvm.compile(SVC().fit(frame, NAMES), frame).artifact)


def stacked(table, output):
    """Return one output of a table, in the corresponding method's shape."""
    found = [table.column(k).to_numpy() for k, name in enumerate(table.schema.names) if name.startswith(output)]
    return found[0] if len(found) == 1 else np.stack(found, axis=1)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (np.array(["no", "yes"]), pa.string()),
        (np.array(["no", "yes"], object), pa.string()),
        (np.array([3, 5], np.int8), pa.int8()),
        (np.array([3, 5]), pa.int64()),
        (np.array([3, 2**64 - 1], np.uint64), pa.uint64()),
        (np.array([False, True]), pa.bool_()),
        (np.array([3.0, 5.0]), pa.float64()),
    ],
)
@by_position
def test_labels_keep_their_type(labels, kind):
    fast = approxsvm.compile(SVC().fit(X, labels[TWO.astype(int)]), X)
    found = approxsvm.Predictor(fast.artifact).predict_arrow(FRAME)["label"]
    assert found.type == kind
    assert found.to_pylist() == fast.predict(ROWS).tolist()


def test_columns_are_found_by_name(named):
    table = pa.table(FRAME[FEATURES[::-1]].assign(id=range(len(ROWS)), word="x"))
    found = named.predict_arrow(table, keep=["word", "id"])
    assert found.schema.names == ["word", "id", "label"]
    assert found["label"].to_pylist() == named.predict(ROWS).tolist()
    with pytest.raises(InputError, match=r"no column 'petal_width' and no 'sepal_width', only 'word'"):
        named.predict_arrow(
            table.select(["word", "petal_length", "sepal_length"]), columns=FEATURES[3::-2] + ["word"] * 2
        )
    with pytest.raises(InputError, match="there is no column 'sepal_width', only"):
        named.predict_arrow(table.drop_columns(["sepal_width"]))
    with pytest.raises(InputError, match="there is no column 'day', only"):
        named.predict_arrow(table, keep=["day"])
    twice = pa.Table.from_arrays(
        [*table.columns, table["id"], table["petal_width"]], [*table.schema.names, "id", "petal_width"]
    )
    with pytest.raises(InputError, match="several columns 'petal_width'"):
        named.predict_arrow(twice)
    with pytest.raises(InputError, match="several columns 'id'"):
        named.predict_arrow(twice.drop_columns([]), keep=["id"], columns=["word"] * 4)
    with pytest.raises(InputError, match="two columns of the output would be named 'label'"):
        named.predict_arrow(table, keep=["label"])


def test_columns_without_names_go_by_position():
    """The columns f0, f1, ... are read if present, in any order; otherwise, all columns that are not kept."""
    predictor = approxsvm.Predictor(approxsvm.compile(SVC().fit(X, NAMES), X).artifact)
    answer = predictor.predict(ROWS).tolist()
    told = r"no names for its features: by position, the columns 'sepal_length', .* are taken for features 0 to 3"
    with pytest.warns(ColumnsByPositionWarning, match=told) as caught:
        assert predictor.predict_arrow(FRAME)["label"].to_pylist() == answer
    assert caught[0].filename == __file__
    with pytest.warns(ColumnsByPositionWarning, match=told):
        kept = predictor.predict_arrow(FRAME.assign(id=1), keep=["id"])
    assert kept["label"].to_pylist() == answer
    with pytest.warns(ColumnsByPositionWarning, match="the column 'v' is taken for lists of all 4"):
        lists = predictor.predict_arrow(pa.table({"v": list(ROWS)}))
    assert lists["label"].to_pylist() == answer
    numbered = FRAME.set_axis([f"f{k}" for k in range(4)], axis=1).assign(id=1)[["id", "f3", "f1", "f0", "f2"]]
    assert predictor.predict_arrow(numbered)["label"].to_pylist() == answer
    with pytest.raises(InputError, match=r"5 columns for features \(.*'id'\), but the model has 4 features"):
        predictor.predict_arrow(FRAME.assign(id=1))
    with pytest.raises(InputError, match="3 columns are given, but the model has 4"):
        predictor.predict_arrow(FRAME, columns=FEATURES[:3])


MISSING = "there is no column 'f1', but other features have such names; choose columns"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["id", "f0", "f2", "f3"], MISSING),
        (["f0", "f2", "f3", "id"], MISSING),
        (["f0", "f2", "f3", "F1"], MISSING),
        (["f0", "f2", "f3"], MISSING),
        (["f1", "f2", "f3", "f4"], "there is no column 'f0', but"),
        (
            ["id", "F0", "F2", "F3"],
            "'F0', 'F2', 'F3' are numbered, but number 1 is missing, and the model has 4 features",
        ),
        (["id", "x0", "x1", "x2"], "'x0', 'x1', 'x2' are numbered, but number 3 is missing"),
        (["x0", "x2", "x1", "x3"], "'x0', 'x2', 'x1', 'x3' are numbered, but not in order"),
        (["X1", "x1", "x2", "x3"], "'X1', 'x1', 'x2', 'x3' are numbered, but number 4 is missing"),
        (["id", "feature_1", "feature_2", "feature_4"], "but number 3 is missing"),
        (["id", "Column 0", "column 1", "column 2"], "but number 3 is missing"),
        (["0", "1", "3", "label"], "'0', '1', '3' are numbered, but number 2 is missing"),
        (["4", "1", "2", "3"], "not in order"),
        ([" f1", " f2", " f3", "id"], "but number 4 is missing"),
        (["x1", "x2", "x4", "x5"], "'x1', 'x2', 'x4', 'x5' are numbered, but number 3 is missing"),
        (["Column 1", "Column 2", "Column 3", "Column 5"], "but number 4 is missing"),
        (["Unnamed: 0", "a", "b", "c"], "the column 'Unnamed: 0' is an index that pandas wrote, not a feature"),
        (["a", "b", "c", "__index_level_0__"], "the column '__index_level_0__' is an index"),
    ],
)
def test_tables_that_lack_a_feature_are_refused(names, message):
    """The number of columns is correct by accident."""
    predictor = approxsvm.Predictor(approxsvm.compile(SVC().fit(X, NAMES), X).artifact)
    table = pa.Table.from_arrays([pa.array(column) for column in ROWS.T[: len(names)].copy()], names)
    with pytest.raises(InputError, match=re.escape(message)):
        predictor.predict_arrow(table)
    with pytest.raises(InputError, match=re.escape(message)):
        predictor.predict(table.to_pandas())
    if len(names) == 4:
        answer = predictor.predict(ROWS).tolist()
        assert predictor.predict_arrow(table, columns=names)["label"].to_pylist() == answer


def test_a_column_that_is_there_twice_is_refused_by_position():
    predictor = approxsvm.Predictor(approxsvm.compile(SVC().fit(X, NAMES), X).artifact)
    table = pa.Table.from_arrays([pa.array(column) for column in ROWS.T.copy()], ["a", "b", "a", "c"])
    with pytest.raises(InputError, match="there are several columns 'a'"):
        predictor.predict_arrow(table)
    with pytest.raises(InputError, match="there are several columns 'a'"):
        predictor.predict(FRAME.set_axis(["a", "b", "a", "c"], axis=1))


@pytest.mark.parametrize(
    "names",
    [
        [f"x{k}" for k in range(4)],
        [f"F{k + 1}" for k in range(4)],
        [str(k) for k in range(4)],
        ["2019", "2020", "2022", "2021"],  # years
        ["age", "x7", "x3", "x40"],
        ["age", "dose", "x1", "x40"],
        ["age", "f1_score", "q1", "q2"],
        ["pclass_1", "pclass_3", "sex_0", "sex_1"],
    ],
)
def test_other_names_in_the_models_number_go_by_position(names):
    predictor = approxsvm.Predictor(approxsvm.compile(SVC().fit(X, NAMES), X).artifact)
    answer = predictor.predict(ROWS).tolist()
    frame = FRAME.set_axis(names, axis=1)
    with pytest.warns(ColumnsByPositionWarning, match=f"the columns '{names[0]}', '{names[1]}'"):
        assert predictor.predict_arrow(frame)["label"].to_pylist() == answer
    with pytest.warns(ColumnsByPositionWarning, match=f"the columns '{names[0]}', '{names[1]}'") as caught:
        assert predictor.predict(frame).tolist() == answer
    assert caught[0].filename == __file__


def test_whole_numbers_beyond_float64_round_as_numpy_does():
    big = np.array([[2**53 + 1, 2**62 + 2**9 + 1], [-(2**53) - 3, 5]])
    column = arrow_columns.FeatureColumns(pa.schema([("a", pa.int64()), ("b", pa.int64())]), ["a", "b"], 2)
    found = column.matrix(pa.RecordBatch.from_arrays([pa.array(c) for c in big.T.copy()], ["a", "b"]))
    np.testing.assert_array_equal(found, big.astype(np.float64))


def test_decimals_and_dictionaries(named):
    texts = [[f"{x:.5f}" for x in column] for column in ROWS.T]
    rows = np.array(texts, dtype=float).T
    decimals = pa.table(
        [pa.array([Decimal(text) for text in column], pa.decimal128(20, 9)) for column in texts], FEATURES
    )
    coded = pa.table([pa.array(column).dictionary_encode() for column in rows.T.copy()], FEATURES)
    for table in (decimals, coded):
        np.testing.assert_array_equal(
            stacked(named.predict_arrow(table, outputs=["value"]), "value"), named.decision_function(rows)
        )
    kept = named.predict_arrow(
        coded.append_column("word", pa.array(["a"] * len(rows)).dictionary_encode()), keep=["word"]
    )
    assert kept.schema.field("word").type == pa.string()


def test_lists(named):
    """Check one column of lists, with or without fixed size, sliced, with nulls, or with lists of the wrong length."""
    flat = pa.array(ROWS.ravel())
    fixed = pa.FixedSizeListArray.from_arrays(flat, 4)
    offsets = pa.array(np.arange(0, ROWS.size + 1, 4, dtype=np.int32))
    answer = named.predict(ROWS).tolist()
    coded = pa.DictionaryArray.from_arrays(np.arange(len(ROWS)), fixed)
    for lists in (fixed, coded, pa.ListArray.from_arrays(offsets, flat), fixed.cast(pa.list_(pa.float32(), 4))):
        table = pa.table({"vector": lists})
        found = named.predict_arrow(table.slice(5), columns=["vector"])["label"].to_pylist()
        assert found == answer[5:]
    ragged = pa.table(
        {"vector": pa.array([ROWS[0].tolist(), None, [1.0, 2.0], ROWS[1].tolist(), [1.0, 2.0, None, 3.0]])}
    )
    found = named.predict_arrow(ragged, columns=["vector"], on_error="null")["label"].to_pylist()
    assert found == [answer[0], None, None, answer[1], None]
    with pytest.raises(InputError, match="row 1: column 'vector' has 2 numbers, expected 4"):
        named.predict_arrow(ragged.slice(1, 3).filter(pa.array([False, True, True])).take([1, 0]), columns=["vector"])
    three = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(6)), 3)
    with pytest.raises(InputError, match="lists of 3 numbers, but the model has 4"):
        named.predict_arrow(pa.table({"vector": three}), columns=["vector"])


@pytest.mark.parametrize("column", [pa.array(["a"]), pa.array([b"a"]), pa.array([[1.0, 2.0]]), pa.array([{"a": 1}])])
def test_what_is_no_number_is_refused(named, column):
    table = pa.table([pa.array([1.0])] * 3 + [column], FEATURES)
    with pytest.raises(InputError, match=r"column 'petal_width' is .*, but a feature must be a number"):
        named.predict_arrow(table)


@pytest.mark.parametrize(
    ("value", "words"),
    [(None, "is null"), (np.nan, "is NaN"), (np.inf, "is infinite"), (-np.inf, "is infinite")],
)
def test_bad_rows(named, value, words):
    table = pa.table(FRAME)
    numbers = table["petal_length"].to_pylist()
    numbers[0] = numbers[17] = numbers[299] = value
    table = table.set_column(2, "petal_length", pa.array(numbers, pa.float64())).append_column(
        "id", pa.array(range(300))
    )
    with pytest.raises(InputError, match=f"^row 0: column 'petal_length' {words}"):
        named.predict_arrow(table)
    with pytest.raises(InputError, match=f"^row 16: column 'petal_length' {words}"):
        named.predict_arrow(table.slice(1).to_batches(max_chunksize=10))
    good = [k for k in range(300) if k not in (0, 17, 299)]
    answer = named.predict(ROWS).tolist()
    nulled = named.predict_arrow(table, on_error="null", keep=["id"], outputs=["label", "certified"])
    assert nulled["label"].to_pylist() == [label if k in good else None for k, label in enumerate(answer)]
    assert nulled["certified"].null_count == 3
    assert nulled["id"].to_pylist() == list(range(300))
    left = named.predict_arrow(table, on_error="skip", keep=["id"])
    assert left["id"].to_pylist() == good
    assert left["label"].to_pylist() == [answer[k] for k in good]
    alone = named.predict_arrow(table.take([0, 17]), on_error="skip")
    assert (alone.num_rows, alone.schema.names) == (0, ["label"])


def test_rows_beyond_the_models_range():
    """Rows of finite numbers that the core refuses are named, and the others get their answers."""
    model = SVC(kernel="poly", degree=3, gamma=1.0).fit(X[:, :2], TWO)
    predictor = approxsvm.Predictor(approxsvm.compile(model).artifact)
    rows = np.random.default_rng(0).normal(size=(1100, 2))  # more than one chunk
    refused = [4, 5, 511, 512, 1099]
    rows[refused, 1] = 1e200
    table = pa.table({"f0": rows[:, 0].copy(), "f1": rows[:, 1].copy()})
    good = np.delete(np.arange(1100), refused)
    with pytest.raises(InputError, match=r"^row 4: .*range of float64"):
        predictor.predict_arrow(table)
    found = predictor.predict_arrow(table, on_error="null", outputs=["label", "value"])
    assert np.flatnonzero(found["label"].is_null()).tolist() == refused
    np.testing.assert_array_equal(found["value"].to_numpy()[good], predictor.decision_function(rows[good]))


def test_nothing_in_nothing_out(named):
    table = pa.table(FRAME[:0])
    found = named.predict_arrow(table, outputs=["label", "value"])
    assert (found.num_rows, found.schema.field("label").type) == (0, pa.string())
    assert named.predict_arrow(table.to_batches() or [pa.RecordBatch.from_pandas(FRAME[:0])]).num_rows == 0


@pytest.mark.parametrize("wrong", [ROWS, [ROWS], 3, []])
def test_what_has_no_columns_is_refused(named, wrong):
    with pytest.raises(InputError, match="expected Arrow columns or batches, got"):
        named.predict_arrow(wrong)


def test_batches_of_another_schema_are_refused(named):
    first = pa.RecordBatch.from_pandas(FRAME)
    with pytest.raises(InputError, match="a batch has the columns"):
        named.predict_arrow([first, pa.RecordBatch.from_pandas(FRAME[FEATURES[:3]])])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"outputs": ["probability"]}, "no output 'probability': there are no probabilities: the source has none"),
        ({"outputs": ["score"]}, "no output 'score', only label, value"),
        ({"on_error": "ignore"}, "on_error must be one of 'fail', 'null', 'skip', not 'ignore'"),
    ],
)
def test_wrong_options(named, options, words):
    with pytest.raises(InputError, match=words):
        named.predict_arrow(FRAME, **options)


def test_columns_are_copied_once_and_lists_of_a_fixed_size_never(tmp_path):
    """Columns are gathered into one buffer, which is reused."""
    table = pa.table(FRAME)
    with pa.ipc.new_file(tmp_path / "rows.arrow", table.schema) as writer:
        writer.write_table(table)
    batch = pa.ipc.open_file(pa.memory_map(str(tmp_path / "rows.arrow"))).get_batch(0)
    features = arrow_columns.FeatureColumns(batch.schema, FEATURES, 4)
    for part in (batch, batch.slice(3, 50)):
        np.testing.assert_array_equal(features.matrix(part), np.stack([c.to_numpy() for c in part.columns], axis=1))
    shuffled = arrow_columns.FeatureColumns(batch.schema, FEATURES[::-1], 4)
    np.testing.assert_array_equal(shuffled.matrix(batch), ROWS[:, ::-1])
    assert shuffled.matrix(batch).base is shuffled.matrix(batch.slice(7)).base
    vector = pa.RecordBatch.from_arrays([pa.FixedSizeListArray.from_arrays(pa.array(ROWS.ravel()), 4)], ["vector"])
    rows = arrow_columns.FeatureColumns(vector.schema, ["vector"], 4).matrix(vector)
    assert rows.ctypes.data == vector.column(0).values.buffers()[1].address


@by_position
def test_names_that_would_clash_are_positions():
    labels = np.array(["a", "a_b", "b", "b_b"])[np.arange(len(X)) % 4]
    fast = approxsvm.compile(SVC(decision_function_shape="ovo").fit(X, labels), X)
    names = approxsvm.Predictor(fast.artifact).predict_arrow(FRAME, outputs=["value"]).schema.names
    assert len(set(names)) == 6

"""Files of any size: answers equal predict's in every format, and no output is partially written."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from conftest import GOLDEN
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer
from sklearn.svm import SVC, SVR

import approxsvm
from approxsvm.cli import main
from approxsvm.errors import ColumnsByPositionWarning, DataFormatError, InputError

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed; it is the extra arrow")
pq = pytest.importorskip("pyarrow.parquet")
arrow_csv = pytest.importorskip("pyarrow.csv")

from approxsvm.integrations.scoring import readers  # noqa: E402  # after importorskip, which may skip the module

MODEL = GOLDEN / "breast_cancer.asvm"
PREDICTOR = approxsvm.Predictor(MODEL)
IRIS = approxsvm.Predictor(GOLDEN / "iris_classes.asvm")
ROWS = np.random.default_rng(0).normal(size=(500, 30)).astype(np.float32).astype(np.float64)
LABELS = PREDICTOR.predict(ROWS).tolist()
FEATURES = [f"f{k}" for k in range(30)]
TABLE = pa.table({"id": [f"{k:03d}" for k in range(500)]} | dict(zip(FEATURES, ROWS.T.copy(), strict=True)))


by_position = pytest.mark.filterwarnings("ignore::approxsvm.errors.ColumnsByPositionWarning")


def read(path):
    path = str(path)
    if path.endswith(".parquet"):
        return pq.read_table(path)
    if path.endswith(".arrow"):
        return pa.ipc.open_file(path).read_all()
    kinds = arrow_csv.ConvertOptions(column_types={"id": pa.string()})
    return arrow_csv.read_csv(path, convert_options=kinds)


def libsvm_text(rows, first=1):
    lines = (f"{k} " + " ".join(f"{j + first}:{x!r}" for j, x in enumerate(row.tolist())) for k, row in enumerate(rows))
    return "".join(line + "\n" for line in lines)


def csv_bytes(table, **options):
    sink = io.BytesIO()
    arrow_csv.write_csv(table, sink, arrow_csv.WriteOptions(**options))
    return sink.getvalue()


def arrow_bytes(table, new, **options):
    sink = io.BytesIO()
    with new(sink, table.schema, **options) as writer:
        writer.write_table(table, max_chunksize=123)
    return sink.getvalue()


def parquet_bytes(table, **options):
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


FILES = {
    "rows.csv": lambda: csv_bytes(TABLE),
    "semicolon.csv": lambda: csv_bytes(TABLE.select([*FEATURES[::-1], "id"])),
    "ROWS.CSV.GZ": lambda: gzip.compress(csv_bytes(TABLE)),
    "rows.csv.bz2": lambda: bz2.compress(csv_bytes(TABLE)),
    "rows.parquet": lambda: parquet_bytes(TABLE, row_group_size=77),
    "shuffled.parquet": lambda: parquet_bytes(TABLE.select([*FEATURES[::-1], "id"])),
    "rows.arrow": lambda: arrow_bytes(TABLE, pa.ipc.new_file),
    "compressed.arrow": lambda: arrow_bytes(TABLE, pa.ipc.new_file, options=pa.ipc.IpcWriteOptions(compression="lz4")),
    "stream.ipc": lambda: arrow_bytes(TABLE, pa.ipc.new_stream),
    "rows.t": lambda: libsvm_text(ROWS).encode(),
    "rows.libsvm": lambda: libsvm_text(ROWS).encode(),
    "marked.libsvm": lambda: codecs.BOM_UTF8 + libsvm_text(ROWS).encode(),
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    for name, content in FILES.items():
        (folder / name).write_bytes(content())
    return folder


@pytest.mark.parametrize(
    ("name", "output"), list(zip(FILES, 4 * ["answers.csv", "answers.parquet", "answers.arrow"], strict=True))
)
def test_every_format(inputs, tmp_path, name, output):
    is_text = name.endswith(("t", "libsvm")) and not name.endswith("parquet")
    keep = "target" if is_text else "id"
    scored = approxsvm.score_dataset(MODEL, inputs / name, tmp_path / output, keep=[keep], batch_rows=64, n_jobs=2)
    found = read(tmp_path / output)
    assert found.schema.names == [keep, "label"]
    assert found[keep].to_pylist() == (list(range(500)) if is_text else TABLE["id"].to_pylist())
    assert found["label"].to_pylist() == LABELS
    assert (scored.n_rows, scored.n_bad, scored.written) == (500, 0, [str(tmp_path / output)])
    assert min(scored.seconds, scored.seconds_reading, scored.seconds_predicting, scored.seconds_writing) > 0.0
    assert os.listdir(tmp_path) == [output]


def test_sparse_numbers_are_those_of_predict(tmp_path):
    """A block may contain a single row, whose values have the same last digits as in a larger block."""
    rows = csr_array(ROWS * (ROWS > 0.5))
    for n_rows in (500, 3, 1):
        (tmp_path / "rows.t").write_text(libsvm_text(rows.toarray()[:n_rows]).replace(":0.0", ":0"))
        approxsvm.score_dataset(MODEL, tmp_path / "rows.t", tmp_path / "a.arrow", outputs=["label", "value"])
        expected = PREDICTOR.decision_function(csr_array(rows.toarray()))[:n_rows]
        np.testing.assert_array_equal(read(tmp_path / "a.arrow")["value"].to_numpy(), expected)


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_other_delimiters(tmp_path, delimiter):
    (tmp_path / "rows.csv").write_bytes(csv_bytes(TABLE, delimiter=delimiter))
    approxsvm.score_dataset(MODEL, tmp_path / "rows.csv", tmp_path / "a.csv", keep=["id"], delimiter=delimiter)
    assert read(tmp_path / "a.csv").to_pydict() == {"id": TABLE["id"].to_pylist(), "label": LABELS}
    with pytest.raises(InputError, match="the delimiter is '::', but must be one character"):
        approxsvm.score_dataset(MODEL, tmp_path / "rows.csv", tmp_path / "b.csv", delimiter="::")
    with pytest.raises(InputError, match="batch_rows is 0, but must be a whole number of at least 1"):
        approxsvm.score_dataset(MODEL, tmp_path / "rows.csv", tmp_path / "b.csv", batch_rows=0)


def test_csv_without_names(tmp_path):
    """Columns are named 1, 2, ...; even for a model with names, they are read by position, with a single warning."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    fast = approxsvm.compile(SVC(gamma=1e-5).fit(X[::4], y[::4]), X[::4])
    (tmp_path / "rows.csv").write_bytes(
        csv_bytes(pa.Table.from_pandas(X[:20], preserve_index=False), include_header=False)
    )
    told = "the table has no names: by position, the columns '1', '2', '3', ..., '30' are taken for features 0 to 29"
    with pytest.warns(ColumnsByPositionWarning, match=told) as caught:
        approxsvm.score_dataset(fast, 2 * [tmp_path / "rows.csv"], tmp_path / "a.csv")
    assert len(caught) == 1
    assert read(tmp_path / "a.csv")["label"].to_pylist() == 2 * fast.predict(X[:20]).tolist()
    more = pa.Table.from_pandas(X[:20].assign(day=7), preserve_index=False)
    (tmp_path / "more.csv").write_bytes(csv_bytes(more, include_header=False))
    with pytest.warns(ColumnsByPositionWarning, match=told):
        approxsvm.score_dataset(fast, tmp_path / "more.csv", tmp_path / "b.csv", keep=["31"])
    with pytest.raises(InputError, match="there are 31 columns for features"):
        approxsvm.score_dataset(fast, tmp_path / "more.csv", tmp_path / "b.csv")
    assert read(tmp_path / "b.csv").to_pydict() == {"31": [7] * 20, "label": fast.predict(X[:20]).tolist()}


@by_position
def test_a_first_row_with_a_hole_is_no_line_of_names(tmp_path):
    """For a model without names, which accepts any column names, it would otherwise be lost."""
    (tmp_path / "rows.csv").write_text("5.1,NA,1.4,0.2\n6.7,3.0,5.2,2.3\n")
    scored = approxsvm.score_dataset(IRIS, tmp_path / "rows.csv", tmp_path / "a.csv", on_error="null")
    assert (scored.n_rows, scored.bad_rows) == (2, [f"{tmp_path / 'rows.csv'}, row 0: column '2' is null"])


@by_position
def test_names_that_are_numbers(tmp_path):
    """Data frames without names are saved like this; the user may specify that the line is a row."""
    table = pa.Table.from_arrays(TABLE.select(FEATURES).columns, [str(k) for k in range(30)])
    (tmp_path / "rows.csv").write_bytes(csv_bytes(table))
    for header, n_rows in ((None, 500), (False, 501), (True, 500)):
        approxsvm.score_dataset(MODEL, tmp_path / "rows.csv", tmp_path / "a.csv", header=header)
        assert read(tmp_path / "a.csv")["label"].to_pylist()[-500:] == LABELS
        assert read(tmp_path / "a.csv").num_rows == n_rows


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "rows.arrow"])
def test_a_table_that_lacks_a_feature_is_refused(tmp_path, name):
    """Including the column id, the table has as many columns as the model has features."""
    files = {
        "rows.csv": csv_bytes,
        "rows.parquet": parquet_bytes,
        "rows.arrow": lambda table: arrow_bytes(table, pa.ipc.new_file),
    }
    (tmp_path / name).write_bytes(files[name](TABLE.drop_columns(["f3"])))
    message = rf"{name}: there is no column 'f3', but other features have such names; choose "
    with pytest.raises(InputError, match=f"{message}columns"):
        approxsvm.score_dataset(MODEL, tmp_path / name, tmp_path / "a.csv")
    done = CliRunner().invoke(main, ["score", str(MODEL), str(tmp_path / name), "-o", str(tmp_path / "a.csv")])
    assert done.exit_code == 1
    assert re.fullmatch(rf"approxsvm: \S*{message}--columns\n", done.stderr)
    assert os.listdir(tmp_path) == [name]


@pytest.mark.filterwarnings("default")
def test_the_command_says_once_which_columns_it_takes(tmp_path):
    names = [f"x{k}" for k in range(30)]
    for k in range(3):
        (tmp_path / f"rows{k}.csv").write_bytes(csv_bytes(TABLE.rename_columns(["id", *names])))
    command = ["score", str(MODEL), *(str(tmp_path / f"rows{k}.csv") for k in range(3)), "-o", str(tmp_path / "a.csv")]
    done = CliRunner().invoke(main, [*command, "--keep", "id"])
    assert done.exit_code == 0, done.stderr
    told, *counts = done.stderr.splitlines()
    assert told == (
        "approxsvm: warning: the model has no names for its features: by position, the columns 'x0', 'x1', 'x2', ..., "
        "'x29' are taken for features 0 to 29"
    )
    assert len(counts) == 1
    assert read(tmp_path / "a.csv")["label"].to_pylist() == 3 * LABELS
    silent = CliRunner().invoke(main, [*command, "--keep", "id", "--columns", ",".join(names)])
    assert len(silent.stderr.splitlines()) == 1


def test_many_bad_lines(tmp_path):
    """Every second of 20,000 lines is invalid, more than a chunk of text contains."""
    good = "1 1:0.5 30:2"
    (tmp_path / "rows.libsvm").write_text("\n".join(f"bad {k}\n{good}" for k in range(10_000)))
    scored = approxsvm.score_dataset(MODEL, tmp_path / "rows.libsvm", tmp_path / "a.arrow", on_error="null")
    label = PREDICTOR.predict(csr_array(([0.5, 2.0], ([0, 0], [0, 29])), shape=(1, 30))).tolist()
    assert read(tmp_path / "a.arrow")["label"].to_pylist() == 10_000 * [None, *label]
    assert scored.n_bad == 10_000
    assert f"{tmp_path / 'rows.libsvm'}, line 3: wrong input" in scored.bad_rows[1]


FLOWERS = np.array([[5.1, 3.5, 1.4, 0.2], [6.7, 3.0, 5.2, 2.3], [5.9, 3.0, 4.2, 1.5]])


def flowers(sep=",", end="\n", quoted="{}"):
    rows = [["id", "f0", "f1", "f2", "f3"]] + [
        [quoted.format(k), *map(repr, row)] for k, row in enumerate(FLOWERS.tolist())
    ]
    return "".join(sep.join(row) + end for row in rows)


@pytest.mark.parametrize(
    "content",
    [
        flowers(end="\r"),
        flowers(end="\r\n"),
        "\ufeff" + flowers(),
        "\n\r\n" + flowers(end="\n\n"),
        flowers().rstrip(),
        flowers(quoted='"{}\r\n, and ""more"""'),
        flowers(end=",\n"),
    ],
)
def test_dialects_of_csv(tmp_path, content):
    (tmp_path / "rows.csv").write_bytes(content.encode())
    approxsvm.score_dataset(IRIS, tmp_path / "rows.csv", tmp_path / "a.parquet", keep=["id"])
    found = read(tmp_path / "a.parquet").to_pydict()
    assert [cell[0] for cell in found["id"]] == ["0", "1", "2"]
    assert found["label"] == IRIS.predict(FLOWERS).tolist()


def test_line_breaks_in_cells_wherever_a_block_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "_TEXT_BYTES", 1 << 10)
    cells = [f"{k}\n{'x' * (k % 50)}\n" for k in range(500)]
    (tmp_path / "rows.csv").write_bytes(csv_bytes(TABLE.set_column(0, "id", pa.array(cells))))
    approxsvm.score_dataset(MODEL, tmp_path / "rows.csv", tmp_path / "a.parquet", keep=["id"])
    assert read(tmp_path / "a.parquet").to_pydict() == {"id": cells, "label": LABELS}


def test_names_with_every_character(tmp_path):
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X.iloc[:, :5].set_axis(["a b", "c,d", 'e"f', "g\nh", "é"], axis=1)
    fast = approxsvm.compile(SVC(gamma=1e-4).fit(X[::4], y[::4]), X[::4])
    table = pa.Table.from_pandas(X[:20], preserve_index=False)
    (tmp_path / "rows.csv").write_bytes(csv_bytes(table))
    pq.write_table(table, tmp_path / "rows.parquet")
    for name in ("rows.csv", "rows.parquet"):
        approxsvm.score_dataset(fast, tmp_path / name, tmp_path / "a.csv", keep=["g\nh"])
        assert read(tmp_path / "a.csv")["label"].to_pylist() == fast.predict(X[:20]).tolist()


def test_a_line_of_names_alone(tmp_path):
    (tmp_path / "rows.csv").write_text("id,f0,f1,f2,f3")
    assert approxsvm.score_dataset(IRIS, tmp_path / "rows.csv", tmp_path / "a.csv", keep=["id"]).n_rows == 0
    assert (tmp_path / "a.csv").read_text() == '"id","label"\n'


def test_cells_that_are_not_utf8(tmp_path):
    """Invalid UTF-8 costs only the rows that contain it."""
    (tmp_path / "rows.csv").write_bytes(flowers(quoted="é{}").encode().replace("é1".encode(), b"\xe9"))
    words = r"rows.csv, row 1: column 'id' holds b'\\xe9', which is not UTF-8 text"
    with pytest.raises(InputError, match=words):
        approxsvm.score_dataset(IRIS, tmp_path / "rows.csv", tmp_path / "a.csv", keep=["id"])
    scored = approxsvm.score_dataset(IRIS, tmp_path / "rows.csv", tmp_path / "a.csv", keep=["id"], on_error="null")
    assert (scored.n_bad, re.search(words, scored.bad_rows[0]) is None) == (1, False)
    labels = IRIS.predict(FLOWERS).tolist()
    found = read(tmp_path / "a.csv").to_pydict()
    assert found == {"id": ["é0", "", "é2"], "label": [labels[0], None, labels[2]]}


def write_bad(folder):
    """Write a file in each format, with invalid rows."""
    table = TABLE.slice(0, 100)
    numbers = table["f3"].to_pylist()
    numbers[10], numbers[40], numbers[41] = None, float("nan"), float("inf")
    bad = table.set_column(4, "f3", pa.array(numbers, pa.float64()))
    pq.write_table(bad, folder / "bad.parquet")
    lines = csv_bytes(table).decode().splitlines()
    for row, text in ((10, ""), (40, "NaN"), (41, "1e999")):
        cells = lines[row + 1].split(",")
        cells[4] = text
        lines[row + 1] = ",".join(cells)
    (folder / "bad.csv").write_text("\n".join(lines) + "\n")
    lines = libsvm_text(ROWS[:100]).splitlines()
    lines[10], lines[40] = "not a row", "1 4:nan"
    lines[41] = "1 31:1"
    (folder / "bad.libsvm").write_text("\n".join(lines) + "\n")


REASONS = {
    "bad.parquet": ["row 10: column 'f3' is null", "row 40: column 'f3' is NaN", "row 41: column 'f3' is infinite"],
    "bad.csv": ["row 10: column 'f3' is null", "row 40: column 'f3' is null", "row 41: column 'f3' is infinite"],
    "bad.libsvm": [
        "line 11: wrong input",
        "line 41: the feature in column 3 is NaN",
        "line 42: index 31 lies outside 1 to 30",
    ],
}


@pytest.mark.parametrize("name", REASONS)
def test_bad_rows(tmp_path, name):
    write_bad(tmp_path)
    source, output = tmp_path / name, tmp_path / "answers.parquet"
    with pytest.raises(InputError, match=re.escape(f"{source}, {REASONS[name][0]}")):
        approxsvm.score_dataset(MODEL, source, output)
    assert not output.exists()
    keep = ["target" if name.endswith("libsvm") else "id"]
    good = [k for k in range(100) if k not in (10, 40, 41)]
    for batch_rows in (7, None):
        scored = approxsvm.score_dataset(MODEL, source, output, keep=keep, on_error="null", batch_rows=batch_rows)
        assert (scored.n_rows, scored.n_bad) == (100, 3)
        for found, words in zip(scored.bad_rows, REASONS[name], strict=True):
            assert found.startswith(f"{source}, {words}")
        answers = read(output)
        if name.endswith("libsvm"):  # an unreadable line has no target, but a line with an invalid feature has one
            assert answers["target"].to_pylist() == [None if k == 10 else 1 if k in (40, 41) else k for k in range(100)]
        assert answers["label"].to_pylist() == [LABELS[k] if k in good else None for k in range(100)]
        scored = approxsvm.score_dataset(MODEL, source, output, keep=keep, on_error="skip", batch_rows=batch_rows)
        assert (scored.n_rows, scored.n_bad) == (100, 3)
        assert read(output)["label"].to_pylist() == [LABELS[k] for k in good]


def test_text_that_is_no_number(tmp_path):
    lines = csv_bytes(TABLE.slice(0, 20)).decode().splitlines()
    lines[3] = lines[3].replace(lines[3].split(",")[2], "abc", 1)
    lines[6] = '"00,7",' + lines[6].partition(",")[2]
    lines.insert(10, "too,few")
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    message = r"rows.csv, row 2: column 'f1' holds 'abc', which is not a number"
    with pytest.raises((InputError, DataFormatError), match=r"rows.csv"):
        approxsvm.score_dataset(MODEL, tmp_path / "rows.csv", tmp_path / "a.csv")
    scored = approxsvm.score_dataset(MODEL, tmp_path / "rows.csv", tmp_path / "a.csv", keep=["id"], on_error="skip")
    assert re.search(message, scored.bad_rows[1])
    assert scored.bad_rows[0].endswith("row 9: 2 columns, expected 31")
    assert (scored.n_rows, scored.n_bad) == (21, 2)
    assert read(tmp_path / "a.csv")["id"].to_pylist()[4] == "00,7"
    with pytest.raises(DataFormatError, match=r"rows.csv: .*Row #11: Expected 31 columns, got 2"):
        approxsvm.score_dataset(MODEL, tmp_path / "rows.csv", tmp_path / "b.csv", on_error="null")


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"id,f0\n1,2\n", "rows.csv: there is no column 'f1' and no 'f2' .*, but other features have such names"),
        (b"", "rows.csv"),
        (b"\n\n", "rows.csv: the file is empty"),
        (b"PAR1 and more", "rows.csv"),
        ("id,f0\n1,2\n".encode("utf-16"), r"rows.csv: the first line is not UTF-8 text: b'\\xff\\xfei"),
        (b"x" * 5_000_000, r"rows.csv: there is no column 'id', only 'x{100}\.\.\.'$"),
        (
            b"id," + b",".join(b"f%d" % k for k in range(30)) + b"\n1," + b"2" * 9_000_000,
            "rows.csv: .*a line is longer",
        ),
    ],
)
def test_unreadable_tables(tmp_path, content, error):
    (tmp_path / "rows.csv").write_bytes(content)
    with pytest.raises((InputError, DataFormatError), match=error):
        approxsvm.score_dataset(MODEL, tmp_path / "rows.csv", tmp_path / "a.csv", keep=["id"])
    assert os.listdir(tmp_path) == ["rows.csv"]


@pytest.mark.parametrize("name", ["rows.parquet", "rows.arrow", "compressed.arrow", "ROWS.CSV.GZ"])
def test_files_cut_short(inputs, tmp_path, name):
    content = (inputs / name).read_bytes()
    for share in (0.0, 0.5, 0.98):
        (tmp_path / name).write_bytes(content[: int(share * len(content))])
        with pytest.raises((InputError, DataFormatError), match=name):
            approxsvm.score_dataset(MODEL, tmp_path / name, tmp_path / "answers.csv")
        assert os.listdir(tmp_path) == [name]


def test_a_line_without_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "_TEXT_BYTES", 1 << 10)
    (tmp_path / "rows.libsvm").write_bytes(b"1 1:2\n" + b"x" * 10_000)
    with pytest.raises(
        DataFormatError, match=r"rows.libsvm, line 2: the line has more than 2944 bytes, too many for 30 feat"
    ):
        approxsvm.score_dataset(MODEL, tmp_path / "rows.libsvm", tmp_path / "a.csv")


@pytest.mark.parametrize("new", [pa.ipc.new_file, pa.ipc.new_stream])
def test_arrow_files_that_lie(tmp_path, new):
    """Arrow itself would read a gigabyte past the text."""
    content = arrow_bytes(TABLE[:100], new)
    ends = np.arange(0, 303, 3, dtype=np.int32)
    assert content.count(ends.tobytes()) == 1
    (tmp_path / "rows.arrow").write_bytes(
        content.replace(ends.tobytes(), np.where(ends == 300, 1 << 30, ends).tobytes())
    )
    with pytest.raises(DataFormatError, match=r"rows.arrow: not a readable arrow file: .*1073741824"):
        approxsvm.score_dataset(MODEL, tmp_path / "rows.arrow", tmp_path / "a.csv", keep=["id"])


ODD = {
    "union": pa.UnionArray.from_sparse(pa.array([0] * 10, pa.int8()), [pa.array(range(10))]),
    "view": pa.array(list("abcdefghij"), pa.string_view()),
    "bytes": pa.array([b"a"] * 10, pa.binary_view()),
    "categories": pa.DictionaryArray.from_arrays([0, 1, None, 1, 0] * 2, pa.array(["a", "b"], pa.string_view())),
    "runs": pa.RunEndEncodedArray.from_arrays([4, 10], ["a", "b"]),
    "list": pa.array([[1, 2]] * 10),
}


def test_columns_of_odd_types(tmp_path):
    """Such columns may occur among the features, and are kept as far as the output supports them."""
    table = TABLE[:10].set_column(1, "f0", pa.array([None, *ROWS[1:10, 0].tolist()]))
    for name, column in ODD.items():
        table = table.append_column(name, column)
    (tmp_path / "rows.arrow").write_bytes(arrow_bytes(table, pa.ipc.new_file))
    kept = list(ODD)
    approxsvm.score_dataset(MODEL, tmp_path / "rows.arrow", tmp_path / "a.arrow", keep=kept, on_error="skip")
    assert read(tmp_path / "a.arrow").select(kept).to_pylist() == table[1:].select(kept).to_pylist()
    texts = ["view", "bytes", "categories", "runs"]
    approxsvm.score_dataset(MODEL, tmp_path / "rows.arrow", tmp_path / "a.csv", keep=texts, on_error="skip")
    assert read(tmp_path / "a.csv")["view"].to_pylist() == list("bcdefghij")
    views = pa.array([["a"]] * 10, pa.list_(pa.string_view()))
    with pytest.raises(InputError, match=r"rows of a kept column cannot be skipped, only nulled: .*string_view"):
        PREDICTOR.predict_arrow(table.append_column("views", views), columns=FEATURES, keep=["views"], on_error="skip")
    for output, name in (("b.csv", "list"), ("b.parquet", "union")):
        with pytest.raises(InputError, match=rf"column '{name}' is .*, which {output[2:]} files do not support"):
            approxsvm.score_dataset(MODEL, tmp_path / "rows.arrow", tmp_path / output, keep=[name], on_error="skip")
    assert sorted(os.listdir(tmp_path)) == ["a.arrow", "a.csv", "rows.arrow"]


def test_zero_rows(tmp_path):
    pq.write_table(TABLE[:0], tmp_path / "rows.parquet")
    (tmp_path / "rows.csv").write_bytes(csv_bytes(TABLE[:0]))
    (tmp_path / "rows.libsvm").write_bytes(b"")
    for name in ("rows.parquet", "rows.csv", "rows.libsvm"):
        scored = approxsvm.score_dataset(MODEL, tmp_path / name, tmp_path / "a.parquet", outputs=["label", "value"])
        assert scored.n_rows == 0
        assert read(tmp_path / "a.parquet").schema.names == ["label", "value"]


def test_several_models_read_the_rows_once(inputs, tmp_path):
    """Columns are named after the models; a source's rows are read only once."""
    other = GOLDEN / "breast_cancer_one_class.asvm"
    models = {"tumor": MODEL, "usual": approxsvm.load(other)}
    for name in ("rows.parquet", "rows.libsvm"):
        scored = approxsvm.score_dataset(models, inputs / name, tmp_path / "a.arrow", outputs=["label", "value"])
        found = read(tmp_path / "a.arrow")
        assert found.schema.names == ["tumor_label", "tumor_value", "usual_label", "usual_value"]
        assert found["tumor_label"].to_pylist() == LABELS
        assert found["usual_label"].to_pylist() == approxsvm.load(other).predict(ROWS).tolist()
        assert scored.n_rows == 500
    with pytest.raises(InputError, match="two columns of the output would be named"):
        approxsvm.score_dataset({"a": MODEL, "b": MODEL}, inputs / "rows.csv", tmp_path / "a.csv", keep=["a_label"])
    with pytest.raises(InputError, match="the same number of features and the same first index"):
        approxsvm.score_dataset({"a": MODEL, "b": GOLDEN / "iris_classes.asvm"}, inputs / "rows.t", tmp_path / "a.csv")


# --- folders


def make_folder(tmp_path, n_parts=4):
    folder = tmp_path / "rows"
    for k in range(n_parts):
        (folder / f"day={k}").mkdir(parents=True)
        pq.write_table(TABLE.slice(100 * k, 100), folder / f"day={k}" / "part.parquet")
    (folder / "_SUCCESS").touch()
    (folder / ".hidden.csv").write_text("nothing")
    (folder / "readme.txt").write_text("nothing")
    return folder


def labels_of(folder, n_parts=4):
    return [label for k in range(n_parts) for label in read(folder / f"day={k}" / "part.parquet")["label"].to_pylist()]


def test_folders_and_patterns(tmp_path):
    folder = make_folder(tmp_path)
    scored = approxsvm.score_dataset(MODEL, folder, tmp_path / "all")
    assert (scored.n_rows, len(scored.written), scored.n_kept) == (400, 4, 0)
    assert labels_of(tmp_path / "all") == LABELS[:400]
    approxsvm.score_dataset(MODEL, f"{folder}/day=[12]/*", tmp_path / "some.csv")
    assert read(tmp_path / "some.csv")["label"].to_pylist() == LABELS[100:300]
    approxsvm.score_dataset(MODEL, f"{folder}/**/*.parquet", tmp_path / "csv", output_format="csv")
    assert read(tmp_path / "csv" / "day=3" / "part.csv")["label"].to_pylist() == LABELS[300:400]
    approxsvm.score_dataset(MODEL, [folder, folder], tmp_path / "twice.arrow")
    assert read(tmp_path / "twice.arrow")["label"].to_pylist() == 2 * LABELS[:400]
    with pytest.raises(InputError, match=r"would both be written to .*part.parquet"):
        approxsvm.score_dataset(MODEL, [folder, folder], tmp_path / "folder")
    with pytest.raises(InputError, match=r"no file matches .*\*.arrow"):
        approxsvm.score_dataset(MODEL, f"{folder}/*.arrow", tmp_path / "folder")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        approxsvm.score_dataset(MODEL, tmp_path / "nowhere", tmp_path / "folder")


@pytest.mark.parametrize("pattern", ["", "/**/*.parquet"])
def test_answers_inside_the_folder_are_no_input(tmp_path, pattern):
    folder = make_folder(tmp_path)
    for n_kept in (0, 4):
        scored = approxsvm.score_dataset(MODEL, f"{folder}{pattern}", folder / "answers")
        assert (len(scored.written), scored.n_kept) == (4 - n_kept, n_kept)


def test_a_run_is_taken_up(tmp_path):
    """Existing parts that are not older are kept; the folder records which model's answers it contains."""
    folder, answers = make_folder(tmp_path), tmp_path / "answers"
    approxsvm.score_dataset(MODEL, folder, answers)
    (answers / "day=2" / "part.parquet").unlink()
    os.utime(answers / "day=3" / "part.parquet", ns=(0, 0))
    before = (answers / "day=0" / "part.parquet").stat().st_mtime_ns
    scored = approxsvm.score_dataset(MODEL, folder, answers)
    assert (scored.n_rows, scored.n_kept) == (200, 2)
    assert (answers / "day=0" / "part.parquet").stat().st_mtime_ns == before
    assert labels_of(answers) == LABELS[:400]
    for changes in ({"keep": ["id"]}, {"outputs": ["value"]}, {"on_error": "null"}, {"header": True}):
        with pytest.raises(InputError, match=rf"holds the answers of another run, with {next(iter(changes))} "):
            approxsvm.score_dataset(MODEL, folder, answers, **changes)
    with pytest.raises(InputError, match="another run, with models"):
        approxsvm.score_dataset(GOLDEN / "breast_cancer_one_class.asvm", folder, answers)
    assert json.loads((answers / "_approxsvm_score.json").read_text())["kind"] == "parquet"
    (answers / "_approxsvm_score.json").write_text("[1]")
    with pytest.raises(InputError, match=r"_approxsvm_score.json: not the record of a run"):
        approxsvm.score_dataset(MODEL, folder, answers)
    (answers / "_approxsvm_score.json").unlink()
    with pytest.raises(InputError, match="already exists"):
        approxsvm.score_dataset(MODEL, folder, answers)


def test_a_folder_without_answers_is_nobodys(tmp_path):
    """A run that failed immediately does not block the corrected run."""
    folder, answers = make_folder(tmp_path), tmp_path / "answers"
    with pytest.raises(InputError, match="there is no column 'di'"):
        approxsvm.score_dataset(MODEL, folder, answers, keep=["di"])
    assert approxsvm.score_dataset(MODEL, folder, answers, keep=["id"]).n_rows == 400


def in_a_process(tmp_path, program, *arguments):
    """Run a program that scores; with `die_after`, it is killed after the given number of rows."""
    text = """
        import os, resource, signal, sys
        import approxsvm

        def die_after(n):
            return lambda n_rows, share: n_rows >= n and os.kill(os.getpid(), signal.SIGKILL)
    """
    script = tmp_path.with_suffix(".py")
    script.write_text(textwrap.dedent(text) + textwrap.dedent(program))
    command = [sys.executable, script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_killed_in_the_middle(tmp_path):
    """Parts with final names are complete; the next run writes the others, as an undisturbed run would."""
    folder, answers = make_folder(tmp_path), tmp_path / "answers"
    program = """
        approxsvm.score_dataset(sys.argv[1], sys.argv[2], sys.argv[3], progress=die_after(250), batch_rows=50, n_jobs=2)
    """
    assert in_a_process(tmp_path, program, MODEL, folder, answers).returncode == -signal.SIGKILL
    there = sorted(path.relative_to(answers).as_posix() for path in answers.rglob("*.parquet") if path.name[0] != ".")
    assert there == ["day=0/part.parquet", "day=1/part.parquet"]
    assert len(list((answers / "day=2").iterdir())) == 1  # the unfinished part, under another name
    scored = approxsvm.score_dataset(MODEL, folder, answers, batch_rows=50)
    assert (scored.n_kept, scored.n_rows) == (2, 200)
    approxsvm.score_dataset(MODEL, folder, tmp_path / "undisturbed", batch_rows=50)
    whole = {path.relative_to(answers): path.read_bytes() for path in answers.rglob("*") if path.is_file()}
    other = tmp_path / "undisturbed"
    assert whole == {path.relative_to(other): path.read_bytes() for path in other.rglob("*") if path.is_file()}


def test_killed_before_a_single_file_is_whole(inputs, tmp_path):
    output = tmp_path / "answers.csv"
    output.write_text("of before")
    program = "approxsvm.score_dataset(sys.argv[1], sys.argv[2], sys.argv[3], progress=die_after(100), batch_rows=50)"
    assert in_a_process(tmp_path, program, MODEL, inputs / "rows.csv", output).returncode == -signal.SIGKILL
    assert output.read_text() == "of before"
    assert len(os.listdir(tmp_path)) == 2
    approxsvm.score_dataset(MODEL, inputs / "rows.csv", output)
    assert os.listdir(tmp_path) == ["answers.csv"]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no locks of this kind")
def test_two_runs_write_one_file(inputs, tmp_path):
    """Neither removes the other's file; the last one to finish gets the name."""
    output = tmp_path / "answers.csv"

    def second(n_rows, share):
        if not output.exists():
            approxsvm.score_dataset(MODEL, inputs / "rows.parquet", output)
            assert read(output)["label"].to_pylist() == LABELS

    approxsvm.score_dataset(MODEL, inputs / "rows.parquet", output, outputs=["value"], progress=second)
    assert read(output).schema.names == ["value"]
    assert os.listdir(tmp_path) == ["answers.csv"]


@pytest.mark.parametrize("output", ["answers.csv", "answers.parquet"])
def test_no_room_on_the_disk(inputs, tmp_path, output):
    """With a limit on file size, nothing remains, and the message names the output."""
    program = """
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
        approxsvm.score_dataset(sys.argv[1], sys.argv[2], sys.argv[3], keep=["id", "f0", "f1"], batch_rows=50)
    """
    found = in_a_process(tmp_path, program, MODEL, inputs / "rows.parquet", tmp_path / output)
    assert re.search(rf"OSError: \[Errno 27\] File too large: '.*{output}'", found.stderr), found.stderr
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_device_that_is_full(inputs):
    with pytest.raises(OSError, match=r"No space left on device: '/dev/full'"):
        approxsvm.score_dataset(MODEL, inputs / "rows.parquet", "/dev/full", output_format="csv", batch_rows=10)


def test_an_unreadable_part(tmp_path):
    """Earlier parts exist; the others are written once the input is repaired."""
    folder, answers = make_folder(tmp_path), tmp_path / "answers"
    broken = folder / "day=2" / "part.parquet"
    content = broken.read_bytes()
    broken.write_bytes(content[:1000] + bytes(1000) + content[2000:])
    with pytest.raises(DataFormatError, match=r"day=2/part.parquet: not a readable parquet file"):
        approxsvm.score_dataset(MODEL, folder, answers, batch_rows=10)
    there = sorted(path.relative_to(answers).as_posix() for path in answers.rglob("*") if path.is_file())
    assert there == ["_approxsvm_score.json", "day=0/part.parquet", "day=1/part.parquet"]
    broken.write_bytes(content)
    os.utime(broken, ns=(0, 0))
    assert approxsvm.score_dataset(MODEL, folder, answers).n_kept == 2
    assert labels_of(answers) == LABELS[:400]


def test_an_input_is_never_overwritten(inputs, tmp_path):
    (tmp_path / "rows.csv").write_bytes((inputs / "rows.csv").read_bytes())
    with pytest.raises(InputError, match=r"is the same file as input .*rows.csv, which would be lost"):
        approxsvm.score_dataset(MODEL, tmp_path / "rows.csv", tmp_path / "rows.csv")
    (tmp_path / "answers").mkdir()
    (tmp_path / "answers" / "rows.csv").symlink_to(tmp_path / "rows.csv")
    for folder in (tmp_path, tmp_path / "answers"):
        with pytest.raises(InputError, match=r"is the same file as input .*rows.csv, which would be lost"):
            approxsvm.score_dataset(MODEL, tmp_path / "rows.csv", folder, output_format="csv")


def test_kept_columns_of_several_files(tmp_path):
    """Kept columns have the first file's types, or are refused."""
    pq.write_table(TABLE.set_column(0, "id", pa.array(range(500), pa.int64())), tmp_path / "a.parquet")
    pq.write_table(TABLE.set_column(0, "id", pa.array(range(500), pa.int16())), tmp_path / "b.parquet")
    pq.write_table(TABLE.set_column(0, "id", pa.array(["x"] * 500)), tmp_path / "c.parquet")
    names = [tmp_path / f"{name}.parquet" for name in "abc"]
    approxsvm.score_dataset(MODEL, names[:2], tmp_path / "answers.arrow", keep=["id"])
    assert read(tmp_path / "answers.arrow")["id"].to_pylist() == 2 * list(range(500))
    for others in (names, names[1::-1]):
        with pytest.raises(InputError, match=r"[ca].parquet: kept columns have other types than in the first file"):
            approxsvm.score_dataset(MODEL, others, tmp_path / "answers.arrow", keep=["id"])


# --- the command


def run(*arguments, **options):
    return CliRunner().invoke(main, ["score", *map(str, arguments)], **options)


def test_the_command(inputs, tmp_path, monkeypatch):
    output = tmp_path / "answers.parquet"
    found = run(MODEL, inputs / "rows.parquet", "-o", output, "--keep", "id, f0", "--outputs", "value,label", "-j", 1)
    assert found.exit_code == 0, found.output
    assert re.fullmatch(rf"{re.escape(str(output))}: 500 rows, [\d.]+ s, [\d,]+ rows a second\n", found.stderr)
    assert found.stdout == ""
    assert read(output).schema.names == ["id", "f0", "value", "label"]
    two = run("--model", f"a={MODEL}", "--model", f"b={MODEL}", inputs / "rows.csv", "-o", tmp_path / "two.csv")
    assert two.exit_code == 0, two.output
    assert read(tmp_path / "two.csv").schema.names == ["a_label", "b_label"]
    (tmp_path / "day=1").mkdir()
    (tmp_path / "day=1" / "m.asvm").write_bytes(MODEL.read_bytes())
    monkeypatch.chdir(tmp_path)
    of_a_day = run("day=1/m.asvm", inputs / "rows.csv", "-o", "day.csv")
    assert of_a_day.exit_code == 0, of_a_day.output


def test_the_command_names_bad_rows(tmp_path):
    write_bad(tmp_path)
    found = run(MODEL, tmp_path / "bad.parquet", "-o", tmp_path / "a.csv", "--on-error", "skip")
    assert found.exit_code == 0
    assert f"approxsvm: {tmp_path / 'bad.parquet'}, row 10: column 'f3' is null\n" in found.stderr
    assert "100 rows, 3 without an answer" in found.stderr
    refused = run(MODEL, tmp_path / "bad.parquet", "-o", tmp_path / "b.csv")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr == f"approxsvm: {tmp_path / 'bad.parquet'}, row 10: column 'f3' is null\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "a.csv"], "no input: give a file"),
        (["rows.csv", "-o", "a.csv"], "no model to score with: give an .asvm file"),
        (["x/m.asvm", "y/m.asvm", "rows.csv", "-o", "a.csv"], "two models have the same name"),
        ([MODEL, "nowhere.csv", "-o", "a.csv"], "nowhere.csv: No such file"),
        (
            [MODEL, MODEL.parent / "breast_cancer.t", "-o", "a.txt.gz"],
            r"a.txt.gz: the name must end in one of .csv, .parquet, .arrow",
        ),
    ],
)
def test_wrong_commands(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = run(*arguments)
    assert found.exit_code == 1
    assert re.search(words, found.stderr)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("kind", "name", "output"),
    [("csv", "rows.csv", "arrow"), ("libsvm", "rows.libsvm", "csv")],
)
def test_from_standard_input_to_standard_output(inputs, kind, name, output):
    """Run a pipe of programs, which prints only the summary to standard error."""
    keep = "target" if kind == "libsvm" else "id"
    arguments = ["score", MODEL, "-", "-o", "-", "--input-format", kind, "--keep", keep, "--output-format", output]
    command = [sys.executable, "-m", "approxsvm.cli", *map(str, arguments)]
    found = subprocess.run(command, input=(inputs / name).read_bytes(), capture_output=True, timeout=120)
    assert found.returncode == 0, found.stderr
    reader = arrow_csv.read_csv if output == "csv" else lambda stream: pa.ipc.open_stream(stream).read_all()
    assert reader(io.BytesIO(found.stdout))["label"].to_pylist() == LABELS
    assert found.stderr.count(b"\n") == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
@pytest.mark.parametrize(("kind", "name"), [("csv", "rows.csv"), ("arrow", "stream.ipc"), ("libsvm", "rows.t")])
def test_from_a_named_pipe(inputs, tmp_path, kind, name):
    """As with <(zcat rows.csv.gz) in shells, the input is read once, from the first to the last byte."""
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes((inputs / name).read_bytes()))
    writer.start()
    approxsvm.score_dataset(MODEL, tmp_path / "pipe", tmp_path / "a.arrow", input_format=kind)
    writer.join()
    assert read(tmp_path / "a.arrow")["label"].to_pylist() == LABELS


def test_standard_streams_that_are_not_there(inputs, monkeypatch):
    with pytest.raises(InputError, match="standard input is given several times, but can be read only once"):
        approxsvm.score_dataset(MODEL, ["-", "-"], "a.csv")
    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(InputError, match="standard input: it is closed"):
        approxsvm.score_dataset(MODEL, "-", "a.csv")
    with pytest.raises(InputError, match="standard output is closed"):
        approxsvm.score_dataset(MODEL, inputs / "rows.csv", "-")


# --- memory


@pytest.mark.slow
def test_memory_does_not_depend_on_the_size(tmp_path):
    """A row group of 500,000 rows, with 60 MB of numbers, takes no more memory than one a fifth as large."""
    program = """
        import re
        approxsvm.score_dataset(sys.argv[1], sys.argv[2], sys.argv[3], n_jobs=2)
        print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
    """
    peaks = []
    for n_rows in (100_000, 500_000):
        table = pa.table({name: np.zeros(n_rows, np.float32) + k for k, name in enumerate(FEATURES)})
        pq.write_table(
            table, tmp_path / "rows.parquet", row_group_size=n_rows, use_dictionary=False, compression="none"
        )
        found = in_a_process(tmp_path, program, MODEL, tmp_path / "rows.parquet", tmp_path / "answers.csv")
        peaks.append(int(found.stdout))
    assert peaks[1] - peaks[0] < 44_000, peaks  # kilobytes; the larger group's data take 48,000 more
    assert pd.read_csv(tmp_path / "answers.csv").shape == (500_000, 1)


# --- a CSV file with one column


@pytest.mark.parametrize("kind", ["text", "integer", "boolean", "value"])
def test_nulls_of_a_single_column_are_lines_that_readers_keep(kind, tmp_path):
    """pandas, Polars, DuckDB, R and `score` would skip an empty line, so that answers would move up."""
    names = {"text": ["b\n\n", "a"], "integer": [3, 4], "boolean": [False, True]}.get(kind)
    target = ROWS[:, 0] if names is None else np.array(names)[(ROWS[:, 0] > 0).astype(int)]
    source = (SVR if names is None else SVC)(gamma=0.01).fit(ROWS, target)
    table = TABLE.slice(0, 6).to_pandas()
    table.loc[[0, 2, 3, 5], "f1"] = np.nan
    table.to_csv(tmp_path / "rows.csv", index=False)
    out = tmp_path / "out.csv"
    model = approxsvm.compile(source).artifact
    rows = tmp_path / "rows.csv"
    approxsvm.score_dataset(model, rows, out, on_error="null")
    expected = source.predict(ROWS[[1, 4]])
    assert out.read_bytes().count(b'""\n') == 4
    (name,) = arrow_csv.read_csv(io.BytesIO(out.read_bytes().split(b"\n")[0] + b"\n0\n")).column_names
    for labels in (read_by(out, name) for read_by in READ_BY.values()):
        assert len(labels) == 6
        assert [label in (None, "") or label != label for label in labels] == [True, False, True, True, False, True]
        if kind == "value":
            np.testing.assert_allclose([float(labels[1]), float(labels[4])], expected, atol=1e-5)
        else:
            assert [str(labels[k]).lower().removesuffix(".0") for k in (1, 4)] == [
                str(label).lower() for label in expected
            ]


def _by_polars(path, name):
    return pytest.importorskip("polars").read_csv(path)[name].to_list()


def _by_duckdb(path, name):
    found = pytest.importorskip("duckdb").sql(f"select * from read_csv('{path}', header=true, quote='\"')").fetchall()
    return [label for (label,) in found]


READ_BY = {
    "pandas": lambda path, name: pd.read_csv(path)[name].tolist(),
    "polars": _by_polars,
    "duckdb": _by_duckdb,
    "arrow": lambda path, name: arrow_csv.read_csv(
        path,
        parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
        convert_options=arrow_csv.ConvertOptions(strings_can_be_null=True),
    )[name].to_pylist(),
}


# --- booleans in CSV files


@by_position
@pytest.mark.parametrize("spelling", [("True", "False"), ("TRUE", "FALSE"), ("true", "false")])
def test_truth_values_among_numbers_are_bad_rows(spelling, tmp_path):
    """As in pandas, a column must contain only booleans, or the row is invalid; the first row determines the type."""
    source = SVC().fit(np.column_stack([ROWS[:, 0] > 0, ROWS[:, 1]]), LABELS)
    model, path, out = approxsvm.compile(source).artifact, tmp_path / "rows.csv", tmp_path / "out.csv"
    flags = [spelling[0], spelling[1], spelling[0], "", "1", "yes", spelling[1]]
    path.write_text("a,b\n" + "".join(f"{flag},{ROWS[k, 1]}\n" for k, flag in enumerate(flags)))
    approxsvm.score_dataset(model, path, out, on_error="null")
    found = pd.read_csv(out)["label"]
    whole = np.array([[1, ROWS[0, 1]], [0, ROWS[1, 1]], [1, ROWS[2, 1]], [0, ROWS[6, 1]]])
    assert found[[0, 1, 2, 6]].tolist() == source.predict(whole).tolist()
    assert found[[3, 4, 5]].isna().all()
    path.write_text("a,b\n" + "".join(f"{flag},1\n" for flag in [*flags[:3], spelling[0], "1"]))
    with pytest.raises(InputError, match=r"row 4: column 'a' holds '1', but true or false in the first row"):
        approxsvm.score_dataset(model, path, out)
    path.write_text(f"a,b\n1,0.5\n{spelling[0]},0.5\n0,0.5\n")
    with pytest.raises(InputError, match=rf"row 1: column 'a' holds '{spelling[0]}', which is not a number"):
        approxsvm.score_dataset(model, path, out)

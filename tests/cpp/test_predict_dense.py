"""approxsvm-predict --dense: rows of values without names, with and without leading labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from predict_tool import (
    MODEL_TEXT,
    N_FEATURES,
    Files,
    Libsvm,
    accuracy_line,
    failure,
    kernel_model,
    libsvm_text,
    needs_tool,
    predict,
    random_rows,
    training_text,
)
from scipy.sparse import csr_array

pytestmark = needs_tool


def dense_text(targets: npt.ArrayLike | None, rows: Any, delimiter: str = ",", line_break: str = "\n") -> str:
    """Zeros are written in several ways."""
    values = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
    lines = [[repr(float(x)) if x else ("0", "-0", "0.0")[i % 3] for x in row] for i, row in enumerate(values)]
    if targets is not None:
        lines = [[f"{t:g}", *line] for t, line in zip(np.asarray(targets), lines, strict=True)]
    return "".join(delimiter.join(line) + line_break for line in lines)


@pytest.mark.parametrize(
    ("written", "options"),
    [
        (",", []),
        (" ", []),
        ("\t", []),
        (" , ", []),
        ("  \t ", []),
        (";", ["--delimiter", ";"]),
        (" ; ", ["--delimiter", ";"]),
        ("|", ["--delimiter", "|"]),
        ("\t", ["--delimiter", "\\t"]),
        (" \t ", ["--delimiter", "\t"]),
        (",", ["--delimiter", ","]),
        ("   ", ["--delimiter", " "]),
    ],
)
def test_delimiters(files: Files, written: str, options: list[str]) -> None:
    fast, rows, targets = files.save_rows(90)
    predicted = fast.predict(rows)
    for line_break in ("\n", "\r\n", " \n"):
        text = dense_text(targets, rows, written, line_break)
        for content in (text, text.removesuffix(line_break)):
            files.data.write_text(content, newline="")
            assert predict("--dense", *options, *files.arguments) == accuracy_line(predicted, targets)
            assert files.output.read_text() == "".join(f"{label}\n" for label in predicted)


@pytest.mark.parametrize("options", ["-s 0 -b 1", "-s 3", "-s 2 -t 1", "-s 0 -t 0"])
@pytest.mark.parametrize("n_beyond", [-2, 0, 3])
def test_dense_rows_of_libsvm_models(files: Files, libsvm: Libsvm, options: str, n_beyond: int) -> None:
    """There may be fewer features than the model has, or more."""
    model = libsvm.train(options, training_text((1, 3, 2)))
    n_features = N_FEATURES + n_beyond
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(200, n_features)) * (rng.random((200, n_features)) < 0.7)
    targets = rng.choice([1, 2, 3], size=200)
    files.data.write_text(libsvm_text(targets.tolist(), csr_array(rows)))
    dense = files.folder / "dense"
    dense.write_text(dense_text(targets, rows))
    libsvm.check(model, data=dense)
    if "-b" in options:
        libsvm.check(model, "-b", 1, data=dense)


def test_dense_rows_are_the_same_for_any_number_of_threads(files: Files) -> None:
    _, rows, targets = files.save_rows(6000)
    files.data.write_text(dense_text(targets, rows))
    seen = {(predict("--dense", "-j", n, *files.arguments), files.output.read_bytes()) for n in (1, 2, 7)}
    assert len(seen) == 1


def test_an_empty_dense_file(files: Files) -> None:
    files.save(kernel_model(), "")
    assert predict("--dense", *files.arguments) == "The test file has no rows to compare with.\n"
    assert files.output.read_bytes() == b""


GOOD = ",".join(["0.5"] * N_FEATURES)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", "wrong input format: the line is blank"),
        ("  ", "wrong input format: the line is blank"),
        ("x," + GOOD, "wrong input format: label 'x,0.5,"),
        ("1,," + GOOD, "wrong input format: value ',0.5,"),
        ("1," + GOOD.replace("0.5", "y", 1), "wrong input format: value 'y,0.5,"),
        ("1," + GOOD + ",", "wrong input format: nothing follows the last delimiter"),
        ("1," + GOOD + ",2", "wrong input format: the row has 10 values instead of 9"),
        ("1,2,3", "wrong input format: the row has 2 values instead of 9"),
        ("1", "wrong input format: there is a label, but no value (use --no-labels if the first value is not a label)"),
        ("1," + GOOD.replace("0.5", "nan", 1), "the value of feature 1 is nan, and only finite values can be"),
        ("1," + GOOD[:-3] + "-inf", "the value of feature 9 is -inf, and only finite values can be predicted"),
    ],
)
@pytest.mark.parametrize("line_number", [2, 9000])
def test_the_first_bad_dense_line_is_named(files: Files, line: str, why: str, line_number: int) -> None:
    lines = ["1," + GOOD] * 20000
    lines[line_number - 1] = line
    lines[line_number] = lines[15000] = "bad"
    files.save(kernel_model(), "\n".join(lines) + "\n")
    (files.folder / "c_svc").write_text(MODEL_TEXT)
    for n_threads, model in ((1, "m.asvm"), (3, "m.asvm"), (2, "c_svc")):
        message = failure("--dense", "-j", n_threads, files.data, files.folder / model, files.output)
        assert message.startswith(f"{files.data}, line {line_number}: {why}")
    assert not files.output.exists()


def test_artifacts_want_all_their_features(files: Files) -> None:
    files.save(kernel_model(), f"{GOOD}\n")
    why = "the row has 8 values, but the model has 9 features"
    assert failure("--dense", *files.arguments) == f"{files.data}, line 1: {why}"
    assert predict("--dense", "--no-labels", *files.arguments) == ""
    files.data.write_text("\n1\n")
    assert failure("--dense", *files.arguments) == f"{files.data}, line 1: wrong input format: the line is blank"


def test_dense_libsvm_rows_without_labels(files: Files, libsvm: Libsvm) -> None:
    model = libsvm.train("-s 0", training_text((1, 3, 2)))
    rows = random_rows(100)
    files.data.write_text(libsvm_text([1] * 100, rows))
    expected = libsvm.check(model)
    dense: Path = files.folder / "dense"
    dense.write_text(dense_text(None, rows, "\t"))
    assert predict("--dense", "--no-labels", dense, model, files.output) == ""
    assert files.output.read_bytes() == expected


@pytest.mark.parametrize(("start", "delimiter", "line_break"), [(0, ",", "\n"), (1, " ", "\r\n")])
def test_a_first_line_that_counts_is_asked_about(files: Files, start: int, delimiter: str, line_break: str) -> None:
    """pandas writes this line for an array; as a row it would be the label and the values."""
    _, rows, targets = files.save_rows(20)
    numbers = [str(start + k) for k in range(N_FEATURES + 1)]
    text = dense_text(targets, rows, delimiter, line_break)
    files.data.write_text(delimiter.join(numbers) + line_break + text, newline="")
    message = failure("--dense", *files.arguments)
    assert f"{files.data}, line 1: the line may be names" in message
    assert "delete it, or say --no-header" in message
    predict("--dense", "--no-header", *files.arguments)
    assert len(files.output.read_text().splitlines()) == 21
    for place, other in ((0, "2"), (0, "+0"), (0, "0.0"), (N_FEATURES, "0.5")):
        row = [other if k == place else number for k, number in enumerate(numbers)]
        files.data.write_text(delimiter.join(row) + line_break + text, newline="")
        predict("--dense", *files.arguments)
        assert len(files.output.read_text().splitlines()) == 21

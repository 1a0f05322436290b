"""The command approxsvm-predict: for artifacts, it gives Python's answers; it behaves like svm-predict."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from predict_tool import (
    EVERY_MODE,
    MODEL_TEXT,
    N_FEATURES,
    SVR_TEXT,
    Files,
    Mode,
    failure,
    kernel_model,
    libsvm_text,
    needs_tool,
    predict,
    random_rows,
    regression_lines,
    run,
    shown,
)
from scipy.sparse import csr_array
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, SVR

import approxsvm

pytestmark = needs_tool

# --- answers


@EVERY_MODE
def test_regression_values_have_all_digits_and_its_two_closing_lines(files: Files, mode: Mode) -> None:
    fast, rows, targets = files.save_rows(mode=mode, task="regression")
    predicted = fast.predict(rows)
    assert predict(*files.arguments) == regression_lines(predicted.tolist(), targets.tolist())
    assert files.output.read_text() == "".join(shown(value) + "\n" for value in predicted)


@EVERY_MODE
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_output_and_closing_lines_do_not_depend_on_the_number_of_threads(files: Files, task: str, mode: Mode) -> None:
    fast, rows, _ = files.save_rows(9000, mode, task=task)
    assert files.data.stat().st_size > 3 << 18  # several chunks
    seen = {(predict("-j", n, *files.arguments), files.output.read_bytes()) for n in (1, 2, 7)}
    assert len(seen) == 1
    predicted = [shown(value) + "\n" for value in fast.predict(rows)]
    assert files.output.read_text() == "".join(predicted)


def test_long_rows_share_a_chunk(files: Files) -> None:
    n_features, n_rows = 800, 400
    rng = np.random.default_rng(2)
    rows = csr_array(rng.normal(size=(n_rows, n_features)))
    support_vectors = rng.normal(size=(40, n_features))
    model = kernel_model(task="regression", support_vectors=support_vectors, gamma=1e-4)
    fast = files.save(model, libsvm_text([0] * n_rows, rows))
    predict("-q", *files.arguments)
    assert files.output.read_text() == "".join(shown(value) + "\n" for value in fast.predict(rows))


# --- columns


@EVERY_MODE
def test_features_the_model_has_never_seen_count_in_the_norm(files: Files, mode: Mode) -> None:
    model = kernel_model(task="regression")
    text = "0 1:0.5\n0 1:0.5 10:3 2147483646:4\n0 0:3 1:0.5 77:4\n0 1:0.5 10:1e200\n"
    fast = files.save(model, text, mode)
    predict("-q", *files.arguments)
    plain, beyond, before, far = map(float, files.output.read_text().split())
    near = fast.predict(csr_array(np.eye(1, N_FEATURES) * 0.5))[0]
    assert plain == pytest.approx(near, rel=1e-12)  # few rows are summed in another order by Python
    assert beyond == before
    assert beyond != plain
    wide = np.zeros((1, N_FEATURES + 2))
    wide[0, [0, 9, 10]] = 0.5, 3.0, 4.0
    wider_vectors = np.pad(np.asarray(model.support_vectors), ((0, 0), (0, 2)))
    wider = approxsvm.compile(kernel_model(task="regression", support_vectors=wider_vectors), mode=mode)
    assert beyond == pytest.approx(wider.predict(wide)[0], abs=1e-3 if mode == "certified" else 1e-5)
    assert far == fast.artifact.decision_numbers()["intercept"][0]


def test_index_0_is_a_column_when_the_model_says_so(files: Files) -> None:
    rows = random_rows(40)
    fast = files.save(kernel_model(task="regression", first_index=0), libsvm_text([0] * 40, rows, first_index=0))
    predict("-q", *files.arguments)
    assert files.output.read_text() == "".join(shown(value) + "\n" for value in fast.predict(rows))


def test_line_breaks_of_windows_and_a_missing_last_one(files: Files) -> None:
    rows = random_rows(40)
    unix = libsvm_text([1] * 40, rows)
    files.save(kernel_model(), unix)
    expected = predict(*files.arguments), files.output.read_bytes()
    for text in (libsvm_text([1] * 40, rows, line_break="\r\n"), unix[:-1], unix.replace(" ", " \t")):
        files.data.write_text(text, newline="")
        assert (predict(*files.arguments), files.output.read_bytes()) == expected


def test_a_line_with_only_a_label_is_a_row_of_zeros(files: Files) -> None:
    fast = files.save(kernel_model(task="regression"), "1\n2\r\n3")
    predict("-q", *files.arguments)
    zero = fast.predict(csr_array((1, N_FEATURES), dtype=np.float64))[0]
    values = files.output.read_text().split()
    assert values == values[:1] * 3
    assert float(values[0]) == pytest.approx(zero, rel=1e-12)  # few rows are summed in another order by Python


def test_a_data_file_without_rows_gives_an_empty_output(files: Files) -> None:
    """svm-predict prints "Accuracy = -nan% (0/0)" here, and something similar for a regression."""
    for task in ("classification", "regression"):
        files.save(kernel_model(task=task), "")
        assert predict(*files.arguments) == "The test file has no rows to compare with.\n"
        assert files.output.read_bytes() == b""
        assert predict("-q", *files.arguments) == ""


# --- options


def test_quiet_mode_prints_nothing(files: Files) -> None:
    files.save_rows()
    assert predict("-q", "-b", 0, "-j", 2, *files.arguments) == ""
    assert files.output.stat().st_size > 0


def test_help_and_version() -> None:
    assert predict("--help").startswith("Usage: approxsvm-predict [options] test_file model_file output_file\n")
    assert predict("--version") == f"approxsvm-predict {approxsvm.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "three file names are needed, 0 given"),
        (("-q", "a", "b"), "three file names are needed, 2 given"),
        (("a", "b", "c", "-q"), "three file names are needed, 4 given"),
        (("-x", "a", "b", "c"), "unknown option '-x'"),
        (("-", "b", "c"), "unknown option '-'"),
        (("-b",), "option -b needs a value"),
        (("-b", "2", "a", "b", "c"), "option -b takes a number from 0 to 1, not '2'"),
        (("-j", "0", "a", "b", "c"), "option -j takes a number from 1 to 1024, not '0'"),
        (("-j", "2x", "a", "b", "c"), "option -j takes a number from 1 to 1024, not '2x'"),
        (("-j", "-1", "a", "b", "c"), "option -j takes a number from 1 to 1024, not '-1'"),
    ],
)
def test_wrong_arguments_show_the_usage(arguments: tuple[str, ...], why: str) -> None:
    assert failure(*arguments) == why
    assert run(*arguments).stdout == run("--help").stdout


def test_probabilities_of_artifacts_without_them_are_refused(files: Files) -> None:
    files.save_rows()
    assert failure("-b", 1, *files.arguments) == f"{files.model}: Model does not support probabiliy estimates"
    assert not files.output.exists()


@pytest.mark.parametrize(("breaks", "shown"), [("\n", r"\n"), ("\r\n", r"\r\n"), ("\r", r"\r")])
def test_labels_with_line_breaks_are_refused(files: Files, breaks: str, shown: str) -> None:
    """Each output line must be one row, for every reader."""
    files.save(kernel_model(labels=("yes", f"n{breaks}o")), libsvm_text([1] * 30, random_rows(30)))
    files.output.write_text("earlier")
    message = failure(*files.arguments)
    assert message.startswith(f"{files.model}: label 'n{shown}o' has a line break, and output_file has a line for each")
    assert files.output.read_text() == "earlier"


# --- models


@pytest.mark.parametrize("name", ["none", "avx1024"])
def test_a_target_that_cannot_run_is_an_error(files: Files, name: str) -> None:
    files.save_rows()
    assert f"APPROXSVM_TARGET asks for target '{name}', which" in failure(*files.arguments, APPROXSVM_TARGET=name)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"x", ""),
        (b"", ": this is an empty file"),
        (b"1 1:0.5 2:1\n", ": this is a LIBSVM data file"),
        (b"\x00" * 500, ": this is a binary file of an unknown kind"),
        (b"\x89PNG\r\n\x1a\n", ": this is a PNG image"),
        (b"{}", ": this is a JSON file"),
    ],
)
def test_files_that_are_no_models_are_refused(files: Files, content: bytes, kind: str) -> None:
    files.save_rows()
    files.model.write_bytes(content)
    assert failure(*files.arguments) == f"{files.model}: neither an approxsvm artifact nor a LIBSVM model{kind}"


def test_files_that_hold_a_model_or_no_rows_are_named(files: Files) -> None:
    files.save_rows()
    files.model.write_text('{"model": "svm_type nu_svr"}')
    assert "this is a JSON file with a LIBSVM model in it" in failure(*files.arguments)
    files.save_rows()
    files.data.write_text(MODEL_TEXT)
    assert failure(*files.arguments) == f"{files.data}: this is a LIBSVM model, not a LIBSVM data file"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("rho 0\n", "rho zero\n", ", line 6: rho has 'zero' for a number"),
        ("gamma 0.5\n", "", ", line 8: the header has no gamma, which kernel_type rbf needs"),
        ("-1 2:0.1\n", "-1 2:x\n", ", line 12: support vector 3: "),
        ("-0.5 1:0.3 3:0.7\n", "", ", line 12: total_sv is 4, but there are 3 rows of support vectors"),
        ("rbf", "precomputed", ": the kernel is precomputed, which only svm-predict supports"),
        (
            "SV\n",
            "scaling 2:3\nSV\n",
            ": the model scales its rows (PCL's line scaling); approxsvm convert-model reads it",
        ),
    ],
)
def test_model_files_that_are_wrong_or_not_supported(files: Files, old: str, new: str, why: str) -> None:
    files.save_rows()
    files.model.write_text(MODEL_TEXT.replace(old, new))
    assert failure(*files.arguments).startswith(f"{files.model}{why}")
    assert not files.output.exists()


@pytest.mark.parametrize("mark", ["\ufeff", "# comment\n"])
def test_byte_order_marks_and_comments_in_headers_change_nothing(files: Files, mark: str) -> None:
    files.save_rows()
    files.model.write_text(MODEL_TEXT)
    expected = predict(*files.arguments)
    files.model.write_text(mark + MODEL_TEXT)
    assert predict(*files.arguments) == expected
    files.data.write_text("\ufeff" + files.data.read_text())
    assert predict(*files.arguments) == expected
    files.data.write_text("# comment\n" + files.data.read_text())
    assert "line 1: wrong input format: label '#' is not a number; LIBSVM's rows have no comments" in failure(
        *files.arguments
    )


@pytest.mark.parametrize(
    ("change", "why"),
    [("cut", "it is truncated"), ("flip", "the file is damaged"), ("head", "64 bytes, expected at least 192")],
)
def test_damaged_artifacts_are_refused(files: Files, change: str, why: str) -> None:
    files.save_rows()
    content = bytearray(files.model.read_bytes())
    content[-64] ^= change == "flip"
    files.model.write_bytes(content[: {"cut": -64, "head": 64}.get(change)])
    message = failure(*files.arguments)
    assert message.startswith(f"{files.model}: ")
    assert why in message


# --- invalid data


@pytest.mark.parametrize("missing", ["data", "model"])
def test_missing_files_are_named(files: Files, missing: str) -> None:
    files.save_rows()
    path = getattr(files, missing)
    path.unlink()
    assert failure(*files.arguments) == f"{path}: No such file or directory"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", "wrong input format: the line is blank"),
        ("1,2 1:1", "wrong input format: label '1,2' is not a number"),
        ("1 2:1 2:1", "wrong input format"),
        ("1 1:", "wrong input format"),
        ("1 3:nan", "the value of feature 3 is nan, and only finite values can be predicted"),
        ("1 1:2 8:-inf", "the value of feature 8 is -inf, and only finite values can be predicted"),
        ("1 99:inf", "the value of feature 99 is inf, and only finite values can be predicted"),
    ],
)
@pytest.mark.parametrize("line_number", [1, 2, 9000])
def test_the_first_bad_line_is_named_and_no_output_is_left(files: Files, line: str, why: str, line_number: int) -> None:
    """Other chunks precede it, and other invalid lines follow it, in the same chunk and in others."""
    lines = ["1 1:0.25 2:-0.5 7:1.125 8:0.1234567"] * 20000
    for i in (line_number - 1, line_number, line_number + 2, 15000, 19999):
        lines[i] = "1 1:nan" if i % 2 else "bad"
    lines[line_number - 1] = line
    files.save(kernel_model(), "\n".join(lines) + "\n")
    (files.folder / "c_svc").write_text(MODEL_TEXT)
    (files.folder / "nu_svr").write_text(SVR_TEXT)
    before = files.names()
    for n_threads, model in ((1, "m.asvm"), (2, "m.asvm"), (5, "m.asvm"), (2, "c_svc"), (2, "nu_svr")):
        message = failure("-j", n_threads, files.data, files.folder / model, files.output)
        assert message.startswith(f"{files.data}, line {line_number}: {why}")
    assert files.names() == before


def with_a_promise_to_break(kind: str) -> tuple[Any, str]:
    """Return a model, and a row for which float64 cannot reproduce the source."""
    X = np.random.default_rng(0).normal(size=(60, 3)).round(3)
    if kind == "cubic":
        return approxsvm.compile(SVC(kernel="poly", degree=3).fit(X, X[:, 1] > 0)), "1:1e200"
    if kind == "scaled":  # the first feature, by 10^10
        X[:, 0] *= 1e-10
        return approxsvm.compile(make_pipeline(StandardScaler(), SVC()).fit(X, X[:, 1] > 0)), "1:1e300"
    if kind == "logarithm":
        step = FunctionTransformer(np.log1p)
        return approxsvm.compile(make_pipeline(step, SVC()).fit(np.abs(X), X[:, 1] > 0), np.abs(X)), "1:2 3:-1.5"
    # After the projection, only the rounding error of scaling remains.
    source = make_pipeline(StandardScaler(), PCA(2), SVR(gamma=1.0)).fit(X, X[:, 1])
    source[1].components_[:] = [[1.0, -1.0, 0.0], [0.0, 0.0, 1.0]]
    source[2].fit(source[:-1].transform(X), X[:, 1])
    lost = source[0].inverse_transform(np.array([[1e13, 1e13, 0.0]]))
    return approxsvm.compile(source, X, tolerance=1e-7), libsvm_text([1], csr_array(lost))[2:-1]


@pytest.mark.parametrize(
    ("kind", "row", "why"),
    [
        ("scaled", "", r"scaling its values, the largest of which is 1e\+300, exceeds the range of float64"),
        ("scaled", "2:1 7:1", "feature 7 is none of the model's, 1 to 3"),
        ("scaled", "2:1 7:0 8:-1e-300", "feature 8 is none of the model's, 1 to 3"),
        ("scaled", "0:2 2:1", "feature 0 is none of the model's, 1 to 3"),
        ("projected", "", r"its value is certain to \S+ in float64, and not to the tolerance of 1e-07"),
        ("logarithm", "", "log needs a value above -1, got -1.5"),
        ("cubic", "", "the decision value of a row, or a term of it, exceeds the range of float64"),
    ],
    ids=["overflow", "unknown", "unknown and tiny", "below the first", "tolerance", "logarithm", "value"],
)
@pytest.mark.parametrize("line_number", [1, 2, 9000])
def test_rows_that_float64_cannot_serve_are_named_by_line(
    files: Files, kind: str, row: str, why: str, line_number: int
) -> None:
    """The first fault is named, in any chunk; later rows may have other faults."""
    fast, broken = with_a_promise_to_break(kind)
    fast.save(files.model)
    lines = ["1 1:0.25 2:-0.5 3:1.125"] * 20000
    for i in (line_number - 1, line_number + 2, 15000):
        lines[i] = f"1 {row or broken}"
    lines[19999] = "1 1:nan"
    files.data.write_text("\n".join(lines) + "\n")
    for n_threads in (1, 2, 5):
        message = failure("-j", n_threads, *files.arguments)
        assert re.fullmatch(rf"{re.escape(str(files.data))}, line {line_number}: {why}", message)
    assert not files.output.exists()


def test_an_earlier_output_survives_an_error(files: Files) -> None:
    files.save(kernel_model(), "1 1:1\n1 1:inf\n")
    files.output.write_text("earlier")
    assert failure(*files.arguments).startswith(f"{files.data}, line 2: ")
    assert files.output.read_text() == "earlier"


def test_a_label_that_is_not_finite_is_no_obstacle(files: Files) -> None:
    files.save(kernel_model(), "nan 1:1\n")
    assert predict(*files.arguments) == "Accuracy = 0% (0/1) (classification)\n"

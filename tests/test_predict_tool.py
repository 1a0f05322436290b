"""The command approxsvm-predict: the answers are Python's, the manners svm-predict's.

APPROXSVM_PREDICT names another build of the command to test, for example one with sanitizers.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sysconfig
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_array

import approxsvm
from approxsvm import KernelModel, _native

TOOL = Path(os.environ.get("APPROXSVM_PREDICT", Path(sysconfig.get_path("scripts")) / "approxsvm-predict"))
pytestmark = pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} was not built")

N_FEATURES = 9
ERROR = "approxsvm-predict: "


def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(TOOL), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )


def predict(*arguments: object, **environment: str) -> str:
    """Run the command, which must succeed in silence on stderr; returns what it prints."""
    done = run(*arguments, **environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def failure(*arguments: object, **environment: str) -> str:
    """Run the command, which must fail with one line on stderr; returns that line without the program's name."""
    done = run(*arguments, **environment)
    assert done.returncode == 1
    assert done.stderr.startswith(ERROR)
    assert done.stderr.index("\n") == len(done.stderr) - 1
    return done.stderr[len(ERROR) : -1]


def kernel_model(task: Any = "classification", labels: Any = (1, -1), **changes: Any) -> KernelModel:
    rng = np.random.default_rng(5)
    n_sv = 40
    arguments: dict[str, Any] = {
        "task": task,
        "support_vectors": rng.normal(size=(n_sv, N_FEATURES)),
        "dual_coef": rng.normal(size=(1, n_sv)),
        "intercept": np.array([0.01]),
        "gamma": 0.02,
    }
    if task == "classification":
        arguments |= {"labels": np.array(labels), "n_support": np.array([n_sv // 2, n_sv // 2])}
    return KernelModel(**(arguments | changes))


def random_rows(n_rows: int, seed: int = 0) -> Any:
    """Rows from empty to dense, so that both ways to evaluate a sparse row are taken."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, N_FEATURES))
    rows[rng.random(rows.shape) > rng.random((n_rows, 1))] = 0.0
    return csr_array(rows)


def libsvm_text(targets: Iterable[object], rows: Any, first_index: int = 1, line_break: str = "\n") -> str:
    lines = []
    for i, target in enumerate(targets):
        part = slice(rows.indptr[i], rows.indptr[i + 1])
        pairs = zip((rows.indices[part] + first_index).tolist(), rows.data[part].tolist(), strict=True)
        lines.append(" ".join([str(target), *(f"{index}:{value!r}" for index, value in pairs)]))
    return "".join(line + line_break for line in lines)


def shown(number: float) -> str:
    return f"{number:.17g}"


def accuracy_line(predicted: npt.NDArray[Any], targets: npt.NDArray[Any]) -> str:
    correct, total = int(np.sum(predicted == targets)), len(targets)
    return f"Accuracy = {correct / total * 100:g}% ({correct}/{total}) (classification)\n"


def regression_lines(predicted: Iterable[float], targets: Iterable[float]) -> str:
    """The formulas of svm-predict, summed in the order of the rows."""
    n, error, p, t, pp, tt, pt = 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for x, y in zip(predicted, targets, strict=True):
        n, error, p, t = n + 1, error + (x - y) * (x - y), p + x, t + y
        pp, tt, pt = pp + x * x, tt + y * y, pt + x * y
    correlation = ((n * pt - p * t) * (n * pt - p * t)) / ((n * pp - p * p) * (n * tt - t * t))
    return (
        f"Mean squared error = {error / n:g} (regression)\n"
        f"Squared correlation coefficient = {correlation:g} (regression)\n"
    )


class Files:
    """A model, a data file and the place for the output, in a folder that holds nothing else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data, self.model, self.output = folder / "rows.t", folder / "m.asvm", folder / "out"

    @property
    def arguments(self) -> tuple[Path, Path, Path]:
        return self.data, self.model, self.output

    def save(self, model: KernelModel, text: str | bytes) -> Any:
        self.data.write_bytes(text if isinstance(text, bytes) else text.encode())
        fast = approxsvm.compile(model)
        fast.save(self.model)
        return fast

    def save_rows(self, n_rows: int = 50, **model: Any) -> tuple[Any, Any, npt.NDArray[Any]]:
        """A model, rows and their targets, which are the predictions except for the first quarter."""
        rows = random_rows(n_rows)
        fast = approxsvm.compile(kernel_model(**model))
        targets = fast.predict(rows)
        targets[: n_rows // 4] = targets[0]
        self.save(kernel_model(**model), libsvm_text(targets.tolist(), rows))
        return fast, rows, targets

    def names(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


# --- answers


@pytest.mark.parametrize("labels", [(1, -1), (-1, 1), (0, 1), (7, 3)])
def test_integer_labels_are_those_of_python(files: Files, labels: tuple[int, int]) -> None:
    fast, rows, targets = files.save_rows(labels=labels)
    predicted = fast.predict(rows)
    assert predict(*files.arguments) == accuracy_line(predicted, targets)
    assert files.output.read_text() == "".join(f"{label}\n" for label in predicted.tolist())
    assert set(predicted.tolist()) == set(labels)


def test_float_labels_are_written_with_all_digits(files: Files) -> None:
    fast, rows, targets = files.save_rows(labels=(0.1, 2.5))
    predicted = fast.predict(rows)
    assert predict(*files.arguments) == accuracy_line(predicted, targets)
    assert files.output.read_text() == "".join(shown(label) + "\n" for label in predicted)


def test_text_labels_are_written_as_they_are_and_not_compared(files: Files) -> None:
    rows = random_rows(30)
    fast = files.save(kernel_model(labels=("ja", "nein, ñ")), libsvm_text([1] * 30, rows))
    assert predict(*files.arguments) == ""
    assert files.output.read_text(encoding="utf-8").splitlines() == fast.predict(rows).tolist()


def test_one_class_models_answer_plus_or_minus_one(files: Files) -> None:
    fast, rows, targets = files.save_rows(task="one_class")
    predicted = fast.predict(rows)
    assert predict(*files.arguments) == accuracy_line(predicted, targets)
    assert files.output.read_text() == "".join(f"{label}\n" for label in predicted)
    assert set(predicted) == {1, -1}


def test_regression_values_have_all_digits_and_its_two_closing_lines(files: Files) -> None:
    fast, rows, targets = files.save_rows(task="regression")
    predicted = fast.predict(rows)
    assert predict(*files.arguments) == regression_lines(predicted.tolist(), targets.tolist())
    assert files.output.read_text() == "".join(shown(value) + "\n" for value in predicted)


@pytest.mark.parametrize("target", _native.runnable_targets())
def test_every_target_gives_the_digits_of_the_same_target_in_python(files: Files, target: str) -> None:
    fast, rows, _ = files.save_rows(300, task="regression")
    predict("-q", *files.arguments, APPROXSVM_TARGET=target)
    values = _native.Predictor(fast.artifact.data, target).csr(rows.indptr, rows.indices, rows.data, 1)
    assert files.output.read_text() == "".join(shown(value) + "\n" for value in values)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_output_and_closing_lines_do_not_depend_on_the_number_of_threads(files: Files, task: str) -> None:
    fast, rows, _ = files.save_rows(6000, task=task)
    assert files.data.stat().st_size > 5 << 16  # several chunks
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


def test_features_the_model_has_never_seen_count_in_the_norm(files: Files) -> None:
    model = kernel_model(task="regression")
    fast = files.save(model, "0 1:0.5\n0 1:0.5 10:3 2147483646:4\n0 0:3 1:0.5 77:4\n0 1:0.5 10:1e200\n")
    predict("-q", *files.arguments)
    plain, beyond, before, far = map(float, files.output.read_text().split())
    near = fast.predict(csr_array(np.eye(1, N_FEATURES) * 0.5))[0]
    assert plain == near
    assert beyond == before
    assert beyond != plain
    wide = np.zeros((1, N_FEATURES + 2))
    wide[0, [0, 9, 10]] = 0.5, 3.0, 4.0
    wider_vectors = np.pad(np.asarray(model.support_vectors), ((0, 0), (0, 2)))
    wider = approxsvm.compile(kernel_model(task="regression", support_vectors=wider_vectors))
    assert beyond == pytest.approx(wider.predict(wide)[0], rel=1e-5)
    assert far == fast.artifact.header["intercept"]


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
    assert files.output.read_text() == (shown(zero) + "\n") * 3


def test_a_data_file_without_rows_gives_an_empty_output(files: Files) -> None:
    files.save(kernel_model(), "")
    assert re.fullmatch(r"Accuracy = -?nan% \(0/0\) \(classification\)\n", predict(*files.arguments))
    assert files.output.read_bytes() == b""
    files.save(kernel_model(task="regression"), "")
    assert predict(*files.arguments).count("nan (regression)\n") == 2


# --- the original beside it


SvmPredict = Callable[[Any, str], str]


@pytest.fixture
def svm_predict(files: Files) -> SvmPredict:
    """Train with LIBSVM, predict the same rows with svm-predict into the file "theirs"; returns what that prints."""
    program = shutil.which("svm-predict")
    if program is None:
        pytest.skip("svm-predict is not on PATH")
    svmutil = pytest.importorskip("libsvm.svmutil", reason="libsvm-official is not installed")

    def train_and_predict(targets: npt.NDArray[Any], options: str) -> str:
        rows = np.random.default_rng(3).normal(size=(len(targets), N_FEATURES))
        model_path = files.folder / "m.model"
        svmutil.svm_save_model(str(model_path), svmutil.svm_train(targets, rows, options))
        approxsvm.compile(model_path, n_features=N_FEATURES).save(files.model)
        files.data.write_text(libsvm_text(targets.tolist(), csr_array(rows)))
        command = [program, files.data, model_path, files.folder / "theirs"]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout

    return train_and_predict


@pytest.mark.parametrize("labels", [(1, -1), (0, 1), (3, 7)])
@pytest.mark.parametrize("svm_type", [0, 2])
def test_classifiers_say_what_svm_predict_says(
    files: Files, svm_predict: SvmPredict, labels: tuple[int, int], svm_type: int
) -> None:
    targets = np.random.default_rng(4).choice(labels, size=120)
    theirs = svm_predict(targets, f"-s {svm_type} -t 2 -g 0.002 -c 100 -n 0.3 -q")
    assert predict(*files.arguments) == theirs
    assert files.output.read_bytes() == (files.folder / "theirs").read_bytes()


def test_regression_says_what_svm_predict_says(files: Files, svm_predict: SvmPredict) -> None:
    theirs = svm_predict(np.random.default_rng(4).normal(size=120), "-s 3 -t 2 -g 0.0005 -c 10 -q")
    ours = predict(*files.arguments)
    number = r"= (\S+) "
    assert re.sub(number, "", ours) == re.sub(number, "", theirs)
    ours_theirs = [np.array(re.findall(number, text), dtype=float) for text in (ours, theirs)]
    np.testing.assert_allclose(*ours_theirs, rtol=1e-3)
    np.testing.assert_allclose(np.loadtxt(files.output), np.loadtxt(files.folder / "theirs"), atol=1e-4)


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


def test_probabilities_are_refused_as_artifacts_hold_none(files: Files) -> None:
    files.save_rows()
    why = failure("-b", 1, *files.arguments)
    assert why == f"{files.model}: -b 1 needs probabilities, and artifacts hold none yet"
    assert not files.output.exists()


# --- models


@pytest.mark.parametrize("name", ["none", "avx1024"])
def test_a_target_that_cannot_run_is_an_error(files: Files, name: str) -> None:
    files.save_rows()
    assert f"APPROXSVM_TARGET asks for target '{name}', which" in failure(*files.arguments, APPROXSVM_TARGET=name)


@pytest.mark.parametrize("content", ["svm_type c_svc\nkernel_type rbf\n", "x", ""])
def test_other_model_files_are_to_be_converted_first(files: Files, content: str) -> None:
    files.save_rows()
    files.model.write_text(content)
    why = failure(*files.arguments)
    assert why.startswith(f"{files.model}: not an approxsvm artifact")
    assert "'approxsvm convert-model'" in why


@pytest.mark.parametrize(("change", "why"), [("cut", "file_bytes"), ("flip", "checksum"), ("head", "ends inside")])
def test_damaged_artifacts_are_refused(files: Files, change: str, why: str) -> None:
    files.save_rows()
    content = bytearray(files.model.read_bytes())
    content[-64] ^= change == "flip"
    files.model.write_bytes(content[: {"cut": -64, "head": 64}.get(change)])
    message = failure(*files.arguments)
    assert message.startswith(f"{files.model}: ")
    assert why in message


# --- data that are not right


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
    """In front of it are other chunks, behind it are other bad lines, in the same chunk and in others."""
    lines = ["1 1:0.25 2:-0.5 7:1.125 8:0.1234567"] * 20000
    for i in (line_number - 1, line_number, line_number + 2, 15000, 19999):
        lines[i] = "1 1:nan" if i % 2 else "bad"
    lines[line_number - 1] = line
    files.save(kernel_model(), "\n".join(lines) + "\n")
    before = files.names()
    for n_threads in (1, 2, 5):
        message = failure("-j", n_threads, *files.arguments)
        assert message.startswith(f"{files.data}, line {line_number}: {why}")
    assert files.names() == before


def test_an_earlier_output_survives_an_error(files: Files) -> None:
    files.save(kernel_model(), "1 1:1\n1 1:inf\n")
    files.output.write_text("earlier")
    assert failure(*files.arguments).startswith(f"{files.data}, line 2: ")
    assert files.output.read_text() == "earlier"


def test_a_label_that_is_not_finite_is_no_obstacle(files: Files) -> None:
    files.save(kernel_model(), "nan 1:1\n")
    assert predict(*files.arguments) == "Accuracy = 0% (0/1) (classification)\n"


# --- where the output goes


def test_the_output_may_be_the_input(files: Files) -> None:
    fast, rows, targets = files.save_rows()
    predicted = fast.predict(rows)
    assert predict(files.data, files.model, files.data) == accuracy_line(predicted, targets)
    assert files.data.read_text() == "".join(f"{label}\n" for label in predicted)


def test_the_output_replaces_a_file_keeps_its_mode_and_leaves_nothing_else(files: Files) -> None:
    files.save_rows()
    files.output.write_text("earlier, and longer than what comes now\n" * 50)
    files.output.chmod(0o640)
    names = files.names()
    predict(*files.arguments)
    assert set(files.output.read_text().split()) == {"1", "-1"}
    assert stat.S_IMODE(files.output.stat().st_mode) == 0o640
    assert files.names() == names


def test_a_link_and_a_second_name_stay_what_they_are(files: Files) -> None:
    files.save_rows()
    predict(*files.arguments)
    expected = files.output.read_bytes()
    link, other = files.folder / "link", files.folder / "other"
    other.write_text("earlier" * 100)
    link.symlink_to(other)
    predict(files.data, files.model, link)
    assert link.is_symlink()
    assert other.read_bytes() == expected
    other.write_text("earlier")
    (files.folder / "twin").hardlink_to(other)
    predict(files.data, files.model, other)
    assert (files.folder / "twin").read_bytes() == expected


def test_devices_and_pipes_are_written_to_directly(files: Files) -> None:
    fast, rows, targets = files.save_rows()
    predicted = fast.predict(rows)
    lines = "".join(f"{label}\n" for label in predicted)
    closing = accuracy_line(predicted, targets)
    assert predict(files.data, files.model, "/dev/stdout") == lines + closing
    assert predict(files.data, files.model, "/dev/null") == closing
    assert Path("/dev/null").is_char_device()
    assert Path("/dev/stdout").is_symlink()

    fifo = files.folder / "fifo"
    os.mkfifo(fifo)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(fifo.read_text()))
    reader.start()
    assert predict(files.data, files.model, fifo) == closing
    reader.join(timeout=60)
    assert read == [lines]
    assert fifo.is_fifo()


def test_standard_output_that_is_a_file_gets_the_closing_line_last(files: Files) -> None:
    fast, rows, targets = files.save_rows()
    predicted = fast.predict(rows)
    with files.output.open("w") as output:
        output.write("before\n")
        output.flush()
        subprocess.run([TOOL, files.data, files.model, "/dev/stdout"], stdout=output, timeout=60, check=True)
    lines = "".join(f"{label}\n" for label in predicted)
    assert files.output.read_text() == "before\n" + lines + accuracy_line(predicted, targets)


def test_data_may_come_from_a_pipe(files: Files) -> None:
    files.save_rows()
    expected = predict(*files.arguments)
    command = [TOOL, "/dev/stdin", files.model, files.output]
    done = subprocess.run(command, input=files.data.read_bytes(), capture_output=True, timeout=60, check=True)
    assert done.stdout.decode() == expected


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_an_error(files: Files) -> None:
    files.save_rows()
    assert failure(files.data, files.model, "/dev/full") == "/dev/full: No space left on device"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([TOOL, *files.arguments], stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (1, b"approxsvm-predict: standard output: No space left on device\n")


def test_a_file_that_cannot_be_finished_is_taken_away(files: Files) -> None:
    files.save_rows()
    files.output.write_text("earlier")
    names = files.names()
    # With the signal ignored, the write itself fails.
    limited = ["sh", "-c", 'trap "" XFSZ; ulimit -f 0; exec "$@"', "sh", TOOL, *files.arguments]
    done = subprocess.run(limited, stderr=subprocess.PIPE, timeout=60, check=False)
    assert (done.returncode, done.stderr.decode()) == (1, f"{ERROR}{files.output}: File too large\n")
    assert files.names() == names
    assert files.output.read_text() == "earlier"


def test_an_output_that_cannot_be_made_is_named(files: Files) -> None:
    files.save_rows()
    nowhere = files.folder / "nowhere" / "out"
    assert failure(files.data, files.model, nowhere) == f"{nowhere}: No such file or directory"
    assert failure(files.data, files.model, files.folder) == f"{files.folder}: Is a directory"

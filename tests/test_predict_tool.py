"""The command approxsvm-predict: the answers are Python's or, of a LIBSVM model, svm-predict's; so are the manners.

APPROXSVM_PREDICT names another build of the command to test, for example one with sanitizers.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import stat
import subprocess
import sysconfig
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_array

import approxsvm
from approxsvm import KernelModel, _native

TOOL = Path(os.environ.get("APPROXSVM_PREDICT", Path(sysconfig.get_path("scripts")) / "approxsvm-predict"))
pytestmark = pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} was not built")

Mode = Literal["approximate", "certified", "exact"]
MODES: tuple[Mode, ...] = ("approximate", "certified", "exact")
EVERY_MODE = pytest.mark.parametrize("mode", MODES)
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


def compile_with_expansion(model: Any, *, mode: Mode = "certified", **options: Any) -> Any:
    """An expansion, whether it pays or not: models of tests are small."""
    forced: dict[str, Any] = {} if mode == "exact" else {"degree": 2, "n_centers": 1}
    return approxsvm.compile(model, mode=mode, **(forced | options))


class Files:
    """A model, a data file and the place for the output, in a folder that holds nothing else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data, self.model, self.output = folder / "rows.t", folder / "m.asvm", folder / "out"

    @property
    def arguments(self) -> tuple[Path, Path, Path]:
        return self.data, self.model, self.output

    def save(self, model: KernelModel, text: str | bytes, mode: Mode = "certified") -> Any:
        self.data.write_bytes(text if isinstance(text, bytes) else text.encode())
        fast = compile_with_expansion(model, mode=mode)
        fast.save(self.model)
        return fast

    def save_rows(self, n_rows: int = 50, mode: Mode = "certified", **model: Any) -> tuple[Any, Any, npt.NDArray[Any]]:
        """A model, rows and their targets, which are the predictions except for the first quarter."""
        rows = random_rows(n_rows)
        fast = compile_with_expansion(kernel_model(**model), mode=mode)
        targets = fast.predict(rows)
        targets[: n_rows // 4] = targets[0]
        self.save(kernel_model(**model), libsvm_text(targets.tolist(), rows), mode)
        return fast, rows, targets

    def names(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


# --- answers


@EVERY_MODE
@pytest.mark.parametrize("labels", [(1, -1), (-1, 1), (0, 1), (7, 3)])
def test_integer_labels_are_those_of_python(files: Files, labels: tuple[int, int], mode: Mode) -> None:
    fast, rows, targets = files.save_rows(mode=mode, labels=labels)
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


@EVERY_MODE
def test_one_class_models_answer_plus_or_minus_one(files: Files, mode: Mode) -> None:
    fast, rows, targets = files.save_rows(mode=mode, task="one_class")
    predicted = fast.predict(rows)
    assert predict(*files.arguments) == accuracy_line(predicted, targets)
    assert files.output.read_text() == "".join(f"{label}\n" for label in predicted)
    assert set(predicted) == {1, -1}


@EVERY_MODE
def test_regression_values_have_all_digits_and_its_two_closing_lines(files: Files, mode: Mode) -> None:
    fast, rows, targets = files.save_rows(mode=mode, task="regression")
    predicted = fast.predict(rows)
    assert predict(*files.arguments) == regression_lines(predicted.tolist(), targets.tolist())
    assert files.output.read_text() == "".join(shown(value) + "\n" for value in predicted)


@EVERY_MODE
@pytest.mark.parametrize("target", _native.runnable_targets())
def test_every_target_gives_the_digits_of_the_same_target_in_python(files: Files, target: str, mode: Mode) -> None:
    fast, rows, _ = files.save_rows(300, mode, task="regression")
    predict("-q", *files.arguments, APPROXSVM_TARGET=target)
    values = _native.Predictor(fast.artifact.data, target).csr(rows.indptr, rows.indices, rows.data, 1)
    assert files.output.read_text() == "".join(shown(value) + "\n" for value in values)


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
    wider = compile_with_expansion(kernel_model(task="regression", support_vectors=wider_vectors), mode=mode)
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
    assert files.output.read_text() == (shown(zero) + "\n") * 3


def test_a_data_file_without_rows_gives_an_empty_output(files: Files) -> None:
    files.save(kernel_model(), "")
    assert re.fullmatch(r"Accuracy = -?nan% \(0/0\) \(classification\)\n", predict(*files.arguments))
    assert files.output.read_bytes() == b""
    files.save(kernel_model(task="regression"), "")
    assert predict(*files.arguments).count("nan (regression)\n") == 2


# --- LIBSVM model files, with the original beside it


class Libsvm:
    """LIBSVM's own commands: what they say about the same files."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self.programs = [shutil.which(name) for name in ("svm-train", "svm-predict")]

    def run(self, program: int, *arguments: object) -> str:
        command = self.programs[program]
        if command is None:
            pytest.skip("svm-train and svm-predict are not on PATH")
        return subprocess.run(
            [command, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=True
        ).stdout

    def train(self, options: str, text: str) -> Path:
        path, model = self.files.folder / "train", self.files.folder / "m.model"
        path.write_text(text)
        self.run(0, "-q", "-t", "2", *options.split(), path, model)
        return model

    def check(self, model: Path, compiled: Path | None = None, **environment: str) -> bytes:
        """The command says and writes what svm-predict does, for any number of threads; returns what is written."""
        theirs = self.files.folder / "theirs"
        expected = self.run(1, self.files.data, model, theirs), theirs.read_bytes()
        for n_threads in (1, 2, 5):
            said = predict("-j", n_threads, self.files.data, compiled or model, self.files.output, **environment)
            assert (said, self.files.output.read_bytes()) == expected
        return expected[1]


@pytest.fixture
def libsvm(files: Files) -> Libsvm:
    return Libsvm(files)


def training_text(labels: tuple[int, ...] | None, first_index: int = 1, n_rows: int = 120) -> str:
    rng = np.random.default_rng(4)
    targets = rng.normal(size=n_rows) if labels is None else rng.choice(labels, size=n_rows)
    return libsvm_text(targets.tolist(), random_rows(n_rows, seed=3), first_index)


def hard_text(labels: tuple[int, ...], n_rows: int = 700) -> str:
    """Rows from empty to dense, with several features that no model has seen, in front and behind."""
    rng = np.random.default_rng(6)
    rows, targets = random_rows(n_rows, seed=8), rng.choice(labels, size=n_rows).tolist()
    lines = libsvm_text(targets, rows).splitlines()
    for i in range(0, n_rows, 3):
        label, *pairs = lines[i].split(" ")
        before = ["0:0.3"] if i % 2 else []
        behind = [f"{index}:{rng.normal():.5g}" for index in (15, 16, 77, 2_000_000_001)]
        lines[i] = " ".join([label, *before, *pairs, *behind])
    lines[5:5] = [str(targets[0]), f"{targets[0]} 3:0 4:-0", f"{targets[0]} 2:1e200", f"{targets[0]} 9:1e-300"]
    return "\n".join(lines) + "\n"


CLASSIFIERS = [
    (f"-s {s} -g {g} -c 10 -n 0.3", labels) for s in (0, 1) for g, labels in ((0.3, (1, -1)), (0.02, (3, 7)))
]
REGRESSIONS = [(f"-s {s} -g {g} -c 10", None) for s in (3, 4) for g in (0.3, 0.02)]
ONE_CLASS = [("-s 2 -g 0.3 -n 0.3", (1,)), ("-s 2 -g 0.02 -n 0.5", (1,))]


@pytest.mark.parametrize(("options", "labels"), [*CLASSIFIERS, *REGRESSIONS, *ONE_CLASS])
def test_model_files_give_the_bytes_of_svm_predict(
    files: Files, libsvm: Libsvm, options: str, labels: tuple[int, ...] | None
) -> None:
    model = libsvm.train(options, training_text(labels))
    files.data.write_text(hard_text(labels or (0, 1, 2)))
    for target in _native.runnable_targets():
        assert len(set(libsvm.check(model, APPROXSVM_TARGET=target).split())) > 1


@pytest.mark.parametrize("mode", ["certified", "exact"])
@pytest.mark.parametrize(("options", "labels"), [*CLASSIFIERS, *ONE_CLASS])
def test_certified_and_exact_artifacts_give_the_bytes_of_svm_predict(
    files: Files, libsvm: Libsvm, options: str, labels: tuple[int, ...], mode: Mode
) -> None:
    model = libsvm.train(options, training_text(labels))
    compile_with_expansion(model, n_features=N_FEATURES, mode=mode).save(files.model)
    files.data.write_text(hard_text(labels))
    for target in _native.runnable_targets():
        libsvm.check(model, files.model, APPROXSVM_TARGET=target)


def test_regression_artifacts_are_within_their_tolerance_of_svm_predict(files: Files, libsvm: Libsvm) -> None:
    model = libsvm.train("-s 3 -g 0.02 -c 10", training_text(None))
    compile_with_expansion(model, n_features=N_FEATURES, tolerance=1e-6).save(files.model)
    files.data.write_text(hard_text((0, 1)))
    libsvm.run(1, files.data, model, files.folder / "theirs")
    predict(*files.arguments)
    np.testing.assert_allclose(np.loadtxt(files.output), np.loadtxt(files.folder / "theirs"), rtol=0, atol=1e-6)


@pytest.mark.parametrize("options", ["-s 0 -g 0.1", "-s 2 -g 0.1", "-s 3 -g 0.1"])
def test_model_files_whose_indices_start_at_0(files: Files, libsvm: Libsvm, options: str) -> None:
    model = libsvm.train(options, training_text((1, -1), first_index=0))
    assert " 0:" in model.read_text()
    files.data.write_text(hard_text((1, -1)))
    libsvm.check(model)


@pytest.mark.parametrize("options", ["-s 0 -g 3", "-s 2 -g 3 -n 0.9", "-s 3 -g 3"])
def test_model_files_far_from_the_origin(files: Files, libsvm: Libsvm, options: str) -> None:
    """Features of a small range around a large number: the engine has to work around their mean."""
    rng = np.random.default_rng(1)
    rows = csr_array(1000 + rng.random((300, N_FEATURES)))
    text = libsvm_text(np.where(rng.random(300) < 0.5, 1, -1).tolist(), rows)
    model = libsvm.train(options, text)
    files.data.write_text(text)
    libsvm.check(model)


MODEL_TEXT = """svm_type c_svc
kernel_type rbf
gamma 0.5
nr_class 2
total_sv 4
rho 0
label 3 5
nr_sv 2 2
SV
1 1:0.1
0.5 2:0.3 3:0.7
-1 2:0.1
-0.5 1:0.3 3:0.7
"""
SVR_TEXT = MODEL_TEXT.replace("c_svc", "nu_svr").replace("label 3 5\nnr_sv 2 2\n", "")


def test_ties_go_where_the_rounding_of_svm_predict_sends_them(files: Files, libsvm: Libsvm) -> None:
    """f is 0 on all these rows, up to rounding."""
    rng = np.random.default_rng(2)
    lines = [
        " ".join(["3", f"1:{x!r}", f"2:{x!r}", *(f"{j}:{rng.normal()!r}" for j in (3, 4, 6, 9))])
        for x in rng.normal(size=500).tolist()
    ]
    files.data.write_text("\n".join(lines))
    model = files.folder / "m.model"
    model.write_text(MODEL_TEXT)
    assert set(libsvm.check(model).split()) == {b"3", b"5"}


@pytest.mark.parametrize("text", [MODEL_TEXT, SVR_TEXT])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("gamma 0.5", "gamma 0"),
        ("gamma 0.5", "gamma 1e-70"),
        ("gamma 0.5", "gamma 1e70"),
        ("3:0.7", "2000000000:0.7"),
        ("3:0.7", "3:1e200"),
        ("3:0.7", "3:1e-200"),
        ("3:0.7", ""),
        ("0.5 2", "1e305 2"),
        ("\n", "\r\n"),
    ],
)
def test_model_files_at_the_limits(files: Files, libsvm: Libsvm, text: str, old: str, new: str) -> None:
    model = files.folder / "m.model"
    model.write_text(text.replace(old, new), newline="")
    files.data.write_text(hard_text((3, 5)))
    libsvm.check(model)


def test_a_model_file_of_one_class_says_that_class(files: Files, libsvm: Libsvm) -> None:
    model = files.folder / "m.model"
    for kernel in ("rbf", "linear"):
        model.write_text(
            f"svm_type c_svc\nkernel_type {kernel}\ngamma 0.5\nnr_class 1\ntotal_sv 0\nrho\nlabel -4\nnr_sv 0\nSV\n"
        )
        files.data.write_text("-4 1:1\n1\n-4 1:1e300 9:1\n")
        assert predict(files.data, model, files.output) == "Accuracy = 66.6667% (2/3) (classification)\n"
        assert files.output.read_text() == "-4\n" * 3
        libsvm.check(model)


def test_a_model_file_without_support_vectors_says_minus_rho(files: Files, libsvm: Libsvm) -> None:
    model = files.folder / "m.model"
    model.write_text("svm_type nu_svr\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 0\nrho -0.1\nSV\n")
    files.data.write_text(hard_text((1, 2)))
    assert set(libsvm.check(model).split()) == {b"0.10000000000000001"}


def test_regression_repeats_the_sums_of_libsvm(files: Files) -> None:
    """The same sums in Python, for machines without LIBSVM."""
    model = files.folder / "m.model"
    model.write_text(SVR_TEXT)
    files.data.write_text(hard_text((1, 2)))
    predict("-q", files.data, model, files.output)

    def features(text: str) -> tuple[float, dict[int, float]]:
        first, *pairs = text.split()
        return float(first), {int(index): float(value) for index, value in (pair.split(":") for pair in pairs)}

    vectors = [features(line) for line in SVR_TEXT.partition("SV\n")[2].splitlines()]
    expected = []
    for _, row in map(features, files.data.read_text().splitlines()):
        total = 0.0
        for coefficient, vector in vectors:
            sq_distance = 0.0
            for index in sorted(row.keys() | vector.keys()):
                difference = row.get(index, 0.0) - vector.get(index, 0.0)
                sq_distance += difference * difference
            total += coefficient * math.exp(-0.5 * sq_distance)
        expected.append(shown(total) + "\n")
    assert files.output.read_text() == "".join(expected)


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


@pytest.mark.parametrize("content", ["x", "", "1 1:0.5 2:1\n", "\x00" * 500])
def test_files_that_are_no_models_are_refused(files: Files, content: str) -> None:
    files.save_rows()
    files.model.write_text(content)
    assert failure(*files.arguments) == f"{files.model}: neither an approxsvm artifact nor a LIBSVM model"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("rho 0\n", "rho zero\n", ", line 6: rho has 'zero' for a number"),
        ("gamma 0.5\n", "", ", line 8: the header has no gamma, which kernel_type rbf needs"),
        ("-1 2:0.1\n", "-1 2:x\n", ", line 12: support vector 3: "),
        ("-0.5 1:0.3 3:0.7\n", "", ", line 12: total_sv is 4, but there are 3 rows of support vectors"),
        ("rbf", "sigmoid\ncoef0 0", ": the kernel is sigmoid, and only rbf is supported"),
        ("rbf", "linear", ": the kernel is linear, and only rbf is supported"),
        ("rbf", "precomputed", ": the kernel is precomputed, and only rbf is supported"),
    ],
)
def test_model_files_that_are_wrong_or_not_supported(files: Files, old: str, new: str, why: str) -> None:
    files.save_rows()
    files.model.write_text(MODEL_TEXT.replace(old, new))
    assert failure(*files.arguments).startswith(f"{files.model}{why}")
    assert not files.output.exists()


def test_model_files_of_more_than_two_classes_are_not_supported_yet(files: Files) -> None:
    files.save_rows()
    files.model.write_text(
        "svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 3\ntotal_sv 3\nrho 0 0 0\nlabel 1 2 3\n"
        "nr_sv 1 1 1\nSV\n1 1 1:1\n1 -1 1:2\n-1 -1 1:3\n"
    )
    why = "models of more than two classes are not supported yet, and this one has 3"
    assert failure(*files.arguments) == f"{files.model}: {why}"


@pytest.mark.parametrize("text", [MODEL_TEXT, SVR_TEXT])
def test_probabilities_of_model_files_are_not_supported_yet(files: Files, text: str) -> None:
    files.save_rows()
    files.model.write_text(text)
    assert failure("-b", 1, *files.arguments) == f"{files.model}: -b 1, probabilities, is not supported yet"
    assert not files.output.exists()


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
    (files.folder / "c_svc").write_text(MODEL_TEXT)
    (files.folder / "nu_svr").write_text(SVR_TEXT)
    before = files.names()
    for n_threads, model in ((1, "m.asvm"), (2, "m.asvm"), (5, "m.asvm"), (2, "c_svc"), (2, "nu_svr")):
        message = failure("-j", n_threads, files.data, files.folder / model, files.output)
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

"""Every option of every command, with absurd values, and every kind of empty file.

None causes a traceback or takes gigabytes; every error is one line. The options are taken from click, so new ones are
also covered.
"""

from __future__ import annotations

import functools
import gzip
import math
import multiprocessing
import os
import re
import warnings
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
import joblib
import numpy as np
import pytest
from click.testing import CliRunner, Result
from commands import NEEDED, make_files, needed_values, parameters, run
from conftest import GOLDEN
from sklearn import datasets

import approxsvm
from approxsvm.cli import main
from approxsvm.cli.group import InputFile, OutputFile
from approxsvm.errors import InputError, UnsupportedModelError
from approxsvm.system.options import whole_number
from approxsvm.system.threads import n_threads

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

INTEGERS = ("0", "-1", str(2**31 - 1), str(2**63), "1.5")
REALS = ("-1", "nan", "inf", "1e-320", "1e308", "")
ROOM = 1 << 30  # memory in bytes that a command may use in addition to this process's


def is_integer(parameter: click.Parameter) -> bool:
    return isinstance(parameter.type, click.types.IntParamType)


def is_real(parameter: click.Parameter) -> bool:
    return isinstance(parameter.type, click.types.FloatParamType)


def is_file(parameter: click.Parameter) -> bool:
    return isinstance(parameter.type, (InputFile, OutputFile))


def cases(wanted: Any, values: tuple[str, ...]) -> list[Any]:
    return [
        pytest.param(command, parameter, value, id=f"{command}-{parameter.name}-{value or 'nothing'}")
        for command, parameter in parameters()
        if wanted(parameter)
        for value in values
    ]


@pytest.fixture
def limited() -> Iterator[None]:
    """Limit memory to this process's plus `ROOM`, if the system supports it."""
    status = Path("/proc/self/status")
    if resource is None or not status.exists():
        yield
        return
    kilobytes = re.search(r"VmData:\s+(\d+) kB", status.read_text())
    assert kilobytes is not None
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (int(kilobytes[1]) * 1024 + ROOM, hard))
    yield
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def assert_answered(result: Result) -> None:
    """Assert that the command succeeded, or that one line gives the reason."""
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    assert "Traceback" not in result.output
    assert not re.search("allocate|out of memory|MemoryError", result.stderr), result.stderr
    if result.exit_code == 2:  # click's own error for an invalid option value
        assert re.search(r"\nError: [^\n]+\n$", result.stderr)
    elif result.exit_code != 0:
        assert re.fullmatch(r"approxsvm: [^\n]+\n", result.stderr.removeprefix(warnings_of(result))), result.stderr
        assert result.exit_code == 1


def warnings_of(result: Result) -> str:
    return "".join(line for line in result.stderr.splitlines(keepends=True) if not line.startswith("approxsvm: "))


@pytest.mark.parametrize(("command", "parameter", "value"), [*cases(is_integer, INTEGERS), *cases(is_real, REALS)])
def test_numbers(tmp_path, limited, command, parameter, value):
    make_files(tmp_path)
    values = needed_values(command, tmp_path)
    values |= {"folds": 2} if command == "cross-validate" else {}
    values |= {"mode": "approximate"} if parameter.name == "target_error" else {}
    values[parameter.name] = value
    assert_answered(run(command, values))


@pytest.mark.parametrize(
    ("command", "parameter", "value"), cases(is_file, ("", "folder", "missing", "missing/../m.model", "m.model/x"))
)
@pytest.mark.usefixtures("unmeasured")
def test_names_of_files(tmp_path, monkeypatch, command, parameter, value):
    few = functools.partial(datasets.make_classification, 600)  # for the demo
    monkeypatch.setattr(datasets, "make_classification", lambda n, *others, **named: few(*others, **named))
    make_files(tmp_path)
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    values = {
        **NEEDED[command],
        parameter.name: [value, *NEEDED[command].get(parameter.name, [])[1:]] if parameter.nargs == -1 else value,
    }
    result = run(command, values)
    assert_answered(result)
    if isinstance(parameter.type, InputFile):
        assert result.exit_code in (1, 2)
        assert not list(tmp_path.glob("out*"))
    if value == "":
        assert "a file name must not be empty" in result.stderr
    elif value != "missing" and command != "score":
        assert result.exit_code == 1
        assert value in result.stderr


@pytest.mark.parametrize(("command", "parameter", "value"), cases(is_file, ("closed",)))
def test_files_that_may_not_be_read_or_written(tmp_path, command, parameter, value):
    make_files(tmp_path)
    (tmp_path / "folder").mkdir(mode=0o500)
    (tmp_path / "closed").touch(mode=0o000)
    if os.access(tmp_path / "closed", os.R_OK):
        pytest.skip("this user may read everything")
    values = needed_values(command, tmp_path)
    is_input = isinstance(parameter.type, InputFile)
    path = tmp_path / "closed" if is_input else tmp_path / "folder" / "out.csv"
    values[parameter.name] = [*values[parameter.name][:-1], path] if parameter.nargs == -1 else path
    result = run(command, values)
    assert result.exit_code == 1
    assert result.stderr.endswith(f"{path}: Permission denied\n")


@pytest.mark.parametrize("option", ["cost", "gamma", "nu", "epsilon"])
@pytest.mark.parametrize("value", ["nan", "1e400"])
def test_training_needs_finite_numbers(tmp_path, option, value):
    """LIBSVM itself would train with a C of NaN, and print a table."""
    make_files(tmp_path)
    result = run("cross-validate", needed_values("cross-validate", tmp_path) | {option: value})
    assert result.exit_code == (2 if (option, value) == ("nu", "1e400") else 1)
    assert result.exit_code == 2 or result.stderr.endswith("but must be a finite number\n")


# --- empty files


TABLES = ("empty.csv", "empty.npz", "empty.parquet")
EMPTY = (*TABLES, "empty.t", "empty.csv.gz", "empty.pkl")


@pytest.mark.parametrize(
    ("command", "parameter", "value"), cases(lambda parameter: isinstance(parameter.type, InputFile), EMPTY)
)
def test_empty_files(tmp_path, command, parameter, value):
    make_files(tmp_path)
    path = tmp_path / value
    path.write_bytes(gzip.compress(b"") if value.endswith("gz") else b"")
    values = needed_values(command, tmp_path) | ({"inputs": "int8"} if command == "export" else {})
    values[parameter.name] = [*values[parameter.name][:-1], path] if parameter.nargs == -1 else path
    result = run(command, values)
    assert_answered(result)
    if command == "score":  # its answers for empty files are empty files
        return
    assert result.exit_code == 1
    assert value in result.stderr
    if parameter.name in ("data", "test_data") and not value.endswith("gz"):
        is_table = value in TABLES and command != "cross-validate"
        why = f"not a readable {path.suffix} file: the file is empty" if is_table else "the file has no rows"
        assert result.stderr == f"approxsvm: {path}: {why}\n"


@pytest.mark.parametrize("options", [[], ["--dense"], ["--dense", "--no-labels"], ["--dense", "--delimiter", ","]])
@pytest.mark.parametrize("content", ["", "\n", "a,b\n", "1,2\n"])
def test_tables_of_little(tmp_path, content, options):
    (tmp_path / "rows.csv").write_text(content)
    assert_answered(CliRunner().invoke(main, ["gamma-max", *options, str(tmp_path / "rows.csv")]))


# --- Python


@pytest.mark.parametrize("n_jobs", [10**20, -(10**20), 2**31, "2", 1.5, 0, True, [1]])
def test_numbers_of_threads(tmp_path, n_jobs):
    path = GOLDEN / "breast_cancer.asvm"
    with pytest.raises(InputError, match=r"n_jobs is .*, but must be a (whole )?number"):
        n_threads(n_jobs)
    compiled = approxsvm.load(path).set_params(n_jobs=n_jobs)
    for call in (
        lambda: approxsvm.compile(GOLDEN / "breast_cancer.model", n_jobs=n_jobs),
        lambda: approxsvm.load(path, n_jobs=n_jobs),
        lambda: approxsvm.Predictor(path, n_jobs=n_jobs),
        lambda: compiled.predict(np.zeros((2, 30))),
        lambda: approxsvm.read_libsvm_data(GOLDEN / "breast_cancer.t", n_jobs=n_jobs),
    ):
        with pytest.raises(InputError, match="n_jobs is"):
            call()
    pytest.importorskip("pyarrow")
    with pytest.raises(InputError, match="n_jobs is"):
        approxsvm.score_dataset(path, GOLDEN / "breast_cancer.t", tmp_path / "folder", n_jobs=n_jobs)
    assert not (tmp_path / "folder").exists()


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 64, -1, -2, -1000, np.int8(2)])
def test_numbers_of_threads_that_are_some(n_jobs):
    assert 1 <= n_threads(n_jobs) <= 1024


def threads_and_warnings(n_jobs: int) -> tuple[int, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return n_threads(n_jobs), [str(one.message) for one in caught]


def threads_of_a_loop_in_a_loop() -> list[int]:
    return joblib.Parallel(2, backend="threading")([joblib.delayed(n_threads)(3)])


def test_workers_of_multiprocessing_have_threads_too():
    """joblib starts no processes in them, and warns; we use threads. Inside joblib's own loops, its rule applies."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(threads_and_warnings, [3, 1]) == [(3, []), (1, [])]
        assert pool.map(threads_and_warnings, [-1]) == [(n_threads(-1), [])]
    inside = joblib.Parallel(2, backend="multiprocessing")([joblib.delayed(threads_of_a_loop_in_a_loop)()])
    assert inside == [[1]]


@pytest.mark.parametrize("value", ["2", 1.5, 0, -1, True, None.__class__, 10**30])
@pytest.mark.parametrize("option", ["n_features", "degree", "n_centers", "max_bytes", "random_state"])
def test_options_of_compile(option, value):
    if (option, value) in (("n_centers", 10**30), ("max_bytes", 10**30), ("random_state", 0)):
        approxsvm.compile(GOLDEN / "iris_centers.model", effort="low", **{option: value})
        return
    with pytest.raises(ValueError, match=rf"{option} is .*, but must be ('auto', or )?a whole number"):
        approxsvm.compile(GOLDEN / "iris_centers.model", **{option: value})


EVERY_TYPE = (int, np.int8, np.uint8, np.int64, np.uint64, lambda value: np.array(value, ">i2"))


@pytest.mark.parametrize("mode", ["certified", "approximate"])
def test_equal_options_of_any_type_give_equal_artifacts(mode):
    """NumPy integers were once read as no degree, and uninitialized memory as a bound."""
    for degree, n_centers in (1, 3), (3, 1), (4, 2):
        made = {
            approxsvm.compile(
                GOLDEN / "breast_cancer.model",
                n_features=cast(30),
                mode=np.str_(mode),
                degree=cast(degree),
                n_centers=cast(n_centers),
                random_state=cast(5),
                rows_per_call=cast(100),
                rows_expected=cast(100),
                n_jobs=cast(1),
                effort=np.str_("low"),
            ).artifact.data
            for cast in EVERY_TYPE
        }
        assert len(made) == 1
    numbers = (0.5, np.float16(0.5), np.float32(0.5), np.float64(0.5), Fraction(1, 2), Decimal("0.5"), np.array(0.5))
    exact = functools.partial(approxsvm.compile, GOLDEN / "iris_centers.model", mode="exact")
    assert len({exact(tolerance=one).artifact.data for one in numbers}) == 1


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(
            ("tolerance", value)
            for value in ("1", b"1", True, np.True_, math.nan, [1.0], np.ones(1), 1j, object(), np.timedelta64(1))
        ),
        *(("target_error", value) for value in ("0.1", math.nan)),
        *(("mode", value) for value in (None, b"exact", 1, ["exact"], np.array(["exact", "exact"]))),
        *(("degree", value) for value in (np.array([2]), np.array(["auto"]), 2 + 0j, np.float64(2), b"auto")),
        *((option, 3) for option in ("center", "labels", "effort", "progress")),
        ("n_jobs", "2"),
    ],
)
def test_options_of_other_types_are_refused(option, value):
    with pytest.raises(InputError, match=f"{option} is "):
        approxsvm.compile(GOLDEN / "iris_centers.model", **{option: value})


def test_errors_name_only_options_that_were_given(tmp_path):
    """verify has no --n-features, and convert-model reads the number from the model."""
    (tmp_path / "rows").write_text("1 1:0.5 31:1\n")
    model, rows = str(GOLDEN / "breast_cancer.model"), str(tmp_path / "rows")
    approxsvm.compile(model, mode="exact").save(tmp_path / "m.asvm")
    for command in (
        ["verify", str(tmp_path / "m.asvm"), "--against", model, "--data", rows],
        ["convert-model", model, "-o", str(tmp_path / "n.asvm"), "--data", rows],
    ):
        said = CliRunner().invoke(main, command).stderr
        assert said == f"approxsvm: {rows}: index 31 needs 31 columns, but the model has 30 features\n"


def test_whole_numbers():
    assert whole_number(np.uint8(3), "x", 3, 3) == 3
    with pytest.raises(InputError, match=r"^x is 4, but must be a whole number from 1 to 3$"):
        whole_number(4, "x", 1, 3)
    with pytest.raises(InputError, match=r"^x is '4', but must be a whole number of at least 1$"):
        whole_number("4", "x", 1)


# --- files with more columns than bytes


def test_indices_as_large_as_they_get(tmp_path, limited):
    """Rows are sparse, so absent columns take no memory."""
    make_files(tmp_path)
    (tmp_path / "rows.t").write_text("1 1:3 2147483646:4\n-1 7:1\n1 1:2\n-1 7:2\n")
    shown = run("gamma-max", {"data": tmp_path / "rows.t"})
    assert shown.exit_code == 0, shown.stderr
    assert re.search(r"origin +0.01 *\nmean +0.019802", shown.stdout), shown.stdout
    for command in ("convert-model", "verify", "cross-validate"):
        result = run(command, needed_values(command, tmp_path))
        assert_answered(result)
        assert result.exit_code == 1
    lines = (tmp_path / "m.model").read_text().splitlines()
    (tmp_path / "m.model").write_text("\n".join([*lines[:-1], f"{lines[-1].rstrip()} 2147483646:1"]) + "\n")
    result = run("convert-model", needed_values("convert-model", tmp_path))
    assert result.stderr == (
        f"approxsvm: {tmp_path}/m.model: index 2147483646 is used, but at most 1048576 features are supported\n"
    )


def test_wide_arrays(limited):
    from scipy.sparse import csr_array

    wide = csr_array((np.ones(2), [0, 2**31 - 2], [0, 1, 2]), shape=(2, 2**31 - 1))
    with pytest.raises(UnsupportedModelError, match="the model has 2147483647 features, but at most 1048576"):
        approxsvm.KernelModel("regression", wide, np.ones(2), np.zeros(1), 0.5)
    assert approxsvm.gamma_max(wide, center="mean") == pytest.approx(1 / (4 * 0.5))

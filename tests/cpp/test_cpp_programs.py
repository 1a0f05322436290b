"""The documentation's C++ program and cpp/examples/embed on artifacts of every kind, and tests of class Model."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from conftest import GOLDEN, REPOSITORY
from native_build import filled_once
from native_build import run as build_tool
from sklearn.kernel_ridge import KernelRidge
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import approxsvm
from approxsvm.errors import InputError
from approxsvm.runtime.evaluator import BOUNDS, PROBABILITIES, VALUES, read_artifact

N_FEATURES = 4
DOCUMENTED = REPOSITORY / "docs" / "howto" / "cpp.md"


def blocks() -> list[str]:
    return re.findall(r"^```cpp\n(.*?)^```", DOCUMENTED.read_text(), re.MULTILINE | re.DOTALL)


# All are in one source file, because the headers account for nearly all of the compile time.
ALL = """
#define main embed
#define n_rows n_rows_of_embed
#include "embed.cpp"
#undef n_rows
#undef main
#define main documented
#define check check_status
#include "documented.cpp"
#undef check
#undef main
#define main tests
#include "check.cpp"
#undef main
#include "test_model.cpp"
int main(int n_words, char** words) {
    return n_words < 3 ? tests(1, words) : *words[2] == 'e' ? embed(2, words) : documented(2, words);
}
"""


@pytest.fixture(scope="module")
def programs(shared_folder: Path) -> Path:
    """Build outside the tree, as described in the example's CMakeLists.txt; arguments choose a program."""

    def build(folder: Path) -> None:
        headers = ["-DAPPROXSVM_BUILD_TOOLS=OFF", "-DAPPROXSVM_BUILD_RUNTIME=OFF"]
        build_tool("cmake", "-S", REPOSITORY, "-B", folder / "build", "-G", "Ninja", *headers)
        prefix = folder / "prefix"
        build_tool("cmake", "--install", folder / "build", "--prefix", prefix, "--component", "Unspecified")
        shutil.copytree(REPOSITORY / "cpp" / "examples" / "embed", folder / "embed")
        (folder / "embed" / "main.cpp").rename(folder / "embed" / "embed.cpp")
        (snippet,) = blocks()
        (folder / "embed" / "documented.cpp").write_text(snippet.removesuffix("}\n") + "    return 0;\n}\n")
        (folder / "embed" / "main.cpp").write_text(ALL)
        tests = f'-I{REPOSITORY}/cpp/tests -DAPPROXSVM_GOLDEN_DIR=\\"{GOLDEN}\\"'
        flags = ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0", f"-DCMAKE_CXX_FLAGS=-Werror {tests}"]
        found = [f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_UNITY_BUILD=ON"]
        build_tool("cmake", "-S", folder / "embed", "-B", folder / "out", "-G", "Ninja", *found, *flags)
        build_tool("cmake", "--build", folder / "out")

    return filled_once(shared_folder, "programs", build) / "out" / "embed"


def run(programs: Path, artifact: Path, which: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([programs, artifact, which], capture_output=True, text=True)


def sample(n_classes: int = 2) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    X = rng.random((120, N_FEATURES))
    return X, np.argsort(np.argsort(X @ [3.0, -2.0, 1.0, 0.5] + 0.2 * rng.normal(size=120))) * n_classes // 120


def two_targets() -> Any:
    X, y = sample(20)
    return X, np.column_stack([y, X[:, 0]])


def two_labels() -> Any:
    X, y = sample(3)
    return X, np.array(["ham", "spam and eggs", "x"])[np.column_stack([y, y > 0])]


# Features missing from the golden artifacts.
ANSWERED: dict[str, Callable[[], Any]] = {
    "reals": lambda: approxsvm.compile(SVC().fit(sample()[0], np.array([-1.0, 2.0])[sample()[1]])),
    "targets": lambda: approxsvm.compile(MultiOutputClassifier(SVC()).fit(*two_labels())),
    "side by side": lambda: approxsvm.compile(
        make_pipeline(StandardScaler(), KernelRidge(kernel="rbf")).fit(*two_targets())
    ),
}
GOLDEN_ARTIFACTS = sorted(GOLDEN.glob("*.asvm"))


def text(label: Any) -> str:
    """Return a label as C++ prints it, with the fewest digits."""
    return np.format_float_positional(label, trim="-") if isinstance(label, float) else str(label)


def numbers(words: str) -> npt.NDArray[np.float64]:
    return np.array(words.split(), float)


class Answers:
    """Python's answers for some rows, in the core's orientation."""

    def __init__(self, artifact: Any, rows: npt.NDArray[Any]) -> None:
        self.fast = approxsvm.Predictor(artifact)
        rows = rows.astype(np.float64)  # float rows in C++ mean the same numbers
        self.rows, self.evaluator = rows, self.fast._evaluator
        self.labels = self.fast.predict(rows)
        self.n_values = int(artifact.header["n_decisions"])
        try:
            self.has_probabilities = self.get(PROBABILITIES).size > 0
        except InputError:
            self.has_probabilities = False

    def get(self, what: int) -> npt.NDArray[np.float64]:
        return np.asarray(self.evaluator.evaluate(self.rows, what), float).reshape(len(self.rows), -1)


def check_documented(printed: str, artifact: Any) -> None:
    lines = printed.splitlines()
    answers = Answers(artifact, np.full((1, artifact.n_raw_features), 0.5, np.float32))
    if artifact.task != "regression":
        for label in np.ravel(answers.labels[0]).tolist():
            assert lines.pop(0) == f"label {text(label)}"
    if answers.n_values > 0:
        said = [re.fullmatch(r"value (\S+) within (\S+)", lines.pop(0)) for _ in range(answers.n_values)]
        found = np.array([match.groups() for match in said if match], float)
        np.testing.assert_allclose(found[:, 0], answers.get(VALUES)[0], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found[:, 1], answers.get(BOUNDS)[0], rtol=1e-4)
    if answers.has_probabilities and artifact.task == "regression":
        (deviation,) = answers.get(PROBABILITIES)[0]
        assert float(lines.pop(0).removeprefix("standard deviation ")) == pytest.approx(deviation, rel=1e-5)
    elif answers.has_probabilities:
        names = ["1", "-1"] if artifact.task == "one_class" else [text(label) for label in artifact.labels.tolist()]
        said = [re.fullmatch(r"(.*) with probability (\S+)", lines.pop(0)) for _ in names]
        assert [match.group(1) for match in said if match] == names
        shares = [float(match.group(2)) for match in said if match]
        np.testing.assert_allclose(shares, answers.get(PROBABILITIES)[0], rtol=1e-5, atol=1e-8)
    assert not lines


def check_embed(printed: str, artifact: Any) -> None:
    said = dict(line.split(": ", 1) for line in printed.splitlines())
    steps = np.arange(100, dtype=np.float32) / np.float32(100.0)
    answers = Answers(artifact, np.repeat(steps[:, np.newaxis], artifact.n_raw_features, axis=1))
    if artifact.task != "regression":
        n_certified = int(np.sum(answers.evaluator.certified(answers.rows)))
        first, last = (" ".join(map(text, np.ravel(row).tolist())) for row in answers.labels[[0, -1]])
        ends = f"first {re.escape(first)}, last {re.escape(last)}"
        match = re.fullmatch(rf"{ends}, (\d+) of {answers.labels.size} proven by the first stage", said.pop("labels"))
        assert match
        assert abs(int(match.group(1)) - n_certified) <= 5  # the compiler's flags affect rounding and its bounds
    for name, what in (("values", VALUES), ("probabilities", PROBABILITIES)):
        if not (answers.n_values > 0 if what == VALUES else answers.has_probabilities):
            continue
        match = re.fullmatch(r"first (.*?), last (.*?)(, within \S+)?", said.pop(name))
        assert match
        for words, row in zip(match.groups(), answers.get(what)[[0, -1]], strict=False):
            within = 2.0 * float(answers.get(BOUNDS).max()) if what == VALUES else 1e-9
            np.testing.assert_allclose(numbers(words), row, rtol=1e-5, atol=1e-6 + within)
    assert not said


@pytest.mark.parametrize("name", [*ANSWERED, *(pytest.param(path, id=path.stem) for path in GOLDEN_ARTIFACTS)])
def test_programs_answer_as_python_does(programs: Path, tmp_path: Path, name: str | Path) -> None:
    path = tmp_path / "model.asvm" if isinstance(name, str) else name
    if isinstance(name, str):
        ANSWERED[name]().save(path)
    artifact = read_artifact(path)
    for which, check in (("documented", check_documented), ("embed", check_embed)):
        ran = run(programs, path, which)
        assert ran.returncode == 0, ran.stderr
        check(ran.stdout, artifact)


def test_programs_refuse_what_is_no_artifact(programs: Path, tmp_path: Path) -> None:
    for content, why in ((b"", "it is empty|ends inside"), (b"RIFF" * 64, "wrong magic bytes")):
        (tmp_path / "model.asvm").write_bytes(content)
        for which in ("documented", "embed"):
            ran = run(programs, tmp_path / "model.asvm", which)
            assert (ran.returncode, ran.stdout) == (1, "")
            assert re.search(why, ran.stderr)
    ran = run(programs, tmp_path, "documented")
    assert (ran.returncode, ran.stderr) == (1, f"cannot read {tmp_path}, or it is empty\n")


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize(
    ("header", "folder", "standard"),
    [("approxsvm/approxsvm.hpp", "include", 14), ("approxsvm_runtime.hpp", "runtime", 11)],
)
def test_an_old_standard_is_the_first_error(compiler: str, header: str, folder: str, standard: int) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} here")
    command = [compiler, f"-std=c++{standard}", "-fsyntax-only", "-x", "c++", REPOSITORY / "cpp" / folder / header]
    said = subprocess.run(command, capture_output=True, text=True).stderr
    assert re.search(rf"needs C\+\+{standard + 3}: compile with", said[said.index("error:") :].splitlines()[0])


def test_class_model(programs: Path) -> None:
    ran = subprocess.run([programs], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout


@pytest.mark.parametrize("flags", [["-ffast-math"], ["-funsafe-math-optimizations"], ["-ffinite-math-only"]])
def test_fast_math_does_not_compile(flags: list[str]) -> None:
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler here")
    if "clang" in subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout and len(flags[0]) > 20:
        pytest.skip("Clang does not tell of every part of -ffast-math")
    header = REPOSITORY / "cpp" / "include" / "approxsvm" / "simd" / "simd.hpp"
    command = [compiler, "-std=c++17", "-E", "-x", "c++", *flags, str(header)]
    refused = subprocess.run(command, capture_output=True, text=True)
    assert refused.returncode != 0
    assert "approxsvm needs IEEE arithmetic" in refused.stderr

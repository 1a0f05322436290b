"""README's C++ program and cpp/examples/embed, sanitized, on artifacts of every sort."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import GOLDEN, REPOSITORY
from sklearn.calibration import CalibratedClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM

import approxsvm

SANITIZED = ["-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"]
INCLUDE = f"-I{REPOSITORY}/cpp/include"
N_FEATURES = 4


def blocks() -> list[str]:
    return re.findall(r"^```cpp\n(.*?)^```", (REPOSITORY / "README.md").read_text(), re.MULTILINE | re.DOTALL)


def built(folder: Path, sources: list[Path], *flags: str) -> Path:
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler here")
    command = [compiler, *SANITIZED, "-fno-sanitize-recover=all", *flags, INCLUDE, "-o", folder / "program", *sources]
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-5000:]
    return folder / "program"


@pytest.fixture(scope="module")
def readme(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("readme")
    (snippet,) = blocks()
    (folder / "snippet.cpp").write_text(snippet)
    return built(folder, [folder / "snippet.cpp"])


@pytest.fixture(scope="module")
def embed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = REPOSITORY / "cpp" / "examples" / "embed"
    folder = tmp_path_factory.mktemp("embed")
    return built(folder, [source / "main.cpp", source / "mapped_model.cpp"], "-march=native")


def run(program: Path, artifact: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, artifact], capture_output=True, text=True)


def sample(n_classes: int = 2) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    X = rng.random((120, N_FEATURES))
    return X, np.argsort(np.argsort(X @ [3.0, -2.0, 1.0, 0.5] + 0.2 * rng.normal(size=120))) * n_classes // 120


def classes_named(names: list[Any], **options: Any) -> Callable[[], Any]:
    def make() -> Any:
        X, y = sample(len(names))
        return approxsvm.compile(SVC(gamma=0.5).fit(X, np.array(names)[y]), X, **options)

    return make


def regression(**options: Any) -> Callable[[], Any]:
    X, y = sample(20)
    return lambda: approxsvm.compile(SVR(gamma=0.5).fit(X, y), X, **options)


def one_class(**options: Any) -> Callable[[], Any]:
    X, _ = sample()
    return lambda: approxsvm.compile(OneClassSVM(gamma=0.5).fit(X), X, **options)


def polynomial(degree: int, n_classes: int = 2, **options: Any) -> Callable[[], Any]:
    X, y = sample(n_classes)
    return lambda: approxsvm.compile(SVC(kernel="poly", degree=degree, coef0=0.5).fit(X, y), **options)


EXPANDED = {"degree": 2, "n_centers": 3}
ANSWERED = {
    "two certified": classes_named([3, -4], **EXPANDED),
    "two approximate": classes_named([3, -4], mode="approximate", **EXPANDED),
    "two exact": classes_named([3, -4], mode="exact"),
    "tolerance": classes_named([3, -4], tolerance=0.01, **EXPANDED),
    "texts": classes_named(["spam", "ham \u00e9"], **EXPANDED),
    "reals": classes_named([-1.0, 2.0], **EXPANDED),
    "several certified": classes_named([5, 2, 9, 7], **EXPANDED),
    "several approximate": classes_named(["a", "b", "long name"], mode="approximate", **EXPANDED),
    "several exact": classes_named(["a", "b", "long name"], mode="exact"),
    "linear": polynomial(1),
    "quadratic approximate": polynomial(2, mode="approximate"),
    "quadratic several": polynomial(2, 3),
    "cubic": polynomial(3),
    "cubic several": polynomial(3, 4),
    "regression exact": regression(mode="exact"),
    "regression certified": regression(**EXPANDED),
    "regression approximate": regression(mode="approximate", **EXPANDED),
    "one class certified": one_class(**EXPANDED),
    "one class exact": one_class(mode="exact"),
    "one class approximate": one_class(mode="approximate", **EXPANDED),
}


def text(label: Any) -> str:
    """As C++ prints it: the fewest digits."""
    return np.format_float_positional(label, trim="-") if isinstance(label, float) else str(label)


@pytest.mark.parametrize("name", ANSWERED)
def test_programs_answer_as_python_does(readme: Path, embed: Path, tmp_path: Path, name: str) -> None:
    fast = ANSWERED[name]()
    path = tmp_path / "model.asvm"
    fast.save(path)
    ran = run(readme, path)
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    row = np.full((1, N_FEATURES), 0.5, np.float32)
    if fast.artifact.task != "regression":
        assert lines.pop(0) == f"label {text(fast.predict(row)[0])}"
    printed = np.array([re.fullmatch(r"value (\S+) within (\S+)", line).groups() for line in lines], float)  # type: ignore[union-attr]
    values, bounds, _ = fast._evaluate(row, bounds=True)  # in the model's own orientation
    np.testing.assert_allclose(printed[:, 0], np.ravel(values), rtol=1e-5, atol=1e-6)
    if fast.artifact.task == "classification" and printed.shape[0] == 1:
        greater_first = fast.artifact.labels[0] > fast.artifact.labels[1]
        assert (
            (values > 0) == (fast.decision_function(row) > 0)
            if greater_first
            else (values > 0) == (fast.decision_function(row) <= 0)
        )
    np.testing.assert_allclose(printed[:, 1], np.ravel(bounds), rtol=1e-4)

    ran = run(embed, path)
    assert ran.returncode == 0, ran.stderr
    expansion, *labels, values_line = ran.stdout.splitlines()
    assert (expansion == "expansion: none") == (fast.artifact.n_centers == 0)
    assert re.fullmatch(r"values: first \S+, last \S+, within \S+", values_line)
    if fast.artifact.task == "regression":
        assert not labels
    else:
        near = fast.artifact.center.astype(np.float32)[np.newaxis]
        first, last = fast.predict(np.vstack([near] * 5))[0], fast.predict(near + np.float32(99 / 1000.0))[0]
        assert labels[0].startswith(f"labels: first {text(first)}, last {text(last)}, ")


@pytest.mark.parametrize("artifact", sorted(GOLDEN.glob("*.asvm")), ids=lambda path: path.stem)
def test_programs_answer_on_golden_artifacts(readme: Path, embed: Path, artifact: Path) -> None:
    for program in (readme, embed):
        ran = run(program, artifact)
        assert ran.returncode == 0, ran.stderr
        assert "value" in ran.stdout


def pipeline(mode: str) -> Callable[[], Any]:
    X, y = sample()
    fitted = make_pipeline(StandardScaler(), SVC()).fit(X, y)
    return lambda: approxsvm.compile(fitted, X, mode=mode)


def by_scores() -> Any:
    X, y = sample(3)
    return approxsvm.compile(SVC(break_ties=True).fit(X, y), X)


def ensemble() -> Any:
    X, y = sample()
    return approxsvm.compile(CalibratedClassifierCV(SVC(), cv=2).fit(X, y), X)


REFUSED = {
    "pipeline certified": (pipeline("certified"), "the artifact scales or projects its rows first"),
    "pipeline approximate": (pipeline("approximate"), "the artifact scales or projects its rows first"),
    "pipeline exact": (pipeline("exact"), "the artifact scales or projects its rows first"),
    "scores": (by_scores, "the artifact labels by scores or probabilities rather than votes"),
    "ensemble": (ensemble, "an ensemble artifact (several classifiers), which only Python reads"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_programs_refuse_what_they_would_get_wrong(readme: Path, embed: Path, tmp_path: Path, name: str) -> None:
    make, why = REFUSED[name]
    make().save(tmp_path / "model.asvm")
    for program in (readme, embed):
        ran = run(program, tmp_path / "model.asvm")
        assert (ran.returncode, ran.stdout) == (1, "")
        assert why in ran.stderr


@pytest.mark.parametrize("flags", [["-ffast-math"], ["-funsafe-math-optimizations"], ["-ffinite-math-only"]])
def test_fast_math_does_not_compile(flags: list[str]) -> None:
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler here")
    if "clang" in subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout and len(flags[0]) > 20:
        pytest.skip("Clang does not tell of every part of -ffast-math")
    header = REPOSITORY / "cpp" / "include" / "approxsvm" / "simd.hpp"
    command = [compiler, "-std=c++17", "-E", "-x", "c++", *flags, str(header)]
    refused = subprocess.run(command, capture_output=True, text=True)
    assert refused.returncode != 0
    assert "approxsvm needs IEEE arithmetic" in refused.stderr

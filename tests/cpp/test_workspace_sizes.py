"""Workspace sizes in docs/howto/cpp.md hold for every golden artifact, and for models in every row of the table."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import GOLDEN, REPOSITORY
from runtime_library import built
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, SplineTransformer, StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM

import approxsvm

TARGET_FLAGS = {"avx2": ["-mavx2", "-mfma"], "avx512": ["-march=x86-64-v4"]}
PROGRAM = """
#include <approxsvm/approxsvm.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <vector>

int main(int, char** paths) {
    while (*++paths) {
        std::ifstream file(*paths, std::ios::binary);
        const std::vector<unsigned char> bytes((std::istreambuf_iterator<char>(file)), {});
        approxsvm::Model model;
        if (model.open(bytes) != approxsvm::Status::ok) return 1;
        std::vector<unsigned char> memory(model.memory_bytes());
        if (model.prepare(memory) != approxsvm::Status::ok) return 2;
        std::printf("%zu %zu\\n", model.workspace_bytes(4), model.workspace_bytes());
    }
}
"""


def some(source: Any, n_features: int, n_classes: int = 2, **options: Any) -> Callable[[], Any]:
    def compiled() -> Any:
        rows = np.random.default_rng(0).random((max(60, 10 * n_classes), n_features))
        y = rows.mean(axis=1).argsort().argsort() * n_classes // len(rows)
        return approxsvm.compile(source.fit(rows, y), **options)

    return compiled


ONE = {"degree": 2, "n_centers": 1}
PLAIN = [SVC(), SVR(), OneClassSVM(), *(SVC(kernel=kernel) for kernel in ("linear", "poly", "sigmoid"))]
# Models for each row of the table.
MODELS = {
    "all in `models/`": [],
    "one function, up to 256 features": [
        *(some(source, n) for source in PLAIN for n in (2, 256)),
        some(SVC(), 30, **ONE),
        some(SVC(), 30, degree=2, n_centers=20),
        some(SVC(), 30, degree=4, n_centers=1),
    ],
    "pipeline of up to 30 features, or of 6 splines": [
        *(some(make_pipeline(StandardScaler(), SVC()), n, **ONE) for n in (2, 30)),
        some(make_pipeline(StandardScaler(), SVC()), 30, degree=2, n_centers=20),
        some(make_pipeline(SplineTransformer(), SVC()), 6, **ONE),
        some(make_pipeline(PolynomialFeatures(), SVC()), 6, **ONE),
        some(CalibratedClassifierCV(make_pipeline(StandardScaler(), SVC()), cv=2), 6, **ONE),
    ],
    "pipeline of 256 features": [
        some(make_pipeline(StandardScaler(), SVC()), 256, **ONE),
        some(make_pipeline(StandardScaler(), PCA(20), SVC()), 256, **ONE),
    ],
    "10 classes": [some(SVC(), 8, 10, **ONE), some(OneVsRestClassifier(SVC()), 8, 10, **ONE)],
    "100 classes": [some(SVC(), 8, 100, mode="exact"), some(OneVsRestClassifier(SVC()), 8, 100, **ONE)],
}


def documented() -> dict[str, list[tuple[float, ...]]]:
    page = (REPOSITORY / "docs" / "howto" / "cpp.md").read_text()
    table = page.split("| model | `workspace_bytes(4)` | `workspace_bytes()` |\n|---|---|---|\n")[1].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    ranges = [[re.fullmatch(r"([\d.,]+) to ([\d,]+)", cell) for cell in cells[1:]] for cells in rows]
    numbers = [[tuple(float(text.replace(",", "")) for text in found.groups()) for found in some_] for some_ in ranges]
    return {cells[0]: found for cells, found in zip(rows, numbers, strict=True)}


@pytest.mark.slow
def test_documented_workspace_sizes(tmp_path: Path) -> None:
    (tmp_path / "sizes.cpp").write_text(PROGRAM)
    paths = {
        name: [tmp_path / f"{k}_{j}.asvm" for j in range(len(made))] for k, (name, made) in enumerate(MODELS.items())
    }
    for name, made in MODELS.items():
        for path, model in zip(paths[name], made, strict=True):
            model().save(path)
    paths["all in `models/`"] = sorted(GOLDEN.glob("*.asvm"))
    assert list(documented()) == list(MODELS)
    found: dict[str, list[list[float]]] = {name: [] for name in MODELS}
    targets = approxsvm._native.runnable_targets()
    for target in {targets[0], targets[-1]}:  # sizes grow with the width of registers
        flags = ["-std=c++17", "-O0", *TARGET_FLAGS.get(target, []), f"-I{REPOSITORY}/cpp/include"]
        built(["c++", *flags, tmp_path / "sizes.cpp", "-o", tmp_path / "sizes"])
        for name, files in paths.items():
            ran = subprocess.run([tmp_path / "sizes", *files], capture_output=True, text=True, check=True)
            found[name] += [[int(word) / 1000 for word in line.split()] for line in ran.stdout.splitlines()]
    for name, ranges in documented().items():
        sizes = np.array(found[name])
        for (least, most), some_sizes in zip(ranges, sizes.T, strict=True):
            assert least <= some_sizes.min(), name
            assert 0.5 * most <= some_sizes.max() <= most, name

"""Exported C headers for models on a grid of few values: integer kernels, with bounds for rows on and off the grid."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_header import NEEDS_GCC, STRICT, build
from conftest import random_model
from microcontrollers import BOARDS
from test_export_c_kinds import SANITIZED, assert_proven, at_boundary

import approxsvm
from approxsvm.backends.c99.few_values import grid_of, packed

pytestmark = [pytest.mark.native, NEEDS_GCC]

# Number of values per feature, origin, and step.
GRIDS: dict[str, tuple[list[int], float, float]] = {
    "binary": ([2] * 40, 0.0, 1.0),
    "binary, a word": ([2] * 32, 0.0, 1.0),
    "LIBSVM's phishing": ([2] * 33, 0.0, 0.18257418583505536),
    "signs": ([2] * 9, -1.0, 2.0),
    "one to four": ([4] * 17, 1.0, 1.0),
    "thirds": ([4] * 16, 0.0, 1.0 / 3.0),
    "mixed, a constant": ([16, 1, 3, 9, 2, 5], -7.5, 0.5),
    "far away": ([2] * 12, 2.0**30, 1.0),
    "small": ([3] * 12, 0.0, 1e-8),
    "one feature": ([2], 0.0, 1.0),
}


def model_on(name: str, seed: int, gamma: float, n_labels: int = 2) -> tuple[Any, Any]:
    """Return a model with canceling coefficients, and rows on the grid, off it, at the boundary, and far away."""
    n_values, origin, step = GRIDS[name]
    rng, d = np.random.default_rng(seed), len(n_values)
    changes: dict[str, Any] = {"dual_coef": rng.normal(size=(n_labels - 1, 60)) * 10.0 ** rng.uniform(-2, 2, 60)}
    if n_labels > 2:
        changes |= {"labels": np.arange(n_labels), "n_support": np.full(n_labels, 60 // n_labels)}
        changes |= {"intercept": 0.3 * rng.normal(size=n_labels * (n_labels - 1) // 2)}
    vectors = origin + step * rng.integers(0, n_values, (60, d))
    vectors[0], vectors[1] = origin, origin + step * (np.array(n_values) - 1.0)
    changes |= {"support_vectors": vectors, "gamma": gamma / d / step**2}
    model = random_model(seed, n_sv=60, n_features=d, **changes)
    inside = origin + step * rng.integers(0, n_values, (60, d))
    beside = np.where(rng.random((20, d)) < 0.2, inside[:20] + step * rng.normal(size=(20, d)), inside[:20])
    edges = inside[:10].copy()
    edges[:, 0], edges[:, -1] = origin - step, origin + step * (n_values[-1] + 14)
    ulp = np.nextafter(inside[:10].astype(np.float32), np.float32(np.inf))
    half = inside[:10] + 0.5 * step
    zeros = np.where(inside[:3] == 0.0, -0.0, inside[:3])
    far = [origin + 1e5 * step * rng.normal(size=(3, d)), at_boundary(model, inside, rng)]
    return model, np.concatenate([inside, beside, edges, ulp, half, zeros, *far]).astype(np.float32)


@pytest.mark.attack
@pytest.mark.parametrize("name", GRIDS)
def test_no_bound_is_broken(name: str, tmp_path: Path) -> None:
    seed = list(GRIDS).index(name)
    gamma, n_labels = [(0.7, 2), (1e-6, 2), (300.0, 2), (0.7, 3)][seed % 4]
    model, rows = model_on(name, seed, gamma, n_labels)
    compiled = approxsvm.compile(model, mode="exact")
    program = build(compiled, tmp_path, *STRICT, compiler=SANITIZED)
    assert "on a grid" in (tmp_path / "m.h").read_text()
    answers = assert_proven(model, compiled, program, rows)
    sums = np.abs(compiled.artifact.decision_coef()).sum(axis=1)
    if name != "far away":  # there, float32 rows are off the grid
        most = 1e-6 * (1.0 + gamma) * sums + 1e-7 * np.abs(answers.values[:60])
        assert (answers.bounds[:60] < most).all()
        assert (answers.bounds[60:110] < 1e-4 * sums + 1e-6 * np.abs(answers.values[60:110])).all()  # off the grid


@pytest.mark.parametrize(
    "vectors",
    [
        np.random.default_rng(0).normal(size=(20, 4)),
        np.arange(40.0).reshape(20, 2) % 17,
        np.where(np.arange(40).reshape(20, 2) % 3 == 0, 0.3, np.arange(40).reshape(20, 2) % 3),  # 0.3, 1 and 2
        np.ones((20, 3)),
    ],
)
def test_no_grid(vectors: Any) -> None:
    assert grid_of(vectors) is None


def test_codes_in_words() -> None:
    codes = np.random.default_rng(0).integers(0, 4, (5, 37))
    words = packed(codes, 2)
    column = np.arange(37)
    assert words.shape == (5, 3)
    np.testing.assert_array_equal(words[:, column // 16] >> 2 * (column % 16).astype(np.uint32) & 3, codes)


@pytest.mark.parametrize("name", ["Cortex-M4F", "Cortex-M0+"])
def test_boards_agree_with_the_host(name: str, tmp_path: Path) -> None:
    board = BOARDS[name]
    if not all(map(shutil.which, board.tools)):
        pytest.skip(f"{' and '.join(board.tools)} are not installed")
    model, rows = model_on("one to four", 0, 0.7)
    host = build(approxsvm.compile(model, mode="exact"), tmp_path)
    expected = host.answers(rows)
    subprocess.run(board.link("-Os", "-o", "program.elf", "main.c"), cwd=tmp_path, check=True)
    found = replace(host, run=board.run("program.elf")).answers(rows)
    for field in ("values", "bounds", "predicted", "if_certain", "certain"):
        np.testing.assert_array_equal(getattr(found, field), getattr(expected, field))

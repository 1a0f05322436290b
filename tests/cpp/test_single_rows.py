"""Single rows, for models with several classes: labels near boundaries, and the work per row."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from conftest import REPOSITORY
from forced_subspaces import in_subspaces
from runtime_library import built

import approxsvm
from approxsvm.artifact.views import Artifact
from approxsvm.ir.kernel_model import KernelModel
from approxsvm.reference.definition import definition_of

PROGRAM = REPOSITORY / "cpp" / "tests" / "single_rows.cpp"
N_CLASSES, N_FEATURES, N_OF_CLASS = 5, 68, 30
PAIRS = [(i, j) for i in range(N_CLASSES) for j in range(i + 1, N_CLASSES)]

Rows = npt.NDArray[np.float64]
Alone = Callable[[Artifact, Rows], tuple[npt.NDArray[np.int64], Rows]]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Alone:
    """Return a function that predicts rows one per call, and returns label indices and multiply-adds."""
    folder = tmp_path_factory.mktemp("single_rows")
    program, model, rows_path = folder / "single_rows", folder / "model.asvm", folder / "rows"
    built(["c++", "-std=c++17", "-O0", f"-I{REPOSITORY / 'cpp' / 'include'}", PROGRAM, "-o", program])

    def ask(artifact: Artifact, rows: Rows) -> tuple[npt.NDArray[np.int64], Rows]:
        model.write_bytes(artifact.data)
        rows.tofile(rows_path)
        printed = subprocess.run([program, model, rows_path], check=True, capture_output=True, text=True).stdout
        found = np.array([line.split() for line in printed.splitlines()], np.float64)
        return found[:, 0].astype(np.int64), found[:, 1]

    return ask


def _pairs(seed: int, **changes: Any) -> KernelModel:
    """Return a five-class model; coefficients vary widely in size, many are 0, and a class has one sign per pair."""
    random = np.random.default_rng(seed)
    n_sv = N_CLASSES * N_OF_CLASS
    coef = 10.0 ** random.uniform(-1, 1, (N_CLASSES - 1, n_sv)) * random.integers(0, 2, (N_CLASSES - 1, n_sv))
    for c in range(N_CLASSES):
        for other in range(N_CLASSES):
            if other < c:
                coef[other, c * N_OF_CLASS : (c + 1) * N_OF_CLASS] *= -1.0
    arguments: dict[str, Any] = {
        "support_vectors": random.normal(size=(n_sv, N_FEATURES)) * 10.0 ** random.uniform(-2, 0, N_FEATURES),
        "dual_coef": coef,
        "intercept": np.zeros(len(PAIRS)),
        "gamma": 0.1,
        "labels": np.arange(N_CLASSES),
        "n_support": np.full(N_CLASSES, N_OF_CLASS),
    }
    return KernelModel("classification", **(arguments | changes))


def _boundary_rows(model: KernelModel, seed: int) -> Rows:
    """Return rows between support vectors, closer and closer to a point where a pair changes its vote."""
    random, n = np.random.default_rng(seed), 200
    x, pairs = model.dense_support_vectors(0, model.n_sv), random.integers(0, len(PAIRS), n)
    a, b = (x[N_OF_CLASS * np.array(PAIRS)[pairs, k] + random.integers(0, N_OF_CLASS, n)] for k in (0, 1))
    votes = [definition_of(model).values(rows)[np.arange(n), pairs] > 0.0 for rows in (a, b)]
    differs = votes[0] != votes[1]
    a, b, pairs, first = a[differs], b[differs], pairs[differs], votes[0][differs]
    found = [x[:10]]
    for step in range(36):
        middle = 0.5 * (a + b)
        same = (definition_of(model).values(middle)[np.arange(len(a)), pairs] > 0.0) == first
        a, b = np.where(same[:, np.newaxis], middle, a), np.where(same[:, np.newaxis], b, middle)
        if step % 3 == 2:
            found.append(middle)
    return np.ascontiguousarray(np.vstack(found))


def _labels(model: KernelModel, rows: Rows) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Return the winners of the votes, and a mask of rows without pairs that rounding may flip."""
    values = definition_of(model).values(rows)
    votes = np.zeros((len(rows), N_CLASSES), np.int64)
    for pair, (i, j) in enumerate(PAIRS):
        wins = values[:, pair] > 0.0
        votes[:, i] += wins
        votes[:, j] += ~wins
    clear = (np.abs(values) > 1e-10 * model.absolute_sums()).all(axis=1)
    return votes.argmax(axis=1), clear


def _plans(model: KernelModel) -> list[Artifact]:
    sample = model.dense_support_vectors(0, model.n_sv)
    return [
        approxsvm.compile(model, sample, n_jobs=1, mode="exact").artifact,
        approxsvm.compile(model, sample, n_jobs=1, degree=2, n_centers=3).artifact,
        in_subspaces(model, (16, 32), X=sample),
    ]


@pytest.mark.parametrize("seed", range(3))
def test_labels_next_to_boundaries_and_their_work(alone: Alone, seed: int) -> None:
    model = _pairs(seed)
    rows = _boundary_rows(model, seed)
    expected, clear = _labels(model, rows)
    assert clear.sum() > 100
    for artifact in _plans(model):
        labels, work = alone(artifact, rows)
        np.testing.assert_array_equal(labels[clear], expected[clear])
        assert artifact.most_multiply_adds is not None
        in_engines, with_definition = artifact.most_multiply_adds
        assert 0 < work.min() < work.max() <= with_definition
        assert in_engines < with_definition


def test_ties_take_no_more_than_is_said(alone: Alone) -> None:
    """All class pairs share their support vectors and are 0 at every row: neither bounds nor votes decide.

    The limit is tight: such rows come close to it.
    """
    base = _pairs(7)
    x = np.tile(base.dense_support_vectors(0, N_OF_CLASS), (N_CLASSES, 1))
    coef = np.ones((N_CLASSES - 1, base.n_sv))
    for c in range(N_CLASSES):
        coef[:c, c * N_OF_CLASS : (c + 1) * N_OF_CLASS] = -1.0
    model = _pairs(7, support_vectors=x, dual_coef=coef)
    rows = np.random.default_rng(7).normal(size=(20, N_FEATURES))
    for artifact in _plans(model):
        _, work = alone(artifact, rows)
        assert artifact.most_multiply_adds is not None
        _, with_definition = artifact.most_multiply_adds
        assert 0.3 * with_definition < work.max() <= with_definition

"""Labels by votes for models whose classes rarely win all their pairs: cycles, equal votes and pairs with value 0."""

from __future__ import annotations

import struct
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from artifact_changes import changed, content
from scipy.sparse import csr_array

import approxsvm
from approxsvm import Artifact, KernelModel, _native
from approxsvm.runtime.evaluator import LABELS

Rows = npt.NDArray[np.float64]


def _model(random: np.random.Generator, n_classes: int) -> tuple[KernelModel, Rows]:
    """Return a model (two classes have equal vectors, pairs are often near 0), and rows, some between two vectors."""
    n_features, n_support = int(random.integers(2, 40)), random.integers(1, 9, n_classes)
    n_support[1] = n_support[0]
    owner = np.repeat(np.arange(n_classes), n_support)
    x = random.normal(size=(len(owner), n_features)) + 0.3 * random.normal(size=(n_classes, n_features))[owner]
    x[owner == 1] = x[owner == 0]
    coef = 10.0 ** random.uniform(-1, 1, (n_classes - 1, len(x))) * (random.random((n_classes - 1, len(x))) < 0.8)
    coef[0, owner == 1] = coef[0, owner == 0]  # their pair is 0 everywhere
    coef[np.arange(n_classes - 1)[:, np.newaxis] < owner] *= -1.0
    gamma = 0.3 / n_features
    rows = np.concatenate(
        [
            x[random.integers(0, len(x), 150)] + random.normal(size=(150, n_features)),
            0.5 * (x[random.integers(0, len(x), 150)] + x[random.integers(0, len(x), 150)]),
        ]
    )
    rows[::7] *= random.random((len(rows[::7]), n_features)) < 0.2
    rows = np.asarray(rows, np.float32).astype(float)
    bare = _values(x, coef, n_support, gamma, rows)
    strength = random.uniform(0.0, 1.0, n_classes) * random.choice([0.0, 0.5, 3.0])
    i, j = np.triu_indices(n_classes, 1)
    intercept = (strength[i] - strength[j]) * bare.std(axis=0) - np.median(bare, axis=0)
    intercept[0] = 0.0
    fields: dict[str, Any] = {"labels": np.arange(n_classes), "n_support": n_support}
    return KernelModel("classification", x, coef, np.asarray(intercept, float), gamma, **fields), rows


def _values(x: Rows, coef: Rows, n_support: Any, gamma: float, rows: Rows) -> npt.NDArray[np.longdouble]:
    """Return the values of all pairs in extended precision."""
    squares = ((rows[:, np.newaxis].astype(np.longdouble) - x) ** 2).sum(axis=2)
    products = np.exp(-gamma * squares)[:, np.newaxis] * coef  # (row, number, vector)
    sums = np.add.reduceat(products, np.r_[0, np.cumsum(n_support)[:-1]], axis=2)
    i, j = np.triu_indices(len(n_support), 1)
    return sums[:, j - 1, i] + sums[:, i, j]


def _winners(model: KernelModel, rows: Rows) -> npt.NDArray[np.intp]:
    """Return each row's winner, or -1 if it depends on pairs whose values are within 1e-11 of their absolute sums."""
    k = len(model.labels)
    values = _values(np.asarray(model.support_vectors), model.dual_coef, model.n_support, model.gamma, rows)
    values = values + model.intercept
    open_ = np.abs(values) <= 1e-11 * model.absolute_sums()
    found = np.full(len(rows), -1)
    wins = np.zeros((2, len(rows), k), int)  # certain, possible
    for pair, (i, j) in enumerate(zip(*np.triu_indices(k, 1), strict=True)):
        for sure, first in ((0, (values > 0) & ~open_), (1, (values > 0) | open_)):
            wins[sure, :, i] += first[:, pair]
        for sure, second in ((0, (values <= 0) & ~open_), (1, (values <= 0) | open_)):
            wins[sure, :, j] += second[:, pair]
    for r, (certain, possible) in enumerate(zip(*wins, strict=True)):
        best = certain.argmax()
        rivals = possible + (np.arange(k) < best) > certain[best]
        rivals[best] = False
        found[r] = -1 if rivals.any() else best
    return found


@cache
def _case(n_classes: int) -> tuple[list[Any], npt.NDArray[np.intp], list[Artifact]]:
    """Return calls, the winners, and two artifacts: an exact one with a random network, and a coarse expansion.

    The calls are lists of all rows, 1 to 300 per call: each size in both types, and each type in both layouts.
    """
    random = np.random.default_rng(n_classes)
    model, rows = _model(random, n_classes)
    exact = approxsvm.compile(model, rows, n_jobs=1, mode="exact").artifact
    weights = random.normal(size=(1 + model.n_features, n_classes)).astype("<f4").tobytes()
    network = struct.pack("<2I", 0, 0) + weights
    coarse = approxsvm.compile(model, rows, n_jobs=1, degree=2, n_centers=3).artifact
    calls = [
        [lay_out(some[k : k + n]) for k in range(0, len(rows), n)]
        for i, n in enumerate((1, 3, 8, 300))
        for some, lay_out in zip((rows, rows.astype(np.float32)), (np.asarray, csr_array)[:: (-1) ** i], strict=True)
    ]
    return calls, _winners(model, rows), [Artifact(changed(content({"speculation": network}), exact)), coarse]


def _labels(native: _native.Predictor, rows: Any) -> Any:
    if isinstance(rows, np.ndarray):
        return native.dense(rows, 1, LABELS, "promised", False)
    return native.csr(rows.indptr, rows.indices, rows.data, 1, LABELS, "promised", False)


@pytest.mark.parametrize("n_classes", [4, 5, 7, 10, 16, 26, 40])
def test_votes_without_a_class_that_wins_all(n_classes: int, target: str) -> None:
    calls, expected, artifacts = _case(n_classes)
    is_sure = expected >= 0
    assert is_sure.sum() > 100
    for artifact in artifacts:
        native = _native.Predictor(artifact.native, target)
        for parts in calls:
            found = [_labels(native, part) for part in parts]
            np.testing.assert_array_equal(np.concatenate(found)[is_sure], expected[is_sure])

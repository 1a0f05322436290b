"""Sums that cancel to one part in 10^7. Float32 alone gets many labels wrong, so each stage needs its full bound."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from forced_subspaces import in_subspaces
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from zoo import class_numbers

import approxsvm
from approxsvm import KernelModel
from approxsvm.estimators import estimator_for
from approxsvm.ir.outputs import Outputs

Rows = npt.NDArray[np.float64]
TINY = 4e-8


def cancelling(positions: Rows, n_labels: int, gamma: float, moved: float = TINY, *, each: bool = False) -> KernelModel:
    """Return a model whose classes have nearly equal support vectors and weights; `each`: one function per class."""
    rng = np.random.default_rng(len(positions) + n_labels)
    n = len(positions)
    weights = rng.uniform(0.5, 1.0, n)
    if each:
        coef = weights * (1.0 + TINY * rng.normal(size=(n_labels, n)))
        counts, outputs, vectors = np.empty(0, np.int64), Outputs(label_rule="scores", decision_shape="each"), positions
    else:
        counts, outputs = np.full(n_labels, n), Outputs()
        of_class, other = np.repeat(np.arange(n_labels), n), np.arange(n_labels - 1)[:, np.newaxis]
        signs = np.where(other + (other >= of_class) > of_class, 1.0, -1.0)
        coef = signs * np.tile(weights, n_labels) * (1.0 + TINY * rng.normal(size=signs.shape))
        vectors = np.tile(positions, (n_labels, 1))
        vectors = vectors + moved * rng.normal(size=vectors.shape) * (vectors != 0.0)
    n_functions = n_labels if each else n_labels * (n_labels - 1) // 2
    return KernelModel(
        "classification", vectors, coef, np.zeros(n_functions), gamma, np.arange(n_labels), counts, outputs=outputs
    )


def expected(model: KernelModel, rows: Rows) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Return labels from float64 sums, and a mask of those that are certain."""
    kernel = np.exp(-model.gamma * cdist(rows, np.asarray(model.support_vectors), "sqeuclidean"))
    values = kernel @ np.column_stack([model.coefficients(k) for k in range(model.n_decisions)])
    if model.outputs.decision_shape == "each":
        ordered = np.sort(values, axis=1)
        found, gaps = values.argmax(axis=1), ordered[:, -1] - ordered[:, -2]
    else:
        found, gaps = class_numbers.winner(values), np.abs(values).min(axis=1)
    return found, gaps > 1e-13 * np.abs(model.dual_coef).sum()


def calls(fast: Any, rows: Rows) -> Iterator[tuple[str, Any]]:
    """Yield labels of rows in every layout, from calls with many rows, few rows or one."""
    yield "dense", fast.predict(rows)
    yield "sparse", fast.predict(csr_array(rows))
    yield "one by one", np.array([fast.predict_one(row) for row in rows])
    for n in (2, 5, 9):
        for form in (np.asarray, csr_array):
            yield f"calls of {n}", np.concatenate([fast.predict(form(rows[i : i + n])) for i in range(0, len(rows), n)])


RNG = np.random.default_rng(3)
DENSE = RNG.normal(size=(60, 12))
PLANE = np.pad(RNG.normal(size=(60, 4)), ((0, 0), (0, 16)))  # in four of 20 coordinates
BITS = RNG.integers(0, 2, (120, 30)).astype(np.float64)
WORDS = RNG.normal(size=(90, 400)) * (RNG.random((90, 400)) < 0.01)
CASES: dict[str, tuple[KernelModel, Rows]] = {
    "two classes": (cancelling(DENSE, 2, 0.1), DENSE),
    "two classes, far from the center": (cancelling(100.0 + DENSE, 2, 0.1), 100.0 + DENSE),
    "four classes": (cancelling(DENSE, 4, 0.1), DENSE),
    "twelve classes": (cancelling(DENSE[:20], 12, 0.1), DENSE),
    "functions": (cancelling(DENSE, 4, 0.1, each=True), DENSE),
    "two classes of bits": (cancelling(BITS, 2, 0.05, 0.0), BITS),
    "four classes of bits": (cancelling(BITS, 4, 0.05, 0.0), BITS),
    "two classes of words": (cancelling(WORDS, 2, 0.1), WORDS),
    "four classes of words": (cancelling(WORDS, 4, 0.1), WORDS),
}


def rows_about(vectors: Rows) -> Rows:
    """Return midpoints of two support vectors or, for bits, rows that take each feature from one of the two."""
    rng = np.random.default_rng(9)
    first, second = (vectors[rng.integers(len(vectors), size=150)] for _ in range(2))
    if set(np.unique(vectors)) == {0.0, 1.0}:
        return np.where(rng.random(first.shape) < 0.5, first, second)
    return 0.5 * (first + second)


@pytest.mark.parametrize("name", CASES)
def test_labels_of_exact_models(target: str, name: str) -> None:
    model, vectors = CASES[name]
    rows = rows_about(vectors)
    labels, clear = expected(model, rows)
    fast = approxsvm.compile(model, rows[:20], mode="exact")
    assert clear.mean() > 0.7
    for how, found in calls(fast, rows):
        np.testing.assert_array_equal(found[clear], labels[clear], how)


@pytest.mark.parametrize("name", ["two classes", "four classes", "functions"])
def test_labels_after_expansions(target: str, name: str) -> None:
    model, vectors = CASES[name]
    rows = rows_about(vectors)
    labels, clear = expected(model, rows)
    for degree, n_centers in ((2, 1), (4, 1), (3, 4)):
        fast = approxsvm.compile(model, rows[:50], degree=degree, n_centers=n_centers)
        for how, found in calls(fast, rows):
            np.testing.assert_array_equal(found[clear], labels[clear], how)


@pytest.mark.parametrize("n_labels", [2, 4])
def test_labels_in_few_coordinates(target: str, n_labels: int) -> None:
    """On the support vectors' common plane, only rounding separates these sums from the model's sums."""
    model = cancelling(PLANE, n_labels, 0.1)
    rows = rows_about(PLANE)
    labels, clear = expected(model, rows)
    fast = estimator_for(in_subspaces(model, (2, 4, 6), X=rows))
    for how, found in calls(fast, rows):
        np.testing.assert_array_equal(found[clear], labels[clear], how)

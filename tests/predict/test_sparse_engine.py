"""Support vectors with few nonzeros, stored by columns in the exact engine or relative to a frequent row."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
from held_values import assert_values_are_held
from scipy.sparse import csr_array
from scipy.sparse import random as random_sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import approxsvm
from approxsvm import KernelModel
from approxsvm.artifact import packing
from approxsvm.frontends import read_any
from approxsvm.planning.costs.cost import Products
from approxsvm.runtime.evaluator import BOUNDS, VALUES, Evaluator

Rows = npt.NDArray[np.float64]
RELATIVE = 2


def text(n_rows: int, n_features: int, seed: int, n_words: int = 12) -> csr_array[Any]:
    """Return rows of norm 1 with a few words each, some of which are much more frequent than others."""
    rng = np.random.default_rng(seed)
    frequency = 1.0 / np.arange(1, n_features + 1)
    words = rng.choice(n_features, (n_rows, n_words), p=frequency / frequency.sum())
    rows: csr_array[Any] = csr_array(
        (
            rng.uniform(0.2, 1.0, words.size),
            words.ravel().astype(np.int32),
            np.arange(0, words.size + 1, n_words, dtype=np.int32),
        ),
        shape=(n_rows, n_features),
    )
    rows.sum_duplicates()
    norms = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    rows.data /= np.repeat(norms, np.diff(rows.indptr))
    return rows


def text_model(n_labels: int, n_features: int = 900, gamma: float = 1.5, n_sv: int = 150) -> KernelModel:
    rng = np.random.default_rng(n_labels)
    counts = np.full(n_labels, n_sv // n_labels)
    counts[0] += n_sv - counts.sum()
    coef = rng.normal(size=(n_labels - 1, n_sv))
    return KernelModel(
        task="classification",
        support_vectors=text(n_sv, n_features, 1),
        dual_coef=coef,
        intercept=0.1 * rng.normal(size=n_labels * (n_labels - 1) // 2),
        labels=np.arange(n_labels),
        n_support=counts,
        gamma=gamma,
    )


def awkward_rows(vectors: csr_array[Any], seed: int) -> Rows:
    """Return rows like the support vectors, support vectors themselves, dense rows, far rows, and an empty one."""
    rng = np.random.default_rng(seed)
    d = vectors.shape[1]
    dense = vectors[:20].toarray()
    return np.vstack(
        [
            text(20, d, seed).toarray(),
            dense,
            dense * (1.0 + 2.0**-40),
            dense + 1e-7 * rng.normal(size=dense.shape),
            rng.normal(size=(5, d)),
            30.0 * dense[:5],
            1e150 * dense[:5],
            1e-160 * dense[:5],
            np.zeros((2, d)),
        ]
    )


@pytest.mark.parametrize(("n_labels", "gamma"), [(2, 1e-3), (3, 1.5), (6, 80.0)])
def test_values_by_columns(target: str, n_labels: int, gamma: float) -> None:
    model = text_model(n_labels, gamma=gamma)
    rows = awkward_rows(model.support_vectors, 7)
    assert Products.of(model, csr_array(rows)).by_columns
    compiled = approxsvm.compile(model, mode="exact")
    evaluator = Evaluator(compiled.artifact)
    assert_values_are_held(model, rows, evaluator)
    narrow = rows[np.abs(rows).max(axis=1) < 1e30].astype(np.float32)
    found = evaluator.evaluate(narrow, VALUES, "exact")
    assert np.allclose(found, evaluator.evaluate(narrow.astype(np.float64), VALUES, "exact"), rtol=0, atol=1e-9)
    # Features that occur in no support vector only increase a row's distance.
    wider = csr_array((np.ones(3), np.array([2, 900, 2000]), np.array([0, 3])), shape=(1, 2001))
    seen = csr_array((np.ones(1), np.array([2]), np.array([0, 1])), shape=(1, 900))
    value = evaluator.evaluate(seen, VALUES, "exact") - model.intercept
    wide = evaluator.native.csr(wider.indptr, wider.indices, wider.data, 1, VALUES, "exact") - model.intercept
    assert np.allclose(wide, value * np.exp(-2.0 * gamma), rtol=1e-9, atol=1e-12)


def test_memory_follows_the_values() -> None:
    """With a million columns, these support vectors as dense rows would take 24 GB."""
    X = text(3000, 1 << 20, 4, n_words=6)
    svc_like = text_model(2, n_features=1 << 20, n_sv=3000)
    vectors: Any = svc_like.support_vectors
    compiled = approxsvm.compile(svc_like)
    assert len(compiled.artifact.data) < 20 * vectors.nnz + (4 << 20)  # includes a center
    values = Evaluator(compiled.artifact).evaluate(X[:50], VALUES, "exact")
    kernel = np.exp(-svc_like.gamma * np.maximum(2.0 - 2.0 * (X[:50] @ vectors.T).toarray(), 0.0))
    assert np.allclose(values, kernel @ svc_like.coefficients(0) + svc_like.intercept[0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("by_columns", [True, False])
def test_the_norm_of_a_long_support_vector_errs_more_than_its_product_with_a_short_row(
    target: str, by_columns: bool
) -> None:
    """A row without nonzeros has exact products, whereas a support vector's norm undergoes all of its roundings."""
    d, n_light = (4000, 60) if by_columns else (1200, 1)
    long = np.full(d - 400, 2.0**-26.5 * (1.0 + 1e-3))  # adding its squares rounds each sum up
    long[:8] = 1.0
    light = np.arange(n_light)
    vectors = csr_array(
        (
            np.concatenate([long, np.full(n_light, 3.0)]),
            np.concatenate([np.arange(len(long)), len(long) + light]).astype(np.int32),
            np.concatenate([[0], len(long) + np.arange(n_light + 1)]).astype(np.int32),
        ),
        shape=(n_light + 1, d),
    )
    coef = np.concatenate([[1.0], np.full(n_light, 1e-6)])
    model = KernelModel("regression", vectors, coef[np.newaxis], np.zeros(1), 0.125)
    nothing = csr_array((1, d))
    assert Products.of(model, nothing).by_columns == by_columns
    evaluator = Evaluator(approxsvm.compile(model, mode="exact").artifact)
    value, bound = evaluator.evaluate(nothing, VALUES | BOUNDS, "exact")
    with mpmath.workdps(40):
        sq_norm = sum(mpmath.mpf(x) ** 2 for x in long.tolist())
        exact = mpmath.exp(-sq_norm / 8) + n_light * mpmath.mpf(1e-6) * mpmath.exp(-mpmath.mpf(9) / 8)
        assert abs(mpmath.mpf(float(value[0])) - exact) <= 0.2 * float(bound[0])


# --- relative to a row ---


def categories(n_rows: int, seed: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, k, n_rows) for k in (3, 4, 6, 9, 12)])
    return X, (X[:, 0] + X[:, 1] + X[:, 3] // 3 + rng.integers(0, 2, n_rows)) % 3


@pytest.mark.parametrize("n_labels", [2, 3])
def test_standardized_categories(target: str, n_labels: int) -> None:
    X, y = categories(600, 1)
    y = np.minimum(y, n_labels - 1)
    source = make_pipeline(OneHotEncoder(sparse_output=False), StandardScaler(), SVC(C=3.0)).fit(X[:400], y[:400])
    compiled = approxsvm.compile(source[1:], source[0].transform(X[:400]), mode="exact")
    encoded = source[0].transform(X)
    packed = compiled.artifact._sections["support_vectors"]
    assert packed[0] == RELATIVE
    assert (compiled.predict(encoded) == source.predict(X)).all()
    model: Any = read_any(source[2])
    rows = source[1].transform(encoded)
    off = rows + 1e-9 * np.random.default_rng(2).normal(size=rows.shape)  # no value equals the reference's any longer
    bare = approxsvm.compile(source[2], rows[:400], mode="exact")
    assert bare.artifact._sections["support_vectors"][0] == RELATIVE
    mixed = np.where(np.random.default_rng(3).random(rows.shape) < 0.5, rows, off)
    assert_values_are_held(
        model, np.vstack([rows[::9], off[::9], mixed[::9], np.zeros((1, rows.shape[1]))]), Evaluator(bare.artifact)
    )
    certified = approxsvm.compile(source[2], rows[:400], n_centers=16, degree=2)
    assert certified.artifact._sections["support_vectors"][0] == RELATIVE
    for judged in (rows, off, mixed):
        assert (certified.predict(judged) == source[2].predict(judged)).all()
        assert (bare.predict(csr_array(judged)) == source[2].predict(judged)).all()


def test_reference_row() -> None:
    rng = np.random.default_rng(1)
    vectors = np.where(rng.random((500, 30)) < 0.1, rng.normal(size=(500, 30)), 2.5)
    found = packing.reference_row(vectors)
    assert found is not None
    assert (found == 2.5).all()
    assert packing.reference_row(np.where(vectors == 2.5, 0.0, vectors)) is None  # zero needs no reference row
    assert packing.reference_row(rng.normal(size=(500, 30))) is None
    assert packing.reference_row(np.empty((0, 4))) is None
    sparse = csr_array(random_sparse(40, 900, density=0.01, random_state=1))
    assert packing.reference_row(sparse.toarray()) is None

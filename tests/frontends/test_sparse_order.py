"""Sparse matrices with unsorted entries, or with repeated ones, which LIBSVM and some steps do not sum."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_matrix, csr_array, csr_matrix
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA, IncrementalPCA
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, PolynomialFeatures, StandardScaler
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.svm import SVC

import approxsvm
from approxsvm.errors import InputError, ModelFormatError, UnsupportedModelError
from approxsvm.frontends import read_any
from approxsvm.ir.kernel_model import KernelModel

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(90, 6)) * (RNG.random((90, 6)) < 0.6), 2)
Y = X[:, 0] + X[:, 1] > 0


def repeated(rows):
    """Return rows with the same numbers, each stored as two consecutive halves."""
    rows = csr_matrix(rows)
    indices, data = np.repeat(rows.indices, 2), np.repeat(rows.data / 2, 2)
    return csr_matrix((data, indices, 2 * rows.indptr), shape=rows.shape)


def reversed_entries(rows):
    rows = csr_matrix(rows)
    order = np.concatenate([np.arange(*ends)[::-1] for ends in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)])
    return csr_matrix((rows.data[order], rows.indices[order], rows.indptr), shape=rows.shape)


def test_support_vectors_with_repeated_or_unsorted_entries():
    repeats, reverses, odd = (
        machine.fit(rows, Y)
        for machine, rows in ((SVC(kernel="poly"), repeated(X)), (SVC(), csr_matrix(X)), (SVC(), csr_matrix(X)))
    )
    reverses.support_vectors_ = reversed_entries(reverses.support_vectors_)
    for machine in (repeats, reverses):
        with pytest.raises(UnsupportedModelError, match="several entries in one column, or entries out of order"):
            read_any(machine)
    odd._dual_coef_ = odd._dual_coef_[:, ::-1]  # LIBSVM reads them by position
    with pytest.raises(ModelFormatError, match="_dual_coef_ of this SVC has missing entries or entries out of order"):
        read_any(odd)


def test_kernels_by_scikit_learn():
    """Repeated entries contribute the sum of their squares to the squared norm; the order does not matter."""
    ridge = KernelRidge(kernel="rbf", alpha=10.0).fit(repeated(X), Y)
    nystroem = make_pipeline(Nystroem(random_state=0, n_components=20), LogisticRegression()).fit(repeated(X), Y)
    for model in (ridge, nystroem):
        with pytest.raises(ModelFormatError, match=r"several entries in row \d+, column \d+, .*X.sum_duplicates\(\)"):
            read_any(model)
    ridge = KernelRidge(kernel="rbf").fit(reversed_entries(X), Y)
    found = approxsvm.compile(ridge, mode="exact").predict(X)
    assert np.abs(found - ridge.predict(csr_matrix(X))).max() < 1e-9


def test_matrices_that_are_multiplied_are_added_up():
    linear = LogisticRegression().fit(X, Y)
    linear.coef_ = repeated(linear.coef_)
    assert (approxsvm.compile(linear).predict(X) == linear.predict(X)).all()
    pipeline = make_pipeline(SparseRandomProjection(4, random_state=0), SVC()).fit(X, Y)
    pipeline[0].components_ = repeated(pipeline[0].components_)
    assert (approxsvm.compile(pipeline).predict(X) == pipeline.predict(X)).all()


@pytest.mark.parametrize(
    "dense", [PCA(3, svd_solver="arpack"), IncrementalPCA(3), GaussianRandomProjection(3, random_state=0)]
)
def test_steps_that_return_dense_rows_end_the_order_of_entries(dense):
    unsorted = SparseRandomProjection(5, random_state=0)
    pipeline = make_pipeline(unsorted, dense, PolynomialFeatures(2), SVC(gamma=0.01)).fit(csr_matrix(X), Y)
    assert (approxsvm.compile(pipeline).predict(csr_matrix(X)) == pipeline.predict(csr_matrix(X))).all()


def test_a_model_of_ones_own():
    rows = repeated(X)
    with pytest.raises(ModelFormatError, match="support_vectors has several entries in row 0"):
        KernelModel("regression", rows, np.ones((1, 90)), np.zeros(1), 0.1)
    for same in (reversed_entries(X), coo_matrix(X)):
        model = KernelModel("regression", same, np.ones((1, 90)), np.zeros(1), 0.1)
        assert (model.dense_support_vectors(0, 90) == X).all()


@pytest.mark.parametrize("kind", [csr_matrix, csr_array])
def test_rows(kind):
    """Repeated entries are refused because LIBSVM does not sum them; PolynomialFeatures depends on their order."""
    machine = SVC().fit(csr_matrix(X), Y)
    products = make_pipeline(MaxAbsScaler(), PolynomialFeatures(2), SVC()).fit(csr_matrix(X), Y)
    fast, of_products = approxsvm.compile(machine, X), approxsvm.compile(products, X)
    expected = machine.predict(csr_matrix(X)).tolist()
    for model in (fast, approxsvm.Predictor(fast.artifact)):
        with pytest.raises(InputError, match=r"row 0 of X has several entries in one column, .*X.sum_duplicates\(\)"):
            model.predict(kind(repeated(X)))
        for given in (kind(reversed_entries(X)), coo_matrix(repeated(X))):
            assert model.predict(given).tolist() == expected
    for model in (of_products, approxsvm.Predictor(of_products.artifact)):
        with pytest.raises(InputError, match=r"row 0 of X are not in the order of their columns.*X.sort_indices\(\)"):
            model.predict(kind(reversed_entries(X)))
    with pytest.raises(InputError, match="row 0 of X has several entries"):
        approxsvm.compile(machine, repeated(X))


@pytest.mark.parametrize(
    "front",
    [
        make_column_transformer((StandardScaler(with_mean=False), [4, 1]), ("passthrough", [0]), sparse_threshold=1.0),
        SparseRandomProjection(4, random_state=0),
    ],
)
def test_products_of_what_a_step_leaves_out_of_order(front):
    pipeline = make_pipeline(front, PolynomialFeatures(2), LogisticRegression()).fit(csr_matrix(X), Y)
    with pytest.raises(UnsupportedModelError, match="confuses sparse rows whose entries are out of order"):
        approxsvm.compile(pipeline)

"""Certified estimators: bounds, certified rows, rows per stage, and verification."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conftest import random_model
from scipy.sparse import csr_array
from sklearn.datasets import make_classification
from sklearn.svm import SVC, SVR

import approxsvm
from approxsvm.errors import InputError, UnsupportedModelError
from approxsvm.reference.definition import definition_of
from approxsvm.runtime.evaluator import BOUNDS, VALUES


def compile_with_expansion(model, mode="certified", **options):
    """Compile with an expansion even if it is not worthwhile, because test models are small."""
    forced = {} if mode == "exact" else {"degree": 2, "n_centers": 1}
    return approxsvm.compile(model, mode=mode, **(forced | options))


@pytest.fixture(scope="module")
def svc():
    X, y = make_classification(600, 8, n_informative=6, flip_y=0.2, random_state=3)
    return SVC(gamma=0.01).fit(X[:300], y[:300]), X[300:], y[300:]


def test_rows_per_stage_count_every_row_once(svc):
    """Rows in refused or repeated calls are not counted."""
    model, X, _ = svc
    fast = compile_with_expansion(model)
    assert sum(fast.rows_per_stage.values()) == 0
    assert fast.summary.certified_fraction is None
    bad = X.copy()
    bad[-1, 0] = np.nan
    with pytest.raises(InputError):
        fast.predict(bad)
    fast.predict(X)
    fast.predict(csr_array((X[:, ::-1].ravel(), np.tile(np.arange(8)[::-1], len(X)), np.arange(len(X) + 1) * 8)))
    assert sum(fast.rows_per_stage.values()) == 2 * len(X)
    assert fast.summary.certified_fraction == pytest.approx(fast.certified(X).mean())
    approximate = compile_with_expansion(model, mode="approximate")
    approximate.error_bound(X)
    assert approximate.summary.certified_fraction is None


def test_tolerances(svc):
    """Bounds are within the tolerance; by default, a regressor's tolerance is a thousandth of its range."""
    model, X, _ = svc
    svr = SVR(gamma=0.05, C=3.0).fit(X[:150], X[:150, 0] * X[:150, 1])
    for source in (svr, model):
        for tolerance in (1e-2, 1e-6):
            fast = compile_with_expansion(source, tolerance=tolerance)
            assert fast.error_bound(X).max() <= fast.summary.tolerance == tolerance
    spread = np.ptp(svr.predict(svr.support_vectors_))
    assert compile_with_expansion(svr).summary.tolerance == pytest.approx(1e-3 * spread, rel=1e-6)


def test_verify(svc):
    model, X, _ = svc
    result = approxsvm.verify(compile_with_expansion(model), model, X)
    assert result.kept
    assert (result.n_rows, result.label_differences, result.bound_violations) == (len(X), 0, 0)
    assert 0.0 < result.largest_error_to_bound <= 1.0
    assert result.error_quantiles["100%"] <= result.bound_quantiles["100%"]
    assert dict(result.rows())["kept"] == "yes"
    exact = approxsvm.verify(compile_with_expansion(model, mode="exact"), model, X)
    assert (exact.kept, exact.certified_fraction) == (True, None)
    assert dict(exact.rows())["certified fraction"] == "not applicable: every row is exact"
    assert dict(exact.rows())["speed ratio"] == "too few rows to measure" or exact.speed_ratio > 0.0


def test_verify_finds_a_broken_promise(svc):
    model, X, _ = svc
    kernel_model = approxsvm.read_model(model)
    moved = compile_with_expansion(replace(kernel_model, intercept=kernel_model.intercept + 0.5))
    result = approxsvm.verify(moved, model, X)
    assert not result.kept
    assert result.bound_violations > 0
    assert result.label_differences is not None
    assert result.label_differences > 0


def test_verify_refuses_what_cannot_be_compared(svc):
    model, X, _ = svc
    fast = compile_with_expansion(model)
    with pytest.raises(InputError, match="no rows to verify"):
        approxsvm.verify(fast, model, X[:0])
    with pytest.raises(UnsupportedModelError, match="the model has 7 features, but n_features is 8"):
        approxsvm.verify(fast, random_model(0), X)
    with pytest.raises(InputError, match="for regression, but the compiled one for classification"):
        approxsvm.verify(fast, random_model(0, n_features=8, task="regression"), X)
    with pytest.raises(InputError, match=r"the labels \[1, -1\], but the compiled one \[0, 1\]"):
        approxsvm.verify(fast, random_model(0, n_features=8), X)


@pytest.fixture(scope="module")
def many_rows():
    """Return a small model, a compiled model that differs from it, rows for several chunks, and exact values."""
    model = random_model(0, n_sv=6, n_features=3)
    X = np.random.default_rng(1).normal(size=(40_000, 3))
    model = replace(model, intercept=model.intercept - np.median(definition_of(model).values(X)))
    fast = compile_with_expansion(replace(model, intercept=model.intercept + 0.3))
    exact = definition_of(model).values(X)[:, 0]
    return model, fast, X, exact


@pytest.mark.parametrize("given", [np.asarray, csr_array, np.float32])
def test_verify_takes_rows_in_pieces(many_rows, given):
    model, fast, X, _ = many_rows
    rows = given(X)
    exact = definition_of(model).values((rows.toarray() if given is csr_array else rows).astype(float))[:, 0]
    progress: list[float] = []
    result = approxsvm.verify(fast, model, rows, progress=progress.append)
    values, bounds = fast._evaluator.evaluate(fast._rows(rows), VALUES | BOUNDS, "settled")
    assert result.n_rows == sum(result.rows_per_stage.values()) == 40_000
    assert result.label_differences == (fast.predict(rows) != np.where(exact > 0, 1, -1)).sum() > 1000
    assert result.bound_violations == 40_000
    errors = np.abs(values - exact)
    for name, quantile in result.error_quantiles.items():
        np.testing.assert_allclose(quantile, np.quantile(errors, float(name[:-1]) / 100), rtol=1e-9)
    np.testing.assert_allclose(result.bound_quantiles["50%"], np.median(bounds), rtol=1e-2)
    assert progress == sorted(progress)
    assert (len(progress), progress[-1]) == (20, 1.0)


def test_verify_of_many_and_of_some_rows(many_rows, monkeypatch):
    model, fast, X, exact = many_rows
    found = [approxsvm.verify(fast, model, rows, max_rows=3000) for rows in (X, csr_array(X), X.tolist())]
    for result in found:
        assert result.n_rows == 3000
        assert result.label_differences == found[0].label_differences > 50
    assert approxsvm.verify(fast, model, X[:10], max_rows=3000).n_rows == 10
    with pytest.raises(InputError, match="max_rows is 0"):
        approxsvm.verify(fast, model, X, max_rows=0)
    monkeypatch.setattr("approxsvm.analysis.verification._KEPT_ERRORS", 1000)
    result = approxsvm.verify(fast, model, X)
    errors = np.abs(fast._evaluator.evaluate(fast._rows(X), values="settled") - exact)
    assert result.error_quantiles["100%"] == pytest.approx(errors.max())
    np.testing.assert_allclose(result.error_quantiles["90%"], np.quantile(errors[::64], 0.9), rtol=1e-9)
    bad = X.copy()
    bad[35_000, 1] = np.nan
    for rows in (bad, csr_array(bad)):
        with pytest.raises(InputError, match=r"NaN. \(row 35000, column 1\)"):
            approxsvm.verify(fast, model, rows)

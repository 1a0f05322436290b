"""What certified estimators show of their promise: bounds, certified rows, rows per stage, verification."""

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
from approxsvm.reference import decision_values as reference


def compile_with_expansion(model, mode="certified", **options):
    """An expansion, whether it pays or not: models of tests are small."""
    forced = {} if mode == "exact" else {"degree": 2, "n_centers": 1}
    return approxsvm.compile(model, mode=mode, **(forced | options))


@pytest.fixture(scope="module")
def svc():
    X, y = make_classification(600, 8, n_informative=6, flip_y=0.2, random_state=3)
    return SVC(gamma=0.01).fit(X[:300], y[:300]), X[300:], y[300:]


@pytest.mark.parametrize("mode", ["certified", "exact"])
def test_labels_equal_scikit_learns(svc, mode):
    model, X, y = svc
    fast = compile_with_expansion(model, mode=mode)
    for rows in (X, csr_array(X), X[:3]):
        np.testing.assert_array_equal(fast.predict(rows), model.predict(X[: rows.shape[0]]))
    assert fast.score(X, y) == model.score(X, y)
    assert [fast.predict_one(row) for row in X[:20]] == model.predict(X[:20]).tolist()


@pytest.mark.parametrize("mode", ["certified", "approximate", "exact"])
def test_error_bounds_hold_and_certified_rows_are_right(svc, mode):
    model, X, _ = svc
    fast = compile_with_expansion(model, mode=mode)
    exact = -reference.decision_function(approxsvm.read_model(model), X)[:, 0]
    assert (np.abs(fast.decision_function(X) - exact) <= fast.error_bound(X) + 1e-10).all()
    certified = fast.certified(X)
    assert 0.5 < certified.mean() <= 1.0
    assert (fast.predict(X) == model.predict(X))[certified].all()


def test_rows_per_stage_count_every_row_once(svc):
    model, X, _ = svc
    fast = compile_with_expansion(model)
    assert sum(fast.rows_per_stage.values()) == 0
    assert fast.summary.certified_fraction is None
    fast.predict(X)
    fast.decision_function(csr_array(X))
    assert sum(fast.rows_per_stage.values()) == 2 * len(X)
    assert fast.summary.certified_fraction == pytest.approx(fast.certified(X).mean())


def test_refused_and_repeated_calls_are_not_counted(svc):
    model, X, _ = svc
    fast = compile_with_expansion(model)
    bad = X.copy()
    bad[-1, 0] = np.nan
    with pytest.raises(InputError):
        fast.predict(bad)
    unsorted = csr_array((X[:, ::-1].ravel(), np.tile(np.arange(8)[::-1], len(X)), np.arange(len(X) + 1) * 8))
    fast.predict(unsorted)
    assert sum(fast.rows_per_stage.values()) == len(X)


def test_an_approximate_model_claims_no_certified_share(svc):
    model, X, _ = svc
    fast = compile_with_expansion(model, mode="approximate")
    fast.error_bound(X)
    assert fast.summary.certified_fraction is None


@pytest.mark.parametrize("mode", ["certified", "exact"])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-6])
def test_tolerance_of_decision_values_and_regressions(svc, mode, tolerance):
    _, X, _ = svc
    svr = SVR(gamma=0.05, C=3.0).fit(X[:150], X[:150, 0] * X[:150, 1])
    for model, method in ((svr, "predict"), (svc[0], "decision_function")):
        fast = compile_with_expansion(model, mode=mode, tolerance=tolerance)
        assert np.abs(getattr(fast, method)(X) - getattr(model, method)(X)).max() <= tolerance
        assert fast.error_bound(X).max() <= tolerance
        assert fast.summary.tolerance == tolerance


def test_a_regression_keeps_to_a_thousandth_of_its_range_by_default(svc):
    _, X, _ = svc
    svr = SVR(gamma=0.05, C=3.0).fit(X, X[:, 0] * X[:, 1])
    fast = compile_with_expansion(svr)
    spread = np.ptp(svr.predict(svr.support_vectors_))
    assert fast.summary.tolerance == pytest.approx(1e-3 * spread, rel=1e-6)
    assert np.abs(fast.predict(X) - svr.predict(X)).max() <= fast.summary.tolerance


def test_values_do_not_depend_on_the_number_of_threads(svc):
    model, X, _ = svc
    rows = np.tile(X, (40, 1))
    for mode in ("certified", "exact"):
        fast = compile_with_expansion(model, mode=mode)
        one = fast.decision_function(rows)
        for n_jobs in (2, 5, 64):
            np.testing.assert_array_equal(fast.set_params(n_jobs=n_jobs).decision_function(rows), one)


def test_verify(svc):
    model, X, _ = svc
    result = approxsvm.verify(compile_with_expansion(model), model, X)
    assert result.kept
    assert (result.n_rows, result.label_differences, result.bound_violations) == (len(X), 0, 0)
    assert 0.0 < result.largest_error_to_bound <= 1.0
    assert result.error_quantiles["100%"] <= result.bound_quantiles["100%"]
    assert dict(result.rows())["kept"] == "yes"


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
    with pytest.raises(UnsupportedModelError, match="the model has 7 features, but 8 were asked for"):
        approxsvm.verify(fast, random_model(0), X)
    with pytest.raises(InputError, match="for regression, but the compiled one for classification"):
        approxsvm.verify(fast, random_model(0, n_features=8, task="regression"), X)
    with pytest.raises(InputError, match=r"the labels \[1, -1\], but the compiled one \[0, 1\]"):
        approxsvm.verify(fast, random_model(0, n_features=8), X)


def test_predict_one_says_what_it_takes(svc):
    model, X, _ = svc
    fast = compile_with_expansion(model)
    assert fast.predict_one(X[0].tolist()) == fast.predict_one(X[0])
    with pytest.raises(InputError, match="the row is not an array of numbers"):
        fast.predict_one(["red"] * 8)
    odd = np.frombuffer(b"x" + X[0].tobytes(), np.uint8)[1:].view(np.float64)
    with pytest.raises(InputError, match="C-contiguous, aligned"):
        fast.predict_one(odd)


@pytest.fixture
def many_rows():
    """A small model that moved after it was compiled, more rows than are compared at a time, and what is wrong."""
    model = random_model(0, n_sv=6, n_features=3)
    X = np.random.default_rng(1).normal(size=(40_000, 3))
    model = replace(model, intercept=model.intercept - np.median(reference.decision_function(model, X)))
    fast = compile_with_expansion(replace(model, intercept=model.intercept + 0.3))
    exact = reference.decision_function(model, X)[:, 0]
    return model, fast, X, exact


@pytest.mark.parametrize("given", [np.asarray, csr_array, np.float32])
def test_verify_takes_rows_in_pieces(many_rows, given):
    model, fast, X, _ = many_rows
    rows = given(X)
    exact = reference.decision_function(model, (rows.toarray() if given is csr_array else rows).astype(float))[:, 0]
    told: list[float] = []
    result = approxsvm.verify(fast, model, rows, progress=told.append)
    values, bounds, _ = fast._evaluate(rows, bounds=True, values="settled")
    assert result.n_rows == sum(result.rows_per_stage.values()) == 40_000
    assert result.label_differences == (fast.predict(rows) != np.where(exact > 0, 1, -1)).sum() > 1000
    assert result.bound_violations == 40_000
    errors = np.abs(values - exact)
    for name, quantile in result.error_quantiles.items():
        np.testing.assert_allclose(quantile, np.quantile(errors, float(name[:-1]) / 100), rtol=1e-9)
    np.testing.assert_allclose(result.bound_quantiles["50%"], np.median(bounds), rtol=1e-2)
    assert told == sorted(told)
    assert (len(told), told[-1]) == (20, 1.0)


def test_quantiles_of_more_errors_than_are_kept(many_rows, monkeypatch):
    model, fast, X, exact = many_rows
    monkeypatch.setattr("approxsvm.reports.verification._KEPT_ERRORS", 1000)
    result = approxsvm.verify(fast, model, X)
    errors = np.abs(fast._evaluate(X, values="settled") - exact)
    assert result.error_quantiles["100%"] == pytest.approx(errors.max())
    spread = errors[::64]
    for name in ("50%", "90%", "99%"):
        np.testing.assert_allclose(result.error_quantiles[name], np.quantile(spread, float(name[:-1]) / 100), rtol=1e-9)


def test_verify_of_some_rows(many_rows):
    model, fast, X, _ = many_rows
    found = [approxsvm.verify(fast, model, rows, max_rows=3000) for rows in (X, X, csr_array(X), X.tolist())]
    for result in found:
        assert result.n_rows == 3000
        assert result.label_differences == found[0].label_differences > 50
    assert approxsvm.verify(fast, model, X[:10], max_rows=3000).n_rows == 10
    with pytest.raises(InputError, match="max_rows is 0"):
        approxsvm.verify(fast, model, X, max_rows=0)


def test_verify_names_rows_by_their_place_among_all(many_rows):
    model, fast, X, _ = many_rows
    X[35_000, 1] = np.nan
    for rows in (X, csr_array(X)):
        with pytest.raises(InputError, match=r"NaN. \(row 35000, column 1\)"):
            approxsvm.verify(fast, model, rows)


def test_an_exact_artifact_has_nothing_to_certify(svc):
    model, X, _ = svc
    result = approxsvm.verify(compile_with_expansion(model, mode="exact"), model, X)
    assert result.kept
    assert result.certified_fraction is None
    assert dict(result.rows())["certified fraction"] == "not applicable: every row is exact"
    assert "NumPy" in dict(result.rows())["speed ratio"]


def test_what_is_certified_does_not_depend_on_other_rows():
    """Rows at the edge of what the first stage proves, found by bisection: in a part of a batch as in all of it."""
    X, y = make_classification(400, 8, n_informative=5, n_redundant=2, class_sep=0.7, random_state=2)
    fast = approxsvm.compile(SVC(gamma=0.1, C=100).fit(X, y), X, degree=2, n_centers=1)
    certified, rng = fast.certified(X), np.random.default_rng(0)
    inside = X[rng.choice(np.flatnonzero(certified), 200)]
    outside = X[rng.choice(np.flatnonzero(~certified), 200)]
    for _ in range(60):
        middle = 0.5 * (inside + outside)
        proven = fast.certified(middle)[:, np.newaxis]
        inside, outside = np.where(proven, middle, inside), np.where(proven, outside, middle)
    rows = np.concatenate([inside, outside])
    expected = fast.certified(rows)
    for n in (1, 5, 17, 50):
        parts = [fast._evaluator.answers(rows[i : i + n], ["certified"])["certified"] for i in range(0, len(rows), n)]
        np.testing.assert_array_equal(np.concatenate(parts), expected)

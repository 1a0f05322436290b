"""Linear models of several functions behind random Fourier features: a label for each, or a target for each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from zoo import oracle

import approxsvm
from approxsvm.errors import InputError, ModelFormatError
from approxsvm.model.cosine_model import CosineModel
from approxsvm.model.outputs import Outputs, PairwiseSigmoid

EACH = Outputs(label_rule="scores", decision_shape="each")


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:300] / 16.0, np.array(list("jihgfedcba"))[y[:300]]


def fourier(X, y, linear, sampler=None, *before):
    sampler = sampler or RBFSampler(gamma=0.1, n_components=203, random_state=0)
    return make_pipeline(*before, sampler, linear).fit(X[::2], y[::2])


def random_model(rng, n_functions, d=5, n=37, task="classification", **options):
    several = task == "classification"
    return CosineModel(
        task,
        frequencies=rng.normal(size=(n, d)),
        phases=rng.uniform(-6.0, 6.0, n),
        coef=rng.normal(size=(n_functions, n)) * 2.0 ** rng.integers(-3, 4, (n_functions, 1)),
        intercept=rng.normal(size=n_functions),
        labels=rng.permutation(n_functions) if several else np.empty(0),
        outputs=EACH if several else Outputs(),
        value_error=np.zeros(n_functions),
        **options,
    )


@pytest.mark.parametrize(("n_functions", "task"), [(3, "classification"), (4, "regression"), (12, "classification")])
def test_values_are_within_their_bounds(n_functions, task, target):
    rng = np.random.default_rng(n_functions)
    model = random_model(rng, n_functions, task=task)
    rows = rng.normal(size=(40, 5)) * 10.0 ** rng.uniform(-3, 4, (40, 1))
    fast = approxsvm.compile(model)
    order = np.argsort(model.labels) if task == "classification" else np.arange(n_functions)
    for part in (rows, sp.csr_array(rows)):
        for values in ("settled", "exact"):
            found = fast._evaluator.evaluate(part, approxsvm.evaluator.VALUES | approxsvm.evaluator.BOUNDS, values)
            assert oracle.holds(model, rows, *found).all()
    if task == "classification":
        winners = oracle.decision_values(model, rows)[0].argmax(axis=1)
        np.testing.assert_array_equal(fast.predict(rows), model.labels[winners])
        assert (fast.decision_function(rows).argmax(axis=1) == np.argsort(order)[winners]).all()


def test_the_first_of_equal_values_wins(target):
    """Functions that are the same, or differ by less than any bound: no bound says which, and the first has it."""
    rng = np.random.default_rng(0)
    model = random_model(rng, 4)
    coef, intercept = model.coef.copy(), model.intercept.copy()
    coef[1:3], intercept[1:3] = coef[1], 100.0
    tied = replace(model, coef=coef, intercept=intercept)
    rows = rng.normal(size=(70, 5))
    fast = approxsvm.compile(tied)
    for part in (rows, rows[:1], sp.csr_array(rows)):
        assert (fast.predict(part) == tied.labels[1]).all()
        assert not fast.certified(part).any()
    assert fast.rows_per_stage["definition"] > 0
    intercept[2] = np.nextafter(100.0, 200.0)
    closer = replace(tied, intercept=intercept)
    assert (approxsvm.compile(closer).predict(rows) == closer.labels[2]).mean() > 0.9  # what rounding does to the sum
    intercept[2] = 100.0 + 1e-11
    assert (approxsvm.compile(replace(tied, intercept=intercept)).predict(rows) == tied.labels[2]).all()


def test_what_does_not_fit_is_named(digits):
    X, y = digits
    fast = approxsvm.compile(fourier(X, y, LinearSVC()))
    assert not hasattr(fast, "predict_proba")
    with pytest.raises(
        AttributeError, match=r"^this CompiledSVC has no predict_proba: .* CalibratedClassifierCV\(source, en"
    ):
        fast.predict_proba(X)
    with pytest.raises(InputError, match="expected"):
        approxsvm.Predictor(fast.artifact).predict(X[:, :3])
    model = random_model(np.random.default_rng(0), 3)
    with pytest.raises(ModelFormatError, match="a classification model of 3 functions cannot have 2 labels"):
        replace(model, labels=np.arange(2))
    with pytest.raises(ModelFormatError, match="decision_shape is 'ovr' of 3 functions"):
        replace(model, outputs=Outputs(label_rule="scores", decision_shape="ovr"))
    with pytest.raises(ModelFormatError, match="give neither votes nor sigmoids of pairs"):
        replace(model, outputs=Outputs(decision_shape="each"))
    with pytest.raises(ModelFormatError, match="give neither votes nor sigmoids of pairs"):
        replace(model, outputs=replace(EACH, probability=PairwiseSigmoid(np.ones(3), np.ones(3))))
    with pytest.raises(ModelFormatError, match=r"coef has shape \(2, 37\), expected \(3, 37\)"):
        replace(model, coef=model.coef[:2])
    with pytest.raises(ModelFormatError, match=r"intercept has shape \(2,\), expected \(3,\)"):
        replace(model, intercept=np.zeros(2))

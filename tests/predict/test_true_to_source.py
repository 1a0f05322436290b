"""Guarantees beyond kernels: steps with huge offsets, outliers, tolerances, and faults detected by verify."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import sklearn.svm._base
from scipy.sparse import csr_array
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, SVR

import approxsvm
from approxsvm import KernelModel
from approxsvm.errors import InputError
from approxsvm.frontends import read_any
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.outputs import DensityMarks, Outputs
from approxsvm.runtime.evaluator import PROBABILITIES, PROBABILITY_BOUNDS

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def data(offset, n=240, d=4):
    rng = np.random.default_rng(0)
    centered = rng.normal(size=(n, d))
    return centered + offset, ((centered**2).sum(axis=1) > d).astype(int)


def near_the_boundary(source, X, n=60):
    """Return rows on both sides of the source's boundary, as close as bisection in float64 gets."""
    rng = np.random.default_rng(1)
    first = source.predict(X) == source.predict(X[:1])[0]
    a, b = (rng.choice(X[side], size=n) for side in (first, ~first))
    for _ in range(70):
        middle = (a + b) / 2
        on_first = (source.predict(middle) == source.predict(X[:1])[0])[:, np.newaxis]
        a, b = np.where(on_first, middle, a), np.where(on_first, b, middle)
    return np.vstack([a, b])


def test_a_tolerance_that_scaling_cannot_keep_is_refused_when_compiling():
    X, _ = data(1e9)
    source = make_pipeline(MinMaxScaler(), SVR(C=10)).fit(X, np.sin((X - 1e9).sum(axis=1)))
    for sample in (X, None):
        for mode in ("certified", "exact"):
            with pytest.raises(ValueError, match=r"cannot promise less than .* for this model and the steps before it"):
                approxsvm.compile(source, sample, mode=mode, tolerance=2.1e-7)
    fast = approxsvm.compile(source, X, tolerance=1e-3)
    assert (np.abs(fast.predict(X) - source.predict(X)) <= 1e-3).all()
    assert (fast.error_bound(X) <= 1e-3).all()


def test_a_row_that_misses_its_tolerance_is_refused_by_its_number():
    """Nothing in the sample hints at a row that loses all its digits in scaling but lands among the support vectors."""
    X, _ = data(0.0)
    source = make_pipeline(PCA(3), SVR(C=10)).fit(X, np.sin(X.sum(axis=1)))
    source[0].components_[:] = [[1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
    source[-1].fit(source[0].transform(X), np.sin(X.sum(axis=1)))
    source.steps.insert(0, ("scale", StandardScaler().fit(X)))
    fast = approxsvm.compile(source, X, tolerance=1e-7)
    lost = source[0].inverse_transform(np.array([[1e13, 1e13, 0.0, 0.0]]))
    rows = np.vstack([X[:5], lost, X[5:9]])
    with pytest.raises(InputError, match=r"row 5: its value is certain to .* not to the tolerance of 1e-07"):
        fast.predict(rows)
    far = np.full((1, X.shape[1]), 1e18) * [1.0, 1.0, 1.0, -1.0]
    assert fast.error_bound(far)[0] <= 1e-7  # all kernel values vanish there, regardless of the exact distance


def answering_otherwise(monkeypatch, change):
    """Make scikit-learn's copy of LIBSVM predict something else, at a level that no reader can see."""
    predict = sklearn.svm._base.libsvm.predict
    stand_in = SimpleNamespace(**vars(sklearn.svm._base.libsvm))
    stand_in.predict = lambda *given, **named: change(predict(*given, **named))
    monkeypatch.setattr(sklearn.svm._base, "libsvm", stand_in)


def test_verify_notices_what_the_source_would_not_say(monkeypatch):
    X, y = data(3.0)
    source = make_pipeline(StandardScaler(), SVC()).fit(X, y)
    fast = approxsvm.compile(source, X)
    other = make_pipeline(StandardScaler(), source[-1])
    other[0].fit(X + 0.05)
    broken = approxsvm.verify(fast, other, X)
    assert broken.bound_violations > 0
    assert not broken.kept
    regressor = make_pipeline(StandardScaler(), SVR()).fit(X, np.sin(X.sum(axis=1)))
    of_values = approxsvm.compile(regressor, X)
    assert approxsvm.verify(of_values, regressor, X).near_ties == 0
    answering_otherwise(monkeypatch, lambda label: 1 - label)
    assert approxsvm.verify(fast, source, X).label_differences == len(X)
    monkeypatch.undo()
    answering_otherwise(monkeypatch, lambda value: value + 5.0)
    assert approxsvm.verify(of_values, regressor, X).bound_violations == len(X)


def test_an_outlier_in_the_sample_changes_no_promise():
    X, _ = data(0.0)
    y = np.sin(X.sum(axis=1))
    with_outlier = np.vstack([np.full((1, X.shape[1]), 1e15), X])
    for step in (MinMaxScaler(), make_pipeline(StandardScaler(), PCA(3))):
        source = make_pipeline(step, SVR(C=10)).fit(X, y)
        fast, plain = approxsvm.compile(source, with_outlier), approxsvm.compile(source, X)
        assert fast.summary.tolerance == plain.summary.tolerance < 0.01
        assert (np.abs(fast.predict(X) - source.predict(X)) <= 1.01 * plain.summary.tolerance).all()
        approxsvm.compile(source, with_outlier, tolerance=1e-3).predict(X)


def test_bounds_never_exceed_what_kernels_can_do():
    X, y = data(0.0)
    fast = approxsvm.compile(make_pipeline(StandardScaler(), SVC(gamma=1e50)).fit(X, y), X)
    limit = 1.01 * np.abs(fast.artifact.dual_coef()).sum()
    for rows in (X, np.full((1, 4), 1e160), np.full((1, 4), 1e200)):
        assert (fast.error_bound(rows) <= limit).all()


def verified(source, X, sample=None):
    return approxsvm.verify(approxsvm.compile(source, X if sample is None else sample), source, X)


def test_verify_survives_sources_that_overwrite_nest_and_are_sparse():
    X, y = data(5.0)
    assert verified(make_pipeline(StandardScaler(copy=False), SVC()).fit(X.copy(), y), X).kept
    map_ = Nystroem(gamma=0.1, n_components=4, random_state=0)
    nested = make_pipeline(make_pipeline(StandardScaler(), map_), "passthrough", LogisticRegression())
    assert verified(nested.fit(X, y), X).kept
    sparse = csr_array(np.where(np.abs(X) > 5, X, 0.0))
    for source in (SVC(), make_pipeline(StandardScaler(with_mean=False), SVC())):
        assert verified(source.fit(sparse.toarray(), y), sparse).kept


def test_verify_knows_what_the_source_cannot_tell():
    X, y = data(1e4)
    source = make_pipeline(Nystroem(gamma=0.1, n_components=20, random_state=0), LogisticRegression()).fit(X, y)
    assert verified(source, np.vstack([X, near_the_boundary(source, X)]), sample=X).kept


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (lambda X, y: GaussianProcessRegressor(RBF(1e200), optimizer=None).fit(X, y), "length scale.*1e\\+200"),
        (lambda X, y: GaussianProcessRegressor(RBF(1e-200), optimizer=None).fit(X, y), "length scale.*1e-200"),
        (
            lambda X, y: TransformedTargetRegressor(SVR(), transformer=MinMaxScaler((0, 1e-5))).fit(X, y * 1e305),
            "beyond the range|too close to the limits of float64",
        ),
    ],
)
def test_numbers_beyond_float64_are_refused_by_name(source, message):
    X, _ = data(0.0, n=40)
    with pytest.raises(approxsvm.UnsupportedModelError, match=message):
        approxsvm.compile(source(X, np.sin(X.sum(axis=1))))


def test_verify_of_polynomials_allows_for_what_their_sources_lose():
    X, _ = data(100.0)
    y = np.sin((X - 100.0).sum(axis=1))
    for source in (KernelRidge(), KernelRidge(kernel="poly", degree=2), SVR(kernel="poly", degree=2)):
        assert verified(source.fit(X, y), X).kept, source


def test_an_error_that_nobody_knows_is_in_the_bound():
    """A clipped feature's error is 0, and its gain overflows float64: 0 times infinity must not become 0."""
    third = 1 / 3.0
    map_ = InputMap.identity(2).then_affine(multiply=[1, third], low=[0, -np.inf])
    map_ = map_.then_affine(subtract=[0, (1e9 + third) / 3]).then_affine(multiply=[1e200, 1], divide=[1e-200, 1e-7])
    model = KernelModel(
        "classification", np.zeros((1, 2)), [[1.0]], [-0.5], 1.0, labels=np.array([1, -1]), input_map=map_
    )
    rows = np.array([[-5.0, 1e9 + third + k * 1e-7] for k in range(4)])
    for mode in ("exact", "certified"):
        fast = approxsvm.compile(model, mode=mode)
        assert (fast.error_bound(rows) > 0.1).all()
        assert not fast.certified(rows).any()


def test_probabilities_of_inliers_are_within_their_bounds():
    rng = np.random.default_rng(0)
    marks = DensityMarks(np.linspace(-0.3, 0.3, 10))
    X = rng.normal(size=(40, 2))
    model = KernelModel("one_class", X, np.full((1, 40), 0.05), [-0.6], 0.3, outputs=Outputs(probability=marks))
    rows = rng.normal(size=(500, 2))
    exact = approxsvm.Predictor(approxsvm.compile(model, mode="exact").artifact)
    rough = approxsvm.Predictor(approxsvm.compile(model, mode="approximate", degree=1).artifact)
    wanted = PROBABILITIES | PROBABILITY_BOUNDS
    (truth, none), (shares, off) = (p._evaluator.evaluate(rows, wanted) for p in (exact, rough))
    assert (np.abs(shares - truth) <= off + none).all()
    assert none.max() < 0.2
    assert (np.abs(shares - truth) > 0).any()


def test_labels_by_scores_need_no_tolerance_that_values_break():
    X, _ = data(0.0)
    source = make_pipeline(StandardScaler(), PCA(3), SVC(C=10)).fit(X, np.digitize(X.sum(axis=1), [-1, 1]))
    source[1].components_[:] = [[1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
    lost = source[0].inverse_transform(np.array([[1e13, 1e13, 0.0, 0.0]]))
    for rule in ("votes", "scores"):
        model = read_any(source)
        model = replace(model, outputs=replace(model.outputs, label_rule=rule))
        fast = approxsvm.compile(model, X, tolerance=1e-7)
        assert fast.predict(lost).shape == (1,)
        with pytest.raises(InputError, match="not to the tolerance of 1e-07"):
            fast.decision_function(lost)

"""Attacks on the promise where models are more than kernels: steps with huge offsets, computed coefficients, outliers.

Judges are the source's own predictions, and its function of its parameters in exact or 50-digit arithmetic.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
import sklearn.svm._base
from scipy.sparse import csr_array
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import SVC, SVR

import approxsvm
from approxsvm import KernelModel
from approxsvm.errors import InputError
from approxsvm.evaluator import PROBABILITIES, PROBABILITY_BOUNDS
from approxsvm.model.input_map import InputMap
from approxsvm.model.outputs import DensityMarks, Outputs
from approxsvm.readers import read_any

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def data(offset, n=240, d=4):
    rng = np.random.default_rng(0)
    centered = rng.normal(size=(n, d))
    return centered + offset, ((centered**2).sum(axis=1) > d).astype(int)


def near_the_boundary(source, X, n=60):
    """Rows on both sides of the source's boundary, as close as float64 halves them."""
    rng = np.random.default_rng(1)
    first = source.predict(X) == source.predict(X[:1])[0]
    a, b = (rng.choice(X[side], size=n) for side in (first, ~first))
    for _ in range(70):
        middle = (a + b) / 2
        on_first = (source.predict(middle) == source.predict(X[:1])[0])[:, np.newaxis]
        a, b = np.where(on_first, middle, a), np.where(on_first, b, middle)
    return np.vstack([a, b])


def exact_kernel_sum(rows, vectors, coefficients, intercept, gamma):
    """sum_i a_i exp(-gamma ||x_i - z||^2) + intercept, rows and vectors of mpf, in 50 digits."""
    values = []
    with mpmath.workdps(50):
        for z in rows:
            total = mpmath.mpf(intercept)
            for x, a in zip(vectors, coefficients, strict=True):
                total += a * mpmath.exp(-gamma * sum((p - q) ** 2 for p, q in zip(x, z, strict=True)))
            values.append(total)
    return values


def numbers(array):
    return [[mpmath.mpf(v) for v in row] for row in np.asarray(array, np.float64).tolist()]


def column(array):
    return [mpmath.mpf(v) for v in np.ravel(np.asarray(array, np.float64)).tolist()]


OFFSET_STEPS = {
    "robust, standard, 1.7e12": ([RobustScaler(), StandardScaler()], 1.7e12),
    "robust, standard, 1e15": ([RobustScaler(), StandardScaler()], 1e15),
    "range, 1e9": ([MinMaxScaler()], 1e9),
    "range, clipped, 1e12": ([MinMaxScaler(clip=True)], 1e12),
    "standard, 1e9": ([StandardScaler()], 1e9),
    "largest, standard, 1e7": ([MaxAbsScaler(), StandardScaler()], 1e7),
}


@pytest.mark.parametrize("name", OFFSET_STEPS)
@pytest.mark.parametrize("mode", ["certified", "exact"])
def test_labels_are_the_sources_own_whatever_the_offset(name, mode):
    steps, offset = OFFSET_STEPS[name]
    X, y = data(offset)
    source = make_pipeline(*steps, SVC(C=10)).fit(X, y)
    fast = approxsvm.compile(source, X, mode=mode)
    rows = near_the_boundary(source, X)
    np.testing.assert_array_equal(fast.predict(rows), source.predict(rows))
    svc, mapped = source[-1], source[:-1].transform(rows)
    exact = np.exp(-svc._gamma * ((mapped[:, None] - svc.support_vectors_) ** 2).sum(-1)) @ svc._dual_coef_[0]
    exact += svc._intercept_[0]
    assert (
        np.abs(-fast.decision_function(rows) - exact) <= fast.error_bound(rows) + 1e-13 * np.abs(svc._dual_coef_).sum()
    ).all()
    assert approxsvm.verify(fast, source, np.vstack([X, rows])).kept


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e9])
@pytest.mark.parametrize("step", [StandardScaler(), MinMaxScaler(), RobustScaler()], ids=lambda s: type(s).__name__)
def test_bounds_hold_for_the_real_numbers_behind_scalers(step, offset):
    X, _ = data(offset, n=60)
    target = np.sin((X - offset).sum(axis=1))
    source = make_pipeline(step, SVR(C=3, epsilon=0.01)).fit(X, target)
    fast = approxsvm.compile(source, X)
    rows, svr = X[:12] + 0.3, source[-1]
    with mpmath.workdps(50):
        x = numbers(rows)
        if isinstance(step, MinMaxScaler):
            scale, shift = column(step.scale_), column(step.min_)
            mapped = [[v * s + t for v, s, t in zip(row, scale, shift, strict=True)] for row in x]
        else:
            middle = column(step.mean_ if isinstance(step, StandardScaler) else step.center_)
            scale = column(step.scale_)
            mapped = [[(v - m) / s for v, m, s in zip(row, middle, scale, strict=True)] for row in x]
    coefficients, gamma = column(svr._dual_coef_), mpmath.mpf(float(svr._gamma))
    exact = exact_kernel_sum(mapped, numbers(svr.support_vectors_), coefficients, float(svr._intercept_[0]), gamma)
    bounds = fast.error_bound(rows)
    for value, bound, true in zip(fast.predict(rows), bounds, exact, strict=True):
        assert abs(mpmath.mpf(float(value)) - true) <= bound
    assert (bounds <= fast.summary.tolerance).all()


def test_a_tolerance_that_scaling_cannot_keep_is_refused_when_compiling():
    X, _ = data(1e9)
    source = make_pipeline(MinMaxScaler(), SVR(C=10)).fit(X, np.sin((X - 1e9).sum(axis=1)))
    for sample in (X, None):
        for mode in ("certified", "exact"):
            with pytest.raises(ValueError, match=r"cannot promise less than .* for this model and the steps in front"):
                approxsvm.compile(source, sample, mode=mode, tolerance=2.1e-7)
    fast = approxsvm.compile(source, X, tolerance=1e-3)
    assert (np.abs(fast.predict(X) - source.predict(X)) <= 1e-3).all()
    assert (fast.error_bound(X) <= 1e-3).all()


def test_a_row_that_misses_its_tolerance_is_refused_by_its_number():
    """The sample says nothing of a row whose scaling loses everything, and that yet falls among the support vectors."""
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
    assert fast.error_bound(far)[0] <= 1e-7  # all kernels vanish there, however far it is exactly


def answering_otherwise(monkeypatch, change):
    """Let scikit-learn's copy of LIBSVM predict something else, below all that a reader can see."""
    predict = sklearn.svm._base.libsvm.predict
    stand_in = SimpleNamespace(**vars(sklearn.svm._base.libsvm))
    stand_in.predict = lambda *given, **named: change(predict(*given, **named))
    monkeypatch.setattr(sklearn.svm._base, "libsvm", stand_in)


def test_verify_notices_what_the_source_would_not_say():
    X, y = data(3.0)
    source = make_pipeline(StandardScaler(), SVC()).fit(X, y)
    fast = approxsvm.compile(source, X)
    assert approxsvm.verify(fast, source, X).kept
    other = make_pipeline(StandardScaler(), source[-1])
    other[0].fit(X + 0.05)
    broken = approxsvm.verify(fast, other, X)
    assert broken.bound_violations > 0
    assert not broken.kept
    with pytest.MonkeyPatch.context() as context:  # its own word counts
        answering_otherwise(context, lambda label: 1 - label)
        assert approxsvm.verify(fast, source, X).label_differences == len(X)


def gaussian_process_value(source, row):
    """_y_train_mean + _y_train_std kernel_(row, X_train_) alpha_ over the real numbers."""
    kernel = source.kernel_
    scale, constant, rbf = mpmath.mpf(1), mpmath.mpf(0), kernel
    if hasattr(kernel, "k1"):
        scale = mpmath.mpf(float(kernel.k1.k1.constant_value))
        rbf, constant = kernel.k1.k2, mpmath.mpf(float(getattr(kernel.k2, "constant_value", 0.0)))
    with mpmath.workdps(50):
        lengths = column(np.broadcast_to(rbf.length_scale, source.X_train_.shape[1]))
        total = mpmath.mpf(0)
        for x, a in zip(numbers(source.X_train_), column(source.alpha_), strict=True):
            sq = sum(((p - q) / h) ** 2 for p, q, h in zip(x, column(row), lengths, strict=True))
            total += a * (scale * mpmath.exp(-sq / 2) + constant)
        return column(source._y_train_mean)[0] + column(source._y_train_std)[0] * total


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize(
    "kernel",
    [
        1.7 * RBF(1.3) + ConstantKernel(5e3),
        0.3 * RBF(0.9) + WhiteKernel(1e-3),
        RBF([0.7, 1.1, 2.3, 0.9]),
        2.0 * RBF([0.7, 1.1, 2.3, 0.9]) + ConstantKernel(10.0),
    ],
    ids=["constant", "noise", "anisotropic", "both"],
)
def test_bounds_of_gaussian_processes(kernel, normalize, offset):
    X, _ = data(offset, n=50)
    y = np.sin((X - offset).sum(axis=1)) + 0.1 * (X - offset)[:, 0]
    source = GaussianProcessRegressor(kernel, alpha=1e-6, optimizer=None, normalize_y=normalize).fit(X, y)
    for mode in ("certified", "exact"):
        fast = approxsvm.compile(source, X, mode=mode)
        rows = X[:8] + 0.07
        bounds = fast.error_bound(rows)
        assert (bounds <= fast.summary.tolerance).all()
        for row, value, bound in zip(rows, fast.predict(rows), bounds, strict=True):
            assert abs(mpmath.mpf(float(value)) - gaussian_process_value(source, row)) <= bound


@pytest.mark.parametrize(
    "final", [Ridge(alpha=1e-6), LogisticRegression(C=1e4, max_iter=2000)], ids=["ridge", "logistic"]
)
@pytest.mark.parametrize("n_components", [10, 60])
def test_bounds_of_nystroem(final, n_components):
    X, y = data(0.0, n=120)
    source = make_pipeline(StandardScaler(), Nystroem(gamma=0.05, n_components=n_components, random_state=0), final)
    source.fit(X, y)
    map_, rows = source[1], X[:8] + 0.01
    fast = approxsvm.compile(source, X, mode="exact")
    with mpmath.workdps(50):
        coefficients = column(final.coef_)
        normalization = numbers(map_.normalization_)
        dual = [sum(normalization[j][i] * c for j, c in enumerate(coefficients)) for i in range(n_components)]
    mapped = [column(row) for row in source[0].transform(rows)]
    exact = exact_kernel_sum(
        mapped, numbers(map_.components_), dual, float(np.ravel(final.intercept_)[0]), mpmath.mpf(0.05)
    )
    given = fast.predict(rows) if isinstance(final, Ridge) else fast.decision_function(rows)
    for value, bound, true in zip(given, fast.error_bound(rows), exact, strict=True):
        assert abs(mpmath.mpf(float(value)) - true) <= bound


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler((0, 1e-3)), MaxAbsScaler(), RobustScaler()])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_bounds_of_restored_targets(scaler, kernel):
    X, _ = data(0.0, n=80)
    y = 1e4 + 300 * np.sin(X.sum(axis=1))
    regressor = KernelRidge(kernel=kernel, gamma=0.1, degree=2, alpha=1e-3)
    source = TransformedTargetRegressor(regressor, transformer=scaler).fit(X, y)
    fast = approxsvm.compile(source, X, mode="exact")
    rows, inner, back = X[:6] + 0.1, source.regressor_, source.transformer_
    for row, value, bound in zip(rows, fast.predict(rows), fast.error_bound(rows), strict=True):
        with mpmath.workdps(50):
            total, gamma = mpmath.mpf(0), mpmath.mpf(0.1)
            for x, a in zip(numbers(inner.X_fit_), column(inner.dual_coef_), strict=True):
                product = sum(p * q for p, q in zip(x, column(row), strict=True))
                sq = sum((p - q) ** 2 for p, q in zip(x, column(row), strict=True))
                kernels = {"rbf": mpmath.exp(-gamma * sq), "linear": product, "poly": (gamma * product + 1) ** 2}
                total += a * kernels[kernel]
            scale = mpmath.mpf(float(back.scale_[0]))
            if isinstance(back, MinMaxScaler):
                total = (total - mpmath.mpf(float(back.min_[0]))) / scale
            else:
                middle = {StandardScaler: "mean_", RobustScaler: "center_"}.get(type(back))
                total = total * scale + (mpmath.mpf(float(getattr(back, middle)[0])) if middle else 0)
            assert abs(mpmath.mpf(float(value)) - total) <= bound


def test_one_row_does_not_change_the_bounds_of_others():
    X, y = data(0.0)
    source = make_pipeline(StandardScaler(), PCA(3), SVC()).fit(X, y)
    fast = approxsvm.compile(source, X)
    alone = fast.error_bound(X)
    outlier = np.vstack([X, np.full((1, X.shape[1]), 1e18)])
    np.testing.assert_array_equal(fast.error_bound(outlier)[: len(X)], alone)
    np.testing.assert_array_equal(fast.certified(outlier)[: len(X)], fast.certified(X))
    clipped = approxsvm.compile(make_pipeline(MinMaxScaler(clip=True), SVC()).fit(X, y), X)
    assert clipped.error_bound(outlier)[-1] < 1.0


# What an independent review found.


def test_an_outlier_in_the_sample_changes_no_promise():
    X, _ = data(0.0)
    y = np.sin(X.sum(axis=1))
    with_outlier = np.vstack([np.full((1, X.shape[1]), 1e15), X])
    for step in (StandardScaler(), MinMaxScaler(), RobustScaler(), make_pipeline(StandardScaler(), PCA(3))):
        source = make_pipeline(step, SVR(C=10)).fit(X, y)
        fast, plain = approxsvm.compile(source, with_outlier), approxsvm.compile(source, X)
        assert fast.summary.tolerance == plain.summary.tolerance < 0.01
        assert (np.abs(fast.predict(X) - source.predict(X)) <= 1.01 * plain.summary.tolerance).all()
        approxsvm.compile(source, with_outlier, tolerance=1e-3).predict(X)


def test_rows_that_nobody_asked_a_tolerance_of_are_answered():
    X = np.random.default_rng(0).normal(size=(2000, 2))
    far = [501, 1203]
    X[far] += 1e9
    y = np.sin(X.sum(axis=1))
    y[far] = [1, -1]
    source = make_pipeline(RobustScaler(), SVR(C=10, gamma=0.5, epsilon=0.3)).fit(X, y)
    for mode in ("certified", "exact"):
        fast = approxsvm.compile(source, X, mode=mode)
        assert (np.abs(fast.predict(X) - source.predict(X)) <= fast.error_bound(X) + 1e-9).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_far_rows_of_several_classes_are_within_a_tolerance(n_classes):
    X, _ = data(0.0)
    y = np.digitize(X[:, 0], [-0.5, 0.5][: n_classes - 1])
    fast = approxsvm.compile(make_pipeline(StandardScaler(), SVC()).fit(X, y), X, tolerance=1e-6)
    for size in (1e9, 1e14, 1e150):
        assert fast.error_bound(np.full((1, 4), size)).max() <= 1e-6


def test_bounds_never_exceed_what_kernels_can_do():
    X, y = data(0.0)
    fast = approxsvm.compile(make_pipeline(StandardScaler(), SVC(gamma=1e50)).fit(X, y), X)
    limit = 1.01 * np.abs(fast.artifact.dual_coef()).sum()
    for rows in (X, np.full((1, 4), 1e160), np.full((1, 4), 1e200)):
        assert (fast.error_bound(rows) <= limit).all()


def test_one_huge_row_leaves_the_projections_of_others_alone():
    X, y = data(1e6)
    fast = approxsvm.compile(make_pipeline(PCA(3), SVC()).fit(X, y), X)
    rows = np.vstack([X, [[5e299, 1e299, 0, 0]], [[1.5e300, 0, 0, 0]]])
    np.testing.assert_array_equal(fast.error_bound(rows)[: len(X)], fast.error_bound(X))
    np.testing.assert_array_equal(fast.predict(rows)[: len(X)], fast.predict(X))


def test_values_that_overflow_on_their_way_to_a_limit():
    X, _ = data(0.0)
    source = make_pipeline(MinMaxScaler(clip=True), SVR(C=10)).fit(X / 100, np.sin(X.sum(axis=1)))
    fast = approxsvm.compile(source, X / 100, tolerance=1e-4)
    rows = np.vstack([np.full((1, 4), 1e308), np.full((1, 4), -1e308)])
    clipped = source.predict(np.sign(rows))  # scikit-learn warns of the overflow
    np.testing.assert_allclose(fast.predict(rows), clipped, atol=1.01e-4)


@pytest.mark.parametrize("scale", [1e-80, 1e80, 1e90])
def test_quadratic_kernels_at_any_scale(scale):
    X, y = data(0.0)
    rows = X * scale
    classifier = SVC(kernel="poly", degree=2).fit(rows, y)
    np.testing.assert_array_equal(approxsvm.compile(classifier, rows).predict(rows), classifier.predict(rows))
    source = SVR(kernel="poly", degree=2).fit(rows, np.sin(X.sum(axis=1)))
    fast = approxsvm.compile(source, rows)
    np.testing.assert_allclose(fast.predict(rows), source.predict(rows), rtol=1e-9, atol=1e-9)
    assert approxsvm.verify(fast, source, rows).kept


@pytest.mark.parametrize("size", [1e-165, 1e-160, 1.0, 1e150])
def test_bounds_of_linear_kernels_for_rows_of_any_size(size):
    X, _ = data(0.0, n=40)
    source = KernelRidge(kernel="linear", alpha=1.0).fit(X, np.sin(X.sum(axis=1)))
    fast, rows = approxsvm.compile(source), X[:6] * size
    for row, value, bound in zip(rows, fast.predict(rows), fast.error_bound(rows), strict=True):
        with mpmath.workdps(60):
            vectors, coefficients, z = numbers(source.X_fit_), column(source.dual_coef_), column(row)
            true = sum(
                a * sum(p * q for p, q in zip(x, z, strict=True)) for x, a in zip(vectors, coefficients, strict=True)
            )
            assert abs(mpmath.mpf(float(value)) - true) <= bound


def test_tolerances_of_quadratic_models_are_kept_or_refused():
    X, _ = data(1e9)
    source = make_pipeline(StandardScaler(), KernelRidge(kernel="linear")).fit(X, 1e3 * np.sin(X.sum(axis=1)))
    with pytest.raises(InputError, match=r"row \d+: its value is certain to .* not to the tolerance of 1e-12"):
        approxsvm.compile(source, tolerance=1e-12).predict(X)
    assert (approxsvm.compile(source, tolerance=1e-3).error_bound(X) <= 1e-3).all()


def verified(source, X, sample=None):
    return approxsvm.verify(approxsvm.compile(source, X if sample is None else sample), source, X)


def test_verify_survives_sources_that_overwrite_nest_and_are_sparse():
    X, y = data(5.0)
    target = np.sin(X.sum(axis=1))
    for scaler in (StandardScaler(copy=False), MinMaxScaler(copy=False), RobustScaler(copy=False)):
        assert verified(make_pipeline(scaler, SVC()).fit(X.copy(), y), X).kept
    map_ = Nystroem(gamma=0.1, n_components=4, random_state=0)
    for final in (Ridge(), LogisticRegression()):
        wanted = target if isinstance(final, Ridge) else y
        for pipeline in (
            make_pipeline(make_pipeline(StandardScaler(), map_), final),
            make_pipeline(StandardScaler(), map_, "passthrough", final),
        ):
            assert verified(pipeline.fit(X, wanted), X).kept
    sparse = csr_array(np.where(np.abs(X) > 5, X, 0.0))
    for source in (SVC(), make_pipeline(MaxAbsScaler(), SVC()), make_pipeline(StandardScaler(with_mean=False), SVC())):
        assert verified(source.fit(sparse.toarray(), y), sparse).kept
        assert verified(source.fit(sparse, y), sparse).kept


def test_verify_knows_what_the_source_cannot_tell():
    X, y = data(1e4)
    source = make_pipeline(Nystroem(gamma=0.1, n_components=20, random_state=0), LogisticRegression()).fit(X, y)
    assert verified(source, np.vstack([X, near_the_boundary(source, X)]), sample=X).kept


def test_verify_notices_other_answers_of_the_source(monkeypatch):
    X, y = data(1e15)
    source = make_pipeline(MinMaxScaler(), SVC()).fit(X, y)
    fast = approxsvm.compile(source, X)
    answering_otherwise(monkeypatch, lambda label: 1 - label)
    assert approxsvm.verify(fast, source, X).label_differences == len(X)
    monkeypatch.undo()
    X, _ = data(0.0)
    regressor = make_pipeline(StandardScaler(), SVR()).fit(X, np.sin(X.sum(axis=1)))
    fast = approxsvm.compile(regressor, X)
    assert approxsvm.verify(fast, regressor, X).kept
    assert approxsvm.verify(fast, regressor, X).near_ties == 0
    answering_otherwise(monkeypatch, lambda value: value + 5.0)
    assert approxsvm.verify(fast, regressor, X).bound_violations == len(X)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (lambda X, y: GaussianProcessRegressor(RBF(1e200), optimizer=None).fit(X, y), "length scale.*1e\\+200"),
        (lambda X, y: GaussianProcessRegressor(RBF(1e-200), optimizer=None).fit(X, y), "length scale.*1e-200"),
        (
            lambda X, y: TransformedTargetRegressor(SVR(), transformer=MinMaxScaler((0, 1e-5))).fit(X, y * 1e305),
            "beyond the range|leaves float64 no room",
        ),
    ],
)
def test_numbers_beyond_float64_are_refused_by_name(source, message):
    X, _ = data(0.0, n=40)
    with pytest.raises(approxsvm.UnsupportedModelError, match=message):
        approxsvm.compile(source(X, np.sin(X.sum(axis=1))))


@pytest.mark.parametrize("offset", [0.0, 10.0, 100.0])
def test_verify_of_polynomials_allows_for_what_their_sources_lose(offset):
    X, _ = data(offset)
    y = np.sin((X - offset).sum(axis=1))
    sources = [KernelRidge(), KernelRidge(kernel="poly", degree=2), SVR(kernel="linear"), SVR(kernel="poly", degree=2)]
    for source in sources:
        assert verified(source.fit(X, y), X).kept, source


def test_bounds_of_quadratic_kernels_of_tiny_rows():
    X, _ = data(0.0, n=40)
    source = KernelRidge(kernel="poly", degree=2, gamma=1e300, coef0=0.0).fit(X * 1e-150, np.sin(X.sum(axis=1)))
    fast, rows = approxsvm.compile(source), X[:4] * 1e-163
    with mpmath.workdps(60):
        for row, value, bound in zip(rows, fast.predict(rows), fast.error_bound(rows), strict=True):
            products = [sum(p * q for p, q in zip(x, column(row), strict=True)) for x in numbers(source.X_fit_)]
            gamma = mpmath.mpf(1e300)
            true = sum(a * (gamma * p) ** 2 for a, p in zip(column(source.dual_coef_), products, strict=True))
            assert abs(mpmath.mpf(float(value)) - true) <= bound


def test_an_infinite_tolerance_asks_for_nothing():
    X, _ = data(0.0, n=40)
    for kernel in ("linear", "rbf"):
        source = KernelRidge(kernel=kernel).fit(X, X[:, 0])
        assert approxsvm.compile(source, tolerance=np.inf).predict(X).shape == (40,)


def test_an_error_that_nobody_knows_is_in_the_bound():
    """A clipped feature's error is 0, and its gain beyond float64: 0 times infinity must not say 0."""
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

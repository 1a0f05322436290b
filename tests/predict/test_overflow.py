"""Rows for which a term of the source's sum overflows float64, so that the source's answer stems from infinity or NaN.

The function itself may be far from overflow, because large terms cancel. Such rows are rejected by every rule that
combines models, and no certified label ever contradicts the source.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import onnxruntime
import pytest
from scipy.sparse import csr_array
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, StandardScaler
from sklearn.svm import SVC, LinearSVC, OneClassSVM

import approxsvm
from approxsvm.errors import InputError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
TWO, THREE = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int), np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.5])
LINEAR, QUADRATIC = SVC(kernel="linear"), SVC(kernel="poly", degree=2, coef0=1.0)
SOURCES: dict[str, Any] = {
    "linear": LINEAR,
    "small gamma": SVC(kernel="poly", degree=1, gamma=1e-8, C=1e6),
    "small coefficients": SVC(kernel="poly", degree=1, C=1e-30),
    "quadratic": QUADRATIC,
    "cubic": SVC(kernel="poly", coef0=1.0),
    "sigmoid": SVC(kernel="sigmoid"),
    "one class": OneClassSVM(kernel="linear"),
    "linear model": LogisticRegression(),
    "behind a scaler": make_pipeline(MinMaxScaler(), QUADRATIC),
    "behind a projection": make_pipeline(StandardScaler(), PCA(3), LINEAR),
    "votes": VotingClassifier([("a", LINEAR), ("b", SVC(kernel="poly", coef0=1.0)), ("c", LinearSVC())]),
    "bag": BaggingClassifier(LINEAR, 5, random_state=0),
    "mean": CalibratedClassifierCV(LINEAR, cv=2),
    "constant": SVC(gamma=0.0),
    "three classes": LINEAR,
    "three classes, one against the rest": OneVsRestClassifier(LINEAR),
}


def far_rows() -> Any:
    sizes = 10.0 ** np.repeat([50, 76, 100, 102, 150, 153, 154, 200, 300, 304, 305, 306, 307], 12)
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(len(sizes), 4)) * sizes[:, np.newaxis] * 10 ** rng.uniform(-1, 1, (len(sizes), 4))
    return rows[np.isfinite(rows).all(axis=1)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", ["certified", "exact", "approximate"])
@pytest.mark.parametrize("name", SOURCES)
def test_rows_whose_terms_overflow(name: str, mode: Any) -> None:
    y = THREE if name.startswith("three") else TWO
    source = SOURCES[name].fit(X, y)
    try:
        fast = approxsvm.compile(source, mode=mode)
    except approxsvm.UnsupportedModelError:
        pytest.skip("no form has this kernel")
    rows, n_answered = far_rows(), 0
    if name == "behind a projection":  # scikit-learn's own checks reject the whole batch
        rows = rows[np.isfinite(source[:-1].transform(rows)).all(axis=1)]
    for row, expected in zip(rows, source.predict(rows), strict=True):
        for given in (row[np.newaxis], csr_array(row[np.newaxis])):
            if name in ("behind a scaler", "behind a projection") and hasattr(given, "tocsr"):
                continue
            try:
                label, is_certified = fast.predict(given)[0], fast.certified(given)[0]
            except InputError:
                continue
            n_answered += 1
            assert label == expected or not is_certified
            assert label == expected or mode == "approximate"
    assert n_answered > 20
    if name == "constant":
        with pytest.raises(approxsvm.UnsupportedModelError, match="with gamma = 0, the source computes NaN"):
            fast.to_onnx(input_type="float64", certain=True)
    elif mode == "certified" and name != "small coefficients":
        session = onnxruntime.InferenceSession(fast.to_onnx(input_type="float64").SerializeToString())
        label, is_certain = session.run(["label", "certain"], {"X": rows})
        assert (np.ravel(label) == source.predict(rows))[np.ravel(is_certain).astype(bool)].all()


_landmarks = partial(Nystroem, n_components=20, random_state=0)
# Sources with Gaussian kernels; most compute squared distances from inner products, which gives NaN for huge rows.
DISTANCES: dict[str, Any] = {
    "machine": SVC(),
    "ridge": KernelRidge(kernel="rbf"),
    "landmarks": make_pipeline(_landmarks(), LinearSVC()),
    "landmarks, regression": make_pipeline(_landmarks(), Ridge()),
    "landmarks of several classes": make_pipeline(_landmarks(), LogisticRegression()),
    "landmarks, scaled": make_pipeline(StandardScaler(), _landmarks(), LogisticRegression()),
    "long landmarks": make_pipeline(MinMaxScaler((0, 1e6)), _landmarks(gamma=1e-12), LinearSVC()),
    "Gaussian process": GaussianProcessRegressor(RBF(1.0)),
}
DENSE = ("machine", "landmarks, scaled", "long landmarks", "Gaussian process")  # these reject sparse rows


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", ["certified", "exact"])
@pytest.mark.parametrize("name", DISTANCES)
def test_rows_whose_squared_distances_overflow(name: str, mode: Any) -> None:
    """Such rows are answered as the source answers them, or rejected; rows of ordinary size are answered."""
    source = DISTANCES[name].fit(X, THREE if "classes" in name else TWO)
    fast, n_answered = approxsvm.compile(source, mode=mode), 0
    rows = np.concatenate([far_rows()[::3], [[1.7e308] * 4, [-1.7e308, 0, 0, 1.7e308], [0, 0, 1e307, 0], X[0]]])
    for row in rows:
        for given in (row[np.newaxis], csr_array(row[np.newaxis])):
            if hasattr(given, "tocsr") and name in DENSE:
                continue
            try:
                found = fast.predict(given)
            except InputError:
                continue
            n_answered += 1
            np.testing.assert_allclose(found, source.predict(given), rtol=1e-6, atol=1e-6, err_msg=str(row))
    assert n_answered > 20


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", ["certified", "exact", "approximate"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
def test_norms_that_overflow(norm: Any, dtype: Any, mode: Any) -> None:
    """In the source, division by an infinite norm turns a row into zeros."""
    source = make_pipeline(Normalizer(norm), SVC(gamma=4.0)).fit(X, TWO)
    fast = approxsvm.compile(source, mode=mode)
    sizes = [1e15, 2e18, 1e20, 3e38] if dtype is np.float32 else [1e100, 1e153, 1e155, 1e308]
    rows = np.random.default_rng(1).uniform(-1, 1, (40, 4)).astype(dtype) * np.repeat(sizes, 10)[:, np.newaxis]
    rows = rows.astype(dtype)
    terms = {"l1": np.abs(rows).sum(axis=1), "l2": (rows**2).sum(axis=1), "max": np.abs(rows).max(axis=1)}[norm]
    for row, expected, is_finite in zip(rows, source.predict(rows), np.isfinite(terms), strict=True):
        for given in (row[np.newaxis], csr_array(row[np.newaxis])):
            if is_finite:
                assert fast.predict(given)[0] == expected or mode == "approximate"
            else:
                with pytest.raises(InputError, match=f"exceeds the range of {np.dtype(dtype)}"):
                    fast.predict(given)

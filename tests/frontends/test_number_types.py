"""Parameters of NumPy types: approxsvm either follows the source's arithmetic or rejects them."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import VotingClassifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import Binarizer, MinMaxScaler
from sklearn.svm import SVC, SVR, LinearSVC

import approxsvm
from approxsvm.errors import InputError, UnsupportedModelError

pytestmark = pytest.mark.filterwarnings("ignore")
RNG = np.random.default_rng(0)
X = RNG.integers(-100, 100, (240, 4))
Y = (X[:, 0] * X[:, 1] > 0).astype(int)
TYPES = (int, float, np.float64, np.float32, np.float16, *(np.dtype(code).type for code in "bhiqBHIQg"), Fraction)
SMALL = X / 50.0
PARTS = [("a", "passthrough", [0, 1]), ("b", "passthrough", [2, 3])]


def both(source: Any, *several: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the source's answers (None if it fails) and the compiled model's (or the error), for several rows."""
    fast: Any = None
    for rows in several:
        try:
            fast = fast or approxsvm.compile(source, effort="low")
            ours = fast.predict(rows)
        except (UnsupportedModelError, InputError) as error:
            ours = error
        try:
            yield source.predict(rows), ours
        except (OverflowError, TypeError, ValueError):  # the source cannot compute with such a number
            yield None, ours


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("weight", [1, 2, 100, -1])
@pytest.mark.parametrize("union", [True, False])
def test_weights_of_transformers(kind: Any, weight: int, union: bool) -> None:
    """Products of int8 columns and an integer wrap around, and float32 weights are rounded."""
    if union:
        scaled: Any = FeatureUnion([("a", "passthrough"), ("b", Binarizer())])
    else:
        scaled = ColumnTransformer(PARTS)
    try:
        weights = {"a": kind(weight)}
    except OverflowError:
        pytest.skip("an unsigned type has no negative numbers")
    source = make_pipeline(scaled, SVC(gamma=1e-4)).fit(X.astype(float), Y)
    source.steps[0][1].transformer_weights = weights
    dtypes = (np.float64, np.float32, np.int8, np.int16, np.int64, bool, np.uint8)
    for dtype, (theirs, ours) in zip(dtypes, both(source, *map(X.astype, dtypes)), strict=True):
        if isinstance(ours, Exception):
            assert dtype is not np.float64 or kind not in (int, float, np.float64, np.int64), ours
        else:
            assert np.array_equal(theirs, ours), dtype


SOURCES: dict[str, tuple[Any, str, float]] = {
    "SVC gamma": (SVC(), "gamma", 1),
    "polynomial gamma": (SVC(kernel="poly", degree=2), "gamma", 1),
    "coef0": (SVR(kernel="sigmoid", gamma=0.01), "coef0", 1),
    "degree": (SVC(kernel="poly"), "degree", 2),
    "KernelRidge gamma": (KernelRidge(kernel="rbf"), "gamma", 1),
    "KernelRidge coef0": (KernelRidge(kernel="poly", degree=2, gamma=0.1), "coef0", 1),
    "Nystroem gamma": (make_pipeline(Nystroem(n_components=9, random_state=0), Ridge()), "nystroem__gamma", 1),
    "RBFSampler gamma": (make_pipeline(RBFSampler(random_state=0), LinearRegression()), "rbfsampler__gamma", 1),
    "constants": (
        GaussianProcessRegressor(ConstantKernel(1.0) + ConstantKernel(100.0) + RBF(1.0), alpha=1.0, optimizer=None),
        "kernel__k1__k1__constant_value",
        100,
    ),
    "length scale": (GaussianProcessRegressor(RBF(1.0), alpha=1.0, optimizer=None), "kernel__length_scale", 2),
    "bandwidth": (KernelDensity(), "bandwidth", 2),
    "Binarizer": (make_pipeline(Binarizer(), LinearSVC()), "binarizer__threshold", 1),
    "threshold": (FixedThresholdClassifier(LogisticRegression()), "threshold", 1),
    "weights": (VotingClassifier([("a", SVC()), ("b", LinearSVC()), ("c", SVC(C=9))]), "weights", 100),
    "range": (make_pipeline(MinMaxScaler(clip=True), SVC()), "minmaxscaler__feature_range", 1),
}  # fmt: skip


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", SOURCES)
def test_parameters(name: str, kind: Any) -> None:
    """In the source's RBF kernel, -np.uint8(1) is 255, and the sum of two int8 constants is less than either one."""
    base, parameter, value = SOURCES[name]
    number: Any = kind(value)
    number = {"weights": [number] * 3, "range": (kind(0), number)}.get(name, number)
    if name == "constants":
        base = clone(base).set_params(kernel__k1__k2__constant_value=number)
    try:
        source = clone(base).fit(SMALL, Y).set_params(**{parameter: number})
        if name in ("threshold", "weights", "Binarizer", "range", "SVC gamma", "polynomial gamma", "coef0", "degree"):
            source = source.fit(SMALL, Y)
        if hasattr(source, "kernel_"):
            source.kernel_ = source.kernel
    except (TypeError, ValueError, AttributeError, OverflowError):
        pytest.skip("the source does not train with such a number")
    if name == "bandwidth":
        source.bandwidth_ = number
        theirs, ours = source.score_samples(SMALL), approxsvm.compile(source).score_samples(SMALL)
    else:
        ((theirs, ours),) = both(source, SMALL)
    if isinstance(ours, Exception):
        assert kind not in (int, float, np.float64, np.int64), ours
    elif theirs is not None and theirs.dtype.kind == "f":
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-3 * np.ptp(theirs))
    else:
        assert theirs is None or np.array_equal(ours, theirs)

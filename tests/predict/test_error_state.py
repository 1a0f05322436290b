"""The caller's NumPy error state: raising on underflow changes no answer and stops no computation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, PowerTransformer, QuantileTransformer, SplineTransformer
from sklearn.svm import SVC, SVR

import approxsvm
from approxsvm.errors import InputError

X = np.random.default_rng(0).normal(size=(120, 3))
Y = (X[:, 0] * X[:, 1] > 0).astype(int)
SOURCES: dict[str, Any] = {
    "RBF": SVC(),
    "small coefficients": SVC(C=1e-200),
    "sigmoid": SVC(kernel="sigmoid"),
    "polynomial": SVC(kernel="poly", degree=6, coef0=1.0),
    "linear": SVR(kernel="linear"),
    "classes": OneVsRestClassifier(SVC(kernel="poly")),
    "probabilities": SVC(probability=True, random_state=0),
    "mean": CalibratedClassifierCV(SVC(), cv=2),
    "density": KernelDensity(),
    **{
        type(step).__name__: make_pipeline(step, SVC())
        for step in (
            QuantileTransformer(n_quantiles=20, output_distribution="normal"),
            PowerTransformer(),
            KBinsDiscretizer(),
            SplineTransformer(),
        )
    },
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SOURCES)
def test_underflow_is_no_error(name: str, tmp_path: Any) -> None:
    y = np.digitize(X[:, 0], [-0.5, 0.5]) if name == "classes" else Y
    source = SOURCES[name].fit(X, y)
    plain = approxsvm.compile(source, X)
    with np.errstate(all="raise"):
        fast = approxsvm.compile(source, X)
        assert fast.artifact.data == plain.artifact.data
        for method in ("predict", "predict_proba", "decision_function", "score_samples", "error_bound", "certified"):
            if hasattr(plain, method):
                getattr(fast, method)(X)
        fast.predict_one(X[0])
        if name != "density":
            fast.to_onnx(input_type="float64")
            fast.export_c(tmp_path / "model.h")
        if name not in ("density", "mean"):
            approxsvm.verify(fast, source, X)
            fast.report(X, against=source)
        fast.save(tmp_path / "model.asvm")
        approxsvm.Predictor(tmp_path / "model.asvm").predict(X)


@pytest.mark.parametrize("dtype", [np.longdouble, np.float64])
@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame, np.ndarray.tolist, lambda rows: rows[0]])
def test_conversions_are_no_error(dtype: Any, container: Any) -> None:
    """A type's smallest number, which float64 may round to 0, is answered or rejected as in any other error state."""
    fast = approxsvm.compile(SVC().fit(X, Y), mode="exact")
    rows = container(np.full((1, 3), np.finfo(dtype).smallest_subnormal))

    def answer() -> Any:
        try:
            return (fast.predict_one if np.ndim(rows) == 1 else fast.predict)(rows)
        except InputError as error:
            return str(error)

    usual = answer()
    with np.errstate(all="raise"):
        assert answer() == usual

"""Sigmoid kernels: labels, values and bounds of scikit-learn's machines and of LIBSVM's files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnxruntime
import pytest
import scipy.sparse as sp
from conftest import random_model
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.decomposition import PCA
from sklearn.kernel_ridge import KernelRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, OneClassSVM
from zoo import oracle

import approxsvm
from approxsvm.errors import InputError, ModelFormatError, UnsupportedModelError
from approxsvm.evaluator import BOUNDS, VALUES

LIBSVM_FILE = """svm_type c_svc
kernel_type sigmoid
gamma 0.5
coef0 -0.25
nr_class 2
total_sv 3
rho 0.125
label 1 -1
nr_sv 2 1
SV
1 1:0.5 3:-1
0.25 2:2
-1.25 1:-0.75 2:0.5 3:0.25
"""


def machines():
    X, y = load_breast_cancer(return_X_y=True)
    flowers, kind = load_iris(return_X_y=True)
    sigmoid = {"kernel": "sigmoid", "gamma": 0.02}
    names = np.array(["setosa", "versicolor", "virginica"])[kind]
    return {
        "two classes": (SVC(coef0=0.5, **sigmoid), X, y),
        "projected": (make_pipeline(PCA(5), SVC(coef0=-0.5, **sigmoid)), X, y),
        "classes": (SVC(decision_function_shape="ovo", **sigmoid), flowers, names),
        "scores": (NuSVC(nu=0.2, break_ties=True, **sigmoid), flowers, names),
        "regression": (SVR(coef0=-1.0, **sigmoid), X, X[:, 0]),
        "inliers": (OneClassSVM(**sigmoid), X, y),
        "ridge": (KernelRidge(coef0=0.1, **sigmoid), X, X[:, 0]),
    }


@pytest.mark.filterwarnings("ignore:Singular matrix")  # no such kernel is positive definite
@pytest.mark.parametrize("name", machines())
def test_machines_compile(name):
    machine, X, y = machines()[name]
    source = make_pipeline(StandardScaler(), machine).fit(X, y)
    fast = approxsvm.compile(source, X)
    assert fast.artifact.mode == "exact"
    for part in (X, X[:1], sp.csr_array(X)) if name != "projected" else (X, X[:1]):
        dense = part.toarray() if sp.issparse(part) else part
        found, expected = fast.predict(part), source.predict(dense)
        if fast.artifact.task == "regression":
            np.testing.assert_allclose(found, expected, atol=1e-7)
        else:
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_allclose(fast.decision_function(part), source.decision_function(dense), atol=1e-8)
    assert approxsvm.verify(fast, source, X).kept
    assert "sigmoid, coef0" in str(fast.summary)
    session = onnxruntime.InferenceSession(fast.to_onnx(input_type="float64").SerializeToString())
    first = session.run(None, {"X": X})[0]
    if fast.artifact.task == "regression":
        np.testing.assert_allclose(first.ravel(), np.ravel(source.predict(X)), atol=1e-7)
    else:
        np.testing.assert_array_equal(np.ravel(first), source.predict(X))


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("gamma", [0.3, -0.3, 1e-9, 40.0])
def test_values_are_within_their_bounds(n_classes, gamma, target):
    rng = np.random.default_rng(n_classes)
    model = approxsvm.KernelModel(
        "classification",
        rng.normal(size=(24, 5)),
        rng.normal(size=(n_classes - 1, 24)),
        rng.normal(size=n_classes * (n_classes - 1) // 2),
        gamma,
        labels=np.arange(n_classes)[::-1],
        n_support=np.full(n_classes, 24 // n_classes),
        coef0=-0.4,
        is_sigmoid=True,
    )
    rows = rng.normal(size=(40, 5)) * 10.0 ** rng.uniform(-6, 6, (40, 1))
    fast = approxsvm.compile(model)
    moduli = max(np.abs(model.coefficients(k)).sum() for k in range(model.n_decisions))
    for part in (rows, sp.csr_array(rows)):
        values, bounds = fast._evaluator.evaluate(part, VALUES | BOUNDS)
        assert oracle.holds(model, rows, values, bounds).all()
        assert bounds.max() <= 2.01 * moduli + 1e-9  # no kernel value changes by more than 2
        assert np.median(bounds) < 1e-9 * moduli


def test_libsvm_files(tmp_path):
    path = tmp_path / "sigmoid.model"
    path.write_text(LIBSVM_FILE)
    model = approxsvm.read_model(path, n_features=3)
    assert (model.kernel, model.gamma, model.coef0) == ("sigmoid", 0.5, -0.25)
    fast = approxsvm.compile(path, n_features=3)
    rows = np.random.default_rng(0).normal(size=(50, 3))
    kernels = np.tanh(0.5 * rows @ model.dense_support_vectors(0, 3).T - 0.25)
    np.testing.assert_allclose(fast._evaluator.evaluate(rows), kernels @ [1.0, 0.25, -1.25] - 0.125, atol=1e-14)
    assert (fast.predict(rows) == np.where(kernels @ [1.0, 0.25, -1.25] > 0.125, 1, -1)).all()


def test_what_does_not_fit_is_named():
    model = replace(random_model(7, n_features=3, n_sv=5, gamma=1e3), is_sigmoid=True)
    with pytest.raises(UnsupportedModelError, match="a sigmoid kernel has no expansion"):
        approxsvm.compile(model, mode="approximate")
    with pytest.raises(ModelFormatError, match="degree is 2, but a sigmoid kernel has none"):
        replace(model, degree=2)
    fast = approxsvm.compile(model)
    with pytest.raises(InputError, match="exceeds the range of float64"):
        fast.predict(np.full((2, 3), 1e308))
    with pytest.raises(InputError, match="exceeds the range of float64"):
        approxsvm.compile(replace(model, task="regression", labels=np.empty(0), n_support=np.empty(0))).predict(
            np.full((2, 3), 1e308)
        )

"""Sigmoid kernels: labels, values and bounds of scikit-learn's machines and of LIBSVM's files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import random_model
from zoo import oracle

import approxsvm
from approxsvm.errors import InputError, ModelFormatError, UnsupportedModelError
from approxsvm.evaluator import BOUNDS, VALUES


@pytest.mark.parametrize(("n_classes", "gamma"), [(2, 0.3), (4, -0.3), (2, 1e-9), (4, 40.0)])
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
    assert (fast.artifact.mode, fast.summary.kernel.split(",")[0]) == ("exact", "sigmoid")
    moduli = max(np.abs(model.coefficients(k)).sum() for k in range(model.n_decisions))
    for part in (rows, sp.csr_array(rows)):
        values, bounds = fast._evaluator.evaluate(part, VALUES | BOUNDS)
        assert oracle.holds(model, rows, values, bounds).all()
        assert bounds.max() <= 2.01 * moduli + 1e-9  # no kernel value changes by more than 2
        assert np.median(bounds) < 1e-9 * moduli


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

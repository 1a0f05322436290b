"""Golden artifacts compiled from scikit-learn sources give the answers that the sources gave."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import GOLDEN

import approxsvm
from approxsvm.runtime.evaluator import BOUNDS, VALUES


@pytest.mark.parametrize(
    "name",
    ["iris_pipeline", "iris_calibrated", "iris_ensemble", "iris_fourier", "iris_logarithms", "diabetes_pipeline"],
)
def test_golden_artifacts_give_their_sources_answers(name: str) -> None:
    predictor = approxsvm.Predictor(GOLDEN / f"{name}.asvm")
    evaluator = predictor._evaluator
    rows, targets = approxsvm.read_libsvm_data(GOLDEN / f"{name}.t", n_features=predictor.n_features)
    rows = rows.toarray()
    values, shares = (GOLDEN / f"{name}.{suffix}" for suffix in ("values", "probabilities"))
    assert values.exists() == (name != "iris_ensemble")
    if values.exists():
        found, bounds = (np.asarray(evaluator.evaluate(rows, what)) for what in (VALUES, BOUNDS))
        expected = np.loadtxt(values)
        assert (np.abs(found - expected) <= bounds + 1e-9 * np.abs(expected).max()).all()
    if shares.exists():
        np.testing.assert_allclose(predictor.predict_proba(rows), np.loadtxt(shares), rtol=0, atol=1e-9)
    if len(predictor.classes):
        share = np.mean(predictor.predict(rows) == predictor.classes[targets.astype(int)])
        assert share > 0.85

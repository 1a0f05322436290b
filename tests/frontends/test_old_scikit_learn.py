"""Estimators trained and saved by old versions of scikit-learn, with their answers (old_scikit_learn/make.py)."""

from __future__ import annotations

import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest

import approxsvm
from approxsvm.errors import ModelFormatError

FILES = sorted((Path(__file__).parent / "old_scikit_learn").glob("*.joblib"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_old_files_answer_as_they_did(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the other version, and NumPy's old names
        X, models, answers, shares = joblib.load(path)
    X = np.array(X)
    for name, model in models.items():
        if name == "calibrated" and path.stem.startswith("0.22"):  # attributes added later are missing
            with pytest.raises(ModelFormatError, match="has no attribute 'calibrators'"):
                approxsvm.compile(model)
            continue
        compiled = approxsvm.compile(model)
        if name == "regression":
            assert np.abs(compiled.predict(X) - answers[name]).max() < 1e-4
        else:
            assert compiled.predict(X).tolist() == answers[name]
        if name in shares:
            assert np.abs(compiled.predict_proba(X) - shares[name]).max() < 1e-6


def test_there_are_files_of_three_versions():
    assert [path.stem for path in FILES] == ["0.22.2.post1", "0.24.2", "1.1.3"]

"""Other libraries' arrays, such as tensors: answered like NumPy arrays or refused by name, with dispatch on or off."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from sklearn.svm import SVC

import approxsvm
from approxsvm.errors import InputError

X = np.random.default_rng(0).normal(size=(60, 4))
SOURCE = SVC().fit(X, X[:, 0] > 0)
FAST = approxsvm.compile(SOURCE, X)


class Tensor:
    """A tensor as NumPy sees it: `values`, or an error if they are in GPU memory."""

    def __init__(self, values: Any, *, on_gpu: bool = False) -> None:
        self.values = values
        self.on_gpu = on_gpu
        self.shape, self.ndim = values.shape, values.ndim

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if self.on_gpu:
            raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu()")
        return np.asarray(self.values, dtype)

    def __dlpack__(self, **_: Any) -> Any:
        raise AssertionError("nobody asks for it")


CALLS = {
    "predict": lambda X: FAST.predict(X),
    "decision_function": lambda X: FAST.decision_function(X),
    "certified": lambda X: FAST.certified(X),
    "Predictor": lambda X: approxsvm.Predictor(FAST.artifact).predict(X),
    "compile": lambda X: approxsvm.compile(SOURCE, X).artifact.data,
    "verify": lambda X: approxsvm.verify(FAST, SOURCE, X).label_differences,
}


@pytest.mark.parametrize("name", CALLS)
def test_tensors_are_answered_or_named(name: str) -> None:
    ask = CALLS[name]
    np.testing.assert_array_equal(ask(Tensor(X)), ask(X))
    with pytest.raises(InputError, match=r"Tensor, which NumPy cannot read; pass a NumPy array: .* Use Tensor\.cpu"):
        ask(Tensor(X, on_gpu=True))


@pytest.mark.parametrize("model", [FAST, approxsvm.Predictor(FAST.artifact)], ids=["estimator", "predictor"])
def test_one_row_may_be_a_tensor(model: Any) -> None:
    assert model.predict_one(Tensor(X[0])) == FAST.predict(X[:1])[0]
    with pytest.raises(InputError, match="NumPy cannot read"):
        model.predict_one(Tensor(X[0], on_gpu=True))


DISPATCHED = """
import array_api_strict as xp
import numpy as np
from sklearn import config_context
from sklearn.svm import SVC
import approxsvm

X = np.random.default_rng(0).normal(size=(60, 4))
source = SVC().fit(X, X[:, 0] > 0)
fast, labels = approxsvm.compile(source, X), source.predict(X)
there = xp.asarray(X, device=xp.Device("device1"))
for dispatch in (False, True):
    with config_context(array_api_dispatch=dispatch):
        for ask in (
            fast.predict,
            fast.decision_function,
            approxsvm.Predictor(fast.artifact).predict,
            lambda X: fast.score(X, labels),
            lambda X: approxsvm.compile(source, X).artifact.data,
            lambda X: approxsvm.verify(fast, source, X).kept,
        ):
            assert np.array_equal(ask(xp.asarray(X)), ask(X))
            try:
                ask(there)
            except approxsvm.InputError as error:
                assert "array_api_strict" in str(error)
            else:
                raise AssertionError("answered")
"""


def test_dispatch_of_scikit_learn_changes_nothing() -> None:
    pytest.importorskip("array_api_strict")
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", DISPATCHED],
        env=os.environ | {"SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr

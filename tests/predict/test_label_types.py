"""Labels of every type from every kind of classifier: predictions have the source's values and dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.svm import SVC, LinearSVC

import approxsvm
from approxsvm.errors import UnsupportedModelError

pytestmark = pytest.mark.filterwarnings("ignore")
X = np.random.default_rng(0).normal(size=(30, 2))
TWO, THREE = (X[:, 0] > 0).astype(int), np.digitize(X[:, 0], [-0.5, 0.5])
CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "machine": SVC,
    "linear": LinearSVC,
    "ridge": RidgeClassifier,
    "Gaussian process": lambda: GaussianProcessClassifier(RBF(1.0)),
    "calibrated": lambda: CalibratedClassifierCV(SVC(), cv=2),
    "vote": lambda: VotingClassifier([("a", SVC()), ("b", LinearSVC()), ("c", RidgeClassifier())]),
    "bag": lambda: BaggingClassifier(SVC(), 2, random_state=0),
    "stack": lambda: StackingClassifier([("a", SVC())], cv=2),
    "one against the rest": lambda: OneVsRestClassifier(SVC()),
    "threshold": lambda: FixedThresholdClassifier(SVC(), threshold=0.0),
    "targets": lambda: MultiOutputClassifier(SVC()),
}
LABELS: dict[str, Any] = {
    "texts": np.array(["a", "bb", "ccc"]),
    "texts as objects": np.array(["a", "bb", "ccc"], object),
    "wide texts": np.array(["a", "bb", "ccc"], "U20"),
    "numbers as objects": np.array([3, 5, 9], object),
    "mixed numbers": np.array([1, 2.5, 7], object),
    "mixed": np.array([1, "a", "b"], object),
    "bytes": np.array([b"a", b"bb", b"ccc"]),
    "bytes as objects": np.array([b"a", b"bb", b"ccc"], object),
    "bools": np.array([False, True, True]),
    "bools as objects": np.array([False, True, True], object),
    "NumPy's texts": np.array([np.str_("a"), np.str_("bb"), np.str_("c")], object),
    "beyond int64": np.array([3, 5, 2**63 + 5], np.uint64),
    **{name: np.array([1, 2, 3], name) for name in ("int8", ">i4", "uint64", "float16", "float32", "float64")},
}


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_labels_have_the_type_and_values_of_the_source(name: str, kind: str) -> None:
    """Check batches, single rows and predict_one, for two and three classes."""
    two_only = kind.startswith("bools") or name in ("Gaussian process", "threshold")
    for classes in (TWO,) if two_only else (TWO, THREE):
        y = LABELS[kind][classes]
        y = np.column_stack([y, y[::-1]]) if name == "targets" else y
        source = CLASSIFIERS[name]()
        try:
            expected = source.fit(X, y).predict(X)
        except (ValueError, TypeError):
            return  # scikit-learn does not accept such labels
        try:
            fast = approxsvm.compile(source)
        except UnsupportedModelError as error:
            if "labels" not in str(error):
                raise
            return
        for model in (fast, approxsvm.Predictor(fast.artifact)):
            for found, theirs in ((model.predict(X), expected), (model.predict(X[:1]), source.predict(X[:1]))):
                assert found.dtype == theirs.dtype
                assert found.tolist() == theirs.tolist()
            assert np.asarray(model.predict_one(X[0])).tolist() == expected[0:1].tolist()[0]

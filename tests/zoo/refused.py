"""Sources that are refused because they would compute something else, each listed under a part of the error message."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
)
from sklearn.svm import SVC

from zoo.sources import fitted
from zoo.specimens import Entry


def _of_objects(step: Any) -> Any:
    """Return a function that fits a step after an imputer that inserts the string "missing_value"."""
    return lambda X, y: make_pipeline(SimpleImputer(strategy="constant"), step, SVC()).fit(X.astype(object), y)


REFUSED = {
    "it takes numbers in column 0, but a step before it takes texts": (
        Entry("Binarizer of texts", _of_objects(Binarizer()), "signed"),
        Entry("bins of texts", _of_objects(KBinsDiscretizer(3, encode="ordinal")), "signed"),
    ),
    "would compute in float32": (
        Entry(
            "float32 from an encoder",
            fitted(make_pipeline(OrdinalEncoder(dtype=np.float32), MinMaxScaler((0.0, 0.7)), SVC())),
            "grid",
        ),
    ),
    "computes 2 - lambda in": (
        Entry("powers of float32", fitted(make_pipeline(PowerTransformer(), LogisticRegression())), "float32"),
    ),
    "several entries in one column, or entries out of order": (
        Entry("repeated entries", fitted(SVC()), "CSR repeated"),
        Entry("words multiplied", fitted(make_pipeline(TfidfVectorizer(), PolynomialFeatures(2), SVC())), "texts"),
    ),
    "the kernel of this SVC is the callable": (
        Entry("kernel function", fitted(SVC(kernel=lambda a, b: a @ b.T)), "signed"),
    ),
    "cannot be folded": (
        Entry("any function", fitted(make_pipeline(FunctionTransformer(np.sin), SVC())), "signed"),
        Entry("chi2", fitted(make_pipeline(AdditiveChi2Sampler(), SVC())), "numbers"),
    ),
}

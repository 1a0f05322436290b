"""Sources without a compiled model, as they compute otherwise than any: each with words of its refusal."""

from __future__ import annotations

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
)
from sklearn.svm import SVC

from zoo.sources import fitted
from zoo.specimens import Entry

REFUSED = {
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
    "several entries in a column, or entries out of order": (
        Entry("repeated entries", fitted(SVC()), "CSR repeated"),
        Entry("words multiplied", fitted(make_pipeline(TfidfVectorizer(), PolynomialFeatures(2), SVC())), "texts"),
    ),
    "the kernel of this SVC is the callable": (
        Entry("kernel function", fitted(SVC(kernel=lambda a, b: a @ b.T)), "signed"),
    ),
    "cannot be folded": (Entry("any function", fitted(make_pipeline(FunctionTransformer(np.sin), SVC())), "signed"),),
}

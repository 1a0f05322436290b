"""scikit-learn's own estimator checks, where they apply to estimators that are fitted from the start.

Most checks in sklearn.utils.estimator_checks train a clone on their own data, but `fit` returns a compiled model
unchanged. Checks that do not depend on what was learned run on every kind of compiled model. All checks run on
estimators that train and compile, so compiled models are checked on data of every shape.
"""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.svm import SVC, SVR, OneClassSVM
from sklearn.utils import estimator_checks

import approxsvm

# Names of checks, without the prefix "check_".
APPLICABLE = (
    *("do_not_raise_errors_in_init_or_set_params", "estimator_cloneable", "estimator_repr"),
    *("estimator_sparse_tag", "estimator_tags_renamed", "get_params_invariance"),
    *("mixin_order", "no_attributes_set_in_init", "parameters_default_constructible"),
    *("set_params", "valid_tag_types"),
)


def sources():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] + 0.3 * rng.normal(size=60) > 0).astype(int)
    return {
        "CompiledSVC": SVC().fit(X, y),
        "CompiledSVC of several": SVC().fit(X, y + (X[:, 1] > 0)),
        "CompiledSVR": SVR().fit(X, X[:, 0]),
        "CompiledOneClassSVM": OneClassSVM(nu=0.2).fit(X),
        "quadratic CompiledSVC": SVC(kernel="poly", degree=2).fit(X, y),
        "linear CompiledSVR": SVR(kernel="linear").fit(X, X[:, 0]),
        "CompiledEnsemble": CalibratedClassifierCV(SVC(), cv=2).fit(X, y),
    }


@pytest.fixture(scope="module")
def compiled():
    return {name: approxsvm.compile(source) for name, source in sources().items()}


KINDS = tuple(sources())


@pytest.mark.parametrize("check", APPLICABLE)
@pytest.mark.parametrize("kind", KINDS)
def test_applicable_checks(compiled, kind, check):
    estimator = compiled[kind]
    if not hasattr(estimator_checks, f"check_{check}"):
        pytest.skip(f"scikit-learn {sklearn.__version__} has no check_{check}")
    getattr(estimator_checks, f"check_{check}")(type(estimator).__name__, estimator)


@pytest.mark.parametrize("kind", KINDS)
def test_fit_returns_the_model_as_it_is(compiled, kind):
    estimator = compiled[kind]
    assert estimator.fit(np.zeros((2, 3)), np.zeros(2)) is estimator
    assert estimator.fit() is estimator

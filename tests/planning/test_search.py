"""The search for a plan: for any model, rows and options, it ends with a plan, and explains those that it tried."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, OneClassSVM

import approxsvm
from approxsvm.errors import ApproxSVMError

SOURCES: dict[str, Any] = {
    "SVC": SVC,
    "probabilities": lambda **options: SVC(probability=True, random_state=0, **options),
    "NuSVC": lambda C, **options: NuSVC(nu=0.1, **options),
    "calibrated": lambda **options: CalibratedClassifierCV(SVC(**options), cv=2, ensemble=False),
    "mean": lambda **options: CalibratedClassifierCV(SVC(**options), cv=2),
    "votes": lambda **options: VotingClassifier([("a", SVC(**options)), ("b", SVC(gamma=0.1))]),
    "bag": lambda **options: BaggingClassifier(SVC(**options), 2, random_state=0),
    "one against the rest": lambda **options: OneVsRestClassifier(SVC(**options)),
    "one class": lambda C, **options: OneClassSVM(nu=0.2, **options),
    "regression": SVR,
    "targets": lambda **options: MultiOutputRegressor(SVR(**options)),
}
REGRESSIONS = ("regression", "targets")
FORCED = {"degree", "n_centers", "max_bytes", "rows_per_call"}


@st.composite
def sources(draw: st.DrawFn) -> tuple[str, Any, Any]:
    """Draw a fitted source, possibly after a scaler, and rows like its training rows."""
    name, n_classes = draw(st.sampled_from(sorted(SOURCES))), draw(st.integers(2, 12))
    n_features, per_class = draw(st.integers(1, 24)), draw(st.sampled_from([3, 8, 30, 100]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_rows = n_classes * per_class
    y = np.arange(n_rows) % n_classes
    X = (
        rng.normal(size=(n_rows, n_features))
        + draw(st.sampled_from([0.0, 0.7, 3.0])) * rng.normal(size=(n_classes, n_features))[y]
    )
    if draw(st.booleans()):
        X = np.round(X)
    options = {
        "gamma": draw(st.sampled_from(["scale", 1e-3, 0.05, 1.0, 30.0])),
        "C": draw(st.sampled_from([0.01, 1.0, 1e3])),
    }
    source, target = SOURCES[name](**options), y
    if name in REGRESSIONS:
        target = np.sin(X[:, :1]) + 0.1 * rng.normal(size=(n_rows, 1 + (name == "targets")))
        target = target if name == "targets" else target[:, 0]
    before = draw(st.sampled_from([None, StandardScaler, MinMaxScaler]))
    source = source if before is None else make_pipeline(before(), source)
    try:
        return name, source.fit(X, target), X
    except ValueError:  # from NuSVC and LIBSVM's solver
        reject()


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "mode": st.sampled_from(["certified", "approximate", "exact"]),
        "degree": st.sampled_from(["auto", 1, 2, 3, 6]),
        "n_centers": st.sampled_from(["auto", 1, 2, 5, 64]),
        "center": st.sampled_from(["mean", "origin"]),
        "tolerance": st.sampled_from([1e-6, 1e-2, 10.0]),
        "labels": st.sampled_from(["source", "probability"]),
        "target_error": st.sampled_from([0.0, 0.05, 1.0]),
        "max_bytes": st.sampled_from([3_000, 30_000, 10**7]),
        "effort": st.sampled_from(["low", "normal", "high"]),
        "random_state": st.integers(0, 3),
        "rows_per_call": st.sampled_from([1, 3, 1000]),
        "rows_expected": st.sampled_from([1, 10**4, 10**12]),
        "measure": st.booleans(),
    },
)


def judge(source: Any, X: Any, options: dict[str, Any]) -> None:
    try:
        fast = approxsvm.compile(source, X, **options)
    except ApproxSVMError:  # options incompatible with the model or each other
        return
    may_choose = options.get("mode", "certified") == "certified" and options.keys().isdisjoint(FORCED)
    may_choose &= not options.get("measure", False)  # times decide then
    for plan in itertools.chain.from_iterable(fast.compilation.plans):
        assert plan.name
        assert all(math.isfinite(share) for share in (plan.share_of_exact, plan.certified) if share is not None)
        if plan.chosen and may_choose and plan.share_of_exact is not None:
            assert plan.share_of_exact <= 1.0, plan


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@given(sources(), st.booleans(), OPTIONS)
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_any_search_ends(case: tuple[str, Any, Any], with_rows: bool, options: dict[str, Any]) -> None:
    _, source, X = case
    judge(source, X, options)
    if not with_rows:
        judge(source, None, options | {"measure": False})  # measuring needs rows

"""Random fitted estimators: pipelines of random steps and machines, and estimators around them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, BaggingRegressor, StackingClassifier, VotingClassifier, VotingRegressor
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import SVC, SVR, LinearSVC, NuSVR, OneClassSVM

from benchmarks.random_data import Data, Draw, random_labels, random_target
from benchmarks.random_machines import Machines, Problem, Task
from benchmarks.random_steps import Steps

_TAKE_WEIGHTS = (SVC, SVR, NuSVR, LinearSVC, KernelRidge, Ridge, OneClassSVM)


def random_fitted(draw: Draw, data: Data) -> Any:
    """An estimator fitted on the data; whatever scikit-learn raises where it cannot be."""
    task: Task = draw.one("classification", "classification", "classification", "regression", "regression", "one_class")
    n_targets = draw.whole(1, 3) if task == "regression" and draw.maybe(0.15) else 0
    y: Any = None
    if task == "classification":
        y = random_labels(draw, data.matrix, draw.one(2, 2, 3, 4))
    if task == "regression":
        y = random_target(draw, data.matrix, n_targets)
    estimator = _Builder(draw, Problem(task, y, n_targets > 1)).estimator(data)
    if draw.maybe(0.1) and isinstance(estimator, _TAKE_WEIGHTS):
        return estimator.fit(data.X, y, sample_weight=draw.rng.integers(0, 3, len(data.matrix)))
    return estimator.fit(data.X, y)


def _no_score(estimator: Any, X: Any, y: Any = None) -> float:
    """Of a search that has nothing to choose."""
    return 0.0


class _Builder:
    """Estimators for one problem."""

    def __init__(self, draw: Draw, problem: Problem) -> None:
        self.draw, self.problem = draw, problem
        self.steps, self.machines = Steps(draw, problem), Machines(draw, problem)

    def estimator(self, data: Data) -> Any:
        """What `fit` is called on."""
        draw = self.draw
        inner = self._pipeline(data)
        for _ in range(draw.one(0, 0, 0, 1, 1, 2)):
            inner = self._wrapped(inner, data)
        return inner

    def _wrapped(self, inner: Any, data: Data) -> Any:
        draw = self.draw
        if draw.maybe(0.25):
            return draw.one(
                GridSearchCV(inner, {}, cv=2, scoring=_no_score),
                RandomizedSearchCV(inner, {}, n_iter=1, cv=2, random_state=0, scoring=_no_score),
                GridSearchCV(inner, {}, cv=2, refit=draw.maybe(0.8), scoring=_no_score),
                HalvingGridSearchCV(inner, {}, cv=2, min_resources="exhaust", random_state=0, scoring=_no_score),
            )
        if draw.maybe(0.1):
            return Pipeline([("only", inner)])
        if draw.maybe(0.1):
            return Pipeline([("nothing", draw.one("passthrough", None)), ("last", inner)])
        if self.problem.task == "classification":
            return self._around_classifier(inner, data)
        if self.problem.task == "regression":
            return self._around_regressor(inner)
        return inner

    def _around_classifier(self, inner: Any, data: Data) -> Any:
        draw = self.draw
        if draw.maybe(0.88):
            method = draw.one("sigmoid", "isotonic", *(["temperature"] * self.problem.has_positions))
            if draw.maybe(0.03):
                return CalibratedClassifierCV(method=method, cv=2)
            if draw.maybe(0.3):  # calibrated after it was fitted, as scikit-learn advises
                return CalibratedClassifierCV(FrozenEstimator(clone(inner).fit(data.X, self.problem.y)), method=method)
            return CalibratedClassifierCV(
                inner, method=method, cv=draw.one(2, 3), ensemble=draw.one(True, False, "auto")
            )
        return draw.one(
            OneVsRestClassifier(inner),
            OneVsOneClassifier(inner),
            BaggingClassifier(inner, n_estimators=2, random_state=0),
            VotingClassifier([("a", inner), ("b", LogisticRegression())], voting=draw.one("hard", "soft")),
            StackingClassifier([("a", inner)], LogisticRegression(), cv=2),
            FixedThresholdClassifier(inner, threshold=draw.one(0.3, -0.5, "auto")),
            TunedThresholdClassifierCV(inner, cv=2),
            SelfTrainingClassifier(inner),
        )

    def _around_regressor(self, inner: Any) -> Any:
        draw = self.draw
        if draw.maybe(0.88):
            scalers = (StandardScaler(), MinMaxScaler((-2, 3), clip=draw.maybe(0.3)), MaxAbsScaler(), RobustScaler())
            others: tuple[Any, ...] = (
                PowerTransformer(),
                QuantileTransformer(n_quantiles=9),
                PCA(1),
                Pipeline([("a", StandardScaler())]),
            )
            transformer = draw.one(None, *scalers, *scalers, *scalers, FunctionTransformer(), *others)
            if draw.maybe(0.1):
                return TransformedTargetRegressor(inner, func=np.cbrt, inverse_func=lambda y: y**3)
            return TransformedTargetRegressor(inner, transformer=transformer)
        return draw.one(
            MultiOutputRegressor(inner),
            BaggingRegressor(inner, n_estimators=2, random_state=0),
            VotingRegressor([("a", inner), ("b", Ridge())]),
        )

    def _pipeline(self, data: Data) -> Any:
        draw = self.draw
        steps: list[tuple[str, Any]] = []
        X = data.X
        if data.has_strangers:
            assert data.names is not None
            chosen = draw.some(data.names, least=1)
            step = draw.one(
                ColumnTransformer([("kept", StandardScaler(), chosen)]),
                ColumnTransformer([("kept", "passthrough", chosen)], remainder="drop"),
                ColumnTransformer(
                    [("gone", "drop", ["text", "holes", "date"])], remainder=draw.one("passthrough", MinMaxScaler())
                ),
                ColumnTransformer([("kept", "passthrough", [data.X.columns.get_loc(name) for name in chosen])]),
                ColumnTransformer([("kept", RobustScaler(), data.X.columns.isin(chosen))]),
            )
            steps.append(("columns", step))
            X = clone(step).fit_transform(X)
        for k in range(draw.one(0, 0, 1, 1, 1, 2, 3)):
            step, X = self.steps.step_for(X, depth=0)
            steps.append((draw.one(f"step{k}", f"{k}", f"größe {k}"), step))
        final = self.machines.final(X)
        if isinstance(final, list):  # a feature map and a linear model
            steps += final
        elif not steps and draw.maybe(0.7):
            return final
        else:
            steps.append(("machine", final))
        return self._nested(steps)

    def _nested(self, steps: list[tuple[str, Any]]) -> Any:
        """The steps as one pipeline, or the first or last of them as a pipeline inside it."""
        draw = self.draw
        cut = draw.whole(1, len(steps))
        if len(steps) > 1 and draw.maybe(0.2):
            return Pipeline([*steps[: cut - 1], ("inner", Pipeline(steps[cut - 1 :]))])
        if cut < len(steps) and draw.maybe(0.2):
            return Pipeline([("inner", Pipeline(steps[:cut])), *steps[cut:]])
        return Pipeline(steps)

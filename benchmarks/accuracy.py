"""The paper's Table 1: what the approximation costs in accuracy, about the origin and about the mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import approxsvm
from benchmarks.answers import Answers, check_decision_values
from benchmarks.cases import Case


@dataclass(frozen=True)
class Accuracy:
    """One row of Table 1. Shares, not percent; ``differ`` counts labels other than the exact model's."""

    model: str
    n_features: int
    n_sv: int
    gamma: float
    gamma_max: float
    exact: float
    origin: float
    mean: float
    differ_origin: float
    differ_mean: float


def measure(case: Case, answers: Answers, fast: approxsvm.CompiledSVC) -> Accuracy:
    """Check decision values about both centers, then compare their labels with the exact model's."""
    data = case.data
    exact = answers.exact_labels()
    about_origin = approxsvm.compile(case.model, mode="approximate", center="origin")
    check_decision_values(case, fast, "mean")
    check_decision_values(case, about_origin, "origin")
    mean, origin = fast.predict(data.X_test), about_origin.predict(data.X_test)
    return Accuracy(
        model=case.name,
        n_features=case.n_features,
        n_sv=case.model.n_sv,
        gamma=case.model.gamma,
        gamma_max=approxsvm.gamma_max(data.X_train, data.X_test),
        exact=float(np.mean(exact == data.y_test)),
        origin=float(np.mean(origin == data.y_test)),
        mean=float(np.mean(mean == data.y_test)),
        differ_origin=float(np.mean(origin != exact)),
        differ_mean=float(np.mean(mean != exact)),
    )

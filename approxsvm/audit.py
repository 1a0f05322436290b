"""Compare a compiled model with the exact one, row by row: the promise put to the test."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from approxsvm.errors import InputError
from approxsvm.estimators import STAGES, CompiledModel, proven
from approxsvm.kernel_model import FloatArray, KernelModel
from approxsvm.readers import read_model
from approxsvm.report import shown

_QUANTILES = (0.5, 0.9, 0.99, 1.0)
# Rows that the source's arithmetic is timed and judged on at a time.
_BLOCK_ROWS = 512
# Labels are promised where the exact value is further than this from zero, as a share of sum |a_i|: float64 rounding.
NEAR_TIE = 1e-10


@dataclass(frozen=True)
class Verification:
    """What ``verify`` found.

    Attributes
    ----------
    n_rows : int
        Rows compared.
    label_differences : int
        Labels that differ from the exact model's; None for a regression.
    near_ties : int
        Rows so close to the decision boundary that float64 cannot tell their exact label; not counted as differences.
    bound_violations : int
        Rows whose error exceeds their error bound.
    tolerance, tolerance_violations : float, int
        The promise on values, and rows that break it.
    largest_error_to_bound : float
        The largest ratio; at most 1 when the bound holds.
    error_quantiles, bound_quantiles : dict
        Of |value - exact| and of its bound.
    certified_fraction : float
        Share of the rows that the first stage's own bound proved.
    rows_per_stage : dict
        How many rows each stage answered.
    speed_ratio : float
        Time of the source's arithmetic in float64 NumPy on one thread, over ours, in this run.
    mode : str
        Of the compiled model.
    """

    n_rows: int
    label_differences: int | None
    near_ties: int
    bound_violations: int
    tolerance: float
    tolerance_violations: int
    largest_error_to_bound: float
    error_quantiles: dict[str, float]
    bound_quantiles: dict[str, float]
    certified_fraction: float
    rows_per_stage: dict[str, int]
    speed_ratio: float
    mode: str

    @property
    def kept(self) -> bool:
        """Whether every promise was kept: bounds always, labels and tolerance unless the mode is approximate."""
        labels_kept = self.mode == "approximate" or not self.label_differences
        return self.bound_violations == 0 and self.tolerance_violations == 0 and labels_kept

    def rows(self) -> list[tuple[str, str]]:
        """Names and values as shown to people."""
        return [(name.replace("_", " "), shown(value)) for name, value in self.as_dict().items()]

    def as_dict(self) -> dict[str, Any]:
        """Names and values for machines, the verdict last; None for a tolerance that was not asked for."""
        finite = self.tolerance if np.isfinite(self.tolerance) else None
        return asdict(self) | {"tolerance": finite, "kept": self.kept}


def verify(compiled: CompiledModel, against: Any, X: Any) -> Verification:
    """Compare a compiled model with the model that it was made from, on given rows.

    Parameters
    ----------
    compiled : CompiledSVC, CompiledSVR or CompiledOneClassSVM
    against : fitted estimator, KernelModel, or path
        The source model, evaluated by the definition in float64.
    X : array-like or sparse matrix of shape (n_rows, n_features)

    Returns
    -------
    Verification

    Raises
    ------
    InputError
        There are no rows, or `against` has another task or other labels than `compiled`.
    UnsupportedModelError
        `against` has another number of columns than `compiled`.
    """
    model = read_model(against, n_features=compiled.n_features_in_)
    _check_same_kind(compiled, model)
    rows = compiled._rows(X)
    if rows.shape[0] == 0:
        raise InputError("there are no rows to verify")
    start = time.perf_counter()
    values, bounds, stages = compiled._evaluate(X, bounds=True)
    ours = time.perf_counter() - start
    start = time.perf_counter()
    exact = exact_decision_values(model, rows)
    theirs = time.perf_counter() - start

    scale = float(np.abs(model.coefficients(0)).sum())
    # The exact values are computed too: allow them the rounding of a float64 sum.
    slack = (model.n_sv + model.n_features + 16) * 2.0**-52 * scale + 2.0**-50 * np.abs(exact)
    errors = np.abs(values - exact)
    near_ties = np.abs(exact) <= NEAR_TIE * scale
    differ = ((values > 0.0) != (exact > 0.0)) & ~near_ties
    counts = np.bincount(stages, minlength=len(STAGES))
    tolerance = float(compiled.artifact.header["tolerance"])
    return Verification(
        n_rows=len(values),
        label_differences=None if model.task == "regression" else int(differ.sum()),
        near_ties=int(near_ties.sum()),
        bound_violations=int((errors > bounds + slack).sum()),
        tolerance=tolerance,
        tolerance_violations=int((errors > tolerance + slack).sum()),
        largest_error_to_bound=float(np.max(np.maximum(errors - slack, 0.0) / np.maximum(bounds, 2.0**-1000))),
        error_quantiles=_quantiles(errors),
        bound_quantiles=_quantiles(bounds),
        certified_fraction=float(proven(compiled.artifact, values, bounds, stages).mean()),
        rows_per_stage={name: int(count) for name, count in zip(STAGES, counts, strict=True)},
        speed_ratio=theirs / ours,
        mode=compiled.artifact.mode,
    )


def exact_decision_values(model: KernelModel, rows: Any) -> FloatArray:
    """Decision values by the definition in float64: differences first, so that nothing cancels.

    Parameters
    ----------
    model : KernelModel
        With one decision function.
    rows : ndarray or sparse array of shape (n_rows, n_features)

    Returns
    -------
    ndarray of shape (n_rows,), float64
    """
    from scipy.spatial.distance import cdist

    coef = model.coefficients(0)
    values = np.full(rows.shape[0], float(model.intercept[0]))
    for first in range(0, model.n_sv, 4096):
        last = min(first + 4096, model.n_sv)
        vectors = model.dense_support_vectors(first, last)
        for start in range(0, rows.shape[0], _BLOCK_ROWS):
            part = rows[start : start + _BLOCK_ROWS]
            dense = (part if isinstance(part, np.ndarray) else part.toarray()).astype(np.float64)
            with np.errstate(over="ignore", under="ignore"):
                kernel = np.exp(-model.gamma * cdist(dense, vectors, "sqeuclidean"))
            values[start : start + len(dense)] += kernel @ coef[first:last]
    return values


def _check_same_kind(compiled: CompiledModel, model: KernelModel) -> None:
    if model.task != compiled.artifact.task:
        raise InputError(f"the source model is for {model.task}, but the compiled one for {compiled.artifact.task}")
    labels = compiled.artifact.labels.tolist()
    if model.labels.tolist() != labels:
        raise InputError(f"the source model has the labels {model.labels.tolist()}, but the compiled one {labels}")


def _quantiles(values: FloatArray) -> dict[str, float]:
    return {f"{q:.0%}": float(np.quantile(values, q)) for q in _QUANTILES}

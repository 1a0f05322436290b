"""scikit-learn's linear models: what their coefficients mean, at the end of a pipeline or alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.model.kernel_model import FloatArray, KernelModel, Task
from approxsvm.model.outputs import IsotonicCalibrator, OneVsRestCalibration, Outputs, SigmoidCalibrator
from approxsvm.readers.sklearn.known_types import KNOWN
from approxsvm.readers.sklearn.support_vector_machines import ascending_classes, feature_names, require_fitted

_CLASSIFIERS = frozenset(known.name for known in KNOWN if known.role == "linear classifier")
NAMES = _CLASSIFIERS | {known.name for known in KNOWN if known.role == "linear regression"}


@dataclass(frozen=True, eq=False)
class LinearParts:
    """One linear function and what it means: of two `labels` a positive value means the first."""

    task: Task
    coef: FloatArray
    intercept: float
    labels: Any
    outputs: Outputs


def linear_parts(estimator: Any, name: str) -> LinearParts:
    """Coefficients and meaning of a fitted linear model with one decision function.

    Raises
    ------
    UnsupportedModelError
        It has several: more than two classes (one against the rest) or several targets.
    """
    require_fitted(estimator, name, "coef_")
    given = estimator.coef_
    coef = np.asarray(given.toarray() if issparse(given) else given, dtype=np.float64)  # sparse after sparsify()
    intercept = np.asarray(estimator.intercept_, dtype=np.float64).ravel()
    rows = 1 if coef.ndim == 1 else coef.shape[0]
    if rows != 1:
        what, each = ("classes, one against the rest", "class") if name in _CLASSIFIERS else ("targets", "target")
        raise UnsupportedModelError(
            f"this {name} has {rows} {what}; only one decision function can be read: train one model for each {each}"
        )
    if len(intercept) != 1:
        raise ModelFormatError(f"this {name} has {len(intercept)} intercepts for one decision function")
    if name not in _CLASSIFIERS:
        # SGDRegressor flattens its predictions.
        outputs = Outputs(is_column=coef.ndim == 2 and name != "SGDRegressor")
        return LinearParts("regression", coef.ravel(), float(intercept[0]), np.empty(0), outputs)
    # A value above 0 means classes_[1], and 0 itself classes_[0].
    labels = ascending_classes(estimator.classes_, name)[::-1]
    if len(labels) != 2:
        raise ModelFormatError(f"this {name} has {len(labels)} classes, but one decision function")
    return LinearParts("classification", coef.ravel(), float(intercept[0]), labels, _outputs(estimator, name))


def read_linear(estimator: Any, name: str) -> KernelModel:
    """A linear model alone: one support vector, its coefficients, with the linear kernel.

    The reference is rows @ coef_ + intercept_ over the real numbers.
    """
    parts = linear_parts(estimator, name)
    return KernelModel(
        task=parts.task,
        support_vectors=parts.coef[np.newaxis],
        dual_coef=np.ones(1),
        intercept=np.array([parts.intercept]),
        gamma=1.0,
        degree=1,
        labels=parts.labels,
        source=f"sklearn {name}",
        feature_names=feature_names(estimator),
        outputs=parts.outputs,
    )


def _outputs(estimator: Any, name: str) -> Outputs:
    loss = getattr(estimator, "loss", None) if name == "SGDClassifier" else None
    if name.startswith("LogisticRegression") or loss == "log_loss":
        # Asked for multi_class="multinomial", scikit-learn before 1.8 takes the softmax of -f and f.
        rule = getattr(estimator, "multi_class", "auto")
        softmax = rule not in ("auto", "deprecated", "ovr", "warn") and _scikit_learn_version() < (1, 8)
        return Outputs(probability=OneVsRestCalibration((SigmoidCalibrator(-1.0 - softmax, 0.0),), positive=0))
    if loss == "modified_huber":  # (clip(f, -1, 1) + 1) / 2
        ramp = IsotonicCalibrator(np.array([-1.0, 1.0]), np.array([0.0, 1.0]))
        return Outputs(probability=OneVsRestCalibration((ramp,), positive=0))
    return Outputs()


def _scikit_learn_version() -> tuple[int, ...]:
    from sklearn import __version__

    return tuple(int(part) for part in __version__.split(".")[:2])

"""scikit-learn's linear models, alone or as a pipeline's last step, and the meaning of their coefficients."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.frontends.sklearn.known_types import KNOWN, helper
from approxsvm.frontends.sklearn.remedies import refusal
from approxsvm.frontends.sklearn.support_vector_machines import ascending_classes, feature_names
from approxsvm.ir.ensembles.ensemble import Ensemble
from approxsvm.ir.kernel_model import FloatArray, KernelModel, Task
from approxsvm.ir.outputs import (
    SOFTMAX,
    ClassProbability,
    IsotonicCalibrator,
    OneVsRestCalibration,
    Outputs,
    SigmoidCalibrator,
)
from approxsvm.ir.single_model import SingleModel

_CLASSIFIERS = frozenset(known.name for known in KNOWN if known.role == "linear classifier")
_ONE_CLASS = frozenset(known.name for known in KNOWN if known.role == "linear one-class model")
NAMES = _CLASSIFIERS | _ONE_CLASS | {known.name for known in KNOWN if known.role == "linear regression"}


@dataclass(frozen=True, eq=False)
class LinearParts:
    """Linear functions and their meaning: with two `labels`, a positive value means the first label.

    `coef` has shape (n_functions, n_features). There is one function per target or, with more than two labels, per
    label.
    """

    task: Task
    coef: FloatArray
    intercept: FloatArray
    labels: Any
    outputs: Outputs


def linear_parts(estimator: Any, name: str) -> LinearParts:
    """Return a fitted linear model's coefficients, and the meaning of its functions."""
    given = estimator.coef_
    given = np.asarray(given.toarray() if issparse(given) else given, dtype=np.float64)  # sparse after sparsify()
    constants = -np.asarray(estimator.offset_) if name in _ONE_CLASS else estimator.intercept_
    coef, intercept = np.atleast_2d(given), np.asarray(constants, dtype=np.float64).ravel()
    if len(coef) > 1 and intercept.tolist() == [0.0]:
        intercept = np.zeros(len(coef))  # the model was fitted with fit_intercept=False
    if len(intercept) != len(coef):
        raise ModelFormatError(f"this {name} has {len(intercept)} intercepts for {len(coef)} decision functions")
    if name in _ONE_CLASS:  # a value of 0 also means an inlier
        outputs = Outputs(label_rule="value_threshold", threshold=0.0)
        return LinearParts("one_class", coef, intercept, np.empty(0), outputs)
    if name not in _CLASSIFIERS:
        # SGDRegressor flattens its predictions.
        outputs = Outputs(is_column=given.shape[:-1] == (1,) and name != "SGDRegressor")
        return LinearParts("regression", coef, intercept, np.empty(0), outputs)
    if (
        name.startswith("RidgeClassifier")
        and hasattr(estimator, "_label_binarizer")
        and helper(estimator._label_binarizer, "_label_binarizer", "LabelBinarizer").y_type_.startswith("multilabel")
    ):
        raise UnsupportedModelError(refusal(estimator, "of several labels for each row"))
    labels = ascending_classes(estimator.classes_, name)
    if len(labels) == 1:
        raise UnsupportedModelError(refusal(estimator, "of one class, which it predicts for every row"))
    # liblinear drops classes whose rows all have weight 0; `predict` then uses the first labels in `classes_`.
    if name == "LinearSVC" and len(coef) != 2:
        labels = labels[: max(2, len(coef))]
    if len(labels) != (2 if len(coef) == 1 else len(coef)):
        functions = "one decision function" if len(coef) == 1 else f"{len(coef)} decision functions"
        raise ModelFormatError(f"this {name} has {len(labels)} classes, but {functions}")
    if len(coef) == 1:  # a value above 0 means classes_[1], and a value of 0 means classes_[0]
        return LinearParts("classification", coef, intercept, labels[::-1], _outputs(estimator, name))
    return LinearParts("classification", coef, intercept, labels, _outputs_of_several(estimator, name))


def read_functions(
    parts: LinearParts, read: Callable[[LinearParts], SingleModel], *, several: bool
) -> SingleModel | Ensemble:
    """Build one model, or an ensemble with one model per target, or per class unless `several` is True.

    If `several` is True, one model may contain the functions of all classes.
    """
    if len(parts.coef) == 1 or (len(parts.labels) and several):
        return read(parts)
    functions = [
        LinearParts("regression", coef[np.newaxis], intercept[np.newaxis], np.empty(0), Outputs())
        for coef, intercept in zip(parts.coef, parts.intercept, strict=True)
    ]
    members = tuple(map(read, functions))
    if len(parts.labels):
        return Ensemble(members, source=members[0].source, outputs=parts.outputs, classes=parts.labels)
    return Ensemble(members, source=f"{members[0].source}, {len(members)} targets")


def read_linear(estimator: Any, name: str) -> SingleModel | Ensemble:
    """Read a linear model as a linear kernel machine, with each function's coefficients as a support vector.

    The reference is rows @ coef_.T + intercept_ in exact arithmetic.
    """

    def read(parts: LinearParts) -> KernelModel:
        return KernelModel(
            task=parts.task,
            support_vectors=parts.coef,
            dual_coef=np.eye(len(parts.coef)),
            intercept=parts.intercept,
            gamma=1.0,
            degree=1,
            labels=parts.labels,
            source=f"sklearn {name}",
            feature_names=feature_names(estimator),
            outputs=parts.outputs,
        )

    return read_functions(linear_parts(estimator, name), read, several=True)


def _outputs(estimator: Any, name: str) -> Outputs:
    loss = getattr(estimator, "loss", None) if name == "SGDClassifier" else None
    if name.startswith("LogisticRegression") or loss == "log_loss":
        # With multi_class="multinomial", scikit-learn before 1.8 computes the softmax of -f and f.
        rule = getattr(estimator, "multi_class", "auto")
        softmax = rule not in ("auto", "deprecated", "ovr", "warn") and _scikit_learn_version() < (1, 8)
        return Outputs(probability=OneVsRestCalibration((SigmoidCalibrator(-1.0 - softmax, 0.0),), positive=0))
    if loss == "modified_huber":  # (clip(f, -1, 1) + 1) / 2
        ramp = IsotonicCalibrator(np.array([-1.0, 1.0]), np.array([0.0, 1.0]))
        return Outputs(probability=OneVsRestCalibration((ramp,), positive=0))
    return Outputs()


def _outputs_of_several(estimator: Any, name: str) -> Outputs:
    """Return outputs whose label has the largest value; probabilities are softmax or normalized one-vs-rest."""
    n = len(estimator.classes_)
    probability: ClassProbability | None = None
    loss = getattr(estimator, "loss", None) if name == "SGDClassifier" else None
    if name.startswith("LogisticRegression"):
        # This is scikit-learn's condition for class-by-class fits, which version 1.8 removed.
        rule, by_liblinear = getattr(estimator, "multi_class", "auto"), estimator.solver == "liblinear"
        by_class = rule in ("ovr", "warn") or (rule in ("auto", "deprecated") and by_liblinear)
        by_class = by_class and _scikit_learn_version() < (1, 8)
        probability = OneVsRestCalibration((SigmoidCalibrator(-1.0, 0.0),) * n) if by_class else SOFTMAX
    elif loss == "log_loss":
        probability = OneVsRestCalibration((SigmoidCalibrator(-1.0, 0.0),) * n)
    elif loss == "modified_huber":
        probability = OneVsRestCalibration((IsotonicCalibrator(np.array([-1.0, 1.0]), np.array([0.0, 1.0])),) * n)
    return Outputs(probability, label_rule="scores", decision_shape="each")


def _scikit_learn_version() -> tuple[int, ...]:
    from sklearn import __version__

    return tuple(int(part) for part in __version__.split(".")[:2])

"""Frontend for meta-estimators that predict labels by comparison with a threshold."""

from dataclasses import replace
from typing import Any

from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.frontends.sklearn.known_types import class_name, helper
from approxsvm.frontends.sklearn.pipeline import Model, Read
from approxsvm.frontends.sklearn.remedies import refusal
from approxsvm.frontends.sklearn.support_vector_machines import ascending_classes
from approxsvm.ir.ensembles.ensemble import Ensemble
from approxsvm.ir.outputs import ClassProbability


def read_threshold(estimator: Any, read: Read) -> Model:
    """Read a fitted FixedThresholdClassifier or TunedThresholdClassifierCV.

    The positive class is predicted if its probability or decision value is at least the threshold.
    """
    name = class_name(estimator)
    if hasattr(estimator, "_curve_scorer"):
        inner, threshold = estimator.estimator_, estimator.best_threshold_
        positive = helper(estimator._curve_scorer, "_curve_scorer", "_CurveScorer")._get_pos_label()
    else:
        inner = getattr(estimator, "estimator_", estimator.estimator)
        threshold, positive = estimator.threshold, estimator.pos_label
    model = read(inner)
    labels = model.labels.tolist()
    if estimator.response_method not in ("auto", "predict_proba", "decision_function"):
        raise ModelFormatError(f"response_method of this {name} is {estimator.response_method!r}")
    if len(labels) != 2 or sorted(labels) != ascending_classes(inner.classes_, name).tolist():
        raise UnsupportedModelError(refusal(estimator, f"of the classes {labels}"))
    method = estimator.response_method
    if method == "auto":
        method = "predict_proba" if hasattr(inner, "predict_proba") else "decision_function"
    if isinstance(threshold, str):
        threshold = 0.5 if method == "predict_proba" else 0.0
    positive = inner.classes_[1] if positive is None else positive
    if positive not in labels:
        raise ModelFormatError(f"pos_label of this {name} is {positive!r}, none of the classes {labels}")
    if float(threshold) != threshold:
        raise UnsupportedModelError(f"the threshold of this {name} is {threshold!r}, which float64 cannot hold")
    numbers: dict[str, Any] = {"threshold": float(threshold), "threshold_label": labels.index(positive)}
    if method == "predict_proba":
        if not isinstance(model.outputs.probability, ClassProbability):
            raise UnsupportedModelError(refusal(estimator, f"by predict_proba of a {model.source}"))
        if not isinstance(model, Ensemble) and not hasattr(inner, "decision_function"):
            model = Ensemble((model,), model.source)  # a mean has no decision values either
        return replace(model, outputs=replace(model.outputs, label_rule="probability_threshold", **numbers))
    is_sum = isinstance(model, Ensemble) and model.labels_sum
    if (isinstance(model, Ensemble) and not is_sum) or not hasattr(inner, "decision_function"):
        raise UnsupportedModelError(refusal(estimator, f"by {method} of a {model.source}"))
    return replace(model, outputs=replace(model.outputs, label_rule="value_threshold", **numbers))

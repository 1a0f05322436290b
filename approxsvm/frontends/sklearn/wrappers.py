"""Frontend for scikit-learn's wrappers: calibration, transformed targets, parameter searches, selected features."""

from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

import numpy as np

from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.frontends.sklearn.kernel_machines import Regression, restored
from approxsvm.frontends.sklearn.known_types import class_name, helper, name_of
from approxsvm.frontends.sklearn.meta_estimators.means import mean_of_members
from approxsvm.frontends.sklearn.pipeline import Model, Read, allows_nan, overwrites, with_input_map
from approxsvm.frontends.sklearn.support_vector_machines import ascending_classes, feature_names
from approxsvm.ir.ensembles.ensemble import Ensemble
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.outputs import (
    IsotonicCalibrator,
    OneVsRestCalibration,
    Outputs,
    SigmoidCalibrator,
    TemperatureCalibration,
)
from approxsvm.ir.single_model import SingleModel

# Selectors that apply an inner estimator to the selected features.
SELECTED: Final = ("RFE", "RFECV")


def read_search(estimator: Any, read: Read) -> Model:
    """Read a fitted parameter search, which predicts with `best_estimator_`."""
    if hasattr(estimator, "cv_results_") and not hasattr(estimator, "best_estimator_"):
        raise UnsupportedModelError(
            f"this {class_name(estimator)} has no best_estimator_: it was fitted with refit=False; "
            "fit it with refit=True, or fit an estimator with the best parameters and compile that"
        )
    if not estimator.refit:
        raise UnsupportedModelError(
            f"this {class_name(estimator)} does not predict, because its refit is {estimator.refit}; "
            "compile its best_estimator_"
        )
    return read(estimator.best_estimator_)


def read_selected(estimator: Any, read: Read) -> Model:
    """Read a fitted RFE or RFECV, which predicts by applying an inner estimator to the selected features."""
    support = np.asarray(estimator.support_)
    rows = InputMap.identity(len(support), feature_names(estimator))
    rows = rows if allows_nan(estimator) else rows.looked_at(takes_nan=False)
    return with_input_map(read(estimator.estimator_), rows.then_select(np.flatnonzero(support)))


def read_calibrated(estimator: Any, read: Read) -> Model:
    """Read a fitted CalibratedClassifierCV; a single inner classifier becomes a model, several become an Ensemble.

    The predicted label is the most probable one, which may differ from the inner classifier's label. The reference is
    the calibrators' formula at the exact decision values.
    """
    classes = ascending_classes(estimator.classes_, "CalibratedClassifierCV")
    members = [_calibrated(inner, classes, read) for inner in estimator.calibrated_classifiers_]
    if any(overwrites(_inside(inner)) for inner in estimator.calibrated_classifiers_[:-1]):
        raise UnsupportedModelError(
            "a scaler in this CalibratedClassifierCV overwrites (copy=False) the rows of the other members; refit with "
            "copy=True"
        )
    return mean_of_members(members, [Fraction(1)] * len(members), classes)


def read_transformed_target(estimator: Any, read: Read) -> Model:
    """Read a fitted TransformedTargetRegressor whose transformer is affine (a scaler) or absent.

    The reference is the regressor's reference, transformed back exactly with the transformer's parameters.
    """
    model = read(estimator.regressor_)
    if model.task != "regression":
        raise UnsupportedModelError("the regressor of this TransformedTargetRegressor is not a regression model")
    transformer = estimator.transformer_
    if isinstance(model, Ensemble):
        restored_members = tuple(_restored(member, transformer, k) for k, member in enumerate(model.members))
        return replace(model, members=restored_members)
    if model.n_decisions > 1:
        return _restored_targets(model, transformer)
    outputs = replace(model.outputs, is_column=estimator._training_dim == 2)
    return replace(_restored(model, transformer, 0), outputs=outputs)


def _restored_targets(model: Any, transformer: Any) -> SingleModel:
    """Restore each target of a multi-target model to its original units."""
    coefficients = "coef" if hasattr(model, "coef") else "dual_coef"
    by_target = (coefficients, "intercept", "value_error")
    parts = []
    for k in range(model.n_decisions):
        only = {name: getattr(model, name)[k : k + 1] for name in by_target}
        parts.append(_restored(replace(model, **only), transformer, k))
    together = {name: np.concatenate([getattr(part, name) for part in parts]) for name in by_target}
    restored_model: SingleModel = replace(model, **together)
    return restored_model


def _restored(model: Regression, transformer: Any, target: int) -> Regression:
    """Apply a transformer's inverse to the values of a single-target regressor."""
    kind = name_of(transformer)
    if kind == "FunctionTransformer" and transformer.func is None and transformer.inverse_func is None:
        return model
    if kind in ("StandardScaler", "RobustScaler"):
        mean = transformer.mean_ if kind == "StandardScaler" else transformer.center_
        with_mean = transformer.with_mean if kind == "StandardScaler" else transformer.with_centering
        with_scale = transformer.with_std if kind == "StandardScaler" else transformer.with_scaling
        factor = Fraction(float(transformer.scale_[target]) if with_scale else 1.0)
        return restored(model, factor, Fraction(float(mean[target]) if with_mean else 0.0))
    if kind == "MaxAbsScaler":
        return restored(model, Fraction(float(transformer.scale_[target])), Fraction(0))
    if kind == "MinMaxScaler":
        scale, least = Fraction(float(transformer.scale_[target])), Fraction(float(transformer.min_[target]))
        return restored(model, 1 / scale, -least / scale)
    raise UnsupportedModelError(
        f"the target transformer ({class_name(transformer)}) is not affine; "
        "compile regressor_ alone and apply transformer_.inverse_transform to its predictions"
    )


def _inside(inner: Any) -> Any:
    """Return the calibrated estimator, whose attribute is called `base_estimator` before scikit-learn 1.2."""
    return vars(inner)["estimator" if "estimator" in vars(inner) else "base_estimator"]


def _calibrated(inner: Any, classes: Any, read: Read) -> SingleModel:
    if name_of(inner) != "_CalibratedClassifier":
        raise UnsupportedModelError(f"calibrated_classifiers_ holds a {class_name(inner)}")
    estimator = _inside(inner)
    model = read(estimator)
    if isinstance(model, Ensemble) or model.task != "classification":
        raise UnsupportedModelError(f"cannot calibrate a {model.source}")
    if not hasattr(estimator, "decision_function"):
        raise UnsupportedModelError(
            f"this CalibratedClassifierCV calibrates the probabilities of its {class_name(estimator)}, which has "
            "no decision_function because it is already calibrated; compile that one, or calibrate its inner estimator"
        )
    labels = model.labels
    if len(labels) != len(classes):
        _check_some_classes(inner, len(labels), len(classes))
    inner_classes = ascending_classes(estimator.classes_, class_name(estimator)).tolist()
    calibrated = np.unique(inner.classes).tolist()
    # With temperature scaling, the inner classes may be numbers instead of the labels; only their order matters.
    same = len(calibrated) == len(labels) if inner.method == "temperature" else {*inner_classes} <= {*calibrated}
    if not same or sorted(labels.tolist()) != inner_classes:
        raise ModelFormatError(f"the labels {labels.tolist()} are not the classes {calibrated}")
    if len(labels) == 2 and labels.tolist() != inner_classes:
        model = model.negated()
    shape = model.outputs.decision_shape
    several = len(labels) > 2
    if inner.method == "temperature":
        if several and shape == "ovo":
            raise UnsupportedModelError("temperature scaling of pairwise values (decision_function_shape='ovo')")
        probability: Any = _temperature(inner.calibrators[0])
    elif inner.method in ("sigmoid", "isotonic"):
        calibrators = tuple(_calibrator(c) for c in inner.calibrators)
        probability = OneVsRestCalibration(calibrators, decision_shape="ovo" if several and shape == "ovo" else "ovr")
    else:
        raise UnsupportedModelError(f"calibration by the method {inner.method!r}")
    return replace(
        model,
        labels=classes[np.isin(classes, inner_classes)] if len(labels) < len(classes) else classes,
        outputs=Outputs(probability=probability, label_rule="probability", decision_shape=shape),
        source=f"calibrated {model.source}",
    )


def _check_some_classes(inner: Any, n_own: int, n_classes: int) -> None:
    """Reject a classifier trained on a subset of the classes if scikit-learn would fail or mix up its class columns.

    If all its calibrators return 0, all classes get equal probabilities.
    """
    may_be_zero = all(name_of(c) == "IsotonicRegression" and _isotonic(c).heights[0] <= 0 for c in inner.calibrators)
    if n_own > n_classes or n_own < 3 or inner.method == "temperature" or may_be_zero:
        raise UnsupportedModelError(
            f"a calibrated classifier (method={inner.method!r}) knows {n_own} of the {n_classes} classes; refit with "
            "folds that have all"
        )


def _temperature(calibrator: Any) -> TemperatureCalibration:
    if name_of(calibrator) != "_TemperatureScaling":
        raise UnsupportedModelError(f"temperature scaling by a {class_name(calibrator)}")
    return TemperatureCalibration(float(calibrator.beta_))


def _calibrator(calibrator: Any) -> SigmoidCalibrator | IsotonicCalibrator:
    kind = name_of(calibrator)
    if kind == "_SigmoidCalibration":
        return SigmoidCalibrator(float(calibrator.a_), float(calibrator.b_))
    if kind == "IsotonicRegression":
        return _isotonic(calibrator)
    raise UnsupportedModelError(f"calibration by a {class_name(calibrator)}")


def _isotonic(calibrator: Any) -> IsotonicCalibrator:
    """Read an isotonic calibrator from its thresholds; check that `f_`, which scikit-learn calls, agrees with them."""
    knots, heights = (np.asarray(v, np.float64) for v in (calibrator.X_thresholds_, calibrator.y_thresholds_))
    if np.asarray(calibrator.X_thresholds_).dtype != np.float64:
        raise UnsupportedModelError(
            f"its isotonic calibrator computes in {calibrator.X_thresholds_.dtype}, the dtype of the rows of "
            "fit; refit it with X.astype(np.float64)"
        )
    if calibrator.out_of_bounds != "clip":
        raise UnsupportedModelError(f"isotonic calibration with out_of_bounds={calibrator.out_of_bounds!r}")
    if len(knots) == 1:  # in this case, `f_` is an anonymous function
        agrees = np.array_equal(calibrator.f_(knots), heights)
    else:
        f = helper(calibrator.f_, "f_", "interp1d")
        agrees = np.array_equal(f.x, knots) and np.array_equal(f.y, heights)
        agrees = agrees and np.allclose(f((knots[1:] + knots[:-1]) / 2), (heights[1:] + heights[:-1]) / 2, 1e-9, 1e-12)
    if not agrees or (calibrator.X_min_, calibrator.X_max_) != (knots[0], knots[-1]):
        raise ModelFormatError("f_, X_min_ or X_max_ of an IsotonicRegression contradict its thresholds")
    return IsotonicCalibrator(knots, heights)

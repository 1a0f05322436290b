"""Fitted estimators, recognised by their classes (known_types) without importing any library."""

from __future__ import annotations

from typing import Any

from approxsvm.errors import ApproxSVMError, ModelFormatError, UnsupportedModelError
from approxsvm.model.ensemble import Ensemble
from approxsvm.model.single_model import SingleModel
from approxsvm.readers.sklearn import kernel_machines, linear_models, pipeline, support_vector_machines, wrappers
from approxsvm.readers.sklearn.known_types import KNOWN, class_name, full_class_name, recognise

_READ_ALONE = ("LinearSVC", "LinearSVR")
_SUPPORTED = tuple(
    known.name
    for known in KNOWN
    if known.library == "sklearn"
    and (known.role in ("kernel machine", "pipeline", "wrapper", "search") or known.name in _READ_ALONE)
)


def read_estimator(estimator: Any) -> SingleModel | Ensemble:
    """Read a fitted estimator: a kernel machine, a pipeline that ends in one, or an estimator around one.

    Returns
    -------
    KernelModel
        Sums of RBF, linear or polynomial kernels: SVC, NuSVC, SVR, NuSVR, OneClassSVM, KernelRidge,
        GaussianProcessRegressor, Nystroem with a linear model, LinearSVC and LinearSVR; SVC and SVR of cuML, those of
        ThunderSVM.
    TaylorModel
        TaylorFeatures with a linear model.
    CosineModel
        RBFSampler with a linear model.
    Ensemble
        CalibratedClassifierCV with ensemble=True.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The estimator has not been fitted.
    UnsupportedModelError
        It is of another class, of a subclass with methods of its own, or has another kernel.
    ModelFormatError
        Its fitted attributes contradict each other.
    """
    try:
        return _read(estimator)
    except ApproxSVMError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        from sklearn.exceptions import NotFittedError

        if isinstance(error, NotFittedError):
            raise
        # Attributes that somebody has edited are of any type and shape.
        raise ModelFormatError(
            f"a fitted attribute of this {class_name(estimator)} is not what fit leaves: {class_name(error)}: {error}"
        ) from error


def _read(estimator: Any) -> SingleModel | Ensemble:
    model = _read_known(estimator)
    count = getattr(estimator, "n_features_in_", None)
    if count not in (None, model.n_raw_features):
        raise ModelFormatError(
            f"n_features_in_ of this {class_name(estimator)} is {count}, but what it has learned takes "
            f"{model.n_raw_features} features"
        )
    return model


def _read_known(estimator: Any) -> SingleModel | Ensemble:
    known = recognise(estimator)
    if known is None:
        raise UnsupportedModelError(_cannot_compile(estimator))
    library, name = known.library, known.name
    if library == "cuml":
        return support_vector_machines.read_cuml(estimator, name)
    if library == "thundersvm":
        return support_vector_machines.read_thundersvm(estimator, name)
    if name in support_vector_machines.TASKS:
        return support_vector_machines.read_svm(estimator, name)
    if name in _READ_ALONE:
        return linear_models.read_linear(estimator, name)
    if name == "KernelRidge":
        return kernel_machines.read_kernel_ridge(estimator, name)
    if name == "GaussianProcessRegressor":
        return kernel_machines.read_gaussian_process(estimator, name)
    if known.role == "pipeline":
        return pipeline.read_pipeline(estimator, _read)
    if name == "CalibratedClassifierCV":
        return wrappers.read_calibrated(estimator, _read)
    if name == "TransformedTargetRegressor":
        return wrappers.read_transformed_target(estimator, _read)
    if name == "FrozenEstimator":
        return _read(estimator.estimator)
    if known.role == "search":
        support_vector_machines.require_fitted(estimator, name, "best_estimator_")
        return _read(estimator.best_estimator_)
    raise UnsupportedModelError(_cannot_compile(estimator))


def _cannot_compile(estimator: Any) -> str:
    return (
        f"cannot compile a {full_class_name(estimator)}; supported are {', '.join(_SUPPORTED)} of scikit-learn, "
        "pipelines of Nystroem or TaylorFeatures and a linear model, SVC and SVR of cuML, ThunderSVM's estimators, and "
        "LIBSVM model files"
    )

"""Fitted estimators, recognised by the names of their classes without importing any library."""

from __future__ import annotations

from typing import Any

from approxsvm.errors import UnsupportedModelError
from approxsvm.model.ensemble import Ensemble
from approxsvm.model.single_model import SingleModel
from approxsvm.readers.sklearn import kernel_machines, linear_models, pipeline, support_vector_machines, wrappers

_SEARCHES = ("GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV")
_READ_ALONE = ("LinearSVC", "LinearSVR")


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
    library, name = _recognise(estimator)
    support_vector_machines.require_own_methods(estimator)
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
    if name == "Pipeline":
        return pipeline.read_pipeline(estimator, read_estimator)
    if name == "CalibratedClassifierCV":
        return wrappers.read_calibrated(estimator, read_estimator)
    if name == "TransformedTargetRegressor":
        return wrappers.read_transformed_target(estimator, read_estimator)
    if name == "FrozenEstimator":
        return read_estimator(estimator.estimator)
    support_vector_machines.require_fitted(estimator, name, "best_estimator_")
    return read_estimator(estimator.best_estimator_)


_NAMES = {
    "cuml": ("SVC", "SVR"),
    "sklearn": (
        *support_vector_machines.TASKS,
        *_READ_ALONE,
        "KernelRidge",
        "GaussianProcessRegressor",
        "Pipeline",
        "CalibratedClassifierCV",
        "TransformedTargetRegressor",
        "FrozenEstimator",
        *_SEARCHES,
    ),
    "thundersvm": tuple(support_vector_machines.TASKS),
}


def _recognise(estimator: Any) -> tuple[str, str]:
    """Library and class that `estimator` is or derives from."""
    for base in type(estimator).__mro__:
        library = base.__module__.split(".")[0]
        if base.__name__ in _NAMES.get(library, ()):
            return library, base.__name__
    raise UnsupportedModelError(
        f"cannot compile a {type(estimator).__module__}.{type(estimator).__qualname__}; supported are "
        f"{', '.join(_NAMES['sklearn'])} of scikit-learn, pipelines of Nystroem or TaylorFeatures and a linear model, "
        "SVC and SVR of cuML, ThunderSVM's estimators, and LIBSVM model files"
    )

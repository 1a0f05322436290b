"""Fitted estimators, recognised by the names of their classes without importing any library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from approxsvm.errors import UnsupportedModelError
from approxsvm.model.ensemble import Ensemble
from approxsvm.model.single_model import SingleModel
from approxsvm.readers.sklearn import kernel_machines, linear_models, pipeline, support_vector_machines, wrappers
from approxsvm.readers.sklearn.instead import refusal

# Estimators around one of the same rows, which `read` reads.
_AROUND: Final[dict[str, Callable[[Any, pipeline.Read], SingleModel | Ensemble]]] = {
    "CalibratedClassifierCV": wrappers.read_calibrated,
    "FrozenEstimator": lambda frozen, read: read(frozen.estimator),
    "GridSearchCV": wrappers.read_search,
    "HalvingGridSearchCV": wrappers.read_search,
    "HalvingRandomSearchCV": wrappers.read_search,
    "RandomizedSearchCV": wrappers.read_search,
    "TransformedTargetRegressor": wrappers.read_transformed_target,
}
_SELECTED: Final = ("RFE", "RFECV")


def read_estimator(estimator: Any) -> SingleModel | Ensemble:
    """Read a fitted estimator: a kernel machine, a pipeline that ends in one, or an estimator around one.

    Returns
    -------
    KernelModel
        Sums of RBF, linear or polynomial kernels: SVC, NuSVC, SVR, NuSVR, OneClassSVM, KernelRidge,
        GaussianProcessRegressor, linear models, alone or behind Nystroem; SVC and SVR of cuML, those of ThunderSVM.
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
    if name in linear_models.NAMES:
        return linear_models.read_linear(estimator, name)
    if name == "KernelRidge":
        return kernel_machines.read_kernel_ridge(estimator, name)
    if name == "GaussianProcessRegressor":
        return kernel_machines.read_gaussian_process(estimator, name)
    if name == "Pipeline":
        return pipeline.read_pipeline(estimator, read_estimator, _AROUND)
    if name in _SELECTED:
        return wrappers.read_selected(estimator, read_estimator)
    return _AROUND[name](estimator, read_estimator)


_NAMES = {
    "cuml": ("SVC", "SVR"),
    "sklearn": (
        *support_vector_machines.TASKS,
        *linear_models.NAMES,
        "KernelRidge",
        "GaussianProcessRegressor",
        "Pipeline",
        *_SELECTED,
        *_AROUND,
    ),
    "thundersvm": tuple(support_vector_machines.TASKS),
}


def _recognise(estimator: Any) -> tuple[str, str]:
    """Library and class that `estimator` is or derives from."""
    for base in type(estimator).__mro__:
        library = base.__module__.split(".")[0]
        if base.__name__ in _NAMES.get(library, ()):
            return library, base.__name__
    raise UnsupportedModelError(refusal(estimator))

"""Frontend for fitted estimators; `known_types` recognises their classes without importing any library."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.frontends.sklearn import (
    gaussian_processes,
    kernel_machines,
    linear_models,
    meta_estimators,
    pipeline,
    support_vector_machines,
    wrappers,
)
from approxsvm.frontends.sklearn.dtypes import row_dtypes
from approxsvm.frontends.sklearn.known_types import KNOWN, class_name, recognise
from approxsvm.frontends.sklearn.remedies import refusal
from approxsvm.ir.ensembles.ensemble import Ensemble
from approxsvm.ir.outputs import SignAlone
from approxsvm.ir.single_model import SingleModel

_SEARCHES: Final = tuple(known.name for known in KNOWN if known.role == "search")
# Wrappers that predict exactly as the inner estimator does.
_TRANSPARENT: Final = (*_SEARCHES, "FrozenEstimator", "SelfTrainingClassifier")
# Wrappers that use the inner estimator's labels if it has no probabilities.
_USING_LABELS: Final = (
    *("BaggingClassifier", "BalancedBaggingClassifier", "MultiOutputClassifier", "VotingClassifier"),
)


def _checking_values(name: str, read_around: pipeline.ReadAround) -> pipeline.ReadAround:
    """Return a reader for wrappers that use inner scores or probabilities; the reader rejects members without these."""

    def read_wrapper(estimator: Any, read: pipeline.Read) -> SingleModel | Ensemble:
        def read_inner(inner: Any) -> SingleModel | Ensemble:
            model = read(inner)
            if isinstance(model.outputs.probability, SignAlone):
                if name in _USING_LABELS and not hasattr(inner, "predict_proba"):
                    return model
                raise UnsupportedModelError(
                    f"this {name} uses values or probabilities of its {class_name(inner)}, of which only labels are "
                    "read: compile what is inside, or predict with the source itself"
                )
            return model

        return read_around(estimator, read_inner)

    return read_wrapper


# Readers of wrappers, which pass their rows unchanged to inner estimators; `read` reads the inner estimators.
_READ_AROUND: Final[dict[str, Callable[[Any, pipeline.Read], SingleModel | Ensemble]]] = {
    "CalibratedClassifierCV": wrappers.read_calibrated,
    "FrozenEstimator": lambda frozen, read: read(frozen.estimator),
    **dict.fromkeys(_SEARCHES, wrappers.read_search),
    **meta_estimators.READERS,
    "SelfTrainingClassifier": lambda trained, read: read(trained.estimator_),
    "TransformedTargetRegressor": wrappers.read_transformed_target,
}


_AROUND: Final = {
    name: read_around if name in _TRANSPARENT else _checking_values(name, read_around)
    for name, read_around in _READ_AROUND.items()
}


def read_estimator(estimator: Any) -> SingleModel | Ensemble:
    """Read a fitted estimator: a kernel machine, a pipeline that ends in one, or an estimator that wraps one.

    Raises scikit-learn's NotFittedError if the estimator has not been fitted, UnsupportedModelError if its class is
    unknown, a subclass overrides methods, or the kernel is unsupported, and ModelFormatError if fitted attributes are
    inconsistent.
    """
    with support_vector_machines.reporting_edits(estimator):
        model = _read(estimator)
        dtypes = row_dtypes(estimator, model.n_raw_features)
        model = pipeline.with_same_texts(model)
        if not isinstance(model, Ensemble):
            return replace(model, row_dtypes=dtypes)
        return replace(model, members=tuple(replace(member, row_dtypes=dtypes) for member in model.members))


def _read(estimator: Any) -> SingleModel | Ensemble:
    model = _read_known(estimator)
    count = getattr(estimator, "n_features_in_", None)
    if count not in (None, model.n_raw_features):
        raise ModelFormatError(
            f"n_features_in_ of this {class_name(estimator)} is {count}, but its fitted attributes are for "
            f"{model.n_raw_features} features"
        )
    return model


def _read_known(estimator: Any) -> SingleModel | Ensemble:
    known = recognise(estimator)
    if known is None:
        raise UnsupportedModelError(refusal(estimator))
    library, name = known.library, known.name
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
        return gaussian_processes.read_gaussian_process(estimator, name)
    if name == "KernelDensity":
        return kernel_machines.read_density(estimator, name)
    if name in gaussian_processes.CLASSIFIERS:
        return gaussian_processes.read_gaussian_process_classifier(estimator, name)
    if known.role == "pipeline":
        return pipeline.read_pipeline(estimator, _read, _AROUND)
    if name in wrappers.SELECTED:
        return wrappers.read_selected(estimator, _read)
    if name in _AROUND:
        return _AROUND[name](estimator, _read)
    raise UnsupportedModelError(refusal(estimator))

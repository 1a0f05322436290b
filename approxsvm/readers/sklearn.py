"""Fitted scikit-learn support vector machines, recognised by class without importing scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.kernel_model import KernelModel, Task

_TASKS: dict[str, Task] = {
    "SVC": "classification",
    "NuSVC": "classification",
    "SVR": "regression",
    "NuSVR": "regression",
    "OneClassSVM": "one_class",
}


def read_estimator(estimator: Any) -> KernelModel:
    """Read a fitted SVC, NuSVC, SVR, NuSVR or OneClassSVM (or a subclass) with the RBF kernel.

    Returns
    -------
    KernelModel

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The estimator has not been fitted.
    UnsupportedModelError
        It is of another class or has another kernel.
    ModelFormatError
        Its fitted attributes contradict each other.
    """
    name = _class_name(estimator)
    if not hasattr(estimator, "support_vectors_"):
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(f"this {name} is not fitted yet: call fit before compiling it")
    kernel = estimator.kernel
    if kernel != "rbf":
        found = f"the callable {getattr(kernel, '__name__', kernel)!r}" if callable(kernel) else repr(kernel)
        raise UnsupportedModelError(f"the kernel of this {name} is {found}, only 'rbf' can be compiled")
    task = _TASKS[name]
    support_vectors, dual_coef = estimator.support_vectors_, estimator._dual_coef_
    if hasattr(support_vectors, "tocsr"):
        from scipy.sparse import csr_array

        support_vectors = csr_array(support_vectors, dtype=np.float64)
        support_vectors.sum_duplicates()
    else:
        support_vectors = np.ascontiguousarray(support_vectors, dtype=np.float64)
    if hasattr(dual_coef, "toarray"):
        dual_coef = dual_coef.toarray()
    names = getattr(estimator, "feature_names_in_", None)
    labels = np.asarray(estimator.classes_) if task == "classification" else np.empty(0)
    return KernelModel(
        task=task,
        support_vectors=support_vectors,
        dual_coef=np.ascontiguousarray(dual_coef, dtype=np.float64),
        intercept=np.array(estimator._intercept_, dtype=np.float64).ravel(),
        gamma=float(estimator._gamma),
        labels=labels,
        n_support=_n_support(estimator, len(labels), int(support_vectors.shape[0])),
        source=f"sklearn {name}",
        feature_names=None if names is None else tuple(str(column) for column in names),
    )


def _class_name(estimator: Any) -> str:
    """The scikit-learn class that `estimator` is or derives from."""
    for base in type(estimator).__mro__:
        if base.__module__.startswith("sklearn.svm.") and base.__name__ in _TASKS:
            return base.__name__
    raise UnsupportedModelError(
        f"cannot compile a {type(estimator).__module__}.{type(estimator).__qualname__}; "
        f"supported are {', '.join(_TASKS)} of scikit-learn, and LIBSVM model files"
    )


def _n_support(estimator: Any, n_classes: int, n_sv: int) -> Any:
    """Support vectors per class; a tampered pickle is caught here, before it is used to index."""
    if n_classes == 0:
        return np.empty(0, np.int64)
    counts = np.asarray(estimator.n_support_, dtype=np.int64)
    if len(counts) != n_classes or (counts < 0).any() or int(counts.sum()) != n_sv:
        raise ModelFormatError(
            f"n_support_ is {counts.tolist()}, which does not fit {n_classes} classes and {n_sv} support vectors"
        )
    return counts

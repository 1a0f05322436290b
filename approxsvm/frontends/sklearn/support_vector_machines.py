"""Support vector machines from scikit-learn, cuML and ThunderSVM, which have nearly the same attributes."""

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from approxsvm.errors import ApproxSVMError, ModelFormatError, UnsupportedModelError
from approxsvm.frames.rows import first_row_out_of_order
from approxsvm.frontends import libsvm
from approxsvm.frontends.sklearn.host_arrays import host_array
from approxsvm.frontends.sklearn.known_types import class_name, recognise
from approxsvm.ir.kernel_model import MAX_KERNEL_DEGREE, KernelModel, Task
from approxsvm.ir.outputs import (
    OneVsRestCalibration,
    Outputs,
    PairwiseSigmoid,
    SigmoidCalibrator,
    SignAlone,
    class_pairs,
)

TASKS: dict[str, Task] = {
    "SVC": "classification",
    "NuSVC": "classification",
    "SVR": "regression",
    "NuSVR": "regression",
    "OneClassSVM": "one_class",
}
KERNEL_DEGREES = range(1, MAX_KERNEL_DEGREE + 1)


def read_svm(estimator: Any, name: str) -> KernelModel:
    """Read a fitted SVC, NuSVC, SVR, NuSVR or OneClassSVM; `name` is the class name.

    The reference is K(rows, support_vectors_) @ _dual_coef_ + _intercept_ in exact arithmetic. These arrays are stored
    unchanged.
    """
    check_kernel(estimator, name)
    task = TASKS[name]
    support_vectors, dual_coef = estimator.support_vectors_, estimator._dual_coef_
    if hasattr(dual_coef, "toarray"):
        _check_sparse(support_vectors, dual_coef, name)
        dual_coef = dual_coef.toarray()
    classes = ascending_classes(estimator.classes_, name) if task == "classification" else np.empty(0)
    _check_attributes(estimator, name, len(classes), int(support_vectors.shape[0]))
    counts = _n_support(estimator, len(classes), int(support_vectors.shape[0]))
    labels = classes[: len(counts)]  # with fewer counts, scikit-learn's `predict` uses the first labels
    machine = KernelModel(
        task=task,
        support_vectors=support_vectors,
        dual_coef=dual_coef,
        intercept=np.array(estimator._intercept_, dtype=np.float64).ravel(),
        gamma=float(estimator._gamma),
        labels=labels,
        n_support=counts,
        source=f"sklearn {name}",
        feature_names=feature_names(estimator),
        outputs=_outputs(estimator, task, len(classes), has_all=len(labels) == len(classes)),
    )
    return with_kernel(machine, estimator)


def _check_sparse(support_vectors: Any, dual_coef: Any, name: str) -> None:
    """Reject sparse matrices with unsorted or duplicate entries, which LIBSVM, unlike SciPy, would misread."""
    row = first_row_out_of_order(support_vectors)
    if row is not None:
        raise UnsupportedModelError(
            f"row {row} of support_vectors_ of this {name} has several entries in one column, or entries out of order, "
            "which LIBSVM does not add up; refit it on rows after X.sum_duplicates() (PolynomialFeatures makes such "
            "rows from a vectorizer's fit_transform: call X.sort_indices() before it)"
        )
    if not np.array_equal(dual_coef.indices, np.tile(np.arange(dual_coef.shape[1]), dual_coef.shape[0])):
        raise ModelFormatError(
            f"_dual_coef_ of this {name} has missing entries or entries out of order, unlike after fit"
        )


def ascending_classes(classes: Any, name: str) -> Any:
    """Return the labels, which must be increasing, because decision values and probabilities assume this order."""
    labels = np.asarray(classes)
    if not np.array_equal(np.unique(labels), labels):
        raise ModelFormatError(f"classes_ of this {name} is {labels.tolist()}, which does not ascend as after fit")
    return labels


def with_kernel(machine: KernelModel, estimator: Any) -> KernelModel:
    """Replace a model's RBF kernel with the estimator's kernel, which `check_kernel` must have accepted."""
    if estimator.kernel == "rbf":
        return machine
    if estimator.kernel == "linear":
        return replace(machine, degree=1, gamma=1.0)
    if estimator.kernel == "sigmoid":
        return replace(machine, is_sigmoid=True, coef0=float(estimator.coef0))
    return replace(machine, degree=int(estimator.degree), coef0=float(estimator.coef0))


def check_kernel(estimator: Any, name: str) -> None:
    """Raise UnsupportedModelError unless the kernel is RBF, linear, sigmoid, or polynomial of degree 1 to 6."""
    kernel = estimator.kernel
    polynomial = isinstance(kernel, str) and kernel in ("poly", "polynomial")
    if isinstance(kernel, str) and (
        kernel in ("rbf", "linear", "sigmoid") or (polynomial and estimator.degree in KERNEL_DEGREES)
    ):
        return
    function = getattr(kernel, "func", kernel)  # the function inside a functools.partial
    named = getattr(function, "__name__", class_name(function))
    description = f"the callable {named!r}" if callable(kernel) else repr(kernel)
    degree = f" of degree {estimator.degree}" if polynomial else ""
    raise UnsupportedModelError(
        f"the kernel of this {name} is {description}{degree}; only 'rbf', 'linear', 'sigmoid' and 'poly' of degree 1 "
        f"to {MAX_KERNEL_DEGREE} can be read"
    )


def read_cuml(estimator: Any, name: str) -> KernelModel:
    """Read a fitted cuML SVR or two-class SVC; positive values of the latter mean classes_[1].

    cuML computes in the precision of its training data; the reference is the function that its parameters define, with
    the parameters converted to float64.
    """
    if hasattr(estimator, "_multiclass"):
        raise UnsupportedModelError(
            f"this cuml {name} has several classes, each pair with separate support vectors; "
            "convert its pairs one by one, or train scikit-learn's SVC"
        )
    check_kernel(estimator, name)
    task = TASKS[name]
    outputs = Outputs()
    slope, intercept = (np.ravel(getattr(estimator, key, np.empty(0))) for key in ("_probA", "_probB"))
    if task == "classification" and getattr(estimator, "probability", False) and len(slope) == 1:
        calibrator = SigmoidCalibrator(float(slope[0]), float(intercept[0]))
        outputs = Outputs(probability=OneVsRestCalibration((calibrator,), positive=0))
    machine = KernelModel(
        task=task,
        support_vectors=host_array(estimator.support_vectors_),
        dual_coef=host_array(estimator.dual_coef_),
        intercept=np.ravel(host_array(estimator.intercept_)),
        gamma=float(estimator._gamma),
        # With two labels, a positive value means the first label, and a value of 0 means the second.
        labels=ascending_classes(host_array(estimator.classes_), name)[::-1]
        if task == "classification"
        else np.empty(0),
        source=f"cuml {name}",
        feature_names=feature_names(estimator),
        outputs=outputs,
    )
    return with_kernel(machine, estimator)


def read_thundersvm(estimator: Any, name: str) -> KernelModel:
    """Read a fitted ThunderSVM estimator from the model file that it writes.

    Only the file contains the label order. Its values of gamma and rho have six digits, so they are replaced by the
    estimator's attributes, which have all digits (intercept_ has the sign of rho).
    """
    shape = getattr(estimator, "shape_fit_", None)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "thundersvm.model"
        estimator.save_to_file(str(path))
        n_features = None if shape is None else int(shape[1])
        try:
            model = libsvm.read_libsvm(path, n_features=n_features)
        except ModelFormatError as error:
            raise ModelFormatError(f"the model that this thundersvm {name} saves: {error}") from None
    source = f"thundersvm {name}"
    if model.kernel != "gaussian":
        return replace(model, source=source)
    rho = np.ravel(estimator.intercept_).astype(np.float64)
    gamma = float(np.float32(estimator._gamma)) if hasattr(estimator, "_gamma") else model.gamma
    if len(rho) != model.n_decisions or not np.allclose(-rho, model.intercept, rtol=1e-4, atol=1e-5):
        raise ModelFormatError(f"intercept_ is {rho.tolist()}, but the saved rho {(-model.intercept).tolist()}")
    if not np.isclose(gamma, model.gamma, rtol=1e-4, atol=0):
        raise ModelFormatError(f"_gamma is {gamma}, but the saved gamma {model.gamma}")
    return replace(model, intercept=-rho, gamma=gamma, source=source)


def is_dropped(member: Any) -> bool:
    """Return whether a member of an ensemble, or a transformer in a union, is dropped."""
    return isinstance(member, str) and member == "drop"


@contextmanager
def reporting_edits(estimator: Any) -> Iterator[None]:
    """Raise NotFittedError for a missing attribute, and ModelFormatError for other errors due to edited attributes."""
    try:
        yield
    except ApproxSVMError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        from sklearn.exceptions import NotFittedError

        if isinstance(error, NotFittedError):
            raise
        if isinstance(error, AttributeError) and re.fullmatch(r"[^_].*_", error.name or "") and recognise(error.obj):
            name = class_name(error.obj)
            raise NotFittedError(f"this {name} is not fitted yet: call fit before compiling it") from None
        raise ModelFormatError(
            f"a fitted attribute of this {class_name(estimator)} is not what fit leaves: {class_name(error)}: {error}"
        ) from error


def feature_names(estimator: Any) -> tuple[str, ...] | None:
    """Return the column names with which the estimator was fitted, or None."""
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else tuple(str(column) for column in names)


def _check_attributes(estimator: Any, name: str, n_classes: int, n_sv: int) -> None:
    """Reject inconsistent attributes, and sizes with which LIBSVM would read out of bounds."""
    if not estimator._sparse and len(estimator.support_) != n_sv:
        raise ModelFormatError(f"support_ names {len(estimator.support_)} rows, but there are {n_sv} support vectors")
    counts = np.ravel(estimator._n_support)
    # The values are unused, but LIBSVM uses their count as the number of classes. sklearnex stores one value, but does
    # not use LIBSVM.
    if n_classes == 0 and len(counts) != 2 and not hasattr(estimator, "_onedal_estimator"):
        raise ModelFormatError(f"_n_support of this {name} is {counts.tolist()}, but must be 2 numbers")
    if name == "OneClassSVM" and not np.array_equal(np.ravel(estimator.offset_), -np.ravel(estimator._intercept_)):
        raise ModelFormatError(
            f"offset_ of this {name} is {estimator.offset_}, but -intercept_ {-np.ravel(estimator._intercept_)}: "
            "predict uses the latter; for other labels change intercept_ and _intercept_, and offset_ with them"
        )


def _outputs(estimator: Any, task: Task, n_classes: int, *, has_all: bool) -> Outputs:
    if task != "classification":
        return Outputs()
    shape, break_ties = estimator.decision_function_shape, estimator.break_ties
    if break_ties and shape == "ovo":
        raise UnsupportedModelError("break_ties must be False when decision_function_shape is 'ovo'")
    if not has_all:
        if break_ties:
            raise UnsupportedModelError(
                f"LIBSVM has seen {len(estimator.n_support_)} of the {n_classes} classes, and with break_ties "
                "scikit-learn cannot predict: set_params(break_ties=False)"
            )
        return Outputs(SignAlone())  # all methods of the source except `predict` fail
    probability = None
    # sklearnex stores zeros if there are no probabilities, and otherwise keeps a separate calibrated classifier.
    wanted = estimator.probability is True or estimator.probability == 1
    if wanted and not hasattr(estimator, "clf_prob"):
        prob_a, prob_b = (_probability_number(estimator, key) for key in ("probA", "probB"))
        if len(prob_a):
            probability = PairwiseSigmoid(prob_a, prob_b, couple_two_classes=True)
    return Outputs(
        probability=probability, label_rule="scores" if break_ties and n_classes > 2 else "votes", decision_shape=shape
    )


def _probability_number(estimator: Any, name: str) -> Any:
    """Return the array `probA` or `probB`, whose attribute had another name before scikit-learn 0.23."""
    values = getattr(estimator, f"_{name}", None)
    return np.array(vars(estimator)[f"{name}_"] if values is None else values, dtype=np.float64)


def _n_support(estimator: Any, n_classes: int, n_sv: int) -> Any:
    """Return and check the number of support vectors per class, because a pickle may have been tampered with.

    Classes whose training rows all had weight 0, as in bagging, are omitted.
    """
    if n_classes == 0:
        return np.empty(0, np.int64)
    counts = np.asarray(estimator.n_support_, dtype=np.int64)
    fits = 2 <= len(counts) <= n_classes and len(np.ravel(estimator._intercept_)) == len(class_pairs(len(counts)))
    if not fits or (counts < 0).any() or int(counts.sum()) != n_sv:
        raise ModelFormatError(
            f"n_support_ is {counts.tolist()}, which does not fit {n_classes} classes and {n_sv} support vectors"
        )
    return counts

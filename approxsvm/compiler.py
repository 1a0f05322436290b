"""compile(): read, expand, build. This file holds no mathematics."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from approxsvm import artifact as artifacts
from approxsvm.errors import UnsupportedModelError
from approxsvm.estimators import CompiledModel, estimator_for
from approxsvm.expansion import taylor
from approxsvm.kernel_model import KernelModel
from approxsvm.readers import read_model


def compile(
    model: Any,
    X: Any = None,
    *,
    n_features: int | None = None,
    mode: str = "approximate",
    degree: int | str = "auto",
    center: taylor.CenterChoice = "mean",
    n_jobs: int | None = None,
) -> CompiledModel:
    """Compile a trained RBF kernel machine into a small, fast predictor.

    Parameters
    ----------
    model : fitted estimator, KernelModel, or path
        scikit-learn's SVC, NuSVC, SVR, NuSVR or OneClassSVM with the RBF kernel, or the path of a LIBSVM model file.
    X : array-like or sparse matrix of shape (n_rows, n_features), optional
        Rows like those to predict, without labels. Only their number of columns is used so far.
    n_features : int, optional
        Number of columns of the rows to predict. A LIBSVM model file does not say it, and its support vectors may use
        fewer; taken from `X` when left out, else from the support vectors.
    mode : {"approximate"}
        The expansion alone: no support vectors are kept, and labels near the decision boundary may differ.
    degree : {"auto", 2}
        Highest power of the expansion.
    center : {"mean", "origin"}
        The point expanded about. The mean of the support vectors is more accurate; the origin gives exactly the
        expansion of Claesen et al. 2014.
    n_jobs : int, optional
        Threads that the result predicts with, as in scikit-learn: 1 when left out, -1 for all processors.

    Returns
    -------
    CompiledSVC, CompiledSVR or CompiledOneClassSVM
        A fitted scikit-learn estimator.

    Raises
    ------
    UnsupportedModelError
        The model is of a kind that cannot be compiled; the message names it.
    ModelFormatError
        The model file is broken; the message names file and line.
    sklearn.exceptions.NotFittedError
        The estimator has not been fitted.
    ValueError
        An option has an unknown value.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from sklearn.svm import SVC
    >>> import approxsvm
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> svc = SVC(gamma=0.005).fit(scale(X), y)
    >>> fast = approxsvm.compile(svc)
    >>> float((fast.predict(scale(X)) == svc.predict(scale(X))).mean()) > 0.99
    True
    """
    if mode != "approximate":
        raise ValueError(f"mode must be 'approximate', not {mode!r}")
    if degree not in ("auto", 2):
        raise ValueError(f"degree must be 'auto' or 2, not {degree!r}")
    if center not in ("mean", "origin"):
        raise ValueError(f"center must be 'mean' or 'origin', not {center!r}")
    if n_features is None and X is not None:
        n_features = int(np.shape(X)[1])
    kernel_model = read_model(model, n_features=n_features)
    _check_supported(kernel_model)
    expansion = taylor.expand(kernel_model, center)
    return estimator_for(artifacts.build(kernel_model, expansion), n_jobs=n_jobs)


def load(path: str | os.PathLike[str], *, n_jobs: int | None = None) -> CompiledModel:
    """Load a predictor that was saved as an .asvm file.

    Parameters
    ----------
    path : str or path
    n_jobs : int, optional
        Threads to predict with.

    Returns
    -------
    CompiledSVC, CompiledSVR or CompiledOneClassSVM

    Raises
    ------
    ArtifactError
        The file breaks a rule of models/FORMAT.md, or its check rows give other values on this machine.
    OSError
        The file cannot be read.
    """
    return estimator_for(artifacts.Artifact.read(path), n_jobs=n_jobs)


def _check_supported(model: KernelModel) -> None:
    artifacts.input_scale_for(model.gamma)  # refuses what the format cannot hold, before any arithmetic
    n_classes = len(model.labels)
    if n_classes > 2:
        raise UnsupportedModelError(
            f"the model has {n_classes} classes; models with more than 2 cannot be compiled yet"
        )
    if n_classes == 1:
        raise UnsupportedModelError(
            f"the model has one class and always predicts {model.labels[0]}: nothing to compile"
        )

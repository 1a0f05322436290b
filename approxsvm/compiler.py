"""compile(): read, expand, certify, build. This file holds no mathematics."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from approxsvm import artifact as artifacts
from approxsvm.errors import InputError, UnsupportedModelError
from approxsvm.estimators import CompiledModel, estimator_for
from approxsvm.expansion import taylor
from approxsvm.expansion.certificate import Certificate, certify, least_tolerance
from approxsvm.kernel_model import KernelModel
from approxsvm.readers import read_model

# Where no tolerance is asked for, values of a regression model are this close, as a share of their range.
DEFAULT_SHARE_OF_RANGE = 1e-3


def compile(
    model: Any,
    X: Any = None,
    *,
    n_features: int | None = None,
    mode: artifacts.Mode = "certified",
    degree: int | str = "auto",
    center: taylor.CenterChoice = "mean",
    tolerance: float | None = None,
    n_jobs: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> CompiledModel:
    """Compile a trained RBF kernel machine into a small, fast predictor.

    Parameters
    ----------
    model : fitted estimator, KernelModel, or path
        scikit-learn's SVC, NuSVC, SVR, NuSVR or OneClassSVM with the RBF kernel, or the path of a LIBSVM model file.
        Pickles run code when they are read: load them yourself, or by ``read_model(path, trust=True)``.
    X : array-like or sparse matrix of shape (n_rows, n_features), optional
        Rows like those to predict, without labels. Only their number of columns is used so far.
    n_features : int, optional
        Number of columns of the rows to predict. A LIBSVM model file does not say it, and its support vectors may use
        fewer; taken from `X` when left out, else from the support vectors.
    mode : {"certified", "approximate", "exact"}
        "certified": each label is proven equal to the exact model's, or computed exactly; the artifact carries the
        support vectors. "approximate": the expansion alone, with bounds but without support vectors; labels near the
        decision boundary may differ. "exact": the exact model alone, on a faster engine.
    degree : {"auto", 2}
        Highest power of the expansion.
    center : {"mean", "origin"}
        The point expanded about. The mean of the support vectors is more accurate; the origin gives exactly the
        expansion of Claesen et al. 2014.
    tolerance : float, optional
        In the modes "certified" and "exact", every decision value (or value of a regression) is within this of the
        exact one, in the units of the target, rounding included. When left out, labels decide alone, and regression
        takes a thousandth of the range of the model's values at its support vectors ("exact": float64 accuracy).
    n_jobs : int, optional
        Threads that the result predicts with, as in scikit-learn: 1 when left out, -1 for all processors.
    progress : callable, optional
        Told the share of the work done, from 0 to 1, while the bound is computed.

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
    InputError
        `X` is not a matrix.
    ValueError
        An option has an unknown value, or `tolerance` is below what float64 can promise.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from sklearn.svm import SVC
    >>> import approxsvm
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> svc = SVC(gamma=0.005).fit(scale(X), y)
    >>> fast = approxsvm.compile(svc)
    >>> bool((fast.predict(scale(X)) == svc.predict(scale(X))).all())
    True
    """
    if mode not in artifacts.MODES:
        raise ValueError(f"mode must be one of {', '.join(map(repr, artifacts.MODES))}, not {mode!r}")
    if degree not in ("auto", 2):
        raise ValueError(f"degree must be 'auto' or 2, not {degree!r}")
    if center not in ("mean", "origin"):
        raise ValueError(f"center must be 'mean' or 'origin', not {center!r}")
    if tolerance is not None and mode == "approximate":
        raise ValueError("tolerance cannot be promised in mode 'approximate': it has nothing to fall back on")
    if n_features is None and X is not None:
        if len(np.shape(X)) != 2:
            raise InputError(f"X must have rows and columns, but its shape is {np.shape(X)}")
        n_features = int(np.shape(X)[1])
    kernel_model = read_model(model, n_features=n_features)
    _check_supported(kernel_model)
    with threadpool_limits(1, user_api="blas"):  # our own threads do better on pieces of this size
        if mode == "exact":
            artifact = _exact(kernel_model, center, tolerance)
        else:
            expansion = taylor.expand(kernel_model, center)
            certificate = certify(kernel_model, expansion, progress)
            promise = _tolerance(kernel_model, certificate, tolerance) if mode == "certified" else np.inf
            artifact = artifacts.build_expansion(kernel_model, expansion, certificate, mode, promise)
    return estimator_for(artifact, n_jobs=n_jobs)


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


def _exact(model: KernelModel, choice: taylor.CenterChoice, tolerance: float | None) -> artifacts.Artifact:
    center = taylor.choose_center(model, choice)
    least = least_tolerance(model)
    if tolerance is None:
        tolerance = least if model.task == "regression" else np.inf
    _check_tolerance(tolerance, least)
    return artifacts.build_exact(model, center, taylor.sv_norms(model, center), tolerance)


def _tolerance(model: KernelModel, certificate: Certificate, tolerance: float | None) -> float:
    """The promise: what was asked for, else labels alone, or a share of the range of a regression's values."""
    least = least_tolerance(model)
    if tolerance is not None:
        _check_tolerance(tolerance, least)
        return float(tolerance)
    return max(DEFAULT_SHARE_OF_RANGE * certificate.value_range, least) if model.task == "regression" else np.inf


def _check_tolerance(tolerance: float, least: float) -> None:
    if not tolerance >= least:
        raise ValueError(f"tolerance is {tolerance}, but float64 cannot promise less than {least:.3g} for this model")


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

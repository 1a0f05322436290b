"""Slow, obvious float64 arithmetic: the judge of everything fast. Naive on purpose; nobody speeds it up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Literal

import numpy as np

from approxsvm.model.cosine_model import CosineModel
from approxsvm.model.kernel_model import FloatArray, KernelModel
from approxsvm.model.taylor_model import TaylorModel


def decision_function(model: KernelModel, X: FloatArray) -> FloatArray:
    """Exact decision values in LIBSVM's orientation: sum_i a_i K(x_i, z) + intercept.

    Parameters
    ----------
    model : KernelModel
    X : ndarray of shape (n_rows, n_features), float64

    Returns
    -------
    ndarray of shape (n_rows, n_decisions), float64
    """
    support_vectors = model.dense_support_vectors(0, model.n_sv)
    values = np.empty((len(X), model.n_decisions))
    for row, z in enumerate(X):
        if model.is_polynomial:
            kernel = (model.gamma * (support_vectors @ z) + model.coef0) ** model.degree
        else:
            kernel = np.exp(-model.gamma * ((support_vectors - z) ** 2).sum(axis=1))
        for k in range(model.n_decisions):
            values[row, k] = model.coefficients(k) @ kernel + model.intercept[k]
    return values


def taylor_decision_function(model: TaylorModel, X: FloatArray) -> FloatArray:
    """Decision values of a linear model on Taylor features, one monomial after the other.

    Parameters
    ----------
    model : TaylorModel
    X : ndarray of shape (n_rows, n_features), float64

    Returns
    -------
    ndarray of shape (n_rows,), float64
    """
    with np.errstate(over="ignore", under="ignore"):
        gaussian = np.exp(-model.gamma * (X**2).sum(axis=1))
        columns = np.where(gaussian > 0.0, X.T, 0.0) * math.sqrt(2.0 * model.gamma)
    values = np.zeros(len(X))
    for k, weights in enumerate(model.weights):
        for weight, factors in zip(weights, combinations_with_replacement(range(model.n_features), k), strict=True):
            factorials = math.prod(math.factorial(factors.count(i)) for i in set(factors))
            values += weight / math.sqrt(factorials) * gaussian * columns[list(factors)].prod(axis=0)
    return values + model.intercept


def cosine_decision_function(model: CosineModel, X: FloatArray) -> FloatArray:
    """Decision values of a sum of cosines, row by row.

    Parameters
    ----------
    model : CosineModel
    X : ndarray of shape (n_rows, n_features), float64

    Returns
    -------
    ndarray of shape (n_rows,), float64
    """
    values = np.empty(len(X))
    for row, z in enumerate(X):
        values[row] = model.coef @ np.cos(model.frequencies @ z + model.phases) + model.intercept[0]
    return values


def expand(model: KernelModel, center: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """Constant, linear and quadratic terms about `center`, one support vector after the other.

    Returns
    -------
    constant : float
    linear : ndarray of shape (n_features,)
    quadratic : ndarray of shape (n_features, n_features)
    """
    constant, linear = 0.0, np.zeros(model.n_features)
    quadratic = np.zeros((model.n_features, model.n_features))
    for x, a in zip(model.dense_support_vectors(0, model.n_sv), model.coefficients(0), strict=True):
        shifted = x - center
        weight = a * np.exp(-model.gamma * (shifted @ shifted))
        constant += weight
        linear += weight * 2.0 * model.gamma * shifted
        quadratic += weight * 2.0 * model.gamma**2 * np.outer(shifted, shifted)
    return constant, linear, quadratic


@dataclass(frozen=True, eq=False)
class SecondOrder:
    """f(z) ~ intercept + exp(-gamma ||u||^2) (constant + linear.u + u' quadratic u), u = z - center (the paper's)."""

    center: FloatArray
    constant: float
    linear: FloatArray
    quadratic: FloatArray
    intercept: float
    gamma: float


def second_order(model: KernelModel, choice: Literal["mean", "origin"] = "mean") -> SecondOrder:
    """The expansion to degree 2 about the mean of the support vectors, in float32, or the origin."""
    vectors = model.dense_support_vectors(0, model.n_sv)
    center = vectors.mean(axis=0) if choice == "mean" else np.zeros(model.n_features)
    center = center.astype(np.float32).astype(np.float64)
    shifted = vectors - center
    weights = model.coefficients(0) * np.exp(-model.gamma * (shifted**2).sum(axis=1))
    return SecondOrder(
        center=center,
        constant=float(weights.sum()),
        linear=2.0 * model.gamma * weights @ shifted,
        quadratic=2.0 * model.gamma**2 * (shifted * weights[:, np.newaxis]).T @ shifted,
        intercept=float(model.intercept[0]),
        gamma=model.gamma,
    )


def evaluate(expansion: SecondOrder, X: FloatArray) -> FloatArray:
    """Decision values of an expansion, row by row.

    Parameters
    ----------
    expansion : SecondOrder
    X : ndarray of shape (n_rows, n_features), float64

    Returns
    -------
    ndarray of shape (n_rows,), float64
    """
    values = np.empty(len(X))
    for row, z in enumerate(X):
        u = z - expansion.center
        inner = expansion.constant + expansion.linear @ u + u @ expansion.quadratic @ u
        values[row] = expansion.intercept + np.exp(-expansion.gamma * (u @ u)) * inner
    return values

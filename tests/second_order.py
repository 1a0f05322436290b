"""The paper's expansion of degree 2 in plain, deliberately naive float64 code, as a reference for expansions."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from approxsvm.ir.kernel_model import FloatArray, KernelModel


def expand(model: KernelModel, center: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """Compute the constant, linear (n_features,) and quadratic (n_features, n_features) terms about `center`."""
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
    """f(z) ~ intercept + exp(-gamma ||u||^2) (constant + linear.u + u' quadratic u), u = z - center (the paper)."""

    center: FloatArray
    constant: float
    linear: FloatArray
    quadratic: FloatArray
    intercept: float
    gamma: float


def second_order(model: KernelModel, choice: Literal["mean", "origin"] = "mean") -> SecondOrder:
    """Expand to degree 2 about the origin or the mean of the support vectors, rounded to float32."""
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
    """Evaluate an expansion in float64, row by row, at rows of shape (n_rows, n_features); return shape (n_rows,)."""
    values = np.empty(len(X))
    for row, z in enumerate(X):
        u = z - expansion.center
        inner = expansion.constant + expansion.linear @ u + u @ expansion.quadratic @ u
        values[row] = expansion.intercept + np.exp(-expansion.gamma * (u @ u)) * inner
    return values

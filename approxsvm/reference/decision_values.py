"""Decision values term by term, deliberately naive and never optimised. definition.py bounds their rounding."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from approxsvm.ir.feature_model import FeatureModel
from approxsvm.ir.kernel_model import FloatArray, KernelModel
from approxsvm.ir.single_model import SingleModel

# Most support vectors, and numbers, of a block; sparse ones are made dense.
_BLOCK_VECTORS: Final = 4096
_BLOCK_NUMBERS: Final = 1 << 23


def block_vectors(n_features: int) -> int:
    """Return the number of support vectors per block."""
    return max(1, min(_BLOCK_VECTORS, _BLOCK_NUMBERS // n_features))


def decision_function(model: SingleModel, X: FloatArray, decisions: Sequence[int] | None = None) -> FloatArray:
    """Compute decision values directly from the definition, for all or some functions: (n_rows, n_decisions).

    They have the sign of LIBSVM. For a kernel machine, they are sum_i a_i K(x_i, z) + intercept.
    """
    if isinstance(model, FeatureModel):
        return model.decision_function(X)
    return _of_kernels(model, X, list(range(model.n_decisions) if decisions is None else decisions))


def _of_kernels(model: KernelModel, X: FloatArray, decisions: list[int]) -> FloatArray:
    coefficients = [model.coefficients(k) for k in decisions]
    sums = np.zeros((len(X), len(decisions)))
    step = block_vectors(model.n_features)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        for first in range(0, model.n_sv, step):
            last = min(first + step, model.n_sv)
            vectors: Any = model.support_vectors[first:last]  # sparse ones stay sparse in inner products
            if model.kernel == "gaussian":
                vectors = model.dense_support_vectors(first, last)
            for row, z in enumerate(X):
                kernel = _KERNELS[model.kernel](model, vectors, z)
                sums[row] += [coef[first:last] @ kernel for coef in coefficients]
    return sums + model.intercept[decisions]


# Kernel values of support vectors and one row.
_KERNELS: Final[dict[str, Callable[[KernelModel, Any, FloatArray], FloatArray]]] = {
    "gaussian": lambda model, vectors, z: np.exp(-model.gamma * ((vectors - z) ** 2).sum(axis=1)),
    "polynomial": lambda model, vectors, z: (model.gamma * (vectors @ z) + model.coef0) ** model.degree,
    "sigmoid": lambda model, vectors, z: np.tanh(model.gamma * (vectors @ z) + model.coef0),
}

"""Models that are quadratic forms exactly: degree-2 polynomial kernels and linear ones, without truncation error.

The kernel (gamma x.z + coef0)^2 expands to gamma^2 (x.z)^2 + 2 gamma coef0 x.z + coef0^2, so a sum over any number of
support vectors is a constant, a linear and a quadratic term (Claesen et al. 2014, Eq. 3.13 to 3.16).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.compensated import UNIT_ROUNDOFF, norms_above
from approxsvm.errors import ModelFormatError
from approxsvm.heads import Heads
from approxsvm.input_map import InputMap
from approxsvm.kernel_model import FloatArray, KernelModel, Task

_BLOCK_ROWS = 4096


@dataclass(frozen=True)
class Kernel:
    """(gamma x.z + coef0)^degree; left out, the linear kernel."""

    degree: int = 1
    gamma: float = 1.0
    coef0: float = 0.0


@dataclass(frozen=True, eq=False)
class QuadraticModel:
    """Decision functions f_k(z) = constant_k + linear_k . z + z . quadratic_k z, in LIBSVM's orientation and order.

    Parameters
    ----------
    task : {"classification", "regression", "one_class"}
    constant : ndarray of shape (n_decisions,), float64
    linear : ndarray of shape (n_decisions, n_features), float64
    quadratic : ndarray of shape (n_decisions, n_features, n_features), float64, optional
        Symmetric. None for linear models.
    labels : ndarray of shape (n_classes,), optional
        As for `KernelModel`.
    constant_error, linear_error, quadratic_error : ndarray of shape (n_decisions,), float64, optional
        By how much summing over support vectors in float64 may have changed the constant, the linear term (Euclidean
        norm) and the quadratic term (Frobenius norm). Zero when left out.
    source, feature_names, first_index, heads, input_map
        As for `KernelModel`.
    machine : KernelModel, optional
        Where the model is a sum over support vectors, these and their coefficients in its order of summation: for rows
        so close to a decision boundary that rounding decides. Its own kernel is not used, but `kernel`.
    kernel : Kernel
        Of `machine`.

    Raises
    ------
    ModelFormatError
        Shapes contradict each other, or a number is not finite.
    """

    task: Task
    constant: FloatArray
    linear: FloatArray
    quadratic: FloatArray | None = None
    labels: npt.NDArray[Any] = field(default_factory=lambda: np.empty(0))
    constant_error: FloatArray = field(default_factory=lambda: np.empty(0))
    linear_error: FloatArray = field(default_factory=lambda: np.empty(0))
    quadratic_error: FloatArray = field(default_factory=lambda: np.empty(0))
    source: str = "arrays"
    feature_names: tuple[str, ...] | None = None
    first_index: int = 1
    heads: Heads = field(default_factory=Heads)
    input_map: InputMap | None = None
    machine: KernelModel | None = None
    kernel: Kernel = field(default_factory=Kernel)

    def __post_init__(self) -> None:
        """Check once."""
        n_classes = len(self.labels)
        if self.task not in ("classification", "regression", "one_class"):
            raise ModelFormatError(f"unknown task {self.task!r}")
        if (n_classes > 0) != (self.task == "classification"):
            raise ModelFormatError(f"a {self.task} model cannot have {n_classes} labels")
        if len(set(self.labels.tolist())) != n_classes:
            raise ModelFormatError(f"the labels {self.labels.tolist()} are not distinct")
        n_decisions = n_classes * (n_classes - 1) // 2 if n_classes else 1
        for name in ("constant_error", "linear_error", "quadratic_error"):
            if len(getattr(self, name)) == 0:
                object.__setattr__(self, name, np.zeros(n_decisions))
        if self.linear.ndim != 2:
            raise ModelFormatError(f"linear has {self.linear.ndim} dimensions instead of 2")
        d = self.n_features
        shapes = {
            "constant": (n_decisions,),
            "linear": (n_decisions, d),
            "quadratic": (n_decisions, d, d),
            "constant_error": (n_decisions,),
            "linear_error": (n_decisions,),
            "quadratic_error": (n_decisions,),
        }
        for name, shape in shapes.items():
            values = getattr(self, name)
            if values is None:
                continue
            if values.shape != shape:
                raise ModelFormatError(f"{name} has shape {values.shape}, expected {shape}")
            if not np.isfinite(values).all():
                raise ModelFormatError(f"{name} holds NaN or infinity")
        if self.quadratic is not None and not np.array_equal(self.quadratic, self.quadratic.transpose(0, 2, 1)):
            raise ModelFormatError("quadratic is not symmetric")
        if self.input_map is not None and self.input_map.n_features != d:
            raise ModelFormatError(f"the input map gives {self.input_map.n_features} features, but the model takes {d}")
        if self.feature_names is not None and len(self.feature_names) != self.n_raw_features:
            raise ModelFormatError(f"{len(self.feature_names)} feature names for {self.n_raw_features} features")
        if self.first_index not in (0, 1):
            raise ModelFormatError(f"first_index is {self.first_index}, but must be 0 or 1")
        machine = self.machine
        if machine is not None and (machine.n_features, machine.n_decisions) != (d, n_decisions):
            raise ModelFormatError(
                f"the support vectors have {machine.n_features} features and {machine.n_decisions} decision functions, "
                f"but the quadratic form {d} and {n_decisions}"
            )
        self.heads.check(self.task, n_classes)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.linear.shape[1])

    @property
    def n_raw_features(self) -> int:
        """Number of columns of the rows that the source takes, before its input map."""
        return self.n_features if self.input_map is None else self.input_map.n_raw_features

    @property
    def n_decisions(self) -> int:
        """Number of decision functions."""
        return len(self.constant)

    def negated(self) -> QuadraticModel:
        """As `KernelModel.negated`."""
        return replace(
            self,
            constant=-self.constant,
            linear=-self.linear,
            quadratic=None if self.quadratic is None else -self.quadratic,
            labels=self.labels[::-1],
            machine=None if self.machine is None else self.machine.negated(),
        )

    def decision_function(self, X: FloatArray) -> FloatArray:
        """Decision values in float64: the reference.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features), float64

        Returns
        -------
        ndarray of shape (n_rows, n_decisions), float64
        """
        values: FloatArray = X @ self.linear.T + self.constant
        if self.quadratic is not None:
            for k, matrix in enumerate(self.quadratic):
                values[:, k] += np.einsum("ij,ij->i", X @ matrix, X)
        return values

    def error_bound(self, X: FloatArray) -> FloatArray:
        """What |decision_function - the source's real-number function| never exceeds.

        2 n_features + 8 roundings of sum of moduli, in any order of summation, and the errors of the three terms.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features), float64

        Returns
        -------
        ndarray of shape (n_rows, n_decisions), float64
        """
        moduli, norms = np.abs(X), np.linalg.norm(X, axis=1)[:, np.newaxis]
        total: FloatArray = moduli @ np.abs(self.linear).T + np.abs(self.constant)
        if self.quadratic is not None:
            for k, matrix in enumerate(self.quadratic):
                total[:, k] += np.einsum("ij,ij->i", moduli @ np.abs(matrix), moduli)
        path = 1.01 * (2 * self.n_features + 8) * UNIT_ROUNDOFF
        from_terms = self.constant_error + self.linear_error * norms + self.quadratic_error * norms**2
        result: FloatArray = (path * total + from_terms) * (1 + 1e-9) + 2.0**-1000
        return result


def from_support_vectors(machine: KernelModel, *, degree: int, gamma: float, coef0: float) -> QuadraticModel:
    """Sum the support vectors of a machine with the kernel (gamma x.z + coef0)^degree.

    Parameters
    ----------
    machine : KernelModel
        Support vectors, coefficients, labels and all that does not concern the kernel; its own kernel is not used.
    degree : {1, 2}
    gamma, coef0 : float

    Returns
    -------
    QuadraticModel
    """
    if degree not in (1, 2):
        raise ModelFormatError(f"degree is {degree}, but must be 1 or 2")
    d, n_decisions = machine.n_features, machine.n_decisions
    scale = 2.0 * coef0 if degree == 2 else 1.0  # of the linear term
    constant, linear = machine.intercept.copy(), np.zeros((n_decisions, d))
    quadratic = np.zeros((n_decisions, d, d)) if degree == 2 else None
    moduli = np.zeros((3, n_decisions))  # sums of |a_i|, |a_i| ||gamma x_i||, |a_i| ||gamma x_i||^2
    all_coefficients = [machine.coefficients(k) for k in range(n_decisions)]
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):  # what overflows is refused with the model
        power = np.float64(coef0) ** degree
        for first in range(0, machine.n_sv, _BLOCK_ROWS):
            last = min(first + _BLOCK_ROWS, machine.n_sv)
            # gamma goes with the vectors: its square may be beyond float64 where products of these are not.
            block = gamma * machine.dense_support_vectors(first, last)
            norms = norms_above(block)
            for k in range(n_decisions):
                a = all_coefficients[k][first:last]
                linear[k] += a @ block
                if quadratic is not None:
                    quadratic[k] += block.T @ (a[:, np.newaxis] * block)
                moduli[:, k] += [np.abs(a).sum(), np.abs(a) @ norms, (np.abs(a) * norms) @ norms]
        for k in range(n_decisions):
            constant[k] += power * all_coefficients[k].sum()
        linear *= scale
    if quadratic is not None:
        quadratic = (quadratic + quadratic.transpose(0, 2, 1)) / 2
    path = 1.01 * (machine.n_sv + 20) * UNIT_ROUNDOFF
    return QuadraticModel(
        task=machine.task,
        constant=constant,
        linear=linear,
        quadratic=quadratic,
        labels=machine.labels,
        constant_error=path * (abs(power) * moduli[0] + np.abs(machine.intercept)) + machine.value_error + 2.0**-1000,
        linear_error=path * abs(scale) * moduli[1] + 2.0**-1000,
        quadratic_error=path * moduli[2] + 2.0**-1000,
        source=machine.source,
        feature_names=machine.feature_names,
        first_index=machine.first_index,
        heads=machine.heads,
        input_map=machine.input_map,
        machine=machine,
        kernel=Kernel(degree, gamma, coef0),
    )

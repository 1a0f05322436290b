"""Gaussian processes of scikit-learn: means as sums of kernels, and the variance as functions of the same kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np

from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.model import compensated
from approxsvm.model.constants import UNIT64
from approxsvm.model.ensemble import Ensemble
from approxsvm.model.input_map import InputMap
from approxsvm.model.kernel_model import FloatArray, KernelModel
from approxsvm.model.outputs import Outputs, ProcessDeviation, ProcessProbability, SignAlone
from approxsvm.model.schema import limit
from approxsvm.readers.sklearn.committees import read_one_vs_rest
from approxsvm.readers.sklearn.instead import refusal
from approxsvm.readers.sklearn.kernel_machines import fraction, rounded_float
from approxsvm.readers.sklearn.known_types import class_name, name_of, recognise
from approxsvm.readers.sklearn.support_vector_machines import ascending_classes, feature_names, require_fitted

# exp(-r^2 / 2) changes by at most 1 / sqrt(e) per unit of distance.
KERNEL_SLOPE: Final = 0.607
# Functions of the same kernels that the format has room for (max_n_targets): the variance has one for each row.
MOST_ROWS: Final = limit("max_n_targets")
_UP: Final = 1.0 + 2.0**-30
_LAPLACE: Final = "_BinaryGaussianProcessClassifierLaplace"
CLASSIFIERS: Final = ("GaussianProcessClassifier", _LAPLACE)


def read_gaussian_process(estimator: Any, name: str) -> KernelModel | Ensemble:
    """Read the mean prediction of a fitted GaussianProcessRegressor, one model for each target.

    The reference is _y_train_mean + _y_train_std * (kernel_(rows, X_train_) @ alpha_) over the real numbers.
    """
    require_fitted(estimator, name, "X_train_")
    require_fitted(estimator, name, "alpha_")
    kernels, alpha = _Kernels.of(estimator, estimator, name), np.asarray(estimator.alpha_, np.float64)
    targets, n = np.atleast_2d(alpha.T), len(kernels.rows)
    if targets.ndim != 2 or targets.shape[1] != n:
        raise ModelFormatError(f"alpha_ of this {name} has shape {alpha.shape} for {n} rows of X_train_")
    units = [np.ravel(numbers) for numbers in (estimator._y_train_std, estimator._y_train_mean)]
    if any(len(numbers) != len(targets) for numbers in units):
        raise ModelFormatError(
            f"_y_train_std and _y_train_mean of this {name} have {len(units[0])} and {len(units[1])} numbers for "
            f"{len(targets)} targets"
        )
    models = []
    for own, deviation, mean in zip(targets, *units, strict=True):
        weights = [fraction(deviation) * fraction(a) for a in own]
        models.append(kernels.sum(weights, fraction(mean), task="regression"))
    return models[0] if len(models) == 1 else Ensemble(tuple(models), source=f"sklearn {name}, {len(models)} targets")


def read_process_classifier(estimator: Any, name: str) -> KernelModel | Ensemble:
    """Read the labels of a fitted GaussianProcessClassifier; those of several classes with the variance they need.

    Laplace's approximation labels two classes by the sign of the latent mean, kernel_(rows, X_train_) @ (y_train_ -
    pi_), which is the reference, over the real numbers: above 0 is the second class. Its probabilities need the
    variance as well, and several classes are labelled by the greatest of theirs.
    """
    base = _trained(estimator, name)
    if len(estimator.classes_) > 2:
        return read_with_variance(estimator, name)
    return _latent_mean(estimator, base, name)


def _trained(estimator: Any, name: str) -> Any:
    """What a classifier has trained: of the inner class, which each class against the rest is of, that is itself."""
    require_fitted(estimator, name, "X_train_" if name == _LAPLACE else "base_estimator_")
    return estimator if name == _LAPLACE else estimator.base_estimator_


def _latent_mean(estimator: Any, inner: Any, name: str) -> KernelModel:
    """The mean of the latent function of two classes, one of which may be all others."""
    if name_of(inner) != _LAPLACE:
        raise ModelFormatError(f"base_estimator_ of this {name} is a {class_name(inner)}")
    targets, pi = np.asarray(inner.y_train_, np.float64), np.asarray(inner.pi_, np.float64)
    if targets.shape != pi.shape or targets.ndim != 1 or len(targets) != len(inner.X_train_):
        raise ModelFormatError(f"y_train_ of this {name} has shape {targets.shape}, but pi_ {pi.shape}")
    if not np.isin(targets, (0.0, 1.0)).all():
        raise ModelFormatError(f"y_train_ of this {name} holds other numbers than 0 and 1")
    weights = [fraction(y) - fraction(p) for y, p in zip(targets, pi, strict=True)]
    labels, outputs = ascending_classes(inner.classes_, name)[::-1].copy(), Outputs(SignAlone())
    kernels = _Kernels.of(estimator, inner, name)
    return kernels.sum(weights, Fraction(0), task="classification", labels=labels, outputs=outputs)


def read_with_variance(estimator: Any, name: str) -> Ensemble:
    """Read a process with its variance: means as above, and for each the functions of its variance.

    With k the kernel values of a row and the training rows, L the factor that the estimator stores and D its W_sr_ (of
    a regression 1), that variance is kernel_.diag(row) - ||L^-1 D k||^2, over the real numbers, and at least 0.
    """
    if name == "GaussianProcessRegressor":
        mean = read_gaussian_process(estimator, name)
        if isinstance(mean, Ensemble):
            raise UnsupportedModelError(
                f"this {name} has {len(mean.members)} targets, of which only means can be compiled: leave out "
                "variance=True"
            )
        scale = float(np.ravel(estimator._y_train_std)[0])
        prior, functions = _variance(estimator, estimator, name)
        outputs = Outputs(ProcessDeviation(), weights=np.array([prior, scale]))
        return Ensemble((mean, functions), source=f"sklearn {name}", outputs=outputs)
    base, classes = _trained(estimator, name), np.asarray(estimator.classes_)
    if len(classes) == 2:
        return _two_classes(estimator, base, name)
    if name_of(base) != "OneVsRestClassifier" or estimator.multi_class == "one_vs_one":
        raise UnsupportedModelError(refusal(estimator, f"of {len(classes)} classes by {class_name(base)}"))
    if np.asarray(base.classes_).tolist() != classes.tolist():
        raise ModelFormatError(f"base_estimator_ and classes_ of this {name} have other classes")
    several = read_one_vs_rest(base, lambda inner: _two_classes(estimator, inner, name))
    assert isinstance(several, Ensemble)
    return replace(several, source=f"sklearn {name}")


def _two_classes(estimator: Any, inner: Any, name: str) -> Ensemble:
    mean, (prior, functions) = _latent_mean(estimator, inner, name), _variance(estimator, inner, name)
    outputs = Outputs(ProcessProbability(), "probability", weights=np.array([prior, 1.0]))
    return Ensemble((mean, functions), f"sklearn {name}", outputs)


def _variance(estimator: Any, trained: Any, name: str) -> tuple[float, KernelModel]:
    """The variance before training, and the functions v = L^-1 D k as several targets of the same kernels.

    L^-1 is X, found by substitution and one step of Newton's: with R = X L - 1, products as if in twice the precision,
    L^-1 - X = -R L^-1, so the row sums e of |L^-1 - X| are at most |R| x + |R| e, x those of |X|, and the largest of
    them rho max(x) / (1 - rho), rho being the largest row sum of |R|. Kernel values lie between 0 and their prior.
    """
    kernels = _Kernels.of(estimator, trained, name)
    factor, n = np.asarray(trained.L_, np.float64), len(kernels.rows)
    if (
        factor.shape != (n, n)
        or np.triu(factor, 1).any()
        or not np.isfinite(factor).all()
        or not factor.diagonal().all()
    ):
        raise ModelFormatError(
            f"L_ of this {name} has shape {factor.shape}, or is no triangle below a diagonal without 0"
        )
    if n > MOST_ROWS:
        needed = len(getattr(estimator, "classes_", ())) > 2
        raise UnsupportedModelError(
            f"the variance of this {name} has {n} functions, one for each training row, of which at most {MOST_ROWS} "
            f"are supported{', and labels of several classes need it' if needed else ''}: train on fewer rows"
            f"{'' if needed else ', or compile it without variance=True'}"
        )
    scales = np.asarray(getattr(trained, "W_sr_", np.ones(n)), np.float64)
    if scales.shape != (n,) or not (np.isfinite(scales) & (scales >= 0.0)).all():
        raise ModelFormatError(f"W_sr_ of this {name} has shape {scales.shape}, or numbers that are no roots")
    if hasattr(trained, "W_sr_"):
        _require_factor(trained, factor, scales, name)
    inverse: FloatArray = np.tril(np.linalg.solve(factor, np.eye(n)))
    inverse = np.tril(inverse - (_product(inverse, factor)[0] - np.eye(n)) @ inverse)
    product, errors = _product(inverse, factor)
    residual = np.abs(product - np.eye(n)) * _UP + errors + UNIT64 * np.eye(n)
    sums, rho = np.abs(inverse).sum(axis=1) * _UP, float(residual.sum(axis=1).max()) * _UP
    if not rho < 0.5:
        raise UnsupportedModelError(f"L_ of this {name} has no inverse in float64: fit it with a larger alpha")
    off = (residual @ sums + residual.sum(axis=1) * (rho * sums.max() / (1.0 - rho))) * _UP
    constant, amplitude = (rounded_float(number) for number in (kernels.terms.constant, kernels.terms.rbf))
    if constant < 0.0 or amplitude < 0.0:
        raise UnsupportedModelError(f"the kernel of this {name} has a negative part")
    coef = inverse * scales * amplitude
    intercepts = constant * (inverse @ scales)
    # Products and the constants are rounded a few times, the sums of intercepts n times.
    reach = (np.abs(inverse) @ scales) * (constant * (n + 8) + 8.0 * amplitude) * UNIT64
    value_error = off * float(scales.max()) * (constant + amplitude) + reach + np.abs(coef) @ kernels.errors
    functions = KernelModel(
        task="regression",
        support_vectors=kernels.rows,
        dual_coef=coef,
        intercept=intercepts,
        gamma=kernels.gamma,
        source=f"sklearn {name}, variance",
        feature_names=kernels.names,
        input_map=kernels.input_map,
        value_error=value_error * _UP + 2.0**-1060,
    )
    return rounded_float(_diagonal(trained.kernel_)), functions


def _require_factor(trained: Any, factor: FloatArray, scales: FloatArray, name: str) -> None:
    """Require L L^T = 1 + D K D, without which variances may be below 0, where the source has no probabilities."""
    expected = np.eye(len(scales)) + scales[:, np.newaxis] * trained.kernel_(trained.X_train_) * scales
    size = np.sqrt(expected.diagonal())
    if not (np.abs(factor @ factor.T - expected) <= 1e-6 * size[:, np.newaxis] * size).all():
        raise ModelFormatError(
            f"L_ of this {name} is not the factor that its kernel_, X_train_ and W_sr_ have: fit it again"
        )


def _product(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Of two lower triangles, as if in twice the precision, with what it is off by: some rows at a time."""
    product, errors = np.zeros((2, *a.shape))
    for start in range(0, len(a), 64):
        rows, columns = slice(start, start + 64), slice(0, start + 64)
        product[rows, columns], errors[rows, columns] = compensated.matmul(a[rows, columns], b[columns, columns])
    return product, errors


@dataclass(frozen=True, eq=False)
class _Kernels:
    """The RBF kernels of a process, constant + rbf exp(-gamma ||row - rows_i||^2), and how far each exp may be off."""

    terms: _Terms
    rows: FloatArray
    gamma: float
    input_map: InputMap | None
    names: tuple[str, ...] | None
    errors: FloatArray

    @classmethod
    def of(cls, estimator: Any, trained: Any, name: str) -> _Kernels:
        """Those of what was `trained`.

        Kernels built of ConstantKernel, RBF and WhiteKernel by sums and products with one RBF in all. Length scales per
        feature become an input map, and the support vectors are divided by them.
        """
        for kernel in (estimator.kernel, trained.kernel):  # which predict asks what rows it takes
            recognise(kernel)
        terms = _terms(trained.kernel_)
        if terms.length_scale is None:
            raise UnsupportedModelError(f"the kernel of this {name} is {trained.kernel_}: there is no RBF in it")
        rows = np.asarray(trained.X_train_, dtype=np.float64)
        lengths = np.ravel(np.asarray(terms.length_scale, dtype=np.float64))
        names = feature_names(estimator)
        if len(lengths) == 1:
            length = fraction(lengths[0])
            if not 2.0**-100 <= abs(length) <= 2.0**100:
                raise UnsupportedModelError(f"the length scale of this {name} is {lengths[0]:.6g}: scale the features")
            # The rounding of gamma, and t exp(-t) <= 1/e.
            errors = np.full(len(rows), 2.01 * UNIT64 / math.e)
            return cls(terms, rows, float(Fraction(1, 2) / length**2), None, names, errors)
        input_map = InputMap.identity(rows.shape[1], names).then_affine(divide=lengths)
        rows, moved = input_map.mapped_with_errors(rows)
        return cls(terms, rows, 0.5, input_map, names, KERNEL_SLOPE * moved)

    def sum(self, weights: list[Fraction], mean: Fraction, **changes: Any) -> KernelModel:
        """The sum mean + kernel_(rows, X_train_) @ weights."""
        exact_coef = [self.terms.rbf * a for a in weights]
        exact_intercept = mean + self.terms.constant * sum(weights, Fraction(0))
        dual_coef, intercept = np.array([rounded_float(a) for a in exact_coef]), rounded_float(exact_intercept)
        rounded = sum((abs(a - Fraction(b)) for a, b in zip(exact_coef, dual_coef.tolist(), strict=True)), Fraction(0))
        rounded += abs(exact_intercept - Fraction(intercept))
        error = rounded_float(rounded) + float(np.abs(dual_coef) @ self.errors)
        return KernelModel(
            support_vectors=self.rows,
            dual_coef=dual_coef,
            intercept=np.array([intercept]),
            gamma=self.gamma,
            source="sklearn GaussianProcess",
            feature_names=self.names,
            input_map=self.input_map,
            value_error=np.array([error]) * _UP + 2.0**-1060,
            **changes,
        )


@dataclass(frozen=True)
class _Terms:
    """constant + rbf * exp(-||x - z||^2 / (2 length_scale^2)), between rows of different sets."""

    constant: Fraction = Fraction(0)
    rbf: Fraction = Fraction(0)
    length_scale: Any = None


def _terms(kernel: Any) -> _Terms:
    """What a kernel of scikit-learn's Gaussian processes is between training rows and rows to predict."""
    kind = name_of(kernel)
    if kind == "ConstantKernel":
        return _Terms(constant=fraction(kernel.constant_value))
    if kind == "WhiteKernel":
        return _Terms()  # noise of the training rows alone
    if kind == "RBF":
        return _Terms(rbf=Fraction(1), length_scale=kernel.length_scale)
    if kind not in ("Sum", "Product"):
        raise UnsupportedModelError(
            f"the kernel {kernel} cannot be compiled; supported are sums and products of ConstantKernel, WhiteKernel "
            "and one RBF"
        )
    first, second = _terms(kernel.k1), _terms(kernel.k2)
    if first.length_scale is not None and second.length_scale is not None:
        raise UnsupportedModelError(f"the kernel {kernel} has several RBF parts, only one can be compiled")
    length_scale = first.length_scale if second.length_scale is None else second.length_scale
    if kind == "Sum":
        return _Terms(first.constant + second.constant, first.rbf + second.rbf, length_scale)
    return _Terms(
        first.constant * second.constant,
        first.constant * second.rbf + first.rbf * second.constant,
        length_scale,
    )


def _diagonal(kernel: Any) -> Fraction:
    """Such a kernel of a row and itself, white noise included."""
    kind = name_of(kernel)
    if kind == "RBF":
        return Fraction(1)
    if kind in ("ConstantKernel", "WhiteKernel"):
        return fraction(kernel.constant_value if kind == "ConstantKernel" else kernel.noise_level)
    first, second = _diagonal(kernel.k1), _diagonal(kernel.k2)
    return first + second if kind == "Sum" else first * second

"""Bounds on the float64 rounding errors of a source's decision values, which may suffer from cancellation."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.frontends.sklearn import linear_models
from approxsvm.frontends.sklearn.known_types import name_of
from approxsvm.ir.compensated import norms_above
from approxsvm.ir.constants import UNIT64
from approxsvm.ir.kernel_model import FloatArray, KernelModel
from approxsvm.ir.single_model import SingleModel
from approxsvm.reference.definition import Definition, GaussianDefinition

# A label is guaranteed only if |exact value| / sum |a_i| exceeds this, because float64 rounding may change the signs of
# smaller values.
NEAR_TIE: Final = 1e-10
# Largest argument for which exp is computed.
_MOST_EXPONENT: Final = 700.0


def source_rounding(
    definition: Definition, model: SingleModel, steps: Sequence[Any] | None, rows: FloatArray, mapped: FloatArray
) -> FloatArray:
    """Bound rounding in the source and its transformers; the result has shape (n_rows, 1) or (n_rows, n_decisions).

    `definition` is the definition of `model`, which was read from the source. `steps` lists the source's transformers
    and final estimator, or is None if the source is not an estimator. `rows` contains raw rows, and `mapped` the mapped
    rows.
    """
    if isinstance(definition, GaussianDefinition):
        lost = _in_gaussians(definition, steps, mapped)
    else:  # the source sums the terms in a different order than the definition
        lost = definition.rounding(mapped, np.zeros((len(mapped), 1)))
    if model.input_map is None:
        return lost
    return lost + definition.moved(mapped, model.input_map.source_rounding(rows)[:, np.newaxis])


def _in_gaussians(definition: GaussianDefinition, steps: Sequence[Any] | None, mapped: FloatArray) -> FloatArray:
    """Bound the rounding errors of sources that compute a Gaussian kernel with cancellation.

    scikit-learn's ``rbf_kernel`` computes ||x||^2 - 2 x.z + ||z||^2, and a Nystroem map uses such sums twice; a
    Gaussian process divides rows and training rows by its length scales. In ``predict``, LIBSVM, whether standalone or
    in scikit-learn, sums squared differences, so no cancellation occurs.
    """
    model, kind = definition.model, "" if steps is None else name_of(steps[-1])
    nystroem = steps[-2] if steps is not None and len(steps) > 1 and name_of(steps[-2]) == "Nystroem" else None
    is_process = kind in ("GaussianProcessRegressor", "GaussianProcessClassifier")
    if nystroem is None and kind != "KernelRidge" and not is_process:
        return np.zeros((len(mapped), 1))
    reach = (norms_above(mapped) + float(definition.vector_norms.max(initial=0.0)))[:, np.newaxis]
    if is_process:
        return definition.moved(mapped, 2.0 * UNIT64 * reach)
    absolute_coef = np.abs(model.dual_coef[0])
    if nystroem is not None:
        assert steps is not None
        landmarks = nystroem.components_  # a sparse matrix if fitted on sparse rows
        landmarks = landmarks.toarray() if hasattr(landmarks, "toarray") else landmarks
        where = _landmarks(model, np.asarray(landmarks, np.float64))
        normalization = np.asarray(nystroem.normalization_, np.float64).T
        # If there are several targets, use the one to which the model's coefficients belong.
        if kind in linear_models.NAMES:
            functions = linear_models.linear_parts(steps[-1], kind).coef
        else:  # a linear model that wraps another one; solve for its coefficients
            own_coef = np.zeros((len(normalization), model.n_decisions))
            np.add.at(own_coef, where, np.transpose([model.coefficients(k) for k in range(model.n_decisions)]))
            functions = np.asarray(np.linalg.lstsq(normalization, own_coef, rcond=None)[0].T, np.float64)
        sums = np.abs(functions @ normalization.T).sum(axis=1)
        target = int(np.abs(sums - definition.scale).argmin())
        coef, summed = functions[target], float(sums[target])
        # The coefficients may be in another target's units; rescale them to the model's units.
        unit = definition.scale / summed if summed > 0.0 else 1.0
        first = np.unique(where, return_index=True)[1]
        absolute_coef = np.zeros(model.n_sv)
        absolute_coef[first] = unit * (np.abs(normalization) @ np.abs(coef))[where[first]]
    total, exponent = float(absolute_coef.sum()), model.gamma * 2.0 * (model.n_features + 8) * UNIT64 * reach**2
    lost = exponent * total
    if (lost > NEAR_TIE * definition.scale).any():  # use relative errors, because small kernel values change less
        is_finite = exponent < _MOST_EXPONENT
        growth = np.expm1(np.where(is_finite, exponent, 0.0)) * definition.sums(mapped, absolute_coef[:, np.newaxis])
        lost = np.where(is_finite, np.minimum(growth, total), total)
    return np.asarray(lost + 4.0 * (model.n_sv + 8) * UNIT64 * total)


def _landmarks(model: KernelModel, landmarks: FloatArray) -> npt.NDArray[np.intp]:
    """Find the landmark of each support vector; in pairwise models, several vectors may share a landmark."""
    if not model.has_pairs:
        return np.arange(model.n_sv)
    position = {row.tobytes(): k for k, row in enumerate(landmarks + 0.0)}  # converts -0.0 to 0.0
    return np.array([position[row.tobytes()] for row in model.dense_support_vectors(0, model.n_sv) + 0.0], np.intp)

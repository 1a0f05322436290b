"""Bounds on the float64 rounding of a source's own decision values, whose computation may cancel."""

from __future__ import annotations

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

# Labels are promised if the exact value, relative to sum |a_i|, is further than this from zero: float64 rounding.
NEAR_TIE: Final = 1e-10
# Exponentials of larger arguments are not computed.
_MOST_EXPONENT: Final = 700.0


def source_rounding(
    definition: Definition, model: SingleModel, steps: Sequence[Any] | None, rows: FloatArray, mapped: FloatArray
) -> FloatArray:
    """Largest rounding error of the source, transformers included, shape (n_rows, 1) or (n_rows, n_decisions).

    `definition` is that of `model`, which the source was read as; `steps` are the source's transformers and final
    estimator, None if it is not an estimator. `rows` and `mapped` are the rows before and behind the input map.
    """
    if isinstance(definition, GaussianDefinition):
        lost = _in_gaussians(definition, steps, mapped)
    else:  # the definition's terms in another order
        lost = definition.rounding(mapped, np.zeros((len(mapped), 1)))
    if model.input_map is None:
        return lost
    return lost + definition.moved(mapped, model.input_map.source_rounding(rows)[:, np.newaxis])


def _in_gaussians(definition: GaussianDefinition, steps: Sequence[Any] | None, mapped: FloatArray) -> FloatArray:
    """Rounding where the source computes a Gaussian kernel with cancellation.

    scikit-learn's ``rbf_kernel`` computes ||x||^2 - 2 x.z + ||z||^2, and a Nystroem map uses such sums twice; a
    Gaussian process divides rows and training rows by its length scales. LIBSVM, alone or inside scikit-learn, squares
    differences when it predicts.
    """
    model, kind = definition.model, "" if steps is None else name_of(steps[-1])
    nystroem = steps[-2] if steps is not None and len(steps) > 1 and name_of(steps[-2]) == "Nystroem" else None
    is_process = kind in ("GaussianProcessRegressor", "GaussianProcessClassifier")
    if nystroem is None and kind != "KernelRidge" and not is_process:
        return np.zeros((len(mapped), 1))
    reach = (norms_above(mapped) + float(definition.vector_norms.max(initial=0.0)))[:, np.newaxis]
    if is_process:
        return definition.moved(mapped, 2.0 * UNIT64 * reach)
    moduli = np.abs(model.dual_coef[0])
    if nystroem is not None:
        assert steps is not None
        landmarks = nystroem.components_  # sparse where it was fitted on sparse rows
        landmarks = landmarks.toarray() if hasattr(landmarks, "toarray") else landmarks
        where = _landmarks(model, np.asarray(landmarks, np.float64))
        normalization = np.asarray(nystroem.normalization_, np.float64).T
        # Of several targets the one whose coefficients the model has.
        if kind in linear_models.NAMES:
            functions = linear_models.linear_parts(steps[-1], kind).coef
        else:  # several estimators around linear models: what gives the model's own coefficients
            own_coef = np.zeros((len(normalization), model.n_decisions))
            np.add.at(own_coef, where, np.transpose([model.coefficients(k) for k in range(model.n_decisions)]))
            functions = np.asarray(np.linalg.lstsq(normalization, own_coef, rcond=None)[0].T, np.float64)
        sums = np.abs(functions @ normalization.T).sum(axis=1)
        own = int(np.abs(sums - definition.scale).argmin())
        coef, summed = functions[own], float(sums[own])
        # In the units of the model, which may be those of another target.
        unit = definition.scale / summed if summed > 0.0 else 1.0
        first = np.unique(where, return_index=True)[1]
        moduli = np.zeros(model.n_sv)
        moduli[first] = unit * (np.abs(normalization) @ np.abs(coef))[where[first]]
    total, exponent = float(moduli.sum()), model.gamma * 2.0 * (model.n_features + 8) * UNIT64 * reach**2
    lost = exponent * total
    if (lost > NEAR_TIE * definition.scale).any():  # a small error changes small kernels less
        is_off = exponent < _MOST_EXPONENT
        growth = np.expm1(np.where(is_off, exponent, 0.0)) * definition.sums(mapped, moduli[:, np.newaxis])
        lost = np.where(is_off, np.minimum(growth, total), total)
    return np.asarray(lost + 4.0 * (model.n_sv + 8) * UNIT64 * total)


def _landmarks(model: KernelModel, landmarks: FloatArray) -> npt.NDArray[np.intp]:
    """Find the landmark that each support vector is; models of pairs have some of them more than once."""
    if not model.has_pairs:
        return np.arange(model.n_sv)
    position = {row.tobytes(): k for k, row in enumerate(landmarks + 0.0)}  # -0.0 is 0.0
    return np.array([position[row.tobytes()] for row in model.dense_support_vectors(0, model.n_sv) + 0.0], np.intp)

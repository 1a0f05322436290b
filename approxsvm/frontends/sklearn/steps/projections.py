"""Projections: principal components, discriminants, random projections, partial least squares, feature clusters."""

from fractions import Fraction
from typing import Any, Final

import numpy as np
from scipy.sparse import issparse

from approxsvm.errors import UnsupportedModelError
from approxsvm.frontends.sklearn.host_arrays import host_array
from approxsvm.frontends.sklearn.steps.dtype_rules import (
    F64,
    FLOATS,
    WIDE,
    Behaviour,
    centered_in_place,
    in_common_dtype,
)
from approxsvm.frontends.sklearn.steps.record import Step
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.ops import Projection


def _pca(map_: InputMap, step: Any) -> InputMap:
    mean, components = (np.asarray(host_array(values)) for values in (step.mean_, step.components_))
    # scikit-learn subtracts this product, computed in the training precision.
    shift = np.reshape(mean, (1, -1)) @ components.T
    projected = map_.then_op(Projection.about(mean, components.T, shift[0]))
    if not step.whiten:
        return projected
    variance = np.asarray(host_array(step.explained_variance_))
    least = np.finfo(variance.dtype).eps
    roots = np.maximum(np.sqrt(variance), least).astype(np.float64)
    return projected.then_affine(divide=roots, relative_error=_root_errors(roots, variance, least))


def _root_errors(roots: FloatArray, squares: Any, least: float) -> FloatArray:
    """Bound |root - sqrt(square)| / sqrt(square), because square roots are computed in the training precision."""
    errors = np.zeros(len(roots))
    for k, (root, square) in enumerate(zip(roots.tolist(), squares.tolist(), strict=True)):
        if root > least:
            exact = Fraction(square)
            errors[k] = float(abs(Fraction(root) ** 2 - exact) / exact) * (1 + 2.0**-50)
    return errors


def _truncated_svd(map_: InputMap, step: Any) -> InputMap:
    return map_.then_op(Projection.about(0.0, host_array(step.components_).T))


def _fast_ica(map_: InputMap, step: Any) -> InputMap:
    return map_.then_op(Projection.about(step.mean_ if step.whiten else 0.0, step.components_.T))


def _linear_discriminants(map_: InputMap, step: Any) -> InputMap:
    if step.solver == "lsqr":
        raise UnsupportedModelError("its solver 'lsqr' projects nothing")
    scalings = np.asarray(host_array(step.scalings_))[:, : step._max_components]
    return map_.then_op(Projection.about(0.0 if step.solver == "eigen" else host_array(step.xbar_), scalings))


def _random_projection(map_: InputMap, step: Any) -> InputMap:
    components = step.components_
    return map_.then_op(Projection.about(0.0, (components.toarray() if issparse(components) else components).T))


def _partial_least_squares(map_: InputMap, step: Any) -> InputMap:
    scaled = map_.then_affine(subtract=step._x_mean, divide=step._x_std)
    return scaled.then_op(Projection.about(0.0, step.x_rotations_))


def _feature_agglomeration(map_: InputMap, step: Any) -> InputMap:
    if step.pooling_func is not np.mean:
        raise UnsupportedModelError(f"it pools by {getattr(step.pooling_func, '__name__', step.pooling_func)!r}")
    _, labels = np.unique(step.labels_, return_inverse=True)
    members = (labels[:, np.newaxis] == np.arange(labels.max() + 1)).astype(np.float64)
    return map_.then_op(Projection.about(0.0, members)).then_affine(divide=members.sum(axis=0))


STEPS: Final = (
    Step(
        "PCA IncrementalPCA",
        "sklearn.decomposition",
        "whiten mean_ components_ explained_variance_",
        _pca,
        in_common_dtype("components_", kept=WIDE),
    ),
    Step(
        "TruncatedSVD",
        "sklearn.decomposition",
        "components_",
        _truncated_svd,
        in_common_dtype("components_"),
    ),
    Step(
        "FastICA",
        "sklearn.decomposition",
        "whiten mean_ components_",
        _fast_ica,
        centered_in_place(lambda step: bool(step.whiten), "components_", kept=WIDE),
    ),
    Step(
        "LinearDiscriminantAnalysis",
        "sklearn.discriminant_analysis",
        "solver xbar_ scalings_ _max_components",
        _linear_discriminants,
        in_common_dtype("xbar_", "scalings_"),
        refused="solver='lsqr'",
    ),
    Step(
        "GaussianRandomProjection",
        "sklearn.random_projection",
        "components_",
        _random_projection,
        in_common_dtype("components_", kept=WIDE),
    ),
    Step(
        "SparseRandomProjection",
        "sklearn.random_projection",
        "components_",
        _random_projection,
        in_common_dtype("components_", kept=WIDE),
        gives_sparse=lambda step, is_sparse: is_sparse and not step.dense_output,
        leaves_unsorted=lambda step: not step.dense_output,
    ),
    Step(
        "CCA PLSCanonical PLSRegression",
        "sklearn.cross_decomposition",
        "_x_mean _x_std x_rotations_",
        _partial_least_squares,
        centered_in_place(lambda step: True, "x_rotations_", kept=FLOATS),
    ),
    Step(
        "FeatureAgglomeration",
        "sklearn.cluster",
        "labels_ pooling_func",
        _feature_agglomeration,
        lambda step, dtype: Behaviour(F64),
        refused="pooling by other functions than np.mean",
    ),
)

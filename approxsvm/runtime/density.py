"""Log densities of models with a Gaussian kernel, with error bounds.

The density of a Gaussian kernel with bandwidth h in d features, with gamma = 1 / (2 h^2), is

    p(z) = (gamma / pi)^(d / 2) f(z),    f(z) = sum_i w_i exp(-gamma ||z - x_i||^2),   w_i >= 0, sum_i w_i = 1.

The artifact stores f as a regressor. If the core's value v of f has an error bound b <= 2^-26 v, the error of log v is
at most -log(1 - b / v). In the tails, f is smaller than the rounding error of a float64 sum with values up to 1, so the
terms are added relative to the largest one,

    log f = m + log sum_i w_i exp(-h_i - m),    h_i = gamma ||z - x_i||^2,   m = max(-h_i).

No term is negative, so no digits cancel. With u = 2^-53, the error of an exponent is at most (d + 12) u h_i, including
the rounding of gamma. The relative error of the sum is at most the mean of these errors, weighted by the terms, plus n
+ 24 roundings. If earlier steps move a row by at most e, each exponent changes by at most gamma e (2 max_i ||z - x_i||
+ e), and so does log f. The logarithms of the factors and their sums add a few roundings each.

If the source computes in float32, only b includes the source's rounding: log v is kept if b < v; otherwise the bound is
infinite.
"""

import math
from typing import Any, Final

import numpy as np

from approxsvm.frames.rows import chunks, zero_unused
from approxsvm.ir.compensated import FloatArray
from approxsvm.ir.constants import UNIT64
from approxsvm.runtime.evaluator import BOUNDS, VALUES, Evaluator, Values

_UP: Final = 1.01
_CLOSE: Final = 2.0**-26  # if a value's relative bound is larger, its terms are added relative to the largest one


def log_densities(evaluator: Evaluator, rows: Any) -> tuple[FloatArray, FloatArray]:
    """Return log p for each row, and bounds on the errors, which may be infinite without support vectors."""
    artifact = evaluator.artifact
    exact: Values = "promised" if artifact.mode == "approximate" else "exact"  # no exact values in "approximate" mode
    values, bounds = evaluator.evaluate(rows, VALUES | BOUNDS, exact)
    gamma, d = float(artifact.header["gamma"]), artifact.n_features
    shift = 0.5 * d * (math.log(gamma) - math.log(math.pi))
    shift_error = 8.0 * UNIT64 * d * (abs(math.log(gamma)) + 2.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(values > 0.0, bounds / values, np.inf)
        logs, errors = np.log(values), np.where(share < 1.0, -np.log(1.0 - share) * _UP + 4.0 * UNIT64, np.inf)
    in_float32 = artifact.row_dtypes.rounded is not None and rows.dtype == np.float32
    far = np.flatnonzero(~(share < 1.0) if in_float32 else ~(share <= _CLOSE))
    if len(far) and len(artifact.support_vectors()):
        logs[far], tail_errors = _in_the_tails(evaluator, rows[far])
        errors[far] = np.inf if in_float32 else tail_errors
    logs = np.where(np.isnan(logs), -np.inf, logs)
    return logs + shift, errors + shift_error + 4.0 * UNIT64 * (np.abs(logs) + abs(shift))


def _in_the_tails(evaluator: Evaluator, rows: Any) -> tuple[FloatArray, FloatArray]:
    from scipy.spatial.distance import cdist

    artifact = evaluator.artifact
    vectors, weights, gamma = artifact.support_vectors(), artifact.dual_coef()[0], float(artifact.header["gamma"])
    present = weights > 0.0
    vectors, weights = vectors[present], weights[present]
    n, d = vectors.shape
    logs, errors = np.empty((2, rows.shape[0]))
    for piece in chunks(rows.shape[0], max(n, artifact.n_raw_features)):
        some = rows[piece]
        dense = np.asarray(some if isinstance(some, np.ndarray) else some.toarray(), np.float64)
        moved = np.zeros(len(dense))
        if artifact.input_map is not None:
            dense, moved = artifact.input_map.mapped_with_errors(zero_unused(dense, artifact.raw_columns))
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            h = gamma * cdist(dense, vectors, "sqeuclidean")
            least = h.min(axis=1, keepdims=True)
            terms = weights * np.exp(least - h)
            sums = terms.sum(axis=1)
            mean = np.einsum("ij,ij->i", terms, np.minimum(h, 1e300)) / sums
            reach = np.sqrt(h.max(axis=1) / gamma) if gamma > 0.0 else np.zeros(len(h))
            logs[piece] = np.log(sums) - least[:, 0]
            errors[piece] = (
                (d + 12) * UNIT64 * mean + (n + 24) * UNIT64 + gamma * moved * (2.0 * reach + moved)
            ) * _UP + 4.0 * UNIT64 * (np.abs(np.log(sums)) + least[:, 0])
    known = np.isfinite(logs) & np.isfinite(errors)
    return logs, np.where(known, errors, np.inf)

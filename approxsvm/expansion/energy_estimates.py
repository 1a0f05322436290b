"""Estimates of contracted remainders from a sample of the support vectors, for decisions that need no proof.

The remainder of a center (certificate.py) is a double sum over all pairs of support vectors,

    T_theta^2 = sum_ij at_i at_j K_ij^theta - sum_{k<=m} theta^k N_k^2
              = sum_ij w_i w_j (exp(theta g_ij) - sum_{k<=m} (theta g_ij)^k / k!),        g_ij = 2 gamma xt_i.xt_j.

Over the pairs of a random sample of M of n support vectors, the sum without the diagonal times n (n - 1) / M (M - 1),
plus the diagonal times n / M, has this expectation. The terms of low degree are left out pair by pair, so that pairs
near the center, where the remainder is small, add little variance.

A planner judges plans by such estimates. They also choose the contraction of each center of the plan that it takes.
The proof then computes the exact sum for this contraction alone.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from approxsvm.expansion.kernel_sums import ExpansionPoint
from approxsvm.model.constants import CONTRACTIONS
from approxsvm.model.kernel_model import FloatArray

# Support vectors of a sample, for many centers and for few; models with not many more are summed up exactly.
_SAMPLED: Final = (768, 3072)
_PAIRS: Final = 1e8  # about so many pairs are looked at for all centers together
_SEED: Final = 0


def are_worthwhile(n_sv: int) -> bool:
    """Return whether estimates are much cheaper than sums over all pairs."""
    return n_sv > 2 * _SAMPLED[1]


def sampled(n_sv: int, n_centers: int) -> npt.NDArray[np.intp]:
    """Draw the positions of a sample, ascending."""
    size = int(np.clip(np.sqrt(_PAIRS / n_centers), *_SAMPLED))
    return np.sort(np.random.default_rng(_SEED).permutation(n_sv)[:size])


def estimated_remainders(
    point: ExpansionPoint, places: npt.NDArray[np.intp], first_degree: int
) -> tuple[FloatArray, FloatArray]:
    """Estimate T_theta^2 of the degrees from `first_degree` on and sum_i |at_i|, for each contraction.

    `places` are the positions of the sample among the support vectors.
    """
    function, n, m = point.function, point.function.n_sv, len(places)
    rows = (function.rows_at(places) - point.center.astype(np.float64)) * function.scale
    coef = function.coef[places]
    half_sq_norm = 0.5 * np.einsum("ij,ij->i", rows, rows)
    remainders, moduli = np.empty((2, len(CONTRACTIONS)))
    with np.errstate(all="ignore"):
        gram = rows @ rows.T
        of_kernel = np.exp(np.minimum(gram - half_sq_norm[:, np.newaxis] - half_sq_norm, 0.0))
        weight = coef * np.exp(-half_sq_norm)
        low, power = np.empty((2, first_degree)), np.ones_like(gram)
        for k in range(first_degree):
            if k:
                power *= gram
                power /= k
            low[:, k] = weight @ power @ weight, weight**2 @ np.diagonal(power)
        for column, theta in enumerate(CONTRACTIONS):
            if column:
                np.sqrt(of_kernel, out=of_kernel)
            faded = coef * np.exp((theta - 1.0) * half_sq_norm)
            of_low = low @ theta ** np.arange(first_degree)
            whole = faded @ of_kernel @ faded - of_low[0]
            diagonal = max(faded**2 @ np.diagonal(of_kernel) - of_low[1], 0.0)
            of_pairs = (whole - diagonal) * (n / m) * ((n - 1) / max(m - 1, 1))
            remainders[column] = max(of_pairs + diagonal * (n / m), diagonal * (n / m))
            moduli[column] = np.abs(faded).sum() * (n / m)
    return np.where(np.isnan(remainders), np.inf, remainders), moduli

"""Which contraction to prove for a center of a large model, by estimates from a sample of the support vectors.

The remainder of a center (certificate.py) is a double sum over all pairs of support vectors,

    T_theta^2 = sum_ij at_i at_j K_ij^theta - sum_{k<=m} theta^k N_k^2
              = sum_ij w_i w_j (exp(theta g_ij) - sum_{k<=m} (theta g_ij)^k / k!),        g_ij = 2 gamma xt_i.xt_j.

Over the pairs of a random sample of M of n support vectors, the sum without the diagonal times n (n - 1) / M (M - 1),
plus the diagonal times n / M, has this expectation. The terms of low degree are left out pair by pair, so that pairs
near the center, where the remainder is small, add little variance. Nothing here is a bound: the proof computes the
exact sum for the contraction that is chosen, and any contraction gives a valid one.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from approxsvm import _native
from approxsvm.expansion.kernel_sums import ExpansionPoint
from approxsvm.model.constants import CONTRACTIONS

# Support vectors of a sample, for many centers and for few; and about how many pairs are looked at for all centers.
_SAMPLED: Final = (768, 3072)
_PAIRS: Final = 1e8
# Models with fewer support vectors are summed up for all contractions.
_LARGE: Final = 20_000
_SEED: Final = 0


def are_worthwhile(n_sv: int) -> bool:
    """Return whether an estimate is much cheaper than sums over all pairs for each contraction."""
    return n_sv >= _LARGE


def sampled(n_sv: int, n_centers: int) -> npt.NDArray[np.intp]:
    """Draw the positions of a sample, ascending."""
    size = int(np.clip(np.sqrt(_PAIRS / n_centers), *_SAMPLED))
    return np.sort(np.random.default_rng(_SEED).permutation(n_sv)[:size])


def best_contraction(point: ExpansionPoint, places: npt.NDArray[np.intp], first_degree: int, typical_s: float) -> int:
    """Return the position among the contractions below 1 of the one with the least estimated bound at `typical_s`.

    `places` are the positions of the sample among the support vectors; the remainder is that of the degrees from
    `first_degree` on.
    """
    function, n, m = point.function, point.function.n_sv, len(places)
    rows = (function.rows_at(places) - point.center.astype(np.float64)) * function.scale
    coef = function.coef[places]
    half_sq_norm = 0.5 * np.einsum("ij,ij->i", rows, rows)
    bounds = np.empty(len(CONTRACTIONS) - 1)
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
        for column, theta in enumerate(CONTRACTIONS[1:]):
            np.sqrt(of_kernel, out=of_kernel)
            faded = coef * np.exp((theta - 1.0) * half_sq_norm)
            of_low = low @ theta ** np.arange(first_degree)
            diagonal = max(faded**2 @ np.diagonal(of_kernel) - of_low[1], 0.0)
            of_pairs = (faded @ of_kernel @ faded - of_low[0] - diagonal) * (n / m) * ((n - 1) / max(m - 1, 1))
            remainder_sq = max(of_pairs, 0.0) + diagonal * (n / m)
            bounds[column] = np.sqrt(remainder_sq) * float(_native.remainder_factor(first_degree, theta, typical_s))
    return int(np.nan_to_num(bounds, nan=np.inf).argmin())

"""Linear models on Taylor features, treated as expansions about the origin.

The features of degree k have the norm phi_k(s) = exp(-s/2) sqrt(s^k / k!), where s = 2 gamma ||z||^2. Let w_k be the
weights of degree k, and N_k = ||w_k||. The absolute value of the part of degree k is at most N_k phi_k(s), and so is
the sum of the absolute values of its terms. The rounding bounds of expansions (certificate.py) depend only on these
norms. There is no truncation error.

Together, the features of all degrees form a projection of the kernel's feature map phi. With W^2 = sum_k N_k^2, the
inequality

    |f(z) - f(z')| <= W ||phi(z) - phi(z')||

bounds the effect of moving a row. For a sum of kernels with coefficients a_i, this bound is
A1 min(sqrt(2 gamma / e) ||z - z'||, 1) with A1 = sum |a_i|; for this model, the same bound holds with A1 = sqrt(e) W.
"""

from __future__ import annotations

import math

import numpy as np

from approxsvm.errors import UnsupportedModelError
from approxsvm.expansion.certificate import Certificates
from approxsvm.expansion.monomials import inverse_factorials
from approxsvm.expansion.taylor import Expansions, check_size
from approxsvm.ir.constants import UNIT64
from approxsvm.ir.taylor_model import TaylorModel


def expand_and_certify(model: TaylorModel) -> tuple[Expansions, Certificates]:
    """Compute the polynomial's coefficients and the norms that bound the rounding errors.

    Each coefficient is a weight times sqrt((2 gamma)^k / alpha!), with at most 4 k + 4 roundings. Raises
    UnsupportedModelError if there are too many coefficients for an artifact, or if the weights overflow float64.
    """
    check_size(model.n_features, model.degree)
    scale = math.sqrt(2.0 * model.gamma)
    norms, total = model.norms, model.total
    parts, rounding = [], 0.0
    with np.errstate(over="ignore", under="ignore"):  # overflows are rejected below
        for k, weights in enumerate(model.weights):
            rounding += (4 * k + 8) * UNIT64 * norms[k]
            roots = np.sqrt(inverse_factorials(model.n_features, k)) if k > 1 else np.ones(1)
            parts.append(weights * roots)
            for _ in range(k):
                parts[k] *= scale
    if not total < math.inf:
        raise UnsupportedModelError(f"the weights of this {model.source} are beyond the range of float64")
    certificates = Certificates(
        norms=norms[np.newaxis],
        remainders=np.zeros(1),
        first_remainder_degree=model.degree + 1,
        contractions=np.ones(1),
        # An underflow changes a coefficient by less than 2^-1074; in scaled coordinates, by at most 2^600 times as
        # much.
        coefficient_errors=np.array([1.01 * rounding + 2.0**-400]),
        total=total,
        sum_moduli=model.scale,
    )
    # There are no support vectors; the infinite norm disables the bound for distant rows.
    return Expansions(parts[0], tuple(part[np.newaxis] for part in parts[1:]), np.array([math.inf])), certificates

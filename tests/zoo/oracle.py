"""Decision values in extended precision: the judge of every value and bound, apart from the package's arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np

from approxsvm.model.kernel_model import KernelModel

Extended = np.longdouble


def decision_values(model: Any, rows: Any) -> tuple[Any, Any]:
    """Return (n, n_decisions) values and what they may be off by; (None, None) where there is no rule yet."""
    if not isinstance(model, KernelModel) or model.input_map is not None or model.kernel != "gaussian":
        return None, None
    vectors = model.dense_support_vectors(0, model.n_sv).astype(Extended)
    coef = np.array([model.coefficients(k) for k in range(model.n_decisions)]).astype(Extended)
    terms = np.array([np.exp(-Extended(model.gamma) * ((vectors - z) ** 2).sum(axis=1)) for z in rows.astype(Extended)])
    slack = (coef.shape[1] + 8 * rows.shape[1] + 60) * 2.0**-63
    intercept = model.intercept.astype(Extended)
    return terms @ coef.T + intercept, slack * (np.abs(coef).sum(axis=1) + np.abs(intercept)) + 0 * terms[:, :1]

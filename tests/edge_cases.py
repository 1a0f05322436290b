"""Coefficients and support vectors for which carelessly derived bounds fail."""

from __future__ import annotations

from typing import Any

import numpy as np


def awkward_coefficients(rng: Any, n: int, kind: str) -> Any:
    coef = rng.normal(size=n)
    if kind == "ten decades":
        return coef * 10.0 ** rng.uniform(-10, 0, n)
    if kind == "300 decades":
        return coef * 10.0 ** rng.uniform(-300, 0, n)
    if kind == "tiny":
        return coef * 1e-250
    return np.sign(coef) if kind == "at the limit" else coef


def awkward_vectors(rng: Any, n: int, d: int, kind: str) -> Any:
    x = rng.normal(size=(n, d))
    if kind == "sparse":
        return x * (rng.random((n, d)) < 0.15)
    if kind == "integers":
        return np.round(2 * x)
    if kind == "constant features":
        x[:, ::2] = 3.7
    if kind == "zeros":
        x[::3] = 0.0
    if kind == "duplicates":
        x[n // 2 :] = x[: n - n // 2]
    if kind == "pairs":
        x[n // 2 :] = x[: n - n // 2] * (1 + 1e-9 * rng.normal(size=(n - n // 2, 1)))
    return x

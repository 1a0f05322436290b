"""Parameters that the feature maps share."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np
from scipy.sparse import issparse


def is_number(value: Any, kind: type) -> bool:
    """Whether a parameter is of a kind of numbers, among which truth values do not count."""
    return isinstance(value, kind) and not isinstance(value, bool)


def resolved_gamma(gamma: Any, rows: Any, rules: tuple[str, ...] = ("scale", "auto")) -> float:
    """The number that `gamma` stands for on some rows, by the rules of SVC.

    Raises
    ------
    ValueError
        It is neither a positive number nor one of `rules`.
    """
    if isinstance(gamma, str) and gamma in rules:
        variance = 1.0
        if gamma == "scale":
            wide = rows.astype(np.float64)
            variance = float(wide.multiply(wide).mean() - wide.mean() ** 2) if issparse(rows) else float(wide.var())
        return 1.0 / (rows.shape[1] * variance) if variance > 0.0 else 1.0
    if not is_number(gamma, Real) or not 0.0 < gamma < math.inf:
        raise ValueError(f"gamma must be {', '.join(map(repr, rules))} or a positive number, not {gamma!r}")
    return float(gamma)

"""Conversion of pairwise decision functions from any program's layout to LIBSVM's coefficient block."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.errors import ModelFormatError
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.outputs import class_pairs


@dataclass(frozen=True, eq=False)
class PairTerms:
    """Decision function of one pair: coefficients for some of the support vectors, and an intercept.

    A positive value is a vote for the first class of the pair.
    """

    support: npt.NDArray[np.intp]
    coef: FloatArray
    intercept: float


@dataclass(frozen=True, eq=False)
class PairBlock:
    """Fields of KernelModel; `order` lists the indices of the support vectors to use, possibly with repetitions."""

    order: npt.NDArray[np.intp]
    dual_coef: FloatArray
    intercept: FloatArray
    n_support: npt.NDArray[np.int64]


def pair_block(n_classes: int, n_sv: int, functions: Sequence[PairTerms]) -> PairBlock:
    """Build LIBSVM's coefficient block for the decision functions of all pairs (0, 1), (0, 2), ..., (1, 2), ....

    The block stores each support vector for the pairs of one class, because training uses a vector only in the pairs
    that contain its class. Vectors used in pairs without a common class, such as the summed vectors of linear kernels,
    are repeated.

    Raises ModelFormatError if a function uses a nonexistent support vector, or one vector twice.
    """
    pairs = class_pairs(n_classes)
    used: dict[int, list[tuple[tuple[int, int], float]]] = defaultdict(list)
    for pair, terms in zip(pairs, functions, strict=True):
        support = terms.support.tolist()
        if support and not 0 <= min(support) <= max(support) < n_sv:
            worst = min(support) if min(support) < 0 else max(support)
            raise ModelFormatError(f"the function of classes {pair} uses support vector {worst} of {n_sv}")
        if len(set(support)) < len(support):
            raise ModelFormatError(f"the function of classes {pair} uses a support vector twice")
        for k, a in zip(support, terms.coef.tolist(), strict=True):
            used[k].append((pair, a))
    copies: list[list[tuple[int, list[tuple[tuple[int, int], float]]]]] = [[] for _ in range(n_classes)]
    for k in sorted(used):
        remaining = used[k]
        while remaining:
            owner = _owner(remaining)
            copies[owner].append((k, [term for term in remaining if owner in term[0]]))
            remaining = [term for term in remaining if owner not in term[0]]
    flat: list[tuple[int, int, Any]] = [(owner, k, terms) for owner in range(n_classes) for k, terms in copies[owner]]
    dual_coef = np.zeros((max(1, n_classes - 1), len(flat)))
    for column, (owner, _, terms) in enumerate(flat):
        for (i, j), a in terms:
            dual_coef[j - 1 if owner == i else i, column] = a
    return PairBlock(
        order=np.array([k for _, k, _ in flat], np.intp),
        dual_coef=dual_coef,
        intercept=np.array([terms.intercept for terms in functions]),
        n_support=np.array([len(some) for some in copies], np.int64),
    )


def _owner(terms: Sequence[tuple[tuple[int, int], float]]) -> int:
    """Return the class that occurs in the most pairs; ties are broken by the sign of the first coefficient."""
    counts: dict[int, int] = defaultdict(int)
    for pair, _ in terms:
        for end in pair:
            counts[end] += 1
    (i, j), a = terms[0]
    likely = i if a > 0 else j
    return max(counts, key=lambda c: (counts[c], c == likely))

"""Kernel sums in few coordinates as the section that says what they add up (models/FORMAT.md, "subspaces")."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from approxsvm.artifact.section_reader import SectionReader
from approxsvm.errors import ArtifactError

if TYPE_CHECKING:  # artifacts are read without SciPy
    from approxsvm.expansion.subspace import SubspaceGroup

# What coefficients are in modulus, unless they are 0, so that float32 adds them up.
LEAST_COEFFICIENT: Final = 2.0**-60
MOST_COEFFICIENT: Final = 2.0**60
MAX_STAGES: Final = 8
MAX_SKEW: Final = 2.0**-10
# W, value_error, N_1, N_2, N_3 and T.
_RESIDUAL_NUMBERS: Final = 6


def pack_subspaces(groups: Sequence[SubspaceGroup], first_is_expansion: bool) -> bytes:
    """Those of each class, or of the only decision function; an expansion takes the place of the first stage's sums."""
    numbers = [stage.n_coordinates for stage in groups[0].stages]
    pieces = [struct.pack(f"<II{len(numbers)}I", len(numbers), 0, *numbers)]
    for group in groups:
        known = [(r.total, r.value_error, *r.norms) for stage in group.stages for r in stage.known]
        summed = group.stages[1:] if first_is_expansion else group.stages
        coef = [np.concatenate([stage.own.ravel(), stage.others]) for stage in summed]
        pieces += [
            struct.pack("<d", group.skew),
            group.counts.astype("<u4").tobytes(),
            np.array(known, "<f8").tobytes(),
            group.basis.astype("<f4").tobytes(),
            group.vectors.astype("<f4").tobytes(),
            np.concatenate([*coef, np.empty(0)]).astype("<f4").tobytes(),
        ]
    return b"".join(piece + bytes(-len(piece) % 8) for piece in pieces)


def check_subspaces(content: bytes, n_features: int, n_labels: int, n_sv: int, first_is_expansion: bool) -> int:
    """Stages that ascend; bases, vectors and norms of finite numbers; coefficients of one sign in each list.

    Returns
    -------
    int
        Coordinates of the first stage.

    Raises
    ------
    ArtifactError
        They are not.
    """
    reader = SectionReader(content)
    try:
        n_stages, reserved = reader.take(struct.Struct("<II"))
        if not 1 <= n_stages <= MAX_STAGES or reserved != 0:
            raise ArtifactError(f"it has {n_stages} stages, reserved {reserved}; expected 1 to {MAX_STAGES}, and 0")
        numbers = _numbers(reader, n_stages, "<u4").tolist()
        if numbers[0] < 1 or any(a >= b for a, b in pairwise(numbers)) or numbers[-1] > n_features:
            raise ArtifactError(f"the coordinates {numbers} of its stages do not ascend from 1 to {n_features}")
        for _ in range(n_labels if n_labels > 2 else 1):
            n_forms = n_labels - 1 if n_labels > 2 else 1
            _check_group(reader, numbers, n_stages - first_is_expansion, n_features, n_forms, n_sv)
        reader.end()
    except ArtifactError as error:
        raise ArtifactError(f"section subspaces: {error}") from None
    return int(numbers[0])


def _numbers(reader: SectionReader, n: int, kind: str) -> npt.NDArray[np.generic]:
    """So many numbers of four bytes, with zeros up to a multiple of eight."""
    found = np.frombuffer(reader.raw_bytes(4 * (n + n % 2)), kind)
    if n % 2 and found[n].tobytes() != bytes(4):
        raise ArtifactError("its padding is not zero")
    return found[:n]


def _check_group(
    reader: SectionReader, numbers: list[int], n_summed: int, n_features: int, n_forms: int, n_sv: int
) -> None:
    skew = reader.numbers(1)[0]
    if not 0.0 <= skew <= MAX_SKEW:
        raise ArtifactError(f"the skew of a basis is {skew}, expected 0 to {MAX_SKEW}")
    counts = _numbers(reader, 1 + n_forms, "<u4").astype(np.int64)
    n_own, n_others = int(counts[0]), int(counts[1:].sum())
    if n_own > n_sv or n_others > n_sv:
        raise ArtifactError(f"it lists {n_own} and {n_others} support vectors, but there are {n_sv}")
    known = reader.numbers(len(numbers) * n_forms * _RESIDUAL_NUMBERS)
    if not (np.isfinite(known) & (known >= 0.0)).all():
        raise ArtifactError("a norm is NaN, negative or infinite")
    for n, what in ((n_features, "basis"), (n_own + n_others, "support vector")):
        if not np.isfinite(_numbers(reader, n * numbers[-1], "<f4")).all():
            raise ArtifactError(f"a {what} holds NaN or infinity")
    coef = _numbers(reader, n_summed * (n_forms * n_own + n_others), "<f4").astype(np.float64)
    moduli = np.abs(coef)
    if not ((coef == 0.0) | ((moduli >= LEAST_COEFFICIENT) & (moduli <= MOST_COEFFICIENT))).all():
        raise ArtifactError("a coefficient is neither 0 nor, in modulus, from 2^-60 to 2^60")
    lengths = [*[n_own] * n_forms, *counts[1:].tolist()] * n_summed
    for part in np.split(coef, np.cumsum(lengths)[:-1]):
        if (part > 0.0).any() and (part < 0.0).any():
            raise ArtifactError("the coefficients of a list have both signs")

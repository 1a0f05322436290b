"""Section subspaces: kernel sums in few coordinates (models/FORMAT.md, "subspaces")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from approxsvm.ir.schema import record

if TYPE_CHECKING:  # artifacts are read without SciPy
    from approxsvm.artifact.views import Artifact
    from approxsvm.expansion.subspace import SubspaceGroup

_HEADER: Final = record("subspaces")


def subspace_sections(groups: Sequence[SubspaceGroup], expansion: Artifact | None) -> dict[str, bytes]:
    """Encode kernel sums in few coordinates, and the expansion that replaces the first stage's sums if there is one."""
    sections = {"subspaces": _pack(groups, expansion is not None)}
    return sections if expansion is None else sections | {"subspace_expansion": expansion.data}


def _pack(groups: Sequence[SubspaceGroup], first_is_expansion: bool) -> bytes:
    """Encode one group per class, or the only one; an expansion may replace the first stage's sums."""
    numbers = [stage.n_coordinates for stage in groups[0].stages]
    pieces = [_HEADER.pack(len(numbers), 0) + np.array(numbers, "<u4").tobytes()]
    for group in groups:
        summed = group.stages[1:] if first_is_expansion else group.stages
        known = [
            (r.total, (1 + 2.0**-50) * (r.value_error + (r.grid_error if stage in summed else 0.0)), *r.norms)
            for stage in group.stages
            for r in stage.known
        ]
        coef = [np.concatenate([stage.own.ravel(), stage.others]) for stage in summed]
        pieces += [
            np.array(group.skew, "<f8").tobytes(),
            group.counts.astype("<u4").tobytes(),
            np.array(known, "<f8").tobytes(),
            group.basis.astype("<f4").tobytes(),
            group.vectors.astype("<f4").tobytes(),
            np.concatenate([*coef, np.empty(0)]).astype("<f4").tobytes(),
        ]
    return b"".join(piece + bytes(-len(piece) % 8) for piece in pieces)

"""Section "subspaces": kernel sums over a few coordinates (models/FORMAT.md, "subspaces")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from approxsvm.artifact.arrays import pack

if TYPE_CHECKING:  # imported here so that artifacts can be read without SciPy
    from approxsvm.artifact.views import Artifact
    from approxsvm.expansion.subspace import SubspaceGroup


def subspace_sections(groups: Sequence[SubspaceGroup], expansion: Artifact | None) -> dict[str, bytes]:
    """Encode kernel sums over a few coordinates, and the expansion, if any, that replaces the first stage's sums."""
    sections = {"subspaces": _pack(groups, expansion is not None)}
    return sections if expansion is None else sections | {"subspace_expansion": expansion.data}


def _pack(groups: Sequence[SubspaceGroup], first_is_expansion: bool) -> bytes:
    """Encode the groups (one per class, or only one); an expansion may replace the first stage's sums."""
    numbers = [stage.n_coordinates for stage in groups[0].stages]
    pieces = [pack("subspaces", n_stages=len(numbers), coordinates=numbers)]
    for group in groups:
        summed = group.stages[1:] if first_is_expansion else group.stages
        known = [(r.total, r.value_error, *r.norms) for stage in group.stages for r in stage.known]
        coef = [np.concatenate([stage.own.ravel(), stage.others]) for stage in summed]
        parts = {"known": known, "coef": np.concatenate([*coef, np.empty(0)])}
        parts |= {name: getattr(group, name) for name in ("skew", "counts", "basis", "vectors")}
        pieces.append(pack("subspace_group", **parts))
    return b"".join(pieces)

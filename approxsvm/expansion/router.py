"""Two-level search for a center near a row.

Any center may be used for a row; the choice affects only the size of the row's bound. The search therefore need not be
exact, and its rounding errors do no harm.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from approxsvm.ir.kernel_model import FloatArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Rows: TypeAlias = npt.NDArray[np.floating[Any]] | csr_array[Any]

_BLOCK_ELEMENTS: Final = 1 << 21


@dataclass(frozen=True, eq=False)
class Router:
    """Two-level search for a nearby center: the nearest group, then the nearest center in its list."""

    reference: npt.NDArray[np.float32]  # (n_features,): a point near the data, subtracted before distances are computed
    groups: npt.NDArray[np.float32]  # (n_groups, n_features): points of the first level
    members: tuple[npt.NDArray[np.uint32], ...]  # indices of each group's centers, increasing; never empty; may overlap
    metric: FloatArray  # (n_features,): weight of each feature's squared difference


def route(router: Router, centers: npt.NDArray[np.float32], rows: Rows) -> npt.NDArray[np.intp]:
    """Return the index of a nearby center for each row, or of an arbitrary center if the row is not finite."""
    search = Search(router.reference, router.metric)
    group = search.nearest(rows, router.groups)
    nearest = np.empty(len(group), np.intp)
    for g, members in enumerate(router.members):
        routed = np.flatnonzero(group == g)
        if len(routed):
            nearest[routed] = members[search.nearest(rows[routed], centers[members])]
    return nearest


@dataclass(frozen=True, eq=False)
class Search:
    """Search for nearest points, with weighted features and distances computed relative to a reference point."""

    reference: npt.NDArray[np.float32]
    metric: FloatArray

    def nearest(self, rows: Rows, points: npt.NDArray[np.float32]) -> npt.NDArray[np.intp]:
        """Return the index of the nearest point for each row, computed with inner products."""
        origin = self.reference.astype(np.float64)
        shifted = points.astype(np.float64) - origin
        weighted = shifted * self.metric
        half_sq_norm = 0.5 * np.einsum("ij,ij->i", shifted, weighted)
        nearest = [np.zeros(0, np.intp)]
        with np.errstate(over="ignore", invalid="ignore"):
            for block in _blocks(rows, len(points)):
                if isinstance(block, np.ndarray):
                    products = (block - origin) @ weighted.T
                else:
                    products = np.asarray(block @ weighted.T) - weighted @ origin
                nearest.append(np.argmin(half_sq_norm - products, axis=1))
        return np.concatenate(nearest)


def _blocks(rows: Rows, n_points: int) -> Iterator[Any]:
    n_rows = max(1, _BLOCK_ELEMENTS // max(n_points, int(rows.shape[1]) if isinstance(rows, np.ndarray) else 1))
    for first in range(0, int(rows.shape[0]), n_rows):
        yield rows[first : first + n_rows]

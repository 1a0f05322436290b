"""Points to expand about, and the two-level search that brings a row to a near one.

A row may be expanded about any center: what depends on the choice is how small its bound is. So the search need not be
exact, and rounding in it does no harm.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from approxsvm.errors import InputError
from approxsvm.kernel_model import FloatArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Rows: TypeAlias = npt.NDArray[np.floating[Any]] | csr_array[Any]

# Rows per center that k-means sees; more change the centers little.
_ROWS_PER_CENTER: Final = 32
_ITERATIONS: Final = 10
# Up to here one list of all centers is as fast as two levels.
_MOST_IN_ONE_GROUP: Final = 16
_BLOCK_ELEMENTS: Final = 1 << 21


@dataclass(frozen=True, eq=False)
class Router:
    """Two-level search for a near center: the nearest group, then the nearest of the centers that it lists.

    Attributes
    ----------
    reference : ndarray of shape (n_features,), float32
        Distances are taken between points less this one, which is amid the data.
    groups : ndarray of shape (n_groups, n_features), float32
        Points of the first level.
    members : tuple of ndarray, uint32
        For each group the centers to compare with, ascending and never none; a center may be in several.
    """

    reference: npt.NDArray[np.float32]
    groups: npt.NDArray[np.float32]
    members: tuple[npt.NDArray[np.uint32], ...]


def choose_centers(
    rows: Rows, n_centers: int, random_state: int = 0, *, min_rows: int = 1
) -> tuple[npt.NDArray[np.float32], Router]:
    """Centers by k-means, on one thread so that they can be had again bit for bit.

    Parameters
    ----------
    rows : ndarray or csr_array of shape (n_rows, n_features)
        Rows like those to predict.
    n_centers : int
        How many are wanted; fewer result where there are fewer distinct rows or clusters are too small.
    random_state : int
        Seed.
    min_rows : int
        Clusters of fewer rows have no center: the mean of a single row is that row, which may not be disclosed.

    Returns
    -------
    centers : ndarray of shape (at most n_centers, n_features), float32
        Distinct.
    router : Router

    Raises
    ------
    InputError
        There are fewer than `min_rows` rows, or the rows do not fit float32.
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    n_rows = int(rows.shape[0])
    if n_rows < max(min_rows, 1):
        raise InputError(f"centers were asked for from {n_rows} rows, but at least {max(min_rows, 1)} are needed")
    random = np.random.RandomState(random_state)
    most = max(_ROWS_PER_CENTER * n_centers, min_rows)
    sample = rows[np.sort(random.permutation(n_rows)[:most])] if n_rows > most else rows

    def means(points: Any, k: int, weights: Any = None) -> tuple[FloatArray, npt.NDArray[np.intp]]:
        seed = int(random.randint(2**31 - 1))
        k_means = KMeans(min(k, int(points.shape[0])), n_init=1, max_iter=_ITERATIONS, tol=0.0, random_state=seed)
        k_means.fit(points, sample_weight=weights)
        return np.asarray(k_means.cluster_centers_, np.float64), np.bincount(k_means.labels_, minlength=k)

    with threadpool_limits(1), warnings.catch_warnings(), np.errstate(over="ignore"):
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters
        all_points, counts = means(sample, n_centers)
        points = all_points[counts[: len(all_points)] >= max(min_rows, 1)]
        reference = np.asarray(sample.mean(axis=0), np.float32).ravel()
        if not len(points):
            points = sample.mean(axis=0).reshape(1, -1)
        centers: npt.NDArray[np.float32] = np.unique(points.astype(np.float32), axis=0)
        if not np.isfinite(centers).all():
            raise InputError(f"the rows have means beyond float32's {np.finfo(np.float32).max:.6g}: scale the features")
        nearest = _nearest(rows, centers, reference)
        n_groups = 1 if len(centers) <= _MOST_IN_ONE_GROUP else round(math.sqrt(len(centers)))
        # Weighted by the rows that come to them: crowded places deserve more groups.
        weights = np.bincount(nearest, minlength=len(centers)) + 0.1
        grouped = means(centers, n_groups, weights)[0].astype(np.float32)
        groups: npt.NDArray[np.float32] = np.unique(grouped, axis=0)
        return centers, Router(
            reference, groups, _members(_nearest(rows, groups, reference), nearest, centers, groups, reference)
        )


def route(router: Router, centers: npt.NDArray[np.float32], rows: Rows) -> npt.NDArray[np.intp]:
    """The center for each row; some center even for rows that are not finite.

    Parameters
    ----------
    router : Router
    centers : ndarray of shape (n_centers, n_features), float32
    rows : ndarray or csr_array of shape (n_rows, n_features)
    """
    group = _nearest(rows, router.groups, router.reference)
    nearest = np.empty(len(group), np.intp)
    for g, members in enumerate(router.members):
        routed = np.flatnonzero(group == g)
        if len(routed):
            nearest[routed] = members[_nearest(rows[routed], centers[members], router.reference)]
    return nearest


def _members(
    group_of_row: npt.NDArray[np.intp],
    center_of_row: npt.NDArray[np.intp],
    centers: npt.NDArray[np.float32],
    groups: npt.NDArray[np.float32],
    reference: npt.NDArray[np.float32],
) -> tuple[npt.NDArray[np.uint32], ...]:
    """The nearest centers of the rows that come to each group, and each center in its own group."""
    if len(groups) == 1:
        return (np.arange(len(centers), dtype=np.uint32),)
    listed = np.zeros((len(groups), len(centers)), bool)
    listed[_nearest(centers, groups, reference), np.arange(len(centers))] = True
    listed[group_of_row, center_of_row] = True
    for g in np.flatnonzero(~listed.any(axis=1)):  # a group that nobody comes to still has an answer
        listed[g, _nearest(groups[g : g + 1], centers, reference)] = True
    return tuple(np.flatnonzero(row).astype(np.uint32) for row in listed)


def _nearest(rows: Rows, points: npt.NDArray[np.float32], reference: npt.NDArray[np.float32]) -> npt.NDArray[np.intp]:
    """The nearest point of each row, by scalar products."""
    origin = reference.astype(np.float64)
    shifted = points.astype(np.float64) - origin
    half_sq_norm = 0.5 * np.einsum("ij,ij->i", shifted, shifted)
    nearest = [np.zeros(0, np.intp)]
    with np.errstate(over="ignore", invalid="ignore"):
        for block in _blocks(rows, len(points)):
            if isinstance(block, np.ndarray):
                products = (block - origin) @ shifted.T
            else:
                products = np.asarray(block @ shifted.T) - shifted @ origin
            nearest.append(np.argmin(half_sq_norm - products, axis=1))
    return np.concatenate(nearest)


def _blocks(rows: Rows, n_points: int) -> Iterator[Any]:
    n_rows = max(1, _BLOCK_ELEMENTS // max(n_points, int(rows.shape[1]) if isinstance(rows, np.ndarray) else 1))
    for first in range(0, int(rows.shape[0]), n_rows):
        yield rows[first : first + n_rows]

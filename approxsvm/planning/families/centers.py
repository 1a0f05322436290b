"""Choice of expansion centers.

If the data have one-hot encoded categories, nearly all rows lie on a few slices of the space, on which the features
that encode categories are constant. Then centers are chosen separately on every slice, the router prefers centers on
the row's slice, and expansions need only the features that vary on slices.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from approxsvm.errors import InputError
from approxsvm.expansion.router import Router, Search
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.system.threads import one_thread_inside

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Rows: TypeAlias = npt.NDArray[np.floating[Any]] | csr_array[Any]

# Number of rows per center for k-means; additional rows hardly change the centers.
_ROWS_PER_CENTER: Final = 32
_ITERATIONS: Final = 10
# Work of k-means per feature, to be multiplied by the square of the number of centers.
PLACING_WORK: Final = float(_ROWS_PER_CENTER * _ITERATIONS)
# Maximum number of centers for which a single list of all centers is as fast as two levels.
_MOST_IN_ONE_GROUP: Final = 16
# Maximum number of distinct values of a feature that counts as a category; minimum number of rows on a slice; minimum
# fraction of all rows on slices; maximum fraction of an expansion's coefficients that may remain on slices.
_MOST_VALUES: Final = 8
_ROWS_PER_SLICE: Final = 16
_ON_SLICES: Final = 0.98
_WORTHWHILE: Final = 0.5
# Maximum number of rows, and of values in them, that are searched for slices.
_SLICED_ROWS: Final = 20_000
_SLICED_ELEMENTS: Final = 1 << 25


def varying_features(rows: Rows, n_centers: int) -> npt.NDArray[np.intp] | None:
    """Return the columns that vary on slices containing nearly all rows; None if slices would hardly reduce the cost.

    There are at most half as many slices as centers. Features with few values are fixed one at a time, in order of
    increasing entropy. The rows must be in random order.
    """
    some, d = rows[:_SLICED_ROWS], int(rows.shape[1])
    if not _ROWS_PER_SLICE <= some.shape[0] <= _SLICED_ELEMENTS // d:
        return None
    dense = _dense32(some)
    codes: dict[int, npt.NDArray[np.intp]] = {}
    entropies: dict[int, float] = {}
    for j in range(d):
        if len(np.unique(dense[:256, j])) > _MOST_VALUES:
            continue
        values, code, counts = np.unique(dense[:, j], return_inverse=True, return_counts=True)
        if len(values) <= _MOST_VALUES:
            share = counts / len(dense)
            codes[j], entropies[j] = code, float(-(share * np.log(share)).sum())
    fixed: list[int] = []
    slice_of = np.zeros(len(dense), np.intp)
    for j in sorted(codes, key=entropies.__getitem__)[: d - 1]:
        _, finer, counts = np.unique(slice_of * _MOST_VALUES + codes[j], return_inverse=True, return_counts=True)
        large = counts[counts >= _ROWS_PER_SLICE]
        if large.sum() >= _ON_SLICES * len(dense) and 2 * len(large) <= n_centers:
            slice_of = finer
            fixed.append(j)
    n_varying = d - len(fixed)
    if n_varying * (n_varying + 1) > _WORTHWHILE * d * (d + 1):
        return None
    return np.setdiff1d(np.arange(d), fixed)


def choose_centers(
    rows: Rows,
    n_centers: int,
    random_state: int = 0,
    *,
    min_rows: int = 1,
    varying: npt.NDArray[np.intp] | None = None,
) -> tuple[npt.NDArray[np.float32], Router]:
    """Choose distinct float32 centers by k-means, in one thread, so that repeated runs are bit-identical.

    There are at most `n_centers` centers, and fewer if there are fewer distinct rows. Clusters of fewer than `min_rows`
    rows get no center, because the mean of a single row would disclose it. In all features outside `varying`, a center
    is bit-identical, in float32, to the rows of its slice.

    Raises InputError if there are fewer than `min_rows` rows, or if means of rows overflow float32.
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    n_rows = int(rows.shape[0])
    if n_rows < max(min_rows, 1):
        raise InputError(f"{n_rows} rows are too few to place centers: at least {max(min_rows, 1)} are needed")
    random = np.random.RandomState(random_state)

    def means(points: Any, k: int, weights: Any = None) -> FloatArray:
        most = max(_ROWS_PER_CENTER * k, min_rows)
        if points.shape[0] > most and weights is None:
            points = points[np.sort(random.permutation(points.shape[0])[:most])]
        seed = int(random.randint(2**31 - 1))
        k_means = KMeans(min(k, int(points.shape[0])), n_init=1, max_iter=_ITERATIONS, tol=0.0, random_state=seed)
        k_means.fit(points, sample_weight=weights)
        counts = np.bincount(k_means.labels_, minlength=len(k_means.cluster_centers_))
        return np.asarray(k_means.cluster_centers_[counts >= (min_rows if weights is None else 1)], np.float64)

    with one_thread_inside(), warnings.catch_warnings(), np.errstate(over="ignore"):
        warnings.simplefilter("ignore", ConvergenceWarning)  # there may be fewer distinct rows than clusters
        reference = np.asarray(rows.mean(axis=0), np.float32).ravel()
        metric = np.ones(len(reference))
        if varying is None:
            points = means(rows, n_centers)
            if not len(points):
                points = rows.mean(axis=0).reshape(1, -1)
        else:
            points, metric = _on_slices(rows, n_centers, varying, means)
        centers: npt.NDArray[np.float32] = np.unique(points.astype(np.float32), axis=0)
        if not np.isfinite(centers).all():
            raise InputError(f"the rows have means beyond float32's {np.finfo(np.float32).max:.6g}: scale the features")
        search = Search(reference, metric)
        nearest = search.nearest(rows, centers)
        n_groups = 1 if len(centers) <= _MOST_IN_ONE_GROUP else round(math.sqrt(len(centers)))
        # Centers are weighted by their row counts, so that dense regions get more groups.
        weights = np.bincount(nearest, minlength=len(centers)) + 0.1
        stretch = np.sqrt(metric)
        grouped = (means(centers * stretch, n_groups, weights) / stretch).astype(np.float32)
        groups: npt.NDArray[np.float32] = np.unique(grouped, axis=0)
        members = _members(search.nearest(rows, groups), nearest, centers, groups, search)
        return centers, Router(reference, groups, members, metric)


def _on_slices(
    rows: Rows, n_centers: int, varying: npt.NDArray[np.intp], means: Callable[[Any, int], FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Choose centers on large slices in proportion to their row counts, and a metric that separates the slices."""
    fixed = np.setdiff1d(np.arange(rows.shape[1]), varying)
    on_fixed = _dense32(rows[:, fixed])
    slices, slice_of, counts = np.unique(on_fixed, axis=0, return_inverse=True, return_counts=True)
    slice_of = slice_of.ravel()
    chosen = np.argsort(-counts, kind="stable")[:n_centers]
    chosen = chosen[(counts[chosen] >= _ROWS_PER_SLICE) | (np.arange(len(chosen)) == 0)]
    share = n_centers / counts[chosen].sum()
    points, spread = [], 0.0
    for c in chosen:
        here: Any = rows[np.flatnonzero(slice_of == c)]
        found = means(here, max(1, int(counts[c] * share)))
        found[:, fixed] = slices[c]
        points.append(found)
        with np.errstate(over="ignore", invalid="ignore"):  # rows that overflow float32 get no center
            spread = max(spread, float(np.var(_dense32(here[:, varying]), axis=0, dtype=np.float64).sum()))
    metric = np.ones(rows.shape[1])
    for j, column in zip(fixed, on_fixed.T, strict=True):
        gaps = np.diff(np.unique(column).astype(np.float64))
        if len(gaps) and gaps.min() > 0.0:
            metric[j] = min(max(8.0 * spread / gaps.min() ** 2, 1.0), 1e6)
    return np.concatenate(points), metric


def _members(
    group_of_row: npt.NDArray[np.intp],
    center_of_row: npt.NDArray[np.intp],
    centers: npt.NDArray[np.float32],
    groups: npt.NDArray[np.float32],
    search: Search,
) -> tuple[npt.NDArray[np.uint32], ...]:
    """List, for each group, the centers nearest to its rows; add each center to the nearest group."""
    if len(groups) == 1:
        return (np.arange(len(centers), dtype=np.uint32),)
    listed = np.zeros((len(groups), len(centers)), bool)
    listed[search.nearest(centers, groups), np.arange(len(centers))] = True
    listed[group_of_row, center_of_row] = True
    for g in np.flatnonzero(~listed.any(axis=1)):  # a group without rows also needs a center
        listed[g, search.nearest(groups[g : g + 1], centers)] = True
    return tuple(np.flatnonzero(row).astype(np.uint32) for row in listed)


def _is_sparse(rows: Rows) -> bool:
    return not isinstance(rows, np.ndarray)


def _dense32(rows: Any) -> npt.NDArray[np.float32]:
    """Convert rows to dense float32 rows, as the predictor does, without negative zeros."""
    with np.errstate(over="ignore"):
        dense: npt.NDArray[np.float32] = (rows.toarray() if _is_sparse(rows) else rows).astype(np.float32) + 0.0
    return dense

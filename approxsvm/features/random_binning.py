"""Random binning features of the Laplacian kernel (Rahimi and Recht 2007, Section 4).

A random grid with pitches delta_j and shifts u_j puts x into the bin floor((x_j - u_j) / delta_j), j = 1 ... d. Given
the pitches, x and y share a bin with probability prod_j max(0, 1 - |x_j - y_j| / delta_j). Pitches are drawn from the
density delta k''(delta); for k = exp(-gamma |.|) this is gamma^2 delta exp(-gamma delta), a Gamma distribution of
shape 2 and scale 1 / gamma. The mean over delta_j is then exp(-gamma |x_j - y_j|), and the probability that x and y
share a bin is exp(-gamma ||x - y||_1).
"""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, csr_matrix, issparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from approxsvm.features.feature_map import FeatureMap, is_number, resolved_gamma

Keys = npt.NDArray[np.uint64]

# Rows further out share the last bin. From 2^53 on bins are as fine as float64.
_LAST_BIN: Final = 2.0**62


class RandomBinningFeatures(ClassNamePrefixFeaturesOutMixin, FeatureMap):  # type: ignore[misc]
    """Sparse binary features that approximate the Laplacian kernel exp(-gamma ||x - y||_1) by inner products.

    Each of `n_components` random grids puts a row into one bin, and each bin that holds a row of `fit` is a column.
    A row gets 1 / sqrt(n_components) in the columns of its bins. The inner product with a row of `fit` has the kernel
    value k as its mean and a standard deviation of sqrt(k (1 - k) / n_components).

    A bin without a row of `fit` has no column, and a row in it gets no entry from that grid, as with
    OneHotEncoder(handle_unknown="ignore"). A linear model has learned nothing about this bin, and kernel values with
    its training rows are the same as with all bins. (Hashing bins into a fixed number of columns would add chance
    collisions to every inner product instead.) Inner products of two rows that are not in `fit` lack the bins that
    only these two share.

    Parameters
    ----------
    gamma : float or "auto", default=1.0
        Kernel parameter, above 0; "auto" is 1 / n_features.
    n_components : int, default=100
        Number of grids, each of which adds at most one non-zero to a row.
    random_state : int, RandomState instance or None, default=None
        Seeds the grids in `fit`.
    sparse_output : bool, default=True
        Whether features are a CSR matrix; an array otherwise.

    Attributes
    ----------
    gamma_ : float
        The value of `gamma`.
    pitches_, shifts_ : ndarray of shape (n_components, n_features_in_)
        Pitches and shifts of the grids; a shift is from 0 up to the pitch.
    multipliers_ : ndarray of shape (n_features_in_,), uint64
        The key of a bin is the sum of its coordinates times these, modulo 2^64. Two bins of a grid share a key with
        probability 2^(m - 64), where their coordinates differ by multiples of 2^m.
    bin_keys_ : list of n_components ndarray, uint64
        The keys of each grid's bins, ascending, in the order of their columns.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during `fit`; defined only if all of them are strings.

    References
    ----------
    A. Rahimi and B. Recht, "Random Features for Large-Scale Kernel Machines", NIPS 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from approxsvm.features import RandomBinningFeatures
    >>> X = np.array([[0.0, 0.3], [0.5, 0.1]])
    >>> features = RandomBinningFeatures(gamma=0.5, n_components=2000, random_state=0).fit_transform(X)
    >>> bool(abs((features[[0]] @ features[[1]].T).toarray()[0, 0] - np.exp(-0.5 * 0.7)) < 0.05)
    True
    """

    def __init__(
        self,
        gamma: float | Literal["auto"] = 1.0,
        n_components: int = 100,
        *,
        random_state: Any = None,
        sparse_output: bool = True,
    ) -> None:
        self.gamma = gamma
        self.n_components = n_components
        self.random_state = random_state
        self.sparse_output = sparse_output

    def fit(self, X: Any, y: Any = None) -> RandomBinningFeatures:
        """Draw the grids, and give a column to every bin that holds a row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        y : ignored

        Returns
        -------
        RandomBinningFeatures
            The fitted transformer.

        Raises
        ------
        ValueError
            A parameter is out of range.
        InputError
            `X` is invalid.
        """
        rows = self._rows(X, reset=True)
        self.gamma_ = resolved_gamma(self.gamma, rows, ("auto",))
        if not is_number(self.n_components, Integral) or self.n_components < 1:
            raise ValueError(f"n_components must be a positive integer, not {self.n_components!r}")
        random = check_random_state(self.random_state)
        shape = (int(self.n_components), self.n_features_in_)
        self.pitches_ = random.gamma(2.0, 1.0 / self.gamma_, shape)
        self.shifts_ = random.uniform(size=shape) * self.pitches_
        self.multipliers_ = random.randint(0, 2**64, size=self.n_features_in_, dtype=np.uint64)
        self.bin_keys_ = [np.unique(self._keys(rows, grid)) for grid in range(shape[0])]
        self._n_features_out = sum(map(len, self.bin_keys_))
        return self

    def transform(self, X: Any) -> Any:
        """Compute the features of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        CSR matrix or ndarray of shape (n_rows, number of bins), with the dtype of `X` if that is float32 or float64
            At most `n_components` non-zeros in each row, all 1 / sqrt(n_components).
        """
        check_is_fitted(self)
        rows = self._rows(X)
        n_rows, n_grids = rows.shape[0], len(self.bin_keys_)
        columns, known = np.empty((n_rows, n_grids), np.int64), np.empty((n_rows, n_grids), np.bool_)
        first = 0
        for grid, bins in enumerate(self.bin_keys_):
            keys = self._keys(rows, grid)
            places = np.minimum(np.searchsorted(bins, keys), len(bins) - 1)
            known[:, grid] = bins[places] == keys
            columns[:, grid] = first + places
            first += len(bins)
        indptr = np.concatenate([[0], np.cumsum(known.sum(axis=1))])
        values = np.full(int(indptr[-1]), 1.0 / math.sqrt(n_grids), rows.dtype)
        kind = csr_array if isinstance(rows, csr_array) else csr_matrix
        features = kind((values, columns[known], indptr), shape=(n_rows, first))
        return features if self.sparse_output else features.toarray()

    def _keys(self, rows: Any, grid: int) -> Keys:
        """Key of each row's bin in one grid. Sparse rows add the change of their entries to the key of the origin."""
        pitches, shifts = self.pitches_[grid], self.shifts_[grid]
        if not issparse(rows):
            whole: Keys = _keys_of(_coordinates(rows, shifts, pitches), self.multipliers_)
            return whole
        origin = _coordinates(np.zeros_like(shifts), shifts, pitches)
        entries = rows.indices
        moved = _coordinates(rows.data, shifts[entries], pitches[entries]) - origin[entries]
        differences = csr_array((moved.view(np.uint64), entries, rows.indptr), shape=rows.shape)
        keys: Keys = np.asarray(differences @ self.multipliers_ + _keys_of(origin, self.multipliers_))
        return keys


def _coordinates(x: Any, shifts: Any, pitches: Any) -> npt.NDArray[np.int64]:
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        places = np.floor((x - shifts) / pitches)
    whole: npt.NDArray[np.int64] = np.clip(np.nan_to_num(places), -_LAST_BIN, _LAST_BIN).astype(np.int64)
    return whole


def _keys_of(coordinates: npt.NDArray[np.int64], multipliers: Keys) -> Any:
    return coordinates.view(np.uint64) @ multipliers

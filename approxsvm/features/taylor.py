"""Taylor features of the Gaussian kernel: all weighted monomials up to a degree.

    exp(-gamma ||x - y||^2) = exp(-gamma ||x||^2) exp(-gamma ||y||^2) sum_k (2 gamma x.y)^k / k!

where (x.y)^k / k! is the sum of x^alpha y^alpha / alpha! over the monomials of degree k. Therefore the inner product of
the features

    phi_alpha(x) = exp(-gamma ||x||^2) sqrt((2 gamma)^|alpha| / alpha!) x^alpha,        |alpha| <= r,

is the kernel without its terms of degrees above r (Cotter, Keshet and Srebro 2011, Section 3). With t = 2 gamma ||x||
||y|| >= 2 gamma |x.y|, the absolute value of the sum of the omitted terms is at most

    exp(-gamma (||x||^2 + ||y||^2)) sum_{k>r} t^k / k! = exp(-gamma (||x|| - ||y||)^2) P(r + 1, t)

where P is the regularized incomplete gamma function. Equality holds if x and y have the same direction.
"""

from __future__ import annotations

import math
import os
from itertools import combinations_with_replacement
from numbers import Integral
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from scipy.special import gammainc
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from approxsvm.errors import InputError
from approxsvm.expansion.monomials import inverse_factorials, n_monomials, suffix_start
from approxsvm.features.feature_map import FeatureMap, is_number, resolved_gamma
from approxsvm.frames.rows import chunks
from approxsvm.ir.constants import UNIT32, UNIT64
from approxsvm.ir.kernel_model import FloatArray

# Higher degrees have too many monomials, and the underflow bound in `truncation_bound` relies on this limit.
MAX_DEGREE: Final = 30
_MOST_COLUMNS: Final = 2**63 - 1
# Maximum error of a norm if the squares underflow.
_UNDERFLOWN: Final = 2.0**-500


class TaylorFeatures(FeatureMap):
    """Weighted monomials whose inner products approximate the Gaussian kernel exp(-gamma ||x - y||^2).

    A linear model on these features is a Gaussian times a polynomial. It has the same form as an SVM's expansion about
    the origin, but is trained directly. Sparse rows yield sparse features; a row with n nonzeros has C(n + degree,
    degree) nonzero features, and the time is proportional to this number. Features are computed in float64 and returned
    in the rows' dtype.

    Parameters
    ----------
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel parameter, positive; "scale" is 1 / (n_features * X.var()) and "auto" is 1 / n_features, as in SVC.
    degree : int, default=2
        Highest degree of the monomials, from 1 to 30.

    Attributes
    ----------
    gamma_ : float
        Value of `gamma` resolved for the rows passed to `fit`.
    degree_ : int
        Value of `degree` when `fit` was called.
    n_output_features_ : int
        Number of features, C(n_features_in_ + degree, degree).
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Column names seen during `fit`; defined only if all of them are strings.

    Notes
    -----
    The first feature has degree 0. The features of each degree are in the order of
    itertools.combinations_with_replacement, as in scikit-learn's PolynomialFeatures.

    References
    ----------
    A. Cotter, J. Keshet and N. Srebro, "Explicit Approximations of the Gaussian Kernel", 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from approxsvm.features import TaylorFeatures
    >>> X = np.array([[0.0, 0.3], [0.5, 0.1]])
    >>> taylor = TaylorFeatures(gamma=0.5, degree=3).fit(X)
    >>> features = taylor.transform(X)
    >>> features.shape
    (2, 10)
    >>> error = abs(features[0] @ features[1] - np.exp(-0.5 * ((X[0] - X[1]) ** 2).sum()))
    >>> bool(error <= taylor.truncation_bound(X)[0, 1])
    True
    """

    def __init__(self, gamma: float | Literal["scale", "auto"] = "scale", degree: int = 2) -> None:
        self.gamma = gamma
        self.degree = degree

    def fit(self, X: Any, y: Any = None) -> TaylorFeatures:
        """Learn the number of columns and, for gamma="scale", the variance of the rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        y : ignored

        Returns
        -------
        TaylorFeatures
            The fitted transformer.

        Raises
        ------
        ValueError
            A parameter is out of range.
        InputError
            `X` is invalid, or there are more features than a matrix can have columns.
        """
        rows = self._rows(X, reset=True)
        self.gamma_ = resolved_gamma(self.gamma, rows)
        if not is_number(self.degree, Integral) or not 1 <= self.degree <= MAX_DEGREE:
            raise ValueError(f"degree must be an integer from 1 to {MAX_DEGREE}, not {self.degree!r}")
        self.degree_ = int(self.degree)
        n_outputs = math.comb(self.n_features_in_ + self.degree_, self.degree_)
        if n_outputs > _MOST_COLUMNS:
            raise InputError(
                f"degree {self.degree} of {self.n_features_in_} columns makes {n_outputs} features, "
                f"but a matrix has at most {_MOST_COLUMNS} columns"
            )
        self.n_output_features_ = n_outputs
        return self

    def transform(self, X: Any) -> Any:
        """Compute the features of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray or CSR matrix of shape (n_rows, n_output_features_)
            Dense or sparse like `X`, with the dtype of `X` if `X` is float32 or float64. Each sparse row stores its
            features in increasing column order; column indices are int64 if int32 is too small.

        Raises
        ------
        InputError
            `X` is invalid, or the features do not fit into this machine's memory.
        """
        check_is_fitted(self)
        rows = self._rows(X)
        return self._sparse(rows) if issparse(rows) else self._dense(rows)

    def _dense(self, rows: Any) -> Any:
        n_rows, n_outputs = rows.shape[0], self.n_output_features_
        _check_memory(n_rows * n_outputs * rows.itemsize, n_rows, n_outputs)
        features = np.empty((n_rows, n_outputs), rows.dtype)
        for piece in chunks(n_rows, n_outputs):
            features[piece] = _weighted_monomials(rows[piece], self.gamma_, self.degree_)
        return features

    def _sparse(self, rows: Any) -> Any:
        n_rows, degree = rows.shape[0], self.degree_
        lengths, places = np.unique(np.diff(rows.indptr), return_inverse=True)
        outputs = [math.comb(length + degree, degree) for length in lengths.tolist()]
        total = sum(n * count for n, count in zip(outputs, np.bincount(places).tolist(), strict=True))
        fits_int32 = max(total, self.n_output_features_) <= np.iinfo(np.int32).max
        column_type: Any = np.int32 if fits_int32 else np.int64
        _check_memory(total * (rows.data.itemsize + np.dtype(column_type).itemsize), n_rows, max(outputs))
        order = np.argsort(places, kind="stable")  # rows with the same number of entries form a dense block
        columns, values = np.empty(total, column_type), np.empty(total, rows.dtype)
        n_later = _numbers_of_monomials(self.n_features_in_, degree)
        end = 0
        for k, length in enumerate(lengths.tolist()):
            of_length = order[places[order] == k]
            for piece in chunks(len(of_length), outputs[k]):
                entries = rows.indptr[of_length[piece], np.newaxis] + np.arange(length)
                made, end = slice(end, end + len(entries) * outputs[k]), end + len(entries) * outputs[k]
                left = self.n_features_in_ - rows.indices[entries].astype(np.int64)
                values[made] = _weighted_monomials(rows.data[entries], self.gamma_, degree).ravel()
                columns[made] = _columns_of_monomials(left, n_later).ravel()
        indptr = np.concatenate([[0], np.cumsum(np.array(outputs, np.int64)[places[order]])]).astype(column_type)
        features = type(rows)((values, columns, indptr), shape=(n_rows, self.n_output_features_))[np.argsort(order)]
        features.has_canonical_format = True  # true by construction
        return features

    def truncation_bound(self, X: Any, Y: Any = None) -> FloatArray:
        """Bound the errors of the features' inner products as approximations of the kernel, including rounding errors.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        Y : array-like or sparse matrix of shape (n_others, n_features), optional
            Default: `X`.

        Returns
        -------
        ndarray of shape (n_rows, n_others), float64
            Upper bound on |features of x . features of y - exp(-gamma ||x - y||^2)|, for the features returned by
            `transform` for rows of the same dtype, and for the inner product in real arithmetic. The bound depends only
            on the rows' norms, so it holds for all rows with these norms.

        Notes
        -----
        A feature of degree k has at most 6 k + 2 roundings, and exp adds a relative error of at most
        (n_features + 2) u gamma ||x||^2. Inner products of the features' absolute values are at most 1. Below the
        normal range of float64, rounding errors are not relative; because degrees are at most 30, they add less than
        2^-900 per feature.
        """
        check_is_fitted(self)
        left = self._rows(X)
        right = left if Y is None else self._rows(Y)
        return self._bound(*_norms(left), *_norms(right), rounded=sum(r.dtype == np.float32 for r in (left, right)))

    def _bound(self, x: FloatArray, x_depth: int, y: FloatArray, y_depth: int, rounded: int) -> FloatArray:
        """Bound the errors, given norms with relative errors up to depth * u; `rounded` counts the float32 matrices."""
        degree, gamma = self.degree_, self.gamma_
        x, y, unit = x[:, np.newaxis], y[np.newaxis, :], UNIT64 * (max(x_depth, y_depth) + 8)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            gap = np.fmax(np.abs(x - y) - 2.0 * unit * (x + y) - 2.0 * _UNDERFLOWN, 0.0)
            t = 2.0 * gamma * (x + _UNDERFLOWN) * (y + _UNDERFLOWN) * (1.0 + 4.0 * unit)
            tail = gammainc(degree + 1, t) * (1.0 + 1e-10)
            tail = np.where(np.isnan(tail), 1.0, tail)
            bound = np.exp(-gamma * gap * gap) * (1.0 + 1e-12) * tail
            exponents = np.fmin(gamma * x * x, 750.0) + np.fmin(gamma * y * y, 750.0)
        rounding = UNIT64 * (2 * (6 * degree + 4) + (max(x_depth, y_depth) + 4) * exponents) + rounded * UNIT32
        narrow = rounded * math.sqrt(self.n_output_features_) * 2.0**-148
        result: FloatArray = bound + 1.01 * rounding + narrow + 2.0**-800
        return result

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return the monomials as names: "1", "x0", "x0^2", "x0 x1".

        Parameters
        ----------
        input_features : array-like of str, optional
            Column names. Default: the names seen during `fit`, or x0, x1, ...

        Returns
        -------
        ndarray of shape (n_output_features_,), object
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        monomials = (
            factors
            for k in range(self.degree_ + 1)
            for factors in combinations_with_replacement(range(self.n_features_in_), k)
        )
        return np.array([_monomial_name(factors, names) for factors in monomials], dtype=object)


def _weighted_monomials(rows: npt.NDArray[Any], gamma: float, degree: int) -> FloatArray:
    """Compute features of dense rows; each block of degree k is x_i times a suffix of the features of degree k - 1."""
    x = rows.astype(np.float64)
    n = x.shape[1]
    with np.errstate(over="ignore", under="ignore"):
        first = np.exp(-gamma * np.einsum("ij,ij->i", x, x))
        x = np.where(first[:, np.newaxis] > 0.0, math.sqrt(2.0 * gamma) * x, 0.0)  # avoids infinite powers
        features, lower = np.empty((len(x), math.comb(n + degree, degree))), first[:, np.newaxis]
        features[:, 0], end = first, 1
        for k in range(1, degree + 1):
            start = end
            for i in range(n):
                suffix = lower[:, suffix_start(n, k - 1, i) :]
                end += suffix.shape[1]
                np.multiply(x[:, [i]], suffix, out=features[:, end - suffix.shape[1] : end])
            lower = features[:, start:end]
        end = 1 + n
        for k in range(2, degree + 1 if n else 0):
            start, end = end, end + n_monomials(n, k)
            features[:, start:end] *= np.sqrt(inverse_factorials(n, k))
    return features


def _numbers_of_monomials(n: int, degree: int) -> npt.NDArray[np.int64]:
    """Return the number of monomials of each degree in 0, 1, ..., n variables, of shape (degree + 1, n + 1)."""
    numbers = np.ones((degree + 1, n + 1), np.int64)
    numbers[1:, 0] = 0
    for k in range(1, degree + 1):
        np.cumsum(numbers[k - 1, 1:], out=numbers[k, 1:])
    return numbers


def _columns_of_monomials(left: npt.NDArray[Any], n_later: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the columns of the monomials in a row's entries; `left` is the number of variables from each entry on."""
    n_rows, n = left.shape
    columns = np.zeros((n_rows, math.comb(n + len(n_later) - 1, n)), np.int64)
    lower, end = columns[:, :1], 1
    for k in range(1, len(n_later)):
        # Monomials of degree k that begin with x_i are x_i times the monomials of degree k - 1 that begin with x_i or a
        # later variable, in the same order.
        shift = (n_later[k, -1] - n_later[k, left]) - (n_later[k - 1, -1] - n_later[k - 1, left]) + n_later[k - 1, -1]
        start = end
        for i in range(n):
            suffix = lower[:, suffix_start(n, k - 1, i) :]
            end += suffix.shape[1]
            np.add(suffix, shift[:, [i]], out=columns[:, end - suffix.shape[1] : end])
        lower = columns[:, start:end]
    return columns


def _monomial_name(factors: tuple[int, ...], names: Any) -> str:
    if not factors:
        return "1"
    powers = [(names[i], factors.count(i)) for i in dict.fromkeys(factors)]
    return " ".join(f"{name}^{power}" if power > 1 else str(name) for name, power in powers)


def _norms(rows: Any) -> tuple[FloatArray, int]:
    """Return the computed Euclidean norms, and the summation depth of the squares."""
    wide = rows.astype(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        squares = wide.multiply(wide).sum(axis=1) if issparse(wide) else np.einsum("ij,ij->i", wide, wide)
        norms: FloatArray = np.sqrt(np.asarray(squares, np.float64).ravel())
    return norms, rows.shape[1]


def _check_memory(n_bytes: int, n_rows: int, n_features: int) -> None:
    """Raise InputError if an array would exceed this machine's memory; do nothing if its size is unknown."""
    names = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" not in names:
        return
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if n_bytes > memory:
        raise InputError(
            f"{n_rows} rows of up to {n_features} features take {n_bytes:,} bytes, but this machine has {memory:,}: "
            "transform fewer rows at a time, or use a lower degree"
        )

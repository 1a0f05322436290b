"""Taylor features of the Gaussian kernel: all monomials up to some degree, weighted.

    exp(-gamma ||x - y||^2) = exp(-gamma ||x||^2) exp(-gamma ||y||^2) sum_k (2 gamma x.y)^k / k!

and (x.y)^k / k! is the sum of x^alpha y^alpha / alpha! over the monomials of degree k, so that the features

    phi_alpha(x) = exp(-gamma ||x||^2) sqrt((2 gamma)^|alpha| / alpha!) x^alpha,        |alpha| <= r,

have the kernel as their inner product but for the degrees above r (Cotter, Keshet and Srebro 2011, Section 3). With
t = 2 gamma ||x|| ||y|| >= 2 gamma |x.y| these are together at most

    exp(-gamma (||x||^2 + ||y||^2)) sum_{k>r} t^k / k! = exp(-gamma (||x|| - ||y||)^2) P(r + 1, t)

in modulus, P the regularised incomplete gamma function, with equality where x and y have the same direction.
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

from approxsvm import _native
from approxsvm.errors import InputError
from approxsvm.features.feature_map import FeatureMap, is_number, resolved_gamma
from approxsvm.model.constants import UNIT32, UNIT64
from approxsvm.model.kernel_model import FloatArray

# Beyond it nobody has room for the monomials of two variables; and see `truncation_bound` on underflow.
MAX_DEGREE: Final = 30
_MOST_COLUMNS: Final = 2**63 - 1
# What a norm loses at most where squares underflow.
_UNDERFLOWN: Final = 2.0**-500


class TaylorFeatures(FeatureMap):
    """Monomials weighted so that their inner products are near exp(-gamma ||x - y||^2).

    A linear model on them is a Gaussian times a polynomial: the expansion of a support vector machine about the origin,
    but trained as such. Sparse rows give sparse features in work proportional to their number, C(n + degree, degree)
    for n non-zeros. Features are computed in float64 and handed out in the type of the rows, float32 or float64.

    Parameters
    ----------
    gamma : {"scale", "auto"} or float, default="scale"
        Of the kernel, above 0; "scale" is 1 / (n_features * X.var()) and "auto" 1 / n_features, as in SVC.
    degree : int, default=2
        The highest one, from 1 to 30.

    Attributes
    ----------
    gamma_ : float
        The number that `gamma` is on the rows of `fit`.
    degree_ : int
        The `degree` of `fit`.
    n_output_features_ : int
        C(n_features_in_ + degree, degree).
    n_features_in_ : int
        Columns of the rows of `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where they are all texts.

    Notes
    -----
    The first feature is of degree 0; those of each degree follow in the order of
    itertools.combinations_with_replacement, which is that of scikit-learn's PolynomialFeatures.

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
        """Look at the number of columns and, for gamma="scale", at the variance of the rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        y : ignored

        Returns
        -------
        TaylorFeatures
            Itself.

        Raises
        ------
        ValueError
            A parameter is out of its range.
        InputError
            `X` is broken, or there are more features than a matrix can have columns.
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
        """Features of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray or CSR matrix of shape (n_rows, n_output_features_)
            As `X`, of its type if that is float32 or float64. The features of the entries of a sparse row are
            stored, ascending, under int64 indices where int32 does not suffice.

        Raises
        ------
        InputError
            `X` is broken, or its features do not fit into the memory of this machine.
        """
        check_is_fitted(self)
        rows = self._rows(X)
        return self._sparse(rows) if issparse(rows) else self._dense(rows)

    def _dense(self, rows: Any) -> Any:
        n_rows, n_outputs = rows.shape[0], self.n_output_features_
        _check_memory(n_rows * n_outputs * rows.itemsize, n_rows, n_outputs)
        features = np.empty((n_rows, n_outputs), rows.dtype)
        _native.taylor_features_dense(np.ascontiguousarray(rows), self.gamma_, self.degree_, features)
        return features

    def _sparse(self, rows: Any) -> Any:
        n_rows, degree = rows.shape[0], self.degree_
        lengths, places = np.unique(np.diff(rows.indptr), return_inverse=True)
        outputs = [math.comb(length + degree, degree) for length in lengths.tolist()]
        total = sum(n * count for n, count in zip(outputs, np.bincount(places).tolist(), strict=True))
        fits_int32 = max(total, self.n_output_features_) <= np.iinfo(np.int32).max
        column_type: Any = np.int32 if fits_int32 else np.int64
        _check_memory(total * (rows.data.itemsize + np.dtype(column_type).itemsize), n_rows, max(outputs))
        indptr = np.concatenate([[0], np.cumsum(np.array(outputs, np.int64)[places])])
        columns, values = np.empty(total, column_type), np.empty(total, rows.dtype)
        _native.taylor_features_csr(
            rows.indptr.astype(np.int64),
            rows.indices.astype(np.int64),
            np.ascontiguousarray(rows.data),
            self.n_features_in_,
            self.gamma_,
            degree,
            indptr,
            columns,
            values,
        )
        features = type(rows)((values, columns, indptr.astype(column_type)), shape=(n_rows, self.n_output_features_))
        features.has_canonical_format = True  # as written: nobody has to look
        return features

    def truncation_bound(self, X: Any, Y: Any = None) -> FloatArray:
        """How far inner products of features can be from the kernel: what the degrees left out add up to, and rounding.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        Y : array-like or sparse matrix of shape (n_others, n_features), optional
            `X` itself when left out.

        Returns
        -------
        ndarray of shape (n_rows, n_others), float64
            |features of x . features of y - exp(-gamma ||x - y||^2)| never exceeds it, the features being those that
            `transform` gives for rows of the same type, and the inner product one over the real numbers. It depends
            on norms alone, and holds for every pair of rows of these norms.

        Notes
        -----
        A feature of degree k has at most 6 k + 2 roundings, and exp another error of (n_features + 2) u gamma
        ||x||^2, relative to it; with moduli in place of the features, inner products are at most 1. Below the normal
        range of float64 that fails, by less than 2^-900 for each feature: degrees beyond 30 are refused.
        """
        check_is_fitted(self)
        left = self._rows(X)
        right = left if Y is None else self._rows(Y)
        return self._bound(*_norms(left), *_norms(right), rounded=sum(r.dtype == np.float32 for r in (left, right)))

    def _bound(self, x: FloatArray, x_path: int, y: FloatArray, y_path: int, rounded: int) -> FloatArray:
        """Of norms that err relatively by their path times u; `rounded` sides have features in float32."""
        degree, gamma = self.degree_, self.gamma_
        x, y, unit = x[:, np.newaxis], y[np.newaxis, :], UNIT64 * (max(x_path, y_path) + 8)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            gap = np.fmax(np.abs(x - y) - 2.0 * unit * (x + y) - 2.0 * _UNDERFLOWN, 0.0)
            t = 2.0 * gamma * (x + _UNDERFLOWN) * (y + _UNDERFLOWN) * (1.0 + 4.0 * unit)
            tail = gammainc(degree + 1, t) * (1.0 + 1e-10)
            tail = np.where(np.isnan(tail), 1.0, tail)
            bound = np.exp(-gamma * gap * gap) * (1.0 + 1e-12) * tail
            exponents = np.fmin(gamma * x * x, 750.0) + np.fmin(gamma * y * y, 750.0)
        rounding = UNIT64 * (2 * (6 * degree + 4) + (max(x_path, y_path) + 4) * exponents) + rounded * UNIT32
        narrow = rounded * math.sqrt(self.n_output_features_) * 2.0**-148
        result: FloatArray = bound + 1.01 * rounding + narrow + 2.0**-800
        return result

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Monomials as names: "1", "x0", "x0^2", "x0 x1".

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns; those of `fit`, or x0, x1, ..., when left out.

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


def _monomial_name(factors: tuple[int, ...], names: Any) -> str:
    if not factors:
        return "1"
    powers = [(names[i], factors.count(i)) for i in dict.fromkeys(factors)]
    return " ".join(f"{name}^{power}" if power > 1 else str(name) for name, power in powers)


def _norms(rows: Any) -> tuple[FloatArray, int]:
    """Euclidean norms as computed, and the longest path of additions in them."""
    wide = rows.astype(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        squares = wide.multiply(wide).sum(axis=1) if issparse(wide) else np.einsum("ij,ij->i", wide, wide)
        norms: FloatArray = np.sqrt(np.asarray(squares, np.float64).ravel())
    return norms, rows.shape[1]


def _check_memory(n_bytes: int, n_rows: int, n_features: int) -> None:
    """Refuse what this machine cannot hold, where it says how much that is."""
    names = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" not in names:
        return
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if n_bytes > memory:
        raise InputError(
            f"{n_rows} rows of up to {n_features} features take {n_bytes:,} bytes, but this machine has {memory:,}: "
            "transform fewer rows at a time, or take a lower degree"
        )

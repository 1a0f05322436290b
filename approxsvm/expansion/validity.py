"""Validity test from Claesen et al. 2014, which bounds the error of every expanded exponential.

Eq. 3.11 requires |2 gamma x_i.z| < 1/2 for every support vector x_i and row z; the relative error of each expanded
exponential is then below 3.05%. By Cauchy-Schwarz, 4 gamma max||x_i|| ||z|| < 1 is sufficient.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.errors import InputError
from approxsvm.frames.rows import check_sparse, sparse_sq_distances
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.system.options import one_of


def row_norms(X: Any, center: npt.NDArray[np.floating[Any]] | None = None) -> FloatArray:
    """Return ||x - center|| for each row x; the default center is the origin, and sparse rows stay sparse."""
    if isinstance(X, np.ndarray):
        rows = X.astype(np.float64, copy=False)
        shifted = rows if center is None else rows - center.astype(np.float64)
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", shifted, shifted)))
    point = np.zeros(X.shape[1]) if center is None else center.astype(np.float64)
    return np.asarray(np.sqrt(sparse_sq_distances(X, point)))


def limit(max_sv_norm: float, max_row_norm: float) -> float:
    """Return gamma_max = 1 / (4 max||x_i|| max||z||) of Claesen et al. 2014; infinite if a norm is zero."""
    product = 4.0 * max_sv_norm * max_row_norm
    return 1.0 / product if product > 0.0 else float("inf")


def gamma_max(X: Any, X_test: Any = None, *, center: str = "origin") -> float:
    """Return the largest gamma for which Claesen et al. 2014 guarantee their approximation, before any training.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_rows, n_features)
        Training rows, all of which might become support vectors.
    X_test : array-like or sparse matrix of shape (n_test, n_features), optional
        Rows to predict; default: `X`.
    center : {"origin", "mean"}
        Point from which norms are measured: the origin, as in the paper, or the mean of `X`.

    Returns
    -------
    float
        1 / (4 max||x|| max||z||) (Claesen et al. 2014, Eq. 3.11); infinite if all rows of `X` or of `X_test` equal the
        center.

    Raises
    ------
    InputError
        There are no rows, `X` and `X_test` have different numbers of features, or a value is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> import approxsvm
    >>> approxsvm.gamma_max(np.array([[3.0, 4.0], [0.0, 1.0]]))
    0.01
    """
    center = one_of(center, "center", ("origin", "mean"))
    train = _rows(X)
    test = train if X_test is None else _rows(X_test)
    if test.shape[1] != train.shape[1]:
        raise InputError(f"X_test has {test.shape[1]} features, but X has {train.shape[1]}")
    if not isinstance(train, np.ndarray) and not isinstance(test, np.ndarray):
        train, test = _used_columns(train, test)
    mean = np.asarray(train.mean(axis=0), dtype=np.float64).ravel() if center == "mean" else None
    return limit(float(row_norms(train, mean).max()), float(row_norms(test, mean).max()))


def _used_columns(*matrices: Any) -> list[Any]:
    """Remove columns that are zero in all sparse rows, because a file may have an arbitrary number of columns."""
    from scipy.sparse import csr_array

    used, places = np.unique(np.concatenate([rows.indices for rows in matrices]), return_inverse=True)
    parts = np.split(places, np.cumsum([len(rows.indices) for rows in matrices])[:-1])
    return [
        csr_array((rows.data, part, rows.indptr), shape=(rows.shape[0], max(1, len(used))))
        for rows, part in zip(matrices, parts, strict=True)
    ]


def _rows(X: Any) -> Any:
    try:
        rows = check_sparse(X) if hasattr(X, "tocsr") else np.asarray(X, dtype=np.float64)
    except InputError:
        raise
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"X is not a matrix of real numbers: {error}") from None
    if rows.ndim != 2 or rows.shape[0] == 0:
        raise InputError(f"expected a matrix with at least one row, got shape {rows.shape}")
    if not np.isfinite(rows if isinstance(rows, np.ndarray) else rows.data).all():
        raise InputError("X contains NaN or infinity")
    return rows

"""Methods that describe the neighborhood of rows: certified radii, gradients, and the test of Claesen et al. 2014."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.expansion.validity import row_norms
from approxsvm.frames.rows import check_finite, zero_unused
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.methods.predicting import Predicts


class Explaining:
    """Certified radii, gradients, and the run-time validity test."""

    def certified_radius(self: Predicts, X: Any) -> FloatArray:
        """Return a proven distance by which each row may move without a change in its label.

        By the source's formula over the real numbers, any point within this Euclidean distance of a row, in the units
        of `X`, has the label that `predict` returns for the row. The proof uses norms of the model (radius.py), so the
        nearest point with a different label is usually 2 to 10 times as far away as this distance. The distance is 0 if
        nothing is proven, and infinite if no point has a different label.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,), float64

        Raises
        ------
        UnsupportedModelError
            The kernel is not Gaussian, the model is an ensemble or a regressor, or the slope of a step before the model
            is unbounded.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> import approxsvm
        >>> X, y = load_iris(return_X_y=True)
        >>> fast = approxsvm.compile(SVC(gamma=0.1).fit(X, y))
        >>> radius = fast.certified_radius(X[:1])
        >>> moved = X[:1] + 0.99 * radius * [0.5, -0.5, 0.5, 0.5]
        >>> bool((fast.predict(moved) == fast.predict(X[:1])).all())
        True
        """
        from approxsvm.analysis.radius import certified_radius  # imported here because prediction does not need it

        return certified_radius(self._evaluator, self._rows(X))

    def gradient(self: Predicts, X: Any, *, return_bound: bool = False) -> Any:
        """Return the gradient of the decision function, or of a regressor's values, with respect to each row of `X`.

        For a Gaussian kernel the gradient is ``sum_i a_i exp(-gamma ||z - x_i||^2) 2 gamma (x_i - z)``. Gradients are
        also available for polynomial and sigmoid kernels and random Fourier features. They are in the units of `X`,
        before any scaling, column selection or projection. Beyond a clipping limit (MinMaxScaler with ``clip=True``),
        the derivative is 0.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
        return_bound : bool
            Whether to return bounds as well.

        Returns
        -------
        gradient : ndarray of shape (n_rows, n_features) or (n_rows, n_functions, n_features), float64
            The second shape is for several decision functions or targets. Signs and order are the same as in
            ``decision_function``, except for an SVC's one-vs-rest scores, for which the gradients of the class pairs'
            values are returned (as with ``decision_function_shape="ovo"``).
        bound : ndarray of the same shape
            Returned only with `return_bound`: upper bound on each element's distance from the gradient of the model's
            formula over the real numbers, with the artifact's parameters. At a limit, where the gradient does not
            exist, the bound covers the slopes on both sides.

        Raises
        ------
        UnsupportedModelError
            A step before the model does something other than scale or project, a model with a Gaussian kernel was
            compiled in "approximate" mode, or the model averages several models' probabilities.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> import approxsvm
        >>> X, y = load_iris(return_X_y=True)
        >>> fast = approxsvm.compile(SVC(gamma=0.1).fit(X, y > 0))
        >>> gradient, bound = fast.gradient(X[:1], return_bound=True)
        >>> gradient.round(3)
        array([[ 0.129, -0.166,  0.459,  0.206]])
        >>> bool((bound < 1e-12).all())
        True
        """
        from approxsvm.analysis.gradient import gradients  # imported here because prediction does not need it

        pairs = gradients(self._evaluator, self._rows(X))
        several = self.artifact.n_decisions > 1
        slopes, bounds = (numbers if several else numbers[:, 0] for numbers in pairs)
        return (slopes, bounds) if return_bound else slopes

    def within_gamma_bound(self: Predicts, X: Any) -> npt.NDArray[np.bool_]:
        """Return whether each row passes the run-time validity test of Claesen et al. 2014, Eq. 3.11.

        For such a row, 4 gamma max||x_i - center|| ||z - center|| < 1, and the relative error of each expanded
        exponential is at most 3.05%. The test does not bound the relative error of the sum, because terms of opposite
        sign may cancel. With linear and polynomial kernels, no term is approximated, so every row passes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,), bool
        """
        rows = zero_unused(self._rows(X), self.artifact.raw_columns)
        check_finite(rows, self.artifact.raw_columns)
        parts = self.artifact.members or (self.artifact,)
        return np.asarray(np.all([_within_gamma_bound(part, rows) for part in parts], axis=0))


def _within_gamma_bound(artifact: Any, rows: Any) -> npt.NDArray[np.bool_]:
    header = artifact.header
    if artifact.kernel != "gaussian" or header["max_sv_norm"] == 0.0:
        return np.ones(rows.shape[0], bool)
    if artifact.input_map is not None:
        rows = artifact.input_map.apply(rows)
    norms = row_norms(rows, artifact.center)
    return np.asarray(4.0 * header["gamma"] * header["max_sv_norm"] * norms < 1.0)

"""What every timed path must answer about LIBSVM's models. Nothing is timed before it has passed here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import rbf_kernel

import approxsvm
from approxsvm.expansion import taylor
from approxsvm.reference import decision_values as reference
from benchmarks.cases import Case
from benchmarks.experiment import WrongAnswerError
from benchmarks.timing import spread

FloatArray = npt.NDArray[np.float64]
Labels = npt.NDArray[Any]

_BLOCK_ROWS = 256
_REFERENCE_ROWS = 8  # the reference is slow on purpose
_NEARLY_EXACT_SHARE = 0.01  # of the labels may differ where the arithmetic is float32
_EXACT_TIE = 1e-10  # of sum |a_i|: closer to zero, summation order may decide the label
_FLOAT32_ROUNDOFF = 2.0**-24


@dataclass(frozen=True, eq=False)
class Answers:
    """Decision values of the test rows in float64, and how far from them a path may stray.

    Attributes
    ----------
    exact : ndarray of shape (n_rows,)
        Decision values of the model itself.
    exact_rounded : ndarray of shape (n_rows,)
        The same for the rows as float32 holds them, which is what dense float32 rows are judged by.
    exact_slack : float
        Exact paths may disagree about labels where ``|exact|`` is not larger.
    expansion : ndarray of shape (n_rows,)
        Decision values of the degree-2 expansion about the mean.
    expansion_slack : ndarray of shape (n_rows,)
        What float32 rounding may add to or take from them.
    labels : tuple of two labels
        The label of a positive value, and of any other.
    """

    exact: FloatArray
    exact_rounded: FloatArray
    exact_slack: float
    expansion: FloatArray
    expansion_slack: FloatArray
    labels: tuple[Any, Any]

    def exact_labels(self) -> Labels:
        """Labels that the model itself gives to the test rows."""
        return np.where(self.exact > 0.0, *self.labels)

    def for_rounded_rows(self) -> Answers:
        """What exact paths must answer that get the rows in float32."""
        return replace(self, exact=self.exact_rounded)

    def check(self, answer: str, name: str, labels: Labels, rows: Any = slice(None)) -> None:
        """Demand the labels of the "expansion", or "exact" ones, or those "nearly", as float32 arithmetic is."""
        if answer == "expansion":
            wrong = self._wrong(labels, self.expansion[rows], self.expansion_slack[rows])
        else:
            wrong = self._wrong(labels, self.exact[rows], self.exact_slack)
        if wrong.sum() > (_NEARLY_EXACT_SHARE * len(labels) if answer == "nearly exact" else 0):
            row = int(np.flatnonzero(wrong)[0])
            raise WrongAnswerError(f"{name}: {int(wrong.sum())} wrong labels; row {row} got {labels[row]}")

    def differing(self, labels: Labels, rows: Any = slice(None)) -> int:
        """How many labels differ from the exact model's, ties aside that float64 cannot decide."""
        return int(self._wrong(labels, self.exact[rows], self.exact_slack).sum())

    def _wrong(self, labels: Labels, values: FloatArray, slack: float | FloatArray) -> npt.NDArray[np.bool_]:
        if labels.shape != values.shape:
            raise WrongAnswerError(f"{labels.shape} labels for {values.shape} rows")
        return (labels != np.where(values > 0.0, *self.labels)) & (np.abs(values) > slack)


def answers_for(case: Case) -> Answers:
    """Compute all values with BLAS in float64, and compare some with the reference."""
    model = case.model
    support_vectors = model.dense_support_vectors(0, model.n_sv)

    def exact_values(rows: FloatArray) -> FloatArray:
        return rbf_kernel(rows, support_vectors, model.gamma) @ model.coefficients(0) + model.intercept[0]

    exact = _in_blocks(case.X_test, exact_values)
    rounded = case.X_test.astype(np.float32).astype(np.float64)
    same = bool((rounded.data == case.X_test.data).all())
    exact_rounded = exact if same else _in_blocks(rounded, exact_values)
    exact_slack = _EXACT_TIE * float(np.abs(model.coefficients(0)).sum())
    sample, rows = _reference_rows(case)
    _demand_close("exact values", exact[sample], reference.decision_function(model, rows)[:, 0], exact_slack)
    return Answers(exact, exact_rounded, exact_slack, *_expansion_values(case, "mean"), tuple(model.labels))


def check_decision_values(case: Case, fast: approxsvm.CompiledSVC, center: taylor.CenterChoice) -> None:
    """Demand that our decision values are those of the expansion about `center`, up to float32 rounding."""
    first, second = case.model.labels
    sign = 1.0 if first > second else -1.0  # scikit-learn's positive is the larger label
    got = sign * fast.decision_function(case.X_test)
    _demand_close(f"our decision values about the {center}", got, *_expansion_values(case, center))


def _expansion_values(case: Case, center: taylor.CenterChoice) -> tuple[FloatArray, FloatArray]:
    """Decision values of the expansion in float64, and what float32 rounding may do to them."""
    expansion = reference.second_order(case.model, center)
    absolute = replace(
        expansion,
        **{name: np.abs(getattr(expansion, name)) for name in ("quadratic", "linear", "constant", "intercept")},
    )

    def evaluate(rows: FloatArray) -> FloatArray:
        """Values, and the same with every term positive: rounding errors are proportional to that."""
        u = rows - expansion.center
        exponent = expansion.gamma * np.einsum("ij,ij->i", u, u)
        values = expansion.intercept + np.exp(-exponent) * _inner(expansion, u)
        magnitudes = absolute.intercept + np.exp(-exponent) * (1.0 + exponent) * _inner(absolute, np.abs(u))
        return np.stack([values, magnitudes], axis=1)

    values, magnitudes = _in_blocks(case.X_test, evaluate).T
    slack = (case.model.n_features + 32) * _FLOAT32_ROUNDOFF * magnitudes
    sample, rows = _reference_rows(case)
    expected = reference.evaluate(expansion, rows)
    _demand_close(f"expansion about the {center}", values[sample], expected, 1e-6 * slack[sample])
    return values, slack


def _inner(expansion: reference.SecondOrder, u: FloatArray) -> FloatArray:
    return expansion.constant + np.einsum("ij,ij->i", u @ expansion.quadratic + expansion.linear, u)


def _reference_rows(case: Case) -> tuple[npt.NDArray[np.intp], FloatArray]:
    numbers = spread(case.n_rows, _REFERENCE_ROWS)
    return numbers, case.X_test[numbers].toarray()


def _demand_close(name: str, got: FloatArray, expected: FloatArray, slack: float | FloatArray) -> None:
    excess = np.abs(got - expected) - slack
    if not (excess <= 0.0).all():
        row = int(np.argmax(excess))
        raise WrongAnswerError(f"{name}: row {row} is {got[row]:.17g}, expected {expected[row]:.17g}")


def _in_blocks(X: csr_array, evaluate: Callable[[FloatArray], FloatArray]) -> FloatArray:
    starts = range(0, X.shape[0], _BLOCK_ROWS)
    return np.concatenate([evaluate(X[first : first + _BLOCK_ROWS].toarray()) for first in starts])

"""What every timed path must answer about LIBSVM's models. Nothing is timed before it has passed here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import rbf_kernel

import approxsvm
from approxsvm.expansion.taylor import CenterChoice
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
    """Decision values of the test rows in float64, and how far from them a path may stray."""

    exact: FloatArray  # (n_rows,): decision values of the model itself
    # (n_rows,): the same for the rows as float32 holds them, which is what dense float32 rows are judged by
    exact_rounded: FloatArray
    exact_slack: float  # exact paths may disagree about labels where ``|exact|`` is not larger
    expansion: FloatArray  # (n_rows,): decision values of the degree-2 expansion about the mean
    expansion_slack: FloatArray  # (n_rows,): what float32 rounding may add to or take from them
    labels: tuple[Any, Any]  # the label of a positive value, and of any other

    @classmethod
    def of(cls, case: Case) -> Answers:
        """Compute all values with BLAS in float64, and compare some with the reference."""
        model = case.model
        exact = _exact_values(model, case.X_test)
        rounded = _exact_values(model, case.X_test.astype(np.float32).astype(np.float64))
        slack = _EXACT_TIE * float(np.abs(model.coefficients(0)).sum())
        sample = spread(case.n_rows, _REFERENCE_ROWS)
        expected = reference.decision_function(model, case.X_test[sample].toarray())[:, 0]
        _demand_close("exact values", exact[sample], expected, slack)
        return cls(exact, rounded, slack, *expansion_values(case, "mean"), tuple(model.labels))

    def exact_labels(self) -> Labels:
        """Labels that the model itself gives to the test rows."""
        return np.where(self.exact > 0.0, *self.labels)

    def for_rounded_rows(self) -> Answers:
        """What exact paths must answer that get the rows in float32."""
        return replace(self, exact=self.exact_rounded)

    def check(self, answer: str, name: str, labels: Labels, rows: Any = slice(None)) -> None:
        """Demand the labels of the "expansion", or "exact" ones, or those "nearly", as float32 arithmetic is."""
        if answer == "expansion":
            n_wrong = self._n_wrong(labels, self.expansion[rows], self.expansion_slack[rows])
        else:
            n_wrong = self.differing(labels, rows)
        if n_wrong > (_NEARLY_EXACT_SHARE * len(labels) if answer == "nearly exact" else 0):
            raise WrongAnswerError(f"{name}: {n_wrong} of {len(labels)} labels are wrong")

    def differing(self, labels: Labels, rows: Any = slice(None)) -> int:
        """How many labels differ from the exact model's, ties aside that float64 cannot decide."""
        return self._n_wrong(labels, self.exact[rows], self.exact_slack)

    def _n_wrong(self, labels: Labels, values: FloatArray, slack: float | FloatArray) -> int:
        if labels.shape != values.shape:
            raise WrongAnswerError(f"{labels.shape} labels for {values.shape} rows")
        return int(((labels != np.where(values > 0.0, *self.labels)) & (np.abs(values) > slack)).sum())


def check_decision_values(case: Case, fast: approxsvm.CompiledSVC, center: CenterChoice) -> None:
    """Demand that our decision values are those of the expansion about `center`, up to float32 rounding."""
    first, second = case.model.labels
    sign = 1.0 if first > second else -1.0  # scikit-learn's positive is the larger label
    got = sign * fast.decision_function(case.X_test)
    _demand_close(f"our decision values about the {center}", got, *expansion_values(case, center))


def expansion_values(case: Case, center: CenterChoice) -> tuple[FloatArray, FloatArray]:
    """Decision values of the expansion in float64, and what float32 rounding may do to them."""
    expansion = reference.second_order(case.model, center)
    parts = [reference.evaluate(expansion, block) for block in _blocks(case.X_test)]
    slacks = [_rounding(expansion, block) for block in _blocks(case.X_test)]
    return np.concatenate(parts), (case.model.n_features + 32) * _FLOAT32_ROUNDOFF * np.concatenate(slacks)


def _rounding(expansion: reference.SecondOrder, rows: FloatArray) -> FloatArray:
    """Evaluate with every term positive: rounding errors are proportional to this, not to the value."""
    u = np.abs(rows - expansion.center)
    products = u @ np.abs(expansion.quadratic) + np.abs(expansion.linear)
    inner = abs(expansion.constant) + np.einsum("ij,ij->i", products, u)
    exponent = expansion.gamma * np.einsum("ij,ij->i", u, u)
    return abs(expansion.intercept) + np.exp(-exponent) * (1.0 + exponent) * inner


def _exact_values(model: approxsvm.KernelModel, X: csr_array) -> FloatArray:
    support_vectors = model.dense_support_vectors(0, model.n_sv)
    sums = [rbf_kernel(rows, support_vectors, model.gamma) @ model.coefficients(0) for rows in _blocks(X)]
    return np.concatenate(sums) + model.intercept[0]


def _blocks(X: csr_array) -> Iterator[FloatArray]:
    return (X[first : first + _BLOCK_ROWS].toarray() for first in range(0, X.shape[0], _BLOCK_ROWS))


def _demand_close(name: str, got: FloatArray, expected: FloatArray, slack: float | FloatArray) -> None:
    excess = np.abs(got - expected) - slack
    if not (excess <= 0.0).all():
        row = int(np.argmax(excess))
        raise WrongAnswerError(f"{name}: row {row} is {got[row]:.17g}, expected {expected[row]:.17g}")

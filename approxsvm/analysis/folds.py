"""Results of cross-validation folds, and a table of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.table import Table


@dataclass(frozen=True)
class Fold:
    """Results for one fold or for all folds. Accuracy is None for regressors; mse and r2 are None for classifiers."""

    n_train: int  # number of training rows; for the total, their mean over folds
    n_test: int
    exact_accuracy: float | None
    compiled_accuracy: float | None
    exact_mse: float | None
    compiled_mse: float | None
    exact_r2: float | None
    compiled_r2: float | None
    differences: int | None  # number of labels that differ between the exact and the compiled model
    largest_difference: float | None  # largest difference between the two models' regression values
    certified: float  # fraction of rows whose results the first stage's bound certifies
    speed_ratio: float  # the source's prediction time, divided by the compiled model's
    compile_seconds: float


@dataclass(frozen=True, eq=False)
class FoldAnswers:
    """Predictions for a fold's test rows by a compiling estimator's two models, trained and compiled."""

    truth: npt.NDArray[Any]
    exact: npt.NDArray[Any]
    compiled: npt.NDArray[Any]
    certified: npt.NDArray[np.bool_]
    exact_seconds: float
    compiled_seconds: float
    compile_seconds: float

    @classmethod
    def of(cls, fitted: Any, X: Any, y: Any) -> FoldAnswers:
        """Predict with the trained and the compiled model of a fitted CompiledClassifier or CompiledRegressor."""
        exact, exact_seconds = _timed(fitted.estimator_.predict, X)
        compiled, compiled_seconds = _timed(fitted.compiled_.predict, X)
        certified = fitted.compiled_.certified(X)
        return cls(y, exact, compiled, certified, exact_seconds, compiled_seconds, fitted.compiled_.compilation.seconds)

    @classmethod
    def joined(cls, parts: Sequence[FoldAnswers]) -> FoldAnswers:
        """Concatenate the predictions of all folds."""
        arrays = ("truth", "exact", "compiled", "certified")
        seconds = ("exact_seconds", "compiled_seconds", "compile_seconds")
        joined: list[Any] = [np.concatenate([getattr(part, name) for part in parts]) for name in arrays]
        return cls(*joined, *(sum(getattr(part, name) for part in parts) for name in seconds))

    def summary(self, n_train: int, is_classifier: bool) -> Fold:
        """Compute the results for all rows."""
        truth, exact, compiled = self.truth, self.exact, self.compiled

        def share(predicted: npt.NDArray[Any]) -> float | None:
            return float((predicted == truth).mean()) if is_classifier else None

        def mse(predicted: npt.NDArray[Any]) -> float | None:
            return None if is_classifier else float(np.mean((predicted - truth) ** 2))

        def r2(predicted: npt.NDArray[Any]) -> float | None:
            if is_classifier or not np.ptp(truth) > 0:
                return None
            return float(1.0 - np.sum((predicted - truth) ** 2) / np.sum((truth - truth.mean()) ** 2))

        return Fold(
            n_train=n_train,
            n_test=len(truth),
            exact_accuracy=share(exact),
            compiled_accuracy=share(compiled),
            exact_mse=mse(exact),
            compiled_mse=mse(compiled),
            exact_r2=r2(exact),
            compiled_r2=r2(compiled),
            differences=int((exact != compiled).sum()) if is_classifier else None,
            largest_difference=None if is_classifier else float(np.abs(exact - compiled).max()),
            certified=float(self.certified.mean()),
            speed_ratio=self.exact_seconds / self.compiled_seconds,
            compile_seconds=self.compile_seconds,
        )


def _timed(predict: Callable[[Any], Any], rows: Any) -> tuple[npt.NDArray[Any], float]:
    start = time.perf_counter()
    predicted = predict(rows)
    return predicted, time.perf_counter() - start


def fold_table(folds: Sequence[Fold], total: Fold) -> Table:
    """Build a table with one line per fold, and a last line for all rows."""
    regression = ("exact MSE", "compiled MSE", "exact R2", "compiled R2", "largest difference")
    classification = ("exact", "compiled", "labels that differ")
    chosen = classification if total.differences is not None else regression
    names = ("fold", "rows", *chosen, "certified", "times faster")
    table = Table(box=None, pad_edge=False)
    for name in names:
        table.add_column(name, justify="right")
    for number, fold in enumerate(folds, 1):
        table.add_row(str(number), *_cells(fold))
    table.add_row("all", *_cells(total), style="bold")
    return table


def _cells(fold: Fold) -> list[str]:
    last = [f"{fold.certified:.2%}", f"{fold.speed_ratio:,.1f}"]
    if fold.differences is not None:
        return [
            f"{fold.n_test:,}",
            f"{fold.exact_accuracy:.4%}",
            f"{fold.compiled_accuracy:.4%}",
            f"{fold.differences:,}",
            *last,
        ]
    numbers = (fold.exact_mse, fold.compiled_mse, fold.exact_r2, fold.compiled_r2, fold.largest_difference)
    return [f"{fold.n_test:,}", *("unknown" if value is None else f"{value:.6g}" for value in numbers), *last]

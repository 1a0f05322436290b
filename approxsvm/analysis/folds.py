"""Figures of the folds of a cross-validation, and their table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table


@dataclass(frozen=True)
class Fold:
    """Figures of one fold, or of all together: accuracy of a classification, mse and r2 of a regression, else None."""

    n_train: int  # rows; for the total, the mean
    n_test: int
    exact_accuracy: float | None
    compiled_accuracy: float | None
    exact_mse: float | None
    compiled_mse: float | None
    exact_r2: float | None
    compiled_r2: float | None
    differences: int | None  # labels that differ between the two
    largest_difference: float | None  # between the two values of a regression
    certified: float  # share of the rows that the first stage's own bound proved
    speed_ratio: float  # time of the trainer's own predict on one thread, over ours
    compile_seconds: float


def fold_table(folds: Sequence[Fold], total: Fold) -> Table:
    """One line for each fold and one for all rows."""
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

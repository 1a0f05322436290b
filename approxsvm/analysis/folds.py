"""Figures of cross-validation folds, and their table."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table


@dataclass(frozen=True)
class Fold:
    """Figures of one fold or of all: accuracy for classifications, mse and r2 for regressions; the others are None."""

    n_train: int  # rows; for the total, the mean
    n_test: int
    exact_accuracy: float | None
    compiled_accuracy: float | None
    exact_mse: float | None
    compiled_mse: float | None
    exact_r2: float | None
    compiled_r2: float | None
    differences: int | None  # labels that differ between the exact and the compiled model
    largest_difference: float | None  # between their regression values
    certified: float  # share of rows proven by the first stage's bound
    speed_ratio: float  # time of the source's predict on one thread, divided by the compiled model's
    compile_seconds: float


def fold_table(folds: Sequence[Fold], total: Fold) -> Table:
    """Build a table with one line per fold and one for all rows."""
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

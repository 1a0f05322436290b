"""Folds of a cross-validation as people are shown them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from approxsvm.cross_validation import CrossValidation, Fold


def fold_table(found: CrossValidation) -> Table:
    """One line per fold and one for all rows."""
    regression = ("exact MSE", "compiled MSE", "exact R2", "compiled R2", "largest difference")
    classification = ("exact", "compiled", "labels that differ")
    chosen = classification if found.training.is_classifier else regression
    names = ("fold", "rows", *chosen, "certified", "times faster")
    table = Table(box=None, pad_edge=False)
    for name in names:
        table.add_column(name, justify="right")
    for number, fold in enumerate(found.folds, 1):
        table.add_row(str(number), *_cells(fold))
    table.add_row("all", *_cells(found.total), style="bold")
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

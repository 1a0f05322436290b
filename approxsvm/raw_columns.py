"""The columns of raw rows, before any step of a pipeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class RawColumns:
    """Columns of raw rows that a model expects.

    Attributes
    ----------
    n_columns : int
    names : tuple of str, or None
        Those that the source was fitted with.
    used : ndarray of shape (n_used,), intp
        Positions of those that answers depend on, ascending. Nobody looks at the others.
    by_column : bool
        Whether the source's first step is a ColumnTransformer: it finds the columns of a data frame by their names, in
        any order and among others, and those that it drops need not be numbers, nor be there.
    takes_nan : ndarray of shape (n_taking,), intp
        Positions of used columns where NaN is a value, such as in front of an imputer.
    """

    n_columns: int
    names: tuple[str, ...] | None  # that the source was fitted with
    used: npt.NDArray[np.intp]  # ascending positions of the columns that answers depend on; others are ignored
    by_column: bool
    takes_nan: npt.NDArray[np.intp]

    @classmethod
    def of(cls, model: Any) -> RawColumns:
        """Columns of a model, an ensemble, or an artifact of either."""
        n_columns = int(model.n_raw_features)
        maps = [part.input_map for part in getattr(model, "members", ()) or (model,)]
        used = np.unique(np.concatenate([np.arange(n_columns) if one is None else one.columns for one in maps]))
        by_column = all(one is not None and one.by_column for one in maps)
        return cls(n_columns, model.feature_names, used, by_column, _taking_nan(maps))

    @property
    def uses_all(self) -> bool:
        """Whether answers depend on every column."""
        return len(self.used) == self.n_columns

    def are_taken(self, values: npt.NDArray[Any], columns: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Which numbers a model takes in these columns: finite ones, and NaN where it is a value."""
        taken = np.isfinite(values)
        if len(self.takes_nan) and not taken.all():
            taken |= np.isnan(values) & np.isin(columns, self.takes_nan)
        return np.asarray(taken)


def _taking_nan(maps: list[Any]) -> npt.NDArray[np.intp]:
    """Columns that some map takes NaN of, and no other map of its own uses without."""
    taking = {int(j) for one in maps if one is not None for j in one.columns_of_nan()}
    refusing = {int(j) for one in maps if one is not None for j in np.setdiff1d(one.columns, one.columns_of_nan())}
    every = any(one is None for one in maps)
    return np.array([] if every else sorted(taking - refusing), np.intp)

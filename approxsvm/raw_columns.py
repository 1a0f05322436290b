"""The columns of raw rows, before any step of a pipeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class RawColumns:
    """Columns of raw rows that a model expects.

    `by_column` is whether the source's first step is a ColumnTransformer. Columns of a data frame are then matched by
    name, in any order and among others; columns that it drops need not be numbers, nor be present.
    """

    n_columns: int
    names: tuple[str, ...] | None  # that the source was fitted with
    used: npt.NDArray[np.intp]  # ascending positions of the columns that answers depend on; others are ignored
    by_column: bool

    @classmethod
    def of(cls, model: Any) -> RawColumns:
        """Columns of a model, an ensemble, or an artifact of either."""
        n_columns = int(model.n_raw_features)
        maps = [part.input_map for part in getattr(model, "members", ()) or (model,)]
        used = np.unique(np.concatenate([np.arange(n_columns) if one is None else one.columns for one in maps]))
        return cls(n_columns, model.feature_names, used, all(one is not None and one.by_column for one in maps))

    @property
    def uses_all(self) -> bool:
        """Whether answers depend on every column."""
        return len(self.used) == self.n_columns

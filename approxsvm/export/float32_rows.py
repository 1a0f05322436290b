"""What rows of float32 cannot say: numbers of a table, categories above all, that no float32 is equal to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from approxsvm.artifact.views import Artifact
from approxsvm.errors import UnsupportedModelError
from approxsvm.model.steps import Step, Table


def leading_table(artifact: Artifact) -> Table | None:
    """The table that comes first, if there is one."""
    stages: Sequence[Step] = () if artifact.input_map is None else artifact.input_map.stages
    return stages[0] if stages and isinstance(stages[0], Table) else None


def check_float32_rows(artifact: Artifact, instead: str) -> None:
    """Refuse a model that looks up numbers which are no float32: no row of float32 would ever find them.

    Raises
    ------
    UnsupportedModelError
        It names the first of them, and says what to do `instead`.
    """
    for one in artifact.members or (artifact,):
        for column, number in _lost_numbers(one):
            name = f" ({artifact.feature_names[column]!r})" if artifact.feature_names else ""
            raise UnsupportedModelError(
                f"column {column}{name} has the value {number!r}, which is no float32, so that no row of float32 finds "
                f"what the model has for it: {instead}"
            )


def _lost_numbers(artifact: Artifact) -> Iterator[tuple[int, float]]:
    """Raw columns, and beginnings of pieces of their step functions that hold no float32."""
    table = leading_table(artifact)
    if table is None or artifact.input_map is None:
        return
    for source, steps in zip(table.source, table.steps, strict=True):
        with np.errstate(over="ignore"):
            first = steps.edges[:-1].astype(np.float32)
            first = np.where(first < steps.edges[:-1], np.nextafter(first, np.float32(np.inf)), first)
        for edge in steps.edges[:-1][first.astype(np.float64) >= steps.edges[1:]]:
            yield int(artifact.input_map.columns[source]), float(edge)

"""What rows of float32 cannot say: numbers of a table, categories above all, that no float32 is equal to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from approxsvm.artifact.views import Artifact
from approxsvm.errors import UnsupportedModelError
from approxsvm.ir.steps import Step, Table


def leading_table(artifact: Artifact) -> Table | None:
    """The table that comes first, if there is one."""
    stages: Sequence[Step] = () if artifact.input_map is None else artifact.input_map.stages
    return stages[0] if stages and isinstance(stages[0], Table) else None


def check_float32_rows(artifact: Artifact, instead: str) -> None:
    """Refuse (UnsupportedModelError) a model that looks up numbers which are no float32, which no such row would find.

    The message names the first of them, and says what to do `instead`.
    """
    for one in artifact.members or (artifact,):
        for column, number in _lost_numbers(one):
            name = f" ({artifact.feature_names[column]!r})" if artifact.feature_names else ""
            raise UnsupportedModelError(
                f"column {column}{name} has the value {number!r}, which is no float32, so that no row of float32 finds "
                f"what the model has for it: {instead}"
            )


def _lost_numbers(artifact: Artifact) -> Iterator[tuple[int, float]]:
    """Raw columns and numbers of a piece of their own that float32 cannot represent.

    Pieces of several float64 numbers are bins or the gaps between such numbers; they need no float32 number.
    """
    table = leading_table(artifact)
    if table is None or artifact.input_map is None:
        return
    for source, steps in zip(table.source, table.steps, strict=True):
        edges = steps.edges[:-1]
        alone = np.nextafter(edges, np.inf) == steps.edges[1:]
        with np.errstate(over="ignore"):
            lost = alone & (edges.astype(np.float32) != edges)
        for edge in edges[lost]:
            yield int(artifact.input_map.columns[source]), float(edge)

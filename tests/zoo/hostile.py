"""Rows that hurt a given source: on its edges and boundary, of special values, far away, equal, missing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from zoo.draw import Draw
from zoo.specimens import Specimen
from zoo.tables import Table, edges_of, with_edges


def hostile_tables(specimen: Specimen, seed: int) -> Iterator[Table]:
    """Yield tables to ask about, a few dozen rows each; the first has the training rows' own form."""
    yield specimen.table
    draw = Draw(seed)
    table = specimen.table.take(np.arange(min(len(specimen.table.values), 24)))
    yield with_edges(draw, table, edges_of(specimen.source, len(table.kinds)))

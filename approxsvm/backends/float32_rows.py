"""Check whether a model's lookups contain values, mostly categories, that float32 rows cannot represent."""

from collections.abc import Iterator

import numpy as np

from approxsvm.artifact.views import Artifact
from approxsvm.errors import UnsupportedModelError
from approxsvm.ir.ops import Lookup


def leading_lookup(artifact: Artifact) -> Lookup | None:
    """Return the first op, extended to whole rows, if it is a lookup; otherwise return None."""
    map_ = artifact.input_map
    if map_ is None or not map_.ops or not isinstance(map_.ops[0], Lookup):
        return None
    return Lookup.covering([map_.ops[0]], 0, len(map_.columns))


def check_float32_rows(artifact: Artifact, instead: str) -> None:
    """Raise UnsupportedModelError if a model looks up values that no float32 row can contain.

    The message names the first such value and the remedy `instead`.
    """
    for one in artifact.members or (artifact,):
        for column, number in _lost_numbers(one):
            name = f" ({artifact.feature_names[column]!r})" if artifact.feature_names else ""
            raise UnsupportedModelError(
                f"column {column}{name} has the value {number!r}, which float32 cannot represent, so no float32 row "
                f"can match it: {instead}"
            )


def _lost_numbers(artifact: Artifact) -> Iterator[tuple[int, float]]:
    """Yield (raw column, value) for each looked-up value that float32 cannot represent.

    Only intervals with a single float64 value matter. Longer intervals are bins or gaps between values; bins contain
    float32 values, and gaps need not contain any.
    """
    lookup = leading_lookup(artifact)
    if lookup is None or artifact.input_map is None:
        return
    for source, steps in zip(lookup.source, lookup.steps, strict=True):
        edges = steps.edges[:-1]
        is_single = np.nextafter(edges, np.inf) == steps.edges[1:]
        with np.errstate(over="ignore"):
            lost = is_single & (edges.astype(np.float32) != edges)
        for edge in edges[lost]:
            yield int(artifact.input_map.columns[source]), float(edge)

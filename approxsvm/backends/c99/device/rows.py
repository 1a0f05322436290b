"""Mapping of raw rows to the inputs of a device function, with a bound on their distance from the source's mapped rows.

A lookup at the start of the input map runs first (lookups.py), and its results are exact.

If all ops of the input map only scale, coordinates are mapped on demand in float64, and the table of bounds includes
the error (device/bounds.py). For any other kind of op, and for sums (sums.py), the whole row is mapped first, and the
header bounds its distance from the source's row in exact arithmetic (device/ops.py).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.artifact.views import Artifact
from approxsvm.backends.c99.answers import Macros
from approxsvm.backends.c99.device.ops import OpTable, largest_after, on_device
from approxsvm.backends.c99.device.router import smallest
from approxsvm.backends.c99.input_codes import InputCodes
from approxsvm.backends.c99.lookups import lookup_arrays, most_looked_up
from approxsvm.backends.float32_rows import leading_lookup
from approxsvm.errors import UnsupportedModelError
from approxsvm.ir.ops import Affine, Lookup, Op

Arrays = Iterator[tuple[str, npt.NDArray[Any]]]


def device_ops(artifact: Artifact) -> tuple[Op, ...]:
    """Return the ops of an artifact's input map except a leading lookup and ops that change nothing.

    Raises UnsupportedModelError as `largest_after` does.
    """
    if artifact.input_map is None:
        return ()
    lookup = leading_lookup(artifact)
    all_float32 = np.full(len(artifact.input_map.columns), float(np.finfo(np.float32).max))
    most = all_float32 if lookup is None else most_looked_up(lookup, all_float32)
    ops = [op for op in artifact.input_map.ops[0 if lookup is None else 1 :] if not op.is_identity]
    for op in ops:
        most = largest_after(op, most)
    return tuple(ops)


class DeviceRows:
    """Input rows of one artifact, either quantized by `codes` or in float32.

    If `wholly` is True, the function needs the whole mapped row with its error, not one coordinate at a time.
    """

    def __init__(self, artifact: Artifact, codes: InputCodes | None, wholly: bool) -> None:
        self.artifact, self.codes = artifact, codes
        self.lookup, self.ops = leading_lookup(artifact), device_ops(artifact)
        self.has_map = artifact.input_map is not None
        only_scales = all(isinstance(op, Affine) for op in self.ops)
        # Scalers, extended to all features of the row
        self.scalers = tuple(
            Affine.covering([op], 0, artifact.n_features) for op in self.ops if only_scales and isinstance(op, Affine)
        )
        if codes and not only_scales:
            raise UnsupportedModelError(
                "the C export takes rows of codes only if all steps are scalers: use inputs='float32', or compile and "
                "export the model after the other steps"
            )
        self.is_whole = self.has_map and (wholly or not only_scales)
        self.folded = codes.folded(artifact, self.scalers) if codes and not self.is_whole else None
        self.moved = codes.moved(artifact, self.scalers, self.folded) if codes else 0.0
        # True if some finite rows are mapped to NaN
        self.has_domain = any(on_device(op).refuses(op) for op in self.ops)
        also = "" if self.lookup is None else ", or has a value that a lookup rejects"
        # Description of the rows that cannot be mapped
        self.refused = f"that is not finite{also}{', or has a number that a step rejects' if self.has_domain else ''}"
        # For each checked value, True if it may be NaN, because a later lookup replaces NaN
        self.takes_nan = np.zeros(0, np.bool_)
        self.table = OpTable((), 0, wholly=False)
        self.widest = self.stack_bytes = 0
        if artifact.input_map is None:
            return
        # Raw columns read by the first op, or by the outputs of the leading lookup
        columns = artifact.input_map.columns
        columns = columns if self.lookup is None else columns[self.lookup.source]
        replaced = any(isinstance(op, Lookup) for op in self.ops)
        taken = np.isin(columns, artifact.input_map.columns_of_nan()) & replaced
        n_unused = 0 if self.lookup is None else self.lookup.n_features - len(np.unique(self.lookup.source))
        self.takes_nan = np.append(taken, np.zeros(n_unused, np.bool_))
        grown = np.cumsum([0, *(op.n_outputs - op.n_features for op in self.ops)])
        self.widest = max(len(columns) + int(grown.max()), 1)  # maximum number of values in a row at any op
        self.table = OpTable(() if self.folded else self.ops, len(columns), self.is_whole)
        self.stack_bytes = (8 * self.widest + self.table.stack_bytes) * self.is_whole

    @property
    def macros(self) -> Macros:
        """Sizes and properties of rows (cpp/include/approxsvm/exported/rows.h)."""
        arrays, codes = dict(self.arrays()), self.codes
        input_map = self.artifact.input_map
        found: Macros = {
            "n_features": self.artifact.n_raw_features,
            "n_mapped_": self.artifact.n_features,
            "n_used_": self.artifact.n_features if input_map is None else len(input_map.columns),
            "n_looked_up_": len(arrays.get("lookup_source_", ())),
            "n_checked_": len(arrays.get("checked_columns_", ())),
            "n_replaceable_": int(self.takes_nan.any()),
            "n_widest_": self.widest,
            "has_columns_": int("columns_" in arrays),
            "has_map_": int(self.has_map),
            "has_domain_": int(self.has_domain),
            "is_folded_": int(self.folded is not None),
            "maps_rows_": int(self.is_whole),
            "integer_": f"{arrays['integers_'].dtype.name}_t",
        }
        if codes:
            found |= {"row_bits_": 8 * np.dtype(codes.kind).itemsize, "largest_code": codes.largest}
        return found | self.table.macros

    def arrays(self) -> Arrays:
        """Yield the arrays of the input map and of the codes."""
        yield from self.table.arrays.items()
        if self.codes:
            yield "offsets", self.codes.offsets
            yield "steps", self.codes.steps
        if self.artifact.input_map is None:
            return
        columns = self.artifact.input_map.columns
        if self.lookup is not None:
            yield from lookup_arrays(self.lookup, columns)
        elif len(columns) != self.artifact.n_raw_features or (columns != np.arange(len(columns))).any():
            yield "columns_", smallest(columns)
        if self.folded:
            yield from zip(("slopes_", "bases_"), self.folded, strict=True)
        if self.takes_nan.any():
            yield "takes_nan_", self.takes_nan.astype(np.uint8)
        checked = self.artifact.input_map.checked
        if checked:
            yield "checked_columns_", smallest(np.array(list(checked), np.intp))
        if checked and not self.codes:
            yield "checked_nan_", np.array(list(checked.values()), np.uint8)

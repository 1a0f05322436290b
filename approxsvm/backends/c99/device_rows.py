"""How a raw row becomes the numbers that a device's function takes, and how far these may be from the source's.

A table comes first or not at all (lookups.py); what it gives is exact.

Where the stages of the input map only scale, a coordinate is mapped when it is needed, in float64, and the table of
bounds has what this may be off by (device_bounds.py). Behind any other step, and in front of sums (sums.py), the whole
row is mapped first, with a bound of its distance to the source's row over the real numbers (device_steps.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.artifact.views import Artifact
from approxsvm.backends.c99 import source
from approxsvm.backends.c99.device_router import smallest
from approxsvm.backends.c99.device_steps import MapFunction, largest_after, on_device, step_arrays
from approxsvm.backends.c99.input_codes import InputCodes
from approxsvm.backends.c99.lookups import LOOKED_UP, lookup_arrays, most_looked_up
from approxsvm.backends.float32_rows import leading_table
from approxsvm.backends.steps.affine import affine_arrays, operations
from approxsvm.errors import UnsupportedModelError
from approxsvm.ir.steps import Affine, Step, Table

Arrays = Iterator[tuple[str, npt.NDArray[Any]]]


def device_stages(artifact: Artifact) -> tuple[Step, ...]:
    """The stages of an artifact's input map that change something, behind a table, where it begins with one.

    Raises
    ------
    UnsupportedModelError
        One is of a kind that devices have not, or a float32 row may leave float64 on its way.
    """
    if artifact.input_map is None:
        return ()
    table = leading_table(artifact)
    all_float32 = np.full(len(artifact.input_map.columns), float(np.finfo(np.float32).max))
    most = all_float32 if table is None else most_looked_up(table, all_float32)
    stages = [stage for stage in artifact.input_map.stages[0 if table is None else 1 :] if not stage.is_identity]
    for stage in stages:
        most = largest_after(stage, most)
    return tuple(stages)


class DeviceRows:
    """The rows of one artifact.

    Parameters
    ----------
    artifact : Artifact
    codes : InputCodes or None
        What rows are made of, unless they are float32.
    wholly : bool
        Whether the function wants all of a mapped row with its error, rather than one coordinate after the other.
    """

    def __init__(self, artifact: Artifact, codes: InputCodes | None, wholly: bool) -> None:
        self.artifact, self.codes = artifact, codes
        self.table, self.stages = leading_table(artifact), device_stages(artifact)
        self.has_map = artifact.input_map is not None
        self.scalers = tuple(stage for stage in self.stages if isinstance(stage, Affine))
        only_scales = len(self.scalers) == len(self.stages)
        if codes and not only_scales:
            raise UnsupportedModelError(
                "the C export takes rows of codes where nothing but scalers comes first: leave inputs='float32', or "
                "compile and export what follows the other steps"
            )
        self.is_whole = self.has_map and (wholly or not only_scales)
        self.folded = codes.folded(artifact, self.scalers) if codes and not self.is_whole else None
        self.moved = codes.moved(artifact, self.scalers, self.folded) if codes else 0.0

    @property
    def n_first(self) -> int:
        """How many numbers an input map begins with: of columns, or from a table."""
        assert self.artifact.input_map is not None
        return len(self.artifact.input_map.columns) if self.table is None else self.table.n_outputs

    @property
    def first_columns(self) -> npt.NDArray[np.intp]:
        """The raw columns of these numbers."""
        assert self.artifact.input_map is not None
        columns = self.artifact.input_map.columns
        return columns if self.table is None else columns[self.table.source]

    @property
    def takes_nan(self) -> npt.NDArray[np.bool_]:
        """Which of all numbers that are checked may be missing up to a table behind the first steps."""
        if self.artifact.input_map is None:
            return np.zeros(0, np.bool_)
        replaced = any(isinstance(stage, Table) for stage in self.stages)
        taken = np.isin(self.first_columns, self.artifact.input_map.columns_of_nan()) & replaced
        n_unused = 0 if self.table is None else self.table.n_features - len(np.unique(self.table.source))
        return np.append(taken, np.zeros(n_unused, np.bool_))

    @property
    def refused(self) -> str:
        """Which rows have no mapped row, in words."""
        beside = "" if self.table is None else ", or has what tables refuse"
        return f"that is not finite{beside}{', or has what a step does not take' if self.has_domain else ''}"

    @property
    def has_domain(self) -> bool:
        """Whether a row of finite numbers may be mapped to NaN."""
        return any(on_device(stage).refuses(stage) for stage in self.stages)

    @property
    def widest(self) -> int:
        """How many numbers a mapped row has on its way, at most."""
        return max(self.n_first, *(stage.n_outputs for stage in self.stages), 1)

    @property
    def stack_bytes(self) -> int:
        """Of arrays in float64."""
        return 8 * self.widest + self._map_function.stack_bytes if self.is_whole else 0

    def arrays(self) -> Arrays:
        """Numbers of the input map and of the codes."""
        if self.codes:
            yield "offsets", self.codes.offsets
            yield "steps", self.codes.steps
        if self.artifact.input_map is None:
            return
        columns = self.artifact.input_map.columns
        if self.table is not None:
            yield from lookup_arrays(self.table, columns)
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
        yield from step_arrays(() if self.folded else self.stages)

    def functions(self) -> Iterator[str]:
        """The numbers of a row, and which rows are refused."""
        checks = self.artifact.input_map is not None and self.artifact.input_map.checked
        if self.codes:
            text = source.CODES if self.folded else source.DECODED + source.CODES
            yield text.replace("#CHECKED#", source.CHECKED_CODES if checks else "")
            return
        missing = "@takes_nan@@[j] && row[@COLUMN@] != row[@COLUMN@]" if self.takes_nan.any() else ""
        if self.table is None:
            text = source.RAW + source.NOT_FINITE.replace("#UNLESS#", f"if (!({missing})) " if missing else "")
        else:
            missing = missing.replace("@COLUMN@", "@table_source@@[j]")
            text = LOOKED_UP.replace("#UNLESS#", f" && !({missing})" if missing else "")
        checked = source.CHECKED.replace("#WRONG#", "sum" if self.table is None else "wrong") if checks else ""
        yield text.replace("#CHECKED#", checked)

    @property
    def _given(self) -> str:
        """Number j at the beginning of the input map."""
        return "(double)@raw@@(row, @COLUMN@)" if self.table is None else "@looked_up@@(row, j)"

    def coordinate(self) -> str:
        """A coordinate of a row about a center, in scaled units."""
        if not self.has_map:
            return (
                "static inline float @coordinate@@(const @ROW@ row[], int j, const float center[]) {\n"
                "    return (@raw@@(row, j) - center[j]) * @input_scale@@;\n}\n"
            )
        if self.folded:
            return (
                "/* The map of the source and the decoding are one step. */\n"
                "static inline float @coordinate@@(const @ROW@ row[], int j, const float center[]) {\n"
                "    const float x = @slopes@@[j] * (float)row[@COLUMN@] + @bases@@[j];\n"
                "    return (x - center[j]) * @input_scale@@;\n}\n"
            )
        if self.is_whole:
            return (
                f"{self.whole_map()}"
                "static inline float @coordinate@@(const double x[], int j, const float center[]) {\n"
                "    return @narrowed@@((x[j] - (double)center[j]) * (double)@input_scale@@);\n}\n"
            )
        steps = [
            line for k, stage in enumerate(self.scalers) for line in operations(k, list(affine_arrays(stage)), "x")
        ]
        body = "\n".join([f"    double x = {self._given};", *(f"    {line}" for line in steps)])
        return (
            "/* Feature j of a row as the source maps it, in its order of operations. */\n"
            f"static inline double @feature@@(const @ROW@ row[], int j) {{\n{body}\n    return x;\n}}\n"
            "static inline float @coordinate@@(const @ROW@ row[], int j, const float center[]) {\n"
            "    return (float)((@feature@@(row, j) - (double)center[j]) * (double)@input_scale@@);\n}\n"
        )

    @property
    def _map_function(self) -> MapFunction:
        return MapFunction(self.stages, self.n_first, self._given)

    def whole_map(self) -> str:
        """All of a row at once, with its error."""
        return self._map_function.text()

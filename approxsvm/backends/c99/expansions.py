"""Gaussian kernel expansions in a header: centers, coefficients, and a table of bounds (device_bounds.py)."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.artifact.views import Artifact
from approxsvm.backends.c99 import source
from approxsvm.backends.c99.coefficients import CoefficientType, Part, parts_of
from approxsvm.backends.c99.device_bounds import BoundTable
from approxsvm.backends.c99.device_router import DeviceRouter, smallest
from approxsvm.backends.c99.device_rows import DeviceRows
from approxsvm.backends.c99.program import filled, model_text
from approxsvm.backends.c99.sums import LARGEST
from approxsvm.errors import UnsupportedModelError
from approxsvm.ir.constants import gaussian_slope


class Expansions:
    """The decision values of expansions of all decision functions: arrays by name, and the functions that use them.

    Raises UnsupportedModelError if values do not fit float32.
    """

    def __init__(self, artifact: Artifact, rows: DeviceRows, kind: CoefficientType) -> None:
        numbers, decisions = artifact.expansion_numbers(), artifact.decision_numbers()
        largest = float(numbers["norms"].sum(axis=1).max() + np.abs(decisions["intercept"]).max())
        if not largest < LARGEST:
            raise UnsupportedModelError(
                f"decision values up to {largest:.3g} do not fit float32: scale the coefficients"
            )
        self.artifact, self.rows, self.kind = artifact, rows, kind
        self.parts: Sequence[Part] = parts_of(artifact, kind)
        self.bounds = BoundTable(artifact, self.parts, () if rows.is_whole else rows.scalers, rows.moved)
        self.degree = int(artifact.header["degree"])
        self.router = DeviceRouter(artifact) if artifact.n_centers > 1 else None
        self.has_slices = artifact.n_varying < artifact.n_features
        self.strange = f"a row {rows.refused}"  # rows that have no values
        self.what = f"degree {self.degree}, {artifact.n_centers} center{'s' * (artifact.n_centers > 1)}"
        self.stack_bytes = 4 * artifact.n_features + rows.stack_bytes

    @property
    def multiply_adds(self) -> int:
        """Number of float32 multiplications per row, without exp and scales."""
        n, n_values = self.artifact.n_varying, int(self.artifact.header["n_decisions"])
        total = self.artifact.n_features + n_values * (n + sum(_multiply_adds(n, k) for k in range(2, self.degree + 1)))
        return total + (self.router.largest_search * self.artifact.n_features if self.router else 0)

    def constants(self) -> dict[str, int]:
        """Return sizes, by name."""
        numbers = {
            "n_varying_": self.artifact.n_varying,
            "first_cell_": (self.bounds.first_octave + 127) * self.bounds.cells_per_octave,
            "cell_shift_": 24 - self.bounds.cells_per_octave.bit_length(),
            "n_cells_": self.bounds.bits.shape[1],
        }
        numbers |= {f"size_{part.degree}_": part.values.shape[1] for part in self.parts}
        return numbers | ({"n_group_panels_": self.router.n_group_panels} if self.router else {})

    def scalars(self) -> dict[str, str]:
        """Return the scalars that are inserted into the text."""
        end = np.float32(2.0 ** (self.bounds.first_octave + self.bounds.n_octaves))
        theta = 2.0 * self.artifact.header["gamma"] / self.artifact.header["input_scale"] ** 2
        return {
            "@end_of_cells@@": source.literal(end),
            "@theta_above@@": source.literal(np.float32(theta * 1.00001)),
            "@half_theta@@": source.literal(np.float32(0.5 * theta)),
            "@input_scale@@": source.literal(np.float32(self.artifact.header["input_scale"])),
        }

    def arrays(self) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        """Yield the arrays by name."""
        artifact, decisions = self.artifact, self.artifact.decision_numbers()
        if self.router:
            yield "reference_", artifact.center
            yield from ((f"{name}_", numbers) for name, numbers in self.router.arrays().items())
        if self.has_slices:
            yield "varying_", smallest(artifact.numbers("varying"))
            totals = decisions["total"].astype(np.float32)
            yield "totals_", np.nextafter(totals, np.float32(np.inf))
        if self.rows.is_whole:
            gamma = float(artifact.header["gamma"])
            slopes = np.minimum(
                decisions["total"] * math.sqrt(2.0 * gamma), decisions["sum_moduli"] * gaussian_slope(gamma)
            )
            largest = float(np.finfo(np.float32).max)
            if not (slopes * 1.0001 < 0.5 * largest).all():
                raise UnsupportedModelError("bounds of this model do not fit float32: scale rows or coefficients")
            yield "steepest_", np.nextafter((slopes * 1.0001).astype(np.float32), np.float32(np.inf))
        records = artifact.expansion_numbers()
        yield "centers_", artifact.centers()
        yield "intercepts_", decisions["intercept"].copy()
        yield "constants_", records["constant"].copy()
        yield "output_scales_", records["output_scale"].copy()
        for part in self.parts:
            yield f"degree_{part.degree}_", part.values
            if part.scales is not None:
                yield f"scale_{part.degree}_", part.scales
        yield "bounds_", self.bounds.bits

    def functions(self) -> Iterator[str]:
        """Yield the functions up to `evaluate`."""
        yield model_text("CELL")
        yield model_text("NORM_PLAIN") if self.degree == 1 else model_text("NORM_IN_LANES")
        if self.degree == 1 or self.kind != "float32":
            yield model_text("LINEAR")
        if self.degree >= 2:
            yield model_text("QUADRATIC")
        if self.degree >= 3:
            yield model_text("PART_2")
        yield from map(part_of_degree, range(3, self.degree + 1))
        yield self.rows.coordinate()
        if self.router:
            yield model_text("ROUTER")
        if self.has_slices:
            yield model_text("SLICE")
        yield self._evaluate()

    def _evaluate(self) -> str:
        """Return the main function: all decision values, each with its bound."""
        rows, x = self.rows, "x" if self.rows.is_whole else "row"
        load = f"for (j = 0; j < @n_mapped@@; ++j) u[j] = @coordinate@@({x}, j, {{}});"
        lines, declared = [], []
        if rows.has_map and not rows.codes:  # limits could hide NaN and infinity
            lines.append("wrong = @not_finite@@(row);")
        if rows.is_whole:
            lines.append("moved = @above@@(@map@@(row, x));")
        if rows.has_domain:
            lines.append("for (j = 0; j < @n_mapped@@; ++j) wrong = x[j] == x[j] ? wrong : approxsvm_nan32();")
        if self.router:
            lines += [load.format("@reference@@"), "center = @center@@(u);"]
        lines.append(load.format("@centers@@ + center * @n_mapped@@"))
        finite = "half_s <= FLT_MAX"
        if self.has_slices:
            lines += ["off_sq = @keep_varying@@(u);", "distance = @slice_distance@@(off_sq);"]
            finite += " && off_sq <= FLT_MAX"
        lines.append("half_s = @half_theta@@ * @sq_norm@@(u);")
        if not rows.has_map and not rows.codes:
            lines.append(f"if (!({finite})) wrong = @not_finite@@(row);")
        slack = []
        if self.has_slices:
            declared.append("float off_sq, distance;")
            slack.append("bounds[k] = 1.00001f * (bounds[k] + @totals@@[k] * distance);")
        if rows.is_whole:
            declared += [f"double x[{rows.widest}];", "float moved;"]
            slack.append("bounds[k] = 1.00001f * (bounds[k] + @steepest@@[k] * moved);")
        if rows.codes:
            declared.append("const int is_saturated = @is_saturated@@(row);")
            slack.append("if (is_saturated) bounds[k] = approxsvm_infinity32();")
        return filled("EXPANSIONS", declared=declared, loaded=lines, forms=list(self._forms()), slack=slack)

    def _forms(self) -> Iterator[str]:
        """Yield statements that add the parts of all degrees to `inner`."""
        linear = "@linear_form@@(@degree_1@@ + e * @size_1@@, u)"
        quadratic = "@quadratic_form@@(@degree_2@@ + e * @size_2@@, {}, @n_varying@@, u)"
        if self.kind == "float32":
            joined = quadratic.format("@degree_1@@ + e * @size_1@@")
            yield f"inner += (double){linear if self.degree == 1 else joined};"
        else:
            yield f"inner += (double)(@scale_1@@[e] * {linear});"
            if self.degree >= 2:
                yield f"inner += (double)(@scale_2@@[e] * {quadratic.format('(const @T@ *)0')});"
        for k in range(3, self.degree + 1):
            part = f"@part_{k}@@(&next, @n_varying@@, u)"
            yield "{"
            yield f"    const @T@ *next = @degree_{k}@@ + e * @size_{k}@@;"
            yield f"    inner += (double){part if self.kind == 'float32' else f'(@scale_{k}@@[e] * {part})'};"
            yield "}"


def part_of_degree(k: int) -> str:
    """Return the function that sums up a form of degree k."""
    return model_text("PART").replace("part_K", f"part_{k}").replace("part_BELOW", f"part_{k - 1}")


def _multiply_adds(n: int, degree: int) -> int:
    """Count multiplications for this degree in n variables: by each coefficient, and of partial sums by variables."""
    if degree == 2:
        return n * (n + 1) // 2 + n
    return sum(_multiply_adds(n - i, degree - 1) + 1 for i in range(n))

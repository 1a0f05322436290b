"""Expansions of Gaussian kernels in a header: centers, coefficients, and a table of bounds (device/bounds.py)."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.artifact.views import Artifact
from approxsvm.backends.c99 import source
from approxsvm.backends.c99.answers import Macros
from approxsvm.backends.c99.coefficients import CoefficientType, Part, parts_of
from approxsvm.backends.c99.device.bounds import BoundTable
from approxsvm.backends.c99.device.router import DeviceRouter, smallest
from approxsvm.backends.c99.device.rows import DeviceRows
from approxsvm.backends.c99.sums import LARGEST
from approxsvm.errors import UnsupportedModelError
from approxsvm.ir.constants import gaussian_slope


class Expansions:
    """Decision values in a header, computed from expansions of all decision functions.

    Raises UnsupportedModelError if values may overflow float32.
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
        self.strange = f"a row {rows.refused}"  # rows for which no value is computed
        self.what = f"degree {self.degree}, {artifact.n_centers} center{'s' * (artifact.n_centers > 1)}"
        self.stack_bytes = 4 * artifact.n_features + rows.stack_bytes

    @property
    def multiply_adds(self) -> int:
        """Number of float32 multiplications per row, not counting exp and scaling."""
        n, n_values = self.artifact.n_varying, int(self.artifact.header["n_decisions"])
        total = self.artifact.n_features + n_values * (n + sum(_multiply_adds(n, k) for k in range(2, self.degree + 1)))
        return total + (self.router.largest_search * self.artifact.n_features if self.router else 0)

    @property
    def macros(self) -> Macros:
        """Macros for sizes and scalars, by name (cpp/include/approxsvm/exported/expansions.h)."""
        end = np.float32(2.0 ** (self.bounds.first_octave + self.bounds.n_octaves))
        theta = 2.0 * self.artifact.header["gamma"] / self.artifact.header["input_scale"] ** 2
        sizes = {part.degree: part.values.shape[1] for part in self.parts}
        return {
            "is_expanded_": 1,
            "has_coordinates_": 1,
            "has_slices_": int(self.has_slices),
            "is_quantized_": int(self.kind != "float32"),
            "coefficient_": {"float32": "float", "int16": "int16_t", "int8": "int8_t"}[self.kind],
            "degree_": self.degree,
            "n_varying_": self.artifact.n_varying,
            "size_2_": sizes.get(2, 0),
            "n_higher_": sum(size for degree, size in sizes.items() if degree > 2),
            "first_cell_": (self.bounds.first_octave + 127) * self.bounds.cells_per_octave,
            "cell_shift_": 24 - self.bounds.cells_per_octave.bit_length(),
            "n_cells_": self.bounds.bits.shape[1],
            "n_group_panels_": self.router.n_group_panels if self.router else 0,
            "end_of_cells_": source.literal(end),
            "theta_above_": source.literal(np.float32(theta * 1.00001)),
            "half_theta_": source.literal(np.float32(0.5 * theta)),
            "input_scale_": source.literal(np.float32(self.artifact.header["input_scale"])),
        }

    def arrays(self) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        """Yield the name and the values of each array."""
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
        for part in self.parts[:2]:
            yield f"degree_{part.degree}_", part.values
        if self.degree > 2:
            yield "higher_", np.hstack([part.values for part in self.parts[2:]])
        if self.kind != "float32":
            yield "scales_", np.stack([part.scales for part in self.parts if part.scales is not None], axis=1)
        yield "bounds_", self.bounds.bits


def _multiply_adds(n: int, degree: int) -> int:
    """Count one degree's multiplications in n variables, both by coefficients and of partial sums by variables."""
    if degree == 2:
        return n * (n + 1) // 2 + n
    return sum(_multiply_adds(n - i, degree - 1) + 1 for i in range(n))

"""Table of error bounds for rows, precomputed from an artifact's norms: one bound for each expansion and cell of s.

For every row, the host multiplies fourteen functions of s, tabulated on fine cells, by an expansion's norms
(cpp/include/approxsvm/bounds/certificate.hpp). On a device these norms are constants, so the bound for each expansion
on each fine cell is evaluated here, in float64, with the core's functions. The maximum over several adjacent cells is
stored as the upper 16 bits of a float32, rounded up. At run time, a row needs one load. Let phi_k(s) = exp(-s/2)
sqrt(s^k / k!). For all s in a cell, widened by the error of the computed s, the bound covers:

* truncation: N_k phi_k(s) for the norms N_k of the omitted degrees, and the remainder from first_remainder_degree on;
* float32 rounding of the kept degrees. The error is proportional to the sum of the absolute values of the terms, which
  is at most N_k phi_k(s), and to the length of addition chains, which are at most as long as assumed (source.py);
* the kept degrees themselves for s >= 174, because the device may return only the intercept for such a row;
* rounding of the row's coordinates and of the coefficients, and the difference between the compiled model and its
  source.

Two errors occur only in the export:

* Quantized coefficients (coefficients.py). The error of the degree-k part is at most output_scale sigma_k exp(-s/2)
  ||u||^k. Since s = theta ||u||^2 with theta = 2 gamma / input_scale^2, this bound equals

      output_scale sigma_k sqrt(k!) theta^(-k/2) phi_k(s) =: E_k phi_k(s).

  E_k acts as an additional norm of degree k. Rounding errors are then proportional to N_k + F_k, where F_k is E_k with
  the Frobenius norm in place of sigma_k, and addition chains have three more roundings: of the scale, of the product
  with it, and of a separate sum.
* Input map, evaluated in float64. The host bounds the rounding of each individual row; here, the bound holds for all
  rows in a cell. They are at most r = sqrt(s / (2 gamma)) away from the center, so every mapped feature is at most M =
  |center| + r in absolute value. Bounds on all intermediate values follow from M, op by op, from the last op to the
  first. If a value of modulus t beyond the limit is clipped, the feature has an error only if t <= M + e(t), where the
  error bound e(t) = a + b t is affine and increasing. If e(2M) <= M, it follows that t <= 2M: e(t) - (t - M) is affine,
  positive at t = 0 and at most 0 at t = 2M, hence negative for t > 2M.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm import _native
from approxsvm.artifact.views import Artifact
from approxsvm.backends.c99.coefficients import Part
from approxsvm.expansion.gram import LAST_DEGREE
from approxsvm.ir.constants import CELLS_PER_OCTAVE as FINE_PER_OCTAVE
from approxsvm.ir.constants import CONTRACTIONS, END_OCTAVE, FIRST_OCTAVE, ROUNDED_UP, UNIT64, gaussian_slope
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.ops import Affine

# Cells of s / 2. The host has 32 cells per octave from 2^-21 to 2^7, one cell below, and an open cell above. A device
# cell covers four host cells, or eight with quantized coefficients, where memory matters most; this makes bounds 5 to
# 10% larger. The table covers the octaves in which some bound is less than W, the norm of the whole function, and
# greater than _NEGLIGIBLE times W (or an eighth of the tolerance, if that is smaller). Smaller bounds hardly ever
# matter.
CELLS_PER_OCTAVE: Final = 8
FEWER_PER_OCTAVE: Final = 4
_NEGLIGIBLE: Final = 2.0**-16
_TINY: Final = 2.0**-1070
_MOST_ON_THE_WAY: Final = 1e300


class BoundTable:
    """Bounds for all expansions, in bfloat16, over cells of half_s = s / 2.

    Cell 0 is [0, 2^first_octave). It is followed by cells_per_octave cells per octave and an open last cell.

    The array `bits`, of shape (n_expansions, n_cells), contains the upper halves of float32 values; 0x7F80 is infinity.
    """

    def __init__(
        self, artifact: Artifact, parts: Sequence[Part], scalers: Sequence[Affine] = (), moved: float = 0.0
    ) -> None:
        """Build the table; `moved` bounds the distance by which quantization moves mapped rows (input_codes.py).

        If the input map consists of `scalers` only, the bounds include its error.
        """
        fine = _fine_bounds(artifact, parts, scalers) + _moved_values(artifact, moved)[:, np.newaxis]
        # The octaves are chosen from the bounds for float32 coefficients, because bounds for quantized ones decrease
        # slowly with s, so more octaves would gain little.
        plain = [replace(part, scales=None) for part in parts]
        self.first_octave, end = _octaves(artifact, _fine_bounds(artifact, plain, scalers))
        self.n_octaves = end - self.first_octave
        self.cells_per_octave = CELLS_PER_OCTAVE if parts[0].scales is None else FEWER_PER_OCTAVE
        low, high = (1 + FINE_PER_OCTAVE * (octave - FIRST_OCTAVE) for octave in (self.first_octave, end))
        inner = fine[:, low:high].reshape(len(fine), -1, FINE_PER_OCTAVE // self.cells_per_octave).max(axis=2)
        below, above = fine[:, :low].max(axis=1), fine[:, high:].max(axis=1)
        self.bits = _bfloat16_above(np.column_stack([below, inner, above]))


def _octaves(artifact: Artifact, fine: FloatArray) -> tuple[int, int]:
    """Return the half-open range (first, last + 1) of octaves of s / 2 for which bounds are needed."""
    total = np.tile(artifact.decision_numbers()["total"], artifact.n_centers)[:, np.newaxis]
    inside = fine[:, 1:-1]  # cells of whole octaves
    least = np.minimum(_NEGLIGIBLE * total, float(artifact.header["tolerance"]) / 8.0)
    octaves = FIRST_OCTAVE + np.flatnonzero(((inside > least) & (inside < 0.98 * total)).any(axis=0)) // FINE_PER_OCTAVE
    return (int(octaves[0]), int(octaves[-1]) + 1) if len(octaves) else (END_OCTAVE - 1, END_OCTAVE)


def _bfloat16_above(numbers: FloatArray) -> npt.NDArray[np.uint16]:
    """Return the upper 16 bits of the smallest bfloat16 not less than each value."""
    with np.errstate(over="ignore"):
        narrow = numbers.astype(np.float32)
    narrow = np.where(narrow < numbers, np.nextafter(narrow, np.float32(np.inf)), narrow)
    bits = np.asarray(narrow, np.float32).view(np.uint32).astype(np.uint64)
    above: npt.NDArray[np.uint16] = np.minimum((bits + 0xFFFF) >> np.uint64(16), 0x7F80).astype(np.uint16)
    return above


def _fine_bounds(artifact: Artifact, parts: Sequence[Part], scalers: Sequence[Affine]) -> FloatArray:
    """Return upper bounds for all expansions on all fine cells, an array of shape (n_expansions, n_cells)."""
    header, records, decisions = artifact.header, artifact.expansion_numbers(), artifact.decision_numbers()
    degree, n, n_decisions = int(header["degree"]), artifact.n_features, len(decisions)
    of_decision = np.tile(np.arange(n_decisions), artifact.n_centers)
    total, intercept = decisions["total"][of_decision], np.abs(decisions["intercept"])[of_decision]
    arithmetic = _native.float32_arithmetic(n, degree)
    quantized, rounded = _norms(artifact, parts)
    ends = _native.bound_cells(n)
    if parts[0].scales is not None:
        arithmetic = _native.ExpansionArithmetic(arithmetic.unit, arithmetic.form + 3.0, arithmetic.half_norm)
    factors = _native.bound_factors(ends, degree, int(header["first_remainder_degree"]), arithmetic) * ROUNDED_UP
    of_norms, remainders, of_total = np.split(factors, [LAST_DEGREE + 1, -1])
    bounds = rounded @ of_norms + np.outer(total, of_total)
    for k in np.flatnonzero(quantized.any(axis=0)).tolist():
        bounds += np.outer(quantized[:, k], _native.max_phi(k, *ends) * ROUNDED_UP)
    for theta, factor in zip(CONTRACTIONS, remainders, strict=True):
        chosen = np.flatnonzero(records["contraction"] == theta)
        with np.errstate(invalid="ignore"):
            remainder = np.outer(records["remainder"][chosen], factor)
        bounds[chosen] += np.where(np.isinf(factor), total[chosen, np.newaxis], remainder)
    bounds = np.column_stack([bounds, total])  # bound on the open last cell, where the value is the intercept
    bounds += (records["coefficient_error"] + 2.0**-48 * (intercept + total))[:, np.newaxis]
    bounds += _source_errors(artifact, scalers, ends[1])
    bounds = 1.00001 * bounds + 2.0**-120
    return np.where(np.isnan(bounds), np.inf, bounds)


def _norms(artifact: Artifact, parts: Sequence[Part]) -> tuple[FloatArray, FloatArray]:
    """Return E_k and N_k + F_k for all expansions and degrees."""
    header, records = artifact.header, artifact.expansion_numbers()
    theta = 2.0 * header["gamma"] / header["input_scale"] / header["input_scale"]
    quantized, rounded = np.zeros_like(records["norms"]), records["norms"].copy()
    for part in parts:
        if part.scales is None:
            continue
        k = part.degree
        if theta == 0.0:  # gamma is 0 in this case, and so are s and all coefficients
            quantized[:, k] = np.where(part.error_norms > 0.0, np.inf, 0.0)
            continue
        unit = records["output_scale"] * math.sqrt(math.factorial(k)) * theta ** (-0.5 * k) * (1.0 + 1e-9)
        quantized[:, k] = part.error_norms * unit
        rounded[:, k] += part.error_frobenius * unit
    return quantized, rounded


def _source_errors(artifact: Artifact, scalers: Sequence[Affine], high: FloatArray) -> FloatArray:
    """Return value_error plus the input map's rounding error, of shape (n_expansions, n_cells), on all fine cells."""
    decisions, n_cells = artifact.decision_numbers(), len(high) + 1
    own = np.tile(decisions["value_error"], artifact.n_centers)[:, np.newaxis]
    if not scalers:
        return np.broadcast_to(own, (len(own), n_cells)) * 1.0001
    gamma = float(artifact.header["gamma"])
    slope = 1.01 * gaussian_slope(gamma)
    shares = np.ones((artifact.n_centers, n_cells))
    for c, center in enumerate(artifact.centers().astype(np.float64)):
        for first in range(0, len(high), FINE_PER_OCTAVE):  # one bound per octave suffices, because this error is small
            cells = slice(first, min(first + FINE_PER_OCTAVE, len(high)))
            error = map_error(scalers, np.abs(center) + _reach(artifact, float(high[cells][-1])))
            shares[c, cells] = min(slope * error, 1.0) if error < math.inf else 1.0
    moduli = np.outer(np.ones(artifact.n_centers), decisions["sum_moduli"]).ravel()
    moved = np.repeat(shares, len(decisions), axis=0) * moduli[:, np.newaxis]
    return 1.0001 * (own + moved)


def _moved_values(artifact: Artifact, moved: float) -> FloatArray:
    """Bound the change in each expansion's exact function if a row moves by at most `moved` (input_codes.py)."""
    decisions, gamma = artifact.decision_numbers(), float(artifact.header["gamma"])
    by_norm = decisions["total"] * min(math.sqrt(2.0 * gamma) * moved, 1.415)
    by_slope = decisions["sum_moduli"] * min(gaussian_slope(gamma) * moved, 1.0)
    return np.tile(np.minimum(by_norm, by_slope) * 1.0001, artifact.n_centers)


def _reach(artifact: Artifact, s: float) -> float:
    """Return the largest distance from the center of a row with finite bounds, including its distance from a slice."""
    gamma = float(artifact.header["gamma"])
    if gamma == 0.0:
        return math.inf
    off_slice = 2.01 if artifact.n_varying < artifact.n_features else 0.0
    return math.sqrt((s + off_slice) / (2.0 * gamma)) * (1.0 + 1e-9)


def map_error(ops: Sequence[Affine], most: FloatArray) -> float:
    """Bound the distance between computed and exact mapped rows whose absolute values are at most `most`."""
    outputs = [np.asarray(most, np.float64) * (1.0 + 1e-9) + _TINY]  # bounds on the outputs of each op, last op first
    with np.errstate(all="ignore"):
        for op in reversed(ops):
            y = 2.0 * outputs[-1] + _modulus(op.add, 0.0)
            ratio = _modulus(op.divide, 1.0) / _modulus(op.multiply, 1.0)
            before = (y * ratio + _modulus(op.subtract, 0.0)) * (1.0 + 1e-9) + _TINY
            outputs.append(np.where(before < _MOST_ON_THE_WAY, before, _MOST_ON_THE_WAY))
        error = np.zeros(len(most))
        for op, m in zip(ops, outputs[-2::-1], strict=True):
            error = _op_error(op, error, m)
            limited = op.low is not None or op.high is not None
            if limited and not (error <= m).all():
                return math.inf
        total = math.sqrt(float((error * error).sum())) * (1.0 + 1e-9) + len(error) * 2.0**-500
    return total if math.isfinite(total) else math.inf


def _op_error(op: Affine, error: FloatArray, most: FloatArray) -> FloatArray:
    """Return the error that the core's run_affine() computes for the largest possible outputs, ignoring limits."""
    n_steps = sum(part is not None for part in (op.subtract, op.multiply, op.divide))
    divide = _modulus(op.divide, 1.0)
    gain = _modulus(op.multiply, 1.0) / divide * (1.0 + 2.0**-50) + _TINY
    y = 2.0 * most + _modulus(op.add, 0.0)
    grown: Any = error * gain + n_steps * UNIT64 * y + 2.0 * _TINY / divide + 2.0 * _TINY
    if op.relative_error is not None:
        grown = grown + op.relative_error * (y + grown)
    if op.add is not None:
        grown = grown + UNIT64 * 2.0 * most
    return np.asarray(grown * (1.0 + 1e-9))


def _modulus(values: FloatArray | None, otherwise: float) -> FloatArray:
    return np.abs(np.asarray(otherwise if values is None else values, np.float64))

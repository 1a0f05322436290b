"""Artifacts with sums of terms other than kernels at support vectors, such as cosines."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from approxsvm.artifact import writer
from approxsvm.artifact.arrays import pack
from approxsvm.artifact.views import Artifact
from approxsvm.errors import UnsupportedModelError
from approxsvm.ir.compensated import FloatArray, norms_above
from approxsvm.ir.plan import Plan
from approxsvm.ir.schema import DECISION_NUMBERS, MAX_PHASE
from approxsvm.ir.single_model import TermsModel


@dataclass(frozen=True, eq=False)
class Terms:
    """Sums sum_i coef_ki function(vectors_i . z + shifts_i)."""

    # "cos"; callers may assume that the absolute values of the function, its slope and its curvature are at most 1.
    function: str
    coef: FloatArray  # shape (n_decisions, n_terms)
    shifts: FloatArray  # shape (n_terms,)
    vectors: FloatArray  # shape (n_terms, n_features)
    max_shift: float  # maximum absolute value of a shift in the format


def build_terms(
    model: TermsModel,
    *,
    tolerance: float | None = None,  # guaranteed maximum error of values; rows with larger errors are rejected
    plan: Plan | None = None,
) -> Artifact:
    """Lay out a linear model on random Fourier features in "exact" mode.

    Raises UnsupportedModelError if the coefficients, frequencies or labels exceed the format's limits.
    """
    frame = writer.Frame(np.zeros(model.n_features, np.float32), "origin", 0.0, 0.0)
    promise = np.inf if tolerance is None else float(tolerance)
    header = writer.start_header(model, "exact", frame, promise, bool(np.isfinite(promise)))
    decisions = np.zeros(model.n_decisions, DECISION_NUMBERS)
    decisions["intercept"], decisions["value_error"] = model.intercept, model.value_error
    decisions["sum_moduli"], decisions["total"] = model.all_moduli, model.all_slopes
    if not model.slope < math.inf:
        raise UnsupportedModelError(f"coefficients times frequencies of this {model.source} exceed float64")
    sections = {
        "decisions": writer.pack_decisions(decisions),
        "cosines": pack("cosines", coef=model.coef, phases=model.phases, frequencies=model.frequencies),
        "exact_check_rows": _check_rows(model, header),
    }
    sections |= writer.plan_sections(plan)
    return writer.assemble(model, header, sections)


def terms_of(artifact: Artifact) -> Terms | None:
    """Return an artifact's terms; None if it has support vectors or expansions."""
    if artifact.kernel != "cosine":
        return None
    (coef,), (phases,), (frequencies,) = artifact.arrays("cosines").values()
    n = artifact.n_terms
    return Terms("cos", coef.reshape(-1, n), phases, frequencies.reshape(n, -1), MAX_PHASE)


def _check_rows(model: TermsModel, header: dict[str, Any]) -> bytes:
    """Compute check rows around the origin as `_exact_check_rows` does; the arguments of the cosines are about 1."""
    largest = float(norms_above(model.frequencies).max())
    amplitude = min(writer.power_of_two_above(1.0 / max(largest, 1.0 / writer.MOST_AMPLITUDE)), writer.MOST_AMPLITUDE)
    origin = np.zeros(model.n_features, np.float32)
    result = []
    for k in range(writer.N_CHECK_ROWS):
        row = writer.check_row(header, origin, amplitude, k).astype(np.float64)[np.newaxis]
        value = model.values(row)[:, [k * model.n_decisions // writer.N_CHECK_ROWS]]
        result.append((amplitude, float(value[0, 0]), float(model.rounding(row, value)[0, 0])))
    if not np.isfinite(result).all():
        raise UnsupportedModelError(f"the values of this {model.source} exceed the range of float64")
    return np.array(result, "<f8").tobytes()

"""Artifacts with inner-product kernels, which store coef0 and, for polynomial kernels, quadratic forms."""

import math
from typing import Any

import numpy as np

from approxsvm.artifact import writer
from approxsvm.artifact.arrays import pack
from approxsvm.artifact.views import Artifact
from approxsvm.errors import UnsupportedModelError
from approxsvm.expansion.monomials import storage_order
from approxsvm.expansion.polynomial_form import PolynomialForm
from approxsvm.ir.kernel_model import KernelModel
from approxsvm.ir.plan import Plan
from approxsvm.ir.schema import Mode
from approxsvm.reference.definition import ProductDefinition


def build_polynomial(
    model: KernelModel,
    mode: Mode,  # "approximate": only the form; "exact": only the support vectors; "certified": both
    form: PolynomialForm | None = None,  # None in "exact" mode
    *,
    tolerance: float | None = None,  # guaranteed maximum error of values; rows with larger errors are rejected
    plan: Plan | None = None,
) -> Artifact:
    """Lay out a model with a polynomial or sigmoid kernel, as `build` does for a Gaussian kernel.

    Raises UnsupportedModelError if the coefficients, the kernel values at the origin or the labels exceed the format's
    limits.
    """
    assert (form is None) == (mode == "exact")
    frame = writer.Frame.of(model, "origin")
    promise = np.inf if tolerance is None else float(tolerance)
    header = writer.start_header(model, mode, frame, promise, bool(np.isfinite(promise)))
    sections = {
        "decisions": writer.pack_decisions(writer.decisions_of(model)),
        "polynomial": pack("polynomial", coef0=model.coef0, coef_error=model.coef_error)
        + _pack_form(form, model.n_features),
        "exact_check_rows": _polynomial_check_rows(model, header),
    }
    if mode != "approximate":
        sections |= writer.support_vector_sections(model)
    sections |= writer.plan_sections(plan)
    return writer.assemble(model, header, sections)


def _pack_form(form: PolynomialForm | None, n_features: int) -> bytes:
    """Concatenate the forms of the decision functions."""
    if form is None:
        return b""
    numbers = [form.constants, form.constant_errors, form.linear_errors, form.quadratic_errors]
    parts = [np.column_stack(numbers), form.linear]
    if form.triangle is not None:
        parts.append(form.triangle[:, storage_order(n_features, 2)])
    return np.concatenate(parts, axis=1).astype("<f8").tobytes()


def _polynomial_check_rows(model: KernelModel, header: dict[str, Any]) -> bytes:
    """Compute check rows around the origin as `_exact_check_rows` does; norms are similar to the vectors' norms."""
    definition = ProductDefinition(model)
    typical = float(np.median(definition.vector_norms)) if model.n_sv else 0.0
    origin = np.zeros(model.n_features, np.float32)
    amplitude = writer.power_of_two_above(typical / math.sqrt(model.n_features)) if np.isfinite(typical) else 1.0
    amplitude = min(max(amplitude, 1.0 / writer.MOST_AMPLITUDE), writer.MOST_AMPLITUDE)
    result: list[tuple[float, float, float]] = []
    while len(result) < writer.N_CHECK_ROWS:
        k = len(result)
        decision = [k * model.n_decisions // writer.N_CHECK_ROWS]
        row = writer.check_row(header, origin, amplitude, k).astype(np.float64)[np.newaxis]
        value = definition.values(row, decision)
        tolerance = float(definition.rounding(row, value, decision)[0, 0])
        if tolerance < math.inf:
            result.append((amplitude, float(value[0, 0]), tolerance))
        elif amplitude > 0.0:  # try smaller rows, and finally the origin
            amplitude = amplitude * 2.0**-40 if amplitude > 2.0**-200 else 0.0
        else:
            raise UnsupportedModelError(
                "the kernel of this model, or its bound, exceeds the range of float64 at the origin: coef0 is "
                f"{model.coef0:.3g}"
            )
    return np.array(result, "<f8").tobytes()

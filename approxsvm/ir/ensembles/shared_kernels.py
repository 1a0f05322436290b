"""Merging of models with the same kernel and input map into one model that evaluates each kernel value once."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from approxsvm.ir.input_map import InputMap
from approxsvm.ir.kernel_model import FloatArray, KernelModel
from approxsvm.ir.ops import Affine
from approxsvm.ir.ops.affine import AFFINE_PARTS


def of_functions(machines: Sequence[KernelModel]) -> KernelModel:
    """Merge similar models into one regressor with one value per model."""
    rows, where = shared_rows(machines, sums=False)
    dual_coef = np.zeros((len(machines), rows.shape[0]))
    for row, at, machine in zip(dual_coef, where, machines, strict=True):
        row[at] = machine.dual_coef[0]
    return replace(
        machines[0],
        support_vectors=rows,
        dual_coef=dual_coef,
        intercept=np.concatenate([machine.intercept for machine in machines]),
        value_error=np.concatenate([machine.value_error for machine in machines]),
        coef_error=max(machine.coef_error for machine in machines),
    )


def difference(machines: Sequence[KernelModel]) -> str:
    """Return the difference that prevents merging, for a message, or an empty string if the models can be merged."""
    first = machines[0]
    for machine in machines[1:]:
        for key in ("kernel", "degree", "gamma", "coef0"):
            value, other = getattr(first, key), getattr(machine, key)
            if value != other:
                number = "; a common number would make them one model" if key == "gamma" else ""
                return f"whose members have the {key} {value} and {other}{number}"
        if not _same_map(first.input_map, machine.input_map) or first.n_features != machine.n_features:
            return "whose members scale or select columns differently; put the scaler before the ensemble"
    return ""


def _same_map(one: InputMap | None, other: InputMap | None) -> bool:
    if one is None or other is None:
        return one is other
    return (
        one.n_raw_features == other.n_raw_features
        and np.array_equal(one.columns, other.columns)
        and one.checked == other.checked
        and len(one.ops) == len(other.ops)
        and all(map(_same_op, one.ops, other.ops))
    )


def _same_op(one: Any, other: Any) -> bool:
    if not (isinstance(one, Affine) and isinstance(other, Affine) and one.first == other.first):
        return False  # ops other than Affine are treated as different
    parts = [(getattr(one, name), getattr(other, name)) for name in AFFINE_PARTS]
    return all(np.array_equal(a, b) if a is not None and b is not None else a is b for a, b in parts)


def shared_rows(machines: Sequence[KernelModel], *, sums: bool = True) -> tuple[Any, list[Any]]:
    """Return the distinct support vectors of all models, and the indices of each model's support vectors in them.

    Sparse rows are not merged, nor are duplicates within one model. Rows of non-Gaussian kernels are not merged if
    coefficients will be summed: for polynomial kernels, `coef_error` is relative to the sum and is multiplied by the
    size of the kernel values.
    """
    stacked = [machine.support_vectors for machine in machines]
    ends = np.cumsum([rows.shape[0] for rows in stacked])
    separate = [np.arange(end - rows.shape[0], end) for end, rows in zip(ends, stacked, strict=True)]
    if not all(isinstance(rows, np.ndarray) for rows in stacked):
        from scipy.sparse import csr_array, vstack

        return csr_array(vstack([csr_array(rows) for rows in stacked])), separate
    dense: FloatArray = np.concatenate(stacked)
    if sums and machines[0].kernel != "gaussian":
        return dense, separate
    positions: dict[tuple[bytes, int], int] = {}
    kept: list[int] = []
    where = []
    for positions_of_machine in separate:
        seen: dict[bytes, int] = {}
        at = []
        for k in positions_of_machine.tolist():
            row = (dense[k] + 0.0).tobytes()  # makes -0.0 equal to 0.0
            seen[row] = seen.get(row, -1) + 1
            if (row, seen[row]) not in positions:
                positions[row, seen[row]] = len(kept)
                kept.append(k)
            at.append(positions[row, seen[row]])
        where.append(np.array(at, np.intp))
    return dense[kept], where

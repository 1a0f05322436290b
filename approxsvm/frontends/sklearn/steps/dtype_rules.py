"""Rules for the dtypes in which steps receive, compute and return rows; dtypes.py applies them to a source."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from approxsvm.frontends.sklearn.host_arrays import host_array

DType = np.dtype[Any]
F64: Final = np.dtype(np.float64)
F32: Final = np.dtype(np.float32)
OBJECT: Final = np.dtype(object)
FLOATS: Final = (np.float64, np.float32, np.float16)
WIDE: Final = (np.float64, np.float32)


class Behaviour(NamedTuple):
    """Behaviour of a step for rows of a given dtype: the dtype of the returned rows, and the dtype of computations."""

    gives: DType
    computes: DType = F64


Rule = Callable[[Any, DType], Behaviour]


def checked_dtype(dtype: DType, *kept: Any) -> DType:
    """Return the dtype after scikit-learn's checks: float64 for objects, or if a nonempty `kept` lacks the dtype."""
    if dtype == OBJECT or (kept and dtype not in kept):
        return F64
    return dtype


def in_place(step: Any, dtype: DType) -> Behaviour:
    """Return the behaviour of a step that computes in place in the rows' floating-point dtype."""
    taken = checked_dtype(dtype, *FLOATS)
    return Behaviour(taken, taken)


def in_common_dtype(*attributes: str, kept: Sequence[Any] = ()) -> Rule:
    """Make a rule for sums and products of rows and fitted arrays, computed in their common dtype."""

    def rule(step: Any, dtype: DType) -> Behaviour:
        arrays = [getattr(step, name) for name in attributes if getattr(step, name, None) is not None]
        common = np.result_type(checked_dtype(dtype, *kept), *(np.dtype(host_array(array).dtype) for array in arrays))
        return Behaviour(common, common)

    return rule


def centered_in_place(mean: Callable[[Any], bool], factor: str, *, kept: Sequence[Any]) -> Rule:
    """Make a rule for steps that center in the rows' dtype and then multiply in a common dtype (`in_common_dtype`)."""

    def rule(step: Any, dtype: DType) -> Behaviour:
        taken = checked_dtype(dtype, *kept)
        after = in_common_dtype(factor)(step, taken)
        return Behaviour(after.gives, taken if mean(step) else after.computes)

    return rule

"""Record of a class of steps: how its instances become part of an input map, and their row dtypes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from approxsvm.frontends.sklearn.steps.dtype_rules import Rule
from approxsvm.ir.input_map import InputMap

Fold = Callable[[InputMap, Any], InputMap]
# Descriptions of rejected variants that are shared by several records.
OVERWRITES: Final = "copy=False if others take the same rows"
OTHER_DTYPE: Final = "another dtype than float64 if later steps compute"


def gives_dense(step: Any, is_sparse: bool) -> bool:
    """Return False, because the step always returns dense rows."""
    return False


def keeps_sparse(step: Any, is_sparse: bool) -> bool:
    """Return `is_sparse`, because the step returns sparse rows exactly if its input is sparse."""
    return is_sparse


def gives_sparse_as_asked(step: Any, is_sparse: bool) -> bool:
    """Return the parameter that requests sparse rows; its name depends on the scikit-learn version."""
    return bool(getattr(step, "sparse_output", getattr(step, "sparse", False)))


def _never(step: Any) -> bool:
    return False


def _always(step: Any) -> bool:
    return True


def _nothing(step: Any) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True)
class Step:
    """Classes of fitted transformers that are folded in the same way.

    `relies` lists the parameters and fitted attributes on which outputs depend; `copy` among them means that copy=False
    overwrites the rows. `refused` documents rejected variants.
    """

    names: str
    module: str  # the classes' public module in the library
    relies: str
    fold: Fold | None  # function that appends an object of these classes to a map, using the source's own operations
    rule: Rule | None  # dtypes in which a step receives, computes and returns rows (dtype_rules.py)
    refused: str = ""
    # Attributes that hold objects contributing to the output, each with the object's class.
    helpers: tuple[tuple[str, str], ...] = ()
    checks: Callable[[Any], bool] = _always  # returns True if the step rejects infinity and, unless takes_nan, NaN
    takes_nan: bool = False  # True if the step passes NaN on or replaces it
    gives_sparse: Callable[[Any, bool], bool] = gives_dense  # returns True if the step returns sparse rows
    leaves_unsorted: Callable[[Any], bool] = _never  # returns True if returned sparse rows may be unsorted
    sorts: bool = False  # True if returned sparse rows are sorted even if the input is not
    # Function that returns the kinds of sparse rows for which results differ from those for dense rows
    differs_if_sparse: Callable[[Any], tuple[str, ...]] = _nothing


NO_STEP: Final = Step("", "", "", None, None)  # for classes that are not steps, or that consist of other steps

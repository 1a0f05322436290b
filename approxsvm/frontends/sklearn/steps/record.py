"""Record of a class of steps: how objects of the class become part of an input map, and dtypes of their rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from approxsvm.frontends.sklearn.steps.dtype_rules import Rule
from approxsvm.ir.input_map import InputMap

Fold = Callable[[InputMap, Any], InputMap]
# Descriptions of rejected variants that several records share.
OVERWRITES: Final = "copy=False if others take the same rows"
OTHER_DTYPE: Final = "another dtype than float64 if later steps compute"


def gives_dense(step: Any, is_sparse: bool) -> bool:
    """Return False, because the step always returns dense rows."""
    return False


def keeps_sparse(step: Any, is_sparse: bool) -> bool:
    """Return whether rows are sparse, because the step returns sparse rows exactly for sparse rows."""
    return is_sparse


def gives_sparse_as_asked(step: Any, is_sparse: bool) -> bool:
    """Return the parameter that requests sparse rows, whose name depends on the scikit-learn version."""
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

    `relies` lists the parameters and fitted attributes on which outputs depend; `copy` among them says that copy=False
    overwrites the rows. `refused` documents rejected variants.
    """

    names: str
    module: str  # public module of the classes in the library
    relies: str
    fold: Fold | None  # function that appends an object of these classes to a map, in the source's own operations
    rule: Rule | None  # dtypes in which a step takes, computes and returns rows (dtype_rules.py)
    refused: str = ""
    # Attributes whose objects compute part of the output, each with the class of the object.
    helpers: tuple[tuple[str, str], ...] = ()
    checks: Callable[[Any], bool] = _always  # whether the step rejects infinity and, without takes_nan, NaN
    takes_nan: bool = False  # whether the step passes NaN on or replaces NaN
    gives_sparse: Callable[[Any, bool], bool] = gives_dense  # whether the step returns sparse rows
    leaves_unsorted: Callable[[Any], bool] = _never  # whether returned sparse rows may be unsorted
    sorts: bool = False  # whether sparse rows that the step returns are sorted even if the input is unsorted
    # Function that returns the kinds of sparse rows for which the results differ from the results for dense rows
    differs_if_sparse: Callable[[Any], tuple[str, ...]] = _nothing


NO_STEP: Final = Step("", "", "", None, None)  # for classes that are no steps, or that consist of other steps

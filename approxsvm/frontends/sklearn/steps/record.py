"""The record of a class of steps: how its objects become part of an input map, and in which dtypes they compute."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from approxsvm.frontends.sklearn.steps.dtype_rules import Rule
from approxsvm.ir.input_map import InputMap

Fold = Callable[[InputMap, Any], InputMap]
# Words of several records for what they reject.
OVERWRITES: Final = "copy=False if others take the same rows"
OTHER_DTYPE: Final = "another dtype than float64 if later steps compute"


def gives_dense(step: Any, is_sparse: bool) -> bool:
    """Return dense rows, always."""
    return False


def keeps_sparse(step: Any, is_sparse: bool) -> bool:
    """Return sparse rows for sparse rows."""
    return is_sparse


def gives_sparse_as_asked(step: Any, is_sparse: bool) -> bool:
    """Return sparse rows if the step's parameter says so, whose name depends on scikit-learn's version."""
    return bool(getattr(step, "sparse_output", getattr(step, "sparse", False)))


def _never(step: Any) -> bool:
    return False


def _always(step: Any) -> bool:
    return True


def _nothing(step: Any) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True)
class Step:
    """Classes of fitted transformers that are folded alike.

    `relies` are the parameters and fitted attributes that their answers depend on; `refused` is documentation.
    """

    names: str
    module: str  # the public module of the library
    relies: str
    fold: Fold | None  # appends an object of these classes to a map
    rule: Rule | None  # dtypes that it takes, computes in and returns
    refused: str = ""
    # Attributes with objects that compute part of the answers, and the class of these objects.
    helpers: tuple[tuple[str, str], ...] = ()
    checks: Callable[[Any], bool] = _always  # whether it checks its rows, and
    takes_nan: bool = False  # passes NaN on or replaces it
    gives_sparse: Callable[[Any, bool], bool] = gives_dense  # given dense or sparse rows
    leaves_unsorted: Callable[[Any], bool] = _never  # whether entries of sparse rows may be out of order
    sorts: bool = False  # whether entries of its sparse rows are in order even if the given ones are not
    differs_if_sparse: Callable[[Any], tuple[str, ...]] = _nothing  # kinds of sparse rows that it treats differently


NO_STEP: Final = Step("", "", "", None, None)  # of classes that are no steps, or unions of other steps

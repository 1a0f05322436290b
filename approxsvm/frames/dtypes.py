"""Row dtypes that would change the source's predictions, and a check for them used by every function that takes rows.

scikit-learn computes in the dtype of the rows it receives, and the compiled model reproduces the source for float64
rows. For rows of another dtype, predictions are the same, or are within a bound that includes float32 operations, or
the rows are rejected.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.errors import ArtifactError, InputError
from approxsvm.system.error_state import in_own_error_state

FLOAT32: Final = "float32"
EXTENDED: Final = "extended"
# Kinds of rows: float32; float16; 8- and 16-bit integers and bool; wider integers; longdouble; sparse rows of any
# dtype; sparse rows of any dtype except float32; bool and unsigned integers, which some steps reject although they
# accept other integers. All other rows are treated like dense float64 rows.
SPARSE: Final = "sparse"
WIDE_SPARSE: Final = "wide_sparse"
# Kinds of values in object columns. NO_NUMBER: values other than numbers and NaN, such as None, if the source does not
# treat None as NaN. NOT_NONE: values other than numbers and None, if None is the column's missing value.
NO_NUMBER: Final = "no_number"
NOT_NONE: Final = "not_none"
_UNSIGNED: Final = ("bool", "small_unsigned", "unsigned")
KINDS: Final = (FLOAT32, "float16", "small", "integer", EXTENDED, SPARSE, WIDE_SPARSE, *_UNSIGNED, NO_NUMBER, NOT_NONE)
# Names of dtypes in Arrow, and lower-case names in Polars, that differ from NumPy's names.
_NAMES: Final = {"float": "float32", "double": "float64", "halffloat": "float16", "boolean": "bool"}
_OBJECT: Final = np.dtype(object)
_REMEDY: Final = "X.astype(np.float64)"

Columns = tuple[int, ...] | None  # indices of raw columns; None for all of them


@dataclass(frozen=True)
class Effect:
    """Description of the first step that treats a kind of row differently, and the raw columns that such steps read."""

    step: str
    columns: Columns = None


@dataclass(frozen=True)
class RowDtypes:
    """Effects of row dtypes other than float64 on the source.

    The mapping `refused` contains, for each rejected kind of row, the effect that causes the rejection. In the
    `rounded` columns of float32 rows, the source rounds to float32, and the bounds include this rounding.
    """

    refused: Mapping[str, Effect] = field(default_factory=dict)
    rounded: Effect | None = None
    # True if the source reads each data-frame column in its own dtype, instead of a dtype common to all columns.
    by_column: bool = False

    def __bool__(self) -> bool:
        """Return whether any dtype has an effect."""
        return bool(self.refused or self.rounded)

    @classmethod
    def read(cls, content: bytes) -> "RowDtypes":
        """Read an artifact's section "dtypes" (models/FORMAT.md); raise ArtifactError if it is not valid."""
        try:
            section = json.loads(content)
            refused = {kind: _effect(effect) for kind, effect in section["refused"].items()}
            rounded = None if section["rounded"] is None else _effect(section["rounded"])
            if set(section) != {"refused", "rounded", "by_column"} or not set(refused) <= set(KINDS):
                raise ValueError(f"it has {sorted(section)} and rejects {sorted(refused)}")
            return cls(refused, rounded, bool(section["by_column"]))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise ArtifactError(f"section dtypes does not follow models/FORMAT.md: {error}") from None

    def written(self) -> bytes:
        """Return the contents of an artifact's section "dtypes"."""

        def plain(effect: Effect | None) -> Any:
            return None if effect is None else {"step": effect.step, "columns": effect.columns}

        refused = {kind: plain(effect) for kind, effect in self.refused.items()}
        content = {"refused": refused, "rounded": plain(self.rounded), "by_column": self.by_column}
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()

    def columns_of(self, kind: str) -> tuple[int, ...]:
        """Return the raw columns in which values of this kind are rejected."""
        return (self.refused[kind].columns or ()) if kind in self.refused else ()

    def check_dtype(self, dtype: Any, remedy: str = _REMEDY) -> None:
        """Raise InputError if the source's predictions for an array of this dtype differ from those for float64."""
        for kind in _kinds_of(dtype):
            if kind in self.refused:
                raise InputError(_refusal("rows are", dtype, self.refused[kind], remedy))

    def _check_sparse(self, dtype: np.dtype[Any]) -> None:
        kinds = (SPARSE,) if dtype == np.float32 else (SPARSE, WIDE_SPARSE)
        effect = next((self.refused[kind] for kind in kinds if kind in self.refused), None)
        if effect is not None:
            raise InputError(
                f"rows are sparse, and {effect.step} treats them differently from dense rows; pass X.toarray()"
            )

    def check_columns(
        self, dtypes: Sequence[Any], positions: Iterable[int] | None, names: Sequence[Any], remedy: str = ""
    ) -> bool:
        """Raise InputError if the source's predictions for columns of these dtypes differ from those for float64.

        `positions` contains the columns' indices among the model's columns, or is None if they are unknown. `remedy`,
        given for tables without an astype method, replaces the usual advice. Returns whether the source may compute in
        float32, so that the core needs float32 rows.
        """
        if not self.by_column:
            common = np.result_type(*dtypes) if dtypes and _OBJECT not in dtypes else _OBJECT
            self.check_dtype(common, remedy or _REMEDY)
            return self.rounded is not None and FLOAT32 in _kinds_of(common)
        rounds = False
        # The common dtype of float16 and 16-bit integers is float32.
        widens = any(np.dtype(dtype).kind in "iu" and np.dtype(dtype).itemsize == 2 for dtype in dtypes)
        where = [None] * len(dtypes) if positions is None else list(positions)
        for dtype, position, name in zip(dtypes, where, names, strict=True):
            kinds = _kinds_of(dtype)
            if widens and kinds == ("float16",):
                kinds = ("float16", FLOAT32)
            for effect in (self.refused[kind] for kind in kinds if kind in self.refused):
                if _is_in(position, effect.columns):
                    cast = remedy or f"X.astype({{{name!r}: np.float64}})"
                    raise InputError(_refusal(f"column {name!r} is", dtype, effect, cast))
            rounds |= FLOAT32 in kinds and self.rounded is not None and _is_in(position, self.rounded.columns)
        return rounds

    def check(self, X: Any, names: Sequence[str] | None) -> bool:
        """Check rows in any container for a model with these column names; other objects are not checked.

        Returns whether the source may compute in float32.
        """
        if not self:
            return False
        dtypes = frame_dtypes(X)
        if dtypes is None:
            dtype = _dtype_of(X)
            self.check_dtype(dtype)
            if hasattr(X, "tocsr"):
                self._check_sparse(dtype)
            return self.rounded is not None and FLOAT32 in _kinds_of(dtype)
        labels = list(getattr(X, "column_names", None) or X.columns)
        positions = list(range(len(labels)))
        places = {name: k for k, name in enumerate(names or ())}
        known = [k for k, label in enumerate(labels) if str(label) in places]
        if known:
            labels, dtypes = [labels[k] for k in known], [dtypes[k] for k in known]
            positions = [places[str(label)] for label in labels]
        return self.check_columns(dtypes, positions, labels)


SAME: Final = RowDtypes()


def as_checked(rows: Any, narrow: bool, used: npt.NDArray[np.intp]) -> Any:
    """Convert rows that passed `check` for use by the core: to float32 if the source computes in float32.

    Raises InputError if float32 cannot represent a value.
    """
    if hasattr(rows, "tocsr") or rows.dtype.kind not in "fiub" or (narrow and rows.dtype == np.float32):
        return rows
    if not narrow:
        check_extended(rows)
        return rows.astype(np.float64, copy=False)
    with np.errstate(over="ignore", under="ignore"):
        narrowed = rows.astype(np.float32)
    changed = (narrowed != rows) & ~np.isnan(rows)
    unused = np.ones(rows.shape[1], np.bool_)
    unused[used] = False
    changed[:, unused] = False
    if changed.any():
        row, column = map(int, np.argwhere(changed)[0])
        raise InputError(
            f"row {row}: some columns are float32, in which the source computes, and column {column} holds "
            f"{rows[row, column]}, which float32 cannot hold; pass the former as float64: X.astype(np.float64)"
        )
    return narrowed


@in_own_error_state
def check_extended(rows: Any) -> None:
    """Raise InputError for longdouble values that float64 would round."""
    stored = getattr(rows, "data", rows) if hasattr(rows, "tocsr") else rows
    if stored.dtype.kind == "f" and stored.dtype.itemsize > 8:
        rounded = np.isfinite(stored) & (stored.astype(np.float64) != stored)
        if rounded.any():
            raise InputError(f"rows are {stored.dtype} with numbers that float64 rounds; pass X.astype(np.float64)")


def frame_dtypes(X: Any) -> list[np.dtype[Any]] | None:
    """Return the NumPy dtypes of the columns of a data frame or an Arrow table; None for anything else."""
    if hasattr(X, "iloc") and getattr(X, "ndim", 0) == 2:
        return [numpy_dtype(dtype) for dtype in X.dtypes]
    if hasattr(X, "column_names"):
        return [numpy_dtype(kind) for kind in X.schema.types]
    if hasattr(X, "columns") and hasattr(X, "schema"):  # Polars
        return [numpy_dtype(dtype) for dtype in X.dtypes]
    return None


def numpy_dtype(dtype: Any) -> np.dtype[Any]:
    """Convert a dtype of NumPy, pandas, Polars or Arrow to a NumPy dtype; object if it is not numeric."""
    if isinstance(dtype, np.dtype):
        return dtype
    for inside in ("numpy_dtype", "subtype", "value_type"):
        if hasattr(dtype, inside) and getattr(dtype, inside) is not dtype:
            return numpy_dtype(getattr(dtype, inside))
    categories = getattr(dtype, "categories", None)
    if categories is not None and hasattr(categories, "dtype"):
        return numpy_dtype(categories.dtype)
    name = str(dtype).lower()
    try:
        known = np.dtype(_NAMES.get(name, name))
    except (TypeError, ValueError, SyntaxError):
        return _OBJECT
    return known if known.kind in "fiub" else _OBJECT


def _kinds_of(dtype: Any) -> tuple[str, ...]:
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return {2: ("float16",), 4: (FLOAT32,), 8: ()}.get(dtype.itemsize, (EXTENDED,))
    if dtype.kind == "b":
        return "small", "bool"
    small = dtype.itemsize <= 2
    signed = ("small" if small else "integer",)
    return {"i": signed, "u": (*signed, "small_unsigned" if small else "unsigned")}.get(dtype.kind, ())


def _dtype_of(X: Any) -> np.dtype[Any]:
    """Return the dtype that scikit-learn uses for rows; object for documents and for anything that is not an array."""
    dtype = getattr(X, "dtype", None)
    if isinstance(dtype, np.dtype):
        return dtype
    first = X[0] if isinstance(X, (list, tuple)) and len(X) else None
    has_texts = _is_text(first) or (isinstance(first, (list, tuple)) and any(map(_is_text, first)))
    if (first is None or has_texts) and not (dtype is not None and hasattr(X, "__array__")):  # a tensor
        return _OBJECT
    try:
        return np.asarray(X).dtype
    except (TypeError, ValueError, RuntimeError):
        return _OBJECT


def _is_text(value: Any) -> bool:
    return isinstance(value, (str, bytes))


def _is_in(position: int | None, columns: Columns) -> bool:
    return position is None or columns is None or position in columns


def _refusal(what: str, dtype: Any, effect: Effect, remedy: str) -> str:
    return f"{what} {np.dtype(dtype).name}, which {effect.step} computes in or stores its results in; pass {remedy}"


def _effect(record: Any) -> Effect:
    columns = record["columns"]
    if set(record) != {"step", "columns"} or not isinstance(record["step"], str):
        raise ValueError(f"an effect has {sorted(record)}")
    return Effect(record["step"], None if columns is None else tuple(map(int, columns)))

"""Input maps from raw rows to kernel rows: a selection of columns, followed by the source's steps.

The steps are defined in ir/ops. They are not merged with the model: scaling and lookup steps perform the same float64
operations, in the same order, as scikit-learn's transformers on dense float64 rows. Therefore a mapped row is
bit-identical to the source's, up to the first op of another kind. Only the core maps rows
(cpp/include/approxsvm/artifact/ops), both here and in predictors.

Two functions bound rounding errors. `mapped_with_errors` bounds the distance of each mapped row from its exact value:
the same function with the same parameters, evaluated over the real numbers. There, lookups receive the source's float64
values if all earlier steps reproduce the source bit for bit. `source_rounding` bounds the distance between the source's
float64 result and that exact value.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from approxsvm import _native
from approxsvm.errors import InputError, ModelFormatError, UnsupportedModelError
from approxsvm.frames.text_columns import NONE, TextColumn
from approxsvm.ir.compensated import FloatArray
from approxsvm.ir.ops import OPS, Affine, Lookup, Monomials, Op
from approxsvm.ir.ops.lookup import SAME, TextChange
from approxsvm.ir.ops.op import NO_NAN, IntArray, packed_map
from approxsvm.ir.schema import DOMAINS, names_of

# Maximum number of elements in a chunk of rows, which is mapped by one call to the core.
_PIECE_NUMBERS: Final = 1 << 20


@dataclass(frozen=True, eq=False)
class InputMap:
    """Map of one raw row, built with `identity` or `selection` and the ``then`` methods."""

    n_raw_features: int  # number of columns in raw rows
    columns: IntArray  # shape (n_selected,); index of each selected feature's raw column
    ops: tuple[Op, ...] = ()
    feature_names: tuple[str, ...] | None = None  # names of the raw columns
    by_column: bool = False  # True if the source checks raw columns separately (raw_columns.py)
    texts: Mapping[int, TextColumn] = field(default_factory=dict)  # raw string columns; rows contain their codes
    # Raw columns that a step of the source validates, even if they are unused: the step rejects infinity in the column,
    # and also NaN unless the column's value here is True. A finished map keeps only the checks that its features do not
    # imply (`with_few_checks`).
    checked: Mapping[int, bool] = field(default_factory=dict)
    # Only while a pipeline is read: True if the source's rows are sparse at this step (`is_sparse` for dense raw rows,
    # `stays_sparse` for sparse ones).
    is_sparse: bool = False
    stays_sparse: bool = True
    is_unsorted: bool = False  # only while a pipeline is read: True if sparse rows may be unsorted

    def __post_init__(self) -> None:
        n = len(self.columns)
        if n and not (int(self.columns.min()) >= 0 and int(self.columns.max()) < self.n_raw_features):
            worst = int(self.columns.min()) if int(self.columns.min()) < 0 else int(self.columns.max())
            raise ModelFormatError(f"the input map selects column {worst} of {self.n_raw_features}")
        for op in self.ops:
            if not 0 <= op.first <= op.end <= n:
                raise ModelFormatError(f"a step of the input map takes features {op.first} to {op.end - 1} of {n}")
            n += op.n_outputs - op.n_features
        if self.feature_names is not None and len(self.feature_names) != self.n_raw_features:
            raise ModelFormatError(f"{len(self.feature_names)} feature names for {self.n_raw_features} raw features")

    @classmethod
    def identity(cls, n_features: int, feature_names: tuple[str, ...] | None = None) -> "InputMap":
        """Return the map that leaves rows unchanged."""
        return cls(n_features, np.arange(n_features), (), feature_names)

    @classmethod
    def selection(
        cls, n_raw_features: int, columns: npt.ArrayLike, feature_names: tuple[str, ...] | None = None
    ) -> "InputMap":
        """Return the map that selects raw columns in the given order."""
        return cls(n_raw_features, np.asarray(columns, dtype=np.intp), (), feature_names)

    @classmethod
    def concatenate(cls, maps: "Sequence[InputMap]") -> "InputMap":
        """Concatenate the features of all `maps`, which accept the same raw rows."""
        first = maps[0]
        if any(m.n_raw_features != first.n_raw_features for m in maps):
            raise ModelFormatError(f"the maps take {[m.n_raw_features for m in maps]} raw features")
        maps = same_texts(maps)
        columns, checked = np.concatenate([m.columns for m in maps]), _all_checks(m.checked for m in maps)
        is_unsorted = any(m.is_unsorted for m in maps)
        joined = replace(maps[0], columns=columns, ops=(), checked=checked, is_unsorted=is_unsorted)
        waiting = [list(m.ops) for m in maps]
        widths = [len(m.columns) for m in maps]
        while any(waiting):
            # In each step, the next ops of one kind in all maps are combined; kinds are processed in the order of OPS.
            kind = next(k for k in OPS if any(ops and isinstance(ops[0], k) for ops in waiting))
            starts, now = np.cumsum([0, *widths]).tolist(), []
            for k, ops in enumerate(waiting):
                if ops and isinstance(ops[0], kind):
                    op = ops.pop(0)
                    now.append(replace(op, first=op.first + starts[k]))
                    widths[k] += op.n_outputs - op.n_features
            for op in kind.together(now):
                joined = joined.then_part(op)
        return joined

    @property
    def n_features(self) -> int:
        """Number of columns in mapped rows."""
        return len(self.columns) + sum(op.n_outputs - op.n_features for op in self.ops)

    @property
    def multiplies(self) -> bool:
        """True if the map multiplies features by each other."""
        return any(isinstance(op, Monomials) for op in self.ops)

    @property
    def is_identity(self) -> bool:
        """True if mapped rows equal raw rows, and every column is validated."""
        return not (self.ops or self.by_column) and np.array_equal(self.columns, np.arange(self.n_raw_features))

    def then_op(self, op: Op) -> "InputMap":
        """Append an op on all features, unless it changes nothing."""
        if op.n_features != self.n_features:
            raise ModelFormatError(
                f"a step of the input map takes {op.n_features} features, but gets {self.n_features}"
            )
        return self.then_part(op)

    def then_part(self, op: Op) -> "InputMap":
        """Append an op on some or all features, unless it changes nothing."""
        if op.is_identity:
            return self
        merged = op.merged(self.ops[-1]) if self.ops else None
        if merged is not None:
            return replace(self, ops=self.ops[:-1]).then_part(merged)
        return replace(self, ops=(*self.ops, op))

    def then_affine(self, **parts: Any) -> "InputMap":
        """Append an `Affine` step whose parameters are scalars (for all features) or arrays (one value per feature)."""
        return self.then_op(Affine.of(self.n_features, **parts))

    def then_select(self, features: npt.ArrayLike) -> "InputMap":
        """Append a selection of features by index, in the given order."""
        selected: IntArray = np.asarray(features, dtype=np.intp)
        kept: list[Op] = []
        n = self.n_features
        for k, op in reversed(list(enumerate(self.ops))):
            before = n - op.n_outputs + op.n_features
            found = _selected_of(op, selected)
            if found is None:  # the whole map up to this op is needed
                picked = Lookup.picks(n, selected)
                return replace(self, ops=(*self.ops[: k + 1], *([] if picked.is_identity else [picked]), *kept))
            some, selected = found
            kept[:0] = some
            n = before
        return replace(self, columns=self.columns[selected], ops=tuple(kept))

    def then(self, other: "InputMap") -> "InputMap":
        """Append another map, whose raw rows are the mapped rows of this one."""
        if other.n_raw_features != self.n_features:
            raise ModelFormatError(f"a map of {other.n_raw_features} features cannot follow one of {self.n_features}")
        if other.texts and self.ops:
            raise UnsupportedModelError("steps before an estimator that takes texts itself are not supported")
        chosen = self if np.array_equal(other.columns, np.arange(self.n_features)) else self.then_select(other.columns)
        if other.texts:
            known = {int(self.columns[j]): texts for j, texts in other.texts.items()}
            chosen = replace(chosen, texts={**chosen.texts, **known})
        for takes_nan in (True, False):
            features = [j for j, may_be_nan in other.checked.items() if may_be_nan == takes_nan]
            if features:
                seen = self.then_select(features).looked_at(takes_nan=takes_nan).checked
                chosen = replace(chosen, checked=_all_checks([chosen.checked, seen]))
        for op in other.ops:
            chosen = chosen.then_part(op)
        return chosen

    def looked_at(self, *, takes_nan: bool) -> "InputMap":
        """Return the map followed by a check that rejects infinity in each feature, and NaN unless `takes_nan`."""
        checks = ({column: takes_nan or self._takes_nan(k)} for k, column in enumerate(self.columns.tolist()))
        return replace(self, checked=_all_checks([self.checked, *checks]))

    def with_few_checks(self) -> "InputMap":
        """Return the map without the checks that are implied by the use of a column."""
        refused = set(self.columns.tolist()) - set(replace(self, checked={}).columns_of_nan().tolist())
        used = set(self.columns.tolist())
        few = {
            j: takes_nan for j, takes_nan in self.checked.items() if j not in used or not (takes_nan or j in refused)
        }
        return replace(self, checked=few)

    def apply(self, rows: Any) -> FloatArray:
        """Map raw rows, dense or sparse, which must be finite in the used columns.

        Raises InputError if a mapped value overflows float64 or an op rejects a value; the message names the row.
        """
        return self._checked(rows, self._run(rows))

    def mapped_with_errors(self, rows: Any, *, exactly: bool = False) -> tuple[FloatArray, FloatArray]:
        """Map as `apply` does, and bound each row's distance from the function over the real numbers.

        With `exactly`, each element of a projection is rounded only once; this mode is slower, and is used for rows
        whose errors matter.
        """
        mapped = self._run(rows, exactly=exactly)
        return self._checked(rows, mapped), mapped.distances

    def source_rounding(self, rows: Any) -> FloatArray:
        """Bound, for each row, the distance of the source's float64 arithmetic from the function over the real numbers.

        Both computations start from the source's rows just before the first op that does not reproduce the source bit
        for bit.
        """
        first = next((k for k, op in enumerate(self.ops) if not op.as_source), None)
        if first is None:
            return np.zeros(rows.shape[0])
        first_part = replace(self, ops=self.ops[:first])
        rest = InputMap(first_part.n_features, np.arange(first_part.n_features), self.ops[first:])
        mapped = first_part._run(rows)  # NaN is allowed before the step that replaces it
        self._check_domain(mapped)
        result = rest._run(mapped.values, counts_source=True)
        rest._checked(mapped.values, result)
        return result.distances

    def takes(self, rows: FloatArray) -> npt.NDArray[np.bool_]:
        """Return a boolean array of shape (n_rows,): whether `apply` would accept each dense float64 raw row."""
        seen = rows[:, self.columns_looked_at]
        taking = np.isin(self.columns_looked_at, self.columns_of_nan())
        mapped = self._run(rows)
        fine = (np.isfinite(seen) | (np.isnan(seen) & taking)).all(axis=1)
        return np.asarray(fine & ~mapped.outside & ~mapped.has_left)

    @property
    def columns_looked_at(self) -> IntArray:
        """Raw columns that are used or validated, in increasing order."""
        looked_at = np.concatenate([self.columns, np.array(list(self.checked), np.intp)])
        return np.flatnonzero(np.bincount(looked_at))  # np.union1d would import numpy.ma

    def columns_of_nan(self) -> IntArray:
        """Return the raw columns that accept NaN, because the map replaces it in all their uses."""
        refused = {int(self.columns[k]) for k in range(len(self.columns)) if not self._takes_nan(k)}
        refused |= {j for j, takes_nan in self.checked.items() if not takes_nan}
        return np.array([j for j in self.columns_looked_at.tolist() if j not in refused], np.intp)

    def columns_looked_up(self) -> IntArray:
        """Return the raw columns whose values enter a lookup unchanged: categories, bins, missing values."""
        result: set[int] = set()
        origin = self.columns  # raw column that a feature contains unchanged, or -1
        for op in self.ops:
            before = origin[op.first : op.end]
            if isinstance(op, Lookup):
                before = before[op.source]
                result.update(before[[len(steps.edges) > 0 for steps in op.steps]].tolist())
                stays = [bool((steps.values == SAME).any()) for steps in op.steps]
            elif isinstance(op, Affine):
                stays = [op.leaves(j) for j in range(op.n_features)]
            else:
                before, stays = np.full(op.n_outputs, -1), [False] * op.n_outputs
            origin = op.replaced(origin, np.where(stays, before, -1))
        return np.array(sorted(result - {-1, *self.texts}), np.intp)

    def _takes_nan(self, column: int) -> bool:
        feature = column
        for op in self.ops:
            if not op.takes(feature):
                feature = op.passed(feature)
                continue
            found = op.follow_nan(feature - op.first)
            if found is None or found == NO_NAN:
                return found == NO_NAN
            feature = op.first + found
        return False

    def with_texts(self, texts: Mapping[int, TextColumn]) -> "InputMap":
        """Return the same function of rows with the codes of `texts`, which must include all strings of this map."""
        changed: dict[int, TextChange] = {
            k: (self.texts[column].texts, texts[column].texts)
            for k, column in enumerate(self.columns.tolist())
            if column in self.texts and self.texts[column].texts != texts[column].texts
        }
        ops = list(self.ops)
        for k, op in enumerate(ops):
            inside = {j - op.first: change for j, change in changed.items() if op.takes(j)}
            if isinstance(op, Lookup):
                ops[k], inside = op.of_texts(inside)
            elif not op.by_feature:
                inside = {}
            changed = {op.passed(j): change for j, change in changed.items() if not op.takes(j)}
            changed |= {op.first + j: change for j, change in inside.items()}
        return replace(self, ops=tuple(ops), texts=texts)

    def reached(self, column: int, number: float) -> tuple[float, ...]:
        """Return the results of all lookups of a raw column for a number in it; REFUSED if a lookup rejects it."""
        at = [(int(k), number) for k in np.flatnonzero(self.columns == column)]
        ends: list[float] = []
        for op in self.ops:
            inside = [(k - op.first, x) for k, x in at if op.takes(k)]
            if isinstance(op, Lookup):
                inside = [after for k, x in inside for after in op.follow(k, x)]
            elif not op.by_feature:
                ends += [x for _, x in inside]
                inside = []
            at = [(op.passed(k), x) for k, x in at if not op.takes(k)] + [(op.first + k, x) for k, x in inside]
        return (*ends, *(x for _, x in at))

    def preimage(self, mapped: FloatArray) -> FloatArray | None:
        """Return sample rows that are mapped to approximately `mapped`, or None unless the map only scales.

        Unused columns are zero. The map may reject these rows if it uses a column twice.
        """
        x = mapped
        for op in reversed(self.ops):
            if not isinstance(op, Affine):
                return None
            x = op.replaced(x, op.preimage(x[:, op.first : op.end]))
        raw = np.zeros((len(mapped), self.n_raw_features))
        raw[:, self.columns] = x
        return raw

    def packed(self) -> bytes:
        """Return the contents of an artifact's "input_map" section (models/FORMAT.md)."""
        return packed_map(self.n_raw_features, self.columns, self.ops, self.by_column, self.checked)

    def _run(self, rows: Any, *, exactly: bool = False, counts_source: bool = False) -> "_Mapped":
        """Map rows with the core."""
        rows = rows if hasattr(rows, "toarray") else np.asarray(rows)
        if len(rows.shape) != 2 or rows.shape[1] != self.n_raw_features:
            raise InputError(f"rows have shape {rows.shape}, expected (n_rows, {self.n_raw_features})")
        core = _native.InputMap(self.packed(), self.n_raw_features, self.n_features)
        step = max(1, _PIECE_NUMBERS // max(self.n_features, len(self.columns), 1))
        pieces: list[_Mapped] = []
        for first in range(0, max(rows.shape[0], 1), step):
            part = rows[first : first + step]
            selected, is_sparse = self._selected(part), hasattr(part, "toarray")
            mapped = core.map(selected, exactly=exactly, counts_source=counts_source, is_sparse=is_sparse)
            values, _, distances, has_left, outside, refused = mapped
            refused = refused and (first + refused[0], *refused[1:])
            pieces.append(_Mapped(values, distances, has_left, outside, refused))
        values, distances, has_left, outside = (np.concatenate([piece[k] for piece in pieces]) for k in range(4))
        refused = next((piece.refused for piece in pieces if piece.refused), None)
        return _Mapped(values, distances, has_left, outside, refused)

    def _selected(self, rows: Any) -> FloatArray:
        """Return the selected columns, copied to dense float64."""
        dense = rows.toarray() if hasattr(rows, "toarray") else rows
        return np.array(dense[:, self.columns], dtype=np.float64, order="C")

    def _checked(self, rows: Any, mapped: "_Mapped") -> FloatArray:
        """Return the mapped rows; raise InputError if a value overflowed or is outside an op's domain."""
        self._check_domain(mapped)
        if not mapped.has_left.any():
            return mapped.values
        row = int(np.flatnonzero(mapped.has_left)[0])
        bad = np.flatnonzero(~np.isfinite(mapped.values[row]))
        largest = float(np.abs(self._selected(rows[[row]])).max())
        raise InputError(
            f"row {row}: scaling its values, the largest of which is {largest:.6g}, exceeds the range of "
            f"float64 in feature {int(bad[0]) if len(bad) else 0}"
        )

    def _check_domain(self, mapped: "_Mapped") -> None:
        if mapped.refused is not None:
            row, kind, number, needed = mapped.refused
            raise InputError(f"row {row}: {DOMAINS[names_of('op_kind')[kind]]} {needed:.6g}, got {number:.6g}")


class _Mapped(NamedTuple):
    """Rows mapped by the core."""

    values: FloatArray
    distances: FloatArray  # bound on the distance from the function over the real numbers
    has_left: npt.NDArray[np.bool_]  # True if a value overflowed, at the end or before an op that could hide this
    outside: npt.NDArray[np.bool_]  # True if an op rejects a value in the row
    refused: tuple[int, int, float, float] | None  # first rejected row: index, kind of op, number, limit


def _selected_of(op: Op, selected: IntArray) -> tuple[list[Op], IntArray] | None:
    """Return ops that compute a selection of the row after `op`, and the selection of the row before it that they need.

    Each run of selected outputs becomes an op. Returns None if `op` cannot be split in this way, or if it may reject an
    unselected feature.
    """
    ops: list[Op] = []
    before: list[int] = []
    used = np.zeros(op.n_features, np.bool_)
    at = 0
    for is_output, run in groupby(selected.tolist(), key=lambda place: op.before(place) is None):
        places = np.array(list(run))
        if is_output:
            outputs, everything = places - op.first, np.arange(op.n_features)
            is_whole = np.array_equal(outputs, np.arange(op.n_outputs))
            found = (op, everything) if is_whole else op.select(outputs)
            if found is None or (found[1] is None and ops):
                return None
            some, features = found[0], everything if found[1] is None else found[1]
            ops.append(replace(some, first=at))
            before += (op.first + features).tolist()
            used[features] = True
        else:
            before += [place for place in map(op.before, places.tolist()) if place is not None]
        at += len(places)
    return None if op.may_refuse()[~used].any() else (ops, np.array(before, np.intp))


def _all_checks(several: Iterable[Mapping[int, bool]]) -> dict[int, bool]:
    """Combine checks: NaN is accepted only if every check of the column accepts it."""
    together: dict[int, bool] = {}
    for checks in several:
        for column, takes_nan in checks.items():
            together[column] = takes_nan and together.get(column, True)
    return dict(sorted(together.items()))


def same_texts(maps: Sequence[InputMap]) -> list[InputMap]:
    """Return the maps with common codes for each raw column's strings."""
    union: dict[int, TextColumn] = {}
    for one in maps:
        for column, known in one.texts.items():
            before = union.get(column, known)
            # A member whose rows contained no None does not know None, even if the source was fitted on rows with None.
            null = NONE if NONE in (before.null, known.null) else before.null
            union[column] = replace(before.with_texts(known.texts), null=null)
    return [one.with_texts(union) for one in maps] if union else list(maps)

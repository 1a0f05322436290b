"""How raw rows become the rows that a model was trained on: selection, then stages as the source has them.

model/steps has what stages there are. Nothing is folded: stages that scale or look up do in float64, in this order,
what scikit-learn's transformers do to dense float64 rows, so that up to the first stage of another kind a mapped row is
the source's own, bit for bit. The core alone maps rows (cpp/include/approxsvm/artifact/stages), as predictors do.

Two functions bound what rounding leaves. `mapped_with_errors` bounds, row by row, the distance to the function of the
same parameters over the real numbers, where a table looks at the source's own float64 numbers if all stages before it
are the source's bit for bit; `source_rounding` bounds how far the source's own float64 arithmetic may be from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from approxsvm import _native
from approxsvm.errors import InputError, ModelFormatError, UnsupportedModelError
from approxsvm.frames.text_columns import NONE, TextColumn
from approxsvm.ir.compensated import FloatArray
from approxsvm.ir.schema import DOMAINS, names_of
from approxsvm.ir.steps import STEPS, Affine, Monomials, Step, Table
from approxsvm.ir.steps.step import NO_NAN, IntArray, packed_map
from approxsvm.ir.steps.table import SAME, TextChange

# Numbers of rows that are made dense at a time.
_PIECE_NUMBERS: Final = 1 << 20


@dataclass(frozen=True, eq=False)
class InputMap:
    """Function of one raw row. Build it with `identity` or `selection` and the ``then`` methods."""

    n_raw_features: int  # columns of raw rows
    columns: IntArray  # shape (n_selected,); raw column of each selected feature
    stages: tuple[Step, ...] = ()
    feature_names: tuple[str, ...] | None = None  # names of the raw columns
    by_column: bool = False  # whether the source takes raw columns one by one (raw_columns.py)
    texts: Mapping[int, TextColumn] = field(default_factory=dict)  # raw columns of texts, for which codes stand in rows
    # Raw columns that a step of the source has looked at, whether anything of them is used or not: infinity is refused
    # there, and NaN unless this is true. A finished map has those alone of which features say less (`with_few_checks`).
    checked: Mapping[int, bool] = field(default_factory=dict)
    is_sparse: bool = False  # while a pipeline is read: whether the source's own rows are sparse here
    is_unsorted: bool = False  # the same: whether a step has left the entries of sparse rows out of order

    def __post_init__(self) -> None:
        n = len(self.columns)
        if n and not (int(self.columns.min()) >= 0 and int(self.columns.max()) < self.n_raw_features):
            worst = int(self.columns.min()) if int(self.columns.min()) < 0 else int(self.columns.max())
            raise ModelFormatError(f"the input map selects column {worst} of {self.n_raw_features}")
        for stage in self.stages:
            if stage.n_features != n:
                raise ModelFormatError(f"a stage of the input map takes {stage.n_features} features, but {n} come")
            n = stage.n_outputs
        if self.feature_names is not None and len(self.feature_names) != self.n_raw_features:
            raise ModelFormatError(f"{len(self.feature_names)} feature names for {self.n_raw_features} raw features")

    @classmethod
    def identity(cls, n_features: int, feature_names: tuple[str, ...] | None = None) -> InputMap:
        """The map that changes nothing."""
        return cls(n_features, np.arange(n_features), (), feature_names)

    @classmethod
    def selection(
        cls, n_raw_features: int, columns: npt.ArrayLike, feature_names: tuple[str, ...] | None = None
    ) -> InputMap:
        """The map that picks raw columns, in the order given."""
        return cls(n_raw_features, np.asarray(columns, dtype=np.intp), (), feature_names)

    @classmethod
    def concatenate(cls, maps: Sequence[InputMap]) -> InputMap:
        """One map whose features are those of all `maps` of the same raw rows, side by side."""
        first = maps[0]
        if any(m.n_raw_features != first.n_raw_features for m in maps):
            raise ModelFormatError(f"the maps take {[m.n_raw_features for m in maps]} raw features")
        maps = same_texts(maps)
        columns, checked = np.concatenate([m.columns for m in maps]), _all_checks(m.checked for m in maps)
        is_unsorted = any(m.is_unsorted for m in maps)
        joined = replace(maps[0], columns=columns, stages=(), checked=checked, is_unsorted=is_unsorted)
        waiting = [list(m.stages) for m in maps]
        widths = [len(m.columns) for m in maps]
        while any(waiting):
            # A stage waits until every map that has one of its group is at it; the others meanwhile pass through.
            kind = next(k for k in STEPS if any(stages and isinstance(stages[0], k) for stages in waiting))
            group = next(stages[0].group for stages in waiting if stages and isinstance(stages[0], kind))
            now = [stages.pop(0) if stages and stages[0].group == group else None for stages in waiting]
            joined = joined.then_stage(kind.side_by_side(now, widths))
            widths = [n if stage is None else stage.n_outputs for stage, n in zip(now, widths, strict=True)]
        return joined

    @property
    def n_features(self) -> int:
        """Columns of mapped rows."""
        return self.stages[-1].n_outputs if self.stages else len(self.columns)

    @property
    def multiplies(self) -> bool:
        """Whether features are multiplied by each other."""
        return any(isinstance(stage, Monomials) for stage in self.stages)

    @property
    def is_identity(self) -> bool:
        """Whether there is nothing to say: mapped rows equal raw rows, of which every column is looked at."""
        return not (self.stages or self.by_column) and np.array_equal(self.columns, np.arange(self.n_raw_features))

    def then_stage(self, stage: Step) -> InputMap:
        """Append a stage; one that changes nothing is left out."""
        if stage.is_identity and stage.n_features == self.n_features:
            return self
        merged = stage.merged(self.stages[-1]) if self.stages else None
        if merged is not None:
            return replace(self, stages=self.stages[:-1]).then_stage(merged)
        return replace(self, stages=(*self.stages, stage))

    def then_affine(self, **parts: Any) -> InputMap:
        """Append an `Affine` stage of numbers or arrays, one or one per feature."""
        return self.then_stage(Affine.of(self.n_features, **parts))

    def then_select(self, features: npt.ArrayLike) -> InputMap:
        """Append a choice of features by position, in the order given."""
        wanted: IntArray | None = np.asarray(features, dtype=np.intp)
        kept: list[Step] = []
        for stage in reversed(self.stages):
            found = None if wanted is None else stage.select(wanted)
            if found is not None and found[1] is not None:
                lost = np.setdiff1d(np.arange(stage.n_features), found[1])
                found = None if stage.may_refuse()[lost].any() else found
            if found is not None:
                kept.insert(0, found[0])
                wanted = found[1]
                continue
            kept[:0] = [stage] if wanted is None else [stage, Table.picks(stage.n_outputs, wanted)]
            wanted = None
        return replace(self, columns=self.columns if wanted is None else self.columns[wanted], stages=tuple(kept))

    def then(self, other: InputMap) -> InputMap:
        """Append another map, whose raw rows are this one's mapped rows."""
        if other.n_raw_features != self.n_features:
            raise ModelFormatError(f"a map of {other.n_raw_features} features cannot follow one of {self.n_features}")
        if other.texts and self.stages:
            raise UnsupportedModelError("steps in front of an estimator that takes texts itself cannot be folded")
        chosen = self if np.array_equal(other.columns, np.arange(self.n_features)) else self.then_select(other.columns)
        if other.texts:
            known = {int(self.columns[j]): texts for j, texts in other.texts.items()}
            chosen = replace(chosen, texts={**chosen.texts, **known})
        for takes_nan in (True, False):
            features = [j for j, may_be_nan in other.checked.items() if may_be_nan == takes_nan]
            if features:
                seen = self.then_select(features).looked_at(takes_nan=takes_nan).checked
                chosen = replace(chosen, checked=_all_checks([chosen.checked, seen]))
        for stage in other.stages:
            chosen = chosen.then_stage(stage)
        return chosen

    def looked_at(self, *, takes_nan: bool) -> InputMap:
        """The map in front of a step that refuses infinity in each feature, and NaN unless it takes that."""
        found = ({column: takes_nan or self._takes_nan(k)} for k, column in enumerate(self.columns.tolist()))
        return replace(self, checked=_all_checks([self.checked, *found]))

    def with_few_checks(self) -> InputMap:
        """The same without the checks of columns that are used and refuse as much by themselves."""
        refused = set(self.columns.tolist()) - set(replace(self, checked={}).columns_of_nan().tolist())
        used = set(self.columns.tolist())
        few = {
            j: takes_nan for j, takes_nan in self.checked.items() if j not in used or not (takes_nan or j in refused)
        }
        return replace(self, checked=few)

    def apply(self, rows: Any) -> FloatArray:
        """Return mapped rows of raw rows, dense or sparse, which are finite in the columns that are used.

        Raises InputError: a mapped number is beyond float64, or a step does not take one; the message names the row.
        """
        return self._checked(rows, self._run(rows))

    def mapped_with_errors(self, rows: Any, *, exactly: bool = False) -> tuple[FloatArray, FloatArray]:
        """Do as `apply`, and return what the distance to the function of real numbers never exceeds, row by row.

        With `exactly` projections round once: slow, for rows whose error matters.
        """
        found = self._run(rows, exactly=exactly)
        return self._checked(rows, found), found.distances

    def source_rounding(self, rows: Any) -> FloatArray:
        """Bound how far the source's own float64 arithmetic may be from the function of real numbers, by row.

        Both begin at the source's own rows before the first stage that is not the source's bit for bit.
        """
        first = next((k for k, stage in enumerate(self.stages) if not stage.as_source), None)
        if first is None:
            return np.zeros(rows.shape[0])
        front = replace(self, stages=self.stages[:first])
        behind = InputMap(front.n_features, np.arange(front.n_features), self.stages[first:])
        mapped = front._run(rows)  # NaN may go through, on its way to what replaces it
        self._check_domain(mapped)
        found = behind._run(mapped.values, counts_source=True)
        behind._checked(mapped.values, found)
        return found.distances

    def takes(self, rows: FloatArray) -> npt.NDArray[np.bool_]:
        """Tell which raw rows, dense float64, `apply` would not refuse, shape (n_rows,)."""
        seen = rows[:, self.columns_looked_at]
        taking = np.isin(self.columns_looked_at, self.columns_of_nan())
        found = self._run(rows)
        fine = (np.isfinite(seen) | (np.isnan(seen) & taking)).all(axis=1)
        return np.asarray(fine & ~found.outside & ~found.has_left)

    @property
    def columns_looked_at(self) -> IntArray:
        """Raw columns that are used or checked, ascending."""
        looked_at = np.concatenate([self.columns, np.array(list(self.checked), np.intp)])
        return np.flatnonzero(np.bincount(looked_at))  # np.union1d would import numpy.ma

    def columns_of_nan(self) -> IntArray:
        """Raw columns where NaN is taken: those whose NaN becomes a number, wherever the map uses them."""
        refused = {int(self.columns[k]) for k in range(len(self.columns)) if not self._takes_nan(k)}
        refused |= {j for j, takes_nan in self.checked.items() if not takes_nan}
        return np.array([j for j in self.columns_looked_at.tolist() if j not in refused], np.intp)

    def columns_looked_up(self) -> IntArray:
        """Raw columns whose numbers, as they are, a table looks up: categories, bins, what is missing."""
        found: set[int] = set()
        origin = self.columns  # the raw column that a feature holds; -1 for none
        for stage in self.stages:
            if isinstance(stage, Table):
                before = origin[stage.source]
                found.update(before[[len(steps.edges) > 0 for steps in stage.steps]].tolist())
                origin = np.where([bool((steps.values == SAME).any()) for steps in stage.steps], before, -1)
            elif isinstance(stage, Affine):
                origin = np.where([stage.leaves(j) for j in range(len(origin))], origin, -1)
            else:
                break
        return np.array(sorted(found - {-1, *self.texts}), np.intp)

    def _takes_nan(self, column: int) -> bool:
        feature: int | None = column
        for stage in self.stages:
            if feature is None or feature == NO_NAN:
                break
            feature = stage.follow_nan(feature)
        return feature == NO_NAN

    def with_texts(self, texts: Mapping[int, TextColumn]) -> InputMap:
        """The same function of rows whose codes are those of `texts`, which have all that this map knows."""
        changed: dict[int, TextChange] = {
            k: (self.texts[column].texts, texts[column].texts)
            for k, column in enumerate(self.columns.tolist())
            if column in self.texts and self.texts[column].texts != texts[column].texts
        }
        stages = list(self.stages)
        for k, stage in enumerate(stages):
            if isinstance(stage, Table):
                stages[k], changed = stage.of_texts(changed)
            elif not stage.by_feature:
                break
        return replace(self, stages=tuple(stages), texts=texts)

    def reached(self, column: int, number: float) -> tuple[float, ...]:
        """What tables make of a number in a raw column, wherever it is used; REFUSED where it is refused."""
        at = [(int(k), number) for k in np.flatnonzero(self.columns == column)]
        for stage in self.stages:
            if isinstance(stage, Table):
                at = [after for k, x in at for after in stage.follow(k, x)]
            elif not stage.by_feature:
                break
        return tuple(x for _, x in at)

    def preimage(self, mapped: FloatArray) -> FloatArray:
        """Raw rows that are mapped to about `mapped`, as sample rows if none were given.

        Columns that the map does not use are zero. Where it uses one twice, or projects, it may not take these rows.
        """
        x = mapped
        for stage in reversed(self.stages):
            x = stage.preimage(x)
        raw = np.zeros((len(mapped), self.n_raw_features))
        raw[:, self.columns] = x
        return raw

    def packed(self) -> bytes:
        """Return the section of an artifact (models/FORMAT.md, "input_map")."""
        return packed_map(self.n_raw_features, self.columns, self.stages, self.by_column, self.checked)

    def _run(self, rows: Any, *, exactly: bool = False, counts_source: bool = False) -> _Mapped:
        """Map rows by the core."""
        rows = rows if hasattr(rows, "toarray") else np.asarray(rows)
        if len(rows.shape) != 2 or rows.shape[1] != self.n_raw_features:
            raise InputError(f"rows have shape {rows.shape}, expected (n_rows, {self.n_raw_features})")
        core = _native.InputMap(self.packed(), self.n_raw_features, self.n_features)
        step = max(1, _PIECE_NUMBERS // max(self.n_features, len(self.columns), 1))
        pieces: list[_Mapped] = []
        for first in range(0, max(rows.shape[0], 1), step):
            found = core.map(self._selected(rows[first : first + step]), exactly=exactly, counts_source=counts_source)
            values, _, distances, has_left, outside, refused = found
            refused = refused and (first + refused[0], *refused[1:])
            pieces.append(_Mapped(values, distances, has_left, outside, refused))
        values, distances, has_left, outside = (np.concatenate([piece[k] for piece in pieces]) for k in range(4))
        refused = next((piece.refused for piece in pieces if piece.refused), None)
        return _Mapped(values, distances, has_left, outside, refused)

    def _selected(self, rows: Any) -> FloatArray:
        """A copy of the selected columns as dense float64."""
        dense = rows.toarray() if hasattr(rows, "toarray") else rows
        return np.array(dense[:, self.columns], dtype=np.float64, order="C")

    def _checked(self, rows: Any, found: _Mapped) -> FloatArray:
        """Return the mapped rows, or raise InputError where one has left float64 or the domain of a step."""
        self._check_domain(found)
        if not found.has_left.any():
            return found.values
        row = int(np.flatnonzero(found.has_left)[0])
        bad = np.flatnonzero(~np.isfinite(found.values[row]))
        largest = float(np.abs(self._selected(rows[[row]])).max())
        raise InputError(
            f"row {row}: scaling its values, the largest of which is {largest:.6g}, exceeds the range of "
            f"float64 in feature {int(bad[0]) if len(bad) else 0}"
        )

    def _check_domain(self, found: _Mapped) -> None:
        if found.refused is not None:
            row, kind, number, needed = found.refused
            raise InputError(f"row {row}: {DOMAINS[names_of('stage_kind')[kind]]} {needed:.6g}, got {number:.6g}")


class _Mapped(NamedTuple):
    """Rows as the core maps them."""

    values: FloatArray
    distances: FloatArray  # to the function of real numbers, at most
    has_left: npt.NDArray[np.bool_]  # whether a number has left float64, at the end or where a step might hide it
    outside: npt.NDArray[np.bool_]  # whether a step does not take a number
    refused: tuple[int, int, float, float] | None  # the first such row, the step's kind, the number, what it needs


def _all_checks(several: Iterable[Mapping[int, bool]]) -> dict[int, bool]:
    """The checks of all: NaN is taken where each takes it."""
    together: dict[int, bool] = {}
    for checks in several:
        for column, takes_nan in checks.items():
            together[column] = takes_nan and together.get(column, True)
    return dict(sorted(together.items()))


def same_texts(maps: Sequence[InputMap]) -> list[InputMap]:
    """The same maps, with the same codes of the texts of each raw column."""
    union: dict[int, TextColumn] = {}
    for one in maps:
        for column, known in one.texts.items():
            before = union.get(column, known)
            # A member whose rows had no None knows nothing of it; the source was fitted on some nevertheless.
            null = NONE if NONE in (before.null, known.null) else before.null
            union[column] = replace(before.with_texts(known.texts), null=null)
    return [one.with_texts(union) for one in maps] if union else list(maps)

"""Lookups: each output is a step function of one feature, as in binarizers, binning, encoders and imputers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from approxsvm.errors import ModelFormatError
from approxsvm.frames.text_columns import NONE, UNKNOWN
from approxsvm.ir.compensated import FloatArray
from approxsvm.ir.ops.op import NO_NAN, IntArray, Op, PerOutput, Stored, check, check_source

# The old and the new list of a column's strings; the code of a string is its index in the list.
TextChange = tuple[Sequence[str], Sequence[str]]
# Special values of a step function, which mean: leave the feature unchanged; reject the row; return a NaN that a later
# lookup replaces.
SAME = np.inf
REFUSED = np.nan
GIVES_NAN = -np.inf


class Steps(NamedTuple):
    """Step function: values[k] for edges[k - 1] <= x < edges[k], and a value for NaN."""

    edges: FloatArray
    values: FloatArray
    nan: float

    @classmethod
    def of(cls, edges: Any, values: Any, nan: float = REFUSED) -> "Steps":
        """Build a step function, merging adjacent intervals with equal values."""
        edges, values = np.asarray(edges, np.float64), np.asarray(values, np.float64)
        same = (values[1:] == values[:-1]) | (np.isnan(values[1:]) & np.isnan(values[:-1]))
        return cls(edges[~same], values[np.append(True, ~same)], float(nan))

    @classmethod
    def equal(cls, numbers: Any, values: Any, otherwise: float, nan: float = REFUSED) -> "Steps":
        """Return values[k] if x equals numbers[k], which must be increasing, and `otherwise` for any other x."""
        if len(numbers) == 0:
            return cls.of([], [otherwise], nan)
        numbers = np.asarray(numbers, np.float64) + 0.0  # replaces -0 with 0
        edges = np.stack([numbers, np.nextafter(numbers, np.inf)], axis=1).ravel()
        between = np.stack([values, np.full(len(numbers), otherwise)], axis=1).ravel()
        fresh = np.append(edges[1:] > edges[:-1], True)  # False between two adjacent floats
        return cls.of(edges[fresh], np.append(otherwise, between[fresh]), nan)

    def at(self, x: npt.ArrayLike) -> FloatArray:
        """Evaluate the step function at `x`; the result may be SAME or REFUSED."""
        x = np.asarray(x, np.float64)
        values = self.values[np.searchsorted(self.edges, x, side="right")]
        return np.where(np.isnan(x), self.nan, values)

    def after(self, first: "Steps") -> "Steps":
        """Return the composition: this function applied to the result of `first`."""
        inner = np.union1d(first.edges, self.edges)
        starts = np.append(-np.finfo(np.float64).max, inner)
        values = first.at(starts)
        passes = values == SAME
        mapped = self.at(np.where(passes, starts, values))
        mapped = np.where((mapped == SAME) & ~passes, values, mapped)
        mapped = np.where(values == GIVES_NAN, GIVES_NAN if self.nan == SAME else self.nan, mapped)
        return Steps.of(inner, np.where(np.isnan(values), REFUSED, mapped), self._after_nan(first.nan))

    def _after_nan(self, nan: float) -> float:
        if np.isfinite(nan):
            found = float(self.at(nan))
            return {SAME: nan, GIVES_NAN: SAME}.get(found, found)
        return self.nan if np.isinf(nan) else REFUSED

    def refusing(self, other: "Steps") -> "Steps":
        """Return this function restricted to the numbers that `other` accepts."""
        edges = np.union1d(self.edges, other.edges)
        starts = np.append(-np.finfo(np.float64).max, edges)
        return Steps.of(edges, np.where(np.isnan(other.at(starts)), REFUSED, self.at(starts)), self.nan)


@dataclass(frozen=True, eq=False)
class Lookup(PerOutput):
    """Step functions: output k is steps[k] applied to feature source[k]. Build with `of`."""

    kind = "lookup"
    as_source = hides_infinity = True

    steps: tuple[Steps, ...]

    def __post_init__(self) -> None:
        check_source("a lookup", self.source, len(self.steps), self.n_features)
        for edges, values, nan in self.steps:
            check("values", values, (len(edges) + 1,), finite=False)
            numbers = np.append(values, nan)
            beyond = numbers[np.isfinite(numbers) & (np.abs(numbers) > 1e300)]
            if len(beyond):
                raise ModelFormatError(f"a value of a lookup is {beyond[0]:.6g}, but must be from -1e300 to 1e300")
            check("edges", edges, edges.shape)
            if (edges[1:] <= edges[:-1]).any():
                raise ModelFormatError("the edges of a lookup do not ascend")

    @classmethod
    def of(cls, n_features: int, columns: Sequence[tuple[int, Steps]], first: int = 0) -> "Lookup":
        """Build a lookup from a source feature and a step function for each output."""
        source = np.array([j for j, _ in columns], np.intp)
        return cls(n_features, source, tuple(steps for _, steps in columns), first=first)

    @classmethod
    def picks(cls, n_features: int, features: IntArray) -> "Lookup":
        """Build a lookup that selects features without changing them."""
        return cls.of(n_features, [(int(j), _ITSELF) for j in features])

    @property
    def is_identity(self) -> bool:
        same = all(not len(steps.edges) and np.isinf((steps.values[0], steps.nan)).all() for steps in self.steps)
        return same and np.array_equal(self.source, np.arange(self.n_features))

    @property
    def gives_nan(self) -> bool:
        """True if some number is mapped to NaN, which the artifact format cannot express (models/FORMAT.md)."""
        return any((steps.values == GIVES_NAN).any() for steps in self.steps)

    def refusing_nan(self) -> "Lookup":
        """Return the same lookup with NaN rejected, for maps without a later lookup that replaces NaN."""
        kept = (one._replace(values=np.where(one.values == GIVES_NAN, REFUSED, one.values)) for one in self.steps)
        return replace(self, steps=tuple(kept))

    def follow(self, feature: int, number: float) -> list[tuple[int, float]]:
        """Return the outputs that depend on a feature, with their values if the feature equals `number`."""
        found = ((int(k), float(self.steps[k].at(number))) for k in np.flatnonzero(self.source == feature))
        return [(k, number if value == SAME else value) for k, value in found]

    def of_texts(self, codes: Mapping[int, TextChange]) -> "tuple[Lookup, dict[int, TextChange]]":
        """Return the lookup for new string codes, and the outputs that may contain such codes."""
        sources = list(zip(self.source.tolist(), self.steps, strict=True))
        steps = tuple(_of_texts(steps, *codes[j]) if j in codes else steps for j, steps in sources)
        given = {k: codes[j] for k, (j, steps) in enumerate(sources) if j in codes and (steps.values == SAME).any()}
        return replace(self, steps=steps), given

    def may_refuse(self) -> npt.NDArray[np.bool_]:
        refusing = [np.isnan(steps.values).any() for steps in self.steps]
        return np.isin(np.arange(self.n_features), self.source[np.array(refusing, np.bool_)])

    def select(self, features: IntArray) -> "tuple[Lookup, IntArray]":
        """Return the lookup for some outputs; rows rejected by another output of the same features remain rejected."""
        used = np.unique(self.source[features])
        kept = [self.steps[k] for k in features]
        for j in used.tolist():
            first = int(np.flatnonzero(self.source[features] == j)[0])
            for k in np.flatnonzero(self.source == j).tolist():
                if k not in features and np.isnan(self.steps[k].values).any():
                    kept[first] = kept[first].refusing(self.steps[k])
        return Lookup(len(used), np.searchsorted(used, self.source[features]), tuple(kept), first=self.first), used

    def merged(self, before: Op) -> "Lookup | None":
        """Merge this lookup with the preceding lookup `before`: a composition of lookups is a lookup."""
        if not isinstance(before, Lookup):
            return None
        first, end = min(self.first, before.first), max(self.end, before.first + before.n_outputs)
        wide = before.covering([before], first, end + before.n_features - before.n_outputs)
        return self.covering([self], first, end)._after(wide)

    def _after(self, before: "Lookup") -> "Lookup | None":
        """Return the composition of two lookups that start at the same feature."""
        is_lost = ~np.isin(np.arange(before.n_features), before.source[self.source])
        if (before.may_refuse() & is_lost).any():
            return None
        pairs = zip(self.source.tolist(), self.steps, strict=True)
        columns = [(int(before.source[j]), steps.after(before.steps[j])) for j, steps in pairs]
        for j in set(before.source.tolist()) & {source for source, _ in columns}:
            at = next(k for k, (source, _) in enumerate(columns) if source == j)
            for k in np.flatnonzero(before.source == j).tolist():
                if k not in self.source and np.isnan(before.steps[k].values).any():
                    columns[at] = (j, columns[at][1].refusing(before.steps[k]))
        return Lookup.of(before.n_features, columns, self.first)

    def follow_nan(self, feature: int) -> int | None:
        """Return the only output that may be NaN; `NO_NAN` if none may; None if NaN is rejected or several may be."""
        outputs = np.flatnonzero(self.source == feature)
        nan = np.array([self.steps[k].nan for k in outputs])
        passes = outputs[np.isinf(nan)]
        if not len(outputs) or np.isnan(nan).any() or len(passes) > 1:
            return None
        return int(passes[0]) if len(passes) else NO_NAN

    @classmethod
    def together(cls, ops: Sequence[Any]) -> "Sequence[Lookup]":
        """Combine all ops into one, because exports support only one lookup; features between them stay unchanged."""
        return [cls.covering(ops, ops[0].first, ops[-1].end)]

    @classmethod
    def covering(cls, ops: "Sequence[Lookup]", first: int, end: int) -> "Lookup":
        """Return one lookup of features `first` to `end` - 1 with the effect of `ops`, whose features are disjoint."""
        columns, at = [], first
        for op in ops:
            columns += [(j - first, _ITSELF) for j in range(at, op.first)]
            columns += [(int(j) + op.first - first, steps) for j, steps in zip(op.source, op.steps, strict=True)]
            at = op.end
        columns += [(j - first, _ITSELF) for j in range(at, end)]
        return cls.of(end - first, columns, first)

    def stored(self) -> Stored:
        """Return the number of edges, and arrays: sources, end of each output's edges, edges, values, values at NaN."""
        if self.gives_nan:
            raise ModelFormatError("a lookup gives NaN for a number")
        ends = np.cumsum([len(steps.edges) for steps in self.steps], dtype=np.uint32)
        numbers = [
            np.concatenate([np.zeros(0), *(steps.edges for steps in self.steps)]),
            np.concatenate([np.zeros(0), *(steps.values for steps in self.steps)]),
            np.array([steps.nan for steps in self.steps], np.float64),
        ]
        return len(numbers[0]), [self.source.astype(np.uint32), ends, *numbers]

    @classmethod
    def read(cls, reader: Any, parts: int, first: int, n_features: int, n_outputs: int) -> "Lookup":
        source, ends = (reader.array("<u4", n_outputs).astype(np.intp) for _ in range(2))
        edges, values, nan = reader.numbers(parts), reader.numbers(parts + n_outputs), reader.numbers(n_outputs)
        starts = np.append(0, ends)
        steps = tuple(
            Steps(edges[starts[k] : ends[k]], values[starts[k] + k : ends[k] + k + 1], float(nan[k]))
            for k in range(n_outputs)
        )
        return cls(n_features, source, steps, first=first)

    def in_words(self) -> str:
        return f"looks up {self.n_features:,} features in tables, with {self.n_outputs:,} results"


_ITSELF = Steps.of([], [SAME], SAME)


def _of_texts(steps: Steps, old: Sequence[str], new: Sequence[str]) -> Steps:
    """Translate a step function from old to new string codes; results that are codes are also translated."""
    place = {text: float(k) for k, text in enumerate(old)}
    numbers = np.array([NONE, *range(len(new))], np.float64)
    before = np.array([NONE, *(place.get(text, UNKNOWN) for text in new)])
    passes = bool((steps.values == SAME).any())
    after = {place[text]: float(k) for k, text in enumerate(new) if text in place} if passes else {}
    values = [after.get(value, value) for value in steps.at(before).tolist()]
    otherwise = float(steps.at(UNKNOWN))
    odd = np.array([value != otherwise for value in values])
    return Steps.equal(numbers[odd], np.array(values)[odd], otherwise, after.get(steps.nan, steps.nan))

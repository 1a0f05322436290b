"""Graphs that evaluate each row by an expansion about a nearby center, with the bound derived in bound_table.py."""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm.artifact.views import Artifact
from approxsvm.backends.onnx.bound_table import (
    CELLS_PER_OCTAVE,
    END,
    FIRST_OCTAVE,
    LAST_HALF_S,
    N_CELLS,
    BoundTable,
    bound_table,
    fixed_error,
    weights_of_expansion,
)
from approxsvm.backends.onnx.graph_builder import UP, GraphBuilder
from approxsvm.backends.onnx.known_values import KnownValues
from approxsvm.backends.onnx.polynomial_graph import count_up_to, evaluate, monomials, rounding_path, split, unfolding
from approxsvm.backends.onnx.rows_graph import GraphRows
from approxsvm.expansion.monomials import n_higher, n_monomials
from approxsvm.ir.kernel_model import FloatArray
from approxsvm.ir.schema import ROUTER_WIDTH

# Maximum size, n_groups * n_centers, of the mask for the router's lists. If the mask would be larger, the graph
# compares each row with all centers.
_MOST_MASK: Final = 1 << 22
_ROOT_TWO: Final = 1.4143


def expanded(g: GraphBuilder, artifact: Artifact, rows: GraphRows, *, with_bounds: bool) -> KnownValues:
    """Compute the decision values of an artifact with expansions of all decision functions.

    With several centers, a loop over the centers that occur in a batch evaluates each center's rows together.
    Coefficients are thus not copied for each row, and a batch of one row needs only one iteration.
    """
    about = _Expansions(g, artifact, with_bounds)
    if artifact.n_centers == 1:
        values, bounds = about.evaluate(np.array([0], np.int64), rows.values, rows.error)
        return KnownValues(values, bounds)
    center_of_row = _nearest_centers(g, artifact, rows.values)
    present = g.op("Unique", center_of_row, sorted=1)
    n_decisions = int(artifact.header["n_decisions"])
    n_rows = g.op("Shape", rows.values, start=0, end=1)
    nothing = g.op("Expand", np.zeros((1, 1)), g.op("Concat", n_rows, np.array([n_decisions], np.int64), axis=0))

    def of_one_center(turn: str, state: list[str]) -> tuple[None, list[str]]:
        center = g.op("Unsqueeze", g.op("Gather", present, turn), np.array([0], np.int64))
        members = g.op("NonZero", g.op("Equal", center_of_row, center))
        places = g.op("Transpose", members, perm=[1, 0])
        its = [None if x is None else g.op("GatherND", x, places) for x in (rows.values, rows.error)]
        assert its[0] is not None
        results = about.evaluate(center, its[0], its[1])
        return None, [
            g.op("ScatterND", before, places, part)
            for before, part in zip(state, [part for part in results if part is not None], strict=True)
        ]

    shape = (None, n_decisions)
    state = [(nothing, np.float64, shape)] * (2 if with_bounds else 1)
    n_turns = g.op("Squeeze", g.op("Shape", present), np.array([0], np.int64))
    return KnownValues(*g.loop(of_one_center, state, n_turns))


@dataclass(frozen=True)
class _BoundNumbers:
    """Quantities used in bounds: functions of s, each center's weights, the fixed part of the error, and W."""

    functions: str
    kept: str
    cut: str
    fixed: str
    totals: FloatArray


class _Expansions:
    """Constants of all expansions, and the method that evaluates them about one center."""

    def __init__(self, g: GraphBuilder, artifact: Artifact, with_bounds: bool) -> None:
        header = artifact.header
        self.g = g
        self.n_features, self.n_varying = artifact.n_features, artifact.n_varying
        self.degree, self.n_centers = int(header["degree"]), artifact.n_centers
        self.n_decisions = int(header["n_decisions"])
        self.scale, self.gamma = float(header["input_scale"]), float(header["gamma"])
        self.theta = 2.0 * self.gamma / self.scale / self.scale
        varying = artifact.numbers("varying")
        self.varying = varying.astype(np.int64) if len(varying) else None
        self.centers = g.doubles(artifact.centers())
        self.matrices = self._matrices(artifact)
        records, decisions = artifact.expansion_numbers(), artifact.decision_numbers()
        shape = (self.n_centers, self.n_decisions)
        self.constants = g.doubles(records["constant"].reshape(shape))
        self.output_scales = g.doubles(records["output_scale"].reshape(shape))
        self.intercepts = decisions["intercept"]
        self.bound_numbers = self._bound_numbers(artifact) if with_bounds else None

    def evaluate(self, center: Any, x: str, error: str | None) -> tuple[str, str | None]:
        """Return rows' values and bounds, expanded about the center with index `center` (array or name, shape (1,))."""
        g = self.g
        u = g.op("Mul", g.op("Sub", x, g.op("Gather", self.centers, center)), self.scale)
        off_sq = None
        if self.varying is not None:
            others = np.setdiff1d(np.arange(self.n_features), self.varying)
            off = g.columns(u, others)
            off_sq = g.rows_sum(g.op("Mul", off, off), keepdims=True)
            u = g.columns(u, self.varying)
        sq_norm = g.rows_sum(g.op("Mul", u, u), keepdims=True)
        half_s = g.op("Mul", sq_norm, 0.5 * self.theta)
        of_rows = monomials(g, u, self.n_varying, self.degree)
        polynomial = evaluate(g, of_rows, self._matrix_of(center))
        inner = g.op("Add", polynomial, g.op("Gather", self.constants, center))
        scaled = g.op("Mul", inner, g.op("Gather", self.output_scales, center))
        parts = g.op("Mul", scaled, g.op("Exp", g.op("Neg", half_s)))
        # Far from the center, the polynomials may have overflowed; the Gaussian factor is practically 0 there.
        parts = g.op("Where", g.op("Greater", half_s, LAST_HALF_S), 0.0, parts)
        values = g.op("Add", parts, self.intercepts[np.newaxis])
        return values, self._bounds(center, half_s, off_sq, error)

    def _matrices(self, artifact: Artifact) -> tuple[str, str | None]:
        """Return the matrix C of a single expansion; for several, their packed coefficients and C's indices into those.

        Stored as matrices, several expansions would have unused entries that take more space than the indices.
        """
        g, n, v = self.g, self.n_centers * self.n_decisions, self.n_varying
        h, t = split(self.degree)
        shape = (count_up_to(v, t), count_up_to(v, h))
        n_packed = sum(n_monomials(v, k) for k in range(1, self.degree + 1))
        g.check_room(4 * shape[0] * shape[1] + (4 * n * n_packed if n > 1 else 0))
        parts = [artifact.coefficients("linear").reshape(n, v)]
        if self.degree >= 2:
            parts.append(artifact.coefficients("quadratic").reshape(n, n_monomials(v, 2)))
        if self.degree >= 3:
            parts.append(artifact.coefficients("higher").reshape(n, n_higher(v, self.degree)))
        packed = np.concatenate([*parts, np.zeros((n, 1), np.float32)], axis=1)
        places = unfolding(v, self.degree)
        if n == 1:
            return g.constant(packed[:, places]), None
        return g.constant(packed.reshape(self.n_centers, self.n_decisions, -1)), g.constant(places)

    def _matrix_of(self, center: Any) -> str:
        """Return the float64 matrices C of a center's expansions, an array of shape (n_decisions, n_tails, n_heads)."""
        g, (matrices, places) = self.g, self.matrices
        if places is None:
            return g.cast(matrices, np.float64)
        packed = g.op("Squeeze", g.op("Gather", matrices, center), np.array([0], np.int64))
        return g.cast(g.op("Gather", packed, places, axis=1), np.float64)

    def _bound_numbers(self, artifact: Artifact) -> _BoundNumbers:
        g, header = self.g, artifact.header
        records, decisions = artifact.expansion_numbers(), artifact.decision_numbers()
        path = max(rounding_path(self.n_varying, self.degree), self.n_varying + 8.0)
        thetas = tuple(sorted({float(theta) for theta in records["contraction"]}))
        table = bound_table(self.degree, int(header["first_remainder_degree"]), thetas, path)
        shape = (self.n_centers, self.n_decisions)
        of_decision = np.tile(np.arange(self.n_decisions), self.n_centers)
        weights = np.stack(
            [self._weights(record, decisions[k], table) for record, k in zip(records, of_decision, strict=True)]
        )
        weights = weights.reshape(*shape, 2, -1).transpose(0, 2, 3, 1)  # by center, for kept and truncated degrees
        fixed = fixed_error(
            records["coefficient_error"],
            decisions["intercept"][of_decision],
            decisions["total"][of_decision],
            decisions["value_error"][of_decision],
            records["output_scale"],
            self.n_varying,
        )
        return _BoundNumbers(
            functions=g.cast(g.constant(table.functions), np.float64),
            kept=g.constant(np.ascontiguousarray(weights[:, 0])),
            cut=g.constant(np.ascontiguousarray(weights[:, 1])),
            fixed=g.constant(fixed.reshape(shape)),
            totals=decisions["total"],
        )

    def _weights(self, record: Any, decision: Any, table: BoundTable) -> FloatArray:
        numbers = (float(record["remainder"]), float(record["contraction"]), float(decision["total"]))
        return weights_of_expansion(table, record["norms"], *numbers)

    def _bounds(self, center: Any, half_s: str, off_sq: str | None, error: str | None) -> str | None:
        """Compute error bounds on the values, an array of shape (n_rows, n_decisions)."""
        numbers, g = self.bound_numbers, self.g
        if numbers is None:
            return None
        functions = g.op("Gather", numbers.functions, self._cell(half_s), axis=0)
        first = np.array([0], np.int64)
        kept, cut = (
            g.op("MatMul", functions, g.op("Squeeze", g.op("Gather", weights, center), first))
            for weights in (numbers.kept, numbers.cut)
        )
        tail = g.columns(functions, [-1])
        cut = g.op("Min", cut, g.op("Mul", tail, numbers.totals[np.newaxis]))
        # Sum instead of Add, because onnxruntime would drop an Add of a single tiny constant (see GraphBuilder).
        bound = g.op("Sum", kept, cut, g.op("Gather", numbers.fixed, center))
        moved = self._moved(off_sq, error)
        if moved is not None:
            bound = g.op("Add", bound, g.op("Mul", moved, numbers.totals[np.newaxis]))
        return g.op("Mul", bound, UP)

    def _cell(self, half_s: str) -> str:
        """Return the index of each row's cell in the table, shape (n_rows,); rows with NaN get the last cell."""
        g = self.g
        s = g.op("Squeeze", g.op("Mul", half_s, 2.0), np.array([1], np.int64))
        s = g.op("Where", g.op("Less", s, END), s, 2.0 * END)
        s = g.op("Where", g.op("Greater", s, 2.0 ** (FIRST_OCTAVE - 1)), s, 2.0 ** (FIRST_OCTAVE - 1))
        octaves = g.op("Mul", g.op("Log", s), CELLS_PER_OCTAVE / math.log(2.0))
        cell = g.op("Floor", g.op("Add", octaves, 1.0 - CELLS_PER_OCTAVE * FIRST_OCTAVE))
        return g.cast(g.op("Min", g.op("Max", cell, 0.0), float(N_CELLS - 1)), np.int64)

    def _moved(self, off_sq: str | None, error: str | None) -> str | None:
        """Bound each row's distance from its computed position in the kernel's feature space; shape (n_rows, 1)."""
        g, moved = self.g, None
        if off_sq is not None:
            distance = g.op("Sqrt", g.op("Mul", off_sq, self.theta))
            moved = g.op("Add", g.op("Mul", distance, UP), 2.0**-450)
        if error is not None:
            map_error = g.op("Mul", error, math.sqrt(2.0 * self.gamma) * UP)
            moved = map_error if moved is None else g.op("Add", moved, map_error)
        if moved is None:
            return None
        return g.op("Where", g.op("Less", moved, _ROOT_TWO), moved, _ROOT_TWO)


def _nearest_centers(g: GraphBuilder, artifact: Artifact, x: str) -> str:
    """Find a center near each row by the artifact's lists; only in a tie can the engine's choice differ."""
    group_points, members = _router_points(artifact)
    y = g.op("Mul", g.op("Sub", x, artifact.center.astype(np.float64)), float(artifact.header["input_scale"]))
    slots, first_slot = np.unique(members.centers, return_index=True)
    scores = _scores(g, members.points[first_slot], y)
    if len(group_points) * artifact.n_centers <= _MOST_MASK:
        group = g.op("ArgMin", _scores(g, group_points, y), axis=1, keepdims=0)
        listed = np.zeros((len(group_points), len(slots)), bool)
        listed[members.groups, np.searchsorted(slots, members.centers)] = True
        scores = g.op("Where", g.op("Gather", listed, group), scores, math.inf)
    nearest = g.op("ArgMin", scores, axis=1, keepdims=0)
    return nearest if len(slots) == artifact.n_centers else g.op("Gather", slots.astype(np.int64), nearest)


def _scores(g: GraphBuilder, points: FloatArray, y: str) -> str:
    """Compute scores, the smallest of which marks the nearest point; NaN due to overflow becomes a large value."""
    scores = g.op("Add", g.op("MatMul", y, g.doubles(np.ascontiguousarray(points[:, 1:].T))), points[:, 0])
    return g.op("Where", g.op("Less", scores, 1e300), scores, 1e300)


@dataclass(frozen=True, eq=False)
class _Members:
    """Group, center and point of each slot, for the slots of all lists."""

    groups: npt.NDArray[np.intp]
    centers: npt.NDArray[np.int64]
    points: FloatArray


def _router_points(artifact: Artifact) -> tuple[FloatArray, _Members]:
    """Return the groups' stored points (half of x'Dx, then -Dx), and the slots of all lists with theirs."""
    lists = artifact.router()
    points = lists.points.reshape(-1, lists.points.shape[2]).astype(np.float64)
    n_groups = len(lists.starts) - 1
    groups = np.repeat(np.arange(n_groups), ROUTER_WIDTH * np.diff(lists.starts))
    return points[:n_groups], _Members(groups, lists.members.astype(np.int64), points[-len(groups) :])

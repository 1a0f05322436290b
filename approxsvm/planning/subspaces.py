"""In how many coordinates kernel sums are tried before those of all features: by what rows cost then."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import combinations, pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from approxsvm.artifact.layout import Artifact
from approxsvm.artifact.subspaces import pack_subspaces
from approxsvm.artifact.writer import Expanded, Frame, build, input_scale_for
from approxsvm.errors import UnsupportedModelError
from approxsvm.expansion.kernel_sums import mapped_in_order
from approxsvm.expansion.stack import expand_and_certify
from approxsvm.expansion.subspace import GroupInSubspace, Lists, SubspaceGroup, SubspaceStage, one_by_one
from approxsvm.expansion.taylor import sv_norms
from approxsvm.model.kernel_model import FloatArray, KernelModel
from approxsvm.planning.cost import Products, SubspaceCosts
from approxsvm.planning.planner import Limits
from approxsvm.predictor import BOUNDS, VALUES, Evaluator
from approxsvm.threads import all_threads

# Coordinates that are tried, as far as they are at most half of the features.
_NUMBERS: Final = (16, 32, 64, 128, 256, 512)
_LEAST_OF_CLASSES: Final = 32
# From those that pay most often to those that are first left out where time is short.
_LEAST_OFTEN: Final = (64, 128, 32, 256, 16, 512)
# Degrees of expansions in place of sums.
_DEGREES: Final = (2, 3, 4)
_MAX_FEATURES: Final = 4_096
# Numbers in the support vectors of a group, and operations that all stages may take.
_MAX_NUMBERS: Final = 1 << 25
_MOST_WORK: Final = {"low": 4e10, "normal": 1e12, "high": 1e13}
# Rows that judge the stages.
_MAX_ROWS: Final = 2_000
# What stages must bring the cost of a row down to; of several classes further, for their blocks are less full.
_WORTHWHILE: Final = 0.8
_WORTHWHILE_OF_CLASSES: Final = 0.5
# Where more coordinates hardly help.
_NEARLY_ALL: Final = 0.995
# Expansions that settle about as many rows as the sums need no higher degree.
_ABOUT: Final = 0.01
# A model keeps the rows that it was trained on away from its boundary: new ones have values that are so much smaller,
# so often.
_SHRUNK: Final = {1.0: 0.6, 0.75: 0.2, 0.5: 0.1, 0.25: 0.1}
# Stages that are tried together.
_MOST_STAGES: Final = 3
_MOST_STAGES_OF_CLASSES: Final = 2
# Of several classes, those that more coordinates are tried on.
_MOST_JUDGED: Final = 3
# A stage of so many coordinates that settles less of the rows does not become good with more; where values are wanted
# within a tolerance, none does.
_ENOUGH_COORDINATES: Final = 64
_HOPELESS: Final = 0.02


@dataclass(frozen=True, eq=False)
class Subspaces:
    """Stages in few coordinates, and what rows cost with them.

    Attributes
    ----------
    groups : list of SubspaceGroup
        Of each class, or of the only decision function.
    expansion : Artifact, optional
        In the coordinates of the first stage, in place of its sums.
    cost : float
        Of a row on average, by these and the exact engine behind them.
    presumed_cost : float
        Without what presuming its class takes.
    reason : str
        For people.
    """

    groups: list[SubspaceGroup]
    expansion: Artifact | None
    cost: float
    presumed_cost: float
    reason: str

    @property
    def n_bytes(self) -> int:
        """About what they take in an artifact."""
        expansion = b"" if self.expansion is None else self.expansion.data
        return len(pack_subspaces(self.groups, self.expansion is not None)) + len(expansion) + len(self.reason) + 256


def goes_by_all_features(model: KernelModel, X: Any) -> bool:
    """Whether rows take all of their features through the exact engine, not their non-zeros alone."""
    rows = model.support_vectors if X is None else X
    return rows.shape[0] > 0 and Products.of(model, rows).n_terms == model.n_features


def choose_subspaces(
    model: KernelModel,
    X: Any,
    center: npt.NDArray[np.float32],
    winners: Callable[[Any], npt.NDArray[np.intp]],
    tolerance: float,
    limits: Limits,
    progress: Callable[[float], None],
    cost_of_plan: float | None = None,
) -> Subspaces | None:
    """Try more and more coordinates, and take the stages with which sample rows cost least.

    Parameters
    ----------
    model : KernelModel
        Gaussian; labels of several classes go by votes.
    X : ndarray or csr_array of shape (n_rows, n_features), or None
        Sample rows as the kernel sees them; the support vectors take their place.
    center : ndarray of shape (n_features,), float32
        The artifact's.
    winners : callable
        The classes that rows belong to, as positions.
    tolerance : float
        Of values; infinite where labels alone count.
    limits : Limits
        How much time and how many bytes are allowed; and the seed of the choice of rows, and of support vectors that a
        basis is found from.
    progress : callable
        Told the share of the work that is done.
    cost_of_plan : float, optional
        Of a row, by a plan that they are to be better than; the exact engine's where it is left out.

    Returns
    -------
    Subspaces or None
        None where they would not make rows much cheaper, or nothing is known that would.
    """
    d = model.n_features
    rows = model.support_vectors if X is None else X
    if model.gamma == 0.0 or model.n_sv == 0 or d > _MAX_FEATURES or rows.shape[0] == 0:
        return None
    costs = SubspaceCosts.of(model, rows)
    worthwhile = _WORTHWHILE if model.n_decisions == 1 else _WORTHWHILE_OF_CLASSES
    to_beat = worthwhile * (costs.exact if cost_of_plan is None else min(cost_of_plan, costs.exact))
    least = _NUMBERS[0] if model.n_decisions == 1 else _LEAST_OF_CLASSES
    numbers = [k for k in _NUMBERS if k >= least and 2 * k <= d and costs.at_best(k) <= to_beat]
    lists = Lists.of(model)
    if not numbers or not all(group.have_one_sign() and len(group.members) for group in lists):
        return None
    largest = max(len(group.members) for group in lists)
    while numbers and _work(lists, d, numbers) > _MOST_WORK[limits.effort]:
        numbers.remove(max(numbers, key=_LEAST_OFTEN.index))
    if not numbers or largest * d > _MAX_NUMBERS:
        return None
    random = np.random.default_rng(limits.random_state)
    rows = rows[np.sort(random.permutation(rows.shape[0])[: min(_MAX_ROWS, max(_MAX_NUMBERS // d, 1))])]
    classes = winners(rows) if model.n_decisions > 1 else np.zeros(rows.shape[0], np.intp)
    input_scale = input_scale_for(model.gamma)
    # Some of several classes, from those with few support vectors to those with many, say it for all.
    order = np.argsort(costs.n_listed, kind="stable")
    n_judged = min(_MOST_JUDGED, len(lists))
    judged = [int(order[(2 * k + 1) * len(lists) // (2 * n_judged)]) for k in range(n_judged)]
    of_judged = np.isin(classes, judged)
    if not of_judged.any():
        return None
    rows, classes = rows[of_judged], classes[of_judged]
    shrunk = np.ones(rows.shape[0])
    if X is not None:
        shrunk = random.choice(list(_SHRUNK), size=rows.shape[0], p=list(_SHRUNK.values()))
    dense = np.asarray(rows if isinstance(rows, np.ndarray) else rows.toarray(), np.float64) - center
    with ThreadPoolExecutor(all_threads()) as pool, np.errstate(over="ignore", under="ignore", invalid="ignore"):
        in_order = partial(mapped_in_order, pool)
        groups = {w: GroupInSubspace(model, lists[w], center, numbers[-1], limits.random_state) for w in judged}
        stages: dict[int, dict[int, SubspaceStage]] = {}
        expansions: dict[_Step, Artifact] = {}
        certified: dict[_Step, npt.NDArray[np.bool_]] = {}
        for n_done, k in enumerate(numbers):
            found = {w: group.stage(k, input_scale, in_order) for w, group in groups.items()}
            stages[k] = {w: stage for w, stage in found.items() if stage is not None}
            if len(stages[k]) < len(groups):
                return None
            sums = _Step(k, 0)
            certified[sums] = _certified(model, groups, stages[k], dense, classes, shrunk, tolerance)
            share = float(certified[sums].mean())
            for degree in _degrees(model, costs, k):
                step, projected = _Step(k, degree), groups[0].projected(dense, k)
                typical_s = 2.0 * model.gamma * float(np.einsum("ij,ij->i", projected, projected).mean())
                expansions[step] = _expanded(groups[0], stages[k][0], degree, model.gamma, typical_s)
                values = _values(expansions[step], projected)
                certified[step] = _certified(model, groups, stages[k], dense, classes, shrunk, tolerance, values)
                if float(certified[step].mean()) >= share - _ABOUT:
                    break  # what is left open is the residual's
            progress(0.5 * (n_done + 1) / len(numbers))
            enough = k >= (_ENOUGH_COORDINATES if math.isinf(tolerance) else numbers[0])
            if share >= _NEARLY_ALL or (enough and share < _HOPELESS):
                break
        tried = [chain for n in range(1, _most_stages(model) + 1) for chain in combinations(certified, n)]
        tried = [chain for chain in tried if _is_chain(chain)]
        best = min(tried, key=lambda chain: _cost(costs, chain, certified, classes))
        cost = _cost(costs, best, certified, classes)
        if not cost <= to_beat:
            return None
        settled = float(np.logical_or.reduce([certified[k] for k in best]).mean())
        chosen = []
        for w in range(len(lists)):
            group = groups.get(w) or GroupInSubspace(
                model, lists[w], center, best[-1].n_coordinates, limits.random_state
            )
            of_group = [stages[k][w] if w in groups else group.stage(k, input_scale, in_order) for k, _ in best]
            if any(stage is None for stage in of_group):
                return None
            chosen.append(group.group([stage for stage in of_group if stage is not None], input_scale))
            progress(0.5 + 0.5 * (w + 1) / len(lists))
    steps = ", then ".join(step.name for step in best)
    reason = (
        f"{steps} of {d} coordinates, then the exact engine: should settle {settled:.1%} before it and take "
        f"{cost / costs.exact:.0%} of its time"
    )
    return Subspaces(chosen, expansions.get(best[0]), cost, cost - costs.fixed, reason)


def subspaces_in(
    model: KernelModel, center: npt.NDArray[np.float32], numbers: tuple[int, ...], degree: int = 0
) -> tuple[list[SubspaceGroup], Artifact | None]:
    """Stages in as many coordinates, whether they pay or not.

    Parameters
    ----------
    model : KernelModel
    center : ndarray of shape (n_features,), float32
    numbers : tuple of int
        Coordinates, ascending.
    degree : int
        Of an expansion in place of the first sums; 0 for none.
    """
    scale, groups = input_scale_for(model.gamma), []
    expansion = None
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for lists in Lists.of(model):
            group = GroupInSubspace(model, lists, center, numbers[-1], random_state=0)
            found = [group.stage(k, scale, one_by_one) for k in numbers]
            stages = [stage for stage in found if stage is not None]
            if len(stages) < len(found):
                raise UnsupportedModelError(
                    "float32 cannot hold the coefficients of kernel sums in few coordinates, or distances"
                )
            groups.append(group.group(stages, scale))
            if degree:
                expansion = _expanded(group, stages[0], degree, model.gamma, group.typical_s(numbers[0]))
    return groups, expansion


class _Step(NamedTuple):
    """Kernel sums in so many coordinates, or an expansion of them where the degree is not 0."""

    n_coordinates: int
    degree: int

    @property
    def name(self) -> str:
        """For people."""
        what = f"an expansion of degree {self.degree}" if self.degree else "kernel sums"
        return f"{what} in {self.n_coordinates}"


def _is_chain(steps: tuple[_Step, ...]) -> bool:
    """More and more coordinates; an expansion is the first."""
    ascends = all(a.n_coordinates < b.n_coordinates for a, b in pairwise(steps))
    return ascends and not any(step.degree for step in steps[1:])


def _degrees(model: KernelModel, costs: SubspaceCosts, k: int) -> list[int]:
    """Of expansions of the only function that could pay beside its sums."""
    if model.n_decisions > 1:
        return []
    most = _WORTHWHILE * float(costs.of_stage(k)[0])
    return [degree for degree in _DEGREES if float(costs.of_expansion(k, degree)[0]) <= most]


def _expanded(group: GroupInSubspace, stage: SubspaceStage, degree: int, gamma: float, typical_s: float) -> Artifact:
    """The function on the subspace, expanded about the center."""
    function = group.on_subspace(stage, gamma)
    origin = np.zeros(stage.n_coordinates, np.float32)
    found = expand_and_certify(function, origin[np.newaxis], degree, typical_s=np.array([typical_s]), directions=False)
    expanded = Expanded(origin[np.newaxis], degree, (found[0],), (found[1],))
    return build(function, "approximate", Frame(origin, "origin", *sv_norms(function, origin)), expanded)


def _values(expansion: Artifact, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Of an expansion, with bounds."""
    values, bounds = Evaluator(expansion, n_jobs=-1).evaluate(np.ascontiguousarray(rows), VALUES | BOUNDS)
    return values.ravel(), bounds.ravel()


def _most_stages(model: KernelModel) -> int:
    """Rows of a class that a stage leaves open are few, and make no full blocks."""
    return _MOST_STAGES if model.n_decisions == 1 else _MOST_STAGES_OF_CLASSES


def _work(lists: list[Lists], d: int, numbers: list[int]) -> float:
    """Operations that bases and stages take."""
    of_matrices = sum(
        float(len(group.own) + len(other)) ** 2 * 2.0 * min(d, len(group.own) + len(other)) + 2.0 * d**2 * 50.0
        for group in lists
        for other in group.others
    )
    return 4.0 * of_matrices * (len(numbers) + 1)


def _certified(
    model: KernelModel,
    groups: dict[int, GroupInSubspace],
    stages: dict[int, SubspaceStage],
    rows: FloatArray,
    classes: npt.NDArray[np.intp],
    shrunk: FloatArray,
    tolerance: float,
    expanded: tuple[FloatArray, FloatArray] | None = None,
) -> npt.NDArray[np.bool_]:
    """Which rows, less the center, a stage settles, if values are smaller by so much."""
    found = np.ones(len(rows), bool)
    for w, group in groups.items():
        mine = classes == w
        for f, (sums, bounds) in enumerate(group.judged(stages[w], rows[mine], expanded)):
            settled = bounds <= tolerance
            if model.task != "regression":
                values = sums + model.intercept[group.lists.decisions[f]]
                settled &= shrunk[mine] * np.abs(values) > bounds
            found[mine] &= settled
    return found


def _cost(
    costs: SubspaceCosts,
    chain: tuple[_Step, ...],
    certified: dict[_Step, npt.NDArray[np.bool_]],
    classes: npt.NDArray[np.intp],
) -> float:
    """Of a row on average."""
    open_rows = np.ones(len(classes), bool)
    total = 0.0
    for step in chain:
        of_step = costs.of_expansion(*step) if step.degree else costs.of_stage(step.n_coordinates)
        total += float(of_step[classes[open_rows]].sum())
        open_rows &= ~certified[step]
    total += float(costs.behind[classes[open_rows]].sum())
    return costs.fixed + (1.0 + costs.misses) * total / len(classes)

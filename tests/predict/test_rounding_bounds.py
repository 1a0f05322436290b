"""Bounds of rounding errors are at least the sums of their derivations (cpp/include/approxsvm/bounds).

Real errors are far below such bounds, so no test of errors notices a missing term. In each model one term dominates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from conftest import EVERYTHING
from forced_subspaces import in_subspaces
from scipy.spatial.distance import cdist

import approxsvm
from approxsvm import KernelModel
from approxsvm.artifact.writer import input_scale_for
from approxsvm.expansion.gram import one_by_one
from approxsvm.expansion.subspace import GroupInSubspace, Lists
from approxsvm.runtime.evaluator import LABELS, STAGE_NUMBERS, STAGES, Evaluator

Rows = npt.NDArray[np.float64]
U, U64 = 2.0**-24, 2.0**-53
# Support vectors in a register tile; so many tiles that their sums are added up in float32 have 64.
TILE_ROWS = {"avx512": 8, "avx2": 4, "baseline": 4}


def machine(vectors: Rows, gamma: float, coef: Any = 1.0) -> KernelModel:
    """Vectors x and -x, so that their mean is the origin; an intercept that makes every label certain."""
    both = np.vstack([vectors, -vectors])
    coefficients = coef * np.random.default_rng(0).uniform(0.5, 1.0, (1, len(both)))
    labels, counts = np.arange(2), np.array([len(vectors)] * 2)
    return KernelModel("classification", both, coefficients, np.array([1.0]), gamma, labels, counts)


def on_sphere(radius: float, n: int = 40, d: int = 3) -> Rows:
    x = np.random.default_rng(1).normal(size=(n, d))
    return np.asarray(radius * x / np.linalg.norm(x, axis=1, keepdims=True))


def depth(n_features: int) -> int:
    """Return the summation depth of an inner product of few features."""
    return n_features + 1


def parts(model: KernelModel, rows: Rows) -> tuple[Rows, Rows, Rows, float]:
    """Return h, S = sum |a_i| K_i, H = sum |a_i| h_i K_i and A1."""
    x, moduli = np.asarray(model.support_vectors), np.abs(model.dual_coef[0])
    kernel = np.exp(-model.gamma * cdist(rows, x, "sqeuclidean"))
    h = model.gamma * np.square(rows).sum(axis=1)
    return h, kernel @ moduli, kernel @ (moduli * model.gamma * np.square(x).sum(axis=1)), float(moduli.sum())


SPHERE = on_sphere(1.0)
ENGINE = {
    "kernel values near 1": (machine(SPHERE, 1e-8), SPHERE[:9]),
    "distances": (machine(SPHERE, 8.0), 1.001 * SPHERE[:9]),
    "row at the center": (machine(SPHERE, 8.0), np.zeros((1, 3))),
    "row far from near vectors": (machine(0.1 * SPHERE, 1.0), 0.7 * SPHERE[:9]),
    "rounded row": (machine(0.1 * SPHERE, 1.0), 14.0 * SPHERE[:9]),
}


@pytest.mark.parametrize("name", ENGINE)
def test_sums_of_the_engine(target: str, name: str) -> None:
    model, rows = ENGINE[name]
    h, s, weighted, a1 = parts(model, rows)
    evaluator = Evaluator(approxsvm.compile(model, mode="exact").artifact)
    for form in (rows, *(rows[i : i + 1] for i in range(len(rows)))):
        _, bounds, stages = evaluator.evaluate(form, EVERYTHING, "settled")
        own = slice(None) if form is rows else [int(np.flatnonzero((rows == form).all(axis=1))[0])]
        kernels = 1.05 * (4.25 * U * (depth(3) + 8) * (weighted + h * s) + 6.1 * U * s)
        moved = 2.0 * 0.606 * np.sqrt(2.0 * h) * U * a1
        assert (np.asarray(stages) == STAGES.index("float32")).all()
        assert (np.ravel(bounds) >= 0.999 * (kernels + moved)[own]).all()
        assert (np.ravel(bounds) <= 3.0 * (kernels + moved + 3.0 * U * a1)[own]).all()
    _, bounds, _ = evaluator.evaluate(rows, EVERYTHING, "exact")
    assert (np.ravel(bounds) >= model.n_sv * U64 * s).all()


@pytest.mark.parametrize("gamma", [3e4, 1e9])
def test_cancellation_in_distances_is_left_to_float64(target: str, gamma: float) -> None:
    model = machine(SPHERE, gamma)
    rows = np.vstack([SPHERE, SPHERE * (1.0 + 1e-6)])
    evaluator = Evaluator(approxsvm.compile(model, mode="exact").artifact)
    _, s, _, _ = parts(model, rows)
    for form in (rows, rows[:1]):
        values, bounds, stages = evaluator.evaluate(form, EVERYTHING, "settled")
        assert (np.abs(np.ravel(values) - 1.0 - s[: len(form)]) <= np.ravel(bounds) + 1e-12).all()
        assert (np.asarray(stages) >= STAGES.index("float64")).all()


PLANE = np.pad(on_sphere(1.0, 40, 4), ((0, 0), (0, 6)))  # in four coordinates of ten
PAIRS = np.vstack([PLANE, PLANE])
SIGNS = np.tile(np.repeat([1.0 + 1e-5, -1.0], len(PLANE)), 2)  # the rest has the gradients that a basis needs


@pytest.mark.parametrize("on_grid", [False, True])
@pytest.mark.parametrize("gamma", [1e-8, 1.0, 4.0])
@pytest.mark.parametrize("cancels", [True, False])
def test_sums_in_few_coordinates(target: str, cancels: bool, gamma: float, on_grid: bool) -> None:
    """All vectors lie in the subspace. Functions near 0 have errors of sums alone, others errors of rounded rows."""
    if target == "baseline" and on_grid:
        pytest.skip("this target has floats alone")
    if cancels:
        one = machine(PLANE, gamma).dual_coef[0, : len(PLANE)]
        model = machine(PAIRS, gamma)
        model = KernelModel(
            model.task, model.support_vectors, (SIGNS * np.tile(one, 4))[np.newaxis], model.intercept, gamma,
            model.labels, model.n_support,
        )  # fmt: skip
    else:
        model = machine(PLANE, gamma)
    rows = 0.9 * PLANE[:9] + 0.05 * PLANE[9:18]
    h, s, _, a1 = parts(model, rows)
    (lists,) = Lists.of(model)
    scale = input_scale_for(gamma)
    group = GroupInSubspace(model, lists, np.zeros(10, np.float32), 4, 0, scale if on_grid else None)
    stage = group.stage(4, scale, one_by_one)
    assert stage is not None
    known = stage.known[0]
    evaluator = Evaluator(in_subspaces(model, (4,), on_grid=on_grid))
    furthest = np.sqrt(gamma)
    reach = np.sqrt(h) + np.minimum(np.sqrt(h) + 4.0, furthest)
    of_sums = (TILE_ROWS[target] + 64 // TILE_ROWS[target] + 2) * U
    rounded = 64.5 * U if on_grid else 2.125 * U * (depth(4) + 8) * reach**2
    listed = s * (1.05 * (rounded + 6.1 * U) + of_sums)
    moved = U * (1.0 + 2.0 * (depth(10) + 4)) * np.sqrt(2.0 * h)
    off = U * (depth(10) + 4 + depth(4) + 4) * h + np.sqrt(2.0 * h) * moved
    y = rows @ group.basis * np.sqrt(2.0 * gamma)
    steps = y / group._step_of_rows if on_grid else 0.0 * y
    beside = np.linalg.norm(steps - np.rint(steps), axis=1) * group._step_of_rows
    needed = listed + known.value_error + on_grid * known.grid_error + known.total * (moved + 0.99 * beside) + s * off
    for form in (rows, rows[:1]):
        _, bounds, stages = evaluator.evaluate(form, EVERYTHING, "settled")
        assert (np.asarray(stages) == STAGES.index("subspace")).all()
        assert (np.ravel(bounds) >= 0.999 * needed[: len(form)]).all()
        assert (np.ravel(bounds) <= 1.2 * needed[: len(form)] + 1e-9 * a1).all()


def pairs(vectors: Rows, gamma: float, margin: float, n_labels: int) -> KernelModel:
    """Classes of the same vectors and weights: the value of a pair is its intercept, `margin` for the first pair."""
    n, rng = len(vectors), np.random.default_rng(0)
    of_class, other = np.repeat(np.arange(n_labels), n), np.arange(n_labels - 1)[:, np.newaxis]
    signs = np.where(other + (other >= of_class) > of_class, 1.0, -1.0)
    intercept = np.ones(n_labels * (n_labels - 1) // 2)
    intercept[0] = margin
    coef = signs * np.tile(rng.uniform(0.5, 1.0, n).astype(np.float32), n_labels)
    # A thousandth differs, so that functions have gradients.
    coef[:, ::2] *= 1.0 + 2.0**-40
    labels, counts = np.arange(n_labels), np.full(n_labels, n)
    return KernelModel("classification", np.tile(vectors, (n_labels, 1)), coef, intercept, gamma, labels, counts)


def stages_of(artifact: Any, row: Rows, copies: int) -> npt.NDArray[np.uint8]:
    _, stages = Evaluator(artifact).evaluate(np.tile(row, (copies, 1)), LABELS | STAGE_NUMBERS, "settled")
    return np.asarray(stages)


NEAR: dict[str, tuple[Rows, float, Rows]] = {
    "kernel values near 1": (SPHERE, 1e-8, SPHERE[:1]),
    "distances": (SPHERE, 8.0, 1.001 * SPHERE[:1]),
    "rounded row": (0.1 * SPHERE, 1.0, 14.0 * SPHERE[:1]),
}


@pytest.mark.parametrize("copies", [1, 3, 100])
@pytest.mark.parametrize("n_labels", [3, 8])
@pytest.mark.parametrize("name", NEAR)
def test_a_margin_within_the_bound_is_left_to_float64(target: str, name: str, n_labels: int, copies: int) -> None:
    """Labels alone, in the engine of all pairs, over the lists of a winner, in blocks and for one row."""
    x, gamma, row = NEAR[name]
    vectors = np.vstack([x, -x])
    one = pairs(vectors, gamma, 1.0, 2)
    h, s, weighted, a1 = (float(np.ravel(part)[0]) for part in parts(one, row))
    moved = 2.0 * 0.606 * np.sqrt(2.0 * h) * U * a1
    in_engine = 1.05 * (4.25 * U * (depth(3) + 8) * (weighted + h * s) + 6.1 * U * s)
    reach = np.sqrt(h) + min(np.sqrt(h) + 4.0, np.sqrt(gamma) * float(np.linalg.norm(x[0])))
    of_sums = (TILE_ROWS[target] + 64 // TILE_ROWS[target] + 2) * U
    in_lists = s * (1.05 * (2.125 * U * (depth(3) + 8) * reach**2 + 6.1 * U) + of_sums)
    margin = 0.97 * (min(in_engine, in_lists) + moved)
    for sign in (1.0, -1.0):
        model = pairs(vectors, gamma, sign * margin, n_labels)
        artifact = approxsvm.compile(model, mode="exact").artifact
        assert (stages_of(artifact, row, copies) >= STAGES.index("float64")).all()
        certain = approxsvm.compile(pairs(vectors, gamma, sign * 4.0 * (margin + 3.0 * U * a1), n_labels), mode="exact")
        assert (stages_of(certain.artifact, row, copies) == STAGES.index("float32")).all()


@pytest.mark.parametrize("copies", [1, 3, 100])
@pytest.mark.parametrize("n_labels", [3, 8])
def test_a_margin_within_the_bound_is_not_decided_in_few_coordinates(target: str, n_labels: int, copies: int) -> None:
    if target == "baseline":
        pytest.skip("this target has floats alone")
    vectors, gamma, row = np.vstack([PLANE, -PLANE]), 1e-8, PLANE[:1]
    _, s, _, a1 = (float(np.ravel(part)[0]) for part in parts(pairs(vectors, gamma, 1.0, 2), row))
    needed = s * (1.05 * (64.5 + 6.1) + TILE_ROWS[target] + 64 // TILE_ROWS[target] + 2) * U
    for factor, is_decided in ((0.97, False), (4.0, True)):
        artifact = in_subspaces(pairs(vectors, gamma, factor * needed, n_labels), (4,), on_grid=True, X=vectors[:9])
        assert ((stages_of(artifact, row, copies) == STAGES.index("subspace")) == is_decided).all()
    assert needed < 1e-3 * a1

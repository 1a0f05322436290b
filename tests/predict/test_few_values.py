"""Support vectors on a grid of few values: integer distances and lookups for rows on it, the engines for others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from held_values import assert_values_are_held
from scipy.sparse import csr_array

import approxsvm
from approxsvm import KernelModel
from approxsvm.reference.definition import definition_of
from approxsvm.runtime.evaluator import BOUNDS, VALUES, Evaluator

Rows = npt.NDArray[np.float64]
FEW = ("float32", "float64")


def on_grid(n_rows: int, n_values: list[int], seed: int, origin: float = 0.0, step: float = 1.0) -> Rows:
    """Return rows whose feature j has n_values[j] possible values."""
    steps = np.random.default_rng(seed).integers(0, n_values, (n_rows, len(n_values)))
    return origin + steps * step


def model_of(vectors: Any, n_labels: int = 2, gamma: float = 0.05, coef: Any = None, seed: int = 0) -> KernelModel:
    """Return a model with random coefficients; in each pair, a class's coefficients share a sign, as after training."""
    rng = np.random.default_rng(seed)
    n_sv = vectors.shape[0]
    counts = np.full(n_labels, n_sv // n_labels)
    counts[-1] += n_sv - counts.sum()
    if coef is None:
        coef = rng.normal(size=(n_labels - 1, n_sv))
        if n_labels > 2:
            of_class = np.repeat(np.arange(n_labels), counts)
            other = np.arange(n_labels - 1)[:, np.newaxis]
            coef = np.abs(coef) * np.where(other + (other >= of_class) > of_class, 1.0, -1.0)
    return KernelModel(
        task="classification",
        support_vectors=vectors,
        dual_coef=coef,
        intercept=0.1 * rng.normal(size=n_labels * (n_labels - 1) // 2),
        labels=np.arange(n_labels),
        n_support=counts,
        gamma=gamma,
    )


def exact(model: KernelModel) -> Evaluator:
    return Evaluator(approxsvm.compile(model, mode="exact").artifact)


def goes_by_few_values(evaluator: Evaluator) -> bool:
    return evaluator.native.few_values_work > 0.0


def rows_about(vectors: Rows, n_values: list[int], origin: float, step: float) -> Rows:
    """Return rows on the grid, at its edges and beyond, one unit in the last place off the grid, and far off it."""
    inside = on_grid(12, n_values, 5, origin, step)
    low, high = vectors.min(axis=0), vectors.max(axis=0)
    beside, below, above, minus = inside[:6].copy(), inside[:6].copy(), inside[:6].copy(), inside[:6].copy()
    beside[:, 0] = np.nextafter(beside[:, 0], np.inf)
    beside[3:, -1] = np.nextafter(beside[3:, -1], -np.inf)
    below[:, 0], above[:, -1] = low[0] - step, high[-1] + step
    minus[minus == 0.0] = -0.0
    half = inside[:6] + 0.5 * step
    far = np.vstack([np.full_like(low, 1e30), np.full_like(low, -1e160), 1e4 * (inside[0] + 1.0)])
    return np.vstack([inside, low, high, vectors[:5], beside, below, above, minus, half, far])


GRIDS = {
    "binary": ([2] * 40, 0.0, 1.0),
    "signs": ([2] * 40, -1.0, 2.0),
    "one step of LIBSVM's": ([2] * 40, 0.0, 0.18257418583505536),
    "thirds": ([4] * 24, 0.0, 1.0 / 3.0),
    "one to four": ([4] * 33, 1.0, 1.0),
    "a constant column": ([1, 4, 2] * 11, 0.0, 1.0),
    "mixed": ([2, 5, 3, 16] * 3, -2.0, 0.5),
    "far from the origin": ([2] * 40, 2.0**40, 1.0),
}


@pytest.mark.parametrize("name", GRIDS)
def test_values_on_and_beside_grids(target: str, name: str) -> None:
    n_values, origin, step = GRIDS[name]
    for n_sv, n_labels in ((70, 3), (1090, 2)):
        vectors = on_grid(n_sv, n_values, n_sv, origin, step)
        model = model_of(vectors, n_labels, gamma=0.5 / len(n_values) / step**2)
        evaluator = exact(model)
        assert goes_by_few_values(evaluator)
        assert_values_are_held(model, rows_about(vectors, n_values, origin, step), evaluator)


def of_sizes(scale: float) -> KernelModel:
    rng = np.random.default_rng(1)
    coef = scale * rng.choice([-1.0, 1.0], (1, 150)) * 10.0 ** rng.uniform(-40, 0, (1, 150))
    return replace(model_of(BINARY, coef=coef), intercept=np.zeros(1))


def of_unlike_pairs(ratio: float) -> KernelModel:
    """Return a model in which a pair's coefficients, stored relative to the largest coefficient of all, may vanish."""
    model = model_of(BINARY, 3, gamma=0.3)
    coef = np.array(model.dual_coef)
    coef[1, model.n_support[0] :] *= ratio
    return replace(model, dual_coef=coef, intercept=np.array([-0.5, -0.5, -1e-5 * ratio]))


def so_wide_that_kernels_are_those_of_equal_rows() -> KernelModel:
    signs = on_grid(32, [2] * 40, 12, -1.0, 2.0)
    coef = np.where(np.arange(64) % 3, 1.0, -1.0)[np.newaxis]
    return model_of(2.0**480 * np.vstack([signs, -signs]), gamma=2.0**200, coef=coef)


BINARY = on_grid(150, [2] * 40, 1)
MODELS = {
    **{f"gamma {gamma}": model_of(BINARY, 2, gamma) for gamma in (2.0**-200, 1e-9, 60.0, 2.0**200)},
    **{f"gamma {gamma} of three": model_of(BINARY, 3, gamma) for gamma in (2.0**-200, 3.0, 800.0)},
    **{f"sign {sign}": model_of(BINARY, coef=np.full((1, 150), sign)) for sign in (1.0, -1.0, 0.0)},
    **{f"scale {scale}": of_sizes(scale) for scale in (1e-300, 1e-5, 1e250)},
    **{f"ratio {ratio}": of_unlike_pairs(ratio) for ratio in (1e-25, 1e-38, 1e-100)},
    "wide": so_wide_that_kernels_are_those_of_equal_rows(),
    "one vector": model_of(BINARY[:1]),
}
BY_THE_ENGINE = {
    "both signs in a pair": model_of(BINARY, 3, coef=np.random.default_rng(2).normal(size=(2, 150))),
    "many values": model_of(on_grid(80, [200] * 30, 0)),
    "normal": model_of(np.random.default_rng(0).normal(size=(80, 30))),
    "standardized categories": model_of(BINARY * np.linspace(1.0, 2.0, 40) - 0.3),
}


@pytest.mark.parametrize("name", [*MODELS, *BY_THE_ENGINE])
def test_hostile_models(target: str, name: str) -> None:
    """Check single vectors, tables that underflow, and coefficients that are 0, of one sign, or very unequal."""
    model = (MODELS | BY_THE_ENGINE)[name]
    with np.errstate(over="ignore"):
        evaluator = exact(model)
    if name != "one vector":
        assert goes_by_few_values(evaluator) == (name in MODELS)
    rows = np.asarray(model.support_vectors)[:20]
    assert_values_are_held(
        model, rows if rows.shape[1] != 40 else np.vstack([rows, on_grid(20, [2] * 40, 2)]), evaluator
    )


def test_sparse_rows_with_unknown_features(target: str) -> None:
    """As in LIBSVM, values beyond the model's features increase the distance to all support vectors."""
    vectors = on_grid(150, [2] * 40, 11)
    model = model_of(vectors)
    evaluator = exact(model)
    wide = csr_array(np.hstack([on_grid(30, [2] * 40, 12), on_grid(30, [3] * 4, 13)]))
    found, bounds = evaluator.evaluate(wide, VALUES | BOUNDS, "settled")
    known = replace(model, support_vectors=np.hstack([vectors, np.zeros((150, 4))]))
    expected = definition_of(known).values(wide.toarray()).ravel()
    assert (np.abs(found - expected) <= bounds + 1e-12).all()


def test_the_hostile_find_no_row_beyond_its_bound(target: str) -> None:
    """Sums nearly cancel, and rows move step by step to where the error is closest to its bound."""
    rng = np.random.default_rng(16)
    n_values = [2] * 36
    worst = 0.0
    for trial in range(3):
        gamma = 10.0 ** rng.uniform(-3, 1)
        vectors = on_grid(400, n_values, 20 + trial)
        vectors[200:] = vectors[:200]
        vectors[200:, 0] = 1.0 - vectors[200:, 0]  # nearly equal, with the opposite sign
        coef = rng.uniform(0.5, 1.0, 200)
        model = model_of(vectors, gamma=gamma, coef=np.concatenate([coef, -coef])[np.newaxis])
        evaluator = exact(model)
        assert goes_by_few_values(evaluator)
        rows = on_grid(60, n_values, 40 + trial)
        for _ in range(8):
            found, bounds = evaluator.evaluate(rows, VALUES | BOUNDS, "settled")
            ratio = np.abs(found - definition_of(model).values(rows).ravel()) / bounds
            worst = max(worst, float(ratio.max()))
            best = rows[np.argsort(ratio)[-20:]]
            flips = rng.random((2, *best.shape)) < 0.05
            rows = np.vstack([best, *(np.where(flip, 1.0 - best, best) for flip in flips)])
    assert 0.0 < worst < 1.0


def test_plans_know_what_few_values_take(target: str) -> None:
    """If an expansion certifies few rows, the plan is the exact engine, without subspaces or a network before it."""
    vectors = on_grid(500, [2] * 60, 30)
    compiled = approxsvm.compile(model_of(vectors, gamma=1.0), vectors[:250])
    evaluator = Evaluator(compiled.artifact)
    assert goes_by_few_values(evaluator)
    evaluator.predict(on_grid(200, [2] * 60, 31))
    settled = {stage for stage, n in evaluator.rows_per_stage.items() if n}
    assert settled <= {"expansion", *FEW}

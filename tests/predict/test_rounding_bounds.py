"""Bounds on rounding errors are at least as large as the sums in their derivations (cpp/include/approxsvm/bounds).

Real errors are far below such bounds, so no test of errors would notice a missing term. In each model, one term
dominates.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from conftest import EVERYTHING
from forced_subspaces import in_subspaces
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

import approxsvm
from approxsvm import KernelModel
from approxsvm.artifact.writer import input_scale_for
from approxsvm.expansion.gram import one_by_one
from approxsvm.expansion.subspace import GroupInSubspace, Lists
from approxsvm.frontends import read_any
from approxsvm.ir.cosine_model import CosineModel
from approxsvm.ir.outputs import Outputs
from approxsvm.runtime.evaluator import LABELS, STAGE_NUMBERS, STAGES, Evaluator

Rows = npt.NDArray[np.float64]
U, U64 = 2.0**-24, 2.0**-53
# Support vectors per register tile; sums over up to 64 vectors are added in float32.
TILE_ROWS = {"avx512": 8, "avx2": 4, "baseline": 4}


def machine(vectors: Rows, gamma: float, coef: Any = 1.0) -> KernelModel:
    """Return a model with vectors x and -x (their mean is the origin) whose intercept makes every label certain."""
    both = np.vstack([vectors, -vectors])
    coefficients = coef * np.random.default_rng(0).uniform(0.5, 1.0, (1, len(both)))
    labels, counts = np.arange(2), np.array([len(vectors)] * 2)
    return KernelModel("classification", both, coefficients, np.array([1.0]), gamma, labels, counts)


def on_sphere(radius: float, n: int = 40, d: int = 3) -> Rows:
    x = np.random.default_rng(1).normal(size=(n, d))
    return np.asarray(radius * x / np.linalg.norm(x, axis=1, keepdims=True))


def depth(n_features: int) -> int:
    """Return the summation depth of an inner product with few features."""
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
    "row at the center of near vectors": (machine(SPHERE, 1.0), np.zeros((1, 3))),
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
        values, bounds, stages = evaluator.evaluate(form, EVERYTHING, "exact")
        assert (np.abs(np.ravel(values) - 1.0 - s[: len(form)]) <= np.ravel(bounds) + 1e-12).all()
        assert gamma < 1e9 or (np.asarray(stages) == STAGES.index("definition")).all()
        share = s[: len(form)] / np.abs(model.dual_coef).sum()
        of_sums = 9.0 * -share * np.log(share) + (model.n_sv + 6.0) * share
        assert gamma < 1e9 or (np.ravel(bounds) >= of_sums * np.abs(model.dual_coef).sum() * U64).all()


PLANE = np.pad(on_sphere(1.0, 40, 4), ((0, 0), (0, 6)))  # in four of ten coordinates
PAIRS = np.vstack([PLANE, PLANE])
SIGNS = np.tile(np.repeat([1.0 + 1e-5, -1.0], len(PLANE)), 2)  # the difference yields the gradients that a basis needs


@pytest.mark.parametrize("gamma", [1e-8, 1.0, 4.0])
@pytest.mark.parametrize("cancels", [True, False])
def test_sums_in_few_coordinates(target: str, cancels: bool, gamma: float) -> None:
    """All vectors lie in the subspace. Functions near 0 have errors only from sums; others, also from rounded rows."""
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
    group = GroupInSubspace(model, lists, np.zeros(10, np.float32), 4, random_state=0)
    stage = group.stage(4, scale, one_by_one)
    assert stage is not None
    known = stage.known[0]
    evaluator = Evaluator(in_subspaces(model, (4,)))
    furthest = np.sqrt(gamma)
    reach = np.sqrt(h) + np.minimum(np.sqrt(h) + 4.0, furthest)
    of_sums = (TILE_ROWS[target] + 64 // TILE_ROWS[target] + 2) * U
    listed = s * (1.05 * (2.125 * U * (depth(4) + 8) * reach**2 + 6.1 * U) + of_sums)
    moved = U * (1.0 + 2.0 * (depth(10) + 4)) * np.sqrt(2.0 * h)
    off = U * (depth(10) + 4 + depth(4) + 4) * h + np.sqrt(2.0 * h) * moved
    needed = listed + known.value_error + known.total * moved + s * off
    for form in (rows, rows[:1]):
        _, bounds, stages = evaluator.evaluate(form, EVERYTHING, "settled")
        assert (np.asarray(stages) == STAGES.index("subspace")).all()
        assert (np.ravel(bounds) >= 0.999 * needed[: len(form)]).all()
        assert (np.ravel(bounds) <= 1.2 * needed[: len(form)] + 1e-9 * a1).all()


def pairs(vectors: Rows, gamma: float, margin: float, n_labels: int) -> KernelModel:
    """Return classes with equal vectors and weights; a pair's value is its intercept (`margin` for the first pair)."""
    n, rng = len(vectors), np.random.default_rng(0)
    of_class, other = np.repeat(np.arange(n_labels), n), np.arange(n_labels - 1)[:, np.newaxis]
    signs = np.where(other + (other >= of_class) > of_class, 1.0, -1.0)
    intercept = np.ones(n_labels * (n_labels - 1) // 2)
    intercept[0] = margin
    coef = signs * np.tile(rng.uniform(0.5, 1.0, n).astype(np.float32), n_labels)
    # Half of the coefficients differ slightly so that functions have gradients.
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
    "rounded vectors": (SPHERE, 10.0, np.zeros((1, 3))),
}


@pytest.mark.parametrize("copies", [1, 3, 100])
@pytest.mark.parametrize("n_labels", [3, 8])
@pytest.mark.parametrize("name", NEAR)
def test_a_margin_within_the_bound_is_left_to_float64(target: str, name: str, n_labels: int, copies: int) -> None:
    """Only labels are requested, from the engines for all pairs and for a winner's lists, in blocks and for one row."""
    x, gamma, row = NEAR[name]
    vectors = np.vstack([x, -x])
    one = pairs(vectors, gamma, 1.0, 2)
    h, s, weighted, a1 = (float(np.ravel(part)[0]) for part in parts(one, row))
    moved = 2.0 * 0.606 * np.sqrt(2.0 * h) * U * a1
    in_engine = 1.05 * (4.25 * U * (depth(3) + 8) * (weighted + h * s) + 6.1 * U * s)
    reach = np.sqrt(h) + min(np.sqrt(h) + 4.0, np.sqrt(gamma) * float(np.linalg.norm(x[0])))
    of_sums = (TILE_ROWS[target] + 64 // TILE_ROWS[target] + 2) * U
    in_lists = s * (1.05 * (2.125 * U * (depth(3) + 8) * reach**2 + 6.1 * U) + of_sums)
    scaled = vectors * input_scale_for(gamma)
    narrowed = np.linalg.norm(scaled.astype(np.float32) - scaled, axis=1).sum() / input_scale_for(gamma)
    moved += 2.0 * 0.5 * 0.606 * np.sqrt(2.0 * gamma) * narrowed
    margin = 0.97 * (min(in_engine + (copies == 1 and n_labels == 8) * U * s, in_lists) + moved)
    for sign in (1.0, -1.0):
        model = pairs(vectors, gamma, sign * margin, n_labels)
        artifact = approxsvm.compile(model, mode="exact").artifact
        assert (stages_of(artifact, row, copies) >= STAGES.index("float64")).all()
        certain = approxsvm.compile(pairs(vectors, gamma, sign * 4.0 * (margin + 3.0 * U * a1), n_labels), mode="exact")
        assert (stages_of(certain.artifact, row, copies) == STAGES.index("float32")).all()


@pytest.mark.parametrize("copies", [1, 3, 100])
@pytest.mark.parametrize("n_labels", [3, 8])
def test_a_margin_within_the_bound_is_not_decided_in_few_coordinates(target: str, n_labels: int, copies: int) -> None:
    vectors, gamma, row = np.vstack([PLANE, -PLANE]), 1e-8, PLANE[:1]
    _, s, _, a1 = (float(np.ravel(part)[0]) for part in parts(pairs(vectors, gamma, 1.0, 2), row))
    needed = s * (1.05 * 6.1 + TILE_ROWS[target] + 64 // TILE_ROWS[target] + 2) * U
    for factor, is_decided in ((0.97, False), (4.0, True)):
        artifact = in_subspaces(pairs(vectors, gamma, factor * needed, n_labels), (4,), X=vectors[:9])
        assert ((stages_of(artifact, row, copies) == STAGES.index("subspace")) == is_decided).all()
    assert needed < 1e-3 * a1


def by_every_layout(fast: Any, rows: Rows, values: str) -> list[tuple[Rows, Any]]:
    """Return bounds and stages for dense batches, for sparse rows, and for single rows."""
    found = [fast.evaluate(form(rows), EVERYTHING, values)[1:] for form in (np.asarray, csr_array)]
    return found + [fast.evaluate(row[np.newaxis], EVERYTHING, values)[1:] for row in rows[:3]]


def artifacts(model: Any) -> list[Any]:
    """Return artifacts with the exact engine, with expansions of several degrees, and with sums in few coordinates."""
    found = [approxsvm.compile(model, mode="exact").artifact]
    for degree, n_centers in ((2, 1), (4, 1), (2, 3)):
        found.append(approxsvm.compile(model, degree=degree, n_centers=n_centers).artifact)
    return [*found, in_subspaces(model, (2,))] if model.n_decisions == 1 else found


EACH = Outputs(label_rule="scores", decision_shape="each")


def functions(n: int, gamma: float, **more: Any) -> KernelModel:
    """Return a model with one function per class, whose values are far apart at most rows."""
    rng = np.random.default_rng(n)
    about = {"labels": np.arange(n), "n_support": np.empty(0, np.int64), "outputs": EACH} if n > 1 else {}
    task = "classification" if n > 1 else "regression"
    return KernelModel(task, rng.normal(size=(40, 3)), rng.normal(size=(n, 40)), np.zeros(n), gamma, **about, **more)


@pytest.mark.parametrize("n", [1, 4])
def test_errors_of_the_model_are_part_of_each_bound(target: str, n: int) -> None:
    """The frontend assigns each function an error, in comparison with which rounding is negligible."""
    error = 3.0 + np.arange(n)
    model = functions(n, 0.3, value_error=error)
    if n == 1:
        model = replace(model, task="classification", labels=np.arange(2), n_support=np.array([20, 20]))
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(20, 3))
    cosines = CosineModel(
        "classification" if n > 1 else "regression",
        frequencies=rng.normal(size=(9, 3)),
        phases=rng.uniform(-6.0, 6.0, 9),
        coef=rng.normal(size=(n, 9)),
        intercept=np.zeros(n),
        labels=np.arange(n) if n > 1 else np.empty(0),
        outputs=EACH if n > 1 else Outputs(),
        value_error=error,
    )
    others = [replace(model, degree=3, coef0=0.5), replace(model, degree=1), cosines]
    for artifact in [*artifacts(model), *(approxsvm.compile(other, mode="exact").artifact for other in others)]:
        for values in ("settled", "exact"):
            for bounds, _ in by_every_layout(Evaluator(artifact), rows, values):
                assert (bounds.reshape(-1, n) >= error).all()


RAW = 1e12 + np.random.default_rng(8).normal(size=(60, 3))
SCALER = MinMaxScaler().fit(RAW)
# Products near 1e12 are rounded, by less than half a unit and by more than 0.4.
MOVED = 0.4 * np.sqrt(3.0) * 1e12 * np.abs(SCALER.scale_).min() * U64


@pytest.mark.parametrize("gamma", [0.1, 40.0])
@pytest.mark.parametrize("n", [1, 4])
def test_errors_of_mapped_rows_are_part_of_each_bound(target: str, n: int, gamma: float) -> None:
    X = SCALER.transform(RAW)
    y = np.digitize(X[:, 0], np.linspace(0.0, 1.0, 5)[1:-1]) if n > 1 else X[:, 0] > X[:, 1]
    inner = OneVsRestClassifier(SVC(gamma=gamma)) if n > 1 else SVC(gamma=gamma)
    model = read_any(make_pipeline(SCALER, inner.fit(X, y)))
    x, coef = np.asarray(model.support_vectors), [model.coefficients(k) for k in range(model.n_decisions)]
    squares = cdist(X[:20], x, "sqeuclidean")
    slopes = 2.0 * gamma * np.sqrt(squares) * np.exp(-gamma * squares)
    of_settled = 0.857 * np.sqrt(gamma) * MOVED * np.abs(coef).sum(axis=1)
    for artifact in artifacts(model):
        for values, least in (("settled", of_settled), ("exact", 0.9 * MOVED * slopes @ np.abs(coef).T)):
            for bounds, _ in by_every_layout(Evaluator(artifact), RAW[:20], values):
                assert (bounds.reshape(-1, n) >= least[: len(bounds)] if values == "exact" else least).all()
    if n == 1:
        random = make_pipeline(SCALER, RBFSampler(gamma=gamma, random_state=0), LogisticRegression()).fit(RAW, y)
        cosines: Any = read_any(random)
        least = MOVED * np.abs(cosines.coef[0]) @ np.linalg.norm(cosines.frequencies, axis=1)
        for values in ("settled", "exact"):
            for bounds, _ in by_every_layout(Evaluator(approxsvm.compile(cosines).artifact), RAW[:20], values):
                assert (bounds >= 0.9 * least).all()


@pytest.mark.parametrize("copies", [1, 3, 100])
@pytest.mark.parametrize("n_labels", [3, 8])
def test_a_margin_within_the_error_of_mapped_rows_is_left_to_the_definition(
    target: str, n_labels: int, copies: int
) -> None:
    X = SCALER.transform(RAW)
    mapped: Any = read_any(make_pipeline(SCALER, SVC().fit(X, X[:, 0] > 0.5)))
    a1 = float(np.abs(pairs(X, 1.0, 1.0, 2).dual_coef).sum())
    model = replace(pairs(X, 1.0, 0.9 * 0.857 * MOVED * a1, n_labels), input_map=mapped.input_map)
    for artifact in (approxsvm.compile(model, mode="exact").artifact, in_subspaces(model, (2, 3))):
        assert (stages_of(artifact, RAW[:1], copies) == STAGES.index("definition")).all()


def test_intercepts_round(target: str) -> None:
    model = replace(machine(PLANE, 1.0), intercept=np.array([2.0**40]))
    rows = 0.9 * PLANE[:9]
    far = replace(machine(SPHERE, 1e9), intercept=np.array([2.0**40]))  # float64 is not accurate for this model
    for one, artifact in ((rows, in_subspaces(model, (4,))), (SPHERE, approxsvm.compile(far, mode="exact").artifact)):
        for values in ("settled", "exact"):
            for bounds, _ in by_every_layout(Evaluator(artifact), one, values):
                assert (bounds.ravel() >= 2.0**-11).all()


@pytest.mark.parametrize("n", [3, 12])
def test_rough_expansions_of_functions_are_not_trusted(target: str, n: int) -> None:
    model = functions(n, 0.7)
    rows = np.random.default_rng(9).normal(size=(300, 3))
    kernel = np.exp(-model.gamma * cdist(rows, np.asarray(model.support_vectors), "sqeuclidean"))
    expected = (kernel @ np.asarray(model.dual_coef).T).argmax(axis=1)
    for degree in (2, 4):
        fast = approxsvm.compile(model, degree=degree, n_centers=1)
        _, _, stages = fast._evaluator.evaluate(rows, EVERYTHING, "settled")
        assert (np.asarray(stages) >= STAGES.index("float32")).mean() > 0.3
        assert np.array_equal(fast.predict(rows), expected)
        assert np.array_equal([fast.predict_one(row) for row in rows], expected)


def test_values_beside_their_grid_are_part_of_bounds(target: str) -> None:
    """Thirds are rounded, and rows are so far from all vectors that no other error in the sums is as large."""
    rng = np.random.default_rng(2)
    x, rows = (rng.integers(0, 4, (n, 24)) * (1.0 / 3.0) for n in (60, 6))
    gap = float(abs(3 * Fraction(1.0 / 3.0) - 1))
    model = pairs(x, 40.0, 1.0, 2)
    evaluator = Evaluator(approxsvm.compile(model, mode="exact").artifact)
    assert evaluator.native.few_values_work > 0.0
    a1 = float(np.abs(model.dual_coef).sum())
    for values, stage in (("settled", "float32"), ("exact", "float64")):
        for bounds, stages in by_every_layout(evaluator, rows, values):
            assert (np.asarray(stages) == STAGES.index(stage)).all()
            assert (bounds.ravel() >= 0.99 * np.sqrt(80.0 / np.e) * 2.0 * gap * np.sqrt(24) * a1).all()

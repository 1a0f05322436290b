"""Values of random models are within their bounds, for every kind of function and for rows of every size and form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import EVERYTHING, random_model
from scipy.sparse import csr_array
from zoo import oracle

import approxsvm
from approxsvm import KernelModel
from approxsvm.artifact.polynomials import build_polynomial
from approxsvm.expansion import polynomial_form
from approxsvm.ir.cosine_model import CosineModel
from approxsvm.ir.outputs import Outputs
from approxsvm.runtime.evaluator import BOUNDS, VALUES, Evaluator

EACH = Outputs(label_rule="scores", decision_shape="each")


def machine(rng: Any, n: int = 4, **kernel: Any) -> KernelModel:
    """Return a model with one function per class, differing in size by up to 2^40; half of the terms are equal."""
    coef = rng.normal(size=(n, 24)) * 2.0 ** rng.integers(-20, 21, (n, 1))
    coef[:, ::2] = coef[:1, ::2]
    arguments = {"gamma": float(2.0 ** rng.integers(-4, 4)), "dual_coef": coef, "intercept": rng.normal(size=n)}
    more = {"labels": rng.permutation(n), "n_support": np.empty(0, np.int64), "outputs": EACH}
    return random_model(int(rng.integers(99)), n_sv=24, n_features=3, **arguments, **more, **kernel)


def cosines(rng: Any, n_functions: int, task: Any, gamma: float = 1.0, scale: float = 1.0) -> CosineModel:
    is_classified = task == "classification"
    coef = scale * rng.normal(size=(n_functions, 37)) * 2.0 ** rng.integers(-3, 4, (n_functions, 1))
    coef[:, 1:][rng.random((n_functions, 36)) < 0.1] = 0.0
    return CosineModel(
        task,
        frequencies=rng.normal(size=(37, 3)) * np.sqrt(2.0 * gamma),
        phases=rng.uniform(-6.0, 6.0, 37),
        coef=coef,
        intercept=scale * rng.normal(size=n_functions),
        labels=rng.permutation(n_functions) if is_classified else np.empty(0),
        outputs=EACH if is_classified else Outputs(),
        value_error=np.zeros(n_functions),
    )


def words(rng: Any, n_classes: int = 2, **kernel: Any) -> KernelModel:
    """Return a model with support vectors so sparse that they are stored by columns, some of which are frequent."""
    vectors = rng.normal(size=(90, 400)) * (rng.random((90, 400)) < np.repeat([0.3, 0.005], [4, 396]))
    n_pairs = n_classes * (n_classes - 1) // 2
    return KernelModel(
        "classification",
        csr_array(vectors),
        rng.normal(size=(n_classes - 1, 90)) * 2.0 ** rng.integers(-20, 21, 90),
        rng.normal(size=n_pairs),
        labels=np.arange(n_classes),
        n_support=np.full(n_classes, 90 // n_classes),
        **{"gamma": float(2.0 ** rng.integers(-4, 4)), **kernel},
    )


SIGMOID: dict[str, Any] = {"is_sigmoid": True, "coef0": -0.4}
MODELS: dict[str, tuple[Callable[[Any], Any], dict[str, Any]]] = {
    "Gaussians, exact": (machine, {"mode": "exact"}),
    "Gaussians about a center": (machine, {"degree": 2, "n_centers": 1}),
    "Gaussians about three": (machine, {"degree": 4, "n_centers": 3}),
    "Gaussians within a tolerance": (machine, {"degree": 2, "n_centers": 1, "tolerance": 1e-3}),
    "cubic": (lambda rng: machine(rng, degree=3, coef0=0.5), {}),
    "cubic of words": (lambda rng: words(rng, degree=3, coef0=0.5), {}),
    "cubics of words": (lambda rng: words(rng, 3, degree=3, coef0=0.5), {}),
    "sigmoids of words": (lambda rng: words(rng, 3, **SIGMOID), {}),
    "sigmoids": (lambda rng: machine(rng, **SIGMOID), {}),
    **{
        f"sigmoid of {gamma}": (lambda rng, g=gamma: random_model(3, gamma=g, n_features=3, **SIGMOID), {})
        for gamma in (-0.3, 1e-9, 40.0)
    },
    "cosines of classes": (lambda rng: cosines(rng, 12, "classification"), {}),
    "cosines of targets": (lambda rng: cosines(rng, 4, "regression"), {}),
    "cosines within a tolerance": (lambda rng: cosines(rng, 1, "regression"), {"tolerance": 0.1}),
    **{
        f"cosines of {gamma}": (lambda rng, g=gamma, s=scale: cosines(rng, 1, "regression", g, s), {})
        for gamma, scale in ((1e-8, 1e-20), (1e8, 1e20))
    },
}


@pytest.mark.parametrize("name", MODELS)
def test_values_are_within_their_bounds(name: str, target: str) -> None:
    make, options = MODELS[name]
    for seed in range(2):
        rng = np.random.default_rng(seed)
        model = make(rng)
        size = np.abs(model.coef if isinstance(model, CosineModel) else model.dual_coef).sum()
        tolerance = size * options["tolerance"] if "tolerance" in options else None
        fast = approxsvm.compile(model, **{**options, "tolerance": tolerance})
        rows = rng.normal(size=(40, model.n_features)) * 10.0 ** rng.uniform(-6, 6, (40, 1))
        rows[rng.random(rows.shape) < 0.1] = 0.0
        exact, _ = oracle.decision_values(model, rows)
        for part in (rows, csr_array(rows), rows[:1], rows.astype(np.float32)):
            meant = np.asarray(part.toarray() if isinstance(part, csr_array) else part, np.float64)
            for values in ("promised", "settled", "exact"):
                found, bounds = fast._evaluator.evaluate(part, VALUES | BOUNDS, values)
                assert oracle.holds(model, meant, found, bounds).all()
        assert np.median(bounds) <= 1e-6 * (size + np.median(np.abs(exact)))  # bounds are useful
        if model.outputs is EACH:
            assert (fast.predict(rows) == model.labels[exact.argmax(axis=1)]).all()


@pytest.mark.parametrize("layout", ["panels", "columns", "form"])
@pytest.mark.parametrize(
    ("degree", "gamma", "vector", "row", "coef0"),
    [
        *((1, 1.0, 1.0, row, 0.0) for row in (1e-300, 1e-150, 1e153, 1e300)),
        (1, 1.0, 1e200, 1e-300, 0.0),
        (1, 1e300, 1e-200, 1e-150, 0.0),
        (1, 1e-300, 1e150, 1e150, 0.0),
        (2, 1e300, 1e-150, 1e-163, 0.0),
        (2, 1e-150, 1e10, 1e150, 1e-5),
        (2, 1.0, 1e-160, 1e-165, 1e-150),
        (3, 1e300, 1e-200, 1e-150, 1e-20),
        (3, 1.0, 1e-100, 1e200, -1e100),
        (5, 1e-200, 1e120, 1e80, 2.0),
        (6, 1.0, 1e-320, 1e300, 0.0),
        (6, -2.0, 3.0, 1e48, 0.0),
    ],
)
def test_bounds_of_polynomials_hold_at_the_ends_of_float64(
    degree: int, gamma: float, vector: float, row: float, coef0: float, layout: str
) -> None:
    form = layout == "form"
    if form and degree > 2:
        pytest.skip("no form has this degree")
    rng = np.random.default_rng(degree)
    vectors, coefficients = rng.normal(size=(7, 3)) * vector, rng.normal(size=7)
    rows = rng.normal(size=(5, 3)) * row
    if layout == "columns":
        vectors, rows = (np.pad(x, ((0, 0), (9, 190))) for x in (vectors, rows))
    model = KernelModel("regression", vectors, coefficients, 0.0, gamma, degree=degree, coef0=coef0)
    summed = polynomial_form.sum_up(model) if form else None
    evaluator = Evaluator(build_polynomial(model, "certified" if form else "exact", summed))
    values, bounds, _ = evaluator.evaluate(rows, EVERYTHING)
    assert np.isfinite(bounds).all()
    assert oracle.holds(model, rows, values, bounds).all()

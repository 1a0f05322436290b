"""Error propagation through every step, in every interface: mapped rows are compared with extended precision.

Decision values would hide errors of steps, because their sums' rounding, above all in float32, is larger.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from c_header import C99, NEEDS_GCC, STRICT
from conftest import random_model
from sklearn.svm import SVC
from test_onnx import run
from zoo.mapped_rows import mapped

import approxsvm
from approxsvm.backends.onnx.graph import _Export
from approxsvm.backends.onnx.rows_graph import map_rows
from approxsvm.ir import ops
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.ops.lookup import SAME, Steps
from approxsvm.ir.ops.piecewise_polynomial import Pieces
from approxsvm.reference.definition import definition_of

N = 3
BINS = Steps.of([0.31, 0.51], [SAME, 1.0, -2.0])
CURVE = Pieces(np.array([0.51]), np.array([0.1, 0.7]), np.array([[0.3, -1.0, 2.0], [1.0, 0.4, -0.7]]))
TURN = np.array([[1.0, 0.3], [-1.0, 0.7], [0.0, -1.0]])  # sums cancel
OPS: dict[str, Any] = {
    "affine": ops.Affine.of(N, subtract=0.3, multiply=1.7, divide=0.9, low=-0.5, high=1.5),
    **{f"{part} alone": ops.Affine.of(N, **{part: 0.7}) for part in ("subtract", "multiply", "divide", "add")},
    "affine, parameters off": ops.Affine.of(N, multiply=3.0, add=0.1, relative_error=1e-9),
    "projection": ops.Projection(np.full(N, 300.3), TURN, np.full(2, 0.2), np.zeros(2)),
    "projection, bias off": ops.Projection(np.full(N, 300.3), TURN, np.full(2, 0.2), np.full(2, 1e-9)),
    "lookup": ops.Lookup.of(N, [(0, BINS), (2, Steps.of([], [SAME]))]),
    "piecewise_polynomial": ops.PiecewisePolynomial.of(N, [(0, CURVE), (2, CURVE)]),
    "turns": ops.Interval("turns", np.full(1, 0.31), np.full(1, 0.2)),
    "turns far from 0": ops.Interval("turns", np.full(1, 300.7), np.full(1, 0.5)),
    "ends": ops.Interval("refuses", np.full(1, 0.31), np.full(1, 0.8)),
    "quantiles": ops.InverseNormal(2),
    "logarithm": ops.Logarithm(np.array([0.0])),
    "logarithm of a sum": ops.Logarithm(np.array([0.3])),
    "box-cox": ops.Power("box-cox", np.array([0.4, -1.3])),
    "yeo-johnson, a logarithm": ops.Power("yeo-johnson", np.array([0.0])),
    "yeo-johnson, nearly a logarithm": ops.Power("yeo-johnson", np.array([9e-13])),
    "yeo-johnson": ops.Power("yeo-johnson", np.array([1.7, 0.0])),
    "products": ops.Monomials.of_powers([[2, 1, 0], [0, 1, 2], [0, 0, 3]]),
    **{f"{norm} norm": ops.Normalizer(2, norm) for norm in ("l1", "l2", "max")},
    **{f"{norm} norm of sparse rows": ops.Normalizer(2, norm, "sparse") for norm in ("l1", "l2")},
    # Steps on some features: more or fewer outputs, before and after unchanged features
    "affine of one": ops.Affine.of(1, subtract=0.3, multiply=1.7, divide=0.9, add=0.1, low=-0.5, first=1),
    "projection of the first": ops.Projection(np.full(2, 300.3), TURN[:2], np.full(2, 0.2), np.zeros(2)),
    "projection of the last": ops.Projection(np.full(2, 300.3), TURN[:2, :1], np.full(1, 0.2), np.zeros(1), first=1),
    "lookup of one": ops.Lookup.of(1, [(0, BINS), (0, Steps.of([], [SAME]))], first=1),
    "pieces of one": ops.PiecewisePolynomial.of(1, [(0, CURVE), (0, CURVE)], first=1),
    "products of the first": ops.Monomials(2, np.array([[0, 1], [1, 1], [0, 2]])),
    "logarithm of the last": ops.Logarithm(np.array([0.3]), first=2),
    "l2 norm of the last": ops.Normalizer(2, "l2", first=1),
}
# Exact real parameters, if they differ.
MEANT = {
    "affine, parameters off": ops.Affine.of(N, multiply=3.0 * (1 + 0.9e-9), add=0.1),
    "projection, bias off": ops.Projection(np.full(N, 300.3), TURN, np.full(2, 0.2 + 0.9e-9), np.zeros(2)),
}
# Preceding steps: none, or one that loses digits, in the source's own arithmetic or another.
FIRST, _, LAST = np.eye(N)
FAR = 2.0**39  # rounding after adding it is at most 2^-14, half a unit
FRONTS: dict[str, Callable[[InputMap], InputMap]] = {
    "alone": lambda x: x,
    "the first scaled": lambda x: x.then_affine(add=FAR * FIRST).then_affine(subtract=FAR * FIRST),
    "the last scaled": lambda x: x.then_affine(add=FAR * LAST).then_affine(subtract=FAR * LAST),
    "projected": lambda x: x.then_op(ops.Projection(np.full(N, -FAR), np.eye(N), np.full(N, -FAR), np.zeros(N))),
}
CASES = [(name, front) for name in OPS for front in FRONTS]
PROGRAM = """
static void case_{k}(FILE *rows, FILE *answers) {{
    static float row[{n}];
    static double x[{room}], error;
    rewind(rows);
    while (fread(row, sizeof row, 1, rows) == 1) {{
        error = m{k}_map_(row, x);
        fwrite(&error, sizeof error, 1, answers);
        fwrite(x, sizeof x[0], {n_outputs}, answers);
    }}
}}
"""


def compiled(name: str, front: str) -> tuple[Any, Any]:
    """Return a model of a step's output, and the exact one."""
    meant = FRONTS[front](InputMap.identity(N)).then_part(MEANT.get(name, OPS[name]))
    map_ = FRONTS[front](InputMap.identity(N)).then_part(OPS[name])
    return outputs_of(map_, meant)


def outputs_of(map_: InputMap, meant: InputMap | None = None) -> tuple[Any, Any]:
    """Return a model of a map's outputs, and the exact one."""
    return sums_of(map_.n_features, input_map=map_), SimpleNamespace(input_map=map_ if meant is None else meant)


def sums_of(n: int, **changes: Any) -> Any:
    """Return a model with one function per output."""
    numbers = {"support_vectors": np.eye(n), "dual_coef": np.eye(n), "intercept": np.zeros(n)}
    model = random_model(0, task="regression", gamma=1.0, degree=1, coef0=0.0, **numbers, **changes)
    return approxsvm.compile(model, mode="exact")


@pytest.fixture(scope="module")
def rows() -> Any:
    """Return rows of numbers up to 1, edges and their neighbors, numbers many turns away, and tiny ones."""
    rng = np.random.default_rng(0)
    edges = np.array([0.25, 0.5, 0.31, 0.51, 0.7], np.float32)
    near = np.concatenate(
        [edges, *(np.nextafter(edges, np.float32(end)) for end in (0, 1)), edges + 5e-5, edges - 5e-5]
    )
    tiny = np.repeat([[1e-20], [1e-12], [1e-9], [1e-5], [-1e-5], [1.3e-4], [1.83e-4], [1.84e-4]], N, axis=1)
    rows = [
        rng.uniform(0.05, 0.95, (60, N)),
        np.stack([rng.permutation(near) for _ in range(N)], axis=1),
        rng.uniform(290.0, 310.0, (10, N)),
        tiny,
    ]
    return np.concatenate(rows).astype(np.float32)


def assert_held(model: Any, rows: Any, values: Any, errors: Any, refuses: bool = False, least: float = 0.3) -> None:
    """Assert that values are within their errors; with `refuses`, rows without an exact value have no finite error."""
    real = mapped(model.input_map, rows)
    exact, slack = real.mid, np.sqrt((real.rad**2).sum(axis=1))
    off = np.sqrt(((values - exact) ** 2).sum(axis=1))
    proven = np.isfinite(errors) & np.isfinite(values).all(axis=1)
    proven &= refuses | np.isfinite(exact).all(axis=1)
    broken = proven & ~(off <= errors + slack)
    assert not broken.any(), (rows[broken][0], values[broken][0], exact[broken][0], errors[broken][0])
    assert (proven & (slack < np.inf)).sum() >= least * len(rows)


def assert_held_in_graphs_and_in_the_core(fast: Any, model: Any, rows: Any, least: float = 0.3) -> None:
    map_ = fast.artifact.input_map
    export = _Export(fast.artifact, "float64", certain=True, fallback=False, max_bytes=1 << 20)
    found = map_rows(export.g, export.x, map_, with_errors=True)
    export.output("values", found.values, np.float64, [None, map_.n_features])
    if found.error is not None:
        export.output("error", found.error, np.float64, [None, 1])
    given = run(export.finished(), rows.astype(float))
    errors = given["error"][:, 0] if "error" in given else np.zeros(len(rows))
    assert_held(model, rows, given["values"], errors, least=least)
    taken = rows[map_.takes(rows.astype(float))]
    values, errors = map_.mapped_with_errors(taken.astype(float))
    assert_held(model, taken, values, errors, least=least)


@pytest.mark.parametrize(("name", "front"), CASES)
def test_errors_hold_in_graphs_and_in_the_core(name: str, front: str, rows: Any) -> None:
    fast, model = compiled(name, front)
    assert_held_in_graphs_and_in_the_core(fast, model, rows)
    map_ = fast.artifact.input_map
    taken = rows[map_.takes(rows.astype(float))]
    values = map_.apply(taken.astype(float))
    bounds = fast.error_bound(taken).reshape(values.shape)
    assert_held(model, taken, fast.predict(taken).reshape(values.shape), np.linalg.norm(bounds, axis=1))
    assert_held(model, taken, *map_.mapped_with_errors(taken.astype(float), exactly=True))


def behind_unknown(step: Any) -> InputMap:
    """Return a map with a step after the logarithm of a number that may be 0, so its error is infinite."""
    scaled = FRONTS["the first scaled"](FRONTS["the first scaled"](InputMap.identity(N)))
    return scaled.then_part(ops.Logarithm(np.array([0.0]))).then_part(step)


@pytest.mark.parametrize("name", OPS)
def test_what_is_unknown_of_a_number_stays_unknown(name: str) -> None:
    rows = np.array([[1.3e-4, 0.3, 0.6], [1.83e-4, 0.3, 0.6]])
    map_ = behind_unknown(OPS[name])
    rows = rows[map_.takes(rows)]
    real = mapped(behind_unknown(MEANT.get(name, OPS[name])), rows)
    for exactly in (False, True):
        values, errors = map_.mapped_with_errors(rows, exactly=exactly)
        off = np.sqrt(((values - real.mid) ** 2).sum(axis=1))
        assert (off <= errors + np.sqrt((real.rad**2).sum(axis=1))).all()


MODELS: dict[str, tuple[Any, int]] = {
    "two classes": (SVC(gamma=0.5), 2),
    "three classes": (SVC(gamma=0.5, decision_function_shape="ovo"), 3),
    "cubic": (SVC(kernel="poly", gamma=0.3, coef0=1.0, decision_function_shape="ovo"), 3),
}


@pytest.mark.parametrize(
    "plan", [{"mode": "exact"}, {"mode": "approximate"}, {"mode": "approximate", "n_centers": 3, "degree": 6}]
)
@pytest.mark.parametrize("name", MODELS)
def test_every_bound_of_a_model_knows_what_its_map_loses(name: str, plan: dict[str, Any]) -> None:
    """Check single rows and batches: only coordinate digits that far exceed the rounding of sums remain."""
    source, n_classes = MODELS[name]
    if name == "cubic" and plan["mode"] != "exact":
        return
    X = np.random.default_rng(2).normal(size=(120, N)).astype(np.float32).astype(float)
    y = np.digitize(X[:, 0] + 0.3 * X[:, 1] ** 2, [0.0, 0.8][: n_classes - 1])
    model = approxsvm.read_any(source.fit(X, y))
    map_ = InputMap.identity(N).then_affine(add=FAR).then_affine(subtract=FAR)
    fast = approxsvm.compile(replace(model, input_map=map_), X, **plan)
    exact = definition_of(model).values(X) * (-1 if n_classes == 2 else 1)
    values, bounds = (np.asarray(one).reshape(exact.shape) for one in (fast.decision_function(X), fast.error_bound(X)))
    alone = np.stack([fast.error_bound(row[np.newaxis]).reshape(-1) for row in X[:20]])
    least = map_.mapped_with_errors(X)[1][:, np.newaxis]
    assert (np.abs(values - exact) <= bounds + 1e-11).all()
    plainly = approxsvm.compile(model, X, **plan)
    narrow = np.asarray(plainly.error_bound(map_.apply(X))).reshape(exact.shape)
    assert (bounds - narrow > 0.1 * least).all(), ((bounds - narrow) / least).min()
    assert (alone - narrow[:20] > 0.1 * least[:20]).all(), ((alone - narrow[:20]) / least[:20]).min()


@pytest.mark.native
@NEEDS_GCC
def test_errors_hold_in_headers(rows: Any, tmp_path: Path) -> None:
    map_ = FRONTS["projected"](InputMap.identity(N)).then_part(OPS["turns"]).then_op(OPS["piecewise_polynomial"])
    norms = InputMap.identity(N)
    for op in (*(ops.Normalizer(1, "l2", first=j) for j in range(N)), ops.Normalizer(N, "max")):
        norms = norms.then_part(op)
    others = map(outputs_of, (map_, norms))
    fronts = [front for front in FRONTS if front != "projected"]
    cases = [case for k, name in enumerate(OPS) for case in ((name, "projected"), (name, fronts[k % 3]))]
    assert_held_in_headers([*(compiled(*case) for case in cases), *others], rows, tmp_path)


# Sums that lose all terms but the first; with few terms, a bound would not need to grow with their number.
LONG = 200
SUMS: dict[str, tuple[Any, float]] = {
    "l1 norm": (ops.Normalizer(LONG, "l1"), 0.9 * 2.0**-53),
    "l2 norm": (ops.Normalizer(LONG, "l2"), 0.9 * 2.0**-26.5),
    "projection": (ops.Projection.about(0.0, np.ones((LONG, 1))), 0.9 * 2.0**-53),
}


def long_sum(name: str) -> tuple[Any, Any, Any]:
    """Return a model of a long sum, the exact one, and rows: some that lose the most digits, and ordinary ones."""
    step, lost = SUMS[name]
    map_ = InputMap.identity(LONG).then_op(step)
    rows = np.full((8, LONG), lost, np.float32)
    rows[:, 0] = 1.0
    ordinary = np.random.default_rng(0).normal(size=(40, LONG)).astype(np.float32)
    return *outputs_of(map_), np.concatenate([rows, ordinary])


@pytest.mark.parametrize("name", SUMS)
def test_errors_of_long_sums_hold(name: str) -> None:
    assert_held_in_graphs_and_in_the_core(*long_sum(name))


@pytest.mark.native
@NEEDS_GCC
@pytest.mark.parametrize("name", SUMS)
def test_errors_of_long_sums_hold_in_headers(name: str, tmp_path: Path) -> None:
    fast, model, rows = long_sum(name)
    assert_held_in_headers([(fast, model)], rows, tmp_path)


def assert_held_in_headers(
    made: list[tuple[Any, Any]], rows: Any, tmp_path: Path, flags: Sequence[str] = STRICT, least: float = 0.3
) -> None:
    text, n = "#include <stdio.h>\n", rows.shape[1]
    for k, (fast, _) in enumerate(made):
        fast.export_c(tmp_path / f"m{k}.h", name=f"m{k}")
        n_outputs = fast.artifact.input_map.n_features
        text += f'#include "m{k}.h"' + PROGRAM.format(k=k, n=n, room=16 + n, n_outputs=n_outputs)
    calls = "".join(f"    case_{k}(rows, answers);\n" for k in range(len(made)))
    text += 'int main(void) {\n    FILE *rows = fopen("rows", "rb"), *answers = fopen("answers", "wb");\n'
    (tmp_path / "main.c").write_text(f"{text}{calls}    return fclose(answers);\n}}\n")
    (tmp_path / "rows").write_bytes(rows.tobytes())
    subprocess.run([*C99, *flags, "-o", "program", "main.c"], cwd=tmp_path, check=True)
    subprocess.run(["./program"], cwd=tmp_path, check=True)
    answers, begin = np.fromfile(tmp_path / "answers"), 0
    for fast, model in made:
        size = 1 + fast.artifact.input_map.n_features
        found = answers[begin : begin + len(rows) * size].reshape(len(rows), size)
        begin += found.size
        assert_held(model, rows, found[:, 1:], found[:, 0], refuses=True, least=least)

"""Probability intervals in the core, headers and graphs, compared with extended precision.

Tests with rows would hide errors: float32 values and bounds add more than the rounding of probabilities.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from c_header import C99, NEEDS_GCC, STRICT
from conftest import random_model
from zoo import class_numbers
from zoo.balls import Ball, Extended

import approxsvm
from approxsvm.backends.onnx.graph_builder import GraphBuilder
from approxsvm.backends.onnx.known_values import KnownValues
from approxsvm.backends.onnx.outputs_graph import SLACK, ClassOutputs
from approxsvm.ir.outputs import (
    DensityMarks,
    IsotonicCalibrator,
    OneVsRestCalibration,
    Outputs,
    PairwiseSigmoid,
    SigmoidCalibrator,
    TemperatureCalibration,
)
from approxsvm.runtime.evaluator import native_outputs

STEEP = SigmoidCalibrator(-1e9, 1e9)  # its terms cancel at 1
STEPS = IsotonicCalibrator(np.array([-1.0, 1.0, 1.0 + 1e-7, 3.0]), np.array([0.0, 0.2, 0.9, 1.0]))
MIXED = (STEEP, SigmoidCalibrator(2.0, -0.3), STEPS)
HEADS: dict[str, tuple[Any, int]] = {
    "pairwise": (PairwiseSigmoid(np.array([-1e9]), np.array([1e9])), 2),
    "pairwise, falling": (PairwiseSigmoid(np.array([3.0]), np.array([0.1])), 2),
    "coupled": (PairwiseSigmoid(np.array([-2.0]), np.array([1.0]), couple_two_classes=True), 2),
    "coupled, three": (PairwiseSigmoid(np.array([-2.0, -1.0, -3.0]), np.zeros(3)), 3),
    "sigmoid": (OneVsRestCalibration((STEEP,)), 2),
    "isotonic": (OneVsRestCalibration((STEPS,), positive=0), 2),
    "of scores": (OneVsRestCalibration(MIXED), 3),
    "of values": (OneVsRestCalibration(MIXED, decision_shape="ovo"), 3),
    "temperature": (TemperatureCalibration(1e8), 2),
    "temperature, three": (TemperatureCalibration(1e8), 3),
    "temperature, many": (TemperatureCalibration(1e3), 17),
    "of values, many": (OneVsRestCalibration((MIXED * 6)[:17]), 17),
    "density": (DensityMarks(np.linspace(0.1, 1.0, 10)), 1),
}
ROOM = 17  # for values and for probabilities
PROGRAM = """
static void case_{k}(FILE *rows, FILE *answers) {{
    static double values[{room}], p[3 * {room}];
    static float bounds[{room}];
    rewind(rows);
    while (fread(values, sizeof values, 1, rows) == 1 && fread(bounds, sizeof bounds, 1, rows) == 1) {{
        m{k}_shares_(values, bounds, p, p + {room}, p + 2 * {room});
        fwrite(p, sizeof p, 1, answers);
    }}
}}
"""


def outputs_of(name: str) -> Outputs:
    head = HEADS[name][0]
    each = name in ("temperature, three", "temperature, many", "of values, many")
    rules: dict[str, Any] = {"label_rule": "scores", "decision_shape": "each"} if each else {}
    return Outputs(probability=head, **rules)


def head_of_one(name: str) -> Any:
    """Compile a small model with the named outputs."""
    n, outputs = HEADS[name][1], outputs_of(name)
    more: dict[str, Any] = {"task": "one_class"} if n == 1 else {"labels": np.arange(n), "n_support": np.full(n, 6)}
    n_functions = n if outputs.of_each_class else max(n * (n - 1) // 2, 1)
    coef = np.ones((n if outputs.of_each_class else max(n - 1, 1), 6 * n))
    more |= {"dual_coef": coef, "intercept": np.zeros(n_functions), "outputs": outputs}
    return approxsvm.compile(random_model(0, n_sv=6 * n, n_features=2, **more), mode="exact")


def exact(name: str, values: Any) -> Ball:
    """Return the exact probabilities."""
    outputs, n = outputs_of(name), HEADS[name][1]
    return class_numbers.probabilities(outputs, Ball.of(values[:, : n_values(n)]))


def n_values(n: int) -> int:
    """Return the number of decision values: for three classes, the number of pairs."""
    return 1 if n < 3 else n


@pytest.fixture(scope="module")
def known() -> tuple[Any, Any]:
    """Return values around 1, -1 and others, some very close, and bounds: zero, tiny and wide ones."""
    rng = np.random.default_rng(0)
    values = rng.choice([1.0, 1.0, -1.0, 0.4, 5e-5], (300, ROOM)) + rng.normal(size=(300, ROOM)) * 10.0 ** rng.uniform(
        -12, -0.5, (300, 1)
    )
    values[:9] = 1.0
    return values, rng.choice(np.array([0.0, 1e-11, 1e-4], np.float32), (300, 1)) * np.ones((1, ROOM), np.float32)


def assert_between(name: str, known: tuple[Any, Any], low: Any, high: Any, slack: float) -> None:
    values, bounds = known
    if name == "coupled, three":
        assert (low <= 0.0).all()
        assert (high >= 1.0).all()
        return
    for share in (-1.0, -0.4, 0.0, 0.4, 1.0):
        signs = np.where(np.arange(ROOM) % 2, -share, share)
        for moved in (values + Extended(share) * bounds, values + signs.astype(Extended) * bounds):
            p = exact(name, moved)
            broken = ~((low - slack <= p.mid + p.rad) & (p.mid - p.rad <= high + slack)).all(axis=1)
            assert not broken.any(), (name, values[broken][0], bounds[broken][0], low[broken][0], p.mid[broken][0])
    width = (high - low)[bounds[:, 0] == 0.0].max(axis=1)
    assert name == "coupled" or (width < 1e-4).mean() > 0.3, name


@pytest.mark.native
@NEEDS_GCC
def test_probabilities_of_headers(known: tuple[Any, Any], tmp_path: Path) -> None:
    text = "#include <stdio.h>\n"
    for k, name in enumerate(HEADS):
        head_of_one(name).export_c(tmp_path / f"m{k}.h", name=f"m{k}")
        text += f'#include "m{k}.h"' + PROGRAM.format(k=k, room=ROOM)
    calls = "".join(f"    case_{k}(rows, answers);\n" for k in range(len(HEADS)))
    text += 'int main(void) {\n    FILE *rows = fopen("rows", "rb"), *answers = fopen("answers", "wb");\n'
    (tmp_path / "main.c").write_text(f"{text}{calls}    return fclose(answers);\n}}\n")
    rows = np.zeros(len(known[0]), [("values", "<f8", ROOM), ("bounds", "<f4", ROOM)])
    rows["values"], rows["bounds"] = known
    rows.tofile(tmp_path / "rows")
    subprocess.run([*C99, *STRICT, "-o", "program", "main.c"], cwd=tmp_path, check=True)
    subprocess.run(["./program"], cwd=tmp_path, check=True)
    answers = np.fromfile(tmp_path / "answers").reshape(len(HEADS), len(rows), 3, ROOM)
    for found, name in zip(answers, HEADS, strict=True):
        _, low, high = found[:, :, : max(HEADS[name][1], 2)].swapaxes(0, 1)
        assert_between(name, known, low, high, 0.0)


@pytest.mark.parametrize("name", HEADS)
def test_probabilities_of_the_core(name: str, known: tuple[Any, Any]) -> None:
    n = HEADS[name][1]
    task, n_classes = ("one_class", 0) if n == 1 else ("classification", n)
    values, bounds = (one[:, : n_values(n)].astype(float) for one in known)
    core = native_outputs(outputs_of(name), task, n_classes)
    assert_between(name, known, *core.probability_interval(values, bounds), 0.0)


@pytest.mark.parametrize("name", [name for name in HEADS if name != "density"])
def test_probabilities_of_graphs(name: str, known: tuple[Any, Any]) -> None:
    n, g = HEADS[name][1], GraphBuilder()
    k = n_values(n)
    outputs = ClassOutputs(g, outputs_of(name), n, KnownValues("values", "bounds"))
    for end, found in zip(("low", "high"), outputs.probability_interval(), strict=True):
        g.rename(found, end)
    given = [g.value_info(one, np.float64, [None, k]) for one in ("values", "bounds")]
    ends = [g.value_info(one, np.float64, [None, n]) for one in ("low", "high")]
    graph = g.model("shares", given, ends, "", {}, "")
    ready = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    rows = dict(zip(("values", "bounds"), (one[:, :k].astype(float) for one in known), strict=True))
    assert_between(name, known, *ready.run(None, rows), n * SLACK)

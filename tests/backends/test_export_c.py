"""Exported C headers: bounds hold, values equal the host's up to rounding, on any compiler or emulated board."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attacks import COEFFICIENTS, VECTORS, adversarial_rows
from c_header import C99, NEEDS_GCC, STRICT, Program, build
from conftest import GOLDEN, random_model
from edge_cases import awkward_coefficients, awkward_vectors
from microcontrollers import BOARDS
from sklearn.feature_selection import SelectKBest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC
from test_export_c_kinds import assert_proven, at_boundary

import approxsvm
from approxsvm import KernelModel, _native
from approxsvm.artifact.views import Artifact
from approxsvm.backends.c99.coefficients import parts_of
from approxsvm.backends.c99.source import array, comment, literal, text_literal
from approxsvm.errors import InputError, UnsupportedModelError
from approxsvm.runtime.evaluator import BOUNDS, CERTIFIED, LABELS, VALUES

pytestmark = [pytest.mark.native, NEEDS_GCC]
KINDS = ("float32", "int16", "int8")


def assert_agrees(artifact: Artifact, answers: Any, rows: Any) -> None:
    """Assert that values equal the host's within both bounds or, with one center, up to rounding.

    Labels that are certain in both must be equal.
    """
    found, bounds = answers.values[: len(rows)].astype(float), answers.bounds[: len(rows)].astype(float)
    for target in _native.runnable_targets():
        predictor = _native.Predictor(artifact.data, target)
        values, its_bounds = (
            predictor.dense(rows, 1, want).reshape(found.shape).astype(float) for want in (VALUES, BOUNDS)
        )
        difference = np.abs(found - values)
        assert (difference <= bounds + its_bounds).all(), target
        if artifact.n_centers == 1:
            narrowed = 2.0**-24 * np.abs(values) + 2.0**-149
            assert (difference <= rounding(artifact) + narrowed).all(), target
        if artifact.task != "regression":
            certain = answers.certain[: len(rows)] & predictor.dense(rows, 1, CERTIFIED).astype(bool)
            labels = predictor.dense(rows, 1, LABELS)
            np.testing.assert_array_equal(answers.predicted[: len(rows)][certain], labels[certain])


def rounding(artifact: Artifact) -> Any:
    """Return, per decision function, how far rounding (also of coordinates) may separate two values of a row."""
    degree, n = int(artifact.header["degree"]), artifact.n_features
    norms, total = artifact.expansion_numbers()["norms"], artifact.decision_numbers()["total"]
    ends, arithmetic = np.array([[0.0], [174.0]]), _native.float32_arithmetic(n, degree)
    factors = _native.bound_factors(ends, degree, 9, arithmetic)
    of_sums = norms[:, : degree + 1] @ factors[: degree + 1, 0]
    return 2.0 * (of_sums + 14.0 * 2.0**-24 * total)


# --- random models, adversarial rows


def random_plan(seed: int, degree: int, n_centers: int, n_labels: int = 2) -> tuple[KernelModel, Any, Any]:
    """Return a model that is hard to bound, its compiled form, and adversarial rows."""
    rng = np.random.default_rng(seed)
    n_features = int(rng.integers(1, {1: 40, 2: 30, 3: 12, 4: 9, 5: 6, 6: 5}[degree]))
    n_sv, scale = int(rng.integers(2 * n_labels, 60)), 10.0 ** rng.uniform(-3, 3)
    kinds = str(rng.choice(VECTORS)), str(rng.choice(COEFFICIENTS))
    vectors = scale * (awkward_vectors(rng, n_sv, n_features, kinds[0]) + float(rng.choice([0.0, 1.0, 100.0])))
    changes: dict[str, Any] = {"support_vectors": vectors, "gamma": 10.0 ** rng.uniform(-3, 1) / n_features / scale**2}
    if n_labels == 2:
        coef = awkward_coefficients(rng, n_sv, kinds[1])
        changes |= {"dual_coef": coef.reshape(1, -1), "intercept": 0.1 * rng.normal(size=1) * np.abs(coef).max()}
    else:
        per_label = np.bincount(np.arange(n_sv) % n_labels, minlength=n_labels)
        changes |= {"labels": np.arange(n_labels)[::-1].copy(), "n_support": per_label}
        changes |= {"dual_coef": rng.normal(size=(n_labels - 1, n_sv))}
        changes |= {"intercept": 0.3 * rng.normal(size=n_labels * (n_labels - 1) // 2)}
    model = random_model(0, n_sv=n_sv, n_features=n_features, **changes)
    X = vectors[rng.integers(0, n_sv, 60)] + scale * rng.normal(size=(60, n_features))
    compiled = approxsvm.compile(model, X, mode="approximate", degree=degree, n_centers=n_centers)
    rows = [X, vectors, 1e3 * vectors[:8], 1e-3 * X, at_boundary(model, X, rng)]
    if n_labels == 2:
        rows.append(adversarial_rows(model, compiled.artifact, seed))
    rows.append(np.outer([1e30, -3e38, 1e-40, 0.0], np.ones(n_features)))
    with np.errstate(over="ignore"):
        narrow = np.concatenate(rows).astype(np.float32)
    return model, compiled, narrow[np.isfinite(narrow).all(axis=1)]


PLANS = [
    *((seed, degree, 1, 2) for seed, degree in enumerate((1, 2, 3, 4, 5, 6))),
    (11, 1, 20, 2),
    (21, 3, 4, 4),
]


@pytest.mark.attack
@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_no_bound_is_broken_and_float32_agrees_with_the_host(plan: tuple[int, ...], tmp_path: Path) -> None:
    model, compiled, rows = random_plan(*plan)
    for kind in ("float32", KINDS[1 + plan[0] % 2]):
        program = build(compiled, tmp_path / kind, *STRICT, coefficients=kind)
        answers = assert_proven(model, compiled, program, rows)
        if kind == "float32":
            assert_agrees(compiled.artifact, answers, rows)


# --- scikit-learn's estimators and pipelines


def classes(n_features: int, n_classes: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 200)
    X = rng.normal(size=(200, n_features)) + np.eye(n_classes, n_features)[y] * 2
    return X * 10.0 ** rng.uniform(-2, 2, n_features) + 5.0, y


# --- integer rows


def test_finer_codes_are_certain_of_more_rows(tmp_path: Path) -> None:
    X, y = classes(9, 2)
    source = make_pipeline(StandardScaler(), SVC(gamma=0.02))
    compiled = approxsvm.compile(source.fit(X, y), X, mode="approximate", degree=3)
    rows = X.astype(np.float32)
    shares = []
    for inputs in KINDS:
        answers = build(compiled, tmp_path / inputs, inputs=inputs, X=X).answers(rows)
        shares.append(answers.certain.mean())
        np.testing.assert_allclose(answers.values, compiled._evaluator.evaluate(rows)[:, None], atol=0.1)
    assert shares[0] >= shares[1] >= shares[2] > 0.3


def test_codes_need_rows(tmp_path: Path) -> None:
    compiled = approxsvm.load(GOLDEN / "breast_cancer.asvm")
    with pytest.raises(InputError, match="need X"):
        compiled.export_c(tmp_path / "m.h", inputs="int8")
    for X in (np.zeros((3, 29)), np.zeros(30), np.zeros((0, 30))):
        with pytest.raises(InputError, match="shape"):
            compiled.export_c(tmp_path / "m.h", inputs="int8", X=X)
    for x in (np.nan, np.inf, 1e39):
        with pytest.raises(InputError, match="beyond float32"):
            compiled.export_c(tmp_path / "m.h", inputs="int16", X=np.full((2, 30), x))
    with pytest.raises(InputError, match="inputs are"):
        compiled.export_c(tmp_path / "m.h", inputs="uint8", X=np.zeros((2, 30)))
    assert list(tmp_path.iterdir()) == []


# --- golden models


# --- compilers

OBJECT = (
    '#include "m.h"\nvoid all(const float *row, float *out);\nvoid all(const float *row, float *out) {\n'
    "    m_decision_values(row, out);\n    m_error_bounds(row, out + m_n_values);\n"
    "    *out += (float)m_predict(row) + (float)m_is_certain(row) + (float)m_labels[m_predict(row)];\n}\n"
)


@pytest.fixture(scope="module")
def variety() -> list[Any]:
    """Compile models with every kind of expansion."""
    X, y = classes(9, 3)
    pipeline = make_pipeline(MinMaxScaler(clip=True), SelectKBest(k=5), SVC(break_ties=True, gamma=1.0)).fit(X, y)
    return [
        random_plan(1, 2, 1)[1],
        random_plan(11, 1, 20)[1],
        random_plan(21, 4, 4, 4)[1],
        approxsvm.load(GOLDEN / "iris_slices.asvm"),
        approxsvm.compile(pipeline, X, mode="approximate", degree=3),
    ]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["-ffast-math"], "IEEE arithmetic"),
        (["-freciprocal-math"], "IEEE arithmetic"),
        (["-m32", "-mfpmath=387", "-ffreestanding"], "FLT_EVAL_METHOD"),
        (["-fsingle-precision-constant"], "m_literals_are_double_"),
    ],
)
def test_arithmetic_that_is_not_floats_is_refused(flags: list[str], message: str, tmp_path: Path) -> None:
    random_plan(1, 2, 1)[1].export_c(tmp_path / "m.h", name="m")
    (tmp_path / "object.c").write_text(OBJECT)
    result = subprocess.run([*C99, *flags, "-c", "object.c"], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode != 0
    assert message in result.stderr


# --- microcontrollers


@pytest.mark.parametrize("name", BOARDS)
def test_boards_agree_with_the_host(name: str, variety: list[Any], tmp_path: Path) -> None:
    board = BOARDS[name]
    for tool in board.tools:
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    has_floats = name in ("Cortex-M4F", "RV32IMAFC")
    rng = np.random.default_rng(0)
    for k, compiled in enumerate(variety[:3] if has_floats else variety[3:]):
        center, d = compiled.artifact.centers()[0].astype(float), compiled.n_features_in_
        start = center if len(center) == d else np.full(d, 5.0)
        rows = start + rng.normal(size=(30, d)) * 10.0 ** rng.uniform(-2, 2, (30, 1))
        rows = np.concatenate([rows, np.full((1, d), np.nan), np.full((1, d), 1e30)]).astype(np.float32)
        folder, kind = tmp_path / str(k), KINDS[k % 3]
        host = build(compiled, folder, coefficients=kind).answers(rows)
        link = board.link("-Os", *STRICT, "-Wno-pedantic", "-o", "program.elf", "main.c")
        subprocess.run(link, cwd=folder, check=True)
        n_values = int(compiled.artifact.header["n_decisions"])
        found = Program(folder, compiled.artifact.task, n_values, board.run("program.elf")).answers(rows)
        for field in ("values", "bounds", "predicted", "if_certain", "certain"):
            np.testing.assert_array_equal(getattr(found, field), getattr(host, field))


# --- the written file


def test_labels_of_any_type(tmp_path: Path) -> None:
    X, y = classes(4, 3)
    texts = np.array(['a "quoted"\\ one', "größer??/", "@T@ m_@@"])
    huge = np.array([0, 2**63, 2**64 - 1], np.uint64)
    for labels in (texts, np.array([-5, 0, 2**40]), np.array([-7.0, 2.0, 1e9]), huge):
        compiled = approxsvm.compile(SVC(gamma=0.01).fit(X, labels[y]), X, mode="approximate", degree=1)
        compiled.export_c(tmp_path / "m.h", name="m")
        shown = {"U": "%s", "i": "%lld", "u": "%llu", "f": "%.17g"}[labels.dtype.kind]
        cast = {"i": "(long long)", "u": "(unsigned long long)"}.get(labels.dtype.kind, "")
        (tmp_path / "labels.c").write_text(
            '#include "m.h"\n#include <stdio.h>\nint main(void) {\n    int i;\n    for (i = 0; i < m_n_labels; ++i) '
            f'printf("{shown}\\n", {cast}m_labels[i]);\n    return 0;\n}}\n'
        )
        subprocess.run([*C99, "-o", "labels", "labels.c"], cwd=tmp_path, check=True)
        lines = subprocess.run(["./labels"], cwd=tmp_path, check=True, capture_output=True).stdout.decode().splitlines()
        if labels.dtype.kind == "f":
            assert [float(line) for line in lines] == compiled.artifact.labels.tolist()
        else:
            assert lines == [str(label) for label in compiled.artifact.labels.tolist()]


def test_what_it_costs(variety: list[Any], tmp_path: Path) -> None:
    """The stated byte counts equal those in the object file; integers need fewer, and the message states the total."""
    for compiled in variety:
        costs = [compiled.export_c(tmp_path / "m.h", name="m", coefficients=kind) for kind in KINDS]
        assert costs[0].flash_bytes > costs[1].flash_bytes > costs[2].flash_bytes
        (tmp_path / "object.c").write_text(OBJECT)
        subprocess.run([*C99, "-O0", "-c", "-o", "object.o", "object.c"], cwd=tmp_path, check=True)
        symbols = subprocess.run(["nm", "-S", "object.o"], cwd=tmp_path, check=True, capture_output=True, text=True)
        sizes = [int(line.split()[1], 16) for line in symbols.stdout.splitlines() if re.search(r" r m_", line)]
        assert sum(sizes) == costs[2].flash_bytes
        assert str(costs[2]).startswith(f"{tmp_path / 'm.h'}: {costs[2].flash_bytes:,} bytes of constants")


def test_a_loaded_artifact_gives_the_same_header(tmp_path: Path) -> None:
    compiled = random_plan(1, 2, 1)[1]
    compiled.save(tmp_path / "m.asvm")
    compiled.export_c(tmp_path / "fresh.h", name="m")
    approxsvm.load(tmp_path / "m.asvm").export_c(tmp_path / "loaded.h", name="m")
    assert (tmp_path / "fresh.h").read_bytes() == (tmp_path / "loaded.h").read_bytes()
    assert len((tmp_path / "fresh.h").read_text().splitlines()[0]) <= 120


def test_wrong_arguments(tmp_path: Path) -> None:
    compiled = approxsvm.load(GOLDEN / "breast_cancer.asvm")
    for name in ("", "1st", "a-b", "_a", "ä", "a b", "a\n"):
        with pytest.raises(InputError, match="name"):
            compiled.export_c(tmp_path / "m.h", name=name)
    with pytest.raises(InputError, match="float32, int16, int8"):
        compiled.export_c(tmp_path / "m.h", coefficients="int4")
    with pytest.raises(OSError, match="nowhere"):
        compiled.export_c(tmp_path / "nowhere" / "m.h")
    assert list(tmp_path.iterdir()) == []


def test_values_beyond_float32_are_refused(tmp_path: Path) -> None:
    model = random_model(0, dual_coef=1e38 * np.ones((1, 40)))
    compiled = approxsvm.compile(model, mode="approximate", degree=1)
    with pytest.raises(UnsupportedModelError, match="do not fit float32"):
        compiled.export_c(tmp_path / "m.h")


def test_scaling_beyond_float64_is_refused(tmp_path: Path) -> None:
    X, y = classes(4, 2)
    pipeline = make_pipeline(StandardScaler(), SVC()).fit(X, y)
    pipeline[0].scale_[0] = 1e-280
    compiled = approxsvm.compile(pipeline, mode="approximate", degree=1)
    with pytest.raises(UnsupportedModelError, match="1e300"):
        compiled.export_c(tmp_path / "m.h")


def test_quantized_coefficients_are_within_their_norms() -> None:
    """sigma_k ||u||^k bounds the degree-k term of the error, and is at most the Frobenius norm."""
    rng = np.random.default_rng(0)
    compiled = random_plan(21, 4, 4, 4)[1]
    n = compiled.artifact.n_varying
    exact = parts_of(compiled.artifact, "float32")
    for kind in ("int16", "int8"):
        for part, true in zip(parts_of(compiled.artifact, kind), exact, strict=True):
            assert part.values.dtype == kind
            assert part.scales is not None
            assert (part.error_norms <= part.error_frobenius * (1 + 1e-6)).all()
            error = part.values * part.scales.astype(float)[:, np.newaxis] - true.values
            assert (np.abs(error) <= 0.5001 * part.scales[:, np.newaxis]).all()
            for u in rng.normal(size=(50, n)):
                u /= np.linalg.norm(u)
                assert (np.abs(error @ monomials(u, part.degree)) <= part.error_norms).all()


def monomials(u: Any, degree: int) -> Any:
    """Return the monomials of one degree in storage order, as described in the format."""
    if degree > 2:
        return np.concatenate([u[i] * monomials(u[i:], degree - 1) for i in range(len(u))])
    if degree == 1:
        return u
    pieces = []
    for first in range(0, len(u), 8):
        last = min(first + 8, len(u))
        pieces += [u[first : k + 1] * u[k] for k in range(first, last)]
        pieces += [u[first:last] * u[k] for k in range(last, len(u))]
    return np.concatenate(pieces)


def test_literals() -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**32, 2000, dtype=np.uint32)
    for x in bits.view(np.float32)[np.isfinite(bits.view(np.float32))]:
        assert np.float32(literal(x)[:-1]) == x
    assert [literal(x) for x in (0.1, 1e300, 3, 2**40, -(2**63))] == [
        "0.1",
        "1e+300",
        "3",
        "INT64_C(1099511627776)",
        "(-INT64_C(9223372036854775807) - 1)",
    ]
    assert text_literal('ä"?\\\n') == '"\\303\\244\\042\\077\\134\\012"'
    assert comment(["a */ b \\", "", "c\x07"]) == "/* a * / b /\n *\n * c\n */\n"
    assert comment(["a *\\ b /\\* *\x07/ /*/ why??/"]) == "/* a * / b // * * / / * / why? ?/\n */\n"
    assert array("m_x", np.empty(0, np.int8)) == "static const int8_t m_x[1] = {\n    0};\n"
    assert max(map(len, array("m_x", rng.normal(size=999)).splitlines())) <= 120

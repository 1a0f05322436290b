"""ONNX graphs in onnxruntime: the same answers, skl2onnx's names, and no incorrect certain labels."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attacks
import numpy as np
import onnx
import onnxruntime
import pytest
from attacks import Tally, random_attack, truth_of
from click.testing import CliRunner
from conftest import GOLDEN, random_model
from onnx.reference import ReferenceEvaluator
from sklearn.datasets import load_iris
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    PowerTransformer,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, OneClassSVM

import approxsvm
from approxsvm import Artifact, KernelModel, UnsupportedModelError
from approxsvm.backends.onnx.bound_table import bound_table
from approxsvm.backends.onnx.graph import _Export
from approxsvm.cli import main
from approxsvm.errors import InputError, MissingPackageError, OpenAnswersWarning
from approxsvm.ir.cosine_model import CosineModel
from approxsvm.ir.ops import Logarithm
from approxsvm.reference.definition import definition_of
from approxsvm.runtime.evaluator import BOUNDS, VALUES

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 5))
TWO = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)
FOUR = np.digitize(X[:, 0] + 0.3 * X[:, 1] ** 2, [-0.7, 0.0, 0.7])
WORDS = np.array(["dog", "ant", "cow", "bee"])
GOLDEN_MODELS = sorted(GOLDEN.glob("*.asvm"))


def session(graph: Any, *, optimize: bool = True) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    if not optimize:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(graph: Any, rows: Any, **options: Any) -> dict[str, Any]:
    """Return outputs by name; check that their declared shapes match the results."""
    ready = session(graph, **options)
    (given,) = ready.get_inputs()
    assert given.name == "X"
    assert given.shape == [None, rows.shape[1]]
    outputs = ready.get_outputs()
    found = dict(zip([output.name for output in outputs], ready.run(None, {"X": rows}), strict=True))
    for output in outputs:
        got = found[output.name].shape
        assert len(output.shape) == len(got)
        assert all(said in (None, size) for said, size in zip(output.shape, got, strict=True)), output.name
    return found


def with_bounds(artifact: Artifact, dtype: Any = np.float64) -> Any:
    """Return a graph that also outputs values, bounds and, for two classes, whether the label is certain."""
    export = _Export(artifact, str(np.dtype(dtype)), certain=True, fallback=False, max_bytes=1 << 28)  # type: ignore[arg-type]
    (known,) = export.known_values()
    n = int(artifact.header["n_decisions"])
    export.output("values", known.values, np.float64, [None, n])
    export.output("bounds", known.bounds, np.float64, [None, n])
    g = export.g
    clear = g.op("Squeeze", g.op("Greater", g.op("Abs", known.values), known.bounds), np.array([1]))
    export.output("sure", g.op("And", clear, export._are_numbers(known)), np.bool_, [None])
    return export.finished()


# --- labels and values


def test_a_process_without_its_variance_gives_no_probabilities() -> None:
    """The source has probabilities, so the latent values get another name."""
    fast = approxsvm.compile(GaussianProcessClassifier(RBF(3.0), optimizer=None).fit(X[:100], TWO[:100]))
    found = run(fast.to_onnx(input_type="float64"), X)
    assert set(found) == {"label", "scores", "certain"}
    np.testing.assert_array_equal(found["label"], fast.predict(X))
    np.testing.assert_array_equal(found["scores"][:, 0], -found["scores"][:, 1])


@pytest.mark.parametrize("mode", ["certified", "exact"])
@pytest.mark.parametrize("scale", [1e-43, 1e-37, 1.0, 1e39])
def test_values_that_float32_does_not_hold_are_not_certain(scale: float, mode: Any) -> None:
    rng = np.random.default_rng(1)
    coef, intercept = scale * rng.normal(size=(1, 20)), np.array([scale])
    model = random_model(0, 20, 3, task="regression", dual_coef=coef, intercept=intercept)
    rows = rng.normal(size=(50, 3)).astype(np.float32)
    fast = approxsvm.compile(model, rows, mode=mode, tolerance=1e-3 * scale)
    exact = definition_of(model).values(rows.astype(np.float64))[:, 0]
    for kind in (np.float32, np.float64):
        found = run(fast.to_onnx(input_type=np.dtype(kind).name, certain=True), rows.astype(kind))
        with np.errstate(over="ignore"):
            error = np.abs(found["variable"][:, 0].astype(np.float64) - exact)
        assert (error <= 1.0001e-3 * scale)[found["certain"]].all()
        assert found["certain"].any() == (kind == np.float64 or 1e-30 < scale < 1e38)


def test_regression() -> None:
    y = X[:, 0] ** 2 + X[:, 1]
    svr = SVR(gamma=0.05).fit(X, y)
    fast = approxsvm.compile(svr, X, tolerance=0.05, degree=3, n_centers=4)
    found = run(fast.to_onnx(input_type="float64"), X)
    assert found["variable"].shape == (len(X), 1)
    error = np.abs(found["variable"][:, 0] - svr.predict(X))
    assert found["certain"].any()
    assert (error <= 0.05)[found["certain"]].all()
    assert "certain" not in run(approxsvm.compile(svr, mode="exact").to_onnx(), X.astype(np.float32))
    with pytest.raises(UnsupportedModelError, match="no tolerance that defines"):
        approxsvm.compile(svr, X, mode="approximate").to_onnx(certain=True)


@pytest.mark.parametrize("path", GOLDEN_MODELS, ids=lambda path: path.stem)
def test_saved_artifacts_in_two_runtimes(path: Path) -> None:
    fast = approxsvm.load(path)
    rows = _rows_for(fast)
    graph = fast.to_onnx(input_type="float64")
    found = run(graph, rows)
    if "label" in found:
        exact = fast.predict(rows)
        assert (found["label"].reshape(len(rows)) == exact)[found["certain"]].all()
    for (name, ours), theirs in zip(found.items(), ReferenceEvaluator(graph).run(None, {"X": rows}), strict=True):
        if ours.dtype.kind == "f":
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12, err_msg=name)
        else:
            np.testing.assert_array_equal(ours, theirs, err_msg=name)


def _rows_for(fast: Any) -> Any:
    """Return rows around the model's centers, or random ones."""
    rng, artifact = np.random.default_rng(1), fast.artifact
    rows = rng.normal(size=(100, fast.n_features_in_))
    if artifact.input_map is None and artifact.n_centers and not artifact.members:
        spread = 10.0 ** rng.uniform(-3, 0.5, (100, 1)) / np.sqrt(2.0 * artifact.header["gamma"] * artifact.n_features)
        rows = artifact.centers()[rng.integers(0, artifact.n_centers, 100)] + rows * spread
    has_logarithms = any(isinstance(op, Logarithm) for op in getattr(artifact.input_map, "ops", ()))
    return np.abs(rows) if has_logarithms else rows


# --- a graph's default outputs


def test_a_label_alone_does_not_mislead() -> None:
    """With a default OneClassSVM on iris, the expansion gets 4 of 150 labels wrong; none of them is certain."""
    rows = load_iris().data
    source = OneClassSVM().fit(rows)
    fast = approxsvm.compile(source, rows)
    found = run(fast.to_onnx(), rows.astype(np.float32))
    np.testing.assert_array_equal(found["label"][:, 0], source.predict(rows.astype(np.float32)))
    with pytest.warns(
        OpenAnswersWarning, match=r"may differ from the exact model's \(fallback=False; plan: .*certifies"
    ):
        graph = fast.to_onnx(fallback=False)
    assert graph.doc_string == (
        "The graph answers by expansions alone: if the output certain is false, a label may differ from the exact "
        "model's."
    )
    fast.predict(rows)
    with pytest.warns(OpenAnswersWarning, match=r"of the rows predicted so far, expansions proved \d+\.\d%"):
        graph = fast.to_onnx(fallback=False, certain=False)
    assert graph.doc_string.endswith("alone: a label may differ from the exact model's.")
    assert approxsvm.compile(source, rows, mode="approximate").to_onnx().doc_string == graph.doc_string


def test_an_exact_model_that_is_too_large_is_left_out_with_a_word() -> None:
    rows = RNG.normal(size=(400, 30))
    source = SVC(gamma=0.01).fit(rows, rows[:, 0] * rows[:, 1] > 0)
    fast = approxsvm.compile(source, degree=1, n_centers=1)
    small = len(fast.to_onnx(max_bytes=1 << 20).SerializeToString())
    assert small > 80_000
    with pytest.warns(OpenAnswersWarning, match=r"with the exact model the ONNX graph takes at least [\d,]+ bytes"):
        graph = fast.to_onnx(max_bytes=60_000)
    assert "by expansions alone" in graph.doc_string
    with pytest.raises(UnsupportedModelError, match=r"at most 60,000 are allowed"):
        fast.to_onnx(max_bytes=60_000, fallback=True)
    svr = SVR(gamma=0.01).fit(rows, rows[:, 0])
    with pytest.warns(OpenAnswersWarning, match="certain is false, a value may differ"):
        approxsvm.compile(svr, degree=1, n_centers=1).to_onnx(fallback=False)


def test_the_command_takes_the_exact_model_along_or_says_so(tmp_path: Path) -> None:
    rows = load_iris().data
    fast = approxsvm.compile(OneClassSVM().fit(rows), rows)
    fast.save(tmp_path / "m.asvm")

    def export(*options: str) -> Any:
        arguments = ["export", str(tmp_path / "m.asvm"), "--onnx", str(tmp_path / "m.onnx"), *options]
        return CliRunner().invoke(main, arguments)

    for options in ((), ("--fallback",)):
        found = export(*options)
        assert (found.exit_code, found.stderr) == (0, "")
        assert (tmp_path / "m.onnx").read_bytes() == fast.to_onnx(fallback=True).SerializeToString()
    found = export("--no-fallback")
    assert found.exit_code == 0
    assert found.stderr.startswith("approxsvm: warning: the graph answers by expansions alone: if the output certain")
    assert found.stderr.count("\n") == 1


@pytest.mark.parametrize("mode", ["exact", "certified", "approximate"])
@pytest.mark.parametrize("source", [SVC(), SVR(), SVR(kernel="linear"), OneClassSVM()])
def test_graphs_say_what_is_certain_where_something_is_promised(source: Any, mode: Any) -> None:
    fast = approxsvm.compile(source.fit(X, TWO), X, mode=mode)
    found = run(fast.to_onnx(input_type="float64"), X)
    mode = fast.artifact.mode
    told = mode == "certified" and np.isfinite(fast.artifact.header["tolerance"])
    assert ("certain" in found) == (mode != "approximate" and (told or fast.artifact.task != "regression"))


def test_a_fallback_settles_rows_and_refuses_them() -> None:
    fast = approxsvm.compile(SVC(gamma=0.05).fit(X, TWO), X, degree=1, n_centers=1)
    graph = fast.to_onnx(input_type="float64", fallback=True)
    settled = run(graph, X)["certain"]
    with pytest.warns(OpenAnswersWarning, match="if the output certain is false, a label may differ"):
        without = run(fast.to_onnx(input_type="float64", fallback=False), X)["certain"]
    assert (settled >= without).all()
    assert without.mean() < 0.9 < settled.mean()
    rows = X[:2].copy()
    rows[0, 0] = np.nan
    for n in (2, 1, 0):
        few = run(graph, rows[:n])
        assert len(few["label"]) == n
        assert not few["certain"][:1].any()
        assert np.isnan(few["scores" if "scores" in few else "probabilities"][:1]).all()


def test_rows_too_far_apart_for_float64_are_refused() -> None:
    model = approxsvm.KernelModel("regression", [[-1e150], [1e150]], [[1.0, 2.0]], [0.0], 1e-3)
    with pytest.raises(UnsupportedModelError, match="which exceeds float64"):
        approxsvm.compile(model, mode="exact").to_onnx()


# --- names, types, sizes


def of_skl2onnx(model: Any, rows: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # skl2onnx warns about scikit-learn's version
        import skl2onnx

        return skl2onnx.to_onnx(model, rows, **options)


@pytest.mark.parametrize(
    ("dtype", "y", "shape"),
    [(np.float32, TWO, "ovr"), (np.float64, WORDS[FOUR], "ovr"), (np.float32, WORDS[FOUR], "ovo")],
)
def test_names_shapes_and_types_are_those_of_skl2onnx(dtype: Any, y: Any, shape: str) -> None:
    svc = SVC(gamma=0.05, decision_function_shape=shape).fit(X, y)
    rows = X[:7].astype(dtype)
    theirs = session(of_skl2onnx(svc, rows, options={"zipmap": False}))
    ours = session(approxsvm.compile(svc, X, mode="approximate").to_onnx(input_type=np.dtype(dtype).name))
    declared = [
        [(v.name, v.type, v.shape) for v in (*side.get_inputs(), *side.get_outputs())] for side in (ours, theirs)
    ]
    if shape == "ovo" and len(svc.classes_) == 4:  # skl2onnx declares 4 columns but returns 6
        assert declared[1][-1][2] == [None, 4]
        declared[1][-1][2][1] = 6
    assert declared[0] == declared[1]
    for mine, other in zip(ours.run(None, {"X": rows}), theirs.run(None, {"X": rows}), strict=True):
        assert mine.dtype == other.dtype
        assert mine.shape == other.shape


@pytest.mark.parametrize(("model", "y"), [(OneClassSVM(), TWO), (SVR(), X[:, 0])], ids=["one-class", "regression"])
def test_other_tasks_have_the_names_of_skl2onnx(model: Any, y: Any) -> None:
    rows = X.astype(np.float32)
    theirs = session(of_skl2onnx(model.fit(X, y), rows))
    ours = session(approxsvm.compile(model, X, mode="exact").to_onnx(certain=False))
    assert [(v.name, v.type, v.shape) for v in ours.get_outputs()] == [
        (v.name, v.type, v.shape) for v in theirs.get_outputs()
    ]
    for mine, other in zip(ours.run(None, {"X": rows}), theirs.run(None, {"X": rows}), strict=True):
        np.testing.assert_allclose(mine, other, rtol=0, atol=1e-4)


def test_only_standard_operators() -> None:
    for path in GOLDEN_MODELS:
        graph = approxsvm.load(path).to_onnx()
        assert [entry.domain for entry in graph.opset_import] == [""]
        onnx.checker.check_model(graph, full_check=True)
        assert {entry.key for entry in graph.metadata_props} == {"source", "mode", "plan"}


# --- refusals


def test_what_is_refused() -> None:
    svc = SVC(gamma=0.05).fit(X, TWO)
    exact = approxsvm.compile(svc, mode="exact")
    with pytest.raises(UnsupportedModelError, match=r"takes at least [\d,]+ bytes, but at most 1,000 are allowed"):
        exact.to_onnx(max_bytes=1000)
    with pytest.raises(InputError, match="input_type is 'int8', but must be 'float32' or 'float64'"):
        exact.to_onnx(input_type="int8")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedModelError, match="a fallback needs support vectors"):
        approxsvm.compile(svc, X, mode="approximate").to_onnx(fallback=True)
    huge = approxsvm.compile(random_model(0, labels=np.array([1, 2**64 - 1], np.uint64)), mode="exact")
    with pytest.raises(
        UnsupportedModelError, match=r"18446744073709551615\] are neither whole numbers nor text, .*int64"
    ):
        huge.to_onnx()
    halves = approxsvm.compile(random_model(0, labels=np.array([0.5, 1.5])), mode="exact")
    with pytest.raises(UnsupportedModelError, match=r"\[0.5, 1.5\] are neither whole numbers nor text"):
        halves.to_onnx()


def test_the_package_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    fast = approxsvm.load(GOLDEN / "breast_cancer.asvm")
    with pytest.raises(MissingPackageError, match=r"pip install 'approxsvm\[onnx\]'"):
        fast.to_onnx()


# --- certain labels


def test_nothing_is_certain_of_cosines_where_squares_underflow() -> None:
    """Frequencies are so high that rows matter whose norms underflow."""
    rng = np.random.default_rng(1)
    numbers = {"phases": rng.uniform(0, 6, 20), "coef": rng.normal(size=20), "intercept": np.zeros(1)}
    frequencies = 1e200 * rng.normal(size=(20, 2))
    model = CosineModel("classification", frequencies, labels=np.array([1, 0]), **numbers)
    artifact = approxsvm.compile(model).artifact
    assert not run(with_bounds(artifact), 1e-164 * rng.normal(size=(60, 2)))["sure"].any()


@pytest.mark.parametrize("scale", [1e-3, 1e5])
def test_bounds_of_cosines_hold_and_no_certain_label_is_wrong(scale: float) -> None:
    rng = np.random.default_rng(0)
    model = CosineModel(
        "classification",
        frequencies=scale * rng.normal(size=(30, 5)),
        phases=rng.uniform(0, 2 * np.pi, 30),
        coef=rng.normal(size=30),
        intercept=np.array([0.3]),
        labels=np.array([1, 0]),
    )
    artifact = approxsvm.compile(model).artifact
    engine = approxsvm.Predictor(artifact.data)._evaluator  # tests/predict/test_bounds.py tests it
    for dtype in (np.float64, np.float32):
        rows = np.concatenate([X / scale, X, 1e9 * X, 1e25 * X[:5]]).astype(dtype)
        found = run(with_bounds(artifact, dtype), rows)
        values, bounds = engine.evaluate(rows, VALUES | BOUNDS, "exact")
        assert (np.abs(found["values"][:, 0] - values) <= found["bounds"][:, 0] + bounds).all()
        assert ((found["values"][:, 0] > 0) == (values > 0))[found["sure"]].all()
        assert found["sure"][: len(X)].mean() > 0.99
        assert not found["sure"][-5:].any()


def test_a_row_that_a_step_refuses_has_no_value_without_support_vectors_either() -> None:
    source = make_pipeline(SplineTransformer(extrapolation="error"), SVR(epsilon=1e9)).fit(X, X[:, 0])
    rows = X[:2].copy()
    rows[1, 0] = 1e9
    found = run(approxsvm.compile(source, X).to_onnx(), rows.astype(np.float32))["variable"]
    assert np.isnan(found).ravel().tolist() == [False, True]


def test_a_power_beyond_float64_has_no_value() -> None:
    rows = np.random.default_rng(0).gamma(2.0, size=(40, 3))
    fast = approxsvm.compile(make_pipeline(PowerTransformer(), SVR()).fit(rows, rows[:, 0]), rows)
    rows[0, 2] = -1e300
    value = run(fast.to_onnx(input_type="float64"), rows)["variable"]
    assert np.isnan(value[0])
    assert np.isfinite(value[1:]).all()


def attack(monkeypatch: pytest.MonkeyPatch, **options: Any) -> float:
    """Run the attack in attacks.py on graphs of the same artifacts; return the largest ratio error / bound."""
    worst = [0.0]

    def judge(model: KernelModel, artifact: Artifact, rows: Any, _: int) -> Tally:
        with np.errstate(over="ignore"):
            narrow = rows.astype(np.float32)
        for taken in (rows, narrow[np.isfinite(narrow).all(axis=1)]):
            found = run(with_bounds(artifact, taken.dtype), taken)
            values, bounds = found["values"][:, 0], found["bounds"][:, 0]
            truth = truth_of(model, taken)
            error = (np.abs(values - truth.mid) - truth.rad).clip(0)
            assert (error <= bounds).all()
            assert ((values > 0) == (truth.mid > 0))[found["sure"]].all()
            worst[0] = max(worst[0], float((error / np.maximum(bounds, 1e-320)).max()))
        return Tally()

    monkeypatch.setattr(attacks, "judge_artifact", judge)
    random_attack(**options)
    return worst[0]


@pytest.mark.parametrize("seed", [1, 3, 6, 8])
def test_no_bound_is_broken(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    worst = attack(
        monkeypatch,
        seed=seed,
        n_sv=int(rng.integers(1, 40)),
        n_features=int(rng.integers(1, 6)),
        scaled_gamma=float(rng.uniform(-6, 2)),
        offset=float(rng.choice([0.0, 1.0, 1e4])),
        vectors=attacks.VECTORS[seed % len(attacks.VECTORS)],
        coefficients=attacks.COEFFICIENTS[seed % len(attacks.COEFFICIENTS)],
        degree=1 + seed % 6,
        n_centers=1 + seed % 8,
        n_categories=3 * (seed % 3 == 0),
        balanced=bool(seed % 2),
        precise=False,
    )
    assert worst <= 1.0


def test_numbers_that_onnxruntime_narrows_to_float32_keep_their_digits() -> None:
    """Check a tiny intercept, a feature scaled by almost 1, and a factor of matrices that float32 cannot represent."""
    model = random_model(0, n_features=1, dual_coef=1e-250 * RNG.normal(size=(1, 40)), intercept=np.array([1e-251]))
    rows = RNG.normal(size=(50, 1))
    for scaler in (MaxAbsScaler(), StandardScaler(with_mean=False)):
        scaler.fit(rows * (1 + 1e-9))
        y = rows[:, 0] > 0
        for svc in (SVC(kernel="linear"), SVC(kernel="poly", degree=3, gamma=0.1, coef0=1.0), SVC(gamma=0.1)):
            pipeline = make_pipeline(scaler, svc).fit(rows, y)
            graph = approxsvm.compile(pipeline, mode="exact").to_onnx(input_type="float64")
            values = run(graph, rows)["probabilities"][:, 1]
            np.testing.assert_allclose(values, pipeline.decision_function(rows), rtol=1e-11, atol=1e-11)
            np.testing.assert_allclose(values, run(graph, rows, optimize=False)["probabilities"][:, 1], rtol=1e-13)
    for mode in ("approximate", "exact"):
        artifact = approxsvm.compile(model, rows, mode=mode).artifact  # type: ignore[arg-type]
        exact = definition_of(model).values(rows)
        found = run(with_bounds(artifact), rows)
        assert (np.abs(found["values"] - exact) <= found["bounds"] + 1e-13 * np.abs(model.dual_coef).sum()).all()


def _functions_of(table: Any, degree: int, s: Any) -> Iterator[tuple[int, Any]]:
    from scipy.special import gammainc, gammaln

    for k in range(degree + 1, table.first_remainder_degree):
        yield k, np.exp(0.5 * (k * np.log(s) - s - gammaln(k + 1)))
    for j, theta in enumerate(table.thetas):
        first = table.first_remainder_degree
        yield first + j, np.exp((1 / theta - 1) * s / 2) * np.sqrt(gammainc(first, s / theta))
    yield -1, np.sqrt(gammainc(degree + 1, s))


@pytest.mark.parametrize("degree", [1, 2, 6])
def test_the_table_is_never_below_its_functions(degree: int) -> None:
    table = bound_table(degree, 8, (0.25, 1.0), 100.0)
    s = np.sort(10.0 ** np.random.default_rng(0).uniform(-6, 2.4, 20_000))
    cell = np.clip(np.floor(np.log2(s) * 32) + 1 + 12 * 32, 0, len(table.functions) - 1).astype(int)
    covered = table.functions[cell, -2] < 0.5
    for column, function in _functions_of(table, degree, s):
        known = table.functions[cell, column].astype(float)
        assert (function <= known)[covered].all()
        near = covered & (s > 2.0**-11) & (s < 8.0)
        assert (known[near] <= 1.3 * function[near]).all()  # and not much larger

"""Every source through every door: what docs/sources.md says is read is one kind of file with one answer.

The doors are the estimators, `approxsvm.Predictor` with NumPy alone, approxsvm-predict, the C++ headers, the C library,
and tables: Arrow's, which Spark, Dask and `score` go through too, and DuckDB's. Exports are made of all of them.
"""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from conftest import GOLDEN, REPOSITORY
from libsvm.svmutil import svm_save_model, svm_train
from predict_tool import libsvm_text, needs_tool, predict, shown
from scipy.sparse import csr_array
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_selection import RFE
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler, SkewedChi2Sampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge, SGDOneClassSVM
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM

import approxsvm
from approxsvm.errors import InputError, UnsupportedModelError
from approxsvm.evaluator import BOUNDS, PROBABILITIES, PROBABILITY_BOUNDS, VALUES
from approxsvm.model.ensemble import Ensemble
from approxsvm.readers import read_any

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")  # of sources that scikit-learn deprecates
N_FEATURES = 4
RNG = np.random.default_rng(7)
X = np.round(RNG.gamma(2.0, size=(90, N_FEATURES)) * [1.0, 3.0, 0.5, 2.0], 3)
X[RNG.random(X.shape) < 0.2] = 0.0
TARGET = np.round(np.sin(X[:, 0]) + 0.3 * X[:, 1] - X[:, 2], 3)
THREE = np.digitize(TARGET, np.quantile(TARGET, [0.33, 0.67]))
TWO = np.where(np.median(TARGET) < TARGET, 5, -2)
NAMES = np.array(["red", "green", "blue"])[THREE]
ROWS = np.round(X[:40] + 0.2 * RNG.normal(size=(40, N_FEATURES)) * (X[:40] != 0.0), 3)  # raw, for every source


def libsvm(options: str, y: npt.NDArray[Any]) -> Any:
    return lambda folder: svm_save_model(str(folder), svm_train(y.tolist(), X.tolist(), f"-q {options}"))


def fitted(estimator: Any, y: npt.NDArray[Any]) -> Any:
    return lambda: estimator.fit(X, y)


def least_squares_svm() -> approxsvm.KernelModel:
    """As docs/sources.md names it: solved by NumPy, given as arrays."""
    gamma, n = 0.1, len(X)
    kernel = np.exp(-gamma * ((X[:, np.newaxis] - X) ** 2).sum(axis=2)) + np.eye(n) / 10.0
    system = np.block([[np.zeros((1, 1)), np.ones((1, n))], [np.ones((n, 1)), kernel]])
    solution = np.linalg.solve(system, np.concatenate([[0.0], TARGET]))
    return approxsvm.KernelModel(
        task="regression",
        support_vectors=X,
        dual_coef=solution[np.newaxis, 1:],
        intercept=solution[:1],
        gamma=gamma,
    )


def of_half() -> CalibratedClassifierCV:
    """With probabilities, and without a decision function."""
    return CalibratedClassifierCV(SVC(C=0.1), ensemble=False, cv=2)


scaled = StandardScaler
# By the rows of the table of docs/sources.md: files, estimators, or what is compiled already.
SOURCES: dict[str, dict[str, Any]] = {
    "LIBSVM model files": {
        "c_svc": libsvm("-s 0 -t 2 -g 0.1 -b 1", THREE + 3),
        "nu_svc": libsvm("-s 1 -t 0 -n 0.3", TWO),
        "one class": libsvm("-s 2 -t 2 -g 0.1 -n 0.3 -b 1", np.ones(len(X))),
        "epsilon_svr": libsvm("-s 3 -t 1 -d 3 -g 0.1 -r 1 -b 1 -e 0.1", TARGET),
        "nu_svr": libsvm("-s 4 -t 2 -g 0.1", TARGET),
    },
    "SVC, NuSVC": {
        "several": fitted(SVC(), NAMES),
        "two": fitted(SVC(), TWO),
        "beyond int64": fitted(SVC(), np.array([3, 2**63, 2**64 - 1], np.uint64)[THREE]),
        "pairs": fitted(SVC(decision_function_shape="ovo"), THREE.astype(float)),
        "ties": fitted(SVC(break_ties=True), NAMES),
        "probability": fitted(SVC(probability=True, random_state=0), TWO),
        "nu": fitted(NuSVC(nu=0.3, kernel="poly", degree=3), NAMES),
        "quadratic": fitted(SVC(kernel="poly", degree=2, coef0=1.0), THREE),
    },
    "SVR, NuSVR, OneClassSVM": {
        "svr": fitted(SVR(), TARGET),
        "nu_svr": fitted(NuSVR(kernel="linear", C=0.1), TARGET),
        "outliers": fitted(OneClassSVM(nu=0.3), TARGET),
    },
    "KernelRidge, Gaussian processes, KernelDensity": {
        "ridge": fitted(KernelRidge(kernel="rbf", gamma=0.1), TARGET),
        "two targets": fitted(KernelRidge(kernel="rbf", gamma=0.1), np.column_stack([TARGET, X[:, 0]])),
        "cubic ridge": fitted(KernelRidge(kernel="poly", gamma=0.1, degree=3), TARGET),
        "one column": fitted(KernelRidge(kernel="rbf", gamma=0.1), TARGET[:, np.newaxis]),
        "process": fitted(
            GaussianProcessRegressor(RBF([3.0, 9.0, 1.0, 6.0]) + WhiteKernel(0.1), optimizer=None), TARGET
        ),
    },
    "LinearSVC, LinearSVR, Ridge and other linear models": {
        "svc": fitted(LinearSVC(), TWO),
        "several": fitted(make_pipeline(scaled(), LogisticRegression()), NAMES),
        "several behind landmarks": fitted(
            make_pipeline(Nystroem(gamma=0.1, n_components=20, random_state=0), LogisticRegression()), NAMES
        ),
        "outliers": fitted(make_pipeline(scaled(), SGDOneClassSVM(nu=0.3, random_state=0)), TARGET),
        "svr": fitted(make_pipeline(scaled(), LinearSVR(random_state=0)), TARGET),
        "nystroem": fitted(make_pipeline(Nystroem(gamma=0.1, n_components=20, random_state=0), Ridge()), TARGET),
        "alone": fitted(LogisticRegression(), TWO),
        "ridge alone": fitted(Ridge(), TARGET),
        "search": fitted(
            make_pipeline(
                Nystroem(gamma=0.1, n_components=20, random_state=0), GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=2)
            ),
            TARGET,
        ),
        "logistic": fitted(
            make_pipeline(scaled(), Nystroem(gamma=0.1, n_components=20, random_state=0), LogisticRegression()), TWO
        ),
    },
    "RBFSampler, SkewedChi2Sampler": {
        "fourier": fitted(make_pipeline(RBFSampler(gamma=0.1, random_state=0), LinearSVC(random_state=0)), TWO),
        "regression": fitted(make_pipeline(scaled(), RBFSampler(gamma=0.1, random_state=0), Ridge()), TARGET),
        "skewed": fitted(make_pipeline(SkewedChi2Sampler(skewedness=20.0, random_state=0), Ridge()), TARGET),
    },
    "CalibratedClassifierCV": {
        "sigmoid": fitted(CalibratedClassifierCV(SVC(), ensemble=False), NAMES),
        "isotonic": fitted(CalibratedClassifierCV(SVC(), method="isotonic", ensemble=False), TWO),
        "temperature": fitted(CalibratedClassifierCV(SVC(), method="temperature", ensemble=False), THREE),
        "ensemble": fitted(CalibratedClassifierCV(make_pipeline(scaled(), SVC()), cv=2), NAMES),
    },
    "searches, RFE, TransformedTargetRegressor": {
        "chosen": fitted(RFE(SVC(kernel="linear"), n_features_to_select=2), NAMES),
        "search": fitted(GridSearchCV(SVC(), {"C": [1.0, 10.0]}, cv=2), THREE),
        "target": fitted(TransformedTargetRegressor(SVR(), transformer=StandardScaler()), TARGET),
    },
    "estimators around several": {
        "soft votes": fitted(
            VotingClassifier(
                [("a", CalibratedClassifierCV(SVC(), ensemble=False, cv=2)), ("b", LogisticRegression())], voting="soft"
            ),
            TWO,
        ),
        "weighted soft votes": fitted(
            VotingClassifier([("a", LogisticRegression()), ("b", of_half())], voting="soft", weights=[0.3, 2]), NAMES
        ),
        "hard votes": fitted(VotingClassifier([("a", SVC()), ("b", LinearSVC()), ("c", of_half())]), NAMES),
        "weighted votes": fitted(VotingClassifier([("a", SVC()), ("b", LinearSVC())], weights=[1, 2]), TWO),
        "boosted": fitted(AdaBoostClassifier(SVC(C=0.1), n_estimators=4, random_state=0), NAMES),
        "rest": fitted(OneVsRestClassifier(SVC(gamma=0.1)), NAMES),
        "rest, calibrated": fitted(OneVsRestClassifier(CalibratedClassifierCV(SVC(), ensemble=False, cv=2)), NAMES),
        "rest of two": fitted(OneVsRestClassifier(SVC()), TWO),
        "rest of unlike ones": fitted(OneVsRestClassifier(make_pipeline(RBFSampler(gamma=0.1), LinearSVC())), NAMES),
        "value at least": fitted(FixedThresholdClassifier(SVC(), threshold=0.3, pos_label=-2), TWO),
        "probability at least": fitted(FixedThresholdClassifier(LogisticRegression(), threshold=0.4), TWO),
        "mean at least": fitted(FixedThresholdClassifier(CalibratedClassifierCV(SVC(), cv=2), threshold=0.4), TWO),
        "tuned": fitted(TunedThresholdClassifierCV(SVC(), cv=2), (THREE == 1).astype(int)),
        "sum": fitted(VotingRegressor([("a", SVR(gamma=0.1)), ("b", SVR(gamma=1.0)), ("c", Ridge())]), TARGET),
        "stack": fitted(StackingRegressor([("a", SVR()), ("b", Ridge())], cv=2), TARGET),
        "bag": fitted(BaggingRegressor(SVR(gamma=0.1), 3, random_state=0), TARGET),
        "pairs": fitted(OneVsOneClassifier(SVC(gamma=0.1)), NAMES),
        "pairs of unlike kernels": fitted(OneVsOneClassifier(SVC()), NAMES),
        "bag of some classes": fitted(BaggingClassifier(SVC(), 6, max_samples=8, random_state=9), NAMES),
        "codes": fitted(OutputCodeClassifier(SVC(gamma=0.1), code_size=2, random_state=0), NAMES),
        "stacked": fitted(StackingClassifier([("a", SVC()), ("b", of_half()), ("c", LinearSVC())], cv=2), TWO),
        "targets": fitted(MultiOutputRegressor(SVR()), np.column_stack([TARGET, X[:, 0]])),
    },
    "pipelines": {
        "standard": fitted(make_pipeline(scaled(), SVC()), NAMES),
        "projected": fitted(make_pipeline(scaled(), PCA(3), SVR()), TARGET),
        "truncated": fitted(make_pipeline(MinMaxScaler(clip=True), TruncatedSVD(3, random_state=0), SVC()), THREE),
        "columns": fitted(
            make_pipeline(
                ColumnTransformer([("a", MaxAbsScaler(), [3, 0]), ("b", RobustScaler(), [1])]), SVC(kernel="poly")
            ),
            NAMES,
        ),
        "looked up": fitted(
            make_pipeline(
                SimpleImputer(),
                FeatureUnion(
                    [("a", KBinsDiscretizer(4, strategy="uniform")), ("b", Binarizer(threshold=1.0))],
                ),
                SVC(),
            ),
            NAMES,
        ),
        "normalized": fitted(make_pipeline(Normalizer(), SVC(C=100.0)), NAMES),
        "powers": fitted(make_pipeline(PowerTransformer(), SVR()), TARGET),
        "products": fitted(make_pipeline(scaled(), PolynomialFeatures(2), SVC()), NAMES),
        "splines": fitted(make_pipeline(SplineTransformer(3), SVR()), TARGET),
        "quantiles": fitted(make_pipeline(QuantileTransformer(n_quantiles=20), SVC()), NAMES),
        "discriminants": fitted(make_pipeline(LinearDiscriminantAnalysis(), SVC()), NAMES),
    },
    "arrays": {"least squares": least_squares_svm},
}


class Case:
    """A compiled source, its file, and Python's answers for the rows, oriented as the core has them."""

    def __init__(self, name: str, fast: Any, path: Path) -> None:
        self.name, self.fast, self.path = name, fast, path
        fast.save(path)
        self.task = fast.artifact.task
        self.evaluator = approxsvm.Predictor(path)._evaluator
        self.values, self.bounds = self.get(VALUES), self.get(BOUNDS)
        self.shares, self.share_bounds = self.get(PROBABILITIES), self.get(PROBABILITY_BOUNDS)

    def get(self, what: int) -> npt.NDArray[np.float64]:
        """Of sparse rows, which all the files hold; nothing where the model has none."""
        try:
            return np.asarray(self.evaluator.evaluate(csr_array(ROWS), what), float).reshape(len(ROWS), -1)
        except InputError:
            return np.empty((len(ROWS), 0))

    @property
    def labels(self) -> list[Any]:
        """In the model's own order."""
        return [1, -1] if self.task == "one_class" else self.fast.artifact.labels.tolist()


def word(label: Any) -> str:
    return f"{label:g}" if isinstance(label, float) else str(label)


def compiled(source: Any, folder: Path) -> Any:
    if source.__code__.co_argcount == 1:  # writes a model file
        source(folder / "source.model")
        return approxsvm.compile(folder / "source.model", X, n_centers=1)
    made = source()
    model = read_any(made)
    members = model.members if isinstance(model, Ensemble) else (model,)
    has_expansion = not any(one.kind == "cosine" or getattr(one, "has_several", False) for one in members)
    fast = approxsvm.compile(made, X, **({"n_centers": 1} if has_expansion else {}))
    if hasattr(made, "classes_"):
        np.testing.assert_array_equal(fast.predict(ROWS), made.predict(ROWS))
    return fast


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    folder = tmp_path_factory.mktemp("doors")
    made = []
    for row, sources in SOURCES.items():
        made += [(f"{row}: {name}", compiled(source, folder)) for name, source in sources.items()]
    return [Case(name, fast, folder / f"{k}.asvm") for k, (name, fast) in enumerate(made)]


def test_every_row_of_the_table_is_here() -> None:
    text = (REPOSITORY / "docs" / "sources.md").read_text()
    table = text[text.index("# What it reads") :].split("\n\n")[1]
    assert re.findall(r"^\| (.*?) \|", table, re.MULTILINE)[1:] == list(SOURCES)


# --- NumPy alone

ALONE = """
import sys
from importlib.abc import MetaPathFinder


class NumPyAlone(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        root = name.partition(".")[0]
        if root not in sys.stdlib_module_names and root not in ("numpy", "approxsvm", "_approxsvm_editable"):
            raise ModuleNotFoundError(f"{name} is not there", name=name)


sys.meta_path.insert(0, NumPyAlone())
import numpy as np
import approxsvm
rows = np.load(sys.argv[1])
for path in sys.argv[2:]:
    predictor = approxsvm.Predictor(path)
    answers = {"predict": predictor.predict(rows), "certified": predictor.certified(rows)}
    for name in ("decision_function", "predict_proba", "error_bound"):
        try:
            answers[name] = getattr(predictor, name)(rows)
        except approxsvm.InputError:
            pass
    answers["one"] = np.array([predictor.predict_one(row) for row in rows])
    np.savez(path + ".npz", **answers)
assert not {"scipy", "sklearn", "joblib", "pandas", "click", "rich"} & set(sys.modules)
"""


def test_numpy_alone(cases: list[Case], tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", ROWS)
    command = [sys.executable, "-c", ALONE, str(tmp_path / "rows.npy"), *(str(case.path) for case in cases)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for case in cases:
        with np.load(f"{case.path}.npz") as answers:
            for name in ("predict", "certified", "decision_function", "predict_proba", "error_bound"):
                # Votes have these from estimators alone, and their file says so.
                of_votes = case.fast.artifact.counts_votes and name in ("decision_function", "predict_proba")
                assert not (of_votes and name in answers)
                if hasattr(case.fast, name) and not of_votes:
                    np.testing.assert_array_equal(answers[name], getattr(case.fast, name)(ROWS), case.name)
            if answers["predict"].shape == answers["one"].shape:
                within = case.bounds.max(initial=0.0) if case.task == "regression" else 0.0
                same = answers["one"] == answers["predict"]
                assert (same | (within > 0.0)).all(), case.name
                if within > 0.0:
                    np.testing.assert_allclose(answers["one"], answers["predict"], atol=2.0 * within, rtol=0)


# --- approxsvm-predict


def as_svm_predict_writes(case: Case, probabilities: bool) -> str:
    if case.task == "regression":
        return "".join(" ".join(map(shown, row)) + "\n" for row in case.values)
    if not probabilities:
        words = list(map(word, case.labels))
        winners = case.fast.predict(ROWS).tolist()
        return "".join(words[case.labels.index(winner)] + "\n" for winner in winners)
    if case.task == "one_class":
        header = "label normal outlier"
        winners = [case.labels.index(label) for label in case.fast.predict(csr_array(ROWS)).tolist()]
    else:
        header = "labels " + " ".join(map(word, case.labels))
        winners = case.shares.argmax(axis=1).tolist()  # the most probable, as svm-predict has it
    words = [f"{label:g}" if isinstance(label, (int, float)) else label for label in case.labels]
    lines = [
        " ".join([words[winner], *(f"{share:.6g}" for share in row)])
        for winner, row in zip(winners, case.shares, strict=True)
    ]
    return "".join(line + "\n" for line in [header, *lines])


@needs_tool
def test_approxsvm_predict(cases: list[Case], tmp_path: Path) -> None:
    texts = {"libsvm": libsvm_text([1] * len(ROWS), csr_array(ROWS))}
    texts["dense"] = "".join(",".join(map(repr, [1.0, *row])) + "\n" for row in ROWS.tolist())
    for form, text in texts.items():
        (tmp_path / form).write_text(text)
    out = tmp_path / "out"
    for case in cases:
        for probabilities in (False, True):
            if probabilities and not case.shares.size:
                continue
            for form, options in (("libsvm", []), ("dense", ["--dense"])):
                predict("-q", "-b", int(probabilities), *options, tmp_path / form, case.path, out)
                assert out.read_text() == as_svm_predict_writes(case, probabilities), (case.name, form, probabilities)


# --- C++


def test_headers(cases: list[Case], doors: Path, tmp_path: Path) -> None:
    ROWS.tofile(tmp_path / "rows")
    command = [doors, tmp_path / "rows", len(ROWS), *(case.path for case in cases)]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = iter(done.stdout.splitlines())
    for case in cases:
        predicted = [] if case.task == "regression" else list(map(word, case.fast.predict(ROWS).tolist()))
        for form in ("dense", "sparse"):
            labels = next(lines).split(" ")[1:]
            values, bounds, shares, share_bounds = (
                np.array(next(lines).split(" ")[1:], float).reshape(len(ROWS), -1) for _ in range(4)
            )
            assert labels == predicted, (case.name, form)
            assert values.shape == case.values.shape == bounds.shape, (case.name, form)
            assert (np.abs(values - case.values) <= bounds + case.bounds).all(), (case.name, form)
            assert shares.shape == case.shares.shape == share_bounds.shape, (case.name, form)
            assert (np.abs(shares - case.shares) <= share_bounds + case.share_bounds).all(), (case.name, form)
            np.testing.assert_allclose(shares, case.shares, rtol=0, atol=1e-6, err_msg=case.name)
    assert next(lines, None) is None


# --- C, tables, exports


def test_the_c_library(cases: list[Case]) -> None:
    runtime = pytest.importorskip("runtime_library")
    for case in cases:
        model = runtime.Runtime(case.path)
        if case.task != "regression":
            (positions,) = model.evaluate(ROWS, "labels")
            labels = [model.label_text(k) for k in positions.ravel()]
            assert labels == list(map(word, case.fast.predict(ROWS).tolist())), case.name
        for name, expected in (("values", case.values), ("probabilities", case.shares)):
            assert model.per_row(name) == expected.shape[1], case.name
            if expected.size:
                np.testing.assert_array_equal(model.evaluate(csr_array(ROWS), name)[0], expected, case.name)


@pytest.mark.filterwarnings("ignore::approxsvm.errors.ColumnsByPositionWarning")
def test_tables(cases: list[Case]) -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed; it is the extra arrow")
    rows = pa.table({f"x{j}": ROWS[:, j] for j in range(N_FEATURES)})
    for case in cases:
        found = approxsvm.Predictor(case.path).predict_arrow(rows)
        answers = np.column_stack([column.to_numpy() for column in found.columns])
        np.testing.assert_array_equal(answers, case.fast.predict(ROWS).reshape(len(ROWS), -1), case.name)


def test_a_function_of_duckdb(cases: list[Case]) -> None:
    """Of a source of each row of the table: tables are Arrow's there."""
    duckdb = pytest.importorskip("duckdb")
    from approxsvm.duckdb import register

    first = {case.name.partition(":")[0]: case for case in cases}
    with duckdb.connect() as connection:
        columns = ", ".join(f"unnest({ROWS[:, j].tolist()}) AS x{j}" for j in range(N_FEATURES))
        for k, case in enumerate(first.values()):
            register(connection, f"f{k}", case.path)
            found = connection.sql(f"SELECT f{k}(x0, x1, x2, x3) FROM (SELECT {columns})").fetchall()
            answers = [list(row[0].values()) if isinstance(row[0], dict) else [row[0]] for row in found]
            assert answers == case.fast.predict(ROWS).reshape(len(ROWS), -1).tolist(), case.name


# Doors that are closed to a source, and why.
CLOSED = {
    ("to_onnx", "SVC, NuSVC: beyond int64"): "neither whole numbers nor text, as those of ONNX classifiers",
}


def test_exports_of_every_source(cases: list[Case], tmp_path: Path) -> None:
    for case in cases:
        for name, export in (
            ("to_onnx", lambda case=case: case.fast.to_onnx()),
            ("export_c", lambda case=case: case.fast.export_c(tmp_path / "model.h")),
        ):
            with (
                pytest.raises(UnsupportedModelError, match=CLOSED[name, case.name])
                if (name, case.name) in CLOSED
                else nullcontext()
            ):
                export()


# --- golden artifacts of scikit-learn's sources


@pytest.mark.parametrize(
    "name",
    ["iris_pipeline", "iris_calibrated", "iris_ensemble", "iris_fourier", "iris_logarithms", "diabetes_pipeline"],
)
def test_golden_artifacts_give_their_sources_answers(name: str) -> None:
    predictor = approxsvm.Predictor(GOLDEN / f"{name}.asvm")
    evaluator = predictor._evaluator
    rows, targets = approxsvm.read_libsvm_data(GOLDEN / f"{name}.t", n_features=predictor.n_features)
    rows = rows.toarray()
    values, shares = (GOLDEN / f"{name}.{suffix}" for suffix in ("values", "probabilities"))
    assert values.exists() == (name != "iris_ensemble")
    if values.exists():
        found, bounds = (np.asarray(evaluator.evaluate(rows, what)) for what in (VALUES, BOUNDS))
        expected = np.loadtxt(values)
        assert (np.abs(found - expected) <= bounds + 1e-9 * np.abs(expected).max()).all()
    if shares.exists():
        np.testing.assert_allclose(predictor.predict_proba(rows), np.loadtxt(shares), rtol=0, atol=1e-9)
    if len(predictor.classes):
        share = np.mean(predictor.predict(rows) == predictor.classes[targets.astype(int)])
        assert share > 0.85

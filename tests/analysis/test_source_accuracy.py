"""compile, verify, reports and commands warn about sources whose arithmetic leaves labels undecided, and no others."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from click.testing import CliRunner
from conftest import GOLDEN
from scipy.sparse import csr_array
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, BaggingRegressor, StackingClassifier, VotingClassifier
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.multiclass import OneVsOneClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, OneClassSVM

import approxsvm
from approxsvm.analysis.source_answers import doubt_of_sample
from approxsvm.cli import main
from approxsvm.errors import SourceAccuracyWarning

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 4))
TWO = (X[:, 0] * X[:, 1] > 0).astype(int)
TARGET = np.sin(X.sum(axis=1))
ALL_UNDECIDED = "float64 rounding inside the source leaves 80 of 80 rows undecided"
SAYS = r"float64 rounding inside the source leaves \d+ of 80 rows undecided: .* a StandardScaler as the first step"


def nystroem(final: Any) -> Any:
    return make_pipeline(Nystroem(gamma=0.1, n_components=20, random_state=0), final)


IN_DOUBT = {
    "Nystroem": (nystroem(LinearSVC()), TWO),
    "Nystroem of sparse coefficients": (nystroem(LogisticRegression(l1_ratio=1.0, solver="liblinear")), TWO),
    "Nystroem of pairs": (nystroem(OneVsOneClassifier(RidgeClassifier())), np.digitize(TARGET, [-0.5, 0.5])),
    "folds with Nystroem maps of 10 and 20 components": (
        CalibratedClassifierCV(
            nystroem(LinearSVC()), cv=[(np.arange(10), np.arange(10, 80)), (np.arange(10, 80), np.arange(10))]
        ),
        np.arange(80) % 2,
    ),
    "Nystroem regression": (nystroem(Ridge(1e-3)), TARGET),
    "target in other units": (
        TransformedTargetRegressor(nystroem(Ridge(1e-3)), transformer=StandardScaler()),
        1e6 * TARGET,
    ),
    "bag of Nystroem maps": (BaggingClassifier(nystroem(LinearSVC()), 3, random_state=0), TWO),
    "bag of Nystroem maps of pairs": (
        BaggingClassifier(nystroem(OneVsOneClassifier(RidgeClassifier())), 2, random_state=0),
        np.digitize(TARGET, [-0.5, 0.5]),
    ),
    "soft votes of Nystroem": (VotingClassifier([("a", nystroem(LogisticRegression()))], voting="soft"), TWO),
    "stack of Nystroem": (StackingClassifier([("a", nystroem(LinearSVC()))], LogisticRegression(), cv=2), TWO),
    "bag of KernelRidge": (BaggingRegressor(KernelRidge(kernel="rbf", gamma=0.2), 2, random_state=0), TARGET),
    "KernelRidge": (KernelRidge(kernel="rbf", gamma=0.2), TARGET),
    "KernelRidge of two targets": (KernelRidge(kernel="rbf", gamma=0.2), np.column_stack([TARGET, X[:, 0]])),
    "linear": (KernelRidge(), TARGET),
    "quadratic": (KernelRidge(kernel="poly", degree=2), TARGET),
}


@pytest.mark.parametrize("name", IN_DOUBT)
def test_compiling_says_that_the_source_cannot_tell(name: str) -> None:
    source, y = IN_DOUBT[name]
    rows = X + (1e7 if name in ("linear", "quadratic") else 1e8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's own warnings about such rows
        source.fit(rows, y)
    if name == "Nystroem of sparse coefficients":
        source[-1].sparsify()
    with pytest.warns(SourceAccuracyWarning, match=SAYS) as seen:
        fast = approxsvm.compile(source, rows)
    assert seen[-1].filename == __file__
    approxsvm.compile(source)  # without rows there is no warning
    if name in ("Nystroem", "KernelRidge of two targets"):
        report = fast.report(rows, against=source)
        assert report.evidence.against.judged.doubt is not None
        assert "The source itself cannot tell" in report.html
        assert "All guarantees hold" not in report.html
    if not fast.artifact.members:
        found = approxsvm.verify(fast, source, rows)
        assert found.kept
        assert found.doubt == found.as_dict()["doubt"]
        assert ("doubt", found.doubt) in found.rows()
    if name == "Nystroem":
        assert 20 < (fast.predict(rows) != source.predict(rows)).sum() < 60


SETTLED = {
    "SVC": (SVC(gamma=0.2), TWO),
    "OneClassSVM": (OneClassSVM(gamma=0.2), TWO),
    "SVR": (SVR(gamma=0.2), TARGET),
    "Gaussian process": (GaussianProcessRegressor(RBF(1.5) + WhiteKernel(0.1), optimizer=None), TARGET),
    "Gaussian process, classes": (GaussianProcessClassifier(3.0 * RBF(1.5), optimizer=None), TWO),
    "scaled Nystroem": (make_pipeline(StandardScaler(), *nystroem(LinearSVC())), TWO),
    "scaled KernelRidge": (make_pipeline(StandardScaler(), KernelRidge(kernel="rbf", gamma=0.2)), TARGET),
    "constant": (SVR(kernel="linear"), np.full(80, 3.0)),
}


@pytest.mark.parametrize("name", SETTLED)
def test_nothing_is_said_where_the_source_squares_differences_or_scales(name: str) -> None:
    source, y = SETTLED[name]
    rows = X + 1e8
    source.fit(rows, y)
    fast = approxsvm.compile(source, rows)
    found = approxsvm.verify(fast, source, rows)
    assert found.kept
    assert found.doubt is None
    assert "doubt" not in dict(found.rows())
    assert found.as_dict()["doubt"] is None


def ordinary() -> list[tuple[str, Any, Any, Any]]:
    """Return typical models and data sets."""
    found: list[tuple[str, Any, Any, Any]] = []
    for load in (load_wine, load_breast_cancer, load_diabetes):
        rows, y = load(return_X_y=True)
        rows, y = rows[::3], y[::3]
        two = y > np.median(y) if len(np.unique(y)) > 2 else y
        scaler = StandardScaler()
        spread = rows.var() * rows.shape[1]
        for model, target in (
            (SVC(), two),
            (make_pipeline(scaler, SVC(kernel="linear")), two),
            (make_pipeline(scaler, SVC(kernel="poly", coef0=1.0)), two),
            (CalibratedClassifierCV(make_pipeline(scaler, SVC()), cv=2), two),
            (make_pipeline(scaler, PCA(3), SVC()), np.digitize(y, np.quantile(y, [0.3, 0.7]))),
            (OneClassSVM(), two),
            (make_pipeline(Nystroem(gamma=1 / spread, random_state=0), LogisticRegression(max_iter=1000)), two),
            (make_pipeline(Nystroem(n_components=50, random_state=0), LinearSVC(dual=False)), two),
            (make_pipeline(scaler, Nystroem(n_components=50, random_state=0), Ridge(1e-3)), y),
            (make_pipeline(scaler, RBFSampler(gamma=0.1, random_state=0), LogisticRegression(max_iter=1000)), two),
            (KernelRidge(kernel="rbf", gamma=1 / spread, alpha=1e-2), y),
            (make_pipeline(scaler, KernelRidge(kernel="poly", degree=2)), y),
            (SVR(C=100), y),
            (make_pipeline(scaler, GaussianProcessRegressor(RBF(3) + WhiteKernel(0.1), optimizer=None)), y),
        ):
            found.append((f"{load.__name__}, {model}", model, rows, target))
    return found


@pytest.mark.slow
def test_no_ordinary_model_is_doubted() -> None:
    doubted = []
    for name, model, rows, y in ordinary():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(rows, y)
        if doubt_of_sample(model, approxsvm.read_any(model), rows):
            doubted.append(name)
    assert not doubted


def test_of_a_large_sample_a_few_rows_are_looked_at() -> None:
    rows = np.tile(X, (1000, 1)) + 1e8
    source = nystroem(LinearSVC()).fit(rows[:80], TWO)
    text = doubt_of_sample(source, approxsvm.read_any(source), rows)
    assert text is not None
    assert "of 256 rows" in text
    wide = csr_array((np.ones(200), np.zeros(200, int), np.arange(201)), shape=(200, 1 << 20))
    text_model = SVC(kernel="linear").fit(csr_array(np.eye(4, 1 << 20)), [0, 1, 0, 1])
    assert doubt_of_sample(text_model, approxsvm.read_any(text_model), wide) is None


def test_what_a_model_cannot_take_or_float64_cannot_hold_is_no_reason_to_fail() -> None:
    source = KernelRidge(kernel="poly", degree=2).fit(X, TARGET)
    with pytest.warns(SourceAccuracyWarning, match="leaves 3 of 80 rows undecided"):
        approxsvm.compile(source, np.vstack([X[:77], 1e200 * X[:3]]))


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_commands_say_it_in_one_line(tmp_path: Path) -> None:
    rows, names = X + 1e8, [tmp_path / name for name in ("m.joblib", "m.asvm", "X.npy", "page.html")]
    model, output, data, page = names
    joblib.dump(nystroem(LinearSVC()).fit(rows, TWO), model)
    np.save(data, rows)
    options = ["--data", data, "--trust"]
    converted = run("convert-model", model, "-o", output, *options)
    assert converted.exit_code == 0
    assert converted.stderr.count("\n") == 1
    assert converted.stderr.startswith(f"approxsvm: warning: {ALL_UNDECIDED}")
    verifying = ["verify", output, "--against", model, *options]
    for more in ([], ["--json"]):
        verified = run(*verifying, *more)
        assert verified.exit_code == 0
        assert verified.stderr.count("\n") == 1
        assert verified.stderr.startswith(f"approxsvm: warning: {ALL_UNDECIDED}")
        assert "leaves 80 of 80" in verified.stdout
    reported = run("report", output, "--against", model, *options, "-o", page)
    assert "leaves 80 of 80" in " ".join(reported.stdout.split())
    assert json.loads(run(*verifying, "--json").stdout)["doubt"].startswith("float64 rounding inside the source")
    assert "leaves 80 of 80 rows undecided" in page.read_text()


def test_commands_are_silent_otherwise(tmp_path: Path) -> None:
    output, options = tmp_path / "m.asvm", ["--data", GOLDEN / "breast_cancer.t"]
    converted = run("convert-model", GOLDEN / "breast_cancer.model", "-o", output, *options)
    verified = run("verify", output, "--against", GOLDEN / "breast_cancer.model", *options)
    assert (converted.exit_code, verified.exit_code) == (0, 0)
    assert converted.stderr == verified.stderr == ""
    assert "doubt" not in verified.stdout

"""What puts readers to the test with models that nobody here wrote: benchmarks.gallery and benchmarks.reader_attack."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import REPOSITORY
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, SVR

sys.path.append(str(REPOSITORY))  # benchmarks are no part of the package

from zoo.draw import Draw
from zoo.random_sources import Made
from zoo.reader_attack import attempt
from zoo.shrinking import Case, as_code, shrunk
from zoo.tables import Table
from zoo.tampering import parts_of, tampered

import approxsvm
from benchmarks.comparison import compare
from benchmarks.gallery import PACKAGE, SUITES

IRIS, SPECIES = load_iris(return_X_y=True)


@pytest.mark.filterwarnings("ignore:The `probability` parameter")
def test_equal_answers_are_equal() -> None:
    found = compare(SVC(probability=True, random_state=0).fit(IRIS, SPECIES), IRIS)
    assert (found.verdict, found.n_rows, found.n_ties) == ("equal", len(IRIS), 0)


@pytest.mark.filterwarnings("ignore:The `probability` parameter")
@pytest.mark.parametrize(
    ("source", "other", "what"),
    [
        ((SVC(C=10.0), SPECIES), (SVC(C=0.01), SPECIES), "predict: [0-9]+ of 150 labels"),
        ((SVC(), SPECIES), (SVC(probability=True), SPECIES), "predict_proba: an answer, but"),
        ((SVC(), SPECIES), (SVC(), SPECIES + 1), r"classes_: \[1, 2, 3\] instead of \[0, 1, 2\]"),
        ((SVR(), IRIS[:, 0]), (SVR(), 1.001 * IRIS[:, 0]), "predict: 150 of 150 rows"),
    ],
    ids=["labels", "methods", "classes", "values"],
)
def test_other_answers_differ(source: Any, other: Any, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source, other = (estimator.fit(IRIS, y) for estimator, y in (source, other))
    compiled = approxsvm.compile(other)
    monkeypatch.setattr(approxsvm, "compile", lambda *_, **__: compiled)
    found = compare(source, IRIS)
    assert found.verdict == ("other methods" if what.startswith("predict_proba") else "differs")
    assert re.search(what, found.reason)


def test_exceptions_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    other = SVC(kernel=lambda a, b: a @ b.T).fit(IRIS, SPECIES)
    assert compare(other, IRIS).verdict == "refused"
    assert compare(SVC(), IRIS).exception == "NotFittedError"
    monkeypatch.setattr(approxsvm, "compile", lambda *_, **__: 1 / 0)
    assert compare(other, IRIS).verdict == "wrong exception"


def test_labels_at_a_tie_are_counted_apart() -> None:
    """Of rows that lie on the boundary as well as float64 can tell, the labels of two ways to sum may differ."""
    X = np.array([[-1.0, 0.0], [1.0, 0.0]])
    source = SVC(gamma=0.3).fit(X, [0, 1])
    rows = np.column_stack([np.zeros(50), np.linspace(-3.0, 3.0, 50)])
    found = compare(source, X, rows)
    assert found.verdict == "equal"
    assert found.n_rows == 50


@pytest.mark.slow
def test_gallery_runs_and_finds_nothing(tmp_path: Path) -> None:
    if not (PACKAGE / SUITES["kernel_ridge"][0]).exists():
        pytest.skip("scikit-learn's tests are not installed")
    command = [sys.executable, "-m", "benchmarks.gallery", "--only", "kernel_ridge", "--results", str(tmp_path)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    tables = json.loads((tmp_path / "gallery.json").read_text())["tables"]
    counts = tables["fitted"][0]
    assert counts["fitted"] == counts["equal"] + counts["refused"] > 15
    assert counts["equal"] > 10
    assert tables["tests"][0]["failed"] == 0


@pytest.mark.slow
def test_attack_repeats_itself() -> None:
    tried = [attempt(7, k) for k in range(20)]
    assert tried[5] == attempt(7, 5)
    verdicts = {one.finding.verdict for one in tried}
    assert {"equal", "refused"} <= verdicts
    assert sum(one.finding.n_rows for one in tried) > 100


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_tampering_reaches_what_is_inside() -> None:
    for seed in range(40):
        source = SVC().fit(IRIS, SPECIES)
        changed, what = tampered(Draw(seed), source)
        assert what
        assert len(list(parts_of(changed))) >= 1


def test_attack_asks_both_with_the_very_same_rows() -> None:
    """Strides, flags, dtypes and the structure of sparse rows are those that were drawn, each time."""
    values = np.array([[1.0, 0.0], [2.0, 3.0]])
    made = Table(values, ("float32",) * 2, "not contiguous").make()
    assert made.dtype == np.float32
    assert not made.flags.contiguous
    repeated = Table(values, ("float64",) * 2, "CSR repeated").make()
    assert (repeated.nnz, (repeated.toarray() == values).all()) == (6, True)
    assert not Table(values, ("int8",) * 2, "CSR unsorted").make().has_sorted_indices
    frame = Table(values, ("Int8", "double[pyarrow]"), "frame", ("b", "a")).make()
    assert frame.dtypes.astype(str).to_dict() == {"b": "Int8", "a": "double[pyarrow]"}


def test_fault_of_an_attack_is_made_smaller_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """What a "fault" does not need goes: it is here that there is a scaler, and a first number below 0."""
    values = IRIS[::5] - 5.0
    made = Made(make_pipeline(MinMaxScaler(), StandardScaler(with_mean=False), SVC(C=3.0)), SPECIES[::5], {})
    train = Table(values, ("float32",) * 4, "CSR repeated")
    case = Case(made, train, (), (train, Table(values, ("float64",) * 4, "array")), {"mode": "exact"}, True, True)

    def is_faulty(smaller: Case) -> bool:
        source = smaller.made.fitted(smaller.table.make())
        has_both = "StandardScaler" in repr(source) and "SVC" in repr(source)
        return has_both and any((table.values[:, 0] < 0).any() for table in smaller.asked)

    small = shrunk(case, is_faulty, 60.0)
    assert [type(step).__name__ for _, step in small.made.estimator.steps] == ["StandardScaler", "SVC"]
    assert small.made.estimator[-1].C == 1.0
    assert [table.values.shape for table in small.asked] == [(1, 1)]
    assert (len(small.table.values), small.table.container, small.table.kinds) == (2, "array", ("float64",))
    exec(as_code(small, ()), {})
    assert capsys.readouterr().out.count("True") == 1


@pytest.mark.slow
def test_attack_reports_what_it_finds(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.reader_attack", "--seconds", "2", "--results", str(tmp_path)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    tables = json.loads((tmp_path / "reader_attack.json").read_text())["tables"]
    assert done.returncode == int("faults" in tables), done.stderr[-2000:]
    assert tables["models"][0]["tried"] > 0

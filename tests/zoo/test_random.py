"""Tests of ``python -m tests.zoo``, and a small seeded selection of its composed sources."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from conftest import REPOSITORY
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC

from approxsvm.errors import UnsupportedModelError
from zoo import composed
from zoo.composed import ESTIMATOR, Judged, Zoo, composed_attempt
from zoo.draw import Draw
from zoo.executors.in_python import PYTHON
from zoo.past_faults import PastFault, past_faults
from zoo.random_sources import Made
from zoo.refused import REFUSED
from zoo.shrinking import Case, as_code, shrunk
from zoo.sources import ENTRIES, specimen
from zoo.specimens import Entry, RefusedError
from zoo.tables import Table
from zoo.tampering import parts_of, tampered

IRIS, SPECIES = load_iris(return_X_y=True)
_PARTS = 3  # parts of the selection, distributed over pytest workers
_SOURCES = 5  # number of sources in each part


@pytest.mark.slow
@pytest.mark.parametrize("part", range(_PARTS))
def test_composed_sources_are_answered_as_they_answer(part: int) -> None:
    zoo = Zoo(ENTRIES, PYTHON)
    tried = [composed_attempt(zoo, 4, index) for index in range(part * _SOURCES, (part + 1) * _SOURCES)]
    assert not [(one.index, fault) for one in tried for fault in one.judged.faults]
    assert Counter(one.judged.verdict for one in tried)["compiled"] > 0
    assert sum(one.judged.n_answers for one in tried) > 100


@pytest.mark.parametrize("fault", past_faults(), ids=lambda fault: fault.name)
def test_faults_of_the_past_can_be_put_back(fault: PastFault) -> None:
    assert fault.edits
    for edit in fault.edits:
        assert edit.applied(REPOSITORY) != (REPOSITORY / edit.file).read_text()
    re.compile(fault.first)


@pytest.mark.parametrize(
    ("words", "entry"), [(words, entry) for words, several in REFUSED.items() for entry in several]
)
def test_sources_that_compute_otherwise_are_refused(words: str, entry: Entry, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModelError, match=words):
        specimen(entry, tmp_path).fast  # noqa: B018


@pytest.mark.slow
def test_composed_source_repeats_itself() -> None:
    zoo = Zoo(ENTRIES, PYTHON)
    assert composed_attempt(zoo, 7, 5) == composed_attempt(zoo, 7, 5)


@pytest.mark.slow
def test_command_reports_what_it_tried() -> None:
    command = [sys.executable, "-m", "tests.zoo", "--seconds", "1", "--executors", "batch"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    n_faults = int(re.findall(r"^faults: (\d+)", done.stdout, re.MULTILINE)[0])
    assert done.returncode == int(n_faults > 0), done.stderr[-2000:]
    assert not re.search(r"^0 entries|^0 answers", done.stdout, re.MULTILINE)


def test_fault_of_an_executor_is_made_smaller_and_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong answer for one row, injected here, is reported with Python code that reproduces it."""
    batch = next(one for one in PYTHON if one.name == "batch")
    right = type(batch).answers

    def wrong(self, specimen, table):  # type: ignore[no-untyped-def]
        found = right(self, specimen, table)
        if found.labels is not None and len(found.labels):
            np.asarray(found.labels)[-1:] = specimen.labels[0]
        return found

    monkeypatch.setattr(type(batch), "answers", wrong)
    monkeypatch.setattr(composed, "_SHRINKING_SECONDS", 0.7)
    zoo, known = Zoo(ENTRIES, [batch]), Counter[str]()
    scripts = (composed_attempt(zoo, 4, index, known=known).script for index in range(8))
    found = next(script for script in scripts if "batch: " in script)
    assert re.search(r"labels differ|certified labels differ", found)
    assert "fast = approxsvm.compile(source" in found


def test_what_an_executor_refuses_is_counted_and_what_it_raises_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = next(one for one in PYTHON if one.name == "batch")
    zoo = Zoo(ENTRIES, [batch])

    def judged(error: Exception) -> Judged:
        def answers(self, specimen, table):  # type: ignore[no-untyped-def]
            raise error

        monkeypatch.setattr(type(batch), "answers", answers)
        tried = (composed_attempt(zoo, 4, index).judged for index in range(20))
        return next(one for one in tried if one.verdict == "compiled" and one.n_answers > 0)

    assert "no" in judged(RefusedError("no")).refused
    assert "ZeroDivisionError: no" in [fault.words for fault in judged(ZeroDivisionError("no")).faults]


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_tampering_reaches_what_is_inside() -> None:
    for seed in range(40):
        source = SVC().fit(IRIS, SPECIES)
        changed, what = tampered(Draw(seed), source)
        assert what
        assert len(list(parts_of(changed))) >= 1


def test_numbers_get_types_of_numpy() -> None:
    """Every width is drawn, and no value changes."""
    drawn = [Draw(seed).typed(number) for seed in range(400) for number in (100, -1)]
    assert {np.dtype(code).type for code in "bhiqBHIQefdg"} <= {type(number) for number in drawn}
    assert set(drawn) == {100, -1}


def test_rows_are_made_as_they_were_drawn() -> None:
    """Strides, flags, dtypes and the structure of sparse rows are as drawn."""
    values = np.array([[1.0, 0.0], [2.0, 3.0]])
    made = Table(values, ("float32",) * 2, "not contiguous").make()
    assert made.dtype == np.float32
    assert not made.flags.contiguous
    repeated = Table(values, ("float64",) * 2, "CSR repeated").make()
    assert (repeated.nnz, (repeated.toarray() == values).all()) == (6, True)
    assert not Table(values, ("int8",) * 2, "CSR unsorted").make().has_sorted_indices
    cells = Table(np.array([[1.0, None]], object), ("cells",) * 2, "array").make()
    assert (cells.dtype, cells[0, 1]) == (object, None)
    frame = Table(values, ("Int8", "double[pyarrow]"), "frame", ("b", "a")).make()
    assert frame.dtypes.astype(str).to_dict() == {"b": "Int8", "a": "double[pyarrow]"}


def test_case_is_made_smaller_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """Parts that a "fault" does not need are removed; this one needs a scaler, an SVC, and a negative first number."""
    values = IRIS[::5] - 5.0
    made = Made(make_pipeline(MinMaxScaler(), StandardScaler(with_mean=False), SVC(C=3.0)), SPECIES[::5], {})
    train = Table(values, ("float32",) * 4, "CSR repeated")
    asked = (train, Table(values, ("float64",) * 4, "array"))
    case = Case(made, train, (), asked, {"mode": "exact"}, True, (ESTIMATOR,))

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

"""Check that README.md and docs/benchmarks.md show the last full run's results; also tests of the suite's arithmetic.

Nothing is timed: all figures compared here were measured earlier (benchmarks/results).
"""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from conftest import REPOSITORY
from scipy.sparse import csr_array
from sklearn.svm import SVC

sys.path.append(str(REPOSITORY))  # benchmarks are not part of the package

import approxsvm
from approxsvm.reference.definition import definition_of
from benchmarks import prices as benchmarks_prices
from benchmarks import publish
from benchmarks.charts import BACKGROUND, INK, SERIES, Chart, Dots, Lines, Points, svg, words
from benchmarks.karl import LEAF_ROWS, TREES, KarlTree, Shape
from benchmarks.peers import KARL, LIBSVM, OTHERS, SKLEARN, Peer, Sample, Trained, write_libsvm_model
from benchmarks.publish import TABLES, pictures_of
from benchmarks.record import RESULTS, Record
from benchmarks.side_by_side import side_by_side
from docs import prices

RECORDS = publish.records_in(RESULTS)
IMAGES = REPOSITORY / "docs" / "images"
CHARTS: list[Chart] = [
    Dots("dots", "times", ["a", "b & c"], {"one": [3.0, None], "two": [0.5, 2000.0]}),
    Lines("lines", "x", "y", {"one": [(1, 0.1), (1000, 20)], "two <": [(1, 0.11), (1000, None)]}),
    Points("points", "x", "y", {"one": [(1, 2), (30, 5)]}, diagonal="y = x"),
]


@pytest.mark.parametrize("page", publish.PAGES)
def test_pages_equal_the_records(page: str) -> None:
    text = (REPOSITORY / page).read_text()
    assert "<!-- figures:" in text
    assert publish.filled(text, RECORDS) == text, "python -m benchmarks.publish writes the pages again"


@pytest.mark.parametrize("name", pictures_of(RECORDS))
def test_pictures_equal_the_records(name: str) -> None:
    assert f">{words(pictures_of(RECORDS)[name])}<" in (IMAGES / f"{name}.svg").read_text()


def test_every_table_and_every_picture_is_shown() -> None:
    text = "".join((REPOSITORY / page).read_text() for page in publish.PAGES)
    assert set(re.findall(r"^<!-- figures: (.+?) -->$", text, re.MULTILINE)) == set(TABLES)
    assert set(pictures_of(RECORDS)) <= set(re.findall(r"images/(\w+)\.svg", text))


def test_prices_are_about_those_of_the_sources() -> None:
    """Kinds and gains are equal; line and test counts may change by a tenth before the page must be regenerated."""
    shown = [line.strip("| ").split(" | ") for line in prices.PAGE.read_text().splitlines() if line.startswith("| ")]
    rows = [row for rows in prices.tables().values() for row in rows]
    told = "python -m docs.prices writes the page again"
    assert [(row[0], *row[3:]) for row in shown if row[0] != "kind"] == [(row[0], *row[3:]) for row in rows], told
    counts = {row[0]: [int(number.replace(",", "")) for number in row[1:3]] for row in shown if row[0] != "kind"}
    for name, n_lines, n_tests, *_ in rows:
        assert counts[name] == pytest.approx([n_lines, n_tests], rel=0.1, abs=20), told
    assert all(kind in prices.KINDS.read_text() for kind in benchmarks_prices.KINDS if "," not in kind)


def test_labels_of_the_records_are_the_exact_ones() -> None:
    """Check the runs from file to file; runs in memory stop if one of our labels differs."""
    certified = [x for x in RECORDS["libsvm"].tables["files"] if x["given"] in ("certified", "LIBSVM model")]
    assert all(x["same_bytes"] for x in certified if x["libsvm_seconds"] is not None and x["seconds"] is not None)


def test_records_come_back(tmp_path: Path) -> None:
    record = Record.begin("try")
    record.add("a", {"x": np.float64(0.1), "n": np.int64(3), "none": None})
    assert Record.load(record.save(tmp_path)) == record
    record.add("a", {"x": float("nan")})
    with pytest.raises(ValueError, match="JSON"):
        record.save(tmp_path)


def test_runs_side_by_side() -> None:
    first, again, other = (Record.begin("try") for _ in range(3))
    other.machine = replace(other.machine, cpu="QEMU Virtual CPU", target="neon")
    for record, figure in ((first, 1.0), (again, 3.0), (other, 7.0)):
        record.add("models", {"model": "a9a", "microseconds": figure, "plan": None})
    shown = side_by_side([first, again, other], "models", "microseconds")
    assert [cell for column in shown.columns for cell in column.cells] == ["a9a", "2 (1 to 3, 2 runs)", "7"]
    assert str(shown.columns[2].header) == "QEMU Virtual CPU, neon, emulated"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    svc = SVC(gamma=0.3).fit(X, np.where(X[:, 0] * X[:, 1] > 0.1, 3, -2))
    model = approxsvm.read_model(svc)
    path = tmp_path_factory.mktemp("peers") / "some.model"
    found = Trained(model, path)
    write_libsvm_model(found)
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the peers' warnings
@pytest.mark.parametrize("peer", [LIBSVM, SKLEARN, *OTHERS], ids=lambda peer: peer.name)
def test_every_peer_that_is_installed_gives_the_labels(peer: Peer, trained: Trained) -> None:
    rows = csr_array(np.random.default_rng(1).standard_normal((200, 4)))
    if peer == KARL and not shutil.which("c++"):
        pytest.skip("no C++ compiler here")
    try:
        predict = peer.prepare(trained, Sample(rows, np.arange(200)))
    except ImportError as error:
        pytest.skip(f"{peer.name}: {error}")
    values = definition_of(trained.model).values(rows.toarray())[:, 0]
    clear = np.abs(values) > 1e-5 * np.abs(trained.model.coefficients(0)).sum()
    assert clear.sum() > 190
    np.testing.assert_array_equal(predict()[clear], trained.model.labels[np.where(values > 0, 0, 1)][clear])
    assert peer.version != "not installed"


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.title)
def test_charts_hold_their_numbers(chart: Chart) -> None:
    pytest.importorskip("matplotlib", reason="charts are drawn by matplotlib")
    drawn = svg(chart)
    ElementTree.fromstring(drawn)  # well-formed
    assert f">{words(chart)}<" in drawn
    assert drawn == svg(chart)


@pytest.mark.parametrize("dark", [0, 1])
def test_charts_can_be_read(dark: int) -> None:
    """The contrast between text and background, as defined by WCAG, is at least 4.5."""

    def luminance(color: str) -> float:
        parts = np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)]) / 255
        return float(
            np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]
        )

    for pair in (INK, *SERIES):
        low, high = sorted((luminance(pair[dark]), luminance(BACKGROUND[dark])))
        assert (high + 0.05) / (low + 0.05) >= 4.5, pair


@pytest.mark.native
@pytest.mark.parametrize("gamma", [0.02, 5.0])
def test_karl_gives_the_labels_of_the_definition(gamma: float) -> None:
    """Check every tree and leaf size, on rows with and without zeros; for far rows, most leaves are never summed."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1200, 4)) * (rng.random((1200, 4)) < 0.7)
    svc = SVC(gamma=gamma).fit(X, X[:, 0] * X[:, 1] + 0.5 * rng.standard_normal(1200) > 0)
    model = approxsvm.read_model(svc)
    rows = rng.standard_normal((300, 4)) * (rng.random((300, 4)) < 0.7)
    rows = np.ascontiguousarray(rows, np.float32)
    values = definition_of(model).values(rows.astype(float))[:, 0]
    clear = np.abs(values) > 1e-6 * np.abs(model.coefficients(0)).sum()
    assert clear.mean() > 0.95
    assert 30 < (values > 0).sum() < 270
    shares = []
    for shape in (Shape(tree, leaf_rows) for tree in TREES for leaf_rows in LEAF_ROWS):
        found, visited = KarlTree(model, shape).positive(rows)
        np.testing.assert_array_equal(found[clear], (values > 0)[clear])
        shares.append(visited)
    assert min(shares) < 0.9 < max(shares) <= 1

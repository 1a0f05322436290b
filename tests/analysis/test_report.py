"""The report page is correct for every kind of model, and a real browser renders it properly."""

from __future__ import annotations

import pickle
import re
import shlex
import sys
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import joblib
import matplotlib
import numpy as np
import pandas as pd
import pytest
from chromium import PROGRAM, Chromium
from click.testing import CliRunner
from conftest import GOLDEN
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.kernel_ridge import KernelRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import SVC, SVR, OneClassSVM

matplotlib.use("Agg")

import approxsvm
from approxsvm.analysis.report import evidence, findings, tables
from approxsvm.analysis.report.environment import resident_bytes
from approxsvm.analysis.report.evidence import Speed
from approxsvm.analysis.report.page import make_report
from approxsvm.analysis.report.plots import (
    BROKEN,
    CertifiedShareDisplay,
    DecisionBandDisplay,
    ErrorBoundDisplay,
    StageShareDisplay,
    share_text,
)
from approxsvm.cli import main
from approxsvm.errors import InputError, MissingPackageError
from approxsvm.runtime.evaluator import BOUNDS, VALUES

CANCER = load_breast_cancer(return_X_y=True)
IRIS = load_iris(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
HOSTILE = "<script>alert(1)</script>"


def compiled_with_report(source, X, y, target=None, against=True, options=None, **asked):
    source.fit(X[::2], (y if target is None else target)[::2])
    compiled = approxsvm.compile(source, X[::2], **(options or {}))
    return compiled, compiled.report(X[1::2], y[1::2], against=source if against else None, **asked)


@pytest.fixture(scope="module")
def cancer():
    """Return a two-class source with a scaler, its model, whose expansion decides nearly all rows, and a report."""
    source = make_pipeline(StandardScaler(), SVC(gamma=0.003))
    compiled, report = compiled_with_report(source, *CANCER, options={"degree": 2, "n_centers": 1})
    return source, compiled, report


@pytest.fixture(autouse=True)
def _measured_once(request, unmeasured, monkeypatch):
    """Measure a new process's memory for two kinds of model only."""
    if request.node.name in ("test_every_kind_of_model_has_a_page[ensemble]", "test_commands_write_it"):
        monkeypatch.setattr(tables, "resident_bytes", resident_bytes)


def hostile():
    """Return a report with class and column names that look like markup."""
    X, y = IRIS
    frame = pd.DataFrame(X, columns=[f"<b>{k}</b>" for k in range(4)])
    names = np.array(["setosa", HOSTILE, "a & b"])[y]
    source = make_pipeline(StandardScaler(), SVC()).fit(frame[::2], names[::2])
    return approxsvm.compile(source, frame[::2]).report(frame, names, against=source, title=HOSTILE)


def without_truth():
    X, y = IRIS
    svc = SVC().fit(X, y)
    return approxsvm.compile(svc, X).report(X, against=svc)


def golden(name, n_features):
    rows = approxsvm.read_rows(GOLDEN / f"{name}.t", n_features=n_features)
    return approxsvm.load(GOLDEN / f"{name}.asvm").report(rows, against=GOLDEN / f"{name}.model")


SIGNS = np.where(IRIS[1] == 0, -1, 1)
KINDS = {
    "hostile names": hostile,
    "probabilities": lambda: compiled_with_report(CalibratedClassifierCV(SVC(), ensemble=False), *CANCER)[1],
    "ensemble": lambda: compiled_with_report(CalibratedClassifierCV(SVC(), cv=3), *IRIS)[1],
    "regression": lambda: compiled_with_report(SVR(gamma=5.0, C=100.0), *DIABETES)[1],
    "targets": lambda: compiled_with_report(KernelRidge(kernel="rbf", gamma=0.1), IRIS[0][:, :2], IRIS[0][:, 2:])[1],
    "one class": lambda: compiled_with_report(OneClassSVM(gamma=0.1), IRIS[0], SIGNS)[1],
    "approximate": lambda: compiled_with_report(SVC(gamma=0.1), *IRIS, options={"mode": "approximate"})[1],
    "exact": lambda: compiled_with_report(SVC(), *IRIS, options={"mode": "exact"})[1],
    "no source": lambda: compiled_with_report(SVC(), *IRIS, against=False)[1],
    "no truth": without_truth,
    "libsvm": lambda: golden("breast_cancer", 30),
    "subspace": lambda: golden("digits_subspace", 64),
}


@cache
def report_of(kind):
    return KINDS[kind]()


def text_of(html: str) -> str:
    """Return a page's visible text, without its drawings."""
    body = re.sub(r"<(style|svg).*?</\1>", " ", html[html.index("<body>") :], flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", body).split())


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_has_a_page(kind):
    html = report_of(kind).html
    text = text_of(html)
    assert not re.search(r"\b(nan|inf|None|undefined)\b", text), re.findall(r".{30}\b(?:nan|inf|None)\b.{30}", text)
    assert report_of(kind).evidence.against is None or "All guarantees hold" in text
    for svg in re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL):
        ElementTree.fromstring(svg)
        assert "#1c2024" not in svg  # colors are the page's
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert len(html.encode()) < 1_500_000
    # The page fetches nothing, and runs no scripts.
    assert not re.search(r"<(script|link rel=\"stylesheet\"|iframe|img)\b", html)
    addresses = set(re.findall(r"https?://[^\"' <)]+", html))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def test_text_of_others_is_escaped():
    html = report_of("hostile names").html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "<script" not in html
    assert "<b>0</b>" not in html
    assert "a &amp; b" in html


def test_the_page_has_the_figures_of_verify(cancer):
    source, compiled, report = cancer
    ours, X = report.evidence.against.judged.verification, CANCER[0][1::2]
    assert replace(ours, speed_ratio=1.0) == replace(approxsvm.verify(compiled, source, X), speed_ratio=1.0)
    assert "speed ratio             too few rows to measure" in str(replace(ours, speed_ratio=None))
    assert ours.certified_fraction == report.evidence.certified.mean()
    text = text_of(report.html)
    assert f"0 of {len(X)} labels differ" in text
    assert f"{share_text(report.evidence.by_expansion.mean())} decided by the expansion" in text
    accuracy = (source.predict(X) == CANCER[1][1::2]).mean()
    assert text.count(f"{accuracy:.4%}") == 2  # compiled model and source


def test_of_several_classes_the_stages_are_those_of_labels():
    """With several classes, expansions prove only labels, so every value is computed by the exact engine."""
    X, y = IRIS
    source = SVC().fit(X, y)
    compiled = approxsvm.compile(source, X, n_centers=4, degree=2)
    assert compiled.artifact.header["majority_only"] == 1
    found, report = approxsvm.verify(compiled, source, X), compiled.report(X, y, against=source)
    proven, settled = compiled.certified(X).mean(), report.evidence.by_expansion
    assert found.kept
    assert 0.5 < found.certified_fraction == report.evidence.certified.mean() == proven
    assert found.rows_per_stage["expansion"] == report.evidence.rows_per_stage["expansion"] == settled.sum() > 70
    text = text_of(report.html)
    assert f"{share_text(settled.mean())} decided by the expansion" in text
    assert "These values come from the exact engine: expansions of several classes prove labels only." in text
    assert not report.evidence.values_by_expansion.any()
    _, bounds = compiled._evaluator.evaluate(X, VALUES | BOUNDS, "settled")
    assert bounds.max() < 1e-3  # from the exact engine


def test_confusion_is_of_source_and_compiled():
    lines = re.findall(
        r'<tr><th scope="row">[^<]*</th>(<td class="n (?:on|zero|off).*?)</tr>', report_of("no truth").html
    )
    counts = [[int(count) for count in re.findall(r">(\d+)</td>", line)] for line in lines]
    X, y = IRIS
    assert counts == np.diag(np.bincount(SVC().fit(X, y).predict(X))).tolist()


def test_a_broken_promise_is_told(cancer):
    _, compiled, _ = cancer
    X, y = CANCER
    other = make_pipeline(StandardScaler(), SVC(gamma=0.003, C=0.1)).fit(X, y)
    report = compiled.report(X, y, against=other)
    text = text_of(report.html)
    assert "A guarantee does not hold" in text
    n_differ = int((other.predict(X) != compiled.predict(X)).sum())
    assert n_differ > 0
    assert f"{n_differ} labels differ from the source's" in text.replace("&#39;", "'")
    assert "Labels that differ" in text
    assert "above its bound" in report.html  # points in the drawing


def test_rows_that_are_not_finite_are_named(cancer):
    source, compiled, _ = cancer
    X = CANCER[0][:20].copy()
    X[3, 2], X[7, 0] = np.nan, np.inf
    report = compiled.report(X, CANCER[1][:20], against=source)
    assert "2 rows hold NaN or infinity and are left out (3, 7)" in text_of(report.html)
    np.testing.assert_array_equal(report.evidence.positions, np.setdiff1d(np.arange(20), [3, 7]))
    sparse = compiled.report(csr_array(X), against=source)
    np.testing.assert_array_equal(sparse.evidence.positions, report.evidence.positions)
    with pytest.raises(InputError, match="none of the 2 rows is finite"):
        compiled.report(X[[3, 7]])
    with pytest.raises(InputError, match="y has 3 entries, but X has 20 rows"):
        compiled.report(X, [1, 2, 3])


def test_what_cannot_be_shown_is_said():
    text = text_of(report_of("no source").html)
    assert "Not compared" in text
    assert "no source was given (against=…)" in text
    assert "the true labels or targets were not given (y)" in text_of(report_of("no truth").html)
    assert "an ensemble averages probabilities" in text_of(report_of("ensemble").html)
    assert "does not store the rejected plans" in text_of(report_of("libsvm").html)


def test_some_rows_are_drawn_where_they_are_many(cancer):
    source, compiled, _ = cancer
    report = compiled.report(CANCER[0], against=source, max_rows=30)
    assert len(report.evidence.against.positions) == 30
    assert "30 rows, drawn at random" in text_of(report.html)


def test_drawings_are_reproducible(cancer):
    source, compiled, report = cancer
    again = compiled.report(CANCER[0][1::2], CANCER[1][1::2], against=source)
    drawn = [re.findall(r"<svg.*?</svg>", page.html, flags=re.DOTALL) for page in (report, again)]
    assert drawn[0] == drawn[1]
    assert len(drawn[0]) == 4


# --- the plans that were rejected


def test_plans_that_were_tried_are_kept_until_the_model_is_saved(tmp_path):
    X, y = CANCER
    X = StandardScaler().fit_transform(X)
    svc = SVC(gamma=0.003).fit(X, y)
    compiled = approxsvm.compile(svc, X, effort="low")
    history = compiled.compilation
    (plans,) = history.plans
    assert sum(plan.chosen for plan in plans) == 1
    assert plans[-1].name == "the exact engine alone"
    assert len(plans) > 1
    assert all(plan.share_of_exact > 0 and plan.seconds_per_row > 0 for plan in plans[:-1])
    assert history.options == (("effort", "'low'"),)
    assert history.n_sample_rows == len(X)
    assert pickle.loads(pickle.dumps(compiled)).compilation is None
    assert clone(compiled).compilation is None
    compiled.save(tmp_path / "model.asvm")
    assert approxsvm.load(tmp_path / "model.asvm").compilation is None
    text = text_of(compiled.report(X, against=svc).html)
    assert all(plan.name in text for plan in plans)
    assert "compiled = approxsvm.compile(source, X_sample, effort=" in text


# --- displays


def test_error_bound_display(cancer):
    source, compiled, _ = cancer
    display = ErrorBoundDisplay.from_estimator(compiled, CANCER[0][1::2], against=source)
    assert display.figure_ is display.ax_.figure
    assert (display.errors <= display.bounds).all()
    points = [line for line in display.ax_.lines if line.get_linestyle() == "None"]
    assert sum(len(line.get_xdata()) for line in points) == len(display.errors)
    for line in points:
        assert (line.get_ydata() <= line.get_xdata()).all()
    broken = ErrorBoundDisplay.from_predictions([1e-3, 1e-1], [1e-2, 1e-2], ax=display.ax_)
    (alarm,) = (line for line in broken.ax_.lines if line.get_color() == BROKEN)
    np.testing.assert_allclose(alarm.get_data(), [[1e-2], [1e-1]])
    with pytest.raises(InputError, match="pass against"):
        ErrorBoundDisplay.from_estimator(compiled, CANCER[0])


def test_no_worst_row_is_left_out_of_a_drawing():
    rng = np.random.default_rng(0)
    bounds = 10.0 ** rng.uniform(-6, -1, 20_000)
    errors = bounds * rng.uniform(0, 0.5, 20_000)
    errors[::1000] = 0.99 * bounds[::1000]
    display = ErrorBoundDisplay.from_predictions(errors, bounds)
    (points,) = (line for line in display.ax_.lines if line.get_linestyle() == "None")
    assert len(points.get_xdata()) < 1_000
    assert set(bounds[::1000]) <= set(points.get_xdata())


def test_other_displays(cancer):
    _, compiled, report = cancer
    X = CANCER[0][1::2]
    band = DecisionBandDisplay.from_estimator(compiled, X)
    np.testing.assert_allclose(band.values, compiled.decision_function(X), atol=band.bounds.max())
    assert 0.0 < band.band < np.abs(band.values).max()
    near = CertifiedShareDisplay.from_estimator(compiled, X)
    scaled = compiled.artifact.input_map.apply(X)
    np.testing.assert_allclose(near.distances, np.linalg.norm(scaled - compiled.artifact.center, axis=1))
    stages = StageShareDisplay.from_evidence(report.evidence)
    assert sum(stages.rows_per_stage.values()) == len(X)
    assert sum(bar.get_width() for bar in stages.ax_.patches) == pytest.approx(100.0)
    for display in (band, near, stages):
        assert display.figure_ is display.ax_.figure
    matplotlib.pyplot.close("all")


def test_displays_without_what_they_show():
    with pytest.raises(InputError, match="no centers"):
        CertifiedShareDisplay.from_evidence(report_of("exact").evidence)
    with pytest.raises(InputError, match="no decision values"):
        DecisionBandDisplay.from_evidence(report_of("ensemble").evidence)


def test_leads_of_several_classes():
    evidence, (X, y) = report_of("no truth").evidence, IRIS
    values = SVC(decision_function_shape="ovo").fit(X, y).decision_function(X)
    pairs, winners = [(0, 1), (0, 2), (1, 2)], evidence.predicted
    for row, winner in enumerate(winners):
        leads = [v if winner == i else -v for v, (i, j) in zip(values[row], pairs, strict=True) if winner in (i, j)]
        assert evidence.values[row] == pytest.approx(min(leads), abs=evidence.bounds[row] + 1e-9)


def test_leads_are_told_from_values_whatever_the_rows():
    X, y = IRIS
    assert DecisionBandDisplay.from_estimator(approxsvm.compile(SVC().fit(X, y)), X[y == 0]).is_lead
    assert not DecisionBandDisplay.from_estimator(approxsvm.compile(SVR().fit(X, y)), X).is_lead
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize(("share", "text"), [(1.0, "100"), (0.0, "0"), (0.9999, "99.99"), (0.5, "50.0")])
def test_shares_are_never_rounded_to_all(share, text):
    assert share_text(share) == f"{text}%"


# --- notebooks


def test_html_of_an_estimator(cancer):
    compiled = cancer[1]
    for html in (compiled._repr_html_(), compiled._repr_mimebundle_()["text/html"]):
        assert "sk-top-container" in html
        assert "Compiled model" in html
        assert f"{compiled.summary.n_bytes:,}" in html
    with config_context(display="text"):
        assert "text/html" not in compiled._repr_mimebundle_()
        assert not hasattr(compiled, "_repr_html_")


def test_html_of_a_report(cancer):
    report = cancer[2]
    html = report._repr_html_()
    assert html.startswith("<iframe sandbox")
    assert "<html" not in html  # the page is inside an attribute
    assert repr(report) == "<Report on 284 rows; print it, or save it as HTML>"


def test_the_text_of_a_report(cancer):
    """The text contains the page's figures, and the factors multiply to the speedup."""
    _, compiled, report = cancer
    text = " ".join(str(report).split())
    assert text.startswith(f"All guarantees hold. On {len(CANCER[0][1::2])} rows, every label equals the source's")
    for tile in findings.tiles(compiled.artifact, report.evidence):
        assert " ".join(f"{tile['number']} {tile['name']} ({tile['remark']})".split()) in text
        assert tile["name"] in text_of(report.html)
    slow = replace(report.evidence, speed=Speed(1e-6, 1))
    slow = replace(slow, against=replace(slow.against, speed=Speed(32e-6, 1), exact_engine=Speed(4e-6, 1)))
    assert findings.speed_in_words(compiled, slow).endswith(
        "The factor of 32 is 8.0 by the exact engine times 4.0 by the plan."
    )
    assert "32 times faster than the SVC pipeline here" in findings.headline(compiled.artifact, slow)
    assert {"number": "32 times", "name": "faster than the SVC pipeline", "remark": "both measured here"} in (
        findings.tiles(compiled.artifact, slow)
    )
    assert findings.speed_in_words(compiled, replace(slow, speed=Speed(4e-6, 1))).endswith("would take 32 s.")
    disturbed = replace(slow, speed=Speed(1e-6, 1, is_disturbed=True))
    assert findings.speed_in_words(compiled, disturbed) == findings.speed_in_words(compiled, slow) + findings.DISTURBED


def test_a_busy_processor_is_noticed():
    """The wall time of calls that wait, as for a busy processor, exceeds their processor time."""
    rows = np.zeros((4, 1))
    assert evidence._timed(lambda X: time.sleep(0.01), rows).is_disturbed


# --- packages and commands


@pytest.mark.parametrize("name", ["jinja2", "matplotlib"])
def test_a_missing_package_is_told_how_to_get(cancer, monkeypatch, name, tmp_path):
    monkeypatch.setitem(sys.modules, name, None)
    report = cancer[1].report(CANCER[0][:20])
    assert str(report).startswith("Not compared.")
    with pytest.raises(MissingPackageError, match=r"pip install 'approxsvm\[report\]'"):
        report.html  # noqa: B018
    for command in (
        ("report", GOLDEN / "breast_cancer.asvm", "-o"),
        ("convert-model", GOLDEN / "breast_cancer.model", "-o", tmp_path / "m.asvm", "--report"),
    ):
        refused = run(*command, tmp_path / "page.html", "--data", GOLDEN / "breast_cancer.t")
        assert refused.exit_code == 1
        assert "pip install 'approxsvm[report]'" in refused.stderr


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_commands_write_it(tmp_path):
    model, data = GOLDEN / "breast_cancer.model", GOLDEN / "breast_cancer.t"
    output, pages = tmp_path / "bc.asvm", [tmp_path / "made.html", tmp_path / "after.html"]
    made = run("convert-model", model, "-o", output, "--data", data, "--report", pages[0])
    assert made.exit_code == 0, made.stderr
    reported = run("report", output, "--against", model, "--data", data, "-o", pages[1])
    assert reported.exit_code == 0, reported.stderr
    assert reported.stdout.startswith("All guarantees hold. On 150 rows, every label equals the source's")
    texts = [text_of(page.read_text(encoding="utf-8")) for page in pages]
    assert f"$ approxsvm convert-model {model} -o {output} --data {data} --report {pages[0]}" in texts[0]
    assert f"$ approxsvm report {output}" in texts[1]
    assert "the exact engine alone" in texts[0]
    assert "does not store the rejected plans" in texts[1]
    assert not any("not measured" in text for text in texts)  # memory of a new process
    assert all("accuracy" in text for text in texts)  # LIBSVM text contains the true labels
    refused = run("convert-model", model, "-o", output, "--report", pages[0])
    assert (refused.exit_code, refused.stderr) == (1, "approxsvm: --report needs --data, the rows to show\n")


def test_a_page_says_that_it_takes_raw_rows_where_it_has_operations_on_them(cancer):
    sentence = "including the operations on raw rows."
    X, y = CANCER
    plain = approxsvm.compile(SVC().fit(scale(X), y), mode="exact").report(scale(X[:20]))
    scaled = approxsvm.compile(make_pipeline(StandardScaler(), SVC()).fit(X, y), mode="exact").report(X[:20])
    assert [sentence in text_of(page.html) for page in (plain, scaled)] == [False, True]


def test_the_next_command_is_the_one_to_type(tmp_path):
    """The suggested command repeats the options for the source and rows, and works as printed."""
    X, y = CANCER
    model, output, data = tmp_path / "m.joblib", tmp_path / "m.asvm", tmp_path / "rows.csv"
    joblib.dump(CalibratedClassifierCV(SVC(gamma=1e-4), cv=2).fit(X[:300], y[:300]), model)
    np.savetxt(data, X[300:], delimiter=";")
    options = ["--data", data, "--trust", "--delimiter", ";", "--no-header"]
    made = run("convert-model", model, "-o", output, "--effort", "low", *options)
    assert made.exit_code == 0, made.stderr
    line = made.stdout.splitlines()[-1]
    assert line.startswith(f"next: approxsvm report {output} --against {model} --data {data} --trust ")
    reported = run(*shlex.split(line.removeprefix("next: approxsvm ")))
    assert reported.exit_code == 0, reported.stderr
    assert "0 of 269 labels differ" in " ".join(reported.stdout.split())


def test_a_report_fails_if_a_promise_is_broken(tmp_path):
    output, other = tmp_path / "bc.asvm", tmp_path / "other.model"
    text = (GOLDEN / "breast_cancer.model").read_text()
    other.write_text(re.sub(r"(?m)^rho .*$", "rho 5", text))
    run("convert-model", GOLDEN / "breast_cancer.model", "-o", output)
    page = tmp_path / "page.html"
    result = run("report", output, "--against", other, "--data", GOLDEN / "breast_cancer.t", "-o", page)
    assert result.exit_code == 1
    assert "A guarantee does not hold" in result.stdout
    assert "A guarantee does not hold" in page.read_text(encoding="utf-8")


# --- in a browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if PROGRAM is None:
        pytest.skip("chromium is not installed")
    with Chromium(tmp_path_factory.mktemp("profile")) as found:
        yield found


CONTRAST = """(() => {
  const light = c => { const v = c.match(/[\\d.]+/g).map(Number).slice(0, 3).map(x => x / 255)
      .map(x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
  const ground = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
      if (!/, 0\\)$/.test(c)) return c; } return 'rgb(255, 255, 255)'; };
  let worst = 99;
  for (const e of document.querySelectorAll('p, h1, h2, h3, th, td, li, pre, .badge, svg text')) {
    if (!e.textContent.trim()) continue;
    const style = getComputedStyle(e), ink = e.closest('svg') ? style.fill : style.color;
    const [a, b] = [light(ink), light(ground(e))].sort((x, y) => y - x);
    worst = Math.min(worst, (a + 0.05) / (b + 0.05));
  }
  return worst; })()"""


@pytest.mark.parametrize("kind", ["two classes", "hostile names", "probabilities", "regression", "no source"])
def test_in_a_browser(browser, cancer, kind, tmp_path):
    path = tmp_path / "page.html"
    (cancer[2] if kind == "two classes" else report_of(kind)).save(path)
    backgrounds = set()
    for width in (1400, 400):
        for scheme in ("light", "dark"):
            browser.open(path.as_uri(), width=width, scheme=scheme)
            assert browser.complaints == []
            assert browser.evaluate("document.documentElement.scrollWidth") <= width
            assert browser.evaluate("document.scripts.length") == 0
            assert browser.evaluate(CONTRAST) >= 4.5  # WCAG AA
            heights = "[...document.querySelectorAll('svg text')].map(e => e.getBoundingClientRect().height)"
            assert min(height for height in browser.evaluate(heights) if height) >= 9  # line height in pixels
            backgrounds.add(browser.evaluate("getComputedStyle(document.body).backgroundColor"))
            assert browser.screenshot(tmp_path / "page.png").startswith(b"\x89PNG")
    assert len(backgrounds) == 2
    assert browser.pdf(tmp_path / "page.pdf").startswith(b"%PDF")


def test_options_are_for_people_too(cancer):
    report = make_report(cancer[1], CANCER[0][:50], rows_name=HOSTILE, command=f"approxsvm verify {HOSTILE}")
    assert HOSTILE not in report.html
    assert text_of(report.html).count("&lt;script&gt;") == 2


def test_the_file_is_whole_or_as_it_was(cancer, tmp_path):
    path: Path = tmp_path / "page.html"
    cancer[2].save(path)
    assert path.read_text(encoding="utf-8") == cancer[2].html
    with pytest.raises(FileNotFoundError):
        cancer[2].save(tmp_path / "nowhere" / "page.html")

"""Report on a compiled model, its proofs and measurements, as text and as an HTML page."""

import hashlib
import html
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from typing import Any, Final

import numpy as np

from approxsvm.analysis.report import findings, plots, tables
from approxsvm.analysis.report.charts import Chart, chart
from approxsvm.analysis.report.environment import processor, versions
from approxsvm.analysis.report.evidence import Evidence, gather
from approxsvm.analysis.verification import Compiled
from approxsvm.artifact.views import Artifact
from approxsvm.system.output_files import write_whole
from approxsvm.system.packages import import_package

_N_RELIABILITY_BINS: Final = 10


@dataclass(frozen=True, eq=False)
class Report:
    """Verdict and figures, shown by ``print(report)``; `html` is a page with plots that works offline."""

    evidence: Evidence
    text: str
    is_broken: bool  # True if the model broke a guarantee
    _page: Callable[[], str] = field(repr=False)

    @cached_property
    def html(self) -> str:
        """The HTML page, as a string. Raises MissingPackageError if jinja2 or matplotlib is not installed."""
        return self._page()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file; if writing fails, an existing file at `path` stays unchanged."""
        write_whole(self.html.encode(), path)

    def __repr__(self) -> str:
        return f"<Report on {len(self.evidence.positions):,} rows; print it, or save it as HTML>"

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        """Return a frame with the page, isolated from the notebook's styles."""
        style = "width:100%;height:80vh;border:1px solid #8884;border-radius:8px"
        return f'<iframe sandbox title="approxsvm report" style="{style}" srcdoc="{html.escape(self.html)}"></iframe>'


def make_report(
    compiled: Compiled,
    X: Any,
    y: Any = None,
    *,
    against: Any = None,
    max_rows: int | None = None,
    title: str | None = None,
    rows_name: str | None = None,
    command: str | None = None,
    progress: Callable[[float], None] | None = None,
) -> Report:
    """Compute the figures of a report; ``compiled.report`` explains the other parameters.

    `rows_name` names the rows in the page. `command` is the shell command that creates the page; by default, the page
    shows Python code. `progress` is called with the completed fraction of the comparison, from 0 to 1.
    """
    evidence = gather(compiled, X, y, against=against, max_rows=max_rows, progress=progress)
    of_page: dict[str, Any] = {
        "title": title or f"{compiled.artifact.source}, compiled",
        "made": time.strftime("%Y-%m-%d %H:%M %Z"),
        "rows": findings.about_rows(evidence, rows_name),
        "repeat": command or tables.python(compiled, against is not None, y is not None, max_rows),
        "is_command": command is not None,
    }
    judged = findings.verdict(compiled, evidence)
    text = findings.as_text(judged, compiled, evidence)
    of_page["verdict"] = judged
    return Report(evidence, text, judged["kind"] == "broken", lambda: _page(compiled, evidence, against, of_page))


def check_packages() -> None:
    """Raise MissingPackageError if a package needed for a page is not installed."""
    _template()
    plots.import_matplotlib("matplotlib")


def _page(compiled: Compiled, evidence: Evidence, against: Any, of_page: dict[str, Any]) -> str:
    template, artifact = _template(), compiled.artifact
    context = {
        "headline": findings.headline(artifact, evidence),
        "speeds": tables.speeds(compiled, evidence),
        "in_words": findings.speed_in_words(compiled, evidence),
        "tiles": findings.tiles(artifact, evidence),
        "charts": _charts(artifact, evidence),
        "missing": findings.missing(artifact, evidence),
        "confusion": tables.confusion(artifact, evidence),
        "scores": tables.scores(artifact, evidence),
        "plan": artifact.plan,
        "alternatives": tables.alternatives(compiled, evidence),
        "has_history": compiled.compilation is not None,
        "costs": tables.costs(compiled, evidence),
        "exact_rows": tables.exact_rows(evidence),
        "worst_rows": tables.worst_rows(evidence),
        "differing": tables.differing_rows(evidence),
        "source": tables.about_source(compiled, against),
        "steps": tables.steps(artifact, against),
        "checksum": hashlib.sha256(artifact.data).hexdigest(),
        "versions": [*versions(), ("processor", processor()), ("instruction set", compiled._evaluator.native.target)],
        "system": f"{platform.system()} {platform.machine()}",
    }
    return str(template.render(of_page | context))


def _template() -> Any:
    jinja2 = import_package("jinja2", "report", "a report")
    text = files("approxsvm.analysis.report").joinpath("page.html.j2").read_text(encoding="utf-8")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(text)


def _charts(artifact: Artifact, evidence: Evidence) -> dict[str, Chart]:
    charts = {}
    if evidence.against is not None:
        worst = float(evidence.against.judged.ratios.max(initial=0.0))
        charts["errors"] = chart(
            "errors",
            "Error against bound, row by row",
            f"If the bounds hold, every point is below the line; the largest error is {worst:.1%} of its bound. Points "
            "at the bottom differ by less than the float64 rounding of the source.",
            lambda ax: plots.ErrorBoundDisplay.from_evidence(evidence, ax=ax),
        )
    if evidence.values is not None and artifact.task != "regression":
        has_fallback = evidence.values_by_expansion.any() and artifact.mode != "approximate"
        undecided = " Others go to the exact engine." if has_fallback else ""
        if evidence.of_engine:
            undecided = " These values come from the exact engine: expansions of several classes prove labels only."
        charts["band"] = chart(
            "band",
            "Decision values and the undecided band",
            f"A label is certain where the value is further from 0 than its bound.{undecided}",
            lambda ax: plots.DecisionBandDisplay.from_evidence(evidence, ax=ax),
        )
    charts["stages"] = chart(
        "stages",
        "Rows decided by each stage",
        "From the cheapest stage to the most expensive; each row stops at the first that decides it.",
        lambda ax: plots.StageShareDisplay.from_evidence(evidence, ax=ax),
        inches=(5.2, 0.9 + 0.62 * max(2, sum(count > 0 for count in evidence.rows_per_stage.values()))),
    )
    if evidence.distances is not None:
        charts["distances"] = chart(
            "distances",
            "Are these rows like the sample?",
            _likeness(evidence),
            lambda ax: plots.CertifiedShareDisplay.from_evidence(evidence, ax=ax),
        )
    if evidence.probabilities is not None and evidence.y is not None:
        charts["reliability"] = chart(
            "reliability",
            "Calibration",
            "Observed share of the class against its predicted probability; on the diagonal they agree.",
            lambda ax: _draw_reliability(ax, evidence, np.sort(artifact.labels)),
        )
    return charts


def _likeness(evidence: Evidence) -> str:
    assert evidence.distances is not None
    text = "Rows far from every center need the exact engine."
    if evidence.sv_distances is None or not len(evidence.sv_distances):
        return text
    far = float(np.quantile(evidence.sv_distances, 0.99))
    beyond = float((evidence.distances > far).mean())
    return (
        f"{text} Dashed: support vectors, which are training rows near the boundary. "
        f"{plots.share_text(beyond)} of these rows are further out than 99 % of the support vectors."
    )


def _draw_reliability(ax: Any, evidence: Evidence, classes: Any) -> None:
    """Plot the reliability for the second of two classes, or for the predicted class if there are more."""
    ax.plot([0, 1], [0, 1], color=plots.NEUTRAL, linewidth=1.0)
    y, against = evidence.y, evidence.against
    assert y is not None
    assert evidence.probabilities is not None
    lines: list[tuple[Any, str, dict[str, Any]]] = [
        (evidence.probabilities, "compiled", {"color": plots.EXPANDED, "marker": "o", "markersize": 5.0})
    ]
    if against is not None and against.probabilities is not None:
        y = y[against.positions]
        lines = [(evidence.probabilities[against.positions], *lines[0][1:])]
        style = {"color": plots.EXACT, "marker": "x", "markersize": 5.5, "linestyle": "none"}
        lines.append((against.probabilities, "source", style))
    for shares, label, style in lines:
        ax.plot(*_reliability(shares, y, classes), linewidth=1.2, label=label, **style)
    ax.set(xlim=(0, 1), ylim=(0, 1), ylabel="observed share")
    ax.set_xlabel("predicted probability" if len(classes) == 2 else "probability of the predicted class")
    ax.legend(loc="upper left", frameon=False)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _reliability(shares: Any, truth: Any, classes: Any) -> tuple[Any, Any]:
    from sklearn.calibration import calibration_curve

    if len(classes) == 2:
        given, happened = shares[:, 1], truth == classes[1]
    else:
        given, happened = shares.max(axis=1), truth == classes[shares.argmax(axis=1)]
    n_bins = min(_N_RELIABILITY_BINS, max(2, len(given) // 20))
    share_true, share_given = calibration_curve(happened, np.clip(given, 0.0, 1.0), n_bins=n_bins, strategy="quantile")
    return share_given, share_true

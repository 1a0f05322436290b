"""The suite's charts: dots, lines, points. matplotlib draws them, in light and dark colours.

A chart is data; `svg` draws it and adds its values to the file as a description, for readers who cannot see the chart
and for the test that compares charts with figures:

    chart = Lines("Time per row", "support vectors", "µs", {"ours": [(500, 0.1), (5000, 0.2)]})
    path.write_text(svg(chart))
    assert words(chart) in path.read_text()
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from approxsvm.analysis.report.charts import name_log_scales
from approxsvm.analysis.report.plots import drawn_svg, import_matplotlib

# Colours on a light page, and their counterparts on a dark one. Contrast ratios with the background are at least 4.5:1.
BACKGROUND = ("#ffffff", "#131416")
INK = ("#4a525c", "#b4bcc6")
SERIES = (
    ("#1f6f96", "#6cb8dd"),
    ("#a85512", "#eb9a55"),
    ("#2e7d38", "#76c67f"),
    ("#7650ad", "#bd9eea"),
    ("#5b6470", "#a3adb8"),
    ("#7d620f", "#d1b04e"),
    ("#17766f", "#5cc3bb"),
    ("#b02f2c", "#f08a86"),
)
COLORS = tuple(light for light, _ in SERIES)
_MARKERS = "os^Dvph*"
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "approxsvm",
    "font.family": "sans-serif",
    "font.size": 11.0,
    "text.color": INK[0],
    "axes.labelcolor": INK[0],
    "axes.edgecolor": INK[0],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": INK[0],
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "xtick.color": INK[0],
    "ytick.color": INK[0],
    "figure.facecolor": BACKGROUND[0],
    "axes.facecolor": "none",
    "savefig.facecolor": BACKGROUND[0],
    "lines.markersize": 4.5,
    "lines.linewidth": 1.6,
}
_WIDTH = 5.2  # inches: on a phone, text keeps three quarters of its size
_MOST_TICKS = 6
_LABEL_GAP = 13.0  # points between two line labels

Series: TypeAlias = Mapping[str, Sequence[tuple[float, float | None]]]


@dataclass(frozen=True)
class Dots:
    """Dots on a logarithmic scale, with one row per name and one dot per series; None omits a dot."""

    title: str
    label: str
    names: Sequence[str]
    series: Mapping[str, Sequence[float | None]]

    def numbers(self) -> Series:
        """Return the values by series, each with the index of its name."""
        return {name: list(enumerate(values)) for name, values in self.series.items()}

    @property
    def inches(self) -> float:
        """Height, which grows with the number of dots."""
        return 0.9 + 0.25 * ((len(self.series) + 1) // 2) + len(self.names) * (0.16 + 0.2 * len(self.series))

    def draw(self, axes: Any) -> None:
        """Draw on these axes."""
        height = 0.82 / len(self.series)
        for k, (name, values) in enumerate(self.series.items()):
            shown = [(i, value) for i, value in enumerate(values) if value is not None]
            at = [i + (k - (len(self.series) - 1) / 2) * height for i, _ in shown]
            axes.plot([value for _, value in shown], at, _MARKERS[k], color=COLORS[k], label=name)
            for place, (_, value) in zip(at, shown, strict=True):
                axes.annotate(
                    _digits(value), (value, place), (7, 0), textcoords="offset points", va="center", color=COLORS[k]
                )
        found = [v for values in self.series.values() for v in values if v is not None] or [1.0]
        axes.set(xscale="log", xlim=(min(1.0, 0.5 * min(found)), 4.0 * max(found)), xlabel=self.label)
        axes.set_yticks(range(len(self.names)), self.names)
        axes.invert_yaxis()
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")
        for between in range(1, len(self.names)):
            axes.axhline(between - 0.5, color=INK[0], alpha=0.25, linewidth=0.6)
        axes.xaxis.set_major_locator(import_matplotlib("matplotlib.ticker").LogLocator(numticks=6))
        _plain_numbers(axes.xaxis)
        if len(self.series) > 1:
            axes.figure.legend(loc="outside upper center", ncols=2, frameon=False)


@dataclass(frozen=True)
class _Plane:
    """Two axes, both logarithmic by default."""

    title: str
    x_label: str
    y_label: str
    series: Series
    x_scale: str = "log"
    y_scale: str = "log"

    def numbers(self) -> Series:
        """Return the points by series."""
        return self.series

    def set_scales(self, axes: Any) -> None:
        """Set scales and labels before drawing."""
        axes.set(xscale=self.x_scale, yscale=self.y_scale, xlabel=self.x_label, ylabel=self.y_label)

    def set_numbers(self, axes: Any) -> None:
        """Format the tick labels after drawing, once the ticks are known."""
        for axis, scale in ((axes.xaxis, self.x_scale), (axes.yaxis, self.y_scale)):
            if scale == "log":
                _plain_numbers(axis)


@dataclass(frozen=True)
class Lines(_Plane):
    """One line per series, labelled at its end."""

    inches = 4.4

    def draw(self, axes: Any) -> None:
        """Draw on these axes."""
        self.set_scales(axes)
        ends = []
        for k, (name, points) in enumerate(self.series.items()):
            shown = [(x, y) for x, y in points if y is not None]
            if not shown:
                continue
            axes.plot(*zip(*shown, strict=True), color=COLORS[k], marker=_MARKERS[k])
            ends.append((name, COLORS[k], *shown[-1]))
        places = sorted({x for points in self.series.values() for x, _ in points})
        if len(places) <= _MOST_TICKS:
            axes.set_xticks(places)
        self.set_numbers(axes)
        _label_ends(axes, ends)


@dataclass(frozen=True)
class Points(_Plane):
    """Points in several series, with a legend.

    `diagonal` is the label of the line of equal coordinates; empty for none.
    """

    diagonal: str = ""

    inches = 4.6

    def draw(self, axes: Any) -> None:
        """Draw on these axes."""
        self.set_scales(axes)
        for k, (name, points) in enumerate(self.series.items()):
            xs, ys = zip(*[(x, y) for x, y in points if y is not None], strict=True)
            axes.plot(xs, ys, _MARKERS[k], color=COLORS[k], label=name, alpha=0.8)
        if self.diagonal:
            least, most = max(axes.get_xlim()[0], axes.get_ylim()[0]), min(axes.get_xlim()[1], axes.get_ylim()[1])
            axes.plot((least, most), (least, most), color=COLORS[len(self.series)], label=self.diagonal)
        self.set_numbers(axes)
        axes.legend(frameon=False)


Chart: TypeAlias = Dots | Lines | Points


def words(chart: Chart) -> str:
    """Return a chart's values, to three digits, as the text that its file must contain."""
    shown = (
        f"{name}: " + " ".join(f"{x:.3g},{'-' if y is None else format(y, '.3g')}" for x, y in points)
        for name, points in chart.numbers().items()
    )
    return "; ".join(shown).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def svg(chart: Chart) -> str:
    """Return an SVG file whose colours follow the reader's choice of light or dark.

    Raises MissingPackageError if matplotlib is not installed.
    """

    def draw(axes: Any) -> None:
        chart.draw(axes)
        name_log_scales(axes)

    drawn = drawn_svg(draw, (_WIDTH, chart.inches), _STYLE, {"Title": chart.title, "Description": "@"})
    pairs = (BACKGROUND, INK, *SERIES)
    names = {light: f"--c{k}" for k, (light, _) in enumerate(pairs)}
    drawn = re.sub(r"(?<=: )#[0-9a-f]{6}", lambda found: f"var({names[found[0]]}, {found[0]})", drawn)
    schemes = ["".join(f"--c{k}: {pair[dark]}; " for k, pair in enumerate(pairs)) for dark in (0, 1)]
    rules = f"svg {{ {schemes[0]}}} @media (prefers-color-scheme: dark) {{ svg {{ {schemes[1]}}} }}"
    drawn = drawn.replace("<defs>", f"<defs>\n  <style>{rules}</style>", 1)
    lines = drawn.replace("<dc:description>@<", f"<dc:description>{words(chart)}<")
    return "\n".join(line.rstrip() for line in lines.splitlines()) + "\n"


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _plain_numbers(axis: Any) -> None:
    """Write 0.01, 1 and 10,000 instead of powers of ten."""
    formatter = import_matplotlib("matplotlib.ticker").FuncFormatter(
        lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:.12g}"
    )
    axis.set_major_formatter(formatter)
    axis.set_minor_formatter(import_matplotlib("matplotlib.ticker").NullFormatter())


def _label_ends(axes: Any, ends: Sequence[tuple[str, str, float, float]]) -> None:
    """Write names to the right of line ends, pushed apart if they would overlap."""
    axes.figure.draw_without_rendering()  # determines where the data lie on the page
    points = 72.0 / axes.figure.dpi
    last = -float("inf")
    placed = sorted((axes.transData.transform((x, y))[1] * points, name, color, x, y) for name, color, x, y in ends)
    for place, name, color, x, y in placed:
        last = max(place, last + _LABEL_GAP)
        axes.annotate(
            name, (x, y), (9, last - place), textcoords="offset points", color=color, va="center", annotation_clip=False
        )

"""Plots embedded in a page as SVG, with its fonts and its light or dark colours."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from approxsvm.analysis.report.plots import BROKEN, EXACT, EXPANDED, NEUTRAL, drawn_svg

# Colours in the drawn SVG, which are replaced with the page's colours.
_INK, _MUTED, _LINE = "#1c2024", "#5b6470", "#d8d6d0"
_VARIABLES: Final = {
    EXPANDED: "--accent",
    EXACT: "--exact",
    BROKEN: "--broken",
    NEUTRAL: "--muted",
    _INK: "--ink",
    _MUTED: "--muted",
    _LINE: "--line",
}
_STYLE: Final = {
    "svg.fonttype": "none",
    "svg.hashsalt": "approxsvm",
    "font.family": "sans-serif",
    "font.size": 10.5,
    "axes.labelsize": 10.5,
    "legend.fontsize": 9.5,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "text.color": _INK,
    "axes.labelcolor": _MUTED,
    "axes.edgecolor": _LINE,
    "xtick.color": _LINE,
    "ytick.color": _LINE,
    "xtick.labelcolor": _MUTED,
    "ytick.labelcolor": _MUTED,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}
_INCHES: Final = (5.2, 3.7)


@dataclass(frozen=True)
class Chart:
    """Plot with a title and a caption."""

    title: str
    caption: str
    svg: str  # markup to insert into a page


def chart(
    name: str, title: str, caption: str, draw: Callable[[Any], Any], inches: tuple[float, float] = _INCHES
) -> Chart:
    """Draw a chart on a new axis with `draw(axis)`; `name` is the prefix of SVG ids and must be unique in a page."""

    def with_scales(axis: Any) -> None:
        draw(axis)
        name_log_scales(axis)

    svg = drawn_svg(with_scales, inches, _STYLE, {"Creator": None, "Type": None, "Format": None})
    return Chart(title, caption, _in_page(svg, name, title))


def name_log_scales(axes: Any) -> None:
    """Append "(log scale)" to the labels of logarithmic axes."""
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log" and axis.get_label_text():
            axis.set_label_text(f"{axis.get_label_text()} (log scale)")


def _in_page(svg: str, name: str, title: str) -> str:
    """Return the SVG without its file header, using the page's colours."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r"font: ([\w ]*?)([\d.]+)px [^;\"]*", r"font: \g<1>\g<2>px var(--sans)", svg)
    for color, variable in _VARIABLES.items():
        svg = svg.replace(color, f"var({variable})")
    svg = re.sub(r'<svg ([^>]*?)width="[^"]*"', r"<svg \1", svg, count=1)
    svg = re.sub(r'<svg ([^>]*?)height="[^"]*"', r"<svg \1", svg, count=1)
    label = title.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
    return re.sub(r"\n\s*", "\n", svg)

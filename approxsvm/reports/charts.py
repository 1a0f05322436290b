"""Displays as SVG inside a page: colours and fonts are those of the page, light or dark."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from approxsvm.reports.plots import BROKEN, EXACT, EXPANDED, NEUTRAL, drawn_svg

# Colours that are drawn with -> what they are in the page.
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
    """A drawing with its words.

    Attributes
    ----------
    title, caption : str
        What it shows, and how to read it.
    svg : str
        Its own markup, to be put into a page as it is.
    """

    title: str
    caption: str
    svg: str


def chart(
    name: str, title: str, caption: str, draw: Callable[[Any], Any], inches: tuple[float, float] = _INCHES
) -> Chart:
    """Draw on an axis of its own.

    Parameters
    ----------
    name : str
        What ids inside begin with: a page has several drawings.
    title, caption : str
    draw : callable
        Given an axis.
    inches : tuple of float
        Width and height.

    Raises
    ------
    MissingPackageError
        matplotlib is not installed.
    """
    svg = drawn_svg(draw, inches, _STYLE, {"Creator": None, "Type": None, "Format": None})
    return Chart(title, caption, _in_page(svg, name, title))


def _in_page(svg: str, name: str, title: str) -> str:
    """Without what belongs to a file of its own, in the colours of the page."""
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

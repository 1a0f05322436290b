"""Write the table of docs/sources.md from that of the readers: ``python -m docs.sources``, from the repository root."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from approxsvm.readers.sklearn import known_types

PAGE = Path(__file__).parent / "sources.md"
BEGIN, END = "<!-- classes: python -m docs.sources -->\n", "<!-- end of classes -->\n"


def shown_table() -> str:
    """The table in Markdown."""
    lines = ["| estimator or step | what of it is used | what is refused |", "|---|---|---|"]
    for role, rows in groupby(known_types.table(), key=lambda row: row[0]):
        lines.append(f"| **{role}** | | |")
        for _, classes, relies, refused in rows:
            used = " ".join(f"`{name}`" for name in relies.split())
            lines.append(f"| {classes} | {used or 'nothing'} | {refused} |")
    return "\n".join(lines) + "\n"


def page_with(table: str) -> str:
    text = PAGE.read_text()
    before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    return before + table + after


if __name__ == "__main__":
    PAGE.write_text(page_with(shown_table()))

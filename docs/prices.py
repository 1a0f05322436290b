"""Write docs/prices.md, which lists the lines, tests and measured gain of each kind: ``python -m docs.prices``.

A line in prices.txt contains a name, files, a test pattern and a gain. A file name is relative to the core's headers,
the package or the root; ``file#pattern`` counts the functions and classes in it that begin with the pattern. A gain is
a ratio of two figures, ``record.table.column[key=value; ...] / column``, from one row or two. A line without figures
gives the reason instead.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "prices.md"
_BELOW = ("cpp/include/approxsvm", "approxsvm", ".")
_OP = "program/ops/{0}.h artifact/ops/{0}.hpp ir/ops/{0}.py backends/ops/{0}.py"
_HEAD = """\
# Prices

We add a new kind of engine, step or rule only if its price and its gain in speed are known. The price is the number of
lines and tests that we maintain. `python -m docs.prices` writes this page from the source code and from
`docs/prices.txt`, which lists the kinds.

* **Lines** is the number of lines in the files and functions that only this kind needs.
* **Tests** is the number of test functions that name the kind. The zoo (`tests/zoo`) also tests every kind.
* **Times faster** is a ratio of figures in `benchmarks/results`. For a part of the core, the ratio compares plans with
  and without this part, or with the exact engine. Any other kind is compared with the program that trained the model.
* If no gain is published, the last column contains a command that measures the gain, or says why there is no figure.
"""
KINDS = Path(__file__).with_suffix(".txt")


def _paths(name: str) -> list[Path]:
    for folder in _BELOW:
        if found := [path for path in sorted((ROOT / folder).glob(name)) if path.is_file()]:
            return found
    raise FileNotFoundError(f"docs/prices.txt names {name}, which is no file")


@cache
def _blocks(path: Path) -> list[str]:
    """Split a file at each unindented line, except for lines that close a block."""
    return re.split(r"\n(?=[^\s})\]])", path.read_text(encoding="utf-8"))


def lines(files: str) -> int:
    """Count the lines of files, or of some of their functions and classes."""
    total = 0
    for name in files.split():
        path, _, pattern = name.partition("#")
        blocks = [block for one in _paths(path) for block in _blocks(one)]
        chosen = [block for block in blocks if re.search(pattern, block.split("\n")[0])]
        if not chosen:
            raise ValueError(f"docs/prices.txt names {name}, but nothing begins with the pattern")
        total += sum(block.count("\n") + 1 for block in chosen)
    return total


@cache
def _tests() -> list[str]:
    files = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("cpp/tests/test_*.cpp")]
    return [path.stem + block for path in files for block in _blocks(path) if re.match(r"def test_|TEST\(", block)]


def _figure(text: str) -> float | str:
    """Return a figure from a record, or the command that measures it."""
    part, table, column, conditions = re.fullmatch(r"(\w+)\.(\w+)\.(\w+)\[(.+)\]", text).groups()
    wanted = [one.split("=") for one in conditions.split("; ")]
    file = ROOT / "benchmarks" / "results" / f"{part}.json"
    if not file.exists():
        return f"`python -m benchmarks.{part} --only '{wanted[0][1]}'`"
    rows = json.loads(file.read_text(encoding="utf-8"))["tables"][table]
    return next(row for row in rows if all(str(row[key]).startswith(value) for key, value in wanted))[column]


def gain(text: str) -> tuple[str, str]:
    """Return a published gain and its source, or "not measured" and the command or reason."""
    above, _, below = text.partition(" / ")
    if not below:
        return "not measured", text
    same_row = re.sub(r"\w+\[", f"{below}[", above)
    figures = _figure(above), _figure(below if "[" in below else same_row)
    if isinstance(figures[0], str) or isinstance(figures[1], str):
        return "not measured", str(figures[0])
    part, case = re.match(r"(\w+).*?\[\w+=([^;\]]+)", above).groups()
    return f"{float(f'{figures[0] / figures[1]:.3g}'):,.10g}", f"{part}.json, {case}"


def tables() -> dict[str, list[tuple[str, int, int, str, str]]]:
    """Return the rows of each table: name, lines, tests, gain and source."""
    found: dict[str, list[tuple[str, int, int, str, str]]] = {}
    for line in KINDS.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            rows = found.setdefault(line[2:], [])
        elif line:
            name, files, pattern, measured = (part.strip() for part in line.split(" | "))
            files = _OP.format(name.replace(" ", "_")) if files == "op" else files
            n_tests = sum(re.search(pattern or name, test) is not None for test in _tests())
            rows.append((name, lines(files), n_tests, *gain(measured)))
    return found


def page() -> str:
    """Return the page."""
    text = _HEAD
    for title, rows in tables().items():
        text += (
            f"\n## {title}\n\n| kind | lines | tests | times faster | source of the figure |\n|---|---|---|---|---|\n"
        )
        text += "".join(
            f"| {name} | {n:,} | {tests} | {times} | {source} |\n" for name, n, tests, times, source in rows
        )
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

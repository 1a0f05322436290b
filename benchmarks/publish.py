"""README's first table and picture, and all of docs/benchmarks.md, from the records in benchmarks/results.

    python -m benchmarks.publish             # write the pages and pictures
    python -m benchmarks.publish --measure   # measure every part first; some 25 minutes on two quiet cores
    python -m benchmarks.publish --quick     # try all of it with few rows and small models, into build/benchmarks

Tables stand between ``<!-- figures: NAME -->`` and ``<!-- end of figures -->``; tests compare them with the records.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import click

from benchmarks.charts import svg
from benchmarks.pages import TABLES, Records
from benchmarks.pictures import PICTURES
from benchmarks.record import RESULTS, Record

REPOSITORY: Final = Path(__file__).parent.parent
PAGES: Final = ("README.md", "docs/benchmarks.md")
_QUICK: Final = Path("build") / "benchmarks"
# Name of the part and of its record: module, arguments, and those of a try.
PARTS: Final[dict[str, tuple[str, str, str]]] = {
    "ordinary": ("benchmarks.ordinary", "--published --rows 1000000", "--published --rows 300 --train-rows 400"),
    "libsvm": ("benchmarks", "", "--quick --only 0.05"),
    "growth": ("benchmarks.growth", "", "--quick"),
    "latency": ("benchmarks.latency", "", "--rows 20 --rounds 3"),
}
_MARKED: Final = re.compile(r"(<!-- figures: (.+?) -->\n\n).*?(\n\n<!-- end of figures -->)", re.DOTALL)


def records_in(folder: Path) -> Records:
    """Records of all parts."""
    return {part: Record.load(folder / f"{part}.json") for part in PARTS}


def filled(page: str, records: Records) -> str:
    """The page with every table as the records have it."""
    return _MARKED.sub(lambda match: f"{match[1]}{TABLES[match[2]](records)}{match[3]}", page)


def _measure(part: str, results: Path, *, quick: bool) -> None:
    module, arguments, quick_arguments = PARTS[part]
    command = ["-m", module, *(quick_arguments if quick else arguments).split(), "--results", str(results)]
    click.echo(" ".join(["python", *command]), err=True)
    subprocess.run([sys.executable, *command], check=True, cwd=REPOSITORY)


@click.command()
@click.option("--measure", is_flag=True, help="Measure every part first.")
@click.option("--quick", is_flag=True, help="Measure little, and write into build/benchmarks.")
def main(measure: bool, quick: bool) -> None:
    """Write pages and pictures."""
    results = _QUICK if quick else RESULTS.relative_to(REPOSITORY)
    target = REPOSITORY / _QUICK if quick else REPOSITORY
    for part in PARTS if measure or quick else ():
        _measure(part, results, quick=quick)
    records = records_in(REPOSITORY / results)
    for page in PAGES:
        (target / page).parent.mkdir(parents=True, exist_ok=True)
        (target / page).write_text(filled((REPOSITORY / page).read_text(), records))
    images = target / "docs" / "images"
    images.mkdir(parents=True, exist_ok=True)
    for name, chart in PICTURES.items():
        (images / f"{name}.svg").write_text(svg(chart(records)))
    click.echo(f"wrote {', '.join(PAGES)} and {len(PICTURES)} pictures below {target}")


if __name__ == "__main__":
    main()

"""Updates the tables in README and docs/, and the images, from the records in benchmarks/results.

    python -m benchmarks.publish             # write the pages and images
    python -m benchmarks.publish --measure   # measure every part first; some 40 minutes on two quiet cores
    python -m benchmarks.publish --part limits  # measure only this part first
    python -m benchmarks.publish --experiments  # measure the papers' experiments first, which takes longer
    python -m benchmarks.publish --quick     # test everything with few rows and small models, into build/benchmarks

Tables are between ``<!-- figures: NAME -->`` and ``<!-- end of figures -->``; tests compare them with the records.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import click

from benchmarks import comparison, pages
from benchmarks.charts import svg
from benchmarks.pages import Records
from benchmarks.pictures import pictures_of
from benchmarks.record import RESULTS, Record

REPOSITORY: Final = Path(__file__).parent.parent
PAGES: Final = ("README.md", "docs/comparison.md", "docs/benchmarks.md", "docs/experiments.md", "docs/howto/cpp.md")
TABLES: Final = pages.TABLES | comparison.TABLES
_QUICK: Final = Path("build") / "benchmarks"
# By record name: the usual arguments, and the arguments for a quick test.
PARTS: Final = {
    "ordinary": ("--published --rows 1000000", "--published --rows 300 --train-rows 400"),
    "libsvm": ("", "--quick --only 0.05"),
    "growth": ("", "--quick"),
    "limits": ("--published", "--published --rows 300 --train-rows 400 --only segment"),
    "latency": ("", "--only pendigits --rows 20 --rounds 3 --most 16"),
    "targets": ("", "--rows 300 --train-rows 400"),
    "embedding": ("", "--only library"),
    "examples": ("", "--rows 300 --train-rows 400"),
    "scoring": ("", "--rows 3000 --text-rows 300 --sample-rows 300 --cluster-rows 0"),
}
# The papers' experiments take long, and their figures hardly change, so they are measured only on request.
EXPERIMENTS: Final = {
    "cotter": ("--train-rows 32561 --max-bytes 5.2e9", "--train-rows 300 --test-rows 300 --degrees 1 --components 25"),
    "rahimi_recht": ("", "--train-rows 300 --test-rows 300 --only CPU"),
    "stand_ins": ("", "--train-rows 300 --test-rows 300"),
    "overview": ("", "--rows 1000 --components 50"),
    "compile_growth": ("", "--quick"),
}
_MARKED: Final = re.compile(r"^(<!-- figures: (.+?) -->)$.*?^(<!-- end of figures -->)$", re.DOTALL | re.MULTILINE)


def records_in(folder: Path) -> Records:
    """Load the records of all parts."""
    return {part: Record.load(folder / f"{part}.json") for part in (*PARTS, *EXPERIMENTS)}


def filled(page: str, records: Records) -> str:
    """Return the page with every table updated from the records."""
    return _MARKED.sub(lambda match: f"{match[1]}\n\n{TABLES[match[2]](records)}\n\n{match[3]}", page)


def _measure(part: str, results: Path, *, quick: bool) -> None:
    arguments = (PARTS | EXPERIMENTS)[part][quick].split()
    module = "benchmarks" if part == "libsvm" else f"benchmarks.{part}"
    command = ["-m", module, *arguments, "--results", str(results)]
    click.echo(" ".join(["python", *command]), err=True)
    if subprocess.run([sys.executable, *command], cwd=REPOSITORY).returncode:
        raise click.ClickException(f"{part} was not measured; no page has changed")
    if not quick and Record.load(REPOSITORY / results / f"{part}.json").has_stand_ins:
        raise click.ClickException(f"{part} was measured on stand-ins; no page has changed")


@click.command()
@click.option("--measure", is_flag=True, help="Measure every part first.")
@click.option("--part", "some", multiple=True, type=click.Choice([*PARTS, *EXPERIMENTS]), help="Measure it first.")
@click.option("--experiments", is_flag=True, help="Measure the papers' experiments first.")
@click.option("--quick", is_flag=True, help="Measure little, and write into build/benchmarks.")
def main(measure: bool, some: tuple[str, ...], experiments: bool, quick: bool) -> None:
    """Write the pages and images."""
    results = _QUICK if quick else RESULTS.relative_to(REPOSITORY)
    target = REPOSITORY / _QUICK if quick else REPOSITORY
    parts = some or [*(PARTS if measure or quick else ()), *(EXPERIMENTS if experiments or quick else ())]
    for part in parts:
        _measure(part, results, quick=quick)
    records = records_in(REPOSITORY / results)
    for page in PAGES:
        (target / page).parent.mkdir(parents=True, exist_ok=True)
        (target / page).write_text(filled((REPOSITORY / page).read_text(), records))
    images = target / "docs" / "images"
    images.mkdir(parents=True, exist_ok=True)
    pictures = pictures_of(records)
    for name, chart in pictures.items():
        (images / f"{name}.svg").write_text(svg(chart))
    click.echo(f"wrote {', '.join(PAGES)} and {len(pictures)} pictures below {target}")


if __name__ == "__main__":
    main()

"""``python -m benchmarks``: LIBSVM's models; check every answer, time everything, write the record."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from benchmarks import accuracy, exact_labels, in_memory, processes, sizes
from benchmarks.answers import WrongAnswerError, answers_for
from benchmarks.cases import SPECS, Case, Library
from benchmarks.compiled import compile_all
from benchmarks.peak import FmaPeak, find_peak
from benchmarks.peers import Libsvm
from benchmarks.record import Record, results_option
from benchmarks.timing import FULL, NORMAL, QUICK, Effort

_DEFAULT_DATA = Path(__file__).resolve().parent.parent.parent / "shared"


@click.command()
@click.option("--quick", "effort", flag_value=QUICK, type=click.UNPROCESSED, help="Few rows and rounds: a few minutes.")
@click.option("--full", "effort", flag_value=FULL, type=click.UNPROCESSED, help="Every row for slow predictors too.")
@click.option("--only", default="", help="Measure the models whose name contains this, such as a9a or 'a9a 0.01'.")
@click.option(
    "--threads",
    "all_threads",
    type=click.IntRange(min=1),
    default=os.cpu_count() or 1,
    show_default="all processors",
    help="What to call all threads.",
)
@results_option
def main(effort: Effort | None, only: str, all_threads: int, results: Path) -> None:
    """Measure LIBSVM's models against all peers: accuracy, time, size.

    Data are found through APPROXSVM_DATA, a folder with data/ and models/; by default ../shared, seen from the
    repository. The tool of 2014 takes part where APPROXSVM_2014 names the folder of its programs.
    """
    root = Path(os.environ.get("APPROXSVM_DATA", _DEFAULT_DATA))
    if not (root / "data").is_dir() or not (root / "models").is_dir():
        click.echo(f"nothing measured: {root} has no data/ and models/; APPROXSVM_DATA names the folder that has")
        return
    record = Record.begin("libsvm", all_threads)
    try:
        with tempfile.TemporaryDirectory(prefix="approxsvm-benchmarks-") as scratch:
            _measure_all(record, root, Path(scratch), only, effort or NORMAL)
    except WrongAnswerError as error:
        raise click.ClickException(f"wrong answer, nothing is reported: {error}") from error
    record.show()
    record.save(results)


def _measure_all(record: Record, root: Path, scratch: Path, only: str, effort: Effort) -> None:
    library = Library(root, scratch)
    peak, why_no_peak = find_peak(scratch)
    if peak is None:
        click.echo(f"no share of peak: {why_no_peak}", err=True)
    for spec in SPECS:
        if only not in spec.name:
            continue
        click.echo(f"measuring {spec.name} ...", err=True)
        try:
            case = library.case(spec)
        except FileNotFoundError as error:
            click.echo(f"{spec.name} left out: {error}", err=True)
            continue
        _measure_case(record, case, scratch, peak, effort)
    _add(record, "imports", sizes.measure_imports(effort))


def _measure_case(record: Record, case: Case, scratch: Path, peak: FmaPeak | None, effort: Effort) -> None:
    all_threads = record.machine.all_threads
    answers = answers_for(case)
    compiled = compile_all(case, effort)
    models, fast = compiled.models, compiled.models["approximate"]
    record.add("accuracy", accuracy.measure(case, answers, fast))
    batches = in_memory.measure_batches(case, answers, models, peak, effort, all_threads)
    libsvm = next(time.seconds_per_row for time in batches if time.peer == Libsvm.name)
    _add(record, "expansion alone", batches)
    _add(record, "single rows", in_memory.measure_single_rows(case, answers, fast, libsvm, effort))
    _add(record, "exact labels", exact_labels.measure(case, answers, models, effort, all_threads))
    _add(record, "files", processes.measure(case, answers, models, scratch, effort, all_threads))
    record.add("sizes", sizes.measure(case, compiled, libsvm))


def _add(record: Record, table: str, figures: Iterable[Any]) -> None:
    for figure in figures:
        record.add(table, figure)


if __name__ == "__main__":
    main()

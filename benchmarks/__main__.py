"""``python -m benchmarks``: check every answer, time everything, print the tables."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import click
from rich.console import Console

from benchmarks import accuracy, exact_labels, in_memory, processes, sizes, tables
from benchmarks.accuracy import Accuracy
from benchmarks.answers import WrongAnswerError, answers_for
from benchmarks.cases import SPECS, Case, Library
from benchmarks.compiled import compile_all
from benchmarks.exact_labels import ExactTime
from benchmarks.in_memory import Latency, RowTime
from benchmarks.machine import Machine, describe
from benchmarks.peak import find_peak
from benchmarks.peers import Libsvm
from benchmarks.processes import ProcessTime
from benchmarks.sizes import ImportTime, Size
from benchmarks.timing import FULL, NORMAL, QUICK, Effort

_DEFAULT_DATA = Path(__file__).resolve().parent.parent.parent / "shared"
_PIPE_WIDTH = 176  # columns when the output is not a terminal


@dataclass
class Figures:
    """All that was measured, in the order of the tables."""

    machine: Machine
    effort: Effort
    peaks: list[float] = field(default_factory=list)
    accuracy: list[Accuracy] = field(default_factory=list)
    processes: list[ProcessTime] = field(default_factory=list)
    batches: list[RowTime] = field(default_factory=list)
    single_rows: list[Latency] = field(default_factory=list)
    sizes: list[Size] = field(default_factory=list)
    exact_labels: list[ExactTime] = field(default_factory=list)
    imports: list[ImportTime] = field(default_factory=list)


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
@click.option("--json", "json_path", type=click.Path(dir_okay=False, path_type=Path), help="Write all figures here.")
def main(effort: Effort | None, only: str, all_threads: int, json_path: Path | None) -> None:
    """Measure accuracy, time and size against LIBSVM, scikit-learn and NumPy.

    Data are found through APPROXSVM_DATA, a folder with data/ and models/; by default ../shared, seen from the
    repository.
    """
    root = Path(os.environ.get("APPROXSVM_DATA", _DEFAULT_DATA))
    if not (root / "data").is_dir() or not (root / "models").is_dir():
        click.echo(f"nothing measured: {root} has no data/ and models/; APPROXSVM_DATA names the folder that has")
        return
    console = Console() if sys.stdout.isatty() else Console(width=_PIPE_WIDTH)
    figures = Figures(describe(all_threads), effort or NORMAL)
    try:
        with tempfile.TemporaryDirectory(prefix="approxsvm-benchmarks-") as scratch:
            _measure_all(figures, root, Path(scratch), only)
    except WrongAnswerError as error:
        raise click.ClickException(f"wrong answer, nothing is reported: {error}") from error
    _print(figures, console)
    if json_path is not None:
        json_path.write_text(json.dumps(asdict(figures), indent=2) + "\n", encoding="utf-8")


def _measure_all(figures: Figures, root: Path, scratch: Path, only: str) -> None:
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
        _measure_case(figures, case, scratch, None if peak is None else _recorded(peak, figures.peaks))
    figures.imports += sizes.measure_imports(figures.effort)


def _measure_case(figures: Figures, case: Case, scratch: Path, peak: Callable[[], float] | None) -> None:
    effort = figures.effort
    all_threads = figures.machine.all_threads
    answers = answers_for(case)
    compiled = compile_all(case, effort)
    models, fast = compiled.models, compiled.models["approximate"]
    figures.accuracy.append(accuracy.measure(case, answers, fast))
    batches = in_memory.measure_batches(case, answers, models, peak, effort, all_threads)
    libsvm = next(time.seconds_per_row for time in batches if time.peer == Libsvm.name)
    figures.batches += batches
    figures.single_rows += in_memory.measure_single_rows(case, answers, fast, libsvm, effort)
    figures.exact_labels += exact_labels.measure(case, answers, models, effort, all_threads)
    figures.processes += processes.measure(case, answers, models, scratch, effort, all_threads)
    figures.sizes.append(sizes.measure(case, compiled, libsvm))


def _recorded(peak: Callable[[], float], record: list[float]) -> Callable[[], float]:
    """Append every figure of the yardstick to `record`."""

    def measure() -> float:
        record.append(peak())
        return record[-1]

    return measure


def _print(figures: Figures, console: Console) -> None:
    for table in (
        tables.machine_table(figures.machine, figures.peaks),
        tables.accuracy_table(figures.accuracy),
        tables.process_table(figures.processes),
        tables.batch_table(figures.batches),
        tables.latency_table(figures.single_rows),
        tables.size_table(figures.sizes),
        tables.exact_table(figures.exact_labels),
        tables.import_table(figures.imports),
    ):
        console.print(table)


if __name__ == "__main__":
    main()

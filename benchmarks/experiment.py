"""Framework for the experiments; each consists of a name, cases, and one function that measures a case.

    def measure(run: Run, shape: Shape) -> Iterator[tuple[str, Row]]:
        yield "models", {"shape": shape.name, "microseconds": ...}

    EXPERIMENT = Experiment("stand_ins", __doc__, measure, SHAPES, [number("--rows", 20_000)])

    if __name__ == "__main__":
        EXPERIMENT.main()

The framework reads options, selects the cases whose names contain ``--only``, skips those whose data or packages are
missing, and shows and saves the record. `measure` finds options as attributes of ``run.options``. pages.py and
pictures.py define how pages show a record.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import click
import numpy as np
import numpy.typing as npt

from benchmarks.peak import Peak
from benchmarks.record import Record, Row

_REPOSITORY = Path(__file__).resolve().parent.parent
STAND_INS = "STAND_INS"  # marker file in folders without real data
TRIES = Path("build") / "benchmarks"

Rows: TypeAlias = Iterable[tuple[str, Row]]


class WrongAnswerError(Exception):
    """A path that was about to be timed gave a wrong answer."""


class MissingError(Exception):
    """Data or programs needed by a case are missing."""


def data_root() -> Path:
    """Return the folder with data/ and models/: APPROXSVM_DATA, else ../shared if it exists, else build/data."""
    shared = _REPOSITORY.parent / "shared"
    return Path(os.environ.get("APPROXSVM_DATA", shared if shared.is_dir() else _REPOSITORY / "build" / "data"))


class Run:
    """Arguments of `measure` besides its case: options, data, and a folder for temporary files."""

    def __init__(self, record: Record, scratch: Path, options: Mapping[str, Any]) -> None:
        self.record, self.scratch, self.options = record, scratch, SimpleNamespace(**options)

    @cached_property
    def data(self) -> Path:
        """Folder with the data sets; reading a missing file raises MissingError."""
        self.record.has_stand_ins = (data_root() / STAND_INS).exists()
        return data_root() / "data"

    @cached_property
    def peak(self) -> Peak | None:
        """Float32 multiply-adds per second on one core; None, with a message, if there is no C++ compiler."""
        try:
            return Peak(self.scratch)
        except (FileNotFoundError, RuntimeError) as error:
            click.echo(f"no share of the peak: {error}", err=True)
            return None


@dataclass(frozen=True)
class Experiment:
    """One experiment, which is one command."""

    name: str  # name of the record
    help: str | None  # text of ``--help`` above the options: the module's docstring
    measure: Callable[[Run, Any], Rows]  # takes a `Run` and a case; yields pairs of a table's name and a row
    # Cases by name, or a function of the options that returns them
    cases: Mapping[str, Any] | Callable[[SimpleNamespace], Mapping[str, Any]]
    options: Sequence[click.Option] = ()  # in addition to ``--only`` and ``--results``
    summarize: Callable[[Record], None] = lambda record: None  # extends the finished record

    def main(self) -> None:
        """Run the command."""
        results = click.Option(
            ["--results"],
            type=click.Path(file_okay=False, path_type=Path),
            default=TRIES,
            show_default=True,
            help="Folder for the JSON file.",
        )
        only = click.Option(["--only"], default="", help="Run only cases whose name contains this.")
        replaced = [option for option in self.options if option.name == "only"]
        parameters: list[click.Parameter] = [*self.options, *([] if replaced else [only]), results]
        click.Command(self.name, params=parameters, help=self.help, callback=self._run)()

    def _run(self, results: Path, **options: Any) -> None:
        record = Record.begin(self.name, options.get("threads", os.cpu_count() or 1))
        with tempfile.TemporaryDirectory(prefix="approxsvm-benchmarks-", dir=options.get("folder")) as scratch:
            run = Run(record, Path(scratch), options)
            try:
                self._measure_all(run)
            except WrongAnswerError as error:
                raise click.ClickException(f"wrong answer, nothing is reported: {error}") from error
        if not record.tables:
            raise click.ClickException("nothing was measured; the reasons are listed above")
        self.summarize(record)
        record.show()
        record.save(results)
        if "faults" in record.tables:
            raise SystemExit(1)

    def _measure_all(self, run: Run) -> None:
        cases = self.cases(run.options) if callable(self.cases) else self.cases
        only = run.options.only if isinstance(run.options.only, str) else ""
        if not any(only in name for name in cases):
            raise click.ClickException(f"--only: no name contains {only!r}; the names are {'; '.join(cases)}")
        for name, case in cases.items():
            if only not in name:
                continue
            click.echo(f"{name} ...", err=True)
            try:
                for table, row in self.measure(run, case):
                    run.record.add(table, row)
            except (MissingError, ImportError) as error:
                click.echo(f"{name} left out: {error}", err=True)


def number(name: str, default: int | None, help: str = "", least: int = 1) -> click.Option:
    """Return an option that takes a whole number."""
    return click.Option([name], type=click.IntRange(min=least), default=default, show_default=True, help=help)


def numbers(name: str, default: tuple[int, ...], least: int = 1) -> click.Option:
    """Return an option that takes a whole number and may be repeated."""
    return click.Option([name], multiple=True, type=click.IntRange(min=least), default=default, show_default=True)


def positive(name: str, default: float | None, help: str = "") -> click.Option:
    """Return an option that takes a positive number."""
    kind = click.FloatRange(min=0, min_open=True)
    return click.Option(name.split(), type=kind, default=default, show_default=True, help=help)


def demand_labels(
    name: str, labels: npt.NDArray[Any], expected: npt.NDArray[Any], clear: npt.NDArray[np.bool_] | bool = True
) -> None:
    """Require these labels, except where `clear` is False because the label depends on the source's rounding.

    Raises WrongAnswerError if a label differs.
    """
    wrong = np.flatnonzero((labels != expected) & clear)
    if len(wrong):
        raise WrongAnswerError(f"{name}: {len(wrong)} of {len(labels)} labels differ, the first of row {wrong[0]}")

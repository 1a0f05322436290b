"""Record of an experiment, as one JSON file: machine, versions, commit, load, date, command and figures.

    record = Record.begin("latency")                     # before the first measurement: notes load and time
    record.add("calls", {"model": "a9a", "nanoseconds": 310.0})   # tables are lists of flat rows
    record.save(results)                                 # RESULTS / "latency.json", from the option --results
    Record.load(RESULTS / "latency.json").tables["calls"]

Files in `benchmarks/results` are committed: README and docs/benchmarks.md show them (`python -m benchmarks.publish`).
Test runs write to build/, which is the default.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeAlias

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.machine import Machine, describe

RESULTS = Path(__file__).with_name("results")
_WIDTH = 260  # columns if the output is not a terminal

Row: TypeAlias = Mapping[str, Any]


@dataclass
class Record:
    """One run of one experiment."""

    part: str  # name of the experiment and of its file
    command: str  # command that repeats the measurement
    date: str  # start time, ISO 8601 in UTC
    machine: Machine  # processor, versions, commit, and the load at the start
    seconds: float = 0.0  # total duration
    has_stand_ins: bool = False  # true if data sets were random rows of the same shapes; such records are not published
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # flat rows of figures, by table

    @classmethod
    def begin(cls, part: str, all_threads: int = 1) -> Record:
        """Start a record; `all_threads` is the experiment's number of threads."""
        return cls(part, _command(), _now().isoformat(timespec="seconds"), describe(all_threads))

    @classmethod
    def load(cls, path: Path) -> Record:
        """Read a record written by `save`."""
        content = json.loads(path.read_text(encoding="utf-8"))
        return cls(**content | {"machine": Machine(**content["machine"])})

    def add(self, table: str, row: Row) -> None:
        """Append a row to a table, with NumPy scalars converted to Python numbers."""
        plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in row.items()}
        self.tables.setdefault(table, []).append(plain)

    def save(self, folder: Path) -> Path:
        """Write ``<folder>/<part>.json``; NaN and infinity are errors, and missing figures are None."""
        self.seconds = round((_now() - datetime.fromisoformat(self.date)).total_seconds(), 1)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.part}.json"
        path.write_text(json.dumps(asdict(self), indent=1, allow_nan=False) + "\n", encoding="utf-8")
        click.echo(f"wrote {path}", err=True)
        return path

    def show(self) -> None:
        """Print every table."""
        console = Console() if sys.stdout.isatty() else Console(width=_WIDTH)
        for name, rows in self.tables.items():
            table = Table(*rows[0], title=f"{self.part}: {name}{', on stand-ins' * self.has_stand_ins}")
            for row in rows:
                table.add_row(*map(_shown, row.values()))
            console.print(table)


def _now() -> datetime:
    return datetime.now(timezone.utc)


def _command() -> str:
    """Return the command as typed, except for the interpreter: ``python -m benchmarks.latency --rows 10``."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    name = sys.argv[0] if spec is None else f"-m {spec.name.removesuffix('.__main__')}"
    return " ".join(["python", name, *sys.argv[1:]])


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return f"{value:,}" if type(value) is int else str(value)

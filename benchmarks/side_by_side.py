"""Comparison of runs on several machines, or of several runs on one: medians, and the spread of the runs.

    python -m benchmarks.ordinary --published --results runs/zen4-1        # on each machine, as often as you like
    python -m benchmarks.side_by_side runs/* --part ordinary --table models --figure microseconds

Rows with the same names are matched. Each column is a machine: processor, instruction set, and whether it is emulated.
A figure is the median over its runs, with minimum and maximum if there are several.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from statistics import median

import click
from rich.console import Console
from rich.table import Table

from benchmarks.record import Record

_WIDTH = 200


def machine_of(record: Record) -> str:
    """Return a description that distinguishes the machines."""
    machine = record.machine
    emulated = ", emulated" if "QEMU" in machine.cpu or machine.cpu == "unknown" else ""
    stand_ins = ", on stand-ins" if record.has_stand_ins else ""
    return f"{machine.cpu.partition(',')[0]}, {machine.target}{emulated}{stand_ins}"


def side_by_side(records: list[Record], table: str, figure: str) -> Table:
    """Build a table with one row per name and one column per machine."""
    figures: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        for row in record.tables.get(table, []):
            if isinstance(row.get(figure), (int, float)):
                name = ", ".join(value for value in row.values() if isinstance(value, str))
                figures[name][machine_of(record)].append(row[figure])
    machines = list(dict.fromkeys(machine for columns in figures.values() for machine in columns))
    shown = Table(figure, *machines)
    for name, columns in figures.items():
        shown.add_row(name, *(_shown(columns.get(machine, [])) for machine in machines))
    return shown


def _shown(values: list[float]) -> str:
    if not values:
        return "-"
    text = f"{median(values):.4g}"
    return text if len(values) == 1 else f"{text} ({min(values):.4g} to {max(values):.4g}, {len(values)} runs)"


@click.command(help=(__doc__ or "").replace("\n\n    ", "\n\n\b\n    "))
@click.argument("folders", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--part", default="ordinary", show_default=True, help="Name of the record.")
@click.option("--table", default="models", show_default=True)
@click.option("--figure", default="microseconds", show_default=True, help="Column of the table.")
def main(folders: tuple[Path, ...], part: str, table: str, figure: str) -> None:
    """Compare runs side by side."""
    records = [Record.load(folder / f"{part}.json") for folder in folders if (folder / f"{part}.json").exists()]
    if not records:
        raise click.ClickException(f"none of these folders has {part}.json")
    Console(width=None if Console().is_terminal else _WIDTH).print(side_by_side(records, table, figure))


if __name__ == "__main__":
    main()

"""``approxsvm inspect``: show the contents of an artifact."""

from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from approxsvm.cli.group import INPUT, Command


@click.command(cls=Command)
@click.argument("artifact", type=INPUT)
def inspect(artifact: Path) -> None:
    """Show the model, mode, size and plan of ARTIFACT.

    \b
    Example:
        approxsvm inspect a9a.asvm
    """
    from approxsvm.analysis.summary import summarize  # imported here because it needs NumPy

    opened = open_artifact(artifact)
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in summarize(opened.artifact, opened.rows_per_stage, opened.exact_count).rows():
        table.add_row(name, value)
    Console(highlight=False).print(table)


def open_artifact(path: Path) -> Any:
    """Open an artifact and replay its check rows like `load`, but without scikit-learn."""
    from approxsvm.runtime.evaluator import Evaluator, read_artifact  # imported here because they need NumPy

    return Evaluator(read_artifact(path))

"""HTML reports of the commands that write them."""

from pathlib import Path
from typing import Any

import click

from approxsvm.cli.group import command_line
from approxsvm.system.progress_bar import progress_bar


def write_report(path: Path, fast: Any, rows: Any, truth: Any, against: Any, **options: Any) -> Any:
    """Write a report page; return its evidence."""
    from approxsvm.analysis.page import make_report

    with progress_bar() as bar:
        task = bar.add_task("Reporting", total=1.0)
        page = make_report(
            fast,
            rows,
            truth,
            against=against,
            command=command_line(),
            progress=lambda share: bar.update(task, completed=share),
            **options,
        )
        page.save(path)
    click.echo(f"{path}: HTML, {len(page.html.encode()):,} bytes", err=True)
    return page.evidence

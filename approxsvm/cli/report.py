"""``approxsvm report``, which shows an artifact's speed and proofs in the terminal and as an HTML page."""

from pathlib import Path
from typing import Any

import click

import approxsvm
from approxsvm.cli.group import INPUT, OUTPUT, Command, command_line
from approxsvm.cli.options import RowsFormat, SourceFormat, rows_options, source_options
from approxsvm.system.progress_bar import progress_bar


@click.command(cls=Command, short_help="Show the speed of ARTIFACT, and check its predictions.")
@click.argument("artifact", type=INPUT)
@click.option("--against", type=INPUT, help="The model from which the artifact was made, for comparison.")
@click.option(
    "--data",
    required=True,
    type=INPUT,
    help="Rows to predict, preferably not training rows: a LIBSVM, .npy, .npz, .csv or .parquet file.",
)
@click.option(
    "-o", "--output", "output", type=OUTPUT, help="Also write an HTML page with plots (needs approxsvm[report])."
)
@click.option(
    "--max-rows",
    type=click.IntRange(min=1),
    help="Maximum number of rows to compare. Default: the number that takes about a second.",
)
@source_options
@rows_options
def report(
    artifact: Path,
    against: Path | None,
    data: Path,
    output: Path | None,
    max_rows: int | None,
    source_format: SourceFormat,
    rows_format: RowsFormat,
) -> None:
    """Show how fast ARTIFACT is, and whether its predictions equal the source's.

    The exit status is 1 if a guarantee is broken.

    \b
    Example:
        approxsvm report a9a.asvm --against a9a.model --data a9a.t -o report.html
    """
    fast = approxsvm.load(artifact)
    source = None if against is None else source_format.read_source(against, fast)[1]
    rows, truth = rows_format.read_for(fast.artifact, data), rows_format.truth(data, fast.n_features_in_)
    names = {"title": artifact.name, "rows_name": str(data)}
    made = make_report(output, fast, rows, truth, source, max_rows=max_rows, **names)
    click.echo(made.text)
    if made.is_broken:
        raise click.exceptions.Exit(1)


def make_report(output: Path | None, fast: Any, rows: Any, truth: Any, against: Any, **options: Any) -> Any:
    """Return a report, and write its page if an output file is given."""
    from approxsvm.analysis.report import page  # imported here because the import is slow

    if output is not None:
        page.check_packages()
    with progress_bar() as bar:
        task = bar.add_task("Reporting", total=1.0)
        made = page.make_report(
            fast,
            rows,
            truth,
            against=against,
            command=command_line(),
            progress=lambda share: bar.update(task, completed=share),
            **options,
        )
        if output is not None:
            made.save(output)
    if output is not None:
        click.echo(f"{output}: HTML, {output.stat().st_size:,} bytes", err=True)
    return made

"""``approxsvm verify``, which compares an artifact with its source."""

import json
from pathlib import Path

import click

import approxsvm
from approxsvm.cli.group import INPUT, Command, warn
from approxsvm.cli.options import RowsFormat, SourceFormat, rows_options, source_options
from approxsvm.system.progress_bar import progress_bar


@click.command(cls=Command)
@click.argument("artifact", type=INPUT)
@click.option("--against", required=True, type=INPUT, help="The model from which the artifact was made.")
@click.option(
    "--data", required=True, type=INPUT, help="Rows to compare on: a LIBSVM, .npy, .npz, .csv or .parquet file."
)
@click.option(
    "--max-rows", type=click.IntRange(min=1), help="Compare at most this many rows, drawn at random with a fixed seed."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@source_options
@rows_options
def verify(
    artifact: Path,
    against: Path,
    data: Path,
    max_rows: int | None,
    as_json: bool,
    source_format: SourceFormat,
    rows_format: RowsFormat,
) -> None:
    """Compare ARTIFACT with its source model on data.

    The exit status is 1 if a guarantee is broken.

    The source model is evaluated by its definition in float64, which is slow; --max-rows limits the number of rows. A
    pickled estimator also predicts the rows itself, with its own transformers.

    \b
    Example:
        approxsvm verify a9a.asvm --against a9a.model --data a9a.t
    """
    fast = approxsvm.load(artifact)
    model, source = source_format.read_source(against, fast)
    rows = rows_format.read_for(fast.artifact, data)
    with progress_bar(remaining=True) as bar:
        task = bar.add_task("Comparing", total=1.0)
        result = approxsvm.verify(
            fast,
            model if source is against else source,
            rows,
            max_rows=max_rows,
            progress=lambda share: bar.update(task, completed=share),
        )
    if result.doubt is not None:
        warn(result.doubt)
    if as_json:
        click.echo(json.dumps(result.as_dict()))
    else:
        click.echo(result)
    if not result.kept:
        raise click.exceptions.Exit(1)

"""``approxsvm score``, which makes predictions for the rows or pixels of files."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

import approxsvm
from approxsvm.cli.group import Command, InputFile, OutputFile
from approxsvm.cli.options import character, choice, column_names
from approxsvm.errors import InputError
from approxsvm.integrations.scoring.sources import are_rasters
from approxsvm.system.progress_bar import progress_bar

_BAD_ROWS_SHOWN = 10
_OF_RASTERS = ("bands", "nodata", "scaled", "probability_scale", "overviews")  # options of `score_raster`


@click.command(cls=Command, short_help="Predict files of any size.")
@click.argument("files", nargs=-1, type=InputFile(allow_dash=True), metavar="MODEL.asvm... INPUT...")
@click.option(
    "-o",
    "--output",
    required=True,
    type=OutputFile(allow_dash=True),
    help="A .csv, .parquet or .arrow file, .tif for rasters, or - for standard output. A name without a suffix is "
    "a folder, which gets one file for each input file.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="[NAME=]FILE",
    help="Another model to apply in the same pass, whose output columns begin with NAME_. May be repeated.",
)
@click.option(
    "--outputs",
    metavar="NAME,NAME,...",
    help="Any of label, value, probability, error_bound and certified. Default: label, or value for a regression.",
)
@click.option(
    "--keep",
    multiple=True,
    metavar="NAME,NAME,...",
    help="Input columns to copy to the output, before the predictions. May be repeated.",
)
@click.option(
    "--columns", metavar="NAME,NAME,...", help="The feature columns, in the model's order. Default: as matched by name."
)
@choice(
    "--on-error",
    "fail null skip",
    "fail",
    "How to treat rows that contain a null, NaN, infinity or text that is not a number.",
)
@click.option(
    "--input-format",
    type=click.Choice(["csv", "parquet", "arrow", "libsvm", "numpy", "raster"]),
    help="Format of the inputs. Default: by suffix, or by content for rasters; CSV for standard input.",
)
@click.option(
    "--output-format",
    type=click.Choice(["csv", "parquet", "arrow"]),
    help="Format of the output. Default: by suffix; Parquet in a folder, and CSV on standard output.",
)
@click.option(
    "--delimiter",
    help="Character between the columns of CSV inputs; files with other suffixes are then CSV. Default: a comma.",
)
@click.option(
    "--header/--no-header",
    default=None,
    help="Whether the first line of CSV inputs has column names. Default: yes unless all cells are numbers or empty. A "
    "line 0, 1, 2, ... is taken for names; this option is needed if it may also be a row of data.",
)
@click.option("--batch-rows", type=click.IntRange(min=1), help="Number of rows in a batch.")
@click.option(
    "--bands",
    metavar="BAND,BAND,...",
    help="Rasters: the bands in the model's order, numbers or descriptions. Default: by name, else by position.",
)
@click.option(
    "--nodata", type=float, help="Rasters: nodata value, in addition to the nodata values that the files declare."
)
@click.option("--scaled", is_flag=True, help="Rasters: apply the scales and offsets that the files declare.")
@click.option(
    "--probability-scale",
    type=click.IntRange(1, 65534),
    metavar="N",
    help="Rasters: write probabilities times N as integers. Default: probabilities are written as float32.",
)
@click.option("--overviews", is_flag=True, help="Rasters: add smaller copies, which viewers show first.")
@click.option("-j", "--jobs", type=int, default=-1, show_default=True, help="Number of threads; -1 for all processors.")
def score(
    files: tuple[str, ...],
    output: str,
    models: tuple[str, ...],
    outputs: str | None,
    jobs: int,
    **options: Any,
) -> None:
    """Make predictions for the rows or pixels of files of any size.

    One or more models predict in one pass, in constant memory (needs approxsvm[arrow] or, for rasters,
    approxsvm[raster]).

    INPUT is a CSV, Parquet, Arrow, NumPy or LIBSVM file, a raster that GDAL can read, a folder or a quoted pattern of
    such files, or - for standard input. Columns and bands are matched by the names on which the model was fitted.
    Output files appear only once they are complete. If a run is killed, the same command continues with the first file
    missing from the output folder.

    \b
    Example:
        approxsvm score churn.asvm customers.parquet -o churn.parquet --keep id --outputs label,error_bound
        approxsvm score churn.asvm "customers/day=*/*.parquet" -o churn/
        approxsvm score eu=eu.asvm --model us=us.asvm customers.csv -o - --keep id
        approxsvm score crops.asvm scene.tif -o crops.tif --outputs label,certified
    """
    named = [_model_name(text) for text in (*(name for name in files if name.endswith(".asvm")), *models)]
    inputs = [name for name in files if not name.endswith(".asvm")]
    if not inputs:
        raise InputError("no input: give a file, or - for standard input")
    if not named:
        raise InputError(
            "no model to score with: give an .asvm file, which approxsvm convert-model writes, or --model FILE"
        )
    if len(dict(named)) < len(named):
        raise InputError(
            f"two models have the same name: {', '.join(name for name, _ in named)}; rename one with --model NAME=FILE"
        )
    requested = options["input_format"]
    is_raster = requested == "raster" or (requested is None and are_rasters(inputs))
    chosen = _options_of(options, is_raster)
    with _progress("pixels" if is_raster else "rows") as progress:
        shared: dict[str, Any] = {"outputs": column_names(outputs), "n_jobs": jobs, "progress": progress}
        if is_raster:
            if len(named) != 1:
                raise InputError(f"a raster is scored by one model, but {len(named)} are given")
            scoring = approxsvm.score_raster(named[0][1], inputs, output, **shared, **chosen)
        else:
            scoring = approxsvm.score_dataset(dict(named), inputs, output, **shared, **chosen)
    _report(scoring, output, "pixels" if is_raster else "rows")


def _options_of(options: Mapping[str, Any], is_raster: bool) -> dict[str, Any]:
    """Return the options for rasters or for tables; raise InputError for an option that does not apply."""
    source_of = click.get_current_context().get_parameter_source
    for name in options.keys() - {"input_format"}:
        if (name in _OF_RASTERS) != is_raster and source_of(name) == ParameterSource.COMMANDLINE:
            kind, other = ("a raster", "tables") if is_raster else ("tables", "a raster")
            raise InputError(f"--{name.replace('_', '-')} is for {other}, but the input is {kind}")
    if is_raster:
        return {**{name: options[name] for name in _OF_RASTERS}, "bands": column_names(options["bands"])}
    return {
        **{name: value for name, value in options.items() if name not in _OF_RASTERS},
        "keep": [name for some in options["keep"] for name in column_names(some) or ()],
        "columns": column_names(options["columns"]),
        "delimiter": character(options["delimiter"]),
    }


@contextmanager
def _progress(things: str) -> Iterator[Callable[[int, float | None], None]]:
    """Show a progress bar; yield the function to pass as the argument `progress`."""
    with progress_bar(remaining=True) as bar:
        task = bar.add_task("Scoring", total=None)
        start = time.perf_counter()

        def show(n: int, fraction: float | None) -> None:
            rate = n / (time.perf_counter() - start)
            bar.update(
                task,
                description=f"Scoring {n:,} {things}, {rate:,.0f} a second",
                total=None if fraction is None else 1.0,
                completed=fraction or 0.0,
            )

        yield show


def _report(scoring: approxsvm.Scoring, output: str, things: str) -> None:
    """Print a run's statistics."""
    for reason in scoring.bad_rows[:_BAD_ROWS_SHOWN]:
        click.echo(f"approxsvm: {reason}", err=True)
    kept = f", {scoring.n_kept:,} files were already complete" if scoring.n_kept else ""
    bad = f", {scoring.n_bad:,} without an answer" if scoring.n_bad else ""
    where = output if len(scoring.written) == 1 or not scoring.written else f"{output}, {len(scoring.written):,} files"
    click.echo(
        f"{where}: {scoring.n_rows:,} {things}{bad}{kept}, {scoring.seconds:.2f} s, "
        f"{scoring.n_rows / max(scoring.seconds, 1e-9):,.0f} {things} a second",
        err=True,
    )


def _model_name(text: str) -> tuple[str, str]:
    """Return a model's name and file; the default name is the file's name without its extension."""
    name, equals, path = text.partition("=")
    is_named = equals and "/" not in name and not Path(text).exists()  # a folder's name may be day=1
    return (name, path) if is_named else (Path(text).stem, text)

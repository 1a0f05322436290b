"""``approxsvm convert-model``, which compiles a model."""

import shlex
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.console import Console

import approxsvm
from approxsvm.artifact.views import Artifact
from approxsvm.cli.group import INPUT, OUTPUT, Command, warn
from approxsvm.cli.options import RowsFormat, SourceFormat, choice, rows_options, source_options
from approxsvm.cli.report import make_report, report
from approxsvm.errors import InputError
from approxsvm.ir.schema import IDENTITY
from approxsvm.system.progress_bar import compiling


@click.command("convert-model", cls=Command)
@click.argument("source", type=INPUT)
@click.option("-o", "--output", "output", required=True, type=OUTPUT, help="The .asvm file to write.")
@choice(
    "--mode",
    "certified approximate exact",
    "certified",
    "certified: labels are proven to equal the exact model's. approximate: only the expansion, for the smallest "
    "artifact. exact: only the exact model, on a fast engine.",
)
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0.0, min_open=True),
    help="Largest error of decision values, or of predicted values for regressions. Default: none for classifiers, "
    "for which only labels matter; a thousandth of the range of values for regressions.",
)
@choice(
    "--center",
    "mean origin",
    "mean",
    "Center of a single expansion: the mean of the support vectors, or the origin as in the paper (Claesen et "
    "al. 2014).",
)
@click.option(
    "--data",
    type=INPUT,
    help="Sample rows similar to those to predict, ideally the training rows: a LIBSVM, .npy, .npz, .csv or .parquet "
    "file. The compiler tries plans on these rows.",
)
@click.option("--degree", type=click.IntRange(1, 6), help="Degree of the expansions. Default: the cheapest.")
@click.option("--centers", type=click.IntRange(min=1), help="Number of expansion centers. Default: the cheapest.")
@choice(
    "--effort",
    "low normal high",
    "normal",
    "Time spent on the search for the best plan: with up to 64, 256 or 4,096 centers.",
)
@click.option(
    "--rows-per-call",
    type=click.IntRange(min=1),
    help="Call size to optimize for: 1 for programs that predict one row at a time. Default: large batches.",
)
@click.option(
    "--rows-expected",
    type=click.IntRange(min=1),
    help="Total number of rows that the model will predict; more rows allow a longer search for a faster plan. "
    "Default: a million.",
)
@click.option(
    "--plan",
    type=INPUT,
    help="Build the plan in a JSON file or an artifact without a search, for example for a model trained again.",
)
@click.option(
    "--measure",
    is_flag=True,
    help="Time the plans with the lowest estimated costs on held-out rows of --data, on this machine, and keep the "
    "fastest plan. Compiling takes up to twice as long.",
)
@click.option("--max-bytes", type=click.IntRange(min=1), help="Maximum size of the artifact in bytes.")
@click.option(
    "--target-error",
    type=click.FloatRange(0.0, 1.0),
    help="With --mode approximate: choose the smallest expansion that gets at most this fraction of the labels on "
    "--data wrong.",
)
@click.option(
    "--n-features",
    type=click.IntRange(min=1),
    help="Number of features, if no support vector of a LIBSVM model uses the last ones.",
)
@choice(
    "--labels-by",
    "source probability",
    "source",
    "source: the labels that the source predicts. probability: the most probable class, which for an SVC is not "
    "always the label that the SVC predicts.",
)
@click.option(
    "--report",
    "page",
    type=OUTPUT,
    metavar="FILE",
    help="Write an HTML page with results and plots for the rows of --data (needs approxsvm[report]).",
)
@source_options
@rows_options
def convert_model(
    source: Path,
    output: Path,
    data: Path | None,
    degree: int | None,
    centers: int | None,
    labels_by: Any,
    n_features: int | None,
    plan: Path | None,
    page: Path | None,
    source_format: SourceFormat,
    rows_format: RowsFormat,
    **options: Any,  # options of `compile`
) -> None:
    """Compile the model SOURCE into an .asvm artifact.

    SOURCE is a LIBSVM, OpenCV, ONNX or PMML model file, or a fitted scikit-learn estimator in a skops, pickle or joblib
    file (pickle and joblib need --trust).

    \b
    Example:
        approxsvm convert-model a9a.model -o a9a.asvm
        approxsvm-predict a9a.t a9a.asvm labels.txt
    """
    if page is not None and data is None:
        raise InputError("--report needs --data, the rows to show")
    if options["measure"] and data is None:
        raise InputError("--measure needs --data, the rows to measure on")
    console = Console(highlight=False)
    with compiling(None, f"Reading {source}") as show:
        model, against = source_format.read(source, n_features)
        rows = None
        if data is not None:
            rows = rows_format.read_for(model, data)
        fast = approxsvm.compile(
            model if against is source else against,
            rows,
            degree=degree or "auto",
            n_centers=centers or "auto",
            labels=labels_by,
            plan=None if plan is None else read_plan(plan),
            progress=show,
            **options,
        )
        fast.save(output)
    if output.suffix != ".asvm" and output.is_file():
        warn(f"{output}: approxsvm score needs --model for an artifact whose name does not end in .asvm")
    summary = fast.summary
    console.print(
        f"{summary.source}, {summary.made_of}, {summary.n_features:,} features "
        f"-> {output}, {summary.mode}, {summary.n_bytes:,} bytes{_compare_sizes(summary.n_bytes, source)}, "
        f"{0.0 if fast.compilation is None else fast.compilation.seconds:.2f} s",
        soft_wrap=True,
    )
    if summary.plan:
        console.print(f"plan: {summary.plan}", soft_wrap=True)
    if summary.race:
        console.print(f"race: {dict(summary.rows())['race']}", soft_wrap=True)
    if page is not None and data is not None:
        truth = rows_format.truth(data, fast.n_features_in_)
        name = f"{data}, the sample that the plan was made from"
        make_report(page, fast, rows, truth, against, title=output.name, rows_name=name)
    elif source.is_file() and not fast.artifact.of_targets:
        click.echo(f"next: {_report_command(output, source, data)}")


def read_plan(path: Path) -> approxsvm.Plan:
    """Read a plan from a JSON file or from an artifact."""
    content = path.read_bytes()
    try:
        if not content.startswith(IDENTITY["magic"].to_bytes(8, "little")):
            return approxsvm.Plan.from_json(content)
        plan = Artifact(content).build_plan
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    if plan is None:
        raise InputError(f"{path}: the artifact has no plan: it was written without one")
    return plan


def _report_command(output: Path, source: Path, data: Path | None) -> str:
    """Return the command that reports on the artifact, with the given options for the source and the rows."""
    context = click.get_current_context()
    words = ["approxsvm", "report", str(output), "--against", str(source), "--data", str(data or "ROWS")]
    for param in report.params:
        name = str(param.name)
        given = name in context.params and context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if given and name not in ("data", "output"):
            value = context.params[name]
            flags = param.opts if value is not False else param.secondary_opts
            words += flags[:1] if isinstance(value, bool) else [flags[0], str(value)]
    return shlex.join(words)


def _compare_sizes(n_bytes: int, source: Path) -> str:
    """Describe an artifact's size relative to its source's; return an empty string for a pipe."""
    n_source_bytes = source.stat().st_size if source.is_file() else 0
    if n_source_bytes == 0:
        return ""
    ratio = n_bytes / n_source_bytes
    return f" ({1 / ratio:.1f} times smaller)" if ratio < 1.0 else f" ({ratio:.1f} times as large)"

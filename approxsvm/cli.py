"""The ``approxsvm`` command: arguments and output only."""

from __future__ import annotations

import csv
import json
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

import approxsvm
from approxsvm.analysis.folds import fold_table
from approxsvm.errors import ApproxSVMError, ApproxSVMWarning, InputError
from approxsvm.system.output_files import refuse_shared_files, write_whole
from approxsvm.system.progress_bar import compiling, progress_bar

_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
_TYPED = "approxsvm.typed"  # key of the original arguments in a context
_BAD_ROWS_SHOWN = 10
_INTERRUPTED = 130  # exit status after Ctrl-C, as in shells


class _FileName(click.Path):
    """A file name, not empty, as click would take that for the current folder; the system checks everything else."""

    def __init__(self, **options: Any) -> None:
        super().__init__(readable=False, **options)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("a file name must not be empty", param, ctx)
        return super().convert(value, param, ctx)


class InputFile(_FileName):
    """A file that a command reads; standard input where a dash is allowed."""


class OutputFile(_FileName):
    """A file that a command writes; standard output where a dash is allowed."""


class _Command(click.Command):
    """Checks the names of all files before any of them is opened."""

    def invoke(self, ctx: click.Context) -> Any:
        refuse_shared_files(self._files(ctx, InputFile), self._files(ctx, OutputFile))
        return super().invoke(ctx)

    def _files(self, ctx: click.Context, kind: type[_FileName]) -> Iterator[tuple[str, Path]]:
        for param in self.params:
            path = ctx.params.get(param.name or "")
            # `score_dataset` checks its own files, which are passed as strings.
            if isinstance(param.type, kind) and isinstance(path, Path):
                called = param.human_readable_name if isinstance(param, click.Argument) else max(param.opts, key=len)
                yield f"{called} {path}", path


class _Commands(click.Group):
    """Prints our warnings and expected errors as one line on stderr; an error has exit status 1."""

    command_class = _Command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_TYPED] = list(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        show = warnings.showwarning

        def show_ours(message: Warning | str, category: type[Warning], *place: Any, **options: Any) -> None:
            if issubclass(category, ApproxSVMWarning):
                _warn(str(message))
            else:
                show(message, category, *place, **options)

        with warnings.catch_warnings():
            warnings.simplefilter("always", ApproxSVMWarning)
            warnings.showwarning = show_ours
            return self._invoke(ctx)

    def _invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except OSError as error:
            text = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        except (ApproxSVMError, ValueError, MemoryError) as error:  # NotFittedError is a ValueError
            text = str(error) or "out of memory"
        except KeyboardInterrupt:
            click.echo("approxsvm: interrupted", err=True)
            return ctx.exit(_INTERRUPTED)
        click.echo(f"approxsvm: {' '.join(text.split())}", err=True)
        return ctx.exit(1)


def _warn(text: str) -> None:
    click.echo(f"approxsvm: warning: {text}", err=True)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="approxsvm", prog_name="approxsvm")
def main() -> None:
    """Compile trained support vector machines into small, fast predictors with the same labels.

    \b
    Example:
        approxsvm convert-model a9a.model -o a9a.asvm --data a9a
        approxsvm verify a9a.asvm --against a9a.model --data a9a.t
        approxsvm-predict a9a.t a9a.asvm labels.txt

    RBF kernels are approximated with a certified error bound. Linear kernels, and polynomial ones of degree 1 to 6,
    are evaluated exactly.
    """


_INPUT = InputFile(path_type=Path)
_OUTPUT = OutputFile(path_type=Path)


# Files of rows without labels, unless a column of that name holds them.
_TABLES = (".npy", ".npz", ".csv", ".parquet")
_report_option = click.option(
    "--report",
    type=_OUTPUT,
    metavar="FILE",
    help="Write an HTML page with results and plots for the rows of --data (needs approxsvm[report]).",
)


@dataclass(frozen=True)
class RowsFormat:
    """How rows and labels are written in a file, and which columns of a table are the features."""

    dense: bool
    delimiter: str | None
    labels: bool
    columns: str | None = None
    target: str | None = None
    header: bool | None = None

    def is_dense(self, path: Path) -> bool:
        """Whether a file is dense text, which a delimiter implies where the name says nothing else."""
        return self.dense or (self.delimiter is not None and path.suffix.lower() not in _TABLES)

    def read(self, path: Path, n_features: int | None) -> Any:
        """Rows of a file."""
        if not self.is_dense(path):
            rows = approxsvm.read_rows(
                path,
                n_features=n_features,
                columns=_names(self.columns),
                target=self.target,
                delimiter=_character(self.delimiter),
                header=self.header,
            )
        elif self.columns is not None or self.target is not None:
            raise InputError("--columns and --target are for .csv and .parquet files, without --dense")
        else:
            rows = self.read_dense(path, n_features)[0]
        return _some(rows, path)

    def read_for(self, model: Any, path: Path) -> Any:
        """Rows for a model or an artifact; for one without names, the features of a table in order."""
        from approxsvm.frames.columns import choose_columns, frame_names, warn
        from approxsvm.frames.raw_columns import RawColumns  # here, as it imports NumPy

        raw = RawColumns.of(model)
        is_found_by_name = raw.by_column and raw.names is not None and path.suffix.lower() in (".csv", ".parquet")
        rows = self.read(path, None if is_found_by_name else raw.n_columns)
        names = frame_names(rows)
        refused = getattr(getattr(model, "row_dtypes", None), "refused", {})
        if hasattr(rows, "tocsr") and any("sparse" in kind for kind in refused):
            rows = rows.toarray()
        if path.suffix.lower() == ".csv" and refused:
            # Numbers in a text have no dtype; pandas gives whole ones one that the source may compute in.
            rows = rows.astype({name: float for name, dtype in rows.dtypes.items() if dtype.kind in "iu"})
        if names is None and hasattr(rows, "to_numpy"):
            return rows.to_numpy(object if raw.texts else None)  # by position; of texts, numbers in an array are codes
        if names is None or raw.names is not None:
            return rows
        if self.columns is None:
            choose_columns(names, raw, tell=warn)
            numbered = [f"f{k}" for k in range(raw.n_columns)]
            rows = rows[numbered] if set(numbered) <= set(names) else rows
        return rows.to_numpy()

    def truth(self, path: Path, n_features: int) -> Any:
        """True labels or targets; None if the file has none."""
        if self.is_dense(path) and not self.labels:
            return None
        if self.is_dense(path):
            return self.read_dense(path, n_features)[1]
        if path.suffix.lower() not in _TABLES:
            return approxsvm.read_libsvm_data(path, n_features=n_features)[1]
        if self.target is None:
            return None
        delimiter = _character(self.delimiter)
        return approxsvm.read_rows(path, columns=[self.target], delimiter=delimiter, header=self.header).iloc[:, 0]

    def read_dense(self, path: Path, n_features: int | None) -> Any:
        """Rows and labels of dense text."""
        delimiter = _character(self.delimiter)
        return approxsvm.read_dense(
            path, delimiter=delimiter, labels=self.labels, n_features=n_features, header=self.header
        )


def _taking(options: Sequence[_Decorator], name: str, record: Callable[..., Any]) -> _Decorator:
    """Add options to a command, which gets what they say as one record under that name."""

    def add(command: Any) -> Any:
        @wraps(command)
        def with_record(*args: Any, **given: Any) -> Any:
            fields = {key: given.pop(key) for key in signature(record).parameters if key in given}
            return command(*args, **given, **{name: record(**fields)})

        result: Any = with_record
        for option in reversed(options):
            result = option(result)
        return result

    return add


_DENSE_OPTIONS = (
    click.option(
        "--dense", is_flag=True, help="The data are dense text: one row per line, with a value for every column."
    ),
    click.option(
        "--delimiter",
        help="The character between columns of a .csv file, or of dense text, which it implies for other names. "
        "Default: a comma; white space.",
    ),
    click.option(
        "--header/--no-header",
        default=None,
        help="With --dense, or in a .csv file: whether the first line holds names. Default: unless all are numbers; "
        "0, 1, 2, ... are names, and asked about where they may be a row.",
    ),
    click.option(
        "--labels/--no-labels",
        "labels",
        default=True,
        show_default=True,
        help="With --dense: whether the first column holds labels.",
    ),
)
_TABLE_OPTIONS = (
    click.option(
        "--columns",
        metavar="NAME,NAME,...",
        help="In a .csv or .parquet file: the feature columns, in the model's order. Default: all columns. "
        "Without a header line they are called 1, 2, ...",
    ),
    click.option("--target", help="In a .csv or .parquet file: a column to leave out, such as the label."),
)
_dense_options = _taking(_DENSE_OPTIONS, "rows_format", RowsFormat)
_rows_options = _taking((*_TABLE_OPTIONS, *_DENSE_OPTIONS), "rows_format", RowsFormat)


def _repeatable() -> str:
    """The command line."""
    return shlex.join(["approxsvm", *click.get_current_context().meta[_TYPED]])


@dataclass(frozen=True)
class SourceFormat:
    """How a model is read, and what its rows and target were scaled by."""

    trust: bool
    range_file: Path | None
    restore_target: bool

    def read(self, path: Path, n_features: int | None) -> tuple[Any, Any]:
        """A model, and its source: an estimator, with its own transformers and predictions, or the model's path.

        With a range file the source is the model itself.
        """
        from approxsvm.frontends import read_estimator_file  # here, as they import NumPy
        from approxsvm.frontends.sklearn.vectorizers import split

        if self.range_file is None and self.restore_target:
            raise InputError("--restore-target needs --range, the file with the range of the target")
        estimator = read_estimator_file(path, trust=self.trust)
        model = approxsvm.read_any(path if estimator is None else split(estimator)[1], n_features=n_features)
        if self.range_file is None:
            return model, path if estimator is None else estimator
        model = approxsvm.with_range_file(model, self.range_file, restore_target=self.restore_target)
        return model, model


_SOURCE_OPTIONS = (
    click.option(
        "--range",
        "range_file",
        type=_INPUT,
        help="The file that svm-scale -s wrote for the training rows, or R's write.svm beside the model. The "
        "artifact then takes unscaled rows and scales them itself.",
    ),
    click.option(
        "--restore-target",
        is_flag=True,
        help="With --range: give regression values in the units of the unscaled target (svm-scale -y).",
    ),
    click.option(
        "--trust", is_flag=True, help="Load a pickle, which can run any code; make whatever types a skops file names."
    ),
)
_source_options = _taking(_SOURCE_OPTIONS, "source_format", SourceFormat)


def _choice(flag: str, choices: str, default: str, help: str) -> _Decorator:
    """An option with a few values, whose default is shown."""
    return click.option(flag, type=click.Choice(choices.split()), default=default, show_default=True, help=help)


def _some(rows: Any, path: Path) -> Any:
    if rows.shape[0] == 0:
        raise InputError(f"{path}: the file has no rows")
    return rows


def _character(delimiter: str | None) -> str | None:
    """The delimiter; a tab may be written as \\t."""
    return {"\\t": "\t"}.get(delimiter, delimiter) if delimiter is not None else None


@main.command("convert-model")
@click.argument("source", type=_INPUT)
@click.option("-o", "--output", "output", required=True, type=_OUTPUT, help="The .asvm file to write.")
@_choice(
    "--mode",
    "certified approximate exact",
    "certified",
    "certified: labels are proven to equal the exact model's. approximate: the expansion alone, the smallest "
    "artifact. exact: the exact model alone, on a fast engine.",
)
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0.0, min_open=True),
    help="Largest error of a decision value, or of a regression's value. Default: none for classifiers, whose labels "
    "alone count; a thousandth of the range of values for regressions.",
)
@_choice(
    "--center",
    "mean origin",
    "mean",
    "Center of a single expansion: the mean of the support vectors, or the origin as in the paper (Claesen et "
    "al. 2014).",
)
@click.option(
    "--data",
    type=_INPUT,
    help="Rows like those to predict, ideally the training rows: a LIBSVM, .npy, .npz, .csv or .parquet file. Plans "
    "are tested on them.",
)
@click.option("--degree", type=click.IntRange(1, 6), help="Degree of the expansions. Default: chosen by cost.")
@click.option("--centers", type=click.IntRange(min=1), help="Number of expansion centers. Default: chosen by cost.")
@_choice(
    "--effort",
    "low normal high",
    "normal",
    "How long to search for the best plan: with up to 64, 1,024 or 4,096 centers.",
)
@click.option(
    "--rows-per-call",
    type=click.IntRange(min=1),
    help="Rows of the calls that are to be fast: 1 for programs that predict one row at a time. Default: batches.",
)
@click.option("--max-bytes", type=click.IntRange(min=1), help="Largest size of the artifact in bytes.")
@click.option(
    "--target-error",
    type=click.FloatRange(0.0, 1.0),
    help="With --mode approximate: choose the smallest expansion that gets at most this share of labels wrong on "
    "--data.",
)
@click.option(
    "--n-features",
    type=click.IntRange(min=1),
    help="Number of columns of the rows to predict, if the support vectors of a LIBSVM model use fewer.",
)
@_choice(
    "--labels-by",
    "source probability",
    "source",
    "source: the labels of the source itself. probability: the most probable class, which an SVC's own labels "
    "contradict in some rows.",
)
@_report_option
@_source_options
@_rows_options
def convert_model(
    source: Path,
    output: Path,
    data: Path | None,
    degree: int | None,
    centers: int | None,
    labels_by: Any,
    n_features: int | None,
    report: Path | None,
    source_format: SourceFormat,
    rows_format: RowsFormat,
    **options: Any,  # by the names that `compile` has for them
) -> None:
    """Compile the model SOURCE into an artifact, an .asvm file.

    SOURCE is a model file of LIBSVM, OpenCV, ONNX or PMML, a skops file of a fitted scikit-learn estimator, or a pickle
    or joblib file of one (needs --trust).

    \b
    Example:
        approxsvm convert-model a9a.model -o a9a.asvm
        approxsvm-predict a9a.t a9a.asvm labels.txt
    """
    if report is not None and data is None:
        raise InputError("--report needs --data, the rows to show")
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
            progress=show,
            **options,
        )
        fast.save(output)
    summary = fast.summary
    console.print(
        f"{summary.source}, {summary.made_of}, {summary.n_features:,} features "
        f"-> {output}, {summary.mode}, {summary.n_bytes:,} bytes{_compared(summary.n_bytes, source)}, "
        f"{0.0 if fast.compilation is None else fast.compilation.seconds:.2f} s",
        soft_wrap=True,
    )
    if summary.plan:
        console.print(f"plan: {summary.plan}", soft_wrap=True)
    if report is not None and data is not None:
        truth = rows_format.truth(data, fast.n_features_in_)
        name = f"{data}, the sample that the plan was made from"
        _write_report(report, fast, rows, truth, against, title=output.name, rows_name=name)


def _compared(n_bytes: int, source: Path) -> str:
    """The size of an artifact beside that of its source; a pipe has none."""
    n_source_bytes = source.stat().st_size if source.is_file() else 0
    if n_source_bytes == 0:
        return ""
    ratio = n_bytes / n_source_bytes
    return f" ({1 / ratio:.1f} times smaller)" if ratio < 1.0 else f" ({ratio:.1f} times as large)"


def _write_report(path: Path, fast: Any, rows: Any, truth: Any, against: Any, **options: Any) -> Any:
    """Write a report page; returns its evidence."""
    from approxsvm.analysis.page import make_report

    with progress_bar() as bar:
        task = bar.add_task("Reporting", total=1.0)
        page = make_report(
            fast,
            rows,
            truth,
            against=against,
            command=_repeatable(),
            progress=lambda share: bar.update(task, completed=share),
            **options,
        )
        page.save(path)
    click.echo(f"{path}: HTML, {len(page.html.encode()):,} bytes", err=True)
    return page.evidence


def _opened(path: Path) -> Any:
    """Open an artifact and replay its check rows as `load` does, without scikit-learn."""
    from approxsvm.runtime.evaluator import Evaluator, read_artifact  # here, as they import NumPy

    return Evaluator(read_artifact(path))


@main.command()
@click.argument("artifact", type=_INPUT)
def inspect(artifact: Path) -> None:
    """Show the contents of an artifact: its model, mode, size, and the reason for its plan.

    \b
    Example:
        approxsvm inspect a9a.asvm
    """
    from approxsvm.analysis.summary import summarize  # here, as it imports NumPy

    opened = _opened(artifact)
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in summarize(opened.artifact, opened.rows_per_stage, opened.exact_count).rows():
        table.add_row(name, value)
    Console(highlight=False).print(table)


@main.command()
@click.argument("artifact", type=_INPUT)
@click.option("--against", required=True, type=_INPUT, help="The model that the artifact was made from.")
@click.option(
    "--data", required=True, type=_INPUT, help="Rows to compare on: a LIBSVM, .npy, .npz, .csv or .parquet file."
)
@click.option(
    "--max-rows",
    type=click.IntRange(min=1),
    help="Compare at most this many rows, drawn at random with a fixed seed.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@_report_option
@_source_options
@_rows_options
def verify(
    artifact: Path,
    against: Path,
    data: Path,
    max_rows: int | None,
    as_json: bool,
    report: Path | None,
    source_format: SourceFormat,
    rows_format: RowsFormat,
) -> None:
    """Compare ARTIFACT with its model on data; exit status 1 when a promise is broken.

    The model is evaluated by its definition in float64, which is slow; --max-rows limits the number of rows. A pickled
    estimator is asked as well: by its own predict, on rows of its own transformers.

    \b
    Example:
        approxsvm verify a9a.asvm --against a9a.model --data a9a.t
    """
    fast = approxsvm.load(artifact)
    model, source = source_format.read(against, fast.n_features_in_)
    rows = rows_format.read_for(fast.artifact, data)
    if report is not None:
        truth = rows_format.truth(data, fast.n_features_in_)
        options = {"max_rows": max_rows or rows.shape[0], "title": artifact.name, "rows_name": str(data)}
        evidence = _write_report(report, fast, rows, truth, source, **options)
        judged = evidence.against.judged
        result = judged.verification
        if result is None:  # an ensemble, which has no decision values
            n_differ = int(judged.differ.sum())
            if judged.doubt is not None:
                _warn(judged.doubt)
            click.echo(
                f"{len(judged.differ):,} rows: labels that differ {n_differ}, bounds broken {judged.n_violations}"
            )
            raise click.exceptions.Exit(
                int(judged.n_violations > 0 or (n_differ > 0 and fast.summary.mode != "approximate"))
            )
    else:
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
        _warn(result.doubt)
    if as_json:
        click.echo(json.dumps(result.as_dict()))
    else:
        table = Table(show_header=False, box=None, pad_edge=False)
        for name, value in result.rows():
            table.add_row(name, value)
        Console(highlight=False).print(table)
    if not result.kept:
        raise click.exceptions.Exit(1)


@main.command("export")
@click.argument("artifact", type=_INPUT)
@click.option("--c", "c_header", type=_OUTPUT, metavar="FILE", help="Write a C99 header for microcontrollers.")
@click.option("--cpp", "cpp_header", type=_OUTPUT, metavar="FILE", help="Write a C++17 header that holds the artifact.")
@click.option(
    "--hpp",
    "library_header",
    type=_OUTPUT,
    metavar="FILE",
    help="Write the headers of the C++ library as one file; a header of --cpp then includes it by its name.",
)
@click.option("--onnx", "onnx_file", type=_OUTPUT, metavar="FILE", help="Write an ONNX graph of standard operators.")
@click.option(
    "--name",
    default="model",
    show_default=True,
    help="With --c: prefix of every name in the header. With --cpp: its namespace.",
)
@_choice(
    "--coefficients",
    "float32 int16 int8",
    "float32",
    "With --c: type of the coefficients. Bounds include the rounding to integers.",
)
@_choice(
    "--inputs",
    "float32 int16 int8",
    "float32",
    "With --c: type of the rows. Integers need --data, which sets the range that they cover.",
)
@click.option(
    "--data", type=_INPUT, help="With --inputs int16 or int8: rows like those to predict, as for convert-model."
)
@click.option(
    "--fallback/--no-fallback",
    default=None,
    help="With --onnx: include the exact model, for rows whose label the expansions do not certify. Included by "
    "default if the graph then has at most 256 MiB.",
)
@_rows_options
def export(
    artifact: Path,
    c_header: Path | None,
    cpp_header: Path | None,
    library_header: Path | None,
    onnx_file: Path | None,
    name: str,
    data: Path | None,
    fallback: bool | None,
    rows_format: RowsFormat,
    **options: Any,  # by the names that `export_c` has for them
) -> None:
    """Write ARTIFACT, an .asvm file, as C or C++ source code or as an ONNX graph.

    The C99 header needs no library and no heap, and says for each row whether its label is certified; the command
    prints what it costs. The C++ header holds the artifact as an array, for programs without files. The ONNX graph
    runs wherever ONNX does, and has an output for the same.

    \b
    Example:
        approxsvm convert-model tumor.model -o tumor.asvm --mode approximate
        approxsvm export tumor.asvm --c tumor.h --name tumor
        approxsvm export tumor.asvm --cpp tumor.hpp --hpp approxsvm.hpp --name tumor
        approxsvm export tumor.asvm --onnx tumor.onnx
    """
    if all(file is None for file in (c_header, cpp_header, library_header, onnx_file)):
        raise InputError("nothing to write: give --c FILE, --cpp FILE, --hpp FILE or --onnx FILE")
    opened = _opened(artifact).artifact
    if c_header is not None:
        from approxsvm.backends.c99.header import export_c

        rows = None
        if data is not None:
            rows = rows_format.read_for(opened, data)
        cost = export_c(opened, c_header, X=rows, name=name, **options)
        click.echo(str(cost))
    if library_header is not None:
        from approxsvm.backends.cpp import one_header

        write_whole(one_header().encode(), library_header)
        click.echo(f"{library_header}: C++17, {library_header.stat().st_size:,} bytes")
    if cpp_header is not None:
        from approxsvm.backends.cpp import export_cpp

        by_name = {} if library_header is None else {"include": f'"{library_header.name}"'}
        export_cpp(opened, cpp_header, name=name, **by_name)
        click.echo(f"{cpp_header}: C++17, {opened.model_of}")
    if onnx_file is not None:
        from approxsvm.backends.onnx.graph import onnx_model

        graph = onnx_model(opened, fallback=fallback).SerializeToString()
        write_whole(graph, onnx_file)
        click.echo(f"{onnx_file}: ONNX, {len(graph):,} bytes")


@main.command()
@click.argument("files", nargs=-1, type=InputFile(allow_dash=True), metavar="MODEL.asvm... INPUT...")
@click.option(
    "-o",
    "--output",
    required=True,
    type=OutputFile(allow_dash=True),
    help="A .csv, .parquet or .arrow file, or - for standard output. A name without a suffix is a folder, which gets "
    "one file per input file.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="[NAME=]FILE",
    help="Another model to apply in the same pass; its columns begin with NAME_. May be repeated.",
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
    help="Input columns to copy to the output, in front. May be repeated.",
)
@click.option(
    "--columns", metavar="NAME,NAME,...", help="The feature columns, in the model's order. Default: matched by name."
)
@_choice(
    "--on-error",
    "fail null skip",
    "fail",
    "What to do with a row that holds a null, NaN, infinity or text that is not a number.",
)
@click.option(
    "--input-format",
    type=click.Choice(["csv", "parquet", "arrow", "libsvm"]),
    help="Format of the inputs. Default: by file name; CSV for standard input.",
)
@click.option(
    "--output-format",
    type=click.Choice(["csv", "parquet", "arrow"]),
    help="Format of the output. Default: by file name; Parquet in a folder, CSV on standard output.",
)
@click.option(
    "--delimiter",
    help="The character between columns of CSV inputs; files of unknown suffix are CSV then. Default: a comma.",
)
@click.option(
    "--header/--no-header",
    default=None,
    help="Whether the first line of CSV inputs holds column names. Default: it does, unless all its fields are "
    "numbers or empty; 0, 1, 2, ... are names, and asked about where they may be a row.",
)
@click.option("--batch-rows", type=click.IntRange(min=1), help="Number of rows to predict at a time.")
@click.option("-j", "--jobs", type=int, default=-1, show_default=True, help="Number of threads; -1 for all processors.")
def score(
    files: tuple[str, ...],
    output: str,
    models: tuple[str, ...],
    outputs: str | None,
    keep: tuple[str, ...],
    columns: str | None,
    delimiter: str | None,
    jobs: int,
    **options: Any,  # by the names that `score_dataset` has for them
) -> None:
    """Score files of any size with one or more models, in constant memory (needs approxsvm[arrow]).

    INPUT is a CSV, Parquet, Arrow or LIBSVM file, a folder or a quoted pattern of these, or - for standard input.
    Columns are found by the names that the model was fitted with. Output files appear when they are complete; after a
    run that was killed, the same command continues with the first file that is missing in the output folder.

    \b
    Example:
        approxsvm score churn.asvm customers.parquet -o churn.parquet --keep id --outputs label,error_bound
        approxsvm score churn.asvm "customers/day=*/*.parquet" -o churn/
        approxsvm score eu=eu.asvm --model us=us.asvm customers.csv -o - --keep id
    """
    named = [_model_name(text) for text in (*(name for name in files if name.endswith(".asvm")), *models)]
    inputs = [name for name in files if not name.endswith(".asvm")]
    if not inputs:
        raise InputError("there is no input; give - for standard input")
    if len(dict(named)) < len(named):
        raise InputError(
            f"two models have the same name: {', '.join(name for name, _ in named)}; rename one with --model NAME=FILE"
        )
    with progress_bar(remaining=True) as bar:
        task = bar.add_task("Scoring", total=None)
        start = time.perf_counter()

        def show(n_rows: int, share: float | None) -> None:
            rate = n_rows / (time.perf_counter() - start)
            bar.update(
                task,
                description=f"Scoring {n_rows:,} rows, {rate:,.0f} a second",
                total=None if share is None else 1.0,
                completed=share or 0.0,
            )

        scoring = approxsvm.score_dataset(
            dict(named),
            inputs,
            output,
            outputs=_names(outputs),
            keep=[name for some in keep for name in _names(some) or ()],
            columns=_names(columns),
            delimiter=_character(delimiter),
            n_jobs=jobs,
            progress=show,
            **options,
        )
    for reason in scoring.bad_rows[:_BAD_ROWS_SHOWN]:
        click.echo(f"approxsvm: {reason}", err=True)
    there = f", {scoring.n_kept:,} files were complete before" if scoring.n_kept else ""
    bad = f", {scoring.n_bad:,} without an answer" if scoring.n_bad else ""
    where = output if len(scoring.written) == 1 or not scoring.written else f"{output}, {len(scoring.written):,} files"
    click.echo(
        f"{where}: {scoring.n_rows:,} rows{bad}{there}, {scoring.seconds:.2f} s, "
        f"{scoring.n_rows / max(scoring.seconds, 1e-9):,.0f} rows a second",
        err=True,
    )


def _model_name(text: str) -> tuple[str, str]:
    """The name and file of a model; by default the name is that of the file."""
    name, equals, path = text.partition("=")
    is_named = equals and "/" not in name and not Path(text).exists()  # a folder may have the name day=1
    return (name, path) if is_named else (Path(text).stem, text)


def _names(text: str | None) -> list[str] | None:
    """Comma-separated names, with quotes around those that contain commas."""
    return None if text is None else next(csv.reader([text], skipinitialspace=True), [])


@main.command("gamma-max")
@click.argument("data", type=_INPUT)
@click.argument("test_data", type=_INPUT, required=False)
@click.option("--n-features", type=click.IntRange(min=1), help="Number of columns, if a file uses fewer.")
@_dense_options
def gamma_max(data: Path, test_data: Path | None, n_features: int | None, rows_format: RowsFormat) -> None:
    """Print the largest gamma that passes the paper's validity test.

    DATA holds the training rows, TEST_DATA the rows to predict (default: DATA).

    The limit is 1 / (4 max||x|| max||z||) over training rows x and test rows z (Claesen et al. 2014, Eq. 3.11), once
    with norms from the origin, as in the paper, and once from the mean of DATA.

    \b
    Example:
        approxsvm gamma-max a9a a9a.t
    """
    names = [data] if test_data is None else [data, test_data]
    rows = [rows_format.read(name, n_features) for name in names]
    width = max(X.shape[1] for X in rows)
    for X in rows:
        if X.shape[1] < width and not hasattr(X, "tocsr"):
            raise InputError(f"the files have {rows[0].shape[1]} and {rows[-1].shape[1]} columns")
        if hasattr(X, "tocsr"):
            X.resize((X.shape[0], width))
    table = Table("center", "gamma_max", box=None, pad_edge=False)
    for center in ("origin", "mean"):
        table.add_row(center, f"{approxsvm.gamma_max(*rows, center=center):.6g}")
    Console(highlight=False).print(table)


@main.command("cross-validate")
@click.argument("data", type=_INPUT)
@_choice("--svm-type", "c-svc nu-svc epsilon-svr nu-svr", "c-svc", "Type of the models to train, as LIBSVM names it.")
@click.option(
    "-c",
    "--cost",
    type=click.FloatRange(min=0.0, min_open=True),
    default=1.0,
    show_default=True,
    help="C of c-svc, epsilon-svr and nu-svr.",
)
@click.option("-g", "--gamma", type=click.FloatRange(min=0.0), help="gamma of the RBF kernel. Default: 1 / n_features.")
@click.option(
    "--nu",
    type=click.FloatRange(0.0, 1.0, min_open=True),
    default=0.5,
    show_default=True,
    help="nu of nu-svc and nu-svr.",
)
@click.option(
    "--epsilon", type=click.FloatRange(min=0.0), default=0.1, show_default=True, help="epsilon of epsilon-svr."
)
@click.option("--folds", type=click.IntRange(min=2), default=5, show_default=True, help="Number of folds.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the folds and of the compiler.")
@_choice("--mode", "certified approximate exact", "certified", "As for convert-model.")
@_choice("--center", "mean origin", "mean", "As for convert-model.")
@click.option("--tolerance", type=click.FloatRange(min=0.0, min_open=True), help="As for convert-model.")
@_choice("--effort", "low normal high", "normal", "As for convert-model.")
@_choice(
    "--trainer",
    "auto sklearn libsvm",
    "auto",
    "What to train with; auto is LIBSVM if libsvm-official is installed, else scikit-learn.",
)
@click.option("--n-features", type=click.IntRange(min=1), help="Number of columns, if the file uses fewer.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@_dense_options
def cross_validate(
    data: Path,
    svm_type: Any,
    cost: float,
    gamma: float | None,
    nu: float,
    epsilon: float,
    folds: int,
    seed: int,
    trainer: Any,
    n_features: int | None,
    as_json: bool,
    rows_format: RowsFormat,
    **options: Any,  # by the names that `cross_validate` has for them
) -> None:
    """Train, compile and predict by folds; compare the results.

    DATA holds labels and rows. A table shows the exact and the compiled model side by side, fold by fold.

    \b
    Example:
        approxsvm cross-validate a9a -c 1 -g 0.01 --folds 5
    """
    if rows_format.is_dense(data):
        if not rows_format.labels:
            raise InputError("cross-validate needs labels: --no-labels cannot be used here")
        X, y = rows_format.read_dense(data, n_features)
    else:
        X, y = approxsvm.read_libsvm_data(data, n_features=n_features)
    X = _some(X, data)
    training = approxsvm.Training(svm_type, cost, gamma, nu, epsilon, trainer)
    with progress_bar() as bar:
        task = bar.add_task("Folds", total=folds)
        result = approxsvm.cross_validate(
            X,
            y,
            training,
            n_folds=folds,
            random_state=seed,
            progress=lambda done: bar.update(task, completed=done),
            **options,
        )
    if as_json:
        click.echo(json.dumps(result.as_dict()))
        return
    used = result.training
    console = Console(highlight=False)
    console.print(
        f"{used.svm_type}, gamma {used.gamma:.6g}, trained by {used.trainer}, mode {options['mode']}", soft_wrap=True
    )
    if not console.is_terminal:
        console.width = max(console.width, 160)  # no line breaks in files and pipes
    console.print(fold_table(result.folds, result.total))


if __name__ == "__main__":
    sys.exit(main())

"""``approxsvm export``, which writes an artifact as source code or as an ONNX graph."""

from pathlib import Path
from typing import Any

import click

from approxsvm.cli.group import INPUT, OUTPUT, Command
from approxsvm.cli.inspect import open_artifact
from approxsvm.cli.options import RowsFormat, choice, rows_options
from approxsvm.errors import InputError
from approxsvm.system.output_files import write_whole


@click.command("export", cls=Command)
@click.argument("artifact", type=INPUT)
@click.option("--c", "c_header", type=OUTPUT, metavar="FILE", help="Write a C99 header for microcontrollers.")
@click.option(
    "--cpp", "cpp_header", type=OUTPUT, metavar="FILE", help="Write a C++17 header that contains the artifact."
)
@click.option(
    "--hpp",
    "library_header",
    type=OUTPUT,
    metavar="FILE",
    help="Write the headers of the C++ library to one file, which the header of --cpp then includes.",
)
@click.option("--onnx", "onnx_file", type=OUTPUT, metavar="FILE", help="Write an ONNX graph of standard operators.")
@click.option(
    "--name",
    default="model",
    show_default=True,
    help="Prefix of all names in the header of --c, and namespace in the header of --cpp.",
)
@choice(
    "--coefficients",
    "float32 int16 int8",
    "float32",
    "With --c: type of the coefficients. The bounds include the rounding to integers.",
)
@choice(
    "--inputs",
    "float32 int16 int8",
    "float32",
    "With --c: type of the rows. Integers need --data, which determines their range.",
)
@click.option(
    "--data",
    type=INPUT,
    help="With --inputs int16 or int8: sample rows similar to those to predict, as for convert-model.",
)
@click.option(
    "--fallback/--no-fallback",
    default=None,
    help="With --onnx: include the exact model for rows that the expansions do not certify. Default: the exact model "
    "is included if the size of the graph is then at most 256 MiB.",
)
@rows_options
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
    **options: Any,  # options of `export_c`
) -> None:
    """Export ARTIFACT to C, C++ or ONNX.

    The C99 header needs no library and no heap. It has no exact model as a fallback: NAME_predict returns the best
    label, and NAME_predict_if_certain returns -1 for rows whose label is not certified. The command prints how much
    memory and how many arithmetic operations the header needs. The C++ header contains the artifact as an array, for
    programs that cannot read files. The ONNX graph runs in any ONNX runtime. The graph's additional output `certain`
    shows which labels are certified.

    \b
    Example:
        approxsvm convert-model tumor.model -o tumor.asvm --mode approximate
        approxsvm export tumor.asvm --c tumor.h --name tumor
        approxsvm export tumor.asvm --cpp tumor.hpp --hpp approxsvm.hpp --name tumor
        approxsvm export tumor.asvm --onnx tumor.onnx
    """
    if all(file is None for file in (c_header, cpp_header, library_header, onnx_file)):
        raise InputError("nothing to write: give --c FILE, --cpp FILE, --hpp FILE or --onnx FILE")
    opened = open_artifact(artifact).artifact
    if c_header is not None:
        from approxsvm.backends.c99.header import export_c

        rows = None
        if data is not None:
            rows = rows_format.read_for(opened, data)
        cost = export_c(opened, c_header, X=rows, name=name, **options)
        click.echo(str(cost))
        if opened.mode == "certified" and opened.task != "regression":
            click.echo(f"{c_header}: {name}_predict_if_certain returns -1 for a row whose label is not certified")
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

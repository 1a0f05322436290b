"""``approxsvm gamma-max``, which prints the limit on gamma from the paper by Claesen et al."""

from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

import approxsvm
from approxsvm.cli.group import INPUT, Command
from approxsvm.cli.options import RowsFormat, dense_options
from approxsvm.errors import InputError


@click.command("gamma-max", cls=Command)
@click.argument("data", type=INPUT)
@click.argument("test_data", type=INPUT, required=False)
@click.option("--n-features", type=click.IntRange(min=1), help="Number of features, if no row uses the last ones.")
@dense_options
def gamma_max(data: Path, test_data: Path | None, n_features: int | None, rows_format: RowsFormat) -> None:
    """Print the largest gamma that the paper allows.

    DATA contains the training rows, and TEST_DATA the rows to predict (default: DATA).

    The limit in the paper's validity test is 1 / (4 max||x|| max||z||) for training rows x and test rows z (Claesen et
    al. 2014, Eq. 3.11). The command prints this limit for norms relative to the origin, as in the paper, and relative
    to the mean of DATA.

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

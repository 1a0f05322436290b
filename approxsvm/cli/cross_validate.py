"""``approxsvm cross-validate``: compare the exact and the compiled model by cross-validation."""

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console

import approxsvm
from approxsvm.analysis.folds import fold_table
from approxsvm.cli.group import INPUT, Command
from approxsvm.cli.options import RowsFormat, check_rows, choice, dense_options
from approxsvm.errors import InputError
from approxsvm.system.progress_bar import progress_bar


@click.command("cross-validate", cls=Command)
@click.argument("data", type=INPUT)
@choice("--svm-type", "c-svc nu-svc epsilon-svr nu-svr", "c-svc", "Type of the models to train, in LIBSVM's terms.")
@click.option(
    "-c",
    "--cost",
    type=click.FloatRange(min=0.0, min_open=True),
    default=1.0,
    show_default=True,
    help="C of c-svc, epsilon-svr and nu-svr.",
)
@click.option(
    "-g", "--gamma", type=click.FloatRange(min=0.0), help="gamma of the RBF kernel. Default: 1 / number of features."
)
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
@choice("--mode", "certified approximate exact", "certified", "See convert-model.")
@choice("--center", "mean origin", "mean", "See convert-model.")
@click.option("--tolerance", type=click.FloatRange(min=0.0, min_open=True), help="See convert-model.")
@choice("--effort", "low normal high", "normal", "See convert-model.")
@choice(
    "--trainer",
    "auto sklearn libsvm",
    "auto",
    "Library to train with; auto is LIBSVM if libsvm-official is installed, else scikit-learn.",
)
@click.option("--n-features", type=click.IntRange(min=1), help="Number of features, if no row uses the last ones.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@dense_options
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
    **options: Any,  # options of `cross_validate`
) -> None:
    """Compare exact and compiled models by folds.

    DATA holds labels and rows. Models are trained on each fold, compiled, and compared in a table with a line for each
    fold.

    \b
    Example:
        approxsvm cross-validate a9a -c 1 -g 0.01 --folds 5
    """
    if rows_format.is_dense(data):
        if not rows_format.labels:
            raise InputError("cross-validate needs labels: omit --no-labels")
        X, y = rows_format.read_dense(data, n_features)
    else:
        X, y = approxsvm.read_libsvm_data(data, n_features=n_features)
    X = check_rows(X, data)
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

"""``approxsvm cross-validate``, which compares exact and compiled models by cross-validation."""

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console

import approxsvm
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
    n_features: int | None,
    as_json: bool,
    rows_format: RowsFormat,
    **options: Any,  # options of `compile`
) -> None:
    """Compare exact and compiled models by cross-validation.

    DATA contains labels and rows. For each fold, a model is trained on the other folds and compiled; one line of a
    table compares both models on this fold.

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
    training = {"svm_type": svm_type, "C": cost, "gamma": gamma, "nu": nu, "epsilon": epsilon}
    for name, value in training.items():
        if isinstance(value, float) and not math.isfinite(value):  # LIBSVM would accept NaN and infinity
            raise InputError(f"{name} is {value}, but must be a finite number")
    training["gamma"] = 1.0 / X.shape[1] if gamma is None else gamma
    results, total = _compare_folds(X, np.asarray(y), training, folds, {**options, "random_state": seed})
    if as_json:
        figures = {"folds": [asdict(fold) for fold in results], "total": asdict(total), "training": training}
        click.echo(json.dumps(figures))
        return
    from approxsvm.analysis.folds import fold_table

    console = Console(highlight=False)
    console.print(f"{svm_type}, gamma {training['gamma']:.6g}, mode {options['mode']}", soft_wrap=True)
    if not console.is_terminal:
        console.width = max(console.width, 160)  # avoids line breaks in files and pipes
    console.print(fold_table(results, total))


def _compare_folds(X: Any, y: Any, training: dict[str, Any], n_folds: int, options: dict[str, Any]) -> tuple[Any, Any]:
    """Run scikit-learn's `cross_validate` with a compiling estimator; return figures for each fold and for all rows."""
    from sklearn.model_selection import KFold, StratifiedKFold
    from sklearn.model_selection import cross_validate as by_folds
    from sklearn.svm import SVC, SVR, NuSVC, NuSVR

    from approxsvm.analysis.folds import FoldAnswers  # imported here because the imports are slow

    if n_folds > X.shape[0]:
        raise InputError(f"{n_folds} folds of {X.shape[0]} rows: at least 2 folds with a row each are needed")
    C, gamma, nu, epsilon = (training[name] for name in ("C", "gamma", "nu", "epsilon"))
    estimator = {
        "c-svc": SVC(C=C, gamma=gamma),
        "nu-svc": NuSVC(nu=nu, gamma=gamma),
        "epsilon-svr": SVR(C=C, gamma=gamma, epsilon=epsilon),
        "nu-svr": NuSVR(C=C, gamma=gamma, nu=nu),
    }[training["svm_type"]]
    is_classifier = isinstance(estimator, (SVC, NuSVC))
    if is_classifier and y.dtype.kind == "f" and (y == np.rint(y)).all():
        y = y.astype(np.int64)
    compiling: Any = approxsvm.CompiledClassifier if is_classifier else approxsvm.CompiledRegressor
    splitter = StratifiedKFold if is_classifier else KFold
    answers: list[FoldAnswers] = []
    with progress_bar() as bar:
        task = bar.add_task("Folds", total=n_folds)

        def compare(fitted: Any, rows: Any, truth: Any) -> float:
            answers.append(FoldAnswers.of(fitted, rows, truth))
            bar.update(task, completed=len(answers))
            return float((answers[-1].compiled == truth).mean())

        folds = splitter(n_folds, shuffle=True, random_state=options["random_state"])
        by_folds(compiling(estimator, **options), X, y, cv=folds, scoring=compare, error_score="raise")
    results = [part.summary(len(y) - len(part.truth), is_classifier) for part in answers]
    n_train = round(sum(fold.n_train for fold in results) / n_folds)
    return results, FoldAnswers.joined(answers).summary(n_train, is_classifier)

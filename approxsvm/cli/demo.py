"""``approxsvm demo``, which trains, compiles and compares a pipeline with thousands of support vectors."""

from pathlib import Path

import click

import approxsvm
from approxsvm.cli.group import OUTPUT, Command


@click.command(cls=Command, short_help="Compile an SVC trained on generated rows; show its speed.")
@click.option("-o", "--output", "output", type=OUTPUT, help="Write the compiled model to this .asvm file.")
def demo(output: Path | None) -> None:
    """Train scikit-learn's SVC on generated rows, compile it, and compare the two models on other rows.

    The demo takes a few seconds.
    """
    from sklearn.datasets import make_classification  # imported here because the imports are slow
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    X, y = make_classification(12_000, 12, n_informative=4, n_redundant=8, flip_y=0.3, random_state=0)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    exact = make_pipeline(StandardScaler(), SVC()).fit(X, y)
    source = f"a StandardScaler and an SVC with {len(exact[-1].support_):,} support vectors"
    click.echo(f"Trained {source} on {len(X):,} rows of {X.shape[1]} features.")
    fast = approxsvm.compile(exact, X, effort="low")
    assert fast.compilation is not None
    report = fast.report(X_test, y_test, against=exact)
    click.echo(f"Compiled them in {fast.compilation.seconds:.1f} s.\n\n{report}\n")
    if output is not None:
        fast.save(output)
    click.echo("next: approxsvm convert-model YOUR_MODEL -o model.asvm --data YOUR_ROWS")
    if report.is_broken:
        raise click.exceptions.Exit(1)

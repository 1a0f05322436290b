"""``approxsvm sources``, which lists the models that can be compiled."""

from itertools import groupby
from typing import Final

import click

from approxsvm.cli.group import Command

_FILES: Final = "LIBSVM model, pickle or joblib file (--trust), skops file"
_ROLES: Final = (
    "kernel machine",
    "linear",
    "feature map",
    "step",
    "selector",
    "vectorizer",
    "pipeline",
    "wrapper",
    "search",
)


@click.command(cls=Command, short_help="List supported model files and scikit-learn estimators.")
def sources() -> None:
    """List the model files and estimator classes that can be compiled.

    The page docs/sources.md also lists conditions and remedies.
    """
    from approxsvm.frontends.formats import READERS  # imported here because the imports are slow
    from approxsvm.frontends.sklearn.known_types import KNOWN

    click.echo(f"files: {', '.join([_FILES, *(kind.split(' ', 1)[1] for kind in READERS)])}")
    for role, known in groupby(KNOWN, key=lambda one: one.role):
        names = [one.name + ("" if one.library == "sklearn" else f" of {one.library}") for one in known]
        if role.startswith(_ROLES):
            click.echo(f"{role}: {', '.join(name for name in dict.fromkeys(names) if not name.startswith('_'))}")
    click.echo("Estimators and steps are scikit-learn's, unless a library is named.")

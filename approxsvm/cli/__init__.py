"""The ``approxsvm`` command; the module of each subcommand only handles arguments and output."""

import click

from approxsvm.cli.convert_model import convert_model
from approxsvm.cli.cross_validate import cross_validate
from approxsvm.cli.demo import demo
from approxsvm.cli.export import export
from approxsvm.cli.gamma_max import gamma_max
from approxsvm.cli.group import Group
from approxsvm.cli.inspect import inspect
from approxsvm.cli.report import report
from approxsvm.cli.score import score
from approxsvm.cli.sources import sources
from approxsvm.cli.verify import verify


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="approxsvm", prog_name="approxsvm")
def main() -> None:
    """Compile trained support vector machines into small, fast predictors with the same labels.

    \b
    Example:
        approxsvm demo
        approxsvm convert-model a9a.model -o a9a.asvm --data a9a
        approxsvm report a9a.asvm --against a9a.model --data a9a.t
        approxsvm-predict a9a.t a9a.asvm labels.txt

    RBF kernels are approximated with a certified error bound. Linear kernels, and polynomial kernels of degree 1 to 6,
    are evaluated exactly.
    """


for command in (demo, sources, convert_model, inspect, report, verify, export, score, gamma_max, cross_validate):
    main.add_command(command)

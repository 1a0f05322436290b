"""``approxsvm inspect``, which shows the contents of an artifact."""

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from approxsvm.cli.group import INPUT, Command


@click.command(cls=Command)
@click.argument("artifact", type=INPUT)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: the facts, and the plan for --plan.")
def inspect(artifact: Path, as_json: bool) -> None:
    """Show the model, mode, size and plan of ARTIFACT.

    \b
    Example:
        approxsvm inspect a9a.asvm
    """
    from approxsvm.analysis.summary import summarize  # imported here because the module needs NumPy

    opened = open_artifact(artifact)
    summary = summarize(opened.artifact, opened.rows_per_stage, opened.exact_count)
    click.echo(_as_json(opened) if as_json else summary)


def _as_json(opened: Any) -> str:
    """Return the facts and the plan as JSON, with null for infinity, which JSON lacks."""
    from approxsvm.analysis.summary import summarize  # imported here because the module needs NumPy

    facts = asdict(summarize(opened.artifact, opened.rows_per_stage, opened.exact_count))
    numbers = {name: None if isinstance(x, float) and not math.isfinite(x) else x for name, x in facts.items()}
    plan = opened.artifact.build_plan
    numbers |= {"reason": numbers["plan"], "plan": None if plan is None else json.loads(plan.to_json())}
    return json.dumps(numbers, indent=2)


def open_artifact(path: Path) -> Any:
    """Open an artifact and evaluate its check rows as `load` does, but without scikit-learn."""
    from approxsvm.runtime.evaluator import Evaluator, read_artifact  # imported here because the module needs NumPy

    return Evaluator(read_artifact(path))

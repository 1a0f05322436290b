"""Steps in exported programs, a file for each kind: its `nodes` in ONNX graphs, its record `ON_DEVICE` in headers."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from approxsvm.errors import UnsupportedModelError
from approxsvm.ir.steps import Step


def exported(stage: Step, what: str, export: str) -> Any:
    """What the file of a step's kind has by that name.

    Raises
    ------
    UnsupportedModelError
        The export has no such steps.
    """
    name = f"{__name__}.{stage.kind}"
    found = getattr(import_module(name), what, None) if find_spec(name) else None
    if found is None:
        raise UnsupportedModelError(
            f"the {export} export has no step of kind {stage.kind}: apply that step in front, and compile and export "
            "what follows it"
        )
    return found

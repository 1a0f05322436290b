"""Export of ops: one file per kind, with a function `nodes` for ONNX and a record `ON_DEVICE` for C99 headers."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from approxsvm.errors import UnsupportedModelError
from approxsvm.ir.ops import Op


def exported(op: Op, what: str, export: str) -> Any:
    """Return the attribute `what` of the module for an op's kind; raise UnsupportedModelError if it is missing."""
    name = f"{__name__}.{op.kind}"
    found = getattr(import_module(name), what, None) if find_spec(name) else None
    if found is None:
        raise UnsupportedModelError(
            f"the {export} export does not support steps of kind {op.kind}: apply that step to the rows first, and "
            "compile and export the steps after it"
        )
    return found

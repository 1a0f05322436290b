"""Optional packages, imported on first use; the error for a missing package gives the command that installs it."""

import importlib
from typing import Any

from approxsvm.errors import MissingPackageError


def import_package(module: str, extra: str, purpose: str) -> Any:
    """Import a module of an optional package, which ``pip install 'approxsvm[extra]'`` installs.

    The message of the MissingPackageError begins with `purpose`.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingPackageError(
            f"{purpose} needs the package {package}, install it with pip install 'approxsvm[{extra}]': {error}"
        ) from None

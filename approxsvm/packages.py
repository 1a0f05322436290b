"""Packages that only some uses need: imported when used, and named with their install command when missing."""

from __future__ import annotations

import importlib
from typing import Any

from approxsvm.errors import MissingPackageError


def import_package(module: str, extra: str, purpose: str) -> Any:
    """Import a module of an optional package.

    Parameters
    ----------
    module : str
    extra : str
        Of approxsvm, which installs the package.
    purpose : str
        What needs it, in words that begin the message.

    Raises
    ------
    MissingPackageError
        It is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingPackageError(
            f"{purpose} needs the package {package}, install it with pip install 'approxsvm[{extra}]': {error}"
        ) from None

"""Estimators in files of skops, which says what types are in a file before anything is made of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from approxsvm.errors import ApproxSVMError, ModelFormatError, UnsupportedModelError
from approxsvm.packages import import_package

_SHOWN = 10


def load_skops(path: str | os.PathLike[str], trust: bool | Sequence[str]) -> Any:
    """The estimator in a file of skops.

    Parameters
    ----------
    path : str or path
    trust : bool or sequence of str
        Types to make objects of beyond those that skops trusts itself, by the names that the message of a refusal
        has; True for whatever the file names.

    Raises
    ------
    UnsupportedModelError
        The file names other types; the message has them all.
    ModelFormatError
        The file is broken.
    MissingPackageError
        skops is not installed.
    """
    io = import_package("skops.io", "skops", "reading files of skops")
    name = os.fspath(path)
    # A text is one name: `in` would take any part of it for a name.
    named = set() if isinstance(trust, bool) else {trust} if isinstance(trust, str) else set(trust)
    try:
        found = io.get_untrusted_types(file=name)
        allowed = found if trust is True else [kind for kind in found if kind in named]
        unknown = [kind for kind in found if kind not in allowed]
        if unknown:
            more = f" and {len(unknown) - _SHOWN} more" if len(unknown) > _SHOWN else ""
            raise UnsupportedModelError(
                f"{name}: skops does not trust {', '.join(unknown[:_SHOWN])}{more}, whose code may do anything; if you "
                "trust the file's author, say so (--trust, or read_model(path, trust=True), or trust=[...] with these "
                "names)"
            )
        return io.load(name, trusted=allowed)
    except (ApproxSVMError, OSError, MemoryError):
        raise
    except Exception as error:  # broken files make skops raise whatever there is
        raise ModelFormatError(f"{name}: not a readable skops file: {type(error).__name__}: {error}") from error

"""Estimators in files of skops, which says what types are in a file before anything is made of it."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from typing import Any

from approxsvm.errors import ApproxSVMError, ModelFormatError, UnsupportedModelError
from approxsvm.system.packages import import_package

_SHOWN = 10
# What a file may become in memory: this many bytes, or as many times its own.
_MOST_BYTES = 1 << 30
_MOST_TIMES = 100


def load_skops(path: str | os.PathLike[str], trust: bool | Sequence[str]) -> Any:
    """The estimator in a file of skops.

    `trust` names types to make objects of beyond those that skops trusts itself, as the message of a refusal has them;
    True for whatever the file names. Also refused is a file that would take more than a gigabyte, and a hundred times
    its own size.
    """
    io = import_package("skops.io", "skops", "reading files of skops")
    name = os.fspath(path)
    # A text is one name: `in` would take any part of it for a name.
    named = set() if isinstance(trust, bool) else {trust} if isinstance(trust, str) else set(trust)
    try:
        _check_size(name)
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


def _check_size(name: str) -> None:
    """Refuse an archive of zeros, say, before anything in it is read."""
    with zipfile.ZipFile(name) as archive:
        total = sum(member.file_size for member in archive.infolist())
    stored = os.path.getsize(name)
    if total > max(_MOST_BYTES, _MOST_TIMES * stored):
        raise UnsupportedModelError(
            f"{name}: {total:,} bytes in a file of {stored:,}; files of skops are read up to {_MOST_BYTES:,} bytes, or "
            f"{_MOST_TIMES} times their own"
        )

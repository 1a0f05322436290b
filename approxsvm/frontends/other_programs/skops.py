"""Loader of estimators from skops files, whose types can be listed before any object is created."""

import os
import zipfile
from collections.abc import Sequence
from typing import Any

from approxsvm.errors import ApproxSVMError, ModelFormatError, UnsupportedModelError
from approxsvm.system.packages import import_package

_SHOWN = 10
# The maximum size in memory is the larger of `_MOST_BYTES` and `_MOST_TIMES` times the file's size.
_MOST_BYTES = 1 << 30
_MOST_TIMES = 100


def load_skops(path: str | os.PathLike[str], trust: bool | Sequence[str]) -> Any:
    """Load the estimator from a skops file.

    `trust` lists the names of types, as in the error message, to trust in addition to those that skops trusts; True
    means all types in the file. A file is also rejected if its contents exceed a gigabyte and are more than 100 times
    as large as the file.
    """
    io = import_package("skops.io", "skops", "reading files of skops")
    name = os.fspath(path)
    # A string is a single name; without the set, `in` would match any substring.
    trusted_names = set() if isinstance(trust, bool) else {trust} if isinstance(trust, str) else set(trust)
    try:
        _check_size(name)
        untrusted = io.get_untrusted_types(file=name)
        allowed = untrusted if trust is True else [kind for kind in untrusted if kind in trusted_names]
        unknown = [kind for kind in untrusted if kind not in allowed]
        if unknown:
            more = f" and {len(unknown) - _SHOWN} more" if len(unknown) > _SHOWN else ""
            raise UnsupportedModelError(
                f"{name}: skops does not trust {', '.join(unknown[:_SHOWN])}{more}, whose code may do anything; if you "
                f"trust the file's author, pass skops.io.load({name!r}, trusted=skops.io.get_untrusted_types("
                f"file={name!r}))"
            )
        return io.load(name, trusted=allowed)
    except (ApproxSVMError, OSError, MemoryError):
        raise
    except Exception as error:  # skops raises various exceptions for damaged files
        raise ModelFormatError(f"{name}: not a readable skops file: {type(error).__name__}: {error}") from error


def _check_size(name: str) -> None:
    """Reject an archive whose contents would be too large (for example, only zeros) before they are read."""
    with zipfile.ZipFile(name) as archive:
        total = sum(member.file_size for member in archive.infolist())
    stored = os.path.getsize(name)
    if total > max(_MOST_BYTES, _MOST_TIMES * stored):
        raise UnsupportedModelError(
            f"{name}: {total:,} bytes in a file of {stored:,}; skops files are read up to {_MOST_BYTES:,} bytes, or "
            f"{_MOST_TIMES} times their size"
        )

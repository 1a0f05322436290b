"""Import the installed package even if Python was started in the source folder and found the sources first."""

from __future__ import annotations

import warnings
from filecmp import cmpfiles
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path


def installed_folder(path: str) -> str:
    """Return the folder of the installed package, which contains the compiled module missing from `path`.

    All modules are imported from that folder, so versions never mix. If the sources differ, a warning is issued.
    """
    sources = Path(path)
    try:
        folder = Path(str(distribution("approxsvm").locate_file("approxsvm")))
    except PackageNotFoundError:
        folder = sources
    if folder.resolve() == sources.resolve() or not _has_native(folder):
        raise ImportError(
            f"{sources} holds the sources of approxsvm, and its compiled part is not installed: "
            f"pip install {sources.parent}"
        )
    names = [str(path.relative_to(sources)) for path in sources.rglob("*.py")]
    same, _, _ = cmpfiles(sources, folder, names, shallow=False)
    if len(same) < len(names):
        warnings.warn(
            f"the sources of approxsvm in {sources} differ from the installed package, which is what runs "
            f"({folder}); to run them: pip install {sources.parent}",
            stacklevel=3,
        )
    return str(folder)


def _has_native(folder: Path) -> bool:
    return any((folder / f"_native{suffix}").exists() for suffix in EXTENSION_SUFFIXES)

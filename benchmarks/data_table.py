"""Table of data sets and models, data_sets.json: contents, location and hash of each file."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import lzma
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

import approxsvm

_OPENERS: Final[Mapping[str, Callable[[Path, Any], Any]]] = {".bz2": bz2.open, ".xz": lzma.open, ".gz": gzip.open}


@dataclass(frozen=True)
class Entry:
    """One file in the table; `about` is its entry in data_sets.json."""

    folder: str
    about: Mapping[str, Any]

    @property
    def name(self) -> str:
        """File name without the compression suffix."""
        return str(self.about["file"]).rpartition(".")[0]

    def path(self, root: Path) -> Path:
        """Return the file's path."""
        return root / self.folder / str(self.about["file"])

    def write(self, root: Path, content: bytes) -> None:
        """Compress and write the file atomically."""
        path = self.path(root)
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f"{path.name}.unfinished")
        preset = {"preset": 1} if path.suffix == ".xz" else {"compresslevel": 6}
        with _OPENERS[path.suffix](unfinished, "wb", **preset) as file:
            file.write(content)
        unfinished.replace(path)

    def is_ours(self, content: bytes) -> bool:
        """Return whether these are the table's bytes, or at least its numbers."""
        if hashlib.sha256(content).hexdigest() == self.about["sha256"]:
            return True
        return "numbers" in self.about and hash_of_numbers(content) == self.about["numbers"]


def entries() -> dict[str, Entry]:
    """Return all files by name."""
    table = json.loads(Path(__file__).with_name("data_sets.json").read_text(encoding="utf-8"))
    listed = [Entry(folder, about) for folder in ("data", "models") for about in table[folder]]
    return {entry.name: entry for entry in listed}


def hash_of_numbers(text: bytes) -> str:
    with tempfile.NamedTemporaryFile() as file:
        file.write(text)
        file.flush()
        X, y = approxsvm.read_libsvm_data(file.name)
    X.sum_duplicates()
    X.eliminate_zeros()
    parts = ((X.indptr, "<i8"), (X.indices, "<i8"), (X.data, "<f8"), (y, "<f8"))
    return hashlib.sha256(b"".join(np.ascontiguousarray(a, dtype=kind).tobytes() for a, kind in parts)).hexdigest()

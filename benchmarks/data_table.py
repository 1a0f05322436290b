"""The table of data sets and models, data_sets.json: what each file is, where it belongs, whether bytes are it."""

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
    """One file of the table; `about` is what data_sets.json says of it."""

    folder: str
    about: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Without the suffix of its compression."""
        return str(self.about["file"]).rpartition(".")[0]

    def path(self, root: Path) -> Path:
        """Where it belongs."""
        return root / self.folder / str(self.about["file"])

    def write(self, root: Path, content: bytes) -> None:
        """Compress it; whoever looks finds all of it or nothing."""
        path = self.path(root)
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f"{path.name}.unfinished")
        preset = {"preset": 1} if path.suffix == ".xz" else {"compresslevel": 6}
        with _OPENERS[path.suffix](unfinished, "wb", **preset) as file:
            file.write(content)
        unfinished.replace(path)

    def is_ours(self, content: bytes) -> bool:
        """Whether these are the bytes of the table, or the numbers."""
        if hashlib.sha256(content).hexdigest() == self.about["sha256"]:
            return True
        return "numbers" in self.about and hash_of_numbers(content) == self.about["numbers"]


def entries() -> dict[str, Entry]:
    """All files by their names."""
    table = json.loads(Path(__file__).with_name("data_sets.json").read_text(encoding="utf-8"))
    found = [Entry(folder, about) for folder in ("data", "models") for about in table[folder]]
    return {entry.name: entry for entry in found}


def hash_of_numbers(text: bytes) -> str:
    with tempfile.NamedTemporaryFile() as file:
        file.write(text)
        file.flush()
        X, y = approxsvm.read_libsvm_data(file.name)
    X.sum_duplicates()
    X.eliminate_zeros()
    parts = ((X.indptr, "<i8"), (X.indices, "<i8"), (X.data, "<f8"), (y, "<f8"))
    return hashlib.sha256(b"".join(np.ascontiguousarray(a, dtype=kind).tobytes() for a, kind in parts)).hexdigest()

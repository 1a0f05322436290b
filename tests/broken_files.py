"""Model files with bytes removed or replaced."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.frontends import read_any


def changed_everywhere(content: bytes, path: Path, n_changes: int = 150) -> None:
    """Assert that every changed file yields either a model or one of our errors."""
    draw = random.Random(0)
    for k in range(n_changes):
        changed = bytearray(content)
        if k % 3 == 0:
            del changed[draw.randrange(len(changed)) :]
        else:
            for _ in range(1 + k % 4):
                changed[draw.randrange(len(changed))] = draw.randrange(256)
        path.write_bytes(bytes(changed))
        found: Any
        try:
            found = read_any(path)
        except (ModelFormatError, UnsupportedModelError) as error:
            found = str(error)
        assert str(path) in found if isinstance(found, str) else found.n_raw_features >= 1

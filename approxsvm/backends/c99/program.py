"""C that exported headers share with the core: the files of cpp/include/approxsvm/program."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

from approxsvm.system.installed_headers import get_include

# What the core replaces by its own.
_MACROS: Final = {
    "APPROXSVM_PROGRAM ": "static inline ",
    "APPROXSVM_ROOT(": "approxsvm_root(",
    "APPROXSVM_PRODUCT(": "approxsvm_product(",
}


def program_text(files: Iterable[str]) -> Iterator[str]:
    """Return the text of files and of all that they include, each once and in order, with marks as in source.py."""
    seen: dict[str, None] = {}
    for name in files:
        seen |= dict.fromkeys(_with_included(name))
    for name in seen:
        text = re.sub(r"#ifndef APPROXSVM_\w+.*?#endif\n", "", _read(name), flags=re.DOTALL)
        text = re.sub(r'#(pragma once|include "\w+\.h")\n', "", text)
        for macro, own in _MACROS.items():
            text = text.replace(macro, own)
        yield text


def _with_included(name: str) -> Iterator[str]:
    for other in re.findall(r'#include "(\w+\.h)"', _read(name)):
        yield from _with_included(other)
    yield name


@cache
def _read(name: str) -> str:
    return Path(get_include(), "approxsvm", "program", name).read_text(encoding="utf-8")

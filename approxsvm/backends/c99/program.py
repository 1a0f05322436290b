"""The C of exported headers: cpp/include/approxsvm/program, which the core shares, and cpp/include/approxsvm/exported.

The latter has a part for each thing that a model may need, in which `model` stands for the name of its header.
"""

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


def model_text(file: str, part: str) -> str:
    """Return a part of cpp/include/approxsvm/exported, with marks as in source.py."""
    found = re.search(rf"^#ifdef MODEL_{part}\n(.*?)^#endif\n", _read(file, "exported"), re.DOTALL | re.MULTILINE)
    assert found, f"{file} has no {part}"
    return re.sub(r"\bmodel_(\w+)", _marked, found[1])


def _marked(name: re.Match[str]) -> str:
    """Return `@name` of a public name, `@name@@` of another, and `@NAME@` of a type."""
    if name[1].isupper():
        return f"@{name[1]}@"
    return f"@{name[1][:-1]}@@" if name[1].endswith("_") else f"@{name[1]}"


def _with_included(name: str) -> Iterator[str]:
    for other in re.findall(r'#include "(\w+\.h)"', _read(name)):
        yield from _with_included(other)
    yield name


@cache
def _read(name: str, folder: str = "program") -> str:
    return Path(get_include(), "approxsvm", folder, name).read_text(encoding="utf-8")

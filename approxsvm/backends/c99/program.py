"""C code of exported headers: cpp/include/approxsvm/program, shared with the core, and cpp/include/approxsvm/exported.

The latter has one part per feature of a model; in its names, `model` is a placeholder for the name of the header.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

from approxsvm.system.installed_headers import get_include

# Macros that the core defines differently.
_MACROS: Final = {
    "APPROXSVM_PROGRAM ": "static inline ",
    "APPROXSVM_ROOT(": "approxsvm_root(",
    "APPROXSVM_PRODUCT(": "approxsvm_product(",
}


def program_text(files: Iterable[str]) -> Iterator[str]:
    """Return the text of files and their includes, each once and in order, with the placeholders of source.py."""
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
    """Return a part of cpp/include/approxsvm/exported, with the placeholders of source.py."""
    found = re.search(rf"^#ifdef MODEL_{part}\n(.*?)^#endif\n", _read(file, "exported"), re.DOTALL | re.MULTILINE)
    assert found, f"{file} has no {part}"
    return re.sub(r"\bmodel_(\w+)", _marked, found[1])


def _marked(name: re.Match[str]) -> str:
    """Return `@name` for a public name, `@name@@` for an internal one, and `@NAME@` for a type."""
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

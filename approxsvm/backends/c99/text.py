"""C code of exported headers, from the files in cpp/include/approxsvm/exported and the files that they include.

The files are valid C99 when preceded by a model's macros and arrays, which have names like `model_x`. A header contains
the text of the files except for components that the model lacks. All names contain the header's name so that a program
can include several headers. Macros that select components are integers; undefined ones count as 0.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from approxsvm.backends.c99.source import with_decimals
from approxsvm.system.installed_headers import get_include

_COMMENTS: Final = re.compile(r"/\*.*?\*/", re.DOTALL)
_CONDITION: Final = re.compile(r"#(if|ifdef|ifndef|elif|else|endif)\b(.*)")
_GUARD: Final = re.compile(r"^#ifndef (APPROXSVM_\w+_H)\n#define \1\n(.*)\n#endif\n$", re.DOTALL | re.MULTILINE)
_INCLUDE: Final = re.compile(r'#include "(.*)"')
# Macros that headers define differently from the core, each with its definition in a header.
_MACROS: Final = re.compile(r"#ifndef (APPROXSVM_\w+).*\n#define \1 (.*)\n#endif\n")


class Text:
    """Text of one header, in which files with include guards occur once."""

    def __init__(self, name: str) -> None:
        self._name, self._included = name, set[Path]()

    def of(self, file: str, prefix: str, numbers: Mapping[str, int | str]) -> str:
        """Return the text of a file for a model with the given prefix and macros."""
        lines = self._lines(Path(get_include(), "approxsvm", "exported", file).resolve(), numbers)
        return self.named(re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n") + "\n", prefix)

    def named(self, text: str, prefix: str) -> str:
        """Return `text` with the header's name, or a model's prefix, in all names."""
        # Replace all names in one pass, because a replacement may itself begin with model_
        ours = re.compile(r"\b(?:(?:approxsvm|APPROXSVM)_(\w+)|model_(?=\w))")
        return with_decimals(ours.sub(lambda name: f"{self._name}_{name[1]}_" if name[1] else f"{prefix}_", text))

    def _lines(self, path: Path, numbers: Mapping[str, int | str]) -> Iterator[str]:
        """Yield the lines of a file and of the files that it includes, without the components that the model lacks."""
        text, is_guarded = _file(path)
        if is_guarded and path in self._included:
            return
        self._included.add(path)
        blocks: list[tuple[bool, bool, bool]] = []  # depends on the model, some branch has held, this one holds
        for line in text.splitlines():
            word, condition = found.groups() if (found := _CONDITION.match(line)) else ("", "")
            is_ours = "model_" in condition if word == "if" else bool(word and blocks and blocks[-1][0])
            if word.startswith("if"):
                holds = not is_ours or _holds(condition, numbers)
                blocks.append((is_ours, holds, holds))
            elif word and is_ours:
                _, held, _ = blocks.pop()
                holds = not held and (word == "else" or (word == "elif" and _holds(condition, numbers)))
                if word != "endif":
                    blocks.append((True, held or holds, holds))
            elif word == "endif":
                blocks.pop()
            if is_ours or not all(holds for _, _, holds in blocks):
                continue
            if included := _INCLUDE.match(line):
                yield from self._lines((path.parent / included[1]).resolve(), numbers)
            else:
                yield line


def used(text: str, prefix: str) -> set[str]:
    """Return the names that begin with this prefix and occur in a text outside comments, without the prefix."""
    return set(re.findall(rf"\b{prefix}_(\w+)", _COMMENTS.sub("", text)))


def has_function(kind: str) -> bool:
    """Return whether the core has a C function for probabilities of this kind."""
    text, _ = _file(Path(get_include(), "approxsvm", "program", "probabilities.h").resolve())
    return f" approxsvm_{kind}(" in text


def _holds(condition: str, numbers: Mapping[str, int | str]) -> bool:
    condition = re.sub(r"\bmodel_(\w+)", lambda name: str(numbers.get(name[1], 0)), _COMMENTS.sub("", condition))
    condition = re.sub(r"!(?!=)", " not ", condition.replace("&&", " and ").replace("||", " or "))
    return bool(eval(condition, {"__builtins__": {}}))  # conditions come only from our own files


@cache
def _file(path: Path) -> tuple[str, bool]:
    """Return the text of a file without its include guard, and whether it has one."""
    text = path.read_text(encoding="utf-8")
    inner, is_guarded = _GUARD.subn(r"\2", text)
    for macro, definition in _macros().items():
        inner = re.sub(rf"\b{macro}\b", definition, _MACROS.sub("", inner))
    if path.parent.name == "exported":
        inner = re.sub(r"\A/\*.*?\*/\s", "", inner, flags=re.DOTALL)  # removes the comment about the macros of models
    return inner, bool(is_guarded)


@cache
def _macros() -> dict[str, str]:
    files = Path(get_include(), "approxsvm").glob("program/**/*.h")
    return dict(_MACROS.findall("".join(path.read_text(encoding="utf-8") for path in files)))

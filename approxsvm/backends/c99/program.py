"""C code of exported headers: cpp/include/approxsvm/program, shared with the core, and cpp/include/approxsvm/exported.

Of the former, a header contains what it needs. The latter has one part per feature of a model; in its names, `model` is
a placeholder for the name of the header.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from approxsvm.system.installed_headers import get_include

_NAMES: Final = re.compile(r"\b(?:approxsvm|APPROXSVM)_\w+")
_COMMENTS: Final = re.compile(r"/\*.*?\*/", re.DOTALL)
_GUARD: Final = re.compile(r"^#ifndef (APPROXSVM_\w+_H)\n#define \1\n(.*)\n#endif\n$", re.DOTALL | re.MULTILINE)
# Macros that the core defines differently, and their definitions in headers.
_MACROS: Final = re.compile(r"#ifndef (APPROXSVM_\w+).*\n#define \1 (.*)\n#endif\n")


class _Paragraph(NamedTuple):
    text: str
    names: frozenset[str]
    title: int  # paragraph that opens the file


def program_text(text: str, parameters: Mapping[str, int]) -> Iterator[str]:
    """Yield the definitions of all names that a text uses, and of all names used by these, in order.

    Parameters of outputs with the same value everywhere replace fields of `approxsvm_outputs`.
    """
    paragraphs, defined = _program()
    needed: set[int] = set()
    names = _names(text)
    while names:
        place = defined.get(names.pop())
        if place is not None and place not in needed:
            needed |= {place, paragraphs[place].title}
            names |= paragraphs[place].names
    for k in sorted(needed):
        yield re.sub(r"\bo->(\w+)", lambda field: str(parameters.get(field[1], field[0])), paragraphs[k].text)


def is_shared(name: str) -> bool:
    """Return whether the C code shared with the core defines a name."""
    return name in _program()[1]


def model_text(name: str) -> str:
    """Return a part of cpp/include/approxsvm/exported, with placeholders as in source.py."""
    return re.sub(r"\bmodel_(\w+)", _marked, _parts()[name])


def filled(name: str, **fields: str | Sequence[str]) -> str:
    """Return a part with an expression for each `model_FIELD`, or statements for each line `model_FIELD;`."""
    text = model_text(name)
    for field, content in fields.items():
        mark = f"@{field.upper()}@"
        if isinstance(content, str):
            text = text.replace(mark, content)
        else:
            lines = [rf"\g<1>{line}" + "\n" for line in content]
            text = re.sub(rf"^( *){mark};\n", "".join(lines), text, flags=re.MULTILINE)
    return text


def preamble() -> str:
    """Return the top of a header: includes, and the arithmetic that it needs."""
    return Path(get_include(), "approxsvm", "exported", "preamble.h").read_text(encoding="utf-8")


def _marked(name: re.Match[str]) -> str:
    """Return `@name` for a public name, `@name@@` for an internal one, and `@NAME@` for a type."""
    if name[1].isupper():
        return f"@{name[1]}@"
    return f"@{name[1][:-1]}@@" if name[1].endswith("_") else f"@{name[1]}"


def _names(text: str) -> set[str]:
    return set(_NAMES.findall(_COMMENTS.sub("", text)))


@cache
def _parts() -> dict[str, str]:
    texts = "".join(path.read_text(encoding="utf-8") for path in _files("exported"))
    return dict(re.findall(r"^#ifdef MODEL_(\w+)\n(.*?)^#endif\n", texts, re.DOTALL | re.MULTILINE))


@cache
def _program() -> tuple[list[_Paragraph], dict[str, int]]:
    """Return the paragraphs of all files, those that are included first, and the place that defines each name."""
    texts = {path.name: _GUARD.sub(r"\2", path.read_text(encoding="utf-8")) for path in _files("program")}
    macros = dict(_MACROS.findall("".join(texts.values())))
    paragraphs: list[_Paragraph] = []
    defined: dict[str, int] = {}
    for file in dict.fromkeys(included for name in texts for included in _with_included(name, texts)):
        text = re.sub(r'#include "\w+\.h"\n', "", _MACROS.sub("", texts[file]))
        text = _NAMES.sub(lambda name: macros.get(name[0], name[0]), text)
        title = len(paragraphs)
        for paragraph in re.split(r"\n\n(?=\S)", text.strip()):
            names = _names(paragraph)
            for name in names:
                defined.setdefault(name, len(paragraphs))
            paragraphs.append(_Paragraph(paragraph + "\n", frozenset(names), title))
    return paragraphs, defined


def _with_included(name: str, texts: dict[str, str]) -> Iterator[str]:
    for other in re.findall(r'#include "(\w+\.h)"', texts[name]):
        yield from _with_included(other, texts)
    yield name


def _files(folder: str) -> Iterable[Path]:
    return sorted(Path(get_include(), "approxsvm", folder).glob("*.h"))

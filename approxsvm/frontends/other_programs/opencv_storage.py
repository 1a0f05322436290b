"""Parser from OpenCV's FileStorage files (XML, JSON, and its subset of YAML) to dicts, lists and strings.

Numbers remain strings until a frontend requests them by name from `Fields`.
"""

import codecs
import json
import re
import zlib
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from approxsvm.errors import ModelFormatError
from approxsvm.frontends.other_programs.markup import Element, parse_xml
from approxsvm.frontends.plain_numbers import plain_float
from approxsvm.ir.compensated import FloatArray

_DEEPEST: Final = 100
_MOST_TIMES_GZIP: Final = 100  # maximum compression ratio; gzip compresses decimal text only to about a third
_FLOW_TOKEN: Final = re.compile(r'[\[\]{},]|"(?:\\.|[^"\\])*(?:"|$)|[^\s\[\]{},"][^\[\]{},"]*')
_KEY: Final = re.compile(r'("[^"]*"|[^\s:\[\]{},"#][^:]*):(?=\s|$|[\[{"])\s*')
_TAG: Final = re.compile(r"!!?\S*\s*")


def gunzipped(content: bytes, name: str) -> bytes:
    """Decompress a gzip file.

    Raises ModelFormatError if the file is damaged, or its contents are more than 100 times as large as the file.
    """
    limit = _MOST_TIMES_GZIP * len(content)
    stream = zlib.decompressobj(wbits=31)
    try:
        plain = stream.decompress(content, limit)
    except zlib.error as error:
        raise ModelFormatError(f"{name}: broken gzip: {error}") from None
    if not stream.eof:
        why = f"it holds more than {limit:,} bytes" if stream.unconsumed_tail else "it ends early"
        raise ModelFormatError(f"{name}: broken gzip: {why}")
    return plain


def parse_storage(content: bytes, name: str) -> Any:
    """Parse the contents of a FileStorage file and return its root.

    Raises ModelFormatError if the text is malformed.
    """
    content = content.removeprefix(codecs.BOM_UTF8)
    text = content.lstrip()
    if text.startswith(b"<"):
        return _from_element(parse_xml(text, name), name)
    if text.startswith(b"{"):
        try:
            return json.loads(text, object_pairs_hook=lambda pairs: _distinct(pairs, name))
        except ModelFormatError:
            raise
        except (ValueError, RecursionError) as error:
            raise ModelFormatError(f"{name}: not well-formed JSON: {error}") from None
    return _Yaml(content.decode("utf-8", "replace"), name).parse()


def _distinct(pairs: list[tuple[str, Any]], where: str) -> dict[str, Any]:
    """Return a dict of fields; reject duplicate names, because OpenCV uses the first and other readers use the last."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in fields if names.count(name) > 1)
        raise ModelFormatError(f"{where}: the field {twice} occurs twice")
    return fields


def _from_element(element: Element, name: str) -> Any:
    if not element.children:
        tokens = element.text.split()
        return tokens[0] if len(tokens) == 1 else tokens
    if all(child.name == "_" for child in element.children):
        return [_from_element(child, name) for child in element.children]
    pairs = [(child.name, _from_element(child, name)) for child in element.children]
    return _distinct(pairs, f"{name}, line {element.line}")


@dataclass(frozen=True)
class Fields:
    """Mapping in a FileStorage file, with access to its fields by name and type; `where` appears in error messages."""

    values: dict[str, Any]
    where: str

    @classmethod
    def of(cls, value: Any, where: str) -> "Fields":
        """Return a value as fields; it must be a mapping."""
        if not isinstance(value, dict):
            raise ModelFormatError(f"{where}: expected a mapping of fields, got {_describe(value)}")
        return cls(value, where)

    def text(self, *names: str) -> str:
        """Return the text of the first existing field among `names`."""
        value = self._get(*names)
        if isinstance(value, (dict, list)):
            raise ModelFormatError(f"{self.where}.{names[0]}: expected a text, got {_describe(value)}")
        return str(value).strip('"')

    def number(self, name: str) -> float:
        """Return one finite number."""
        return float(self.numbers(name, 1)[0])

    def count(self, name: str) -> int:
        """Return a nonnegative integer."""
        value = self.number(name)
        if value != int(value) or not 0 <= value < 2**31:
            raise ModelFormatError(f"{self.where}.{name}: expected a whole number of at least 0, got {value:g}")
        return int(value)

    def numbers(self, name: str, n: int) -> FloatArray:
        """Return `n` finite numbers."""
        return as_numbers(self._get(name), n, f"{self.where}.{name}")

    def items(self, name: str) -> list[Any]:
        """Return the items of a list."""
        value = self._get(name)
        if not isinstance(value, list):
            raise ModelFormatError(f"{self.where}.{name}: expected a list, got {_describe(value)}")
        return value

    def inner(self, name: str) -> "Fields":
        """Return an inner mapping."""
        return Fields.of(self._get(name), f"{self.where}.{name}")

    def _get(self, *names: str) -> Any:
        for name in names:
            if name in self.values:
                return self.values[name]
        raise ModelFormatError(f"{self.where}: there is no {names[0]}")


def as_numbers(value: Any, n: int, where: str) -> FloatArray:
    """Convert a list to `n` finite numbers; if `n` is 1, the number itself is also accepted."""
    items = value if isinstance(value, list) else [value]
    if len(items) != n:
        raise ModelFormatError(f"{where}: {len(items)} numbers, expected {n}")
    try:
        numbers = np.array([plain_float(item) for item in items])
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelFormatError(f"{where}: not a number: {str(error)[:100]}") from None
    if not np.isfinite(numbers).all():
        raise ModelFormatError(f"{where}: holds NaN or infinity")
    return numbers


def _describe(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list) else repr(value)[:60]


class _Yaml:
    """Parser for YAML with indented mappings and sequences, flow collections in brackets, and scalars; skips tags."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self.lines: list[tuple[int, int, str]] = []
        for number, line in enumerate(text.splitlines(), 1):
            content = line.strip()
            if content and not content.startswith(("%", "#")) and content not in ("---", "..."):
                self.lines.append((number, len(line) - len(line.lstrip()), content))
        self.at = 0

    def parse(self) -> Any:
        if not self.lines:
            raise ModelFormatError(f"{self.name}: this YAML file is empty")
        value = self._block(self.lines[0][1], 0)
        if self.at < len(self.lines):
            raise self._error("this line is indented less than its parent")
        return value

    def _error(self, what: str) -> ModelFormatError:
        number = self.lines[min(self.at, len(self.lines) - 1)][0]
        return ModelFormatError(f"{self.name}, line {number}: {what}")

    def _block(self, indent: int, depth: int) -> Any:
        if depth > _DEEPEST:
            raise self._error(f"nested more than {_DEEPEST} deep")
        is_list = self._is_item(self.lines[self.at][2])
        collection: Any = [] if is_list else {}
        while self.at < len(self.lines) and self.lines[self.at][1] == indent:
            number, _, content = self.lines[self.at]
            if self._is_item(content) != is_list:
                raise self._error("a list item among fields, or a field among list items")
            if is_list:
                rest = content[1:].lstrip()
                if _KEY.match(rest) and rest[:1] not in '[{"':  # a mapping that begins on its list item's line
                    inner = indent + len(content) - len(rest)
                    self.lines[self.at] = (number, inner, rest)
                    collection.append(self._block(inner, depth + 1))
                    continue
                collection.append(self._value(rest, indent, depth))
                continue
            key = _KEY.match(content)
            if key is None:
                raise self._error(f"expected a field, got {content[:40]!r}")
            name = key[1].strip('"')
            if name in collection:
                raise self._error(f"the field {name} occurs twice")
            collection[name] = self._value(content[key.end() :], indent, depth)
        if self.at < len(self.lines) and self.lines[self.at][1] > indent:
            raise self._error("this line is indented more than its siblings")
        return collection

    @staticmethod
    def _is_item(content: str) -> bool:
        return content == "-" or content.startswith("- ")

    def _value(self, rest: str, indent: int, depth: int) -> Any:
        tag = _TAG.match(rest)
        rest = rest if tag is None else rest[tag.end() :]
        if rest[:1] in ("[", "{"):
            return self._flow(rest)
        self.at += 1
        if rest:
            return rest.strip('"')
        if self.at < len(self.lines) and self.lines[self.at][1] > indent:
            return self._block(self.lines[self.at][1], depth + 1)
        return ""

    def _flow(self, rest: str) -> Any:
        """Parse a bracketed list or mapping, which may span several lines."""
        root: list[Any] = []
        stack: list[tuple[Any, str]] = [(root, "")]  # unclosed collections, with their closing brackets
        keys: list[str] = [""]
        while True:
            for token in _FLOW_TOKEN.findall(rest):
                if token in ("[", "{"):
                    opened: Any = [] if token == "[" else {}
                    self._put(stack[-1][0], keys, opened)
                    stack.append((opened, "]" if token == "[" else "}"))
                    keys.append("")
                    if len(stack) > _DEEPEST:
                        raise self._error(f"nested more than {_DEEPEST} deep")
                elif token in ("]", "}"):
                    if token != stack[-1][1]:
                        raise self._error(f"{token!r} closes nothing")
                    stack.pop()
                    keys.pop()
                elif token != ",":
                    if len(stack) == 1:
                        raise self._error(f"{token.strip()[:40]!r} after a list in brackets")
                    self._scalar(stack[-1][0], keys, token.strip())
            self.at += 1
            if len(stack) == 1:
                return root[0]
            if self.at == len(self.lines):
                raise self._error(f"the file ends before {stack[-1][1]!r}")
            rest = self.lines[self.at][2]

    def _scalar(self, into: Any, keys: list[str], token: str) -> None:
        if isinstance(into, list):
            into.append(token.strip('"'))
            return
        name, colon, value = token.partition(":")
        if not colon and keys[-1]:  # a quoted string that follows a key
            self._put(into, keys, token.strip('"'))
        elif not colon:
            raise self._error(f"expected a field, got {token[:40]!r}")
        elif value.strip():
            into[name.strip()] = value.strip()
        else:
            keys[-1] = name.strip()

    def _put(self, into: Any, keys: list[str], value: Any) -> None:
        if isinstance(into, list):
            into.append(value)
            return
        if not keys[-1]:
            raise self._error("a list in brackets without the name of its field")
        into[keys[-1]], keys[-1] = value, ""

"""Rules for English in docstrings and comments of the package, and in comments of the C and C++ sources."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import REPOSITORY

pytestmark = pytest.mark.lint

FILES = sorted((REPOSITORY / "approxsvm").rglob("*.py"))
FIRST = re.compile(r"(Of|What|That|Those|The same|Where|As|Who|Which|How)\b")
IMPERATIVE = re.compile(r"(?:[A-Z][a-z-]*(?<!s)|Compress|Decompress|Express|Pass|Process)\b")
NOUNS = re.compile(r"(The|A|An|All|Any|Each|Every|Whether|Number|Position|Name|Value|Rows?|One)\b")
PHRASES = re.compile(
    r"\b(beside|behind|in front of|there is none|that of|of (its|their) own|stands?(?! for\b)|such a(?= \w+ of))\b"
    r"|\b(door|house|room|committee|judge|judgement)s?\b",
    re.IGNORECASE,
)
PROPERTIES = {"property", "cached_property"}
SOURCES = sorted(
    path
    for path in (REPOSITORY / "cpp").rglob("*")
    if path.suffix in {".hpp", ".cpp", ".h", ".c", ".inc"} and "tests" not in path.parts
)
C_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
C_PHRASES = re.compile(
    r"\b(beside|behind|in front of|stands?(?! for\b)|doors?|house|committees?|judges?|somebody|nobody|whoever)\b",
    re.IGNORECASE,
)


def docstrings(path: Path) -> Iterator[tuple[int, bool, str]]:
    """Yield each docstring's line, whether it needs an imperative, and its text."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and (text := ast.get_docstring(node)):
            decorators = {getattr(one, "id", "") for one in getattr(node, "decorator_list", ())}
            is_function = isinstance(node, ast.FunctionDef) and not decorators & PROPERTIES
            yield node.body[0].lineno, is_function, text


def comments(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each comment's line and text."""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_docstrings_and_comments_are_plain_english(path: Path) -> None:
    texts = [(line, text) for line, _, text in docstrings(path)] + list(comments(path))
    faults = [f"line {line}: {found[0]!r}" for line, text in texts if (found := PHRASES.search(text))]
    for line, is_function, text in docstrings(path):
        if FIRST.match(text) or (is_function and (not IMPERATIVE.match(text) or NOUNS.match(text))):
            faults.append(f"line {line} begins with {text.split()[0]!r}")
    assert not faults


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_comments_of_sources_are_plain_english(path: Path) -> None:
    text = path.read_text()
    words = [
        (comment.start() + word.start(), word[0])
        for comment in C_COMMENT.finditer(text)
        for word in C_PHRASES.finditer(comment[0])
    ]
    assert not [f"line {text[:at].count(chr(10)) + 1}: {word!r}" for at, word in words]

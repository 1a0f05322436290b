"""Check that pages use short sentences and plain words, and that recipes in CONTRIBUTING.md name existing things."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from conftest import REPOSITORY

pytestmark = pytest.mark.lint

_NAMES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "models/FORMAT.md")
PAGES = [*_NAMES, *(str(path.relative_to(REPOSITORY)) for path in sorted((REPOSITORY / "docs").rglob("*.md")))]
_MOST_WORDS = 25
_NO_PROSE = re.compile(
    r"^```.*?^```$|<!--.*?-->|\$\$.*?\$\$|^(?:\||    |:::|!\[)[^\n]*$",  # code, comments, formulas, tables, images
    re.DOTALL | re.MULTILINE,
)
_PARAGRAPH = re.compile(r"\n\s*\n|\n(?=\s*(?:[*#-]|\d+\.) )|:\n")
_SENTENCE = re.compile(r"(?<=[.!?:])[*\")]*\s+")
_OPENING = re.compile(r"(?!#)(?:[*-]+ |\d+\. )?\W*(Of|What|That|Those|The same|Where|As|Who|Which|How)\b")
_WORD = re.compile(r"(?i)\b(beside|behind|stands|doors?|house|there is none|that of|somebody|nobody|whoever)\b")


def sentences(text: str) -> Iterator[str]:
    """Yield a page's sentences; a formula, or a name in backquotes, counts as one word."""
    text = re.sub(r"\]\([^)]*\)", "]", _NO_PROSE.sub("\n\n", text))
    text = re.sub(r"\$[^$]+\$", "$x$", re.sub(r"`[^`]+`", "`x`", text))
    for paragraph in _PARAGRAPH.split(text):
        yield from _SENTENCE.split(" ".join(paragraph.split()))


@pytest.mark.parametrize("page", PAGES)
def test_pages_are_plain_english(page: str) -> None:
    faults = []
    for sentence in sentences((REPOSITORY / page).read_text()):
        if (n_words := len(re.findall(r"[\w`$'./-]+", sentence))) > _MOST_WORDS:
            faults.append(f"{n_words} words: {sentence}")
        if (opening := _OPENING.match(sentence)) and not sentence.endswith("?"):
            faults.append(f"opens with {opening[1]}: {sentence}")
        if word := _WORD.search(sentence):
            faults.append(f"has {word[1]!r}: {sentence}")
    assert not faults, f"{len(faults)} sentences\n" + "\n".join(faults)


def test_recipes_name_what_exists() -> None:
    text = (REPOSITORY / "CONTRIBUTING.md").read_text()
    for path in re.findall(r"`((?:approxsvm|cpp|tests|models|docs|release)/[\w/.-]+)`", text):
        assert "NAME" in path or (REPOSITORY / path).exists(), path
    for name, path in re.findall(r"`(\w+)` in\s+`([\w/.]+)`", text):
        assert re.search(rf"\b{name}\b", (REPOSITORY / path).read_text()), f"{name} in {path}"
    assert text.count("\n") <= 200

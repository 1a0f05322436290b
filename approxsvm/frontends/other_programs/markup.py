"""Parser from XML to a tree with line numbers, for the OpenCV and PMML frontends.

The parser calls expat directly. A document type declaration is rejected at its start, so no entities are expanded, no
other files are read, and memory use is proportional to the file's size. Documents nested more deeply than any valid
model are also rejected, because each level uses a stack frame.
"""

from dataclasses import dataclass, field
from xml.parsers import expat

from approxsvm.errors import ModelFormatError

_DEEPEST = 100


@dataclass(eq=False)
class Element:
    """XML element: `name` omits the namespace prefix, and `text` is all character data directly in the element."""

    name: str
    attributes: dict[str, str]
    line: int
    children: "list[Element]" = field(default_factory=list)
    text: str = ""

    def all(self, name: str) -> "list[Element]":
        """Return the children with this name, in order."""
        return [child for child in self.children if child.name == name]

    def first(self, name: str) -> "Element | None":
        """Return the first child with this name, or None."""
        return next((child for child in self.children if child.name == name), None)


def parse_xml(content: bytes, name: str) -> Element:
    """Parse a document and return its root element.

    Raises ModelFormatError, naming the line, if the document is not well-formed, declares a document type, or is nested
    too deeply.
    """
    parser = expat.ParserCreate()
    parser.buffer_text = True
    root = Element("", {}, 1)
    path, texts = [root], [[""]]

    def start(tag: str, attributes: dict[str, str]) -> None:
        if len(path) > _DEEPEST:
            raise ModelFormatError(
                f"{name}, line {parser.CurrentLineNumber}: elements are nested {len(path)} deep, "
                f"at most {_DEEPEST} are read"
            )
        element = Element(tag.rpartition(":")[2], attributes, parser.CurrentLineNumber)
        path[-1].children.append(element)
        path.append(element)
        texts.append([])

    def end(_: str) -> None:
        path.pop().text = "".join(texts.pop())

    def refuse(*_: object) -> None:
        raise ModelFormatError(
            f"{name}, line {parser.CurrentLineNumber}: a document type (DOCTYPE), which model files do not need"
        )

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = lambda text: texts[-1].append(text)
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(content, True)
    except (expat.ExpatError, ValueError, LookupError) as error:  # an unknown encoding raises ValueError or LookupError
        if isinstance(error, ModelFormatError):
            raise
        raise ModelFormatError(f"{name}, line {parser.ErrorLineNumber}: not well-formed XML: {error}") from None
    return root.children[0]

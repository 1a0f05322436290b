"""Find bounds, refusals and dtype rules in the sources, and write sources in which each can be disabled.

If place N is disabled at run time, an error term becomes 0, an exception is not raised, a dtype rule's condition is
false, or a step computes in float64. Module constants are not places; the terms that use them are.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

# Names of error terms; exported programs use a few more.
_NAMES = r"\w*(?:error|bound|rounding|slack|moved|carried|lost|residual|remainder|narrowing)\w*|(?:\w+_)?off"
_ERROR = re.compile(rf"(?:{_NAMES})")
_EXPORTED_ERROR = re.compile(rf"(?:{_NAMES}|own|beyond|after)")
# In programs shared by the core and exported headers.
_PROGRAM_ERROR = re.compile(rf"(?:{_NAMES}|own|of_\w+|added|raised|radius|reach)")
# In bounds/, where everything contributes to a bound.
_BOUNDS_ERROR = re.compile(rf"(?:{_NAMES}|of_\w+|widen(?:ed)?|\w*reach|kernels|sums|parts|cap|rest|weighted)")
# Types that contain only errors, and members that are errors.
_ERROR_TYPES = r"\w*Errors|RowRounding"
_ERROR_MEMBERS = r"(?:errors\d+|of_moduli)_"
# Names that match but have another meaning.
_NO_ERROR = re.compile(r"with_(?:bounds|errors)|has_\w+|n_\w+|\w*Error|\w*_moduli|\w*degree|on_error")
# A sum multiplied by such a factor is rounded up: its terms are also error terms.
_UP = re.compile(r"\w*(?:up|UP)|1\.0+\d+f?|\(1\.0 \+ [\w-]+\)|1\.0 \+ 2\.0 ?\*\* ?-\d+")
# In these files, each condition and each dtype of a `Behaviour` is a rule.
_DTYPE_RULES = (
    "approxsvm/frontends/sklearn/dtypes.py",
    "approxsvm/frontends/sklearn/steps/dtype_rules.py",
    "approxsvm/frames/dtypes.py",
)
# The function that returns generated C99 code; definitions of the calls are added to its result.
_C_TEXT_DOOR = ("approxsvm/backends/c99/header.py", "CHeader", "text")
_CPP = ("cpp/include/", "cpp/dispatch/", "cpp/python/", "cpp/text/")
_PROGRAM = "cpp/include/approxsvm/program/"
_BOUNDS = "cpp/include/approxsvm/bounds/"
# Files that decide rows by values and bounds.
_DECIDING = re.compile(r"cpp/include/approxsvm/(?:bounds/|predict/(?:stages|kernels|few_values|answers)/)")
_EXPORTED = "cpp/include/approxsvm/exported/"
# Figures and costs, which certify nothing.
_NO_BOUNDS = ("approxsvm/analysis/", "approxsvm/planning/", "approxsvm/integrations/", "approxsvm/cli/")


@dataclass(frozen=True)
class Place:
    """Code that can be disabled. Lines change; file, kind, text and occurrence identify it."""

    file: str
    line: int
    kind: str  # bound, refusal, dtype or decision
    text: str
    occurrence: int

    @property
    def key(self) -> tuple[str, str, str, int]:
        return self.file, self.kind, self.text, self.occurrence

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.kind}: {self.text}"


class _Edit(NamedTuple):
    """Strings to insert around a span of a source, where {n} is the place's number; an empty kind means no place."""

    start: int
    end: int
    kind: str
    before: str
    after: str
    text: str = ""


def has_places(file: str) -> bool:
    is_program = file.startswith((_PROGRAM, _EXPORTED)) and file.endswith(".h")
    return is_program or (file.startswith(("approxsvm/", *_CPP)) and file.endswith((".py", ".hpp", ".cpp")))


def switched(file: str, source: str, number: Callable[[Place], int]) -> str:
    """Return a source in which each place can be disabled; `number` receives each place and returns its number."""
    edits = sorted(set(_of_python(file, source) if file.endswith(".py") else _of_cpp(file, source)))
    if not any(edit.kind for edit in edits):
        return source
    counts: dict[tuple[str, str], int] = {}
    insertions = []
    for edit in sorted(edits, key=lambda edit: (edit.start, -edit.end)):
        n = ""
        if edit.kind:
            text = " ".join((edit.text or source[edit.start : edit.end]).split())[:200]
            occurrence = counts[edit.kind, text] = counts.get((edit.kind, text), -1) + 1
            n = str(number(Place(file, source.count("\n", 0, edit.start) + 1, edit.kind, text, occurrence)))
        # At each position, ends come first, inner before outer, and then beginnings, outer before inner.
        insertions.append((edit.start, 1, -edit.end, edit.before.replace("{n}", n)))
        insertions.append((edit.end, 0, -edit.start, edit.after.replace("{n}", n)))
    pieces, last = [], 0
    for at, _, _, text in sorted(insertions):
        pieces += [source[last:at], text]
        last = at
    return "".join([*pieces, source[last:]])


# --- Python


def _of_python(file: str, source: str) -> Iterator[_Edit]:
    tree = ast.parse(source)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def place(node: Any, kind: str, before: str = "", after: str = "", text: str = "") -> _Edit:
        start, end = (
            starts[line - 1] + len(lines[line - 1].encode()[:column].decode())
            for line, column in ((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset))
        )
        return _Edit(start, end, kind, before, after, text)

    def around(node: ast.AST) -> Iterator[ast.AST]:
        while node in parents:
            node = parents[node]
            yield node

    for node in ast.walk(tree):
        outside = list(around(node))
        if any(isinstance(one, ast.JoinedStr) for one in outside):
            continue  # positions in f-strings are not known before Python 3.12
        if not any(isinstance(one, (ast.FunctionDef, ast.Lambda)) for one in outside):
            continue
        if _is_refusal(node):
            yield place(node, "refusal", "if not approxsvm_mutants.on({n}): ")
        if not file.startswith(_NO_BOUNDS):
            for term in _terms(node, outside, _EXPORTED_ERROR if "/backends/" in file else _ERROR):
                yield place(term, "bound", "approxsvm_mutants.nothing({n}, (", "))")
        is_rule = any((getattr(one, "name", None) or "").endswith("_dtypes") for one in outside)  # a step's rule
        if file in _DTYPE_RULES or is_rule:
            if isinstance(node, (ast.If, ast.IfExp)) and not _only_refuses(node):
                yield place(node.test, "dtype", "(not approxsvm_mutants.on({n}) and (", "))")
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Behaviour":
                for dtype in (one for one in node.args if ast.unparse(one) != "F64"):
                    text = f"{ast.unparse(node)}: {ast.unparse(dtype)}"
                    yield place(dtype, "dtype", "(F64 if approxsvm_mutants.on({n}) else (", "))", text)
        owners = tuple(getattr(one, "name", "") for one in reversed(outside[:2]))
        if isinstance(node, ast.Return) and node.value and (file, *owners) == _C_TEXT_DOOR:
            yield place(node.value, "", "approxsvm_mutants.resolved(", ")")
    for one in tree.body:
        if not _is_docstring(one) and getattr(one, "module", "") != "__future__":
            yield place(one, "", "import approxsvm._mutants as approxsvm_mutants; ")
            break


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and _is_text(node.value)


def _is_refusal(node: ast.AST) -> bool:
    """Return whether a statement raises a new exception, or calls a function only to check something."""
    if isinstance(node, ast.Raise):
        return node.exc is not None and "NotImplemented" not in ast.unparse(node.exc)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        function = node.value.func
        name = getattr(function, "attr", getattr(function, "id", ""))
        return re.match("_?(check|refuse)", name) is not None
    return False


def _only_refuses(node: ast.If | ast.IfExp) -> bool:
    return isinstance(node, ast.If) and not node.orelse and len(node.body) == 1 and _is_refusal(node.body[0])


def _is_error(node: ast.AST | None, names: re.Pattern[str]) -> bool:
    """Return whether a variable, attribute, item or argument has the name of an error term."""
    while isinstance(node, ast.Subscript):
        node = node.value
    name = next((getattr(node, part) for part in ("id", "attr", "arg", "name") if hasattr(node, part)), "")
    name = str(name).lstrip("_")
    return names.fullmatch(name) is not None and _NO_ERROR.fullmatch(name) is None


def _terms(node: ast.AST, outside: list[ast.AST], names: re.Pattern[str]) -> Iterator[ast.expr]:
    """Yield the expressions that a node assigns to, passes as or returns from names of errors."""
    value: ast.expr | None = None
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            for one, part in zip(target.elts, node.value.elts, strict=False):
                yield from _with_addends(part) if _is_error(one, names) else ()
        value = node.value if _is_error(target, names) else None
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        value = (
            node.value
            if _is_error(node.target, names) and not isinstance(getattr(node, "op", None), ast.Mult)
            else None
        )
    elif isinstance(node, ast.keyword):
        value = node.value if _is_error(node, names) else None
    elif isinstance(node, ast.Return):
        function = next((one for one in outside if isinstance(one, (ast.FunctionDef, ast.Lambda))), None)
        value = node.value if _is_error(function, names) else None
    elif isinstance(node, ast.Dict):
        for key, part in zip(node.keys, node.values, strict=True):
            named = (
                isinstance(key, ast.Constant) and isinstance(key.value, str) and _is_error(ast.Name(key.value), names)
            )
            yield from _with_addends(part) if named else ()
    if value is not None:
        yield from _with_addends(value)


# A name refers to another term, which is itself a place.
_NO_TERMS = (ast.Name, ast.Constant, ast.Compare, ast.JoinedStr, ast.List, ast.Dict, ast.Starred, ast.Lambda)


def _with_addends(value: ast.expr) -> Iterator[ast.expr]:
    """Yield an error term and its addends."""
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    for part in parts:
        is_object = isinstance(part, ast.Call) and re.match(r"(?:\w+\.)*(?:_?[A-Z]|zeros)", ast.unparse(part.func))
        if not is_object and not isinstance(part, _NO_TERMS):
            yield part
            yield from _addends(part)


def _addends(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.IfExp):
        for way in (node.body, node.orelse):
            yield from _addends(way)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        for factor, other in ((node.left, node.right), (node.right, node.left)):
            yield from _addends(factor) if _UP.fullmatch(ast.unparse(other)) else ()
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [node.left, node.right]
        while isinstance(parts[0], ast.BinOp) and isinstance(parts[0].op, ast.Add):
            parts[:1] = [parts[0].left, parts[0].right]
        yield from _each(parts)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "op" and node.args:
        kind = getattr(node.args[0], "value", "")  # of an ONNX graph's node
        if kind in ("Add", "Sum"):
            yield from _each(node.args[1:])
        elif kind in ("Where", "Max") or (kind == "Mul" and _UP.fullmatch(ast.unparse(node.args[-1]))):
            for argument in node.args[1:]:
                yield from _addends(argument)


def _each(parts: list[ast.expr]) -> Iterator[ast.expr]:
    if any(isinstance(part, ast.Constant) and abs(part.value) >= 0.5 for part in parts):
        return  # a count, or a factor above 1
    for part in parts:
        numbers_alone = all(isinstance(one, (ast.Constant, ast.operator, ast.unaryop, ast.BinOp, ast.UnaryOp))
                            for one in ast.walk(part))  # fmt: skip
        if not numbers_alone and not isinstance(part, ast.Starred):
            yield part
            yield from _addends(part)


# --- C++ and C


# Exported headers contain only the calls; `resolved` in runtime.py defines their macro.
_PROGRAM_SWITCH = """\
#ifndef APPROXSVM_MUTANT
#include <approxsvm/mutants.hpp>
#define APPROXSVM_MUTANT(n, term) ::approxsvm_mutants::nothing(n, term)
#endif
"""
_ON = "::approxsvm_mutants::on({n})"
_NUMBER = re.compile(r"[-+]?(?:0x[\da-f.]+p[-+]?\d+|[\d.]+(?:e[-+]?\d+)?)f?|nullptr|true|false")
_NOTHING = re.compile(rf"{_NUMBER.pattern}|\w+\{{\}}|\w+\[\w+\] = 0\.0")  # plain numbers, which are not places
_COUNT = re.compile(r"[1-9]\d*(?:\.\d*)?f?|0\.[5-9]\d*f?")
# Calls to a Check (artifact/fault.hpp), which tests whether a number in a file is valid.
_CHECK = re.compile(
    r"(?<![\w.])(?!visit|may_be)\w+(?:\.(?:each|within|finite|refuse))?\((?=\s*(?:field::(?!Id\b)|rules\.field))"
    r"|(?<!\w)check\.zeros\("
)
_TYPES_OF_NO_NUMBERS = re.compile(r"\b(?:size_t|uint\w+|int|bool|Span|auto)\b")


def _of_cpp(file: str, source: str) -> Iterator[_Edit]:
    text = re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', _blank, source, flags=re.DOTALL)
    if file.startswith((_PROGRAM, _EXPORTED)):
        is_shared = file.startswith(_PROGRAM)
        names = _PROGRAM_ERROR if is_shared else _EXPORTED_ERROR
        for start, end in _terms_of_c(text, names, in_products=is_shared):
            yield _Edit(start, end, "bound", "APPROXSVM_MUTANT({n}, ", ")")
        yield _Edit(0, 0, "", _PROGRAM_SWITCH, "")
        return
    names = _BOUNDS_ERROR if file.startswith(_BOUNDS) else _ERROR
    terms = [*_terms_of_c(text, names), *_members_of_cpp(text)] if file.startswith("cpp/include/") else []
    for start, end in terms:
        yield _Edit(start, end, "bound", "::approxsvm_mutants::nothing({n}, ", ")")
    if _DECIDING.match(file):
        yield from _decisions(text)
    for found in re.finditer(r"\breturn (Status::(?!ok\b)\w+);|\bthrow\b[^;]*;", text):
        said = text[_statement(text, found.start()) : found.end()]
        if text[: found.start()].rstrip().endswith((")", "else")) or _is_in_condition(text, found.start()):
            yield _Edit(found.start(), found.end(), "refusal", f"{{ if (!{_ON}) ", " }", said)
        elif found[1]:
            yield _Edit(*found.span(1), "refusal", f"({_ON} ? Status::ok : ", ")", said)
    for found in re.finditer(r"(?<=[:=] )(Status::(?!ok\b)\w+);", text):
        said = text[_statement(text, found.start()) : found.end()]
        yield _Edit(*found.span(1), "refusal", f"({_ON} ? Status::ok : ", ")", said)
    for found in _CHECK.finditer(text):
        end = _closing(text, found.end() - 1)
        if text[: found.start()].rstrip().endswith((";", "{", "}", ")")) and text[end] == ";":
            yield _Edit(found.start(), end + 1, "refusal", f"{{ if (!{_ON}) ", " }")
        else:
            yield _Edit(found.start(), end, "refusal", f"({_ON} || ", ")")
    yield _Edit(0, 0, "", "#include <approxsvm/mutants.hpp>\n", "")


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


def _closing(text: str, opening: int) -> int:
    """Return the index after the closing parenthesis, bracket or brace."""
    depth = 0
    for at in range(opening, len(text)):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth == 0:
            return at + 1
    raise ValueError(f"nothing closes {text[opening : opening + 40]!r}")


def _statement(text: str, at: int) -> int:
    """Return the start of a statement."""
    return max(text.rfind(mark, 0, at) for mark in ";{}") + 1


def _is_in_condition(text: str, at: int) -> bool:
    """Return whether the innermost block belongs to a conditional or loop, so that the program continues after it."""
    depth = 0
    for k in range(at - 1, -1, -1):
        depth += (text[k] == "}") - (text[k] == "{")
        if depth < 0:
            return re.search(r"\b(?:if|for|while)\s*\($|\belse\s*$", _without_group(text[:k].rstrip())) is not None
    return False


def _without_group(text: str) -> str:
    """Remove the last group in parentheses, except the opening one."""
    depth = 0
    for k in range(len(text) - 1, -1, -1):
        depth += (text[k] == ")") - (text[k] == "(")
        if depth == 0:
            return text[: k + 1]
    return text


def _terms_of_c(text: str, names: re.Pattern[str], *, in_products: bool = False) -> Iterator[tuple[int, int]]:
    """Yield expressions assigned to or returned from names of errors, in C or C++, and their addends.

    `in_products`: also the addends of sums that are factors, or that contain counts.
    """
    given = rf"(?<!\w)({names.pattern})_?(?:\[[^\]\n]*\])?(?: \+?=\s+)"
    for found in re.compile(given).finditer(text):
        before = text[_statement(text, found.start()) : found.start()]
        is_pointer = re.search(r"[\w,>]\s*[*&]+\s*(?:const\s+)?$", before)
        if not is_pointer and not _TYPES_OF_NO_NUMBERS.search(before) and not _NO_ERROR.fullmatch(found[1]):
            yield from _with_addends_of_c(text, found.end(), in_products)
    functions = rf"\b(\w+)(?:<\w+>)? ({names.pattern})_?\("
    for found in re.compile(functions).finditer(text):
        if found[1] in ("return", "bool", "auto", "void") or _TYPES_OF_NO_NUMBERS.search(found[1]):
            continue
        end = _closing(text, found.end() - 1)
        body = re.compile(r"\s*(?:const )?\{").match(text, end)
        if body:
            for returned in re.compile(r"\breturn ").finditer(text, body.end(), _closing(text, body.end() - 1)):
                yield from _with_addends_of_c(text, returned.end(), in_products)


def _members_of_cpp(text: str) -> Iterator[tuple[int, int]]:
    """Yield errors that constructors assign to members, and errors in returned records."""
    for found in re.compile(rf"[,:]\s+{_ERROR_MEMBERS}\(").finditer(text):
        yield from _with_addends_of_c(text, found.end(), in_products=False)
    for found in re.compile(rf"\b(?:{_ERROR_TYPES}) \w+\(").finditer(text):
        body = re.compile(r"\s*(?:const )?\{").match(text, _closing(text, found.end() - 1))
        end = _closing(text, body.end() - 1) if body else 0
        for record in re.compile(r"\breturn \{").finditer(text, body.end() if body else 0, end):
            at = record.end()
            while text[at - 1] != "}":
                at += len(text[at:]) - len(text[at:].lstrip())
                yield from _with_addends_of_c(text, at, in_products=False)
                at = (_end_of_expression(text, at) or at) + 1


# Statements that leave a row undecided, unless they only save time; comparisons of bounds.
_LEAVES = re.compile(r"\bif (\([^;{}]*\)) (?:return (?:false|infinity|\{infinity[^}]*\})|\w+ = \w+\{\});")
_SAVES_TIME = re.compile(r"has\(parts|limit|level|n_next|none_evaluated|is_sparse\(\)")
_COMPARED = re.compile(
    r"(?<![\w.>])((?:\w+\.)*bounds?_?(?:\[[^\]\n]*\])?) <=? (?!0)|> ((?:\w+\.)*bounds?_?(?:\[[^\]\n]*\])?)(?![\w(\[])"
)


def _decisions(text: str) -> Iterator[_Edit]:
    for found in _LEAVES.finditer(text):
        if not _SAVES_TIME.search(found[1]):
            yield _Edit(*found.span(1), "decision", f"(!{_ON} && ", ")", found[0])
    for found in _COMPARED.finditer(text):
        start, end = found.span(1 if found[1] else 2)
        yield _Edit(start, end, "decision", "::approxsvm_mutants::nothing({n}, ", ")", found[0].strip())


def _with_addends_of_c(text: str, start: int, in_products: bool) -> Iterator[tuple[int, int]]:
    if text[start] in "{[":
        return
    end = _end_of_expression(text, start)
    if end is not None and not _NOTHING.fullmatch(text[start:end]) and "take<" not in text[start:end]:
        yield start, end
        yield from _addends_of_c(text, start, end, in_products)


def _end_of_expression(text: str, start: int) -> int | None:
    depth = 0
    for at in range(start, len(text)):
        if text[at] in "\"'\\":
            return None  # a Python string continues elsewhere
        if depth == 0 and text[at] in ";,)]}":
            return at
        depth += (text[at] in "([{") - (text[at] in ")]}")
    return None


def _addends_of_c(text: str, start: int, end: int, in_products: bool) -> Iterator[tuple[int, int]]:
    part = re.sub(r"<[\w:, ]+>", lambda found: "_" * len(found[0]), text[start:end])
    tops, depth, groups = [], 0, []
    for at, sign in enumerate(part):
        if sign in "([{":
            if depth == 0 and sign == "(" and not re.search(r"[\w@\])]$", part[:at]):
                groups.append(at)
            depth += 1
        depth -= sign in ")]}"
        tops.append(sign if depth == 0 else " ")
    top = "".join(tops)
    if " ? " in top:
        ways = [top.index(" ? ") + 3, *(at.start() + 3 for at in re.finditer(" : ", top))]
        if top.count(" ? ") == 1 and len(ways) == 2:
            yield from _addends_of_c(text, start + ways[0], start + ways[1] - 3, in_products)
            yield from _addends_of_c(text, start + ways[1], end, in_products)
        return
    if re.search(r" (?:[<>=!]=?|&&|\|\|) ", top):
        return
    ends = [at.start() for at in re.finditer(r"(?<=[\w@)\]])\s+\+(?=\s)", top)]
    if ends:
        cuts = [0, *ends, len(part)]
        spans = []
        for a, b in pairwise(cuts):
            piece = part[a:b]
            a += len(piece) - len(piece.lstrip(" \n+"))
            spans.append((a, a + len(part[a:b].rstrip())))
        if not in_products and any(_COUNT.fullmatch(part[a:b]) for a, b in spans):
            return  # a count, or a factor above 1
        for a, b in spans:
            if not _NUMBER.fullmatch(part[a:b]):
                yield start + a, start + b
                yield from _addends_of_c(text, start + a, start + b, in_products)
        return
    for at in groups:
        closing = _closing(part, at)
        others = (part[:at] + part[closing:]).strip(" *\n")
        if in_products or not others or all(_UP.fullmatch(factor.strip()) for factor in others.split(" * ")):
            yield from _addends_of_c(text, start + at + 1, start + closing - 1, in_products)

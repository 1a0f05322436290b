"""C code for exported headers: literals, comments and arrays as strings.

The functions in a header read everything that differs between models from macros and arrays. Code is omitted only for
components that a model lacks, such as a router or an input map.

The functions add terms in a different order than the core, one that suits processors without SIMD. The core
(expansion/polynomial.hpp) keeps eight lanes separate until the end; in a header, separate lanes could need eight
products where one suffices. Addition chains are at most as long as the bounds assume, namely form_depth() and
norm_depth() in the core (bounds/certificate.hpp); tests/backends/test_c_paths.py checks this in the generated code. The
function exp() is the one in simd/exp.hpp.
"""

import re
import textwrap
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

LINE_LENGTH: Final = 120
_FLOAT_TYPES: Final = {"float32": "float", "float64": "double"}


def literal(x: Any) -> str:
    """Return a C literal whose value is exactly x."""
    if isinstance(x, np.float32):
        return f"{_with_point(str(x))}f"
    if isinstance(x, float):
        return _with_point(repr(float(x)))
    number = int(x)
    if number == -(2**63):
        return "(-INT64_C(9223372036854775807) - 1)"
    if number >= 2**63:
        return f"UINT64_C({number})"
    return f"INT64_C({number})" if not -(2**31) < number < 2**31 else str(number)


def with_decimals(text: str) -> str:
    """Convert hexadecimal floats to decimals of the same value, because C++ lacks them before C++17."""

    def decimal(match: re.Match[str]) -> str:
        number = float.fromhex(match[1])
        return literal(np.float32(number) if match[2] else number)

    return re.sub(r"(0x[01](?:\.[0-9a-f]+)?p[+-]?\d+)(f?)", decimal, text)


def _with_point(digits: str) -> str:
    return digits if any(mark in digits for mark in ".en") else f"{digits}.0"


def text_literal(text: str) -> str:
    """Return a C string literal in UTF-8, with octal escapes for all bytes except plain ASCII."""
    plain = set(range(0x20, 0x7F)) - set(b'"\\?')
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in text.encode()) + '"'


def comment(lines: Iterable[str]) -> str:
    """Return a block comment that the given text cannot end early."""
    printable = ("".join(c if c.isprintable() else " " for c in line) for line in lines)
    plain = (line.replace("\\", "/").replace("??", "? ?") for line in printable)  # no continuation, no trigraph
    safe = (line.replace("*/", "* /").replace("/*", "/ *") for line in plain)  # last, because `plain` may create */
    wrapped = [part for line in safe for part in textwrap.wrap(line, LINE_LENGTH - 3) or [""]]
    return "\n".join(["/* " + wrapped[0], *(f" * {line}".rstrip() for line in wrapped[1:]), " */", ""])


def array(name: str, numbers: npt.NDArray[Any]) -> str:
    """Return a constant array of numbers; an empty array gets one zero element, because C has no empty arrays."""
    flat = numbers.ravel() if numbers.size else np.zeros(1, numbers.dtype)
    texts = [literal(x if flat.dtype == np.float32 else x.item()) for x in flat]
    body = textwrap.fill(", ".join(texts), LINE_LENGTH - 4, break_on_hyphens=False, break_long_words=False)
    kind = _FLOAT_TYPES.get(flat.dtype.name, f"{flat.dtype.name}_t")
    return f"static const {kind} {name}[{len(flat)}] = {{\n{textwrap.indent(body, ' ' * 4)}}};\n"


def texts_array(name: str, texts: Iterable[str]) -> str:
    """Return a constant array of strings."""
    literals = [text_literal(text) for text in texts]
    return f"static const char *const {name}[{len(literals)}] = {{\n    " + ",\n    ".join(literals) + "};\n"

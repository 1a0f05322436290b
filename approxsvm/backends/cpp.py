"""C++ backend, which exports a compiled model as a header and combines the library's headers into one file."""

import os
import re
from pathlib import Path

from approxsvm.artifact.views import Artifact
from approxsvm.backends.names import check_name
from approxsvm.system.installed_headers import get_include
from approxsvm.system.output_files import write_whole

_INCLUDE = re.compile(r'#include "([^"]+)"')
_BYTES_PER_LINE = 24

_HEADER = """\
// Written by approxsvm export --cpp: a model of {n_bytes:,} bytes that needs no file.
//
//     {name}::Model model;
//     approxsvm::Status status = model.open({name}::artifact);
#ifndef {guard}
#define {guard}

#include {include}

namespace {name} {{

// Type of the model. Without approxsvm::batches, rows are predicted one by one, with less code.
using Model = {model};

alignas(64) inline constexpr unsigned char artifact[{n_bytes}] = {{
{lines}
}};

}}  // namespace {name}

#endif
"""


def one_header(include: str | os.PathLike[str] | None = None) -> str:
    """Combine all C++ library headers, from the package or the folder `include`, into a single header."""
    root = Path(include or get_include()) / "approxsvm"
    seen: set[Path] = set()

    def expanded(path: Path) -> str:
        if path.suffix != ".inc":
            if path in seen:
                return ""
            seen.add(path)
        lines = []
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
            if match := _INCLUDE.match(line):
                lines.append(expanded((path.parent / match[1]).resolve()))
            else:
                lines.append(line)
        return "".join(lines)

    text = expanded((root / "approxsvm.hpp").resolve())
    return f"// Written by approxsvm export --hpp; its parts are the files in include/approxsvm.\n{text}"


def export_cpp(
    artifact: Artifact, path: str | os.PathLike[str], *, name: str = "model", include: str = "<approxsvm/approxsvm.hpp>"
) -> None:
    """Write a model as a C++17 header that contains the artifact as an array and the type that opens it.

    `name` is the namespace of both. `include` is the name of the library header, in angle brackets or quotes.
    """
    guard = f"{check_name(name)}_APPROXSVM_HPP"  # case matters, because model and Model are different headers
    rows = (artifact.data[i : i + _BYTES_PER_LINE] for i in range(0, artifact.n_bytes, _BYTES_PER_LINE))
    lines = "\n".join("    " + "".join(f"{byte}," for byte in row) for row in rows)
    numbers = {"n_bytes": artifact.n_bytes, "lines": lines}
    text = _HEADER.format(name=name, guard=guard, include=include, model=artifact.model_of, **numbers)
    write_whole(text.encode(), path)

"""Notebooks as pages of the site: each cell is executed and followed by its output, without a Jupyter kernel."""

from __future__ import annotations

import ast
import json
import os
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any


def page(notebook: str) -> str:
    """Return a notebook as Markdown, with the output of each cell.

    The cells run in a temporary folder, as one program.
    """
    parts = []
    namespace: dict[str, Any] = {}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for cell in json.loads(notebook)["cells"]:
                text = "".join(cell["source"])
                if cell["cell_type"] == "markdown":
                    parts.append(text)
                    continue
                parts.append(f"```python\n{text}\n```")
                if output := _run(text, namespace).rstrip():
                    parts.append(f"```text\n{output}\n```")
        finally:
            os.chdir(before)
    return "\n\n".join(parts) + "\n"


def _run(cell: str, namespace: dict[str, Any]) -> str:
    """Execute a cell; return its output, and the value of its last line if it is an expression without semicolon."""
    body = ast.parse(cell).body
    last = ast.unparse(body.pop()) if body and isinstance(body[-1], ast.Expr) else "None"
    with redirect_stdout(StringIO()) as printed:
        exec(compile(ast.Module(body, []), "cell", "exec"), namespace)
        value = eval(last, namespace)
    shown = "" if value is None or cell.endswith(";") else repr(value)
    return printed.getvalue() + shown

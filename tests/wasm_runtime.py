"""approxsvm.wasm: its build, and one Node.js process that serves requests."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
from native_build import REPOSITORY

PATH = sysconfig.get_path("scripts") + os.pathsep + os.environ["PATH"]


def zig_folder() -> str | None:
    """Return zig's folder, from the PATH or from the package ziglang."""
    if found := shutil.which("zig", path=PATH):
        return str(Path(found).parent)
    package = importlib.util.find_spec("ziglang")
    return package.submodule_search_locations[0] if package and package.submodule_search_locations else None


def missing() -> list[str]:
    """Return the tools that are not installed."""
    tools = {tool: shutil.which(tool, path=PATH) for tool in ("cmake", "ninja", "node")}
    return [tool for tool, path in {**tools, "zig (pip install ziglang)": zig_folder()}.items() if path is None]


def build(folder: Path) -> None:
    """Build approxsvm.wasm, approxsvm.mjs and the page in the subfolder web."""
    environment = {**os.environ, "PATH": f"{zig_folder()}{os.pathsep}{PATH}"}
    environment.pop("CMAKE_CXX_COMPILER_LAUNCHER", None)
    options = [f"-DCMAKE_TOOLCHAIN_FILE={REPOSITORY}/cpp/cmake/zig.cmake", "-DZIG_TARGET=wasm32-wasi"]
    for step in (["-S", str(REPOSITORY), "-B", str(folder), "-G", "Ninja", *options], ["--build", str(folder)]):
        ran = subprocess.run(
            [str(shutil.which("cmake", path=PATH)), *step], env=environment, capture_output=True, text=True
        )
        assert ran.returncode == 0, (ran.stdout + ran.stderr)[-4000:]


class RefusedError(Exception):
    """An error thrown by JavaScript: an ApproxsvmError, which has a code, or another exception, which has none."""

    def __init__(self, name: str, message: str, code: int | None = None, row: int | None = None) -> None:
        super().__init__(message)
        self.name, self.code, self.row = name, code, row


class Door:
    """A Node.js process with one runtime for all models."""

    def __init__(self, web: Path) -> None:
        command = [
            "node",
            str(Path(__file__).parent / "cpp" / "wasm_door.mjs"),
            web / "approxsvm.wasm",
            web / "approxsvm.mjs",
        ]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([str(part) for part in command], stdin=pipe, stdout=pipe, text=True)

    def ask(self, act: str, artifact: bytes = b"", **request: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        encoded = base64.b64encode(artifact).decode()
        self.process.stdin.write(json.dumps({"act": act, "artifact": encoded, **request}) + "\n")
        self.process.stdin.flush()
        reply = json.loads(self.process.stdout.readline())
        if "found" not in reply:
            raise RefusedError(**reply)
        return reply["found"]

    def evaluate(self, artifact: bytes, rows: Any, *wanted: str, kind: str = "promised") -> dict[str, Any]:
        asked = dict.fromkeys(wanted, True) | {"kind": kind}
        found: dict[str, Any] = self.ask("evaluate", artifact, rows=packed(rows), wanted=asked)
        for name in set(found) - {"labels"}:
            number = np.uint8 if name == "certified" else np.float64
            found[name] = np.frombuffer(base64.b64decode(found[name]), number)
        return found


def packed(rows: Any) -> Any:
    kind = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}[rows.dtype]
    return [kind, base64.b64encode(np.ascontiguousarray(rows).tobytes()).decode()]

"""Peak performance of one core, measured with peak.cpp between the timed sections."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_SOURCE = Path(__file__).with_suffix(".cpp")
_NATIVE_FLAGS = ("-march=native", "-mcpu=native")  # compilers for aarch64 may accept only the second
FIGURES = ("fma", "exp", "cache", "third")


class Peak:
    """The compiled peak program, in the folder `scratch`; each call runs it for about 20 ms.

    Raises FileNotFoundError if there is no C++ compiler, and RuntimeError if compiling fails.
    """

    def __init__(self, scratch: Path) -> None:
        self._program = scratch / "peak"
        narrow = ["-mno-avx512f"] if os.environ.get("APPROXSVM_TARGET") == "avx2" else []
        for flag in _NATIVE_FLAGS:
            flags = ["-std=c++17", "-O2", flag, *narrow, "-I", str(_SOURCE.parents[1] / "cpp" / "include")]
            command = ["c++", *flags, str(_SOURCE), "-o", str(self._program)]
            result = subprocess.run(command, capture_output=True, text=True)
            if result.returncode == 0:
                return
        raise RuntimeError(f"{_SOURCE.name} does not compile: {result.stderr.strip()}")

    def all(self) -> dict[str, float]:
        """Return rates per second: multiply-adds, exponentials, and bytes read from the L2 and L3 caches."""
        printed = subprocess.run([self._program], capture_output=True, text=True, check=True).stdout
        return dict(zip(FIGURES, map(float, printed.split()), strict=True))

    def __call__(self) -> float:
        """Return multiply-adds per second."""
        return self.all()["fma"]

"""The float32 multiply-adds that one core can do, measured between the timed sections by fma_peak.cpp."""

from __future__ import annotations

import subprocess
from pathlib import Path

_SOURCE = Path(__file__).with_name("fma_peak.cpp")
_NATIVE_FLAGS = ("-march=native", "-mcpu=native")  # compilers for aarch64 may know only the second


class FmaPeak:
    """The compiled yardstick; each call runs it for about 20 ms.

    Raises
    ------
    FileNotFoundError
        There is no C++ compiler.
    RuntimeError
        The compiler refused the program.
    """

    def __init__(self, scratch: Path) -> None:
        self._program = scratch / "fma_peak"
        for flag in _NATIVE_FLAGS:
            command = ["c++", "-std=c++17", "-O2", flag, str(_SOURCE), "-o", str(self._program)]
            result = subprocess.run(command, capture_output=True, text=True)
            if result.returncode == 0:
                return
        raise RuntimeError(f"fma_peak.cpp does not compile: {result.stderr.strip()}")

    def __call__(self) -> float:
        """Multiply-adds per second."""
        return float(subprocess.run([self._program], capture_output=True, text=True, check=True).stdout)

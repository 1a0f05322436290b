"""What one core can do at most, by fma_peak.cpp, exp_peak.cpp and bytes_peak.cpp between the timed sections."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_FOLDER = Path(__file__).parent
_NATIVE_FLAGS = ("-march=native", "-mcpu=native")  # compilers for aarch64 may know only the second


class Peak:
    """A compiled yardstick; each call runs it for about 20 ms.

    Parameters
    ----------
    scratch : Path
        Folder for the program.
    name : str
        "fma", "exp" or "bytes".

    Raises
    ------
    FileNotFoundError
        There is no C++ compiler.
    RuntimeError
        The compiler refused the program.
    """

    def __init__(self, scratch: Path, name: str) -> None:
        self._program = scratch / f"{name}_peak"
        narrow = ["-mno-avx512f"] if os.environ.get("APPROXSVM_TARGET") == "avx2" else []
        for flag in _NATIVE_FLAGS:
            flags = ["-std=c++17", "-O2", flag, *narrow, "-I", str(_FOLDER.parent / "cpp" / "include")]
            command = ["c++", *flags, str(_FOLDER / f"{name}_peak.cpp"), "-o", str(self._program)]
            result = subprocess.run(command, capture_output=True, text=True)
            if result.returncode == 0:
                return
        raise RuntimeError(f"{name}_peak.cpp does not compile: {result.stderr.strip()}")

    def all(self) -> tuple[float, ...]:
        """What it prints, per second: bytes from the second-level cache, and from the third."""
        printed = subprocess.run([self._program], capture_output=True, text=True, check=True).stdout
        return tuple(map(float, printed.split()))

    def __call__(self) -> float:
        """Multiply-adds or exponentials per second."""
        return self.all()[0]

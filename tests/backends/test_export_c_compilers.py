"""Exported C headers of every kind with many compilers, optimization levels, standards, and third-party macros."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from c_header import NEEDS_GCC, STRICT, build
from conftest import REPOSITORY
from foreign_macros import check_behind_macros
from native_build import filled_once
from zoo.executors.exported import OF_EVERY_CODE, OF_EVERY_TEXT
from zoo.sources import ROWS, ZOO, specimen

from approxsvm.backends.c99.source import with_decimals

pytestmark = [pytest.mark.native, NEEDS_GCC, pytest.mark.filterwarnings("ignore")]

# Extreme optimization levels and standards. At -O0, Clang calls memset for arrays with initializers.
COMPILERS = {
    "gcc, 32 bits": ["gcc", "-m32", "-msse2", "-mfpmath=sse", "-std=c99", "-O0", "-ffreestanding"],
    "gcc -O3": ["gcc", "-std=c17", "-O3"],
    "g++": ["g++", "-x", "c++", "-std=c++11", "-Os"],
    "g++, C++17": ["g++", "-x", "c++", "-std=c++17", "-O0"],
    "clang": ["clang", "-std=c99", "-O0"],
    "clang++": ["clang++", "-x", "c++", "-std=c++17", "-O2"],
}
FUNCTION = re.compile(r"^static inline ((?:const )?\w+ \*?)(\w*[^\W_])\(([^)]*)\) ", re.MULTILINE)
OPTIONS = {"int16": {"inputs": "int16"}, "int8": {"inputs": "int8"}, "coefficients": {"coefficients": "int8"}}


@pytest.fixture(scope="module")
def headers(shared_folder: Path) -> Path:
    """Fill a folder with a header for each kind of code, all.h, which includes them, and calls.c, which calls them."""

    def fill(folder: Path) -> None:
        wanted = [(name, {}) for name in OF_EVERY_TEXT]
        wanted += [(name, OPTIONS[kind]) for kind, names in OF_EVERY_CODE.items() for name in names]
        calls = ['#include "all.h"']
        for k, (name, options) in enumerate(wanted):
            (folder / f"of m{k}").mkdir()
            one = specimen(ZOO[name], folder / f"of m{k}")
            rows = {"X": one.table.values.astype(float)} if "inputs" in options else {}
            one.fast.export_c(folder / f"m{k}.h", name=f"m{k}", **options, **rows)
            calls += wrapped((folder / f"m{k}.h").read_text())
        (folder / "all.h").write_text("".join(f'#include "m{k}.h"\n' for k in range(len(wanted))))
        (folder / "calls.c").write_text("\n".join(calls) + "\n")

    return filled_once(shared_folder, "headers", fill)


PARTS = REPOSITORY / "cpp/include/approxsvm/exported"


def wrapped(header: str) -> list[str]:
    """Wrap each public function of a header in a function that compilers cannot omit."""
    lines = []
    for result, name, parameters in FUNCTION.findall(header):
        given = ", ".join(re.findall(r"(\w+)(?:\[\])?(?:,|$)", parameters))
        call = f"{'' if result.startswith('void') else 'return '}{name}({given});"
        lines += [f"{result}call_{name}({parameters});", f"{result}call_{name}({parameters}) {{ {call} }}"]
    return lines


def test_every_function_of_the_export_is_in_a_header(headers: Path) -> None:
    sources = "".join(path.read_text() for path in PARTS.glob("*.h"))
    written = set(re.findall(r"static inline [^\n(]*\bmodel_(\w+?)_?\(", sources))
    written -= {f"part_{degree}" for degree in (4, 5, 6)}  # for forms, like part_3
    texts = "".join(path.read_text() for path in headers.glob("m*.h"))
    assert len(written) > 40
    assert sorted(written - set(re.findall(r"\bm\d+_(?:member_\d+_)?(\w+?)_?\(", texts))) == []


@pytest.mark.parametrize("name", COMPILERS)
def test_compilers_have_nothing_to_say(name: str, headers: Path, tmp_path: Path) -> None:
    command = COMPILERS[name]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    calls, compiled = headers / "calls.c", tmp_path / "calls.o"
    subprocess.run([*command, *STRICT, "-c", "-o", compiled, calls], check=True)
    undefined = subprocess.run(["nm", "-u", compiled], check=True, capture_output=True, text=True)
    loops = {"memcpy"} if name == "clang++" else set()  # generated from loops
    assert set(undefined.stdout.split()) <= {"U", "_GLOBAL_OFFSET_TABLE_", *loops}  # no libc functions


@pytest.mark.parametrize("name", ["gcc, 32 bits", "g++"])
def test_other_peoples_macros(name: str, headers: Path) -> None:
    check_behind_macros([*COMPILERS[name], "-x", "c++" if "g++" in name else "c", f"-I{headers}"], "all.h")


def test_headers_are_certain_of_rows(tmp_path: Path) -> None:
    """Check that bounds prove something: useless ones would also satisfy the guarantees."""
    for k, name in enumerate(OF_EVERY_TEXT[::3]):
        (tmp_path / str(k)).mkdir()
        one = specimen(ZOO[name], tmp_path / str(k))
        if one.table.container == "array":
            answers = build(one.fast, tmp_path / str(k), "-O0").answers(ROWS[ZOO[name].rows].values.astype(np.float32))
            assert answers.certain.mean() > 0.7, name


def test_decimals_are_the_hexadecimal_numbers() -> None:
    for number in ("0x1p-1000", "0x1p64", "0x1.0001p-53", "0x1.62e42fee00000p-1", "0x1.a39ef35793c76p-33"):
        assert float(with_decimals(number)) == float.fromhex(number)
    for number in ("0x1.6a23d0p-10", "0x1.fffffcp-2"):
        decimal = with_decimals(f"x - {number}f").removeprefix("x - ").removesuffix("f")
        assert np.float32(decimal) == float.fromhex(number)
    assert with_decimals("1e-300 + 0x7FC00000u + x0x1p + 12582912.0f") == "1e-300 + 0x7FC00000u + x0x1p + 12582912.0f"

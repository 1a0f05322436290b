"""The layers of CONTRIBUTING.md's map: imports in Python and includes in C++."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import REPOSITORY

pytestmark = pytest.mark.lint

PACKAGE = REPOSITORY / "approxsvm"
# Layers, folders or single files, from the lowest up: each may use only lower ones.
FLOORS = [
    ["errors", "source_tree", "_native"],
    ["system"],
    ["frames"],
    ["ir"],
    ["reference"],
    ["expansion"],
    ["artifact", "features"],
    ["frontends", "runtime"],
    ["integrations", "backends", "analysis", "planning"],
    ["methods"],
    ["predictor", "estimators", "arrow", "scoring", "spark", "dask", "duckdb", "plots"],
    ["compiler"],
    ["compiling"],
    ["__init__"],
    ["cli"],
]
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def room_of(module: str) -> str:
    return module.split(".")[0]


def imports(path: Path) -> Iterator[str]:
    """Modules of the package that a file imports, wherever it does."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "approxsvm":
            below = node.module.partition(".")[2]
            for alias in node.names:
                whole = f"{below}.{alias.name}" if below else alias.name
                yield whole if whole in MODULES or whole == "_native" else below or "__init__"
        elif isinstance(node, ast.Import):
            yield from (a.name.partition(".")[2] or "__init__" for a in node.names if a.name.startswith("approxsvm"))


@pytest.mark.parametrize("module", MODULES)
def test_arrows_run_downwards(module: str) -> None:
    room = room_of(module)
    for imported in imports(MODULES[module]):
        other = room_of(imported)
        # The public names are imported when they are used: typing alone makes __init__ import what lies below it.
        assert other == room or FLOOR[other] < FLOOR[room], f"{module} imports {imported}"


def test_there_is_no_cycle_inside_a_room() -> None:
    arrows = {module: {name for name in imports(path) if name != module} for module, path in MODULES.items()}
    while arrows:
        ends = {module for module, imported in arrows.items() if not imported & arrows.keys()}
        assert ends, f"a cycle among {sorted(arrows)}"
        arrows = {module: imported for module, imported in arrows.items() if module not in ends}


def test_one_importer_of_the_native_predictor() -> None:
    users = {name for name, path in MODULES.items() if re.search(r"_native\.(Predictor|Outputs)\b", path.read_text())}
    assert users == {"runtime.evaluator"}


def test_numbers_of_bounds_have_one_author() -> None:
    """The core has the unit roundoffs and the cut-off; ir/constants.py asks for them, and for the steepest slope."""
    written = re.compile(r"2\.0\*\*-(53|24)\b|\b174\.0|gamma / math\.e|FloatArray = npt")
    authors = {name for name, path in MODULES.items() if written.search(path.read_text())}
    assert authors == {"ir.constants", "ir.compensated"}  # of the slope, and of what an array is


@pytest.mark.parametrize(
    ("folder", "strangers"),
    [
        ("include", ["dispatch", "text", "tools", "runtime", "python"]),
        ("dispatch", ["text", "tools", "runtime", "python"]),
        ("text", ["dispatch", "tools", "runtime", "python"]),
        ("tools", ["runtime", "python"]),
        ("runtime", ["text", "tools", "python"]),
    ],
)
def test_includes_run_downwards(folder: str, strangers: list[str]) -> None:
    cpp = REPOSITORY / "cpp"
    of_strangers = {path.name for name in strangers for path in (cpp / name).rglob("*.h*")}
    for path in (cpp / folder).rglob("*.?pp"):
        included = {
            Path(name).name for name in re.findall(r'^#include [<"]([^>"]+)[>"]', path.read_text(), re.MULTILINE)
        }
        assert not included & of_strangers, path


# Layers of cpp/include/approxsvm, from the lowest up: folders and files, the longest name of which counts.
CPP_FLOORS = [
    ["version"],
    ["status", "schema", "parts", "program"],
    ["model_view"],
    ["row_fault"],
    ["simd"],
    ["arena", "shared_code"],
    ["bounds/certificate"],
    ["expansion"],
    ["artifact", "features"],
    ["outputs"],
    ["exact"],
    ["bounds"],
    ["predict/rows"],
    ["predict/few_values"],
    ["predict/prepare"],
    ["predict/stages"],
    ["predict/kernels"],
    ["predict/answers"],
    ["predict"],
    ["model", "development_files"],
    ["approxsvm"],
]
CPP_FLOOR = {room: floor for floor, rooms in enumerate(CPP_FLOORS) for room in rooms}
INCLUDE = REPOSITORY / "cpp" / "include" / "approxsvm"
HEADERS = {path.relative_to(INCLUDE): path for path in sorted(INCLUDE.rglob("*.hpp"))}


def included_headers(header: Path) -> set[Path]:
    quoted = re.findall(r'^#include "([^"]+\.hp?p?)"', HEADERS[header].read_text(), re.MULTILINE)
    return {Path(os.path.normpath(header.parent / name)) for name in quoted}


def header_room(header: Path) -> str:
    name = header.with_suffix("")
    return next(str(path) for path in (name, *name.parents) if str(path) in CPP_FLOOR)


@pytest.mark.parametrize("header", HEADERS, ids=str)
def test_headers_include_downwards(header: Path) -> None:
    room = header_room(header)
    for other in included_headers(header):
        other_room = header_room(other)
        assert other_room == room or CPP_FLOOR[other_room] < CPP_FLOOR[room], f"{header} includes {other}"


# How many files of the package and the core name one kernel, pipeline step, output or section: who adds another opens
# about as many. Who makes a number smaller writes the new one here. It rises only with a door or a question that is new
# and that each kind answers by arithmetic of its own, such as C99 headers and gradients.
FILES_THAT_NAME = {
    "(?i)cosine": 11,  # a kernel
    "(?i)normalizer": 9,  # a step
    r"\bLogarithm(Stage)?\b(?! of)|\(logarithm,": 8,  # another, which a feature map takes, too; not every logarithm
    "density_marks|DensityMarks": 6,  # an output, two of them readers of LIBSVM's key of this name
    "temperature_calibration|TemperatureCalibration": 7,  # another, with two readers and two exports
    "gaussian_density|GaussianDensity": 4,  # another, without arithmetic
    "(?i)speculation": 4,  # a section
    "direction_bound|direction_trace|direction_scale": 5,  # the bound of degree 2 and its stage
}


@pytest.mark.parametrize("words", FILES_THAT_NAME)
def test_growth(words: str) -> None:
    folders = [PACKAGE, *(REPOSITORY / "cpp" / name for name in ("include", "dispatch", "text", "python", "runtime"))]
    files = [
        path for folder in folders for path in folder.rglob("*.*") if path.suffix in {".py", ".hpp", ".cpp", ".inc"}
    ]
    naming = [path for path in files if re.search(words, path.read_text(encoding="utf-8"))]
    assert len(naming) <= FILES_THAT_NAME[words], sorted(str(path.relative_to(REPOSITORY)) for path in naming)

"""Check the layers of the map in CONTRIBUTING.md: Python imports and C++ includes."""

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
# Layers (folders or single files), lowest first: each may use only lower ones.
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
    """Yield the package modules imported anywhere in a file."""
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
        # Public names are imported on use; __init__ imports lower layers only for typing.
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
    """The core alone writes the unit roundoffs and the cut-off; the slope and the array type are each defined once."""
    written = re.compile(r"2\.0\*\*-(53|24)\b|\b174\.0|gamma / math\.e|FloatArray = npt")
    authors = {name for name, path in MODULES.items() if written.search(path.read_text())}
    assert authors == {"ir.constants", "ir.compensated"}  # they define the slope, and the array type


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


# Layers of cpp/include/approxsvm (folders and files), lowest first; the longest matching name counts.
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


# The number of files in the package and the core that name one kernel, pipeline step, output or section: adding another
# one means editing about as many. If a number falls, update it here. It may rise only with a new interface or feature
# that needs separate arithmetic for each kind, such as C99 headers and gradients.
FILES_THAT_NAME = {
    "(?i)cosine": 11,  # a kernel
    "(?i)normalizer": 9,  # a step
    r"\bLogarithm(Stage)?\b(?! of)|\(logarithm,": 8,  # another step, also used by a feature map; not every logarithm
    "density_marks|DensityMarks": 6,  # an output; two files read LIBSVM's key of this name
    "temperature_calibration|TemperatureCalibration": 7,  # another output, with two readers and two exports
    "gaussian_density|GaussianDensity": 4,  # another output, without arithmetic
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

"""Exported C headers of every kind in front of compilers: levels, standards, languages, other people's macros."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_header import NEEDS_GCC, STRICT
from conftest import GOLDEN, filled_once
from foreign_macros import check_behind_macros
from sklearn.feature_selection import SelectKBest
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import RidgeClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder
from sklearn.svm import SVC, LinearSVC
from test_export_c import classes, random_plan
from test_export_c_few import model_on
from test_export_c_kinds import LABELED, RULES, table
from test_export_c_texts import census
from test_share_errors import HEADS, head_of_one
from test_step_errors import STEPS
from test_step_errors import compiled as step_of_one

import approxsvm
from approxsvm.export.c99.source import with_decimals

pytestmark = [pytest.mark.native, NEEDS_GCC]

# Levels and standards of C and C++. At -O0 Clang sets arrays by calls of memset where they have initializers.
COMPILERS = {
    "gcc -O0": ["gcc", "-std=c99", "-O0"],
    "gcc -O2": ["gcc", "-std=c99", "-O2"],
    "gcc -O3": ["gcc", "-std=c17", "-O3"],
    "gcc -Os": ["gcc", "-std=c11", "-Os"],
    "gcc, 32 bits": ["gcc", "-m32", "-msse2", "-mfpmath=sse", "-std=c99", "-O1", "-ffreestanding"],
    "g++": ["g++", "-x", "c++", "-std=c++11", "-O2"],
    "g++, C++17": ["g++", "-x", "c++", "-std=c++17", "-O1"],
    "clang": ["clang", "-std=c99", "-O2"],
    "clang, C17": ["clang", "-std=c17", "-O0"],
    "clang++": ["clang++", "-x", "c++", "-std=c++11", "-Os"],
    "clang++, C++17": ["clang++", "-x", "c++", "-std=c++17", "-O3"],
}
FUNCTION = re.compile(r"^static inline ((?:const )?\w+ \*?)(\w*[^\W_])\(([^)]*)\) ", re.MULTILINE)


def models() -> dict[str, Any]:
    """A model for every function of headers; with options of its export, where a pair."""
    X, y = classes(9, 3)
    scaled = make_pipeline(MinMaxScaler(clip=True), SelectKBest(k=5), SVC(break_ties=True, gamma=1.0)).fit(X, y)
    T, labels = table(3)
    several = np.column_stack([labels, labels == 1])
    texts, frame = census(OneHotEncoder(handle_unknown="ignore"), last=SVC(gamma=0.05))
    turns = make_pipeline(RBFSampler(gamma=0.05, random_state=0), RidgeClassifier())
    found: dict[str, Any] = {
        "quadratic": random_plan(1, 2, 1)[1],
        "centers": (random_plan(11, 1, 20)[1], {"coefficients": "int8", "inputs": "int8"}),
        "quartic": (random_plan(21, 4, 4, 4)[1], {"coefficients": "int16", "inputs": "int16"}),
        "slices": approxsvm.load(GOLDEN / "iris_slices.asvm"),
        "scaled": (approxsvm.compile(scaled, X, mode="approximate", degree=3), {"inputs": "int16"}),
        "few_values": approxsvm.compile(model_on("signs", 1, 0.7)[0], mode="exact"),
        "turns": approxsvm.compile(turns.fit(X, y)),
        "linear": approxsvm.compile(LinearSVC().fit(X, y)),
        "cubic": approxsvm.compile(SVC(kernel="poly", decision_function_shape="ovo").fit(X, y)),
        "sigmoid": approxsvm.compile(SVC(kernel="sigmoid").fit(X, y)),
        "targets": approxsvm.compile(MultiOutputClassifier(SVC()).fit(T, several)),
        "texts": approxsvm.compile(texts, frame),
    }
    of_rules = ("weighted votes", "votes by probability", "weighted means", "means at least", "functions, calibrated")
    for name in of_rules:
        source, n_classes = RULES[name]
        found[name] = approxsvm.compile(source.fit(*table(n_classes)))
    found["stack"] = approxsvm.compile(LABELED["stack"][0].fit(T, labels > 0), T)
    found |= {f"shares, {name}": head_of_one(name) for name in HEADS}
    return found | {f"step, {name}": step_of_one(name, "projected")[0] for name in STEPS}


@pytest.fixture(scope="module")
def headers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a header of each model, all.h which includes them, and calls.c which has all that they have."""

    def fill(folder: Path) -> None:
        calls = ['#include "all.h"']
        for k, compiled in enumerate(models().values()):
            compiled, options = compiled if isinstance(compiled, tuple) else (compiled, {})
            if "inputs" in options:
                options["X"] = np.arange(2.0)[:, np.newaxis] * np.ones(compiled.n_features_in_)
            compiled.export_c(folder / f"m{k}.h", name=f"m{k}", **options)
            calls += wrapped((folder / f"m{k}.h").read_text())
        (folder / "all.h").write_text("".join(f'#include "m{k}.h"\n' for k in range(len(models()))))
        (folder / "calls.c").write_text("\n".join(calls) + "\n")

    return filled_once(tmp_path_factory, "headers", fill)


def wrapped(header: str) -> list[str]:
    """Each function of a header that programs call, in a function that compilers cannot leave out."""
    lines = []
    for result, name, parameters in FUNCTION.findall(header):
        given = ", ".join(re.findall(r"(\w+)(?:\[\])?(?:,|$)", parameters))
        call = f"{'' if result.startswith('void') else 'return '}{name}({given});"
        lines += [f"{result}call_{name}({parameters});", f"{result}call_{name}({parameters}) {{ {call} }}"]
    return lines


@pytest.mark.parametrize("name", COMPILERS)
def test_compilers_have_nothing_to_say(name: str, headers: Path, tmp_path: Path) -> None:
    command = COMPILERS[name]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    calls, compiled = headers / "calls.c", tmp_path / "calls.o"
    subprocess.run([*command, *STRICT, "-c", "-o", compiled, calls], check=True)
    undefined = subprocess.run(["nm", "-u", compiled], check=True, capture_output=True, text=True)
    assert set(undefined.stdout.split()) <= {"U", "_GLOBAL_OFFSET_TABLE_"}  # nothing of libc


@pytest.mark.parametrize("name", ["gcc -O0", "g++"])
def test_other_peoples_macros(name: str, headers: Path) -> None:
    check_behind_macros([*COMPILERS[name], "-x", "c++" if "g++" in name else "c", f"-I{headers}"], "all.h")


def test_decimals_are_the_hexadecimal_numbers() -> None:
    for number in ("0x1p-1000", "0x1p64", "0x1.0001p-53", "0x1.62e42fee00000p-1", "0x1.a39ef35793c76p-33"):
        assert float(with_decimals(number)) == float.fromhex(number)
    for number in ("0x1.6a23d0p-10", "0x1.fffffcp-2"):
        decimal = with_decimals(f"x - {number}f").removeprefix("x - ").removesuffix("f")
        assert np.float32(decimal) == float.fromhex(number)
    assert with_decimals("1e-300 + 0x7FC00000u + x0x1p + 12582912.0f") == "1e-300 + 0x7FC00000u + x0x1p + 12582912.0f"

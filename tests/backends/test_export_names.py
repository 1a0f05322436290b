"""Names of exported models: any name that compiles is accepted, and names reserved by the languages are refused."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import GOLDEN, REPOSITORY

import approxsvm
from approxsvm.backends.c99.header import export_c
from approxsvm.backends.cpp import export_cpp
from approxsvm.runtime.evaluator import read_artifact

REFUSED = ["class", "this", "and_eq", "co_await", "std", "posix", "log", "gammaf", "index", "size_t", "my_t", "main"]
REFUSED += ["unix", "linux", "errno", "NULL", "approxsvm"]
ARTIFACT = read_artifact(GOLDEN / "breast_cancer.asvm")


@pytest.mark.parametrize("export", [export_c, export_cpp])
def test_names_of_the_languages_are_refused(export: Any, tmp_path: Path) -> None:
    for name in REFUSED:
        with pytest.raises(approxsvm.InputError, match=f"^the name '{name}' belongs to C or C.., choose another"):
            export(ARTIFACT, tmp_path / "m.h", name=name)
    for wrong in ("", "1a", "a-b", "a__b", "_a", "a b", "ä", 5, None):
        with pytest.raises(approxsvm.InputError, match=r"^name must be letters, digits and single _"):
            export(ARTIFACT, tmp_path / "m.h", name=wrong)
    assert not (tmp_path / "m.h").exists()


def test_names_that_begin_like_those_of_the_text(tmp_path: Path) -> None:
    """A header's default name is also the prefix in the code templates."""
    ensemble = read_artifact(GOLDEN / "iris_ensemble.asvm")
    for name in ("model", "model_2", "net"):
        export_c(ensemble, tmp_path / f"{name}.h", name=name)
    expected = (tmp_path / "net.h").read_text()
    for name in ("model", "model_2"):
        assert (tmp_path / f"{name}.h").read_text() == re.sub(r"\bnet(?=[_.':])", name, expected)


def test_functions_of_the_c_library_are_refused(tmp_path: Path) -> None:
    """Check every ISO C function that this machine's <cmath>, <cstring>, <cstdlib>, <cstdio> and <cctype> declare."""
    if shutil.which("g++") is None:
        pytest.skip("no g++ here")
    source = "".join(f"#include <{name}>\n" for name in ("cmath", "cstring", "cstdlib", "cstdio", "cctype"))
    command = ["g++", "-std=c++17", "-U_GNU_SOURCE", "-E", "-P", "-x", "c++", "-"]
    ran = subprocess.run(command, input=source, capture_output=True, text=True, check=True)
    names = set(re.findall(r"^extern [^;{]*?\b([a-z]\w*) \(", ran.stdout, re.MULTILINE))
    assert len(names) > 200
    taken = []
    for name in sorted(names):
        try:
            export_cpp(ARTIFACT, tmp_path / "m.hpp", name=name)
        except approxsvm.InputError:
            continue
        taken.append(name)
    assert taken == []


@pytest.mark.parametrize("name", ["tumor", "Model_2", "class_", "log_1", "x"])
def test_other_names_compile(name: str, tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("no g++ here")
    text = f"#include <cmath>\nint main() {{ return {name}::artifact[0] == 0; }}\n"
    export_cpp(ARTIFACT, tmp_path / "m.hpp", name=name, include="<cstdlib>")
    header = (tmp_path / "m.hpp").read_text().replace(ARTIFACT.model_of, "int")
    (tmp_path / "m.hpp").write_text(header)
    (tmp_path / "main.cpp").write_text('#include "m.hpp"\n' + text)
    command = ["g++", "-std=gnu++17", "-Wall", "-Wshadow", "-Werror", "-fsyntax-only", tmp_path / "main.cpp"]
    assert subprocess.run(command, cwd=REPOSITORY).returncode == 0

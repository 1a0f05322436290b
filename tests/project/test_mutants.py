"""The command that disables bounds, refusals and dtype rules, on a few lines of each language."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mutants import runtime
from mutants.explained import EXPLAINED, reason
from mutants.places import Place, has_places, switched
from native_build import REPOSITORY, run

PYTHON = '''"""Docstring."""

from __future__ import annotations

TINY = 1e-300


def refuse(x: float) -> float:
    if x < 0.0:
        raise ValueError(f"x is {x}")
    return x


def bound(x: float, moved: float) -> float:
    return (0.25 * x + 3.0 * moved) * 1.0001
'''
CPP = """#include <cstdio>
double error_of(double x) {
    return 1.0001 * (0.25 * x + 0x1p-1000) + (x > 0.0 ? 2.0 : 0.0);
}
int main() {
    double error = error_of(4.0);
    error += 0.5;
    std::printf("%.2f", error);
}
"""


def places_of(file: str, source: str) -> tuple[str, list[Place]]:
    places: list[Place] = []
    return switched(file, source, lambda place: (places.append(place), len(places) - 1)[1]), places


@pytest.fixture
def switch(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    monkeypatch.setitem(sys.modules, "approxsvm._mutants", runtime)
    return lambda n: monkeypatch.setattr(runtime, "active", n)


def test_places_of_python_become_nothing_one_by_one(switch: Callable[[int], None]) -> None:
    text, places = places_of("approxsvm/some.py", PYTHON)
    assert text.count("\n") == PYTHON.count("\n")
    assert [(place.line, place.kind) for place in places] == [(10, "refusal"), *[(15, "bound")] * 3]
    names: dict[str, Any] = {}
    exec(text, names)
    found = []
    for n in range(-1, len(places)):
        switch(n)
        found.append(round(names["bound"](4.0, 1.0), 2))
    assert found == [4.0, 4.0, 0.0, 3.0, 1.0]
    assert names["refuse"](1.0) == 1.0
    with pytest.raises(ValueError, match="x is"):
        names["refuse"](-1.0)
    switch(0)
    assert names["refuse"](-1.0) == -1.0


def test_terms_of_c_are_calls_that_headers_define(switch: Callable[[int], None]) -> None:
    text, places = places_of("cpp/include/approxsvm/exported/some.h", "error = 2.0 * after + tiny();\n")
    assert [place.text for place in places] == ["2.0 * after + tiny()", "2.0 * after", "tiny()"]
    switch(1)
    header = runtime.resolved(text.replace("APPROXSVM_MUTANT", "m_MUTANT_"))
    assert header.startswith("#define m_MUTANT_(n, term) ((n) == 1 ? 0 : (term))\n")
    assert header.endswith("error = m_MUTANT_(0, m_MUTANT_(1, 2.0 * after) + m_MUTANT_(2, tiny()));\n")


@pytest.mark.native
def test_places_of_cpp_become_nothing_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, places = places_of("cpp/include/approxsvm/some.hpp", CPP)
    assert [place.line for place in places] == [3, 3, 3, 3, 6]
    (tmp_path / "approxsvm").mkdir()
    (tmp_path / "approxsvm" / "mutants.hpp").write_text((REPOSITORY / "tests/mutants/mutants.hpp").read_text())
    (tmp_path / "some.cpp").write_text(text)
    run("c++", "-std=c++17", f"-I{tmp_path}", "-o", tmp_path / "some", tmp_path / "some.cpp")
    found = []
    for n in range(-1, len(places)):
        monkeypatch.setenv("APPROXSVM_MUTANT", str(n))
        found.append(float(run(tmp_path / "some")))
    assert found == [3.5, 0.5, 2.5, 2.5, 1.5, 0.5]


@pytest.mark.slow
def test_what_is_explained_is_there() -> None:
    files = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True).stdout.split()
    if not files:
        pytest.skip("this is no checkout")
    found = [
        place for file in files if has_places(file) for place in places_of(file, (REPOSITORY / file).read_text())[1]
    ]
    assert {place.kind for place in found} == {"bound", "refusal", "dtype", "decision"}
    assert {reason(place) for place in found} == {"", *(why for _, _, why in EXPLAINED)}

"""Nothing is released with a placeholder address; the library around an exported header builds and predicts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from conftest import REPOSITORY
from sklearn.datasets import load_iris

sys.path.append(str(REPOSITORY))  # release/ is not part of the package

from release import __main__ as release
from release.packages import write_arduino

KNOWN = 'repository = "https://example.org/approxsvm"\ncontact = "answers@example.org"\ndoi = "10.1234/approxsvm"\n'


@pytest.fixture
def tomllib() -> Any:
    return pytest.importorskip("tomllib", reason="releases are made with Python 3.11 or later")


def publisher(folder: Path, text: str) -> release.Publisher:
    (folder / "publisher.toml").write_text(text)
    return release.Publisher.read(folder / "publisher.toml")


@pytest.mark.usefixtures("tomllib")
def test_what_is_empty_is_refused(tmp_path: Path) -> None:
    with pytest.raises(click.ClickException, match="repository is '', contact is '', doi is ''".replace(", ", "; ")):
        publisher(tmp_path, 'repository = ""\ncontact = ""\ndoi = ""\n')
    with pytest.raises(click.ClickException, match="doi is 'soon'"):
        publisher(tmp_path, KNOWN.replace("10.1234/approxsvm", "soon"))


@pytest.mark.usefixtures("tomllib")
def test_every_file_is_filled_in_once_and_for_all(tmp_path: Path) -> None:
    for name, content in publisher(tmp_path, KNOWN).texts().items():
        before = (REPOSITORY / name).read_text()
        once = release.filled(before, content)
        assert content in once
        assert "has not been filled in" not in once
        assert release.filled(once, content) == once
    with pytest.raises(click.ClickException, match="0 places"):
        release.filled("nothing to fill", "x")


def test_the_filled_project_has_its_addresses(tmp_path: Path, tomllib: Any) -> None:
    texts = publisher(tmp_path, KNOWN).texts()
    project = tomllib.loads(release.filled((REPOSITORY / "pyproject.toml").read_text(), texts["pyproject.toml"]))
    assert project["project"]["urls"]["Repository"] == "https://example.org/approxsvm"
    assert "test" in project["project"]["optional-dependencies"]


def test_versions_agree() -> None:
    version = re.search(r"approxsvm VERSION ([\d.]+)", (REPOSITORY / "CMakeLists.txt").read_text())
    assert version is not None
    for name, form in (
        ("CITATION.cff", r"^version: ([\d.]+)$"),
        ("release/conda/meta.yaml", r'set version = "([\d.]+)"'),
        ("release/arduino/library.properties", r"^version=([\d.]+)$"),
        ("release/arduino/library.json", r'"version": "([\d.]+)"'),
        ("release/r/DESCRIPTION", r"^Version: ([\d.]+)$"),
    ):
        assert re.findall(form, (REPOSITORY / name).read_text(), re.MULTILINE) == [version[1]], name
    major, minor, patch = map(int, version[1].split("."))
    numbers = re.findall(r"HEADERS (?:!= )?(\d+)", (REPOSITORY / "cpp/include/approxsvm/version.hpp").read_text())
    assert numbers == 2 * [str(10000 * major + 100 * minor + patch)]


# --- C++


@pytest.mark.native
@pytest.mark.slow
def test_the_header_of_a_release(tmp_path: Path) -> None:
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler here")
    release.write_header(tmp_path)
    ran = CliRunner().invoke(release.main, ["try", str(tmp_path / "approxsvm.hpp")])
    assert ran.exit_code == 0, ran.output
    assert "approxsvm.hpp: works" in ran.output


@pytest.mark.native
@pytest.mark.slow
def test_the_recipe_for_conan(tmp_path: Path) -> None:
    """The recipe's program is built against the package in a separate cache."""
    conan = shutil.which("conan")
    if conan is None or shutil.which("cmake") is None:
        pytest.skip("conan or cmake is not installed")
    recipe = tmp_path / "release" / "conan"
    shutil.copytree(REPOSITORY / "release" / "conan", recipe)
    shutil.copytree(REPOSITORY / "cpp" / "include", tmp_path / "cpp" / "include")
    for name in ("CMakeLists.txt", "LICENSE"):
        shutil.copy(REPOSITORY / name, tmp_path)
    environment = os.environ | {"CONAN_HOME": str(tmp_path / "home")}
    for command in (["profile", "detect"], ["create", str(recipe), "-s", "compiler.cppstd=17"]):
        ran = subprocess.run([conan, *command], env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr


# --- the library around an exported header


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packages") / "Flowers"
    write_arduino(folder)
    return folder


ARDUINO = """
#include <cstdio>
struct Board {
    void begin(long) {}
    int available() { return 1; }
    float parseFloat() { float x; if (std::scanf("%f", &x) != 1) throw 0; return x; }
    void print(const char* text) { std::printf("%s", text); }
    void println(const char* text) { std::printf("%s\\n", text); }
} Serial;
#include "flowers.ino"
int main() { setup(); try { for (;;) loop(); } catch (int) {} }
"""


@pytest.mark.native
def test_the_library_for_arduino(library: Path, tmp_path: Path) -> None:
    """The library's example runs on a board simulated by a few lines of C++."""
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler here")
    (tmp_path / "board.cpp").write_text(ARDUINO.replace("\\\\", "\\"))
    include = [f"-I{library}/src", f"-I{library}/examples/flowers"]
    built = [compiler, "-std=gnu++11", "-Wall", "-Werror", *include, tmp_path / "board.cpp", "-o", tmp_path / "board"]
    subprocess.run([str(part) for part in built], check=True)
    X, y = load_iris(return_X_y=True)
    text = "\n".join(" ".join(map(str, row)) for row in X)
    ran = subprocess.run([tmp_path / "board"], input=text, capture_output=True, text=True, check=True)
    right = [a.rstrip("?") == load_iris().target_names[k] for a, k in zip(ran.stdout.split(), y, strict=True)]
    assert sum(right) > 140
    assert 0 < ran.stdout.count("?") < 100

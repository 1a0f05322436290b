"""If Python starts in the source folder, where the sources hide the installed package, the latter runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from conftest import REPOSITORY

from approxsvm import _native

IGNORED = shutil.ignore_patterns("_native*")


class Places:
    """The sources without their compiled part, and a folder with a package installed from them."""

    def __init__(self, folder: Path) -> None:
        self.sources, self.site = folder / "sources", folder / "site"
        self.sources.mkdir()
        shutil.copytree(REPOSITORY / "approxsvm", self.sources / "approxsvm", ignore=IGNORED)

    def install(self) -> None:
        shutil.copytree(REPOSITORY / "approxsvm", self.site / "approxsvm", ignore=IGNORED)
        shutil.copy(_native.__file__, self.site / "approxsvm")
        about = self.site / "approxsvm-0.1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: approxsvm\nVersion: 0.1.0\n")

    def run(self, *command: str, with_libraries: bool = True) -> subprocess.CompletedProcess[str]:
        """Run Python in the sources' folder; -S disables an editable installation's module finder."""
        libraries = [sysconfig.get_path("purelib"), *(path for path in sys.path if path.endswith("site-packages"))]
        paths = [str(self.site), *(libraries if with_libraries else [])]
        return subprocess.run(
            [sys.executable, "-S", *command],
            cwd=self.sources,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True,
            text=True,
        )


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


def test_readme_runs_beside_the_sources(places: Places) -> None:
    places.install()
    readme = (REPOSITORY / "README.md").read_text()
    snippet = "".join(re.findall(r"^```python\n(.*?)^```", readme, re.MULTILINE | re.DOTALL))
    snippet = snippet.replace("(12_000,", "(600,")  # test_documentation.py runs it as it is
    snippet += """
import json, sys
print(json.dumps([module.__file__ for name, module in sys.modules.items() if name.startswith("approxsvm.")]))
"""
    result = places.run("-W", "error", "-c", snippet)
    assert result.returncode == 0, result.stderr
    files = set(json.loads(result.stdout.splitlines()[-1]))
    only = str(places.sources / "approxsvm" / "source_tree.py")
    assert only in files
    assert all(name.startswith(str(places.site)) for name in files - {only})


def test_programs_run_beside_the_sources(places: Places) -> None:
    """Run them as modules, and in subprocesses."""
    places.install()
    assert places.run("-m", "approxsvm.cli", "--version").stdout == "approxsvm, version 0.1.0\n"
    child = "import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', 'import approxsvm; approxsvm.load'])"
    result = places.run("-c", child)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    shutil.copytree(REPOSITORY / "benchmarks", places.sources / "benchmarks", ignore=IGNORED)
    result = places.run("-m", "benchmarks", "--help")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("Usage: python -m benchmarks")


def test_other_sources_than_the_installed_ones_are_named(places: Places) -> None:
    places.install()
    (places.sources / "approxsvm" / "errors.py").write_text("nonsense\n")
    result = places.run("-c", "import approxsvm; print(approxsvm.InputError.__name__)")
    assert (result.returncode, result.stdout) == (0, "InputError\n")
    assert f"sources of approxsvm in {places.sources}/approxsvm differ from the installed package" in result.stderr
    assert str(places.site) in result.stderr


def test_sources_alone_say_what_to_do(places: Places) -> None:
    result = places.run("-c", "import approxsvm", with_libraries=False)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == (
        f"ImportError: {places.sources}/approxsvm holds the sources of approxsvm, and its compiled part is not "
        f"installed: pip install {places.sources}"
    )

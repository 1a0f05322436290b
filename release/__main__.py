"""Fill in the publisher's facts, build the source distribution and wheels, and test each in a clean environment.

    python -m release check        # list missing facts
    python -m release fill         # write repository, contact and DOI into pyproject.toml, SECURITY.md and others
    python -m release build        # dist/*.tar.gz, a wheel for this machine, and approxsvm.hpp with all C++ headers
    python -m release build --zig x86_64-linux-gnu.2.17 --zig aarch64-linux-gnu.2.17   # and manylinux wheels
    python -m release try dist/*   # install each in a new environment, away from the sources, and predict

It needs Python 3.11 and the package build; --zig also needs ziglang and wheel. The workflow
.github/workflows/wheels.yml builds wheels for Windows, macOS and every Python version; run `try` on each system.
CONTRIBUTING.md contains the checklist.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path

import click

from approxsvm.backends.cpp import one_header

REPOSITORY = Path(__file__).parent.parent
PUBLISHER = Path(__file__).with_name("publisher.toml")
# Comments that enclose the text to be filled in.
_MARKS = re.compile(r"(?P<open>(?:#|<!--) publisher(?: -->)?\n).*?(?P<close>(?:#|<!--) end of publisher)", re.DOTALL)
_SMOKE = """
import numpy as np, approxsvm
from sklearn.datasets import load_iris
from sklearn.svm import SVC
X, y = load_iris(return_X_y=True)
exact = SVC().fit(X, y)
fast = approxsvm.compile(exact, X)
assert (fast.predict(X) == exact.predict(X)).all()
fast.save("iris.asvm")
assert (approxsvm.Predictor("iris.asvm").predict(X) == exact.predict(X)).all()
print(approxsvm.__version__, fast._evaluator.native.target)
"""
# Two files of one program: the header must allow this.
_SMOKE_IN_CPP = """
#include "approxsvm.hpp"
int opened();
#ifdef OTHER
int opened() { return approxsvm::ModelOf<approxsvm::rbf>().open({}) == approxsvm::Status::ok; }
#else
int main() { return opened() + (approxsvm::ModelOf<approxsvm::rbf>().open({}) == approxsvm::Status::ok); }
#endif
"""


@dataclass(frozen=True)
class Publisher:
    """The contents of publisher.toml."""

    repository: str
    contact: str
    doi: str

    @classmethod
    def read(cls, path: Path = PUBLISHER) -> Publisher:
        """Read and check the file.

        Raises
        ------
        ClickException
            A value is empty or malformed.
        """
        import tomllib

        known = tomllib.loads(path.read_text(encoding="utf-8"))
        forms = {"repository": r"https://\S+[^/]", "contact": r"\S+@\S+\.\S+|https://\S+", "doi": r"10\.\d{4,}/\S+"}
        wrong = [
            f"{name} is {known.get(name)!r}" for name in forms if not re.fullmatch(forms[name], known.get(name, ""))
        ]
        if wrong:
            raise click.ClickException(f"{path}: {'; '.join(wrong)}: only the publisher knows")
        return cls(**{name: known[name] for name in forms})

    def texts(self) -> dict[str, str]:
        """Return the text between the marks for each file."""
        url, contact = self.repository, self.contact
        return {
            "pyproject.toml": (
                f'[project.urls]\nRepository = "{url}"\nIssues = "{url}/issues"\n'
                f'Changelog = "{url}/blob/main/CHANGELOG.md"\n\n'
            ),
            "CITATION.cff": f'repository-code: "{url}"\ndoi: "{self.doi}"\n',
            "SECURITY.md": f"The address is {contact}.\n",
            "CODE_OF_CONDUCT.md": f"The address is {contact}.\n",
            "docs/index.md": f"The sources: `git clone {url}`.\n",
            ".github/ISSUE_TEMPLATE/config.yml": (
                f"contact_links:\n  - name: A security problem, or a certified label that is wrong\n"
                f"    url: {url}/blob/main/SECURITY.md\n"
                "    about: Write to the maintainers instead of opening a public issue.\n"
            ),
        }


def filled(text: str, content: str) -> str:
    """Return a file with new contents between its marks; repeating the call changes nothing.

    Raises
    ------
    ClickException
        The file has no marks, or has several.
    """
    found, count = _MARKS.subn(lambda match: match["open"] + content + match["close"], text)
    if count != 1:
        raise click.ClickException(f"{count} places to fill in, expected 1")
    return found


def _run(*command: str | Path, **options: object) -> None:
    click.echo("$ " + " ".join(map(str, command)), err=True)
    subprocess.run(list(map(str, command)), check=True, **options)  # type: ignore[call-overload]


@click.group(help=(__doc__ or "").replace("\n\n    ", "\n\n\b\n    "))
def main() -> None:
    """Parts of a release."""


@main.command()
def check() -> None:
    """List missing facts."""
    click.echo(Publisher.read())


@main.command()
def fill() -> None:
    """Write repository, contact and DOI into all files."""
    for name, content in Publisher.read().texts().items():
        path = REPOSITORY / name
        path.write_text(filled(path.read_text(encoding="utf-8"), content), encoding="utf-8")
        click.echo(name)


@main.command()
@click.option("--zig", "targets", multiple=True, help="A target of zig, such as x86_64-linux-gnu.2.17.")
@click.option("--unpublished", is_flag=True, help="Build although publisher.toml is empty.")
@click.option("--out", type=click.Path(path_type=Path), default=REPOSITORY / "dist")
def build(targets: tuple[str, ...], unpublished: bool, out: Path) -> None:
    """Build the source distribution, wheels from it, and the C++ headers as one file."""
    if not unpublished:
        expected = Publisher.read().texts()
        texts = {name: (REPOSITORY / name).read_text(encoding="utf-8") for name in expected}
        if stale := [name for name, text in texts.items() if filled(text, expected[name]) != text]:
            raise click.ClickException(f"{', '.join(stale)}: run fill first")
    _run(sys.executable, "-m", "build", "--sdist", "--outdir", out, REPOSITORY)
    sources = max(out.glob("approxsvm-*.tar.gz"), key=lambda path: path.stat().st_mtime)
    wheel: list[str | Path] = [sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", out, sources]
    _run(*wheel)
    for target in targets:
        _wheel_by_zig(target, wheel, out)
    write_header(out)


def write_header(out: Path) -> None:
    """Write approxsvm.hpp, which combines the C++ library headers of these sources."""
    (out / "approxsvm.hpp").write_text(one_header(REPOSITORY / "cpp" / "include"), encoding="utf-8")


def _wheel_by_zig(target: str, wheel: list[str | Path], out: Path) -> None:
    """Build a wheel for another glibc or processor, with this machine's Python headers."""
    package = importlib.util.find_spec("ziglang")
    if package is None or not package.submodule_search_locations:
        raise click.ClickException("--zig needs the package ziglang")
    environment = os.environ | {"PATH": f"{package.submodule_search_locations[0]}{os.pathsep}{os.environ['PATH']}"}
    form = re.fullmatch(r"(\w+)-linux-gnu\.(\d+)\.(\d+)", target)
    if form is None:
        raise click.ClickException(f"{target} is not a target such as x86_64-linux-gnu.2.17")
    processor, *glibc = form.groups()
    suffix = f".cpython-{sys.version_info.major}{sys.version_info.minor}-{processor}-linux-gnu.so"
    defined = {
        "CMAKE_TOOLCHAIN_FILE": REPOSITORY / "cpp" / "cmake" / "zig.cmake",
        "ZIG_TARGET": target,
        "PYTHON_MODULE_EXTENSION": suffix,
    }
    options = (part for name, value in defined.items() for part in ("-C", f"cmake.define.{name}={value}"))
    with tempfile.TemporaryDirectory() as folder:
        here = [folder if part == out else part for part in wheel]
        _run(*here, *options, env=environment)
        (built,) = Path(folder).glob("*.whl")
        tag = f"manylinux_{'_'.join(glibc)}_{processor}"
        _run(sys.executable, "-m", "wheel", "tags", "--platform-tag", tag, "--remove", built)
        for tagged in Path(folder).glob("*.whl"):
            shutil.copy(tagged, out)


@main.command("try")
@click.argument("files", nargs=-1, type=click.Path(exists=True, path_type=Path, resolve_path=True))
def try_out(files: tuple[Path, ...]) -> None:
    """Install each file in an empty environment and predict there; compile a program with the header."""
    for file in files:
        with tempfile.TemporaryDirectory() as folder:
            if file.suffix == ".hpp":
                _try_header(file, Path(folder))
                continue
            venv.create(folder, with_pip=True)
            python = Path(folder) / ("Scripts" if os.name == "nt" else "bin") / "python"
            _run(python, "-m", "pip", "install", "-q", file, cwd=folder)
            _run(python, "-c", _SMOKE, cwd=folder)
            _run(python.with_name("approxsvm"), "--version", cwd=folder)
            click.echo(f"{file.name}: works")


def _try_header(header: Path, folder: Path) -> None:
    (folder / "main.cpp").write_text(_SMOKE_IN_CPP)
    (folder / "other.cpp").write_text("#define OTHER\n" + _SMOKE_IN_CPP)
    include = f"-I{header.parent}"
    for standard in ("c++17", "c++20"):
        _run("c++", f"-std={standard}", "-O0", include, "main.cpp", "other.cpp", "-o", "program", cwd=folder)
        _run(folder / "program")
    click.echo(f"{header.name}: works")


if __name__ == "__main__":
    main()

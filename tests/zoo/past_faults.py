"""Past faults, each as edits that restore it; the zoo must find each one without the test written for it.

    python -m tests.zoo.past_faults                   # all, each in a copy of the sources
    python -m tests.zoo.past_faults --only sparse     # only some

The edits are applied to a copy of the tree, in which C++ is built, which takes minutes. The selection of test_zoo.py
runs there until an entry shows a fault that it does not show without the edits. The exit status is 1 if some are not
found.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import click

sys.path.extend([str(Path(__file__).parents[1]), str(Path(__file__).parents[2])])  # for tests and benchmarks

import approxsvm._native
from approxsvm.errors import UnsupportedModelError
from zoo.composed import entry_faults, quiet
from zoo.executors import Executor
from zoo.executors.every import EVERY
from zoo.refused import REFUSED
from zoo.sources import ZOO, specimen
from zoo.workers import prepare

REPOSITORY = Path(__file__).parents[2]
_ENTRIES = ZOO | {entry.name: entry for several in REFUSED.values() for entry in several}

# The package of an editable installation would be imported instead of the copy.
_SITE_CUSTOMIZE = """\
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "ScikitBuildRedirectingFinder"]
"""


@dataclass(frozen=True)
class Edit:
    """Lines that occur exactly once in a file, and their replacement."""

    file: str
    old: str
    new: str

    def applied(self, tree: Path) -> str:
        """Return the file's text with the new lines; raise ValueError unless the old ones occur exactly once."""
        text = (tree / self.file).read_text()
        if text.count(self.old) != 1:
            raise ValueError(f"{self.file}: {text.count(self.old)} times: {self.old!r}")
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class PastFault:
    """A fault that the package once had."""

    name: str
    what: str
    edits: tuple[Edit, ...]
    first: str  # a regular expression for entries that are tried first

    @property
    def is_native(self) -> bool:
        return any(edit.file.startswith("cpp/") for edit in self.edits)


def past_faults() -> list[PastFault]:
    """Read past_faults.diff."""
    found = []
    for part in Path(__file__).with_suffix(".diff").read_text().split("\n== ")[2:]:
        header, _, edits = part.partition("\n--- ")
        title, what = header.split("\n")
        name, first = title.removesuffix(")").split(" (", 1)
        found.append(PastFault(name, what, tuple(map(_edit, edits.split("\n--- "))), first))
    return found


def _edit(text: str) -> Edit:
    file, *lines = text.strip("\n").split("\n")
    old, new = ("".join(f"{line[1:]}\n" for line in lines if line.startswith(sign)) for sign in "-+")
    return Edit(file, old, new)


# --- in a copy of the tree


def write_tree(tree: Path, fault: PastFault) -> None:
    """Copy the sources, and restore the fault."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.split("\0")
    for file in filter(None, listed):
        if (REPOSITORY / file).is_file():
            (tree / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(REPOSITORY / file, tree / file)
    (tree / "sitecustomize.py").write_text(_SITE_CUSTOMIZE)
    for edit in fault.edits:
        (tree / edit.file).write_text(edit.applied(tree))
    built = _build(tree) if fault.is_native else Path(approxsvm._native.__file__).parent
    shutil.copytree(built, tree / "approxsvm", ignore=shutil.ignore_patterns("*.py"), dirs_exist_ok=True)


def _build(tree: Path) -> Path:
    """Compile a copy's C++ for one instruction set, and return the folder with the result."""
    site = tree / "site"
    defined = {"APPROXSVM_TARGETS": "avx2", "CMAKE_CXX_FLAGS_RELEASE": "-O1"}
    options = ["-q", "--no-deps", "--no-build-isolation", "--target", site]
    options += [f"-Ccmake.define.{name}={value}" for name, value in defined.items()]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, tree], check=True)
    return site / "approxsvm"


@cache
def _prepared(executors: str) -> list[Executor]:
    """Prepare executors whose names match a regular expression, in a folder that is removed at exit."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    chosen = [one for one in EVERY if re.search(executors, one.name)]
    prepare(chosen, Path(folder))
    return chosen


def entry_words(name: str, executors: str) -> list[str]:
    """Return an entry's faults in the selection of test_zoo.py."""
    with quiet() as folder:
        try:
            one = specimen(_ENTRIES[name], folder)
            return [str(fault) for fault in entry_faults(one, _prepared(executors), 0)[1]]
        except UnsupportedModelError as error:
            return [] if name not in ZOO else [str(error)]
        except Exception as error:  # counts as a fault
            return [f"{type(error).__name__}: {error}"]


@cache
def _faults_without(name: str, executors: str) -> frozenset[str]:
    return frozenset(map(_kind, entry_words(name, executors)))


def _kind(words: str) -> str:
    return re.sub(r"[-+]?[0-9][0-9.e+-]*", "#", words)[:100]


def search(tree: Path, fault: PastFault, executors: str, seconds: float) -> str:
    """Return the first fault that an entry shows only in the copy, or "" if it shows no such fault."""
    code = "import sys; sys.path[:0] = ['tests', '.']; from zoo import past_faults; past_faults.report(*sys.argv[1:])"
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    errors = tree / "stderr"
    command = [sys.executable, "-c", code, fault.first, executors]
    with (
        errors.open("w") as stderr,
        subprocess.Popen(
            command, cwd=tree, env=environment, stdout=subprocess.PIPE, stderr=stderr, text=True
        ) as process,
    ):
        end, n_entries = time.monotonic() + seconds, 0
        assert process.stdout is not None
        for line in process.stdout:
            name, found = json.loads(line)
            n_entries += 1
            new = [words for words in found if _kind(words) not in _faults_without(name, executors)]
            if new or time.monotonic() > end:
                process.kill()
                return f"entry {n_entries}, {name}: {new[0]}" if new else ""
    if process.returncode:
        died = f"the process died: {errors.read_text()[-500:]}"
        if not n_entries:
            raise RuntimeError(died)
        return died
    return ""


def report(first: str, executors: str) -> None:
    """Print all entries' faults, one line of JSON per entry; entries whose names match come first."""
    assert Path(approxsvm.__file__).parents[1] == Path.cwd(), approxsvm.__file__
    for name in sorted(_ENTRIES, key=lambda name: not re.search(first, name)):
        print(json.dumps([name, entry_words(name, executors)]), flush=True)


@click.command(help=__doc__)
@click.option("--only", default="", help="Faults whose name has this in it.")
@click.option("--executors", default="", help="A regular expression: these alone.")
@click.option("--seconds", default=600.0, show_default=True, help="For each fault, at most.")
def main(only: str, executors: str, seconds: float) -> None:
    missed = []
    for fault in [fault for fault in past_faults() if only in fault.name]:
        with tempfile.TemporaryDirectory() as folder:
            write_tree(Path(folder), fault)
            start = time.monotonic()
            found = search(Path(folder), fault, executors, seconds)
        click.echo(f"{fault.name}: {found[:300] or 'NOT FOUND'} ({time.monotonic() - start:.0f} s)")
        missed += [] if found else [fault.name]
    click.echo(f"not found: {', '.join(missed) or 'none'}")
    sys.exit(int(bool(missed)))


if __name__ == "__main__":
    main()

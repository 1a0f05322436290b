"""Disable each bound, refusal and dtype rule in turn, and list those that no test notices.

    python -m tests.mutants                           all places, with the fast tests
    python -m tests.mutants tests/zoo --only bound    only bounds, with other tests

A copy of the sources with switches is built once, in build/mutants; a second call continues with the places that are
still unnoticed. Exit status 0: explained.py explains every unnoticed place.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from .explained import reason
from .places import Place, has_places, switched

HERE = Path(__file__).parent
REPOSITORY = HERE.parent.parent
FOLDER = REPOSITORY / "build" / "mutants"
TREE, SITE = FOLDER / "tree", FOLDER / "site"
_TESTS = ("tests", "-m", "not native and not lint and not slow and not attack")
# An editable installation's package would be imported instead of the tree's.
_SITE_CUSTOMIZE = """\
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "ScikitBuildRedirectingFinder"]
"""


def write_tree(tree: Path, files: Sequence[str]) -> list[Place]:
    """Write sources with switches, and copies of other files; return the places, indexed by number."""
    places: list[Place] = []
    shutil.rmtree(tree / "tests", ignore_errors=True)  # files that no longer exist

    def number(place: Place) -> int:
        places.append(place)
        return len(places) - 1

    for file in sorted(
        files, key=lambda file: not file.startswith("cpp/")
    ):  # C++ comes first: it is slow to build, and so keeps its numbers
        content = (REPOSITORY / file).read_bytes()
        if has_places(file):
            content = switched(file, content.decode(), number).encode()
        _write(tree / file, content)
    _write(tree / "cpp" / "include" / "approxsvm" / "mutants.hpp", (HERE / "mutants.hpp").read_bytes())
    _write(tree / "approxsvm" / "_mutants.py", (HERE / "runtime.py").read_bytes())
    _write(tree / "sitecustomize.py", _SITE_CUSTOMIZE.encode())
    return places


def _write(path: Path, content: bytes) -> None:
    """Write a file unless it already has these contents, so that only changed files are recompiled."""
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _tracked() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return [file for file in listed.split("\0") if file and (REPOSITORY / file).is_file()]


def _build() -> None:
    """Install the tree into SITE, for one instruction set, unless its sources are unchanged since the last call."""
    own = [
        file for file in TREE.rglob("*") if file.is_file() and file.relative_to(TREE).parts[0] in ("approxsvm", "cpp")
    ]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(own))).hexdigest()
    stamp = FOLDER / "built"
    if stamp.exists() and stamp.read_text() == digest:
        return
    for stale in (stamp, FOLDER / "results.jsonl", *FOLDER.glob("record-*.jsonl")):
        stale.unlink(missing_ok=True)
    shutil.rmtree(SITE, ignore_errors=True)
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "--target",
        SITE,
        TREE,
    ]
    target = os.environ.get("APPROXSVM_TARGET", "avx2")
    defined = {"APPROXSVM_TARGETS": target, "CMAKE_CXX_FLAGS_RELEASE": "-O1"}
    subprocess.run([*command, *(f"-Ccmake.define.{name}={value}" for name, value in defined.items())], check=True)
    stamp.write_text(digest)


def _pytest(*options: str) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (SITE, TREE))),
        "APPROXSVM_DATA": os.environ.get("APPROXSVM_DATA", str(REPOSITORY.parent / "shared")),
    }
    plugins = ("-p", "tests.mutants.plugin", "-p", "no:cacheprovider", "-q", "--no-header", "-rN", f"--rootdir={TREE}")
    subprocess.run([sys.executable, "-m", "pytest", *plugins, *options], cwd=TREE, env=environment, check=False)


def main() -> int:
    """Build, record, run, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", metavar="REGEX", help="of lines FILE:LINE: KIND: TEXT")
    parser.add_argument("--seconds", type=float, default=60.0, help="of tests for one place, at most")
    parser.add_argument("--minutes", type=float, default=1e6, help="of all")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--record", action="store_true", help="find anew which places each test reaches")
    parser.add_argument("--list", action="store_true", help="list places, and run nothing")
    arguments, tests = parser.parse_known_args()
    places = write_tree(TREE, _tracked())
    chosen = [n for n, place in enumerate(places) if re.search(arguments.only, str(place))]
    if arguments.list:
        print("\n".join(str(places[n]) for n in chosen))
        return 0
    _build()
    selected, result_file = tests or list(_TESTS), FOLDER / "results.jsonl"
    record_file = FOLDER / f"record-{hashlib.sha256(json.dumps(selected).encode()).hexdigest()[:12]}.jsonl"
    if arguments.record:
        record_file.unlink(missing_ok=True)
    _pytest(*selected, "--mutants-record", str(record_file))
    reached = {n for line in record_file.read_text().splitlines() for n in json.loads(line)["places"]}
    chosen = [n for n in chosen if n in reached or -1 - n not in reached]
    results = _results(result_file)
    plan = {
        "numbers": [n for n in chosen if n in reached and not (n in results and results[n]["by"])],
        "files": {n: place.file for n, place in enumerate(places)},
        "record": str(record_file),
        "jobs": arguments.jobs,
        "seconds": arguments.seconds,
        "total_seconds": 60.0 * arguments.minutes,
        "results": str(result_file),
    }
    (FOLDER / "plan.json").write_text(json.dumps(plan))
    if plan["numbers"]:
        _pytest(*selected, "--mutants-plan", str(FOLDER / "plan.json"))
    return report({n: places[n] for n in chosen}, _results(result_file), reached)


def _results(path: Path) -> dict[int, Any]:
    lines = path.read_text().splitlines() if path.exists() else []
    return {found["number"]: found for found in map(json.loads, lines)}


def report(places: Mapping[int, Place], results: Mapping[int, Any], reached: Set[int]) -> int:
    """Print the unnoticed places and a table by file; return 0 if all unnoticed places are explained."""
    table: dict[str, Counter[str]] = {}
    for n, place in places.items():
        found, why = results.get(n), reason(place)
        if found is None:
            verdict = "not run" if n in reached else "unreached"
        elif found["by"]:
            verdict = "noticed"
        else:
            verdict = "unnoticed" if found["tests"] == found["of"] else "in part"
        verdict = "explained" if why and verdict != "noticed" else verdict
        table.setdefault(place.file, Counter())[verdict] += 1
        if verdict != "noticed":
            print(f"{verdict}: {place}" + (f" ({why})" if verdict == "explained" else ""))
    verdicts = ("noticed", "explained", "unnoticed", "in part", "unreached", "not run")
    print(f"{'':60}", *(f"{verdict:>10}" for verdict in ("places", *verdicts)))
    for file, counts in [*sorted(table.items()), ("all", sum(table.values(), Counter()))]:
        print(f"{file:60}", *(f"{number:10}" for number in (counts.total(), *(counts[one] for one in verdicts))))
    return int(any(counts[one] for counts in table.values() for one in verdicts[2:]))


if __name__ == "__main__":
    sys.exit(main())

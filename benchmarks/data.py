"""Data sets and models for the benchmarks and tests: list, fetch, train, or generate stand-ins.

    python -m benchmarks.data                      # list source, licence, bytes, SHA-256, and what is present
    python -m benchmarks.data a9a a9a.t            # fetch these
    python -m benchmarks.data a9a_g0.01.model      # train a model with LIBSVM, after fetching its data
    python -m benchmarks.data --all                # everything: 25 MB of downloads, and minutes of training
    python -m benchmarks.data --synthetic          # no network: random rows and models of the same shapes, in a minute

Files go to data/ and models/ in the folder named by APPROXSVM_DATA (default: ../shared if it exists, else build/data).
An interrupted download is resumed. Downloads are compared with the hashes in data_sets.json: hashes of the bytes or,
where LIBSVM's page may format numbers differently, of the numbers. The licences are stated by the sources; none of our
packages includes the data. The hashes belong to the files with which the published figures were measured. The addresses
were written down without network access to test them: please open an issue if one has moved.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import shlex
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.data_table import Entry, entries
from benchmarks.experiment import STAND_INS, data_root
from benchmarks.problems import write_text
from benchmarks.synthetic import make

_TRIES: Final = 4
_TIMEOUT_SECONDS: Final = 30
_BLOCK: Final = 1 << 18


# --- fetching


def fetch(entry: Entry, root: Path, mirror: str | None = None) -> None:
    """Download, convert and compare a file, then move it into place.

    Raises ClickException if no source has the file or its contents differ; then nothing is kept.
    """
    pieces = [_first_that_answers(sources, root, mirror) for sources in entry.about["sources"]]
    content = b"".join(pieces)
    if not entry.is_ours(content):
        digest = hashlib.sha256(content).hexdigest()
        raise click.ClickException(f"{entry.name}: SHA-256 is {digest}, expected {entry.about['sha256']}; not kept")
    entry.write(root, content)
    click.echo(f"{entry.path(root)}: {len(content):,} bytes, as in the table")


def _first_that_answers(sources: Iterable[str], root: Path, mirror: str | None) -> bytes:
    problems = []
    for source in sources:
        try:
            return _of_openml(source) if source.startswith("openml:") else _of_url(source, root, mirror)
        except (OSError, EOFError, lzma.LZMAError) as error:
            problems.append(f"{source}: {error}")
    raise click.ClickException("; ".join(problems))


def _of_openml(source: str) -> bytes:
    from sklearn.datasets import fetch_openml

    X, y = fetch_openml(data_id=int(source.partition(":")[2]), as_frame=False, return_X_y=True, parser="liac-arff")
    return _as_libsvm(y.astype(float), X)


def _of_url(url: str, root: Path, mirror: str | None) -> bytes:
    if mirror is not None:
        url = mirror.rstrip("/") + urlsplit(url).path
    packed = downloaded(url, root / "downloads")
    suffix = Path(urlsplit(url).path).suffix
    content = packed.read_bytes()
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    elif suffix in (".bz2", ".xz"):
        content = {".bz2": bz2, ".xz": lzma}[suffix].decompress(content)
    if Path(url).name.startswith("zip."):  # USPS: digit and pixels in plain columns
        table = np.loadtxt(content.decode().splitlines())
        content = _as_libsvm(table[:, 0] + 1, table[:, 1:])
    packed.unlink()
    return content


def _as_libsvm(y: Any, X: Any) -> bytes:
    rows = (" ".join(f"{j + 1}:{row[j]:.17g}" for j in np.flatnonzero(row)) for row in X)
    return "".join(f"{label:.17g} {row}\n" for label, row in zip(y, rows, strict=True)).encode()


def downloaded(url: str, folder: Path, pause_seconds: float = 1.0) -> Path:
    """Download a file, resuming an earlier attempt if there was one.

    Raises OSError if the file does not exist or every attempt was interrupted.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{hashlib.sha256(url.encode()).hexdigest()[:8]}-{Path(urlsplit(url).path).name}"
    part = path.with_name(f"{path.name}.part")
    for k in range(_TRIES):
        try:
            _append(url, part)
        except OSError as error:
            is_final = isinstance(error, urllib.error.HTTPError) and error.code < 500
            if is_final or k == _TRIES - 1:
                raise
            click.echo(f"{url}: {error}; again in {pause_seconds * 2**k:g} s", err=True)
            time.sleep(pause_seconds * 2**k)
        else:
            part.replace(path)
            return path
    raise AssertionError("the last try returns or raises")


def _append(url: str, part: Path) -> None:
    """Append the missing bytes; start over if the server does not support ranges."""
    n_here = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={n_here}-"} if n_here else {})
    try:
        answer = urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        if error.code == 416 and error.headers.get("Content-Range", "") == f"bytes */{n_here}":
            return  # the file is complete
        raise
    with answer, part.open("ab" if answer.status == 206 else "wb") as file:
        expected = answer.headers.get("Content-Length")
        n_read = 0
        while block := answer.read(_BLOCK):
            file.write(block)
            n_read += len(block)
    if expected is not None and n_read < int(expected):
        raise ConnectionError(f"{n_read:,} of {int(expected):,} bytes received")


# --- training


def command_of(entry: Entry) -> str:
    """Return the LIBSVM command that trains a model, to be run in a folder with its data."""
    return f"svm-train -m 3000 {entry.about['options']} {entry.about['data']} {entry.name}"


def train(entry: Entry, root: Path) -> None:
    """Train with svm-train if it is installed, otherwise with the same library from libsvm-official."""
    command = command_of(entry)
    click.echo(f"$ {command}")
    with tempfile.TemporaryDirectory() as scratch:
        rows, model = Path(scratch) / str(entry.about["data"]), Path(scratch) / entry.name
        write_text(root / "data", rows.name, rows)
        if shutil.which("svm-train"):
            subprocess.run(shlex.split(command), cwd=scratch, check=True, stdout=subprocess.DEVNULL)
        else:
            from libsvm import svmutil

            y, X = svmutil.svm_read_problem(str(rows), return_scipy=True)
            svmutil.svm_save_model(str(model), svmutil.svm_train(y, X, f"-q -m 3000 {entry.about['options']}"))
        content = model.read_bytes()
    same = "as in the table" if entry.is_ours(content) else "not those of the table: LIBSVM's builds round differently"
    entry.write(root, content)
    vectors = content.partition(b"total_sv ")[2].split(maxsplit=1)[0].decode()
    click.echo(f"{entry.path(root)}: {vectors} support vectors (the table: {entry.about['vectors']:,}), bytes {same}")


# --- the command


def _shown(root: Path) -> Iterator[Table]:
    for folder, columns in (("data", ("licence", "sources")), ("models", ("trained by",))):
        table = Table("name", "here", "bytes", "SHA-256", *columns, title=f"{folder}, in {root / folder}")
        for entry in (e for e in entries().values() if e.folder == folder):
            about = entry.about
            more = [command_of(entry)] if folder == "models" else []
            if folder == "data":
                more = [str(about["licence"]), " + ".join(" or ".join(sources) for sources in about["sources"])]
            here = "yes" if entry.path(root).exists() else "-"
            table.add_row(entry.name, here, f"{about['bytes']:,}", str(about["sha256"]), *more)
        yield table


@click.command(help=__doc__.replace("\n\n    ", "\n\n\b\n    ") if __doc__ else None)
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Fetch all data, then train all models.")
@click.option("--synthetic", is_flag=True, help="Generate stand-ins of the same shapes, without a network.")
@click.option("--mirror", help="Server with the same paths that replaces the hosts in the table.")
def main(names: tuple[str, ...], everything: bool, synthetic: bool, mirror: str | None) -> None:
    """List, fetch, train, or generate."""
    root, known = data_root(), entries()
    if unknown := [name for name in names if name not in known]:
        raise click.ClickException(f"unknown data or model: {', '.join(unknown)}; without names all are listed")
    chosen = list(known) if everything else list(names)
    if synthetic:
        make(root, [known[name] for name in chosen or known])
        return
    if not chosen:
        console = Console() if Console().is_terminal else Console(width=400)
        for table in _shown(root):
            console.print(table)
        return
    if (root / STAND_INS).exists():
        raise click.ClickException(f"{root} contains stand-ins: set APPROXSVM_DATA to another folder, or delete it")
    missing = partial(_missing, known, root)
    for name in missing(chosen):
        entry = known[name]
        train(entry, root) if entry.folder == "models" else fetch(entry, root, mirror)


def _missing(known: Mapping[str, Entry], root: Path, chosen: Iterable[str]) -> list[str]:
    """List the chosen files that are missing, with each model's data before the model."""
    mnist = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte")
    needed = []
    for name in chosen:
        data = known[name].about.get("data")
        needed += [*(mnist if data == "mnist1" else [data] if data else []), name]
    return [name for name in dict.fromkeys(needed) if not known[name].path(root).exists()]


if __name__ == "__main__":
    main()

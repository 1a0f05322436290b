"""Stand-ins for the data sets: random rows with the shape, classes and number type of each set, and models on them.

They let every benchmark and test run on any machine, with no network access. Times measured on them have the right
order of magnitude; accuracies and certified fractions are meaningless, and records of such runs are marked.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from sklearn.datasets import dump_svmlight_file

from benchmarks.data_table import Entry, entries
from benchmarks.experiment import STAND_INS

Array = npt.NDArray[Any]
_LATENT = 6  # number of directions in which the classes differ
_CENTERS = 4  # per class
_NOISE = 0.55
_WEIGHT = 0.01  # weight of a support vector, in units of C, for which decision values are about 1, as in trained models
_SIDE_SHARE = 1 / 7  # fraction of an image that is empty on each side


def make(root: Path, chosen: Sequence[Entry]) -> None:
    """Write stand-ins for these files.

    Raises ClickException if the folder contains real data.
    """
    mark = root / STAND_INS
    if not mark.exists() and any(any((root / folder).glob("*")) for folder in ("data", "models")):
        raise click.ClickException(f"{root} contains real data; stand-ins need a separate folder: set APPROXSVM_DATA")
    root.mkdir(parents=True, exist_ok=True)
    mark.write_text("Random rows and models, made by python -m benchmarks.data --synthetic\n")
    for entry in chosen:
        entry.write(root, _model(entry) if entry.folder == "models" else _data(entry.name, entry.about))
        click.echo(f"{entry.path(root)}: a stand-in")


def _data(name: str, about: Any) -> bytes:
    """Generate the file's contents; test files are drawn from the distribution of their training files."""
    if "ubyte" in name:
        return _idx(name, about["rows"])
    if about["kind"] == "adult":
        return _adult(about["rows"])
    X, y = rows(name, about)
    if about["kind"] == "covtype":
        text = io.StringIO()
        np.savetxt(text, np.column_stack([X.toarray(), y]).astype(np.int16), fmt="%d", delimiter=",")
        return text.getvalue().encode()
    return _text(X, y)


def _text(X: Any, y: Array) -> bytes:
    stream = io.BytesIO()
    dump_svmlight_file(X, y, stream, zero_based=False)
    return stream.getvalue()


def _adult(n_rows: int) -> bytes:
    """Generate a table like UCI's, of numbers, strings and missing values; labels depend on three columns."""
    rng = np.random.default_rng(0)
    numbers = {0: (17, 90), 2: (12_285, 500_000), 4: (1, 17), 10: (0, 9_000), 11: (0, 2_000), 12: (1, 99)}
    columns = [
        rng.integers(*numbers[j], n_rows) if j in numbers else rng.choice(["?", *(f"v{k}" for k in range(7))], n_rows)
        for j in range(14)
    ]
    rich = columns[0] / 30 + columns[4] / 5 + (columns[3] == "v1") + rng.normal(size=n_rows) > 5
    columns.append(np.where(rich, ">50K", "<=50K"))
    return "".join(", ".join(map(str, row)) + "\n" for row in zip(*columns, strict=True)).encode()


def rows(name: str, about: Any) -> tuple[csr_array, Array]:
    """Generate rows and labels, or targets if the file has no labels."""
    family = np.random.default_rng(zlib.crc32(name.removesuffix(".t").encode()))  # the distribution
    rng = np.random.default_rng(zlib.crc32(f"{name}, rows".encode()))  # draws from it
    n, d, labels = about["rows"], about["features"], about.get("labels", list(range(1, 8)))
    classes = rng.integers(0, max(len(labels), 1), n)
    centers = family.normal(size=(max(len(labels), 1), _CENTERS, _LATENT))
    latent = centers[classes, rng.integers(0, _CENTERS, n)] + _NOISE * rng.normal(size=(n, _LATENT))
    seen = latent @ family.normal(size=(_LATENT, d)) + 0.3 * rng.normal(size=(n, d))
    X = _numbers(about, seen, family)
    if labels:
        return X, np.asarray(labels)[classes].astype(float)
    return X, np.round(10.0 + 5.0 * np.tanh(latent[:, 0]) + 3.0 * np.sin(latent[:, 1]), 3)


def _numbers(about: Any, seen: Array, family: np.random.Generator) -> csr_array:
    kind, d = about["kind"], seen.shape[1]
    if kind == "covtype":
        return csr_array(
            np.column_stack([np.round(200.0 + 60.0 * seen[:, :10]), _one_of(seen, 10, 4), _one_of(seen, 14, 40)])
        )
    if kind == "pixels":
        return csr_array(np.round(np.clip(seen, -1.0, 1.0), 3))
    share = about["nonzeros"] / d
    if kind == "binary":
        order = seen + family.normal(size=d)  # makes some features more frequent
        kept = order >= np.quantile(order, 1.0 - share, axis=1)[:, np.newaxis]
        return csr_array(np.where(kept, about["high"], 0.0))
    low, high = about["low"], about["high"]
    numbers = np.round(low + (high - low) / (1.0 + np.exp(-seen)), about.get("digits", 6))
    numbers[np.abs(seen) < np.quantile(np.abs(seen), 1.0 - share)] = 0.0
    return csr_array(numbers)


def _one_of(seen: Array, first: int, n: int) -> Array:
    return np.eye(n)[seen[:, first : first + n].argmax(axis=1)]


def _idx(name: str, n: int) -> bytes:
    """Generate synthetic files in MNIST format: images of ten blurred shapes with an empty margin, and their labels."""
    part = name.partition("-")[0]
    family, rng = np.random.default_rng(7), np.random.default_rng(zlib.crc32(part.encode()))
    digits = rng.integers(0, 10, n)
    if "labels" in name:
        return struct.pack(">II", 2049, n) + digits.astype(np.uint8).tobytes()
    side = np.arange(28)
    across = np.exp(-0.5 * ((side[:, np.newaxis] - family.uniform(7, 20, size=(1, 60))) / 1.6) ** 2)
    down = np.exp(-0.5 * ((side[:, np.newaxis] - family.uniform(7, 20, size=(1, 60))) / 1.6) ** 2)
    spots = np.einsum("ik,jk->kij", down, across).reshape(60, -1)
    weights = (family.random((10, 60)) < 0.2)[digits] * rng.uniform(0.5, 1.2, size=(n, 60))
    pictures = weights.astype(np.float32) @ spots.astype(np.float32)
    pixels = np.clip(255 * pictures, 0, 255).astype(np.uint8)
    margin = int(28 * _SIDE_SHARE)
    inside = (side >= margin) & (side < 28 - margin)
    pixels *= (inside[:, np.newaxis] & inside).reshape(-1).astype(np.uint8)
    pixels[pixels < 24] = 0
    return struct.pack(">IIII", 2051, n, 28, 28) + pixels.tobytes()


def _model(entry: Entry) -> bytes:
    """Generate a model with equal weights in each class: its decision function is a difference of density estimates."""
    about, rng = entry.about, np.random.default_rng(zlib.crc32(entry.name.encode()))
    if about["data"] == "mnist1":
        pixels, digits = (_idx(f"train-{kind}", 60_000) for kind in ("images", "labels"))
        X = np.frombuffer(pixels, np.uint8, offset=16).reshape(-1, 784)[:, :780] / 255.0
        y = np.where(np.frombuffer(digits, np.uint8, offset=8) == 1, 1, -1)
    else:
        sparse, y = rows(about["data"], entries()[about["data"]].about)
        X = sparse.toarray()
    n_positive = about["vectors"] // 2
    first, second = (
        rng.choice(np.flatnonzero(y == label), n) for label, n in ((1, n_positive), (-1, about["vectors"] - n_positive))
    )
    C, gamma = (float(about["options"].split()[k]) for k in (1, 3))
    weight = _WEIGHT * C
    weights = np.concatenate([np.full(len(first), weight), np.full(len(second), -weight * len(first) / len(second))])
    head = (
        f"svm_type c_svc\nkernel_type rbf\ngamma {gamma:.17g}\nnr_class 2\ntotal_sv {about['vectors']}\nrho 0\n"
        f"label 1 -1\nnr_sv {len(first)} {len(second)}\nSV\n"
    )
    stream = io.BytesIO()
    dump_svmlight_file(csr_array(X[np.concatenate([first, second])]), weights, stream, zero_based=False)
    return head.encode() + stream.getvalue()

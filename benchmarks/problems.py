"""The problems that ordinary models are trained on: which files, which rows, which class, how scaled."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import click
import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import approxsvm
from benchmarks.timing import spread

Rows: TypeAlias = Any  # ndarray or CSR matrix
_SCALERS: dict[str, Callable[[], Any]] = {
    "standard": StandardScaler,
    "minmax": MinMaxScaler,
}
_BOTH = ("standard", "minmax")


@dataclass(frozen=True, eq=False)
class Problem:
    """Scaled rows and labels, and the options of the SVC that is trained on them."""

    name: str
    scaler: str
    X: Rows
    y: npt.NDArray[Any]
    X_test: Rows
    gamma: float | str = "scale"
    C: float = 1.0


@dataclass(frozen=True)
class Source:
    """Where a problem comes from: a LIBSVM file, with a test file or half of its rows held back."""

    name: str
    train: str
    test: str = ""
    positive: float | None = None  # the class that is set against the rest
    n_train: int | None = None
    gamma: float | str = "scale"  # or a number, and then no scaler


SOURCES = (
    Source("covtype", "covtype.data", positive=2, n_train=20_000),
    Source("pendigits, 0", "pendigits", "pendigits.t", positive=0),
    Source("usps, 1", "usps", "usps.t", positive=1),
    Source("phishing", "phishing"),
    Source("w8a", "w8a"),
    Source("ijcnn1", "ijcnn1", "ijcnn1.t"),
    Source("ijcnn1, gamma 2", "ijcnn1", "ijcnn1.t", gamma=2.0),
    Source("svmguide1", "svmguide1", "svmguide1.t"),
    Source("australian", "australian"),
    Source("german", "german.numer_scale"),
    Source("ionosphere", "ionosphere_scale"),
    Source("heart", "heart_scale"),
    Source("MNIST, 1", "mnist", positive=1),
    Source("pendigits, 10 classes", "pendigits", "pendigits.t"),
    Source("usps, 10 classes", "usps", "usps.t"),
    Source("svmguide2, 3 classes", "svmguide2"),
    Source("vehicle, 4 classes", "vehicle.scale"),
    Source("segment, 7 classes", "segment.scale"),
    Source("letter, 26 classes", "letter.scale", "letter.scale.t"),
    Source("covtype, 7 classes", "covtype.data", n_train=10_000),
    Source("MNIST, 10 classes", "mnist", n_train=10_000),
    Source("text of 20,000 words, generated", "text"),
)


def _read_text(folder: Path, name: str, n_features: int | None = None) -> tuple[Rows, npt.NDArray[Any]]:
    for suffix, opened in ((".bz2", bz2.open), (".xz", lzma.open)):
        path = folder / (name + suffix)
        if path.exists():
            with tempfile.NamedTemporaryFile() as file:
                file.write(opened(path).read())
                file.flush()
                X, y = approxsvm.read_libsvm_data(file.name, n_features=n_features)
            return X.toarray(), y
    raise FileNotFoundError(folder / name)


def libsvm_model(folder: Path, name: str, n_features: int) -> approxsvm.KernelModel:
    """One of the models beside the data, by LIBSVM."""
    with tempfile.NamedTemporaryFile(suffix=".model") as file:
        file.write(lzma.decompress((folder.parent / "models" / f"{name}.model.xz").read_bytes()))
        file.flush()
        return approxsvm.read_libsvm_model(file.name, n_features=n_features)


def _read_mnist(folder: Path, part: str) -> tuple[Rows, npt.NDArray[Any]]:
    images = gzip.decompress((folder / f"{part}-images-idx3-ubyte.gz").read_bytes())
    labels = gzip.decompress((folder / f"{part}-labels-idx1-ubyte.gz").read_bytes())
    X = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 784) / 255.0
    return X, np.frombuffer(labels, np.uint8, offset=8).astype(float)


@lru_cache(maxsize=1)  # the same source comes with one scaler after the other
def split_rows(folder: Path, source: Source) -> tuple[Rows, npt.NDArray[Any], Rows, npt.NDArray[Any]]:
    """Rows and labels to train with, and to test with, as they are in the files."""
    rng = np.random.default_rng(0)
    if source.train == "text":
        X, y = _generated_text(6_000, 20_000, 1)
        return X[:4_000], y[:4_000], X[4_000:], y[4_000:]
    if source.train == "mnist":
        X, y = _read_mnist(folder, "train")
        X_test, y_test = _read_mnist(folder, "t10k")
        n = source.n_train or len(X)
        return X[:n], y[:n], X_test, y_test
    if source.train == "covtype.data":
        with lzma.open(folder / "covtype.data.xz", "rt") as file:
            table = np.loadtxt(file, delimiter=",", dtype=np.int16)
        X, y = table[:, :54].astype(float), table[:, 54]
    else:
        X, y = _read_text(folder, source.train)
    if source.test:
        return X, y, *_read_text(folder, source.test, X.shape[1])
    order = rng.permutation(len(X))
    n = source.n_train or len(X) // 2
    return X[order[:n]], y[order[:n]], X[order[n:]], y[order[n:]]


def _generated_text(n_rows: int, n_words: int, seed: int) -> tuple[Any, npt.NDArray[Any]]:
    """Sparse rows of two kinds: some 75 words each, by Zipf's law but for a quarter of them, weighted by tf-idf."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_rows)
    usual = np.arange(1, n_words + 1) ** -0.8
    own = usual * np.random.default_rng(0).gamma(0.3, size=(2, n_words))
    lengths = np.maximum(rng.poisson(75, n_rows), 5)
    words = [
        np.concatenate([rng.choice(n_words, n // 4, p=own[k] / own[k].sum()), rng.choice(n_words, n - n // 4, p=share)])
        for n, k, share in ((n, k, usual / usual.sum()) for n, k in zip(lengths, y, strict=True))
    ]
    counts = csr_matrix(
        (np.ones(lengths.sum()), np.concatenate(words), np.concatenate([[0], np.cumsum(lengths)])),
        shape=(n_rows, n_words),
    )
    counts.sum_duplicates()
    return TfidfTransformer().fit_transform(counts), y


@dataclass(frozen=True)
class Selection:
    """Which problems, with which scalers and C, and how many rows at most."""

    only: str = ""
    scalers: tuple[str, ...] = _BOTH
    C: float = 1.0
    n_test: int = 100_000
    n_train: int | None = None

    def of(self, folder: Path) -> Iterator[Problem]:
        """Every problem whose name contains `only`, with every scaler."""
        for source in SOURCES:
            if self.only in source.name:
                has_scaler = source.gamma == "scale" and source.train != "text"
                for scaler in self.scalers if has_scaler else ("none",):
                    yield self.problem(folder, source, scaler)

    def problem(self, folder: Path, source: Source, scaler: str, C: float | None = None) -> Problem:
        """One of them."""
        return scaled(folder, source, scaler, self.C if C is None else C, self.n_train, self.n_test)


def scaled(
    folder: Path,
    source: Source,
    scaler: str,
    C: float = 1.0,
    n_train: int | None = None,
    n_test: int | None = None,
) -> Problem:
    """Rows as an SVC gets them, evenly spread where there are to be fewer; labels -1 and 1 where one class counts."""
    X, y, X_test, _ = split_rows(folder, source)
    if n_train is not None:
        kept = spread(X.shape[0], n_train)
        X, y = X[kept], y[kept]
    if source.positive is not None:
        y = np.where(y == source.positive, 1, -1)
    if n_test is not None:
        X_test = X_test[spread(X_test.shape[0], n_test)]
    if scaler != "none":
        fitted = _SCALERS[scaler]().fit(X)
        X, X_test = fitted.transform(X), fitted.transform(X_test)
    return Problem(source.name, scaler, X, y, X_test, source.gamma, C)


def data_folder() -> Path | None:
    """Where the data sets are; None, and a word, where there are none."""
    root = Path(os.environ.get("APPROXSVM_DATA", Path(__file__).resolve().parent.parent.parent / "shared"))
    if not (root / "data").is_dir():
        click.echo(f"nothing measured: {root} has no data/; APPROXSVM_DATA names the folder that has")
        return None
    return root / "data"


def problem_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that make a `Selection`, which the command gets first."""

    def selected(only: str, scaler: str, C: float, rows: int, train_rows: int | None, **others: Any) -> None:
        scalers = _BOTH if scaler == "both" else (scaler,)
        command(Selection(only, scalers, C, rows, train_rows), **others)

    selected.__doc__ = command.__doc__
    for option in (
        click.option("--train-rows", type=click.IntRange(min=100), help="Rows to train with at most."),
        click.option(
            "--rows", type=click.IntRange(min=1), default=100_000, show_default=True, help="Test rows at most."
        ),
        click.option("-c", "C", type=click.FloatRange(min=0, min_open=True), default=1.0, show_default=True),
        click.option("--scaler", type=click.Choice([*_SCALERS, "none", "both"]), default="both", show_default=True),
        click.option("--only", default="", help="Problems whose name contains this."),
    ):
        selected = option(selected)
    return selected

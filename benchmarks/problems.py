"""Problems for the ordinary models: files, rows, classes and scaling."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import click
import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, SVR

import approxsvm
from benchmarks import synthetic
from benchmarks.experiment import MissingError, number, positive
from benchmarks.timing import spread

Rows: TypeAlias = Any  # ndarray or CSR matrix
Labels: TypeAlias = npt.NDArray[Any]
_SCALERS: dict[str, Callable[[], Any]] = {"standard": StandardScaler, "minmax": MinMaxScaler}


@dataclass(frozen=True, eq=False)
class Problem:
    """Scaled rows, labels or targets, and the options for the SVC or SVR to be trained on them."""

    name: str
    scaler: str
    X: Rows
    y: Labels
    X_test: Rows
    gamma: float | str = "scale"
    C: float = 1.0
    model: approxsvm.KernelModel | None = None  # already trained by LIBSVM
    y_test: Labels | None = None
    is_regression: bool = False

    def trained(self) -> Any:
        """Return the LIBSVM model, or train the SVC or SVR."""
        machine = SVR if self.is_regression else SVC
        return self.model or machine(C=self.C, gamma=self.gamma, cache_size=1000).fit(self.X, self.y)


@dataclass(frozen=True)
class Source:
    """Origin of a problem: a LIBSVM file; test rows are in a second file, or are half of its rows."""

    name: str
    train: str
    test: str = ""
    positive: float | None = None  # class to separate from the rest
    n_train: int | None = None
    gamma: float | str = "scale"  # a number implies no scaler
    model: str = ""  # LIBSVM's model, instead of training
    is_regression: bool = False
    like: Mapping[str, Any] | None = field(
        default=None, hash=False
    )  # properties of the rows to generate if there is no file (synthetic.py)

    @property
    def is_scaled(self) -> bool:
        """True if a scaler may be applied."""
        return self.gamma == "scale" and not (self.model or self.like)


def _like(name: str, rows: int, features: int, n_classes: int, nonzeros: float, **others: Any) -> Source:
    """Describe generated rows with the shape and number type of an unavailable data set; half of them are test rows."""
    labels = list(range(n_classes))
    about = {"kind": "dense", "low": -1.0, "high": 1.0, "features": features, "nonzeros": nonzeros, "labels": labels}
    return Source(f"{name}, generated", "", like=about | {"rows": 2 * rows} | others)


_SOURCES = (
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
    Source("text of 20,000 words, generated", "", like={"kind": "text"}),
    *(Source(f"a9a {gamma}", "a9a", "a9a.t", model=f"a9a_g{gamma}") for gamma in ("0.01", "0.02", "0.1")),
    *(Source(f"ijcnn1 {gamma}", "ijcnn1", "ijcnn1.t", model=f"ijcnn1_g{gamma}") for gamma in ("0.05", "2")),
    Source("mnist 1e-4", "mnist1", "mnist1.t", model="mnist1_g1e-4"),
    _like("dna", 2_000, 180, 3, 45, kind="binary"),
    _like("splice", 1_000, 60, 2, 60, low=1.0, high=4.0, digits=0),
    _like("mushrooms", 4_062, 112, 2, 21, kind="binary"),
    _like("connect-4", 8_000, 126, 3, 42, kind="binary"),
    _like("satimage, 6 classes", 4_435, 36, 6, 36),
    _like("shuttle, 7 classes", 20_000, 9, 7, 9),
)
_REGRESSIONS = (
    Source("abalone, regression", "abalone_scale", is_regression=True),
    Source("cpu_act, regression", "cpu_act", is_regression=True),
    Source("cpusmall, regression", "cpusmall", is_regression=True),
)
SOURCES = {source.name: source for source in (*_SOURCES, *_REGRESSIONS)}
ADULT = Source("Adult", "a9a", "a9a.t")


def unpacked(packed: Path) -> bytes:
    """Decompress the .bz2, .xz or .gz version of a file.

    Raises MissingError if there is none.
    """
    for suffix, opener in ((".bz2", bz2.open), (".xz", lzma.open), (".gz", gzip.open)):
        path = packed.with_name(packed.name + suffix)
        if path.exists():
            with opener(path) as file:
                return file.read()
    what = f"python -m benchmarks.data {packed.name}"
    raise MissingError(f"{packed} is missing; {what} fetches it, or generates a stand-in with --synthetic")


def mnist_part(folder: Path, part: str) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Return the pixels and digits of one part of MNIST: "train" or "t10k"."""
    images, digits = (unpacked(folder / f"{part}-{kind}-ubyte") for kind in ("images-idx3", "labels-idx1"))
    return np.frombuffer(images, np.uint8, offset=16).reshape(-1, 784), np.frombuffer(digits, np.uint8, offset=8)


def write_text(folder: Path, name: str, path: Path) -> None:
    """Write a file of LIBSVM text; "mnist1" and "mnist1.t" are MNIST's digit 1 vs. the rest."""
    if not name.startswith("mnist1"):
        path.write_bytes(unpacked(folder / name))
        return
    pixels, digits = mnist_part(folder, "t10k" if name.endswith(".t") else "train")
    with path.open("w") as file:
        for row, digit in zip(pixels, digits, strict=True):
            shown = " ".join(f"{j + 1}:{row[j] / 255:.6g}" for j in np.flatnonzero(row))
            file.write(f"{1 if digit == 1 else -1} {shown}\n")


def libsvm_model(folder: Path, name: str, n_features: int) -> approxsvm.KernelModel:
    """Read a LIBSVM model from the data folder."""
    with tempfile.NamedTemporaryFile(suffix=".model") as file:
        file.write(unpacked(folder.parent / "models" / f"{name}.model"))
        file.flush()
        return approxsvm.read_libsvm_model(file.name, n_features=n_features)


def read_text(folder: Path, name: str, n_features: int | None = None) -> tuple[Rows, Labels]:
    """Read dense rows and labels from a LIBSVM file."""
    with tempfile.NamedTemporaryFile() as file:
        write_text(folder, name, Path(file.name))
        X, y = approxsvm.read_libsvm_data(file.name, n_features=n_features)
    return X.toarray(), y


def _read_covtype(folder: Path) -> tuple[Rows, Labels]:
    table = np.loadtxt(unpacked(folder / "covtype.data").decode().splitlines(), delimiter=",", dtype=np.int16)
    return table[:, :54].astype(float), table[:, 54]


@lru_cache(maxsize=1)  # a source is used with several scalers in a row
def split_rows(folder: Path, source: Source) -> tuple[Rows, Labels, Rows, Labels]:
    """Return training and test rows and labels, unchanged from the files."""
    if source.like:
        if source.like["kind"] == "text":
            X, y = _generated_text(6_000, 20_000, 1)
            return X[:4_000], y[:4_000], X[4_000:], y[4_000:]
        sparse, y = synthetic.rows(source.name, source.like)
        X, n = sparse.toarray(), len(y) // 2
        return X[:n], y[:n], X[n:], y[n:]
    if source.train == "mnist":
        (X, y), (X_test, y_test) = (mnist_part(folder, part) for part in ("train", "t10k"))
        X, y = X[: source.n_train], y[: source.n_train]
        return X / 255.0, y.astype(float), X_test / 255.0, y_test.astype(float)
    X, y = _read_covtype(folder) if source.train == "covtype.data" else read_text(folder, source.train)
    if source.test:
        return X, y, *read_text(folder, source.test, X.shape[1])
    order = np.random.default_rng(0).permutation(len(X))
    n = source.n_train or len(X) // 2
    return X[order[:n]], y[order[:n]], X[order[n:]], y[order[n:]]


def _generated_text(n_rows: int, n_words: int, seed: int) -> tuple[Rows, Labels]:
    """Generate sparse rows in two classes: about 75 words per row, three quarters by Zipf's law, weighted by tf-idf."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_rows)
    usual = np.arange(1, n_words + 1) ** -0.8
    word_shares = usual * np.random.default_rng(0).gamma(0.3, size=(2, n_words))
    lengths = np.maximum(rng.poisson(75, n_rows), 5)
    words = [
        np.concatenate(
            [
                rng.choice(n_words, n // 4, p=word_shares[k] / word_shares[k].sum()),
                rng.choice(n_words, n - n // 4, p=share),
            ]
        )
        for n, k, share in ((n, k, usual / usual.sum()) for n, k in zip(lengths, y, strict=True))
    ]
    ends = np.concatenate([[0], np.cumsum(lengths)])
    counts = csr_matrix((np.ones(lengths.sum()), np.concatenate(words), ends), shape=(n_rows, n_words))
    counts.sum_duplicates()
    return TfidfTransformer().fit_transform(counts), y


def scaled(
    folder: Path,
    source: Source,
    scaler: str,
    C: float = 1.0,
    n_train: int | None = None,
    n_test: int | None = None,
) -> Problem:
    """Scale rows, or an evenly spaced subset, for an SVC; if the source names a positive class, labels are -1 and 1."""
    X, y, X_test, y_test = split_rows(folder, source)
    if n_train is not None:
        kept = spread(X.shape[0], n_train)
        X, y = X[kept], y[kept]
    if source.positive is not None:
        y, y_test = (np.where(labels == source.positive, 1, -1) for labels in (y, y_test))
    if n_test is not None:
        kept = spread(X_test.shape[0], n_test)
        X_test, y_test = X_test[kept], y_test[kept]
    if scaler != "none":
        fitted = _SCALERS[scaler]().fit(X)
        X, X_test = fitted.transform(X), fitted.transform(X_test)
    model = libsvm_model(folder, source.model, X.shape[1]) if source.model else None
    return Problem(source.name, scaler, X, y, X_test, source.gamma, C, model, y_test, source.is_regression)


# --- as cases of experiments


@dataclass(frozen=True)
class Chosen:
    """A problem to read, with its scaler and table."""

    source: Source
    scaler: str
    C: float
    table: str = "chosen"

    def problem(self, folder: Path, options: SimpleNamespace) -> Problem:
        """Read the problem with the requested number of rows."""
        return scaled(folder, self.source, self.scaler, self.C, options.train_rows, options.rows)


PROBLEM_OPTIONS = (
    click.Option(
        ["--scaler"], type=click.Choice([*_SCALERS, "none", "both"]), default="both", show_default=True, help="Of rows."
    ),
    positive("-c C", 1.0, "Of SVC."),
    number("--rows", 100_000, "Maximum test rows."),
    number("--train-rows", None, "Maximum training rows.", least=100),
)


def chosen(options: SimpleNamespace) -> dict[str, Chosen]:
    """Return every problem with every requested scaler."""
    scalers = tuple(_SCALERS) if options.scaler == "both" else (options.scaler,)
    problems = {}
    for source in _SOURCES:
        for scaler in scalers if source.is_scaled else ("none",):
            problems[f"{source.name}, {scaler}"] = Chosen(source, scaler, options.C)
    return problems

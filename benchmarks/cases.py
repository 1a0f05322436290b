"""The models and data that are measured: those of the paper's Table 1 for which there is public data."""

from __future__ import annotations

import bz2
import gzip
import lzma
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

import approxsvm

MNIST_FEATURES = 780  # the last four pixels are always zero, and LIBSVM's own copy of the data stops before them


@dataclass(frozen=True)
class Spec:
    """One model to measure, before anything is read."""

    data: str
    gamma: str
    model_file: str

    @property
    def name(self) -> str:
        """Data set and gamma, as shown in tables."""
        return f"{self.data} {self.gamma}"


SPECS = (
    Spec("a9a", "0.01", "a9a_g0.01.model.xz"),
    Spec("a9a", "0.02", "a9a_g0.02.model.xz"),
    Spec("a9a", "0.1", "a9a_g0.1.model.xz"),
    Spec("ijcnn1", "0.05", "ijcnn1_g0.05.model.xz"),
    Spec("ijcnn1", "2", "ijcnn1_g2.model.xz"),
    Spec("mnist", "1e-4", "mnist1_g1e-4.model.xz"),
)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training rows, and test rows with labels both in memory and as a LIBSVM text file."""

    X_train: csr_array
    X_test: csr_array
    y_test: npt.NDArray[np.float64]
    test_path: Path


@dataclass(frozen=True, eq=False)
class Case:
    """A model with its data, ready to measure."""

    spec: Spec
    data: Dataset
    model_path: Path
    model: approxsvm.KernelModel

    @property
    def name(self) -> str:
        """Data set and gamma, as shown in tables."""
        return self.spec.name

    @property
    def n_features(self) -> int:
        """Number of columns of the data."""
        return self.model.n_features

    @property
    def n_rows(self) -> int:
        """Number of test rows."""
        return int(self.data.X_test.shape[0])


class Library:
    """Finds data and models under a root folder and unpacks them into a scratch folder.

    Parameters
    ----------
    root : Path
        The folder with data/ and models/.
    scratch : Path
        Where unpacked files go.
    """

    def __init__(self, root: Path, scratch: Path) -> None:
        self._root = root
        self._scratch = scratch
        self._datasets: dict[str, Dataset] = {}

    def case(self, spec: Spec) -> Case:
        """Read a model and its data.

        Raises
        ------
        FileNotFoundError
            One of the files is not there.
        """
        model_path = self._unpacked(f"models/{spec.model_file}")
        if spec.data not in self._datasets:
            self._datasets[spec.data] = _READERS[spec.data](self)
        data = self._datasets[spec.data]
        model = approxsvm.read_model(model_path, n_features=data.X_test.shape[1])
        return Case(spec, data, model_path, model)

    def text_dataset(self, train: str, test: str, n_features: int) -> Dataset:
        """Read training and test rows that are stored as LIBSVM text."""
        test_path = self._unpacked(test)
        X_train, _ = approxsvm.read_libsvm_data(self._unpacked(train), n_features=n_features)
        X_test, y_test = approxsvm.read_libsvm_data(test_path, n_features=n_features)
        return Dataset(X_train, X_test, y_test, test_path)

    def mnist_dataset(self) -> Dataset:
        """Build digit 1 against the rest, as models/README.md describes it."""
        X_train = _pixels_as_rows(self._idx("train-images-idx3-ubyte.gz", header_bytes=16))
        pixels = self._idx("t10k-images-idx3-ubyte.gz", header_bytes=16)
        digits = self._idx("t10k-labels-idx1-ubyte.gz", header_bytes=8)
        labels = np.where(digits == 1, 1, -1)
        test_path = self._scratch / "mnist.t"
        _write_pixels(test_path, pixels, labels)
        return Dataset(X_train, _pixels_as_rows(pixels), labels.astype(np.float64), test_path)

    def _idx(self, name: str, *, header_bytes: int) -> npt.NDArray[np.uint8]:
        with gzip.open(self._root / "data" / name) as file:
            return np.frombuffer(file.read(), np.uint8, offset=header_bytes)

    def _unpacked(self, name: str) -> Path:
        packed = self._root / name
        target = self._scratch / packed.stem
        if not target.exists():
            opener = bz2.open if packed.suffix == ".bz2" else lzma.open
            with opener(packed) as source, target.open("wb") as out:
                shutil.copyfileobj(source, out)
        return target


_READERS: dict[str, Callable[[Library], Dataset]] = {
    "a9a": lambda library: library.text_dataset("data/a9a.bz2", "data/a9a.t.bz2", 123),
    "ijcnn1": lambda library: library.text_dataset("data/ijcnn1.xz", "data/ijcnn1.t.xz", 22),
    "mnist": lambda library: library.mnist_dataset(),
}

# A pixel as the training text had it: six digits of pixel / 255.
_PIXEL_TEXT = [f"{pixel / 255:.6g}" for pixel in range(256)]


def _pixels_as_rows(pixels: npt.NDArray[np.uint8]) -> csr_array:
    image = pixels.reshape(-1, 784)
    if image[:, MNIST_FEATURES:].any():
        raise ValueError(f"a pixel after the first {MNIST_FEATURES} is not zero")
    rows = csr_array(image[:, :MNIST_FEATURES])
    values = np.array([float(text) for text in _PIXEL_TEXT])
    return csr_array((values[rows.data], rows.indices, rows.indptr), shape=rows.shape)


def _write_pixels(path: Path, pixels: npt.NDArray[np.uint8], labels: npt.NDArray[np.int64]) -> None:
    with path.open("w", encoding="ascii") as file:
        for label, image in zip(labels, pixels.reshape(-1, 784), strict=True):
            used = np.flatnonzero(image)
            cells = (f"{j + 1}:{_PIXEL_TEXT[pixel]}" for j, pixel in zip(used, image[used], strict=True))
            file.write(f"{label} {' '.join(cells)}\n")

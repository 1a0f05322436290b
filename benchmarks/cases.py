"""LIBSVM's models and their data: those of the paper's Table 1 for which there is public data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from sklearn.datasets import dump_svmlight_file

import approxsvm
from benchmarks.peers import Trained
from benchmarks.problems import mnist_part, unpacked

_MNIST_FEATURES = 780  # the last four pixels are always zero, and LIBSVM's own copy of the data stops before them
# A pixel as the training text had it: six digits of pixel / 255.
_PIXELS = np.array([float(f"{pixel / 255:.6g}") for pixel in range(256)])


@dataclass(frozen=True)
class Spec:
    """One model, before anything is read: the model file, the files of rows, how many columns these have."""

    name: str
    model_file: str
    train: str
    test: str
    n_features: int


_SPECS = (
    Spec("a9a 0.01", "a9a_g0.01.model", "a9a", "a9a.t", 123),
    Spec("a9a 0.02", "a9a_g0.02.model", "a9a", "a9a.t", 123),
    Spec("a9a 0.1", "a9a_g0.1.model", "a9a", "a9a.t", 123),
    Spec("ijcnn1 0.05", "ijcnn1_g0.05.model", "ijcnn1", "ijcnn1.t", 22),
    Spec("ijcnn1 2", "ijcnn1_g2.model", "ijcnn1", "ijcnn1.t", 22),
    Spec("mnist 1e-4", "mnist1_g1e-4.model", "train", "t10k", _MNIST_FEATURES),
)
SPECS = {spec.name: spec for spec in _SPECS}


@dataclass(frozen=True, eq=False)
class Case(Trained):
    """A model with its training rows, and test rows with labels both in memory and as a LIBSVM text file."""

    name: str
    X_train: csr_array
    X_test: csr_array
    y_test: npt.NDArray[np.float64]
    test_path: Path

    @property
    def n_rows(self) -> int:
        """Number of test rows."""
        return int(self.X_test.shape[0])


def read_case(spec: Spec, folder: Path, scratch: Path) -> Case:
    """Read a model and its data, with what LIBSVM and whole processes read as files in a scratch folder."""
    model_path, train_path, test_path = (scratch / name for name in (spec.model_file, spec.train, spec.test))
    model_path.write_bytes(unpacked(folder.parent / "models" / spec.model_file))
    if spec.n_features == _MNIST_FEATURES:
        X_train, _ = _digit_1(folder, spec.train)
        X_test, y_test = _digit_1(folder, spec.test)
        dump_svmlight_file(X_test, y_test, str(test_path), zero_based=False)
    else:
        for path in (train_path, test_path):
            path.write_bytes(unpacked(folder / path.name))
        X_train, _ = approxsvm.read_libsvm_data(train_path, n_features=spec.n_features)
        X_test, y_test = approxsvm.read_libsvm_data(test_path, n_features=spec.n_features)
    model = approxsvm.read_libsvm_model(model_path, n_features=spec.n_features)
    return Case(model, model_path, spec.name, X_train, X_test, y_test, test_path)


def write_training_data(folder: Path, path: Path) -> None:
    """What a model was trained on, as LIBSVM's text: a file of the folder, or MNIST's pixels."""
    if path.name != "mnist1":
        path.write_bytes(unpacked(folder / path.name))
        return
    pixels, digits = mnist_part(folder, "train")
    with path.open("w") as file:
        for row, digit in zip(pixels, digits, strict=True):
            shown = " ".join(f"{j + 1}:{row[j] / 255:.6g}" for j in np.flatnonzero(row))
            file.write(f"{1 if digit == 1 else -1} {shown}\n")


def _digit_1(folder: Path, part: str) -> tuple[csr_array, npt.NDArray[np.float64]]:
    """Digit 1 against the rest, as models/README.md describes it."""
    pixels, digits = mnist_part(folder, part)
    rows = csr_array(pixels[:, :_MNIST_FEATURES])
    if rows.nnz != np.count_nonzero(pixels):
        raise ValueError(f"a pixel after the first {_MNIST_FEATURES} is not zero")
    X = csr_array((_PIXELS[rows.data], rows.indices, rows.indptr), shape=rows.shape)
    return X, np.where(digits == 1, 1.0, -1.0)

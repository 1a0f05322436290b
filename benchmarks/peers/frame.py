"""Definition of a peer: a file that prepares a call on rows in memory and names the peer's package.

To add your system, write a ten-line file benchmarks/peers/NAME.py and run `python -m benchmarks.ordinary --peer NAME`:

    from benchmarks.peers.frame import Peer

    def prepare(trained, sample):
        import yours                                       # if it is missing, the peer is skipped with a message

        model = yours.load(trained.model_path)             # LIBSVM's file; or use trained.model, its numbers
        return lambda: model.predict(sample.float32)       # labels; only this call is timed

    PEER = Peer("yours, dense float32", prepare, package="yours")

Labels that differ from ours are counted. Rows: sample.float32, sample.float64, sample.csr.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

import approxsvm

Predict: TypeAlias = Callable[[], npt.NDArray[Any]]


class LeftOutError(ImportError):
    """A peer does not support this model or machine; the message gives the reason."""


class Sample:
    """Some test rows in all formats that contenders need, each built once so that all contenders share it in cache."""

    def __init__(
        self,
        X: csr_array,  # of shape (n_test_rows, n_features)
        numbers: npt.NDArray[np.intp],  # indices of the test rows
        n_threads: int = 1,
    ) -> None:
        self.numbers, self.n_threads = numbers, n_threads
        self.csr: csr_array = X[numbers]

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def float32(self) -> npt.NDArray[np.float32]:
        """Dense rows, C-contiguous."""
        return self.csr.astype(np.float32).toarray()

    @cached_property
    def float64(self) -> npt.NDArray[np.float64]:
        """Dense rows, C-contiguous."""
        return self.csr.toarray()


@dataclass(frozen=True, eq=False)
class Trained:
    """A model and its LIBSVM file."""

    model: approxsvm.KernelModel
    model_path: Path


@dataclass(frozen=True)
class Peer:
    """A contender."""

    name: str  # display name
    # Takes a `Trained` and a `Sample`; returns the call that predicts the sample on its threads, and is timed
    prepare: Callable[[Trained, Sample], Predict]
    is_slow: bool = False  # true if the peer gets few rows
    is_rounded: bool = True  # true if the peer gets float32 rows, so that the rounded rows define the exact labels
    package: str = "approxsvm"  # name of the package on PyPI, from which its version is read

    @property
    def version(self) -> str:
        """Version of the package, if installed."""
        try:
            return version(self.package)
        except PackageNotFoundError:
            return "not installed"


def block_by_block(values: Callable[[Any], Any], trained: Trained, sample: Sample, block_rows: int) -> Predict:
    """Return labels from the signs of values, which are computed one block of rows at a time."""
    rows, labels = sample.float32, trained.model.labels
    starts = range(0, len(rows), block_rows)
    return lambda: np.where(np.concatenate([values(rows[i : i + block_rows]) for i in starts]) > 0.0, *labels)

"""Everything that predicts in memory: one small class per contender, ours among them.

To add one, write a class with the attributes of `Peer` and put it into `IN_MEMORY`.
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, csr_matrix
from sklearn.svm import SVC

import approxsvm
from approxsvm.expansion import taylor
from benchmarks.answers import Labels
from benchmarks.cases import Case

Answer = Literal["exact", "expansion"]


class Sample:
    """Some test rows in all the forms that contenders want, made once so that they share the processor's cache.

    Parameters
    ----------
    case : Case
    numbers : ndarray of int
        Which test rows.
    """

    def __init__(self, case: Case, numbers: npt.NDArray[np.intp]) -> None:
        self.numbers = numbers
        self.csr: csr_array = case.data.X_test[numbers]

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


class Peer(Protocol):
    """A contender, built for a model and a sample of its test rows; only ``predict`` is timed.

    Attributes
    ----------
    name : str
        As shown in tables.
    answer : {"exact", "expansion"}
        Which labels it must give. Exact contenders are slow and get a sample of the rows.
    n_threads : int
    counts_multiply_adds : bool
        Whether it does d (d + 1) / 2 float32 multiply-adds per row on one thread, so that a share of peak
        makes sense.
    """

    name: str
    answer: Answer
    n_threads: int
    counts_multiply_adds: bool

    def __init__(self, case: Case, fast: approxsvm.CompiledSVC, sample: Sample) -> None: ...

    def predict(self) -> Labels:
        """Labels of the sample."""


class Libsvm:
    """LIBSVM itself in this process, on nodes built beforehand; each call through ctypes adds about 1 us."""

    name = "LIBSVM"
    answer: Answer = "exact"
    n_threads = 1
    counts_multiply_adds = False

    def __init__(self, case: Case, fast: approxsvm.CompiledSVC, sample: Sample) -> None:
        from libsvm import svm, svmutil

        self._model = svmutil.svm_load_model(os.fspath(case.model_path))
        self._problem = svm.svm_problem(np.zeros(len(sample)), csr_matrix(sample.csr))
        self._nodes = [self._problem.x[i] for i in range(len(sample))]
        self._svm_predict = svm.libsvm.svm_predict

    def predict(self) -> Labels:
        """Call svm_predict row by row; it has no other form."""
        model, svm_predict = self._model, self._svm_predict
        return np.array([svm_predict(model, nodes) for nodes in self._nodes])


class SklearnSVC:
    """scikit-learn's SVC holding the same support vectors, on dense float64 rows."""

    name = "scikit-learn SVC"
    answer: Answer = "exact"
    n_threads = 1
    counts_multiply_adds = False

    def __init__(self, case: Case, fast: approxsvm.CompiledSVC, sample: Sample) -> None:
        self._svc = svc_from(case.model)
        self._rows = sample.float64

    def predict(self) -> Labels:
        """Predict the whole sample at once."""
        return self._svc.predict(self._rows)


def svc_from(model: approxsvm.KernelModel) -> SVC:
    """Make a fitted SVC without training: its prediction reads these attributes and nothing else.

    Training again would take minutes and give another model. The classes stay in the model's order, not
    sorted: ``predict`` only looks them up.
    """
    svc = SVC(kernel="rbf", gamma=model.gamma)
    svc._sparse = False
    svc._gamma = model.gamma
    svc._n_support = np.asarray(model.n_support, dtype=np.int32)
    svc._dual_coef_ = np.ascontiguousarray(model.dual_coef)
    svc._intercept_ = np.ascontiguousarray(model.intercept)
    svc._probA = svc._probB = np.empty(0)
    svc.support_ = np.arange(model.n_sv, dtype=np.int32)
    svc.support_vectors_ = np.ascontiguousarray(model.dense_support_vectors(0, model.n_sv))
    svc.shape_fit_ = svc.support_vectors_.shape
    svc.n_features_in_ = model.n_features
    svc.classes_ = model.labels
    svc.fit_status_ = 0
    return svc


class NumpyBlas:
    """The same expansion as a careful NumPy user writes it: float32 BLAS on blocks of rows that fit the cache.

    Blocks of 512 rows and einsum were the fastest of what was tried (blocks of 128 rows up to all, and
    ``(A * Z).sum(1)``): about twice as fast as whole arrays at d = 123.
    """

    name = "NumPy float32 BLAS"
    answer: Answer = "expansion"
    n_threads = 1
    counts_multiply_adds = True

    _BLOCK_ROWS = 512

    def __init__(self, case: Case, fast: approxsvm.CompiledSVC, sample: Sample) -> None:
        expansion = taylor.expand(case.model, "mean")
        self._center = expansion.center
        self._quadratic = np.ascontiguousarray(expansion.quadratic, dtype=np.float32)
        self._linear = expansion.linear.astype(np.float32)
        self._constant, self._intercept = np.float32(expansion.constant), np.float32(expansion.intercept)
        self._gamma = np.float32(expansion.gamma)
        self._labels = case.model.labels
        self._rows = sample.float32

    def predict(self) -> Labels:
        """Predict block by block."""
        values = np.empty(len(self._rows), np.float32)
        for first in range(0, len(values), self._BLOCK_ROWS):
            block = slice(first, first + self._BLOCK_ROWS)
            Z = self._rows[block] - self._center
            A = Z @ self._quadratic
            A += self._linear
            inner = np.einsum("ij,ij->i", A, Z) + self._constant
            values[block] = inner * np.exp(-self._gamma * np.einsum("ij,ij->i", Z, Z)) + self._intercept
        return np.where(values > 0.0, self._labels[0], self._labels[1])


class _Compiled:
    """Our predictor; subclasses say which rows it gets and how many threads."""

    answer: Answer = "expansion"
    n_threads = 1
    counts_multiply_adds = False

    def __init__(self, case: Case, fast: approxsvm.CompiledSVC, sample: Sample) -> None:
        self._fast = approxsvm.CompiledSVC(fast.artifact, n_jobs=self.n_threads)
        self._rows = self._rows_of(sample)

    def predict(self) -> Labels:
        """Predict the whole sample at once."""
        return self._fast.predict(self._rows)

    @staticmethod
    def _rows_of(sample: Sample) -> Any:
        return sample.float32


class DenseFloat32(_Compiled):
    """The kernel's own precision and layout."""

    name = "approxsvm, dense float32"
    counts_multiply_adds = True


class DenseFloat64(_Compiled):
    """What most users hold: rows are narrowed while they are loaded."""

    name = "approxsvm, dense float64"

    @staticmethod
    def _rows_of(sample: Sample) -> Any:
        return sample.float64


class Csr(_Compiled):
    """Sparse rows as the reader of LIBSVM text returns them."""

    name = "approxsvm, CSR float64"

    @staticmethod
    def _rows_of(sample: Sample) -> Any:
        return sample.csr


class DenseFloat32AllThreads(DenseFloat32):
    """Dense rows on every processor."""

    name = "approxsvm, dense float32, all threads"
    n_threads = os.cpu_count() or 1
    counts_multiply_adds = False


class CsrAllThreads(Csr):
    """Sparse rows on every processor."""

    name = "approxsvm, CSR float64, all threads"
    n_threads = os.cpu_count() or 1


IN_MEMORY: tuple[type[Peer], ...] = (
    Libsvm,
    SklearnSVC,
    NumpyBlas,
    DenseFloat32,
    DenseFloat64,
    Csr,
    DenseFloat32AllThreads,
    CsrAllThreads,
)

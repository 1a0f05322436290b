"""Everything that predicts in memory: one small class per contender, ours among them.

To add one, write a class with the attributes of `Peer` and put it into `IN_MEMORY`, or `EXACT` of exact_peers.py.
"""

from __future__ import annotations

import os
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, csr_matrix
from sklearn.svm import SVC
from threadpoolctl import ThreadpoolController

import approxsvm
from approxsvm.model.schema import Mode
from approxsvm.reference import decision_values as reference
from benchmarks.answers import Labels
from benchmarks.compiled import Models

Answer = Literal["exact", "nearly exact", "expansion"]
Rows = Literal["few", "many", "all"]


class Sample:
    """Some test rows in all the forms that contenders want, made once so that they share the processor's cache.

    Parameters
    ----------
    X : csr_array of shape (n_test_rows, n_features)
    numbers : ndarray of int
        Which test rows.
    """

    def __init__(self, X: csr_array, numbers: npt.NDArray[np.intp]) -> None:
        self.numbers = numbers
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


class Trained(Protocol):
    """A model, and LIBSVM's file of it."""

    @property
    def model(self) -> approxsvm.KernelModel:
        """As it was read."""

    @property
    def model_path(self) -> Path:
        """Where LIBSVM finds it."""


class Peer(Protocol):
    """A contender, built for a model and a sample of its test rows; only ``predict`` is timed.

    Attributes
    ----------
    name : str
        As shown in tables.
    answer : {"exact", "nearly exact", "expansion"}
        Which labels it must give.
    rows : {"few", "many", "all"}
        How many rows it gets: the slower it is, the fewer.
    is_rounded : bool
        Whether it gets rows in float32, so that exact labels are those of the rounded rows.
    is_parallel : bool
        Whether it can use more than one thread.
    counts_multiply_adds : bool
        Whether it does d (d + 1) / 2 float32 multiply-adds per row, so that a share of peak makes sense on one thread.
    """

    name: str
    answer: Answer
    rows: Rows
    is_rounded: bool
    is_parallel: bool
    counts_multiply_adds: bool

    def __init__(self, trained: Trained, models: Models, sample: Sample, n_threads: int) -> None: ...

    def predict(self) -> Labels:
        """Labels of the sample."""


class Libsvm:
    """LIBSVM itself in this process, on nodes built beforehand; each call through ctypes adds about 1 us."""

    name = "LIBSVM"
    answer: Answer = "exact"
    rows: Rows = "few"
    is_rounded = False
    is_parallel = True
    counts_multiply_adds = False

    def __init__(self, trained: Trained, models: Models, sample: Sample, n_threads: int) -> None:
        from libsvm import svm, svmutil

        self._model = svmutil.svm_load_model(os.fspath(trained.model_path))
        self._problem = svm.svm_problem(np.zeros(len(sample)), csr_matrix(sample.csr))
        self._nodes = [self._problem.x[i] for i in range(len(sample))]
        self._svm_predict = svm.libsvm.svm_predict
        self._limit = partial(ThreadpoolController().limit, limits=n_threads)  # the build on PyPI uses OpenMP

    def predict(self) -> Labels:
        """Call svm_predict row by row; it has no other form."""
        model, svm_predict = self._model, self._svm_predict
        with self._limit():
            return np.array([svm_predict(model, nodes) for nodes in self._nodes])


class SklearnSVC:
    """scikit-learn's SVC holding the same support vectors, on dense float64 rows."""

    name = "scikit-learn SVC"
    answer: Answer = "exact"
    rows: Rows = "few"
    is_rounded = False
    is_parallel = False
    counts_multiply_adds = False

    def __init__(self, trained: Trained, models: Models, sample: Sample, n_threads: int) -> None:
        self._svc = svc_from(trained.model)
        self._rows = sample.float64

    def predict(self) -> Labels:
        """Predict the whole sample at once."""
        return self._svc.predict(self._rows)


class SklearnIntelex:
    """scikit-learn-intelex's SVC (oneDAL) holding the same support vectors, on dense float32 rows.

    Nothing is trained again: from the public attributes of a fitted SVC it makes oneDAL's model at the first
    prediction. Its arithmetic is float32 where its rows are, so a few labels differ.
    """

    name = "scikit-learn-intelex, dense float32"
    answer: Answer = "nearly exact"
    rows: Rows = "many"
    is_rounded = True
    is_parallel = True
    counts_multiply_adds = False

    def __init__(self, trained: Trained, models: Models, sample: Sample, n_threads: int) -> None:
        from sklearnex import svm

        model = trained.model
        svc = svm.SVC(kernel="rbf", gamma=model.gamma, n_jobs=n_threads)  # n_jobs limits oneDAL's threads
        support_vectors = model.dense_support_vectors(0, model.n_sv)
        svc.support_vectors_ = np.ascontiguousarray(support_vectors, dtype=np.float32)
        svc.dual_coef_ = np.ascontiguousarray(-model.dual_coef, dtype=np.float32)  # positive is the second label
        svc.intercept_ = -model.intercept.astype(np.float32)
        _set_shape(svc, model)
        self._svc, self._rows = svc, sample.float32

    def predict(self) -> Labels:
        """Predict the whole sample at once."""
        return self._svc.predict(self._rows)


def svc_from(model: approxsvm.KernelModel) -> SVC:
    """Make a fitted SVC without training: its prediction reads these attributes and nothing else.

    Training again would take minutes and give another model. The classes stay in the model's order, not
    sorted: ``predict`` only looks them up.
    """
    svc = SVC(kernel="rbf", gamma=model.gamma)
    svc._dual_coef_ = np.ascontiguousarray(model.dual_coef)
    svc._intercept_ = np.ascontiguousarray(model.intercept)
    svc.support_vectors_ = np.ascontiguousarray(model.dense_support_vectors(0, model.n_sv))
    _set_shape(svc, model)
    return svc


def _set_shape(svc: SVC, model: approxsvm.KernelModel) -> None:
    svc._sparse = False
    svc._gamma = model.gamma
    svc._n_support = np.asarray(model.n_support, dtype=np.int32)
    svc._probA = svc._probB = np.empty(0)
    svc.support_ = np.arange(model.n_sv, dtype=np.int32)
    svc.shape_fit_ = svc.support_vectors_.shape
    svc.n_features_in_ = model.n_features
    svc.classes_ = model.labels
    svc.fit_status_ = 0


class NumpyBlas:
    """The same expansion as a careful NumPy user writes it: float32 BLAS on blocks of rows that fit the cache.

    Blocks of 512 rows and einsum were the fastest of what was tried (blocks of 128 rows up to all, and
    ``(A * Z).sum(1)``): about twice as fast as whole arrays at d = 123.
    """

    name = "NumPy float32 BLAS, expansion"
    answer: Answer = "expansion"
    rows: Rows = "all"
    is_rounded = True
    is_parallel = False
    counts_multiply_adds = True

    _BLOCK_ROWS = 512

    def __init__(self, trained: Trained, models: Models, sample: Sample, n_threads: int) -> None:
        expansion = reference.second_order(trained.model)
        self._center = expansion.center.astype(np.float32)
        self._quadratic = np.ascontiguousarray(expansion.quadratic, dtype=np.float32)
        self._linear = expansion.linear.astype(np.float32)
        self._constant, self._intercept = np.float32(expansion.constant), np.float32(expansion.intercept)
        self._gamma = np.float32(expansion.gamma)
        self._labels = trained.model.labels
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


class CompiledPeer:
    """Our predictor; subclasses say in which mode, and which form of rows it gets."""

    mode: Mode = "approximate"
    answer: Answer = "expansion"
    rows: Rows = "all"
    is_rounded = True
    is_parallel = True
    counts_multiply_adds = False

    def __init__(self, trained: Trained, models: Models, sample: Sample, n_threads: int) -> None:
        self._fast = approxsvm.CompiledSVC(models[self.mode].artifact, n_jobs=n_threads)
        self._rows = self._rows_of(sample)

    def predict(self) -> Labels:
        """Predict the whole sample at once."""
        return self._fast.predict(self._rows)

    @property
    def rows_per_stage(self) -> dict[str, int]:
        """How many rows each stage has answered so far."""
        return self._fast.rows_per_stage

    @staticmethod
    def _rows_of(sample: Sample) -> Any:
        return sample.float32


class DenseFloat32(CompiledPeer):
    """The kernel's own precision and layout."""

    name = "approxsvm, dense float32"
    counts_multiply_adds = True


class DenseFloat64(CompiledPeer):
    """What most users hold: rows are narrowed while they are loaded."""

    name = "approxsvm, dense float64"
    is_rounded = False
    is_parallel = False  # it can, but two forms of rows on all threads say enough

    @staticmethod
    def _rows_of(sample: Sample) -> Any:
        return sample.float64


class Csr(CompiledPeer):
    """Sparse rows as the reader of LIBSVM text returns them."""

    name = "approxsvm, CSR float64"
    is_rounded = False

    @staticmethod
    def _rows_of(sample: Sample) -> Any:
        return sample.csr


class ExactDense(CompiledPeer):
    """The exact engine alone, on dense rows."""

    name = "approxsvm exact, dense float32"
    mode: Mode = "exact"
    answer: Answer = "exact"


class ExactCsr(Csr):
    """The exact engine alone, on sparse rows."""

    name = "approxsvm exact, CSR float64"
    mode: Mode = "exact"
    answer: Answer = "exact"


class CertifiedDense(ExactDense):
    """The expansion, with the exact engine behind it, on dense rows."""

    name = "approxsvm certified, dense float32"
    mode: Mode = "certified"


class CertifiedCsr(ExactCsr):
    """The expansion, with the exact engine behind it, on sparse rows."""

    name = "approxsvm certified, CSR float64"
    mode: Mode = "certified"


IN_MEMORY: tuple[type[Peer], ...] = (Libsvm, SklearnSVC, NumpyBlas, DenseFloat32, DenseFloat64, Csr)

"""What a careful NumPy user writes, for the model and for its expansion."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.reference import decision_values as reference
from benchmarks.peers.frame import Peer, Predict, Sample, Trained, block_by_block

_BLAS_ROWS = 256  # of 16 up to 1024 as fast as any
_EXPANSION_ROWS = 512  # with einsum the fastest of what was tried, twice as fast as whole arrays at d = 123


def prepare(trained: Trained, sample: Sample, n_threads: int) -> Predict:
    """All kernels by float32 BLAS, as a careful NumPy user writes it: blocks of rows against all support vectors."""
    model, gamma = trained.model, np.float32(trained.model.gamma)
    support_vectors = model.dense_support_vectors(0, model.n_sv)
    twice = np.ascontiguousarray(2.0 * gamma * support_vectors.T, dtype=np.float32)
    sq_norms = (-gamma * np.einsum("ij,ij->i", support_vectors, support_vectors)).astype(np.float32)
    coefficients, intercept = model.coefficients(0).astype(np.float32), np.float32(model.intercept[0])

    def values(rows: npt.NDArray[np.float32]) -> npt.NDArray[Any]:
        kernels = rows @ twice
        kernels += sq_norms
        kernels -= gamma * np.einsum("ij,ij->i", rows, rows)[:, np.newaxis]
        np.exp(kernels, out=kernels)
        return kernels @ coefficients + intercept

    return block_by_block(values, trained, sample, _BLAS_ROWS)


def _blas_expansion(trained: Trained, sample: Sample, n_threads: int) -> Predict:
    """The expansion as a careful NumPy user writes it: float32 BLAS on blocks of rows that fit the cache."""
    expansion = reference.second_order(trained.model)
    center, linear = expansion.center.astype(np.float32), expansion.linear.astype(np.float32)
    quadratic = np.ascontiguousarray(expansion.quadratic, dtype=np.float32)
    constant, intercept, gamma = map(np.float32, (expansion.constant, expansion.intercept, expansion.gamma))

    def values(rows: npt.NDArray[np.float32]) -> npt.NDArray[Any]:
        u = rows - center
        products = u @ quadratic
        products += linear
        inner = np.einsum("ij,ij->i", products, u) + constant
        return inner * np.exp(-gamma * np.einsum("ij,ij->i", u, u)) + intercept

    return block_by_block(values, trained, sample, _EXPANSION_ROWS)


PEER = Peer("NumPy float32 BLAS", prepare, package="numpy")
EXPANSION = Peer("NumPy float32 BLAS, expansion", _blas_expansion, "expansion", "all", package="numpy")

"""A careful NumPy implementation."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.peers.frame import Peer, Predict, Sample, Trained, block_by_block

_BLAS_ROWS = 256  # as fast as any size from 16 to 1024


def prepare(trained: Trained, sample: Sample) -> Predict:
    """Compute all kernel values with float32 BLAS, as a careful user would: row blocks times all support vectors."""
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


PEER = Peer("NumPy float32 BLAS", prepare, package="numpy")

"""LIBSVM itself, by the package libsvm-official."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from threadpoolctl import ThreadpoolController

from benchmarks.peers.frame import Peer, Predict, Sample, Trained


def prepare(trained: Trained, sample: Sample, n_threads: int) -> Predict:
    """LIBSVM itself in this process, on nodes built beforehand; each call through ctypes adds about 1 us."""
    from libsvm import svm, svmutil

    model = svmutil.svm_load_model(os.fspath(trained.model_path))
    problem = svm.svm_problem(np.zeros(len(sample)), csr_matrix(sample.csr))
    nodes, svm_predict = [problem.x[i] for i in range(len(sample))], svm.libsvm.svm_predict
    limit = partial(ThreadpoolController().limit, limits=n_threads)  # the build on PyPI uses OpenMP

    def predict() -> npt.NDArray[Any]:
        """Row by row: it has no other form."""
        with limit():
            return np.array([svm_predict(model, row) for row in nodes])

    return predict


PEER = Peer("LIBSVM", prepare, "exact", "few", is_rounded=False, is_parallel=True, package="libsvm-official")

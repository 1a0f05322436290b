"""LIBSVM, from the package libsvm-official."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from threadpoolctl import ThreadpoolController

from benchmarks.peers.frame import Peer, Predict, Sample, Trained


def prepare(trained: Trained, sample: Sample) -> Predict:
    """Prepare LIBSVM in this process, on nodes built beforehand; each call through ctypes adds about 1 us."""
    from libsvm import svm, svmutil

    model = svmutil.svm_load_model(os.fspath(trained.model_path))
    problem = svm.svm_problem(np.zeros(len(sample)), csr_matrix(sample.csr))
    nodes, svm_predict = [problem.x[i] for i in range(len(sample))], svm.libsvm.svm_predict
    limit = partial(ThreadpoolController().limit, limits=sample.n_threads)  # the build on PyPI uses OpenMP

    def predict() -> npt.NDArray[Any]:
        """Predict row by row, because LIBSVM has no batch call."""
        with limit():
            return np.array([svm_predict(model, row) for row in nodes])

    return predict


PEER = Peer("LIBSVM", prepare, is_slow=True, is_rounded=False, package="libsvm-official")


def write_libsvm_model(trained: Trained) -> None:
    """Write a `Trained` as a LIBSVM model file."""
    model = trained.model
    with trained.model_path.open("w") as file:
        file.write("svm_type c_svc\nkernel_type rbf\n")
        file.write(f"gamma {model.gamma:.17g}\nnr_class {len(model.labels)}\ntotal_sv {model.n_sv}\n")
        file.write("rho " + " ".join(f"{-b:.17g}" for b in model.intercept) + "\n")
        file.write("label " + " ".join(str(int(label)) for label in model.labels) + "\n")
        file.write("nr_sv " + " ".join(map(str, np.asarray(model.n_support))) + "\nSV\n")
        for a, x in zip(model.dual_coef.T, model.dense_support_vectors(0, model.n_sv), strict=True):
            file.write(" ".join(f"{v:.17g}" for v in a) + " ")
            file.write(" ".join(f"{j + 1}:{x[j]:.17g}" for j in np.flatnonzero(x)) + "\n")

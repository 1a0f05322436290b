"""ThunderSVM, whose wheels need a CUDA of their time; its sources build a library for processors alone."""

from __future__ import annotations

import os

import numpy as np

from benchmarks.peers.frame import Peer, Predict, Sample, Trained


def prepare(trained: Trained, sample: Sample) -> Predict:
    """Where its library loads: the wheel of 0.3.12 wants CUDA 9."""
    try:
        import thundersvm
    except OSError as error:  # of the library in the wheel
        raise ImportError(str(error)) from error
    svc = thundersvm.SVC(n_jobs=1)
    svc.load_from_file(os.fspath(trained.model_path))
    return lambda: np.asarray(svc.predict(sample.csr))


PEER = Peer("ThunderSVM", prepare, is_rounded=False, package="thundersvm")

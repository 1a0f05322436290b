"""ThunderSVM, whose wheels need an old CUDA; its sources build a CPU-only library."""

from __future__ import annotations

import os

import numpy as np

from benchmarks.peers.frame import Peer, Predict, Sample, Trained


def prepare(trained: Trained, sample: Sample) -> Predict:
    """Prepare ThunderSVM if its library loads: the wheel of 0.3.12 needs CUDA 9."""
    try:
        import thundersvm
    except OSError as error:  # from loading the library in the wheel
        raise ImportError(str(error)) from error
    svc = thundersvm.SVC(n_jobs=sample.n_threads)
    svc.load_from_file(os.fspath(trained.model_path))
    return lambda: np.asarray(svc.predict(sample.csr))


PEER = Peer("ThunderSVM", prepare, is_rounded=False, package="thundersvm")

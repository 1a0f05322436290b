"""scikit-learn-intelex, for x86-64 processors."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.peers.frame import Peer, Predict, Sample, Trained
from benchmarks.peers.scikit_learn import set_shape


def prepare(trained: Trained, sample: Sample) -> Predict:
    """Prepare oneDAL's SVC, which is built from a fitted SVC's public attributes at the first prediction.

    It computes in float32 if its rows are float32, so a few labels differ.
    """
    from sklearnex import svm

    model = trained.model
    svc = svm.SVC(kernel="rbf", gamma=model.gamma, n_jobs=sample.n_threads)  # limits oneDAL's threads
    support_vectors = model.dense_support_vectors(0, model.n_sv)
    svc.support_vectors_ = np.ascontiguousarray(support_vectors, dtype=np.float32)
    svc.dual_coef_ = np.ascontiguousarray(-model.dual_coef, dtype=np.float32)  # positive values mean the second label
    svc.intercept_ = -model.intercept.astype(np.float32)
    set_shape(svc, model)
    return partial(svc.predict, sample.float32)


PEER = Peer("scikit-learn-intelex, dense float32", prepare, package="scikit-learn-intelex")

"""cuML, which needs a GPU of NVIDIA; the rows are on it already when the clock starts."""

from __future__ import annotations

from benchmarks.peers.frame import Peer, Predict, Sample, Trained
from benchmarks.peers.scikit_learn import as_svc


def prepare(trained: Trained, sample: Sample) -> Predict:
    """From scikit-learn's attributes; not tried where it was written, for want of a GPU."""
    import cupy
    from cuml.svm import SVC

    model, rows = SVC.from_sklearn(as_svc(trained.model)), cupy.asarray(sample.float32)
    return lambda: cupy.asnumpy(model.predict(rows))


PEER = Peer("cuML, needs a GPU", prepare, package="cuml-cu12")

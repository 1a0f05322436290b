"""cuML, which needs an NVIDIA GPU; the rows are on the GPU before the clock starts."""

from __future__ import annotations

from benchmarks.peers.frame import Peer, Predict, Sample, Trained
from benchmarks.peers.scikit_learn import as_svc


def prepare(trained: Trained, sample: Sample) -> Predict:
    """Build the model from scikit-learn's attributes; untested, for lack of a GPU."""
    import cupy
    from cuml.svm import SVC

    model, rows = SVC.from_sklearn(as_svc(trained.model)), cupy.asarray(sample.float32)
    return lambda: cupy.asnumpy(model.predict(rows))


PEER = Peer("cuML, needs a GPU", prepare, package="cuml-cu12")

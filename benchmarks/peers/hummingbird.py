"""Hummingbird: scikit-learn's SVC as PyTorch tensor operations."""

from __future__ import annotations

import warnings

from benchmarks.peers.frame import LeftOutError, Peer, Predict, Sample, Trained
from benchmarks.peers.scikit_learn import as_svc


def prepare(trained: Trained, sample: Sample) -> Predict:
    """Convert with Hummingbird; the tensors in one call hold all differences between rows and support vectors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch
        from hummingbird.ml import convert

        if len(sample) * trained.model.n_sv * trained.model.n_features > 4e9:
            raise LeftOutError("its tensors would take more than 16 GB")
        torch.set_num_threads(1)
        model = convert(as_svc(trained.model), "torch")
    return lambda: model.predict(sample.float32)


PEER = Peer("Hummingbird, dense float32", prepare, is_slow=True, package="hummingbird-ml")

"""KARL: bounds for subtrees of a tree of support vectors."""

from __future__ import annotations

import numpy as np

from benchmarks.karl import best_tree
from benchmarks.peers.frame import Peer, Predict, Sample, Trained


def prepare(trained: Trained, sample: Sample) -> Predict:
    """Prepare bound-based exact aggregation, the only other exact method that skips support vectors (ICDE 2019).

    Sums in leaves are float32, and their rounding is not bounded.
    """
    rows, labels = sample.float32, trained.model.labels
    _, tree = best_tree(trained.model, rows)
    return lambda: np.where(tree.positive(rows)[0], *labels)


PEER = Peer("KARL, dense float32", prepare)

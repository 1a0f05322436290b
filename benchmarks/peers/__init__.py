"""Peers that predict in memory, one file each; frame.py explains how to add a peer."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from benchmarks.peers import karl_tree, libsvm, scikit_learn
from benchmarks.peers.frame import LeftOutError, Peer, Predict, Sample, Trained
from benchmarks.peers.libsvm import write_libsvm_model
from benchmarks.peers.onnx_runtime import onnx_session, svm_classifier
from benchmarks.peers.scikit_learn import as_svc

__all__ = [
    "KARL",
    "LIBSVM",
    "OTHERS",
    "SKLEARN",
    "LeftOutError",
    "Peer",
    "Predict",
    "Sample",
    "Trained",
    "as_svc",
    "onnx_session",
    "svm_classifier",
    "write_libsvm_model",
]

LIBSVM, SKLEARN, KARL = libsvm.PEER, scikit_learn.PEER, karl_tree.PEER
_FILES = [name for _, name, _ in iter_modules(__path__) if name not in ("frame", "libsvm", "scikit_learn")]
# Peers for two classes and dense rows: each file in this folder adds one.
OTHERS: tuple[Peer, ...] = tuple(import_module(f"{__name__}.{name}").PEER for name in _FILES)

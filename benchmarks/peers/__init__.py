"""Everything that predicts in memory: a file for each contender, ours among them; frame.py says how to add one."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from pkgutil import iter_modules
from typing import Literal

import approxsvm
from approxsvm.model.schema import Mode
from benchmarks.peers import karl_tree, libsvm, numpy_blas, scikit_learn
from benchmarks.peers.frame import LeftOutError, Peer, Predict, Sample, Trained
from benchmarks.peers.libsvm import write_libsvm_model
from benchmarks.peers.onnx_runtime import onnx_session, svm_classifier

__all__ = [
    "EXACT",
    "EXPANSIONS",
    "KARL",
    "LIBSVM",
    "OTHERS",
    "SKLEARN",
    "LeftOutError",
    "Peer",
    "Predict",
    "Sample",
    "Trained",
    "onnx_session",
    "svm_classifier",
    "write_libsvm_model",
]

LIBSVM, SKLEARN, KARL = libsvm.PEER, scikit_learn.PEER, karl_tree.PEER
_FILES = [name for _, name, _ in iter_modules(__path__) if name not in ("frame", "libsvm", "scikit_learn")]
# Those that need two classes and dense rows: a file more in this folder is a peer more.
OTHERS: tuple[Peer, ...] = tuple(import_module(f"{__name__}.{name}").PEER for name in _FILES)


def _ours(name: str, mode: Mode, form: str, is_parallel: bool = True) -> Peer:
    """Our predictor in some mode, on some form of rows."""

    def prepare(trained: Trained, sample: Sample, n_threads: int) -> Predict:
        fast = approxsvm.CompiledSVC(trained.compiled[mode].artifact, n_jobs=n_threads)
        return partial(fast.predict, getattr(sample, form))

    answer: Literal["exact", "expansion"] = "expansion" if mode == "approximate" else "exact"
    return Peer(name, prepare, answer, "all", form == "float32", is_parallel, mode)


EXACT = (
    LIBSVM,
    SKLEARN,
    *OTHERS,
    _ours("approxsvm exact, dense float32", "exact", "float32"),
    _ours("approxsvm exact, CSR float64", "exact", "csr"),
    _ours("approxsvm certified, dense float32", "certified", "float32"),
    _ours("approxsvm certified, CSR float64", "certified", "csr"),
)
EXPANSIONS = (
    numpy_blas.EXPANSION,
    _ours("approxsvm, dense float32", "approximate", "float32"),
    # Float64 rows could have more threads, too, but two forms of rows on all threads say enough.
    _ours("approxsvm, dense float64", "approximate", "float64", is_parallel=False),
    _ours("approxsvm, CSR float64", "approximate", "csr"),
)

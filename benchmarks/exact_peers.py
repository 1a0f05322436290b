"""Other programs' ways to the exact model's labels: KARL, BLAS, onnxruntime, ThunderSVM; and all who take part."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

import approxsvm
from benchmarks.answers import Labels
from benchmarks.compiled import Models
from benchmarks.karl import best_tree
from benchmarks.peers import (
    Answer,
    CertifiedCsr,
    CertifiedDense,
    ExactCsr,
    ExactDense,
    Libsvm,
    Peer,
    Rows,
    Sample,
    SklearnIntelex,
    SklearnSVC,
    Trained,
)


class Karl:
    """Bound-based exact aggregation, the only other way to exact labels that skips support vectors (ICDE 2019).

    Sums in leaves are float32, and their rounding is not bounded.
    """

    name = "KARL, dense float32"
    answer: Answer = "nearly exact"
    rows: Rows = "many"
    is_rounded = True
    is_parallel = False
    counts_multiply_adds = False

    def __init__(self, trained: Trained, models: Models, sample: Sample, n_threads: int) -> None:
        self._rows, self._labels = sample.float32, trained.model.labels
        self.shape, self._tree = best_tree(trained.model, self._rows)

    def predict(self) -> Labels:
        """Row by row."""
        return np.where(self._tree.positive(self._rows)[0], self._labels[0], self._labels[1])

    @property
    def visited(self) -> float:
        """Share of the support vectors that were summed up."""
        return self._tree.positive(self._rows)[1]


class BlasScan:
    """All kernels by float32 BLAS, as a careful NumPy user writes it: blocks of rows against all support vectors."""

    name = "NumPy float32 BLAS"
    answer: Answer = "nearly exact"
    rows: Rows = "many"
    is_rounded = True
    is_parallel = False
    counts_multiply_adds = False

    _BLOCK_ROWS = 256  # of 16 up to 1024 as fast as any

    def __init__(self, trained: Trained, models: Models, sample: Sample, n_threads: int) -> None:
        model = trained.model
        support_vectors = model.dense_support_vectors(0, model.n_sv)
        self._twice = np.ascontiguousarray(2.0 * model.gamma * support_vectors.T, dtype=np.float32)
        self._sq_norms = (-model.gamma * np.einsum("ij,ij->i", support_vectors, support_vectors)).astype(np.float32)
        self._coefficients = model.coefficients(0).astype(np.float32)
        self._gamma, self._intercept = np.float32(model.gamma), np.float32(model.intercept[0])
        self._labels, self._rows = model.labels, sample.float32

    def predict(self) -> Labels:
        """Predict block by block."""
        values = np.empty(len(self._rows), np.float32)
        for first in range(0, len(values), self._BLOCK_ROWS):
            rows = self._rows[first : first + self._BLOCK_ROWS]
            kernels = rows @ self._twice
            kernels += self._sq_norms
            kernels -= self._gamma * np.einsum("ij,ij->i", rows, rows)[:, np.newaxis]
            np.exp(kernels, out=kernels)
            values[first : first + self._BLOCK_ROWS] = kernels @ self._coefficients + self._intercept
        return np.where(values > 0.0, self._labels[0], self._labels[1])


class OnnxRuntime:
    """onnxruntime's SVMClassifier, as skl2onnx writes it."""

    name = "onnxruntime, dense float32"
    answer: Answer = "nearly exact"
    rows: Rows = "few"
    is_rounded = True
    is_parallel = False
    counts_multiply_adds = False

    def __init__(self, trained: Trained, models: Models, sample: Sample, n_threads: int) -> None:
        self._session = onnx_session(svm_classifier(trained.model))
        self._rows = sample.float32

    def predict(self) -> Labels:
        """Predict the whole sample at once."""
        return np.asarray(self._session.run(["label"], {"X": self._rows})[0])


class ThunderSvm:
    """ThunderSVM, where its library loads: the wheel of 0.3.12 wants CUDA 9."""

    name = "ThunderSVM"
    answer: Answer = "nearly exact"
    rows: Rows = "many"
    is_rounded = False
    is_parallel = True
    counts_multiply_adds = False

    def __init__(self, trained: Trained, models: Models, sample: Sample, n_threads: int) -> None:
        try:
            import thundersvm
        except OSError as error:  # of the library in the wheel
            raise ImportError(str(error)) from error
        self._svc = thundersvm.SVC(n_jobs=n_threads)
        self._svc.load_from_file(os.fspath(trained.model_path))
        self._rows = sample.csr

    def predict(self) -> Labels:
        """Predict the whole sample at once."""
        return np.asarray(self._svc.predict(self._rows))


EXACT: tuple[type[Peer], ...] = (
    Libsvm,
    SklearnSVC,
    SklearnIntelex,
    OnnxRuntime,
    ThunderSvm,
    BlasScan,
    Karl,
    ExactDense,
    ExactCsr,
    CertifiedDense,
    CertifiedCsr,
)


def svm_classifier(model: approxsvm.KernelModel) -> Any:
    """The graph that skl2onnx writes for an SVC of two classes, from a model that scikit-learn has not trained."""
    from onnx import TensorProto, helper

    node = helper.make_node(
        "SVMClassifier",
        ["X"],
        ["label", "probabilities"],
        domain="ai.onnx.ml",
        kernel_type="RBF",
        kernel_params=[model.gamma, 0.0, 3.0],
        classlabels_ints=[int(label) for label in model.labels],
        coefficients=model.coefficients(0).tolist(),
        support_vectors=model.dense_support_vectors(0, model.n_sv).ravel().tolist(),
        rho=[float(model.intercept[0])],
        vectors_per_class=np.asarray(model.n_support).tolist(),
        post_transform="NONE",
    )
    rows = helper.make_tensor_value_info("X", TensorProto.FLOAT, [None, model.n_features])
    outputs = [
        helper.make_tensor_value_info("label", TensorProto.INT64, [None]),
        helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [None, 2]),
    ]
    graph = helper.make_graph([node], "svm", [rows], outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 1)], ir_version=8)


def onnx_session(graph: Any) -> Any:
    """On one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])

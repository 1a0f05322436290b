"""onnxruntime's SVMClassifier, as written by skl2onnx."""

from __future__ import annotations

from typing import Any

import numpy as np

import approxsvm
from benchmarks.peers.frame import Peer, Predict, Sample, Trained


def prepare(trained: Trained, sample: Sample) -> Predict:
    session, rows = onnx_session(svm_classifier(trained.model), sample.n_threads), sample.float32
    return lambda: np.asarray(session.run(["label"], {"X": rows})[0])


def svm_classifier(model: approxsvm.KernelModel) -> Any:
    """Build skl2onnx's graph for a two-class SVC from a model that was not trained by scikit-learn."""
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


def onnx_session(graph: Any, n_threads: int = 1) -> Any:
    """Open a session for a graph."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = n_threads, 1
    return onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])


PEER = Peer("onnxruntime, dense float32", prepare, is_slow=True, package="onnxruntime")

"""Everything that predicts in memory: one function per contender, ours among them, and what is known of it.

To add one, write a function that prepares a call, and a `Peer` in `OTHERS` or `OURS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, csr_matrix
from sklearn.svm import SVC
from threadpoolctl import ThreadpoolController

import approxsvm
from approxsvm.model.schema import Mode
from approxsvm.reference import decision_values as reference
from benchmarks.karl import best_tree

Predict: TypeAlias = Callable[[], npt.NDArray[Any]]

_BLAS_ROWS = 256  # of 16 up to 1024 as fast as any
_EXPANSION_ROWS = 512  # with einsum the fastest of what was tried, twice as fast as whole arrays at d = 123


class Sample:
    """Some test rows in all the forms that contenders want, made once so that they share the processor's cache.

    Parameters
    ----------
    X : csr_array of shape (n_test_rows, n_features)
    numbers : ndarray of int
        Which test rows.
    """

    def __init__(self, X: csr_array, numbers: npt.NDArray[np.intp]) -> None:
        self.numbers = numbers
        self.csr: csr_array = X[numbers]

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def float32(self) -> npt.NDArray[np.float32]:
        """Dense rows, C-contiguous."""
        return self.csr.astype(np.float32).toarray()

    @cached_property
    def float64(self) -> npt.NDArray[np.float64]:
        """Dense rows, C-contiguous."""
        return self.csr.toarray()


@dataclass(frozen=True, eq=False)
class Trained:
    """A model as it was read, LIBSVM's file of it, and what it compiles to, by mode."""

    model: approxsvm.KernelModel
    model_path: Path
    compiled: dict[Mode, approxsvm.CompiledSVC] = field(default_factory=dict, kw_only=True)


@dataclass(frozen=True)
class Peer:
    """A contender.

    Attributes
    ----------
    name : str
        As shown in tables.
    prepare : callable
        Of a `Trained`, a `Sample` and a number of threads, makes the call that predicts the sample; only that is timed.
    answer : {"exact", "nearly exact", "expansion"}
        Which labels it must give.
    rows : {"few", "many", "all"}
        How many rows it gets: the slower it is, the fewer.
    is_rounded : bool
        Whether it gets rows in float32, so that exact labels are those of the rounded rows.
    is_parallel : bool
        Whether it can use more than one thread.
    mode : {"approximate", "exact", "certified"}, optional
        Of ours.
    """

    name: str
    prepare: Callable[[Trained, Sample, int], Predict]
    answer: Literal["exact", "nearly exact", "expansion"] = "nearly exact"
    rows: Literal["few", "many", "all"] = "many"
    is_rounded: bool = True
    is_parallel: bool = False
    mode: Mode | None = None


def _libsvm(trained: Trained, sample: Sample, n_threads: int) -> Predict:
    """LIBSVM itself in this process, on nodes built beforehand; each call through ctypes adds about 1 us."""
    from libsvm import svm, svmutil

    model = svmutil.svm_load_model(os.fspath(trained.model_path))
    problem = svm.svm_problem(np.zeros(len(sample)), csr_matrix(sample.csr))
    nodes, svm_predict = [problem.x[i] for i in range(len(sample))], svm.libsvm.svm_predict
    limit = partial(ThreadpoolController().limit, limits=n_threads)  # the build on PyPI uses OpenMP

    def predict() -> npt.NDArray[Any]:
        """Row by row: it has no other form."""
        with limit():
            return np.array([svm_predict(model, row) for row in nodes])

    return predict


def _sklearn(trained: Trained, sample: Sample, n_threads: int) -> Predict:
    """scikit-learn's SVC without training: its prediction reads these attributes and nothing else.

    Training again would take minutes and give another model. The classes stay in the model's order, not
    sorted: ``predict`` only looks them up.
    """
    model = trained.model
    svc = SVC(kernel="rbf", gamma=model.gamma)
    svc._dual_coef_ = np.ascontiguousarray(model.dual_coef)
    svc._intercept_ = np.ascontiguousarray(model.intercept)
    svc.support_vectors_ = np.ascontiguousarray(model.dense_support_vectors(0, model.n_sv))
    _set_shape(svc, model)
    return partial(svc.predict, sample.float64)


def _sklearn_intelex(trained: Trained, sample: Sample, n_threads: int) -> Predict:
    """The SVC of oneDAL: from the public attributes of a fitted SVC it makes its model at the first prediction.

    Its arithmetic is float32 where its rows are, so a few labels differ.
    """
    from sklearnex import svm

    model = trained.model
    svc = svm.SVC(kernel="rbf", gamma=model.gamma, n_jobs=n_threads)  # n_jobs limits oneDAL's threads
    support_vectors = model.dense_support_vectors(0, model.n_sv)
    svc.support_vectors_ = np.ascontiguousarray(support_vectors, dtype=np.float32)
    svc.dual_coef_ = np.ascontiguousarray(-model.dual_coef, dtype=np.float32)  # positive is the second label
    svc.intercept_ = -model.intercept.astype(np.float32)
    _set_shape(svc, model)
    return partial(svc.predict, sample.float32)


def _set_shape(svc: SVC, model: approxsvm.KernelModel) -> None:
    svc._sparse = False
    svc._gamma = model.gamma
    svc._n_support = np.asarray(model.n_support, dtype=np.int32)
    svc._probA = svc._probB = np.empty(0)
    svc.support_ = np.arange(model.n_sv, dtype=np.int32)
    svc.shape_fit_ = svc.support_vectors_.shape
    svc.n_features_in_ = model.n_features
    svc.classes_ = model.labels
    svc.fit_status_ = 0


def _onnxruntime(trained: Trained, sample: Sample, n_threads: int) -> Predict:
    session, rows = onnx_session(svm_classifier(trained.model)), sample.float32
    return lambda: np.asarray(session.run(["label"], {"X": rows})[0])


def _thundersvm(trained: Trained, sample: Sample, n_threads: int) -> Predict:
    """Where its library loads: the wheel of 0.3.12 wants CUDA 9."""
    try:
        import thundersvm
    except OSError as error:  # of the library in the wheel
        raise ImportError(str(error)) from error
    svc = thundersvm.SVC(n_jobs=n_threads)
    svc.load_from_file(os.fspath(trained.model_path))
    return lambda: np.asarray(svc.predict(sample.csr))


def _blas(trained: Trained, sample: Sample, n_threads: int) -> Predict:
    """All kernels by float32 BLAS, as a careful NumPy user writes it: blocks of rows against all support vectors."""
    model, gamma = trained.model, np.float32(trained.model.gamma)
    support_vectors = model.dense_support_vectors(0, model.n_sv)
    twice = np.ascontiguousarray(2.0 * gamma * support_vectors.T, dtype=np.float32)
    sq_norms = (-gamma * np.einsum("ij,ij->i", support_vectors, support_vectors)).astype(np.float32)
    coefficients, intercept = model.coefficients(0).astype(np.float32), np.float32(model.intercept[0])

    def values(rows: npt.NDArray[np.float32]) -> npt.NDArray[Any]:
        kernels = rows @ twice
        kernels += sq_norms
        kernels -= gamma * np.einsum("ij,ij->i", rows, rows)[:, np.newaxis]
        np.exp(kernels, out=kernels)
        return kernels @ coefficients + intercept

    return _block_by_block(values, trained, sample, _BLAS_ROWS)


def _blas_expansion(trained: Trained, sample: Sample, n_threads: int) -> Predict:
    """The expansion as a careful NumPy user writes it: float32 BLAS on blocks of rows that fit the cache."""
    expansion = reference.second_order(trained.model)
    center, linear = expansion.center.astype(np.float32), expansion.linear.astype(np.float32)
    quadratic = np.ascontiguousarray(expansion.quadratic, dtype=np.float32)
    constant, intercept, gamma = map(np.float32, (expansion.constant, expansion.intercept, expansion.gamma))

    def values(rows: npt.NDArray[np.float32]) -> npt.NDArray[Any]:
        u = rows - center
        products = u @ quadratic
        products += linear
        inner = np.einsum("ij,ij->i", products, u) + constant
        return inner * np.exp(-gamma * np.einsum("ij,ij->i", u, u)) + intercept

    return _block_by_block(values, trained, sample, _EXPANSION_ROWS)


def _block_by_block(values: Callable[[Any], Any], trained: Trained, sample: Sample, block_rows: int) -> Predict:
    rows, labels = sample.float32, trained.model.labels
    starts = range(0, len(rows), block_rows)
    return lambda: np.where(np.concatenate([values(rows[i : i + block_rows]) for i in starts]) > 0.0, *labels)


def _karl(trained: Trained, sample: Sample, n_threads: int) -> Predict:
    """Bound-based exact aggregation, the only other way to exact labels that skips support vectors (ICDE 2019).

    Sums in leaves are float32, and their rounding is not bounded.
    """
    rows, labels = sample.float32, trained.model.labels
    _, tree = best_tree(trained.model, rows)
    return lambda: np.where(tree.positive(rows)[0], *labels)


LIBSVM = Peer("LIBSVM", _libsvm, "exact", "few", is_rounded=False, is_parallel=True)
SKLEARN = Peer("scikit-learn SVC", _sklearn, "exact", "few", is_rounded=False)
KARL = Peer("KARL, dense float32", _karl)
# Those that need two classes and dense rows.
OTHERS = (
    Peer("scikit-learn-intelex, dense float32", _sklearn_intelex, is_parallel=True),
    Peer("onnxruntime, dense float32", _onnxruntime, rows="few"),
    Peer("ThunderSVM", _thundersvm, is_rounded=False, is_parallel=True),
    Peer("NumPy float32 BLAS", _blas),
    KARL,
)


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
    Peer("NumPy float32 BLAS, expansion", _blas_expansion, "expansion", "all"),
    _ours("approxsvm, dense float32", "approximate", "float32"),
    # Float64 rows could have more threads, too, but two forms of rows on all threads say enough.
    _ours("approxsvm, dense float64", "approximate", "float64", is_parallel=False),
    _ours("approxsvm, CSR float64", "approximate", "csr"),
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


def write_libsvm_model(trained: Trained) -> None:
    """The model file of a `Trained`, for LIBSVM."""
    model = trained.model
    with trained.model_path.open("w") as file:
        file.write("svm_type c_svc\nkernel_type rbf\n")
        file.write(f"gamma {model.gamma:.17g}\nnr_class {len(model.labels)}\ntotal_sv {model.n_sv}\n")
        file.write("rho " + " ".join(f"{-b:.17g}" for b in model.intercept) + "\n")
        file.write("label " + " ".join(str(int(label)) for label in model.labels) + "\n")
        file.write("nr_sv " + " ".join(map(str, np.asarray(model.n_support))) + "\nSV\n")
        for a, x in zip(model.dual_coef.T, model.dense_support_vectors(0, model.n_sv), strict=True):
            file.write(" ".join(f"{v:.17g}" for v in a) + " ")
            file.write(" ".join(f"{j + 1}:{x[j]:.17g}" for j in np.flatnonzero(x)) + "\n")

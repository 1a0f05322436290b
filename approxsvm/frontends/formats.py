"""Table of the file formats of models: how each is recognised, its reader, and its contents.

docs/sources.md shows the table (python -m docs.sources).
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from approxsvm.frontends import onnx_graph, opencv, pmml, vmaf
from approxsvm.ir.kernel_model import KernelModel

_RBF: Final = "RBF, linear and polynomial kernels of degree 1 to 6"


@dataclass(frozen=True)
class Format:
    """One file format.

    `kinds` are its names in the native `file_kind`; `read` is None if read_any reads it. The other fields are for
    messages and documentation.
    """

    name: str
    kinds: tuple[str, ...]
    read: Callable[[Path], KernelModel] | None
    tried: str  # versions of the programs that wrote the test files
    takes: str
    answers: str
    refused: str


FORMATS: Final = (
    Format(
        "LIBSVM model",
        (),
        None,
        "LIBSVM 3.37, ThunderSVM 0.3, R's e1071 1.7; files in the form that PCL 1.15 writes",
        "all five types; RBF, linear, sigmoid and polynomial kernels of degree 1 to 6; probabilities; with a range "
        "file of svm-scale or a scale file of e1071's write.svm; a line `scaling` of the Point Cloud Library",
        "LIBSVM's",
        "precomputed kernels: train another one; e1071's scale files that leave columns out: scale all of them or none",
    ),
    Format(
        "skops file",
        ("a skops file",),
        None,
        "skops 0.16",
        "the estimators below; needs the extra skops",
        "the estimator's",
        "types that skops does not trust, without `--trust` or `trust=`, which may name them",
    ),
    Format(
        "pickle or joblib file",
        (),
        None,
        "joblib 1.6",
        "the estimators below; by its content or suffix, .pkl, .pickle or .joblib; compressed too",
        "the estimator's",
        "without `--trust` or `trust=True`: reading one runs whatever code is in it",
    ),
    Format(
        "OpenCV ml::SVM",
        ("an OpenCV file (JSON)", "an OpenCV file (XML)", "an OpenCV file (YAML)"),
        opencv.read_opencv,
        "OpenCV 4.14; field names of 2.4",
        "XML, YAML and JSON, in gzip too, with or without a name (`svm.save`, `svm.write(fs)`); C_SVC, NU_SVC, "
        f"ONE_CLASS, EPS_SVR, NU_SVR; {_RBF}",
        "OpenCV's labels, 1 and 0 for ONE_CLASS; over the real numbers, while OpenCV computes in float32",
        "SIGMOID, CHI2 and INTER kernels, degrees that are not whole: train an RBF one",
    ),
    Format(
        "ONNX graph",
        ("an ONNX model",),
        onnx_graph.read_onnx,
        "skl2onnx 1.20, labels by onnxruntime 1.32",
        f"one SVMClassifier or SVMRegressor; {_RBF}; probabilities; Scaler, Add, Sub, Mul, Div, MatMul, Clip, Concat "
        "and chosen columns before it; needs the extra onnx",
        "onnxruntime's labels, scikit-learn's scores; the graph's numbers are float32, so it differs from the "
        "estimator that it was converted from",
        "other nodes: compile the estimator itself",
    ),
    Format(
        "PMML",
        ("a PMML file",),
        pmml.read_pmml,
        "PMML 4.4, JPMML-SkLearn (sklearn2pmml 0.133)",
        f"SupportVectorMachineModel; one against one, regression, JPMML's OneClassSVM; {_RBF}; dense and sparse "
        "vectors; derived fields by + - * / and NormContinuous; rescaled targets",
        "by the standard; a tie of votes goes to the target's first value",
        "OneAgainstAll of several classes, sigmoid kernels, categorical fields: train an SVC of numeric columns",
    ),
    Format(
        "VMAF model",
        ("a VMAF model (JSON)",),
        vmaf.read_vmaf,
        "files in the form that libvmaf 3 reads",
        "one LIBSVMNUSVR model in JSON, with the scales of its features and of the score",
        "scores before score_transform, which libvmaf also omits by default, and before score_clip, after which "
        "bounds hold as well",
        "an enabled score_transform: apply it to the scores; collections (bootstrap): save one model of them as a file",
    ),
)
READERS: Final = {kind: one.read for one in FORMATS if one.read is not None for kind in one.kinds}

"""Models from other programs: files in their formats, compared with the programs or with the stored numbers.

An oracle predicts as the program does, but refuses non-finite rows, as approxsvm does for all these programs.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import joblib
import numpy as np
import pmml_files
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

import approxsvm
from zoo.specimens import Entry
from zoo.tampering import parts_of

_N_COLUMNS = 4
_CENTER, _SCALE = np.array([1.0, -0.5, 0.25, 2.0]), np.array([0.5, 4.0, 2.0, 1.0])


def _finite(X: Any) -> Any:
    return np.asarray_chkfinite(X, dtype=np.float64)


# --- sums of kernels, in extended precision


@dataclass(frozen=True, eq=False)
class Machine:
    """Functions sum_i alpha_i K(x_i, row) + b, one per pair of classes, from which a program predicts."""

    vectors: Any
    functions: list[tuple[Any, Any, float]]  # indices of vectors, alpha, b
    kernel: Callable[[Any, Any], Any]
    labels: Any = None  # a classifier's labels; the first class wins its pairs with values above 0, and ties

    def predict(self, X: Any) -> Any:
        rows, vectors = _finite(X).astype(np.longdouble), np.asarray(self.vectors, np.longdouble)
        kernels = np.array([self.kernel(vectors, row) for row in rows])
        values = np.column_stack([kernels[:, used] @ alpha + b for used, alpha, b in self.functions])
        if self.labels is None:
            return values[:, 0].astype(np.float64)
        if len(self.functions) == 1 and len(self.labels) == 2:
            return np.where(values[:, 0] > 0, *self.labels)
        votes = np.zeros((len(rows), len(self.labels)))
        for value, (i, j) in zip(values.T, itertools.combinations(range(len(self.labels)), 2), strict=True):
            votes[:, i] += value > 0
            votes[:, j] += value <= 0
        return np.asarray(self.labels)[votes.argmax(axis=1)]


def _gaussian(gamma: float) -> Callable[[Any, Any], Any]:
    return lambda vectors, row: np.exp(-np.longdouble(gamma) * ((vectors - row) ** 2).sum(axis=1))


def _polynomial(gamma: float, coef0: float, degree: int) -> Callable[[Any, Any], Any]:
    return lambda vectors, row: (np.longdouble(gamma) * (vectors @ row) + np.longdouble(coef0)) ** degree


def _least_squares(X: Any, y: Any) -> Machine:
    """Train an LS-SVM with NumPy."""
    gamma, n = 0.1, len(X)
    kernel = np.exp(-gamma * ((X[:, np.newaxis] - X) ** 2).sum(axis=2)) + np.eye(n) / 10.0
    system = np.block([[np.zeros((1, 1)), np.ones((1, n))], [np.ones((n, 1)), kernel]])
    solution = np.linalg.solve(system, np.concatenate([[0.0], y]))
    return Machine(X, [(np.arange(n), solution[1:], solution[0])], _gaussian(gamma))


def _as_arrays(machine: Machine, folder: Path) -> Any:
    _, alpha, b = machine.functions[0]
    return approxsvm.KernelModel("regression", machine.vectors, alpha[np.newaxis], np.array([b]), 0.1)


def _opencv(kind: str, kernel: str) -> Callable[[Any, Any], Any]:
    def fit(X: Any, y: Any) -> Any:
        import cv2

        ml = cv2.ml
        made = ml.SVM_create()
        made.setType(getattr(ml, f"SVM_{kind}"))
        made.setKernel(getattr(ml, f"SVM_{kernel}"))
        for name, value in (("Gamma", 0.25), ("C", 2.0), ("Nu", 0.2), ("P", 0.125), ("Degree", 3.0), ("Coef0", 1.0)):
            getattr(made, f"set{name}")(value)
        made.train(X.astype(np.float32), ml.ROW_SAMPLE, y.astype(np.int32 if kind.endswith("SVC") else np.float32))
        labels = [1, 0] if kind == "ONE_CLASS" else np.unique(y) if kind.endswith("SVC") else None
        functions = []
        for k in range(1 if labels is None else len(labels) * (len(labels) - 1) // 2):
            rho, alpha, used = made.getDecisionFunction(k)
            functions.append((used.ravel(), alpha.ravel(), -rho))
        kernels = {"RBF": _gaussian(0.25), "LINEAR": _polynomial(1.0, 0.0, 1), "POLY": _polynomial(0.25, 1.0, 3)}
        judge = Machine(made.getSupportVectors(), functions, kernels[kernel], labels)
        object.__setattr__(judge, "made", made)
        return judge

    return fit


def _saved(suffix: str) -> Callable[[Any, Path], Path]:
    def write(judge: Any, folder: Path) -> Path:
        judge.made.save(str(folder / f"model.{suffix}"))
        return folder / f"model.{suffix}"

    return write


# --- LIBSVM, and programs that contain its models


class Libsvm:
    """LIBSVM's own predictions, optionally with rows and values converted to other units."""

    def __init__(self, options: str, X: Any, y: Any, scaled: Callable[[Any], Any] = np.asarray, unit: Any = (1.0, 0.0)):
        from libsvm import svmutil

        self._util, self.scaled, self.unit, self._has_shares = svmutil, scaled, unit, "-b 1" in options
        self.model = svmutil.svm_train(np.asarray(y).tolist(), scaled(_finite(X)).tolist(), f"-q {options}")

    def _nodes(self, X: Any) -> Any:
        return [self._util.gen_svm_nodearray(row)[0] for row in self.scaled(_finite(X)).tolist()]

    def predict(self, X: Any) -> Any:
        """Call the C function, because svmutil.svm_predict allocates only one value for a multiclass nu-SVC."""
        found = [self._util.libsvm.svm_predict(self.model, nodes) for nodes in self._nodes(X)]
        return np.array(found) * self.unit[0] + self.unit[1]

    def predict_proba(self, X: Any) -> Any:
        is_regression = self.model.get_svm_type() in (3, 4)
        if not self._has_shares or is_regression:
            raise AttributeError("no probabilities")
        labels, found = [0, 1] if self.model.get_svm_type() == 2 else self.model.get_labels(), []  # normal, outlier
        for nodes in self._nodes(X):
            shares = (ctypes.c_double * len(labels))()
            self._util.libsvm.svm_predict_probability(self.model, nodes, shares)
            found.append(list(shares))
        return np.array(found)[:, np.argsort(labels)]

    def save(self, path: Path) -> Path:
        self._util.svm_save_model(str(path), self.model)
        return path


def _trained(options: str, **others: Any) -> Callable[[Any, Any], Any]:
    return lambda X, y: Libsvm(options, X, y, **others)


def _file(judge: Libsvm, folder: Path) -> Path:
    return judge.save(folder / "libsvm.model")


def _scaled(rows: Any) -> Any:
    return (rows - _CENTER) / _SCALE


def _scaled_by_svm_scale(rows: Any) -> Any:
    """Scale every column from [0, 8] to [-1, 1], as svm-scale does."""
    return -1.0 + 2.0 * (rows - 0.0) / 8.0


def _with_range(judge: Libsvm, folder: Path) -> Any:
    (folder / "range").write_text("x\n-1 1\n" + "".join(f"{k} 0 8\n" for k in range(1, _N_COLUMNS + 1)))
    return approxsvm.with_range_file(_file(judge, folder), folder / "range")


def _with_scale_of_e1071(judge: Libsvm, folder: Path) -> Any:
    """Write scale files as R's write.svm does, with a center and a scale on each line."""
    numbers = zip(_CENTER.tolist(), _SCALE.tolist(), strict=True)
    (folder / "model.scale").write_text("".join(f"{center!r} {scale!r}\n" for center, scale in numbers))
    (folder / "model.yscale").write_text("{1!r} {0!r}\n".format(*judge.unit))
    return approxsvm.with_range_file(_file(judge, folder), folder / "model.scale", restore_target=True)


def _with_scaling_of_pcl(judge: Libsvm, folder: Path) -> Path:
    """Write a model file as the Point Cloud Library does, with a line that lists each feature's divisor."""
    path = _file(judge, folder)
    line = " ".join(f"{k}:{8.0!r}" for k in range(1, _N_COLUMNS + 1))
    path.write_text(path.read_text().replace("SV\n", f"scaling {line}\nSV\n"))
    return path


_SLOPES, _INTERCEPTS = [0.5, *(1.0 / _SCALE).tolist()], [-0.25, *(-_CENTER / _SCALE).tolist()]


def _vmaf(judge: Libsvm, folder: Path) -> Path:
    held = {
        **{"model_type": "LIBSVMNUSVR", "model": _file(judge, folder).read_text(), "norm_type": "linear_rescale"},
        **{"slopes": _SLOPES, "intercepts": _INTERCEPTS, "feature_opts_dicts": [{}] * _N_COLUMNS},
        **{"feature_names": [f"VMAF_feature_{k}_score" for k in range(_N_COLUMNS)], "score_clip": [0.0, 100.0]},
    }
    (folder / "vmaf.json").write_text(json.dumps({"param_dict": {"C": 4.0}, "model_dict": held}))
    return folder / "vmaf.json"


# --- libraries that cannot be installed here, replaced by similar objects


def _standing_in(module: str, name: str, **attributes: Any) -> Any:
    held = vars(sys.modules.setdefault(module, ModuleType(module)))
    made = held.setdefault(name, type(name, (), {"__module__": module}))()
    vars(made).update(attributes)
    return made


def _cuml(source: Any, folder: Path) -> Any:
    names = ("support_vectors_", "dual_coef_", "intercept_", "_gamma", "kernel", "degree", "coef0", "classes_")
    found = {name: getattr(source, name) for name in names if hasattr(source, name)}
    name = type(source).__name__
    return _standing_in(f"cuml.svm.{name.lower()}", name, probability=False, **found)


def _thundersvm(name: str) -> Callable[[Libsvm, Path], Any]:
    def write(judge: Libsvm, folder: Path) -> Any:
        exact = approxsvm.read_any(_file(judge, folder))
        held = {"support_vectors_": None, "shape_fit_": (0, _N_COLUMNS), "intercept_": -exact.intercept}
        held |= {"_gamma": exact.gamma, "save_to_file": lambda path: judge.save(Path(path))}
        return _standing_in("thundersvm.thundersvm", name, **held)

    return write


# --- ONNX and PMML: estimators whose numbers the file can represent


def _in_float32(estimator: Any) -> Callable[[Any, Any], Any]:
    """Fit, then round all numbers to float32, and scales to powers of two, so that a graph stores them exactly."""

    def fit(X: Any, y: Any) -> Any:
        source = clone(estimator).fit(X, y)
        for _, part in parts_of(source):
            for name, value in vars(part).items():
                if isinstance(value, np.ndarray) and value.dtype == np.float64:
                    rounded = np.exp2(np.rint(np.log2(value))) if name == "scale_" else value.astype(np.float32)
                    setattr(part, name, rounded.astype(np.float64))
        return source

    return fit


def _onnx(source: Any, folder: Path) -> Path:
    from skl2onnx import to_onnx

    options = {id(source): {"zipmap": False}} if hasattr(source, "classes_") else {}
    graph = to_onnx(source, np.zeros((1, _N_COLUMNS), np.float32), options=options)
    (folder / "model.onnx").write_bytes(graph.SerializeToString())
    return folder / "model.onnx"


def _pmml(source: Any, folder: Path) -> Path:
    """Write a scaler and a kernel machine as JPMML-SkLearn does."""
    scaler, columns = source[0], [f"f{k}" for k in range(_N_COLUMNS)]
    derived = [pmml_files.scaled(f"s{c}", c, *of) for c, *of in zip(columns, scaler.mean_, scaler.scale_, strict=True)]
    options = {"derived": "".join(derived), "fields": [f"s{c}" for c in columns], "columns": columns}
    (folder / "model.pmml").write_text(pmml_files.text_of(source[-1], **options))
    return folder / "model.pmml"


def _skops(source: Any, folder: Path) -> Path:
    import skops.io

    skops.io.dump(source, folder / "model.skops")
    return folder / "model.skops"


def _joblib(source: Any, folder: Path) -> Any:
    joblib.dump(source, folder / "model.joblib.gz", compress=("gzip", 1))
    return approxsvm.read_any(folder / "model.joblib.gz", trust=True)


def _fitted(estimator: Any) -> Callable[[Any, Any], Any]:
    return lambda X, y: clone(estimator).fit(X, y)


def _entries() -> Iterator[Entry]:
    for name, options, target in (
        ("of three", "-s 0 -t 2 -g 0.1 -b 1", "numbered"),
        ("of two, sigmoid", "-s 0 -t 3 -g 0.02 -r -0.5", "two"),
        ("of three, linear", "-s 1 -t 0 -n 0.2", "numbered"),
        ("one class", "-s 2 -t 2 -g 0.1 -n 0.3 -b 1", "value"),
        ("cubic regression", "-s 3 -t 1 -d 3 -g 0.05 -r 1 -e 0.1 -b 1", "value"),
        ("regression", "-s 4 -t 2 -g 0.1", "value"),
    ):
        yield Entry(f"LIBSVM file, {name}", _trained(options), target=target, rows="signed", write=_file)
    held = {"rows": "signed", "write": lambda judge, _: judge.model}
    yield Entry("LIBSVM object", _trained("-s 0 -t 1 -d 2 -g 0.2 -r 1 -b 1"), target="two", **held)
    eight, e1071 = {"scaled": lambda rows: rows / 8.0}, {"scaled": _scaled, "unit": (2.5, 10.0)}
    for name, options, target, others, write in (
        ("svm-scale", "-g 0.5", "numbered", {"scaled": _scaled_by_svm_scale}, _with_range),
        ("e1071", "-s 3 -g 0.5", "value", e1071, _with_scale_of_e1071),
        ("PCL", "-g 0.5", "two", eight, _with_scaling_of_pcl),
        ("VMAF", "-s 4 -g 0.5", "value", {"scaled": _scaled, "unit": (1.0 / 0.5, 0.25 / 0.5)}, _vmaf),
        ("ThunderSVM SVC", "-g 0.25", "numbered", {}, _thundersvm("SVC")),
        ("ThunderSVM NuSVC", "-s 1 -n 0.2 -g 0.25", "two", {}, _thundersvm("NuSVC")),
        ("ThunderSVM SVR", "-s 3 -g 0.25", "value", {}, _thundersvm("SVR")),
        ("ThunderSVM NuSVR", "-s 4 -g 0.25", "value", {}, _thundersvm("NuSVR")),
        ("ThunderSVM OneClassSVM", "-s 2 -n 0.3 -g 0.25", "value", {}, _thundersvm("OneClassSVM")),
    ):
        yield Entry(name, _trained(options, **others), target=target, rows="signed", write=write)
    yield Entry("cuML SVC", _fitted(SVC(gamma=0.05)), target="two", write=_cuml)
    yield Entry("cuML SVR", _fitted(SVR(gamma=0.05)), target="value", write=_cuml)
    yield Entry("arrays", _least_squares, target="value", write=_as_arrays)
    for kind, kernel, target, suffix in (
        ("C_SVC", "RBF", "numbered", "xml"),
        ("C_SVC", "LINEAR", "two", "yml"),
        ("NU_SVC", "POLY", "numbered", "json"),
        ("ONE_CLASS", "RBF", "value", "yml.gz"),
        ("EPS_SVR", "POLY", "value", "xml.gz"),
        ("NU_SVR", "RBF", "value", "json"),
    ):
        fit, write = _opencv(kind, kernel), _saved(suffix)
        yield Entry(f"OpenCV {kind}, {kernel}, {suffix}", fit, target=target, rows="float32", write=write)
    exact = {"gamma": 0.125}
    for name, estimator, target in (
        ("SVC", make_pipeline(StandardScaler(), SVC(**exact)), "three"),
        ("pairs", SVC(decision_function_shape="ovo", **exact), "numbered"),
        ("quadratic", SVC(kernel="poly", degree=2, coef0=0.5, **exact), "two"),
        ("NuSVC of components", make_pipeline(PCA(2), NuSVC(nu=0.2, **exact)), "two"),
        ("SVR", make_pipeline(StandardScaler(), SVR(**exact)), "value"),
        (
            "table",
            make_pipeline(
                ColumnTransformer([("a", StandardScaler(), [2, 0]), ("b", "passthrough", [1])]), SVC(**exact)
            ),
            "three",
        ),
        ("union", make_pipeline(make_union(StandardScaler(), PCA(2)), SVC(**exact)), "numbered"),
        ("clipped", make_pipeline(MinMaxScaler(clip=True), SVC(**exact)), "two"),
        (
            "quadratic SVR",
            make_pipeline(RobustScaler(), MaxAbsScaler(), PCA(3), SVR(kernel="poly", degree=2, **exact)),
            "value",
        ),
        ("NuSVR, linear", NuSVR(kernel="linear"), "value"),
        ("OneClassSVM", OneClassSVM(nu=0.3, **exact), "value"),
    ):
        yield Entry(f"ONNX {name}", _in_float32(estimator), target=target, rows="signed", write=_onnx)
    scaled = [
        make_pipeline(StandardScaler(), one) for one in (SVC(), SVC(kernel="poly", coef0=1.0), SVR(), OneClassSVM())
    ]
    for estimator, target in zip(scaled, ("three", "three", "value", "value"), strict=True):
        yield Entry(f"PMML {estimator[-1]}", _fitted(estimator), target=target, rows="signed", write=_pmml)
    yield Entry("skops", _fitted(scaled[0]), target="three", rows="signed", write=_skops)
    yield Entry("joblib", _fitted(scaled[0]), target="three", rows="signed", write=_joblib)


ENTRIES = tuple(_entries())

"""Frontend for LIBSVM model files, data files and `svm_model` objects.

The native parser (cpp/text) parses the text; this module converts its result to arrays, and LIBSVM's indices to column
indices.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm import _native
from approxsvm.errors import DataFormatError, ModelFormatError, UnsupportedModelError
from approxsvm.frontends.kernels import kernel_fields
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.kernel_model import MAX_FEATURES, KernelModel, Task
from approxsvm.ir.outputs import DensityMarks, LaplaceNoise, Outputs, PairwiseSigmoid
from approxsvm.system.options import whole_number
from approxsvm.system.threads import n_threads

_MAX_COLUMNS: Final = 2**31 - 1  # limit for sparse rows, because LIBSVM's indices have type int
_TASKS: dict[str, Task] = {
    "c_svc": "classification",
    "nu_svc": "classification",
    "epsilon_svr": "regression",
    "nu_svr": "regression",
    "one_class": "one_class",
}
# Both tuples are in the order of LIBSVM's enumerations.
_OBJECT_TYPES: Final = ("c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr")
_OBJECT_KERNELS: Final = ("linear", "polynomial", "rbf", "sigmoid", "precomputed")
_OBJECT: Final = "this svm_model"


def read_libsvm_model(path: str | os.PathLike[str], *, n_features: int | None = None) -> KernelModel:
    """Read a model file with the RBF kernel, written by LIBSVM's svm-train, ThunderSVM or the Point Cloud Library.

    Parameters
    ----------
    path : str or path
    n_features : int, optional
        Number of columns, if the data have more columns than the support vectors use. LIBSVM's index of column 0 is 1,
        or 0 if a support vector uses index 0.

    Returns
    -------
    KernelModel
        The model, with sparse support vectors.

    Raises
    ------
    ModelFormatError
        The file is not a complete LIBSVM model; the message names the line.
    UnsupportedModelError
        The kernel is not the RBF kernel.
    OSError
        The file cannot be read.
    """
    name = os.fspath(path)
    return _rbf_machine(_native.read_libsvm_model(name), name, n_features)


def read_libsvm(path: str | os.PathLike[str], *, n_features: int | None = None) -> KernelModel:
    """Read a model file with any kernel into a model with sparse support vectors."""
    name = os.fspath(path)
    return model_of(_native.read_libsvm_model(name), name, n_features)


def model_of(content: _native.LibsvmModelDict, name: str, n_features: int | None = None) -> KernelModel:
    """Build the model from the contents of a LIBSVM file or object; `name` appears in error messages."""
    kind = {"linear": "linear", "polynomial": "poly"}.get(content["kernel_type"])
    numbers: dict[str, Any] = {**content}
    if kind is not None:  # the parser requires each kernel's parameters
        kernel = kernel_fields(name, content["kernel_type"], kind, numbers.__getitem__)
        return replace(_machine(content, name, n_features, kernel.pop("gamma")), **kernel)
    if content["kernel_type"] == "sigmoid":
        return replace(_machine(content, name, n_features, numbers["gamma"]), is_sigmoid=True, coef0=numbers["coef0"])
    return _rbf_machine(content, name, n_features)


def is_svm_model(candidate: Any) -> bool:
    """Return whether an object is an instance of LIBSVM's model class; LIBSVM is not imported."""
    cls = type(candidate)
    return cls.__name__ == "svm_model" and cls is getattr(sys.modules.get("libsvm.svm"), "svm_model", None)


def read_svm_model(model: Any) -> KernelModel:
    """Read a libsvm.svm `svm_model` object, which must not have been freed.

    The model is read from memory, because saving it to a file would round support vectors to eight digits.
    """
    n_classes, n_sv = int(model.nr_class), int(model.l)
    svm_type, kernel = int(model.param.svm_type), int(model.param.kernel_type)
    if not (0 <= svm_type < len(_OBJECT_TYPES) and 0 <= kernel < len(_OBJECT_KERNELS) and n_classes >= 1 and n_sv >= 0):
        raise ModelFormatError(
            f"{_OBJECT} has svm_type {svm_type}, kernel_type {kernel}, {n_classes} classes and {n_sv} support vectors"
        )
    is_classifier = svm_type < 2
    n_pairs = n_classes * (n_classes - 1) // 2
    indptr, indices, values = _vectors(model, n_sv)
    coef = [_numbers(model.sv_coef[row], n_sv) for row in range(max(1, n_classes - 1))]
    return model_of(
        {
            "svm_type": _OBJECT_TYPES[svm_type],
            "kernel_type": _OBJECT_KERNELS[kernel],
            "degree": int(model.param.degree),
            "gamma": float(model.param.gamma),
            "coef0": float(model.param.coef0),
            "n_classes": n_classes,
            "rho": _numbers(model.rho, n_pairs),
            "labels": _numbers(model.label, n_classes if is_classifier else 0).astype(np.int32),
            "n_sv_per_class": _numbers(model.nSV, n_classes if is_classifier else 0).astype(np.int64),
            "probA": _numbers(model.probA, n_pairs),
            "probB": _numbers(model.probB, n_pairs),
            "prob_density_marks": _numbers(getattr(model, "prob_density_marks", None), DensityMarks.n_marks),
            "coef": np.ascontiguousarray(np.transpose(coef)),
            "indptr": indptr,
            "indices": indices,
            "values": values,
            "min_index": int(indices.min(initial=MAX_FEATURES)) if len(indices) else -1,
            "max_index": int(indices.max(initial=-1)),
            "ends_in_line_break": True,
        },
        _OBJECT,
    )


def _numbers(pointer: Any, n: int) -> Any:
    """Copy the `n` values at a pointer as float64; return an empty array if it is null."""
    return np.array(pointer[:n] if pointer else [], np.float64)


def _vectors(model: Any, n_sv: int) -> tuple[Any, Any, Any]:
    """Return the support vectors as the three arrays of a CSR matrix, with LIBSVM's indices."""
    indptr, indices, values = [0], [], []
    for k in range(n_sv):
        row = model.SV[k]
        last, at = -1, 0
        while (index := row[at].index) != -1:
            if index <= last:
                raise ModelFormatError(f"support vector {k} of {_OBJECT} has index {index} after index {last}")
            indices.append(index)
            values.append(row[at].value)
            last, at = index, at + 1
        indptr.append(len(indices))
    return np.array(indptr, np.int64), np.array(indices, np.int32), np.array(values, np.float64)


def _rbf_machine(content: _native.LibsvmModelDict, name: str, n_features: int | None) -> KernelModel:
    kernel = content["kernel_type"]
    if kernel != "rbf":
        why = {"precomputed": " (it holds row numbers, not vectors)"}
        advice = (
            "which read_any supports; this function reads only rbf"
            if kernel in ("linear", "polynomial", "sigmoid")
            else "but only rbf, linear, sigmoid, and polynomial of degree 1 to 6 can be compiled"
        )
        raise UnsupportedModelError(f"{name}: the kernel is {kernel}{why.get(kernel, '')}, {advice}")
    gamma = content["gamma"]
    assert gamma is not None  # the parser requires gamma for this kernel
    return _machine(content, name, n_features, gamma)


def _machine(content: _native.LibsvmModelDict, name: str, n_features: int | None, gamma: float) -> KernelModel:
    """Build a model with support vectors, coefficients, labels and probability parameters."""
    from scipy.sparse import csr_array

    first_index = 0 if content["min_index"] == 0 else 1
    columns = _n_columns(content["max_index"], first_index, n_features, name, ModelFormatError)
    if columns > MAX_FEATURES:
        raise UnsupportedModelError(
            f"{name}: index {content['max_index']} is used, but at most {MAX_FEATURES} features are supported"
        )
    task = _TASKS[content["svm_type"]]
    shape = (len(content["coef"]), columns)
    support_vectors: Any = csr_array(
        (content["values"], content["indices"] - first_index, content["indptr"]), shape=shape
    )
    n_coef = max(1, content["n_classes"] - 1)
    return KernelModel(
        task=task,
        support_vectors=support_vectors,
        dual_coef=np.ascontiguousarray(content["coef"].reshape(-1, n_coef).T),
        intercept=-content["rho"],
        gamma=gamma,
        labels=content["labels"].astype(np.int64) if task == "classification" else np.empty(0),
        n_support=content["n_sv_per_class"],
        source=f"libsvm {content['svm_type']}",
        first_index=first_index,
        outputs=_outputs(content, task),
        input_map=_scaling(content, first_index, columns),
    )


def _scaling(content: _native.LibsvmModelDict, first_index: int, n_columns: int) -> InputMap | None:
    """Return the scaling stored in a Point Cloud Library model, which divides some features of each row."""
    if not len(content.get("scales", ())):
        return None
    divide = np.ones(n_columns)
    divide[content["scaled_indices"] - first_index] = content["scales"]
    return InputMap.identity(n_columns).then_affine(divide=divide)


def _outputs(content: _native.LibsvmModelDict, task: Task) -> Outputs:
    """Return the probability outputs if the file has the fields required by LIBSVM's svm_check_probability_model."""
    none = np.empty(0)
    prob_a, prob_b = content.get("probA", none), content.get("probB", none)
    marks = content.get("prob_density_marks", none)
    if task == "classification" and len(prob_a) and len(prob_b):
        return Outputs(probability=PairwiseSigmoid(prob_a, prob_b))
    if task == "regression" and len(prob_a):
        return Outputs(probability=LaplaceNoise(float(prob_a[0])))
    if task == "one_class" and len(marks):
        return Outputs(probability=DensityMarks(marks))
    return Outputs()


def read_libsvm_data(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    zero_based: bool | None = None,
    n_jobs: int | None = None,
) -> tuple[Any, npt.NDArray[np.float64]]:
    """Read rows of ``label index:value ...`` into a sparse matrix.

    Parameters
    ----------
    path : str or path
    n_features : int, optional
        Number of columns. Default: enough for the largest index in the file. Pass it for test files, which often use
        fewer features than the training file.
    zero_based : bool, optional
        True if column 0 has index 0, False if it has index 1. Default: True if some row uses index 0.
    n_jobs : int, optional
        Number of threads, as in scikit-learn; -1 means all processors. Default: 1.

    Returns
    -------
    X : csr_array of shape (n_rows, n_features), float64
    y : ndarray of shape (n_rows,), float64

    Raises
    ------
    DataFormatError
        A line is malformed (the message names it), or an index needs more than `n_features` columns.
    OSError
        The file cannot be read.
    """
    from scipy.sparse import csr_array

    name = os.fspath(path)
    labels, indptr, indices, values, min_index, max_index = _native.read_libsvm_data(name, n_threads(n_jobs))
    first_index = int(not (min_index == 0 if zero_based is None else zero_based))
    if min_index == 0 and first_index == 1:
        raise DataFormatError(f"{name}: index 0 is used, but with zero_based=False indices start at 1")
    columns = _n_columns(max_index, first_index, n_features, name, DataFormatError)
    if indptr[-1] <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)  # the same dtype as the column indices
    if first_index:
        indices -= 1
    return csr_array((values, indices, indptr), shape=(len(labels), columns)), labels


def _n_columns(max_index: int, first_index: int, wanted: int | None, name: str, error: type[Exception]) -> int:
    """Return `wanted`, or the file's number of columns if `wanted` is None; raise `error` if `wanted` is smaller."""
    needed = max(1, max_index + 1 - first_index)
    if wanted is None:
        return needed
    columns = int(whole_number(wanted, "n_features", 1, _MAX_COLUMNS))
    if columns < needed:
        raise error(f"{name}: index {max_index} needs {needed} columns, but n_features is {columns}")
    return columns

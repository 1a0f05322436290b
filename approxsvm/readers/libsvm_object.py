"""LIBSVM's own `svm_model`, as its Python package trains and loads it: a structure in C's memory.

Read where it lies, and not through a file, which would round support vectors to eight digits.
"""

from __future__ import annotations

import sys
from typing import Any, Final

import numpy as np

from approxsvm.errors import ModelFormatError
from approxsvm.model.kernel_model import MAX_FEATURES, KernelModel
from approxsvm.model.schema import N_DENSITY_MARKS
from approxsvm.readers.libsvm import model_of

# In the order of LIBSVM's enumerations.
_TYPES: Final = ("c_svc", "nu_svc", "one_class", "epsilon_svr", "nu_svr")
_KERNELS: Final = ("linear", "polynomial", "rbf", "sigmoid", "precomputed")
_NAME: Final = "this svm_model"


def is_svm_model(thing: Any) -> bool:
    """Whether it is an object of the class that LIBSVM's package has, which is not imported for it."""
    cls = type(thing)
    return cls.__name__ == "svm_model" and cls is getattr(sys.modules.get("libsvm.svm"), "svm_model", None)


def read_svm_model(model: Any) -> KernelModel:
    """Read an `svm_model` of libsvm.svm, which must not have been freed.

    Raises
    ------
    ModelFormatError
        Its numbers contradict each other.
    UnsupportedModelError
        The kernel cannot be compiled.
    """
    n_classes, n_sv = int(model.nr_class), int(model.l)
    svm_type, kernel = int(model.param.svm_type), int(model.param.kernel_type)
    if not (0 <= svm_type < len(_TYPES) and 0 <= kernel < len(_KERNELS) and n_classes >= 1 and n_sv >= 0):
        raise ModelFormatError(
            f"{_NAME} has svm_type {svm_type}, kernel_type {kernel}, {n_classes} classes and {n_sv} support vectors"
        )
    is_classifier = svm_type < 2
    n_pairs = n_classes * (n_classes - 1) // 2
    indptr, indices, values = _vectors(model, n_sv)
    coef = [_numbers(model.sv_coef[row], n_sv) for row in range(max(1, n_classes - 1))]
    return model_of(
        {
            "svm_type": _TYPES[svm_type],
            "kernel_type": _KERNELS[kernel],
            "degree": int(model.param.degree),
            "gamma": float(model.param.gamma),
            "coef0": float(model.param.coef0),
            "n_classes": n_classes,
            "rho": _numbers(model.rho, n_pairs),
            "labels": _numbers(model.label, n_classes if is_classifier else 0).astype(np.int32),
            "n_sv_per_class": _numbers(model.nSV, n_classes if is_classifier else 0).astype(np.int64),
            "prob_a": _numbers(model.probA, n_pairs),
            "prob_b": _numbers(model.probB, n_pairs),
            "prob_density_marks": _numbers(getattr(model, "prob_density_marks", None), N_DENSITY_MARKS),
            "coef": np.ascontiguousarray(np.transpose(coef)),
            "indptr": indptr,
            "indices": indices,
            "values": values,
            "min_index": int(indices.min(initial=MAX_FEATURES)) if len(indices) else -1,
            "max_index": int(indices.max(initial=-1)),
            "ends_in_line_break": True,
        },
        _NAME,
    )


def _numbers(pointer: Any, n: int) -> Any:
    """So many numbers that a pointer shows; none where it is null."""
    return np.array(pointer[:n] if pointer else [], np.float64)


def _vectors(model: Any, n_sv: int) -> tuple[Any, Any, Any]:
    """Support vectors in rows as SciPy has them, with LIBSVM's indices."""
    indptr, indices, values = [0], [], []
    for k in range(n_sv):
        row = model.SV[k]
        last, at = -1, 0
        while (index := row[at].index) != -1:
            if index <= last:
                raise ModelFormatError(f"support vector {k} of {_NAME} has index {index} behind index {last}")
            indices.append(index)
            values.append(row[at].value)
            last, at = index, at + 1
        indptr.append(len(indices))
    return np.array(indptr, np.int64), np.array(indices, np.int32), np.array(values, np.float64)

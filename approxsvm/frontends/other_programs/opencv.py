"""Models written by OpenCV's `ml::SVM::save`: XML, YAML or JSON files, optionally compressed with gzip."""

import os
from pathlib import Path
from typing import Any, Final

import numpy as np

from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.frontends.kernels import kernel_fields
from approxsvm.frontends.other_programs.opencv_storage import Fields, as_numbers, gunzipped, parse_storage
from approxsvm.frontends.pairs import PairTerms, pair_block
from approxsvm.ir.kernel_model import MAX_FEATURES, KernelModel, Task

_TASKS: Final[dict[str, Task]] = {
    "C_SVC": "classification",
    "NU_SVC": "classification",
    "ONE_CLASS": "classification",
    "EPS_SVR": "regression",
    "NU_SVR": "regression",
}


def read_opencv(path: str | os.PathLike[str]) -> KernelModel:
    """Read a model written by ``cv2.ml.SVM.save``; errors name the line or field.

    Labels are those that OpenCV predicts: a sum above 0 is a vote for the first class of its pair, the class with the
    most votes wins, and ties go to the first such class. With two classes, OpenCV's raw output is positive for
    class_labels[0]. A one-class model predicts 1 for inliers and 0 for outliers, so the result is a classifier with
    these two labels.

    OpenCV computes kernels in float32; the reference uses the values in the file and exact arithmetic.
    """
    name = os.fspath(path)
    content = Path(path).read_bytes()
    if content.startswith(b"\x1f\x8b"):
        content = gunzipped(content, name)
    root = parse_storage(content, name)
    fields = _model_in(root, name)
    kind = fields.text("svmType", "svm_type")
    if kind not in _TASKS:
        raise ModelFormatError(f"{fields.where}.svmType: {kind!r} is none of {', '.join(_TASKS)}")
    of_kernel = fields.inner("kernel")
    kernel = kernel_fields(of_kernel.where, of_kernel.text("type"), of_kernel.text("type").lower(), of_kernel.number)
    n_features, n_sv = fields.count("var_count"), fields.count("sv_total")
    if not 1 <= n_features <= MAX_FEATURES:
        raise UnsupportedModelError(f"{name}: the model has {n_features} features, but 1 to {MAX_FEATURES} are read")
    rows = fields.items("support_vectors")
    if len(rows) != n_sv or n_sv == 0:
        raise ModelFormatError(f"{fields.where}: sv_total is {n_sv}, but there are {len(rows)} support vectors")
    where = f"{fields.where}.support_vectors"
    decimals = np.array([as_numbers(row, n_features, f"{where}[{k}]") for k, row in enumerate(rows)])
    with np.errstate(over="ignore"):
        support_vectors = decimals.astype(np.float32).astype(np.float64)  # OpenCV writes a float32 with nine digits
    functions = [
        Fields.of(item, f"{fields.where}.decision_functions[{k}]")
        for k, item in enumerate(fields.items("decision_functions"))
    ]
    if kind in ("C_SVC", "NU_SVC"):
        return _classifier(fields, support_vectors, functions, kernel)
    if len(functions) != 1:
        raise ModelFormatError(f"{fields.where}: {len(functions)} decision functions, expected 1")
    terms = _terms(functions[0], n_sv, is_indexed=False)
    task = _TASKS[kind]
    try:
        return KernelModel(
            task=task,
            support_vectors=support_vectors,
            dual_coef=terms.coef,
            intercept=np.array([terms.intercept]),
            labels=np.array([1, 0]) if task == "classification" else np.empty(0),
            source=f"opencv {kind}",
            **kernel,
        )
    except ModelFormatError as error:
        raise ModelFormatError(f"{fields.where}: {error}") from None


def _model_in(root: Any, name: str) -> Fields:
    """Return the node with the model's fields: the root after `svm.write(fs)`, else the one that the user named."""
    if isinstance(root, dict) and ("svmType" in root or "svm_type" in root):
        return Fields(root, name)
    for key, value in (root if isinstance(root, dict) else {}).items():
        if isinstance(value, dict) and ("svmType" in value or "svm_type" in value):
            return Fields(value, f"{name}: {key}")
    held = ", ".join(list(root)[:5]) if isinstance(root, dict) else "no fields"
    raise UnsupportedModelError(f"{name}: this OpenCV file holds {held}, but no model of ml::SVM")


def _terms(fields: Fields, n_sv: int, *, is_indexed: bool) -> PairTerms:
    n = fields.count("sv_count") if is_indexed else n_sv
    if fields.count("sv_count") != n:
        raise ModelFormatError(f"{fields.where}: sv_count is {fields.count('sv_count')}, expected sv_total, {n_sv}")
    support = fields.numbers("index", n) if is_indexed else np.arange(n_sv)
    if (support != np.floor(support)).any() or (np.abs(support) > 2**31).any():
        raise ModelFormatError(f"{fields.where}.index: not whole numbers")
    return PairTerms(support.astype(np.intp), fields.numbers("alpha", n), -fields.number("rho"))


def _classifier(fields: Fields, rows: Any, functions: list[Fields], kernel: dict[str, Any]) -> KernelModel:
    n_classes = fields.count("class_count")
    n_pairs = n_classes * (n_classes - 1) // 2
    if n_classes < 2 or len(functions) != n_pairs:
        raise ModelFormatError(
            f"{fields.where}: class_count is {n_classes}, but there are {len(functions)} decision functions"
        )
    given = fields.values.get("class_labels")
    labels = fields.inner("class_labels").numbers("data", n_classes) if isinstance(given, dict) else None
    labels = fields.numbers("class_labels", n_classes) if labels is None else labels
    if (labels != np.floor(labels)).any() or (np.abs(labels) > 2**31).any():
        raise ModelFormatError(f"{fields.where}.class_labels: {labels.tolist()} are not whole numbers of 32 bits")
    terms = [_terms(function, len(rows), is_indexed=True) for function in functions]
    try:
        block = pair_block(n_classes, len(rows), terms)
        return KernelModel(
            task="classification",
            support_vectors=rows[block.order],
            dual_coef=block.dual_coef,
            intercept=block.intercept,
            labels=labels.astype(np.int64),
            n_support=block.n_support,
            source=f"opencv {fields.text('svmType', 'svm_type')}",
            **kernel,
        )
    except ModelFormatError as error:
        raise ModelFormatError(f"{fields.where}: {error}") from None

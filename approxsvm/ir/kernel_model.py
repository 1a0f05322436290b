"""Kernel models, the common representation of models with support vectors: the same kernel sums as in the source."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.frames.dtypes import SAME, RowDtypes
from approxsvm.ir.compensated import FloatArray as FloatArray
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.outputs import Outputs, class_pairs
from approxsvm.ir.schema import MAX_FEATURES as MAX_FEATURES
from approxsvm.ir.schema import MAX_FORM_DEGREE as MAX_FORM_DEGREE
from approxsvm.ir.schema import MAX_KERNEL_DEGREE as MAX_KERNEL_DEGREE
from approxsvm.ir.schema import Task as Task

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, eq=False)
class KernelModel:
    """Decision functions that share support vectors: f(z) = sum_i a_i K(x_i, z) + intercept.

    The kernel K is Gaussian, exp(-gamma ||x_i - z||^2); or polynomial if `degree` is 1 to 6, (gamma x_i.z +
    coef0)^degree, which includes the linear kernel; or tanh(gamma x_i.z + coef0) if `is_sigmoid`.

    Decision values have LIBSVM's orientation: for the pair of classes (i, j), i < j, a positive value is a vote for
    ``labels[i]`` and any other value is a vote for ``labels[j]``. Alternatively, there is one function per class
    (``outputs.decision_shape == "each"``) or per target; such functions use all support vectors.

    Arrays of other types are converted. For example, a least-squares SVM is ``KernelModel("regression",
    support_vectors=X, dual_coef=alpha, intercept=b, gamma=0.1)``.

    Parameters
    ----------
    task : {"classification", "regression", "one_class"}
        Meaning of the decision values.
    support_vectors : array or sparse matrix of shape (n_sv, n_features)
        The vectors x_i, grouped by class in the order of `labels` if there are more than two classes. The array is
        stored as a float64 ndarray or csr_array.
    dual_coef : array of shape (max(1, n_classes - 1), n_sv), or (n_sv,) for one row
        Layout of LIBSVM's `sv_coef`: for the pair (i, j), row j - 1 holds the coefficients of class i, and row i
        holds the coefficients of class j. With at most two classes, there is one row; if each function uses all support
        vectors, there is one row per function.
    intercept : array of shape (n_decisions,), or a number
        One value per pair of classes, (0, 1), (0, 2), ..., (1, 2), ... (LIBSVM's -rho), or per class or target.
    gamma : float
        The numeric kernel parameter; at least 0 for the Gaussian kernel.
    labels : array of shape (n_classes,), optional
        Class labels, of any dtype, in the model's order. With two classes, a positive value means the first class.
        Empty unless the task is classification.
    n_support : array of shape (n_classes,), optional
        Number of support vectors per class. May be empty unless there is one function per pair of more than two
        classes.
    source : str
        Origin of the model, for display: "libsvm c_svc", "sklearn SVC", ...
    feature_names : tuple of str, optional
        Names of the raw columns, if the source knows them.
    first_index : {0, 1}
        Index of column 0 in LIBSVM text.
    outputs : Outputs
        Outputs that the source derives from decision values: labels, scores, probabilities.
    input_map : InputMap, optional
        Map from raw rows to rows of `n_features` columns. Default: raw rows are used unchanged.
    value_error : array of shape (n_decisions,), optional
        Bound, valid for every row, on the difference between these decision functions and the source's functions over
        the real numbers. The difference is caused by rounding when the source is read. Default: zero. All error bounds
        include it.
    degree : int
        Degree of a polynomial kernel, 1 to 6; 0 for the Gaussian kernel.
    coef0 : float
        Constant of a polynomial or sigmoid kernel.
    coef_error : float
        Bound on the relative error of `dual_coef`, for polynomial kernels. Its effect grows with the kernel values.
    is_sigmoid : bool
        True if the kernel is tanh(gamma x_i.z + coef0).
    row_dtypes : RowDtypes
        Row dtypes that change the source's predictions.

    Raises
    ------
    ModelFormatError
        Shapes are inconsistent, or a number is not finite.
    UnsupportedModelError
        There are more columns than an artifact can have.
    """

    task: Task
    support_vectors: FloatArray | csr_array[Any]
    dual_coef: FloatArray
    intercept: FloatArray
    gamma: float
    labels: npt.NDArray[Any] = field(default_factory=lambda: np.empty(0))
    n_support: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    source: str = "arrays"
    feature_names: tuple[str, ...] | None = None
    first_index: int = 1
    outputs: Outputs = field(default_factory=Outputs)
    input_map: InputMap | None = None
    value_error: FloatArray = field(default_factory=lambda: np.empty(0))
    degree: int = 0
    coef0: float = 0.0
    coef_error: float = 0.0
    is_sigmoid: bool = False
    row_dtypes: RowDtypes = SAME

    def __post_init__(self) -> None:
        """Convert and validate the fields once, so that no other code needs to check them."""
        self._convert()
        widest = max(self.n_features, self.n_raw_features)
        if widest > MAX_FEATURES:  # checked before memory is allocated, because sparse rows may declare any width
            raise UnsupportedModelError(f"the model has {widest} features, but at most {MAX_FEATURES} are supported")
        n_sv = self.n_sv
        n_classes = len(self.labels)
        if self.task not in ("classification", "regression", "one_class"):
            raise ModelFormatError(f"unknown task {self.task!r}")
        if (n_classes > 0) != (self.task == "classification"):
            raise ModelFormatError(f"a {self.task} model cannot have {n_classes} labels")
        if len(self.n_support) != n_classes and (self.has_pairs or len(self.n_support) > 0):
            raise ModelFormatError(f"{len(self.n_support)} support vector counts for {n_classes} classes")
        if len(self.n_support) and int(np.sum(self.n_support)) != n_sv:
            raise ModelFormatError(
                f"the classes have {int(np.sum(self.n_support))} support vectors in total, but the model has {n_sv}"
            )
        if len(set(self.labels.tolist())) != n_classes:
            raise ModelFormatError(f"the labels {self.labels.tolist()} are not distinct")
        n_decisions = self._expected_decisions()
        expected = (n_classes - 1 if self.has_pairs else max(1, n_decisions), n_sv)
        if self.dual_coef.shape != expected:
            raise ModelFormatError(f"dual_coef has shape {self.dual_coef.shape}, expected {expected}")
        if self.intercept.shape != (n_decisions,):
            raise ModelFormatError(f"intercept has shape {self.intercept.shape}, expected {(n_decisions,)}")
        if self.value_error.shape != (n_decisions,) or not (self.value_error >= 0).all():
            raise ModelFormatError(f"value_error is {self.value_error}, expected {n_decisions} numbers of at least 0")
        self._check_kernel()
        if self.input_map is not None and self.input_map.n_features != self.n_features:
            raise ModelFormatError(
                f"the input map gives {self.input_map.n_features} features, but the model takes {self.n_features}"
            )
        if self.feature_names is not None and len(self.feature_names) != self.n_raw_features:
            raise ModelFormatError(f"{len(self.feature_names)} feature names for {self.n_raw_features} features")
        if self.first_index not in (0, 1):
            raise ModelFormatError(f"first_index is {self.first_index}, but must be 0 or 1")
        stored = self.support_vectors if isinstance(self.support_vectors, np.ndarray) else self.support_vectors.data
        numbers = {"support_vectors": stored} | {k: getattr(self, k) for k in ("dual_coef", "intercept", "value_error")}
        for name, values in numbers.items():
            if not np.isfinite(values).all():
                raise ModelFormatError(f"{name} contains NaN or infinity")
        self.outputs.check(self.task, n_classes)

    def _expected_decisions(self) -> int:
        n_classes = len(self.labels)
        if self.outputs.of_each_class:
            return n_classes
        if n_classes > 0:
            return n_classes * (n_classes - 1) // 2
        return max(1, len(self.intercept)) if self.task == "regression" else 1

    def _check_kernel(self) -> None:
        if self.degree != int(self.degree) or not 0 <= self.degree <= MAX_KERNEL_DEGREE:
            raise ModelFormatError(f"degree is {self.degree}, but must be 0 (Gaussian) or 1 to {MAX_KERNEL_DEGREE}")
        if self.is_sigmoid and self.degree > 0:
            raise ModelFormatError(f"degree is {self.degree}, but a sigmoid kernel has none")
        if not np.isfinite(self.gamma) or (self.gamma < 0 and self.kernel == "gaussian"):
            least = " of at least 0" if self.kernel == "gaussian" else ""
            raise ModelFormatError(f"gamma is {self.gamma}, but must be a finite number{least}")
        if not np.isfinite(self.coef0):
            raise ModelFormatError(f"coef0 is {self.coef0}, but must be finite")
        if not 0 <= self.coef_error < 1:
            raise ModelFormatError(f"coef_error is {self.coef_error}, but must be at least 0 and below 1")

    def _convert(self) -> None:
        """Convert every field to its documented type."""
        converted = {
            "support_vectors": _float64_rows(self.support_vectors),
            "dual_coef": np.atleast_2d(_float64(self.dual_coef, "dual_coef")),
            "intercept": np.atleast_1d(_float64(self.intercept, "intercept")),
            "gamma": float(self.gamma),
            "value_error": np.atleast_1d(_float64(self.value_error, "value_error")),
            "labels": np.asarray(self.labels),
            "n_support": np.asarray(self.n_support, dtype=np.int64),
        }
        for name, value in converted.items():
            object.__setattr__(self, name, value)
        if len(self.value_error) == 0:
            object.__setattr__(self, "value_error", np.zeros_like(self.intercept))

    @property
    def is_polynomial(self) -> bool:
        """True for polynomial kernels, including the linear kernel."""
        return self.degree > 0

    @property
    def kernel(self) -> str:
        """Kernel name as stored in an artifact."""
        return "sigmoid" if self.is_sigmoid else "polynomial" if self.is_polynomial else "gaussian"

    @property
    def kind(self) -> str:
        """Name of the compilation path, which depends only on the kernel."""
        return self.kernel

    @property
    def work(self) -> tuple[int, int]:
        """Numbers of multiply-adds and of calls to functions like exp needed to evaluate the definition for one row."""
        return self.n_sv * (self.n_features + self.n_decisions), self.n_sv

    @property
    def has_pairs(self) -> bool:
        """True if there is one decision function per pair of more than two classes."""
        return len(self.labels) > 2 and not self.outputs.of_each_class

    @property
    def has_several(self) -> bool:
        """True if there are several decision functions, one per class or target, and each uses all support vectors."""
        return self.n_decisions > 1 and not self.has_pairs

    @property
    def n_sv(self) -> int:
        """Number of support vectors."""
        return int(self.support_vectors.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns of the support vectors."""
        return int(self.support_vectors.shape[1])

    @property
    def n_raw_features(self) -> int:
        """Number of columns that the source accepts, before the input map."""
        return self.n_features if self.input_map is None else self.input_map.n_raw_features

    @property
    def n_decisions(self) -> int:
        """Number of decision functions."""
        return len(self.intercept)

    def coefficients(self, decision: int) -> FloatArray:
        """Return one decision function's coefficients a_i, with 0 for support vectors of classes outside the pair."""
        if not self.has_pairs:
            row: FloatArray = self.dual_coef[decision]
            return row
        i, j = class_pairs(len(self.labels))[decision]
        ends = np.cumsum(self.n_support)
        starts = ends - self.n_support
        coef = np.zeros(self.n_sv)
        coef[starts[i] : ends[i]] = self.dual_coef[j - 1, starts[i] : ends[i]]
        coef[starts[j] : ends[j]] = self.dual_coef[i, starts[j] : ends[j]]
        return coef

    def absolute_sums(self) -> FloatArray:
        """Return `sum_i |a_i|` for each decision function, of shape (n_decisions,), with float64 rounding."""
        with np.errstate(over="ignore"):
            if not self.has_pairs:
                return np.asarray(np.abs(self.dual_coef).sum(axis=1))
            # For each pair of classes, add the sums over the support vectors of its two classes.
            absolute = np.hstack([np.abs(self.dual_coef), np.zeros((len(self.dual_coef), 1))])
            starts = np.cumsum(self.n_support) - self.n_support
            sums = np.where(self.n_support > 0, np.add.reduceat(absolute, starts, axis=1), 0.0)
            i, j = np.array(class_pairs(len(self.labels))).T
            return np.asarray(sums[j - 1, i] + sums[i, j])

    def dense_support_vectors(self, first: int, last: int) -> FloatArray:
        """Return support vectors `first` to `last` - 1 as a float64 array of shape (last - first, n_features)."""
        rows = self.support_vectors[first:last]
        return rows if isinstance(rows, np.ndarray) else np.asarray(rows.toarray())

    def times(self, factor: float, rounding: float) -> tuple[dict[str, Any], float]:
        """Return the scaled fields (no intercepts), and the sum of absolute values by which to multiply `rounding`.

        Absolute values of Gaussian and sigmoid kernels are at most 1. For polynomial kernels, `rounding` is added to
        coef_error, because its effect grows with the kernel values.
        """
        dual_coef = self.dual_coef * factor
        if not self.is_polynomial:
            return {"dual_coef": dual_coef}, float(np.abs(dual_coef).sum(axis=1).max())
        coef_error = (self.coef_error + rounding) * (1.0 + 2.0**-30)
        return {"dual_coef": dual_coef, "coef_error": coef_error}, 0.0

    def negated(self) -> KernelModel:
        """Return the two-class model with swapped labels and negated values.

        In the result, a value of exactly 0 votes for the other class, so this method is only for models that do not
        predict by votes.
        """
        return replace(
            self,
            dual_coef=-self.dual_coef,
            intercept=-self.intercept,
            labels=self.labels[::-1],
            n_support=np.empty(0, np.int64),
        )


def _float64(values: Any, name: str) -> FloatArray:
    try:
        return np.ascontiguousarray(values, dtype=np.float64) if np.ndim(values) else np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise ModelFormatError(f"{name} is not an array of numbers: {error}") from None


def _float64_rows(rows: Any) -> FloatArray | csr_array[Any]:
    """Convert rows to float64: sparse rows to canonical CSR form, others to a contiguous array."""
    if hasattr(rows, "tocsr"):
        from scipy.sparse import csr_array

        if isinstance(rows, csr_array) and rows.dtype == np.float64 and rows.has_canonical_format:
            return rows
        sparse: csr_array[Any] = csr_array(rows, dtype=np.float64, copy=True)
        sparse.sort_indices()
        twice = np.flatnonzero(np.diff(sparse.indices) == 0) + 1
        twice = np.setdiff1d(twice, sparse.indptr)  # this keeps only duplicates within a row
        if len(twice):
            row = int(np.searchsorted(sparse.indptr, twice[0], side="right")) - 1
            raise ModelFormatError(
                f"support_vectors has several entries in row {row}, column {int(sparse.indices[twice[0]])}, which not "
                "every source sums: fit the source on rows after X.sum_duplicates()"
            )
        return sparse
    dense = _float64(rows, "support_vectors")
    if dense.ndim != 2:
        raise ModelFormatError(f"support_vectors has {dense.ndim} dimensions, expected 2")
    return dense

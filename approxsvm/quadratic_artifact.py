"""A quadratic model as immutable bytes: the second kind of .asvm file (models/FORMAT.md, last part)."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from approxsvm import container, extras, packing
from approxsvm.artifact import MAX_FEATURES, MAX_LABELS, NEAR_TIE, Mode, SealedBytes
from approxsvm.errors import ApproxSVMError, ArtifactError, UnsupportedModelError
from approxsvm.heads import Heads
from approxsvm.input_map import InputMap
from approxsvm.kernel_model import KernelModel, Task
from approxsvm.quadratic_model import Kernel, QuadraticModel

_PLAN: Final = "a kernel that is linear or quadratic is summed up without error, so there is nothing to approximate"
_LABEL_DTYPES: Final = r"[<>|][biuf]\d|[<>]U\d+|\|O"


class QuadraticArtifact(SealedBytes):
    """A compiled linear or quadratic model; has what estimators ask of an `Artifact`.

    Parameters
    ----------
    data : bytes
        The content of an .asvm file of this kind.

    Raises
    ------
    ArtifactError
        The bytes break a rule of models/FORMAT.md.
    """

    def __init__(self, data: bytes) -> None:
        self.data = bytes(data)
        about, arrays = container.unpack(container.QUADRATIC_MAGIC, self.data)
        try:
            self.mode: Mode = "approximate" if about["mode"] == "approximate" else "certified"
            self.model = _model(about, arrays)
            tolerance = np.inf if about["tolerance"] is None else float(about["tolerance"])
            if not tolerance > 0.0:
                raise ArtifactError(f"the tolerance is {tolerance}, but must be positive")
        except ArtifactError:
            raise
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, ApproxSVMError) as error:
            raise ArtifactError(f"the quadratic model cannot be read: {type(error).__name__}: {error}") from None
        machine = self.model.machine
        self.header: dict[str, Any] = {
            "tolerance": tolerance,
            "degree": 1 if self.model.quadratic is None else 2,
            "n_support_vectors": 0 if machine is None else machine.n_sv,
            "center_kind": 0,
            "gamma": 0.0,
            "max_sv_norm": 0.0,
        }
        self._intercept = np.array(arrays["intercept"]) if "intercept" in arrays else np.empty(0)
        if self._intercept.shape != self.model.constant.shape or not np.isfinite(self._intercept).all():
            raise ArtifactError(f"array intercept has shape {self._intercept.shape}, or holds NaN or infinity")

    def __repr__(self) -> str:
        return f"<QuadraticArtifact: {self.task}, {self.n_features} features, {len(self.data):,} bytes>"

    @property
    def task(self) -> Task:
        """What the decision values mean."""
        return self.model.task

    @property
    def labels(self) -> npt.NDArray[Any]:
        """Class labels in the model's own order."""
        return self.model.labels

    @property
    def heads(self) -> Heads:
        """What the source makes of decision values."""
        return self.model.heads

    @property
    def input_map(self) -> InputMap | None:
        """How raw rows become rows of `n_features` columns."""
        return self.model.input_map

    @property
    def n_features(self) -> int:
        """Number of columns of a row as the kernel sees it."""
        return self.model.n_features

    @property
    def n_raw_features(self) -> int:
        """Number of columns of a row before the input map, if there is one."""
        return self.model.n_raw_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the raw columns, where the source knew them."""
        return self.model.feature_names

    @property
    def source(self) -> str:
        """Where the model came from."""
        return self.model.source

    @property
    def plan(self) -> str:
        """Why there is no choice."""
        return _PLAN

    @property
    def n_centers(self) -> int:
        """The form is one about the origin."""
        return 1

    @property
    def center(self) -> npt.NDArray[np.float32]:
        """The origin."""
        return np.zeros(self.n_features, np.float32)

    @property
    def asked_tolerance(self) -> float:
        """The tolerance that somebody asked for; infinite where none was."""
        return float(self.header["tolerance"])

    def feels_error(self, mapped: npt.NDArray[np.float64], errors: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """Which mapped rows are so far from what is meant, relative to their norm, that a label may depend on it."""
        return np.asarray(errors > 0.1 * NEAR_TIE * np.linalg.norm(mapped, axis=1))

    def decision_numbers(self) -> dict[str, npt.NDArray[np.float64]]:
        """The source's intercepts."""
        return {"intercept": self._intercept}


def pack(model: QuadraticModel, mode: Mode, tolerance: float | None = None) -> QuadraticArtifact:
    """Bring a model into bytes; in mode "approximate" without its support vectors.

    Values that float64 cannot be sure to have within a tolerance that is given are refused, row by row.
    """
    machine = None if mode == "approximate" else model.machine
    intercept = model.constant if model.machine is None else model.machine.intercept
    arrays: container.Arrays = {"constant": model.constant, "linear": model.linear, "intercept": intercept}
    arrays["outputs"] = _bytes(extras.pack_heads(model.heads))
    arrays |= {name: getattr(model, name) for name in ("constant_error", "linear_error", "quadratic_error")}
    if model.quadratic is not None:
        arrays["triangle"] = model.quadratic[(slice(None), *np.triu_indices(model.n_features))]
    if model.input_map is not None:
        arrays["input_map"] = _bytes(extras.pack_input_map(model.input_map))
    about: dict[str, Any] = {
        "mode": "approximate" if mode == "approximate" else "certified",
        "task": model.task,
        "labels": _label_list(model.labels),
        "label_dtype": model.labels.dtype.str,
        "source": model.source,
        "feature_names": None if model.feature_names is None else list(model.feature_names),
        "first_index": model.first_index,
        "tolerance": None if tolerance is None or np.isinf(tolerance) else float(tolerance),
    }
    if machine is not None:
        arrays["support_vectors"] = _bytes(packing.pack(machine))
        arrays["dual_coef"] = machine.dual_coef
        arrays["n_support"] = machine.n_support
        kernel = model.kernel
        about["kernel"] = [kernel.degree, float(kernel.gamma), float(kernel.coef0)]
    return QuadraticArtifact(container.pack(container.QUADRATIC_MAGIC, about, arrays))


def _model(about: dict[str, Any], arrays: container.Arrays) -> QuadraticModel:
    task, linear = about["task"], np.array(arrays["linear"])
    if linear.ndim != 2 or not 1 <= linear.shape[1] <= MAX_FEATURES:
        raise ArtifactError(f"array linear has shape {linear.shape}")
    labels = _labels(about["labels"], about["label_dtype"])
    names = about["feature_names"]
    quadratic = None
    if "triangle" in arrays:
        quadratic = _symmetric(arrays["triangle"], linear.shape[1])
    input_map = None
    if "input_map" in arrays:
        input_map = extras.unpack_input_map(arrays["input_map"].tobytes(), None, linear.shape[1])
    return QuadraticModel(
        task=task,
        constant=np.array(arrays["constant"]),
        linear=linear,
        quadratic=quadratic,
        labels=labels,
        constant_error=np.array(arrays["constant_error"]),
        linear_error=np.array(arrays["linear_error"]),
        quadratic_error=np.array(arrays["quadratic_error"]),
        source=str(about["source"]),
        feature_names=None if names is None else tuple(str(name) for name in names),
        first_index=int(about["first_index"]),
        heads=extras.unpack_heads(arrays["outputs"].tobytes(), task, len(labels)),
        input_map=input_map,
        machine=_machine(about, arrays, labels, linear.shape[1]),
        kernel=_kernel(about["kernel"]) if "support_vectors" in arrays else Kernel(),
    )


def _machine(about: dict[str, Any], arrays: container.Arrays, labels: Any, n_features: int) -> KernelModel | None:
    """The source's support vectors, for rows so near to zero that only its own order of summation decides."""
    if "support_vectors" not in arrays:
        return None
    dual_coef = np.array(arrays["dual_coef"])
    return KernelModel(
        task=about["task"],
        support_vectors=packing.unpack(arrays["support_vectors"].tobytes(), dual_coef.shape[1], n_features),
        dual_coef=dual_coef,
        intercept=np.array(arrays["intercept"]),
        gamma=0.0,
        labels=labels,
        n_support=np.array(arrays["n_support"]),
        source=str(about["source"]),
    )


def _kernel(numbers: Any) -> Kernel:
    degree, gamma, coef0 = numbers
    if degree not in (1, 2) or not np.isfinite([gamma, coef0]).all():
        raise ArtifactError(f"the kernel is {numbers}")
    return Kernel(int(degree), float(gamma), float(coef0))


def _symmetric(triangle: npt.NDArray[Any], d: int) -> npt.NDArray[np.float64]:
    if triangle.ndim != 2 or triangle.shape[1] != d * (d + 1) // 2:
        raise ArtifactError(f"array triangle has shape {triangle.shape} for {d} features")
    full = np.zeros((len(triangle), d, d))
    rows, columns = np.triu_indices(d)
    full[:, rows, columns] = triangle
    full[:, columns, rows] = triangle
    return full


def _label_list(labels: npt.NDArray[Any]) -> list[Any]:
    found: list[Any] = labels.tolist()
    kinds = (str,) if labels.dtype.kind in "UO" else (bool, int, float)
    if len(found) > MAX_LABELS or not all(isinstance(label, kinds) for label in found):
        raise UnsupportedModelError(f"class labels of dtype {labels.dtype} cannot be stored")
    return found


def _labels(values: list[Any], dtype: str) -> npt.NDArray[Any]:
    if len(values) == 0:
        return np.empty(0)
    width = max(1, *(len(v) if isinstance(v, str) else 1 for v in values))
    if not re.fullmatch(_LABEL_DTYPES, dtype) or ("U" in dtype and int(dtype[2:]) > max(1 << 16, width)):
        raise ArtifactError(f"label_dtype {dtype!r} does not suit the labels {values}")
    labels = np.array(values, dtype=dtype)
    if len(values) > MAX_LABELS or labels.ndim != 1 or labels.tolist() != values:
        raise ArtifactError(f"label_dtype {dtype!r} does not suit the labels {values}")
    return labels


def _bytes(content: bytes) -> npt.NDArray[np.uint8]:
    return np.frombuffer(content, np.uint8)

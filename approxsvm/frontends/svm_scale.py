"""Conversion of scaling parameters saved by LIBSVM's svm-scale (option -s) to an input map.

The reference is svm-scale's formula, lower + (upper - lower) * (x - least) / (greatest - least), in float64 and in this
order. Bounds also hold with respect to the formula in exact arithmetic. svm-scale writes six digits, so scaled rows in
a file differ from the reference by about 1e-6 of their range.
"""

import os
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from approxsvm.errors import DataFormatError, ModelFormatError, UnsupportedModelError
from approxsvm.frontends.other_programs import e1071, grass
from approxsvm.frontends.plain_numbers import plain_float
from approxsvm.frontends.sklearn.kernel_machines import restored, rounded_float
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.kernel_model import MAX_FEATURES, KernelModel
from approxsvm.ir.outputs import LaplaceNoise, Outputs


@dataclass(frozen=True)
class ScaleRange:
    """Contents of a range file."""

    # Limits of the scaled training rows; other rows may exceed them
    lower: float
    upper: float
    # Each feature's smallest and largest training values, by index. Features that are constant or never occur are
    # omitted, because svm-scale replaces them with 0.
    features: dict[int, tuple[float, float]]
    # (y_lower, y_upper, y_min, y_max), if the file has a y section
    target: tuple[float, float, float, float] | None = None

    def target_unit(self) -> tuple[Fraction, Fraction] | None:
        """Return the factor and addend that restore the raw target, or None if the file has no y section."""
        if self.target is None:
            return None
        y_lower, y_upper, y_min, y_max = self.target
        factor = (Fraction(y_max) - Fraction(y_min)) / (Fraction(y_upper) - Fraction(y_lower))
        return factor, Fraction(y_min) - Fraction(y_lower) * factor

    def input_map(self, n_features: int, first_index: int = 1) -> InputMap:
        """Return the map from raw rows to scaled rows; `first_index` is the index of column 0.

        Raises ModelFormatError if the file scales an index outside the columns.
        """
        first, last = min(self.features, default=first_index), max(self.features, default=first_index)
        if first < first_index:
            raise ModelFormatError(f"the range file scales index {first}, but the first index is {first_index}")
        if last - first_index >= n_features:
            raise ModelFormatError(
                f"the range file scales index {last}, but the last index is {n_features - 1 + first_index}"
            )
        subtract, multiply, divide, add, error = np.zeros((5, n_features))
        divide[:] = 1.0  # features missing from the file become 0
        width = Fraction(self.upper) - Fraction(self.lower)
        for index, (least, greatest) in self.features.items():
            column = index - first_index
            subtract[column], add[column] = least, self.lower
            multiply[column], divide[column] = self.upper - self.lower, greatest - least
            exact = width / (Fraction(greatest) - Fraction(least))
            given = Fraction(multiply[column]) / Fraction(divide[column])
            error[column] = float(abs(given - exact) / given) * (1 + 2.0**-50)
        return InputMap.identity(n_features).then_affine(
            subtract=subtract, multiply=multiply, divide=divide, add=add, relative_error=error
        )


def read_range_file(path: str | os.PathLike[str]) -> ScaleRange:
    """Read a file written by ``svm-scale -s``; a DataFormatError names a malformed line."""
    name = os.fspath(path)
    with open(name, encoding="utf-8-sig", errors="replace") as file:
        lines = [line.split() for line in file]
    while lines and not lines[-1]:
        lines.pop()
    at = 0

    def numbers(count: int) -> list[float]:
        nonlocal at
        at += 1
        try:
            values = [plain_float(token) for token in lines[at - 1]]
            if len(values) != count or not np.isfinite(values).all():
                raise ValueError
        except (ValueError, IndexError):
            raise DataFormatError(f"{name}, line {at}: expected {count} finite numbers") from None
        return values

    target = None
    if lines and lines[0] == ["y"]:
        at = 1
        y_lower, y_upper = numbers(2)
        y_min, y_max = numbers(2)
        if not (y_upper > y_lower and y_max > y_min):
            raise DataFormatError(f"{name}, line {at}: the limits of y do not ascend")
        target = (y_lower, y_upper, y_min, y_max)
    if at >= len(lines) or lines[at] != ["x"]:
        raise DataFormatError(
            f"{name}, line {at + 1}: expected x; this is neither a range file of svm-scale nor a file of scales of "
            "e1071 (two numbers a line) or GRASS (one number a line)"
        )
    at += 1
    lower, upper = numbers(2)
    if not upper > lower:
        raise DataFormatError(f"{name}, line {at}: the upper limit {upper} is not above the lower limit {lower}")
    if not np.isfinite(upper - lower):
        raise DataFormatError(f"{name}, line {at}: from {lower} to {upper} is beyond the range of float64")
    features: dict[int, tuple[float, float]] = {}
    while at < len(lines):
        index, least, greatest = numbers(3)
        if index != int(index) or not 0 <= index <= MAX_FEATURES or int(index) in features:
            raise DataFormatError(
                f"{name}, line {at}: {lines[at - 1][0]} is not a new feature index, from 0 to {MAX_FEATURES}"
            )
        if least > greatest:
            raise DataFormatError(f"{name}, line {at}: the least value {least} is above the greatest {greatest}")
        if not np.isfinite(greatest - least):
            raise DataFormatError(f"{name}, line {at}: from {least} to {greatest} is beyond the range of float64")
        if least < greatest:
            features[int(index)] = (least, greatest)
    return ScaleRange(lower, upper, features, target)


def with_range_file(model: Any, path: str | os.PathLike[str], *, restore_target: bool = False) -> KernelModel:
    """Return the model with an input map for unscaled rows, ready for `compile`.

    Parameters
    ----------
    model : KernelModel, fitted estimator, or path
        A model trained on the output of svm-scale; `read_any` lists the supported sources.
    path : str or path
        The range file saved by svm-scale, the scale file from e1071's write.svm (R), or the file ``rescale`` in a
        signature folder from GRASS GIS's i.svm.train.
    restore_target : bool
        True to restore a regressor's values to the units of the raw target, using the file's y section or e1071's
        .yscale file. LIBSVM's svm-predict does not restore them.

    Returns
    -------
    KernelModel
        The model with an input map. It has more columns than before if the range file scales features that no support
        vector uses.

    Raises
    ------
    DataFormatError
        The file is not a range file; the message names the line.
    UnsupportedModelError
        The model already has an input map or is an ensemble. Also raised if `restore_target` is True and either the
        file has no y section or the model is not a regressor.
    """
    from approxsvm.frontends import read_any

    model = read_any(model)
    if not isinstance(model, KernelModel):
        raise UnsupportedModelError(
            f"a range file of svm-scale is for models with support vectors, not for this {model.source}; "
            "put a scaler before it, in a pipeline"
        )
    return _scaled(model, path, restore_target)


def _scaled(model: KernelModel, path: str | os.PathLike[str], restore_target: bool) -> KernelModel:
    if model.input_map is not None:
        raise UnsupportedModelError("the model already scales its rows")
    if e1071.is_scale_file(path):
        map_, unit = e1071.input_map(path, model.n_features), None
        if restore_target and model.task == "regression":
            center, scale = e1071.target_scale(path)
            unit = Fraction(scale), Fraction(center)
    elif grass.is_rescale_file(path):
        map_, unit = grass.input_map(path, model.n_features), None
    else:
        scaling = read_range_file(path)
        n_features = max(model.n_features, max(scaling.features, default=0) + 1 - model.first_index)
        map_, unit = scaling.input_map(n_features, model.first_index), scaling.target_unit()
    changes: dict[str, Any] = {"input_map": map_}
    if map_.n_features > model.n_features:
        changes["support_vectors"] = _widened(model, map_.n_features)
    if restore_target:
        if unit is None or model.task != "regression":
            raise UnsupportedModelError(f"{os.fspath(path)}: no target to restore for a {model.task} model")
        model = restored(model, *unit)
        noise = model.outputs.probability
        if isinstance(noise, LaplaceNoise):
            changes["outputs"] = Outputs(probability=LaplaceNoise(noise.sigma * rounded_float(unit[0])))
    return replace(model, **changes)


def _widened(model: KernelModel, n_features: int) -> Any:
    if isinstance(model.support_vectors, np.ndarray):
        return np.pad(model.support_vectors, [(0, 0), (0, n_features - model.n_features)])
    from scipy.sparse import csr_array

    rows = model.support_vectors
    return csr_array((rows.data, rows.indices, rows.indptr), shape=(model.n_sv, n_features))

"""Models of VMAF, a video quality metric: the text of a LIBSVM NU_SVR in JSON, with feature scales.

With norm_type "linear_rescale", a score is (f - intercepts[0]) / slopes[0], where f is the SVR's value at the features
slopes[j] x_j + intercepts[j], j = 1, 2, ... Later steps of libvmaf are not part of the model: libvmaf clips scores to
score_clip, and applies score_transform to them if the caller sets enable_transform. Clipping never increases the
distance between two numbers, so an error bound for a score also holds after clipping.
"""

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np

from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.frontends import libsvm
from approxsvm.frontends.sklearn.kernel_machines import restored
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.kernel_model import FloatArray, KernelModel
from approxsvm.ir.outputs import Outputs

# The type of a bootstrap model only records how it was trained; models of all these types predict in the same way.
_TYPES: Final = ("LIBSVMNUSVR", "BOOTSTRAP_LIBSVMNUSVR", "RESIDUEBOOTSTRAP_LIBSVMNUSVR")


def read_vmaf(path: str | os.PathLike[str]) -> KernelModel:
    """Read a VMAF model from JSON; the result predicts unclipped scores. Errors name the field.

    Raises UnsupportedModelError if the file contains several models or a model of another type, or enables a score
    transform.
    """
    name = os.fspath(path)
    try:
        content = json.loads(Path(path).read_bytes())
    except (ValueError, RecursionError) as error:
        raise ModelFormatError(f"{name}: not readable JSON: {str(error)[:100]}") from None
    if not isinstance(content, dict) or "model_dict" not in content:
        members = content if isinstance(content, dict) else {}
        names = [key for key, one in members.items() if isinstance(one, dict) and "model_dict" in one]
        if names:
            one = f"Path('one.json').write_text(json.dumps(json.loads(Path({name!r}).read_bytes())[{names[0]!r}]))"
            raise UnsupportedModelError(
                f"{name}: holds {len(names)} models of VMAF, {names[0]!r} to {names[-1]!r}, of which '0' gives VMAF's "
                f"score and the mean of the others its bagging score; save one as a file: {one}"
            )
        raise ModelFormatError(f"{name}: there is no model_dict of VMAF")
    fields = _mapping(content["model_dict"], f"{name}: model_dict")
    where = f"{name}: model_dict"
    if fields.get("model_type", _TYPES[0]) not in _TYPES:
        raise UnsupportedModelError(
            f"{where}.model_type is {fields['model_type']!r}, only {', '.join(_TYPES)} can be compiled"
        )
    transform = _mapping(fields.get("score_transform") or {}, f"{where}.score_transform")
    if str(transform.get("enabled", "false")).lower() != "false":
        raise UnsupportedModelError(
            f"{where}.score_transform is enabled: delete its field enabled, compile, and apply the transform to the "
            "scores"
        )
    features = fields.get("feature_names")
    if not isinstance(features, list) or not features or not all(isinstance(one, str) for one in features):
        raise ModelFormatError(f"{where}.feature_names: expected a list of names")
    model = _machine(fields.get("model"), f"{where}.model", len(features))
    limits = ""
    if fields.get("score_clip") is not None:
        low, high = _numbers(fields["score_clip"], 2, f"{where}.score_clip")
        limits = f", before clip to [{low:g}, {high:g}]"
    if transform:
        limits = ", before transform" + (" and clip" if limits else "")  # an artifact stores at most 31 bytes of a name
    model = replace(model, source=f"VMAF{limits}", feature_names=tuple(features))
    norm = fields.get("norm_type", "none")
    if norm == "none":
        return model
    if norm != "linear_rescale":
        raise UnsupportedModelError(f"{where}.norm_type is {norm!r}, only 'none' and 'linear_rescale' can be compiled")
    slopes, intercepts = (
        _numbers(fields.get(one), len(features) + 1, f"{where}.{one}") for one in ("slopes", "intercepts")
    )
    if slopes[0] == 0:
        raise ModelFormatError(f"{where}.slopes: the first, which scores are divided by, is 0")
    scales = InputMap.identity(len(features), tuple(features)).then_affine(multiply=slopes[1:], add=intercepts[1:])
    factor = 1 / Fraction(float(slopes[0]))
    return restored(replace(model, input_map=scales), factor, -Fraction(float(intercepts[0])) * factor)


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ModelFormatError(f"{where}: expected a mapping")
    return value


def _numbers(value: Any, n: int, where: str) -> FloatArray:
    items = value if isinstance(value, list) else []
    if len(items) != n:
        raise ModelFormatError(f"{where}: {len(items)} numbers, expected {n}")
    if not all(type(one) in (int, float) for one in items):
        raise ModelFormatError(f"{where}: holds something else than numbers")
    try:
        numbers = np.array([float(one) for one in items])
    except OverflowError:
        raise ModelFormatError(f"{where}: holds a number beyond float64") from None
    if not np.isfinite(numbers).all():
        raise ModelFormatError(f"{where}: holds NaN or infinity")
    return numbers


def _machine(text: Any, where: str, n_features: int) -> KernelModel:
    """Parse the SVR's LIBSVM text from a temporary file, because the parser reads only files."""
    if not isinstance(text, str):
        raise ModelFormatError(f"{where}: expected the text of a LIBSVM model")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        path.write_text(text, encoding="utf-8", errors="replace")
        try:
            model = libsvm.read_libsvm(path)
        except (ModelFormatError, UnsupportedModelError) as error:
            raise type(error)(str(error).replace(str(path), where)) from None
    if model.input_map is not None:
        raise UnsupportedModelError(f"{where}: a line scaling, which libvmaf does not read")
    if model.task != "regression" or model.first_index != 1 or model.n_features > n_features:
        raise ModelFormatError(
            f"{where}: a {model.task} of indices {model.first_index} to {model.first_index + model.n_features - 1}, "
            f"expected a regression of 1 to {n_features}"
        )
    vectors = model.support_vectors
    dense = np.zeros((model.n_sv, n_features))
    dense[:, : model.n_features] = vectors if isinstance(vectors, np.ndarray) else vectors.toarray()
    return replace(model, support_vectors=dense, outputs=Outputs())

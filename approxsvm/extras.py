"""Heads and input maps as bytes: what an artifact carries beside its numbers, for Python alone."""

from __future__ import annotations

import io
import json
from dataclasses import fields, is_dataclass
from typing import Any, Final

import numpy as np

from approxsvm import heads as head_types
from approxsvm.errors import ApproxSVMError, ArtifactError
from approxsvm.heads import Heads
from approxsvm.input_map import InputMap

_KINDS: Final = {
    kind.__name__: kind
    for kind in (
        head_types.PairwiseSigmoid,
        head_types.LaplaceNoise,
        head_types.DensityMarks,
        head_types.SigmoidCalibrator,
        head_types.IsotonicCalibrator,
        head_types.OneVsRestCalibration,
        head_types.TemperatureCalibration,
        Heads,
    )
}


def is_plain(heads: Heads, n_classes: int) -> bool:
    """Whether there is nothing to say: labels by votes, no probabilities, values of the pairs as they are."""
    shaped = n_classes > 2 and heads.decision_shape != "ovo"
    return heads.probability is None and heads.label_rule == "votes" and not shaped


def pack_heads(heads: Heads) -> bytes:
    """As JSON text, every number with the digits that bring it back."""
    return json.dumps(_plain(heads), separators=(",", ":")).encode()


def unpack_heads(content: bytes, task: str, n_classes: int) -> Heads:
    """Read what `pack_heads` wrote.

    Raises
    ------
    ArtifactError
        The bytes are something else, or do not suit the model.
    """
    try:
        heads = _restored(json.loads(content))
        if not isinstance(heads, Heads):
            raise ValueError(f"it describes a {type(heads).__name__}")
        heads.check(task, n_classes)
    except (ValueError, TypeError, KeyError, RecursionError, ApproxSVMError) as error:
        raise ArtifactError(f"section heads cannot be read: {error}") from None
    return heads


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {"kind": type(value).__name__} | {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value


def _restored(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    content = dict(value)
    kind = _KINDS[content.pop("kind")]
    arguments = {}
    for field in fields(kind):
        found = content.pop(field.name)
        if isinstance(found, list):
            nested = [_restored(part) for part in found]
            found = tuple(nested) if any(isinstance(part, dict) for part in found) else np.array(nested, float)
        arguments[field.name] = _restored(found)
    if content:
        raise ValueError(f"unknown names {sorted(content)}")
    return kind(**arguments)


def pack_input_map(input_map: InputMap) -> bytes:
    """As an uncompressed .npz archive, which NumPy writes the same every time."""
    arrays = {
        field.name: np.asarray(getattr(input_map, field.name))
        for field in fields(input_map)
        if field.name != "feature_names" and getattr(input_map, field.name) is not None
    }
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def unpack_input_map(content: bytes, n_raw_features: int | None, n_features: int) -> InputMap:
    """Read what `pack_input_map` wrote; n_raw_features is what it says where the caller does not know.

    Raises
    ------
    ArtifactError
        The bytes are something else, or do not suit the model.
    """
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays: dict[str, Any] = {name: archive[name] for name in archive.files}
        arrays["n_raw_features"] = int(arrays["n_raw_features"])
        found = InputMap(**arrays)
        if n_raw_features is None:
            n_raw_features = found.n_raw_features
        if (found.n_raw_features, found.n_features) != (n_raw_features, n_features):
            raise ValueError(
                f"it maps {found.n_raw_features} to {found.n_features} features, "
                f"but the model has {n_raw_features} and {n_features}"
            )
    except ApproxSVMError as error:
        raise ArtifactError(f"section input_map cannot be read: {error}") from None
    except Exception as error:  # zipfile and NumPy have many ways to say that bytes are broken
        raise ArtifactError(f"section input_map cannot be read: {type(error).__name__}: {error}") from None
    return found

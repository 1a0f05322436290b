"""The only writer and reader of .asvm bytes in Python. The layout, with its reasons, is in models/FORMAT.md."""

from __future__ import annotations

import math
import os
import re
import secrets
import struct
import zlib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from approxsvm import packing
from approxsvm.errors import ArtifactError, UnsupportedModelError
from approxsvm.expansion.certificate import LAST_DEGREE, Certificate
from approxsvm.expansion.taylor import Expansion
from approxsvm.kernel_model import KernelModel, Task

MAGIC: Final = b"\x89ASVM\r\n\x1a"
VERSION: Final = 2
HEADER_BYTES: Final = 192
ALIGNMENT: Final = 64
MAX_FEATURES: Final = 1 << 20
MAX_INPUT_SCALE: Final = 2.0**100
MAX_OUTPUT_SCALE: Final = 2.0**1000
N_CHECK_ROWS: Final = 2
MAX_CHECK_ROWS: Final = 16

# name, struct code: the header in order of its bytes.
_HEADER_FIELDS: Final = (
    ("magic", "8s"),
    ("version", "I"),
    ("n_sections", "I"),
    ("file_bytes", "Q"),
    ("checksum", "I"),
    ("task", "I"),
    ("mode", "I"),
    ("degree", "I"),
    ("n_features", "Q"),
    ("n_support_vectors", "Q"),
    ("first_index", "I"),
    ("n_labels", "I"),
    ("gamma", "d"),
    ("intercept", "d"),
    ("constant", "d"),
    ("input_scale", "d"),
    ("output_scale", "d"),
    ("max_sv_norm", "d"),
    ("max_sv_norm_origin", "d"),
    ("label_kind", "I"),
    ("label_dtype", "16s"),
    ("reserved_0", "I"),
    ("source", "32s"),
    ("center_kind", "I"),
    ("reserved_1", "I"),
    ("tolerance", "d"),
)
_HEADER: Final = struct.Struct("<" + "".join(code for _, code in _HEADER_FIELDS))
_SECTION: Final = struct.Struct("<IIQQ")
_CHECKSUM_OFFSET: Final = 24
_SECTIONS: Final[tuple[str, ...]] = (
    "center",
    "linear",
    "quadratic",
    "labels",
    "check_rows",
    "feature_names",
    "bound",
    "direction",
    "dual_coef",
    "support_vectors",
    "exact_check_rows",
)
_SECTION_IDS: Final = {name: number for number, name in enumerate(_SECTIONS, 1)}
N_BOUND_NUMBERS: Final = LAST_DEGREE + 8
Mode = Literal["approximate", "certified", "exact"]
MODES: Final[tuple[Mode, ...]] = ("approximate", "certified", "exact")
_TASKS: Final[tuple[Task, ...]] = ("classification", "regression", "one_class")
_NO_LABELS, _INT64, _FLOAT64, _TEXT = range(4)
_MAX_LABEL_WIDTH: Final = 1 << 16  # characters of a label_dtype like <U9, unless a label is longer
assert _HEADER.size == HEADER_BYTES


class Artifact:
    """A compiled model as immutable bytes, with its header decoded.

    Parameters
    ----------
    data : bytes
        The content of an .asvm file.

    Raises
    ------
    ArtifactError
        The bytes break a rule of models/FORMAT.md; the message names the field.
    """

    def __init__(self, data: bytes) -> None:
        self.data = bytes(data)
        self.header = _read_header(self.data)
        self._sections = _read_sections(self.data, self.header)
        _check_sections(self.header, self._sections)
        self.labels = _read_labels(self.header, self._sections.get("labels"))
        names = self._sections.get("feature_names")
        self.feature_names = None if names is None else tuple(_read_texts(names, self.n_features, "feature_names"))
        _check_numbers(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Artifact, (self.data,))

    def __copy__(self) -> Artifact:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Artifact:
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Artifact) and self.data == other.data

    def __hash__(self) -> int:
        return hash(self.data)

    def __repr__(self) -> str:
        return f"<Artifact: {self.task}, {self.n_features} features, {len(self.data):,} bytes>"

    @property
    def task(self) -> Task:
        """What the decision values mean."""
        return _TASKS[int(self.header["task"])]

    @property
    def mode(self) -> Mode:
        """How much of the exact model is on board."""
        return MODES[int(self.header["mode"])]

    @property
    def n_features(self) -> int:
        """Number of columns of a row."""
        return int(self.header["n_features"])

    @property
    def center(self) -> npt.NDArray[np.float32]:
        """The point expanded about, shape (n_features,)."""
        return self.coefficients("center")

    @property
    def source(self) -> str:
        """Where the model came from."""
        return str(self.header["source"].rstrip(b"\0").decode(errors="replace"))

    def coefficients(self, name: str) -> npt.NDArray[np.float32]:
        """The float32 numbers of a section: "center", "linear", "quadratic" or "direction" (the last two packed)."""
        return np.frombuffer(self._sections.get(name, b""), "<f4")

    def dual_coef(self) -> npt.NDArray[np.float64]:
        """Coefficients of the support vectors, shape (n_sv,); none in an approximate artifact."""
        return np.frombuffer(self._sections.get("dual_coef", b""), "<f8")

    def check_rows(self, section: str = "check_rows") -> npt.NDArray[np.float64]:
        """Check rows as stored, shape (n_check_rows, 3): amplitude, decision value, tolerance."""
        return np.frombuffer(self._sections.get(section, b""), "<f8").reshape(-1, 3)

    def bound_numbers(self) -> npt.NDArray[np.float64]:
        """The numbers of section "bound": N_0 ... N_8, T, W, A1, and four more (models/FORMAT.md)."""
        return np.frombuffer(self._sections["bound"], "<f8")

    def support_vectors(self) -> npt.NDArray[np.float64]:
        """The support vectors, shape (n_sv, n_features); none in an approximate artifact."""
        if "support_vectors" not in self._sections:
            return np.empty((0, self.n_features))
        n_sv = len(self._sections["dual_coef"]) // 8
        return packing.unpack(self._sections["support_vectors"], n_sv, self.n_features)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the artifact so that `path` holds either all of it or what it held before."""
        path = Path(path)
        temporary = path.parent / f".{path.name}.{secrets.token_hex(8)}"
        try:
            with open(temporary, "xb") as file:  # and not tempfile, whose files are private
                file.write(self.data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except OSError as error:
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None  # not the temporary file's name
        finally:
            temporary.unlink(missing_ok=True)  # gone already when all went well

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Artifact:
        """Read and validate an .asvm file; errors name it."""
        try:
            return cls(Path(path).read_bytes())
        except ArtifactError as error:
            raise ArtifactError(f"{os.fspath(path)}: {error}") from None


# --- writing -----------------------------------------------------------------------------------------------------


def input_scale_for(gamma: float) -> float:
    """The power of two just below sqrt(2 gamma); 1 for gamma = 0.

    Raises
    ------
    UnsupportedModelError
        It is beyond what the format holds.
    """
    if gamma == 0.0:
        return 1.0
    _, exponent = np.frexp(gamma)
    input_scale = float(np.ldexp(1.0, int(exponent) // 2))
    if not 1.0 / MAX_INPUT_SCALE <= input_scale <= MAX_INPUT_SCALE:
        raise UnsupportedModelError(f"gamma is {gamma:.6g}; supported are 0 and 2^-200 to 2^200: scale the features")
    return input_scale


def build_expansion(
    model: KernelModel, expansion: Expansion, certificate: Certificate, mode: Mode, tolerance: float = np.inf
) -> Artifact:
    """Narrow an expansion to float32 and lay it out, with the exact model behind it when `mode` is "certified".

    Coordinates are scaled by the power of two `input_scale` just below sqrt(2 gamma) and coefficients by the power of
    two `output_scale`, so that nothing overflows float32 whatever gamma is and whatever the coefficients are.

    Raises
    ------
    UnsupportedModelError
        gamma, the coefficients or the labels are beyond what the format holds.
    """
    gamma, intercept, constant = expansion.gamma, expansion.intercept, expansion.constant
    linear, quadratic = expansion.linear, expansion.quadratic
    input_scale = input_scale_for(gamma)
    if gamma == 0.0:  # f is a constant, and must stay one for rows so far out that their norm overflows
        intercept, constant = _constant_decision(model), 0.0
    with np.errstate(over="ignore"):  # infinity is refused below
        linear = linear / input_scale
        quadratic = quadratic / input_scale / input_scale
    largest = float(np.max([abs(constant), np.abs(linear).max(), np.abs(quadratic).max()]))  # NaN stays NaN
    if not (largest < MAX_OUTPUT_SCALE and abs(intercept) < np.inf and certificate.total < np.inf):
        raise UnsupportedModelError(f"a coefficient of {largest:.6g} is too large; the limit is 2^1000")
    output_scale = _power_of_two_above(largest)

    sections = {
        "center": expansion.center.astype("<f4").tobytes(),
        "linear": (linear / output_scale).astype("<f4").tobytes(),
        "quadratic": _pack_triangle(quadratic / output_scale).astype("<f4").tobytes(),
    }
    direction_numbers = (0.0, 0.0, 0.0)
    if mode == "certified" and certificate.direction is not None:
        sections["direction"], direction_numbers = _pack_direction(certificate)
    numbers = (
        *certificate.norms,
        certificate.remainder,
        certificate.total,
        certificate.sum_moduli,
        certificate.coefficient_error,
        *direction_numbers,
    )
    sections["bound"] = np.array(numbers, "<f8").tobytes()
    header = _header(model, mode) | {
        "degree": 2,
        "intercept": intercept,
        "constant": constant / output_scale,
        "input_scale": input_scale,
        "output_scale": output_scale,
        "max_sv_norm": expansion.max_sv_norm,
        "max_sv_norm_origin": expansion.max_sv_norm_origin,
        "center_kind": ("origin", "mean").index(expansion.center_choice),
        "tolerance": tolerance,
    }
    sections["check_rows"] = _expansion_check_rows(header, sections)
    if mode == "certified":
        sections |= _exact_sections(model, header, expansion.center)
    return _assemble(model, header, sections)


def build_exact(
    model: KernelModel, center: npt.NDArray[np.float32], sv_norms: tuple[float, float], tolerance: float = np.inf
) -> Artifact:
    """Lay out the exact model alone.

    Parameters
    ----------
    model : KernelModel
    center : ndarray of shape (n_features,), float32
        Where distances are taken from.
    sv_norms : tuple of float
        max ||x_i - center|| and max ||x_i||.
    tolerance : float
        Of values; infinite when only labels count.

    Raises
    ------
    UnsupportedModelError
        gamma, the coefficients or the labels are beyond what the format holds.
    """
    with np.errstate(over="ignore"):  # infinity is refused below
        sum_moduli = float(np.abs(model.coefficients(0)).sum()) * (1 + 2.0**-40)
    if not sum_moduli < MAX_OUTPUT_SCALE:
        raise UnsupportedModelError(f"the moduli of the coefficients add up to {sum_moduli:.6g}; the limit is 2^1000")
    header = _header(model, "exact") | {
        "degree": 0,
        "intercept": float(model.intercept[0]) if model.gamma > 0.0 else _constant_decision(model),
        "constant": 0.0,
        "input_scale": input_scale_for(model.gamma),
        "output_scale": 1.0,
        "max_sv_norm": sv_norms[0],
        "max_sv_norm_origin": sv_norms[1],
        "center_kind": int(center.any()),
        "tolerance": tolerance,
    }
    numbers = np.zeros(N_BOUND_NUMBERS, "<f8")
    numbers[LAST_DEGREE + 3] = sum_moduli
    sections = {"center": center.astype("<f4").tobytes(), "bound": numbers.tobytes()}
    return _assemble(model, header, sections | _exact_sections(model, header, center))


def _constant_decision(model: KernelModel) -> float:
    """The decision value of a model with gamma = 0, rounded once: nothing else in its bound allows for rounding."""
    try:
        return math.fsum((*model.coefficients(0).tolist(), float(model.intercept[0])))
    except OverflowError:
        return math.inf


def _power_of_two_above(largest: float) -> float:
    """The least power of two above a number, within the limits of the format; 1 for 0."""
    if largest == 0.0:
        return 1.0
    return max(float(np.ldexp(1.0, int(np.frexp(largest)[1]))), 1.0 / MAX_OUTPUT_SCALE)


def _header(model: KernelModel, mode: Mode) -> dict[str, Any]:
    """What the model alone decides."""
    label_kind, label_dtype, _ = _pack_labels(model.labels)
    return {
        "magic": MAGIC,
        "version": VERSION,
        "task": _TASKS.index(model.task),
        "mode": MODES.index(mode),
        "n_features": model.n_features,
        "n_support_vectors": model.n_sv,
        "first_index": model.first_index,
        "n_labels": len(model.labels),
        "gamma": model.gamma,
        "label_kind": label_kind,
        "label_dtype": label_dtype,
        "reserved_0": 0,
        "source": model.source.encode()[:32].decode(errors="ignore").encode(),  # cut between characters
        "reserved_1": 0,
    }


def _exact_sections(model: KernelModel, header: dict[str, Any], center: npt.NDArray[np.float32]) -> dict[str, bytes]:
    """The support vectors with their coefficients; none when gamma is 0 and the model a constant in the intercept."""
    if model.gamma == 0.0:
        model = replace(
            model,
            support_vectors=np.empty((0, model.n_features)),
            dual_coef=np.empty((1, 0)),
            n_support=np.zeros_like(model.n_support),
        )
    return {
        "dual_coef": model.coefficients(0).astype("<f8").tobytes(),
        "support_vectors": packing.pack(model),
        "exact_check_rows": _exact_check_rows(model, header, center),
    }


def _pack_direction(certificate: Certificate) -> tuple[bytes, tuple[float, float, float]]:
    """G_3 as a packed triangle, and its scale, trace and error."""
    assert certificate.direction is not None
    scale = _power_of_two_above(float(np.abs(certificate.direction).max()))
    packed = _pack_triangle(certificate.direction / scale).astype("<f4").tobytes()
    trace = float(np.abs(np.diag(certificate.direction)).sum()) * (1 + 1e-9) + certificate.direction_error
    return packed, (scale, trace, certificate.direction_error)


def _assemble(model: KernelModel, header: dict[str, Any], sections: dict[str, bytes]) -> Artifact:
    """Add what every mode has, and bring the sections into their order."""
    labels = _pack_labels(model.labels)[2]
    if labels:
        sections["labels"] = labels
    if model.feature_names is not None:
        sections["feature_names"] = _pack_texts(model.feature_names, "feature names")
    ordered = {name: sections[name] for name in _SECTIONS if name in sections}
    return Artifact(_lay_out(header | {"n_sections": len(ordered)}, ordered))


def _lay_out(header: dict[str, Any], sections: dict[str, bytes]) -> bytes:
    """Header, section table and aligned sections as bytes, with sizes and checksum filled in."""
    offset = HEADER_BYTES + _SECTION.size * len(sections)
    table, body = b"", b""
    for name, content in sections.items():
        start = _aligned(offset)
        table += _SECTION.pack(_SECTION_IDS[name], 0, start, len(content))
        body += bytes(start - offset) + content
        offset = start + len(content)
    body += bytes(_aligned(offset) - offset)
    header = {**header, "file_bytes": _aligned(offset), "checksum": 0}
    data = bytearray(_HEADER.pack(*(header[name] for name, _ in _HEADER_FIELDS)) + table + body)
    struct.pack_into("<I", data, _CHECKSUM_OFFSET, zlib.crc32(data))
    return bytes(data)


def _aligned(n: int) -> int:
    return -(-n // ALIGNMENT) * ALIGNMENT


def _panel_order(n_features: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Matrix rows and columns in storage order: panels of eight rows, their triangle first (models/FORMAT.md)."""
    rows: list[npt.NDArray[np.intp]] = []
    columns: list[npt.NDArray[np.intp]] = []
    for first in range(0, n_features, 8):
        last = min(first + 8, n_features)
        triangle_columns, triangle_rows = np.tril_indices(last - first)
        rows += [triangle_rows + first, np.tile(np.arange(first, last), n_features - last)]
        columns += [triangle_columns + first, np.repeat(np.arange(last, n_features), last - first)]
    return np.concatenate(rows), np.concatenate(columns)


def _pack_triangle(matrix: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Upper triangle in storage order, off-diagonal entries doubled."""
    rows, columns = _panel_order(len(matrix))
    packed: npt.NDArray[np.float64] = matrix[rows, columns]
    packed[rows != columns] *= 2.0
    return packed


def unpack_triangle(packed: npt.NDArray[np.float32], n_features: int) -> npt.NDArray[np.float64]:
    """The symmetric matrix that a packed triangle stands for."""
    rows, columns = _panel_order(n_features)
    matrix = np.zeros((n_features, n_features))
    matrix[rows, columns] = packed
    return 0.5 * (matrix + matrix.T)


def _pack_texts(texts: tuple[str, ...], what: str) -> bytes:
    try:
        encoded = [text.encode() for text in texts]
    except UnicodeEncodeError as error:
        raise UnsupportedModelError(
            f"{what} must be valid Unicode, but {error.object!r} is not: {error.reason}"
        ) from None
    return struct.pack(f"<{len(encoded)}I", *map(len, encoded)) + b"".join(encoded)


def _pack_labels(labels: npt.NDArray[Any]) -> tuple[int, bytes, bytes]:
    """Label kind, NumPy dtype and bytes.

    Raises
    ------
    UnsupportedModelError
        The labels are neither numbers nor texts.
    """
    if len(labels) == 0:
        return _NO_LABELS, b"", b""
    dtype = labels.dtype
    name = dtype.str.encode()
    if dtype.kind in "biu" and all(-(2**63) <= int(label) < 2**63 for label in labels):
        return _INT64, name, labels.astype("<i8").tobytes()
    if dtype.kind == "f" and np.isfinite(labels).all() and dtype.itemsize <= 8:
        return _FLOAT64, name, labels.astype("<f8").tobytes()
    if dtype.kind == "U" or (dtype.kind == "O" and all(isinstance(label, str) for label in labels)):
        return _TEXT, name, _pack_texts(tuple(str(label) for label in labels), "labels")
    raise UnsupportedModelError(f"class labels of dtype {dtype} cannot be stored; use integers, floats or strings")


def check_row(
    header: dict[str, Any], center: npt.NDArray[np.float32], amplitude: float, k: int
) -> npt.NDArray[np.float32]:
    """Synthetic check row k: center plus multiples of 1/128 of an amplitude, drawn by SplitMix64, in float32."""
    with np.errstate(over="ignore"):
        state = np.uint64(k) + np.uint64(0x9E3779B97F4A7C15) * np.arange(1, len(center) + 1, dtype=np.uint64)
        x = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        steps = ((x ^ (x >> np.uint64(31))) >> np.uint64(56)).astype(np.int64) - 128
    offsets = (steps * (amplitude / 128.0 / header["input_scale"])).astype(np.float32)
    row: npt.NDArray[np.float32] = center + offsets
    return row


def _expansion_check_rows(header: dict[str, Any], sections: dict[str, bytes]) -> bytes:
    """Amplitude, decision value and tolerance of each check row, computed in float64 from the narrowed coefficients."""
    center, linear, packed = (np.frombuffer(sections[name], "<f4") for name in ("center", "linear", "quadratic"))
    n_features = len(center)
    matrix = unpack_triangle(packed, n_features)
    amplitude = _amplitude(n_features)
    result = []
    for k in range(N_CHECK_ROWS):
        row = check_row(header, center, amplitude, k).astype(np.float64)
        u = (row - center) * header["input_scale"]
        theta = 2.0 * header["gamma"] / header["input_scale"] / header["input_scale"]
        s = theta * float(u @ u)
        scale = header["output_scale"] * np.exp(-0.5 * s)
        linear_part, quadratic_part = float(linear @ u), float(u @ matrix @ u)
        value = header["intercept"] + scale * (header["constant"] + linear_part + quadratic_part)
        # Sums of moduli times the longest path of additions, with room for exp and for every order of summation.
        moduli = abs(header["constant"]) + np.abs(linear) @ np.abs(u) + np.abs(u) @ np.abs(matrix) @ np.abs(u)
        tolerance = (2 * n_features + 64) * (1.0 + s) * 2.0**-23 * scale * moduli
        tolerance += 2.0**-48 * abs(header["intercept"]) + 2.0**-100 * header["output_scale"]
        result.append((amplitude, value, tolerance))
    return np.array(result, "<f8").tobytes()


def _amplitude(n_features: int) -> float:
    """A power of two that makes s about 1."""
    return float(2.0 ** -np.ceil(np.log2(n_features) / 2.0))


def _exact_check_rows(model: KernelModel, header: dict[str, Any], center: npt.NDArray[np.float32]) -> bytes:
    """Amplitude, exact decision value and tolerance of each check row, by the definition in float64."""
    coef = model.coefficients(0)
    sum_moduli = float(np.abs(coef).sum())
    amplitude = _amplitude(model.n_features)
    result = []
    for k in range(N_CHECK_ROWS):
        row = check_row(header, center, amplitude, k).astype(np.float64)
        value, reach = header["intercept"], 0.0
        for first in range(0, model.n_sv, 4096):
            last = min(first + 4096, model.n_sv)
            with np.errstate(over="ignore"):
                sq_distance = ((model.dense_support_vectors(first, last) - row) ** 2).sum(axis=1)
            value += float(coef[first:last] @ np.exp(-model.gamma * sq_distance))
            reach = max(reach, float(sq_distance.max(initial=0.0)))
        # Norms and their cancellation, from the engine's center, which may be the origin.
        reach = model.gamma * (np.sqrt(reach) + header["max_sv_norm_origin"] + header["max_sv_norm"]) ** 2
        relative = (model.n_sv + 4 * model.n_features + 64) * (1.0 + min(16.0 * reach, 1e15)) * 2.0**-52
        tolerance = min(relative, 1.0) * sum_moduli + 2.0**-48 * abs(header["intercept"])
        result.append((amplitude, value, tolerance))
    return np.array(result, "<f8").tobytes()


# --- reading -------------------------------------------------------------------------------------------------------


def _read_header(data: bytes) -> dict[str, Any]:
    """Decode and check every header field that stands alone."""
    if not data or data[: len(MAGIC)] != MAGIC[: len(data)]:
        raise ArtifactError(f"not an approxsvm artifact: it starts with {data[: len(MAGIC)]!r}, not with {MAGIC!r}")
    if len(data) < HEADER_BYTES:
        raise ArtifactError(f"the file has {len(data)} bytes, but the header alone takes {HEADER_BYTES}")
    header = dict(zip((name for name, _ in _HEADER_FIELDS), _HEADER.unpack_from(data), strict=True))
    if header["version"] != VERSION:
        raise ArtifactError(f"format version {header['version']} is not supported, only version {VERSION}")
    if header["file_bytes"] != len(data):
        raise ArtifactError(f"the header says {header['file_bytes']} bytes, but the file has {len(data)}")
    checksum = zlib.crc32(data[_CHECKSUM_OFFSET + 4 :], zlib.crc32(bytes(4), zlib.crc32(data[:_CHECKSUM_OFFSET])))
    if checksum != header["checksum"]:
        raise ArtifactError(f"the checksum is {checksum:08x}, but the header says {header['checksum']:08x}")
    for name, highest in (("task", 2), ("mode", 2), ("label_kind", 3), ("first_index", 1), ("center_kind", 1)):
        if header[name] > highest:
            raise ArtifactError(f"{name} is {header[name]}, but at most {highest} is allowed")
    degree = 0 if MODES[header["mode"]] == "exact" else 2
    if header["degree"] != degree:
        raise ArtifactError(f"degree is {header['degree']}, but must be {degree} in this mode")
    if not 1 <= header["n_features"] <= MAX_FEATURES:
        raise ArtifactError(f"n_features is {header['n_features']}, but must be 1 to {MAX_FEATURES}")
    if header["reserved_0"] != 0 or header["reserved_1"] != 0:
        raise ArtifactError("reserved header bytes are not zero")
    for name in ("gamma", "max_sv_norm", "max_sv_norm_origin"):
        if not header[name] >= 0.0 or (name == "gamma" and header[name] == np.inf):
            raise ArtifactError(f"{name} is {header[name]}, but must be a number of at least 0")
    if not header["tolerance"] > 0.0:
        raise ArtifactError(f"tolerance is {header['tolerance']}, but must be positive")
    if not np.isfinite(header["intercept"]):
        raise ArtifactError(f"intercept is {header['intercept']}, but must be finite")
    if not abs(header["constant"]) <= 1.0:
        raise ArtifactError(f"constant is {header['constant']}, but must lie in [-1, 1]")
    for name, limit in (("input_scale", MAX_INPUT_SCALE), ("output_scale", MAX_OUTPUT_SCALE)):
        scale = header[name]
        if not (1.0 / limit <= scale <= limit and np.frexp(scale)[0] == 0.5):
            raise ArtifactError(f"{name} is {scale}, but must be a power of two between {1.0 / limit} and {limit}")
    theta = 2.0 * header["gamma"] / header["input_scale"] / header["input_scale"]
    if header["gamma"] > 0.0 and not 1.0 <= theta < 4.0:
        raise ArtifactError(f"2 gamma / input_scale^2 is {theta}, but must lie in [1, 4)")
    return header


def _read_sections(data: bytes, header: dict[str, Any]) -> dict[str, bytes]:
    """Cut the sections out; they must ascend, lie without holes and be padded with zero bytes."""
    count = header["n_sections"]
    if count > len(_SECTION_IDS):
        raise ArtifactError(f"n_sections is {count}, but at most {len(_SECTION_IDS)} are known")
    end = HEADER_BYTES + _SECTION.size * count
    if len(data) < end:
        raise ArtifactError(f"the file has {len(data)} bytes, but header and section table take {end}")
    names = {number: name for name, number in _SECTION_IDS.items()}
    sections: dict[str, bytes] = {}
    previous = 0
    for k in range(count):
        number, reserved, offset, size = _SECTION.unpack_from(data, HEADER_BYTES + _SECTION.size * k)
        if number <= previous or number not in names:
            raise ArtifactError(f"section {k} has identifier {number}, expected {previous + 1} to {len(names)}")
        if reserved != 0:
            raise ArtifactError(f"reserved bytes of section {k} are not zero")
        if offset != _aligned(end) or size > len(data) - offset:
            raise ArtifactError(
                f"section {k} takes bytes {offset} to {offset + size}, expected a start at {_aligned(end)}"
            )
        if any(data[end:offset]):
            raise ArtifactError(f"the padding before section {k} is not zero")
        sections[names[number]] = data[offset : offset + size]
        end, previous = offset + size, number
    if _aligned(end) != len(data) or any(data[end:]):
        raise ArtifactError(
            f"{len(data) - end} bytes follow the last section, expected {_aligned(end) - end} zero bytes"
        )
    return sections


def _check_sections(header: dict[str, Any], sections: dict[str, bytes]) -> None:
    """Every section that the mode needs is there and has its size; none is there that the mode has no use for."""
    d, mode = header["n_features"], MODES[header["mode"]]
    n_triangle = d * (d + 1) // 2
    expanded, exact = mode != "exact", mode != "approximate"
    sizes = {
        "center": (True, 4 * d),
        "linear": (expanded, 4 * d),
        "quadratic": (expanded, 4 * n_triangle),
        "bound": (True, 8 * N_BOUND_NUMBERS),
        "direction": (mode == "certified" and "direction" in sections, 4 * n_triangle),
        "dual_coef": (exact, len(sections.get("dual_coef", b"")) // 8 * 8),
        "support_vectors": (exact, len(sections.get("support_vectors", b""))),
    }
    for name, (wanted, expected) in sizes.items():
        if wanted != (name in sections):
            raise ArtifactError(
                f"section {name} is {'missing from' if wanted else 'found in'} an artifact of mode {mode}"
            )
        found = len(sections.get(name, b""))
        if wanted and found != expected:
            raise ArtifactError(f"section {name} has {found} bytes, but {d} features need {expected}")
    for name, wanted in (("check_rows", expanded), ("exact_check_rows", exact)):
        size = len(sections.get(name, b""))
        if wanted != (name in sections) or (wanted and (size == 0 or size % 24 or size > 24 * MAX_CHECK_ROWS)):
            raise ArtifactError(
                f"section {name} has {size} bytes, expected 1 to {MAX_CHECK_ROWS} times 24 where it is used"
            )


def _read_texts(content: bytes, count: int, section: str) -> list[str]:
    if len(content) < 4 * count:
        raise ArtifactError(f"section {section} has {len(content)} bytes, too few for {count} texts")
    lengths = struct.unpack_from(f"<{count}I", content)
    if 4 * count + sum(lengths) != len(content):
        raise ArtifactError(
            f"the texts of section {section} take {sum(lengths)} bytes, expected {len(content) - 4 * count}"
        )
    ends = 4 * count + np.cumsum((0, *lengths))
    try:
        return [content[a:b].decode() for a, b in pairwise(ends)]
    except UnicodeDecodeError as error:
        raise ArtifactError(f"a text of section {section} is not UTF-8: {error.reason}") from None


def _read_labels(header: dict[str, Any], content: bytes | None) -> npt.NDArray[Any]:
    """Labels with the dtype of the source model."""
    kind, count = header["label_kind"], header["n_labels"]
    if header["task"] != _TASKS.index("classification"):
        if kind != _NO_LABELS or count != 0 or content is not None:
            raise ArtifactError(f"a {_TASKS[header['task']]} artifact must not have labels, found {count}")
        return np.empty(0)
    if count != 2 or kind == _NO_LABELS or content is None:
        raise ArtifactError(f"a classification artifact needs 2 labels, found {count} of kind {kind}")
    values: list[Any]
    if kind == _TEXT:
        values = list(_read_texts(content, count, "labels"))
    else:
        if len(content) != 8 * count:
            raise ArtifactError(f"section labels has {len(content)} bytes, expected {8 * count}")
        values = np.frombuffer(content, "<i8" if kind == _INT64 else "<f8").tolist()
    if values[0] == values[1] or not all(isinstance(v, str) or np.isfinite(v) for v in values):
        raise ArtifactError(f"the labels {values} are not two distinct values")
    name = header["label_dtype"].rstrip(b"\0")
    unsuitable = ArtifactError(f"label_dtype {name!r} does not suit the labels {values}")
    # Only what NumPy itself writes: other spellings name arrays of arrays, or are deprecated.
    if not re.fullmatch({_INT64: rb"[<>|][biu]\d", _FLOAT64: rb"[<>|]f\d", _TEXT: rb"[<>]U\d+|\|O"}[kind], name):
        raise unsuitable
    # A type may be wider than the labels, but must not make a small file claim gigabytes.
    if kind == _TEXT and name != b"|O" and int(name[2:]) > max(_MAX_LABEL_WIDTH, *map(len, values)):
        raise unsuitable
    try:
        with np.errstate(over="ignore"):
            labels = np.array(values, dtype=name.decode("ascii"))
    except (TypeError, ValueError, OverflowError):
        raise unsuitable from None
    if labels.tolist() != values:
        raise unsuitable
    return labels


def _check_numbers(artifact: Artifact) -> None:
    """Coefficients are finite and scaled; bounds, check rows and support vectors are numbers."""
    limits = {"center": float(np.finfo(np.float32).max), "linear": 1.0, "quadratic": 2.0, "direction": 2.0}
    for name, highest in limits.items():
        values = artifact.coefficients(name)
        bad = ~(np.abs(values) <= highest)
        if bad.any():
            position = int(np.flatnonzero(bad)[0])
            raise ArtifactError(
                f"number {position} of section {name} is {values[position]}, beyond its limit {highest}"
            )
    numbers = artifact.bound_numbers()
    if not (np.isfinite(numbers).all() and (numbers >= 0.0).all()):
        raise ArtifactError("section bound holds NaN, infinity or a negative number")
    for name in ("check_rows", "exact_check_rows"):
        rows = artifact.check_rows(name)
        if not np.isfinite(rows).all() or (rows[:, 0] < 0).any() or (rows[:, 2] < 0).any():
            raise ArtifactError(f"section {name} holds NaN, infinity or a negative amplitude or tolerance")
    if not np.isfinite(artifact.dual_coef()).all():
        raise ArtifactError("section dual_coef holds NaN or infinity")
    if "support_vectors" in artifact._sections:
        packing.parse(artifact._sections["support_vectors"], len(artifact.dual_coef()), artifact.n_features)

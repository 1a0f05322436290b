"""The bytes of an .asvm artifact: their layout, and their reader. The reasons are in models/FORMAT.md."""

from __future__ import annotations

import math
import os
import re
import struct
import sys
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from approxsvm import _native
from approxsvm.artifact import packing
from approxsvm.artifact.input_map import unpack_input_map
from approxsvm.artifact.outputs import unpack_outputs
from approxsvm.artifact.subspaces import check_subspaces
from approxsvm.errors import ArtifactError
from approxsvm.expansion.gram import LAST_DEGREE
from approxsvm.expansion.monomials import n_monomials
from approxsvm.model.cosine_model import MAX_PHASE
from approxsvm.model.kernel_model import MAX_FEATURES, MAX_FORM_DEGREE, MAX_KERNEL_DEGREE, Task
from approxsvm.model.outputs import ClassProbability, Outputs
from approxsvm.model.raw_columns import RawColumns
from approxsvm.output_files import write_whole

MAGIC: Final = b"\x89ASVM\r\n\x1a"
VERSION: Final = 9
HEADER_BYTES: Final = 192
ALIGNMENT: Final = 64
MAX_CENTERS: Final = 1 << 20
MAX_DEGREE: Final = 6
MAX_LABELS: Final = 1 << 10
MAX_MEMBERS: Final = 1 << 10
MAX_INPUT_SCALE: Final = 2.0**100
MAX_OUTPUT_SCALE: Final = 2.0**1000
MAX_CHECK_ROWS: Final = 16
# Labels are promised where the exact value is further than this from zero, as a share of sum |a_i|: float64 rounding.
NEAR_TIE: Final = 1e-10
ROUTER_WIDTH: Final = 16
MAX_GROUP_PANELS: Final = 256

# name, struct code: the header in order of its bytes.
HEADER_FIELDS: Final = (
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
    ("input_scale", "d"),
    ("tolerance", "d"),
    ("max_sv_norm", "d"),
    ("max_sv_norm_origin", "d"),
    ("n_centers", "I"),
    ("n_decisions", "I"),
    ("first_remainder_degree", "I"),
    ("center_kind", "I"),
    ("label_kind", "I"),
    ("label_dtype", "16s"),
    ("tolerance_asked", "I"),
    ("source", "32s"),
    ("n_raw_features", "Q"),
    ("kernel", "I"),
    ("majority_only", "I"),
)
HEADER: Final = struct.Struct("<" + "".join(code for _, code in HEADER_FIELDS))
SECTION: Final = struct.Struct("<IIQQ")
FILE_BYTES_OFFSET: Final = 16
CHECKSUM_OFFSET: Final = 24
SECTIONS: Final[tuple[str, ...]] = (
    "center",
    "decisions",
    "expansions",
    "centers",
    "linear",
    "quadratic",
    "higher",
    "direction",
    "router",
    "labels",
    "check_rows",
    "feature_names",
    "plan",
    "class_counts",
    "majority_classes",
    "dual_coef",
    "support_vectors",
    "exact_check_rows",
    "outputs",
    "input_map",
    "varying",
    "polynomial",
    "members",
    "presumption",
    "subspaces",
    "subspace_expansion",
    "cosines",
)
SECTION_IDS: Final = {name: number for number, name in enumerate(SECTIONS, 1)}
DECISION_NUMBERS: Final = np.dtype(
    [("intercept", "<f8"), ("total", "<f8"), ("sum_moduli", "<f8"), ("value_error", "<f8")]
)
EXPANSION_NUMBERS: Final = np.dtype(
    [
        ("constant", "<f8"),
        ("output_scale", "<f8"),
        ("norms", "<f8", (LAST_DEGREE + 1,)),
        ("remainder", "<f8"),
        ("contraction", "<f8"),
        ("coefficient_error", "<f8"),
        ("max_sv_norm", "<f8"),
        ("direction_scale", "<f8"),
        ("direction_trace", "<f8"),
        ("direction_error", "<f8"),
    ]
)
# What a polynomial section has before the forms, and a form before its coefficients.
POLYNOMIAL_HEADER: Final = ("coef0", "coef_error")
FORM_HEADER: Final = ("constant", "constant_error", "linear_error", "quadratic_error")
GAUSSIAN, POLYNOMIAL, COSINE = range(3)  # kernels
Mode = Literal["approximate", "certified", "exact"]
MODES: Final[tuple[Mode, ...]] = ("approximate", "certified", "exact")
ENSEMBLE: Final = 3  # the header's mode of several models in one file
TASKS: Final[tuple[Task, ...]] = ("classification", "regression", "one_class")
NO_LABELS, INT64, FLOAT64, TEXT = range(4)
_MAX_LABEL_WIDTH: Final = 1 << 16  # characters of a label_dtype like <U9, unless a label is longer
assert HEADER.size == HEADER_BYTES


def n_decisions_of(n_labels: int) -> int:
    """One decision function, or one for each pair of more than two classes."""
    return n_labels * (n_labels - 1) // 2 if n_labels > 2 else 1


def n_higher(n_features: int, degree: int) -> int:
    """Monomials of the degrees 3 to `degree`."""
    return sum(n_monomials(n_features, k) for k in range(3, degree + 1))


def form_size(n_features: int, degree: int) -> int:
    """Numbers of the form of one decision function of a polynomial kernel."""
    return len(FORM_HEADER) + sum(n_monomials(n_features, k) for k in range(1, degree + 1))


def aligned(n: int) -> int:
    """The least multiple of the alignment that is not below n."""
    return -(-n // ALIGNMENT) * ALIGNMENT


Sealed = TypeVar("Sealed", bound="SealedBytes")


class SealedBytes:
    """The content of a file that never changes: equal, hashed, pickled and written by its bytes alone."""

    data: bytes

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.data,))

    def __copy__(self: Sealed) -> Sealed:
        return self

    def __deepcopy__(self: Sealed, memo: dict[int, Any]) -> Sealed:
        return self

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, SealedBytes) and self.data == other.data

    def __hash__(self) -> int:
        return hash(self.data)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the bytes so that `path` holds either all of them or what it held before."""
        write_whole(self.data, path)


class Artifact(SealedBytes):
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
        self.members = _read_members(self.header, self._sections) if self.header["mode"] == ENSEMBLE else ()
        if not self.members:
            _check_sections(self.header, self._sections)
        self.labels = _read_labels(self.header, self._sections.get("labels"))
        names = self._sections.get("feature_names")
        self.feature_names = None if names is None else tuple(_read_texts(names, self.n_raw_features, "feature_names"))
        outputs, input_map = self._sections.get("outputs"), self._sections.get("input_map")
        self.outputs = Outputs() if outputs is None else unpack_outputs(outputs, self.task, len(self.labels))
        self.input_map = (
            None if input_map is None else unpack_input_map(input_map, self.n_raw_features, self.n_features)
        )
        _check_plan(self)
        if self.members:
            _check_members(self)
        else:
            _check_numbers(self)
            _check_router(self.header, self._sections.get("router"))
        self.raw_columns = RawColumns.of(self)

    def __repr__(self) -> str:
        return f"<Artifact: {self.task}, {self.n_features} features, {len(self.data):,} bytes>"

    @property
    def task(self) -> Task:
        """What the decision values mean."""
        return TASKS[int(self.header["task"])]

    @property
    def mode(self) -> Mode:
        """How much of the exact model is on board; of an ensemble "certified" where members differ."""
        if not self.members:
            return MODES[int(self.header["mode"])]
        modes = {member.mode for member in self.members}
        return modes.pop() if len(modes) == 1 else "approximate" if "approximate" in modes else "certified"

    @property
    def averages(self) -> bool:
        """Whether this is an ensemble that averages its members' probabilities, and has no decision values."""
        return bool(self.members) and self.task == "classification"

    @property
    def has_decision_function(self) -> bool:
        """Whether the source gives decision values: one that is calibrated gives probabilities alone."""
        return not self.averages and self.outputs.label_rule != "probability"

    @property
    def has_class_probabilities(self) -> bool:
        """Whether the source gives classes probabilities."""
        return self.averages or isinstance(self.outputs.probability, ClassProbability)

    @property
    def n_features(self) -> int:
        """Number of columns of a row as the kernel sees it."""
        return int(self.header["n_features"])

    @property
    def n_raw_features(self) -> int:
        """Number of columns of a row before the input map, if there is one."""
        return int(self.header["n_raw_features"])

    @property
    def center(self) -> npt.NDArray[np.float32]:
        """Mean of the support vectors, or the origin, shape (n_features,)."""
        is_stored = self.header["kernel"] == GAUSSIAN
        return self.coefficients("center") if is_stored else np.zeros(self.n_features, np.float32)

    @property
    def is_polynomial(self) -> bool:
        """Whether the kernel is polynomial, the linear one among these."""
        return bool(self.header["kernel"] == POLYNOMIAL)

    @property
    def is_cosine(self) -> bool:
        """Whether the model is a sum of cosines."""
        return bool(self.header["kernel"] == COSINE)

    @property
    def n_cosines(self) -> int:
        """How many cosines it is a sum of; 0 where it is none."""
        return len(self.section("cosines")) // (8 * (self.n_features + 2))

    def cosines(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Coefficients and phases, (n_cosines,), and frequencies, (n_cosines, n_features), of a sum of cosines."""
        numbers, n = np.frombuffer(self.section("cosines"), "<f8"), self.n_cosines
        return numbers[:n], numbers[n : 2 * n], numbers[2 * n :].reshape(n, -1)

    @property
    def has_form(self) -> bool:
        """Whether a polynomial kernel is summed up to a form of its degree."""
        return self.is_polynomial and self.mode != "exact"

    @property
    def kernel_name(self) -> str:
        """The kernel in words, or those of the members."""
        if self.members:
            return ", ".join(sorted({member.kernel_name for member in self.members}))
        degree = int(self.header["degree"])
        if self.is_cosine:
            return f"{self.n_cosines:,} cosines"
        if not self.is_polynomial:
            return "Gaussian"
        if degree == 1 and self.header["gamma"] == 1.0 and self.coef0 == 0.0:
            return "linear"
        return f"polynomial of degree {degree}, coef0 {self.coef0:.6g}"

    @property
    def coef0(self) -> float:
        """Of a polynomial kernel (gamma x.z + coef0)^degree."""
        return float(self.polynomial_numbers()[0]) if self.is_polynomial else 0.0

    def polynomial_numbers(self) -> npt.NDArray[np.float64]:
        """Section polynomial as it is stored; empty for the Gaussian."""
        return np.frombuffer(self._sections.get("polynomial", b""), "<f8")

    @property
    def n_centers(self) -> int:
        """Number of points expanded about; 0 in mode "exact", the most of any member."""
        return max([int(self.header["n_centers"]), *(member.n_centers for member in self.members)])

    @property
    def n_varying(self) -> int:
        """Number of features that expansions are in: all of them, unless rows lie on slices of the space."""
        return len(self.numbers("varying")) or self.n_features

    @property
    def plan(self) -> str:
        """Why the compiler chose what it chose, in a sentence; empty where it had no choice."""
        return self._sections.get("plan", b"").decode()

    @property
    def source(self) -> str:
        """Where the model came from."""
        return str(self.header["source"].rstrip(b"\0").decode(errors="replace"))

    @property
    def subspace_coordinates(self) -> tuple[int, ...]:
        """Of each stage in few coordinates; empty where there are none."""
        content = self.section("subspaces")
        return struct.unpack_from(f"<{struct.unpack_from('<I', content)[0]}I", content, 8) if content else ()

    def router(self) -> RouterLists:
        """How a near center is found; of an artifact with several centers."""
        return _router_lists(self._sections["router"], self.n_features)

    def section(self, name: str) -> bytes:
        """The content of a section; empty where there is none."""
        return self._sections.get(name, b"")

    def coefficients(self, name: str) -> npt.NDArray[np.float32]:
        """The float32 numbers of a section, as packed: "linear", "quadratic", "higher", "direction", ..."""
        return np.frombuffer(self._sections.get(name, b""), "<f4")

    def dual_coef(self) -> npt.NDArray[np.float64]:
        """Coefficients, shape (1 or n_labels - 1, n_sv) as in KernelModel; none in an approximate artifact."""
        n_rows = self.header["n_labels"] - 1 if self.header["n_labels"] > 2 else 1
        return np.frombuffer(self._sections.get("dual_coef", b""), "<f8").reshape(n_rows, -1)

    def numbers(self, name: str) -> npt.NDArray[np.uint32]:
        """The whole numbers of a section: "class_counts", "majority_classes" or "varying"."""
        return np.frombuffer(self._sections.get(name, b""), "<u4")

    def check_rows(self, section: str = "check_rows") -> npt.NDArray[np.float64]:
        """Check rows as stored, shape (n_check_rows, 3): amplitude, decision value, tolerance."""
        return np.frombuffer(self._sections.get(section, b""), "<f8").reshape(-1, 3)

    def decision_numbers(self) -> npt.NDArray[np.void]:
        """Intercept, W and A1 of each decision function (models/FORMAT.md, "decisions")."""
        return np.frombuffer(self._sections["decisions"], DECISION_NUMBERS)

    def expansion_numbers(self) -> npt.NDArray[np.void]:
        """What belongs to each expansion, shape (n_centers * n_forms,) (models/FORMAT.md, "expansions")."""
        return np.frombuffer(self._sections.get("expansions", b""), EXPANSION_NUMBERS)

    def centers(self) -> npt.NDArray[np.float32]:
        """The points expanded about, shape (n_centers, n_features)."""
        found = self.coefficients("centers" if self.n_centers > 1 else "center")
        return found.reshape(-1, self.n_features)[: self.n_centers]

    def support_vectors(self) -> npt.NDArray[np.float64]:
        """The support vectors, shape (n_sv, n_features); none in an approximate artifact."""
        if "support_vectors" not in self._sections:
            return np.empty((0, self.n_features))
        n_sv = self.dual_coef().shape[1]
        return packing.unpack(self._sections["support_vectors"], n_sv, self.n_features)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Artifact:
        """Read and validate an .asvm file; errors name it."""
        try:
            return cls(Path(path).read_bytes())
        except ArtifactError as error:
            raise ArtifactError(f"{os.fspath(path)}: {error}") from None


# --- reading -------------------------------------------------------------------------------------------------------


def _read_header(data: bytes) -> dict[str, Any]:
    """Decode and check every header field that stands alone."""
    if not data or data[: len(MAGIC)] != MAGIC[: len(data)]:
        kind = _native.file_kind(data)
        what = f"this is {kind}" if kind else f"it starts with {data[: len(MAGIC)]!r}, not with {MAGIC!r}"
        raise ArtifactError(f"not an approxsvm artifact: {what}")
    if len(data) < HEADER_BYTES:
        raise ArtifactError(f"the file has {len(data)} bytes, but the header alone takes {HEADER_BYTES}")
    header = dict(zip((name for name, _ in HEADER_FIELDS), HEADER.unpack_from(data), strict=True))
    if header["version"] != VERSION:
        raise ArtifactError(f"format version {header['version']} is not supported, only version {VERSION}")
    if header["file_bytes"] != len(data):
        raise ArtifactError(f"the header says {header['file_bytes']} bytes, but the file has {len(data)}")
    checksum = zlib.crc32(data[CHECKSUM_OFFSET + 4 :], zlib.crc32(bytes(4), zlib.crc32(data[:CHECKSUM_OFFSET])))
    if checksum != header["checksum"]:
        raise ArtifactError(f"the checksum is {checksum:08x}, but the header says {header['checksum']:08x}")
    for name, highest in (
        ("task", 2),
        ("mode", 3),
        ("label_kind", 3),
        ("first_index", 1),
        ("center_kind", 1),
        ("tolerance_asked", 1),
        ("kernel", COSINE),
    ):
        if header[name] > highest:
            raise ArtifactError(f"{name} is {header[name]}, but at most {highest} is allowed")
    if header["n_labels"] > MAX_LABELS:
        raise ArtifactError(f"n_labels is {header['n_labels']}, but at most {MAX_LABELS} are allowed")
    ensemble = header["mode"] == ENSEMBLE  # whose decision functions are counted with its members
    if not ensemble and header["n_decisions"] != n_decisions_of(header["n_labels"]):
        raise ArtifactError(
            f"n_decisions is {header['n_decisions']}, but {header['n_labels']} labels need "
            f"{n_decisions_of(header['n_labels'])}"
        )
    for name, (low, high) in _limits(header).items():
        if not low <= header[name] <= high:
            raise ArtifactError(f"{name} is {header[name]}, but must be {low} to {high} in this mode")
    for name in ("n_features", "n_raw_features"):
        if not 1 <= header[name] <= MAX_FEATURES:
            raise ArtifactError(f"{name} is {header[name]}, but must be 1 to {MAX_FEATURES}")
    if header["majority_only"] != 0:
        _check_majority_only(header)
    polynomial = header["kernel"] == POLYNOMIAL
    for name in ("gamma", "max_sv_norm", "max_sv_norm_origin"):
        if not header[name] >= 0.0 and not (name == "gamma" and polynomial):
            raise ArtifactError(f"{name} is {header[name]}, but must be a number of at least 0")
    if not math.isfinite(header["gamma"]):
        raise ArtifactError(f"gamma is {header['gamma']}, but must be a number of at least 0")
    if not header["tolerance"] > 0.0:
        raise ArtifactError(f"tolerance is {header['tolerance']}, but must be positive")
    scale = header["input_scale"]
    if not _is_power_of_two(scale, MAX_INPUT_SCALE):
        raise ArtifactError(f"input_scale is {scale}, but must be a power of two from 2^-100 to 2^100")
    if ensemble and (header["gamma"] != 0.0 or scale != 1.0 or header["tolerance"] < math.inf):
        raise ArtifactError("an ensemble has no gamma, input_scale or tolerance of its own")
    if header["kernel"] != GAUSSIAN and scale != 1.0:
        raise ArtifactError(f"input_scale is {scale}, but must be 1 for a kernel that is not Gaussian")
    if header["kernel"] == COSINE:
        _check_cosine_header(header)
    theta = 2.0 * header["gamma"] / header["input_scale"] / header["input_scale"]
    if header["gamma"] > 0.0 and not polynomial and not 1.0 <= theta < 4.0:
        raise ArtifactError(f"2 gamma / input_scale^2 is {theta}, but must lie in [1, 4)")
    return header


def _check_cosine_header(header: dict[str, Any]) -> None:
    """A sum of cosines is exact, is one function, and has no kernel width."""
    expected = {"mode": MODES.index("exact"), "n_decisions": 1, "gamma": 0.0, "center_kind": 0}
    for name, value in expected.items():
        if header[name] != value:
            raise ArtifactError(f"{name} is {header[name]}, but must be {value} for a sum of cosines")


def _check_majority_only(header: dict[str, Any]) -> None:
    """Forms of majority classes alone prove labels of several classes and nothing else."""
    if header["majority_only"] > 1:
        raise ArtifactError(f"majority_only is {header['majority_only']}, but at most 1 is allowed")
    certified = header["mode"] == MODES.index("certified") and header["kernel"] == GAUSSIAN
    if not certified or header["n_labels"] <= 2 or header["tolerance"] < math.inf:
        raise ArtifactError(
            f"majority_only is 1, but mode is {header['mode']}, kernel {header['kernel']}, tolerance "
            f"{header['tolerance']} and n_labels {header['n_labels']}"
        )


def _limits(header: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """What fields that depend on kernel and mode may be."""
    exact = header["mode"] >= MODES.index("exact")
    if header["mode"] == ENSEMBLE and header["kernel"]:
        raise ArtifactError(f"kernel is {header['kernel']}, but an ensemble has none")
    if header["kernel"] == POLYNOMIAL:
        degree = (1, MAX_KERNEL_DEGREE if exact else MAX_FORM_DEGREE)
        return {"degree": degree, "n_centers": (0, 0), "first_remainder_degree": (0, 0), "center_kind": (0, 0)}
    if exact:
        return {"degree": (0, 0), "n_centers": (0, 0), "first_remainder_degree": (0, 0)}
    return {
        "degree": (1, MAX_DEGREE),
        "n_centers": (1, MAX_CENTERS),
        "first_remainder_degree": (header["degree"] + 1, LAST_DEGREE + 1),
    }


def _is_power_of_two(x: float, limit: float) -> bool:
    return bool(1.0 / limit <= x <= limit and np.frexp(x)[0] == 0.5)


def _read_sections(data: bytes, header: dict[str, Any]) -> dict[str, bytes]:
    """Cut the sections out; they must ascend, lie without holes and be padded with zero bytes."""
    count = header["n_sections"]
    if count > len(SECTION_IDS):
        raise ArtifactError(f"n_sections is {count}, but at most {len(SECTION_IDS)} are known")
    end = HEADER_BYTES + SECTION.size * count
    if len(data) < end:
        raise ArtifactError(f"the file has {len(data)} bytes, but header and section table take {end}")
    names = {number: name for name, number in SECTION_IDS.items()}
    sections: dict[str, bytes] = {}
    previous = 0
    for k in range(count):
        number, reserved, offset, size = SECTION.unpack_from(data, HEADER_BYTES + SECTION.size * k)
        if number <= previous or number not in names:
            raise ArtifactError(f"section {k} has identifier {number}, expected {previous + 1} to {len(names)}")
        if reserved != 0:
            raise ArtifactError(f"reserved bytes of section {k} are not zero")
        if offset != aligned(end) or size > len(data) - offset:
            raise ArtifactError(
                f"section {k} takes bytes {offset} to {offset + size}, expected a start at {aligned(end)}"
            )
        if any(data[end:offset]):
            raise ArtifactError(f"the padding before section {k} is not zero")
        sections[names[number]] = data[offset : offset + size]
        end, previous = offset + size, number
    if aligned(end) != len(data) or any(data[end:]):
        raise ArtifactError(
            f"{len(data) - end} bytes follow the last section, expected {aligned(end) - end} zero bytes"
        )
    return sections


def _read_members(header: dict[str, Any], sections: dict[str, bytes]) -> tuple[Artifact, ...]:
    """Whole artifacts one after the other, none of them an ensemble."""
    strange = sections.keys() - {"labels", "feature_names", "plan", "members"}
    content = sections.get("members", b"")
    if strange or not content:
        raise ArtifactError(f"an ensemble needs section members, and none of {sorted(strange)}")
    members: list[Artifact] = []
    at = 0
    while at < len(content):
        size = int.from_bytes(content[at + FILE_BYTES_OFFSET : at + FILE_BYTES_OFFSET + 8], "little")
        if len(content) - at < HEADER_BYTES or size % ALIGNMENT or size > len(content) - at:
            raise ArtifactError(f"member {len(members)} claims {size} of {len(content) - at} bytes of section members")
        if len(members) == MAX_MEMBERS:
            raise ArtifactError(f"an ensemble has at most {MAX_MEMBERS} members")
        try:
            members.append(Artifact(content[at : at + size]))
        except ArtifactError as error:
            raise ArtifactError(f"member {len(members)}: {error}") from None
        if members[-1].members:
            raise ArtifactError(f"member {len(members) - 1} is an ensemble itself")
        at += size
    expected = 0 if header["task"] == TASKS.index("classification") else len(members)
    if header["n_decisions"] != expected:
        raise ArtifactError(f"n_decisions is {header['n_decisions']}, but must be {expected} with these members")
    # What people are shown of several models.
    header["n_support_vectors"] = sum(int(member.header["n_support_vectors"]) for member in members)
    for name in ("tolerance", "degree", "center_kind", "gamma", "max_sv_norm"):
        header[name] = max(member.header[name] for member in members)
    return tuple(members)


def _check_members(artifact: Artifact) -> None:
    """Members agree with the ensemble and with each other."""
    if artifact.task == "one_class" or artifact.n_features != artifact.n_raw_features:
        raise ArtifactError(
            f"a {artifact.task} ensemble has {artifact.n_features} of {artifact.n_raw_features} features"
        )
    for k, member in enumerate(artifact.members):
        if member.task != artifact.task or member.n_raw_features != artifact.n_raw_features:
            raise ArtifactError(
                f"the members do not match: member {k} is a {member.task} of {member.n_raw_features} features, "
                f"the ensemble a {artifact.task} of {artifact.n_raw_features}"
            )
        if member.labels.tolist() != artifact.labels.tolist():
            raise ArtifactError(
                f"the members do not match: member {k} has the labels {member.labels.tolist()}, "
                f"the ensemble {artifact.labels.tolist()}"
            )
        if artifact.averages and not member.has_class_probabilities:
            raise ArtifactError(f"the members do not match: member {k} has no class probabilities")


def _check_plan(artifact: Artifact) -> None:
    try:
        _ = artifact.plan
    except UnicodeDecodeError as error:
        raise ArtifactError(f"section plan is not UTF-8: {error.reason}") from None


def _n_varying(header: dict[str, Any], content: bytes | None) -> int:
    """How many columns section varying names: fewer than there are, ascending; only where it may be."""
    d, n_centers, mode = int(header["n_features"]), header["n_centers"], MODES[header["mode"]]
    if content is None:
        return d
    if mode != "certified" or n_centers < 2:
        raise ArtifactError(f"section varying is found in an artifact of mode {mode} with {n_centers} centers")
    if len(content) % 4 or not 1 <= len(content) // 4 < d:
        raise ArtifactError(f"section varying has {len(content)} bytes, expected 4 for each of 1 to {d - 1} columns")
    columns = np.frombuffer(content, "<u4").astype(np.int64)
    if (np.diff(columns) <= 0).any() or columns[-1] >= d:
        raise ArtifactError(f"the columns {columns.tolist()} of section varying do not ascend from 0 to {d - 1}")
    return len(columns)


def _check_sections(header: dict[str, Any], sections: dict[str, bytes]) -> None:
    """Every section that the mode needs is there and has its size; none is there that the mode has no use for."""
    d, mode, n = header["n_features"], MODES[header["mode"]], header["n_centers"]
    v, degree = _n_varying(header, sections.get("varying")), header["degree"]
    n_decisions, n_labels = header["n_decisions"], header["n_labels"]
    n_all = n * (n_labels - 1 if header["majority_only"] else n_decisions)
    n_triangles = n_all * n_monomials(v, 2)
    polynomial = header["kernel"] == POLYNOMIAL
    cosine, gaussian = header["kernel"] == COSINE, header["kernel"] == GAUSSIAN
    expanded, classes = mode != "exact" and gaussian, n_labels > 2
    exact = mode != "approximate" and not cosine  # with support vectors
    n_forms = n_decisions if polynomial and mode != "exact" else 0
    coef_bytes = 8 * (n_labels - 1 if classes else 1)
    directed = expanded and mode == "certified" and degree == 2 and not classes and "direction" in sections
    sizes = {
        "center": (gaussian, 4 * d),
        "decisions": (True, n_decisions * DECISION_NUMBERS.itemsize),
        "expansions": (expanded, n_all * EXPANSION_NUMBERS.itemsize),
        "centers": (n > 1, 4 * n * d),
        "linear": (expanded, 4 * n_all * v),
        "quadratic": (expanded and degree >= 2, 4 * n_triangles),
        "higher": (expanded and degree > 2, 4 * n_all * n_higher(v, degree)),
        "direction": (directed, 4 * n_triangles),
        "router": (n > 1, len(sections.get("router", b""))),
        "class_counts": (exact and classes, 4 * n_labels),
        "majority_classes": (expanded and classes, 4 * n),
        "dual_coef": (exact, len(sections.get("dual_coef", b"")) // coef_bytes * coef_bytes),
        "support_vectors": (exact, len(sections.get("support_vectors", b""))),
        "polynomial": (polynomial, 8 * (len(POLYNOMIAL_HEADER) + n_forms * (form_size(d, degree) if n_forms else 0))),
        "cosines": (cosine, len(sections.get("cosines", b""))),
        "members": (False, 0),
        "presumption": (
            "presumption" in sections and exact and classes and gaussian,
            len(sections.get("presumption", b"")),
        ),
        "subspaces": (
            "subspaces" in sections and mode == "exact" and gaussian and header["gamma"] > 0.0,
            len(sections.get("subspaces", b"")),
        ),
        "subspace_expansion": (
            "subspace_expansion" in sections and "subspaces" in sections and not classes,
            len(sections.get("subspace_expansion", b"")),
        ),
    }
    for name, (wanted, expected) in sizes.items():
        if wanted != (name in sections):
            raise ArtifactError(
                f"section {name} is {'missing from' if wanted else 'found in'} an artifact of mode {mode}"
            )
        found = len(sections.get(name, b""))
        if wanted and found != expected:
            raise ArtifactError(f"section {name} has {found} bytes, but {v} features and {n} centers need {expected}")
    if header["n_raw_features"] != d and "input_map" not in sections:
        raise ArtifactError(f"n_raw_features is {header['n_raw_features']}, but {d} without an input map")
    for name, wanted in (("check_rows", expanded), ("exact_check_rows", exact or not gaussian)):
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
    if header["task"] != TASKS.index("classification"):
        if kind != NO_LABELS or count != 0 or content is not None:
            raise ArtifactError(f"a {TASKS[header['task']]} artifact must not have labels, found {count}")
        return np.empty(0)
    if count < 2 or kind == NO_LABELS or content is None:
        raise ArtifactError(f"a classification artifact needs 2 labels or more, found {count} of kind {kind}")
    values: list[Any]
    name = header["label_dtype"].rstrip(b"\0")
    if kind == TEXT:
        values = list(_read_texts(content, count, "labels"))
        if re.fullmatch(rb"[<>]u8", name) and all(re.fullmatch(r"0|[1-9][0-9]{0,19}", text) for text in values):
            values = list(map(int, values))  # too large for int64
    else:
        if len(content) != 8 * count:
            raise ArtifactError(f"section labels has {len(content)} bytes, expected {8 * count}")
        values = np.frombuffer(content, "<i8" if kind == INT64 else "<f8").tolist()
    if len(set(values)) != count or not all(isinstance(v, str) or math.isfinite(v) for v in values):
        raise ArtifactError(f"the labels {values} are not {count} distinct values")
    unsuitable = ArtifactError(f"label_dtype {name!r} does not suit the labels {values}")
    # Only what NumPy itself writes: other spellings name arrays of arrays, or are deprecated.
    if not re.fullmatch({INT64: rb"[<>|][biu]\d", FLOAT64: rb"[<>|]f\d", TEXT: rb"[<>]U\d+|\|O|[<>]u8"}[kind], name):
        raise unsuitable
    # A type may be wider than the labels, but must not make a small file claim gigabytes.
    if kind == TEXT and name[1:2] == b"U" and int(name[2:]) > max(_MAX_LABEL_WIDTH, *map(len, values)):
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
    largest = float(np.finfo(np.float32).max)
    limits = {"center": largest, "centers": largest, "linear": 1.0, "quadratic": 2.0, "higher": 720.0, "direction": 2.0}
    for name, highest in limits.items():
        values = artifact.coefficients(name)
        bad = ~(np.abs(values) <= highest)
        if bad.any():
            position = int(np.flatnonzero(bad)[0])
            raise ArtifactError(
                f"number {position} of section {name} is {values[position]}, beyond its limit {highest}"
            )
    _check_records(artifact)
    _check_polynomial(artifact)
    _check_cosines(artifact)
    _check_presumption(artifact)
    _check_subspaces(artifact)
    for name in ("check_rows", "exact_check_rows"):
        rows = artifact.check_rows(name)
        if not np.isfinite(rows).all() or (rows[:, 0] < 0).any() or (rows[:, 2] < 0).any():
            raise ArtifactError(f"section {name} holds NaN, infinity or a negative amplitude or tolerance")
    if not np.isfinite(artifact.dual_coef()).all():
        raise ArtifactError("section dual_coef holds NaN or infinity")
    if "support_vectors" in artifact._sections:
        packing.parse(artifact._sections["support_vectors"], artifact.dual_coef().shape[1], artifact.n_features)


def _check_records(artifact: Artifact) -> None:
    """Intercepts, scales, norms; whose class a support vector and a center are."""
    counts, majority_classes = artifact.numbers("class_counts"), artifact.numbers("majority_classes")
    if len(counts) and int(counts.sum(dtype=np.int64)) != artifact.dual_coef().shape[1]:
        raise ArtifactError(
            f"section class_counts counts {int(counts.sum(dtype=np.int64))} support vectors, "
            f"but there are {artifact.dual_coef().shape[1]}"
        )
    if len(majority_classes) and majority_classes.max() >= artifact.header["n_labels"]:
        raise ArtifactError(
            f"section majority_classes names class {majority_classes.max()} of {artifact.header['n_labels']}"
        )
    decisions, expansions = artifact.decision_numbers(), artifact.expansion_numbers()
    if not np.isfinite(decisions["intercept"]).all():
        raise ArtifactError("an intercept of section decisions is NaN or infinite")
    for section, numbers in (("decisions", decisions), ("expansions", expansions)):
        for name in numbers.dtype.names or ():
            if name in ("intercept", "constant", "output_scale", "contraction"):
                continue
            values = numbers[name]
            highest = math.inf if name == "max_sv_norm" else sys.float_info.max
            if not ((values >= 0.0) & (values <= highest)).all():
                raise ArtifactError(f"{name} in section {section} is NaN, negative or infinite")
    if not (np.abs(expansions["constant"]) <= 1.0).all():
        raise ArtifactError("a constant of section expansions does not lie in [-1, 1]")
    if not np.isin(expansions["contraction"], (1.0, 0.5, 0.25, 0.125)).all():
        raise ArtifactError("a contraction of section expansions is none of 1, 1/2, 1/4 and 1/8")
    if not all(_is_power_of_two(scale, MAX_OUTPUT_SCALE) for scale in expansions["output_scale"]):
        raise ArtifactError("an output_scale of section expansions is not a power of two from 2^-1000 to 2^1000")


def _check_polynomial(artifact: Artifact) -> None:
    """Finite numbers, errors that are not negative."""
    numbers = artifact.polynomial_numbers()
    if not np.isfinite(numbers).all():
        raise ArtifactError("section polynomial holds NaN or infinity")
    head, forms = len(POLYNOMIAL_HEADER), None
    if artifact.has_form:
        forms = numbers[head:].reshape(artifact.header["n_decisions"], -1)[:, 1 : len(FORM_HEADER)]
    if (len(numbers) and numbers[1] < 0.0) or (forms is not None and (forms < 0.0).any()):
        raise ArtifactError("an error in section polynomial is negative")


def _check_cosines(artifact: Artifact) -> None:
    """Whole cosines, at least one, of finite numbers; phases within their limit."""
    content, of_each = artifact._sections.get("cosines"), artifact.n_features + 2
    if content is None:
        return
    if not content or len(content) % (8 * of_each):
        raise ArtifactError(f"section cosines has {len(content)} bytes, expected a multiple of {8 * of_each}, not 0")
    numbers, n = np.frombuffer(content, "<f8"), artifact.n_cosines
    if not np.isfinite(numbers).all():
        raise ArtifactError("section cosines holds NaN or infinity")
    largest = float(np.abs(numbers[n : 2 * n]).max())
    if largest > MAX_PHASE:
        raise ArtifactError(f"a phase in section cosines is {largest} in modulus, but at most {MAX_PHASE} is allowed")


def _check_presumption(artifact: Artifact) -> None:
    """Landmarks that are support vectors, finite weights for all of them."""
    content = artifact._sections.get("presumption")
    if content is None:
        return
    n_landmarks, reserved = struct.unpack_from("<II", content) if len(content) >= 8 else (0, 0)
    n_sv, n_labels = artifact.dual_coef().shape[1], artifact.header["n_labels"]
    n_indices = n_landmarks + n_landmarks % 2
    expected = 8 + 4 * (n_indices + (1 + artifact.n_features + n_landmarks) * n_labels)
    if n_landmarks > n_sv or reserved != 0 or len(content) != expected:
        raise ArtifactError(
            f"section presumption has {len(content)} bytes, but {n_landmarks} landmarks of {n_sv} support vectors "
            f"need {expected}"
        )
    landmarks = np.frombuffer(content, "<u4", n_indices, 8)
    if landmarks[n_landmarks:].any() or (landmarks[:n_landmarks] >= n_sv).any():
        raise ArtifactError(
            f"section presumption names support vector {landmarks.max(initial=0)}, but there are {n_sv}"
        )
    if not np.isfinite(np.frombuffer(content, "<f4", offset=8 + 4 * n_indices)).all():
        raise ArtifactError("section presumption holds NaN or infinity")


def _check_subspaces(artifact: Artifact) -> None:
    """Stages as they should be, and an expansion that is a whole artifact in the coordinates of the first."""
    content = artifact._sections.get("subspaces")
    if content is None:
        return
    header, expansion = artifact.header, artifact._sections.get("subspace_expansion")
    n_sv, n_labels = artifact.dual_coef().shape[1], header["n_labels"]
    n_coordinates = check_subspaces(content, artifact.n_features, n_labels, n_sv, expansion is not None)
    if expansion is None:
        return
    try:
        inner = Artifact(expansion)
    except ArtifactError as error:
        raise ArtifactError(f"section subspace_expansion: {error}") from None
    same = all(inner.header[name] == header[name] for name in ("gamma", "input_scale"))
    plain = inner.mode == "approximate" and inner.task == "regression" and inner.input_map is None
    simple = plain and inner.header["kernel"] == GAUSSIAN and inner.header["n_centers"] == 1 and not inner.center.any()
    if not (same and simple and inner.n_features == n_coordinates and inner.decision_numbers()["intercept"][0] == 0.0):
        raise ArtifactError(
            f"section subspace_expansion holds a {inner.task} of mode {inner.mode} in {inner.n_features} features, "
            f"expected an approximate regression about the origin in {n_coordinates}, of the same gamma"
        )


class RouterLists(NamedTuple):
    """Section router (models/FORMAT.md).

    Attributes
    ----------
    starts : ndarray of shape (n_groups + 1,), int64
        First panel of each group's list among the members' panels.
    members : ndarray of shape (ROUTER_WIDTH * n_panels,), uint32
        The center in each slot of these.
    points : ndarray of shape (n_group_panels + n_panels, ROUTER_WIDTH, 1 + n_features), float32
        Half of x'Dx and -Dx of the point in each slot, first of the groups, then of the members.
    """

    starts: npt.NDArray[np.int64]
    members: npt.NDArray[np.uint32]
    points: npt.NDArray[np.float32]


def _router_lists(content: bytes, n_features: int) -> RouterLists:
    """Of a section of the right size."""
    n_groups, n_panels = struct.unpack_from("<II", content)
    starts = np.frombuffer(content, "<u4", n_groups + 1, 8).astype(np.int64)
    members = np.frombuffer(content, "<u4", ROUTER_WIDTH * n_panels, 8 + 4 * len(starts))
    floats = np.frombuffer(content, "<f4", offset=aligned(4 * (2 + len(starts) + len(members))))
    return RouterLists(starts, members, floats.reshape(-1, 1 + n_features, ROUTER_WIDTH).transpose(0, 2, 1))


def _check_router(header: dict[str, Any], content: bytes | None) -> None:
    """Lists that are not empty, slots that name a center, finite points."""
    if content is None:
        return
    n_groups, n_panels = struct.unpack_from("<II", content) if len(content) >= 8 else (0, 0)
    n_numbers = 2 + n_groups + 1 + ROUTER_WIDTH * n_panels
    n_group_panels = -(-n_groups // ROUTER_WIDTH)
    floats = ROUTER_WIDTH * (header["n_features"] + 1) * (n_group_panels + n_panels)
    expected = aligned(4 * n_numbers) + 4 * floats
    if not 1 <= n_groups <= header["n_centers"] or n_group_panels > MAX_GROUP_PANELS or len(content) != expected:
        raise ArtifactError(
            f"section router has {len(content)} bytes, but {n_groups} groups and {n_panels} panels need {expected}"
        )
    starts, members, points = _router_lists(content, header["n_features"])
    lengths = np.diff(starts)
    if starts[0] != 0 or starts[-1] != n_panels or lengths.min() < 1 or lengths.max() > MAX_GROUP_PANELS:
        raise ArtifactError(f"the lists of section router do not cover its {n_panels} panels one after the other")
    if members.max() >= header["n_centers"]:
        raise ArtifactError(f"section router names center {members.max()}, but there are {header['n_centers']}")
    if any(content[4 * n_numbers : aligned(4 * n_numbers)]):
        raise ArtifactError("the padding inside section router is not zero")
    if not np.isfinite(points).all():
        raise ArtifactError("a point of section router is NaN or infinite")

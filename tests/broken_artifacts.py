"""Artifacts that break the MUSTs of models/FORMAT.md, each by the name it has there, and what the reader says."""

from __future__ import annotations

import itertools
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from dataclasses import field as field_of
from pathlib import Path
from typing import Any

import numpy as np
from artifact_changes import (
    CATEGORIES,
    CENTER,
    CENTER_KIND,
    CENTERS,
    CHECK_ROWS,
    CHECKSUM,
    CLASS_COUNTS,
    COSINES,
    DECISIONS,
    DEGREE,
    DIRECTION,
    DTYPES,
    DUAL_COEF,
    EXACT_CHECK_ROWS,
    EXPANSIONS,
    FEATURE_NAMES,
    FILE_BYTES,
    FIRST_INDEX,
    FIRST_RELEASE,
    FIRST_REMAINDER_DEGREE,
    GAMMA,
    HIGHER,
    INF,
    INPUT_MAP,
    INPUT_SCALE,
    KERNEL,
    LABEL_DTYPE,
    LABEL_KIND,
    LABELS,
    LINEAR,
    MAJORITY_CLASSES,
    MAJORITY_ONLY,
    MAX_SV_NORM,
    MAX_SV_NORM_ORIGIN,
    MEMBER_ARTIFACTS,
    MODE,
    MODES,
    N_CENTERS,
    N_DECISIONS,
    N_FEATURES,
    N_LABELS,
    N_RAW_FEATURES,
    N_SECTIONS,
    NAN,
    OUTPUTS,
    PLAN,
    POLYNOMIAL,
    PRESUMPTION,
    QUADRATIC,
    ROUTER,
    SUBSPACE_EXPANSION,
    SUBSPACES,
    SUPPORT_VECTORS,
    TASK,
    TOLERANCE,
    VARYING,
    VECTORIZERS,
    VERSION,
    Change,
    changed,
    classifier,
    content,
    cosines,
    cosines_of_classes,
    deep,
    entries,
    entry,
    field,
    is_read,
    many_centers,
    number,
    polynomial,
    regressor,
    resealed,
    section,
    sigmoid,
    texts,
)
from conftest import random_model
from scipy.sparse import csr_array

from approxsvm import Artifact, KernelModel
from approxsvm.artifact.input_map import pack_input_map
from approxsvm.artifact.outputs import pack_outputs
from approxsvm.compiler import compile as compile_model
from approxsvm.model.ensemble import Ensemble
from approxsvm.model.input_map import InputMap
from approxsvm.model.outputs import Outputs, ProcessDeviation, TemperatureCalibration
from approxsvm.model.schema import SECTION_IDS, names_of
from approxsvm.model.steps import Projection

SECTIONS = tuple(SECTION_IDS)
REPOSITORY = Path(__file__).parent.parent
# Sections that an artifact of each mode cannot do without, if it has one center and degree 2; labels apart.
EXPANDED = (CENTER, DECISIONS, EXPANSIONS, LINEAR, QUADRATIC, CHECK_ROWS)
NEEDED = {
    "approximate": EXPANDED,
    "certified": (*EXPANDED, DUAL_COEF, SUPPORT_VECTORS, EXACT_CHECK_ROWS),
    "exact": (CENTER, DECISIONS, DUAL_COEF, SUPPORT_VECTORS, EXACT_CHECK_ROWS),
}


def padding(data: bytearray) -> None:
    _, offset, size = entries(data)[CENTER]
    data[offset + size] = 1


def last_byte(data: bytearray) -> None:
    assert data[-1] == 0, "the last section must leave room for padding"
    data[-1] = 1


def swap_two_sections(data: bytearray) -> None:
    first, second = (entries(data)[i][0] for i in (CENTER, DECISIONS))
    data[first : first + 4], data[second : second + 4] = data[second : second + 4], data[first : first + 4]


def append_zeros(data: bytearray) -> None:
    data += bytes(64)


FINITE = "expected a finite number"
MAGIC = b"\x89ASVM\r\n\x1a"
AT_LEAST_0 = FINITE + " of at least 0"
# Position in a record of section expansions, name, what is expected, what is not.
EXPANSION_FIELDS: list[tuple[int, str, str, tuple[float, ...]]] = [
    (0, "constant", "expected -1 to 1", (NAN, INF, 1.5, -1.5)),
    (1, "output_scale", "expected a power of two from 2^-1000 to 2^1000", (0.0, -1.0, 3.0, NAN, INF)),
    *((k, "norms", AT_LEAST_0, (NAN, INF, -1.0)) for k in range(2, 11)),
    (11, "remainder", AT_LEAST_0, (NAN, INF, -1.0)),
    (12, "contraction", "expected a power of two from 2^-3 to 2^0", (0.0, -1.0, 0.75, 2.0, 0.0625, NAN, INF)),
    (13, "coefficient_error", AT_LEAST_0, (NAN, INF, -1.0)),
    (14, "max_sv_norm", "expected at least 0", (NAN, -1.0)),
    *(
        (15 + k, f"direction_{name}", AT_LEAST_0, (NAN, INF, -1.0))
        for k, name in enumerate(("scale", "trace", "error"))
    ),
]
MODULUS = "expected 0 or a modulus from 2^-60 to 2^60"
CHECKED = ((CHECK_ROWS, "check_rows"), (EXACT_CHECK_ROWS, "exact_check_rows"))
# The first section and the last, and their places in the table.
ENDS = ((CENTER, 0), (EXACT_CHECK_ROWS, 12))

# Name of the MUST, what breaks it, what the message says.
BROKEN: list[tuple[Any, ...]] = [
    *(
        ("magic", field(k, "B", MAGIC[k] ^ 0x20), "not an approxsvm artifact: ", f"{MAGIC[k] ^ 0x20:02x}")
        for k in range(8)
    ),
    ("magic", field(5, "B", 0x0A), "magic is 89 41 53 56 4d 0a 0a 1a, expected 89 41 53"),
    *(("magic", field(4, "B", ord(x)), "not an approxsvm artifact: ") for x in "QE"),
    *(("version", field(VERSION, "H", v), f"version is {v}, expected 1") for v in (0, 2, 2**16 - 1)),
    (
        "version",
        field(VERSION, "I", 2 | 0x1234 << 16),
        "version is 2, which approxsvm 18.52 and later read, expected 1",
    ),
    *(("first_release", field(FIRST_RELEASE, "H", v), f"first_release is {v}, expected 1") for v in (0, 2, 2**16 - 1)),
    *(("n_sections", field(N_SECTIONS, "I", n), f"n_sections is {n}, expected 0 to 30") for n in (31, 2**32 - 1)),
    *(("task", field(TASK, "I", n), f"task is {n}, expected 0 to 2") for n in (3, 2**32 - 1)),
    *(("mode", field(MODE, "I", n), f"mode is {n}, expected 0 to 3") for n in (4, 2**32 - 1)),
    *(("degree", field(DEGREE, "I", n), f"degree is {n}, expected 1 to 6") for n in (0, 7, 2**32 - 1)),
    *(
        ("n_centers", field(N_CENTERS, "I", n), f"n_centers is {n}, expected 1 to 1048576")
        for n in (0, 2**20 + 1, 2**32 - 1)
    ),
    *(("n_decisions", field(N_DECISIONS, "I", n), f"n_decisions is {n}, expected 1") for n in (0, 2, 2**32 - 1)),
    *(
        ("first_remainder_degree", field(FIRST_REMAINDER_DEGREE, "I", n), f"_degree is {n}, expected 3 to 9")
        for n in (0, 2, 10, 2**32 - 1)
    ),
    *(
        ("n_features", field(N_FEATURES, "Q", n), f"n_features is {n}, expected 1 to 1048576")
        for n in (0, 2**20 + 1, 2**32 + 3, 2**64 - 1)
    ),
    ("first_index", field(FIRST_INDEX, "I", 2), "first_index is 2, expected 0 to 1"),
    *(("n_labels", field(N_LABELS, "I", n), f"n_labels is {n}, expected at least 2") for n in (0, 1)),
    ("n_labels", field(N_LABELS, "I", 3), "n_decisions is 1, expected 3"),
    *(("n_labels", field(N_LABELS, "I", n), f"n_labels is {n}, expected 0 to 1024") for n in (1025, 2**32 - 1)),
    ("n_raw_features", field(N_RAW_FEATURES, "Q", 4), "n_raw_features is 4, expected 3"),
    *(
        ("n_raw_features", field(N_RAW_FEATURES, "Q", n), f"n_raw_features is {n}, expected 1 to 1048576")
        for n in (0, 2**20 + 1, 2**64 - 1)
    ),
    *(
        ("gamma", field(GAMMA, "d", x), f"gamma is {x:g}, expected a finite number of at least 0")
        for x in (-1, NAN, INF)
    ),
    *(
        ("gamma", field(GAMMA, "d", x), f"2 gamma / input_scale^2 is {y}, expected 1 to below 4")
        for x, y in ((0.4, "0.8"), (2.0, "4"), (1e300, "2e+300"))
    ),
    *(
        ("input_scale", field(INPUT_SCALE, "d", x), "input_scale is", "expected a power of two from 2^-100 to 2^100")
        for x in (0.0, -1.0, 1.5, NAN, INF, 2.0**101)
    ),
    *(
        ("input_scale", field(INPUT_SCALE, "d", x), f"input_scale^2 is {y}, expected 1 to below 4")
        for x, y in ((2.0, "0.3"), (0.5, "4.8"))
    ),
    *(("max_sv_norm", field(MAX_SV_NORM, "d", x), f"max_sv_norm is {x:g}, expected at least 0") for x in (-1, NAN)),
    *(
        ("max_sv_norm_origin", field(MAX_SV_NORM_ORIGIN, "d", x), f"max_sv_norm_origin is {x:g}, expected at least 0")
        for x in (-1, NAN)
    ),
    ("label_kind", field(LABEL_KIND, "I", 4), "label_kind is 4, expected 0 to 3"),
    ("label_kind", field(LABEL_KIND, "I", 0), "label_kind is 0, expected at least 1"),
    *(
        ("majority_only", field(MAJORITY_ONLY, "I", v), f"majority_only is {v}, expected 0")
        for v in (1, 2, 2**24, 2**32 - 1)
    ),
    ("kernel", field(KERNEL, "I", 99), f"kernel is 99, expected 0 to {len(names_of('kernel')) - 1}"),
    *(("tolerance_asked", field(140, "I", v), f"tolerance_asked is {v}, expected 0 to 1") for v in (2, 256, 2**32 - 1)),
    *(
        ("tolerance", field(TOLERANCE, "d", x), f"tolerance is {x:g}, expected more than 0")
        for x in (0.0, -1.0, NAN, -INF)
    ),
    ("center_kind", field(CENTER_KIND, "I", 2), "center_kind is 2, expected 0 to 1"),
    ("section_order", swap_two_sections, "identifier of table entry 1 is 1, expected 3 to 30"),
    ("section_order", entry(CENTER, 0, "I", 0), "identifier of table entry 0 is 0, expected 1 to 30"),
    ("section_order", entry(DECISIONS, 0, "I", 1), "identifier of table entry 1 is 1, expected 2 to 30"),
    ("section_order", entry(EXACT_CHECK_ROWS, 0, "I", 31), "identifier of table entry 12 is 31, expected 18 to 30"),
    *(
        ("section_reserved", entry(k, 4, "I", 1), f"reserved of table entry {p} is 1, expected 0")
        for k, p in ((1, 0), (5, 3), (18, 12))
    ),
    *(
        ("section_offset", entry(k, 8, "Q", n), f"offset of table entry {p} is {n}, expected ")
        for k, p in ENDS
        for n in (0, 64, 2**64 - 64)
    ),
    *(
        ("section_offset", entry(k, 16, "Q", n), f"size of table entry {p} is {n}, expected 0 to ")
        for k, p in ENDS
        for n in (2**63, 2**64 - 1)
    ),
    ("padding", padding, "padding byte", "is 1, expected 0"),
    ("padding", last_byte, "padding byte", "is 1, expected 0"),
    ("padding", append_zeros, "the file has", "bytes, expected"),
    *(
        ("modes", content({identifier: None}), f"section {SECTIONS[identifier - 1]} is missing from a classification")
        for identifier in NEEDED["certified"]
    ),
    *(
        (name, content({identifier: bytes(n)}), f"section {name} has {n} bytes, expected ")
        for identifier, name in (
            (k, SECTIONS[k - 1]) for k in (CENTER, DECISIONS, EXPANSIONS, LINEAR, QUADRATIC, DIRECTION)
        )
        for n in (0, 8, 28, 148)
    ),
    *(
        ("center", number(CENTER, 2, "f", x), f"number 2 of section center is {x}, expected a finite number")
        for x in (NAN, INF, -INF)
    ),
    *(
        (name, number(identifier, k, "f", x), f"number {k} of section {name} is {x:.1f}", f"expected -{most} to {most}")
        for identifier, name, k, most in ((LINEAR, "linear", 1, 1), (QUADRATIC, "quadratic", 5, 2))
        for x in (NAN, INF, most * (1 + 2.0**-23), -9.5)
    ),
    *(
        ("direction", number(DIRECTION, 3, "f", x), f"number 3 of section direction is {x:.1f}", "expected -2 to 2")
        for x in (NAN, -INF, -2.0000002)
    ),
    *(
        (
            "decisions",
            number(DECISIONS, 0, "d", x),
            f"intercept 0 of section decisions is {x}, expected a finite number",
        )
        for x in (NAN, INF, -INF)
    ),
    *(
        ("decisions", number(DECISIONS, k, "d", x), f"{name} 0 of section decisions is {x:g}", AT_LEAST_0)
        for k, name in ((1, "total"), (2, "sum_moduli"), (3, "value_error"))
        for x in (NAN, INF, -1.0)
    ),
    *(
        ("expansions", number(EXPANSIONS, k, "d", x), f"{name} 0 of section expansions is {x:g}, {expected}")
        for k, name, expected, wrong in EXPANSION_FIELDS
        for x in wrong
    ),
    ("plan", content({PLAN: b"\xff"}), "byte 0 of section plan is 255, expected UTF-8"),
    ("plan", content({PLAN: b"a\xed\xa0\x80"}), "byte 1 of section plan is 237, expected UTF-8"),
    *(
        ("dual_coef", content({DUAL_COEF: bytes(n)}), f"section dual_coef has {n} bytes, expected a multiple of 8")
        for n in (7, 49)
    ),
    *(
        (
            "dual_coef",
            content({DUAL_COEF: bytes(8 * n)}),
            f"n_values of section support_vectors is 18, expected {3 * n}",
        )
        for n in (0, 5, 7)
    ),
    *(
        ("dual_coef", number(DUAL_COEF, k, "d", x), f"number {k} of section dual_coef is {x}, expected a finite number")
        for k in (0, 5)
        for x in (NAN, INF, -INF)
    ),
    *(
        ("support_vectors", content({SUPPORT_VECTORS: bytes(n)}), f"section support_vectors has {n} bytes, expected")
        for n in (0, 23)
    ),
    ("support_vectors", content({SUPPORT_VECTORS: bytes(32)}), "n_values of section support_vectors is 0, expected 18"),
    ("labels", content({LABELS: None}), "section labels is missing from a classification artifact of mode certified"),
    *(("labels", content({LABELS: bytes(n)}), f"section labels has {n} bytes, expected 16") for n in (0, 8, 24)),
    ("labels", content({LABELS: bytes(16)}), "label 1 of section labels is 0, expected another than label 0"),
    *(
        (name, content({identifier: wrong}), f"section {name} ")
        for identifier, name in CHECKED
        for wrong in (None, b"", bytes(23), bytes(25), bytes(17 * 24))
    ),
    *(
        (name, number(identifier, k, "d", x), f"{part} {k // 3} of section {name} is {x:g}, {FINITE}")
        for identifier, name in CHECKED
        for k, part in ((0, "amplitude"), (1, "value"), (2, "tolerance"), (5, "tolerance"))
        for x in (NAN, INF, *(() if k == 1 else (-1.0,)))
    ),
    *(
        ("feature_names", content({FEATURE_NAMES: wrong}), f"of section feature_names is {n}, expected 0")
        for wrong, n in ((texts(b"a", b"b", b"c")[:-1], 1), (struct.pack("<3I", 2**32 - 1, 1, 3) + b"a", 2**32 - 1))
    ),
    *(
        ("feature_names", content({FEATURE_NAMES: wrong}), f"section feature_names has {len(wrong)} bytes, expected")
        for wrong in (b"", bytes(11), texts(b"a", b"b"), texts(b"a", b"b", b"c") + b"d")
    ),
    *(
        (
            "text_list",
            content({FEATURE_NAMES: texts(b"a", wrong, b"c")}),
            f"byte 13 of section feature_names is {wrong[0]}",
        )
        for wrong in (b"\xff", b"\xc3", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80")
    ),
]


# What only many centers have; the router has 20 of them in some groups.
ROUTED = many_centers()
N_GROUPS, N_PANELS = struct.unpack_from("<2I", section(ROUTED, ROUTER))
MEMBERS = 2 + N_GROUPS + 1
HEAD = 4 * (MEMBERS + 16 * N_PANELS)


def router_padding(data: bytearray) -> None:
    data[entries(data)[ROUTER][1] + HEAD] = 1


BROKEN_CENTERS: list[tuple[Any, ...]] = [
    *(("centers", content({CENTERS: x}), "section centers ") for x in (None, b"", bytes(80), bytes(244))),
    *(
        ("centers", number(CENTERS, k, "f", x), f"number {k} of section centers is {x}, {FINITE}")
        for k in (0, 59)
        for x in (NAN, INF)
    ),
    *(
        ("expansions", number(EXPANSIONS, 19 * 18 + k, "d", NAN), f"{name} 19 of section expansions is nan, {expected}")
        for k, name, expected, _ in EXPANSION_FIELDS
    ),
    *(("router_counts", content({ROUTER: x}), "section router ") for x in (None, b"", bytes(7))),
    *(
        ("router_counts", content({ROUTER: bytes(n)}), "n_groups of section router is 0, expected 1 to 20")
        for n in (8, 640)
    ),
    *(
        ("router_counts", number(ROUTER, 0, "I", n), f"n_groups of section router is {n}, expected 1 to 20")
        for n in (0, 21, 10**6, 2**32 - 1)
    ),
    *(
        (
            "router_counts",
            number(ROUTER, 1, "I", n),
            f"section router has {len(section(ROUTED, ROUTER))} bytes, expected",
        )
        for n in (0, N_PANELS + 1, 2**32 - 1)
    ),
    *(
        ("router_starts", number(ROUTER, 2, "I", n), f"start 0 of section router is {n}, expected 0")
        for n in (1, 2**32 - 1)
    ),
    *(
        ("router_starts", number(ROUTER, 3, "I", n), f"of section router is {said}, expected")
        for n, said in ((0, 0), (2**32 - 1, 2**32 - 1))
    ),
    *(
        ("router_starts", number(ROUTER, 2 + N_GROUPS, "I", n), f"of section router is {n}, expected {N_PANELS}")
        for n in (0, 2**31)
    ),
    *(
        (
            "router_members",
            number(ROUTER, MEMBERS + k, "I", n),
            f"member {k} of section router is {n}, expected 0 to 19",
        )
        for k in (0, 16 * N_PANELS - 1)
        for n in (20, 2**32 - 1)
    ),
    ("router_padding", router_padding, f"padding byte {HEAD} of section router is 1, expected 0"),
    *(
        (
            "router_panels",
            number(ROUTER, -(-HEAD // 64) * 16 + k, "f", x),
            f"number {k} of section router is {x}, {FINITE}",
        )
        for k in (0, 5, 64 * (1 + N_PANELS) - 1)
        for x in (NAN, INF, -INF)
    ),
]
BROKEN_HIGHER: list[tuple[Any, ...]] = [
    *(("higher", content({HIGHER: x}), "section higher ") for x in (None, b"", bytes(96), bytes(104))),
    *(
        ("higher", number(HIGHER, k, "f", x), f"number {k} of section higher is {x:.1f}", "expected -720 to 720")
        for k in (0, 24)
        for x in (NAN, INF, 720.5, -720.5)
    ),
]
LISTED = [
    *((classifier(), *broken) for broken in BROKEN),
    *((ROUTED, *broken) for broken in BROKEN_CENTERS),
    *((deep(), *broken) for broken in BROKEN_HIGHER),
]


Broken = Iterator[tuple[str, bytes, tuple[str, ...]]]


def broken_bytes(name: str, data: bytes, *said: str) -> tuple[str, bytes, tuple[str, ...]]:
    """The MUST that the bytes break, the bytes, and parts of the message."""
    return name, data, said


def broken(name: str, change: Change, artifact: Artifact, *said: str) -> tuple[str, bytes, tuple[str, ...]]:
    return name, changed(change, artifact), said


def listed() -> Broken:
    for artifact, name, change, *said in LISTED:
        yield broken(name, change, artifact, *said)


def broken_modes(mode: str) -> Broken:
    artifact = classifier(mode)
    for identifier in NEEDED[mode]:
        yield broken("modes", content({identifier: None}), artifact, f"section {SECTIONS[identifier - 1]} ")
    yield broken("modes", content({LABELS: None}), artifact, "section labels is missing from")
    for identifier in (FEATURE_NAMES, DIRECTION, PLAN):
        data = changed(content({identifier: None}), artifact)
        assert Artifact(data).mode == mode
        Artifact(data)
    for other in (classifier("certified"), many_centers(), deep()):
        for identifier in set(entries(other.data)) - set(entries(artifact.data)) - {PLAN}:
            for extra in (section(other, identifier), b""):
                message = f"section {SECTIONS[identifier - 1]} "
                yield broken("modes", content({identifier: extra}), artifact, message)
    for k, name in enumerate(MODES):
        if name != mode:
            yield broken("modes", field(MODE, "I", k), artifact)


def broken_modes_of_polynomial_kernels(mode: str) -> Broken:
    artifact = polynomial(mode)
    assert Artifact(artifact.data).mode == mode
    for identifier in set(entries(artifact.data)) - {FEATURE_NAMES, PLAN}:
        yield broken(
            "modes", content({identifier: None}), artifact, f"section {SECTIONS[identifier - 1]} is missing from"
        )
    for identifier in (CENTER, *range(EXPANSIONS, LABELS), CHECK_ROWS, CLASS_COUNTS, MAJORITY_CLASSES, VARYING):
        for extra in (b"", bytes(12), bytes(48)):
            yield broken("modes", content({identifier: extra}), artifact, f"section {SECTIONS[identifier - 1]} ")
    for k, name in enumerate(MODES):
        if name != mode:
            yield broken("modes", field(MODE, "I", k), artifact)


def broken_polynomial(mode: str, degree: int) -> Broken:
    artifact = polynomial(mode, degree)
    stored = section(artifact, POLYNOMIAL)
    for wrong in (b"", stored[:8], stored[:-8], stored + bytes(8), bytes(7)):
        yield broken(
            "polynomial",
            content({POLYNOMIAL: wrong}),
            artifact,
            f"section polynomial has {len(wrong)} bytes, expected {len(stored)}",
        )
    for position in range(len(stored) // 8):
        for x in (NAN, INF, -INF):
            yield broken(
                "polynomial",
                number(POLYNOMIAL, position, "d", x),
                artifact,
                f"number {position} of section polynomial is {x}, {FINITE}",
            )
        if position == 1 or 3 <= position <= 5:
            yield broken(
                "polynomial",
                number(POLYNOMIAL, position, "d", -1.0),
                artifact,
                "_error",
                "of section polynomial is -1, expected at least 0",
            )
        else:
            assert Artifact(changed(number(POLYNOMIAL, position, "d", -1.0), artifact)).mode == mode
    yield broken(
        "polynomial",
        content({POLYNOMIAL: stored}),
        classifier(mode),
        "section polynomial is found in a classification artifact of mode",
    )


def broken_header_of_polynomial_kernels(mode: str) -> Broken:
    artifact = polynomial(mode)
    most = 6 if mode == "exact" else 2
    for degree in (0, most + 1, 7, 2**32 - 1):
        yield broken("degree", field(DEGREE, "I", degree), artifact, f"degree is {degree}, expected 1 to {most}")
    for name, offset in (("n_centers", N_CENTERS), ("first_remainder_degree", 112), ("center_kind", CENTER_KIND)):
        yield broken("degree", field(offset, "I", 1), artifact, f"{name} is 1, expected 0")
    for scale in (0.5, 2.0, 0.0, NAN):
        yield broken(
            "degree",
            field(INPUT_SCALE, "d", scale),
            artifact,
            "input_scale is",
            "expected 1" if scale in (0.5, 2.0) else "",
        )
    for gamma in (NAN, INF, -INF):
        yield broken("degree", field(GAMMA, "d", gamma), artifact, "gamma is")
    for gamma in (-1e300, -0.5, 0.0, 5.0):
        assert is_read(changed(field(GAMMA, "d", gamma), artifact))
    assert is_read(changed(field(DEGREE, "I", 1), artifact)) == (mode == "exact")
    yield broken("degree", field(KERNEL, "I", 0), artifact)
    yield broken("degree", field(KERNEL, "I", 1), classifier(mode))


def broken_cosines() -> Broken:
    artifact = cosines()
    stored = section(artifact, COSINES)
    n_numbers = len(stored) // 8
    assert n_numbers == 4 * 5
    for wrong in (b"", stored[:8], stored[:-8], stored + bytes(8), bytes(7), bytes(39)):
        yield broken(
            "cosines", content({COSINES: wrong}), artifact, f"section cosines has {len(wrong)} bytes, expected "
        )
    for position in range(n_numbers):
        for x in (NAN, INF, -INF):
            yield broken(
                "cosines",
                number(COSINES, position, "d", x),
                artifact,
                f"number {position} of section cosines is {x}, {FINITE}",
            )
        if 4 <= position < 8:
            yield broken(
                "cosines",
                number(COSINES, position, "d", -8.5),
                artifact,
                f"phase {position - 4} of section cosines is -8.5, expected -8 to 8",
            )
        else:
            assert Artifact(changed(number(COSINES, position, "d", -8.5), artifact)).n_terms == 4
    for other in (classifier(), classifier("exact"), polynomial("exact")):
        yield broken(
            "cosines",
            content({COSINES: stored}),
            other,
            "section cosines is found in a classification artifact of mode",
        )


def broken_functions_of_each_class() -> Broken:
    """As many functions as decision_shape says, of kinds that may have them."""
    artifact = cosines_of_classes()
    stored = artifact.section("outputs")
    assert Artifact(changed(content({OUTPUTS: stored}), artifact)).outputs.of_each_class
    for n in (0, 1, 3, 5, 6, 2**32 - 1):
        yield broken("n_decisions", field(N_DECISIONS, "I", n), artifact, f"n_decisions is {n}, expected 4")
    yield broken("n_decisions", content({OUTPUTS: None}), artifact, "n_decisions is 4, expected 6")
    for shape, rule, kind, n_expected in ((2, 0, 0, "label_rule"), (2, 1, 1, "probability"), (3, 1, 0, "shape")):
        wrong = struct.pack("<6I", shape, rule, kind, 0, 0, 0)
        yield broken("outputs", content({OUTPUTS: wrong}), artifact, f"{n_expected} of section outputs is ")
    yield broken("majority_only", content({OUTPUTS: stored}), several_classes(), "majority_only is 1, expected 0")
    for other in (classifier(), polynomial("exact"), cosines()):
        yield broken(
            "outputs",
            content({OUTPUTS: stored}),
            other,
            "decision_shape of section outputs is 2, expected 0 to 1",
        )


def broken_modes_and_header_of_cosines() -> Broken:
    artifact = cosines()
    assert Artifact(artifact.data).kernel_name == "4 cosines"
    for identifier in set(entries(artifact.data)) - {FEATURE_NAMES, PLAN}:
        yield broken(
            "modes", content({identifier: None}), artifact, f"section {SECTIONS[identifier - 1]} is missing from"
        )
    absent = (
        CENTER,
        *range(EXPANSIONS, LABELS),
        CHECK_ROWS,
        CLASS_COUNTS,
        MAJORITY_CLASSES,
        DUAL_COEF,
        SUPPORT_VECTORS,
    )
    for identifier in (*absent, VARYING, POLYNOMIAL, PRESUMPTION, SUBSPACES):
        for extra in (b"", bytes(16), bytes(40)):
            yield broken("modes", content({identifier: extra}), artifact, f"section {SECTIONS[identifier - 1]} ")
    for mode in (0, 1):
        yield broken("modes", field(MODE, "I", mode), artifact, f"mode is {mode}, expected 2")
    for name, offset in (("degree", DEGREE), ("n_centers", N_CENTERS), ("center_kind", CENTER_KIND)):
        yield broken("modes", field(offset, "I", 1), artifact, f"{name} is 1, expected 0")
    for scale in (0.5, 2.0, 0.0, NAN):
        yield broken(
            "modes",
            field(INPUT_SCALE, "d", scale),
            artifact,
            "input_scale is",
            "expected 1" if scale in (0.5, 2.0) else "",
        )
    for gamma in (NAN, INF, -0.5, 0.5):
        yield broken("modes", field(GAMMA, "d", gamma), artifact, "gamma is")
    for kernel in (0, 1):
        yield broken("modes", field(KERNEL, "I", kernel), artifact)
    n_kernels = len(names_of("kernel"))
    yield broken("modes", field(KERNEL, "I", n_kernels), artifact, f"kernel is {n_kernels}, expected 0 to")
    for kernel in (2, 3):
        for mode in MODES:
            yield broken("modes", field(KERNEL, "I", kernel), classifier(mode))


def broken_sigmoid() -> Broken:
    """As a polynomial kernel of mode exact, without a degree."""
    artifact = sigmoid()
    assert Artifact(artifact.data).kernel_name == "sigmoid, coef0 0.5"
    for wrong in (b"", bytes(8), bytes(24)):
        yield broken("polynomial", content({POLYNOMIAL: wrong}), artifact, "section polynomial has ")
    for name, offset in (("degree", DEGREE), ("n_centers", N_CENTERS), ("center_kind", CENTER_KIND)):
        yield broken("modes", field(offset, "I", 1), artifact, f"{name} is 1, expected 0")
    for mode in (0, 1):
        yield broken("modes", field(MODE, "I", mode), artifact, f"mode is {mode}, expected 2")
    for gamma in (NAN, INF):
        yield broken("gamma", field(GAMMA, "d", gamma), artifact, "gamma is")
    for identifier in (POLYNOMIAL, DUAL_COEF, SUPPORT_VECTORS):
        yield broken("modes", content({identifier: None}), artifact, f"section {SECTIONS[identifier - 1]} ")
    for identifier in (CENTER, EXPANSIONS, COSINES, PRESUMPTION, SUBSPACES):
        yield broken("modes", content({identifier: bytes(16)}), artifact, f"section {SECTIONS[identifier - 1]} ")


def broken_modes_of_many_centers_and_higher_degrees(mode: str) -> Broken:
    for artifact, identifiers in ((many_centers(mode), (CENTERS, ROUTER)), (deep(mode), (HIGHER,))):
        for identifier in identifiers:
            yield broken("modes", content({identifier: None}), artifact, f"section {SECTIONS[identifier - 1]} ")
    for identifier in (DIRECTION, PLAN):
        data = changed(content({identifier: None}), many_centers(mode))
        assert Artifact(data).n_centers > 1
        Artifact(data)


def broken_degree(mode: str) -> Broken:
    for degree in {0, 7, 2**32 - 1} - {0 if mode == "exact" else 2}:
        yield broken("degree", field(DEGREE, "I", degree), classifier(mode), f"degree is {degree}")
    for degree in (1, 3, 6):  # the sections do not suit it
        message = f"degree is {degree}, expected 0" if mode == "exact" else ""
        yield broken("degree", field(DEGREE, "I", degree), classifier(mode), message)


def broken_n_centers(mode: str) -> Broken:
    for n_centers in (2, 2**20):
        yield broken("n_centers", field(N_CENTERS, "I", n_centers), classifier(mode))
    if mode != "exact":
        artifact = many_centers(mode)
        for n_centers in (1, artifact.n_centers - 1, artifact.n_centers + 1):
            yield broken("n_centers", field(N_CENTERS, "I", n_centers), artifact, "section ")


def broken_file_bytes(wrong: int) -> Broken:
    data = bytearray(classifier().data)
    struct.pack_into("<QI", data, FILE_BYTES, len(data) + wrong, 0)
    struct.pack_into("<I", data, CHECKSUM, zlib.crc32(data))
    why = "the file is truncated" if wrong > 0 else "something follows the artifact in the file"
    yield broken_bytes("file_bytes", bytes(data), f"file_bytes is {len(data) + wrong}, expected {len(data)}: {why}")
    yield broken_bytes("file_bytes", classifier().data + b"\0", "file_bytes is")


def checksum_of(data: bytes | bytearray) -> int:
    return zlib.crc32(data[CHECKSUM + 4 :], zlib.crc32(bytes(4), zlib.crc32(data[:CHECKSUM])))


def broken_checksum() -> Broken:
    data = classifier().data
    for i in range(0, len(data), 7):
        wrong = bytearray(data)
        wrong[i] ^= 0x10
        yield broken_bytes("checksum", bytes(wrong))
        if i >= CHECKSUM:
            yield broken_bytes("checksum", bytes(wrong), "checksum is ", f", expected {checksum_of(wrong):08x}")


def broken_label_dtype(labels: list[Any], names: list[bytes]) -> Broken:
    artifact = classifier(labels=np.array(labels))
    for name in names:
        data = changed(field(LABEL_DTYPE, "16s", name), artifact)
        yield broken_bytes(
            "label_dtype", data, "label_dtype is '", "', expected a type that holds label", "of section labels"
        )


def broken_labels() -> Broken:
    same = struct.pack("<2q", 7, 7)
    yield broken(
        "labels", content({LABELS: same}), classifier(), "label 1 of section labels is 7, expected another than label 0"
    )
    for pair in ((NAN, 1.0), (1.0, INF), (0.5, 0.5), (0.0, -0.0)):
        floats = classifier(labels=np.array([0.5, 1.5]))
        yield broken("labels", content({LABELS: struct.pack("<2d", *pair)}), floats, "of section labels is", "expected")
    strings = classifier(labels=np.array(["yes", "no"]))
    yield broken("labels", content({LABELS: texts(b"a", b"a")}), strings, "expected another than label 0")
    for wrong in (texts(b"a"), texts(b"a", b"b") + b"c", texts(b"a", b"\xff"), b"", bytes(7)):
        yield broken("labels", content({LABELS: wrong}), strings, "section labels ")


def broken_labels_of_others() -> Broken:
    for task in (1, 2):
        yield broken("labels", field(TASK, "I", task), classifier(), "n_labels is 2, expected 0")
    yield broken("labels", field(TASK, "I", 0), regressor(), "n_labels is 0, expected at least 2")
    yield broken("labels", field(N_LABELS, "I", 2), regressor(), "n_labels is 2, expected 0")
    yield broken("labels", field(LABEL_KIND, "I", 1), regressor(), "label_kind is 1, expected 0")
    for wrong in (struct.pack("<2q", 1, 2), b""):  # there is there, though it be empty
        yield broken(
            "labels", content({LABELS: wrong}), regressor(), "section labels is found in a regression artifact"
        )


def several_classes() -> Artifact:
    """Of three classes, with expansions about four centers."""
    return Artifact((REPOSITORY / "models" / "iris_classes.asvm").read_bytes())


def broken_class_counts() -> Broken:
    artifact = several_classes()
    counts = artifact.numbers("class_counts")
    assert counts.sum() == artifact.dual_coef().shape[1]
    for wrong in (counts[:2], counts + np.uint32(1), np.array([0, 0, 2**32 - 1], np.uint32)):
        yield broken(
            "class_counts", content({CLASS_COUNTS: wrong.astype("<u4").tobytes()}), artifact, "section class_counts "
        )
    yield broken("class_counts", content({CLASS_COUNTS: None}), artifact, "section class_counts is missing from")


def broken_varying() -> Broken:
    artifact = Artifact((REPOSITORY / "models" / "iris_slices.asvm").read_bytes())
    assert artifact.numbers("varying").tolist() == [0, 1, 2, 3]
    for wrong in ([], [1, 0, 2, 3], [1, 1, 2, 3], [1, 2, 3, 7], [0, 1, 2, 2**32 - 1], [0, 1, 2], range(7), range(8)):
        data = np.array(wrong, "<u4").tobytes()
        yield broken("varying", content({VARYING: data}), artifact)
    yield broken(
        "varying", content({VARYING: b"\0" * 15}), artifact, "section varying has 15 bytes, expected a multiple of 4"
    )
    for mode in MODES:
        yield broken(
            "varying", content({VARYING: struct.pack("<I", 0)}), classifier(mode), "section varying is found in"
        )


def broken_majority_classes() -> Broken:
    artifact = several_classes()
    for wrong in (b"", bytes(4 * artifact.n_centers + 4), struct.pack("<4I", 0, 1, 2, 3)):
        yield broken("majority_classes", content({MAJORITY_CLASSES: wrong}), artifact, "section majority_classes ")
    yield broken(
        "majority_classes", content({MAJORITY_CLASSES: None}), artifact, "section majority_classes is missing from"
    )


def broken_majority_only() -> Broken:
    artifact = several_classes()
    assert artifact.header["majority_only"] == 1
    for wrong in (2, 256, 2**32 - 1):
        yield broken(
            "majority_only", field(MAJORITY_ONLY, "I", wrong), artifact, f"majority_only is {wrong}, expected 0 to 1"
        )
    yield broken("majority_only", field(MAJORITY_ONLY, "I", 0), artifact, "section expansions has", "bytes, expected")
    yield broken("majority_only", field(TOLERANCE, "d", 1.0), artifact, "majority_only is 1, expected 0")
    yield broken("majority_only", field(MODE, "I", 0), artifact, "majority_only is 1, expected 0")
    yield broken("majority_only", field(MAJORITY_ONLY, "I", 1), presuming(), "majority_only is 1, expected 0")


def presuming() -> Artifact:
    return Artifact((REPOSITORY / "models" / "shells_exact.asvm").read_bytes())


def golden(name: str) -> Artifact:
    return Artifact((REPOSITORY / "models" / f"{name}.asvm").read_bytes())


def broken_subspaces() -> Broken:
    """Of ten functions in two stages: five classes, each against the others."""
    artifact = golden("digits_classes")
    whole = section(artifact, SUBSPACES)
    n_sv, d, n_forms = artifact.dual_coef().shape[1], artifact.n_features, 4
    first, last = struct.unpack_from("<2I", whole, 8)
    skew = 16
    counts = skew + 8
    n_own, *n_others = struct.unpack_from(f"<{1 + n_forms}I", whole, counts)
    known = counts + 4 * (2 + n_forms)
    basis = known + 2 * n_forms * 6 * 8
    vectors = basis + 4 * last * d
    coef = vectors + 4 * (n_own + sum(n_others)) * last
    assert coef % 8 == basis % 8 == 0
    lists = np.frombuffer(whole, "<f4", n_forms * n_own + sum(n_others), coef)
    assert lists[0] != 0.0
    two = next(k for k in range(1, n_own) if lists[k] != 0.0)

    def with_number(at: int, code: str, value: float) -> bytes:
        broken = bytearray(whole)
        struct.pack_into("<" + code, broken, at, value)
        return changed(content({SUBSPACES: bytes(broken)}), artifact)

    assert is_read(with_number(skew, "d", 2.0**-10))
    assert is_read(with_number(coef, "f", 2.0**-60 * np.sign(lists[0])))
    for at, code, value, *said in (
        *((0, "I", n, f"n_stages of section subspaces is {n}, expected 1 to 8") for n in (0, 9, 2**32 - 1)),
        (4, "I", 1, "reserved of section subspaces is 1, expected 0"),
        *((8, "I", n, f"of section subspaces is {said}, expected") for n, said in ((0, 0), (last, last))),
        *(
            (12, "I", n, f"coordinates of stage 1 of section subspaces is {n}, expected {first + 1} to {d}")
            for n in (first, d + 1, 2**32 - 1)
        ),
        (12, "I", last + 1, "section subspaces"),
        *(
            (skew, "d", x, f"skew of group 0 of section subspaces is {x:g}, expected 0 to 0.0009765625")
            for x in (-1.0, 0.5, NAN)
        ),
        *(
            (counts, "I", n, f"of list 0 of section subspaces is {n}, expected 0 to {n_sv}")
            for n in (n_sv + 1, 2**32 - 1)
        ),
        (
            counts + 4,
            "I",
            n_sv + 1,
            f"of list 1 of section subspaces is {n_sv + 1 + sum(n_others[1:])}, expected 0 to {n_sv}",
        ),
        (counts, "I", n_own + 1, "section subspaces"),
        (
            counts + 4 * (1 + n_forms),
            "I",
            1,
            f"padding byte {counts + 4 * (1 + n_forms)} of section subspaces is 1, expected 0",
        ),
        *(
            (known + 8 * k, "d", x, f"{name} of section subspaces is {x:g}, {AT_LEAST_0}")
            for k, name in ((0, "total 0"), (1, "value_error 0"), (5, "norms 0"), (47, "norms 7"))
            for x in (-1.0, NAN, INF)
        ),
        (basis, "f", NAN, f"basis number 0 of section subspaces is nan, {FINITE}"),
        (vectors - 4, "f", INF, f"basis number {last * d - 1} of section subspaces is inf, {FINITE}"),
        (vectors, "f", -INF, f"coordinate 0 of section subspaces is -inf, {FINITE}"),
        *((coef, "f", x, "coefficient 0 of section subspaces is", MODULUS) for x in (NAN, 2.0**61, 2.0**-61)),
        (coef + 4 * two, "f", -lists[0], f"coefficient {two} of section subspaces is", "expected the sign of"),
    ):
        yield broken_bytes("subspaces", with_number(at, code, value), *said)
    for wrong in (b"", whole[:7], whole[:-8], whole[:-4], whole + bytes(8), whole[: len(whole) // 2]):
        yield broken("subspaces", content({SUBSPACES: wrong}), artifact, "section subspaces")
    for other in (classifier(), classifier("approximate"), polynomial("exact", 3)):
        yield broken(
            "subspaces",
            content({SUBSPACES: whole}),
            other,
            "section subspaces is found in a classification artifact of mode",
        )


def broken_subspace_expansion() -> Broken:
    artifact = golden("digits_subspace")
    whole = section(artifact, SUBSPACE_EXPANSION)

    def with_inner(inner: bytes) -> bytes:
        return changed(content({SUBSPACE_EXPANSION: inner}), artifact)

    inner = Artifact(whole)
    off_origin = np.zeros(inner.n_features, "<f4")
    off_origin[-1] = 1e-30
    message = "section subspace_expansion"
    for wrong in (
        b"",
        whole[:191],
        whole[:-64],
        whole + bytes(64),
        bytes([whole[0] ^ 1]) + whole[1:],
        whole[:300] + bytes([whole[300] ^ 1]) + whole[301:],
        changed(field(GAMMA, "d", inner.header["gamma"] * (1 + 2.0**-52)), inner),
        changed(number(CENTER, inner.n_features - 1, "f", 1e-30), inner),
        changed(number(DECISIONS, 0, "d", 1e-300), inner),
        changed(field(N_DECISIONS, "I", 2), inner),
        classifier("approximate").data,
        regressor("certified").data,
        regressor("approximate").data,
        polynomial("approximate").data,
        artifact.data,
    ):
        yield broken_bytes("subspace_expansion", with_inner(wrong), message)
    yield broken("subspace_expansion", content({SUBSPACES: None}), artifact, "section subspace_expansion is found in")
    classes = golden("digits_classes")
    yield broken(
        "subspace_expansion", content({SUBSPACE_EXPANSION: whole}), classes, "section subspace_expansion is found in"
    )
    yield broken(
        "subspace_expansion", content({SUBSPACE_EXPANSION: None}), artifact, "section subspaces has", "bytes, expected"
    )


def broken_presumption() -> Broken:
    artifact = presuming()
    content_of = section(artifact, PRESUMPTION)
    n_sv, n_labels = artifact.dual_coef().shape[1], len(artifact.labels)

    def packed(landmarks: list[int], padding: int = 0, n_claimed: int | None = None, weight: float = 0.5) -> bytes:
        n = len(landmarks) if n_claimed is None else n_claimed
        indices = [*landmarks, *([padding] if len(landmarks) % 2 else [])]
        weights = np.full((1 + artifact.n_features + len(landmarks)) * n_labels, weight, "<f4")
        return struct.pack(f"<II{len(indices)}I", n, 0, *indices) + weights.tobytes()

    def with_content(presumption: bytes) -> bytes:
        return changed(content({PRESUMPTION: presumption}), artifact)

    for good in ([], [0], [n_sv - 1, 0], [3, 3, 3], list(range(n_sv))):
        assert is_read(with_content(packed(good)))
    for wrong, message in (
        *((content_of[:n], f"section presumption has {n} bytes, expected at least 8") for n in (0, 7)),
        (content_of[:-4], f"section presumption has {len(content_of) - 4} bytes, expected {len(content_of)}"),
        (content_of + bytes(4), f"section presumption has {len(content_of) + 4} bytes, expected {len(content_of)}"),
        (packed([0, 1], n_claimed=3), "section presumption has"),
        (
            packed([0, 1], n_claimed=2**32 - 1),
            f"n_landmarks of section presumption is {2**32 - 1}, expected 0 to {n_sv}",
        ),
        (packed([0] * (n_sv + 1)), f"n_landmarks of section presumption is {n_sv + 1}, expected 0 to {n_sv}"),
        (packed([n_sv]), f"landmark 0 of section presumption is {n_sv}, expected 0 to {n_sv - 1}"),
        (packed([0, 2**32 - 1]), f"landmark 1 of section presumption is {2**32 - 1}, expected 0 to {n_sv - 1}"),
        (packed([0], padding=1), "padding byte 12 of section presumption is 1, expected 0"),
        *((packed([0], weight=x), f"weight 0 of section presumption is {x}, {FINITE}") for x in (NAN, INF)),
        (content_of[:4] + b"\x01" + content_of[5:], "reserved of section presumption is 1, expected 0"),
    ):
        yield broken_bytes("presumption", with_content(wrong), message)
    for other in (classifier(), classifier("exact"), polynomial("exact", 3)):  # of two labels
        yield broken("presumption", content({PRESUMPTION: packed([])}), other, "section presumption is found in")


def broken_outputs() -> Broken:
    """What the section may hold is in tests/predict/test_outputs.py and the native tests; this is for both readers."""
    whole = pack_outputs(Outputs(TemperatureCalibration(2.0), "probability"))
    data = changed(content({OUTPUTS: whole}), several_classes())
    assert Artifact(data).outputs.label_rule == "probability"
    assert is_read(data)
    for wrong in (b"", b'{"kind":"Outputs"}', whole[:-1], whole + bytes(8), bytes(23), b"\xff" * 24):
        yield broken("outputs", content({OUTPUTS: wrong}), several_classes(), "section outputs")
    yield broken("outputs", content({OUTPUTS: whole}), regressor(), "probability of section outputs is 5, expected 0")
    yield broken(
        "outputs",
        content({OUTPUTS: struct.pack("<6I", 2, 0, 0, 0, 0, 0)}),
        regressor(),
        "decision_shape of section outputs is 2, expected 0 to 1",
    )


# Packed support vectors.
DENSE, CSR, RELATIVE = range(3)
FLOAT64, FLOAT32, CODES8, CODES16 = range(4)
CODE_TYPES = ("<f8", "<f4", "<u1", "<u2")
HEADER = struct.Struct("<IIIIQ")


def model_of(vectors: Any) -> KernelModel:
    n_sv = vectors.shape[0]
    return random_model(0, n_sv=n_sv, task="regression", support_vectors=vectors, dual_coef=np.ones((1, n_sv)))


def artifact_with(data: bytes, n_sv: int, n_features: int) -> bytes:
    """An exact artifact with a section of that content."""
    coefficients = {DUAL_COEF: bytes(8 * n_sv), EXACT_CHECK_ROWS: struct.pack("<3d", 0.0, 0.0, 1e300)}
    return changed(content({SUPPORT_VECTORS: data, **coefficients}), artifact_of_width(n_features))


def artifact_of_width(n_features: int, cache: dict[int, Any] = {}) -> Any:  # noqa: B006
    if n_features not in cache:
        vectors = csr_array(np.eye(2, n_features))
        cache[n_features] = compile_model(model_of(vectors), mode="exact").artifact
    return cache[n_features]


@dataclass(frozen=True)
class Packing:
    """The section, field by field: four vectors of five features."""

    storage: int
    kind: int
    index_bytes: int = 0
    n_values: int = 20
    dictionary: list[float] = field_of(default_factory=list)
    reference: list[float] = field_of(default_factory=list)
    n_dictionary: int = -1
    counts: list[int] = field_of(default_factory=list)
    columns: list[int] = field_of(default_factory=list)
    values: list[float] = field_of(default_factory=list)

    def encoded(self) -> bytes:
        header = HEADER.pack(self.storage, self.kind, self.index_bytes, self.n_entries(), self.n_values)
        return header + b"".join(part + bytes(-len(part) % 8) for part in self.parts())

    def n_entries(self) -> int:
        return len(self.dictionary) if self.n_dictionary < 0 else self.n_dictionary

    def parts(self) -> list[bytes]:
        parts = [np.array(self.dictionary, "<f8").tobytes(), np.array(self.reference, "<f8").tobytes()]
        if self.storage != DENSE:
            parts += [np.array(self.counts, np.uint8).tobytes(), np.array(self.columns, np.uint8).tobytes()]
        if self.n_entries() != 1:
            parts.append(np.array(self.values).astype(CODE_TYPES[self.kind]).tobytes())
        return parts


def valid(storage: int, kind: int) -> Packing:
    dictionary = [0.5, -1.25, 3.0] if kind >= CODES8 else []
    if storage == DENSE:
        values = [float(k % 3) for k in range(20)]
        return Packing(DENSE, kind, values=values, dictionary=dictionary)
    columns = [0, 4, 1, 2, 3, 0]
    values = [0.0, 2.0, 1.0, 1.0, 2.0, 0.0]
    reference = [0.5, 7.0, 0.0, -1e300, 5e-324] if storage == RELATIVE else []
    return Packing(storage, kind, 1, 6, dictionary, reference, counts=[2, 0, 3, 1], columns=columns, values=values)


PACKINGS = [(storage, kind) for storage in (DENSE, CSR, RELATIVE) for kind in range(4)]


def broken_packing(storage: int, kind: int) -> Broken:
    right = valid(storage, kind)
    coded = "dictionary" if kind >= CODES8 else "values"
    numbers, n_values = getattr(right, coded), right.n_values
    data = right.encoded()
    words = {0: {0, 1, 2, 3, 2**32 - 1} - {storage}, 4: {4, 255, 2**16, 2**32 - 1}, 8: {3, 8, 2**31}}
    wrong = [
        *(data[:offset] + struct.pack("<I", x) + data[offset + 4 :] for offset in words for x in words[offset]),
        *(data[:n] for n in range(len(data))),
        *(data + bytes(n) for n in (1, 7, 8, 16, 64)),
    ]
    changes: list[dict[str, Any]] = [
        *({"index_bytes": n} for n in {0, 1, 2, 4} - {right.index_bytes}),
        *({"n_dictionary": n} for n in {0, 1, 2, 4, 65536, 65537, 2**31, 2**32 - 1} - {len(right.dictionary)}),
        *({coded: put(numbers, k, x)} for x in (NAN, INF, -INF) for k in (0, -1)),
    ]
    # Such that a product with any width wraps around to something small; one dictionary entry: no values at all.
    for n in (0, n_values - 1, n_values + 1, *(n_values + 2**k for k in (61, 62, 63)), 2**64 - 1, 2**64 - 8, 2**40):
        changes += [{"n_values": n}, *([{"n_values": n, "dictionary": [0.5]}] if kind >= CODES8 else [])]
    if kind >= CODES8:
        changes += [{"values": put(right.values, k, x)} for x in (3, 4, 255) for k in (0, 7 % len(right.values), -1)]
        changes.append({"dictionary": [1.0] * 65537})
    if storage == RELATIVE:
        changes += [{"reference": put(right.reference, k, x)} for x in (NAN, INF, -INF) for k in (0, -1)]
        changes += [{"reference": right.reference[1:]}, {"reference": [*right.reference, 0.0]}]
    if storage != DENSE:
        counts = (
            [2, 0, 3, 0],
            [2, 0, 3, 2],
            [6, 0, 0, 0],
            [0, 0, 0, 6],
            [255, 255, 255, 1],
            [0, 0, 0, 0],
            [2, 0, 3, 1] + [0] * 8,
        )
        columns = (
            [4, 0, 1, 2, 3, 0],
            [0, 0, 1, 2, 3, 0],
            [0, 4, 1, 1, 3, 0],
            [0, 4, 2, 1, 3, 0],
            [0, 5, 1, 2, 3, 0],
            [0, 4, 1, 2, 3, 255],
            [0, 4, 1, 2, 3, 0] + [0] * 8,
        )
        changes += [*({"counts": x} for x in counts), *({"columns": x} for x in columns)]
        assert is_read(artifact_with(replace(right, counts=[0, 2, 3, 1]).encoded(), 4, 5))
    wrong += [replace(right, **change).encoded() for change in changes]
    start = HEADER.size
    for part in right.parts():  # padding behind each
        end = start + len(part)
        start = end + -len(part) % 8
        wrong += [data[:k] + bytes([x]) + data[k + 1 :] for k in range(end, start) for x in (1, 128)]
    assert start == len(data)
    for section_of_it in wrong:
        yield broken_bytes("support_vectors", artifact_with(section_of_it, 4, 5), "section support_vectors")
    for n_sv in (3, 5) if storage == DENSE else (3, 9):  # counts are padded, and an empty vector has a count of zero
        yield broken_bytes("support_vectors", artifact_with(data, n_sv, 5), "section support_vectors")


def put(numbers: list[float], k: int, x: float) -> list[float]:
    changed_numbers = list(numbers)
    changed_numbers[k] = x
    return changed_numbers


def broken_claims() -> Broken:
    """Products of degree, features and centers such that 32 or 64 bits wrap around."""
    for degree, n_centers, n in itertools.product(range(1, 7), (1, 2**10, 2**20), (2**10, 2**11, 2**16, 2**20)):

        def change(data: bytearray, values: tuple[int, int, int] = (degree, n_centers, n)) -> None:
            struct.pack_into("<IQ", data, DEGREE, values[0], values[2])
            struct.pack_into("<I", data, N_CENTERS, values[1])
            struct.pack_into("<Q", data, N_RAW_FEATURES, values[2])

        yield broken("n_features", change, classifier(), "section ")


def scaled_classes() -> Artifact:
    """The golden model of several classes behind a map with a stage of either kind."""
    plain = several_classes()
    n = plain.n_features
    whole = InputMap.selection(n, np.arange(n - 1)).then_affine(subtract=0.5, low=-3.0, high=4.0)
    whole = whole.then_stage(Projection.about(0.25, np.ones((n - 1, n))))
    return Artifact(changed(content({INPUT_MAP: pack_input_map(whole)}), plain))


def map_changed(at: int, code: str, *values: float) -> bytes:
    section = bytearray(scaled_classes()._sections["input_map"])
    struct.pack_into("<" + code * len(values), section, at, *values)
    return bytes(section)


def wrong_maps() -> list[bytes]:
    n = several_classes().n_features
    columns = 16 + -(-4 * (n - 1) // 8) * 8
    limits, projection = columns + 16 + 8 * (n - 1), columns + 16 + 3 * 8 * (n - 1)
    whole = map_changed(0, "I", n - 1)
    return [
        b"",
        b"PK\x03\x04",
        bytes(100),
        *(whole[:k] for k in range(0, len(whole), 7)),
        whole + bytes(4),
        whole + struct.pack("<2I", n, 0),  # checked columns
        whole + struct.pack("<2I", 0, 2),
        whole + struct.pack("<4I", 1, 0, 1, 1),
        map_changed(0, "I", n - 2),
        map_changed(0, "I", 2**32 - 1),
        map_changed(4, "I", 1),
        map_changed(4, "I", 3),
        map_changed(4, "I", 2**32 - 1),
        map_changed(8, "Q", n + 1),
        map_changed(8, "Q", 2**63),
        map_changed(12, "I", 2),  # by_column
        map_changed(16, "I", n),  # a column
        map_changed(columns - 4, "I", 1),  # padding
        map_changed(columns, "I", 2),  # kind
        map_changed(columns + 4, "I", 1 << 7),  # parts
        map_changed(columns + 4, "I", 0b110011),
        map_changed(columns + 8, "Q", n),  # an affine stage keeps its width
        map_changed(columns + 16, "d", np.nan),
        map_changed(limits, "d", np.nan),
        map_changed(limits, "d", 5.0),  # above the upper limit
        map_changed(projection + 4, "I", 1),
        map_changed(projection + 8, "Q", n - 1),
        map_changed(projection + 8, "Q", 2**40),
        map_changed(projection + 16, "d", np.inf),
        map_changed(len(whole) - 8, "d", -1.0),  # an error of the bias
        map_changed(len(whole) - 8, "d", np.nan),
    ]


def broken_input_map() -> Broken:
    for wrong in wrong_maps():
        yield broken("input_map", content({INPUT_MAP: wrong}), several_classes(), "section input_map")


def with_texts(column: int = 1, n_texts: int = 3, null: int = 0, reserved: int = 0, **changes: Any) -> bytes:
    """Section categories of a column of "a", "b", "\xe9" and one of "c", with something else in it."""
    texts = changes.get("texts", "abéc".encode())
    ends = changes.get("ends", (1, 2, 4, 5))
    head = struct.pack("<2I", changes.get("n_columns", 2), changes.get("n_all", 4))
    columns = struct.pack("<8I", column, n_texts, null, reserved, 3, 1, 1, 0)
    return head + columns + struct.pack(f"<{len(ends)}I", *ends) + texts


def broken_categories() -> Broken:
    artifact = several_classes()
    whole = with_texts()
    found = Artifact(changed(content({CATEGORIES: whole}), artifact)).texts
    assert {column: known.texts for column, known in found.items()} == {1: ("a", "b", "é"), 3: ("c",)}
    assert (np.isnan(found[1].null), found[3].null) == (True, -2.0)
    cases = [
        (b"", "section categories has 0 bytes, expected at least 8"),
        (whole[:-1], "end of text 3 of section categories is 5, expected 4"),
        (whole + b"x", "section categories has 62 bytes, expected 61"),
        *((whole[:k], "section categories has ") for k in range(0, 56, 5)),
        (with_texts(n_columns=0), "n_columns of section categories is 0, expected 1 to"),
        (with_texts(n_columns=2**32 - 1), "n_columns of section categories is 4294967295, expected 1 to"),
        (with_texts(n_all=2**32 - 1), "section categories has 61 bytes, expected at least"),
        (with_texts(n_texts=2), "n_texts of section categories is 3, expected 4"),
        (with_texts(n_texts=2**32 - 1), "n_texts of section categories is 4294967296, expected 4"),
        (with_texts(column=3), "column 1 of section categories is 3, expected 4 to"),
        (with_texts(column=2**31), "column 0 of section categories is 2147483648, expected 0 to"),
        (with_texts(null=2), "null 0 of section categories is 2, expected 0 to 1"),
        (with_texts(reserved=1), "reserved 0 of section categories is 1, expected 0"),
        (with_texts(ends=(2, 1, 4, 5)), "end of text 1 of section categories is 1, expected 2 to 5"),
        (with_texts(ends=(1, 2, 3, 5)), "of section categories is 195, expected UTF-8"),
        (with_texts(texts="ba\xe9c".encode()), "text 1 of section categories is 1, expected above text 0"),
        (with_texts(texts="aa\xe9c".encode()), "text 1 of section categories is 1, expected above text 0"),
    ]
    for wrong, said in cases:
        yield broken("categories", content({CATEGORIES: wrong}), artifact, said)


def broken_vectorizers() -> Broken:
    said = "of section vectorizers is 255, expected UTF-8"
    for artifact in (several_classes(), golden("iris_ensemble")):
        yield broken("vectorizers", content({VECTORIZERS: b"{\xff}"}), artifact, said)


def broken_dtypes() -> Broken:
    said = "of section dtypes is 255, expected UTF-8"
    for artifact in (several_classes(), golden("iris_ensemble")):
        yield broken("dtypes", content({DTYPES: b"{\xff}"}), artifact, said)


def with_member(data: bytes, offset: int, value: bytes) -> bytes:
    """The ensemble with its first member changed at an offset, both checksums right."""
    _, start, _ = entries(data)[MEMBER_ARTIFACTS]
    size = struct.unpack_from("<Q", data, start + FILE_BYTES)[0]
    member = bytearray(data[start : start + size])
    member[offset : offset + len(value)] = value
    return resealed(data[:start] + resealed(member) + data[start + size :])


def broken_members() -> Broken:
    artifact = golden("iris_ensemble")
    data, labels = artifact.data, len(artifact.labels)
    assert with_member(data, 0, b"") == data
    for change, said in (
        (field(GAMMA, "d", 0.5), "gamma is 0.5, expected 0"),
        (field(INPUT_SCALE, "d", 2.0), "input_scale is 2, expected 1"),
        (field(TOLERANCE, "d", 0.5), "tolerance is 0.5, expected at least inf"),
        (field(KERNEL, "I", 1), "kernel is 1, expected 0"),
        (field(N_DECISIONS, "I", 2), "n_decisions is 2, expected 0"),
        (field(N_FEATURES, "Q", 3), "n_features is 3, expected 4"),
        (field(N_RAW_FEATURES, "Q", 3), "member 0: n_raw_features is 4, expected 3"),
        (field(TASK, "I", 1), f"n_labels is {labels}, expected 0"),
        (
            content({MEMBER_ARTIFACTS: None}),
            "section members is missing from a classification artifact of mode ensemble",
        ),
        (content({MEMBER_ARTIFACTS: b""}), "number of members of section members is 0, expected 1 to 1024"),
        (content({MEMBER_ARTIFACTS: bytes(191)}), "section members has 191 bytes, expected at least 192"),
        (content({MEMBER_ARTIFACTS: bytes(192)}), "file_bytes 0 of section members is 0, expected 192"),
        (content({CENTER: bytes(16)}), "section center is found in a classification artifact of mode ensemble"),
        (content({PRESUMPTION: b""}), "section presumption is found in a classification artifact of mode ensemble"),
    ):
        yield broken("members", change, artifact, said)
    yield from broken_combinations(artifact)
    size = artifact.members[0].n_bytes
    for offset, value, said in (
        (0, b"\0", "member 0: not an approxsvm artifact: magic is 00"),
        (VERSION, struct.pack("<H", 5), "member 0: version is 5, expected 1"),
        (FILE_BYTES, struct.pack("<Q", 1 << 40), f"file_bytes 0 of section members is {1 << 40}, expected 192 to "),
        (
            FILE_BYTES,
            struct.pack("<Q", size - 1),
            f"file_bytes 0 of section members is {size - 1}, expected a multiple of",
        ),
        (FILE_BYTES, struct.pack("<Q", 192), "member 0: checksum is "),
        (MODE, struct.pack("<I", 3), "member 0: mode is 3, expected 0 to 2"),
        (GAMMA, struct.pack("<d", NAN), "member 0: gamma is nan, expected a finite number of at least 0"),
        (LABEL_KIND, struct.pack("<I", 1), "member 0: section labels has"),
    ):
        yield broken_bytes("members", with_member(data, offset, value), said)
    inner = artifact.members[0]
    other = bytearray(section(inner, LABELS))
    other[-1] ^= 1
    _, offset, _ = entries(inner.data)[LABELS]
    said = f"member 0: label {labels - 1} of section labels is text {labels - 1}, expected that of the ensemble"
    yield broken_bytes("members", with_member(data, offset, bytes(other)), said)
    said = "member 0: probability of section outputs is 0, expected at least 1"
    plain = changed(content({OUTPUTS: struct.pack("<6I", 0, 0, 0, 0, 0, 0)}), inner)
    yield broken("members", content({MEMBER_ARTIFACTS: plain}), artifact, said)
    said = "member 0: probability of section outputs is 8, expected 1 to 5"
    alone = changed(content({OUTPUTS: struct.pack("<6I", 0, 0, 8, 0, 0, 0)}), inner)
    yield broken("members", content({MEMBER_ARTIFACTS: alone}), artifact, said)


def broken_targets() -> Broken:
    """Labels side by side whose members have others, and a sum of two labels whose members have no probabilities."""
    members = tuple(random_model(k, n_sv=4, n_features=2, labels=np.array([k, k + 1])) for k in range(2))
    source = Ensemble(members, outputs=Outputs(label_rule="targets"), classes=np.arange(3))
    artifact = compile_model(source, mode="exact").artifact
    function = compile_model(random_model(0, n_sv=4, n_features=2, task="regression"), mode="exact").artifact

    def of_two(outputs: bytes, n_decisions: int) -> Change:
        def change(data: bytearray) -> None:
            field(N_LABELS, "I", 2)(data)
            field(N_DECISIONS, "I", n_decisions)(data)
            content({LABELS: struct.pack("<2q", 0, 1), OUTPUTS: outputs})(data)

        return change

    summed = struct.pack("<6I", 0, 3, 0, 0, 0, 0) + struct.pack("<5d", -1.0, 2.0, 0.5, 0.0, 1.0)
    for change, said in (
        (of_two(section(artifact, OUTPUTS), 0), "member 1: label 1 of section labels is 2, expected one of the ensem"),
        (field(N_DECISIONS, "I", 2), "n_decisions is 2, expected 0"),
        (content({MEMBER_ARTIFACTS: function.data}), "member 0: n_labels is 3, expected 2"),
        (of_two(summed, 1), "member 0: probability of section outputs is 0, expected at least 1"),
    ):
        yield broken("n_decisions" if said.startswith("n_dec") else "members", change, artifact, said)


def broken_combinations(artifact: Artifact) -> Broken:
    """Outputs of an ensemble of three classes."""
    n = len(artifact.members)

    def outputs(shape: int, rule: int, kind: int, *numbers: float) -> bytes:
        return struct.pack("<6I", shape, rule, kind, 0, 0, 0) + struct.pack(f"<{len(numbers)}d", *numbers)

    ones = (1.0,) * n
    for wrong, said in (
        (outputs(0, 2, 6, *ones), "section outputs has"),
        (outputs(0, 2, 6, *ones, 0.0, 0.0), "section outputs has"),
        (outputs(0, 2, 6, -1.0, *ones[1:], 0.0), "weight of member 0 of section outputs is -1, expected at least 0"),
        (outputs(0, 2, 6, *ones[1:], NAN, 0.0), f"weight of member {n - 1} of section outputs is nan"),
        (outputs(0, 2, 6, *(0.0 * one for one in ones), 0.0), "sum of the weights of section outputs is 0"),
        (outputs(0, 2, 6, *ones, 0.5), "addend of section outputs is 0.5, expected 0"),
        (outputs(0, 0, 0, *ones, 0.5), "addend of section outputs is 0.5, expected -1 to 0"),
        (outputs(0, 1, 6, *ones, 0.0), "label_rule of section outputs is 1, expected at least 2"),
        (outputs(0, 2, 0, *ones, 0.0), "label_rule of section outputs is 2, expected 0"),
        (outputs(1, 2, 6, *ones, 0.0), "decision_shape of section outputs is 1, expected 0"),
        (outputs(0, 2, 5, *ones, 0.0, 1.0), "probability of section outputs is 5, expected 0"),
        (outputs(0, 4, 6, *ones, 0.0, 0.5, 0.0), "label_rule of section outputs is 4, expected 0 to 2"),
        (outputs(2, 1, 0), "member 0: task is 0, expected 1"),
        (outputs(2, 5, 0), "label_rule of section outputs is 5, expected 0 to 1"),
        (outputs(0, 5, 6), "label_rule of section outputs is 5, expected 0 to 2"),
        (outputs(0, 5, 5), "probability of section outputs is 5, expected 0"),
        (outputs(0, 5, 0, *ones, 0.0), "section outputs has"),
        (outputs(0, 3, 0, *ones, 0.0, 0.0, 0.0), "label_rule of section outputs is 3, expected 0"),
    ):
        yield broken("outputs", content({OUTPUTS: wrong}), artifact, said)
    for n_columns, numbers, said in (
        (0, [], "number of columns of section outputs is 0, expected 1"),
        (2**61, [1.0] * 9, "number of columns of section outputs is 2305843009213693952, expected 1 to"),
        (2, [1.0] * 8, "section outputs has"),
        (2, [1.0] * 10, "section outputs has"),
        (2, [*[1.0] * 8, NAN], "weight of member 8 of section outputs is nan"),
        (2, [1.0] * 9, f"number of columns of section outputs is 2, expected {3 * n}"),
        (3 * n, [1.0] * (9 * n + 3), "n_decisions is 0, expected 3"),
    ):
        wrong = struct.pack("<6IQ", 3, 1, 0, 0, 0, 0, n_columns) + struct.pack(f"<{len(numbers)}d", *numbers)
        yield broken(
            "n_decisions" if said.startswith("n_dec") else "outputs", content({OUTPUTS: wrong}), artifact, said
        )
    of_processes = outputs(0, 2, 10, *ones, 0.0)
    yield broken("members", content({OUTPUTS: of_processes}), artifact, "member 0: task is 0, expected 1")
    for wrong, said in (
        (outputs(4, 1, 0), "decision_shape of section outputs is 4, expected 0 to 3"),
        (outputs(0, 4, 10, *ones, 0.0, 0.5, 0.0), "label_rule of section outputs is 4, expected 0 to 2"),
        (outputs(0, 0, 10, *ones, 0.0), "label_rule of section outputs is 0, expected at least 2"),
        (outputs(0, 2, 10, *ones, -0.5), "addend of section outputs is -0.5, expected 0"),
        (outputs(0, 2, 9, *ones, 0.0), "probability of section outputs is 9, expected 0"),
        (outputs(0, 2, 11, *ones, 0.0), "probability of section outputs is 11, expected 0 to 10"),
    ):
        yield broken("outputs", content({OUTPUTS: wrong}), artifact, said)


def broken_processes() -> Broken:
    """A regression with its variance, whose members are told apart by their places."""
    mean = random_model(5, task="regression")
    variance = replace(mean, dual_coef=np.ones((2, mean.n_sv)), intercept=np.zeros(2), value_error=np.zeros(2))
    process = Ensemble((mean, variance), outputs=Outputs(ProcessDeviation(), weights=np.array([2.0, 1.0])))
    artifact = compile_model(process).artifact
    header, first, second = artifact.section("outputs")[:24], *(member.data for member in artifact.members)
    assert is_read(artifact.data)
    for members, said in (
        (second + first, "member 0: n_decisions is 2, expected 1"),
        (first, "addend of section outputs is 1, expected 0"),
    ):
        yield broken("members", content({MEMBER_ARTIFACTS: bytes(members)}), artifact, said)
    four = content({MEMBER_ARTIFACTS: bytes(first + second) * 2, OUTPUTS: header + struct.pack("<5d", 1, 1, 1, 1, 0)})
    yield broken("members", four, artifact, "number of members of section members is 4, expected 2")
    for wrong, said in (
        ((-1.0, 1.0, 0.0), "weight of member 0 of section outputs is -1, expected at least 0"),
        ((1.0, 1.0, 0.5), "addend of section outputs is 0.5, expected 0"),
    ):
        yield broken("outputs", content({OUTPUTS: header + struct.pack("<3d", *wrong)}), artifact, said)


LABEL_DTYPES: list[tuple[list[Any], list[bytes]]] = [
    (
        [1, -1],
        [
            b"",
            b"<f8",
            b"<U4",
            b"|O",
            b"<u8",
            b"|b1",
            b"V8",
            b"|S5",
            b"a5",
            b"i8,i8",
            b"(2,)i8",
            b"M8[s]",
            b"x",
            b"\xff",
        ],
    ),
    ([1, 300], [b"|i1", b"|u1", b"<b1", b"<i3"]),
    ([0.5, 1e10], [b"", b"<i8", b"<f2", b"<U4", b"|O", b"<c16"]),
    ([0.1, 1e300], [b"<f4", b"<f2", b"<f1"]),
    (
        ["yes", "no"],
        [b"", b"<i8", b"<U2", b"|S3", b"V12", b"<U", b"<U-3", b"<U65537", b"<U536870911", b"(99999999,)U1"],
    ),
    (["yes", "no"], [b"<u8"]),
    (["7", "+7"], [b"<u8"]),
    (["7", "07"], [b"<u8"]),
    (["7", "18446744073709551616"], [b"<u8", b"<i8"]),
    (["7", "-1"], [b"<u8"]),
]
EXPANDED_MODES = ("approximate", "certified")
# All of them, each with what it is called with.
SOURCES: list[tuple[Callable[..., Broken], tuple[Any, ...]]] = [
    (listed, ()),
    *(
        (source, (mode,))
        for mode in MODES
        for source in (
            broken_modes,
            broken_modes_of_polynomial_kernels,
            broken_header_of_polynomial_kernels,
            broken_degree,
            broken_n_centers,
        )
    ),
    *((broken_polynomial, (mode, degree)) for mode in MODES for degree in (1, 2)),
    *((broken_modes_of_many_centers_and_higher_degrees, (mode,)) for mode in EXPANDED_MODES),
    *((broken_file_bytes, (wrong,)) for wrong in (-64, -1, 1, 64)),
    *((broken_label_dtype, case) for case in LABEL_DTYPES),
    *((broken_packing, case) for case in PACKINGS),
    *(
        (source, ())
        for source in (
            broken_claims,
            broken_cosines,
            broken_functions_of_each_class,
            broken_sigmoid,
            broken_modes_and_header_of_cosines,
            broken_checksum,
            broken_labels,
            broken_labels_of_others,
            broken_class_counts,
            broken_varying,
            broken_majority_classes,
            broken_majority_only,
            broken_subspaces,
            broken_subspace_expansion,
            broken_presumption,
            broken_outputs,
            broken_processes,
            broken_input_map,
            broken_categories,
            broken_vectorizers,
            broken_dtypes,
            broken_members,
            broken_targets,
        )
    ),
]


def all_broken() -> Broken:
    for source, arguments in SOURCES:
        yield from source(*arguments)

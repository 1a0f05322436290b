"""The .asvm format from Python: every MUST of models/FORMAT.md, by the name it has there, in both readers."""

from __future__ import annotations

import re
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from artifact_changes import (
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
    DUAL_COEF,
    EXACT_CHECK_ROWS,
    EXPANSIONS,
    FEATURE_NAMES,
    FILE_BYTES,
    FIRST_INDEX,
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
    VERSION,
    Change,
    changed,
    classifier,
    content,
    cosines,
    deep,
    entries,
    entry,
    field,
    is_read_natively,
    many_centers,
    number,
    polynomial,
    refused,
    regressor,
    sealed,
    section,
    texts,
)

from approxsvm import Artifact, ArtifactError, _native
from approxsvm.artifact.input_map import pack_input_map, unpack_input_map
from approxsvm.artifact.layout import SECTIONS
from approxsvm.artifact.outputs import pack_outputs
from approxsvm.errors import UnsupportedModelError
from approxsvm.model.input_map import InputMap, Projection
from approxsvm.model.outputs import Outputs, TemperatureCalibration

REPOSITORY = Path(__file__).parent.parent
# Sections that an artifact of each mode cannot do without, if it has one center and degree 2; labels apart.
EXPANDED = (CENTER, DECISIONS, EXPANSIONS, LINEAR, QUADRATIC, CHECK_ROWS)
NEEDED = {
    "approximate": EXPANDED,
    "certified": (*EXPANDED, DUAL_COEF, SUPPORT_VECTORS, EXACT_CHECK_ROWS),
    "exact": (CENTER, DECISIONS, DUAL_COEF, SUPPORT_VECTORS, EXACT_CHECK_ROWS),
}
# Positions in a record of section expansions.
CONSTANT, OUTPUT_SCALE, NORMS, CONTRACTION, MAX_NORM, RECORD = 0, 1, 2, 12, 14, 18


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


# The first section and the last, and their places in the table.
ENDS = ((CENTER, 0), (EXACT_CHECK_ROWS, 12))

# Name of the MUST, what breaks it, a part of the message.
BROKEN: list[tuple[str, Change, str]] = [
    ("magic", field(0, "B", 0x88), "not an approxsvm artifact"),
    ("magic", field(5, "B", 0x0A), "not an approxsvm artifact"),
    *(("version", field(VERSION, "I", v), f"version {v}") for v in (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 2**32 - 1)),
    *(("n_sections", field(N_SECTIONS, "I", n), f"n_sections is {n}") for n in (28, 2**32 - 1)),
    *(("task", field(TASK, "I", n), f"task is {n}") for n in (3, 2**32 - 1)),
    *(("mode", field(MODE, "I", n), f"mode is {n}") for n in (4, 2**32 - 1)),
    *(("degree", field(DEGREE, "I", n), f"degree is {n}") for n in (0, 7, 2**32 - 1)),
    *(("n_centers", field(N_CENTERS, "I", n), f"n_centers is {n}") for n in (0, 2**20 + 1, 2**32 - 1)),
    *(("n_decisions", field(N_DECISIONS, "I", n), f"n_decisions is {n}") for n in (0, 2, 2**32 - 1)),
    *(
        ("first_remainder_degree", field(FIRST_REMAINDER_DEGREE, "I", n), f"first_remainder_degree is {n}")
        for n in (0, 2, 10, 2**32 - 1)
    ),
    *(("n_features", field(N_FEATURES, "Q", n), f"n_features is {n}") for n in (0, 2**20 + 1, 2**32 + 3, 2**64 - 1)),
    ("first_index", field(FIRST_INDEX, "I", 2), "first_index is 2"),
    *(("n_labels", field(N_LABELS, "I", n), f"needs 2 labels or more, found {n}") for n in (0, 1)),
    ("n_labels", field(N_LABELS, "I", 3), "3 labels need 3"),
    *(("n_labels", field(N_LABELS, "I", n), f"n_labels is {n}") for n in (1025, 2**32 - 1)),
    *(
        ("n_raw_features", field(N_RAW_FEATURES, "Q", n), f"n_raw_features is {n}")
        for n in (0, 4, 2**20 + 1, 2**64 - 1)
    ),
    *(("gamma", field(GAMMA, "d", x), "gamma is") for x in (-1.0, NAN, INF)),
    *(("gamma", field(GAMMA, "d", x), r"2 gamma / input_scale\^2 is") for x in (0.4, 2.0, 1e300)),
    *(("input_scale", field(INPUT_SCALE, "d", x), "input_scale is") for x in (0.0, -1.0, 1.5, NAN, INF, 2.0**101)),
    *(("input_scale", field(INPUT_SCALE, "d", x), r"input_scale\^2 is") for x in (2.0, 0.5)),
    *(("max_sv_norm", field(MAX_SV_NORM, "d", x), "max_sv_norm is") for x in (-1.0, NAN)),
    *(("max_sv_norm_origin", field(MAX_SV_NORM_ORIGIN, "d", x), "max_sv_norm_origin is") for x in (-1.0, NAN)),
    ("label_kind", field(LABEL_KIND, "I", 4), "label_kind is 4"),
    ("label_kind", field(LABEL_KIND, "I", 0), "kind 0"),
    *(("majority_only", field(188, "I", v), f"majority_only is {v}") for v in (1, 2, 2**24, 2**32 - 1)),
    ("kernel", field(KERNEL, "I", 7), "kernel is 7"),
    *(("tolerance_asked", field(140, "I", v), f"tolerance_asked is {v}") for v in (2, 256, 2**32 - 1)),
    *(("tolerance", field(TOLERANCE, "d", x), "tolerance is") for x in (0.0, -1.0, NAN, -INF)),
    ("center_kind", field(CENTER_KIND, "I", 2), "center_kind is 2"),
    ("section_order", swap_two_sections, "section 0 has identifier 2|section 1 has identifier 1"),
    ("section_order", entry(CENTER, 0, "I", 0), "section 0 has identifier 0"),
    ("section_order", entry(DECISIONS, 0, "I", 1), "section 1 has identifier 1"),
    ("section_order", entry(EXACT_CHECK_ROWS, 0, "I", 28), "section 12 has identifier 28"),
    *(("section_reserved", entry(k, 4, "I", 1), f"section {p}") for k, p in ((1, 0), (5, 3), (18, 12))),
    *(("section_offset", entry(k, 8, "Q", n), f"section {p} takes") for k, p in ENDS for n in (0, 64, 2**64 - 64)),
    *(("section_offset", entry(k, 16, "Q", n), f"section {p} takes") for k, p in ENDS for n in (2**63, 2**64 - 1)),
    ("padding", padding, "padding before section 1"),
    ("padding", last_byte, "follow the last section"),
    ("padding", append_zeros, "follow the last section"),
    *(
        ("modes", content({identifier: None}), f"section {name} ")
        for identifier, name in ((k, SECTIONS[k - 1]) for k in NEEDED["certified"])
    ),
    *(
        (name, content({identifier: wrong}), f"section {name} has")
        for identifier, name in (
            (k, SECTIONS[k - 1]) for k in (CENTER, DECISIONS, EXPANSIONS, LINEAR, QUADRATIC, DIRECTION)
        )
        for wrong in (b"", bytes(8), bytes(28), bytes(148))
    ),
    *(("center", number(CENTER, 2, "f", x), "number 2 of section center") for x in (NAN, INF, -INF)),
    *(("linear", number(LINEAR, 1, "f", x), "number 1 of section linear") for x in (NAN, INF, 1.0000001, -2.0)),
    *(
        ("quadratic", number(QUADRATIC, 5, "f", x), "number 5 of section quadratic")
        for x in (NAN, INF, 2.0000002, -9.0)
    ),
    *(("direction", number(DIRECTION, 3, "f", x), "number 3 of section direction") for x in (NAN, -INF, -2.0000002)),
    *(("decisions", number(DECISIONS, 0, "d", x), "intercept of section decisions") for x in (NAN, INF, -INF)),
    *(
        ("decisions", number(DECISIONS, k, "d", x), f"{name} in section decisions")
        for k, name in ((1, "total"), (2, "sum_moduli"), (3, "value_error"))
        for x in (NAN, INF, -1.0, -5e-324)
    ),
    *(
        ("expansions", number(EXPANSIONS, CONSTANT, "d", x), "a constant of section expansions")
        for x in (NAN, INF, 1.0000000000000002, -1.5)
    ),
    *(
        ("expansions", number(EXPANSIONS, OUTPUT_SCALE, "d", x), "an output_scale of section expansions")
        for x in (0.0, -1.0, 3.0, NAN, INF, 2.0**1001)
    ),
    *(
        ("expansions", number(EXPANSIONS, CONTRACTION, "d", x), "a contraction of section expansions")
        for x in (0.0, -1.0, 0.75, 2.0, NAN, INF)
    ),
    *(
        ("expansions", number(EXPANSIONS, k, "d", x), "in section expansions is NaN, negative or infinite")
        for k in range(NORMS, RECORD)
        if k != CONTRACTION
        for x in (NAN, -1.0, -5e-324, *(() if k == MAX_NORM else (INF,)))
    ),
    ("plan", content({PLAN: b"\xff"}), "section plan is not UTF-8"),
    ("plan", content({PLAN: b"a\xed\xa0\x80"}), "section plan is not UTF-8"),
    *(("dual_coef", content({DUAL_COEF: x}), "section dual_coef has") for x in (bytes(7), bytes(49))),
    *(("dual_coef", content({DUAL_COEF: bytes(8 * n)}), "section support_vectors") for n in (0, 5, 7)),
    *(("dual_coef", number(DUAL_COEF, k, "d", x), "dual_coef holds") for k in (0, 5) for x in (NAN, INF, -INF)),
    *(
        ("support_vectors", content({SUPPORT_VECTORS: x}), "section support_vectors")
        for x in (b"", bytes(23), bytes(32))
    ),
    *(("labels", content({LABELS: wrong}), "labels") for wrong in (None, b"", bytes(8), bytes(16), bytes(24))),
    *(
        (name, change, f"section {name} (has|holds)")
        for identifier, name in ((CHECK_ROWS, "check_rows"), (EXACT_CHECK_ROWS, "exact_check_rows"))
        for change in (
            *(content({identifier: x}) for x in (None, b"", bytes(23), bytes(25), bytes(17 * 24))),
            *(number(identifier, k, "d", x) for k in (0, 1, 2, 5) for x in (NAN, INF)),
            *(number(identifier, k, "d", -1.0) for k in (0, 2, 3)),
        )
    ),
    *(
        ("feature_names", content({FEATURE_NAMES: wrong}), "feature_names")
        for wrong in (b"", bytes(11), texts(b"a", b"b"), texts(b"a", b"b", b"c") + b"d", texts(b"a", b"b", b"c")[:-1])
    ),
    *(
        ("text_list", content({FEATURE_NAMES: texts(b"a", wrong, b"c")}), "feature_names is not UTF-8")
        for wrong in (b"\xff", b"\xc3", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80")
    ),
    ("text_list", content({FEATURE_NAMES: struct.pack("<3I", 2**32 - 1, 2**32 - 1, 3) + b"a"}), "feature_names"),
]


# What only many centers have; the router has 20 of them in some groups.
ROUTED = many_centers()
N_GROUPS, N_PANELS = struct.unpack_from("<2I", section(ROUTED, ROUTER))
MEMBERS = 2 + N_GROUPS + 1
HEAD = 4 * (MEMBERS + 16 * N_PANELS)


def router_padding(data: bytearray) -> None:
    data[entries(data)[ROUTER][1] + HEAD] = 1


BROKEN_CENTERS: list[tuple[str, Change, str]] = [
    *(("centers", content({CENTERS: x}), "section centers") for x in (None, b"", bytes(80), bytes(244))),
    *(("centers", number(CENTERS, k, "f", x), f"number {k} of section") for k in (0, 59) for x in (NAN, INF)),
    *(
        ("expansions", number(EXPANSIONS, 19 * RECORD + k, "d", NAN), "of section expansions|in section expansions")
        for k in range(RECORD)
    ),
    *(("router_counts", content({ROUTER: x}), "section router") for x in (None, b"", bytes(7), bytes(8), bytes(640))),
    *(("router_counts", number(ROUTER, 0, "I", n), "section router has") for n in (0, 21, 10**6, 2**32 - 1)),
    *(("router_counts", number(ROUTER, 1, "I", n), "section router has") for n in (0, N_PANELS + 1, 2**32 - 1)),
    *(("router_starts", number(ROUTER, 2, "I", n), "the lists of section router") for n in (1, 2**32 - 1)),
    *(("router_starts", number(ROUTER, 3, "I", n), "the lists of section router") for n in (0, N_PANELS, 2**32 - 1)),
    *(("router_starts", number(ROUTER, 2 + N_GROUPS, "I", n), "the lists of section router") for n in (0, 2**31)),
    *(
        ("router_members", number(ROUTER, MEMBERS + k, "I", n), f"section router names center {n}")
        for k in (0, 16 * N_PANELS - 1)
        for n in (20, 2**32 - 1)
    ),
    ("router_padding", router_padding, "the padding inside section router"),
    *(
        ("router_panels", number(ROUTER, -(-HEAD // 64) * 16 + k, "f", x), "a point of section router")
        for k in (0, 5, 64 * (1 + N_PANELS) - 1)
        for x in (NAN, INF, -INF)
    ),
]
BROKEN_HIGHER: list[tuple[str, Change, str]] = [
    *(("higher", content({HIGHER: x}), "section higher") for x in (None, b"", bytes(96), bytes(104))),
    *(
        ("higher", number(HIGHER, k, "f", x), f"number {k} of section higher")
        for k in (0, 24)
        for x in (NAN, INF, 720.0001, -720.0001)
    ),
]
ALL_BROKEN = [
    *((*broken, classifier()) for broken in BROKEN),
    *((*broken, ROUTED) for broken in BROKEN_CENTERS),
    *((*broken, deep()) for broken in BROKEN_HIGHER),
]


@pytest.mark.parametrize(
    ("name", "change", "message", "artifact"),
    ALL_BROKEN,
    ids=[f"{broken[0]}-{k}" for k, broken in enumerate(ALL_BROKEN)],
)
def test_must(name: str, change: Change, message: str, artifact: Artifact) -> None:
    refused(changed(change, artifact), message)


def test_every_must_of_the_format_is_broken_here() -> None:
    named = names_of_the_format()
    elsewhere = {"file_bytes", "checksum", "label_dtype", "check_row_value", "exact_check_row_value"}
    elsewhere |= {
        "class_counts",
        "majority_classes",
        "outputs",
        "input_map",
        "polynomial",
        "members",
        "varying",
        "presumption",
        "subspaces",
        "subspace_expansion",
        "cosines",
    }
    assert elsewhere <= named
    assert named - elsewhere == {name for name, _, _, _ in ALL_BROKEN}


def test_every_must_of_the_format_is_broken_in_the_native_tests() -> None:
    sources = (REPOSITORY / "cpp" / "tests").glob("test_*.cpp")
    tests = set(re.findall(r"^TEST\(must_(\w+)\)", "".join(path.read_text() for path in sources), re.MULTILINE))
    for name in names_of_the_format() - {"label_dtype"}:  # only Python reads it
        assert any(test == name or test.startswith(f"{name}_") for test in tests), name


def names_of_the_format() -> set[str]:
    """The names in brackets."""
    text = (REPOSITORY / "models" / "FORMAT.md").read_text(encoding="utf-8")
    return set(re.findall(r"\[([a-z_]+)\]", text))


@pytest.mark.parametrize("mode", MODES)
def test_must_modes(mode: str) -> None:
    artifact = classifier(mode)
    for identifier in NEEDED[mode]:
        refused(changed(content({identifier: None}), artifact), f"section {SECTIONS[identifier - 1]} ")
    refused(changed(content({LABELS: None}), artifact), "needs 2 labels")
    for identifier in (FEATURE_NAMES, DIRECTION, PLAN):
        data = changed(content({identifier: None}), artifact)
        assert Artifact(data).mode == mode
        _native.Predictor(data)
    for other in (classifier("certified"), many_centers(), deep()):
        for identifier in set(entries(other.data)) - set(entries(artifact.data)) - {PLAN}:
            for extra in (section(other, identifier), b""):
                message = f"section {SECTIONS[identifier - 1]} "
                refused(changed(content({identifier: extra}), artifact), message)
    for k, name in enumerate(MODES):
        if name != mode:
            refused(changed(field(MODE, "I", k), artifact), "section|degree")


@pytest.mark.parametrize("mode", MODES)
def test_must_modes_of_polynomial_kernels(mode: str) -> None:
    artifact = polynomial(mode)
    assert Artifact(artifact.data).mode == mode
    for identifier in set(entries(artifact.data)) - {FEATURE_NAMES, PLAN}:
        refused(changed(content({identifier: None}), artifact), "section|labels")
    for identifier in (CENTER, *range(EXPANSIONS, LABELS), CHECK_ROWS, CLASS_COUNTS, MAJORITY_CLASSES, VARYING):
        for extra in (b"", bytes(12), bytes(48)):
            refused(changed(content({identifier: extra}), artifact), f"section {SECTIONS[identifier - 1]} ")
    for k, name in enumerate(MODES):
        if name != mode:
            refused(changed(field(MODE, "I", k), artifact), "section")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("degree", [1, 2])
def test_must_polynomial(mode: str, degree: int) -> None:
    artifact = polynomial(mode, degree)
    stored = section(artifact, POLYNOMIAL)
    for wrong in (b"", stored[:8], stored[:-8], stored + bytes(8), bytes(7)):
        refused(changed(content({POLYNOMIAL: wrong}), artifact), "section polynomial has")
    for position in range(len(stored) // 8):
        for x in (NAN, INF, -INF):
            refused(changed(number(POLYNOMIAL, position, "d", x), artifact), "section polynomial holds NaN")
        if position == 1 or 3 <= position <= 5:
            refused(changed(number(POLYNOMIAL, position, "d", -1.0), artifact), "error in section polynomial is neg")
        else:
            assert Artifact(changed(number(POLYNOMIAL, position, "d", -1.0), artifact)).mode == mode
    refused(changed(content({POLYNOMIAL: stored}), classifier(mode)), "section polynomial is found")


@pytest.mark.parametrize("mode", MODES)
def test_must_header_of_polynomial_kernels(mode: str) -> None:
    artifact = polynomial(mode)
    most = 6 if mode == "exact" else 2
    for degree in (0, most + 1, 7, 2**32 - 1):
        refused(changed(field(DEGREE, "I", degree), artifact), f"degree is {degree}")
    for name, offset in (("n_centers", N_CENTERS), ("first_remainder_degree", 112), ("center_kind", CENTER_KIND)):
        refused(changed(field(offset, "I", 1), artifact), f"{name} is 1")
    for scale in (0.5, 2.0, NAN):
        refused(changed(field(INPUT_SCALE, "d", scale), artifact), "input_scale is")
    for gamma in (NAN, INF, -INF):
        refused(changed(field(GAMMA, "d", gamma), artifact), "gamma is")
    assert is_read_natively(changed(field(GAMMA, "d", -0.5), artifact))
    refused(changed(field(KERNEL, "I", 0), artifact), "is|section")
    refused(changed(field(KERNEL, "I", 1), classifier(mode)), "is|section")


@pytest.mark.parametrize("mode", MODES)
def test_check_rows_of_polynomial_kernels_are_replayed(mode: str) -> None:
    artifact = polynomial(mode)
    value = artifact.check_rows("exact_check_rows")[1, 1]
    data = changed(number(EXACT_CHECK_ROWS, 4, "d", value + 1e-3), artifact)
    assert Artifact(data).mode == mode
    with pytest.raises(ArtifactError, match="check row"):
        _native.Predictor(data)


def test_must_cosines() -> None:
    artifact = cosines()
    stored = section(artifact, COSINES)
    n_numbers = len(stored) // 8
    assert n_numbers == 4 * 5
    for wrong in (b"", stored[:8], stored[:-8], stored + bytes(8), bytes(7), bytes(39)):
        refused(changed(content({COSINES: wrong}), artifact), "section cosines has")
    for position in range(n_numbers):
        for x in (NAN, INF, -INF):
            refused(changed(number(COSINES, position, "d", x), artifact), "section cosines holds NaN")
        if 4 <= position < 8:
            refused(changed(number(COSINES, position, "d", -8.5), artifact), "phase in section cosines is 8.5")
        else:
            assert Artifact(changed(number(COSINES, position, "d", -8.5), artifact)).n_cosines == 4
    for other in (classifier(), classifier("exact"), polynomial("exact")):
        refused(changed(content({COSINES: stored}), other), "section cosines is found")


def test_must_modes_and_header_of_cosines() -> None:
    artifact = cosines()
    assert Artifact(artifact.data).kernel_name == "4 cosines"
    for identifier in set(entries(artifact.data)) - {FEATURE_NAMES, PLAN}:
        refused(changed(content({identifier: None}), artifact), "section|labels")
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
            refused(changed(content({identifier: extra}), artifact), f"section {SECTIONS[identifier - 1]} ")
    for mode in (0, 1):
        refused(changed(field(MODE, "I", mode), artifact), "mode is|degree is")
    for name, offset in (("degree", DEGREE), ("n_centers", N_CENTERS), ("center_kind", CENTER_KIND)):
        refused(changed(field(offset, "I", 1), artifact), f"{name} is 1")
    for scale in (0.5, 2.0, NAN):
        refused(changed(field(INPUT_SCALE, "d", scale), artifact), "input_scale is")
    for gamma in (NAN, INF, -0.5, 0.5):
        refused(changed(field(GAMMA, "d", gamma), artifact), "gamma is")
    for kernel in (0, 1):
        refused(changed(field(KERNEL, "I", kernel), artifact), "is|section")
    refused(changed(field(KERNEL, "I", 3), artifact), "kernel is 3")
    for mode in MODES:
        refused(changed(field(KERNEL, "I", 2), classifier(mode)), "is|section")
    value = artifact.check_rows("exact_check_rows")[1, 1]
    with pytest.raises(ArtifactError, match="check row"):
        _native.Predictor(changed(number(EXACT_CHECK_ROWS, 4, "d", value + 1e-3), artifact))


@pytest.mark.parametrize("mode", ["approximate", "certified"])
def test_must_modes_of_many_centers_and_higher_degrees(mode: str) -> None:
    for artifact, identifiers in ((many_centers(mode), (CENTERS, ROUTER)), (deep(mode), (HIGHER,))):
        for identifier in identifiers:
            refused(changed(content({identifier: None}), artifact), f"section {SECTIONS[identifier - 1]} ")
    for identifier in (DIRECTION, PLAN):
        data = changed(content({identifier: None}), many_centers(mode))
        assert Artifact(data).n_centers > 1
        _native.Predictor(data)


@pytest.mark.parametrize("mode", MODES)
def test_must_degree(mode: str) -> None:
    for degree in {0, 7, 2**32 - 1} - {0 if mode == "exact" else 2}:
        refused(changed(field(DEGREE, "I", degree), classifier(mode)), f"degree is {degree}")
    for degree in (1, 3, 6):  # the sections do not suit it
        message = f"degree is {degree}" if mode == "exact" else "section|first_remainder_degree"
        refused(changed(field(DEGREE, "I", degree), classifier(mode)), message)


@pytest.mark.parametrize("mode", MODES)
def test_must_n_centers(mode: str) -> None:
    for n_centers in (2, 2**20):
        refused(changed(field(N_CENTERS, "I", n_centers), classifier(mode)), "section|n_centers")
    if mode != "exact":
        artifact = many_centers(mode)
        for n_centers in (1, artifact.n_centers - 1, artifact.n_centers + 1):
            refused(changed(field(N_CENTERS, "I", n_centers), artifact), "section")


@pytest.mark.parametrize("wrong", [-64, -1, 1, 64])
def test_must_file_bytes(wrong: int) -> None:
    data = bytearray(classifier().data)
    struct.pack_into("<QI", data, FILE_BYTES, len(data) + wrong, 0)
    struct.pack_into("<I", data, CHECKSUM, zlib.crc32(data))
    refused(bytes(data), f"the header says {len(data) + wrong} bytes, but the file has {len(data)}")
    refused(classifier().data + b"\0", "but the file has")


def test_must_checksum() -> None:
    data = classifier().data
    for i in range(0, len(data), 7):
        wrong = bytearray(data)
        wrong[i] ^= 0x10
        refused(bytes(wrong), "artifact|version|header says")
        if i >= CHECKSUM:
            refused(bytes(wrong), "checksum is [0-9a-f]{8}, but the header says [0-9a-f]{8}")


@pytest.mark.parametrize(
    ("labels", "names"),
    [
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
                b"nonsense",
                b"\xff",
            ],
        ),
        ([0.5, 1e10], [b"", b"<i8", b"<f2", b"<U4", b"|O", b"<c16"]),
        (["yes", "no"], [b"", b"<i8", b"<U2", b"|S3", b"V12", b"<u8"]),
        (["7", "+7"], [b"<u8"]),
        (["7", "07"], [b"<u8"]),
        (["7", "18446744073709551616"], [b"<u8", b"<i8"]),
        (["7", "-1"], [b"<u8"]),
    ],
)
def test_must_label_dtype(labels: list[Any], names: list[bytes]) -> None:
    artifact = classifier(labels=np.array(labels))
    for name in names:
        data = changed(field(LABEL_DTYPE, "16s", name), artifact)
        with pytest.raises(ArtifactError, match="label_dtype"):
            Artifact(data)
        _native.Predictor(data)  # only Python reads it


@pytest.mark.parametrize("name", [b"<U536870911", b"<U100000000", b"(99999999,)U1", b"(999999999,)U1"])
def test_label_dtype_does_not_allocate_what_it_claims(name: bytes) -> None:
    resource = pytest.importorskip("resource")
    data = changed(field(LABEL_DTYPE, "16s", name), classifier(labels=np.array(["yes", "no"])))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ArtifactError, match="label_dtype"):
        Artifact(data)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KiB


def test_must_labels() -> None:
    same = struct.pack("<2q", 7, 7)
    refused(changed(content({LABELS: same})), "2 distinct values")
    for pair in ((NAN, 1.0), (1.0, INF), (0.5, 0.5), (0.0, -0.0)):
        floats = classifier(labels=np.array([0.5, 1.5]))
        refused(changed(content({LABELS: struct.pack("<2d", *pair)}), floats), "2 distinct values")
    strings = classifier(labels=np.array(["yes", "no"]))
    refused(changed(content({LABELS: texts(b"a", b"a")}), strings), "2 distinct values")
    for wrong in (texts(b"a"), texts(b"a", b"b") + b"c", texts(b"a", b"\xff"), b"", bytes(7)):
        refused(changed(content({LABELS: wrong}), strings), "labels")


def test_must_labels_be_for_classification_only() -> None:
    for task in (1, 2):
        refused(changed(field(TASK, "I", task)), "must not have labels")
    refused(changed(field(TASK, "I", 0), regressor()), "needs 2 labels or more, found 0")
    refused(changed(field(N_LABELS, "I", 2), regressor()), "must not have labels")
    refused(changed(field(LABEL_KIND, "I", 1), regressor()), "must not have labels")
    for wrong in (struct.pack("<2q", 1, 2), b""):  # there is there, though it be empty
        refused(changed(content({LABELS: wrong}), regressor()), "must not have labels")


def several_classes() -> Artifact:
    """Of three classes, with expansions about four centers."""
    return Artifact((REPOSITORY / "models" / "iris_classes.asvm").read_bytes())


def test_must_class_counts() -> None:
    artifact = several_classes()
    counts = artifact.numbers("class_counts")
    assert counts.sum() == artifact.dual_coef().shape[1]
    for wrong in (counts[:2], counts + np.uint32(1), np.array([0, 0, 2**32 - 1], np.uint32)):
        refused(changed(content({CLASS_COUNTS: wrong.astype("<u4").tobytes()}), artifact), "class_counts")
    refused(changed(content({CLASS_COUNTS: None}), artifact), "section class_counts is missing")


def test_must_varying() -> None:
    artifact = Artifact((REPOSITORY / "models" / "iris_slices.asvm").read_bytes())
    assert artifact.numbers("varying").tolist() == [0, 1, 2, 3]
    for wrong in ([], [1, 0, 2, 3], [1, 1, 2, 3], [1, 2, 3, 7], [0, 1, 2, 2**32 - 1], [0, 1, 2], range(7), range(8)):
        data = np.array(wrong, "<u4").tobytes()
        refused(changed(content({VARYING: data}), artifact), "section varying|features and")
    refused(changed(content({VARYING: b"\0" * 15}), artifact), "section varying has 15 bytes")
    for mode in MODES:
        refused(changed(content({VARYING: struct.pack("<I", 0)}), classifier(mode)), "section varying")


def test_must_majority_classes() -> None:
    artifact = several_classes()
    for wrong in (b"", bytes(4 * artifact.n_centers + 4), struct.pack("<4I", 0, 1, 2, 3)):
        refused(changed(content({MAJORITY_CLASSES: wrong}), artifact), "majority_classes")
    refused(changed(content({MAJORITY_CLASSES: None}), artifact), "section majority_classes is missing")


def test_must_majority_only() -> None:
    artifact = several_classes()
    assert artifact.header["majority_only"] == 1
    for wrong in (2, 256, 2**32 - 1):
        refused(changed(field(MAJORITY_ONLY, "I", wrong), artifact), "majority_only is")
    refused(changed(field(MAJORITY_ONLY, "I", 0), artifact), "section expansions has")
    refused(changed(field(TOLERANCE, "d", 1.0), artifact), "majority_only is 1, but")
    refused(changed(field(MODE, "I", 0), artifact), "majority_only is 1, but")
    refused(changed(field(MAJORITY_ONLY, "I", 1), presuming()), "majority_only is 1, but")


def presuming() -> Artifact:
    return Artifact((REPOSITORY / "models" / "shells_exact.asvm").read_bytes())


def golden(name: str) -> Artifact:
    return Artifact((REPOSITORY / "models" / f"{name}.asvm").read_bytes())


def test_must_subspaces() -> None:
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

    assert is_read_natively(with_number(skew, "d", 2.0**-10))
    assert is_read_natively(with_number(coef, "f", 2.0**-60 * np.sign(lists[0])))
    for at, code, value, message in (
        (0, "I", 0, "it has 0 stages"),
        (0, "I", 9, "it has 9 stages"),
        (0, "I", 2**32 - 1, "it has 4294967295 stages"),
        (4, "I", 1, "it has 2 stages, reserved 1"),
        (8, "I", 0, "do not ascend"),
        (8, "I", last, "do not ascend"),
        (12, "I", first, "do not ascend"),
        (12, "I", d + 1, "do not ascend"),
        (12, "I", 2**32 - 1, "do not ascend"),
        (12, "I", last + 1, "section subspaces: "),
        (skew, "d", -1e-9, "the skew of a basis is"),
        (skew, "d", 2.0**-9, "the skew of a basis is"),
        (skew, "d", NAN, "the skew of a basis is"),
        (counts, "I", n_sv + 1, "support vectors, but there are"),
        (counts, "I", 2**32 - 1, "support vectors, but there are"),
        (counts + 4, "I", n_sv + 1, "support vectors, but there are"),
        (counts, "I", n_own + 1, "section subspaces: "),
        (counts + 4 * (1 + n_forms), "I", 1, "padding is not zero"),
        *((known + 8 * k, "d", bad, "a norm is NaN") for k in (0, 1, 5, 47) for bad in (-1e-300, NAN, INF)),
        (basis, "f", NAN, "a basis holds"),
        (vectors - 4, "f", INF, "a basis holds"),
        (vectors, "f", -INF, "a support vector holds"),
        (coef - 4, "f", NAN, "a support vector holds"),
        (coef, "f", NAN, "a coefficient is neither"),
        (coef, "f", 2.0**61, "a coefficient is neither"),
        (coef, "f", 2.0**-61, "a coefficient is neither"),
        (coef + 4 * two, "f", -lists[0], "both signs"),
    ):
        refused(with_number(at, code, value), message)
    for wrong in (b"", whole[:7], whole[:-8], whole[:-4], whole + bytes(8), whole[: len(whole) // 2]):
        refused(changed(content({SUBSPACES: wrong}), artifact), "section subspaces: it")
    for other in (classifier(), classifier("approximate"), polynomial("exact", 3)):
        refused(changed(content({SUBSPACES: whole}), other), "section subspaces is found in")


def test_must_subspace_expansion() -> None:
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
        classifier("approximate").data,
        regressor("certified").data,
        regressor("approximate").data,
        polynomial("approximate").data,
        artifact.data,
    ):
        refused(with_inner(wrong), message)
    refused(changed(content({SUBSPACES: None}), artifact), "section subspace_expansion is found in")
    classes = golden("digits_classes")
    refused(changed(content({SUBSPACE_EXPANSION: whole}), classes), "section subspace_expansion is found in")
    refused(changed(content({SUBSPACE_EXPANSION: None}), artifact), "section subspaces: it")


def test_must_presumption() -> None:
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
        assert is_read_natively(with_content(packed(good)))
    for wrong, message in (
        (b"", "section presumption has 0 bytes"),
        (content_of[:7], "section presumption has 7 bytes"),
        (content_of[:-4], "section presumption has"),
        (content_of + bytes(4), "section presumption has"),
        (packed([0, 1], n_claimed=3), "section presumption has"),
        (packed([0, 1], n_claimed=2**32 - 1), "section presumption has"),
        (packed([0] * (n_sv + 1)), "section presumption has"),
        (packed([n_sv]), "section presumption names support vector"),
        (packed([0, 2**32 - 1]), "section presumption names support vector"),
        (packed([0], padding=1), "section presumption names support vector"),
        (packed([0], weight=NAN), "section presumption holds NaN"),
        (packed([0], weight=INF), "section presumption holds NaN"),
        (content_of[:4] + b"\x01" + content_of[5:], "section presumption has"),
    ):
        refused(with_content(wrong), message)
    for other in (classifier(), classifier("exact"), polynomial("exact", 3)):  # of two labels
        refused(changed(content({PRESUMPTION: packed([])}), other), "section presumption is found in")


def test_must_outputs() -> None:
    """What the section may hold is in tests/test_outputs.py and the native tests; here both readers look at it."""
    whole = pack_outputs(Outputs(TemperatureCalibration(2.0), "probability"))
    data = changed(content({OUTPUTS: whole}), several_classes())
    assert Artifact(data).outputs.label_rule == "probability"
    assert is_read_natively(data)
    for wrong in (b"", b'{"kind":"Outputs"}', whole[:-1], whole + bytes(8), bytes(23), b"\xff" * 24):
        refused(changed(content({OUTPUTS: wrong}), several_classes()), "section outputs")
    refused(changed(content({OUTPUTS: whole}), regressor()), "section outputs")
    column = changed(content({OUTPUTS: pack_outputs(Outputs(is_column=True))}), regressor())
    assert Artifact(column).outputs.is_column
    assert is_read_natively(column)
    refused(changed(content({OUTPUTS: struct.pack("<6I", 2, 0, 0, 0, 0, 0)}), regressor()), "section outputs")


def test_labels_beyond_int64_are_their_digits() -> None:
    labels = np.array([2**63, 2**64 - 1, 7], np.uint64)
    for dtype in ("<u8", ">u8"):
        artifact = classifier(labels=labels[:2].astype(dtype))
        assert artifact.section("labels").endswith(b"922337203685477580818446744073709551615")
        again = Artifact(artifact.data).labels
        assert (again.dtype, again.tolist()) == (np.dtype(dtype), labels[:2].tolist())
        assert is_read_natively(artifact.data)
    with pytest.raises(UnsupportedModelError, match=f"of dtype {np.dtype(np.longdouble)} .* at most 64 bits"):
        classifier(labels=np.array([1, 2], np.longdouble))


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
        whole + bytes(8),
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


@pytest.mark.parametrize("wrong", wrong_maps(), ids=str)
def test_must_input_map(wrong: bytes) -> None:
    data = changed(content({INPUT_MAP: wrong}), several_classes())
    with pytest.raises(ArtifactError, match="section input_map"):
        Artifact(data)


def test_an_input_map_comes_back_as_it_was() -> None:
    first, second = scaled_classes().input_map, InputMap.identity(4).then_affine(divide=[1.0, 2, 3, 4])
    assert first is not None
    for whole in (first, second):
        packed = pack_input_map(whole)
        assert pack_input_map(unpack_input_map(packed, None, whole.n_features)) == packed
    rows = np.random.default_rng(0).normal(size=(5, first.n_raw_features))
    again = unpack_input_map(pack_input_map(first), None, first.n_features)
    np.testing.assert_array_equal(again.apply(rows), first.apply(rows))


def refused_by_replay(data: bytes) -> None:
    """Well-formed, but of other values: only the native reader replays."""
    Artifact(data)
    with pytest.raises(ArtifactError, match="check row"):
        _native.Predictor(data)


@pytest.mark.parametrize("mode", ["approximate", "certified"])
@pytest.mark.parametrize("identifier", [LINEAR, QUADRATIC])
def test_must_check_row_value(mode: str, identifier: int, target: str) -> None:
    artifact = classifier(mode)
    assert _native.Predictor(artifact.data).target == target
    for position in range(3):
        refused_by_replay(changed(number(identifier, position, "f", -0.999), artifact))
    for k, value in enumerate(artifact.check_rows()[:, 1]):
        refused_by_replay(changed(number(CHECK_ROWS, 3 * k + 1, "d", value + 0.01), artifact))


@pytest.mark.parametrize("mode", ["certified", "exact"])
def test_must_exact_check_row_value(mode: str, target: str) -> None:
    artifact = classifier(mode)
    assert _native.Predictor(artifact.data).target == target
    for k, value in enumerate(artifact.check_rows("exact_check_rows")[:, 1]):
        for error in (0.01, -1e-9):
            refused_by_replay(changed(number(EXACT_CHECK_ROWS, 3 * k + 1, "d", value + error), artifact))
    for k, coefficient in enumerate(artifact.dual_coef()[0]):
        refused_by_replay(changed(number(DUAL_COEF, k, "d", coefficient * 1.001), artifact))
    packed = section(artifact, SUPPORT_VECTORS)
    for k in range(18):  # float64 behind a header of 24 bytes
        value = struct.unpack_from("<d", packed, 24 + 8 * k)[0]
        refused_by_replay(changed(number(SUPPORT_VECTORS, 3 + k, "d", value + 0.1), artifact))


# --- bytes that nobody meant ---


@pytest.mark.parametrize("mode", MODES)
def test_truncated_at_every_byte(mode: str) -> None:
    data = classifier(mode).data
    for n in range(len(data)):
        refused(data[:n], "artifact|header")
        if n >= 192:
            with pytest.raises(ArtifactError):
                Artifact(sealed(bytearray(data[:n])))


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_readers_agree_on_corrupt_bytes(mode: str) -> None:
    """Both readers take the same bytes, label_dtype aside; nothing but ArtifactError comes out."""
    rng = np.random.default_rng(0)
    n_taken = 0
    others = () if mode == "exact" else (deep(mode), many_centers(mode))
    for artifact in (classifier(mode), regressor(mode), classifier(mode, labels=np.array(["ja", "nein"])), *others):
        for i in range(0, len(artifact.data), 1 if len(artifact.data) < 5000 else 3):
            data = bytearray(artifact.data)
            data[i] ^= int(rng.integers(1, 256))
            mutated = sealed(data) if i not in range(FILE_BYTES, CHECKSUM + 4) else bytes(data)
            if LABEL_DTYPE <= i < LABEL_DTYPE + 16:
                continue
            try:
                Artifact(mutated)
            except ArtifactError:
                assert not is_read_natively(mutated), i
            else:
                assert is_read_natively(mutated), i
                n_taken += 1
    assert n_taken > 100

"""The .asvm format from Python: every MUST of models/FORMAT.md, by the name it has there, in both readers."""

from __future__ import annotations

import copy
import os
import pickle
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from conftest import random_model

import approxsvm
from approxsvm import Artifact, ArtifactError, UnsupportedModelError, _native, reference
from approxsvm import artifact as artifacts
from approxsvm.compiler import compile as compile_model

# Offsets of header fields, from the table in models/FORMAT.md.
VERSION, N_SECTIONS, FILE_BYTES, CHECKSUM, TASK, MODE, DEGREE, N_FEATURES = 8, 12, 16, 24, 28, 32, 36, 40
FIRST_INDEX, N_LABELS, GAMMA, INTERCEPT, CONSTANT, INPUT_SCALE, OUTPUT_SCALE = 56, 60, 64, 72, 80, 88, 96
MAX_SV_NORM, MAX_SV_NORM_ORIGIN, LABEL_KIND, LABEL_DTYPE, CENTER_KIND = 104, 112, 120, 124, 176
CENTER, LINEAR, QUADRATIC, LABELS, CHECK_ROWS, FEATURE_NAMES = range(1, 7)
NAN, INF = float("nan"), float("inf")

Change = Callable[[bytearray], Any]


def classifier(**changes: Any) -> Artifact:
    """Three features with names and labels 1 and -1; gamma 0.6 gives input_scale 1, 2 gamma / 1^2 = 1.2."""
    arguments: dict[str, Any] = {"n_features": 3, "gamma": 0.6, "feature_names": ("länge", "b", "")}
    return compile_model(random_model(5, **(arguments | changes))).artifact


def regressor() -> Artifact:
    return compile_model(random_model(5, n_features=3, gamma=0.6, task="regression")).artifact


def sealed(data: bytearray) -> bytes:
    """Make file_bytes and checksum true again, so that a reader meets the change itself."""
    struct.pack_into("<Q", data, FILE_BYTES, len(data))
    struct.pack_into("<I", data, CHECKSUM, 0)
    struct.pack_into("<I", data, CHECKSUM, zlib.crc32(data))
    return bytes(data)


def entries(data: bytes | bytearray) -> dict[int, tuple[int, int, int]]:
    """Where each section's table entry is, where it starts, and how long it is, by identifier."""
    result = {}
    for k in range(struct.unpack_from("<I", data, N_SECTIONS)[0]):
        identifier, _, offset, size = struct.unpack_from("<IIQQ", data, 192 + 24 * k)
        result[identifier] = (192 + 24 * k, offset, size)
    return result


def field(offset: int, code: str, value: Any) -> Change:
    return lambda data: struct.pack_into("<" + code, data, offset, value)


def entry(identifier: int, offset: int, code: str, value: int) -> Change:
    return lambda data: struct.pack_into("<" + code, data, entries(data)[identifier][0] + offset, value)


def number(identifier: int, position: int, code: str, value: float) -> Change:
    size = struct.calcsize(code)
    return lambda data: struct.pack_into("<" + code, data, entries(data)[identifier][1] + size * position, value)


def content(changes: dict[int, bytes | None]) -> Change:
    """Other contents for some sections, None for no section; laid out as the format wants it."""

    def change(data: bytearray) -> None:
        parts: dict[int, bytes | None] = {
            i: bytes(data[offset : offset + size]) for i, (_, offset, size) in entries(data).items()
        }
        sections = {i: part for i, part in sorted({**parts, **changes}.items()) if part is not None}
        offset, table, body = 192 + 24 * len(sections), b"", b""
        for identifier, part in sections.items():
            start = -(-offset // 64) * 64
            table += struct.pack("<IIQQ", identifier, 0, start, len(part))
            body += bytes(start - offset) + part
            offset = start + len(part)
        struct.pack_into("<I", data, N_SECTIONS, len(sections))
        data[192:] = table + body + bytes(-offset % 64)

    return change


def texts(*parts: bytes) -> bytes:
    return struct.pack(f"<{len(parts)}I", *map(len, parts)) + b"".join(parts)


def padding(data: bytearray) -> None:
    _, offset, size = entries(data)[CENTER]
    data[offset + size] = 1


def last_byte(data: bytearray) -> None:
    assert data[-1] == 0, "the last section must leave room for padding"
    data[-1] = 1


def swap_two_sections(data: bytearray) -> None:
    first, second = (entries(data)[i][0] for i in (CENTER, LINEAR))
    data[first : first + 4], data[second : second + 4] = data[second : second + 4], data[first : first + 4]


def append_zeros(data: bytearray) -> None:
    data += bytes(64)


# Name of the MUST, what breaks it, a part of the message; then only those that Python alone checks.
BROKEN: list[tuple[str, Change, str]] = [
    ("magic", field(0, "B", 0x88), "not an approxsvm artifact"),
    ("magic", field(5, "B", 0x0A), "not an approxsvm artifact"),
    *(("version", field(VERSION, "I", v), f"version {v}") for v in (0, 2, 2**32 - 1)),
    *(("n_sections", field(N_SECTIONS, "I", n), f"n_sections is {n}") for n in (7, 2**32 - 1)),
    *(("task", field(TASK, "I", n), f"task is {n}") for n in (3, 2**32 - 1)),
    ("mode", field(MODE, "I", 1), "mode is 1"),
    *(("degree", field(DEGREE, "I", n), f"degree is {n}") for n in (0, 1, 3)),
    *(("n_features", field(N_FEATURES, "Q", n), f"n_features is {n}") for n in (0, 2**20 + 1, 2**32 + 3, 2**64 - 1)),
    ("first_index", field(FIRST_INDEX, "I", 2), "first_index is 2"),
    *(("n_labels", field(N_LABELS, "I", n), f"needs 2 labels, found {n}") for n in (0, 1, 3)),
    *(("gamma", field(GAMMA, "d", x), "gamma is") for x in (-1.0, NAN, INF)),
    *(("gamma", field(GAMMA, "d", x), r"2 gamma / input_scale\^2 is") for x in (0.4, 2.0, 1e300)),
    *(("intercept", field(INTERCEPT, "d", x), "intercept is") for x in (NAN, INF, -INF)),
    *(("constant", field(CONSTANT, "d", x), "constant is") for x in (NAN, INF, 1.0000000000000002, -1.5)),
    *(("input_scale", field(INPUT_SCALE, "d", x), "input_scale is") for x in (0.0, -1.0, 1.5, NAN, INF, 2.0**101)),
    *(("input_scale", field(INPUT_SCALE, "d", x), r"input_scale\^2 is") for x in (2.0, 0.5)),
    *(("output_scale", field(OUTPUT_SCALE, "d", x), "output_scale is") for x in (0.0, -1.0, 3.0, NAN, INF, 2.0**1001)),
    *(("max_sv_norm", field(MAX_SV_NORM, "d", x), "max_sv_norm is") for x in (-1.0, NAN)),
    *(("max_sv_norm_origin", field(MAX_SV_NORM_ORIGIN, "d", x), "max_sv_norm_origin is") for x in (-1.0, NAN)),
    ("label_kind", field(LABEL_KIND, "I", 4), "label_kind is 4"),
    ("label_kind", field(LABEL_KIND, "I", 0), "kind 0"),
    *(("reserved", field(k, "B", 1), "reserved header bytes") for k in (140, 143, 180, 191)),
    ("center_kind", field(CENTER_KIND, "I", 2), "center_kind is 2"),
    ("section_order", swap_two_sections, "section 0 has identifier 2|section 1 has identifier 1"),
    ("section_order", entry(CENTER, 0, "I", 0), "section 0 has identifier 0"),
    ("section_order", entry(LINEAR, 0, "I", 1), "section 1 has identifier 1"),
    ("section_order", entry(FEATURE_NAMES, 0, "I", 7), "section 5 has identifier 7"),
    *(("section_reserved", entry(k, 4, "I", 1), f"section {k - 1}") for k in (1, 4, 6)),
    *(("section_offset", entry(k, 8, "Q", n), f"section {k - 1} takes") for k in (1, 6) for n in (0, 64, 2**64 - 64)),
    *(("section_offset", entry(k, 16, "Q", n), f"section {k - 1} takes") for k in (1, 6) for n in (2**63, 2**64 - 1)),
    ("padding", padding, "padding before section 1"),
    ("padding", last_byte, "follow the last section"),
    ("padding", append_zeros, "follow the last section"),
    *(
        (name, content({identifier: wrong}), f"section {name} has")
        for identifier, name in ((CENTER, "center"), (LINEAR, "linear"), (QUADRATIC, "quadratic"))
        for wrong in (None, b"", bytes(8), bytes(28))
    ),
    *(("center", number(CENTER, 2, "f", x), "number 2 of section center") for x in (NAN, INF, -INF)),
    *(("linear", number(LINEAR, 1, "f", x), "number 1 of section linear") for x in (NAN, INF, 1.0000001, -2.0)),
    *(
        ("quadratic", number(QUADRATIC, 5, "f", x), "number 5 of section quadratic")
        for x in (NAN, INF, 2.0000002, -9.0)
    ),
    *(("labels", content({LABELS: wrong}), "labels") for wrong in (None, b"", bytes(8), bytes(16), bytes(24))),
    *(("check_rows", content({CHECK_ROWS: x}), "check_rows has") for x in (None, b"", bytes(23), bytes(17 * 24))),
    *(("check_rows", number(CHECK_ROWS, k, "d", x), "check_rows holds") for k in (0, 1, 2, 5) for x in (NAN, INF)),
    *(("check_rows", number(CHECK_ROWS, k, "d", -1.0), "check_rows holds") for k in (0, 2, 3)),
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


def changed(change: Change, artifact: Artifact | None = None) -> bytes:
    data = bytearray((artifact or classifier()).data)
    change(data)
    return sealed(data)


def refused(data: bytes, message: str) -> None:
    """Both readers refuse the bytes; Python says which field is wrong."""
    with pytest.raises(ArtifactError, match=message):
        Artifact(data)
    with pytest.raises(ArtifactError):
        _native.Predictor(data)


@pytest.mark.parametrize(
    ("name", "change", "message"), BROKEN, ids=[f"{name}-{k}" for k, (name, _, _) in enumerate(BROKEN)]
)
def test_must(name: str, change: Change, message: str) -> None:
    refused(changed(change), message)


def test_every_must_of_the_format_is_broken_here() -> None:
    text = (Path(__file__).parent.parent / "models" / "FORMAT.md").read_text(encoding="utf-8")
    named = {part.split("]")[0] for part in text.split("[")[1:]}
    named = {name for name in named if name.replace("_", "a").isidentifier() and name.islower()}
    elsewhere = {"file_bytes", "checksum", "label_dtype", "check_row_value"}
    assert elsewhere <= named
    assert named - elsewhere <= {name for name, _, _ in BROKEN}


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
        (["yes", "no"], [b"", b"<i8", b"<U2", b"|S3", b"V12"]),
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
    refused(changed(content({LABELS: same})), "two distinct values")
    for pair in ((NAN, 1.0), (1.0, INF), (0.5, 0.5), (0.0, -0.0)):
        floats = classifier(labels=np.array([0.5, 1.5]))
        refused(changed(content({LABELS: struct.pack("<2d", *pair)}), floats), "two distinct values")
    strings = classifier(labels=np.array(["yes", "no"]))
    refused(changed(content({LABELS: texts(b"a", b"a")}), strings), "two distinct values")
    for wrong in (texts(b"a"), texts(b"a", b"b") + b"c", texts(b"a", b"\xff"), b"", bytes(7)):
        refused(changed(content({LABELS: wrong}), strings), "labels")


def test_must_labels_be_for_classification_only() -> None:
    for task in (1, 2):
        refused(changed(field(TASK, "I", task)), "must not have labels")
    refused(changed(field(TASK, "I", 0), regressor()), "needs 2 labels, found 0")
    refused(changed(field(N_LABELS, "I", 2), regressor()), "must not have labels")
    refused(changed(field(LABEL_KIND, "I", 1), regressor()), "must not have labels")
    for wrong in (struct.pack("<2q", 1, 2), b""):  # there is there, though it be empty
        refused(changed(content({LABELS: wrong}), regressor()), "must not have labels")


@pytest.mark.parametrize("section", [LINEAR, QUADRATIC])
def test_must_check_row_value(section: int, target: str) -> None:
    artifact = classifier()
    assert _native.Predictor(artifact.data).target == target
    for position in range(3):
        data = changed(number(section, position, "f", -0.999), artifact)
        Artifact(data)  # the replay is native
        with pytest.raises(ArtifactError, match="check row"):
            _native.Predictor(data)


# --- bytes that nobody meant ---


def test_truncated_at_every_byte() -> None:
    data = classifier().data
    for n in range(len(data)):
        refused(data[:n], "artifact|header")
        if n >= 192:
            with pytest.raises(ArtifactError):
                Artifact(sealed(bytearray(data[:n])))


def test_readers_agree_on_corrupt_bytes() -> None:
    """What Python refuses, the native reader refuses too, label_dtype aside; nothing but ArtifactError comes out."""
    rng = np.random.default_rng(0)
    for artifact in (classifier(), regressor(), classifier(labels=np.array(["ja", "nein"]))):
        for i in range(len(artifact.data)):
            data = bytearray(artifact.data)
            data[i] ^= int(rng.integers(1, 256))
            mutated = sealed(data) if i not in range(FILE_BYTES, CHECKSUM + 4) else bytes(data)
            if LABEL_DTYPE <= i < LABEL_DTYPE + 16:
                continue
            try:
                Artifact(mutated)
            except ArtifactError:
                with pytest.raises(ArtifactError):
                    _native.Predictor(mutated)


# --- round trips ---


@pytest.mark.parametrize(
    "labels",
    [
        np.array([3, -4], np.int8),
        np.array([2**62 + 1, -(2**63)], np.int64),
        np.array([0, 255], np.uint8),
        np.array([2**63 - 1, 0], np.uint64),
        np.array([True, False]),
        np.array([0.1, -1e30], np.float32),
        np.array([0.1, -1e300], np.float64),
        np.array([0.5, 2], np.float16),
        np.array([1, 2], ">i4"),
        np.array(["größer", ""], "<U9"),
        np.array(["a", "b" * 300]),
        np.array(["日本", "a\0"], dtype=object),
    ],
    ids=lambda labels: labels.dtype.str,
)
def test_labels_survive(labels: npt.NDArray[Any], tmp_path: Path) -> None:
    artifact = classifier(labels=labels)
    artifact.write(tmp_path / "model.asvm")
    back = Artifact.read(tmp_path / "model.asvm").labels
    assert back.dtype == labels.dtype
    assert back.tolist() == labels.tolist()
    assert [type(label) for label in back.tolist()] == [type(label) for label in labels.tolist()]


@pytest.mark.parametrize(
    "labels",
    [
        np.array([2**63, 0], np.uint64),
        np.array([1j, 2]),
        np.array([b"a", b"b"]),
        np.array([1, "a"], dtype=object),
        np.array([0.5, INF]),
        np.array(["\ud800", "b"]),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_labels_that_cannot_be_stored(labels: npt.NDArray[Any]) -> None:
    with pytest.raises(UnsupportedModelError, match="labels"):
        classifier(labels=labels)


@pytest.mark.parametrize("names", [("größe", "日本語", "\U0001f600"), ("", "", ""), ("a" * 5000, "same", "same"), None])
def test_feature_names_survive(names: tuple[str, ...] | None, tmp_path: Path) -> None:
    artifact = classifier(feature_names=names)
    artifact.write(tmp_path / "model.asvm")
    assert Artifact.read(tmp_path / "model.asvm").feature_names == names


def test_source_is_cut_between_characters() -> None:
    assert classifier(source="libsvm c_svc").source == "libsvm c_svc"
    assert classifier(source="a" * 31 + "é").source == "a" * 31


def test_copies_are_equal() -> None:
    artifact = classifier()
    for twin in (
        pickle.loads(pickle.dumps(artifact)),
        copy.copy(artifact),
        copy.deepcopy(artifact),
        Artifact(artifact.data),
    ):
        assert twin == artifact
        assert hash(twin) == hash(artifact)
        assert twin.labels.tolist() == artifact.labels.tolist()
    assert artifact != regressor()
    assert artifact != artifact.data


def test_a_pickle_is_validated() -> None:
    stream = bytearray(pickle.dumps(classifier()))
    stream[stream.index(b"\x89ASVM") + 90] ^= 1
    with pytest.raises(ArtifactError, match="checksum"):
        pickle.loads(bytes(stream))


def test_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "not a model.asvm"
    path.write_bytes(b"svm_type c_svc\n")
    with pytest.raises(ArtifactError, match=r"not a model\.asvm: not an approxsvm artifact"):
        Artifact.read(path)
    with pytest.raises(FileNotFoundError, match="missing"):
        approxsvm.load(tmp_path / "missing.asvm")


# --- writing ---


@pytest.mark.parametrize("broken", ["fsync", "replace", "chmod"])
def test_a_failing_write_leaves_no_trace(broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.asvm"
    path.write_bytes(b"before")

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, broken, fail)
    with pytest.raises(OSError, match="No space"):
        classifier().write(path)
    monkeypatch.undo()
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["model.asvm"]


def test_write_replaces_and_cannot_replace_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "model.asvm"
    path.write_bytes(b"before")
    artifact = classifier()
    artifact.write(path)
    assert path.read_bytes() == artifact.data
    (tmp_path / "folder.asvm").mkdir()
    with pytest.raises(OSError, match="folder"):
        artifact.write(tmp_path / "folder.asvm")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        artifact.write(tmp_path / "nowhere" / "model.asvm")
    assert sorted(os.listdir(tmp_path)) == ["folder.asvm", "model.asvm"]


def test_write_obeys_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        classifier().write(tmp_path / "model.asvm")
    finally:
        os.umask(before)
    assert (tmp_path / "model.asvm").stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_write_into_a_read_only_folder(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "model.asvm").write_bytes(b"before")
    folder.chmod(0o500)
    try:
        with pytest.raises(PermissionError):
            classifier().write(folder / "model.asvm")
        assert os.listdir(folder) == ["model.asvm"]
        assert (folder / "model.asvm").read_bytes() == b"before"
    finally:
        folder.chmod(0o700)


# --- contents ---


@pytest.mark.parametrize("d", [*range(1, 26), 63, 64, 65, 130])
def test_unpack_triangle_undoes_packing(d: int) -> None:
    matrix = np.random.default_rng(d).integers(-100, 100, (d, d)).astype(np.float64)
    matrix = matrix + matrix.T
    packed = artifacts._pack_triangle(matrix)
    assert packed.shape == (d * (d + 1) // 2,)
    assert (artifacts.unpack_triangle(packed.astype(np.float32), d) == matrix).all()
    position = 0  # the order as the format says it, entry by entry
    for first in range(0, d, 8):
        for column in range(first, d):
            for row in range(first, min(first + 8, column + 1)):
                assert packed[position] == matrix[row, column] * (1 if row == column else 2)
                position += 1


@pytest.mark.parametrize("task", ["classification", "regression", "one_class"])
@pytest.mark.parametrize("d", [*range(1, 21), 257])
def test_check_rows_replay(d: int, task: str, target: str) -> None:
    """The same synthetic rows, bit for bit: otherwise the values would be far apart."""
    for seed, (gamma, scale, shift) in enumerate([(0.5 / d, 1.0, 0.0), (1e-6, 100.0, 1e4), (50.0, 0.05, -3.0)]):
        model = random_model(seed, n_features=d, gamma=gamma, task=task)
        vectors = np.asarray(model.support_vectors) * scale + shift
        artifact = compile_model(
            random_model(seed, n_features=d, gamma=gamma, task=task, support_vectors=vectors)
        ).artifact
        assert _native.Predictor(artifact.data).target == target


@pytest.mark.parametrize("exponent", [-200, -199, -100, -1, 0, 1, 100, 199, 200])
def test_extreme_gamma(exponent: int, target: str) -> None:
    gamma = 2.0**exponent
    vectors = np.random.default_rng(1).normal(size=(40, 7)) * 0.05 / np.sqrt(gamma)
    model = random_model(1, gamma=gamma, support_vectors=vectors, task="regression")
    compiled = compile_model(model)
    assert 1.0 <= 2.0 * gamma / compiled.artifact.header["input_scale"] ** 2 < 4.0
    exact = reference.decision_function(model, vectors)[:, 0]
    assert np.abs(compiled.predict(vectors) - exact).max() < 1e-3 * np.abs(model.dual_coef).sum()


@pytest.mark.parametrize("gamma", [5e-324, 1e-300, 2.0**-202, 2.0**202, 1e100, 1e154, 1e200, 1.7e308])
@pytest.mark.parametrize("scale", [1.0, 1e-30])
def test_gamma_beyond_the_format(gamma: float, scale: float) -> None:
    vectors = np.random.default_rng(1).normal(size=(40, 7)) * scale
    with pytest.raises(UnsupportedModelError, match="gamma is"):
        compile_model(random_model(1, gamma=gamma, support_vectors=vectors))


def test_gamma_zero_is_a_constant(target: str) -> None:
    compiled = compile_model(random_model(1, gamma=0.0, task="regression"))
    rows = np.array([[0.0] * 7, [1e30] * 7, [1e300] * 7, [-1.0] * 7])
    model = random_model(1, gamma=0.0, task="regression")
    np.testing.assert_allclose(compiled.predict(rows), model.dual_coef.sum() + model.intercept[0], rtol=1e-12)


@pytest.mark.parametrize(
    ("size", "gamma"),
    [
        *((size, 0.1) for size in (1e-300, 1e-200, 1e-100, 1e-30, 1e30, 1e100, 1e200, 1e300)),
        *((size, gamma) for size in (1e-200, 1e-100, 1e100, 1e150) for gamma in (2.0**-200, 2.0**200)),
    ],
)
def test_extreme_coefficients(size: float, gamma: float) -> None:
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(40, 7)) * 0.05 / np.sqrt(gamma)
    changes = {"support_vectors": vectors, "dual_coef": rng.normal(size=(1, 40)) * size, "intercept": np.zeros(1)}
    model = random_model(2, gamma=gamma, task="regression", **changes)
    exact = reference.decision_function(model, vectors)[:, 0]
    error = np.abs(compile_model(model).predict(vectors) - exact).max()
    assert error < 1e-3 * np.abs(model.dual_coef).sum()


@pytest.mark.parametrize("size", [2.0**1000, 1e302, 1e305, 1.7e308])
def test_coefficients_beyond_the_format(size: float) -> None:
    with pytest.raises(UnsupportedModelError, match="too large"):
        compile_model(random_model(3, task="regression", dual_coef=np.full((1, 40), size)))


def test_no_support_vectors_is_a_constant() -> None:
    changes = {"support_vectors": np.empty((0, 7)), "dual_coef": np.empty((1, 0)), "intercept": np.array([1.5])}
    compiled = compile_model(random_model(3, task="regression", **changes))
    assert (compiled.predict(np.ones((3, 7))) == 1.5).all()

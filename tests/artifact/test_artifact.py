"""The .asvm format: what breaks a MUST is refused, what the reader accepts can be looked at and is replayed."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from artifact_changes import (
    CHECK_ROWS,
    CHECKSUM,
    DUAL_COEF,
    EXACT_CHECK_ROWS,
    FILE_BYTES,
    HIGHER,
    LABEL_DTYPE,
    LINEAR,
    MODES,
    OUTPUTS,
    QUADRATIC,
    SUPPORT_VECTORS,
    changed,
    classifier,
    content,
    cosines,
    deep,
    field,
    many_centers,
    number,
    polynomial,
    refused,
    regressor,
    sealed,
    section,
)
from broken_artifacts import SOURCES, Broken, all_broken, scaled_classes
from conftest import REPOSITORY

from approxsvm import Artifact, ArtifactError, _native
from approxsvm.artifact.input_map import pack_input_map, unpack_input_map
from approxsvm.artifact.outputs import pack_outputs
from approxsvm.errors import UnsupportedModelError
from approxsvm.model.input_map import InputMap
from approxsvm.model.outputs import Outputs


@pytest.mark.parametrize(
    ("source", "arguments"), SOURCES, ids=[f"{s.__name__}-{k}" for k, (s, _) in enumerate(SOURCES)]
)
def test_must(source: Callable[..., Broken], arguments: tuple[Any, ...]) -> None:
    for _, data, said in source(*arguments):
        refused(data, *said)


def test_every_must_of_the_format_is_broken() -> None:
    """But for replayed check rows, which are below."""
    text = (REPOSITORY / "models" / "FORMAT.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\[([a-z_]+)\]", text)) - {"check_row_value", "exact_check_row_value"}
    assert named == {name for name, _, _ in all_broken()}


@pytest.mark.parametrize("name", [b"<U536870911", b"<U100000000", b"(99999999,)U1", b"(999999999,)U1"])
def test_label_dtype_does_not_allocate_what_it_claims(name: bytes) -> None:
    resource = pytest.importorskip("resource")
    data = changed(field(LABEL_DTYPE, "16s", name), classifier(labels=np.array(["yes", "no"])))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ArtifactError, match="label_dtype"):
        Artifact(data)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KiB


def test_an_input_map_comes_back_as_it_was() -> None:
    first, second = scaled_classes().input_map, InputMap.identity(4).then_affine(divide=[1.0, 2, 3, 4])
    assert first is not None
    for whole in (first, second):
        packed = pack_input_map(whole)
        assert pack_input_map(unpack_input_map(packed)) == packed
    rows = np.random.default_rng(0).normal(size=(5, first.n_raw_features))
    again = unpack_input_map(pack_input_map(first))
    np.testing.assert_array_equal(again.apply(rows), first.apply(rows))


def test_targets_of_one_column_come_back() -> None:
    column = Artifact(changed(content({OUTPUTS: pack_outputs(Outputs(is_column=True))}), regressor()))
    assert column.outputs.is_column


def test_labels_beyond_int64_are_their_digits() -> None:
    labels = np.array([2**63, 2**64 - 1], np.uint64)
    for dtype in ("<u8", ">u8"):
        artifact = classifier(labels=labels.astype(dtype))
        assert artifact.section("labels").endswith(b"922337203685477580818446744073709551615")
        again = Artifact(artifact.data).labels
        assert (again.dtype, again.tolist()) == (np.dtype(dtype), labels.tolist())
    with pytest.raises(UnsupportedModelError, match=f"of dtype {np.dtype(np.longdouble)} .* at most 64 bits"):
        classifier(labels=np.array([1, 2], np.longdouble))


def is_replayed(data: bytes) -> bool:
    said = ""
    try:
        _native.Predictor(data)
    except ArtifactError as error:
        said = str(error)
    assert said == "" or "check row" in said
    return said == ""


def refused_by_replay(data: bytes) -> None:
    """Well-formed, but of other values: only the native reader replays."""
    Artifact(data)
    assert not is_replayed(data)


def wide(mode: Any, d: int) -> Artifact:
    return classifier(mode, n_features=d, gamma=1.8 / d, feature_names=None)


def turned_round(artifact: Artifact, identifier: int, limit: float, step: int = 1) -> Iterator[bytes]:
    """The artifact with one coefficient of a section after the other at the other end of what it may be."""
    coefficients = np.frombuffer(section(artifact, identifier), "<f4")
    for k in range(0, len(coefficients), step):
        yield changed(number(identifier, k, "f", -limit if coefficients[k] > 0 else limit), artifact)


@pytest.mark.parametrize("d", [1, 3, 8, 20, 130])
@pytest.mark.parametrize("mode", ["approximate", "certified"])
def test_must_check_row_value(mode: str, d: int, target: str) -> None:
    artifact = wide(mode, d)
    assert _native.Predictor(artifact.data).target == target
    taken = []
    for identifier, limit in ((LINEAR, 1.0), (QUADRATIC, 2.0)):
        step = 1 + len(section(artifact, identifier)) // 200
        for data in turned_round(artifact, identifier, limit, step):
            Artifact(data)
            taken.append(is_replayed(data))
    # Among many features one coefficient may count less than the roundings of all.
    assert sum(taken) <= (len(taken) / 25 if d > 20 else 0)
    for amplitude in (1e300, 1e38, 0.3):
        refused_by_replay(changed(number(CHECK_ROWS, 0, "d", amplitude), artifact))
    for k, value in enumerate(artifact.check_rows()[:, 1]):
        refused_by_replay(changed(number(CHECK_ROWS, 3 * k + 1, "d", value + 0.01), artifact))


@pytest.mark.parametrize("degree", [3, 4, 5, 6])
def test_check_rows_reach_every_degree(degree: int, target: str) -> None:
    for data in turned_round(classifier("approximate", degree=degree, n_features=2, feature_names=None), HIGHER, 720.0):
        refused_by_replay(data)


def test_check_rows_reach_their_centers(target: str) -> None:
    artifact = many_centers("approximate")
    n_rows, n_centers = len(artifact.check_rows()), artifact.n_centers
    reached = {k * n_centers // n_rows for k in range(n_rows)}
    assert 1 < len(reached) < n_centers
    for c in range(n_centers):
        data = changed(number(LINEAR, 3 * c, "f", -1.0), artifact)
        assert is_replayed(data) == (c not in reached)


@pytest.mark.parametrize("d", [1, 3, 8, 20])
@pytest.mark.parametrize("mode", ["certified", "exact"])
def test_must_exact_check_row_value(mode: str, d: int, target: str) -> None:
    artifact = wide(mode, d)
    assert _native.Predictor(artifact.data).target == target
    for k, value in enumerate(artifact.check_rows("exact_check_rows")[:, 1]):
        for error in (0.01, -1e-8, 1e300):
            refused_by_replay(changed(number(EXACT_CHECK_ROWS, 3 * k + 1, "d", value + error), artifact))
    for k, coefficient in enumerate(artifact.dual_coef()[0]):
        refused_by_replay(changed(number(DUAL_COEF, k, "d", coefficient * 1.001), artifact))
    packed = section(artifact, SUPPORT_VECTORS)
    for k in range(6 * d):  # float64 behind a header of 24 bytes
        value = struct.unpack_from("<d", packed, 24 + 8 * k)[0]
        refused_by_replay(changed(number(SUPPORT_VECTORS, 3 + k, "d", value + 0.25), artifact))


@pytest.mark.parametrize("artifact", [*map(polynomial, MODES), cosines()], ids=[*MODES, "cosines"])
def test_must_exact_check_row_value_of_other_kernels(artifact: Artifact, target: str) -> None:
    assert is_replayed(artifact.data)
    value = artifact.check_rows("exact_check_rows")[1, 1]
    refused_by_replay(changed(number(EXACT_CHECK_ROWS, 4, "d", value + 1e-3), artifact))


# --- bytes that nobody meant ---


@pytest.mark.parametrize("mode", MODES)
def test_truncated_at_every_byte(mode: str) -> None:
    data = classifier(mode).data
    for n in range(len(data)):
        refused(data[:n])
        if n >= 192:
            with pytest.raises(ArtifactError):
                Artifact(sealed(bytearray(data[:n])))


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_corrupt_bytes_are_refused_or_read(mode: str) -> None:
    """Nothing but ArtifactError comes out, and whatever is accepted can be looked at."""
    rng = np.random.default_rng(0)
    n_taken = 0
    others = () if mode == "exact" else (deep(mode), many_centers(mode))
    for artifact in (classifier(mode), regressor(mode), classifier(mode, labels=np.array(["ja", "nein"])), *others):
        for i in range(0, len(artifact.data), 1 if len(artifact.data) < 5000 else 3):
            data = bytearray(artifact.data)
            data[i] ^= int(rng.integers(1, 256))
            mutated = sealed(data) if i not in range(FILE_BYTES, CHECKSUM + 4) else bytes(data)
            try:
                found = Artifact(mutated)
            except ArtifactError:
                continue
            assert len(found.labels) == found.header["n_labels"]
            assert (found.feature_names, found.outputs, found.input_map, found.plan, found.source) is not None
            assert found.support_vectors().shape[1] == found.n_features
            n_taken += 1
    assert n_taken > 100

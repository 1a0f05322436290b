"""Packed support vectors: every number is restored from few bytes, and the reader rejects every rule violation."""

from __future__ import annotations

import struct
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from artifact_changes import changed, classifier, content
from broken_artifacts import packings, with_section
from conftest import random_model
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csr_array

from approxsvm import Artifact, KernelModel
from approxsvm.artifact import packing
from approxsvm.compiler import compile as compile_model
from approxsvm.ir.schema import record
from approxsvm.reference.definition import definition_of

DENSE, CSR, RELATIVE = range(3)
FLOAT64, FLOAT32, CODES8, CODES16 = range(4)
HEADER = record("support_vectors")


def model_of(vectors: Any) -> KernelModel:
    n_sv = vectors.shape[0]
    return random_model(0, n_sv=n_sv, task="regression", support_vectors=vectors, dual_coef=np.ones((1, n_sv)))


@cache
def artifact_of_width(n_features: int) -> Artifact:
    return compile_model(model_of(csr_array(np.eye(2, n_features))), mode="exact").artifact


def artifact_with(data: bytes, n_sv: int, n_features: int) -> bytes:
    """Return an exact artifact whose support-vector section has these contents."""
    coefficients = {"dual_coef": bytes(8 * n_sv), "exact_check_rows": struct.pack("<3d", 0.0, 0.0, 1e300)}
    return changed(content({"support_vectors": data, **coefficients}), artifact_of_width(n_features))


def packed(vectors: Any) -> bytes:
    return packing.pack(model_of(vectors))


def kind_of(data: bytes) -> tuple[int, int]:
    """Return the storage and value kind."""
    return struct.unpack_from("<II", data)


def check_round_trip(vectors: npt.NDArray[np.float64]) -> None:
    n_sv, d = vectors.shape
    for form in (vectors, csr_array(vectors)):
        data = packed(form)
        back = packing.unpack(data, n_sv, d)
        assert back.dtype == np.float64
        assert back.shape == vectors.shape
        assert (back == vectors).all()  # -0.0 equals 0.0
        assert len(data) <= HEADER.size + 8 * vectors.size
        assert len(data) % 8 == 0
        assert (Artifact(artifact_with(data, n_sv, d)).support_vectors() == vectors).all()


# --- round trips ---

LIMITS = [0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1e308, -1.7976931348623157e308, 1.0, 2.0**-149, 3.4e38]
NUMBERS = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(LIMITS), st.just(0.0))
SHAPES = hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=12)


@settings(max_examples=60, deadline=None)
@given(vectors=hnp.arrays(np.float64, SHAPES, elements=NUMBERS, fill=st.just(0.0)))
@example(vectors=np.array([LIMITS]))
@example(vectors=np.array([LIMITS]).T)
def test_any_numbers_come_back(vectors: npt.NDArray[np.float64]) -> None:
    check_round_trip(vectors)


@settings(max_examples=30, deadline=None)
@given(
    vectors=hnp.arrays(np.float64, SHAPES, elements=st.floats(allow_nan=False, allow_infinity=False, width=32)),
    n_distinct=st.integers(1, 5),
)
def test_narrow_numbers_come_back(vectors: npt.NDArray[np.float64], n_distinct: int) -> None:
    check_round_trip(vectors)
    few = vectors.ravel()[:n_distinct]
    check_round_trip(np.resize(few, vectors.shape))


@pytest.mark.parametrize("d", [1, 2, 7, 8, 255, 256, 257, 65535, 65536])
@pytest.mark.parametrize("density", [0.0, 0.02, 0.5, 1.0])
def test_any_number_of_columns(d: int, density: float) -> None:
    rng = np.random.default_rng(d)
    n_sv = 9 if d < 1000 else 3
    for numbers in (rng.normal(size=(n_sv, d)), rng.integers(-3, 4, (n_sv, d)).astype(float)):
        numbers[rng.random((n_sv, d)) >= density] = 0.0
        numbers[-1, -1] = 1.0  # the last column is used
        check_round_trip(numbers)
        check_round_trip(np.vstack((numbers, np.ones(d))))  # a row with as many values as columns


@pytest.mark.parametrize("d", [1, 255, 256, 65536])
def test_no_support_vectors(d: int) -> None:
    check_round_trip(np.empty((0, d)))


def test_unsorted_columns_are_put_in_order() -> None:
    # Column 3 comes before 1; a stored zero is dropped.
    untidy = csr_array((np.array([4.0, 3.0, 0.0]), np.array([3, 1, 0]), np.array([0, 2, 3])), shape=(2, 900))
    expected = np.zeros((2, 900))
    expected[0, [1, 3]] = 3.0, 4.0
    data = packed(untidy)
    assert (packing.unpack(data, 2, 900) == expected).all()
    assert struct.unpack_from("<Q", data, 16) == (2,)
    assert untidy.indices.tolist() == [3, 1, 0]  # the model is unchanged


def test_numbers_that_leave_room_become_narrow() -> None:
    """Each encoding is chosen where it is the shortest, and the native engine's decision values are the same."""
    rng = np.random.default_rng(1)
    shape = (120, 90)
    wide = rng.normal(size=shape)
    choices = {
        FLOAT64: wide,
        FLOAT32: wide.astype(np.float32).astype(np.float64),
        CODES8: rng.choice(rng.normal(size=200), shape),
        CODES16: rng.choice(rng.normal(size=700), shape),
    }
    for kind, numbers in choices.items():
        for storage, vectors in ((DENSE, numbers), (CSR, np.where(rng.random(shape) < 0.3, numbers, 0.0))):
            expected = FLOAT64 if (storage, kind) == (CSR, FLOAT64) else kind
            data = packed(vectors)
            assert kind_of(data) == (storage, expected)
            check_round_trip(vectors)
            model = random_model(2, n_sv=120, n_features=90, gamma=0.01, task="regression", support_vectors=vectors)
            compiled = compile_model(model, mode="exact")
            rows = rng.normal(size=(50, 90))
            error = np.abs(compiled.predict(rows) - definition_of(model).values(rows)[:, 0]).max()
            assert error <= 2.0 * compiled.artifact.header["tolerance"]


def test_one_number_takes_no_bytes() -> None:
    assert packed(np.full((50, 40), 0.1)) == HEADER.pack(DENSE, CODES8, 0, 1, 2000) + struct.pack("<d", 0.1)
    ones = np.zeros((50, 300))
    ones[np.arange(50), np.arange(50)] = 1.0
    header = HEADER.pack(CSR, CODES8, 2, 1, 50) + struct.pack("<d", 1.0)
    assert len(packed(ones)) == len(header) + 104 + 104  # 50 counts and 50 columns, two bytes each, padded


def test_as_many_codes_as_there_are() -> None:
    for n, kind in ((256, CODES8), (257, CODES16), (65536, CODES16)):
        distinct = np.random.default_rng(n).permutation(n) + 0.1  # not float32
        vectors = np.stack([np.roll(distinct, k) for k in range(4)])
        assert kind_of(packed(vectors)) == (DENSE, kind)
        check_round_trip(vectors)
    many = np.stack([np.roll(np.arange(65537.0) + 0.1, k) for k in range(4)])
    assert kind_of(packed(many)) == (DENSE, FLOAT64)
    check_round_trip(many)


def one_hot(rng: np.random.Generator, n_sv: int) -> npt.NDArray[np.float64]:
    """Return four one-hot categories, standardized."""
    columns = [np.eye(k)[rng.integers(0, k, n_sv)] for k in (5, 7, 9, 11)]
    vectors: npt.NDArray[np.float64] = np.hstack(columns)
    return (vectors - vectors.mean(axis=0)) / vectors.std(axis=0)


def test_categories_are_stored_relative_to_the_most_frequent() -> None:
    rng = np.random.default_rng(5)
    vectors = one_hot(rng, 300)
    data = packed(vectors)
    assert kind_of(data)[0] == RELATIVE
    assert struct.unpack_from("<Q", data, 16) == (4 * 300,)  # one value of each category differs
    assert len(data) < 300 * 32 / 2
    check_round_trip(vectors)
    # This storage is not used if most values differ, or if the reference is far from the vectors.
    assert kind_of(packed(np.hstack([vectors, rng.normal(size=(300, 64))])))[0] == DENSE
    far = np.where(rng.random((300, 40)) < 0.03, 1e4, 0.0)
    far[:, 0], far[0, 0] = 1e6, 0.0
    assert kind_of(packed(far))[0] == RELATIVE
    far[:150, 0] = 0.0
    far[150:, 0] = 1e6 + rng.normal(size=150)
    assert kind_of(packed(far))[0] != RELATIVE


# --- accepted sections; tests/broken_artifacts.py has rejected ones ---


def test_every_storage_of_every_kind_of_values_is_read() -> None:
    for content_of, vectors in packings():
        artifact = with_section(classifier("exact"), "support_vectors", content_of)
        assert (artifact.support_vectors() == vectors).all()


@pytest.mark.parametrize("storage", [DENSE, CSR])
def test_a_small_section_does_not_make_a_large_array(storage: int) -> None:
    """A reader checks a file without unpacking the vectors."""
    resource = pytest.importorskip("resource")
    n_sv, d = 2**17, 2**16
    if storage == DENSE:
        data = HEADER.pack(DENSE, CODES8, 0, 1, n_sv * d) + struct.pack("<d", 0.5)
    else:
        data = HEADER.pack(CSR, FLOAT64, 4, 0, 0) + bytes(4 * n_sv)
    large = changed(content({"dual_coef": bytes(8 * n_sv), "support_vectors": data}), artifact_of_width(d))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    artifact = Artifact(large)
    assert artifact.dual_coef().shape == (1, n_sv)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB

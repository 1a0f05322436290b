"""Small artifacts of every mode, functions that change them in one place, and checks of the reader's response."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from conftest import random_model

from approxsvm import Artifact, ArtifactError, KernelModel, _native
from approxsvm.artifact.polynomials import build_polynomial
from approxsvm.artifact.terms import build_terms
from approxsvm.compiler import compile as compile_model
from approxsvm.expansion.polynomial_form import sum_up
from approxsvm.ir.cosine_model import CosineModel
from approxsvm.ir.outputs import Outputs
from approxsvm.ir.plan import Plan
from approxsvm.ir.schema import SECTION_IDS, offset_of

# Header fields that every change must correct.
FILE_BYTES, CHECKSUM, N_SECTIONS = (offset_of("header", name) for name in ("file_bytes", "checksum", "n_sections"))
INF = float("inf")
MODES = ("approximate", "certified", "exact")

Change = Callable[[bytearray], Any]


def compiled(model: KernelModel, mode: Any = "certified", *, degree: int = 2, n_centers: int = 1) -> Artifact:
    """Return an artifact with the given expansion, even if it is not worthwhile."""
    rows = np.random.default_rng(0).normal(size=(200, model.n_features))
    forced: dict[str, Any] = {} if mode == "exact" else {"degree": degree, "n_centers": n_centers, "X": rows}
    return compile_model(model, mode=mode, **forced).artifact


def classifier(mode: Any = "certified", *, degree: int = 2, n_centers: int = 1, **changes: Any) -> Artifact:
    """Return a model with three named features, labels 1 and -1; gamma 0.6 gives input_scale 1, 2 gamma / 1^2 = 1.2."""
    arguments: dict[str, Any] = {"n_features": 3, "n_sv": 6, "gamma": 0.6, "feature_names": ("länge", "b", "")}
    return compiled(random_model(5, **(arguments | changes)), mode, degree=degree, n_centers=n_centers)


def many_centers(mode: Any = "certified") -> Artifact:
    """Return a model with 20 centers in four or five groups."""
    return classifier(mode, n_centers=20)


def deep(mode: Any = "certified") -> Artifact:
    """Return a model with one center and degree 4."""
    return classifier(mode, degree=4)


def regressor(mode: Any = "certified") -> Artifact:
    return compiled(random_model(5, n_features=3, n_sv=6, gamma=0.6, task="regression"), mode)


def polynomial(mode: Any = "certified", degree: int = 2) -> Artifact:
    """Return a model with three features, two labels and, in some modes, a form."""
    model = replace(random_model(5, n_features=3, n_sv=9, gamma=0.6), degree=degree, coef0=0.5)
    if mode == "approximate":
        return compile_model(model, mode=mode).artifact
    return build_polynomial(model, mode, sum_up(model) if mode == "certified" else None)


def sigmoid() -> Artifact:
    return build_polynomial(
        replace(random_model(5, n_features=3, n_sv=9, gamma=0.6), is_sigmoid=True, coef0=0.5), "exact"
    )


def cosine_model() -> CosineModel:
    """Return a model with four cosines of three features, and two labels."""
    rng = np.random.default_rng(5)
    return CosineModel(
        "classification",
        frequencies=rng.normal(size=(4, 3)),
        phases=rng.uniform(0, 6, 4),
        coef=rng.normal(size=4),
        intercept=np.ones(1),
        labels=np.array([1, -1]),
        feature_names=("a", "b", "c"),
    )


def cosines() -> Artifact:
    return build_terms(cosine_model(), plan=Plan("exact", kernel="cosine", reason="because"))


def cosines_of_classes() -> Artifact:
    """Return a model with one function for each of four labels."""
    rng = np.random.default_rng(6)
    several = {"coef": rng.normal(size=(4, 4)), "intercept": np.ones(4), "value_error": np.zeros(4)}
    outputs = Outputs(label_rule="scores", decision_shape="each")
    return build_terms(replace(cosine_model(), labels=np.arange(4), outputs=outputs, **several))


def sealed(data: bytearray) -> bytes:
    """Correct file_bytes and checksum, so that the reader finds the change itself."""
    struct.pack_into("<Q", data, FILE_BYTES, len(data))
    return resealed(data)


def resealed(data: bytes | bytearray) -> bytes:
    """Correct only the checksum."""
    content = bytearray(data)
    struct.pack_into("<I", content, CHECKSUM, 0)
    struct.pack_into("<I", content, CHECKSUM, zlib.crc32(content))
    return bytes(content)


def with_header(data: bytes, **numbers: Any) -> bytes:
    """Return the artifact with other numbers in its header."""
    codes = {name: f"<{n}{code}" for name, code, n in _native.schema()["records"]["header"]}
    content_of = bytearray(data)
    for name, value in numbers.items():
        struct.pack_into(codes[name], content_of, offset_of("header", name), value)
    return resealed(content_of)


def entries(data: bytes | bytearray) -> dict[str, tuple[int, int]]:
    """Return the start and size of each section."""
    names = {identifier: name for name, identifier in SECTION_IDS.items()}
    table = data[192 : 192 + 24 * struct.unpack_from("<I", data, N_SECTIONS)[0]]
    return {names[identifier]: (offset, size) for identifier, _, offset, size in struct.iter_unpack("<IIQQ", table)}


def number(section: str, position: int, code: str, value: float) -> Change:
    size = struct.calcsize(code)
    return lambda data: struct.pack_into("<" + code, data, entries(data)[section][0] + size * position, value)


def content(changes: dict[str, bytes | None]) -> Change:
    """Return a change that sets or removes (None) sections, laid out as the format requires."""

    def change(data: bytearray) -> None:
        parts: dict[str, bytes | None] = {
            name: bytes(data[offset : offset + size]) for name, (offset, size) in entries(data).items()
        }
        found = {SECTION_IDS[name]: part for name, part in (parts | changes).items() if part is not None}
        offset, table, body = 192 + 24 * len(found), b"", b""
        for identifier, part in sorted(found.items()):
            start = -(-offset // 64) * 64
            table += struct.pack("<IIQQ", identifier, 0, start, len(part))
            body += bytes(start - offset) + part
            offset = start + len(part)
        struct.pack_into("<I", data, N_SECTIONS, len(found))
        data[192:] = table + body + bytes(-offset % 64)

    return change


def changed(change: Change, artifact: Artifact | None = None) -> bytes:
    data = bytearray((artifact or classifier()).data)
    change(data)
    return sealed(data)


# An error message: the invalid number, its section, and the expected value.
REFUSAL = re.compile(
    r".+ (is|has) \S+.*, expected \S+.*"
    r"|.*section \w+ is (found in|missing from) a \w+ artifact of mode \w+ and kernel \w+"
)


def refused(data: bytes, *parts: str) -> None:
    """Assert that the reader rejects the bytes with a message that contains these parts."""
    with pytest.raises(ArtifactError) as refusal:
        Artifact(data)
    message = str(refusal.value)
    assert REFUSAL.fullmatch(message), message
    for part in parts:
        assert part in message, message

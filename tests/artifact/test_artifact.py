"""The .asvm format: a file that violates a MUST is rejected; an accepted file can be inspected and replayed."""

from __future__ import annotations

import math
import random
import re
import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from artifact_changes import (
    MODES,
    REFUSAL,
    changed,
    classifier,
    content,
    cosines,
    many_centers,
    number,
    polynomial,
    regressor,
)
from broken_artifacts import READ, Broken, all_broken, maps
from conftest import REPOSITORY

from approxsvm import ApproxSVMError, Artifact, ArtifactError, Predictor, _native
from approxsvm.artifact.input_map import unpack_input_map
from approxsvm.artifact.outputs import pack_outputs
from approxsvm.errors import UnsupportedModelError
from approxsvm.ir.outputs import Outputs

# The wording of a message for each kind of expectation.
EXPECTATIONS: dict[str, Callable[..., bool]] = {
    "# to below #": lambda x, low, high: low <= x < high,
    "# to #": lambda x, low, high: low <= x <= high,
    "at least #": lambda x, low: x >= low,
    "more than #": lambda x, low: x > low,
    "a finite number": math.isfinite,
    "a finite number of at least #": lambda x, low: low <= x < math.inf,
    "a number": lambda x: not math.isnan(x),
    "a number above #": lambda x, low: x > low,
    "any number but #": lambda x, other: x != other,
    "a multiple of #": lambda x, factor: x % factor == 0,
    "a power of two from 2^# to 2^#": lambda x, low, high: 2.0**low <= x <= 2.0**high and math.frexp(x)[0] == 0.5,
    "0 or a modulus from 2^# to 2^#": lambda x, low, high: x == 0 or 2.0**low <= abs(x) <= 2.0**high,
    "#": lambda x, expected: x == expected,
}
NUMBER = r"-?\b(?:\d+(?:\.\d+)?(?:e[-+]?\d+)?|inf|nan)\b"
# Messages, by section, for rules that involve several numbers, so that no single number's rule covers them.
RELATIONS = """
categories: bytes, #; bytes, at least #; column #, #; end of text #, #; n_texts, #; text #, above text #
center: bytes, #; number #, #
centers: bytes, #; bytes, at least #
check_rows: bytes, # to #; bytes, a multiple of #
class_counts: bytes, #; bytes, at least #; sum, #
combination: bytes, at least #
cosines: bytes, a multiple of #; bytes, at least #
decisions: bytes, #; bytes, at least #; intercept #, #
direction: bytes, #; bytes, at least #
dual_coef: bytes, a multiple of #
exact_check_rows: bytes, # to #; bytes, a multiple of #
expansions: bytes, #; bytes, at least #
feature_names: bytes, #; bytes, at least #
header: identifier of table entry #, #; label_kind, at least #; n_labels, at least #; the file bytes, at least #
higher: bytes, #; bytes, at least #
input_map: bytes, #; bytes, at least #; column #, #; factor #, #; high #, at least #; n_ops, # to #; number of features
    at the end, #; parts, #
labels: bytes, #; bytes, at least #; label # is text #, another than label #; label #, another than label #;
    label #, one of the ensemble's; size of text #, #
linear: bytes, #; bytes, at least #
majority_classes: bytes, #; bytes, at least #
members: bytes, at least #
outputs: bytes, #; bytes, at least #; calibration_shape, #; calibration_shape, # to #; density mark #,
    at least #; knot #, more than #; label_rule, #; label_rule, at least #; missing; n_calibrators, #; positive, #;
    positive, # to #; probability, #; slope before knot #, # to #
polynomial: bytes, #; bytes, at least #
speculation: bytes, #; bytes, at least #
quadratic: bytes, #; bytes, at least #
router: bytes, #; bytes, at least #; start #, # to #
subspaces: bytes, #; bytes, at least #; coefficient #, the sign of #, which is in the same list
support_vectors: bytes, #; bytes, at least #; n_values, # to #; sum of the counts up to vector #, # to #; sum, #
varying: bytes, # to #; bytes, a multiple of #; number #, #
"""


def number_in(text: str) -> float:
    return int(text) if text.isdigit() else float(text)


def contradicts_itself(said: str) -> bool:
    """Return whether the reported number satisfies the stated expectation after all."""
    message = re.fullmatch(rf".* (?:is|has) ({NUMBER})(?: bytes)?, expected ([^:]*)(:.*)?", said)
    for words, allows in EXPECTATIONS.items() if message else ():
        expected = re.fullmatch(re.escape(words).replace(r"\#", f"({NUMBER})"), message[2])
        if expected:
            return allows(*map(number_in, (message[1], *expected.groups())))
    return False


def kind_of(said: str) -> tuple[str, str]:
    """Return the section in an error message, and its wording without numbers."""
    said = re.sub(r"^(member \d+: |section subspace_expansion: )+", "", said)
    found = re.search(r"section (\w+)", said)
    said = re.sub(r" in a .*| from a .*| of section \w+|^section \w+ |magic is .*|checksum is .*|'.*'", "", said)
    words = re.sub(NUMBER, "#", said).replace("2^#", "#").replace("has # bytes", "bytes")
    return found[1] if found else "header", words.replace(" is #", "").replace(" expected", "").removeprefix("is ")


# Names of MUSTs in models/FORMAT.md that are neither sections nor header fields, by the error message.
MUSTS = {
    r".* is (found in|missing from) ": "modes",
    r"\d+ gamma": "input_scale",
    r"identifier of table": "section_order",
    r"reserved of table": "section_reserved",
    r"(offset|size) of table": "section_offset",
    r"padding byte \d+ is": "padding",
    r"not an approxsvm artifact": "magic",
    r"the file has": "file_bytes",
    r"label_dtype": "label_dtype",
    r"(byte|size of text) .* section feature_names": "text_list",
    r"(n_groups of )?section router": "router_counts",
    r"start .* section router": "router_starts",
    r"member .* section router": "router_members",
    r"padding .* section router": "router_padding",
    r"number .* section router": "router_panels",
}


def must_of(said: str) -> str:
    """Return the name of the violated rule in models/FORMAT.md."""
    said = re.sub(r"^member \d+: ", "", said)
    found = [name for words, name in MUSTS.items() if re.match(words, said)]
    return (found + re.findall(r"section (\w+)", said) + said.split())[0]


# --- broken artifacts


def evaluate(artifact: Artifact) -> None:
    """Assert that rows have finite answers, or raise an error that explains why not."""
    rows = np.random.default_rng(0).normal(size=(3, artifact.n_raw_features))
    try:
        predictor = Predictor(artifact)
        predictor.predict(rows)
        answers = [predictor.decision_function(rows)] if artifact.has_decision_function else []
        answers += [predictor.predict_proba(rows)] if artifact.outputs.probability is not None else []
    except ApproxSVMError:
        return
    assert all(np.isfinite(answer).all() for answer in answers)


def judge(broken: Broken) -> str:
    """Return the error message, or "" if the artifact is accepted and may be."""
    try:
        artifact = Artifact(broken.data)
    except ArtifactError as error:
        said = str(error)
    else:
        assert broken.must in (None, READ), broken.must
        assert len(artifact.labels) == artifact.header["n_labels"]
        for name in ("feature_names", "outputs", "combination", "input_map", "plan", "source"):
            getattr(artifact, name)  # everything read can be inspected
        return ""
    assert REFUSAL.fullmatch(said), said
    assert not contradicts_itself(said), said
    words = re.search(broken.must or "", said)
    assert words, f"{said!r} has no {broken.must!r}"
    if words.groups():
        found = number_in(words[1])
        assert found == broken.found or (math.isnan(found) and math.isnan(broken.found)), said
    return said


def test_what_is_broken_is_refused_by_name_or_read() -> None:
    resource = pytest.importorskip("resource")
    draw, before = random.Random(0), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    named, related, musts = set(), set(), set()
    for broken in all_broken():
        said = judge(broken)
        if not said:
            if draw.random() < 0.1:
                evaluate(Artifact(broken.data))
            continue
        (named if broken.must else related).add(kind_of(said))
        musts.add(must_of(said))
    # No allocation is proportional to the sizes claimed by a file.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB
    listed = re.findall(r"^(\w+): ((?:.|\n )*)", RELATIONS, re.MULTILINE)
    expected = {(name, " ".join(words.split())) for name, line in listed for words in line.split(";")}
    assert related - named == expected
    text = (REPOSITORY / "models" / "FORMAT.md").read_text(encoding="utf-8")
    replayed = {"check_row_value", "exact_check_row_value"}
    assert set(re.findall(r"\[([a-z_]+)\]", text)) - replayed == musts


def test_an_input_map_comes_back_as_it_was() -> None:
    for packed in maps():
        assert unpack_input_map(packed).packed() == packed


def test_targets_of_one_column_come_back() -> None:
    column = Artifact(changed(content({"outputs": pack_outputs(Outputs(is_column=True))}), regressor()))
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
    """Assert that replay fails for a well-formed file with other values; only the native reader replays check rows."""
    Artifact(data)
    assert not is_replayed(data)


def wide(mode: Any, d: int) -> Artifact:
    return classifier(mode, n_features=d, gamma=1.8 / d, feature_names=None)


def check_rows(artifact: Artifact, section: str = "check_rows") -> npt.NDArray[np.float64]:
    """Return amplitude, decision value and tolerance of each check row."""
    return np.frombuffer(artifact.section(section), "<f8").reshape(-1, 3)


def turned_round(artifact: Artifact, name: str, limit: float, step: int = 1) -> Iterator[bytes]:
    """Yield the artifact with one coefficient at a time moved to the opposite limit of its range."""
    coefficients = np.frombuffer(artifact.section(name), "<f4")
    for k in range(0, len(coefficients), step):
        yield changed(number(name, k, "f", -limit if coefficients[k] > 0 else limit), artifact)


@pytest.mark.parametrize("d", [1, 3, 8, 20, 130])
@pytest.mark.parametrize("mode", ["approximate", "certified"])
def test_must_check_row_value(mode: str, d: int, target: str) -> None:
    artifact = wide(mode, d)
    assert _native.Predictor(artifact.data).target == target
    taken = []
    for name, limit in (("linear", 1.0), ("quadratic", 2.0)):
        step = 1 + len(artifact.section(name)) // 200
        for data in turned_round(artifact, name, limit, step):
            Artifact(data)
            taken.append(is_replayed(data))
    # With many features, one coefficient may matter less than the rounding of all others.
    assert sum(taken) <= (len(taken) / 25 if d > 20 else 0)
    for amplitude in (1e300, 1e38, 0.3):
        refused_by_replay(changed(number("check_rows", 0, "d", amplitude), artifact))
    for k, value in enumerate(check_rows(artifact)[:, 1]):
        refused_by_replay(changed(number("check_rows", 3 * k + 1, "d", value + 0.01), artifact))


@pytest.mark.parametrize("degree", [3, 4, 5, 6])
def test_check_rows_reach_every_degree(degree: int, target: str) -> None:
    for data in turned_round(
        classifier("approximate", degree=degree, n_features=2, feature_names=None), "higher", 720.0
    ):
        refused_by_replay(data)


def test_check_rows_reach_their_centers(target: str) -> None:
    artifact = many_centers("approximate")
    n_rows, n_centers = len(check_rows(artifact)), artifact.n_centers
    reached = {k * n_centers // n_rows for k in range(n_rows)}
    assert 1 < len(reached) < n_centers
    for c in range(n_centers):
        data = changed(number("linear", 3 * c, "f", -1.0), artifact)
        assert is_replayed(data) == (c not in reached)


@pytest.mark.parametrize("d", [1, 3, 8, 20])
@pytest.mark.parametrize("mode", ["certified", "exact"])
def test_must_exact_check_row_value(mode: str, d: int, target: str) -> None:
    artifact = wide(mode, d)
    assert _native.Predictor(artifact.data).target == target
    for k, value in enumerate(check_rows(artifact, "exact_check_rows")[:, 1]):
        for error in (0.01, -1e-8, 1e300):
            refused_by_replay(changed(number("exact_check_rows", 3 * k + 1, "d", value + error), artifact))
    for k, coefficient in enumerate(artifact.dual_coef()[0]):
        refused_by_replay(changed(number("dual_coef", k, "d", coefficient * 1.001), artifact))
    packed = artifact.section("support_vectors")
    for k in range(6 * d):  # float64 after a header of 24 bytes
        value = struct.unpack_from("<d", packed, 24 + 8 * k)[0]
        refused_by_replay(changed(number("support_vectors", 3 + k, "d", value + 0.25), artifact))


@pytest.mark.parametrize("artifact", [*map(polynomial, MODES), cosines()], ids=[*MODES, "cosines"])
def test_must_exact_check_row_value_of_other_kernels(artifact: Artifact, target: str) -> None:
    assert is_replayed(artifact.data)
    value = check_rows(artifact, "exact_check_rows")[1, 1]
    refused_by_replay(changed(number("exact_check_rows", 4, "d", value + 1e-3), artifact))

"""Broken artifacts derived from the rules in artifact/schema.inc: in every section, every number goes out of range."""

from __future__ import annotations

import itertools
import math
import re
import struct
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from artifact_changes import (
    MODES,
    changed,
    classifier,
    compiled,
    content,
    cosines,
    cosines_of_classes,
    deep,
    many_centers,
    polynomial,
    regressor,
    resealed,
    sealed,
    sigmoid,
    with_header,
)
from artifact_layout import ENUMERATIONS, HEADER_BYTES, INF, LIMITS, SECTIONS, Layout, Number
from conftest import GOLDEN, random_model
from forced_subspaces import in_subspaces

from approxsvm import Artifact
from approxsvm.artifact.outputs import pack_outputs
from approxsvm.compiler import compile as compile_model
from approxsvm.frontends import read_any
from approxsvm.ir import ops
from approxsvm.ir.ensembles.combination import Combination, of_labels
from approxsvm.ir.ensembles.ensemble import Ensemble, mean_of
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.ops.lookup import Steps
from approxsvm.ir.ops.piecewise_polynomial import Pieces
from approxsvm.ir.outputs import (
    DensityMarks,
    IsotonicCalibrator,
    LaplaceNoise,
    OneVsRestCalibration,
    Outputs,
    PairwiseSigmoid,
    SigmoidCalibrator,
    TemperatureCalibration,
)
from approxsvm.ir.schema import record


class Broken(NamedTuple):
    data: bytes
    # Regular expression for the error message, with a group for the invalid number; READ if the artifact must be
    # accepted; None if it may be accepted or rejected.
    must: str | None
    found: Any = None  # the number

    @property
    def is_refused(self) -> bool:
        return self.must not in (None, READ)


READ = "read"
OF_LABELS = "label_dtype is"  # checked only in Python

# --- small artifacts of every kind, to be broken


def golden(name: str) -> Artifact:
    return Artifact((GOLDEN / f"{name}.asvm").read_bytes())


def with_section(artifact: Artifact, name: str, data: bytes) -> Artifact:
    return Artifact(changed(content({name: data}), artifact))


def maps() -> Iterator[bytes]:
    """Yield a map for each kind of op, for rows with three features."""
    three, ones, source = np.array([1.0, 2.0, 0.5]), np.ones(3), np.array([1, 0, 0])
    bends = Pieces(np.array([0.5, 1.5]), np.array([0.0, 0.5, 1.5]), np.array([[0.1, 1.0], [0.6, 0.5], [1.1, 0.2]]))
    looks_up = Steps.of([0.5, 1.5], [1.0, math.nan, INF], 2.0)
    parts = {"subtract": ones, "multiply": three, "divide": three, "add": ones, "low": -three, "high": 3 * three}
    identity = InputMap.identity(3)
    scaled = identity.then_affine(**parts, relative_error=1e-17 * ones)
    yield replace(scaled, by_column=True, checked={0: True, 2: False}).packed()
    for op in (
        ops.Projection.about(ones, np.eye(3)),
        ops.Logarithm.of(3, 4.0),
        ops.Lookup(3, source, (looks_up,) * 3),
        ops.Normalizer(2, "l2", first=1),
        ops.Power("yeo-johnson", three),
        ops.PiecewisePolynomial(3, source, (bends,) * 3),
        ops.Monomials(3, np.array([[0, 1], [2, 2], [1, 3]])),
        ops.InverseNormal(2),
        ops.Interval("turns", ones, three),
    ):
        yield identity.then_part(op).packed()


def packings() -> Iterator[tuple[bytes, npt.NDArray[np.float64]]]:
    """Yield six vectors of three numbers packed with every storage and value kind, and the vectors themselves."""
    codes, reference = np.arange(18) % 3, np.array([0.5, 7.0, 5e-324])
    counts, columns = np.array([3, 0, 1, 2, 0, 3], np.uint8), np.array([0, 1, 2, 1, 0, 2, 0, 1, 2], np.uint8)
    for storage, kind in itertools.product(range(3), range(5)):
        dictionary = np.array([0.5, -1.25, 3.0]) if kind < 4 else np.array([0.5])  # a single value needs no codes
        has_codes, n_values = kind >= 2, 9 if storage else 18
        values = dictionary[codes[:n_values] % len(dictionary)]
        vectors = values.reshape(6, 3) if storage == 0 else np.tile(reference * (storage == 2), (6, 1))
        if storage:
            vectors[np.repeat(np.arange(6), counts), columns] = values
        stored = (codes[:n_values] if has_codes else values).astype(("<f8", "<f4", "<u1", "<u2")[kind % 4 or kind // 2])
        parts = [dictionary[: 3 * has_codes], reference[: 3 * (storage == 2)], *((counts, columns) if storage else ())]
        parts += [stored] if kind < 4 else []
        header = (storage, 2 if kind == 4 else kind, storage > 0, has_codes * len(dictionary), n_values)
        packed = record("support_vectors").pack(*header)
        yield packed + b"".join(part.tobytes() + bytes(-part.nbytes % 8) for part in parts), vectors


def in_few_coordinates() -> Iterator[Artifact]:
    """Yield artifacts with a subspaces section: for two labels, for three, and with an expansion for the first sums."""
    rows = np.random.default_rng(0).normal(size=(40, 4))
    yield in_subspaces(random_model(5, n_features=3, n_sv=5, gamma=0.6), (1, 2))
    yield in_subspaces(read_any(GOLDEN / "iris_classes.model"), (1, 2), X=rows)
    yield in_subspaces(random_model(5, n_features=3, n_sv=6, gamma=0.6), (2, 3), 2, X=rows[:, :3])


def speculating() -> Artifact:
    """Return an artifact with three landmarks, whose weights need padding."""
    classes = golden("iris_classes")
    weights = np.full((1 + classes.n_features + 3) * len(classes.labels), 0.5, "<f4")
    return with_section(classes, "speculation", struct.pack("<6I", 3, 0, 0, 5, 3, 0) + weights.tobytes())


def kinds_of_outputs() -> Iterator[tuple[Artifact, Outputs, str]]:
    """Yield artifacts, outputs of each kind, and the allowed shapes, label rules and probabilities."""
    knots = IsotonicCalibrator(np.array([-1.0, 0.5, 2.0]), np.array([0.0, 0.25, 1.0]))
    calibration = OneVsRestCalibration((SigmoidCalibrator(-1.0, 0.5), knots, knots))
    three, two = golden("iris_classes"), classifier()
    inliers = compiled(random_model(5, n_features=3, n_sv=6, gamma=0.6, task="one_class"))
    pairs = PairwiseSigmoid(np.full(3, -1.5), np.zeros(3))
    yield three, Outputs(label_rule="scores", decision_shape="ovr"), "000 008 010 018 100 108 110 118"
    yield three, Outputs(pairs, "probability"), "001 011 021 101 111 121"
    yield three, Outputs(calibration, "probability"), "004 014 024 104 114 124"
    yield three, Outputs(TemperatureCalibration(2.0), "probability"), "005 015 025 105 115 125"
    yield regressor(), Outputs(LaplaceNoise(0.25)), "002 102"
    yield inliers, Outputs(DensityMarks(np.linspace(-0.5, 0.5, 10))), "003 103"
    yield inliers, Outputs(label_rule="value_threshold", threshold=0.5), "030 130"
    of_share = Outputs(OneVsRestCalibration((knots,)), "probability_threshold", threshold=0.5, threshold_label=1)
    yield two, of_share, "034 044 134 144"


def ensembles() -> Iterator[tuple[Artifact, str]]:
    """Yield ensembles (weighted sums, means, votes, targets, class functions) and the allowed outputs."""
    mean = random_model(5, n_features=3, n_sv=4, task="regression")
    two = random_model(6, n_features=3, n_sv=4)
    other = random_model(7, n_features=3, n_sv=4, labels=np.array([1, 3]))
    several = replace(mean, dual_coef=np.ones((2, 4)), intercept=np.zeros(2), value_error=np.zeros(2))
    known = replace(two, outputs=Outputs(PairwiseSigmoid(np.array([-1.5]), np.zeros(1))))
    labels, large = np.array([1, -1]), [1e308, 0.0]
    each = Outputs(label_rule="scores", decision_shape="each")
    cut = Outputs(label_rule="value_threshold", threshold=0.5)
    one_sum = Combination(weights=np.array([[2.0, 1.0]]), addends=np.array([0.5]))
    of_shares = Combination(weights=np.array([[2.0, 0.0, 1.0]]))
    of_three = "010 018 110 118 210 218"
    side_by_side, targets, plain = Combination(), Combination("labels"), Outputs()
    for members, outputs, combination, classes, may_be in (
        ((mean, several), plain, side_by_side, None, ""),
        ((mean, mean), plain, one_sum, None, ""),
        ((known, known), *mean_of((known, known), labels, large), None, "026"),
        ((two, two), plain, of_labels("votes", (two, two), labels, large), None, "000 100"),
        ((two, mean), plain, targets, labels, "000 100"),
        ((two, other), plain, targets, np.array([1, -1, 3]), "000 100"),
        ((known, mean), cut, of_shares, labels, "011 021 030 038 111 121 130 138"),
        ((mean, mean, mean), each, side_by_side, np.arange(3), of_three),
        ((mean, mean, mean), replace(each, decision_shape="ovr"), side_by_side, np.arange(3), of_three),
        ((mean, several), each, Combination(weights=np.ones((3, 3))), np.arange(3), of_three),
    ):
        model = Ensemble(members, outputs=outputs, combination=combination, classes=classes)
        yield compile_model(model, mode="exact").artifact, may_be


CATEGORIES = struct.pack("<2I8I4I", 2, 4, 0, 3, 0, 0, 2, 1, 1, 0, 1, 2, 4, 5) + "abéc".encode()
# Invalid UTF-8: truncated or overlong sequences, a surrogate, and a value beyond the last code point.
NO_UTF8 = (b"\xff", b"\xc3", b"\xc0\x80", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xf0\x80\x80\x80", b"\xf4\x90\x80\x80")


@cache
def bases() -> list[tuple[Artifact, frozenset[str], str]]:
    """Return artifacts with the sections to break ("" for the header and section table) and the allowed outputs."""
    whole = [*map(classifier, MODES), many_centers("approximate"), deep("approximate"), regressor(), sigmoid()]
    whole += [cosines(), *map(polynomial, MODES), *map(golden, ("iris_classes", "iris_slices", "iris_ensemble"))]
    found = [(artifact, frozenset(("", *SECTIONS)) - {"outputs"}, "") for artifact in whole]
    of_ensembles = frozenset(("", "outputs", "combination", "members"))
    found += [(artifact, of_ensembles, may_be) for artifact, may_be in ensembles()]
    found.append((cosines_of_classes(), frozenset(("", "cosines", "decisions", "outputs")), "210 218"))
    for artifact, outputs, may_be in kinds_of_outputs():
        found.append((with_section(artifact, "outputs", pack_outputs(outputs)), frozenset(("outputs",)), may_be))
    parts = [(artifact, "subspaces", "subspace_expansion") for artifact in in_few_coordinates()]
    parts += [(classifier(labels=np.array(labels)), "labels") for labels in (["a", "b"], [0.5, 1.5])]
    parts += [(with_section(classifier(), "input_map", data), "input_map") for data in maps()]
    parts += [(with_section(classifier("exact"), "support_vectors", data), "support_vectors") for data, _ in packings()]
    for name, data in (("plan", b"ab"), ("vectorizers", b"{}"), ("dtypes", b"{}"), ("categories", CATEGORIES)):
        parts += [(with_section(base, name, data), name) for base in (classifier(), golden("iris_ensemble"))]
    parts.append((speculating(), "speculation"))
    parts.append((classifier(), "build_plan"))
    return found + [(artifact, frozenset(names), "") for artifact, *names in parts]


# --- ways to break them

BITS = {"B": 8, "H": 16, "I": 32, "Q": 64}


def other_values(number: Number) -> set[Any]:
    """Return values adjacent to a number's value and limits, and values on which readers may fail."""
    value, rule = number.value, number.rule
    near = {rule.low, rule.high, *(range(int(rule.high)) if rule.high < 16 else ())}
    if number.code == "q":
        return {value - 1, value + 1}
    if number.code in BITS:
        most = 2 ** BITS[number.code]
        found = {int(x) + step for x in near | {value} if math.isfinite(x) for step in (-1, 0, 1)}
        found |= {0, 1, 2, most // 2, most - 64, most - 1, value ^ 0x40, 2 * value}
        found |= {2**20 + 1, 2**32 + value, 2**61, 2**63 + value} if most > 2**16 else {0xC3, 0xE9}
        return {x for x in found if 0 <= x < most} - {value}
    narrow = np.float32 if number.code == "f" else np.float64
    with np.errstate(over="ignore"):
        found = {float(np.nextafter(narrow(x), narrow(towards))) for x in near for towards in (-INF, INF)}
        odd = (INF, -INF, 0.0, 1.0, -1.0, 0.75, 5e-324, 1e300, -value, 2.0 * value, *near)
        found |= {float(narrow(x)) for x in odd}
    return {x for x in found if x != value} | {math.nan}


def with_number(data: bytes, number: Number, value: Any) -> bytes:
    """Return the artifact with another number and correct checksums."""
    broken = bytearray(data)
    struct.pack_into("<" + number.code, broken, number.at, value)
    all_of_it = [(0, len(data)), *number.outer]
    for start, size in reversed(all_of_it[:-1] if number.name == "checksum" else all_of_it):
        broken[start : start + size] = resealed(broken[start : start + size])
    return bytes(broken)


# Numbers that error messages show in other digits, as part of a sum, or not at all (they show another number).
SAID = {
    "magic": "magic is",
    "checksum": "checksum is",
    "tolerance": "tolerance|majority_only",
    "n_labels": "n_labels|n_decisions",
    "number of (?:own|other) support vectors of group": "number of (?:own|other) support vectors of group",
    **{f"{name}|combination": "combination" for name in ("n_columns", "n_values", "n_weights")},
    **{name: name for name in ("edge", "gamma", "height|number", "input of output", "n_raw_features")},
}


# Real numbers that depend on others; all other real numbers may have any value allowed by their rule.
RELATED = {"gamma", "input_scale", "tolerance", "low", "high", "edge", "coefficient", "value of weight"}
RELATED |= {"label", "knot|number", "height|number", "density mark|number", "label of the threshold"}
RELATED |= {"total of the weights|number", "weight|number"}
# Sections of contained artifacts for which the containing artifact has rules.
OF_OTHERS = ("", "center", "combination", "decisions", "labels", "outputs")


def broken_numbers(data: bytes, layout: Layout, names: frozenset[str]) -> Iterator[Broken]:
    nested = OF_OTHERS if names & {"members", "subspace_expansion"} else ()
    listed = [number for number in layout.numbers if number.section in (nested if number.outer else names)]
    for before, number in zip([listed[0], *listed], listed, strict=False):
        values = other_values(number)
        if before.name == number.name:  # numbers that may have to be ascending or distinct
            values.add(before.value)
        for value in sorted(values, key=repr):
            must: str | None = SAID.get(number.name, rf"(?:{number.name})\b.* is (\S+), ")
            if number.name == "file_bytes" and not number.outer:
                must = None  # the error message begins with the file size
            if number.rule.allows(value):
                must = READ if number.code in "fd" and number.name not in RELATED and not number.outer else None
            yield Broken(with_number(data, number, value), must, value)


def broken_sections(
    artifact: Artifact, layout: Layout, names: frozenset[str], others: dict[str, bytes]
) -> Iterator[Broken]:
    for name in sorted(names - {""}):
        contents: list[bytes | None] = [bytes(16), others[name]]
        must = None if layout.may_have(name) else f"section {name} is (?:found in|missing from) a "
        if name in artifact._sections:
            whole = artifact.section(name)
            contents = [whole[:n] for n in {0, 4, 8, len(whole) // 2, *range(max(len(whole) - 9, 0), len(whole))}]
            contents += [None, bytes(HEADER_BYTES), *(whole + bytes(n) for n in (1, 4, 8, 64)), *NO_UTF8]
        for one in contents:
            is_free = one is not None and name in layout.sections
            yield Broken(changed(content({name: one}), artifact), None if is_free else must)


def broken_gaps(data: bytes, layout: Layout) -> Iterator[Broken]:
    for start, end in layout.gaps:
        for at in {start, end - 1} if start < end else ():
            yield Broken(resealed(data[:at] + b"\x01" + data[at + 1 :]), r"padding byte \d+ is (\S+), ", 1)


def broken_enumerations(data: bytes, layout: Layout, names: frozenset[str], may_be: str) -> Iterator[Broken]:
    """Yield all combinations of the fields that determine how the rest is read."""
    for section, fields in (("outputs", ("decision_shape", "label_rule", "probability")), ("", ("mode", "kernel"))):
        numbers = [n for n in layout.numbers if (n.section, n.outer) == (section, ()) and n.name in fields]
        combinations = itertools.product(*(range(len(ENUMERATIONS[number.name])) for number in numbers))
        for values in combinations if section in names and numbers else ():
            broken = bytearray(data)
            for number, value in zip(numbers, values, strict=True):
                struct.pack_into("<I", broken, number.at, value)
            legal = may_be.split() if section else ["".join(f"{number.value:x}" for number in numbers)]
            yield Broken(resealed(broken), READ if "".join(f"{value:x}" for value in values) in legal else "")


# --- label types, by NumPy name

TYPE_NAMES = [f"{order}{kind}{n}" for order in "<>|=" for kind in "biufcSUOV" for n in (*range(5), 8, 16)]
TYPE_NAMES += ["", "x", "i8", "|O", "a5", "M8[s]", "i8,i8", "(2,)i8", "(99999999,)U1", "<U", "<U-3", "<U300", "\xff"]
TYPE_NAMES += [f"<U{n}" for n in (65536, 65537, 536870911, 99999999999)]
NUMBER_TYPES = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")


def holds(name: str, label: Any) -> bool:
    """Return whether a type with this NumPy name can represent a label exactly."""
    order, kind = name[:1], name[1:]
    if isinstance(label, str):
        number = int(label) if label.isdigit() else 2**64
        width = int(kind[1:]) if re.fullmatch(r"U\d+", kind) else -1
        is_number = kind == "u8" and number < 2**64 and label == str(number)
        is_wide = len(label) <= width <= LIMITS["max_label_width"]
        return name == "|O" or (order in "<>" and (is_number or is_wide))
    if order not in ("<", ">", "|") or kind not in NUMBER_TYPES or isinstance(label, float) != (kind[0] == "f"):
        return False
    with np.errstate(over="ignore"):
        return not (kind[0] == "u" and label < 0) and bool(np.array([label]).astype(kind).item() == label)


def broken_label_types() -> Iterator[Broken]:
    numbers = ([1, 0], [1, -1], [1, 300], [7, 2**40], [0.5, 2.0], [0.5, 1e10], [0.1, 1e300])
    for labels in (*numbers, ["yes", "n"], ["7", "8"], ["7", "07"], ["7", str(2**64)]):
        data = classifier(labels=np.array(labels)).data
        for name in TYPE_NAMES:
            must = READ if all(holds(name, label) for label in labels) else OF_LABELS
            yield Broken(with_header(data, label_dtype=name.encode("latin-1")), must)


# --- rules for several numbers, each valid by itself


def outputs(shape: str, rule: str, kind: str, *numbers: float) -> dict[str, bytes]:
    names = {"decision_shape": shape, "label_rule": rule, "probability": kind}
    header = struct.pack("<6I", *(ENUMERATIONS[field][name] for field, name in names.items()), 0, 0, 0)
    stored = [struct.pack("<Q" if isinstance(number, int) else "<d", number) for number in numbers]
    return {"outputs": header + b"".join(stored)}


def broken_relations() -> Iterator[Broken]:
    data = classifier().data
    yield Broken(
        with_header(data, version=2, first_release=0x1234), "version is 2, which approxsvm 18.52 and later read"
    )
    mean = golden("iris_ensemble")
    beside, _, _, _, targets, _, _, functions, *_ = (artifact for artifact, _ in ensembles())
    one, two = (artifact.section("members")[: artifact.members[0].n_bytes] for artifact in (beside, functions))
    alone = changed(content(outputs("ovo", "votes", "sign_alone")), mean.members[0])
    for artifact, contents, must in (
        (mean, {"members": alone}, "probability of section outputs is 8, expected 1 to 5"),
        (functions, {"members": 2 * two}, "number of columns|n_columns of section combination is 3, expected 2"),
        (beside, {"members": (LIMITS["max_n_members"] + 1) * one}, "number of members .* is 1025, expected 1 to 1024"),
    ):
        yield Broken(changed(content(contents), artifact), must)
    # Members have labels of other kinds.
    wrong = changed(content({"labels": struct.pack("<2d", 1.0, -1.0)}), targets)
    yield Broken(with_header(wrong, label_kind=2, label_dtype=b"<f8"), "member 0: label_kind .* is 1, expected 2")
    for degree, n_centers, n in itertools.product(range(1, 7), (1, 2**10, 2**20), (2**10, 2**11, 2**16, 2**20)):
        claims = {"degree": degree, "n_centers": n_centers, "n_features": n, "n_raw_features": n}
        yield Broken(with_header(data, **claims), "section ")  # products of sizes overflow 32 or 64 bits


def broken_files() -> Iterator[Broken]:
    """Yield files truncated at every byte (with a new or the old checksum), extended, or changed (with the old one)."""
    data = classifier().data
    for n in range(len(data)):
        yield Broken(data[:n], "truncated|the file has 0 bytes")
        if n >= HEADER_BYTES:
            yield Broken(sealed(bytearray(data[:n])), "bytes, expected|size of table entry|offset of table entry")
        if n % 7 == 0:
            wrong = data[:n] + bytes([data[n] ^ 0x10]) + data[n + 1 :]
            yield Broken(wrong, "checksum|magic|version|the file has")
    for more in (1, 64):
        yield Broken(data + bytes(more), "the file has .*: something follows the artifact in the file")
        yield Broken(sealed(bytearray(data + bytes(more))), "the file has")


def gamma_of_minus_zero() -> Broken:
    """Return an artifact with gamma -0.0: it is at least 0, but bound tables are indexed by bits without a sign."""
    return Broken(with_header(classifier("approximate", gamma=0.0).data, gamma=-0.0), READ)


def all_broken() -> Iterator[Broken]:
    yield gamma_of_minus_zero()
    others: dict[str, bytes] = {}
    for artifact, *_ in bases():
        others |= {name: bytes(part) for name, part in artifact._sections.items()}
    for artifact, names, may_be in bases():
        layout = Layout(artifact.data)
        yield from broken_numbers(artifact.data, layout, names)
        yield from broken_sections(artifact, layout, names, others)
        yield from broken_enumerations(artifact.data, layout, names, may_be)
        yield from broken_gaps(artifact.data, layout) if "" in names else ()
    for more in (broken_label_types, broken_relations, broken_files):
        yield from more()

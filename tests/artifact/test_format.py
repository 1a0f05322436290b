"""The tables in models/FORMAT.md and Python's constants agree with artifact/schema.inc."""

from __future__ import annotations

import bisect
import hashlib
import re
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from artifact_layout import Layout, Rule
from broken_artifacts import bases
from conftest import GOLDEN, REPOSITORY

from approxsvm import Artifact, _native
from approxsvm.ir import schema

TEXT = (REPOSITORY / "models" / "FORMAT.md").read_text(encoding="utf-8")
TYPES = {"uint16": "H", "uint32": "I", "uint64": "Q", "float32": "f", "float64": "d"}


def tables() -> Iterator[list[list[str]]]:
    """Yield each table's cells, titles first."""
    for table in re.findall(r"(?:^\|.*\n)+", TEXT, re.MULTILINE):
        rows = [
            [cell.strip() for cell in line.replace(r"\|", "").strip("|\n").split("|")] for line in table.splitlines()
        ]
        yield [rows[0], *rows[2:]]


def table_of(first: str) -> list[list[str]]:
    """Return the rows of the only table whose titles begin like this, or whose first row contains it."""
    found = [table for table in tables() if "|".join(table[0]).startswith(first) or first in "|".join(table[1])]
    assert len(found) == 1, first
    return found[0][1:]


def name_of(cell: str) -> str:
    found = re.match(r"[a-z]\w*", cell)
    assert found, cell
    return found[0]


@pytest.mark.parametrize(
    ("tag", "first"),
    [
        ("header", "0|8 bytes|magic"),
        ("support_vectors", "0|uint32|storage"),
        ("outputs", "0|uint32|decision_shape"),
    ],
)
def test_records_with_offsets(tag: str, first: str) -> None:
    fields = {name: (code, n) for name, code, n in _native.schema()["records"][tag]}
    size = schema.record(tag).size
    described = [row for row in table_of(first) if row[0].isdigit() and int(row[0]) < size]
    if tag == "outputs":
        assert "kind of probabilities" in described[2][2]
        described[2][2] = "probability"
    names = [name_of(row[2]) for row in described]
    assert names == list(fields)
    for (offset, kind, *_), name in zip(described, names, strict=True):
        assert schema.offset_of(tag, name) == int(offset)
        code, n = fields[name]
        width = struct.calcsize(f"{n}{code}")
        assert f"{width} bytes" == kind if kind.endswith("bytes") else TYPES[kind] == code


@pytest.mark.parametrize(
    ("layouts", "first"),
    [
        (("router",), "0|uint32|n_groups"),
        (("speculation",), "0|uint32|n_landmarks"),
        (("subspaces", "subspace_group"), "uint32|n_stages"),
    ],
)
def test_layouts(layouts: tuple[str, ...], first: str) -> None:
    """The array types agree, in order, and so does the padding with zeros after arrays."""
    cells = [" ".join(row[:3]) for row in table_of(first)]
    described = [re.findall(r"uint32|float\d\d", cell)[-1] for cell in cells if re.search(r"uint32|float\d\d", cell)]
    stored = [(name, code) for tag in layouts for name, code in schema.LAYOUTS[tag]]
    assert [TYPES[kind] for kind in described] == [code for name, code in stored if name]
    for multiple in {code for name, code in stored if not name}:
        assert re.search(rf"zero bytes up to a multiple of {multiple}\b", TEXT[TEXT.index(f"**{layouts[0]}**") :])


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.asvm")), ids=lambda path: path.stem)
def test_layouts_of_the_golden_artifacts(path: Path) -> None:
    """Every number has the position, type and range found by a second implementation of models/FORMAT.md."""
    agrees_with_the_second_reader(Artifact(path.read_bytes()))


def test_layouts_of_small_artifacts() -> None:
    for artifact, _, _ in bases():
        agrees_with_the_second_reader(artifact)


def agrees_with_the_second_reader(artifact: Artifact) -> None:
    layout = Layout(artifact.data)
    for name, (start, size) in layout.sections.items():
        arrays = artifact.native.list_numbers(schema.SECTION_IDS[name])
        ends = [offset + count * struct.calcsize(code) for _, code, offset, count, _, _ in arrays]
        assert not arrays or ends[-1] <= size <= ends[-1] + 7
        seen = set()
        for number in layout.numbers if arrays else ():
            if (number.section, number.outer) != (name, ()) or number.name == "padding byte":
                continue
            k = bisect.bisect_right(ends, number.at - start)
            array, code, offset, _, least, most = arrays[k]
            assert (code, (number.at - start - offset) % struct.calcsize(code)) == (number.code, 0), number
            seen.add(k)
            low, high = (least, most) if code in "fd" else (int(least), int(min(most, 2**32 - 1)))
            rule = number.rule if code in "fd" else Rule(max(number.rule.low, 0), min(number.rule.high, 2**32 - 1))
            if array not in ("", "starts", "counts"):  # their rules involve several numbers
                assert (rule.low, rule.high) == (low, high), (array, number)
        assert seen == {k for k, found in enumerate(arrays) if found[3] > 0}, name


def test_sections() -> None:
    described = {row[1]: int(row[0]) for row in table_of("identifier|section")}
    assert described == schema.SECTION_IDS
    assert f"be at most {len(described)} [n_sections]" in TEXT


def test_numbers_of_an_expansion() -> None:
    position = 0
    rows = iter(table_of("number|field"))
    for name, _, n in _native.schema()["records"]["expansions"]:
        number, described, *_ = next(rows)
        assert number == (str(position) if n == 1 else f"{position} ... {position + n - 1}")
        assert described.startswith("N_0 ... N_8" if name == "norms" else name)
        position += n
    assert next(rows, None) is None
    assert f"a record of {position} float64" in TEXT


def test_input_maps_and_combinations() -> None:
    described = {"input_map": "n_columns", "combination": "columns"}
    for tag, first in ((tag, f"uint32|{name}") for tag, name in described.items()):
        for (_, code, _), (kind, *_) in zip(_native.schema()["records"][tag], table_of(first), strict=False):
            assert TYPES[kind] == code
    assert "An op starts with kind (uint32), parts (uint32), first (uint32), n (uint32) and m (uint64)" in TEXT
    assert [code for _, code, _ in _native.schema()["records"]["op"]] == ["I", "I", "I", "I", "Q"]


def test_enumerations() -> None:
    """Enumeration values agree wherever the text lists them in words."""
    numbers = {
        "task": "be 0 classification, 1 regression or 2 one-class",
        "mode": "be 0 approximate, 1 certified, 2 exact or 3 ensemble",
        "kernel": "be 0, the Gaussian, 1, polynomial, 2, a sum of cosines, or 3, sigmoid",
        "center_kind": "be 0 origin or 1 mean",
        "label_kind": "be 0 none, 1 int64, 2 float64 or 3 text",
        "storage": "be 0, all values row after row; 1, compressed rows; or 2, compressed rows relative to a reference",
        "value_kind": "be 0 float64, 1 float32, 2 codes of one byte or 3 codes of two bytes",
        "label_rule": "4 the same with its probability in place of the value",
        "decision_shape": "2 a decision function for each label, whose values are the scores",
        "columns": "columns: 0 numbers, 1 votes, 2 labels",
        "probability": "2 or 7 for regression, 3 for one-class; for an ensemble 0, or for classification by numbers "
        "1, 4, 5, 6 or 8; 6 only for ensembles",
        "op_kind": "* kind 9: `x = low + (x - low) % length`",
    }
    assert numbers.keys() == _native.schema()["enumerations"].keys()
    for name, words in numbers.items():
        assert words in TEXT
        listed = list(_native.schema()["enumerations"][name].values())
        assert listed == list(range(len(listed)))
        assert str(len(listed) - 1) in words


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("format_version", "# The .asvm artifact, version {}"),
        ("section_alignment", "each at the next multiple of {}"),
        ("max_check_rows", "1 to {} records of three float64"),
        ("max_degree", "be 1 to {}, but 0 in the modes exact and ensemble"),
        ("max_kernel_degree", "for a polynomial kernel its degree, 1 to {} in mode exact"),
        ("max_n_labels", "be 2 to {:,} for classification"),
        ("max_n_members", "are 1 to {:,} artifacts, none of them an ensemble"),
        ("max_quadratic", "every number in [-{0:g}, {0:g}] [quadratic]"),
        ("max_higher", "every number in [-{0:g}, {0:g}] [higher]"),
        ("max_linear", "every number in [-{0:g}, {0:g}] [linear]"),
        ("max_group_panels", "each list 1 to {} panels long"),
        ("router_width", "panels of the groups, {} in each panel"),
        ("max_dictionary", "be 1 to {:,} with codes"),
        ("max_label_width", "at most the larger of {:,} and the length"),
        ("max_subspace_stages", "| uint32 | n_stages | be 1 to {} |"),
        ("max_phase", "phases at most {:g} in absolute value"),
        ("max_excess", "MUST be from 0 to {}"),
        ("n_density_marks", "ten numbers that MUST be non-decreasing"),
    ],
)
def test_limits(limit: str, words: str) -> None:
    value = _native.schema()["limits"][limit]
    shown = 1.0 + value if limit == "max_excess" else value
    assert words.format(shown) in TEXT


def test_powers_of_two() -> None:
    limits = _native.schema()["limits"]
    assert limits["max_n_features"] == limits["max_n_centers"] == 2**20
    assert TEXT.count("be 1 to 2^20") >= 3
    assert limits["max_input_scale"] == 2.0**100
    assert "a power of two from 2^-100 to 2^100" in TEXT
    assert limits["max_output_scale"] == 2.0**1000
    assert "a power of two from 2^-1000 to 2^1000" in TEXT
    assert limits["min_contraction"] == 1 / 8
    assert "be 1, 1/2, 1/4 or 1/8" in TEXT
    assert limits["max_skew"] == 2.0**-10
    assert "be 0 to 2^-10" in TEXT
    assert (limits["least_coefficient"], limits["most_coefficient"]) == (2.0**-60, 2.0**60)
    assert "be 0 or have an absolute value from 2^-60 to 2^60, with one sign in each list" in TEXT
    assert limits["magic_number"].to_bytes(8, "little") == bytes.fromhex(
        re.search(r"be `([0-9A-F ]+)` \[magic\]", TEXT)[1]  # type: ignore[index]
    )


def test_first_release() -> None:
    major, minor = divmod(schema.IDENTITY["first_release"], 256)
    assert f"be {256 * major + minor}, release {major}.{minor} [first_release]" in TEXT


def test_artifacts_of_format_1_never_change() -> None:
    sums = dict(reversed(line.split()) for line in (GOLDEN / "SHA256SUMS").read_text().splitlines())
    assert sums == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in GOLDEN.glob("*.asvm")}

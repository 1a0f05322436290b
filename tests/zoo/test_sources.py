"""Everything that the frontends can read or an artifact may contain has an entry in the zoo."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
from sklearn.base import clone

import approxsvm
from approxsvm import _native
from approxsvm.artifact.views import Artifact
from approxsvm.errors import UnsupportedModelError
from approxsvm.frontends import _kind_of
from approxsvm.frontends.formats import READERS
from approxsvm.frontends.sklearn.known_types import KNOWN, recognise
from approxsvm.ir.schema import SECTION_IDS, fields_of, names_of, record
from zoo.sources import REFUSED, ROWS, TARGETS, ZOO, specimen
from zoo.tampering import parts_of

pytestmark = pytest.mark.filterwarnings("ignore")


def test_everything_has_an_entry(tmp_path: Path) -> None:
    """Check every class and format that can be read, and every section and enumeration value in the schema."""
    refused = [clone(source).fit(ROWS["signed"].make(), TARGETS["value"]) for source in REFUSED.values()]
    found = {recognise(part) for source in refused for _, part in parts_of(source)}
    kinds, written = set(), []
    for k, entry in enumerate(ZOO.values()):
        folder = tmp_path / str(k)
        folder.mkdir()
        one = specimen(entry, folder)
        found |= {recognise(part) for part in (one.compiled_from, *(part for _, part in parts_of(one.source)))}
        written += folder.iterdir()
        kinds |= set(_kinds(one.artifact))
    expected = {known for known in KNOWN if known.library in ("cuml", "thundersvm") or _is_installed(known.library)}
    assert sorted(f"{known.module}.{known.name}" for known in expected - found) == []
    assert {*READERS, "a skops file"} <= {_kind_of(path) for path in written}
    assert {"libsvm.model", "model.joblib.gz"} <= {path.name for path in written}
    in_schema = {(name, kind) for name in _native.schema()["enumerations"] for kind in names_of(name)}
    in_schema |= {("section", name) for name in SECTION_IDS}
    assert sorted(in_schema - kinds) == []


def _is_installed(library: str) -> bool:
    return importlib.util.find_spec(library) is not None


@pytest.mark.parametrize("name", REFUSED)
def test_classes_that_are_refused_are_named(name: str) -> None:
    source = clone(REFUSED[name]).fit(ROWS["signed"].make(), TARGETS["value"])
    with pytest.raises(UnsupportedModelError, match=name):
        approxsvm.compile(source)


def _kinds(artifact: Artifact) -> Iterator[tuple[str, str]]:
    numbers = {name: artifact.header[name] for name in ("task", "mode", "kernel", "center_kind", "label_kind")}
    for tag in ("outputs", "combination", "support_vectors"):
        content = artifact.section(tag)
        numbers |= dict(zip(fields_of(tag), record(tag).unpack_from(content), strict=True)) if content else {}
    enumerations = _native.schema()["enumerations"]
    yield from ((name, names_of(name)[number]) for name, number in numbers.items() if name in enumerations)
    yield from (("section", name) for name in SECTION_IDS if artifact.section(name))
    if artifact.input_map is not None:
        yield from (("op_kind", op.kind) for op in artifact.input_map.ops)
    for member in artifact.members:
        yield from _kinds(member)

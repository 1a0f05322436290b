"""Everything that the frontends read, and an artifact may contain, has an entry in the zoo."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

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
from zoo.specimens import Specimen
from zoo.tampering import parts_of

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def specimens(tmp_path_factory: pytest.TempPathFactory) -> list[Specimen]:
    folder = tmp_path_factory.mktemp("zoo")
    found = []
    for k, entry in enumerate(ZOO.values()):
        (folder / str(k)).mkdir()
        found.append(specimen(entry, folder / str(k)))
    return found


def test_every_class_that_is_read_has_an_entry(specimens: list[Specimen]) -> None:
    refused = [clone(source).fit(ROWS["signed"].make(), TARGETS["value"]) for source in REFUSED.values()]
    parts = [part for source in refused for _, part in parts_of(source)]
    for one in specimens:
        parts += [one.compiled_from, *(part for _, part in parts_of(one.source))]
    found = {recognise(part) for part in parts}
    expected = {known for known in KNOWN if known.library in ("cuml", "thundersvm") or _is_installed(known.library)}
    assert sorted(f"{known.module}.{known.name}" for known in expected - found) == []


def _is_installed(library: str) -> bool:
    return importlib.util.find_spec(library) is not None


@pytest.mark.parametrize("name", REFUSED)
def test_classes_that_are_refused_are_named(name: str) -> None:
    source = clone(REFUSED[name]).fit(ROWS["signed"].make(), TARGETS["value"])
    with pytest.raises(UnsupportedModelError, match=name):
        approxsvm.compile(source)


def test_every_format_has_an_entry(specimens: list[Specimen]) -> None:
    written = [path for one in specimens for path in one.folder.iterdir()]
    kinds = {_kind_of(path) for path in written}
    assert {*READERS, "a skops file"} <= kinds
    assert {"libsvm.model", "model.joblib.gz"} <= {path.name for path in written}


def test_every_kind_of_artifact_has_an_entry(specimens: list[Specimen]) -> None:
    """Enumerations and sections of the schema, each number and each name."""
    found = {kind for one in specimens for kind in _kinds(one.artifact)}
    expected = {(name, kind) for name in _native.schema()["enumerations"] for kind in names_of(name)}
    expected |= {("section", name) for name in SECTION_IDS}
    assert sorted(expected - found) == []


def _kinds(artifact: Artifact) -> Iterator[tuple[str, str]]:
    numbers = {name: artifact.header[name] for name in ("task", "mode", "kernel", "center_kind", "label_kind")}
    for tag in ("outputs", "support_vectors"):
        content = artifact.section(tag)
        numbers |= dict(zip(fields_of(tag), record(tag).unpack_from(content), strict=True)) if content else {}
    enumerations = _native.schema()["enumerations"]
    yield from ((name, names_of(name)[number]) for name, number in numbers.items() if name in enumerations)
    yield from (("section", name) for name in SECTION_IDS if artifact.section(name))
    if artifact.input_map is not None:
        yield from (("op_kind", op.kind) for op in artifact.input_map.ops)
    for member in artifact.members:
        yield from _kinds(member)

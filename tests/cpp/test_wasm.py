"""approxsvm.wasm in Node.js: answers from the baseline kernels, refusals, and files whose sizes overflow 32 bits."""

from __future__ import annotations

import math
import re
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from artifact_changes import changed, classifier, content, deep, entries, polynomial, refused, with_header
from chromium import PROGRAM, Chromium
from conftest import GOLDEN, REPOSITORY
from native_build import filled_once
from runtime_library import Runtime
from sklearn.svm import SVC, SVR
from test_certificates import IN_C, SOURCES, X, artifact_of, requests
from test_records import ENCODERS, trained
from test_runtime import CODES, rows_for
from wasm_runtime import Door, RefusedError, build, missing, packed

import approxsvm
from approxsvm.runtime.evaluator import Artifact, read_artifact

pytestmark = pytest.mark.slow  # on a new machine, zig takes a minute to build the first module
IRIS = GOLDEN / "iris_classes.asvm"
OUT_OF_MEMORY, NOT_FINITE, WRONG_ROW_SIZE, NO_PROBABILITIES = 2, 30, 41, 45


@pytest.fixture(scope="session")
def web(shared_folder: Path) -> Path:
    """Return the build folder, with approxsvm.wasm, approxsvm.mjs and the page."""
    if missing():
        pytest.skip(f"not installed: {', '.join(missing())}")
    return filled_once(shared_folder, "wasm", build) / "web"


@pytest.fixture(scope="module")
def door(web: Path) -> Iterator[Door]:
    opened = Door(web)
    yield opened
    assert opened.process.stdin is not None
    opened.process.stdin.close()
    assert opened.process.wait(20) == 0
    assert opened.process.stdout is not None
    opened.process.stdout.close()


def failure(act: Any, message: str, code: int | None = None) -> RefusedError:
    with pytest.raises(RefusedError, match=message) as caught:
        act()
    assert caught.value.name == ("TypeError" if code is None else "ApproxsvmError"), caught.value
    assert caught.value.code == code
    return caught.value


# --- answers


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.asvm")), ids=lambda path: path.stem)
def test_what_models_say_of_themselves(door: Door, path: Path) -> None:
    artifact = read_artifact(path)
    about = door.ask("describe", artifact.data)
    assert about["task"] == artifact.task.replace("_", "-")
    assert about["mode"] == ("ensemble" if artifact.members else artifact.mode)
    assert (about["nFeatures"], about["nDecisions"]) == (artifact.n_raw_features, artifact.header["n_decisions"])
    assert (about["labels"] == []) == (artifact.task == "regression")
    if about["nDecisions"]:
        assert len(door.evaluate(artifact.data, rows_for(artifact, 0), "values")["values"]) == 0


@pytest.mark.parametrize("name", SOURCES)
def test_certificates_do_not_depend_on_the_request(door: Door, name: str) -> None:
    artifact = artifact_of(name)
    expected = door.evaluate(artifact.data, X, "certified")["certified"]
    assert 0.0 < expected.mean() < 1.0
    names = {**IN_C, "error_bound": "probabilityBounds"} if artifact.averages else IN_C
    for others in requests(artifact):
        for kind in ("promised", "settled", "exact"):
            wanted = [*(names[output] for output in others), "certified"]
            found = door.evaluate(artifact.data, X, *wanted, kind=kind)
            np.testing.assert_array_equal(found["certified"], expected, err_msg=f"{wanted} {kind}")


def test_rows_as_arrays_of_arrays(door: Door) -> None:
    rows = [[5.1, 3.5, 1.4, 0.2], [6.2, 2.8, 4.8, 1.8]]
    artifact = read_artifact(IRIS)
    assert door.ask("predict", artifact.data, rows=rows) == approxsvm.Predictor(artifact).predict(rows).tolist()
    X = np.random.default_rng(0).random((40, 3))
    regression = approxsvm.compile(SVR().fit(X, X[:, 0]), mode="exact")
    np.testing.assert_allclose(door.ask("predict", regression.artifact.data, rows=X.tolist()), regression.predict(X))


def test_labels_beyond_what_numbers_hold(door: Door) -> None:
    X = np.random.default_rng(0).random((40, 2))
    artifact = approxsvm.compile(SVC().fit(X, np.where(X[:, 0] > 0.5, 2**62 + 1, -5))).artifact
    assert door.ask("describe", artifact.data)["labels"] == [-5, {"integer": str(2**62 + 1)}]


def test_memory_grows_and_is_given_back(door: Door) -> None:
    artifact = read_artifact(GOLDEN / "digits_classes.asvm")
    rows = packed(rows_for(artifact, 9))
    found = door.ask("churn", artifact.data, rows=rows, again=500, together=60)
    assert found == {"same": True, "closed": "the model has been closed"}


def test_nothing_is_imported(door: Door) -> None:
    found = door.ask("imports")
    assert found["imports"] == 0
    names = {part["name"] for part in found["exports"]}
    assert {"memory", "malloc", "free", "approxsvm_open_bytes", "approxsvm_evaluate_f32"} <= names


# --- what is refused


def test_what_is_refused(door: Door) -> None:
    artifact = IRIS.read_bytes()
    for kind in (np.float32, np.float64):
        for number, word in ((np.nan, "NaN"), (-np.inf, "infinite")):
            rows = np.ones((300, 4), kind)
            rows[201, 2] = number
            said = failure(
                lambda rows=rows: door.evaluate(artifact, rows, "labels"), f"row 201, column 2 is {word}", NOT_FINITE
            )
            assert said.row == 201
    rows = np.ones((2, 3))
    failure(lambda: door.evaluate(artifact, rows, "labels"), "6 numbers are not whole rows of 4", WRONG_ROW_SIZE)
    failure(lambda: door.evaluate(artifact, np.ones((1, 4)), "probabilities"), "without prob", NO_PROBABILITIES)
    failure(lambda: door.evaluate(artifact, np.ones((1, 4)), "lables"), "no answer is called lables")
    failure(lambda: door.evaluate(artifact, np.ones((1, 4)), "labels", kind="best"), "no answer is called best")
    for wrong in ([[1.0, 2.0]], [[1.0, 2.0, 3.0, "4"]], [[1.0, 2.0, 3.0, None]], [1.0, 2.0, 3.0, 4.0]):
        failure(lambda wrong=wrong: door.ask("predict", artifact, rows=wrong), "row 0 is not an array of 4 numbers")
    failure(lambda: door.ask("predict", artifact, rows="1, 2"), "rows must be arrays of numbers, .*, not string")
    failure(lambda: door.ask("describe", b""), "wrong magic bytes", 11)
    failure(lambda: door.ask("describe", artifact[:-1] + b"\x01"), "checksum", 14)


def test_only_bytes_are_opened(door: Door) -> None:
    values = ["model.asvm", 5, None, True, {}, [1, 2]]
    names = ["string", "number", "null", "boolean", "Object", "Array", "undefined", "bigint", "symbol", "function"]
    words = "TypeError: open() needs the bytes of an artifact, an ArrayBuffer or a view of one, not"
    assert door.ask("openWrongly", values=values) == [f"{words} {name}" for name in names]


@pytest.mark.parametrize("encoder", ENCODERS)
def test_records(door: Door, encoder: str) -> None:
    """Rows and labels are the same as from approxsvm_row_of_record in C."""
    fast = trained(ENCODERS[encoder])
    model = Runtime(fast.artifact.data)
    for record in ({"city": "Köln", "age": 41.0}, {"age": None, "city": ""}, {"city": "Bonn"}, [7.5, "Ulm"]):
        fields = [(None, value) for value in record] if isinstance(record, list) else list(record.items())
        row = model.row_of_record(fields)
        (label,) = model.evaluate(row, "labels")
        *found, name = door.ask("record", fast.artifact.data, record=record)
        assert found == np.where(np.isnan(row), -9, row).ravel().tolist()
        assert name == model.label_text(int(label[0, 0]))
    for record, message, code in (
        ({"age": 1, "agee": 2}, "^field 1, agee: there is no such column$", CODES["WRONG_FIELD"]),
        ({"age": "old"}, "^field 0, age: a number is needed$", CODES["WRONG_FIELD"]),
        ([1.0], "^1 fields without names, expected 2$", CODES["WRONG_ROW_SIZE"]),
        ({"age": True}, "^field age is boolean, not a number, a string or null$", None),
        ({"age": [1]}, "^field age is Array, not a number, a string or null$", None),
        ("age", "^a record is an object or an array, not string$", None),
    ):
        failure(lambda record=record: door.ask("record", fast.artifact.data, record=record), message, code)


HOSTILE = ["iris_classes", "breast_cancer_one_class", "diabetes_pipeline", "iris_ensemble", "iris_cubic", "iris_slices"]


@pytest.mark.parametrize("name", HOSTILE)
def test_truncated_and_corrupted_artifacts(door: Door, name: str) -> None:
    """Such files are refused, or give meaningless answers; a trap raises another exception. Other models still work."""
    data = (GOLDEN / f"{name}.asvm").read_bytes()
    n_features = read_artifact(GOLDEN / f"{name}.asvm").n_raw_features
    witness = read_artifact(GOLDEN / "breast_cancer.asvm")
    rows = rows_for(witness)
    before = door.evaluate(witness.data, rows, "values")["values"]
    cut = door.ask("truncate", data, step=max(1, len(data) // 500), nFeatures=n_features)
    assert cut["answered"] == 0
    step = max(1, len(data) // 500)
    changed = door.ask("corrupt", data, step=step, flips=[1, 0x80, 0xFF], nFeatures=n_features)
    assert sum(changed["refused"].values()) + changed["answered"] == 3 * math.ceil(len(data) / step)
    assert changed["answered"] > 0
    assert len(changed["refused"]) > 4
    np.testing.assert_array_equal(door.evaluate(witness.data, rows, "values")["values"], before)


# --- sizes beyond 32 bits: files whose sizes are correct modulo 2^32


def test_a_form_that_is_too_large(door: Door) -> None:
    n_features = 1047550  # the number of its form's 8-byte numbers is a multiple of 2^29, plus 515
    n_numbers = (4 + n_features + n_features * (n_features + 1) // 2) % 2**29
    artifact = polynomial("approximate")

    form = {"polynomial": struct.pack("<2d", 0.5, 0.0) + bytes(8 * n_numbers)}
    wide = with_header(changed(content(form), artifact), n_features=n_features, n_raw_features=n_features)
    refused_everywhere(door, wide)


def test_monomials_that_are_too_many(door: Door) -> None:
    n, degree = 474, 4
    n_higher = sum(math.comb(n + k - 1, k) for k in range(3, degree + 1)) % 2**30
    sizes = {"center": n, "linear": n, "quadratic": n * (n + 1) // 2, "higher": n_higher}
    parts: dict[str, bytes | None] = {name: bytes(4 * size) for name, size in sizes.items()}
    many = changed(content({**parts, "feature_names": None}), deep("approximate"))
    refused_everywhere(door, with_header(many, degree=degree, n_features=n, n_raw_features=n))


def test_counts_that_are_too_many(door: Door) -> None:
    def more(section: str, first: int) -> Any:
        def claim(data: bytearray) -> None:
            at = entries(data)[section][0] + first
            for offset in (at, at + 4):
                struct.pack_into("<I", data, offset, struct.unpack_from("<I", data, offset)[0] + 2**31)

        return claim

    refused_everywhere(door, changed(more("class_counts", 0), read_artifact(IRIS)))
    subspaces = read_artifact(GOLDEN / "digits_subspace.asvm")
    n_stages = struct.unpack_from("<I", subspaces.section("subspaces"))[0]
    others = (8 + 4 * n_stages + 7) // 8 * 8 + 8 + 4  # after the skew and the own support vectors
    refused_everywhere(door, changed(more("subspaces", others), subspaces))


def refused_everywhere(door: Door, data: bytes) -> None:
    refused(data)
    failure(lambda: door.ask("describe", data), "^a section is missing", 16)


@pytest.mark.parametrize("kernel", ["polynomial", "gaussian"])
def test_models_larger_than_32_bits_address(door: Door, kernel: str) -> None:
    """The engine for a small file needs 2^32 bytes, or a multiple, which 32-bit machines cannot address."""
    if kernel == "polynomial":
        artifact, n_features, n_sv = polynomial("exact", 3), 2**20, 2**12
    else:
        artifact, n_features, n_sv = classifier("exact"), 2**16, 2**14
    vectors = struct.pack("<4IQd", 0, 2, 0, 1, n_sv * n_features, 0.0)  # a single value, which is not stored
    parts = {"dual_coef": bytes(8 * n_sv), "support_vectors": vectors, "feature_names": None}
    parts |= {"center": bytes(4 * n_features)} if kernel == "gaussian" else {}
    data = with_header(changed(content(parts), artifact), n_features=n_features, n_raw_features=n_features)
    Artifact(data)  # valid: 64-bit machines can open it
    failure(lambda: door.ask("describe", data), "^out of memory$", OUT_OF_MEMORY)


# --- the page in one file


@pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium here")
@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "dark")])
def test_the_page_in_one_file(web: Path, tmp_path: Path, width: int, scheme: str) -> None:
    """The page opens from disk, without a server and without requests."""
    with Chromium(tmp_path) as browser:
        browser.open((web / "approxsvm.html").as_uri(), width=width, scheme=scheme)
        browser.evaluate("document.getElementById('example').click()")
        for _ in range(200):
            if said := browser.evaluate("document.getElementById('times').textContent"):
                break
            time.sleep(0.1)
        assert said.startswith("4 rows in ")
        cells = browser.evaluate("[...document.querySelectorAll('tbody td:nth-child(2)')].map((x) => x.textContent)")
        expected = approxsvm.load(IRIS).predict(
            [[5.1, 3.5, 1.4, 0.2], [5.9, 3, 4.2, 1.5], [6.5, 3, 5.5, 1.8], [6, 2.7, 5.1, 1.6]]
        )
        assert cells == [str(label) for label in expected]
        assert browser.evaluate("document.documentElement.scrollWidth") == width
        assert browser.complaints == []


def test_the_documented_size(web: Path) -> None:
    """The documented size is correct to within a seventh."""
    page = (REPOSITORY / "docs" / "howto" / "cpp.md").read_text()
    (documented,) = re.findall(r"`approxsvm.wasm` \((\d+) KB", page)
    assert (web / "approxsvm.wasm").stat().st_size == pytest.approx(1000 * int(documented), rel=1 / 7)

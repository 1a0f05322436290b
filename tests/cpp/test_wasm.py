"""approxsvm.wasm in Node.js: answers of the baseline kernels, refusals, files that overflow 32 bits."""

from __future__ import annotations

import json
import math
import re
import struct
import subprocess
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
from sklearn.svm import SVC, SVR
from test_runtime import rows_for
from wasm_runtime import Door, RefusedError, build, missing, packed

import approxsvm
from approxsvm.runtime.evaluator import VALUES, Artifact, read_artifact

pytestmark = pytest.mark.slow  # zig takes a minute to build the first module on a machine
IRIS = GOLDEN / "iris_classes.asvm"
OUT_OF_MEMORY, NOT_FINITE, WRONG_ROW_SIZE, NO_PROBABILITIES = 2, 30, 41, 45


@pytest.fixture(scope="session")
def web(shared_folder: Path) -> Path:
    """The build folder: approxsvm.wasm, approxsvm.mjs and the page."""
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
    failure(lambda: door.ask("describe", b""), "wrong magic bytes", 11)
    failure(lambda: door.ask("describe", artifact[:-1] + b"\x01"), "checksum", 14)


HOSTILE = ["iris_classes", "breast_cancer_one_class", "diabetes_pipeline", "iris_ensemble", "iris_cubic", "iris_slices"]


@pytest.mark.parametrize("name", HOSTILE)
def test_truncated_and_corrupted_artifacts(door: Door, name: str) -> None:
    """Refused, or answered with nonsense; a trap would be another exception. Other models are unaffected."""
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


# --- sizes beyond 32 bits: files whose claims are right modulo 2^32


def test_a_form_that_is_too_large(door: Door) -> None:
    n_features = 1047550  # its form has 515 numbers more than a multiple of 2^29, of eight bytes each
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
    """A small file whose engine takes 2^32 bytes, or a multiple: no machine has that memory."""
    if kernel == "polynomial":
        artifact, n_features, n_sv = polynomial("exact", 3), 2**20, 2**12
    else:
        artifact, n_features, n_sv = classifier("exact"), 2**16, 2**14
    vectors = struct.pack("<4IQd", 0, 2, 0, 1, n_sv * n_features, 0.0)  # one number, which is not stored
    parts = {"dual_coef": bytes(8 * n_sv), "support_vectors": vectors, "feature_names": None}
    parts |= {"center": bytes(4 * n_features)} if kernel == "gaussian" else {}
    data = with_header(changed(content(parts), artifact), n_features=n_features, n_raw_features=n_features)
    Artifact(data)  # a good one, that machines of 64 bits may open
    failure(lambda: door.ask("describe", data), "^out of memory$", OUT_OF_MEMORY)


# --- without Python: a model file of LIBSVM, the page in one file

OF_LIBSVM = """
import { readFileSync } from "node:fs";
import { loadRuntime } from "./approxsvm.mjs";
import { artifactOf, parseModel } from "./libsvm_model.mjs";

const runtime = await loadRuntime(readFileSync("approxsvm.wasm"));
const [path, rows, wider] = JSON.parse(readFileSync(0, "utf8"));
const parsed = parseModel(readFileSync(path, "utf8"));
const model = runtime.open(wider ? artifactOf(parsed, rows[0].length) : artifactOf(parsed));
const { values, bounds } = model.evaluate(rows, { values: true, bounds: true });
const labels = model.labels.length ? model.predict(rows) : [];
console.log(JSON.stringify({ values: Array.from(values), bounds: Array.from(bounds), labels }));
"""


@pytest.mark.parametrize("wider", [False, True])
@pytest.mark.parametrize("name", ["breast_cancer", "iris_classes", "diabetes_svr", "breast_cancer_one_class"])
def test_a_model_of_libsvm_in_the_browser(web: Path, name: str, wider: bool) -> None:
    path = GOLDEN / f"{name}.model"
    exact = approxsvm.compile(path, mode="exact")
    rows = rows_for(exact.artifact, 20)
    given = np.hstack([rows, np.zeros((20, 2))]) if wider else rows
    request = json.dumps([str(path), given.tolist(), wider])
    command = ["node", "--input-type=module", "-e", OF_LIBSVM]
    ran = subprocess.run(command, cwd=web, input=request, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    expected = np.ravel(exact._evaluator.evaluate(rows, VALUES))
    slack = np.array(found["bounds"]) + 1e-12 * np.abs(expected).max()
    assert (np.abs(np.array(found["values"]) - expected) <= slack).all()
    assert max(found["bounds"]) < 1e-6 * np.abs(expected).max()
    if found["labels"]:
        assert found["labels"] == exact.predict(rows).tolist()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("kernel_type rbf", "kernel_type linear"), "kernel_type is linear"),
        (("gamma 0.05", "gamma -1"), "gamma is -1"),
        (("SV\n", "\n"), "no line SV"),
        (("SV\n", "scaling 1:2\nSV\n"), "the model scales its rows (a line scaling)"),
        (("1:", "1:x"), "support vector 1 is not"),
    ],
)
def test_what_the_browser_refuses_of_a_model_of_libsvm(
    web: Path, tmp_path: Path, change: tuple[str, str], why: str
) -> None:
    text = (GOLDEN / "breast_cancer.model").read_text()
    assert change[0] in text
    (tmp_path / "some.model").write_text(text.replace(*change))
    request = json.dumps([str(tmp_path / "some.model"), [[0.5] * 30], False])
    command = ["node", "--input-type=module", "-e", OF_LIBSVM]
    ran = subprocess.run(command, cwd=web, input=request, capture_output=True, text=True)
    assert (ran.returncode, why in ran.stderr) == (1, True), ran.stderr


@pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium here")
@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "dark")])
def test_the_page_in_one_file(web: Path, tmp_path: Path, width: int, scheme: str) -> None:
    """Opened from disk, without a server and without requests."""
    with Chromium(tmp_path) as browser:
        browser.open((web / "approxsvm.html").as_uri(), width=width, scheme=scheme)
        browser.evaluate("document.getElementById('example').click()")
        for _ in range(200):
            if said := browser.evaluate("document.getElementById('times').textContent"):
                break
            time.sleep(0.1)
        assert said.startswith("4 rows in ")
        cells = browser.evaluate("[...document.querySelectorAll('tbody td:nth-child(2)')].map((x) => x.textContent)")
        assert cells == ["1", "-1", "-1", "1"]
        assert browser.evaluate("document.documentElement.scrollWidth") == width
        assert browser.complaints == []


def test_the_documented_size(web: Path) -> None:
    """The size follows the core, within a seventh."""
    page = (REPOSITORY / "docs" / "howto" / "cpp.md").read_text()
    (documented,) = re.findall(r"`approxsvm.wasm` \((\d+) KB", page)
    assert (web / "approxsvm.wasm").stat().st_size == pytest.approx(1000 * int(documented), rel=1 / 7)

"""Writing .asvm files and reading them back: labels, names, packed matrices, and numbers at their limits."""

from __future__ import annotations

import copy
import itertools
import os
import pickle
import re
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from artifact_changes import INF, MODES, classifier, compiled, regressor
from conftest import GOLDEN, random_model

import approxsvm
from approxsvm import Artifact, ArtifactError, KernelModel, UnsupportedModelError, _native
from approxsvm.compiler import compile as compile_model
from approxsvm.estimators import estimator_for
from approxsvm.expansion.monomials import n_monomials, storage_order
from approxsvm.reference.definition import definition_of

# --- round trips ---


@pytest.mark.parametrize(
    "labels",
    [
        np.array([1j, 2]),
        np.array([b"a", b"b"]),
        np.array([1, "a"], dtype=object),
        np.array([0.5, INF]),
        np.array(["\ud800", "b"]),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_labels_that_cannot_be_stored(labels: npt.NDArray[Any]) -> None:
    with pytest.raises(UnsupportedModelError, match="labels"):
        classifier(labels=labels)


@pytest.mark.parametrize("names", [("größe", "日本語", "\U0001f600"), ("", "", ""), ("a" * 5000, "same", "same"), None])
def test_feature_names_survive(names: tuple[str, ...] | None, tmp_path: Path) -> None:
    artifact = classifier(feature_names=names)
    artifact.write(tmp_path / "model.asvm")
    assert Artifact.read(tmp_path / "model.asvm").feature_names == names


def test_source_is_cut_between_characters() -> None:
    assert classifier(source="libsvm c_svc").source == "libsvm c_svc"
    assert classifier(source="a" * 31 + "é").source == "a" * 31


@pytest.mark.parametrize("mode", MODES)
def test_copies_are_equal(mode: str) -> None:
    artifact = classifier(mode)
    for twin in (
        pickle.loads(pickle.dumps(artifact)),
        copy.copy(artifact),
        copy.deepcopy(artifact),
        Artifact(artifact.data),
    ):
        assert twin == artifact
        assert hash(twin) == hash(artifact)
        assert twin.labels.tolist() == artifact.labels.tolist()
    assert artifact != regressor(mode)
    assert artifact != artifact.data


def test_a_pickle_is_validated() -> None:
    stream = bytearray(pickle.dumps(classifier()))
    stream[stream.index(b"\x89ASVM") + 90] ^= 1
    with pytest.raises(ArtifactError, match="checksum"):
        pickle.loads(bytes(stream))


def test_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "not a model.asvm"
    path.write_bytes(b"svm_type c_svc\n")
    with pytest.raises(ArtifactError, match=r"not a model\.asvm: not an approxsvm artifact"):
        Artifact.read(path)
    with pytest.raises(FileNotFoundError, match="missing"):
        approxsvm.load(tmp_path / "missing.asvm")


# --- writing ---


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_failing_write_leaves_no_trace(broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.asvm"
    path.write_bytes(b"before")

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, broken, fail)
    with pytest.raises(OSError, match="No space"):
        classifier().write(path)
    monkeypatch.undo()
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["model.asvm"]


def test_write_replaces_and_cannot_replace_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "model.asvm"
    path.write_bytes(b"before")
    artifact = classifier()
    artifact.write(path)
    assert path.read_bytes() == artifact.data
    (tmp_path / "folder.asvm").mkdir()
    with pytest.raises(OSError, match="folder"):
        artifact.write(tmp_path / "folder.asvm")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        artifact.write(tmp_path / "nowhere" / "model.asvm")
    assert sorted(os.listdir(tmp_path)) == ["folder.asvm", "model.asvm"]


def test_write_follows_links(tmp_path: Path) -> None:
    """A link's target is replaced as a whole; the link remains, even if it is dangling."""
    artifact = classifier()
    (tmp_path / "models").mkdir()
    target = tmp_path / "models" / "target.asvm"
    target.write_bytes(b"before")
    target.chmod(0o604)
    with open(target, "rb") as held:
        for name, leads_to in (("link", "models/target.asvm"), ("far", "link"), ("new", "models/new.asvm")):
            link = tmp_path / name
            link.symlink_to(leads_to)
            artifact.write(link)
            assert link.is_symlink()
            assert link.read_bytes() == artifact.data
        assert held.read() == b"before"  # replaced rather than overwritten
    assert target.stat().st_mode & 0o777 == 0o604
    assert sorted(os.listdir(tmp_path)) == ["far", "link", "models", "new"]
    assert sorted(os.listdir(tmp_path / "models")) == ["new.asvm", "target.asvm"]
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(OSError, match="circle"):
        artifact.write(tmp_path / "circle")


def test_write_into_a_pipe(tmp_path: Path) -> None:
    artifact, fifo = classifier(), tmp_path / "fifo"
    os.mkfifo(fifo)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(fifo.read_bytes)
        artifact.write(fifo)
        assert read.result(timeout=60) == artifact.data
    assert fifo.is_fifo()
    assert os.listdir(tmp_path) == ["fifo"]


def test_write_to_a_descriptor(tmp_path: Path) -> None:
    """A new file cannot replace a pipe, or a file without a name."""
    artifact = classifier()
    out, into = os.pipe()
    with open(out, "rb") as reader, ThreadPoolExecutor(1) as pool:
        read = pool.submit(reader.read)
        artifact.write(f"/dev/fd/{into}")
        os.close(into)
        assert read.result(timeout=60) == artifact.data
    with open(tmp_path / "file", "w+b") as nameless:
        os.unlink(tmp_path / "file")
        artifact.write(f"/dev/fd/{nameless.fileno()}")
        assert nameless.read() == artifact.data
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root makes devices, and breaks them")
def test_a_device_stays_a_device(tmp_path: Path) -> None:
    device = tmp_path / "null"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        open(device, "wb").close()
    except PermissionError:
        pytest.skip("devices cannot be made, or not used, here")
    (tmp_path / "link").symlink_to("null")
    for name in ("null", "link"):
        classifier().write(tmp_path / name)
    assert device.is_char_device()
    assert (tmp_path / "link").is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["link", "null"]


def test_write_obeys_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        classifier().write(tmp_path / "model.asvm")
    finally:
        os.umask(before)
    assert (tmp_path / "model.asvm").stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_write_into_a_read_only_folder(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "model.asvm").write_bytes(b"before")
    folder.chmod(0o500)
    try:
        with pytest.raises(PermissionError):
            classifier().write(folder / "model.asvm")
        assert os.listdir(folder) == ["model.asvm"]
        assert (folder / "model.asvm").read_bytes() == b"before"
    finally:
        folder.chmod(0o700)


# --- contents ---


def in_storage_order(first: int, d: int, degree: int) -> list[tuple[int, ...]]:
    """Return every monomial's variables, as defined by the format."""
    if degree == 2:
        return [
            (row, column)
            for panel in range(first, d, 8)
            for column in range(panel, d)
            for row in range(panel, min(panel + 8, column + 1))
        ]
    return [(i, *rest) for i in range(first, d) for rest in in_storage_order(i, d, degree - 1)]


@pytest.mark.parametrize(
    ("d", "degree"),
    [
        *((d, 2) for d in (*range(1, 26), 63, 64, 65, 130)),
        *((d, 3) for d in (1, 2, 7, 8, 9, 17)),
        (9, 4),
        (3, 5),
        (2, 6),
    ],
)
def test_storage_order_is_that_of_the_format(d: int, degree: int) -> None:
    lexicographic = list(itertools.combinations_with_replacement(range(d), degree))
    order = storage_order(d, degree)
    assert [lexicographic[k] for k in order] == in_storage_order(0, d, degree)
    assert len(order) == n_monomials(d, degree)


def tensor_entries(artifact: Artifact, c: int, row: npt.NDArray[np.float64]) -> float:
    """Return the decision value around center c, computed from the stored numbers with the format's formula."""
    d, degree = artifact.n_features, artifact.header["degree"]
    numbers, center = artifact.expansion_numbers()[c], artifact.centers()[c]
    u = (row - center) * artifact.header["input_scale"]
    inner = numbers["constant"] + artifact.coefficients("linear").reshape(-1, d)[c] @ u
    sizes = {"quadratic": (2, 2), "higher": (3, degree)}
    for name, (lowest, highest) in sizes.items():
        monomials = [m for k in range(lowest, min(highest, degree) + 1) for m in in_storage_order(0, d, k)]
        if monomials:
            coefficients = artifact.coefficients(name).reshape(-1, len(monomials))[c].astype(float)
            inner += coefficients @ [np.prod(u[list(m)]) for m in monomials]
    s = 2.0 * artifact.header["gamma"] * float(((row - center) ** 2).sum())
    intercept = artifact.decision_numbers()["intercept"][0]
    return float(intercept + numbers["output_scale"] * np.exp(-0.5 * s) * inner)


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("n_centers", [1, 20])
def test_the_formula_of_the_format_gives_the_model(degree: int, n_centers: int) -> None:
    """Near a center, higher degrees are more accurate."""
    model = random_model(8, n_features=3, n_sv=30)
    artifact = compiled(model, "approximate", degree=degree, n_centers=n_centers)
    for c, center in enumerate(artifact.centers()):
        row = center + 0.1 * np.random.default_rng(c).normal(size=3)
        exact = definition_of(model).values(row[np.newaxis])[0, 0]
        s = 0.2 * float(((row - center) ** 2).sum())
        assert abs(tensor_entries(artifact, c, row) - exact) <= np.abs(model.dual_coef).sum() * (
            s ** (degree / 2 + 0.5) + 1e-6
        )


def test_center_and_tolerance_are_written() -> None:
    model = random_model(6)
    for mode in ("certified", "exact"):
        assert compile_model(model, mode=mode).artifact.header["tolerance"] == INF
        assert compile_model(model, mode=mode, tolerance=1e-3).artifact.header["tolerance"] == 1e-3
        origin = compile_model(model, mode=mode, center="origin").artifact
        assert (origin.center == 0.0).all()
        assert (origin.header["center_kind"], compile_model(model, mode=mode).artifact.header["center_kind"]) == (0, 1)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("task", ["classification", "regression", "one_class"])
@pytest.mark.parametrize("d", [1, 3, 8, 9, 257])
def test_check_rows_replay(d: int, task: str, mode: Any, target: str) -> None:
    """The synthetic rows are bit-identical; otherwise, the values would differ widely."""
    for seed, (gamma, scale, shift) in enumerate([(0.5 / d, 1.0, 0.0), (1e-6, 100.0, 1e4), (50.0, 0.05, -3.0)]):
        model = random_model(seed, n_features=d, gamma=gamma, task=task)
        vectors = np.asarray(model.support_vectors) * scale + shift
        artifact = compiled(random_model(seed, n_features=d, gamma=gamma, task=task, support_vectors=vectors), mode)
        assert _native.Predictor(artifact.data).target == target


def error_and_promise(model: KernelModel, mode: Any, rows: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Return the largest error over some rows and its limit: the tolerance, or a fraction of the coefficient sum."""
    forced: dict[str, Any] = {} if mode == "exact" else {"degree": 2, "n_centers": 1}
    fast = compile_model(model, mode=mode, **forced)
    error = np.abs(fast.predict(rows) - definition_of(model).values(rows)[:, 0]).max()
    promise = fast.artifact.header["tolerance"]
    share = 1e-3 * np.abs(model.dual_coef).sum()
    # The reference rounds as float64 sums do.
    return float(error), float(promise + 1e-12 * share if mode != "approximate" else share)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("exponent", [-200, -199, -100, -1, 0, 1, 100, 199, 200])
def test_extreme_gamma(exponent: int, mode: Any, target: str) -> None:
    gamma = 2.0**exponent
    vectors = np.random.default_rng(1).normal(size=(40, 7)) * 0.05 / np.sqrt(gamma)
    model = random_model(1, gamma=gamma, support_vectors=vectors, task="regression")
    assert 1.0 <= 2.0 * gamma / compile_model(model, mode=mode).artifact.header["input_scale"] ** 2 < 4.0
    error, promise = error_and_promise(model, mode, vectors)
    assert error <= promise


@pytest.mark.parametrize("gamma", [5e-324, 1e-300, 2.0**-202, 2.0**202, 1e100, 1e154, 1e200, 1.7e308])
@pytest.mark.parametrize("scale", [1.0, 1e-30])
def test_gamma_beyond_the_format(gamma: float, scale: float) -> None:
    vectors = np.random.default_rng(1).normal(size=(40, 7)) * scale
    for mode in MODES:
        with pytest.raises(UnsupportedModelError, match="gamma is"):
            compile_model(random_model(1, gamma=gamma, support_vectors=vectors), mode=mode)


@pytest.mark.parametrize("mode", MODES)
def test_gamma_zero_is_a_constant(mode: Any, target: str) -> None:
    fast = estimator_for(compiled(random_model(1, gamma=0.0, task="regression"), mode))
    rows = np.array([[0.0] * 7, [1e30] * 7, [1e150] * 7, [-1.0] * 7])
    model = random_model(1, gamma=0.0, task="regression")
    np.testing.assert_allclose(fast.predict(rows), model.dual_coef.sum() + model.intercept[0], rtol=1e-12)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("size", "gamma"),
    [
        *((size, 0.1) for size in (1e-300, 1e-200, 1e-100, 1e-30, 1e30, 1e100, 1e200, 1e300)),
        *((size, gamma) for size in (1e-200, 1e-100, 1e100, 1e150) for gamma in (2.0**-200, 2.0**200)),
    ],
)
def test_extreme_coefficients(size: float, gamma: float, mode: Any) -> None:
    size = min(size, 1e299)  # the sum of the coefficients' absolute values must be at most 2^1000
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(40, 7)) * 0.05 / np.sqrt(gamma)
    changes = {"support_vectors": vectors, "dual_coef": rng.normal(size=(1, 40)) * size, "intercept": np.zeros(1)}
    model = random_model(2, gamma=gamma, task="regression", **changes)
    error, promise = error_and_promise(model, mode, vectors)
    assert error <= promise


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [2.0**1000, 1e302, 1e305, 1.7e308])
def test_coefficients_beyond_the_format(size: float, mode: Any) -> None:
    with pytest.raises(UnsupportedModelError, match=r"the limit is 2\^1000"):
        compile_model(random_model(3, task="regression", dual_coef=np.full((1, 40), size)), mode=mode)


@pytest.mark.parametrize("mode", MODES)
def test_no_support_vectors_is_a_constant(mode: Any, target: str) -> None:
    changes = {"support_vectors": np.empty((0, 7)), "dual_coef": np.empty((1, 0)), "intercept": np.array([1.5])}
    fast = estimator_for(compiled(random_model(3, task="regression", **changes), mode))
    assert (fast.predict(np.ones((3, 7))) == 1.5).all()
    assert fast.artifact.support_vectors().shape == (0, 7)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data[:-64], r"the file has (\d+) bytes, expected (\d+): it is truncated$"),
        (lambda data: data + bytes(64), r"the file has (\d+) bytes, expected (\d+): something follows the artifact"),
        (
            lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
            "checksum is .*, expected .*: the file is damaged$",
        ),
        (
            lambda data: b"\xef\xbb\xbf" + data,
            "this is an approxsvm artifact after a byte order mark; remove its first three bytes",
        ),
    ],
)
def test_damaged_files_are_named_for_what_they_are(tmp_path, change, words):
    """The file's number comes first in the message, then the expected one."""
    data = (GOLDEN / "breast_cancer.asvm").read_bytes()
    path = tmp_path / "m.asvm"
    path.write_bytes(change(data))
    with pytest.raises(ArtifactError, match=words) as caught:
        approxsvm.load(path)
    found = re.search(words, str(caught.value))
    assert found.groups() in ((), (str(path.stat().st_size), str(len(data))))

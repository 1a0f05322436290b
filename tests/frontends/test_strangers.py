"""Files whose contents do not suit their role: every interface names the actual file type in one line."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import pickle
import re
import zipfile
import zlib

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import GOLDEN
from scipy import sparse
from sklearn.svm import SVC

import approxsvm
from approxsvm.cli import main
from approxsvm.errors import ArtifactError, DataFormatError, ModelFormatError, UnsupportedModelError

MODEL = (GOLDEN / "iris_centers.model").read_bytes()
ROWS = (GOLDEN / "iris_centers.t").read_bytes()


def saved(save, *arrays):
    stream = io.BytesIO()
    save(stream, *arrays)
    return stream.getvalue()


def zipped(*names):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in names:
            archive.writestr(name, "{}")
    return stream.getvalue()


def onnx_graph():
    pytest.importorskip("onnx")
    return approxsvm.load(GOLDEN / "breast_cancer.asvm").to_onnx().SerializeToString()


def parquet_file():
    table = pytest.importorskip("pyarrow").table({"a": [1.0]})
    return saved(lambda stream: pytest.importorskip("pyarrow.parquet").write_table(table, stream))


STRANGERS = {
    "JSON": (b' \n[{"learner": 1}]', "a JSON file"),
    "VMAF": (
        b'{"model_dict": {"model": "' + MODEL.replace(b"\n", b"\\n") + b'"}}',
        "a VMAF model (JSON)",
    ),
    "LIBSVM in JSON": (
        b'{"model": "' + MODEL.replace(b"\n", b"\\n") + b'"}',
        "a JSON file with a LIBSVM model in it",
    ),
    "OpenCV XML": (b'<?xml version="1.0"?>\n<opencv_storage>\n<opencv_ml_svm>', "an OpenCV file (XML)"),
    "OpenCV YAML": (b"%YAML:1.0\n---\nopencv_ml_svm:\n   format: 3\n", "an OpenCV file (YAML)"),
    "YAML": (b"---\nsvm: 1\n", "a YAML file"),
    "PMML": (b'<?xml version="1.0"?>\n<PMML version="4.3">', "a PMML file"),
    "XML": (b"<svm/>\n", "an XML file"),
    "HTML": (b"<!doctype html>\n<html lang=en>", "an HTML page"),
    "ONNX": (onnx_graph, "an ONNX model"),
    "Core ML": (b"\x08\x04\x12\x0c\x0a\x02\x0a\x00", "a protobuf file, as Core ML writes"),
    "npy": (saved(np.save, np.ones((2, 2))), "a NumPy array (.npy)"),
    "npz": (saved(np.savez, np.ones((2, 2))), "a NumPy archive (.npz)"),
    "sparse npz": (saved(sparse.save_npz, sparse.csr_matrix(np.eye(3))), "a NumPy archive (.npz)"),
    "skops": (zipped("1.json", "schema.json"), "a skops file"),
    "zip": (zipped("a.txt"), "a zip archive"),
    "gzip": (gzip.compress(MODEL), "a file compressed by gzip"),
    "bzip2": (bz2.compress(MODEL), "a file compressed by bzip2"),
    "xz": (lzma.compress(MODEL), "a file compressed by xz"),
    "zlib": (zlib.compress(MODEL), "a file compressed by zlib, as joblib writes"),
    "pickle": (pickle.dumps(SVC()), "a pickle"),
    "old pickle": (pickle.dumps(SVC(), protocol=2), "a pickle"),
    "HDF5": (b"\x89HDF\r\n\x1a\n" + bytes(16), "an HDF5 file"),
    "MATLAB": (b"MATLAB 5.0 MAT-file, Platform: GLNXA64", "a MATLAB file"),
    "Parquet": (parquet_file, "a Parquet file"),
    "PNG": (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "a PNG image"),
    "JPEG": (b"\xff\xd8\xff\xe0\x00\x10JFIF", "a JPEG image"),
    "SQLite": (b"SQLite format 3\x00\x10\x00", "an SQLite database"),
    "UTF-16": (MODEL.decode().encode("utf-16"), "text in UTF-16"),
    "LIBLINEAR": (b"solver_type L2R_LR\nnr_class 2\n", "a LIBLINEAR model"),
    "LightGBM": (b"tree\nversion=v4\n", "a LightGBM model"),
    "range": (b"x\n-1 1\n1 0 4\n", "a range file of svm-scale"),
    "Git LFS": (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 5\n", "a pointer of Git LFS"),
    "SVM-light": (b"SVM-light Version V6.02\n2 # kernel type\n", "an SVM-light model"),
    "node-svm": (b'{"params": {"svmType": "C_SVC"}, "supportVectors": []}', "a node-svm model (JSON)"),
    "R": (b"X\n\0\0\0\3", "an R object (.rds)"),
    "binary": (b"\x01\x02\x00\x03" * 10, "a binary file of an unknown kind"),
}
NOT_DATA = {**STRANGERS, "model": (MODEL, "a LIBSVM model")}
NOT_A_MODEL = {**STRANGERS, "data": (ROWS, "a LIBSVM data file"), "empty": (b"", "an empty file")}


# Reader messages for files without a model.
READ = {
    "OpenCV XML": "line 3: not well-formed XML",
    "OpenCV YAML": "this OpenCV file holds opencv_ml_svm, but no model of ml::SVM",
    "PMML": "line 2: not well-formed XML",
    "ONNX": "the graph has 0 nodes SVMClassifier or SVMRegressor instead of 1",
    "skops": "not a readable skops file",
    "VMAF": r"model_dict.feature_names: expected a list of names",
    **dict.fromkeys(("zlib", "pickle", "old pickle"), "a pickle can run any code"),
}


def written(name, path):
    """Write a file of the named type, and return the type's name in messages."""
    content, kind = (NOT_A_MODEL | NOT_DATA)[name]
    path.write_bytes(content() if callable(content) else content)
    return kind


def assert_command_says_the_same(path, error):
    result = CliRunner().invoke(main, ["convert-model", str(path), "-o", str(path.parent / "out")])
    text = re.sub(r"pass joblib\.load\(.*\)", "add --trust", " ".join(str(error).split()))
    assert (result.exit_code, result.stderr) == (1, f"approxsvm: {text}\n")
    assert not (path.parent / "out").exists()


@pytest.mark.parametrize("name", [name for name in NOT_A_MODEL if name not in READ])
def test_in_place_of_a_model(name, tmp_path):
    path = tmp_path / "file"
    kind = written(name, path)
    with pytest.raises(ModelFormatError) as caught:
        approxsvm.read_any(path)
    assert str(caught.value).startswith(f"{path}: this is {kind}, not a LIBSVM model")
    assert_command_says_the_same(path, caught.value)


@pytest.mark.parametrize("name", READ)
def test_broken_models_of_other_programs(name, tmp_path):
    pytest.importorskip("skops" if name == "skops" else "onnx")
    path = tmp_path / "file"
    written(name, path)
    with pytest.raises((ModelFormatError, UnsupportedModelError), match=READ[name]) as caught:
        approxsvm.read_any(path)
    assert str(caught.value).startswith(str(path))
    assert_command_says_the_same(path, caught.value)
    with pytest.raises(DataFormatError, match=r"; approxsvm convert-model (--trust )?reads it$"):
        approxsvm.read_libsvm_data(path)


@pytest.mark.parametrize("name", NOT_A_MODEL)
@pytest.mark.parametrize("door", [approxsvm.load, approxsvm.Predictor])
def test_in_place_of_an_artifact(name, door, tmp_path):
    kind = written(name, tmp_path / "file")
    with pytest.raises(ArtifactError, match="not an approxsvm artifact") as caught:
        door(tmp_path / "file")
    assert f"file: not an approxsvm artifact: this is {kind}" in str(caught.value)


@pytest.mark.parametrize("name", NOT_DATA)
@pytest.mark.parametrize("door", [approxsvm.read_libsvm_data, approxsvm.read_rows])
def test_in_place_of_data(name, door, tmp_path):
    kind = written(name, tmp_path / "file")
    with pytest.raises(DataFormatError) as caught:
        door(tmp_path / "file")
    assert str(caught.value).startswith(f"{tmp_path / 'file'}: this is {kind}, not a LIBSVM data file")


@pytest.mark.parametrize("name", ["JSON", "ONNX", "HDF5", "data", "empty"])
def test_in_place_of_a_pickle(tmp_path, name):
    path = tmp_path / "model.pkl"
    kind = written(name, path)
    with pytest.raises(ModelFormatError, match="not a readable pickle") as caught:
        approxsvm.read_model(path, trust=True)
    assert str(caught.value) == f"{path}: not a readable pickle: this is {kind}"


ARTIFACT = (GOLDEN / "breast_cancer.asvm").read_bytes()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (ARTIFACT, "this is an approxsvm artifact, not a LIBSVM model"),
        (STRANGERS["LIBSVM in JSON"][0], "; save that text as a file of its own$"),
        (STRANGERS["gzip"][0], "; decompress it first$"),
        (STRANGERS["Git LFS"][0], "; git lfs pull replaces it with the file$"),
        (STRANGERS["SVM-light"][0], r", or pass its numbers to approxsvm\.KernelModel$"),
        (STRANGERS["R"][0], "; in R, write the model with write_libsvm"),
        (gzip.compress(STRANGERS["R"][0], mtime=0), r"this is an R object \(\.rds\); in R, write the model"),
        (STRANGERS["range"][0], "; approxsvm convert-model --range takes it$"),
        # Messages for files that are nearly models keep the line number.
        (MODEL.replace(b"rho", b"{", 1), r"line 6: unknown key '{'"),
    ],
)
def test_what_is_said_of_a_file_that_is_no_model(content, message, tmp_path):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ModelFormatError, match=message):
        approxsvm.read_any(tmp_path / "file")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (ROWS + b"{\n", r"line 31: wrong input format: label '{' is not a number"),
        (b"1 1:x\n", "line 1: wrong input format: the value of index 1 is 'x'"),
    ],
)
def test_texts_that_nearly_are_data_keep_their_line(content, message, tmp_path):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(DataFormatError, match=message):
        approxsvm.read_libsvm_data(tmp_path / "file")

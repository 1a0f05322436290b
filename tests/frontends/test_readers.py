"""Readers: an accepted source yields its exact decision function, and a refusal states its reason."""

from __future__ import annotations

import gzip
import io
import lzma
import math
import pickle
import struct
import zipfile
from pathlib import Path

import joblib
import numpy as np
import pytest
from conftest import GOLDEN
from scipy import sparse
from scipy.sparse import csr_array
from sklearn.svm import SVC

import approxsvm
from approxsvm.errors import DataFormatError, ModelFormatError, UnsupportedModelError
from approxsvm.frontends.data import read_dense
from approxsvm.frontends.other_programs import e1071
from approxsvm.frontends.plain_numbers import plain_float
from approxsvm.frontends.svm_scale import read_range_file
from approxsvm.reference.definition import definition_of
from approxsvm.runtime.evaluator import BOUNDS, VALUES

HEADER = "svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho 0.25\nlabel 1 -1\nnr_sv 1 1\nSV\n"
MODEL = HEADER + "1 1:1 2:0.5\n-1 1:-1\n"


def read_text(tmp_path, text):
    path = tmp_path / "some.model"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return approxsvm.read_libsvm_model(path)


def test_a_libsvm_model_becomes_arrays(tmp_path):
    model = read_text(tmp_path, MODEL)
    assert (model.task, model.gamma, model.n_sv, model.n_features) == ("classification", 0.5, 2, 2)
    np.testing.assert_array_equal(model.support_vectors.toarray(), [[1, 0.5], [-1, 0]])
    np.testing.assert_array_equal(model.dual_coef, [[1, -1]])
    np.testing.assert_array_equal(model.intercept, [-0.25])
    np.testing.assert_array_equal(model.labels, [1, -1])
    assert model.source == "libsvm c_svc"


# cpp/tests/test_text.cpp tests other layouts and other broken files.
VARIANTS = {
    "crlf": MODEL.replace("\n", "\r\n"),
    "byte order mark": "\ufeff" + MODEL,
    "comments": "# in May\n" + MODEL.replace("rho", "#rho 3\nrho").replace("0.5\n", "0.5 # of two\n", 1),
    "no scales": MODEL.replace("SV\n", "scaling \nSV\n"),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_variants_that_are_accepted(tmp_path, name):
    model, expected = read_text(tmp_path, VARIANTS[name]), read_text(tmp_path, MODEL)
    np.testing.assert_array_equal(model.support_vectors.toarray(), expected.support_vectors.toarray())
    np.testing.assert_array_equal(model.dual_coef, expected.dual_coef)


def test_scales_of_the_point_cloud_library(tmp_path):
    """Only features with a scale are divided; columns that occur in no support vector also count."""
    rows = np.random.default_rng(0).normal(size=(200, 4)) * [1, 3, 2, 1]
    fast = approxsvm.compile(read_text(tmp_path, MODEL.replace("SV\n", "scaling 1:0.3 2:7 4:2.5 \nSV\n")), mode="exact")
    (tmp_path / "some.model").write_text(MODEL)
    bare = approxsvm.read_libsvm_model(tmp_path / "some.model", n_features=4)
    expected = definition_of(bare).values(rows / [0.3, 7, 1, 2.5])
    np.testing.assert_allclose(fast.decision_function(rows), expected[:, 0], rtol=1e-12)


def test_a_row_without_features_is_a_zero_vector(tmp_path):
    np.testing.assert_array_equal(read_text(tmp_path, HEADER + "1\n-1 1:2\n").support_vectors.toarray(), [[0], [2]])


def test_index_zero_is_a_column(tmp_path):
    model = read_text(tmp_path, HEADER + "1 0:3 1:4\n-1 1:2\n")
    assert model.first_index == 0
    np.testing.assert_array_equal(model.support_vectors.toarray(), [[3, 4], [0, 2]])


def test_a_model_of_one_class_is_read_but_not_compiled(tmp_path):
    text = "svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 1\ntotal_sv 0\nrho\nlabel 5\nnr_sv 0\nSV\n"
    model = read_text(tmp_path, text)
    assert (model.n_sv, model.n_decisions, model.labels.tolist()) == (0, 0, [5])
    with pytest.raises(UnsupportedModelError, match="one class and always predicts 5"):
        approxsvm.compile(model)


def test_coefficients_of_several_classes(tmp_path):
    text = (
        "svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 3\ntotal_sv 3\nrho 0.1 0.2 0.3\nlabel 7 8 9\n"
        "nr_sv 1 1 1\nSV\n1 2 1:1\n-1 3 1:2\n-2 -3 1:3\n"
    )
    model = read_text(tmp_path, text)
    assert model.n_decisions == 3
    np.testing.assert_array_equal(model.coefficients(0), [1, -1, 0])
    np.testing.assert_array_equal(model.coefficients(1), [2, 0, -2])
    np.testing.assert_array_equal(model.coefficients(2), [0, 3, -3])
    fast = approxsvm.compile(model, mode="exact")
    np.testing.assert_array_equal(fast.predict(np.array([[1.0], [2.0], [3.0]])), [7, 8, 9])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MODEL.replace("nr_sv 1 1", "nr_sv 1 2"), "3"),
        (MODEL.replace("gamma 0.5\n", ""), "gamma"),
        (MODEL.replace("2:0.5", "2:nan"), "nan"),
        ("colour blue\n" + MODEL, "line 1: not a model file: it begins with 'colour', LIBSVM's models with svm_type"),
        ("# Title\n\nSome words\n", "line 3: not a model file: it begins with 'Some'"),
        (MODEL.replace("rho", "colour blue\nrho"), "line 6: unknown key 'colour'"),
        (
            MODEL.replace("-1 1:-1", "# last\n-1 1:-1"),
            "line 11: '#' is no support vector; LIBSVM's rows have no comments",
        ),
        (
            MODEL.replace("1:-1", "1:-1 # last"),
            "'#' is not index:value; LIBSVM's rows have no comments: remove them (sed",
        ),
        (MODEL.replace("SV\n", "scaling 1 0.5\nSV\n"), "line 9: scaling: '1' is not index:value"),
        (b"\x00\xff\xfe\x89", ""),
        (b"", ""),
    ],
)
def test_broken_models_are_refused_with_name_and_place(tmp_path, text, message):
    with pytest.raises(ModelFormatError) as caught:
        read_text(tmp_path, text)
    assert str(caught.value).startswith(str(tmp_path / "some.model"))
    assert message in str(caught.value)


@pytest.mark.parametrize("kernel", ["linear", "polynomial", "sigmoid", "precomputed"])
def test_other_kernels_of_libsvm_are_named(tmp_path, kernel):
    text = MODEL.replace("rbf", kernel).replace("gamma 0.5\n", "degree 3\ngamma 0.5\ncoef0 1\n")
    with pytest.raises(UnsupportedModelError, match=f"some.model: the kernel is {kernel}"):
        read_text(tmp_path, text)


def test_missing_model_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent"):
        approxsvm.read_libsvm_model(tmp_path / "absent")


GOLDEN_NAMES = sorted(path.stem for path in GOLDEN.glob("*.model"))


@pytest.mark.parametrize("name", GOLDEN_NAMES)
def test_golden_models_and_artifacts_give_the_recorded_decision_values(name):
    model, fast = approxsvm.read_model(GOLDEN / f"{name}.model"), approxsvm.load(GOLDEN / f"{name}.asvm")
    X, _ = approxsvm.read_libsvm_data(GOLDEN / f"{name}.t", n_features=model.n_features)
    expected, dense = np.loadtxt(GOLDEN / f"{name}.values").reshape(X.shape[0], -1), X.toarray()
    errors = np.abs(definition_of(model).values(dense) - expected)
    assert (errors <= definition_of(model).rounding(dense, expected)).all()
    for rows in (X, dense, X[:3]):
        values, bounds = fast._evaluator.evaluate(fast._rows(rows), VALUES | BOUNDS)
        errors = np.abs(values.reshape(rows.shape[0], -1) - expected[: rows.shape[0]])
        assert (errors <= bounds.reshape(errors.shape) + 1e-12).all()


def test_pickles_need_trust(tmp_path):
    fitted = SVC().fit(np.eye(4), [0, 1, 0, 1])
    pickled = pickle.dumps(fitted)
    joblib.dump(fitted, tmp_path / "svc.joblib")
    joblib.dump(fitted, tmp_path / "svc.z", compress=3)
    for name, compress in (("svc.pkl.gz", gzip.compress), ("svc.gz", gzip.compress), ("svc.pickle.xz", lzma.compress)):
        (tmp_path / name).write_bytes(compress(pickled))
    for name in ("svc.pkl", "svc.p", "svc.sav"):
        (tmp_path / name).write_bytes(pickled)
    for path in tmp_path.iterdir():
        with pytest.raises(UnsupportedModelError, match="can run any code"):
            approxsvm.read_model(path)
        assert approxsvm.read_model(path, trust=True).n_sv == len(fitted.support_)
    (tmp_path / "bad.pkl").write_bytes(b"not a pickle")
    with pytest.raises(ModelFormatError, match=r"bad.pkl: not a readable pickle"):
        approxsvm.read_model(tmp_path / "bad.pkl", trust=True)


@pytest.fixture
def table(tmp_path):
    """Write a .csv file with an index, a target in the middle, and features out of order."""
    pandas = pytest.importorskip("pandas")
    X = np.random.default_rng(0).normal(size=(12, 3))
    frame = pandas.DataFrame({"second": X[:, 1], "outcome": np.arange(12), "first": X[:, 0], "a,b": X[:, 2]})
    frame.to_csv(tmp_path / "rows.csv")
    frame.to_csv(tmp_path / "bare.csv", header=False, index=False)
    return tmp_path, X


@pytest.mark.parametrize("names", ["", "a,b\n"])
def test_a_byte_order_mark_makes_no_names_of_numbers(names, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(f"\ufeff{names}5,2\n3,4\n", encoding="utf-8")
    np.testing.assert_array_equal(approxsvm.read_rows(path).to_numpy(), [[5, 2], [3, 4]])
    np.testing.assert_array_equal(read_dense(path, delimiter=",", labels=False)[0], [[5, 2], [3, 4]])


def test_columns_are_chosen_by_name(table):
    folder, X = table
    names = ["first", "second", "a,b"]
    rows = approxsvm.read_rows(folder / "rows.csv", columns=names, n_features=3)
    assert rows.columns.tolist() == names
    np.testing.assert_array_equal(rows.to_numpy(), X)
    assert approxsvm.read_rows(folder / "rows.csv", target="outcome").columns.tolist() == [
        "Unnamed: 0",
        *["second", "first", "a,b"],
    ]
    np.testing.assert_array_equal(approxsvm.read_rows(folder / "bare.csv", columns=["3", "1", "4"]).to_numpy(), X)
    np.testing.assert_array_equal(
        approxsvm.read_rows(folder / "bare.csv", target="2", n_features=3).to_numpy(), X[:, [1, 0, 2]]
    )
    with pytest.raises(
        DataFormatError, match=r"rows.csv: has no column 'third', only 'Unnamed: 0', 'second', 'outcome'"
    ):
        approxsvm.read_rows(folder / "rows.csv", columns=["third"])
    with pytest.raises(
        DataFormatError, match=r"has 5 columns \(.*'first'.*\), but the model has 3 features; --columns"
    ):
        approxsvm.read_rows(folder / "rows.csv", n_features=3)
    with pytest.raises(DataFormatError, match=r"by name in .csv and .parquet files only"):
        approxsvm.read_rows(GOLDEN / "breast_cancer.t", target="outcome")


def test_a_wrong_number_of_columns_is_named_without_pandas(tmp_path, monkeypatch):
    monkeypatch.setattr("approxsvm.frontends.data._has_pandas", lambda: False)
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataFormatError, match="has 2 columns, but the model has 3 features; --columns and --target"):
        approxsvm.read_rows(tmp_path / "rows.csv", n_features=3)


def test_npz_files(tmp_path):
    X = np.random.default_rng(0).normal(size=(9, 4)) * (np.arange(4) % 2)
    np.savez(tmp_path / "one.npz", rows=X)
    np.testing.assert_array_equal(approxsvm.read_rows(tmp_path / "one.npz", n_features=4), X)
    for made in (sparse.csr_array(X), sparse.csc_matrix(X), sparse.coo_array(X)):
        sparse.save_npz(tmp_path / "sparse.npz", made)
        found = approxsvm.read_rows(tmp_path / "sparse.npz", n_features=4)
        assert found.format == "csr"
        np.testing.assert_array_equal(found.toarray(), X)


class Explosive:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was run",))


def test_broken_npz_files_are_named(tmp_path):
    path = tmp_path / "rows.npz"
    np.savez(path, X=np.eye(3), y=np.ones(3))
    with pytest.raises(DataFormatError, match=r"rows.npz: holds the arrays 'X', 'y', expected one array or a"):
        approxsvm.read_rows(path)
    np.savez(path, rows=np.ones(3))
    with pytest.raises(DataFormatError, match=r"rows.npz: expected rows and columns, but its shape is \(3,\)"):
        approxsvm.read_rows(path)
    path.write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(DataFormatError, match=r"rows.npz.*: not a readable"):
        approxsvm.read_rows(path)
    for arrays in ({"rows": [[Explosive()]]}, {"format": np.array(Explosive(), dtype=object), "data": np.ones(3)}):
        np.savez(path, **{name: np.array(array, dtype=object) for name, array in arrays.items()})
        with pytest.raises(DataFormatError, match=r"rows.npz.*: not a readable"):
            approxsvm.read_rows(path)
    broken = sparse.csr_array(np.eye(3))
    broken.indices = broken.indices + 10**6
    sparse.save_npz(path, broken)
    with pytest.raises(DataFormatError, match=r"rows.npz: .*row 0, column 1000000, but 3 rows and 3 columns"):
        approxsvm.read_rows(path)


def npy(shape: tuple[int, ...], content: bytes = bytes(64), descr: str = "<f8") -> bytes:
    """Return a .npy file with an arbitrary header."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
    return file.getvalue() + content


def npz(path: Path, *, method: int = zipfile.ZIP_DEFLATED, **files: bytes) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(f"{name}.npy", content)
    return path


@pytest.mark.parametrize("shape", [(10**6, 10**6), (2**40, 2**40), (3, 3), (-1, 5)])
def test_arrays_that_claim_more_than_the_file_holds(tmp_path, shape):
    (tmp_path / "rows.npy").write_bytes(npy(shape))
    npz(tmp_path / "rows.npz", rows=npy(shape))
    claimed = math.prod(shape) * 8
    for path in (tmp_path / "rows.npy", tmp_path / "rows.npz"):
        with pytest.raises(DataFormatError, match=rf"{path.name}.*{claimed} bytes, but holds 64 bytes"):
            approxsvm.read_rows(path)


def test_archives_that_claim_more_than_they_hold(tmp_path):
    path = tmp_path / "rows.npz"
    zeros = npy((10**6, 4), bytes(32 * 10**6))
    assert npz(path, rows=zeros).stat().st_size < 10**5
    assert approxsvm.read_rows(path).shape == (10**6, 4)  # highly compressed data are valid
    npz(path, rows=zeros, method=zipfile.ZIP_LZMA)
    with pytest.raises(DataFormatError, match=r"rows.npz: rows.npy is compressed by method 14, expected 0 or 8"):
        approxsvm.read_rows(path)
    content = bytearray(npz(path, rows=npy((3, 3), bytes(72))).read_bytes())
    directory = content.index(b"PK\1\2")
    struct.pack_into("<I", content, directory + 24, 2**31)  # the size that the directory claims
    path.write_bytes(content)
    with pytest.raises(DataFormatError, match=r"rows.npz: rows.npy claims 2147483648 bytes, but .* at most \d{6}$"):
        approxsvm.read_rows(path)


@pytest.mark.parametrize("form", ["coo", "csc", "dia"])
def test_sparse_matrices_of_far_more_rows_than_numbers(tmp_path, form):
    one = sparse.coo_array(([1.0], ([0], [0])), shape=(10**9, 3))
    made = sparse.dia_array((np.ones((1, 1)), [0]), shape=(10**9, 3)) if form == "dia" else one.asformat(form)
    sparse.save_npz(tmp_path / "rows.npz", made)
    with pytest.raises(DataFormatError, match=r"rows.npz: claims 1000000000 rows, but holds \d+ numbers"):
        approxsvm.read_rows(tmp_path / "rows.npz")


@pytest.mark.parametrize(("read", "suffix"), [(approxsvm.read_rows, ".csv"), (read_dense, ".txt")])
def test_tables_that_are_nearly_all_gaps(tmp_path, read, suffix):
    pytest.importorskip("pandas")
    path = tmp_path / f"rows{suffix}"
    separator = "," if suffix == ".csv" else " "
    path.write_text(separator.join("1" * 20_000) + "\n" * 20_000)
    with pytest.raises(DataFormatError, match=rf"rows{suffix}.* 20001 lines of 20000 columns .* 59999 bytes"):
        read(path)


def test_data_files(tmp_path):
    path = tmp_path / "rows"
    path.write_text("+1 1:0.5 3:2\n-1\n3 2:-1e-3\n")
    X, y = approxsvm.read_libsvm_data(path, n_features=4)
    assert isinstance(X, csr_array)
    np.testing.assert_array_equal(X.toarray(), [[0.5, 0, 2, 0], [0, 0, 0, 0], [0, -1e-3, 0, 0]])
    np.testing.assert_array_equal(y, [1, -1, 3])
    zero, _ = approxsvm.read_libsvm_data(path, zero_based=True)
    np.testing.assert_array_equal(zero.toarray()[0], [0, 0.5, 0, 2])
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    np.testing.assert_array_equal(approxsvm.read_libsvm_data(path, n_features=4)[0].toarray(), X.toarray())


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("1 1:1\n\n1 1:1\n", 2),
        ("1,2 1:1\n", 1),
        ("1 1:1\n# half\n", 2),
    ],
)
def test_bad_data_lines_are_named(tmp_path, text, line):
    path = tmp_path / "rows"
    path.write_text(text)
    with pytest.raises(DataFormatError, match=f"rows, line {line}: wrong input format") as caught:
        approxsvm.read_libsvm_data(path)
    assert ("'1,2' is not a number; if this is CSV, approxsvm score reads it" in str(caught.value)) == ("," in text)


def test_range_files_may_have_a_byte_order_mark(tmp_path):
    (tmp_path / "range").write_text("\ufeffx\n-1 1\n1 0 4\n", encoding="utf-8")
    assert read_range_file(tmp_path / "range").features == {1: (0.0, 4.0)}
    (tmp_path / "r.scale").write_text("\ufeff1 2\n", encoding="utf-8")
    assert e1071.is_scale_file(tmp_path / "r.scale")
    np.testing.assert_array_equal(e1071.read_scale_file(tmp_path / "r.scale"), [[1, 2]])


def test_data_indices_outside_the_columns_are_named(tmp_path):
    path = tmp_path / "rows"
    path.write_text("1 0:1 5:1\n")
    with pytest.raises(DataFormatError, match="index 5 needs 6 columns, but n_features is 3"):
        approxsvm.read_libsvm_data(path, n_features=3)
    with pytest.raises(DataFormatError, match="index 0 is used"):
        approxsvm.read_libsvm_data(path, zero_based=False)


@pytest.mark.parametrize("text", ["1_0", "1_000.5", "\N{ARABIC-INDIC DIGIT THREE}", "", "x"])
def test_what_only_python_takes_for_a_number_is_none(text):
    with pytest.raises(ValueError, match="could not convert string to float"):
        plain_float(text)
    assert plain_float("-1.5e3") == plain_float(-1500) == -1500.0

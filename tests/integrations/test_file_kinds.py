"""Inputs of `score` that are not tables: arrays are read, and other file types are named, with a remedy."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import GOLDEN
from scipy import sparse

import approxsvm
from approxsvm.cli import main
from approxsvm.errors import DataFormatError, InputError

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed; it is the extra arrow")
pq = pytest.importorskip("pyarrow.parquet")

MODEL = GOLDEN / "breast_cancer.asvm"
PREDICTOR = approxsvm.Predictor(MODEL)
ROWS = np.random.default_rng(0).normal(size=(500, 30)).astype(np.float32)


@pytest.mark.parametrize("dtype", ["float32", "float64", ">f8", "int16"])
@pytest.mark.parametrize("kind", ["npy", "fortran npy", "npz", "compressed npz", "sparse npz"])
def test_arrays(tmp_path, kind, dtype):
    rows = (ROWS * 3).astype(dtype)
    path = tmp_path / f"rows.{kind.split()[-1]}"
    if kind == "sparse npz":
        rows = rows.astype(rows.dtype.newbyteorder("="))
        sparse.save_npz(path, sparse.csr_matrix(rows))
    elif kind.endswith("npz"):
        (np.savez if kind == "npz" else np.savez_compressed)(path, rows)
    else:
        np.save(path, np.asfortranarray(rows) if kind.startswith("fortran") else rows)
    out = tmp_path / "out.parquet"
    scored = approxsvm.score_dataset(MODEL, path, out, keep=["row"], outputs=["label", "value"], batch_rows=77)
    found = pq.read_table(out)
    assert scored.n_rows == 500
    assert found["row"].to_pylist() == list(range(500))
    assert found["label"].to_pylist() == PREDICTOR.predict(rows).tolist()
    if kind != "sparse npz":
        np.testing.assert_array_equal(found["value"].to_numpy(), PREDICTOR.decision_function(rows))


def test_bad_rows_and_no_rows(tmp_path):
    rows = ROWS.copy()
    rows[7, 2] = np.nan
    np.save(tmp_path / "rows.npy", rows)
    with pytest.raises(InputError, match=r"rows.npy, row 7: the feature in column 2 is NaN"):
        approxsvm.score_dataset(MODEL, tmp_path / "rows.npy", tmp_path / "out.csv")
    scored = approxsvm.score_dataset(MODEL, tmp_path / "rows.npy", tmp_path / "out.parquet", on_error="null")
    assert scored.n_bad == 1
    assert pq.read_table(tmp_path / "out.parquet")["label"].to_pylist()[7] is None
    np.save(tmp_path / "none.npy", ROWS[:0])
    assert approxsvm.score_dataset(MODEL, tmp_path / "none.npy", tmp_path / "out.csv").n_rows == 0


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (ROWS[:, :7], "has 7 columns, but the model has 30 features"),
        (ROWS.reshape(5, 100, 30), "expected rows and columns"),
        (np.array([["a"] * 30]), "the array is <U1, but must hold real numbers"),
        (np.array([[None] * 30]), "holds Python objects, expected numbers"),
    ],
)
def test_wrong_arrays(tmp_path, rows, words):
    np.save(tmp_path / "rows.npy", rows)
    with pytest.raises((InputError, DataFormatError), match=words):
        approxsvm.score_dataset(MODEL, tmp_path / "rows.npy", tmp_path / "out.csv")


def of(write, *arguments):
    import io

    stream = io.BytesIO()
    write(stream, *arguments)
    return stream.getvalue()


KINDS = {
    "rows.tif": (b"II*\0" + bytes(8), "a TIFF image; score_raster reads it"),
    "big.tif": (b"MM\0+" + bytes(8), "a TIFF image; score_raster reads it"),
    "rows.jp2": (b"\0\0\0\x0cjP  \r\n\x87\n", "a JPEG 2000 image; score_raster"),
    "rows.nc": (b"CDF\x02" + bytes(8), "a NetCDF file; score_raster"),
    "rows.vrt": (b'<VRTDataset rasterXSize="1">', r"a GDAL virtual raster \(VRT\); score_raster"),
    "rows.png": (b"\x89PNG\r\n\x1a\n", "a PNG image; score_raster"),
    "rows.img": (b"EHFA_HEADER_TAG\0", "an ERDAS image; score_raster"),
    "rows.gif": (b"GIF89a", "a GIF image; rows are read from CSV"),
    "rows.arff": (b"% made by hand\n\n@RELATION r\n@ATTRIBUTE a NUMERIC\n", "an ARFF file; save it as CSV"),
    "rows.rds": (gzip.compress(b"X\n\0\0\0\3"), r"an R object \(.rds\); save it in R"),
    "plain.rds": (b"X\n\0\0\0\3", r"an R object \(.rds\); save it in R"),
    "rows.RData": (gzip.compress(b"RDX3\nX\n"), r"R data \(.rda\); save it in R"),
    "rows.h5": (b"\x89HDF\r\n\x1a\n" + bytes(16), "an HDF5 file; save its rows"),
    "rows.mat": (b"MATLAB 5.0 MAT-file", "a MATLAB file; save its rows"),
    "rows.pkl": (b"\x80\x05\x95\0\0\0\0", "a pickle; save its rows"),
    "rows.bin": (of(np.save, ROWS), r"a NumPy array \(.npy\); give it the suffix .npy"),
    "rows.zip": (of(np.savez, ROWS), r"a NumPy archive \(.npz\); give it the suffix .npz"),
    "rows.dat": (b"PAR1" + bytes(8), "a Parquet file; give it the suffix .parquet"),
    "rows.sqlite": (b"SQLite format 3\0", "an SQLite database; rows are read from"),
    "rows.json": (b'{"a": 1}', "a JSON file; rows are read from"),
}


@pytest.mark.parametrize("name", KINDS)
def test_kinds_that_are_no_rows(tmp_path, name):
    """With a delimiter, unrecognized files are read as CSV, and the CSV reader reports errors."""
    content, words = KINDS[name]
    (tmp_path / name).write_bytes(content)
    for options in ({}, {"delimiter": ";"}):
        if options and name in ("rows.gif", "rows.sqlite", "rows.json"):
            continue
        with pytest.raises(DataFormatError, match=f"{name}: this is {words}"):
            approxsvm.score_dataset(MODEL, tmp_path / name, tmp_path / "out.csv", **options)


def test_the_command_reads_arrays(tmp_path):
    np.save(tmp_path / "rows.npy", ROWS)
    found = CliRunner().invoke(main, ["score", str(MODEL), str(tmp_path / "rows.npy"), "-o", str(tmp_path / "o.csv")])
    assert found.exit_code == 0, found.output
    assert (tmp_path / "o.csv").read_text().split()[1:] == [str(label) for label in PREDICTOR.predict(ROWS)]

"""Signatures from GRASS GIS's i.svm.train: a LIBSVM model, and a file with one divisor per band."""

from pathlib import Path

import numpy as np
import pytest
from libsvm.svmutil import svm_load_model, svm_predict

import approxsvm
from approxsvm.errors import DataFormatError

MODEL = """svm_type c_svc
kernel_type rbf
gamma 0.5
nr_class 2
total_sv 3
rho -0.125
label 4 7
nr_sv 2 1
SV
1 1:0.5 2:0.25
0.5 1:0.875
-1.5 1:0.125 2:0.75
"""


@pytest.fixture
def signature(tmp_path: Path) -> Path:
    (tmp_path / "sig").write_text(MODEL)
    (tmp_path / "rescale").write_text("255.000000\n1023.500000\n")
    return tmp_path


def test_cells_are_divided_as_i_svm_predict_does(signature: Path) -> None:
    """Labels for raw cells equal LIBSVM's for divided cells; a third band, absent from vectors, is also a column."""
    cells = np.random.default_rng(0).integers(0, [256, 1024], (200, 2)).astype(float)
    divided = cells / [255.0, 1023.5]
    expected = svm_predict([], divided.tolist(), svm_load_model(str(signature / "sig")), "-q")[0]
    fast = approxsvm.compile(approxsvm.with_range_file(signature / "sig", signature / "rescale"))
    assert fast.predict(cells).tolist() == expected
    assert {*expected} == {4, 7}
    (signature / "rescale").write_text("255.000000\n1023.500000\n7.000000\n")
    more = approxsvm.compile(approxsvm.with_range_file(signature / "sig", signature / "rescale"))
    assert more.predict(np.column_stack([cells, cells[:, 0]])[:1] * [1, 1, 0]).tolist() == expected[:1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("255\n", "has the divisors of 1 bands, but the model uses 2 features"),
        ("255\n0\n", "line 2: expected the divisor of a band, above 0"),
        ("255\n1 2\n", "line 2: expected the divisor"),
        ("255\nnan\n", "line 2: expected the divisor"),
        ("1 2 3\n", "neither a range file of svm-scale nor a file of scales of e1071"),
    ],
)
def test_other_files_are_rejected(signature: Path, text: str, words: str) -> None:
    """The message names the file and the line."""
    (signature / "rescale").write_text(text)
    with pytest.raises(DataFormatError, match=words):
        approxsvm.with_range_file(signature / "sig", signature / "rescale")


def test_labels_that_are_texts_are_rejected_with_a_remedy(tmp_path: Path) -> None:
    """PLSSVM writes class names into LIBSVM's format."""
    (tmp_path / "m.model").write_text(MODEL.replace("label 4 7", "label cat dog"))
    words = r"label has 'cat' for a number; LIBSVM's labels are integers: write a number for each class in this line"
    with pytest.raises(approxsvm.errors.ModelFormatError, match=words):
        approxsvm.compile(tmp_path / "m.model")

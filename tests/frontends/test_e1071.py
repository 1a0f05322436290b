"""Files from R's e1071: models with scale files, written by ``write.svm`` for R's iris data."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest

import approxsvm
from approxsvm.errors import DataFormatError, UnsupportedModelError

REGRESSION = """svm_type epsilon_svr
kernel_type rbf
gamma 0.5
nr_class 2
total_sv 2
rho -0.125
label 0 0
nr_sv 0 0
SV
1 1:0.5 2:-1
-0.5 1:-2
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "model.svm").write_text(REGRESSION)
    (tmp_path / "model.scale").write_text("3 0.5\n4 2\n")
    (tmp_path / "model.yscale").write_text("10 2.5\n")
    return tmp_path


def test_columns_that_no_support_vector_has(files):
    (files / "model.scale").write_text("3 0.5\n4 2\n0 1\n")
    assert approxsvm.with_range_file(files / "model.svm", files / "model.scale").n_raw_features == 3


def test_refusals(files):
    scale = files / "model.scale"
    scale.write_text("3 0.5\n")
    with pytest.raises(UnsupportedModelError, match=r"1 columns are scaled, but the model has 2.*write a line .0 1."):
        approxsvm.with_range_file(files / "model.svm", scale)
    for line in ("4 0", "4", "4 x", "4 inf"):
        scale.write_text(f"3 0.5\n{line}\n")
        with pytest.raises(DataFormatError, match="line 2: expected a center and a scale"):
            approxsvm.with_range_file(files / "model.svm", scale)
    scale.write_text("3 0.5\n4 2\n")
    (files / "model.yscale").write_text("1 2\n3 4\n")
    with pytest.raises(DataFormatError, match="2 lines, expected 1"):
        approxsvm.with_range_file(files / "model.svm", scale, restore_target=True)
    (files / "model.yscale").unlink()
    with pytest.raises(OSError, match="yscale"):
        approxsvm.with_range_file(files / "model.svm", scale, restore_target=True)


SCRIPT = """
suppressPackageStartupMessages(library(e1071))
x <- as.matrix(read.csv("rows.csv")); y <- x[, 1] * 2 + sin(x[, 2])
m <- svm(x, y); write.svm(m, "r.svm", "r.scale", "r.yscale"); write.csv(predict(m, x), "r.csv", row.names = FALSE)
c <- factor(ifelse(y > 1, "c", ifelse(y > 0, "b", "a")))
m <- svm(x, c); write.svm(m, "c.svm", "c.scale", "c.yscale")
write.csv(as.integer(predict(m, x)), "c.csv", row.names = FALSE)
"""


@pytest.mark.slow
@pytest.mark.peers
def test_as_r_predicts(tmp_path):
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed")
    rows = np.random.default_rng(0).normal([3.0, -1.0, 20.0], [1.0, 2.0, 0.1], size=(200, 3))
    np.savetxt(tmp_path / "rows.csv", rows, delimiter=",", header="a,b,c", comments="", fmt="%.17g")
    done = subprocess.run(["Rscript", "-e", SCRIPT], cwd=tmp_path, capture_output=True, text=True, check=False)
    if "there is no package" in done.stderr:
        pytest.skip("e1071 is not installed")
    assert done.returncode == 0, done.stderr
    for name, allowed in (("r", 1e-5), ("c", 0.0)):  # write.svm writes support vectors with eight digits
        model = approxsvm.with_range_file(
            tmp_path / f"{name}.svm", tmp_path / f"{name}.scale", restore_target=name == "r"
        )
        own = np.loadtxt(tmp_path / f"{name}.csv", skiprows=1)
        assert np.abs(approxsvm.compile(model, mode="exact").predict(rows) - own).max() <= allowed

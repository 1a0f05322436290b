"""The MATLAB function in docs/howto/other-programs.md, run in GNU Octave on a struct with MATLAB's fields."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest
from conftest import REPOSITORY
from scipy.io import savemat

import approxsvm

pytestmark = pytest.mark.skipif(shutil.which("octave-cli") is None, reason="octave-cli is not installed")
KERNELS = {"gaussian": {}, "linear": {}, "polynomial": {"Order": 3.0}}


def compact_model(function, standardize):
    """Return rows, and the fields of a possible result of fitcsvm."""
    rng = np.random.default_rng(0)
    rows = rng.normal([3.0, -1.0, 20.0], [1.0, 2.0, 0.1], size=(60, 3))
    mu, sigma = rows.mean(axis=0), np.array([1.1, 1.9, 0.0])  # the last column was constant
    nothing = np.zeros((0, 0))
    rows = rows if standardize else rows - mu
    vectors = (rows[:20] - mu) / [1.1, 1.9, 1.0] if standardize else rows[:20]
    return rows, {
        "KernelParameters": {"Function": function, "Scale": 1.7, **KERNELS[function]},
        "Alpha": rng.uniform(0.01, 1.0, (20, 1)),
        "SupportVectorLabels": rng.choice([-1.0, 1.0], (20, 1)),
        "SupportVectors": vectors,
        "Bias": 0.1,
        "Mu": mu if standardize else nothing,
        "Sigma": sigma if standardize else nothing,
        "ClassNames": np.array([[2.0], [7.0]]),
        "ScoreTransform": "none",
    }


def scores(model, rows):
    """Return the second class's score as documented by MATLAB: sum_j alpha_j y_j G(x_j / scale, x / scale) + bias."""
    kernel = model["KernelParameters"]
    if model["Mu"].size:
        rows = (rows - model["Mu"]) / np.where(model["Sigma"] == 0, 1.0, model["Sigma"])
    a, b = model["SupportVectors"] / kernel["Scale"], rows / kernel["Scale"]
    gram = {
        "gaussian": lambda: np.exp(-((a[:, np.newaxis] - b) ** 2).sum(axis=2)),
        "linear": lambda: a @ b.T,
        "polynomial": lambda: (1.0 + a @ b.T) ** kernel["Order"],
    }[kernel["Function"]]()
    return (model["Alpha"] * model["SupportVectorLabels"])[:, 0] @ gram + model["Bias"]


def run(folder, model):
    page = (REPOSITORY / "docs" / "howto" / "other-programs.md").read_text()
    (folder / "to_libsvm.m").write_text(re.search(r"```matlab\n(.*?)```", page, re.DOTALL)[1])
    savemat(folder / "model.mat", {"model": model})
    command = ["octave-cli", "--norc", "--eval", "load model.mat; to_libsvm(model, 'm.model')"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("function", "standardize"), [(one, one != "linear") for one in KERNELS])
def test_scores_are_those_of_the_documentation(function, standardize, tmp_path):
    rows, model = compact_model(function, standardize)
    done = run(tmp_path, model)
    assert done.returncode == 0, done.stderr
    scale = tmp_path / "m.model.scale"
    assert scale.exists() == standardize
    source = approxsvm.with_range_file(tmp_path / "m.model", scale) if standardize else tmp_path / "m.model"
    compiled, expected = approxsvm.compile(source, mode="exact"), scores(model, rows)
    np.testing.assert_allclose(compiled.decision_function(rows), expected, rtol=1e-11, atol=1e-11)
    np.testing.assert_array_equal(compiled.predict(rows), np.where(expected > 0, 7, 2))
    assert len(set(compiled.predict(rows).tolist())) == 2


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("KernelParameters", {"Function": "mykernel", "Scale": 1.0}, "LIBSVM has no kernel mykernel"),
        ("ScoreTransform", "logit", "labels would be those of untransformed scores"),
        ("ClassNames", np.array([[1.0]]), "labels are of two classes, but the model has 1"),
    ],
)
def test_what_it_refuses(field, value, message, tmp_path):
    _, model = compact_model("gaussian", standardize=False)
    assert message in run(tmp_path, model | {field: value}).stderr
    assert not (tmp_path / "m.model").exists()

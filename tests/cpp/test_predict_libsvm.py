"""LIBSVM model files: approxsvm-predict writes the bytes that svm-predict writes, and prints what it prints."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from conftest import GOLDEN
from predict_tool import (
    MODEL_TEXT,
    N_FEATURES,
    SVR_TEXT,
    Files,
    Libsvm,
    Mode,
    hard_text,
    libsvm_text,
    needs_tool,
    predict,
    shown,
    training_text,
)
from scipy.sparse import csr_array

import approxsvm
from approxsvm import _native

pytestmark = needs_tool

CLASSIFIERS = [
    (f"-s {s} -g {g} -c 10 -n 0.3", labels) for s in (0, 1) for g, labels in ((0.3, (1, -1)), (0.02, (3, 7)))
]
CLASSIFIERS += [("-s 0 -g 0.3 -c 10", (3, 7, 1)), ("-s 1 -g 0.02 -n 0.2", (4, 2, 9, 1, 0))]
ONE_CLASS = [("-s 2 -g 0.3 -n 0.3", (1,)), ("-s 2 -g 0.02 -n 0.5", (1,))]


@pytest.mark.parametrize("mode", ["certified", "exact"])
@pytest.mark.parametrize(("options", "labels"), [*CLASSIFIERS, *ONE_CLASS])
def test_certified_and_exact_artifacts_give_the_bytes_of_svm_predict(
    files: Files, libsvm: Libsvm, options: str, labels: tuple[int, ...], mode: Mode
) -> None:
    model = libsvm.train(options, training_text(labels))
    approxsvm.compile(model, n_features=N_FEATURES, mode=mode).save(files.model)
    files.data.write_text(hard_text(labels))
    for target in _native.runnable_targets():
        libsvm.check(model, compiled=files.model, APPROXSVM_TARGET=target)


def test_regression_artifacts_are_within_their_tolerance_of_svm_predict(files: Files, libsvm: Libsvm) -> None:
    model = libsvm.train("-s 3 -g 0.02 -c 10", training_text(None))
    approxsvm.compile(model, n_features=N_FEATURES, tolerance=1e-6).save(files.model)
    files.data.write_text(hard_text((0, 1)))
    libsvm.run(1, files.data, model, files.folder / "theirs").check_returncode()
    predict(*files.arguments)
    np.testing.assert_allclose(np.loadtxt(files.output), np.loadtxt(files.folder / "theirs"), rtol=0, atol=1e-6)


def test_what_gives_a_regression_the_bytes_of_svm_predict(files: Files, libsvm: Libsvm) -> None:
    """The model file does. A tolerance shows in the first digits, float64's rounding in the last."""
    model = GOLDEN / "diabetes_svr.model"
    libsvm.run(1, GOLDEN / "diabetes_svr.t", model, files.folder / "theirs").check_returncode()
    expected = (files.folder / "theirs").read_text()
    values = np.array(expected.split(), np.float64)

    def written(options: dict[str, Any] | None) -> str:
        if options is not None:
            approxsvm.compile(model, **options).save(files.model)
        predict(GOLDEN / "diabetes_svr.t", model if options is None else files.model, files.output)
        return files.output.read_text()

    assert written(None) == expected
    options: dict[str, Any]
    for options, most in (({}, 1.0), ({"tolerance": 1e-6}, 1e-6), ({"mode": "exact"}, 1e-10)):
        text = written(options)
        assert text != expected
        np.testing.assert_allclose([float(line) for line in text.split()], values, rtol=0.0, atol=most)


@pytest.mark.parametrize("options", ["-s 0 -g 3", "-s 2 -g 3 -n 0.9", "-s 3 -g 3"])
def test_model_files_far_from_the_origin(files: Files, libsvm: Libsvm, options: str) -> None:
    """Features of a small range around a large number: the engine has to work around their mean."""
    rng = np.random.default_rng(1)
    rows = csr_array(1000 + rng.random((300, N_FEATURES)))
    text = libsvm_text(np.where(rng.random(300) < 0.5, 1, -1).tolist(), rows)
    model = libsvm.train(options, text)
    files.data.write_text(text)
    libsvm.check(model)


def test_ties_go_where_the_rounding_of_svm_predict_sends_them(files: Files, libsvm: Libsvm) -> None:
    """f is 0 on all these rows, up to rounding."""
    rng = np.random.default_rng(2)
    lines = [
        " ".join(["3", f"1:{x!r}", f"2:{x!r}", *(f"{j}:{rng.normal()!r}" for j in (3, 4, 6, 9))])
        for x in rng.normal(size=500).tolist()
    ]
    files.data.write_text("\n".join(lines))
    model = files.folder / "m.model"
    model.write_text(MODEL_TEXT)
    assert set(libsvm.check(model).split()) == {b"3", b"5"}


@pytest.mark.parametrize("text", [MODEL_TEXT, SVR_TEXT])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("gamma 0.5", "gamma 0"),
        ("gamma 0.5", "gamma 1e-70"),
        ("gamma 0.5", "gamma 1e70"),
        ("3:0.7", "2000000000:0.7"),
        ("3:0.7", "3:1e200"),
        ("3:0.7", "3:1e-200"),
        ("3:0.7", ""),
        ("0.5 2", "1e305 2"),
        ("\n", "\r\n"),
    ],
)
def test_model_files_at_the_limits(files: Files, libsvm: Libsvm, text: str, old: str, new: str) -> None:
    model = files.folder / "m.model"
    model.write_text(text.replace(old, new), newline="")
    files.data.write_text(hard_text((3, 5)))
    libsvm.check(model)


def test_a_model_file_of_one_class_says_that_class(files: Files, libsvm: Libsvm) -> None:
    model = files.folder / "m.model"
    for kernel in ("rbf", "linear"):
        model.write_text(
            f"svm_type c_svc\nkernel_type {kernel}\ngamma 0.5\nnr_class 1\ntotal_sv 0\nrho\nlabel -4\nnr_sv 0\nSV\n"
        )
        files.data.write_text("-4 1:1\n1\n-4 1:1e300 9:1\n")
        assert predict(files.data, model, files.output) == "Accuracy = 66.6667% (2/3) (classification)\n"
        assert files.output.read_text() == "-4\n" * 3
        libsvm.check(model)


def test_a_model_file_without_support_vectors_says_minus_rho(files: Files, libsvm: Libsvm) -> None:
    model = files.folder / "m.model"
    model.write_text("svm_type nu_svr\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 0\nrho -0.1\nSV\n")
    files.data.write_text(hard_text((1, 2)))
    assert set(libsvm.check(model).split()) == {b"0.10000000000000001"}


def test_regression_repeats_the_sums_of_libsvm(files: Files) -> None:
    """The same sums in Python, for machines without LIBSVM."""
    model = files.folder / "m.model"
    model.write_text(SVR_TEXT)
    files.data.write_text(hard_text((1, 2)))
    predict("-q", files.data, model, files.output)

    def features(text: str) -> tuple[float, dict[int, float]]:
        first, *pairs = text.split()
        return float(first), {int(index): float(value) for index, value in (pair.split(":") for pair in pairs)}

    vectors = [features(line) for line in SVR_TEXT.partition("SV\n")[2].splitlines()]
    expected = []
    for _, row in map(features, files.data.read_text().splitlines()):
        total = 0.0
        for coefficient, vector in vectors:
            sq_distance = 0.0
            for index in sorted(row.keys() | vector.keys()):
                difference = row.get(index, 0.0) - vector.get(index, 0.0)
                sq_distance += difference * difference
            total += coefficient * math.exp(-0.5 * sq_distance)
        expected.append(shown(total) + "\n")
    assert files.output.read_text() == "".join(expected)

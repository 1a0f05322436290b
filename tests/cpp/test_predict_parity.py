"""Parity with svm-predict for all types, kernels, class counts and probabilities: each line of LIBSVM's contract."""

from __future__ import annotations

import math
from typing import Any, Literal

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
    failure,
    hard_text,
    libsvm_text,
    needs_tool,
    predict,
    random_rows,
    shown,
    training_text,
)
from scipy.sparse import csr_array

import approxsvm
from approxsvm import _native

pytestmark = [pytest.mark.peers, needs_tool]
NO_PROBABILITIES = "Model does not support probabiliy estimates"
KERNELS = {0: "linear", 1: "polynomial", 2: "rbf", 3: "sigmoid"}
LABELS = [(5,), (-1, 1), (3, -2, 7), (4, 1, 0, 2, 9)]
CLASSIFIERS = [(s, t, labels) for s in (0, 1) for t in KERNELS for labels in LABELS]
OTHERS = [(s, t, None) for s in (2, 3, 4) for t in KERNELS]


def sorted_apart(labels: tuple[int, ...], n_rows: int = 150, seed: int = 3) -> str:
    """Return rows of overlapping classes, so that labels and probabilities vary."""
    rng = np.random.default_rng(seed)
    targets = rng.integers(0, len(labels), n_rows)
    rows = random_rows(n_rows, seed)
    rows.data += 0.8 * targets[np.repeat(np.arange(n_rows), np.diff(rows.indptr))]
    return libsvm_text([labels[target] for target in targets], rows)


# --- the matrix


@pytest.mark.parametrize(("svm_type", "kernel", "labels"), [*CLASSIFIERS, *OTHERS])
def test_every_kind_of_model_gives_the_bytes_of_svm_predict(
    files: Files, libsvm: Libsvm, svm_type: int, kernel: int, labels: tuple[int, ...] | None
) -> None:
    with_probabilities = svm_type != 2  # svm-train 3.24 has none for one-class models
    options = f"-s {svm_type} -t {kernel} -g 0.1 -r 0.2 -d 3 -n 0.3 -b {int(with_probabilities)}"
    model = libsvm.train(options, sorted_apart(labels) if labels else training_text(None))
    files.data.write_text(hard_text(labels or (0, 1, 2), n_rows=300))
    kinds = len(set(libsvm.check(model).split()))
    assert kinds == 1 if labels and len(labels) == 1 else kinds > 1
    if with_probabilities:
        libsvm.check(model, "-b", 1)
    else:
        assert NO_PROBABILITIES in libsvm.check_refusal(model, "-b", 1)


@pytest.mark.parametrize("target", _native.runnable_targets())
@pytest.mark.parametrize("options", ["-s 0 -b 1 -g 0.05", "-s 1 -b 1 -n 0.2 -g 0.5", "-s 0 -t 1 -r 1 -g 0.1"])
def test_every_target_and_block_width(files: Files, libsvm: Libsvm, options: str, target: str) -> None:
    model = libsvm.train(options, sorted_apart((2, 1, 3)))
    for n_rows in (1, 2, 7, 8, 9, 33, 64, 65, 500):
        files.data.write_text(libsvm_text([1] * n_rows, random_rows(n_rows, seed=n_rows)))
        libsvm.check(model, APPROXSVM_TARGET=target)
        if "-b" in options:
            libsvm.check(model, "-b", 1, APPROXSVM_TARGET=target)


def test_more_classes_than_the_engines_take(files: Files, libsvm: Libsvm) -> None:
    text = sorted_apart(tuple(range(300)), n_rows=700)
    model = libsvm.train("-s 0 -g 0.5", text)
    files.data.write_text("".join(text.splitlines(keepends=True)[:60]))
    assert len(set(libsvm.check(model).split())) > 10


@pytest.mark.parametrize("text", [MODEL_TEXT, SVR_TEXT])
def test_kernel_values_that_overflow(files: Files, libsvm: Libsvm, text: str) -> None:
    """Infinity times a coefficient of 0 is NaN."""
    model = files.folder / "m.model"
    model.write_text(text.replace("rbf", "polynomial\ndegree 200\ncoef0 1").replace("\n1 1:0.1", "\n0 1:1e10"))
    files.data.write_text("3 1:1e10\n5 1:3\n3 1:-1e10\n3 2:1e300\n")
    libsvm.check(model)


def test_a_class_without_support_vectors(files: Files, libsvm: Libsvm) -> None:
    text = PAIRS_TEXT.format(rho="0.1 -0.2 0.05", a="-1 2 -3").replace("1 -1 1:0.2\n", "")
    model = files.folder / "m.model"
    model.write_text(text.replace("total_sv 3", "total_sv 2").replace("nr_sv 1 1 1", "nr_sv 1 0 1"))
    files.data.write_text(hard_text((7, 8, 9), n_rows=60))
    libsvm.check(model)
    libsvm.check(model, "-b", 1)


# --- votes and probabilities computed by hand

PAIRS_TEXT = """svm_type c_svc
kernel_type rbf
gamma 0.5
nr_class 3
total_sv 3
rho {rho}
label 7 8 9
probA {a}
probB 0 0 0
nr_sv 1 1 1
SV
1 1 1:0.1
1 -1 1:0.2
-1 -1 2:0.1
"""


@pytest.mark.parametrize(
    ("rho", "winner"),
    [("-9 9 -9", "7"), ("9 -9 9", "7"), ("9 9 -9", "8"), ("9 9 9", "9"), ("-9 -9 9", "7")],
)
def test_the_first_of_the_classes_with_the_most_votes_wins(files: Files, libsvm: Libsvm, rho: str, winner: str) -> None:
    model = files.folder / "m.model"
    model.write_text(PAIRS_TEXT.format(rho=rho, a="-1 -2 -3"))
    files.data.write_text(hard_text((7, 8, 9), n_rows=40))
    assert set(libsvm.check(model).decode().split()) == {winner}
    libsvm.check(model, "-b", 1)


def test_a_value_of_zero_is_a_vote_for_the_second_class(files: Files, libsvm: Libsvm) -> None:
    """All pairwise values are 0 at distant rows: the classes get 0, 1 and 2 votes."""
    model = files.folder / "m.model"
    model.write_text(PAIRS_TEXT.format(rho="0 0 0", a="0 0 0"))
    files.data.write_text("7 1:1e9\n9 2:-1e9\n")
    assert libsvm.check(model) == b"9\n9\n"
    assert libsvm.check(model, "-b", 1) == b"labels 7 8 9\n" + b"7 0.333333 0.333333 0.333333\n" * 2


def test_ties_of_several_classes_go_where_rounding_sends_them(files: Files, libsvm: Libsvm) -> None:
    """For rows equally near to all classes, all pairwise values are 0 up to rounding."""
    rng = np.random.default_rng(2)
    text = PAIRS_TEXT.format(rho="0 0 0", a="1 1 1").replace("1:0.2", "3:0.1").replace("1 -1 3", "-1 1 3")
    model = files.folder / "m.model"
    model.write_text(text.replace("-1 -1 2", "-1 -1 2"))
    rows = [f"7 1:{x!r} 2:{x!r} 3:{x!r} 5:{y!r} 8:{y!r}\n" for x, y in rng.normal(size=(400, 2)).tolist()]
    files.data.write_text("".join(rows))
    assert len(set(libsvm.check(model).split())) > 1
    libsvm.check(model, "-b", 1)


@pytest.mark.parametrize("n_features", [60_000, 1_000_000])
def test_long_rows_go_where_the_rounding_of_libsvm_sends_them(files: Files, libsvm: Libsvm, n_features: int) -> None:
    """LIBSVM's sums over 20,000 features have larger errors than ours: the exact value has the other sign."""
    n_long, n_short = 20_000, 19
    value = 1.003 / math.sqrt(n_long)
    sq_norm = 0.0
    for _ in range(n_long):
        sq_norm += value * value
    by_libsvm = math.exp(-sq_norm)
    true = math.exp(-math.fsum([value * value] * n_long))
    for _ in range(n_short):
        by_libsvm -= 1e-9 * math.exp(-1.0)
        true -= 1e-9 * math.exp(-1.0)
    assert abs(by_libsvm - true) > 1e-14
    lines = [f"1.0 {' '.join(f'{j + 1}:{value!r}' for j in range(n_long))}"]
    lines += [f"-1e-09 {n_features - i}:1.0" for i in range(n_short)]
    model = files.folder / "m.model"
    model.write_text(
        f"svm_type c_svc\nkernel_type rbf\ngamma 1\nnr_class 2\ntotal_sv {n_short + 1}\n"
        f"rho {(by_libsvm + true) / 2!r}\nlabel 1 2\nnr_sv 1 {n_short}\nSV\n" + "".join(line + "\n" for line in lines)
    )
    files.data.write_text("1 \n2 2000000:0\n")
    libsvm.check(model)


def test_rows_with_many_unknown_features_go_where_the_rounding_of_libsvm_sends_them(
    files: Files, libsvm: Libsvm
) -> None:
    """With one feature in the model and 20,000 others in a row, the exact value has the other sign."""
    n_entries = 20_000
    value = 1.003 / math.sqrt(n_entries)
    sq_norm = 0.0
    for _ in range(n_entries):
        sq_norm += value * value
    by_libsvm, true = (math.exp(-norm) for norm in (sq_norm, math.fsum([value * value] * n_entries)))
    assert abs(by_libsvm - true) > 2e-14
    model = files.folder / "m.model"
    model.write_text(
        "svm_type c_svc\nkernel_type rbf\ngamma 1\nnr_class 2\ntotal_sv 2\n"
        f"rho {(by_libsvm + true) / 2!r}\nlabel 1 2\nnr_sv 1 1\nSV\n1.0 \n-1e-30 1:1.0\n"
    )
    files.data.write_text(f"1 {' '.join(f'{j + 2}:{value!r}' for j in range(n_entries))}\n")
    libsvm.check(model)


@pytest.mark.parametrize("a", ["-1000 1000 -1000", "0 0 0", "1e-9 -1e300 3", "-0.5 -0.4 -0.3"])
def test_probabilities_are_clipped_and_coupled_as_by_libsvm(files: Files, libsvm: Libsvm, a: str) -> None:
    model = files.folder / "m.model"
    model.write_text(PAIRS_TEXT.format(rho="-1 2 0.5", a=a))
    files.data.write_text(hard_text((7, 8, 9), n_rows=60))
    libsvm.check(model, "-b", 1)
    two = MODEL_TEXT.replace("nr_sv", f"probA {a.split()[0]}\nprobB 0.1\nnr_sv")
    model.write_text(two)
    libsvm.check(model, "-b", 1)


def test_labels_in_front_of_probabilities_have_six_digits(files: Files, libsvm: Libsvm) -> None:
    model = files.folder / "m.model"
    text = MODEL_TEXT.replace("nr_sv", "probA -2\nprobB 0\nnr_sv").replace("label 3 5", "label 1234567 -2147483648")
    model.write_text(text)
    files.data.write_text(hard_text((1234567, 5), n_rows=60))
    written = libsvm.check(model, "-b", 1).decode().splitlines()
    assert written[0] == "labels 1234567 -2147483648"
    assert {line.split()[0] for line in written[1:]} == {"1.23457e+06", "-2.14748e+09"}
    libsvm.check(model)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "sigmoid\ncoef0 0.5", "polynomial\ndegree 3\ncoef0 0.5"])
@pytest.mark.parametrize("svm_type", ["epsilon_svr", "nu_svr"])
def test_a_regression_model_with_a_laplace_scale_prints_it_and_predicts_values(
    files: Files, svm_type: str, kernel: str
) -> None:
    """Values are equal with and without -b 1; this is tested even on machines without svm-predict."""
    model = files.folder / "m.model"
    text = SVR_TEXT.replace("nu_svr", svm_type).replace("rbf", kernel)
    model.write_text(text.replace("SV\n", "probA 0.123456789\nSV\n"))
    files.data.write_text(hard_text((3, 5)))
    remark, *closing = predict("-b", 0, files.data, model, files.output).splitlines()
    assert remark == "Model supports probability estimates, but disabled in prediction."
    values = files.output.read_bytes()
    assert predict("-b", 1, files.data, model, files.output).splitlines() == [
        "Prob. model for test data: target value = predicted value + z,",
        "z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma=0.123457",
        *closing,
    ]
    assert files.output.read_bytes() == values
    assert predict("-q", "-b", 1, files.data, model, files.output) == ""


@pytest.mark.parametrize("text", [MODEL_TEXT, SVR_TEXT, MODEL_TEXT.replace("nr_sv", "probA -2\nnr_sv")])
def test_models_without_probabilities_are_refused(files: Files, libsvm: Libsvm, text: str) -> None:
    model = files.folder / "m.model"
    model.write_text(text)
    files.data.write_text("3 1:1\n")
    assert failure("-b", 1, files.data, model, files.output) == f"{model}: {NO_PROBABILITIES}"
    assert NO_PROBABILITIES in libsvm.check_refusal(model, "-b", 1)


@pytest.mark.parametrize("mode", ["certified", "exact"])
@pytest.mark.parametrize("labels", [(-1, 1), (3, -2, 7)])
def test_artifacts_give_the_same_probabilities(
    files: Files, libsvm: Libsvm, labels: tuple[int, ...], mode: Literal["certified", "exact"]
) -> None:
    model = libsvm.train("-s 0 -g 0.1 -b 1", sorted_apart(labels))
    files.data.write_text(sorted_apart(labels, seed=5))
    approxsvm.compile(model, n_features=N_FEATURES, mode=mode).save(files.folder / "m.asvm")
    libsvm.check(model, "-b", 1, compiled=files.folder / "m.asvm")
    libsvm.check(model, compiled=files.folder / "m.asvm")


# --- LIBSVM 3.37, where it differs from the installed svm-predict


@pytest.mark.parametrize(
    ("options", "labels"), [("-s 2 -n 0.3", (1,)), ("-s 0", (3, 5)), ("-s 1 -n 0.2", (3, 5, 1, 8))]
)
def test_probabilities_are_those_of_libsvm_3_37(files: Files, options: str, labels: tuple[int, ...]) -> None:
    """Since 3.30, one-class models have density marks."""
    svmutil = pytest.importorskip("libsvm.svmutil", reason="libsvm-official is not installed")
    (files.folder / "train").write_text(sorted_apart(labels))
    trained = svmutil.svm_train(*svmutil.svm_read_problem(str(files.folder / "train")), f"{options} -g 0.1 -b 1 -q")
    model = files.folder / "m.model"
    svmutil.svm_save_model(str(model), trained)
    files.data.write_text(libsvm_text([labels[0]] * 200, random_rows(200)))
    targets, rows = svmutil.svm_read_problem(str(files.data))
    # svm-predict reads a model back from its file, and so do we.
    winners, _, probabilities = svmutil.svm_predict(targets, rows, svmutil.svm_load_model(str(model)), "-b 1 -q")
    header = "label normal outlier\n" if "-s 2" in options else f"labels {' '.join(map(str, trained.get_labels()))}\n"
    lines = [" ".join(f"{x:g}" for x in (w, *p)) + "\n" for w, p in zip(winners, probabilities, strict=True)]
    said = predict("-b", 1, files.data, model, files.output)
    assert files.output.read_text() == header + "".join(lines)
    correct = sum(w == t for w, t in zip(winners, targets, strict=True))
    assert said == f"Accuracy = {correct / 2:g}% ({correct}/200) (classification)\n"
    assert predict(files.data, model, files.output).startswith("Model supports probability estimates, but disabled")


# --- files that LIBSVM accepts


@pytest.mark.parametrize("kernel", ["rbf", "linear", "sigmoid\ncoef0 0.5", "polynomial\ndegree 3\ncoef0 0.5"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\n", "\r\n"),
        ("\n", " \n"),
        ("SV\n", "SV   \n"),
        ("gamma 0.5\nnr_class 2\n", "nr_class 2\n"),
        ("nr_sv 2 2\n", ""),
        ("rho 0", "  rho\n  0.25"),
        ("-0.5 1:0.3 3:0.7\n", "-0.5 1:0.3 3:0.7\n\n\n"),
        ("-0.5 1:0.3 3:0.7\n", "-0.5 1:0.3 3:0.7"),
        ("2:0.3 3:0.7", ""),
        ("1:0.3", "0:0.3"),
        ("0.5 2", "5.00000000e-01 2"),
    ],
)
def test_model_files_as_svm_predict_accepts_them(files: Files, libsvm: Libsvm, kernel: str, old: str, new: str) -> None:
    """Removed keys are added again elsewhere, so that the header keeps them all."""
    text = MODEL_TEXT.replace("rbf", kernel)
    moved = {"nr_class 2\n": "gamma 0.5\n", "": "nr_sv 2 2\n"}.get(new, "") if old[0] in "gn" else ""
    text = text.replace(old, new).replace("label 3 5\n", f"label 3 5\n{moved}")
    if moved.startswith("nr_sv"):  # ThunderSVM's order
        text = text.replace(moved, moved + "probA -1.5 \nprobB 0.25 \n")
    model = files.folder / "m.model"
    model.write_text(text, newline="")
    files.data.write_text(hard_text((3, 5), n_rows=60))
    libsvm.check(model)
    if moved.startswith("nr_sv"):
        libsvm.check(model, "-b", 1)


@pytest.mark.parametrize("text", [MODEL_TEXT, SVR_TEXT, MODEL_TEXT.replace("rbf", "linear")])
def test_data_files_as_svm_predict_accepts_them(files: Files, libsvm: Libsvm, text: str) -> None:
    long = " ".join(f"{index}:{index % 7 - 3}" for index in range(1, 20000))
    lines = [
        "+3\t1:0.5\t2:1",
        " 3 1: 0.5 2:1 ",
        "0x5 1:0x1p-3",
        "5",
        "nan 0:1 3:2",
        "inf 1:1",
        "3e0 1:+.5 2:5.",
        f"3 {long}",
    ]
    model = files.folder / "m.model"
    model.write_text(text)
    for ending in ("\n", ""):
        files.data.write_text("\n".join(lines) + ending)
        libsvm.check(model)


@pytest.mark.parametrize(
    "line",
    ["", "1,2 1:1", "x 1:1", "3 1:1 1:2", "3 2:1 1:2", "3 1 :0.5", "3 1:", "3 1:x", "3 -1:2", "3 x:2", "3 1:1,5"],
)
def test_lines_that_both_refuse(files: Files, libsvm: Libsvm, line: str) -> None:
    model = files.folder / "m.model"
    model.write_text(MODEL_TEXT)
    files.data.write_text(f"3 1:1\n5 2:1\n{line}\n3 1:1\n")
    ours, theirs = libsvm.check_refusal(model).splitlines()[:2]
    assert ours.startswith(f"{files.data}, line 3: wrong input format: ")
    assert theirs == "Wrong input format at line 3"


@pytest.mark.parametrize("arguments", [("a", "b"), ("-x", "0", "a", "b", "c"), ()])
def test_arguments_that_both_refuse(libsvm: Libsvm, arguments: tuple[str, ...]) -> None:
    failure(*arguments)
    assert libsvm.run(1, *arguments).returncode == 1


# --- compiled models, and models at the limits

COMPILED = [(f"-s {s} -g {g} -c 10 -n 0.3", labels) for s in (0, 1) for g, labels in ((0.3, (1, -1)), (0.02, (3, 7)))]
COMPILED += [("-s 0 -g 0.3 -c 10", (3, 7, 1)), ("-s 1 -g 0.02 -n 0.2", (4, 2, 9, 1, 0))]
ONE_CLASS = [("-s 2 -g 0.3 -n 0.3", (1,)), ("-s 2 -g 0.02 -n 0.5", (1,))]


@pytest.mark.parametrize("mode", ["certified", "exact"])
@pytest.mark.parametrize(("options", "labels"), [*COMPILED, *ONE_CLASS])
def test_certified_and_exact_artifacts_give_the_bytes_of_svm_predict(
    files: Files, libsvm: Libsvm, options: str, labels: tuple[int, ...], mode: Mode
) -> None:
    model = libsvm.train(options, training_text(labels))
    approxsvm.compile(model, n_features=N_FEATURES, mode=mode).save(files.model)
    files.data.write_text(hard_text(labels))
    for target in _native.runnable_targets():
        libsvm.check(model, compiled=files.model, APPROXSVM_TARGET=target)


def test_what_gives_a_regression_the_bytes_of_svm_predict(files: Files, libsvm: Libsvm) -> None:
    """The model file does. A tolerance changes leading digits, and float64 rounding the last ones."""
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
    """Features have a small range around a large number, so the engine must use their mean as center."""
    rng = np.random.default_rng(1)
    rows = csr_array(1000 + rng.random((300, N_FEATURES)))
    text = libsvm_text(np.where(rng.random(300) < 0.5, 1, -1).tolist(), rows)
    model = libsvm.train(options, text)
    files.data.write_text(text)
    libsvm.check(model)


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
    """Compare with the same sums in Python, for machines without LIBSVM."""
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

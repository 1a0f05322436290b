"""approxsvm cross-validate and dense text: format and correctness of the output."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import GOLDEN
from sklearn.datasets import make_classification
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.svm import SVC

import approxsvm
from approxsvm.cli import main
from approxsvm.errors import DataFormatError


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def data(n_classes=2):
    return make_classification(
        150, 6, n_informative=5, n_redundant=0, n_classes=n_classes, n_clusters_per_class=1, random_state=0
    )


def write_libsvm(path, X, y):
    lines = (
        f"{label!r} " + " ".join(f"{j}:{v!r}" for j, v in enumerate(row, 1))
        for label, row in zip(y.tolist(), X.tolist(), strict=True)
    )
    path.write_text("\n".join(lines) + "\n")
    return path


def figures(path, *options):
    outcome = run("cross-validate", path, *options, "--json")
    assert outcome.exit_code == 0, outcome.output
    return json.loads(outcome.stdout)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classification_equals_scikit_learns_cross_validation(tmp_path, n_classes):
    X, y = data(n_classes)
    path = write_libsvm(tmp_path / "data", X, y)
    found = figures(path, "-c", 2, "-g", 0.1, "--folds", 3)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    expected = (cross_val_predict(SVC(C=2.0, gamma=0.1), X, y, cv=folds) == y).mean()
    total = found["total"]
    assert total["exact_accuracy"] == pytest.approx(expected)
    assert total["compiled_accuracy"] == total["exact_accuracy"]
    assert total["differences"] == 0
    assert sum(fold["n_test"] for fold in found["folds"]) == total["n_test"] == 150
    assert len(found["folds"]) == 3
    assert [fold["n_train"] for fold in found["folds"]] == [100, 100, 100]
    assert found["training"] == {"svm_type": "c-svc", "C": 2.0, "gamma": 0.1, "nu": 0.5, "epsilon": 0.1}


@pytest.mark.parametrize("svm_type", ["c-svc", "nu-svc", "epsilon-svr", "nu-svr"])
def test_every_type(tmp_path, svm_type):
    X, y = data()
    targets = y if svm_type.endswith("svc") else X[:, 0] + X[:, 1]
    path = write_libsvm(tmp_path / "data", X, targets)
    total = figures(path, "--svm-type", svm_type, "--nu", 0.3, "--folds", 2, "--mode", "exact")["total"]
    if svm_type.endswith("svc"):
        assert total["differences"] == 0
        assert total["exact_mse"] is None
    else:
        assert total["largest_difference"] < 1e-6
        assert total["compiled_r2"] == pytest.approx(total["exact_r2"], abs=1e-6)
        assert total["compiled_mse"] == pytest.approx(total["exact_mse"], abs=1e-6)


def test_more_folds_than_rows_are_refused(tmp_path):
    refused = run("cross-validate", write_libsvm(tmp_path / "data", *data()), "--folds", 200)
    assert refused.exit_code == 1
    assert "200 folds of 150 rows" in refused.stderr


def test_command(tmp_path):
    X, y = data(3)
    path = write_libsvm(tmp_path / "data", X, y)
    arguments = ("cross-validate", path, "-c", 2, "-g", 0.1, "--folds", 3, "--effort", "low")
    shown = run(*arguments)
    assert shown.exit_code == 0, shown.output
    lines = shown.stdout.splitlines()
    assert lines[0] == "c-svc, gamma 0.1, mode certified"
    assert [line.split()[0] for line in lines[1:]] == ["fold", "1", "2", "3", "all"]
    found = figures(*arguments[1:])
    assert found["total"]["differences"] == 0
    assert f"{found['total']['exact_accuracy']:.4%}" in lines[-1]


def test_command_for_a_regression_in_dense_text(tmp_path):
    X, _ = data()
    path = tmp_path / "data.txt"
    np.savetxt(path, np.column_stack([X[:, 0], X]), delimiter=";")
    arguments = ("cross-validate", path, "--svm-type", "epsilon-svr", "--folds", 2, "--dense", "--delimiter", ";")
    shown = run(*arguments)
    assert shown.exit_code == 0, shown.output
    assert "compiled R2" in shown.stdout
    refused = run(*arguments, "--no-labels")
    assert refused.exit_code == 1
    assert "needs labels" in refused.stderr


@pytest.mark.parametrize(("delimiter", "typed"), [(None, None), (",", ","), ("\t", "\\t"), ("\t", None), (";", ";")])
@pytest.mark.parametrize("header", [False, True])
def test_dense_text(tmp_path, delimiter, typed, header):
    X, y = data()
    path = tmp_path / "rows.txt"
    text = delimiter or " "
    names = text.join(["label", *"abcdef"]) if header else ""
    np.savetxt(path, np.column_stack([y, X]), delimiter=text, header=names, comments="", fmt="%.17g")
    given = None if typed is None else delimiter
    read, labels = approxsvm.read_dense(path, delimiter=given)
    np.testing.assert_array_equal(read, X)
    np.testing.assert_array_equal(labels, y)
    everything, nothing = approxsvm.read_dense(path, delimiter=given, labels=False)
    assert everything.shape == (150, 7)
    assert nothing is None
    options = [] if typed is None else ["--delimiter", typed]
    shown = run("gamma-max", path, "--dense", *options)
    assert shown.exit_code == 0, shown.output
    assert f"{approxsvm.gamma_max(X, center='origin'):.6g}" in shown.stdout


def test_dense_text_serves_every_command(tmp_path):
    X, y = approxsvm.read_libsvm_data(GOLDEN / "breast_cancer.t", n_features=30)
    np.savetxt(tmp_path / "with", np.column_stack([y, X.toarray()]), fmt="%.17g")
    np.savetxt(tmp_path / "without", X.toarray(), fmt="%.17g")
    output = tmp_path / "bc.asvm"
    model = GOLDEN / "breast_cancer.model"
    for name, option in (("with", "--labels"), ("without", "--no-labels")):
        made = run("convert-model", model, "-o", output, "--data", tmp_path / name, "--dense", option)
        assert made.exit_code == 0, made.output
        verified = run("verify", output, "--against", model, "--data", tmp_path / name, "--dense", option)
        assert verified.exit_code == 0, verified.output
    wrong = run("verify", output, "--against", model, "--data", tmp_path / "with", "--dense", "--no-labels")
    assert wrong.exit_code == 1
    assert "has 31 columns besides the label, expected 30" in wrong.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1 2 3\n4 x 6\n", "line 2, column 2: not a finite number"),
        ("9 2 3\n4 5\n", "line 2, column 3: not a finite number, or missing"),
        ("1 2 3\n4 inf 6\n", "line 2, column 2"),
        ("9 2\n\n3 4\n", "line 2"),
        ("a b\n1 2\n1 nan\n", "line 3, column 2"),
        ("9\n2\n", "at least 1"),
        ("", "not dense text"),
        ("9 2\n3 4 5\n", "not dense text"),
    ],
)
def test_broken_dense_text_is_refused(tmp_path, content, message):
    (tmp_path / "rows").write_text(content)
    with pytest.raises(DataFormatError, match=message):
        approxsvm.read_dense(tmp_path / "rows")


def test_delimiters_are_one_character(tmp_path):
    with pytest.raises(DataFormatError, match="must be one character"):
        approxsvm.read_dense(tmp_path / "rows", delimiter="||")


def test_linear_models_convert_inspect_and_verify(tmp_path):
    libsvm = pytest.importorskip("libsvm.svmutil")
    X, y = data()
    model = libsvm.svm_train(libsvm.svm_problem(y.tolist(), X.tolist()), "-t 0 -q")
    libsvm.svm_save_model(str(tmp_path / "linear.model"), model)
    rows = write_libsvm(tmp_path / "rows", X, y)
    output = tmp_path / "linear.asvm"
    made = run("convert-model", tmp_path / "linear.model", "-o", output)
    assert made.exit_code == 0, made.output
    assert "nothing to approximate" in made.stdout
    assert run("inspect", output).exit_code == 0
    verified = run("verify", output, "--against", tmp_path / "linear.model", "--data", rows)
    assert verified.exit_code == 0, verified.output

"""The approxsvm command: user input and output."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from dataclasses import replace

import joblib
import numpy as np
import pytest
from click.testing import CliRunner
from conftest import GOLDEN, random_model
from sklearn.calibration import CalibratedClassifierCV
from sklearn.svm import SVC, LinearSVC

import approxsvm
from approxsvm.cli import main


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_convert_then_inspect(tmp_path):
    output = tmp_path / "bc.asvm"
    result = run("convert-model", GOLDEN / "breast_cancer.model", "-o", output)
    assert result.exit_code == 0, result.stderr
    assert (
        f"libsvm c_svc, 62 support vectors, 30 features -> {output}, certified, {output.stat().st_size:,} bytes"
        in " ".join(result.stdout.split())
    )
    assert output.read_bytes() == approxsvm.compile(GOLDEN / "breast_cancer.model").artifact.data
    shown = run("inspect", output)
    assert shown.exit_code == 0
    for word in ("libsvm c_svc", "classification", "n support vectors", "62", "0.05", "mean"):
        assert word in shown.stdout
    assert re.search(r"^cpp +approxsvm::ModelOf<.*>$", shown.stdout, re.MULTILINE)
    assert "certified fraction" not in shown.stdout


def test_an_artifact_without_the_usual_suffix_is_named(tmp_path):
    told = run("convert-model", GOLDEN / "breast_cancer.model", "-o", tmp_path / "b.txt").stderr
    assert told == f"approxsvm: warning: {tmp_path / 'b.txt'}: approxsvm score needs --model for an artifact whose " + (
        "name does not end in .asvm\n"
    )


@pytest.mark.parametrize("mode", ["approximate", "exact"])
def test_what_an_artifact_has_no_use_for_is_not_shown(tmp_path, mode):
    output = tmp_path / "bc.asvm"
    run("convert-model", GOLDEN / "breast_cancer.model", "-o", output, "--mode", mode)
    shown = run("inspect", output).stdout
    assert not re.search(r"\b(inf|nan|unknown)\b", shown)
    assert re.search("tolerance +none requested", shown)
    assert ("n centers" in shown) == (mode != "exact")
    why = {"exact": "every row is exact", "approximate": "labels are not guaranteed"}
    assert re.search(f"certified fraction +not applicable: {why[mode]}", shown)


def test_interrupts_exit_as_shells_expect(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("approxsvm.runtime.evaluator.read_artifact", interrupt)
    result = run("inspect", tmp_path)
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "approxsvm: interrupted\n")


def test_tolerance(tmp_path):
    output = tmp_path / "svr.asvm"
    assert run("convert-model", GOLDEN / "diabetes_svr.model", "-o", output, "--tolerance", "0.25").exit_code == 0
    assert approxsvm.load(output).summary.tolerance == 0.25
    refused = run("convert-model", GOLDEN / "diabetes_svr.model", "-o", output, "--tolerance", "1e-30")
    assert refused.exit_code == 1
    assert "float64 cannot promise less than" in refused.stderr


def test_options(tmp_path):
    refused = run("convert-model", GOLDEN / "breast_cancer.asvm", "-o", tmp_path / "out")
    assert refused.exit_code == 1
    assert "an artifact is already compiled" in refused.stderr
    output = tmp_path / "bc.asvm"
    assert (
        run(
            "convert-model", GOLDEN / "breast_cancer.model", "-o", output, "--center", "origin", "--n-features", 33
        ).exit_code
        == 0
    )
    summary = approxsvm.load(output).summary
    assert (summary.center, summary.n_features) == ("origin", 33)


def test_pickles_need_trust(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 3))
    joblib.dump(SVC().fit(X, X[:, 0] > 0), tmp_path / "svc.joblib")
    refused = run("convert-model", tmp_path / "svc.joblib", "-o", tmp_path / "out")
    assert refused.exit_code == 1
    assert "--trust" in refused.stderr
    assert not (tmp_path / "out").exists()
    assert run("convert-model", tmp_path / "svc.joblib", "-o", tmp_path / "out", "--trust").exit_code == 0


def test_a_delimiter_decides_what_text_is(tmp_path):
    """The option applies to tables and files with uninformative names; without it, the error names the delimiter."""
    rows = np.random.default_rng(0).normal(size=(40, 3))
    fast = approxsvm.compile(SVC().fit(rows, rows[:, 0] > 0))
    fast.save(tmp_path / "m.asvm")
    joblib.dump(SVC().fit(rows, rows[:, 0] > 0), tmp_path / "m.pkl")
    convert = ["convert-model", tmp_path / "m.pkl", "--trust", "-o", tmp_path / "n.asvm", "--data"]
    score = ["score", tmp_path / "m.asvm", "-o", tmp_path / "o.csv"]
    for delimiter in ";\t|":
        for names in ("", delimiter.join("abc") + "\n"):
            text = names + "".join(delimiter.join(map(repr, row)) + "\n" for row in rows.tolist())
            for name in ("rows.csv", "rows.dat"):
                (tmp_path / name).write_text(text)
                assert run(*score, tmp_path / name, "--delimiter", delimiter).exit_code == 0
                assert (tmp_path / "o.csv").read_text().split()[1:] == [str(k).lower() for k in fast.predict(rows)]
                options = ["--no-labels"] if name == "rows.dat" else []
                assert run(*convert, tmp_path / name, *options, "--delimiter", delimiter).exit_code == 0
            for command in (convert, score):
                refused = run(*command, tmp_path / "rows.csv")
                start = (
                    f"approxsvm: {tmp_path / 'rows.csv'}: give --delimiter {delimiter!r} (delimiter={delimiter!r}), or"
                )
                assert (refused.exit_code, refused.stderr[: len(start)]) == (1, start)
    refused = run(*convert, tmp_path / "rows.dat", "--delimiter", "|")
    assert (
        "has 2 columns besides the label, expected 3: --no-labels (labels=False) if there is no label" in refused.stderr
    )
    np.save(tmp_path / "rows.npy", rows)
    assert "a delimiter is for .csv files" in run(*convert, tmp_path / "rows.npy", "--delimiter", ";").stderr


def test_the_size_of_a_pipe_is_compared_with_nothing(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(
        target=(tmp_path / "pipe").write_bytes, args=[(GOLDEN / "breast_cancer.model").read_bytes()]
    )
    writer.start()
    done = run("convert-model", tmp_path / "pipe", "-o", tmp_path / "out")
    writer.join()
    assert re.search(r"bytes, [\d.]+ s$", done.stdout.splitlines()[0])
    done = run("convert-model", GOLDEN / "breast_cancer.model", "-o", tmp_path / "out")
    assert re.search(r"bytes \([\d.]+ times (smaller|as large)\), [\d.]+ s$", done.stdout.splitlines()[0])


RANGE = "y\n-1 1\n0 10\nx\n-1 1\n1 0 4\n2 -8 8\n4 0 1\n"


@pytest.fixture
def scaled(tmp_path):
    """Write model files trained on rows scaled by svm-scale, and a range file, and return raw and scaled rows."""
    (tmp_path / "range").write_text(RANGE)
    rng = np.random.default_rng(0)
    raw = rng.uniform([0, -8, 5, 0], [4, 8, 5, 1], size=(40, 4))
    np.save(tmp_path / "raw.npy", raw)
    made = np.column_stack([raw[:, 0] / 2 - 1, raw[:, 1] / 8, np.zeros(40), 2 * raw[:, 3] - 1])
    for kernel, header in (("rbf", "gamma 0.5\n"), ("linear", "")):
        lines = [f"{(-1) ** i * 0.5} 1:{made[i, 0]:.17g} 2:{made[i, 1]:.17g}\n" for i in range(6)]
        head = f"svm_type epsilon_svr\nkernel_type {kernel}\n{header}nr_class 2\ntotal_sv 6\nrho 0.25\nSV\n"
        (tmp_path / f"{kernel}.model").write_text(head + "".join(lines))
    return tmp_path, raw, made


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_range_files(scaled, kernel):
    """For unscaled rows, the artifact gives the model's answers for the scaled ones."""
    folder, raw, made = scaled
    source, output = folder / f"{kernel}.model", folder / "out.asvm"
    expected = approxsvm.compile(source, n_features=4, mode="exact").predict(made)
    command = ["convert-model", source, "-o", output, "--mode", "exact", "--range", folder / "range"]
    assert run(*command).exit_code == 0
    np.testing.assert_allclose(approxsvm.load(output).predict(raw), expected, rtol=1e-9)
    model = approxsvm.with_range_file(source, folder / "range")
    np.testing.assert_array_equal(
        approxsvm.load(output).predict(raw), approxsvm.compile(model, mode="exact").predict(raw)
    )
    verifying = ["verify", output, "--against", source, "--data", folder / "raw.npy", "--range", folder / "range"]
    result = run(*verifying)
    assert (result.exit_code, result.stderr) == (0, "")
    assert run(*command, "--restore-target").exit_code == 0
    np.testing.assert_allclose(approxsvm.load(output).predict(raw), (expected + 1) / 2 * 10, rtol=1e-9)
    assert run(*verifying, "--restore-target").exit_code == 0
    assert run(*verifying).exit_code == 1


def test_what_range_files_are_not_for(scaled):
    folder, raw, _ = scaled
    refused = run("convert-model", folder / "rbf.model", "-o", folder / "out", "--restore-target")
    assert refused.exit_code == 1
    assert refused.stderr.startswith("approxsvm: --restore-target needs --range")
    ensemble = CalibratedClassifierCV(LinearSVC(), cv=2).fit(raw, raw[:, 0] > 2)
    joblib.dump(ensemble, folder / "many.joblib")
    command = ["convert-model", folder / "many.joblib", "-o", folder / "out", "--trust", "--range", folder / "range"]
    assert "is for models with support vectors" in run(*command).stderr
    assert not (folder / "out").exists()


def test_range_files_are_for_linear_models_too(scaled):
    folder, raw, made = scaled
    source = LinearSVC().fit(made, raw[:, 0] > 2)
    fast = approxsvm.compile(approxsvm.with_range_file(source, folder / "range"))
    np.testing.assert_array_equal(fast.predict(raw), source.predict(made))


def test_gamma_max(tmp_path):
    train, test = tmp_path / "train", tmp_path / "test"
    train.write_text("1 1:3 2:4\n-1 1:1\n")
    test.write_text("1 3:2\n")
    result = run("gamma-max", train, test)
    assert result.exit_code == 0
    assert "origin  0.025" in result.stdout
    assert "0.01" in run("gamma-max", train).stdout


@pytest.mark.parametrize(
    ("content", "command", "message"),
    [
        (None, ["convert-model", "{}", "-o", "{}.out"], "{}: No such file or directory"),
        (
            "nonsense\n",
            ["convert-model", "{}", "-o", "{}.out"],
            "{}, line 1: not a model file: it begins with 'nonsense'",
        ),
        (None, ["inspect", "{}"], "{}: No such file or directory"),
        ("text", ["inspect", "{}"], "{}: not an approxsvm artifact"),
        ("1 1:x", ["gamma-max", "{}"], "{}, line 1: wrong input format"),
    ],
)
def test_failures_are_one_line_and_leave_nothing(tmp_path, content, command, message):
    path = tmp_path / "file"
    if content is not None:
        path.write_text(content)
    result = run(*(part.format(path) for part in command))
    assert result.exit_code == 1
    assert result.stderr.startswith("approxsvm: " + message.format(path))
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    assert [p.name for p in tmp_path.iterdir()] == (["file"] if content is not None else [])


def test_an_unwritable_output_is_named(tmp_path):
    result = run("convert-model", GOLDEN / "breast_cancer.model", "-o", tmp_path / "no" / "out")
    assert result.exit_code == 1
    assert result.stderr == f"approxsvm: {tmp_path}/no/out: there is no folder {tmp_path}/no\n"


@pytest.fixture
def verified(tmp_path):
    """Return artifacts of the golden classifier: an honest one, and one of a model with a changed intercept."""
    source = GOLDEN / "breast_cancer.model"
    honest, moved = tmp_path / "honest.asvm", tmp_path / "moved.asvm"
    approxsvm.compile(source).save(honest)
    model = approxsvm.read_libsvm_model(source)
    approxsvm.compile(replace(model, intercept=model.intercept + 1.0)).save(moved)
    return ["--against", source, "--data", GOLDEN / "breast_cancer.t"], honest, moved


def test_verify_shows_a_table(verified):
    options, honest, _ = verified
    result = run("verify", honest, *options)
    assert result.exit_code == 0, result.stderr
    shown = dict(
        re.split(r"  +", line.strip(), maxsplit=1) for line in result.stdout.splitlines() if "  " in line.strip()
    )
    assert (shown["n rows"], shown["label differences"], shown["bound violations"]) == ("150", "0", "0")
    assert shown["kept"] == "yes"


def test_verify_json(verified):
    options, honest, _ = verified
    content = json.loads(run("verify", honest, *options, "--json").stdout)
    assert content["kept"] is True
    assert content["n_rows"] == 150
    assert content["tolerance"] is None
    assert sum(content["rows_per_stage"].values()) == 150
    assert content["largest_error_to_bound"] <= 1.0


def test_verify_fails_when_a_promise_is_broken(verified):
    options, _, moved = verified
    result = run("verify", moved, *options, "--json")
    assert result.exit_code == 1
    content = json.loads(result.stdout)
    assert content["kept"] is False
    assert content["bound_violations"] > 0
    assert content["label_differences"] > 0


def test_verify_refuses_another_model(verified):
    _, honest, _ = verified
    result = run("verify", honest, "--against", GOLDEN / "diabetes_svr.model", "--data", GOLDEN / "breast_cancer.t")
    assert result.exit_code == 1
    assert "the source model is for regression" in result.stderr
    result = run("verify", honest, "--against", GOLDEN / "digits_classes.model", "--data", GOLDEN / "breast_cancer.t")
    why = "not this artifact's source: it has 64 features, but the artifact has 30"
    assert result.stderr == f"approxsvm: {GOLDEN / 'digits_classes.model'}: {why}\n"


def test_tables_with_more_than_features(tmp_path):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"])
    source = SVC().fit(frame, frame["a"] > 0)
    joblib.dump(source, tmp_path / "svc.joblib")
    frame.assign(kind=frame["a"] > 0).sample(frac=1.0, axis=1, random_state=1).to_csv(tmp_path / "rows.csv")
    convert = [
        "convert-model",
        tmp_path / "svc.joblib",
        "--trust",
        "-o",
        tmp_path / "out",
        "--data",
        tmp_path / "rows.csv",
    ]
    refused = run(*convert)
    assert refused.exit_code == 1
    assert re.search(r"has 5 columns \(.*\), but the model has 3 features; --columns", refused.stderr)
    assert run(*convert, "--columns", "a, b,c").exit_code == 0
    verified = [
        "verify",
        tmp_path / "out",
        "--against",
        tmp_path / "svc.joblib",
        "--trust",
        "--data",
        tmp_path / "rows.csv",
    ]
    assert run(*verified, "--columns", "a,b,c").exit_code == 0
    frame.assign(kind=0).to_csv(tmp_path / "rows.csv", index=False)
    result = run(*verified, "--target", "kind")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "without --dense" in run(*verified, "--target", "kind", "--dense").stderr


@pytest.mark.parametrize("command", ["convert-model", "inspect", "gamma-max", "verify"])
def test_every_help_text_has_an_example(command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"Example:\n      approxsvm {command} " in result.stdout


def test_no_summary_of_a_command_is_cut():
    assert "..." not in run("--help").stdout.partition("Commands:")[2]


def test_the_error_for_predict_names_the_commands_that_predict():
    result = run("predict", "rows", "model.asvm")
    assert result.exit_code == 2
    assert "No such command 'predict'. Use 'approxsvm score'" in result.stderr
    assert "'approxsvm-predict'" in result.stderr


def test_installed_command(tmp_path):
    command = [sys.executable, "-m", "approxsvm.cli", "--version"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stdout == f"approxsvm, version {approxsvm.__version__}\n"


def test_importing_is_cheap(tmp_path):
    """Heavy libraries are imported only when needed."""
    program = (
        "import sys, approxsvm; print([m for m in ('sklearn', 'scipy', 'rich', 'click', 'joblib') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


HEAVY = {"sklearn", "scipy", "matplotlib", "onnx"}
COMMANDS = {
    "inspect MODEL": HEAVY | {"pandas", "pyarrow", "joblib", "rich.progress"},
    "export MODEL --c TMP/m.h": HEAVY | {"pandas", "pyarrow", "joblib"},
    "export MODEL --onnx TMP/m.onnx": HEAVY - {"onnx"},
    "score MODEL TMP/rows.csv -o TMP/out.csv": HEAVY,
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_import_no_more_than_they_need(command, tmp_path):
    (tmp_path / "rows.csv").write_text(",".join(["0.5"] * 30) + "\n")
    arguments = command.replace("MODEL", str(GOLDEN / "breast_cancer.asvm")).replace("TMP", str(tmp_path)).split()
    program = (
        "import sys; from approxsvm.cli import main; main(sys.argv[1:], standalone_mode=False);"
        f"print('imported', sorted({COMMANDS[command]!r} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "imported []"


def test_predicting_imports_no_compiler_and_no_drawings():
    program = (
        "import sys, approxsvm; approxsvm.load(sys.argv[1]).predict([[0.5] * 30]);"
        "unused = {'approxsvm.compiler', 'approxsvm.frontends', 'approxsvm.planning', 'matplotlib', 'jinja2'};"
        "print(unused & sys.modules.keys())"
    )
    arguments = [sys.executable, "-c", program, str(GOLDEN / "breast_cancer.asvm")]
    assert subprocess.run(arguments, capture_output=True, text=True, check=True).stdout == "set()\n"


def test_public_names():
    assert dir(approxsvm) == sorted([*approxsvm.__all__, "__version__"])
    for name in approxsvm.__all__:
        assert getattr(approxsvm, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = approxsvm.nothing
    assert random_model(0).n_sv == 40


def test_options_have_parameters_of_their_own():
    for name, command in main.commands.items():
        names = [parameter.name for parameter in command.params]
        assert len(set(names)) == len(names), f"{name}: {sorted(names)}"


@pytest.mark.parametrize("labels", ["--labels", "--no-labels"])
def test_labels_of_dense_rows_and_labels_by(labels, tmp_path):
    X, y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 3.0]]), np.array([0.0, 1.0, 0.0, 1.0])
    columns = X if labels == "--no-labels" else np.column_stack([y, X])
    np.savetxt(tmp_path / "rows.txt", columns)
    joblib.dump(SVC().fit(X, y), tmp_path / "m.joblib")
    options = ["--trust", "--labels-by", "source", "--data", tmp_path / "rows.txt", "--dense", labels]
    result = run("convert-model", tmp_path / "m.joblib", "-o", tmp_path / "m.asvm", *options)
    assert result.exit_code == 0, result.output


def test_errors_name_options_and_not_parameters_of_python(tmp_path):
    model, rows = GOLDEN / "breast_cancer.model", tmp_path / "rows.npy"
    np.save(rows, np.full((2, 30), np.nan))
    output = tmp_path / "m.asvm"
    exact = run("convert-model", model, "-o", output, "--mode", "exact", "--centers", "2")
    assert exact.stderr == ("approxsvm: --mode exact has no expansion: leave --degree and --centers out\n")
    large = run("convert-model", model, "-o", output, "--max-bytes", "100")
    assert re.fullmatch(r"approxsvm: the artifact takes [0-9,]+ bytes, but --max-bytes is 100\n", large.stderr)
    bad = run("convert-model", model, "-o", output, "--data", rows)
    assert bad.stderr == "approxsvm: --data contains NaN. (row 0, column 0)\n"


def test_a_header_of_a_certified_artifact_tells_how_to_get_certified_labels(tmp_path):
    header = tmp_path / "m.h"
    told = "m_predict_if_certain returns -1"
    assert told in run("export", GOLDEN / "breast_cancer.asvm", "--c", header, "--name", "m").stdout
    run("convert-model", GOLDEN / "breast_cancer.model", "-o", tmp_path / "m.asvm", "--mode", "approximate")
    assert told not in run("export", tmp_path / "m.asvm", "--c", header, "--name", "m").stdout

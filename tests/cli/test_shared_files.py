"""No command overwrites its input, or writes two outputs to one file, for every pair and every kind of second name."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from commands import NEEDED, longest_option, make_files, needed_values, parameters, run
from conftest import GOLDEN
from predict_tool import Files, failure, needs_tool, predict

import approxsvm
from approxsvm.cli import main
from approxsvm.cli.group import InputFile, OutputFile
from approxsvm.errors import InputError
from approxsvm.system.output_files import refuse_shared_files, write_whole


def hard_link(there: Path, other: Path) -> Path:
    other.hardlink_to(there)
    return other


def symbolic_link(there: Path, other: Path) -> Path:
    other.symlink_to(there)
    return other


def other_spelling(there: Path, other: Path) -> Path:
    return Path(os.path.join(there.parent, "folder", "..", there.name))


SECOND_NAMES: dict[str, Callable[[Path, Path], Path]] = {
    "same": lambda there, other: there,
    "spelling": other_spelling,
    "hard link": hard_link,
    "symbolic link": symbolic_link,
}


def names_of(command: str, kind: type) -> list[tuple[click.Parameter, int]]:
    """Return a command's parameters that name files of this type; repeatable parameters occur once per file."""
    return [
        (parameter, place)
        for parameter in main.commands[command].params
        if isinstance(parameter.type, kind)
        for place in range(len(NEEDED[command][parameter.name]) if parameter.nargs == -1 else 1)
    ]


def called_by(parameter: click.Parameter) -> str:
    return parameter.human_readable_name if isinstance(parameter, click.Argument) else longest_option(parameter)


def pairs() -> list[Any]:
    found = []
    for command in main.commands:
        written = names_of(command, OutputFile)
        for one, other in [
            *itertools.product(names_of(command, InputFile), written),
            *itertools.combinations(written, 2),
        ]:
            label = "-".join([command, *(f"{parameter.name}{place or ''}" for parameter, place in (one, other))])
            found.append(pytest.param(command, one, other, id=label))
    return found


def test_every_file_is_known_as_read_or_written() -> None:
    for command, parameter in parameters():
        is_path = isinstance(parameter.type, click.Path)
        assert is_path == isinstance(parameter.type, (InputFile, OutputFile)), (command, parameter.name)
    assert set(NEEDED) == set(main.commands)
    assert len(pairs()) >= 18


@pytest.mark.parametrize("second_name", ["spelling", "hard link"])
@pytest.mark.parametrize(("command", "one", "other"), pairs())
def test_a_file_cannot_be_two_things(tmp_path, command, one, other, second_name):
    (tmp_path / "folder").mkdir()
    make_files(tmp_path)
    (parameter, place), (output, _) = one, other
    values = needed_values(command, tmp_path)
    values.setdefault(parameter.name, tmp_path / "first")
    first = values[parameter.name][place] if parameter.nargs == -1 else values[parameter.name]
    first.touch()
    second = values[output.name] = SECOND_NAMES[second_name](first, tmp_path / "second.csv")
    called, written = called_by(parameter), called_by(output)
    if command == "score":  # it knows each file's role
        values["output_format"] = "csv"
        called, written = "model" if first.suffix == ".asvm" else "input", "output"
    before = content_of(tmp_path)
    result = run(command, values)
    why = "which would be lost" if isinstance(parameter.type, InputFile) else "which is also written"
    assert result.stderr == f"approxsvm: {written} {second} is the same file as {called} {first}, {why}\n"
    assert (result.exit_code, result.stdout) == (1, "")
    assert content_of(tmp_path) == before


def content_of(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize("second_name", ["same", "spelling", "symbolic link"])
def test_outputs_that_are_not_there_yet(tmp_path, second_name):
    (tmp_path / "folder").mkdir()
    make_files(tmp_path)
    first = tmp_path / "new.h"
    second = SECOND_NAMES[second_name](first, tmp_path / "second")
    before = content_of(tmp_path)
    result = run("export", {"artifact": tmp_path / "m.asvm", "c_header": first, "onnx_file": second})
    assert result.stderr == f"approxsvm: --onnx {second} is the same file as --c {first}, which is also written\n"
    assert content_of(tmp_path) == before


def test_files_of_one_name_in_different_folders_are_two(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    refuse_shared_files([("x", tmp_path / "a" / "file")], [("y", tmp_path / "b" / "file")])
    (tmp_path / "c").symlink_to(tmp_path / "a")
    with pytest.raises(InputError, match="y is the same file as x, which would be lost"):
        refuse_shared_files([("x", tmp_path / "a" / "file")], [("y", tmp_path / "c" / "file")])


def test_devices_pipes_and_loops_are_nobodys_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path in ("/dev/null", tmp_path / "pipe", tmp_path / "loop", tmp_path, tmp_path / "no" / "file"):
        refuse_shared_files([("x", path)], [("y", path), ("z", path)])


def test_two_outputs_may_be_dev_null(tmp_path):
    make_files(tmp_path)
    run("convert-model", {"source": tmp_path / "m.model", "output": tmp_path / "a.asvm", "mode": "approximate"})
    result = run("export", {"artifact": tmp_path / "a.asvm", "c_header": "/dev/null", "onnx_file": "/dev/null"})
    assert (result.exit_code, result.stderr) == (0, "")


# --- system rules for names


def test_a_folder_that_is_not_there_cannot_be_left(tmp_path, monkeypatch):
    """The system reports an error, whatever the rest of the name would otherwise refer to."""
    make_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    result = run("convert-model", {"source": "m.model", "output": "missing/../y.asvm"})
    assert (result.exit_code, result.stderr) == (1, "approxsvm: missing/../y.asvm: there is no folder missing/..\n")
    with pytest.raises(FileNotFoundError):
        write_whole(b"", "missing/../y.asvm")
    with pytest.raises(NotADirectoryError):
        write_whole(b"", "m.model/../y.asvm")
    assert not (tmp_path / "y.asvm").exists()


def test_a_link_to_a_folder_is_left_to_where_it_leads(tmp_path, monkeypatch):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a" / "b")
    monkeypatch.chdir(tmp_path)
    for content in (b"new", b"replaced"):
        write_whole(content, "link/../file")
        assert (tmp_path / "a" / "file").read_bytes() == content
    assert not (tmp_path / "file").exists()


def test_a_link_to_a_file_that_is_not_there_yet_is_followed(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to("a/second")
    (tmp_path / "a" / "second").symlink_to("third")
    write_whole(b"new", tmp_path / "link")
    assert (tmp_path / "a" / "third").read_bytes() == b"new"
    assert (tmp_path / "link").is_symlink()


# --- Python


def test_an_artifact_that_is_saved_over_stays_what_it_was(tmp_path):
    """The artifact stays unchanged for any way of loading it, including a mapped matrix."""
    X = np.random.default_rng(0).normal(size=(20, 30))
    path = tmp_path / "m.asvm"
    path.write_bytes((GOLDEN / "breast_cancer.asvm").read_bytes())
    loaded, predictor = approxsvm.load(path), approxsvm.Predictor(path)
    expected = loaded.decision_function(X)
    approxsvm.load(GOLDEN / "diabetes_svr.asvm").save(path)
    np.testing.assert_array_equal(loaded.decision_function(X), expected)
    np.testing.assert_array_equal(predictor.decision_function(X), expected)
    np.save(tmp_path / "X.npy", X)
    mapped = approxsvm.read_rows(tmp_path / "X.npy")
    loaded.save(tmp_path / "X.npy")
    np.testing.assert_array_equal(mapped, X)


@pytest.fixture
def scored(tmp_path):
    pytest.importorskip("pyarrow")
    make_files(tmp_path)
    rows = np.loadtxt(tmp_path / "rows.svm", dtype=str, usecols=range(1, 5))
    (tmp_path / "rows.csv").write_text("".join(",".join(v.split(":")[1] for v in row) + "\n" for row in rows))
    return tmp_path


@pytest.mark.parametrize("second_name", ["same", "hard link", "symbolic link"])
@pytest.mark.parametrize("first", ["m.asvm", "rows.csv"])
def test_score_dataset_keeps_models_and_inputs(scored, first, second_name):
    output = SECOND_NAMES[second_name](scored / first, scored / "second.csv")
    before = content_of(scored)
    for model in (scored / "m.asvm", {"a": os.fspath(scored / "m.asvm")}):
        with pytest.raises(
            InputError, match=rf"output {output} is the same file as \w+ .*{first}, which would be lost"
        ):
            approxsvm.score_dataset(model, scored / "rows.csv", output, output_format="csv")
    assert content_of(scored) == before


@pytest.mark.filterwarnings("ignore::approxsvm.errors.ColumnsByPositionWarning")
def test_parts_keep_models_inputs_and_each_other(scored):
    """Unanswered inputs, and leftovers from an earlier run that are to be replaced, are also checked."""
    inputs, answers = scored / "in", scored / "answers"
    inputs.mkdir()
    for name in ("a.csv", "b.csv"):
        (inputs / name).write_bytes((scored / "rows.csv").read_bytes())
    approxsvm.score_dataset(scored / "m.asvm", inputs, answers, output_format="csv")
    for name in ("a.csv", "b.csv"):
        os.utime(inputs / name, ns=(2**62, 2**62))  # newer than its part

    def refused(message: str) -> None:
        before = content_of(scored)
        with pytest.raises(InputError, match=message):
            approxsvm.score_dataset(scored / "m.asvm", inputs, answers, output_format="csv")
        assert content_of(scored) == before

    for there, message in (
        (scored / "m.asvm", "answers/a.csv is the same file as model .*m.asvm, which would be lost"),
        (inputs / "b.csv", "answers/a.csv is the same file as input .*in/b.csv, which would be lost"),
        (answers / "b.csv", "answers/b.csv is the same file as output .*answers/a.csv, which is also written"),
    ):
        (answers / "a.csv").unlink()
        (answers / "a.csv").symlink_to(there)
        refused(message)


def test_standard_output_may_be_an_input(scored, monkeypatch):
    """`score m rows.csv -o - >> rows.csv` would read its own output forever."""
    with (scored / "rows.csv").open("a") as rows:
        monkeypatch.setattr(sys, "stdout", rows)
        with pytest.raises(InputError, match=r"standard output is the same file as input .*rows.csv"):
            approxsvm.score_dataset(scored / "m.asvm", scored / "rows.csv", "-")


# --- the native command


@needs_tool
@pytest.mark.parametrize("second_name", SECOND_NAMES)
@pytest.mark.parametrize("name", ["test_file", "model_file"])
def test_predictions_are_not_written_over_what_they_come_from(files: Files, name: str, second_name: str) -> None:
    (files.folder / "folder").mkdir()
    files.save_rows()
    first = files.data if name == "test_file" else files.model
    output = SECOND_NAMES[second_name](first, files.folder / "second")
    before = content_of(files.folder)
    for options in ((), ("-q",)):
        assert failure(*options, files.data, files.model, output) == (
            f"output_file {output} is the same file as {name} {first}, which would be lost"
        )
    assert content_of(files.folder) == before
    predict(files.data, files.model, "/dev/null")


@needs_tool
def test_a_model_file_of_libsvm_is_kept_too(files: Files) -> None:
    model = files.folder / "m.model"
    model.write_bytes((GOLDEN / "breast_cancer.model").read_bytes())
    assert "is the same file as model_file" in failure(GOLDEN / "breast_cancer.t", model, model)
    assert model.read_bytes() == (GOLDEN / "breast_cancer.model").read_bytes()

"""The output of approxsvm-predict, and the files left after an error."""

from __future__ import annotations

import os
import stat
import subprocess
import threading
from pathlib import Path

import pytest
from predict_tool import ERROR, TOOL, Files, accuracy_line, failure, needs_tool, predict

pytestmark = needs_tool


def test_the_output_replaces_a_file_keeps_its_mode_and_leaves_nothing_else(files: Files) -> None:
    files.save_rows()
    files.output.write_text("earlier, and longer than what comes now\n" * 50)
    files.output.chmod(0o640)
    names = files.names()
    predict(*files.arguments)
    assert set(files.output.read_text().split()) == {"1", "-1"}
    assert stat.S_IMODE(files.output.stat().st_mode) == 0o640
    assert files.names() == names


def test_a_link_and_a_second_name_stay_what_they_are(files: Files) -> None:
    files.save_rows()
    predict(*files.arguments)
    expected = files.output.read_bytes()
    link, other = files.folder / "link", files.folder / "other"
    other.write_text("earlier" * 100)
    link.symlink_to(other)
    predict(files.data, files.model, link)
    assert link.is_symlink()
    assert other.read_bytes() == expected
    other.write_text("earlier")
    (files.folder / "twin").hardlink_to(other)
    predict(files.data, files.model, other)
    assert (files.folder / "twin").read_bytes() == expected


def test_devices_and_pipes_are_written_to_directly(files: Files) -> None:
    fast, rows, targets = files.save_rows()
    predicted = fast.predict(rows)
    lines = "".join(f"{label}\n" for label in predicted)
    closing = accuracy_line(predicted, targets)
    assert predict(files.data, files.model, "/dev/stdout") == lines + closing
    assert predict(files.data, files.model, "/dev/null") == closing
    assert Path("/dev/null").is_char_device()
    assert Path("/dev/stdout").is_symlink()

    fifo = files.folder / "fifo"
    os.mkfifo(fifo)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(fifo.read_text()))
    reader.start()
    assert predict(files.data, files.model, fifo) == closing
    reader.join(timeout=60)
    assert read == [lines]
    assert fifo.is_fifo()


def test_standard_output_that_is_a_file_gets_the_closing_line_last(files: Files) -> None:
    fast, rows, targets = files.save_rows()
    predicted = fast.predict(rows)
    with files.output.open("w") as output:
        output.write("before\n")
        output.flush()
        subprocess.run([TOOL, files.data, files.model, "/dev/stdout"], stdout=output, timeout=60, check=True)
    lines = "".join(f"{label}\n" for label in predicted)
    assert files.output.read_text() == "before\n" + lines + accuracy_line(predicted, targets)


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("option", ["-b 0", "-q"])
def test_closed_standard_streams_change_no_output(files: Files, closed: tuple[int, ...], option: str) -> None:
    """The output file gets a closed stream's descriptor number; a summary line that cannot be printed is an error."""
    fast, rows, targets = files.save_rows()
    closings = " ".join(f"{number}>&-" for number in closed)
    command = ["sh", "-c", f'exec "$@" {closings}', "sh", TOOL, *option.split(), *files.arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    predicted = fast.predict(rows)
    assert files.output.read_text() == "".join(f"{label}\n" for label in predicted)
    closing = "" if option == "-q" else accuracy_line(predicted, targets)
    fails = closing != "" and 1 in closed
    assert done.returncode == fails
    assert done.stdout == ("" if fails else closing)
    assert done.stderr == (f"{ERROR}standard output: Bad file descriptor\n" if fails and 2 not in closed else "")


def test_data_may_come_from_a_pipe(files: Files) -> None:
    files.save_rows()
    expected = predict(*files.arguments)
    command = [TOOL, "/dev/stdin", files.model, files.output]
    done = subprocess.run(command, input=files.data.read_bytes(), capture_output=True, timeout=60, check=True)
    assert done.stdout.decode() == expected


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_an_error(files: Files) -> None:
    files.save_rows()
    assert failure(files.data, files.model, "/dev/full") == "/dev/full: No space left on device"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([TOOL, *files.arguments], stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (1, b"approxsvm-predict: standard output: No space left on device\n")


def test_a_file_that_cannot_be_finished_is_taken_away(files: Files) -> None:
    files.save_rows()
    files.output.write_text("earlier")
    names = files.names()
    # Because the signal is ignored, the write itself fails.
    limited = ["sh", "-c", 'trap "" XFSZ; ulimit -f 0; exec "$@"', "sh", TOOL, *files.arguments]
    done = subprocess.run(limited, stderr=subprocess.PIPE, timeout=60, check=False)
    assert (done.returncode, done.stderr.decode()) == (1, f"{ERROR}{files.output}: File too large\n")
    assert files.names() == names
    assert files.output.read_text() == "earlier"


def test_an_output_that_cannot_be_made_is_named(files: Files) -> None:
    files.save_rows()
    nowhere = files.folder / "nowhere" / "out"
    assert failure(files.data, files.model, nowhere) == f"{nowhere}: No such file or directory"
    assert failure(files.data, files.model, files.folder) == f"{files.folder}: Is a directory"

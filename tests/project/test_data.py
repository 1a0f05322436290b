"""Data sets from a local server (complete, interrupted or wrong), and synthetic ones."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import click
import numpy as np
import pytest
from click.testing import CliRunner
from conftest import REPOSITORY
from sklearn.datasets import load_svmlight_file

sys.path.append(str(REPOSITORY))  # benchmarks are not part of the package

import approxsvm
from benchmarks import data
from benchmarks.data import downloaded, fetch
from benchmarks.data_table import Entry, entries, hash_of_numbers
from benchmarks.experiment import STAND_INS, Experiment, Run

TEXT = b"".join(f"{(-1) ** i} 1:{i / 7:.6g} 3:{i}\n".encode() for i in range(1, 400))


@dataclass
class Server:
    """Its files, how often it disconnects in the middle of a response, and the requests that it received."""

    files: dict[str, bytes]
    breaks: int = 0
    refusals: int = 0
    knows_ranges: bool = True
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    url: str = ""


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server({})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            state.asked.append((self.path, wanted))
            if state.refusals:
                state.refusals -= 1
                return self.send_error(503)
            content = state.files.get(self.path)
            if content is None:
                return self.send_error(404)
            first = int(wanted[6:-1]) if wanted and state.knows_ranges else 0
            if first and first >= len(content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                return self.end_headers()
            self.send_response(206 if first else 200)
            self.send_header("Content-Length", str(len(content) - first))
            self.end_headers()
            rest = content[first:]
            if state.breaks:
                state.breaks -= 1
                rest = rest[: len(rest) // 2]
            self.wfile.write(rest)
            return None

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        state.url = f"http://127.0.0.1:{listening.server_port}"
        thread = Thread(target=listening.serve_forever)
        thread.start()
        yield state
        listening.shutdown()
        thread.join()


def entry(*sources: list[str], content: bytes = TEXT, **about: object) -> Entry:
    known = {"file": "some.bz2", "sha256": hashlib.sha256(content).hexdigest(), "sources": list(sources)}
    return Entry("data", known | about)


def test_a_download_is_taken_up_where_it_ended(server: Server, tmp_path: Path) -> None:
    server.files, server.breaks, server.refusals = {"/a": TEXT}, 2, 1
    path = downloaded(f"{server.url}/a", tmp_path, pause_seconds=0.01)
    assert path.read_bytes() == TEXT
    starts = [int(wanted[6:-1]) if wanted else 0 for _, wanted in server.asked]
    assert starts == [0, 0, len(TEXT) // 2, len(TEXT) // 2 + (len(TEXT) - len(TEXT) // 2) // 2]


def test_a_server_without_ranges_sends_all_of_it_again(server: Server, tmp_path: Path) -> None:
    server.files, server.breaks, server.knows_ranges = {"/a": TEXT}, 1, False
    assert downloaded(f"{server.url}/a", tmp_path, pause_seconds=0.01).read_bytes() == TEXT


def test_a_part_that_is_whole_already(server: Server, tmp_path: Path) -> None:
    server.files = {"/a": TEXT}
    path = downloaded(f"{server.url}/a", tmp_path)
    path.rename(f"{path}.part")
    assert downloaded(f"{server.url}/a", tmp_path).read_bytes() == TEXT
    assert server.asked[-1][1] == f"bytes={len(TEXT)}-"


def test_what_is_not_there_is_asked_for_once(server: Server, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="404"):
        downloaded(f"{server.url}/nothing", tmp_path)
    assert len(server.asked) == 1


def test_pieces_and_other_sources(server: Server, tmp_path: Path) -> None:
    half = TEXT.index(b"\n", len(TEXT) // 2) + 1
    server.files = {"/page/one.bz2": bz2.compress(TEXT[:half]), "/two.gz": gzip.compress(TEXT[half:])}
    parts = ["https://nowhere.invalid/page/one.bz2"], ["https://nowhere.invalid/gone", "https://nowhere.invalid/two.gz"]
    fetch(entry(*parts), tmp_path, server.url)
    assert bz2.decompress((tmp_path / "data" / "some.bz2").read_bytes()) == TEXT
    assert not list((tmp_path / "downloads").iterdir())


def test_the_same_numbers_in_another_text(server: Server, tmp_path: Path) -> None:
    other = TEXT.replace(b"-1 ", b"-1.0 ").replace(b"\n", b" \r\n").replace(b"3:1 ", b"2:0 3:1.000 ")
    server.files = {"/a": other}
    fetch(entry(["http://x/a"], numbers=hash_of_numbers(TEXT)), tmp_path, server.url)
    assert (tmp_path / "data" / "some.bz2").exists()


def test_another_content_is_refused(server: Server, tmp_path: Path) -> None:
    server.files = {"/a": TEXT.replace(b"3:17\n", b"3:18\n")}
    with pytest.raises(click.ClickException, match="not kept"):
        fetch(entry(["http://x/a"], numbers=hash_of_numbers(TEXT)), tmp_path, server.url)
    assert not (tmp_path / "data").exists()


def test_usps_is_written_as_libsvm_reads_it(server: Server, tmp_path: Path) -> None:
    server.files = {"/zip.train.gz": gzip.compress(b"6.0000 -1.0000 0.0000 0.1250\n5.0000 0.5000 0.2500 -1.0000\n")}
    expected = b"7 1:-1 3:0.125\n6 1:0.5 2:0.25 3:-1\n"
    fetch(entry(["http://x/zip.train.gz"], content=expected), tmp_path, server.url)
    assert bz2.decompress((tmp_path / "data" / "some.bz2").read_bytes()) == expected


def test_the_table_is_listed_and_complete() -> None:
    listed = CliRunner().invoke(data.main).output
    for name, known in entries().items():
        assert f" {name} " in listed
        assert known.about["sha256"] in listed
        assert known.folder == "models" or all(known.about["sources"])
    assert "svm-train -m 3000 -c 1 -g 0.01 a9a a9a_g0.01.model" in listed
    unknown = CliRunner().invoke(data.main, ["nothing"])
    assert (unknown.exit_code, "nothing" in unknown.output) == (1, True)


def test_stand_ins_have_the_shapes_of_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APPROXSVM_DATA", str(tmp_path / "made"))
    names = ["heart_scale", "svmguide2", "phishing", "abalone_scale"]
    made = CliRunner().invoke(data.main, ["--synthetic", *names])
    assert made.exit_code == 0, made.output
    for name in names:
        known = entries()[name]
        X, y = load_svmlight_file(str(known.path(tmp_path / "made")), n_features=known.about["features"])
        assert X.shape == (known.about["rows"], known.about["features"])
        assert X.nnz / X.shape[0] == pytest.approx(known.about["nonzeros"], rel=0.1)
        assert set(y) == set(known.about["labels"]) or not known.about["labels"]
        assert np.isfinite(X.data).all()
    again = CliRunner().invoke(data.main, ["german.numer_scale"])
    assert (again.exit_code, "contains stand-ins" in again.output) == (1, True)


def test_stand_ins_do_not_mix_with_real_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APPROXSVM_DATA", str(tmp_path))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "heart_scale.bz2").write_bytes(b"")
    refused = CliRunner().invoke(data.main, ["--synthetic", "heart_scale"])
    assert (refused.exit_code, "real data" in refused.output) == (1, True)
    assert not (tmp_path / STAND_INS).exists()


def test_a_benchmark_without_data_says_what_brings_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from benchmarks.problems import read_text

    def measure(run: Run, name: str) -> Iterator[tuple[str, dict[str, int]]]:
        X, _ = read_text(run.data, name)
        yield "rows", {"n": len(X)}

    monkeypatch.setenv("APPROXSVM_DATA", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["try", "--results", str(tmp_path / "results")])
    with pytest.raises(SystemExit) as ended:
        Experiment("try", None, measure, {"heart_scale": "heart_scale"}).main()
    assert ended.value.code == 1
    assert "python -m benchmarks.data heart_scale fetches it" in capsys.readouterr().err
    assert not (tmp_path / "results").exists()


def test_a_model_is_trained_by_the_command_that_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("libsvm", reason="LIBSVM is not installed; it is part of the test extra")
    monkeypatch.setenv("PATH", str(tmp_path))  # without svm-train
    entry().write(tmp_path, TEXT)
    about = {"file": "some.model.xz", "data": "some", "options": "-c 2 -g 0.5", "vectors": 1, "sha256": ""}
    data.train(Entry("models", about), tmp_path)
    said = capsys.readouterr().out
    assert said.startswith("$ svm-train -m 3000 -c 2 -g 0.5 some some.model\n")
    assert "not those of the table" in said
    (tmp_path / "some.model").write_bytes(lzma.decompress((tmp_path / "models" / "some.model.xz").read_bytes()))
    model = approxsvm.read_libsvm_model(tmp_path / "some.model")
    assert model.gamma == 0.5
    assert f"{model.n_sv} support vectors" in said

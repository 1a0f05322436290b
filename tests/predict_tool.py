"""Code shared by tests of approxsvm-predict: running it, models, rows and LIBSVM's commands.

APPROXSVM_PREDICT selects another build of the command, for example one with sanitizers.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_array

import approxsvm
from approxsvm import KernelModel

TOOL = Path(os.environ.get("APPROXSVM_PREDICT", Path(sysconfig.get_path("scripts")) / "approxsvm-predict"))
needs_tool = pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} was not built")

Mode = Literal["approximate", "certified", "exact"]
MODES: tuple[Mode, ...] = ("approximate", "certified", "exact")
EVERY_MODE = pytest.mark.parametrize("mode", MODES)
N_FEATURES = 9
ERROR = "approxsvm-predict: "


def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(TOOL), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )


def predict(*arguments: object, **environment: str) -> str:
    """Run the command, which must succeed and print nothing to stderr; return its output."""
    done = run(*arguments, **environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def failure(*arguments: object, **environment: str) -> str:
    """Run the command, which must fail with one line on stderr; return the line without the program's name."""
    done = run(*arguments, **environment)
    assert done.returncode == 1
    assert done.stderr.startswith(ERROR)
    assert done.stderr.index("\n") == len(done.stderr) - 1
    return done.stderr[len(ERROR) : -1]


def kernel_model(task: Any = "classification", labels: Any = (1, -1), **changes: Any) -> KernelModel:
    rng = np.random.default_rng(5)
    n_sv = 40
    arguments: dict[str, Any] = {
        "task": task,
        "support_vectors": rng.normal(size=(n_sv, N_FEATURES)),
        "dual_coef": rng.normal(size=(1, n_sv)),
        "intercept": np.array([0.01]),
        "gamma": 0.02,
    }
    if task == "classification":
        arguments |= {"labels": np.array(labels), "n_support": np.array([n_sv // 2, n_sv // 2])}
    return KernelModel(**(arguments | changes))


def random_rows(n_rows: int, seed: int = 0) -> Any:
    """Return rows from empty to dense, so that both ways of evaluating a sparse row are used."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, N_FEATURES))
    rows[rng.random(rows.shape) > rng.random((n_rows, 1))] = 0.0
    return csr_array(rows)


def libsvm_text(targets: Iterable[object], rows: Any, first_index: int = 1, line_break: str = "\n") -> str:
    lines = []
    for i, target in enumerate(targets):
        part = slice(rows.indptr[i], rows.indptr[i + 1])
        pairs = zip((rows.indices[part] + first_index).tolist(), rows.data[part].tolist(), strict=True)
        lines.append(" ".join([str(target), *(f"{index}:{value!r}" for index, value in pairs)]))
    return "".join(line + line_break for line in lines)


def shown(number: float) -> str:
    return f"{number:.17g}"


def accuracy_line(predicted: npt.NDArray[Any], targets: npt.NDArray[Any]) -> str:
    correct, total = int(np.sum(predicted == targets)), len(targets)
    return f"Accuracy = {correct / total * 100:g}% ({correct}/{total}) (classification)\n"


def regression_lines(predicted: Iterable[float], targets: Iterable[float]) -> str:
    """Return the summary lines by svm-predict's formulas, with sums in row order."""
    n, error, p, t, pp, tt, pt = 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for x, y in zip(predicted, targets, strict=True):
        n, error, p, t = n + 1, error + (x - y) * (x - y), p + x, t + y
        pp, tt, pt = pp + x * x, tt + y * y, pt + x * y
    correlation = ((n * pt - p * t) * (n * pt - p * t)) / ((n * pp - p * p) * (n * tt - t * t))
    return (
        f"Mean squared error = {error / n:g} (regression)\n"
        f"Squared correlation coefficient = {correlation:g} (regression)\n"
    )


class Files:
    """A model, a data file and an output path in a folder that contains nothing else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data, self.model, self.output = folder / "rows.t", folder / "m.asvm", folder / "out"

    @property
    def arguments(self) -> tuple[Path, Path, Path]:
        return self.data, self.model, self.output

    def save(self, model: KernelModel, text: str | bytes, mode: Mode = "certified") -> Any:
        self.data.write_bytes(text if isinstance(text, bytes) else text.encode())
        fast = approxsvm.compile(model, mode=mode)
        fast.save(self.model)
        return fast

    def save_rows(self, n_rows: int = 50, mode: Mode = "certified", **model: Any) -> tuple[Any, Any, npt.NDArray[Any]]:
        """Save a model, and rows whose targets are the predictions, except in the first quarter."""
        rows = random_rows(n_rows)
        fast = approxsvm.compile(kernel_model(**model), mode=mode)
        targets = fast.predict(rows)
        targets[: n_rows // 4] = targets[0]
        self.save(kernel_model(**model), libsvm_text(targets.tolist(), rows), mode)
        return fast, rows, targets

    def names(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}


class Libsvm:
    """LIBSVM's own commands, run on the same files as ours."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self.programs = [shutil.which(name) for name in ("svm-train", "svm-predict")]

    def run(self, program: int, *arguments: object) -> subprocess.CompletedProcess[str]:
        command = self.programs[program]
        if command is None:
            pytest.skip("svm-train and svm-predict are not on PATH")
        return subprocess.run([command, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)

    def train(self, options: str, text: str) -> Path:
        path, model = self.files.folder / "train", self.files.folder / "m.model"
        path.write_text(text)
        self.run(0, "-q", "-t", "2", *options.split(), path, model).check_returncode()
        return model

    def check(self, model: Path, *options: object, compiled: Path | None = None, **environment: str) -> bytes:
        """Assert that, with any number of threads, output and file equal svm-predict's; return the file's contents.

        The command gets `compiled`, if given, instead of the model.
        """
        theirs = self.files.folder / "theirs"
        done = self.run(1, *options, self.files.data, model, theirs)
        done.check_returncode()
        for n_threads in (1, 5):
            ours = self.files.data, compiled or model, self.files.output
            said = predict("-j", n_threads, *options, *ours, **environment)
            assert (said, self.files.output.read_bytes()) == (done.stdout, theirs.read_bytes())
        return theirs.read_bytes()

    def check_refusal(self, model: Path, *options: object) -> str:
        """Assert that both commands fail, and return their messages."""
        done = self.run(1, *options, self.files.data, model, self.files.folder / "theirs")
        assert done.returncode == 1
        self.files.output.unlink(missing_ok=True)
        why = failure(*options, self.files.data, model, self.files.output)
        assert not self.files.output.exists()
        return f"{why}\n{done.stderr}"


def training_text(labels: tuple[int, ...] | None, first_index: int = 1, n_rows: int = 120) -> str:
    rng = np.random.default_rng(4)
    targets = rng.normal(size=n_rows) if labels is None else rng.choice(labels, size=n_rows)
    return libsvm_text(targets.tolist(), random_rows(n_rows, seed=3), first_index)


def hard_text(labels: tuple[int, ...], n_rows: int = 700) -> str:
    """Return rows from empty to dense, with several unknown features before and after the known ones."""
    rng = np.random.default_rng(6)
    rows, targets = random_rows(n_rows, seed=8), rng.choice(labels, size=n_rows).tolist()
    lines = libsvm_text(targets, rows).splitlines()
    for i in range(0, n_rows, 3):
        label, *pairs = lines[i].split(" ")
        before = ["0:0.3"] if i % 2 else []
        behind = [f"{index}:{rng.normal():.5g}" for index in (15, 16, 77, 2_000_000_001)]
        lines[i] = " ".join([label, *before, *pairs, *behind])
    lines[5:5] = [str(targets[0]), f"{targets[0]} 3:0 4:-0", f"{targets[0]} 2:1e200", f"{targets[0]} 9:1e-300"]
    return "\n".join(lines) + "\n"


MODEL_TEXT = """svm_type c_svc
kernel_type rbf
gamma 0.5
nr_class 2
total_sv 4
rho 0
label 3 5
nr_sv 2 2
SV
1 1:0.1
0.5 2:0.3 3:0.7
-1 2:0.1
-0.5 1:0.3 3:0.7
"""
SVR_TEXT = MODEL_TEXT.replace("c_svc", "nu_svr").replace("label 3 5\nnr_sv 2 2\n", "")

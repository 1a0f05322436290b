"""Exported C headers on emulated microcontrollers: bytes, instructions per row, and agreement with a PC.

Needs gcc; for ARM gcc-arm-none-eabi, libnewlib-arm-none-eabi and qemu-system-arm; for RISC-V gcc-riscv64-unknown-elf,
picolibc-riscv64-unknown-elf and qemu-system-misc. There are two models: a three-class SVC on 8 features (abalone, with
at most 8, 9 or 10, and more than 10 rings), and a pipeline of StandardScaler and SVC on 30 features (breast cancer).
Each is exported with float32, int16 and int8 coefficients for float32 rows, and with int16 and int8 coefficients for
rows of the same type. The rows are taken from the data; if more are needed, copies are added, with noise of a tenth of
each feature's standard deviation.

Only instructions are counted: qemu does not model cycles, flash wait states, or the time of a division.
tests/microcontrollers.py lists the processors and machines. Every answer must be bit-identical to the header's on this
machine, and every certified label must equal the exact model's; otherwise the run ends.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import approxsvm
from benchmarks.experiment import Experiment, Rows, Run, WrongAnswerError, demand_labels, number
from benchmarks.problems import read_text

sys.path.append(str(Path(__file__).parent.parent / "tests"))
from microcontrollers import BOARDS, Board

_PROGRAM = Path(__file__).with_suffix(".c")
# Types of coefficients and rows.
_KINDS = (("float32", "float32"), ("int16", "float32"), ("int8", "float32"), ("int16", "int16"), ("int8", "int8"))
_MODELS = ("8 features, 3 classes", "30-feature pipeline")
_CASES = {f"{model}, {kind}, {rows}": (model, kind, rows) for model in _MODELS for kind, rows in _KINDS}


def _source(name: str, run: Run) -> tuple[Any, npt.NDArray[np.float64]]:
    """Return a fitted model and the rows of its data."""
    if name == "30-feature pipeline":
        X, y = load_breast_cancer(return_X_y=True)
        return make_pipeline(StandardScaler(), SVC(gamma=0.01)).fit(X, y), X
    X, rings = read_text(run.data, "abalone_scale", 8)
    return SVC(gamma=0.1).fit(X, np.digitize(rings, [8.5, 10.5])), X


def _more_rows(X: Any, n_rows: int) -> npt.NDArray[np.float32]:
    """Return the first rows, supplemented by noisy copies if there are too few."""
    rng = np.random.default_rng(0)
    copies = X[rng.integers(0, len(X), max(n_rows - len(X), 0))]
    return np.concatenate([X, copies + 0.1 * X.std(axis=0) * rng.normal(size=copies.shape)])[:n_rows].astype(np.float32)


def measure(run: Run, case: tuple[str, Any, Any]) -> Rows:
    """Measure one model with the given coefficient and row types, on every board."""
    name, kind, inputs = case
    source, X = _source(name, run)
    compiled = approxsvm.compile(source, X, mode="approximate", degree=2)
    rows = _more_rows(X, run.options.rows)
    n_values = int(compiled.artifact.header["n_decisions"])
    defined = () if inputs == "float32" else (f"-DCODES={inputs}_t",)
    with tempfile.TemporaryDirectory(dir=run.scratch) as temporary:
        folder = Path(temporary)
        cost = compiled.export_c(folder / "m.h", name="m", coefficients=kind, inputs=inputs, X=rows)
        shutil.copy(_PROGRAM, folder / "main.c")
        (folder / "rows.bin").write_bytes(rows.tobytes())
        _in_folder(folder, "gcc", "-std=c99", "-O2", "-ffp-contract=off", *defined, "-o", "program", "main.c")
        _in_folder(folder, "./program")
        host = _answers(folder, n_values)
        certain = host["label"] >= 0
        exact = source.predict(rows.astype(np.float64))
        demand_labels(f"{name}: certain", compiled.artifact.labels[host["label"]], exact, certain)
        about = {"model": name, "coefficients": kind, "rows": inputs, "constant_bytes": cost.flash_bytes}
        for board in (board for board in BOARDS.values() if all(map(shutil.which, board.tools))):
            for optimize in ("-Os", "-O2"):
                flags = (optimize, *defined)
                size, stack = _linked_bytes(folder, board, flags), _stack_bytes(folder, board, flags)
                _in_folder(folder, *board.link(*flags, "-I.", "-o", "program.elf", "main.c"))
                _in_folder(folder, *board.run("program.elf"))
                answers = _answers(folder, n_values)
                if any(not np.array_equal(answers[field], host[field]) for field in ("label", "values", "bounds")):
                    raise WrongAnswerError(f"{board.name} disagrees with the host")
                row = {
                    **about,
                    "certified": certain.mean(),
                    "processor": board.name,
                    "flags": optimize,
                    "code_and_constant_bytes": size,
                    "stack_bytes": stack,
                    "instructions_per_row": answers["spent"].mean(),
                    "rows_that_agree": len(answers),
                }
                yield "headers", row


def _in_folder(folder: Path, *command: str) -> str:
    """Run a command in a folder and return its output."""
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=900).stdout


def _answers(folder: Path, n_values: int) -> Any:
    """Read the program's output, one record per row."""
    number = ("<f4", (n_values,))
    layout = [("label", "<i4"), ("values", *number), ("bounds", *number), ("spent", "<u4")]
    return np.fromfile(folder / "answers.bin", np.dtype(layout))


def _linked_bytes(folder: Path, board: Board, flags: tuple[str, ...]) -> int:
    """Return the bytes of code and constants in m_predict_if_certain, including the compiler-library code it uses."""
    alone = ("-DDECIDE", "-nostartfiles", "-nodefaultlibs", "-ffunction-sections", "-Wl,--gc-sections,-edecide")
    _in_folder(folder, *board.compile(*flags, *alone, "-o", "decide.elf", "main.c", "-lgcc"))
    lines = _in_folder(folder, f"{board.prefix}-size", "-A", "decide.elf").splitlines()
    sizes = {words[0]: int(words[1]) for words in map(str.split, lines) if len(words) == 3 and words[1].isdigit()}
    assert sum(size for name, size in sizes.items() if name.startswith((".data", ".bss", ".sdata", ".sbss"))) == 0
    return sum(size for name, size in sizes.items() if name.startswith((".text", ".rodata", ".srodata")))


def _stack_bytes(folder: Path, board: Board, flags: tuple[str, ...]) -> int:
    """Return the sum of the sizes of all functions' stack frames, as if each function called the next."""
    _in_folder(folder, *board.compile(*flags, "-DDECIDE", "-fstack-usage", "-c", "-o", "decide.o", "main.c"))
    usage = (folder / "decide.su").read_text().splitlines()
    return sum(int(line.split("\t")[1]) for line in usage)


EXPERIMENT = Experiment("microcontrollers", __doc__, measure, _CASES, [number("--rows", 10_000)])

if __name__ == "__main__":
    EXPERIMENT.main()

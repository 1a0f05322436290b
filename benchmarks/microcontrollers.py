"""Exported C headers on emulated microcontrollers: bytes, instructions per row, and whether they agree with the host.

    python -m benchmarks.microcontrollers [--rows N]

Needs gcc; for ARM gcc-arm-none-eabi, libnewlib-arm-none-eabi and qemu-system-arm; for RISC-V gcc-riscv64-unknown-elf,
picolibc-riscv64-unknown-elf and qemu-system-misc. Two models, each with coefficients, and then rows, too, as float32,
int16 and int8: three classes of 8 features (abalone: rings up to 8, 9 and 10, more), and a pipeline of a StandardScaler
and an SVC over 30 features (breast cancer). Rows are those of the data and as many more as are wanted, with noise of a
tenth of each feature's spread.

What is counted is instructions: qemu knows nothing of cycles, wait states of flash, or how long a division takes.
tests/boards.py says which processors and machines. Every answer must be the host's, bit for bit, and every certain
label the exact model's, or the run ends.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
from sklearn.datasets import load_breast_cancer, load_svmlight_file
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import approxsvm
from benchmarks.problems import data_folder
from benchmarks.record import Record, results_option

sys.path.append(str(Path(__file__).parent.parent / "tests"))
from boards import BOARDS, Board

# Coefficients and rows.
KINDS = (("float32", "float32"), ("int16", "float32"), ("int8", "float32"), ("int16", "int16"), ("int8", "int8"))
MAIN = r"""
#include "m.h"
#include <stdio.h>
#include <string.h>
#if defined(__arm__)
uint32_t instructions_since_last_call(void);
#elif defined(__riscv)
static uint32_t instructions_since_last_call(void) {
    static uint32_t last;
    uint32_t now, passed;
    __asm volatile(".option push\n.option arch, +zicsr\ncsrr %0, minstret\n.option pop" : "=r"(now));
    passed = now - last;
    last = now;
    return passed;
}
#else
static uint32_t instructions_since_last_call(void) { return 0; }
#endif
#if defined(CODES)
#define QUANTIZE(numbers, row) m_quantize(numbers, row)
#else
#define CODES float
#define QUANTIZE(numbers, row) memcpy(row, numbers, sizeof(numbers))
#endif
int main(void) {
    FILE *const rows = fopen("rows.bin", "rb"), *const answers = fopen("answers.bin", "wb");
    static float numbers[m_n_features], values[m_n_values], bounds[m_n_values];
    static CODES row[m_n_features];
    while (fread(numbers, sizeof numbers, 1, rows) == 1) {
        int label;
        uint32_t spent;
        QUANTIZE(numbers, row);
        instructions_since_last_call();
        label = m_predict_if_certain(row);
        spent = instructions_since_last_call();
        m_decision_values(row, values);
        m_error_bounds(row, bounds);
        fwrite(&label, sizeof label, 1, answers);
        fwrite(values, sizeof values, 1, answers);
        fwrite(bounds, sizeof bounds, 1, answers);
        fwrite(&spent, sizeof spent, 1, answers);
    }
    return fclose(answers);
}
"""
DECIDE = """
#include "m.h"
#if !defined(CODES)
#define CODES float
#endif
int decide(const CODES row[]);
int decide(const CODES row[]) { return m_predict_if_certain(row); }
"""


def in_folder(folder: Path, *command: str) -> str:
    """Run a command there; what it prints."""
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=900).stdout


def answers(folder: Path, n_values: int) -> Any:
    """What the program has written, a record for each row."""
    number = ("<f4", (n_values,))
    layout = [("label", "<i4"), ("values", *number), ("bounds", *number), ("spent", "<u4")]
    return np.fromfile(folder / "answers.bin", np.dtype(layout))


def linked_bytes(folder: Path, board: Board, flags: tuple[str, ...]) -> int:
    """Code and constants of m_predict_if_certain alone, with what it takes of the compiler's own library."""
    (folder / "decide.c").write_text(DECIDE)
    alone = ("-nostartfiles", "-nodefaultlibs", "-ffunction-sections", "-Wl,--gc-sections,-edecide")
    in_folder(folder, *board.compile(*flags, *alone, "-o", "decide.elf", "decide.c", "-lgcc"))
    lines = in_folder(folder, f"{board.prefix}-size", "-A", "decide.elf").splitlines()
    sizes = {words[0]: int(words[1]) for words in map(str.split, lines) if len(words) == 3 and words[1].isdigit()}
    assert sum(size for name, size in sizes.items() if name.startswith((".data", ".bss", ".sdata", ".sbss"))) == 0
    return sum(size for name, size in sizes.items() if name.startswith((".text", ".rodata", ".srodata")))


def stack_bytes(folder: Path, board: Board, flags: tuple[str, ...]) -> int:
    """The frames of all functions together, as if each called the next."""
    in_folder(folder, *board.compile(*flags, "-fstack-usage", "-c", "-o", "decide.o", "decide.c"))
    usage = next(folder.glob("*.su")).read_text().splitlines()
    return sum(int(line.split("\t")[1]) for line in usage)


def emulate(folder: Path, board: Board, flags: tuple[str, ...]) -> None:
    """Build and run the program on the board; it writes answers.bin."""
    in_folder(folder, *board.link(*flags, "-I.", "-o", "program.elf", "main.c"))
    in_folder(folder, *board.run("program.elf"))


def models(folder: Path) -> Iterator[tuple[str, Any, Any, Any]]:
    """Name, the source, the compiled model and the rows of its data."""
    X, rings = load_svmlight_file(str(folder / "abalone_scale.bz2"), n_features=8)
    X = X.toarray()
    classes = SVC(gamma=0.1).fit(X, np.digitize(rings, [8.5, 10.5]))
    yield "8 features, 3 classes", classes, approxsvm.compile(classes, X, mode="approximate", degree=2), X
    X, y = load_breast_cancer(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), SVC(gamma=0.01)).fit(X, y)
    yield "30-feature pipeline", pipeline, approxsvm.compile(pipeline, X, mode="approximate", degree=2), X


def more_rows(X: Any, n_rows: int) -> Any:
    """The first rows, and noisy copies where there are too few."""
    rng = np.random.default_rng(0)
    copies = X[rng.integers(0, len(X), max(n_rows - len(X), 0))]
    return np.concatenate([X, copies + 0.1 * X.std(axis=0) * rng.normal(size=copies.shape)])[:n_rows].astype(np.float32)


@click.command()
@click.option("--rows", "n_rows", default=10_000, show_default=True)
@results_option
def main(n_rows: int, results: Path) -> None:
    """Measure both models, with every type of coefficients."""
    folder = data_folder()
    if folder is None:
        return
    boards = [board for board in BOARDS.values() if all(map(shutil.which, board.tools))]
    record = Record.begin("microcontrollers")
    for name, source, compiled, data in models(folder):
        rows, labels = more_rows(data, n_rows), compiled.artifact.labels
        exact = source.predict(rows.astype(np.float64))
        n_values = int(compiled.artifact.header["n_decisions"])
        for kind, inputs in KINDS:
            defined = () if inputs == "float32" else (f"-DCODES={inputs}_t",)
            with tempfile.TemporaryDirectory() as temporary:
                folder = Path(temporary)
                cost = compiled.export_c(folder / "m.h", name="m", coefficients=kind, inputs=inputs, X=rows)
                (folder / "main.c").write_text(MAIN)
                (folder / "rows.bin").write_bytes(rows.tobytes())
                in_folder(folder, "gcc", "-std=c99", "-O2", "-ffp-contract=off", *defined, "-o", "program", "main.c")
                in_folder(folder, "./program")
                host = answers(folder, n_values)
                certain = host["label"] >= 0
                assert (labels[host["label"][certain]] == exact[certain]).all(), "a certain label is wrong"
                for board in boards:
                    for optimize in ("-Os", "-O2"):
                        flags = (optimize, *defined)
                        size = linked_bytes(folder, board, flags)
                        emulate(folder, board, flags)
                        found = answers(folder, n_values)
                        same = np.ones(len(found), bool)
                        for field in ("label", "values", "bounds"):
                            same &= (found[field] == host[field]).reshape(len(found), -1).all(axis=1)
                        assert len(found) == len(rows), f"{board.name} has stopped early"
                        assert same.all(), f"{board.name} disagrees with the host"
                        record.add(
                            "headers",
                            {
                                "model": name,
                                "coefficients": kind,
                                "rows": inputs,
                                "constant_bytes": cost.flash_bytes,
                                "certified": certain.mean(),
                                "processor": board.name,
                                "flags": optimize,
                                "code_and_constant_bytes": size,
                                "stack_bytes": stack_bytes(folder, board, flags),
                                "instructions_per_row": found["spent"].mean(),
                                "rows_that_agree": int(same.sum()),
                            },
                        )
    record.show()
    record.save(results)


if __name__ == "__main__":
    main()

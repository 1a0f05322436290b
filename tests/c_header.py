"""Exported C headers at work: a program around one, rows in by a file, answers out by another."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wdouble-promotion", "-Werror"]
C99 = ["gcc", "-std=c99", "-O1", "-ffp-contract=off"]
CLASSIFIED = "answer[0] = m_predict(row); answer[1] = m_predict_if_certain(row); answer[2] = m_is_certain(row);"
REGRESSED = """union { float value; int bits; } same;
            same.value = m_predict(row);
            answer[0] = same.bits;
            answer[2] = m_is_certain(row);"""
DIRECTLY = """const float *const row = numbers;"""
BY_CODES = """static @ROW@ row[m_n_features];
        m_quantize(numbers, row);"""
# Semihosting gives programs on an emulated board the same files.
MAIN = """
#include "m.h"
#include <stdio.h>
int main(void) {
    FILE *const rows = fopen("rows.bin", "rb"), *const answers = fopen("answers.bin", "wb");
    static float numbers[m_n_features], values[m_n_values], bounds[m_n_values];
    if (!rows || !answers) return 1;
    while (fread(numbers, sizeof numbers, 1, rows) == 1) {
        int answer[3] = {0, 0, 0};
        @LOAD@
        m_decision_values(row, values);
        m_error_bounds(row, bounds);
        {
            @ANSWER@
        }
        fwrite(values, sizeof values, 1, answers);
        fwrite(bounds, sizeof bounds, 1, answers);
        fwrite(answer, sizeof answer, 1, answers);
    }
    return fclose(answers);
}
"""


@dataclass(frozen=True, eq=False)
class Answers:
    """What a header says of rows."""

    values: Any  # (n_rows, n_values), float32, as are bounds
    bounds: Any
    predicted: Any  # positions, or values of a regression
    if_certain: Any
    certain: Any


@dataclass(frozen=True, eq=False)
class Program:
    """An exported model, compiled; `run` starts the program in its folder."""

    folder: Path
    task: str
    n_values: int
    run: list[str]

    def answers(self, rows: Any) -> Answers:
        """Answers to float32 rows."""
        (self.folder / "rows.bin").write_bytes(np.ascontiguousarray(rows, np.float32).tobytes())
        subprocess.run(self.run, cwd=self.folder, check=True, timeout=300)
        n = self.n_values
        layout = np.dtype([("values", "<f4", (n,)), ("bounds", "<f4", (n,)), ("answer", "<i4", (3,))])
        found = np.fromfile(self.folder / "answers.bin", layout)
        assert len(found) == len(rows)
        predicted = found["answer"][:, 0].copy()
        if self.task == "regression":
            predicted = predicted.view(np.float32)
        return Answers(
            found["values"], found["bounds"], predicted, found["answer"][:, 1], found["answer"][:, 2].astype(bool)
        )


def write_program(compiled: Any, folder: Path, **options: Any) -> Any:
    """The header m.h and the program main.c in a folder; returns what the export says it costs."""
    folder.mkdir(parents=True, exist_ok=True)
    cost = compiled.export_c(folder / "m.h", name="m", **options)
    answer = REGRESSED if compiled.artifact.task == "regression" else CLASSIFIED
    kind = options.get("inputs", "float32")
    load = DIRECTLY if kind == "float32" else BY_CODES.replace("@ROW@", f"{kind}_t")
    (folder / "main.c").write_text(MAIN.replace("@ANSWER@", answer).replace("@LOAD@", load))
    return cost


def build(compiled: Any, folder: Path, *flags: str, compiler: list[str] = C99, **options: Any) -> Program:
    """Export, compile for this machine, ready to run."""
    write_program(compiled, folder, **options)
    subprocess.run([*compiler, *flags, "-o", "program", "main.c"], cwd=folder, check=True)
    return Program(folder, compiled.artifact.task, int(compiled.artifact.header["n_decisions"]), ["./program"])

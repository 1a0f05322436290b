"""Programs that include an exported C header, read rows from one file and write answers to another."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from approxsvm.ir.outputs import DensityMarks

NEEDS_GCC = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wdouble-promotion", "-Werror"]
C99 = ["gcc", "-std=c99", "-O1", "-ffp-contract=off"]
CLASSIFIED = "answer[0] = m_predict(row); answer[1] = m_predict_if_certain(row); answer[2] = m_is_certain(row);"
TARGETS = "m_predict(row, answer); m_predict_if_certain(row, answer + @N@); answer[2 * @N@] = m_is_certain(row);"
REGRESSED = """union { float value; int bits; } same;
            same.value = m_predict(row);
            answer[0] = same.bits;
            answer[2] = m_is_certain(row);"""
DIRECTLY = """const float *const row = numbers;"""
BY_CODES = """static @ROW@ row[m_n_features];
        m_quantize(numbers, row);"""
ARRAY = "static float {0}s[{1}], {0}_bounds[{1}];"
FILL = """m_{call}(row, {0}s);
        m_{bounds}(row, {0}_bounds);
        fwrite({0}s, sizeof {0}s, 1, answers);
        fwrite({0}_bounds, sizeof {0}_bounds, 1, answers);"""
# With semihosting, programs on an emulated board can access the same files.
MAIN = """
#include "m.h"
#include <stdio.h>
int main(void) {
    FILE *const rows = fopen("rows.bin", "rb"), *const answers = fopen("answers.bin", "wb");
    static float numbers[m_n_features];
    @ARRAYS@
    if (!rows || !answers) return 1;
    while (fread(numbers, sizeof numbers, 1, rows) == 1) {
        int answer[2 * @N@ + 1] = {0};
        @LOAD@
        @FILL@
        {
            @ANSWER@
        }
        fwrite(answer, sizeof answer, 1, answers);
    }
    return fclose(answers);
}
"""


@dataclass(frozen=True, eq=False)
class Answers:
    """A header's answers for rows."""

    values: Any  # (n_rows, n_values), float32, like the bounds
    bounds: Any
    predicted: Any  # label indices, one column per target, or a regressor's values
    if_certain: Any
    certain: Any
    shares: Any  # (n_rows, n_labels), float32, like the bounds; no columns if there are no probabilities
    share_bounds: Any


@dataclass(frozen=True, eq=False)
class Program:
    """An exported model, compiled; `run` starts the program in its folder."""

    folder: Path
    task: str
    n_values: int
    run: list[str]
    n_shares: int = 0
    n_targets: int = 0  # 0 if each row has a single label, not a list

    def answers(self, rows: Any) -> Answers:
        """Return the answers for float32 rows."""
        (self.folder / "rows.bin").write_bytes(np.ascontiguousarray(rows, np.float32).tobytes())
        subprocess.run(self.run, cwd=self.folder, check=True, timeout=300)
        n, m = (self.n_values,), (self.n_shares,)
        layout = np.dtype(
            [
                ("values", "<f4", n),
                ("bounds", "<f4", n),
                ("shares", "<f4", m),
                ("share_bounds", "<f4", m),
                ("answer", "<i4", (2 * max(self.n_targets, 1) + 1,)),
            ]
        )
        found = np.fromfile(self.folder / "answers.bin", layout)
        assert len(found) == len(rows)
        places = [0, 1] if self.n_targets == 0 else [slice(self.n_targets), slice(self.n_targets, -1)]
        predicted, if_certain = (found["answer"][:, place].copy() for place in places)
        if self.task == "regression":
            predicted = predicted.view(np.float32)
        certain = found["answer"][:, -1].astype(bool)
        return Answers(
            found["values"], found["bounds"], predicted, if_certain, certain, found["shares"], found["share_bounds"]
        )


def write_program(compiled: Any, folder: Path, **options: Any) -> Any:
    """Write the header m.h and the program main.c to a folder; return the export's resource figures."""
    folder.mkdir(parents=True, exist_ok=True)
    cost = compiled.export_c(folder / "m.h", name="m", **options)
    n_values, n_shares = sizes(compiled)
    several = compiled.artifact.task == "regression" and n_values > 1
    n_targets = _n_targets(compiled)
    answer = REGRESSED if compiled.artifact.task == "regression" else CLASSIFIED if n_targets == 0 else TARGETS
    if several:
        answer = "answer[2] = m_is_certain(row);"
    arrays = [ARRAY.format("value", "m_n_values")] * bool(n_values) + [ARRAY.format("share", "m_n_labels")] * bool(
        n_shares
    )
    fill = [FILL.format("value", call="decision_values", bounds="error_bounds")] * bool(n_values)
    fill += [FILL.format("share", call="probabilities", bounds="probability_bounds")] * bool(n_shares)
    kind = options.get("inputs", "float32")
    text = MAIN.replace("@ARRAYS@", "\n    ".join(arrays)).replace("@FILL@", "\n        ".join(fill))
    load = DIRECTLY if kind == "float32" else BY_CODES.replace("@ROW@", f"{kind}_t")
    (folder / "main.c").write_text(
        text.replace("@ANSWER@", answer).replace("@LOAD@", load).replace("@N@", str(max(n_targets, 1)))
    )
    return cost


def _n_targets(compiled: Any) -> int:
    return compiled.artifact.n_targets if compiled.artifact.of_targets else 0


def sizes(compiled: Any) -> tuple[int, int]:
    """Return the numbers of values and of probabilities computed by a header."""
    artifact = compiled.artifact
    has_shares = artifact.has_class_probabilities or isinstance(artifact.outputs.probability, DensityMarks)
    return 0 if artifact.averages else artifact.n_decisions, (len(artifact.labels) or 2) * has_shares


def build(compiled: Any, folder: Path, *flags: str, compiler: list[str] = C99, **options: Any) -> Program:
    """Export and compile for this machine."""
    write_program(compiled, folder, **options)
    subprocess.run([*compiler, *flags, "-o", "program", "main.c"], cwd=folder, check=True)
    n_values, n_shares = sizes(compiled)
    return Program(folder, compiled.artifact.task, n_values, ["./program"], n_shares, _n_targets(compiled))

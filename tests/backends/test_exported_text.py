"""The C99 templates of exported headers, compiled unchanged after a model's constants, without the exporter."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from c_header import NEEDS_GCC, STRICT, build
from conftest import GOLDEN, REPOSITORY
from test_export_c_kinds import SANITIZED

import approxsvm
from approxsvm.backends.c99.header import CHeader
from approxsvm.backends.c99.source import array

pytestmark = [pytest.mark.native, NEEDS_GCC]
INCLUDE = REPOSITORY / "cpp" / "include"
EXPORTED = INCLUDE / "approxsvm" / "exported"


def texts(folder: Path) -> str:
    return "".join(path.read_text() for path in sorted(folder.glob("*.h")))


def test_names_stay_apart() -> None:
    """In a header, `model_NAME_` and `approxsvm_NAME` get the same prefix and suffix."""
    exported, program = texts(EXPORTED), texts(INCLUDE / "approxsvm" / "program")
    of_models = set(re.findall(r"\bmodel_(\w+)_\b", exported))
    shared = set(re.findall(r"\b(?:approxsvm|APPROXSVM)_(\w+)", exported + program))
    assert len(of_models) > 150
    assert len(shared) > 100
    assert of_models & shared == set()


HAND_MADE = """
#include <stdint.h>
#include <stdio.h>
#define model_n_features 2
#define model_n_values 1
#define model_n_values_ 1
#define model_n_labels 2
#define model_has_labels_ 1
#define model_n_mapped_ 2
#define model_n_used_ 2
#define model_n_varying_ 2
#define model_has_map_ 1
#define model_maps_rows_ 1
#define model_n_widest_ 2
/* Products x0 x1 and x1 x1 of scaled features */
#define model_n_ops_ 3
#define model_op_affine_ 1
#define model_op_monomials_ 2
#define model_subtracts_ 1
#define model_divides_ 1
#define model_n_radii_ 2
#define model_n_apart_ 2
#define model_integer_ uint8_t
static const uint8_t model_ops_[] = {0, 1, 2}, model_op_n_[] = {2, 2, 2}, model_op_n_inputs_[] = {2, 2, 2};
static const uint8_t model_op_width_[] = {2, 2, 2};
static const uint8_t model_op_ends_[] = {2, 0, 3}, model_op_keeps_[] = {2, 0, 1}, model_op_is_apart_[] = {0, 0, 1};
static const uint8_t model_op_is_exact_[] = {1, 1, 0}, model_op_details_[] = {0, 5, 2};
static const uint8_t model_op_doubles_[] = {0, 0, 0}, model_op_integers_[] = {0, 0, 0};
static const double model_doubles_[] = {0x1p-52, 0x1p-1000, 0.0, 1.0, 2.0, 4.0, 8.0};
static const uint8_t model_integers_[] = {0, 1, 1, 1};
/* The value -1 + 2 (x0 x1) + 3 (x1 x1) */
#define model_n_terms_ 1
#define model_n_weights_ 1
#define model_limit_sq_ 1e30f
#define model_moved_ 0.0f
#define model_n_majorant_ 2
#define model_n_slope_ 1
static const float model_vectors_[] = {2.0f, 3.0f}, model_weights_[] = {1.0f};
static const uint8_t model_ends_[] = {1}, model_places_[] = {0};
static const double model_intercepts_[] = {-1.0};
static const float model_majorants_[] = {1e-6f, 1e-5f}, model_slopes_[] = {3.7f};
#include "approxsvm/exported/model.h"
int main(void) {
    float row[2], value[1], bound[1];
    while (scanf("%f %f", row, row + 1) == 2) {
        model_decision_values(row, value);
        model_error_bounds(row, bound);
        printf("%.9g %.9g %d %d\\n", (double)value[0], (double)bound[0], model_predict(row), model_is_certain(row));
    }
    return 0;
}
"""


def test_a_model_made_by_hand(tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(HAND_MADE)
    subprocess.run([*SANITIZED, *STRICT, f"-I{INCLUDE}", "-o", "main", "main.c"], cwd=tmp_path, check=True)
    rows = np.random.default_rng(0).normal(size=(40, 2)).astype(np.float32) * 10
    given = "".join(f"{a!r} {b!r}\n" for a, b in [*rows.tolist(), (1.0, float("nan"))])
    done = subprocess.run(["./main"], cwd=tmp_path, input=given, capture_output=True, text=True, check=True)
    *found, strange = np.array([line.split() for line in done.stdout.splitlines()], float)
    x = (rows.astype(float) - [1.0, 2.0]) / [4.0, 8.0]
    values = -1.0 + 2.0 * x[:, 0] * x[:, 1] + 3.0 * x[:, 1] ** 2
    for (value, bound, label, is_certain), exact in zip(found, values, strict=True):
        assert abs(value - exact) <= bound < 1e-3
        assert label == (0 if exact > 0.0 else 1)
        assert is_certain == (abs(value) > bound)
    assert np.isnan(strange[0])
    assert strange[1:].tolist() == [np.inf, 0.0, 0.0]


# A model of sums, one with probabilities, one with an op table, and one with slices.
RAW = ("iris_classes", "iris_calibrated", "diabetes_pipeline", "iris_slices")


@pytest.mark.parametrize("name", RAW)
def test_headers_answer_as_the_text_behind_their_numbers(name: str, tmp_path: Path) -> None:
    fast = approxsvm.load(GOLDEN / f"{name}.asvm")
    rows = np.random.default_rng(0).normal(size=(60, fast.n_features_in_)).astype(np.float32)
    program = build(fast, tmp_path)
    exported = program.answers(rows)
    ((_, _, macros, arrays),) = CHeader(fast.artifact, "model", "float32").models()
    numbers = "".join(f"#define model_{part} {number}\n" for part, number in macros.items())
    numbers += "".join(array(f"model_{part}", some) for part, some in arrays.items())
    (tmp_path / "m.h").write_text(f'#include <stdint.h>\n{numbers}#include "approxsvm/exported/model.h"\n')
    (tmp_path / "main.c").write_text(re.sub(r"\bm_", "model_", (tmp_path / "main.c").read_text()))
    command = [*SANITIZED, *STRICT, f"-I{INCLUDE}", "-o", "program", "main.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    itself = program.answers(rows)
    for field in ("values", "bounds", "predicted", "if_certain", "certain", "shares", "share_bounds"):
        np.testing.assert_array_equal(getattr(itself, field), getattr(exported, field))

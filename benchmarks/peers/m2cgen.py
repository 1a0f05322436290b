"""m2cgen: the SVC as C source, with one line per support vector."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.peers.frame import LeftOutError, Peer, Predict, Sample, Trained
from benchmarks.peers.scikit_learn import as_svc

_MOST_NUMBERS = 30_000  # elements of all support vectors; larger sources compile for minutes


def prepare(trained: Trained, sample: Sample) -> Predict:
    """Compile with this machine's C compiler, and predict row by row, because m2cgen has no batch call."""
    import m2cgen

    model, compiler = trained.model, shutil.which("cc")
    if model.n_sv * model.n_features > _MOST_NUMBERS or compiler is None:
        raise LeftOutError(f"no C compiler, or more than {_MOST_NUMBERS:,} numbers, which compile for minutes")
    source = trained.model_path.with_suffix(".c")
    loop = (
        "void labels(const double* rows, long n, long d, int* found) {"
        " for (long i = 0; i < n; ++i) {SCORE found[i] = POSITIVE; } }"
    )
    code = m2cgen.export_to_c(as_svc(model))
    if "double * output" in code:  # two votes
        loop = loop.replace("SCORE", " double out[2]; score((double*)rows + i * d, out);")
        loop = loop.replace("POSITIVE", "out[1] > out[0]")
    else:
        loop = loop.replace("SCORE", "").replace("POSITIVE", "score((double*)rows + i * d) > 0.0")
    source.write_text(f"{code}\n{loop}\n")
    library = source.with_suffix(".so")
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", str(source), "-o", str(library), "-lm"], check=True)
    labels = ctypes.CDLL(str(library)).labels
    rows, positive = sample.float64, np.empty(len(sample), np.int32)

    def predict() -> npt.NDArray[Any]:
        labels(rows.ctypes, ctypes.c_long(len(rows)), ctypes.c_long(rows.shape[1]), positive.ctypes)
        return np.where(positive, *model.labels[::-1])  # positive values mean the second label

    return predict


PEER = Peer("m2cgen, C", prepare, is_slow=True, is_rounded=False, package="m2cgen")

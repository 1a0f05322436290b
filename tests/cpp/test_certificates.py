"""Certificates do not depend on the other outputs of a request, in any interface. C++: cpp/tests/test_model.cpp."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from conftest import GOLDEN
from runtime_library import Runtime
from sklearn.calibration import CalibratedClassifierCV
from sklearn.svm import SVC, SVR
from test_runtime import rows_for

import approxsvm
from approxsvm.runtime.evaluator import Evaluator, available_outputs, read_artifact

RNG = np.random.default_rng(0)
X = RNG.random((300, 4))
SOURCES = {  # each certifies some rows
    "one function": (SVC(), X.sum(axis=1) > 2),
    "pairs": (SVC(), (2 * X.sum(axis=1)).astype(int)),
    "probabilities": (CalibratedClassifierCV(SVC(), ensemble=False), X.sum(axis=1) > 2),
    "ensemble": (CalibratedClassifierCV(SVC(), cv=2), X.sum(axis=1) > 2),
    "regression": (SVR(), X.sum(axis=1)),
}
GOLDEN_NAMES = [path.stem for path in sorted(GOLDEN.glob("*.asvm"))]
IN_C = {"label": "labels", "value": "values", "error_bound": "bounds", "probability": "probabilities"}


def artifact_of(name: str) -> Any:
    if name not in SOURCES:
        return read_artifact(GOLDEN / f"{name}.asvm")
    source, y = SOURCES[name]
    return approxsvm.compile(
        source.fit(X, y), degree=2, n_centers=16, tolerance=0.02 if name == "regression" else 1e-4
    ).artifact


def requests(artifact: Any) -> list[tuple[str, ...]]:
    """Return every combination of outputs other than the certificate."""
    others = [output for output in available_outputs(artifact) if output != "certified"]
    return [some for n in range(len(others) + 1) for some in combinations(others, n)]


@pytest.mark.parametrize("name", [*SOURCES, *GOLDEN_NAMES])
def test_certificates_do_not_depend_on_the_request(name: str) -> None:
    artifact = artifact_of(name)
    rows = X if name in SOURCES else rows_for(artifact)
    evaluator, library = Evaluator(artifact), Runtime(artifact.data)
    expected = evaluator.certified(rows)
    assert name not in SOURCES or 0.0 < expected.mean() < 1.0
    as_part = evaluator.answers(rows, ["certified"])["certified"]
    in_c = IN_C | ({"error_bound": "probability_bounds"} if artifact.averages else {})
    for others in requests(artifact):
        np.testing.assert_array_equal(evaluator.answers(rows, [*others, "certified"])["certified"], as_part)
        for kind in (0, 1, *([2] if artifact.mode in ("certified", "exact") else [])):
            *_, found = library.evaluate(rows, *(in_c[output] for output in others), "certified", values_kind=kind)
            np.testing.assert_array_equal(found.reshape(expected.shape), expected, err_msg=f"{others} {kind}")
